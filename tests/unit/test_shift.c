/* SPDX-License-Identifier: Apache-2.0 */
#include "shift.h"

#include <criterion/criterion.h>
#include <math.h>

#define EXPECT_NEAR(value, expected, within)                                                       \
    cr_expect(fabs((value) - (expected)) <= (within), "%g instead of %g", (double)(value),         \
              (double)(expected))

Test(shift, normal_quantiles_are_those_of_the_tables)
{
    EXPECT_NEAR(normal_quantile(0.975), 1.959963985, 1e-8);
    EXPECT_NEAR(normal_quantile(0.5), 0, 1e-8);
    EXPECT_NEAR(normal_quantile(0.001), -3.090232306, 1e-8);
    EXPECT_NEAR(normal_quantile(1 - 1e-7), 5.199337582, 1e-6);
}

static struct shift shift_of_counts(int64_t n0, int64_t k0, int64_t n1, int64_t k1)
{
    struct share_sum s = { 0 };
    share_add(&s, (struct stratum_counts){ { n0, n1 }, { k0, k1 } });
    return share_shift(&s, 1);
}

Test(shift, a_share_in_one_stratum_is_that_share)
{
    struct shift s = shift_of_counts(1000, 500, 2000, 1200);
    EXPECT_NEAR(s.before, 0.5, 1e-12);
    EXPECT_NEAR(s.during, 0.6, 1e-12);
    EXPECT_NEAR(s.change, 0.1, 1e-12);
    /* sqrt(p q / n) of both: 0.0158 and 0.0110. */
    double reach = 1.96 * sqrt(0.25 / 1000 + 0.24 / 2000);
    EXPECT_NEAR(s.low, 0.1 - reach, 0.001);
    EXPECT_NEAR(s.high, 0.1 + reach, 0.001);
    EXPECT_NEAR(s.z, 0.1 / sqrt(0.5667 * 0.4333 * (1.0 / 1000 + 1.0 / 2000)), 0.1);
}

Test(shift, the_same_change_downward_has_the_opposite_sign)
{
    struct shift up = shift_of_counts(300, 30, 500, 90), down = shift_of_counts(500, 90, 300, 30);
    EXPECT_NEAR(up.change, -down.change, 1e-12);
    EXPECT_NEAR(up.low, -down.high, 1e-9);
    cr_expect(up.z > 2 && down.z < -2);
}

Test(shift, strata_that_do_not_change_show_no_change_whatever_their_sizes)
{
    /* Together 18 % become 82 %: more flows of the stratum that says yes. */
    struct share_sum s = { 0 };
    share_add(&s, (struct stratum_counts){ { 900, 100 }, { 90, 10 } });
    share_add(&s, (struct stratum_counts){ { 100, 900 }, { 90, 810 } });
    struct shift shift = share_shift(&s, 1);
    EXPECT_NEAR(shift.change, 0, 1e-12);
    EXPECT_NEAR(shift.z, 0, 1e-6);
    cr_expect(shift.low < 0 && shift.high > 0);
}

Test(shift, few_flows_are_not_taken_for_many)
{
    /* 3 of 100 after 2 of 10,000: exact binomial probability 2e-5, which is z 4.3. */
    struct shift s = shift_of_counts(10000, 2, 100, 3);
    cr_expect(s.z > 3.8 && s.z < 4.6, "%g", s.z);
    /* 0 of 40 after 2 of 40 is nothing. */
    cr_expect(fabs(shift_of_counts(40, 2, 40, 0).z) < 2);
}

Test(shift, nothing_to_compare_is_no_change)
{
    struct share_sum s = { 0 };
    cr_expect(isnan(share_shift(&s, 1).change) && share_shift(&s, 1).z == 0);
    share_add(&s, (struct stratum_counts){ { 100, 0 }, { 5, 0 } });
    cr_expect(isnan(share_shift(&s, 1).change));
    struct shift all = shift_of_counts(100, 100, 100, 100);
    EXPECT_NEAR(all.change, 0, 0);
    EXPECT_NEAR(all.z, 0, 0);
    struct quantile_sum q = { 0 };
    float few[5] = { 1, 2, 3, 4, 5 };
    quantile_add(&q, few, 5, few, 5, 0.5);
    cr_expect(isnan(quantile_shift(&q, 1).change) && quantile_shift(&q, 1).z == 0);
}

Test(shift, a_change_from_none_to_all_keeps_an_interval)
{
    struct shift s = shift_of_counts(10, 0, 10, 10);
    EXPECT_NEAR(s.change, 1, 1e-12);
    cr_expect(s.low < 0.95 && s.high <= 1);
}

Test(shift, spread_widens_the_interval_and_lowers_z)
{
    struct share_sum s = { 0 };
    share_add(&s, (struct stratum_counts){ { 1000, 1000 }, { 500, 600 } });
    struct shift narrow = share_shift(&s, 1), wide = share_shift(&s, 4);
    EXPECT_NEAR((wide.high - wide.low) / (narrow.high - narrow.low), 2, 1e-9);
    EXPECT_NEAR(narrow.z / wide.z, 2, 1e-9);
}

enum { VALUES = 2000 };

static void draw(struct random *r, float values[VALUES], size_t count, double shift)
{
    for (size_t i = 0; i < count; i++)
        values[i] = (float)(exp(random_normal(r)) + shift);
    floats_sort(values, count);
}

/* Of a thousand intervals of a true change of 0.5, and of z of a change of 0. */
static void try_quantile(double p, size_t n0, size_t n1)
{
    struct random r = { 5 };
    static float before[VALUES], during[VALUES], same[VALUES];
    int holds = 0, alarms = 0;
    for (int i = 0; i < 1000; i++) {
        draw(&r, before, n0, 0);
        draw(&r, during, n1, 0.5);
        draw(&r, same, n1, 0);
        struct quantile_sum s = { 0 }, t = { 0 };
        quantile_add(&s, before, n0, during, n1, p);
        quantile_add(&t, before, n0, same, n1, p);
        struct shift changed = quantile_shift(&s, 1), unchanged = quantile_shift(&t, 1);
        holds += changed.low <= 0.5 && 0.5 <= changed.high;
        alarms += fabs(unchanged.z) > 3;
    }
    cr_expect(holds >= 930, "p %g, %zu and %zu: %d of 1000 intervals hold the change", p, n0, n1,
              holds);
    cr_expect(alarms <= 15, "p %g, %zu and %zu: z > 3 in %d of 1000 without a change", p, n0, n1,
              alarms);
}

Test(shift, intervals_of_quantiles_hold_and_z_raises_no_alarm)
{
    try_quantile(0.5, 40, 60);
    try_quantile(0.5, 1000, 300);
    try_quantile(0.9, 60, 60);
    try_quantile(0.9, 400, 1000);
    try_quantile(0.05, 200, 200);
}

Test(shift, a_longer_way_moves_the_least_quantile_by_its_length)
{
    struct random r = { 3 };
    static float before[VALUES], during[VALUES];
    draw(&r, before, VALUES, 12);
    draw(&r, during, VALUES, 57);
    struct quantile_sum s = { 0 };
    quantile_add(&s, before, VALUES, during, VALUES, 0.05);
    struct shift shift = quantile_shift(&s, 1);
    EXPECT_NEAR(shift.change, 45, 0.1);
    cr_expect(shift.z > 50);
}

Test(shift, volumes_are_compared_by_the_second)
{
    const double seconds[WINDOWS] = { 3600, 600 };
    struct shift same = volume_shift((int64_t[]){ 3600, 610 }, seconds, 1);
    EXPECT_NEAR(same.change, 610.0 / 600, 1e-12);
    cr_expect(fabs(same.z) < 1 && same.low < 1 && same.high > 1);
    struct shift gone = volume_shift((int64_t[]){ 3600, 0 }, seconds, 1);
    cr_expect(gone.change == 0 && gone.z < -10 && gone.high < 0.02);
    cr_expect(isnan(volume_shift((int64_t[]){ 0, 5 }, seconds, 1).change));
}

Test(shift, what_varies_by_chance_has_a_spread_near_one)
{
    const int64_t asked[SLICES] = { 100, 100, 100, 100, 100, 100, 100, 100 };
    const int64_t even[SLICES] = { 50, 48, 52, 55, 45, 50, 49, 51 };
    const int64_t bursts[SLICES] = { 100, 0, 0, 100, 100, 0, 0, 100 };
    const int64_t none[SLICES] = { 0 };
    EXPECT_NEAR(spread_of(asked, even), 1, 0.3);
    EXPECT_NEAR(spread_of(asked, bursts), 800.0 / 7, 1e-9);
    EXPECT_NEAR(spread_of(asked, none), 1, 0);
    EXPECT_NEAR(spread_of(none, none), 1, 0);
    EXPECT_NEAR(volume_spread_of(asked), 1, 0);
    cr_expect(volume_spread_of(bursts) > 30);
    EXPECT_NEAR(volume_spread_of(none), 1, 0);
}
