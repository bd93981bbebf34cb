/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * Slots (slots.h) tell the index of a flow by the hash of its key; flows lie in chunks that never
 * move, so pointers to them stay good.
 *
 * Deadlines are a wheel of one-second buckets. A packet does not move its flow in the wheel: when
 * a bucket's second has come, each flow in it is asked for its real deadline, which its last packet
 * may have put off, and goes to a later bucket or is over. So time costs per flow, not per packet.
 * Half-open flows have a smaller wheel of their own, on which a flood's oldest are soon found.
 */
#include "flow.h"

#include "connection.h"
#include "hash.h"
#include "slots.h"

#include <stdlib.h>
#include <sys/mman.h>

enum {
    CHUNK_FLOWS = 4096,
    WHEEL_BUCKETS = 1024, /* seconds; longer than the longest idle limit */
    HALF_OPEN_BUCKETS =
        32, /* the same of half-open flows; in the array they are behind the others */
    ALL_BUCKETS = WHEEL_BUCKETS + HALF_OPEN_BUCKETS,
};
#define NO_INDEX UINT32_MAX
_Static_assert(sizeof(struct flow) <= 208, "there may be millions of them");

struct flow_table {
    struct slots slots; /* index + 1 by hash of the key */
    struct flow **chunks;
    size_t chunk_count;
    size_t count, half_open_count;
    uint32_t used; /* flows ever handed out */
    uint32_t free; /* head of the free list */
    uint64_t seed;
    int64_t second; /* the wheel has been read up to it */
    uint32_t bucket[ALL_BUCKETS];
};

/* Huge pages make the difference once the table outgrows the caches. */
static void *map_memory(size_t size)
{
    enum { HUGE_PAGE = 2 * 1024 * 1024 };
    void *at = NULL;
    if (size < HUGE_PAGE)
        return calloc(1, size);
    if (posix_memalign(&at, HUGE_PAGE, size) != 0)
        return NULL;
    madvise(at, size, MADV_HUGEPAGE);
    memset(at, 0, size);
    return at;
}

struct flow_table *flow_table_open(uint64_t seed)
{
    struct flow_table *t = calloc(1, sizeof *t);
    if (t == NULL)
        return NULL;
    t->seed = seed;
    t->free = NO_INDEX;
    for (size_t i = 0; i < ALL_BUCKETS; i++)
        t->bucket[i] = NO_INDEX;
    return t;
}

void flow_table_close(struct flow_table *t)
{
    if (t == NULL)
        return;
    assert(t->count == 0);
    for (size_t i = 0; i < t->chunk_count; i++)
        free(t->chunks[i]);
    free(t->chunks);
    slots_done(&t->slots);
    free(t);
}

static struct flow *flow_at(const struct flow_table *t, uint32_t index)
{
    return &t->chunks[index / CHUNK_FLOWS][index % CHUNK_FLOWS];
}

struct flow_key flow_key_of(const struct segment *s)
{
    return endpoint_compare(&s->from, &s->to) <= 0 ? (struct flow_key){ s->from, s->to }
                                                   : (struct flow_key){ s->to, s->from };
}

const struct endpoint *flow_endpoint(const struct flow *flow, enum side side)
{
    return (side == CLIENT) == flow->low_is_client ? &flow->key.low : &flow->key.high;
}

enum side flow_side_of(const struct flow *flow, const struct segment *s)
{
    return endpoint_equal(&s->from, &flow->key.low) == flow->low_is_client ? CLIENT : SERVER;
}

uint32_t flow_hash(const struct flow_table *t, const struct flow_key *key)
{
    return (uint32_t)hash_table((struct bytes){ (const uint8_t *)key, sizeof *key }, t->seed);
}

void flow_prefetch_slot(const struct flow_table *t, uint32_t hash)
{
    slots_prefetch(&t->slots, hash);
}

/* The first flow of that hash, nearly always the only one; NULL. */
static const struct flow *first_of_hash(const struct flow_table *t, uint32_t hash)
{
    size_t place;
    uint32_t number = slots_first(&t->slots, hash, &place);
    return number == 0 ? NULL : flow_at(t, number - 1);
}

void flow_prefetch_flow(const struct flow_table *t, uint32_t hash)
{
    const struct flow *flow = first_of_hash(t, hash);
    if (flow != NULL)
        prefetch(flow, sizeof *flow);
}

void flow_prefetch_connection(const struct flow_table *t, uint32_t hash)
{
    const struct flow *flow = first_of_hash(t, hash);
    if (flow == NULL)
        return;
    if (flow->connection != NULL)
        connection_prefetch(flow->connection);
    else if (flow->parked != NULL)
        prefetch(flow->parked, parked_size(flow->parked));
}

const struct flow *flow_prefetch_next(const struct flow_table *t, const struct flow *flow)
{
    if (flow->next == NO_INDEX)
        return NULL;
    const struct flow *next = flow_at(t, flow->next);
    slots_prefetch(&t->slots, flow_hash(t, &next->key));
    if (next->next != NO_INDEX)
        prefetch(flow_at(t, next->next), sizeof *next);
    return next;
}

static bool key_equal(const struct flow_key *a, const struct flow_key *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

/* The first flow of the key behind the one of that number, or of all with 0; NULL = none is left.
 */
static struct flow *find_behind(const struct flow_table *t, uint32_t number,
                                const struct flow_key *key)
{
    size_t place;
    uint32_t hash = flow_hash(t, key);
    bool behind = number == 0;
    for (uint32_t n = slots_first(&t->slots, hash, &place); n != 0;
         n = slots_next(&t->slots, hash, &place)) {
        struct flow *flow = flow_at(t, n - 1);
        if (behind && key_equal(&flow->key, key))
            return flow;
        behind |= n == number;
    }
    return NULL;
}

struct flow *flow_find(struct flow_table *t, const struct flow_key *key)
{
    return find_behind(t, 0, key);
}

struct flow *flow_find_next(struct flow_table *t, const struct flow *flow)
{
    return find_behind(t, flow->index + 1, &flow->key);
}

/* An unused flow: a freed one, else the next of the last chunk. */
static struct flow *take_unused(struct flow_table *t)
{
    if (t->free != NO_INDEX) {
        struct flow *flow = flow_at(t, t->free);
        t->free = flow->next;
        return flow;
    }
    if (t->used == t->chunk_count * CHUNK_FLOWS) {
        struct flow **chunks = realloc(t->chunks, (t->chunk_count + 1) * sizeof *chunks);
        if (chunks == NULL)
            return NULL;
        t->chunks = chunks;
        chunks[t->chunk_count] = map_memory(CHUNK_FLOWS * sizeof(struct flow));
        if (chunks[t->chunk_count] == NULL)
            return NULL;
        t->chunk_count++;
    }
    struct flow *flow = flow_at(t, t->used);
    flow->index = t->used++;
    return flow;
}

/* Numbers of the buckets of a second. */
static uint16_t bucket_of(int64_t second)
{
    return (uint16_t)((uint64_t)second % WHEEL_BUCKETS);
}

static uint16_t half_open_bucket_of(int64_t second)
{
    return (uint16_t)(WHEEL_BUCKETS + (uint64_t)second % HALF_OPEN_BUCKETS);
}

static bool is_half_open_bucket(uint16_t bucket)
{
    return bucket >= WHEEL_BUCKETS;
}

static void put_in_wheel(struct flow_table *t, struct flow *flow, int64_t deadline_ns)
{
    bool half_open = flow_is_half_open(flow);
    int64_t buckets = half_open ? HALF_OPEN_BUCKETS : WHEEL_BUCKETS;
    int64_t second = deadline_ns / NS_PER_SECOND + 1;
    if (second <= t->second)
        second = t->second + 1;
    if (second >= t->second + buckets)
        second = t->second + buckets - 1;
    flow->bucket = half_open ? half_open_bucket_of(second) : bucket_of(second);
    t->half_open_count += half_open;
    flow->previous = NO_INDEX;
    flow->next = t->bucket[flow->bucket];
    if (flow->next != NO_INDEX)
        flow_at(t, flow->next)->previous = flow->index;
    t->bucket[flow->bucket] = flow->index;
}

static void take_from_wheel(struct flow_table *t, const struct flow *flow)
{
    t->half_open_count -= is_half_open_bucket(flow->bucket);
    if (flow->previous == NO_INDEX)
        t->bucket[flow->bucket] = flow->next;
    else
        flow_at(t, flow->previous)->next = flow->next;
    if (flow->next != NO_INDEX)
        flow_at(t, flow->next)->previous = flow->previous;
}

struct flow *flow_add(struct flow_table *t, const struct flow_key *key, int64_t now_ns)
{
    if (slots_reserve(&t->slots) != STATUS_OK)
        return NULL;
    struct flow *flow = take_unused(t);
    if (flow == NULL)
        return NULL;
    *flow =
        (struct flow){ .index = flow->index, .key = *key, .first_ns = now_ns, .last_ns = now_ns };
    slots_add(&t->slots, flow_hash(t, key), flow->index + 1);
    t->count++;
    if (t->second == 0)
        t->second = now_ns / NS_PER_SECOND;
    put_in_wheel(t, flow, now_ns + HALF_OPEN_IDLE_NS);
    return flow;
}

void flow_remove(struct flow_table *t, struct flow *flow)
{
    slots_remove(&t->slots, flow_hash(t, &flow->key), flow->index + 1);
    take_from_wheel(t, flow);
    flow->next = t->free;
    t->free = flow->index;
    t->count--;
}

bool flow_is_half_open(const struct flow *flow)
{
    return flow->connection == NULL && flow->parked == NULL;
}

bool flow_is_closed(const struct flow *flow)
{
    enum { BOTH_FINS = FLOW_FIN_CLIENT | FLOW_FIN_SERVER };
    return (flow->ends & FLOW_RESET) != 0 || (flow->ends & BOTH_FINS) == BOTH_FINS;
}

int64_t flow_idle_limit(const struct flow *flow)
{
    if (flow_is_closed(flow))
        return CLOSED_LINGER_NS;
    if (flow_is_half_open(flow))
        return HALF_OPEN_IDLE_NS;
    return flow->payload_seen[CLIENT] && flow->payload_seen[SERVER] ? ESTABLISHED_IDLE_NS
                                                                    : HANDSHAKE_IDLE_NS;
}

/* After how much silence something is to be done about a flow. */
static int64_t attention_limit(const struct flow_table *t, const struct flow *flow)
{
    int64_t limit = flow_idle_limit(flow);
    int64_t park_ns = t->count > PARK_AT_ONCE_FLOWS ? PARK_AT_ONCE_NS
                      : t->count > PARK_SOON_FLOWS  ? PARK_SOON_NS
                                                    : PARK_AFTER_NS;
    bool may_park = flow->connection != NULL && !flow->restless;
    return may_park && park_ns < limit ? park_ns : limit;
}

void flow_hurry(struct flow_table *t, struct flow *flow)
{
    take_from_wheel(t, flow);
    put_in_wheel(t, flow, flow->last_ns + attention_limit(t, flow));
}

/* The first flow of a bucket that is due at now_ns; those in front of it go to later buckets. */
static struct flow *first_due(struct flow_table *t, uint16_t bucket, int64_t now_ns)
{
    while (t->bucket[bucket] != NO_INDEX) {
        struct flow *flow = flow_at(t, t->bucket[bucket]);
        int64_t deadline_ns = flow->last_ns + attention_limit(t, flow);
        if (deadline_ns < now_ns)
            return flow;
        take_from_wheel(t, flow);
        put_in_wheel(t, flow, deadline_ns); /* later than now, so into a later bucket */
    }
    return NULL;
}

struct flow *flow_next_silent(struct flow_table *t, int64_t now_ns)
{
    int64_t now = now_ns / NS_PER_SECOND;
    if (now - t->second > WHEEL_BUCKETS) /* a jump: every bucket is read once */
        t->second = now - WHEEL_BUCKETS;
    while (t->second < now && t->count > 0) {
        struct flow *flow = first_due(t, half_open_bucket_of(t->second + 1), now_ns);
        if (flow == NULL)
            flow = first_due(t, bucket_of(t->second + 1), now_ns);
        if (flow != NULL)
            return flow;
        t->second++;
    }
    if (t->count == 0)
        t->second = now > t->second ? now : t->second;
    return NULL;
}

struct flow *flow_nearest_deadline(struct flow_table *t)
{
    for (int64_t second = t->second + 1; second <= t->second + WHEEL_BUCKETS; second++) {
        uint32_t half_open = t->bucket[half_open_bucket_of(second)];
        uint32_t index = t->bucket[bucket_of(second)];
        if (half_open != NO_INDEX || index != NO_INDEX)
            return flow_at(t, half_open != NO_INDEX ? half_open : index);
    }
    return NULL;
}

struct flow *flow_nearest_half_open(struct flow_table *t)
{
    for (int64_t second = t->second + 1; second <= t->second + HALF_OPEN_BUCKETS; second++) {
        uint32_t index = t->bucket[half_open_bucket_of(second)];
        if (index != NO_INDEX)
            return flow_at(t, index);
    }
    return NULL;
}

size_t flow_count(const struct flow_table *t)
{
    return t->count;
}

size_t flow_half_open_count(const struct flow_table *t)
{
    return t->half_open_count;
}
