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

static struct outcome read_through(struct bytes file)
{
    struct source *source = NULL;
    struct outcome o = { 0 };
    uint8_t piece[64];
    write_file(path, file);
    cr_assert_eq(source_open(path, &source), STATUS_OK);
    struct lookahead *l = lookahead_open(source);
    do {
        uint64_t got, given = 0;
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

/*
 * All records before and behind are given. Fewer zeros than a header has can make one together with
 * the first bytes of the next record.
 */
Test(lookahead, records_go_on_behind_what_is_none)
{
    static const uint8_t OCTETS[] = { 0x00, 0x01, 0x77, 0xff };
    for (size_t i = 0; i < sizeof OCTETS; i++) {
        for (size_t garbage = OCTETS[i] == 0 ? 16 : 1; garbage <= 100;
             garbage += garbage < 20 ? 1 : 16) {
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
