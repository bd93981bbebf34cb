/* SPDX-License-Identifier: Apache-2.0 */
#include "spill.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { ITEMS = 300 };

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % n;
}

struct item {
    uint32_t place;
    size_t len;
    uint8_t bytes[SPILL_ITEM_MAX];
};

static void put(struct spill *s, struct item *item, size_t len, uint8_t first)
{
    item->len = len;
    for (size_t i = 0; i < len; i++)
        item->bytes[i] = (uint8_t)(first + i * 7);
    cr_assert_eq(spill_put(s, (struct bytes){ item->bytes, len }, &item->place), STATUS_OK);
    cr_assert_neq(item->place, 0);
}

static void expect_there(struct spill *s, const struct item *item)
{
    uint8_t bytes[SPILL_ITEM_MAX];
    cr_assert_eq(spill_read(s, item->place, bytes, item->len), STATUS_OK);
    cr_assert_eq(memcmp(bytes, item->bytes, item->len), 0);
}

Test(spill, items_come_back_in_any_order)
{
    uint64_t seed = 3;
    uint32_t farthest = 0;
    struct item *items = calloc(ITEMS, sizeof *items);
    struct spill *s = spill_open(NULL);
    for (uint32_t i = 0; i < 20000; i++) {
        struct item *item = &items[random_below(&seed, ITEMS)];
        if (item->place != 0) {
            expect_there(s, item);
            spill_remove(s, item->place, item->len);
            item->place = 0;
        } else {
            put(s, item, random_below(&seed, 8) * 50, (uint8_t)i);
        }
        farthest = item->place > farthest ? item->place : farthest;
    }
    cr_assert_lt(farthest, ITEMS * 8 * 6, "places are used again");
    for (unsigned i = 0; i < ITEMS; i++)
        if (items[i].place != 0)
            expect_there(s, &items[i]);
    spill_close(s);
    free(items);
}

Test(spill, the_largest_item_fits)
{
    struct item *items = calloc(2, sizeof *items);
    struct spill *s = spill_open(NULL);
    put(s, &items[0], SPILL_ITEM_MAX, 1);
    put(s, &items[1], SPILL_ITEM_MAX, 2);
    expect_there(s, &items[0]);
    expect_there(s, &items[1]);
    spill_close(s);
    spill_close(NULL);
    free(items);
}

Test(spill, what_cannot_be_written_is_refused)
{
    uint32_t place = 0;
    struct spill *s = spill_open(NULL);
    cr_assert_eq(spill_put(s, (struct bytes){ (const uint8_t *)"first", 5 }, &place), STATUS_OK);
    uint32_t first = place;
    signal(SIGXFSZ, SIG_IGN);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){ 64, 64 }), 0);
    cr_assert_eq(spill_put(s, (struct bytes){ (const uint8_t *)"second", 6 }, &place), STATUS_IO);
    cr_assert_eq(place, first);
    uint8_t bytes[5];
    cr_assert_eq(spill_read(s, first, bytes, 5), STATUS_OK, "what was written stays");
    cr_assert_eq(memcmp(bytes, "first", 5), 0);
    cr_assert_eq(spill_read(s, first + 1, bytes, 5), STATUS_IO, "nothing is there");
    spill_close(s);
}
