/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   fd -> packed.c -> decoder -> inflate_read()
 *                           '-> block --'
 *
 * The method that the first bytes name decides on the library: zlib and liblzma themselves where
 * the program was built with them, since they lose nothing of a file that is cut, else libarchive.
 */
#include "inflate.h"

#include "decoder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum { ERROR_SIZE = 256, BLOCK_SIZE = 64 * 1024 };
_Static_assert((int)BLOCK_SIZE >= (int)INFLATE_PEEK_MAX, "what is looked at fits into a block");

struct method {
    const char *name;
    uint8_t magic[INFLATE_MAGIC_LEN];
    size_t magic_len;
};

static const struct method METHODS[] = {
    { "gzip", { 0x1f, 0x8b }, 2 },                   /* RFC 1952 2.3.1 */
    { "zstd", { 0x28, 0xb5, 0x2f, 0xfd }, 4 },       /* RFC 8878 3.1.1 */
    { "lz4", { 0x04, 0x22, 0x4d, 0x18 }, 4 },        /* LZ4 frame format */
    { "xz", { 0xfd, '7', 'z', 'X', 'Z', 0x00 }, 6 }, /* xz file format 2.1.1.1 */
    { "bzip2", { 'B', 'Z', 'h' }, 3 },
};

static const struct method *method_of(struct bytes start)
{
    for (size_t i = 0; i < sizeof METHODS / sizeof METHODS[0]; i++) {
        struct bytes magic = { METHODS[i].magic, METHODS[i].magic_len };
        if (bytes_equal(bytes_first(start, magic.len), magic))
            return &METHODS[i];
    }
    return NULL;
}

const char *inflate_method(struct bytes start)
{
    const struct method *method = method_of(start);
    return method != NULL ? method->name : NULL;
}

/* NULL when the program was built without a library for it. */
static const struct decoder *decoder_of(const struct method *method)
{
    if (strcmp(method->name, "gzip") == 0 && DECODER_ZLIB != NULL)
        return DECODER_ZLIB;
    if (strcmp(method->name, "xz") == 0 && DECODER_LZMA != NULL)
        return DECODER_LZMA;
    return DECODER_LIBARCHIVE;
}

struct inflate {
    const struct method *method;
    const struct decoder *decoder; /* NULL = none */
    void *stream;                  /* of it */
    char error[ERROR_SIZE];        /* good once outcome is a failure */
    struct packed packed;
    uint64_t position;   /* decompressed bytes so far */
    enum status outcome; /* of decoding; STATUS_OK: there may be more */
    enum status status;  /* the same, once all bytes before it were read */
    size_t len, given;   /* bytes in the block, and those of them that were read */
    uint8_t block[BLOCK_SIZE];
};

__attribute__((format(printf, 3, 4))) static enum status fail(struct inflate *p, enum status status,
                                                              const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(p->error, sizeof p->error, format, arguments);
    va_end(arguments);
    return status;
}

/* ---- decoding ---- */

static enum status status_of(struct inflate *p, enum decoding decoding)
{
    const struct packed *in = &p->packed;
    const char *words;
    switch (decoding) {
    case DECODING_MORE:
        return STATUS_OK;
    case DECODING_DONE:
        return STATUS_END;
    case DECODING_NO_MEMORY:
        return fail(p, STATUS_NO_MEMORY, "out of memory");
    case DECODING_CUT:
        if (in->error != 0)
            return fail(p, STATUS_IO, "%s", strerror(in->error));
        return fail(p, STATUS_DAMAGED, "%s stream cut at byte %llu of the compressed file",
                    p->method->name, (unsigned long long)in->received);
    case DECODING_BROKEN:
        break;
    }
    words = p->decoder->words(p->stream);
    return fail(p, STATUS_DAMAGED, "%s stream broken near byte %llu of the compressed file: %s",
                p->method->name, (unsigned long long)packed_position(in),
                words != NULL ? words : "no reason given");
}

static bool is_bomb(const struct inflate *p)
{
    return p->position > INFLATE_ANY_RATIO_MAX &&
           p->position / INFLATE_RATIO_MAX > p->packed.received;
}

static enum status decode_some(struct inflate *p, uint8_t *out, size_t size, size_t *ret_len)
{
    enum status status = status_of(p, p->decoder->read(p->stream, out, size, ret_len));
    p->position += *ret_len;
    if (status == STATUS_OK && is_bomb(p))
        return fail(p, STATUS_DAMAGED,
                    "%s stream grows to more than %d times its length at byte %llu of the "
                    "compressed file: not read on",
                    p->method->name, INFLATE_RATIO_MAX, (unsigned long long)p->packed.received);
    return status;
}

/* ---- reading ---- */

/* Up to size bytes, at least one unless there are no more. */
static size_t decode(struct inflate *p, uint8_t *out, size_t size)
{
    size_t len = 0;
    while (len == 0 && p->outcome == STATUS_OK)
        p->outcome = decode_some(p, out, size, &len);
    if (len == 0)
        p->status = p->outcome;
    return len;
}

/* The block serves those who look or read little at a time. */
static void fill_block(struct inflate *p)
{
    p->given = 0;
    p->len = decode(p, p->block, sizeof p->block);
}

static struct bytes rest_of_block(const struct inflate *p)
{
    return bytes_after((struct bytes){ p->block, p->len }, p->given);
}

struct bytes inflate_peek(struct inflate *p, size_t n)
{
    assert(n <= INFLATE_PEEK_MAX && p->given == 0);
    if (p->len == 0)
        fill_block(p);
    return bytes_first(rest_of_block(p), n);
}

size_t inflate_read(struct inflate *p, uint8_t *buffer, size_t size)
{
    if (rest_of_block(p).len == 0) {
        if (size >= sizeof p->block)
            return decode(p, buffer, size);
        fill_block(p);
    }
    struct bytes piece = bytes_first(rest_of_block(p), size);
    memcpy(buffer, piece.at, piece.len);
    p->given += piece.len;
    return piece.len;
}

/* ---- opening ---- */

static enum status open_stream(struct inflate *p)
{
    p->decoder = decoder_of(p->method);
    if (p->decoder == NULL)
        return fail(p, STATUS_REFUSED,
                    "is compressed with %s, which this firstflight was built without a library for",
                    p->method->name);
    p->stream = p->decoder->open(&p->packed, p->method->name);
    return p->stream != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

enum status inflate_open(int fd, struct bytes start, struct inflate **ret_inflate)
{
    assert(start.len <= INFLATE_PEEK_MAX && method_of(start) != NULL);
    struct inflate *p = calloc(1, sizeof *p);
    if (p == NULL)
        return STATUS_NO_MEMORY;
    p->method = method_of(start);
    packed_open(&p->packed, fd, start);
    enum status status = open_stream(p);
    if (status == STATUS_NO_MEMORY) {
        inflate_close(p);
        return status;
    }
    *ret_inflate = p;
    return status;
}

void inflate_close(struct inflate *p)
{
    if (p == NULL)
        return;
    if (p->decoder != NULL)
        p->decoder->close(p->stream);
    free(p);
}

void inflate_set_stop_event(struct inflate *p, int stop_event)
{
    p->packed.stop_event = stop_event;
}

enum status inflate_status(const struct inflate *p)
{
    return p->status;
}

const char *inflate_error(const struct inflate *p)
{
    return p->error;
}

const char *inflate_library_version(unsigned index)
{
    const struct decoder *const all[] = { DECODER_ZLIB, DECODER_LZMA, DECODER_LIBARCHIVE };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i] != NULL && index-- == 0)
            return all[i]->version();
    return NULL;
}
