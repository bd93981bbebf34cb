/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Connections of OpenSSL in memory, read with their key logs: what each record holds, in order, for
 * every suite; with records missing, secrets missing, secrets wrong; and what is judged of it.
 */
#include "content.h"
#include "judge.h"
#include "openssl_talk.h"
#include "tls.h"

#define COUNT(array) (sizeof array / sizeof *array)

static const char REQUEST[] = "GET / HTTP/1.1\r\nHost: example.com\r\n\r\n";
static const char RESPONSE[] = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/* ---- reading ---- */

/* What a reading changes of a talk. */
struct damage {
    unsigned lost_flight;   /* number + 1 of a flight whose bytes were never captured */
    const char *lost_label; /* lines of the key log that begin like that are left out */
    bool wrong_secrets;
    unsigned cut; /* runs have so many bytes; 0 = whole flights */
};

static struct bytes line_at(const struct talk *t, size_t from)
{
    struct bytes rest = { t->key_log.at + from, t->key_log.len - from };
    const uint8_t *end = memchr(rest.at, '\n', rest.len);
    cr_assert_not_null(end);
    return bytes_first(rest, (size_t)(end - rest.at) + 1);
}

static struct secrets *secrets_of(const struct talk *t, const struct damage *d)
{
    struct secrets *s = secrets_open(1, NULL);
    cr_assert_not_null(s);
    struct bytes line;
    for (size_t from = 0; from < t->key_log.len; from += line.len) {
        char copy[512];
        line = line_at(t, from);
        cr_assert_lt(line.len, sizeof copy);
        memcpy(copy, line.at, line.len);
        if (d->lost_label != NULL && strncmp(copy, d->lost_label, strlen(d->lost_label)) == 0)
            continue;
        char *last = &copy[line.len - 2];
        if (d->wrong_secrets)
            *last = *last == '0' ? '1' : '0';
        cr_assert_eq(secrets_add_text(s, (struct bytes){ (const uint8_t *)copy, line.len }),
                     STATUS_OK);
    }
    return s;
}

static void read_run(struct tls *tls, struct facts *f, const struct talk *t, unsigned number,
                     size_t from, size_t len, bool is_hole)
{
    const struct talk_flight *flight = &t->flight[number];
    size_t before = 0;
    for (unsigned i = 0; i < number; i++)
        before += t->flight[i].side == flight->side ? t->flight[i].len : 0;
    struct run run = {
        .offset = (int64_t)(before + from),
        .len = (uint32_t)len,
        .data = { t->bytes.at + flight->at + from, is_hole ? 0 : len },
        .is_hole = is_hole,
        .starts_segment = true,
        .at_ns = 1000000 * (int64_t)(number + 1),
        .packet_no = number + 1,
        .ack = (int32_t)flight->answered,
    };
    cr_assert_eq(tls_add_run(tls, f, flight->side, run), STATUS_OK);
}

/* Reads a talk as the analyzer would; facts belong to the caller. */
static struct facts read_talk(const struct talk *t, const struct damage *d)
{
    struct secrets *secrets = secrets_of(t, d);
    struct tls tls = { .secrets = secrets };
    struct facts f = { .syn_seen = 1, .client_basis = CLIENT_BY_SYN };
    for (unsigned i = 0; i < t->flight_count; i++) {
        size_t step = d->cut == 0 ? t->flight[i].len : d->cut;
        f.packets[t->flight[i].side]++;
        for (size_t from = 0; from < t->flight[i].len; from += step) {
            size_t left = t->flight[i].len - from;
            read_run(&tls, &f, t, i, from, left < step ? left : step, i + 1 == d->lost_flight);
        }
    }
    tls_end(&tls, &f);
    facts_finish(&f);
    tls_done(&tls);
    secrets_close(secrets);
    return f;
}

/* ---- expectations ---- */

enum {
    APPLICATION = CONTENT_APPLICATION,
    REQUEST_LINE = CONTENT_APPLICATION | CONTENT_HTTP1_REQUEST,
    STATUS_LINE = CONTENT_APPLICATION | CONTENT_HTTP1_STATUS,
    EXTENSIONS = CONTENT_HANDSHAKE | CONTENT_ENCRYPTED_EXTENSIONS,
    CERTIFICATE = CONTENT_HANDSHAKE | CONTENT_CERTIFICATE,
    CERTIFICATE_REQUEST = CONTENT_HANDSHAKE | CONTENT_CERTIFICATE_REQUEST,
    VERIFY = CONTENT_HANDSHAKE | CONTENT_CERTIFICATE_VERIFY,
    FINISHED = CONTENT_HANDSHAKE | CONTENT_FINISHED,
    TICKET = CONTENT_HANDSHAKE | CONTENT_NEW_SESSION_TICKET,
    END_OF_EARLY = CONTENT_HANDSHAKE | CONTENT_END_OF_EARLY_DATA,
    EARLY_REQUEST = REQUEST_LINE | CONTENT_EARLY,
    KEY_UPDATE = CONTENT_HANDSHAKE | CONTENT_KEY_UPDATE,
};

/* The contents of a side's opened records, in order; 0 ends the list. */
static void expect_contents(const char *what, const struct facts *f, enum side side,
                            const uint16_t *expected)
{
    for (unsigned i = 0; i < f->record_count; i++) {
        if (f->records[i].side != side || f->records[i].content == 0)
            continue;
        cr_expect_eq(f->records[i].content, *expected, "%s: side %u record %u: %u, expected %u",
                     what, side, i, f->records[i].content, *expected);
        if (*expected != 0)
            expected++;
    }
    cr_expect_eq(*expected, 0, "%s: side %u: not all of it", what, side);
}

static void expect_role(const struct facts *f, const struct verdict *v, enum side side,
                        uint16_t content, enum role role)
{
    for (unsigned i = 0; i < f->record_count; i++)
        if (f->records[i].side == side && f->records[i].content == content) {
            cr_expect_eq(v->role[i], role, "side %u: content %u has role %u", side, content,
                         v->role[i]);
            return;
        }
    cr_expect_fail("side %u: no content %u", side, content);
}

static uint16_t content_of(const struct facts *f, int index)
{
    return index < 0 ? 0 : f->records[index].content;
}

/* ---- every suite ---- */

static const char *const SUITES_13[] = {
    "TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384",   "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_CCM_SHA256", "TLS_AES_128_CCM_8_SHA256",
};

static const char *const SUITES_12[] = {
    "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-ECDSA-AES128-CCM",
    "ECDHE-ECDSA-AES256-CCM",        "ECDHE-ECDSA-AES128-CCM8",
    "ECDHE-ECDSA-AES256-CCM8",       "ECDHE-ECDSA-AES128-SHA",
    "ECDHE-ECDSA-AES256-SHA",        "ECDHE-ECDSA-AES128-SHA256",
    "ECDHE-ECDSA-AES256-SHA384",
};

static const uint16_t SERVER_FULL_13[] = { EXTENSIONS, CERTIFICATE, VERIFY,      FINISHED,
                                           TICKET,     TICKET,      STATUS_LINE, 0 };
static const uint16_t CLIENT_FULL[] = { FINISHED, REQUEST_LINE, 0 };
static const uint16_t SERVER_FULL_12[] = { FINISHED, STATUS_LINE, 0 };

static void exchange(struct talk *t)
{
    talk_settle(t);
    talk_say(t, CLIENT, REQUEST, strlen(REQUEST));
    talk_say(t, SERVER, RESPONSE, strlen(RESPONSE));
}

static void expect_answer(const char *what, const struct facts *f, enum kind kind)
{
    struct verdict v = judge(f, NULL);
    cr_expect_eq(v.handshake, kind, "%s", what);
    cr_expect_eq(v.response_basis, BASIS_KEYLOG, "%s", what);
    cr_expect_eq(content_of(f, v.response), STATUS_LINE, "%s", what);
    cr_expect_eq(content_of(f, v.request) & (uint16_t)~CONTENT_EARLY, REQUEST_LINE, "%s", what);
    cr_expect_eq(v.response_low, v.response, "%s", what);
    cr_expect_eq(v.response_high, v.response, "%s", what);
}

Test(keyed, every_suite_of_tls_13)
{
    for (size_t i = 0; i < COUNT(SUITES_13); i++) {
        struct talk *t = talk_open(&(struct talk_options){ .suites_13 = SUITES_13[i] });
        exchange(t);
        struct facts f = read_talk(t, &(struct damage){ 0 });
        cr_expect_eq(f.keys, KEYS_USED, "%s", SUITES_13[i]);
        expect_contents(SUITES_13[i], &f, CLIENT, CLIENT_FULL);
        expect_contents(SUITES_13[i], &f, SERVER, SERVER_FULL_13);
        expect_answer(SUITES_13[i], &f, KIND_FULL);
        facts_done(&f);
        talk_close(t);
    }
}

Test(keyed, every_suite_of_tls_12)
{
    static const uint64_t OPTIONS[] = { 0, SSL_OP_NO_ENCRYPT_THEN_MAC,
                                        SSL_OP_NO_EXTENDED_MASTER_SECRET };
    for (size_t i = 0; i < COUNT(SUITES_12) * COUNT(OPTIONS); i++) {
        const char *suite = SUITES_12[i / COUNT(OPTIONS)];
        struct talk *t = talk_open(
            &(struct talk_options){ .suites_12 = suite, .no = OPTIONS[i % COUNT(OPTIONS)] });
        exchange(t);
        struct facts f = read_talk(t, &(struct damage){ 0 });
        cr_expect_eq(f.keys, KEYS_USED, "%s", suite);
        expect_contents(suite, &f, CLIENT, CLIENT_FULL);
        expect_contents(suite, &f, SERVER, SERVER_FULL_12);
        expect_answer(suite, &f, KIND_FULL);
        facts_done(&f);
        talk_close(t);
    }
}

Test(keyed, tls_12_resumed)
{
    struct talk *t = talk_open(&(struct talk_options){ .suites_12 = SUITES_12[0] });
    SSL_SESSION *session = talk_session(t);
    exchange(t);
    struct facts f = read_talk(t, &(struct damage){ 0 });
    cr_expect_eq(SSL_session_reused(t->ssl[CLIENT]), 1);
    cr_expect_eq(f.keys, KEYS_USED);
    expect_contents("resumed", &f, CLIENT, CLIENT_FULL);
    expect_contents("resumed", &f, SERVER, SERVER_FULL_12);
    expect_answer("resumed", &f, KIND_RESUMED);
    facts_done(&f);
    SSL_SESSION_free(session);
    talk_close(t);
}

/* ---- early data ---- */

struct early_case {
    const char *what, *suite;
    bool accepts;
    const char *groups; /* of the server: another one leads to HelloRetryRequest */
    bool forgets;       /* the server's ticket keys are others */
    enum kind kind;
    enum early_data early_data;
    const char *reason;
};

static const struct early_case EARLY_CASES[] = {
    { "accepted", "TLS_AES_128_GCM_SHA256", true, NULL, false, KIND_0RTT, EARLY_ACCEPTED,
      "encrypted_extensions" },
    { "accepted, SHA-384", "TLS_AES_256_GCM_SHA384", true, NULL, false, KIND_0RTT, EARLY_ACCEPTED,
      "encrypted_extensions" },
    { "psk kept", "TLS_AES_128_GCM_SHA256", false, NULL, false, KIND_RESUMED, EARLY_REJECTED,
      "psk_kept" },
    { "hello retry", "TLS_AES_128_GCM_SHA256", true, "P-384", false, KIND_RESUMED, EARLY_REJECTED,
      "hello_retry" },
    { "psk refused", "TLS_AES_128_GCM_SHA256", true, NULL, true, KIND_FULL, EARLY_REJECTED,
      "psk_refused" },
};

static void forget_ticket_keys(struct talk *t)
{
    unsigned char keys[80] = { 7 };
    cr_assert_eq(SSL_CTX_set_tlsext_ticket_keys(t->context[SERVER], keys, sizeof keys), 1);
}

/* A connection with early data; when it was refused, the client asks again. */
static struct talk *talk_early(const struct early_case *c)
{
    struct talk *t = talk_open(&(struct talk_options){ .suites_13 = c->suite, .early_data = true });
    SSL_SESSION *session = talk_session(t);
    if (!c->accepts)
        SSL_CTX_set_max_early_data(t->context[SERVER], 0);
    if (c->groups != NULL)
        cr_assert_eq(SSL_CTX_set1_groups_list(t->context[SERVER], c->groups), 1);
    if (c->forgets)
        forget_ticket_keys(t);
    talk_connect(t, session);
    talk_say_early(t, REQUEST);
    bool accepted = SSL_get_early_data_status(t->ssl[CLIENT]) == SSL_EARLY_DATA_ACCEPTED;
    cr_expect_eq(accepted, c->early_data == EARLY_ACCEPTED, "%s", c->what);
    if (!accepted)
        talk_say(t, CLIENT, REQUEST, strlen(REQUEST));
    talk_say(t, SERVER, RESPONSE, strlen(RESPONSE));
    SSL_SESSION_free(session);
    return t;
}

Test(keyed, early_data_in_each_of_its_ways)
{
    static const uint16_t ACCEPTED[] = { EARLY_REQUEST, END_OF_EARLY, FINISHED, 0 };
    static const uint16_t REJECTED[] = { EARLY_REQUEST, FINISHED, REQUEST_LINE, 0 };
    for (size_t i = 0; i < COUNT(EARLY_CASES); i++) {
        const struct early_case *c = &EARLY_CASES[i];
        struct talk *t = talk_early(c);
        struct facts f = read_talk(t, &(struct damage){ 0 });
        struct verdict v = judge(&f, NULL);
        bool accepted = c->early_data == EARLY_ACCEPTED;
        cr_expect_eq(f.keys, KEYS_USED, "%s", c->what);
        expect_contents(c->what, &f, CLIENT, accepted ? ACCEPTED : REJECTED);
        cr_expect_eq(v.early_data, c->early_data, "%s", c->what);
        cr_expect_eq(v.early_data_basis, BASIS_KEYLOG, "%s", c->what);
        cr_expect_str_eq(v.early_data_reason, c->reason, "%s", c->what);
        cr_expect_eq(v.early_data_bytes, strlen(REQUEST), "%s", c->what);
        cr_expect_eq(v.handshake_basis, accepted ? BASIS_KEYLOG : BASIS_PROTOCOL, "%s", c->what);
        cr_expect_eq((content_of(&f, v.request) & CONTENT_EARLY) != 0, accepted, "%s", c->what);
        cr_expect_eq(v.answered_early, accepted ? TRI_NO : TRI_UNKNOWN, "%s", c->what);
        expect_role(&f, &v, CLIENT, EARLY_REQUEST, ROLE_EARLY_DATA);
        expect_answer(c->what, &f, c->kind);
        facts_done(&f);
        talk_close(t);
    }
}

/* The client's Finished is found behind early data that cannot be opened, and the answer is known.
 */
Test(keyed, early_data_without_its_secret)
{
    for (size_t i = 0; i < COUNT(EARLY_CASES); i++) {
        const struct early_case *c = &EARLY_CASES[i];
        struct talk *t = talk_early(c);
        struct facts f = read_talk(t, &(struct damage){ .lost_label = "CLIENT_EARLY" });
        struct verdict v = judge(&f, NULL);
        cr_expect_eq(f.keys, KEYS_PARTIAL, "%s", c->what);
        cr_expect_eq(v.early_data, c->early_data, "%s", c->what);
        cr_expect_eq(v.early_data_basis, BASIS_KEYLOG, "%s", c->what);
        cr_expect_eq(v.handshake, c->kind, "%s", c->what);
        cr_expect_eq(content_of(&f, v.client_finished), FINISHED, "%s", c->what);
        cr_expect_eq(content_of(&f, v.response), STATUS_LINE, "%s", c->what);
        facts_done(&f);
        talk_close(t);
    }
}

/* ---- keys change, records are of every kind ---- */

Test(keyed, key_updates)
{
    static const uint16_t CLIENT_RECORDS[] = { FINISHED,   APPLICATION, KEY_UPDATE, APPLICATION,
                                               KEY_UPDATE, APPLICATION, 0 };
    struct talk *t = talk_open(&(struct talk_options){ .suites_13 = "TLS_AES_256_GCM_SHA384" });
    talk_settle(t);
    for (unsigned i = 0; i < 3; i++) {
        talk_say(t, CLIENT, "x", 1);
        if (i < 2)
            cr_assert_eq(SSL_key_update(t->ssl[CLIENT], SSL_KEY_UPDATE_NOT_REQUESTED), 1);
    }
    struct facts f = read_talk(t, &(struct damage){ 0 });
    cr_expect_eq(f.keys, KEYS_USED);
    expect_contents("key updates", &f, CLIENT, CLIENT_RECORDS);
    facts_done(&f);
    talk_close(t);
}

Test(keyed, client_certificate)
{
    static const uint16_t CLIENT_RECORDS[] = { CERTIFICATE, VERIFY, FINISHED, REQUEST_LINE, 0 };
    static const uint16_t SERVER_RECORDS[] = {
        EXTENSIONS, CERTIFICATE_REQUEST, CERTIFICATE, VERIFY, FINISHED, TICKET, TICKET, STATUS_LINE,
        0
    };
    struct talk *t = talk_open(&(struct talk_options){ .client_certificate = true });
    exchange(t);
    struct facts f = read_talk(t, &(struct damage){ 0 });
    struct verdict v = judge(&f, NULL);
    expect_contents("client certificate", &f, CLIENT, CLIENT_RECORDS);
    expect_contents("client certificate", &f, SERVER, SERVER_RECORDS);
    cr_expect_eq(v.client_certificate, TRI_YES);
    expect_role(&f, &v, SERVER, CERTIFICATE_REQUEST, ROLE_CERTIFICATE_REQUEST);
    expect_role(&f, &v, SERVER, TICKET, ROLE_TICKET);
    facts_done(&f);
    talk_close(t);
}

/* The client does not like the certificate: what it says is known by name. */
Test(keyed, encrypted_alert_by_name)
{
    struct talk *t = talk_open(&(struct talk_options){ 0 });
    SSL_set_verify(t->ssl[CLIENT], SSL_VERIFY_PEER, NULL);
    talk_settle(t);
    struct facts f = read_talk(t, &(struct damage){ 0 });
    f.fin_ns[CLIENT] = 50000000;
    struct verdict v = judge(&f, NULL);
    cr_expect_eq(v.outcome, OUTCOME_FAILED);
    cr_assert_not_null(v.failure);
    cr_expect(strcmp(v.failure, "unknown_ca") == 0 || strcmp(v.failure, "bad_certificate") == 0,
              "%s", v.failure);
    facts_done(&f);
    talk_close(t);
}

static void add_frame(char *at, size_t *len, uint8_t type, uint32_t stream, size_t body_len)
{
    const uint8_t header[] = { 0, (uint8_t)(body_len >> 8), (uint8_t)body_len, type, 0, 0, 0,
                               0, (uint8_t)stream };
    memcpy(at + *len, header, sizeof header);
    memset(at + *len + sizeof header, 0, body_len);
    *len += sizeof header + body_len;
}

/* SETTINGS before the request, their acknowledgment behind it, then HEADERS: that is the answer. */
Test(keyed, http2_response_is_the_first_with_headers)
{
    enum { HEADERS = 1, SETTINGS = 4 };
    char client[256] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", server[256];
    size_t client_len = strlen(client), server_len = 0;
    struct talk *t = talk_open(&(struct talk_options){ .alpn = "\x02h2" });
    talk_settle(t);
    add_frame(server, &server_len, SETTINGS, 0, 18);
    talk_say(t, SERVER, server, server_len);
    add_frame(client, &client_len, SETTINGS, 0, 6);
    talk_say(t, CLIENT, client, client_len);
    client_len = 0;
    add_frame(client, &client_len, HEADERS, 1, 40);
    talk_say(t, CLIENT, client, client_len);
    server_len = 0;
    add_frame(server, &server_len, SETTINGS, 0, 0);
    talk_say(t, SERVER, server, server_len);
    server_len = 0;
    add_frame(server, &server_len, HEADERS, 1, 60);
    talk_say(t, SERVER, server, server_len);
    struct facts f = read_talk(t, &(struct damage){ 0 });
    struct verdict v = judge(&f, NULL);
    cr_expect_str_eq(f.alpn, "h2");
    cr_expect_eq(content_of(&f, v.request), APPLICATION | CONTENT_HTTP2 | CONTENT_HEADERS);
    cr_expect_eq(content_of(&f, v.response), APPLICATION | CONTENT_HTTP2 | CONTENT_HEADERS);
    cr_expect_eq(v.response_basis, BASIS_KEYLOG);
    cr_expect_str_eq(v.response_reason, "http2_headers");
    cr_expect_lt(v.first_server_data_ns, v.request_ns);
    facts_done(&f);
    talk_close(t);
}

/* A greeting is the first data of the server, and no answer. */
Test(keyed, server_first)
{
    struct talk *t = talk_open(&(struct talk_options){ 0 });
    talk_settle(t);
    talk_say(t, SERVER, "220 ready\r\n", 11);
    talk_say(t, CLIENT, "EHLO x\r\n", 8);
    talk_say(t, SERVER, "250 hello\r\n", 11);
    struct facts f = read_talk(t, &(struct damage){ 0 });
    struct verdict v = judge(&f, NULL);
    cr_expect_eq(v.response_basis, BASIS_KEYLOG);
    cr_expect_str_eq(v.response_reason, "first_application_data");
    cr_expect_gt(v.response_ns, v.request_ns);
    cr_expect_lt(v.first_server_data_ns, v.request_ns);
    facts_done(&f);
    talk_close(t);
}

/* Tickets and nothing else: no response is made of them. */
Test(keyed, no_request_and_no_response)
{
    struct talk *t = talk_open(&(struct talk_options){ 0 });
    talk_settle(t);
    struct facts f = read_talk(t, &(struct damage){ 0 });
    struct verdict v = judge(&f, NULL);
    cr_expect_eq(v.request, -1);
    cr_expect_eq(v.response, -1);
    cr_expect_str_eq(v.response_reason, "no_request");
    facts_done(&f);
    talk_say(t, CLIENT, REQUEST, strlen(REQUEST));
    f = read_talk(t, &(struct damage){ 0 });
    v = judge(&f, NULL);
    cr_expect_eq(content_of(&f, v.request), REQUEST_LINE);
    cr_expect_eq(v.response, -1);
    cr_expect_eq(v.response_low, -1);
    cr_expect_str_eq(v.response_reason, "no_response");
    facts_done(&f);
    talk_close(t);
}

/* ---- damage ---- */

static struct talk *talk_long(void)
{
    struct talk *t = talk_open(&(struct talk_options){ .early_data = true });
    SSL_SESSION *session = talk_session(t);
    talk_say_early(t, REQUEST);
    talk_say(t, SERVER, RESPONSE, strlen(RESPONSE));
    talk_say(t, CLIENT, REQUEST, strlen(REQUEST));
    talk_say(t, SERVER, RESPONSE, strlen(RESPONSE));
    SSL_SESSION_free(session);
    return t;
}

static void expect_same_contents(const struct facts *a, const struct facts *b, unsigned cut)
{
    cr_assert_eq(a->record_count, b->record_count, "%u", cut);
    cr_expect_eq(a->keys, b->keys, "%u", cut);
    for (unsigned i = 0; i < a->record_count; i++)
        cr_expect_eq(a->records[i].content, b->records[i].content, "%u, record %u", cut, i);
}

Test(keyed, every_cut_gives_the_same)
{
    struct talk *t = talk_long();
    struct facts whole = read_talk(t, &(struct damage){ 0 });
    for (unsigned cut = 1; cut < 600; cut += cut < 40 ? 1 : 37) {
        struct facts f = read_talk(t, &(struct damage){ .cut = cut });
        expect_same_contents(&whole, &f, cut);
        facts_done(&f);
    }
    facts_done(&whole);
    talk_close(t);
}

/* Verdicts that differ in nothing a column shows. */
static void expect_same_verdict(const char *what, const struct verdict *a, const struct verdict *b)
{
    cr_expect_eq(a->handshake, b->handshake, "%s", what);
    cr_expect_eq(a->handshake_basis, b->handshake_basis, "%s", what);
    cr_expect_eq(a->early_data, b->early_data, "%s", what);
    cr_expect_eq(a->early_data_basis, b->early_data_basis, "%s", what);
    cr_expect_eq(a->early_data_bytes, b->early_data_bytes, "%s", what);
    cr_expect_eq(a->request, b->request, "%s", what);
    cr_expect_eq(a->response, b->response, "%s", what);
    cr_expect_eq(a->response_low, b->response_low, "%s", what);
    cr_expect_eq(a->response_high, b->response_high, "%s", what);
    cr_expect_eq(a->response_basis, b->response_basis, "%s", what);
    cr_expect_str_eq(a->response_reason, b->response_reason, "%s", what);
    cr_expect_eq(a->outcome, b->outcome, "%s", what);
    cr_expect_eq(a->first_server_data_ns, b->first_server_data_ns, "%s", what);
    cr_expect_arr_eq(a->role, b->role, sizeof a->role, "%s", what);
}

Test(keyed, wrong_secrets_change_nothing)
{
    for (size_t i = 0; i < COUNT(EARLY_CASES); i++) {
        struct talk *t = talk_early(&EARLY_CASES[i]);
        struct facts none = read_talk(t, &(struct damage){ .lost_label = "" });
        struct facts wrong = read_talk(t, &(struct damage){ .wrong_secrets = true });
        cr_expect_eq(none.keys, KEYS_NONE);
        cr_expect_eq(wrong.keys, KEYS_FAILED);
        for (unsigned r = 0; r < wrong.record_count; r++)
            cr_expect_eq(wrong.records[r].content, 0);
        cr_expect_null(wrong.alpn);
        struct verdict a = judge(&none, NULL), b = judge(&wrong, NULL);
        expect_same_verdict(EARLY_CASES[i].what, &a, &b);
        facts_done(&none);
        facts_done(&wrong);
        talk_close(t);
    }
}

Test(keyed, judged_without_keys_as_if_there_were_none)
{
    for (size_t i = 0; i < COUNT(EARLY_CASES); i++) {
        struct talk *t = talk_early(&EARLY_CASES[i]);
        struct facts none = read_talk(t, &(struct damage){ .lost_label = "" });
        struct facts keyed = read_talk(t, &(struct damage){ 0 });
        struct verdict a = judge(&none, NULL), b = judge_without_keys(&keyed, NULL);
        expect_same_verdict(EARLY_CASES[i].what, &a, &b);
        facts_done(&none);
        facts_done(&keyed);
        talk_close(t);
    }
}

/* Whatever secret is missing: what is said with certainty is right. */
Test(keyed, any_secret_may_be_missing)
{
    static const char *const LABELS[] = { "CLIENT_EARLY",   "CLIENT_HANDSHAKE", "SERVER_HANDSHAKE",
                                          "CLIENT_TRAFFIC", "SERVER_TRAFFIC",   "CLIENT_",
                                          "SERVER_" };
    for (size_t i = 0; i < COUNT(EARLY_CASES) * COUNT(LABELS); i++) {
        const struct early_case *c = &EARLY_CASES[i / COUNT(LABELS)];
        const char *label = LABELS[i % COUNT(LABELS)];
        struct talk *t = talk_early(c);
        struct facts all = read_talk(t, &(struct damage){ 0 });
        struct facts f = read_talk(t, &(struct damage){ .lost_label = label });
        struct verdict right = judge(&all, NULL), v = judge(&f, NULL);
        cr_expect(f.keys == KEYS_PARTIAL || f.keys == KEYS_USED, "%s %s", c->what, label);
        if (v.early_data_basis == BASIS_KEYLOG)
            cr_expect_eq(v.early_data, right.early_data, "%s %s", c->what, label);
        if (v.response_basis == BASIS_KEYLOG)
            cr_expect_eq(v.response, right.response, "%s %s", c->what, label);
        facts_done(&all);
        facts_done(&f);
        talk_close(t);
    }
}

/* Whatever flight was not captured: what is opened behind it is opened right. */
Test(keyed, any_flight_may_be_missing)
{
    struct talk *t = talk_long();
    struct facts all = read_talk(t, &(struct damage){ 0 });
    for (unsigned lost = 2; lost <= t->flight_count;
         lost++) { /* without a ClientHello no secrets */
        struct facts f = read_talk(t, &(struct damage){ .lost_flight = lost });
        unsigned opened = 0;
        for (unsigned i = 0; i < f.record_count; i++)
            for (unsigned k = 0; k < all.record_count; k++) {
                const struct record *r = &f.records[i], *whole = &all.records[k];
                if (r->content == 0 || r->side != whole->side || r->offset != whole->offset)
                    continue;
                opened++;
                cr_expect(whole->content == 0 || r->content == whole->content,
                          "flight %u lost: offset %d", lost, r->offset);
            }
        cr_expect_gt(opened, 1, "flight %u lost", lost);
        facts_done(&f);
    }
    facts_done(&all);
    talk_close(t);
}

/* Secrets between the packets, as some programs write them: behind the flight `behind`. */
static struct facts read_with_late_secrets(const struct talk *t, unsigned behind)
{
    struct secrets *wide = secrets_open(1, NULL), *s = secrets_open(2, wide);
    cr_assert(wide != NULL && s != NULL);
    char line[200] = "CLIENT_RANDOM ";
    size_t label_len = strlen(line);
    memset(line + label_len, '0', 161);
    line[label_len + 64] = ' ';
    cr_assert_eq(secrets_add_text(s, (struct bytes){ (const uint8_t *)line, label_len + 161 }),
                 STATUS_OK);
    struct tls tls = { .secrets = s };
    struct facts f = { .syn_seen = 1, .client_basis = CLIENT_BY_SYN };
    for (unsigned i = 0; i < t->flight_count; i++) {
        read_run(&tls, &f, t, i, 0, t->flight[i].len, false);
        if (i == behind)
            cr_assert_eq(secrets_add_text(s, (struct bytes){ t->key_log.at, t->key_log.len }),
                         STATUS_OK);
    }
    tls_end(&tls, &f);
    facts_finish(&f);
    tls_done(&tls);
    secrets_close(s);
    secrets_close(wide);
    return f;
}

Test(keyed, secrets_may_come_between_the_packets)
{
    struct talk *t = talk_open(&(struct talk_options){ 0 });
    exchange(t);
    for (unsigned behind = 0; behind < t->flight_count; behind++) {
        struct facts f = read_with_late_secrets(t, behind);
        cr_expect_eq(f.keys, KEYS_USED, "%u", behind);
        expect_answer("late secrets", &f, KIND_FULL);
        facts_done(&f);
    }
    talk_close(t);
}

/* Memory goes back when request and answer are known, and the connection may be parked. */
Test(keyed, ends_when_it_has_enough)
{
    struct talk *t = talk_open(&(struct talk_options){ 0 });
    exchange(t);
    struct secrets *secrets = secrets_of(t, &(struct damage){ 0 });
    struct tls tls = { .secrets = secrets };
    struct facts f = { .syn_seen = 1, .client_basis = CLIENT_BY_SYN };
    size_t most = 0;
    for (unsigned i = 0; i < t->flight_count; i++) {
        read_run(&tls, &f, t, i, 0, t->flight[i].len, false);
        most = tls_held_memory(&tls) > most ? tls_held_memory(&tls) : most;
    }
    cr_expect_gt(most, 0);
    cr_expect_null(tls.keyed);
    cr_expect_eq(tls_held_memory(&tls), 0);
    cr_expect_eq(f.keys, KEYS_USED);
    tls_done(&tls);
    facts_done(&f);
    secrets_close(secrets);
    talk_close(t);
}

/* A client sends early records and nobody answers: bodies wait up to a cap, records up to another.
 */
Test(keyed, what_waits_for_a_server_hello_has_caps)
{
    enum { BODY = 4096, HEADER = 5 };
    struct talk *t = talk_open(&(struct talk_options){ 0 });
    exchange(t);
    struct secrets *secrets = secrets_of(t, &(struct damage){ 0 });
    struct tls tls = { .secrets = secrets };
    struct facts f = { .syn_seen = 1, .client_basis = CLIENT_BY_SYN };
    static uint8_t record[HEADER + BODY] = { 0x17, 3, 3, BODY >> 8, BODY & 0xff };
    read_run(&tls, &f, t, 0, 0, t->flight[0].len, false);
    size_t most = 0, waiting = 0;
    for (; tls.keyed != NULL && waiting < (size_t)4 * KEYED_RECORDS_MAX; waiting++) {
        struct run run = { .offset = (int64_t)(t->flight[0].len + waiting * sizeof record),
                           .len = sizeof record,
                           .data = { record, sizeof record },
                           .starts_segment = true,
                           .at_ns = (int64_t)waiting,
                           .packet_no = waiting + 2,
                           .ack = 1 };
        cr_assert_eq(tls_add_run(&tls, &f, CLIENT, run), STATUS_OK);
        most = tls_held_memory(&tls) > most ? tls_held_memory(&tls) : most;
    }
    cr_expect_eq(waiting, KEYED_RECORDS_MAX + 1, "then it is over: %zu", waiting);
    cr_expect_lt(most, KEYED_BYTES_MAX + 32 * 1024);
    tls_done(&tls);
    facts_done(&f);
    secrets_close(secrets);
    talk_close(t);
}
