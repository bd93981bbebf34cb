/* SPDX-License-Identifier: Apache-2.0 */
#include "pcapng.h"

#include "capture.h"
#include "pcapng_builder.h"

#include <criterion/criterion.h>

#define COUNT(array) (sizeof array / sizeof *array)

enum { EN10MB = 1, LINKTYPE_RAW = 101, DLT_OF_RAW = 12, LINUX_SLL = 113 };
enum { MICROSECONDS = 6, NANOSECONDS = 9, SECOND = 1700000000 };

static char directory[PATH_SIZE];
static char path[PATH_SIZE + 16];

static void make_directory(void)
{
    test_directory(directory);
    snprintf(path, sizeof path, "%s/a.pcapng", directory);
}

static void drop_directory(void)
{
    remove_directory(directory);
}

TestSuite(pcapng, .init = make_directory, .fini = drop_directory, .timeout = 60);

static struct bytes data_of(const char *text)
{
    return (struct bytes){ (const uint8_t *)text, strlen(text) };
}

static struct capture *open_capture(const struct ng_file *f, const char *filter,
                                    enum status expected)
{
    struct capture *c = NULL;
    write_file(path, buffer_bytes(&f->b));
    enum status status = capture_open(path, filter, &c);
    cr_assert_eq(status, expected, "%d, %s", status, capture_error(c));
    return c;
}

static struct frame next_frame(struct capture *c)
{
    struct frame f = { 0 };
    enum status status = capture_next(c, &f);
    cr_assert_eq(status, STATUS_OK, "%d, %s", status, capture_error(c));
    return f;
}

static void assert_end(struct capture *c, enum status expected, const char *reason)
{
    struct frame f;
    enum status status = capture_next(c, &f);
    cr_assert_eq(status, expected, "%d, %s", status, capture_error(c));
    cr_assert_not_null(strstr(capture_reason(c), reason), "%s", capture_reason(c));
    cr_assert_eq(capture_next(c, &f), expected, "an end is final");
    struct ng_file file = { 0 };
    FILE *stored = fopen(path, "rb");
    file.b.len = fread(file.b.at, 1, sizeof file.b.at, stored);
    fclose(stored);
    struct hash128 expected_hash = hash_stable(buffer_bytes(&file.b));
    struct capture_info info = capture_info(c);
    cr_assert_eq(memcmp(&expected_hash, &info.content, sizeof expected_hash), 0, "hash of all");
    capture_close(c);
}

static void assert_frame(struct frame f, uint64_t number, int link_type, int64_t at_ns,
                         const char *data)
{
    cr_assert_eq(f.number, number);
    cr_assert_eq(f.link_type, link_type, "%llu", (unsigned long long)number);
    cr_assert_eq(f.at_ns, at_ns, "%llu: %lld", (unsigned long long)number, (long long)f.at_ns);
    cr_assert(bytes_equal(f.data, data_of(data)), "%llu", (unsigned long long)number);
}

/* Interfaces that differ in everything, where libpcap gives up; and every kind of block. */
static struct ng_file sample(bool is_big_endian)
{
    struct ng_file f = { 0 };
    ng_section(&f, is_big_endian);
    ng_interface(&f, EN10MB, 96, MICROSECONDS, 0);
    ng_interface(&f, LINKTYPE_RAW, 0, NANOSECONDS, 0);
    ng_packet(&f, 0, SECOND * UINT64_C(1000000) + 7, data_of("one"), 1514);
    ng_secrets(&f, 0x544c534b, "CLIENT_RANDOM 00 11");
    ng_packet(&f, 1, SECOND * UINT64_C(1000000000) + 8, data_of("three"), 5);
    ng_unknown(&f, 0x0bad, 21);
    ng_interface(&f, LINUX_SLL, 65535, MICROSECONDS, 0);
    ng_old_packet(&f, 2, SECOND * UINT64_C(1000000) + 9, data_of("eleven"), 6);
    ng_simple_packet(&f, data_of("nothing"), 7);
    ng_statistics(&f, 0, 3);
    ng_statistics(&f, 0, 5);
    ng_statistics(&f, 2, 2);
    return f;
}

static void assert_sample(struct capture *c, uint64_t before)
{
    static const int64_t START = SECOND * INT64_C(1000000000);
    struct frame f = next_frame(c);
    assert_frame(f, before + 1, EN10MB, START + 7000, "one");
    cr_assert_eq(f.wire_len, 1514);
    cr_assert_eq(f.interface_id, before / 4 * 3, "counted over all sections");
    f = next_frame(c);
    assert_frame(f, before + 2, DLT_OF_RAW, START + 8, "three");
    cr_assert_eq(f.interface_id, before / 4 * 3 + 1);
    assert_frame(next_frame(c), before + 3, LINUX_SLL, START + 9000, "eleven");
    assert_frame(next_frame(c), before + 4, EN10MB, FRAME_TIME_INVALID, "nothing");
}

Test(pcapng, interfaces_that_differ_in_both_byte_orders)
{
    for (int is_big_endian = 0; is_big_endian < 2; is_big_endian++) {
        struct ng_file f = sample(is_big_endian != 0);
        struct capture *c = open_capture(&f, NULL, STATUS_OK);
        cr_assert_eq(capture_secrets(c).len, 0);
        assert_sample(c, 0);
        cr_assert(bytes_equal(capture_secrets(c), data_of("CLIENT_RANDOM 00 11\n")));
        struct frame frame;
        cr_assert_eq(capture_next(c, &frame), STATUS_END);
        struct capture_info info = capture_info(c);
        cr_assert_str_eq(info.format, "pcapng");
        cr_assert_eq(info.link_type, EN10MB);
        cr_assert_eq(info.link_type_count, 3);
        cr_assert_eq(info.link_types[1], DLT_OF_RAW);
        cr_assert_eq(info.snaplen, 65535);
        cr_assert_eq(info.kernel_drops, 5 + 2);
        cr_assert_eq(info.packets, 4);
        assert_end(c, STATUS_END, "");
    }
}

Test(pcapng, sections_follow_each_other_in_any_byte_order)
{
    struct ng_file f = sample(true), second = sample(false), third = sample(true);
    put_bytes(&f.b, buffer_bytes(&second.b));
    put_bytes(&f.b, buffer_bytes(&third.b));
    struct capture *c = open_capture(&f, NULL, STATUS_OK);
    assert_sample(c, 0);
    assert_sample(c, 4);
    assert_sample(c, 8);
    struct frame frame;
    cr_assert_eq(capture_next(c, &frame), STATUS_END);
    cr_assert_eq(capture_info(c).kernel_drops, 3 * 7);
    assert_end(c, STATUS_END, "");
}

Test(pcapng, interfaces_of_a_section_end_with_it)
{
    struct ng_file f = sample(false);
    ng_section(&f, false);
    size_t bad = f.b.len;
    ng_packet(&f, 0, 0, data_of("x"), 1);
    struct capture *c = open_capture(&f, NULL, STATUS_OK);
    assert_sample(c, 0);
    char reason[80];
    snprintf(reason, sizeof reason, "packet 5 at byte %zu: packet of interface 0", bad);
    assert_end(c, STATUS_DAMAGED, reason);
}

Test(pcapng, clocks_of_every_resolution)
{
    static const struct {
        uint8_t resolution;
        int64_t offset_seconds;
        uint64_t ticks;
        int64_t expected;
    } CASES[] = {
        { 0, 0, 5, 5000000000 },
        { 3, 0, 5, 5000000 },
        { 6, 0, 5, 5000 },
        { 9, 0, 5, 5 },
        { 12, 0, 5999, 5 },
        { 19, 0, UINT64_MAX, 1844674407 },
        { 28, 0, UINT64_MAX, 1 },
        { 127, 0, 5, 0 },
        { 0x80, 0, 5, 5000000000 },
        { 0x81, 0, 5, 2500000000 },
        { 0x80 + 20, 0, (7 << 20) + (1 << 19), 7500000000 },
        { 0x80 + 40, 0, (UINT64_C(7) << 40) + (UINT64_C(1) << 39), 7500000000 },
        { 0x80 + 63, 0, (UINT64_C(1) << 63) + (UINT64_C(1) << 62), 1500000000 },
        { 0x80 + 64, 0, UINT64_C(1) << 63, 500000000 },
        { 0xff, 0, UINT64_MAX, 0 },
        { 6, 100, 5, 100000005000 },
        { 6, -100, 100000005, 5000 },
        { 6, -100, 99999999, FRAME_TIME_INVALID }, /* before 1970 */
        { 9, 0, INT64_MAX, INT64_MAX },
        { 9, 0, UINT64_C(1) << 63, FRAME_TIME_INVALID },
        { 9, 1, INT64_MAX, FRAME_TIME_INVALID },
        { 6, 0, UINT64_MAX, FRAME_TIME_INVALID },
        { 0x80, 0, UINT64_MAX, FRAME_TIME_INVALID },
        { 6, INT64_MAX, 5, FRAME_TIME_INVALID },
        { 6, INT64_MIN, 5, FRAME_TIME_INVALID },
    };
    struct ng_file f = { 0 };
    ng_section(&f, false);
    for (size_t i = 0; i < COUNT(CASES); i++) {
        ng_interface(&f, EN10MB, 0, CASES[i].resolution, CASES[i].offset_seconds);
        ng_packet(&f, (uint32_t)i, CASES[i].ticks, data_of("x"), 1);
    }
    struct capture *c = open_capture(&f, NULL, STATUS_OK);
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct frame frame = next_frame(c);
        cr_assert_eq(frame.at_ns, CASES[i].expected, "%zu: %lld", i, (long long)frame.at_ns);
    }
    assert_end(c, STATUS_END, "");
}

/* Whole packets before the cut are given; a cut between blocks is an end, any other is damage. */
Test(pcapng, every_truncation_of_a_file)
{
    struct ng_file whole = sample(true);
    size_t ends[16], packets[16], end_count = 0, packet_count = 0;
    for (size_t at = 0; at < whole.b.len;) {
        struct reader r = reader_of(bytes_after(buffer_bytes(&whole.b), at));
        uint32_t type = reader_u32(&r);
        at += reader_u32(&r);
        packet_count += type == 2 || type == 3 || type == 6;
        ends[end_count] = at;
        packets[end_count++] = packet_count;
    }
    cr_assert_eq(packet_count, 4);
    for (size_t len = 1; len < whole.b.len; len++) {
        struct ng_file cut = whole;
        cut.b.len = len;
        size_t block = 0;
        while (block < end_count && ends[block] <= len)
            block++;
        if (block == 0) {
            struct capture *c = open_capture(&cut, NULL, STATUS_REFUSED);
            capture_close(c);
            continue;
        }
        struct capture *c = open_capture(&cut, NULL, STATUS_OK);
        for (size_t i = 0; i < packets[block - 1]; i++)
            next_frame(c);
        char reason[80];
        snprintf(reason, sizeof reason, "packet %zu at byte %zu: the file ends inside",
                 packets[block - 1] + 1, ends[block - 1]);
        if (ends[block - 1] == len)
            assert_end(c, STATUS_END, "");
        else
            assert_end(c, STATUS_DAMAGED, reason);
    }
}

/* Changes one octet of the sample; it must come to an end with frames in memory alone. */
Test(pcapng, damaged_files_come_to_an_end)
{
    struct ng_file whole = sample(false);
    for (size_t at = 0; at < whole.b.len; at++) {
        for (unsigned value = 0; value < 256; value += 85) {
            struct ng_file f = whole;
            f.b.at[at] = (uint8_t)value;
            write_file(path, buffer_bytes(&f.b));
            struct capture *c = NULL;
            struct frame frame;
            if (capture_open(path, NULL, &c) == STATUS_OK) {
                while (capture_next(c, &frame) == STATUS_OK)
                    hash_stable(frame.data); /* reads it all */
            }
            capture_close(c);
        }
    }
}

Test(pcapng, impossible_blocks_end_the_file)
{
    static const struct {
        uint32_t len, len_again;
        const char *reason;
    } CASES[] = {
        { 0, 0, "impossible block length 0" },
        { 8, 8, "impossible block length 8" },
        { 17, 17, "impossible block length 17" },
        { 16, 20, "block length 16 at its start, 20 at its end" },
        { PCAPNG_BLOCK_MAX + 4, 0, "block of 16777220 bytes, more than 16777216" },
        { 0xfffffffc, 0, "block of 4294967292 bytes, more than 16777216" },
        { PCAPNG_BLOCK_MAX, 0, "the file ends inside a block: 16 of 16777216 bytes" },
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct ng_file f = sample(false);
        ng_put(&f, 4, 0x0bad);
        ng_put(&f, 4, CASES[i].len);
        ng_put(&f, 4, 0);
        ng_put(&f, 4, CASES[i].len_again);
        struct capture *c = open_capture(&f, NULL, STATUS_OK);
        assert_sample(c, 0);
        assert_end(c, STATUS_DAMAGED, CASES[i].reason);
    }
}

Test(pcapng, sections_that_are_none)
{
    struct ng_file f = { 0 }, original;
    ng_section(&f, false);
    original = f;
    f.b.at[8] ^= 1; /* byte-order magic */
    capture_close(open_capture(&f, NULL, STATUS_REFUSED));
    f = original;
    f.b.at[12] = 2; /* major version */
    struct capture *c = open_capture(&f, NULL, STATUS_REFUSED);
    cr_assert_not_null(strstr(capture_reason(c), "version 2.0"));
    capture_close(c);

    f = sample(false); /* later in the file it is damage */
    original.b.at[12] = 2;
    put_bytes(&f.b, buffer_bytes(&original.b));
    c = open_capture(&f, NULL, STATUS_OK);
    assert_sample(c, 0);
    assert_end(c, STATUS_DAMAGED, "pcapng version 2.0 is not known");
}

Test(pcapng, a_section_without_interfaces_is_a_capture_without_packets)
{
    struct ng_file f = { 0 };
    ng_section(&f, false);
    struct capture *c = open_capture(&f, NULL, STATUS_OK);
    cr_assert_eq(capture_info(c).link_type, -1);
    cr_assert_eq(capture_info(c).kernel_drops, -1);
    assert_end(c, STATUS_END, "");
    c = open_capture(&f, "tcp port 443", STATUS_OK);
    assert_end(c, STATUS_END, "");
    capture_close(open_capture(&f, "tcp prot 443", STATUS_USAGE));
}

Test(pcapng, packets_that_do_not_fit_their_block)
{
    for (unsigned kind = 0; kind < 2; kind++) {
        struct ng_file f = sample(false);
        size_t at = f.b.len;
        if (kind == 0) {
            ng_packet(&f, 0, 0, data_of("x"), 1);
            f.b.at[at + 20] = 200; /* captured length */
        } else {
            ng_simple_packet(&f, data_of("x"), 77);
        }
        struct capture *c = open_capture(&f, NULL, STATUS_OK);
        assert_sample(c, 0);
        assert_end(c, STATUS_DAMAGED, "is longer than its block");
    }
}

Test(pcapng, a_simple_packet_is_cut_to_its_interfaces_snaplen)
{
    struct ng_file f = { 0 };
    ng_section(&f, false);
    ng_interface(&f, EN10MB, 4, MICROSECONDS, 0);
    ng_simple_packet(&f, data_of("abcd"), 900);
    struct capture *c = open_capture(&f, NULL, STATUS_OK);
    struct frame frame = next_frame(c);
    assert_frame(frame, 1, EN10MB, FRAME_TIME_INVALID, "abcd");
    cr_assert_eq(frame.wire_len, 900);
    assert_end(c, STATUS_END, "");
}

Test(pcapng, too_many_interfaces_end_the_file)
{
    FILE *file = fopen(path, "wb");
    struct ng_file f = { 0 }, one = { 0 };
    ng_section(&f, false);
    ng_interface(&one, EN10MB, 0, MICROSECONDS, 0);
    fwrite(f.b.at, 1, f.b.len, file);
    for (unsigned i = 0; i <= PCAPNG_INTERFACES_MAX; i++)
        fwrite(one.b.at, 1, one.b.len, file);
    fclose(file);
    struct capture *c = NULL;
    struct frame frame;
    cr_assert_eq(capture_open(path, NULL, &c), STATUS_OK);
    cr_assert_eq(capture_next(c, &frame), STATUS_DAMAGED);
    cr_assert_not_null(strstr(capture_reason(c), "more than 4096 interfaces"));
    capture_close(c);
}

/* A block larger than the buffer to start with, between packets whose views must stay right. */
Test(pcapng, long_blocks_are_read)
{
    enum { LONG = 1024 * 1024 };
    struct ng_file f = { 0 }, head = { 0 }, tail = { 0 };
    ng_section(&f, false);
    ng_interface(&f, EN10MB, 0, NANOSECONDS, 0);
    ng_packet(&f, 0, 1, data_of("before"), 6);
    ng_put(&head, 4, 0x0bad);
    ng_put(&head, 4, LONG + 12);
    ng_put(&tail, 4, LONG + 12);
    ng_packet(&tail, 0, 2, data_of("after"), 5);
    static uint8_t body[LONG];
    FILE *file = fopen(path, "wb");
    fwrite(f.b.at, 1, f.b.len, file);
    fwrite(head.b.at, 1, head.b.len, file);
    fwrite(body, 1, sizeof body, file);
    fwrite(tail.b.at, 1, tail.b.len, file);
    fclose(file);
    struct capture *c = NULL;
    cr_assert_eq(capture_open(path, NULL, &c), STATUS_OK);
    assert_frame(next_frame(c), 1, EN10MB, 1, "before");
    assert_frame(next_frame(c), 2, EN10MB, 2, "after");
    capture_close(c);
}

Test(pcapng, secrets_of_tls_alone_are_kept_as_far_as_they_go)
{
    struct ng_file f = { 0 };
    ng_section(&f, true);
    ng_interface(&f, EN10MB, 0, NANOSECONDS, 0);
    ng_secrets(&f, 0x544c534b, "first\n");
    ng_secrets(&f, 0x57474b4c, "of WireGuard");
    size_t at = f.b.len;
    ng_secrets(&f, 0x544c534b, "last");
    f.b.at[at + 12] = 0xff; /* its length, beyond the block */
    ng_packet(&f, 0, 1, data_of("x"), 1);
    struct capture *c = open_capture(&f, NULL, STATUS_OK);
    next_frame(c);
    cr_assert(bytes_equal(capture_secrets(c), data_of("first\n\nlast\n")));
    assert_end(c, STATUS_END, "");
}

static void write_secrets(FILE *file, struct bytes secrets)
{
    struct ng_file head = { 0 }, tail = { 0 };
    uint32_t len = (uint32_t)secrets.len + 20;
    ng_put(&head, 4, 10);
    ng_put(&head, 4, len);
    ng_put(&head, 4, 0x544c534b);
    ng_put(&head, 4, secrets.len);
    ng_put(&tail, 4, len);
    fwrite(head.b.at, 1, head.b.len, file);
    fwrite(secrets.at, 1, secrets.len, file);
    fwrite(tail.b.at, 1, tail.b.len, file);
}

Test(pcapng, secrets_beyond_the_cap_are_damage_that_is_passed_over)
{
    enum { LONG = PCAPNG_SECRETS_MAX / 2 };
    static const uint8_t text[LONG];
    struct ng_file begin = { 0 }, end = { 0 };
    ng_section(&begin, false);
    ng_interface(&begin, EN10MB, 0, NANOSECONDS, 0);
    ng_secrets(&end, 0x544c534b, "last");
    ng_packet(&end, 0, 1, data_of("x"), 1);
    FILE *file = fopen(path, "wb");
    fwrite(begin.b.at, 1, begin.b.len, file);
    write_secrets(file, (struct bytes){ text, LONG });
    write_secrets(file, (struct bytes){ text, LONG });
    fwrite(end.b.at, 1, end.b.len, file);
    fclose(file);
    struct capture *c = NULL;
    cr_assert_eq(capture_open(path, NULL, &c), STATUS_OK);
    next_frame(c);
    struct bytes secrets = capture_secrets(c);
    cr_assert_eq(secrets.len, LONG + strlen("\nlast\n"));
    cr_assert(bytes_equal(bytes_after(secrets, LONG), data_of("\nlast\n")));
    struct frame f;
    cr_assert_eq(capture_next(c, &f), STATUS_DAMAGED);
    cr_assert_not_null(strstr(capture_reason(c), "more than 16777216 bytes of secrets"));
    capture_close(c);
}

Test(pcapng, statistics_of_nobody_are_ignored)
{
    struct ng_file f = { 0 };
    ng_section(&f, false);
    ng_statistics(&f, 9, 100);
    ng_unknown(&f, 5, 4);
    ng_interface(&f, EN10MB, 0, NANOSECONDS, 0);
    ng_packet(&f, 0, 1, data_of("x"), 1);
    struct capture *c = open_capture(&f, NULL, STATUS_OK);
    next_frame(c);
    cr_assert_eq(capture_info(c).kernel_drops, -1);
    assert_end(c, STATUS_END, "");
}

/* One filter for frames of several link types. */
Test(pcapng, filter_is_compiled_for_each_link_type)
{
    struct buffer ip = { 0 }, other_ip = { 0 }, ethernet = { 0 };
    put_ipv4(&ip, 17, 8);
    put_udp(&ip, 1000, 53, 0);
    put_ipv4(&other_ip, 17, 8);
    put_udp(&other_ip, 1000, 54, 0);
    put_ethernet(&ethernet, 0x0800);
    put_bytes(&ethernet, buffer_bytes(&ip));
    struct ng_file f = { 0 };
    ng_section(&f, false);
    ng_interface(&f, EN10MB, 0, NANOSECONDS, 0);
    ng_interface(&f, LINKTYPE_RAW, 0, NANOSECONDS, 0);
    ng_packet(&f, 0, 1, buffer_bytes(&ethernet), 42);
    ng_packet(&f, 1, 2, buffer_bytes(&other_ip), 28);
    ng_packet(&f, 1, 3, buffer_bytes(&ip), 28);
    struct capture *c = open_capture(&f, "udp port 53", STATUS_OK);
    cr_assert_eq(next_frame(c).number, 1);
    cr_assert_eq(next_frame(c).number, 3);
    assert_end(c, STATUS_END, "");

    c = open_capture(&f, "ether host 02:00:00:00:00:01", STATUS_OK);
    cr_assert_eq(next_frame(c).number, 1);
    assert_end(c, STATUS_DAMAGED, "packet 2: filter for link type RAW");
}

Test(pcapng, names_of_interfaces_are_kept_when_they_are_plain_text)
{
    static const char *const NAMES[] = { "eth0", "\\Device\\NPF_{1}", "a\x1b[31m", "",
                                         "0123456789012345678901234567890123456789"
                                         "01234567890123456789012345" };
    struct ng_file file = { 0 };
    for (uint32_t i = 0; i < 5; i++) {
        ng_section(&file, i % 2 == 1);
        ng_named_interface(&file, EN10MB, NAMES[i]);
        ng_packet(&file, 0, SECOND * UINT64_C(1000000), data_of("x"), 1);
    }
    struct capture *c = open_capture(&file, NULL, STATUS_OK);
    for (uint32_t i = 0; i < 5; i++) {
        cr_assert_eq(next_frame(c).interface_id, i);
        const char *name = capture_interface_name(c, i);
        cr_assert(i < 2 ? name != NULL && strcmp(name, NAMES[i]) == 0 : name == NULL, "%u", i);
    }
    cr_assert_null(capture_interface_name(c, 5));
    cr_assert_null(capture_interface_name(c, UINT32_MAX));
    capture_close(c);
}

/* Each byte of a block broken by itself: the packets around it are given, the place is told. */
Test(pcapng, a_broken_block_is_passed_over)
{
    struct ng_file good = { 0 };
    ng_section(&good, false);
    ng_interface(&good, EN10MB, 0, MICROSECONDS, 0);
    ng_packet(&good, 0, SECOND * UINT64_C(1000000), data_of("before"), 6);
    size_t start = good.b.len;
    ng_packet(&good, 0, SECOND * UINT64_C(1000000) + 1, data_of("broken"), 6);
    size_t end = good.b.len;
    ng_packet(&good, 0, SECOND * UINT64_C(1000000) + 2, data_of("behind"), 6);
    ng_packet(&good, 0, SECOND * UINT64_C(1000000) + 3, data_of("last"), 4);
    for (size_t at = start; at < end; at++) {
        struct ng_file file = good;
        struct frame f;
        file.b.at[at] ^= 0x80;
        struct capture *c = open_capture(&file, NULL, STATUS_OK);
        assert_frame(next_frame(c), 1, EN10MB, SECOND * INT64_C(1000000000), "before");
        unsigned behind = 0;
        enum status status;
        while ((status = capture_next(c, &f)) == STATUS_OK)
            behind +=
                bytes_equal(f.data, data_of("behind")) || bytes_equal(f.data, data_of("last"));
        cr_assert_eq(behind, 2, "byte %zu", at - start);
        bool is_framing = at < start + 8 || at >= end - 4;
        if (is_framing && at >= start + 4)
            cr_assert_eq(status, STATUS_DAMAGED, "byte %zu", at - start);
        if (status == STATUS_DAMAGED)
            cr_assert_not_null(strstr(capture_reason(c), "packet 2 at byte "), "%s",
                               capture_reason(c));
        capture_close(c);
    }
}

Test(pcapng, late_packets_are_known_beforehand)
{
    static const unsigned TIMES_MS[] = { 0, 20, 30, 10, 40, 5000, 4000 };
    struct ng_file file = { 0 };
    ng_section(&file, true);
    ng_interface(&file, EN10MB, 0, NANOSECONDS, 0);
    ng_interface(&file, EN10MB, 0, MICROSECONDS, 0);
    for (unsigned i = 0; i < 7; i++) {
        uint64_t us = SECOND * UINT64_C(1000000) + TIMES_MS[i] * UINT64_C(1000);
        ng_packet(&file, i % 2, i % 2 == 0 ? us * 1000 : us, data_of("x"), 1);
    }
    struct capture *c = open_capture(&file, NULL, STATUS_OK);
    for (unsigned i = 1; i <= 7; i++) {
        (void)next_frame(c);
        cr_assert_eq(capture_has_late(c), i < 4, "behind packet %u", i);
    }
    capture_close(c);
}
