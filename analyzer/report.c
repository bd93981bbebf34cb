/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "regions.h"
#include "result.h"

/*
 * A report is a page of its own or, where `write` is NULL, one SQL query: a row for each group of
 * flows that agree in the --by columns and in `groups`.
 */
struct report {
    const char *name, *question;
    const char *default_by; /* columns to group by without --by; "" for none */
    enum status (*write)(const struct selection *s, struct table_style style, bool verbose,
                         FILE *out, struct text *error);
    const char *groups;  /* names of `columns` that are grouped by as well; "" for none */
    const char *columns; /* what is said of each group */
    const char *from;    /* which flows */
    const char *order;   /* of the rows, and conditions on groups */
};

#define UTC_TIME(ns) "strftime('%Y-%m-%dT%H:%M:%SZ', " ns " / 1000000000, 'unixepoch')"
#define OFFERED "early_data IN ('accepted', 'rejected', 'unknown')"
#define REJECTED_BY(reason) "sum(early_data IS 'rejected' AND early_data_reason IS '" reason "')"

static const struct report REPORTS[] = {
    {
        .name = "regions",
        .question = "how long visitors waited by kind of handshake, and what 0-RTT gained them",
        .default_by = "client_region",
        .write = regions_report,
    },
    {
        .name = "early-data",
        .question = "early data offered, sent, accepted, refused and why, answered early",
        .default_by = "sni",
        .groups = "",
        .columns =
            "count(*) AS tls_flows, sum(" OFFERED ") AS offered,"
            " sum(early_data_bytes > 0) AS sent, sum(early_data IS 'accepted') AS accepted,"
            " sum(early_data IS 'rejected') AS rejected,"
            " sum(early_data IS 'unknown') AS unknown,"
            " sum(answered_early IS 1) AS answered_early,"
            " sum(answered_early IS 0) AS answered_late,"
            " " REJECTED_BY(
                "hello_retry") " AS hello_retry,"
                               " " REJECTED_BY(
                                   "psk_refused") " AS psk_refused,"
                                                  " " REJECTED_BY(
                                                      "psk_kept") " AS psk_kept,"
                                                                  " " REJECTED_BY(
                                                                      "version") " AS version",
        .from = "ours",
        .order = "HAVING offered > 0 ORDER BY offered DESC",
    },
    {
        .name = "failures",
        .question = "connections that failed: how far they came, how, from when to when",
        .default_by = "client_region,site",
        .groups = "phase, failure",
        .columns =
            "CASE WHEN server_packets = 0 OR failure IS 'refused' THEN 'connect'"
            " WHEN client_hello_at_ns IS NULL THEN 'before_hello'"
            " WHEN server_hello_at_ns IS NULL THEN 'hello' ELSE 'tls' END AS phase,"
            " failure, count(*) AS flows, count(DISTINCT client_prefix) AS client_prefixes,"
            " " UTC_TIME("min(start_epoch_ns)") " AS first_time,"
                                                " " UTC_TIME(
                                                    "max(start_epoch_ns)") " AS last_time,"
                                                                           " min(flow_id) AS "
                                                                           "example_flow_id",
        .from = "selected WHERE outcome = 'failed'",
        .order = "ORDER BY flows DESC, phase, failure",
    },
    {
        .name = "timeline",
        .question = "minute by minute: kinds, early data, failures, retransmissions, waiting",
        .default_by = "",
        .groups = "minute",
        .columns = "strftime('%Y-%m-%dT%H:%M', start_epoch_ns / 1000000000, 'unixepoch')"
                   " AS minute, count(*) AS flows, sum(handshake = 'full') AS full,"
                   " sum(handshake = 'resumed') AS resumed, sum(handshake = '0-rtt') AS zero_rtt,"
                   " sum(outcome = 'failed') AS failed, sum(resumption_offered) AS res_offered,"
                   " sum(resumption_offered AND resumed_by IS NOT NULL) AS res_accepted,"
                   " sum(early_data IS 'rejected') AS early_refused,"
                   " sum(client_retransmits_before_response + server_retransmits_before_response)"
                   " AS resent, round(median(rtt_ns) / 1e6, 1) AS rtt_ms,"
                   " round(percentile(perceived_ns, 50) / 1e6, 1) AS p50_ms,"
                   " round(percentile(perceived_ns, 90) / 1e6, 1) AS p90_ms",
        .from = "ours",
        .order = "ORDER BY minute",
    },
    {
        .name = "coverage",
        .question = "which flows could be measured, and why the others could not",
        .default_by = "leg",
        .groups = "result",
        .columns = "CASE WHEN handshake = 'none' THEN 'no TLS'"
                   " WHEN perceived_ns IS NULL OR handshake = 'unknown'"
                   " THEN " SELECTION_NOT_MEASURED " ELSE 'measured' END AS result,"
                   " count(*) AS flows,"
                   " round(100.0 * count(*) / (SELECT count(*) FROM selected), 1) AS percent,"
                   " sum(handshake_basis IS 'keylog') AS keylog,"
                   " sum(handshake_basis IS 'protocol') AS protocol,"
                   " sum(handshake_basis IS 'strong') AS strong,"
                   " sum(handshake_basis IS 'weak') AS weak, min(flow_id) AS example_flow_id",
        .from = "selected",
        .order = "ORDER BY flows DESC",
    },
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

static enum status write_query(const struct report *report, const struct selection *s,
                               struct table_style style, FILE *out, struct text *error)
{
    bool has_groups = report->groups[0] != '\0';
    struct text sql = { 0 };
    text_add(&sql, "SELECT ");
    selection_add_by_comma(s, &sql);
    text_addf(&sql, "%s FROM %s GROUP BY ", report->columns, report->from);
    if (has_groups)
        selection_add_by_comma(s, &sql);
    else
        selection_add_by(s, &sql);
    text_addf(&sql, "%s %s", report->groups, report->order);
    struct query *q = NULL;
    enum status status =
        sql.failed ? STATUS_NO_MEMORY : selection_query(s, text_string(&sql), &q, error);
    text_done(&sql);
    if (status != STATUS_OK)
        return status;
    status = result_write(q, style, out);
    query_close(q);
    if (status == STATUS_USAGE)
        text_add(error, database_error(s->database));
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
        status = write_query(report, &selection, options->style, out, error);
    selection_done(&selection);
    return status;
}
