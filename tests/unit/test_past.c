/* SPDX-License-Identifier: Apache-2.0 */
#include "past.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct past_flow flow_of(uint64_t hash, int64_t first_ns)
{
    return (struct past_flow){ .key_hash = hash, .first_ns = first_ns, .kind = PAST_IDLE };
}

static void remember(struct past *p, uint64_t hash, int64_t first_ns)
{
    struct past_flow flow = flow_of(hash, first_ns);
    cr_assert_eq(past_remember(p, &flow), STATUS_OK);
}

Test(past, what_was_never_remembered_is_not_found)
{
    struct past *p = past_open();
    cr_assert_null(past_find(p, 0));
    past_forget(p, 0);
    remember(p, 1, 1);
    cr_assert_null(past_find(p, 0));
    past_close(p);
    past_close(NULL);
}

Test(past, the_latest_of_a_key_is_found)
{
    struct past *p = past_open();
    remember(p, 0, 10);
    remember(p, 0, 20);
    cr_assert_eq(past_find(p, 0)->first_ns, 20);
    past_forget(p, 0);
    cr_assert_null(past_find(p, 0), "and no older one behind it");
    past_close(p);
}

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % n;
}

/* Hashes that collide in their low bits, so that runs of probing form and wrap around. */
static uint64_t hash_of(uint32_t number)
{
    return (uint64_t)(number % 5) * 7 - 3 + ((uint64_t)number << 32);
}

Test(past, the_memory_agrees_with_a_naive_one)
{
    enum { KEYS = 500 };
    int64_t last[KEYS] = { 0 };
    uint64_t seed = 11;
    struct past *p = past_open();
    for (unsigned i = 1; i < 200000; i++) {
        uint32_t n = random_below(&seed, KEYS);
        const struct past_flow *found = past_find(p, hash_of(n));
        cr_assert_eq(found == NULL ? 0 : found->first_ns, last[n]);
        if (random_below(&seed, 4) == 0) {
            past_forget(p, hash_of(n));
            last[n] = 0;
        } else {
            remember(p, hash_of(n), i);
            last[n] = i;
        }
    }
    past_close(p);
}

/* Spreads numbers as a hash does. */
static uint64_t spread(uint64_t n)
{
    n *= UINT64_C(0x9E3779B97F4A7C15);
    return n ^ n >> 29;
}

Test(past, when_the_ring_is_full_the_oldest_go)
{
    enum { ROUNDS = PAST_FLOWS_MAX + PAST_FLOWS_MAX / 4 };
    struct past *p = past_open();
    for (uint64_t i = 0; i < ROUNDS; i++)
        remember(p, spread(i), (int64_t)i + 1);
    for (uint64_t i = 0; i < ROUNDS; i += 97) {
        const struct past_flow *found = past_find(p, spread(i));
        if (i < ROUNDS - PAST_FLOWS_MAX)
            cr_assert_null(found, "%d is older than the ring", (int)i);
        else
            cr_assert(found != NULL && found->first_ns == (int64_t)i + 1);
    }
    past_close(p);
}

Test(past, one_that_came_again_outlives_its_first_entry)
{
    struct past *p = past_open();
    remember(p, spread(0), 1);
    for (uint64_t i = 1; i < PAST_FLOWS_MAX - 1; i++)
        remember(p, spread(i), 1);
    remember(p, spread(0), 2);
    for (uint64_t i = 0; i < 1000; i++) /* goes over the first entry */
        remember(p, spread(PAST_FLOWS_MAX + i), 1);
    cr_assert_not_null(past_find(p, spread(0)));
    cr_assert_eq(past_find(p, spread(0))->first_ns, 2);
    past_close(p);
}
