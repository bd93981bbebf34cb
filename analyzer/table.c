/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

enum { NARROWEST_CUT = 8 }; /* a name cut shorter than this says nothing */

/* ---- grid ---- */

struct grid grid_of(size_t column_count, const enum align *align, bool utf8)
{
    assert(column_count > 0);
    return (struct grid){ .column_count = column_count, .align = align, .gap = 2, .utf8 = utf8 };
}

void grid_done(struct grid *g)
{
    text_done(&g->content);
    free(g->cells);
    g->cells = NULL;
    g->cell_count = g->cell_capacity = 0;
}

static void grid_clear(struct grid *g)
{
    text_clear(&g->content);
    g->cell_count = 0;
}

static struct grid_cell *grid_new_cell(struct grid *g)
{
    if (g->cell_count == g->cell_capacity) {
        size_t capacity = g->cell_capacity ? 2 * g->cell_capacity : 64;
        struct grid_cell *cells = reallocarray(g->cells, capacity, sizeof *cells);
        if (!cells) {
            g->failed = true;
            return NULL;
        }
        g->cells = cells;
        g->cell_capacity = capacity;
    }
    return &g->cells[g->cell_count++];
}

static struct bytes grid_text(const struct grid *g, const struct grid_cell *cell)
{
    struct bytes content = { (const uint8_t *)g->content.at, g->content.len };
    return bytes_first(bytes_after(content, cell->at), cell->len);
}

void grid_add(struct grid *g, struct bytes text)
{
    struct grid_cell *cell = grid_new_cell(g);
    if (!cell)
        return;
    *cell = (struct grid_cell){ .at = g->content.len };
    text_add_safe(&g->content, text, g->utf8);
    g->failed |= g->content.failed;
    cell->len = g->content.len - cell->at;
    cell->width = text_width(grid_text(g, cell));
}

void grid_add_string(struct grid *g, const char *cell)
{
    grid_add(g, text_bytes(cell));
}

void grid_addf(struct grid *g, const char *format, ...)
{
    char *cell = NULL;
    va_list arguments;
    va_start(arguments, format);
    int len = vasprintf(&cell, format, arguments);
    va_end(arguments);
    if (len < 0) {
        g->failed = true;
        return;
    }
    grid_add_string(g, cell);
    free(cell);
}

void grid_end_row(struct grid *g)
{
    while (!g->failed && g->cell_count % g->column_count != 0)
        grid_add_string(g, "");
}

void grid_add_to_the_end(struct grid *g, const char *text)
{
    grid_add_string(g, text);
    if (g->failed)
        return;
    g->cells[g->cell_count - 1].to_the_end = true;
    grid_end_row(g);
}

/* Raises widths[] to what the cells need. */
static void grid_measure(const struct grid *g, size_t *widths)
{
    for (size_t i = 0; i < g->cell_count; i++) {
        size_t *width = &widths[i % g->column_count];
        if (!g->cells[i].to_the_end && g->cells[i].width > *width)
            *width = g->cells[i].width;
    }
}

static size_t line_width(const struct grid *g, const size_t *widths)
{
    size_t sum = g->gap * (g->column_count - 1);
    for (size_t i = 0; i < g->column_count; i++)
        sum += widths[i];
    return sum;
}

/* Takes one column away from the widest left-aligned one; false when all are narrow. */
static bool narrow_widest(const struct grid *g, size_t *widths)
{
    size_t *widest = NULL;
    for (size_t i = 0; i < g->column_count; i++) {
        if (g->align[i] == ALIGN_LEFT && widths[i] > NARROWEST_CUT &&
            (!widest || widths[i] > *widest))
            widest = &widths[i];
    }
    if (widest)
        (*widest)--;
    return widest != NULL;
}

/* Brings widths[] and the gap down to lines of `limit` columns; false when that is impossible. */
static bool grid_fit(struct grid *g, size_t limit, size_t *widths)
{
    if (limit == 0)
        return true;
    if (line_width(g, widths) > limit)
        g->gap = 1;
    for (size_t i = 0; i < g->column_count; i++) {
        if (g->align[i] == ALIGN_LEFT && widths[i] > limit)
            widths[i] = limit;
    }
    while (line_width(g, widths) > limit) {
        if (!narrow_widest(g, widths))
            return false;
    }
    return true;
}

static void put_cut(struct text *out, struct bytes cell, size_t width, bool utf8)
{
    size_t len = text_fitting(cell, width - 1);
    text_add_bytes(out, bytes_first(cell, len));
    text_add(out, utf8 ? "…" : "~");
}

static void grid_put_row(const struct grid *g, const struct grid_cell *row, const size_t *widths,
                         struct text *out)
{
    size_t spaces = 0; /* owed before the next text, so that no line ends in spaces */
    for (size_t i = 0; i < g->column_count; i++) {
        struct bytes cell = grid_text(g, &row[i]);
        size_t width = row[i].width;
        bool cut = width > widths[i] && !row[i].to_the_end;
        if (cut)
            width = widths[i];
        size_t padding = width < widths[i] ? widths[i] - width : 0;
        if (g->align[i] == ALIGN_RIGHT && !row[i].to_the_end) {
            spaces += padding;
            padding = 0;
        }
        if (width > 0) {
            text_add_repeated(out, " ", spaces);
            spaces = 0;
        }
        if (cut)
            put_cut(out, cell, width, g->utf8);
        else
            text_add_bytes(out, cell);
        spaces += padding + g->gap;
    }
    text_add(out, "\n");
}

static void grid_put(const struct grid *g, const size_t *widths, struct text *out)
{
    for (size_t at = 0; at + g->column_count <= g->cell_count; at += g->column_count)
        grid_put_row(g, &g->cells[at], widths, out);
}

bool grid_write(struct grid *g, size_t width, struct text *out)
{
    size_t *widths = calloc(g->column_count, sizeof *widths);
    if (!widths || g->failed) {
        out->failed = true;
        free(widths);
        return true;
    }
    grid_measure(g, widths);
    bool fits = grid_fit(g, width, widths);
    if (fits)
        grid_put(g, widths, out);
    free(widths);
    return fits;
}

/* ---- cells ---- */

struct cell cell_null(void)
{
    return (struct cell){ .type = CELL_NULL };
}

struct cell cell_integer(int64_t value)
{
    return (struct cell){ .type = CELL_INTEGER, .integer = value };
}

struct cell cell_real(double value)
{
    return (struct cell){ .type = CELL_REAL, .real = value };
}

struct cell cell_text(const char *string)
{
    return string ? (struct cell){ .type = CELL_TEXT, .bytes = text_bytes(string) } : cell_null();
}

static void add_hex(struct text *t, struct bytes b)
{
    struct reader r = reader_of(b);
    while (r.rest.len > 0)
        text_addf(t, "%02x", reader_u8(&r));
}

/* ---- result sets ---- */

/* A cell that waits: its text in table.kept_text, or its number. */
struct kept {
    bool is_real;
    double real;
    size_t at, len;
};

struct table {
    FILE *out;
    struct table_style style;
    size_t column_count;
    char **names;
    bool begun; /* something was written of rows */
    struct text line;
    uint64_t bytes; /* written */
    bool failed;
    /* of TABLE_ALIGNED */
    struct kept *kept; /* cells of rows that wait for the widths to be known */
    size_t kept_count;
    struct text kept_text;
    struct grid grid;
    enum align *align;
    bool *number; /* columns that held nothing but numbers so far */
    size_t *widths;
    bool one_per_line; /* rows are too wide: a line for each cell */
};

bool table_format_of(const char *name, enum table_format *ret_format)
{
    static const struct {
        const char *name;
        enum table_format format;
    } formats[] = {
        { "table", TABLE_ALIGNED }, { "csv", TABLE_CSV },           { "json", TABLE_JSON },
        { "ndjson", TABLE_NDJSON }, { "markdown", TABLE_MARKDOWN }, { "html", TABLE_HTML },
    };
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(name, formats[i].name) == 0) {
            *ret_format = formats[i].format;
            return true;
        }
    }
    return false;
}

/* Writes what the line holds and empties it. */
static void flush_line(struct table *t)
{
    if (t->line.failed)
        t->failed = true;
    else if (t->line.len > 0)
        t->bytes += fwrite(t->line.at, 1, t->line.len, t->out);
    text_clear(&t->line);
}

/* -- CSV, RFC 4180 -- */

/* Spreadsheets take a text that begins so for a formula. */
static bool begins_like_formula(struct bytes text)
{
    static const char FIRST[] = { '=', '+', '-', '@', '\t', '\r' };
    return text.len > 0 && memchr(FIRST, text.at[0], sizeof FIRST) != NULL;
}

/* An empty text is quoted, so that it is not NULL. */
static bool needs_quotes(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (strchr(",\"\n ", text.at[i]) && text.at[i] != '\0')
            return true;
    }
    return text.len == 0;
}

/* Line feeds and tabs stay as they are, everything else that is unsafe is escaped. */
static void add_csv_text(struct text *line, struct bytes text)
{
    static const char QUOTED[] = { '"', '\n', '\t' };
    const char *quote = needs_quotes(text) ? "\"" : "";
    text_add(line, quote);
    if (begins_like_formula(text))
        text_add(line, "'");
    while (text.len > 0) {
        size_t plain = 0;
        while (plain < text.len && !memchr(QUOTED, text.at[plain], sizeof QUOTED))
            plain++;
        text_add_safe(line, bytes_first(text, plain), true);
        text = bytes_after(text, plain);
        if (text.len == 0)
            break;
        text_add(line, text.at[0] == '"' ? "\"" : "");
        text_add_bytes(line, bytes_first(text, 1));
        text = bytes_after(text, 1);
    }
    text_add(line, quote);
}

static void add_csv_cell(struct text *line, const struct cell *cell)
{
    switch (cell->type) {
    case CELL_NULL:
        break;
    case CELL_INTEGER:
        text_addf(line, "%lld", (long long)cell->integer);
        break;
    case CELL_REAL:
        text_add_real(line, cell->real);
        break;
    case CELL_TEXT:
        add_csv_text(line, cell->bytes);
        break;
    case CELL_BLOB:
        add_hex(line, cell->bytes);
        break;
    }
}

static void add_csv_row(struct table *t, const struct cell *cells)
{
    for (size_t i = 0; i < t->column_count; i++) {
        text_add(&t->line, i > 0 ? "," : "");
        add_csv_cell(&t->line, &cells[i]);
    }
    text_add(&t->line, "\r\n");
}

/* -- JSON -- */

static void add_json_text(struct text *line, struct bytes text)
{
    text_add(line, "\"");
    text_add_json(line, text);
    text_add(line, "\"");
}

static void add_json_cell(struct text *line, const struct cell *cell)
{
    switch (cell->type) {
    case CELL_NULL:
        text_add(line, "null");
        break;
    case CELL_INTEGER:
        text_addf(line, "%lld", (long long)cell->integer);
        break;
    case CELL_REAL:
        if (isfinite(cell->real))
            text_add_real(line, cell->real);
        else
            text_add(line, "null"); /* RFC 8259 6 has no infinity */
        break;
    case CELL_TEXT:
        add_json_text(line, cell->bytes);
        break;
    case CELL_BLOB:
        text_add(line, "\"");
        add_hex(line, cell->bytes);
        text_add(line, "\"");
        break;
    }
}

static void add_json_row(struct table *t, const struct cell *cells)
{
    text_add(&t->line, "{");
    for (size_t i = 0; i < t->column_count; i++) {
        text_add(&t->line, i > 0 ? "," : "");
        add_json_text(&t->line, text_bytes(t->names[i]));
        text_add(&t->line, ":");
        add_json_cell(&t->line, &cells[i]);
    }
    text_add(&t->line, "}");
}

/* -- what people read -- */

/* Decimals shown of a real: what it needs, one at least, three at most. */
enum { DECIMALS_MIN = 1, DECIMALS_MAX = 3 };

/* Whether a real is neither so large nor so small that decimals say nothing of it. */
static bool has_decimals(double value)
{
    double size = fabs(value);
    return size == 0 || (size >= 0.001 && size < 1e12);
}

static int decimals_needed(double value)
{
    int decimals = DECIMALS_MIN;
    for (double scaled = value * 10; decimals < DECIMALS_MAX; decimals++, scaled *= 10) {
        if (fabs(scaled - round(scaled)) < 1e-6)
            break;
    }
    return decimals;
}

static void add_plain_real(struct text *t, double value, int decimals)
{
    if (has_decimals(value))
        text_addf(t, "%.*f", decimals, value);
    else
        text_add_real(t, value);
}

static void add_plain_cell(struct text *t, const struct cell *cell)
{
    switch (cell->type) {
    case CELL_NULL:
        text_add(t, "-");
        break;
    case CELL_INTEGER:
        text_addf(t, "%lld", (long long)cell->integer);
        break;
    case CELL_REAL:
        add_plain_real(t, cell->real, DECIMALS_MAX);
        break;
    case CELL_TEXT:
        text_add_bytes(t, cell->bytes);
        break;
    case CELL_BLOB:
        add_hex(t, cell->bytes);
        break;
    }
}

static void add_markdown_row(struct table *t, const struct cell *cells)
{
    for (size_t i = 0; i < t->column_count; i++) {
        struct text plain = { 0 };
        add_plain_cell(&plain, &cells[i]);
        t->line.failed |= plain.failed;
        text_add(&t->line, "| ");
        text_add_markdown(&t->line, text_bytes(text_string(&plain)));
        text_add(&t->line, " ");
        text_done(&plain);
    }
    text_add(&t->line, "|\n");
}

static void add_markdown_rule(struct table *t, const struct cell *first_row)
{
    for (size_t i = 0; i < t->column_count; i++) {
        bool number =
            first_row && (first_row[i].type == CELL_INTEGER || first_row[i].type == CELL_REAL);
        text_add(&t->line, number ? "| ---: " : "| --- ");
    }
    text_add(&t->line, "|\n");
}

/* -- aligned -- */

static void keep_row(struct table *t, const struct cell *cells)
{
    for (size_t i = 0; i < t->column_count; i++) {
        struct kept *kept = &t->kept[t->kept_count++];
        *kept = (struct kept){ .at = t->kept_text.len };
        kept->is_real = cells[i].type == CELL_REAL;
        kept->real = cells[i].real;
        if (!kept->is_real)
            add_plain_cell(&t->kept_text, &cells[i]);
        kept->len = t->kept_text.len - kept->at;
        if (cells[i].type == CELL_TEXT || cells[i].type == CELL_BLOB)
            t->number[i] = false;
    }
    t->failed |= t->kept_text.failed;
}

/* Decimals of a column: those of the value that needs most. */
static int column_decimals(const struct table *t, size_t column)
{
    int decimals = DECIMALS_MIN;
    for (size_t i = column; i < t->kept_count; i += t->column_count) {
        if (t->kept[i].is_real && has_decimals(t->kept[i].real)) {
            int needed = decimals_needed(t->kept[i].real);
            decimals = needed > decimals ? needed : decimals;
        }
    }
    return decimals;
}

static struct bytes kept_bytes(const struct table *t, const struct kept *kept)
{
    struct bytes all = { (const uint8_t *)t->kept_text.at, t->kept_text.len };
    return bytes_first(bytes_after(all, kept->at), kept->len);
}

/* Moves the rows that wait into the grid. */
static void fill_grid(struct table *t, int *decimals)
{
    for (size_t i = 0; i < t->column_count; i++) {
        decimals[i] = column_decimals(t, i);
        t->align[i] = t->number[i] ? ALIGN_RIGHT : ALIGN_LEFT;
    }
    for (size_t i = 0; i < t->kept_count; i++) {
        const struct kept *kept = &t->kept[i];
        struct text real = { 0 };
        assert(t->column_count > 0);
        if (kept->is_real)
            add_plain_real(&real, kept->real, decimals[i % t->column_count]);
        grid_add(&t->grid, kept->is_real ? text_bytes(text_string(&real)) : kept_bytes(t, kept));
        t->grid.failed |= real.failed;
        text_done(&real);
    }
    t->kept_count = 0;
    text_clear(&t->kept_text);
}

/* Writes a line for each cell from `first` on. */
static void put_one_per_line(struct table *t, size_t first)
{
    size_t widest = 0;
    for (size_t i = 0; i < t->column_count; i++) {
        size_t width = text_width(text_bytes(t->names[i]));
        widest = width > widest ? width : widest;
    }
    for (size_t i = first; i < t->grid.cell_count; i++) {
        assert(t->column_count > 0);
        const char *name = t->names[i % t->column_count];
        bool between = i % t->column_count == 0 && (t->begun || i > first);
        text_add(&t->line, between ? "\n" : "");
        text_add(&t->line, name);
        text_add_repeated(&t->line, " ", widest - text_width(text_bytes(name)) + 2);
        text_add_bytes(&t->line, grid_text(&t->grid, &t->grid.cells[i]));
        text_add(&t->line, "\n");
    }
}

/* Writes the rows that wait, below a header when they are the first. */
static void flush_kept(struct table *t)
{
    int *decimals = calloc(t->column_count, sizeof *decimals);
    t->failed |= decimals == NULL;
    if (t->failed) {
        free(decimals);
        return;
    }
    size_t header = t->begun ? 0 : t->column_count;
    for (size_t i = 0; i < header; i++)
        grid_add_string(&t->grid, t->names[i]);
    fill_grid(t, decimals);
    free(decimals);
    t->failed |= t->grid.failed;
    if (t->failed)
        return;
    if (!t->one_per_line) {
        grid_measure(&t->grid, t->widths);
        t->one_per_line = !grid_fit(&t->grid, t->style.width, t->widths) && !t->begun;
    }
    if (t->one_per_line)
        put_one_per_line(t, header);
    else
        grid_put(&t->grid, t->widths, &t->line);
    t->begun = true;
    grid_clear(&t->grid);
    flush_line(t);
}

/* -- all -- */

static void table_free(struct table *t)
{
    for (size_t i = 0; t->names && i < t->column_count; i++)
        free(t->names[i]);
    free(t->names);
    free(t->align);
    free(t->number);
    free(t->widths);
    free(t->kept);
    text_done(&t->kept_text);
    grid_done(&t->grid);
    text_done(&t->line);
    free(t);
}

/* A name that is harmless in every format; NULL without memory. */
static char *safe_name(const char *name, const struct table_style *style)
{
    if (style->format != TABLE_ALIGNED)
        return strdup(name);
    struct text safe = { 0 };
    text_add(&safe, "");
    text_add_safe(&safe, text_bytes(name), style->utf8);
    if (safe.failed)
        text_done(&safe);
    return safe.at;
}

struct table *table_open(FILE *out, struct table_style style, const char *const *names,
                         size_t column_count)
{
    assert(column_count > 0 && style.format != TABLE_HTML);
    struct table *t = calloc(1, sizeof *t);
    if (!t)
        return NULL;
    t->out = out;
    t->style = style;
    t->column_count = column_count;
    t->names = calloc(column_count, sizeof *t->names);
    t->align = calloc(column_count, sizeof *t->align);
    t->number = calloc(column_count, sizeof *t->number);
    t->widths = calloc(column_count, sizeof *t->widths);
    bool whole = t->names && t->align && t->number && t->widths;
    if (style.format == TABLE_ALIGNED) {
        t->kept = calloc(TABLE_ROWS_MEASURED * column_count, sizeof *t->kept);
        whole = whole && t->kept;
    }
    for (size_t i = 0; whole && i < column_count; i++) {
        t->names[i] = safe_name(names[i], &style);
        whole = t->names[i] != NULL;
        t->number[i] = true;
    }
    if (!whole) {
        table_free(t);
        return NULL;
    }
    t->grid = grid_of(column_count, t->align, style.utf8);
    return t;
}

/* What stands above the rows, written when the first one (or NULL: none) is known. */
static void begin(struct table *t, const struct cell *first_row)
{
    t->begun = true;
    if (t->style.format == TABLE_JSON) {
        text_add(&t->line, "[");
    } else if (t->style.format == TABLE_CSV || t->style.format == TABLE_MARKDOWN) {
        struct cell *header = calloc(t->column_count, sizeof *header);
        if (!header) {
            t->failed = true;
            return;
        }
        for (size_t i = 0; i < t->column_count; i++)
            header[i] = cell_text(t->names[i]);
        if (t->style.format == TABLE_CSV) {
            add_csv_row(t, header);
        } else {
            add_markdown_row(t, header);
            add_markdown_rule(t, first_row);
        }
        free(header);
    }
}

static enum status table_status(const struct table *t)
{
    if (t->failed)
        return STATUS_NO_MEMORY;
    return ferror(t->out) ? STATUS_IO : STATUS_OK;
}

enum status table_add(struct table *t, const struct cell *cells)
{
    if (t->style.format == TABLE_ALIGNED) {
        keep_row(t, cells);
        if (t->kept_count == TABLE_ROWS_MEASURED * t->column_count)
            flush_kept(t);
        return table_status(t);
    }
    bool first = !t->begun;
    if (first)
        begin(t, cells);
    switch (t->style.format) {
    case TABLE_CSV:
        add_csv_row(t, cells);
        break;
    case TABLE_JSON:
        text_add(&t->line, first ? "\n" : ",\n");
        add_json_row(t, cells);
        break;
    case TABLE_NDJSON:
        add_json_row(t, cells);
        text_add(&t->line, "\n");
        break;
    case TABLE_MARKDOWN:
        add_markdown_row(t, cells);
        break;
    case TABLE_ALIGNED:
    case TABLE_HTML:
        break;
    }
    flush_line(t);
    return table_status(t);
}

uint64_t table_bytes(const struct table *t)
{
    return t->bytes;
}

enum status table_close(struct table *t)
{
    if (!t)
        return STATUS_NO_MEMORY;
    if (t->style.format == TABLE_ALIGNED) {
        flush_kept(t);
    } else {
        bool empty = !t->begun;
        if (empty)
            begin(t, NULL);
        if (t->style.format == TABLE_JSON)
            text_add(&t->line, empty ? "]\n" : "\n]\n");
        flush_line(t);
    }
    (void)fflush(t->out);
    enum status status = table_status(t);
    table_free(t);
    return status;
}
