/* SPDX-License-Identifier: Apache-2.0 */
#include "policy.h"

#include "overview.h"
#include "page_query.h"
#include "rules.h"

/*
 * Patterns are fitted once per name, not per flow. Names that ingest --sni hides were fitted then:
 * early_data_rule holds their pattern, '' where none fits. :rules is NULL for those of the
 * database.
 */
#define ISO(ns) "strftime('%Y-%m-%dT%H:%M:%SZ', " ns " / 1000000000, 'unixepoch')"
/* One text for both, since a join by IS finds no index; CROSS JOIN holds SQLite to this order:
 * flows once, and for each its name by that index. */
#define KEY "ifnull('=' || early_data_rule, ifnull(':' || sni, ''))"
static const char RULE_SQL[] =
    "SELECT pattern, allowed, comment FROM early_data_rule WHERE :rules IS NULL"
    " UNION ALL SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'),"
    " json_extract(value, '$[2]') FROM json_each(:rules)";

/* Flows that offered early data, each with the rule that fits and what it says; reads `rule`. */
static const char CHECKED_SQL[] =
    ", offered AS NOT MATERIALIZED (SELECT * FROM ours"
    " WHERE early_data IN ('accepted', 'rejected', 'unknown')),"
    " name AS MATERIALIZED (SELECT " KEY " AS key, ifnull(early_data_rule,"
    " (SELECT pattern FROM rule WHERE lower(sni) GLOB pattern"
    " ORDER BY length(pattern) DESC, pattern LIMIT 1)) AS fits"
    " FROM offered GROUP BY key)"
    " SELECT offered.*, name.fits, rule.comment, CASE WHEN rule.allowed = 0 THEN 'forbidden'"
    " WHEN rule.allowed = 1 THEN 'allowed' WHEN early_data_rule IS NOT NULL THEN 'no_rule'"
    " WHEN offered.sni IS NULL THEN 'not_checked'"
    " WHEN length(offered.sni) = 32 AND offered.sni NOT GLOB '*[^0-9a-f]*' THEN 'not_checked'"
    " ELSE 'no_rule' END AS finding FROM offered"
    " CROSS JOIN name ON name.key = " KEY " LEFT JOIN rule ON rule.pattern = name.fits";

/* ---- where it must not be ---- */

#define BASIS(word)                                                                                \
    "CASE WHEN sum(early_data_basis = '" word "') > 0"                                             \
    " THEN '" word " ' || sum(early_data_basis = '" word "') || ', ' ELSE '' END"

static const char FORBIDDEN_SQL[] =
    "SELECT {by,} fits, count(*) AS offers, sum(early_data = 'accepted') AS taken,"
    " sum(early_data = 'rejected'), sum(early_data = 'unknown'), sum(early_data_bytes),"
    " count(DISTINCT ifnull(client_prefix, client_ip)), group_concat(DISTINCT site),"
    " " ISO("min(start_epoch_ns)") ", " ISO(
        "max(start_epoch_ns)") ","
                               " rtrim(" BASIS("keylog") " || " BASIS("protocol") " || " BASIS(
                                   "strong") " || " BASIS("weak") ", ', '),"
                                                                  " min(CASE early_data WHEN "
                                                                  "'accepted' THEN flow_id END), "
                                                                  "min(comment)"
                                                                  " FROM checked WHERE finding = "
                                                                  "'forbidden' GROUP BY {by,} fits"
                                                                  " ORDER BY taken DESC, offers "
                                                                  "DESC, {by,} fits";

static const struct page_column FORBIDDEN_COLUMNS[] = {
    { "pattern", NULL, PAGE_WORD },       { "offered", NULL, PAGE_COUNT },
    { "accepted", NULL, PAGE_COUNT },     { "rejected", NULL, PAGE_COUNT },
    { "unknown", NULL, PAGE_COUNT },      { "early_data_bytes", "bytes", PAGE_COUNT },
    { "clients", NULL, PAGE_COUNT },      { "sites", NULL, PAGE_WORD },
    { "first_time", "first", PAGE_TIME }, { "last_time", "last", PAGE_TIME },
    { "basis", NULL, PAGE_WORD },         { "example_accepted", "example", PAGE_ID },
    { "comment", NULL, PAGE_WORD },
};

/* ---- all that was offered, by finding ---- */

static const char FINDINGS_SQL[] =
    "SELECT finding, count(DISTINCT sni), count(*), sum(early_data = 'accepted'),"
    " sum(early_data_bytes) FROM checked GROUP BY finding"
    " ORDER BY finding = 'forbidden' DESC, finding = 'not_checked' DESC, finding DESC";

static const struct page_column FINDINGS_COLUMNS[] = {
    { "finding", NULL, PAGE_WORD },
    { "names", NULL, PAGE_COUNT },
    { "offered", NULL, PAGE_COUNT },
    { "accepted", NULL, PAGE_COUNT },
    { "early_data_bytes", "bytes", PAGE_COUNT },
};

static const struct page_query TABLES[] = {
    PAGE_QUERY("policy", NULL, true, FORBIDDEN_SQL, FORBIDDEN_COLUMNS),
    PAGE_QUERY("findings", "All names where it was offered", false, FINDINGS_SQL, FINDINGS_COLUMNS),
};

/* ---- what it rests on ---- */

enum number {
    RULES,
    STARTER_RULES,
    OFFERED,
    HELLOS,
    FORBIDDEN_NAMES,
    FORBIDDEN_ACCEPTED,
    NAMELESS,
    HASHED,
    BEHIND_ECH,
    NUMBER_COUNT
};

static const char NUMBERS_SQL[] =
    "SELECT (SELECT count(*) FROM rule),"
    " (SELECT count(*) FROM rule WHERE comment LIKE 'starter set:%'),"
    " count(*), (SELECT count(*) FROM ours WHERE early_data IS NOT NULL),"
    " count(DISTINCT CASE WHEN finding = 'forbidden' AND early_data = 'accepted'"
    " THEN ifnull(sni, fits) END),"
    " sum(finding = 'forbidden' AND early_data = 'accepted'),"
    " sum(finding = 'not_checked' AND sni IS NULL), sum(finding = 'not_checked' AND sni NOT NULL),"
    " sum(ech AND sni NOT NULL) FROM checked";

static void warn(struct page *p, const int64_t *n)
{
    if (n[RULES] == 0) {
        page_warning(p, "There are no rules, so nothing was held against any.");
        page_command(p, "firstflight set-rules --rules early_data_rules.csv");
    }
    if (n[FORBIDDEN_ACCEPTED] > 0) {
        page_warning(
            p,
            "%lld name%s accepted early data %lld times although a rule forbids it: whoever"
            " saw it can send it again.",
            (long long)n[FORBIDDEN_NAMES], n[FORBIDDEN_NAMES] == 1 ? "" : "s",
            (long long)n[FORBIDDEN_ACCEPTED]);
        page_command(p, "firstflight report replays");
    }
}

static void add_facts(struct page *p, const struct selection *s, const int64_t *n)
{
    struct text rules = { 0 };
    text_add_count(&rules, n[RULES]);
    text_addf(&rules, " of %s", s->rules_file ? s->rules_file : "the database");
    if (n[STARTER_RULES] > 0)
        text_addf(&rules, ", %lld from the starter set: names only suggest what a server does",
                  (long long)n[STARTER_RULES]);
    page_fact(p, "Rules", "%s", text_string(&rules));
    text_done(&rules);
    page_add_count(p, "Rests on", n[OFFERED], "flows that offered early data");
    page_add_count(p, "Not offered", n[HELLOS] - n[OFFERED], "flows");
    page_add_count(p, "Not checked", n[NAMELESS], "offers without a readable name");
    page_add_count(p, "Not checked", n[HASHED],
                   "offers whose name was hashed before it was checked");
    page_add_count(p, "Perhaps hidden", n[BEHIND_ECH],
                   "offers with encrypted_client_hello, real or not: the name seen may be an outer"
                   " one");
}

static enum status build(struct page *p, const struct selection *s, const char *rules,
                         struct text *error)
{
    struct overview overview;
    int64_t numbers[NUMBER_COUNT] = { 0 };
    enum status status = overview_count(s, &overview, error);
    if (status == STATUS_OK)
        status = page_keep(s, "rule", RULE_SQL, rules, error);
    if (status == STATUS_OK)
        status = page_keep(s, "checked", CHECKED_SQL, NULL, error);
    if (status == STATUS_OK)
        status = page_read_numbers(s, NUMBERS_SQL, numbers, NUMBER_COUNT, error);
    if (status != STATUS_OK)
        return status;
    overview_add_subject(&overview, s, p);
    for (size_t i = 0; i < sizeof TABLES / sizeof *TABLES && status == STATUS_OK; i++)
        status = page_add_query(p, s, &TABLES[i], error);
    warn(p, numbers);
    add_facts(p, s, numbers);
    overview_add_legs(&overview, s, p);
    return status;
}

enum status policy_fill(struct page *p, const struct selection *s, struct text *error)
{
    if (!s->rules_file)
        return build(p, s, NULL, error);
    struct rules rules = { 0 };
    struct text json = { 0 };
    enum status status = rules_read_file(&rules, s->rules_file, error);
    if (status == STATUS_OK) {
        rules_add_json(&rules, &json);
        status = json.failed ? STATUS_NO_MEMORY : build(p, s, text_string(&json), error);
    }
    text_done(&json);
    rules_done(&rules);
    return status;
}
