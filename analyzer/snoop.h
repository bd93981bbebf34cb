/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SNOOP_H
#define SNOOP_H
/*
 * Reads the files of Solaris' snoop (RFC 1761), which libpcap does not. Used by capture.c alone.
 */
#include "frame.h"
#include "source.h"
#include "status.h"

struct snoop;

/* How many first bytes tell such a file, and whether they do. */
enum { SNOOP_MAGIC_LEN = 8 };
bool snoop_is_magic(struct bytes start);

/* Longest record with its header; a longer one ends the file. */
enum { SNOOP_RECORD_MAX = 262144 };

/*
 * Starts reading; the source stays the caller's and must live as long. On failure *ret_snoop is
 * still set (unless STATUS_NO_MEMORY) so that snoop_error() can be asked, and must be closed.
 * STATUS_REFUSED: another version, or a link type that has no DLT_ value here.
 */
MUST_USE enum status snoop_open(struct source *source, struct snoop **ret_snoop);
void snoop_close(struct snoop *s); /* NULL is accepted */

/*
 * The next packet as a frame, all but its number. STATUS_END; STATUS_DAMAGED, with snoop_error().
 * Not to be called again after these. Views in the frame live until the next call.
 */
MUST_USE enum status snoop_next(struct snoop *s, struct frame *ret_frame);

/* What is wrong with the file; lives as long as s. */
const char *snoop_error(const struct snoop *s);

/* Where the record starts that was read last, or could not be. */
uint64_t snoop_position(const struct snoop *s);

int snoop_link_type(const struct snoop *s); /* DLT_ value */

/* Packets that the capturing system dropped up to the last record. */
int64_t snoop_drops(const struct snoop *s);

#endif
