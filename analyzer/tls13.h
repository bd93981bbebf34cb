/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TLS13_H
#define TLS13_H
/*
 * Where things stand in the encrypted part of a TLS 1.3 handshake, told from the lengths, order and
 * acknowledgments of its records alone: facts in, places out. What is concluded from it is the
 * business of judge.h and profile.h.
 */
#include "series.h"

/* A place in a series that does not exist. */
enum { NOWHERE = -1 };

/*
 * Record lengths that follow from the cipher suite: message, content type and tag. RFC 8446 4.4.4,
 * 4.5, 4.6.3, 5.2, 6 (RFC 9846 4.5.4, 4.6, 4.7.3, 5.2, 6).
 */
struct lengths13 {
    uint32_t overhead;          /* content type + tag */
    uint32_t finished;          /* 53 or 69; 0 when the suite is not known */
    uint32_t end_of_early_data; /* 21 */
    uint32_t alert;             /* 19 */
    uint32_t key_update;        /* 22 */
};

struct lengths13 lengths13_of(uint16_t cipher_suite);

/* How a side's record lengths deceive. RFC 8446 5.4 */
enum padding {
    PADDING_NONE,
    PADDING_BYTES_16, /* JDK: 16 zero bytes in each record */
    PADDING_BLOCK,    /* to a multiple of 64 or more: lengths say nothing */
};

enum flight_shape {
    FLIGHT_UNSEEN,
    FLIGHT_SEPARATE, /* one record for each message: OpenSSL, GnuTLS, Go, s2n, picotls, wolfSSL */
    FLIGHT_ONE,      /* one record holds all: BoringSSL, NSS, JDK, rustls */
};

struct tls13 {
    struct lengths13 len;
    struct series client, server;
    enum padding client_padding, server_padding;
    uint32_t server_block; /* PADDING_BLOCK: what the server pads to; else 0 */

    /* places in `client`; NOWHERE = not found */
    int early_first, early_last; /* early data: sent before any answer was there; or a cut */
    int end_of_early_data;       /* stands directly before Finished */
    int client_finished;
    int client_flight;            /* first record of the client's second flight */
    bool end_of_early_data_close; /* in the same segment as Finished */
    bool finished_by_length;      /* else by its place alone */
    bool finished_with_others;    /* one record holds Certificate to Finished */
    bool client_broken;           /* bytes between its hello and Finished were not seen */
    int client_data;              /* first record behind Finished that is no alert */

    /* places in `server` */
    enum flight_shape shape;
    int server_flight;        /* first encrypted record */
    int server_finished;      /* of a flight that was not captured: the gap instead */
    bool server_broken;       /* bytes of the flight were not seen */
    bool certificate_request; /* the flight has room for one, told by its records */
};

/* Takes facts of a handshake that chose TLS 1.3 (or a draft that looks like it). */
struct tls13 tls13_of(const struct facts *f);

/* Whether a place holds encrypted alerts to the side's end: nothing but alerts of length follows.
 */
bool tls13_is_final_alert(const struct tls13 *h, enum side side, int place);

/* Stream offset behind the first answer of the server, ServerHello or HelloRetryRequest; 0 = none.
 */
int64_t tls13_first_answer_end(const struct facts *f);

#endif
