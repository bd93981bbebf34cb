/* SPDX-License-Identifier: Apache-2.0 */
#include "selection.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <strings.h>

/* ---- the database's answers to small questions ---- */

static enum status failed(struct database *d, enum status status, struct text *error)
{
    text_clear(error);
    text_add(error, database_error(d));
    return status;
}

/* Least and largest start of a flow; 0 and 0 in an empty database. */
static enum status read_span(struct database *d, struct span *ret_span, struct text *error)
{
    struct query *q = NULL;
    enum status status = query_open(d,
                                    "SELECT ifnull((SELECT min(start_epoch_ns) FROM flow), 0),"
                                    " ifnull((SELECT max(start_epoch_ns) FROM flow), 0)",
                                    &q);
    if (status == STATUS_OK)
        status = query_next(q);
    if (status == STATUS_OK)
        *ret_span = (struct span){ query_cell(q, 0).integer, query_cell(q, 1).integer };
    query_close(q);
    return status == STATUS_OK ? STATUS_OK : failed(d, status, error);
}

static enum status is_flow_column(struct database *d, const char *name, bool *ret_is,
                                  struct text *error)
{
    struct query *q = NULL;
    enum status status =
        query_open(d, "SELECT 1 FROM pragma_table_info('flow') WHERE name = :name", &q);
    if (status == STATUS_OK)
        status = query_bind_text(q, ":name", text_bytes(name));
    if (status == STATUS_OK)
        status = query_next(q);
    query_close(q);
    if (status != STATUS_OK && status != STATUS_END)
        return failed(d, status, error);
    *ret_is = status == STATUS_OK;
    return STATUS_OK;
}

/* ---- options ---- */

static enum status wrong(struct text *error, const char *what, const char *value,
                         const char *expected)
{
    text_clear(error);
    text_addf(error, "%s '", what);
    text_add_safe(error, text_bytes(value), false);
    text_addf(error, "' %s", expected);
    return STATUS_USAGE;
}

static enum status read_window(struct selection *s, const struct selection_options *o,
                               struct text *error)
{
    static const char *const EXPECTED =
        "is no time; write 2026-06-02T14:00, 14:00, -2h or seconds since 1970";
    s->since_ns = 0;
    s->until_ns = INT64_MAX;
    if (o->since && !moment_parse(o->since, s->data, &s->since_ns))
        return wrong(error, "--since", o->since, EXPECTED);
    if (o->until && !moment_parse(o->until, s->data, &s->until_ns))
        return wrong(error, "--until", o->until, EXPECTED);
    if (s->since_ns >= s->until_ns)
        return wrong(error, "--until", o->until ? o->until : "", "is not behind --since");
    return STATUS_OK;
}

static enum status read_baseline(struct selection *s, const struct selection_options *o,
                                 struct text *error)
{
    if (!o->baseline) {
        int64_t until_ns = s->until_ns < INT64_MAX ? s->until_ns : s->data.last_ns + 1;
        if (o->since && until_ns > s->since_ns && 2 * s->since_ns > until_ns)
            s->baseline = (struct span){ s->since_ns - (until_ns - s->since_ns), s->since_ns };
        return STATUS_OK;
    }
    static const char *const EXPECTED = "is no window; write FROM..TO with times as of --since";
    const char *dots = strstr(o->baseline, "..");
    char *from = dots ? strndup(o->baseline, (size_t)(dots - o->baseline)) : NULL;
    if (dots && !from)
        return STATUS_NO_MEMORY;
    bool is_window = from && moment_parse(from, s->data, &s->baseline.first_ns) &&
                     moment_parse(dots + strlen(".."), s->data, &s->baseline.last_ns) &&
                     s->baseline.first_ns < s->baseline.last_ns;
    free(from);
    return is_window ? STATUS_OK : wrong(error, "--baseline", o->baseline, EXPECTED);
}

static enum status add_column(struct selection *s, const char *name, size_t len, struct text *error)
{
    if (s->by_count == SELECTION_BY_MAX)
        return wrong(error, "--by", name, "has too many columns");
    char *column = strndup(name, len);
    if (!column)
        return STATUS_NO_MEMORY;
    s->by[s->by_count++] = column;
    bool is = false;
    enum status status = is_flow_column(s->database, column, &is, error);
    if (status == STATUS_OK && !is)
        return wrong(error, "--by", column, "is no column of table flow");
    return status;
}

static enum status read_columns(struct selection *s, const char *list, struct text *error)
{
    if (list[0] == '\0')
        return STATUS_OK;
    for (;;) {
        list += strspn(list, " ");
        size_t len = strcspn(list, ",");
        size_t name_len = len;
        while (name_len > 0 && list[name_len - 1] == ' ')
            name_len--;
        enum status status = add_column(s, list, name_len, error);
        if (status != STATUS_OK)
            return status;
        if (list[len] == '\0')
            return STATUS_OK;
        list += len + 1;
    }
}

static bool is_name_character(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Whether SQL holds `word` as a name: not as a part of another one, and not in a string. */
static bool has_name(const char *sql, const char *word)
{
    size_t len = strlen(word);
    bool in_string = false;
    for (const char *at = sql; *at; at++) {
        if (*at == '\'')
            in_string = !in_string;
        bool starts = at == sql || !is_name_character(at[-1]);
        if (!in_string && starts && strncasecmp(at, word, len) == 0 && !is_name_character(at[len]))
            return true;
    }
    return false;
}

enum status selection_init(struct selection *ret_selection, struct database *database,
                           const struct selection_options *options, const char *default_by,
                           struct text *error)
{
    struct selection *s = ret_selection;
    *s = (struct selection){ .database = database,
                             .where = options->where,
                             .rules_file = options->rules_file };
    s->every_leg = options->where && has_name(options->where, "leg");
    s->limited = options->where || options->since || options->until;
    enum status status = read_span(database, &s->data, error);
    if (status == STATUS_OK)
        status = read_window(s, options, error);
    if (status == STATUS_OK)
        status = read_baseline(s, options, error);
    if (status == STATUS_OK)
        status = read_columns(s, options->by ? options->by : default_by, error);
    return status;
}

void selection_done(struct selection *s)
{
    for (size_t i = 0; i < s->by_count; i++)
        free(s->by[i]);
    s->by_count = 0;
}

/* ---- SQL ---- */

/* The names were found in the table, so they are plain; quoted all the same. */
static void add_columns(const struct selection *s, struct text *sql, const char *last)
{
    for (size_t i = 0; i < s->by_count; i++) {
        bool is_last = i + 1 == s->by_count;
        text_addf(sql, "\"%s\"%s", s->by[i], is_last ? last : ", ");
    }
}

void selection_add_by(const struct selection *s, struct text *sql)
{
    add_columns(s, sql, "");
}

void selection_add_by_comma(const struct selection *s, struct text *sql)
{
    add_columns(s, sql, ", ");
}

void selection_add_sql(const struct selection *s, const char *template, struct text *sql)
{
    static const char BY[] = "{by}", BY_COMMA[] = "{by,}";
    for (const char *at = template; *at;) {
        size_t plain = strcspn(at, "{");
        text_add_bytes(sql, (struct bytes){ (const uint8_t *)at, plain });
        at += plain;
        if (strncmp(at, BY, strlen(BY)) == 0) {
            selection_add_by(s, sql);
            at += strlen(BY);
        } else if (strncmp(at, BY_COMMA, strlen(BY_COMMA)) == 0) {
            selection_add_by_comma(s, sql);
            at += strlen(BY_COMMA);
        }
    }
}

/* Whether the window holds so little of the data that looking its rows up one by one is faster than
 * reading the whole table in order. */
static bool is_narrow(const struct selection *s)
{
    static const double SHARE = 0.1;
    double whole = (double)s->data.last_ns - (double)s->data.first_ns;
    double from = fmax((double)s->since_ns, (double)s->data.first_ns);
    double to = fmin((double)s->until_ns, (double)s->data.last_ns);
    return to - from < SHARE * whole;
}

/* A plus sign keeps SQLite from using the index, which it would always take for faster. */
static void add_selected(const struct selection *s, const char *columns, struct text *sql)
{
    const char *sign = is_narrow(s) ? "" : "+";
    text_addf(sql,
              "SELECT %s FROM flow"
              " WHERE %sstart_epoch_ns >= :since AND %sstart_epoch_ns < :until",
              columns, sign, sign);
    if (s->where)
        text_addf(sql, " AND (\n%s\n)",
                  s->where); /* on lines of its own: it may end in a comment */
}

static void add_relations(const struct selection *s, struct text *sql)
{
    text_add(sql, "WITH ");
    if (!s->kept) {
        text_add(sql, "selected AS NOT MATERIALIZED (");
        add_selected(s, "*", sql);
        text_add(sql, "), ");
    }
    text_add(sql, "ours AS NOT MATERIALIZED (SELECT * FROM selected WHERE handshake <> 'none'");
    if (!s->every_leg)
        text_add(sql, " AND leg IN ('inbound', 'unknown')");
    text_add(sql, ") ");
}

static enum status bind_window(const struct selection *s, struct query *q)
{
    enum status status = query_bind_integer(q, ":since", s->since_ns);
    return status == STATUS_OK ? query_bind_integer(q, ":until", s->until_ns) : status;
}

/* Closes a query that could not be made, and keeps why. */
static enum status end_open(const struct selection *s, enum status status, struct query *q,
                            struct query **ret_query, struct text *error)
{
    if (status != STATUS_OK) {
        query_close(q);
        return failed(s->database, status, error);
    }
    *ret_query = q;
    return STATUS_OK;
}

/* Opens a query over the relations; with a name, one that keeps its rows. */
static enum status open_query(const struct selection *s, const char *name, const char *sql,
                              struct query **ret_query, struct text *error)
{
    struct text whole = { 0 };
    add_relations(s, &whole);
    text_add(&whole, sql);
    struct query *q = NULL;
    enum status status = STATUS_NO_MEMORY;
    if (!whole.failed)
        status = name ? query_open_keeping(s->database, name, text_string(&whole), &q)
                      : query_open(s->database, text_string(&whole), &q);
    if (status == STATUS_OK && !s->kept)
        status = bind_window(s, q);
    text_done(&whole);
    return end_open(s, status, q, ret_query, error);
}

enum status selection_query(const struct selection *s, const char *sql, struct query **ret_query,
                            struct text *error)
{
    return open_query(s, NULL, sql, ret_query, error);
}

enum status selection_query_keeping(const struct selection *s, const char *name, const char *sql,
                                    struct query **ret_query, struct text *error)
{
    return open_query(s, name, sql, ret_query, error);
}

/* ---- relations that are kept ---- */

/* Runs a query that keeps its rows. */
static enum status run_keeping(const struct selection *s, struct query *q, struct text *error)
{
    enum status status = selection_next(s, q, error);
    query_close(q);
    return status == STATUS_END ? STATUS_OK : status;
}

enum status selection_keep(struct selection *s, const char *columns, struct text *error)
{
    struct text all = { 0 }, sql = { 0 };
    text_addf(&all, "flow_id, start_epoch_ns, leg, handshake, %s", columns);
    for (size_t i = 0; i < s->by_count; i++) {
        if (!has_name(text_string(&all), s->by[i]))
            text_addf(&all, ", \"%s\"", s->by[i]);
    }
    /* In parentheses, which a --where that ends the statement leaves open. */
    text_add(&sql, "SELECT * FROM (");
    add_selected(s, text_string(&all), &sql);
    text_add(&sql, ")");
    struct query *q = NULL;
    enum status status = all.failed || sql.failed
                             ? STATUS_NO_MEMORY
                             : query_open_keeping(s->database, "selected", text_string(&sql), &q);
    if (status == STATUS_OK)
        status = bind_window(s, q);
    text_done(&all);
    text_done(&sql);
    status = end_open(s, status, q, &q, error);
    if (status == STATUS_OK)
        status = run_keeping(s, q, error);
    s->kept = status == STATUS_OK;
    return status;
}

enum status selection_next(const struct selection *s, struct query *q, struct text *error)
{
    enum status status = query_next(q);
    if (status == STATUS_OK || status == STATUS_END)
        return status;
    return failed(s->database, status, error);
}
