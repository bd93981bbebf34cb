/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STREAM_H
#define STREAM_H
/*
 * One direction of a TCP connection: segments in, in-order runs of bytes out. Retransmission,
 * overlap (the first copy wins), reordering, sequence wrap, holes and bytes that the snaplen cut
 * away are its business alone. RFC 9293 3.4, 3.8.
 *
 * Offsets count payload bytes from 0, the byte behind the SYN.
 */
#include "coder.h"
#include "status.h"

/* Out-of-order segments kept of one direction: a hole that has not filled by then is lost. */
enum { PENDING_SEGMENTS_MAX = 128, PENDING_BYTES_MAX = 256 * 1024 };

/* A segment's payload as the stream takes it. */
struct piece {
    uint32_t seq;
    uint32_t len;      /* on the wire; data may be shorter (snaplen) */
    struct bytes data; /* captured prefix of it */
    int64_t at_ns;
    uint64_t packet_no;
    int32_t ack; /* offset of the other side that the segment acknowledges; ACK_UNKNOWN */
};

/* Bytes in order. */
struct run {
    int64_t offset;
    uint32_t len;        /* on the wire */
    struct bytes data;   /* captured prefix; view into the piece or into the stream's memory,
                            valid until the next call */
    bool is_hole;        /* never captured: len says how much, data is empty */
    bool starts_segment; /* its first byte is the first of a segment */
    int64_t at_ns;       /* of the segment that first carried these bytes; of a hole: of the
                            segment behind it */
    uint64_t packet_no;
    int32_t ack;
};

/* What a piece was, as seen by stream_add(). */
struct arrival {
    uint32_t old_len;     /* bytes that had been seen before */
    int64_t old_offset;   /* where they begin */
    uint32_t new_len;     /* bytes seen for the first time */
    bool filled_hole;     /* new bytes in front of others that were seen before them ... */
    int64_t behind_at_ns; /* ... the first of which came then */
};

struct pending; /* an out-of-order piece, owned by the stream */

struct stream {
    bool has_base;
    uint32_t next_seq;       /* expected; valid with has_base */
    int64_t next_offset;     /* of next_seq */
    struct pending *pending; /* sorted by offset, disjoint, all at or behind next_offset */
    struct pending *given;   /* the one whose bytes the last run shows */
    uint32_t pending_count;
    uint32_t pending_bytes;
    bool blind; /* nobody reads the bytes any more: count, keep none */
};

/* Says where the stream begins: seq of offset 0. Does nothing when that is known already. */
void stream_set_base(struct stream *s, uint32_t seq);

/* Offset of a sequence number or acknowledgment; only with has_base. */
int64_t stream_offset(const struct stream *s, uint32_t seq);

/*
 * Takes a piece. *ret_arrival says what was new. When it continues the stream and nothing is
 * pending, its run is given at once and *ret_has_run is set; otherwise it is copied and kept. After
 * either, ask stream_next() until it gives nothing.
 */
MUST_USE enum status stream_add(struct stream *s, const struct piece *p,
                                struct arrival *ret_arrival, struct run *ret_run,
                                bool *ret_has_run);

/* The next run that is in order; false when there is none. */
bool stream_next(struct stream *s, struct run *ret_run);

/* Whether bytes wait behind a hole; *ret_offset is where they begin. */
bool stream_waits(const struct stream *s, int64_t *ret_offset);

/* Gives up the first hole: as a run with is_hole, after which stream_next() goes on behind it.
 * False when nothing waits. */
bool stream_skip_hole(struct stream *s, struct run *ret_run);

/* Whether more is kept than the caps allow, so that the first hole must be given up. */
bool stream_over_cap(const struct stream *s);

/* Stops keeping bytes: what follows is counted only. */
void stream_go_blind(struct stream *s);

/*
 * Packs a stream with the bytes that it keeps, or restores it into an empty one. Not between a run
 * that it gave and the next call of stream_next().
 */
void stream_code(struct coder *c, struct stream *s);

void stream_done(struct stream *s);

#endif
