/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELLO_BUILDER_H
#define HELLO_BUILDER_H
/* Writes TLS messages for tests: numbers, and vectors whose length is filled in when they close. */
#include "bytes.h"

struct builder {
    uint8_t at[8192];
    size_t len;
};

static inline struct bytes built(const struct builder *b)
{
    return (struct bytes){ b->at, b->len };
}

static inline void add_be(struct builder *b, uint64_t value, unsigned width)
{
    assert(b->len + width <= sizeof b->at);
    for (unsigned i = width; i-- > 0;)
        b->at[b->len++] = (uint8_t)(value >> 8 * i);
}

static inline void add_u8(struct builder *b, uint8_t value)
{
    add_be(b, value, 1);
}

static inline void add_u16(struct builder *b, uint16_t value)
{
    add_be(b, value, 2);
}

static inline void add_filled(struct builder *b, uint8_t value, size_t n)
{
    for (size_t i = 0; i < n; i++)
        add_u8(b, value);
}

static inline void add_text(struct builder *b, const char *text)
{
    for (; *text != '\0'; text++)
        add_u8(b, (uint8_t)*text);
}

/* Opens a vector with a length prefix of the given width; returns what close_vector() needs. */
static inline size_t open_vector(struct builder *b, unsigned width)
{
    add_be(b, 0, width);
    return b->len;
}

static inline void close_vector(struct builder *b, size_t start, unsigned width)
{
    size_t end = b->len, content_len = end - start;
    b->len = start - width;
    add_be(b, content_len, width);
    b->len = end;
}

static inline void add_u16_list(struct builder *b, const uint16_t *values, size_t count,
                                unsigned width)
{
    size_t list = open_vector(b, width);
    for (size_t i = 0; i < count; i++)
        add_u16(b, values[i]);
    close_vector(b, list, width);
}

/* An extension whose content follows; close with close_vector(.., 2). */
static inline size_t open_extension(struct builder *b, uint16_t type)
{
    add_u16(b, type);
    return open_vector(b, 2);
}

static inline void add_empty_extension(struct builder *b, uint16_t type)
{
    close_vector(b, open_extension(b, type), 2);
}

static inline void add_server_name(struct builder *b, const char *name)
{
    size_t extension = open_extension(b, 0), list = open_vector(b, 2);
    add_u8(b, 0);
    size_t text = open_vector(b, 2);
    add_text(b, name);
    close_vector(b, text, 2);
    close_vector(b, list, 2);
    close_vector(b, extension, 2);
}

static inline void add_supported_versions(struct builder *b, const uint16_t *versions, size_t count)
{
    size_t extension = open_extension(b, 43);
    add_u16_list(b, versions, count, 1);
    close_vector(b, extension, 2);
}

/* The fields of a ClientHello up to its extensions: TLS 1.2, empty session id. */
static inline void add_client_fields(struct builder *b, const uint16_t *suites, size_t count)
{
    add_u16(b, 0x0303);
    add_filled(b, 0x5a, 32);
    add_u8(b, 0);
    add_u16_list(b, suites, count, 2);
    add_u8(b, 1);
    add_u8(b, 0);
}

/* The fields of a ServerHello up to its extensions: empty session id, TLS_AES_128_GCM_SHA256. */
static inline void add_server_fields(struct builder *b, uint16_t version)
{
    add_u16(b, version);
    add_filled(b, 0xa5, 32);
    add_u8(b, 0);
    add_u16(b, 0x1301);
    add_u8(b, 0);
}

#endif
