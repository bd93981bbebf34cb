/* SPDX-License-Identifier: Apache-2.0 */
#include "sites.h"

#include "csv.h"
#include "whole_file.h"

#include <stdlib.h>

struct site {
    char name[CSV_FIELD_SIZE], region[CSV_FIELD_SIZE];
    size_t order;
};

struct sites {
    struct site *list; /* by name, of equal ones the last first */
    size_t count, capacity;
};

static int compare(const void *left, const void *right)
{
    const struct site *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order != 0 ? order : a->order > b->order ? -1 : 1;
}

static bool add(struct sites *s, const struct site *site)
{
    if (s->count == s->capacity) {
        size_t capacity = s->capacity == 0 ? 64 : 2 * s->capacity;
        struct site *grown = realloc(s->list, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        s->list = grown;
        s->capacity = capacity;
    }
    s->list[s->count] = *site;
    s->list[s->count].order = s->count;
    s->count++;
    return true;
}

/* STATUS_END for a line that names no site: empty, a comment or the header. */
static enum status read_line(struct bytes line, size_t number, struct site *ret_site)
{
    struct site site = { 0 };
    bool good = csv_field(&line, site.name);
    bool has_more = line.len > 0;
    good = csv_field(&line, site.region) && good;
    if (good && site.name[0] == '\0' && !has_more)
        return STATUS_END;
    if (good && number == 1 && strcmp(site.name, "site") == 0 && strcmp(site.region, "region") == 0)
        return STATUS_END;
    if (!good || site.name[0] == '\0' || line.len > 0)
        return STATUS_REFUSED;
    *ret_site = site;
    return STATUS_OK;
}

enum status sites_read(struct bytes text, struct sites **ret_sites, size_t *ret_line)
{
    struct sites *s = calloc(1, sizeof *s);
    enum status status = s == NULL ? STATUS_NO_MEMORY : STATUS_OK;
    text = csv_text(text);
    for (size_t number = 1; status == STATUS_OK && text.len > 0; number++) {
        struct site site;
        *ret_line = number;
        status = read_line(csv_line(&text), number, &site);
        if (status == STATUS_OK && !add(s, &site))
            status = STATUS_NO_MEMORY;
        if (status == STATUS_END)
            status = STATUS_OK;
    }
    if (status != STATUS_OK) {
        sites_close(s);
        return status;
    }
    if (s->count > 0)
        qsort(s->list, s->count, sizeof *s->list, compare);
    *ret_sites = s;
    return STATUS_OK;
}

enum status sites_open(const char *path, struct sites **ret_sites, size_t *ret_line)
{
    struct buffer content = { 0 };
    *ret_line = 0;
    enum status status = whole_file_read(path, CSV_FILE_MAX, &content);
    if (status == STATUS_OK)
        status = sites_read((struct bytes){ content.at, content.len }, ret_sites, ret_line);
    buffer_done(&content);
    return status;
}

void sites_close(struct sites *s)
{
    if (s == NULL)
        return;
    free(s->list);
    free(s);
}

bool sites_find(const struct sites *s, const char *site, const char **ret_region)
{
    size_t low = 0, high = s == NULL || site == NULL ? 0 : s->count;
    while (low < high) { /* the first of that name */
        size_t middle = low + (high - low) / 2;
        if (strcmp(s->list[middle].name, site) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    bool found =
        s != NULL && site != NULL && low < s->count && strcmp(s->list[low].name, site) == 0;
    if (found)
        *ret_region = s->list[low].region[0] != '\0' ? s->list[low].region : NULL;
    return found;
}
