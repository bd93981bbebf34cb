/* SPDX-License-Identifier: Apache-2.0 */
/* Pages as lines: for a terminal, and as Markdown. */
#include "page_blocks.h"

#include <assert.h>
#include <stdlib.h>

/* ---- aligned ---- */

struct lines {
    const struct page *page;
    struct table_style style;
    size_t width; /* of sentences */
    struct text *out;
};

/* Adds text of any origin, broken at spaces, behind a heading. */
static void put_wrapped(const struct lines *l, const char *heading, struct bytes words)
{
    struct text safe = { 0 };
    text_add_safe(&safe, words, l->style.utf8);
    text_add_wrapped(l->out, heading, text_bytes(text_string(&safe)), l->width);
    l->out->failed |= safe.failed;
    text_done(&safe);
}

static void put_command(const struct lines *l, struct bytes command)
{
    text_add(l->out, "  ");
    text_add_safe(l->out, command, l->style.utf8);
    text_add(l->out, "\n");
}

/* Facts that follow each other have their names in one column. */
static size_t fact_width(const struct page *p, size_t i)
{
    size_t widest = 0;
    while (i > 0 && p->blocks[i - 1].kind == BLOCK_FACT)
        i--;
    for (; i < p->block_count && p->blocks[i].kind == BLOCK_FACT; i++) {
        size_t width = text_width(page_bytes(p, p->blocks[i].name));
        widest = width > widest ? width : widest;
    }
    return widest;
}

static void put_fact(const struct lines *l, size_t i)
{
    const struct page_block *block = &l->page->blocks[i];
    struct text name = { 0 };
    text_add_safe(&name, page_bytes(l->page, block->name), false);
    size_t width = fact_width(l->page, i) + 3;
    text_add_repeated(&name, " ", width > name.len ? width - name.len : 1);
    put_wrapped(l, text_string(&name), page_bytes(l->page, block->text));
    l->out->failed |= name.failed;
    text_done(&name);
}

enum { DAY_LEN = 10 };

/* "2026-06-02" when all times of the table lie on that day; empty otherwise. */
static struct bytes day_of(const struct page *p, const struct page_table *t)
{
    struct bytes day = { 0 };
    for (size_t i = 0; i < page_row_count(t) * t->column_count; i++) {
        size_t row = i / t->column_count, column = i % t->column_count;
        const struct page_cell *cell = page_at(t, row, column);
        struct bytes time = page_bytes(p, cell->bytes);
        if (t->columns[column].kind != PAGE_TIME || cell->type != CELL_TEXT)
            continue;
        if (time.len <= DAY_LEN || bytes_first(bytes_after(time, DAY_LEN), 1).at[0] != 'T' ||
            (day.len > 0 && !bytes_equal(day, bytes_first(time, DAY_LEN))))
            return (struct bytes){ 0 };
        day = bytes_first(time, DAY_LEN);
    }
    return day;
}

/* "14:03:11" of "2026-06-02T14:03:11Z", all of which is UTC. */
static void add_time_of_day(struct bytes time, struct text *out)
{
    struct bytes clock = bytes_after(time, DAY_LEN + 1);
    bool has_zone = clock.len > 0 && bytes_after(clock, clock.len - 1).at[0] == 'Z';
    text_add_bytes(out, bytes_first(clock, clock.len - has_zone));
}

/* A cell as it stands in a column: shorter than alone where nothing is lost to the eye. */
static void add_short_cell(const struct page *p, const struct page_cell *cell, enum page_kind kind,
                           struct bytes day, struct text *out)
{
    struct bytes value = page_bytes(p, cell->bytes);
    bool is_text = cell->type == CELL_TEXT;
    if (is_text && kind == PAGE_TIME && day.len > 0)
        add_time_of_day(value, out);
    else if (is_text && kind == PAGE_DIGEST)
        text_add_digest(out, value);
    else
        page_add_cell(p, cell, kind, out);
}

static void add_grid_cell(const struct page *p, const struct page_table *t, size_t row,
                          size_t column, struct bytes day, struct grid *g)
{
    struct text cell = { 0 };
    if (!page_repeats(p, t, row, column))
        add_short_cell(p, page_at(t, row, column), t->columns[column].kind, day, &cell);
    g->failed |= cell.failed;
    grid_add(g, (struct bytes){ (const uint8_t *)text_string(&cell), cell.len });
    text_done(&cell);
}

static void add_grid_rest(const struct page *p, const struct page_cell *rest, struct grid *g)
{
    struct text words = { 0 };
    text_add_bytes(&words, page_bytes(p, rest->bytes));
    g->failed |= words.failed;
    grid_add_to_the_end(g, text_string(&words));
    text_done(&words);
}

static void fill_grid(const struct page *p, const struct page_table *t, struct grid *g)
{
    struct bytes day = day_of(p, t);
    for (size_t i = 0; i < t->column_count; i++)
        grid_add(g, page_bytes(p, t->columns[i].title));
    for (size_t row = 0; row < page_row_count(t); row++) {
        for (size_t i = 0; i < t->column_count; i++) {
            if (page_at(t, row, i)->is_rest) {
                add_grid_rest(p, page_at(t, row, i), g);
                break;
            }
            add_grid_cell(p, t, row, i, day, g);
        }
    }
}

/* A line for each cell, where the rows of a table are too wide for the terminal. */
static void put_one_per_line(const struct lines *l, const struct page_table *t)
{
    size_t widest = 0;
    for (size_t i = 0; i < t->column_count; i++) {
        size_t width = text_width(page_bytes(l->page, t->columns[i].title));
        widest = width > widest ? width : widest;
    }
    for (size_t row = 0; row < page_row_count(t); row++) {
        text_add(l->out, row > 0 ? "\n" : "");
        for (size_t i = 0; i < t->column_count; i++) {
            const struct page_cell *cell = page_at(t, row, i);
            struct bytes title = page_bytes(l->page, t->columns[i].title);
            struct text value = { 0 };
            text_add_safe(l->out, title, l->style.utf8);
            text_add_repeated(l->out, " ", widest - text_width(title) + 2);
            if (cell->is_rest)
                text_add_bytes(&value, page_bytes(l->page, cell->bytes));
            else
                page_add_cell(l->page, cell, t->columns[i].kind, &value);
            text_add_safe(l->out, text_bytes(text_string(&value)), l->style.utf8);
            text_add(l->out, "\n");
            l->out->failed |= value.failed;
            text_done(&value);
            if (cell->is_rest)
                break;
        }
    }
}

static void put_table(const struct lines *l, const struct page_table *t)
{
    if (page_row_count(t) == 0) {
        text_add(l->out, "none\n");
        return;
    }
    enum align *align = calloc(t->column_count, sizeof *align);
    if (!align) {
        l->out->failed = true;
        return;
    }
    for (size_t i = 0; i < t->column_count; i++)
        align[i] = page_is_number(t->columns[i].kind) ? ALIGN_RIGHT : ALIGN_LEFT;
    struct grid g = grid_of(t->column_count, align, l->style.utf8);
    fill_grid(l->page, t, &g);
    if (!grid_write(&g, l->style.width, l->out))
        put_one_per_line(l, t);
    grid_done(&g);
    free(align);
}

static void put_block(const struct lines *l, size_t i)
{
    const struct page_block *block = &l->page->blocks[i];
    enum block_kind before = i > 0 ? l->page->blocks[i - 1].kind : BLOCK_TEXT;
    struct bytes text = page_bytes(l->page, block->text);
    switch (block->kind) {
    case BLOCK_HEADING:
        text_add(l->out, "\n");
        put_wrapped(l, "", text);
        break;
    case BLOCK_TEXT:
        put_wrapped(l, "", text);
        break;
    case BLOCK_WARNING:
        put_wrapped(l, "! ", text);
        break;
    case BLOCK_COMMAND:
        put_command(l, text);
        break;
    case BLOCK_FACT:
        text_add(l->out, before != BLOCK_FACT ? "\n" : "");
        put_fact(l, i);
        break;
    case BLOCK_TABLE:
        if (page_is_figure(block->table))
            break;
        text_add(l->out, before != BLOCK_HEADING ? "\n" : "");
        put_table(l, block->table);
        break;
    }
}

void page_put_text(const struct page *p, struct table_style style, struct text *out)
{
    struct lines l = {
        .page = p, .style = style, .width = style.width > 0 ? style.width : PAGE_WIDTH, .out = out
    };
    put_wrapped(&l, "", page_bytes(p, p->title));
    for (size_t i = 0; i < p->block_count; i++)
        put_block(&l, i);
}

/* ---- Markdown ---- */

static void put_markdown_row(const struct page *p, const struct page_table *t, size_t row,
                             struct text *out)
{
    bool at_rest = false;
    for (size_t i = 0; i < t->column_count; i++) {
        const struct page_cell *cell = page_at(t, row, i);
        struct text value = { 0 };
        if (cell->is_rest)
            text_add_bytes(&value, page_bytes(p, cell->bytes));
        else if (!at_rest && !page_repeats(p, t, row, i))
            page_add_cell(p, cell, t->columns[i].kind, &value);
        at_rest |= cell->is_rest;
        text_add(out, "| ");
        text_add_markdown(out, (struct bytes){ (const uint8_t *)text_string(&value), value.len });
        text_add(out, " ");
        out->failed |= value.failed;
        text_done(&value);
    }
    text_add(out, "|\n");
}

static void put_markdown_table(const struct page *p, const struct page_table *t, struct text *out)
{
    for (size_t i = 0; i < t->column_count; i++) {
        text_add(out, "| ");
        text_add_markdown(out, page_bytes(p, t->columns[i].title));
        text_add(out, " ");
    }
    text_add(out, "|\n");
    for (size_t i = 0; i < t->column_count; i++)
        text_add(out, page_is_number(t->columns[i].kind) ? "| ---: " : "| --- ");
    text_add(out, "|\n");
    for (size_t row = 0; row < page_row_count(t); row++)
        put_markdown_row(p, t, row, out);
}

/* Behind four spaces nothing is markup. */
static void put_markdown_command(const struct page *p, const struct page_block *block,
                                 struct text *out)
{
    text_add(out, "    ");
    text_add_safe(out, page_bytes(p, block->text), true);
    text_add(out, "\n");
}

static void put_markdown_block(const struct page *p, const struct page_block *block,
                               struct text *out)
{
    static const char *const begins[] = {
        [BLOCK_HEADING] = "## ",
        [BLOCK_TEXT] = "",
        [BLOCK_WARNING] = "**!** ",
        [BLOCK_FACT] = "- ",
    };
    if (block->kind == BLOCK_TABLE) {
        assert(block->table != NULL);
        put_markdown_table(p, block->table, out);
    } else if (block->kind == BLOCK_COMMAND) {
        put_markdown_command(p, block, out);
    } else {
        text_add(out, begins[block->kind]);
        if (block->kind == BLOCK_FACT) {
            text_add_markdown(out, page_bytes(p, block->name));
            text_add(out, ": ");
        }
        text_add_markdown(out, page_bytes(p, block->text));
        text_add(out, "\n");
    }
}

void page_put_markdown(const struct page *p, struct text *out)
{
    text_add(out, "# ");
    text_add_markdown(out, page_bytes(p, p->title));
    text_add(out, "\n");
    for (size_t i = 0; i < p->block_count; i++) {
        bool in_list =
            i > 0 && p->blocks[i].kind == BLOCK_FACT && p->blocks[i - 1].kind == BLOCK_FACT;
        if (p->blocks[i].table && page_is_figure(p->blocks[i].table))
            continue;
        text_add(out, in_list ? "" : "\n");
        put_markdown_block(p, &p->blocks[i], out);
    }
}
