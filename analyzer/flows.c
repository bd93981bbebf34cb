/* SPDX-License-Identifier: Apache-2.0 */
#include "flows.h"

#include "result.h"

/* An IPv6 address is put into brackets, so that its port can be told from it. */
#define ENDPOINT(side)                                                                             \
    "CASE WHEN " side "_ip LIKE '%:%' THEN '[' || " side "_ip || ']' ELSE ifnull(" side            \
    "_ip, '') END || ':' || " side "_port"

static const char COLUMNS[] =
    "SELECT flow_id AS id,"
    " strftime('%Y-%m-%d %H:%M:%S', start_epoch_ns / 1000000000, 'unixepoch')"
    " || printf('.%03d', start_epoch_ns / 1000000 % 1000) AS time, " ENDPOINT(
        "client") " AS client, " ENDPOINT("server") " AS server, sni, replace(tls_version, 'TLSv', "
                                                    "'') AS tls,"
                                                    " handshake, nullif(early_data, 'not_offered') "
                                                    "AS early_data, response_ns / 1e6"
                                                    " AS response_ms, perceived_ns / 1e6 AS "
                                                    "perceived_ms, round_trips AS trips"
                                                    " FROM selected";

/* A failed database has the text; a failed output has none, the caller knows its name. */
static enum status finish(struct database *database, enum status status, struct text *error)
{
    if (status == STATUS_USAGE) {
        text_clear(error);
        text_add(error, database_error(database));
    }
    return status;
}

static enum status open_flows(const struct selection *s, const struct flows_options *o,
                              struct query **ret_query, struct text *error)
{
    struct text sql = { 0 };
    text_addf(&sql, "%s%s ORDER BY start_epoch_ns, flow_id LIMIT :limit", COLUMNS,
              o->community_id ? " WHERE community_id = :community_id" : "");
    struct query *q = NULL;
    enum status status =
        sql.failed ? STATUS_NO_MEMORY : selection_query(s, text_string(&sql), &q, error);
    text_done(&sql);
    if (status == STATUS_OK)
        status = query_bind_integer(q, ":limit", o->limit < 0 ? FLOWS_LIMIT_DEFAULT : o->limit);
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
        status = finish(database, result_write(q, options->style, out), error);
    query_close(q);
    selection_done(&selection);
    return status;
}

enum status command_sql(struct database *database, const char *sql, struct table_style style,
                        FILE *out, struct text *error)
{
    struct query *q = NULL;
    enum status status = query_open(database, sql, &q);
    if (status != STATUS_OK) {
        text_clear(error);
        text_add(error, database_error(database));
        return status;
    }
    status = finish(database, result_write(q, style, out), error);
    query_close(q);
    return status;
}
