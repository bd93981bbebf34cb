/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DECIMAL_H
#define DECIMAL_H
/* Numbers as text, for writers that write many. */
#include "buffer.h"

enum { DECIMAL_MAX = 20 }; /* characters of INT64_MIN, the longest */

/* How many digits a number has. */
static inline unsigned decimal_digits(uint64_t value)
{
    /* the least number with one digit more than the index says */
    static const uint64_t LEAST[DECIMAL_MAX] = {
        0,
        10,
        100,
        1000,
        10000,
        100000,
        1000000,
        10000000,
        100000000,
        1000000000,
        10000000000,
        100000000000,
        1000000000000,
        10000000000000,
        100000000000000,
        1000000000000000,
        10000000000000000,
        100000000000000000,
        1000000000000000000,
        10000000000000000000U,
    };
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
    unsigned digits = bits * 1233 >> 12; /* log10(2) = 1233 / 4096: these, or one more */
    return digits + (value >= LEAST[digits]);
}

/* Appends a number; DECIMAL_MAX bytes of room must have been reserved. */
static inline void put_decimal(struct buffer *b, int64_t value)
{
    static const char PAIRS[] = "0001020304050607080910111213141516171819"
                                "2021222324252627282930313233343536373839"
                                "4041424344454647484950515253545556575859"
                                "6061626364656667686970717273747576777879"
                                "8081828384858687888990919293949596979899";
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (value < 0)
        b->at[b->len++] = '-';
    b->len += decimal_digits(rest);
    uint8_t *at = b->at + b->len;
    for (; rest >= 10; rest /= 100)
        memcpy(at -= 2, PAIRS + 2 * (rest % 100), 2);
    if (rest > 0 || at == b->at + b->len)
        *--at = (uint8_t)('0' + rest);
}

#endif
