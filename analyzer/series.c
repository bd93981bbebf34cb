/* SPDX-License-Identifier: Apache-2.0 */
#include "series.h"

enum { RECORD_HEADER_LEN = 5 }; /* RFC 8446 5.1 */

static void insert_by_offset(struct series *s, uint8_t index)
{
    int place = s->count++;
    while (place > 0 && s->records[s->index[place - 1]].offset > s->records[index].offset) {
        s->index[place] = s->index[place - 1];
        place--;
    }
    s->index[place] = index;
}

struct series series_of(const struct facts *f, enum side part)
{
    struct series s = { .records = f->records };
    enum side side = side_of_part(f, part);
    for (unsigned i = 0; i < f->record_count && i < RECORDS_MAX; i++)
        if (f->records[i].side == side)
            insert_by_offset(&s, (uint8_t)i);
    return s;
}

int series_find(const struct series *s, int from, enum record_type type)
{
    for (int place = from; place < s->count; place++)
        if (series_at(s, place)->type == type)
            return place;
    return -1;
}

int series_from_offset(const struct series *s, int64_t offset)
{
    int place = 0;
    while (place < s->count && series_at(s, place)->offset < offset)
        place++;
    return place;
}

int64_t record_end(const struct record *r)
{
    if (record_is_gap(r))
        return (int64_t)r->offset + r->len;
    return (int64_t)r->offset + RECORD_HEADER_LEN + r->len +
           (int64_t)r->skipped * RECORD_HEADER_LEN + r->skipped_len;
}

int64_t record_certain_end(const struct record *r)
{
    return record_is_gap(r) ? (int64_t)r->offset + 1 : record_end(r);
}

bool series_is_broken_between(const struct series *s, int first, int last)
{
    for (int place = first; place <= last; place++) {
        const struct record *r = series_at(s, place);
        if (record_is_gap(r) || (r->flags & RECORD_UNSURE && place > first))
            return true;
        if (place < last && record_end(r) != series_at(s, place + 1)->offset)
            return true;
    }
    return false;
}

enum sent record_sent(const struct record *r, int64_t end)
{
    if (r->ack == ACK_UNKNOWN)
        return SENT_UNKNOWN;
    return r->ack < end ? SENT_BEFORE : SENT_AFTER;
}
