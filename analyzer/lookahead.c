/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   source -> buffer: | given | good records, not yet given | not looked at | -> lookahead_read()
 *                             start                         scanned         end
 *
 * Records have no magic number. One is believed when its length is possible; where something else
 * about it is odd, only when the next header is possible as well. A chain to resume at must have
 * nothing odd: a random place passes the first header once in about 2^40, and chains are asked for
 * several. The file's header is kept, so that libpcap can be opened anew at any record.
 */
#include "lookahead.h"

#include "frame.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    FILE_HEADER_LEN = 24,
    RECORD_HEADER_LEN = 16,
    MODIFIED_HEADER_LEN = 24, /* of Kuznetzov's format */
    CHAIN_RECORDS = 3,
    BUFFER_FIRST_SIZE = LOOKAHEAD_BYTES + 32 * 1024, /* for a look at the first frame */
    BUFFER_SIZE = 1024 * 1024,
    NS_PER_SECOND = 1000000000,
};
_Static_assert(BUFFER_SIZE > CHAIN_RECORDS * (LOOKAHEAD_RECORD_MAX + MODIFIED_HEADER_LEN) +
                                 MODIFIED_HEADER_LEN,
               "a chain of the longest records fits into the buffer");

/* A time that far from those before it is none to resume at. */
#define PLAUSIBLE_JUMP_NS (INT64_C(86400) * NS_PER_SECOND)

struct lookahead {
    struct source *source;
    uint8_t *buffer;
    size_t capacity, start, end;
    size_t scanned;    /* may lie behind end: a record that is not there yet, or is cut */
    uint64_t position; /* of start in the file */
    bool ended;        /* the source gave all it has */

    uint8_t header[FILE_HEADER_LEN]; /* of the file */
    size_t header_given;
    bool knows_records, is_big_endian;
    size_t record_header_len;
    uint32_t fractions; /* per second */
    uint32_t length_max;

    uint64_t records, late_record;
    uint64_t last_record_position;
    int64_t latest_ns; /* 0 before the first time */
    const char *stop;
};

/* ---- headers ---- */

static uint32_t u32(const struct lookahead *l, struct reader *r)
{
    return (uint32_t)(l->is_big_endian ? reader_be(r, 4) : reader_le(r, 4));
}

/* Magic numbers as libpcap knows them: microseconds, nanoseconds, Kuznetzov's longer headers. */
static bool read_magic(struct lookahead *l, uint32_t magic)
{
    l->record_header_len = magic == 0xa1b2cd34 ? MODIFIED_HEADER_LEN : RECORD_HEADER_LEN;
    l->fractions = magic == 0xa1b23c4d ? NS_PER_SECOND : 1000000;
    return magic == 0xa1b2c3d4 || magic == 0xa1b23c4d || magic == 0xa1b2cd34;
}

static void read_file_header(struct lookahead *l)
{
    struct reader r = reader_of((struct bytes){ l->header, sizeof l->header });
    struct reader little = r;
    l->is_big_endian = read_magic(l, (uint32_t)reader_be(&r, 4));
    bool is_known = l->is_big_endian || read_magic(l, (uint32_t)reader_le(&little, 4));
    r = l->is_big_endian ? r : little;
    uint32_t version = u32(l, &r); /* two numbers of 16 bits */
    reader_take(&r, 8);
    uint32_t snaplen = u32(l, &r);
    /* before version 2.4 lengths stood in another order, now and then */
    l->knows_records = is_known && version == (l->is_big_endian ? 0x00020004 : 0x00040002);
    l->length_max = snaplen > 0 && snaplen < LOOKAHEAD_RECORD_MAX ? snaplen : LOOKAHEAD_RECORD_MAX;
}

struct record_header {
    uint32_t second, fraction, captured, wire;
};

static bool read_record_header(const struct lookahead *l, size_t at, struct record_header *ret)
{
    if (at > l->end || l->end - at < l->record_header_len)
        return false;
    struct reader r = reader_of((struct bytes){ l->buffer + at, RECORD_HEADER_LEN });
    ret->second = u32(l, &r);
    ret->fraction = u32(l, &r);
    ret->captured = u32(l, &r);
    ret->wire = u32(l, &r);
    return true;
}

static int64_t time_of(const struct lookahead *l, const struct record_header *h)
{
    return (int64_t)h->second * NS_PER_SECOND +
           (int64_t)h->fraction * (NS_PER_SECOND / (int64_t)l->fractions);
}

/* What a file system leaves where it lost what was written. */
static bool is_hole(const struct record_header *h)
{
    return (h->second | h->fraction | h->captured | h->wire) == 0;
}

static bool is_possible(const struct record_header *h)
{
    return !is_hole(h) && h->captured <= LOOKAHEAD_RECORD_MAX;
}

static bool is_near_in_time(const struct lookahead *l, const struct record_header *h)
{
    int64_t apart_ns = time_of(l, h) - l->latest_ns;
    return l->latest_ns == 0 || (apart_ns < PLAUSIBLE_JUMP_NS && apart_ns > -PLAUSIBLE_JUMP_NS);
}

static bool is_odd(const struct lookahead *l, const struct record_header *h)
{
    return h->fraction >= l->fractions || h->captured > h->wire || h->captured > l->length_max ||
           !is_near_in_time(l, h);
}

/* ---- the buffer ---- */

/* Without memory for it the buffer stays as it is: less is looked at. */
static void grow(struct lookahead *l)
{
    uint8_t *grown = realloc(l->buffer, BUFFER_SIZE);
    if (grown == NULL)
        return;
    l->buffer = grown;
    l->capacity = BUFFER_SIZE;
}

/* Moves what was not given to the front and receives more behind it; false when nothing comes. */
static bool receive(struct lookahead *l)
{
    if (l->ended)
        return false;
    bool is_first = l->start <= FILE_HEADER_LEN && l->end < l->capacity;
    if (l->start > 0) {
        memmove(l->buffer, l->buffer + l->start, l->end - l->start);
        l->end -= l->start;
        l->scanned -= l->start;
        l->start = 0;
    }
    if (!is_first && l->capacity < BUFFER_SIZE)
        grow(l);
    if (l->end == l->capacity)
        return false;
    size_t got = source_read(l->source, l->buffer + l->end, l->capacity - l->end);
    l->end += got;
    l->ended = got == 0;
    return got > 0;
}

/* Passes over n bytes that are given, or left out. */
static void pass(struct lookahead *l, size_t n)
{
    l->start += n;
    l->position += n;
}

/* ---- looking at records ---- */

static void note_time(struct lookahead *l, const struct record_header *h)
{
    l->records++;
    if (h->fraction >= l->fractions)
        return;
    int64_t at_ns = time_of(l, h);
    int64_t late_ns = l->latest_ns - at_ns;
    if (late_ns > 0 && late_ns <= FRAME_LATE_MAX_NS)
        l->late_record = l->records;
    else
        l->latest_ns = at_ns;
}

/* Whether something odd is followed by what can be a record, or by the end of the file. */
static bool is_confirmed(const struct lookahead *l, size_t next)
{
    struct record_header h;
    if (read_record_header(l, next, &h))
        return is_possible(&h);
    return next <= l->end;
}

/* Looks at the records that are there. False when more bytes would help to look at the next. */
static bool scan(struct lookahead *l)
{
    struct record_header h;
    while (l->stop == NULL && read_record_header(l, l->scanned, &h)) {
        size_t next = l->scanned + l->record_header_len + h.captured;
        bool odd = is_odd(l, &h);
        if (odd && is_possible(&h) && next + l->record_header_len > l->end && !l->ended)
            return false;
        l->last_record_position = l->position + (l->scanned - l->start);
        if (is_hole(&h))
            l->stop = "zeros instead of a packet";
        else if (!is_possible(&h))
            l->stop = "impossible length of a packet";
        else if (odd && !is_confirmed(l, next))
            l->stop = "neither a packet here nor behind it";
        else {
            note_time(l, &h);
            l->scanned = next;
        }
    }
    if (l->stop == NULL && l->ended && l->scanned < l->end) /* a header that is cut */
        l->last_record_position = l->position + (l->scanned - l->start);
    return l->stop != NULL;
}

/* Up to where bytes may be given. */
static size_t limit(const struct lookahead *l)
{
    if (!l->knows_records || (l->ended && l->stop == NULL))
        return l->end; /* with a record that is cut: libpcap says so */
    return l->scanned < l->end ? l->scanned : l->end;
}

static void look_ahead(struct lookahead *l)
{
    if (!l->knows_records) {
        if (l->start == l->end)
            (void)receive(l);
        return;
    }
    while (!scan(l) && (l->scanned < l->start + LOOKAHEAD_BYTES || l->end == l->start))
        if (!receive(l)) {
            (void)scan(l); /* what was to be confirmed has nothing behind it */
            break;
        }
}

/* ---- resuming ---- */

enum chain { CHAIN_BROKEN, CHAIN_GOOD, CHAIN_UNKNOWN /* more bytes are needed */ };

static enum chain chain_at(const struct lookahead *l, size_t at)
{
    struct record_header h;
    for (unsigned n = 0; n < CHAIN_RECORDS; n++) {
        if (l->ended && at >= l->end)
            return n > 0 && (at == l->end || n > 1) ? CHAIN_GOOD : CHAIN_BROKEN;
        if (!read_record_header(l, at, &h))
            return l->ended ? CHAIN_BROKEN : CHAIN_UNKNOWN;
        if (!is_possible(&h) || is_odd(l, &h) || h.captured == 0)
            return CHAIN_BROKEN;
        at += l->record_header_len + h.captured;
    }
    return CHAIN_GOOD;
}

/* A header that starts in the middle of many zeros has no length. */
static void pass_zeros(struct lookahead *l)
{
    enum { ZEROS_OF_A_HEADER = 12 };
    size_t n = 0;
    while (l->start + n < l->end && l->buffer[l->start + n] == 0)
        n++;
    if (n > ZEROS_OF_A_HEADER)
        pass(l, n - ZEROS_OF_A_HEADER);
}

bool lookahead_resume(struct lookahead *l)
{
    assert(l->stop != NULL);
    assert(l->start == l->scanned);
    for (;;) {
        pass_zeros(l);
        enum chain chain = chain_at(l, l->start);
        for (bool more = true; chain == CHAIN_UNKNOWN && more; chain = chain_at(l, l->start))
            more = receive(l);
        if (chain == CHAIN_GOOD)
            break;
        if (l->start == l->end && !receive(l))
            return false;
        pass(l, 1);
        l->scanned = l->start;
    }
    l->stop = NULL;
    l->header_given = 0;
    return true;
}

/* ---- for callers ---- */

struct lookahead *lookahead_open(struct source *source)
{
    struct lookahead *l = calloc(1, sizeof *l);
    if (l == NULL)
        return NULL;
    l->source = source;
    l->capacity = BUFFER_FIRST_SIZE;
    l->buffer = malloc(l->capacity);
    if (l->buffer == NULL) {
        free(l);
        return NULL;
    }
    while (l->end < FILE_HEADER_LEN && receive(l))
        continue;
    l->header_given = l->end < FILE_HEADER_LEN ? FILE_HEADER_LEN : 0;
    if (l->header_given == 0) {
        memcpy(l->header, l->buffer, FILE_HEADER_LEN);
        read_file_header(l);
        pass(l, FILE_HEADER_LEN);
        l->scanned = l->start;
    }
    return l;
}

void lookahead_close(struct lookahead *l)
{
    if (l == NULL)
        return;
    free(l->buffer);
    free(l);
}

static size_t give_header(struct lookahead *l, uint8_t *buffer, size_t size)
{
    struct bytes header = { l->header, sizeof l->header };
    struct bytes piece = bytes_first(bytes_after(header, l->header_given), size);
    memcpy(buffer, piece.at, piece.len);
    l->header_given += piece.len;
    return piece.len;
}

size_t lookahead_read(struct lookahead *l, uint8_t *buffer, size_t size)
{
    if (l->header_given < sizeof l->header)
        return give_header(l, buffer, size);
    if (limit(l) < l->start + LOOKAHEAD_BYTES)
        look_ahead(l);
    struct bytes good = { l->buffer + l->start, limit(l) - l->start };
    struct bytes piece = bytes_first(good, size);
    memcpy(buffer, piece.at, piece.len);
    pass(l, piece.len);
    return piece.len;
}

uint64_t lookahead_position(const struct lookahead *l)
{
    return l->position;
}

bool lookahead_knows_records(const struct lookahead *l)
{
    return l->knows_records;
}

uint64_t lookahead_last_record(const struct lookahead *l)
{
    return l->last_record_position;
}

uint64_t lookahead_late_record(const struct lookahead *l)
{
    return l->late_record;
}

const char *lookahead_stop(const struct lookahead *l)
{
    return l->start == l->scanned ? l->stop : NULL;
}
