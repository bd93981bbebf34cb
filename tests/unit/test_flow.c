/* SPDX-License-Identifier: Apache-2.0 */
#include "connection.h"
#include "flow.h"

#include <criterion/criterion.h>

enum { KEYS = 300 };
#define START_NS (INT64_C(1700000000) * NS_PER_SECOND)

static uint32_t random_below(uint64_t *state, uint32_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33) % n;
}

static struct endpoint endpoint_of(uint32_t number)
{
    uint8_t octet[4] = { 192, 0, (uint8_t)(number >> 8), (uint8_t)number };
    return (struct endpoint){ .address = address_of_ipv4(octet), .port = (uint16_t)(number % 7) };
}

static struct flow_key key_of(uint32_t number)
{
    struct segment s = { .from = endpoint_of(number), .to = endpoint_of(60000) };
    return flow_key_of(&s);
}

static void empty(struct flow_table *t)
{
    for (struct flow *f; (f = flow_nearest_deadline(t)) != NULL;)
        flow_remove(t, f);
    cr_assert_eq(flow_count(t), 0);
    flow_table_close(t);
}

Test(flow, both_directions_have_one_key)
{
    struct segment to = { .from = endpoint_of(1), .to = endpoint_of(2) };
    struct segment back = { .from = endpoint_of(2), .to = endpoint_of(1) };
    struct flow_key a = flow_key_of(&to), b = flow_key_of(&back);
    cr_assert_eq(memcmp(&a, &b, sizeof a), 0);
    back.to.port++;
    b = flow_key_of(&back);
    cr_assert_neq(memcmp(&a, &b, sizeof a), 0);
}

Test(flow, the_table_agrees_with_a_naive_one)
{
    uint64_t seed = 7;
    bool there[KEYS] = { false };
    uint64_t stamp[KEYS] = { 0 };
    size_t count = 0;
    struct flow_table *t = flow_table_open(99);
    for (unsigned i = 0; i < 200000; i++) {
        uint32_t n = random_below(&seed, KEYS);
        struct flow_key key = key_of(n);
        struct flow *f = flow_find(t, &key);
        cr_assert_eq(f != NULL, there[n]);
        if (f != NULL) {
            cr_assert_eq(f->first_packet_no, stamp[n], "a flow stays where it is");
            cr_assert_eq(memcmp(&f->key, &key, sizeof key), 0);
        }
        if (random_below(&seed, 3) > 0)
            continue;
        if (f == NULL) {
            f = flow_add(t, &key, START_NS);
            cr_assert_eq(f->first_packet_no, 0, "a new flow is zeroed");
            f->first_packet_no = stamp[n] = i + 1;
            there[n] = true;
            count++;
        } else {
            flow_remove(t, f);
            there[n] = false;
            count--;
        }
        cr_assert_eq(flow_count(t), count);
    }
    empty(t);
}

Test(flow, what_is_fetched_ahead_need_not_be_there)
{
    struct flow_table *t = flow_table_open(99);
    struct flow_key there = key_of(1), not_there = key_of(2);
    struct connection_pool pool = { 0 };
    struct flow *f = flow_add(t, &there, START_NS);
    for (unsigned i = 0; i < 3; i++) { /* without a connection, with one, with none again */
        f->connection = i == 1 ? connection_open(&pool, &f->opening) : NULL;
        const struct flow_key *keys[] = { &there, &not_there };
        for (unsigned k = 0; k < 2; k++) {
            uint32_t hash = flow_hash(t, keys[k]);
            flow_prefetch_slot(t, hash);
            flow_prefetch_flow(t, hash);
            flow_prefetch_connection(t, hash);
            cr_assert_eq(flow_find(t, keys[k]), k == 0 ? f : NULL);
        }
        connection_close(&pool, f->connection);
    }
    f->connection = NULL;
    connection_pool_done(&pool);
    empty(t);
}

Test(flow, the_one_behind_is_the_next_to_end)
{
    struct flow_table *t = flow_table_open(99);
    for (uint32_t n = 0; n < 20; n++) {
        struct flow_key key = key_of(n);
        cr_assert_not_null(flow_add(t, &key, START_NS));
    }
    for (unsigned left = 20; left > 0; left--) {
        struct flow *flow = flow_nearest_half_open(t);
        const struct flow *behind = flow_prefetch_next(t, flow);
        flow_remove(t, flow);
        cr_assert_eq(flow_nearest_half_open(t), behind);
    }
    empty(t);
}

Test(flow, flows_of_one_key_are_all_found_whatever_was_removed)
{
    enum { OF_ONE_KEY = 8 };
    uint64_t seed = 5;
    struct flow_table *t = flow_table_open(3);
    struct flow *there[KEYS][OF_ONE_KEY] = { 0 };
    for (unsigned i = 0; i < 30000; i++) { /* grows the table on its way */
        uint32_t n = random_below(&seed, KEYS);
        uint32_t which = random_below(&seed, OF_ONE_KEY);
        struct flow_key key = key_of(n);
        struct flow **entry = &there[n][which];
        if (*entry == NULL) {
            *entry = flow_add(t, &key, START_NS);
        } else {
            flow_remove(t, *entry);
            *entry = NULL;
        }
        unsigned expected = 0, found = 0;
        for (unsigned j = 0; j < OF_ONE_KEY; j++)
            expected += there[n][j] != NULL;
        for (struct flow *f = flow_find(t, &key); f != NULL; f = flow_find_next(t, f)) {
            cr_assert_eq(memcmp(&f->key, &key, sizeof key), 0);
            found++;
        }
        cr_assert_eq(found, expected);
    }
    empty(t);
}

Test(flow, many_flows_are_all_found_and_removed)
{
    enum { MANY = 100000 };
    struct flow_table *t = flow_table_open(3);
    for (uint32_t i = 0; i < MANY; i++) {
        struct segment s = { .from = endpoint_of(i % 60000), .to = endpoint_of(60001 + i / 60000) };
        struct flow_key key = flow_key_of(&s);
        struct flow *f = flow_add(t, &key, START_NS);
        f->first_packet_no = i;
    }
    for (uint32_t i = 0; i < MANY; i++) {
        struct segment s = { .from = endpoint_of(i % 60000), .to = endpoint_of(60001 + i / 60000) };
        struct flow_key key = flow_key_of(&s);
        struct flow *f = flow_find(t, &key);
        cr_assert_not_null(f);
        cr_assert_eq(f->first_packet_no, i);
        if (i % 2 == 0)
            flow_remove(t, f);
    }
    cr_assert_eq(flow_count(t), MANY / 2);
    empty(t);
}

/* Any address will do: the table never looks behind it. */
static struct connection *some_connection(struct flow *f)
{
    return (struct connection *)(void *)f;
}

static struct flow *add_in_state(struct flow_table *t, uint32_t number, unsigned state,
                                 int64_t now_ns)
{
    struct flow_key key = key_of(number);
    struct flow *f = flow_add(t, &key, now_ns);
    f->restless = true; /* never to be parked: only its limit counts */
    if (state > 0)
        f->connection = some_connection(f);
    if (state > 1)
        f->payload_seen[CLIENT] = f->payload_seen[SERVER] = true;
    if (state > 2)
        f->ends = state == 3 ? FLOW_RESET_SERVER : FLOW_FIN_CLIENT | FLOW_FIN_SERVER;
    flow_hurry(t, f);
    return f;
}

Test(flow, limits_follow_the_state)
{
    static const int64_t LIMITS[] = { HALF_OPEN_IDLE_NS, HANDSHAKE_IDLE_NS, ESTABLISHED_IDLE_NS,
                                      CLOSED_LINGER_NS, CLOSED_LINGER_NS };
    struct flow_table *t = flow_table_open(1);
    for (unsigned state = 0; state < 5; state++) {
        struct flow *f = add_in_state(t, state, state, START_NS);
        cr_assert_eq(flow_idle_limit(f), LIMITS[state]);
        cr_assert_eq(flow_is_closed(f), state > 2);
        cr_assert_eq(flow_is_half_open(f), state == 0);
    }
    struct flow *f = add_in_state(t, 9, 1, START_NS);
    f->payload_seen[CLIENT] = true;
    cr_assert_eq(flow_idle_limit(f), HANDSHAKE_IDLE_NS, "one side's payload is no exchange");
    f->ends = FLOW_FIN_CLIENT;
    cr_assert_not(flow_is_closed(f), "one FIN leaves the other direction open");
    empty(t);
}

Test(flow, a_flow_is_over_behind_its_limit_and_at_most_a_second_later)
{
    for (unsigned state = 0; state < 4; state++)
        for (int64_t part = 0; part < NS_PER_SECOND; part += NS_PER_SECOND / 7) {
            struct flow_table *t = flow_table_open(1);
            int64_t begin = START_NS + part;
            struct flow *f = add_in_state(t, 1, state, begin);
            int64_t limit = flow_idle_limit(f);
            for (int64_t now = begin; now <= begin + limit; now += NS_PER_SECOND / 2)
                cr_assert_null(flow_next_silent(t, now), "not before its limit");
            cr_assert_null(flow_next_silent(t, begin + limit));
            cr_assert_eq(flow_next_silent(t, begin + limit + NS_PER_SECOND + 1), f);
            flow_remove(t, f);
            cr_assert_null(flow_next_silent(t, begin + limit + 2 * NS_PER_SECOND));
            flow_table_close(t);
        }
}

Test(flow, packets_put_the_end_off)
{
    struct flow_table *t = flow_table_open(1);
    struct flow *f = add_in_state(t, 1, 2, START_NS);
    int64_t now = START_NS;
    for (unsigned i = 0; i < 3000; i++) {
        now += 10 * NS_PER_SECOND;
        cr_assert_null(flow_next_silent(t, now));
        f->last_ns = now;
    }
    cr_assert_null(flow_next_silent(t, now + ESTABLISHED_IDLE_NS));
    cr_assert_eq(flow_next_silent(t, now + ESTABLISHED_IDLE_NS + NS_PER_SECOND + 1), f);
    empty(t);
}

Test(flow, a_jump_of_time_ends_every_flow)
{
    static const int64_t JUMPS[] = { 1000, 1023, 1024, 1025, 5000, INT64_C(3600) * 24 * 365 * 100 };
    for (unsigned j = 0; j < sizeof JUMPS / sizeof JUMPS[0]; j++) {
        struct flow_table *t = flow_table_open(1);
        for (unsigned i = 0; i < 200; i++)
            add_in_state(t, i, i % 4, START_NS + i * NS_PER_SECOND / 10);
        struct flow *f;
        unsigned ended = 0;
        while ((f = flow_next_silent(t, START_NS + JUMPS[j] * NS_PER_SECOND)) != NULL) {
            flow_remove(t, f);
            ended++;
        }
        cr_assert_eq(ended, 200, "%u of 200 after %d seconds", ended, (int)JUMPS[j]);
        flow_table_close(t);
    }
}

/* Deadline of a flow that is never parked, rounded up to the next second as the wheel does. */
static bool is_overdue(const struct flow *f, int64_t now_ns)
{
    int64_t deadline = f->last_ns + flow_idle_limit(f);
    return deadline / NS_PER_SECOND + 1 <= now_ns / NS_PER_SECOND;
}

Test(flow, the_wheel_forgets_none_and_ends_none_too_early)
{
    uint64_t seed = 5;
    struct flow_table *t = flow_table_open(1);
    struct flow *live[KEYS] = { NULL };
    int64_t now = START_NS;
    for (unsigned i = 0; i < 100000; i++) {
        uint32_t n = random_below(&seed, KEYS);
        if (live[n] == NULL) {
            live[n] = add_in_state(t, n, random_below(&seed, 5), now);
        } else if (random_below(&seed, 4) == 0) {
            live[n]->last_ns = now;
            live[n]->ends |= FLOW_RESET_CLIENT;
            flow_hurry(t, live[n]);
        } else {
            live[n]->last_ns = now;
        }
        if (random_below(&seed, 50) > 0)
            now += (int64_t)random_below(&seed, 1000000000);
        else
            now += (int64_t)random_below(&seed, 2000) * NS_PER_SECOND;
        for (struct flow *f; (f = flow_next_silent(t, now)) != NULL;) {
            uint32_t number = 0;
            while (live[number] != f)
                cr_assert_lt(++number, KEYS, "it is one of the live ones");
            cr_assert_gt(now - f->last_ns, flow_idle_limit(f));
            flow_remove(t, f);
            live[number] = NULL;
        }
        for (uint32_t k = 0; k < KEYS; k++)
            cr_assert(live[k] == NULL || !is_overdue(live[k], now), "step %u: a flow was forgotten",
                      i);
    }
    empty(t);
}

Test(flow, a_connection_asks_to_be_parked_and_then_waits_for_its_limit)
{
    struct flow_table *t = flow_table_open(1);
    struct flow *f = add_in_state(t, 1, 2, START_NS);
    f->restless = false;
    flow_hurry(t, f);
    cr_assert_null(flow_next_silent(t, START_NS + PARK_AFTER_NS));
    cr_assert_eq(flow_next_silent(t, START_NS + PARK_AFTER_NS + NS_PER_SECOND + 1), f);
    f->restless = true; /* could not be */
    cr_assert_null(flow_next_silent(t, START_NS + ESTABLISHED_IDLE_NS));
    cr_assert_eq(flow_next_silent(t, START_NS + ESTABLISHED_IDLE_NS + NS_PER_SECOND + 1), f);
    empty(t);
}

/* When the first of so many connections asks to be parked, in seconds since it was silent. */
static int64_t first_asks_after(uint32_t count)
{
    struct flow_table *t = flow_table_open(1);
    int64_t start_ns = START_NS + NS_PER_SECOND / 2, after = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct flow *f = add_in_state(t, i, 2, start_ns);
        f->restless = false;
        flow_hurry(t, f);
    }
    while (flow_next_silent(t, start_ns + after * NS_PER_SECOND) == NULL)
        after++;
    empty(t);
    return after;
}

Test(flow, a_connection_asks_sooner_when_many_are_live)
{
    cr_expect_eq(first_asks_after(PARK_SOON_FLOWS), 6);
    cr_expect_eq(first_asks_after(PARK_SOON_FLOWS + 1), 2);
    cr_expect_eq(first_asks_after(PARK_AT_ONCE_FLOWS + 1), 1);
}

Test(flow, half_open_flows_are_counted_and_found_the_oldest_first)
{
    struct flow_table *t = flow_table_open(1);
    for (unsigned i = 0; i < 200; i++)
        add_in_state(t, i, i % 2, START_NS + (int64_t)(i / 20) * NS_PER_SECOND);
    cr_assert_eq(flow_half_open_count(t), 100);
    struct flow *late = flow_nearest_half_open(t);
    late->connection = some_connection(late);
    flow_hurry(t, late);
    cr_assert_eq(flow_half_open_count(t), 99, "it came about");
    int64_t last_ns = 0;
    for (struct flow *f; (f = flow_nearest_half_open(t)) != NULL; flow_remove(t, f)) {
        cr_assert(flow_is_half_open(f));
        cr_assert_geq(f->last_ns, last_ns);
        last_ns = f->last_ns;
    }
    cr_assert_eq(flow_half_open_count(t), 0);
    cr_assert_eq(flow_count(t), 101);
    empty(t);
}

Test(flow, packets_older_than_the_table_s_time_end_nothing_early)
{
    struct flow_table *t = flow_table_open(1);
    struct flow *old = add_in_state(t, 1, 2, START_NS);
    cr_assert_null(flow_next_silent(t, START_NS + 10 * NS_PER_SECOND));
    struct flow *late = add_in_state(t, 2, 2, START_NS - 3600 * NS_PER_SECOND); /* a clock step */
    cr_assert_eq(flow_next_silent(t, START_NS + 12 * NS_PER_SECOND), late,
                 "by its own times it is over");
    flow_remove(t, late);
    cr_assert_null(flow_next_silent(t, START_NS + 13 * NS_PER_SECOND));
    flow_remove(t, old);
    flow_table_close(t);
}
