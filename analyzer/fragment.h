/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAGMENT_H
#define FRAGMENT_H
/*
 * IP fragments put together again (RFC 791 3.2, RFC 8200 4.5), as far as that is cheap: what does
 * not fit the caps below, or contradicts itself, stays a dropped packet.
 *
 * A fragment that was there before, whole, is a copy and changes nothing: the first one wins. Where
 * two overlap in part the datagram is given up, as RFC 5722 asks for; nobody but an attacker sends
 * such. Of fragments that a snaplen cut the captured beginning of the datagram is kept.
 */
#include "packet.h"
#include "status.h"

struct fragments;

enum {
    FRAGMENT_SETS = 256, /* datagrams in the making: sets of FRAGMENT_SET_SIZE by hash; when a set
                            is full its oldest is given up */
    FRAGMENT_SET_SIZE = 8,
    FRAGMENT_BYTES_MAX = 16 * 1024 * 1024, /* of all of them; beyond it, all are given up */
    FRAGMENT_AGE_MAX_S = 30,               /* of capture time, from the first to the last fragment
                                              (Linux: net.ipv4.ipfrag_time) */
};

/* A datagram that is complete. */
struct datagram {
    struct bytes ip;   /* as one IP packet, its captured beginning; valid until the next call */
    uint32_t wire_len; /* length of that packet */
    uint32_t earlier_count; /* fragments of it before the one that completed it, in the same file */
};

struct fragments *fragments_open(uint64_t seed); /* NULL without memory */
void fragments_close(struct fragments *f);       /* NULL is accepted */

/* The fragments that follow are of another file: counts of datagram.earlier_count begin anew. */
void fragments_begin_file(struct fragments *f);

/*
 * Takes a fragment. DROP_NONE: it completed its datagram, which is in *ret_datagram. DROP_FRAGMENT:
 * it is kept, or was a copy. DROP_FRAGMENT_INVALID: it contradicts itself or others.
 * DROP_FRAGMENT_OVER_CAP: there is no room, or no memory.
 */
enum drop fragments_add(struct fragments *f, const struct fragment *piece,
                        struct datagram *ret_datagram);

#endif
