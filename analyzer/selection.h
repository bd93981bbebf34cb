/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SELECTION_H
#define SELECTION_H
/*
 * Which flows a report is about, and by which columns it groups them: --where, --since, --until and
 * --by as SQL.
 */
#include "moment.h"
#include "query.h"

enum { SELECTION_BY_MAX = 8 };

/*
 * SQL that says why a flow without a perceived time, or of unknown kind, is not measured: the first
 * reason that holds, in words for people.
 */
#define SELECTION_NOT_MEASURED                                                                     \
    "CASE WHEN syn_seen = 0 THEN 'no SYN' WHEN sides_seen <> 'both' THEN 'one side'"               \
    " WHEN outcome IN ('failed', 'abandoned') THEN outcome"                                        \
    " WHEN request_at_ns IS NULL THEN 'no request'"                                                \
    " WHEN response_at_ns IS NULL AND response_low_at_ns IS NULL THEN 'no response'"               \
    " WHEN response_at_ns IS NULL THEN 'response unsure'"                                          \
    " WHEN perceived_ns IS NULL THEN 'client round trip unknown' ELSE 'kind unknown' END"

/* As given on the command line; NULL where not given. */
struct selection_options {
    const char *where;         /* SQL over the columns of table flow */
    const char *since, *until; /* forms of moment.h; from since on, up to but without until */
    const char *baseline;      /* FROM..TO: a window to compare with */
    const char *by;            /* columns of table flow, with commas */
    const char *rules_file;    /* of --rules, for report policy */
};

struct selection {
    struct database *database;
    const char *where;      /* of the options */
    const char *rules_file; /* of the options */
    bool every_leg;   /* --where speaks of leg itself: flows that are not to us are not left out */
    bool limited;     /* any of where, since, until was given */
    bool kept;        /* by selection_keep() */
    struct span data; /* first and last start of a flow in the database */
    int64_t since_ns, until_ns; /* flows that start from ... on and before ... */
    /* The window to compare with; without --baseline as long as and right before that of --since,
     * empty without both. last_ns is the first moment behind it. */
    struct span baseline;
    char *by[SELECTION_BY_MAX];
    size_t by_count;
};

/*
 * Checks the options against the database. default_by is used where --by was not given.
 * STATUS_USAGE: a time or a column is wrong; error says which. The options must outlive the
 * selection. Free it with selection_done(), also after a failure.
 */
MUST_USE enum status selection_init(struct selection *ret_selection, struct database *database,
                                    const struct selection_options *options, const char *default_by,
                                    struct text *error);
void selection_done(struct selection *s);

/*
 * Makes a query over two relations with the columns of table flow: `selected`, the flows that the
 * options select, and `ours`, the TLS flows among them that came to us: leg inbound or, as all
 * are without --local, unknown. On failure error has the text.
 */
MUST_USE enum status selection_query(const struct selection *s, const char *sql,
                                     struct query **ret_query, struct text *error);

/*
 * Reads the selected flows once and keeps these columns of them, apart from flow_id,
 * start_epoch_ns, leg, handshake and those of --by, for all later queries: the table is wide, and
 * reading it again and again is what takes long. --where may speak of any column. The window of
 * the selection must not be changed behind this.
 */
MUST_USE enum status selection_keep(struct selection *s, const char *columns, struct text *error);

/* selection_query() by query_open_keeping(): later queries of the selection can read the rows. */
MUST_USE enum status selection_query_keeping(const struct selection *s, const char *name,
                                             const char *sql, struct query **ret_query,
                                             struct text *error);

/* query_next(), which on failure leaves the text in error. */
MUST_USE enum status selection_next(const struct selection *s, struct query *q, struct text *error);

/* Adds the --by columns to SQL, quoted, as "client_region", "site". */
void selection_add_by(const struct selection *s, struct text *sql);

/* Adds the same with a comma behind each, for the beginning of a list that goes on. */
void selection_add_by_comma(const struct selection *s, struct text *sql);

/*
 * Adds a query's SQL, in which {by} stands for the --by columns and {by,} for the same with a comma
 * behind each.
 */
void selection_add_sql(const struct selection *s, const char *template, struct text *sql);

#endif
