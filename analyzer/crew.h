/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CREW_H
#define CREW_H
/*
 * Reads the capture points of a run, several at a time, each from its begin to its end by one
 * worker. What comes of a point does not depend on the number of workers: it has its own stages,
 * notes, labeler and share of the memory, and profiles may be merged in any order (profile.h).
 */
#include "reading.h"

struct crew;

struct crew_options {
    struct reading_options reading; /* what it points to is not owned */
    struct run_point *points;       /* not owned */
    size_t point_count;
    unsigned jobs;           /* workers, at least 1; one works in crew_step() without a thread */
    struct labeler *labeler; /* of the first worker, not owned; the others make their own. NULL =
                                no labels */
    size_t live_memory;      /* bytes of live flows of all points that are being read */
};

/* NULL without memory. */
struct crew *crew_open(const struct crew_options *options);

/* Stops the workers first. NULL is accepted. */
void crew_close(struct crew *c);

/* Goes on for a moment; *ret_done when every point was read. A failure ends the reading of all; of
 * several the one of the first point counts. */
MUST_USE enum status crew_step(struct crew *c, bool *ret_done);

/* Ends all threads; points that are not read to their end stay incomplete. */
void crew_stop(struct crew *c);

/* What was learned of the servers of all points that were read; the caller's from then on. NULL
 * when there was none, or it was taken. To be asked after the end or crew_stop(). */
struct profiles *crew_take_profiles(struct crew *c);

/* Text of the failure; empty when there was no memory. */
const char *crew_error(const struct crew *c);

struct crew_progress {
    uint64_t bytes, packets, flows, files;
    const char *path; /* one that is being read; NULL */
};
struct crew_progress crew_progress(struct crew *c);

#endif
