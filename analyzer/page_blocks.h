/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PAGE_BLOCKS_H
#define PAGE_BLOCKS_H
/* The inside of a page, for its writers. */
#include "chart.h"
#include "page.h"

enum block_kind {
    BLOCK_HEADING,
    BLOCK_TEXT,
    BLOCK_WARNING,
    BLOCK_FACT,
    BLOCK_COMMAND,
    BLOCK_TABLE,
};

/* A piece of page.content. */
struct page_span {
    size_t at, len;
};

struct page_cell {
    enum cell_type type;
    int64_t integer;
    double real;
    struct page_span bytes; /* of text and blobs */
    bool is_rest;           /* words over the rest of the row; its type is CELL_NULL */
};

struct page_head {
    struct page_span name, title;
    enum page_kind kind;
};

/* As struct page_picture; count 0: none. */
struct page_drawing {
    enum page_picture_kind kind;
    struct page_span title;
    size_t first, count;
    double low_ns, high_ns;
    struct page_span svg; /* a picture that was drawn elsewhere; empty: none */
};

struct page_table {
    struct page_head *columns;
    size_t column_count;
    struct page_cell *cells;
    size_t cell_count, cell_capacity;
    struct page_drawing drawing;
};

struct page_block {
    enum block_kind kind;
    struct page_span name; /* of facts and tables */
    struct page_span text;
    struct page_table *table; /* of BLOCK_TABLE, else NULL */
};

struct page {
    struct text content; /* all texts, one behind the other */
    struct page_span title;
    struct page_block *blocks;
    size_t block_count, block_capacity;
    bool failed; /* no memory */
};

struct bytes page_bytes(const struct page *p, struct page_span span);

/* Rows that are whole. */
size_t page_row_count(const struct page_table *t);

/* Cell of a row; row < page_row_count(). */
const struct page_cell *page_at(const struct page_table *t, size_t row, size_t column);

/* Whether the column holds numbers, which stand right. */
bool page_is_number(enum page_kind kind);

/* Whether a PAGE_GROUP cell only repeats the one above: it and all groups left of it do. */
bool page_repeats(const struct page *p, const struct page_table *t, size_t row, size_t column);

/* Adds a cell as people read it, not yet made safe. NULL gives "-". */
void page_add_cell(const struct page *p, const struct page_cell *cell, enum page_kind kind,
                   struct text *out);

/* The cell as a value; its bytes are views of the page. */
struct cell page_value(const struct page *p, const struct page_cell *cell);

/*
 * Adds a picture to the table that was begun last that is no view of its columns but says the same:
 * an SVG element in which all texts are escaped, written as it is.
 */
void page_draw_svg(struct page *p, const char *title, const struct text *svg);

/* Number of a cell; NAN where it holds none. */
double page_number(const struct page_cell *cell);

/* Whether the table is drawn as a figure, with itself folded below. */
bool page_is_figure(const struct page_table *t);

/* Whether a column of bars stands before the column. */
bool page_has_bars_before(const struct page_table *t, size_t column);

/* The writers of pictures as HTML: scale, head and cell of the column of bars, and the figure
 * itself. */
struct chart_scale page_bar_scale(const struct page_table *t);
void page_put_bar_head(const struct page *p, const struct page_table *t, struct chart_scale scale,
                       struct text *out);
void page_put_bar(const struct page *p, const struct page_table *t, size_t row,
                  struct chart_scale scale, struct text *out);
void page_put_figure(const struct page *p, const struct page_table *t, struct text *out);

/* Adds the mark of a part of a stack to the title of its column; nothing for other columns. */
void page_put_part_mark(const struct page_table *t, size_t column, struct text *out);

/* The writers for people: add the whole page to out. */
void page_put_text(const struct page *p, struct table_style style, struct text *out);
void page_put_markdown(const struct page *p, struct text *out);
void page_put_html(const struct page *p, struct text *out);

#endif
