/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kind and early data of TLS 1.3; the numbers are those of the rules in DESIGN.md, section 6.
 *
 *   client                                       server
 *   ClientHello + early_data  --+
 *   early data  ................|.......>
 *                               |   <--------   ServerHello [pre_shared_key?], flight
 *   EndOfEarlyData (accepted) --+------->            rule 2: no PSK: rejected, for certain
 *   Finished                    -------->            rule 3: this pair: accepted; rule 4: no pair
 *
 * A client must send EndOfEarlyData if the server took its early data, and must not otherwise
 * (RFC 8446 4.5, RFC 9846 4.6); the server's own answer is encrypted and only shows in a length.
 */
#include "hello.h"
#include "ticket.h"
#include "trial.h"

/* Drafts before this number have another ServerHello, and end early data with an alert. */
enum { OLDEST_DRAFT_READ = 22 };

static bool is_old_draft(uint16_t version)
{
    return version_is_13(version) && version != TLS_1_3 && (version & 0xff) < OLDEST_DRAFT_READ;
}

/* Rule 2: what refuses early data in clear. RFC 8446 4.2.10, 4.1.4 (RFC 9846 4.3.10, 4.2.4) */
static const char *clear_refusal(const struct facts *f)
{
    if (f->hello_retry)
        return "hello_retry";
    if (!f->server_hello_complete && !f->psk_selected)
        return NULL;
    if (!f->psk_selected)
        return "psk_refused";
    if (f->selected_identity != 0)
        return "psk_not_first";
    return NULL;
}

/* Rule 5: the client sends again behind its Finished what it had sent as early data. */
static bool is_sent_again(const struct trial *t)
{
    const struct tls13 *h = &t->h;
    if (h->client_data == NOWHERE || h->early_first == NOWHERE)
        return false;
    enum { HEADER_LEN = 5, CHANGE_CIPHER_SPEC_RECORD_LEN = 6 };
    const struct record *early = series_at(&t->client, h->early_first);
    uint32_t len = series_at(&t->client, h->client_data)->len;
    if (!record_is_gap(early))
        return early->len == len;
    return early->len == len + HEADER_LEN ||
           early->len == len + HEADER_LEN + CHANGE_CIPHER_SPEC_RECORD_LEN;
}

/* Rule 7: data behind the server's Finished that cannot know the client's, and is no ticket. */
static bool is_answered_before_finished(const struct trial *t)
{
    const struct tls13 *h = &t->h;
    if (h->client_finished == NOWHERE || h->server_finished == NOWHERE || h->server_broken)
        return false;
    int64_t end = record_end(series_at(&t->client, h->client_finished));
    int place = series_find(&t->server, h->server_finished + 1, RECORD_APPLICATION_DATA);
    if (place == -1)
        return false;
    const struct record *r = series_at(&t->server, place);
    return record_sent(r, end) == SENT_BEFORE &&
           ticket_fits(r->len, t->overhead, t->f->psk_identity_len) == TICKET_FITS_NOT &&
           !profile_knows_ticket(t->profile, r->len, t->overhead, t->f->start_ns);
}

/* Whether the server's side of the story speaks against what the client's second flight says. */
static bool is_contradicted(const struct trial *t, enum early_data by_client)
{
    enum flight_says says = profile_flight_says(t->profile, t->f, &t->h);
    if (by_client == EARLY_ACCEPTED)
        return says == FLIGHT_SAYS_REJECTED;
    return says == FLIGHT_SAYS_ACCEPTED && !is_sent_again(t);
}

static enum basis one_level_lower(enum basis basis)
{
    return basis == BASIS_STRONG ? BASIS_WEAK : basis;
}

/* Rules 3 to 7, with the client's Finished seen. */
static void judge_by_finished(const struct trial *t, struct verdict *v)
{
    const struct tls13 *h = &t->h;
    bool accepted = h->end_of_early_data != NOWHERE;
    enum early_data by_client = accepted ? EARLY_ACCEPTED : EARLY_REJECTED;
    enum basis basis = BASIS_STRONG;
    const char *reason = accepted ? "end_of_early_data" : "psk_kept";
    if (h->client_broken && !accepted) {
        bool again = is_sent_again(t);
        verdict_set_early(v, again ? EARLY_REJECTED : EARLY_UNKNOWN,
                          again ? BASIS_WEAK : BASIS_NONE, "client_records_lost");
        return;
    }
    if (accepted && !h->end_of_early_data_close && !is_answered_before_finished(t))
        basis = BASIS_WEAK;
    if (!h->finished_by_length || h->client_padding == PADDING_BLOCK)
        basis = BASIS_WEAK;
    if (is_contradicted(t, by_client)) {
        basis = one_level_lower(basis);
        reason = accepted ? "end_of_early_data_but_flight_length" : "psk_kept_but_flight_length";
    }
    verdict_set_early(v, by_client, basis, reason);
}

/* Whether the client left by itself, with the server's flight in hand, before its Finished. */
static bool client_left(const struct trial *t)
{
    const struct facts *f = t->f;
    int64_t left = f->fin_ns[CLIENT] != 0 ? f->fin_ns[CLIENT] : f->reset_ns[CLIENT];
    return left != 0 && t->h.server_flight != NOWHERE && !f->alert_seen[CLIENT] &&
           left >= series_at(&t->server, t->h.server_flight)->at_ns &&
           t->h.client_flight == NOWHERE;
}

/* Rule 8: no Finished of the client; the length of the server's flight may help, rule 6. */
static void judge_without_finished(const struct trial *t, struct verdict *v)
{
    switch (profile_flight_says(t->profile, t->f, &t->h)) {
    case FLIGHT_SAYS_ACCEPTED:
        verdict_set_early(v, EARLY_ACCEPTED, BASIS_WEAK, "flight_length");
        return;
    case FLIGHT_SAYS_REJECTED:
        verdict_set_early(v, EARLY_REJECTED, BASIS_WEAK, "flight_length");
        return;
    case FLIGHT_SAYS_NOTHING:
        break;
    }
    if (client_left(t))
        verdict_set_early(v, EARLY_REJECTED, BASIS_WEAK, "client_left");
    else
        verdict_set_early(v, EARLY_UNKNOWN, BASIS_NONE, "no_client_finished");
}

/*
 * Whether EndOfEarlyData may stand unseen before Finished: it would share its segment, so not when
 * the client's second flight begins a segment.
 */
static bool is_hidden_before_finished(const struct trial *t)
{
    const struct tls13 *h = &t->h;
    int place = h->client_flight;
    if (place > 0 && series_at(&t->client, place - 1)->type == RECORD_CHANGE_CIPHER_SPEC)
        place--;
    return (series_at(&t->client, place)->flags & RECORD_STARTS_SEGMENT) == 0;
}

/* A ClientHello that was cut may have offered early data: what the client sent tells. */
static void judge_cut_hello(const struct trial *t, struct verdict *v)
{
    const struct tls13 *h = &t->h;
    const char *refusal = clear_refusal(t->f);
    bool was_sent = h->early_first != NOWHERE;
    if (was_sent && refusal != NULL)
        verdict_set_early(v, EARLY_REJECTED, BASIS_STRONG, refusal);
    else if (h->end_of_early_data != NOWHERE && refusal == NULL)
        verdict_set_early(v, EARLY_ACCEPTED,
                          h->end_of_early_data_close && was_sent ? BASIS_STRONG : BASIS_WEAK,
                          "end_of_early_data");
    else if (was_sent && h->client_finished != NOWHERE && !is_hidden_before_finished(t))
        verdict_set_early(v, EARLY_REJECTED, BASIS_WEAK, "no_end_of_early_data");
    else if (!was_sent && h->client_finished != NOWHERE && h->finished_by_length &&
             !is_hidden_before_finished(t))
        verdict_set_early(v, EARLY_NOT_OFFERED, BASIS_WEAK, "none_sent");
    else
        verdict_set_early(v, EARLY_UNKNOWN, BASIS_NONE, "client_hello_cut");
}

static void judge_early_data(const struct trial *t, struct verdict *v)
{
    const struct facts *f = t->f;
    if (!f->client_hello_seen)
        return;
    if (!f->early_data_offered) {
        if (!f->client_hello_complete)
            judge_cut_hello(t, v);
        return;
    }
    const char *refusal = clear_refusal(f);
    if (refusal != NULL)
        verdict_set_early(v, EARLY_REJECTED, BASIS_PROTOCOL, refusal);
    else if (!f->psk_selected)
        verdict_set_early(v, EARLY_UNKNOWN, BASIS_NONE, "server_hello_cut");
    else if (is_old_draft(f->version))
        verdict_set_early(v, EARLY_UNKNOWN, BASIS_NONE, "draft");
    else if (t->h.client_finished != NOWHERE)
        judge_by_finished(t, v);
    else
        judge_without_finished(t, v);
}

static enum basis lower_basis(enum basis a, enum basis b)
{
    return a < b ? a : b;
}

/* A resumption is certain; whether it is 0-RTT rests on what became of early data. */
static void judge_resumption(const struct trial *t, struct verdict *v)
{
    v->resumed_by = RESUMED_BY_PSK;
    switch (v->early_data) {
    case EARLY_ACCEPTED:
        if (t->h.early_first != NOWHERE || t->h.client_broken)
            verdict_set_kind(v, KIND_0RTT, v->early_data_basis, "psk_selected_early_data_accepted");
        else
            verdict_set_kind(v, KIND_RESUMED, v->early_data_basis,
                             "psk_selected_no_early_data_sent");
        return;
    case EARLY_NOT_OFFERED:
    case EARLY_REJECTED:
        verdict_set_kind(v, KIND_RESUMED, lower_basis(v->early_data_basis, BASIS_PROTOCOL),
                         "psk_selected");
        return;
    case EARLY_NO_HELLO:
        verdict_set_kind(v, KIND_RESUMED, BASIS_WEAK, "psk_selected_no_client_hello");
        return;
    case EARLY_UNKNOWN:
        /* Whether it was offered or not: behind a HelloRetryRequest it is not accepted. */
        if (t->f->hello_retry)
            verdict_set_kind(v, KIND_RESUMED, BASIS_PROTOCOL, "psk_selected");
        else
            verdict_set_kind(v, KIND_UNKNOWN, BASIS_NONE, "early_data_unknown");
        return;
    }
}

static void judge_kind(const struct trial *t, struct verdict *v)
{
    const struct facts *f = t->f;
    if (f->psk_selected || v->early_data == EARLY_ACCEPTED)
        judge_resumption(t, v);
    else if (f->server_hello_complete)
        verdict_set_kind(v, KIND_FULL, BASIS_PROTOCOL, "no_psk_selected");
    else
        verdict_set_kind(v, KIND_UNKNOWN, BASIS_NONE, "server_hello_cut");
}

static int64_t plaintext_bytes(const struct record *r, uint32_t overhead)
{
    int64_t records = 1 + (int64_t)r->skipped;
    int64_t bytes = (int64_t)r->len + r->skipped_len - records * overhead;
    return bytes < 0 ? 0 : bytes;
}

static bool is_early_record(const struct trial *t, const struct verdict *v, int place)
{
    const struct tls13 *h = &t->h;
    const struct record *r = series_at(&t->client, place);
    if (r->type != RECORD_APPLICATION_DATA || r->offset < t->f->client_hello_end)
        return false;
    if (v->early_data == EARLY_ACCEPTED && h->end_of_early_data != NOWHERE)
        return place < h->end_of_early_data;
    return h->early_first != NOWHERE && place <= h->early_last;
}

static void mark_early_data(const struct trial *t, struct verdict *v)
{
    if (v->early_data == EARLY_NOT_OFFERED || v->early_data == EARLY_NO_HELLO)
        return;
    int64_t bytes = 0;
    bool is_whole = true;
    for (int place = 0; place < t->client.count; place++) {
        if (!is_early_record(t, v, place))
            continue;
        const struct record *r = series_at(&t->client, place);
        trial_role(v, &t->client, place, ROLE_EARLY_DATA);
        bytes += plaintext_bytes(r, t->overhead);
    }
    if (t->h.early_first != NOWHERE)
        is_whole = !series_is_broken_between(&t->client, t->h.early_first, t->h.early_last);
    if (t->h.client_broken || !is_whole || v->early_data == EARLY_UNKNOWN)
        return;
    v->early_data_bytes = bytes;
}

/* Names the records of a flight with one record for each message. RFC 8446 4.3, 4.4 */
static void mark_separate_flight(const struct trial *t, struct verdict *v)
{
    const struct tls13 *h = &t->h;
    const struct series *s = &t->server;
    int last = h->server_finished;
    trial_role(v, s, h->server_flight, ROLE_ENCRYPTED_EXTENSIONS);
    if (!t->f->psk_selected && last - h->server_flight >= 3) {
        for (int place = h->server_flight + 1; place < last; place++)
            trial_role(v, s, place, ROLE_CERTIFICATE);
        trial_role(v, s, last - 1, ROLE_CERTIFICATE_VERIFY);
        if (h->certificate_request)
            trial_role(v, s, h->server_flight + 1, ROLE_CERTIFICATE_REQUEST);
    }
    trial_role(v, s, last, ROLE_FINISHED);
}

static void mark_flights(const struct trial *t, struct verdict *v)
{
    const struct tls13 *h = &t->h;
    if (h->shape == FLIGHT_SEPARATE)
        mark_separate_flight(t, v);
    else if (h->shape == FLIGHT_ONE)
        for (int place = h->server_flight; place <= h->server_finished; place++)
            trial_role(v, &t->server, place, ROLE_FLIGHT);
    if (h->client_finished != NOWHERE)
        for (int place = h->client_flight; place < h->client_finished; place++)
            if (series_at(&t->client, place)->type == RECORD_APPLICATION_DATA)
                trial_role(v, &t->client, place,
                           t->f->early_data_offered ? ROLE_EARLY_DATA : ROLE_CERTIFICATE);
    trial_role(v, &t->client, h->end_of_early_data, ROLE_END_OF_EARLY_DATA);
    trial_role(v, &t->client, h->client_finished, ROLE_FINISHED);
}

/* Whether the server asked for a certificate: its flight has room for the question, or the
 * client answered. A resumption by PSK cannot ask (RFC 8446 4.3.2). */
static enum tri client_certificate(const struct trial *t)
{
    const struct tls13 *h = &t->h;
    if (t->f->psk_selected)
        return TRI_NO;
    if (h->finished_with_others)
        return TRI_YES;
    if (h->client_finished == NOWHERE || !h->finished_by_length || h->client_broken)
        return h->certificate_request ? TRI_YES : TRI_UNKNOWN;
    if (h->client_finished == h->client_flight)
        return TRI_NO;
    return t->f->early_data_offered ? TRI_UNKNOWN : TRI_YES; /* or early data on its way */
}

static int64_t flight_bytes(const struct trial *t)
{
    const struct tls13 *h = &t->h;
    if (h->server_finished == NOWHERE || h->server_broken)
        return -1;
    int hello = 0;
    while (record_end(series_at(&t->server, hello)) < t->f->server_hello_end)
        hello++;
    return record_end(series_at(&t->server, h->server_finished)) -
           series_at(&t->server, hello)->offset;
}

void judge_tls13(struct trial *t, struct verdict *v)
{
    judge_early_data(t, v);
    if (t->is_keyed)
        judge_keyed_early_data(t, v);
    judge_kind(t, v);
    mark_flights(t, v);
    mark_early_data(t, v);
    v->client_certificate = client_certificate(t);
    v->false_start = TRI_UNKNOWN;
    v->client_finished = trial_index(&t->client, t->h.client_finished);
    v->server_finished = t->h.server_broken ? -1 : trial_index(&t->server, t->h.server_finished);
    v->handshake_done_ns =
        t->h.client_finished == NOWHERE ? 0 : series_at(&t->client, t->h.client_finished)->at_ns;
    v->server_flight_bytes = flight_bytes(t);
}
