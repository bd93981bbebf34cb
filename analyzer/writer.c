/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of jobs. The thread that fills them and the one that writes them meet at the lock once a
 * batch, not once a row:
 *
 *   ... [written] [written] [on their way ........] [being filled ...] ...
 *                           ^ taken by the writer    ^ given by batches
 */
#include "writer.h"

#include <pthread.h>

enum {
    BATCH = 64,
    JOBS = 8 * BATCH,
};

struct writer {
    struct store *store;
    struct flow_job jobs[JOBS];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t filled; /* jobs filled; of the filling thread alone */
    /* under the lock */
    uint64_t given, written; /* jobs handed over, and done with */
    bool no_more;
    enum status status; /* first failure */
    /* of the writing thread alone, until it has ended */
    uint64_t added, known;
};

static enum status write_job(struct writer *w, const struct flow_job *job)
{
    bool added;
    struct bytes json = { job->json.at, job->json.len };
    enum status status = store_flow(w->store, &job->row, json, &added);
    if (status == STATUS_OK)
        *(added ? &w->added : &w->known) += 1;
    return status;
}

static void *write_jobs(void *argument)
{
    struct writer *w = argument;
    pthread_mutex_lock(&w->lock);
    while (w->status == STATUS_OK) {
        while (w->written == w->given && !w->no_more)
            pthread_cond_wait(&w->changed, &w->lock);
        if (w->written == w->given)
            break;
        uint64_t from = w->written, to = w->given;
        enum status status = STATUS_OK;
        pthread_mutex_unlock(&w->lock);
        for (uint64_t i = from; i < to && status == STATUS_OK; i++)
            status = write_job(w, &w->jobs[i % JOBS]);
        pthread_mutex_lock(&w->lock);
        w->written = to;
        w->status = status;
        pthread_cond_signal(&w->changed);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

struct writer *writer_open(struct store *store)
{
    struct writer *w = calloc(1, sizeof *w);
    if (w == NULL)
        return NULL;
    w->store = store;
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->changed, NULL);
    if (pthread_create(&w->thread, NULL, write_jobs, w) != 0) {
        free(w);
        return NULL;
    }
    return w;
}

struct flow_job *writer_next(struct writer *w)
{
    bool failed = false;
    if (w->filled % BATCH == 0) { /* room for a whole batch, or wait */
        pthread_mutex_lock(&w->lock);
        while (w->filled + BATCH - w->written > JOBS && w->status == STATUS_OK)
            pthread_cond_wait(&w->changed, &w->lock);
        failed = w->status != STATUS_OK;
        pthread_mutex_unlock(&w->lock);
    }
    return failed ? NULL : &w->jobs[w->filled % JOBS];
}

static void give(struct writer *w, bool no_more)
{
    pthread_mutex_lock(&w->lock);
    w->given = w->filled;
    w->no_more = no_more;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

void writer_submit(struct writer *w)
{
    if (++w->filled % BATCH == 0)
        give(w, false);
}

enum status writer_close(struct writer *w, uint64_t *ret_added, uint64_t *ret_known)
{
    give(w, true);
    pthread_join(w->thread, NULL);
    enum status status = w->status;
    *ret_added = w->added;
    *ret_known = w->known;
    for (size_t i = 0; i < JOBS; i++) {
        buffer_done(&w->jobs[i].packed);
        buffer_done(&w->jobs[i].json);
    }
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return status;
}
