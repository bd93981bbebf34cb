/* SPDX-License-Identifier: Apache-2.0 */
#include "hash.h"

#include <sys/random.h>
#include <time.h>
#include <xxhash.h>

static struct hash128 canonical(XXH128_hash_t value)
{
    XXH128_canonical_t c;
    struct hash128 h;
    XXH128_canonicalFromHash(&c, value);
    memcpy(h.octet, c.digest, sizeof h.octet);
    return h;
}

uint64_t hash_table(struct bytes b, uint64_t seed)
{
    return XXH3_64bits_withSeed(b.at, b.len, seed);
}

struct hash128 hash_stable(struct bytes b)
{
    return canonical(XXH3_128bits(b.at, b.len));
}

uint64_t hash_random_seed(void)
{
    uint64_t seed;
    if (getrandom(&seed, sizeof seed, 0) != (ssize_t)sizeof seed)
        seed = (uint64_t)time(NULL); /* a weak seed costs speed under attack, never correctness */
    return seed;
}

/* struct hash_stream is xxHash's own state under a name that does not drag its header along. */
struct hash_stream *hash_stream_open(void)
{
    XXH3_state_t *state = XXH3_createState();
    if (state != NULL)
        XXH3_128bits_reset(state);
    return (struct hash_stream *)(void *)state;
}

void hash_stream_add(struct hash_stream *h, struct bytes b)
{
    XXH3_128bits_update((XXH3_state_t *)(void *)h, b.at, b.len);
}

struct hash128 hash_stream_value(const struct hash_stream *h)
{
    return canonical(XXH3_128bits_digest((const XXH3_state_t *)(const void *)h));
}

void hash_stream_copy(struct hash_stream *to, const struct hash_stream *from)
{
    XXH3_copyState((XXH3_state_t *)(void *)to, (const XXH3_state_t *)(const void *)from);
}

void hash_stream_close(struct hash_stream *h)
{
    XXH3_freeState((XXH3_state_t *)(void *)h);
}

const char *hex_text(struct bytes b, char *buffer)
{
    static const char DIGITS[] = "0123456789abcdef";
    for (size_t i = 0; i < b.len; i++) {
        buffer[2 * i] = DIGITS[b.at[i] >> 4];
        buffer[2 * i + 1] = DIGITS[b.at[i] & 15];
    }
    buffer[2 * b.len] = '\0';
    return buffer;
}
