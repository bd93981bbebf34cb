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

/* point_id of the captures that have that one among them, whatever their labels; 0 = none. */
MUST_USE enum status store_point_of_content(struct store *s, const char *content_hash_hex,
                                            const char *point, int64_t *ret_point_id);

/* Whether any capture of that file size is there: a cheap no before hashing a file. */
MUST_USE enum status store_has_size(struct store *s, uint64_t file_size, bool *ret_has);

/* Whether a file of that path, size and time of change was read for that point. */
MUST_USE enum status store_has_file(struct store *s, const char *path, const char *point,
                                    uint64_t file_size, int64_t mtime_ns, bool *ret_has);

/* A capture of a point as it was when it was read: a file may have grown since. */
struct begun_capture {
    int64_t capture_id; /* 0 = none */
    uint64_t content_len, packets;
    int64_t last_ns;
    char content_hash_hex[33];
};

/* The longest capture of that point whose first packet has that time. */
MUST_USE enum status store_find_begun(struct store *s, const char *point, int64_t begin_ns,
                                      struct begun_capture *ret_capture);

/*
 * Rows. What is always known (NOT NULL in schema/flow.sql) must be set; ids of the row itself stay
 * empty and are given by the database. Text may be of any origin: control characters and bytes that
 * are no UTF-8 are stored as \x1b.
 */

/* Adds a capture, or with a capture_id puts the row in the place of the one that is there, and adds
 * its drop counts to those that are there; gives its id. */
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

/*
 * Puts a row with its facts in the place of the one with that flow_id, whose flow it completes.
 * *ret_replaced is false, and nothing changes, when another row has its flow_uid.
 */
MUST_USE enum status store_replace_flow(struct store *s, int64_t flow_id,
                                        const struct flow_row *row, struct bytes facts_json,
                                        bool *ret_replaced);

/* The flow_id of the last row that was added or replaced. */
int64_t store_written_flow(const struct store *s);

/*
 * Inside a transaction: takes out the captures of a point, and marks its flows. Those that
 * store_replace_flow() then gives another row keep their flow_id; store_end_replacing() removes the
 * others.
 */
MUST_USE enum status store_begin_replacing(struct store *s, int64_t point_id);
MUST_USE enum status store_end_replacing(struct store *s);

/* What was taken out for good. */
struct forgotten {
    int64_t flows, half_opens, profiles;
};

/* Inside a transaction: forgets flows that ended before a time, or those of a site, with all that
 * hangs from them. Captures stay known. */
MUST_USE enum status store_forget_before(struct store *s, int64_t before_ns,
                                         struct forgotten *ret_forgotten);
MUST_USE enum status store_forget_site(struct store *s, const char *site,
                                       struct forgotten *ret_forgotten);

/* Outside of a transaction: gives free space back to the file system. */
MUST_USE enum status store_shrink(struct store *s);

/* First and last begin of a flow; 0 without flows. */
MUST_USE enum status store_span(struct store *s, int64_t *ret_first_ns, int64_t *ret_last_ns);

/* What was learned of servers: adds one, forgets all. */
MUST_USE enum status store_server_profile(struct store *s, const struct server_profile_row *row);
MUST_USE enum status store_forget_profiles(struct store *s);

/* Half-open flows of a server in a second, as seen in a capture: the count is what it says, none
 * when that is 0. */
struct half_open_row {
    int64_t capture_id;
    const char *server_ip;
    uint16_t server_port;
    int64_t second_epoch, syns, client_prefixes;
};
MUST_USE enum status store_half_open(struct store *s, const struct half_open_row *row);

/* From run to run: where the reading of capture points stands (carry.h). */

/* What tells a capture point; NULL for what it has not. */
struct store_point {
    const char *name, *site, *host, *region, *labels;
};

struct open_point {
    int64_t point_id; /* 0 = it has no captures yet */
    int64_t capture_id, until_ns, runs;
    int64_t version;
    struct bytes state; /* lives until the next call; empty = nothing to go on from */
};

struct open_flow {
    int64_t flow_id;
    int64_t capture_id; /* of its first packet; 0 from store_next_open_state() */
    int64_t version;
    struct bytes state; /* lives until the next call */
};

/* All zero when no capture of that point is there. */
MUST_USE enum status store_find_point(struct store *s, const struct store_point *point,
                                      struct open_point *ret_point);
MUST_USE enum status store_put_point(struct store *s, const struct open_point *point);

/* One open flow of a point after the other, or of all; STATUS_END behind the last, then from the
 * first again. */
MUST_USE enum status store_next_open_flow(struct store *s, int64_t point_id,
                                          struct open_flow *ret_flow);
MUST_USE enum status store_next_open_state(struct store *s, struct open_flow *ret_flow);

/* Keeps the state of a flow; forgets it. */
MUST_USE enum status store_open_flow(struct store *s, int64_t point_id, int64_t flow_id,
                                     int64_t last_ns, int64_t version, struct bytes state);
MUST_USE enum status store_close_flow(struct store *s, int64_t point_id, int64_t flow_id);

/*
 * Replaces table early_data_rule by these rules, in a transaction of its own. A new database begins
 * with the starter set of schema/early_data_rules.csv.
 */
MUST_USE enum status store_set_rules(struct store *s, const struct rules *rules);

/* Adds the rules of the table. */
MUST_USE enum status store_read_rules(struct store *s, struct rules *rules);

/* Reading what is there already; the texts of a row live until the next call of the same function.
 */

/* The greatest flow_id, 0 without flows; that of a flow's name, 0 when it is not there. */
MUST_USE enum status store_last_flow(struct store *s, int64_t *ret_flow_id);
MUST_USE enum status store_find_flow(struct store *s, struct row_text flow_uid,
                                     int64_t *ret_flow_id);

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
    bool is_open;          /* another run may complete it */
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
