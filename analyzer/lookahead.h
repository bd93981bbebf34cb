/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOOKAHEAD_H
#define LOOKAHEAD_H
/*
 * A classic pcap file on its way from source.c to libpcap, which is spared the records that need
 * nothing but to be taken. Their headers are looked at
 * some way before libpcap gets them: so it is known in time that a frame ahead is late, and that
 * what follows is no record. There the bytes stop, as at the end of a file, and may be taken up
 * again where records go on. Used by capture.c alone.
 */
#include "frame.h"
#include "source.h"

struct lookahead;

/* So many bytes, at least, have been looked at in front of the one that is read next. */
enum { LOOKAHEAD_BYTES = 128 * 1024 };

/* Longest record; libpcap's own limit (MAXIMUM_SNAPLEN) for everything that carries IP. */
enum { LOOKAHEAD_RECORD_MAX = 262144 };

/* The source stays the caller's and must live as long. NULL without memory. */
struct lookahead *lookahead_open(struct source *source);
void lookahead_close(struct lookahead *l); /* NULL is accepted */

/*
 * Reads up to size bytes; 0 at the end of the file, where reading failed (source_error()), and in
 * front of bytes that are no record (lookahead_stop()).
 */
size_t lookahead_read(struct lookahead *l, uint8_t *buffer, size_t size);

/*
 * Takes the next record as a frame, without its link type and number, where nothing is left to do
 * for libpcap: the record is whole, was found good, and is written in this machine's order of
 * bytes. False otherwise, and nothing is taken. Nothing of a record must have been read. The view
 * lives until the next call of this function or lookahead_read().
 */
bool lookahead_take(struct lookahead *l, struct frame *ret_frame);

/* Where in the file the byte of a record lies that is read next. */
uint64_t lookahead_position(const struct lookahead *l);

/* Whether headers are looked at: not in files of formats before version 2.4. */
bool lookahead_knows_records(const struct lookahead *l);

/* What the file's header declares. The header that is read says more, so that libpcap keeps packets
 * whole that are longer than that. */
uint32_t lookahead_snaplen(const struct lookahead *l);

/* Where the last record starts whose header was looked at; or, after a stop, the stop. */
uint64_t lookahead_last_record(const struct lookahead *l);

/*
 * Greatest number of a record, counted from 1, known to be earlier than one in front of it by no
 * more than FRAME_LATE_MAX_NS; 0 while there is none.
 */
uint64_t lookahead_late_record(const struct lookahead *l);

/* Why bytes stopped where they did; NULL while they do not. Lives until lookahead_resume(). */
const char *lookahead_stop(const struct lookahead *l);

/*
 * After a stop: looks for the next place where several records with plausible lengths and times
 * follow each other. True when there is one: the file's header is read again, then the records
 * from there on. False: there is none up to the end. Costs as much as reading.
 */
bool lookahead_resume(struct lookahead *l);

#endif
