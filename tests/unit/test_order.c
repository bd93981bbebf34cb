/* SPDX-License-Identifier: Apache-2.0 */
#include "order.h"

#include "capture_builder.h"

#include <criterion/criterion.h>

enum { EN10MB = 1, SECOND = 1700000000, MS = 1000000 };

static const struct pcap_style NANOSECONDS = { .is_nanoseconds = true, .link_type = EN10MB };

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

TestSuite(order, .init = make_directory, .fini = drop_directory, .timeout = 60);

/* A capture of frames at these times, ms behind SECOND, whose bytes are their number. */
static struct order *order_of(const int *times_ms, size_t count, unsigned len)
{
    FILE *file = fopen(path, "wb");
    struct buffer header = { 0 };
    put_pcap_header(&header, &NANOSECONDS);
    fwrite(header.at, 1, header.len, file);
    for (size_t i = 0; i < count; i++) {
        int64_t at_ns = (int64_t)SECOND * 1000000000 + (int64_t)times_ms[i] * MS;
        struct buffer record = { 0 };
        put_le(&record, 4, (uint64_t)(at_ns / 1000000000));
        put_le(&record, 4, (uint64_t)(at_ns % 1000000000));
        put_le(&record, 4, len);
        put_le(&record, 4, len);
        put_le(&record, 4, i + 1);
        put_repeated(&record, len - 4, 0x77);
        fwrite(record.at, 1, record.len, file);
    }
    fclose(file);
    struct capture *c = NULL;
    cr_assert_eq(capture_open(path, NULL, &c), STATUS_OK);
    struct order *o = order_open(c);
    cr_assert_not_null(o);
    return o;
}

static int ms_of(const struct frame *f)
{
    return (int)((f->at_ns - (int64_t)SECOND * 1000000000) / MS);
}

static void expect(const int *times_ms, const int *expected_ms, size_t count, uint64_t late,
                   uint64_t steps)
{
    struct order *o = order_of(times_ms, count, 60);
    struct frame f;
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(order_next(o, &f), STATUS_OK);
        cr_assert_eq(ms_of(&f), expected_ms[i], "frame %zu: %d", i, ms_of(&f));
        struct reader r = reader_of(f.data);
        cr_assert_eq(reader_le(&r, 4), f.number, "the bytes are those of the frame");
        cr_assert_eq(times_ms[f.number - 1], expected_ms[i]);
    }
    cr_assert_eq(order_next(o, &f), STATUS_END);
    cr_assert_eq(order_next(o, &f), STATUS_END, "an end is final");
    cr_assert_eq(order_found(o).late, late);
    cr_assert_eq(order_found(o).steps, steps);
    order_close(o);
}

Test(order, late_frames_are_put_in_their_place)
{
    static const int TIMES[] = { 10, 0, 5, 30, 20, 21, 19, 120, 119 };
    static const int ORDERED[] = { 0, 5, 10, 19, 20, 21, 30, 119, 120 };
    expect(TIMES, ORDERED, 9, 6, 0);
}

Test(order, frames_of_one_time_stay_in_the_order_of_the_file)
{
    static const int TIMES[] = { 7, 7, 5, 7, 5, 5, 7 };
    struct order *o = order_of(TIMES, 7, 60);
    static const uint64_t NUMBERS[] = { 3, 5, 6, 1, 2, 4, 7 };
    for (size_t i = 0; i < 7; i++) {
        struct frame f;
        cr_assert_eq(order_next(o, &f), STATUS_OK);
        cr_assert_eq(f.number, NUMBERS[i]);
    }
    order_close(o);
}

/* What was captured behind a step of the clock happened behind it. */
Test(order, nothing_moves_across_a_step_of_the_clock)
{
    static const int TIMES[] = { 1000, 1010, 1005, 500, 505, 503, 1000 };
    static const int EXPECTED[] = { 1000, 1005, 1010, 500, 503, 505, 1000 };
    expect(TIMES, EXPECTED, 7, 2, 1);
    static const int AT_THE_LIMIT[] = { 100, 0, 201, 100 };
    static const int LIMIT_EXPECTED[] = { 0, 100, 201, 100 };
    expect(AT_THE_LIMIT, LIMIT_EXPECTED, 4, 1, 1);
}

Test(order, the_first_and_largest_step_are_told)
{
    static const int TIMES[] = { 1000, 500, 510, 5, 6 };
    struct order *o = order_of(TIMES, 5, 60);
    struct frame f;
    while (order_next(o, &f) == STATUS_OK)
        continue;
    cr_assert_eq(order_found(o).steps, 2);
    cr_assert_eq(order_found(o).first_step_number, 2);
    cr_assert_eq(order_found(o).largest_step_ns, (int64_t)505 * MS);
    order_close(o);
}

/* Frames of several queues, each in order, up to 99 ms apart: all of them, and in order. */
Test(order, any_mix_within_the_window_is_sorted)
{
    enum { COUNT = 3000 };
    static int times[COUNT];
    uint32_t state = 1;
    for (size_t i = 0; i < COUNT; i++) {
        state = state * 1664525 + 1013904223;
        times[i] = (int)i * 2 + (int)(state >> 16) % 99;
    }
    struct order *o = order_of(times, COUNT, 60);
    struct frame f;
    uint64_t sum = 0;
    int last = 0;
    for (size_t i = 0; i < COUNT; i++) {
        cr_assert_eq(order_next(o, &f), STATUS_OK);
        cr_assert_geq(ms_of(&f), last);
        last = ms_of(&f);
        sum += f.number;
    }
    cr_assert_eq(order_next(o, &f), STATUS_END);
    cr_assert_eq(sum, (uint64_t)COUNT * (COUNT + 1) / 2, "each frame once");
    order_close(o);
}

/* A late frame too far behind its place finds it taken, and no frame is lost. */
/* The most frames that were held at once when half of all are late. */
static size_t most_held(unsigned len)
{
    enum { COUNT = 4 * ORDER_FRAMES_MAX };
    static int times[COUNT];
    for (size_t i = 1; i < COUNT; i++)
        times[i] = i % 2 == 0 ? 1 : 50;
    struct order *o = order_of(times, COUNT, len);
    struct frame f;
    size_t given = 0, most = 0;
    while (order_next(o, &f) == STATUS_OK) {
        given++;
        if (f.number > given && f.number - given > most)
            most = f.number - given;
    }
    cr_assert_eq(given, COUNT);
    order_close(o);
    return most;
}

Test(order, what_is_held_reaches_its_caps_and_stays_below)
{
    enum { SHORT = 60, LONG = 1400, LONG_ONES = ORDER_BYTES_MAX / LONG };
    size_t held = most_held(SHORT);
    cr_expect(held <= ORDER_FRAMES_MAX && held > ORDER_FRAMES_MAX - 100, "%zu frames", held);
    held = most_held(LONG);
    cr_expect(held <= LONG_ONES + 1 && held > LONG_ONES - 100, "%zu long frames", held);
}
