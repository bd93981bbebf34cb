/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONNECTION_H
#define CONNECTION_H
/*
 * What a flow needs once it is more than half-open: its facts, both streams, the TLS reading of
 * them. This module keeps the TCP facts: amounts, acknowledgments, retransmissions, round trips
 * from data, FIN and RST. RFC 9293 3.4, 3.10.
 */
#include "opening.h"
#include "stream.h"
#include "tls.h"

struct label_flow;

/* Packets of a side among which a copy (mirror port, any device) is looked for: a window's burst
 * may come whole before its copies do. A power of two. */
enum { RECENT_PACKETS = 16 };

struct recent_packet {
    uint64_t signature;
    int64_t at_ns;
};

struct connection {
    struct facts facts;
    struct stream stream[2];
    struct tls tls;
    struct label_flow *label; /* nDPI's state, while it has not said its last word */
    bool labelled;
    uint8_t recent_next[2];
    struct recent_packet recent[2][RECENT_PACKETS];
    int64_t acked_offset[2]; /* of that side's stream, largest acknowledged by the other */
    int64_t acked_ns[2];
    int64_t rtt_end, rtt_at_ns; /* server data whose ACK is awaited; rtt_at_ns 0 = none */
    int64_t plain_response_offset;
    size_t held_memory; /* connection_held_memory() as last counted by analyze.c */
};

/*
 * Connections come and go with every flow, so their memory is used again: a pool keeps some that
 * are over. { 0 } is an empty pool.
 */
enum { POOL_MAX = 4096 };
struct connection_pool {
    struct connection *spare[POOL_MAX];
    size_t count;
};
void connection_pool_done(struct connection_pool *pool);

/* NULL without memory. */
struct connection *connection_open(struct connection_pool *pool, const struct opening *o);
void connection_close(struct connection_pool *pool, struct connection *c); /* NULL is accepted */

/* Asks for the memory that a packet of the connection will touch. */
void connection_prefetch(const struct connection *c);

/* Whether nothing is in the making: no hole, no half record or message, no decryption, no label. */
bool connection_is_at_rest(const struct connection *c);

/*
 * Packs a connection into a few hundred bytes, for the time until its next segment, and with it the
 * packets since recent_from_ns of which copies may come. What nDPI and decryption hold is not
 * packed: the one begins anew, the other is over. False, with nothing added, without memory.
 * connection_unpack() makes an equal one; NULL without memory, or when the bytes are not what
 * connection_pack() wrote.
 */
bool connection_pack(struct connection *c, int64_t recent_from_ns, struct buffer *out);
struct connection *connection_unpack(struct connection_pool *pool, struct bytes packed);

/* Bytes that hang from a connection because of what was sent on it, from nothing to some hundred
 * kilobytes: segments behind a hole, messages, plaintext, secrets at work. */
size_t connection_held_memory(const struct connection *c);

/* Takes the initial sequence numbers of a SYN or SYN/ACK that came late. */
void connection_set_bases(struct connection *c, const struct opening *o);

/* Whether the segment is a packet that was captured before; remembers it. */
bool connection_is_copy(struct connection *c, enum side side, const struct segment *s);

/* Counts a segment and notes FIN and RST; payload and ACK are noted by the next two. */
void connection_count(struct connection *c, enum side side, const struct segment *s);

/* Whether a RST belongs to what was seen: inside a plausible window (RFC 9293 3.10.7, RFC 5961). */
bool connection_reset_plausible(const struct connection *c, enum side side,
                                const struct segment *s);

/* The segment's payload as a piece of its stream; the ACK as an offset of the other stream. */
struct piece connection_piece(struct connection *c, enum side side, const struct segment *s);

/* Notes what an arrival of payload was: retransmission, late filling of a hole, new. */
void connection_arrival(struct connection *c, enum side side, const struct segment *s,
                        const struct arrival *arrival);

/* Notes a run of bytes for the facts of plaintext exchanges and for gaps. */
void connection_run(struct connection *c, enum side side, const struct run *run);

/* Notes the acknowledgment that a segment of `side` carries. */
void connection_acknowledge(struct connection *c, enum side side, const struct segment *s);

/* Whether the first hole of a side must be given up now: never to be filled, or too much waits. */
bool connection_hole_is_lost(const struct connection *c, enum side side, int64_t now_ns);

/* Fills the facts that are known at the end only, and brings roles and records into order. */
void connection_finish(struct connection *c, const struct opening *o, int64_t first_packet_ns);

#endif
