/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TRIAL_H
#define TRIAL_H
/*
 * One flow on trial: what the files of the judge (judge.c, judge_tls12.c, judge_early.c,
 * judge_one_side.c, judge_response.c, judge_keys.c, judge_outcome.c) hand from one to the next.
 * Nobody else includes it.
 */
#include "judge.h"
#include "series.h"
#include "tls13.h"

struct trial {
    const struct facts *f;
    const struct profile *profile; /* NULL: nothing known */
    struct series client, server;
    bool is_tls13;
    bool is_keyed;     /* records were opened, and what they hold is looked at */
    struct tls13 h;    /* valid with is_tls13 */
    uint32_t overhead; /* bytes that TLS adds to a record's plaintext; 0 = varies */
    enum tri http2;
    int request;            /* place in client; NOWHERE */
    bool request_is_unsure; /* another one may have come before it */
    int64_t request_end;    /* client stream offset behind the request; 0 = unknown */
};

/* Index into facts.records of a place; -1 for NOWHERE. */
int trial_index(const struct series *s, int place);

/* Says what a place is taken for. */
void trial_role(struct verdict *v, const struct series *s, int place, enum role role);

/* judge_tls12.c: kind, resumption, False Start, Finished, request of SSL 3.0 to TLS 1.2. */
void judge_tls12(struct trial *t, struct verdict *v);

/* judge_early.c: kind and early data of TLS 1.3. */
void judge_tls13(struct trial *t, struct verdict *v);

/* judge_one_side.c: a ServerHello, a ClientHello that was not captured. */
void judge_client_alone(struct trial *t, struct verdict *v);
void judge_server_alone(struct trial *t, struct verdict *v);

/* judge_response.c: HTTP/2 or not, the request, the first response and its bounds. */
void judge_exchange(struct trial *t, struct verdict *v);

/* Whether the ClientHello offers HTTP/2 by ALPN. */
bool trial_offers_http2(const struct facts *f);

/* Whether a record of the server cannot answer the request, which there is. */
bool trial_is_before_request(const struct trial *t, const struct record *r);

/* Says whether accepted early data was answered before the client's Finished. */
void trial_answered_early(const struct trial *t, struct verdict *v);

/*
 * judge_keys.c, for keyed flows alone: the places of h that opened records show; then, each behind
 * the keyless step whose result it corrects, early data, the exchange and the outcome.
 */
void keyed_places(struct trial *t);
void judge_keyed_early_data(const struct trial *t, struct verdict *v);
void judge_keyed_exchange(struct trial *t, struct verdict *v);
void judge_keyed_outcome(const struct trial *t, struct verdict *v);

/* judge_outcome.c: outcome, failure, expected and lost round trips; wants all the rest. */
void judge_outcome(const struct trial *t, struct verdict *v);

#endif
