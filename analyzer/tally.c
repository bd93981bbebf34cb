/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

#include <stddef.h>

/* What a server sends changes with a deploy: an entry holds for the time it was seen and this. */
static const int64_t HOLDS_FOR_NS = INT64_C(3600) * 1000000000;

/* Fibonacci hashing: any fixed order that does not follow the size of the numbers. */
static uint32_t rank(uint32_t number)
{
    return number * UINT32_C(2654435769);
}

static void entry_add(struct tally_entry *e, int64_t at_ns)
{
    if (e->count < UINT32_MAX)
        e->count++;
    if (at_ns < e->first_ns)
        e->first_ns = at_ns;
    if (at_ns > e->last_ns)
        e->last_ns = at_ns;
}

void tally_add(struct tally *t, uint32_t number, int64_t at_ns)
{
    unsigned place = 0;
    while (place < t->used && rank(t->entry[place].number) < rank(number))
        place++;
    if (place < t->used && t->entry[place].number == number) {
        entry_add(&t->entry[place], at_ns);
        return;
    }
    if (place == TALLY_MAX)
        return;
    unsigned last = t->used < TALLY_MAX ? t->used++ : TALLY_MAX - 1;
    for (; last > place; last--)
        t->entry[last] = t->entry[last - 1];
    t->entry[place] = (struct tally_entry){ number, 1, at_ns, at_ns };
}

const struct tally_entry *tally_find(const struct tally *t, uint32_t number, int64_t at_ns)
{
    for (unsigned i = 0; i < t->used; i++) {
        const struct tally_entry *e = &t->entry[i];
        if (e->number == number && at_ns >= e->first_ns - HOLDS_FOR_NS &&
            at_ns <= e->last_ns + HOLDS_FOR_NS)
            return e;
    }
    return NULL;
}
