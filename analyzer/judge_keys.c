/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * Where secrets were at hand, facts say of each opened record what it holds (content.h), and that
 * is certain: a record that opens is authentic. What the other files of the judge infer is then set
 * right in the order in which they infer it: places of the handshake before the kind, the kind
 * before the exchange, request before response.
 *
 *   content   EncryptedExtensions   Finished   ticket   status line ...
 *      |              |                |          |         |
 *      v              v                v          v         v
 *   places ------> early data ------> kind ----> request -> response, basis keylog
 *
 * A record that holds something says what *it* is. That there is *no* such record is only known
 * when every record was opened in which it may have been: a search ends in doubt at the first that
 * was not, at a gap, and at HTTP/2 frames whose borders were lost. In doubt the verdict without
 * keys stands, unless the record it rests on was opened and is something else.
 */
#include "content.h"
#include "hello.h"
#include "trial.h"

/* ---- records ---- */

static uint16_t content_at(const struct series *s, int place)
{
    return place == NOWHERE ? CONTENT_UNKNOWN : series_at(s, place)->content;
}

/* First place from `from` on that holds all of these handshake messages; NOWHERE without. */
static int find_message(const struct series *s, int from, unsigned bits)
{
    for (int place = from; place < s->count; place++)
        if (content_has(series_at(s, place)->content, CONTENT_HANDSHAKE, bits))
            return place;
    return NOWHERE;
}

static bool is_application(uint16_t content)
{
    return content_kind(content) == CONTENT_APPLICATION && (content & CONTENT_EMPTY) == 0;
}

static bool is_data(const struct series *s, int place)
{
    return series_at(s, place)->type == RECORD_APPLICATION_DATA;
}

/* ---- places of a TLS 1.3 handshake ---- */

/* Whether a place can be early data: it is, or it was not opened and stands where it may be. */
static bool may_be_early(const struct series *s, int place)
{
    uint16_t content = content_at(s, place);
    if (record_is_gap(series_at(s, place)))
        return true;
    return is_data(s, place) && (content == CONTENT_UNKNOWN || is_application(content));
}

/* Early data stands between the ClientHello and EndOfEarlyData or, when it was refused, Finished.
 */
static void place_early_data(struct tls13 *h, const struct facts *f)
{
    int end = h->end_of_early_data != NOWHERE ? h->end_of_early_data : h->client_finished;
    int first = NOWHERE, last = NOWHERE;
    for (int place = series_from_offset(&h->client, f->client_hello_end); place < end; place++) {
        bool is_early =
            content_has(content_at(&h->client, place), CONTENT_APPLICATION, CONTENT_EARLY) ||
            (h->end_of_early_data != NOWHERE && may_be_early(&h->client, place));
        if (!is_early)
            continue;
        first = first == NOWHERE ? place : first;
        last = place;
    }
    if (first == NOWHERE && h->early_first != NOWHERE && h->early_first < end &&
        may_be_early(&h->client, h->early_first))
        return; /* not opened, and nothing speaks against it */
    h->early_first = first;
    h->early_last = last;
}

static void place_client_flight(struct tls13 *h, const struct facts *f)
{
    const struct series *s = &h->client;
    int hello = series_from_offset(s, f->client_hello_end);
    int finished = find_message(s, hello, CONTENT_FINISHED);
    if (finished == NOWHERE) {
        if (content_at(s, h->client_finished) != CONTENT_UNKNOWN)
            h->client_finished = h->end_of_early_data = h->client_data = NOWHERE;
        return;
    }
    int end_of_early_data = find_message(s, hello, CONTENT_END_OF_EARLY_DATA);
    if (end_of_early_data != NOWHERE || h->end_of_early_data >= finished ||
        content_at(s, h->end_of_early_data) != CONTENT_UNKNOWN)
        h->end_of_early_data = end_of_early_data;
    int flight = finished;
    while (flight > hello && content_kind(content_at(s, flight - 1)) == CONTENT_HANDSHAKE)
        flight--;
    h->client_finished = finished;
    h->client_flight = flight;
    h->finished_by_length = true;
    h->finished_with_others = (content_at(s, finished) & CONTENT_CERTIFICATE) != 0;
    h->client_broken = series_is_broken_between(s, hello, finished);
    place_early_data(h, f);
}

static void place_client_data(struct tls13 *h)
{
    const struct series *s = &h->client;
    if (content_at(s, h->client_finished) == CONTENT_UNKNOWN)
        return;
    h->client_data = NOWHERE;
    for (int place = h->client_finished + 1; place < s->count; place++) {
        uint16_t content = content_at(s, place);
        bool is_unopened_data = is_data(s, place) && content == CONTENT_UNKNOWN &&
                                !tls13_is_final_alert(h, CLIENT, place);
        if (is_application(content) || is_unopened_data) {
            h->client_data = place;
            return;
        }
    }
}

static void place_server_flight(struct tls13 *h, const struct facts *f)
{
    const struct series *s = &h->server;
    int hello = series_from_offset(s, f->server_hello_end);
    int extensions = find_message(s, hello, CONTENT_ENCRYPTED_EXTENSIONS);
    int finished = find_message(s, hello, CONTENT_FINISHED);
    if (extensions != NOWHERE)
        h->server_flight = extensions;
    if (finished == NOWHERE && content_at(s, h->server_finished) != CONTENT_UNKNOWN) {
        h->server_finished = NOWHERE;
        h->shape = FLIGHT_UNSEEN;
    }
    if (finished == NOWHERE || h->server_flight == NOWHERE)
        return;
    h->server_finished = finished;
    h->server_broken = series_is_broken_between(s, hello, finished);
    if (content_has(content_at(s, extensions), CONTENT_HANDSHAKE, CONTENT_FINISHED))
        h->shape = FLIGHT_ONE;
    else if (extensions != NOWHERE)
        h->shape = FLIGHT_SEPARATE;
}

void keyed_places(struct trial *t)
{
    if (!t->is_tls13)
        return;
    place_client_flight(&t->h, t->f);
    place_client_data(&t->h);
    place_server_flight(&t->h, t->f);
}

/* ---- early data ---- */

static void set_early(struct verdict *v, enum early_data early, const char *reason)
{
    bool agrees = v->early_data == early;
    bool has_cause = agrees && v->early_data_basis == BASIS_PROTOCOL;
    v->early_data = early;
    v->early_data_basis = BASIS_KEYLOG;
    if (!has_cause)
        v->early_data_reason = reason;
}

/* Whether the record before Finished is early data: then no EndOfEarlyData stands between them. */
static bool is_refused_by_client(const struct trial *t)
{
    const struct series *s = &t->client;
    int before = t->h.client_flight - 1;
    while (before >= 0 && series_at(s, before)->type == RECORD_CHANGE_CIPHER_SPEC)
        before--;
    return before >= 0 && content_at(s, t->h.client_finished) != CONTENT_UNKNOWN &&
           content_has(content_at(s, before), CONTENT_APPLICATION, CONTENT_EARLY) &&
           !series_is_broken_between(s, before, t->h.client_finished);
}

void judge_keyed_early_data(const struct trial *t, struct verdict *v)
{
    uint16_t extensions =
        content_at(&t->server, find_message(&t->server, 0, CONTENT_ENCRYPTED_EXTENSIONS));
    if ((extensions & CONTENT_EARLY_DATA_ACCEPTED) != 0)
        set_early(v, EARLY_ACCEPTED, "encrypted_extensions");
    else if (!t->f->early_data_offered)
        return;
    else if (extensions == CONTENT_UNKNOWN &&
             find_message(&t->client, 0, CONTENT_END_OF_EARLY_DATA) != NOWHERE)
        set_early(v, EARLY_ACCEPTED, "end_of_early_data");
    else if (extensions != CONTENT_UNKNOWN || is_refused_by_client(t))
        set_early(v, EARLY_REJECTED, "psk_kept");
}

/* ---- roles ---- */

static enum role message_role(uint16_t content)
{
    static const struct {
        unsigned bit;
        enum role role;
    } MESSAGES[] = {
        { CONTENT_ENCRYPTED_EXTENSIONS, ROLE_ENCRYPTED_EXTENSIONS },
        { CONTENT_CERTIFICATE_REQUEST, ROLE_CERTIFICATE_REQUEST },
        { CONTENT_CERTIFICATE, ROLE_CERTIFICATE },
        { CONTENT_CERTIFICATE_VERIFY, ROLE_CERTIFICATE_VERIFY },
        { CONTENT_FINISHED, ROLE_FINISHED },
        { CONTENT_NEW_SESSION_TICKET, ROLE_TICKET },
        { CONTENT_END_OF_EARLY_DATA, ROLE_END_OF_EARLY_DATA },
        { CONTENT_KEY_UPDATE, ROLE_KEY_UPDATE },
    };
    if (content_has(content, CONTENT_HANDSHAKE, CONTENT_ENCRYPTED_EXTENSIONS | CONTENT_FINISHED))
        return ROLE_FLIGHT;
    for (size_t i = 0; i < sizeof MESSAGES / sizeof *MESSAGES; i++)
        if ((content & MESSAGES[i].bit) != 0)
            return MESSAGES[i].role;
    return ROLE_CLEAR;
}

static enum role application_role(uint16_t content)
{
    if ((content & CONTENT_EARLY) != 0)
        return ROLE_EARLY_DATA;
    bool has_headers =
        (content & (CONTENT_HTTP2 | CONTENT_HEADERS | CONTENT_UNCLEAR)) != CONTENT_HTTP2;
    return has_headers ? ROLE_APPLICATION_DATA : ROLE_SETTINGS;
}

/* What a record is taken for; was: what it was taken for without keys. */
static enum role role_of(uint16_t content, enum role was)
{
    bool was_chosen = was == ROLE_REQUEST || was == ROLE_RESPONSE || was == ROLE_CANDIDATE;
    switch (content_kind(content)) {
    case CONTENT_HANDSHAKE:
        if (message_role(content) != ROLE_CLEAR)
            return message_role(content);
        return was_chosen ? ROLE_UNKNOWN : was; /* goes on with what the one before it began */
    case CONTENT_ALERT:
        return ROLE_ALERT;
    case CONTENT_APPLICATION:
        if (was == ROLE_EARLY_DATA || was == ROLE_BEFORE_REQUEST)
            return was;
        return application_role(content);
    case CONTENT_UNKNOWN:
    case CONTENT_OTHER:
        break;
    }
    return was_chosen ? ROLE_APPLICATION_DATA : was;
}

static void mark_roles(const struct trial *t, struct verdict *v)
{
    for (unsigned i = 0; i < t->f->record_count && i < RECORDS_MAX; i++)
        v->role[i] = (uint8_t)role_of(t->f->records[i].content, (enum role)v->role[i]);
    if (v->request >= 0 && v->role[v->request] != ROLE_EARLY_DATA)
        v->role[v->request] = ROLE_REQUEST;
    if (v->response >= 0)
        v->role[v->response] = ROLE_RESPONSE;
}

/* ---- the exchange ---- */

enum search_end { SEARCH_FOUND, SEARCH_NONE, SEARCH_DOUBT };

static bool any_content(const struct facts *f, unsigned bits)
{
    for (unsigned i = 0; i < f->record_count; i++)
        if (content_kind(f->records[i].content) == CONTENT_APPLICATION &&
            (f->records[i].content & bits) != 0)
            return true;
    return false;
}

/* Whether ALPN was opened, or clear, so that none seen is none chosen. RFC 7301 3.1 */
static bool is_alpn_known(const struct trial *t)
{
    const struct facts *f = t->f;
    bool not_offered = f->client_hello_complete && !f->ech && !trial_offers_http2(f);
    if (f->alpn != NULL || not_offered)
        return true;
    return t->is_tls13 ? find_message(&t->server, 0, CONTENT_ENCRYPTED_EXTENSIONS) != NOWHERE
                       : f->server_hello_complete;
}

/* Whether HTTP/2 is spoken: by ALPN, else by what was said. */
static enum tri speaks_http2(const struct trial *t)
{
    if (is_alpn_known(t))
        return t->f->alpn != NULL && strcmp(t->f->alpn, "h2") == 0 ? TRI_YES : TRI_NO;
    if (any_content(t->f, CONTENT_HTTP2))
        return TRI_YES;
    return any_content(t->f, CONTENT_HTTP1_REQUEST | CONTENT_HTTP1_STATUS) ? TRI_NO : TRI_UNKNOWN;
}

/* Whether a record is, or begins, a message of the application: in HTTP/2, HEADERS. */
static bool is_message(uint16_t content, enum tri http2)
{
    if (http2 == TRI_NO)
        return is_application(content);
    return is_application(content) &&
           content_has(content, CONTENT_APPLICATION, CONTENT_HTTP2 | CONTENT_HEADERS);
}

/* Whether a place may hold a message although it does not say so. */
static bool is_doubtful(const struct series *s, int place, enum tri http2)
{
    const struct record *r = series_at(s, place);
    if (record_is_gap(r) || r->flags & (RECORD_UNSURE | RECORD_MERGED))
        return true;
    if (r->type != RECORD_APPLICATION_DATA)
        return false;
    bool is_unclear = is_application(r->content) && http2 != TRI_NO &&
                      (r->content & (CONTENT_HTTP2 | CONTENT_UNCLEAR)) != CONTENT_HTTP2;
    return r->content == CONTENT_UNKNOWN || is_unclear;
}

static bool is_behind_loss(const struct series *s, int place)
{
    return place > 0 && record_end(series_at(s, place - 1)) != series_at(s, place)->offset;
}

/* What is known of the request. */
struct question {
    enum search_end end;
    int place;     /* SEARCH_FOUND */
    int64_t asked; /* client stream offset: what the server sent without having received as much
                      cannot answer */
};

static struct question search_request(const struct trial *t, int from)
{
    const struct series *s = &t->client;
    enum tri http2 = speaks_http2(t);
    for (int place = from; place < s->count; place++) {
        const struct record *r = series_at(s, place);
        if (is_behind_loss(s, place))
            return (struct question){ SEARCH_DOUBT, NOWHERE,
                                      record_end(series_at(s, place - 1)) + 1 };
        if (is_message(r->content, http2))
            return (struct question){ SEARCH_FOUND, place, record_end(r) };
        if (is_doubtful(s, place, http2))
            return (struct question){ SEARCH_DOUBT, NOWHERE, (int64_t)r->offset + 1 };
    }
    int64_t end = s->count == 0 ? 0 : record_end(series_at(s, s->count - 1));
    return (struct question){ t->f->records_full[CLIENT] ? SEARCH_DOUBT : SEARCH_NONE, NOWHERE,
                              end + 1 };
}

/* The first message of the client that was opened and is no refused early data; NOWHERE without. */
static int first_message(const struct trial *t, const struct verdict *v)
{
    enum tri http2 = speaks_http2(t);
    for (int place = 0; place < t->client.count; place++) {
        uint16_t content = content_at(&t->client, place);
        bool counts = (content & CONTENT_EARLY) == 0 || v->early_data == EARLY_ACCEPTED;
        if (is_message(content, http2) && counts)
            return place;
    }
    return NOWHERE;
}

/*
 * Where the request is looked for: at early data that was taken, else behind Finished or, where
 * that is not known, at what was said under the keys behind it.
 */
static int first_request_place(const struct trial *t, const struct verdict *v)
{
    if (t->is_tls13 && v->early_data == EARLY_ACCEPTED && t->h.early_first != NOWHERE)
        return t->h.early_first;
    for (int place = 0; place < t->client.count; place++)
        if (t->client.index[place] == v->client_finished)
            return place + 1;
    return first_message(t, v);
}

static void set_request(struct trial *t, struct verdict *v, int place)
{
    t->request = place;
    t->request_end = place == NOWHERE ? 0 : record_end(series_at(&t->client, place));
    v->request = place == NOWHERE ? -1 : trial_index(&t->client, place);
}

/* In doubt, the request without keys stands unless an opened record says better. */
static void choose_request(struct trial *t, struct verdict *v)
{
    uint16_t content = content_at(&t->client, t->request);
    int opened = first_message(t, v);
    bool is_none = t->request == NOWHERE ||
                   (content != CONTENT_UNKNOWN && !is_message(content, speaks_http2(t)));
    if (is_none || (opened != NOWHERE && opened < t->request))
        set_request(t, v, opened);
}

static struct question judge_request(struct trial *t, struct verdict *v)
{
    int from = first_request_place(t, v);
    if (from == NOWHERE)
        return (struct question){ SEARCH_DOUBT, NOWHERE, (int64_t)t->f->client_hello_end + 1 };
    struct question q = search_request(t, from);
    if (q.end == SEARCH_DOUBT)
        choose_request(t, v);
    else
        set_request(t, v, q.place);
    return q;
}

static bool is_unasked(const struct trial *t, const struct question *q, const struct record *r)
{
    if (q->end == SEARCH_FOUND)
        return trial_is_before_request(t, r);
    return record_sent(r, q->asked) == SENT_BEFORE;
}

/*
 * Where the response is looked for: behind the last record that was sent before the request had
 * arrived, since the stream before it was sent earlier still.
 */
static int first_response_place(const struct trial *t, const struct question *q)
{
    const struct series *s = &t->server;
    int place = s->count;
    while (place > 0 &&
           (record_is_gap(series_at(s, place - 1)) || !is_unasked(t, q, series_at(s, place - 1))))
        place--;
    return place;
}

/* HTTP says by itself that it answers; anything else only where the question is known. */
static bool is_answer(const struct trial *t, const struct question *q, uint16_t content)
{
    if (q->end == SEARCH_FOUND)
        return is_message(content, speaks_http2(t));
    return content_has(content, CONTENT_APPLICATION, CONTENT_HTTP1_STATUS) ||
           content_has(content, CONTENT_APPLICATION, CONTENT_HTTP2 | CONTENT_HEADERS);
}

static enum search_end search_response(const struct trial *t, const struct question *q,
                                       int *ret_place)
{
    const struct series *s = &t->server;
    enum tri http2 = speaks_http2(t);
    for (int place = first_response_place(t, q); place < s->count; place++) {
        uint16_t content = content_at(s, place);
        *ret_place = place;
        if (is_behind_loss(s, place))
            return SEARCH_DOUBT;
        if (is_answer(t, q, content))
            return SEARCH_FOUND;
        if (is_doubtful(s, place, http2) || is_message(content, http2))
            return SEARCH_DOUBT;
    }
    return t->f->records_full[SERVER] ? SEARCH_DOUBT : SEARCH_NONE;
}

static const char *response_reason(uint16_t content)
{
    if ((content & CONTENT_HTTP2) != 0)
        return "http2_headers";
    return (content & CONTENT_HTTP1_STATUS) != 0 ? "http_status_line" : "first_application_data";
}

static void set_response(const struct trial *t, struct verdict *v, int place)
{
    int index = trial_index(&t->server, place);
    v->response = v->response_low = v->response_high = index;
    v->response_basis = BASIS_KEYLOG;
    v->response_reason = response_reason(content_at(&t->server, place));
    trial_answered_early(t, v);
}

static void set_no_response(struct verdict *v, const char *reason)
{
    v->response = v->response_low = v->response_high = -1;
    v->response_basis = BASIS_NONE;
    v->response_reason = reason;
    v->answered_early = TRI_UNKNOWN;
}

/* Whether the response taken without keys was opened and is none. */
static bool is_disproved(const struct trial *t, const struct verdict *v)
{
    if (v->response < 0)
        return false;
    uint16_t content = t->f->records[v->response].content;
    bool may_answer = content_kind(content) == CONTENT_APPLICATION &&
                      (content & (CONTENT_UNCLEAR | CONTENT_DATA)) != 0;
    return content != CONTENT_UNKNOWN && !may_answer && !is_message(content, speaks_http2(t));
}

/* Whether a place can be the response for all that is known of it. */
static bool may_be_response(const struct trial *t, int place)
{
    uint16_t content = content_at(&t->server, place);
    bool is_unopened = content == CONTENT_UNKNOWN && is_data(&t->server, place) &&
                       !(t->is_tls13 && tls13_is_final_alert(&t->h, SERVER, place));
    return is_unopened || is_message(content, speaks_http2(t));
}

static int find_message_from(const struct trial *t, int from)
{
    while (from < t->server.count && !is_message(content_at(&t->server, from), speaks_http2(t)))
        from++;
    return from < t->server.count ? from : NOWHERE;
}

/*
 * What was taken for the response is none: the first record behind Finished that can be it, though
 * it was not opened or stands behind one that was not.
 */
static void set_next_response(const struct trial *t, struct verdict *v, const struct question *q)
{
    const struct series *s = &t->server;
    int from = first_response_place(t, q);
    if (t->is_tls13 && from <= t->h.server_finished)
        from = t->h.server_finished + 1;
    int place = from;
    while (place < s->count && !may_be_response(t, place))
        place++;
    set_no_response(v, "not_decrypted");
    if (place == s->count)
        return;
    int certain = find_message_from(t, place);
    v->response = v->response_low = trial_index(s, place);
    v->response_high = certain == NOWHERE ? v->response : trial_index(s, certain);
    v->response_basis = BASIS_WEAK;
    for (; from < place; from++) /* a gap may hold it, too */
        if (record_is_gap(series_at(s, from)) &&
            series_at(s, from)->at_ns < t->f->records[v->response_low].at_ns)
            v->response_low = trial_index(s, from);
    trial_answered_early(t, v);
}

static void judge_response(struct trial *t, struct verdict *v, const struct question *q)
{
    int place = NOWHERE;
    switch (search_response(t, q, &place)) {
    case SEARCH_FOUND:
        set_response(t, v, place);
        if (t->request != NOWHERE && trial_is_before_request(t, series_at(&t->server, place)))
            set_request(t, v, NOWHERE); /* what it answers was not opened or not captured */
        break;
    case SEARCH_NONE:
        set_no_response(v, "no_response");
        break;
    case SEARCH_DOUBT:
        if (is_disproved(t, v))
            set_next_response(t, v, q);
        else if (v->response < 0 && t->f->records_full[SERVER])
            v->response_reason = "records_full";
        break;
    }
}

static int64_t first_application_ns(const struct trial *t, enum side side)
{
    const struct series *s = side == CLIENT ? &t->client : &t->server;
    for (int place = 0; place < s->count; place++)
        if (is_application(content_at(s, place)))
            return series_at(s, place)->at_ns;
    return 0;
}

static void judge_first_data(const struct trial *t, struct verdict *v, const struct question *q)
{
    int64_t client_ns = first_application_ns(t, CLIENT),
            server_ns = first_application_ns(t, SERVER);
    bool has_early = t->is_tls13 && t->h.early_first != NOWHERE;
    if (q->end != SEARCH_DOUBT && !has_early)
        v->first_client_data_ns = client_ns;
    if (v->response_basis == BASIS_KEYLOG || (q->end == SEARCH_NONE && server_ns != 0))
        v->first_server_data_ns = server_ns;
}

/* Whether the server asked for a certificate, where all of its flight was opened. RFC 8446 4.3.2 */
static void judge_client_certificate(const struct trial *t, struct verdict *v)
{
    const struct series *s = &t->server;
    if (!t->is_tls13 || v->server_finished < 0)
        return;
    if (find_message(s, 0, CONTENT_CERTIFICATE_REQUEST) != NOWHERE) {
        v->client_certificate = TRI_YES;
        return;
    }
    for (int place = t->h.server_flight; place <= t->h.server_finished; place++)
        if (content_at(s, place) == CONTENT_UNKNOWN && is_data(s, place))
            return;
    v->client_certificate = TRI_NO;
}

void judge_keyed_exchange(struct trial *t, struct verdict *v)
{
    judge_client_certificate(t, v);
    struct question q = judge_request(t, v);
    if (q.end == SEARCH_NONE)
        set_no_response(v, "no_request");
    else
        judge_response(t, v, &q);
    judge_first_data(t, v, &q);
    mark_roles(t, v);
}

/* ---- the outcome ---- */

/* The name of the first fatal alert that was opened; NULL without one. */
static const char *fatal_alert(const struct facts *f)
{
    for (unsigned i = 0; i < f->record_count; i++)
        if (content_has(f->records[i].content, CONTENT_ALERT, CONTENT_FATAL))
            return alert_name((uint8_t)(f->records[i].content >> CONTENT_DESCRIPTION_SHIFT));
    return NULL;
}

void judge_keyed_outcome(const struct trial *t, struct verdict *v)
{
    const char *name = v->outcome == OUTCOME_FAILED ? fatal_alert(t->f) : NULL;
    if (name != NULL)
        v->failure = name;
}
