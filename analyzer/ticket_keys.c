/* SPDX-License-Identifier: Apache-2.0 */
#include "ticket_keys.h"

#include "overview.h"
#include "page_query.h"

/*
 * Most servers write the name of the key in front of a ticket (RFC 5077 4), 16 bytes, some (JDK,
 * mbedTLS) 4; others (Go, rustls) begin with what is random. The names cannot be told apart by
 * their looks, but random bytes never come twice: a name that two different tickets bear names a
 * key, and so do 4 bytes that begin three names. All other names say nothing and are counted
 * together. CROSS JOIN holds SQLite to this order: flows once, and for each its name by an index.
 */
#define ISO(ns) "strftime('%Y-%m-%dT%H:%M:%SZ', " ns " / 1000000000, 'unixepoch')"
/* Each ticket offered or issued, with the key that it names, if any. */
static const char SEEN_SQL[] =
    ", ticket AS (SELECT ticket_key_name AS name, ifnull(psk_identity_hash, client_ip) AS ticket,"
    " start_epoch_ns FROM ours WHERE ticket_key_name IS NOT NULL UNION ALL"
    " SELECT issued_ticket_key_name, ifnull(server_random_hash, flow_uid), start_epoch_ns"
    " FROM ours WHERE issued_ticket_key_name IS NOT NULL),"
    " name AS MATERIALIZED (SELECT name, min(ticket) IS NOT max(ticket) AS is_key,"
    " min(start_epoch_ns) AS first_ns FROM ticket GROUP BY name),"
    " short AS MATERIALIZED (SELECT substr(name, 1, 8) AS name, min(first_ns) AS first_ns"
    " FROM name WHERE NOT is_key GROUP BY substr(name, 1, 8) HAVING count(*) > 2),"
    " key AS MATERIALIZED (SELECT name.name, CASE WHEN is_key THEN name.name ELSE short.name END"
    " AS key, CASE WHEN is_key THEN name.first_ns ELSE short.first_ns END AS first_ns"
    " FROM name LEFT JOIN short ON short.name = substr(name.name, 1, 8))"
    " SELECT {by,} key, ticket_key_name AS name, 1 AS offer,"
    " resumed_by IN ('ticket', 'psk') IS TRUE AS accepted,"
    " start_epoch_ns - first_ns AS age_ns, start_epoch_ns, flow_id"
    " FROM ours CROSS JOIN key ON key.name = ticket_key_name"
    " WHERE handshake IN ('full', 'resumed', '0-rtt') UNION ALL"
    " SELECT {by,} key, issued_ticket_key_name, 0, 0, NULL, start_epoch_ns, flow_id"
    " FROM ours CROSS JOIN key ON key.name = issued_ticket_key_name";

/* ---- keys ---- */

static const char KEYS_SQL[] =
    "SELECT {by,} key, sum(NOT offer), sum(offer) AS offered, sum(accepted) AS accepted,"
    " sum(offer AND NOT accepted) AS refused,"
    " sum(sum(accepted)) OVER (PARTITION BY key) - sum(accepted) AS elsewhere,"
    " " ISO("min(start_epoch_ns)") ", " ISO(
        "max(start_epoch_ns)") ","
                               " min(CASE WHEN offer AND NOT accepted THEN flow_id END)"
                               " FROM seen WHERE key IS NOT NULL GROUP BY {by,} key"
                               " ORDER BY min(refused, elsewhere) > 0 DESC, refused "
                               "DESC, offered DESC, {by,} key";

static const struct page_column KEYS_COLUMNS[] = {
    { "ticket_key_name", "key", PAGE_DIGEST }, { "issued", NULL, PAGE_COUNT },
    { "offered", NULL, PAGE_COUNT },           { "accepted", NULL, PAGE_COUNT },
    { "refused", NULL, PAGE_COUNT },           { "accepted_elsewhere", "elsewhere", PAGE_COUNT },
    { "first_time", "first", PAGE_TIME },      { "last_time", "last", PAGE_TIME },
    { "example_refused", "example", PAGE_ID },
};

/* ---- how old a key was, counted from its first sight ---- */

static const char AGES_SQL[] =
    ", aged AS (SELECT accepted, CASE WHEN age_ns < 600000000000 THEN 0"
    " WHEN age_ns < 3600000000000 THEN 1 WHEN age_ns < 21600000000000 THEN 2"
    " WHEN age_ns < 86400000000000 THEN 3 WHEN age_ns < 604800000000000 THEN 4 ELSE 5 END AS band"
    " FROM seen WHERE key IS NOT NULL AND offer)"
    " SELECT CASE band WHEN 0 THEN 'below 10 min' WHEN 1 THEN '10 to 60 min' WHEN 2 THEN '1 to 6 h'"
    " WHEN 3 THEN '6 to 24 h' WHEN 4 THEN '1 to 7 d' ELSE 'above 7 d' END, count(*), sum(accepted),"
    " sum(NOT accepted), avg(NOT accepted) FROM aged GROUP BY band ORDER BY band";

static const struct page_column AGES_COLUMNS[] = {
    { "age", NULL, PAGE_WORD },
    { "offered", NULL, PAGE_COUNT },
    { "accepted", NULL, PAGE_COUNT },
    { "refused", NULL, PAGE_COUNT },
    { "refused_share", "share", PAGE_PERCENT },
};

/* ---- tickets that name no key ---- */

static const char NAMELESS_SQL[] =
    "SELECT {by,} count(DISTINCT name), sum(offer) AS offered, sum(accepted),"
    " sum(offer AND NOT accepted), min(CASE WHEN offer AND NOT accepted THEN flow_id END)"
    " FROM seen WHERE key IS NULL GROUP BY {by,} '' ORDER BY offered DESC, {by,} ''";

static const struct page_column NAMELESS_COLUMNS[] = {
    { "names", NULL, PAGE_COUNT },
    { "offered", NULL, PAGE_COUNT },
    { "accepted", NULL, PAGE_COUNT },
    { "refused", NULL, PAGE_COUNT },
    { "example_refused", "example", PAGE_ID },
};

static const struct page_query TABLES[] = {
    PAGE_QUERY("ticket_keys", NULL, true, KEYS_SQL, KEYS_COLUMNS),
    PAGE_QUERY("refusals_by_age", "By the age of the key, from its first sight", false, AGES_SQL,
               AGES_COLUMNS),
    PAGE_QUERY("no_key_name", "Tickets that name no key, or whose key was seen once", true,
               NAMELESS_SQL, NAMELESS_COLUMNS),
};

/* ---- what it rests on ---- */

enum number {
    OFFERS, /* of tickets, answered */
    KEYS,
    NAMELESS,
    NOT_SHARED, /* refusals of keys that others accept */
    NO_VERDICT,
    NO_NAME, /* tickets too short for a name, session ids */
    NO_OFFER,
    NUMBER_COUNT
};

static const char NUMBERS_SQL[] =
    ", place AS (SELECT {by,} key, sum(accepted) AS accepted,"
    " sum(offer AND NOT accepted) AS refused,"
    " sum(sum(accepted)) OVER (PARTITION BY key) AS everywhere"
    " FROM seen WHERE key IS NOT NULL GROUP BY {by,} key)"
    " SELECT (SELECT sum(offer) FROM seen), (SELECT count(DISTINCT key) FROM place),"
    " (SELECT sum(offer) FROM seen WHERE key IS NULL),"
    " (SELECT sum(CASE WHEN accepted = 0 AND everywhere > 0 THEN refused END) FROM place),"
    " sum(ticket_key_name IS NOT NULL AND handshake = 'unknown'),"
    " sum(ticket_key_name IS NULL AND resumption_offered), sum(NOT resumption_offered) FROM ours";

static void add_facts(struct page *p, const int64_t *n)
{
    struct text words = { 0 };
    text_addf(&words, "offers of tickets, %lld key%s", (long long)n[KEYS], n[KEYS] == 1 ? "" : "s");
    page_add_count(p, "Rests on", n[OFFERS], text_string(&words));
    text_done(&words);
    page_add_count(p, "No key name", n[NAMELESS],
                   "of them bear a name that no other ticket bears: random bytes (Go, rustls), or a"
                   " key seen once");
    page_add_count(p, "Left out", n[NO_VERDICT], "offers whose answer the captures do not show");
    page_add_count(p, "Left out", n[NO_NAME],
                   "offers of session ids, or of tickets too short for a name");
    page_add_count(p, "No offer", n[NO_OFFER], "flows without a ticket");
}

/* Refused here, accepted elsewhere: what makes resumption fall after a deploy. */
static void warn_of_unshared(struct page *p, const int64_t *n)
{
    if (n[NOT_SHARED] == 0)
        return;
    struct text count = { 0 };
    text_add_count(&count, n[NOT_SHARED]);
    page_warning(p,
                 "%s ticket%s refused where no ticket of that key is ever accepted, while others"
                 " accept it: the key is not shared.",
                 text_string(&count), n[NOT_SHARED] == 1 ? " was" : "s were");
    page_command(p, "firstflight flows --where \"ticket_key_name IS NOT NULL AND"
                    " resumption_offered AND handshake = 'full'\"");
    text_done(&count);
}

enum status ticket_keys_fill(struct page *p, const struct selection *s, struct text *error)
{
    struct overview overview;
    int64_t numbers[NUMBER_COUNT] = { 0 };
    enum status status = overview_count(s, &overview, error);
    if (status == STATUS_OK)
        status = page_keep(s, "seen", SEEN_SQL, NULL, error);
    if (status == STATUS_OK)
        status = page_read_numbers(s, NUMBERS_SQL, numbers, NUMBER_COUNT, error);
    if (status != STATUS_OK)
        return status;
    overview_add_subject(&overview, s, p);
    for (size_t i = 0; i < sizeof TABLES / sizeof *TABLES && status == STATUS_OK; i++)
        status = page_add_query(p, s, &TABLES[i], error);
    warn_of_unshared(p, numbers);
    add_facts(p, numbers);
    overview_add_legs(&overview, s, p);
    return status;
}
