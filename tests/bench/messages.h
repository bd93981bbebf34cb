/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MESSAGES_H
#define MESSAGES_H
/*
 * What the two sides of a generated flow say: the bytes of every message, whole or any part of it.
 * Hellos are real and can be parsed, lengths and order of records are those of common stacks, what
 * would be encrypted is random.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum flow_kind {
    FLOW_FULL_13,       /* TLS 1.3, full */
    FLOW_RESUMED_13,    /* by PSK, without early data */
    FLOW_EARLY,         /* 0-RTT accepted */
    FLOW_EARLY_REFUSED, /* 0-RTT offered and refused, session resumed */
    FLOW_RETRY,         /* HelloRetryRequest, full */
    FLOW_FULL_12,       /* TLS 1.2, full */
    FLOW_RESUMED_12,    /* by ticket */
    FLOW_HTTP,          /* plaintext */
    FLOW_DNS,           /* over UDP */
    FLOW_QUIC,          /* opaque */
    FLOW_SYN,           /* half-open */
    FLOW_KINDS
};

enum message_kind {
    MESSAGE_CLIENT_HELLO,
    MESSAGE_CLIENT_HELLO_AGAIN, /* after a HelloRetryRequest */
    MESSAGE_HELLO_RETRY,
    MESSAGE_FLIGHT_13, /* ServerHello to Finished with a certificate */
    MESSAGE_FLIGHT_13_RESUMED,
    MESSAGE_FINISHED_13,       /* of the client */
    MESSAGE_END_OF_EARLY_DATA, /* and Finished */
    MESSAGE_EARLY_DATA,        /* ChangeCipherSpec and a request */
    MESSAGE_TICKETS_13,
    MESSAGE_FLIGHT_12,       /* ServerHello to ServerHelloDone */
    MESSAGE_KEY_EXCHANGE_12, /* ClientKeyExchange to Finished */
    MESSAGE_FINISHED_12,     /* of the server: ticket, ChangeCipherSpec, Finished */
    MESSAGE_FLIGHT_12_RESUMED,
    MESSAGE_FINISHED_12_RESUMED, /* of the client */
    MESSAGE_REQUEST,
    MESSAGE_RESPONSE,
    MESSAGE_CLOSE, /* the client's close_notify */
    MESSAGE_HTTP_REQUEST,
    MESSAGE_HTTP_RESPONSE,
    MESSAGE_DNS_QUERY,
    MESSAGE_DNS_ANSWER,
    MESSAGE_QUIC_INITIAL,
    MESSAGE_QUIC_HANDSHAKE,
    MESSAGE_QUIC_PROTECTED,
};

/* What the bytes of a flow's messages depend on. */
struct voice {
    uint64_t seed; /* the flow's own */
    enum flow_kind kind;
    bool post_quantum; /* its ClientHello spans two segments */
    bool aes_256;      /* suite with SHA-384: Finished is longer */
};

struct message {
    enum message_kind kind;
    uint32_t number; /* of the request it belongs to: no two have the same bytes */
    uint32_t size;   /* application bytes of a request or response */
    uint32_t len;    /* bytes on the wire, by message_len() */
};

enum { MESSAGE_BUILT_MAX = 16384 }; /* of those that are built whole: all but requests, responses */

/* Sets m->len from the rest. */
void message_measure(const struct voice *v, struct message *m);

/* Writes bytes offset to offset + len of the message. scratch is room for one built whole. */
void message_write(const struct voice *v, const struct message *m, uint32_t offset, uint32_t len,
                   uint8_t *to, uint8_t scratch[MESSAGE_BUILT_MAX]);

#endif
