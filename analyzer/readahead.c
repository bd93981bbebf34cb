/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a ring of blocks. The thread fills them, the reader empties them; they meet
 * at the lock once a block.
 *
 *   ... [emptied] [being read] [filled ......] [being filled] ...
 *                  ^ current                    ^ hash
 *
 * A block is what one read(2) gave, so that a pipe's bytes come as soon as they are there. Each
 * keeps the hash of all before it: one that is given in part, since its capture is damaged, counts
 * as far as it was given.
 */
#include "readahead.h"

#include "thread.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct block {
    uint8_t *bytes;
    size_t len;
    struct hash_stream *hash; /* of all bytes before it */
};

struct readahead {
    /* of the thread */
    int fd;
    struct inflate *inflate;
    struct hash_stream *hash; /* of all bytes read */
    int read_errno;
    /* of the reader */
    struct block *current; /* NULL = none */
    size_t given;          /* of it */
    struct hash_stream *hash_given;
    enum status ended; /* STATUS_OK while there may be more */
    pthread_t thread;
    bool has_thread;
    int stop_event; /* readable when the thread shall end; -1 = none */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* under the lock */
    uint64_t filled, emptied; /* blocks */
    bool stop;
    enum status reading; /* STATUS_OK: more blocks follow */
    struct block blocks[READAHEAD_BLOCKS];
};

/* ---- the thread ---- */

static enum status read_fd(struct readahead *r, struct block *block)
{
    ssize_t n;
    if (!thread_wait_for_bytes(r->fd, r->stop_event))
        return STATUS_END;
    do {
        n = read(r->fd, block->bytes, READAHEAD_BLOCK_SIZE);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        r->read_errno = errno;
        return STATUS_IO;
    }
    block->len = (size_t)n;
    return n == 0 ? STATUS_END : STATUS_OK;
}

static enum status read_inflate(struct readahead *r, struct block *block)
{
    block->len = inflate_read(r->inflate, block->bytes, READAHEAD_BLOCK_SIZE);
    return block->len > 0 ? STATUS_OK : inflate_status(r->inflate);
}

static enum status fill(struct readahead *r, struct block *block)
{
    block->len = 0;
    hash_stream_copy(block->hash, r->hash);
    enum status status = r->inflate != NULL ? read_inflate(r, block) : read_fd(r, block);
    hash_stream_add(r->hash, (struct bytes){ block->bytes, block->len });
    return status;
}

static void *fill_ahead(void *argument)
{
    struct readahead *r = argument;
    pthread_mutex_lock(&r->lock);
    while (!r->stop && r->reading == STATUS_OK) {
        if (r->filled - r->emptied == READAHEAD_BLOCKS) {
            pthread_cond_wait(&r->changed, &r->lock);
            continue;
        }
        struct block *block = &r->blocks[r->filled % READAHEAD_BLOCKS];
        pthread_mutex_unlock(&r->lock);
        enum status status = fill(r, block);
        pthread_mutex_lock(&r->lock);
        r->filled += status == STATUS_OK;
        r->reading = status;
        pthread_cond_signal(&r->changed);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* ---- the reader ---- */

/* Goes on to the next block; false when there is none. */
static bool next_block(struct readahead *r)
{
    if (r->ended != STATUS_OK)
        return false;
    pthread_mutex_lock(&r->lock);
    if (r->current != NULL) {
        r->emptied++;
        pthread_cond_signal(&r->changed);
    }
    while (r->filled == r->emptied && r->reading == STATUS_OK)
        pthread_cond_wait(&r->changed, &r->lock);
    bool has_block = r->filled > r->emptied;
    r->current = has_block ? &r->blocks[r->emptied % READAHEAD_BLOCKS] : NULL;
    r->given = 0;
    if (!has_block)
        r->ended = r->reading;
    pthread_mutex_unlock(&r->lock);
    return has_block;
}

static struct bytes current_bytes(const struct readahead *r)
{
    return r->current == NULL ? (struct bytes){ 0 }
                              : (struct bytes){ r->current->bytes, r->current->len };
}

size_t readahead_read(struct readahead *r, uint8_t *buffer, size_t size)
{
    if (r->given == current_bytes(r).len && !next_block(r))
        return 0;
    struct bytes piece = bytes_first(bytes_after(current_bytes(r), r->given), size);
    if (piece.len > 0)
        memcpy(buffer, piece.at, piece.len);
    r->given += piece.len;
    return piece.len;
}

enum status readahead_status(const struct readahead *r, int *ret_errno)
{
    *ret_errno = r->ended == STATUS_IO ? r->read_errno : 0;
    return r->ended;
}

struct hash128 readahead_hash(struct readahead *r)
{
    assert(r->current != NULL || r->ended != STATUS_OK);
    if (r->current == NULL) /* the thread has ended, and all was given */
        return hash_stream_value(r->hash);
    hash_stream_copy(r->hash_given, r->current->hash);
    hash_stream_add(r->hash_given, bytes_first(current_bytes(r), r->given));
    return hash_stream_value(r->hash_given);
}

/* ---- opening ---- */

static bool make_blocks(struct readahead *r, const struct hash_stream *hash)
{
    r->hash = hash_stream_open();
    r->hash_given = hash_stream_open();
    bool ok = r->hash != NULL && r->hash_given != NULL;
    for (size_t i = 0; i < READAHEAD_BLOCKS && ok; i++) {
        r->blocks[i].bytes = malloc(READAHEAD_BLOCK_SIZE);
        r->blocks[i].hash = hash_stream_open();
        ok = r->blocks[i].bytes != NULL && r->blocks[i].hash != NULL;
    }
    if (ok)
        hash_stream_copy(r->hash, hash);
    return ok;
}

struct readahead *readahead_open(int fd, bool may_wait, struct inflate *inflate,
                                 const struct hash_stream *hash)
{
    struct readahead *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->fd = fd;
    r->inflate = inflate;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    r->stop_event = may_wait ? eventfd(0, EFD_CLOEXEC) : -1;
    if (inflate != NULL)
        inflate_set_stop_event(inflate, r->stop_event);
    if ((!may_wait || r->stop_event >= 0) && make_blocks(r, hash))
        r->has_thread = thread_start(&r->thread, fill_ahead, r);
    if (r->has_thread)
        return r;
    readahead_close(r);
    return NULL;
}

static void stop_thread(struct readahead *r)
{
    const uint64_t one = 1;
    pthread_mutex_lock(&r->lock);
    r->stop = true;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->lock);
    if (r->stop_event >= 0) {
        ssize_t written = write(r->stop_event, &one, sizeof one);
        (void)written; /* an event that is new takes 1 without waiting */
    }
    pthread_join(r->thread, NULL);
}

void readahead_close(struct readahead *r)
{
    if (r == NULL)
        return;
    if (r->has_thread)
        stop_thread(r);
    if (r->inflate != NULL)
        inflate_set_stop_event(r->inflate, -1);
    if (r->stop_event >= 0)
        close(r->stop_event);
    for (size_t i = 0; i < READAHEAD_BLOCKS; i++) {
        free(r->blocks[i].bytes);
        hash_stream_close(r->blocks[i].hash);
    }
    hash_stream_close(r->hash);
    hash_stream_close(r->hash_given);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r);
}
