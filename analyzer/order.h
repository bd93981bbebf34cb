/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ORDER_H
#define ORDER_H
/*
 * The frames of one capture in order of time. What is in order passes as it is. Where a late frame
 * is known to follow (capture_has_late()), the frames in front of it are held as copies until it
 * has its place among them. A frame later than FRAME_LATE_MAX_NS is given where it stands: the
 * clock was set back, and what was captured first happened first.
 */
#include "capture.h"

struct order;

/* What is held of one capture; when more lies between a late frame and its place, it stays late. */
enum { ORDER_FRAMES_MAX = 8192, ORDER_BYTES_MAX = 4 * 1024 * 1024 };

/* What was found out of order. */
struct disorder {
    uint64_t late;              /* frames earlier than one in front of them, put in their place */
    uint64_t steps;             /* times the clock was set back by more than FRAME_LATE_MAX_NS */
    uint64_t first_step_number; /* of the frame at the first of them; 0 without */
    int64_t largest_step_ns;    /* how far back */
};

/* Takes the capture over: order_close() closes it. NULL without memory, then it is not taken. */
struct order *order_open(struct capture *capture);
void order_close(struct order *o); /* NULL is accepted */

/* As capture_next(), in order. Views in the frame live until the next call. */
MUST_USE enum status order_next(struct order *o, struct frame *ret_frame);

const struct capture *order_capture(const struct order *o);
struct disorder order_found(const struct order *o);

#endif
