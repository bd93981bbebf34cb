/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STATISTICS_H
#define STATISTICS_H
/*
 * Quantiles, and how sure a difference of two of them is. Pure: no clock, no global state; the
 * same values and the same seed give the same interval.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sorts ascending. */
void values_sort(double *values, size_t count);

/*
 * Quantile p (0 to 1) of sorted values with linear interpolation between neighbours (R-7, as
 * percentile() of SQLite, numpy's default); NAN when there are none.
 */
double quantile_of(const double *sorted, size_t count, double p);

/*
 * Fewest values for which quantile p is worth saying: from there on the order statistics of the
 * sample hold a two-sided 95 % interval of it: 6 for the median, 36 for p90, 368 for p99.
 * p lies in the open interval (0, 1).
 */
size_t quantile_least_count(double p);

/* A generator of random numbers (SplitMix64); any seed is good. */
struct random {
    uint64_t state;
};

/* Uniform in the open interval (0, 1). */
double random_uniform(struct random *r);

/* Standard normal; the polar method. */
double random_normal(struct random *r);

/* Beta(a, b) for a, b >= 1, from two gamma variates (Marsaglia and Tsang 2000). */
double random_beta(struct random *r, double a, double b);

/*
 * Quantile p of one bootstrap resample of sorted values, without drawing the resample: the k-th
 * least of n uniform numbers is Beta(k, n - k + 1), and the next one above it follows from that.
 * count is at least 1.
 */
double quantile_resampled(struct random *r, const double *sorted, size_t count, double p);

/* Two groups of flows that are alike but for one thing; values are sorted. */
struct stratum {
    const double *with, *without;
    size_t with_count, without_count;
};

struct gain {
    double value;     /* how much smaller the quantile is with than without; NAN = no strata */
    double low, high; /* 95 % interval */
};

/*
 * Gain in quantile p: the quantile without minus the quantile with, inside each stratum, averaged
 * over the strata with the number of flows that have it as weight. Strata never mix, so a server
 * that is slow for everybody does not count for either side. The interval is the percentile
 * bootstrap over `resamples` resamples of every stratum.
 * False without memory. Each stratum has at least one value on both sides.
 */
bool gain_of(const struct stratum *strata, size_t stratum_count, double p, unsigned resamples,
             struct random *r, struct gain *ret_gain);

/* The gain alone, without its interval; NAN without strata. */
double gain_value(const struct stratum *strata, size_t stratum_count, double p);

#endif
