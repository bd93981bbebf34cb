/* SPDX-License-Identifier: Apache-2.0 */
#include "survey.h"

#include "capture.h"
#include "packet.h"

#include <stdio.h>

enum {
    STAGE_MEMORY = 16 << 20,
    FLOW_MEMORY = 256 << 20,
    MICROSECOND_NS = 1000,
    PACKETS_PER_LOOK = 4096, /* at the clock */
};

/* What an analysis needs, made anew where a part of the captures is not read. */
struct tools {
    struct stage *stage;
    struct half_opens *half_opens;
    struct neighbours *neighbours;
    struct profiles *profiles;
    struct analysis *analysis;
};

static void tools_done(struct tools *t)
{
    analysis_close(t->analysis);
    stage_close(t->stage);
    half_opens_close(t->half_opens);
    neighbours_close(t->neighbours);
    profiles_close(t->profiles);
    *t = (struct tools){ 0 };
}

static enum status tools_open(struct tools *t)
{
    uint64_t seed = hash_random_seed();
    t->stage = stage_open(STAGE_MEMORY, NULL);
    t->half_opens = half_opens_open(seed);
    t->neighbours = neighbours_open(seed);
    t->profiles = profiles_open();
    if (t->stage == NULL || t->half_opens == NULL || t->neighbours == NULL || t->profiles == NULL)
        return STATUS_NO_MEMORY;
    struct analysis_options options = {
        .stage = t->stage,
        .half_opens = t->half_opens,
        .profiles = t->profiles,
        .neighbours = t->neighbours,
        .memory_max = FLOW_MEMORY,
        .seed = seed,
    };
    return analysis_open(&options, &t->analysis);
}

/* ---- frames ---- */

static void note_unknown_link(struct survey *s, int link_type)
{
    const char *name = capture_link_type_name(link_type);
    if (strstr(text_string(&s->unknown_links), name) != NULL)
        return;
    text_addf(&s->unknown_links, "%s%s", s->unknown_links.len > 0 ? ", " : "", name);
}

static void count_frame(struct survey *s, const struct frame *frame, int64_t *latest_ns)
{
    s->packets++;
    s->packets_joined += frame->wire_len > SURVEY_JOINED_LEN;
    if (frame->wire_len > frame->data.len) {
        s->packets_cut++;
        s->cut_len = frame->data.len > s->cut_len ? frame->data.len : s->cut_len;
    }
    if (!packet_link_type_known(frame->link_type))
        note_unknown_link(s, frame->link_type);
    if (frame->at_ns == FRAME_TIME_INVALID)
        return;
    s->fine_times += frame->at_ns % MICROSECOND_NS != 0;
    if (s->first_ns == 0 || frame->at_ns < s->first_ns)
        s->first_ns = frame->at_ns;
    if (frame->at_ns > s->last_ns)
        s->last_ns = frame->at_ns;
    int64_t back_ns = *latest_ns - frame->at_ns;
    s->steps_back += back_ns >= SURVEY_BACK_NS;
    if (back_ns > s->step_back_ns)
        s->step_back_ns = back_ns;
    if (frame->at_ns > *latest_ns)
        *latest_ns = frame->at_ns;
}

/* ---- flows ---- */

static void count_hello(struct survey *s, const struct facts *f)
{
    s->hellos++;
    s->hellos_cut += !f->client_hello_complete && f->truncated > 0;
    s->hellos_without_syn += !f->syn_seen;
    s->hellos_answered += f->server_hello_seen;
    s->hellos_with_rtt += client_rtt_by_ack(f) != DURATION_NONE;
    s->hellos_with_data += f->server_hello_seen &&
                           f->last_payload_ns[CLIENT] > f->server_hello_ns &&
                           f->last_payload_ns[SERVER] > f->server_hello_ns;
    s->ports[f->server.port]++;
}

static void count_flow(struct survey *s, const struct facts *f)
{
    s->duplicates += f->duplicates;
    s->tunnel |= f->tunnel;
    if (f->bytes[CLIENT] + f->bytes[SERVER] == 0)
        return;
    s->flows++;
    bool has_one_side = f->packets[CLIENT] == 0 || f->packets[SERVER] == 0;
    s->flows_one_side += has_one_side;
    s->flows_with_gaps += !has_one_side && f->gap_bytes[CLIENT] + f->gap_bytes[SERVER] > 0;
    s->vantage[path_of(f, DURATION_NONE).vantage]++;
    if (f->client_hello_seen)
        count_hello(s, f);
}

static enum status count_flows(struct survey *s, struct stage *stage)
{
    struct bytes item;
    enum status status;
    stage_rewind(stage);
    while ((status = stage_next(stage, &item)) == STATUS_OK) {
        struct record records[RECORDS_MAX];
        struct facts f;
        if (!facts_unpack(item, records, &f))
            return STATUS_IO;
        count_flow(s, &f);
    }
    return status == STATUS_END ? STATUS_OK : status;
}

/* ---- files ---- */

static void note_damage(struct survey *s, const char *text)
{
    text_addf(&s->damage, "%s\n", text);
}

static void count_file(struct survey *s, const struct capture_info *info,
                       const struct drop_counts *drops)
{
    s->files_read++;
    if (info->kernel_drops >= 0)
        s->kernel_drops = (s->kernel_drops > 0 ? s->kernel_drops : 0) + info->kernel_drops;
    drop_counts_add(&s->drops, drops);
}

static void show_progress(struct survey_watch *w)
{
    if (progress_is_due(&w->progress))
        progress_show(&w->progress, "looking: %zu of %zu files, %.1f M packets, %.0f s",
                      w->files_done, w->files_total, (double)w->packets / 1e6,
                      progress_seconds(&w->progress));
}

/* Reads an open capture or its beginning; the outcome of the reading goes into the survey. */
static enum status read_frames(struct survey *s, struct capture *c, struct survey_watch *watch,
                               struct analysis *a, bool *ret_whole)
{
    struct frame frame;
    int64_t latest_ns = 0;
    enum status reading = STATUS_OK, status = STATUS_OK;
    for (unsigned n = 0; n < SURVEY_PACKETS_MAX && status == STATUS_OK && !*watch->stop; n++) {
        reading = capture_next(c, &frame);
        if (reading != STATUS_OK)
            break;
        count_frame(s, &frame, &latest_ns);
        status = analysis_frame(a, &frame);
        if (++watch->packets % PACKETS_PER_LOOK == 0)
            show_progress(watch);
    }
    if (reading == STATUS_NO_MEMORY)
        return reading;
    *ret_whole = reading == STATUS_END;
    s->has_unread_rest |= reading == STATUS_OK;
    if (reading != STATUS_OK && reading != STATUS_END) {
        s->files_damaged++;
        note_damage(s, capture_error(c));
    }
    return status;
}

static enum status survey_capture(struct survey *s, struct capture *c, struct survey_watch *watch,
                                  struct tools *tools, bool *ret_whole)
{
    enum status status = tools->analysis == NULL ? tools_open(tools) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    struct drop_counts drops = { 0 };
    analysis_use_file(tools->analysis, (uint32_t)watch->files_done, &drops);
    status = read_frames(s, c, watch, tools->analysis, ret_whole);
    if (status == STATUS_OK)
        status = analysis_settle(tools->analysis); /* while the capture and its drops are there */
    struct capture_info info = capture_info(c);
    count_file(s, &info, &drops);
    return status;
}

/* *ret_whole: its flows may go on in the next file. */
static enum status survey_file(struct survey *s, const char *path, const char *filter,
                               struct survey_watch *watch, struct tools *tools, bool *ret_whole)
{
    struct capture *c = NULL;
    enum status status = capture_open(path, filter, &c);
    *ret_whole = false;
    if (status == STATUS_OK) {
        status = survey_capture(s, c, watch, tools, ret_whole);
    } else if (status != STATUS_NO_MEMORY) {
        s->files_unreadable++;
        note_damage(s, capture_error(c));
        status = STATUS_OK;
    }
    capture_close(c);
    watch->files_done++;
    return status;
}

/* Ends the flows of a stretch of files and counts them. */
static enum status end_stretch(struct survey *s, struct tools *tools)
{
    enum status status = STATUS_OK;
    if (tools->analysis != NULL)
        status = analysis_end(tools->analysis);
    if (status == STATUS_OK && tools->analysis != NULL)
        status = count_flows(s, tools->stage);
    tools_done(tools);
    return status;
}

size_t survey_file_count(const struct capture_point *point)
{
    return point->file_count < SURVEY_FILES_MAX ? point->file_count : SURVEY_FILES_MAX;
}

enum status survey_point(const struct capture_point *point, const char *filter,
                         struct survey_watch *watch, struct survey *ret_survey)
{
    /* When there are too many, evenly spread over the time of the point. */
    size_t count = survey_file_count(point);
    bool skips = count < point->file_count;
    struct tools tools = { 0 };
    ret_survey->kernel_drops = -1;
    ret_survey->has_unread_rest = skips;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < count && status == STATUS_OK && !*watch->stop; i++) {
        bool whole;
        const char *path = point->files[i * point->file_count / count].path;
        status = survey_file(ret_survey, path, filter, watch, &tools, &whole);
        if (status == STATUS_OK && (skips || !whole))
            status = end_stretch(ret_survey, &tools);
    }
    if (status == STATUS_OK)
        status = end_stretch(ret_survey, &tools);
    ret_survey->is_interrupted = *watch->stop;
    tools_done(&tools);
    return status;
}

void survey_done(struct survey *s)
{
    text_done(&s->damage);
    text_done(&s->unknown_links);
}
