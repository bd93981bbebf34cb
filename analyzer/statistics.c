/* SPDX-License-Identifier: Apache-2.0 */
#include "statistics.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static int compare_values(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void values_sort(double *values, size_t count)
{
    if (count > 0)
        qsort(values, count, sizeof *values, compare_values);
}

/* Where R-7 looks: between the values at `below` and the one behind it, at `fraction` of the way.
 */
struct position {
    size_t below;
    double fraction;
};

static struct position position_of(size_t count, double p)
{
    double at = (double)(count - 1) * p;
    double below = floor(at);
    return (struct position){ (size_t)below, at - below };
}

static double between(double low, double high, double fraction)
{
    return low + (high - low) * fraction;
}

double quantile_of(const double *sorted, size_t count, double p)
{
    assert(p >= 0 && p <= 1);
    if (count == 0)
        return NAN;
    struct position at = position_of(count, p);
    if (at.fraction <= 0)
        return sorted[at.below];
    return between(sorted[at.below], sorted[at.below + 1], at.fraction);
}

size_t quantile_least_count(double p)
{
    /* All n values lie on the likelier side with probability max(p, 1-p)^n: 2.5 % at most. */
    double likelier = p > 0.5 ? p : 1 - p;
    return (size_t)ceil(log(0.025) / log(likelier));
}

static uint64_t random_next(struct random *r)
{
    uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double random_uniform(struct random *r)
{
    /* 52 bits and a half step: neither 0 nor 1 can come out. */
    return ((double)(random_next(r) >> 12) + 0.5) * 0x1p-52;
}

double random_normal(struct random *r)
{
    for (;;) {
        double x = 2 * random_uniform(r) - 1, y = 2 * random_uniform(r) - 1;
        double square = x * x + y * y;
        if (square < 1 && square > 0)
            return x * sqrt(-2 * log(square) / square);
    }
}

/* Gamma(shape, 1) for shape >= 1 (Marsaglia and Tsang 2000). */
static double random_gamma(struct random *r, double shape)
{
    assert(shape >= 1);
    double d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = random_normal(r), v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        if (log(random_uniform(r)) < 0.5 * x * x + d - d * v + d * log(v))
            return d * v;
    }
}

double random_beta(struct random *r, double a, double b)
{
    double x = random_gamma(r, a), y = random_gamma(r, b);
    return x / (x + y);
}

/* The value that a uniform number in (0, 1) draws from the sample. */
static double value_drawn(const double *sorted, size_t count, double uniform)
{
    size_t i = (size_t)(uniform * (double)count);
    return sorted[i < count ? i : count - 1];
}

double quantile_resampled(struct random *r, const double *sorted, size_t count, double p)
{
    assert(count > 0);
    struct position at = position_of(count, p);
    double above = (double)(count - 1 - at.below); /* uniforms that lie above the lower one */
    double lower = random_beta(r, (double)at.below + 1, above + 1);
    if (at.fraction <= 0)
        return value_drawn(sorted, count, lower);
    /* The least of `above` uniforms between `lower` and 1. */
    double upper = 1 - (1 - lower) * pow(random_uniform(r), 1 / above);
    return between(value_drawn(sorted, count, lower), value_drawn(sorted, count, upper),
                   at.fraction);
}

/* One difference over all strata: of the sample itself without r, else of one resample of it. */
static double difference(const struct stratum *strata, size_t count, double p, struct random *r)
{
    double sum = 0, weight = 0;
    for (size_t i = 0; i < count; i++) {
        const struct stratum *s = &strata[i];
        double with = r ? quantile_resampled(r, s->with, s->with_count, p)
                        : quantile_of(s->with, s->with_count, p);
        double without = r ? quantile_resampled(r, s->without, s->without_count, p)
                           : quantile_of(s->without, s->without_count, p);
        sum += (without - with) * (double)s->with_count;
        weight += (double)s->with_count;
    }
    return sum / weight;
}

double gain_value(const struct stratum *strata, size_t stratum_count, double p)
{
    return stratum_count > 0 ? difference(strata, stratum_count, p, NULL) : NAN;
}

bool gain_of(const struct stratum *strata, size_t stratum_count, double p, unsigned resamples,
             struct random *r, struct gain *ret_gain)
{
    struct gain gain = { NAN, NAN, NAN };
    if (stratum_count > 0) {
        double *differences = calloc(resamples, sizeof *differences);
        if (!differences)
            return false;
        for (unsigned i = 0; i < resamples; i++)
            differences[i] = difference(strata, stratum_count, p, r);
        values_sort(differences, resamples);
        gain.value = gain_value(strata, stratum_count, p);
        gain.low = quantile_of(differences, resamples, 0.025);
        gain.high = quantile_of(differences, resamples, 0.975);
        free(differences);
    }
    *ret_gain = gain;
    return true;
}
