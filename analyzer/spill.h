/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SPILL_H
#define SPILL_H
/*
 * A temporary file without a name for what is too much for memory and comes back in any order: each
 * item has a place of its own, which is used again once the item was taken out.
 */
#include "bytes.h"
#include "status.h"

/* Items are at most so long. */
enum { SPILL_ITEM_MAX = 4096 };

struct spill;

/* directory: of the file, which is made when it is needed first; NULL = TMPDIR or /tmp. NULL
 * without memory. */
struct spill *spill_open(const char *directory);
void spill_close(struct spill *s); /* NULL is accepted */

/*
 * Writes an item of SPILL_ITEM_MAX bytes at most; *ret_place is where, not 0. STATUS_NO_MEMORY;
 * STATUS_IO when the file cannot be made or written: whoever has the item may keep it.
 */
MUST_USE enum status spill_put(struct spill *s, struct bytes item, uint32_t *ret_place);

/* Reads the item of that place and length; it stays there. STATUS_IO. */
MUST_USE enum status spill_read(struct spill *s, uint32_t place, uint8_t *at, size_t len);

/* Gives up the place of an item of that length. */
void spill_remove(struct spill *s, uint32_t place, size_t len);

#endif
