/* SPDX-License-Identifier: Apache-2.0 */
#include "comparison.h"

#include <criterion/criterion.h>
#include <math.h>

static void add(struct samples *s, uint32_t stratum, enum compared_kind kind, size_t count,
                double ms, double trips)
{
    for (size_t i = 0; i < count; i++) {
        double spread = (double)i - (double)(count - 1) / 2;
        struct sample sample = { ms + spread * 0.1, trips, stratum, (uint8_t)kind };
        cr_assert_eq(samples_add(s, sample), STATUS_OK);
    }
}

static struct comparison compared(struct samples *s, enum compared_kind other)
{
    struct comparison c;
    cr_assert_eq(compare_kinds(s, other, 1, &c), STATUS_OK);
    return c;
}

Test(comparison, strata_are_weighed_by_their_0rtt_flows)
{
    struct samples s = { 0 };
    add(&s, 7, COMPARED_FULL, 11, 50, 3.1);
    add(&s, 7, COMPARED_0RTT, 30, 20, 2.1);
    add(&s, 3, COMPARED_RESUMED, 20, 140, 3);
    add(&s, 3, COMPARED_0RTT, 10, 100, 2);
    add(&s, 7, COMPARED_RESUMED, 25, 40, 3.1);
    struct comparison c = compared(&s, COMPARED_RESUMED);
    cr_expect_float_eq(c.ms.value, (30 * 20.0 + 10 * 40.0) / 40, 1e-9);
    cr_expect_float_eq(c.round_trips, 1, 1e-9);
    cr_expect_eq(c.flows, 40);
    cr_expect_eq(c.strata, 2);
    cr_expect(c.ms.low < c.ms.value && c.ms.value < c.ms.high);
    c = compared(&s, COMPARED_FULL);
    cr_expect_float_eq(c.ms.value, 30, 1e-9);
    cr_expect_eq(c.flows, 30);
    samples_done(&s);
}

Test(comparison, strata_with_too_few_of_either_kind_are_left_out)
{
    struct samples s = { 0 };
    add(&s, 1, COMPARED_0RTT, 5, 20, 2);
    add(&s, 1, COMPARED_RESUMED, 50, 40, 3);
    add(&s, 2, COMPARED_0RTT, 50, 20, 2);
    add(&s, 2, COMPARED_RESUMED, 5, 40, 3);
    add(&s, 3, COMPARED_0RTT, 50, 20, 2);
    add(&s, 4, COMPARED_RESUMED, 50, 40, 3); /* the neighbour's flows are not like these */
    struct comparison c = compared(&s, COMPARED_RESUMED);
    cr_expect_eq(c.strata, 0);
    cr_expect(isnan(c.ms.value) && isnan(c.round_trips));
    add(&s, 1, COMPARED_0RTT, 1, 20, 2);
    cr_expect_eq(compared(&s, COMPARED_RESUMED).flows, 6);
    samples_done(&s);
}

Test(comparison, the_order_of_samples_and_a_second_run_change_nothing)
{
    struct samples a = { 0 }, b = { 0 };
    add(&a, 1, COMPARED_0RTT, 20, 20, 2);
    add(&a, 1, COMPARED_FULL, 20, 40, 3);
    add(&b, 1, COMPARED_FULL, 20, 40, 3);
    add(&b, 1, COMPARED_0RTT, 20, 20, 2);
    struct comparison x = compared(&a, COMPARED_FULL), y = compared(&b, COMPARED_FULL);
    struct comparison z = compared(&a, COMPARED_FULL);
    cr_expect(x.ms.low == y.ms.low && x.ms.high == y.ms.high);
    cr_expect(x.ms.low == z.ms.low && x.ms.high == z.ms.high);
    samples_done(&a);
    samples_done(&b);
}

Test(comparison, no_samples_give_no_gain)
{
    struct samples s = { 0 };
    cr_expect(isnan(compared(&s, COMPARED_FULL).ms.value));
}
