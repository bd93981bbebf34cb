/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "regions.h"
#include "result.h"

/*
 * A report is a page of its own or, where `write` is NULL, one SQL query over the relations of
 * selection_query(). In the SQL {by} stands for the --by columns, {by,} for the same with a comma
 * behind.
 */
struct report {
    const char *name, *question;
    const char *default_by; /* columns to group by without --by; "" for none */
    enum status (*write)(const struct selection *s, struct table_style style, bool verbose,
                         FILE *out, struct text *error);
    const char *sql;
};

#define MINUTE(ns) "strftime('%Y-%m-%dT%H:%M', " ns " / 1000000000, 'unixepoch')"

/* Offered of all, accepted of offered: a client that stopped asking, or a server that refuses. */
static const char EARLY_DATA_SQL[] =
    "SELECT {by,} sum(flows) AS flows, sum(offered) AS offered, sum(sent) AS sent,"
    " sum(accepted) AS accepted, sum(rejected) AS rejected, sum(early) AS answered_early,"
    " sum(late) AS late,"
    " group_concat(CASE WHEN reason IS NOT NULL THEN reason || ' ' || rejected END, ', ')"
    " AS rejected_by"
    " FROM (SELECT {by,} count(*) AS flows,"
    " sum(early_data IN ('accepted', 'rejected', 'unknown')) AS offered,"
    " sum(early_data_bytes > 0) AS sent, sum(early_data IS 'accepted') AS accepted,"
    " sum(early_data IS 'rejected') AS rejected, sum(answered_early IS 1) AS early,"
    " sum(answered_early IS 0) AS late,"
    " CASE WHEN early_data = 'rejected' THEN ifnull(early_data_reason, 'unknown') END AS reason"
    " FROM ours GROUP BY {by,} reason ORDER BY rejected DESC)"
    " GROUP BY {by} HAVING sum(offered) > 0 ORDER BY sum(offered) DESC, {by}";

static const char FAILURES_SQL[] =
    "SELECT {by,} CASE WHEN server_packets = 0 OR failure IS 'refused' THEN 'connect'"
    " WHEN client_hello_at_ns IS NULL THEN 'before_hello'"
    " WHEN server_hello_at_ns IS NULL THEN 'hello' ELSE 'tls' END AS phase,"
    " failure, count(*) AS flows, count(DISTINCT client_prefix) AS prefixes,"
    " " MINUTE("min(start_epoch_ns)") " AS first, " MINUTE(
        "max(start_epoch_ns)") " AS last,"
                               " min(flow_id) AS example"
                               " FROM selected WHERE outcome = 'failed'"
                               " GROUP BY {by,} phase, failure ORDER BY flows DESC, {by,} phase, "
                               "failure";

static const char TIMELINE_SQL[] = "SELECT {by,} " MINUTE(
    "start_epoch_ns") " AS minute, count(*) AS flows,"
                      " sum(handshake = 'full') AS full, sum(handshake = 'resumed') AS resumed,"
                      " sum(handshake = '0-rtt') AS \"0-rtt\", sum(outcome = 'failed') AS failed,"
                      " sum(resumption_offered) AS offered,"
                      " sum(resumption_offered AND resumed_by IS NOT NULL) AS accepted,"
                      " sum(early_data IS 'rejected') AS refused,"
                      " sum(client_retransmits_before_response + "
                      "server_retransmits_before_response) AS resent,"
                      " round(median(rtt_ns) / 1e6, 1) AS rtt, round(percentile(perceived_ns, 50) "
                      "/ 1e6, 1) AS p50,"
                      " round(percentile(perceived_ns, 90) / 1e6, 1) AS p90"
                      " FROM ours GROUP BY {by,} minute ORDER BY {by,} minute";

static const char COVERAGE_SQL[] =
    "SELECT {by,} CASE WHEN handshake = 'none' THEN 'no TLS'"
    " WHEN perceived_ns IS NULL OR handshake = 'unknown' THEN " SELECTION_NOT_MEASURED
    " ELSE 'measured' END AS result, count(*) AS flows,"
    " round(100.0 * count(*) / (SELECT count(*) FROM selected), 1) AS percent,"
    " sum(handshake_basis IS 'keylog') AS keylog, sum(handshake_basis IS 'protocol') AS protocol,"
    " sum(handshake_basis IS 'strong') AS strong, sum(handshake_basis IS 'weak') AS weak,"
    " min(flow_id) AS example"
    " FROM selected GROUP BY {by,} result ORDER BY {by,} flows DESC, result";

static const struct report REPORTS[] = {
    { "regions", "how long visitors waited by kind of handshake, and what 0-RTT gained them",
      "client_region", regions_report, NULL },
    { "early-data", "early data offered, sent, accepted, answered early, refused and why", "sni",
      NULL, EARLY_DATA_SQL },
    { "failures", "connections that failed: how far they came, how, from when to when",
      "client_region,site", NULL, FAILURES_SQL },
    { "timeline", "minute by minute: kinds, resumption, failures, retransmissions, waiting", "",
      NULL, TIMELINE_SQL },
    { "coverage", "which flows could be measured, and why the others could not", "leg", NULL,
      COVERAGE_SQL },
};

enum { REPORT_COUNT = sizeof REPORTS / sizeof *REPORTS };

const char *report_name(size_t i)
{
    return i < REPORT_COUNT ? REPORTS[i].name : NULL;
}

const char *report_question(size_t i)
{
    return i < REPORT_COUNT ? REPORTS[i].question : NULL;
}

static const struct report *find_report(const char *name, struct text *error)
{
    if (!name)
        return &REPORTS[0];
    for (size_t i = 0; i < REPORT_COUNT; i++) {
        if (strcmp(name, REPORTS[i].name) == 0)
            return &REPORTS[i];
    }
    text_clear(error);
    text_add(error, "there is no report '");
    text_add_safe(error, text_bytes(name), false);
    text_add(error, "'; there are");
    for (size_t i = 0; i < REPORT_COUNT; i++)
        text_addf(error, "%s %s", i > 0 ? "," : "", REPORTS[i].name);
    return NULL;
}

/* Adds the SQL with the --by columns in their places. */
static void add_sql(const char *template, const struct selection *s, struct text *sql)
{
    static const char BY[] = "{by}", BY_COMMA[] = "{by,}";
    for (const char *at = template; *at;) {
        size_t plain = strcspn(at, "{");
        text_add_bytes(sql, (struct bytes){ (const uint8_t *)at, plain });
        at += plain;
        if (strncmp(at, BY, strlen(BY)) == 0) {
            selection_add_by(s, sql);
            at += strlen(BY);
        } else if (strncmp(at, BY_COMMA, strlen(BY_COMMA)) == 0) {
            selection_add_by_comma(s, sql);
            at += strlen(BY_COMMA);
        }
    }
}

static enum status write_query(const char *template, const struct selection *s,
                               struct table_style style, FILE *out, struct text *error)
{
    struct text sql = { 0 };
    add_sql(template, s, &sql);
    struct query *q = NULL;
    enum status status =
        sql.failed ? STATUS_NO_MEMORY : selection_query(s, text_string(&sql), &q, error);
    text_done(&sql);
    if (status == STATUS_OK)
        status = result_write(q, style, out);
    query_close(q);
    return status;
}

enum status command_report(struct database *database, const struct report_options *options,
                           FILE *out, struct text *error)
{
    const struct report *report = find_report(options->name, error);
    if (!report)
        return STATUS_USAGE;
    struct selection selection;
    enum status status =
        selection_init(&selection, database, &options->selection, report->default_by, error);
    if (status == STATUS_OK && report->write)
        status = report->write(&selection, options->style, options->verbose, out, error);
    else if (status == STATUS_OK)
        status = write_query(report->sql, &selection, options->style, out, error);
    selection_done(&selection);
    return result_end(status, database, out, error);
}
