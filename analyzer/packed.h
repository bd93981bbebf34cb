/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PACKED_H
#define PACKED_H
/*
 * The compressed bytes of a file on their way to one of the libraries that decompress. Used by
 * inflate.c, which opens it, and by the decoders.
 */
#include "bytes.h"

enum { PACKED_SIZE = 64 * 1024 };

struct packed {
    int fd;            /* not owned */
    int stop_event;    /* readable when nobody waits for bytes any more; -1 = none */
    struct bytes rest; /* received, not decoded yet; a decoder takes from its front */
    uint64_t received; /* bytes of the file so far */
    bool ended;        /* there are no more */
    int error;         /* errno of read(2); 0 */
    size_t len;        /* of the piece that was received last */
    uint8_t bytes[PACKED_SIZE];
};

/* Starts behind the bytes that were read from fd before, at most PACKED_SIZE, which are copied. */
void packed_open(struct packed *p, int fd, struct bytes start);

/*
 * Makes sure that `rest` is not empty. False at the end of the file, after an error, and when
 * stop_event became readable.
 */
bool packed_has_more(struct packed *p);

/* Puts back the last n bytes of the piece that was taken last, as far as there are so many. */
void packed_give_back(struct packed *p, uint64_t n);

/* Where in the file the first byte of `rest` lies. */
uint64_t packed_position(const struct packed *p);

#endif
