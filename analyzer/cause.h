/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAUSE_H
#define CAUSE_H
/*
 * Which changes belong together, and what is likely behind them: one of them is the cause, the rest
 * its effects. Pure.
 */
#include "change.h"

enum { EFFECTS_MAX = 24 };

struct story {
    const struct change *cause;
    const struct change *effects[EFFECTS_MAX]; /* in the order of their measures */
    size_t effect_count;
};

struct stories {
    struct story at[CHANGES_MAX]; /* the most telling first */
    size_t count;
};

/*
 * A change is the effect of another one in the same place whose measure explains its own and that
 * goes the same way, for the worse or for the better. Stories come in this order: what the captures
 * show differs; connections fail; handshakes, paths or servers got worse; more or fewer visitors;
 * what got better. Inside of these, the surest first. The changes must outlive the stories.
 */
void stories_of(const struct changes *changes, const struct windows *w,
                struct stories *ret_stories);

/*
 * Adds what is likely behind a story, a sentence without a full stop, where the pattern is
 * unmistakable; else nothing.
 */
void cause_add(const struct story *story, const struct changes *changes, const struct windows *w,
               struct text *t);

#endif
