/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PCAPNG_H
#define PCAPNG_H
/*
 * Reads pcapng files (draft-ietf-opsawg-pcapng): sections of either byte order, interfaces of
 * different link types, lengths and clocks in one file, where libpcap 1.10 stops in the middle.
 * Used by capture.c alone.
 */
#include "frame.h"
#include "source.h"
#include "status.h"

struct pcapng;

enum {
    PCAPNG_BLOCK_MAX = 16 * 1024 * 1024,   /* a longer one ends the file */
    PCAPNG_INTERFACES_MAX = 4096,          /* of a section; more end the file */
    PCAPNG_NAMES_MAX = 1024,               /* interfaces of a file whose names are kept */
    PCAPNG_NAME_MAX = 64,                  /* a longer one is no name */
    PCAPNG_SECRETS_MAX = 16 * 1024 * 1024, /* of a file's secrets; a block of more is passed over */
};

/* Places where something unreadable was passed over. */
struct pcapng_gaps {
    uint64_t count;
    uint64_t from, to; /* the first of them: the block that could not be read, and the next */
    char reason[160];
};

/*
 * Starts reading; the source stays the caller's and must live as long. Reads the first section
 * header and the interfaces behind it, up to the first packet. On failure *ret_pcapng is still set
 * (unless STATUS_NO_MEMORY) so that pcapng_error() can be asked, and must be closed.
 * STATUS_REFUSED: the first section header is broken or of another version; STATUS_IO.
 */
MUST_USE enum status pcapng_open(struct source *source, struct pcapng **ret_pcapng);
void pcapng_close(struct pcapng *p); /* NULL is accepted */

/*
 * The next packet as a frame, all but its number; interface_id counts the interfaces of all
 * sections. Simple packets have no time. Blocks that cannot be read are passed over where others
 * follow (pcapng_gaps()). STATUS_END; STATUS_DAMAGED, with pcapng_error(); STATUS_IO, with
 * source_error(); STATUS_NO_MEMORY. Not to be called again after these. Views in the frame live
 * until the next call.
 */
MUST_USE enum status pcapng_next(struct pcapng *p, struct frame *ret_frame);

/* What is wrong with the file; lives as long as p. */
const char *pcapng_error(const struct pcapng *p);

/* Where the block starts that was read last, or could not be. */
uint64_t pcapng_position(const struct pcapng *p);

/* Name of an interface by the interface_id of a frame, plain text; NULL when it has none. */
const char *pcapng_interface_name(const struct pcapng *p, uint32_t interface_number);

/*
 * Greatest number of a packet, counted from 1, that is known to be earlier than one in front of it
 * by no more than FRAME_LATE_MAX_NS; 0 while there is none.
 */
uint64_t pcapng_late_packet(const struct pcapng *p);

const struct pcapng_gaps *pcapng_gaps(const struct pcapng *p);

/* DLT_ value of the first interface; -1 while there was none. */
int pcapng_link_type(const struct pcapng *p);

/* Largest declared snaplen; 0 = none, or without limit. */
uint32_t pcapng_snaplen(const struct pcapng *p);

/* Packets that the capturing system dropped, as far as statistics blocks said; -1 = none did. */
int64_t pcapng_drops(const struct pcapng *p);

/* TLS key log lines of all secrets blocks so far; lives until the next call of pcapng_next(). */
struct bytes pcapng_secrets(const struct pcapng *p);

#endif
