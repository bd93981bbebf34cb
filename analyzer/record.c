/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *          header      body                 header  body
 *   ... |...5 bytes...|#####################|.....|##########| ...
 *
 *   IN_HEADER --5 bytes--> IN_BODY --all bytes--> AT_END --> IN_HEADER
 *       |                     (holes and cuts are subtracted)
 *       +-- a byte of the header is in a hole, behind a cut, or cannot be one --> LOST
 *   LOST --a segment begins with a plausible header--> IN_HEADER
 *
 * Lost boundaries are found again only where a segment begins: senders write whole records, so at
 * a snaplen of 128 that is where nearly all first responses start, while looking at every byte
 * would find a header in random bytes once in some hundred kilobytes.
 */
#include "record.h"

#include "facts.h"

bool record_header_plausible(const uint8_t header[RECORD_HEADER_LEN])
{
    unsigned len = (unsigned)header[3] << 8 | header[4];
    return header[0] >= RECORD_CHANGE_CIPHER_SPEC && header[0] <= RECORD_HEARTBEAT &&
           header[1] == 3 && header[2] <= 4 && len <= RECORD_BODY_MAX;
}

struct run run_first(const struct run *run, uint32_t n)
{
    assert(n <= run->len);
    struct run part = *run;
    part.len = n;
    part.data = bytes_first(run->data, n);
    return part;
}

void run_skip(struct run *run, uint32_t n)
{
    assert(n <= run->len);
    if (n == 0)
        return;
    run->offset += n;
    run->len -= n;
    run->data = n < run->data.len ? bytes_after(run->data, n) : (struct bytes){ 0 };
    run->starts_segment = false;
}

void record_reader_lose(struct record_reader *r, int64_t offset)
{
    *r = (struct record_reader){ .state = RECORD_LOST, .lost_offset = offset };
}

static struct record_event lose(struct record_reader *r, enum record_event_kind kind)
{
    struct record_event e = { .kind = kind, .first = r->first };
    memcpy(e.broken, r->header, sizeof e.broken);
    record_reader_lose(r, e.first.offset);
    if (!e.first.is_hole) {
        r->lost_at_ns = e.first.at_ns;
        r->lost_packet_no = e.first.packet_no;
        r->lost_ack = e.first.ack;
    }
    return e;
}

static struct record_event begin(struct record_reader *r)
{
    struct reader header = reader_of((struct bytes){ r->header, sizeof r->header });
    struct record_event e = {
        .kind = EVENT_BEGINS,
        .header = { .type = reader_u8(&header),
                    .version = reader_u16(&header),
                    .len = reader_u16(&header) },
        .first = r->first,
        .unsure = r->unsure,
    };
    r->body_left = e.header.len;
    r->state = r->body_left == 0 ? RECORD_AT_END : RECORD_IN_BODY;
    r->header_len = 0;
    return e;
}

/* Takes header bytes; EVENT_MORE when the run ends before the header does. */
static struct record_event take_header(struct record_reader *r, struct run *run)
{
    if (r->header_len == 0) {
        r->first = *run;
        r->first.data = (struct bytes){ 0 };
    }
    while (r->header_len < RECORD_HEADER_LEN && run->len > 0) {
        if (run->data.len == 0) { /* in a hole or behind a cut */
            struct record_event e = lose(r, EVENT_MORE);
            r->lost_to_snaplen = !run->is_hole;
            run_skip(run, run->len);
            return e;
        }
        r->header[r->header_len++] = run->data.at[0];
        run_skip(run, 1);
    }
    if (r->header_len < RECORD_HEADER_LEN)
        return (struct record_event){ .kind = EVENT_MORE };
    if (!record_header_plausible(r->header))
        return lose(r, EVENT_BROKEN);
    return begin(r);
}

static struct record_event take_body(struct record_reader *r, struct run *run)
{
    uint32_t n = run->len < r->body_left ? run->len : r->body_left;
    struct record_event e = { .kind = EVENT_BODY, .body = run_first(run, n) };
    run_skip(run, n);
    r->body_left -= n;
    if (r->body_left == 0)
        r->state = RECORD_AT_END;
    return e;
}

/* Looks for a header at the begin of a segment; else the run is skipped. */
static struct record_event find_again(struct record_reader *r, struct run *run)
{
    if (!run->starts_segment || run->data.len < RECORD_HEADER_LEN ||
        !record_header_plausible(run->data.at)) {
        if (run->data.len < run->len && !run->is_hole)
            r->lost_to_snaplen = true;
        run_skip(run, run->len);
        return (struct record_event){ .kind = EVENT_MORE };
    }
    struct record_reader lost = *r;
    *r = (struct record_reader){ .state = RECORD_IN_HEADER, .unsure = true };
    struct record_event e = take_header(r, run);
    assert(e.kind == EVENT_BEGINS);
    e.lost_offset = lost.lost_offset;
    e.lost_len = e.first.offset - lost.lost_offset;
    e.lost_at_ns = lost.lost_at_ns;
    e.lost_packet_no = lost.lost_packet_no;
    e.lost_ack = lost.lost_ack;
    e.lost_to_snaplen = lost.lost_to_snaplen;
    return e;
}

struct record_event record_next(struct record_reader *r, struct run *run)
{
    if (r->state == RECORD_AT_END) {
        r->state = RECORD_IN_HEADER;
        r->unsure = false;
        return (struct record_event){ .kind = EVENT_ENDS };
    }
    if (run->len == 0)
        return (struct record_event){ .kind = EVENT_MORE };
    switch ((enum record_state)r->state) {
    case RECORD_IN_HEADER:
        return take_header(r, run);
    case RECORD_IN_BODY:
        return take_body(r, run);
    case RECORD_LOST:
        return find_again(r, run);
    case RECORD_AT_END:
        break;
    }
    assert(false);
    return (struct record_event){ .kind = EVENT_MORE };
}
