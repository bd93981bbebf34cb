/* SPDX-License-Identifier: Apache-2.0 */
#include "slots.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FIRST_SIZE = 256 };

/* Huge pages make the difference once the array outgrows the caches. */
static struct slot *empty_slots(size_t count)
{
    enum { HUGE_PAGE = 2 * 1024 * 1024 };
    size_t size = count * sizeof(struct slot);
    if (size < HUGE_PAGE)
        return calloc(count, sizeof(struct slot));
    struct slot *at = aligned_alloc(HUGE_PAGE, size);
    if (at == NULL)
        return NULL;
    (void)madvise(at, size, MADV_HUGEPAGE);
    return memset(at, 0, size);
}

void slots_done(struct slots *s)
{
    free(s->at);
    *s = (struct slots){ 0 };
}

/* The slot that holds a number; of 0 the empty one behind the run of the hash. */
static size_t slot_of(const struct slots *s, uint32_t hash, uint32_t number)
{
    size_t i = hash & s->mask;
    while (s->at[i].number != number)
        i = (i + 1) & s->mask;
    return i;
}

enum status slots_reserve(struct slots *s)
{
    struct slot *old = s->at;
    size_t old_size = old == NULL ? 0 : s->mask + 1;
    if (2 * (s->used + 1) <= old_size)
        return STATUS_OK;
    size_t size = old_size == 0 ? FIRST_SIZE : 2 * old_size;
    struct slot *grown = empty_slots(size);
    if (grown == NULL)
        return STATUS_NO_MEMORY;
    s->at = grown;
    s->mask = size - 1;
    size_t first = 0; /* behind an empty one, so that the order within a run is kept */
    while (old_size > 0 && old[first].number != 0)
        first++;
    for (size_t k = 0; k < old_size; k++) {
        struct slot slot = old[(first + k) & (old_size - 1)];
        if (slot.number != 0)
            grown[slot_of(s, slot.hash, 0)] = slot;
    }
    free(old);
    return STATUS_OK;
}

void slots_add(struct slots *s, uint32_t hash, uint32_t number)
{
    s->at[slot_of(s, hash, 0)] = (struct slot){ hash, number };
    s->used++;
}

void slots_remove(struct slots *s, uint32_t hash, uint32_t number)
{
    size_t hole = slot_of(s, hash, number);
    for (size_t i = (hole + 1) & s->mask; s->at[i].number != 0; i = (i + 1) & s->mask) {
        size_t home = s->at[i].hash & s->mask;
        if (((i - home) & s->mask) < ((i - hole) & s->mask))
            continue; /* its home lies behind the hole: it may stay */
        s->at[hole] = s->at[i];
        hole = i;
    }
    s->at[hole] = (struct slot){ 0 };
    s->used--;
}
