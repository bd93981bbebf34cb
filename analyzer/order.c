/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a heap of frames by time, empty while all is in order. The least one leaves
 * it as soon as nothing can come in front of it: no late frame is known ahead, or it is older than
 * any that may still count as late, or the caps are reached.
 */
#include "order.h"

#include <stdlib.h>

struct held {
    struct frame frame;
    uint8_t *bytes;
    int64_t key_ns; /* its time; of a frame without, that of the latest before it */
};

struct order {
    struct capture *capture;
    enum status ended; /* STATUS_OK while it reads */
    int64_t latest_ns;
    bool has_time;
    struct frame waiting; /* behind a step: first come those held before it */
    bool is_waiting;
    struct held *heap; /* NULL until one is held */
    size_t count, bytes;
    uint8_t *given; /* bytes of the frame that was given last */
    struct disorder found;
};

struct order *order_open(struct capture *capture)
{
    struct order *o = calloc(1, sizeof *o);
    if (o != NULL)
        o->capture = capture;
    return o;
}

void order_close(struct order *o)
{
    if (o == NULL)
        return;
    for (size_t i = 0; i < o->count; i++)
        free(o->heap[i].bytes);
    free(o->heap);
    free(o->given);
    capture_close(o->capture);
    free(o);
}

/* ---- the heap ---- */

static bool is_before(const struct held *a, const struct held *b)
{
    if (a->key_ns != b->key_ns)
        return a->key_ns < b->key_ns;
    return a->frame.number < b->frame.number;
}

static void sift_up(struct held *heap, size_t at)
{
    struct held moved = heap[at];
    for (; at > 0 && is_before(&moved, &heap[(at - 1) / 2]); at = (at - 1) / 2)
        heap[at] = heap[(at - 1) / 2];
    heap[at] = moved;
}

static void sift_down(struct held *heap, size_t count)
{
    struct held moved = heap[0];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < count; at = child) {
        if (child + 1 < count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &moved))
            break;
        heap[at] = heap[child];
    }
    heap[at] = moved;
}

static enum status hold(struct order *o, const struct frame *frame, int64_t key_ns)
{
    if (o->heap == NULL)
        o->heap = calloc(ORDER_FRAMES_MAX, sizeof *o->heap);
    uint8_t *copy = malloc(frame->data.len > 0 ? frame->data.len : 1);
    if (o->heap == NULL || copy == NULL) {
        free(copy);
        return STATUS_NO_MEMORY;
    }
    if (frame->data.len > 0)
        memcpy(copy, frame->data.at, frame->data.len);
    struct held held = { *frame, copy, key_ns };
    held.frame.data.at = copy;
    o->heap[o->count] = held;
    sift_up(o->heap, o->count++);
    o->bytes += frame->data.len;
    return STATUS_OK;
}

static struct frame take_least(struct order *o)
{
    struct held least = o->heap[0];
    o->heap[0] = o->heap[--o->count];
    if (o->count > 0)
        sift_down(o->heap, o->count);
    o->bytes -= least.frame.data.len;
    free(o->given);
    o->given = least.bytes;
    return least.frame;
}

static bool may_take_least(const struct order *o)
{
    return o->ended != STATUS_OK || o->is_waiting || !capture_has_late(o->capture) ||
           o->latest_ns - o->heap[0].key_ns > FRAME_LATE_MAX_NS || o->count == ORDER_FRAMES_MAX ||
           o->bytes >= ORDER_BYTES_MAX;
}

/* ---- frames ---- */

/* Notes the time of a frame as it stands in the file; true when the clock was set back for it. */
static bool note_time(struct order *o, const struct frame *frame)
{
    if (frame->at_ns == FRAME_TIME_INVALID)
        return false;
    int64_t late_ns = o->has_time ? o->latest_ns - frame->at_ns : 0;
    bool is_step = late_ns > FRAME_LATE_MAX_NS;
    if (is_step) {
        struct disorder *d = &o->found;
        d->steps++;
        d->first_step_number = d->steps == 1 ? frame->number : d->first_step_number;
        d->largest_step_ns = late_ns > d->largest_step_ns ? late_ns : d->largest_step_ns;
    } else {
        o->found.late += late_ns > 0;
    }
    if (late_ns <= 0 || is_step)
        o->latest_ns = frame->at_ns;
    o->has_time = true;
    return is_step;
}

/* Reads a frame: it is given at once when nothing is held and nothing late follows. */
static enum status read_frame(struct order *o, struct frame *ret_frame, bool *ret_given)
{
    struct frame frame;
    *ret_given = false;
    o->ended = capture_next(o->capture, &frame);
    if (o->ended != STATUS_OK)
        return STATUS_OK;
    bool is_step = note_time(o, &frame);
    if (o->count == 0 && (is_step || !capture_has_late(o->capture))) {
        *ret_frame = frame;
        *ret_given = true;
        return STATUS_OK;
    }
    if (is_step) {
        o->waiting = frame;
        o->is_waiting = true;
        return STATUS_OK;
    }
    return hold(o, &frame, frame.at_ns != FRAME_TIME_INVALID ? frame.at_ns : o->latest_ns);
}

enum status order_next(struct order *o, struct frame *ret_frame)
{
    for (;;) {
        if (o->count > 0 && may_take_least(o)) {
            *ret_frame = take_least(o);
            return STATUS_OK;
        }
        if (o->is_waiting) {
            o->is_waiting = false;
            *ret_frame = o->waiting;
            return STATUS_OK;
        }
        if (o->ended != STATUS_OK)
            return o->ended;
        bool is_given;
        enum status status = read_frame(o, ret_frame, &is_given);
        if (status != STATUS_OK || is_given)
            return status;
    }
}

const struct capture *order_capture(const struct order *o)
{
    return o->capture;
}

struct disorder order_found(const struct order *o)
{
    return o->found;
}
