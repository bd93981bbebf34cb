/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection's two streams and their TLS under any sequence of segments, losses, acknowledgments
 * and parking. Input: operations of a few octets each,
 *
 *   op side   segment: number of octets, then themselves; other lengths, gaps and repetitions by
 *             the bits of op; 255 octets stand for 64 times as many of which none was captured
 *
 * Checked is what the modules promise: runs follow each other, caps hold, records do not overlap.
 */
#include "stream.h"
#include "tls.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum op {
    OP_SEGMENT,       /* the next bytes */
    OP_SEGMENT_AHEAD, /* leaves a gap in front of them */
    OP_SEGMENT_AGAIN, /* begins before what is there already */
    OP_SEGMENT_CUT,   /* behind its first octets the snaplen cut it */
    OP_GIVE_UP,       /* the first hole */
    OP_ACKNOWLEDGE,
    OP_PARK,
    OP_COUNT
};

struct talk {
    struct stream stream[2];
    struct tls tls;
    struct facts facts;
    uint32_t next_seq[2]; /* behind the last segment made */
    int64_t run_end[2];
    int64_t now_ns;
    uint64_t packet_no;
};

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void take_run(struct talk *t, enum side side, const struct run *run)
{
    check(run->offset == t->run_end[side] && run->len > 0 && run->data.len <= run->len);
    t->run_end[side] += run->len;
    if (!tls_wants(&t->tls, side)) {
        stream_go_blind(&t->stream[side]);
        return;
    }
    check(tls_add_run(&t->tls, &t->facts, side, *run) == STATUS_OK);
    check(t->tls.side[side].messages.kept_capacity <= MESSAGE_HELLO_BYTES_MAX + 4096);
    check(t->facts.record_count <= RECORDS_MAX);
}

static void take_ready_runs(struct talk *t, enum side side)
{
    struct run run;
    while (stream_next(&t->stream[side], &run))
        take_run(t, side, &run);
}

static void give_up(struct talk *t, enum side side)
{
    struct run run;
    if (stream_skip_hole(&t->stream[side], &run)) {
        check(run.is_hole);
        take_run(t, side, &run);
        take_ready_runs(t, side);
    }
}

static void add_segment(struct talk *t, enum side side, enum op op, struct reader *r)
{
    uint8_t len = reader_u8(r);
    uint32_t seq = t->next_seq[side];
    struct piece p = {
        .len = len == UINT8_MAX ? 64 * UINT8_MAX : len,
        .data = bytes_first(r->rest, len == UINT8_MAX ? 0 : len),
        .at_ns = t->now_ns,
        .packet_no = t->packet_no,
        .ack = (int32_t)(t->run_end[other_side(side)] & OFFSET_MAX),
    };
    reader_take(r, p.data.len);
    if (op == OP_SEGMENT_AHEAD)
        seq += reader_u8(r) * 16u;
    else if (op == OP_SEGMENT_AGAIN)
        seq -= reader_u8(r);
    else if (op == OP_SEGMENT_CUT)
        p.len += reader_u8(r);
    p.seq = seq;
    if (p.len == 0)
        return;
    if ((int32_t)(seq + p.len - t->next_seq[side]) > 0)
        t->next_seq[side] = seq + p.len;
    struct arrival arrival;
    struct run run;
    bool has_run;
    check(stream_add(&t->stream[side], &p, &arrival, &run, &has_run) == STATUS_OK);
    check(arrival.old_len + arrival.new_len == p.len);
    if (arrival.old_len > 0)
        tls_resent(&t->tls, &t->facts, side, arrival.old_offset, arrival.old_len);
    if (has_run)
        take_run(t, side, &run);
    take_ready_runs(t, side);
    while (stream_over_cap(&t->stream[side]))
        give_up(t, side);
}

static void park(struct talk *t)
{
    struct buffer packed = { 0 };
    struct coder to = coder_to(&packed);
    tls_code(&to, &t->tls);
    for (enum side side = CLIENT; side <= SERVER; side++)
        stream_code(&to, &t->stream[side]);
    struct coder from = coder_of((struct bytes){ packed.at, packed.len });
    tls_done(&t->tls);
    tls_code(&from, &t->tls);
    for (enum side side = CLIENT; side <= SERVER; side++) {
        stream_done(&t->stream[side]);
        stream_code(&from, &t->stream[side]);
    }
    check(!to.failed && !from.failed && from.in.rest.len == 0);
    check(tls_fits_facts(&t->tls, &t->facts));
    buffer_done(&packed);
}

static void run_op(struct talk *t, uint8_t octet, struct reader *r)
{
    enum side side = octet & 0x80 ? SERVER : CLIENT;
    enum op op = (enum op)((octet & 0x7f) % OP_COUNT);
    switch (op) {
    case OP_SEGMENT:
    case OP_SEGMENT_AHEAD:
    case OP_SEGMENT_AGAIN:
    case OP_SEGMENT_CUT:
        add_segment(t, side, op, r);
        break;
    case OP_GIVE_UP:
        give_up(t, side);
        break;
    case OP_ACKNOWLEDGE:
        tls_acknowledged(&t->tls, &t->facts, side, t->run_end[side] - reader_u8(r), t->now_ns);
        break;
    case OP_PARK:
        park(t);
        break;
    case OP_COUNT:
        break;
    }
}

static void check_records(const struct facts *f)
{
    int64_t end[2] = { 0 };
    for (unsigned i = 0; i < f->record_count; i++) {
        const struct record *x = &f->records[i];
        bool is_gap = x->type == RECORD_HOLE || x->type == RECORD_CUT;
        check(x->side <= SERVER && x->offset >= end[x->side]);
        check(x->at_ns != 0 && x->last_at_ns != 0);
        end[x->side] = (int64_t)x->offset + x->len + (is_gap ? 0 : RECORD_HEADER_LEN);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader r = reader_of((struct bytes){ data, size });
    uint8_t first = reader_u8(&r);
    struct talk t = { .now_ns = 1, .packet_no = 1, .next_seq = { UINT32_MAX - 100, 5 } };
    t.facts.syn_seen = first & 1;
    t.facts.client_basis = first & 1 ? CLIENT_BY_SYN : CLIENT_BY_PORT;
    for (enum side side = CLIENT; side <= SERVER && first & 2; side++)
        stream_set_base(&t.stream[side], t.next_seq[side]);
    while (r.rest.len > 0) {
        run_op(&t, reader_u8(&r), &r);
        t.now_ns++;
        t.packet_no++;
    }
    for (enum side side = CLIENT; side <= SERVER; side++)
        for (int64_t behind; stream_waits(&t.stream[side], &behind);)
            give_up(&t, side);
    check_records(&t.facts);
    tls_end(&t.tls, &t.facts);
    facts_finish(&t.facts);
    for (enum side side = CLIENT; side <= SERVER; side++)
        stream_done(&t.stream[side]);
    tls_done(&t.tls);
    facts_done(&t.facts);
    return 0;
}
