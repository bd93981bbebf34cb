/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLICKHOUSE_H
#define CLICKHOUSE_H
/*
 * A server of ClickHouse that takes rows by HTTP: its tables are looked at first, blocks of rows
 * are sent until they are acknowledged, with longer and longer pauses between tries.
 */
#include "export_table.h"
#include "status.h"

#include <signal.h>

struct clickhouse;

enum { CLICKHOUSE_RETRIES = 6, CLICKHOUSE_TIMEOUT_S = 600 };

struct clickhouse_options {
    const char *url;                    /* or "@" and the name of a file whose first line it is */
    const char *user, *password;        /* NULL: the URL says them, or nobody */
    int64_t retries;                    /* after the first try; below 0: CLICKHOUSE_RETRIES */
    int64_t timeout_s;                  /* of one try; below 0: CLICKHOUSE_TIMEOUT_S */
    volatile sig_atomic_t *interrupted; /* becomes other than 0: everything fails soon */
};

/*
 * Prepares; nothing is sent. STATUS_USAGE: the URL is none, or says a password that is not in a
 * file; STATUS_IO: its file cannot be read; STATUS_REFUSED: built without libcurl; error says
 * which. Strings of the options must outlive it.
 */
MUST_USE enum status clickhouse_open(const struct clickhouse_options *options,
                                     struct clickhouse **ret_clickhouse, struct text *error);
void clickhouse_close(struct clickhouse *c); /* NULL is accepted */

/*
 * Asks whether the server has all columns of the table, each of a type that takes what is sent.
 * STATUS_REFUSED: not; STATUS_IO: it does not answer. error says what is wrong.
 */
MUST_USE enum status clickhouse_check(struct clickhouse *c, const struct export_table *table,
                                      struct text *error);

/*
 * Sends rows in RowBinary. STATUS_OK: the server has acknowledged all of them. STATUS_REFUSED: it
 * does not want them; STATUS_IO: it did not answer so often, and may have some of them or all.
 */
MUST_USE enum status clickhouse_insert(struct clickhouse *c, const struct export_table *table,
                                       struct bytes rows, struct text *error);

/* How often something was sent again so far, and what was wrong the last time; "" when never. */
uint64_t clickhouse_retries(const struct clickhouse *c);
const char *clickhouse_last_trouble(const struct clickhouse *c);

#endif
