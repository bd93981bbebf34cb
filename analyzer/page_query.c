/* SPDX-License-Identifier: Apache-2.0 */
#include "page_query.h"

#include <stdlib.h>

static enum status open_query(const struct selection *s, const char *sql, struct query **ret_query,
                              struct text *error)
{
    struct text whole = { 0 };
    selection_add_sql(s, sql, &whole);
    enum status status =
        whole.failed ? STATUS_NO_MEMORY : selection_query(s, text_string(&whole), ret_query, error);
    text_done(&whole);
    return status;
}

enum status page_keep(const struct selection *s, const char *name, const char *sql,
                      const char *rules, struct text *error)
{
    struct text whole = { 0 };
    selection_add_sql(s, sql, &whole);
    struct query *q = NULL;
    enum status status = whole.failed
                             ? STATUS_NO_MEMORY
                             : selection_query_keeping(s, name, text_string(&whole), &q, error);
    text_done(&whole);
    if (status == STATUS_OK && rules)
        status = query_bind_text(q, ":rules", text_bytes(rules));
    if (status == STATUS_OK)
        status = selection_next(s, q, error);
    query_close(q);
    return status == STATUS_END ? STATUS_OK : status;
}

/* "client region" of client_region; the caller frees it. */
static char *title_of(const char *column)
{
    char *title = strdup(strcmp(column, "client_region") == 0 ? "region" : column);
    for (char *c = title; c && *c; c++)
        *c = *c == '_' ? ' ' : *c;
    return title;
}

static enum status start_table(struct page *p, const struct selection *s,
                               const struct page_query *q)
{
    size_t by_count = q->by ? s->by_count : 0;
    struct page_column *columns = calloc(by_count + q->column_count, sizeof *columns);
    char *titles[SELECTION_BY_MAX] = { NULL };
    bool whole = columns != NULL;
    for (size_t i = 0; whole && i < by_count; i++) {
        titles[i] = title_of(s->by[i]);
        columns[i] = (struct page_column){ s->by[i], titles[i], PAGE_WORD };
        whole = titles[i] != NULL;
    }
    if (whole) {
        if (q->heading)
            page_heading(p, q->heading);
        memcpy(columns + by_count, q->columns, q->column_count * sizeof *columns);
        page_table(p, q->name, columns, by_count + q->column_count);
    }
    for (size_t i = 0; i < by_count; i++)
        free(titles[i]);
    free(columns);
    return whole ? STATUS_OK : STATUS_NO_MEMORY;
}

enum status page_add_query(struct page *p, const struct selection *s, const struct page_query *q,
                           struct text *error)
{
    struct query *query = NULL;
    size_t rows = 0;
    enum status status = open_query(s, q->sql, &query, error);
    if (status == STATUS_OK)
        status = start_table(p, s, q);
    while (status == STATUS_OK && (status = selection_next(s, query, error)) == STATUS_OK) {
        for (size_t i = 0; rows < PAGE_QUERY_ROWS_MAX && i < query_column_count(query); i++)
            page_cell(p, query_cell(query, i));
        rows++;
    }
    query_close(query);
    if (status != STATUS_END)
        return status;
    if (rows > PAGE_QUERY_ROWS_MAX)
        page_warning(p, "%zu more rows are left out.", rows - PAGE_QUERY_ROWS_MAX);
    return STATUS_OK;
}

enum status page_read_numbers(const struct selection *s, const char *sql, int64_t *ret_numbers,
                              size_t count, struct text *error)
{
    struct query *q = NULL;
    enum status status = open_query(s, sql, &q, error);
    if (status == STATUS_OK)
        status = selection_next(s, q, error);
    for (size_t i = 0; i < count && status == STATUS_OK; i++)
        ret_numbers[i] = query_cell(q, i).integer;
    query_close(q);
    return status;
}

enum status page_read_word(const struct selection *s, const char *sql, struct text *ret_word,
                           int64_t *ret_count, struct text *error)
{
    struct query *q = NULL;
    enum status status = open_query(s, sql, &q, error);
    if (status == STATUS_OK)
        status = selection_next(s, q, error);
    text_clear(ret_word);
    *ret_count = 0;
    if (status == STATUS_OK) {
        struct cell word = query_cell(q, 0);
        if (word.type == CELL_TEXT)
            text_add_bytes(ret_word, word.bytes);
        *ret_count = query_cell(q, 1).integer;
    }
    query_close(q);
    return status == STATUS_END ? STATUS_OK : status;
}

bool page_is_plain_name(const char *name)
{
    static const char PLAIN[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/";
    return *name != '\0' && name[strspn(name, PLAIN)] == '\0';
}

void page_add_count(struct page *p, const char *name, int64_t count, const char *words)
{
    struct text number = { 0 };
    text_add_count(&number, count);
    if (count > 0)
        page_fact(p, name, "%s %s", text_string(&number), words);
    text_done(&number);
}
