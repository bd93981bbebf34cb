/* SPDX-License-Identifier: Apache-2.0 */
#include "latency.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

/* ---- groups ---- */

static void group_done(struct latency_group *g)
{
    for (size_t i = 0; i < SELECTION_BY_MAX; i++)
        free(g->by[i]);
    for (size_t tls = 0; tls < TLS_GROUPS; tls++) {
        for (size_t kind = 0; kind < COMPARED_KINDS; kind++)
            free(g->classes[tls][kind].shape);
    }
    free(g->late_site);
    free(g->refusal);
}

void latency_done(struct latency *l)
{
    for (size_t i = 0; i < l->count; i++)
        group_done(&l->groups[i]);
    free(l->groups);
    *l = (struct latency){ 0 };
}

/* A cell as text that is safe to show; NULL in *ret_text for NULL. False without memory. */
static bool text_of_cell(struct cell cell, char **ret_text)
{
    struct text t = { 0 };
    *ret_text = NULL;
    if (cell.type == CELL_NULL)
        return true;
    text_add(&t, "");
    if (cell.type == CELL_INTEGER)
        text_addf(&t, "%lld", (long long)cell.integer);
    else if (cell.type == CELL_REAL)
        text_add_real(&t, cell.real);
    else
        text_add_safe(&t, cell.bytes, true);
    if (t.failed) {
        text_done(&t);
        return false;
    }
    *ret_text = t.at;
    return true;
}

static bool equal_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The values of the --by columns, which are the first of every query here. */
static enum status read_by(const struct latency *l, struct query *q, char **by)
{
    for (size_t i = 0; i < l->by_count; i++) {
        if (!text_of_cell(query_cell(q, i), &by[i]))
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static enum status add_group(struct latency *l, struct query *q, struct latency_group **ret_group)
{
    if (l->count == l->capacity) {
        size_t capacity = l->capacity ? 2 * l->capacity : 16;
        struct latency_group *groups = reallocarray(l->groups, capacity, sizeof *groups);
        if (!groups)
            return STATUS_NO_MEMORY;
        l->groups = groups;
        l->capacity = capacity;
    }
    struct latency_group *g = &l->groups[l->count++];
    *g = (struct latency_group){ 0 };
    *ret_group = g;
    return read_by(l, q, g->by);
}

/*
 * The group that the current row belongs to, from *cursor on: queries give their rows in the order
 * of the groups. NULL in *ret_group for a row of none, which only a database that changes between
 * two queries can have.
 */
static enum status find_group(const struct latency *l, struct query *q, size_t *cursor,
                              struct latency_group **ret_group)
{
    struct latency_group wanted = { 0 };
    enum status status = read_by(l, q, wanted.by);
    assert(l->count == 0 || l->groups != NULL);
    *ret_group = NULL;
    for (size_t i = *cursor; status == STATUS_OK && i < l->count && !*ret_group; i++) {
        bool equal = true;
        for (size_t column = 0; column < l->by_count; column++)
            equal = equal && equal_text(l->groups[i].by[column], wanted.by[column]);
        if (equal) {
            *ret_group = &l->groups[i];
            *cursor = i;
        }
    }
    group_done(&wanted);
    return status;
}

/* ---- queries ---- */

/* Makes "SELECT by, COLUMNS FROM ours ... ORDER BY by MORE". */
static enum status open_grouped(const struct selection *s, const char *columns,
                                const char *conditions, const char *more_groups,
                                const char *more_order, struct query **ret_query,
                                struct text *error)
{
    struct text sql = { 0 };
    text_add(&sql, "SELECT ");
    selection_add_by_comma(s, &sql);
    text_addf(&sql, "%s FROM ours %s", columns, conditions);
    if (more_groups) {
        text_add(&sql, " GROUP BY ");
        selection_add_by(s, &sql);
        text_add(&sql, more_groups);
    }
    text_add(&sql, " ORDER BY ");
    selection_add_by(s, &sql);
    text_add(&sql, more_order);
    enum status status =
        sql.failed ? STATUS_NO_MEMORY : selection_query(s, text_string(&sql), ret_query, error);
    text_done(&sql);
    return status;
}

static double real_of(struct cell cell)
{
    if (cell.type == CELL_REAL)
        return cell.real;
    return cell.type == CELL_INTEGER ? (double)cell.integer : NAN;
}

static enum status end_to_ok(enum status status)
{
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status read_groups(const struct selection *s, struct latency *l, struct text *error)
{
    struct query *q = NULL;
    enum status status = open_grouped(s,
                                      "count(*), sum(early_data IS 'accepted'),"
                                      " sum(early_data IS 'rejected'), sum(answered_early IS 1),"
                                      " sum(answered_early IS 0)",
                                      "", "", "", &q, error);
    size_t at = s->by_count;
    while (status == STATUS_OK && (status = selection_next(s, q, error)) == STATUS_OK) {
        struct latency_group *g;
        status = add_group(l, q, &g);
        if (status != STATUS_OK)
            break;
        g->flows = query_cell(q, at).integer;
        g->accepted = query_cell(q, at + 1).integer;
        g->rejected = query_cell(q, at + 2).integer;
        g->answered_early = query_cell(q, at + 3).integer;
        g->answered_late = query_cell(q, at + 4).integer;
    }
    query_close(q);
    return end_to_ok(status);
}

#define IS_13 "ifnull(tls_version LIKE 'TLSv1.3%', 0)"
#define KIND "CASE handshake WHEN '0-rtt' THEN 0 WHEN 'resumed' THEN 1 ELSE 2 END"
#define MEASURED "handshake IN ('0-rtt', 'resumed', 'full') AND perceived_ns IS NOT NULL"

static double if_enough(int64_t flows, double p, double value)
{
    return flows >= (int64_t)quantile_least_count(p) ? value : NAN;
}

static void read_class(struct query *q, size_t at, struct latency_group *g)
{
    bool is_13 = query_cell(q, at).integer != 0;
    size_t kind = (size_t)query_cell(q, at + 1).integer;
    int64_t flows = query_cell(q, at + 2).integer;
    g->classes[is_13 ? TLS_GROUP_13 : TLS_GROUP_12][kind] = (struct class_latency){
        .flows = flows,
        .p50_ms = if_enough(flows, 0.5, real_of(query_cell(q, at + 3))),
        .p90_ms = if_enough(flows, 0.9, real_of(query_cell(q, at + 4))),
        .p99_ms = if_enough(flows, 0.99, real_of(query_cell(q, at + 5))),
        .rtt_ms = if_enough(flows, 0.5, real_of(query_cell(q, at + 6))),
        .round_trips = if_enough(flows, 0.5, real_of(query_cell(q, at + 7))),
        .expected = real_of(query_cell(q, at + 8)),
    };
}

static enum status read_classes(const struct selection *s, struct latency *l, struct text *error)
{
    struct query *q = NULL;
    enum status status = open_grouped(
        s,
        IS_13 " AS is_13, " KIND " AS kind, count(*), percentile(perceived_ns, 50) / 1e6,"
              " percentile(perceived_ns, 90) / 1e6, percentile(perceived_ns, 99) / 1e6,"
              " median(rtt_ns) / 1e6, median(round_trips), avg(expected_round_trips)",
        "WHERE " MEASURED, ", is_13, kind", "", &q, error);
    size_t cursor = 0;
    while (status == STATUS_OK && (status = selection_next(s, q, error)) == STATUS_OK) {
        struct latency_group *g;
        status = find_group(l, q, &cursor, &g);
        if (status == STATUS_OK && g)
            read_class(q, s->by_count, g);
    }
    query_close(q);
    return end_to_ok(status);
}

/* Keeps the most frequent value of a column per group: the rows come with that one first. */
static enum status read_most_frequent(
    const struct selection *s, struct latency *l, const char *column, const char *conditions,
    void (*keep)(struct latency_group *g, char *value, int64_t flows), struct text *error)
{
    struct text columns = { 0 }, groups = { 0 };
    text_addf(&columns, "%s, count(*) AS flows", column);
    text_addf(&groups, ", %s", column);
    struct query *q = NULL;
    enum status status = columns.failed || groups.failed
                             ? STATUS_NO_MEMORY
                             : open_grouped(s, text_string(&columns), conditions,
                                            text_string(&groups), ", flows DESC", &q, error);
    size_t cursor = 0;
    const struct latency_group *done = NULL;
    while (status == STATUS_OK && (status = selection_next(s, q, error)) == STATUS_OK) {
        struct latency_group *g;
        status = find_group(l, q, &cursor, &g);
        if (status != STATUS_OK || !g || g == done)
            continue;
        char *value;
        if (text_of_cell(query_cell(q, s->by_count), &value))
            keep(g, value, query_cell(q, s->by_count + 1).integer);
        else
            status = STATUS_NO_MEMORY;
        done = g;
    }
    query_close(q);
    text_done(&columns);
    text_done(&groups);
    return end_to_ok(status);
}

static void keep_late_site(struct latency_group *g, char *value, int64_t flows)
{
    g->late_site = value;
    g->late_site_flows = flows;
}

static void keep_refusal(struct latency_group *g, char *value, int64_t flows)
{
    g->refusal = value;
    g->refusal_flows = flows;
}

/* ---- gains, like with like ---- */

enum { BAND_BITS = 6, BANDS = 1 << BAND_BITS };

/* Bands of RTT, each 1.4 times as high as the one below; the lowest is all below a microsecond. */
static uint32_t rtt_band(double rtt_ms)
{
    if (!(rtt_ms > 0.001))
        return 0;
    double band = floor(2 * log2(rtt_ms / 0.001));
    return band < BANDS - 1 ? (uint32_t)band : BANDS - 1;
}

/* Adds the columns from..to - 1 of the row in a form in which different rows differ. */
static void add_key(struct query *q, size_t from, size_t to, struct text *key)
{
    for (size_t i = from; i < to; i++) {
        struct cell cell = query_cell(q, i);
        text_addf(key, "%d %lld %zu ", (int)cell.type, (long long)cell.integer, cell.bytes.len);
        text_add_bytes(key, cell.bytes);
    }
}

static enum status compare_group(struct latency_group *g, struct samples *samples)
{
    static const enum compared_kind others[] = { COMPARED_RESUMED, COMPARED_FULL };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < 2 && status == STATUS_OK; i++)
        status = compare_kinds(samples, others[i], LATENCY_SEED, &g->over_alike_rtt[others[i]]);
    for (size_t i = 0; i < samples->count; i++)
        samples->at[i].stratum >>= BAND_BITS;
    for (size_t i = 0; i < 2 && status == STATUS_OK; i++)
        status = compare_kinds(samples, others[i], LATENCY_SEED, &g->over[others[i]]);
    samples->count = 0;
    return status;
}

/* The samples of the group at hand, and the stratum that the last row belonged to. */
struct gathering {
    struct samples samples;
    struct latency_group *group;
    uint32_t stratum;
    struct text key, last_key;
};

static void gathering_done(struct gathering *g)
{
    samples_done(&g->samples);
    text_done(&g->key);
    text_done(&g->last_key);
}

/* Adds one row; a row of another group ends the one before. */
static enum status gather(struct gathering *g, struct query *q, size_t by_count,
                          struct latency_group *group)
{
    enum status status = STATUS_OK;
    if (g->group && group != g->group)
        status = compare_group(g->group, &g->samples);
    g->group = group;
    text_clear(&g->key);
    add_key(q, 0, by_count, &g->key);
    add_key(q, by_count + 4, by_count + 7, &g->key);
    if (g->key.failed)
        return STATUS_NO_MEMORY;
    bool same = g->key.len == g->last_key.len && memcmp(g->key.at, g->last_key.at, g->key.len) == 0;
    if (!same) {
        struct text spare = g->last_key;
        g->last_key = g->key;
        g->key = spare;
        g->stratum++;
    }
    struct sample sample = {
        .kind = (uint8_t)query_cell(q, by_count).integer,
        .perceived_ms = real_of(query_cell(q, by_count + 1)),
        .round_trips = real_of(query_cell(q, by_count + 2)),
        .stratum = g->stratum << BAND_BITS | rtt_band(real_of(query_cell(q, by_count + 3))),
    };
    return status == STATUS_OK ? samples_add(&g->samples, sample) : status;
}

static enum status read_gains(const struct selection *s, struct latency *l, struct text *error)
{
    struct query *q = NULL;
    enum status status =
        open_grouped(s,
                     KIND ", perceived_ns / 1e6, round_trips, rtt_ns / 1e6, client_region, sni,"
                          " tls_version",
                     /* A refused offer is no plain resumption. */
                     "WHERE " MEASURED " AND " IS_13 " AND early_data IS NOT 'rejected'"
                     " AND round_trips IS NOT NULL",
                     NULL, ", client_region, sni, tls_version", &q, error);
    struct gathering gathering = { 0 };
    size_t cursor = 0;
    while (status == STATUS_OK && (status = selection_next(s, q, error)) == STATUS_OK) {
        struct latency_group *g;
        status = find_group(l, q, &cursor, &g);
        if (status == STATUS_OK && g && latency_group_has_0rtt(g))
            status = gather(&gathering, q, s->by_count, g);
    }
    status = end_to_ok(status);
    if (status == STATUS_OK && gathering.group)
        status = compare_group(gathering.group, &gathering.samples);
    gathering_done(&gathering);
    query_close(q);
    return status;
}

/* ---- shapes ---- */

/* Adds the SQL of all steps of all classes: its last time, its flows and the sums of its phases. */
static void add_shape_sql(const struct selection *s, struct text *sql)
{
    text_add(sql, "SELECT ");
    selection_add_by_comma(s, sql);
    text_add(sql, "is_13, kind, count(*), max(perceived_ns) / 1e6, count(connect_ns),"
                  " sum(connect_ns) / 1e6, sum(hello_wait_ns) / 1e6, sum(tls_ns) / 1e6,"
                  " sum(request_wait_ns) / 1e6, sum(server_wait_ns) / 1e6,"
                  " sum(CASE WHEN connect_ns IS NOT NULL THEN perceived_ns - response_ns END) / 1e6"
                  " FROM (SELECT *, " IS_13 " AS is_13, " KIND " AS kind,");
    text_addf(sql, " ntile(%d) OVER (PARTITION BY ", SHAPE_STEPS);
    selection_add_by_comma(s, sql);
    text_add(sql, IS_13 ", " KIND " ORDER BY perceived_ns) AS step FROM ours WHERE " MEASURED ")"
                        " GROUP BY ");
    selection_add_by_comma(s, sql);
    text_add(sql, "is_13, kind, step ORDER BY ");
    selection_add_by_comma(s, sql);
    text_add(sql, "is_13, kind, step");
}

/* A class whose steps are being read. */
struct shaping {
    struct class_latency *class;
    int64_t seen;    /* flows so far */
    double measured; /* flows between the quartiles with phases */
};

static void finish_shape(struct shaping *shaping)
{
    if (!shaping->class)
        return;
    for (size_t i = 0; i < SHAPE_PHASES; i++) {
        double *phase = &shaping->class->shape->phase_ms[i];
        *phase = shaping->measured > 0 ? *phase / shaping->measured : NAN;
    }
}

static bool begin_shape(struct shaping *shaping, struct class_latency *class)
{
    if (shaping->class == class)
        return true;
    finish_shape(shaping);
    *shaping = (struct shaping){ .class = NULL };
    if (!class->shape)
        class->shape = calloc(1, sizeof *class->shape);
    if (class->shape)
        shaping->class = class;
    return class->shape != NULL;
}

/* Takes a step; its row stands at column `at`. */
static void add_step(struct shaping *shaping, struct query *q, size_t at)
{
    assert(shaping->class != NULL);
    struct class_shape *shape = shaping->class->shape;
    int64_t flows = query_cell(q, at).integer;
    double middle = ((double)shaping->seen + (double)flows / 2) / (double)shaping->class->flows;
    shaping->seen += flows;
    if (shape->count < SHAPE_STEPS) {
        shape->share[shape->count] = (double)shaping->seen / (double)shaping->class->flows;
        shape->ms[shape->count++] = real_of(query_cell(q, at + 1));
    }
    if (middle < 0.25 || middle > 0.75)
        return;
    shaping->measured += (double)query_cell(q, at + 2).integer;
    for (size_t i = 0; i < SHAPE_PHASES; i++) {
        double sum = real_of(query_cell(q, at + 3 + i));
        shape->phase_ms[i] += isnan(sum) ? 0 : sum;
    }
}

enum status latency_read_shapes(const struct selection *s, struct latency *l, struct text *error)
{
    struct text sql = { 0 };
    struct query *q = NULL;
    add_shape_sql(s, &sql);
    enum status status =
        sql.failed ? STATUS_NO_MEMORY : selection_query(s, text_string(&sql), &q, error);
    text_done(&sql);
    struct shaping shaping = { 0 };
    size_t cursor = 0;
    while (status == STATUS_OK && (status = selection_next(s, q, error)) == STATUS_OK) {
        struct latency_group *g;
        status = find_group(l, q, &cursor, &g);
        if (status != STATUS_OK || !g)
            continue;
        bool is_13 = query_cell(q, s->by_count).integer != 0;
        size_t kind = (size_t)query_cell(q, s->by_count + 1).integer;
        struct class_latency *class = &g->classes[is_13 ? TLS_GROUP_13 : TLS_GROUP_12][kind];
        if (!begin_shape(&shaping, class))
            status = STATUS_NO_MEMORY;
        else
            add_step(&shaping, q, s->by_count + 2);
    }
    finish_shape(&shaping);
    query_close(q);
    return end_to_ok(status);
}

/* ---- all ---- */

bool latency_group_has_0rtt(const struct latency_group *g)
{
    return g->classes[TLS_GROUP_13][COMPARED_0RTT].flows > 0;
}

bool latency_has_0rtt(const struct latency *l)
{
    for (size_t i = 0; i < l->count; i++) {
        if (latency_group_has_0rtt(&l->groups[i]))
            return true;
    }
    return false;
}

enum status latency_read(const struct selection *s, struct latency *ret_latency, struct text *error)
{
    struct latency *l = ret_latency;
    *l = (struct latency){ .by_count = s->by_count };
    enum status status = read_groups(s, l, error);
    if (status == STATUS_OK)
        status = read_classes(s, l, error);
    if (status == STATUS_OK)
        status =
            read_most_frequent(s, l, "site", "WHERE answered_early = 0", keep_late_site, error);
    if (status == STATUS_OK)
        status = read_most_frequent(s, l, "early_data_reason", "WHERE early_data = 'rejected'",
                                    keep_refusal, error);
    if (status == STATUS_OK && latency_has_0rtt(l))
        status = read_gains(s, l, error);
    return status;
}
