/* SPDX-License-Identifier: Apache-2.0 */
#ifndef KEYED_H
#define KEYED_H
/*
 * The encrypted records of one connection whose secrets are known: keeps each until it can be
 * opened, notes in the facts what it holds, and forgets it. Exists only for such connections, and
 * only until the verdict has what it needs: the client's Finished, the request and its answer.
 */
#include "facts.h"
#include "hello.h"
#include "record.h"
#include "secrets.h"

enum {
    KEYED_BYTES_MAX = 96 * 1024, /* of bodies that wait; those of further records are not kept */
    KEYED_RECORDS_MAX = 64,      /* that wait for a ServerHello or secrets; with more it is over */
};

struct keyed;

/*
 * For the connection of a ClientHello that `side` sent. *ret_keyed is NULL when there are no
 * secrets for it and none can come. secrets are not owned and must live as long.
 */
MUST_USE enum status keyed_open(const struct secrets *secrets, enum side side,
                                const struct client_hello *hello, struct keyed **ret_keyed);
void keyed_close(struct keyed *k); /* NULL is accepted */

/* Bytes it takes. */
size_t keyed_memory(const struct keyed *k);

/* The ServerHello, not a HelloRetryRequest. */
void keyed_server_hello(struct keyed *k, const struct server_hello *hello);

/*
 * A record of a side begins. index is that of the facts' record + 1, 0 when that keeps none. lost:
 * record boundaries were lost before it, so that nobody knows how many records came between.
 */
MUST_USE enum status keyed_begin(struct keyed *k, enum side side,
                                 const struct record_header *header, uint16_t index, bool lost);

/* The next bytes of its body. */
void keyed_body(struct keyed *k, enum side side, const struct run *body);

/* It is complete: it and what waited for it is opened, if possible. */
MUST_USE enum status keyed_end(struct keyed *k, struct facts *f, enum side side);

/* Whether nothing more can or need be opened: keyed_finish() and close it. */
bool keyed_is_over(const struct keyed *k);

/* The end of the flow, or of its need: opens what can be and says in facts how the keys did. */
MUST_USE enum status keyed_finish(struct keyed *k, struct facts *f);

#endif
