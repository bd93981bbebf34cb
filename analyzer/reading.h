/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READING_H
#define READING_H
/*
 * Reads the captures of one point: files in order of time, known ones left out, through the
 * analysis to the point's stage.
 *
 *   files -> capture, order, interleave -> frames -> analysis -> stage of the point
 *
 * Several points may be read at the same time, each by a thread of its own: they share what is
 * read-only, and the store, of which one makes use at a time.
 */
#include "label.h"
#include "privacy.h"
#include "run_point.h"
#include "secrets.h"
#include "status.h"

#include <pthread.h>

/* What all points of a run have in common; nothing of it is owned. */
struct reading_options {
    const char *filter;               /* pcap filter expression; NULL */
    bool replace;                     /* what the database has of the point goes */
    bool keeps_state;                 /* flows that are live at the end go on in another run */
    size_t stage_memory, live_memory; /* bytes: of each stage of a point, of its live flows */
    uint64_t seed;
    const struct secrets *secrets; /* NULL without --keylog */
    const struct privacy *privacy;
    struct store *store;
    pthread_mutex_t *store_lock; /* held while the store is used */
};

struct reading;

/* The labeler, NULL for none, is this reading's alone. NULL without memory. */
struct reading *reading_open(const struct reading_options *options, struct run_point *point,
                             struct labeler *labeler);

/* Leaves the point incomplete unless it was read to its end. NULL is accepted. */
void reading_close(struct reading *r);

/* Reads on for a moment; *ret_done when the point was read to its end. */
MUST_USE enum status reading_step(struct reading *r, bool *ret_done);

/* Text of the failure; empty when there was no memory. */
const char *reading_error(const struct reading *r);

/* Bytes of live flows. */
size_t reading_memory(const struct reading *r);

struct reading_progress {
    uint64_t bytes, packets, flows, files; /* so far; files: that need not be opened any more */
    const char *path; /* of the last frame; NULL; lives as long as the inputs */
};
struct reading_progress reading_progress(const struct reading *r);

#endif
