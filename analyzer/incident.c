/* SPDX-License-Identifier: Apache-2.0 */
#include "incident.h"

#include "cause.h"
#include "clues.h"
#include "mix.h"
#include "page.h"
#include "watch.h"

#include <math.h>
#include <stdlib.h>

/* What the page is made of. */
struct incident {
    const struct selection *selection;
    struct windows windows;
    struct changes changes;
    struct stories stories;
    struct scope first; /* place of the first story; everywhere without one */
    struct mix mix;     /* there */
    struct page *page;
    struct text *error;
};

/* ---- words ---- */

/* Milliseconds with three digits that count. */
static void add_ms(struct text *t, double ns)
{
    double ms = ns / 1e6;
    text_add_number(t, ms, fabs(ms) < 10 ? 2 : fabs(ms) < 1000 ? 1 : 0);
}

/* "97.9%", "214.3 ms", "41.2 a minute". */
static void add_value(struct text *t, const struct measure *m, double value)
{
    switch (m->kind) {
    case MEASURE_SHARE:
        text_addf(t, "%.1f%%", 100 * value);
        return;
    case MEASURE_QUANTILE:
        add_ms(t, value);
        text_add(t, " ms");
        return;
    case MEASURE_VOLUME:
        text_add_number(t, 60 * value, 60 * value < 100 ? 1 : 0);
        text_add(t, " a minute");
        return;
    }
}

/* A change with its sign: "-94.8", "+12.3"; a ratio as "0.12". */
static void add_difference(struct text *t, const struct measure *m, double value)
{
    if (m->kind == MEASURE_VOLUME) {
        text_addf(t, "%.2f", value);
        return;
    }
    text_add(t, value < 0 ? "" : "+");
    if (m->kind == MEASURE_SHARE)
        text_addf(t, "%.1f", 100 * value);
    else
        add_ms(t, value);
}

/* "-94.8 points [-95.6, -93.9]", "+12.3 ms [+11.0, +13.8]", "times 0.12 [0.09, 0.15]". */
static void add_effect(struct text *t, const struct change *c)
{
    const struct measure *m = &MEASURE[c->measure];
    text_add(t, m->kind == MEASURE_VOLUME ? "times " : "");
    add_difference(t, m, c->shift.change);
    text_add(t, m->kind == MEASURE_SHARE      ? " points ["
                : m->kind == MEASURE_QUANTILE ? " ms ["
                                              : " [");
    add_difference(t, m, c->shift.low);
    text_add(t, ", ");
    add_difference(t, m, c->shift.high);
    text_add(t, "]");
}

/* "97.9% -> 3.1%" */
static void add_values(struct text *t, const struct change *c)
{
    add_value(t, &MEASURE[c->measure], c->shift.before);
    text_add(t, " → ");
    add_value(t, &MEASURE[c->measure], c->shift.during);
}

/* "136 flows since it began at about 2026-06-02 14:10:47, 138 before" */
static void add_flows(struct text *t, const struct change *c)
{
    text_add_count(t, c->shift.flows[DURING]);
    text_add(t, " flows");
    if (c->began_ns > 0) {
        char moment[MOMENT_TEXT_SIZE];
        text_addf(t, " since it began at about %s", moment_text(c->began_ns, 0, moment));
    }
    text_add(t, ", ");
    text_add_count(t, c->shift.flows[BEFORE]);
    text_add(t, " before");
}

static void add_moment(struct text *t, int64_t epoch_ns)
{
    char moment[MOMENT_TEXT_SIZE];
    bool whole = epoch_ns % 1000000000 == 0;
    text_add(t, moment_text(epoch_ns, whole ? 0 : 9, moment));
    for (size_t i = 0; i < t->len; i++)
        t->at[i] = t->at[i] == ' ' ? 'T' : t->at[i];
}

/* SQL of the flows that show a change. */
static void add_where(const struct incident *i, const struct change *c, struct text *sql)
{
    scope_add_condition(&c->scope, &i->windows, sql);
    text_add(sql, c->scope.count > 0 ? " AND " : "");
    change_add_shown(c, sql);
}

/* Whether the SQL of the user, in "", is nothing to a shell but itself. */
static bool is_plain_sql(const char *sql)
{
    return !strpbrk(sql, "\"$`\\!\n");
}

/* The command that lists these flows; with the user's --where, which limits the report as well. */
static void add_flows_command(const struct incident *i, const struct change *c, struct text *t)
{
    struct span window = i->windows.span[DURING];
    struct text moment = { 0 };
    const char *where = i->selection->where;
    add_moment(&moment, window.first_ns);
    text_addf(t, "firstflight flows --since %s", text_string(&moment));
    text_clear(&moment);
    add_moment(&moment, window.last_ns);
    if (window.last_ns <= i->selection->data.last_ns)
        text_addf(t, " --until %s", text_string(&moment));
    text_add(t, " --where \"");
    if (where && is_plain_sql(where))
        text_addf(t, "(%s) AND ", where);
    add_where(i, c, t);
    text_add(t, "\"");
    text_done(&moment);
}

/* ---- people: stories ---- */

/* "1. resumption accepted of offered fell at host fra2: 97.9% -> 3.1%" */
static void add_headline(const struct incident *i, size_t number, const struct change *c)
{
    struct text where = { 0 }, values = { 0 };
    scope_add_name(&c->scope, &i->windows, &where);
    add_values(&values, c);
    struct text line = { 0 };
    text_addf(&line, "%zu. %s %s %s%s: %s", number, MEASURE[c->measure].title,
              change_rose(c) ? "rose" : "fell", c->scope.count > 0 ? "at " : "",
              text_string(&where), text_string(&values));
    page_heading(i->page, text_string(&line));
    text_done(&line);
    text_done(&where);
    text_done(&values);
}

static enum status add_cause(const struct incident *i, const struct story *story)
{
    struct text cause = { 0 }, clues = { 0 };
    cause_add(story, &i->changes, &i->windows, &cause);
    enum status status = clues_add(story->cause, i->selection, &i->windows, &clues, i->error);
    if (cause.len > 0)
        page_text(i->page, "Likely: %s.%s%s", text_string(&cause), clues.len > 0 ? " " : "",
                  text_string(&clues));
    else if (clues.len > 0)
        page_text(i->page, "%s", text_string(&clues));
    text_done(&cause);
    text_done(&clues);
    return status;
}

static void add_size(const struct incident *i, const struct change *c)
{
    struct text t = { 0 };
    add_effect(&t, c);
    text_add(&t, ", 95 % interval; ");
    add_flows(&t, c);
    page_text(i->page, "%s.", text_string(&t));
    text_done(&t);
}

static void add_effects(const struct incident *i, const struct story *story)
{
    struct text t = { 0 };
    for (size_t e = 0; e < story->effect_count; e++) {
        const struct change *c = story->effects[e];
        text_addf(&t, "%s%s ", e > 0 ? "; " : "With it: ", MEASURE[c->measure].title);
        add_values(&t, c);
        bool same_place = scope_equal(&c->scope, &story->cause->scope);
        if (!same_place) {
            text_add(&t, c->scope.count > 0 ? " at " : " ");
            scope_add_name(&c->scope, &i->windows, &t);
        }
    }
    if (t.len > 0)
        page_text(i->page, "%s.", text_string(&t));
    text_done(&t);
}

/* The report that tells more of a measure; NULL where there is none. */
static const char *report_of(const struct change *c)
{
    if (c->measure == RESUMPTION_ACCEPTED)
        return "ticket-keys";
    if (c->measure == EARLY_OFFERED && change_rose(c))
        return "policy";
    if (c->measure == EARLY_ACCEPTED || c->measure == ANSWERED_EARLY)
        return "early-data";
    return c->measure == FAILED ? "failures" : NULL;
}

static void add_commands(const struct incident *i, const struct change *c)
{
    struct text t = { 0 };
    add_flows_command(i, c, &t);
    page_command(i->page, text_string(&t));
    text_clear(&t);
    for (size_t e = 0; e < c->example_count; e++)
        text_addf(&t,
                  e == 0   ? "firstflight show %lld"
                  : e == 1 ? "   # or %lld"
                           : ", %lld",
                  (long long)c->examples[e]);
    if (t.len > 0)
        page_command(i->page, text_string(&t));
    text_clear(&t);
    if (report_of(c)) {
        struct text moment = { 0 };
        add_moment(&moment, i->windows.span[DURING].first_ns);
        text_addf(&t, "firstflight report %s --since %s", report_of(c), text_string(&moment));
        page_command(i->page, text_string(&t));
        text_done(&moment);
    }
    text_done(&t);
}

static enum status add_story(const struct incident *i, size_t number, const struct story *story)
{
    add_headline(i, number, story->cause);
    enum status status = add_cause(i, story);
    add_effects(i, story);
    add_size(i, story->cause);
    add_commands(i, story->cause);
    return status;
}

/* ---- people: what stands around ---- */

static void add_subject(const struct incident *i)
{
    int64_t flows[WINDOWS];
    struct text t = { 0 };
    windows_count(&i->windows, flows);
    text_add_count(&t, flows[DURING]);
    text_add(&t, " connections, before ");
    text_add_count(&t, flows[BEFORE]);
    text_add(&t, i->selection->every_leg ? ", legs as --where says" : ", to us");
    if (i->windows.one_of > 1)
        text_addf(&t, ", one of %lld taken", (long long)i->windows.one_of);
    page_text(i->page, "%s.", text_string(&t));
    text_clear(&t);
    if (i->selection->where) {
        text_addf(&t, "where %s", i->selection->where);
        page_text(i->page, "%s", text_string(&t));
    }
    text_done(&t);
}

static void add_verdict(const struct incident *i)
{
    int64_t flows[WINDOWS];
    windows_count(&i->windows, flows);
    struct text compared = { 0 };
    text_add_count(&compared, (int64_t)i->changes.compared);
    size_t count = i->stories.count;
    if (flows[BEFORE] < GROUP_LEAST || flows[DURING] < GROUP_LEAST)
        page_warning(i->page, "Too few connections in one of the windows to compare anything.");
    else if (count == 0)
        page_text(i->page, "Nothing changed: chance explains each of %s comparisons.",
                  text_string(&compared));
    else
        page_text(i->page, "%zu change%s that chance does not explain, of %s comparisons.", count,
                  count == 1 ? "" : "s", text_string(&compared));
    text_done(&compared);
}

/* ---- where the time went ---- */

static const struct page_column PHASE_COLUMNS[] = {
    { "phase", NULL, PAGE_WORD },
    { "flows_before", "flows before", PAGE_COUNT },
    { "flows_during", "during", PAGE_COUNT },
    { "before_p50_ns", "p50 before", PAGE_MS },
    { "during_p50_ns", "during", PAGE_MS },
    { "before_p90_ns", "p90 before", PAGE_MS },
    { "during_p90_ns", "during", PAGE_MS },
};

/* Quantiles of one duration in both windows, as they are: not like with like. */
static void add_phase(const struct incident *i, enum duration d, float *const values[WINDOWS])
{
    static const double QUANTILES[] = { 0.5, 0.9 };
    size_t count[WINDOWS] = { 0 };
    for (size_t f = 0; f < i->windows.count; f++) {
        const struct seen *seen = &i->windows.flows[f];
        if (!isnan(seen->duration_ns[d]) && scope_holds(&i->first, seen))
            values[seen->window][count[seen->window]++] = seen->duration_ns[d];
    }
    page_cell(i->page, cell_text(duration_title(d)));
    page_cell(i->page, cell_integer((int64_t)count[BEFORE]));
    page_cell(i->page, cell_integer((int64_t)count[DURING]));
    for (size_t w = 0; w < WINDOWS; w++)
        floats_sort(values[w], count[w]);
    for (size_t q = 0; q < sizeof QUANTILES / sizeof *QUANTILES; q++) {
        for (size_t w = 0; w < WINDOWS; w++) {
            bool enough = count[w] >= quantile_least_count(QUANTILES[q]);
            page_cell(i->page, enough ? cell_integer(llround(
                                            quantile_of_floats(values[w], count[w], QUANTILES[q])))
                                      : cell_null());
        }
    }
}

static enum status add_phases(const struct incident *i)
{
    static const enum duration ORDER[] = {
        DURATION_CONNECT,     DURATION_HELLO_WAIT, DURATION_TLS, DURATION_REQUEST_WAIT,
        DURATION_SERVER_WAIT, DURATION_PERCEIVED,  DURATION_RTT, DURATION_THINK,
    };
    float *values[WINDOWS] = { calloc(i->windows.count + 1, sizeof *values[BEFORE]),
                               calloc(i->windows.count + 1, sizeof *values[DURING]) };
    enum status status = values[BEFORE] && values[DURING] ? STATUS_OK : STATUS_NO_MEMORY;
    page_table(i->page, "phases", PHASE_COLUMNS, sizeof PHASE_COLUMNS / sizeof *PHASE_COLUMNS);
    for (size_t d = 0; d < sizeof ORDER / sizeof *ORDER && status == STATUS_OK; d++)
        add_phase(i, ORDER[d], values);
    free(values[BEFORE]);
    free(values[DURING]);
    return status;
}

static void add_mix(const struct incident *i)
{
    const struct mix *m = &i->mix;
    if (m->flows[BEFORE] == 0 || m->flows[DURING] == 0)
        return;
    struct text t = { 0 };
    text_add(&t, "Mean wait felt ");
    add_ms(&t, m->before_ns);
    text_add(&t, " → ");
    add_ms(&t, m->during_ns);
    text_add(&t, " ms: ");
    const struct {
        double ns;
        const char *of;
    } parts[] = { { m->within_ns, " within the same kind of handshake, " },
                  { m->kinds_ns, " by other kinds, " },
                  { m->visitors_ns, " by other visitors" } };
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++) {
        text_add(&t, parts[p].ns < 0 ? "" : "+");
        add_ms(&t, parts[p].ns);
        text_add(&t, parts[p].of);
    }
    page_text(i->page, "%s.", text_string(&t));
    text_done(&t);
}

static enum status add_times(const struct incident *i)
{
    struct text heading = { 0 };
    text_add(&heading, "Where the time went");
    text_add(&heading, i->first.count > 0 ? " at " : " ");
    scope_add_name(&i->first, &i->windows, &heading);
    text_add(&heading, ", ms");
    page_heading(i->page, text_string(&heading));
    text_done(&heading);
    enum status status = add_phases(i);
    add_mix(i);
    return status;
}

/* ---- people: what was left out ---- */

static enum status add_left_out(const struct incident *i)
{
    struct text sql = { 0 }, t = { 0 };
    text_addf(&sql,
              "SELECT CASE WHEN handshake = 'none' THEN 'no TLS' ELSE " SELECTION_NOT_MEASURED
              " END, sum(is_during), sum(NOT is_during) FROM %s WHERE handshake IN"
              " ('none', 'unknown') OR perceived_ns IS NULL GROUP BY 1 ORDER BY 2 DESC, 1",
              windows_from(i->selection));
    struct query *q = NULL;
    enum status status =
        sql.failed ? STATUS_NO_MEMORY
                   : windows_query(i->selection, &i->windows, text_string(&sql), &q, i->error);
    while (status == STATUS_OK &&
           (status = selection_next(i->selection, q, i->error)) == STATUS_OK) {
        text_add(&t, t.len > 0 ? ", " : "");
        word_add_name(query_cell(q, 0), &t);
        text_add(&t, " ");
        text_add_count(&t, query_cell(q, 1).integer);
        text_add(&t, " (before ");
        text_add_count(&t, query_cell(q, 2).integer);
        text_add(&t, ")");
    }
    if (t.len > 0)
        page_fact(i->page, "Wait not known", "%s", text_string(&t));
    if (i->changes.too_few > 0)
        page_fact(i->page, "Not looked at",
                  "groups with fewer than %d connections in a window: %zu", GROUP_LEAST,
                  i->changes.too_few);
    query_close(q);
    text_done(&sql);
    text_done(&t);
    return status == STATUS_END ? STATUS_OK : status;
}

/* ---- programs: every change as a row ---- */

static const struct page_column CHANGE_COLUMNS[] = {
    { "story", NULL, PAGE_COUNT },        { "role", NULL, PAGE_WORD },
    { "measure", NULL, PAGE_WORD },       { "scope", NULL, PAGE_WORD },
    { "unit", NULL, PAGE_WORD },          { "before", NULL, PAGE_NUMBER },
    { "during", NULL, PAGE_NUMBER },      { "change", NULL, PAGE_NUMBER },
    { "low", NULL, PAGE_NUMBER },         { "high", NULL, PAGE_NUMBER },
    { "z", NULL, PAGE_NUMBER },           { "flows_before", NULL, PAGE_COUNT },
    { "flows_during", NULL, PAGE_COUNT }, { "began", NULL, PAGE_TIME },
    { "cause", NULL, PAGE_WORD },         { "where", NULL, PAGE_WORD },
    { "example_1", NULL, PAGE_ID },       { "example_2", NULL, PAGE_ID },
    { "example_3", NULL, PAGE_ID },
};

static void add_text_cell(const struct incident *i, struct text *t)
{
    page_cell(i->page, t->len > 0 ? cell_text(text_string(t)) : cell_null());
    text_clear(t);
}

static void add_row(const struct incident *i, size_t number, const struct change *c,
                    const struct text *cause)
{
    static const char *const UNITS[] = {
        [MEASURE_SHARE] = "share", [MEASURE_QUANTILE] = "ns", [MEASURE_VOLUME] = "per_second"
    };
    struct text t = { 0 };
    page_cell(i->page, cell_integer((int64_t)number));
    page_cell(i->page, cell_text(cause ? "cause" : "effect"));
    page_cell(i->page, cell_text(MEASURE[c->measure].name));
    scope_add_name(&c->scope, &i->windows, &t);
    add_text_cell(i, &t);
    page_cell(i->page, cell_text(UNITS[MEASURE[c->measure].kind]));
    const double numbers[] = { c->shift.before, c->shift.during, c->shift.change,
                               c->shift.low,    c->shift.high,   c->shift.z };
    for (size_t n = 0; n < sizeof numbers / sizeof *numbers; n++)
        page_cell(i->page, cell_real(numbers[n]));
    page_cell(i->page, cell_integer(c->shift.flows[BEFORE]));
    page_cell(i->page, cell_integer(c->shift.flows[DURING]));
    if (c->began_ns > 0) {
        add_moment(&t, c->began_ns);
        text_add(&t, "Z");
    }
    add_text_cell(i, &t);
    page_cell(i->page, cause && cause->len > 0 ? cell_text(text_string(cause)) : cell_null());
    add_where(i, c, &t);
    add_text_cell(i, &t);
    for (size_t e = 0; e < CHANGE_EXAMPLES; e++)
        page_cell(i->page, e < c->example_count ? cell_integer(c->examples[e]) : cell_null());
    text_done(&t);
}

static enum status add_rows(const struct incident *i)
{
    enum status status = STATUS_OK;
    page_table(i->page, "changes", CHANGE_COLUMNS, sizeof CHANGE_COLUMNS / sizeof *CHANGE_COLUMNS);
    for (size_t n = 0; n < i->stories.count && status == STATUS_OK; n++) {
        const struct story *story = &i->stories.at[n];
        struct text cause = { 0 };
        cause_add(story, &i->changes, &i->windows, &cause);
        text_add(&cause, cause.len > 0 ? ". " : "");
        status = clues_add(story->cause, i->selection, &i->windows, &cause, i->error);
        add_row(i, n + 1, story->cause, &cause);
        for (size_t e = 0; e < story->effect_count; e++)
            add_row(i, n + 1, story->effects[e], NULL);
        text_done(&cause);
    }
    return status;
}

/* ---- the page ---- */

static enum status add_for_people(const struct incident *i)
{
    add_subject(i);
    enum status status = watch_add(i->page, i->selection, &i->windows, i->error);
    add_verdict(i);
    for (size_t n = 0; n < i->stories.count && status == STATUS_OK; n++)
        status = add_story(i, n + 1, &i->stories.at[n]);
    if (status == STATUS_OK)
        status = add_times(i);
    if (status == STATUS_OK)
        status = add_left_out(i);
    return status;
}

static enum status add_for_programs(const struct incident *i)
{
    enum status status = add_rows(i);
    if (status == STATUS_OK)
        status = add_times(i);
    add_subject(i);
    if (status == STATUS_OK)
        status = watch_add(i->page, i->selection, &i->windows, i->error);
    add_verdict(i);
    return status == STATUS_OK ? add_left_out(i) : status;
}

static struct page *open_page(const struct windows *w)
{
    struct text title = { 0 };
    char during[2 * MOMENT_TEXT_SIZE], before[2 * MOMENT_TEXT_SIZE];
    text_addf(&title, "Incident %s UTC against %s", moment_span_text(w->span[DURING], during),
              moment_span_text(w->span[BEFORE], before));
    struct page *page = page_open(text_string(&title));
    text_done(&title);
    return page;
}

static enum status read_incident(struct incident *i)
{
    enum status status = windows_read(i->selection, &i->windows, i->error);
    if (status == STATUS_OK)
        status = changes_find(&i->windows, &i->changes);
    if (status != STATUS_OK)
        return status;
    stories_of(&i->changes, &i->windows, &i->stories);
    if (i->stories.count > 0)
        i->first = i->stories.at[0].cause->scope;
    return mix_of(&i->windows, &i->first, &i->mix);
}

enum status incident_report(const struct selection *s, struct table_style style, bool verbose,
                            FILE *out, struct text *error)
{
    (void)verbose;
    if (s->baseline.last_ns == 0) {
        text_add(error,
                 "report incident needs --since, a time of the data, and may have --until and"
                 " --baseline FROM..TO");
        return STATUS_USAGE;
    }
    struct selection selection = *s;
    if (selection.until_ns == INT64_MAX)
        selection.until_ns = s->data.last_ns + 1;
    struct incident *i = calloc(1, sizeof *i);
    if (!i)
        return STATUS_NO_MEMORY;
    *i = (struct incident){ .selection = &selection, .error = error };
    enum status status = read_incident(i);
    bool for_people = style.format == TABLE_ALIGNED || style.format == TABLE_MARKDOWN ||
                      style.format == TABLE_HTML;
    if (status == STATUS_OK) {
        i->page = open_page(&i->windows);
        status = for_people ? add_for_people(i) : add_for_programs(i);
    }
    if (status == STATUS_OK)
        status = page_write(i->page, style, out);
    page_close(i->page);
    windows_done(&i->windows);
    free(i);
    return status;
}
