/* SPDX-License-Identifier: Apache-2.0 */
#include "reading.h"

#include "analyze.h"
#include "interfaces.h"
#include "interleave.h"
#include "source.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { FRAMES_PER_STEP = 50000, ERROR_SIZE = 1024 };

/*
 * What is older than this cannot be read behind what the point has given: rows of connections that
 * closed before would be there already (CLOSED_LINGER_NS). Files of one point that are written at
 * the same time are rarely in step to the packet.
 */
#define OLDER_MAX_NS (4 * INT64_C(1000000000))

struct reading {
    const struct reading_options *options;
    struct run_point *point;
    struct labeler *labeler;
    struct analysis *analysis;
    struct interleave *interleave; /* the open captures, by their index in the point */
    size_t file;                   /* index of the one to open next */
    struct run_file *current;      /* of the last frame; NULL */
    int64_t latest_ns;             /* greatest time of a frame */
    bool is_resumed;               /* the analysis has the flows of earlier runs */
    bool is_due;                   /* the next file starts before the next frame */
    bool said_too_many;            /* files that overlap */
    char error[ERROR_SIZE];
};

__attribute__((format(printf, 3, 4))) static enum status fail(struct reading *r, enum status status,
                                                              const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(r->error, sizeof r->error, format, arguments);
    va_end(arguments);
    return status;
}

static size_t index_of(const struct reading *r, const struct run_file *f)
{
    return (size_t)(f - r->point->files);
}

/* Known content: repeating an ingest changes nothing */

/* The store is used by one reading at a time; its words are kept while it is. */
static struct store *take_store(struct reading *r)
{
    pthread_mutex_lock(r->options->store_lock);
    return r->options->store;
}

static enum status give_back_store(struct reading *r, enum status status)
{
    if (status != STATUS_OK)
        (void)fail(r, status, "%s", store_error(r->options->store));
    pthread_mutex_unlock(r->options->store_lock);
    return status;
}

static bool same_content(const struct reading *r, const struct run_file *but, const char *hex)
{
    const struct run_point *p = r->point;
    for (size_t k = 0; k < p->file_count; k++) {
        const struct run_file *f = &p->files[k];
        if (f != but && (f->state == FILE_READ || f->state == FILE_OPEN) &&
            strcmp(f->content_hex, hex) == 0)
            return true;
    }
    return false;
}

static enum status is_known(struct reading *r, const struct run_file *f, const char *hex,
                            bool *ret_known)
{
    *ret_known = same_content(r, f, hex);
    if (*ret_known || r->options->replace)
        return STATUS_OK;
    struct store *store = take_store(r);
    return give_back_store(r, store_has_capture(store, hex, r->point->input->name, ret_known));
}

static bool same_size_in_point(const struct reading *r, const struct run_file *f)
{
    const struct run_point *p = r->point;
    for (size_t k = 0; k < p->file_count; k++)
        if (&p->files[k] != f && p->files[k].state == FILE_READ &&
            p->files[k].input->size == f->input->size)
            return true;
    return false;
}

/* Reads a whole file for its hash alone. */
static enum status hash_content(const char *path, char hex[HASH_HEX_SIZE])
{
    struct capture *c;
    struct frame frame;
    enum status status = capture_open(path, NULL, &c);
    if (status == STATUS_NO_MEMORY)
        return status;
    while (status == STATUS_OK)
        status = capture_next(c, &frame);
    struct hash128 content = capture_info(c).content;
    hex_text((struct bytes){ content.octet, sizeof content.octet }, hex);
    capture_close(c);
    return STATUS_OK;
}

/* Hashes the open files of the same size and first time, which may be copies of this one. */
static enum status hash_open_copies(struct reading *r, const struct run_file *f, bool *ret_any)
{
    const struct run_point *p = r->point;
    *ret_any = false;
    for (size_t k = 0; k < p->file_count; k++) {
        struct run_file *other = &p->files[k];
        if (other->state != FILE_OPEN || other->input->size != f->input->size ||
            other->input->first_at_ns != f->input->first_at_ns)
            continue;
        *ret_any = true;
        if (other->content_hex[0] == '\0' &&
            hash_content(other->input->path, other->content_hex) != STATUS_OK)
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

/* What the database knows of a file by its name, and whether it knows one of its size. */
static enum status look_up_file(struct reading *r, const struct run_file *f, bool *ret_known,
                                bool *ret_has_size)
{
    enum status status = STATUS_OK;
    struct store *store = take_store(r);
    if (!r->options->replace)
        status = store_has_file(store, f->input->path, r->point->input->name, f->input->size,
                                f->mtime_ns, ret_known);
    if (status == STATUS_OK && !*ret_known)
        status = store_has_size(store, f->input->size, ret_has_size);
    return give_back_store(r, status);
}

/*
 * Whether a file need not be read: it has not changed since it was, or its content is known, which
 * is hashed beforehand only if its size is known.
 */
static enum status known_before_reading(struct reading *r, const struct run_file *f,
                                        bool *ret_known)
{
    bool has_size = false, has_copies;
    char hex[HASH_HEX_SIZE];
    *ret_known = false;
    if (f->input->size == 0)
        return STATUS_OK;
    enum status status = look_up_file(r, f, ret_known, &has_size);
    if (status != STATUS_OK || *ret_known)
        return status;
    status = hash_open_copies(r, f, &has_copies);
    if (status != STATUS_OK || (!has_size && !has_copies && !same_size_in_point(r, f)))
        return status;
    status = hash_content(f->input->path, hex);
    return status == STATUS_OK ? is_known(r, f, hex, ret_known) : status;
}

static void skip_known(struct reading *r, struct run_file *f)
{
    f->state = FILE_KNOWN;
    r->point->bytes_done += f->input->size;
    notes_add(&r->point->notes, false, "%s: already ingested, nothing to do", f->input->path);
}

/* Reading */

/* What it was that an analysis could not read or write: one of its stages, or silent flows. */
static const char *stage_failure(const struct run_point *p)
{
    const char *first = stage_error(p->stage), *second = stage_error(p->open);
    if (strcmp(first, "out of memory") != 0)
        return first;
    return strcmp(second, "out of memory") != 0 ? second : "temporary file: cannot read it";
}

/* A status of the analysis, with the words of what failed. */
static enum status of_analysis(struct reading *r, enum status status)
{
    return status == STATUS_IO ? fail(r, status, "%s", stage_failure(r->point)) : status;
}

static enum status begin(struct reading *r)
{
    struct run_point *p = r->point;
    const struct reading_options *o = r->options;
    if (p->stage == NULL)
        p->stage = stage_open(o->stage_memory, NULL);
    if (p->open == NULL)
        p->open = stage_open(o->stage_memory, NULL);
    p->half_opens = half_opens_open(o->seed);
    p->neighbours = neighbours_open(o->seed);
    p->roles = roles_open(o->seed);
    p->profiles = profiles_open();
    r->interleave = interleave_open();
    r->current = NULL;
    r->file = 0;
    r->latest_ns = 0;
    r->is_resumed = r->is_due = r->said_too_many = false;
    if (r->interleave == NULL || p->stage == NULL || p->open == NULL || p->half_opens == NULL ||
        p->neighbours == NULL || p->roles == NULL || p->profiles == NULL)
        return STATUS_NO_MEMORY;
    struct analysis_options options = {
        .stage = p->stage,
        .open = o->keeps_state ? p->open : NULL,
        .labeler = r->labeler,
        .half_opens = p->half_opens,
        .profiles = p->profiles,
        .neighbours = p->neighbours,
        .roles = p->roles,
        .secrets = o->secrets,
        .privacy = o->privacy,
        .memory_max = o->live_memory,
        .seed = o->seed,
    };
    return analysis_open(&options, &r->analysis);
}

static void stop(struct reading *r)
{
    analysis_close(r->analysis);
    interleave_close(r->interleave);
    r->analysis = NULL;
    r->interleave = NULL;
}

static void note_unnamed(struct reading *r)
{
    uint64_t flows = analysis_unnamed_flows(r->analysis);
    if (flows > 0)
        notes_add(&r->point->notes, false,
                  "%s: more than %d interfaces; %llu flows of others have no interface",
                  r->point->input->name, INTERFACES_MAX, (unsigned long long)flows);
}

static enum status end(struct reading *r)
{
    struct run_point *p = r->point;
    enum status status = analysis_end(r->analysis);
    note_unnamed(r);
    p->continuation.state.len = 0;
    if (status == STATUS_OK && r->options->keeps_state)
        status = analysis_leave_point(r->analysis, &p->continuation.state);
    stop(r);
    p->complete = status == STATUS_OK;
    for (size_t k = 0; k < p->file_count; k++)
        p->has_rows |= p->complete && p->files[k].state == FILE_READ;
    return of_analysis(r, status);
}

/* Before the first file that is not known: goes on where the last run stopped. */
static enum status resume(struct reading *r)
{
    struct continuation *c = &r->point->continuation;
    if (r->is_resumed)
        return STATUS_OK;
    r->is_resumed = true;
    struct store *store = take_store(r);
    enum status status = continuation_find(c, store, r->point->input);
    if (status == STATUS_OK && !r->options->replace)
        status = continuation_resume(c, store, r->analysis);
    status = give_back_store(r, status);
    if (status == STATUS_OK && !r->options->replace && c->unreadable > 0)
        notes_add(&r->point->notes, true,
                  "%s: %zu flows that were open cannot be completed: another version of "
                  "firstflight kept them; --replace reads the point again",
                  r->point->input->name, c->unreadable);
    return status;
}

/* Starts again without a file that turned out to be known only when it had been read. */
static enum status restart(struct reading *r)
{
    struct run_point *p = r->point;
    stop(r);
    run_point_clear(p);
    for (size_t k = 0; k < p->file_count; k++)
        if (p->files[k].state == FILE_READ || p->files[k].state == FILE_OPEN)
            p->files[k].state = FILE_PENDING;
    return begin(r);
}

static void switch_file(struct reading *r, struct run_file *f)
{
    r->current = f;
    analysis_use_file(r->analysis, (uint32_t)(r->point->first_file + index_of(r, f)), &f->drops);
}

static void note_too_many(struct reading *r, const struct run_file *f)
{
    bool is_late =
        f->input->first_at_ns != 0 && f->input->first_at_ns < r->latest_ns - FRAME_LATE_MAX_NS;
    if (is_late && !r->said_too_many)
        notes_add(&r->point->notes, true,
                  "%s: its packets come too late, since more than %d files of one capture "
                  "point overlap in time",
                  f->input->path, INTERLEAVED_MAX);
    r->said_too_many |= is_late;
}

/* Finds what an earlier run has read of a file that has grown since. */
static enum status find_begun(struct reading *r, struct run_file *f)
{
    struct hash128 hash;
    char hex[HASH_HEX_SIZE];
    f->begun = (struct begun_capture){ 0 };
    if (r->options->replace || f->input->size == 0 || f->input->first_at_ns == 0)
        return STATUS_OK;
    struct store *store = take_store(r);
    enum status status = give_back_store(
        r, store_find_begun(store, r->point->input->name, f->input->first_at_ns, &f->begun));
    if (status != STATUS_OK || f->begun.capture_id == 0)
        return status;
    if (source_hash_begin(f->input->path, f->begun.content_len, &hash)) {
        hex_text((struct bytes){ hash.octet, sizeof hash.octet }, hex);
        if (strcmp(hex, f->begun.content_hash_hex) == 0)
            return STATUS_OK;
    }
    f->begun = (struct begun_capture){ 0 }; /* another file that began at the same moment */
    return STATUS_OK;
}

/* Whether a file begins before what its point has given in earlier runs. */
static bool is_too_old(const struct reading *r, const struct run_file *f)
{
    const struct continuation *c = &r->point->continuation;
    int64_t begin_ns = f->begun.capture_id != 0 ? f->begun.last_ns : f->input->first_at_ns;
    return !r->options->replace && begin_ns != 0 && c->until_ns != 0 &&
           c->until_ns - begin_ns > OLDER_MAX_NS;
}

static void refuse_older(struct reading *r, struct run_file *f)
{
    f->state = FILE_UNREADABLE;
    r->point->files_refused++;
    r->point->bytes_done += f->input->size;
    notes_add(&r->point->notes, true,
              "%s: left out: older than what has been read of its capture point; "
              "ingest all files of the point again with --replace",
              f->input->path);
}

static enum status open_file(struct reading *r, struct run_file *f)
{
    struct capture *capture = NULL;
    enum status status = capture_open(f->input->path, r->options->filter, &capture);
    if (status == STATUS_OK)
        status = interleave_add(r->interleave, capture, index_of(r, f));
    if (status == STATUS_OK) {
        note_too_many(r, f);
        f->state = FILE_OPEN;
        f->secrets_read = 0;
        f->passed = 0;
        f->drops = (struct drop_counts){ 0 };
        return STATUS_OK;
    }
    if (status == STATUS_USAGE)
        (void)fail(r, status, "%s", capture_error(capture));
    else if (status != STATUS_NO_MEMORY)
        notes_add(&r->point->notes, true, "%s", capture_error(capture));
    capture_close(capture);
    if (status == STATUS_NO_MEMORY || status == STATUS_USAGE)
        return status;
    r->point->files_unreadable++;
    f->state = FILE_UNREADABLE;
    return STATUS_OK;
}

/* Opens the next file, unless it need not or cannot be read. */
static enum status begin_file(struct reading *r)
{
    struct run_file *f = &r->point->files[r->file++];
    bool known;
    enum status status = known_before_reading(r, f, &known);
    if (status != STATUS_OK)
        return status;
    if (known) {
        skip_known(r, f);
        return STATUS_OK;
    }
    status = resume(r);
    if (status == STATUS_OK)
        status = find_begun(r, f);
    if (status != STATUS_OK)
        return status;
    if (is_too_old(r, f)) {
        refuse_older(r, f);
        return STATUS_OK;
    }
    return open_file(r, f);
}

static void note_disorder(struct reading *r, const struct run_file *f)
{
    const struct disorder *d = &f->disorder;
    if (d->steps > 0)
        notes_add(&r->point->notes, false,
                  "%s: the clock was set back %llu time%s, by up to %.3f s, first at packet %llu",
                  f->input->path, (unsigned long long)d->steps, d->steps == 1 ? "" : "s",
                  (double)d->largest_step_ns / 1e9, (unsigned long long)d->first_step_number);
}

/* Several sections may describe the same interface: it is listed where its name comes first. */
static void list_interfaces(const struct capture *c, struct text *names)
{
    enum { LISTED_MAX = 1024 };
    text_clear(names);
    for (uint32_t id = 0; id < CAPTURE_INTERFACES_MAX && names->len < LISTED_MAX; id++) {
        const char *name = capture_interface_name(c, id);
        bool is_listed = false;
        for (uint32_t k = 0; k < id && name != NULL && !is_listed; k++) {
            const char *other = capture_interface_name(c, k);
            is_listed = other != NULL && strcmp(name, other) == 0;
        }
        if (name != NULL && !is_listed)
            text_addf(names, "%s%s", names->len > 0 ? "," : "", name);
    }
}

static void note_how_it_ended(struct reading *r, struct run_file *f, const struct capture *capture,
                              enum status reading)
{
    f->is_growing = f->input->size > 0 && file_is_growing(f->input->path, f->input->size);
    free(f->damage);
    f->damage = reading == STATUS_END ? NULL : strdup(capture_reason(capture));
    if (f->is_growing)
        notes_add(&r->point->notes, false,
                  "%s: still being written; the next run reads on where this one stopped",
                  f->input->path);
    else if (reading != STATUS_END)
        notes_add(&r->point->notes, true, "%s (what could be read is used)",
                  capture_error(capture));
}

static enum status end_file(struct reading *r, struct run_file *f, enum status reading)
{
    size_t index = index_of(r, f);
    const struct order *order = interleave_find(r->interleave, index);
    const struct capture *capture = order_capture(order);
    bool known;
    enum status status = analysis_settle(r->analysis); /* what it has of the capture is gone now */
    if (status != STATUS_OK)
        return of_analysis(r, status);
    if (r->current == f)
        r->current = NULL;
    f->info = capture_info(capture);
    f->disorder = order_found(order);
    list_interfaces(capture, &f->interfaces);
    hex_text((struct bytes){ f->info.content.octet, sizeof f->info.content.octet }, f->content_hex);
    note_how_it_ended(r, f, capture, reading);
    interleave_remove(r->interleave, index);
    status = is_known(r, f, f->content_hex, &known);
    if (status != STATUS_OK)
        return status;
    if (known) {
        skip_known(r, f);
        return restart(r);
    }
    note_disorder(r, f);
    f->state = FILE_READ;
    r->point->packets += f->info.packets;
    r->point->bytes_done += f->input->size;
    return STATUS_OK;
}

/* Passes on the key log lines that a capture brought since its last packet. */
static enum status read_secrets(struct reading *r, struct run_file *f)
{
    const struct order *order = interleave_find(r->interleave, index_of(r, f));
    struct bytes all = capture_secrets(order_capture(order));
    if (all.len <= f->secrets_read)
        return STATUS_OK;
    struct bytes added = bytes_after(all, f->secrets_read);
    f->secrets_read = all.len;
    return analysis_secrets(r->analysis, added);
}

/* Whether an earlier run had that frame of a file that has grown since. A filter gives fewer frames
 * than are numbered, so these are counted. */
static bool was_read_before(const struct reading *r, struct run_file *f, const struct frame *frame)
{
    if (r->options->filter == NULL)
        return frame->number <= f->begun.packets;
    bool before = f->passed < f->begun.packets;
    f->passed += before;
    return before;
}

static enum status take_frame(struct reading *r, const struct frame *frame, struct run_file *f)
{
    if (was_read_before(r, f, frame))
        return STATUS_OK;
    if (f != r->current)
        switch_file(r, f);
    if (frame->at_ns > r->latest_ns)
        r->latest_ns = frame->at_ns;
    enum status status = read_secrets(r, f);
    if (status == STATUS_OK)
        status = analysis_frame(r->analysis, frame);
    return of_analysis(r, status);
}

/* When the next file of the point must be open: a little before it starts, some frames are late. */
static int64_t next_start(const struct reading *r)
{
    if (r->file == r->point->file_count || interleave_count(r->interleave) == INTERLEAVED_MAX)
        return INT64_MAX;
    return r->point->files[r->file].input->first_at_ns - FRAME_LATE_MAX_NS;
}

static enum status read_frames(struct reading *r)
{
    struct frame frame;
    size_t index;
    int64_t until_ns = next_start(r);
    for (unsigned n = 0; n < FRAMES_PER_STEP; n++) {
        enum status reading = interleave_next(r->interleave, until_ns, &frame, &index);
        r->is_due = reading == STATUS_REFUSED;
        if (reading == STATUS_NO_MEMORY)
            return reading;
        if (r->is_due)
            return STATUS_OK;
        if (reading != STATUS_OK)
            return end_file(r, &r->point->files[index], reading);
        enum status status = take_frame(r, &frame, &r->point->files[index]);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* For callers */

struct reading *reading_open(const struct reading_options *options, struct run_point *point,
                             struct labeler *labeler)
{
    struct reading *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->options = options;
    r->point = point;
    r->labeler = labeler;
    if (begin(r) == STATUS_OK)
        return r;
    reading_close(r);
    return NULL;
}

void reading_close(struct reading *r)
{
    if (r == NULL)
        return;
    stop(r);
    free(r);
}

enum status reading_step(struct reading *r, bool *ret_done)
{
    const struct run_point *p = r->point;
    *ret_done = false;
    while (r->file < p->file_count && p->files[r->file].state != FILE_PENDING)
        r->file++; /* known ones, when the point was started again */
    bool is_any_open = interleave_count(r->interleave) > 0;
    if (r->file < p->file_count && (r->is_due || !is_any_open)) {
        r->is_due = false;
        return begin_file(r);
    }
    if (is_any_open)
        return read_frames(r);
    *ret_done = true;
    return end(r);
}

const char *reading_error(const struct reading *r)
{
    return r->error;
}

size_t reading_memory(const struct reading *r)
{
    return r->analysis == NULL ? 0 : analysis_memory(r->analysis);
}

struct reading_progress reading_progress(const struct reading *r)
{
    struct reading_progress p = {
        .bytes = r->point->bytes_done,
        .packets = r->point->packets,
        .files = r->file,
    };
    if (r->interleave != NULL) {
        uint64_t bytes, packets;
        interleave_progress(r->interleave, &bytes, &packets);
        p.bytes += bytes;
        p.packets += packets;
        p.path = r->current != NULL ? r->current->input->path : NULL;
    }
    if (r->analysis != NULL)
        p.flows = analysis_flows(r->analysis);
    return p;
}
