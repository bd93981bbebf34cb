/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KNOWLEDGE_H
#define KNOWLEDGE_H
/*
 * What a database knows of servers: profiles from and to table server_profile. Loading, learning
 * and keeping in any order comes to the same as learning from all flows at once.
 */
#include "profile.h"
#include "store.h"

/* Merges all that the database knows into p. STATUS_IO with store_error(). */
MUST_USE enum status knowledge_load(struct store *s, struct profiles *p);

/* The same from the facts of all flows that ended, when some were learned from that go. */
MUST_USE enum status knowledge_learn(struct store *s, struct profiles *p);

/* Replaces what the database knows by p, which is settled. */
MUST_USE enum status knowledge_keep(struct store *s, const struct profiles *p);

#endif
