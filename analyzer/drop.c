/* SPDX-License-Identifier: Apache-2.0 */
#include "drop.h"

#include <assert.h>

static const struct {
    const char *text, *meaning;
} REASONS[DROP_COUNT] = {
#define DROP_ROW(name, text, meaning) [DROP_##name] = { text, meaning },
    DROP_REASONS(DROP_ROW)
#undef DROP_ROW
};

const char *drop_text(enum drop reason)
{
    assert(reason < DROP_COUNT);
    return REASONS[reason].text;
}

const char *drop_meaning(enum drop reason)
{
    assert(reason < DROP_COUNT);
    return REASONS[reason].meaning;
}

void drop_counts_add(struct drop_counts *counts, const struct drop_counts *more)
{
    for (unsigned i = 0; i < DROP_COUNT; i++)
        counts->packets[i] += more->packets[i];
}
