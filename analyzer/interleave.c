/* SPDX-License-Identifier: Apache-2.0 */
#include "interleave.h"

#include <stdlib.h>

struct input {
    struct order *order;
    size_t number;
    struct frame head; /* its next frame, when it has one */
    bool has_head;
    int64_t key_ns; /* the head's time; without a valid one, that of the frame before */
};

struct interleave {
    struct input inputs[INTERLEAVED_MAX];
    size_t count;
    size_t last; /* index of the one that gave the last frame */
};

struct interleave *interleave_open(void)
{
    return calloc(1, sizeof(struct interleave));
}

void interleave_close(struct interleave *m)
{
    if (m == NULL)
        return;
    for (size_t i = 0; i < m->count; i++)
        order_close(m->inputs[i].order);
    free(m);
}

enum status interleave_add(struct interleave *m, struct capture *capture, size_t number)
{
    assert(m->count < INTERLEAVED_MAX);
    struct order *order = order_open(capture);
    if (order == NULL)
        return STATUS_NO_MEMORY;
    m->inputs[m->count++] = (struct input){ .order = order, .number = number };
    return STATUS_OK;
}

size_t interleave_count(const struct interleave *m)
{
    return m->count;
}

/* Reads the next frame of an input that has none. */
static enum status fill(struct input *in)
{
    enum status status = order_next(in->order, &in->head);
    in->has_head = status == STATUS_OK;
    if (in->has_head && in->head.at_ns != FRAME_TIME_INVALID)
        in->key_ns = in->head.at_ns;
    return status;
}

enum status interleave_next(struct interleave *m, int64_t until_ns, struct frame *ret_frame,
                            size_t *ret_number)
{
    assert(m->count > 0);
    struct input *least = &m->inputs[0];
    for (size_t i = 0; i < m->count; i++) {
        struct input *in = &m->inputs[i];
        enum status status = in->has_head ? STATUS_OK : fill(in);
        *ret_number = in->number;
        if (status != STATUS_OK)
            return status;
        if (in->key_ns < least->key_ns)
            least = in;
    }
    if (least->key_ns >= until_ns)
        return STATUS_REFUSED;
    *ret_frame = least->head;
    *ret_number = least->number;
    least->has_head = false;
    m->last = (size_t)(least - m->inputs);
    return STATUS_OK;
}

static size_t index_of(const struct interleave *m, size_t number)
{
    size_t i = m->last < m->count && m->inputs[m->last].number == number ? m->last : 0;
    while (m->inputs[i].number != number)
        i++;
    return i;
}

const struct order *interleave_find(const struct interleave *m, size_t number)
{
    return m->inputs[index_of(m, number)].order;
}

/* The order of the others stays: it decides between frames of one time. */
void interleave_remove(struct interleave *m, size_t number)
{
    size_t i = index_of(m, number);
    order_close(m->inputs[i].order);
    m->count--;
    for (; i < m->count; i++)
        m->inputs[i] = m->inputs[i + 1];
}

void interleave_progress(const struct interleave *m, uint64_t *ret_bytes, uint64_t *ret_packets)
{
    *ret_bytes = *ret_packets = 0;
    for (size_t i = 0; i < m->count; i++) {
        struct capture_info info = capture_info(order_capture(m->inputs[i].order));
        *ret_bytes += info.bytes;
        *ret_packets += info.packets;
    }
}
