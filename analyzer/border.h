/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BORDER_H
#define BORDER_H
/*
 * Where one flow ends and the next of the same key begins, and which of several live flows of one
 * key a segment is of. Pure: a flow's connection must not be parked, nothing is changed but by
 * border_note_encapsulation().
 *
 * Encapsulation is not part of the key, since VLANs and tunnel ids often differ per direction, and
 * a mirror may show a packet with and without them. But equal addresses in an encapsulation that a
 * flow did not have before, with sequence numbers that contradict its own, are another tenant's.
 */
#include "flow.h"

/* Live flows of one key: more are an attack. */
enum { TENANTS_MAX = 16 };

/* Whether a packet of the flow had the segment's encapsulation; only the first two are kept. */
bool border_same_encapsulation(const struct flow *flow, const struct segment *s);

/* Keeps the segment's encapsulation as one of the flow's, while there are fewer than two. */
void border_note_encapsulation(struct flow *flow, const struct segment *s);

/* Whether the segment's numbers lie near those of the flow, as far as these are known. */
bool border_fits(const struct flow *flow, const struct segment *s);

/*
 * Whether a SYN or SYN/ACK is the first packet of another connection than this flow. Not when it
 * has the number that is known, or the one before the first byte seen (a late SYN), or one that
 * lies inside the window of a live connection (RFC 9293 3.10.7.4: answered with a challenge ACK).
 */
bool border_opens_another(const struct flow *flow, const struct segment *s);

/* Whether a SYN or SYN/ACK that opens no other connection is this one's, or the first seen of its
 * side. */
bool border_is_own_syn(const struct flow *flow, const struct segment *s);

/* Whether a segment without SYN answers none of the SYNs and SYN/ACKs that a half-open flow has: it
 * is of an older connection on the same ports. */
bool border_answers_another(const struct flow *flow, const struct segment *s);

#endif
