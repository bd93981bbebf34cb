/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NEIGHBOUR_H
#define NEIGHBOUR_H
/*
 * Round trips to clients by their other connections: where a flow does not show its own, the least
 * of the same client at the same capture point within ten minutes stands in.
 */
#include "coder.h"
#include "endpoint.h"
#include "status.h"

#include <stddef.h>
#include <stdint.h>

/* Clients and minutes remembered of a point; beyond it no further ones are. */
enum { NEIGHBOURS_MAX = 1 << 20, NEIGHBOUR_MINUTES = 10 };

struct neighbours;

struct neighbours *neighbours_open(uint64_t seed); /* NULL without memory */
void neighbours_close(struct neighbours *n);

/* Adds a round trip that a flow of the client showed; of more than a minute it is none. */
MUST_USE enum status neighbours_add(struct neighbours *n, const struct address *client,
                                    int64_t start_ns, int64_t rtt_ns);

/* The least of that client within ten minutes of start_ns, to the minute; INT64_MIN without. */
int64_t neighbours_least(const struct neighbours *n, const struct address *client,
                         int64_t start_ns);

/* Packs what may matter to a flow that begins at now_ns or later, or fills an empty table with what
 * was packed, which then has the seed of that one. */
void neighbours_code(struct coder *c, struct neighbours *n, int64_t now_ns);

#endif
