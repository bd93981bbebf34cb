/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MIX_H
#define MIX_H
/*
 * Why the mean wait changed: because other visitors came, because the same visitors used other
 * kinds of handshakes, or because the same kinds took longer. Pure.
 */
#include "scope.h"

struct mix {
    int64_t flows[WINDOWS];      /* whose wait is known */
    double before_ns, during_ns; /* means; NAN without flows in either window */
    /* These three add up to during - before. */
    double visitors_ns; /* more or fewer flows of a region, vantage, name or version */
    double kinds_ns;    /* more or fewer full, resumed, 0-RTT among them */
    double within_ns;   /* the rest: longer or shorter, of the same kind */
};

/*
 * Takes the mean of perceived_ns of a scope apart (after Kitagawa 1955, with the waits of the
 * window before for the first two). A wait above the 99th percentile counts as that, so that a
 * handful of broken connections does not speak for all; a kind or visitor that is there in one
 * window only counts with what it waits there. STATUS_NO_MEMORY.
 */
MUST_USE enum status mix_of(const struct windows *w, const struct scope *scope,
                            struct mix *ret_mix);

#endif
