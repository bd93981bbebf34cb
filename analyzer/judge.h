/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JUDGE_H
#define JUDGE_H
/*
 * Facts of one flow, and what is known of its server, to the verdict: which kind of handshake, what
 * became of early data, which record is the request and which the first application response, each
 * with its basis and reason. Pure: no packets, no database, no clock. RFC 8446 2.3, 4.2.10, 4.5,
 * 4.6.1 (RFC 9846 2.3, 4.3.10, 4.6, 4.7.1).
 */
#include "facts.h"
#include "profile.h"

enum basis { BASIS_NONE, BASIS_WEAK, BASIS_STRONG, BASIS_PROTOCOL, BASIS_KEYLOG };

enum kind { KIND_NONE, KIND_UNKNOWN, KIND_FULL, KIND_RESUMED, KIND_0RTT };

enum outcome {
    OUTCOME_UNSEEN,
    OUTCOME_COMPLETED,
    OUTCOME_FAILED,
    OUTCOME_ABANDONED,
    OUTCOME_UNUSED
};

enum resumed_by { RESUMED_BY_NOTHING, RESUMED_BY_SESSION_ID, RESUMED_BY_TICKET, RESUMED_BY_PSK };

enum early_data {
    EARLY_NO_HELLO,
    EARLY_NOT_OFFERED,
    EARLY_ACCEPTED,
    EARLY_REJECTED,
    EARLY_UNKNOWN
};

enum tri { TRI_UNKNOWN, TRI_NO, TRI_YES };

/* What one record is taken for; for `show` and for the tests. */
enum role {
    ROLE_UNKNOWN, /* encrypted, nothing said */
    ROLE_CLEAR,   /* clear handshake message(s): facts' first_message names it */
    ROLE_CHANGE_CIPHER_SPEC,
    ROLE_ALERT,
    ROLE_ENCRYPTED_EXTENSIONS,
    ROLE_FLIGHT, /* one record that holds several messages of the server's flight */
    ROLE_CERTIFICATE,
    ROLE_CERTIFICATE_VERIFY,
    ROLE_CERTIFICATE_REQUEST,
    ROLE_FINISHED,
    ROLE_EARLY_DATA,
    ROLE_END_OF_EARLY_DATA,
    ROLE_TICKET,
    ROLE_KEY_UPDATE,
    ROLE_SETTINGS, /* HTTP/2 frames that are no response */
    ROLE_REQUEST,
    ROLE_RESPONSE,
    ROLE_BEFORE_REQUEST, /* server data that cannot answer: sent before it had the request */
    ROLE_APPLICATION_DATA,
    ROLE_CANDIDATE, /* may be the response, not excluded for certain */
    ROLE_HOLE,
    ROLE_CUT,
    ROLE_COUNT
};

struct verdict {
    enum kind handshake;
    enum basis handshake_basis;
    const char *handshake_reason; /* one word or few joined by '_'; static text; never NULL */

    enum outcome outcome;
    const char *failure; /* alert name, "reset", "timeout", "refused", ...; NULL */
    enum resumed_by resumed_by;
    enum early_data early_data;
    enum basis early_data_basis;
    const char *early_data_reason;
    int64_t early_data_bytes; /* plaintext bytes; -1 = not known or not offered */
    enum tri answered_early;
    bool resumption_offered;
    enum tri false_start, client_certificate;

    /* indexes into facts.records, -1 = none */
    int client_finished, server_finished, request, response, response_low, response_high;
    enum basis response_basis;
    const char *response_reason;

    /* Unix ns, 0 = none: DESIGN section 5, "Definitions" */
    int64_t client_finished_ns, handshake_done_ns;
    int64_t first_client_data_ns, request_ns, first_server_data_ns;
    int64_t response_ns, response_low_ns, response_high_ns, response_last_ns;
    int64_t response_felt_ns;    /* response_ns, or when the client acknowledged it where its first
                                    byte had been sent again before that */
    int64_t server_flight_bytes; /* ServerHello to Finished, record headers included; -1 */
    int expected_round_trips;    /* 0 = cannot be said */
    int flight_stalls;           /* round trips lost inside the server's flight; -1 unknown */

    uint8_t role[RECORDS_MAX]; /* enum role of facts.records[i] */
};

/* A verdict's kind of handshake, and its fate of early data, each with what it rests on. */
static inline void verdict_set_kind(struct verdict *v, enum kind kind, enum basis basis,
                                    const char *reason)
{
    v->handshake = kind;
    v->handshake_basis = basis;
    v->handshake_reason = reason;
}

static inline void verdict_set_early(struct verdict *v, enum early_data early, enum basis basis,
                                     const char *reason)
{
    v->early_data = early;
    v->early_data_basis = basis;
    v->early_data_reason = reason;
}

/* Judges one flow. profile may be NULL (nothing known of the server). */
struct verdict judge(const struct facts *f, const struct profile *profile);

/* The same without a look at what was decrypted: as if there had been no secrets. */
struct verdict judge_without_keys(const struct facts *f, const struct profile *profile);

/* The words of the database columns; static text, NULL where the column is NULL. */
const char *basis_text(enum basis basis);
const char *kind_text(enum kind handshake);
const char *outcome_text(enum outcome outcome);
const char *resumed_by_text(enum resumed_by by);
const char *early_data_text(enum early_data early_data);
const char *role_text(enum role role);

#endif
