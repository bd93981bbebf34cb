/* SPDX-License-Identifier: Apache-2.0 */
#include "show.h"

#include "result.h"

#include <stdlib.h>

enum { UID_DIGITS = 32, UID_DIGITS_MIN = 4, ID_DIGITS_MAX = 18 };

static enum status failed(struct database *d, enum status status, struct text *error)
{
    text_clear(error);
    text_add(error, database_error(d));
    return status;
}

/* ---- which flow ---- */

static bool all_of(const char *text, const char *characters)
{
    return *text && text[strspn(text, characters)] == '\0';
}

static enum status not_found(const char *flow, const char *why, struct text *error)
{
    text_clear(error);
    text_add(error, "flow '");
    text_add_safe(error, text_bytes(flow), false);
    text_addf(error, "' %s", why);
    return STATUS_USAGE;
}

/* Ids of the flows that are meant, two at most: a second one says that there are more. */
struct found {
    int64_t ids[2];
    size_t count;
};

static enum status find(struct database *d, const char *sql, const char *parameter,
                        const char *value, struct found *ret_found, struct text *error)
{
    struct query *q = NULL;
    enum status status = query_open(d, sql, &q);
    if (status == STATUS_OK)
        status = query_bind_text(q, parameter, text_bytes(value));
    ret_found->count = 0;
    while (status == STATUS_OK && ret_found->count < 2 && (status = query_next(q)) == STATUS_OK)
        ret_found->ids[ret_found->count++] = query_cell(q, 0).integer;
    query_close(q);
    return status == STATUS_OK || status == STATUS_END ? STATUS_OK : failed(d, status, error);
}

static enum status resolve(struct database *d, const char *flow, int64_t *ret_flow_id,
                           struct text *error)
{
    size_t len = strlen(flow);
    bool is_id = all_of(flow, "0123456789") && len <= ID_DIGITS_MAX;
    bool is_uid =
        all_of(flow, "0123456789abcdefABCDEF") && len >= UID_DIGITS_MIN && len <= UID_DIGITS;
    if (!is_id && !is_uid)
        return not_found(flow, "is no flow_id and no flow_uid", error);
    struct found found = { 0 };
    enum status status = STATUS_OK;
    if (is_id)
        status = find(d, "SELECT flow_id FROM flow WHERE flow_id = CAST(:flow AS INTEGER)", ":flow",
                      flow, &found, error);
    /* A range, so that the index on flow_uid finds the beginning of one. */
    if (status == STATUS_OK && is_uid && found.count == 0)
        status = find(d,
                      "SELECT flow_id FROM flow WHERE flow_uid >= lower(:uid)"
                      " AND flow_uid < lower(:uid) || 'g' LIMIT 2",
                      ":uid", flow, &found, error);
    if (status != STATUS_OK)
        return status;
    if (found.count == 0)
        return not_found(flow, "is not in the database; firstflight flows finds some", error);
    if (found.count > 1)
        return not_found(flow, "begins more than one flow_uid; give more digits", error);
    *ret_flow_id = found.ids[0];
    return STATUS_OK;
}

/* ---- its row: the columns that the ladder shows ---- */

#define COLUMN_NAME(column) #column ", "

static const char ROW_SQL[] = "SELECT " LADDER_COLUMNS(
    COLUMN_NAME, COLUMN_NAME, COLUMN_NAME) "start_epoch_ns"
                                           " FROM flow WHERE flow_id = :flow_id";

static struct row_integer integer_of(struct cell cell)
{
    return (struct row_integer){ cell.type == CELL_INTEGER, cell.integer };
}

static struct row_real real_of(struct cell cell)
{
    return (struct row_real){ cell.type == CELL_REAL, cell.real };
}

static struct row_text text_of(struct cell cell)
{
    if (cell.type != CELL_TEXT)
        return (struct row_text){ 0 };
    return (struct row_text){ (const char *)cell.bytes.at, cell.bytes.len };
}

/* Views in the row live as long as the query stays where it is. */
static void read_row(struct query *q, struct flow_row *ret_row)
{
    size_t column = 0;
    *ret_row = (struct flow_row){ 0 };
#define READ_INTEGER(name) ret_row->name = integer_of(query_cell(q, column++));
#define READ_REAL(name) ret_row->name = real_of(query_cell(q, column++));
#define READ_TEXT(name) ret_row->name = text_of(query_cell(q, column++));
    LADDER_COLUMNS(READ_INTEGER, READ_REAL, READ_TEXT)
#undef READ_INTEGER
#undef READ_REAL
#undef READ_TEXT
}

/* Opens a query about one flow and steps to its row; *ret_has: there is one. */
static enum status open_row(struct database *d, const char *sql, int64_t flow_id,
                            struct query **ret_query, bool *ret_has, struct text *error)
{
    enum status status = query_open(d, sql, ret_query);
    if (status == STATUS_OK)
        status = query_bind_integer(*ret_query, ":flow_id", flow_id);
    if (status == STATUS_OK)
        status = query_next(*ret_query);
    *ret_has = status == STATUS_OK;
    return status == STATUS_OK || status == STATUS_END ? STATUS_OK : failed(d, status, error);
}

/* ---- what else was stored ---- */

static enum status read_facts(struct database *d, int64_t flow_id, struct facts *ret_facts,
                              bool *ret_has, struct text *error)
{
    struct query *q = NULL;
    enum status status = open_row(d, "SELECT facts FROM flow_facts WHERE flow_id = :flow_id",
                                  flow_id, &q, ret_has, error);
    *ret_facts = (struct facts){ 0 };
    if (status == STATUS_OK && *ret_has)
        *ret_has = facts_from_json(query_cell(q, 0).bytes, ret_facts);
    query_close(q);
    return status;
}

static enum status read_server(struct database *d, int64_t flow_id,
                               struct server_profile_row *ret_server, bool *ret_has,
                               struct text *error)
{
    struct query *q = NULL;
    enum status status = open_row(
        d,
        "SELECT p.ticket_len, p.encrypted_extensions_len FROM flow AS f"
        " JOIN server_profile AS p ON p.server_ip = f.server_ip"
        " AND p.server_port = f.server_port AND p.sni = ifnull(f.sni, '') AND p.all_names = 0"
        " WHERE f.flow_id = :flow_id",
        flow_id, &q, ret_has, error);
    *ret_server = (struct server_profile_row){ 0 };
    if (status == STATUS_OK && *ret_has) {
        ret_server->ticket_len = integer_of(query_cell(q, 0));
        ret_server->encrypted_extensions_len = integer_of(query_cell(q, 1));
    }
    query_close(q);
    return status;
}

/* ---- all ---- */

static enum status draw(const struct flow_row *row, const struct facts *facts,
                        const struct server_profile_row *server, struct ladder_style style,
                        FILE *out)
{
    struct text text = { 0 };
    struct verdict verdict = { 0 };
    if (facts)
        verdict = judge(facts, NULL);
    ladder_draw(row, facts, facts ? &verdict : NULL, server, style, &text);
    enum status status = result_write_text(&text, out);
    text_done(&text);
    return status;
}

static enum status show(struct database *d, int64_t flow_id, struct query *row_query,
                        struct ladder_style style, FILE *out, struct text *error)
{
    struct flow_row row;
    struct facts facts = { 0 };
    struct server_profile_row server;
    bool has_facts = false, has_server = false;
    read_row(row_query, &row);
    enum status status = read_facts(d, flow_id, &facts, &has_facts, error);
    if (status == STATUS_OK)
        status = read_server(d, flow_id, &server, &has_server, error);
    if (status == STATUS_OK)
        status = draw(&row, has_facts ? &facts : NULL, has_server ? &server : NULL, style, out);
    facts_done(&facts);
    return status;
}

enum status command_show(struct database *database, const char *flow, struct ladder_style style,
                         FILE *out, struct text *error)
{
    int64_t flow_id;
    struct query *q = NULL;
    bool has = false;
    enum status status = resolve(database, flow, &flow_id, error);
    if (status == STATUS_OK)
        status = open_row(database, ROW_SQL, flow_id, &q, &has, error);
    if (status == STATUS_OK && has)
        status = show(database, flow_id, q, style, out, error);
    query_close(q);
    return result_end(status, database, out, error);
}
