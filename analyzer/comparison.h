/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COMPARISON_H
#define COMPARISON_H
/*
 * What 0-RTT gains over another kind of handshake, like with like: flows are compared only inside
 * a stratum, which is one region, server name and version. Pure.
 */
#include "statistics.h"
#include "status.h"

enum compared_kind { COMPARED_0RTT, COMPARED_RESUMED, COMPARED_FULL, COMPARED_KINDS };

/* One flow of a stratum. */
struct sample {
    double perceived_ms, round_trips;
    uint32_t stratum; /* any numbers */
    uint8_t kind;     /* enum compared_kind */
};

/* A growing list of samples; { 0 } is empty. */
struct samples {
    struct sample *at;
    size_t count, capacity;
};

MUST_USE enum status samples_add(struct samples *s, struct sample sample);
void samples_done(struct samples *s);

struct comparison {
    struct gain ms;     /* median gain in milliseconds with its interval; NAN = none */
    double round_trips; /* median gain in round trips */
    size_t flows;       /* 0-RTT flows that had enough others like them */
    size_t strata;      /* where they were */
};

/*
 * Compares 0-RTT with `other` in every stratum that holds enough of both for a median
 * (quantile_least_count). Brings the samples into another order. seed makes the interval
 * repeatable.
 */
MUST_USE enum status compare_kinds(struct samples *s, enum compared_kind other, uint64_t seed,
                                   struct comparison *ret_comparison);

#endif
