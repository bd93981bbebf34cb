/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * Two records that look alike in one flow differ over many: a server's tickets have one length, or
 * a few, and their lengths come back in the ClientHellos that use them; its answers vary.
 *
 *   flow 1   Finished | 250   250   1412 |        tickets of 208 bytes were issued ...
 *   flow 2   ClientHello with an identity of 208 | Finished | 250   977 |
 *                                    250 = 34 + 208 + 8: this server's tickets take 8 bytes more
 *
 * Each flow adds what is certain or fixed by its own arithmetic; counting and minima do not depend
 * on the order. When servers are more than PROFILES_MAX, a hash decides which ones stay: as the
 * table fills, only keys whose hash ends in one more zero bit are kept. A key that stays in the end
 * was never put out before, so its counts are whole. The same holds for merging: what stays in the
 * whole stayed in each part.
 *
 * Cannot be told: tickets of a server whose clients never come back and never wait before they ask.
 */
#include "profile.h"

#include "hash.h"
#include "hello.h"
#include "http2.h"
#include "ticket.h"

#include <stdlib.h>

enum { SERVER_NAME_MAX = 255, TABLE_SIZE = 2 * PROFILES_MAX, EARLY_DATA_EXTENSION_LEN = 4 };

/* Fewer resumed or waiting flows are an accident, not knowledge. */
enum { KNOWN_AFTER = 2 };

struct profiles {
    struct profile *table[TABLE_SIZE];    /* open addressing, by the hash's upper half */
    struct profile *sorted[PROFILES_MAX]; /* after profiles_settle() */
    bool settled;
    size_t count;
    unsigned level; /* kept keys end in so many zero bits */
};

/* ---- keys ---- */

struct key {
    uint8_t octet[sizeof(struct address) + sizeof(uint16_t) + 1 + SERVER_NAME_MAX];
    size_t len;
};

/* name == NULL and !all_names: flows without a server name. */
static struct key key_of(const struct endpoint *server, const char *name, bool all_names)
{
    struct key k = { 0 };
    memcpy(k.octet, server->address.octet, sizeof server->address.octet);
    k.len = sizeof server->address.octet;
    k.octet[k.len++] = (uint8_t)(server->port >> 8);
    k.octet[k.len++] = (uint8_t)server->port;
    k.octet[k.len++] = all_names ? 2 : name != NULL;
    if (all_names || name == NULL)
        return k;
    size_t name_len = strnlen(name, SERVER_NAME_MAX);
    memcpy(k.octet + k.len, name, name_len);
    k.len += name_len;
    return k;
}

static uint64_t key_hash(const struct key *k)
{
    struct hash128 h = hash_stable((struct bytes){ k->octet, k->len });
    struct reader r = reader_of((struct bytes){ h.octet, sizeof h.octet });
    return reader_be(&r, 8);
}

static bool is_kept(const struct profiles *p, uint64_t hash)
{
    return (hash & ((UINT64_C(1) << p->level) - 1)) == 0;
}

static size_t first_slot(uint64_t hash)
{
    return (size_t)(hash >> 32) % TABLE_SIZE;
}

static bool is_of(const struct profile *profile, const struct key *k)
{
    struct key own = key_of(&profile->server, profile->server_name, profile->is_wide);
    return own.len == k->len && memcmp(own.octet, k->octet, k->len) == 0;
}

/* The slot of a key: its profile, or the empty one where it belongs. */
static struct profile **slot_of(struct profile **table, const struct key *k, uint64_t hash)
{
    size_t slot = first_slot(hash);
    while (table[slot] != NULL && !is_of(table[slot], k))
        slot = (slot + 1) % TABLE_SIZE;
    return &table[slot];
}

/* ---- the table ---- */

struct profiles *profiles_open(void)
{
    return calloc(1, sizeof(struct profiles));
}

static void profile_free(struct profile *profile)
{
    free(profile->server_name);
    free(profile);
}

void profiles_close(struct profiles *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; i < TABLE_SIZE; i++)
        if (p->table[i] != NULL)
            profile_free(p->table[i]);
    free(p);
}

static uint64_t profile_hash(const struct profile *profile)
{
    struct key k = key_of(&profile->server, profile->server_name, profile->is_wide);
    return key_hash(&k);
}

/* Asks one more zero bit of the keys and fills the table anew with those that have it. */
static enum status raise_level(struct profiles *p)
{
    struct profile **kept = calloc(PROFILES_MAX, sizeof *kept);
    if (kept == NULL)
        return STATUS_NO_MEMORY;
    p->level++;
    size_t count = 0;
    for (size_t i = 0; i < TABLE_SIZE; i++) {
        struct profile *profile = p->table[i];
        p->table[i] = NULL;
        if (profile == NULL)
            continue;
        if (is_kept(p, profile_hash(profile)))
            kept[count++] = profile;
        else
            profile_free(profile);
    }
    for (size_t i = 0; i < count; i++) {
        struct key k = key_of(&kept[i]->server, kept[i]->server_name, kept[i]->is_wide);
        *slot_of(p->table, &k, key_hash(&k)) = kept[i];
    }
    p->count = count;
    free(kept);
    return STATUS_OK;
}

static struct profile *profile_new(const struct endpoint *server, const char *name, bool is_wide)
{
    struct profile *profile = calloc(1, sizeof *profile);
    if (profile == NULL)
        return NULL;
    profile->server = *server;
    profile->is_wide = is_wide;
    profile->first_ns = INT64_MAX;
    if (name == NULL || is_wide)
        return profile;
    profile->server_name = strndup(name, SERVER_NAME_MAX);
    if (profile->server_name == NULL) {
        free(profile);
        return NULL;
    }
    return profile;
}

/* *ret_profile is NULL when the key is not kept. */
static enum status find_or_add(struct profiles *p, const struct endpoint *server, const char *name,
                               bool is_wide, struct profile **ret_profile)
{
    struct key k = key_of(server, name, is_wide);
    uint64_t hash = key_hash(&k);
    while (is_kept(p, hash)) {
        struct profile **slot = slot_of(p->table, &k, hash);
        if (*slot == NULL && p->count == PROFILES_MAX) {
            enum status status = raise_level(p);
            if (status != STATUS_OK)
                return status;
            continue;
        }
        if (*slot == NULL) {
            *slot = profile_new(server, name, is_wide);
            if (*slot == NULL)
                return STATUS_NO_MEMORY;
            p->count++;
        }
        *ret_profile = *slot;
        return STATUS_OK;
    }
    *ret_profile = NULL;
    return STATUS_OK;
}

/* ---- learning ---- */

/*
 * Whether the server sent a record before it had a byte of any request, captured or not: it
 * acknowledges nothing behind the client's Finished, and early data cannot have asked before.
 */
static bool is_unasked(const struct facts *f, const struct tls13 *h, const struct record *r)
{
    int64_t finished_end = record_end(series_at(&h->client, h->client_finished));
    return !f->early_data_offered && f->client_hello_complete && h->finished_by_length &&
           record_sent(r, finished_end + 1) == SENT_BEFORE;
}

static void learn_record(struct profile *profile, const struct facts *f, const struct tls13 *h,
                         const struct record *r)
{
    uint32_t overhead = h->len.overhead;
    if (is_unasked(f, h, r)) {
        if (ticket_is_possible(r->len, overhead) && !http2_is_settings(r->len, overhead))
            tally_add(&profile->unasked, r->len, f->start_ns);
        return;
    }
    uint32_t rest = f->psk_selected ? ticket_rest(r->len, overhead, f->psk_identity_len) : 0;
    if (rest != 0)
        tally_add(&profile->rests, rest, f->start_ns);
}

/* The records right behind the server's Finished, as far as tickets can stand. */
static void learn_behind_finished(struct profile *profile, const struct facts *f,
                                  const struct tls13 *h)
{
    enum { LOOKED_AT = 4 };
    if (h->client_finished == NOWHERE || h->server_finished == NOWHERE || h->server_broken ||
        h->client_broken || h->server_padding == PADDING_BLOCK)
        return;
    int looked = 0;
    for (int place = h->server_finished + 1; place < h->server.count && looked < LOOKED_AT;
         place++) {
        const struct record *r = series_at(&h->server, place);
        if (record_is_gap(r) || r->flags & RECORD_UNSURE)
            return;
        if (r->type != RECORD_APPLICATION_DATA || tls13_is_final_alert(h, SERVER, place))
            continue;
        learn_record(profile, f, h, r);
        looked++;
    }
}

/*
 * What else decides on the length of EncryptedExtensions, folded to 16 bits: what the client
 * offered, and whether the server resumed (some acknowledge server_name only in full handshakes).
 */
static uint32_t extensions_key(const struct facts *f, uint32_t len)
{
    uint32_t fold = f->psk_selected ? 1 : 0;
    for (const char *at = f->alpn_offered; at != NULL && *at != '\0'; at++)
        fold = fold * 31 + (uint8_t)*at;
    fold = fold * 31 + cipher_suite_hash_len(f->cipher_suite);
    return (fold & 0xffff) << 16 | (len & 0xffff);
}

static void learn_flight(struct profile *profile, const struct facts *f, const struct tls13 *h)
{
    if (h->server_flight == NOWHERE || h->server_broken || h->shape == FLIGHT_UNSEEN)
        return;
    profile->flights[h->shape]++;
    if (f->early_data_offered || f->hello_retry || !f->client_hello_complete)
        return;
    uint32_t number = extensions_key(f, series_at(&h->server, h->server_flight)->len);
    if (h->shape == FLIGHT_SEPARATE)
        tally_add(&profile->extensions, number, f->start_ns);
    else if (f->psk_selected)
        tally_add(&profile->one_records, number, f->start_ns);
}

static void learn_flow(struct profile *profile, const struct facts *f, const struct tls13 *h)
{
    profile->flows++;
    profile->is_new = true;
    if (f->start_ns < profile->first_ns)
        profile->first_ns = f->start_ns;
    if (f->start_ns > profile->last_ns)
        profile->last_ns = f->start_ns;
    if (f->psk_offered && f->psk_identity_len >= TICKET_LEN_MIN)
        tally_add(&profile->identities, f->psk_identity_len, f->start_ns);
    learn_flight(profile, f, h);
    learn_behind_finished(profile, f, h);
}

enum status profiles_learn(struct profiles *p, const struct facts *f)
{
    if (!f->tls || !f->server_hello_complete || !version_is_13(f->version))
        return STATUS_OK;
    struct tls13 h = tls13_of(f);
    for (int is_wide = 0; is_wide <= 1; is_wide++) {
        struct profile *profile;
        enum status status = find_or_add(p, &f->server, f->server_name, is_wide != 0, &profile);
        if (status != STATUS_OK)
            return status;
        if (profile != NULL)
            learn_flow(profile, f, &h);
    }
    return STATUS_OK;
}

/* ---- merging ---- */

static void merge_tally(struct tally *into, const struct tally *from)
{
    for (unsigned i = 0; i < from->used; i++)
        tally_merge(into, &from->entry[i]);
}

static uint32_t add_saturated(uint32_t a, uint32_t b)
{
    return b > UINT32_MAX - a ? UINT32_MAX : a + b;
}

static void merge(struct profile *into, const struct profile *from)
{
    into->flows += from->flows;
    if (from->first_ns < into->first_ns)
        into->first_ns = from->first_ns;
    if (from->last_ns > into->last_ns)
        into->last_ns = from->last_ns;
    for (unsigned shape = 0; shape <= FLIGHT_ONE; shape++)
        into->flights[shape] = add_saturated(into->flights[shape], from->flights[shape]);
    merge_tally(&into->identities, &from->identities);
    merge_tally(&into->rests, &from->rests);
    merge_tally(&into->unasked, &from->unasked);
    merge_tally(&into->extensions, &from->extensions);
    merge_tally(&into->one_records, &from->one_records);
}

enum status profiles_merge(struct profiles *p, const struct profile *from, unsigned level)
{
    struct profile *into;
    enum status status = STATUS_OK;
    while (p->level < level && status == STATUS_OK)
        status = raise_level(p);
    if (status == STATUS_OK)
        status = find_or_add(p, &from->server, from->server_name, from->is_wide, &into);
    if (status == STATUS_OK && into != NULL)
        merge(into, from);
    return status;
}

enum status profiles_merge_all(struct profiles *p, const struct profiles *from)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < TABLE_SIZE && status == STATUS_OK; i++) {
        const struct profile *profile = from->table[i];
        struct profile *into = NULL;
        if (profile == NULL)
            continue;
        status = profiles_merge(p, profile, from->level);
        if (status == STATUS_OK)
            status =
                find_or_add(p, &profile->server, profile->server_name, profile->is_wide, &into);
        if (into != NULL)
            into->is_new |= profile->is_new;
    }
    return status;
}

unsigned profiles_level(const struct profiles *p)
{
    return p->level;
}

/* ---- reading ---- */

const struct profile *profiles_of(const struct profiles *p, const struct endpoint *server,
                                  const char *name, bool all_names)
{
    struct key k = key_of(server, name, all_names);
    return *slot_of((struct profile **)p->table, &k, key_hash(&k));
}

static int compare(const void *a, const void *b)
{
    const struct profile *x = *(struct profile *const *)a, *y = *(struct profile *const *)b;
    int order = endpoint_compare(&x->server, &y->server);
    if (order != 0)
        return order;
    struct key kx = key_of(&x->server, x->server_name, x->is_wide);
    struct key ky = key_of(&y->server, y->server_name, y->is_wide);
    size_t len = kx.len < ky.len ? kx.len : ky.len;
    order = memcmp(kx.octet, ky.octet, len);
    return order != 0 ? order : (kx.len > ky.len) - (kx.len < ky.len);
}

void profiles_settle(struct profiles *p)
{
    size_t n = 0;
    for (size_t i = 0; i < TABLE_SIZE; i++) {
        struct profile *profile = p->table[i];
        if (profile == NULL)
            continue;
        p->sorted[n++] = profile;
        profile->wider = profile->is_wide ? NULL : profiles_of(p, &profile->server, NULL, true);
    }
    qsort(p->sorted, n, sizeof *p->sorted, compare);
    p->settled = true;
}

const struct profile *profiles_find(const struct profiles *p, const struct facts *f)
{
    const struct profile *named = profiles_of(p, &f->server, f->server_name, false);
    return named != NULL ? named : profiles_of(p, &f->server, NULL, true);
}

size_t profiles_count(const struct profiles *p)
{
    return p->settled ? p->count : 0;
}

const struct profile *profiles_at(const struct profiles *p, size_t index)
{
    assert(index < profiles_count(p));
    return p->sorted[index];
}

/*
 * Whether tickets of that length were issued at a time. Clients bring them back for up to a week
 * (RFC 8446 4.6.1, RFC 9846 4.7.1), so those that were offered later count, but only where none
 * were offered around that time: otherwise a deploy between the two may have changed their length.
 */
static bool was_issued(const struct tally *identities, const struct tally_entry *identity,
                       int64_t at_ns)
{
    static const int64_t LIFETIME_NS = INT64_C(7) * 86400 * 1000000000;
    if (tally_holds(identity, at_ns))
        return true;
    return tally_total(identities, at_ns) == 0 && at_ns < identity->first_ns &&
           at_ns >= identity->first_ns - LIFETIME_NS;
}

/* Whether a record fits a ticket that clients brought back, the way this server's records do. */
static bool fits_identities(const struct profile *p, uint32_t len, uint32_t overhead, int64_t at_ns)
{
    for (unsigned i = 0; i < p->identities.used; i++) {
        const struct tally_entry *identity = &p->identities.entry[i];
        uint32_t rest = ticket_rest(len, overhead, identity->number);
        if (rest != 0 && was_issued(&p->identities, identity, at_ns) &&
            (p->rests.used == 0 || tally_find(&p->rests, rest, at_ns) != NULL))
            return true;
    }
    return false;
}

bool profile_knows_ticket(const struct profile *p, uint32_t len, uint32_t overhead, int64_t at_ns)
{
    for (; p != NULL; p = p->wider)
        if (tally_find(&p->unasked, len, at_ns) != NULL || fits_identities(p, len, overhead, at_ns))
            return true;
    return false;
}

static uint64_t identities_offered(const struct profile *p, int64_t at_ns)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < p->identities.used; i++)
        if (was_issued(&p->identities, &p->identities.entry[i], at_ns))
            sum += p->identities.entry[i].count;
    return sum;
}

bool profile_knows_tickets(const struct profile *p, int64_t at_ns)
{
    for (; p != NULL; p = p->wider)
        if (identities_offered(p, at_ns) >= KNOWN_AFTER ||
            tally_total(&p->unasked, at_ns) >= KNOWN_AFTER)
            return true;
    return false;
}

enum flight_says profile_flight_says(const struct profile *p, const struct facts *f,
                                     const struct tls13 *h)
{
    if (p == NULL || p->is_wide || h->server_flight == NOWHERE || h->server_broken ||
        h->server_padding != PADDING_NONE || f->hello_retry)
        return FLIGHT_SAYS_NOTHING;
    const struct tally *usual = h->shape == FLIGHT_SEPARATE ? &p->extensions : &p->one_records;
    uint32_t len = series_at(&h->server, h->server_flight)->len;
    if (len < EARLY_DATA_EXTENSION_LEN)
        return FLIGHT_SAYS_NOTHING;
    bool as_usual = tally_find(usual, extensions_key(f, len), f->start_ns) != NULL;
    bool longer =
        tally_find(usual, extensions_key(f, len - EARLY_DATA_EXTENSION_LEN), f->start_ns) != NULL;
    if (as_usual == longer)
        return FLIGHT_SAYS_NOTHING;
    return longer ? FLIGHT_SAYS_ACCEPTED : FLIGHT_SAYS_REJECTED;
}
