/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TLS_H
#define TLS_H
/*
 * The byte runs of both sides of one connection to its TLS facts: finds where TLS begins (also
 * behind a plaintext preamble), follows records and clear handshake messages, and notes what they
 * say and when. Knows no packets and gives no verdict.
 */
#include "facts.h"
#include "keyed.h"
#include "message.h"
#include "preamble.h"
#include "record.h"

/* Runs of plaintext of one side that may still lead to TLS: STARTTLS dialogues need fewer. */
enum { PLAINTEXT_RUNS_MAX = 64 };

/* The first plaintext of both sides, for preamble.h. */
struct plaintext {
    uint8_t bytes[2][PREAMBLE_KEPT_MAX];
    uint16_t len[2];
    uint16_t waits; /* changes of direction from server to client */
    uint8_t last_side;
};

enum tls_mode {
    TLS_AT_START, /* nothing of this side read yet */
    TLS_PLAIN,    /* plaintext that may lead to TLS */
    TLS_RECORDS,
    TLS_OFF, /* nothing more is read of this side */
};

struct tls_side {
    uint8_t mode; /* enum tls_mode */
    uint8_t plain_runs;
    uint8_t records_kept;  /* of this side in facts */
    uint8_t early_kept;    /* client: early records kept; further ones are merged */
    bool begin_missing;    /* the first bytes of this side were not captured ... */
    int64_t begin_offset;  /* ... from there on; valid in TLS_PLAIN */
    bool body_is_clear;    /* of the record being read */
    bool body_is_doubtful; /* ... if the header of its first message is one */
    uint8_t alert_len;
    uint8_t alert[2];
    uint8_t record_type;  /* of the record being read */
    uint16_t record;      /* its index in facts.records + 1; 0 = none or not kept */
    uint16_t last_early;  /* index of the last early record kept; valid with early_kept */
    uint16_t unacked;     /* facts.records before it are acknowledged or the other side's */
    int64_t acked_offset; /* largest offset the other side acknowledged ... */
    int64_t acked_at_ns;  /* ... and when it did so first */
    struct record_reader records;
    struct message_reader messages;
};

struct tls {
    struct tls_side side[2];
    struct plaintext *plaintext;   /* only while a side is TLS_PLAIN and no TLS was seen */
    const struct secrets *secrets; /* where a ClientHello's secrets are looked for; not owned, set
                                      by the caller; NULL = nothing is decrypted */
    struct keyed *keyed;           /* from a ClientHello with secrets until these have done */
};

/* Adds a run of one side. STATUS_NO_MEMORY or STATUS_OK. */
MUST_USE enum status tls_add_run(struct tls *t, struct facts *f, enum side side, struct run run);

/* The other side of `side`'s bytes acknowledged them up to offset at that time. */
void tls_acknowledged(struct tls *t, struct facts *f, enum side side, int64_t offset,
                      int64_t at_ns);

/* Bytes of a side were sent again before they were acknowledged, as far as that is known. */
void tls_resent(struct tls *t, struct facts *f, enum side side, int64_t offset, uint32_t len);

/* Whether the bytes of a side are still wanted; when not, the stream may go blind. */
bool tls_wants(const struct tls *t, enum side side);

/* Whether neither side is in the middle of something: a record's header or body, decryption. */
bool tls_is_at_rest(const struct tls *t);

/*
 * Packs what is known of both sides, without the facts and without what decrypts them: secrets are
 * never kept. Or restores it into a zeroed struct, to be freed with tls_done() in any case; what
 * was restored is good only if tls_fits_facts() says so of the facts that it goes with.
 */
void tls_code(struct coder *c, struct tls *t);
bool tls_fits_facts(const struct tls *t, const struct facts *f);

/* Notes what the end of the flow left unfinished. */
void tls_end(struct tls *t, struct facts *f);

/* Bytes kept of messages, plaintext and what decryption holds. */
size_t tls_held_memory(const struct tls *t);

void tls_done(struct tls *t);

#endif
