/* SPDX-License-Identifier: Apache-2.0 */
#include "tally.h"

#include <criterion/criterion.h>
#include <string.h>

enum { NUMBERS = 40, HOUR_S = 3600 };

static const int64_t SECOND = 1000000000;

Test(tally, counts_and_spans_time)
{
    struct tally t = { 0 };
    tally_add(&t, 250, 50 * SECOND);
    tally_add(&t, 250, 20 * SECOND);
    tally_add(&t, 266, 30 * SECOND);
    const struct tally_entry *e = tally_find(&t, 250, 40 * SECOND);
    cr_assert_not_null(e);
    cr_expect_eq(e->count, 2);
    cr_expect_eq(e->first_ns, 20 * SECOND);
    cr_expect_eq(e->last_ns, 50 * SECOND);
    cr_expect_null(tally_find(&t, 251, 40 * SECOND));
}

Test(tally, holds_for_an_hour_around_what_was_seen)
{
    struct tally t = { 0 };
    tally_add(&t, 250, 10 * HOUR_S * SECOND);
    cr_expect_not_null(tally_find(&t, 250, 9 * HOUR_S * SECOND));
    cr_expect_null(tally_find(&t, 250, 9 * HOUR_S * SECOND - 1));
    cr_expect_not_null(tally_find(&t, 250, 11 * HOUR_S * SECOND));
    cr_expect_null(tally_find(&t, 250, 11 * HOUR_S * SECOND + 1));
}

/* Each number as often as it says, in an order that the step decides. */
static struct tally filled(unsigned step)
{
    struct tally t = { 0 };
    for (unsigned i = 0; i < NUMBERS * NUMBERS; i++) {
        unsigned at = i * step % (NUMBERS * NUMBERS);
        unsigned number = at / NUMBERS, time = at % NUMBERS;
        if (time <= number)
            tally_add(&t, number, time * SECOND);
    }
    return t;
}

Test(tally, the_order_of_additions_does_not_matter)
{
    static const unsigned STEPS[] = {
        1, 3, 7, 11, 999, 1599
    }; /* all prime to the number of adds */
    struct tally first = filled(1);
    cr_expect_eq(first.used, TALLY_MAX);
    for (unsigned i = 0; i < sizeof STEPS / sizeof *STEPS; i++) {
        struct tally other = filled(STEPS[i]);
        cr_expect_eq(other.used, TALLY_MAX);
        for (unsigned k = 0; k < TALLY_MAX; k++) {
            cr_expect_eq(other.entry[k].number, first.entry[k].number);
            cr_expect_eq(other.entry[k].count, first.entry[k].count);
            cr_expect_eq(other.entry[k].first_ns, first.entry[k].first_ns);
            cr_expect_eq(other.entry[k].last_ns, first.entry[k].last_ns);
        }
    }
}

Test(tally, what_stays_has_its_whole_count)
{
    struct tally t = filled(7);
    for (unsigned k = 0; k < TALLY_MAX; k++)
        cr_expect_eq(t.entry[k].count, t.entry[k].number + 1);
}
