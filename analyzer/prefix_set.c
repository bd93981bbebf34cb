/* SPDX-License-Identifier: Apache-2.0 */
#include "prefix_set.h"

#include "csv.h"
#include "prefix.h"
#include "whole_file.h"

#include <stdlib.h>

struct prefix_set {
    struct prefix_table table;
};

/* Adds every field of a list; false when one of them is no prefix. */
static bool add_list(struct prefixes *prefixes, const char *list, bool *ret_no_memory)
{
    struct bytes rest = { (const uint8_t *)list, strlen(list) };
    while (rest.len != 0) {
        char field[CSV_FIELD_SIZE];
        struct address first;
        unsigned bits;
        if (!csv_field(&rest, field) || !prefix_parse(field, &first, &bits))
            return false;
        if (!prefixes_add(prefixes, &first, bits, 0)) {
            *ret_no_memory = true;
            return false;
        }
    }
    return true;
}

/* Adds the first field of every line. A set that decides what is ours may not be read in part. */
static enum status add_lines(struct prefixes *prefixes, struct bytes text)
{
    bool first_line = true;
    text = csv_text(text);
    while (text.len != 0) {
        struct address first;
        unsigned bits;
        struct bytes line = csv_line(&text);
        enum prefix_line kind = prefix_take(&line, first_line, &first, &bits);
        first_line = first_line && kind == PREFIX_LINE_EMPTY;
        if (kind == PREFIX_LINE_BAD)
            return STATUS_REFUSED;
        if (kind == PREFIX_LINE_GOOD && !prefixes_add(prefixes, &first, bits, 0))
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static enum status read_set(struct prefixes *prefixes, const char *list_or_file)
{
    size_t before = prefixes->count;
    bool no_memory = false;
    if (add_list(prefixes, list_or_file, &no_memory))
        return STATUS_OK;
    if (no_memory)
        return STATUS_NO_MEMORY;
    prefixes->count = before;
    struct buffer content = { 0 };
    enum status status = whole_file_read(list_or_file, CSV_FILE_MAX, &content);
    if (status == STATUS_OK)
        status = add_lines(prefixes, (struct bytes){ content.at, content.len });
    buffer_done(&content);
    return status;
}

enum status prefix_set_open(const char *list_or_file, struct prefix_set **ret_set)
{
    struct prefixes prefixes = { 0 };
    struct prefix_set *s = calloc(1, sizeof *s);
    enum status status = s != NULL ? read_set(&prefixes, list_or_file) : STATUS_NO_MEMORY;
    if (status == STATUS_OK && !prefix_table_build(&prefixes, &s->table))
        status = STATUS_NO_MEMORY;
    prefixes_done(&prefixes);
    if (status != STATUS_OK) {
        free(s);
        return status;
    }
    *ret_set = s;
    return STATUS_OK;
}

bool prefix_set_contains(const struct prefix_set *s, const struct address *a)
{
    return prefix_table_find(&s->table, a) != PREFIX_NONE;
}

void prefix_set_close(struct prefix_set *s)
{
    if (s == NULL)
        return;
    prefix_table_done(&s->table);
    free(s);
}
