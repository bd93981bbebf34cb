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
#include "drop.h"
#include "flow_row.h" /* generated: struct flow_row, struct capture_row, row_integer, row_real, row_text */
#include "hash.h"
#include "status.h"

struct store;

/*
 * Opens or makes the database for writing; makes tables and views, upgrades older files, refuses
 * files of others and newer ones (STATUS_REFUSED). Waits for a lock for some seconds. On failure
 * *ret_store is set (unless STATUS_NO_MEMORY) so that store_error() can be asked; close it.
 */
MUST_USE enum status store_open(const char *path, struct store **ret_store);

/* Text of the last failure, saying what to do; lives as long as s. */
const char *store_error(const struct store *s);

/* Leaves the file in DELETE journal mode; rolls back what was not committed. NULL is accepted. */
void store_close(struct store *s);

MUST_USE enum status store_begin(struct store *s);

/* Makes indexes that are missing, refreshes statistics, commits. */
MUST_USE enum status store_commit(struct store *s);
void store_rollback(struct store *s);

/* Whether a capture of that content is already there for that point. */
MUST_USE enum status store_has_capture(struct store *s, const char *content_hash_hex,
                                       const char *point, bool *ret_has);

/* Whether any capture of that file size is there: a cheap no before hashing a file. */
MUST_USE enum status store_has_size(struct store *s, uint64_t file_size, bool *ret_has);

/* Adds a capture with its drop counts; gives its id. */
MUST_USE enum status store_capture(struct store *s, const struct capture_row *row,
                                   const struct drop_counts *drops, int64_t *ret_capture_id);

/*
 * Adds a flow and, where facts_json is not empty, its facts. A flow_uid that is already there
 * changes nothing and gives *ret_added = false.
 */
MUST_USE enum status store_flow(struct store *s, const struct flow_row *row,
                                struct bytes facts_json, bool *ret_added);

/* Adds to the count of half-open flows of a server in a second. */
MUST_USE enum status store_half_open(struct store *s, const char *server_ip, uint16_t server_port,
                                     int64_t second_epoch, int64_t syns, int64_t client_prefixes);

/* Version of the SQLite library in use. */
const char *store_library_version(void);

#endif
