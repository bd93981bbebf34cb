/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * Any capture point splits the round trip in two, and the handshake of TCP shows both halves:
 *
 *     client              capture point              server
 *        | ---- SYN --------->|------------------------>|
 *        |                    | \ server_rtt            |
 *        |<----------- SYN/ACK|<------------------------|
 *        | client_rtt /       |                         |
 *        | ---- ACK --------->|                         |
 *
 * What passes the point to the client and comes back takes client_rtt. The first SYN passed half of
 * that after the client sent it, and the response reaches the client half of it after it passed the
 * point: so perceived = observed + client_rtt, wherever the point is and however unequal the halves
 * of the path. A SYN lost before the point cannot be seen from it.
 *
 * The response time is then cut at the borders A (connected), H (ClientHello), K (handshake done),
 * Q (request) and R (response). Borders are clipped to be monotone, so the phases always sum up.
 */
#include "timing.h"

#include <stdlib.h>

enum { MILLISECOND = 1000000, NEAR_SHARE = 20 }; /* an end is near below 1/20 of the round trip */

static int64_t max64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t min64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- path ---- */

static int64_t server_rtt(const struct facts *f)
{
    if (f->syn_answered_ns == 0 || f->syn_ack_ns < f->syn_answered_ns || f->syn_rtt_ambiguous)
        return DURATION_NONE;
    return f->syn_ack_ns - f->syn_answered_ns;
}

int64_t client_rtt_by_ack(const struct facts *f)
{
    if (f->syn_ack_answered_ns == 0 || f->ack_ns < f->syn_ack_answered_ns || !f->ack_is_pure ||
        f->ack_rtt_ambiguous)
        return DURATION_NONE;
    return f->ack_ns - f->syn_ack_answered_ns;
}

static enum vantage vantage_of(const struct path *p)
{
    if (p->rtt_ns == DURATION_NONE)
        return VANTAGE_UNKNOWN;
    int64_t near = max64(MILLISECOND, p->rtt_ns / NEAR_SHARE);
    bool near_client = p->client_rtt_ns < near, near_server = p->server_rtt_ns < near;
    if (near_client && near_server)
        return VANTAGE_LOCAL;
    if (near_client)
        return VANTAGE_CLIENT;
    return near_server ? VANTAGE_SERVER : VANTAGE_MIDDLE;
}

static void set_sum(struct path *p)
{
    if (p->server_rtt_ns != DURATION_NONE && p->client_rtt_ns != DURATION_NONE)
        p->rtt_ns = p->server_rtt_ns + p->client_rtt_ns;
    p->vantage = vantage_of(p);
}

struct path path_by_neighbour(int64_t server_rtt_ns, int64_t neighbour_rtt_ns)
{
    struct path p = {
        .server_rtt_ns = server_rtt_ns,
        .client_rtt_ns = neighbour_rtt_ns,
        .rtt_ns = DURATION_NONE,
        .basis = RTT_NEIGHBOUR,
    };
    set_sum(&p);
    return p;
}

struct path path_of(const struct facts *f, int64_t neighbour_rtt_ns)
{
    struct path p = {
        .server_rtt_ns = server_rtt(f),
        .client_rtt_ns = client_rtt_by_ack(f),
        .rtt_ns = DURATION_NONE,
        .basis = RTT_ACK,
    };
    if (p.client_rtt_ns == DURATION_NONE && neighbour_rtt_ns >= 0) {
        p.client_rtt_ns = neighbour_rtt_ns;
        p.basis = RTT_NEIGHBOUR;
    } else if (p.client_rtt_ns == DURATION_NONE && f->data_rtt_ns > 0) {
        p.client_rtt_ns = (int64_t)f->data_rtt_ns;
        p.basis = RTT_DATA;
    } else if (p.client_rtt_ns == DURATION_NONE) {
        p.basis = RTT_NONE;
    }
    set_sum(&p);
    return p;
}

/* ---- phases ---- */

struct borders {
    int64_t connected, hello, done, request, response;
};

/*
 * Whether all borders are known. Plaintext has no hello and no handshake; with TCP Fast Open data
 * may come before the connection is complete, which then begins with it.
 */
static bool borders_of(const struct facts *f, const struct verdict *v, struct borders *ret)
{
    struct borders b = {
        .connected = f->ack_ns != 0 ? f->ack_ns : f->client_after_syn_ack_ns,
        .hello = f->client_hello_ns,
        .done = v->handshake_done_ns,
        .request = v->request_ns,
        .response = v->response_ns,
    };
    if (!f->syn_seen || b.connected == 0 || b.request == 0 || b.response < f->start_ns ||
        b.response == 0)
        return false;
    if (v->handshake != KIND_NONE && b.hello == 0)
        return false;
    if (v->handshake != KIND_NONE && b.done == 0 && v->answered_early != TRI_YES)
        return false;
    if (f->fast_open) {
        b.connected = min64(b.connected, b.request);
        if (v->handshake != KIND_NONE)
            b.connected = min64(b.connected, b.hello);
    }
    if (v->handshake == KIND_NONE) {
        b.hello = b.done = b.connected;
    } else if (v->early_data == EARLY_ACCEPTED && v->handshake == KIND_0RTT) {
        if (v->answered_early == TRI_YES)
            b.done = b.hello;
        else
            b.request = b.done;
    }
    *ret = b;
    return true;
}

/* The next border, no earlier than the last one and no later than the response. */
static int64_t clip(int64_t border, int64_t last, int64_t response)
{
    return min64(max64(border, last), response);
}

static void set_phases(struct timing *t, const struct facts *f, const struct borders *b)
{
    int64_t connected = clip(b->connected, f->start_ns, b->response);
    int64_t hello = clip(b->hello, connected, b->response);
    int64_t done = clip(b->done, hello, b->response);
    int64_t request = clip(b->request, done, b->response);
    t->connect_ns = connected - f->start_ns;
    t->hello_wait_ns = hello - connected;
    t->tls_ns = done - hello;
    t->request_wait_ns = request - done;
    t->server_wait_ns = b->response - request;
}

static void set_server_think(struct timing *t, const struct verdict *v, const struct path *p)
{
    if (p->server_rtt_ns == DURATION_NONE || v->response_ns == 0 || v->request_ns == 0)
        return;
    int64_t asked = v->request_ns;
    if (v->answered_early != TRI_YES)
        asked = max64(asked, v->handshake_done_ns);
    t->server_think_ns = max64(0, v->response_ns - asked - p->server_rtt_ns);
}

/* ---- losses ---- */

struct wait {
    int64_t from, to;
};

enum { WAITS_MAX = RESENDS_MAX + 2 };

static int compare_waits(const void *a, const void *b)
{
    const struct wait *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

static void add_wait(struct wait *waits, int *count, int64_t from, int64_t to)
{
    if (from != 0 && to > from)
        waits[(*count)++] = (struct wait){ from, to };
}

/* Time before the response that went into waiting for something sent again, each moment once. */
static int64_t loss_wait(const struct facts *f, int64_t response)
{
    struct wait waits[WAITS_MAX];
    int count = 0;
    add_wait(waits, &count, f->start_ns, f->syn_seen ? f->syn_answered_ns : 0);
    add_wait(waits, &count, f->syn_ack_ns, f->syn_ack_answered_ns);
    for (unsigned i = 0; i < f->resend_count && i < RESENDS_MAX; i++)
        if (f->resends[i].at_ns <= response && f->resends[i].wait_ns > 0)
            add_wait(waits, &count, f->resends[i].at_ns - f->resends[i].wait_ns,
                     f->resends[i].at_ns);
    qsort(waits, (size_t)count, sizeof *waits, compare_waits);
    int64_t sum = 0, covered = 0;
    for (int i = 0; i < count; i++) {
        int64_t from = max64(waits[i].from, covered);
        int64_t to = min64(waits[i].to, response);
        if (to > from)
            sum += to - from;
        covered = max64(covered, to);
    }
    return sum;
}

static void count_resends(struct timing *t, const struct facts *f, int64_t response)
{
    for (unsigned i = 0; i < f->resend_count && i < RESENDS_MAX; i++) {
        if (f->resends[i].at_ns > response)
            continue;
        if (f->resends[i].side == CLIENT)
            t->client_retransmits_before_response++;
        else
            t->server_retransmits_before_response++;
    }
}

/* ---- all of it ---- */

static void set_perceived(struct timing *t, const struct facts *f, const struct verdict *v,
                          const struct path *p)
{
    if (v->response_felt_ns > v->response_ns)
        t->perceived_ns = v->response_felt_ns - f->start_ns;
    else if (p->client_rtt_ns != DURATION_NONE)
        t->perceived_ns = t->response_ns + p->client_rtt_ns;
    if (t->perceived_ns != DURATION_NONE && p->rtt_ns > 0)
        t->round_trips = (double)t->perceived_ns / (double)p->rtt_ns;
}

struct timing timing_of(const struct facts *f, const struct verdict *v, const struct path *p)
{
    struct timing t = {
        .response_ns = DURATION_NONE,
        .perceived_ns = DURATION_NONE,
        .connect_ns = DURATION_NONE,
        .hello_wait_ns = DURATION_NONE,
        .tls_ns = DURATION_NONE,
        .request_wait_ns = DURATION_NONE,
        .server_wait_ns = DURATION_NONE,
        .server_think_ns = DURATION_NONE,
        .round_trips = -1,
    };
    if (v->response_ns == 0)
        return t;
    set_server_think(&t, v, p);
    t.loss_wait_ns = loss_wait(f, v->response_ns);
    count_resends(&t, f, v->response_ns);
    if (!f->syn_seen || v->response_ns < f->start_ns)
        return t;
    t.response_ns = v->response_ns - f->start_ns;
    set_perceived(&t, f, v, p);
    struct borders b;
    if (borders_of(f, v, &b))
        set_phases(&t, f, &b);
    return t;
}

const char *rtt_basis_text(enum rtt_basis basis)
{
    switch (basis) {
    case RTT_NONE:
        break;
    case RTT_ACK:
        return "ack";
    case RTT_NEIGHBOUR:
        return "neighbour";
    case RTT_DATA:
        return "data";
    }
    return NULL;
}

const char *vantage_text(enum vantage vantage)
{
    switch (vantage) {
    case VANTAGE_UNKNOWN:
        break;
    case VANTAGE_CLIENT:
        return "client";
    case VANTAGE_SERVER:
        return "server";
    case VANTAGE_MIDDLE:
        return "middle";
    case VANTAGE_LOCAL:
        return "local";
    }
    return NULL;
}
