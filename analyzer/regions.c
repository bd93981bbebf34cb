/* SPDX-License-Identifier: Apache-2.0 */
#include "regions.h"

#include "regions_parts.h"
#include "result.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>

/*
 * What is worth a warning, from WARN_LEAST flows on: rates that a healthy edge does not show.
 */
enum { WARN_LEAST = 36 };
static const double LATE_SHARE = 0.10, REFUSED_SHARE = 0.05, COMPARED_SHARE = 0.50;
/* A site or reason that holds for fewer of them explains nothing. */
static const double TOLD_SHARE = 0.50;

/* ---- the page for people ---- */

/* "client region, server port" of the --by columns. */
void regions_add_by(const struct selection *s, struct text *t)
{
    for (size_t i = 0; i < s->by_count; i++) {
        text_add(t, i > 0 ? ", " : "");
        for (const char *c = s->by[i]; *c; c++)
            text_addf(t, "%c", *c == '_' ? ' ' : *c);
    }
}

static void add_word_share(struct text *t, const struct word_counts *w, size_t i)
{
    text_addf(t, "%s %.1f%%", w->words[i].word, 100.0 * (double)w->words[i].flows / (double)w->sum);
}

/* "Server vantage", or "Vantage server 80.0%, client 20.0%" of the flows that were measured. */
void regions_add_vantages(const struct overview *o, struct text *t)
{
    const struct word_counts *w = &o->vantages;
    if (w->count == 0) {
        text_add(t, "Nothing measured");
    } else if (w->count == 1) {
        text_addf(t, "%c%s vantage", toupper((unsigned char)w->words[0].word[0]),
                  w->words[0].word + 1);
    } else {
        text_add(t, "Vantage ");
        for (size_t i = 0; i < w->count; i++) {
            text_add(t, i > 0 ? ", " : "");
            add_word_share(t, w, i);
        }
    }
}

void regions_add_legs(const struct selection *s, const struct overview *o, struct text *t)
{
    if (s->every_leg)
        text_add(t, ", legs as --where says.");
    else if (o->legs_unknown == o->flows)
        text_add(t, ", legs unknown.");
    else
        text_add(t, ", inbound.");
}

static void put_title(struct sheet *p)
{
    const struct overview *o = p->overview;
    struct span window = overview_window(o, p->selection);
    struct text words = { 0 };
    char span[2 * MOMENT_TEXT_SIZE];
    text_add(&words, "First response by ");
    regions_add_by(p->selection, &words);
    if (window.last_ns > 0)
        text_addf(&words, "     %s UTC", moment_span_text(window, span));
    text_add(&words, "     ");
    text_add_count(&words, o->flows);
    text_add(&words, o->flows == 1 ? " TLS flow" : " TLS flows");
    if (o->sites > 0)
        text_addf(&words, ", %lld site%s", (long long)o->sites, o->sites == 1 ? "" : "s");
    text_add_wrapped(p->out, "", text_bytes(text_string(&words)), p->width);
    text_clear(&words);
    if (p->selection->where) {
        text_add(&words, "where ");
        text_add_safe(&words, text_bytes(p->selection->where), p->style.utf8);
        text_add_wrapped(p->out, "", text_bytes(text_string(&words)), p->width);
        text_clear(&words);
    }

    text_add(&words, "From first SYN to first response byte as the client felt it, ms. ");
    regions_add_vantages(o, &words);
    regions_add_legs(p->selection, o, &words);
    text_add_wrapped(p->out, "", text_bytes(text_string(&words)), p->width);
    p->out->failed |= words.failed;
    text_done(&words);
}

/* -- the classes -- */

enum { FIXED_COLUMNS = 10 }; /* TLS class flows share p50 p90 p99 rtt trips expect, then bars */
enum { BAR_COLUMNS_MAX = 16, BAR_COLUMNS_MIN = 15 }; /* as wide as their title */

static const enum align CLASS_ALIGN[FIXED_COLUMNS + 1] = {
    ALIGN_LEFT,  ALIGN_LEFT,  ALIGN_RIGHT, ALIGN_RIGHT, ALIGN_RIGHT, ALIGN_RIGHT,
    ALIGN_RIGHT, ALIGN_RIGHT, ALIGN_RIGHT, ALIGN_RIGHT, ALIGN_LEFT,
};

const char *regions_by_title(const char *column)
{
    return strcmp(column, "client_region") == 0 ? "region" : column;
}

/* Adds a number with so many decimals, "-" where there is none. */
static void add_number(struct grid *g, double value, int decimals)
{
    struct text t = { 0 };
    if (isnan(value))
        text_add(&t, "-");
    else
        text_add_number(&t, value, decimals);
    g->failed |= t.failed;
    grid_add_string(g, text_string(&t));
    text_done(&t);
}

static void add_count(struct grid *g, int64_t value)
{
    struct text t = { 0 };
    text_add_count(&t, value);
    g->failed |= t.failed;
    grid_add_string(g, text_string(&t));
    text_done(&t);
}

static void add_share(struct text *t, double share)
{
    double percent = 100 * share;
    text_addf(t, percent > 0 && percent < 9.95 ? "%.1f%%" : "%.0f%%", percent);
}

static void add_by_cells(const struct sheet *p, struct grid *g, const struct latency_group *group)
{
    for (size_t i = 0; i < p->latency->by_count; i++) {
        const char *value = group ? group->by[i] : "";
        grid_add_string(g, value ? value : "-");
    }
}

/* The largest p90, or p50 where there is none: what the longest bar stands for. */
static double longest_bar(const struct latency *l)
{
    double longest = 0;
    for (size_t i = 0; i < l->count; i++) {
        for (size_t tls = 0; tls < TLS_GROUPS; tls++) {
            for (size_t kind = 0; kind < COMPARED_KINDS; kind++) {
                const struct class_latency *c = &l->groups[i].classes[tls][kind];
                longest = fmax(longest, fmax(c->p50_ms, c->p90_ms)); /* NAN loses */
            }
        }
    }
    return longest;
}

static void add_bar(struct grid *g, const struct class_latency *c, double longest, size_t columns)
{
    struct text bar = { 0 };
    if (longest > 0 && c->p50_ms >= 0) {
        size_t p50 = (size_t)lround(c->p50_ms / longest * (double)columns);
        size_t p90 = c->p90_ms >= 0 ? (size_t)lround(c->p90_ms / longest * (double)columns) : 0;
        p50 = p50 > 0 ? p50 : 1;
        text_add_repeated(&bar, "█", p50);
        text_add_repeated(&bar, "░", p90 > p50 ? p90 - p50 : 0);
    }
    g->failed |= bar.failed;
    grid_add_string(g, text_string(&bar));
    text_done(&bar);
}

/* Flows of all kinds of one version in a group. */
int64_t regions_flows_of_version(const struct latency_group *group, enum tls_group tls)
{
    int64_t sum = 0;
    for (size_t kind = 0; kind < COMPARED_KINDS; kind++)
        sum += group->classes[tls][kind].flows;
    return sum;
}

static void add_class_row(struct sheet *p, struct grid *g, const struct class_latency *c,
                          int64_t of_flows, size_t bar_columns)
{
    struct text share = { 0 };
    if (of_flows == c->flows)
        text_add(&share, "-");
    else
        add_share(&share, (double)c->flows / (double)of_flows);
    add_count(g, c->flows);
    grid_add_string(g, text_string(&share));
    text_done(&share);
    if (isnan(c->p50_ms)) {
        struct text words = { 0 };
        text_addf(&words, "too few for percentiles (%lld < %zu)", (long long)c->flows,
                  quantile_least_count(0.5));
        grid_add_to_the_end(g, text_string(&words));
        text_done(&words);
        return;
    }
    p->too_few |= isnan(c->p90_ms) || isnan(c->p99_ms);
    add_number(g, c->p50_ms, 1);
    add_number(g, c->p90_ms, 1);
    add_number(g, c->p99_ms, c->p99_ms < 100 ? 1 : 0);
    add_number(g, c->rtt_ms, 1);
    add_number(g, c->round_trips, 1);
    add_number(g, c->expected, fabs(c->expected - round(c->expected)) < 0.05 ? 0 : 1);
    if (bar_columns > 0)
        add_bar(g, c, p->longest_bar, bar_columns);
    grid_end_row(g);
}

static void add_group_rows(struct sheet *p, struct grid *g, const struct latency_group *group,
                           size_t bar_columns)
{
    bool first = true;
    for (enum tls_group tls = TLS_GROUP_13; tls < TLS_GROUPS; tls++) {
        bool first_of_version = true;
        for (size_t kind = 0; kind < COMPARED_KINDS; kind++) {
            const struct class_latency *c = &group->classes[tls][kind];
            if (c->flows == 0)
                continue;
            add_by_cells(p, g, first ? group : NULL);
            grid_add_string(g, first_of_version ? TLS_NAMES[tls] : "");
            grid_add_string(g, KIND_NAMES[kind]);
            add_class_row(p, g, c, regions_flows_of_version(group, tls), bar_columns);
            first = first_of_version = false;
        }
    }
    if (first) {
        struct text words = { 0 };
        text_add(&words, "none of ");
        text_add_count(&words, group->flows);
        text_add(&words, " flows could be measured, see below");
        add_by_cells(p, g, group);
        grid_add_to_the_end(g, text_string(&words));
        text_done(&words);
    }
}

/* All rows; without bars where bar_columns is 0. */
static struct grid class_grid(struct sheet *p, const enum align *align, size_t bar_columns)
{
    size_t by_count = p->latency->by_count;
    struct grid g = grid_of(by_count + FIXED_COLUMNS + (bar_columns > 0), align, p->style.utf8);
    static const char *const titles[FIXED_COLUMNS] = { "TLS", "class", "flows", "share", "p50",
                                                       "p90", "p99",   "rtt",   "trips", "expect" };
    for (size_t i = 0; i < by_count; i++)
        grid_add_string(&g, regions_by_title(p->selection->by[i]));
    for (size_t i = 0; i < FIXED_COLUMNS; i++)
        grid_add_string(&g, titles[i]);
    if (bar_columns > 0)
        grid_add_string(&g, "p50 █  to p90 ░");
    for (size_t i = 0; i < p->latency->count; i++)
        add_group_rows(p, &g, &p->latency->groups[i], bar_columns);
    return g;
}

static size_t longest_line(const struct text *t)
{
    size_t longest = 0;
    const char *line = text_string(t);
    while (*line) {
        size_t len = strcspn(line, "\n");
        size_t width = text_width((struct bytes){ (const uint8_t *)line, len });
        longest = width > longest ? width : longest;
        line += len + (line[len] == '\n');
    }
    return longest;
}

/* Where not even narrow columns fit, lines may be longer than the terminal. */
static void put_grid(const struct sheet *p, struct grid *g, struct text *out)
{
    if (!grid_write(g, p->width, out))
        (void)grid_write(g, 0, out);
}

static void put_classes(struct sheet *p)
{
    enum align align[SELECTION_BY_MAX + FIXED_COLUMNS + 1] = { ALIGN_LEFT };
    memcpy(&align[p->latency->by_count], CLASS_ALIGN, sizeof CLASS_ALIGN);
    struct grid g = class_grid(p, align, 0);
    struct text plain = { 0 };
    put_grid(p, &g, &plain);
    size_t used = longest_line(&plain) + g.gap;
    grid_done(&g);
    size_t left = used < p->width ? p->width - used : 0;
    size_t columns = left > BAR_COLUMNS_MAX ? BAR_COLUMNS_MAX : left;
    if (p->style.utf8 && columns >= BAR_COLUMNS_MIN) {
        g = class_grid(p, align, columns);
        put_grid(p, &g, p->out);
        grid_done(&g);
    } else {
        text_add(p->out, text_string(&plain));
    }
    p->out->failed |= plain.failed;
    text_done(&plain);
    if (p->too_few)
        text_addf(p->out, "-  too few flows for a 95 %% interval: p90 needs %zu, p99 %zu\n",
                  quantile_least_count(0.9), quantile_least_count(0.99));
}

/* -- the gains -- */

/* The parts of a gain as text; they are aligned over all groups. */
enum { GAIN_VALUE, GAIN_LOW, GAIN_HIGH, GAIN_TRIPS, GAIN_PARTS };

enum { EARLY_WIDTH = 4, REFUSED_WIDTH = 7 }; /* "100%", "refused" */
static const char TOO_FEW_ALIKE[] = "too few alike";

struct gain_text {
    char part[GAIN_PARTS][32];
};

static struct gain_text gain_text(const struct comparison *c)
{
    struct gain_text t;
    const double values[GAIN_PARTS] = { c->ms.value, c->ms.low, c->ms.high, c->round_trips };
    for (size_t i = 0; i < GAIN_PARTS; i++) {
        double rounded = round(values[i] * 10) / 10 + 0.0; /* adding 0 makes -0 0 */
        (void)snprintf(t.part[i], sizeof t.part[i], "%.1f", rounded);
    }
    return t;
}

static void widen(int widths[GAIN_PARTS], const struct comparison *c)
{
    if (c->flows == 0)
        return;
    struct gain_text t = gain_text(c);
    for (size_t i = 0; i < GAIN_PARTS; i++) {
        int width = (int)strlen(t.part[i]);
        widths[i] = width > widths[i] ? width : widths[i];
    }
}

static void add_gain(struct grid *g, const struct comparison *c, const int widths[GAIN_PARTS])
{
    if (c->flows == 0) {
        grid_add_string(g, TOO_FEW_ALIKE);
        return;
    }
    struct gain_text t = gain_text(c);
    grid_addf(g, "%*s ms [%*s, %*s]  %*s trips", widths[GAIN_VALUE], t.part[GAIN_VALUE],
              widths[GAIN_LOW], t.part[GAIN_LOW], widths[GAIN_HIGH], t.part[GAIN_HIGH],
              widths[GAIN_TRIPS], t.part[GAIN_TRIPS]);
}

double regions_late_share(const struct latency_group *g)
{
    int64_t answered = g->answered_early + g->answered_late;
    return answered > 0 ? (double)g->answered_late / (double)answered : 0;
}

double regions_refused_share(const struct latency_group *g)
{
    int64_t decided = g->accepted + g->rejected;
    return decided > 0 ? (double)g->rejected / (double)decided : 0;
}

static bool warns_of_late(const struct latency_group *g)
{
    return g->answered_early + g->answered_late >= WARN_LEAST && regions_late_share(g) > LATE_SHARE;
}

static bool warns_of_refused(const struct latency_group *g)
{
    return g->accepted + g->rejected >= WARN_LEAST && regions_refused_share(g) > REFUSED_SHARE;
}

/* Columns of the grid of gains behind the --by columns. */
enum { GAIN_COLUMNS = 5 };

static void add_gain_row(const struct sheet *p, struct grid *g, const struct latency_group *group,
                         int widths[COMPARED_KINDS][GAIN_PARTS])
{
    struct text early = { 0 }, refused = { 0 };
    if (group->answered_early + group->answered_late > 0)
        add_share(&early, 1 - regions_late_share(group));
    else
        text_add(&early, "-");
    add_share(&refused, regions_refused_share(group));
    add_by_cells(p, g, group);
    add_gain(g, &group->over[COMPARED_RESUMED], widths[COMPARED_RESUMED]);
    add_gain(g, &group->over[COMPARED_FULL], widths[COMPARED_FULL]);
    grid_addf(g, "%*s", EARLY_WIDTH, text_string(&early));
    grid_addf(g, "%*s", REFUSED_WIDTH, text_string(&refused));
    grid_add_string(g, warns_of_late(group) || warns_of_refused(group) ? "!" : "");
    text_done(&early);
    text_done(&refused);
}

/* Columns that a gain takes, as "12.3 ms [ 12.1,  12.5]  1.0 trips". */
static int gain_width(const int widths[GAIN_PARTS])
{
    int width = (int)strlen(" ms [, ]   trips");
    for (size_t i = 0; i < GAIN_PARTS; i++)
        width += widths[i];
    return widths[GAIN_VALUE] > 0 ? width : (int)strlen(TOO_FEW_ALIKE);
}

/* The title of the narrow column of early answers begins above the gain beside it. */
static void add_gain_titles(const struct sheet *p, struct grid *g,
                            int widths[COMPARED_KINDS][GAIN_PARTS])
{
    static const char ANSWERED[] = "answered early";
    int over_full = gain_width(widths[COMPARED_FULL]);
    int room = over_full + (int)g->gap + EARLY_WIDTH - (int)strlen(ANSWERED);
    for (size_t i = 0; i < p->latency->by_count; i++)
        grid_add_string(g, regions_by_title(p->selection->by[i]));
    grid_add_string(g, "over resumed");
    struct text titles = { 0 };
    text_addf(&titles, "%-*s%s%*s%*s", room, "over full", ANSWERED, (int)g->gap, "", REFUSED_WIDTH,
              "refused");
    grid_add_to_the_end(g, text_string(&titles));
    g->failed |= titles.failed;
    text_done(&titles);
}

bool regions_shows_gain(const struct latency_group *g)
{
    return g->accepted + g->rejected > 0;
}

bool regions_have_offers(const struct latency *l)
{
    for (size_t i = 0; i < l->count; i++) {
        if (regions_shows_gain(&l->groups[i]))
            return true;
    }
    return false;
}

static void put_gains(const struct sheet *p)
{
    const struct latency *l = p->latency;
    int widths[COMPARED_KINDS][GAIN_PARTS] = { 0 };
    size_t shown = 0;
    for (size_t i = 0; i < l->count; i++) {
        shown += regions_shows_gain(&l->groups[i]);
        widen(widths[COMPARED_RESUMED], &l->groups[i].over[COMPARED_RESUMED]);
        widen(widths[COMPARED_FULL], &l->groups[i].over[COMPARED_FULL]);
    }
    if (shown == 0)
        return;
    struct text words = { 0 };
    text_add(&words, "\n0-RTT gain, like with like (");
    bool by_region = l->by_count == 1 && strcmp(p->selection->by[0], "client_region") == 0;
    if (!by_region) {
        regions_add_by(p->selection, &words);
        text_add(&words, ", ");
    }
    text_add(&words, "region, server name, version), median and 95 % interval\n");
    text_add(p->out, text_string(&words));
    text_done(&words);

    enum align align[SELECTION_BY_MAX + GAIN_COLUMNS] = { ALIGN_LEFT };
    for (size_t i = 0; i < GAIN_COLUMNS; i++)
        align[l->by_count + i] = ALIGN_FIXED;
    struct grid g = grid_of(l->by_count + GAIN_COLUMNS, align, p->style.utf8);
    add_gain_titles(p, &g, widths);
    for (size_t i = 0; i < l->count; i++) {
        if (regions_shows_gain(&l->groups[i]))
            add_gain_row(p, &g, &l->groups[i], widths);
    }
    put_grid(p, &g, p->out);
    grid_done(&g);
}

/* -- warnings -- */

void regions_add_group_name(const struct latency *l, const struct latency_group *g, struct text *t)
{
    for (size_t i = 0; i < l->by_count; i++) {
        text_add(t, i > 0 ? " " : "");
        text_add(t, g->by[i] ? g->by[i] : "-");
    }
}

/* Whether a name means nothing to a shell or to SQL but itself. */
static bool is_plain_name(const char *name)
{
    return name && *name &&
           strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-:/") ==
               strlen(name);
}

/* The command that tells more, ready to be pasted; nothing where a name would need quoting. */
static void put_command(const struct sheet *p, const struct latency_group *g)
{
    const struct latency *l = p->latency;
    struct text command = { 0 };
    for (size_t i = 0; i < l->by_count; i++) {
        if (!is_plain_name(g->by[i]))
            return;
    }
    text_add(&command, "firstflight report early-data --where \"");
    for (size_t i = 0; i < l->by_count; i++)
        text_addf(&command, "%s%s='%s'", i > 0 ? " AND " : "", p->selection->by[i], g->by[i]);
    text_add(&command, "\" --by site");
    if (p->page)
        page_command(p->page, text_string(&command));
    else
        text_addf(p->out, "  %s\n", text_string(&command));
    text_done(&command);
}

static void put_warning(const struct sheet *p, const struct latency_group *g,
                        const struct text *words)
{
    struct text line = { 0 }, safe = { 0 };
    regions_add_group_name(p->latency, g, &line);
    text_addf(&line, ": %s", text_string(words));
    if (p->page) {
        page_warning(p->page, "%s", text_string(&line));
        text_done(&line);
        return;
    }
    text_add_safe(&safe, text_bytes(text_string(&line)), p->style.utf8);
    text_add_wrapped(p->out, "! ", text_bytes(text_string(&safe)), p->width);
    p->out->failed |= line.failed || safe.failed;
    text_done(&line);
    text_done(&safe);
}

static void warn_of_late(const struct sheet *p, const struct latency_group *g)
{
    struct text words = { 0 };
    add_share(&words, regions_late_share(g));
    text_add(&words, " of accepted early data was answered only after Finished: no gain.");
    double at_site = (double)g->late_site_flows / (double)g->answered_late;
    if (g->late_site && at_site >= TOLD_SHARE) {
        text_add(&words, " ");
        add_share(&words, at_site);
        text_addf(&words, " of those at %s.", g->late_site);
    }
    put_warning(p, g, &words);
    put_command(p, g);
    text_done(&words);
}

static void warn_of_refused(const struct sheet *p, const struct latency_group *g)
{
    struct text words = { 0 };
    add_share(&words, regions_refused_share(g));
    text_add(&words, " of early data was refused.");
    double for_reason = (double)g->refusal_flows / (double)g->rejected;
    if (g->refusal && for_reason >= TOLD_SHARE) {
        text_add(&words, " ");
        add_share(&words, for_reason);
        text_addf(&words, " of that with %s.", g->refusal);
    }
    put_warning(p, g, &words);
    if (!warns_of_late(g))
        put_command(p, g);
    text_done(&words);
}

static void add_interval(struct text *t, const struct gain *gain)
{
    text_addf(t, "%.1f ms [%.1f, %.1f]", gain->value, gain->low, gain->high);
}

/* What makes the comparison with one other kind doubtful. */
static void warn_of_comparison(const struct sheet *p, const struct latency_group *g,
                               enum compared_kind other)
{
    const struct comparison *c = &g->over[other], *alike = &g->over_alike_rtt[other];
    struct text words = { 0 };
    if (c->flows == 0)
        return;
    int64_t early = g->classes[TLS_GROUP_13][COMPARED_0RTT].flows;
    double share = (double)c->flows / (double)early;
    if (share < COMPARED_SHARE) {
        text_add(&words, "only ");
        add_share(&words, share);
        text_addf(&words, " of its 0-RTT flows had %s ones like them to compare with.",
                  KIND_NAMES[other]);
        put_warning(p, g, &words);
        text_clear(&words);
    }
    bool apart = alike->flows > 0 && (alike->ms.value < c->ms.low || alike->ms.value > c->ms.high);
    if (apart) {
        text_addf(&words, "among flows of alike RTT the gain over %s is ", KIND_NAMES[other]);
        add_interval(&words, &alike->ms);
        text_add(&words, ": who comes back with 0-RTT has other paths.");
        put_warning(p, g, &words);
        text_clear(&words);
    }
    if (c->ms.high < 0) {
        text_addf(&words, "0-RTT was slower than %s.", KIND_NAMES[other]);
        put_warning(p, g, &words);
    }
    text_done(&words);
}

void regions_put_warnings(const struct sheet *p)
{
    for (size_t i = 0; i < p->latency->count; i++) {
        const struct latency_group *g = &p->latency->groups[i];
        if (warns_of_late(g))
            warn_of_late(p, g);
        if (warns_of_refused(g))
            warn_of_refused(p, g);
        warn_of_comparison(p, g, COMPARED_RESUMED);
        warn_of_comparison(p, g, COMPARED_FULL);
    }
}

/* -- below -- */

static void put_shares(const struct sheet *p, const char *heading, const struct word_counts *w)
{
    struct text words = { 0 };
    for (size_t i = 0; i < w->count; i++) {
        text_add(&words, i > 0 ? "   " : "");
        add_word_share(&words, w, i);
    }
    text_add_wrapped(p->out, heading, text_bytes(text_string(&words)), p->width);
    p->out->failed |= words.failed;
    text_done(&words);
}

static void put_left_out(const struct sheet *p, const struct word_counts *w)
{
    struct text heading = { 0 }, words = { 0 };
    text_add(&heading, "Left out ");
    text_add_count(&heading, w->sum);
    while (heading.len < strlen("Left out 58,426  ") && !heading.failed)
        text_add(&heading, " ");
    for (size_t i = 0; i < w->count; i++) {
        text_addf(&words, "%s%s ", i > 0 ? "   " : "", w->words[i].word);
        text_add_count(&words, w->words[i].flows);
    }
    text_add_wrapped(p->out, text_string(&heading), text_bytes(text_string(&words)), p->width);
    p->out->failed |= heading.failed || words.failed;
    text_done(&heading);
    text_done(&words);
}

static void put_footer(const struct sheet *p)
{
    const struct overview *o = p->overview;
    text_add(p->out, "\n");
    put_shares(p, "Kind rests on    ", &o->kind_bases);
    put_shares(p, "Response by      ", &o->response_bases);
    put_shares(p, "Region by        ", &o->region_bases);
    if (o->left_out.sum > 0)
        put_left_out(p, &o->left_out);
    struct text words = { 0 };
    if (!p->selection->every_leg && o->outbound + o->internal > 0) {
        text_add_count(&words, o->outbound);
        text_add(&words, " edge-to-origin flows, ");
        text_add_count(&words, o->internal);
        text_add(&words, " internal ones        more: report coverage");
        text_add_wrapped(p->out, "Not inbound      ", text_bytes(text_string(&words)), p->width);
    }
    if (!p->selection->every_leg && o->legs_unknown > 0) {
        text_clear(&words);
        text_add_count(&words, o->legs_unknown);
        text_add(&words, " flows, taken for inbound; ingest --local tells them apart");
        text_add_wrapped(p->out, "Leg unknown      ", text_bytes(text_string(&words)), p->width);
    }
    p->out->failed |= words.failed;
    text_done(&words);
    if (p->verbose)
        text_addf(p->out, "Intervals        bootstrap of medians, seed %d\n", LATENCY_SEED);
}

static void put_page(struct sheet *p)
{
    put_title(p);
    text_add(p->out, "\n");
    if (p->latency->count == 0) {
        text_add(p->out, p->selection->limited ? "No TLS flows among those selected.\n"
                                               : "No TLS flows in the database.\n");
    } else {
        put_classes(p);
        put_gains(p);
        regions_put_warnings(p);
    }
    put_footer(p);
}

/* ---- rows for programs ---- */

enum { DATA_COLUMNS = 21 };

struct cell regions_real_or_null(double value)
{
    return isnan(value) ? cell_null() : cell_real(value);
}

/* Adds the gain over one other kind, or NULLs. */
static void add_gain_cells(struct cell *cells, const struct comparison *c)
{
    bool known = c && c->flows > 0;
    cells[0] = known ? regions_real_or_null(c->ms.value) : cell_null();
    cells[1] = known ? regions_real_or_null(c->ms.low) : cell_null();
    cells[2] = known ? regions_real_or_null(c->ms.high) : cell_null();
    cells[3] = known ? regions_real_or_null(c->round_trips) : cell_null();
}

static void fill_data_row(const struct latency *l, const struct latency_group *g,
                          enum tls_group tls, enum compared_kind kind,
                          struct cell cells[SELECTION_BY_MAX + DATA_COLUMNS])
{
    const struct class_latency *c = &g->classes[tls][kind];
    bool is_0rtt = kind == COMPARED_0RTT;
    size_t n = 0;
    for (size_t i = 0; i < l->by_count; i++)
        cells[n++] = cell_text(g->by[i]);
    cells[n++] = cell_text(TLS_NAMES[tls]);
    cells[n++] = cell_text(KIND_NAMES[kind]);
    cells[n++] = cell_integer(c->flows);
    cells[n++] = cell_real((double)c->flows / (double)regions_flows_of_version(g, tls));
    cells[n++] = regions_real_or_null(c->p50_ms);
    cells[n++] = regions_real_or_null(c->p90_ms);
    cells[n++] = regions_real_or_null(c->p99_ms);
    cells[n++] = regions_real_or_null(c->rtt_ms);
    cells[n++] = regions_real_or_null(c->round_trips);
    cells[n++] = regions_real_or_null(c->expected);
    add_gain_cells(&cells[n], is_0rtt ? &g->over[COMPARED_RESUMED] : NULL);
    n += 4;
    add_gain_cells(&cells[n], is_0rtt ? &g->over[COMPARED_FULL] : NULL);
    n += 4;
    bool answered = is_0rtt && g->answered_early + g->answered_late > 0;
    cells[n++] = answered ? cell_real(1 - regions_late_share(g)) : cell_null();
    cells[n++] = is_0rtt ? cell_real(regions_refused_share(g)) : cell_null();
    cells[n++] = is_0rtt ? cell_integer((int64_t)g->over[COMPARED_RESUMED].flows) : cell_null();
    assert(n == l->by_count + DATA_COLUMNS);
}

static enum status write_data(const struct selection *s, const struct latency *l,
                              struct table_style style, FILE *out)
{
    static const char *const NAMES[DATA_COLUMNS] = {
        "tls",
        "handshake",
        "flows",
        "share",
        "perceived_p50_ms",
        "perceived_p90_ms",
        "perceived_p99_ms",
        "rtt_p50_ms",
        "round_trips_p50",
        "expected_round_trips",
        "gain_over_resumed_ms",
        "gain_over_resumed_low_ms",
        "gain_over_resumed_high_ms",
        "gain_over_resumed_round_trips",
        "gain_over_full_ms",
        "gain_over_full_low_ms",
        "gain_over_full_high_ms",
        "gain_over_full_round_trips",
        "answered_early_share",
        "refused_share",
        "flows_compared_with_resumed",
    };
    const char *names[SELECTION_BY_MAX + DATA_COLUMNS];
    for (size_t i = 0; i < s->by_count; i++)
        names[i] = s->by[i];
    memcpy(&names[s->by_count], NAMES, sizeof NAMES);
    struct table *table = table_open(out, style, names, s->by_count + DATA_COLUMNS);
    enum status status = table ? STATUS_OK : STATUS_NO_MEMORY;
    for (size_t i = 0; status == STATUS_OK && i < l->count; i++) {
        for (enum tls_group tls = TLS_GROUP_13; tls < TLS_GROUPS; tls++) {
            for (enum compared_kind kind = COMPARED_0RTT; kind < COMPARED_KINDS; kind++) {
                struct cell cells[SELECTION_BY_MAX + DATA_COLUMNS];
                if (status != STATUS_OK || l->groups[i].classes[tls][kind].flows == 0)
                    continue;
                fill_data_row(l, &l->groups[i], tls, kind, cells);
                status = table_add(table, cells);
            }
        }
    }
    enum status closed = table_close(table);
    return status == STATUS_OK ? closed : status;
}

/* ---- the report ---- */

static enum status write_page(const struct selection *s, const struct latency *l,
                              const struct overview *o, struct table_style style, bool verbose,
                              FILE *out)
{
    struct text text = { 0 };
    struct sheet page = { .selection = s,
                          .latency = l,
                          .overview = o,
                          .style = style,
                          .width = style.width > 0 ? style.width : PAGE_WIDTH,
                          .verbose = verbose,
                          .longest_bar = longest_bar(l),
                          .out = &text };
    put_page(&page);
    enum status status = result_write_text(&text, out);
    text_done(&text);
    return status;
}

enum status regions_report(const struct selection *s, struct table_style style, bool verbose,
                           FILE *out, struct text *error)
{
    struct latency latency = { 0 };
    struct overview overview = { 0 };
    enum status status = latency_read(s, &latency, error);
    if (status == STATUS_OK && style.format != TABLE_ALIGNED && style.format != TABLE_HTML) {
        status = write_data(s, &latency, style, out);
    } else if (status == STATUS_OK) {
        status = overview_read(s, &overview, error);
        if (status == STATUS_OK && style.format == TABLE_HTML)
            status = regions_write_page(s, &latency, &overview, style, out, error);
        else if (status == STATUS_OK)
            status = write_page(s, &latency, &overview, style, verbose, out);
    }
    latency_done(&latency);
    return status;
}
