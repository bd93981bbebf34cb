/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREFIX_H
#define PREFIX_H
/*
 * Values of address prefixes, of which the longest that holds an address answers. Prefixes are
 * collected, then flattened once into a table.
 */
#include "bytes.h"
#include "endpoint.h"

/* The value of addresses that no prefix holds; a prefix with it is a hole in those around it. */
enum { PREFIX_NONE = -1 };

/* Prefixes as they come; { 0 } is empty. Free it with prefixes_done(). */
struct prefixes {
    struct prefix *items;
    size_t count, room;
};

/* bits are of 128, value at least PREFIX_NONE; of equal prefixes the last wins. False without
 * memory. */
bool prefixes_add(struct prefixes *p, const struct address *first, unsigned bits, int32_t value);
void prefixes_done(struct prefixes *p);

struct prefix_table {
    struct number *starts; /* ascending; each runs to the next */
    int32_t *values;
    size_t count;
};

/*
 * Sorts the prefixes and makes the table of them. The default route of IPv6 does not answer for
 * IPv4, which is kept as mapped IPv6. False without memory.
 */
bool prefix_table_build(struct prefixes *p, struct prefix_table *ret_table);
void prefix_table_done(struct prefix_table *t);

/* The value of an address. */
int32_t prefix_table_find(const struct prefix_table *t, const struct address *a);

/* Whether all addresses of that prefix have one value; which. */
bool prefix_table_find_all(const struct prefix_table *t, const struct address *first, unsigned bits,
                           int32_t *ret_value);

/*
 * Reads "192.0.2.0/24" or a single address; *ret_bits of 128. False also when bits behind the
 * prefix are set.
 */
bool prefix_parse(const char *text, struct address *ret_first, unsigned *ret_bits);

enum prefix_line { PREFIX_LINE_EMPTY, PREFIX_LINE_HEADER, PREFIX_LINE_BAD, PREFIX_LINE_GOOD };

/* Takes the prefix off a line of CSV, of which the first may name the columns. */
enum prefix_line prefix_take(struct bytes *line, bool first_line, struct address *ret_first,
                             unsigned *ret_bits);

#endif
