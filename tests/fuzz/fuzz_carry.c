/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A capture read in two runs, with the state between them damaged. Input: how many frames the first
 * run has, how many octets of the state are changed, three octets for each of those (where, and
 * what is changed in it), then a classic pcap file. An undamaged state is taken back; one that is
 * damaged is refused or gone on with, and the rows hold what they hold for any capture.
 */
#include "whole.h"

#include "carry.h"

enum { CHANGES_MAX = 31, FLOWS_MAX = 256 };

/* What a run leaves. */
struct left {
    struct buffer bytes; /* of the point, then of its flows */
    size_t point_len;
    size_t flow_count;
    size_t flow_len[FLOWS_MAX];
};

static void keep_flows(struct stage *open, struct left *left)
{
    struct bytes item;
    enum status status = STATUS_OK;
    stage_rewind(open);
    while (left->flow_count < FLOWS_MAX && (status = stage_next(open, &item)) == STATUS_OK) {
        check(buffer_add(&left->bytes, item));
        left->flow_len[left->flow_count++] = item.len;
    }
    check(status == STATUS_OK || status == STATUS_END);
}

static void first_run(struct trace *trace, unsigned frames, struct left *left)
{
    struct whole w;
    struct stage *open = stage_open(STAGE_MEMORY, NULL);
    check(open != NULL);
    whole_open(&w, open);
    for (struct frame frame; frames > 0 && next_frame(trace, &frame); frames--)
        check(analysis_frame(w.analysis, &frame) == STATUS_OK);
    check(analysis_end(w.analysis) == STATUS_OK);
    check(analysis_leave_point(w.analysis, &left->bytes) == STATUS_OK);
    left->point_len = left->bytes.len;
    keep_flows(open, left);
    whole_close(&w);
    stage_close(open);
}

static void damage(struct bytes changes, struct buffer *state)
{
    struct reader r = reader_of(changes);
    while (r.rest.len > 0) {
        size_t at = reader_u16(&r) % state->len;
        state->at[at] ^= reader_u8(&r);
    }
}

static void check_resumed(enum status status, bool is_damaged)
{
    check(status == STATUS_OK || (is_damaged && status == STATUS_REFUSED));
}

static void check_facts(struct bytes flow)
{
    struct facts facts;
    (void)carry_flow_facts(flow, &facts);
    facts_done(&facts);
}

static void second_run(struct trace *trace, const struct left *left, bool is_damaged)
{
    struct whole w;
    bool continued[FLOWS_MAX] = { false };
    struct reader states = reader_of((struct bytes){ left->bytes.at, left->bytes.len });
    whole_open(&w, NULL);
    analysis_set_continued(w.analysis, continued);
    struct bytes point = reader_take(&states, left->point_len);
    check_resumed(analysis_resume_point(w.analysis, point, UINT32_MAX), is_damaged);
    for (uint32_t i = 0; i < left->flow_count; i++) {
        struct bytes flow = reader_take(&states, left->flow_len[i]);
        check_resumed(analysis_resume_flow(w.analysis, i, flow, UINT32_MAX), is_damaged);
        check_facts(flow);
    }
    for (struct frame frame; next_frame(trace, &frame);)
        check(analysis_frame(w.analysis, &frame) == STATUS_OK);
    check(analysis_end(w.analysis) == STATUS_OK);
    whole_check_flows(&w);
    whole_close(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader r = reader_of((struct bytes){ data, size });
    unsigned frames = reader_u8(&r);
    struct bytes changes = reader_take(&r, 3u * (reader_u8(&r) & CHANGES_MAX));
    struct trace trace = trace_of(r.rest);
    struct left left = { 0 };
    first_run(&trace, frames, &left);
    damage(changes, &left.bytes);
    second_run(&trace, &left, changes.len > 0);
    buffer_done(&left.bytes);
    return 0;
}
