/* SPDX-License-Identifier: Apache-2.0 */
#include "show.h"

#include "carry.h"
#include "extract.h"
#include "page.h"
#include "profile_json.h"
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
    return (struct row_text){ .at = (const char *)cell.bytes.at, .len = cell.bytes.len };
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
    if (status == STATUS_OK && *ret_has) {
        status = facts_from_json(query_cell(q, 0).bytes, ret_facts);
        *ret_has = status == STATUS_OK;
    }
    query_close(q);
    return status == STATUS_REFUSED ? STATUS_OK : status;
}

/* Of the texts that facts_from_json() leaves to the row, the one that is drawn. */
static enum status take_key_name(const struct flow_row *row, struct facts *facts)
{
    struct row_text name = row->ticket_key_name;
    if (name.at == NULL)
        return STATUS_OK;
    facts->ticket_key_name = strndup(name.at, name.len);
    return facts->ticket_key_name != NULL ? STATUS_OK : STATUS_NO_MEMORY;
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

/*
 * Everything that was learned of a server, as it was when its flows were judged: of the flow's
 * server name and of all names of the address.
 */
static enum status learn_row(struct query *q, struct profiles *profiles)
{
    static const int64_t LIMIT_NS = INT64_MAX / 2;
    struct text ip = { 0 }, name = { 0 };
    text_add_bytes(&ip, query_cell(q, 0).bytes);
    text_add_bytes(&name, query_cell(q, 2).bytes);
    unsigned level;
    struct profile profile = {
        .is_wide = query_cell(q, 3).integer != 0,
        .server.port = (uint16_t)query_cell(q, 1).integer,
        .first_ns = query_cell(q, 4).integer,
        .last_ns = query_cell(q, 5).integer,
        .flows = (uint64_t)query_cell(q, 6).integer,
    };
    if (!profile.is_wide && name.len > 0)
        profile.server_name = name.at;
    bool whole = profile.first_ns <= profile.last_ns && profile.first_ns > -LIMIT_NS &&
                 profile.last_ns < LIMIT_NS && query_cell(q, 6).integer >= 0 &&
                 address_parse(text_string(&ip), &profile.server.address);
    enum status status =
        whole ? profile_from_json(query_cell(q, 7).bytes, &profile, &level) : STATUS_REFUSED;
    if (status == STATUS_OK)
        status = profiles_merge(profiles, &profile, level);
    else if (status == STATUS_REFUSED)
        status = STATUS_OK; /* one server is known less */
    if (ip.failed || name.failed)
        status = STATUS_NO_MEMORY;
    text_done(&ip);
    text_done(&name);
    return status;
}

/* Learns from what is known so far of a flow that goes on, where this program can read it. */
static enum status learn_open_flow(struct query *q, struct profiles *profiles)
{
    struct facts facts;
    if (query_cell(q, 0).integer != CARRY_VERSION ||
        !carry_flow_facts(query_cell(q, 1).bytes, &facts))
        return STATUS_OK;
    enum status status = profiles_learn(profiles, &facts);
    facts_done(&facts);
    return status;
}

/* Learns from what a query finds for a flow. */
static enum status learn_from(struct database *d, const char *sql, int64_t flow_id,
                              enum status (*learn)(struct query *, struct profiles *),
                              struct profiles *profiles, struct text *error)
{
    struct query *q = NULL;
    enum status status = query_open(d, sql, &q);
    if (status == STATUS_OK)
        status = query_bind_integer(q, ":flow_id", flow_id);
    while (status == STATUS_OK && (status = query_next(q)) == STATUS_OK)
        status = learn(q, profiles);
    query_close(q);
    return status == STATUS_END ? STATUS_OK : failed(d, status, error);
}

static const char PROFILES_SQL[] =
    "SELECT p.server_ip, p.server_port, p.sni, p.all_names, p.from_epoch_ns,"
    " p.to_epoch_ns, p.flows, p.learned FROM flow AS f"
    " JOIN server_profile AS p ON p.server_ip = f.server_ip"
    " AND p.server_port = f.server_port"
    " AND (p.all_names = 1 OR p.sni = ifnull(f.sni, ''))"
    " WHERE f.flow_id = :flow_id";

/* Flows of the same server that are open: server_profile holds them only once they are over. */
static const char OPEN_FLOWS_SQL[] = "SELECT o.version, o.state FROM flow AS f JOIN flow AS other"
                                     " ON other.server_ip = f.server_ip"
                                     " AND other.server_port = f.server_port"
                                     " JOIN open_flow AS o ON o.flow_id = other.flow_id"
                                     " WHERE f.flow_id = :flow_id";

/* Judges as ingest did: by the flow's facts and what its server's other flows show. */
static enum status judge_again(struct database *d, int64_t flow_id, const struct facts *facts,
                               struct verdict *ret_verdict, struct text *error)
{
    struct profiles *profiles = profiles_open();
    if (!profiles)
        return STATUS_NO_MEMORY;
    enum status status = learn_from(d, PROFILES_SQL, flow_id, learn_row, profiles, error);
    if (status == STATUS_OK)
        status = learn_from(d, OPEN_FLOWS_SQL, flow_id, learn_open_flow, profiles, error);
    profiles_settle(profiles);
    if (status == STATUS_OK)
        *ret_verdict = judge(facts, profiles_find(profiles, facts));
    profiles_close(profiles);
    return status;
}

/* ---- all ---- */

bool show_format_of(const char *name, enum show_format *ret_format)
{
    static const char *const names[] = { "text", "html", "svg" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0) {
            *ret_format = (enum show_format)i;
            return true;
        }
    }
    return false;
}

static enum status write_html(const struct flow_row *row, const struct facts *facts,
                              const struct verdict *verdict,
                              const struct server_profile_row *server, FILE *out)
{
    struct page *page = ladder_page(row, facts, verdict, server);
    enum status status = page_write(page, (struct table_style){ .format = TABLE_HTML }, out);
    page_close(page);
    return status;
}

static enum status draw(const struct flow_row *row, const struct facts *facts,
                        const struct verdict *verdict, const struct server_profile_row *server,
                        const struct show_options *options, FILE *out)
{
    if (options->format == SHOW_HTML)
        return write_html(row, facts, verdict, server, out);
    struct text text = { 0 };
    if (options->format == SHOW_SVG)
        ladder_add_svg(row, facts, verdict, server, &text);
    else
        ladder_draw(row, facts, verdict, server, options->ladder, &text);
    enum status status = result_write_text(&text, out);
    text_done(&text);
    return status;
}

static enum status show(struct database *d, int64_t flow_id, struct query *row_query,
                        const struct show_options *options, FILE *out, struct text *error)
{
    struct flow_row row;
    struct facts facts = { 0 };
    struct verdict verdict = { 0 };
    struct server_profile_row server;
    bool has_facts = false, has_server = false;
    read_row(row_query, &row);
    enum status status = read_facts(d, flow_id, &facts, &has_facts, error);
    if (status == STATUS_OK && has_facts)
        status = take_key_name(&row, &facts);
    if (status == STATUS_OK)
        status = read_server(d, flow_id, &server, &has_server, error);
    if (status == STATUS_OK && has_facts)
        status = judge_again(d, flow_id, &facts, &verdict, error);
    if (status == STATUS_OK)
        status = draw(&row, has_facts ? &facts : NULL, has_facts ? &verdict : NULL,
                      has_server ? &server : NULL, options, out);
    facts_done(&facts);
    return status;
}

/* Says what was written, and on failure or where captures are missing, which. */
static enum status write_packets(struct database *d, int64_t flow_id, const char *path, FILE *out,
                                 struct text *error)
{
    struct extract_result result;
    struct text words = { 0 };
    enum status status = extract_flow(d, flow_id, path, &result, error);
    if (status == STATUS_OK) {
        text_add_count(&words, (int64_t)result.packets);
        text_addf(&words, " packets of flow %lld from %zu capture%s\n", (long long)flow_id,
                  result.files_read, result.files_read == 1 ? "" : "s");
        status = result_write_text(&words, out);
    }
    if (result.notes.len > 0)
        text_addf(error, "%s%s", error->len > 0 ? ": " : "", text_string(&result.notes));
    if (status == STATUS_OK && result.notes.len > 0)
        status = STATUS_DAMAGED;
    text_done(&result.notes);
    text_done(&words);
    return status;
}

enum status command_show(struct database *database, const struct show_options *options, FILE *out,
                         struct text *error)
{
    int64_t flow_id;
    struct query *q = NULL;
    bool has = false;
    enum status status = resolve(database, options->flow, &flow_id, error);
    if (status == STATUS_OK && options->pcap)
        return result_end(write_packets(database, flow_id, options->pcap, out, error), database,
                          out, error);
    if (status == STATUS_OK)
        status = open_row(database, ROW_SQL, flow_id, &q, &has, error);
    if (status == STATUS_OK && has)
        status = show(database, flow_id, q, options, out, error);
    query_close(q);
    return result_end(status, database, out, error);
}
