/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The request, and the first record of the server that answers it. DESIGN.md, section 7.
 *
 *   client                        server
 *   Finished          ------>
 *   request     [---q ------>
 *                     <------     ticket      acknowledges less than q: cannot answer, for certain
 *                     <------     ticket      acknowledges q, has a ticket's length: taken for one
 *                     <------     SETTINGS    HTTP/2 without HEADERS
 *                     <------     RESPONSE    what is left first
 *
 * The records that cannot be excluded for certain are the candidates; walking over them in stream
 * order, each is taken for a ticket, for HTTP/2 frames that are no answer, or for the response. The
 * first candidate is the lower bound, and the response, or where the walk was unsure the first
 * candidate behind it that differs from it, the upper one.
 *
 * Undecidable: a single ticket of a server nothing is known of, before a response that could be
 * one; padded records; holes where the response may have been. The walk then goes the way that is
 * right for the widespread stacks, and says weak.
 */
#include "http2.h"
#include "ticket.h"
#include "trial.h"

enum { HTTP2_RECORDS_LOOKED_AT = 6 };

/* Longer than a server needs to hand out a ticket, shorter than most waits for a backend. */
static const int64_t PROMPT_NS = 100 * 1000000;

/* Two records of one burst of the client. */
static const int64_t BURST_NS = 5 * 1000000;

/* ---- HTTP/2 or not ---- */

bool trial_offers_http2(const struct facts *f)
{
    const char *list = f->alpn_offered;
    while (list != NULL && *list != '\0') {
        if (strncmp(list, "h2", 2) == 0 && (list[2] == ',' || list[2] == '\0'))
            return true;
        list = strchr(list, ',');
        list = list == NULL ? NULL : list + 1;
    }
    return false;
}

static int next_data(const struct series *s, int from)
{
    return series_find(s, from, RECORD_APPLICATION_DATA);
}

/*
 * ALPN in a separate EncryptedExtensions: an empty one has 6 bytes, h2 adds 9 and http/1.1 15, the
 * acknowledgment of server_name and that of early_data 4 each (RFC 7301 3.1, RFC 6066 3).
 */
static int http2_by_extensions(const struct trial *t, bool early_accepted)
{
    enum { EMPTY = 6, EXTENSION = 4, H2 = 9, HTTP_1_1 = 15 };
    if (!t->is_tls13 || t->h.shape != FLIGHT_SEPARATE || t->h.server_padding != PADDING_NONE)
        return 0;
    int64_t len = (int64_t)series_at(&t->server, t->h.server_flight)->len - t->overhead - EMPTY;
    len -= early_accepted ? EXTENSION : 0;
    if (len == H2 || len == H2 + EXTENSION)
        return 2;
    return len == HTTP_1_1 || len == HTTP_1_1 + EXTENSION ? -2 : 0;
}

static int http2_by_client(const struct trial *t, int first)
{
    const struct record *preface = series_at(&t->client, first);
    if (record_is_gap(preface))
        return 0;
    int next = next_data(&t->client, first + 1);
    int signs = 0;
    if (http2_is_preface(preface->len, t->overhead)) {
        signs++;
        if (next != -1 && series_at(&t->client, next)->at_ns - preface->at_ns <= BURST_NS)
            signs++;
    }
    for (int looked = 0; next != -1 && looked < HTTP2_RECORDS_LOOKED_AT; looked++) {
        if (http2_is_settings_ack(series_at(&t->client, next)->len, t->overhead))
            return signs + 2;
        next = next_data(&t->client, next + 1);
    }
    return signs;
}

static bool offers_only_http2(const struct facts *f)
{
    const char *list = f->alpn_offered;
    while (list != NULL) {
        if (strncmp(list, "h2", 2) != 0)
            return false;
        list = strchr(list, ',');
        list = list == NULL ? NULL : list + 1;
    }
    return f->alpn_offered != NULL;
}

/* Whether HTTP/2 was chosen; in TLS 1.3 the choice is encrypted, and signs are counted. */
static enum tri speaks_http2(const struct trial *t, const struct verdict *v, int first)
{
    const struct facts *f = t->f;
    if (f->alpn != NULL)
        return strcmp(f->alpn, "h2") == 0 ? TRI_YES : TRI_NO;
    bool is_visible = !t->is_tls13 && f->server_hello_complete;
    if (is_visible || t->overhead == 0 || (!trial_offers_http2(f) && f->client_hello_complete))
        return TRI_NO;
    int signs = http2_by_extensions(t, v->early_data == EARLY_ACCEPTED) +
                http2_by_client(t, first) + (offers_only_http2(f) ? 2 : 0);
    if (signs >= 2)
        return TRI_YES;
    return signs <= 0 ? TRI_NO : TRI_UNKNOWN;
}

/* ---- the request ---- */

/* The first application record of the client that the response can answer; NOWHERE without. */
static int first_client_data(const struct trial *t, const struct verdict *v)
{
    if (!t->is_tls13)
        return t->request;
    if (v->early_data == EARLY_ACCEPTED && t->h.early_first != NOWHERE)
        return t->h.early_first;
    return t->h.client_data;
}

static bool is_early(const struct trial *t, int place)
{
    return t->is_tls13 && t->h.client_finished != NOWHERE && place < t->h.client_finished;
}

/* HTTP/2: behind the preface, the first record that is more than frames without HEADERS. */
static int http2_request(const struct trial *t, int first)
{
    const struct record *preface = series_at(&t->client, first);
    if (record_is_gap(preface) || !http2_is_preface(preface->len, t->overhead))
        return first;
    for (int place = first + 1; (place = next_data(&t->client, place)) != -1; place++) {
        uint32_t len = series_at(&t->client, place)->len;
        bool is_handshake = is_early(t, first) &&
                            (place == t->h.end_of_early_data || place == t->h.client_finished);
        bool is_alert = t->is_tls13 && tls13_is_final_alert(&t->h, CLIENT, place);
        if (!is_handshake && !is_alert && !http2_is_control(len, t->overhead))
            return place;
    }
    return NOWHERE;
}

/* Whether a lost record may have been the request, or early data that was perhaps accepted. */
static bool may_be_later_request(const struct trial *t, const struct verdict *v)
{
    if (record_is_gap(series_at(&t->client, t->request)))
        return true;
    if (v->early_data == EARLY_UNKNOWN && t->is_tls13 && t->h.early_first != NOWHERE)
        return true;
    int hello = series_from_offset(&t->client, t->f->client_hello_end);
    return hello <= t->request && series_is_broken_between(&t->client, hello, t->request);
}

static void find_request(struct trial *t, struct verdict *v)
{
    int first = first_client_data(t, v);
    if (t->is_tls13 && t->h.early_first != NOWHERE)
        v->first_client_data_ns = series_at(&t->client, t->h.early_first)->at_ns;
    else if (first != NOWHERE)
        v->first_client_data_ns = series_at(&t->client, first)->at_ns;
    if (first == NOWHERE)
        return;
    t->http2 = speaks_http2(t, v, first);
    t->request = t->http2 == TRI_YES ? http2_request(t, first) : first;
    if (t->request == NOWHERE)
        return;
    t->request_is_unsure = may_be_later_request(t, v);
    t->request_end = record_certain_end(series_at(&t->client, t->request));
    v->request = trial_index(&t->client, t->request);
    for (int place = t->request + 1; place < t->client.count; place++)
        if (v->role[t->client.index[place]] == ROLE_UNKNOWN)
            trial_role(v, &t->client, place, ROLE_APPLICATION_DATA);
    for (int place = first; place < t->request; place++)
        trial_role(v, &t->client, place, ROLE_SETTINGS);
    trial_role(v, &t->client, t->request, ROLE_REQUEST);
}

/* ---- the response ---- */

struct search {
    const struct trial *t;
    int candidate[RECORDS_MAX]; /* places in the server's series, in order */
    int count;
    uint32_t ticket_len;   /* of a record taken for a ticket; 0 = none yet */
    bool settings_seen;    /* the server's first HTTP/2 record was passed */
    bool ticket_before;    /* a ticket came before the request */
    int tickets, controls; /* how many candidates were taken for which */
};

static const struct record *candidate_at(const struct search *s, int i)
{
    return series_at(&s->t->server, s->candidate[i]);
}

/*
 * Whether a record of the server cannot answer: it acknowledges less than the request, or the
 * request acknowledges it, or, without acknowledgments, it passed the capture point first.
 */
bool trial_is_before_request(const struct trial *t, const struct record *r)
{
    const struct record *request = series_at(&t->client, t->request);
    if (request->ack != ACK_UNKNOWN && record_end(r) <= request->ack)
        return true;
    switch (record_sent(r, t->request_end)) {
    case SENT_BEFORE:
        return true;
    case SENT_AFTER:
        return false;
    case SENT_UNKNOWN:
        break;
    }
    return r->at_ns < request->at_ns;
}

static int first_place_behind_handshake(const struct trial *t, const struct verdict *v)
{
    if (t->is_tls13)
        return t->h.server_finished == NOWHERE ? 0 : t->h.server_finished + 1;
    for (int place = 0; place < t->server.count; place++)
        if (t->server.index[place] == v->server_finished)
            return place + 1;
    return 0;
}

static bool is_final_alert(const struct trial *t, int place)
{
    return t->is_tls13 && tls13_is_final_alert(&t->h, SERVER, place);
}

/* Whether the ticket that this server took is known by its length: what it issues is like it. */
static bool knows_identity(const struct trial *t)
{
    return t->f->psk_offered && t->f->psk_identity_len >= TICKET_LEN_MIN;
}

static bool ticket_fits_identity(const struct trial *t, uint32_t len, enum ticket_fit at_least)
{
    const struct facts *f = t->f;
    if (!knows_identity(t))
        return false;
    if (t->h.server_block != 0)
        return ticket_fits_padded(len, t->overhead, f->psk_identity_len, t->h.server_block);
    return ticket_fits(len, t->overhead, f->psk_identity_len) >= at_least;
}

/* A second ticket is as long as the first, but for one cipher block (OpenSSL). */
static bool is_like_ticket(uint32_t ticket_len, uint32_t len)
{
    enum { CIPHER_BLOCK = 16 };
    return ticket_len != 0 && (len == ticket_len || len == ticket_len + CIPHER_BLOCK ||
                               len + CIPHER_BLOCK == ticket_len);
}

/* The tickets of one connection are alike: once there was one, only what is like it is another. */
static bool is_known_ticket(const struct search *s, uint32_t len)
{
    const struct trial *t = s->t;
    if (s->ticket_len != 0 && !is_like_ticket(s->ticket_len, len))
        return false;
    return profile_knows_ticket(t->profile, len, t->overhead, t->f->start_ns) ||
           ticket_fits_identity(t, len, TICKET_FITS_EXACT);
}

static bool is_http2_control(const struct search *s, uint32_t len)
{
    const struct trial *t = s->t;
    if (t->http2 != TRI_YES || t->overhead == 0)
        return false;
    return s->settings_seen ? http2_is_control(len, t->overhead)
                            : http2_is_settings(len, t->overhead);
}

/* What was sent behind Finished before the request: tickets, SETTINGS, a greeting. */
static void note_before_request(struct search *s, struct verdict *v, int place)
{
    const struct trial *t = s->t;
    uint32_t len = series_at(&t->server, place)->len;
    enum role role = ROLE_BEFORE_REQUEST;
    if (t->is_tls13 && ticket_is_possible(len, t->overhead) &&
        (is_known_ticket(s, len) || is_like_ticket(s->ticket_len, len) ||
         (s->ticket_len == 0 && v->first_server_data_ns == 0 && !is_http2_control(s, len)))) {
        role = ROLE_TICKET;
        s->ticket_before = true;
        s->ticket_len = len;
    } else if (is_http2_control(s, len)) {
        role = ROLE_SETTINGS;
        s->settings_seen = true;
    }
    trial_role(v, &t->server, place, role);
    if (role != ROLE_TICKET && v->first_server_data_ns == 0)
        v->first_server_data_ns = series_at(&t->server, place)->at_ns;
}

static void collect(struct search *s, struct verdict *v)
{
    const struct trial *t = s->t;
    for (int place = first_place_behind_handshake(t, v); place < t->server.count; place++) {
        const struct record *r = series_at(&t->server, place);
        if (r->type != RECORD_APPLICATION_DATA && !record_is_gap(r))
            continue;
        if (is_final_alert(t, place)) {
            trial_role(v, &t->server, place, ROLE_ALERT);
            continue;
        }
        if (!trial_is_before_request(t, r))
            s->candidate[s->count++] = place;
        else if (!record_is_gap(r))
            note_before_request(s, v, place);
    }
}

/*
 * Whether the next candidate answers something the client only asked when it had this one: then
 * this one was an answer, or the last record before it.
 */
static bool is_asked_behind(const struct search *s, int i)
{
    const struct trial *t = s->t;
    if (i + 1 >= s->count)
        return false;
    int64_t had = record_end(candidate_at(s, i));
    for (int place = t->request + 1; (place = next_data(&t->client, place)) != -1; place++) {
        const struct record *r = series_at(&t->client, place);
        bool is_control = t->http2 == TRI_YES && http2_is_control(r->len, t->overhead);
        if (!is_control && !is_early(t, place) && record_sent(r, had) == SENT_AFTER)
            return record_sent(candidate_at(s, i + 1), record_end(r)) == SENT_AFTER;
    }
    return false;
}

/* Whether nothing else can answer what this one may answer. */
static bool is_last_chance(const struct search *s, int i)
{
    return i + 1 >= s->count || is_asked_behind(s, i);
}

/* Tickets hold a session, and with a client certificate that as well. */
static bool is_ticket_sized(const struct search *s, const struct verdict *v, uint32_t len)
{
    enum { USUAL_MAX = 1200 };
    return ticket_is_possible(len, s->t->overhead) &&
           (len <= USUAL_MAX || v->client_certificate == TRI_YES);
}

static bool took_known_ticket(const struct trial *t)
{
    return t->f->psk_selected && knows_identity(t);
}

/*
 * Whether a first ticket may stand here by its place: something else follows that can answer, and
 * the server can have had the client's Finished. What it sends without that, early data accepted,
 * is rather an answer to it.
 */
static bool may_be_first_ticket(const struct search *s, const struct verdict *v, int i)
{
    if (s->ticket_len != 0 || is_last_chance(s, i))
        return false;
    if (v->early_data != EARLY_ACCEPTED || v->client_finished < 0)
        return true;
    const struct record *finished = &s->t->f->records[v->client_finished];
    return record_sent(candidate_at(s, i), record_end(finished)) != SENT_BEFORE;
}

/*
 * Several equal records right behind Finished are tickets: OpenSSL and GnuTLS send two in full
 * handshakes, Erlang three. In a resumed one the ticket that was offered tells better.
 */
static bool begins_ticket_run(const struct search *s, const struct verdict *v, int i)
{
    if (!may_be_first_ticket(s, v, i) || took_known_ticket(s->t))
        return false;
    const struct record *a = candidate_at(s, i), *b = candidate_at(s, i + 1);
    uint32_t b_len = b->type == RECORD_CUT && b->len > 5 ? b->len - 5 : b->len;
    return is_ticket_sized(s, v, a->len) && is_like_ticket(a->len, b_len);
}

/* Whether the record came as soon as the server can have had the client's Finished. */
static bool is_prompt(const struct trial *t, const struct record *r)
{
    const struct facts *f = t->f;
    if (t->h.client_finished == NOWHERE || f->syn_ack_ns == 0 || f->syn_answered_ns == 0)
        return true;
    int64_t round_trip = f->syn_ack_ns - f->syn_answered_ns;
    int64_t waited = r->at_ns - series_at(&t->client, t->h.client_finished)->at_ns;
    return waited - round_trip < PROMPT_NS + round_trip / 2;
}

/*
 * First contact, no ticket yet, and others behind this record: as nearly all stacks issue tickets,
 * and most that issue one do it here, this is it. Where a ticket was taken, only if it is about as
 * long as that one: many servers issue none then, and no stack's are much longer.
 */
static bool is_lone_ticket(const struct search *s, const struct verdict *v, int i)
{
    const struct trial *t = s->t;
    const struct record *r = candidate_at(s, i);
    if (!may_be_first_ticket(s, v, i) || !is_prompt(t, r))
        return false;
    return took_known_ticket(t) ? ticket_fits_identity(t, r->len, TICKET_FITS_NEAR)
                                : is_ticket_sized(s, v, r->len);
}

/* HTTP/2: who has read the request has read the client's SETTINGS before and acknowledged them. */
static bool is_before_settings_ack(const struct search *s, int i)
{
    if (s->t->http2 != TRI_YES || s->ticket_len != 0 || s->controls > 0)
        return false;
    for (int k = i + 1; k < s->count; k++)
        if (http2_is_settings_ack(candidate_at(s, k)->len, s->t->overhead))
            return k + 1 < s->count;
    return false;
}

enum taken_for { TAKEN_RESPONSE, TAKEN_TICKET, TAKEN_CONTROL, TAKEN_KEY_UPDATE, TAKEN_GAP };

/* What a candidate is taken for; lowers *basis when the sign can mislead. */
static enum taken_for take(const struct search *s, const struct verdict *v, int i,
                           enum basis *basis)
{
    const struct trial *t = s->t;
    const struct record *r = candidate_at(s, i);
    if (record_is_gap(r))
        return TAKEN_GAP;
    if (is_http2_control(s, r->len))
        return TAKEN_CONTROL;
    if (!t->is_tls13)
        return TAKEN_RESPONSE;
    bool is_last = is_last_chance(s, i);
    if (r->len == t->h.len.key_update && !is_last) {
        *basis = BASIS_WEAK;
        return TAKEN_KEY_UPDATE;
    }
    if (!ticket_is_possible(r->len, t->overhead))
        return TAKEN_RESPONSE;
    if (is_known_ticket(s, r->len) || r->len == s->ticket_len || begins_ticket_run(s, v, i) ||
        (is_like_ticket(s->ticket_len, r->len) && !is_last))
        return TAKEN_TICKET;
    if (is_lone_ticket(s, v, i) || (!is_last && is_before_settings_ack(s, i))) {
        *basis = BASIS_WEAK;
        return TAKEN_TICKET;
    }
    return TAKEN_RESPONSE;
}

/* Whether a server whose tickets come back, but whose own way with them is not known, may mean one.
 */
static bool may_be_ticket_of_server(const struct profile *p, uint32_t len, uint32_t overhead)
{
    for (; p != NULL; p = p->wider) {
        if (p->rests.used > 0)
            return false;
        for (unsigned i = 0; i < p->identities.used; i++)
            if (ticket_fits(len, overhead, p->identities.entry[i].number) != TICKET_FITS_NOT)
                return true;
    }
    return false;
}

/* Whether enough is known of this server's tickets to say that a record is none. */
static bool tickets_are_known(const struct search *s, uint32_t len)
{
    const struct trial *t = s->t;
    if (!t->is_tls13 || !ticket_is_possible(len, t->overhead))
        return true;
    if (s->tickets > 0 || s->ticket_before)
        return true;
    if (knows_identity(t) && !ticket_fits_identity(t, len, TICKET_FITS_NEAR))
        return true;
    return profile_knows_tickets(t->profile, t->f->start_ns) &&
           !may_be_ticket_of_server(t->profile, len, t->overhead);
}

/* Behind the response a ticket is only taken for one when it fits. */
static enum role later_role(const struct search *s, const struct record *r)
{
    bool is_ticket = s->t->is_tls13 && s->tickets == 0 && is_known_ticket(s, r->len);
    return is_ticket ? ROLE_TICKET : ROLE_APPLICATION_DATA;
}

static void set_response(const struct search *s, struct verdict *v, int i, enum basis basis,
                         const char *reason)
{
    const struct trial *t = s->t;
    int index = trial_index(&t->server, s->candidate[i]);
    v->response = index;
    v->response_basis = basis;
    v->response_reason = reason;
    trial_role(v, &t->server, s->candidate[i], ROLE_RESPONSE);
    v->response_high = index;
    for (int k = i + 1; basis == BASIS_WEAK && k < s->count; k++) {
        if (candidate_at(s, k)->len == candidate_at(s, i)->len)
            continue;
        v->response_high = trial_index(&t->server, s->candidate[k]);
        trial_role(v, &t->server, s->candidate[k], ROLE_CANDIDATE);
        break;
    }
    for (int k = i + 1; k < s->count; k++)
        if (v->role[trial_index(&t->server, s->candidate[k])] == ROLE_UNKNOWN)
            trial_role(v, &t->server, s->candidate[k], later_role(s, candidate_at(s, k)));
}

/* Nothing is good enough; what was passed by may have been it after all. */
static void set_no_response(const struct search *s, struct verdict *v, const char *reason)
{
    v->response_reason = reason;
    if (s->count > 0)
        v->response_high = trial_index(&s->t->server, s->candidate[s->count - 1]);
}

static const char *response_reason(const struct search *s, enum basis basis, bool behind_gap)
{
    if (behind_gap)
        return "behind_lost_bytes";
    if (s->t->h.server_padding == PADDING_BLOCK)
        return "padded";
    if (basis == BASIS_WEAK)
        return "tickets_unknown";
    return s->tickets > 0 ? "behind_tickets" : "first_behind_request";
}

/* A cut exactly as long as the ticket before it, behind it in one segment. */
static bool is_ticket_gap(const struct search *s, const struct record *r)
{
    enum { HEADER_LEN = 5 };
    return r->type == RECORD_CUT && s->ticket_len != 0 && r->len == s->ticket_len + HEADER_LEN;
}

/* Whether tickets or SETTINGS may be missing that the client had before its request: not the
 * response, but what would have told it from records like them. */
static bool is_lost_before_candidates(const struct search *s)
{
    const struct trial *t = s->t;
    int first = t->h.server_finished == NOWHERE ? 0 : t->h.server_finished + 1;
    for (int place = first; s->count > 0 && place < s->candidate[0]; place++)
        if (record_is_gap(series_at(&t->server, place)))
            return t->is_tls13 && t->h.server_finished != NOWHERE;
    return false;
}

/* The walk over the candidates. */
static void choose(struct search *s, struct verdict *v)
{
    const struct trial *t = s->t;
    /* Up to TLS 1.2 tickets are clear: what answers first is certain, unless it may be unasked. */
    bool is_certain = !t->is_tls13 && t->f->server_hello_complete && t->http2 == TRI_NO &&
                      v->first_server_data_ns == 0;
    enum basis basis = is_certain ? BASIS_PROTOCOL : BASIS_STRONG;
    bool behind_gap = false;
    bool is_cut = t->is_tls13 && !t->f->server_hello_complete;
    bool is_padded = t->is_tls13 && t->h.server_padding == PADDING_BLOCK;
    if (is_padded || is_cut || t->request_is_unsure || is_lost_before_candidates(s))
        basis = BASIS_WEAK;
    for (int i = 0; i < s->count; i++) {
        const struct record *r = candidate_at(s, i);
        int place = s->candidate[i];
        switch (take(s, v, i, &basis)) {
        case TAKEN_GAP:
            if (is_ticket_gap(s, r))
                continue;
            basis = BASIS_WEAK;
            behind_gap = true;
            continue;
        case TAKEN_TICKET:
            s->ticket_len = r->len;
            s->tickets++;
            trial_role(v, &t->server, place, ROLE_TICKET);
            continue;
        case TAKEN_CONTROL:
            s->settings_seen = true;
            s->controls++;
            trial_role(v, &t->server, place, ROLE_SETTINGS);
            break;
        case TAKEN_KEY_UPDATE:
            trial_role(v, &t->server, place, ROLE_KEY_UPDATE);
            continue;
        case TAKEN_RESPONSE:
            if (!tickets_are_known(s, r->len))
                basis = BASIS_WEAK;
            set_response(s, v, i, basis, response_reason(s, basis, behind_gap));
            break;
        }
        if (v->first_server_data_ns == 0)
            v->first_server_data_ns = r->at_ns;
        if (v->response >= 0)
            return;
    }
    const char *reason = s->count == 0 ? "no_response" : "only_tickets";
    set_no_response(s, v, t->f->records_full[SERVER] ? "records_not_kept" : reason);
}

/* The earliest in time of the candidates up to the response: a lost ticket may come after it. */
static int earliest_candidate(const struct search *s, const struct verdict *v)
{
    int low = -1;
    for (int i = 0; i < s->count; i++) {
        int index = trial_index(&s->t->server, s->candidate[i]);
        if (low == -1 || s->t->f->records[index].at_ns < s->t->f->records[low].at_ns)
            low = index;
        if (index == v->response)
            break;
    }
    return low;
}

void trial_answered_early(const struct trial *t, struct verdict *v)
{
    v->answered_early = TRI_UNKNOWN;
    if (v->response < 0 || v->early_data != EARLY_ACCEPTED || v->client_finished < 0)
        return;
    const struct record *finished = &t->f->records[v->client_finished];
    switch (record_sent(&t->f->records[v->response], record_end(finished))) {
    case SENT_BEFORE:
        v->answered_early = TRI_YES;
        break;
    case SENT_AFTER:
        v->answered_early = TRI_NO;
        break;
    case SENT_UNKNOWN:
        break;
    }
}

/*
 * RFC 8470 5.2: a server may answer early data with 425, and the client asks again at once. From
 * outside: a short answer, then a record as long as the first early one by a client that had it.
 */
static bool is_asked_again(const struct trial *t, const struct verdict *v)
{
    enum { SHORT_ANSWER = 512 };
    if (v->early_data != EARLY_ACCEPTED || v->response < 0 || !t->is_tls13 ||
        t->h.client_data == NOWHERE || t->h.early_first == NOWHERE)
        return false;
    const struct record *answer = &t->f->records[v->response];
    const struct record *early = series_at(&t->client, t->h.early_first);
    const struct record *again = series_at(&t->client, t->h.client_data);
    int64_t round_trip = t->f->ack_ns - t->f->syn_answered_ns;
    return answer->len < SHORT_ANSWER && again->len == early->len &&
           record_sent(again, record_end(answer)) == SENT_AFTER &&
           again->at_ns - answer->at_ns <= round_trip + BURST_NS;
}

static void find_response(struct trial *t, struct verdict *v)
{
    struct search s = { .t = t };
    collect(&s, v);
    choose(&s, v);
    v->response_low = earliest_candidate(&s, v);
    trial_answered_early(t, v);
    if (is_asked_again(t, v))
        v->response_reason = "asked_again_behind_handshake";
}

/* Nothing was asked: what the server sent behind its Finished are tickets, a greeting, alerts. */
static void mark_unasked(struct trial *t, struct verdict *v)
{
    struct search s = { .t = t };
    if (v->server_finished < 0)
        return;
    for (int place = first_place_behind_handshake(t, v); place < t->server.count; place++) {
        if (is_final_alert(t, place))
            trial_role(v, &t->server, place, ROLE_ALERT);
        else if (series_at(&t->server, place)->type == RECORD_APPLICATION_DATA)
            note_before_request(&s, v, place);
    }
}

void judge_exchange(struct trial *t, struct verdict *v)
{
    if (t->f->hello_side == SERVER) { /* whose question, whose answer? */
        v->response_reason = "parts_exchanged";
        return;
    }
    find_request(t, v);
    if (t->request == NOWHERE) {
        mark_unasked(t, v);
        v->response_reason = v->client_finished < 0 ? "no_client_finished" : "no_request";
        return;
    }
    find_response(t, v);
    if (t->server.count == 0)
        v->response_reason = "server_not_captured";
}
