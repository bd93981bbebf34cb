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
#include "rules.h"
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

/* What was learned of servers: adds one, forgets all. */
MUST_USE enum status store_server_profile(struct store *s, const struct server_profile_row *row);
MUST_USE enum status store_forget_profiles(struct store *s);

/* Adds to the count of half-open flows of a server in a second, as seen in a capture. */
MUST_USE enum status store_half_open(struct store *s, int64_t capture_id, const char *server_ip,
                                     uint16_t server_port, int64_t second_epoch, int64_t syns,
                                     int64_t client_prefixes);

/*
 * Replaces table early_data_rule by these rules, in a transaction of its own. A new database begins
 * with the starter set of schema/early_data_rules.csv.
 */
MUST_USE enum status store_set_rules(struct store *s, const struct rules *rules);

/* Adds the rules of the table. */
MUST_USE enum status store_read_rules(struct store *s, struct rules *rules);

/* Reading what is there already; the texts of a row live until the next call of the same function.
 */

/* The greatest flow_id, 0 without flows; whether a flow of that name is there. */
MUST_USE enum status store_last_flow(struct store *s, int64_t *ret_flow_id);
MUST_USE enum status store_has_flow(struct store *s, const char *flow_uid, bool *ret_has);

/*
 * What holds for all of the database: its value, cut to size, "" where it is not said; and saying
 * it, which changes nothing where something is said already.
 */
MUST_USE enum status store_setting(struct store *s, const char *name, char *value, size_t size);
MUST_USE enum status store_keep_setting(struct store *s, const char *name, const char *value);

/* Where the client of a flow is: the columns that --clients, --region and --sites fill. */
struct flow_place {
    struct row_text region, region_basis, country;
    struct row_integer asn;
};

/* A flow with what says where its client is, as stored. */
struct stored_place {
    int64_t flow_id;
    struct row_text capture_region;
    struct row_text client_ip, proxied_client_ip;
    struct flow_place place;
};

struct stored_site {
    int64_t capture_id;
    struct row_text site, region;
};

/*
 * One flow, or capture, after the other in the order of their ids; STATUS_END behind the last, then
 * from the first again. What was given may be replaced before the next one is asked for.
 */
MUST_USE enum status store_next_place(struct store *s, struct stored_place *ret_place);
MUST_USE enum status store_update_place(struct store *s, int64_t flow_id,
                                        const struct flow_place *place);
MUST_USE enum status store_next_site(struct store *s, struct stored_site *ret_site);
MUST_USE enum status store_update_site(struct store *s, int64_t capture_id,
                                       const struct row_text *region);

/* One profile after the other; STATUS_END behind the last, then from the first again. */
MUST_USE enum status store_next_profile(struct store *s, struct server_profile_row *ret_row);

/* What can be judged again of a flow, and whose it is. */
struct stored_flow {
    int64_t flow_id;
    int64_t point_id; /* a number for its capture point, the same for all its flows */
    struct row_text client_ip, server_ip;
    uint16_t server_port;
    int64_t start_ns;
    struct row_text rtt_basis;
    struct row_integer client_rtt_ns;
    struct row_text facts; /* JSON; NULL where none were kept */
};

/*
 * One flow after the other in the order of flow_id; STATUS_END behind the last, then from the first
 * again. store_next_undecided() gives only those up to a flow_id that have facts and whose response
 * or early data is not known or weak.
 */
MUST_USE enum status store_next_flow(struct store *s, struct stored_flow *ret_flow);
MUST_USE enum status store_next_undecided(struct store *s, int64_t up_to_flow_id,
                                          struct stored_flow *ret_flow);

/* The columns of FLOW_JUDGED of a flow, the rest of the row NULL; and their replacement. */
MUST_USE enum status store_read_judged(struct store *s, int64_t flow_id, struct flow_row *ret_row);
MUST_USE enum status store_update_judged(struct store *s, int64_t flow_id,
                                         const struct flow_row *row);

/*
 * Finds for each abandoned flow that began in that time the connection that its client opened
 * instead, and sets retried_by and retried_perceived_ns; *ret_changed rows were changed. Makes the
 * indexes that are missing.
 */
MUST_USE enum status store_link_retries(struct store *s, int64_t from_ns, int64_t to_ns,
                                        uint64_t *ret_changed);

/* Version of the SQLite library in use. */
const char *store_library_version(void);

#endif
