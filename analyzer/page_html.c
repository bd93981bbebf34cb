/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pages as one HTML file: no script, nothing fetched, and a content security policy that allows
 * neither, should a name from a capture ever slip through; it names the style by its hash.
 */
#include "page_blocks.h"
#include "page_style.h" /* generated */

static void put_head(const struct page *p, struct text *out)
{
    text_add(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                  "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                  "style-src 'sha256-" PAGE_STYLE_SHA256 "'; base-uri 'none'; "
                  "form-action 'none'\">\n"
                  "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                  "<meta name=\"color-scheme\" content=\"light dark\">\n"
                  "<meta name=\"referrer\" content=\"no-referrer\">\n<title>");
    text_add_html(out, page_bytes(p, p->title));
    text_add(out, "</title>\n<style>");
    for (size_t i = 0; i < PAGE_STYLE_LINES; i++)
        text_add(out, PAGE_STYLE[i]);
    text_add(out, "</style>\n</head>\n");
}

/* -- tables -- */

static void put_header(const struct page *p, const struct page_table *t, struct chart_scale scale,
                       struct text *out)
{
    text_add(out, "<thead><tr>");
    for (size_t i = 0; i < t->column_count; i++) {
        bool number = page_is_number(t->columns[i].kind);
        if (page_has_bars_before(t, i))
            page_put_bar_head(p, t, scale, out);
        text_add(out, number ? "<th scope=\"col\" class=\"number\">" : "<th scope=\"col\">");
        page_put_part_mark(t, i, out);
        text_add_html(out, page_bytes(p, t->columns[i].title));
        text_add(out, "</th>");
    }
    text_add(out, "</tr></thead>\n");
}

/* Rows from `row` on for which a group cell holds. */
static size_t group_rows(const struct page *p, const struct page_table *t, size_t row,
                         size_t column)
{
    size_t end = row + 1;
    while (end < page_row_count(t) && page_repeats(p, t, end, column))
        end++;
    return end - row;
}

static void put_group(const struct page *p, const struct page_table *t, size_t row, size_t column,
                      struct text *out)
{
    if (page_repeats(p, t, row, column))
        return;
    size_t rows = group_rows(p, t, row, column);
    if (rows > 1)
        text_addf(out, "<th scope=\"rowgroup\" rowspan=\"%zu\">", rows);
    else
        text_add(out, "<th scope=\"row\">");
    struct text value = { 0 };
    page_add_cell(p, page_at(t, row, column), t->columns[column].kind, &value);
    text_add_html(out, (struct bytes){ (const uint8_t *)text_string(&value), value.len });
    text_add(out, "</th>");
    out->failed |= value.failed;
    text_done(&value);
}

static const char *cell_tag(const struct page_cell *cell, enum page_kind kind)
{
    if (cell->type == CELL_NULL)
        return page_is_number(kind) ? "<td class=\"number null\">" : "<td class=\"null\">";
    return page_is_number(kind) ? "<td class=\"number\">" : "<td>";
}

static void put_cell(const struct page *p, const struct page_cell *cell, enum page_kind kind,
                     struct text *out)
{
    struct text value = { 0 };
    page_add_cell(p, cell, kind, &value);
    text_add(out, cell_tag(cell, kind));
    text_add_html(out, (struct bytes){ (const uint8_t *)text_string(&value), value.len });
    text_add(out, "</td>");
    out->failed |= value.failed;
    text_done(&value);
}

/* Whether the column of bars lies behind the beginning of column i. */
static bool has_bars_from(const struct page_table *t, size_t i)
{
    return t->drawing.count > 0 && !page_is_figure(t) && t->drawing.first >= i;
}

static void put_row(const struct page *p, const struct page_table *t, size_t row,
                    struct chart_scale scale, struct text *out)
{
    bool new_group = t->columns[0].kind == PAGE_GROUP && !page_repeats(p, t, row, 0);
    text_add(out, new_group ? "<tr class=\"group\">" : "<tr>");
    for (size_t i = 0; i < t->column_count; i++) {
        const struct page_cell *cell = page_at(t, row, i);
        if (cell->is_rest) {
            size_t columns = t->column_count - i + has_bars_from(t, i);
            text_addf(out, "<td class=\"rest\" colspan=\"%zu\">", columns);
            text_add_html(out, page_bytes(p, cell->bytes));
            text_add(out, "</td>");
            break;
        }
        if (page_has_bars_before(t, i))
            page_put_bar(p, t, row, scale, out);
        if (t->columns[i].kind == PAGE_GROUP)
            put_group(p, t, row, i, out);
        else
            put_cell(p, cell, t->columns[i].kind, out);
    }
    text_add(out, "</tr>\n");
}

/* A table may be wider than the window: then it alone is moved, also with the keyboard. */
static void put_rows(const struct page *p, const struct page_block *block, struct text *out)
{
    const struct page_table *t = block->table;
    text_add(out, "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"");
    text_add_html(out, page_bytes(p, block->name));
    text_add(out, "\"><table>\n");
    struct chart_scale scale = page_bar_scale(t);
    put_header(p, t, scale, out);
    text_add(out, "<tbody>\n");
    for (size_t row = 0; row < page_row_count(t); row++)
        put_row(p, t, row, scale, out);
    text_add(out, "</tbody></table></div>\n");
}

static bool is_figure(const struct page *p, size_t i)
{
    return i < p->block_count && p->blocks[i].table && page_is_figure(p->blocks[i].table);
}

/* A picture that was drawn elsewhere has a width of its own, perhaps more than the window. */
static void put_picture(const struct page *p, const struct page_table *t, struct text *out)
{
    if (t->drawing.svg.len == 0) {
        page_put_figure(p, t, out);
        return;
    }
    text_add(out, "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"");
    text_add_html(out, page_bytes(p, t->drawing.title));
    text_add(out, "\">\n");
    text_add_bytes(out, page_bytes(p, t->drawing.svg));
    text_add(out, "</div>");
}

static void put_figure(const struct page *p, size_t i, struct text *out)
{
    text_add(out, i == 0 || !is_figure(p, i - 1) ? "<div class=\"panels\">\n" : "");
    text_add(out, "<figure><figcaption>");
    text_add_html(out, page_bytes(p, p->blocks[i].table->drawing.title));
    text_add(out, "</figcaption>\n");
    put_picture(p, p->blocks[i].table, out);
    text_add(out, "\n<details><summary>as a table</summary>\n");
    put_rows(p, &p->blocks[i], out);
    text_add(out, "</details></figure>\n");
    text_add(out, is_figure(p, i + 1) ? "" : "</div>\n");
}

static void put_table(const struct page *p, size_t i, struct text *out)
{
    if (is_figure(p, i))
        put_figure(p, i, out);
    else if (page_row_count(p->blocks[i].table) == 0)
        text_add(out, "<p class=\"none\">none</p>\n");
    else
        put_rows(p, &p->blocks[i], out);
}

/* -- blocks -- */

static void put_element(const char *begin, struct bytes words, const char *end, struct text *out)
{
    text_add(out, begin);
    text_add_html(out, words);
    text_add(out, end);
}

static void put_fact(const struct page *p, size_t i, struct text *out)
{
    const struct page_block *block = &p->blocks[i];
    bool first = i == 0 || p->blocks[i - 1].kind != BLOCK_FACT;
    bool last = i + 1 == p->block_count || p->blocks[i + 1].kind != BLOCK_FACT;
    text_add(out, first ? "<dl>\n" : "");
    put_element("<dt>", page_bytes(p, block->name), "</dt>", out);
    put_element("<dd>", page_bytes(p, block->text), "</dd>\n", out);
    text_add(out, last ? "</dl>\n" : "");
}

static void put_block(const struct page *p, size_t i, struct text *out)
{
    const struct page_block *block = &p->blocks[i];
    struct bytes text = page_bytes(p, block->text);
    switch (block->kind) {
    case BLOCK_HEADING:
        put_element("<h2>", text, "</h2>\n", out);
        break;
    case BLOCK_TEXT:
        put_element("<p>", text, "</p>\n", out);
        break;
    case BLOCK_WARNING:
        put_element("<p class=\"warning\"><strong>Note</strong> ", text, "</p>\n", out);
        break;
    case BLOCK_COMMAND:
        put_element("<pre><code>", text, "</code></pre>\n", out);
        break;
    case BLOCK_FACT:
        put_fact(p, i, out);
        break;
    case BLOCK_TABLE:
        put_table(p, i, out);
        break;
    }
}

void page_put_html(const struct page *p, struct text *out)
{
    put_head(p, out);
    put_element("<body>\n<main>\n<h1>", page_bytes(p, p->title), "</h1>\n", out);
    for (size_t i = 0; i < p->block_count; i++)
        put_block(p, i, out);
    text_add(out, "</main>\n<footer>firstflight " FIRSTFLIGHT_VERSION "</footer>\n"
                  "</body>\n</html>\n");
}
