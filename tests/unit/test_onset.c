/* SPDX-License-Identifier: Apache-2.0 */
#include "onset.h"

#include <criterion/criterion.h>
#include <math.h>

enum { VOTES = 100 };

/* Votes at 1, 2, 3, ...; every third says yes, and from `begin` on two of three. */
static struct onset onset_from(int begin)
{
    struct vote votes[VOTES];
    for (int i = 0; i < VOTES; i++) /* in any order */
        votes[(i * 37) % VOTES] = (struct vote){ i + 1, (i % 3 == 0) != (i >= begin) };
    return onset_of(votes, VOTES, 1.0 / 3, 2.0 / 3);
}

Test(onset, is_found_within_the_votes)
{
    for (int begin = 20; begin < 80; begin += 7) {
        struct onset onset = onset_from(begin);
        cr_expect(onset.sure > 3 && llabs(onset.start_ns - begin - 1) <= 2, "%d: %lld, %g", begin,
                  (long long)onset.start_ns, onset.sure);
    }
}

Test(onset, with_the_first_flow_is_none)
{
    struct onset onset = onset_from(0);
    cr_expect(onset.sure < 1, "%g", onset.sure);
}

Test(onset, of_nothing_is_none)
{
    struct vote one = { 7, true };
    cr_expect_eq(onset_of(NULL, 0, 0.1, 0.5).start_ns, 0);
    cr_expect_eq(onset_of(&one, 1, 0.1, 0.5).start_ns, 0);
}

Test(onset, of_shares_none_and_all_is_finite)
{
    struct vote votes[] = { { 1, false }, { 2, false }, { 3, true }, { 4, true } };
    struct onset onset = onset_of(votes, 4, 0, 1);
    cr_expect(onset.start_ns == 3 && isfinite(onset.sure));
}
