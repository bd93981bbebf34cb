/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DECIMAL_H
#define DECIMAL_H
/* Numbers as text, for writers that write many. */
#include "buffer.h"

enum { DECIMAL_MAX = 20 }; /* characters of INT64_MIN, the longest */

/* Appends a number; DECIMAL_MAX bytes of room must have been reserved. */
static inline void put_decimal(struct buffer *b, int64_t value)
{
    uint8_t digits[DECIMAL_MAX];
    size_t at = sizeof digits;
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    if (value < 0)
        b->at[b->len++] = '-';
    do
        digits[--at] = (uint8_t)('0' + rest % 10);
    while ((rest /= 10) > 0);
    memcpy(b->at + b->len, digits + at, sizeof digits - at);
    b->len += sizeof digits - at;
}

#endif
