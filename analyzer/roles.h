/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLES_H
#define ROLES_H
/*
 * Which addresses of a capture point are ours, as far as its flows tell: those that answered many
 * different clients, in this run or, taken together, in runs before it. It stands in for --local.
 */
#include "coder.h"
#include "endpoint.h"
#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many clients make an address one of ours. */
enum { ROLE_CLIENTS = 8 };

/* Servers remembered of a point, of 40 bytes each; beyond it no further ones are. */
enum { ROLES_MAX = 1 << 18 };

/* How many of them the next run is told of, and for how long after their last flow: an address that
 * serves nobody for a week of captures may have become another's. */
enum { ROLES_CARRIED_MAX = 1 << 14, ROLE_KEPT_HOURS = 7 * 24 };

struct roles;

struct roles *roles_open(uint64_t seed); /* NULL without memory */
void roles_close(struct roles *r);

/* Notes that a server answered a client, in a flow that began at start_ns. */
MUST_USE enum status roles_add(struct roles *r, const struct address *server,
                               const struct address *client, int64_t start_ns);

/* Whether the address answered at least ROLE_CLIENTS different clients. */
bool roles_is_server(const struct roles *r, const struct address *address);

/*
 * Packs the servers that were not silent for ROLE_KEPT_HOURS at now_ns, or adds what was packed to
 * roles that are empty. Where there are too many, those with the fewest clients are left out: the
 * victims of a scan. Of clients no more is packed than 16 bits of a hash, which 65,536 addresses of
 * IPv4 have in common.
 */
void roles_code(struct coder *c, struct roles *r, int64_t now_ns);

#endif
