/* SPDX-License-Identifier: Apache-2.0 */
#include "early_data.h"

#include "overview.h"
#include "page_query.h"

/* What is worth a warning: rates that a healthy edge does not show, from so many flows on. */
enum { WARN_LEAST = 36 };
static const double LATE_SHARE = 0.10, REFUSED_SHARE = 0.05;
/* A site or reason that holds for fewer of them explains nothing. */
static const double TOLD_SHARE = 0.50;

#define ISO(ns) "strftime('%Y-%m-%dT%H:%M:%SZ', " ns " / 1000000000, 'unixepoch')"
#define OFFERED "early_data IN ('accepted', 'rejected', 'unknown')"

/* ---- by the --by columns ---- */

/* First flows by reason of refusal, too, so that the reasons can stand in one cell. */
static const char GROUPS_SQL[] =
    "SELECT {by,} sum(flows), sum(offered), sum(sent), sum(accepted), sum(rejected), sum(unknown),"
    " sum(early), sum(late), sum(bytes),"
    " group_concat(CASE WHEN reason IS NOT NULL THEN reason || ' ' || rejected END, ', ')"
    " FROM (SELECT {by,} count(*) AS flows, sum(" OFFERED ") AS offered,"
    " sum(" OFFERED " AND early_data_bytes > 0) AS sent, sum(early_data IS 'accepted') AS accepted,"
    " sum(early_data IS 'rejected') AS rejected, sum(early_data IS 'unknown') AS unknown,"
    " sum(answered_early IS 1) AS early, sum(answered_early IS 0) AS late,"
    " sum(CASE WHEN " OFFERED " THEN early_data_bytes END) AS bytes,"
    " CASE WHEN early_data = 'rejected' THEN ifnull(early_data_reason, 'unknown') END AS reason"
    " FROM ours GROUP BY {by,} reason ORDER BY rejected DESC, reason)"
    " GROUP BY {by,} '' HAVING sum(offered) > 0 ORDER BY sum(offered) DESC, {by,} ''";

static const struct page_column GROUPS_COLUMNS[] = {
    { "flows", NULL, PAGE_COUNT },
    { "offered", NULL, PAGE_COUNT },
    { "sent", NULL, PAGE_COUNT },
    { "accepted", NULL, PAGE_COUNT },
    { "rejected", NULL, PAGE_COUNT },
    { "unknown", NULL, PAGE_COUNT },
    { "answered_early", "early", PAGE_COUNT },
    { "late", NULL, PAGE_COUNT },
    { "early_data_bytes", "bytes", PAGE_COUNT },
    { "rejected_by", "rejected by", PAGE_WORD },
};

/* ---- why it was refused ---- */

static const char REFUSALS_SQL[] =
    "SELECT ifnull(early_data_reason, 'unknown') AS reason, early_data_basis, count(*) AS flows,"
    " count(DISTINCT sni), group_concat(DISTINCT site), group_concat(DISTINCT host),"
    " " ISO("min(start_epoch_ns)") ", " ISO(
        "max(start_epoch_ns)") ", min(flow_id)"
                               " FROM ours WHERE early_data = 'rejected'"
                               " GROUP BY reason, early_data_basis ORDER BY flows DESC, reason, "
                               "early_data_basis";

static const struct page_column REFUSALS_COLUMNS[] = {
    { "reason", NULL, PAGE_WORD },        { "basis", NULL, PAGE_WORD },
    { "flows", NULL, PAGE_COUNT },        { "names", NULL, PAGE_COUNT },
    { "sites", NULL, PAGE_WORD },         { "hosts", NULL, PAGE_WORD },
    { "first_time", "first", PAGE_TIME }, { "last_time", "last", PAGE_TIME },
    { "example", NULL, PAGE_ID },
};

/* ---- accepted, and no gain ---- */

static const char LATE_SQL[] = "SELECT site, host, sni, count(*), sum(answered_early = 0) AS late,"
                               " avg(answered_early = 0), " ISO(
                                   "min(CASE WHEN answered_early = 0 THEN start_epoch_ns "
                                   "END)") ", " ISO("max(CASE WHEN answered_early = 0 THEN "
                                                    "start_epoch_ns END)") ","
                                                                           " min(CASE WHEN "
                                                                           "answered_early = 0 "
                                                                           "THEN "
                                                                           "flow_id END)"
                                                                           " FROM ours WHERE "
                                                                           "early_data = "
                                                                           "'accepted' "
                                                                           "AND answered_early IS "
                                                                           "NOT NULL"
                                                                           " GROUP BY site, host, "
                                                                           "sni HAVING late > 0 "
                                                                           "ORDER BY late DESC, "
                                                                           "site, host, sni LIMIT "
                                                                           "50";

static const struct page_column LATE_COLUMNS[] = {
    { "site", NULL, PAGE_WORD },          { "host", NULL, PAGE_WORD },
    { "sni", NULL, PAGE_WORD },           { "answered", NULL, PAGE_COUNT },
    { "late", NULL, PAGE_COUNT },         { "late_share", "share", PAGE_PERCENT },
    { "first_time", "first", PAGE_TIME }, { "last_time", "last", PAGE_TIME },
    { "example", NULL, PAGE_ID },
};

/* ---- what it rests on ---- */

enum number {
    HELLOS,
    NO_HELLO,
    OFFERED_FLOWS,
    ACCEPTED,
    REJECTED,
    UNKNOWN,
    UNANSWERED,
    LATE,
    EARLY,
    BY_KEYLOG,
    BY_PROTOCOL,
    BY_STRONG,
    BY_WEAK,
    NUMBER_COUNT
};

static const char NUMBERS_SQL[] =
    "SELECT sum(early_data IS NOT NULL), sum(early_data IS NULL), sum(" OFFERED "),"
    " sum(early_data = 'accepted'), sum(early_data = 'rejected'), sum(early_data = 'unknown'),"
    " sum(early_data = 'accepted' AND answered_early IS NULL), sum(answered_early = 0),"
    " sum(answered_early = 1), sum(" OFFERED " AND early_data_basis = 'keylog'),"
    " sum(" OFFERED " AND early_data_basis = 'protocol'),"
    " sum(" OFFERED " AND early_data_basis = 'strong'),"
    " sum(" OFFERED " AND early_data_basis = 'weak') FROM ours";

static double share_of(int64_t part, int64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

/* Says where most of the flows lie, and how to see them. */
static enum status lead_on(struct page *p, const struct selection *s, const char *sentence,
                           const char *word_sql, const char *column, int64_t flows,
                           const char *command, struct text *error)
{
    struct text word = { 0 }, line = { 0 }, words = { 0 };
    int64_t count = 0;
    enum status status = page_read_word(s, word_sql, &word, &count, error);
    double share = share_of(count, flows);
    bool told = status == STATUS_OK && word.len > 0 && share >= TOLD_SHARE;
    if (told)
        text_addf(&words, " %.0f%% of that with %s %s.", 100 * share, column, text_string(&word));
    page_warning(p, "%s%s", sentence, text_string(&words));
    text_add(&line, command);
    if (told && page_is_plain_name(text_string(&word)))
        text_addf(&line, " AND %s = '%s'", column, text_string(&word));
    text_add(&line, "\"");
    page_command(p, text_string(&line));
    text_done(&word);
    text_done(&line);
    text_done(&words);
    return status;
}

static enum status warn_of_late(struct page *p, const struct selection *s, const int64_t *numbers,
                                struct text *error)
{
    int64_t answered = numbers[LATE] + numbers[EARLY];
    double share = share_of(numbers[LATE], answered);
    if (answered < WARN_LEAST || share <= LATE_SHARE)
        return STATUS_OK;
    struct text words = { 0 };
    text_addf(&words, "%.0f%% of accepted early data was answered only after Finished: no gain.",
              100 * share);
    enum status status =
        lead_on(p, s, text_string(&words),
                "SELECT site, count(*) FROM ours WHERE answered_early = 0"
                " GROUP BY site ORDER BY count(*) DESC, site LIMIT 1",
                "site", numbers[LATE], "firstflight flows --where \"answered_early = 0", error);
    text_done(&words);
    return status;
}

static enum status warn_of_refused(struct page *p, const struct selection *s,
                                   const int64_t *numbers, struct text *error)
{
    int64_t decided = numbers[ACCEPTED] + numbers[REJECTED];
    double share = share_of(numbers[REJECTED], decided);
    if (decided < WARN_LEAST || share <= REFUSED_SHARE)
        return STATUS_OK;
    struct text words = { 0 };
    text_addf(&words, "%.0f%% of early data was refused.", 100 * share);
    enum status status =
        lead_on(p, s, text_string(&words),
                "SELECT early_data_reason, count(*) FROM ours WHERE early_data = 'rejected'"
                " GROUP BY early_data_reason ORDER BY count(*) DESC, early_data_reason LIMIT 1",
                "early_data_reason", numbers[REJECTED],
                "firstflight report ticket-keys --where \"early_data = 'rejected'", error);
    text_done(&words);
    return status;
}

static void add_facts(struct page *p, const int64_t *n)
{
    double decided = (double)(n[BY_KEYLOG] + n[BY_PROTOCOL] + n[BY_STRONG] + n[BY_WEAK]);
    page_add_count(p, "Rests on", n[HELLOS], "flows with a ClientHello");
    if (decided > 0)
        page_fact(p, "Fate rests on",
                  "protocol %.1f%%   strong %.1f%%   weak %.1f%%   keylog %.1f%%",
                  100 * (double)n[BY_PROTOCOL] / decided, 100 * (double)n[BY_STRONG] / decided,
                  100 * (double)n[BY_WEAK] / decided, 100 * (double)n[BY_KEYLOG] / decided);
    page_add_count(p, "Left out", n[NO_HELLO], "TLS flows whose ClientHello was not captured");
    page_add_count(p, "Fate unknown", n[UNKNOWN], "offers whose end the captures do not show");
    page_add_count(p, "Not answered", n[UNANSWERED],
                   "accepted, but no response was seen or it is unsure");
}

static const struct page_query TABLES[] = {
    PAGE_QUERY("early_data", NULL, true, GROUPS_SQL, GROUPS_COLUMNS),
    PAGE_QUERY("refusals", "Why it was refused", false, REFUSALS_SQL, REFUSALS_COLUMNS),
    PAGE_QUERY("no_gain", "Accepted, but answered only after Finished", false, LATE_SQL,
               LATE_COLUMNS),
};

enum status early_data_fill(struct page *p, const struct selection *s, struct text *error)
{
    struct overview overview;
    int64_t numbers[NUMBER_COUNT] = { 0 };
    enum status status = overview_count(s, &overview, error);
    if (status != STATUS_OK)
        return status;
    overview_add_subject(&overview, s, p);
    status = page_read_numbers(s, NUMBERS_SQL, numbers, NUMBER_COUNT, error);
    for (size_t i = 0; i < sizeof TABLES / sizeof *TABLES && status == STATUS_OK; i++)
        status = page_add_query(p, s, &TABLES[i], error);
    if (status == STATUS_OK)
        status = warn_of_late(p, s, numbers, error);
    if (status == STATUS_OK)
        status = warn_of_refused(p, s, numbers, error);
    if (status == STATUS_OK) {
        add_facts(p, numbers);
        overview_add_legs(&overview, s, p);
    }
    return status;
}
