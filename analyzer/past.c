/* SPDX-License-Identifier: Apache-2.0 */
#include "past.h"

#include "slots.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { FORGOTTEN, KIND = 1, AGE_BITS = 46, FORGET_AHEAD = 4 };

/* A flow in half a cache line. */
struct entry {
    uint64_t key_hash;
    int64_t last_ns;
    uint32_t client_isn;
    uint32_t staged;   /* its stage_number + 1; 0 = PAST_NOT_STAGED */
    uint64_t kind : 2; /* FORGOTTEN, or enum past_kind + KIND */
    uint64_t syn_count : 16;
    uint64_t age_ns : AGE_BITS; /* last_ns - first_ns */
};
_Static_assert(sizeof(struct entry) == 32, "there are a million of them");

struct past {
    struct entry *ring; /* oldest first */
    struct slots slots; /* place in the ring + 1 by the low half of key_hash */
    size_t capacity;    /* of the ring */
    size_t next;        /* where the next entry goes */
    bool full;          /* the ring has been round once */
};

struct past *past_open(void)
{
    return calloc(1, sizeof(struct past));
}

void past_close(struct past *p)
{
    if (p == NULL)
        return;
    free(p->ring);
    slots_done(&p->slots);
    free(p);
}

/* In few steps, of which the last one's memory is there only as far as it is used. */
static enum status grow(struct past *p)
{
    enum { FIRST_CAPACITY = 1 << 10, STEP = 1 << 5, HUGE_PAGE = 2 * 1024 * 1024 };
    _Static_assert(FIRST_CAPACITY * STEP * STEP == PAST_FLOWS_MAX, "the last step reaches the cap");
    size_t capacity = p->capacity == 0 ? FIRST_CAPACITY : p->capacity * STEP;
    size_t size = capacity * sizeof *p->ring;
    struct entry *ring = size < HUGE_PAGE ? malloc(size) : aligned_alloc(HUGE_PAGE, size);
    if (ring == NULL)
        return STATUS_NO_MEMORY;
    if (size >= HUGE_PAGE)
        (void)madvise(ring, size, MADV_HUGEPAGE);
    if (p->capacity > 0)
        memcpy(ring, p->ring, p->capacity * sizeof *ring);
    free(p->ring);
    p->ring = ring;
    p->capacity = capacity;
    return STATUS_OK;
}

/* The entry of that hash; NULL. */
static struct entry *entry_of(const struct past *p, uint64_t key_hash)
{
    size_t place;
    uint32_t hash = (uint32_t)key_hash;
    for (uint32_t n = slots_first(&p->slots, hash, &place); n != 0;
         n = slots_next(&p->slots, hash, &place))
        if (p->ring[n - 1].key_hash == key_hash)
            return &p->ring[n - 1];
    return NULL;
}

static void forget(struct past *p, struct entry *e)
{
    slots_remove(&p->slots, (uint32_t)e->key_hash, (uint32_t)(e - p->ring) + 1);
    e->kind = FORGOTTEN;
}

/* False when the flow cannot be held in an entry. */
static bool pack(const struct past_flow *flow, struct entry *ret_entry)
{
    *ret_entry = (struct entry){
        .key_hash = flow->key_hash,
        .last_ns = flow->last_ns,
        .kind = ((uint64_t)flow->kind + KIND) & 3,
    };
    if (flow->kind != PAST_HALF_OPEN)
        return true;
    const uint64_t AGE_MAX_NS = (UINT64_C(1) << AGE_BITS) - 1;
    uint64_t age_ns = (uint64_t)flow->last_ns - (uint64_t)flow->first_ns;
    uint64_t staged = flow->stage_number + 1; /* PAST_NOT_STAGED becomes 0 */
    ret_entry->age_ns = age_ns & AGE_MAX_NS;
    ret_entry->staged = (uint32_t)staged;
    ret_entry->client_isn = flow->client_isn;
    ret_entry->syn_count = flow->syn_count;
    return age_ns <= AGE_MAX_NS && staged <= UINT32_MAX;
}

static struct past_flow unpack(const struct entry *e)
{
    return (struct past_flow){
        .key_hash = e->key_hash,
        .last_ns = e->last_ns,
        .kind = (uint8_t)(e->kind - KIND),
        .syn_count = (uint16_t)e->syn_count,
        .client_isn = e->client_isn,
        .first_ns = e->last_ns - (int64_t)e->age_ns,
        .stage_number = (uint64_t)e->staged - 1,
    };
}

enum status past_remember(struct past *p, const struct past_flow *flow)
{
    struct entry entry;
    past_forget(p, flow->key_hash);
    if (!pack(flow, &entry))
        return STATUS_OK;
    enum status status = slots_reserve(&p->slots);
    if (status == STATUS_OK && p->next == p->capacity && p->capacity < PAST_FLOWS_MAX)
        status = grow(p);
    if (status != STATUS_OK)
        return status;
    if (p->next == p->capacity) {
        p->next = 0;
        p->full = true;
    }
    struct entry *oldest = &p->ring[p->next];
    /* Full: all of the ring was written. NOLINTNEXTLINE(clang-analyzer-core.Undefined*) */
    if (p->full && oldest->kind != FORGOTTEN)
        forget(p, oldest);
    if (p->full) /* its slot is looked for soon */
        past_prefetch(p, p->ring[(p->next + FORGET_AHEAD) % p->capacity].key_hash);
    *oldest = entry;
    slots_add(&p->slots, (uint32_t)entry.key_hash, (uint32_t)++p->next);
    return STATUS_OK;
}

bool past_find(const struct past *p, uint64_t key_hash, struct past_flow *ret_flow)
{
    const struct entry *e = entry_of(p, key_hash);
    if (e != NULL)
        *ret_flow = unpack(e);
    return e != NULL;
}

void past_prefetch(const struct past *p, uint64_t key_hash)
{
    slots_prefetch(&p->slots, (uint32_t)key_hash);
}

void past_forget(struct past *p, uint64_t key_hash)
{
    struct entry *e = entry_of(p, key_hash);
    if (e != NULL)
        forget(p, e);
}

bool past_is_over(const struct past_flow *flow, int64_t now_ns)
{
    static const int64_t LIMIT_NS[] = { [PAST_HALF_OPEN] = PAST_HALF_OPEN_NS,
                                        [PAST_IDLE] = PAST_IDLE_NS,
                                        [PAST_CLOSED] = PAST_CLOSED_NS };
    return now_ns - flow->last_ns > LIMIT_NS[flow->kind];
}

/* Bytes of a packed flow, about, to make room for all at once. */
enum { PACKED_TYPICAL = 24 };

/* Hashes and initial sequence numbers are random, so they are not shorter as numbers. */
static void code_flow(struct coder *c, struct past_flow *flow)
{
    uint64_t hash = htole64(flow->key_hash);
    code_octets(c, (uint8_t *)&hash, sizeof hash);
    flow->key_hash = le64toh(hash);
    code_time(c, &flow->last_ns);
    c->base_ns = flow->last_ns;
    flow->kind = (uint8_t)code_number(c, flow->kind, PAST_CLOSED);
    if (flow->kind != PAST_HALF_OPEN)
        return;
    uint32_t isn = htole32(flow->client_isn);
    code_octets(c, (uint8_t *)&isn, sizeof isn);
    flow->client_isn = le32toh(isn);
    code_time(c, &flow->first_ns);
    code_u16(c, &flow->syn_count);
}

static void unpack_flows(struct coder *c, struct past *p)
{
    for (uint64_t left = code_number(c, 0, PAST_FLOWS_MAX); left > 0 && !c->failed; left--) {
        struct past_flow flow = { .stage_number = PAST_NOT_STAGED };
        code_flow(c, &flow);
        c->failed |= c->failed || past_remember(p, &flow) != STATUS_OK;
    }
}

static bool is_kept(const struct entry *e, int64_t now_ns)
{
    if (e->kind == FORGOTTEN)
        return false;
    struct past_flow flow = unpack(e);
    return !past_is_over(&flow, now_ns);
}

static void pack_flows(struct coder *c, const struct past *p, int64_t now_ns)
{
    size_t used = p->full ? p->capacity : p->next, first = p->full ? p->next : 0;
    uint64_t count = 0;
    for (size_t i = 0; i < used; i++)
        count += is_kept(&p->ring[i], now_ns);
    code_number(c, count, PAST_FLOWS_MAX);
    c->failed |= !buffer_reserve(c->out, count * PACKED_TYPICAL);
    for (size_t i = 0; i < used; i++) { /* the oldest first */
        const struct entry *e = &p->ring[(first + i) % p->capacity];
        struct past_flow flow = unpack(e);
        if (is_kept(e, now_ns))
            code_flow(c, &flow);
    }
}

void past_code(struct coder *c, struct past *p, int64_t now_ns)
{
    int64_t base_ns = c->base_ns;
    if (coder_unpacks(c))
        unpack_flows(c, p);
    else
        pack_flows(c, p, now_ns);
    c->base_ns = base_ns;
}
