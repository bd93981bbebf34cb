/* SPDX-License-Identifier: Apache-2.0 */
/* Flows are written as ladders of one line, see flow_script.h. */
#include "judge.h"

#include "flow_script.h"
#include "random_facts.h"

#include <stdlib.h>

/* ---- what servers and clients of today send ---- */

enum offer { NO_OFFER, OFFERS_PSK, OFFERS_EARLY, PSK_REFUSED, EARLY_REFUSED_WITH_PSK };

struct shape {
    const char *name, *line;
    uint16_t cipher_suite, identity_len;
    enum offer offer;
    enum kind kind;
    enum early_data early_data;
    enum basis response_basis; /* at least, without history; BASIS_NONE: no response expected */
    const char *alpn_offered;
};

static const struct shape SHAPES[] = {
    /* OpenSSL: two tickets in full handshakes, one in resumed ones, behind the client's Finished */
    { "openssl full", "C hello S hello ccs 23 873 97 69f C ccs 69f C 78? S 258t 258t S 383! S 19",
      0x1302, 0, NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "openssl resumed", "C hello S hello ccs 23 69f C ccs 69f C 78? S 250t S 383! 19", 0x1302, 208,
      OFFERS_PSK, KIND_RESUMED, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "openssl accepted, answered late",
      "C hello ccs 78? S hello ccs 27 69f C 21e 69f S 258t S 383! 19", 0x1302, 208, OFFERS_EARLY,
      KIND_0RTT, EARLY_ACCEPTED, BASIS_STRONG, NULL },
    { "openssl AES-128", "C hello S hello ccs 23 873 97 53f C ccs 53f C 78? S 258t 258t S 383!",
      0x1301, 0, NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "openssl AES-128-CCM-8: tags of 8 bytes",
      "C hello ccs 70? S hello ccs 19 45f C 13e 45f S 250t S 383!", 0x1305, 208, OFFERS_EARLY,
      KIND_0RTT, EARLY_ACCEPTED, BASIS_STRONG, NULL },
    { "nginx accepted, answered early: the ticket comes last",
      "C hello ccs 78? S hello ccs 46 69f S 466! C 21e 69f S 306t", 0x1302, 256, OFFERS_EARLY,
      KIND_0RTT, EARLY_ACCEPTED, BASIS_STRONG, NULL },
    { "psk kept, early data refused",
      "C hello ccs 71 S hello ccs 23 69f C 69f C 71? S 250t S 383! 19", 0x1302, 208,
      EARLY_REFUSED_WITH_PSK, KIND_RESUMED, EARLY_REJECTED, BASIS_STRONG, NULL },
    { "psk refused", "C hello ccs 71 S hello ccs 23 873 97 69f C 69f C 71? S 258t 258t S 383! 19",
      0x1302, 208, PSK_REFUSED, KIND_FULL, EARLY_REJECTED, BASIS_STRONG, NULL },
    { "resumed, and no ticket", "C hello S hello ccs 38 69f C ccs 69f C 79? S 367! S 19", 0x1302,
      208, OFFERS_PSK, KIND_RESUMED, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "client certificate",
      "C hello S hello ccs 23 62 873 95 69f C ccs 871 97 69f C 71? S 714t S 714t S 383!", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "four tickets",
      "C hello S hello ccs 23 873 97 69f C ccs 69f C 71? S 258t 258t 258t 258t S 383!", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "two tickets that differ by a cipher block",
      "C hello S hello ccs 23 873 97 69f C ccs 69f C 71? S 250t S 266t S 383!", 0x1302, 0, NO_OFFER,
      KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    /* Go: the ticket is in the flight, before the client's Finished */
    { "go full", "C hello S hello ccs 23 873 95 53f 147t C ccs 53f C 75? S 343! 19", 0x1301, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "go resumed", "C hello S hello ccs 23 53f 147t C ccs 53f C 75? S 343! 19", 0x1301, 113,
      OFFERS_PSK, KIND_RESUMED, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    /* BoringSSL: flight in one record, both tickets in one, with the first response */
    { "boringssl full", "C hello S hello ccs 1011f C ccs 53f C 75? S 429t 383! 19", 0x1301, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_WEAK, NULL },
    { "boringssl resumed", "C hello S hello ccs 75f C ccs 53f C 75? S 429t 383! 19", 0x1301, 176,
      OFFERS_PSK, KIND_RESUMED, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "boringssl accepted: half-RTT tickets",
      "C hello ccs 75? S hello ccs 79f 429t C 21e 53f S 383! 19", 0x1301, 176, OFFERS_EARLY,
      KIND_0RTT, EARLY_ACCEPTED, BASIS_STRONG, NULL },
    /* NSS: one record, one ticket at once */
    { "nss full", "C hello S hello ccs 589f C ccs 53f C 75? S 206t S 161! 19", 0x1301, 0, NO_OFFER,
      KIND_FULL, EARLY_NOT_OFFERED, BASIS_WEAK, NULL },
    { "nss resumed", "C hello S hello ccs 83f C ccs 53f C 75? S 206t S 161! 19", 0x1301, 162,
      OFFERS_PSK, KIND_RESUMED, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    /* GnuTLS: ServerHello first, the rest when that was acknowledged; two tickets */
    { "gnutls certificate request",
      "C hello S hello ccs C +19 S 23 66 873 97 69f C ccs 25 69f C 78? S 292t 292t S 794! 19",
      0x1302, 0, NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "gnutls full: tickets in the flight",
      "C hello S hello ccs C +19 S 23 873 97 69f 276t 276t C ccs 69f C 78? S 794! 19", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "gnutls resumed", "C hello S hello ccs 23 69f C ccs 69f C 78? S 292t 292t S 794! 19", 0x1302,
      246, OFFERS_PSK, KIND_RESUMED, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    /* picotls: ticket with the flight; may answer before the client's Finished */
    { "picotls resumed", "C hello S hello 23 53f 74t C ccs 53f C 75? S 140!", 0x1301, 32,
      OFFERS_PSK, KIND_RESUMED, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "picotls accepted", "C hello 75? S hello 27 53f 74t 140! C 21e 53f", 0x1301, 32, OFFERS_EARLY,
      KIND_0RTT, EARLY_ACCEPTED, BASIS_STRONG, NULL },
    { "s2n full", "C hello S hello ccs C +19 S 23 873 97 53f C ccs 53f C 75? S 185t S 140!", 0x1301,
      0, NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_WEAK, NULL },
    { "s2n accepted", "C hello ccs 75? S hello ccs C +19 S 27 53f C 21e 53f S 185t S 140!", 0x1301,
      141, OFFERS_EARLY, KIND_0RTT, EARLY_ACCEPTED, BASIS_STRONG, NULL },
    { "wolfssl full", "C hello S hello 23 873 97 53f C ccs 53f C 75? S 209t S 140!", 0x1301, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_WEAK, NULL },
    { "wolfssl resumed", "C hello S hello 23 53f C ccs 53f C 75? S 209t S 140!", 0x1301, 174,
      OFFERS_PSK, KIND_RESUMED, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "rustls full", "C hello S hello ccs 27 873 97 69f C ccs 69f C 75? S 106t S 140!", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_WEAK, NULL },
    { "rustls resumed, two tickets in a record",
      "C hello S hello ccs C +19 S 90f C ccs 69f C 75? S 179t S 140!", 0x1302, 32, OFFERS_PSK,
      KIND_RESUMED, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "jdk server", "C hello S hello +1 S ccs 623f C ccs 53f C 75? S 718t S 108! 38", 0x1301, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_WEAK, NULL },
    { "jdk client pads by 16 bytes",
      "C hello S hello ccs 23 873 97 69f C ccs +100 C 85f C 94? S 258t 258t S 383!", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "jdk client with AES-128: its Finished is as long as that of SHA-384",
      "C hello S hello ccs 23 873 97 53f C ccs +100 C 69f C 94? S 258t 258t S 383!", 0x1301, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "jdk client, certificate asked and none sent",
      "C hello S hello ccs 23 66 873 97 69f C ccs 41 C 85f C 94? S 292t 292t S 793! 19", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "nss client: Certificate to Finished in one record",
      "C hello S hello ccs 23 66 873 97 69f C ccs 950f C 94? S 292t 292t S 793! 19", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "erlang: three tickets",
      "C hello S hello ccs 23 873 97 69f C ccs 69f C 71? S 182t S 182t S 182t S 383!", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "an unknown stack with 23 bytes of nonce and extensions, resumed",
      "C hello S hello ccs 23 69f C ccs 69f C 71? S 265t S 383!", 0x1302, 208, OFFERS_PSK,
      KIND_RESUMED, EARLY_NOT_OFFERED, BASIS_WEAK, NULL },
    /* HelloRetryRequest */
    { "hello retry",
      "C hello S retry ccs C ccs hello2 S hello 23 873 97 69f C 69f C 71? S 258t 258t S 383!",
      0x1302, 0, NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "hello retry refuses early data",
      "C hello ccs 71 S retry ccs C hello2 S hello 23 69f C 69f C 71? S 258t S 383!", 0x1302, 208,
      EARLY_REFUSED_WITH_PSK, KIND_RESUMED, EARLY_REJECTED, BASIS_STRONG, NULL },
    /* when the server speaks */
    { "greeting before the request is no response",
      "C hello S hello ccs 23 873 97 69f C ccs 69f S 250t 250t S 61 +5 C 40? S 90!", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "tickets are sent before the request arrives",
      "C hello S hello ccs 23 873 97 69f C ccs 69f C 78? s 258t 258t +30 S 383! 19", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "a record answers at the capture point what has not passed it: never",
      "C hello S hello ccs 23 873 97 69f C ccs 69f _ S 250t 250t +30 C 78? S 383!", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "nobody asks", "C hello S hello ccs 23 873 97 69f C ccs 69f S 258t 258t +99 C 19 fin S 19",
      0x1302, 0, NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_NONE, NULL },
    { "nobody answers", "C hello S hello ccs 23 69f C ccs 69f C 78? S 258t S 19 fin", 0x1302, 208,
      OFFERS_PSK, KIND_RESUMED, EARLY_NOT_OFFERED, BASIS_NONE, NULL },
    { "requests in parts: the first decides",
      "C hello ccs 21? +2 c 21 +2 c 21 S hello ccs 46 69f C 21e 69f S 290t S 112!", 0x1302, 240,
      OFFERS_EARLY, KIND_0RTT, EARLY_ACCEPTED, BASIS_STRONG, NULL },
    { "tiny responses: as long as a KeyUpdate",
      "C hello S hello ccs 23 873 97 69f C ccs 69f C 40? S 250t 250t S 22! C 40 S 22", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, NULL },
    { "equal answers to two requests are no tickets",
      "C hello S hello ccs 23 873 97 69f C ccs 69f C 78? S 383! C 78 S 383 C 78 S 383", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_WEAK, NULL },
    { "a late single record is no ticket",
      "C hello S hello ccs 23 873 97 69f C ccs 69f C 78? +400 S 383! +1 S 700", 0x1302, 0, NO_OFFER,
      KIND_FULL, EARLY_NOT_OFFERED, BASIS_WEAK, NULL },
    { "full records of a large response are no tickets",
      "C hello S hello ccs 23 873 97 69f C ccs 69f C 78? S 16401! 16401 16401 900", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_WEAK, NULL },
    /* HTTP/2 */
    { "http2: settings of their own",
      "C hello S hello ccs 32 873 97 53f 147t C ccs 53f C 81 65? S 50 S 39 S 585! C 26", 0x1301, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, "h2,http/1.1" },
    { "http2: settings with headers",
      "C hello S hello ccs 36 873 97 69f C ccs 69f C 81 60? S 290t 290t S 183! C 26", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, "h2,http/1.1" },
    { "http2: browser with everything in early data",
      "C hello ccs 344? S hello ccs 40 69f S 66 C 21e 69f 26 S 274t S 386! 19", 0x1302, 224,
      OFFERS_EARLY, KIND_0RTT, EARLY_ACCEPTED, BASIS_STRONG, "h2,http/1.1" },
    { "http2 offered, http/1.1 chosen",
      "C hello S hello ccs 42 873 97 69f C ccs 69f C 81? S 290t 290t S 62! S 300", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_STRONG, "h2,http/1.1" },
    { "http2: one ticket between settings and their acknowledgment",
      "C hello S hello ccs 1027f S 69 C ccs 53f C 81 58? 26 S 198t S 26 S 121!", 0x1301, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_WEAK, "h2,http/1.1" },
    /* padding (RFC 8446 5.4) */
    { "server pads to 256",
      "C hello S hello ccs 272 1040 272 272f C ccs 69f C 71? S 272t 272t S 528! S 272", 0x1302, 0,
      NO_OFFER, KIND_FULL, EARLY_NOT_OFFERED, BASIS_WEAK, NULL },
    { "server pads to 256, resumed",
      "C hello ccs 71? S hello ccs 272 272f C 21e 69f S 272t S 528! S 272", 0x1302, 208,
      OFFERS_EARLY, KIND_0RTT, EARLY_ACCEPTED, BASIS_WEAK, NULL },
};

static void read_shape(struct script *s, const struct shape *shape)
{
    script_read(s, shape->line);
    s->facts.cipher_suite = shape->cipher_suite;
    s->facts.alpn_offered = (char *)shape->alpn_offered;
    if (shape->offer != NO_OFFER)
        script_resume(s, shape->identity_len);
    if (shape->offer == PSK_REFUSED)
        s->facts.psk_selected = 0;
    if (shape->offer > OFFERS_PSK)
        script_offer_early_data(s);
}

static void expect_response(const char *name, const struct verdict *v, const struct script *s,
                            enum basis at_least)
{
    cr_expect_eq(v->request, s->marks.request, "%s: request %d", name, v->request);
    cr_expect_eq(v->response, s->marks.response, "%s: response %d (%s)", name, v->response,
                 v->response_reason);
    cr_expect_geq(v->response_basis, at_least, "%s: basis", name);
    if (v->response < 0)
        return;
    int64_t at_ns = s->records[v->response].at_ns;
    cr_expect_eq(v->response_ns, at_ns, "%s: time", name);
    cr_expect(v->response_low_ns <= at_ns && at_ns <= v->response_high_ns, "%s: bounds", name);
}

Test(judge, shapes_of_stacks_at_first_contact)
{
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) {
        const struct shape *shape = &SHAPES[i];
        struct script s;
        read_shape(&s, shape);
        struct verdict v = judge(&s.facts, NULL);
        cr_expect_eq(v.handshake, shape->kind, "%s: kind %s", shape->name, kind_text(v.handshake));
        cr_expect_geq(v.handshake_basis, BASIS_STRONG, "%s: kind's basis", shape->name);
        cr_expect_eq(v.early_data, shape->early_data, "%s: early data %s", shape->name,
                     early_data_text(v.early_data));
        cr_expect_eq(v.client_finished, s.marks.finished[CLIENT], "%s: client Finished %d",
                     shape->name, v.client_finished);
        cr_expect_eq(v.server_finished, s.marks.finished[SERVER], "%s: server Finished %d",
                     shape->name, v.server_finished);
        expect_response(shape->name, &v, &s, shape->response_basis);
        for (int r = 0; r < s.facts.record_count; r++)
            cr_expect_eq(v.role[r] == ROLE_TICKET, s.marks.is_ticket[r], "%s: record %d is %s",
                         shape->name, r, role_text(v.role[r]));
    }
}

/* ---- nothing certain from what was not captured ---- */

/* Replaces one record by a hole of its size, as if its segment had been lost before the capture. */
static void lose_record(struct script *s, int index)
{
    struct record *r = &s->records[index];
    r->len += 5;
    r->type = RECORD_HOLE;
    r->ack = ACK_UNKNOWN;
    r->flags = 0;
    r->first_message = 255;
    s->facts.boundary_losses[r->side]++;
}

static bool is_hello(const struct record *r)
{
    return r->first_message == HANDSHAKE_CLIENT_HELLO || r->first_message == HANDSHAKE_SERVER_HELLO;
}

/* A response is wrong when it is later than the true one, or another record of before. */
static bool answers_wrongly(const struct verdict *v, const struct script *s, int lost)
{
    if (v->response < 0 || v->response_basis < BASIS_STRONG)
        return false;
    return lost == s->marks.response || v->response != s->marks.response;
}

Test(judge, one_lost_record_makes_no_verdict_wrong_that_calls_itself_strong)
{
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) {
        const struct shape *shape = &SHAPES[i];
        struct script s;
        read_shape(&s, shape);
        for (int lost = 0; lost < s.facts.record_count; lost++) {
            read_shape(&s, shape);
            if (is_hello(&s.records[lost]))
                continue;
            lose_record(&s, lost);
            struct verdict v = judge(&s.facts, NULL);
            bool kind_is_wrong = v.handshake != shape->kind && v.handshake != KIND_UNKNOWN;
            cr_expect(!kind_is_wrong || v.handshake_basis < BASIS_STRONG,
                      "%s without record %d: %s, %s", shape->name, lost, kind_text(v.handshake),
                      basis_text(v.handshake_basis));
            bool early_is_wrong =
                v.early_data != shape->early_data && v.early_data != EARLY_UNKNOWN;
            cr_expect(!early_is_wrong || v.early_data_basis < BASIS_STRONG,
                      "%s without record %d: early data %s", shape->name, lost,
                      early_data_text(v.early_data));
            if (shape->response_basis >= BASIS_STRONG)
                cr_expect(!answers_wrongly(&v, &s, lost), "%s without record %d: response %d, %s",
                          shape->name, lost, v.response, basis_text(v.response_basis));
        }
    }
}

Test(judge, one_lost_record_leaves_the_response_within_its_bounds)
{
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) {
        const struct shape *shape = &SHAPES[i];
        struct script s;
        read_shape(&s, shape);
        for (int lost = 0; lost < s.facts.record_count; lost++) {
            read_shape(&s, shape);
            if (is_hello(&s.records[lost]) || lost == s.marks.request || s.marks.response < 0)
                continue;
            int64_t truth = s.records[s.marks.response].at_ns;
            lose_record(&s, lost);
            struct verdict v = judge(&s.facts, NULL);
            if (v.response < 0 || v.request != s.marks.request)
                continue;
            cr_expect(v.response_low_ns <= truth, "%s without record %d: low", shape->name, lost);
        }
    }
}

Test(judge, cut_anywhere_the_flow_gives_no_wrong_strong_verdict)
{
    for (size_t i = 0; i < sizeof SHAPES / sizeof *SHAPES; i++) {
        const struct shape *shape = &SHAPES[i];
        struct script s;
        read_shape(&s, shape);
        int all = s.facts.record_count;
        for (int kept = 0; kept <= all; kept++) {
            read_shape(&s, shape);
            s.facts.record_count = (uint16_t)kept;
            struct verdict v = judge(&s.facts, NULL);
            bool early_is_wrong =
                v.early_data != shape->early_data && v.early_data != EARLY_UNKNOWN;
            cr_expect(!early_is_wrong || v.early_data_basis < BASIS_STRONG, "%s, %d records: %s",
                      shape->name, kept, early_data_text(v.early_data));
            if (shape->response_basis >= BASIS_STRONG && s.marks.response < kept)
                cr_expect(!answers_wrongly(&v, &s, -1), "%s, %d records: response %d", shape->name,
                          kept, v.response);
        }
    }
}

Test(judge, records_beyond_those_that_are_kept_are_the_reason)
{
    struct script s;
    script_read(&s, "C hello S hello ccs 23 529 529 529 529 529 529 C ccs 69f C 78?");
    s.facts.records_full[SERVER] = 1;
    struct verdict v = judge(&s.facts, NULL);
    cr_expect_eq(v.handshake, KIND_FULL);
    cr_expect_eq(v.response, -1);
    cr_expect_str_eq(v.response_reason, "records_not_kept");
    cr_expect_eq(v.server_flight_bytes, -1);
}

/* ---- early data, rule by rule ---- */

static struct verdict judge_line(struct script *s, const char *line, uint16_t identity_len,
                                 bool offers_early_data)
{
    script_read(s, line);
    if (identity_len > 0)
        script_resume(s, identity_len);
    if (offers_early_data)
        script_offer_early_data(s);
    return judge(&s->facts, NULL);
}

#define ACCEPTED "C hello ccs 78? S hello ccs 27 69f C 21e 69f S 258t S 383!"
#define KEPT "C hello ccs 78 S hello ccs 23 69f C 69f C 78? S 258t S 383!"

Test(judge, rule_1_no_extension_no_offer)
{
    struct script s;
    struct verdict v = judge_line(&s, "C hello S hello ccs 23 69 C 69", 208, false);
    cr_expect_eq(v.early_data, EARLY_NOT_OFFERED);
    cr_expect_eq(v.early_data_basis, BASIS_PROTOCOL);
    cr_expect_eq(v.early_data_bytes, -1);
}

Test(judge, rule_2_refused_in_clear)
{
    struct script s;
    script_read(&s, KEPT);
    script_offer_early_data(&s);
    s.facts.psk_offered = 1;
    struct verdict v = judge(&s.facts, NULL);
    cr_expect_eq(v.early_data, EARLY_REJECTED);
    cr_expect_eq(v.early_data_basis, BASIS_PROTOCOL);
    cr_expect_str_eq(v.early_data_reason, "psk_refused");

    script_resume(&s, 208);
    s.facts.selected_identity = 1;
    v = judge(&s.facts, NULL);
    cr_expect_eq(v.early_data_basis, BASIS_PROTOCOL);
    cr_expect_str_eq(v.early_data_reason, "psk_not_first");

    script_read(&s, "C hello ccs 78 S retry ccs");
    script_offer_early_data(&s);
    s.facts.version = 0;
    v = judge(&s.facts, NULL);
    cr_expect_eq(v.early_data, EARLY_REJECTED);
    cr_expect_str_eq(v.early_data_reason, "hello_retry");

    script_read(&s, "C hello ccs 78 S hello m11 m14");
    script_offer_early_data(&s);
    s.facts.version = TLS_1_2;
    v = judge(&s.facts, NULL);
    cr_expect_eq(v.early_data, EARLY_REJECTED);
    cr_expect_eq(v.early_data_basis, BASIS_PROTOCOL);
    cr_expect_str_eq(v.early_data_reason, "version");
}

Test(judge, rule_3_end_of_early_data_next_to_finished)
{
    struct script s;
    struct verdict v = judge_line(&s, ACCEPTED, 208, true);
    cr_expect_eq(v.early_data, EARLY_ACCEPTED);
    cr_expect_eq(v.early_data_basis, BASIS_STRONG);
    cr_expect_eq(v.early_data_bytes, 78 - 17);
    cr_expect_eq(v.answered_early, TRI_NO);
    cr_expect_eq(v.expected_round_trips, 3);
    cr_expect_eq(v.role[s.marks.end_of_early_data], ROLE_END_OF_EARLY_DATA);
}

Test(judge, rule_3_two_segments_are_weaker_than_one)
{
    struct script s;
    struct verdict v =
        judge_line(&s, "C hello ccs 78? S hello ccs 27 69f C 21e C 69f S 258 S 383!", 208, true);
    cr_expect_eq(v.early_data, EARLY_ACCEPTED);
    cr_expect_eq(v.early_data_basis, BASIS_WEAK);
    v = judge_line(&s, "C hello ccs 78 S hello ccs 27 69f C 21 +50 C 69f S 258 S 383!", 208, true);
    cr_expect_neq(v.early_data, EARLY_ACCEPTED, "50 ms lie between");
}

Test(judge, rule_3_a_last_early_record_of_four_bytes_is_no_end_of_early_data)
{
    struct script s;
    struct verdict v = judge_line(
        &s, "C hello ccs 78 +2 c 21 S hello ccs 23 69f C 69f C 78? S 258 S 383!", 208, true);
    cr_expect_eq(v.early_data, EARLY_REJECTED);
    cr_expect_eq(v.early_data_basis, BASIS_STRONG);
    v = judge_line(&s, "C hello ccs 78? +2 c 21 S hello ccs 27 69f C 21e 69f S 258 S 383!", 208,
                   true);
    cr_expect_eq(v.early_data, EARLY_ACCEPTED);
    cr_expect_eq(v.early_data_bytes, 78 + 21 - 2 * 17);
}

Test(judge, rule_4_finished_alone)
{
    struct script s;
    struct verdict v = judge_line(&s, KEPT, 208, true);
    cr_expect_eq(v.handshake, KIND_RESUMED);
    cr_expect_eq(v.early_data, EARLY_REJECTED);
    cr_expect_eq(v.early_data_basis, BASIS_STRONG);
    cr_expect_str_eq(v.early_data_reason, "psk_kept");
    cr_expect_eq(v.early_data_bytes, 78 - 17);
    cr_expect_eq(v.answered_early, TRI_UNKNOWN);
}

Test(judge, early_data_that_crosses_the_server_hello_is_still_early)
{
    struct script s;
    struct verdict v =
        judge_line(&s, "C hello S hello ccs 27 69f C 59? +50 C 21e 69f S 258t S 383!", 208, true);
    cr_expect_eq(v.handshake, KIND_0RTT);
    cr_expect_eq(v.request, s.marks.request);
    cr_expect_eq(v.response, s.marks.response);
}

Test(judge, accepted_but_none_sent_is_a_resumption)
{
    struct script s;
    struct verdict v =
        judge_line(&s, "C hello S hello ccs 27 69f C 21e 69f C 78? S 258t S 383!", 208, true);
    cr_expect_eq(v.early_data, EARLY_ACCEPTED);
    cr_expect_eq(v.handshake, KIND_RESUMED);
    cr_expect_eq(v.early_data_bytes, 0);
    cr_expect_eq(v.response, s.marks.response);
}

Test(judge, merged_early_records_count)
{
    struct script s;
    script_read(&s, ACCEPTED);
    script_resume(&s, 208);
    script_offer_early_data(&s);
    struct record *early = &s.records[s.marks.request];
    early->flags |= RECORD_MERGED;
    early->skipped = 3;
    early->skipped_len = 3 * 100;
    for (int i = s.marks.request + 1; i < s.facts.record_count; i++) {
        if (s.records[i].side == CLIENT)
            s.records[i].offset += 3 * 105;
        else
            s.records[i].ack += 3 * 105;
    }
    struct verdict v = judge(&s.facts, NULL);
    cr_expect_eq(v.handshake, KIND_0RTT);
    cr_expect_eq(v.early_data_bytes, 78 - 17 + 3 * (100 - 17));
}

Test(judge, rule_8_a_client_that_left_with_the_flight_in_hand)
{
    struct script s;
    struct verdict v = judge_line(&s, "C hello ccs 78 S hello ccs 23 69 C fin", 208, true);
    cr_expect_eq(v.early_data, EARLY_REJECTED);
    cr_expect_eq(v.early_data_basis, BASIS_WEAK);
    cr_expect_eq(v.outcome, OUTCOME_ABANDONED);
    v = judge_line(&s, "C hello ccs 78 S hello ccs 23 69", 208, true);
    cr_expect_eq(v.early_data, EARLY_UNKNOWN);
    cr_expect_eq(v.handshake, KIND_UNKNOWN);
    cr_expect_eq(v.outcome, OUTCOME_UNSEEN);
}

Test(judge, an_old_draft_is_judged_by_its_psk_alone)
{
    struct script s;
    script_read(&s, KEPT);
    script_resume(&s, 208);
    script_offer_early_data(&s);
    s.facts.version = TLS_1_3_DRAFT + 18;
    struct verdict v = judge(&s.facts, NULL);
    cr_expect_eq(v.early_data, EARLY_UNKNOWN);
    s.facts.early_data_offered = 0;
    cr_expect_eq(judge(&s.facts, NULL).handshake, KIND_RESUMED);
    s.facts.psk_selected = 0;
    cr_expect_eq(judge(&s.facts, NULL).handshake, KIND_FULL);
}

Test(judge, answered_early_by_acknowledgment_never_by_order)
{
    struct script s;
    struct verdict v =
        judge_line(&s, "C hello ccs 78? S hello ccs 46 69f C 21e 69f s 466! S 274t", 224, true);
    cr_expect_eq(v.answered_early, TRI_YES, "it comes later, but does not have the Finished");
    cr_expect_eq(v.expected_round_trips, 2);
}

Test(judge, early_data_answered_shortly_and_asked_again)
{
    struct script s;
    struct verdict v = judge_line(
        &s, "C hello ccs 71? S hello ccs 27 69f S 109! C 21e 69f C 71 S 82 S 383", 32, true);
    cr_expect_eq(v.response, s.marks.response);
    cr_expect_str_eq(v.response_reason, "asked_again_behind_handshake");
    v = judge_line(&s, "C hello ccs 71? S hello ccs 27 69f S 109! C 21e 69f C 90 S 82 S 383", 32,
                   true);
    cr_expect_str_neq(v.response_reason, "asked_again_behind_handshake");
}

/* ---- hellos that were cut or never captured ---- */

Test(judge, a_cut_client_hello_offers_what_it_sends)
{
    struct script s;
    script_read(&s, "C hello cut89 S hello ccs 27 69f C 21ue 69f S 258t S 383!");
    s.facts.client_hello_complete = 0;
    s.facts.psk_selected = 1;
    struct verdict v = judge(&s.facts, NULL);
    cr_expect_eq(v.handshake, KIND_0RTT);
    cr_expect_eq(v.early_data, EARLY_ACCEPTED);
    cr_expect_eq(v.response, s.marks.response);
    cr_expect_eq(v.response_basis, BASIS_WEAK);

    script_read(&s, "C hello S hello ccs 23 69f C ccs 69f C 78? S 258t S 383!");
    s.facts.client_hello_complete = 0;
    s.facts.psk_selected = 1;
    v = judge(&s.facts, NULL);
    cr_expect_eq(v.handshake, KIND_RESUMED);
    cr_expect_eq(v.early_data, EARLY_NOT_OFFERED);
    cr_expect_eq(v.early_data_basis, BASIS_WEAK);
}

Test(judge, a_cut_server_hello_gives_no_kind_but_the_rest)
{
    struct script s;
    script_read(&s, "C hello S hello cut1100 C ccs 69f C 78? S 258tu S 258t S 383!");
    s.facts.client_hello_complete = s.facts.server_hello_complete = 0;
    s.facts.version = TLS_1_2; /* as it reads without supported_versions */
    s.facts.client_version = TLS_1_2;
    s.facts.cipher_suite = 0;
    struct verdict v = judge(&s.facts, NULL);
    cr_expect_eq(v.handshake, KIND_UNKNOWN);
    cr_expect_str_eq(v.handshake_reason, "server_hello_cut");
    cr_expect_eq(v.client_finished, s.marks.finished[CLIENT]);
    cr_expect_eq(v.response, s.marks.response);
    cr_expect_eq(v.response_basis, BASIS_WEAK);
}

Test(judge, without_a_client_hello_nothing_is_said_of_its_offer)
{
    struct script s;
    script_read(&s, "S hello ccs 23 69 S 258");
    s.facts.psk_selected = 1;
    struct verdict v = judge(&s.facts, NULL);
    cr_expect_eq(v.early_data, EARLY_NO_HELLO);
    cr_expect_null(early_data_text(v.early_data));
    cr_expect_eq(v.handshake, KIND_RESUMED);
    cr_expect_eq(v.handshake_basis, BASIS_WEAK);
    cr_expect_eq(v.response, -1);
}

Test(judge, without_the_server_a_client_shows_tls12_and_nothing_of_tls13)
{
    struct script s;
    script_read(&s, "C hello C m16 ccs m0f C 78");
    s.facts.version = 0;
    struct verdict v = judge(&s.facts, NULL);
    cr_expect_eq(v.handshake, KIND_FULL);
    cr_expect_eq(v.handshake_basis, BASIS_PROTOCOL);

    script_read(&s, "C hello C ccs m0f C 78");
    s.facts.version = 0;
    v = judge(&s.facts, NULL);
    cr_expect_eq(v.handshake, KIND_RESUMED);

    script_read(&s, "C hello C ccs 69f C 78");
    s.facts.version = 0;
    v = judge(&s.facts, NULL);
    cr_expect_eq(v.handshake, KIND_UNKNOWN);

    script_read(&s, "C hello S retry C ccs hello2 C 69");
    s.facts.version = 0;
    v = judge(&s.facts, NULL);
    cr_expect_neq(v.handshake, KIND_RESUMED, "a second ClientHello is no Finished");
}

/* Leaves the records of one side, which still acknowledge what the other sent. */
static void keep_side(struct script *s, enum side side)
{
    uint16_t kept = 0;
    for (int i = 0; i < s->facts.record_count; i++)
        if (s->records[i].side == side)
            s->records[kept++] = s->records[i];
    s->facts.record_count = kept;
    struct facts *f = &s->facts;
    f->packets[other_side(side)] = 0;
    if (side == CLIENT) {
        f->server_hello_seen = f->server_hello_complete = f->psk_selected = 0;
        f->version = f->cipher_suite = 0;
        f->server_hello_end = 0;
    } else {
        f->client_hello_seen = f->client_hello_complete = 0;
        f->client_hello_end = 0;
    }
}

static struct verdict judge_one_side(struct script *s, const char *line, uint16_t identity_len,
                                     bool offers_early_data, enum side side)
{
    script_read(s, line);
    if (identity_len > 0)
        script_resume(s, identity_len);
    s->facts.early_data_offered = offers_early_data;
    keep_side(s, side);
    return judge(&s->facts, NULL);
}

Test(judge, the_client_alone_shows_what_became_of_its_early_data)
{
    struct script s;
    struct verdict v = judge_one_side(&s, ACCEPTED, 208, true, CLIENT);
    cr_expect_eq(v.handshake, KIND_0RTT);
    cr_expect_eq(v.early_data, EARLY_ACCEPTED);
    cr_expect_eq(v.request, 2);
    cr_expect_eq(v.response, -1);
    cr_expect_str_eq(v.response_reason, "server_not_captured");
    v = judge_one_side(&s, KEPT, 208, true, CLIENT);
    cr_expect_eq(v.handshake, KIND_RESUMED);
    cr_expect_eq(v.handshake_basis, BASIS_WEAK);
    cr_expect_eq(v.early_data, EARLY_REJECTED);
    cr_expect_eq(v.early_data_basis, BASIS_WEAK);
}

Test(judge, the_client_alone_shows_how_long_the_server_flight_was)
{
    struct script s;
    const char *full = "C hello S hello ccs 23 873 97 69 C ccs 69f C 78";
    struct verdict v = judge_one_side(&s, full, 0, false, CLIENT);
    cr_expect_eq(v.handshake, KIND_FULL);
    cr_expect_eq(v.handshake_basis, BASIS_STRONG, "no ticket, no resumption");
    v = judge_one_side(&s, full, 208, false, CLIENT);
    cr_expect_eq(v.handshake, KIND_FULL);
    cr_expect_eq(v.handshake_basis, BASIS_WEAK);
    v = judge_one_side(&s, "C hello S hello ccs 23 69 C ccs 69f C 78", 208, false, CLIENT);
    cr_expect_eq(v.handshake, KIND_RESUMED);
    cr_expect_eq(v.handshake_basis, BASIS_WEAK);
    cr_expect_geq(v.client_finished_ns, s.facts.start_ns);
    cr_expect_eq(v.request_ns, s.records[3].at_ns);
}

Test(judge, the_server_alone_shows_what_it_acknowledges)
{
    struct script s;
    struct verdict v = judge_one_side(&s, ACCEPTED, 208, true, SERVER);
    cr_expect_eq(v.handshake, KIND_0RTT);
    cr_expect_eq(v.handshake_basis, BASIS_WEAK);
    cr_expect_eq(v.early_data, EARLY_NO_HELLO);
    v = judge_one_side(&s, "C hello S hello ccs 23 69 C ccs 69f C 78 S 258 S 383", 208, false,
                       SERVER);
    cr_expect_eq(v.handshake, KIND_RESUMED);
    v = judge_one_side(&s, "C hello S hello ccs 23 873 97 69 C ccs 69f C 78 S 258", 0, false,
                       SERVER);
    cr_expect_eq(v.handshake, KIND_FULL);
    cr_expect_eq(v.handshake_basis, BASIS_PROTOCOL);
}

Test(judge, parts_of_tls_and_tcp_can_be_exchanged)
{
    struct script s;
    script_read(&s, "C hello S hello ccs 23 873 97 69 C ccs 69 C 78 S 258 258 S 383");
    for (int i = 0; i < s.facts.record_count; i++)
        s.records[i].side = (uint8_t)other_side((enum side)s.records[i].side);
    s.facts.hello_side = SERVER;
    struct verdict v = judge(&s.facts, NULL);
    cr_expect_eq(v.handshake, KIND_FULL);
    cr_expect_geq(v.client_finished, 0);
    cr_expect_eq(v.response, -1);
    cr_expect_str_eq(v.response_reason, "parts_exchanged");
}

/* ---- TLS 1.2 and older ---- */

static struct verdict judge_tls12_line(struct script *s, const char *line)
{
    script_read(s, line);
    s->facts.version = TLS_1_2;
    s->facts.cipher_suite = 0xc02f;
    return judge(&s->facts, NULL);
}

#define FULL_12 "C hello S hello m11:900 m12 m14 C m16 ccs m0f S m4 ccs m0f C 78? S 383!"
#define RESUMED_12 "C hello S hello ccs m0f C ccs m0f C 78? S 383!"

Test(judge, tls12_full)
{
    struct script s;
    struct verdict v = judge_tls12_line(&s, FULL_12);
    cr_expect_eq(v.handshake, KIND_FULL);
    cr_expect_eq(v.handshake_basis, BASIS_PROTOCOL);
    cr_expect_eq(v.resumed_by, RESUMED_BY_NOTHING);
    cr_expect_eq(v.false_start, TRI_NO);
    cr_expect_eq(v.client_certificate, TRI_NO);
    cr_expect_eq(v.expected_round_trips, 4);
    cr_expect_eq(v.handshake_done_ns, s.records[s.marks.request].at_ns, "when it had Finished");
    expect_response("full", &v, &s, BASIS_PROTOCOL);
}

Test(judge, tls12_resumed_by_session_id_or_ticket)
{
    struct script s;
    script_read(&s, RESUMED_12);
    s.facts.version = TLS_1_2;
    s.facts.session_id_echoed = 1;
    struct verdict v = judge(&s.facts, NULL);
    cr_expect_eq(v.handshake, KIND_RESUMED);
    cr_expect_eq(v.handshake_basis, BASIS_PROTOCOL);
    cr_expect_eq(v.resumed_by, RESUMED_BY_SESSION_ID);
    cr_expect_eq(v.expected_round_trips, 3);
    cr_expect_eq(v.handshake_done_ns, s.records[s.marks.finished[CLIENT]].at_ns);
    s.facts.ticket_offered = 1;
    cr_expect_eq(judge(&s.facts, NULL).resumed_by, RESUMED_BY_SESSION_ID, "an empty ticket");
    s.facts.ticket_len = 192;
    cr_expect_eq(judge(&s.facts, NULL).resumed_by, RESUMED_BY_TICKET);
    v = judge_tls12_line(&s, "C hello S hello m4 ccs m0f C ccs m0f C 78? S 383!");
    cr_expect_eq(v.handshake, KIND_RESUMED, "a new ticket may stand between");
    cr_expect_eq(v.role[2], ROLE_TICKET);
}

Test(judge, tls12_a_hole_where_the_certificate_was_is_no_resumption)
{
    struct script s;
    struct verdict v = judge_tls12_line(&s, "C hello S hello hole1000 C m16 ccs m0 S ccs m0 C 78");
    cr_expect_eq(v.handshake, KIND_FULL, "its ClientKeyExchange shows it");
    v = judge_tls12_line(&s, "C hello S hello hole1000 S ccs m0 C 78");
    cr_expect_eq(v.handshake, KIND_UNKNOWN);
    cr_expect_eq(v.handshake_basis, BASIS_NONE);
    v = judge_tls12_line(&s, "C hello S hello C hole150 S ccs m0 C 78");
    cr_expect_eq(v.handshake, KIND_UNKNOWN, "the server had waited for what was lost");
}

Test(judge, tls12_false_start)
{
    struct script s;
    struct verdict v =
        judge_tls12_line(&s, "C hello S hello m11 m12 m14 C m16 ccs m0f 78? S ccs m0f S 383!");
    cr_expect_eq(v.false_start, TRI_YES);
    cr_expect_eq(v.expected_round_trips, 3);
    cr_expect_eq(v.handshake_done_ns, s.records[s.marks.finished[CLIENT]].at_ns);
    expect_response("false start", &v, &s, BASIS_PROTOCOL);
}

Test(judge, tls12_split_and_empty_records_are_application_data)
{
    struct script s;
    struct verdict v = judge_tls12_line(&s, "C hello S hello ccs m0f C ccs m0f C 24? 78 S 32! 383");
    expect_response("1/n-1 split", &v, &s, BASIS_PROTOCOL);
}

Test(judge, tls12_http2_by_its_visible_choice)
{
    struct script s;
    script_read(&s, "C hello S hello ccs m0f C ccs m0f C 94 470? S 64 S 33 S 407!");
    s.facts.version = TLS_1_2;
    s.facts.cipher_suite = 0xc02b;
    s.facts.alpn = (char *)"h2";
    struct verdict v = judge(&s.facts, NULL);
    expect_response("h2", &v, &s, BASIS_STRONG);
    cr_expect_eq(v.first_server_data_ns, s.records[s.marks.response - 2].at_ns);
}

Test(judge, tls12_client_certificate_asked)
{
    struct script s;
    struct verdict v =
        judge_tls12_line(&s, "C hello S hello m11 m13 m14 C m11 m16 m15 ccs m0f S ccs m0f");
    cr_expect_eq(v.client_certificate, TRI_YES);
}

Test(judge, ssl3_as_tls12_and_ssl2_not_at_all)
{
    struct script s;
    script_read(&s, FULL_12);
    s.facts.version = SSL_3_0;
    s.facts.cipher_suite = 0x000a;
    cr_expect_eq(judge(&s.facts, NULL).handshake, KIND_FULL);
    s.facts.version = SSL_2_0;
    cr_expect_eq(judge(&s.facts, NULL).handshake, KIND_UNKNOWN);
}

/* ---- outcome ---- */

static const struct {
    const char *line;
    uint16_t version;
    enum outcome outcome;
    const char *failure;
} OUTCOMES[] = {
    { "C hello S hello ccs 23 873 97 69 C ccs 69 C 78 S 383", TLS_1_3, OUTCOME_COMPLETED, NULL },
    { "C hello S hello ccs 23 873 97 69 C ccs 69 +99 C 19 fin", TLS_1_3, OUTCOME_UNUSED, NULL },
    { "C hello S alert40 fin", TLS_1_3, OUTCOME_FAILED, "handshake_failure" },
    { "C hello S hello ccs 23 873 97 69 C alert48 fin", TLS_1_3, OUTCOME_FAILED, "unknown_ca" },
    { "C hello S hello ccs 23 873 97 69 C ccs 19 fin", TLS_1_3, OUTCOME_FAILED, "encrypted_alert" },
    { "C hello S hello ccs 23 62 873 97 69 C ccs 25 69 C 71 S 19 fin", TLS_1_3, OUTCOME_FAILED,
      "encrypted_alert" },
    { "C hello S rst", TLS_1_3, OUTCOME_FAILED, "reset" },
    { "C hello S fin", TLS_1_3, OUTCOME_FAILED, "closed" },
    { "C hello", TLS_1_3, OUTCOME_UNSEEN, NULL },
    { "C hello S hello m11 m14 C m16 ccs m0 S alert40", TLS_1_2, OUTCOME_FAILED,
      "handshake_failure" },
    { "C hello S hello m11 m14 C m16 ccs m0 S ccs m0 C fin", TLS_1_2, OUTCOME_UNUSED, NULL },
};

Test(judge, outcomes)
{
    for (size_t i = 0; i < sizeof OUTCOMES / sizeof *OUTCOMES; i++) {
        struct script s;
        script_read(&s, OUTCOMES[i].line);
        s.facts.version = OUTCOMES[i].version;
        struct verdict v = judge(&s.facts, NULL);
        cr_expect_eq(v.outcome, OUTCOMES[i].outcome, "%s: %s", OUTCOMES[i].line,
                     outcome_text(v.outcome));
        if (OUTCOMES[i].failure == NULL)
            cr_expect_null(v.failure, "%s: %s", OUTCOMES[i].line, v.failure);
        else
            cr_expect_str_eq(v.failure, OUTCOMES[i].failure, "%s", OUTCOMES[i].line);
    }
}

Test(judge, silence_after_three_transmissions_is_a_timeout)
{
    struct script s;
    script_read(&s, "C hello");
    s.facts.unanswered[CLIENT] = 3;
    struct verdict v = judge(&s.facts, NULL);
    cr_expect_eq(v.outcome, OUTCOME_FAILED);
    cr_expect_str_eq(v.failure, "timeout");
}

Test(judge, a_syn_without_answer)
{
    struct facts f = { .syn_seen = 1, .syn_count = 3, .start_ns = 1, .packets = { 3, 0 } };
    struct verdict v = judge(&f, NULL);
    cr_expect_eq(v.handshake, KIND_NONE);
    cr_expect_eq(v.outcome, OUTCOME_FAILED);
    cr_expect_str_eq(v.failure, "no_answer");
    f.syn_count = 1;
    f.packets[CLIENT] = 1;
    cr_expect_eq(judge(&f, NULL).outcome, OUTCOME_UNSEEN);
    f.packets[SERVER] = 1;
    f.reset_ns[SERVER] = 2;
    v = judge(&f, NULL);
    cr_expect_eq(v.outcome, OUTCOME_FAILED);
    cr_expect_str_eq(v.failure, "refused");
}

/* ---- round trips and stalls ---- */

Test(judge, expected_round_trips_add_what_the_protocol_adds)
{
    struct script s;
    script_read(&s, KEPT);
    script_resume(&s, 208);
    script_offer_early_data(&s);
    cr_expect_eq(judge(&s.facts, NULL).expected_round_trips, 3, "rejected");
    s.facts.hello_retry = 1;
    cr_expect_eq(judge(&s.facts, NULL).expected_round_trips, 4);
    s.facts.preamble_round_trips = 2;
    cr_expect_eq(judge(&s.facts, NULL).expected_round_trips, 6);
    s.facts.fast_open = 1;
    cr_expect_eq(judge(&s.facts, NULL).expected_round_trips, 5);
}

Test(judge, a_nagle_stall_in_the_flight)
{
    struct script s;
    script_read(&s, "C hello S hello ccs C +19 S 23 873 97 69f C ccs 69f C 78? S 383!");
    cr_expect_eq(judge(&s.facts, NULL).flight_stalls, 1);
    script_read(&s, "C hello S hello ccs 23 873 97 69f C ccs 69f C 78? S 383!");
    cr_expect_eq(judge(&s.facts, NULL).flight_stalls, 0);
    script_read(&s, "C hello S hello ccs 23 C +80 S 873 97 69f C ccs 69f C 78? S 383!");
    cr_expect_eq(judge(&s.facts, NULL).flight_stalls, 0, "a slow signature is no stall");
}

Test(judge, server_flight_bytes_from_hello_to_finished)
{
    struct script s;
    script_read(&s, "C hello S hello ccs 23 873 97 69f C ccs 69f");
    cr_expect_eq(judge(&s.facts, NULL).server_flight_bytes, 127 + 6 + 28 + 878 + 102 + 74);
    script_read(&s, "C hello S hello ccs 23 hole900 97 69f C ccs 69f");
    cr_expect_eq(judge(&s.facts, NULL).server_flight_bytes, -1);
}

/* ---- plaintext ---- */

Test(judge, plaintext_by_acknowledgment)
{
    struct facts f = {
        .syn_seen = 1,
        .start_ns = 1000,
        .syn_ack_ns = 2000,
        .first_payload_ns = { 4000, 3000 },
        .plain_response_ns = 5000,
        .plain_response_acked_ns = 9000,
    };
    struct verdict v = judge(&f, NULL);
    cr_expect_eq(v.handshake, KIND_NONE);
    cr_expect_eq(v.outcome, OUTCOME_COMPLETED);
    cr_expect_eq(v.request_ns, 4000);
    cr_expect_eq(v.first_server_data_ns, 3000, "a greeting");
    cr_expect_eq(v.response_ns, 5000);
    cr_expect_eq(v.response_felt_ns, 5000);
    cr_expect_eq(v.expected_round_trips, 2);
    cr_expect_eq(v.early_data, EARLY_NO_HELLO);
    f.plain_response_resent = 1;
    cr_expect_eq(judge(&f, NULL).response_felt_ns, 9000);
}

/* ---- anything at all ---- */

static void expect_index(int index, const struct facts *f, unsigned seed)
{
    cr_expect(index >= -1 && index < f->record_count, "seed %u: index %d", seed, index);
}

Test(judge, random_facts_give_sane_verdicts)
{
    enum { RUNS = 20000 };
    for (unsigned seed = 0; seed < RUNS; seed++) {
        struct facts f;
        struct record records[RECORDS_MAX];
        random_facts(seed, &f, records);
        struct verdict v = judge(&f, NULL);
        expect_index(v.client_finished, &f, seed);
        expect_index(v.server_finished, &f, seed);
        expect_index(v.request, &f, seed);
        expect_index(v.response, &f, seed);
        expect_index(v.response_low, &f, seed);
        expect_index(v.response_high, &f, seed);
        cr_expect_not_null(v.handshake_reason);
        cr_expect_not_null(kind_text(v.handshake));
        cr_expect_not_null(outcome_text(v.outcome));
        cr_expect_eq(v.response_ns != 0, v.response_basis != BASIS_NONE, "seed %u", seed);
        for (int i = 0; i < f.record_count; i++)
            cr_expect_lt(v.role[i], ROLE_COUNT);
        if (v.response_ns != 0)
            cr_expect(v.response_low_ns <= v.response_ns && v.response_ns <= v.response_felt_ns,
                      "seed %u", seed);
    }
}
