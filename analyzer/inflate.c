/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   fd -> take_raw() -> libarchive -> blocks, a ring -> inflate_read()
 *         '---- thread, from the second block on ---'
 *
 * Only the method that the first bytes name is offered to libarchive: no chain of filters, and
 * never an external program, to which libarchive turns for a method it was built without. The
 * thread fills blocks while the reader empties the one before; they meet at the lock once a block.
 */
#include "inflate.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef HAVE_LIBARCHIVE
#include <archive.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>
#endif

enum { ERROR_SIZE = 256 };

struct method {
    const char *name;
    uint8_t magic[INFLATE_MAGIC_LEN];
    size_t magic_len;
#ifdef HAVE_LIBARCHIVE
    int (*offer)(struct archive *);
#endif
};

#ifdef HAVE_LIBARCHIVE
#define OFFER(name) , archive_read_support_filter_##name
#else
#define OFFER(name)
#endif

static const struct method METHODS[] = {
    { "gzip", { 0x1f, 0x8b }, 2 OFFER(gzip) },                 /* RFC 1952 2.3.1 */
    { "zstd", { 0x28, 0xb5, 0x2f, 0xfd }, 4 OFFER(zstd) },     /* RFC 8878 3.1.1 */
    { "lz4", { 0x04, 0x22, 0x4d, 0x18 }, 4 OFFER(lz4) },       /* LZ4 frame format */
    { "xz", { 0xfd, '7', 'z', 'X', 'Z', 0x00 }, 6 OFFER(xz) }, /* xz file format 2.1.1.1 */
    { "bzip2", { 'B', 'Z', 'h' }, 3 OFFER(bzip2) },
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

#ifdef HAVE_LIBARCHIVE

enum {
    RAW_SIZE = 64 * 1024,
    BLOCK_SIZE = 256 * 1024, /* at least INFLATE_PEEK_MAX */
    BLOCKS = 4,
};

struct block {
    uint8_t *bytes;
    size_t len; /* less than BLOCK_SIZE: the last one */
};

struct inflate {
    const struct method *method;
    struct archive *archive;
    int fd;
    char error[ERROR_SIZE]; /* good once the last block was reached */
    /* of whoever fills blocks */
    uint8_t raw[RAW_SIZE];
    size_t start_len;      /* bytes in raw that were read by the caller */
    uint64_t raw_position; /* bytes given to libarchive */
    uint64_t position;     /* decompressed bytes in blocks */
    bool raw_ended;
    int raw_errno;        /* why fd could not be read */
    struct bytes pending; /* of libarchive, not in a block yet */
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

/* Waits until fd can be read; false when the thread shall end instead. */
static bool wait_for_raw(struct inflate *p)
{
    struct pollfd events[] = { { .fd = p->fd, .events = POLLIN },
                               { .fd = p->stop_event, .events = POLLIN } };
    if (p->stop_event < 0)
        return true;
    while (poll(events, 2, -1) < 0 && errno == EINTR)
        continue;
    return events[1].revents == 0;
}

/* libarchive asks for compressed bytes. */
static la_ssize_t take_raw(struct archive *archive, void *cookie, const void **ret_bytes)
{
    struct inflate *p = cookie;
    *ret_bytes = p->raw;
    ssize_t n = (ssize_t)p->start_len;
    p->start_len = 0;
    if (n == 0 && wait_for_raw(p)) {
        do {
            n = read(p->fd, p->raw, sizeof p->raw);
        } while (n < 0 && errno == EINTR);
    }
    if (n < 0) {
        p->raw_errno = errno;
        archive_set_error(archive, errno, "%s", strerror(errno));
        return -1;
    }
    p->raw_ended = n == 0;
    p->raw_position += (uint64_t)n;
    return n;
}

static enum status failed(struct inflate *p)
{
    unsigned long long consumed = (unsigned long long)archive_filter_bytes(p->archive, -1);
    const char *words = archive_error_string(p->archive);
    if (p->raw_errno != 0)
        return fail(p, STATUS_IO, "%s", strerror(p->raw_errno));
    if (archive_errno(p->archive) == ENOMEM)
        return fail(p, STATUS_NO_MEMORY, "out of memory");
    if (p->raw_ended)
        return fail(p, STATUS_DAMAGED, "%s stream cut at byte %llu of the compressed file",
                    p->method->name, (unsigned long long)p->raw_position);
    return fail(p, STATUS_DAMAGED, "%s stream broken near byte %llu of the compressed file: %s",
                p->method->name, consumed, words != NULL ? words : "no reason given");
}

static bool is_bomb(const struct inflate *p)
{
    return p->position > INFLATE_ANY_RATIO_MAX && p->position / INFLATE_RATIO_MAX > p->raw_position;
}

/* More decompressed bytes to p->pending. STATUS_OK, or why there are none. */
static enum status take_pending(struct inflate *p)
{
    const void *at;
    size_t len;
    la_int64_t offset;
    int result = archive_read_data_block(p->archive, &at, &len, &offset);
    if (result == ARCHIVE_EOF)
        return STATUS_END;
    if (result != ARCHIVE_OK)
        return failed(p);
    p->pending = (struct bytes){ at, len };
    return STATUS_OK;
}

static enum status fill(struct inflate *p, struct block *block)
{
    if (block->bytes == NULL)
        block->bytes = malloc(BLOCK_SIZE);
    block->len = 0;
    if (block->bytes == NULL)
        return fail(p, STATUS_NO_MEMORY, "out of memory");
    enum status status = STATUS_OK;
    while (block->len < BLOCK_SIZE && status == STATUS_OK) {
        struct bytes piece = bytes_first(p->pending, BLOCK_SIZE - block->len);
        if (piece.len == 0) {
            status = take_pending(p);
            continue;
        }
        memcpy(block->bytes + block->len, piece.at, piece.len);
        block->len += piece.len;
        p->pending = bytes_after(p->pending, piece.len);
    }
    p->position += block->len;
    if (status == STATUS_OK && is_bomb(p))
        return fail(p, STATUS_DAMAGED,
                    "%s stream grows to more than %d times its length at byte %llu of the "
                    "compressed file: not read on",
                    p->method->name, INFLATE_RATIO_MAX, (unsigned long long)p->raw_position);
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

static enum status offer_method(struct inflate *p)
{
    if (archive_read_support_format_raw(p->archive) != ARCHIVE_OK ||
        archive_read_support_format_empty(p->archive) != ARCHIVE_OK ||
        p->method->offer(p->archive) != ARCHIVE_OK)
        return fail(p, STATUS_REFUSED,
                    "is compressed with %s, which the libarchive here was built without",
                    p->method->name);
    return STATUS_OK;
}

/*
 * In the raw format a stream is one entry; without content it is not even that. libarchive passes
 * on as it is what has the first bytes of the method but no whole header.
 */
static enum status open_stream(struct inflate *p)
{
    struct archive_entry *entry;
    if (archive_read_open(p->archive, p, NULL, take_raw, NULL) != ARCHIVE_OK)
        return failed(p);
    if (archive_filter_code(p->archive, 0) == ARCHIVE_FILTER_NONE) {
        archive_set_error(p->archive, 0, "no header of that kind");
        return failed(p);
    }
    int result = archive_read_next_header(p->archive, &entry);
    if (result == ARCHIVE_EOF)
        return STATUS_END;
    return result == ARCHIVE_OK ? STATUS_OK : failed(p);
}

enum status inflate_open(int fd, struct bytes start, struct inflate **ret_inflate)
{
    assert(start.len <= INFLATE_PEEK_MAX && method_of(start) != NULL);
    struct inflate *p = calloc(1, sizeof *p);
    if (p == NULL)
        return STATUS_NO_MEMORY;
    p->method = method_of(start);
    p->fd = fd;
    p->stop_event = -1;
    memcpy(p->raw, start.at, start.len);
    p->start_len = start.len;
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->changed, NULL);
    p->archive = archive_read_new();
    enum status status = p->archive != NULL ? offer_method(p) : STATUS_NO_MEMORY;
    if (status == STATUS_OK)
        p->filling = open_stream(p);
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
    if (p->archive != NULL)
        (void)archive_read_free(p->archive);
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

const char *inflate_library_version(void)
{
    return archive_version_details();
}

#else

struct inflate {
    char error[ERROR_SIZE];
};

enum status inflate_open(int fd, struct bytes start, struct inflate **ret_inflate)
{
    (void)fd;
    struct inflate *p = calloc(1, sizeof *p);
    if (p == NULL)
        return STATUS_NO_MEMORY;
    (void)snprintf(p->error, sizeof p->error,
                   "is compressed with %s: this firstflight was built without libarchive, which "
                   "reads that",
                   inflate_method(start));
    *ret_inflate = p;
    return STATUS_REFUSED;
}

void inflate_close(struct inflate *p)
{
    free(p);
}

struct bytes inflate_peek(struct inflate *p, size_t n)
{
    (void)p;
    (void)n;
    return (struct bytes){ 0 };
}

size_t inflate_read(struct inflate *p, uint8_t *buffer, size_t size)
{
    (void)p;
    (void)buffer;
    (void)size;
    return 0;
}

enum status inflate_status(const struct inflate *p)
{
    (void)p;
    return STATUS_REFUSED;
}

const char *inflate_error(const struct inflate *p)
{
    return p->error;
}

const char *inflate_library_version(void)
{
    return NULL;
}

#endif
