/* SPDX-License-Identifier: Apache-2.0 */
#ifndef READAHEAD_H
#define READAHEAD_H
/*
 * A thread that reads a file, decompresses and hashes it some blocks ahead of who parses it. The
 * bytes, their end and what fails come as if they were read one after the other; the hash is that
 * of the bytes that were given, not of those read ahead. Used by source.c alone.
 */
#include "hash.h"
#include "inflate.h"

struct readahead;

/* What is held of one file. */
enum { READAHEAD_BLOCK_SIZE = 256 * 1024, READAHEAD_BLOCKS = 4 };

/*
 * Starts the thread. It reads from fd, or from inflate where that is not NULL; both stay the
 * caller's, who must not touch them until readahead_close(). may_wait: fd is a pipe, of which
 * nobody knows when the next bytes come. hash is of all bytes before, and copied.
 * NULL when there is no memory or no thread to be had, and nothing has been read.
 */
struct readahead *readahead_open(int fd, bool may_wait, struct inflate *inflate,
                                 const struct hash_stream *hash);

/* Ends the thread, also while it waits for a pipe that nobody writes to. NULL is accepted. */
void readahead_close(struct readahead *r);

/* Reads up to size bytes, at least one unless the end or a failure is reached. */
size_t readahead_read(struct readahead *r, uint8_t *buffer, size_t size);

/*
 * Why readahead_read() gave nothing: STATUS_END; or as inflate_status(), or STATUS_IO of fd, whose
 * errno is *ret_errno, else 0.
 */
enum status readahead_status(const struct readahead *r, int *ret_errno);

/* Stable hash of the bytes before and of all that were given; ask it after readahead_read(). */
struct hash128 readahead_hash(struct readahead *r);

#endif
