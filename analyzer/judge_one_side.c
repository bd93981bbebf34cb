/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One direction of TLS, the other not captured. What it acknowledges still tells of the other:
 *
 *   only the client                              only the server
 *   ClientHello, ack 0                           ServerHello, ack c
 *   [EndOfEarlyData] Finished, ack s             [ticket], ack c'
 *
 * s is how much the server had sent when the client was done: a flight with a certificate, or one
 * without. c' - c is the client's second flight: EndOfEarlyData and Finished have lengths that
 * nothing else adds up to.
 */
#include "hello.h"
#include "trial.h"

enum {
    RECORD_HEADER_LEN = 5,
    CLIENT_FLIGHT_RECORDS_MAX = 8,
    /* ServerHello to Finished: no certificate fits into less, and no resumption takes more, even
     * with two tickets in it. */
    FULL_FLIGHT_MIN = 1000,
    RESUMED_FLIGHT_MAX = 450,
};

/* ---- only the client ---- */

/*
 * TLS <= 1.2: a clear ClientKeyExchange shows a full handshake; ChangeCipherSpec without one,
 * followed by a handshake record, a resumed one.
 */
static void judge_old_client(const struct trial *t, struct verdict *v)
{
    const struct series *s = &t->client;
    if (t->f->messages[side_of_part(t->f, CLIENT)] & 1U << HANDSHAKE_CLIENT_KEY_EXCHANGE) {
        verdict_set_kind(v, KIND_FULL, BASIS_PROTOCOL, "client_key_exchange");
        return;
    }
    int ccs = series_find(s, 0, RECORD_CHANGE_CIPHER_SPEC);
    if (ccs == -1 || ccs + 1 >= s->count || !t->f->client_hello_seen)
        return;
    int behind_hello = series_from_offset(s, t->f->client_hello_end);
    const struct record *behind = series_at(s, ccs + 1);
    bool is_finished = behind->type == RECORD_HANDSHAKE &&
                       behind->first_message != HANDSHAKE_CLIENT_HELLO && !t->f->second_hello_seen;
    if (is_finished && behind_hello > 0 && !series_is_broken_between(s, behind_hello - 1, ccs + 1))
        verdict_set_kind(v, KIND_RESUMED, BASIS_PROTOCOL, "no_client_key_exchange");
}

/* Without the suite: Finished of either hash. */
static bool has_finished_length(const struct record *r, const struct lengths13 *len)
{
    enum { SHA_256 = 32, SHA_384 = 48 };
    return r->type == RECORD_APPLICATION_DATA && (r->len == len->end_of_early_data + SHA_256 ||
                                                  r->len == len->end_of_early_data + SHA_384);
}

/* The client's Finished of TLS 1.3: among the first records that acknowledge any answer. */
static int find_finished(const struct trial *t, const struct lengths13 *len)
{
    const struct series *s = &t->client;
    int64_t hello_end = t->f->second_hello_end > t->f->client_hello_end ? t->f->second_hello_end
                                                                        : t->f->client_hello_end;
    int looked = 0;
    for (int place = series_from_offset(s, hello_end);
         place < s->count && looked < CLIENT_FLIGHT_RECORDS_MAX; place++) {
        const struct record *r = series_at(s, place);
        if (r->type == RECORD_HANDSHAKE)
            return NOWHERE;
        if (r->type != RECORD_APPLICATION_DATA || r->ack <= 0)
            continue;
        if (has_finished_length(r, len))
            return place;
        looked++;
    }
    return NOWHERE;
}

static bool is_end_of_early_data(const struct trial *t, const struct lengths13 *len, int finished)
{
    const struct series *s = &t->client;
    if (finished == 0 || series_is_broken_between(s, finished - 1, finished))
        return false;
    const struct record *r = series_at(s, finished - 1);
    return r->type == RECORD_APPLICATION_DATA && r->len == len->end_of_early_data && r->ack > 0 &&
           r->last_packet_no == series_at(s, finished)->packet_no;
}

static void judge_lone_early_data(const struct trial *t, struct verdict *v, bool is_accepted,
                                  int finished)
{
    int hello = series_from_offset(&t->client, t->f->client_hello_end);
    if (!t->f->early_data_offered || t->f->hello_retry || t->f->second_hello_seen)
        return;
    if (is_accepted)
        verdict_set_early(v, EARLY_ACCEPTED, BASIS_STRONG, "end_of_early_data");
    else if (!series_is_broken_between(&t->client, hello, finished))
        verdict_set_early(v, EARLY_REJECTED, BASIS_WEAK, "no_end_of_early_data");
}

static void judge_lone_kind(const struct trial *t, struct verdict *v, int finished)
{
    const struct facts *f = t->f;
    int32_t flight = series_at(&t->client, finished)->ack;
    if (f->client_hello_complete && !f->psk_offered)
        verdict_set_kind(v, KIND_FULL, BASIS_STRONG, "no_psk_offered");
    else if (v->early_data == EARLY_ACCEPTED)
        verdict_set_kind(v, KIND_0RTT, v->early_data_basis, "end_of_early_data");
    else if (flight >= FULL_FLIGHT_MIN)
        verdict_set_kind(v, KIND_FULL, BASIS_WEAK, "long_server_flight");
    else if (flight <= RESUMED_FLIGHT_MAX)
        verdict_set_kind(v, KIND_RESUMED, BASIS_WEAK, "short_server_flight");
}

/* The places that tls13.h finds only with a ServerHello. */
static void set_places(struct trial *t, bool is_accepted, int finished)
{
    struct tls13 *h = &t->h;
    *h = tls13_of(t->f);
    h->client_finished = finished;
    h->client_flight = is_accepted ? finished - 1 : finished;
    h->end_of_early_data = is_accepted ? finished - 1 : NOWHERE;
    int first = series_find(&h->client, series_from_offset(&h->client, t->f->client_hello_end),
                            RECORD_APPLICATION_DATA);
    h->early_first = first < h->client_flight ? first : NOWHERE;
    h->early_last = first < h->client_flight ? h->client_flight - 1 : NOWHERE;
    int data = series_find(&h->client, finished + 1, RECORD_APPLICATION_DATA);
    h->client_data = data == -1 || tls13_is_final_alert(h, CLIENT, data) ? NOWHERE : data;
    t->is_tls13 = true;
    t->overhead = h->len.overhead;
}

void judge_client_alone(struct trial *t, struct verdict *v)
{
    verdict_set_kind(v, KIND_UNKNOWN, BASIS_NONE,
                     t->f->packets[side_of_part(t->f, SERVER)] == 0 ? "server_not_captured"
                                                                    : "no_server_hello");
    struct lengths13 len = lengths13_of(0);
    int finished = t->f->client_hello_seen ? find_finished(t, &len) : NOWHERE;
    if (finished == NOWHERE) {
        judge_old_client(t, v);
        return;
    }
    bool is_accepted = is_end_of_early_data(t, &len, finished);
    set_places(t, is_accepted, finished);
    judge_lone_early_data(t, v, is_accepted, finished);
    judge_lone_kind(t, v, finished);
    trial_role(v, &t->client, finished, ROLE_FINISHED);
    trial_role(v, &t->client, t->h.end_of_early_data, ROLE_END_OF_EARLY_DATA);
    v->client_finished = trial_index(&t->client, finished);
    v->handshake_done_ns = series_at(&t->client, finished)->at_ns;
}

/* ---- only the server ---- */

/* Whether the client's second flight was EndOfEarlyData and Finished, by what was acknowledged. */
static bool acknowledges_end_of_early_data(const struct trial *t)
{
    const struct tls13 *h = &t->h;
    if (h->len.finished == 0 || h->server_finished == NOWHERE || h->server_broken)
        return false;
    int32_t before = series_at(&t->server, h->server_finished)->ack;
    int64_t flight = (int64_t)h->len.end_of_early_data + h->len.finished + 2 * RECORD_HEADER_LEN;
    for (int place = h->server_finished + 1; place < t->server.count; place++) {
        const struct record *r = series_at(&t->server, place);
        if (r->ack == ACK_UNKNOWN || before == ACK_UNKNOWN)
            return false;
        if (r->ack > before)
            return r->ack - before == flight;
    }
    return false;
}

void judge_server_alone(struct trial *t, struct verdict *v)
{
    judge_tls13(t, v);
    if (t->f->psk_selected && acknowledges_end_of_early_data(t))
        verdict_set_kind(v, KIND_0RTT, BASIS_WEAK, "end_of_early_data_acknowledged");
}
