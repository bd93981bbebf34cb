/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SSL 3.0 to TLS 1.2: the handshake is clear up to ChangeCipherSpec. RFC 5246 7.3, RFC 5077 3.1.
 *
 *     full                                        resumed
 *     ClientHello        ------>                  ClientHello        ------>
 *                        <------  ServerHello ..                     <------  ServerHello
 *                                 HelloDone                                   [NewSessionTicket]
 *     ClientKeyExchange                                                       CCS, Finished
 *     CCS, Finished      ------>                  CCS, Finished      ------>
 *                        <------  [ticket]
 *                                 CCS, Finished
 */
#include "hello.h"
#include "trial.h"

static const uint32_t FULL_BY_SERVER =
    1U << HANDSHAKE_CERTIFICATE | 1U << HANDSHAKE_SERVER_KEY_EXCHANGE |
    1U << HANDSHAKE_SERVER_HELLO_DONE | 1U << HANDSHAKE_CERTIFICATE_STATUS;
static const uint32_t FULL_BY_CLIENT =
    1U << HANDSHAKE_CLIENT_KEY_EXCHANGE | 1U << HANDSHAKE_CERTIFICATE;

/* The record that holds a hello's last byte; NOWHERE when that byte's offset is not known. */
static int hello_place(const struct series *s, int64_t hello_end)
{
    for (int place = 0; hello_end > 0 && place < s->count; place++)
        if (record_end(series_at(s, place)) >= hello_end)
            return place;
    return NOWHERE;
}

/* Whether nothing between a hello and ChangeCipherSpec can have escaped the capture. */
static bool is_straight(const struct series *s, int64_t hello_end, int ccs)
{
    int hello = hello_place(s, hello_end);
    if (hello == NOWHERE || ccs == NOWHERE || hello > ccs ||
        series_is_broken_between(s, hello, ccs))
        return false;
    for (int place = hello; place < ccs; place++)
        if (series_at(s, place)->flags & RECORD_HOLED)
            return false;
    return true;
}

/*
 * Straight from ServerHello to ChangeCipherSpec; a ticket may stand between (RFC 5077 3.3). In a
 * full handshake the server would have waited for what the client sends behind its hello.
 */
static bool server_goes_straight(const struct trial *t)
{
    int ccs = series_find(&t->server, 0, RECORD_CHANGE_CIPHER_SPEC);
    if (!is_straight(&t->server, t->f->server_hello_end, ccs))
        return false;
    bool waited = t->f->client_hello_end > 0 && !t->f->early_data_offered &&
                  record_sent(series_at(&t->server, ccs), t->f->client_hello_end + 1) == SENT_AFTER;
    return !waited;
}

/* A client that was to agree on new keys would have sent ClientKeyExchange before. */
static bool client_goes_straight(const struct trial *t)
{
    int ccs = series_find(&t->client, 0, RECORD_CHANGE_CIPHER_SPEC);
    return !t->f->early_data_offered && is_straight(&t->client, t->f->client_hello_end, ccs);
}

static void judge_kind(const struct trial *t, struct verdict *v)
{
    const struct facts *f = t->f;
    if (f->messages[side_of_part(f, SERVER)] & FULL_BY_SERVER)
        verdict_set_kind(v, KIND_FULL, BASIS_PROTOCOL, "server_certificate");
    else if (f->messages[side_of_part(f, CLIENT)] & FULL_BY_CLIENT)
        verdict_set_kind(v, KIND_FULL, BASIS_PROTOCOL, "client_key_exchange");
    else if (server_goes_straight(t))
        verdict_set_kind(v, KIND_RESUMED, BASIS_PROTOCOL, "no_certificate");
    else if (client_goes_straight(t))
        verdict_set_kind(v, KIND_RESUMED, BASIS_PROTOCOL, "no_client_key_exchange");
    else if (series_find(&t->server, 0, RECORD_CHANGE_CIPHER_SPEC) != -1)
        verdict_set_kind(v, KIND_UNKNOWN, BASIS_NONE, "certificate_may_be_lost");
    else
        verdict_set_kind(v, KIND_UNKNOWN, BASIS_NONE, "server_flight_not_seen");
}

/*
 * A client that offers a ticket fills the session id as well, to see it echoed when the ticket is
 * taken (RFC 5077 3.4): the ticket comes first.
 */
static enum resumed_by resumed_by(const struct facts *f)
{
    if (f->ticket_len > 0)
        return RESUMED_BY_TICKET;
    return f->session_id_echoed ? RESUMED_BY_SESSION_ID : RESUMED_BY_NOTHING;
}

/* The handshake record behind a side's ChangeCipherSpec. */
static int finished_of(const struct series *s)
{
    int ccs = series_find(s, 0, RECORD_CHANGE_CIPHER_SPEC);
    if (ccs == -1 || ccs + 1 >= s->count)
        return NOWHERE;
    return series_at(s, ccs + 1)->type == RECORD_HANDSHAKE ? ccs + 1 : NOWHERE;
}

/* RFC 7918: application data before the client had the server's ChangeCipherSpec. */
static enum tri false_start(const struct trial *t, const struct verdict *v, int data)
{
    if (v->handshake != KIND_FULL || data == NOWHERE)
        return v->handshake == KIND_RESUMED ? TRI_NO : TRI_UNKNOWN;
    int ccs = series_find(&t->server, 0, RECORD_CHANGE_CIPHER_SPEC);
    if (ccs == -1)
        return TRI_UNKNOWN;
    switch (record_sent(series_at(&t->client, data), record_end(series_at(&t->server, ccs)))) {
    case SENT_BEFORE:
        return TRI_YES;
    case SENT_AFTER:
        return TRI_NO;
    case SENT_UNKNOWN:
        break;
    }
    return TRI_UNKNOWN;
}

/* When the client could send: its own Finished, or when it had the server's; DESIGN section 5. */
static int64_t handshake_done(const struct trial *t, const struct verdict *v, int client_finished,
                              int server_finished, int data)
{
    int64_t own = client_finished == NOWHERE ? 0 : series_at(&t->client, client_finished)->at_ns;
    if (v->handshake == KIND_RESUMED || v->false_start == TRI_YES)
        return own;
    if (v->handshake != KIND_FULL)
        return 0;
    int64_t had =
        server_finished == NOWHERE ? 0 : series_at(&t->server, server_finished)->all_acked_at_ns;
    int64_t sent = data == NOWHERE ? 0 : series_at(&t->client, data)->at_ns;
    if (had == 0 || (sent != 0 && sent < had))
        return sent;
    return had;
}

static void set_roles(const struct trial *t, struct verdict *v, int client_finished,
                      int server_finished)
{
    trial_role(v, &t->client, client_finished, ROLE_FINISHED);
    trial_role(v, &t->server, server_finished, ROLE_FINISHED);
    for (int place = 0; place < t->server.count; place++) {
        const struct record *r = series_at(&t->server, place);
        if (r->type == RECORD_HANDSHAKE && r->first_message == HANDSHAKE_NEW_SESSION_TICKET &&
            (server_finished == NOWHERE || place < server_finished))
            trial_role(v, &t->server, place, ROLE_TICKET);
    }
}

static int64_t flight_bytes(const struct trial *t, int server_finished)
{
    if (server_finished == NOWHERE || t->f->server_hello_end == 0)
        return -1;
    int hello = series_find(&t->server, 0, RECORD_HANDSHAKE);
    return record_end(series_at(&t->server, server_finished)) -
           series_at(&t->server, hello)->offset;
}

/* A server of an older version refuses; a hello that was cut offered nothing if nothing was sent.
 */
static void judge_early_data(const struct trial *t, struct verdict *v)
{
    const struct facts *f = t->f;
    if (f->early_data_offered) {
        v->early_data = EARLY_REJECTED;
        v->early_data_basis = BASIS_PROTOCOL;
        v->early_data_reason = "version";
        return;
    }
    int next = series_from_offset(&t->client, f->client_hello_end);
    if (v->early_data == EARLY_UNKNOWN && f->client_hello_end > 0 && next < t->client.count &&
        series_at(&t->client, next)->offset == f->client_hello_end &&
        series_at(&t->client, next)->type == RECORD_HANDSHAKE) {
        v->early_data = EARLY_NOT_OFFERED;
        v->early_data_basis = BASIS_WEAK;
        v->early_data_reason = "none_sent";
    }
}

void judge_tls12(struct trial *t, struct verdict *v)
{
    const struct facts *f = t->f;
    judge_kind(t, v);
    if (v->handshake == KIND_RESUMED)
        v->resumed_by = resumed_by(f);
    judge_early_data(t, v);
    if (f->messages[side_of_part(f, SERVER)] & 1U << HANDSHAKE_CERTIFICATE_REQUEST)
        v->client_certificate = TRI_YES;
    else if (v->handshake == KIND_RESUMED ||
             f->messages[side_of_part(f, SERVER)] & 1U << HANDSHAKE_SERVER_HELLO_DONE)
        v->client_certificate = TRI_NO;
    int client_finished = finished_of(&t->client);
    int server_finished = finished_of(&t->server);
    int data = series_find(&t->client, 0, RECORD_APPLICATION_DATA);
    if (f->early_data_offered) /* what a client sent for TLS 1.3 in vain comes first */
        data = client_finished == NOWHERE
                   ? NOWHERE
                   : series_find(&t->client, client_finished + 1, RECORD_APPLICATION_DATA);
    t->request = data;
    v->false_start = false_start(t, v, data);
    v->client_finished = trial_index(&t->client, client_finished);
    v->server_finished = trial_index(&t->server, server_finished);
    v->handshake_done_ns = handshake_done(t, v, client_finished, server_finished, data);
    v->server_flight_bytes = flight_bytes(t, server_finished);
    set_roles(t, v, client_finished, server_finished);
}
