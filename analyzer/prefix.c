/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefixes are flattened once: where each stretch of addresses with one answer begins, in order.
 * The longest prefix was decided then, so a lookup is a binary search without any nesting.
 *
 *     10.0.0.0/8      |---------- a ----------|        given
 *     10.1.0.0/16         |-- b --|
 *
 *              none   a   b       a           none     kept: five starts
 */
#include "prefix.h"

#include "csv.h"

#include <stdlib.h>

/* An address as a number, so that comparing is cheap and adding one is possible. */
struct number {
    uint64_t high, low;
};

static struct number number_of(const struct address *a)
{
    struct reader r = reader_of((struct bytes){ a->octet, sizeof a->octet });
    uint64_t high = reader_be(&r, 8);
    return (struct number){ high, reader_be(&r, 8) };
}

static bool number_less(struct number a, struct number b)
{
    return a.high != b.high ? a.high < b.high : a.low < b.low;
}

static bool number_equal(struct number a, struct number b)
{
    return a.high == b.high && a.low == b.low;
}

/* The last address of the prefix that starts at first. */
static struct number number_last(struct number first, unsigned bits)
{
    uint64_t high_host = bits >= 64 ? 0 : UINT64_MAX >> bits;
    uint64_t low_host = bits >= 128 ? 0 : bits <= 64 ? UINT64_MAX : UINT64_MAX >> (bits - 64);
    return (struct number){ first.high | high_host, first.low | low_host };
}

/* The number after; false behind the last address of all. */
static bool number_next(struct number n, struct number *ret_next)
{
    if (n.high == UINT64_MAX && n.low == UINT64_MAX)
        return false;
    *ret_next = (struct number){ n.high + (n.low == UINT64_MAX), n.low + 1 };
    return true;
}

struct prefix {
    struct number first;
    int32_t value;  /* what the caller wants to know of it */
    uint32_t order; /* as it came: of equal prefixes the last wins */
    uint8_t bits;   /* of 128 */
};

bool prefixes_add(struct prefixes *p, const struct address *first, unsigned bits, int32_t value)
{
    if (p->count == INT32_MAX)
        return false;
    if (p->count == p->room) {
        size_t room = p->room ? 2 * p->room : 1024;
        struct prefix *items = realloc(p->items, room * sizeof *items);
        if (items == NULL)
            return false;
        p->items = items;
        p->room = room;
    }
    p->items[p->count] = (struct prefix){ .first = number_of(first),
                                          .value = value,
                                          .order = (uint32_t)p->count + 1,
                                          .bits = (uint8_t)bits };
    p->count++;
    return true;
}

void prefixes_done(struct prefixes *p)
{
    free(p->items);
    *p = (struct prefixes){ 0 };
}

/* Outer before inner, earlier before later. */
static int prefix_compare(const void *left, const void *right)
{
    const struct prefix *a = left, *b = right;
    if (!number_equal(a->first, b->first))
        return number_less(a->first, b->first) ? -1 : 1;
    if (a->bits != b->bits)
        return a->bits < b->bits ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static void table_add(struct prefix_table *v, struct number start, int32_t value)
{
    if (v->count != 0 && number_equal(v->starts[v->count - 1], start)) {
        v->values[v->count - 1] = value;
        return;
    }
    int32_t before = v->count != 0 ? v->values[v->count - 1] : PREFIX_NONE;
    if (before == value)
        return;
    v->starts[v->count] = start;
    v->values[v->count] = value;
    v->count++;
}

/* The prefixes around the one just read, outermost first; they nest, so 129 lengths are enough. */
struct nest {
    const struct prefix *open[129];
    size_t depth;
};

/* Closes the innermost prefix: behind its end the one around it goes on. */
static void nest_close(struct nest *n, struct prefix_table *v)
{
    const struct prefix *inner = n->open[--n->depth];
    struct number after;
    if (number_next(number_last(inner->first, inner->bits), &after))
        table_add(v, after, n->depth ? n->open[n->depth - 1]->value : PREFIX_NONE);
}

static void nest_open(struct nest *n, struct prefix_table *v, const struct prefix *p)
{
    while (n->depth != 0) {
        const struct prefix *inner = n->open[n->depth - 1];
        bool same = number_equal(inner->first, p->first) && inner->bits == p->bits;
        if (!same && !number_less(number_last(inner->first, inner->bits), p->first))
            break;
        if (same)
            n->depth--;
        else
            nest_close(n, v);
    }
    n->open[n->depth++] = p;
    table_add(v, p->first, p->value);
}

void prefix_table_done(struct prefix_table *v)
{
    free(v->starts);
    free(v->values);
    *v = (struct prefix_table){ 0 };
}

/* A hole for IPv4 in the default route of IPv6, weaker than any prefix that was given. */
static bool shield_ipv4(struct prefixes *p)
{
    struct address mapped = address_of_ipv4((const uint8_t[4]){ 0 });
    bool added = prefixes_add(p, &mapped, 96, PREFIX_NONE);
    if (added)
        p->items[p->count - 1].order = 0;
    return added;
}

bool prefix_table_build(struct prefixes *p, struct prefix_table *ret_table)
{
    if (!shield_ipv4(p))
        return false;
    size_t most = 2 * p->count + 1;
    struct prefix_table v = { .starts = malloc(most * sizeof *v.starts),
                              .values = malloc(most * sizeof *v.values) };
    if (v.starts == NULL || v.values == NULL) {
        prefix_table_done(&v);
        return false;
    }
    qsort(p->items, p->count, sizeof *p->items, prefix_compare);
    struct nest nest = { 0 };
    for (size_t i = 0; i < p->count; i++)
        nest_open(&nest, &v, &p->items[i]);
    while (nest.depth != 0)
        nest_close(&nest, &v);
    *ret_table = v;
    return true;
}

/* How many starts are not behind an address. */
static size_t start_of(const struct prefix_table *v, struct number wanted)
{
    size_t low = 0, high = v->count; /* starts before low are <= wanted, those from high are > */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (number_less(wanted, v->starts[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

int32_t prefix_table_find(const struct prefix_table *t, const struct address *a)
{
    size_t at = start_of(t, number_of(a));
    return at != 0 ? t->values[at - 1] : PREFIX_NONE;
}

bool prefix_table_find_all(const struct prefix_table *t, const struct address *first, unsigned bits,
                           int32_t *ret_value)
{
    struct number wanted = number_of(first);
    size_t at = start_of(t, wanted);
    bool is_one = at == start_of(t, number_last(wanted, bits));
    if (is_one)
        *ret_value = at != 0 ? t->values[at - 1] : PREFIX_NONE;
    return is_one;
}

/* ---- text ---- */

/* The locale has no say in what a file means, hence not those of ctype.h. */
static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool prefix_parse(const char *text, struct address *ret_first, unsigned *ret_bits)
{
    char address[CSV_FIELD_SIZE];
    const char *slash = strchr(text, '/');
    size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
    if (len >= sizeof address)
        return false;
    memcpy(address, text, len);
    address[len] = '\0';
    struct address first;
    if (!address_parse(address, &first))
        return false;

    bool ipv4 = strchr(address, ':') == NULL;
    unsigned most = ipv4 ? 32 : 128;
    unsigned bits = most;
    if (slash != NULL) {
        char *end;
        if (!is_digit(slash[1]))
            return false;
        unsigned long number = strtoul(slash + 1, &end, 10);
        if (*end != '\0' || number > most)
            return false;
        bits = (unsigned)number;
    }
    bits += ipv4 ? 96 : 0;
    struct address cut = address_prefix(&first, bits);
    if (!address_equal(&cut, &first))
        return false;
    *ret_first = first;
    *ret_bits = bits;
    return true;
}

/* Whether the first field of a file's first line names a column instead of a prefix. */
static bool is_column_name(const char *field)
{
    if (!is_letter(field[0]))
        return false;
    return strchr(field, '.') == NULL && strchr(field, ':') == NULL && strchr(field, '/') == NULL;
}

enum prefix_line prefix_take(struct bytes *line, bool first_line, struct address *ret_first,
                             unsigned *ret_bits)
{
    char field[CSV_FIELD_SIZE];
    bool good = csv_field(line, field);
    if (good && field[0] == '\0' && line->len == 0)
        return PREFIX_LINE_EMPTY;
    if (good && first_line && is_column_name(field))
        return PREFIX_LINE_HEADER;
    return good && prefix_parse(field, ret_first, ret_bits) ? PREFIX_LINE_GOOD : PREFIX_LINE_BAD;
}
