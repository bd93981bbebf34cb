/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HASH_H
#define HASH_H
/* The two hashes of the program, by xxHash: a table hash with a seed and a stable 128-bit one. */
#include "bytes.h"

struct hash128 {
    uint8_t octet[16]; /* canonical, big-endian: the same on every machine */
};

/* Hash for tables; the seed is drawn once a run, so a capture cannot aim at a bucket. */
uint64_t hash_table(struct bytes b, uint64_t seed);

/* Stable hash for identities that are stored. */
struct hash128 hash_stable(struct bytes b);

/* A seed from the system's random source. */
uint64_t hash_random_seed(void);

/* The same stable hash over a stream; hash_stream_open() gives NULL without memory. */
struct hash_stream;
struct hash_stream *hash_stream_open(void);
void hash_stream_add(struct hash_stream *h, struct bytes b);
struct hash128 hash_stream_value(const struct hash_stream *h);
void hash_stream_copy(struct hash_stream *to, const struct hash_stream *from);
void hash_stream_close(struct hash_stream *h); /* NULL is accepted */

/* Writes lower-case hex with a terminator: 2 * b.len + 1 characters of buffer; returns buffer. */
const char *hex_text(struct bytes b, char *buffer);

#endif
