/* SPDX-License-Identifier: Apache-2.0 */
#include "neighbour.h"

#include <criterion/criterion.h>

#define MINUTE (60 * INT64_C(1000000000))

static struct address client_of(uint32_t number)
{
    uint8_t octet[4] = { 10, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number };
    return address_of_ipv4(octet);
}

static void add(struct neighbours *n, uint32_t client, int64_t start_ns, int64_t rtt_ns)
{
    struct address c = client_of(client);
    cr_assert_eq(neighbours_add(n, &c, start_ns, rtt_ns), STATUS_OK);
}

static int64_t least(const struct neighbours *n, uint32_t client, int64_t start_ns)
{
    struct address c = client_of(client);
    return neighbours_least(n, &c, start_ns);
}

Test(neighbour, the_least_within_ten_minutes_stands_in)
{
    struct neighbours *n = neighbours_open(1);
    cr_assert_eq(least(n, 1, 100 * MINUTE), INT64_MIN);
    add(n, 1, 100 * MINUTE, 50);
    add(n, 1, 100 * MINUTE + 5, 40);
    add(n, 1, 100 * MINUTE + 6, 60);
    add(n, 1, 105 * MINUTE, 30);
    cr_assert_eq(least(n, 1, 100 * MINUTE), 30);
    cr_assert_eq(least(n, 1, 95 * MINUTE), 30);
    cr_assert_eq(least(n, 1, 94 * MINUTE), 40);
    cr_assert_eq(least(n, 1, 110 * MINUTE), 30);
    cr_assert_eq(least(n, 1, 115 * MINUTE), 30);
    cr_assert_eq(least(n, 1, 116 * MINUTE), INT64_MIN);
    cr_assert_eq(least(n, 1, 89 * MINUTE), INT64_MIN);
    cr_assert_eq(least(n, 2, 100 * MINUTE), INT64_MIN, "another client is none");
    neighbours_close(n);
    neighbours_close(NULL);
}

Test(neighbour, what_is_no_round_trip_is_left_out)
{
    struct neighbours *n = neighbours_open(1);
    add(n, 1, 100 * MINUTE, 0);
    add(n, 1, 100 * MINUTE, -5);
    add(n, 1, 100 * MINUTE, INT64_MIN);
    add(n, 1, 100 * MINUTE, 2 * MINUTE);
    cr_assert_eq(least(n, 1, 100 * MINUTE), INT64_MIN);
    neighbours_close(n);
}

Test(neighbour, beyond_the_cap_the_known_ones_stay)
{
    struct neighbours *n = neighbours_open(1);
    for (uint32_t i = 0; i < NEIGHBOURS_MAX + 1000; i++)
        add(n, i, MINUTE * 100, 1 + i);
    for (uint32_t i = 0; i < NEIGHBOURS_MAX; i += 1001)
        cr_assert_eq(least(n, i, MINUTE * 100), 1 + i);
    cr_assert_eq(least(n, NEIGHBOURS_MAX + 5, MINUTE * 100), INT64_MIN);
    add(n, 7, MINUTE * 100, 2);
    cr_assert_eq(least(n, 7, MINUTE * 100), 2, "but they are still brought up to date");
    neighbours_close(n);
}

Test(neighbour, what_may_matter_to_a_later_flow_is_packed)
{
    const int64_t last_minute = INT64_MAX / MINUTE;
    struct buffer packed = { 0 };
    struct neighbours *n = neighbours_open(1), *again = neighbours_open(2);
    for (uint32_t i = 0; i < 3000; i++)
        add(n, i, (last_minute - i % 30) * MINUTE, 1 + i);
    struct coder to = coder_to(&packed);
    neighbours_code(&to, n, last_minute * MINUTE);
    struct coder of = coder_of((struct bytes){ packed.at, packed.len });
    neighbours_code(&of, again, 0);
    cr_assert(!to.failed && !of.failed && of.in.rest.len == 0);
    for (uint32_t i = 0; i < 3000; i++) {
        bool is_kept = i % 30 <= NEIGHBOUR_MINUTES + 1;
        cr_assert_eq(least(again, i, (last_minute - i % 30) * MINUTE), is_kept ? 1 + i : INT64_MIN);
    }
    neighbours_close(n);
    neighbours_close(again);
    buffer_done(&packed);
}
