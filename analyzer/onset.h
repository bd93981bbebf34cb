/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ONSET_H
#define ONSET_H
/* When a share changed. Pure. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One flow, and whether it says yes. */
struct vote {
    int64_t start_ns;
    bool yes;
};

struct onset {
    int64_t
        start_ns; /* of the first flow behind the change; 0 = it changed with the first or never */
    double
        sure; /* logarithm of how many times likelier that is than a change with the first flow */
};

/*
 * Finds the moment from which a share of `during` is likelier than one of `before`: the least of
 * the sum of the logarithms of both likelihoods' ratios (Page's cumulative sum). Sorts the votes.
 */
struct onset onset_of(struct vote *votes, size_t count, double before, double during);

#endif
