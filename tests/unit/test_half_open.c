/* SPDX-License-Identifier: Apache-2.0 */
#include "half_open.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define NS_PER_SECOND INT64_C(1000000000)

static struct endpoint server_of(uint32_t number)
{
    uint8_t octet[4] = { 198, 51, (uint8_t)(number >> 8), (uint8_t)number };
    return (struct endpoint){ .address = address_of_ipv4(octet), .port = 443 };
}

static struct address client_of(uint32_t number)
{
    uint8_t octet[4] = { (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number, 1 };
    return address_of_ipv4(octet);
}

static bool add(struct half_opens *h, uint32_t server, uint32_t client, int64_t at_ns)
{
    struct endpoint s = server_of(server);
    struct address c = client_of(client);
    bool row;
    cr_assert_eq(half_opens_add(h, &s, &c, at_ns, &row), STATUS_OK);
    return row;
}

Test(half_open, flows_are_counted_by_server_and_second)
{
    struct half_opens *h = half_opens_open(1);
    for (uint32_t i = 0; i < 3000; i++)
        add(h, i % 3, i, (100 + i % 2) * NS_PER_SECOND + i);
    size_t count;
    const struct half_open_count *all = half_opens_all(h, &count);
    cr_assert_eq(count, 6);
    for (size_t i = 0; i < count; i++) {
        cr_assert_eq(all[i].flows, 500);
        cr_assert(all[i].second == 100 || all[i].second == 101);
    }
    half_opens_close(h);
    half_opens_close(NULL);
}

Test(half_open, only_the_first_of_a_second_have_rows)
{
    struct half_opens *h = half_opens_open(1);
    unsigned rows = 0;
    for (uint32_t i = 0; i < 1000; i++)
        rows += add(h, 1, i, 5 * NS_PER_SECOND);
    cr_assert_eq(rows, HALF_OPEN_ROWS_MAX);
    cr_assert(add(h, 1, 1, 6 * NS_PER_SECOND), "the next second has its own");
    cr_assert(add(h, 2, 1, 5 * NS_PER_SECOND), "another server, too");
    half_opens_close(h);
}

Test(half_open, a_second_has_so_many_rows_of_all_servers)
{
    struct half_opens *h = half_opens_open(1);
    unsigned rows = 0;
    for (uint32_t i = 0; i < 5000; i++) /* of one second, those of the next between them */
        rows += add(h, i % 100, i, 5 * NS_PER_SECOND) + add(h, 200, i, 6 * NS_PER_SECOND);
    cr_assert_eq(rows, HALF_OPEN_SECOND_ROWS_MIN + HALF_OPEN_ROWS_MAX);
    size_t count;
    const struct half_open_count *all = half_opens_all(h, &count);
    for (size_t i = 0; i < count; i++)
        cr_assert_eq(all[i].flows, all[i].second == 5 ? 50 : 5000, "all are counted");
    half_opens_close(h);
}

Test(half_open, a_second_has_as_many_rows_as_connections)
{
    enum { CONNECTIONS = 2 * HALF_OPEN_SECOND_ROWS_MIN };
    struct half_opens *h = half_opens_open(1);
    unsigned rows = 0, other_rows = 0;
    for (uint32_t i = 0; i < CONNECTIONS; i++)
        half_opens_note_connection(h, 5 * NS_PER_SECOND + i);
    for (uint32_t i = 0; i < 5000; i++) {
        rows += add(h, i % 100, i, 5 * NS_PER_SECOND);
        other_rows += add(h, i % 100, i, 6 * NS_PER_SECOND);
    }
    cr_assert_eq(rows, CONNECTIONS);
    cr_assert_eq(other_rows, HALF_OPEN_SECOND_ROWS_MIN);
    half_opens_close(h);
}

Test(half_open, what_is_carried_counts_for_the_rows_of_its_second)
{
    struct half_opens *h = half_opens_open(1), *carried = half_opens_open(2);
    struct buffer packed = { 0 };
    enum { CONNECTIONS = HALF_OPEN_SECOND_ROWS_MIN + 7 };
    unsigned rows = 0;
    for (uint32_t i = 0; i < 300; i++)
        rows += add(h, i % 2, i, 5 * NS_PER_SECOND);
    for (uint32_t i = 0; i < CONNECTIONS; i++)
        half_opens_note_connection(h, 5 * NS_PER_SECOND);
    struct coder out = coder_to(&packed);
    half_opens_code(&out, h, 0);
    struct coder in = coder_of((struct bytes){ packed.at, packed.len });
    half_opens_code(&in, carried, 0);
    cr_assert_not(in.failed);
    for (uint32_t i = 0; i < 5000; i++)
        rows += add(carried, i % 100, i, 5 * NS_PER_SECOND);
    cr_assert_eq(rows, CONNECTIONS, "%u", rows);
    buffer_done(&packed);
    half_opens_close(h);
    half_opens_close(carried);
}

Test(half_open, one_that_came_about_is_taken_back)
{
    struct half_opens *h = half_opens_open(1);
    struct endpoint server = server_of(1), other = server_of(2);
    size_t count;
    half_opens_remove(h, &server, 0);
    add(h, 1, 1, 5 * NS_PER_SECOND);
    half_opens_remove(h, &other, 5 * NS_PER_SECOND);
    half_opens_remove(h, &server, 6 * NS_PER_SECOND);
    cr_assert_eq(half_opens_all(h, &count)->flows, 1);
    half_opens_remove(h, &server, 5 * NS_PER_SECOND + 7);
    half_opens_remove(h, &server, 5 * NS_PER_SECOND);
    cr_assert_eq(half_opens_all(h, &count)->flows, 0, "and never below zero");
    half_opens_close(h);
}

Test(half_open, prefixes_are_estimated_to_some_percent)
{
    static const uint32_t NUMBERS[] = { 1, 2, 10, 100, 300, 500 };
    for (unsigned i = 0; i < sizeof NUMBERS / sizeof NUMBERS[0]; i++) {
        struct half_opens *h = half_opens_open(1);
        for (uint32_t k = 0; k < 5000; k++)
            add(h, 1, k % NUMBERS[i], 5 * NS_PER_SECOND);
        size_t count;
        int64_t estimate = half_open_prefixes(half_opens_all(h, &count));
        int64_t error = estimate - (int64_t)NUMBERS[i];
        cr_assert_leq(llabs(error), 1 + NUMBERS[i] / 5, "%u taken for %d", NUMBERS[i],
                      (int)estimate);
        half_opens_close(h);
    }
    cr_assert_eq(half_open_prefixes(&(struct half_open_count){ 0 }), 0);
    struct half_open_count full = { .prefixes_seen = { ~0ULL, ~0ULL, ~0ULL, ~0ULL } };
    cr_assert_gt(half_open_prefixes(&full), 1000);
}

Test(half_open, beyond_the_cap_all_others_are_one_count)
{
    struct half_opens *h = half_opens_open(1);
    uint64_t flows = 0;
    for (uint32_t i = 0; i < HALF_OPEN_COUNTS_MAX + 1000; i++, flows++)
        add(h, i % 60000, 1, (int64_t)(i / 60000) * NS_PER_SECOND + NS_PER_SECOND);
    size_t count;
    const struct half_open_count *all = half_opens_all(h, &count);
    cr_assert_eq(count, HALF_OPEN_COUNTS_MAX);
    cr_assert_eq(all[count - 1].server.port, 0);
    cr_assert_eq(all[count - 1].flows, 1001);
    for (size_t i = 0; i < count; i++)
        flows -= all[i].flows;
    cr_assert_eq(flows, 0, "none is lost");
    half_opens_close(h);
}
