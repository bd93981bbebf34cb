/* SPDX-License-Identifier: Apache-2.0 */
#include "timeline.h"

int64_t timeline_step_s(struct span span)
{
    enum { STEPS_WANTED = 150 };
    static const int64_t steps_s[] = { 1, 2, 5, 10, 30, 60, 300, 900, 3600, 21600 };
    int64_t seconds = (span.last_ns - span.first_ns) / 1000000000;
    for (size_t i = 0; i < sizeof steps_s / sizeof *steps_s; i++) {
        if (seconds / steps_s[i] <= STEPS_WANTED)
            return steps_s[i];
    }
    return 86400;
}

static enum status open_steps(const struct selection *s, int64_t step_s, struct query **ret_query,
                              struct text *error)
{
    struct text sql = { 0 };
    text_addf(&sql,
              "SELECT strftime('%%Y-%%m-%%dT%%H:%%M:%%S', step * %lld, 'unixepoch'),"
              " sum(handshake = '0-rtt'), sum(handshake = 'resumed'), sum(handshake = 'full'),"
              " sum(outcome = 'failed'), percentile(perceived_ns, 50), percentile(perceived_ns, 90)"
              " FROM (SELECT *, start_epoch_ns / %lld AS step FROM ours)"
              " GROUP BY step ORDER BY step",
              (long long)step_s, (long long)step_s * 1000000000);
    enum status status =
        sql.failed ? STATUS_NO_MEMORY : selection_query(s, text_string(&sql), ret_query, error);
    text_done(&sql);
    return status;
}

static enum status add_figure(struct page *page, const struct selection *s, int64_t step_s,
                              const struct page_column *columns, struct page_picture picture,
                              struct text *error)
{
    struct query *q = NULL;
    enum status status = open_steps(s, step_s, &q, error);
    page_table(page, picture.title, columns, picture.count + 1);
    while (status == STATUS_OK && (status = selection_next(s, q, error)) == STATUS_OK) {
        page_cell(page, query_cell(q, 0));
        for (size_t i = 0; i < picture.count; i++)
            page_cell(page, query_cell(q, picture.first + i));
    }
    query_close(q);
    picture.first = 1;
    page_draw(page, &picture);
    return status == STATUS_END ? STATUS_OK : status;
}

enum status timeline_add_kinds(struct page *page, const struct selection *s, int64_t step_s,
                               struct text *error)
{
    static const struct page_column columns[] = {
        { "time", NULL, PAGE_TIME },     { "zero_rtt", "0-rtt", PAGE_COUNT },
        { "resumed", NULL, PAGE_COUNT }, { "full", NULL, PAGE_COUNT },
        { "failed", NULL, PAGE_COUNT },
    };
    static const struct page_picture flows = {
        .kind = PAGE_COLUMNS, .title = "TLS flows", .first = 1, .count = 4
    };
    return add_figure(page, s, step_s, columns, flows, error);
}

enum status timeline_add_waiting(struct page *page, const struct selection *s, int64_t step_s,
                                 struct text *error)
{
    static const struct page_column columns[] = {
        { "time", NULL, PAGE_TIME },
        { "perceived_p50_ns", "p50", PAGE_MS },
        { "perceived_p90_ns", "p90", PAGE_MS },
    };
    static const struct page_picture waiting = {
        .kind = PAGE_LINES, .title = "perceived p50 and p90, ms", .first = 5, .count = 2
    };
    return add_figure(page, s, step_s, columns, waiting, error);
}

void timeline_add_words(struct page *page, int64_t step_s)
{
    bool minutes = step_s % 60 == 0;
    page_text(page,
              "Each step is %lld %s, UTC. Times are over all classes, so a shift of the mix moves "
              "them too.",
              (long long)(minutes ? step_s / 60 : step_s), minutes ? "min" : "s");
}
