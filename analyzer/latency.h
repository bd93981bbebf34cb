/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LATENCY_H
#define LATENCY_H
/*
 * How long visitors waited for the first byte of the response, by group and kind of handshake, and
 * what 0-RTT gained them: the numbers of report regions.
 */
#include "comparison.h"
#include "selection.h"

enum tls_group { TLS_GROUP_13, TLS_GROUP_12, TLS_GROUPS }; /* the second stands for all older too */

/*
 * How the perceived times of a class are distributed, and where they went: what pictures need. The
 * steps are its times in order, cut into equal numbers of flows.
 */
enum { SHAPE_STEPS = 50 };
enum shape_phase {
    SHAPE_CONNECT,
    SHAPE_HELLO_WAIT,
    SHAPE_TLS,
    SHAPE_REQUEST_WAIT,
    SHAPE_SERVER_WAIT,
    SHAPE_WAY_BACK, /* perceived less observed: the last way to the client */
    SHAPE_PHASES,
};

struct class_shape {
    size_t count;
    double share[SHAPE_STEPS], ms[SHAPE_STEPS]; /* this share of flows took at most so long */
    /* Means over the flows between the quartiles, so that no outlier speaks for all; NAN = none. */
    double phase_ms[SHAPE_PHASES];
};

/* Flows of one kind of handshake whose perceived time is known. NAN = not known, too few. */
struct class_latency {
    int64_t flows;
    double p50_ms, p90_ms, p99_ms; /* perceived; NAN below quantile_least_count() */
    double rtt_ms, round_trips;    /* medians */
    double expected;               /* mean of expected_round_trips */
    struct class_shape *shape;     /* NULL before latency_read_shapes() */
};

/* All flows that agree in the --by columns. */
struct latency_group {
    char *by[SELECTION_BY_MAX]; /* made safe by text_add_safe(); NULL = NULL */
    int64_t flows;              /* TLS flows, also those not measured */
    struct class_latency classes[TLS_GROUPS][COMPARED_KINDS];
    int64_t accepted, rejected; /* early data */
    int64_t answered_early, answered_late;
    char *late_site; /* where most late answers were; NULL = no site */
    int64_t late_site_flows;
    char *refusal; /* most frequent reason of refusals; NULL = none */
    int64_t refusal_flows;
    struct comparison over[COMPARED_KINDS];           /* gain of 0-RTT over resumed and full */
    struct comparison over_alike_rtt[COMPARED_KINDS]; /* the same within bands of RTT */
};

struct latency {
    size_t by_count;
    struct latency_group *groups; /* in order of their --by columns */
    size_t count, capacity;
};

enum { LATENCY_SEED = 1 }; /* of the intervals */

/*
 * Reads the numbers of a selection. Memory grows with groups and, for the comparison, with the
 * TLS 1.3 flows of one group. On failure error has the text. Free with latency_done().
 */
MUST_USE enum status latency_read(const struct selection *s, struct latency *ret_latency,
                                  struct text *error);
void latency_done(struct latency *l);

/* Reads the shapes of all classes that have flows. */
MUST_USE enum status latency_read_shapes(const struct selection *s, struct latency *l,
                                         struct text *error);

/* Whether any flow of the group, or of all groups, used 0-RTT and was measured. */
bool latency_group_has_0rtt(const struct latency_group *g);
bool latency_has_0rtt(const struct latency *l);

#endif
