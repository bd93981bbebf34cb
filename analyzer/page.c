/* SPDX-License-Identifier: Apache-2.0 */
#include "page_blocks.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* ---- the model ---- */

struct bytes page_bytes(const struct page *p, struct page_span span)
{
    struct bytes content = { (const uint8_t *)p->content.at, p->content.len };
    return bytes_first(bytes_after(content, span.at), span.len);
}

static struct page_span keep(struct page *p, struct bytes b)
{
    struct page_span span = { p->content.len, b.len };
    text_add_bytes(&p->content, b);
    p->failed |= p->content.failed;
    return span;
}

static struct page_span keep_string(struct page *p, const char *string)
{
    return keep(p, text_bytes(string));
}

struct page *page_open(const char *title)
{
    struct page *p = calloc(1, sizeof *p);
    if (p)
        p->title = keep_string(p, title);
    return p;
}

static void table_free(struct page_table *t)
{
    if (!t)
        return;
    free(t->columns);
    free(t->cells);
    free(t);
}

void page_close(struct page *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->block_count; i++)
        table_free(p->blocks[i].table);
    free(p->blocks);
    text_done(&p->content);
    free(p);
}

/* Adds a block; NULL where nothing can be added any more. */
static struct page_block *add_block(struct page *p, enum block_kind kind)
{
    if (!p || p->failed)
        return NULL;
    if (p->block_count == p->block_capacity) {
        size_t capacity = p->block_capacity ? 2 * p->block_capacity : 16;
        struct page_block *blocks = reallocarray(p->blocks, capacity, sizeof *blocks);
        if (!blocks) {
            p->failed = true;
            return NULL;
        }
        p->blocks = blocks;
        p->block_capacity = capacity;
    }
    struct page_block *block = &p->blocks[p->block_count++];
    *block = (struct page_block){ .kind = kind };
    return block;
}

void page_heading(struct page *p, const char *text)
{
    struct page_block *block = add_block(p, BLOCK_HEADING);
    if (block)
        block->text = keep_string(p, text);
}

void page_command(struct page *p, const char *text)
{
    struct page_block *block = add_block(p, BLOCK_COMMAND);
    if (block)
        block->text = keep_string(p, text);
}

static struct page_span keep_format(struct page *p, const char *format, va_list arguments)
{
    char *text = NULL;
    int len = vasprintf(&text, format, arguments);
    if (len < 0) {
        p->failed = true;
        return (struct page_span){ 0 };
    }
    struct page_span span = keep_string(p, text);
    free(text);
    return span;
}

void page_text(struct page *p, const char *format, ...)
{
    struct page_block *block = add_block(p, BLOCK_TEXT);
    va_list arguments;
    va_start(arguments, format);
    if (block)
        block->text = keep_format(p, format, arguments);
    va_end(arguments);
}

void page_warning(struct page *p, const char *format, ...)
{
    struct page_block *block = add_block(p, BLOCK_WARNING);
    va_list arguments;
    va_start(arguments, format);
    if (block)
        block->text = keep_format(p, format, arguments);
    va_end(arguments);
}

void page_fact(struct page *p, const char *name, const char *format, ...)
{
    struct page_block *block = add_block(p, BLOCK_FACT);
    va_list arguments;
    va_start(arguments, format);
    if (block) {
        block->name = keep_string(p, name);
        block->text = keep_format(p, format, arguments);
    }
    va_end(arguments);
}

void page_table(struct page *p, const char *name, const struct page_column *columns, size_t count)
{
    assert(count > 0);
    struct page_block *block = add_block(p, BLOCK_TABLE);
    if (!block)
        return;
    struct page_table *table = block->table = calloc(1, sizeof *table);
    if (table)
        table->columns = calloc(count, sizeof *table->columns);
    if (!table || !table->columns) {
        p->failed = true;
        return;
    }
    block->name = keep_string(p, name);
    table->column_count = count;
    for (size_t i = 0; i < count; i++) {
        const char *title = columns[i].title ? columns[i].title : columns[i].name;
        table->columns[i] = (struct page_head){ .name = keep_string(p, columns[i].name),
                                                .title = keep_string(p, title),
                                                .kind = columns[i].kind };
    }
}

/* The table that was begun last; NULL where nothing can be added. */
static struct page_table *last_table(struct page *p)
{
    if (!p || p->failed)
        return NULL;
    assert(p->block_count > 0 && p->blocks[p->block_count - 1].table);
    return p->blocks[p->block_count - 1].table;
}

/* Adds an empty cell to the table that was begun last; NULL where nothing can be added. */
static struct page_cell *add_cell(struct page *p)
{
    struct page_table *t = last_table(p);
    if (!t)
        return NULL;
    if (t->cell_count == t->cell_capacity) {
        size_t capacity = t->cell_capacity ? 2 * t->cell_capacity : 64;
        struct page_cell *cells = reallocarray(t->cells, capacity, sizeof *cells);
        if (!cells) {
            p->failed = true;
            return NULL;
        }
        t->cells = cells;
        t->cell_capacity = capacity;
    }
    struct page_cell *cell = &t->cells[t->cell_count++];
    *cell = (struct page_cell){ .type = CELL_NULL };
    return cell;
}

void page_cell(struct page *p, struct cell value)
{
    struct page_cell *cell = add_cell(p);
    if (!cell)
        return;
    cell->type = value.type;
    cell->integer = value.integer;
    cell->real = value.real;
    if (value.type == CELL_TEXT || value.type == CELL_BLOB)
        cell->bytes = keep(p, value.bytes);
}

void page_rest(struct page *p, const char *format, ...)
{
    struct page_cell *cell = add_cell(p);
    va_list arguments;
    va_start(arguments, format);
    if (cell) {
        cell->is_rest = true;
        cell->bytes = keep_format(p, format, arguments);
    }
    va_end(arguments);
    while (p && !p->failed) {
        const struct page_table *t = p->blocks[p->block_count - 1].table;
        if (t->cell_count % t->column_count == 0)
            break;
        (void)add_cell(p);
    }
}

void page_draw(struct page *p, const struct page_picture *picture)
{
    struct page_table *t = last_table(p);
    if (!t)
        return;
    assert(picture->count > 0 && picture->first + picture->count <= t->column_count);
    assert(picture->kind != PAGE_RANGES || picture->count == 3);
    t->drawing = (struct page_drawing){ .kind = picture->kind,
                                        .title = keep_string(p, picture->title),
                                        .first = picture->first,
                                        .count = picture->count,
                                        .low_ns = picture->low_ns,
                                        .high_ns = picture->high_ns };
}

void page_draw_svg(struct page *p, const char *title, const struct text *svg)
{
    struct page_table *t = last_table(p);
    if (!t)
        return;
    p->failed |= svg->failed;
    t->drawing = (struct page_drawing){ .kind = PAGE_LINES,
                                        .title = keep_string(p, title),
                                        .count = 1,
                                        .svg = keep_string(p, text_string(svg)) };
}

bool page_is_figure(const struct page_table *t)
{
    return t->drawing.count > 0 && t->drawing.kind != PAGE_RANGES && t->drawing.kind != PAGE_STACKS;
}

bool page_has_bars_before(const struct page_table *t, size_t column)
{
    return t->drawing.count > 0 && !page_is_figure(t) && column == t->drawing.first;
}

double page_number(const struct page_cell *cell)
{
    if (cell->type == CELL_REAL)
        return cell->real;
    return cell->type == CELL_INTEGER ? (double)cell->integer : NAN;
}

size_t page_row_count(const struct page_table *t)
{
    return t->cell_count / t->column_count;
}

const struct page_cell *page_at(const struct page_table *t, size_t row, size_t column)
{
    return &t->cells[row * t->column_count + column];
}

bool page_is_number(enum page_kind kind)
{
    return kind == PAGE_COUNT || kind == PAGE_PERCENT || kind == PAGE_MS || kind == PAGE_NUMBER ||
           kind == PAGE_ID;
}

bool page_repeats(const struct page *p, const struct page_table *t, size_t row, size_t column)
{
    if (row == 0 || t->columns[column].kind != PAGE_GROUP)
        return false;
    for (size_t i = 0; i <= column; i++) {
        const struct page_cell *here = page_at(t, row, i), *above = page_at(t, row - 1, i);
        if (t->columns[i].kind == PAGE_GROUP &&
            (here->type != above->type ||
             !bytes_equal(page_bytes(p, here->bytes), page_bytes(p, above->bytes))))
            return false;
    }
    return true;
}

/* ---- cells ---- */

struct cell page_value(const struct page *p, const struct page_cell *cell)
{
    return (struct cell){ .type = cell->type,
                          .integer = cell->integer,
                          .real = cell->real,
                          .bytes = page_bytes(p, cell->bytes) };
}

/* Three digits that count, at most two decimals: 0.42, 9.87, 27.4, 164, 1,480. */
static void add_ms(struct text *out, double ns)
{
    double ms = ns / 1e6, size = fabs(ms);
    text_add_number(out, ms, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

static void add_percent(struct text *out, double share)
{
    double percent = 100 * share;
    text_addf(out, percent == 0 || percent == 100 ? "%.0f%%" : "%.1f%%", percent);
}

static void add_number_of(struct text *out, double value, enum page_kind kind)
{
    switch (kind) {
    case PAGE_MS:
        add_ms(out, value);
        break;
    case PAGE_PERCENT:
        add_percent(out, value);
        break;
    case PAGE_COUNT:
        text_add_number(out, value, 0);
        break;
    case PAGE_NUMBER:
        text_add_number(out, value, 1);
        break;
    case PAGE_WORD:
    case PAGE_GROUP:
    case PAGE_TIME:
    case PAGE_DIGEST:
    case PAGE_ID:
        text_add_real(out, value);
        break;
    }
}

static void add_integer_of(struct text *out, int64_t value, enum page_kind kind)
{
    if (kind == PAGE_COUNT)
        text_add_count(out, value);
    else if (kind == PAGE_MS || kind == PAGE_PERCENT || kind == PAGE_NUMBER)
        add_number_of(out, (double)value, kind);
    else
        text_addf(out, "%lld", (long long)value);
}

void page_add_cell(const struct page *p, const struct page_cell *cell, enum page_kind kind,
                   struct text *out)
{
    struct reader blob = reader_of(page_bytes(p, cell->bytes));
    switch (cell->type) {
    case CELL_NULL:
        text_add(out, "-");
        break;
    case CELL_INTEGER:
        add_integer_of(out, cell->integer, kind);
        break;
    case CELL_REAL:
        add_number_of(out, cell->real, kind);
        break;
    case CELL_TEXT:
        text_add_bytes(out, blob.rest);
        break;
    case CELL_BLOB:
        while (blob.rest.len > 0)
            text_addf(out, "%02x", reader_u8(&blob));
        break;
    }
}

/* ---- for programs ---- */

static enum status write_rows(const struct page *p, const struct page_table *t, struct table *table)
{
    struct cell *row = calloc(t->column_count, sizeof *row);
    enum status status = row ? STATUS_OK : STATUS_NO_MEMORY;
    for (size_t i = 0; status == STATUS_OK && i < page_row_count(t); i++) {
        for (size_t c = 0; c < t->column_count; c++)
            row[c] = page_value(p, page_at(t, i, c));
        status = table_add(table, row);
    }
    free(row);
    return status;
}

static enum status write_table(const struct page *p, const struct page_table *t,
                               struct table_style style, FILE *out)
{
    char **names = calloc(t->column_count, sizeof *names);
    bool whole = names != NULL;
    for (size_t i = 0; whole && i < t->column_count; i++) {
        struct bytes name = page_bytes(p, t->columns[i].name);
        names[i] = strndup((const char *)name.at, name.len);
        whole = names[i] != NULL;
    }
    struct table *table =
        whole ? table_open(out, style, (const char *const *)names, t->column_count) : NULL;
    enum status status = table ? write_rows(p, t, table) : STATUS_NO_MEMORY;
    enum status closed = table_close(table);
    for (size_t i = 0; names && i < t->column_count; i++)
        free(names[i]);
    free(names);
    return status == STATUS_OK ? closed : status;
}

static enum status write_first_table(const struct page *p, struct table_style style, FILE *out)
{
    for (size_t i = 0; i < p->block_count; i++) {
        if (p->blocks[i].table)
            return write_table(p, p->blocks[i].table, style, out);
    }
    return STATUS_OK;
}

static enum status write_string(const struct text *text, FILE *out)
{
    if (text->failed)
        return STATUS_NO_MEMORY;
    return fwrite(text_string(text), 1, text->len, out) == text->len ? STATUS_OK : STATUS_IO;
}

static void add_json_string(struct text *out, struct bytes b)
{
    text_add(out, "\"");
    text_add_json(out, b);
    text_add(out, "\"");
}

/* Adds "title" and "notes": what people read around the tables. */
static void add_json_notes(const struct page *p, struct text *out)
{
    text_add(out, "{\"title\":");
    add_json_string(out, page_bytes(p, p->title));
    text_add(out, ",\n\"notes\":[");
    bool first = true;
    for (size_t i = 0; i < p->block_count; i++) {
        const struct page_block *block = &p->blocks[i];
        if (block->kind != BLOCK_TEXT && block->kind != BLOCK_WARNING && block->kind != BLOCK_FACT)
            continue;
        text_add(out, first ? "\"" : ",\n\"");
        if (block->kind == BLOCK_FACT) {
            text_add_json(out, page_bytes(p, block->name));
            text_add(out, ": ");
        }
        text_add_json(out, page_bytes(p, block->text));
        text_add(out, "\"");
        first = false;
    }
    text_add(out, "]");
}

static enum status write_json(const struct page *p, struct table_style style, FILE *out)
{
    struct text text = { 0 };
    add_json_notes(p, &text);
    enum status status = write_string(&text, out);
    for (size_t i = 0; status == STATUS_OK && i < p->block_count; i++) {
        const struct page_block *block = &p->blocks[i];
        if (!block->table)
            continue;
        text_clear(&text);
        text_add(&text, ",\n");
        add_json_string(&text, page_bytes(p, block->name));
        text_add(&text, ":");
        status = write_string(&text, out);
        if (status == STATUS_OK)
            status = write_table(p, block->table, style, out);
    }
    text_clear(&text);
    text_add(&text, "}\n");
    if (status == STATUS_OK)
        status = write_string(&text, out);
    text_done(&text);
    return status;
}

/* ---- all ---- */

static enum status write_for_people(const struct page *p, struct table_style style, FILE *out)
{
    struct text text = { 0 };
    if (style.format == TABLE_HTML)
        page_put_html(p, &text);
    else if (style.format == TABLE_MARKDOWN)
        page_put_markdown(p, &text);
    else
        page_put_text(p, style, &text);
    enum status status = write_string(&text, out);
    text_done(&text);
    return status;
}

enum status page_write(const struct page *p, struct table_style style, FILE *out)
{
    if (!p || p->failed)
        return STATUS_NO_MEMORY;
    enum status status;
    if (style.format == TABLE_JSON)
        status = write_json(p, style, out);
    else if (style.format == TABLE_CSV || style.format == TABLE_NDJSON)
        status = write_first_table(p, style, out);
    else
        status = write_for_people(p, style, out);
    if (status == STATUS_OK && (fflush(out) != 0 || ferror(out)))
        status = STATUS_IO;
    return status;
}
