/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAME_BUILDER_H
#define FRAME_BUILDER_H
/* Makes frames for tests, header by header. */
#include "bytes.h"

#include <assert.h>

enum { FRAME_MAX = 4096 };

struct buffer {
    uint8_t at[FRAME_MAX];
    size_t len;
};

static inline struct bytes buffer_bytes(const struct buffer *b)
{
    return (struct bytes){ b->at, b->len };
}

static inline void put_bytes(struct buffer *b, struct bytes bytes)
{
    assert(b->len + bytes.len <= sizeof b->at);
    if (bytes.len > 0)
        memcpy(b->at + b->len, bytes.at, bytes.len);
    b->len += bytes.len;
}

/* Appends a big-endian number. */
static inline void put_be(struct buffer *b, unsigned width, uint64_t value)
{
    for (unsigned i = width; i-- > 0;) {
        uint8_t octet = (uint8_t)(value >> 8 * i);
        put_bytes(b, (struct bytes){ &octet, 1 });
    }
}

static inline void put_le(struct buffer *b, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++)
        put_be(b, 1, value >> 8 * i & 0xff);
}

static inline void put_repeated(struct buffer *b, size_t n, uint8_t octet)
{
    while (n-- > 0)
        put_be(b, 1, octet);
}

static inline void put_ethernet(struct buffer *b, uint16_t type)
{
    put_be(b, 6, 0x020000000001);
    put_be(b, 6, 0x020000000002);
    put_be(b, 2, type);
}

/* Fills in the checksum of the IPv4 header at `start` (RFC 1071). */
static inline void set_ipv4_checksum(struct buffer *b, size_t start, size_t header_len)
{
    uint32_t sum = 0;
    b->at[start + 10] = b->at[start + 11] = 0;
    for (size_t i = 0; i < header_len; i += 2)
        sum += (uint32_t)(b->at[start + i] << 8 | b->at[start + i + 1]);
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    b->at[start + 10] = (uint8_t)(~sum >> 8);
    b->at[start + 11] = (uint8_t)~sum;
}

/* 192.0.2.1 to 198.51.100.2 with a good checksum; len is that of what follows. */
static inline void put_ipv4(struct buffer *b, uint8_t protocol, size_t len)
{
    size_t start = b->len;
    put_be(b, 2, 0x4500);
    put_be(b, 2, 20 + len);
    put_be(b, 4, 0x12344000); /* id, do not fragment */
    put_be(b, 1, 57);
    put_be(b, 1, protocol);
    put_be(b, 2, 0);
    put_be(b, 4, 0xc0000201);
    put_be(b, 4, 0xc6336402);
    set_ipv4_checksum(b, start, 20);
}

/* 2001:db8::1 to 2001:db8::2 */
static inline void put_ipv6(struct buffer *b, uint8_t protocol, size_t len)
{
    put_be(b, 4, 0x60000000);
    put_be(b, 2, len);
    put_be(b, 1, protocol);
    put_be(b, 1, 57);
    put_be(b, 8, 0x20010db800000000);
    put_be(b, 8, 1);
    put_be(b, 8, 0x20010db800000000);
    put_be(b, 8, 2);
}

static inline void put_udp(struct buffer *b, uint16_t from, uint16_t to, size_t len)
{
    put_be(b, 2, from);
    put_be(b, 2, to);
    put_be(b, 2, 8 + len);
    put_be(b, 2, 0);
}

/* Port 51822 to 443, sequence 0x01020304, acknowledgment 0x05060708, window 0x0a0b. */
static inline void put_tcp(struct buffer *b, uint8_t flags, struct bytes options,
                           struct bytes payload)
{
    assert(options.len % 4 == 0 && options.len <= 40);
    put_be(b, 2, 51822);
    put_be(b, 2, 443);
    put_be(b, 4, 0x01020304);
    put_be(b, 4, 0x05060708);
    put_be(b, 1, (5 + options.len / 4) << 4);
    put_be(b, 1, flags);
    put_be(b, 2, 0x0a0b);
    put_be(b, 4, 0);
    put_bytes(b, options);
    put_bytes(b, payload);
}

#endif
