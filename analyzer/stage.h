/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STAGE_H
#define STAGE_H
/*
 * Where the packed facts of finished flows wait for the end of the run: in memory up to a cap, then
 * in a temporary file that has no name and goes with the process.
 */
#include "bytes.h"
#include "status.h"

struct stage;

/* memory_max: bytes of memory, used in growing steps. directory: where the temporary file
 * goes, NULL = TMPDIR or /tmp. NULL without memory. */
struct stage *stage_open(size_t memory_max, const char *directory);
void stage_close(struct stage *s);

/* Adds an item (a copy of the bytes); its number, from 0 on, in *ret_number. Reading starts anew
 * after it: stage_rewind(). */
MUST_USE enum status stage_add(struct stage *s, struct bytes item, uint64_t *ret_number);

/* An item that is not to be read again. */
MUST_USE enum status stage_cancel(struct stage *s, uint64_t number);

/* Goes back to the first item; call before stage_next(), as often as wanted. */
void stage_rewind(struct stage *s);

/* The next item that was not cancelled, in the order of adding; STATUS_END after the last. The view
 * lives until the next call. */
MUST_USE enum status stage_next(struct stage *s, struct bytes *ret_item);

/* Forgets all items. */
void stage_clear(struct stage *s);

/* Text of the last failure. */
const char *stage_error(const struct stage *s);

#endif
