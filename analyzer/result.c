/* SPDX-License-Identifier: Apache-2.0 */
#include "result.h"

#include <stdlib.h>

static struct table *open_table(struct query *q, struct table_style style, FILE *out)
{
    size_t count = query_column_count(q);
    const char **names = calloc(count, sizeof *names);
    bool whole = names != NULL;
    for (size_t i = 0; whole && i < count; i++) {
        names[i] = query_column_name(q, i);
        whole = names[i] != NULL;
    }
    struct table *table = whole ? table_open(out, style, names, count) : NULL;
    free(names);
    return table;
}

static enum status write_rows(struct query *q, struct table *table, struct cell *row)
{
    size_t count = query_column_count(q);
    for (;;) {
        enum status status = query_next(q);
        if (status != STATUS_OK)
            return status == STATUS_END ? STATUS_OK : status;
        for (size_t i = 0; i < count; i++)
            row[i] = query_cell(q, i);
        status = table_add(table, row);
        if (status != STATUS_OK)
            return status;
    }
}

enum status result_write(struct query *q, struct table_style style, FILE *out)
{
    struct table *table = open_table(q, style, out);
    struct cell *row = calloc(query_column_count(q), sizeof *row);
    enum status status = table && row ? write_rows(q, table, row) : STATUS_NO_MEMORY;
    enum status closed = table_close(table);
    free(row);
    return status == STATUS_OK ? closed : status;
}

enum status result_write_text(const struct text *page, FILE *out)
{
    if (page->failed)
        return STATUS_NO_MEMORY;
    bool written = fwrite(text_string(page), 1, page->len, out) == page->len;
    return written && fflush(out) == 0 ? STATUS_OK : STATUS_IO;
}

enum status result_end(enum status status, struct database *database, FILE *out, struct text *error)
{
    if (status == STATUS_OK || error->len > 0)
        return status;
    if (status == STATUS_NO_MEMORY)
        text_add(error, "out of memory");
    else if (ferror(out))
        text_add(error, "the output cannot be written");
    else
        text_add(error, database_error(database));
    return status;
}
