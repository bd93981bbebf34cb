/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A record is sealed under a key and its number under that key, and neither is on the wire. The
 * keys of a side follow one another, and each starts to count at 0:
 *
 *   TLS 1.3 client   early data ... EndOfEarlyData | [certificate] Finished | application data ...
 *   TLS 1.3 server                     flight ... Finished | application data ... KeyUpdate | ...
 *   TLS 1.2          clear ... ChangeCipherSpec | Finished, application data ...
 *
 * What is opened says itself when the next key begins. Where that is not enough, a record is tried
 * under what may be its key and number: early data is refused without a word, so Finished is tried
 * behind each early record; records that were not captured may have counted, and may have ended a
 * key, so the numbers and keys behind them are tried, up to TRIALS_MAX. A record that opens is
 * authentic, which ends all doubt.
 *
 * Cannot be opened: records with bytes missing, those behind more lost records than are tried or
 * behind a lost KeyUpdate, and those of an epoch whose secret the key log does not have.
 */
#include "keyed.h"

#include "content.h"
#include "decrypt.h"

#include <stdlib.h>

enum {
    TRIALS_MAX = 16, /* numbers tried of one key behind lost records */
    FAILURES_MAX =
        24, /* records in a row that do not open: the keys are wrong, or too much is lost */
};

enum epoch { EPOCH_CLEAR, EPOCH_EARLY, EPOCH_HANDSHAKE, EPOCH_TRAFFIC, EPOCHS };

struct sealed {
    struct sealed *next;
    uint16_t index; /* of its record in the facts + 1; 0 = not kept */
    uint16_t version;
    uint8_t type;
    bool cut;  /* bytes are missing */
    bool lost; /* record boundaries were lost before it */
    uint32_t len, filled;
    uint8_t body[];
};

struct keyed_side {
    struct sealed *first, **end; /* complete ones that wait, in order */
    struct sealed *current;      /* being read; NULL = none, or it is clear */
    bool ccs_seen;
    uint8_t epoch;     /* enum epoch */
    uint64_t sequence; /* of the next record in it */
    unsigned unread;   /* records since the last that was opened which may have counted */
    unsigned failures; /* in a row */
    bool given_up;
    struct secret traffic;   /* of this generation; TLS 1.3 */
    struct record_key key12; /* TLS 1.2 */
    struct content_reader content;
};

struct keyed {
    const struct secrets *secrets;
    struct secret_set set;
    bool has_secrets;
    uint8_t client_random[CLIENT_RANDOM_LEN];
    uint8_t client; /* enum side: who sent the ClientHello */
    bool server_hello_seen;
    bool is_13;
    uint16_t suite;
    uint16_t early_suite; /* that of the ticket, 0 = not known yet; it may differ when refused */
    struct keyed_side side[2];
    size_t records, bytes; /* that are kept */
    unsigned opened, failed;
    int64_t request_end; /* client offset behind its first application record; 0 = none yet */
    bool is_answered;
};

/* ---- life ---- */

static struct bytes random_of(const struct keyed *k)
{
    return (struct bytes){ k->client_random, sizeof k->client_random };
}

enum status keyed_open(const struct secrets *secrets, enum side side,
                       const struct client_hello *hello, struct keyed **ret_keyed)
{
    struct secret_set set;
    *ret_keyed = NULL;
    bool found = secrets_find(secrets, hello->random, &set);
    if (hello->random.len != CLIENT_RANDOM_LEN || (!found && !secrets_may_grow(secrets)))
        return STATUS_OK;
    struct keyed *k = calloc(1, sizeof *k);
    if (k == NULL)
        return STATUS_NO_MEMORY;
    k->secrets = secrets;
    k->set = set;
    k->has_secrets = found;
    k->client = (uint8_t)side;
    memcpy(k->client_random, hello->random.at, sizeof k->client_random);
    bool may_be_early =
        hello->has_early_data || (!hello->complete && set.of[SECRET_CLIENT_EARLY].len > 0);
    k->side[side].epoch = may_be_early ? EPOCH_EARLY : EPOCH_HANDSHAKE;
    k->side[other_side(side)].epoch = EPOCH_HANDSHAKE;
    k->side[CLIENT].end = &k->side[CLIENT].first;
    k->side[SERVER].end = &k->side[SERVER].first;
    *ret_keyed = k;
    return STATUS_OK;
}

void keyed_close(struct keyed *k)
{
    if (k == NULL)
        return;
    for (enum side side = CLIENT; side <= SERVER; side++) {
        for (struct sealed *s = k->side[side].first, *next; s != NULL; s = next) {
            next = s->next;
            free(s);
        }
        free(k->side[side].current);
    }
    free(k);
}

size_t keyed_memory(const struct keyed *k)
{
    return sizeof *k + k->records * sizeof(struct sealed) + k->bytes;
}

static struct sealed *sealed_new(struct keyed *k, uint32_t len)
{
    struct sealed *sealed = calloc(1, sizeof *sealed + len);
    if (sealed == NULL)
        return NULL;
    sealed->len = len;
    k->records++;
    k->bytes += len;
    return sealed;
}

static void sealed_free(struct keyed *k, struct sealed *sealed)
{
    if (sealed == NULL)
        return;
    k->records--;
    k->bytes -= sealed->len;
    free(sealed);
}

/* ---- keys ---- */

static void start_12(struct keyed *k, struct bytes server_random, bool encrypt_then_mac)
{
    struct record_key keys[2];
    bool ok = record_keys_12(k->suite, &k->set.of[SECRET_MASTER], random_of(k), server_random,
                             encrypt_then_mac, keys);
    for (enum side side = CLIENT; side <= SERVER; side++) {
        struct keyed_side *s = &k->side[side];
        s->epoch = EPOCH_CLEAR;
        s->given_up = !ok;
        if (ok)
            s->key12 = keys[side == k->client ? 0 : 1];
    }
}

/* These exist in TLS 1.3 alone. */
static bool has_traffic_secrets(const struct secret_set *set)
{
    for (unsigned kind = SECRET_CLIENT_EARLY; kind < SECRET_KINDS; kind++)
        if (set->of[kind].len > 0)
            return true;
    return false;
}

void keyed_server_hello(struct keyed *k, const struct server_hello *hello)
{
    if (k->server_hello_seen)
        return;
    if (!k->has_secrets)
        k->has_secrets = secrets_find(k->secrets, random_of(k), &k->set);
    k->server_hello_seen = true;
    k->suite = hello->cipher_suite;
    /* One cut before its supported_versions reads as TLS 1.2; the secrets know better. */
    k->is_13 = version_is_13(hello->version) || (!hello->complete && has_traffic_secrets(&k->set));
    if (k->is_13)
        return;
    if (hello->version == TLS_1_2)
        start_12(k, hello->random, hello->has_encrypt_then_mac);
    else
        k->side[CLIENT].given_up = k->side[SERVER].given_up = true;
}

static const struct secret *secret_of(const struct keyed *k, enum side side, enum epoch epoch)
{
    static const enum secret_kind KINDS[EPOCHS][2] = {
        [EPOCH_EARLY] = { SECRET_CLIENT_EARLY, SECRET_CLIENT_EARLY },
        [EPOCH_HANDSHAKE] = { SECRET_CLIENT_HANDSHAKE, SECRET_SERVER_HANDSHAKE },
        [EPOCH_TRAFFIC] = { SECRET_CLIENT_TRAFFIC, SECRET_SERVER_TRAFFIC },
    };
    if (epoch == EPOCH_TRAFFIC && k->side[side].traffic.len > 0)
        return &k->side[side].traffic;
    return &k->set.of[KINDS[epoch][side == k->client ? 0 : 1]];
}

/* ---- opening ---- */

struct attempt {
    const struct sealed *sealed;
    uint8_t *space;
    struct opened_record opened;
    enum epoch epoch;
    uint64_t sequence;
    uint16_t suite;
};

static bool try_key(struct attempt *a, const struct record_key *key, uint64_t sequence)
{
    const struct sealed_record sealed = { a->sealed->type,
                                          a->sealed->version,
                                          { a->sealed->body, a->sealed->len } };
    a->sequence = sequence;
    return record_open(key, sequence, &sealed, a->space, &a->opened);
}

/*
 * The suites that may be in use. Early data has that of its ticket, and a connection of which only
 * the client was captured has any.
 */
static bool is_suite_possible(const struct keyed *k, enum epoch epoch, uint16_t suite)
{
    if (epoch == EPOCH_EARLY)
        return k->early_suite == 0 || k->early_suite == suite;
    return k->suite == 0 || k->suite == suite;
}

/* Tries the numbers from first on under the key of an epoch. */
static bool try_epoch(const struct keyed *k, enum side side, struct attempt *a, enum epoch epoch,
                      uint64_t first)
{
    static const uint16_t SUITES[] = { 0x1301, 0x1302, 0x1303, 0x1304, 0x1305 };
    unsigned numbers = 1 + k->side[side].unread;
    struct record_key key;
    a->epoch = epoch;
    for (size_t i = 0; i < sizeof SUITES / sizeof *SUITES; i++) {
        a->suite = SUITES[i];
        if (!is_suite_possible(k, epoch, SUITES[i]) ||
            !record_key_13(SUITES[i], secret_of(k, side, epoch), &key))
            continue;
        for (unsigned n = 0; n < numbers; n++)
            if (try_key(a, &key, first + n))
                return true;
    }
    return false;
}

static bool try_13(const struct keyed *k, enum side side, struct attempt *a)
{
    const struct keyed_side *s = &k->side[side];
    if (try_epoch(k, side, a, (enum epoch)s->epoch, s->sequence))
        return true;
    for (enum epoch epoch = (enum epoch)(s->epoch + 1); epoch <= EPOCH_TRAFFIC; epoch++)
        if (try_epoch(k, side, a, epoch, 0))
            return true;
    return false;
}

static bool try_12(const struct keyed *k, enum side side, struct attempt *a)
{
    const struct keyed_side *s = &k->side[side];
    a->epoch = EPOCH_TRAFFIC;
    for (unsigned n = 0; n <= s->unread; n++)
        if (try_key(a, &s->key12, s->sequence + n))
            return true;
    return false;
}

static void enter_epoch(struct keyed_side *s, enum epoch epoch)
{
    s->epoch = (uint8_t)epoch;
    s->sequence = 0;
}

/* What the content says about the keys of the records behind it. */
static void follow_keys(struct keyed *k, enum side side, uint16_t content)
{
    struct keyed_side *s = &k->side[side];
    if (!k->is_13)
        return;
    if (s->epoch == EPOCH_EARLY &&
        content_has(content, CONTENT_HANDSHAKE, CONTENT_END_OF_EARLY_DATA))
        enter_epoch(s, EPOCH_HANDSHAKE);
    else if (s->epoch == EPOCH_HANDSHAKE &&
             content_has(content, CONTENT_HANDSHAKE, CONTENT_FINISHED))
        enter_epoch(s, EPOCH_TRAFFIC);
    else if (s->epoch == EPOCH_TRAFFIC &&
             content_has(content, CONTENT_HANDSHAKE, CONTENT_KEY_UPDATE)) {
        struct secret next;
        if (next_traffic_secret(k->suite, secret_of(k, side, EPOCH_TRAFFIC), &next))
            s->traffic = next;
        enter_epoch(s, EPOCH_TRAFFIC);
    }
}

/* Notes whether this is the request, or the first record that answers it. */
static void follow_exchange(struct keyed *k, enum side side, uint16_t content,
                            const struct record *r)
{
    if (content_kind(content) != CONTENT_APPLICATION || (content & CONTENT_EMPTY) != 0 ||
        ((content & CONTENT_HTTP2) != 0 && (content & CONTENT_HEADERS) == 0))
        return;
    if (side == k->client && k->request_end == 0)
        k->request_end = (int64_t)r->offset + RECORD_HEADER_LEN + r->len;
    if (side != k->client && k->request_end != 0 && r->ack != ACK_UNKNOWN &&
        r->ack >= k->request_end)
        k->is_answered = true;
}

/* ALPN of EncryptedExtensions: a list of one (RFC 7301 3.1). */
static enum status set_alpn(struct facts *f, struct bytes list)
{
    char text[2 * UINT8_MAX + 1];
    size_t len = list.len == 0 ? 0 : alpn_text(list, text, sizeof text);
    return len == 0 || facts_set_text(f, &f->alpn, text, len) ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status take_opened(struct keyed *k, struct facts *f, enum side side,
                               const struct attempt *a)
{
    struct keyed_side *s = &k->side[side];
    struct bytes alpn = { 0 };
    if (a->epoch == EPOCH_EARLY)
        k->early_suite = a->suite;
    else if (k->suite == 0)
        k->suite = a->suite;
    s->epoch = (uint8_t)a->epoch;
    s->sequence = a->sequence + 1;
    if (s->unread > 0)
        content_lost(&s->content);
    s->unread = 0;
    s->failures = 0;
    k->opened++;
    uint16_t content = content_read(&s->content, a->opened.type, a->opened.content, &alpn);
    if (a->epoch == EPOCH_EARLY && content_kind(content) == CONTENT_APPLICATION)
        content |= CONTENT_EARLY;
    follow_keys(k, side, content);
    if (a->sealed->index == 0)
        return STATUS_OK;
    struct record *r = &f->records[a->sealed->index - 1];
    r->content = content;
    follow_exchange(k, side, content, r);
    return set_alpn(f, alpn);
}

/* A record that could not be opened may have counted, so that the number behind it is not sure. */
static void pass_unopened(struct keyed *k, enum side side)
{
    struct keyed_side *s = &k->side[side];
    k->failed++;
    s->failures++;
    bool has_key = k->is_13 ? secret_of(k, side, (enum epoch)s->epoch)->len > 0 : true;
    if (has_key && s->unread < TRIALS_MAX)
        s->unread++;
    content_lost(&s->content);
    if (s->failures >= FAILURES_MAX)
        s->given_up = true;
}

static enum status open_sealed(struct keyed *k, struct facts *f, enum side side,
                               const struct sealed *sealed)
{
    struct keyed_side *s = &k->side[side];
    uint8_t space[RECORD_BODY_MAX];
    if (sealed->index == 0 && s->epoch == EPOCH_EARLY && s->unread == 0) {
        s->sequence++; /* early data of which the facts keep no more */
        return STATUS_OK;
    }
    if (sealed->lost)
        s->unread = TRIALS_MAX;
    struct attempt a = { .sealed = sealed, .space = space };
    bool ok = !sealed->cut && (k->is_13 ? try_13(k, side, &a) : try_12(k, side, &a));
    enum status status = STATUS_OK;
    if (ok)
        status = take_opened(k, f, side, &a);
    else
        pass_unopened(k, side);
    explicit_bzero(space, sealed->len);
    return status;
}

/* Whether a waiting record is encrypted at all; TLS 1.2: ChangeCipherSpec brings the key in. */
static bool is_sealed(struct keyed *k, enum side side, const struct sealed *sealed)
{
    struct keyed_side *s = &k->side[side];
    if (k->is_13)
        return sealed->type == RECORD_APPLICATION_DATA;
    if (sealed->type == RECORD_CHANGE_CIPHER_SPEC) {
        if (s->epoch == EPOCH_TRAFFIC)
            s->given_up = true; /* renegotiated: under another master secret */
        else
            enter_epoch(s, EPOCH_TRAFFIC);
        return false;
    }
    return s->epoch == EPOCH_TRAFFIC;
}

/* Whether request, answer and the client's Finished are known. */
static bool has_enough(const struct keyed *k)
{
    return k->is_answered && (!k->is_13 || k->side[k->client].epoch == EPOCH_TRAFFIC);
}

/* Opens what waits of a side. */
static enum status drain(struct keyed *k, struct facts *f, enum side side)
{
    struct keyed_side *s = &k->side[side];
    enum status status = STATUS_OK;
    while (status == STATUS_OK && s->first != NULL) {
        struct sealed *sealed = s->first;
        s->first = sealed->next;
        if (s->first == NULL)
            s->end = &s->first;
        if (!s->given_up && !has_enough(k) && is_sealed(k, side, sealed))
            status = open_sealed(k, f, side, sealed);
        sealed_free(k, sealed);
    }
    return status;
}

/* The client first: what it asked must be known when the answer is opened. */
static enum status drain_all(struct keyed *k, struct facts *f)
{
    enum status status = drain(k, f, (enum side)k->client);
    return status == STATUS_OK ? drain(k, f, other_side((enum side)k->client)) : status;
}

/* ---- records ---- */

enum status keyed_begin(struct keyed *k, enum side side, const struct record_header *header,
                        uint16_t index, bool lost)
{
    struct keyed_side *s = &k->side[side];
    sealed_free(k, s->current); /* its end was lost */
    s->current = NULL;
    bool is_ccs = header->type == RECORD_CHANGE_CIPHER_SPEC;
    bool may_be_sealed = header->type == RECORD_APPLICATION_DATA || s->ccs_seen || is_ccs;
    s->ccs_seen |= is_ccs;
    if (!may_be_sealed || s->given_up)
        return STATUS_OK;
    bool keeps_bytes = index != 0 && k->bytes + header->len <= KEYED_BYTES_MAX;
    struct sealed *sealed = sealed_new(k, keeps_bytes ? header->len : 0);
    if (sealed == NULL)
        return STATUS_NO_MEMORY;
    sealed->index = index;
    sealed->version = header->version;
    sealed->type = header->type;
    sealed->lost = lost;
    sealed->cut = !keeps_bytes;
    s->current = sealed;
    return STATUS_OK;
}

void keyed_body(struct keyed *k, enum side side, const struct run *body)
{
    struct sealed *sealed = k->side[side].current;
    if (sealed == NULL || sealed->cut)
        return;
    if (body->is_hole || body->data.len < body->len || sealed->filled + body->len > sealed->len) {
        sealed->cut = true;
        return;
    }
    memcpy(sealed->body + sealed->filled, body->data.at, body->data.len);
    sealed->filled += (uint32_t)body->data.len;
}

static bool can_open(const struct keyed *k)
{
    return k->server_hello_seen && k->has_secrets;
}

enum status keyed_end(struct keyed *k, struct facts *f, enum side side)
{
    struct keyed_side *s = &k->side[side];
    struct sealed *sealed = s->current;
    if (sealed == NULL)
        return STATUS_OK;
    s->current = NULL;
    sealed->cut |= sealed->filled < sealed->len;
    *s->end = sealed;
    s->end = &sealed->next;
    return can_open(k) ? drain_all(k, f) : STATUS_OK;
}

bool keyed_is_over(const struct keyed *k)
{
    return has_enough(k) || k->records > KEYED_RECORDS_MAX ||
           (k->side[CLIENT].given_up && k->side[SERVER].given_up);
}

enum status keyed_finish(struct keyed *k, struct facts *f)
{
    if (!k->has_secrets)
        k->has_secrets = secrets_find(k->secrets, random_of(k), &k->set);
    if (!k->has_secrets)
        return STATUS_OK;
    if (!k->server_hello_seen)
        k->is_13 = has_traffic_secrets(&k->set);
    enum status status = drain_all(k, f);
    if (k->opened > 0)
        f->keys = k->failed > 0 ? KEYS_PARTIAL : KEYS_USED;
    else if (k->failed > 0)
        f->keys = KEYS_FAILED;
    return status;
}
