/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * Workers take the points in order. Each may use so much memory for live flows (live_memory of
 * reading.h), whoever reads beside it: else flows would be evicted or not as threads happen to run.
 * Where all that are being read together use more than there is, all wait but the one of the first
 * point, which so comes to its end and leaves room.
 *
 * Under the lock lie what is handed out, what is done, and what each worker says of itself after
 * each step; the points and readings are their worker's alone until it has ended.
 */
#include "crew.h"

#include "thread.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WAIT_NS = 50000000, ERROR_SIZE = 1024 };

#define NO_POINT SIZE_MAX

struct worker {
    struct crew *crew;
    pthread_t thread;
    bool has_thread;
    struct labeler *labeler;
    bool owns_labeler;
    struct reading *reading; /* NULL between points */
    /* under the lock, where others look at it */
    size_t point; /* that it reads; NO_POINT */
    struct reading_progress progress;
    size_t memory;
};

struct crew {
    struct crew_options options;
    struct worker *workers;
    bool is_started;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    size_t next_point, points_done;
    unsigned running; /* threads */
    bool stop;
    struct crew_progress done; /* of the points that are done */
    struct profiles *profiles;
    size_t failed_point; /* the first of those that failed; NO_POINT */
    enum status status;
    char error[ERROR_SIZE];
};

struct crew *crew_open(const struct crew_options *options)
{
    struct crew *c = calloc(1, sizeof *c);
    if (c == NULL)
        return NULL;
    c->options = *options;
    c->failed_point = NO_POINT;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    c->workers = calloc(options->jobs, sizeof *c->workers);
    if (c->workers == NULL) {
        crew_close(c);
        return NULL;
    }
    for (unsigned n = 0; n < options->jobs; n++) {
        struct worker *w = &c->workers[n];
        w->crew = c;
        w->point = NO_POINT;
        w->labeler = n == 0 ? options->labeler : NULL;
    }
    return c;
}

/* ---- what a worker does ---- */

static void note_failure(struct crew *c, size_t point, enum status status, const char *text)
{
    pthread_mutex_lock(&c->lock);
    if (point < c->failed_point) {
        c->failed_point = point;
        c->status = status;
        snprintf(c->error, sizeof c->error, "%s", text);
    }
    c->stop = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

/* One after the other: nDPI does not say that several threads may make their tables at once. */
static enum status get_labeler(struct worker *w)
{
    struct crew *c = w->crew;
    if (c->options.labeler == NULL || w->labeler != NULL)
        return STATUS_OK;
    pthread_mutex_lock(&c->lock);
    enum status status = labeler_open(&w->labeler);
    pthread_mutex_unlock(&c->lock);
    w->owns_labeler = status == STATUS_OK;
    return status;
}

/* False when there is nothing more to do. */
static bool take_point(struct worker *w)
{
    struct crew *c = w->crew;
    pthread_mutex_lock(&c->lock);
    bool has_point = !c->stop && c->next_point < c->options.point_count;
    w->point = has_point ? c->next_point++ : NO_POINT;
    pthread_mutex_unlock(&c->lock);
    return has_point;
}

static enum status begin_point(struct worker *w)
{
    struct crew *c = w->crew;
    enum status status = get_labeler(w);
    if (status == STATUS_OK) {
        w->reading = reading_open(&c->options.reading, &c->options.points[w->point], w->labeler);
        status = w->reading == NULL ? STATUS_NO_MEMORY : STATUS_OK;
    }
    if (status != STATUS_OK)
        note_failure(c, w->point, status, "");
    return status;
}

/* Profiles of a point go into those of all. Under the lock. */
static enum status add_profiles(struct crew *c, struct run_point *p)
{
    enum status status = STATUS_OK;
    if (c->profiles == NULL) {
        c->profiles = p->profiles;
    } else {
        status = profiles_merge_all(c->profiles, p->profiles);
        profiles_close(p->profiles);
    }
    p->profiles = NULL;
    return status;
}

static void end_point(struct worker *w)
{
    struct crew *c = w->crew;
    struct reading_progress p = reading_progress(w->reading);
    size_t point = w->point;
    reading_close(w->reading);
    w->reading = NULL;
    pthread_mutex_lock(&c->lock);
    w->point = NO_POINT;
    enum status status = add_profiles(c, &c->options.points[point]);
    c->done.bytes += p.bytes;
    c->done.packets += p.packets;
    c->done.files += p.files;
    c->points_done++;
    w->progress = (struct reading_progress){ 0 };
    w->memory = 0;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (status != STATUS_OK)
        note_failure(c, point, status, "");
}

/* Whether others must come to their end first. Under the lock. */
static bool must_wait(const struct worker *w)
{
    const struct crew *c = w->crew;
    size_t used = 0;
    bool is_first = true;
    for (unsigned n = 0; n < c->options.jobs; n++) {
        const struct worker *other = &c->workers[n];
        used += other->memory;
        is_first &= other->memory == 0 || other->point >= w->point;
    }
    return !is_first && used > c->options.live_memory;
}

/* Says how far the worker is. False when it is to stop. */
static bool report(struct worker *w)
{
    struct crew *c = w->crew;
    struct reading_progress progress = reading_progress(w->reading);
    size_t memory = reading_memory(w->reading) + 1; /* it is there, even without flows */
    pthread_mutex_lock(&c->lock);
    if (memory < w->memory)
        pthread_cond_broadcast(&c->changed); /* others may go on */
    w->progress = progress;
    w->memory = memory;
    while (!c->stop && must_wait(w))
        pthread_cond_wait(&c->changed, &c->lock);
    bool go_on = !c->stop;
    pthread_mutex_unlock(&c->lock);
    return go_on;
}

/* Reads on for a moment. False when there is nothing more to do. */
static bool work(struct worker *w)
{
    bool done;
    if (w->reading == NULL)
        return take_point(w) && begin_point(w) == STATUS_OK;
    enum status status = reading_step(w->reading, &done);
    if (status != STATUS_OK)
        note_failure(w->crew, w->point, status, reading_error(w->reading));
    else if (done)
        end_point(w);
    return status == STATUS_OK && (done || report(w));
}

static void *work_on(void *argument)
{
    struct worker *w = argument;
    struct crew *c = w->crew;
    while (work(w))
        continue;
    pthread_mutex_lock(&c->lock);
    c->running--;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    return NULL;
}

/* ---- for callers ---- */

/* As many threads as there are to be had; without any the first worker works in crew_step(). */
static void start(struct crew *c)
{
    c->is_started = true;
    for (unsigned n = 0; n < c->options.jobs && c->options.jobs > 1; n++) {
        struct worker *w = &c->workers[n];
        pthread_mutex_lock(&c->lock);
        c->running++;
        pthread_mutex_unlock(&c->lock);
        w->has_thread = thread_start(&w->thread, work_on, w);
        if (w->has_thread)
            continue;
        pthread_mutex_lock(&c->lock);
        c->running--;
        pthread_mutex_unlock(&c->lock);
        break;
    }
}

static enum status wait_a_moment(struct crew *c, bool *ret_done)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&c->lock);
    if (c->running > 0)
        pthread_cond_timedwait(&c->changed, &c->lock, &until);
    *ret_done = c->running == 0 && c->status == STATUS_OK;
    enum status status = c->running == 0 ? c->status : STATUS_OK;
    pthread_mutex_unlock(&c->lock);
    return status;
}

enum status crew_step(struct crew *c, bool *ret_done)
{
    if (!c->is_started)
        start(c);
    if (c->workers[0].has_thread)
        return wait_a_moment(c, ret_done);
    *ret_done = !work(&c->workers[0]) && c->status == STATUS_OK;
    return c->status;
}

void crew_stop(struct crew *c)
{
    pthread_mutex_lock(&c->lock);
    c->stop = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    for (unsigned n = 0; n < c->options.jobs; n++) {
        struct worker *w = &c->workers[n];
        if (w->has_thread)
            pthread_join(w->thread, NULL);
        w->has_thread = false;
        reading_close(w->reading);
        w->reading = NULL;
        if (w->owns_labeler)
            labeler_close(w->labeler);
        w->labeler = NULL;
        w->owns_labeler = false;
    }
}

void crew_close(struct crew *c)
{
    if (c == NULL)
        return;
    if (c->workers != NULL)
        crew_stop(c);
    free(c->workers);
    profiles_close(c->profiles);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

struct profiles *crew_take_profiles(struct crew *c)
{
    struct profiles *profiles = c->profiles;
    c->profiles = NULL;
    return profiles;
}

const char *crew_error(const struct crew *c)
{
    return c->error;
}

struct crew_progress crew_progress(struct crew *c)
{
    pthread_mutex_lock(&c->lock);
    struct crew_progress p = c->done;
    for (unsigned n = 0; n < c->options.jobs; n++) {
        const struct reading_progress *w = &c->workers[n].progress;
        p.bytes += w->bytes;
        p.packets += w->packets;
        p.flows += w->flows;
        p.files += w->files;
        p.path = p.path == NULL ? w->path : p.path;
    }
    pthread_mutex_unlock(&c->lock);
    return p;
}
