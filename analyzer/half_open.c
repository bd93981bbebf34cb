/* SPDX-License-Identifier: Apache-2.0 */
#include "half_open.h"

#include "hash.h"

#include <math.h>
#include <stdlib.h>

/* What began in a second: half-open flows that have rows, and connections. */
struct second {
    int64_t second;
    uint32_t rows, connections;
};

enum { SECONDS_KEPT = 256 }; /* flows end in about the order in which they began */

struct half_opens {
    struct second seconds[SECONDS_KEPT]; /* by second */
    struct half_open_count *counts;
    uint32_t *slots; /* index into counts + 1; 0 = empty; twice the capacity */
    size_t count, capacity;
    uint64_t seed;
};

enum { FIRST_CAPACITY = 256, PREFIX_BITS = 256 };

struct half_opens *half_opens_open(uint64_t seed)
{
    struct half_opens *h = calloc(1, sizeof *h);
    if (h != NULL)
        h->seed = seed;
    return h;
}

void half_opens_close(struct half_opens *h)
{
    if (h == NULL)
        return;
    free(h->counts);
    free(h->slots);
    free(h);
}

static size_t slot_of(const struct half_opens *h, const struct endpoint *server, int64_t second)
{
    uint8_t key[sizeof *server + sizeof second];
    memcpy(key, server, sizeof *server);
    memcpy(key + sizeof *server, &second, sizeof second);
    size_t mask = 2 * h->capacity - 1;
    size_t i = (size_t)hash_table((struct bytes){ key, sizeof key }, h->seed) & mask;
    while (h->slots[i] != 0) {
        const struct half_open_count *c = &h->counts[h->slots[i] - 1];
        if (c->second == second && endpoint_equal(&c->server, server))
            break;
        i = (i + 1) & mask;
    }
    return i;
}

static enum status grow(struct half_opens *h)
{
    size_t capacity = h->capacity == 0 ? FIRST_CAPACITY : 2 * h->capacity;
    struct half_open_count *counts = realloc(h->counts, capacity * sizeof *counts);
    if (counts == NULL)
        return STATUS_NO_MEMORY;
    h->counts = counts;
    uint32_t *slots = calloc(2 * capacity, sizeof *slots);
    if (slots == NULL)
        return STATUS_NO_MEMORY;
    free(h->slots);
    h->slots = slots;
    h->capacity = capacity;
    for (size_t i = 0; i < h->count; i++)
        h->slots[slot_of(h, &counts[i].server, counts[i].second)] = (uint32_t)i + 1;
    return STATUS_OK;
}

static struct second *second_of(struct half_opens *h, int64_t second)
{
    struct second *s = &h->seconds[(uint64_t)second % SECONDS_KEPT];
    if (s->second != second)
        *s = (struct second){ .second = second };
    return s;
}

/* Whether one more half-open flow of a second has a row. */
static bool take_row(struct second *s)
{
    uint32_t most =
        s->connections > HALF_OPEN_SECOND_ROWS_MIN ? s->connections : HALF_OPEN_SECOND_ROWS_MIN;
    bool has_row = s->rows < most;
    s->rows += has_row;
    return has_row;
}

void half_opens_note_connection(struct half_opens *h, int64_t start_ns)
{
    struct second *s = second_of(h, start_ns / 1000000000);
    s->connections += s->connections < UINT32_MAX;
}

enum status half_opens_add(struct half_opens *h, const struct endpoint *server,
                           const struct address *client, int64_t start_ns, bool *ret_row)
{
    static const struct endpoint OTHERS = { 0 };
    if (h->count == h->capacity && h->capacity < HALF_OPEN_COUNTS_MAX) {
        enum status status = grow(h);
        if (status != STATUS_OK)
            return status;
    }
    int64_t second = start_ns / 1000000000;
    size_t slot = slot_of(h, server, second);
    if (h->slots[slot] == 0 && h->count + 1 >= HALF_OPEN_COUNTS_MAX) {
        server = &OTHERS;
        second = 0;
        slot = slot_of(h, server, second);
    }
    if (h->slots[slot] == 0) {
        h->counts[h->count] = (struct half_open_count){ .server = *server, .second = second };
        h->slots[slot] = (uint32_t)++h->count;
    }
    struct half_open_count *c = &h->counts[h->slots[slot] - 1];
    struct address prefix = address_prefix(client, address_is_ipv4(client) ? 96 + 24 : 48);
    uint64_t bit = hash_table((struct bytes){ prefix.octet, sizeof prefix.octet }, 0) % PREFIX_BITS;
    c->prefixes_seen[bit / 64] |= UINT64_C(1) << (bit % 64);
    *ret_row = c->flows++ < HALF_OPEN_ROWS_MAX && take_row(second_of(h, start_ns / 1000000000));
    return STATUS_OK;
}

void half_opens_remove(struct half_opens *h, const struct endpoint *server, int64_t start_ns)
{
    if (h->capacity == 0)
        return;
    size_t slot = slot_of(h, server, start_ns / 1000000000);
    if (h->slots[slot] != 0 && h->counts[h->slots[slot] - 1].flows > 0)
        h->counts[h->slots[slot] - 1].flows--;
}

const struct half_open_count *half_opens_all(const struct half_opens *h, size_t *ret_count)
{
    *ret_count = h->count;
    return h->counts;
}

int64_t half_open_prefixes(const struct half_open_count *c)
{
    int set = 0;
    for (unsigned i = 0; i < 4; i++)
        set += __builtin_popcountll(c->prefixes_seen[i]);
    if (set == PREFIX_BITS)
        set = PREFIX_BITS - 1; /* full: more than can be told */
    return llround(-PREFIX_BITS * log(1.0 - (double)set / PREFIX_BITS)); /* linear counting */
}

static void code_count(struct coder *c, struct half_open_count *count)
{
    code_octets(c, count->server.address.octet, sizeof count->server.address.octet);
    code_u16(c, &count->server.port);
    count->second = (int64_t)code_number(c, (uint64_t)count->second, INT64_MAX / 1000000000);
    code_u64(c, &count->flows);
    for (unsigned i = 0; i < 4; i++)
        code_u64(c, &count->prefixes_seen[i]);
}

/* The seconds that matter still, each with its number. */
static void code_seconds(struct coder *c, struct half_opens *h, int64_t from_second)
{
    uint64_t count = 0;
    for (unsigned i = 0; i < SECONDS_KEPT; i++)
        count += h->seconds[i].second >= from_second;
    count = code_number(c, count, SECONDS_KEPT);
    for (unsigned i = 0; count > 0; i++) {
        struct second s = coder_unpacks(c) ? (struct second){ 0 } : h->seconds[i];
        if (!coder_unpacks(c) && s.second < from_second)
            continue;
        code_i64(c, &s.second);
        code_u32(c, &s.rows);
        code_u32(c, &s.connections);
        *second_of(h, s.second) = s;
        count--;
    }
}

static void unpack_counts(struct coder *c, struct half_opens *h)
{
    for (uint64_t left = code_number(c, 0, HALF_OPEN_COUNTS_MAX); left > 0 && !c->failed; left--) {
        struct half_open_count count = { .is_carried = true };
        code_count(c, &count);
        c->failed |= h->count == h->capacity && grow(h) != STATUS_OK;
        if (c->failed)
            return;
        size_t slot = slot_of(h, &count.server, count.second);
        c->failed |= h->slots[slot] != 0;
        h->counts[h->count] = count;
        h->slots[slot] = (uint32_t)++h->count;
    }
}

void half_opens_code(struct coder *c, struct half_opens *h, int64_t from_second)
{
    code_seconds(c, h, from_second);
    if (coder_unpacks(c)) {
        unpack_counts(c, h);
        return;
    }
    uint64_t count = 0;
    for (size_t i = 0; i < h->count; i++)
        count += h->counts[i].second >= from_second;
    code_number(c, count, HALF_OPEN_COUNTS_MAX);
    for (size_t i = 0; i < h->count; i++)
        if (h->counts[i].second >= from_second)
            code_count(c, &h->counts[i]);
}
