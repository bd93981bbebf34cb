/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BUFFER_H
#define BUFFER_H
/* Bytes that grow at their end; { 0 } is empty. */
#include "bytes.h"

#include <stdlib.h>

struct buffer {
    uint8_t *at;
    size_t len, capacity;
};

static inline void buffer_done(struct buffer *b)
{
    free(b->at);
    *b = (struct buffer){ 0 };
}

/* Makes room for n more bytes; false without memory. */
static inline bool buffer_reserve(struct buffer *b, size_t n)
{
    if (b->capacity - b->len >= n)
        return true;
    size_t capacity = b->capacity < 256 ? 256 : b->capacity;
    while (capacity - b->len < n)
        capacity *= 2;
    uint8_t *grown = realloc(b->at, capacity);
    if (grown == NULL)
        return false;
    b->at = grown;
    b->capacity = capacity;
    return true;
}

/* Appends; false without memory. */
static inline bool buffer_add(struct buffer *b, struct bytes bytes)
{
    if (!buffer_reserve(b, bytes.len))
        return false;
    if (bytes.len > 0)
        memcpy(b->at + b->len, bytes.at, bytes.len);
    b->len += bytes.len;
    return true;
}

#endif
