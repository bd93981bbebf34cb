/* SPDX-License-Identifier: Apache-2.0 */
#include "past.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct past_flow flow_of(uint64_t hash, int64_t first_ns)
{
    return (struct past_flow){ .key_hash = hash, .first_ns = first_ns, .last_ns = first_ns };
}

static void remember(struct past *p, uint64_t hash, int64_t first_ns)
{
    struct past_flow flow = flow_of(hash, first_ns);
    cr_assert_eq(past_remember(p, &flow), STATUS_OK);
}

/* When the flow of a hash that is remembered began; 0 = none is. */
static int64_t first_of(const struct past *p, uint64_t hash)
{
    struct past_flow found;
    return past_find(p, hash, &found) ? found.first_ns : 0;
}

Test(past, what_was_never_remembered_is_not_found)
{
    struct past *p = past_open();
    past_prefetch(p, 0);
    cr_assert_eq(first_of(p, 0), 0);
    past_forget(p, 0);
    remember(p, 1, 1);
    past_prefetch(p, 0);
    cr_assert_eq(first_of(p, 0), 0);
    past_close(p);
    past_close(NULL);
}

Test(past, the_latest_of_a_key_is_found)
{
    struct past *p = past_open();
    remember(p, 0, 10);
    remember(p, 0, 20);
    cr_assert_eq(first_of(p, 0), 20);
    past_forget(p, 0);
    cr_assert_eq(first_of(p, 0), 0, "and no older one behind it");
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
        cr_assert_eq(first_of(p, hash_of(n)), last[n]);
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
        bool is_kept = i >= ROUNDS - PAST_FLOWS_MAX;
        cr_assert_eq(first_of(p, spread(i)), is_kept ? (int64_t)i + 1 : 0, "flow %d", (int)i);
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
    cr_assert_eq(first_of(p, spread(0)), 2);
    past_close(p);
}

static bool equal(const struct past_flow *a, const struct past_flow *b)
{
    return a->key_hash == b->key_hash && a->last_ns == b->last_ns && a->kind == b->kind &&
           a->syn_count == b->syn_count && a->client_isn == b->client_isn &&
           a->first_ns == b->first_ns && a->stage_number == b->stage_number;
}

Test(past, all_of_a_half_open_flow_is_remembered)
{
    const int64_t HOUR_NS = INT64_C(3600) * 1000000000;
    struct past *p = past_open();
    struct past_flow found, flow = { .key_hash = UINT64_MAX,
                                     .first_ns = 1700000000123456789,
                                     .last_ns = 1700000000123456789 + 19 * HOUR_NS,
                                     .syn_count = UINT16_MAX,
                                     .client_isn = UINT32_MAX,
                                     .stage_number = UINT32_MAX - 1 };
    cr_assert_eq(past_remember(p, &flow), STATUS_OK);
    cr_assert(past_find(p, flow.key_hash, &found) && equal(&found, &flow));
    flow.stage_number = PAST_NOT_STAGED;
    cr_assert_eq(past_remember(p, &flow), STATUS_OK);
    cr_assert(past_find(p, flow.key_hash, &found) && equal(&found, &flow));
    past_close(p);
}

Test(past, what_no_entry_holds_is_forgotten)
{
    struct past *p = past_open();
    const int64_t DAY_NS = INT64_C(86400) * 1000000000;
    for (unsigned i = 0; i < 3; i++) {
        struct past_flow found, flow = { .key_hash = 5, .first_ns = DAY_NS, .last_ns = DAY_NS };
        remember(p, 5, DAY_NS);
        flow.last_ns += i == 0 ? DAY_NS : i == 1 ? -1 : 0;
        flow.stage_number = i == 2 ? UINT32_MAX : 0;
        cr_assert_eq(past_remember(p, &flow), STATUS_OK);
        cr_assert_not(past_find(p, 5, &found), "rather than half of it, case %u", i);
    }
    past_close(p);
}

Test(past, what_still_matters_is_packed_oldest_first)
{
    struct buffer packed = { 0 };
    struct past *p = past_open(), *again = past_open();
    for (unsigned kind = PAST_HALF_OPEN; kind <= PAST_CLOSED; kind++)
        for (uint64_t i = 0; i < 1000; i++) {
            struct past_flow flow = { .key_hash = spread(i + 1000 * kind),
                                      .last_ns = 1000 + (int64_t)i,
                                      .first_ns = 1000 + (int64_t)(i & 1),
                                      .client_isn = (uint32_t)(i * 77777),
                                      .syn_count = (uint16_t)i,
                                      .stage_number = i,
                                      .kind = (uint8_t)kind };
            cr_assert_eq(past_remember(p, &flow), STATUS_OK);
        }
    past_forget(p, spread(3));
    int64_t now_ns =
        1000 + PAST_CLOSED_NS + 10; /* ten closed ones, and all half-open ones, are over */
    struct coder to = coder_to(&packed);
    past_code(&to, p, now_ns);
    struct coder of = coder_of((struct bytes){ packed.at, packed.len });
    past_code(&of, again, now_ns);
    cr_assert(!to.failed && !of.failed && of.in.rest.len == 0);
    for (unsigned kind = PAST_HALF_OPEN; kind <= PAST_CLOSED; kind++)
        for (uint64_t i = 0; i < 1000; i++) {
            struct past_flow was, is;
            uint64_t hash = spread(i + 1000 * kind);
            bool kept = past_find(p, hash, &was) && !past_is_over(&was, now_ns);
            cr_assert_eq(past_find(again, hash, &is), kept);
            was.stage_number = is.stage_number;
            cr_assert(!kept || equal(&was, &is));
        }
    for (size_t len = 0; len < packed.len; len++) {
        struct past *cut = past_open();
        of = coder_of((struct bytes){ packed.at, len });
        past_code(&of, cut, now_ns);
        cr_assert(of.failed);
        past_close(cut);
    }
    past_close(p);
    past_close(again);
    buffer_done(&packed);
}
