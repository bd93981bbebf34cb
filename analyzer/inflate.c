/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   fd -> packed.c -> decoder -> blocks, a ring -> inflate_read()
 *         '- thread, from the second block on --'
 *
 * The method that the first bytes name decides on the library: zlib and liblzma themselves where
 * the program was built with them, since they lose nothing of a file that is cut, else libarchive.
 * The thread fills blocks while the reader empties the one before; they meet at the lock once a
 * block.
 */
#include "inflate.h"

#include "decoder.h"

#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum {
    ERROR_SIZE = 256,
    BLOCK_SIZE = 256 * 1024, /* at least INFLATE_PEEK_MAX */
    BLOCKS = 4,
};

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

struct block {
    uint8_t *bytes;
    size_t len; /* less than BLOCK_SIZE: the last one */
};

struct inflate {
    const struct method *method;
    const struct decoder *decoder; /* NULL = none */
    void *stream;                  /* of it */
    char error[ERROR_SIZE];        /* good once the last block was reached */
    /* of whoever fills blocks */
    struct packed packed;
    uint64_t position; /* decompressed bytes in blocks */
    /* of the reader */
    struct block *current; /* NULL = none */
    size_t given;          /* of it */
    bool has_thread, looks_ahead;
    enum status status;
    pthread_t thread;
    int stop_event; /* readable when the thread shall end; -1 = none */
    /* under the lock once there is a thread */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t filled, emptied; /* blocks */
    bool stop;
    enum status filling; /* STATUS_OK: more blocks follow */
    struct block blocks[BLOCKS];
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

/* ---- filling blocks ---- */

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

static enum status fill(struct inflate *p, struct block *block)
{
    if (block->bytes == NULL)
        block->bytes = malloc(BLOCK_SIZE);
    block->len = 0;
    if (block->bytes == NULL)
        return fail(p, STATUS_NO_MEMORY, "out of memory");
    enum status status =
        status_of(p, p->decoder->read(p->stream, block->bytes, BLOCK_SIZE, &block->len));
    p->position += block->len;
    if (status == STATUS_OK && is_bomb(p))
        return fail(p, STATUS_DAMAGED,
                    "%s stream grows to more than %d times its length at byte %llu of the "
                    "compressed file: not read on",
                    p->method->name, INFLATE_RATIO_MAX, (unsigned long long)p->packed.received);
    return status;
}

static void *fill_ahead(void *argument)
{
    struct inflate *p = argument;
    (void)pthread_mutex_lock(&p->lock);
    while (!p->stop && p->filling == STATUS_OK) {
        if (p->filled - p->emptied == BLOCKS) {
            (void)pthread_cond_wait(&p->changed, &p->lock);
            continue;
        }
        struct block *block = &p->blocks[p->filled % BLOCKS];
        (void)pthread_mutex_unlock(&p->lock);
        enum status status = fill(p, block);
        (void)pthread_mutex_lock(&p->lock);
        p->filled++;
        p->filling = status;
        (void)pthread_cond_signal(&p->changed);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Signals stay the business of the thread that called. Without a thread blocks are filled here. */
static void start_thread(struct inflate *p)
{
    sigset_t all, before;
    p->looks_ahead = true;
    p->stop_event = eventfd(0, EFD_CLOEXEC);
    if (p->stop_event < 0)
        return;
    p->packed.stop_event = p->stop_event;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    p->has_thread = pthread_create(&p->thread, NULL, fill_ahead, p) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* ---- emptying them ---- */

static void wait_for_block(struct inflate *p)
{
    (void)pthread_mutex_lock(&p->lock);
    if (p->current != NULL) {
        p->emptied++;
        (void)pthread_cond_signal(&p->changed);
    }
    while (p->filled == p->emptied && p->filling == STATUS_OK)
        (void)pthread_cond_wait(&p->changed, &p->lock);
    bool has_block = p->filled > p->emptied;
    p->current = has_block ? &p->blocks[p->emptied % BLOCKS] : NULL;
    if (!has_block)
        p->status = p->filling;
    (void)pthread_mutex_unlock(&p->lock);
}

static void fill_block_here(struct inflate *p)
{
    p->current = &p->blocks[0];
    p->current->len = 0;
    if (p->filling == STATUS_OK)
        p->filling = fill(p, p->current);
    if (p->current->len == 0) {
        p->current = NULL;
        p->status = p->filling;
    }
}

/* Goes on to a block with bytes in it; false when there is none. */
static bool next_block(struct inflate *p)
{
    bool is_first = p->current == NULL;
    if (p->status != STATUS_OK)
        return false;
    if (!is_first && !p->looks_ahead && p->filling == STATUS_OK) {
        p->filled = 1; /* the current one, still to be emptied */
        start_thread(p);
    }
    do {
        if (p->has_thread)
            wait_for_block(p);
        else
            fill_block_here(p);
    } while (p->current != NULL && p->current->len == 0);
    p->given = 0;
    return p->current != NULL;
}

static struct bytes rest_of_block(const struct inflate *p)
{
    if (p->current == NULL)
        return (struct bytes){ 0 };
    return bytes_after((struct bytes){ p->current->bytes, p->current->len }, p->given);
}

struct bytes inflate_peek(struct inflate *p, size_t n)
{
    assert(n <= INFLATE_PEEK_MAX && p->given == 0);
    if (p->current == NULL)
        (void)next_block(p);
    return bytes_first(rest_of_block(p), n);
}

size_t inflate_read(struct inflate *p, uint8_t *buffer, size_t size)
{
    if (rest_of_block(p).len == 0 && !next_block(p))
        return 0;
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
    p->stop_event = -1;
    packed_open(&p->packed, fd, start);
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->changed, NULL);
    enum status status = open_stream(p);
    if (status == STATUS_NO_MEMORY) {
        inflate_close(p);
        return status;
    }
    *ret_inflate = p;
    return status;
}

static void stop_thread(struct inflate *p)
{
    uint64_t one = 1;
    (void)pthread_mutex_lock(&p->lock);
    p->stop = true;
    (void)pthread_cond_signal(&p->changed);
    (void)pthread_mutex_unlock(&p->lock);
    ssize_t written = write(p->stop_event, &one, sizeof one);
    (void)written; /* an event that is new takes 1 without waiting */
    (void)pthread_join(p->thread, NULL);
}

void inflate_close(struct inflate *p)
{
    if (p == NULL)
        return;
    if (p->has_thread)
        stop_thread(p);
    if (p->stop_event >= 0)
        (void)close(p->stop_event);
    if (p->decoder != NULL)
        p->decoder->close(p->stream);
    for (size_t i = 0; i < BLOCKS; i++)
        free(p->blocks[i].bytes);
    (void)pthread_cond_destroy(&p->changed);
    (void)pthread_mutex_destroy(&p->lock);
    free(p);
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
