/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MESSAGE_H
#define MESSAGE_H
/*
 * Handshake messages from the bodies of clear handshake records (RFC 8446 4, RFC 5246 7.4): several
 * in one record, or one over several. Hellos are kept whole up to a cap; of the others only as much
 * as their first fields need.
 */
#include "record.h"

/* The largest ClientHellos seen carry post-quantum keys and stay below 4 KiB; RFC 8446 allows far
 * more, and an announced length must not allocate it. */
enum { MESSAGE_HELLO_BYTES_MAX = 64 * 1024, MESSAGE_OTHER_BYTES_MAX = 64 };

struct message {
    uint8_t type;
    uint32_t len;       /* announced, without the 4 bytes of header */
    struct bytes body;  /* what was captured of it, up to the cap; view valid until the next
                           call for this reader */
    bool begins_record; /* its first byte is the first of a record */
    int64_t at_ns;      /* segment that first carried its first byte */
    int64_t last_at_ns; /* ... its last byte */
    int64_t offset;     /* stream offset of its first byte */
    int64_t end_offset; /* behind its last byte */
};

struct message_reader {
    uint8_t header[4];
    uint8_t header_len;
    bool lossy; /* bytes of the message are missing: what is kept is its prefix */
    bool lost;  /* bytes of a header are missing: nothing is read until a record begins */
    bool at_record_begin;
    uint32_t left; /* body bytes to come; valid with a complete header */
    struct message current;
    uint8_t *kept;
    uint32_t kept_len, kept_capacity;
};

/* A record begins: messages may, too. */
void message_record_begins(struct message_reader *m);

/*
 * Consumes bytes of *body; true when a message is complete (or its header and everything that was
 * captured of it is known and the rest subtracted). Call until it gives false.
 * *ret_status is STATUS_NO_MEMORY when a message could not be kept.
 */
bool message_next(struct message_reader *m, struct run *body, struct message *ret_message,
                  enum status *ret_status);

/* Type and announced length of the message that was begun; false before its header is complete. */
bool message_begun(const struct message_reader *m, struct message *ret_message);

/* The message that the end of the stream cut off, if its header was complete. */
bool message_cut_off(struct message_reader *m, struct message *ret_message);

/* Forgets a message that was begun: its record's boundaries were lost. */
void message_reset(struct message_reader *m);

/* Packs a message that was begun with what is kept of it, or restores it into a zeroed reader. */
void message_code(struct coder *c, struct message_reader *m);

void message_done(struct message_reader *m);

#endif
