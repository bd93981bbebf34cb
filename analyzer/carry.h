/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CARRY_H
#define CARRY_H
/*
 * What a live flow, and what is remembered of flows that are over, take along into the next run of
 * their capture point: packed bytes of one format version, kept in tables open_flow and open_point.
 */
#include "connection.h"
#include "flow.h"
#include "half_open.h"
#include "interfaces.h"
#include "neighbour.h"
#include "past.h"
#include "roles.h"

/* Raised whenever anything that is packed changes: facts, streams, TLS, flows. State of another
 * version is not gone on with. */
enum { CARRY_VERSION = 5 };

/* Packets of the last second of a run may have copies in the next. */
#define CARRY_RECENT_NS NS_PER_SECOND

/*
 * Packs a flow, half-open or not; its connection stays as it is. parked: its bytes, if it is.
 * now_ns: the time that the run has come to. False without memory.
 */
bool carry_flow_pack(const struct flow *flow, struct bytes parked, int64_t now_ns,
                     struct buffer *out);

/*
 * Fills a zeroed flow from packed bytes, but for what its table keeps of it: key, times, opening
 * and, for a connection, the parked form. False without memory or when the bytes are not what
 * carry_flow_pack() wrote; then nothing is owned.
 */
bool carry_flow_unpack(struct bytes packed, struct flow *ret_flow);

/*
 * The facts of a packed flow as they would be if it ended there, for what they teach of its server.
 * False, with empty facts, when it has none (half-open) or the bytes are no such flow. Free them
 * with facts_done().
 */
bool carry_flow_facts(struct bytes packed, struct facts *ret_facts);

/* What a capture point knows beside its flows. */
struct carried_point {
    int64_t now_ns;
    bool was_far_ahead;
    uint64_t past_seed; /* of the hashes in `past` */
    struct past *past;
    struct half_opens *half_opens;
    struct neighbours *neighbours;
    struct roles *roles;
    struct interfaces *interfaces;
    struct buffer half_open; /* half-open flows without a row, each packed, behind its length */
};

/*
 * Packs it, or adds what was packed to a point of which all members are there and empty. What is
 * too old to matter to anything behind now_ns is left out. False as above.
 */
bool carry_point_pack(struct carried_point *p, struct buffer *out);
bool carry_point_unpack(struct bytes packed, struct carried_point *p);

#endif
