/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERIES_H
#define SERIES_H
/*
 * The records of one side in the order of its stream. Facts hold both sides in the order of time,
 * in which a record that was lost and sent again stands behind those that followed it; what a
 * record *is* follows from its place in the stream.
 */
#include "facts.h"

struct series {
    const struct record *records; /* all of the facts; not owned */
    uint8_t index[RECORDS_MAX];   /* of this side's records, by stream offset */
    int count;
};

/*
 * The side of TCP that plays a part in TLS: mostly the same, but some protocols let the side that
 * was called send the ClientHello (FTP in active mode, SMTP TURN).
 */
static inline enum side side_of_part(const struct facts *f, enum side part)
{
    return f->hello_side == SERVER ? other_side(part) : part;
}

/* Of the side that plays a part in TLS. Records beyond RECORDS_MAX are left out. */
struct series series_of(const struct facts *f, enum side part);

/* The record at a place of the series, 0 <= place < count. */
static inline const struct record *series_at(const struct series *s, int place)
{
    assert(place >= 0 && place < s->count);
    return &s->records[s->index[place]];
}

/* First place at or behind `from` that holds a record of the type; -1 without. */
int series_find(const struct series *s, int from, enum record_type type);

/* First place whose record starts at the offset or behind it; count without. */
int series_from_offset(const struct series *s, int64_t offset);

/* Whether bytes between two neighbouring places, or of the records there, were never seen. */
bool series_is_broken_between(const struct series *s, int first, int last);

/* Stream offset behind a record, with those merged into it. */
int64_t record_end(const struct record *r);

/* The same, but only behind its first byte where its boundaries are not known. */
int64_t record_certain_end(const struct record *r);

/* Whether it stands for bytes without known record boundaries: a hole or a snaplen's cut. */
static inline bool record_is_gap(const struct record *r)
{
    return r->type == RECORD_HOLE || r->type == RECORD_CUT;
}

/*
 * Whether a record was sent before its sender had received the other side's stream up to `end`.
 * Certain at any capture point: its segment would have acknowledged those bytes (RFC 9293 3.10).
 */
enum sent { SENT_UNKNOWN, SENT_BEFORE, SENT_AFTER };
enum sent record_sent(const struct record *r, int64_t end);

#endif
