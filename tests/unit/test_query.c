/* SPDX-License-Identifier: Apache-2.0 */
#include "query.h"
#include "store.h"
#include "store_rows.h"

#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char directory[64], path[128], answer[256];

enum { FLOWS = 10 };

/* A database of flows with response times 1 to FLOWS. */
static void make_file(void)
{
    path_in(make_directory(directory), "a%20b?c#d.db", path);
    struct store *s;
    cr_assert_eq(store_open(path, &s), STATUS_OK);
    struct capture_row capture = sample_capture("c");
    struct drop_counts drops = { 0 };
    int64_t id;
    cr_assert_eq(store_begin(s), STATUS_OK);
    cr_assert_eq(store_capture(s, &capture, &drops, &id), STATUS_OK);
    for (unsigned i = 1; i <= FLOWS; i++) {
        char uid[UID_SIZE];
        struct flow_row flow = sample_flow(id, uid_text(i, uid));
        flow.response_ns = integer(i);
        flow.sni = text(i % 2 == 0 ? "even.example" : "odd.example");
        bool added;
        cr_assert_eq(store_flow(s, &flow, (struct bytes){ 0 }, &added), STATUS_OK);
    }
    cr_assert_eq(store_commit(s), STATUS_OK);
    store_close(s);
}

static void remove_file(void)
{
    remove_directory(directory);
}

TestSuite(query, .init = make_file, .fini = remove_file);

static struct database *open_database(void)
{
    struct database *d;
    enum status status = database_open(path, &d);
    cr_assert_eq(status, STATUS_OK, "%s", database_error(d));
    return d;
}

static struct query *open_query(struct database *d, const char *sql)
{
    struct query *q;
    cr_assert_eq(query_open(d, sql, &q), STATUS_OK, "%s", database_error(d));
    return q;
}

/* The only cell of the only row of a query, which must be a number. */
static double number_of(struct database *d, const char *sql)
{
    struct query *q = open_query(d, sql);
    cr_assert_eq(query_next(q), STATUS_OK, "%s: %s", sql, database_error(d));
    struct cell cell = query_cell(q, 0);
    cr_assert(cell.type == CELL_INTEGER || cell.type == CELL_REAL, "%s", sql);
    cr_assert_eq(query_next(q), STATUS_END);
    query_close(q);
    return cell.type == CELL_REAL ? cell.real : (double)cell.integer;
}

/* The query must fail, when made or when run, with these words. */
static void expect_error(struct database *d, const char *sql, const char *words)
{
    struct query *q = NULL;
    enum status status = query_open(d, sql, &q);
    while (status == STATUS_OK)
        status = query_next(q);
    cr_assert_eq(status, STATUS_USAGE, "%s gave %d", sql, status);
    cr_assert_not_null(strstr(database_error(d), words), "%s: %s", sql, database_error(d));
    if (q != NULL)
        query_close(q);
}

Test(query, gives_columns_rows_and_kinds_of_values)
{
    struct database *d = open_database();
    struct query *q = open_query(d, "SELECT 7 AS a, 0.5, 'x' AS \"c d\", NULL AS e, x'00ff' AS f,"
                                    " '' AS g UNION ALL SELECT 8, 1, 2, 3, 4, 5");
    cr_assert_eq(query_column_count(q), 6);
    cr_assert_str_eq(query_column_name(q, 0), "a");
    cr_assert_str_eq(query_column_name(q, 2), "c d");
    cr_assert_eq(query_next(q), STATUS_OK);
    cr_assert_eq(query_cell(q, 0).integer, 7);
    cr_assert_eq(query_cell(q, 1).type, CELL_REAL);
    cr_assert_eq(query_cell(q, 2).type, CELL_TEXT);
    cr_assert_eq(query_cell(q, 2).bytes.at[0], 'x');
    cr_assert_eq(query_cell(q, 3).type, CELL_NULL);
    cr_assert_eq(query_cell(q, 4).type, CELL_BLOB);
    cr_assert_eq(query_cell(q, 4).bytes.len, 2);
    cr_assert_eq(query_cell(q, 5).type, CELL_TEXT);
    cr_assert_eq(query_cell(q, 5).bytes.len, 0);
    cr_assert_eq(query_next(q), STATUS_OK);
    cr_assert_eq(query_cell(q, 0).integer, 8);
    cr_assert_eq(query_next(q), STATUS_END);
    query_rewind(q);
    cr_assert_eq(query_next(q), STATUS_OK);
    cr_assert_eq(query_cell(q, 0).integer, 7);
    query_close(q);
    database_close(d);
}

Test(query, binds_parameters_by_name_and_keeps_them_over_a_rewind)
{
    struct database *d = open_database();
    struct query *q = open_query(d, "SELECT count(*) FROM flow WHERE response_ns >= :least"
                                    " AND response_ns < :most AND sni = :sni");
    cr_assert_eq(query_bind_integer(q, ":least", 3), STATUS_OK);
    cr_assert_eq(query_bind_real(q, ":most", 8.5), STATUS_OK);
    cr_assert_eq(query_bind_text(q, ":sni", text_bytes("even.example")), STATUS_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(query_next(q), STATUS_OK);
        cr_assert_eq(query_cell(q, 0).integer, 3);
        query_rewind(q);
    }
    cr_assert_eq(query_bind_integer(q, ":no", 3), STATUS_USAGE);
    cr_assert_not_null(strstr(database_error(d), ":no"));
    query_close(q);
    q = open_query(d, "SELECT :a IS NULL, :b IS NULL");
    cr_assert_eq(query_bind_text(q, ":b", (struct bytes){ 0 }), STATUS_OK);
    cr_assert_eq(query_next(q), STATUS_OK);
    cr_assert_eq(query_cell(q, 0).integer, 1);
    cr_assert_eq(query_cell(q, 1).integer, 0);
    query_close(q);
    database_close(d);
}

Test(query, refuses_sql_that_is_wrong_or_writes)
{
    static const char *const CASES[][2] = {
        { "SELEC 1", "syntax error" },
        { "SELECT nothing FROM flow", "nothing" },
        { "", "no SQL statement" },
        { " -- only a comment\n ; ", "no SQL statement" },
        { "SELECT 1; SELECT 2", "more than one" },
        { "SELECT 1; garbage", "more than one" },
        { "DELETE FROM flow", "would write" },
        { "CREATE TEMP TABLE t (a)", "would write" },
        { "PRAGMA user_version = 9", "would write" },
        { "PRAGMA journal_mode = WAL", "would write" },
        { "VACUUM INTO '/tmp/firstflight-copy.db'", "" },
        { "ATTACH '/tmp/firstflight-other.db' AS o", "" },
        { "SELECT load_extension('x')", "not authorized" },
        { "PRAGMA writable_schema = ON; DELETE FROM sqlite_schema", "more than one" },
    };
    struct database *d = open_database();
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        expect_error(d, CASES[i][0], CASES[i][1]);
    cr_assert_eq(number_of(d, "SELECT count(*) FROM flow ; -- all\n;"), FLOWS);
    database_close(d);
    cr_assert_str_eq(ask_file(path, "SELECT count(*) FROM flow", answer), "10");
    cr_assert_neq(access("/tmp/firstflight-copy.db", F_OK), 0);
    cr_assert_neq(access("/tmp/firstflight-other.db", F_OK), 0);
}

Test(query, every_view_can_be_read)
{
    static const char *const VIEWS[] = { "flow_ms",           "record",       "region_latency",
                                         "early_data_gain",   "timeline",     "replay",
                                         "early_data_policy", "ticket_reuse", "ticket_key",
                                         "failures",          "pair" };
    struct database *d = open_database();
    for (size_t i = 0; i < sizeof VIEWS / sizeof VIEWS[0]; i++) {
        char sql[64];
        (void)snprintf(sql, sizeof sql, "SELECT count(*) FROM %s", VIEWS[i]);
        (void)number_of(d, sql);
    }
    cr_assert_eq(number_of(d, "SELECT count(*) FROM flow_ms"), FLOWS);
    database_close(d);
}

Test(query, percentiles_interpolate_between_neighbours)
{
    static const struct {
        const char *sql;
        double value;
    } CASES[] = {
        { "SELECT median(response_ns) FROM flow", 5.5 },
        { "SELECT percentile(response_ns, 0) FROM flow", 1 },
        { "SELECT percentile(response_ns, 100) FROM flow", 10 },
        { "SELECT percentile(response_ns, 90) FROM flow", 9.1 },
        { "SELECT percentile(response_ns, 12.5) FROM flow", 2.125 },
        { "SELECT percentile_cont(response_ns, 0.9) FROM flow", 9.1 },
        { "SELECT percentile_disc(response_ns, 0.9) FROM flow", 9 },
        { "SELECT percentile_disc(response_ns, 1) FROM flow", 10 },
        { "SELECT percentile_disc(response_ns, 0.5) FROM flow", 5 },
        { "SELECT median(response_ns) FROM flow WHERE response_ns = 3", 3 },
        { "SELECT median(-response_ns) FROM flow", -5.5 },
        { "SELECT median(nullif(response_ns, 10)) FROM flow", 5 },
        { "SELECT percentile(response_ns, '50') FROM flow", 5.5 },
        { "SELECT percentile(response_ns, 50 + 0.05 * (response_ns % 2)) FROM flow",
          5.50225 + 0.002 },
    };
    struct database *d = open_database();
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        double value = number_of(d, CASES[i].sql);
        cr_assert_lt(fabs(value - CASES[i].value), 0.003, "%s: %g", CASES[i].sql, value);
    }
    cr_assert_eq(number_of(d, "SELECT typeof(median(response_ns)) = 'real' FROM flow"), 1);
    cr_assert_eq(number_of(d, "SELECT median(response_ns) IS NULL FROM flow WHERE 0"), 1);
    cr_assert_eq(number_of(d, "SELECT median(NULL) IS NULL FROM flow"), 1);
    database_close(d);
}

Test(query, percentiles_refuse_what_is_no_number)
{
    struct database *d = open_database();
    expect_error(d, "SELECT median(sni) FROM flow", "input to median() is not numeric");
    expect_error(d, "SELECT median('1') FROM flow", "input to median() is not numeric");
    expect_error(d, "SELECT median(9e999) FROM flow", "Inf input to median()");
    expect_error(d, "SELECT percentile(response_ns, 101) FROM flow", "between 0.0 and 100.0");
    expect_error(d, "SELECT percentile(response_ns, -1) FROM flow", "between 0.0 and 100.0");
    expect_error(d, "SELECT percentile(response_ns, NULL) FROM flow", "between 0.0 and 100.0");
    expect_error(d, "SELECT percentile_cont(response_ns, 1.1) FROM flow", "between 0.0 and 1.0");
    expect_error(d, "SELECT percentile(response_ns, response_ns) FROM flow", "not the same");
    expect_error(d, "SELECT median() FROM flow", "wrong number of arguments");
    database_close(d);
}

/* Every window of every width over a series with equal values must give what a sort gives. */
Test(query, as_window_functions_percentiles_equal_those_of_the_rows)
{
    static const char sql[] =
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 39),"
        " v(i, x) AS (SELECT i, CASE WHEN i %% 7 = 3 THEN NULL ELSE i * 37 %% 11 END FROM n),"
        " w(i, p) AS (SELECT i, percentile(x, 30) OVER"
        "   (ORDER BY i ROWS BETWEEN %d PRECEDING AND CURRENT ROW) FROM v)"
        " SELECT count(*) FROM w WHERE p IS NOT"
        "   (SELECT percentile(x, 30) FROM v WHERE v.i BETWEEN w.i - %d AND w.i)";
    struct database *d = open_database();
    for (int width = 0; width < 40; width++) {
        char text_of_width[600];
        (void)snprintf(text_of_width, sizeof text_of_width, sql, width, width);
        cr_assert_eq(number_of(d, text_of_width), 0, "width %d", width);
    }
    database_close(d);
}

static void expect_refused(enum status expected, const char *words)
{
    struct database *d;
    cr_assert_eq(database_open(path, &d), expected);
    cr_assert_not_null(strstr(database_error(d), words), "%s", database_error(d));
    database_close(d);
}

static void change_file(const char *sql)
{
    sqlite3 *db;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
    sqlite3_close(db);
}

Test(query, refuses_what_is_not_ours_and_what_is_newer)
{
    change_file("PRAGMA user_version = 2");
    expect_refused(STATUS_REFUSED, "newer firstflight");
    change_file("PRAGMA user_version = 1; PRAGMA application_id = 7");
    expect_refused(STATUS_REFUSED, "not a firstflight database");
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    for (int i = 0; i < 100; i++)
        (void)fputs("no database at all ", f);
    (void)fclose(f);
    expect_refused(STATUS_REFUSED, "not a firstflight database");
    cr_assert_eq(unlink(path), 0);
    expect_refused(STATUS_IO, "firstflight ingest");
    cr_assert_neq(access(path, F_OK), 0);
}

static void read_without_rights(void)
{
    struct database *d;
    bool right = database_open(path, &d) == STATUS_OK;
    if (right) {
        struct query *q;
        right = query_open(d, "SELECT count(*) FROM flow", &q) == STATUS_OK &&
                query_next(q) == STATUS_OK && query_cell(q, 0).integer == FLOWS;
        query_close(q);
    }
    database_close(d);
    _exit(right ? 0 : 1);
}

static void fail_without_rights(void)
{
    struct database *d;
    bool right = database_open(path, &d) == STATUS_IO &&
                 strstr(database_error(d), "was stopped while writing") != NULL;
    database_close(d);
    _exit(right ? 0 : 1);
}

/* Runs as somebody who may read the file and its directory, but write neither. */
static void as_reader(void (*run)(void))
{
    cr_assert_eq(chmod(directory, 0555), 0);
    cr_assert_eq(chmod(path, 0444), 0);
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
            _exit(2);
        run();
    }
    int how;
    cr_assert_eq(waitpid(child, &how, 0), child);
    cr_assert(WIFEXITED(how) && WEXITSTATUS(how) == 0, "child ended with %d", how);
    cr_assert_eq(chmod(directory, 0755), 0);
    cr_assert_eq(chmod(path, 0644), 0);
}

Test(query, reads_where_nothing_may_be_written)
{
    as_reader(read_without_rights);
    change_file("PRAGMA journal_mode = WAL");
    as_reader(read_without_rights);
}

/* Leaves the file as a writer does that is killed in the middle: with a journal to go back by. */
static void kill_a_writer(void)
{
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        sqlite3 *db;
        sqlite3_open(path, &db);
        sqlite3_exec(db, "PRAGMA cache_size = 1; BEGIN; DELETE FROM flow", NULL, NULL, NULL);
        sqlite3_db_cacheflush(db);
        (void)raise(SIGKILL);
    }
    int how;
    cr_assert_eq(waitpid(child, &how, 0), child);
    char journal[140];
    (void)snprintf(journal, sizeof journal, "%s-journal", path);
    struct stat s;
    cr_assert_eq(stat(journal, &s), 0);
    cr_assert_gt(s.st_size, 0);
}

Test(query, restores_what_a_killed_writer_left)
{
    kill_a_writer();
    struct database *d = open_database();
    cr_assert_eq(number_of(d, "SELECT count(*) FROM flow"), FLOWS);
    database_close(d);
}

Test(query, says_so_where_it_may_not_restore)
{
    kill_a_writer();
    char journal[140];
    (void)snprintf(journal, sizeof journal, "%s-journal", path);
    cr_assert_eq(chmod(journal, 0444), 0);
    as_reader(fail_without_rights);
    cr_assert_eq(chmod(journal, 0644), 0);
    struct database *d = open_database();
    cr_assert_eq(number_of(d, "SELECT count(*) FROM flow"), FLOWS);
    database_close(d);
}

Test(query, reads_while_another_program_prepares_to_write)
{
    sqlite3 *writer;
    cr_assert_eq(sqlite3_open(path, &writer), SQLITE_OK);
    cr_assert_eq(sqlite3_exec(writer, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    struct database *d = open_database();
    cr_assert_eq(number_of(d, "SELECT count(*) FROM flow"), FLOWS);
    database_close(d);
    sqlite3_close(writer);
}

/* ---- relations that are kept ---- */

static void keep(struct database *d, const char *name, const char *sql)
{
    struct query *q;
    cr_assert_eq(query_open_keeping(d, name, sql, &q), STATUS_OK, "%s", database_error(d));
    cr_assert_eq(query_bind_integer(q, ":least", 4), STATUS_OK);
    cr_assert_eq(query_next(q), STATUS_END, "%s", database_error(d));
    query_close(q);
}

Test(query, what_is_kept_is_read_later_and_replaced_by_what_is_kept_under_its_name)
{
    struct database *d = open_database();
    keep(d, "late", "SELECT response_ns FROM flow WHERE response_ns >= :least");
    cr_assert_float_eq(number_of(d, "SELECT count(*) FROM late"), FLOWS - 3, 0);
    keep(d, "late", "SELECT response_ns FROM flow WHERE response_ns < :least");
    cr_assert_float_eq(number_of(d, "SELECT count(*) FROM late"), 3, 0);
    database_close(d);
    d = open_database();
    cr_assert_float_eq(number_of(d, "SELECT count(*) FROM pragma_table_info('late')"), 0, 0);
    database_close(d);
}

Test(query, keeping_is_of_one_select_and_users_may_not)
{
    struct database *d = open_database();
    struct query *q;
    cr_assert_eq(query_open_keeping(d, "x", "SELECT 1; DELETE FROM flow", &q), STATUS_USAGE);
    cr_assert_eq(query_open_keeping(d, "x", "DELETE FROM flow", &q), STATUS_USAGE);
    cr_assert_eq(query_open_keeping(d, "x", "SELECT no_column FROM flow", &q), STATUS_USAGE);
    cr_assert_eq(query_open(d, "CREATE TEMP TABLE x AS SELECT 1", &q), STATUS_USAGE);
    cr_assert_float_eq(number_of(d, "SELECT count(*) FROM flow"), FLOWS, 0);
    database_close(d);
}
