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

bool past_is_over(const struct past_flow *flow, int64_t now_ns)
{
    static const int64_t LIMIT_NS[] = { [PAST_HALF_OPEN] = PAST_HALF_OPEN_NS,
                                        [PAST_IDLE] = PAST_IDLE_NS,
                                        [PAST_CLOSED] = PAST_CLOSED_NS };
    return now_ns - flow->last_ns > LIMIT_NS[flow->kind];
}

static void code_flow(struct coder *c, struct past_flow *flow)
{
    code_u64(c, &flow->key_hash);
    code_time(c, &flow->first_ns);
    code_time(c, &flow->last_ns);
    code_u32(c, &flow->client_isn);
    code_u16(c, &flow->syn_count);
    code_u32(c, &flow->encapsulation[0]);
    code_u32(c, &flow->encapsulation[1]);
    flow->encapsulation_count = (uint8_t)code_number(c, flow->encapsulation_count, 2);
    flow->kind = (uint8_t)code_number(c, flow->kind, PAST_CLOSED);
}

static void unpack_flows(struct coder *c, struct past *p)
{
    for (uint64_t left = code_number(c, 0, PAST_FLOWS_MAX); left > 0 && !c->failed; left--) {
        struct past_flow flow = { .stage_number = PAST_NOT_STAGED };
        code_flow(c, &flow);
        c->failed |= c->failed || past_remember(p, &flow) != STATUS_OK;
    }
}

/* Whether a place of the ring holds what is remembered of its flow, and that still matters. */
static bool is_kept(const struct past *p, size_t place, int64_t now_ns)
{
    return p->slots[slot_of(p, p->ring[place].key_hash)] == place + 1 &&
           !past_is_over(&p->ring[place], now_ns);
}

void past_code(struct coder *c, struct past *p, int64_t now_ns)
{
    if (coder_unpacks(c)) {
        unpack_flows(c, p);
        return;
    }
    size_t used = p->full ? p->capacity : p->next, first = p->full ? p->next : 0;
    uint64_t count = 0;
    for (size_t i = 0; i < used; i++)
        count += is_kept(p, i, now_ns);
    code_number(c, count, PAST_FLOWS_MAX);
    for (size_t i = 0; i < used; i++) { /* the oldest first */
        size_t place = (first + i) % p->capacity;
        if (is_kept(p, place, now_ns))
            code_flow(c, &p->ring[place]);
    }
}
