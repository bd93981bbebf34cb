/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHANGE_H
#define CHANGE_H
/*
 * What differs between two windows of time, and where. Pure: flows in, changes out.
 */
#include "scope.h"
#include "status.h"

enum {
    CHANGES_MAX = 64,
    CHANGES_PER_MEASURE = 3, /* places in which one measure changed */
    CHANGE_EXAMPLES = 3,
    GROUP_LEAST = 36, /* flows in each window, below which a group is not looked at */
};

struct change {
    enum measure_id measure;
    struct scope scope;
    struct shift shift;   /* by the flows from began_ns on; z by all */
    int64_t threshold_ns; /* of a quantile: half way between before and during */
    int64_t began_ns;     /* when, inside of the window during; 0 = with it, or not to be said */
    int64_t examples[CHANGE_EXAMPLES]; /* flow ids of the window during that show it */
    size_t example_count;
};

struct changes {
    struct change at[CHANGES_MAX]; /* in the order of their measures */
    size_t count;
    size_t compared; /* comparisons made: measures times groups */
    size_t too_few;  /* groups with fewer than GROUP_LEAST flows in a window */
    double z_least;  /* what a change must exceed to be no accident among so many */
};

/*
 * Looks for changes in all measures: everywhere, and where each column has each of its values;
 * inside of such a group, further by the other columns. A change is one that is large enough to
 * tell (measure_is_told()) and that no accident of so many comparisons would bring about: 5 % of
 * quiet hours have any (Bonferroni). STATUS_NO_MEMORY.
 */
MUST_USE enum status changes_find(const struct windows *w, struct changes *ret_changes);

/* Adds SQL that is true for flows that show the change, wherever and whenever they are. */
void change_add_shown(const struct change *c, struct text *sql);

/* Whether a measure rose. */
bool change_rose(const struct change *c);

#endif
