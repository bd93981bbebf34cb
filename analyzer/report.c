/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "early_data.h"
#include "incident.h"
#include "overview.h"
#include "page.h"
#include "policy.h"
#include "regions.h"
#include "replays.h"
#include "result.h"
#include "ticket_keys.h"
#include "timeline.h"

#include <ctype.h>
#include <stdlib.h>

/*
 * A report writes itself, fills a page, or is one SQL query over the relations of
 * selection_query(), in the form of selection_add_sql().
 */
struct report {
    const char *name, *question;
    /* What it reads of the flows, for selection_keep(); NULL: they are not kept. A query that
     * programs ask for reads them only once. */
    const char *columns;
    const char *default_by; /* columns to group by without --by; "" for none */
    enum status (*write)(const struct selection *s, struct table_style style, bool verbose,
                         FILE *out, struct text *error);
    const char *sql;
    /* Of a report with sql: pictures below its rows, for HTML; NULL: none. */
    enum status (*draw)(struct page *p, const struct selection *s, const struct overview *o,
                        struct text *error);
    enum status (*fill)(struct page *p, const struct selection *s, struct text *error);
};

#define MINUTE(ns) "strftime('%Y-%m-%dT%H:%M', " ns " / 1000000000, 'unixepoch')"

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

static enum status draw_timeline(struct page *page, const struct selection *s,
                                 const struct overview *o, struct text *error)
{
    int64_t step_s = timeline_step_s(o->span);
    page_heading(page, "Over time");
    timeline_add_words(page, step_s);
    enum status status = timeline_add_kinds(page, s, step_s, error);
    return status == STATUS_OK ? timeline_add_waiting(page, s, step_s, error) : status;
}

static const struct report REPORTS[] = {
    { .name = "regions",
      .question = "how long visitors waited by kind of handshake, and what 0-RTT gained them",
      .columns = OVERVIEW_COLUMNS
      ", client_region, sni, tls_version, rtt_ns, round_trips, expected_round_trips"
      ", early_data, early_data_reason, answered_early, response_ns, connect_ns"
      ", hello_wait_ns, tls_ns, request_wait_ns, server_wait_ns",
      .default_by = "client_region",
      .write = regions_report },
    { .name = "incident",
      .question = "what changed against the time before, where, and what is likely behind it",
      .default_by = "site,client_region,host,sni",
      .write = incident_report },
    { .name = "early-data",
      .question = "early data offered, sent, accepted, answered early, refused and why",
      .columns = OVERVIEW_COUNT_COLUMNS
      ", host, sni, early_data, early_data_basis, early_data_reason, early_data_bytes"
      ", answered_early",
      .default_by = "sni",
      .fill = early_data_fill },
    { .name = "policy",
      .question = "early data where a rule forbids it: logins, payments and the like",
      .columns = OVERVIEW_COUNT_COLUMNS
      ", sni, early_data, early_data_rule, early_data_basis, early_data_bytes"
      ", client_prefix, client_ip, ech",
      .default_by = "sni",
      .fill = policy_fill },
    { .name = "replays",
      .question = "ClientHellos that came on two connections, and tickets used again",
      .columns = OVERVIEW_COUNT_COLUMNS
      ", capture_id, client_hello_hash, server_random_hash, psk_identity_hash, sni"
      ", early_data, resumed_by, client_prefix, client_ip, client_port",
      .default_by = "",
      .fill = replays_fill },
    { .name = "ticket-keys",
      .question = "keys of tickets: accepted where, refused where, at what age",
      .columns = OVERVIEW_COUNT_COLUMNS
      ", flow_uid, ticket_key_name, issued_ticket_key_name, psk_identity_hash"
      ", server_random_hash, client_ip, resumed_by, resumption_offered",
      .default_by = "site,host",
      .fill = ticket_keys_fill },
    { .name = "failures",
      .question = "connections that failed: how far they came, how, from when to when",
      .columns = OVERVIEW_COLUMNS
      ", server_packets, failure, client_hello_at_ns, server_hello_at_ns, client_prefix",
      .default_by = "client_region,site",
      .sql = FAILURES_SQL },
    { .name = "timeline",
      .question = "minute by minute: kinds, resumption, failures, retransmissions, waiting",
      .columns = OVERVIEW_COLUMNS
      ", resumption_offered, resumed_by, early_data, rtt_ns"
      ", client_retransmits_before_response, server_retransmits_before_response",
      .default_by = "",
      .sql = TIMELINE_SQL,
      .draw = draw_timeline },
    { .name = "coverage",
      .question = "which flows could be measured, and why the others could not",
      .columns = OVERVIEW_COLUMNS,
      .default_by = "leg",
      .sql = COVERAGE_SQL },
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

static enum status open_query(const char *template, const struct selection *s,
                              struct query **ret_query, struct text *error)
{
    struct text sql = { 0 };
    selection_add_sql(s, template, &sql);
    enum status status =
        sql.failed ? STATUS_NO_MEMORY : selection_query(s, text_string(&sql), ret_query, error);
    text_done(&sql);
    return status;
}

static enum status write_query(const struct report *report, const struct selection *s,
                               struct table_style style, FILE *out, struct text *error)
{
    struct query *q = NULL;
    enum status status = open_query(report->sql, s, &q, error);
    if (status == STATUS_OK)
        status = result_write(q, style, out);
    query_close(q);
    return status;
}

/* ---- a query as a page ---- */

/* Rows shown on a page; whoever needs more of them has a program to read them. */
enum { PAGE_ROWS_MAX = 2000 };

/* What the columns of the reports hold, by name; others are words. */
static enum page_kind kind_of_column(const char *name)
{
    static const struct {
        const char *name;
        enum page_kind kind;
    } kinds[] = {
        { "flows", PAGE_COUNT },          { "offered", PAGE_COUNT },  { "sent", PAGE_COUNT },
        { "accepted", PAGE_COUNT },       { "rejected", PAGE_COUNT }, { "late", PAGE_COUNT },
        { "answered_early", PAGE_COUNT }, { "prefixes", PAGE_COUNT }, { "full", PAGE_COUNT },
        { "resumed", PAGE_COUNT },        { "0-rtt", PAGE_COUNT },    { "failed", PAGE_COUNT },
        { "refused", PAGE_COUNT },        { "resent", PAGE_COUNT },   { "keylog", PAGE_COUNT },
        { "protocol", PAGE_COUNT },       { "strong", PAGE_COUNT },   { "weak", PAGE_COUNT },
        { "rtt", PAGE_NUMBER },           { "p50", PAGE_NUMBER },     { "p90", PAGE_NUMBER },
        { "percent", PAGE_NUMBER },       { "example", PAGE_ID },     { "minute", PAGE_TIME },
        { "first", PAGE_TIME },           { "last", PAGE_TIME },
    };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(name, kinds[i].name) == 0)
            return kinds[i].kind;
    }
    return PAGE_WORD;
}

/* "answered early" of answered_early; the caller frees it. */
static char *title_of_column(const char *name)
{
    char *title = strdup(strcmp(name, "client_region") == 0 ? "region" : name);
    for (char *c = title; c && *c; c++)
        *c = *c == '_' ? ' ' : *c;
    return title;
}

static enum status add_table(struct query *q, const struct report *report,
                             const struct selection *s, struct page *page)
{
    size_t count = query_column_count(q);
    struct page_column *columns = calloc(count, sizeof *columns);
    char **titles = calloc(count, sizeof *titles);
    bool whole = columns && titles;
    for (size_t i = 0; whole && i < count; i++) {
        const char *name = query_column_name(q, i);
        whole = name && (titles[i] = title_of_column(name));
        if (whole)
            columns[i] =
                (struct page_column){ name, titles[i],
                                      i < s->by_count ? PAGE_GROUP : kind_of_column(name) };
    }
    if (whole)
        page_table(page, report->name, columns, count);
    for (size_t i = 0; titles && i < count; i++)
        free(titles[i]);
    free(titles);
    free(columns);
    return whole ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status add_rows(struct query *q, struct page *page, size_t *ret_rows)
{
    size_t count = query_column_count(q);
    for (*ret_rows = 0;; ++*ret_rows) {
        enum status status = query_next(q);
        if (status != STATUS_OK)
            return status == STATUS_END ? STATUS_OK : status;
        for (size_t i = 0; i < count && *ret_rows < PAGE_ROWS_MAX; i++)
            page_cell(page, query_cell(q, i));
    }
}

static enum status fill_page(const struct report *report, const struct selection *s,
                             enum table_format format, struct page *page, struct text *error)
{
    struct overview overview;
    struct query *q = NULL;
    size_t rows = 0;
    enum status status = overview_read(s, &overview, error);
    if (status != STATUS_OK)
        return status;
    overview_add_subject(&overview, s, page);
    status = open_query(report->sql, s, &q, error);
    if (status == STATUS_OK)
        status = add_table(q, report, s, page);
    if (status == STATUS_OK)
        status = add_rows(q, page, &rows);
    query_close(q);
    if (rows > PAGE_ROWS_MAX)
        page_warning(page, "%zu more rows are not shown; --format csv has them all.",
                     rows - PAGE_ROWS_MAX);
    if (status == STATUS_OK && report->draw && format == TABLE_HTML)
        status = report->draw(page, s, &overview, error);
    overview_add_facts(&overview, s, page);
    return status;
}

static enum status write_page(const struct report *report, const struct selection *s,
                              struct table_style style, FILE *out, struct text *error)
{
    struct text title = { 0 };
    text_addf(&title, "%c%s", toupper((unsigned char)report->question[0]), report->question + 1);
    struct page *page = page_open(text_string(&title));
    text_done(&title);
    enum status status = report->fill ? report->fill(page, s, error)
                                      : fill_page(report, s, style.format, page, error);
    if (status == STATUS_OK)
        status = page_write(page, style, out);
    page_close(page);
    return status;
}

/* Programs get the rows of a query as they come, people what they rest on besides. */
static bool is_for_people(enum table_format format)
{
    return format == TABLE_ALIGNED || format == TABLE_MARKDOWN || format == TABLE_HTML;
}

/* An option of one report would be ignored by the others, which misleads. */
static enum status check_options(const struct report *report, const struct selection_options *o,
                                 struct text *error)
{
    if (o->baseline != NULL && strcmp(report->name, "incident") != 0)
        text_addf(error, "--baseline is for report incident, not for %s", report->name);
    else if (o->rules_file != NULL && strcmp(report->name, "policy") != 0)
        text_addf(error, "--rules is for report policy, not for %s", report->name);
    else
        return STATUS_OK;
    return STATUS_USAGE;
}

enum status command_report(struct database *database, const struct report_options *options,
                           FILE *out, struct text *error)
{
    const struct report *report = find_report(options->name, error);
    if (!report || check_options(report, &options->selection, error) != STATUS_OK)
        return STATUS_USAGE;
    struct selection selection;
    enum status status =
        selection_init(&selection, database, &options->selection, report->default_by, error);
    bool is_page = report->fill || is_for_people(options->style.format);
    if (status == STATUS_OK && report->columns && (report->write || is_page))
        status = selection_keep(&selection, report->columns, error);
    if (status == STATUS_OK && report->write)
        status = report->write(&selection, options->style, options->verbose, out, error);
    else if (status == STATUS_OK && is_page)
        status = write_page(report, &selection, options->style, out, error);
    else if (status == STATUS_OK)
        status = write_query(report, &selection, options->style, out, error);
    selection_done(&selection);
    return result_end(status, database, out, error);
}
