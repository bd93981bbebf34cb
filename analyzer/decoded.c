/* SPDX-License-Identifier: Apache-2.0 */
#include "decoded.h"

void decoded_batch_done(struct decoded_batch *b)
{
    buffer_done(&b->bytes);
    b->count = 0;
}

void decoded_batch_clear(struct decoded_batch *b)
{
    b->count = 0;
    b->bytes.len = 0;
    if (b->bytes.capacity > DECODED_BATCH_BYTES)
        buffer_done(&b->bytes);
}

bool decoded_batch_has_room(const struct decoded_batch *b, const struct decoded *decoded)
{
    size_t len = decoded->reason == DROP_NONE ? decoded->segment.ip.len : 0;
    return b->count == 0 ||
           (b->count < DECODED_BATCH_MAX && b->bytes.capacity - b->bytes.len >= len);
}

/* The buffer never grows under views that show it: only while it is empty. */
static bool reserve(struct decoded_batch *b, size_t len)
{
    return b->count > 0 ||
           buffer_reserve(&b->bytes, len > DECODED_BATCH_BYTES ? len : DECODED_BATCH_BYTES);
}

enum status decoded_batch_add(struct decoded_batch *b, const struct decoded *decoded)
{
    struct decoded *added = &b->at[b->count];
    struct segment *s = &added->segment;
    *added = *decoded;
    if (decoded->reason == DROP_NONE) {
        size_t from = b->bytes.len;
        if (!reserve(b, s->ip.len) || !buffer_add(&b->bytes, s->ip))
            return STATUS_NO_MEMORY;
        struct bytes copy = bytes_after((struct bytes){ b->bytes.at, b->bytes.len }, from);
        s->payload = bytes_moved(s->payload, s->ip, copy);
        s->ip = copy;
    }
    b->count++;
    return STATUS_OK;
}
