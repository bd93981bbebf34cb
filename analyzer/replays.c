/* SPDX-License-Identifier: Apache-2.0 */
#include "replays.h"

#include "overview.h"
#include "page_query.h"

/*
 * A ClientHello that came on two connections: the same random and binder (client_hello_hash), but
 * another random in the answer (server_random_hash), since a server never repeats it. The same of
 * both is one connection, captured twice: at two points, or by a mirror port. A ClientHello that
 * was retransmitted, also as a SYN that came late, has one answer and is one row.
 */
#define ISO(ns) "strftime('%Y-%m-%dT%H:%M:%SZ', " ns " / 1000000000, 'unixepoch')"
/* Few ClientHellos and tickets come twice: only the flows of these are looked at closely. */
static const char AGAIN_SQL[] =
    "SELECT * FROM ours WHERE client_hello_hash IN (SELECT client_hello_hash FROM ours"
    " GROUP BY client_hello_hash HAVING count(*) > 1)";
static const char REUSED_SQL[] =
    "SELECT * FROM ours WHERE client_hello_hash IS NOT NULL AND psk_identity_hash IN"
    " (SELECT psk_identity_hash FROM ours WHERE client_hello_hash IS NOT NULL"
    " GROUP BY psk_identity_hash HAVING count(*) > 1)";

#define RELATIONS                                                                                  \
    ", copied AS MATERIALIZED (SELECT client_hello_hash AS hello FROM again"                       \
    " WHERE client_hello_hash IS NOT NULL GROUP BY hello"                                          \
    " HAVING count(DISTINCT server_random_hash) > 1),"                                             \
    " connection AS MATERIALIZED (SELECT {by,} client_hello_hash AS hello, min(sni) AS sni,"       \
    " max(early_data IS 'accepted') AS accepted,"                                                  \
    " max(early_data IS 'rejected') AND NOT max(early_data IS 'accepted') AS rejected,"            \
    " max(early_data IS 'unknown') AND NOT max(early_data IN ('accepted', 'rejected'))"            \
    " AS unknown, min(client_ip) AS client, min(site) AS site, min(start_epoch_ns) AS start_ns,"   \
    " min(flow_id) AS flow_id FROM again WHERE server_random_hash IS NOT NULL"                     \
    " AND client_hello_hash IN (SELECT hello FROM copied)"                                         \
    " GROUP BY {by,} client_hello_hash, server_random_hash) "

/* ---- each of them ---- */

static const char HELLOS_SQL[] = RELATIONS
    "SELECT CASE WHEN sum(accepted) > 1 THEN 'accepted_twice' WHEN sum(unknown) > 0 THEN 'unknown'"
    " WHEN sum(accepted) + sum(rejected) > 0 THEN 'refused' ELSE 'no_early_data' END AS finding,"
    " min(sni), count(*) AS connections, sum(accepted), sum(rejected), sum(unknown),"
    " count(DISTINCT client), group_concat(DISTINCT site), " ISO(
        "min(start_ns)") ","
                         " max(start_ns) - min(start_ns), group_concat(flow_id, ' '), hello"
                         " FROM (SELECT * FROM connection ORDER BY start_ns) GROUP BY hello"
                         " ORDER BY finding = 'accepted_twice' DESC, sum(accepted) DESC, "
                         "connections DESC, hello";

static const struct page_column HELLOS_COLUMNS[] = {
    { "finding", NULL, PAGE_WORD },       { "sni", NULL, PAGE_WORD },
    { "connections", NULL, PAGE_COUNT },  { "accepted", NULL, PAGE_COUNT },
    { "rejected", NULL, PAGE_COUNT },     { "unknown", NULL, PAGE_COUNT },
    { "clients", NULL, PAGE_COUNT },      { "sites", NULL, PAGE_WORD },
    { "first_time", "first", PAGE_TIME }, { "span_ns", "span ms", PAGE_MS },
    { "flow_ids", "flows", PAGE_WORD },   { "client_hello_hash", "ClientHello", PAGE_DIGEST },
};

/* ---- by the --by columns ---- */

static const char GROUPS_SQL[] = RELATIONS
    "SELECT {by,} count(DISTINCT hello), count(*) AS connections, sum(accepted), sum(rejected),"
    " sum(unknown), count(DISTINCT client), " ISO("min(start_ns)") ", " ISO(
        "max(start_ns)") ","
                         " min(flow_id) FROM connection GROUP BY {by,} ''"
                         " ORDER BY sum(accepted) DESC, connections DESC, {by,} ''";

static const struct page_column GROUPS_COLUMNS[] = {
    { "client_hellos", "ClientHellos", PAGE_COUNT },
    { "connections", NULL, PAGE_COUNT },
    { "accepted", NULL, PAGE_COUNT },
    { "rejected", NULL, PAGE_COUNT },
    { "unknown", NULL, PAGE_COUNT },
    { "clients", NULL, PAGE_COUNT },
    { "first_time", "first", PAGE_TIME },
    { "last_time", "last", PAGE_TIME },
    { "example", NULL, PAGE_ID },
};

/* ---- tickets used again, each time with a ClientHello of its own ---- */

static const char TICKETS_SQL[] =
    "SELECT min(sni), count(DISTINCT client_hello_hash) AS uses,"
    " count(DISTINCT CASE WHEN resumed_by IS NOT NULL THEN client_hello_hash END),"
    " count(DISTINCT CASE early_data WHEN 'accepted' THEN client_hello_hash END),"
    " count(DISTINCT ifnull(client_prefix, client_ip)), group_concat(DISTINCT site),"
    " " ISO("min(start_epoch_ns)") ", " ISO(
        "max(start_epoch_ns)") ", min(flow_id),"
                               " psk_identity_hash FROM reused"
                               " GROUP BY psk_identity_hash HAVING uses > 1"
                               " ORDER BY uses DESC, psk_identity_hash LIMIT 50";

static const struct page_column TICKETS_COLUMNS[] = {
    { "sni", NULL, PAGE_WORD },           { "uses", NULL, PAGE_COUNT },
    { "resumed", NULL, PAGE_COUNT },      { "early_data_accepted", "accepted", PAGE_COUNT },
    { "clients", NULL, PAGE_COUNT },      { "sites", NULL, PAGE_WORD },
    { "first_time", "first", PAGE_TIME }, { "last_time", "last", PAGE_TIME },
    { "example", NULL, PAGE_ID },         { "psk_identity_hash", "ticket", PAGE_DIGEST },
};

static const struct page_query HELLOS =
    PAGE_QUERY("replays", NULL, false, HELLOS_SQL, HELLOS_COLUMNS);
static const struct page_query GROUPS =
    PAGE_QUERY("replays", NULL, true, GROUPS_SQL, GROUPS_COLUMNS);
static const struct page_query TICKETS =
    PAGE_QUERY("ticket_reuse", "Apart from them: tickets used again, with a new ClientHello", false,
               TICKETS_SQL, TICKETS_COLUMNS);

/* ---- what it rests on ---- */

enum number {
    FLOWS,       /* with ClientHello and ServerHello */
    CONNECTIONS, /* of these; some were captured more than once */
    REPEATED,    /* ClientHellos on more than one of them */
    REPEATED_WITH_EARLY_DATA,
    ACCEPTED_TWICE,
    UNCLEAR, /* ClientHellos that came from two ports, one of which shows no answer */
    NO_HELLO,
    NO_ANSWER,
    POINTS,
    REUSED_TICKETS,
    NUMBER_COUNT
};

/* A ClientHello that came once is one connection if it was answered, and nothing else. */
static const char NUMBERS_SQL[] =
    ", answer AS (SELECT client_hello_hash AS hello, server_random_hash AS random,"
    " count(*) AS flows, max(early_data IS 'accepted') AS accepted,"
    " max(early_data IS NOT 'not_offered') AS offered,"
    " count(DISTINCT client_ip || ' ' || client_port) AS clients FROM again"
    " GROUP BY hello, random),"
    " hello AS (SELECT sum(CASE WHEN random IS NOT NULL THEN flows END) AS flows,"
    " count(random) AS connections, count(random) > 1 AS repeated, max(offered) AS offered,"
    " sum(CASE WHEN random IS NOT NULL THEN accepted END) AS accepted,"
    " count(random) < 2 AND count(*) > count(random) AND sum(clients) > 1 AS unclear"
    " FROM answer GROUP BY hello),"
    " twice AS MATERIALIZED (SELECT ifnull(sum(flows), 0) AS flows,"
    " ifnull(sum(connections), 0) AS connections, sum(repeated) AS repeated,"
    " sum(repeated AND offered) AS repeated_offered,"
    " sum(repeated AND accepted > 1) AS accepted_twice, sum(unclear) AS unclear FROM hello),"
    " whole AS MATERIALIZED (SELECT"
    " sum(client_hello_hash IS NOT NULL AND server_random_hash IS NOT NULL) AS flows,"
    " sum(client_hello_hash IS NULL) AS no_hello,"
    " sum(client_hello_hash IS NOT NULL AND server_random_hash IS NULL) AS no_answer FROM ours)"
    " SELECT whole.flows, whole.flows - twice.flows + twice.connections, repeated,"
    " repeated_offered, accepted_twice, unclear, no_hello, no_answer,"
    " (SELECT count(DISTINCT point) FROM capture"
    " WHERE capture_id IN (SELECT capture_id FROM ours)),"
    " (SELECT count(*) FROM (SELECT 1 FROM reused GROUP BY psk_identity_hash"
    " HAVING count(DISTINCT client_hello_hash) > 1)) FROM twice, whole";

static void add_verdict(struct page *p, const int64_t *n)
{
    page_text(p, "%lld replay%s of early data seen at these points, %lld of them accepted twice.",
              (long long)n[REPEATED_WITH_EARLY_DATA], n[REPEATED_WITH_EARLY_DATA] == 1 ? "" : "s",
              (long long)n[ACCEPTED_TWICE]);
    if (n[ACCEPTED_TWICE] > 0)
        page_warning(p, "The server took the same early data more than once: what it asked for may"
                        " have been done more than once.");
}

static void add_facts(struct page *p, const int64_t *n)
{
    struct text words = { 0 };
    text_addf(&words, "connections with ClientHello and ServerHello, at %lld capture point%s",
              (long long)n[POINTS], n[POINTS] == 1 ? "" : "s");
    page_add_count(p, "Rests on", n[CONNECTIONS], text_string(&words));
    text_done(&words);
    page_add_count(p, "Counted once", n[FLOWS] - n[CONNECTIONS],
                   "flows that are another sight of a connection: a second point, a mirror port");
    page_add_count(p, "Unclear", n[UNCLEAR],
                   "ClientHellos that came again, but whose answers were not all captured");
    page_add_count(p, "Without early data", n[REPEATED] - n[REPEATED_WITH_EARLY_DATA],
                   "ClientHellos that came again; nothing is done twice by them");
    page_add_count(p, "Tickets used again", n[REUSED_TICKETS],
                   "by new ClientHellos; keys agreed on outside of TLS look the same");
    page_add_count(p, "Left out", n[NO_HELLO], "TLS flows without a complete ClientHello");
    page_add_count(p, "Left out", n[NO_ANSWER], "flows without a ServerHello");
}

enum status replays_fill(struct page *p, const struct selection *s, struct text *error)
{
    struct overview overview;
    int64_t numbers[NUMBER_COUNT] = { 0 };
    enum status status = overview_count(s, &overview, error);
    if (status == STATUS_OK)
        status = page_keep(s, "again", AGAIN_SQL, NULL, error);
    if (status == STATUS_OK)
        status = page_keep(s, "reused", REUSED_SQL, NULL, error);
    if (status == STATUS_OK)
        status = page_read_numbers(s, NUMBERS_SQL, numbers, NUMBER_COUNT, error);
    if (status != STATUS_OK)
        return status;
    overview_add_subject(&overview, s, p);
    add_verdict(p, numbers);
    status = page_add_query(p, s, s->by_count > 0 ? &GROUPS : &HELLOS, error);
    if (status == STATUS_OK)
        status = page_add_query(p, s, &TICKETS, error);
    add_facts(p, numbers);
    overview_add_legs(&overview, s, p);
    return status;
}
