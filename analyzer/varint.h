/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VARINT_H
#define VARINT_H
/*
 * Numbers in as few bytes as they need: the zeros at the low end of the first byte say how many
 * bytes follow it, 7 bits of the number for each byte, the lowest first; eight zeros stand before
 * eight bytes of any number. Neither side has a loop. Signed numbers are in zigzag, so that small
 * negative ones are short as well.
 */
#include "buffer.h"

#include <endian.h>

/* Room that must be there for each number, however short it turns out. */
enum { VARINT_MAX = 9 };

static inline uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

static inline int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/* Writes a number; the place behind it. */
static inline uint8_t *write_varint(uint8_t *at, uint64_t value)
{
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
    unsigned len = (bits + 6) / 7;
    bool is_long = len > 8;
    uint64_t octets = htole64(is_long ? value : value << len | UINT64_C(1) << (len - 1));
    if (is_long)
        *at++ = 0;
    memcpy(at, &octets, sizeof octets);
    return at + (is_long ? sizeof octets : len);
}

static inline void put_varint(struct buffer *b, uint64_t value)
{
    if (value < 0x80) /* most of what coder.h packs */
        b->at[b->len++] = (uint8_t)(value << 1 | 1);
    else
        b->len = (size_t)(write_varint(b->at + b->len, value) - b->at);
}

/* A number near the end of what is read, where nothing may be loaded behind it. */
static inline uint64_t get_last_varint(struct reader *r)
{
    uint8_t octets[VARINT_MAX] = { 0 };
    uint64_t value;
    unsigned first = r->rest.len > 0 ? r->rest.at[0] : 1;
    unsigned len = (unsigned)__builtin_ctz(first | 1 << 8) + 1;
    struct bytes taken = reader_take(r, len);
    if (taken.len == 0)
        return 0;
    memcpy(octets, taken.at, taken.len);
    memcpy(&value, octets + (len == VARINT_MAX), sizeof value);
    value = le64toh(value);
    return len == VARINT_MAX ? value : value >> len;
}

static inline uint64_t get_varint(struct reader *r)
{
    uint64_t octets;
    if (r->rest.len < VARINT_MAX)
        return get_last_varint(r);
    memcpy(&octets, r->rest.at, sizeof octets);
    octets = le64toh(octets);
    unsigned len = (unsigned)__builtin_ctz((unsigned)octets | 1 << 8) + 1;
    if (len == VARINT_MAX)
        return get_last_varint(r);
    r->rest = bytes_after(r->rest, len);
    return octets << (64 - 8 * len) >> (64 - 7 * len);
}

static inline int64_t get_signed(struct reader *r)
{
    return unzigzag(get_varint(r));
}

#endif
