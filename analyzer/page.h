/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PAGE_H
#define PAGE_H
/*
 * What a report says, block by block, before anybody decides how it looks: headings, sentences,
 * tables, pictures, and commands that lead on. A report builds a page once; it is written as text
 * for a terminal, as CSV or JSON (its tables alone), or as one HTML file. Texts may be of any
 * origin: each writer makes them harmless in its own way.
 *
 * Nothing here fails before page_write(): a page that ran out of memory, or NULL for one that could
 * not be made, takes every call and says so there.
 */
#include "table.h"

/* What the values of a column are, so that each writer can print them as its readers expect. */
enum page_kind {
    PAGE_WORD,    /* text */
    PAGE_GROUP,   /* text by which rows are grouped: people see it once, above the rows alike */
    PAGE_COUNT,   /* whole number; people see 96,118 */
    PAGE_PERCENT, /* share of 1; people see 21.3% for 0.213 */
    PAGE_MS,      /* nanoseconds; people see milliseconds with three digits that count */
    PAGE_NUMBER,  /* real, one decimal: round trips, ratios */
    PAGE_TIME,    /* ISO 8601 text; lines leave out the day when it is that of all in the table */
    PAGE_DIGEST,  /* hexadecimal text; in lines people see 4f1c09..9a */
    PAGE_ID,      /* flow id: never with separators */
};

struct page_column {
    const char *name;  /* in CSV and JSON, as "perceived_p50_ns" */
    const char *title; /* for people, as "p50"; NULL: the name */
    enum page_kind kind;
};

struct page;

/* NULL without memory. The title is copied, as are all texts of a page. */
struct page *page_open(const char *title);
void page_close(struct page *p); /* NULL is accepted */

void page_heading(struct page *p, const char *text);
void page_text(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A sentence that must not be overlooked. */
void page_warning(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A line of a list of facts, as "Kind rests on" and "protocol 74.0%, strong 26.0%". */
void page_fact(struct page *p, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* A command or SQL to copy, as "firstflight flows --where ...". */
void page_command(struct page *p, const char *text);

/*
 * Starts a table; page_cell() adds its cells row by row. The name tells the tables of a page apart
 * in CSV and JSON, and is none of "title", "notes". Columns are copied.
 */
void page_table(struct page *p, const char *name, const struct page_column *columns, size_t count);

/* Bytes of the value are copied. */
void page_cell(struct page *p, struct cell value);

/*
 * Fills the row that was begun with NULL; people read the words there instead, as "too few for
 * percentiles".
 */
void page_rest(struct page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- pictures: HTML only, drawn from the table that was begun last ---- */

/*
 * Each picture shows columns `first` to `first + count - 1` of the table; lines and parts are named
 * by the titles of their columns. Ranges and stacks are drawn inside of the rows, in a column of
 * their own before `first`. The others are figures; their table is folded below them, and not
 * shown as text. Figures that follow each other stand side by side. Classes of handshakes have the
 * same colour everywhere.
 */
enum page_picture_kind {
    PAGE_RANGES,  /* three times, as p50, p90, p99, on one logarithmic axis */
    PAGE_STACKS,  /* times that add up to a whole, on one linear axis */
    PAGE_CURVES,  /* shares of flows that took at most these times; column 0 is PAGE_PERCENT */
    PAGE_LINES,   /* one value per row, from zero; column 0 is the PAGE_TIME of the row */
    PAGE_COLUMNS, /* the same as parts of a whole, one on the other */
};

struct page_picture {
    enum page_picture_kind kind;
    const char *title; /* of the column or the figure */
    size_t first, count;
    double low_ns, high_ns; /* of curves that are to be compared with others; 0: their own */
};

/* Adds a picture, at most one per table, once all cells are there. */
void page_draw(struct page *p, const struct page_picture *picture);

/*
 * Writes the page. Aligned tables and markdown: everything in order. CSV and NDJSON: the first
 * table alone. JSON: an object with "title", each table as an array under its name, and every
 * sentence, warning and fact as text in the array "notes". HTML: everything.
 * STATUS_NO_MEMORY when the page is not whole, STATUS_IO.
 */
MUST_USE enum status page_write(const struct page *p, struct table_style style, FILE *out);

#endif
