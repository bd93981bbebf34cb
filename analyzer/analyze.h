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
    struct stage *stage;           /* where packed facts go; not owned */
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

/* The frames that follow are of that file of the run. */
void analysis_begin_file(struct analysis *a, uint32_t file);

/* Adds TLS key log lines that the captures of this point brought. STATUS_NO_MEMORY or STATUS_OK. */
MUST_USE enum status analysis_secrets(struct analysis *a, struct bytes key_log);

/* Takes a frame. STATUS_OK whatever is in it; STATUS_NO_MEMORY, STATUS_IO of the stage. */
MUST_USE enum status analysis_frame(struct analysis *a, const struct frame *frame);

/* Ends all live flows: the captures of this point are over. */
MUST_USE enum status analysis_end(struct analysis *a);

/* What was not used of the current file, by reason. */
const struct drop_counts *analysis_drops(const struct analysis *a);

/* Flows finished so far, and live ones, for progress. */
uint64_t analysis_flows(const struct analysis *a);

#endif
