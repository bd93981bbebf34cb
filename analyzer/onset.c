/* SPDX-License-Identifier: Apache-2.0 */
#include "onset.h"

#include <math.h>
#include <stdlib.h>

/* No share is so sure that one flow could speak against all others. */
static const double SHARE_LEAST = 0.001;

static int compare_votes(const void *a, const void *b)
{
    const struct vote *x = a, *y = b;
    return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static double possible(double share)
{
    return fmin(fmax(share, SHARE_LEAST), 1 - SHARE_LEAST);
}

struct onset onset_of(struct vote *votes, size_t count, double before, double during)
{
    const double yes = log(possible(during) / possible(before));
    const double no = log((1 - possible(during)) / (1 - possible(before)));
    struct onset onset = { 0 };
    double sum = 0;
    if (count > 0)
        qsort(votes, count, sizeof *votes, compare_votes);
    for (size_t i = 0; i + 1 < count; i++) {
        sum += votes[i].yes ? yes : no;
        if (-sum > onset.sure)
            onset = (struct onset){ votes[i + 1].start_ns, -sum };
    }
    return onset;
}
