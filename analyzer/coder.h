/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CODER_H
#define CODER_H
/*
 * Packs and unpacks state by the same code: a function codes the fields of a struct in one order,
 * and whether that writes or reads them, the coder knows. What is read is not trusted: numbers that
 * their field does not hold and bytes that are not there end in `failed`, after which all reads as
 * zero. Writing fails without memory only.
 */
#include "varint.h"

struct coder {
    struct buffer *out; /* NULL when unpacking */
    struct reader in;
    int64_t base_ns; /* what times count from: to be set to the same in both directions */
    bool failed;
};

static inline struct coder coder_to(struct buffer *out)
{
    return (struct coder){ .out = out };
}

static inline struct coder coder_of(struct bytes packed)
{
    return (struct coder){ .in = reader_of(packed) };
}

static inline bool coder_unpacks(const struct coder *c)
{
    return c->out == NULL;
}

/* A number of at most max. */
static inline uint64_t code_number(struct coder *c, uint64_t value, uint64_t max)
{
    if (!coder_unpacks(c)) {
        if (buffer_reserve(c->out, VARINT_MAX))
            put_varint(c->out, value);
        else
            c->failed = true;
        return value;
    }
    uint64_t read = c->failed ? 0 : get_varint(&c->in);
    c->failed |= c->in.short_read || read > max;
    return c->failed ? 0 : read;
}

static inline void code_bool(struct coder *c, bool *value)
{
    *value = code_number(c, *value, 1) != 0;
}

static inline void code_u8(struct coder *c, uint8_t *value)
{
    *value = (uint8_t)code_number(c, *value, UINT8_MAX);
}

static inline void code_u16(struct coder *c, uint16_t *value)
{
    *value = (uint16_t)code_number(c, *value, UINT16_MAX);
}

static inline void code_u32(struct coder *c, uint32_t *value)
{
    *value = (uint32_t)code_number(c, *value, UINT32_MAX);
}

static inline void code_u64(struct coder *c, uint64_t *value)
{
    *value = code_number(c, *value, UINT64_MAX);
}

static inline void code_i64(struct coder *c, int64_t *value)
{
    *value = (int64_t)code_number(c, (uint64_t)*value, UINT64_MAX);
}

/* A time or duration in nanoseconds, 0 where there is none: differences of two hold. It is short
 * when it is near the base. */
static inline void code_time(struct coder *c, int64_t *ns)
{
    uint64_t distance = zigzag((int64_t)((uint64_t)*ns - (uint64_t)c->base_ns));
    uint64_t number = code_number(c, *ns == 0 ? 0 : distance + 1, UINT64_MAX);
    *ns = number == 0 ? 0 : (int64_t)((uint64_t)c->base_ns + (uint64_t)unzigzag(number - 1));
    c->failed |= *ns < 0;
    if (c->failed)
        *ns = 0;
}

/* An offset in a stream, a little before its begin at most: sums and differences hold. */
static inline void code_offset(struct coder *c, int64_t *offset)
{
    const int64_t FARTHEST = INT64_C(1) << 61;
    code_i64(c, offset);
    c->failed |= *offset < -FARTHEST || *offset > FARTHEST;
    if (c->failed)
        *offset = 0;
}

static inline void code_i32(struct coder *c, int32_t *value)
{
    *value = (int32_t)(uint32_t)code_number(c, (uint32_t)*value, UINT32_MAX);
}

/* Exactly len bytes. */
static inline void code_octets(struct coder *c, uint8_t *at, size_t len)
{
    if (!coder_unpacks(c)) {
        c->failed |= !buffer_add(c->out, (struct bytes){ at, len });
        return;
    }
    struct bytes taken = c->failed ? (struct bytes){ 0 } : reader_take(&c->in, len);
    c->failed |= taken.len != len;
    if (!c->failed && len > 0)
        memcpy(at, taken.at, len);
}

#endif
