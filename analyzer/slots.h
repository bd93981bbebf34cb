/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SLOTS_H
#define SLOTS_H
/*
 * Finds the places of things by the hash of their key: an open-addressing array of 8-byte slots, of
 * which half stay empty. What the things are only their owner knows, who compares keys; that a slot
 * keeps the hash saves nearly every look at one that is another.
 */
#include "prefetch.h"
#include "status.h"

#include <stdint.h>

struct slot {
    uint32_t hash;
    uint32_t number; /* of the thing, from 1 on; 0 = empty */
};

/* { 0 } is empty and has no memory. */
struct slots {
    struct slot *at;
    size_t mask; /* of the size, a power of two */
    size_t used;
};

void slots_done(struct slots *s);

/* Makes room for one more. */
MUST_USE enum status slots_reserve(struct slots *s);

/* Adds a number, which need not be the only one of its hash, behind others of it; there is room. */
void slots_add(struct slots *s, uint32_t hash, uint32_t number);

/* Removes a number that is there. */
void slots_remove(struct slots *s, uint32_t hash, uint32_t number);

/* Asks for the memory in which a hash is looked for first. */
static inline void slots_prefetch(const struct slots *s, uint32_t hash)
{
    if (s->at != NULL)
        prefetch(&s->at[hash & s->mask], sizeof *s->at);
}

/*
 * The numbers of a hash, in the order in which they were added; 0 behind the last. *place is of the
 * walk, which ends when a number is added or removed:
 *
 *   for (uint32_t n = slots_first(s, hash, &place); n != 0; n = slots_next(s, hash, &place))
 */
static inline uint32_t slots_from(const struct slots *s, uint32_t hash, size_t *place)
{
    while (s->at[*place].number != 0 && s->at[*place].hash != hash)
        *place = (*place + 1) & s->mask;
    return s->at[*place].number;
}

static inline uint32_t slots_first(const struct slots *s, uint32_t hash, size_t *place)
{
    *place = hash & s->mask;
    return s->at == NULL ? 0 : slots_from(s, hash, place);
}

static inline uint32_t slots_next(const struct slots *s, uint32_t hash, size_t *place)
{
    *place = (*place + 1) & s->mask;
    return slots_from(s, hash, place);
}

#endif
