/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   source -> buffer: | given | good records, not yet given | not looked at | -> lookahead_read()
 *                             start                         scanned         end
 *
 * Records have no magic number. A chain to go on with is several records behind each other with
 * nothing odd about them: a random place passes the first header once in about 2^40.
 *
 * Where bytes were lost, a header claims bytes of the records behind it:
 *
 *   | header, data with bytes lost | header, data | header, data |
 *   | --------------- claims to here --->|
 *                                  '- a chain that goes on across the place
 *
 * So where what is claimed ends in something odd, or what is odd itself claims bytes, a chain is
 * looked for inside of them. If there is one, the record in front of it goes. Without one, a record
 * that is only odd is believed when the next header is possible; many writers are odd in all they
 * write. The file's header is kept, so that libpcap can be opened anew at any record.
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
    CHAIN_LONG = 16,                                 /* proves that what claims all of it is none */
    CHAIN_MAX = 64,                                  /* followed */
    BUFFER_FIRST_SIZE = LOOKAHEAD_BYTES + 32 * 1024, /* for a look at the first frame */
    BUFFER_SIZE = 1024 * 1024,
    NS_PER_SECOND = 1000000000,
};
_Static_assert(BUFFER_SIZE > CHAIN_RECORDS * (LOOKAHEAD_RECORD_MAX + MODIFIED_HEADER_LEN) +
                                 MODIFIED_HEADER_LEN,
               "a chain of the longest records fits into the buffer");

#define POSITION_NONE UINT64_MAX

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
    uint32_t snaplen, length_max;

    struct seen {
        uint64_t records, late_record;
        int64_t latest_ns;  /* 0 before the first time */
        int64_t trusted_ns; /* of the last record with nothing odd about it; 0 */
    } seen, before_last;    /* without the last record */
    uint64_t last_record_position;
    uint64_t claim;     /* where the last record starts that may go; POSITION_NONE */
    uint64_t searched;  /* chains are not looked for in front of this place again */
    uint64_t resume_at; /* where records go on, if that is known; POSITION_NONE */
    bool is_all;        /* no more bytes can come before some are given */
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

/* libpcap would cut away what a record holds beyond the length that the file's header declares. */
static void lift_snaplen(struct lookahead *l)
{
    enum { SNAPLEN_AT = 16 };
    for (unsigned i = 0; i < 4; i++) {
        unsigned shift = 8 * (l->is_big_endian ? 3 - i : i);
        l->header[SNAPLEN_AT + i] = (uint8_t)((uint32_t)LOOKAHEAD_RECORD_MAX >> shift);
    }
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
    l->snaplen = u32(l, &r);
    /* before version 2.4 lengths stood in another order, now and then */
    l->knows_records = is_known && version == (l->is_big_endian ? 0x00020004 : 0x00040002);
    bool is_limit = l->snaplen > 0 && l->snaplen < LOOKAHEAD_RECORD_MAX;
    l->length_max = is_limit ? l->snaplen : LOOKAHEAD_RECORD_MAX;
    if (l->knows_records && is_limit)
        lift_snaplen(l);
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

static bool is_near(int64_t a_ns, int64_t b_ns)
{
    int64_t apart_ns = a_ns - b_ns;
    return apart_ns < PLAUSIBLE_JUMP_NS && apart_ns > -PLAUSIBLE_JUMP_NS;
}

static bool is_near_in_time(const struct lookahead *l, const struct record_header *h)
{
    return l->seen.trusted_ns == 0 || is_near(time_of(l, h), l->seen.trusted_ns);
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

static void note_time(struct seen *seen, int64_t at_ns)
{
    int64_t late_ns = seen->latest_ns - at_ns;
    if (late_ns > 0 && late_ns <= FRAME_LATE_MAX_NS)
        seen->late_record = seen->records;
    else
        seen->latest_ns = at_ns;
}

static uint64_t position_of(const struct lookahead *l, size_t at)
{
    return l->position + at - l->start;
}

static void accept(struct lookahead *l, const struct record_header *h)
{
    l->claim = position_of(l, l->scanned);
    l->before_last = l->seen;
    l->seen.records++;
    if (h->fraction < l->fractions)
        note_time(&l->seen, time_of(l, h));
    l->scanned += l->record_header_len + h->captured;
}

enum chain { CHAIN_BROKEN, CHAIN_GOOD, CHAIN_UNKNOWN /* more bytes are needed */ };

static enum chain more_is_needed(const struct lookahead *l)
{
    return l->ended || l->is_all ? CHAIN_BROKEN : CHAIN_UNKNOWN;
}

/* Whether records follow each other from a place on: so many that are not odd, one of them starting
 * behind another place; or up to the end of the file. */
static enum chain chain_at(const struct lookahead *l, size_t at, unsigned count, size_t beyond)
{
    struct record_header h;
    for (unsigned n = 0; n < CHAIN_MAX; n++) {
        if (l->ended && at >= l->end)
            return n > 0 && (at == l->end || n > 1) ? CHAIN_GOOD : CHAIN_BROKEN;
        if (!read_record_header(l, at, &h))
            return more_is_needed(l);
        if (!is_possible(&h) || is_odd(l, &h) || h.captured == 0)
            return CHAIN_BROKEN;
        if (n + 1 >= count && at > beyond)
            return CHAIN_GOOD;
        at += l->record_header_len + h.captured;
    }
    return CHAIN_BROKEN;
}

/*
 * Whether a record's time lies between those around it, to the second. Where the first bytes of a
 * header are missing, the data in front of it stands in for them, and the time is wrong.
 */
static bool is_in_between(const struct lookahead *l, size_t at)
{
    struct record_header h, next;
    if (!read_record_header(l, at, &h))
        return false;
    int64_t after_ns = time_of(l, &h) - l->before_last.trusted_ns;
    if (l->before_last.trusted_ns != 0 && after_ns < -NS_PER_SECOND)
        return false;
    return !read_record_header(l, at + l->record_header_len + h.captured, &next) ||
           time_of(l, &next) - time_of(l, &h) >= -NS_PER_SECOND;
}

/* Whether a chain is proof that what claims all bytes up to `end` is no record. */
static enum chain proof_at(const struct lookahead *l, size_t at, size_t end)
{
    enum chain chain = chain_at(l, at, CHAIN_RECORDS, end);
    if (chain == CHAIN_BROKEN)
        chain = chain_at(l, at, CHAIN_LONG, 0);
    return chain == CHAIN_GOOD && !is_in_between(l, at) ? CHAIN_BROKEN : chain;
}

/* The first such chain behind `from`. */
static enum chain search(const struct lookahead *l, size_t from, size_t end, size_t *ret_at)
{
    for (size_t at = from + 1; at < end && at < l->end; at++) {
        enum chain chain = proof_at(l, at, end);
        if (chain == CHAIN_BROKEN)
            continue;
        *ret_at = at;
        return chain;
    }
    return end > l->end ? more_is_needed(l) : CHAIN_BROKEN;
}

/* Whether the last record was not given yet, and where it starts. */
static bool has_claim(const struct lookahead *l, size_t *ret_at)
{
    if (l->claim == POSITION_NONE || l->claim < l->position || l->claim < l->searched)
        return false;
    *ret_at = l->start + (size_t)(l->claim - l->position);
    return true;
}

/* Takes back the record in front of the place that is looked at. */
static void take_back(struct lookahead *l)
{
    l->scanned = l->start + (size_t)(l->claim - l->position);
    l->seen = l->before_last;
    l->claim = POSITION_NONE;
}

static void stop(struct lookahead *l, const char *why)
{
    l->last_record_position = position_of(l, l->scanned);
    l->stop = why;
}

/*
 * Looks for records in what the last one, and then the odd one behind it, claim. Stops in front of
 * the one that is none if there are some. CHAIN_BROKEN: there are not.
 */
static enum chain look_inside(struct lookahead *l, size_t odd_end)
{
    size_t claim, at;
    uint64_t odd_position = position_of(l, l->scanned);
    enum chain chain = CHAIN_BROKEN;
    if (l->seen.trusted_ns == 0)
        return chain; /* any time is as good as another */
    if (has_claim(l, &claim)) {
        chain = search(l, claim, l->scanned, &at);
        if (chain == CHAIN_GOOD)
            take_back(l);
    }
    if (chain == CHAIN_BROKEN && odd_position >= l->searched)
        chain = search(l, l->scanned, odd_end, &at);
    if (chain == CHAIN_GOOD) {
        l->resume_at = position_of(l, at);
        stop(l, "bytes are missing in it");
    } else if (chain == CHAIN_BROKEN) {
        l->searched = position_of(l, odd_end);
    }
    return chain;
}

/* Whether records follow each other up to the last byte of the file. */
static bool ends_with_file(const struct lookahead *l, size_t at)
{
    struct record_header h;
    for (unsigned n = 0; n < CHAIN_MAX && read_record_header(l, at, &h); n++) {
        if (!is_possible(&h) || is_odd(l, &h) || h.captured == 0)
            return false;
        at += l->record_header_len + h.captured;
        if (at == l->end)
            return true;
    }
    return false;
}

/* The last record claims more than there is: the file was cut, or bytes of the record are missing
 * and those behind it end where the file does. */
static void look_inside_the_last(struct lookahead *l)
{
    size_t claim;
    if (!has_claim(l, &claim))
        return;
    size_t at = claim + 1;
    while (at < l->end && chain_at(l, at, CHAIN_LONG, 0) != CHAIN_GOOD && !ends_with_file(l, at))
        at++;
    if (at == l->end)
        return;
    take_back(l);
    l->resume_at = position_of(l, at);
    stop(l, "bytes are missing in it");
}

/* Whether something odd is followed by what can be a record, or by the end of the file. */
static bool is_confirmed(const struct lookahead *l, size_t next)
{
    struct record_header h;
    if (read_record_header(l, next, &h))
        return is_possible(&h);
    return next <= l->end;
}

/* Whether a clock was set far away here: records go on near the odd one's time. Then it is trusted.
 */
static enum chain look_at_jump(struct lookahead *l, const struct record_header *h, size_t next)
{
    int64_t before_ns = l->seen.trusted_ns;
    if (h->fraction >= l->fractions || is_near_in_time(l, h))
        return CHAIN_BROKEN;
    l->seen.trusted_ns = time_of(l, h);
    enum chain chain = chain_at(l, next, CHAIN_RECORDS, 0);
    if (chain != CHAIN_GOOD)
        l->seen.trusted_ns = before_ns;
    return chain;
}

/* Decides on a record that is odd or none. False when more bytes would help. */
static bool look_at_odd(struct lookahead *l, const struct record_header *h)
{
    size_t next = l->scanned + l->record_header_len + h->captured;
    bool possible = is_possible(h);
    enum chain behind = possible ? chain_at(l, next, CHAIN_RECORDS, 0) : CHAIN_BROKEN;
    enum chain inside = CHAIN_BROKEN;
    if (behind == CHAIN_BROKEN)
        inside = look_inside(l, possible ? next : l->scanned + 1);
    if (behind == CHAIN_UNKNOWN || inside == CHAIN_UNKNOWN)
        return false;
    if (inside == CHAIN_GOOD)
        return true;
    if (possible && behind == CHAIN_BROKEN) {
        behind = look_at_jump(l, h, next);
        if (behind == CHAIN_UNKNOWN)
            return false;
    }
    bool is_first = position_of(l, l->scanned) == FILE_HEADER_LEN; /* where one must be */
    bool is_there = is_first ? next <= l->end : is_confirmed(l, next);
    if (possible && (behind == CHAIN_GOOD || is_there))
        accept(l, h);
    else
        stop(l, is_hole(h)  ? "zeros instead of a packet"
                : !possible ? "impossible length of a packet"
                            : "neither a packet here nor behind it");
    return true;
}

/* Looks at the records that are there. False when more bytes would help to look at the next. */
static bool scan(struct lookahead *l)
{
    struct record_header h;
    while (l->stop == NULL && read_record_header(l, l->scanned, &h)) {
        l->last_record_position = position_of(l, l->scanned);
        if (is_possible(&h) && !is_odd(l, &h)) {
            accept(l, &h);
            l->seen.trusted_ns = time_of(l, &h);
        } else if (!look_at_odd(l, &h)) {
            return false;
        }
    }
    if (l->stop == NULL && l->ended && l->scanned > l->end)
        look_inside_the_last(l);
    if (l->stop == NULL && l->ended && l->scanned < l->end) /* a header that is cut */
        l->last_record_position = position_of(l, l->scanned);
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
            l->is_all = true; /* what was to be confirmed has nothing behind it */
            (void)scan(l);
            l->is_all = false;
            break;
        }
}

/* ---- resuming ---- */

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

/* Goes to the next place where a chain starts; false when there is none. */
static bool find_chain(struct lookahead *l)
{
    for (;;) {
        pass_zeros(l);
        enum chain chain = chain_at(l, l->start, CHAIN_RECORDS, 0);
        for (bool more = true; chain == CHAIN_UNKNOWN && more;
             chain = chain_at(l, l->start, CHAIN_RECORDS, 0))
            more = receive(l);
        if (chain == CHAIN_GOOD)
            return true;
        if (l->start == l->end && !receive(l))
            return false;
        pass(l, 1);
        l->scanned = l->start;
    }
}

bool lookahead_resume(struct lookahead *l)
{
    assert(l->stop != NULL);
    assert(l->start == l->scanned);
    if (l->resume_at != POSITION_NONE)
        pass(l, (size_t)(l->resume_at - l->position));
    else if (!find_chain(l))
        return false;
    l->scanned = l->start;
    l->resume_at = l->claim = POSITION_NONE;
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
    l->claim = l->resume_at = POSITION_NONE;
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

bool lookahead_take(struct lookahead *l, struct frame *ret_frame)
{
    static const bool THIS_IS_BIG_ENDIAN = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    struct record_header h;
    bool is_plain = l->knows_records && l->is_big_endian == THIS_IS_BIG_ENDIAN &&
                    l->record_header_len == RECORD_HEADER_LEN;
    if (!is_plain || l->header_given < sizeof l->header)
        return false;
    if (limit(l) < l->start + LOOKAHEAD_BYTES)
        look_ahead(l);
    if (!read_record_header(l, l->start, &h))
        return false;
    size_t size = RECORD_HEADER_LEN + (size_t)h.captured;
    struct bytes good = { l->buffer + l->start, limit(l) - l->start };
    if (size > good.len || l->start + size > l->scanned)
        return false;
    *ret_frame = (struct frame){
        .at_ns = h.fraction < l->fractions ? time_of(l, &h) : FRAME_TIME_INVALID,
        .wire_len = h.wire > h.captured ? h.wire : h.captured,
        .data = bytes_after(bytes_first(good, size), RECORD_HEADER_LEN),
    };
    pass(l, size);
    return true;
}

uint64_t lookahead_position(const struct lookahead *l)
{
    return l->position;
}

bool lookahead_knows_records(const struct lookahead *l)
{
    return l->knows_records;
}

uint32_t lookahead_snaplen(const struct lookahead *l)
{
    return l->snaplen;
}

uint64_t lookahead_last_record(const struct lookahead *l)
{
    return l->last_record_position;
}

uint64_t lookahead_late_record(const struct lookahead *l)
{
    return l->seen.late_record;
}

const char *lookahead_stop(const struct lookahead *l)
{
    return l->start == l->scanned ? l->stop : NULL;
}
