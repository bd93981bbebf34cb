/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VARINT_H
#define VARINT_H
/*
 * Numbers in as few bytes as they need: 7 bits a byte, the lowest first; signed ones in zigzag, so
 * that small negative numbers are short as well. Writers need VARINT_MAX bytes of room reserved.
 */
#include "buffer.h"

enum { VARINT_MAX = 10 };

static inline void put_varint(struct buffer *b, uint64_t value)
{
    while (value >= 0x80) {
        b->at[b->len++] = (uint8_t)(value | 0x80);
        value >>= 7;
    }
    b->at[b->len++] = (uint8_t)value;
}

static inline void put_signed(struct buffer *b, int64_t value)
{
    put_varint(b, (uint64_t)value << 1 ^ (uint64_t)(value >> 63));
}

static inline uint64_t get_varint(struct reader *r)
{
    uint64_t value = 0;
    if (r->rest.len > 0 && r->rest.at[0] < 0x80) /* most are this small */
        return reader_take(r, 1).at[0];
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t b = reader_u8(r);
        value |= (uint64_t)(b & 0x7f) << shift;
        if (b < 0x80)
            break;
    }
    return value;
}

static inline int64_t get_signed(struct reader *r)
{
    uint64_t value = get_varint(r);
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

#endif
