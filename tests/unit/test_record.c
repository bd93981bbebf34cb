/* SPDX-License-Identifier: Apache-2.0 */
#include "record.h"

#include "facts.h"

#include <criterion/criterion.h>

enum { STREAM_MAX = 256, EVENTS_MAX = 64 };

struct stream_bytes {
    uint8_t at[STREAM_MAX];
    uint32_t len;
};

static void add_record(struct stream_bytes *b, uint8_t type, uint16_t len)
{
    uint8_t header[] = { type, 3, 3, (uint8_t)(len >> 8), (uint8_t)len };
    cr_assert(b->len + sizeof header + len <= sizeof b->at);
    memcpy(b->at + b->len, header, sizeof header);
    memset(b->at + b->len + sizeof header, 0xee, len); /* looks like no header */
    b->len += (uint32_t)sizeof header + len;
}

/* Three records, one of them empty. */
static struct stream_bytes three_records(void)
{
    struct stream_bytes b = { .len = 0 };
    add_record(&b, RECORD_HANDSHAKE, 11);
    add_record(&b, RECORD_CHANGE_CIPHER_SPEC, 0);
    add_record(&b, RECORD_APPLICATION_DATA, 21);
    return b;
}

/* Events without the number of EVENT_BODY: bodies are added up. */
struct told {
    enum record_event_kind kind;
    struct record_header header;
    int64_t offset, at_ns;
    uint32_t body_len, body_seen;
    bool unsure, lost_to_snaplen;
    int64_t lost_offset, lost_len;
};

struct log {
    struct told told[EVENTS_MAX];
    unsigned count;
};

static void note(struct log *log, const struct record_event *e)
{
    if (e->kind == EVENT_BODY) {
        struct told *record = &log->told[log->count - 1];
        cr_assert(log->count > 0 && record->kind == EVENT_BEGINS);
        cr_assert_eq(e->body.offset, record->offset + RECORD_HEADER_LEN + record->body_len);
        cr_assert_leq(e->body.data.len, e->body.len);
        record->body_len += e->body.len;
        record->body_seen += (uint32_t)e->body.data.len;
        return;
    }
    cr_assert_lt(log->count, EVENTS_MAX);
    log->told[log->count++] = (struct told){
        .kind = e->kind,
        .header = e->header,
        .offset = e->first.offset,
        .at_ns = e->first.at_ns,
        .unsure = e->unsure,
        .lost_to_snaplen = e->lost_to_snaplen,
        .lost_offset = e->lost_offset,
        .lost_len = e->lost_len,
    };
}

static void read_run(struct record_reader *r, struct run run, struct log *log)
{
    for (;;) {
        uint32_t before = run.len;
        struct record_event e = record_next(r, &run);
        if (e.kind == EVENT_MORE)
            break;
        cr_assert(run.len < before || e.kind == EVENT_ENDS, "every event makes progress");
        note(log, &e);
    }
    cr_assert_eq(run.len, 0, "EVENT_MORE comes when the run is used up");
}

/* Bytes [from, to) of the stream in a segment of their own; the last `cut` are behind the snaplen.
 */
static struct run segment_of(const struct stream_bytes *b, uint32_t from, uint32_t to, uint32_t cut)
{
    return (struct run){
        .offset = from,
        .len = to - from,
        .data = { b->at + from, to - from - cut },
        .starts_segment = true,
        .at_ns = 1,
        .packet_no = from,
    };
}

static struct run hole_of(uint32_t from, uint32_t to)
{
    return (struct run){
        .offset = from, .len = to - from, .is_hole = true, .at_ns = 1, .ack = ACK_UNKNOWN
    };
}

static struct log whole_log(const struct stream_bytes *b)
{
    struct record_reader r = { 0 };
    struct log log = { .count = 0 };
    read_run(&r, segment_of(b, 0, b->len, 0), &log);
    return log;
}

static void assert_same(const struct log *a, const struct log *b, uint32_t first, uint32_t second)
{
    cr_assert_eq(a->count, b->count, "cut at %u and %u: %u events, not %u", first, second, b->count,
                 a->count);
    for (unsigned i = 0; i < a->count; i++) {
        const struct told *x = &a->told[i], *y = &b->told[i];
        cr_assert_eq(x->kind, y->kind, "cut at %u and %u", first, second);
        if (x->kind != EVENT_BEGINS)
            continue;
        cr_assert_eq(x->header.type, y->header.type);
        cr_assert_eq(x->header.version, y->header.version);
        cr_assert_eq(x->header.len, y->header.len);
        cr_assert_eq(x->offset, y->offset);
        cr_assert_eq(x->body_len, y->body_len);
        cr_assert_eq(x->body_seen, y->body_seen);
        cr_assert_eq(x->unsure, y->unsure);
        cr_assert_eq(x->lost_len, y->lost_len);
    }
}

Test(record, a_stream_is_told_record_by_record)
{
    struct stream_bytes b = three_records();
    struct log log = whole_log(&b);
    static const struct told RIGHT[] = {
        { .kind = EVENT_BEGINS, .header = { RECORD_HANDSHAKE, 0x0303, 11 }, .offset = 0 },
        { .kind = EVENT_ENDS },
        { .kind = EVENT_BEGINS, .header = { RECORD_CHANGE_CIPHER_SPEC, 0x0303, 0 }, .offset = 16 },
        { .kind = EVENT_ENDS },
        { .kind = EVENT_BEGINS, .header = { RECORD_APPLICATION_DATA, 0x0303, 21 }, .offset = 21 },
        { .kind = EVENT_ENDS },
    };
    cr_assert_eq(log.count, 6);
    for (unsigned i = 0; i < 6; i++) {
        cr_assert_eq(log.told[i].kind, RIGHT[i].kind);
        if (RIGHT[i].kind != EVENT_BEGINS)
            continue;
        cr_assert_eq(log.told[i].header.type, RIGHT[i].header.type);
        cr_assert_eq(log.told[i].header.len, RIGHT[i].header.len);
        cr_assert_eq(log.told[i].body_len, RIGHT[i].header.len);
        cr_assert_eq(log.told[i].offset, RIGHT[i].offset);
        cr_assert_not(log.told[i].unsure);
    }
}

Test(record, any_two_cuts_give_the_same_events)
{
    struct stream_bytes b = three_records();
    struct log whole = whole_log(&b);
    for (uint32_t first = 0; first <= b.len; first++)
        for (uint32_t second = first; second <= b.len; second++) {
            struct record_reader r = { 0 };
            struct log log = { .count = 0 };
            read_run(&r, segment_of(&b, 0, first, 0), &log);
            read_run(&r, segment_of(&b, first, second, 0), &log);
            read_run(&r, segment_of(&b, second, b.len, 0), &log);
            assert_same(&whole, &log, first, second);
        }
}

Test(record, the_first_run_is_the_one_with_the_first_header_byte)
{
    struct stream_bytes b = { .len = 0 };
    add_record(&b, RECORD_HANDSHAKE, 3);
    struct record_reader r = { 0 };
    struct log log = { .count = 0 };
    for (uint32_t i = 0; i < b.len; i++) {
        struct run run = segment_of(&b, i, i + 1, 0);
        run.at_ns = 100 + i;
        read_run(&r, run, &log);
    }
    cr_assert_eq(log.told[0].at_ns, 100);
    cr_assert_eq(log.told[0].offset, 0);
}

/* Whether [from, to) touches a header of three_records(). */
static bool hits_header(uint32_t from, uint32_t to)
{
    static const uint32_t HEADERS[] = { 0, 16, 21 };
    for (unsigned i = 0; i < 3; i++)
        if (from < HEADERS[i] + RECORD_HEADER_LEN && to > HEADERS[i])
            return true;
    return false;
}

Test(record, a_hole_or_cut_within_bodies_loses_nothing_but_their_bytes)
{
    struct stream_bytes b = three_records();
    struct log whole = whole_log(&b);
    for (uint32_t from = 0; from < b.len; from++)
        for (uint32_t to = from + 1; to <= b.len; to++)
            for (unsigned is_cut = 0; is_cut < 2 && !hits_header(from, to); is_cut++) {
                struct record_reader r = { 0 };
                struct log log = { .count = 0 };
                read_run(&r, segment_of(&b, 0, is_cut ? to : from, is_cut ? to - from : 0), &log);
                if (!is_cut)
                    read_run(&r, hole_of(from, to), &log);
                read_run(&r, segment_of(&b, to, b.len, 0), &log);
                uint32_t seen = 0;
                for (unsigned i = 0; i < log.count; i++) {
                    seen += log.told[i].body_seen;
                    cr_assert_eq(log.told[i].kind, whole.told[i].kind);
                    cr_assert_eq(log.told[i].offset, whole.told[i].offset);
                    cr_assert_eq(log.told[i].body_len, whole.told[i].body_len);
                    cr_assert_not(log.told[i].unsure);
                }
                cr_assert_eq(log.count, whole.count, "%u to %u", from, to);
                cr_assert_eq(seen, 32 - (to - from));
            }
}

/* The header of the record behind is lost; its own segment is where reading goes on. */
Test(record, lost_boundaries_are_found_again_where_a_segment_begins_like_a_record)
{
    struct stream_bytes b = three_records();
    for (uint32_t from = 0; from < 21; from++)
        for (unsigned is_cut = 0; is_cut < 2; is_cut++) {
            if (!hits_header(from, 21) || (is_cut && from == 0))
                continue;
            struct record_reader r = { 0 };
            struct log log = { .count = 0 };
            read_run(&r, segment_of(&b, 0, is_cut ? 21 : from, is_cut ? 21 - from : 0), &log);
            if (!is_cut)
                read_run(&r, hole_of(from, 21), &log);
            cr_assert_eq(r.state, RECORD_LOST);
            read_run(&r, segment_of(&b, 21, b.len, 0), &log);
            const struct told *found = &log.told[log.count - 2];
            /* in the body of the first record the boundary behind it is still known */
            uint32_t lost_from = from < RECORD_HEADER_LEN ? 0 : 16;
            cr_assert_eq(found->kind, EVENT_BEGINS);
            cr_assert_eq(found->header.type, RECORD_APPLICATION_DATA);
            cr_assert(found->unsure);
            cr_assert_eq(found->lost_offset, lost_from, "from %u: %d", from,
                         (int)found->lost_offset);
            cr_assert_eq(found->lost_len, 21 - lost_from);
            cr_assert_eq(found->lost_to_snaplen, is_cut);
        }
}

Test(record, only_the_found_record_is_unsure_not_those_behind_it)
{
    struct stream_bytes b = { .len = 0 };
    add_record(&b, RECORD_APPLICATION_DATA, 4);
    uint32_t second = b.len;
    add_record(&b, RECORD_APPLICATION_DATA, 4);
    struct record_reader r = { 0 };
    struct log log = { .count = 0 };
    record_reader_lose(&r, 0);
    read_run(&r, segment_of(&b, 0, b.len, 0), &log);
    cr_assert_eq(log.count, 4);
    cr_assert(log.told[0].unsure);
    cr_assert_eq(log.told[0].lost_len, 0);
    cr_assert_not(log.told[2].unsure);
    cr_assert_eq(log.told[2].offset, second);
}

Test(record, a_lost_reader_does_not_look_inside_of_segments)
{
    struct stream_bytes b = three_records();
    struct record_reader r = { 0 };
    struct log log = { .count = 0 };
    record_reader_lose(&r, 0);
    struct run run = segment_of(&b, 16, b.len, 0);
    run.starts_segment = false;
    read_run(&r, run, &log);
    cr_assert_eq(log.count, 0);
    cr_assert_eq(r.state, RECORD_LOST);
}

Test(record, what_cannot_be_a_header_breaks_the_boundaries_until_the_next_segment)
{
    struct stream_bytes b = { .len = 0 };
    add_record(&b, RECORD_HANDSHAKE, 2);
    memcpy(b.at + b.len, "HTTP/1.1 400 Bad Request", 24);
    b.len += 24;
    uint32_t segment = b.len;
    add_record(&b, RECORD_ALERT, 2);
    struct record_reader r = { 0 };
    struct log log = { .count = 0 };
    read_run(&r, segment_of(&b, 0, segment, 0), &log);
    cr_assert_eq(log.told[2].kind, EVENT_BROKEN);
    cr_assert_eq(log.told[2].offset, 7);
    read_run(&r, segment_of(&b, segment, b.len, 0), &log);
    cr_assert_eq(log.told[3].header.type, RECORD_ALERT);
    cr_assert(log.told[3].unsure);
    cr_assert_eq(log.told[3].lost_offset, 7);
    cr_assert_eq(log.told[3].lost_len, 24);
}

Test(record, headers_are_plausible_within_the_limits_of_all_versions)
{
    static const struct {
        uint8_t header[RECORD_HEADER_LEN];
        bool plausible;
    } CASES[] = {
        { { 20, 3, 1, 0, 1 }, true },        { { 24, 3, 3, 0, 0 }, true },
        { { 22, 3, 0, 0, 4 }, true },        { { 23, 3, 4, 0x48, 0x00 }, true },
        { { 23, 3, 3, 0x48, 0x01 }, false }, { { 19, 3, 3, 0, 1 }, false },
        { { 25, 3, 3, 0, 1 }, false },       { { 23, 2, 3, 0, 1 }, false },
        { { 23, 3, 5, 0, 1 }, false },       { { 0, 0, 0, 0, 0 }, false },
    };
    for (unsigned i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_eq(record_header_plausible(CASES[i].header), CASES[i].plausible, "case %u", i);
}

Test(record, a_part_of_a_run_keeps_its_captured_bytes)
{
    static const uint8_t BYTES[] = { 1, 2, 3 };
    struct run run = { .offset = 10, .len = 8, .data = { BYTES, 3 }, .starts_segment = true };
    cr_assert_eq(run_first(&run, 2).data.len, 2);
    cr_assert_eq(run_first(&run, 5).data.len, 3);
    run_skip(&run, 0);
    cr_assert(run.starts_segment);
    run_skip(&run, 2);
    cr_assert_eq(run.offset, 12);
    cr_assert_eq(run.len, 6);
    cr_assert_eq(run.data.len, 1);
    cr_assert_eq(run.data.at[0], 3);
    cr_assert_not(run.starts_segment);
    run_skip(&run, 6);
    cr_assert_eq(run.len, 0);
    cr_assert_eq(run.data.len, 0);
}
