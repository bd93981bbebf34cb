/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CONTENT_H
#define CONTENT_H
/*
 * What a decrypted record holds, as a number of 16 bits: all of its plaintext that is kept. The low
 * bits say which kind of record it is inside, the others what is in it.
 */
#include "bytes.h"

enum content_kind {
    CONTENT_UNKNOWN = 0, /* not decrypted */
    CONTENT_HANDSHAKE = 1,
    CONTENT_ALERT = 2,
    CONTENT_APPLICATION = 3,
    CONTENT_OTHER = 4, /* decrypted, and none of these */
};

enum content_bits {
    CONTENT_KIND_MASK = 7, /* enum content_kind */

    /* CONTENT_HANDSHAKE: the messages that begin in it. RFC 8446 4 (RFC 9846 4) */
    CONTENT_NEW_SESSION_TICKET = 1 << 3,
    CONTENT_END_OF_EARLY_DATA = 1 << 4,
    CONTENT_ENCRYPTED_EXTENSIONS = 1 << 5, /* and it is whole */
    CONTENT_EARLY_DATA_ACCEPTED = 1 << 6,  /* it has early_data */
    CONTENT_CERTIFICATE = 1 << 7,          /* also compressed (RFC 8879) */
    CONTENT_CERTIFICATE_REQUEST = 1 << 8,
    CONTENT_CERTIFICATE_VERIFY = 1 << 9,
    CONTENT_FINISHED = 1 << 10,
    CONTENT_KEY_UPDATE = 1 << 11,
    CONTENT_OTHER_MESSAGE = 1 << 12, /* or the rest of one that began before */

    /* CONTENT_ALERT: the description above these bits. RFC 8446 6 */
    CONTENT_FATAL = 1 << 3, /* level */
    CONTENT_DESCRIPTION_SHIFT = 8,

    /* CONTENT_APPLICATION */
    CONTENT_EMPTY = 1 << 3,         /* not one byte */
    CONTENT_EARLY = 1 << 4,         /* under the key of early data */
    CONTENT_HTTP1_REQUEST = 1 << 5, /* begins with a method, RFC 9112 3 */
    CONTENT_HTTP1_STATUS = 1 << 6,  /* begins with a status line, RFC 9112 4 */
    CONTENT_HTTP2 = 1 << 7,         /* frames of HTTP/2, RFC 9113 4 ... */
    CONTENT_HEADERS = 1 << 8,       /* ... in which HEADERS begin */
    CONTENT_DATA = 1 << 9,          /* ... in which DATA begin */
    CONTENT_UNCLEAR = 1 << 10,      /* ... whose borders were lost with an earlier record */
};

static inline enum content_kind content_kind(uint16_t content)
{
    return (enum content_kind)(content & CONTENT_KIND_MASK);
}

/* Whether it is of that kind and has all of these bits. */
static inline bool content_has(uint16_t content, enum content_kind kind, unsigned bits)
{
    return content_kind(content) == kind && (content & bits) == bits;
}

enum { CONTENT_FRAME_HEADER_LEN = 9 };

/* A message or frame that goes on from record to record. */
struct content_unit {
    uint8_t header[CONTENT_FRAME_HEADER_LEN];
    uint8_t header_len;
    uint32_t left; /* bytes to come behind a complete header */
};

/* What is remembered of one side between its records; { 0 } at the start. */
struct content_reader {
    struct content_unit message, frame;
    uint8_t protocol;   /* enum protocol of content.c */
    bool lost;          /* a record was lost before the protocol was known */
    uint8_t magic_left; /* bytes of the client's connection preface to come */
};

/*
 * Reads the content of a record of that inner type; gives its number, never CONTENT_UNKNOWN.
 * *ret_alpn is the ALPN extension's list where EncryptedExtensions have one, a view; else left
 * alone. CONTENT_EARLY is the caller's to add.
 */
uint16_t content_read(struct content_reader *r, uint8_t type, struct bytes content,
                      struct bytes *ret_alpn);

/* A record of this side could not be read: what began in it goes on unknown. */
void content_lost(struct content_reader *r);

#endif
