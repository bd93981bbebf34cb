/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * The problem: say of one TLS connection, without its keys, which kind of handshake it was, what
 * became of early data, and which record is the first that answers the client. All application
 * data and, in TLS 1.3, most of the handshake look alike from outside.
 *
 *   facts --> version --> TLS <= 1.2: clear messages --.
 *                |                                     |--> request, response, outcome
 *                '-----> TLS 1.3: tls13.h, early data -'
 *                           ^
 *   profile of the server --'
 *
 * The method, from sure to unsure; each verdict keeps the least sure step it rests on (its basis):
 *
 * protocol  Clear bytes: versions, extensions, message types. A server that goes from ServerHello
 *           to ChangeCipherSpec resumes; pre_shared_key in ServerHello is a resumption.
 *           Causality: a record whose segment acknowledges less than the request was sent before
 *           the request had arrived and cannot answer it, wherever the capture was taken.
 * strong    Lengths that the protocol fixes (EndOfEarlyData, Finished) in the place where they
 *           belong; tickets by arithmetic (ticket.h) with a known ticket's length.
 * weak      One sign that some stack or some padding can break.
 *
 * keylog    Above all of them, where secrets were given: what opened records hold (judge_keys.c).
 *
 * What cannot be decided: whether the client had its early data accepted when it left before its
 * Finished; which of two records is the ticket when a server sends one and nothing is known of it;
 * anything of a side whose record lengths are padded; what was not captured. Then the verdict is
 * unknown or absent, with a reason; the bounds of the response hold where its time does not.
 */
#include "judge.h"

#include "hello.h"
#include "trial.h"

int trial_index(const struct series *s, int place)
{
    return place == NOWHERE ? -1 : s->index[place];
}

void trial_role(struct verdict *v, const struct series *s, int place, enum role role)
{
    if (place != NOWHERE)
        v->role[s->index[place]] = (uint8_t)role;
}

static enum role clear_role(const struct record *r)
{
    switch ((enum record_type)r->type) {
    case RECORD_HOLE:
        return ROLE_HOLE;
    case RECORD_CUT:
        return ROLE_CUT;
    case RECORD_CHANGE_CIPHER_SPEC:
        return ROLE_CHANGE_CIPHER_SPEC;
    case RECORD_ALERT:
        return ROLE_ALERT;
    case RECORD_HANDSHAKE:
        return r->first_message == HANDSHAKE_CERTIFICATE ? ROLE_CERTIFICATE : ROLE_CLEAR;
    case RECORD_APPLICATION_DATA:
    case RECORD_HEARTBEAT:
        break;
    }
    return ROLE_UNKNOWN;
}

static void set_clear_roles(const struct facts *f, struct verdict *v)
{
    for (unsigned i = 0; i < f->record_count && i < RECORDS_MAX; i++)
        v->role[i] = (uint8_t)clear_role(&f->records[i]);
}

/* Type of the first record behind a side's hello that is neither ChangeCipherSpec nor a gap. */
static enum record_type type_behind_hello(const struct series *s, int64_t hello_end)
{
    for (int place = series_from_offset(s, hello_end); place < s->count; place++) {
        const struct record *r = series_at(s, place);
        if (r->type != RECORD_CHANGE_CIPHER_SPEC && !record_is_gap(r) &&
            r->first_message != HANDSHAKE_CLIENT_HELLO)
            return (enum record_type)r->type;
    }
    return RECORD_HOLE;
}

/*
 * A ServerHello that was cut before supported_versions reads as TLS 1.2. What follows tells: up to
 * 1.2 the client's next record is a handshake record, in 1.3 application_data.
 */
static bool is_tls13(const struct facts *f, const struct series *client)
{
    if (!f->server_hello_seen)
        return false;
    bool is_sure = f->server_hello_complete || version_is_13(f->version) || f->version < TLS_1_2 ||
                   (f->client_hello_complete && f->client_version <= TLS_1_2);
    if (is_sure)
        return version_is_13(f->version);
    return type_behind_hello(client, f->client_hello_end) == RECORD_APPLICATION_DATA;
}

/*
 * Whether the ClientHello may be the second one, which offers no early data (RFC 8446 4.1.2): the
 * first bytes of the client's stream are unknown or missing.
 */
static bool may_be_second_hello(const struct facts *f)
{
    if (f->server_hello_seen && !version_is_13(f->version))
        return false;
    for (unsigned i = 0; i < f->record_count; i++)
        if (f->records[i].side == CLIENT && record_is_gap(&f->records[i]) &&
            f->records[i].offset < f->client_hello_end)
            return true;
    return !f->syn_seen && !f->isn_known[CLIENT];
}

/* What the ClientHello alone says of early data. */
static void judge_offer(const struct facts *f, struct verdict *v)
{
    if (!f->client_hello_seen)
        verdict_set_early(v, EARLY_NO_HELLO, BASIS_NONE, NULL);
    else if (f->early_data_offered)
        verdict_set_early(v, EARLY_UNKNOWN, BASIS_NONE, "no_server_hello");
    else if (f->client_hello_complete)
        verdict_set_early(v, EARLY_NOT_OFFERED,
                          may_be_second_hello(f) ? BASIS_WEAK : BASIS_PROTOCOL, "no_extension");
    else
        verdict_set_early(v, EARLY_UNKNOWN, BASIS_NONE, "client_hello_cut");
    if (f->early_data_offered && f->hello_retry)
        verdict_set_early(v, EARLY_REJECTED, BASIS_PROTOCOL, "hello_retry");
}

static void judge_hello(struct trial *t, struct verdict *v)
{
    const struct facts *f = t->f;
    judge_offer(f, v);
    if (!f->server_hello_seen)
        judge_client_alone(t, v);
    else if (t->is_tls13 && !f->client_hello_seen)
        judge_server_alone(t, v);
    else if (t->is_tls13)
        judge_tls13(t, v);
    else if (f->version == SSL_2_0)
        verdict_set_kind(v, KIND_UNKNOWN, BASIS_NONE, "ssl_2");
    else if (f->version < SSL_3_0 ||
             f->version > TLS_1_2) /* an experiment, with rules of its own */
        verdict_set_kind(v, KIND_UNKNOWN, BASIS_NONE, "version_unknown");
    else
        judge_tls12(t, v);
}

/*
 * RFC 5246 6.2.3, RFC 5288 3, RFC 6655 4, RFC 7905 2; 0 where padding to cipher blocks varies. Of
 * a suite that was not seen: GCM, which nearly all use.
 */
static uint32_t overhead_tls12(uint16_t suite)
{
    enum { EXPLICIT_NONCE = 8, TAG = 16, SHORT_TAG = 8 };
    if (suite >= 0xcca8 && suite <= 0xccae)
        return TAG;
    if (suite == 0 || (suite >= 0x009c && suite <= 0x00ad) ||
        (suite >= 0xc02b && suite <= 0xc032) || (suite >= 0xc09c && suite <= 0xc09f) ||
        (suite >= 0xc0ac && suite <= 0xc0ad))
        return EXPLICIT_NONCE + TAG;
    if ((suite >= 0xc0a0 && suite <= 0xc0a3) || (suite >= 0xc0ae && suite <= 0xc0af))
        return EXPLICIT_NONCE + SHORT_TAG;
    return 0;
}

static struct trial trial_of(const struct facts *f, const struct profile *profile)
{
    struct trial t = { .f = f, .profile = profile, .request = NOWHERE };
    t.client = series_of(f, CLIENT);
    t.server = series_of(f, SERVER);
    t.is_tls13 = is_tls13(f, &t.client);
    t.is_keyed = (f->keys == KEYS_USED || f->keys == KEYS_PARTIAL) && f->hello_side == CLIENT;
    t.overhead = overhead_tls12(f->cipher_suite);
    if (t.is_tls13) {
        t.h = tls13_of(f);
        t.overhead = t.h.len.overhead;
    }
    return t;
}

static bool offers_resumption(const struct facts *f)
{
    /* A TLS 1.3 client sends a random session id for middleboxes (RFC 8446 D.4): no offer. */
    bool id_means_it = f->session_id_len > 0 && !version_is_13(f->client_version);
    return f->psk_offered || f->ticket_len > 0 || id_means_it;
}

static int64_t time_of(const struct facts *f, int index)
{
    return index < 0 ? 0 : f->records[index].at_ns;
}

/* Times that only repeat what the indexes say. */
static void set_times(const struct facts *f, struct verdict *v)
{
    v->client_finished_ns = time_of(f, v->client_finished);
    v->request_ns = time_of(f, v->request);
    v->response_low_ns = time_of(f, v->response_low);
    v->response_high_ns = time_of(f, v->response_high);
    if (v->response < 0)
        return;
    const struct record *r = &f->records[v->response];
    v->response_ns = r->at_ns;
    v->response_last_ns = r->last_at_ns;
    bool felt_later = r->flags & RECORD_RESENT && r->acked_at_ns > r->at_ns;
    v->response_felt_ns = felt_later ? r->acked_at_ns : r->at_ns;
}

/* No TLS: the first payload of the server that acknowledges the first of the client answers it. */
static void judge_plain(const struct facts *f, struct verdict *v)
{
    if (facts_are_unread(f)) {
        v->handshake = KIND_UNKNOWN;
        v->handshake_reason = v->response_reason = "payload_not_captured";
        return;
    }
    v->handshake = KIND_NONE;
    v->handshake_reason = f->first_payload_ns[CLIENT] == 0 && f->first_payload_ns[SERVER] == 0
                              ? "no_payload"
                              : "no_tls";
    v->first_client_data_ns = v->request_ns = f->first_payload_ns[CLIENT];
    v->first_server_data_ns = f->first_payload_ns[SERVER];
    if (f->plain_response_ns == 0) {
        v->response_reason = f->first_payload_ns[CLIENT] == 0 ? "no_request" : "no_response";
        return;
    }
    v->response_ns = v->response_last_ns = v->response_felt_ns = f->plain_response_ns;
    v->response_low_ns = v->response_high_ns = f->plain_response_ns;
    v->response_basis = BASIS_PROTOCOL;
    v->response_reason = "acknowledges_request";
    if (f->plain_response_resent && f->plain_response_acked_ns > f->plain_response_ns)
        v->response_felt_ns = f->plain_response_acked_ns;
}

static struct verdict nothing_known(void)
{
    return (struct verdict){
        .handshake_reason = "",
        .response_reason = "",
        .early_data_bytes = -1,
        .client_finished = -1,
        .server_finished = -1,
        .request = -1,
        .response = -1,
        .response_low = -1,
        .response_high = -1,
        .server_flight_bytes = -1,
        .flight_stalls = -1,
    };
}

struct verdict judge(const struct facts *f, const struct profile *profile)
{
    struct verdict v = nothing_known();
    struct trial t = trial_of(f, profile);
    if (t.is_keyed)
        keyed_places(&t);
    set_clear_roles(f, &v);
    if (!f->tls) {
        judge_plain(f, &v);
    } else {
        v.resumption_offered = offers_resumption(f);
        judge_hello(&t, &v);
        judge_exchange(&t, &v);
        if (t.is_keyed)
            judge_keyed_exchange(&t, &v);
        set_times(f, &v);
    }
    judge_outcome(&t, &v);
    if (t.is_keyed)
        judge_keyed_outcome(&t, &v);
    return v;
}

struct verdict judge_without_keys(const struct facts *f, const struct profile *profile)
{
    struct facts without = *f;
    without.keys = KEYS_NONE;
    if (version_is_13(f->version)) /* there it was decrypted */
        without.alpn = NULL;
    return judge(&without, profile);
}

const char *basis_text(enum basis basis)
{
    switch (basis) {
    case BASIS_NONE:
        break;
    case BASIS_WEAK:
        return "weak";
    case BASIS_STRONG:
        return "strong";
    case BASIS_PROTOCOL:
        return "protocol";
    case BASIS_KEYLOG:
        return "keylog";
    }
    return NULL;
}

const char *kind_text(enum kind handshake)
{
    switch (handshake) {
    case KIND_NONE:
        return "none";
    case KIND_UNKNOWN:
        return "unknown";
    case KIND_FULL:
        return "full";
    case KIND_RESUMED:
        return "resumed";
    case KIND_0RTT:
        return "0-rtt";
    }
    return NULL;
}

const char *outcome_text(enum outcome outcome)
{
    switch (outcome) {
    case OUTCOME_UNSEEN:
        return "unseen";
    case OUTCOME_COMPLETED:
        return "completed";
    case OUTCOME_FAILED:
        return "failed";
    case OUTCOME_ABANDONED:
        return "abandoned";
    case OUTCOME_UNUSED:
        return "unused";
    }
    return NULL;
}

const char *resumed_by_text(enum resumed_by by)
{
    switch (by) {
    case RESUMED_BY_NOTHING:
        break;
    case RESUMED_BY_SESSION_ID:
        return "session_id";
    case RESUMED_BY_TICKET:
        return "ticket";
    case RESUMED_BY_PSK:
        return "psk";
    }
    return NULL;
}

const char *early_data_text(enum early_data early_data)
{
    switch (early_data) {
    case EARLY_NO_HELLO:
        break;
    case EARLY_NOT_OFFERED:
        return "not_offered";
    case EARLY_ACCEPTED:
        return "accepted";
    case EARLY_REJECTED:
        return "rejected";
    case EARLY_UNKNOWN:
        return "unknown";
    }
    return NULL;
}

const char *role_text(enum role role)
{
    static const char *const TEXT[ROLE_COUNT] = {
        [ROLE_UNKNOWN] = "encrypted",
        [ROLE_CLEAR] = "handshake",
        [ROLE_CHANGE_CIPHER_SPEC] = "ChangeCipherSpec",
        [ROLE_ALERT] = "alert",
        [ROLE_ENCRYPTED_EXTENSIONS] = "EncryptedExtensions",
        [ROLE_FLIGHT] = "server flight",
        [ROLE_CERTIFICATE] = "Certificate",
        [ROLE_CERTIFICATE_VERIFY] = "CertificateVerify",
        [ROLE_CERTIFICATE_REQUEST] = "CertificateRequest",
        [ROLE_FINISHED] = "Finished",
        [ROLE_EARLY_DATA] = "early data",
        [ROLE_END_OF_EARLY_DATA] = "EndOfEarlyData",
        [ROLE_TICKET] = "ticket",
        [ROLE_KEY_UPDATE] = "KeyUpdate",
        [ROLE_SETTINGS] = "HTTP/2 control",
        [ROLE_REQUEST] = "REQUEST",
        [ROLE_RESPONSE] = "RESPONSE",
        [ROLE_BEFORE_REQUEST] = "sent before the request",
        [ROLE_APPLICATION_DATA] = "data",
        [ROLE_CANDIDATE] = "may be the response",
        [ROLE_HOLE] = "not captured",
        [ROLE_CUT] = "cut by the snaplen",
    };
    return (unsigned)role < ROLE_COUNT ? TEXT[role] : NULL;
}
