/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ENDING_H
#define ENDING_H
/*
 * The end of a flow: what it was becomes facts, of which its server, client and network are
 * learned, and which go packed to the stage.
 */
#include "connection.h"
#include "flow.h"
#include "neighbour.h"
#include "privacy.h"
#include "profile.h"
#include "roles.h"
#include "stage.h"

/* Nothing is owned. */
struct endings_options {
    struct stage *stage;           /* where packed facts go, each with a mark */
    struct stage *open;            /* where states go of flows that go on in another run; NULL */
    struct profiles *profiles;     /* what servers have in common */
    struct neighbours *neighbours; /* round trips of clients */
    struct roles *roles;           /* which addresses serve many; NULL */
    const struct privacy *privacy; /* what is hidden in facts before anything is learned; NULL */
};

/* A flow that is over, or only looked at since the captures are. */
struct ending {
    const struct flow *flow; /* half-open, or with its connection, whose facts are completed */
    enum flow_end fallback;  /* why it is over unless its packets say so */
    bool stays_open;         /* it goes on in another run, */
    struct bytes state;      /* ... from this */
    struct bytes interface;  /* name of its first packet's */
};

struct endings;

struct endings *endings_open(const struct endings_options *options); /* NULL without memory */
void endings_close(struct endings *e);                               /* NULL is accepted */

/*
 * Learns of a flow and stages its facts, whose number on the stage is *ret_number. STATUS_NO_MEMORY
 * or STATUS_IO of the stage.
 */
MUST_USE enum status endings_add(struct endings *e, const struct ending *ending,
                                 uint64_t *ret_number);

/* Facts staged. */
uint64_t endings_count(const struct endings *e);

/* What is known of a flow beside its facts: stands behind them in its item on the stage. */
struct stage_mark {
    uint32_t resumed; /* number of the flow of an earlier run that goes on in it + 1; 0 = none */
    bool has_row;     /* a row of its name that is there is to be replaced */
    bool is_open;     /* it is live at the end, and its state is on the other stage */
    struct bytes interface; /* name of its first packet's, a view into the item; empty = none */
};
struct stage_mark stage_mark_of(struct bytes item);

#endif
