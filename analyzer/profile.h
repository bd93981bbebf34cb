/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_H
#define PROFILE_H
/*
 * What the flows of one server have in common, learned from facts alone: how long its tickets are,
 * how its flight is cut into records, the usual length of EncryptedExtensions, its HTTP/2 SETTINGS.
 * A server is an address, port and server name. Learning adds flows in any order with the same
 * result; memory grows with servers, never with flows.
 */
#include "facts.h"

struct profile;  /* of one server; read by judge.c through the functions below */
struct profiles; /* of all */

/* NULL without memory. */
struct profiles *profiles_open(void);
void profiles_close(struct profiles *p);

/* Adds what one flow shows of its server. */
MUST_USE enum status profiles_learn(struct profiles *p, const struct facts *f);

/* Ends the learning: call once after the last profiles_learn() and before profiles_find(). */
void profiles_settle(struct profiles *p);

/* The profile of the flow's server; NULL when nothing was learned. Lives as long as p. */
const struct profile *profiles_find(const struct profiles *p, const struct facts *f);

#endif
