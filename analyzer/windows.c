/* SPDX-License-Identifier: Apache-2.0 */
#include "windows.h"

#include <math.h>
#include <stdlib.h>

/* Names with fewer flows than that in one of the windows are alike: "other". */
enum { NAME_LEAST = 72 };

/* Columns of the query; those of --by, the shares and the durations follow. */
enum column { FLOW_ID, START, IS_DURING, KIND, IS_13, VANTAGE, REGION, NAME, FIXED };

static const char FIXED_SQL[] =
    "flow_id, start_epoch_ns, is_during, CASE handshake WHEN 'none' THEN 0 WHEN 'full' THEN 1"
    " WHEN 'resumed' THEN 2 WHEN 'unknown' THEN 5 ELSE 4 - (answered_early IS 1) END,"
    " ifnull(tls_version LIKE 'TLSv1.3%', 0), vantage, client_region, sni";

#define COMPARED(more)                                                                             \
    "(SELECT *, start_epoch_ns >= :during_from AND start_epoch_ns < :during_to AS is_during"       \
    " FROM selected WHERE (start_epoch_ns >= :during_from AND start_epoch_ns < :during_to"         \
    " OR start_epoch_ns >= :before_from AND start_epoch_ns < :before_to)" more ")"

const char *windows_from(const struct selection *s)
{
    return s->every_leg ? COMPARED("") : COMPARED(" AND leg IN ('inbound', 'unknown')");
}

void windows_done(struct windows *w)
{
    for (size_t i = 0; i < w->column_count; i++)
        words_done(&w->words[i]);
    free(w->flows);
    *w = (struct windows){ 0 };
}

void windows_count(const struct windows *w, int64_t ret_flows[WINDOWS])
{
    ret_flows[BEFORE] = ret_flows[DURING] = 0;
    for (size_t i = 0; i < w->count; i++)
        ret_flows[w->flows[i].window]++;
}

double windows_seconds(const struct windows *w, enum window window)
{
    return (double)(w->span[window].last_ns - w->span[window].first_ns) / 1e9;
}

/* ---- the query ---- */

/* The selection without its own window: both windows lie in it. */
static struct selection widened(const struct selection *s)
{
    struct selection wide = *s;
    wide.since_ns = s->since_ns < s->baseline.first_ns ? s->since_ns : s->baseline.first_ns;
    wide.until_ns = s->until_ns > s->baseline.last_ns ? s->until_ns : s->baseline.last_ns;
    return wide;
}

static enum status bind_windows(struct query *q, const struct windows *w)
{
    static const char *const NAMES[WINDOWS][2] = { { ":before_from", ":before_to" },
                                                   { ":during_from", ":during_to" } };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < WINDOWS && status == STATUS_OK; i++) {
        status = query_bind_integer(q, NAMES[i][0], w->span[i].first_ns);
        if (status == STATUS_OK)
            status = query_bind_integer(q, NAMES[i][1], w->span[i].last_ns);
    }
    return status;
}

enum status windows_query(const struct selection *s, const struct windows *w, const char *sql,
                          struct query **ret_query, struct text *error)
{
    struct selection wide = widened(s);
    enum status status = selection_query(&wide, sql, ret_query, error);
    return status == STATUS_OK ? bind_windows(*ret_query, w) : status;
}

static enum status open_query(const struct selection *s, const struct windows *w,
                              const char *columns, struct query **ret_query, struct text *error)
{
    struct text sql = { 0 };
    text_addf(&sql, "SELECT %s FROM %s WHERE flow_id %% %lld = 0", columns, windows_from(s),
              (long long)w->one_of);
    enum status status =
        sql.failed ? STATUS_NO_MEMORY : windows_query(s, w, text_string(&sql), ret_query, error);
    text_done(&sql);
    return status;
}

/* Counts the flows and makes room for them; more than WINDOWS_FLOWS_MAX are thinned out. */
static enum status make_room(const struct selection *s, struct windows *w, size_t *ret_capacity,
                             struct text *error)
{
    struct query *q = NULL;
    enum status status = open_query(s, w, "count(*)", &q, error);
    if (status == STATUS_OK)
        status = selection_next(s, q, error);
    if (status == STATUS_OK) {
        int64_t count = query_cell(q, 0).integer;
        w->one_of = count / WINDOWS_FLOWS_MAX + 1;
        *ret_capacity = (size_t)(w->one_of > 1 ? WINDOWS_FLOWS_MAX : count);
        w->flows = calloc(*ret_capacity + 1, sizeof *w->flows);
        status = w->flows ? STATUS_OK : STATUS_NO_MEMORY;
    }
    query_close(q);
    return status;
}

static void add_columns(const struct windows *w, struct text *sql)
{
    text_add(sql, FIXED_SQL);
    for (size_t i = 0; i < w->column_count; i++)
        text_addf(sql, ", \"%s\"", w->columns[i]);
    for (size_t i = 0; i < MEASURES; i++) {
        if (MEASURE[i].kind == MEASURE_SHARE)
            text_addf(sql, ", %s", MEASURE[i].sql);
    }
    for (size_t i = 0; i < DURATIONS; i++)
        text_addf(sql, ", %s", duration_sql((enum duration)i));
}

/* ---- strata ---- */

/* Numbers strata by the numbers that make them up. */
static enum status number_of(struct words *strata, uint32_t a, uint32_t b, uint32_t c,
                             uint32_t *ret_number)
{
    const uint32_t key[3] = { a, b, c };
    return words_add(
        strata, (struct cell){ .type = CELL_BLOB, .bytes = { (const uint8_t *)key, sizeof key } },
        ret_number);
}

struct strata {
    struct words vantages, regions, names, of[ALIKE_COUNT];
};

static void strata_done(struct strata *s)
{
    words_done(&s->vantages);
    words_done(&s->regions);
    words_done(&s->names);
    for (size_t i = 0; i < ALIKE_COUNT; i++)
        words_done(&s->of[i]);
}

/*
 * Until all flows are read, the names are in alike[ALIKE_NAME], and version and kind in
 * alike[ALIKE_KIND].
 */
static enum status read_strata(struct query *q, struct strata *strata, struct seen *f)
{
    uint32_t vantage, region;
    enum status status = words_add(&strata->vantages, query_cell(q, VANTAGE), &vantage);
    if (status == STATUS_OK)
        status = words_add(&strata->regions, query_cell(q, REGION), &region);
    if (status == STATUS_OK)
        status = words_add(&strata->names, query_cell(q, NAME), &f->alike[ALIKE_NAME]);
    if (status == STATUS_OK)
        status = number_of(&strata->of[ALIKE_PATH], vantage, region, 0, &f->alike[ALIKE_PATH]);
    f->alike[ALIKE_KIND] =
        (uint32_t)(2 * query_cell(q, KIND).integer + query_cell(q, IS_13).integer);
    return status;
}

/* Names with few flows in a window share one stratum, or nothing could be said of them at all. */
static enum status join_strata(struct windows *w, struct strata *strata)
{
    uint32_t(*flows)[WINDOWS] = calloc(strata->names.count + 1, sizeof *flows);
    if (!flows)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < w->count; i++)
        flows[w->flows[i].alike[ALIKE_NAME]][w->flows[i].window]++;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < w->count && status == STATUS_OK; i++) {
        struct seen *f = &w->flows[i];
        uint32_t name = f->alike[ALIKE_NAME], kind = f->alike[ALIKE_KIND];
        bool rare = flows[name][BEFORE] < NAME_LEAST || flows[name][DURING] < NAME_LEAST;
        status = number_of(&strata->of[ALIKE_NAME], f->alike[ALIKE_PATH], rare ? 0 : name + 1,
                           kind % 2, &f->alike[ALIKE_NAME]);
        if (status == STATUS_OK)
            status = number_of(&strata->of[ALIKE_KIND], f->alike[ALIKE_NAME], kind, 0,
                               &f->alike[ALIKE_KIND]);
    }
    for (size_t i = 0; i < ALIKE_COUNT; i++)
        w->alike_count[i] = (uint32_t)strata->of[i].count;
    free(flows);
    return status;
}

/* ---- rows ---- */

static uint8_t slice_of(struct span before, int64_t start_ns)
{
    double part = (double)(start_ns - before.first_ns) / (double)(before.last_ns - before.first_ns);
    return part < 1 ? (uint8_t)(part * SLICES) : SLICES - 1;
}

static void read_measures(struct query *q, size_t at, struct seen *f)
{
    for (size_t i = 0; i < MEASURES; i++) {
        if (MEASURE[i].kind != MEASURE_SHARE)
            continue;
        struct cell cell = query_cell(q, at++);
        if (cell.type != CELL_INTEGER)
            continue;
        f->asked |= UINT32_C(1) << i;
        f->yes |= (uint32_t)(cell.integer != 0) << i;
    }
    for (size_t i = 0; i < DURATIONS; i++) {
        struct cell cell = query_cell(q, at++);
        f->duration_ns[i] = cell.type == CELL_INTEGER ? (float)cell.integer : NAN;
    }
}

static enum status read_flow(struct query *q, struct windows *w, struct strata *strata,
                             struct seen *f)
{
    f->flow_id = query_cell(q, FLOW_ID).integer;
    f->start_ns = query_cell(q, START).integer;
    f->window = query_cell(q, IS_DURING).integer ? DURING : BEFORE;
    f->slice = f->window == BEFORE ? slice_of(w->span[BEFORE], f->start_ns) : 0;
    enum status status = read_strata(q, strata, f);
    for (size_t i = 0; i < w->column_count && status == STATUS_OK; i++)
        status = words_add(&w->words[i], query_cell(q, FIXED + i), &f->word[i]);
    read_measures(q, FIXED + w->column_count, f);
    return status;
}

static enum status read_flows(const struct selection *s, struct windows *w, size_t capacity,
                              struct text *error)
{
    struct text columns = { 0 };
    struct strata strata = { 0 };
    struct query *q = NULL;
    add_columns(w, &columns);
    enum status status =
        columns.failed ? STATUS_NO_MEMORY : open_query(s, w, text_string(&columns), &q, error);
    while (status == STATUS_OK && w->count < capacity &&
           (status = selection_next(s, q, error)) == STATUS_OK)
        status = read_flow(q, w, &strata, &w->flows[w->count++]);
    if (status == STATUS_OK || status == STATUS_END)
        status = join_strata(w, &strata);
    query_close(q);
    strata_done(&strata);
    text_done(&columns);
    return status;
}

enum status windows_read(const struct selection *s, struct windows *ret_windows, struct text *error)
{
    struct windows *w = ret_windows;
    *w = (struct windows){ .span = { s->baseline, { s->since_ns, s->until_ns } },
                           .one_of = 1,
                           .column_count = s->by_count };
    for (size_t i = 0; i < s->by_count; i++)
        w->columns[i] = s->by[i];
    size_t capacity = 0;
    enum status status = make_room(s, w, &capacity, error);
    return status == STATUS_OK ? read_flows(s, w, capacity, error) : status;
}
