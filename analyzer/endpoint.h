/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ENDPOINT_H
#define ENDPOINT_H
/* Addresses, endpoints and the two sides of a connection. */
#include <stdbool.h>
#include <stdint.h>

enum side { CLIENT, SERVER };

static inline enum side other_side(enum side s)
{
    return s == CLIENT ? SERVER : CLIENT;
}

/* An IPv6 address; IPv4 is kept as mapped IPv6 (RFC 4291 2.5.5.2): one key, one path. */
struct address {
    uint8_t octet[16];
};

struct endpoint {
    struct address address;
    uint16_t port;
};

enum { ADDRESS_TEXT_SIZE = 46 };

bool address_is_ipv4(const struct address *a);

/* Makes a mapped address of 4 octets in network order. */
struct address address_of_ipv4(const uint8_t octet[4]);

/* Writes "192.0.2.1" or RFC 5952 text, terminated; returns buffer. */
const char *address_text(const struct address *a, char buffer[ADDRESS_TEXT_SIZE]);

/* Reads either form of text; false when it is no address. */
bool address_parse(const char *text, struct address *ret_address);

/* Sets all bits behind the first `bits` of the 128 to zero; IPv4 /24 is 96 + 24. */
struct address address_prefix(const struct address *a, unsigned bits);

bool address_equal(const struct address *a, const struct address *b);
bool endpoint_equal(const struct endpoint *a, const struct endpoint *b);

/* Total order over addresses, then ports; negative, 0, positive. */
int endpoint_compare(const struct endpoint *a, const struct endpoint *b);

#endif
