/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PAGE_QUERY_H
#define PAGE_QUERY_H
/* Tables of a page that come from SQL over a selection of flows. */
#include "page.h"
#include "selection.h"

/* Rows of one table on a page; the rest is counted, and said. */
enum { PAGE_QUERY_ROWS_MAX = 100000 };

struct page_query {
    const char *name;    /* of the table */
    const char *heading; /* above it; NULL: none */
    /*
     * SQL over the relations of selection_query(); {by} stands for the --by columns, {by,} for the
     * same with a comma behind. It may go on with further relations: ", name AS (...) SELECT".
     */
    const char *sql;
    bool by; /* the result begins with the --by columns, for which nothing stands in `columns` */
    const struct page_column *columns;
    size_t column_count;
};

/* A table whose columns are an array. */
#define PAGE_QUERY(name, heading, by, sql, columns)                                                \
    {                                                                                              \
        name, heading, sql, by, columns, sizeof(columns) / sizeof *(columns)                       \
    }

/*
 * Keeps the rows of such SQL as a relation of that name, which later queries of the selection can
 * read. rules: bound to :rules; NULL: not bound. On failure error has the text.
 */
MUST_USE enum status page_keep(const struct selection *s, const char *name, const char *sql,
                               const char *rules, struct text *error);

/* Adds a table of all rows. On failure error has the text. */
MUST_USE enum status page_add_query(struct page *p, const struct selection *s,
                                    const struct page_query *q, struct text *error);

/* Adds the fact "NAME  96,118 WORDS"; nothing when there are none. */
void page_add_count(struct page *p, const char *name, int64_t count, const char *words);

/* Reads the first row of such SQL as integers; NULL gives 0. */
MUST_USE enum status page_read_numbers(const struct selection *s, const char *sql,
                                       int64_t *ret_numbers, size_t count, struct text *error);

/*
 * Reads the first row of such SQL: a word, and a count beside it. The word is empty where there is
 * no row or it is NULL.
 */
MUST_USE enum status page_read_word(const struct selection *s, const char *sql,
                                    struct text *ret_word, int64_t *ret_count, struct text *error);

/* Whether a name is one that a shell and SQL read as itself, so that it can stand in a command. */
bool page_is_plain_name(const char *name);

#endif
