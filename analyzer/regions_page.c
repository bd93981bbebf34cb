/* SPDX-License-Identifier: Apache-2.0 */
/* Report regions as a page with pictures. */
#include "regions_parts.h"
#include "timeline.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static void add_by(struct page *page, const struct latency *l, const struct latency_group *g)
{
    for (size_t i = 0; i < l->by_count; i++)
        page_cell(page, cell_text(g->by[i]));
}

/* Begins a table whose first columns are those of --by. */
static void begin_table(struct page *page, const struct selection *s, const char *name,
                        const struct page_column *columns, size_t count)
{
    enum { COLUMNS_MAX = 16 };
    struct page_column all[SELECTION_BY_MAX + COLUMNS_MAX];
    assert(count <= COLUMNS_MAX);
    for (size_t i = 0; i < s->by_count; i++)
        all[i] = (struct page_column){ s->by[i], regions_by_title(s->by[i]), PAGE_GROUP };
    memcpy(&all[s->by_count], columns, count * sizeof *columns);
    page_table(page, name, all, s->by_count + count);
}

static struct cell ms_cell(double ms)
{
    return isnan(ms) ? cell_null() : cell_real(ms * 1e6);
}

static void add_class_cells(struct page *page, const struct latency_group *g, enum tls_group tls,
                            enum compared_kind kind)
{
    const struct class_latency *c = &g->classes[tls][kind];
    page_cell(page, cell_text(TLS_NAMES[tls]));
    page_cell(page, cell_text(KIND_NAMES[kind]));
    page_cell(page, cell_integer(c->flows));
    page_cell(page, cell_real((double)c->flows / (double)regions_flows_of_version(g, tls)));
    if (isnan(c->p50_ms)) {
        page_rest(page, "too few for percentiles (%lld < %zu)", (long long)c->flows,
                  quantile_least_count(0.5));
        return;
    }
    page_cell(page, ms_cell(c->p50_ms));
    page_cell(page, ms_cell(c->p90_ms));
    page_cell(page, ms_cell(c->p99_ms));
    page_cell(page, ms_cell(c->rtt_ms));
    page_cell(page, regions_real_or_null(c->round_trips));
    page_cell(page, regions_real_or_null(c->expected));
}

static void add_classes(struct page *page, const struct selection *s, const struct latency *l)
{
    static const struct page_column columns[] = {
        { "tls", "TLS", PAGE_GROUP },
        { "handshake", "class", PAGE_WORD },
        { "flows", NULL, PAGE_COUNT },
        { "share", NULL, PAGE_PERCENT },
        { "perceived_p50_ns", "p50", PAGE_MS },
        { "perceived_p90_ns", "p90", PAGE_MS },
        { "perceived_p99_ns", "p99", PAGE_MS },
        { "rtt_p50_ns", "rtt", PAGE_MS },
        { "round_trips_p50", "trips", PAGE_NUMBER },
        { "expected_round_trips", "expected", PAGE_NUMBER },
    };
    begin_table(page, s, "classes", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < l->count; i++) {
        for (enum tls_group tls = TLS_GROUP_13; tls < TLS_GROUPS; tls++) {
            for (enum compared_kind kind = COMPARED_0RTT; kind < COMPARED_KINDS; kind++) {
                if (l->groups[i].classes[tls][kind].flows == 0)
                    continue;
                add_by(page, l, &l->groups[i]);
                add_class_cells(page, &l->groups[i], tls, kind);
            }
        }
    }
    page_draw(page, &(struct page_picture){ .kind = PAGE_RANGES,
                                            .title = "p50 \u25cf to p90 \u25ac to p99 \u2500, ms",
                                            .first = s->by_count + 4,
                                            .count = 3 });
    page_text(page, "-  too few flows for a 95 %% interval: p50 needs %zu, p90 %zu, p99 %zu",
              quantile_least_count(0.5), quantile_least_count(0.9), quantile_least_count(0.99));
}

static void add_gain_columns(struct page *page, const struct comparison *c)
{
    bool known = c->flows > 0;
    page_cell(page, known ? ms_cell(c->ms.value) : cell_null());
    page_cell(page, known ? ms_cell(c->ms.low) : cell_null());
    page_cell(page, known ? ms_cell(c->ms.high) : cell_null());
    page_cell(page, known ? regions_real_or_null(c->round_trips) : cell_null());
}

static void add_gains(struct page *page, const struct selection *s, const struct latency *l)
{
    static const struct page_column columns[] = {
        { "gain_over_resumed_ns", "over resumed", PAGE_MS },
        { "gain_over_resumed_low_ns", "95 % from", PAGE_MS },
        { "gain_over_resumed_high_ns", "to", PAGE_MS },
        { "gain_over_resumed_round_trips", "trips", PAGE_NUMBER },
        { "gain_over_full_ns", "over full", PAGE_MS },
        { "gain_over_full_low_ns", "95 % from", PAGE_MS },
        { "gain_over_full_high_ns", "to", PAGE_MS },
        { "gain_over_full_round_trips", "trips", PAGE_NUMBER },
        { "answered_early_share", "answered early", PAGE_PERCENT },
        { "refused_share", "refused", PAGE_PERCENT },
    };
    page_heading(page, "What 0-RTT gained");
    page_text(page, "Medians in ms, like with like: the same region, server name and version.");
    begin_table(page, s, "gains", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < l->count; i++) {
        const struct latency_group *g = &l->groups[i];
        if (!regions_shows_gain(g))
            continue;
        bool answered = g->answered_early + g->answered_late > 0;
        add_by(page, l, g);
        add_gain_columns(page, &g->over[COMPARED_RESUMED]);
        add_gain_columns(page, &g->over[COMPARED_FULL]);
        page_cell(page, answered ? cell_real(1 - regions_late_share(g)) : cell_null());
        page_cell(page, cell_real(regions_refused_share(g)));
    }
}

/* -- curves: a figure per group -- */

enum { FIGURES_MAX = 12, CURVES = TLS_GROUPS * COMPARED_KINDS };

static const struct class_latency *class_of_curve(const struct latency_group *g, size_t curve)
{
    return &g->classes[curve / COMPARED_KINDS][curve % COMPARED_KINDS];
}

/* Time that so large a share of flows took at most; NAN where too few were seen. */
static double time_at(const struct class_latency *c, double share)
{
    const struct class_shape *shape = c->shape;
    if (!shape || c->flows < (int64_t)quantile_least_count(0.5))
        return NAN;
    for (size_t i = 0; i < shape->count; i++) {
        if (shape->share[i] >= share - 1e-9)
            return shape->ms[i];
    }
    return NAN;
}

/*
 * Least and greatest time of all curves, so that figures can be compared. The slowest flows would
 * leave no room for the others: curves end at the edge.
 */
static struct page_picture picture_of_curves(const struct latency *l)
{
    double low = NAN, high = NAN;
    for (size_t i = 0; i < l->count && i < FIGURES_MAX; i++) {
        for (size_t curve = 0; curve < CURVES; curve++) {
            low = fmin(low, time_at(class_of_curve(&l->groups[i], curve), 0));
            high = fmax(high, time_at(class_of_curve(&l->groups[i], curve), 0.98));
        }
    }
    return (struct page_picture){ .kind = PAGE_CURVES,
                                  .first = 1,
                                  .count = CURVES,
                                  .low_ns = isnan(low) ? 0 : low * 1e6,
                                  .high_ns = isnan(high) ? 0 : high * 1e6 };
}

static void add_group_curves(struct page *page, const struct latency *l,
                             const struct latency_group *g, struct page_picture picture)
{
    static const struct page_column columns[CURVES + 1] = {
        { "share", "of flows", PAGE_PERCENT },      { "zero_rtt_ns", "0-rtt", PAGE_MS },
        { "resumed_ns", "resumed", PAGE_MS },       { "full_ns", "full", PAGE_MS },
        { "zero_rtt_12_ns", "0-rtt 1.2", PAGE_MS }, { "resumed_12_ns", "resumed 1.2", PAGE_MS },
        { "full_12_ns", "full 1.2", PAGE_MS },
    };
    struct text name = { 0 }, title = { 0 };
    regions_add_group_name(l, g, &title);
    text_add(&name, "curves ");
    text_add(&name, text_string(&title));
    page_table(page, text_string(&name), columns, CURVES + 1);
    for (size_t step = 0; step <= SHAPE_STEPS; step++) {
        double share = (double)step / SHAPE_STEPS;
        page_cell(page, cell_real(share));
        for (size_t curve = 0; curve < CURVES; curve++)
            page_cell(page, ms_cell(time_at(class_of_curve(g, curve), share)));
    }
    picture.title = text_string(&title);
    page_draw(page, &picture);
    text_done(&name);
    text_done(&title);
}

static bool has_curves(const struct latency_group *g)
{
    for (size_t curve = 0; curve < CURVES; curve++) {
        if (!isnan(time_at(class_of_curve(g, curve), 1)))
            return true;
    }
    return false;
}

static void add_curves(struct page *page, const struct latency *l)
{
    struct page_picture picture = picture_of_curves(l);
    page_heading(page, "How long visitors waited");
    page_text(page, "Which share of the flows had the first byte of the response within so many "
                    "ms. Dots are medians; the axis is logarithmic.");
    if (l->count > FIGURES_MAX)
        page_text(page, "The first %d of %zu groups are drawn.", FIGURES_MAX, l->count);
    for (size_t i = 0; i < l->count && i < FIGURES_MAX; i++) {
        if (has_curves(&l->groups[i]))
            add_group_curves(page, l, &l->groups[i], picture);
    }
}

/* -- where the time went -- */

static void add_phases(struct page *page, const struct selection *s, const struct latency *l)
{
    static const struct page_column columns[] = {
        { "tls", "TLS", PAGE_GROUP },
        { "handshake", "class", PAGE_WORD },
        { "connect_ns", "connect", PAGE_MS },
        { "hello_wait_ns", "hello", PAGE_MS },
        { "tls_ns", "tls", PAGE_MS },
        { "request_wait_ns", "request", PAGE_MS },
        { "server_wait_ns", "server", PAGE_MS },
        { "way_back_ns", "way back", PAGE_MS },
    };
    page_heading(page, "Where the time went");
    page_text(page, "Means in ms over the flows between the quartiles of the perceived time. "
                    "connect: SYN to ACK; hello: until the ClientHello; tls: until the handshake "
                    "allows a request; request: until it comes; server: until the response leaves; "
                    "way back: to the client.");
    begin_table(page, s, "phases", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < l->count; i++) {
        for (size_t curve = 0; curve < CURVES; curve++) {
            const struct class_latency *c = class_of_curve(&l->groups[i], curve);
            if (!c->shape || isnan(c->p50_ms) || isnan(c->shape->phase_ms[SHAPE_CONNECT]))
                continue;
            add_by(page, l, &l->groups[i]);
            page_cell(page, cell_text(TLS_NAMES[curve / COMPARED_KINDS]));
            page_cell(page, cell_text(KIND_NAMES[curve % COMPARED_KINDS]));
            for (size_t phase = 0; phase < SHAPE_PHASES; phase++)
                page_cell(page, ms_cell(c->shape->phase_ms[phase]));
        }
    }
    page_draw(page, &(struct page_picture){ .kind = PAGE_STACKS,
                                            .title = "perceived, ms",
                                            .first = s->by_count + 2,
                                            .count = SHAPE_PHASES });
}

/* -- over time -- */

/* Groups whose waiting is drawn over time. */
enum { GROUPS_DRAWN = 8 };

/* Rows of one step each: its time, the place of the group in the order of groups, its p50. */
static enum status open_group_timeline(const struct selection *s, int64_t step_s,
                                       struct query **ret_query, struct text *error)
{
    struct text sql = { 0 };
    text_addf(&sql,
              "SELECT strftime('%%Y-%%m-%%dT%%H:%%M:%%S', step * %lld, 'unixepoch'), place,"
              " CASE WHEN count(*) >= %zu THEN percentile(perceived_ns, 50) END"
              " FROM (SELECT *, start_epoch_ns / %lld AS step, dense_rank() OVER (ORDER BY ",
              (long long)step_s, quantile_least_count(0.5), (long long)step_s * 1000000000);
    selection_add_by(s, &sql);
    text_addf(&sql,
              ") AS place FROM ours) WHERE perceived_ns IS NOT NULL AND place <= %d"
              " GROUP BY step, place ORDER BY step, place",
              GROUPS_DRAWN);
    enum status status =
        sql.failed ? STATUS_NO_MEMORY : selection_query(s, text_string(&sql), ret_query, error);
    text_done(&sql);
    return status;
}

/* The step whose groups are being read. */
struct group_step {
    struct text time;
    double p50_ns[GROUPS_DRAWN];
};

static void begin_step(struct group_step *step, struct bytes time)
{
    text_clear(&step->time);
    text_add_bytes(&step->time, time);
    for (size_t i = 0; i < GROUPS_DRAWN; i++)
        step->p50_ns[i] = NAN;
}

static void end_step(const struct group_step *step, size_t groups, struct page *page)
{
    if (step->time.len == 0)
        return;
    page_cell(page, cell_text(text_string(&step->time)));
    for (size_t i = 0; i < groups; i++)
        page_cell(page, regions_real_or_null(step->p50_ns[i]));
}

static void begin_group_table(struct page *page, const struct latency *l, size_t groups)
{
    struct page_column columns[GROUPS_DRAWN + 1] = { { "time", NULL, PAGE_TIME } };
    struct text names[GROUPS_DRAWN] = { { 0 } };
    for (size_t i = 0; i < groups; i++) {
        regions_add_group_name(l, &l->groups[i], &names[i]);
        columns[i + 1] = (struct page_column){ text_string(&names[i]), NULL, PAGE_MS };
    }
    page_table(page, "p50 over time", columns, groups + 1);
    for (size_t i = 0; i < groups; i++)
        text_done(&names[i]);
}

static enum status add_group_timeline(struct page *page, const struct selection *s,
                                      const struct latency *l, int64_t step_s, struct text *error)
{
    size_t groups = l->count < GROUPS_DRAWN ? l->count : GROUPS_DRAWN;
    struct query *q = NULL;
    struct group_step step = { .p50_ns = { 0 } };
    enum status status = open_group_timeline(s, step_s, &q, error);
    begin_group_table(page, l, groups);
    while (status == STATUS_OK && (status = selection_next(s, q, error)) == STATUS_OK) {
        struct bytes time = query_cell(q, 0).bytes;
        int64_t place = query_cell(q, 1).integer;
        struct cell p50 = query_cell(q, 2);
        if (!bytes_equal(time, text_bytes(text_string(&step.time)))) {
            end_step(&step, groups, page);
            begin_step(&step, time);
        }
        if (p50.type == CELL_REAL && place >= 1 && place <= GROUPS_DRAWN)
            step.p50_ns[place - 1] = p50.real;
    }
    end_step(&step, groups, page);
    query_close(q);
    text_done(&step.time);
    page_draw(page,
              &(struct page_picture){
                  .kind = PAGE_LINES, .title = "perceived p50, ms", .first = 1, .count = groups });
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status add_timeline(struct page *page, const struct selection *s,
                                const struct latency *l, const struct overview *o,
                                struct text *error)
{
    int64_t step_s = timeline_step_s(o->span);
    page_heading(page, "Over time");
    timeline_add_words(page, step_s);
    enum status status = timeline_add_kinds(page, s, step_s, error);
    if (status == STATUS_OK && l->count > 1)
        status = add_group_timeline(page, s, l, step_s, error);
    if (status == STATUS_OK)
        status = timeline_add_waiting(page, s, step_s, error);
    return status;
}

static void add_intro(struct page *page, const struct selection *s, const struct overview *o)
{
    struct text words = { 0 };
    overview_add_subject(o, s, page);
    text_add(&words, "From first SYN to first response byte as the client felt it, ms. ");
    regions_add_vantages(o, &words);
    regions_add_legs(s, o, &words);
    page_text(page, "%s", text_string(&words));
    text_done(&words);
}

static enum status fill_page(struct page *page, struct sheet *sheet, struct latency *l,
                             struct text *error)
{
    const struct selection *s = sheet->selection;
    enum status status = latency_read_shapes(s, l, error);
    if (status != STATUS_OK)
        return status;
    add_intro(page, s, sheet->overview);
    add_classes(page, s, l);
    if (regions_have_offers(l))
        add_gains(page, s, l);
    regions_put_warnings(sheet);
    add_curves(page, l);
    add_phases(page, s, l);
    status = add_timeline(page, s, l, sheet->overview, error);
    page_heading(page, "What this rests on");
    overview_add_facts(sheet->overview, s, page);
    return status;
}

enum status regions_write_page(const struct selection *s, struct latency *l,
                               const struct overview *o, struct table_style style, FILE *out,
                               struct text *error)
{
    struct text title = { 0 };
    text_add(&title, "First response by ");
    regions_add_by(s, &title);
    struct page *page = page_open(text_string(&title));
    struct sheet sheet = {
        .selection = s, .latency = l, .overview = o, .style = style, .page = page
    };
    text_done(&title);
    enum status status = fill_page(page, &sheet, l, error);
    if (status == STATUS_OK)
        status = page_write(page, style, out);
    page_close(page);
    return status;
}
