/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The search. A measure is compared everywhere and in each group of flows that agree in one column.
 * The group in which the two windows are farthest apart, in standard errors, is where the change
 * is: taken together with flows in which nothing changed, the difference is diluted, and in a part
 * of it there are fewer flows to be sure by. Where several groups of many changed, all flows
 * together may be farther apart than any of them; so a group whose change is much larger is
 * preferred, too. Inside that group the other columns are tried in the same way. Then the flows of
 * the group are put aside and the rest is searched again.
 *
 *   everywhere  ----------------------- z 14
 *   site fra1   ------  z 0    site fra2 ------ z 31    site iad1 ----- z 1
 *                              host a -- z 44   host b -- z 0
 */
#include "change.h"

#include "onset.h"

#include <math.h>
#include <stdlib.h>

/* Groups that are closer to chance than that are not looked at twice. */
static const double Z_WORTH = 3;
/* A narrower or later group must be so much farther apart to be preferred. */
static const double Z_BETTER = 1.01;
/*
 * A group is preferred to a wider one when its change is so many times as large, for sure (their
 * intervals are apart), and it is not that much farther from being sure at all.
 */
static const double LARGER = 1.5, LARGER_Z = 0.5;
static const double FALSE_ALARMS = 0.05;

enum { EVERYWHERE = -1 }; /* instead of a column */

/* What is summed up of one group: flows with the same value in a column. */
struct sums {
    union {
        struct share_sum share;
        struct quantile_sum quantile;
        int64_t flows[WINDOWS];
    };
    int64_t slice_asked[SLICES], slice_yes[SLICES];
};

/* The best group for a measure so far. */
struct candidate {
    bool found;
    struct scope scope;
    struct shift shift;
};

struct search {
    const struct windows *w;
    bool *in;                         /* flows that are looked at now */
    uint32_t *by_duration[DURATIONS]; /* flows that have it, in its order */
    size_t duration_count[DURATIONS];
    uint32_t *cell;       /* of each flow: its group and stratum */
    uint32_t *cell_group; /* of each cell */
    size_t cell_count;
    struct words cells;
    struct stratum_counts *counts; /* of each cell */
    size_t *ends;                  /* of each cell and window, in `sorted` */
    float *sorted;
    struct sums *sums; /* of each group */
    size_t group_count;
    size_t compared, too_few;
};

/* ---- preparing ---- */

struct duration_of {
    float ns;
    uint32_t flow;
};

static int compare_durations(const void *a, const void *b)
{
    const struct duration_of *x = a, *y = b;
    if (x->ns < y->ns || x->ns > y->ns)
        return x->ns < y->ns ? -1 : 1;
    return (x->flow > y->flow) - (x->flow < y->flow);
}

static bool sort_by_durations(struct search *s)
{
    struct duration_of *known = calloc(s->w->count + 1, sizeof *known);
    bool whole = known != NULL;
    for (size_t d = 0; d < DURATIONS && whole; d++) {
        size_t count = 0;
        for (size_t i = 0; i < s->w->count; i++) {
            float ns = s->w->flows[i].duration_ns[d];
            if (!isnan(ns))
                known[count++] = (struct duration_of){ ns, (uint32_t)i };
        }
        qsort(known, count, sizeof *known, compare_durations);
        s->by_duration[d] = calloc(count + 1, sizeof *s->by_duration[d]);
        whole = s->by_duration[d] != NULL;
        for (size_t i = 0; i < count && whole; i++)
            s->by_duration[d][i] = known[i].flow;
        s->duration_count[d] = count;
    }
    free(known);
    return whole;
}

static void search_done(struct search *s)
{
    free(s->in);
    for (size_t d = 0; d < DURATIONS; d++)
        free(s->by_duration[d]);
    free(s->cell);
    free(s->cell_group);
    words_done(&s->cells);
    free(s->counts);
    free(s->ends);
    free(s->sorted);
    free(s->sums);
}

static enum status search_init(struct search *s, const struct windows *w)
{
    *s = (struct search){ .w = w };
    s->in = calloc(w->count + 1, sizeof *s->in);
    s->cell = calloc(w->count + 1, sizeof *s->cell);
    s->sorted = calloc(w->count + 1, sizeof *s->sorted);
    bool whole = s->in && s->cell && s->sorted && sort_by_durations(s);
    return whole ? STATUS_OK : STATUS_NO_MEMORY;
}

/* ---- groups and their strata ---- */

static uint32_t group_of(const struct seen *f, int column)
{
    return column == EVERYWHERE ? 0 : f->word[column];
}

static bool make_room(struct search *s, int column)
{
    s->group_count = column == EVERYWHERE ? 1 : s->w->words[column].count;
    free(s->cell_group);
    free(s->counts);
    free(s->ends);
    free(s->sums);
    s->cell_group = calloc(s->cell_count + 1, sizeof *s->cell_group);
    s->counts = calloc(s->cell_count + 1, sizeof *s->counts);
    s->ends = calloc(WINDOWS * s->cell_count + 1, sizeof *s->ends);
    s->sums = calloc(s->group_count + 1, sizeof *s->sums);
    return s->cell_group && s->counts && s->ends && s->sums;
}

/* Numbers the cells: groups by a column, cut into strata. */
static enum status number_cells(struct search *s, int column, enum alike alike)
{
    words_done(&s->cells);
    enum status status = STATUS_OK;
    int64_t strata = s->w->alike_count[alike];
    for (size_t i = 0; i < s->w->count && status == STATUS_OK; i++) {
        const struct seen *f = &s->w->flows[i];
        if (s->in[i])
            status = words_add(
                &s->cells, cell_integer(group_of(f, column) * strata + (int64_t)f->alike[alike]),
                &s->cell[i]);
    }
    s->cell_count = s->cells.count;
    if (status != STATUS_OK || !make_room(s, column))
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < s->cell_count; i++)
        s->cell_group[i] = (uint32_t)(s->cells.at[i].integer / strata);
    return STATUS_OK;
}

/* ---- sums ---- */

static void sum_shares(struct search *s, enum measure_id measure)
{
    memset(s->counts, 0, s->cell_count * sizeof *s->counts);
    for (size_t i = 0; i < s->w->count; i++) {
        const struct seen *f = &s->w->flows[i];
        if (!s->in[i] || !(f->asked >> measure & 1))
            continue;
        struct stratum_counts *c = &s->counts[s->cell[i]];
        c->asked[f->window]++;
        c->yes[f->window] += f->yes >> measure & 1;
    }
    for (size_t i = 0; i < s->cell_count; i++)
        share_add(&s->sums[s->cell_group[i]].share, s->counts[i]);
}

static void sum_quantiles(struct search *s, enum measure_id measure)
{
    enum duration d = MEASURE[measure].duration;
    const uint32_t *order = s->by_duration[d];
    memset(s->ends, 0, WINDOWS * s->cell_count * sizeof *s->ends);
    for (size_t i = 0; i < s->duration_count[d]; i++) {
        if (s->in[order[i]])
            s->ends[WINDOWS * s->cell[order[i]] + s->w->flows[order[i]].window]++;
    }
    size_t end = 0; /* becomes the begin of each, and its end as values are put there */
    for (size_t i = 0; i < WINDOWS * s->cell_count; i++) {
        size_t count = s->ends[i];
        s->ends[i] = end;
        end += count;
    }
    for (size_t i = 0; i < s->duration_count[d]; i++) {
        const struct seen *f = &s->w->flows[order[i]];
        if (s->in[order[i]])
            s->sorted[s->ends[WINDOWS * s->cell[order[i]] + f->window]++] = f->duration_ns[d];
    }
    size_t begin = 0;
    for (size_t i = 0; i < s->cell_count; i++) {
        size_t middle = s->ends[WINDOWS * i + BEFORE], last = s->ends[WINDOWS * i + DURING];
        quantile_add(&s->sums[s->cell_group[i]].quantile, s->sorted + begin, middle - begin,
                     s->sorted + middle, last - middle, MEASURE[measure].quantile);
        begin = last;
    }
}

static void sum_volumes(struct search *s, int column)
{
    for (size_t i = 0; i < s->w->count; i++) {
        if (s->in[i])
            s->sums[group_of(&s->w->flows[i], column)].flows[s->w->flows[i].window]++;
    }
}

static void sum_up(struct search *s, enum measure_id measure, int column)
{
    memset(s->sums, 0, s->group_count * sizeof *s->sums);
    switch (MEASURE[measure].kind) {
    case MEASURE_SHARE:
        sum_shares(s, measure);
        return;
    case MEASURE_QUANTILE:
        sum_quantiles(s, measure);
        return;
    case MEASURE_VOLUME:
        sum_volumes(s, column);
        return;
    }
}

static struct shift shift_of(const struct search *s, enum measure_id measure, size_t group,
                             double spread)
{
    const struct sums *sums = &s->sums[group];
    const double seconds[WINDOWS] = { windows_seconds(s->w, BEFORE),
                                      windows_seconds(s->w, DURING) };
    switch (MEASURE[measure].kind) {
    case MEASURE_SHARE:
        return share_shift(&sums->share, spread);
    case MEASURE_QUANTILE:
        return quantile_shift(&sums->quantile, spread);
    case MEASURE_VOLUME:
        break;
    }
    return volume_shift(sums->flows, seconds, spread);
}

/* Whether the flow says yes to a question about it: a share's own, or "longer than that?" */
static bool says_yes(const struct seen *f, enum measure_id measure, double threshold)
{
    const struct measure *m = &MEASURE[measure];
    if (m->kind == MEASURE_QUANTILE)
        return (double)f->duration_ns[m->duration] > threshold;
    return m->kind == MEASURE_VOLUME || f->yes >> measure & 1;
}

static bool is_asked(const struct seen *f, enum measure_id measure)
{
    const struct measure *m = &MEASURE[measure];
    if (m->kind == MEASURE_QUANTILE)
        return !isnan(f->duration_ns[m->duration]);
    return m->kind == MEASURE_VOLUME || f->asked >> measure & 1;
}

/* Counts each group's flows by slice of the window before. */
static void sum_slices(struct search *s, enum measure_id measure, int column)
{
    double *before = calloc(s->group_count + 1, sizeof *before);
    if (!before)
        return; /* as if they did not vary */
    for (size_t i = 0; i < s->group_count; i++) {
        before[i] = shift_of(s, measure, i, 1).before;
        memset(s->sums[i].slice_asked, 0, sizeof s->sums[i].slice_asked);
        memset(s->sums[i].slice_yes, 0, sizeof s->sums[i].slice_yes);
    }
    for (size_t i = 0; i < s->w->count; i++) {
        const struct seen *f = &s->w->flows[i];
        if (!s->in[i] || f->window != BEFORE || !is_asked(f, measure))
            continue;
        uint32_t group = group_of(f, column);
        s->sums[group].slice_asked[f->slice]++;
        s->sums[group].slice_yes[f->slice] += says_yes(f, measure, before[group]);
    }
    free(before);
}

static double spread_of_group(const struct sums *sums, enum measure_id measure)
{
    return MEASURE[measure].kind == MEASURE_VOLUME ? volume_spread_of(sums->slice_asked)
                                                   : spread_of(sums->slice_asked, sums->slice_yes);
}

/* ---- comparing ---- */

static bool has_enough(const struct shift *shift, enum measure_id measure)
{
    return shift->flows[BEFORE] >= GROUP_LEAST &&
           (shift->flows[DURING] >= GROUP_LEAST || MEASURE[measure].kind == MEASURE_VOLUME);
}

static bool is_worth(const struct shift *shift, enum measure_id measure)
{
    return has_enough(shift, measure) && fabs(shift->z) > Z_WORTH &&
           measure_is_told(&MEASURE[measure], shift->before, shift->during);
}

static double size_of(double change, enum measure_id measure)
{
    return MEASURE[measure].kind == MEASURE_VOLUME ? log(fmax(change, 1e-3)) : change;
}

/* Whether the change in one group is that much larger than in another. */
static bool is_sharper(const struct shift *a, const struct shift *b, enum measure_id measure)
{
    double ratio = size_of(a->change, measure) / size_of(b->change, measure);
    bool apart = size_of(a->change, measure) > 0 ? a->low > b->high : a->high < b->low;
    return ratio >= LARGER && apart && fabs(a->z) >= LARGER_Z * fabs(b->z);
}

static bool is_better(const struct shift *a, const struct candidate *best, enum measure_id measure)
{
    if (!best->found || is_sharper(a, &best->shift, measure))
        return true;
    return fabs(a->z) > Z_BETTER * fabs(best->shift.z) && !is_sharper(&best->shift, a, measure);
}

/* Compares the groups that were summed up; keeps the best one where it beats the candidate. */
static void compare_groups(struct search *s, enum measure_id measure, int column,
                           const struct scope *inside, struct candidate *best)
{
    bool any = false;
    for (size_t i = 0; i < s->group_count; i++) {
        struct shift shift = shift_of(s, measure, i, 1);
        bool enough = has_enough(&shift, measure);
        s->compared += enough;
        s->too_few +=
            !enough && measure == CAPTURED_WHOLE && shift.flows[BEFORE] + shift.flows[DURING] > 0;
        any |= is_worth(&shift, measure);
    }
    if (!any)
        return;
    sum_slices(s, measure, column);
    for (size_t i = 0; i < s->group_count; i++) {
        struct shift shift = shift_of(s, measure, i, spread_of_group(&s->sums[i], measure));
        if (!is_worth(&shift, measure) || !is_better(&shift, best, measure))
            continue;
        *best = (struct candidate){ true, *inside, shift };
        if (column != EVERYWHERE)
            best->scope.condition[best->scope.count++] =
                (struct condition){ (size_t)column, (uint32_t)i };
    }
}

/* Compares the measures of `wanted` in all groups by one column, inside of a scope. */
static enum status look(struct search *s, int column, uint32_t wanted, const struct scope *inside,
                        struct candidate *best)
{
    for (enum alike alike = ALIKE_PATH; alike < ALIKE_COUNT; alike++) {
        uint32_t here = 0;
        for (size_t i = 0; i < MEASURES; i++) {
            if (MEASURE[i].alike == alike)
                here |= wanted & UINT32_C(1) << i;
        }
        if (here == 0)
            continue;
        enum status status = number_cells(s, column, alike);
        if (status != STATUS_OK)
            return status;
        for (enum measure_id i = 0; i < MEASURES; i++) {
            if (!(here >> i & 1))
                continue;
            sum_up(s, i, column);
            compare_groups(s, i, column, inside, &best[i]);
        }
    }
    return STATUS_OK;
}

static enum status look_everywhere(struct search *s, uint32_t wanted, struct candidate *best)
{
    static const struct scope EVERYTHING = { 0 };
    enum status status = STATUS_OK;
    for (int column = EVERYWHERE; column < (int)s->w->column_count && status == STATUS_OK; column++)
        status = look(s, column, wanted, &EVERYTHING, best);
    return status;
}

static double z_least(const struct search *s)
{
    double comparisons = s->compared > 0 ? (double)s->compared : 1;
    return normal_quantile(1 - FALSE_ALARMS / 2 / comparisons);
}

/* Looks inside of the candidate's scope for a narrower one. */
static enum status narrow(struct search *s, enum measure_id measure, struct candidate *best)
{
    enum status status = STATUS_OK;
    bool narrower = true;
    while (narrower && best[measure].scope.count < CONDITIONS_MAX && status == STATUS_OK) {
        struct scope scope = best[measure].scope;
        for (size_t i = 0; i < s->w->count; i++)
            s->in[i] = s->in[i] && scope_holds(&scope, &s->w->flows[i]);
        for (size_t column = 0; column < s->w->column_count && status == STATUS_OK; column++) {
            if (!scope_has_column(&scope, column))
                status = look(s, (int)column, UINT32_C(1) << measure, &scope, best);
        }
        narrower = best[measure].scope.count > scope.count;
    }
    return status;
}

/* ---- what a change is like ---- */

bool change_rose(const struct change *c)
{
    return c->shift.during > c->shift.before;
}

void change_add_shown(const struct change *c, struct text *sql)
{
    const struct measure *m = &MEASURE[c->measure];
    if (m->kind != MEASURE_QUANTILE) {
        text_add(sql, change_rose(c) ? m->rose : m->fell);
        return;
    }
    const char *condition = duration_condition(m->duration);
    text_addf(sql, "%s %s %lld", duration_column(m->duration),
              change_rose(c) ? ">=" : "<=", (long long)c->threshold_ns);
    if (condition)
        text_addf(sql, " AND %s", condition);
}

static bool shows(const struct change *c, const struct seen *f)
{
    bool yes = says_yes(f, c->measure, (double)c->threshold_ns);
    return is_asked(f, c->measure) &&
           (yes == change_rose(c) || MEASURE[c->measure].kind == MEASURE_VOLUME);
}

/* Three flows out of the middle of those that show it: neither the first nor the most extreme. */
static void find_examples(struct change *c, const struct windows *w)
{
    int64_t count = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct seen *f = &w->flows[i];
        count += f->window == DURING && scope_holds(&c->scope, f) && shows(c, f);
    }
    int64_t at = 0;
    for (size_t i = 0; i < w->count && c->example_count < CHANGE_EXAMPLES; i++) {
        const struct seen *f = &w->flows[i];
        if (f->window != DURING || !scope_holds(&c->scope, f) || !shows(c, f))
            continue;
        int64_t wanted =
            count * (2 * (int64_t)c->example_count + 1) / (INT64_C(2) * CHANGE_EXAMPLES);
        if (at++ >= wanted)
            c->examples[c->example_count++] = f->flow_id;
    }
}

/*
 * A change is said to have begun later than the window if that is so much likelier than with it:
 * logarithm of the ratio, 150 to 1.
 */
static const double BEGAN_SURE = 5;

/* Asks the flows of the scope about a threshold (that of quantiles); votes has room for all. */
static struct onset onset_by(const struct change *c, const struct windows *w, double threshold,
                             struct vote *votes)
{
    size_t count[WINDOWS] = { 0 }, yes[WINDOWS] = { 0 };
    for (size_t i = 0; i < w->count; i++) {
        const struct seen *f = &w->flows[i];
        if (!scope_holds(&c->scope, f) || !is_asked(f, c->measure))
            continue;
        bool says = says_yes(f, c->measure, threshold);
        if (f->window == DURING)
            votes[count[DURING]] = (struct vote){ f->start_ns, says };
        count[f->window]++;
        yes[f->window] += says;
    }
    if (count[BEFORE] == 0 || count[DURING] == 0)
        return (struct onset){ 0 };
    return onset_of(votes, count[DURING], (double)yes[BEFORE] / (double)count[BEFORE],
                    (double)yes[DURING] / (double)count[DURING]);
}

/* Half way between the medians of both windows: it parts them best where all flows changed. */
static double between_medians(const struct search *s, const struct change *c)
{
    enum duration d = MEASURE[c->measure].duration;
    size_t count[WINDOWS] = { 0 }, passed[WINDOWS] = { 0 };
    double medians[WINDOWS] = { 0 };
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < s->duration_count[d]; i++) {
            const struct seen *f = &s->w->flows[s->by_duration[d][i]];
            if (!scope_holds(&c->scope, f))
                continue;
            if (pass == 0)
                count[f->window]++;
            else if (passed[f->window]++ == count[f->window] / 2)
                medians[f->window] = (double)f->duration_ns[d];
        }
    }
    return (medians[BEFORE] + medians[DURING]) / 2;
}

static enum status find_begin(const struct search *s, struct change *c)
{
    enum measure_kind kind = MEASURE[c->measure].kind;
    struct vote *votes = calloc(s->w->count + 1, sizeof *votes);
    if (!votes)
        return STATUS_NO_MEMORY;
    struct onset onset = { 0 };
    if (kind != MEASURE_VOLUME)
        onset = onset_by(c, s->w, (double)c->threshold_ns, votes);
    if (kind == MEASURE_QUANTILE) {
        struct onset by_medians = onset_by(c, s->w, between_medians(s, c), votes);
        onset = by_medians.sure > onset.sure ? by_medians : onset;
    }
    c->began_ns = onset.sure >= BEGAN_SURE ? onset.start_ns : 0;
    free(votes);
    return STATUS_OK;
}

/* Measures a change again by the flows from its begin on; how sure it is stays. */
static enum status measure_again(struct search *s, struct change *c)
{
    for (size_t i = 0; i < s->w->count; i++) {
        const struct seen *f = &s->w->flows[i];
        s->in[i] = scope_holds(&c->scope, f) && (f->window == BEFORE || f->start_ns >= c->began_ns);
    }
    enum status status = number_cells(s, EVERYWHERE, MEASURE[c->measure].alike);
    if (status != STATUS_OK)
        return status;
    sum_up(s, c->measure, EVERYWHERE);
    sum_slices(s, c->measure, EVERYWHERE);
    struct shift shift = shift_of(s, c->measure, 0, spread_of_group(&s->sums[0], c->measure));
    shift.z = c->shift.z;
    if (isnan(shift.change))
        c->began_ns = 0; /* too few flows since */
    else
        c->shift = shift;
    return STATUS_OK;
}

/* Begin and size of a change; each tells the other more exactly. */
static enum status describe(struct search *s, struct change *c)
{
    enum { ROUNDS = 2 };
    enum status status = STATUS_OK;
    for (int i = 0; i < ROUNDS && status == STATUS_OK; i++) {
        if (MEASURE[c->measure].kind == MEASURE_QUANTILE)
            c->threshold_ns = llround((c->shift.before + c->shift.during) / 2);
        status = find_begin(s, c);
        if (status == STATUS_OK && c->began_ns > 0)
            status = measure_again(s, c);
    }
    find_examples(c, s->w);
    return status;
}

static enum status add_change(struct search *s, struct changes *changes, enum measure_id measure,
                              const struct candidate *found)
{
    struct change *c = &changes->at[changes->count++];
    *c = (struct change){ .measure = measure, .scope = found->scope, .shift = found->shift };
    return describe(s, c);
}

/* ---- all ---- */

/* Finds where one measure changed, place by place, from its best candidate on. */
static enum status find_places(struct search *s, enum measure_id measure, struct candidate *best,
                               struct changes *changes)
{
    const size_t first = changes->count;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && changes->count < CHANGES_MAX &&
           changes->count < first + CHANGES_PER_MEASURE && best[measure].found &&
           fabs(best[measure].shift.z) > z_least(s)) {
        status = narrow(s, measure, best);
        if (status == STATUS_OK)
            status = add_change(s, changes, measure, &best[measure]);
        if (best[measure].scope.count == 0)
            break;
        for (size_t i = 0; i < s->w->count; i++) {
            s->in[i] = true;
            for (size_t c = first; c < changes->count; c++)
                s->in[i] = s->in[i] && !scope_holds(&changes->at[c].scope, &s->w->flows[i]);
        }
        best[measure] = (struct candidate){ 0 };
        if (status == STATUS_OK)
            status = look_everywhere(s, UINT32_C(1) << measure, best);
    }
    return status;
}

enum status changes_find(const struct windows *w, struct changes *ret_changes)
{
    struct search s;
    struct candidate best[MEASURES] = { 0 };
    *ret_changes = (struct changes){ 0 };
    enum status status = search_init(&s, w);
    if (status == STATUS_OK) {
        memset(s.in, true, w->count * sizeof *s.in);
        status = look_everywhere(&s, (UINT32_C(1) << MEASURES) - 1, best);
        ret_changes->compared = s.compared;
        ret_changes->too_few = s.too_few;
    }
    for (enum measure_id i = 0; i < MEASURES && status == STATUS_OK; i++) {
        memset(s.in, true, w->count * sizeof *s.in);
        status = find_places(&s, i, best, ret_changes);
    }
    ret_changes->z_least = z_least(&s);
    search_done(&s);
    return status;
}
