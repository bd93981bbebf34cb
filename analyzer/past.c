/* SPDX-License-Identifier: Apache-2.0 */
#include "past.h"

#include <stdlib.h>

/* Entries in a ring, oldest first; slots find them by hash. Half of the slots stay empty. */
struct past {
    struct past_flow *ring;
    uint32_t *slots; /* index into ring + 1; 0 = empty */
    size_t capacity; /* of the ring; slots are twice as many; powers of two */
    size_t next;     /* where the next entry goes */
    bool full;       /* the ring has been round once */
};

enum { FIRST_CAPACITY = 1024 };

struct past *past_open(void)
{
    return calloc(1, sizeof(struct past));
}

void past_close(struct past *p)
{
    if (p == NULL)
        return;
    free(p->ring);
    free(p->slots);
    free(p);
}

static size_t slot_mask(const struct past *p)
{
    return 2 * p->capacity - 1;
}

/* The slot of that hash, or the empty one where it would go. */
static size_t slot_of(const struct past *p, uint64_t key_hash)
{
    size_t i = (size_t)key_hash & slot_mask(p);
    while (p->slots[i] != 0 && p->ring[p->slots[i] - 1].key_hash != key_hash)
        i = (i + 1) & slot_mask(p);
    return i;
}

/* Empties a slot and closes the gap that it leaves in the runs of probing behind it. */
static void empty_slot(struct past *p, size_t hole)
{
    size_t mask = slot_mask(p);
    for (size_t i = (hole + 1) & mask; p->slots[i] != 0; i = (i + 1) & mask) {
        size_t home = (size_t)p->ring[p->slots[i] - 1].key_hash & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue;
        p->slots[hole] = p->slots[i];
        hole = i;
    }
    p->slots[hole] = 0;
}

static enum status grow(struct past *p)
{
    size_t capacity = p->capacity == 0 ? FIRST_CAPACITY : 2 * p->capacity;
    struct past_flow *ring = realloc(p->ring, capacity * sizeof *ring);
    if (ring == NULL)
        return STATUS_NO_MEMORY;
    p->ring = ring;
    uint32_t *slots = calloc(2 * capacity, sizeof *slots);
    if (slots == NULL)
        return STATUS_NO_MEMORY;
    uint32_t *old = p->slots;
    size_t old_slots = 2 * p->capacity;
    p->slots = slots;
    p->capacity = capacity;
    for (size_t i = 0; i < old_slots; i++)
        if (old[i] != 0)
            p->slots[slot_of(p, ring[old[i] - 1].key_hash)] = old[i];
    free(old);
    return STATUS_OK;
}

enum status past_remember(struct past *p, const struct past_flow *flow)
{
    if (p->next == p->capacity && p->capacity < PAST_FLOWS_MAX) {
        enum status status = grow(p);
        if (status != STATUS_OK)
            return status;
    }
    past_forget(p, flow->key_hash);
    if (p->next == p->capacity) {
        p->next = 0;
        p->full = true;
    }
    if (p->full) { /* the oldest goes, unless it was forgotten or came again since */
        size_t slot = slot_of(p, p->ring[p->next].key_hash);
        if (p->slots[slot] == p->next + 1)
            empty_slot(p, slot);
    }
    p->ring[p->next] = *flow;
    p->slots[slot_of(p, flow->key_hash)] = (uint32_t)++p->next;
    return STATUS_OK;
}

const struct past_flow *past_find(const struct past *p, uint64_t key_hash)
{
    if (p->capacity == 0)
        return NULL;
    uint32_t entry = p->slots[slot_of(p, key_hash)];
    return entry == 0 ? NULL : &p->ring[entry - 1];
}

void past_forget(struct past *p, uint64_t key_hash)
{
    if (p->capacity == 0)
        return;
    size_t slot = slot_of(p, key_hash);
    if (p->slots[slot] != 0)
        empty_slot(p, slot);
}
