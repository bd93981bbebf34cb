/* SPDX-License-Identifier: Apache-2.0 */
#include "endpoint.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static const uint8_t MAPPED[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

bool address_is_ipv4(const struct address *a)
{
    return memcmp(a->octet, MAPPED, sizeof MAPPED) == 0;
}

struct address address_of_ipv4(const uint8_t octet[4])
{
    struct address a;
    memcpy(a.octet, MAPPED, sizeof MAPPED);
    memcpy(a.octet + sizeof MAPPED, octet, 4);
    return a;
}

/* Every row holds several addresses, so they do without printf. */

static void ipv4_text(const uint8_t octet[4], char *at)
{
    for (unsigned i = 0; i < 4; i++) {
        unsigned value = octet[i];
        if (i > 0)
            *at++ = '.';
        if (value >= 100)
            *at++ = (char)('0' + value / 100);
        if (value >= 10)
            *at++ = (char)('0' + value / 10 % 10);
        *at++ = (char)('0' + value % 10);
    }
    *at = '\0';
}

enum { GROUPS = 8 };

static unsigned group_at(const uint8_t octet[16], size_t i)
{
    return (unsigned)octet[2 * i] << 8 | octet[2 * i + 1];
}

/* The longest run of zero groups, of several the first (RFC 5952 4.2); its length, below 2 none. */
static unsigned zero_run(const uint8_t octet[16], unsigned *ret_first)
{
    unsigned longest = 0;
    for (unsigned i = 0, run = 0; i < GROUPS; i++) {
        run = group_at(octet, i) == 0 ? run + 1 : 0;
        if (run > longest) {
            longest = run;
            *ret_first = i + 1 - run;
        }
    }
    return longest;
}

static char *group_text(unsigned group, char *at)
{
    for (int shift = group > 0xfff  ? 12
                     : group > 0xff ? 8
                     : group > 0xf  ? 4
                                    : 0;
         shift >= 0; shift -= 4)
        *at++ = "0123456789abcdef"[group >> shift & 15];
    return at;
}

static void ipv6_text(const uint8_t octet[16], char *at)
{
    unsigned first = 0, zeros = zero_run(octet, &first);
    bool holds_ipv4 = first == 0 && zeros == 6; /* "::192.0.2.1", RFC 4291 2.5.5.1 */
    if (zeros < 2)
        zeros = 0;
    for (unsigned i = 0; i < GROUPS; i++) {
        if (zeros > 0 && i == first) {
            *at++ = ':';
            i += zeros - 1;
            if (i == GROUPS - 1)
                *at++ = ':';
            continue;
        }
        if (i > 0)
            *at++ = ':';
        if (holds_ipv4) {
            ipv4_text(octet + 12, at);
            return;
        }
        at = group_text(group_at(octet, i), at);
    }
    *at = '\0';
}

const char *address_text(const struct address *a, char buffer[ADDRESS_TEXT_SIZE])
{
    if (address_is_ipv4(a))
        ipv4_text(a->octet + sizeof MAPPED, buffer);
    else
        ipv6_text(a->octet, buffer);
    return buffer;
}

bool address_parse(const char *text, struct address *ret_address)
{
    uint8_t v4[4];
    if (inet_pton(AF_INET, text, v4) == 1) {
        *ret_address = address_of_ipv4(v4);
        return true;
    }
    struct address a;
    if (inet_pton(AF_INET6, text, a.octet) != 1)
        return false;
    *ret_address = a;
    return true;
}

struct address address_prefix(const struct address *a, unsigned bits)
{
    struct address p = *a;
    for (unsigned i = 0; i < sizeof p.octet; i++) {
        unsigned first_bit = i * 8;
        if (first_bit >= bits)
            p.octet[i] = 0;
        else if (bits - first_bit < 8)
            p.octet[i] &= (uint8_t)(0xff00u >> (bits - first_bit));
    }
    return p;
}

bool address_equal(const struct address *a, const struct address *b)
{
    return memcmp(a->octet, b->octet, sizeof a->octet) == 0;
}

bool endpoint_equal(const struct endpoint *a, const struct endpoint *b)
{
    return a->port == b->port && address_equal(&a->address, &b->address);
}

int endpoint_compare(const struct endpoint *a, const struct endpoint *b)
{
    int order = memcmp(a->address.octet, b->address.octet, sizeof a->address.octet);
    return order != 0 ? order : (int)a->port - (int)b->port;
}
