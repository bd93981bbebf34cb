/* SPDX-License-Identifier: Apache-2.0 */
#include "watch.h"

#include <math.h>

enum { POINTS_TOLD = 4 };
/* A window that is watched for that much less of its time than the other one. */
static const double WATCHED_LESS = 0.05;

#define OVERLAP(from, to)                                                                          \
    "max(0, min(last_packet_epoch_ns, " to ") - max(first_packet_epoch_ns, " from "))"
#define IN(from, to) "first_packet_epoch_ns < " to " AND last_packet_epoch_ns >= " from

/* Columns in the order of the enum. */
static const char SQL[] =
    "SELECT coalesce('host ' || host, 'site ' || site, point),"
    " ifnull(sum(" OVERLAP(
        ":before_from",
        ":before_to") "), 0) * 1.0"
                      " / (:before_to - :before_from),"
                      " ifnull(sum(" OVERLAP(
                          ":during_from",
                          ":during_to") "), 0) * 1.0"
                                        " / (:during_to - :during_from),"
                                        " ifnull(sum(CASE WHEN " IN(
                                            ":before_from",
                                            ":before_to") " THEN kernel_drops END), 0),"
                                                          " ifnull(sum(CASE WHEN " IN(
                                                              ":during_from",
                                                              ":during_to") " THEN kernel_drops "
                                                                            "END), 0),"
                                                                            " ifnull(sum(damage IS "
                                                                            "NOT NULL AND " IN(
                                                                                ":before_from",
                                                                                ":before_to") "), "
                                                                                              "0),"
                                                                                              " ifn"
                                                                                              "ull("
                                                                                              "sum("
                                                                                              "dama"
                                                                                              "ge "
                                                                                              "IS "
                                                                                              "NOT "
                                                                                              "NULL"
                                                                                              " AND"
                                                                                              " " IN(
                                                                                                  ":during_from",
                                                                                                  ":during_to") "), 0)"
                                                                                                                " FROM capture GROUP BY point, site, host ORDER BY 1, point";

enum column {
    PLACE,
    WATCHED_BEFORE,
    WATCHED_DURING,
    DROPS_BEFORE,
    DROPS_DURING,
    DAMAGED_BEFORE,
    DAMAGED_DURING,
};

static enum status open_points(const struct selection *s, const struct windows *w,
                               struct query **ret_query)
{
    static const char *const NAMES[WINDOWS][2] = { { ":before_from", ":before_to" },
                                                   { ":during_from", ":during_to" } };
    enum status status = query_open(s->database, SQL, ret_query);
    for (size_t i = 0; i < WINDOWS && status == STATUS_OK; i++) {
        status = query_bind_integer(*ret_query, NAMES[i][0], w->span[i].first_ns);
        if (status == STATUS_OK)
            status = query_bind_integer(*ret_query, NAMES[i][1], w->span[i].last_ns);
    }
    return status;
}

static bool watched_less(struct query *q)
{
    double before = query_cell(q, WATCHED_BEFORE).real, during = query_cell(q, WATCHED_DURING).real;
    return fabs(fmin(before, 1) - fmin(during, 1)) > WATCHED_LESS;
}

static void add_drops(struct query *q, struct text *t)
{
    int64_t before = query_cell(q, DROPS_BEFORE).integer;
    int64_t during = query_cell(q, DROPS_DURING).integer;
    if (before + during == 0)
        return;
    text_add(t, t->len > 0 ? "; " : "");
    text_add(t, "its files lost ");
    text_add_count(t, during);
    text_add(t, " packets to the kernel, before ");
    text_add_count(t, before);
}

static void add_damage(struct query *q, struct text *t)
{
    int64_t damaged = query_cell(q, DAMAGED_BEFORE).integer + query_cell(q, DAMAGED_DURING).integer;
    if (damaged > 0)
        text_addf(t, "%s%lld damaged file%s", t->len > 0 ? "; " : "", (long long)damaged,
                  damaged == 1 ? "" : "s");
}

/* What is wrong with the point at hand; nothing when all is well. */
static void add_faults(struct query *q, struct text *t)
{
    if (watched_less(q))
        text_addf(t, "captured for %.0f%% of the window, before for %.0f%%",
                  100 * fmin(1, query_cell(q, WATCHED_DURING).real),
                  100 * fmin(1, query_cell(q, WATCHED_BEFORE).real));
    add_drops(q, t);
    add_damage(q, t);
}

enum status watch_add(struct page *p, const struct selection *s, const struct windows *w,
                      struct text *error)
{
    struct query *q = NULL;
    struct text faults = { 0 }, place = { 0 };
    int told = 0, more = 0;
    enum status status = open_points(s, w, &q);
    while (status == STATUS_OK && (status = selection_next(s, q, error)) == STATUS_OK) {
        text_clear(&faults);
        text_clear(&place);
        add_faults(q, &faults);
        if (faults.len == 0)
            continue;
        word_add_name(query_cell(q, PLACE), &place);
        if (told++ < POINTS_TOLD)
            page_warning(p, "Captures differ at %s: %s.", text_string(&place),
                         text_string(&faults));
        else
            more++;
    }
    if (more > 0)
        page_warning(p, "Captures differ at %d more points; firstflight captures lists them.",
                     more);
    bool failed = faults.failed || place.failed;
    text_done(&faults);
    text_done(&place);
    query_close(q);
    if (failed)
        return STATUS_NO_MEMORY;
    return status == STATUS_END ? STATUS_OK : status;
}
