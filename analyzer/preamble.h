/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREAMBLE_H
#define PREAMBLE_H
/*
 * Plaintext that stands before a ClientHello: PROXY protocol headers, proxies that are asked for a
 * connection, and protocols that change to TLS on request (STARTTLS). Pure: nothing is allocated or
 * kept.
 *
 * A stream reader that meets bytes which are no TLS record at a stream's start
 *   1. gives the client's first bytes to proxy_header_read(), since TLS may follow a PROXY header
 *      in the same segment: on PROXY_FOUND it goes on behind the header as if the stream began
 *      there;
 *   2. otherwise keeps the first PREAMBLE_KEPT_MAX bytes of each side's plaintext and counts the
 *      waits, and when it finds a ClientHello, asks preamble_recognise() once.
 */
#include "endpoint.h"
#include "facts.h"

enum {
    PREAMBLE_KEPT_MAX = 512, /* of each side: every known exchange shows its kind in them */

    /* With as many bytes proxy_header_read() never asks for more: the longest version 1 header. */
    PROXY_DECIDED_LEN = 107,

    /* Longest version 2 header read; receivers take no more than one buffer, 16 KiB and below. */
    PROXY_HEADER_LEN_MAX = 16 * 1024,
};

enum proxy_result {
    PROXY_NONE,  /* the bytes are no PROXY header, whatever follows */
    PROXY_MORE,  /* they can be the start of one, or are: more of the stream is needed */
    PROXY_FOUND, /* they begin with one */
};

/* A PROXY protocol header (HAProxy, proxy-protocol.txt, sections 2.1 and 2.2). */
struct proxy_header {
    enum preamble kind; /* PREAMBLE_PROXY_V1 or PREAMBLE_PROXY_V2 */
    size_t len;         /* of the whole header in bytes; may lie beyond the bytes given */
    bool has_addresses; /* false: the proxy's own connection (LOCAL), UNKNOWN, a UNIX socket, or
                           addresses that are none */
    struct endpoint source, destination; /* of the proxied connection */
};

/*
 * Reads the PROXY header that a client's stream begins with. On PROXY_MORE with a version 2 header
 * whose length is known, *ret_header has kind and len, so that a reader which will not get more
 * (snaplen) can still skip it; len is 0 otherwise. On PROXY_NONE it is zeroed.
 */
enum proxy_result proxy_header_read(struct bytes first, struct proxy_header *ret_header);

struct preamble_verdict {
    enum preamble kind;
    uint8_t round_trips; /* spent before the client could send its ClientHello */
};

/*
 * Says what the plaintext before a ClientHello was. client and server are the first bytes of each
 * side's plaintext (from the stream's start, a PROXY header included; ClientHello and what follows
 * it excluded); either is empty when that side was not seen. waits is how often the client sent
 * after it had received: changes of direction from server to client, the one before the ClientHello
 * included. It is the number of round trips; where the server was not seen, the least that the
 * protocol needs takes its place.
 *
 * Without any plaintext the kind is PREAMBLE_NONE. A PROXY header costs nothing, and is the kind
 * only when nothing else precedes the ClientHello.
 */
struct preamble_verdict preamble_recognise(struct bytes client, struct bytes server,
                                           unsigned waits);

#endif
