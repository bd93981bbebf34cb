/* SPDX-License-Identifier: Apache-2.0 */
#include "lookahead.h"

#include "capture_builder.h"

#include <criterion/criterion.h>

enum { EN10MB = 1, SECOND = 1700000000, HEADER_LEN = 24, FRAME_LEN = 41, RECORD_LEN = 57 };

static char directory[PATH_SIZE], path[PATH_SIZE + 16];

static void make_directory(void)
{
    snprintf(path, sizeof path, "%s/a.pcap", test_directory(directory));
}

static void drop_directory(void)
{
    remove_directory(directory);
}

TestSuite(lookahead, .init = make_directory, .fini = drop_directory, .timeout = 60);

static const struct pcap_style STYLE = { .link_type = EN10MB };

/* Records of FRAME_LEN bytes each, one a second. */
static void put_records(struct buffer *b, unsigned count)
{
    uint8_t frame[FRAME_LEN];
    memset(frame, 0x77, sizeof frame);
    for (unsigned i = 0; i < count; i++)
        put_pcap_record(b, &STYLE, SECOND + i, 0, (struct bytes){ frame, FRAME_LEN }, FRAME_LEN);
}

/* What is given of a file, without the headers that are given again. */
struct outcome {
    uint64_t given, stops, first_stop, end;
    const char *why; /* of the first stop */
};

/* The file's header, then, if they are to be taken, records as long as that goes. */
static uint64_t take_records(struct lookahead *l, struct bytes file)
{
    uint8_t header[HEADER_LEN];
    struct frame f;
    uint64_t given = lookahead_read(l, header, sizeof header);
    for (uint64_t at = lookahead_position(l); lookahead_take(l, &f); at = lookahead_position(l)) {
        uint64_t size = lookahead_position(l) - at;
        struct bytes record = bytes_first(bytes_after(file, (size_t)at), (size_t)size);
        cr_assert(bytes_equal(f.data, bytes_after(record, size - f.data.len)));
        given += size;
    }
    return given;
}

static struct outcome read_in_one_way(struct bytes file, bool takes)
{
    struct source *source = NULL;
    struct outcome o = { 0 };
    uint8_t piece[64];
    cr_assert_eq(source_open(path, &source), STATUS_OK);
    struct lookahead *l = lookahead_open(source);
    do {
        uint64_t got, given = takes ? take_records(l, file) : 0;
        while ((got = lookahead_read(l, piece, sizeof piece)) > 0)
            given += got;
        o.given += given - (given < HEADER_LEN ? given : HEADER_LEN);
        if (lookahead_stop(l) != NULL && o.stops++ == 0) {
            o.first_stop = lookahead_position(l);
            o.why = lookahead_stop(l);
        }
    } while (lookahead_stop(l) != NULL && lookahead_resume(l));
    o.end = lookahead_position(l);
    lookahead_close(l);
    source_close(source);
    return o;
}

/* Records that are taken are those that would have been read. */
static struct outcome read_through(struct bytes file)
{
    write_file(path, file);
    struct outcome read = read_in_one_way(file, false), taken = read_in_one_way(file, true);
    cr_assert_eq(taken.given, read.given);
    cr_assert_eq(taken.stops, read.stops);
    cr_assert_eq(taken.first_stop, read.first_stop);
    cr_assert_eq(taken.end, read.end);
    cr_assert_eq(taken.why, read.why);
    return read;
}

static struct buffer file_of(unsigned records)
{
    struct buffer b = { 0 };
    put_pcap_header(&b, &STYLE);
    put_records(&b, records);
    return b;
}

Test(lookahead, every_truncation_is_given_whole)
{
    struct buffer b = file_of(3);
    for (size_t n = HEADER_LEN; n <= b.len; n++) {
        struct outcome o = read_through((struct bytes){ b.at, n });
        cr_expect_eq(o.given, n - HEADER_LEN, "%zu bytes: %llu", n, (unsigned long long)o.given);
        cr_expect_eq(o.stops, 0);
    }
}

/* All records before and behind are given. */
Test(lookahead, records_go_on_behind_what_is_none)
{
    static const uint8_t OCTETS[] = { 0x00, 0x01, 0x77, 0xff };
    for (size_t i = 0; i < sizeof OCTETS; i++) {
        for (size_t garbage = 1; garbage <= 100; garbage += garbage < 20 ? 1 : 16) {
            struct buffer b = file_of(3);
            size_t stop = b.len;
            put_repeated(&b, garbage, OCTETS[i]);
            put_records(&b, 5);
            struct outcome o = read_through(buffer_bytes(&b));
            cr_expect_eq(o.stops, 1, "%zu of %02x", garbage, OCTETS[i]);
            cr_expect_eq(o.first_stop, stop, "%zu of %02x", garbage, OCTETS[i]);
            cr_expect_eq(o.given, 8 * RECORD_LEN, "%zu of %02x", garbage, OCTETS[i]);
            cr_expect_eq(o.end, b.len);
        }
    }
}

/* A file of records that are unlike each other, and where each starts; [RECORDS] is its end. */
enum { RECORDS = 16, DAMAGED = 6, SECONDS_LEN = 4 };

struct various {
    struct buffer file;
    size_t at[RECORDS + 1];
};

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % n;
}

/* zeros: of eight bytes of the packets, so many are 0. */
static struct various various_records(uint64_t seed, unsigned zeros)
{
    struct various v = { 0 };
    put_pcap_header(&v.file, &STYLE);
    for (unsigned i = 0; i < RECORDS; i++) {
        uint8_t frame[160];
        uint32_t len = 40 + random_below(&seed, sizeof frame - 40);
        for (uint32_t k = 0; k < len; k++)
            frame[k] = random_below(&seed, 8) < zeros ? 0 : (uint8_t)random_below(&seed, 256);
        v.at[i] = v.file.len;
        put_pcap_record(&v.file, &STYLE, SECOND + i / 4, random_below(&seed, 1000000),
                        (struct bytes){ frame, len }, len + (i % 3 == 0 ? 60 : 0));
    }
    v.at[RECORDS] = v.file.len;
    return v;
}

/* What lookahead.c gives of bytes that lie in `path`, but for the file's header. */
static struct buffer given_of(struct bytes file)
{
    struct source *source = NULL;
    struct buffer out = { 0 };
    uint8_t piece[4096];
    write_file(path, file);
    cr_assert_eq(source_open(path, &source), STATUS_OK);
    struct lookahead *l = lookahead_open(source);
    do {
        size_t before = out.len;
        for (size_t got; (got = lookahead_read(l, piece, sizeof piece)) > 0;)
            put_bytes(&out, (struct bytes){ piece, got });
        memmove(out.at + before, out.at + before + HEADER_LEN, out.len - before - HEADER_LEN);
        out.len -= HEADER_LEN;
    } while (lookahead_stop(l) != NULL && lookahead_resume(l));
    lookahead_close(l);
    source_close(source);
    return out;
}

/* How many records, but for those from `first` to `last`, are not given in their order. */
static unsigned missing_records(const struct various *v, struct bytes given, unsigned first,
                                unsigned last)
{
    unsigned missing = 0;
    for (unsigned i = 0; i < RECORDS; i++) {
        struct bytes record = { v->file.at + v->at[i], v->at[i + 1] - v->at[i] };
        if (i >= first && i <= last)
            continue;
        const uint8_t *found = memmem(given.at, given.len, record.at, record.len);
        missing += found == NULL;
        if (found != NULL)
            given = bytes_after(given, (size_t)(found - given.at) + record.len);
    }
    return missing;
}

/* The record that holds a byte of the file. */
static unsigned record_of(const struct various *v, size_t at)
{
    unsigned i = 0;
    while (i + 1 < RECORDS && v->at[i + 1] <= at)
        i++;
    return i;
}

enum damage { LOST, INSERTED_ZEROS, ZEROED, DAMAGES };

static struct buffer damage(const struct various *v, enum damage how, size_t at, size_t n)
{
    struct bytes file = buffer_bytes(&v->file);
    size_t behind = how == INSERTED_ZEROS ? at : at + n;
    struct buffer b = { 0 };
    put_bytes(&b, bytes_first(file, at));
    if (how != LOST)
        put_repeated(&b, n, 0);
    put_bytes(&b, bytes_after(file, behind));
    return b;
}

/*
 * At places from the header of a record to the one behind it. Zeros that only stand where a record
 * begins damage none. Without the first bytes of its seconds a record may start with the last ones
 * of the one in front of it, if that fits the time: one of the two is damaged then.
 */
static void try_damage(const struct various *v, enum damage how, unsigned record)
{
    for (size_t n = 1; n <= 64; n += n < 20 ? 1 : 11)
        for (size_t at = v->at[record]; at < v->at[record + 1] && at + n < v->file.len;
             at += at < v->at[record] + 20 ? 1 : 7) {
            unsigned first = record_of(v, at), last = record_of(v, at + n - 1);
            bool between = how == INSERTED_ZEROS && at == v->at[first];
            first -= how == LOST && at < v->at[first] + SECONDS_LEN;
            struct buffer b = damage(v, how, at, n);
            struct buffer given = given_of(buffer_bytes(&b));
            unsigned missing = missing_records(v, buffer_bytes(&given), between ? RECORDS : first,
                                               how == INSERTED_ZEROS ? first : last);
            cr_assert_eq(missing, 0, "damage %d of %zu bytes at %zu of record %u: %u missing", how,
                         n, at - v->at[first], first, missing);
        }
}

Test(lookahead, all_records_but_the_damaged_ones_are_given)
{
    for (unsigned zeros = 0; zeros <= 4; zeros += 4)
        for (enum damage how = LOST; how < DAMAGES; how++) {
            struct various v = various_records(zeros + 1, zeros);
            try_damage(&v, how, DAMAGED);
            try_damage(&v, how, RECORDS - 5);
            if (how == LOST)
                try_damage(&v, how, RECORDS - 2);
        }
}

Test(lookahead, a_capture_inside_of_packets_is_no_record)
{
    /* packets that carry the records of a capture of the same hour, in front of damage */
    struct various inner = various_records(3, 2);
    struct bytes carried = { inner.file.at, 700 };
    struct buffer b = file_of(2);
    put_pcap_record(&b, &STYLE, SECOND + 2, 0, carried, (uint32_t)carried.len);
    size_t good = b.len;
    put_repeated(&b, 40, 0xff);
    put_records(&b, 5);
    struct buffer given = given_of(buffer_bytes(&b));
    cr_assert_eq(given.len, good - HEADER_LEN + 5 * RECORD_LEN);
    cr_assert_eq(memcmp(given.at, b.at + HEADER_LEN, good - HEADER_LEN), 0);
}

Test(lookahead, a_writer_that_is_odd_in_all_it_writes_is_believed)
{
    struct buffer b = { 0 };
    put_pcap_header(&b, &STYLE);
    size_t begin = b.len;
    for (unsigned i = 0; i < 50; i++) {
        put_le(&b, 4, SECOND + i * 200000); /* days apart */
        put_le(&b, 4, 0);
        put_le(&b, 4, FRAME_LEN);
        put_le(&b, 4, FRAME_LEN - 1); /* less on the wire than captured */
        put_repeated(&b, FRAME_LEN, 0x77);
    }
    struct outcome o = read_through(buffer_bytes(&b));
    cr_assert_eq(o.stops, 0);
    cr_assert_eq(o.given, b.len - begin);
}

Test(lookahead, a_stop_says_why)
{
    struct buffer zeros = file_of(2), long_record = file_of(2), unconfirmed = file_of(2);
    put_repeated(&zeros, 30, 0);
    cr_expect_str_eq(read_through(buffer_bytes(&zeros)).why, "zeros instead of a packet");
    put_le(&long_record, 8, SECOND);
    put_le(&long_record, 4, LOOKAHEAD_RECORD_MAX + 1);
    put_le(&long_record, 4, LOOKAHEAD_RECORD_MAX + 1);
    struct outcome o = read_through(buffer_bytes(&long_record));
    cr_expect_str_eq(o.why, "impossible length of a packet");
    cr_expect_eq(o.given, 2 * RECORD_LEN);
    put_le(&unconfirmed, 8, 5); /* years before the others */
    put_le(&unconfirmed, 4, 4);
    put_le(&unconfirmed, 4, 4);
    put_repeated(&unconfirmed, 40, 0xee);
    o = read_through(buffer_bytes(&unconfirmed));
    cr_expect_str_eq(o.why, "neither a packet here nor behind it");
    cr_expect_eq(o.given, 2 * RECORD_LEN);
}

Test(lookahead, files_without_a_header_are_given_as_they_are)
{
    uint8_t text[HEADER_LEN + 10];
    memset(text, 'x', sizeof text);
    for (size_t n = 0; n <= sizeof text; n++) {
        write_file(path, (struct bytes){ text, n });
        struct source *source = NULL;
        cr_assert_eq(source_open(path, &source), STATUS_OK);
        struct lookahead *l = lookahead_open(source);
        cr_expect_not(lookahead_knows_records(l));
        uint8_t all[sizeof text + 1];
        size_t len = 0;
        for (size_t got; (got = lookahead_read(l, all + len, sizeof all - len)) > 0;)
            len += got;
        cr_expect_eq(len, n);
        cr_expect_eq(memcmp(all, text, n), 0);
        cr_expect_null(lookahead_stop(l));
        lookahead_close(l);
        source_close(source);
    }
}

Test(lookahead, times_and_lengths_of_taken_records_are_those_in_their_headers)
{
    struct buffer b = file_of(0);
    struct source *source = NULL;
    struct frame f;
    uint8_t frame[FRAME_LEN] = { 0 };
    put_pcap_record(&b, &STYLE, SECOND, 999999, (struct bytes){ frame, FRAME_LEN }, 1500);
    put_pcap_record(&b, &STYLE, SECOND, 1000000, (struct bytes){ frame, FRAME_LEN }, 7);
    put_pcap_record(&b, &STYLE, UINT32_MAX, 1, (struct bytes){ frame, 0 }, 0);
    write_file(path, buffer_bytes(&b));
    cr_assert_eq(source_open(path, &source), STATUS_OK);
    struct lookahead *l = lookahead_open(source);
    cr_assert_not(lookahead_take(l, &f), "the header comes first");
    cr_assert_eq(lookahead_read(l, frame, HEADER_LEN), HEADER_LEN);
    cr_assert(lookahead_take(l, &f));
    cr_expect_eq(f.at_ns, SECOND * INT64_C(1000000000) + 999999000);
    cr_expect_eq(f.wire_len, 1500);
    cr_assert(lookahead_take(l, &f));
    cr_expect_eq(f.at_ns, FRAME_TIME_INVALID);
    cr_expect_eq(f.wire_len, FRAME_LEN, "not less than what was captured");
    cr_assert(lookahead_take(l, &f));
    cr_expect_eq(f.at_ns, UINT32_MAX * INT64_C(1000000000) + 1000);
    cr_assert_not(lookahead_take(l, &f));
    lookahead_close(l);
    source_close(source);
}
