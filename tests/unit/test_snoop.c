/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"

#include "capture_builder.h"

#include <criterion/criterion.h>

enum { SECOND = 1700000000, HEADER_LEN = 16, ETHERNET = 4, EN10MB = 1 };

static char directory[PATH_SIZE], path[PATH_SIZE + 16];

static void make_directory(void)
{
    snprintf(path, sizeof path, "%s/a.snoop", test_directory(directory));
}

static void drop_directory(void)
{
    remove_directory(directory);
}

TestSuite(snoop, .init = make_directory, .fini = drop_directory, .timeout = 60);

static void put_header(struct buffer *b, uint32_t version, uint32_t datalink)
{
    put_bytes(b, (struct bytes){ (const uint8_t *)"snoop\0\0\0", 8 });
    put_be(b, 4, version);
    put_be(b, 4, datalink);
}

/* A record of `captured` bytes that are all its length, padded to a multiple of four. */
static void put_record(struct buffer *b, uint32_t wire, uint32_t captured, uint32_t drops,
                       uint32_t second, uint32_t microsecond)
{
    uint32_t padding = (4 - captured % 4) % 4;
    put_be(b, 4, wire);
    put_be(b, 4, captured);
    put_be(b, 4, 24 + captured + padding);
    put_be(b, 4, drops);
    put_be(b, 4, second);
    put_be(b, 4, microsecond);
    put_repeated(b, captured, (uint8_t)captured);
    put_repeated(b, padding, 0xee);
}

static struct capture *open_file(struct bytes content, const char *filter, enum status expected)
{
    struct capture *c = NULL;
    write_file(path, content);
    enum status status = capture_open(path, filter, &c);
    cr_assert_eq(status, expected, "%s", capture_error(c));
    return c;
}

Test(snoop, every_field_of_a_packet_is_given)
{
    struct buffer b = { 0 };
    struct frame f;
    put_header(&b, 2, ETHERNET);
    put_record(&b, 1500, 61, 0, SECOND, 7);
    put_record(&b, 10, 60, 3, 0xfffffff0, 999999); /* after 2038; on the wire less than captured */
    put_record(&b, 60, 60, 3, SECOND, 1000000);    /* no time */
    struct capture *c = open_file(buffer_bytes(&b), NULL, STATUS_OK);
    cr_assert_eq(capture_next(c, &f), STATUS_OK);
    cr_assert_eq(f.at_ns, SECOND * INT64_C(1000000000) + 7000);
    cr_assert_eq(f.wire_len, 1500);
    cr_assert_eq(f.data.len, 61);
    cr_assert_eq(f.data.at[60], 61);
    cr_assert_eq(f.link_type, EN10MB);
    cr_assert_eq(f.number, 1);
    cr_assert_eq(capture_next(c, &f), STATUS_OK);
    cr_assert_eq(f.at_ns, 0xfffffff0 * INT64_C(1000000000) + 999999000);
    cr_assert_eq(f.wire_len, 60);
    cr_assert_eq(capture_next(c, &f), STATUS_OK);
    cr_assert_eq(f.at_ns, FRAME_TIME_INVALID);
    cr_assert_eq(capture_next(c, &f), STATUS_END);
    struct capture_info info = capture_info(c);
    cr_assert_str_eq(info.format, "snoop");
    cr_assert_eq(info.kernel_drops, 3);
    cr_assert_eq(info.packets, 3);
    cr_assert_eq(info.content_len, b.len);
    cr_assert_not(capture_has_late(c));
    capture_close(c);
}

Test(snoop, every_truncation_gives_what_is_whole)
{
    struct buffer b = { 0 };
    size_t ends[4] = { HEADER_LEN };
    put_header(&b, 2, ETHERNET);
    for (uint32_t i = 1; i < 4; i++) {
        put_record(&b, 60, 60, 0, SECOND, i);
        ends[i] = b.len;
    }
    for (size_t len = HEADER_LEN; len <= b.len; len++) {
        struct capture *c = open_file((struct bytes){ b.at, len }, NULL, STATUS_OK);
        struct frame f;
        unsigned whole = 0, given = 0;
        while (whole < 3 && ends[whole + 1] <= len)
            whole++;
        enum status status;
        while ((status = capture_next(c, &f)) == STATUS_OK)
            given++;
        cr_assert_eq(given, whole, "%zu bytes", len);
        cr_assert_eq(status, ends[whole] == len ? STATUS_END : STATUS_DAMAGED, "%zu bytes", len);
        capture_close(c);
    }
}

Test(snoop, impossible_lengths_end_the_file)
{
    static const uint32_t LENGTHS[][2] = {
        { 60, 83 }, { 60, 0 }, { 4, 262148 }, { 0x7fffffff, 84 }
    };
    for (size_t i = 0; i < sizeof LENGTHS / sizeof LENGTHS[0]; i++) {
        struct buffer b = { 0 };
        struct frame f;
        put_header(&b, 2, ETHERNET);
        put_be(&b, 4, 60);
        put_be(&b, 4, LENGTHS[i][0]);
        put_be(&b, 4, LENGTHS[i][1]);
        put_repeated(&b, 200, 0);
        struct capture *c = open_file(buffer_bytes(&b), NULL, STATUS_OK);
        cr_assert_eq(capture_next(c, &f), STATUS_DAMAGED);
        cr_assert_str_eq(capture_reason(c), "packet 1 at byte 16: impossible length of a packet");
        capture_close(c);
    }
}

Test(snoop, what_is_not_read_is_refused_with_the_reason)
{
    static const struct {
        uint32_t version, datalink;
        size_t len;
        const char *words;
    } CASES[] = {
        { 1, ETHERNET, HEADER_LEN, "version other than 2" },
        { 2, 5, HEADER_LEN, "link type other than" },
        { 2, ETHERNET, HEADER_LEN - 1, "half a header" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct buffer b = { 0 };
        put_header(&b, CASES[i].version, CASES[i].datalink);
        struct capture *c = open_file((struct bytes){ b.at, CASES[i].len }, NULL, STATUS_REFUSED);
        cr_assert(strstr(capture_error(c), CASES[i].words) != NULL, "%s", capture_error(c));
        capture_close(c);
    }
}

Test(snoop, filters_apply)
{
    struct buffer b = { 0 };
    struct frame f;
    put_header(&b, 2, ETHERNET);
    put_record(&b, 60, 60, 0, SECOND, 1);
    put_record(&b, 99, 99, 0, SECOND, 2);
    struct capture *c = open_file(buffer_bytes(&b), "greater 90", STATUS_OK);
    cr_assert_eq(capture_next(c, &f), STATUS_OK);
    cr_assert_eq(f.number, 2);
    cr_assert_eq(capture_next(c, &f), STATUS_END);
    capture_close(c);
}
