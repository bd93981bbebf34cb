/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HANDOVER_H
#define HANDOVER_H
/*
 * Work that one thread hands to another, in order: a ring of slots that the one fills and the other
 * empties. What a slot is, its owner knows; here is only whose turn it is. The two meet at a lock
 * once a slot, and wake each other only for half a ring, since waking is dear.
 *
 *   ... [emptied] [being emptied] [filled ......] [being filled] [emptied] ...
 */
#include "status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* Empties a slot. What it returns other than STATUS_OK is final: no slot is emptied after it. */
typedef enum status handover_work(void *owner, unsigned slot);

struct handover {
    handover_work *work;
    void *owner;
    unsigned slots;
    pthread_t thread;
    bool has_thread; /* else handover_filled() does the work */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    uint64_t filled, emptied;
    unsigned awaited;   /* who fills waits until at most so many are on their way; else UINT_MAX */
    bool closed;        /* nothing more will be filled */
    enum status status; /* first failure of the work */
};

/* Starts the thread, where one is wanted and to be had; owner and work must outlive it. */
void handover_open(struct handover *h, unsigned slots, bool wants_thread, handover_work *work,
                   void *owner);

/* The slot to be filled next; waits until it is empty. The failure of the work, if it failed. */
MUST_USE enum status handover_next(struct handover *h, unsigned *ret_slot);

/* That slot is filled. A failure of the work may also be told later. */
MUST_USE enum status handover_filled(struct handover *h);

/* Waits until all that was filled is emptied: then nothing is used by the thread. */
MUST_USE enum status handover_settle(struct handover *h);

/* Ends the thread; what is filled and not emptied stays so. Zeroed ones are accepted. */
void handover_close(struct handover *h);

#endif
