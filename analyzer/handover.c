/* SPDX-License-Identifier: Apache-2.0 */
#include "handover.h"

#include "thread.h"

#include <limits.h>

static unsigned on_their_way(const struct handover *h)
{
    return (unsigned)(h->filled - h->emptied);
}

static bool has_slot(const struct handover *h)
{
    return on_their_way(h) > 0 && h->status == STATUS_OK && !h->closed;
}

static void *empty_slots(void *argument)
{
    struct handover *h = argument;
    pthread_mutex_lock(&h->lock);
    for (;;) {
        while (!has_slot(h) && !h->closed && h->status == STATUS_OK)
            pthread_cond_wait(&h->changed, &h->lock);
        if (!has_slot(h))
            break;
        unsigned slot = (unsigned)(h->emptied % h->slots);
        pthread_mutex_unlock(&h->lock);
        enum status status = h->work(h->owner, slot);
        pthread_mutex_lock(&h->lock);
        h->emptied++;
        h->status = status;
        if (h->awaited != UINT_MAX && (on_their_way(h) <= h->awaited || status != STATUS_OK))
            pthread_cond_signal(&h->changed);
    }
    pthread_mutex_unlock(&h->lock);
    return NULL;
}

void handover_open(struct handover *h, unsigned slots, bool wants_thread, handover_work *work,
                   void *owner)
{
    *h = (struct handover){ .work = work, .owner = owner, .slots = slots, .awaited = UINT_MAX };
    pthread_mutex_init(&h->lock, NULL);
    pthread_cond_init(&h->changed, NULL);
    h->has_thread = wants_thread && thread_start(&h->thread, empty_slots, h);
}

/* Waits until at most so many slots are on their way. Under the lock. */
static void wait_for(struct handover *h, unsigned count)
{
    h->awaited = count;
    while (on_their_way(h) > count && h->status == STATUS_OK)
        pthread_cond_wait(&h->changed, &h->lock);
    h->awaited = UINT_MAX;
}

enum status handover_next(struct handover *h, unsigned *ret_slot)
{
    *ret_slot = (unsigned)(h->filled % h->slots);
    pthread_mutex_lock(&h->lock);
    if (on_their_way(h) == h->slots)
        wait_for(h, h->slots / 2);
    enum status status = h->status;
    pthread_mutex_unlock(&h->lock);
    return status;
}

enum status handover_filled(struct handover *h)
{
    if (!h->has_thread) {
        if (h->status == STATUS_OK)
            h->status = h->work(h->owner, (unsigned)(h->filled % h->slots));
        h->filled++;
        h->emptied++;
        return h->status;
    }
    pthread_mutex_lock(&h->lock);
    h->filled++;
    enum status status = h->status;
    if (on_their_way(h) == (h->slots + 1) / 2)
        pthread_cond_signal(&h->changed);
    pthread_mutex_unlock(&h->lock);
    return status;
}

enum status handover_settle(struct handover *h)
{
    pthread_mutex_lock(&h->lock);
    pthread_cond_signal(&h->changed);
    wait_for(h, 0);
    enum status status = h->status;
    pthread_mutex_unlock(&h->lock);
    return status;
}

void handover_close(struct handover *h)
{
    if (h->slots == 0)
        return;
    if (h->has_thread) {
        pthread_mutex_lock(&h->lock);
        h->closed = true;
        pthread_cond_signal(&h->changed);
        pthread_mutex_unlock(&h->lock);
        pthread_join(h->thread, NULL);
    }
    pthread_cond_destroy(&h->changed);
    pthread_mutex_destroy(&h->lock);
    *h = (struct handover){ 0 };
}
