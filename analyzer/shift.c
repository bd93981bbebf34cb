/* SPDX-License-Identifier: Apache-2.0 */
#include "shift.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static const double Z_95 = 1.959963984540054;

double normal_quantile(double p)
{
    assert(p > 0 && p < 1);
    double low = -40, high = 40;
    for (int i = 0; i < 100; i++) {
        double middle = (low + high) / 2;
        if (erfc(-middle / M_SQRT2) / 2 < p)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static struct shift no_shift(const int64_t flows[WINDOWS])
{
    return (struct shift){
        NAN, NAN, NAN, NAN, NAN, 0, { flows[BEFORE], flows[DURING] },
    };
}

/* ---- shares ---- */

void share_add(struct share_sum *s, struct stratum_counts c)
{
    double n0 = (double)c.asked[BEFORE], n1 = (double)c.asked[DURING], n = n0 + n1;
    if (c.asked[BEFORE] == 0 || c.asked[DURING] == 0)
        return;
    double k0 = (double)c.yes[BEFORE], k1 = (double)c.yes[DURING], k = k0 + k1;
    double weight = n0 * n1 / n;
    s->weight += weight;
    s->before += weight * (k0 / n0);
    s->during += weight * (k1 / n1);
    s->p += (n1 * n1 * k0 - n0 * n0 * k1 + n0 * n1 * (n0 - n1) / 2) / (n * n);
    s->q += (k1 * (n0 - k0) + k0 * (n1 - k1)) / (2 * n);
    s->expected += n1 * k / n;
    s->variance += weight * (k / n) * (1 - k / n) * n / (n > 1 ? n - 1 : 1);
    for (size_t i = 0; i < WINDOWS; i++) {
        s->asked[i] += c.asked[i];
        s->yes[i] += c.yes[i];
    }
}

static double log_ratio(double observed, double expected)
{
    return observed > 0 ? observed * log(observed / expected) : 0;
}

/*
 * Twice the logarithm of how much likelier `during` of `both` are by themselves than if `expected`
 * of them were right.
 */
static double deviance(double during, double both, double expected)
{
    double d = log_ratio(during, expected) + log_ratio(both - during, both - expected);
    return d > 0 ? 2 * d : 0;
}

static double share_z(const struct share_sum *s, double spread)
{
    double during = (double)s->yes[DURING], both = (double)(s->yes[BEFORE] + s->yes[DURING]);
    double all = (double)(s->asked[BEFORE] + s->asked[DURING]), expected = s->expected;
    double sign = during < expected ? -1 : 1;
    if (!(s->variance > 0))
        return 0;
    if (both > all / 2) { /* the rarer of yes and no decides how sure it is */
        both = all - both;
        during = (double)s->asked[DURING] - during;
        expected = (double)s->asked[DURING] - expected;
    }
    double binomial = both * (expected / both) * (1 - expected / both);
    return sign * sqrt(deviance(during, both, expected) * (binomial / s->variance) / spread);
}

struct shift share_shift(const struct share_sum *s, double spread)
{
    if (!(s->weight > 0))
        return no_shift(s->asked);
    double change = (s->during - s->before) / s->weight;
    double half[WINDOWS] = { 0.5 / (double)s->asked[BEFORE], 0.5 / (double)s->asked[DURING] };
    double sato = fmax(0, (change * s->p + s->q) / (s->weight * s->weight));
    double variance = sato + half[BEFORE] * half[BEFORE] + half[DURING] * half[DURING];
    double reach = Z_95 * sqrt(variance * spread);
    return (struct shift){
        .before = s->before / s->weight,
        .during = s->during / s->weight,
        .change = change,
        .low = fmax(-1, change - reach),
        .high = fmin(1, change + reach),
        .z = share_z(s, spread),
        .flows = { s->asked[BEFORE], s->asked[DURING] },
    };
}

/* ---- quantiles ---- */

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return (x > y) - (x < y);
}

void floats_sort(float *values, size_t count)
{
    if (count > 0)
        qsort(values, count, sizeof *values, compare_floats);
}

double quantile_of_floats(const float *sorted, size_t count, double p)
{
    double at = (double)(count - 1) * p, below = floor(at);
    size_t i = (size_t)below;
    double low = (double)sorted[i], high = (double)sorted[i + 1 < count ? i + 1 : i];
    return low + (high - low) * (at - below);
}

static size_t count_above(const float *sorted, size_t count, double threshold)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((double)sorted[middle] > threshold)
            high = middle;
        else
            low = middle + 1;
    }
    return count - low;
}

/* A quantile of a sample, and how far its 95 % interval reaches down and up. */
struct reach {
    double value, down, up;
};

static struct reach reach_of(const float *sorted, size_t count, double p)
{
    double n = (double)count, wide = Z_95 * sqrt(n * p * (1 - p));
    double low = fmax(floor(n * p - wide) - 1, 0), high = fmin(ceil(n * p + wide), n - 1);
    double value = quantile_of_floats(sorted, count, p);
    return (struct reach){ value, value - (double)sorted[(size_t)low],
                           (double)sorted[(size_t)high] - value };
}

void quantile_add(struct quantile_sum *s, const float *before, size_t before_count,
                  const float *during, size_t during_count, double p)
{
    size_t least = quantile_least_count(p);
    if (before_count < least || during_count < least)
        return;
    struct reach was = reach_of(before, before_count, p), is = reach_of(during, during_count, p);
    double n0 = (double)before_count, n1 = (double)during_count, weight = n0 * n1 / (n0 + n1);
    s->weight += weight;
    s->before += weight * was.value;
    s->during += weight * is.value;
    s->low_square += weight * weight * (is.down * is.down + was.up * was.up);
    s->high_square += weight * weight * (is.up * is.up + was.down * was.down);
    const double thresholds[WINDOWS] = { was.value, is.value };
    for (size_t i = 0; i < WINDOWS; i++) {
        share_add(&s->above[i],
                  (struct stratum_counts){
                      { (int64_t)before_count, (int64_t)during_count },
                      { (int64_t)count_above(before, before_count, thresholds[i]),
                        (int64_t)count_above(during, during_count, thresholds[i]) } });
    }
    s->flows[BEFORE] += (int64_t)before_count;
    s->flows[DURING] += (int64_t)during_count;
}

struct shift quantile_shift(const struct quantile_sum *s, double spread)
{
    if (!(s->weight > 0))
        return no_shift(s->flows);
    double change = (s->during - s->before) / s->weight;
    double before_z = share_z(&s->above[BEFORE], spread);
    double during_z = share_z(&s->above[DURING], spread);
    return (struct shift){
        .before = s->before / s->weight,
        .during = s->during / s->weight,
        .change = change,
        .low = change - sqrt(s->low_square * spread) / s->weight,
        .high = change + sqrt(s->high_square * spread) / s->weight,
        .z = fabs(before_z) > fabs(during_z) ? before_z : during_z,
        .flows = { s->flows[BEFORE], s->flows[DURING] },
    };
}

/* ---- numbers of flows ---- */

struct shift volume_shift(const int64_t flows[WINDOWS], const double seconds[WINDOWS],
                          double spread)
{
    double n0 = (double)flows[BEFORE], n1 = (double)flows[DURING];
    if (flows[BEFORE] == 0 || !(seconds[BEFORE] > 0) || !(seconds[DURING] > 0))
        return no_shift(flows);
    double before = n0 / seconds[BEFORE], during = n1 / seconds[DURING], both = n0 + n1;
    double expected = both * seconds[DURING] / (seconds[BEFORE] + seconds[DURING]);
    /* Half a flow more keeps the interval finite where none came. */
    double ratio = (n1 + 0.5) / (n0 + 0.5) * (seconds[BEFORE] / seconds[DURING]);
    double reach = Z_95 * sqrt((1 / (n0 + 0.5) + 1 / (n1 + 0.5)) * spread);
    double z = sqrt(deviance(n1, both, expected) / spread);
    return (struct shift){
        .before = before,
        .during = during,
        .change = during / before,
        .low = ratio * exp(-reach),
        .high = ratio * exp(reach),
        .z = n1 < expected ? -z : z,
        .flows = { flows[BEFORE], flows[DURING] },
    };
}

/* ---- how much a share varies by itself ---- */

double spread_of(const int64_t asked[SLICES], const int64_t yes[SLICES])
{
    double n = 0, k = 0, squares = 0;
    int used = 0;
    for (size_t i = 0; i < SLICES; i++) {
        n += (double)asked[i];
        k += (double)yes[i];
    }
    double p = n > 0 ? k / n : 0;
    for (size_t i = 0; i < SLICES && p > 0 && p < 1; i++) {
        if (asked[i] == 0)
            continue;
        double difference = (double)yes[i] - (double)asked[i] * p;
        squares += difference * difference / ((double)asked[i] * p * (1 - p));
        used++;
    }
    return used > 1 ? fmax(1, squares / (used - 1)) : 1;
}

double volume_spread_of(const int64_t flows[SLICES])
{
    double n = 0, squares = 0;
    for (size_t i = 0; i < SLICES; i++)
        n += (double)flows[i];
    double mean = n / SLICES;
    for (size_t i = 0; i < SLICES; i++)
        squares += ((double)flows[i] - mean) * ((double)flows[i] - mean);
    return mean > 0 ? fmax(1, squares / mean / (SLICES - 1)) : 1;
}
