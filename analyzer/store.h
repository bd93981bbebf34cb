/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_H
#define STORE_H
/*
 * Edge to SQLite, the only writer: rows to a database file. The columns come from schema/flow.sql
 * alone: schema/gen_row.py makes struct flow_row and its binding from them at build time.
 *
 * Everything between store_begin() and store_commit() is one transaction: all of it or nothing
 * survives kill -9 or a full disk. store_close() without a commit leaves the file as it was.
 */
#include "bytes.h"
#include "drop.h"
#include "flow_row.h" /* generated: rows of the tables, row_integer, row_real, row_text */
#include "status.h"

struct store;

/*
 * Opens or makes the database for writing; makes tables and views, refuses files of others and of
 * newer programs (STATUS_REFUSED). Waits for a lock for some seconds. On failure *ret_store is
 * still set (unless STATUS_NO_MEMORY) so that store_error() can be asked; close it.
 */
MUST_USE enum status store_open(const char *path, struct store **ret_store);

/* Text of the last failure, saying what to do; lives until the next call that fails. */
const char *store_error(const struct store *s);

/* Rolls back what was not committed. The file is left in DELETE journal mode: one file, which can
 * be copied and read from a read-only disk. NULL is accepted. */
void store_close(struct store *s);

MUST_USE enum status store_begin(struct store *s);

/* Makes indexes that are missing, refreshes statistics, commits. After a failure nothing of the
 * transaction is left. */
MUST_USE enum status store_commit(struct store *s);

/* How many of the flows that store_flow() called added the last store_commit() took out again. */
uint64_t store_repeated(const struct store *s);

void store_rollback(struct store *s);

/* Whether a capture of that content is already there for that point. */
MUST_USE enum status store_has_capture(struct store *s, const char *content_hash_hex,
                                       const char *point, bool *ret_has);

/* Whether any capture of that file size is there: a cheap no before hashing a file. */
MUST_USE enum status store_has_size(struct store *s, uint64_t file_size, bool *ret_has);

/*
 * Rows. What is always known (NOT NULL in schema/flow.sql) must be set; ids of the row itself stay
 * empty and are given by the database. Text may be of any origin: control characters and bytes that
 * are no UTF-8 are stored as \x1b.
 */

/* Adds a capture with its drop counts; gives its id. */
MUST_USE enum status store_capture(struct store *s, const struct capture_row *row,
                                   const struct drop_counts *drops, int64_t *ret_capture_id);

/*
 * Adds a flow and, where facts_json is not empty, its facts. A flow_uid that is already there
 * changes nothing and gives *ret_added = false. While a database is loaded for the first time,
 * flow_uids that come twice are found by store_commit() only, which keeps the first of them: see
 * store_repeated().
 */
MUST_USE enum status store_flow(struct store *s, const struct flow_row *row,
                                struct bytes facts_json, bool *ret_added);

/* Adds or, with the same server and from_epoch_ns, replaces what was learned of a server. */
MUST_USE enum status store_server_profile(struct store *s, const struct server_profile_row *row);

/* Adds to the count of half-open flows of a server in a second, as seen in a capture. */
MUST_USE enum status store_half_open(struct store *s, int64_t capture_id, const char *server_ip,
                                     uint16_t server_port, int64_t second_epoch, int64_t syns,
                                     int64_t client_prefixes);

/* Version of the SQLite library in use. */
const char *store_library_version(void);

#endif
