/* SPDX-License-Identifier: Apache-2.0 */
#include "fault_vfs.h"
#include "store.h"
#include "store_rows.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char directory[64], path[128], answer[256];

static void make_path(void)
{
    path_in(make_directory(directory), "test.db", path);
}

static void remove_path(void)
{
    remove_directory(directory);
}

TestSuite(store, .init = make_path, .fini = remove_path);

#define ASK(sql) ask_file(path, sql, answer)

static struct store *open_store(void)
{
    struct store *s;
    enum status status = store_open(path, &s);
    cr_assert_eq(status, STATUS_OK, "%s", store_error(s));
    return s;
}

/* SQLite's handle of every connection that is opened from here on. */
static sqlite3 *last_connection;

static int keep_connection(sqlite3 *db, char **error, const struct sqlite3_api_routines *api)
{
    (void)error;
    (void)api;
    last_connection = db;
    return SQLITE_OK;
}

static void watch_connections(void)
{
    sqlite3_auto_extension((void (*)(void))keep_connection);
}

static void run_sql(sqlite3 *db, const char *sql)
{
    cr_assert_eq(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK, "%s", sqlite3_errmsg(db));
}

/* Adds a capture and `count` flows with uids from `first` on; the status of the first failure. */
static enum status add_flows(struct store *s, const char *content_hash, unsigned first,
                             unsigned count)
{
    struct capture_row capture = sample_capture(content_hash);
    struct drop_counts drops = { .packets = { [DROP_NOT_IP] = 7 } };
    static const char facts[] = "{\"records\":[]}";
    int64_t capture_id = 0;
    enum status status = store_capture(s, &capture, &drops, &capture_id);
    for (unsigned i = 0; i < count && status == STATUS_OK; i++) {
        char uid[UID_SIZE];
        struct flow_row flow = sample_flow(capture_id, uid_text(first + i, uid));
        bool added;
        status = store_flow(s, &flow, (struct bytes){ (const uint8_t *)facts, sizeof facts - 1 },
                            &added);
    }
    return status;
}

static enum status load(struct store *s, const char *content_hash, unsigned first, unsigned count)
{
    enum status status = store_begin(s);
    if (status == STATUS_OK)
        status = add_flows(s, content_hash, first, count);
    if (status == STATUS_OK)
        return store_commit(s);
    store_rollback(s);
    return status;
}

static void make_file(unsigned flows)
{
    struct store *s = open_store();
    cr_assert_eq(load(s, "old", 0, flows), STATUS_OK, "%s", store_error(s));
    store_close(s);
}

Test(store, a_new_file_is_ours_and_can_be_copied)
{
    make_file(3);
    cr_assert_str_eq(ASK("PRAGMA application_id"), "1179012180");
    cr_assert_str_eq(ASK("PRAGMA user_version"), "1");
    cr_assert_str_eq(ASK("PRAGMA journal_mode"), "delete");
    cr_assert_str_eq(ASK("PRAGMA page_size"), "16384");
    cr_assert_str_eq(ASK("PRAGMA integrity_check"), "ok");
    char companion[140];
    (void)snprintf(companion, sizeof companion, "%s-journal", path);
    cr_assert_neq(access(companion, F_OK), 0);
    (void)snprintf(companion, sizeof companion, "%s-wal", path);
    cr_assert_neq(access(companion, F_OK), 0);
}

Test(store, values_come_back_and_what_was_not_set_is_null)
{
    struct store *s = open_store();
    cr_assert_eq(store_begin(s), STATUS_OK);
    cr_assert_eq(add_flows(s, "c", 0, 0), STATUS_OK);
    char uid[UID_SIZE];
    struct flow_row flow = sample_flow(1, uid_text(5, uid));
    flow.response_ns = integer(INT64_MAX);
    flow.round_trips = (struct row_real){ true, 2.125 };
    flow.client_asn = integer(0);
    flow.sni = text("");
    bool added = false;
    cr_assert_eq(store_flow(s, &flow, (struct bytes){ 0 }, &added), STATUS_OK);
    cr_assert(added);
    cr_assert_eq(store_commit(s), STATUS_OK);
    store_close(s);
    cr_assert_str_eq(ASK("SELECT response_ns FROM flow"), "9223372036854775807");
    cr_assert_str_eq(ASK("SELECT round_trips FROM flow"), "2.125");
    cr_assert_str_eq(ASK("SELECT client_asn FROM flow"), "0");
    cr_assert_str_eq(ASK("SELECT typeof(sni) FROM flow"), "text");
    cr_assert_str_eq(ASK("SELECT perceived_ns FROM flow"), "NULL");
    cr_assert_str_eq(ASK("SELECT flow_uid FROM flow"), uid);
    cr_assert_str_eq(ASK("SELECT count(*) FROM flow_facts"), "0");
}

Test(store, a_value_of_one_row_does_not_reach_the_next)
{
    struct store *s = open_store();
    cr_assert_eq(store_begin(s), STATUS_OK);
    cr_assert_eq(add_flows(s, "c", 0, 0), STATUS_OK);
    char uid[UID_SIZE];
    struct flow_row flow = sample_flow(1, uid_text(1, uid));
    flow.sni = text("www.example.com");
    flow.response_ns = integer(5);
    bool added;
    cr_assert_eq(store_flow(s, &flow, (struct bytes){ 0 }, &added), STATUS_OK);
    flow = sample_flow(1, uid_text(2, uid));
    cr_assert_eq(store_flow(s, &flow, (struct bytes){ 0 }, &added), STATUS_OK);
    cr_assert_eq(store_commit(s), STATUS_OK);
    store_close(s);
    cr_assert_str_eq(ASK("SELECT sni || response_ns FROM flow WHERE flow_id = 2"), "NULL");
}

/* Adds a flow with texts and a number that come, change in place, and go from row to row. */
static void add_changing(struct store *s, unsigned number, char sni[8], const char *failure)
{
    char uid[UID_SIZE];
    struct flow_row flow = sample_flow(1, uid_text(number, uid));
    if (sni != NULL)
        flow.sni = text(sni);
    flow.failure = (struct row_text){ failure, failure == NULL ? 0 : strlen(failure), true };
    flow.client_mss = (struct row_integer){ failure != NULL, failure != NULL ? number / 2 : 7 };
    flow.round_trips = (struct row_real){ failure != NULL, number };
    bool added;
    cr_assert_eq(store_flow(s, &flow, (struct bytes){ 0 }, &added), STATUS_OK);
}

Test(store, each_row_has_its_own_values_although_some_stay_bound)
{
    static const char RESET[] = "reset", TIMEOUT[] = "timeout";
    struct store *s = open_store();
    cr_assert_eq(store_begin(s), STATUS_OK);
    cr_assert_eq(add_flows(s, "c", 0, 0), STATUS_OK);
    char sni[8] = "a.test";
    add_changing(s, 1, sni, RESET);
    memcpy(sni, "b\n\xff", 4);
    add_changing(s, 2, sni, RESET);
    memcpy(sni, "c\n\xfe", 4);
    add_changing(s, 3, sni, TIMEOUT);
    add_changing(s, 4, NULL, NULL);
    add_changing(s, 5, NULL, NULL);
    add_changing(s, 6, sni, TIMEOUT);
    cr_assert_eq(store_commit(s), STATUS_OK);
    store_close(s);
    cr_assert_str_eq(ASK("SELECT group_concat(concat, ' ') FROM (SELECT ifnull(sni, '-') || ':' ||"
                         " ifnull(failure, '-') || ':' || ifnull(client_mss, '-') || ':' ||"
                         " ifnull(round_trips, '-') AS concat FROM flow ORDER BY flow_id)"),
                     "a.test:reset:0:1.0 b\\x0a\\xff:reset:1:2.0 c\\x0a\\xfe:timeout:1:3.0"
                     " -:-:-:- -:-:-:- c\\x0a\\xfe:timeout:3:6.0");
}

static off64_t hinted_until; /* all before it was hinted at, one stretch after the other */
static bool hints_fail;

/* Takes the place of the system's. */
int sync_file_range(int fd, off64_t offset, off64_t count, unsigned flags)
{
    (void)fd;
    cr_assert_eq(flags, SYNC_FILE_RANGE_WRITE, "nothing is waited for");
    if (offset == hinted_until)
        hinted_until = offset + count;
    errno = EIO;
    return hints_fail ? -1 : 0;
}

Test(store, a_large_load_is_on_its_way_to_the_disk_before_the_commit_waits_for_it)
{
    enum { FLOWS = 600, FACTS_LEN = 16000 };
    static char facts[FACTS_LEN];
    memset(facts, 'x', sizeof facts);
    hints_fail = true; /* which matters to nobody */
    struct store *s = open_store();
    cr_assert_eq(store_begin(s), STATUS_OK);
    cr_assert_eq(add_flows(s, "c", 0, 0), STATUS_OK);
    for (unsigned i = 0; i < FLOWS; i++) {
        char uid[UID_SIZE];
        struct flow_row flow = sample_flow(1, uid_text(i, uid));
        bool added;
        cr_assert_eq(
            store_flow(s, &flow, (struct bytes){ (const uint8_t *)facts, sizeof facts }, &added),
            STATUS_OK);
    }
    cr_assert_eq(store_commit(s), STATUS_OK);
    store_close(s);
    struct stat file;
    cr_assert_eq(stat(path, &file), 0);
    cr_assert_gt(file.st_size, FLOWS * FACTS_LEN);
    cr_assert_gt(hinted_until, file.st_size / 2, "%lld of %lld", (long long)hinted_until,
                 (long long)file.st_size);
    cr_assert_str_eq(ASK("SELECT integrity_check || count(*) FROM pragma_integrity_check, flow"),
                     "ok600");
}

Test(store, text_of_any_origin_is_stored_printable)
{
    struct store *s = open_store();
    struct capture_row capture = sample_capture("c");
    capture.path = text("caf\xc3\xa9/\xff\x1b[31m\n\xc3");
    capture.host = text("\xc0\xaf \xed\xa0\x80 \xf4\x90\x80\x80 \xc2\x9b \xf0\x9f\x98\x80");
    capture.site = (struct row_text){ .at = "a\0b", .len = 3 };
    struct drop_counts drops = { 0 };
    int64_t id;
    cr_assert_eq(store_begin(s), STATUS_OK);
    cr_assert_eq(store_capture(s, &capture, &drops, &id), STATUS_OK);
    cr_assert_eq(store_commit(s), STATUS_OK);
    store_close(s);
    cr_assert_str_eq(ASK("SELECT path FROM capture"), "caf\xc3\xa9/\\xff\\x1b[31m\\x0a\\xc3");
    cr_assert_str_eq(ASK("SELECT host FROM capture"),
                     "\\xc0\\xaf \\xed\\xa0\\x80 \\xf4\\x90\\x80\\x80 \\xc2\\x9b"
                     " \xf0\x9f\x98\x80");
    cr_assert_str_eq(ASK("SELECT site FROM capture"), "a\\x00b");
}

Test(store, a_word_that_the_schema_does_not_know_is_refused)
{
    struct store *s = open_store();
    cr_assert_eq(store_begin(s), STATUS_OK);
    cr_assert_eq(add_flows(s, "c", 0, 0), STATUS_OK);
    char uid[UID_SIZE];
    struct flow_row flow = sample_flow(1, uid_text(1, uid));
    flow.handshake = text("fast");
    bool added;
    cr_assert_eq(store_flow(s, &flow, (struct bytes){ 0 }, &added), STATUS_IO);
    cr_assert_not_null(strstr(store_error(s), "handshake"), "%s", store_error(s));
    store_close(s);
}

Test(store, a_flow_that_is_there_changes_nothing)
{
    make_file(3);
    struct store *s = open_store();
    struct capture_row capture = sample_capture("other");
    struct drop_counts drops = { 0 };
    int64_t id;
    cr_assert_eq(store_begin(s), STATUS_OK);
    cr_assert_eq(store_capture(s, &capture, &drops, &id), STATUS_OK);
    char uid[UID_SIZE];
    bool added = true;
    struct flow_row flow = sample_flow(id, uid_text(1, uid));
    cr_assert_eq(store_flow(s, &flow, (struct bytes){ (const uint8_t *)"{}", 2 }, &added),
                 STATUS_OK);
    cr_assert_not(added);
    flow = sample_flow(id, uid_text(9, uid));
    cr_assert_eq(store_flow(s, &flow, (struct bytes){ 0 }, &added), STATUS_OK);
    cr_assert(added);
    cr_assert_eq(store_commit(s), STATUS_OK);
    store_close(s);
    cr_assert_str_eq(ASK("SELECT count(*) FROM flow"), "4");
    cr_assert_str_eq(ASK("SELECT count(*) FROM flow_facts"), "3");
    cr_assert_str_eq(ASK("SELECT capture_id FROM flow WHERE flow_id = 2"), "1");
}

Test(store, of_flows_that_come_twice_in_the_first_load_the_first_stays)
{
    struct store *s = open_store();
    cr_assert_eq(store_begin(s), STATUS_OK);
    cr_assert_eq(add_flows(s, "a", 0, 3), STATUS_OK);
    cr_assert_eq(add_flows(s, "b", 2, 3), STATUS_OK);
    cr_assert_eq(store_commit(s), STATUS_OK, "%s", store_error(s));
    cr_assert_eq(store_repeated(s), 1);
    cr_assert_eq(load(s, "c", 10, 1), STATUS_OK);
    cr_assert_eq(store_repeated(s), 0);
    store_close(s);
    cr_assert_str_eq(ASK("SELECT group_concat(flow_id) FROM flow"), "1,2,3,5,6,7");
    cr_assert_str_eq(ASK("SELECT group_concat(flow_id) FROM flow_facts"), "1,2,3,5,6,7");
}

Test(store, knows_captures_by_content_and_point_and_by_size)
{
    make_file(1);
    struct store *s = open_store();
    bool has;
    cr_assert_eq(store_has_capture(s, "old", "edge/a", &has), STATUS_OK);
    cr_assert(has);
    cr_assert_eq(store_has_capture(s, "old", "edge/b", &has), STATUS_OK);
    cr_assert_not(has);
    cr_assert_eq(store_has_capture(s, "new", "edge/a", &has), STATUS_OK);
    cr_assert_not(has);
    cr_assert_eq(store_has_size(s, 1000, &has), STATUS_OK);
    cr_assert(has);
    cr_assert_eq(store_has_size(s, 1001, &has), STATUS_OK);
    cr_assert_not(has);
    store_close(s);
}

Test(store, the_same_capture_twice_at_a_point_is_refused)
{
    make_file(1);
    struct store *s = open_store();
    cr_assert_eq(load(s, "old", 10, 1), STATUS_IO);
    cr_assert_not_null(strstr(store_error(s), "content_hash"), "%s", store_error(s));
    store_close(s);
    cr_assert_str_eq(ASK("SELECT count(*) FROM capture"), "1");
}

Test(store, keeps_drop_counts_that_are_not_zero)
{
    make_file(1);
    cr_assert_str_eq(ASK("SELECT group_concat(reason || packets) FROM drop_count"), "not_ip7");
}

Test(store, adds_up_half_open_flows_of_a_second)
{
    make_file(1);
    struct store *s = open_store();
    cr_assert_eq(store_begin(s), STATUS_OK);
    struct half_open_row counts[] = {
        { 1, "192.0.2.10", 443, 1780408991, 100, 7 }, { 1, "192.0.2.10", 443, 1780408991, 150, 9 },
        { 1, "192.0.2.10", 443, 1780408992, 1, 1 },   { 1, "192.0.2.10", 443, 1780408993, 1, 1 },
        { 1, "192.0.2.10", 443, 1780408993, 0, 0 },
    };
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        cr_assert_eq(store_half_open(s, &counts[i]), STATUS_OK);
    cr_assert_eq(store_commit(s), STATUS_OK);
    store_close(s);
    cr_assert_str_eq(ASK("SELECT group_concat(syns || '/' || client_prefixes) FROM half_open"),
                     "150/9,1/1");
}

Test(store, profiles_are_read_as_they_were_written_until_they_are_forgotten)
{
    struct store *s = open_store();
    struct server_profile_row row = {
        .server_ip = text("192.0.2.10"),
        .server_port = integer(443),
        .sni = text("www.example.com"),
        .all_names = integer(0),
        .from_epoch_ns = integer(1),
        .to_epoch_ns = integer(2),
        .flows = integer(10),
        .ticket_len_flows = integer(0),
        .ticket_constant_flows = integer(0),
        .flight_records_flows = integer(0),
        .encrypted_extensions_flows = integer(0),
        .http2_settings_flows = integer(0),
        .learned = text("{}"),
    };
    struct server_profile_row read;
    cr_assert_eq(store_begin(s), STATUS_OK);
    cr_assert_eq(store_server_profile(s, &row), STATUS_OK, "%s", store_error(s));
    row.flows = integer(20);
    row.all_names = integer(1);
    row.sni = text("");
    cr_assert_eq(store_server_profile(s, &row), STATUS_OK);
    for (int again = 0; again < 2; again++) {
        cr_assert_eq(store_next_profile(s, &read), STATUS_OK);
        cr_assert_str_eq(read.sni.at, "");
        cr_assert_eq(read.flows.value, 20);
        cr_assert_eq(store_next_profile(s, &read), STATUS_OK);
        cr_assert_str_eq(read.sni.at, "www.example.com");
        cr_assert_eq(read.all_names.value, 0);
        cr_assert_eq(read.flows.value, 10);
        cr_assert_str_eq(read.learned.at, "{}");
        cr_assert_eq(store_next_profile(s, &read), STATUS_END);
    }
    cr_assert_eq(store_forget_profiles(s), STATUS_OK);
    cr_assert_eq(store_next_profile(s, &read), STATUS_END);
    cr_assert_eq(store_commit(s), STATUS_OK);
    store_close(s);
}

Test(store, what_was_not_committed_is_gone)
{
    make_file(3);
    struct store *s = open_store();
    cr_assert_eq(store_begin(s), STATUS_OK);
    cr_assert_eq(add_flows(s, "new", 10, 5), STATUS_OK);
    store_rollback(s);
    cr_assert_eq(store_begin(s), STATUS_OK);
    cr_assert_eq(add_flows(s, "new", 10, 5), STATUS_OK);
    store_close(s);
    cr_assert_str_eq(ASK("SELECT count(*) FROM flow"), "3");
}

Test(store, the_next_load_works_after_one_that_failed)
{
    make_file(3);
    struct store *s = open_store();
    cr_assert_eq(load(s, "old", 10, 1), STATUS_IO);
    cr_assert_eq(load(s, "new", 10, 5), STATUS_OK, "%s", store_error(s));
    store_close(s);
    cr_assert_str_eq(ASK("SELECT count(*) FROM flow"), "8");
}

/* Opening must fail with this status and a text that has these words; the file stays as it is. */
static void expect_refused(enum status expected, const char *words)
{
    struct stat before, after;
    bool there = stat(path, &before) == 0;
    struct store *s;
    cr_assert_eq(store_open(path, &s), expected);
    cr_assert_not_null(strstr(store_error(s), words), "%s", store_error(s));
    cr_assert_not_null(strstr(store_error(s), path), "%s", store_error(s));
    store_close(s);
    if (there) {
        cr_assert_eq(stat(path, &after), 0);
        cr_assert_eq(after.st_size, before.st_size);
    }
}

static void write_file(const char *content)
{
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    cr_assert_geq(fputs(content, f), 0);
    cr_assert_eq(fclose(f), 0);
}

Test(store, refuses_what_is_not_ours)
{
    write_file("this is a text and no database; it is longer than a database's header, which "
               "has a hundred bytes");
    expect_refused(STATUS_REFUSED, "not a firstflight database");
    cr_assert_eq(unlink(path), 0);

    sqlite3 *db;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    run_sql(db, "CREATE TABLE cookies (host TEXT)");
    expect_refused(STATUS_REFUSED, "another program");
    run_sql(db, "DROP TABLE cookies; PRAGMA application_id = 5");
    expect_refused(STATUS_REFUSED, "another program");
    sqlite3_close(db);
}

Test(store, refuses_a_file_of_a_newer_program)
{
    make_file(1);
    sqlite3 *db;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    run_sql(db, "PRAGMA user_version = 2");
    sqlite3_close(db);
    expect_refused(STATUS_REFUSED, "newer firstflight");
}

Test(store, says_so_when_the_file_cannot_be_made)
{
    path_in(directory, "no/such/directory.db", path);
    expect_refused(STATUS_IO, "directory exists");
    path_in(directory, "", path);
    expect_refused(STATUS_IO, "cannot be opened");
}

Test(store, takes_an_empty_file_and_one_of_wal_mode)
{
    write_file("");
    make_file(2);
    sqlite3 *db;
    cr_assert_eq(sqlite3_open(path, &db), SQLITE_OK);
    run_sql(db, "PRAGMA journal_mode = WAL");
    sqlite3_close(db);
    struct store *s = open_store();
    cr_assert_eq(load(s, "new", 10, 5), STATUS_OK);
    store_close(s);
    cr_assert_str_eq(ASK("PRAGMA journal_mode"), "delete");
    cr_assert_str_eq(ASK("SELECT count(*) FROM flow"), "7");
}

/* Runs as somebody without rights, so that permissions count also where the tests run as root. */
static void as_nobody(void (*run)(void))
{
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0) {
        if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0)
            _exit(2);
        run();
        _exit(0);
    }
    int how;
    cr_assert_eq(waitpid(child, &how, 0), child);
    cr_assert(WIFEXITED(how) && WEXITSTATUS(how) == 0, "child ended with %d", how);
}

static void open_without_rights(void)
{
    struct store *s;
    bool right = store_open(path, &s) == STATUS_IO &&
                 strstr(store_error(s), "check its permissions") != NULL;
    store_close(s);
    if (!right)
        _exit(1);
}

Test(store, says_so_when_the_file_may_not_be_written)
{
    make_file(1);
    cr_assert_eq(chmod(directory, 0755), 0);
    cr_assert_eq(chmod(path, 0444), 0);
    as_nobody(open_without_rights);
}

Test(store, says_so_when_another_program_writes)
{
    make_file(1);
    watch_connections();
    struct store *s = open_store();
    sqlite3 *own = last_connection, *other;
    cr_assert_eq(sqlite3_open(path, &other), SQLITE_OK);
    run_sql(other, "BEGIN IMMEDIATE");
    sqlite3_busy_timeout(own, 1);
    cr_assert_eq(store_begin(s), STATUS_IO);
    cr_assert_not_null(strstr(store_error(s), "another program"), "%s", store_error(s));
    run_sql(other, "ROLLBACK");
    cr_assert_eq(load(s, "new", 10, 1), STATUS_OK, "%s", store_error(s));
    sqlite3_close(other);
    store_close(s);
}

Test(store, a_disk_that_is_full_at_any_page_leaves_the_old_content)
{
    make_file(20);
    watch_connections();
    bool stored = false;
    int failures = 0;
    for (int pages = 1; !stored; pages++) {
        struct store *s = open_store();
        char limit[64];
        (void)snprintf(limit, sizeof limit, "PRAGMA max_page_count = %d", pages);
        run_sql(last_connection, limit);
        enum status status = load(s, "new", 100, 200);
        stored = status == STATUS_OK;
        failures += !stored;
        if (!stored) {
            cr_assert_eq(status, STATUS_IO);
            cr_assert_not_null(strstr(store_error(s), "disk is full"), "%s", store_error(s));
        }
        store_close(s);
        cr_assert_str_eq(ASK("PRAGMA integrity_check"), "ok");
        cr_assert_str_eq(ASK("SELECT count(*) FROM flow"), stored ? "220" : "20");
        cr_assert_str_eq(ASK("SELECT count(*) FROM capture"), stored ? "2" : "1");
    }
    cr_assert_gt(failures, 5);
}

/* What a child does that dies or fails at some operation: 0 stored, 1 failed and said so. */
static int load_with_fault(enum fault fault, int at)
{
    struct store *s;
    watch_connections();
    fault_install(fault, at);
    enum status status = store_open(path, &s);
    if (status == STATUS_OK) {
        /* So few pages in memory that the load must write long before it commits. */
        run_sql(last_connection, "PRAGMA cache_size = 4");
        status = load(s, "new", 100, 60);
    }
    bool said_so = status == STATUS_OK || store_error(s)[0] != '\0';
    store_close(s);
    if (!said_so)
        return 3;
    return status == STATUS_OK ? 0 : 1;
}

static int run_child(enum fault fault, int at)
{
    pid_t child = fork();
    cr_assert_geq(child, 0);
    if (child == 0)
        _exit(load_with_fault(fault, at));
    int how;
    cr_assert_eq(waitpid(child, &how, 0), child);
    return how;
}

/* Reads all of a small file; the caller frees it. */
static struct row_text read_file(const char *name)
{
    FILE *f = fopen(name, "rb");
    cr_assert_not_null(f);
    enum { MOST = 1 << 20 };
    char *at = malloc(MOST);
    cr_assert_not_null(at);
    size_t len = fread(at, 1, MOST, f);
    cr_assert_lt(len, MOST);
    cr_assert_eq(fclose(f), 0);
    return (struct row_text){ .at = at, .len = len };
}

/* Puts the file back as it was, without what a child left beside it. */
static void put_back(struct row_text content)
{
    char journal[140];
    (void)snprintf(journal, sizeof journal, "%s-journal", path);
    (void)unlink(journal);
    (void)unlink(path); /* file systems wait for the disk when a file is cut and written again */
    FILE *f = fopen(path, "wb");
    cr_assert_not_null(f);
    cr_assert_eq(fwrite(content.at, 1, content.len, f), content.len);
    cr_assert_eq(fclose(f), 0);
}

/* With the fault at every step-th operation in turn: all of the load or nothing of it is there. */
static void expect_all_or_nothing(enum fault fault, int step)
{
    struct row_text kept = read_file(path);
    bool finished = false;
    int faults = 0;
    for (int at = 1; !finished; at += step) {
        put_back(kept);
        int how = run_child(fault, at);
        finished = WIFEXITED(how) && WEXITSTATUS(how) == 0;
        faults += !finished;
        cr_assert(finished || (fault == FAULT_KILL ? WIFSIGNALED(how)
                                                   : WIFEXITED(how) && WEXITSTATUS(how) == 1),
                  "operation %d: child ended with %d", at, how);
        const char *content = ASK("SELECT integrity_check || ' ' || (SELECT count(*) FROM flow)"
                                  " FROM pragma_integrity_check");
        bool is_old = strcmp(content, "ok 20") == 0, is_new = strcmp(content, "ok 80") == 0;
        if (finished)
            cr_assert(is_new, "%s", content);
        else if (fault == FAULT_KILL)
            cr_assert(is_old || is_new, "operation %d: %s", at, content);
        else
            cr_assert(is_old, "operation %d: %s", at, content);
    }
    free((char *)kept.at);
    cr_assert_gt(faults, 20);
}

Test(store, killed_at_any_write_leaves_all_or_nothing, .timeout = 120)
{
    make_file(20);
    expect_all_or_nothing(FAULT_KILL, 3);
}

Test(store, full_at_any_write_leaves_the_old_content, .timeout = 120)
{
    make_file(20);
    expect_all_or_nothing(FAULT_FULL, 5);
}

Test(store, failing_at_any_write_leaves_the_old_content, .timeout = 120)
{
    make_file(20);
    expect_all_or_nothing(FAULT_IO, 5);
}
