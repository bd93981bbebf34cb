/* SPDX-License-Identifier: Apache-2.0 */
#include "clues.h"

enum { WORDS_TOLD = 3, PLACES_TOLD = 3 };

/* Makes "SELECT columns FROM both windows WHERE in the scope AND condition rest". */
static enum status open_in_scope(const struct change *c, const struct selection *s,
                                 const struct windows *w, const char *columns,
                                 const char *condition, const char *rest, struct query **ret_query,
                                 struct text *error)
{
    struct text sql = { 0 };
    text_addf(&sql, "SELECT %s FROM %s WHERE %s", columns, windows_from(s), condition);
    if (c->scope.count > 0)
        text_add(&sql, " AND ");
    scope_add_condition(&c->scope, w, &sql);
    text_add(&sql, rest);
    enum status status =
        sql.failed ? STATUS_NO_MEMORY : windows_query(s, w, text_string(&sql), ret_query, error);
    text_done(&sql);
    return status;
}

/* ---- by words: failures, reasons ---- */

/* Adds "By kind: timeout 312 (before 4), reset 20 (before 19)." of a column of words. */
static enum status add_words(const struct change *c, const struct selection *s,
                             const struct windows *w, const char *heading, const char *column,
                             const char *condition, struct text *t, struct text *error)
{
    struct text columns = { 0 };
    text_addf(&columns, "%s, sum(is_during), sum(NOT is_during)", column);
    struct query *q = NULL;
    enum status status = columns.failed ? STATUS_NO_MEMORY
                                        : open_in_scope(c, s, w, text_string(&columns), condition,
                                                        " GROUP BY 1 ORDER BY abs(sum(is_during) -"
                                                        " sum(NOT is_during)) DESC, 1",
                                                        &q, error);
    text_done(&columns);
    bool any = false;
    for (int i = 0; i < WORDS_TOLD && status == STATUS_OK; i++) {
        status = selection_next(s, q, error);
        if (status != STATUS_OK)
            break;
        text_addf(t, i == 0 ? "%s: " : ", ", heading);
        word_add_name(query_cell(q, 0), t);
        text_add(t, " ");
        text_add_count(t, query_cell(q, 1).integer);
        text_add(t, " (before ");
        text_add_count(t, query_cell(q, 2).integer);
        text_add(t, ")");
        any = true;
    }
    text_add(t, any ? ". " : "");
    query_close(q);
    return status == STATUS_END ? STATUS_OK : status;
}

/* ---- ticket keys ---- */

enum { KEY_NAME_MAX = 64 };

/* The key of most refused tickets. */
static enum status read_refused_key(const struct change *c, const struct selection *s,
                                    const struct windows *w, char name[KEY_NAME_MAX],
                                    struct text *t, struct text *error)
{
    struct query *q = NULL;
    name[0] = '\0';
    enum status status =
        open_in_scope(c, s, w, "ticket_key_name, count(*), sum(count(*)) OVER ()",
                      "is_during AND resumption_offered = 1 AND handshake = 'full'",
                      " GROUP BY 1 ORDER BY ticket_key_name IS NULL, 2 DESC, 1", &q, error);
    if (status == STATUS_OK)
        status = selection_next(s, q, error);
    if (status == STATUS_OK && query_cell(q, 0).type == CELL_TEXT) {
        struct text safe = { 0 };
        text_add_safe(&safe, query_cell(q, 0).bytes, false);
        (void)snprintf(name, KEY_NAME_MAX, "%s", text_string(&safe));
        text_addf(t, "%.0f%% of the refused tickets carry key ",
                  100 * (double)query_cell(q, 1).integer / (double)query_cell(q, 2).integer);
        text_add_digest(t, text_bytes(name));
        text_done(&safe);
    }
    query_close(q);
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status bind_key(struct query *q, const char *name)
{
    return query_bind_text(q, ":key", text_bytes(name));
}

/* Where else that key is accepted. */
static enum status add_acceptors(const struct change *c, const struct selection *s,
                                 const struct windows *w, const char *name, struct text *t,
                                 struct text *error)
{
    struct text sql = { 0 };
    text_addf(&sql,
              "SELECT ifnull('host ' || host, 'site ' || site), count(*) FROM %s WHERE"
              " is_during AND ticket_key_name = :key AND resumed_by IN ('ticket', 'psk')",
              windows_from(s));
    if (c->scope.count > 0) {
        text_add(&sql, " AND NOT (");
        scope_add_condition(&c->scope, w, &sql);
        text_add(&sql, ") IS TRUE");
    }
    text_add(&sql, " GROUP BY 1 ORDER BY 2 DESC, 1");
    struct query *q = NULL;
    enum status status =
        sql.failed ? STATUS_NO_MEMORY : windows_query(s, w, text_string(&sql), &q, error);
    text_done(&sql);
    if (status == STATUS_OK)
        status = bind_key(q, name);
    for (int i = 0; i < PLACES_TOLD && status == STATUS_OK; i++) {
        status = selection_next(s, q, error);
        if (status != STATUS_OK || query_cell(q, 0).type != CELL_TEXT)
            break;
        text_add(t, i == 0 ? ", which is accepted at " : ", ");
        word_add_name(query_cell(q, 0), t);
    }
    query_close(q);
    return status == STATUS_END ? STATUS_OK : status;
}

/* Until when the place itself accepted it, if it no longer does. */
static enum status add_last_accepted(const struct change *c, const struct selection *s,
                                     const struct windows *w, const char *name, struct text *t,
                                     struct text *error)
{
    struct query *q = NULL;
    enum status status =
        open_in_scope(c, s, w,
                      "max(CASE WHEN resumed_by IS NOT NULL THEN start_epoch_ns END),"
                      " avg(CASE WHEN handshake = 'full' THEN start_epoch_ns END)",
                      "ticket_key_name = :key", "", &q, error);
    if (status == STATUS_OK)
        status = bind_key(q, name);
    if (status == STATUS_OK)
        status = selection_next(s, q, error);
    if (status == STATUS_OK && query_cell(q, 0).type == CELL_INTEGER &&
        (double)query_cell(q, 0).integer < query_cell(q, 1).real) {
        char moment[MOMENT_TEXT_SIZE];
        text_addf(t, "; where it is refused now, it was accepted until %s",
                  moment_text(query_cell(q, 0).integer, 0, moment));
    }
    query_close(q);
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status add_keys(const struct change *c, const struct selection *s,
                            const struct windows *w, struct text *t, struct text *error)
{
    char name[KEY_NAME_MAX];
    enum status status = read_refused_key(c, s, w, name, t, error);
    if (status != STATUS_OK || name[0] == '\0')
        return status;
    status = add_acceptors(c, s, w, name, t, error);
    if (status == STATUS_OK)
        status = add_last_accepted(c, s, w, name, t, error);
    text_add(t, ". ");
    return status;
}

/* ---- rules ---- */

static enum status add_rules(const struct change *c, const struct selection *s,
                             const struct windows *w, struct text *t, struct text *error)
{
    struct query *q = NULL;
    enum status status = open_in_scope(
        c, s, w,
        "sni, ifnull(early_data_rule, (SELECT pattern FROM early_data_rule WHERE lower(sni) GLOB"
        " pattern ORDER BY length(pattern) DESC, pattern LIMIT 1)) AS fits, count(*)",
        "is_during AND early_data = 'accepted'",
        " GROUP BY 1, 2 HAVING (SELECT allowed FROM early_data_rule WHERE pattern = fits) = 0"
        " ORDER BY 3 DESC, 1",
        &q, error);
    for (int i = 0; i < WORDS_TOLD && status == STATUS_OK; i++) {
        status = selection_next(s, q, error);
        if (status != STATUS_OK)
            break;
        text_add(t, "Rule ");
        word_add_name(query_cell(q, 1), t);
        text_add(t, " forbids it: it can be replayed; ");
        text_add_count(t, query_cell(q, 2).integer);
        text_add(t, " accepted. ");
    }
    query_close(q);
    return status == STATUS_END ? STATUS_OK : status;
}

/* ---- who sends again ---- */

static enum status add_senders(const struct change *c, const struct selection *s,
                               const struct windows *w, struct text *t, struct text *error)
{
    struct query *q = NULL;
    enum status status =
        open_in_scope(c, s, w,
                      "avg(syn_count > 1 OR client_retransmits_before_response > 0),"
                      " avg(syn_ack_count > 1 OR server_retransmits_before_response > 0),"
                      " avg(loss_wait_ns) / 1e6",
                      "is_during AND response_at_ns IS NOT NULL", "", &q, error);
    if (status == STATUS_OK)
        status = selection_next(s, q, error);
    if (status == STATUS_OK && query_cell(q, 0).type == CELL_REAL)
        text_addf(t,
                  "Clients sent again in %.1f%% of the flows, servers in %.1f%%; mean wait for it"
                  " %.1f ms. ",
                  100 * query_cell(q, 0).real, 100 * query_cell(q, 1).real, query_cell(q, 2).real);
    query_close(q);
    return status == STATUS_END ? STATUS_OK : status;
}

enum status clues_add(const struct change *c, const struct selection *s, const struct windows *w,
                      struct text *t, struct text *error)
{
    bool rose = change_rose(c);
    if (c->measure == RESUMPTION_ACCEPTED && !rose)
        return add_keys(c, s, w, t, error);
    if (c->measure == FAILED && rose)
        return add_words(c, s, w, "By kind", "failure", "outcome = 'failed'", t, error);
    if (c->measure == EARLY_ACCEPTED && !rose)
        return add_words(c, s, w, "By reason", "early_data_reason", "early_data = 'rejected'", t,
                         error);
    if (c->measure == EARLY_OFFERED && rose)
        return add_rules(c, s, w, t, error);
    if (c->measure == RESENT && rose)
        return add_senders(c, s, w, t, error);
    return STATUS_OK;
}
