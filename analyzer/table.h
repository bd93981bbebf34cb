/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TABLE_H
#define TABLE_H
/*
 * Tables: a grid of cells aligned for a terminal, and writers of result sets in five formats.
 * Whatever text a cell holds, it leaves through text_add_safe() or a quoting of its format.
 */
#include "status.h"
#include "text.h"

#include <stdio.h>

/* ---- a grid: what reports draw with ---- */

enum align {
    ALIGN_LEFT,  /* may be cut where the row is too wide */
    ALIGN_RIGHT, /* never cut, as are numbers */
    ALIGN_FIXED, /* left, and never cut */
};

struct grid_cell {
    size_t at, len;  /* in grid.content */
    size_t width;    /* columns on the terminal */
    bool to_the_end; /* its text runs over the cells right of it */
};

/* Rows of cells. Make it with grid_of(), free it with grid_done(). */
struct grid {
    size_t column_count;
    const enum align *align; /* one per column; the caller's, lives as long as the grid */
    size_t gap;              /* spaces between columns */
    bool utf8;
    struct text content;
    struct grid_cell *cells;
    size_t cell_count, cell_capacity;
    bool failed; /* no memory */
};

struct grid grid_of(size_t column_count, const enum align *align, bool utf8);
void grid_done(struct grid *g);

/* Adds the next cell; a row is full after column_count cells. The text is made safe. */
void grid_add(struct grid *g, struct bytes cell);
void grid_add_string(struct grid *g, const char *cell);
void grid_addf(struct grid *g, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Adds a text that runs over the rest of its row; the row is full then. */
void grid_add_to_the_end(struct grid *g, const char *text);

/* Adds empty cells until the row is full. */
void grid_end_row(struct grid *g);

/*
 * Writes all rows, one a line, without spaces at the ends of lines. Where they are wider than
 * `width` (0: no limit), the gap becomes one space and left-aligned columns are cut, the widest
 * first, and marked. False when even that does not suffice: nothing was written then.
 */
bool grid_write(struct grid *g, size_t width, struct text *out);

/* ---- result sets ---- */

enum cell_type { CELL_NULL, CELL_INTEGER, CELL_REAL, CELL_TEXT, CELL_BLOB };

/* One value of a result set; `bytes` of text and blobs are views of the caller. */
struct cell {
    enum cell_type type;
    int64_t integer;
    double real;
    struct bytes bytes;
};

struct cell cell_null(void);
struct cell cell_integer(int64_t value);
struct cell cell_real(double value);
struct cell cell_text(const char *string); /* NULL gives cell_null() */

enum table_format {
    TABLE_ALIGNED,  /* "table": for people; one "name  value" line per cell where rows are too wide
                     */
    TABLE_CSV,      /* RFC 4180, with a header line */
    TABLE_JSON,     /* RFC 8259, an array of objects */
    TABLE_NDJSON,   /* one object a line */
    TABLE_MARKDOWN, /* GitHub's pipes */
    TABLE_HTML,     /* a page of page.h; result sets alone are never written so */
};

/* Reads "table", "csv", "json", "ndjson", "markdown", "html". */
bool table_format_of(const char *name, enum table_format *ret_format);

/* Columns of pages that do not go to a terminal. */
enum { PAGE_WIDTH = 100 };

/* How a command writes its results. */
struct table_style {
    enum table_format format;
    size_t width; /* columns of the terminal; 0: there is none, nothing is cut */
    bool utf8;    /* the reader's terminal shows UTF-8 */
};

/* Rows on whose cells the widths of an aligned table rest; those behind them may stand out. */
enum { TABLE_ROWS_MEASURED = 1000 };

struct table;

/*
 * Starts a result set with these column names (copied). NULL without memory. Rows leave as they
 * come; an aligned table keeps TABLE_ROWS_MEASURED of them at most.
 */
struct table *table_open(FILE *out, struct table_style style, const char *const *names,
                         size_t column_count);

/* Writes one row of column_count cells. STATUS_IO when out cannot be written. */
MUST_USE enum status table_add(struct table *t, const struct cell *cells);

/* Bytes that its rows, and what stands above them, have taken so far. */
uint64_t table_bytes(const struct table *t);

/*
 * Ends the result set and frees it; the outcome is that of everything written. NULL is accepted
 * and means that table_open() had no memory.
 */
MUST_USE enum status table_close(struct table *t);

#endif
