/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint.h"

#include <arpa/inet.h>
#include <criterion/criterion.h>

/* The C library's text is right: RFC 5952 but for what it takes for embedded IPv4. */
static void check_text(const struct address *a)
{
    char expected[INET6_ADDRSTRLEN], text[ADDRESS_TEXT_SIZE];
    struct address back;
    if (address_is_ipv4(a))
        inet_ntop(AF_INET, a->octet + 12, expected, sizeof expected);
    else
        inet_ntop(AF_INET6, a->octet, expected, sizeof expected);
    cr_assert_str_eq(address_text(a, text), expected);
    cr_assert(address_parse(text, &back), "%s", text);
    cr_assert_eq(memcmp(&back, a, sizeof back), 0, "%s", text);
}

Test(endpoint, text_of_addresses_is_the_usual_one)
{
    static const uint8_t GROUPS[][2] = {
        { 0, 0 }, { 0, 1 }, { 0, 0x23 }, { 4, 0x56 }, { 0xfe, 0x80 }
    };
    for (unsigned pattern = 0; pattern < 5 * 5 * 5 * 5 * 5 * 5 * 5 * 5; pattern++) {
        struct address a;
        for (unsigned i = 0, rest = pattern; i < 8; i++, rest /= 5) {
            a.octet[2 * i] = GROUPS[rest % 5][0];
            a.octet[2 * i + 1] = GROUPS[rest % 5][1];
        }
        check_text(&a);
    }
}

Test(endpoint, text_of_ipv4_is_dotted)
{
    for (unsigned i = 0; i < 65536; i++) {
        uint8_t octet[4] = { (uint8_t)i, (uint8_t)(i >> 8), (uint8_t)(i * 7), (uint8_t)(i ^ 255) };
        struct address a = address_of_ipv4(octet);
        check_text(&a);
    }
}
