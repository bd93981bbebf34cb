/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. Datagrams in the making stand in a table of small sets, by a hash of what
 * RFC 791 and RFC 8200 tell fragments of one datagram by: addresses, protocol and identification,
 * here also the encapsulation around them. Each has a buffer for its payload and a bit for every
 * eight octets that have come, since all offsets are multiples of eight.
 */
#include "fragment.h"

#include "hash.h"

#include <stdlib.h>

enum {
    UNIT = 8, /* octets */
    DATAGRAM_MAX = 65535,
    UNITS_MAX = (DATAGRAM_MAX + UNIT - 1) / UNIT,
    IPV4_HEADER_LEN = 20,
    IPV6_HEADER_LEN = 40,
    HEADER_MAX = IPV6_HEADER_LEN,
};

#define LEN_UNKNOWN UINT32_MAX

#define AGE_MAX_NS (FRAGMENT_AGE_MAX_S * (int64_t)1000000000)

/* Hashed and compared as bytes: no padding. */
struct fragment_key {
    struct address from, to;
    uint32_t id;
    uint32_t encapsulation;
    uint32_t protocol;
    uint32_t version;
};

struct assembly {
    struct fragment_key key;
    int64_t first_ns;
    uint32_t file;
    uint32_t count_in_file;
    uint32_t total_len; /* of the payload, once its last fragment came */
    uint32_t received_len;
    uint32_t captured_end; /* from here on a snaplen cut bytes away */
    bool is_broken;
    uint8_t *bytes; /* HEADER_MAX and the payload; NULL = the place is free */
    size_t capacity;
    uint8_t has_unit[UNITS_MAX / 8 + 1];
};

struct fragments {
    uint64_t seed;
    uint32_t file;
    size_t bytes;      /* of all assemblies */
    uint8_t *complete; /* of the datagram given last */
    struct assembly *assemblies[FRAGMENT_SETS][FRAGMENT_SET_SIZE];
};

struct fragments *fragments_open(uint64_t seed)
{
    struct fragments *f = calloc(1, sizeof *f);
    if (f != NULL)
        f->seed = seed;
    return f;
}

static void give_up(struct fragments *f, struct assembly **place)
{
    struct assembly *a = *place;
    *place = NULL;
    if (a == NULL)
        return;
    f->bytes -= sizeof *a + a->capacity;
    free(a->bytes);
    free(a);
}

static void give_up_all(struct fragments *f)
{
    for (size_t i = 0; i < FRAGMENT_SETS; i++)
        for (size_t k = 0; k < FRAGMENT_SET_SIZE; k++)
            give_up(f, &f->assemblies[i][k]);
}

void fragments_close(struct fragments *f)
{
    if (f == NULL)
        return;
    give_up_all(f);
    free(f->complete);
    free(f);
}

void fragments_begin_file(struct fragments *f)
{
    f->file++;
}

static struct fragment_key key_of(const struct fragment *piece)
{
    return (struct fragment_key){
        .from = piece->from,
        .to = piece->to,
        .id = piece->id,
        .encapsulation = piece->encapsulation,
        .protocol = piece->protocol,
        .version = piece->version,
    };
}

/* Where the datagram of a key is, or can be made: then the place is empty. */
static struct assembly **find(struct fragments *f, const struct fragment_key *key, int64_t now_ns)
{
    uint64_t hash = hash_table((struct bytes){ (const uint8_t *)key, sizeof *key }, f->seed);
    struct assembly **set = f->assemblies[hash % FRAGMENT_SETS], **best = &set[0];
    for (size_t i = 0; i < FRAGMENT_SET_SIZE; i++) {
        bool is_it = set[i] != NULL && memcmp(&set[i]->key, key, sizeof *key) == 0;
        if (is_it && now_ns - set[i]->first_ns <= AGE_MAX_NS)
            return &set[i];
        if (is_it)
            give_up(f, &set[i]);
        bool is_better = set[i] == NULL || (*best != NULL && set[i]->first_ns < (*best)->first_ns);
        if (*best != NULL && is_better)
            best = &set[i];
    }
    give_up(f, best);
    return best;
}

static struct assembly *start(struct fragments *f, const struct fragment_key *key, int64_t now_ns)
{
    struct assembly *a = calloc(1, sizeof *a);
    if (a == NULL)
        return NULL;
    a->key = *key;
    a->first_ns = now_ns;
    a->file = f->file;
    a->total_len = LEN_UNKNOWN;
    a->captured_end = LEN_UNKNOWN;
    f->bytes += sizeof *a;
    return a;
}

/* Whether a fragment is possible at all, and within what is known of its datagram's end. */
static bool fits(const struct assembly *a, const struct fragment *piece)
{
    uint32_t end = piece->offset + piece->len;
    uint32_t header_len = piece->version == 4 ? IPV4_HEADER_LEN : 0;
    if (piece->len == 0 || end > DATAGRAM_MAX - header_len)
        return false;
    if (piece->more)
        return piece->len % UNIT == 0 && end <= a->total_len;
    return a->total_len == LEN_UNKNOWN || a->total_len == end;
}

/* How many units of a fragment have come before. */
static uint32_t units_there(const struct assembly *a, uint32_t first, uint32_t end)
{
    uint32_t count = 0;
    for (uint32_t unit = first; unit < end; unit++)
        count += (unsigned)a->has_unit[unit / 8] >> unit % 8 & 1u;
    return count;
}

/* Whether any unit behind the end that the last fragment tells has come. */
static bool exceeds(const struct assembly *a, const struct fragment *piece)
{
    uint32_t end = (piece->offset + piece->len + UNIT - 1) / UNIT;
    return !piece->more && units_there(a, end, UNITS_MAX) > 0;
}

static bool make_room(struct fragments *f, struct assembly *a, uint32_t end)
{
    size_t wanted = HEADER_MAX + end;
    if (wanted <= a->capacity)
        return true;
    uint8_t *grown = realloc(a->bytes, wanted);
    if (grown == NULL)
        return false;
    memset(grown + a->capacity, 0, wanted - a->capacity);
    f->bytes += wanted - a->capacity;
    a->bytes = grown;
    a->capacity = wanted;
    return true;
}

static void take(struct assembly *a, const struct fragment *piece, uint32_t first, uint32_t end)
{
    struct bytes data = bytes_first(piece->data, piece->len);
    if (data.len > 0)
        memcpy(a->bytes + HEADER_MAX + piece->offset, data.at, data.len);
    if (data.len < piece->len && piece->offset + data.len < a->captured_end)
        a->captured_end = piece->offset + (uint32_t)data.len;
    for (uint32_t unit = first; unit < end; unit++)
        a->has_unit[unit / 8] |= (uint8_t)(1u << unit % 8);
    a->received_len += piece->len;
    if (!piece->more)
        a->total_len = piece->offset + piece->len;
}

static void put_16(uint8_t *at, uint32_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

/* Writes a header in front of the payload, as of a packet never fragmented; returns its length. */
static size_t write_header(struct assembly *a, const struct fragment *piece)
{
    uint8_t *payload = a->bytes + HEADER_MAX;
    if (piece->version == 4) {
        uint8_t *h = payload - IPV4_HEADER_LEN;
        memset(h, 0, IPV4_HEADER_LEN);
        h[0] = 0x45;
        put_16(h + 2, IPV4_HEADER_LEN + a->total_len);
        put_16(h + 4, piece->id);
        h[8] = piece->ttl;
        h[9] = piece->protocol;
        memcpy(h + 12, piece->from.octet + 12, 4);
        memcpy(h + 16, piece->to.octet + 12, 4);
        return IPV4_HEADER_LEN;
    }
    uint8_t *h = payload - IPV6_HEADER_LEN;
    memset(h, 0, IPV6_HEADER_LEN);
    h[0] = 0x60;
    put_16(h + 4, a->total_len);
    h[6] = piece->protocol;
    h[7] = piece->ttl;
    memcpy(h + 8, piece->from.octet, sizeof piece->from.octet);
    memcpy(h + 24, piece->to.octet, sizeof piece->to.octet);
    return IPV6_HEADER_LEN;
}

/* Hands the bytes over from the assembly, which is done with. */
static struct datagram complete(struct fragments *f, struct assembly **place,
                                const struct fragment *piece)
{
    struct assembly *a = *place;
    size_t header_len = write_header(a, piece);
    uint32_t captured = a->captured_end < a->total_len ? a->captured_end : a->total_len;
    free(f->complete);
    f->complete = a->bytes;
    a->bytes = NULL;
    struct datagram datagram = {
        .ip = { f->complete + HEADER_MAX - header_len, header_len + captured },
        .wire_len = (uint32_t)header_len + a->total_len,
        .earlier_count = a->count_in_file - 1,
    };
    give_up(f, place);
    return datagram;
}

enum drop fragments_add(struct fragments *f, const struct fragment *piece,
                        struct datagram *ret_datagram)
{
    struct fragment_key key = key_of(piece);
    struct assembly **place = find(f, &key, piece->at_ns);
    if (*place == NULL)
        *place = start(f, &key, piece->at_ns);
    struct assembly *a = *place;
    if (a == NULL)
        return DROP_FRAGMENT_OVER_CAP;

    uint32_t first = piece->offset / UNIT, end = (piece->offset + piece->len + UNIT - 1) / UNIT;
    if (a->is_broken || !fits(a, piece) || exceeds(a, piece)) {
        a->is_broken = true; /* and stays until it is old: later fragments must not start anew */
        return DROP_FRAGMENT_INVALID;
    }
    if (a->file != f->file) {
        a->file = f->file;
        a->count_in_file = 0;
    }
    uint32_t there = units_there(a, first, end);
    a->count_in_file++;
    if (there == end - first)
        return DROP_FRAGMENT;
    if (there > 0) {
        a->is_broken = true;
        return DROP_FRAGMENT_INVALID;
    }
    if (!make_room(f, a, piece->offset + piece->len) || f->bytes > FRAGMENT_BYTES_MAX) {
        give_up_all(f);
        return DROP_FRAGMENT_OVER_CAP;
    }
    take(a, piece, first, end);
    if (a->received_len != a->total_len)
        return DROP_FRAGMENT;
    *ret_datagram = complete(f, place, piece);
    return DROP_NONE;
}
