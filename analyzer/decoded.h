/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DECODED_H
#define DECODED_H
/*
 * Frames that were decoded, and wait for others, so that what is known of their flows is fetched
 * from memory for all of them at once. What they show of their frames is copied, since a frame is
 * gone when the next one is read.
 */
#include "buffer.h"
#include "packet.h"
#include "status.h"

/* A frame, decoded. */
struct decoded {
    enum drop reason;           /* why there is no segment; DROP_NONE */
    uint32_t fragments;         /* earlier ones of its packet, which count as dropped so far */
    uint32_t file;              /* index of its file in the run */
    struct drop_counts *drops;  /* of that file */
    const char *interface_name; /* NULL without one */
    uint32_t flow_hash;         /* of the segment's flow, flow.h */
    struct segment segment;     /* with DROP_NONE */
};

/* What a near cache holds. A packet that alone is larger is a batch of its own. */
enum { DECODED_BATCH_MAX = 32, DECODED_BATCH_BYTES = 64 * 1024 };

/* Zeroed: empty. */
struct decoded_batch {
    unsigned count;
    struct buffer bytes;
    struct decoded at[DECODED_BATCH_MAX];
};

void decoded_batch_done(struct decoded_batch *b);

/* Forgets all; memory is kept, but not that of a packet larger than a batch. */
void decoded_batch_clear(struct decoded_batch *b);

bool decoded_batch_has_room(const struct decoded_batch *b, const struct decoded *decoded);

/* Adds a copy, which lives until decoded_batch_clear(). There must be room. STATUS_NO_MEMORY. */
MUST_USE enum status decoded_batch_add(struct decoded_batch *b, const struct decoded *decoded);

#endif
