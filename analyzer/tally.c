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

static void entry_merge(struct tally_entry *into, const struct tally_entry *e)
{
    into->count = e->count > UINT32_MAX - into->count ? UINT32_MAX : into->count + e->count;
    if (e->first_ns < into->first_ns)
        into->first_ns = e->first_ns;
    if (e->last_ns > into->last_ns)
        into->last_ns = e->last_ns;
}

void tally_merge(struct tally *t, const struct tally_entry *e)
{
    unsigned place = 0;
    while (place < t->used && rank(t->entry[place].number) < rank(e->number))
        place++;
    if (place < t->used && t->entry[place].number == e->number) {
        entry_merge(&t->entry[place], e);
        return;
    }
    if (place == TALLY_MAX)
        return;
    unsigned last = t->used < TALLY_MAX ? t->used++ : TALLY_MAX - 1;
    for (; last > place; last--)
        t->entry[last] = t->entry[last - 1];
    t->entry[place] = *e;
}

void tally_add(struct tally *t, uint32_t number, int64_t at_ns)
{
    tally_merge(t, &(struct tally_entry){ number, 1, at_ns, at_ns });
}

bool tally_holds(const struct tally_entry *e, int64_t at_ns)
{
    return at_ns >= e->first_ns - HOLDS_FOR_NS && at_ns <= e->last_ns + HOLDS_FOR_NS;
}

uint64_t tally_total(const struct tally *t, int64_t at_ns)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < t->used; i++)
        if (tally_holds(&t->entry[i], at_ns))
            sum += t->entry[i].count;
    return sum;
}

const struct tally_entry *tally_find(const struct tally *t, uint32_t number, int64_t at_ns)
{
    for (unsigned i = 0; i < t->used; i++)
        if (t->entry[i].number == number && tally_holds(&t->entry[i], at_ns))
            return &t->entry[i];
    return NULL;
}
