/* SPDX-License-Identifier: Apache-2.0 */
#include "roles.h"

#include <criterion/criterion.h>

static struct address address_of(uint32_t number)
{
    uint8_t octet[4] = { 10, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number };
    return address_of_ipv4(octet);
}

#define HOUR (3600 * INT64_C(1000000000))

static void add_at(struct roles *r, uint32_t server, uint32_t client, int64_t start_ns)
{
    struct address s = address_of(server), c = address_of(client);
    cr_assert_eq(roles_add(r, &s, &c, start_ns), STATUS_OK);
}

static void add(struct roles *r, uint32_t server, uint32_t client)
{
    add_at(r, server, client, 1000 * HOUR);
}

/* What the next run knows, with another seed. */
static struct roles *next_run(struct roles *r, int64_t now_ns)
{
    struct buffer packed = { 0 };
    struct coder out = coder_to(&packed);
    roles_code(&out, r, now_ns);
    cr_assert_not(out.failed);
    struct roles *next = roles_open(77);
    struct coder in = coder_of((struct bytes){ packed.at, packed.len });
    roles_code(&in, next, 0);
    cr_assert_not(in.failed);
    cr_assert_eq(in.in.rest.len, 0);
    buffer_done(&packed);
    roles_close(r);
    return next;
}

static bool is_server(const struct roles *r, uint32_t address)
{
    struct address a = address_of(address);
    return roles_is_server(r, &a);
}

Test(roles, many_different_clients_make_a_server_ours)
{
    struct roles *r = roles_open(1);
    cr_assert_not(is_server(r, 1), "nothing is known");
    for (uint32_t client = 100; client < 100 + ROLE_CLIENTS; client++) {
        cr_assert_not(is_server(r, 1), "client %u", client);
        for (unsigned again = 0; again < 3; again++)
            add(r, 1, client);
    }
    cr_assert(is_server(r, 1));
    cr_assert_not(is_server(r, 100), "clients are none");
    roles_close(r);
    roles_close(NULL);
}

Test(roles, a_scan_of_many_servers_makes_none_ours)
{
    struct roles *r = roles_open(2);
    for (uint32_t client = 0; client < ROLE_CLIENTS; client++)
        add(r, 1, client);
    for (uint32_t server = 1000; server < 1000 + ROLES_MAX + 1000; server++)
        add(r, server, 7);
    cr_assert(is_server(r, 1), "and forgets none");
    cr_assert_not(is_server(r, 1000));
    cr_assert_not(is_server(r, 1000 + ROLES_MAX + 999), "beyond the cap");
    roles_close(r);
}

Test(roles, clients_of_several_runs_count_together_and_each_once)
{
    struct roles *r = roles_open(3);
    for (uint32_t run = 0; run < 3; run++) {
        for (uint32_t client = 0; client < ROLE_CLIENTS - 1; client++)
            add(r, 1, client);
        cr_assert_not(is_server(r, 1), "the same clients again, run %u", run);
        r = next_run(r, 1000 * HOUR);
    }
    add(r, 1, ROLE_CLIENTS - 1);
    cr_assert(is_server(r, 1));
    r = next_run(r, 1000 * HOUR);
    cr_assert(is_server(r, 1), "and the runs after it know");
    add(r, 1, 500);
    cr_assert(is_server(r, 1));
    cr_assert_not(is_server(r, 500));
    roles_close(r);
}

Test(roles, who_serves_nobody_for_a_week_is_forgotten)
{
    struct roles *r = roles_open(4);
    for (uint32_t client = 0; client < ROLE_CLIENTS; client++) {
        add_at(r, 1, client, 1000 * HOUR);
        add_at(r, 2, client, 1000 * HOUR);
    }
    add_at(r, 1, 0, 1001 * HOUR);
    r = next_run(r, (1000 + ROLE_KEPT_HOURS) * HOUR);
    cr_assert(is_server(r, 1));
    cr_assert(is_server(r, 2));
    r = next_run(r, (1001 + ROLE_KEPT_HOURS) * HOUR);
    cr_assert(is_server(r, 1), "its last flow counts, of whichever client");
    cr_assert_not(is_server(r, 2));
    roles_close(r);
}

Test(roles, a_scan_does_not_push_servers_out_of_what_is_carried)
{
    struct roles *r = roles_open(5);
    for (uint32_t server = 1000; server < 1001 + ROLES_CARRIED_MAX; server++)
        add(r, server, 7);
    for (uint32_t client = 0; client < ROLE_CLIENTS; client++)
        add(r, 1, client);
    for (uint32_t client = 0; client < 2; client++)
        add(r, 2, client);
    r = next_run(r, 1000 * HOUR);
    cr_assert(is_server(r, 1));
    for (uint32_t client = 2; client < ROLE_CLIENTS; client++) {
        add(r, 2, client);
        add(r, 1000, client);
    }
    cr_assert(is_server(r, 2), "two clients are more than one");
    cr_assert_not(is_server(r, 1000), "its first client is left out");
    roles_close(r);
}

Test(roles, more_servers_than_are_carried_are_cut)
{
    struct roles *r = roles_open(6);
    for (uint32_t server = 1000; server < 1010 + ROLES_CARRIED_MAX; server++)
        for (uint32_t client = 0; client < ROLE_CLIENTS; client++)
            add(r, server, client);
    r = next_run(r, 1000 * HOUR);
    uint32_t known = 0;
    for (uint32_t server = 1000; server < 1010 + ROLES_CARRIED_MAX; server++)
        known += is_server(r, server);
    cr_assert_eq(known, ROLES_CARRIED_MAX);
    roles_close(r);
}

Test(roles, damaged_bytes_are_refused)
{
    struct roles *r = roles_open(7);
    struct buffer packed = { 0 };
    struct coder out = coder_to(&packed);
    for (uint32_t client = 0; client < 3; client++)
        add(r, 1, client);
    add(r, 2, 0);
    roles_code(&out, r, 1000 * HOUR);
    roles_close(r);
    for (size_t len = 0; len < packed.len; len++) {
        struct roles *cut = roles_open(8);
        struct coder in = coder_of((struct bytes){ packed.at, len });
        roles_code(&in, cut, 0);
        cr_assert(in.failed, "%zu of %zu bytes", len, packed.len);
        roles_close(cut);
    }
    buffer_done(&packed);
}
