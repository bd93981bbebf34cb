/* SPDX-License-Identifier: Apache-2.0 */
#include "flows.h"

#include "result.h"

/* For programs: what tells a flow, and what was found. */
static const char DATA_COLUMNS[] =
    "SELECT flow_id, flow_uid, community_id,"
    " strftime('%Y-%m-%dT%H:%M:%S', start_epoch_ns / 1000000000, 'unixepoch')"
    " || printf('.%09dZ', start_epoch_ns % 1000000000) AS start_time, client_ip, client_port,"
    " client_region, server_ip, server_port, site, sni, tls_version, handshake, handshake_basis,"
    " outcome, failure, early_data, answered_early, response_ns / 1e6 AS response_ms,"
    " perceived_ns / 1e6 AS perceived_ms, rtt_ns / 1e6 AS rtt_ms, round_trips FROM selected";

/* For people: what fits into a line. Early data that was not offered is no news. */
#define TABLE_COLUMNS(response)                                                                    \
    "SELECT flow_id AS flow,"                                                                      \
    " strftime(:date || '%H:%M:%S', start_epoch_ns / 1000000000, 'unixepoch')"                     \
    " || printf('.%03d', start_epoch_ns / 1000000 % 1000) AS time, client_ip AS client,"           \
    " ifnull(sni, server_ip || ':' || server_port) AS server,"                                     \
    " replace(tls_version, 'TLSv', '') AS tls,"                                                    \
    " CASE WHEN outcome = 'failed' THEN 'failed: ' || ifnull(failure, '') ELSE handshake END"      \
    " AS handshake, nullif(early_data, 'not_offered') AS early_data," response                     \
    " round(perceived_ns / 1e6, 1) AS felt, round(round_trips, 1) AS trips FROM selected"

enum { NARROW = 90 }; /* columns of a terminal on which the time at the capture point has no room */

static const char *columns_for(struct table_style style)
{
    if (style.format != TABLE_ALIGNED)
        return DATA_COLUMNS;
    return style.width > 0 && style.width < NARROW
               ? TABLE_COLUMNS("")
               : TABLE_COLUMNS(" round(response_ns / 1e6, 1) AS response,");
}

/* The date before each time, where the flows may be of several days. */
static const char *date_format(const struct selection *s)
{
    int64_t day_ns = 86400 * INT64_C(1000000000);
    int64_t first_ns = s->since_ns > s->data.first_ns ? s->since_ns : s->data.first_ns;
    int64_t last_ns = s->until_ns < s->data.last_ns ? s->until_ns : s->data.last_ns;
    return first_ns / day_ns == last_ns / day_ns ? "" : "%m-%d ";
}

static enum status open_flows(const struct selection *s, const struct flows_options *o,
                              struct query **ret_query, struct text *error)
{
    struct text sql = { 0 };
    text_addf(&sql, "%s%s ORDER BY start_epoch_ns, flow_id LIMIT :limit", columns_for(o->style),
              o->community_id ? " WHERE community_id = :community_id" : "");
    struct query *q = NULL;
    enum status status =
        sql.failed ? STATUS_NO_MEMORY : selection_query(s, text_string(&sql), &q, error);
    text_done(&sql);
    if (status == STATUS_OK)
        status = query_bind_integer(q, ":limit", o->limit < 0 ? FLOWS_LIMIT_DEFAULT : o->limit);
    if (status == STATUS_OK && o->style.format == TABLE_ALIGNED)
        status = query_bind_text(q, ":date", text_bytes(date_format(s)));
    if (status == STATUS_OK && o->community_id)
        status = query_bind_text(q, ":community_id", text_bytes(o->community_id));
    *ret_query = q;
    return status;
}

enum status command_flows(struct database *database, const struct flows_options *options, FILE *out,
                          struct text *error)
{
    struct selection selection;
    struct query *q = NULL;
    enum status status = selection_init(&selection, database, &options->selection, "", error);
    if (status == STATUS_OK)
        status = open_flows(&selection, options, &q, error);
    if (status == STATUS_OK)
        status = result_write(q, options->style, out);
    query_close(q);
    selection_done(&selection);
    return result_end(status, database, out, error);
}

enum status command_sql(struct database *database, const char *sql, struct table_style style,
                        FILE *out, struct text *error)
{
    struct query *q = NULL;
    enum status status = query_open(database, sql, &q);
    if (status == STATUS_OK)
        status = result_write(q, style, out);
    query_close(q);
    return result_end(status, database, out, error);
}
