/* SPDX-License-Identifier: Apache-2.0 */
#include "cause.h"

#include <math.h>
#include <stdlib.h>

/* Changes whose places share that much of the smaller one are in the same place. */
static const double SAME_PLACE = 0.5;

/* A share below that is as good as none, and one above the other end as good as all. */
static const double NEARLY_NONE = 0.02;

/* Left of the traffic of a place, when it is called gone. */
static const double GONE = 0.1;

static bool is_worse(const struct change *c)
{
    return measure_is_worse(c->measure, c->shift.before, c->shift.during);
}

static bool is_same_place(const struct change *a, const struct change *b, const struct windows *w)
{
    return scope_overlap(&a->scope, &b->scope, w) >= SAME_PLACE;
}

/* ---- which belong together ---- */

static bool explains(const struct change *cause, const struct change *effect,
                     const struct windows *w)
{
    if (!(MEASURE[cause->measure].explains >> effect->measure & 1))
        return false;
    /* Captures of another quality, and early data where there was none, change things both ways. */
    bool both_ways = cause->measure == CAPTURED_WHOLE || cause->measure == EARLY_OFFERED;
    return (both_ways || is_worse(cause) == is_worse(effect)) && is_same_place(cause, effect, w);
}

/* The cause behind change i: the one that explains it, and is itself explained by none. */
static size_t root_of(const size_t *explained_by, size_t i)
{
    while (explained_by[i] != i)
        i = explained_by[i];
    return i;
}

/* 0 comes first. */
static int rank_of(const struct change *c)
{
    double left = c->shift.during / c->shift.before;
    switch (c->measure) {
    case CAPTURED_WHOLE:
        return 0;
    case FAILED:
    case ANSWERED:
        return is_worse(c) ? 1 : 5;
    case VOLUME:
        return left <= GONE ? 1 : 4;
    case MEASURED:
        return is_worse(c) ? 3 : 5;
    case EARLY_OFFERED:
        return 2; /* where it must not be, more of it is no improvement */
    case RESUMPTION_OFFERED:
    case RESUMPTION_ACCEPTED:
    case EARLY_ACCEPTED:
    case ANSWERED_EARLY:
    case HELLO_RETRY:
    case OLD_VERSION:
    case RTT_LEAST:
    case RTT_MEDIAN:
    case RESENT:
    case RTT_MOST:
    case THINK_MEDIAN:
    case THINK_MOST:
    case FLIGHT_STALLS:
    case ABANDONED:
        return is_worse(c) ? 2 : 5;
    case PERCEIVED_MEDIAN:
    case PERCEIVED_MOST:
    case HELLO_WAIT:
    case TLS_WAIT:
    case REQUEST_WAIT:
    case SERVER_WAIT:
    case MEASURES:
        break;
    }
    return is_worse(c) ? 3 : 5;
}

static int compare_stories(const void *a, const void *b)
{
    const struct change *x = ((const struct story *)a)->cause;
    const struct change *y = ((const struct story *)b)->cause;
    if (rank_of(x) != rank_of(y))
        return rank_of(x) - rank_of(y);
    double more = fabs(y->shift.z) - fabs(x->shift.z);
    if (more > 0 || more < 0)
        return more > 0 ? 1 : -1;
    return (int)x->measure - (int)y->measure;
}

void stories_of(const struct changes *changes, const struct windows *w, struct stories *ret_stories)
{
    size_t explained_by[CHANGES_MAX], story_of[CHANGES_MAX];
    struct stories s = { 0 };
    for (size_t i = 0; i < changes->count; i++) {
        explained_by[i] = i;
        for (size_t c = 0; c < changes->count && explained_by[i] == i; c++) {
            if (c != i && explains(&changes->at[c], &changes->at[i], w))
                explained_by[i] = c;
        }
    }
    for (size_t i = 0; i < changes->count; i++) {
        if (explained_by[i] == i) {
            story_of[i] = s.count;
            s.at[s.count++].cause = &changes->at[i];
        }
    }
    for (size_t i = 0; i < changes->count; i++) {
        struct story *story = &s.at[story_of[root_of(explained_by, i)]];
        if (explained_by[i] != i && story->effect_count < EFFECTS_MAX)
            story->effects[story->effect_count++] = &changes->at[i];
    }
    qsort(s.at, s.count, sizeof *s.at, compare_stories);
    *ret_stories = s;
}

/* ---- what is likely behind it ---- */

/* Whether a measure changed in the place of the story. */
static bool changed(enum measure_id measure, const struct story *story,
                    const struct changes *changes, const struct windows *w)
{
    for (size_t i = 0; i < changes->count; i++) {
        if (changes->at[i].measure == measure && is_same_place(&changes->at[i], story->cause, w))
            return true;
    }
    return false;
}

static const char *cause_of_worse(const struct story *story, const struct changes *changes,
                                  const struct windows *w)
{
    const struct shift *shift = &story->cause->shift;
    switch (story->cause->measure) {
    case CAPTURED_WHOLE:
        return "the captures differ, not the traffic; compare the rest with care";
    case RESUMPTION_OFFERED:
        return changed(RESUMPTION_ACCEPTED, story, changes, w)
                   ? NULL
                   : "servers no longer issue tickets that clients keep, or other clients came";
    case RESUMPTION_ACCEPTED:
        return changed(RESUMPTION_OFFERED, story, changes, w)
                   ? "session ticket keys are not shared or were rotated"
                   : "session ticket keys are not shared or were rotated: clients offer as before,"
                     " servers refuse";
    case EARLY_OFFERED:
        return shift->during < NEARLY_NONE ? "0-RTT was switched off: tickets no longer allow it"
                                           : NULL;
    case EARLY_ACCEPTED:
        return "servers keep the sessions but refuse their early data";
    case ANSWERED_EARLY:
        return "servers or a proxy before them hold early data back until the handshake is done";
    case HELLO_RETRY:
        return "servers no longer take the key share that clients send first";
    case RTT_LEAST:
        return "the way between these clients and servers became longer: even the fastest round"
               " trips did";
    case RTT_MEDIAN:
        return "the way between these clients and servers became longer, or a queue stands in it";
    case RESENT:
        return changed(RTT_LEAST, story, changes, w)
                   ? NULL
                   : "packets are lost on the way, which itself is as long as before";
    case RTT_MOST:
        return "packets wait in a queue on the way: slow round trips got slower, fast ones did not";
    case THINK_MEDIAN:
        return changed(RTT_LEAST, story, changes, w) || changed(RESENT, story, changes, w)
                   ? "the servers or the origin behind them answer slower"
                   : "the servers or the origin behind them answer slower; the network is as "
                     "before";
    case THINK_MOST:
        return "some requests wait longer for the servers or the origin behind them";
    case ANSWERED:
        return "handshakes complete but requests get no answer: the origin behind the servers";
    case VOLUME:
        return shift->during / shift->before <= GONE
                   ? "these connections go elsewhere, are cut off, or are no longer captured"
                   : NULL;
    case FAILED:
    case MEASURED:
    case OLD_VERSION:
    case FLIGHT_STALLS:
    case ABANDONED:
    case PERCEIVED_MEDIAN:
    case PERCEIVED_MOST:
    case HELLO_WAIT:
    case TLS_WAIT:
    case REQUEST_WAIT:
    case SERVER_WAIT:
    case MEASURES:
        break;
    }
    return NULL;
}

static const char *cause_of_better(const struct change *c)
{
    if (c->measure == EARLY_OFFERED && c->shift.before < NEARLY_NONE)
        return "0-RTT was switched on: clients offer early data only where a ticket allows it";
    return NULL;
}

void cause_add(const struct story *story, const struct changes *changes, const struct windows *w,
               struct text *t)
{
    const char *cause =
        is_worse(story->cause) ? cause_of_worse(story, changes, w) : cause_of_better(story->cause);
    if (cause)
        text_add(t, cause);
}
