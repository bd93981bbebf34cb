/* SPDX-License-Identifier: Apache-2.0 */
#include "query.h"
#include "flow_row.h" /* SCHEMA_APPLICATION_ID, SCHEMA_VERSION */
#include "sql_functions.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* KEPT_KIB: memory for relations that are kept; what is beyond it lies in a temporary file. */
enum { WAIT_FOR_LOCK_MS = 5000, CACHE_KIB = 64 * 1024, KEPT_KIB = 192 * 1024 };

struct database {
    sqlite3 *db;
    char *path;
    struct text error;
};

struct query {
    struct database *database;
    sqlite3_stmt *statement;
};

const char *database_error(const struct database *d)
{
    return text_string(&d->error);
}

static enum status fail_with(struct database *d, enum status status, const char *text)
{
    text_clear(&d->error);
    text_addf(&d->error, "%s: %s", d->path, text);
    return status;
}

/* Keeps SQLite's own text about SQL, which quotes the SQL that it means. */
static enum status fail_sql(struct database *d, const char *text)
{
    text_clear(&d->error);
    text_add(&d->error, text);
    return STATUS_USAGE;
}

/* Keeps the text of SQLite's last failure: what happened and what can be done. */
static enum status fail(struct database *d)
{
    switch (sqlite3_errcode(d->db) & 0xff) {
    case SQLITE_NOMEM:
        return fail_with(d, STATUS_NO_MEMORY, "out of memory");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return fail_with(d, STATUS_IO,
                         "is being written by another program; try again when that has finished");
    case SQLITE_CANTOPEN:
        return fail_with(d, STATUS_IO,
                         "no such database, or not to be read; firstflight ingest makes one");
    case SQLITE_NOTADB:
        return fail_with(d, STATUS_REFUSED, "not a firstflight database");
    case SQLITE_CORRUPT:
        return fail_with(d, STATUS_IO,
                         "the database is damaged; ingest the captures into a new one");
    case SQLITE_IOERR:
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_FULL: /* of the disk for temporary files */
        return fail_with(d, STATUS_IO, sqlite3_errmsg(d->db));
    default:
        return fail_sql(d, sqlite3_errmsg(d->db));
    }
}

/* Gives the integer that a query without parameters yields. */
static enum status ask(struct database *d, const char *sql, int64_t *ret_value)
{
    sqlite3_stmt *statement = NULL;
    bool ok = sqlite3_prepare_v2(d->db, sql, -1, &statement, NULL) == SQLITE_OK &&
              sqlite3_step(statement) == SQLITE_ROW;
    enum status status = ok ? STATUS_OK : fail(d);
    if (ok)
        *ret_value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return status;
}

static enum status identify(struct database *d)
{
    int64_t application_id = 0, version = 0;
    enum status status = ask(d, "PRAGMA application_id", &application_id);
    if (status == STATUS_OK)
        status = ask(d, "PRAGMA user_version", &version);
    if (status != STATUS_OK)
        return status;
    if (application_id != SCHEMA_APPLICATION_ID)
        return fail_with(d, STATUS_REFUSED, "not a firstflight database");
    if (version > SCHEMA_VERSION)
        return fail_with(d, STATUS_REFUSED, "made by a newer firstflight; use that to read it");
    if (version < SCHEMA_VERSION)
        return fail_with(d, STATUS_REFUSED, "its schema version is none that was ever released");
    return STATUS_OK;
}

/* Whether a companion file of the database holds anything. */
static bool has_companion(const struct database *d, const char *suffix)
{
    struct text path = { 0 };
    text_addf(&path, "%s%s", d->path, suffix);
    struct stat s;
    bool has = !path.failed && stat(text_string(&path), &s) == 0 && s.st_size > 0;
    text_done(&path);
    return has;
}

/* The path as a URI that tells SQLite that nobody writes the file. */
static void immutable_uri(const char *path, struct text *ret_uri)
{
    text_add(ret_uri, "file:");
    for (const char *c = path; *c != '\0'; c++) {
        if (*c == '%' || *c == '?' || *c == '#')
            text_addf(ret_uri, "%%%02x", (unsigned)*c);
        else
            text_addf(ret_uri, "%c", *c);
    }
    text_add(ret_uri, "?immutable=1");
}

static enum status connect_to(struct database *d, const char *name, int flags)
{
    sqlite3_close(d->db);
    d->db = NULL;
    int code =
        sqlite3_open_v2(name, &d->db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | flags, NULL);
    if (d->db == NULL)
        return STATUS_NO_MEMORY;
    if (code != SQLITE_OK)
        return fail(d);
    sqlite3_busy_timeout(d->db, WAIT_FOR_LOCK_MS);
    return identify(d);
}

/*
 * A file that another tool left in WAL mode cannot be read from a read-only disk, because SQLite
 * must make files beside it. Where nothing waits in such files it is whole without them.
 */
static enum status connect_immutable(struct database *d)
{
    struct text uri = { 0 };
    immutable_uri(d->path, &uri);
    enum status status =
        uri.failed ? STATUS_NO_MEMORY : connect_to(d, text_string(&uri), SQLITE_OPEN_URI);
    text_done(&uri);
    return status;
}

/* A writer was killed: its journal restores the last complete state, which needs writing once. */
static bool restore(const struct database *d)
{
    sqlite3 *db = NULL;
    bool ok = sqlite3_open_v2(d->path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK &&
              sqlite3_exec(db, "PRAGMA user_version", NULL, NULL, NULL) == SQLITE_OK;
    sqlite3_close(db);
    return ok;
}

static enum status connect_or_restore(struct database *d)
{
    enum status status = connect_to(d, d->path, 0);
    struct stat s;
    if (status != STATUS_IO || stat(d->path, &s) != 0 || !S_ISREG(s.st_mode))
        return status;
    int code = sqlite3_errcode(d->db) & 0xff;
    if (code != SQLITE_CANTOPEN && code != SQLITE_READONLY)
        return status;
    if (!has_companion(d, "-wal") && !has_companion(d, "-journal"))
        return connect_immutable(d);
    if (restore(d))
        return connect_to(d, d->path, 0);
    return fail_with(d, STATUS_IO,
                     "a program was stopped while writing it; open it once where it may be"
                     " written, and its last complete state is restored");
}

static enum status protect(struct database *d)
{
    sqlite3_db_config(d->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_limit(d->db, SQLITE_LIMIT_ATTACHED, 0);
    char settings[128];
    (void)snprintf(settings, sizeof settings,
                   "PRAGMA main.cache_size = -%d; PRAGMA temp.cache_size = -%d", CACHE_KIB,
                   KEPT_KIB);
    bool ok = sqlite3_exec(d->db, settings, NULL, NULL, NULL) == SQLITE_OK &&
              sql_functions_register(d->db) == SQLITE_OK;
    return ok ? STATUS_OK : fail(d);
}

enum status database_open(const char *path, struct database **ret_database)
{
    struct database *d = calloc(1, sizeof *d);
    *ret_database = d;
    if (d == NULL)
        return STATUS_NO_MEMORY;
    d->path = strdup(path);
    enum status status = d->path == NULL ? STATUS_NO_MEMORY : connect_or_restore(d);
    if (status == STATUS_OK)
        status = protect(d);
    if (status == STATUS_NO_MEMORY) {
        database_close(d);
        *ret_database = NULL;
    }
    return status;
}

void database_close(struct database *d)
{
    if (d == NULL)
        return;
    int closed = sqlite3_close(d->db);
    assert(closed == SQLITE_OK); /* else a query is still open */
    (void)closed;
    text_done(&d->error);
    free(d->path);
    free(d);
}

/* Whether nothing but space, semicolons and comments is left of the SQL. */
static bool is_rest_empty(sqlite3 *db, const char *rest)
{
    while (*rest != '\0') {
        sqlite3_stmt *statement = NULL;
        const char *tail = rest;
        int code = sqlite3_prepare_v2(db, rest, -1, &statement, &tail);
        sqlite3_finalize(statement);
        if (code != SQLITE_OK || statement != NULL)
            return false;
        if (tail == rest)
            return true;
        rest = tail;
    }
    return true;
}

/* Makes the statement, or says why the SQL is not one. */
static enum status prepare(struct database *d, const char *sql, sqlite3_stmt **ret_statement)
{
    const char *rest = sql;
    if (sqlite3_prepare_v2(d->db, sql, -1, ret_statement, &rest) != SQLITE_OK)
        return fail(d);
    if (*ret_statement == NULL)
        return fail_sql(d, "there is no SQL statement");
    if (!is_rest_empty(d->db, rest))
        return fail_sql(d, "more than one SQL statement");
    return STATUS_OK;
}

static enum status check_reads(struct database *d, sqlite3_stmt *statement)
{
    if (sqlite3_stmt_readonly(statement))
        return STATUS_OK;
    return fail_sql(d, "the statement would write, but the database is open for reading only");
}

/* A query of a statement that could be made, or the status that it could not be made with. */
static enum status open_prepared(struct database *d, sqlite3_stmt *statement, enum status status,
                                 struct query **ret_query)
{
    struct query *q = status == STATUS_OK ? malloc(sizeof *q) : NULL;
    if (q == NULL) {
        sqlite3_finalize(statement);
        return status == STATUS_OK ? fail_with(d, STATUS_NO_MEMORY, "out of memory") : status;
    }
    *q = (struct query){ d, statement };
    *ret_query = q;
    return STATUS_OK;
}

enum status query_open(struct database *d, const char *sql, struct query **ret_query)
{
    sqlite3_stmt *statement = NULL;
    enum status status = prepare(d, sql, &statement);
    if (status == STATUS_OK)
        status = check_reads(d, statement);
    return open_prepared(d, statement, status, ret_query);
}

enum status query_open_keeping(struct database *d, const char *name, const char *sql,
                               struct query **ret_query)
{
    struct text drop = { 0 }, create = { 0 };
    text_addf(&drop, "DROP TABLE IF EXISTS temp.%s", name);
    text_addf(&create, "CREATE TEMP TABLE %s AS %s", name, sql);
    sqlite3_stmt *statement = NULL;
    enum status status = STATUS_OK;
    if (drop.failed || create.failed)
        status = fail_with(d, STATUS_NO_MEMORY, "out of memory");
    else if (sqlite3_exec(d->db, text_string(&drop), NULL, NULL, NULL) != SQLITE_OK)
        status = fail(d);
    else
        status = prepare(d, text_string(&create), &statement);
    text_done(&drop);
    text_done(&create);
    return open_prepared(d, statement, status, ret_query);
}

void query_close(struct query *q)
{
    if (q == NULL)
        return;
    sqlite3_finalize(q->statement);
    free(q);
}

/* Number of the parameter; 0, with the error's text, when the SQL has none of that name. */
static int parameter(struct query *q, const char *name)
{
    int number = sqlite3_bind_parameter_index(q->statement, name);
    if (number == 0) {
        text_clear(&q->database->error);
        text_addf(&q->database->error, "the SQL has no parameter %s", name);
    }
    return number;
}

enum status query_bind_integer(struct query *q, const char *name, int64_t value)
{
    int number = parameter(q, name);
    if (number == 0)
        return STATUS_USAGE;
    return sqlite3_bind_int64(q->statement, number, value) == SQLITE_OK ? STATUS_OK
                                                                        : fail(q->database);
}

enum status query_bind_real(struct query *q, const char *name, double value)
{
    int number = parameter(q, name);
    if (number == 0)
        return STATUS_USAGE;
    return sqlite3_bind_double(q->statement, number, value) == SQLITE_OK ? STATUS_OK
                                                                         : fail(q->database);
}

enum status query_bind_text(struct query *q, const char *name, struct bytes text)
{
    int number = parameter(q, name);
    if (number == 0)
        return STATUS_USAGE;
    /* A view of nothing has no address, which SQLite would take for NULL. */
    const char *at = text.len == 0 ? "" : (const char *)text.at;
    int code =
        sqlite3_bind_text64(q->statement, number, at, text.len, SQLITE_TRANSIENT, SQLITE_UTF8);
    return code == SQLITE_OK ? STATUS_OK : fail(q->database);
}

size_t query_column_count(const struct query *q)
{
    return (size_t)sqlite3_column_count(q->statement);
}

const char *query_column_name(const struct query *q, size_t column)
{
    return sqlite3_column_name(q->statement, (int)column);
}

enum status query_next(struct query *q)
{
    switch (sqlite3_step(q->statement)) {
    case SQLITE_ROW:
        return STATUS_OK;
    case SQLITE_DONE:
        return STATUS_END;
    default:
        return fail(q->database);
    }
}

struct cell query_cell(struct query *q, size_t column)
{
    sqlite3_stmt *s = q->statement;
    int i = (int)column;
    switch (sqlite3_column_type(s, i)) {
    case SQLITE_INTEGER:
        return cell_integer(sqlite3_column_int64(s, i));
    case SQLITE_FLOAT:
        return cell_real(sqlite3_column_double(s, i));
    case SQLITE_TEXT: {
        const uint8_t *at = sqlite3_column_text(s, i);
        return (struct cell){ .type = CELL_TEXT,
                              .bytes = { at, (size_t)sqlite3_column_bytes(s, i) } };
    }
    case SQLITE_BLOB: {
        const uint8_t *at = sqlite3_column_blob(s, i);
        return (struct cell){ .type = CELL_BLOB,
                              .bytes = { at, (size_t)sqlite3_column_bytes(s, i) } };
    }
    default:
        return cell_null();
    }
}

void query_rewind(struct query *q)
{
    sqlite3_reset(q->statement);
}
