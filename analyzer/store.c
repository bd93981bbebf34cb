/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a load survives everything and is still fast.
 *
 * One transaction with SQLite's rollback journal and full sync. A new database only grows, and
 * pages that grow need no entry in the journal, so a first load costs no more than without one,
 * whereas a write-ahead log would write everything twice. Kill -9, a full disk and a power cut
 * leave the journal, and the next program that opens the file restores the old content from it.
 *
 * Indexes are made from the finished table: kept up during a load of random keys they cost half of
 * its speed or, once they have outgrown the cache, nearly all. Therefore the first load finds
 * repeated flow_uids only when the unique index is made. Later loads find it there.
 *
 * The kernel would keep what a load writes in memory until the commit, which then waits for all of
 * it; so it is asked to begin with each stretch of the file as soon as that is written. That is no
 * more than a hint: what has to be on disk, and when, remains SQLite's business.
 */
#include "store.h"

#include "buffer.h"
#include "text.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    WAIT_FOR_LOCK_MS = 5000,
    CACHE_KIB = 16 * 1024, /* pages in memory: a load appends, so more only costs page faults */
    PAGE_SIZE = 16384,     /* larger than the default: rows are 600 bytes and read in ranges */
    ANALYSIS_ROWS = 1000,  /* per index: statistics cost the same at any size */
    STRETCH = 4 << 20,     /* of a file that is brought to disk at once */
};

/* What is bound already is left: from row to row most of 129 columns stay the same. */

static bool bind_integer(sqlite3_stmt *statement, int number, const struct row_integer *value,
                         const struct row_integer *bound)
{
    if (value->has == bound->has && (!value->has || value->value == bound->value))
        return true;
    return (value->has ? sqlite3_bind_int64(statement, number, value->value)
                       : sqlite3_bind_null(statement, number)) == SQLITE_OK;
}

static bool bind_real(sqlite3_stmt *statement, int number, const struct row_real *value,
                      const struct row_real *bound)
{
    if (!value->has && !bound->has)
        return true;
    return (value->has ? sqlite3_bind_double(statement, number, value->value)
                       : sqlite3_bind_null(statement, number)) == SQLITE_OK;
}

static bool is_printable_ascii(const struct row_text *text)
{
    unsigned others = 0; /* no branch inside: the compiler takes many characters at once */
    for (size_t i = 0; i < text->len; i++)
        others |= (unsigned char)(text->at[i] - 0x20) > 0x7e - 0x20;
    return others == 0;
}

/* Reads one character of UTF-8 (RFC 3629); 0, with one byte taken, when there is none. */
static uint32_t take_character(struct reader *r)
{
    static const uint32_t LEAST[] = { 0, 0, 0x80, 0x800, 0x10000 };
    uint8_t first = reader_u8(r);
    unsigned width = first < 0x80             ? 1
                     : (first & 0xe0) == 0xc0 ? 2
                     : (first & 0xf0) == 0xe0 ? 3
                     : (first & 0xf8) == 0xf0 ? 4
                                              : 0;
    if (width <= 1)
        return width == 1 ? first : 0;
    struct reader ahead = *r;
    uint32_t character = first & (0x7fu >> width);
    for (unsigned i = 1; i < width; i++) {
        uint8_t next = reader_u8(&ahead);
        if ((next & 0xc0) != 0x80)
            return 0;
        character = character << 6 | (next & 0x3f);
    }
    if (character < LEAST[width] || character > 0x10ffff ||
        (character >= 0xd800 && character <= 0xdfff))
        return 0;
    *r = ahead;
    return character;
}

/* Adds text of any origin, such as a path: what is no UTF-8 or a control character as \x1b. The
 * same in every locale, unlike what is made for a terminal. */
static void add_valid_text(struct text *t, struct bytes b)
{
    struct reader r = reader_of(b);
    while (r.rest.len > 0) {
        struct bytes from = r.rest;
        uint32_t character = take_character(&r);
        struct bytes taken = bytes_first(from, from.len - r.rest.len);
        if (character >= 0x20 && (character < 0x7f || character > 0x9f))
            text_add_bytes(t, taken);
        else
            for (size_t i = 0; i < taken.len; i++)
                text_addf(t, "\\x%02x", taken.at[i]);
    }
}

static bool bind_valid_text(sqlite3_stmt *statement, int number, const struct row_text *value)
{
    struct text valid = { 0 };
    add_valid_text(&valid, (struct bytes){ (const uint8_t *)value->at, value->len });
    bool ok =
        !valid.failed && sqlite3_bind_text64(statement, number, text_string(&valid), valid.len,
                                             SQLITE_TRANSIENT, SQLITE_UTF8) == SQLITE_OK;
    text_done(&valid);
    return ok;
}

/* The text must live until the statement has run; but for words it is bound anew for each run, as
 * there may be another one at the same place. */
static bool bind_text(sqlite3_stmt *statement, int number, const struct row_text *value,
                      const struct row_text *bound)
{
    if (value->at == bound->at && (value->at == NULL || (value->is_word && bound->is_word)))
        return true;
    if (value->at == NULL)
        return sqlite3_bind_null(statement, number) == SQLITE_OK;
    if (!value->is_word && !is_printable_ascii(value))
        return bind_valid_text(statement, number, value);
    return sqlite3_bind_text64(statement, number, value->at, value->len, SQLITE_STATIC,
                               SQLITE_UTF8) == SQLITE_OK;
}

#include "flow_row_sql.h"

/* Of statements whose bindings were cleared. */

static bool set_text(sqlite3_stmt *statement, int number, const struct row_text *value)
{
    return bind_text(statement, number, value, &(struct row_text){ 0 });
}

static bool set_integer(sqlite3_stmt *statement, int number, const struct row_integer *value)
{
    return bind_integer(statement, number, value, &(struct row_integer){ 0 });
}

enum statement {
    HAS_CAPTURE,
    POINT_OF_CONTENT,
    HAS_SIZE,
    HAS_FILE,
    FIND_BEGUN,
    INSERT_CAPTURE,
    REPLACE_CAPTURE,
    ADD_DROP_COUNT,
    INSERT_FLOW,
    REPLACE_FLOW,
    INSERT_FACTS,
    DELETE_FACTS,
    INSERT_SERVER_PROFILE,
    ADD_HALF_OPEN,
    DELETE_HALF_OPEN,
    FIND_POINT,
    PUT_POINT,
    NEXT_OPEN_FLOW,
    NEXT_OPEN_STATE,
    ADD_OPEN_FLOW,
    DELETE_OPEN_FLOW,
    INSERT_RULE,
    NEXT_RULE,
    LAST_FLOW,
    HAS_FLOW,
    NEXT_PROFILE,
    NEXT_FLOW,
    NEXT_UNDECIDED,
    READ_JUDGED,
    UPDATE_JUDGED,
    LINK_RETRIES,
    GET_SETTING,
    KEEP_SETTING,
    NEXT_SITE,
    UPDATE_SITE,
    NEXT_PLACE,
    UPDATE_PLACE,
    STATEMENT_COUNT
};

/* The flows with what judges them; a point's number is the least capture_id of its files. */
#define SELECT_STORED_FLOW                                                                         \
    "WITH place AS (SELECT capture_id, min(capture_id)"                                            \
    " OVER (PARTITION BY point, site, host, region, labels) AS point_id FROM capture)"             \
    " SELECT f.flow_id, place.point_id, f.client_ip, f.server_ip, f.server_port,"                  \
    " f.start_epoch_ns, f.rtt_basis, f.client_rtt_ns, x.facts, EXISTS (SELECT 1 FROM open_flow"    \
    " AS o WHERE o.point_id = place.point_id AND o.flow_id = f.flow_id) FROM flow AS f"            \
    " JOIN place ON place.capture_id = f.capture_id"                                               \
    " LEFT JOIN flow_facts AS x ON x.flow_id = f.flow_id"

/*
 * A retry is the first connection of the same client to the same server and name, seen at the same
 * place, within five seconds of the answer that the client had when it gave up.
 */
static const char SQL_LINK_RETRIES[] =
    "WITH gave_up AS (SELECT a.flow_id, a.start_epoch_ns, CASE a.outcome WHEN 'abandoned' THEN"
    " (SELECT r.flow_id FROM flow AS r JOIN capture AS rc ON rc.capture_id = r.capture_id"
    "  WHERE r.start_epoch_ns BETWEEN"
    "   a.start_epoch_ns + coalesce(a.server_hello_at_ns, a.hello_retry_at_ns) AND"
    "   a.start_epoch_ns + coalesce(a.server_hello_at_ns, a.hello_retry_at_ns) + 5000000000"
    "  AND r.client_ip = a.client_ip AND instr(a.client_ip, '/') = 0 AND r.server_ip = a.server_ip"
    "  AND r.server_port = a.server_port AND r.sni IS a.sni AND r.flow_id <> a.flow_id"
    "  AND rc.point = ac.point AND r.site IS a.site AND r.host IS a.host"
    "  ORDER BY r.start_epoch_ns, r.flow_uid LIMIT 1) END AS retry_id"
    " FROM flow AS a JOIN capture AS ac ON ac.capture_id = a.capture_id"
    " WHERE (a.outcome = 'abandoned' OR a.retried_by IS NOT NULL)"
    " AND a.start_epoch_ns BETWEEN ?1 AND ?2),"
    "wanted AS (SELECT g.flow_id, r.flow_uid AS retried_by,"
    " r.start_epoch_ns - g.start_epoch_ns + r.perceived_ns AS wait_ns"
    " FROM gave_up AS g LEFT JOIN flow AS r ON r.flow_id = g.retry_id)"
    "UPDATE flow SET retried_by = wanted.retried_by, retried_perceived_ns = wanted.wait_ns"
    " FROM wanted WHERE flow.flow_id = wanted.flow_id"
    " AND (flow.retried_by IS NOT wanted.retried_by"
    " OR flow.retried_perceived_ns IS NOT wanted.wait_ns)";

static const char *const STATEMENT_SQL[STATEMENT_COUNT] = {
    [HAS_CAPTURE] = "SELECT 1 FROM capture WHERE content_hash = ? AND point = ?",
    [POINT_OF_CONTENT] = "SELECT coalesce(min(p.capture_id), 0) FROM capture AS c JOIN capture AS p"
                         " ON c.point = p.point AND c.site IS p.site AND c.host IS p.host"
                         " AND c.region IS p.region AND c.labels IS p.labels"
                         " WHERE c.content_hash = ? AND c.point = ?",
    [HAS_SIZE] = "SELECT 1 FROM capture WHERE file_size = ? LIMIT 1",
    [HAS_FILE] = "SELECT 1 FROM capture WHERE path = ? AND point = ? AND file_size = ?"
                 " AND file_mtime_ns = ? LIMIT 1",
    [FIND_BEGUN] = "SELECT capture_id, content_len, packets, last_packet_epoch_ns, content_hash"
                   " FROM capture WHERE point = ? AND file_begin_epoch_ns = ? AND content_len > 0"
                   " ORDER BY content_len DESC LIMIT 1",
    [INSERT_CAPTURE] = SQL_INSERT_CAPTURE,
    [REPLACE_CAPTURE] = SQL_REPLACE_CAPTURE,
    [ADD_DROP_COUNT] = "INSERT INTO drop_count (capture_id, reason, packets) VALUES (?, ?, ?)"
                       " ON CONFLICT DO UPDATE SET packets = packets + excluded.packets",
    [INSERT_FLOW] = SQL_INSERT_FLOW,
    [REPLACE_FLOW] = SQL_REPLACE_FLOW,
    [DELETE_FACTS] = "DELETE FROM flow_facts WHERE flow_id = ?",
    [INSERT_FACTS] = "INSERT INTO flow_facts (flow_id, facts) VALUES (?, ?)",
    [INSERT_SERVER_PROFILE] = SQL_INSERT_SERVER_PROFILE,
    [ADD_HALF_OPEN] =
        "INSERT INTO half_open (capture_id, server_ip, server_port, second_epoch, syns,"
        " client_prefixes) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT DO UPDATE SET syns = excluded.syns,"
        " client_prefixes = excluded.client_prefixes",
    [DELETE_HALF_OPEN] = "DELETE FROM half_open WHERE capture_id = ? AND server_ip = ?"
                         " AND server_port = ? AND second_epoch = ?",
    [FIND_POINT] = "SELECT c.point_id, p.capture_id, p.until_epoch_ns, p.runs, p.version, p.state"
                   " FROM (SELECT min(capture_id) AS point_id FROM capture WHERE point = ?"
                   " AND site IS ? AND host IS ? AND region IS ? AND labels IS ?) AS c"
                   " LEFT JOIN open_point AS p ON p.point_id = c.point_id",
    [PUT_POINT] = "INSERT OR REPLACE INTO open_point (point_id, capture_id, until_epoch_ns, runs,"
                  " version, state) VALUES (?, ?, ?, ?, ?, ?)",
    [NEXT_OPEN_FLOW] = "SELECT o.flow_id, f.capture_id, o.version, o.state FROM open_flow AS o"
                       " JOIN flow AS f ON f.flow_id = o.flow_id WHERE o.point_id = ?"
                       " ORDER BY o.flow_id",
    [NEXT_OPEN_STATE] = "SELECT flow_id, 0, version, state FROM open_flow",
    [ADD_OPEN_FLOW] = "INSERT INTO open_flow (point_id, flow_id, last_packet_epoch_ns, version,"
                      " state) VALUES (?, ?, ?, ?, ?)",
    [DELETE_OPEN_FLOW] = "DELETE FROM open_flow WHERE point_id = ? AND flow_id = ?",
    [INSERT_RULE] = "INSERT INTO early_data_rule (pattern, allowed, comment) VALUES (?, ?, ?)",
    [NEXT_RULE] = "SELECT pattern, allowed, comment FROM early_data_rule",
    [LAST_FLOW] = "SELECT ifnull(max(flow_id), 0) FROM flow",
    [HAS_FLOW] = "SELECT flow_id FROM flow WHERE flow_uid = ?",
    [NEXT_PROFILE] = "SELECT server_ip, server_port, sni, all_names, from_epoch_ns, to_epoch_ns,"
                     " flows, learned FROM server_profile",
    [NEXT_FLOW] = SELECT_STORED_FLOW " ORDER BY f.flow_id",
    [NEXT_UNDECIDED] = SELECT_STORED_FLOW
    " WHERE f.flow_id <= ? AND x.facts IS NOT NULL"
    " AND (f.early_data = 'unknown' OR f.early_data_basis = 'weak' OR f.response_basis = 'weak'"
    " OR (f.response_at_ns IS NULL AND f.request_at_ns IS NOT NULL)) ORDER BY f.flow_id",
    [READ_JUDGED] = SQL_SELECT_JUDGED,
    [UPDATE_JUDGED] = SQL_UPDATE_JUDGED,
    [LINK_RETRIES] = SQL_LINK_RETRIES,
    [GET_SETTING] = "SELECT value FROM setting WHERE name = ?",
    [NEXT_SITE] = "SELECT capture_id, site, region FROM capture ORDER BY capture_id",
    [UPDATE_SITE] = "UPDATE capture SET region = ? WHERE capture_id = ?",
    [NEXT_PLACE] = "SELECT f.flow_id, c.region, f.client_ip, f.proxied_client_ip, f.client_region,"
                   " f.client_region_basis, f.client_country, f.client_asn FROM flow AS f"
                   " JOIN capture AS c ON c.capture_id = f.capture_id ORDER BY f.flow_id",
    [UPDATE_PLACE] = "UPDATE flow SET client_region = ?, client_region_basis = ?,"
                     " client_country = ?, client_asn = ? WHERE flow_id = ?",
    [KEEP_SETTING] = "INSERT OR IGNORE INTO setting (name, value) VALUES (?, ?)",
};

struct store {
    sqlite3 *db;
    char *path;
    struct text error;
    uint64_t repeated;                        /* flows that the last commit took out */
    struct buffer blob;                       /* the state of the point found last */
    bool replacing;                           /* there are marked flows */
    int64_t written_flow;                     /* flow_id of the last row added or replaced */
    sqlite3_stmt *statement[STATEMENT_COUNT]; /* made when first used, kept until the end */
    struct flow_row bound; /* to INSERT_FLOW, which alone keeps its bindings; texts may be gone */
};

const char *store_library_version(void)
{
    return sqlite3_libversion();
}

const char *store_error(const struct store *s)
{
    return text_string(&s->error);
}

static enum status fail_with(struct store *s, enum status status, const char *text)
{
    text_clear(&s->error);
    text_addf(&s->error, "%s: %s", s->path, text);
    return status;
}

static enum status fail_io(struct store *s, const char *what)
{
    text_clear(&s->error);
    text_addf(&s->error, "%s: %s: %s", s->path, what, sqlite3_errmsg(s->db));
    int system_errno = sqlite3_system_errno(s->db);
    if (system_errno != 0)
        text_addf(&s->error, " (%s)", strerror(system_errno));
    return STATUS_IO;
}

/* Keeps the text of SQLite's last failure: what happened and what can be done. */
static enum status fail(struct store *s)
{
    switch (sqlite3_errcode(s->db) & 0xff) {
    case SQLITE_NOMEM:
        return fail_with(s, STATUS_NO_MEMORY, "out of memory");
    case SQLITE_FULL:
        return fail_with(s, STATUS_IO,
                         "the disk is full; what this run had not committed is not stored");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return fail_with(s, STATUS_IO,
                         "in use by another program; try again when that has finished");
    case SQLITE_READONLY:
    case SQLITE_PERM:
        return fail_with(s, STATUS_IO,
                         "cannot be written; check the permissions of the file and of its"
                         " directory, or name another database with -d");
    case SQLITE_CANTOPEN:
        return fail_io(s, "cannot be opened; check that its directory exists and may be written");
    case SQLITE_NOTADB:
        return fail_with(s, STATUS_REFUSED,
                         "not a firstflight database; name another file with -d");
    case SQLITE_CORRUPT:
        return fail_with(s, STATUS_IO,
                         "the database is damaged; ingest the captures into a new one");
    default:
        return fail_io(s, "database error");
    }
}

static enum status execute(struct store *s, const char *sql)
{
    return sqlite3_exec(s->db, sql, NULL, NULL, NULL) == SQLITE_OK ? STATUS_OK : fail(s);
}

/* Gives the integer that a query without parameters yields. */
static enum status ask(struct store *s, const char *sql, int64_t *ret_value)
{
    sqlite3_stmt *statement = NULL;
    bool ok = sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL) == SQLITE_OK &&
              sqlite3_step(statement) == SQLITE_ROW;
    enum status status = ok ? STATUS_OK : fail(s);
    if (ok)
        *ret_value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return status;
}

/* Whether the file is new; STATUS_REFUSED when it is not ours or of a newer program. */
static enum status identify(struct store *s, bool *ret_is_new)
{
    int64_t application_id = 0, version = 0, objects = 0;
    enum status status = ask(s, "PRAGMA application_id", &application_id);
    if (status == STATUS_OK)
        status = ask(s, "PRAGMA user_version", &version);
    if (status == STATUS_OK)
        status = ask(s, "SELECT count(*) FROM sqlite_schema", &objects);
    if (status != STATUS_OK)
        return status;

    *ret_is_new = application_id == 0 && version == 0 && objects == 0;
    if (*ret_is_new)
        return STATUS_OK;
    if (application_id != SCHEMA_APPLICATION_ID)
        return fail_with(s, STATUS_REFUSED,
                         "a database of another program; name another file with -d");
    if (version > SCHEMA_VERSION)
        return fail_with(s, STATUS_REFUSED,
                         "made by a newer firstflight; use that, or name another file with -d");
    if (version < SCHEMA_VERSION)
        return fail_with(s, STATUS_REFUSED, "its schema version is none that was ever released");
    return STATUS_OK;
}

/* Makes the tables and views of a new file; somebody else may do the same at this moment. */
static enum status make_schema(struct store *s)
{
    enum status status = execute(s, "BEGIN IMMEDIATE");
    if (status != STATUS_OK)
        return status;
    bool is_new;
    status = identify(s, &is_new);
    if (status == STATUS_OK && is_new) {
        char identity[100];
        (void)snprintf(identity, sizeof identity,
                       "PRAGMA application_id = %d; PRAGMA user_version = %d",
                       SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
        const char *const steps[] = { SQL_TABLES, SQL_STARTER_RULES, SQL_VIEWS, identity };
        for (size_t i = 0; i < sizeof steps / sizeof steps[0] && status == STATUS_OK; i++)
            status = execute(s, steps[i]);
    }
    if (status == STATUS_OK)
        status = execute(s, "COMMIT");
    store_rollback(s);
    return status;
}

/* pwrite64() for SQLite; a stretch of which the last byte was written goes on its way to the disk.
 * No failure is lost: the kernel keeps it for the fdatasync() of the commit. */
static ssize_t write_soon(int fd, const void *from, size_t len, off64_t at)
{
    ssize_t written = pwrite64(fd, from, len, at);
    off64_t end = at + (written > 0 ? written : 0);
    if (end / STRETCH > at / STRETCH)
        (void)sync_file_range(fd, at / STRETCH * STRETCH, STRETCH, SYNC_FILE_RANGE_WRITE);
    return written;
}

/* SQLite writes by the calls of a table in its interface to the system. */
static void write_early(void)
{
    sqlite3_vfs *system = sqlite3_vfs_find(NULL);
    if (system != NULL && system->iVersion >= 3 &&
        system->xGetSystemCall(system, "pwrite64") != NULL)
        (void)system->xSetSystemCall(system, "pwrite64", (sqlite3_syscall_ptr)write_soon);
}

static enum status configure(struct store *s)
{
    char settings[200];
    (void)snprintf(settings, sizeof settings,
                   "PRAGMA page_size = %d; PRAGMA cache_size = -%d; PRAGMA analysis_limit = %d;"
                   "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL",
                   PAGE_SIZE, CACHE_KIB, ANALYSIS_ROWS);
    sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
    return execute(s, settings);
}

static enum status open_database(struct store *s)
{
    if (sqlite3_open_v2(s->path, &s->db,
                        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
                        NULL) != SQLITE_OK)
        return s->db == NULL ? STATUS_NO_MEMORY : fail(s);
    sqlite3_busy_timeout(s->db, WAIT_FOR_LOCK_MS);

    bool is_new = false;
    enum status status = identify(s, &is_new);
    if (status != STATUS_OK)
        return status;
    if (sqlite3_db_readonly(s->db, "main") == 1)
        return fail_with(s, STATUS_IO,
                         "cannot be written; check its permissions, or name another database"
                         " with -d");
    status = configure(s);
    if (status == STATUS_OK && is_new)
        status = make_schema(s);
    return status;
}

enum status store_open(const char *path, struct store **ret_store)
{
    struct store *s = calloc(1, sizeof *s);
    *ret_store = s;
    if (s == NULL)
        return STATUS_NO_MEMORY;
    s->path = strdup(path);
    write_early();
    enum status status = s->path == NULL ? STATUS_NO_MEMORY : open_database(s);
    if (status == STATUS_NO_MEMORY) {
        store_close(s);
        *ret_store = NULL;
    }
    return status;
}

void store_close(struct store *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < STATEMENT_COUNT; i++)
        sqlite3_finalize(s->statement[i]);
    int closed = sqlite3_close(s->db); /* rolls back */
    assert(closed == SQLITE_OK);
    (void)closed;
    text_done(&s->error);
    buffer_done(&s->blob);
    free(s->path);
    free(s);
}

enum status store_begin(struct store *s)
{
    s->repeated = 0;
    s->replacing = false;
    return execute(s, "BEGIN IMMEDIATE");
}

void store_rollback(struct store *s)
{
    /* Some failures have rolled back already (SQLITE_FULL, SQLITE_IOERR, SQLITE_NOMEM). */
    if (!sqlite3_get_autocommit(s->db))
        sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
}

/* Of flows that came twice in a first load the first stays. */
static enum status delete_repeated(struct store *s)
{
    enum status status = execute(s, "DELETE FROM flow WHERE flow_id NOT IN"
                                    " (SELECT min(flow_id) FROM flow GROUP BY flow_uid)");
    if (status != STATUS_OK)
        return status;
    s->repeated = (uint64_t)sqlite3_changes64(s->db);
    status = execute(s, "DELETE FROM open_flow WHERE flow_id NOT IN (SELECT flow_id FROM flow)");
    if (status != STATUS_OK)
        return status;
    return execute(s, "DELETE FROM flow_facts WHERE flow_id NOT IN (SELECT flow_id FROM flow)");
}

uint64_t store_repeated(const struct store *s)
{
    return s->repeated;
}

static enum status make_indexes(struct store *s)
{
    enum status status = execute(s, SQL_INDEXES);
    if (status == STATUS_OK || (sqlite3_errcode(s->db) & 0xff) != SQLITE_CONSTRAINT)
        return status;
    status = delete_repeated(s);
    return status == STATUS_OK ? execute(s, SQL_INDEXES) : status;
}

enum status store_commit(struct store *s)
{
    enum status status = make_indexes(s);
    if (status == STATUS_OK)
        status = execute(s, "ANALYZE");
    if (status == STATUS_OK)
        status = execute(s, "COMMIT");
    store_rollback(s);
    return status;
}

/* The kept statement, ready for bindings; NULL when it cannot be made. */
static sqlite3_stmt *statement_of(struct store *s, enum statement which)
{
    if (s->statement[which] == NULL)
        sqlite3_prepare_v3(s->db, STATEMENT_SQL[which], -1, SQLITE_PREPARE_PERSISTENT,
                           &s->statement[which], NULL);
    return s->statement[which];
}

/* Runs a bound statement that yields at most one row; the bindings stay. */
static enum status run_once(struct store *s, sqlite3_stmt *statement, bool *ret_has_row)
{
    int code = sqlite3_step(statement);
    enum status status = code == SQLITE_ROW || code == SQLITE_DONE ? STATUS_OK : fail(s);
    if (ret_has_row != NULL)
        *ret_has_row = code == SQLITE_ROW;
    sqlite3_reset(statement);
    return status;
}

/* The same, cleared for the next use. */
static enum status run(struct store *s, sqlite3_stmt *statement, bool *ret_has_row)
{
    enum status status = run_once(s, statement, ret_has_row);
    sqlite3_clear_bindings(statement);
    return status;
}

/* Gives up a statement whose values could not all be bound: no memory. */
static enum status fail_bind(struct store *s, sqlite3_stmt *statement)
{
    sqlite3_clear_bindings(statement);
    return fail_with(s, STATUS_NO_MEMORY, "out of memory");
}

/* The next row of a statement; STATUS_END behind the last, from where it starts over. */
static enum status next_row(struct store *s, sqlite3_stmt *statement)
{
    int code = sqlite3_step(statement);
    if (code == SQLITE_ROW)
        return STATUS_OK;
    enum status status = code == SQLITE_DONE ? STATUS_END : fail(s);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status;
}

static struct row_text text_of(const char *string)
{
    return (struct row_text){ .at = string, .len = strlen(string) };
}

enum status store_has_capture(struct store *s, const char *content_hash_hex, const char *point,
                              bool *ret_has)
{
    sqlite3_stmt *statement = statement_of(s, HAS_CAPTURE);
    if (statement == NULL)
        return fail(s);
    struct row_text hash_text = text_of(content_hash_hex), point_text = text_of(point);
    if (!set_text(statement, 1, &hash_text) || !set_text(statement, 2, &point_text))
        return fail_bind(s, statement);
    return run(s, statement, ret_has);
}

enum status store_point_of_content(struct store *s, const char *content_hash_hex, const char *point,
                                   int64_t *ret_point_id)
{
    sqlite3_stmt *statement = statement_of(s, POINT_OF_CONTENT);
    if (statement == NULL)
        return fail(s);
    struct row_text hash_text = text_of(content_hash_hex), point_text = text_of(point);
    if (!set_text(statement, 1, &hash_text) || !set_text(statement, 2, &point_text))
        return fail_bind(s, statement);
    enum status status = sqlite3_step(statement) == SQLITE_ROW ? STATUS_OK : fail(s);
    if (status == STATUS_OK)
        *ret_point_id = sqlite3_column_int64(statement, 0);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status;
}

enum status store_has_size(struct store *s, uint64_t file_size, bool *ret_has)
{
    sqlite3_stmt *statement = statement_of(s, HAS_SIZE);
    if (statement == NULL)
        return fail(s);
    sqlite3_bind_int64(statement, 1, (int64_t)file_size);
    return run(s, statement, ret_has);
}

enum status store_has_file(struct store *s, const char *path, const char *point, uint64_t file_size,
                           int64_t mtime_ns, bool *ret_has)
{
    sqlite3_stmt *statement = statement_of(s, HAS_FILE);
    if (statement == NULL)
        return fail(s);
    struct row_text path_text = text_of(path), point_text = text_of(point);
    sqlite3_bind_int64(statement, 3, (int64_t)file_size);
    sqlite3_bind_int64(statement, 4, mtime_ns);
    if (!set_text(statement, 1, &path_text) || !set_text(statement, 2, &point_text))
        return fail_bind(s, statement);
    return run(s, statement, ret_has);
}

enum status store_find_begun(struct store *s, const char *point, int64_t begin_ns,
                             struct begun_capture *ret_capture)
{
    sqlite3_stmt *statement = statement_of(s, FIND_BEGUN);
    *ret_capture = (struct begun_capture){ 0 };
    if (statement == NULL)
        return fail(s);
    struct row_text point_text = text_of(point);
    sqlite3_bind_int64(statement, 2, begin_ns);
    if (!set_text(statement, 1, &point_text))
        return fail_bind(s, statement);
    enum status status = next_row(s, statement);
    if (status == STATUS_OK) {
        ret_capture->capture_id = sqlite3_column_int64(statement, 0);
        ret_capture->content_len = (uint64_t)sqlite3_column_int64(statement, 1);
        ret_capture->packets = (uint64_t)sqlite3_column_int64(statement, 2);
        ret_capture->last_ns = sqlite3_column_int64(statement, 3);
        (void)snprintf(ret_capture->content_hash_hex, sizeof ret_capture->content_hash_hex, "%s",
                       (const char *)sqlite3_column_text(statement, 4));
    }
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status add_drop_count(struct store *s, int64_t capture_id, enum drop reason,
                                  uint64_t packets)
{
    sqlite3_stmt *statement = statement_of(s, ADD_DROP_COUNT);
    if (statement == NULL)
        return fail(s);
    sqlite3_bind_int64(statement, 1, capture_id);
    sqlite3_bind_text(statement, 2, drop_text(reason), -1, SQLITE_STATIC);
    sqlite3_bind_int64(statement, 3, (int64_t)packets);
    return run(s, statement, NULL);
}

static enum status add_drop_counts(struct store *s, int64_t capture_id,
                                   const struct drop_counts *drops)
{
    enum status status = STATUS_OK;
    for (int reason = DROP_NONE + 1; reason < DROP_COUNT && status == STATUS_OK; reason++)
        if (drops->packets[reason] > 0)
            status = add_drop_count(s, capture_id, (enum drop)reason, drops->packets[reason]);
    return status;
}

enum status store_capture(struct store *s, const struct capture_row *row,
                          const struct drop_counts *drops, int64_t *ret_capture_id)
{
    sqlite3_stmt *statement =
        statement_of(s, row->capture_id.has ? REPLACE_CAPTURE : INSERT_CAPTURE);
    if (statement == NULL)
        return fail(s);
    if (!bind_capture_row(statement, row, &(struct capture_row){ 0 }))
        return fail_bind(s, statement);
    enum status status = run(s, statement, NULL);
    if (status != STATUS_OK)
        return status;
    *ret_capture_id =
        row->capture_id.has ? row->capture_id.value : sqlite3_last_insert_rowid(s->db);
    return add_drop_counts(s, *ret_capture_id, drops);
}

static enum status add_facts(struct store *s, int64_t flow_id, struct bytes facts_json)
{
    sqlite3_stmt *statement = statement_of(s, INSERT_FACTS);
    if (statement == NULL)
        return fail(s);
    sqlite3_bind_int64(statement, 1, flow_id);
    /* ASCII by facts_to_json(): bound as it is */
    if (sqlite3_bind_text64(statement, 2, (const char *)facts_json.at, facts_json.len,
                            SQLITE_STATIC, SQLITE_UTF8) != SQLITE_OK)
        return fail_bind(s, statement);
    return run(s, statement, NULL);
}

enum status store_flow(struct store *s, const struct flow_row *row, struct bytes facts_json,
                       bool *ret_added)
{
    sqlite3_stmt *statement = statement_of(s, INSERT_FLOW);
    if (statement == NULL)
        return fail(s);
    bool ok = bind_flow_row(statement, row, &s->bound);
    s->bound = ok ? *row : (struct flow_row){ 0 };
    if (!ok)
        return fail_bind(s, statement);
    enum status status = run_once(s, statement, NULL);
    if (status != STATUS_OK)
        return status;

    *ret_added = sqlite3_changes(s->db) > 0;
    if (!*ret_added)
        return STATUS_OK;
    s->written_flow = sqlite3_last_insert_rowid(s->db);
    return facts_json.len == 0 ? STATUS_OK : add_facts(s, s->written_flow, facts_json);
}

/* Runs a statement with one number or text as its parameter. */
static enum status execute_with(struct store *s, const char *sql, int64_t number, const char *text)
{
    sqlite3_stmt *statement = NULL;
    if (sqlite3_prepare_v2(s->db, sql, -1, &statement, NULL) != SQLITE_OK)
        return fail(s);
    bool needs_it = sqlite3_bind_parameter_count(statement) > 0;
    struct row_text words = text == NULL ? (struct row_text){ 0 } : text_of(text);
    bool ok = !needs_it || (text == NULL ? sqlite3_bind_int64(statement, 1, number) == SQLITE_OK
                                         : set_text(statement, 1, &words));
    ok = ok && sqlite3_step(statement) == SQLITE_DONE;
    enum status status = ok ? STATUS_OK : fail(s);
    sqlite3_finalize(statement);
    return status;
}

/* One after the other, up to the first that fails. */
static enum status execute_all(struct store *s, const char *const steps[], int64_t number,
                               const char *text)
{
    enum status status = STATUS_OK;
    for (size_t k = 0; steps[k] != NULL && status == STATUS_OK; k++)
        status = execute_with(s, steps[k], number, text);
    return status;
}

static enum status delete_facts(struct store *s, int64_t flow_id)
{
    sqlite3_stmt *statement = statement_of(s, DELETE_FACTS);
    if (statement == NULL)
        return fail(s);
    sqlite3_bind_int64(statement, 1, flow_id);
    return run(s, statement, NULL);
}

enum status store_replace_flow(struct store *s, int64_t flow_id, const struct flow_row *row,
                               struct bytes facts_json, bool *ret_replaced)
{
    int64_t other = 0;
    enum status status = store_find_flow(s, row->flow_uid, &other);
    *ret_replaced = status == STATUS_OK && (other == 0 || other == flow_id);
    if (!*ret_replaced)
        return status;
    sqlite3_stmt *statement = statement_of(s, REPLACE_FLOW);
    if (statement == NULL)
        return fail(s);
    struct flow_row numbered = *row;
    numbered.flow_id = (struct row_integer){ true, flow_id };
    if (!bind_flow_row(statement, &numbered, &(struct flow_row){ 0 }))
        return fail_bind(s, statement);
    status = run(s, statement, NULL);
    if (status == STATUS_OK)
        status = delete_facts(s, flow_id);
    if (status == STATUS_OK && s->replacing)
        status = execute_with(s, "DELETE FROM marked_flow WHERE flow_id = ?1", flow_id, NULL);
    s->written_flow = flow_id;
    return status != STATUS_OK || facts_json.len == 0 ? status : add_facts(s, flow_id, facts_json);
}

/* ---- taking out ---- */

#define MARK_TABLES                                                                                \
    "CREATE TEMP TABLE IF NOT EXISTS marked_capture (capture_id INTEGER PRIMARY KEY)",             \
        "CREATE TEMP TABLE IF NOT EXISTS marked_flow (flow_id INTEGER PRIMARY KEY)",               \
        "DELETE FROM marked_capture", "DELETE FROM marked_flow"

static enum status delete_marked_flows(struct store *s)
{
    static const char *const STEPS[] = {
        "DELETE FROM open_flow WHERE flow_id IN (SELECT flow_id FROM marked_flow)",
        "DELETE FROM flow_facts WHERE flow_id IN (SELECT flow_id FROM marked_flow)",
        "DELETE FROM flow WHERE flow_id IN (SELECT flow_id FROM marked_flow)",
        ("UPDATE flow SET retried_by = NULL, retried_perceived_ns = NULL"
         " WHERE retried_by IS NOT NULL"
         " AND NOT EXISTS (SELECT 1 FROM flow AS r WHERE r.flow_uid = flow.retried_by)"),
        "DELETE FROM marked_flow",
        NULL,
    };
    return execute_all(s, STEPS, 0, NULL);
}

enum status store_begin_replacing(struct store *s, int64_t point_id)
{
    static const char *const PREPARE[] = { MARK_TABLES, NULL };
    static const char *const STEPS[] = {
        "DELETE FROM marked_capture",
        "INSERT INTO marked_capture SELECT c.capture_id FROM capture AS c JOIN capture AS p"
        " ON p.capture_id = ?1 WHERE c.point = p.point AND c.site IS p.site AND c.host IS p.host"
        " AND c.region IS p.region AND c.labels IS p.labels",
        "INSERT OR IGNORE INTO marked_flow SELECT flow_id FROM flow"
        " WHERE capture_id IN (SELECT capture_id FROM marked_capture)",
        "DELETE FROM open_flow WHERE point_id = ?1",
        "DELETE FROM open_point WHERE point_id = ?1",
        "DELETE FROM half_open WHERE capture_id IN (SELECT capture_id FROM marked_capture)",
        "DELETE FROM drop_count WHERE capture_id IN (SELECT capture_id FROM marked_capture)",
        "DELETE FROM capture WHERE capture_id IN (SELECT capture_id FROM marked_capture)",
        NULL,
    };
    enum status status = s->replacing ? STATUS_OK : execute_all(s, PREPARE, 0, NULL);
    s->replacing = true;
    return status == STATUS_OK ? execute_all(s, STEPS, point_id, NULL) : status;
}

enum status store_end_replacing(struct store *s)
{
    bool replacing = s->replacing;
    s->replacing = false;
    return replacing ? delete_marked_flows(s) : STATUS_OK;
}

/* Marks by `marks`, forgets by `steps`, and says how much it was. */
static enum status forget_marked(struct store *s, const char *const marks[],
                                 const char *const steps[], int64_t number, const char *text,
                                 struct forgotten *ret_forgotten)
{
    static const char COUNTS[] = "SELECT (SELECT count(*) FROM half_open) * 1000000000"
                                 " + (SELECT count(*) FROM server_profile)";
    static const int64_t UNIT = 1000000000;
    int64_t before = 0, after = 0;
    enum status status = execute_all(s, marks, number, text);
    if (status == STATUS_OK)
        status = ask(s, "SELECT count(*) FROM marked_flow", &ret_forgotten->flows);
    if (status == STATUS_OK)
        status = ask(s, COUNTS, &before);
    if (status == STATUS_OK)
        status = execute_all(s, steps, number, text);
    if (status == STATUS_OK)
        status = delete_marked_flows(s);
    if (status == STATUS_OK)
        status = ask(s, COUNTS, &after);
    ret_forgotten->half_opens = before / UNIT - after / UNIT;
    ret_forgotten->profiles = before % UNIT - after % UNIT;
    return status;
}

enum status store_forget_before(struct store *s, int64_t before_ns, struct forgotten *ret_forgotten)
{
    static const char *const MARKS[] = {
        MARK_TABLES,
        "INSERT INTO marked_flow SELECT flow_id FROM flow WHERE start_epoch_ns < ?1"
        " AND start_epoch_ns + end_at_ns < ?1",
        "INSERT INTO marked_capture SELECT capture_id FROM capture"
        " WHERE last_packet_epoch_ns < ?1",
        NULL,
    };
    static const char *const STEPS[] = {
        "DELETE FROM half_open WHERE second_epoch < ?1 / 1000000000",
        "DELETE FROM drop_count WHERE capture_id IN (SELECT capture_id FROM marked_capture)",
        "UPDATE open_point SET state = x'' WHERE until_epoch_ns < ?1",
        "DELETE FROM server_profile WHERE to_epoch_ns < ?1",
        NULL,
    };
    return forget_marked(s, MARKS, STEPS, before_ns, NULL, ret_forgotten);
}

enum status store_forget_site(struct store *s, const char *site, struct forgotten *ret_forgotten)
{
    static const char *const MARKS[] = {
        MARK_TABLES,
        "INSERT INTO marked_flow SELECT flow_id FROM flow WHERE site = ?1",
        "INSERT INTO marked_capture SELECT capture_id FROM capture WHERE site = ?1",
        NULL,
    };
    static const char *const STEPS[] = {
        "DELETE FROM half_open WHERE capture_id IN (SELECT capture_id FROM marked_capture)",
        "DELETE FROM drop_count WHERE capture_id IN (SELECT capture_id FROM marked_capture)",
        "UPDATE open_point SET state = x''"
        " WHERE point_id IN (SELECT capture_id FROM marked_capture)",
        NULL,
    };
    return forget_marked(s, MARKS, STEPS, 0, site, ret_forgotten);
}

enum status store_shrink(struct store *s)
{
    /* SQLite attaches the file that it writes anew. */
    sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 1);
    enum status status = execute(s, "VACUUM");
    sqlite3_limit(s->db, SQLITE_LIMIT_ATTACHED, 0);
    return status;
}

enum status store_span(struct store *s, int64_t *ret_first_ns, int64_t *ret_last_ns)
{
    enum status status = ask(s, "SELECT ifnull(min(start_epoch_ns), 0) FROM flow", ret_first_ns);
    return status == STATUS_OK
               ? ask(s, "SELECT ifnull(max(start_epoch_ns), 0) FROM flow", ret_last_ns)
               : status;
}

int64_t store_written_flow(const struct store *s)
{
    return s->written_flow;
}

enum status store_server_profile(struct store *s, const struct server_profile_row *row)
{
    sqlite3_stmt *statement = statement_of(s, INSERT_SERVER_PROFILE);
    if (statement == NULL)
        return fail(s);
    if (!bind_server_profile_row(statement, row, &(struct server_profile_row){ 0 }))
        return fail_bind(s, statement);
    return run(s, statement, NULL);
}

enum status store_half_open(struct store *s, const struct half_open_row *row)
{
    bool is_none = row->syns == 0;
    sqlite3_stmt *statement = statement_of(s, is_none ? DELETE_HALF_OPEN : ADD_HALF_OPEN);
    if (statement == NULL)
        return fail(s);
    struct row_text ip = text_of(row->server_ip);
    sqlite3_bind_int64(statement, 1, row->capture_id);
    sqlite3_bind_int64(statement, 3, row->server_port);
    sqlite3_bind_int64(statement, 4, row->second_epoch);
    if (!is_none) {
        sqlite3_bind_int64(statement, 5, row->syns);
        sqlite3_bind_int64(statement, 6, row->client_prefixes);
    }
    if (!set_text(statement, 2, &ip))
        return fail_bind(s, statement);
    return run(s, statement, NULL);
}

enum status store_forget_profiles(struct store *s)
{
    return execute(s, "DELETE FROM server_profile");
}

static enum status add_rule(struct store *s, const struct rule *rule)
{
    sqlite3_stmt *statement = statement_of(s, INSERT_RULE);
    if (statement == NULL)
        return fail(s);
    struct row_text pattern = text_of(rule->pattern), comment = { 0 };
    if (rule->comment != NULL)
        comment = text_of(rule->comment);
    sqlite3_bind_int64(statement, 2, rule->allowed);
    if (!set_text(statement, 1, &pattern) || !set_text(statement, 3, &comment))
        return fail_bind(s, statement);
    return run(s, statement, NULL);
}

/* No indexes here: a database that only has rules is still to be loaded for the first time. */
enum status store_set_rules(struct store *s, const struct rules *rules)
{
    enum status status = execute(s, "BEGIN IMMEDIATE; DELETE FROM early_data_rule");
    for (size_t i = 0; i < rules->count && status == STATUS_OK; i++)
        status = add_rule(s, &rules->at[i]);
    if (status == STATUS_OK)
        status = execute(s, "COMMIT");
    store_rollback(s);
    return status;
}

/* ---- reading what is there ---- */

static struct row_integer integer_at(sqlite3_stmt *statement, int column)
{
    bool has = sqlite3_column_type(statement, column) != SQLITE_NULL;
    return (struct row_integer){ has, has ? sqlite3_column_int64(statement, column) : 0 };
}

static struct row_real real_at(sqlite3_stmt *statement, int column)
{
    bool has = sqlite3_column_type(statement, column) != SQLITE_NULL;
    return (struct row_real){ has, has ? sqlite3_column_double(statement, column) : 0 };
}

static struct row_text text_at(sqlite3_stmt *statement, int column)
{
    const char *text = (const char *)sqlite3_column_text(statement, column);
    return (struct row_text){
        .at = text,
        .len = text == NULL ? 0 : (size_t)sqlite3_column_bytes(statement, column),
    };
}

enum status store_read_rules(struct store *s, struct rules *rules)
{
    sqlite3_stmt *statement = statement_of(s, NEXT_RULE);
    enum status status = statement == NULL ? fail(s) : next_row(s, statement);
    while (status == STATUS_OK) {
        struct row_text pattern = text_at(statement, 0), comment = text_at(statement, 2);
        bool allowed = sqlite3_column_int(statement, 1) != 0;
        if (!rules_add(rules, (struct bytes){ (const uint8_t *)pattern.at, pattern.len }, allowed,
                       (struct bytes){ (const uint8_t *)comment.at, comment.len }))
            return fail_bind(s, statement);
        status = next_row(s, statement);
    }
    return status == STATUS_END ? STATUS_OK : status;
}

enum status store_setting(struct store *s, const char *name, char *value, size_t size)
{
    sqlite3_stmt *statement = statement_of(s, GET_SETTING);
    struct row_text name_text = text_of(name);
    if (statement == NULL)
        return fail(s);
    if (!set_text(statement, 1, &name_text))
        return fail_bind(s, statement);
    enum status status = next_row(s, statement);
    value[0] = '\0';
    if (status == STATUS_OK)
        snprintf(value, size, "%s", (const char *)sqlite3_column_text(statement, 0));
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status == STATUS_END ? STATUS_OK : status;
}

enum status store_keep_setting(struct store *s, const char *name, const char *value)
{
    sqlite3_stmt *statement = statement_of(s, KEEP_SETTING);
    struct row_text name_text = text_of(name), value_text = text_of(value);
    if (statement == NULL)
        return fail(s);
    if (!set_text(statement, 1, &name_text) || !set_text(statement, 2, &value_text))
        return fail_bind(s, statement);
    return run(s, statement, NULL);
}

enum status store_next_site(struct store *s, struct stored_site *ret_site)
{
    sqlite3_stmt *statement = statement_of(s, NEXT_SITE);
    enum status status = statement == NULL ? fail(s) : next_row(s, statement);
    if (status == STATUS_OK)
        *ret_site = (struct stored_site){
            .capture_id = sqlite3_column_int64(statement, 0),
            .site = text_at(statement, 1),
            .region = text_at(statement, 2),
        };
    return status;
}

enum status store_update_site(struct store *s, int64_t capture_id, const struct row_text *region)
{
    sqlite3_stmt *statement = statement_of(s, UPDATE_SITE);
    if (statement == NULL)
        return fail(s);
    sqlite3_bind_int64(statement, 2, capture_id);
    if (!set_text(statement, 1, region))
        return fail_bind(s, statement);
    return run(s, statement, NULL);
}

enum status store_next_place(struct store *s, struct stored_place *ret_place)
{
    sqlite3_stmt *statement = statement_of(s, NEXT_PLACE);
    enum status status = statement == NULL ? fail(s) : next_row(s, statement);
    if (status == STATUS_OK)
        *ret_place = (struct stored_place){
            .flow_id = sqlite3_column_int64(statement, 0),
            .capture_region = text_at(statement, 1),
            .client_ip = text_at(statement, 2),
            .proxied_client_ip = text_at(statement, 3),
            .place.region = text_at(statement, 4),
            .place.region_basis = text_at(statement, 5),
            .place.country = text_at(statement, 6),
            .place.asn = integer_at(statement, 7),
        };
    return status;
}

enum status store_update_place(struct store *s, int64_t flow_id, const struct flow_place *place)
{
    sqlite3_stmt *statement = statement_of(s, UPDATE_PLACE);
    if (statement == NULL)
        return fail(s);
    sqlite3_bind_int64(statement, 5, flow_id);
    if (!set_text(statement, 1, &place->region) || !set_text(statement, 2, &place->region_basis) ||
        !set_text(statement, 3, &place->country) || !set_integer(statement, 4, &place->asn))
        return fail_bind(s, statement);
    return run(s, statement, NULL);
}

enum status store_last_flow(struct store *s, int64_t *ret_flow_id)
{
    return ask(s, STATEMENT_SQL[LAST_FLOW], ret_flow_id);
}

enum status store_find_flow(struct store *s, struct row_text flow_uid, int64_t *ret_flow_id)
{
    sqlite3_stmt *statement = statement_of(s, HAS_FLOW);
    *ret_flow_id = 0;
    if (statement == NULL)
        return fail(s);
    if (!set_text(statement, 1, &flow_uid))
        return fail_bind(s, statement);
    enum status status = next_row(s, statement);
    if (status == STATUS_OK)
        *ret_flow_id = sqlite3_column_int64(statement, 0);
    sqlite3_reset(statement);
    sqlite3_clear_bindings(statement);
    return status == STATUS_END ? STATUS_OK : status;
}

/* ---- from run to run ---- */

static struct bytes blob_at(sqlite3_stmt *statement, int column)
{
    const void *blob = sqlite3_column_blob(statement, column);
    return (struct bytes){ blob,
                           blob == NULL ? 0 : (size_t)sqlite3_column_bytes(statement, column) };
}

enum status store_find_point(struct store *s, const struct store_point *point,
                             struct open_point *ret_point)
{
    const char *const words[] = { point->name, point->site, point->host, point->region,
                                  point->labels };
    sqlite3_stmt *statement = statement_of(s, FIND_POINT);
    *ret_point = (struct open_point){ 0 };
    if (statement == NULL)
        return fail(s);
    for (int k = 0; k < 5; k++) {
        struct row_text word = { .at = words[k], .len = words[k] == NULL ? 0 : strlen(words[k]) };
        if (!set_text(statement, k + 1, &word))
            return fail_bind(s, statement);
    }
    enum status status = next_row(s, statement);
    s->blob.len = 0;
    if (status == STATUS_OK && !buffer_add(&s->blob, blob_at(statement, 5)))
        status = fail_with(s, STATUS_NO_MEMORY, "out of memory");
    if (status == STATUS_OK)
        *ret_point = (struct open_point){
            .point_id = sqlite3_column_int64(statement, 0),
            .capture_id = sqlite3_column_int64(statement, 1),
            .until_ns = sqlite3_column_int64(statement, 2),
            .runs = sqlite3_column_int64(statement, 3),
            .version = sqlite3_column_int64(statement, 4),
            .state = { s->blob.at, s->blob.len },
        };
    sqlite3_reset(statement); /* nothing is read on: others may write */
    sqlite3_clear_bindings(statement);
    return status;
}

enum status store_put_point(struct store *s, const struct open_point *point)
{
    sqlite3_stmt *statement = statement_of(s, PUT_POINT);
    if (statement == NULL)
        return fail(s);
    sqlite3_bind_int64(statement, 1, point->point_id);
    sqlite3_bind_int64(statement, 2, point->capture_id);
    sqlite3_bind_int64(statement, 3, point->until_ns);
    sqlite3_bind_int64(statement, 4, point->runs);
    sqlite3_bind_int64(statement, 5, point->version);
    const void *state = point->state.len == 0 ? "" : (const void *)point->state.at; /* no NULL */
    if (sqlite3_bind_blob64(statement, 6, state, point->state.len, SQLITE_STATIC) != SQLITE_OK)
        return fail_bind(s, statement);
    return run(s, statement, NULL);
}

static enum status next_open(struct store *s, sqlite3_stmt *statement, struct open_flow *ret_flow)
{
    enum status status = next_row(s, statement);
    if (status == STATUS_OK)
        *ret_flow = (struct open_flow){
            .flow_id = sqlite3_column_int64(statement, 0),
            .capture_id = sqlite3_column_int64(statement, 1),
            .version = sqlite3_column_int64(statement, 2),
            .state = blob_at(statement, 3),
        };
    return status;
}

enum status store_next_open_flow(struct store *s, int64_t point_id, struct open_flow *ret_flow)
{
    sqlite3_stmt *statement = statement_of(s, NEXT_OPEN_FLOW);
    if (statement == NULL)
        return fail(s);
    if (!sqlite3_stmt_busy(statement))
        sqlite3_bind_int64(statement, 1, point_id);
    return next_open(s, statement, ret_flow);
}

enum status store_next_open_state(struct store *s, struct open_flow *ret_flow)
{
    sqlite3_stmt *statement = statement_of(s, NEXT_OPEN_STATE);
    return statement == NULL ? fail(s) : next_open(s, statement, ret_flow);
}

enum status store_open_flow(struct store *s, int64_t point_id, int64_t flow_id, int64_t last_ns,
                            int64_t version, struct bytes state)
{
    sqlite3_stmt *statement = statement_of(s, ADD_OPEN_FLOW);
    if (statement == NULL)
        return fail(s);
    sqlite3_bind_int64(statement, 1, point_id);
    sqlite3_bind_int64(statement, 2, flow_id);
    sqlite3_bind_int64(statement, 3, last_ns);
    sqlite3_bind_int64(statement, 4, version);
    if (sqlite3_bind_blob64(statement, 5, state.at, state.len, SQLITE_STATIC) != SQLITE_OK)
        return fail_bind(s, statement);
    return run(s, statement, NULL);
}

enum status store_close_flow(struct store *s, int64_t point_id, int64_t flow_id)
{
    sqlite3_stmt *statement = statement_of(s, DELETE_OPEN_FLOW);
    if (statement == NULL)
        return fail(s);
    sqlite3_bind_int64(statement, 1, point_id);
    sqlite3_bind_int64(statement, 2, flow_id);
    return run(s, statement, NULL);
}

enum status store_next_profile(struct store *s, struct server_profile_row *ret_row)
{
    sqlite3_stmt *statement = statement_of(s, NEXT_PROFILE);
    enum status status = statement == NULL ? fail(s) : next_row(s, statement);
    if (status == STATUS_OK)
        *ret_row = (struct server_profile_row){
            .server_ip = text_at(statement, 0),
            .server_port = integer_at(statement, 1),
            .sni = text_at(statement, 2),
            .all_names = integer_at(statement, 3),
            .from_epoch_ns = integer_at(statement, 4),
            .to_epoch_ns = integer_at(statement, 5),
            .flows = integer_at(statement, 6),
            .learned = text_at(statement, 7),
        };
    return status;
}

static enum status next_flow(struct store *s, sqlite3_stmt *statement, struct stored_flow *ret_flow)
{
    enum status status = next_row(s, statement);
    if (status == STATUS_OK)
        *ret_flow = (struct stored_flow){
            .flow_id = sqlite3_column_int64(statement, 0),
            .point_id = sqlite3_column_int64(statement, 1),
            .client_ip = text_at(statement, 2),
            .server_ip = text_at(statement, 3),
            .server_port = (uint16_t)sqlite3_column_int64(statement, 4),
            .start_ns = sqlite3_column_int64(statement, 5),
            .rtt_basis = text_at(statement, 6),
            .client_rtt_ns = integer_at(statement, 7),
            .facts = text_at(statement, 8),
            .is_open = sqlite3_column_int(statement, 9) != 0,
        };
    return status;
}

enum status store_next_flow(struct store *s, struct stored_flow *ret_flow)
{
    sqlite3_stmt *statement = statement_of(s, NEXT_FLOW);
    return statement == NULL ? fail(s) : next_flow(s, statement, ret_flow);
}

enum status store_next_undecided(struct store *s, int64_t up_to_flow_id,
                                 struct stored_flow *ret_flow)
{
    sqlite3_stmt *statement = statement_of(s, NEXT_UNDECIDED);
    if (statement == NULL)
        return fail(s);
    if (!sqlite3_stmt_busy(statement))
        sqlite3_bind_int64(statement, 1, up_to_flow_id);
    return next_flow(s, statement, ret_flow);
}

enum status store_read_judged(struct store *s, int64_t flow_id, struct flow_row *ret_row)
{
    sqlite3_stmt *statement = statement_of(s, READ_JUDGED);
    if (statement == NULL)
        return fail(s);
    sqlite3_reset(statement); /* the row before was looked at until now */
    sqlite3_bind_int64(statement, 1, flow_id);
    enum status status = next_row(s, statement);
    if (status != STATUS_OK)
        return status;
    *ret_row = (struct flow_row){ 0 };
    int column = 0;
#define READ_INTEGER(name) ret_row->name = integer_at(statement, column++);
#define READ_REAL(name) ret_row->name = real_at(statement, column++);
#define READ_TEXT(name) ret_row->name = text_at(statement, column++);
    FLOW_JUDGED(READ_INTEGER, READ_REAL, READ_TEXT)
#undef READ_INTEGER
#undef READ_REAL
#undef READ_TEXT
    return STATUS_OK;
}

enum status store_update_judged(struct store *s, int64_t flow_id, const struct flow_row *row)
{
    sqlite3_stmt *statement = statement_of(s, UPDATE_JUDGED);
    if (statement == NULL)
        return fail(s);
    if (!bind_judged(statement, row, &(struct flow_row){ 0 }))
        return fail_bind(s, statement);
    sqlite3_bind_int64(statement, sqlite3_bind_parameter_count(statement), flow_id);
    return run(s, statement, NULL);
}

enum status store_link_retries(struct store *s, int64_t from_ns, int64_t to_ns,
                               uint64_t *ret_changed)
{
    enum status status = make_indexes(s);
    if (status != STATUS_OK)
        return status;
    sqlite3_stmt *statement = statement_of(s, LINK_RETRIES);
    if (statement == NULL)
        return fail(s);
    sqlite3_bind_int64(statement, 1, from_ns);
    sqlite3_bind_int64(statement, 2, to_ns);
    status = run(s, statement, NULL);
    if (status == STATUS_OK)
        *ret_changed = (uint64_t)sqlite3_changes64(s->db);
    return status;
}
