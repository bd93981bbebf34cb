/* SPDX-License-Identifier: Apache-2.0 */
#include "capture.h"

#include "capture_builder.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

enum { EN10MB = 1, RECORDS = 3, SECOND = 1700000000 };

static const struct pcap_style LITTLE = { .link_type = EN10MB };

static char directory[PATH_SIZE];
static char path[PATH_SIZE + 16];

static void make_directory(void)
{
    test_directory(directory);
    snprintf(path, sizeof path, "%s/a.pcap", directory);
}

static void drop_directory(void)
{
    remove_directory(directory);
}

TestSuite(capture, .init = make_directory, .fini = drop_directory, .timeout = 60);

/* An Ethernet frame of UDP to a port, whose last octets tell its number. */
static struct buffer udp_frame(uint16_t port, uint32_t number)
{
    struct buffer b = { 0 };
    put_ethernet(&b, 0x0800);
    put_ipv4(&b, 17, 8 + 4);
    put_udp(&b, 50000, port, 4);
    put_be(&b, 4, number);
    return b;
}

/* A file of RECORDS frames to ports 1000, 1001, ..., 250 fraction units and a second apart. */
static struct buffer sample(const struct pcap_style *style)
{
    struct buffer b = { 0 };
    put_pcap_header(&b, style);
    for (uint32_t i = 0; i < RECORDS; i++) {
        struct buffer f = udp_frame((uint16_t)(1000 + i), i);
        put_pcap_record(&b, style, SECOND + i, 250 * i, buffer_bytes(&f), 1000 + i);
    }
    return b;
}

static struct capture *open_good(const char *filter)
{
    struct capture *c = NULL;
    enum status status = capture_open(path, filter, &c);
    cr_assert_eq(status, STATUS_OK, "%s", capture_error(c));
    return c;
}

/* Frames up to the end, which must be as expected. */
static unsigned frames_until(struct capture *c, enum status expected)
{
    struct frame f;
    unsigned n = 0;
    enum status status;
    while ((status = capture_next(c, &f)) == STATUS_OK)
        n++;
    cr_assert_eq(status, expected, "%d, %s", status, capture_error(c));
    cr_assert_eq(capture_next(c, &f), expected, "an end is final");
    return n;
}

static bool hash_is(const struct capture *c, struct bytes content)
{
    struct hash128 expected = hash_stable(content);
    struct capture_info info = capture_info(c);
    return memcmp(&expected, &info.content, sizeof expected) == 0;
}

Test(capture, every_byte_order_and_resolution_gives_the_same_frames)
{
    for (unsigned i = 0; i < 4; i++) {
        struct pcap_style style = { (i & 1) != 0, (i & 2) != 0, EN10MB };
        struct buffer file = sample(&style);
        write_file(path, buffer_bytes(&file));
        struct capture *c = open_good(NULL);
        struct frame f;
        for (uint32_t n = 0; n < RECORDS; n++) {
            struct buffer expected = udp_frame((uint16_t)(1000 + n), n);
            int64_t unit = style.is_nanoseconds ? 1 : 1000;
            cr_assert_eq(capture_next(c, &f), STATUS_OK);
            cr_assert_eq(f.number, n + 1);
            cr_assert_eq(f.at_ns, (int64_t)(SECOND + n) * 1000000000 + 250 * n * unit);
            cr_assert_eq(f.link_type, EN10MB);
            cr_assert_eq(f.wire_len, 1000 + n);
            cr_assert(bytes_equal(f.data, buffer_bytes(&expected)));
        }
        cr_assert_eq(frames_until(c, STATUS_END), 0);
        struct capture_info info = capture_info(c);
        cr_assert_str_eq(info.format, "pcap");
        cr_assert_eq(info.link_type, EN10MB);
        cr_assert_eq(info.snaplen, 65535);
        cr_assert_eq(info.packets, RECORDS);
        cr_assert_eq(info.bytes, RECORDS * 46);
        cr_assert_eq(info.first_at_ns, (int64_t)SECOND * 1000000000);
        cr_assert_eq(info.last_at_ns, f.at_ns);
        cr_assert(hash_is(c, buffer_bytes(&file)));
        capture_close(c);
    }
}

/* A file cut anywhere gives all frames that are whole, and says that it was cut and where. */
Test(capture, every_truncation_of_a_file)
{
    enum { HEADER = 24, RECORD = 16 + 46 };
    struct buffer file = sample(&LITTLE);
    for (size_t len = 0; len < file.len; len++) {
        write_file(path, bytes_first(buffer_bytes(&file), len));
        struct capture *c = NULL;
        enum status status = capture_open(path, NULL, &c);
        if (len < HEADER) {
            cr_assert_eq(status, STATUS_REFUSED, "at %zu", len);
            struct frame f;
            cr_assert_eq(capture_next(c, &f), STATUS_REFUSED);
        } else {
            cr_assert_eq(status, STATUS_OK, "at %zu", len);
            size_t whole = (len - HEADER) / RECORD;
            bool is_cut = (len - HEADER) % RECORD != 0;
            cr_assert_eq(frames_until(c, is_cut ? STATUS_DAMAGED : STATUS_END), whole);
            cr_assert(hash_is(c, bytes_first(buffer_bytes(&file), len)));
            char expected[64];
            snprintf(expected, sizeof expected, "packet %zu at byte %zu: ", whole + 1,
                     HEADER + whole * RECORD);
            if (is_cut) {
                cr_assert_not_null(strstr(capture_error(c), expected), "%s", capture_error(c));
                cr_assert_not_null(strstr(capture_error(c), path));
                cr_assert_null(strstr(capture_reason(c), path));
            }
        }
        capture_close(c);
    }
}

/* Where packets go on behind what is none, they are read; without such a place the file ends. */
Test(capture, damage_in_the_middle_is_passed_over)
{
    struct buffer file = sample(&LITTLE);
    memset(file.at + 24 + 62 + 8, 0xff, 4); /* captured length of the second record */
    write_file(path, buffer_bytes(&file));
    struct capture *c = open_good(NULL);
    cr_assert_eq(frames_until(c, STATUS_DAMAGED), 2);
    cr_assert_not_null(strstr(capture_error(c), "packet 2 at byte 86: "), "%s", capture_error(c));
    cr_assert_not_null(strstr(capture_error(c), "read on at byte 148"), "%s", capture_error(c));
    cr_assert(hash_is(c, buffer_bytes(&file)));
    cr_assert_eq(capture_info(c).packets, 2);
    capture_close(c);

    file = sample(&LITTLE);
    memset(file.at + 24 + 62 + 8, 0xff, 62);
    write_file(path, buffer_bytes(&file));
    c = open_good(NULL);
    cr_assert_eq(frames_until(c, STATUS_DAMAGED), 1);
    cr_assert_str_eq(capture_reason(c), "packet 2 at byte 86: impossible length of a packet");
    capture_close(c);
}

/* Contents of a file larger than a struct buffer. */
struct content {
    uint8_t at[4 * 1024 * 1024];
    size_t len;
};

static void content_add(struct content *c, struct bytes more)
{
    cr_assert_leq(more.len, sizeof c->at - c->len);
    if (more.len > 0)
        memcpy(c->at + c->len, more.at, more.len);
    c->len += more.len;
}

/* A file of many records, some of them longer than most; the gap in front of every tenth. */
static unsigned write_with_gaps(struct content *file, unsigned records, struct bytes gap)
{
    static const uint8_t DATA[60000] = { 0x5a };
    struct buffer header = { 0 };
    unsigned gaps = 0;
    file->len = 0;
    put_pcap_header(&header, &LITTLE);
    content_add(file, buffer_bytes(&header));
    for (uint32_t i = 0; i < records; i++) {
        uint32_t len = i % 7 == 3 ? 50000 + i : 60 + i;
        struct buffer record = { 0 };
        put_pcap_record(&record, &LITTLE, SECOND + i, i, (struct bytes){ 0 }, len);
        record.len -= 8;
        put_le(&record, 4, len);
        put_le(&record, 4, len);
        if (i % 10 == 5)
            content_add(file, gap);
        gaps += i % 10 == 5;
        content_add(file, buffer_bytes(&record));
        content_add(file, (struct bytes){ DATA, len });
    }
    write_file(path, (struct bytes){ file->at, file->len });
    return gaps;
}

/* A crash of a file system leaves zeros, a writer that was cut short anything. */
Test(capture, no_record_is_lost_around_bytes_that_are_none)
{
    static const size_t LENGTHS[] = { 1, 7, 15, 16, 17, 4096, 300001 };
    static uint8_t noise[300001];
    static struct content file;
    enum { LONG_RECORDS = 60 };
    for (unsigned kind = 0; kind < 3; kind++)
        for (size_t k = 0; k < sizeof LENGTHS / sizeof LENGTHS[0]; k++) {
            uint32_t state = 1;
            for (size_t i = 0; i < sizeof noise; i++) {
                state = state * 1664525 + 1013904223;
                noise[i] = kind == 0 ? 0 : kind == 1 ? 0xff : (uint8_t)(state >> 24);
            }
            unsigned gaps =
                write_with_gaps(&file, LONG_RECORDS, (struct bytes){ noise, LENGTHS[k] });
            struct capture *c = open_good(NULL);
            struct frame f;
            unsigned n = 0;
            while (capture_next(c, &f) == STATUS_OK)
                n += f.at_ns / 1000000000 == SECOND + f.at_ns % 1000000000 / 1000;
            /* a short one may look like the begin of a record, which then holds the next */
            cr_assert_geq(n, LENGTHS[k] < 16 ? LONG_RECORDS - 2 * gaps : LONG_RECORDS, "%zu %u: %u",
                          LENGTHS[k], kind, n);
            cr_assert_eq(capture_next(c, &f), STATUS_DAMAGED);
            cr_assert_not_null(strstr(capture_reason(c), "read on at byte"), "%s",
                               capture_reason(c));
            cr_assert(hash_is(c, (struct bytes){ file.at, file.len }));
            capture_close(c);
        }
}

/* A file that is cut behind a gap tells both. */
Test(capture, a_gap_and_a_cut_are_both_told)
{
    static const uint8_t ZEROS[512];
    static struct content file;
    (void)write_with_gaps(&file, 12, (struct bytes){ ZEROS, sizeof ZEROS });
    write_file(path, (struct bytes){ file.at, file.len - 5 });
    struct capture *c = open_good(NULL);
    cr_assert_eq(frames_until(c, STATUS_DAMAGED), 11);
    cr_assert_not_null(strstr(capture_reason(c), "packet 6 at byte "), "%s", capture_reason(c));
    cr_assert_not_null(strstr(capture_reason(c), "; packet 12 at byte "), "%s", capture_reason(c));
    capture_close(c);
}

/* What is late is known before any frame is given that belongs behind it. */
Test(capture, late_frames_are_known_beforehand)
{
    static const uint32_t TIMES_MS[] = { 0, 20, 30, 10, 40, 50, 5000, 4000, 4010 };
    struct buffer file = { 0 }, frame = udp_frame(1, 1);
    put_pcap_header(&file, &LITTLE);
    for (size_t i = 0; i < sizeof TIMES_MS / sizeof TIMES_MS[0]; i++)
        put_pcap_record(&file, &LITTLE, SECOND + TIMES_MS[i] / 1000, TIMES_MS[i] % 1000 * 1000,
                        buffer_bytes(&frame), 46);
    write_file(path, buffer_bytes(&file));
    struct capture *c = open_good(NULL);
    for (unsigned i = 1; i <= sizeof TIMES_MS / sizeof TIMES_MS[0]; i++) {
        struct frame f;
        cr_assert_eq(capture_next(c, &f), STATUS_OK);
        cr_assert_eq(capture_has_late(c), i < 4, "behind frame %u", i);
    }
    capture_close(c);
}

/* As a machine leaves it that lost its power; a packet of no bytes is not that. */
Test(capture, zeros_at_the_end_are_damage)
{
    struct buffer file = sample(&LITTLE);
    put_pcap_record(&file, &LITTLE, 0, 0, (struct bytes){ 0 }, 60);
    put_pcap_record(&file, &LITTLE, SECOND, 0, (struct bytes){ 0 }, 0);
    put_repeated(&file, 512, 0);
    write_file(path, buffer_bytes(&file));
    struct capture *c = open_good(NULL);
    cr_assert_eq(frames_until(c, STATUS_DAMAGED), RECORDS + 2);
    cr_assert_not_null(strstr(capture_error(c), "packet 6 at byte 242: zeros"), "%s",
                       capture_error(c));
    cr_assert(hash_is(c, buffer_bytes(&file)));
    cr_assert_eq(capture_info(c).first_at_ns, 0, "a frame of 1970");
    capture_close(c);
}

Test(capture, a_file_without_packets_is_a_capture)
{
    struct buffer file = { 0 };
    put_pcap_header(&file, &LITTLE);
    write_file(path, buffer_bytes(&file));
    struct capture *c = open_good(NULL);
    cr_assert_eq(frames_until(c, STATUS_END), 0);
    cr_assert_eq(capture_info(c).first_at_ns, 0);
    cr_assert_eq(capture_info(c).packets, 0);
    capture_close(c);
}

Test(capture, filter_excludes_frames_but_keeps_their_numbers)
{
    struct buffer file = sample(&LITTLE);
    write_file(path, buffer_bytes(&file));
    struct capture *c = open_good("udp port 1002 or udp port 1000");
    struct frame f;
    cr_assert_eq(capture_next(c, &f), STATUS_OK);
    cr_assert_eq(f.number, 1);
    cr_assert_eq(capture_next(c, &f), STATUS_OK);
    cr_assert_eq(f.number, 3);
    cr_assert_eq(frames_until(c, STATUS_END), 0);
    cr_assert_eq(capture_info(c).packets, 2);
    cr_assert(hash_is(c, buffer_bytes(&file)));
    capture_close(c);
}

Test(capture, packets_longer_than_the_file_declares_are_whole)
{
    for (unsigned big = 0; big < 2; big++) {
        struct pcap_style style = { .link_type = EN10MB, .is_big_endian = big == 1 };
        struct buffer file = sample(&style);
        memset(file.at + 16, 0, 4);
        file.at[big ? 19 : 16] = 20;
        write_file(path, buffer_bytes(&file));
        struct capture *c = open_good(NULL);
        struct frame f;
        cr_assert_eq(capture_next(c, &f), STATUS_OK);
        cr_assert_gt(f.data.len, 20);
        cr_assert_eq(frames_until(c, STATUS_END), RECORDS - 1);
        cr_assert_eq(capture_info(c).snaplen, 20);
        capture_close(c);
    }
}

/* A snaplen of 0 in the header must not make a filter that accepts 0 bytes, that is nothing. */
Test(capture, filter_works_whatever_snaplen_the_file_declares)
{
    struct buffer file = sample(&LITTLE);
    memset(file.at + 16, 0, 4);
    write_file(path, buffer_bytes(&file));
    struct capture *c = open_good("udp");
    cr_assert_eq(frames_until(c, STATUS_END), RECORDS);
    capture_close(c);
}

Test(capture, wrong_filter_is_told_from_one_that_does_not_apply)
{
    struct buffer file = sample(&LITTLE);
    struct capture *c = NULL;
    write_file(path, buffer_bytes(&file));
    cr_assert_eq(capture_open(path, "tcp prot 443", &c), STATUS_USAGE);
    cr_assert_not_null(strstr(capture_error(c), "tcp prot 443"), "%s", capture_error(c));
    capture_close(c);

    struct pcap_style raw = { .link_type = 101 };
    file = sample(&raw);
    write_file(path, buffer_bytes(&file));
    cr_assert_eq(capture_open(path, "ether host 02:00:00:00:00:01", &c), STATUS_REFUSED);
    capture_close(c);
}

Test(capture, times_that_are_none_are_marked)
{
    static const struct {
        uint32_t second, fraction;
        int64_t expected;
    } CASES[] = {
        { 0, 0, 0 },
        { 0x7fffffff, 999999999, 2147483647999999999 },
        { 0x80000000, 0, 2147483648000000000 }, /* seconds are unsigned */
        { UINT32_MAX, 5, 4294967295000000005 },
        { 5, 1000000000, FRAME_TIME_INVALID },
        { 5, UINT32_MAX, FRAME_TIME_INVALID },
    };
    struct pcap_style style = { .is_nanoseconds = true, .link_type = EN10MB };
    struct buffer file = { 0 }, frame = udp_frame(1, 1);
    put_pcap_header(&file, &style);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        put_pcap_record(&file, &style, CASES[i].second, CASES[i].fraction, buffer_bytes(&frame),
                        46);
    write_file(path, buffer_bytes(&file));
    struct capture *c = open_good(NULL);
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct frame f;
        cr_assert_eq(capture_next(c, &f), STATUS_OK);
        cr_assert_eq(f.at_ns, CASES[i].expected, "%zu: %lld", i, (long long)f.at_ns);
    }
    cr_assert_eq(frames_until(c, STATUS_END), 0);
    cr_assert_eq(capture_info(c).last_at_ns, 4294967295000000005);
    capture_close(c);
}

Test(capture, wire_length_is_at_least_what_was_captured)
{
    struct buffer file = { 0 }, frame = udp_frame(1, 1);
    put_pcap_header(&file, &LITTLE);
    put_pcap_record(&file, &LITTLE, 1, 0, buffer_bytes(&frame), 10);
    write_file(path, buffer_bytes(&file));
    struct capture *c = open_good(NULL);
    struct frame f;
    cr_assert_eq(capture_next(c, &f), STATUS_OK);
    cr_assert_eq(f.wire_len, 46);
    capture_close(c);
}

Test(capture, what_is_no_capture_is_refused_with_a_reason)
{
    static const char *const CONTENTS[] = { "", "x", "not a capture at all, but a text\n" };
    for (size_t i = 0; i < sizeof CONTENTS / sizeof CONTENTS[0]; i++) {
        struct capture *c = NULL;
        write_file(path, (struct bytes){ (const uint8_t *)CONTENTS[i], strlen(CONTENTS[i]) });
        cr_assert_eq(capture_open(path, NULL, &c), STATUS_REFUSED, "%zu", i);
        cr_assert_neq(capture_reason(c)[0], '\0', "%zu", i);
        capture_close(c);
    }
}

Test(capture, what_cannot_be_opened_or_read_to_an_end)
{
    struct capture *c = NULL;
    cr_assert_eq(capture_open(directory, NULL, &c), STATUS_REFUSED);
    capture_close(c);
    cr_assert_eq(capture_open("/dev/zero", NULL, &c), STATUS_REFUSED);
    capture_close(c);
    cr_assert_eq(capture_open("/nonexistent/x.pcap", NULL, &c), STATUS_IO);
    cr_assert_str_eq(capture_error(c), "/nonexistent/x.pcap: No such file or directory");
    capture_close(c);
    capture_close(NULL);
}

/* Writes a file into a pipe byte by byte, as a slow sender would. */
static void *write_slowly(void *argument)
{
    struct buffer *file = argument;
    int fd = open(path, O_WRONLY);
    for (size_t i = 0; i < file->len; i++) {
        if (write(fd, file->at + i, 1) != 1)
            break;
    }
    close(fd);
    return NULL;
}

Test(capture, a_pipe_is_read_like_a_file)
{
    struct buffer file = sample(&LITTLE);
    pthread_t writer;
    cr_assert_eq(mkfifo(path, 0600), 0);
    cr_assert_eq(pthread_create(&writer, NULL, write_slowly, &file), 0);
    struct capture *c = open_good(NULL);
    cr_assert_eq(frames_until(c, STATUS_END), RECORDS);
    cr_assert(hash_is(c, buffer_bytes(&file)));
    capture_close(c);
    pthread_join(writer, NULL);
}

Test(capture, standard_input_is_named_so)
{
    struct buffer file = sample(&LITTLE);
    write_file(path, bytes_first(buffer_bytes(&file), file.len - 1));
    cr_assert_eq(dup2(open(path, O_RDONLY), STDIN_FILENO), STDIN_FILENO);
    struct capture *c = NULL;
    cr_assert_eq(capture_open("-", NULL, &c), STATUS_OK);
    cr_assert_eq(frames_until(c, STATUS_DAMAGED), RECORDS - 1);
    cr_assert_eq(strncmp(capture_error(c), "standard input: packet 3 ", 25), 0, "%s",
                 capture_error(c));
    capture_close(c);
}

/* Octets of a good file changed one by one: it must end, and say OK only for frames in memory. */
Test(capture, damaged_files_come_to_an_end)
{
    struct buffer file = sample(&LITTLE);
    for (size_t at = 0; at < 24 + 16; at++) {
        for (unsigned value = 0; value < 256; value += 51) {
            struct buffer damaged = file;
            damaged.at[at] = (uint8_t)value;
            write_file(path, buffer_bytes(&damaged));
            struct capture *c = NULL;
            struct frame f;
            uint64_t last = 0;
            if (capture_open(path, NULL, &c) == STATUS_OK) {
                while (capture_next(c, &f) == STATUS_OK) {
                    cr_assert_gt(f.number, last);
                    last = f.number;
                    hash_stable(f.data); /* reads it all */
                }
                cr_assert(hash_is(c, buffer_bytes(&damaged)));
            }
            capture_close(c);
        }
    }
}

Test(capture, link_types_have_names)
{
    cr_assert_str_eq(capture_link_type_name(EN10MB), "EN10MB");
    cr_assert_str_eq(capture_link_type_name(-5), "unknown");
    cr_assert_neq(strstr(capture_library_version(), "libpcap"), NULL);
}
