/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTINUATION_H
#define CONTINUATION_H
/*
 * How a run goes on where the last one of the same capture point stopped: reads the point's state
 * from the database into an analysis, and writes the state that the run leaves.
 *
 *   store -> open_point, open_flow -> analysis -> ... -> stage of open flows -> store
 *
 * A flow that had packets, or ended, is "continued": its row is replaced and its old state goes.
 * The others are left as they are.
 */
#include "analyze.h"
#include "inputs.h"
#include "store.h"

/* Of the facts of a flow whose first packet is in a file of an earlier run. */
#define FILE_OF_EARLIER_RUN UINT32_MAX

struct resumed_flow {
    int64_t flow_id, capture_id;
};

/* { 0 } is a point of which nothing is known. */
struct continuation {
    int64_t point_id;   /* 0 = the database has no captures of it */
    int64_t capture_id; /* first file of the last run */
    int64_t until_ns;   /* time of its last packet; 0 when there is nothing to go on from */
    int64_t runs;
    struct resumed_flow *flows; /* by number */
    bool *continued;            /* by number; the analysis sets them */
    size_t flow_count, flow_capacity;
    size_t unreadable;   /* states that another version of the program left */
    struct buffer state; /* that the run leaves */
};
void continuation_done(struct continuation *c);

/* What tells a capture point in the store. */
struct store_point store_point_of(const struct capture_point *point);

/* Reads what the store knows of a point, but for its flows. */
MUST_USE enum status continuation_find(struct continuation *c, struct store *store,
                                       const struct capture_point *point);

/* Gives the analysis the flows of an earlier run. It must not have had a frame. */
MUST_USE enum status continuation_resume(struct continuation *c, struct store *store,
                                         struct analysis *analysis);

/* Whether nobody else has added to the point since continuation_find(). */
MUST_USE enum status continuation_check(const struct continuation *c, struct store *store,
                                        const struct capture_point *point, bool *ret_is_current);

/* In a transaction, first: forgets the state of the flows that went on. */
MUST_USE enum status continuation_close_flows(const struct continuation *c, struct store *store);

/* Then, before any of its flows: keeps the state of the point itself. until_ns is that of its files
 * in this run, capture_id the first of them. */
MUST_USE enum status continuation_keep(struct continuation *c, struct store *store,
                                       int64_t capture_id, int64_t until_ns);

#endif
