/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include <criterion/criterion.h>
#include <sys/resource.h>

enum { ITEMS = 3000, ITEM_MAX = 3000 };

/* Item n: its length and bytes follow from its number. */
static struct bytes item_of(uint64_t n, uint8_t bytes[ITEM_MAX])
{
    size_t len = 1 + (size_t)(n * 7919 % ITEM_MAX);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)(n + i);
    return (struct bytes){ bytes, len };
}

static void add_items(struct stage *s, uint64_t count)
{
    uint8_t bytes[ITEM_MAX];
    for (uint64_t n = 0; n < count; n++) {
        uint64_t number;
        cr_assert_eq(stage_add(s, item_of(n, bytes), &number), STATUS_OK, "%s", stage_error(s));
        cr_assert_eq(number, n);
    }
}

static bool is_cancelled(uint64_t n)
{
    return n % 5 == 0 || (n > 100 && n < 300);
}

static void expect_items(struct stage *s, uint64_t count, bool cancelled)
{
    uint8_t bytes[ITEM_MAX];
    struct bytes item;
    stage_rewind(s);
    for (uint64_t n = 0; n < count; n++) {
        if (cancelled && is_cancelled(n))
            continue;
        cr_assert_eq(stage_next(s, &item), STATUS_OK, "%s", stage_error(s));
        cr_assert(bytes_equal(item, item_of(n, bytes)), "item %u", (unsigned)n);
    }
    cr_assert_eq(stage_next(s, &item), STATUS_END);
    cr_assert_eq(stage_next(s, &item), STATUS_END);
}

static const size_t MEMORY[] = { 0, 1, 1 << 20, 3 << 20, 1 << 30 };
enum { MEMORY_COUNT = sizeof MEMORY / sizeof MEMORY[0] };

Test(stage, items_come_back_in_order_from_memory_and_file)
{
    for (unsigned m = 0; m < MEMORY_COUNT; m++) {
        struct stage *s = stage_open(MEMORY[m], NULL);
        expect_items(s, 0, false);
        add_items(s, ITEMS);
        expect_items(s, ITEMS, false);
        expect_items(s, ITEMS, false);
        stage_close(s);
    }
    stage_close(NULL);
}

Test(stage, cancelled_items_are_left_out)
{
    for (unsigned m = 0; m < MEMORY_COUNT; m++) {
        struct stage *s = stage_open(MEMORY[m], NULL);
        add_items(s, ITEMS);
        for (uint64_t n = 0; n < ITEMS; n++)
            if (is_cancelled(n))
                cr_assert_eq(stage_cancel(s, n), STATUS_OK);
        cr_assert_eq(stage_cancel(s, 0), STATUS_OK);
        expect_items(s, ITEMS, true);
        stage_close(s);
    }
}

Test(stage, items_can_be_added_after_reading)
{
    for (unsigned m = 0; m < MEMORY_COUNT; m++) {
        struct stage *s = stage_open(MEMORY[m], NULL);
        uint8_t bytes[ITEM_MAX];
        struct bytes item;
        add_items(s, ITEMS / 2);
        stage_rewind(s);
        for (unsigned i = 0; i < ITEMS / 3; i++)
            cr_assert_eq(stage_next(s, &item), STATUS_OK);
        for (uint64_t n = ITEMS / 2; n < ITEMS; n++) {
            uint64_t number;
            cr_assert_eq(stage_add(s, item_of(n, bytes), &number), STATUS_OK);
            cr_assert_eq(number, n);
        }
        expect_items(s, ITEMS, false);
        stage_close(s);
    }
}

Test(stage, a_cleared_stage_is_as_new)
{
    for (unsigned m = 0; m < MEMORY_COUNT; m++) {
        struct stage *s = stage_open(MEMORY[m], NULL);
        add_items(s, ITEMS);
        cr_assert_eq(stage_cancel(s, 3), STATUS_OK);
        stage_clear(s);
        expect_items(s, 0, false);
        add_items(s, ITEMS / 2);
        expect_items(s, ITEMS / 2, false);
        stage_close(s);
    }
}

Test(stage, memory_is_used_up_to_the_cap_before_a_file_is)
{
    uint8_t bytes[ITEM_MAX];
    struct stage *s = stage_open(2 << 20, NULL);
    struct rlimit usual, no_files;
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &usual), 0);
    no_files = (struct rlimit){ .rlim_max = usual.rlim_max };
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &no_files), 0);
    size_t sum = 0;
    enum status status = STATUS_OK;
    for (uint64_t n = 0, number; status == STATUS_OK && sum < 4 << 20; n++) {
        struct bytes item = item_of(n, bytes);
        status = stage_add(s, item, &number);
        sum += item.len;
    }
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
    cr_assert_eq(status, STATUS_IO, "behind the cap there must be a file");
    cr_assert_neq(stage_error(s)[0], '\0');
    cr_assert_gt(sum, (2 << 20) - (1 << 16), "but not before");
    cr_assert_lt(sum, (2 << 20) + (1 << 16));
    stage_close(s);
}
