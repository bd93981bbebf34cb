/* SPDX-License-Identifier: Apache-2.0 */
#include "slots.h"

#include <criterion/criterion.h>

enum { NUMBERS = 400 };

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % n;
}

/* Few hashes, near the end of the array, so that runs of probing are long and wrap around. */
static uint32_t hash_of(uint32_t number)
{
    return UINT32_MAX - number % 7;
}

static bool has(const struct slots *s, uint32_t number)
{
    size_t place;
    uint32_t hash = hash_of(number), found = 0, n;
    for (n = slots_first(s, hash, &place); n != 0; n = slots_next(s, hash, &place)) {
        cr_assert_eq(hash_of(n), hash);
        found += n == number;
    }
    cr_assert_leq(found, 1);
    return found == 1;
}

Test(slots, nothing_is_found_in_none)
{
    struct slots s = { 0 };
    slots_prefetch(&s, 5);
    cr_assert_not(has(&s, 5));
    slots_done(&s);
}

Test(slots, agree_with_a_naive_set)
{
    uint64_t seed = 5;
    bool there[NUMBERS + 1] = { false };
    struct slots s = { 0 };
    for (unsigned i = 0; i < 100000; i++) {
        uint32_t n = 1 + random_below(&seed, NUMBERS);
        cr_assert_eq(has(&s, n), there[n]);
        if (there[n]) {
            slots_remove(&s, hash_of(n), n);
        } else {
            cr_assert_eq(slots_reserve(&s), STATUS_OK);
            slots_add(&s, hash_of(n), n);
        }
        there[n] = !there[n];
    }
    slots_done(&s);
}

Test(slots, those_of_one_hash_stay_in_order)
{
    struct slots s = { 0 };
    for (uint32_t n = 1; n <= 5000; n++) {
        cr_assert_eq(slots_reserve(&s), STATUS_OK);
        slots_add(&s, hash_of(n), n);
        cr_assert_leq(2 * s.used, s.mask + 1, "half of it stays empty");
    }
    for (uint32_t n = 3; n <= 5000; n += 3)
        slots_remove(&s, hash_of(n), n);
    for (uint32_t k = 0; k < 7; k++) {
        size_t place;
        uint32_t last = 0, hash = hash_of(k), count = 0;
        for (uint32_t n = slots_first(&s, hash, &place); n != 0; n = slots_next(&s, hash, &place)) {
            cr_assert_gt(n, last);
            last = n;
            count++;
        }
        cr_assert_gt(count, 400);
    }
    slots_done(&s);
}
