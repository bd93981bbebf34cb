/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TICKET_H
#define TICKET_H
/*
 * Arithmetic of NewSessionTicket (RFC 8446 4.6.1, RFC 9846 4.7.1): how long a record with tickets
 * is when the ticket's own length is known, which a ClientHello shows in clear when it offers a
 * ticket of that server (RFC 8446 4.2.11).
 */
#include <stdbool.h>
#include <stdint.h>

enum {
    /* type and length 4, lifetime 4, age_add 4, and the lengths of nonce, ticket, extensions 5 */
    TICKET_MESSAGE_LEN = 17,
    TICKETS_PER_RECORD_MAX = 4,
    /* Shortest ticket seen of any stack is a session id of 32 bytes; less is no ticket. */
    TICKET_LEN_MIN = 32,
};

enum ticket_fit {
    TICKET_FITS_NOT,
    TICKET_FITS_NEAR, /* what a stack that is not known may send, or one cipher block shorter */
    TICKET_FITS_EXACT,
};

/*
 * How well a record of len bytes fits 1 to 4 tickets that are as long as an identity. overhead is
 * content type and tag. Exactly: what remains for nonce and extensions is what a stack is known to
 * send; near: it is one ticket and no more remains than any of them sends.
 */
enum ticket_fit ticket_fits(uint32_t len, uint32_t overhead, uint32_t identity_len);

/*
 * What the records of a server have in common whatever the length of its tickets: their number in a
 * record and the bytes of nonce and extensions, as one number; 0 when the record does not fit.
 */
uint32_t ticket_rest(uint32_t len, uint32_t overhead, uint32_t identity_len);

/* What ticket_rest() says of one ticket: the bytes of its nonce and extensions. */
uint32_t ticket_constant(uint32_t rest);

/* The same where the sender pads to blocks of that many bytes. */
bool ticket_fits_padded(uint32_t len, uint32_t overhead, uint32_t identity_len, uint32_t block);

/* Whether a record can hold a NewSessionTicket at all. */
bool ticket_is_possible(uint32_t len, uint32_t overhead);

#endif
