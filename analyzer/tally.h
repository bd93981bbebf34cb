/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TALLY_H
#define TALLY_H
/*
 * A small table of numbers with their count and the time they were seen: bounded, and the same
 * whatever the order of additions. When more different numbers come than it holds, those with the
 * least hash stay; a number that stays was there from its first addition on, so its count is whole.
 */
#include <stdbool.h>
#include <stdint.h>

enum { TALLY_MAX = 8 };

struct tally_entry {
    uint32_t number;
    uint32_t count;            /* saturates */
    int64_t first_ns, last_ns; /* least and greatest time of an addition */
};

struct tally {
    struct tally_entry entry[TALLY_MAX]; /* by hash */
    uint8_t used;
};

void tally_add(struct tally *t, uint32_t number, int64_t at_ns);

/*
 * Adds what another table counted of a number. Tables that are merged in any order and grouping are
 * equal to one that all additions went into.
 */
void tally_merge(struct tally *t, const struct tally_entry *e);

/*
 * Whether an entry holds at a time: what a server sends changes with a deploy, so it does from an
 * hour before it was first seen until an hour after it was last.
 */
bool tally_holds(const struct tally_entry *e, int64_t at_ns);

/* Sum of the counts of all entries that hold at a time. */
uint64_t tally_total(const struct tally *t, int64_t at_ns);

/* The entry of a number if it holds at a time; NULL without. */
const struct tally_entry *tally_find(const struct tally *t, uint32_t number, int64_t at_ns);

#endif
