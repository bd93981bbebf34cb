/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WHOLE_H
#define WHOLE_H
/*
 * The whole way of a capture, from frames to rows in a database, for fuzz targets. Frames come from
 * what follows the header of a classic pcap file. Checked is what holds for any capture: each
 * flow's facts survive both their stored forms, no duration is negative, the phases add up to the
 * response, and the database takes the row.
 */
#include "analyze.h"
#include "facts.h"
#include "flow.h"
#include "row.h"
#include "store.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FRAME_MAX = 65535, STAGE_MEMORY = 1 << 20, FLOW_MEMORY = 1 << 16 };

static inline void check(bool holds)
{
    if (!holds)
        abort();
}

/* One database in memory for all inputs. */
static inline struct store *the_store(void)
{
    static struct store *store;
    if (store == NULL)
        check(store_open(":memory:", &store) == STATUS_OK);
    return store;
}

/* The frames of an input. */
struct trace {
    struct reader rest;
    int link_type;
    int64_t later_ns; /* added to all times */
    uint64_t number;
};

/* A time zone in the header, which no program writes, moves the times to the end of all times. */
static inline struct trace trace_of(struct bytes file)
{
    struct trace t = { .rest = reader_of(file) };
    reader_take(&t.rest, 8);
    bool is_late = reader_le(&t.rest, 4) != 0;
    reader_take(&t.rest, 8);
    t.link_type = (int)reader_le(&t.rest, 4) & 0xffff;
    t.later_ns = is_late ? INT64_MAX - (UINT32_MAX + INT64_C(1)) * NS_PER_SECOND : 0;
    return t;
}

static inline bool next_frame(struct trace *t, struct frame *ret_frame)
{
    int64_t seconds = (int64_t)reader_le(&t->rest, 4), fraction = (int64_t)reader_le(&t->rest, 4);
    size_t captured = (size_t)reader_le(&t->rest, 4);
    uint32_t wire_len = (uint32_t)reader_le(&t->rest, 4);
    if (t->rest.short_read || captured > FRAME_MAX)
        return false;
    if (captured > t->rest.rest.len)
        captured = t->rest.rest.len;
    *ret_frame = (struct frame){
        .at_ns = t->later_ns + seconds * NS_PER_SECOND + fraction % 1000000 * 1000,
        .number = ++t->number,
        .link_type = t->link_type,
        .wire_len = wire_len < captured ? (uint32_t)captured : wire_len,
        .data = reader_take(&t->rest, captured),
    };
    return true;
}

/* An analysis with all that it uses; its own after whole_open(), given back by whole_close(). */
struct whole {
    struct analysis_options options;
    struct analysis *analysis;
    struct drop_counts drops;
};

/* open: where flows go that are live at the end; NULL = with the others. */
static inline void whole_open(struct whole *w, struct stage *open)
{
    w->options = (struct analysis_options){
        .stage = stage_open(STAGE_MEMORY, NULL),
        .open = open,
        .half_opens = half_opens_open(1),
        .profiles = profiles_open(),
        .neighbours = neighbours_open(1),
        .roles = roles_open(1),
        .memory_max = FLOW_MEMORY,
        .seed = 1,
    };
    check(w->options.stage != NULL && w->options.half_opens != NULL && w->options.roles != NULL);
    check(w->options.profiles != NULL && w->options.neighbours != NULL);
    check(analysis_open(&w->options, &w->analysis) == STATUS_OK);
    analysis_use_file(w->analysis, 0, &w->drops);
}

static inline void whole_close(struct whole *w)
{
    stage_close(w->options.stage);
    half_opens_close(w->options.half_opens);
    profiles_close(w->options.profiles);
    neighbours_close(w->options.neighbours);
    roles_close(w->options.roles);
    analysis_close(w->analysis);
}

static inline void check_duration(struct row_integer ns)
{
    check(!ns.has || ns.value >= 0);
}

static inline void check_row(const struct flow_row *row)
{
    const struct row_integer phases[] = { row->connect_ns, row->hello_wait_ns, row->tls_ns,
                                          row->request_wait_ns, row->server_wait_ns };
    int64_t sum = 0;
    for (unsigned i = 0; i < sizeof phases / sizeof phases[0]; i++) {
        check_duration(phases[i]);
        check(phases[i].has == phases[0].has);
        sum += phases[i].value;
    }
    check(!phases[0].has || (row->response_ns.has && sum == row->response_ns.value));
    check_duration(row->response_ns);
    check_duration(row->perceived_ns);
    check_duration(row->server_think_ns);
    check_duration(row->server_rtt_ns);
    check_duration(row->client_rtt_ns);
    check_duration(row->rtt_ns);
    check_duration(row->loss_wait_ns);
    check_duration(row->end_at_ns);
    check(!row->response_ns.has || row->syn_seen.value == 1);
}

static inline void fill_row(const struct facts *f, const struct profiles *profiles,
                            struct row_space *space, struct flow_row *ret_row)
{
    static const struct labels NO_LABELS = { 0 };
    static const struct privacy NOTHING_HIDDEN = { 0 };
    struct row_context context = {
        .point = "fuzz", .labels = &NO_LABELS, .privacy = &NOTHING_HIDDEN, .capture_id = 1
    };
    struct verdict verdict = judge(f, profiles_find(profiles, f));
    struct path path = path_of(f, DURATION_NONE);
    struct timing timing = timing_of(f, &verdict, &path);
    row_fill(f, &verdict, &path, &timing, &context, space, ret_row);
}

/* The facts' JSON gives the same facts back, but for the file and texts that only the row has. */
static inline void check_json(const struct facts *f, struct bytes json)
{
    struct facts again, judged = *f;
    struct buffer packed = { 0 }, repacked = { 0 };
#define FORGET(name) judged.name = NULL;
    FACTS_TEXT_SHOWN(FORGET)
#undef FORGET
    judged.file = 0;
    check(facts_from_json(json, &again) == STATUS_OK);
    check(facts_pack(&judged, &packed) == STATUS_OK);
    check(facts_pack(&again, &repacked) == STATUS_OK);
    check(repacked.len == packed.len && memcmp(repacked.at, packed.at, packed.len) == 0);
    check(again.record_count == f->record_count);
    buffer_done(&packed);
    buffer_done(&repacked);
    facts_done(&again);
}

static inline void check_flow(struct bytes packed, const struct profiles *profiles)
{
    struct record records[RECORDS_MAX];
    struct facts f;
    struct row_space space;
    struct flow_row row;
    struct buffer json = { 0 };
    bool added;
    check(facts_unpack(packed, records, &f));
    fill_row(&f, profiles, &space, &row);
    check_row(&row);
    check(facts_to_json(&f, &json) == STATUS_OK);
    check_json(&f, (struct bytes){ json.at, json.len });
    check(store_flow(the_store(), &row, (struct bytes){ json.at, json.len }, &added) == STATUS_OK);
    buffer_done(&json);
}

/* After analysis_end(): makes a row of each flow on the stage. */
static inline void whole_check_flows(struct whole *w)
{
    struct bytes item;
    enum status status;
    profiles_settle(w->options.profiles);
    check(store_begin(the_store()) == STATUS_OK);
    stage_rewind(w->options.stage);
    while ((status = stage_next(w->options.stage, &item)) == STATUS_OK)
        check_flow(item, w->options.profiles);
    check(status == STATUS_END);
    store_rollback(the_store());
}

#endif
