/* SPDX-License-Identifier: Apache-2.0 */
#include "comparison.h"

#include <math.h>
#include <stdlib.h>

/* Resamples of a bootstrap interval: enough for its ends; fewer where there are many strata. */
enum { RESAMPLES_MAX = 2000, RESAMPLES_MIN = 200, DRAWS_MAX = 20000000 };

enum status samples_add(struct samples *s, struct sample sample)
{
    if (s->count == s->capacity) {
        size_t capacity = s->capacity ? 2 * s->capacity : 256;
        struct sample *at = reallocarray(s->at, capacity, sizeof *at);
        if (!at)
            return STATUS_NO_MEMORY;
        s->at = at;
        s->capacity = capacity;
    }
    s->at[s->count++] = sample;
    return STATUS_OK;
}

void samples_done(struct samples *s)
{
    free(s->at);
    *s = (struct samples){ 0 };
}

static int compare_samples(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    if (x->stratum != y->stratum)
        return x->stratum < y->stratum ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

/* Samples from..to - 1 are of one stratum and one kind. */
struct run {
    size_t from, to;
};

static size_t run_len(struct run r)
{
    return r.to - r.from;
}

/* The run that starts at `from` in sorted samples. */
static struct run run_at(const struct samples *s, size_t from)
{
    struct run r = { from, from + 1 };
    while (r.to < s->count && s->at[r.to].stratum == s->at[from].stratum &&
           s->at[r.to].kind == s->at[from].kind)
        r.to++;
    return r;
}

/* Values of two measures, in the order of the samples, and the strata that hold enough of both. */
struct work {
    double *ms, *trips;
    struct stratum *ms_strata, *trips_strata;
    size_t strata, flows;
};

static void work_done(struct work *w)
{
    free(w->ms);
    free(w->trips);
    free(w->ms_strata);
    free(w->trips_strata);
}

static void add_stratum(struct work *w, struct run early, struct run other)
{
    const struct run runs[] = { early, other };
    for (size_t i = 0; i < 2; i++) {
        values_sort(w->ms + runs[i].from, run_len(runs[i]));
        values_sort(w->trips + runs[i].from, run_len(runs[i]));
    }
    w->ms_strata[w->strata] =
        (struct stratum){ w->ms + early.from, w->ms + other.from, run_len(early), run_len(other) };
    w->trips_strata[w->strata] = (struct stratum){ w->trips + early.from, w->trips + other.from,
                                                   run_len(early), run_len(other) };
    w->strata++;
    w->flows += run_len(early);
}

static void find_strata(const struct samples *s, enum compared_kind other, struct work *w)
{
    size_t enough = quantile_least_count(0.5);
    struct run early = { 0 };
    for (size_t at = 0; at < s->count;) {
        struct run run = run_at(s, at);
        const struct sample *first = &s->at[at];
        if (first->kind == COMPARED_0RTT)
            early = run;
        bool comparable = first->kind == other && run_len(early) >= enough &&
                          run_len(run) >= enough && s->at[early.from].stratum == first->stratum;
        if (comparable)
            add_stratum(w, early, run);
        at = run.to;
    }
}

static unsigned resamples_for(size_t strata)
{
    size_t affordable = strata ? DRAWS_MAX / (2 * strata) : RESAMPLES_MAX;
    if (affordable > RESAMPLES_MAX)
        return RESAMPLES_MAX;
    return affordable < RESAMPLES_MIN ? RESAMPLES_MIN : (unsigned)affordable;
}

static enum status compare_work(const struct work *w, uint64_t seed,
                                struct comparison *ret_comparison)
{
    struct comparison c = { .flows = w->flows, .strata = w->strata };
    struct random r = { seed };
    if (!gain_of(w->ms_strata, w->strata, 0.5, resamples_for(w->strata), &r, &c.ms))
        return STATUS_NO_MEMORY;
    c.round_trips = gain_value(w->trips_strata, w->strata, 0.5);
    *ret_comparison = c;
    return STATUS_OK;
}

enum status compare_kinds(struct samples *s, enum compared_kind other, uint64_t seed,
                          struct comparison *ret_comparison)
{
    if (s->count == 0) {
        *ret_comparison = (struct comparison){ .ms = { NAN, NAN, NAN }, .round_trips = NAN };
        return STATUS_OK;
    }
    qsort(s->at, s->count, sizeof *s->at, compare_samples);
    size_t strata_max = s->count / (2 * quantile_least_count(0.5)) + 1;
    struct work w = {
        .ms = calloc(s->count, sizeof *w.ms),
        .trips = calloc(s->count, sizeof *w.trips),
        .ms_strata = calloc(strata_max, sizeof *w.ms_strata),
        .trips_strata = calloc(strata_max, sizeof *w.trips_strata),
    };
    enum status status = STATUS_NO_MEMORY;
    if (w.ms && w.trips && w.ms_strata && w.trips_strata) {
        for (size_t i = 0; i < s->count; i++) {
            w.ms[i] = s->at[i].perceived_ms;
            w.trips[i] = s->at[i].round_trips;
        }
        find_strata(s, other, &w);
        status = compare_work(&w, seed, ret_comparison);
    }
    work_done(&w);
    return status;
}
