/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   offset 0        next_offset
 *   |               |            pending, sorted and disjoint
 *   |###############|....[ a ]..[ b ][ c ]
 *    given as runs   hole       hole
 *
 * A piece that begins at next_offset while nothing is pending is the usual case: it becomes a run
 * without being copied. Any other new bytes are cut to the parts not seen before and copied into
 * the pending list, so that the first copy of a byte always wins; runs come from the head of that
 * list as soon as it touches next_offset. A hole is only given up by the caller, who knows whether
 * the receiver acknowledged it, whether the caps are reached, or whether the flow has ended; until
 * then order of arrival makes no difference to the runs.
 *
 * Where no SYN was seen the base is the first sequence number met, or what the other side
 * acknowledged before.
 */
#include "stream.h"

#include "facts.h"

#include <stdlib.h>

struct pending {
    struct pending *next;
    int64_t offset;
    uint32_t len;
    uint32_t captured;
    bool starts_segment;
    int64_t at_ns;
    uint64_t packet_no;
    int32_t ack;
    uint8_t data[];
};

void stream_set_base(struct stream *s, uint32_t seq)
{
    if (s->has_base)
        return;
    s->has_base = true;
    s->next_seq = seq;
    s->next_offset = 0;
}

int64_t stream_offset(const struct stream *s, uint32_t seq)
{
    return s->next_offset + (int32_t)(seq - s->next_seq);
}

static void advance(struct stream *s, int64_t to)
{
    s->next_seq += (uint32_t)(to - s->next_offset);
    s->next_offset = to;
}

/* The piece's bytes from the given offset on, at most len of them, as a run. */
static struct run run_of(const struct piece *p, int64_t piece_offset, int64_t from, uint32_t len)
{
    size_t skip = (size_t)(from - piece_offset);
    struct bytes data = skip < p->data.len ? bytes_after(p->data, skip) : (struct bytes){ 0 };
    return (struct run){
        .offset = from,
        .len = len,
        .data = bytes_first(data, len),
        .starts_segment = skip == 0,
        .at_ns = p->at_ns,
        .packet_no = p->packet_no,
        .ack = p->ack,
    };
}

static struct pending *copy_of(const struct stream *s, const struct run *run)
{
    size_t captured = s->blind ? 0 : run->data.len;
    struct pending *copy = malloc(sizeof *copy + captured);
    if (copy == NULL)
        return NULL;
    *copy = (struct pending){
        .offset = run->offset,
        .len = run->len,
        .captured = (uint32_t)captured,
        .starts_segment = run->starts_segment,
        .at_ns = run->at_ns,
        .packet_no = run->packet_no,
        .ack = run->ack,
    };
    if (captured > 0)
        memcpy(copy->data, run->data.at, captured);
    return copy;
}

/* Puts the parts of [from, end) that no pending piece covers into the list. */
static enum status insert(struct stream *s, const struct piece *p, int64_t offset, int64_t from,
                          struct arrival *arrival)
{
    int64_t end = offset + p->len;
    struct pending **link = &s->pending;
    while (from < end) {
        while (*link != NULL && (*link)->offset + (*link)->len <= from)
            link = &(*link)->next;
        int64_t free_until = *link == NULL || (*link)->offset > end ? end : (*link)->offset;
        if (from < free_until) {
            struct run part = run_of(p, offset, from, (uint32_t)(free_until - from));
            struct pending *copy = copy_of(s, &part);
            if (copy == NULL)
                return STATUS_NO_MEMORY;
            if (*link != NULL && !arrival->filled_hole) {
                arrival->filled_hole = true;
                arrival->behind_at_ns = (*link)->at_ns;
            }
            copy->next = *link;
            *link = copy;
            link = &copy->next;
            s->pending_count++;
            s->pending_bytes += (uint32_t)sizeof *copy + copy->captured;
            arrival->new_len += part.len;
        }
        if (*link == NULL || (*link)->offset >= end)
            break;
        int64_t covered_until = (*link)->offset + (*link)->len;
        int64_t overlap_end = covered_until < end ? covered_until : end;
        int64_t overlap_from = (*link)->offset > from ? (*link)->offset : from;
        arrival->old_offset = arrival->old_len == 0 ? overlap_from : arrival->old_offset;
        arrival->old_len += (uint32_t)(overlap_end - overlap_from);
        from = covered_until;
    }
    return STATUS_OK;
}

enum status stream_add(struct stream *s, const struct piece *p, struct arrival *ret_arrival,
                       struct run *ret_run, bool *ret_has_run)
{
    *ret_arrival = (struct arrival){ 0 };
    *ret_has_run = false;
    stream_set_base(s, p->seq);
    int64_t offset = stream_offset(s, p->seq);
    int64_t from = offset;
    if (offset < s->next_offset) {
        int64_t old = s->next_offset - offset;
        ret_arrival->old_len = old < p->len ? (uint32_t)old : p->len;
        ret_arrival->old_offset = offset;
        if (old >= p->len)
            return STATUS_OK;
        from = s->next_offset;
    }
    if (from == s->next_offset && s->pending == NULL) {
        *ret_run = run_of(p, offset, from, (uint32_t)(offset + p->len - from));
        *ret_has_run = true;
        ret_arrival->new_len = ret_run->len;
        advance(s, offset + p->len);
        return STATUS_OK;
    }
    return insert(s, p, offset, from, ret_arrival);
}

bool stream_next(struct stream *s, struct run *ret_run)
{
    free(s->given);
    s->given = NULL;
    struct pending *head = s->pending;
    if (head == NULL || head->offset > s->next_offset)
        return false;
    assert(head->offset == s->next_offset);
    s->pending = head->next;
    s->pending_count--;
    s->pending_bytes -= (uint32_t)sizeof *head + head->captured;
    s->given = head;
    *ret_run = (struct run){
        .offset = head->offset,
        .len = head->len,
        .data = { head->data, head->captured },
        .starts_segment = head->starts_segment,
        .at_ns = head->at_ns,
        .packet_no = head->packet_no,
        .ack = head->ack,
    };
    advance(s, head->offset + head->len);
    return true;
}

bool stream_waits(const struct stream *s, int64_t *ret_offset)
{
    if (s->pending == NULL || s->pending->offset == s->next_offset)
        return false;
    *ret_offset = s->pending->offset;
    return true;
}

bool stream_skip_hole(struct stream *s, struct run *ret_run)
{
    int64_t behind;
    if (!stream_waits(s, &behind))
        return false;
    int64_t len = behind - s->next_offset;
    *ret_run = (struct run){
        .offset = s->next_offset,
        .len = (uint32_t)len,
        .is_hole = true,
        .at_ns = s->pending->at_ns,
        .packet_no = s->pending->packet_no,
        .ack = ACK_UNKNOWN,
    };
    advance(s, behind);
    return true;
}

bool stream_over_cap(const struct stream *s)
{
    return s->pending_count > PENDING_SEGMENTS_MAX || s->pending_bytes > PENDING_BYTES_MAX;
}

void stream_go_blind(struct stream *s)
{
    s->blind = true;
}

static void code_pending_fields(struct coder *c, struct pending *p)
{
    code_offset(c, &p->offset);
    code_u32(c, &p->len);
    code_bool(c, &p->starts_segment);
    code_time(c, &p->at_ns);
    code_u64(c, &p->packet_no);
    code_i32(c, &p->ack);
}

/* A new pending piece with its bytes, at or behind `from`; NULL when there is none. */
static struct pending *unpack_pending(struct coder *c, int64_t from)
{
    struct pending fields = { 0 };
    code_pending_fields(c, &fields);
    fields.captured = (uint32_t)code_number(c, 0, fields.len);
    c->failed |= c->in.rest.len < fields.captured || fields.offset < from ||
                 fields.offset > INT64_MAX - fields.len;
    struct pending *p = c->failed ? NULL : malloc(sizeof *p + fields.captured);
    c->failed |= p == NULL;
    if (p == NULL)
        return NULL;
    *p = fields;
    code_octets(c, p->data, p->captured);
    return p;
}

static void unpack_all_pending(struct coder *c, struct stream *s)
{
    struct pending **link = &s->pending;
    int64_t from = s->next_offset;
    for (uint64_t left = code_number(c, 0, PENDING_SEGMENTS_MAX + 1); left > 0; left--) {
        struct pending *p = unpack_pending(c, from);
        if (p == NULL)
            return;
        *link = p;
        link = &p->next;
        s->pending_count++;
        s->pending_bytes += (uint32_t)sizeof *p + p->captured;
        from = p->offset + p->len;
    }
}

void stream_code(struct coder *c, struct stream *s)
{
    code_bool(c, &s->has_base);
    code_bool(c, &s->blind);
    code_u32(c, &s->next_seq);
    code_offset(c, &s->next_offset);
    if (coder_unpacks(c)) {
        unpack_all_pending(c, s);
        return;
    }
    code_number(c, s->pending_count, UINT64_MAX);
    for (struct pending *p = s->pending; p != NULL; p = p->next) {
        code_pending_fields(c, p);
        code_number(c, p->captured, UINT64_MAX);
        code_octets(c, p->data, p->captured);
    }
}

void stream_done(struct stream *s)
{
    free(s->given);
    while (s->pending != NULL) {
        struct pending *next = s->pending->next;
        free(s->pending);
        s->pending = next;
    }
    *s = (struct stream){ 0 };
}
