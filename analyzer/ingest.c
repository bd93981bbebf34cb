/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest.h"

#include "analyze.h"
#include "capture.h"
#include "carry.h"
#include "continuation.h"
#include "interfaces.h"
#include "interleave.h"
#include "knowledge.h"
#include "label.h"
#include "neighbour.h"
#include "places.h"
#include "prefix_set.h"
#include "profile.h"
#include "rejudge.h"
#include "row.h"
#include "secrets.h"
#include "setting.h"
#include "source.h"
#include "store.h"
#include "text.h"
#include "writer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum {
    FRAMES_PER_STEP = 50000,
    STAGE_MEMORY_MIN = 1 << 20, /* of one point, however many there are */
    HASH_HEX_SIZE = 33,
};

/* No index of a file. */
#define FILE_NONE SIZE_MAX

/*
 * What is older than this cannot be read behind what the point has given: rows of connections that
 * closed before would be there already (CLOSED_LINGER_NS). Files of one point that are written at
 * the same time are rarely in step to the packet.
 */
#define OLDER_MAX_NS (4 * INT64_C(1000000000))

enum file_state {
    FILE_PENDING,
    FILE_OPEN,
    FILE_READ,
    FILE_KNOWN, /* its content is in the database, or was read under another name */
    FILE_UNREADABLE,
};

struct run_file {
    const struct input_file *input;
    size_t point;
    enum file_state state;
    struct capture_info info;
    char content_hex[HASH_HEX_SIZE];
    size_t secrets_read; /* bytes of the key log lines that it brought */
    struct drop_counts drops;
    struct disorder disorder;
    struct text interfaces;     /* their names, with commas */
    char *damage;               /* NULL when whole */
    bool is_growing;            /* somebody writes to it */
    int64_t mtime_ns;           /* 0 = not known */
    struct begun_capture begun; /* what an earlier run has read of it */
    uint64_t passed;            /* frames of those, where a filter is in use */
    int64_t capture_id;         /* once it is written */
};

struct run_point {
    const struct capture_point *input;
    size_t first_file;
    struct stage *stage;
    struct half_opens *half_opens;
    struct neighbours *neighbours;
    struct roles *roles;
    struct stage *open;               /* states of the flows that are live at the end */
    struct continuation continuation; /* of earlier runs */
    bool is_resumed;                  /* the analysis has their flows */
    bool complete;
    bool has_rows; /* complete, and to be written: it had files that were not known */
};

struct note {
    char *text;
    bool is_error;
};

struct ingest {
    struct ingest_options options;
    struct inputs inputs;
    struct store *store;
    struct labeler *labeler;
    struct places places;
    struct prefix_set *local;
    struct privacy privacy;
    struct rules rules;      /* of names that are hidden */
    struct secrets *secrets; /* of --keylog; NULL without */
    struct run_point *points;
    struct run_file *files;
    size_t file_count;
    struct profiles *profiles; /* of all servers, to judge by */
    struct profiles *lasting;  /* the same without flows that stay open: the database keeps these */
    bool learned_too_much;     /* from flows that are not written: profiles are made anew */
    int64_t last_known_flow; /* greatest flow_id of the database before the run, 0 without flows */
    bool any_abandoned;      /* among the flows of the run */
    int64_t first_start_ns, last_start_ns; /* of the flows of the run; first > last without */
    uint64_t seed;
    /* while reading */
    size_t point, file;            /* indexes; the file, which is global, is the one to open next */
    struct analysis *analysis;     /* of the current point */
    struct interleave *interleave; /* its open captures */
    size_t current;                /* file of the last frame; FILE_NONE */
    int64_t latest_ns;             /* greatest time of a frame of the point */
    bool is_due;                   /* the next file starts before the next frame */
    bool said_too_many;            /* files of the point that overlap */
    uint64_t packets, bytes_done, bytes_total;
    const char *doing;
    /* the outcome */
    struct ingest_result result;
    size_t keyed[KEYS_FAILED + 1]; /* flows by how their secrets did */
    struct note *notes;
    size_t note_count;
    char error[1024];
};

__attribute__((format(printf, 3, 4))) static void add_note(struct ingest *i, bool is_error,
                                                           const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct note *grown = realloc(i->notes, (i->note_count + 1) * sizeof *grown);
    if (grown == NULL)
        return; /* a note less; the run itself will fail if memory is really out */
    i->notes = grown;
    grown[i->note_count++] = (struct note){ strdup(text), is_error };
}

__attribute__((format(printf, 3, 4))) static enum status fail(struct ingest *i, enum status status,
                                                              const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(i->error, sizeof i->error, format, arguments);
    va_end(arguments);
    return status;
}

static enum status store_failed(struct ingest *i, enum status status)
{
    return status == STATUS_OK ? status : fail(i, status, "%s", store_error(i->store));
}

/* Opening */

static enum status open_local(struct ingest *i)
{
    const char *local = i->options.local;
    enum status status = local == NULL ? STATUS_OK : prefix_set_open(local, &i->local);
    if (status == STATUS_IO || status == STATUS_REFUSED)
        return fail(i, STATUS_USAGE,
                    "--local %s: neither a list of prefixes nor a file with one a line", local);
    return status;
}

static enum status open_places(struct ingest *i)
{
    struct text error = { 0 };
    enum status status = places_open(&i->options.places, &i->places, &error);
    if (status != STATUS_OK)
        fail(i, status, "%s", text_string(&error));
    text_done(&error);
    if (i->places.clients != NULL && regions_bad_lines(i->places.clients) > 0)
        add_note(i, false, "--clients: %zu lines could not be read and are left out",
                 regions_bad_lines(i->places.clients));
    return status == STATUS_OK ? open_local(i) : status;
}

static void note_keylog(struct ingest *i)
{
    struct secrets_counts counts = secrets_counts(i->secrets);
    if (counts.kept == 0)
        add_note(i, true, "--keylog: no secrets of TLS connections in it");
    if (counts.bad > 0)
        add_note(i, false, "--keylog: %zu lines could not be read and are left out", counts.bad);
    if (counts.conflicting > 0)
        add_note(i, false,
                 "--keylog: %zu lines say something else than lines before them, which hold",
                 counts.conflicting);
    if (counts.over_cap > 0)
        add_note(i, true, "--keylog: more than %d secrets; the last %zu are left out", SECRETS_MAX,
                 counts.over_cap);
}

static enum status open_keylog(struct ingest *i)
{
    const struct ingest_options *o = &i->options;
    if (o->keylog_file_count == 0)
        return STATUS_OK;
    i->secrets = secrets_open(i->seed, NULL);
    if (i->secrets == NULL)
        return STATUS_NO_MEMORY;
    for (size_t k = 0; k < o->keylog_file_count; k++) {
        enum status status = secrets_add_file(i->secrets, o->keylog_files[k]);
        if (status == STATUS_IO)
            return fail(i, status, "--keylog %s: %s", o->keylog_files[k], strerror(errno));
        if (status != STATUS_OK)
            return status;
    }
    note_keylog(i);
    return STATUS_OK;
}

static enum status list_files(struct ingest *i)
{
    const struct inputs *in = &i->inputs;
    for (size_t p = 0; p < in->point_count; p++)
        i->file_count += in->points[p].file_count;
    i->points = calloc(in->point_count + 1, sizeof *i->points);
    i->files = calloc(i->file_count + 1, sizeof *i->files);
    if (i->points == NULL || i->files == NULL)
        return STATUS_NO_MEMORY;
    size_t next = 0;
    for (size_t p = 0; p < in->point_count; p++) {
        i->points[p] = (struct run_point){ .input = &in->points[p], .first_file = next };
        for (size_t k = 0; k < in->points[p].file_count; k++, next++) {
            struct stat st;
            i->files[next] = (struct run_file){ .input = &in->points[p].files[k], .point = p };
            i->bytes_total += in->points[p].files[k].size;
            if (stat(in->points[p].files[k].path, &st) == 0 && S_ISREG(st.st_mode))
                i->files[next].mtime_ns =
                    (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
        }
    }
    return STATUS_OK;
}

static enum status find_inputs(struct ingest *i)
{
    enum status status = inputs_find(&i->options.inputs, &i->inputs);
    size_t count = i->inputs.note_count;
    bool is_told = count > 0 && (status == STATUS_USAGE || status == STATUS_IO);
    for (size_t k = 0; k < count - is_told; k++) {
        const struct input_note *n = &i->inputs.notes[k];
        add_note(i, n->is_error, "%s: %s", n->path, n->text);
        i->result.files_unreadable += n->is_error;
    }
    if (is_told)
        return fail(i, status, "%s: %s", i->inputs.notes[count - 1].path,
                    i->inputs.notes[count - 1].text);
    if (status != STATUS_OK)
        return fail(i, status, "cannot list the captures");
    return list_files(i);
}

static enum status open_privacy(struct ingest *i)
{
    struct text error = { 0 };
    char *key_made = NULL;
    enum status status = setting_open(i->store, i->options.database, &i->options.privacy,
                                      &i->privacy, &key_made, &error);
    if (status != STATUS_OK)
        fail(i, status, "%s", text_string(&error));
    if (key_made != NULL)
        add_note(i, false,
                 "%s: made a key for the hashes; who has it can try out addresses and names, and"
                 " whoever is to compare hashes of other machines needs the same",
                 key_made);
    free(key_made);
    text_done(&error);
    if (status == STATUS_OK && i->privacy.sni != SHOWN_FULL) {
        i->privacy.rules = &i->rules;
        status = store_failed(i, store_read_rules(i->store, &i->rules));
    }
    return status;
}

enum status ingest_open(const struct ingest_options *options, struct ingest **ret_ingest)
{
    struct ingest *i = calloc(1, sizeof *i);
    if (i == NULL)
        return STATUS_NO_MEMORY;
    *ret_ingest = i;
    i->options = *options;
    i->doing = "reading";
    i->first_start_ns = INT64_MAX;
    i->last_start_ns = INT64_MIN;
    i->seed = hash_random_seed();
    enum status status = find_inputs(i);
    if (status == STATUS_OK)
        status = open_places(i);
    if (status == STATUS_OK)
        status = open_keylog(i);
    if (status == STATUS_OK && i->file_count == 0)
        return fail(i, STATUS_REFUSED,
                    "no captures found: name pcap or pcapng files, directories "
                    "that hold some, or - for standard input");
    if (status == STATUS_OK && !options->no_labels)
        status = labeler_open(&i->labeler);
    if (status == STATUS_OK) {
        status = store_open(options->database, &i->store);
        if (status != STATUS_OK && i->store != NULL)
            return store_failed(i, status);
    }
    return status == STATUS_OK ? open_privacy(i) : status;
}

static void free_point(struct run_point *p)
{
    stage_close(p->stage);
    stage_close(p->open);
    continuation_done(&p->continuation);
    half_opens_close(p->half_opens);
    neighbours_close(p->neighbours);
    roles_close(p->roles);
    p->stage = NULL;
    p->open = NULL;
    p->half_opens = NULL;
    p->neighbours = NULL;
    p->roles = NULL;
}

static void file_done(struct run_file *f)
{
    text_done(&f->interfaces);
    free(f->damage);
}

void ingest_close(struct ingest *i)
{
    if (i == NULL)
        return;
    analysis_close(i->analysis);
    interleave_close(i->interleave);
    for (size_t p = 0; i->points != NULL && p < i->inputs.point_count; p++)
        free_point(&i->points[p]);
    for (size_t k = 0; k < i->file_count && i->files != NULL; k++)
        file_done(&i->files[k]);
    free(i->points);
    free(i->files);
    inputs_done(&i->inputs);
    profiles_close(i->profiles);
    profiles_close(i->lasting);
    labeler_close(i->labeler);
    places_close(&i->places);
    prefix_set_close(i->local);
    rules_done(&i->rules);
    secrets_close(i->secrets);
    store_close(i->store);
    for (size_t k = 0; k < i->note_count; k++)
        free(i->notes[k].text);
    free(i->notes);
    free(i);
}

/* Known content: repeating an ingest changes nothing */

static bool same_content(const struct ingest *i, size_t point, const char *hex, size_t but)
{
    const struct run_point *p = &i->points[point];
    for (size_t k = p->first_file; k < p->first_file + p->input->file_count; k++)
        if (k != but && (i->files[k].state == FILE_READ || i->files[k].state == FILE_OPEN) &&
            strcmp(i->files[k].content_hex, hex) == 0)
            return true;
    return false;
}

static enum status is_known(struct ingest *i, size_t file, const char *hex, bool *ret_known)
{
    size_t point = i->files[file].point;
    if (same_content(i, point, hex, file)) {
        *ret_known = true;
        return STATUS_OK;
    }
    *ret_known = false;
    if (i->options.replace)
        return STATUS_OK;
    return store_failed(i,
                        store_has_capture(i->store, hex, i->points[point].input->name, ret_known));
}

static bool same_size_in_run(const struct ingest *i, size_t file)
{
    for (size_t k = 0; k < i->file_count; k++)
        if (k != file && i->files[k].point == i->files[file].point &&
            i->files[k].state == FILE_READ && i->files[k].input->size == i->files[file].input->size)
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

/* Hashes the open files of the same point, size and first time, which may be copies of this one. */
static enum status hash_open_copies(struct ingest *i, size_t file, bool *ret_any)
{
    const struct run_file *f = &i->files[file];
    const struct run_point *p = &i->points[f->point];
    *ret_any = false;
    for (size_t k = p->first_file; k < p->first_file + p->input->file_count; k++) {
        struct run_file *other = &i->files[k];
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

/*
 * Whether a file need not be read: it has not changed since it was, or its content is known, which
 * is hashed beforehand only if its size is known.
 */
static enum status known_before_reading(struct ingest *i, size_t file, bool *ret_known)
{
    const struct input_file *input = i->files[file].input;
    const char *point = i->points[i->files[file].point].input->name;
    int64_t mtime_ns = i->files[file].mtime_ns;
    bool has_size = false, has_copies;
    char hex[HASH_HEX_SIZE];
    *ret_known = false;
    if (input->size == 0)
        return STATUS_OK;
    enum status status = STATUS_OK;
    if (!i->options.replace)
        status = store_failed(
            i, store_has_file(i->store, input->path, point, input->size, mtime_ns, ret_known));
    if (status != STATUS_OK || *ret_known)
        return status;
    status = store_failed(i, store_has_size(i->store, input->size, &has_size));
    if (status == STATUS_OK)
        status = hash_open_copies(i, file, &has_copies);
    if (status != STATUS_OK || (!has_size && !has_copies && !same_size_in_run(i, file)))
        return status;
    status = hash_content(input->path, hex);
    return status == STATUS_OK ? is_known(i, file, hex, ret_known) : status;
}

static void skip_known(struct ingest *i, size_t file)
{
    i->files[file].state = FILE_KNOWN;
    i->bytes_done += i->files[file].input->size;
    add_note(i, false, "%s: already ingested, nothing to do", i->files[file].input->path);
}

/* Reading */

static const char *stage_failure(const struct run_point *p)
{
    const char *first = stage_error(p->stage);
    return strcmp(first, "out of memory") != 0 ? first : stage_error(p->open);
}

/* State of open flows holds addresses and names as they are: where these are not to be stored it is
 * not, and no flow goes on in another run. */
static bool keeps_state(const struct ingest *i)
{
    return i->privacy.client_addr == SHOWN_FULL && i->privacy.sni == SHOWN_FULL;
}

static enum status begin_point(struct ingest *i)
{
    struct run_point *p = &i->points[i->point];
    size_t share = i->options.memory_max / 4 / i->inputs.point_count;
    share = share > STAGE_MEMORY_MIN ? share : STAGE_MEMORY_MIN;
    if (p->stage == NULL)
        p->stage = stage_open(share, NULL);
    if (p->open == NULL)
        p->open = stage_open(share, NULL);
    p->half_opens = half_opens_open(i->seed);
    p->neighbours = neighbours_open(i->seed);
    p->roles = roles_open(i->seed);
    if (i->profiles == NULL)
        i->profiles = profiles_open();
    i->interleave = interleave_open();
    i->current = FILE_NONE;
    i->latest_ns = 0;
    i->is_due = i->said_too_many = false;
    if (i->interleave == NULL || p->stage == NULL || p->open == NULL || p->half_opens == NULL ||
        p->neighbours == NULL || p->roles == NULL || i->profiles == NULL)
        return STATUS_NO_MEMORY;
    struct analysis_options options = {
        .stage = p->stage,
        .open = keeps_state(i) ? p->open : NULL,
        .labeler = i->labeler,
        .half_opens = p->half_opens,
        .profiles = i->profiles,
        .neighbours = p->neighbours,
        .roles = p->roles,
        .secrets = i->secrets,
        .privacy = &i->privacy,
        .memory_max = i->options.memory_max / 2,
        .seed = i->seed,
    };
    i->file = p->first_file;
    return analysis_open(&options, &i->analysis);
}

static void note_unnamed(struct ingest *i, const struct run_point *p)
{
    uint64_t flows = analysis_unnamed_flows(i->analysis);
    if (flows > 0)
        add_note(i, false, "%s: more than %d interfaces; %llu flows of others have no interface",
                 p->input->name, INTERFACES_MAX, (unsigned long long)flows);
}

static enum status end_point(struct ingest *i)
{
    struct run_point *p = &i->points[i->point++];
    enum status status = analysis_end(i->analysis);
    note_unnamed(i, p);
    p->continuation.state.len = 0;
    if (status == STATUS_OK && keeps_state(i))
        status = analysis_leave_point(i->analysis, &p->continuation.state);
    analysis_close(i->analysis);
    i->analysis = NULL;
    interleave_close(i->interleave);
    i->interleave = NULL;
    p->complete = status == STATUS_OK;
    for (size_t k = p->first_file; k < p->first_file + p->input->file_count; k++)
        p->has_rows |= p->complete && i->files[k].state == FILE_READ;
    return status == STATUS_IO ? fail(i, status, "%s", stage_failure(p)) : status;
}

/* Before the first file of a point that is not known: goes on where the last run stopped. */
static enum status resume_point(struct ingest *i)
{
    struct run_point *p = &i->points[i->point];
    struct continuation *c = &p->continuation;
    if (p->is_resumed)
        return STATUS_OK;
    p->is_resumed = true;
    enum status status = store_failed(i, continuation_find(c, i->store, p->input));
    if (i->options.replace)
        return status;
    if (status == STATUS_OK)
        status = store_failed(i, continuation_resume(c, i->store, i->analysis));
    if (status == STATUS_OK && c->unreadable > 0)
        add_note(i, true,
                 "%s: %zu flows that were open cannot be completed: another version of firstflight "
                 "kept them; --replace reads the point again",
                 p->input->name, c->unreadable);
    return status;
}

/* Starts a point again without a file that turned out to be known only when it had been read. */
static void restart_point(struct ingest *i)
{
    struct run_point *p = &i->points[i->point];
    analysis_close(i->analysis);
    i->analysis = NULL;
    interleave_close(i->interleave);
    i->interleave = NULL;
    stage_clear(p->stage);
    stage_clear(p->open);
    p->is_resumed = false;
    half_opens_close(p->half_opens);
    neighbours_close(p->neighbours);
    roles_close(p->roles);
    p->half_opens = NULL;
    p->neighbours = NULL;
    p->roles = NULL;
    i->learned_too_much = true;
    for (size_t k = p->first_file; k < p->first_file + p->input->file_count; k++)
        if (i->files[k].state == FILE_READ || i->files[k].state == FILE_OPEN)
            i->files[k].state = FILE_PENDING;
}

/* Frames are counted as dropped of the file that they are of. */
static void switch_file(struct ingest *i, size_t file)
{
    if (i->current != FILE_NONE)
        drop_counts_add(&i->files[i->current].drops, analysis_drops(i->analysis));
    i->current = file;
    if (file != FILE_NONE)
        analysis_begin_file(i->analysis, (uint32_t)file);
}

static void note_too_many(struct ingest *i, const struct run_file *f)
{
    bool is_late =
        f->input->first_at_ns != 0 && f->input->first_at_ns < i->latest_ns - FRAME_LATE_MAX_NS;
    if (is_late && !i->said_too_many)
        add_note(i, true,
                 "%s: its packets come too late, since more than %d files of one capture "
                 "point overlap in time",
                 f->input->path, INTERLEAVED_MAX);
    i->said_too_many |= is_late;
}

/* Finds what an earlier run has read of a file that has grown since. */
static enum status find_begun(struct ingest *i, struct run_file *f)
{
    struct hash128 hash;
    char hex[HASH_HEX_SIZE];
    f->begun = (struct begun_capture){ 0 };
    if (i->options.replace || f->input->size == 0 || f->input->first_at_ns == 0)
        return STATUS_OK;
    enum status status = store_failed(i, store_find_begun(i->store, i->points[f->point].input->name,
                                                          f->input->first_at_ns, &f->begun));
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
static bool is_too_old(const struct ingest *i, const struct run_file *f)
{
    const struct continuation *c = &i->points[f->point].continuation;
    int64_t begin_ns = f->begun.capture_id != 0 ? f->begun.last_ns : f->input->first_at_ns;
    return !i->options.replace && begin_ns != 0 && c->until_ns != 0 &&
           c->until_ns - begin_ns > OLDER_MAX_NS;
}

static void refuse_older(struct ingest *i, struct run_file *f)
{
    f->state = FILE_UNREADABLE;
    i->result.files_refused++;
    i->bytes_done += f->input->size;
    add_note(i, true,
             "%s: left out: older than what has been read of its capture point; "
             "ingest all files of the point again with --replace",
             f->input->path);
}

static enum status open_file(struct ingest *i, size_t file)
{
    struct run_file *f = &i->files[file];
    struct capture *capture = NULL;
    enum status status = capture_open(f->input->path, i->options.filter, &capture);
    if (status == STATUS_OK)
        status = interleave_add(i->interleave, capture, file);
    if (status == STATUS_OK) {
        note_too_many(i, f);
        f->state = FILE_OPEN;
        f->secrets_read = 0;
        f->passed = 0;
        f->drops = (struct drop_counts){ 0 };
        return STATUS_OK;
    }
    if (status == STATUS_USAGE)
        (void)fail(i, status, "%s", capture_error(capture));
    else if (status != STATUS_NO_MEMORY)
        add_note(i, true, "%s", capture_error(capture));
    capture_close(capture);
    if (status == STATUS_NO_MEMORY || status == STATUS_USAGE)
        return status;
    i->result.files_unreadable++;
    f->state = FILE_UNREADABLE;
    return STATUS_OK;
}

/* Opens the next file, unless it need not or cannot be read. */
static enum status begin_file(struct ingest *i)
{
    size_t file = i->file++;
    struct run_file *f = &i->files[file];
    bool known;
    enum status status = known_before_reading(i, file, &known);
    if (status != STATUS_OK)
        return status;
    if (known) {
        skip_known(i, file);
        return STATUS_OK;
    }
    status = resume_point(i);
    if (status == STATUS_OK)
        status = find_begun(i, f);
    if (status != STATUS_OK)
        return status;
    if (is_too_old(i, f)) {
        refuse_older(i, f);
        return STATUS_OK;
    }
    return open_file(i, file);
}

static void note_disorder(struct ingest *i, const struct run_file *f)
{
    const struct disorder *d = &f->disorder;
    if (d->steps > 0)
        add_note(i, false,
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

static void note_how_it_ended(struct ingest *i, struct run_file *f, const struct capture *capture,
                              enum status reading)
{
    f->is_growing = f->input->size > 0 && file_is_growing(f->input->path, f->input->size);
    free(f->damage);
    f->damage = reading == STATUS_END ? NULL : strdup(capture_reason(capture));
    if (f->is_growing)
        add_note(i, false, "%s: still being written; the next run reads on where this one stopped",
                 f->input->path);
    else if (reading != STATUS_END)
        add_note(i, true, "%s (what could be read is used)", capture_error(capture));
}

static enum status end_file(struct ingest *i, size_t file, enum status reading)
{
    struct run_file *f = &i->files[file];
    const struct order *order = interleave_find(i->interleave, file);
    const struct capture *capture = order_capture(order);
    bool known;
    if (i->current == file)
        switch_file(i, FILE_NONE);
    f->info = capture_info(capture);
    f->disorder = order_found(order);
    list_interfaces(capture, &f->interfaces);
    hex_text((struct bytes){ f->info.content.octet, sizeof f->info.content.octet }, f->content_hex);
    note_how_it_ended(i, f, capture, reading);
    interleave_remove(i->interleave, file);
    enum status status = is_known(i, file, f->content_hex, &known);
    if (status != STATUS_OK)
        return status;
    if (known) {
        skip_known(i, file);
        restart_point(i);
        return STATUS_OK;
    }
    note_disorder(i, f);
    f->state = FILE_READ;
    i->packets += f->info.packets;
    i->bytes_done += f->input->size;
    return STATUS_OK;
}

/* Passes on the key log lines that a capture brought since its last packet. */
static enum status read_secrets(struct ingest *i, size_t file)
{
    struct bytes all = capture_secrets(order_capture(interleave_find(i->interleave, file)));
    size_t *read = &i->files[file].secrets_read;
    if (all.len <= *read)
        return STATUS_OK;
    struct bytes added = bytes_after(all, *read);
    *read = all.len;
    return analysis_secrets(i->analysis, added);
}

/* Whether an earlier run had that frame of a file that has grown since. A filter gives fewer frames
 * than are numbered, so these are counted. */
static bool was_read_before(const struct ingest *i, struct run_file *f, const struct frame *frame)
{
    if (i->options.filter == NULL)
        return frame->number <= f->begun.packets;
    bool before = f->passed < f->begun.packets;
    f->passed += before;
    return before;
}

static enum status take_frame(struct ingest *i, const struct frame *frame, size_t file)
{
    if (was_read_before(i, &i->files[file], frame))
        return STATUS_OK;
    if (file != i->current)
        switch_file(i, file);
    if (frame->at_ns > i->latest_ns)
        i->latest_ns = frame->at_ns;
    enum status status = read_secrets(i, file);
    if (status == STATUS_OK)
        status = analysis_frame(i->analysis, frame);
    if (status == STATUS_IO)
        return fail(i, status, "%s", stage_failure(&i->points[i->point]));
    return status;
}

/* When the next file of the point must be open: a little before it starts, some frames are late. */
static int64_t next_start(const struct ingest *i, size_t end)
{
    if (i->file == end || interleave_count(i->interleave) == INTERLEAVED_MAX)
        return INT64_MAX;
    return i->files[i->file].input->first_at_ns - FRAME_LATE_MAX_NS;
}

static enum status read_frames(struct ingest *i, size_t end)
{
    struct frame frame;
    size_t file;
    int64_t until_ns = next_start(i, end);
    for (unsigned n = 0; n < FRAMES_PER_STEP; n++) {
        enum status reading = interleave_next(i->interleave, until_ns, &frame, &file);
        i->is_due = reading == STATUS_REFUSED;
        if (reading == STATUS_NO_MEMORY)
            return reading;
        if (i->is_due)
            return STATUS_OK;
        if (reading != STATUS_OK)
            return end_file(i, file, reading);
        enum status status = take_frame(i, &frame, file);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

enum status ingest_step(struct ingest *i, bool *ret_done)
{
    *ret_done = i->point == i->inputs.point_count;
    if (*ret_done)
        return STATUS_OK;
    if (i->analysis == NULL)
        return begin_point(i);
    const struct run_point *p = &i->points[i->point];
    size_t end = p->first_file + p->input->file_count;
    while (i->file < end && i->files[i->file].state != FILE_PENDING)
        i->file++; /* known ones, when the point was started again */
    bool is_any_open = interleave_count(i->interleave) > 0;
    if (i->file < end && (i->is_due || !is_any_open)) {
        i->is_due = false;
        return begin_file(i);
    }
    return is_any_open ? read_frames(i, end) : end_point(i);
}

/* Judging and writing */

static const char *point_region(const struct ingest *i, const struct capture_point *point)
{
    return places_site_region(&i->places, point->labels.site, point->labels.region);
}

static struct row_text row_text_of(const char *text)
{
    return (struct row_text){ text, text == NULL ? 0 : strlen(text) };
}

/* The file of a flow's first packet, which may be one of an earlier run. */
static int64_t capture_of(const struct ingest *i, const struct run_point *p, const struct facts *f,
                          const struct stage_mark *mark)
{
    if (f->file != FILE_OF_EARLIER_RUN)
        return i->files[f->file].capture_id;
    return mark->resumed != 0 ? p->continuation.flows[mark->resumed - 1].capture_id
                              : p->continuation.capture_id;
}

static struct row_context context_of(const struct ingest *i, const struct run_point *p,
                                     const struct facts *f, const struct stage_mark *mark)
{
    return (struct row_context){
        .point = p->input->name,
        .labels = &p->input->labels,
        .clients = i->places.clients,
        .capture_region = point_region(i, p->input),
        .local = i->local,
        .privacy = &i->privacy,
        .roles = p->roles,
        .capture_id = capture_of(i, p, f, mark),
        .interface = mark->interface,
    };
}

/* Whether the database has a flow already, from captures that were read before. */
static enum status is_known_flow(struct ingest *i, const struct run_point *p, const struct facts *f,
                                 const struct stage_mark *mark, bool *ret_known)
{
    *ret_known = false;
    if (i->last_known_flow == 0 || i->options.replace || mark->resumed != 0 || mark->has_row)
        return STATUS_OK;
    char uid[FLOW_UID_SIZE];
    int64_t flow_id;
    struct row_context context = context_of(i, p, f, mark);
    row_flow_uid(f, &context, uid);
    enum status status = store_failed(i, store_find_flow(i->store, row_text_of(uid), &flow_id));
    *ret_known = status == STATUS_OK && flow_id != 0;
    return status;
}

/* Learns from those staged flows of a point that stay open, or from those that do not. */
static enum status learn_point(struct ingest *i, const struct run_point *p, bool open,
                               struct profiles *into)
{
    struct bytes item;
    enum status status;
    stage_rewind(p->stage);
    while ((status = stage_next(p->stage, &item)) == STATUS_OK) {
        struct record records[RECORDS_MAX];
        struct facts f;
        struct stage_mark mark = stage_mark_of(item);
        bool known;
        if (mark.is_open != open)
            continue;
        if (!facts_unpack(item, records, &f))
            return fail(i, STATUS_IO, "temporary file damaged: facts of a flow cannot be read");
        status = is_known_flow(i, p, &f, &mark, &known);
        if (status == STATUS_OK && !known)
            status = profiles_learn(into, &f);
        if (status != STATUS_OK)
            return status;
    }
    return status == STATUS_END ? STATUS_OK : fail(i, status, "%s", stage_error(p->stage));
}

static enum status learn_points(struct ingest *i, bool open, struct profiles *into)
{
    enum status status = STATUS_OK;
    for (size_t p = 0; p < i->inputs.point_count && status == STATUS_OK; p++)
        if (i->points[p].has_rows)
            status = learn_point(i, &i->points[p], open, into);
    return status;
}

/* Learns from the flows that other runs left open and this one did not touch. */
static enum status learn_open_flows(struct ingest *i)
{
    struct open_flow flow;
    enum status status;
    while ((status = store_next_open_state(i->store, &flow)) == STATUS_OK) {
        struct facts f;
        if (flow.version != CARRY_VERSION || !carry_flow_facts(flow.state, &f))
            continue;
        status = profiles_learn(i->profiles, &f);
        facts_done(&f);
        if (status != STATUS_OK)
            return status;
    }
    return status == STATUS_END ? STATUS_OK : store_failed(i, status);
}

/* Profiles of the flows that are written, when others, or some twice, were learned from as well. */
static enum status learn_anew(struct ingest *i)
{
    profiles_close(i->lasting);
    i->lasting = profiles_open();
    return i->lasting == NULL ? STATUS_NO_MEMORY : learn_points(i, false, i->lasting);
}

/* Joins what the run learned of servers with what the database knows of them. */
static enum status settle_profiles(struct ingest *i)
{
    enum status status = STATUS_OK;
    i->lasting = i->profiles;
    i->profiles = profiles_open();
    if (i->profiles == NULL)
        return STATUS_NO_MEMORY;
    if (i->learned_too_much || i->last_known_flow > 0)
        status = learn_anew(i);
    if (status == STATUS_OK)
        status = store_failed(i, i->options.replace ? knowledge_learn(i->store, i->lasting)
                                                    : knowledge_load(i->store, i->lasting));
    if (status == STATUS_OK)
        status = profiles_merge_all(i->profiles, i->lasting);
    if (status == STATUS_OK)
        status = learn_points(i, true, i->profiles);
    if (status == STATUS_OK)
        status = learn_open_flows(i);
    profiles_settle(i->profiles);
    profiles_settle(i->lasting);
    return status;
}

static struct row_integer row_integer_of(int64_t value, bool has)
{
    return (struct row_integer){ has, has ? value : 0 };
}

/* "EN10MB,RAW": of the frames, or of the file where it holds none. */
static const char *link_types_text(const struct capture_info *info, char *buffer, size_t size)
{
    size_t len = 0;
    if (info->link_type_count == 0)
        return capture_link_type_name(info->link_type);
    for (unsigned k = 0; k < info->link_type_count && len < size; k++)
        len += (size_t)snprintf(buffer + len, size - len, "%s%s", k == 0 ? "" : ",",
                                capture_link_type_name(info->link_types[k]));
    return buffer;
}

static enum status write_capture(struct ingest *i, struct run_file *f, const char *now)
{
    char link_types[256];
    const struct capture_point *point = i->points[f->point].input;
    bool has_packets = f->info.first_at_ns != 0;
    struct capture_row row = {
        .path = row_text_of(f->input->path),
        .point = row_text_of(point->name),
        .content_hash = row_text_of(f->content_hex),
        .capture_id = row_integer_of(f->begun.capture_id, f->begun.capture_id != 0),
        .content_len = row_integer_of((int64_t)f->info.content_len, true),
        .file_begin_epoch_ns = row_integer_of(f->input->first_at_ns, f->input->first_at_ns != 0),
        .file_size = row_integer_of((int64_t)f->input->size, true),
        .file_mtime_ns = row_integer_of(f->mtime_ns, f->mtime_ns != 0),
        .format = row_text_of(f->info.format),
        .link_types = row_text_of(link_types_text(&f->info, link_types, sizeof link_types)),
        .snaplen = row_integer_of(f->info.snaplen, f->info.snaplen != 0),
        .packets = row_integer_of((int64_t)f->info.packets, true),
        .bytes = row_integer_of((int64_t)f->info.bytes, true),
        .kernel_drops = row_integer_of(f->info.kernel_drops, f->info.kernel_drops >= 0),
        .first_packet_epoch_ns = row_integer_of(f->info.first_at_ns, has_packets),
        .last_packet_epoch_ns = row_integer_of(f->info.last_at_ns, has_packets),
        .site = row_text_of(point->labels.site),
        .host = row_text_of(point->labels.host),
        .region = row_text_of(point_region(i, point)),
        .labels = row_text_of(point->labels.other),
        .interfaces = row_text_of(f->interfaces.len > 0 ? f->interfaces.at : NULL),
        .late_packets = row_integer_of((int64_t)f->disorder.late, true),
        .clock_steps = row_integer_of((int64_t)f->disorder.steps, true),
        .damage = row_text_of(f->damage),
        .ingested_at = row_text_of(now),
        .program_version = row_text_of(FIRSTFLIGHT_VERSION),
    };
    return store_failed(i, store_capture(i->store, &row, &f->drops, &f->capture_id));
}

/* Whether another process wrote one of the point's files while this one read. */
static enum status written_meanwhile(struct ingest *i, const struct run_point *p, bool *ret_known)
{
    *ret_known = false;
    for (size_t k = p->first_file; k < p->first_file + p->input->file_count; k++) {
        const struct run_file *f = &i->files[k];
        if (f->state != FILE_READ)
            continue;
        enum status status =
            store_failed(i, store_has_capture(i->store, f->content_hex, p->input->name, ret_known));
        if (status != STATUS_OK || *ret_known)
            return status;
    }
    return STATUS_OK;
}

static enum status write_captures(struct ingest *i, const struct run_point *p)
{
    char now[32];
    time_t seconds = time(NULL);
    struct tm utc;
    strftime(now, sizeof now, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&seconds, &utc));
    for (size_t k = p->first_file; k < p->first_file + p->input->file_count; k++) {
        struct run_file *f = &i->files[k];
        if (f->state != FILE_READ)
            continue;
        enum status status = write_capture(i, f, now);
        if (status != STATUS_OK)
            return status;
        i->result.files_read++;
        i->result.files_damaged += f->damage != NULL && !f->is_growing;
        i->result.packets += f->info.packets - f->begun.packets;
    }
    return STATUS_OK;
}

/* Judges a flow and fills the row and JSON of a job. */
static enum status judge_flow(struct ingest *i, const struct facts *f, const struct run_point *p,
                              const struct stage_mark *mark, struct flow_job *job)
{
    int64_t neighbour_ns = client_rtt_by_ack(f) != DURATION_NONE
                               ? DURATION_NONE
                               : neighbours_least(p->neighbours, &f->client.address, f->start_ns);
    struct verdict verdict = judge(f, profiles_find(i->profiles, f));
    if (f->keys <= KEYS_FAILED)
        i->keyed[f->keys]++;
    struct path path = path_of(f, neighbour_ns);
    struct timing timing = timing_of(f, &verdict, &path);
    struct row_context context = context_of(i, p, f, mark);
    i->any_abandoned |= verdict.outcome == OUTCOME_ABANDONED;
    if (f->start_ns < i->first_start_ns)
        i->first_start_ns = f->start_ns;
    if (f->start_ns > i->last_start_ns)
        i->last_start_ns = f->start_ns;
    row_fill(f, &verdict, &path, &timing, &context, &job->space, &job->row);
    job->json.len = 0;
    if (!f->tls || i->options.no_facts)
        return STATUS_OK;
    struct facts stored = privacy_stored_facts(&i->privacy, f);
    return facts_to_json(&stored, &job->json);
}

/* What the row of a staged flow replaces, and the state to keep with it: the next that waits. */
static enum status link_flow(struct ingest *i, struct run_point *p, const struct stage_mark *mark,
                             struct flow_job *job)
{
    const struct continuation *c = &p->continuation;
    struct bytes state = { 0 };
    job->replaces = mark->resumed != 0 ? c->flows[mark->resumed - 1].flow_id : 0;
    job->may_have_row = (mark->has_row || i->options.replace) && i->last_known_flow > 0;
    job->is_open = mark->is_open;
    job->point_id = c->point_id;
    job->state.len = 0;
    if (!mark->is_open)
        return STATUS_OK;
    if (stage_next(p->open, &state) != STATUS_OK)
        return fail(i, STATUS_IO, "%s", stage_error(p->open));
    return buffer_add(&job->state, state) ? STATUS_OK : STATUS_NO_MEMORY;
}

/* Writes one staged flow; STATUS_END when the writer has failed. */
static enum status write_flow(struct ingest *i, struct bytes item, struct run_point *p,
                              struct writer *writer)
{
    struct flow_job *job = writer_next(writer);
    struct record records[RECORDS_MAX];
    struct facts f;
    if (job == NULL)
        return STATUS_END;
    job->packed.len = 0;
    if (!buffer_add(&job->packed, item))
        return STATUS_NO_MEMORY;
    struct bytes kept = { job->packed.at, job->packed.len };
    struct stage_mark mark = stage_mark_of(kept);
    if (!facts_unpack(kept, records, &f))
        return fail(i, STATUS_IO, "temporary file damaged: facts of a flow cannot be read");
    enum status status = link_flow(i, p, &mark, job);
    if (status == STATUS_OK)
        status = judge_flow(i, &f, p, &mark, job);
    if (status == STATUS_OK)
        writer_submit(writer);
    return status;
}

static enum status write_flows(struct ingest *i, struct run_point *p)
{
    struct writer *writer = writer_open(i->store);
    struct bytes item;
    struct writer_counts counts;
    enum status status = writer == NULL ? STATUS_NO_MEMORY : STATUS_OK;
    if (writer == NULL)
        return status;
    stage_rewind(p->stage);
    stage_rewind(p->open);
    while (status == STATUS_OK && (status = stage_next(p->stage, &item)) == STATUS_OK)
        status = write_flow(i, item, p, writer);
    if (status == STATUS_IO && i->error[0] == '\0')
        fail(i, status, "%s", stage_error(p->stage));
    enum status written = store_failed(i, writer_close(writer, &counts));
    i->result.flows_added += counts.added;
    i->result.flows_continued += counts.replaced;
    i->result.flows_known += counts.known;
    return status != STATUS_END ? status : written;
}

/* A count that an earlier run began moves to this one's file. */
static enum status write_half_open(struct ingest *i, const struct run_point *p, int64_t capture_id,
                                   const struct half_open_count *count)
{
    char server[ADDRESS_TEXT_SIZE];
    struct half_open_row row = {
        .capture_id = p->continuation.capture_id,
        .server_ip = address_text(&count->server.address, server),
        .server_port = count->server.port,
        .second_epoch = count->second,
    };
    enum status status = count->is_carried ? store_half_open(i->store, &row) : STATUS_OK;
    row.capture_id = capture_id;
    row.syns = (int64_t)count->flows;
    row.client_prefixes = half_open_prefixes(count);
    if (status == STATUS_OK && count->flows > 0)
        status = store_half_open(i->store, &row);
    return store_failed(i, status);
}

static enum status write_half_opens(struct ingest *i, const struct run_point *p, int64_t capture_id)
{
    size_t count;
    const struct half_open_count *all = half_opens_all(p->half_opens, &count);
    enum status status = STATUS_OK;
    for (size_t k = 0; k < count && status == STATUS_OK; k++)
        status = write_half_open(i, p, capture_id, &all[k]);
    return status;
}

static enum status write_point(struct ingest *i, struct run_point *p)
{
    int64_t capture_id = 0, until_ns = 0;
    enum status status = write_captures(i, p);
    for (size_t k = p->first_file; k < p->first_file + p->input->file_count; k++) {
        const struct run_file *f = &i->files[k];
        if (f->state != FILE_READ)
            continue;
        capture_id = capture_id == 0 ? f->capture_id : capture_id;
        until_ns = f->info.last_at_ns > until_ns ? f->info.last_at_ns : until_ns;
    }
    if (status == STATUS_OK)
        status = write_half_opens(i, p, capture_id);
    if (status == STATUS_OK)
        status =
            store_failed(i, continuation_keep(&p->continuation, i->store, capture_id, until_ns));
    return status == STATUS_OK ? write_flows(i, p) : status;
}

/* A file that was read under other labels before: all that these have of the place goes too. */
static enum status replace_relabelled(struct ingest *i, const struct run_file *f, const char *point)
{
    int64_t point_id;
    enum status status = store_point_of_content(i->store, f->content_hex, point, &point_id);
    if (status == STATUS_OK && point_id != 0)
        status = store_begin_replacing(i->store, point_id);
    return store_failed(i, status);
}

/* What the database has of a point makes room for what was read anew. */
static enum status replace_point(struct ingest *i, struct run_point *p)
{
    struct continuation *c = &p->continuation;
    enum status status = c->point_id == 0
                             ? STATUS_OK
                             : store_failed(i, store_begin_replacing(i->store, c->point_id));
    c->point_id = c->capture_id = 0;
    c->until_ns = 0;
    for (size_t k = 0; status == STATUS_OK && k < p->input->file_count; k++)
        if (i->files[p->first_file + k].state == FILE_READ)
            status = replace_relabelled(i, &i->files[p->first_file + k], p->input->name);
    return status;
}

/* Points that another process wrote to while this one read are left out; the state of the flows
 * that go on in the others is not needed any more. */
static enum status prepare_point(struct ingest *i, struct run_point *p)
{
    bool known = false, is_current = true;
    enum status status = i->options.replace ? STATUS_OK : written_meanwhile(i, p, &known);
    if (status == STATUS_OK && !known)
        status =
            store_failed(i, continuation_check(&p->continuation, i->store, p->input, &is_current));
    if (status != STATUS_OK)
        return status;
    if (i->options.replace && is_current)
        return replace_point(i, p);
    if (!known && is_current)
        return store_failed(i, continuation_close_flows(&p->continuation, i->store));
    add_note(i, true, "%s: written by another ingest meanwhile, left out", p->input->name);
    p->has_rows = false;
    i->learned_too_much = true;
    return STATUS_OK;
}

static enum status prepare_points(struct ingest *i)
{
    enum status status = store_failed(i, store_last_flow(i->store, &i->last_known_flow));
    for (size_t p = 0; status == STATUS_OK && p < i->inputs.point_count; p++)
        if (i->points[p].has_rows)
            status = prepare_point(i, &i->points[p]);
    return status;
}

/* What the run taught may decide what earlier runs could not. */
static enum status judge_earlier(struct ingest *i)
{
    struct rejudge_run run = {
        .store = i->store,
        .profiles = i->profiles,
        .up_to_flow_id = i->last_known_flow,
        .memory_max = i->options.memory_max / 4,
    };
    struct changes changes = { 0 };
    struct text error = { 0 };
    enum status status = rejudge_undecided(&run, &changes, &error);
    if (status != STATUS_OK)
        fail(i, status, "%s", text_string(&error));
    i->result.flows_judged_again = changes.judged;
    i->result.flows_changed = changes.flows;
    changes_done(&changes);
    text_done(&error);
    return status;
}

/* Abandoned flows of the run, and earlier ones that a flow of the run may be the retry of. */
static enum status link_retries(struct ingest *i)
{
    static const int64_t BEFORE_NS = INT64_C(600) * 1000000000; /* longer than one takes to fail */
    uint64_t changed;
    if (i->first_start_ns > i->last_start_ns || (!i->any_abandoned && i->last_known_flow == 0))
        return STATUS_OK;
    return store_failed(
        i, store_link_retries(i->store, i->first_start_ns - BEFORE_NS, i->last_start_ns, &changed));
}

static enum status keep_privacy(struct ingest *i)
{
    struct text error = { 0 };
    enum status status = setting_keep(i->store, &i->privacy, &error);
    if (status != STATUS_OK)
        fail(i, status, "%s", text_string(&error));
    text_done(&error);
    return status;
}

static enum status write_all(struct ingest *i)
{
    enum status status = store_failed(i, store_begin(i->store));
    if (status == STATUS_OK)
        status = keep_privacy(i);
    if (status == STATUS_OK)
        status = prepare_points(i);
    if (status == STATUS_OK)
        status = settle_profiles(i);
    for (size_t p = 0; status == STATUS_OK && p < i->inputs.point_count; p++)
        if (i->points[p].has_rows)
            status = write_point(i, &i->points[p]);
    if (status == STATUS_OK)
        status = store_failed(i, store_end_replacing(i->store));
    if (status == STATUS_OK && i->last_known_flow > 0)
        status = judge_earlier(i);
    if (status == STATUS_OK)
        status = link_retries(i);
    if (status == STATUS_OK)
        status = store_failed(i, knowledge_keep(i->store, i->lasting));
    if (status == STATUS_OK)
        status = store_failed(i, store_commit(i->store));
    else
        store_rollback(i->store);
    if (status == STATUS_OK) { /* a first load finds flows that came twice only now */
        i->result.flows_added -= store_repeated(i->store);
        i->result.flows_known += store_repeated(i->store);
    }
    return status;
}

static void note_keyed(struct ingest *i)
{
    size_t with_secrets = i->keyed[KEYS_USED] + i->keyed[KEYS_PARTIAL] + i->keyed[KEYS_FAILED];
    if (with_secrets > 0 || i->secrets != NULL)
        add_note(i, false, "secrets for %zu connections: %zu decrypted, %zu partly, %zu not at all",
                 with_secrets, i->keyed[KEYS_USED], i->keyed[KEYS_PARTIAL], i->keyed[KEYS_FAILED]);
}

enum status ingest_finish(struct ingest *i)
{
    i->doing = "judging and writing";
    size_t unread = 0;
    for (size_t p = 0; p < i->inputs.point_count; p++)
        unread += !i->points[p].complete;
    if (unread > 0)
        add_note(i, true,
                 "%zu of %zu capture points were not read to their end and are left out; "
                 "run the same ingest again for them",
                 unread, i->inputs.point_count);
    i->learned_too_much |= unread > 0;
    enum status status = unread < i->inputs.point_count ? write_all(i) : STATUS_OK;
    for (size_t k = 0; k < i->file_count; k++)
        i->result.files_known += i->files[k].state == FILE_KNOWN;
    if (status == STATUS_OK)
        note_keyed(i);
    return status;
}

const struct inputs *ingest_inputs(const struct ingest *i)
{
    return &i->inputs;
}

struct ingest_progress ingest_progress(const struct ingest *i)
{
    struct ingest_progress p = {
        .bytes_done = i->bytes_done,
        .bytes_total = i->bytes_total,
        .packets = i->packets,
        .files_total = i->file_count,
        .doing = i->doing,
    };
    for (size_t k = 0; k < i->file_count; k++)
        p.files_done += i->files[k].state != FILE_PENDING;
    if (i->interleave != NULL) {
        uint64_t bytes, packets;
        interleave_progress(i->interleave, &bytes, &packets);
        p.bytes_done += bytes;
        p.packets += packets;
        p.path = i->current != FILE_NONE ? i->files[i->current].input->path : NULL;
    }
    if (i->analysis != NULL)
        p.flows = analysis_flows(i->analysis);
    return p;
}

struct ingest_result ingest_result(const struct ingest *i)
{
    return i->result;
}

const char *ingest_error(const struct ingest *i)
{
    return i->error[0] != '\0' ? i->error : "out of memory";
}

size_t ingest_note_count(const struct ingest *i)
{
    return i->note_count;
}

const char *ingest_note(const struct ingest *i, size_t index, bool *ret_is_error)
{
    *ret_is_error = i->notes[index].is_error;
    return i->notes[index].text == NULL ? "out of memory" : i->notes[index].text;
}
