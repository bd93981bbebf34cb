/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PCAPNG_BUILDER_H
#define PCAPNG_BUILDER_H
/* Makes pcapng files for tests, block by block, in either byte order. */
#include "capture_builder.h"

struct ng_file {
    struct buffer b;
    bool is_big_endian;
};

static inline void ng_put(struct ng_file *f, unsigned width, uint64_t value)
{
    if (f->is_big_endian)
        put_be(&f->b, width, value);
    else
        put_le(&f->b, width, value);
}

static inline void ng_pad(struct ng_file *f)
{
    while (f->b.len % 4 != 0)
        put_be(&f->b, 1, 0);
}

/* Starts a block; to be ended with what this returns. */
static inline size_t ng_start(struct ng_file *f, uint32_t type)
{
    size_t start = f->b.len;
    ng_put(f, 4, type);
    ng_put(f, 4, 0);
    return start;
}

static inline void ng_end(struct ng_file *f, size_t start)
{
    ng_pad(f);
    uint32_t len = (uint32_t)(f->b.len - start + 4);
    ng_put(f, 4, len);
    size_t end = f->b.len;
    f->b.len = start + 4;
    ng_put(f, 4, len);
    f->b.len = end;
}

static inline void ng_option(struct ng_file *f, uint16_t code, unsigned width, uint64_t value)
{
    ng_put(f, 2, code);
    ng_put(f, 2, width);
    ng_put(f, width, value);
    ng_pad(f);
}

static inline void ng_section(struct ng_file *f, bool is_big_endian)
{
    f->is_big_endian = is_big_endian;
    size_t start = ng_start(f, 0x0a0d0d0a);
    ng_put(f, 4, 0x1a2b3c4d);
    ng_put(f, 2, 1);
    ng_put(f, 2, 0);
    ng_put(f, 8, UINT64_MAX);
    ng_end(f, start);
}

/* An interface; resolution 6 and offset 0 are left out, as writers do. */
static inline void ng_interface(struct ng_file *f, uint16_t link_type, uint32_t snaplen,
                                uint8_t resolution, int64_t offset_seconds)
{
    size_t start = ng_start(f, 1);
    ng_put(f, 2, link_type);
    ng_put(f, 2, 0);
    ng_put(f, 4, snaplen);
    if (resolution != 6)
        ng_option(f, 9, 1, resolution);
    if (offset_seconds != 0)
        ng_option(f, 14, 8, (uint64_t)offset_seconds);
    ng_option(f, 0, 0, 0);
    ng_end(f, start);
}

static inline void ng_named_interface(struct ng_file *f, uint16_t link_type, const char *name)
{
    size_t start = ng_start(f, 1);
    ng_put(f, 2, link_type);
    ng_put(f, 2, 0);
    ng_put(f, 4, 0);
    ng_put(f, 2, 2);
    ng_put(f, 2, strlen(name));
    put_bytes(&f->b, (struct bytes){ (const uint8_t *)name, strlen(name) });
    ng_pad(f);
    ng_option(f, 0, 0, 0);
    ng_end(f, start);
}

static inline void ng_packet(struct ng_file *f, uint32_t interface_id, uint64_t ticks,
                             struct bytes data, uint32_t wire_len)
{
    size_t start = ng_start(f, 6);
    ng_put(f, 4, interface_id);
    ng_put(f, 4, ticks >> 32);
    ng_put(f, 4, ticks & UINT32_MAX);
    ng_put(f, 4, data.len);
    ng_put(f, 4, wire_len);
    put_bytes(&f->b, data);
    ng_pad(f);
    ng_option(f, 2, 4, 1);
    ng_option(f, 0, 0, 0);
    ng_end(f, start);
}

static inline void ng_old_packet(struct ng_file *f, uint16_t interface_id, uint64_t ticks,
                                 struct bytes data, uint32_t wire_len)
{
    size_t start = ng_start(f, 2);
    ng_put(f, 2, interface_id);
    ng_put(f, 2, 0xffff);
    ng_put(f, 4, ticks >> 32);
    ng_put(f, 4, ticks & UINT32_MAX);
    ng_put(f, 4, data.len);
    ng_put(f, 4, wire_len);
    put_bytes(&f->b, data);
    ng_end(f, start);
}

static inline void ng_simple_packet(struct ng_file *f, struct bytes data, uint32_t wire_len)
{
    size_t start = ng_start(f, 3);
    ng_put(f, 4, wire_len);
    put_bytes(&f->b, data);
    ng_end(f, start);
}

static inline void ng_statistics(struct ng_file *f, uint32_t interface_id, uint64_t drops)
{
    size_t start = ng_start(f, 5);
    ng_put(f, 4, interface_id);
    ng_put(f, 8, 0);
    ng_option(f, 4, 8, 1000);
    ng_option(f, 5, 8, drops);
    ng_option(f, 0, 0, 0);
    ng_end(f, start);
}

static inline void ng_secrets(struct ng_file *f, uint32_t type, const char *text)
{
    size_t start = ng_start(f, 10);
    ng_put(f, 4, type);
    ng_put(f, 4, strlen(text));
    put_bytes(&f->b, (struct bytes){ (const uint8_t *)text, strlen(text) });
    ng_end(f, start);
}

static inline void ng_unknown(struct ng_file *f, uint32_t type, size_t len)
{
    size_t start = ng_start(f, type);
    put_repeated(&f->b, len, 0x55);
    ng_end(f, start);
}

#endif
