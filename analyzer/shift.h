/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHIFT_H
#define SHIFT_H
/*
 * Whether a share of the flows, a quantile or their number differs between two windows of time,
 * by how much, and how sure that is. Shares and quantiles are compared like with like: inside
 * strata, whose differences are averaged. Pure.
 */
#include "statistics.h"

enum window { BEFORE, DURING, WINDOWS };

/*
 * What was found. The interval holds the change with 95 %. z says how far the two windows are
 * apart, in standard errors of a window that differs by chance alone; its sign is that of the
 * change. NAN and z 0 where there was nothing to compare.
 */
struct shift {
    double before, during;    /* means over the strata, with the weights of the change */
    double change, low, high; /* during - before; of a number of flows: during / before */
    double z;
    int64_t flows[WINDOWS]; /* that were compared */
};

/* The standard normal quantile of p, in the open interval (0, 1). */
double normal_quantile(double p);

/* ---- shares: flows that have a mark, of all that are asked for it ---- */

struct stratum_counts {
    int64_t asked[WINDOWS], yes[WINDOWS];
};

/* A sum over strata; { 0 } is empty. */
struct share_sum {
    double weight, before, during; /* of Mantel and Haenszel */
    double p, q;                   /* of the variance of Sato (1989), Biometrics 45, 1323 */
    double expected, variance;     /* of `yes` during, if nothing had changed */
    int64_t asked[WINDOWS], yes[WINDOWS];
};

/* A stratum that has no flows in one of the windows adds nothing. */
void share_add(struct share_sum *s, struct stratum_counts c);

/*
 * spread: how many times larger than by chance alone the variance of the share is from one slice
 * of time to the next, at least 1; see spread_of(). z is the signed root of a binomial deviance
 * that has the variance of Cochran, Mantel and Haenszel, which also holds for few flows.
 */
struct shift share_shift(const struct share_sum *s, double spread);

/* ---- quantiles ---- */

void floats_sort(float *values, size_t count);

/* quantile_of() of floats; count is at least 1. */
double quantile_of_floats(const float *sorted, size_t count, double p);

/* A sum over strata; { 0 } is empty. */
struct quantile_sum {
    double weight, before, during; /* weighted by n0 n1 / (n0 + n1) */
    double low_square, high_square;
    struct share_sum above[WINDOWS]; /* flows above the quantile of that window */
    int64_t flows[WINDOWS];
};

/*
 * Adds a stratum by its values, sorted. One with fewer than quantile_least_count(p) in a window
 * adds nothing.
 */
void quantile_add(struct quantile_sum *s, const float *before, size_t before_count,
                  const float *during, size_t during_count, double p);

/*
 * The interval is that of order statistics; both of one stratum, and the strata, put together by
 * their squares. z compares how many values of each window lie above the quantile of one of them
 * (the one that tells more), which asks for no distribution.
 */
struct shift quantile_shift(const struct quantile_sum *s, double spread);

/* ---- numbers of flows ---- */

/* Compares flows per second; change, low and high are ratios. 0 flows before: no shift. */
struct shift volume_shift(const int64_t flows[WINDOWS], const double seconds[WINDOWS],
                          double spread);

/* ---- how much a share varies by itself ---- */

enum { SLICES = 8 }; /* of the window before */

/*
 * Variance of a share between slices of time over what chance alone gives; 1 where it is less, or
 * too few flows say. Connections come in bursts and from one client at a time, so that a thousand
 * of them may say no more than ten.
 */
double spread_of(const int64_t asked[SLICES], const int64_t yes[SLICES]);

/* The same of a number of flows. */
double volume_spread_of(const int64_t flows[SLICES]);

#endif
