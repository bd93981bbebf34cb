/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROLES_H
#define ROLES_H
/*
 * Which addresses of a capture point are ours, as far as its flows tell: those that answered many
 * different clients. It stands in for --local.
 */
#include "endpoint.h"
#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So many clients make an address one of ours. */
enum { ROLE_CLIENTS = 8 };

/* Servers remembered of a point, of 56 bytes each; beyond it no further ones are. */
enum { ROLES_MAX = 1 << 18 };

struct roles;

struct roles *roles_open(uint64_t seed); /* NULL without memory */
void roles_close(struct roles *r);

/* Notes that a server answered a client. */
MUST_USE enum status roles_add(struct roles *r, const struct address *server,
                               const struct address *client);

/* Whether the address answered at least ROLE_CLIENTS different clients. */
bool roles_is_server(const struct roles *r, const struct address *address);

#endif
