/* SPDX-License-Identifier: Apache-2.0 */
#include "clickhouse.h"

#include "http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ANSWER_MAX: the description of a table takes a tenth of it. WORDS_MAX: what is kept of an error.
 */
enum { ANSWER_MAX = 256 * 1024, WORDS_MAX = 400, URL_MAX = 4096 };
enum { FIRST_PAUSE_MS = 250, LONGEST_PAUSE_MS = 30000, PAUSE_STEP_MS = 50 };
enum { HTTP_OK = 200, HTTP_REQUEST_TIMEOUT = 408, HTTP_TOO_MANY = 429, HTTP_SERVER_ERROR = 500 };

/* Rows are acknowledged when they lie on their shards, not when they are queued for them. */
static const char SETTINGS[] = "insert_distributed_sync=1";

struct clickhouse {
    struct clickhouse_options options;
    char url[URL_MAX]; /* of the file */
    struct http *http;
    struct http_answer answer;
    uint64_t retries;
    struct text trouble;
};

/* ---- the URL ---- */

static enum status read_url(const char *path, char url[URL_MAX], struct text *error)
{
    FILE *file = fopen(path, "re");
    bool read = file != NULL && fgets(url, URL_MAX, file) != NULL;
    if (!read)
        text_addf(error, "--url: %s: %s", path, file == NULL ? strerror(errno) : "has no line");
    if (file != NULL)
        fclose(file);
    if (!read)
        return STATUS_IO;
    url[strcspn(url, "\r\n")] = '\0';
    return STATUS_OK;
}

enum status clickhouse_open(const struct clickhouse_options *options,
                            struct clickhouse **ret_clickhouse, struct text *error)
{
    struct clickhouse *c = calloc(1, sizeof *c);
    *ret_clickhouse = c;
    if (c == NULL)
        return STATUS_NO_MEMORY;
    c->options = *options;
    if (options->retries < 0)
        c->options.retries = CLICKHOUSE_RETRIES;
    bool in_file = options->url[0] == '@';
    if (!in_file && http_url_has_password(options->url)) {
        text_add(error, "--url: a password there is seen by all users of this machine; put it into "
                        "CLICKHOUSE_PASSWORD, or the URL into a file and say --url @FILE");
        return STATUS_USAGE;
    }
    enum status status = in_file ? read_url(options->url + 1, c->url, error) : STATUS_OK;
    struct http_options http = {
        .url = in_file ? c->url : options->url,
        .user = options->user,
        .password = options->password,
        .timeout_s = options->timeout_s < 0 ? CLICKHOUSE_TIMEOUT_S : options->timeout_s,
        .agent = "firstflight/" FIRSTFLIGHT_VERSION,
        .answer_max = ANSWER_MAX,
        .interrupted = options->interrupted,
    };
    return status == STATUS_OK ? http_open(&http, &c->http, error) : status;
}

void clickhouse_close(struct clickhouse *c)
{
    if (c == NULL)
        return;
    http_close(c->http);
    text_done(&c->answer.body);
    text_done(&c->trouble);
    free(c);
}

uint64_t clickhouse_retries(const struct clickhouse *c)
{
    return c->retries;
}

const char *clickhouse_last_trouble(const struct clickhouse *c)
{
    return text_string(&c->trouble);
}

/* ---- asking, and asking again ---- */

/*
 * Whether a refusal will be one again: other words of it tell of load, of memory, or of a shard
 * that is away. ClickHouse begins with "Code: 60, e.displayText() = ...".
 */
static bool is_final(const struct http_answer *answer)
{
    enum {
        NO_SUCH_COLUMN_IN_TABLE = 16,
        CANNOT_READ_ALL_DATA = 33,
        UNKNOWN_IDENTIFIER = 47,
        TYPE_MISMATCH = 53,
        UNKNOWN_TABLE = 60,
        SYNTAX_ERROR = 62,
        UNKNOWN_DATABASE = 81,
        UNKNOWN_SETTING = 115,
        READONLY = 164,
        UNKNOWN_USER = 192,
        WRONG_PASSWORD = 193,
        REQUIRED_PASSWORD = 194,
        IP_ADDRESS_NOT_ALLOWED = 195,
        ACCESS_DENIED = 497,
        AUTHENTICATION_FAILED = 516,
    };
    static const int FINAL[] = {
        NO_SUCH_COLUMN_IN_TABLE,
        CANNOT_READ_ALL_DATA,
        UNKNOWN_IDENTIFIER,
        TYPE_MISMATCH,
        UNKNOWN_TABLE,
        SYNTAX_ERROR,
        UNKNOWN_DATABASE,
        UNKNOWN_SETTING,
        READONLY,
        UNKNOWN_USER,
        WRONG_PASSWORD,
        REQUIRED_PASSWORD,
        IP_ADDRESS_NOT_ALLOWED,
        ACCESS_DENIED,
        AUTHENTICATION_FAILED,
    };
    static const char CODE[] = "Code: ";
    const char *words = text_string(&answer->body);
    long code =
        strncmp(words, CODE, strlen(CODE)) == 0 ? strtol(words + strlen(CODE), NULL, 10) : 0;
    for (size_t i = 0; i < sizeof FINAL / sizeof FINAL[0]; i++)
        if (code == FINAL[i])
            return true;
    return answer->code < HTTP_SERVER_ERROR && answer->code != HTTP_REQUEST_TIMEOUT &&
           answer->code != HTTP_TOO_MANY;
}

/* Adds the beginning of what a server said, as one line. */
static void add_words(const char *said, struct text *error)
{
    size_t len = strlen(said);
    while (len > 0 && (said[len - 1] == '\n' || said[len - 1] == '\r'))
        len--;
    for (size_t i = 0; i < len && i < WORDS_MAX; i++)
        text_addf(error, "%c", said[i] == '\n' ? ' ' : said[i]);
    text_add(error, len > WORDS_MAX ? "..." : "");
}

/* One try. Whatever but 200 is a failure, and the server's own words say what it is. */
static enum status try_once(struct clickhouse *c, const struct http_request *request,
                            struct text *error)
{
    enum status status = http_send(c->http, request, &c->answer, error);
    if (status != STATUS_OK)
        return status;
    if (c->answer.body.failed)
        return STATUS_NO_MEMORY;
    if (c->answer.code == HTTP_OK)
        return STATUS_OK;
    text_clear(error);
    text_addf(error, "%s answers %ld: ", http_server(c->http), c->answer.code);
    add_words(text_string(&c->answer.body), error);
    return is_final(&c->answer) ? STATUS_REFUSED : STATUS_IO;
}

static void wait_ms(const struct clickhouse *c, int ms)
{
    const struct timespec step = { .tv_nsec = PAUSE_STEP_MS * 1000000L };
    for (; ms > 0 && !*c->options.interrupted; ms -= PAUSE_STEP_MS)
        (void)nanosleep(&step, NULL);
}

static enum status ask(struct clickhouse *c, const struct http_request *request, struct text *error)
{
    int pause_ms = FIRST_PAUSE_MS;
    for (int64_t left = c->options.retries;; left--) {
        enum status status = try_once(c, request, error);
        if (status != STATUS_IO || left == 0 || *c->options.interrupted)
            return status;
        c->retries++;
        text_clear(&c->trouble);
        text_add(&c->trouble, text_string(error));
        text_clear(error);
        wait_ms(c, pause_ms);
        pause_ms = 2 * pause_ms < LONGEST_PAUSE_MS ? 2 * pause_ms : LONGEST_PAUSE_MS;
    }
}

/* ---- tables ---- */

/* Finds the type of a column in lines "name TAB type TAB ..."; adds nothing when it is not there.
 */
static void add_type_of(const char *name, struct bytes description, struct text *type)
{
    while (description.len > 0) {
        struct bytes line = bytes_take_until(&description, '\n');
        if (bytes_equal(bytes_take_until(&line, '\t'), text_bytes(name))) {
            text_add_bytes(type, bytes_take_until(&line, '\t'));
            return;
        }
    }
}

static enum status check_column(const struct clickhouse *c, const struct export_table *table,
                                const struct export_column *column, struct text *error)
{
    struct text type = { 0 };
    add_type_of(column->name, text_bytes(text_string(&c->answer.body)), &type);
    bool fits = export_type_fits(column->type, text_string(&type));
    if (!fits) {
        text_clear(error);
        text_addf(error, "%s: table %s_load has ", http_server(c->http), table->name);
        if (type.len == 0)
            text_addf(error, "no column %s", column->name);
        else
            text_addf(error, "column %s as %.*s", column->name, WORDS_MAX, text_string(&type));
        text_addf(error, ", wanted is %s; see schema/clickhouse/README.md", column->type);
    }
    bool failed = type.failed;
    text_done(&type);
    return failed ? STATUS_NO_MEMORY : fits ? STATUS_OK : STATUS_REFUSED;
}

enum status clickhouse_check(struct clickhouse *c, const struct export_table *table,
                             struct text *error)
{
    struct text sql = { 0 };
    text_addf(&sql, "DESCRIBE TABLE %s_load FORMAT TabSeparatedRaw", table->name);
    struct http_request request = { .query = text_string(&sql) };
    enum status status = sql.failed ? STATUS_NO_MEMORY : ask(c, &request, error);
    if (status == STATUS_IO && !*c->options.interrupted)
        text_add(error, "; does ClickHouse run there, and is it its HTTP port (8123, 8443 with TLS)"
                        " that --url names?");
    for (size_t i = 0; status == STATUS_OK && i < table->column_count; i++)
        status = check_column(c, table, &table->columns[i], error);
    text_done(&sql);
    return status;
}

enum status clickhouse_insert(struct clickhouse *c, const struct export_table *table,
                              struct bytes rows, struct text *error)
{
    struct text sql = { 0 };
    export_table_add_insert(table, &sql);
    struct http_request request = { text_string(&sql), SETTINGS, rows };
    enum status status = sql.failed ? STATUS_NO_MEMORY : ask(c, &request, error);
    text_done(&sql);
    return status;
}
