/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ANALYZE_H
#define ANALYZE_H
/*
 * The main path, for the frames of one capture point in order of time: frame to segment to flow and
 * side to byte run to record to message to facts, which go to the stage when their flow is over.
 */
#include "drop.h"
#include "frame.h"
#include "half_open.h"
#include "label.h"
#include "neighbour.h"
#include "privacy.h"
#include "profile.h"
#include "roles.h"
#include "secrets.h"
#include "stage.h"

struct analysis;

struct analysis_options {
    struct stage *stage;           /* where packed facts go, each with a mark; not owned */
    struct stage *open;            /* where the state of flows goes that are live at the end, one
                                      item for each whose mark says so, in the same order; not
                                      owned; NULL = nothing goes on in another run */
    struct labeler *labeler;       /* not owned; NULL = no labels */
    struct half_opens *half_opens; /* not owned */
    struct profiles *profiles;     /* what servers have in common is learned here; not owned */
    struct neighbours *neighbours; /* round trips of the point's clients; not owned */
    struct roles *roles;           /* which of its addresses serve many; not owned; NULL */
    const struct secrets *secrets; /* of --keylog; not owned; NULL = decrypt with those only that
                                      the captures bring */
    const struct privacy *privacy; /* what is hidden in facts before anything is learned from them;
                                      not owned; NULL = nothing */
    size_t memory_max;             /* bytes of live flows; the ones nearest to their idle limit are
                                      closed as evicted when it is reached */
    uint64_t seed;                 /* of the flow table */
};

MUST_USE enum status analysis_open(const struct analysis_options *options,
                                   struct analysis **ret_analysis);
void analysis_close(struct analysis *a);

/* Before flows are resumed: where to note, by their number, those that had packets or ended, so
 * that row and state are to be replaced. Not owned. */
void analysis_set_continued(struct analysis *a, bool *continued);

/*
 * What an earlier run left: of the point first, then of each of its flows. Call before any frame.
 * file: index given to the facts of a flow for the file of its first packet. STATUS_REFUSED when
 * the bytes are not what a run of this program leaves: of a flow nothing is taken over then, of the
 * point at most some of what is remembered beside its flows.
 */
MUST_USE enum status analysis_resume_point(struct analysis *a, struct bytes state, uint32_t file);
MUST_USE enum status analysis_resume_flow(struct analysis *a, uint32_t number, struct bytes state,
                                          uint32_t file);

/* After analysis_end(): appends what the point is to be resumed from. STATUS_NO_MEMORY. */
MUST_USE enum status analysis_leave_point(struct analysis *a, struct buffer *out);

/*
 * The frames that follow are of that file of the run; what is not used of it is counted in *drops,
 * which is complete after analysis_settle().
 */
void analysis_use_file(struct analysis *a, uint32_t file, struct drop_counts *drops);

/* Adds TLS key log lines that the captures of this point brought. STATUS_NO_MEMORY or STATUS_OK. */
MUST_USE enum status analysis_secrets(struct analysis *a, struct bytes key_log);

/*
 * Takes a frame, of a file in use, whose interface has its name until analysis_settle(). STATUS_OK
 * whatever is in it; STATUS_NO_MEMORY, STATUS_IO of the stage, perhaps for an earlier one.
 */
MUST_USE enum status analysis_frame(struct analysis *a, const struct frame *frame);

/* Follows the frames that it took and holds; statuses are those of analysis_frame(). */
MUST_USE enum status analysis_settle(struct analysis *a);

/* Ends all live flows: the captures of this point are over. */
MUST_USE enum status analysis_end(struct analysis *a);

/* Flows without the name of their interface, since their point has too many (interfaces.h). */
uint64_t analysis_unnamed_flows(const struct analysis *a);

/* Flows finished so far, and live ones, for progress. */
uint64_t analysis_flows(const struct analysis *a);

/* Bytes of live flows, as they count for memory_max. */
size_t analysis_memory(const struct analysis *a);

#endif
