/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERLEAVE_H
#define INTERLEAVE_H
/*
 * Captures of one place that overlap in time as one stream of frames in order of time. Frames are
 * not copied: each capture holds its next one.
 */
#include "order.h"

struct interleave;

/* Captures that are read at the same time; they cost a descriptor and some buffers each. */
enum { INTERLEAVED_MAX = 64 };

struct interleave *interleave_open(void);    /* NULL without memory */
void interleave_close(struct interleave *m); /* with all captures in it; NULL is accepted */

/*
 * Adds a capture, which is taken over, under a number of the caller's. There must be room.
 * STATUS_NO_MEMORY, then it is not taken, or STATUS_OK.
 */
MUST_USE enum status interleave_add(struct interleave *m, struct capture *capture, size_t number);

size_t interleave_count(const struct interleave *m); /* captures in it */

/*
 * The next frame of all and the number of its capture; views in it live until the next call.
 * STATUS_REFUSED: the next frame is of `until_ns` or later and is kept; there must be a capture.
 * STATUS_NO_MEMORY. Any other status is that of order_next() for the capture *ret_number, which
 * gives nothing more; it must be removed.
 */
MUST_USE enum status interleave_next(struct interleave *m, int64_t until_ns,
                                     struct frame *ret_frame, size_t *ret_number);

/* A capture in it; the last one that interleave_next() gave a frame of is found fastest. */
const struct order *interleave_find(const struct interleave *m, size_t number);

/* Takes a capture out and closes it. */
void interleave_remove(struct interleave *m, size_t number);

/* Bytes and packets read so far of the captures in it. */
void interleave_progress(const struct interleave *m, uint64_t *ret_bytes, uint64_t *ret_packets);

#endif
