/* SPDX-License-Identifier: Apache-2.0 */
#include "neighbour.h"

#include "hash.h"

#include <endian.h>
#include <stdlib.h>

#define NS_PER_MINUTE (60 * INT64_C(1000000000))

enum { MINUTE_BITS = 28, RTT_BITS = 36 };

/* One client in one minute; an open-addressing table of them, half of it empty. */
struct neighbour {
    uint64_t hash; /* of client and minute */
    uint64_t minute : MINUTE_BITS;
    uint64_t least_ns : RTT_BITS; /* 0 = the place is empty */
};
_Static_assert(sizeof(struct neighbour) == 16, "there are two million of them");
#define RTT_MAX_NS ((INT64_C(1) << RTT_BITS) - 1) /* more than a minute is no round trip */
_Static_assert(INT64_MAX / NS_PER_MINUTE < 1 << MINUTE_BITS, "every time has its minute");

struct neighbours {
    struct neighbour *table;
    size_t size, count;
    uint64_t seed;
};

struct neighbours *neighbours_open(uint64_t seed)
{
    struct neighbours *n = calloc(1, sizeof *n);
    if (n != NULL)
        n->seed = seed;
    return n;
}

void neighbours_close(struct neighbours *n)
{
    if (n == NULL)
        return;
    free(n->table);
    free(n);
}

static uint64_t hash_of(const struct neighbours *n, const struct address *client, int64_t minute)
{
    uint8_t key[sizeof *client + sizeof minute];
    memcpy(key, client, sizeof *client);
    memcpy(key + sizeof *client, &minute, sizeof minute);
    return hash_table((struct bytes){ key, sizeof key }, n->seed);
}

/* The place of that hash, or the empty one where it would go. */
static struct neighbour *place_of(const struct neighbours *n, uint64_t hash)
{
    size_t i = (size_t)hash & (n->size - 1);
    while (n->table[i].least_ns != 0 && n->table[i].hash != hash)
        i = (i + 1) & (n->size - 1);
    return &n->table[i];
}

static enum status grow(struct neighbours *n)
{
    struct neighbour *old = n->table;
    size_t old_size = n->size;
    struct neighbour *table = calloc(old_size == 0 ? 1024 : 2 * old_size, sizeof *table);
    if (table == NULL)
        return STATUS_NO_MEMORY;
    n->table = table;
    n->size = old_size == 0 ? 1024 : 2 * old_size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].least_ns != 0)
            *place_of(n, old[i].hash) = old[i];
    free(old);
    return STATUS_OK;
}

static enum status add(struct neighbours *n, const struct neighbour *one)
{
    if (2 * (n->count + 1) > n->size && n->count < NEIGHBOURS_MAX) {
        enum status status = grow(n);
        if (status != STATUS_OK)
            return status;
    }
    struct neighbour *place = place_of(n, one->hash);
    if (place->least_ns == 0) {
        if (n->count >= NEIGHBOURS_MAX)
            return STATUS_OK;
        n->count++;
        *place = *one;
    } else if (one->least_ns < place->least_ns) {
        place->least_ns = one->least_ns;
    }
    return STATUS_OK;
}

enum status neighbours_add(struct neighbours *n, const struct address *client, int64_t start_ns,
                           int64_t rtt_ns)
{
    if (rtt_ns <= 0 || rtt_ns > RTT_MAX_NS || start_ns < 0)
        return STATUS_OK;
    int64_t minute = start_ns / NS_PER_MINUTE;
    struct neighbour one = { .hash = hash_of(n, client, minute),
                             .minute = (uint32_t)minute & ((1 << MINUTE_BITS) - 1),
                             .least_ns = (uint64_t)rtt_ns & RTT_MAX_NS };
    return add(n, &one);
}

int64_t neighbours_least(const struct neighbours *n, const struct address *client, int64_t start_ns)
{
    int64_t least = INT64_MIN;
    int64_t minute = start_ns / NS_PER_MINUTE;
    for (int64_t m = minute - NEIGHBOUR_MINUTES; n->size > 0 && m <= minute + NEIGHBOUR_MINUTES;
         m++) {
        int64_t found = (int64_t)place_of(n, hash_of(n, client, m))->least_ns;
        if (found != 0 && (least == INT64_MIN || found < least))
            least = found;
    }
    return least;
}

static void code_neighbour(struct coder *c, struct neighbour *one)
{
    uint64_t hash = htole64(one->hash);
    code_octets(c, (uint8_t *)&hash, sizeof hash);
    one->hash = le64toh(hash);
    one->minute = code_number(c, one->minute, (1 << MINUTE_BITS) - 1) & ((1 << MINUTE_BITS) - 1);
    one->least_ns = code_number(c, one->least_ns, RTT_MAX_NS) & RTT_MAX_NS;
}

static void unpack_neighbours(struct coder *c, struct neighbours *n)
{
    for (uint64_t left = code_number(c, 0, NEIGHBOURS_MAX); left > 0 && !c->failed; left--) {
        struct neighbour one = { 0 };
        code_neighbour(c, &one);
        c->failed |= one.least_ns == 0;
        if (!c->failed)
            c->failed = add(n, &one) != STATUS_OK;
    }
}

void neighbours_code(struct coder *c, struct neighbours *n, int64_t now_ns)
{
    code_u64(c, &n->seed);
    if (coder_unpacks(c)) {
        unpack_neighbours(c, n);
        return;
    }
    /* one more, since flows of the next run may begin a little before now_ns */
    int64_t from = now_ns / NS_PER_MINUTE - NEIGHBOUR_MINUTES - 1;
    uint64_t count = 0;
    for (size_t i = 0; i < n->size; i++)
        count += n->table[i].least_ns != 0 && (int64_t)n->table[i].minute >= from;
    code_number(c, count, NEIGHBOURS_MAX);
    for (size_t i = 0; i < n->size; i++)
        if (n->table[i].least_ns != 0 && (int64_t)n->table[i].minute >= from)
            code_neighbour(c, &n->table[i]);
}
