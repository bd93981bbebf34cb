/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of jobs. The thread that fills them and the one that writes them meet at the lock once a
 * batch, not once a row:
 *
 *   ... [written] [written] [on their way ........] [being filled ...] ...
 *                           ^ taken by the writer    ^ given by batches
 */
#include "writer.h"

#include "carry.h"
#include "thread.h"

enum {
    BATCH = 64,
    JOBS = 8 * BATCH,
};

struct writer {
    struct store *store;
    struct flow_job jobs[JOBS];
    pthread_t thread;
    bool has_thread; /* else who fills a batch writes it */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t filled; /* jobs filled; of the filling thread alone */
    /* under the lock */
    uint64_t given, written; /* jobs handed over, and done with */
    bool no_more;
    enum status status; /* first failure */
    /* of the writing thread alone, until it has ended */
    struct writer_counts counts;
};

/* Adds the row, or puts it in the place of the one that it completes. */
static enum status write_row(struct writer *w, const struct flow_job *job, bool *ret_written)
{
    struct bytes json = { job->json.at, job->json.len };
    int64_t replaces = job->replaces;
    enum status status = STATUS_OK;
    if (replaces == 0 && job->may_have_row)
        status = store_find_flow(w->store, job->row.flow_uid, &replaces);
    if (status != STATUS_OK)
        return status;
    status = replaces == 0 ? store_flow(w->store, &job->row, json, ret_written)
                           : store_replace_flow(w->store, replaces, &job->row, json, ret_written);
    if (status == STATUS_OK)
        *(!*ret_written   ? &w->counts.known
          : replaces == 0 ? &w->counts.added
                          : &w->counts.replaced) += 1;
    return status;
}

static enum status write_job(struct writer *w, const struct flow_job *job)
{
    bool written;
    enum status status = write_row(w, job, &written);
    if (status != STATUS_OK || !written || !job->is_open)
        return status;
    return store_open_flow(w->store, job->point_id, store_written_flow(w->store),
                           job->row.start_epoch_ns.value + job->row.end_at_ns.value, CARRY_VERSION,
                           (struct bytes){ job->state.at, job->state.len });
}

/* Writes the jobs handed over since the last time. The lock is held, but not while it writes. */
static void write_given(struct writer *w)
{
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

static void *write_jobs(void *argument)
{
    struct writer *w = argument;
    pthread_mutex_lock(&w->lock);
    while (w->status == STATUS_OK) {
        while (w->written == w->given && !w->no_more)
            pthread_cond_wait(&w->changed, &w->lock);
        if (w->written == w->given)
            break;
        write_given(w);
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
    w->has_thread = thread_start(&w->thread, write_jobs, w);
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
    if (!w->has_thread && w->status == STATUS_OK)
        write_given(w);
    pthread_mutex_unlock(&w->lock);
}

void writer_submit(struct writer *w)
{
    if (++w->filled % BATCH == 0)
        give(w, false);
}

enum status writer_close(struct writer *w, struct writer_counts *ret_counts)
{
    give(w, true);
    if (w->has_thread)
        pthread_join(w->thread, NULL);
    enum status status = w->status;
    *ret_counts = w->counts;
    for (size_t i = 0; i < JOBS; i++) {
        buffer_done(&w->jobs[i].packed);
        buffer_done(&w->jobs[i].json);
        buffer_done(&w->jobs[i].state);
    }
    pthread_cond_destroy(&w->changed);
    pthread_mutex_destroy(&w->lock);
    free(w);
    return status;
}
