/* SPDX-License-Identifier: Apache-2.0 */
#include "roles.h"

#include <criterion/criterion.h>

static struct address address_of(uint32_t number)
{
    uint8_t octet[4] = { 10, (uint8_t)(number >> 16), (uint8_t)(number >> 8), (uint8_t)number };
    return address_of_ipv4(octet);
}

static void add(struct roles *r, uint32_t server, uint32_t client)
{
    struct address s = address_of(server), c = address_of(client);
    cr_assert_eq(roles_add(r, &s, &c), STATUS_OK);
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
