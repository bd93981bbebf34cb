/* SPDX-License-Identifier: Apache-2.0 */
#include "statistics.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#define EXPECT_NEAR(value, expected, within)                                                       \
    cr_expect(fabs((value) - (expected)) <= (within), "%g instead of %g", (double)(value),         \
              (double)(expected))

Test(statistics, quantile_interpolates_between_neighbours)
{
    /* Python: statistics.quantiles(values, n=100, method='inclusive') */
    static const double values[] = { 1, 2, 4, 8, 16, 32 };
    EXPECT_NEAR(quantile_of(values, 6, 0.5), 6, 1e-12);
    EXPECT_NEAR(quantile_of(values, 6, 0.9), 24, 1e-12);
    EXPECT_NEAR(quantile_of(values, 6, 0.99), 31.2, 1e-12);
    EXPECT_NEAR(quantile_of(values, 6, 0), 1, 0);
    EXPECT_NEAR(quantile_of(values, 6, 1), 32, 0);
    EXPECT_NEAR(quantile_of(values, 1, 0.99), 1, 0);
    cr_expect(isnan(quantile_of(values, 0, 0.5)));
}

Test(statistics, least_counts_are_those_of_a_95_percent_interval)
{
    cr_expect_eq(quantile_least_count(0.5), 6);
    cr_expect_eq(quantile_least_count(0.9), 36);
    cr_expect_eq(quantile_least_count(0.1), 36);
    cr_expect_eq(quantile_least_count(0.99), 368);
}

Test(statistics, sort_is_ascending)
{
    double values[] = { 3, -1, 2, 2, INFINITY, 0 };
    values_sort(values, 6);
    for (size_t i = 1; i < 6; i++)
        cr_expect(values[i - 1] <= values[i]);
    values_sort(NULL, 0);
}

Test(statistics, uniform_numbers_are_uniform)
{
    enum { N = 100000 };
    struct random r = { 1 };
    double sum = 0, squares = 0;
    for (int i = 0; i < N; i++) {
        double u = random_uniform(&r);
        cr_assert(u > 0 && u < 1);
        sum += u;
        squares += u * u;
    }
    EXPECT_NEAR(sum / N, 0.5, 0.005);
    EXPECT_NEAR(squares / N, 1.0 / 3, 0.005);
}

Test(statistics, beta_numbers_have_the_mean_and_variance_of_beta)
{
    enum { N = 100000 };
    static const double shapes[][2] = { { 1, 1 }, { 1, 7 }, { 50, 51 }, { 990, 11 } };
    struct random r = { 2 };
    for (size_t s = 0; s < 4; s++) {
        double a = shapes[s][0], b = shapes[s][1], sum = 0, squares = 0;
        for (int i = 0; i < N; i++) {
            double x = random_beta(&r, a, b);
            cr_assert(x >= 0 && x <= 1);
            sum += x;
            squares += x * x;
        }
        double mean = sum / N, variance = squares / N - mean * mean;
        double expected = a * b / ((a + b) * (a + b) * (a + b + 1));
        EXPECT_NEAR(mean, a / (a + b), 0.005);
        EXPECT_NEAR(variance / expected, 1, 0.03);
    }
}

Test(statistics, the_same_seed_gives_the_same_numbers)
{
    struct random a = { 42 }, b = { 42 }, c = { 43 };
    cr_expect(random_uniform(&a) == random_uniform(&b));
    cr_expect(random_normal(&a) == random_normal(&b));
    cr_expect(random_uniform(&a) != random_uniform(&c));
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Draws whole resamples, as the textbook does. */
static void resample_plainly(const double *sorted, size_t count, double p, double *ret_quantiles,
                             size_t times)
{
    double *drawn = calloc(count, sizeof *drawn);
    srand48(7);
    for (size_t t = 0; t < times; t++) {
        for (size_t i = 0; i < count; i++)
            drawn[i] = sorted[(size_t)(drand48() * (double)count)];
        qsort(drawn, count, sizeof *drawn, compare);
        double at = (double)(count - 1) * p;
        size_t below = (size_t)at;
        double above = below + 1 < count ? drawn[below + 1] : drawn[below];
        ret_quantiles[t] = drawn[below] + (above - drawn[below]) * (at - (double)below);
    }
    qsort(ret_quantiles, times, sizeof *ret_quantiles, compare);
    free(drawn);
}

Test(statistics, resampled_quantiles_are_distributed_as_by_drawing_whole_resamples)
{
    enum { COUNT = 200, TIMES = 20000 };
    static const double probabilities[] = { 0.5, 0.9, 0.99 };
    double values[COUNT], *plain = calloc(TIMES, sizeof *plain),
                          *ours = calloc(TIMES, sizeof *ours);
    struct random r = { 3 };
    for (size_t i = 0; i < COUNT; i++)
        values[i] = 100 + 10 * random_normal(&r);
    qsort(values, COUNT, sizeof *values, compare);
    for (size_t p = 0; p < 3; p++) {
        resample_plainly(values, COUNT, probabilities[p], plain, TIMES);
        for (size_t t = 0; t < TIMES; t++)
            ours[t] = quantile_resampled(&r, values, COUNT, probabilities[p]);
        qsort(ours, TIMES, sizeof *ours, compare);
        for (double at = 0.05; at < 1; at += 0.15) {
            size_t i = (size_t)(at * TIMES);
            EXPECT_NEAR(ours[i], plain[i], 0.25);
        }
    }
    free(plain);
    free(ours);
}

Test(statistics, resampling_one_value_gives_that_value)
{
    double value = 5;
    struct random r = { 4 };
    EXPECT_NEAR(quantile_resampled(&r, &value, 1, 0.5), 5, 0);
    EXPECT_NEAR(quantile_resampled(&r, &value, 1, 0.99), 5, 0);
}

/* The interval of a gain between two normal groups covers the true gain about 95 times of 100. */
Test(statistics, interval_covers_the_true_gain_as_often_as_it_says)
{
    enum { COUNT = 150, TRIALS = 400 };
    double with[COUNT], without[COUNT];
    struct random data = { 5 }, r = { 6 };
    int covered = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        for (size_t i = 0; i < COUNT; i++) {
            with[i] = 200 + 30 * random_normal(&data);
            without[i] = 240 + 40 * random_normal(&data);
        }
        values_sort(with, COUNT);
        values_sort(without, COUNT);
        struct stratum s = { with, without, COUNT, COUNT };
        struct gain gain;
        cr_assert(gain_of(&s, 1, 0.5, 500, &r, &gain));
        cr_assert(gain.low <= gain.high);
        covered += gain.low <= 40 && 40 <= gain.high;
    }
    cr_expect(covered >= TRIALS * 91 / 100 && covered <= TRIALS * 99 / 100, "%d", covered);
}

/* A slow server with much 0-RTT and a quick one with little: pooled, 0-RTT would look slower. */
Test(statistics, strata_are_never_mixed)
{
    enum { MANY = 90, FEW = 10 };
    double slow_with[MANY], slow_without[FEW], quick_with[FEW], quick_without[MANY];
    for (size_t i = 0; i < MANY; i++) {
        slow_with[i] = 300 + (double)i / MANY;
        quick_without[i] = 60 + (double)i / MANY;
    }
    for (size_t i = 0; i < FEW; i++) {
        slow_without[i] = 320 + (double)i / FEW;
        quick_with[i] = 50 + (double)i / FEW;
    }
    struct stratum strata[] = { { slow_with, slow_without, MANY, FEW },
                                { quick_with, quick_without, FEW, MANY } };
    struct random r = { 8 };
    struct gain gain;
    cr_assert(gain_of(strata, 2, 0.5, 1000, &r, &gain));
    EXPECT_NEAR(gain.value, 0.9 * 20 + 0.1 * 10, 0.5);
    cr_expect(gain.low > 15 && gain.high < 22);
}

Test(statistics, a_gain_may_be_negative_and_no_strata_give_none)
{
    double low[] = { 1, 2, 3 }, high[] = { 11, 12, 13 };
    struct stratum s = { high, low, 3, 3 };
    struct random r = { 9 };
    struct gain gain;
    cr_assert(gain_of(&s, 1, 0.5, 100, &r, &gain));
    EXPECT_NEAR(gain.value, -10, 1e-12);
    cr_expect(gain.high < 0);
    cr_assert(gain_of(NULL, 0, 0.5, 100, &r, &gain));
    cr_expect(isnan(gain.value));
}
