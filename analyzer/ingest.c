/* SPDX-License-Identifier: Apache-2.0 */
#include "ingest.h"

#include "carry.h"
#include "continuation.h"
#include "crew.h"
#include "ending.h"
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
#include "store.h"
#include "text.h"
#include "thread.h"
#include "writer.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { STAGE_MEMORY_MIN = 1 << 20 /* of one point, however many there are */ };

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
    pthread_mutex_t store_lock; /* while points are read */
    struct crew *crew;          /* reads them; NULL before the first step */
    uint64_t bytes_total;
    const char *doing;
    /* the outcome */
    struct ingest_result result;
    size_t keyed[KEYS_FAILED + 1]; /* flows by how their secrets did */
    struct notes notes;
    char error[1024];
};

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
        notes_add(&i->notes, false, "--clients: %zu lines could not be read and are left out",
                  regions_bad_lines(i->places.clients));
    return status == STATUS_OK ? open_local(i) : status;
}

static void note_keylog(struct ingest *i)
{
    struct secrets_counts counts = secrets_counts(i->secrets);
    if (counts.kept == 0)
        notes_add(&i->notes, true, "--keylog: no secrets of TLS connections in it");
    if (counts.bad > 0)
        notes_add(&i->notes, false, "--keylog: %zu lines could not be read and are left out",
                  counts.bad);
    if (counts.conflicting > 0)
        notes_add(&i->notes, false,
                  "--keylog: %zu lines say something else than lines before them, which hold",
                  counts.conflicting);
    if (counts.over_cap > 0)
        notes_add(&i->notes, true, "--keylog: more than %d secrets; the last %zu are left out",
                  SECRETS_MAX, counts.over_cap);
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
        i->points[p] = (struct run_point){ .input = &in->points[p],
                                           .files = &i->files[next],
                                           .file_count = in->points[p].file_count,
                                           .first_file = next };
        for (size_t k = 0; k < in->points[p].file_count; k++, next++) {
            struct stat st;
            i->files[next] = (struct run_file){ .input = &in->points[p].files[k] };
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
        notes_add(&i->notes, n->is_error, "%s: %s", n->path, n->text);
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
        notes_add(&i->notes, false,
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
    pthread_mutex_init(&i->store_lock, NULL);
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

void ingest_close(struct ingest *i)
{
    if (i == NULL)
        return;
    crew_close(i->crew);
    for (size_t p = 0; i->points != NULL && i->files != NULL && p < i->inputs.point_count; p++)
        run_point_done(&i->points[p]);
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
    notes_done(&i->notes);
    pthread_mutex_destroy(&i->store_lock);
    free(i);
}

/* Reading */

/* State of open flows holds addresses and names as they are: where these are not to be stored it is
 * not, and no flow goes on in another run. */
static bool keeps_state(const struct ingest *i)
{
    return i->privacy.client_addr == SHOWN_FULL && i->privacy.sni == SHOWN_FULL;
}

unsigned ingest_jobs(const struct ingest *i)
{
    unsigned jobs = i->options.jobs == 0 ? thread_cpus() : i->options.jobs;
    size_t points = i->inputs.point_count;
    return points > 0 && jobs > points ? (unsigned)points : jobs;
}

/*
 * Shares of the memory are by the number of points, never by that of jobs: a flow is evicted, or
 * not, however many are read at once. Of two points, each may use half of what there is for live
 * flows, and the others together the other half (crew.c).
 */
static enum status open_crew(struct ingest *i)
{
    size_t count = i->inputs.point_count, memory = i->options.memory_max;
    size_t share = memory / 32 / count;
    struct crew_options options = {
        .reading = {
            .filter = i->options.filter,
            .replace = i->options.replace,
            .keeps_state = keeps_state(i),
            .stage_memory = share > STAGE_MEMORY_MIN ? share : STAGE_MEMORY_MIN,
            .live_memory = count == 1 ? memory / 2 : memory / 4,
            .seed = i->seed,
            .secrets = i->secrets,
            .privacy = &i->privacy,
            .store = i->store,
            .store_lock = &i->store_lock,
        },
        .points = i->points,
        .point_count = count,
        .jobs = ingest_jobs(i),
        .labeler = i->labeler,
        .live_memory = memory / 4,
    };
    i->crew = crew_open(&options);
    return i->crew == NULL ? STATUS_NO_MEMORY : STATUS_OK;
}

enum status ingest_step(struct ingest *i, bool *ret_done)
{
    enum status status = i->crew == NULL ? open_crew(i) : STATUS_OK;
    *ret_done = false;
    if (status == STATUS_OK)
        status = crew_step(i->crew, ret_done);
    if (status != STATUS_OK && i->crew != NULL && crew_error(i->crew)[0] != '\0')
        (void)fail(i, status, "%s", crew_error(i->crew));
    return status;
}

/* Takes what the reading of the points left, in their order. */
static enum status end_reading(struct ingest *i)
{
    if (i->crew != NULL) {
        crew_stop(i->crew);
        i->profiles = crew_take_profiles(i->crew);
    }
    for (size_t p = 0; p < i->inputs.point_count; p++) {
        struct run_point *point = &i->points[p];
        notes_move(&i->notes, &point->notes);
        i->result.files_unreadable += point->files_unreadable;
        i->result.files_refused += point->files_refused;
        profiles_close(point->profiles); /* of a point that was not read to its end */
        point->profiles = NULL;
    }
    if (i->profiles == NULL)
        i->profiles = profiles_open();
    return i->profiles == NULL ? STATUS_NO_MEMORY : STATUS_OK;
}

/* Judging and writing */

static const char *point_region(const struct ingest *i, const struct capture_point *point)
{
    return places_site_region(&i->places, point->labels.site, point->labels.region);
}

static struct row_text row_text_of(const char *text)
{
    return (struct row_text){ .at = text, .len = text == NULL ? 0 : strlen(text) };
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

static enum status write_capture(struct ingest *i, const struct capture_point *point,
                                 struct run_file *f, const char *now)
{
    char link_types[256];
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
    for (size_t k = 0; k < p->file_count; k++) {
        const struct run_file *f = &p->files[k];
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
    for (size_t k = 0; k < p->file_count; k++) {
        struct run_file *f = &p->files[k];
        if (f->state != FILE_READ)
            continue;
        enum status status = write_capture(i, p->input, f, now);
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
    for (size_t k = 0; k < p->file_count; k++) {
        const struct run_file *f = &p->files[k];
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
    notes_add(&i->notes, true, "%s: written by another ingest meanwhile, left out", p->input->name);
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
        notes_add(&i->notes, false,
                  "secrets for %zu connections: %zu decrypted, %zu partly, %zu not at all",
                  with_secrets, i->keyed[KEYS_USED], i->keyed[KEYS_PARTIAL], i->keyed[KEYS_FAILED]);
}

/*
 * After an interruption: points behind one that was not read to its end are left out with it, so
 * that what there is does not depend on which of them were read at the same time. Says how many.
 */
static size_t leave_out_unread(struct ingest *i)
{
    size_t count = i->inputs.point_count, whole = 0;
    while (whole < count && i->points[whole].complete)
        whole++;
    for (size_t p = whole; p < count; p++)
        i->points[p].has_rows = false;
    i->learned_too_much |= whole < count;
    return count - whole;
}

enum status ingest_finish(struct ingest *i)
{
    enum status status = end_reading(i);
    i->doing = "judging and writing";
    if (status != STATUS_OK)
        return status;
    size_t unread = leave_out_unread(i);
    if (unread > 0)
        notes_add(&i->notes, true,
                  "%zu of %zu capture points were not read to their end, or come behind one that "
                  "was not, and are left out; run the same ingest again for them",
                  unread, i->inputs.point_count);
    if (unread < i->inputs.point_count)
        status = write_all(i);
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
        .bytes_total = i->bytes_total,
        .files_total = i->file_count,
        .doing = i->doing,
    };
    if (i->crew == NULL)
        return p;
    struct crew_progress reading = crew_progress(i->crew);
    p.bytes_done = reading.bytes;
    p.packets = reading.packets;
    p.flows = reading.flows;
    p.files_done = reading.files;
    p.path = reading.path;
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

const struct notes *ingest_notes(const struct ingest *i)
{
    return &i->notes;
}
