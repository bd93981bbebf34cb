/* SPDX-License-Identifier: Apache-2.0 */
#include "words.h"

#include "hash.h"

#include <stdlib.h>

static bool equal(const struct cell *a, const struct cell *b)
{
    if (a->type != b->type || a->bytes.len != b->bytes.len || a->integer != b->integer)
        return false;
    if (a->type == CELL_REAL)
        return !(a->real < b->real) && !(a->real > b->real);
    return a->bytes.len == 0 || memcmp(a->bytes.at, b->bytes.at, a->bytes.len) == 0;
}

static uint64_t hash_of(const struct cell *c)
{
    struct bytes number = { (const uint8_t *)&c->integer, sizeof c->integer };
    if (c->type == CELL_REAL)
        number = (struct bytes){ (const uint8_t *)&c->real, sizeof c->real };
    return hash_table(c->bytes.len > 0 ? c->bytes : number, (uint64_t)c->type);
}

/* The slot that holds the value, or the free one where it belongs. */
static uint32_t *slot_of(const struct words *w, const struct cell *value)
{
    size_t mask = w->slot_count - 1, i = (size_t)hash_of(value) & mask;
    while (w->slots[i] != 0 && !equal(&w->at[w->slots[i] - 1], value))
        i = (i + 1) & mask;
    return &w->slots[i];
}

static enum status grow(struct words *w)
{
    size_t capacity = w->capacity ? 2 * w->capacity : 64, slot_count = 2 * capacity;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    struct cell *at = slots ? reallocarray(w->at, capacity, sizeof *at) : NULL;
    if (!at) {
        free(slots);
        return STATUS_NO_MEMORY;
    }
    free(w->slots);
    w->at = at;
    w->slots = slots;
    w->capacity = capacity;
    w->slot_count = slot_count;
    for (size_t i = 0; i < w->count; i++)
        *slot_of(w, &w->at[i]) = (uint32_t)(i + 1);
    return STATUS_OK;
}

enum status words_add(struct words *w, struct cell value, uint32_t *ret_number)
{
    if (w->count == w->capacity) {
        enum status status = grow(w);
        if (status != STATUS_OK)
            return status;
    }
    uint32_t *slot = slot_of(w, &value);
    if (*slot == 0) {
        uint8_t *copy = value.bytes.len > 0 ? malloc(value.bytes.len) : NULL;
        if (value.bytes.len > 0 && !copy)
            return STATUS_NO_MEMORY;
        if (copy)
            memcpy(copy, value.bytes.at, value.bytes.len);
        value.bytes.at = copy;
        w->at[w->count++] = value;
        *slot = (uint32_t)w->count;
    }
    *ret_number = *slot - 1;
    return STATUS_OK;
}

void words_done(struct words *w)
{
    for (size_t i = 0; i < w->count; i++)
        free((void *)w->at[i].bytes.at);
    free(w->at);
    free(w->slots);
    *w = (struct words){ 0 };
}

/* Whether text means nothing to a shell inside of "", or to SQL inside of '', but itself. */
static bool is_plain(struct bytes text)
{
    static const char PLAIN[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/, ";
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] == '\0' || !strchr(PLAIN, text.at[i]))
            return false;
    }
    return true;
}

void word_add_condition(const char *column, struct cell value, struct text *sql)
{
    text_addf(sql, "%s ", column);
    switch (value.type) {
    case CELL_NULL:
        text_add(sql, "IS NULL");
        return;
    case CELL_INTEGER:
        text_addf(sql, "= %lld", (long long)value.integer);
        return;
    case CELL_REAL:
        text_add(sql, "= ");
        text_add_real(sql, value.real);
        return;
    case CELL_TEXT:
    case CELL_BLOB:
        break;
    }
    if (value.type == CELL_TEXT && is_plain(value.bytes)) {
        text_add(sql, "= '");
        text_add_bytes(sql, value.bytes);
        text_add(sql, "'");
        return;
    }
    text_add(sql, value.type == CELL_TEXT ? "= CAST(x'" : "= x'");
    for (size_t i = 0; i < value.bytes.len; i++)
        text_addf(sql, "%02x", value.bytes.at[i]);
    text_add(sql, value.type == CELL_TEXT ? "' AS TEXT)" : "'");
}

void word_add_name(struct cell value, struct text *t)
{
    switch (value.type) {
    case CELL_NULL:
        text_add(t, "-");
        return;
    case CELL_INTEGER:
        text_addf(t, "%lld", (long long)value.integer);
        return;
    case CELL_REAL:
        text_add_real(t, value.real);
        return;
    case CELL_TEXT:
    case CELL_BLOB:
        text_add_safe(t, value.bytes, true);
        return;
    }
}
