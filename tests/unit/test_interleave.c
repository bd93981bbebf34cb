/* SPDX-License-Identifier: Apache-2.0 */
#include "interleave.h"

#include "capture_builder.h"

#include <criterion/criterion.h>

enum { EN10MB = 1, SECOND = 1700000000 };

static const struct pcap_style MICROSECONDS = { .link_type = EN10MB };

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

TestSuite(interleave, .init = make_directory, .fini = drop_directory, .timeout = 60);

/* A capture of `count` frames from a second on, so many seconds apart. */
static struct capture *capture_from(uint32_t first, uint32_t apart, unsigned count)
{
    struct buffer file = { 0 };
    struct capture *c = NULL;
    put_pcap_header(&file, &MICROSECONDS);
    for (uint32_t i = 0; i < count; i++)
        put_pcap_record(&file, &MICROSECONDS, SECOND + first + i * apart, 0, (struct bytes){ 0 },
                        60);
    write_file(path, buffer_bytes(&file));
    cr_assert_eq(capture_open(path, NULL, &c), STATUS_OK);
    return c;
}

static int64_t at(uint32_t second)
{
    return (int64_t)(SECOND + second) * 1000000000;
}

Test(interleave, frames_come_by_time_and_those_of_one_time_by_capture)
{
    struct interleave *m = interleave_open();
    static const size_t NUMBERS[] = { 7, 8, 7, 9, 8, 7, 7, 7 };
    cr_assert_eq(interleave_add(m, capture_from(0, 2, 5), 7), STATUS_OK);  /* 0 2 4 6 8 */
    cr_assert_eq(interleave_add(m, capture_from(1, 2, 2), 8), STATUS_OK);  /* 1 3 */
    cr_assert_eq(interleave_add(m, capture_from(2, 50, 1), 9), STATUS_OK); /* 2 */
    size_t number, given = 0, ended = 0;
    int64_t last = 0;
    while (interleave_count(m) > 0) {
        struct frame f;
        enum status status = interleave_next(m, INT64_MAX, &f, &number);
        if (status == STATUS_OK) {
            cr_assert_geq(f.at_ns, last);
            last = f.at_ns;
            cr_assert_eq(number, NUMBERS[given++]);
        } else {
            cr_assert_eq(status, STATUS_END);
            cr_assert_eq(capture_info(order_capture(interleave_find(m, number))).packets,
                         number == 7   ? 5
                         : number == 8 ? 2
                                       : 1);
            interleave_remove(m, number);
            ended++;
        }
    }
    cr_assert_eq(given, 8);
    cr_assert_eq(ended, 3);
    interleave_close(m);
}

/* So a capture can be added before its first frame's turn has passed. */
Test(interleave, nothing_of_a_given_time_or_later_is_taken)
{
    struct interleave *m = interleave_open();
    struct frame f;
    size_t number;
    cr_assert_eq(interleave_add(m, capture_from(0, 10, 3), 0), STATUS_OK);
    cr_assert_eq(interleave_next(m, at(10), &f, &number), STATUS_OK);
    cr_assert_eq(interleave_next(m, at(10), &f, &number), STATUS_REFUSED);
    cr_assert_eq(interleave_next(m, at(10), &f, &number), STATUS_REFUSED, "it is kept");
    cr_assert_eq(interleave_add(m, capture_from(5, 10, 1), 1), STATUS_OK);
    cr_assert_eq(interleave_next(m, at(10), &f, &number), STATUS_OK);
    cr_assert_eq(number, 1);
    cr_assert_eq(f.at_ns, at(5));
    interleave_close(m);
}

Test(interleave, as_many_as_there_is_room_for)
{
    struct interleave *m = interleave_open();
    struct frame f;
    size_t number, frames = 0;
    for (uint32_t i = 0; i < INTERLEAVED_MAX; i++)
        cr_assert_eq(interleave_add(m, capture_from(INTERLEAVED_MAX - i, 1, 2), i), STATUS_OK);
    int64_t last = 0;
    while (interleave_count(m) > 0) {
        if (interleave_next(m, INT64_MAX, &f, &number) != STATUS_OK) {
            interleave_remove(m, number);
            continue;
        }
        cr_assert_geq(f.at_ns, last);
        last = f.at_ns;
        frames++;
    }
    cr_assert_eq(frames, 2 * INTERLEAVED_MAX);
    interleave_close(m);
    interleave_close(NULL);
}
