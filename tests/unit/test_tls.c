/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversations are flights: what one side sends before the other answers. The same conversation
 * cut anywhere must give the same facts.
 */
#include "tls.h"

#include "hello.h"
#include "hello_builder.h"

#include <criterion/criterion.h>

enum { FLIGHTS_MAX = 12 };

struct flight {
    enum side side;
    struct builder bytes;
};

struct talk {
    struct flight flight[FLIGHTS_MAX];
    unsigned count;
};

/* Conversations */

static struct builder *open_flight(struct talk *t, enum side side)
{
    cr_assert_lt(t->count, FLIGHTS_MAX);
    t->flight[t->count] = (struct flight){ .side = side };
    return &t->flight[t->count++].bytes;
}

static size_t open_record(struct builder *b, uint8_t type)
{
    add_u8(b, type);
    add_u16(b, 0x0303);
    return open_vector(b, 2);
}

/* A record whose content nobody can read. */
static void add_opaque(struct builder *b, uint8_t type, size_t len)
{
    size_t record = open_record(b, type);
    add_filled(b, 0xee, len);
    close_vector(b, record, 2);
}

static void add_ccs(struct builder *b)
{
    size_t record = open_record(b, RECORD_CHANGE_CIPHER_SPEC);
    add_u8(b, 1);
    close_vector(b, record, 2);
}

static void add_client_hello(struct builder *b, bool early_data)
{
    static const uint16_t SUITES[] = { 0x1301, 0xc02f }, VERSIONS[] = { 0x0304, 0x0303 };
    add_u8(b, HANDSHAKE_CLIENT_HELLO);
    size_t body = open_vector(b, 3);
    add_client_fields(b, SUITES, 2);
    size_t extensions = open_vector(b, 2);
    add_server_name(b, "www.example.com");
    add_supported_versions(b, VERSIONS, 2);
    if (early_data)
        add_empty_extension(b, 42);
    close_vector(b, extensions, 2);
    close_vector(b, body, 3);
}

static void add_server_hello(struct builder *b, uint16_t version, bool retry)
{
    static const uint8_t RETRY[] = {
        0xCF, 0x21, 0xAD, 0x74, 0xE5, 0x9A, 0x61, 0x11, 0xBE, 0x1D, 0x8C,
        0x02, 0x1E, 0x65, 0xB8, 0x91, 0xC2, 0xA2, 0x11, 0x16, 0x7A, 0xBB,
        0x8C, 0x5E, 0x07, 0x9E, 0x09, 0xE2, 0xC8, 0xA8, 0x33, 0x9C
    }; /* RFC 8446 4.1.3 */
    add_u8(b, HANDSHAKE_SERVER_HELLO);
    size_t body = open_vector(b, 3);
    size_t random = b->len + 2;
    add_server_fields(b, 0x0303);
    if (retry)
        memcpy(b->at + random, RETRY, sizeof RETRY);
    size_t extensions = open_vector(b, 2);
    if (version == 0x0304) {
        size_t chosen = open_extension(b, 43);
        add_u16(b, version);
        close_vector(b, chosen, 2);
    }
    close_vector(b, extensions, 2);
    close_vector(b, body, 3);
}

static void add_message(struct builder *b, uint8_t type, size_t len)
{
    add_u8(b, type);
    size_t body = open_vector(b, 3);
    add_filled(b, 0x11, len);
    close_vector(b, body, 3);
}

/* TLS 1.3 in middlebox compatibility mode: hello retry, then a second ClientHello behind a CCS. */
static struct talk talk_tls13_retry(void)
{
    struct talk t = { .count = 0 };
    struct builder *b = open_flight(&t, CLIENT);
    size_t record = open_record(b, RECORD_HANDSHAKE);
    add_client_hello(b, true);
    close_vector(b, record, 2);
    add_ccs(b);
    add_opaque(b, RECORD_APPLICATION_DATA, 40);
    b = open_flight(&t, SERVER);
    record = open_record(b, RECORD_HANDSHAKE);
    add_server_hello(b, 0x0304, true);
    close_vector(b, record, 2);
    add_ccs(b);
    b = open_flight(&t, CLIENT);
    record = open_record(b, RECORD_HANDSHAKE);
    add_client_hello(b, false);
    close_vector(b, record, 2);
    b = open_flight(&t, SERVER);
    record = open_record(b, RECORD_HANDSHAKE);
    add_server_hello(b, 0x0304, false);
    close_vector(b, record, 2);
    add_opaque(b, RECORD_APPLICATION_DATA, 27);
    add_opaque(b, RECORD_APPLICATION_DATA, 53);
    b = open_flight(&t, CLIENT);
    add_opaque(b, RECORD_APPLICATION_DATA, 53);
    add_opaque(b, RECORD_APPLICATION_DATA, 60);
    b = open_flight(&t, SERVER);
    add_opaque(b, RECORD_APPLICATION_DATA, 90);
    return t;
}

/* A full TLS 1.2 handshake; the server's messages share one record and overflow into a second. */
static struct talk talk_tls12_full(void)
{
    struct talk t = { .count = 0 };
    struct builder *b = open_flight(&t, CLIENT);
    size_t record = open_record(b, RECORD_HANDSHAKE);
    add_client_hello(b, false);
    close_vector(b, record, 2);
    b = open_flight(&t, SERVER);
    struct builder messages = { .len = 0 };
    add_server_hello(&messages, 0x0303, false);
    add_message(&messages, HANDSHAKE_CERTIFICATE, 120);
    add_u8(&messages, HANDSHAKE_SERVER_KEY_EXCHANGE);
    size_t body = open_vector(&messages, 3);
    add_u8(&messages, 3);
    add_u16(&messages, 29);
    add_filled(&messages, 0x22, 40);
    close_vector(&messages, body, 3);
    add_message(&messages, HANDSHAKE_SERVER_HELLO_DONE, 0);
    size_t first_len = messages.len - 30;
    record = open_record(b, RECORD_HANDSHAKE);
    memcpy(b->at + b->len, messages.at, first_len);
    b->len += first_len;
    close_vector(b, record, 2);
    record = open_record(b, RECORD_HANDSHAKE);
    memcpy(b->at + b->len, messages.at + first_len, 30);
    b->len += 30;
    close_vector(b, record, 2);
    b = open_flight(&t, CLIENT);
    record = open_record(b, RECORD_HANDSHAKE);
    add_message(b, HANDSHAKE_CLIENT_KEY_EXCHANGE, 33);
    close_vector(b, record, 2);
    add_ccs(b);
    add_opaque(b, RECORD_HANDSHAKE, 40);
    b = open_flight(&t, SERVER);
    record = open_record(b, RECORD_HANDSHAKE);
    add_u8(b, HANDSHAKE_NEW_SESSION_TICKET);
    body = open_vector(b, 3);
    add_be(b, 7200, 4);
    size_t ticket = open_vector(b, 2);
    add_filled(b, 0x77, 96);
    close_vector(b, ticket, 2);
    close_vector(b, body, 3);
    close_vector(b, record, 2);
    add_ccs(b);
    add_opaque(b, RECORD_HANDSHAKE, 40);
    b = open_flight(&t, CLIENT);
    add_opaque(b, RECORD_APPLICATION_DATA, 50);
    add_opaque(b, RECORD_ALERT, 26);
    return t;
}

/* A ClientHello over four records, refused by a clear alert. */
static struct talk talk_refused(void)
{
    struct talk t = { .count = 0 };
    struct builder hello = { .len = 0 };
    add_client_hello(&hello, false);
    struct builder *b = open_flight(&t, CLIENT);
    for (size_t at = 0; at < hello.len;) {
        size_t n = at < 3 ? 3 : hello.len - at < 50 ? hello.len - at : 50;
        size_t record = open_record(b, RECORD_HANDSHAKE);
        memcpy(b->at + b->len, hello.at + at, n);
        b->len += n;
        close_vector(b, record, 2);
        at += n;
    }
    b = open_flight(&t, SERVER);
    size_t record = open_record(b, RECORD_ALERT);
    add_u8(b, 2);
    add_u8(b, 40);
    close_vector(b, record, 2);
    return t;
}

static struct talk talk_starttls(void)
{
    struct talk t = { .count = 0 }, tls = talk_tls12_full();
    add_text(open_flight(&t, SERVER), "220 mail.example.com ESMTP\r\n");
    add_text(open_flight(&t, CLIENT), "EHLO client.example.com\r\n");
    add_text(open_flight(&t, SERVER), "250-mail.example.com\r\n250 STARTTLS\r\n");
    add_text(open_flight(&t, CLIENT), "STARTTLS\r\n");
    add_text(open_flight(&t, SERVER), "220 go ahead\r\n");
    for (unsigned i = 0; i < tls.count; i++)
        t.flight[t.count++] = tls.flight[i];
    return t;
}

static struct talk talk_proxied(void)
{
    struct talk t = talk_refused();
    struct builder behind = t.flight[0].bytes;
    struct builder *b = &t.flight[0].bytes;
    b->len = 0;
    add_text(b, "PROXY TCP4 192.0.2.7 198.51.100.2 56324 443\r\n");
    memcpy(b->at + b->len, behind.at, behind.len);
    b->len += behind.len;
    return t;
}

/* Plaintext that begins with an octet that a TLS record could begin with. */
static struct talk talk_plain(void)
{
    struct talk t = { .count = 0 };
    struct builder *b = open_flight(&t, CLIENT);
    add_u8(b, RECORD_HANDSHAKE);
    add_u8(b, 3);
    add_text(b, " no TLS at all");
    add_text(open_flight(&t, SERVER), "nor this");
    return t;
}

typedef struct talk talk_maker(void);
static const struct {
    const char *name;
    talk_maker *make;
} TALKS[] = {
    { "TLS 1.3 with retry", talk_tls13_retry },
    { "TLS 1.2", talk_tls12_full },
    { "refused", talk_refused },
    { "STARTTLS", talk_starttls },
    { "PROXY header", talk_proxied },
    { "plaintext", talk_plain },
};
enum { TALK_COUNT = sizeof TALKS / sizeof TALKS[0] };

/* Reading them */

struct reading {
    struct tls tls;
    struct facts facts;
    int64_t offset[2];
    bool park; /* pack and unpack after each part */
};

static struct reading begin_reading(void)
{
    return (struct reading){ .facts = { .syn_seen = 1, .client_basis = CLIENT_BY_SYN } };
}

static void park(struct reading *r)
{
    struct buffer packed = { 0 };
    struct coder to = coder_to(&packed);
    tls_code(&to, &r->tls);
    struct coder from = coder_of((struct bytes){ packed.at, packed.len });
    tls_done(&r->tls);
    tls_code(&from, &r->tls);
    cr_assert(!to.failed && !from.failed && tls_fits_facts(&r->tls, &r->facts));
    cr_assert_eq(from.in.rest.len, 0);
    buffer_done(&packed);
}

enum how { CAPTURED, LOST, CUT_AWAY };

/* The next len bytes of a side in a segment of their own. */
static void read_part(struct reading *r, enum side side, const uint8_t *at, uint32_t len,
                      enum how how)
{
    struct run run = {
        .offset = r->offset[side],
        .len = len,
        .data = { at, how == CAPTURED ? len : 0 },
        .is_hole = how == LOST,
        .starts_segment = how != LOST,
        .at_ns = 1,
        .packet_no = 1,
        .ack = how == LOST ? ACK_UNKNOWN : (int32_t)r->offset[other_side(side)],
    };
    if (len == 0)
        return;
    r->offset[side] += len;
    cr_assert_eq(tls_add_run(&r->tls, &r->facts, side, run), STATUS_OK);
    if (r->park)
        park(r);
}

/* What is equal however the stream was cut. */
static struct buffer end_reading(struct reading *r)
{
    struct buffer packed = { 0 };
    tls_end(&r->tls, &r->facts);
    facts_finish(&r->facts);
    for (unsigned i = 0; i < r->facts.record_count; i++)
        r->facts.records[i].flags &= (uint8_t)~RECORD_STARTS_SEGMENT;
    cr_assert_eq(facts_pack(&r->facts, &packed), STATUS_OK);
    return packed;
}

static void close_reading(struct reading *r)
{
    tls_done(&r->tls);
    facts_done(&r->facts);
}

/* Reads a conversation, one flight of which is cut at two places. */
static struct reading read_cut(const struct talk *t, unsigned cut_flight, uint32_t first,
                               uint32_t second, bool park_often)
{
    struct reading r = begin_reading();
    r.park = park_often;
    for (unsigned i = 0; i < t->count; i++) {
        const struct flight *f = &t->flight[i];
        uint32_t len = (uint32_t)f->bytes.len;
        uint32_t a = i == cut_flight ? first : len, b = i == cut_flight ? second : len;
        read_part(&r, f->side, f->bytes.at, a, CAPTURED);
        read_part(&r, f->side, f->bytes.at + a, b - a, CAPTURED);
        read_part(&r, f->side, f->bytes.at + b, len - b, CAPTURED);
    }
    return r;
}

static void assert_equal(const struct buffer *whole, struct reading *r, const char *name,
                         unsigned flight, uint32_t first, uint32_t second)
{
    struct buffer packed = end_reading(r);
    cr_assert(packed.len == whole->len && memcmp(packed.at, whole->at, packed.len) == 0,
              "%s: flight %u cut at %u and %u gives other facts", name, flight, first, second);
    buffer_done(&packed);
    close_reading(r);
}

Test(tls, any_cut_of_any_flight_gives_the_same_facts)
{
    for (unsigned k = 0; k < TALK_COUNT; k++) {
        struct talk t = TALKS[k].make();
        struct reading r = read_cut(&t, FLIGHTS_MAX, 0, 0, false);
        struct buffer whole = end_reading(&r);
        close_reading(&r);
        for (unsigned i = 0; i < t.count; i++)
            for (uint32_t cut = 1; cut < t.flight[i].bytes.len; cut++)
                for (unsigned park_often = 0; park_often < 2; park_often++) {
                    r = read_cut(&t, i, cut, cut, park_often);
                    assert_equal(&whole, &r, TALKS[k].name, i, cut, cut);
                }
        buffer_done(&whole);
    }
}

Test(tls, any_two_cuts_near_the_begin_of_a_flight_give_the_same_facts)
{
    enum { NEAR = 40 };
    for (unsigned k = 0; k < TALK_COUNT; k++) {
        struct talk t = TALKS[k].make();
        struct reading r = read_cut(&t, FLIGHTS_MAX, 0, 0, false);
        struct buffer whole = end_reading(&r);
        close_reading(&r);
        for (unsigned i = 0; i < t.count; i++)
            for (uint32_t second = 2; second < NEAR && second < t.flight[i].bytes.len; second++)
                for (uint32_t first = 1; first < second; first++) {
                    r = read_cut(&t, i, first, second, false);
                    assert_equal(&whole, &r, TALKS[k].name, i, first, second);
                }
        buffer_done(&whole);
    }
}

/* Its reader then stays in the middle of a body. */
Test(tls, a_side_with_enough_records_can_be_parked)
{
    enum { PIECE = 64, BODY = 100 };
    static const uint8_t HEADER[] = { RECORD_APPLICATION_DATA, 3, 3, 0, BODY };
    uint8_t record[sizeof HEADER + BODY] = { 0 };
    memcpy(record, HEADER, sizeof HEADER);
    struct talk t = TALKS[0].make();
    struct reading r = read_cut(&t, FLIGHTS_MAX, 0, 0, true);
    r.park = true;
    for (unsigned i = 0; i < 2 * RECORDS_MAX && r.facts.records_full[SERVER] == 0; i++) {
        read_part(&r, SERVER, record, PIECE, CAPTURED);
        read_part(&r, SERVER, record + PIECE, sizeof record - PIECE, CAPTURED);
    }
    cr_assert_neq(r.facts.records_full[SERVER], 0);
    cr_assert(!tls_wants(&r.tls, SERVER));
    close_reading(&r);
}

Test(tls, byte_by_byte_gives_the_same_facts)
{
    for (unsigned k = 0; k < TALK_COUNT; k++) {
        struct talk t = TALKS[k].make();
        struct reading r = read_cut(&t, FLIGHTS_MAX, 0, 0, false);
        struct buffer whole = end_reading(&r);
        close_reading(&r);
        r = begin_reading();
        for (unsigned i = 0; i < t.count; i++)
            for (uint32_t at = 0; at < t.flight[i].bytes.len; at++)
                read_part(&r, t.flight[i].side, t.flight[i].bytes.at + at, 1, CAPTURED);
        if (strcmp(TALKS[k].name, "STARTTLS") != 0) /* more runs of plaintext than are read */
            assert_equal(&whole, &r, TALKS[k].name, 0, 1, 2);
        else
            close_reading(&r);
        buffer_done(&whole);
    }
}

static struct reading read_whole(struct talk t)
{
    struct reading r = read_cut(&t, FLIGHTS_MAX, 0, 0, false);
    tls_end(&r.tls, &r.facts);
    return r;
}

Test(tls, facts_of_a_tls13_handshake_with_retry)
{
    struct reading r = read_whole(talk_tls13_retry());
    const struct facts *f = &r.facts;
    cr_expect(f->tls && f->client_hello_seen && f->client_hello_complete);
    cr_expect(f->hello_retry && f->server_hello_seen && f->second_hello_seen);
    cr_expect_eq(f->version, 0x0304);
    cr_expect(f->early_data_offered);
    cr_expect_str_eq(f->server_name, "www.example.com");
    cr_expect(f->ccs_ns[CLIENT] != 0 && f->ccs_ns[SERVER] != 0);
    cr_expect_eq(f->ccs_ack[CLIENT], 0);
    cr_expect_eq(f->record_count, 12);
    cr_expect_eq(f->records_seen[CLIENT], 6);
    cr_expect_eq(f->boundary_losses[CLIENT] + f->boundary_losses[SERVER], 0);
    close_reading(&r);
}

Test(tls, facts_of_a_full_tls12_handshake)
{
    struct reading r = read_whole(talk_tls12_full());
    const struct facts *f = &r.facts;
    cr_expect_eq(f->version, 0x0303);
    cr_expect_eq(f->messages[SERVER],
                 1U << HANDSHAKE_CERTIFICATE | 1U << HANDSHAKE_SERVER_HELLO_DONE |
                     1U << HANDSHAKE_SERVER_KEY_EXCHANGE | 1U << HANDSHAKE_NEW_SESSION_TICKET);
    cr_expect_eq(f->messages[CLIENT], 1U << HANDSHAKE_CLIENT_KEY_EXCHANGE);
    cr_expect_eq(f->named_group, 29);
    cr_expect_eq(f->issued_ticket_len, 96);
    cr_expect_str_eq(f->issued_ticket_key_name, "77777777777777777777777777777777");
    cr_expect_eq(f->alert_seen[CLIENT], 0, "an encrypted alert says nothing");
    cr_expect_eq(f->records[1].first_message, HANDSHAKE_SERVER_HELLO);
    cr_expect_eq(f->records[2].first_message, 255, "it goes on with a message of the first");
    close_reading(&r);
}

Test(tls, facts_of_a_refused_hello_over_several_records)
{
    struct reading r = read_whole(talk_refused());
    const struct facts *f = &r.facts;
    cr_expect(f->client_hello_complete);
    cr_expect_eq(f->alert_seen[SERVER], 1);
    cr_expect_eq(f->alert_level[SERVER], 2);
    cr_expect_eq(f->alert_description[SERVER], 40);
    cr_expect_eq(f->records[0].first_message, HANDSHAKE_CLIENT_HELLO);
    cr_expect_eq(f->records[1].first_message, 255);
    cr_expect_eq(f->client_hello_end, r.offset[CLIENT]);
    close_reading(&r);
}

Test(tls, facts_behind_a_preamble)
{
    struct reading r = read_whole(talk_starttls());
    cr_expect_eq(r.facts.preamble, PREAMBLE_SMTP);
    cr_expect(r.facts.client_hello_complete && r.facts.server_hello_seen);
    close_reading(&r);
    r = read_whole(talk_proxied());
    cr_expect_eq(r.facts.preamble, PREAMBLE_PROXY_V1);
    cr_expect_str_eq(r.facts.proxied_client_ip, "192.0.2.7");
    cr_expect(r.facts.client_hello_complete);
    close_reading(&r);
}

Test(tls, plaintext_is_not_taken_for_tls)
{
    struct reading r = read_whole(talk_plain());
    cr_expect_eq(r.facts.tls, 0);
    cr_expect_eq(r.facts.record_count, 0);
    cr_assert_not_null(r.tls.plaintext);
    cr_expect_eq(r.tls.plaintext->len[CLIENT], 16, "each byte is kept once");
    close_reading(&r);
}

Test(tls, every_truncation_shows_the_hello_once_its_header_is_there)
{
    struct talk t = talk_tls12_full();
    const struct builder *b = &t.flight[0].bytes;
    for (uint32_t len = 1; len <= b->len; len++) {
        struct reading r = begin_reading();
        read_part(&r, CLIENT, b->at, len, CAPTURED);
        tls_end(&r.tls, &r.facts);
        cr_assert_eq(r.facts.tls, len >= 5);
        cr_assert_eq(r.facts.client_hello_seen, len >= 9 + 34, "%u bytes", len);
        cr_assert_eq(r.facts.client_hello_complete, len == b->len);
        close_reading(&r);
    }
}

Test(tls, a_hello_cut_off_between_two_of_its_records_is_told)
{
    struct talk t = talk_refused();
    for (uint32_t len = 8 + 55; len <= 8 + 55 + 5; len++) { /* in the header of the third */
        struct reading r = begin_reading();
        read_part(&r, CLIENT, t.flight[0].bytes.at, len, CAPTURED);
        tls_end(&r.tls, &r.facts);
        cr_assert(r.facts.client_hello_seen, "%u bytes", len);
        close_reading(&r);
    }
}

/* The conversation without one of its flights. */
static struct reading read_without(const struct talk *t, unsigned lost_flight)
{
    struct reading r = begin_reading();
    for (unsigned i = 0; i < t->count; i++)
        read_part(&r, t->flight[i].side, t->flight[i].bytes.at, (uint32_t)t->flight[i].bytes.len,
                  i == lost_flight ? LOST : CAPTURED);
    tls_end(&r.tls, &r.facts);
    return r;
}

Test(tls, too_few_bytes_to_tell_are_neither_tls_nor_plaintext)
{
    struct talk t = talk_tls12_full();
    for (uint32_t len = 0; len <= 6; len++)
        for (unsigned how = 0; how < 3; how++) {
            struct reading r = begin_reading();
            const uint8_t *bytes = t.flight[0].bytes.at;
            read_part(&r, CLIENT, bytes, len, CAPTURED);
            if (how == 1)
                read_part(&r, CLIENT, bytes + len, 100, LOST);
            if (how == 2)
                read_part(&r, CLIENT, bytes + len, 100, CUT_AWAY);
            tls_end(&r.tls, &r.facts);
            cr_assert_eq(r.facts.tls, len >= 5);
            cr_assert_eq(r.facts.begin_unread[CLIENT], len < 5 && len + how > 0, "%u bytes", len);
            cr_assert_eq(r.facts.begin_unread[SERVER], 0);
            close_reading(&r);
        }
    struct reading plain = read_whole(talk_plain());
    cr_assert_eq(plain.facts.begin_unread[CLIENT], 0);
    close_reading(&plain);
    plain = begin_reading();
    struct run cut = { .len = 40, .data = { (const uint8_t *)"* OK", 4 }, .starts_segment = true };
    cr_assert_eq(tls_add_run(&plain.tls, &plain.facts, SERVER, cut), STATUS_OK);
    cr_assert_eq(plain.facts.begin_unread[SERVER], 1, "STARTTLS may follow");
    close_reading(&plain);
}

Test(tls, a_hello_that_answers_a_retry_is_the_second_although_the_first_is_lost)
{
    struct talk t = talk_tls13_retry();
    struct reading r = read_without(&t, 0);
    cr_expect(r.facts.client_hello_seen && r.facts.second_hello_seen);
    cr_expect_eq(r.facts.client_hello_complete, 0, "the first one may have offered early data");
    cr_expect_eq(r.facts.client_hello_ns, 0);
    cr_expect_eq(r.facts.second_hello_ns, 1);
    cr_expect_str_eq(r.facts.server_name, "www.example.com");
    close_reading(&r);
}

Test(tls, a_hello_captured_behind_the_retry_that_answers_it_is_the_first)
{
    struct talk t = talk_tls13_retry();
    struct reading r = begin_reading();
    int64_t client_len = (int64_t)t.flight[0].bytes.len;
    r.offset[CLIENT] = client_len; /* what the retry acknowledges */
    read_part(&r, SERVER, t.flight[1].bytes.at, (uint32_t)t.flight[1].bytes.len, CAPTURED);
    struct run late = { .len = (uint32_t)client_len,
                        .data = built(&t.flight[0].bytes),
                        .starts_segment = true,
                        .at_ns = 1,
                        .packet_no = 1,
                        .ack = 0 };
    cr_assert_eq(tls_add_run(&r.tls, &r.facts, CLIENT, late), STATUS_OK);
    cr_expect(r.facts.client_hello_complete && r.facts.early_data_offered);
    cr_expect_eq(r.facts.second_hello_seen, 0);
    close_reading(&r);
}

/* What every series of records obeys. */
static void assert_consistent(const struct facts *f, const char *what)
{
    for (enum side side = CLIENT; side <= SERVER; side++) {
        int64_t end = 0;
        bool gap = false;
        for (unsigned i = 0; i < f->record_count; i++) {
            const struct record *r = &f->records[i];
            if (r->side != side)
                continue;
            bool is_gap = r->type == RECORD_HOLE || r->type == RECORD_CUT;
            cr_assert_geq(r->offset, end, "%s: records overlap", what);
            if (r->flags & RECORD_UNSURE && r->offset > 0)
                cr_assert(gap, "%s: an unsure record stands behind a gap", what);
            if (!is_gap && !(r->flags & RECORD_UNSURE))
                cr_assert(!gap, "%s: what stands behind a gap is unsure", what);
            cr_assert(!is_gap || r->len > 0);
            gap = is_gap;
            end = (int64_t)r->offset + r->len + (is_gap ? 0 : 5);
        }
    }
}

Test(tls, any_hole_or_cut_in_a_flight_leaves_a_consistent_series)
{
    for (unsigned k = 0; k < TALK_COUNT; k++) {
        struct talk t = TALKS[k].make();
        for (unsigned i = 0; i < t.count; i++)
            for (uint32_t from = 0; from < t.flight[i].bytes.len; from += 1 + from / 16)
                for (uint32_t to = from + 1; to <= t.flight[i].bytes.len; to += 1 + to / 16)
                    for (unsigned cut = 0; cut < 2; cut++) {
                        struct reading r = begin_reading();
                        r.park = true;
                        for (unsigned j = 0; j < t.count; j++) {
                            const struct flight *f = &t.flight[j];
                            uint32_t len = (uint32_t)f->bytes.len;
                            uint32_t a = i == j ? from : len, b = i == j ? to : len;
                            read_part(&r, f->side, f->bytes.at, a, CAPTURED);
                            read_part(&r, f->side, f->bytes.at + a, b - a, cut ? CUT_AWAY : LOST);
                            read_part(&r, f->side, f->bytes.at + b, len - b, CAPTURED);
                        }
                        tls_end(&r.tls, &r.facts);
                        assert_consistent(&r.facts, TALKS[k].name);
                        close_reading(&r);
                    }
    }
}

static const struct record *first_of(const struct facts *f, enum side side)
{
    for (unsigned i = 0; i < f->record_count; i++)
        if (f->records[i].side == side)
            return &f->records[i];
    return NULL;
}

Test(tls, a_server_whose_first_flight_is_lost_is_still_read)
{
    struct talk t = talk_tls13_retry();
    struct reading r = read_without(&t, 1);
    const struct record *hole = first_of(&r.facts, SERVER);
    cr_assert_not_null(hole);
    cr_expect_eq(hole->type, RECORD_HOLE);
    cr_expect_eq(hole->offset, 0);
    cr_expect_eq(hole->len, t.flight[1].bytes.len);
    cr_expect(hole[1].flags & RECORD_UNSURE);
    cr_expect_eq(hole[1].side, SERVER);
    cr_expect(r.facts.server_hello_seen);
    cr_expect_eq(r.facts.records_seen[SERVER], 4);
    close_reading(&r);
}

Test(tls, a_client_whose_first_flight_is_lost_is_still_read)
{
    struct talk t = talk_tls12_full();
    struct reading r = read_without(&t, 0);
    const struct record *hole = first_of(&r.facts, CLIENT);
    cr_assert_not_null(hole);
    cr_expect_eq(hole->type, RECORD_HOLE);
    cr_expect_eq(hole->len, t.flight[0].bytes.len);
    cr_expect_eq(r.facts.client_hello_seen, 0);
    cr_expect_eq(r.facts.messages[CLIENT], 1U << HANDSHAKE_CLIENT_KEY_EXCHANGE);
    cr_expect_eq(r.facts.hello_side, CLIENT);
    close_reading(&r);
}

Test(tls, a_flight_found_behind_a_snaplen_is_unsure_behind_a_cut)
{
    struct talk t = talk_tls13_retry();
    struct reading r = begin_reading();
    for (unsigned i = 0; i < t.count; i++) {
        const struct builder *b = &t.flight[i].bytes;
        uint32_t seen = i == 3 ? 30 : (uint32_t)b->len; /* ServerHello: its header and no more */
        struct run run = { .offset = r.offset[t.flight[i].side],
                           .len = (uint32_t)b->len,
                           .data = { b->at, seen },
                           .starts_segment = true,
                           .at_ns = 1 + i,
                           .packet_no = 1 + i,
                           .ack = 0 };
        r.offset[t.flight[i].side] += run.len;
        cr_assert_eq(tls_add_run(&r.tls, &r.facts, t.flight[i].side, run), STATUS_OK);
    }
    tls_end(&r.tls, &r.facts);
    const struct record *last = &r.facts.records[r.facts.record_count - 1];
    cr_expect_eq(last->side, SERVER);
    cr_expect(last->flags & RECORD_UNSURE);
    cr_expect_eq(last[-1].type, RECORD_CUT);
    cr_expect_eq(last[-1].len, 27 + 5 + 53 + 5);
    cr_expect_eq(last[-1].at_ns, 4, "the segment in which the unknown bytes began");
    cr_expect_eq(r.facts.boundary_losses[SERVER], 1);
    close_reading(&r);
}

Test(tls, records_beyond_the_cap_are_counted_and_early_ones_merged)
{
    struct talk t = talk_tls13_retry();
    struct reading r = begin_reading();
    struct builder early = { .len = 0 }, empty = { .len = 0 };
    add_opaque(&early, RECORD_APPLICATION_DATA, 100);
    add_opaque(&empty, RECORD_APPLICATION_DATA, 0);
    read_part(&r, CLIENT, t.flight[0].bytes.at, (uint32_t)t.flight[0].bytes.len, CAPTURED);
    for (unsigned i = 0; i < 500; i++)
        read_part(&r, CLIENT, early.at, (uint32_t)early.len, CAPTURED);
    cr_expect_eq(r.facts.record_count, 14, "ClientHello, CCS and 12 early records");
    const struct record *last = &r.facts.records[13];
    cr_expect(last->flags & RECORD_MERGED);
    cr_expect_eq(last->skipped, 489);
    cr_expect_eq(last->skipped_len, 48900);
    for (unsigned i = 0; i < 500; i++)
        read_part(&r, SERVER, empty.at, (uint32_t)empty.len, CAPTURED);
    cr_expect_leq(r.facts.record_count, RECORDS_MAX);
    cr_expect_not(tls_wants(&r.tls, SERVER));
    close_reading(&r);
}

Test(tls, early_records_are_merged_only_without_a_gap_between)
{
    struct talk t = talk_tls13_retry();
    struct reading r = begin_reading();
    struct builder early = { .len = 0 };
    add_opaque(&early, RECORD_APPLICATION_DATA, 100);
    read_part(&r, CLIENT, t.flight[0].bytes.at, (uint32_t)t.flight[0].bytes.len, CAPTURED);
    for (unsigned i = 0; i < 40; i++)
        read_part(&r, CLIENT, early.at, (uint32_t)early.len, i == 20 ? LOST : CAPTURED);
    tls_end(&r.tls, &r.facts);
    int64_t end = 0;
    for (unsigned i = 0; i < r.facts.record_count; i++) {
        const struct record *x = &r.facts.records[i];
        cr_assert_eq(x->offset, end, "record %u", i);
        end = (int64_t)x->offset + x->len + (x->type == RECORD_HOLE ? 0 : 5) +
              5 * (int64_t)x->skipped + x->skipped_len;
    }
    cr_assert_eq(end, r.offset[CLIENT]);
    close_reading(&r);
}

Test(tls, acknowledgments_and_repetitions_are_those_of_the_records_they_cover)
{
    struct reading r = begin_reading();
    struct builder two = { .len = 0 };
    add_opaque(&two, RECORD_HANDSHAKE, 10);
    add_opaque(&two, RECORD_APPLICATION_DATA, 10);
    read_part(&r, CLIENT, two.at, (uint32_t)two.len, CAPTURED);
    struct record *x = r.facts.records;
    tls_resent(&r.tls, &r.facts, CLIENT, 15, 15);
    cr_expect(!(x[0].flags & RECORD_RESENT) && x[1].flags & RECORD_RESENT);
    tls_acknowledged(&r.tls, &r.facts, CLIENT, 1, 50);
    cr_expect(x[0].acked_at_ns == 50 && x[0].all_acked_at_ns == 0 && x[1].acked_at_ns == 0);
    tls_acknowledged(&r.tls, &r.facts, CLIENT, 15, 60);
    cr_expect(x[0].all_acked_at_ns == 60 && x[1].acked_at_ns == 0);
    tls_acknowledged(&r.tls, &r.facts, CLIENT, 16, 70);
    tls_acknowledged(&r.tls, &r.facts, CLIENT, 30, 80);
    tls_acknowledged(&r.tls, &r.facts, CLIENT, 30, 90);
    cr_expect(x[0].acked_at_ns == 50 && x[1].acked_at_ns == 70 && x[1].all_acked_at_ns == 80);
    tls_resent(&r.tls, &r.facts, CLIENT, 0, 30);
    cr_expect_not(x[0].flags & RECORD_RESENT, "it had been acknowledged before");
    close_reading(&r);
}
