/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BYTES_H
#define BYTES_H
/*
 * Views of captured bytes and the one cursor that reads them. No other file does pointer
 * arithmetic on packet data. A reader that was once short stays short and empty, so a parser
 * reads all fields in a row and asks short_read once.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* A view of bytes owned by somebody else; { 0 } is empty. */
struct bytes {
    const uint8_t *at;
    size_t len;
};

/* A cursor; sticky: after the first read beyond the end, every read yields 0 or empty. */
struct reader {
    struct bytes rest;
    bool short_read;
};

static inline struct reader reader_of(struct bytes b)
{
    return (struct reader){ .rest = b };
}

/* The view without its first n bytes; n is at most its length. */
static inline struct bytes bytes_after(struct bytes b, size_t n)
{
    assert(n <= b.len);
    return (struct bytes){ n ? b.at + n : b.at, b.len - n };
}

/* The first n bytes of the view, or all of it when it is shorter. */
static inline struct bytes bytes_first(struct bytes b, size_t n)
{
    return (struct bytes){ b.at, n < b.len ? n : b.len };
}

/* The view that shows in a copy what `view` shows in the original, in which it lies. */
static inline struct bytes bytes_moved(struct bytes view, struct bytes original, struct bytes copy)
{
    if (view.len == 0)
        return (struct bytes){ 0 };
    size_t before = (size_t)(view.at - original.at);
    assert(view.at >= original.at && before + view.len <= original.len);
    return bytes_first(bytes_after(copy, before), view.len);
}

static inline bool bytes_equal(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.at, b.at, a.len) == 0);
}

/* Takes what stands before the next byte that is `stop`, and that with it; all where there is none.
 */
static inline struct bytes bytes_take_until(struct bytes *rest, uint8_t stop)
{
    size_t len = 0;
    while (len < rest->len && rest->at[len] != stop)
        len++;
    struct bytes taken = bytes_first(*rest, len);
    *rest = bytes_after(*rest, len < rest->len ? len + 1 : len);
    return taken;
}

/* Takes n bytes as a view; empty, and short_read set, when fewer are left. */
static inline struct bytes reader_take(struct reader *r, size_t n)
{
    if (n > r->rest.len || r->short_read) {
        r->short_read = true;
        r->rest.len = 0;
        return (struct bytes){ 0 };
    }
    struct bytes taken = { r->rest.at, n };
    if (n > 0)
        r->rest.at += n;
    r->rest.len -= n;
    return taken;
}

/* Reads a big-endian number of width 1 to 8 bytes; 0 when short. */
static inline uint64_t reader_be(struct reader *r, unsigned width)
{
    assert(width >= 1 && width <= 8);
    struct bytes b = reader_take(r, width);
    uint64_t value = 0;
    if (b.len == 0)
        return 0;
    for (unsigned i = 0; i < width; i++) /* a constant where it is inlined: no loop is left */
        value = value << 8 | b.at[i];
    return value;
}

static inline uint8_t reader_u8(struct reader *r)
{
    return (uint8_t)reader_be(r, 1);
}

static inline uint16_t reader_u16(struct reader *r)
{
    return (uint16_t)reader_be(r, 2);
}

static inline uint32_t reader_u32(struct reader *r)
{
    return (uint32_t)reader_be(r, 4);
}

/* Reads a little-endian number of width 1 to 8 bytes; 0 when short. */
static inline uint64_t reader_le(struct reader *r, unsigned width)
{
    assert(width >= 1 && width <= 8);
    struct bytes b = reader_take(r, width);
    uint64_t value = 0;
    if (b.len == 0)
        return 0;
    for (unsigned i = width; i-- > 0;)
        value = value << 8 | b.at[i];
    return value;
}

/*
 * Takes a vector with a length prefix of the given width (RFC 8446 3.4) as a child reader that
 * cannot leave it. When the vector is cut, the child holds what there is and is marked short once
 * it is read beyond that; the parent is marked short at once.
 */
static inline struct reader reader_vector(struct reader *r, unsigned width)
{
    size_t len = (size_t)reader_be(r, width);
    if (len > r->rest.len) {
        struct reader child = { .rest = r->rest };
        r->short_read = true;
        r->rest.len = 0;
        return child;
    }
    return reader_of(reader_take(r, len));
}

#endif
