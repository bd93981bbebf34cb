/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole way of a capture, from frames to rows in a database. Input: a classic pcap file, of
 * which only link type, times and frames are looked at. Checked is what holds for any capture: each
 * flow's facts survive both their stored forms, no duration is negative, the phases add up to the
 * response, and the database takes the row.
 */
#include "analyze.h"
#include "facts.h"
#include "row.h"
#include "store.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FRAME_MAX = 65535, STAGE_MEMORY = 8 << 20, FLOW_MEMORY = 1 << 16 };

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* One database in memory for all inputs. */
static struct store *the_store(void)
{
    static struct store *store;
    if (store == NULL)
        check(store_open(":memory:", &store) == STATUS_OK);
    return store;
}

static bool next_frame(struct reader *r, int link_type, struct frame *ret_frame)
{
    uint64_t number = ret_frame->number + 1;
    int64_t seconds = (int64_t)reader_le(r, 4), fraction = (int64_t)reader_le(r, 4);
    size_t captured = (size_t)reader_le(r, 4);
    uint32_t wire_len = (uint32_t)reader_le(r, 4);
    if (r->short_read || captured > FRAME_MAX)
        return false;
    if (captured > r->rest.len)
        captured = r->rest.len;
    *ret_frame = (struct frame){
        .at_ns = seconds * 1000000000 + fraction % 1000000 * 1000,
        .number = number,
        .link_type = link_type,
        .wire_len = wire_len < captured ? (uint32_t)captured : wire_len,
        .data = reader_take(r, captured),
    };
    return true;
}

static void check_duration(struct row_integer ns)
{
    check(!ns.has || ns.value >= 0);
}

static void check_row(const struct flow_row *row)
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

static void fill_row(const struct facts *f, const struct profiles *profiles,
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

/* The facts' JSON gives the same facts back, but for the texts that only the row has. */
static void check_json(const struct facts *f, struct bytes json)
{
    struct facts again, judged = *f;
    struct buffer packed = { 0 }, repacked = { 0 };
#define FORGET(name) judged.name = NULL;
    FACTS_TEXT_SHOWN(FORGET)
#undef FORGET
    check(facts_from_json(json, &again));
    check(facts_pack(&judged, &packed) == STATUS_OK);
    check(facts_pack(&again, &repacked) == STATUS_OK);
    check(repacked.len == packed.len && memcmp(repacked.at, packed.at, packed.len) == 0);
    check(again.record_count == f->record_count);
    buffer_done(&packed);
    buffer_done(&repacked);
    facts_done(&again);
}

static void check_flow(struct bytes packed, const struct profiles *profiles)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader r = reader_of((struct bytes){ data, size });
    reader_take(&r, 20);
    int link_type = (int)reader_le(&r, 4) & 0xffff;
    struct analysis_options options = {
        .stage = stage_open(STAGE_MEMORY, NULL),
        .half_opens = half_opens_open(1),
        .profiles = profiles_open(),
        .neighbours = neighbours_open(1),
        .memory_max = FLOW_MEMORY,
        .seed = 1,
    };
    struct analysis *a = NULL;
    check(options.stage != NULL && options.half_opens != NULL);
    check(options.profiles != NULL && options.neighbours != NULL);
    check(analysis_open(&options, &a) == STATUS_OK);
    analysis_begin_file(a, 0);
    for (struct frame frame = { 0 }; next_frame(&r, link_type, &frame);)
        check(analysis_frame(a, &frame) == STATUS_OK);
    check(analysis_end(a) == STATUS_OK);
    analysis_close(a);
    profiles_settle(options.profiles);

    struct bytes item;
    enum status status;
    check(store_begin(the_store()) == STATUS_OK);
    stage_rewind(options.stage);
    while ((status = stage_next(options.stage, &item)) == STATUS_OK)
        check_flow(item, options.profiles);
    check(status == STATUS_END);
    store_rollback(the_store());
    stage_close(options.stage);
    half_opens_close(options.half_opens);
    profiles_close(options.profiles);
    neighbours_close(options.neighbours);
    return 0;
}
