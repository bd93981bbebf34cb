/* SPDX-License-Identifier: Apache-2.0 */
#include "merge.h"

#include "flow_row.h" /* SCHEMA_APPLICATION_ID, SCHEMA_VERSION */

#include <errno.h>
#include <sqlite3.h>
#include <unistd.h>

enum { WAIT_FOR_LOCK_MS = 5000 };

struct merge {
    sqlite3 *db; /* main is the one that grows, theirs the one that is read */
    const char *from;
    struct text columns; /* of flow but flow_id and capture_id, with commas between */
    struct text renewed; /* "x = excluded.x, ..." of the same */
    struct text *error;
};

static enum status fail(const struct merge *m, enum status status, const char *why)
{
    text_clear(m->error);
    text_addf(m->error, "%s: %s", m->from, why);
    return status;
}

static enum status fail_sql(const struct merge *m)
{
    switch (sqlite3_errcode(m->db)) {
    case SQLITE_NOMEM:
        return fail(m, STATUS_NO_MEMORY, "out of memory");
    case SQLITE_BUSY:
        return fail(m, STATUS_IO, "a database is in use by another program; try again later");
    case SQLITE_NOTADB:
        return fail(m, STATUS_REFUSED, "not a firstflight database");
    default:
        return fail(m, STATUS_IO, sqlite3_errmsg(m->db));
    }
}

static enum status execute(const struct merge *m, const char *sql)
{
    return sqlite3_exec(m->db, sql, NULL, NULL, NULL) == SQLITE_OK ? STATUS_OK : fail_sql(m);
}

/* Runs a query of one number. */
static enum status ask(const struct merge *m, const char *sql, int64_t *ret_value)
{
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(m->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return fail_sql(m);
    bool has = sqlite3_step(statement) == SQLITE_ROW;
    *ret_value = has ? sqlite3_column_int64(statement, 0) : 0;
    enum status status = has ? STATUS_OK : fail_sql(m);
    sqlite3_finalize(statement);
    return status;
}

static enum status attach(const struct merge *m)
{
    sqlite3_stmt *statement;
    if (access(m->from, R_OK) != 0)
        return fail(m, STATUS_IO, strerror(errno));
    if (sqlite3_prepare_v2(m->db, "ATTACH ?1 AS theirs", -1, &statement, NULL) != SQLITE_OK)
        return fail_sql(m);
    sqlite3_bind_text(statement, 1, m->from, -1, SQLITE_STATIC);
    enum status status = sqlite3_step(statement) == SQLITE_DONE ? STATUS_OK : fail_sql(m);
    sqlite3_finalize(statement);
    return status;
}

static enum status check_version(const struct merge *m)
{
    int64_t id = 0, version = 0;
    enum status status = ask(m, "PRAGMA theirs.application_id", &id);
    if (status == STATUS_OK)
        status = ask(m, "PRAGMA theirs.user_version", &version);
    if (status != STATUS_OK)
        return status;
    if (id != SCHEMA_APPLICATION_ID)
        return fail(m, STATUS_REFUSED, "not a firstflight database");
    if (version != SCHEMA_VERSION)
        return fail(m, STATUS_REFUSED,
                    version > SCHEMA_VERSION ? "written by a newer firstflight; merge with that one"
                                             : "its schema version is none that was ever released");
    return STATUS_OK;
}

/* Names come from our own schema, not from the other file. */
static enum status list_columns(struct merge *m)
{
    sqlite3_stmt *statement;
    static const char SQL[] = "SELECT name FROM pragma_table_info('flow', 'main')"
                              " WHERE name NOT IN ('flow_id', 'capture_id')";
    if (sqlite3_prepare_v2(m->db, SQL, -1, &statement, NULL) != SQLITE_OK)
        return fail_sql(m);
    int code;
    while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(statement, 0);
        text_addf(&m->columns, "%s%s", m->columns.len == 0 ? "" : ", ", name);
        text_addf(&m->renewed, ", %s = excluded.%s", name, name);
    }
    enum status status = code == SQLITE_DONE ? STATUS_OK : fail_sql(m);
    sqlite3_finalize(statement);
    return m->columns.failed || m->renewed.failed ? STATUS_NO_MEMORY : status;
}

/*
 * Captures that are not there yet, and which of ours each of theirs is. Columns are in the same
 * order in every file of this version.
 */
static const char CAPTURES_SQL[] =
    "CREATE TEMP TABLE new_capture AS SELECT * FROM theirs.capture AS t WHERE NOT EXISTS"
    " (SELECT 1 FROM main.capture AS o"
    "  WHERE o.content_hash = t.content_hash AND o.point = t.point);"
    "UPDATE temp.new_capture SET capture_id = capture_id +"
    " (SELECT ifnull(max(capture_id), 0) FROM main.capture);"
    "INSERT INTO main.capture SELECT * FROM temp.new_capture ORDER BY capture_id;"
    "CREATE TEMP TABLE capture_pair AS SELECT t.capture_id AS theirs, o.capture_id AS ours,"
    " n.capture_id IS NOT NULL AS added FROM theirs.capture AS t"
    " JOIN main.capture AS o ON o.content_hash = t.content_hash AND o.point = t.point"
    " LEFT JOIN temp.new_capture AS n ON n.capture_id = o.capture_id;"
    "CREATE UNIQUE INDEX temp.pair_of_theirs ON capture_pair (theirs);"
    "INSERT INTO main.drop_count SELECT p.ours, d.reason, d.packets FROM theirs.drop_count AS d"
    " JOIN temp.capture_pair AS p ON p.theirs = d.capture_id WHERE p.added;"
    "INSERT INTO main.half_open SELECT p.ours, h.server_ip, h.server_port, h.second_epoch, h.syns,"
    " h.client_prefixes FROM theirs.half_open AS h"
    " JOIN temp.capture_pair AS p ON p.theirs = h.capture_id WHERE p.added;";

static const char AFTER_FLOWS_SQL[] =
    "INSERT INTO main.flow_facts (flow_id, facts) SELECT o.flow_id, f.facts"
    " FROM theirs.flow_facts AS f JOIN theirs.flow AS t ON t.flow_id = f.flow_id"
    " JOIN main.flow AS o ON o.flow_uid = t.flow_uid AND o.end_at_ns <= t.end_at_ns"
    " WHERE true ON CONFLICT (flow_id) DO UPDATE SET facts = excluded.facts"
    " WHERE facts <> excluded.facts;"
    "INSERT OR IGNORE INTO main.server_profile SELECT * FROM theirs.server_profile;";

/*
 * Where the next run of a point goes on. A point that only they have is theirs as it is; of one
 * that both have, ours stays, but not the state of flows of which they saw more: that would take
 * away what they saw.
 */
static const char OPEN_SQL[] =
    "INSERT INTO main.open_point SELECT p.ours, c.ours, t.until_epoch_ns, t.runs, t.version,"
    " t.state FROM theirs.open_point AS t JOIN temp.capture_pair AS p ON p.theirs = t.point_id"
    " JOIN temp.capture_pair AS c ON c.theirs = t.capture_id WHERE p.added AND NOT EXISTS"
    " (SELECT 1 FROM main.capture AS o JOIN main.capture AS n ON n.capture_id = p.ours"
    "  WHERE o.point = n.point AND o.capture_id < n.capture_id);"
    "INSERT INTO main.open_flow SELECT p.ours, o.flow_id, t.last_packet_epoch_ns, t.version,"
    " t.state FROM theirs.open_flow AS t JOIN temp.capture_pair AS p ON p.theirs = t.point_id"
    " JOIN main.open_point AS q ON q.point_id = p.ours"
    " JOIN theirs.flow AS f ON f.flow_id = t.flow_id"
    " JOIN main.flow AS o ON o.flow_uid = f.flow_uid WHERE p.added;"
    "UPDATE main.open_point SET until_epoch_ns = max(until_epoch_ns, ifnull((SELECT"
    " max(t.until_epoch_ns) FROM theirs.open_point AS t"
    " JOIN theirs.capture AS c ON c.capture_id = t.point_id"
    " JOIN main.capture AS o ON o.capture_id = open_point.point_id"
    " WHERE c.point = o.point AND c.site IS o.site AND c.host IS o.host"
    " AND c.region IS o.region AND c.labels IS o.labels), 0));"
    "DELETE FROM main.open_flow WHERE last_packet_epoch_ns < (SELECT start_epoch_ns + end_at_ns"
    " FROM main.flow AS f WHERE f.flow_id = open_flow.flow_id);";

static enum status copy_flows(const struct merge *m, struct merge_counts *counts)
{
    struct text sql = { 0 };
    int64_t before = 0, after = 0, theirs = 0;
    text_addf(
        &sql,
        "INSERT INTO main.flow (capture_id, %s) SELECT (SELECT ours FROM temp.capture_pair"
        " WHERE theirs = f.capture_id), %s FROM theirs.flow AS f WHERE true ORDER BY f.flow_id"
        " ON CONFLICT (flow_uid) DO UPDATE SET capture_id = excluded.capture_id%s"
        " WHERE excluded.end_at_ns > end_at_ns",
        text_string(&m->columns), text_string(&m->columns), text_string(&m->renewed));
    enum status status = sql.failed ? fail(m, STATUS_NO_MEMORY, "out of memory") : STATUS_OK;
    if (status == STATUS_OK)
        status = ask(m, "SELECT count(*) FROM main.flow", &before);
    if (status == STATUS_OK)
        status = ask(m, "SELECT count(*) FROM theirs.flow", &theirs);
    if (status == STATUS_OK)
        status = execute(m, text_string(&sql));
    int64_t changed = sqlite3_changes64(m->db);
    if (status == STATUS_OK)
        status = ask(m, "SELECT count(*) FROM main.flow", &after);
    counts->flows_added = (uint64_t)(after - before);
    counts->flows_renewed = (uint64_t)(changed - (after - before));
    counts->flows_known = (uint64_t)(theirs - changed);
    text_done(&sql);
    return status;
}

/* What is stored of addresses and names (table setting) must be the same in both, or nothing yet.
 */
static enum status settle_settings(const struct merge *m)
{
    static const char TAKE_SQL[] = "INSERT INTO main.setting SELECT * FROM theirs.setting"
                                   " WHERE NOT EXISTS (SELECT 1 FROM main.setting)";
    static const char DIFFER_SQL[] =
        "SELECT EXISTS (SELECT 1 FROM theirs.setting) AND"
        " (EXISTS (SELECT * FROM theirs.setting EXCEPT SELECT * FROM main.setting)"
        "  OR EXISTS (SELECT * FROM main.setting EXCEPT SELECT * FROM theirs.setting))";
    int64_t differ = 0;
    enum status status = execute(m, TAKE_SQL);
    if (status == STATUS_OK)
        status = ask(m, DIFFER_SQL, &differ);
    if (status == STATUS_OK && differ != 0)
        return fail(m, STATUS_REFUSED,
                    "stores addresses or names in another way (ingest --client-addr, --sni), or"
                    " hashes them with another key");
    return status;
}

static enum status copy_all(struct merge *m, struct merge_counts *counts)
{
    int64_t added = 0, captures = 0;
    enum status status = settle_settings(m);
    if (status == STATUS_OK)
        status = execute(m, CAPTURES_SQL);
    if (status == STATUS_OK)
        status = ask(m, "SELECT count(*) FROM temp.new_capture", &added);
    if (status == STATUS_OK)
        status = ask(m, "SELECT count(*) FROM theirs.capture", &captures);
    counts->captures_added = (uint64_t)added;
    counts->captures_known = (uint64_t)(captures - added);
    if (status == STATUS_OK)
        status = copy_flows(m, counts);
    if (status == STATUS_OK)
        status = execute(m, AFTER_FLOWS_SQL);
    return status == STATUS_OK ? execute(m, OPEN_SQL) : status;
}

/* The other file may be anybody's: no function of its views or triggers is run. */
static enum status open_both(struct merge *m, const char *database)
{
    if (sqlite3_open_v2(database, &m->db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
        return m->db == NULL ? STATUS_NO_MEMORY : fail_sql(m);
    sqlite3_busy_timeout(m->db, WAIT_FOR_LOCK_MS);
    sqlite3_db_config(m->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    sqlite3_db_config(m->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    enum status status = attach(m);
    return status == STATUS_OK ? check_version(m) : status;
}

enum status merge_database(const char *database, const char *from, struct merge_counts *ret_counts,
                           struct text *error)
{
    struct merge m = { .from = from, .error = error };
    *ret_counts = (struct merge_counts){ 0 };
    enum status status = open_both(&m, database);
    if (status == STATUS_OK)
        status = list_columns(&m);
    if (status == STATUS_OK)
        status = execute(&m, "BEGIN IMMEDIATE");
    if (status == STATUS_OK) {
        status = copy_all(&m, ret_counts);
        if (status == STATUS_OK)
            status = execute(&m, "COMMIT");
        else
            sqlite3_exec(m.db, "ROLLBACK", NULL, NULL, NULL);
    }
    text_done(&m.columns);
    text_done(&m.renewed);
    sqlite3_close(m.db);
    return status;
}
