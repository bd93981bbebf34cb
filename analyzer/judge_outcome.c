/* SPDX-License-Identifier: Apache-2.0 */
#include "hello.h"
#include "trial.h"

enum { UNANSWERED_MEANS_GONE = 3 }; /* transmissions without an answer, then silence */

/* ---- outcome ---- */

static bool is_closed(const struct facts *f)
{
    return f->fin_ns[CLIENT] != 0 || f->fin_ns[SERVER] != 0 || f->reset_ns[CLIENT] != 0 ||
           f->reset_ns[SERVER] != 0;
}

static bool client_sent_data(const struct facts *f, const struct verdict *v)
{
    if (!f->tls)
        return f->first_payload_ns[CLIENT] != 0;
    return v->first_client_data_ns != 0;
}

static bool is_completed(const struct facts *f, const struct verdict *v)
{
    if (!f->tls)
        return f->first_payload_ns[CLIENT] != 0 && f->first_payload_ns[SERVER] != 0 &&
               !facts_are_unread(f);
    return v->client_finished >= 0 || v->response >= 0;
}

/*
 * TLS <= 1.2: a fatal alert in clear instead of the server's Finished; TLS 1.3: the server answers
 * the client's Finished with nothing but an alert, as it does to a missing certificate.
 */
static bool is_refused_behind_finished(const struct trial *t, const struct verdict *v)
{
    const struct facts *f = t->f;
    if (!f->tls || v->client_finished < 0 || v->response >= 0)
        return false;
    if (!t->is_tls13)
        return v->server_finished < 0 && f->alert_seen[SERVER];
    if (t->h.server_finished == NOWHERE || v->request < 0)
        return false;
    int place = t->h.server_finished + 1;
    return place < t->server.count && tls13_is_final_alert(&t->h, SERVER, place) &&
           record_sent(series_at(&t->server, place), record_end(&f->records[v->client_finished])) ==
               SENT_AFTER &&
           v->client_certificate == TRI_YES;
}

static const char *alert_text(const struct facts *f)
{
    enum side first = f->alert_seen[CLIENT] ? CLIENT : SERVER;
    if (f->alert_seen[CLIENT] && f->alert_seen[SERVER] && f->alert_ns[SERVER] < f->alert_ns[CLIENT])
        first = SERVER;
    const char *name = alert_name(f->alert_description[first]);
    return name == NULL ? "alert" : name;
}

/* A client's only encrypted record before its Finished, as long as an alert, is one. */
static bool has_encrypted_alert(const struct trial *t, const struct verdict *v)
{
    return t->is_tls13 && v->client_finished < 0 && t->h.client_flight != NOWHERE &&
           tls13_is_final_alert(&t->h, CLIENT, t->h.client_flight);
}

/* Why a connection without a finished handshake failed; NULL when it cannot be said to have. */
static const char *failure_of(const struct trial *t, const struct verdict *v)
{
    const struct facts *f = t->f;
    if (f->alert_seen[CLIENT] || f->alert_seen[SERVER])
        return alert_text(f);
    if (has_encrypted_alert(t, v))
        return "encrypted_alert";
    if (f->syn_seen && f->syn_ack_ns == 0 && f->first_payload_ns[SERVER] == 0) {
        if (f->reset_ns[SERVER] != 0)
            return "refused";
        return f->syn_count >= UNANSWERED_MEANS_GONE && f->packets[SERVER] == 0 ? "no_answer"
                                                                                : NULL;
    }
    if (f->reset_ns[CLIENT] != 0 || f->reset_ns[SERVER] != 0)
        return "reset";
    if (f->fin_ns[CLIENT] != 0 || f->fin_ns[SERVER] != 0)
        return "closed";
    if (f->unanswered[CLIENT] >= UNANSWERED_MEANS_GONE ||
        f->unanswered[SERVER] >= UNANSWERED_MEANS_GONE)
        return "timeout";
    return NULL;
}

/* The client left by itself with an answer of the server in hand; early data refused, mostly. */
static bool is_abandoned(const struct trial *t, const struct verdict *v)
{
    const struct facts *f = t->f;
    if (!f->tls || !f->early_data_offered || v->early_data == EARLY_ACCEPTED ||
        v->client_finished >= 0 || f->alert_seen[CLIENT] || f->alert_seen[SERVER])
        return false;
    int64_t left = f->fin_ns[CLIENT];
    if (left == 0 || (f->reset_ns[CLIENT] != 0 && f->reset_ns[CLIENT] < left))
        left = f->reset_ns[CLIENT];
    int64_t server_left = f->fin_ns[SERVER] != 0 ? f->fin_ns[SERVER] : INT64_MAX;
    int64_t answer = f->hello_retry ? f->hello_retry_ns : f->server_hello_ns;
    return left != 0 && answer != 0 && left >= answer && left <= server_left &&
           !has_encrypted_alert(t, v);
}

/* Behind a finished handshake or, where nothing was said at all, a finished TCP handshake. */
static bool is_unused(const struct facts *f, const struct verdict *v)
{
    if (client_sent_data(f, v) || !is_closed(f))
        return false;
    return f->tls ? v->client_finished >= 0 : f->syn_ack_ns != 0;
}

static void set_outcome(const struct trial *t, struct verdict *v)
{
    const struct facts *f = t->f;
    v->outcome = OUTCOME_UNSEEN;
    if (is_unused(f, v)) {
        v->outcome = OUTCOME_UNUSED;
    } else if (is_refused_behind_finished(t, v)) {
        v->outcome = OUTCOME_FAILED;
        v->failure = f->alert_seen[SERVER] ? alert_text(f) : "encrypted_alert";
    } else if (is_completed(f, v)) {
        v->outcome = OUTCOME_COMPLETED;
    } else if (is_abandoned(t, v)) {
        v->outcome = OUTCOME_ABANDONED;
    } else {
        v->failure = failure_of(t, v);
        if (v->failure != NULL)
            v->outcome = OUTCOME_FAILED;
    }
}

/* ---- round trips ---- */

static int handshake_round_trips(const struct trial *t, const struct verdict *v)
{
    enum { TCP = 1, REQUEST = 1 };
    switch (v->handshake) {
    case KIND_NONE:
        return TCP + REQUEST;
    case KIND_UNKNOWN:
        break;
    case KIND_FULL:
        if (t->is_tls13 || v->false_start == TRI_YES)
            return TCP + 1 + REQUEST;
        return TCP + 2 + REQUEST;
    case KIND_RESUMED:
        return TCP + 1 + REQUEST;
    case KIND_0RTT:
        return v->answered_early == TRI_NO ? TCP + 1 + REQUEST : TCP + REQUEST;
    }
    return 0;
}

/* What the protocol costs until the first response byte, DESIGN.md section 7. */
static int expected_round_trips(const struct trial *t, const struct verdict *v)
{
    int trips = handshake_round_trips(t, v);
    if (trips == 0)
        return 0;
    return trips + (t->f->hello_retry ? 1 : 0) + t->f->preamble_round_trips -
           (t->f->fast_open ? 1 : 0);
}

/* ---- stalls ---- */

struct stall_scale {
    int64_t rtt_ns, server_rtt_ns;
};

static bool stall_scale_of(const struct facts *f, struct stall_scale *ret_scale)
{
    if (f->syn_answered_ns == 0 || f->syn_ack_ns < f->syn_answered_ns ||
        f->ack_ns < f->syn_ack_ns || f->clock_step)
        return false;
    *ret_scale = (struct stall_scale){
        .rtt_ns = f->ack_ns - f->syn_answered_ns,
        .server_rtt_ns = f->syn_ack_ns - f->syn_answered_ns,
    };
    return true;
}

/*
 * Whether the server waited for an acknowledgment between two records: the later one comes when an
 * answer to the acknowledgment of the earlier one can be there, and not before.
 */
static bool is_stall(const struct stall_scale *scale, const struct record *before,
                     const struct record *after)
{
    enum { LEAST_NS = 2 * 1000000 };
    int64_t gap = after->at_ns - before->last_at_ns;
    if (gap < scale->rtt_ns * 7 / 10 || gap < LEAST_NS || before->all_acked_at_ns == 0)
        return false;
    int64_t late = after->at_ns - (before->all_acked_at_ns + scale->server_rtt_ns);
    return late >= -scale->rtt_ns / 10 && late <= scale->rtt_ns / 2 + LEAST_NS;
}

static bool is_window_stall(const struct stall_scale *scale, const struct record *r)
{
    enum { LEAST_NS = 2 * 1000000 };
    int64_t span = r->last_at_ns - r->at_ns;
    return span >= scale->rtt_ns * 7 / 10 && span >= LEAST_NS;
}

/*
 * Last record of the flight that the server sends without waiting for the client's answer to it:
 * ends with Finished or, in a full handshake of TLS <= 1.2, with ServerHelloDone.
 */
static int last_of_flight(const struct trial *t, const struct verdict *v)
{
    if (t->is_tls13)
        return v->server_finished < 0 ? NOWHERE : t->h.server_finished;
    int last = NOWHERE;
    for (int place = 0; place < t->server.count; place++) {
        const struct record *r = series_at(&t->server, place);
        if (record_is_gap(r) || record_sent(r, (int64_t)t->f->client_hello_end + 1) != SENT_BEFORE)
            break;
        last = place;
    }
    return v->handshake == KIND_UNKNOWN ? NOWHERE : last;
}

static bool is_sent_again(const struct record *r)
{
    return (r->flags & RECORD_RESENT) != 0;
}

static int flight_stalls(const struct trial *t, const struct verdict *v)
{
    struct stall_scale scale;
    int last = last_of_flight(t, v);
    if (last == NOWHERE || t->f->server_hello_end == 0 || !stall_scale_of(t->f, &scale))
        return -1;
    int stalls = 0;
    for (int place = 0; place <= last; place++) {
        const struct record *r = series_at(&t->server, place);
        if (record_end(r) < t->f->server_hello_end || is_sent_again(r))
            continue;
        stalls += is_window_stall(&scale, r);
        if (place == last)
            break;
        const struct record *next = series_at(&t->server, place + 1);
        stalls += !is_sent_again(next) && is_stall(&scale, r, next);
    }
    return stalls;
}

void judge_outcome(const struct trial *t, struct verdict *v)
{
    set_outcome(t, v);
    v->expected_round_trips = expected_round_trips(t, v);
    v->flight_stalls = flight_stalls(t, v);
}
