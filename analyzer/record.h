/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RECORD_H
#define RECORD_H
/*
 * TLS records from byte runs (RFC 8446 5.1, RFC 9846 5.1): needs the 5 header bytes and nothing of
 * the body. Bodies are passed on as views or skipped by subtraction, also over a hole or bytes that
 * a snaplen cut away, since the header said how long they are. When a header itself is missing, the
 * boundaries are lost; reading goes on at the next segment that begins like a record, marked
 * unsure.
 */
#include "stream.h"

/* RFC 8446 5.2: 2^14 + 256; TLS 1.2 allowed 2^14 + 2048. */
enum { RECORD_HEADER_LEN = 5, RECORD_BODY_MAX = 16384 + 2048 };

struct record_header {
    uint8_t type;
    uint16_t version;
    uint16_t len;
};

enum record_event_kind {
    EVENT_MORE,   /* the run is used up */
    EVENT_BEGINS, /* a header is complete: header, first, unsure, lost_len are set */
    EVENT_BODY,   /* body bytes: body is set; its captured prefix is in body.data */
    EVENT_ENDS,   /* the body is complete */
    EVENT_BROKEN, /* what should be a header is none: first and broken are set; the boundaries are
                     lost */
};

struct record_event {
    enum record_event_kind kind;
    struct record_header header;
    struct run first; /* the run that holds the header's first byte, from that byte on */
    struct run body;  /* the part of the run that belongs to the body */
    uint8_t broken[RECORD_HEADER_LEN];
    bool unsure;          /* found again behind lost boundaries */
    bool lost_to_snaplen; /* ... which the snaplen, not missing segments, swallowed */
    int64_t lost_offset;  /* where the unknown bytes began ... */
    int64_t lost_at_ns;   /* ... in which segment, 0 where a hole swallowed that as well ... */
    uint64_t lost_packet_no;
    int32_t lost_ack;
    int64_t lost_len; /* ... and how many there were; 0 = none */
};

enum record_state { RECORD_IN_HEADER, RECORD_IN_BODY, RECORD_AT_END, RECORD_LOST };

struct record_reader {
    uint8_t state; /* enum record_state */
    uint8_t header_len;
    uint8_t header[RECORD_HEADER_LEN];
    bool unsure;
    bool lost_to_snaplen;
    uint32_t body_left;
    int64_t lost_offset; /* valid in RECORD_LOST, as in struct record_event */
    int64_t lost_at_ns;
    uint64_t lost_packet_no;
    int32_t lost_ack;
    struct run first; /* without its bytes */
};

/* Whether five bytes can be a record's header: known type, version 3.0 to 3.4, length in limits. */
bool record_header_plausible(const uint8_t header[RECORD_HEADER_LEN]);

/*
 * Consumes bytes of *run and tells what they are; call again until EVENT_MORE. Cutting a stream
 * into other runs gives the same events but for the number of EVENT_BODY. Views in the event point
 * into the run's bytes.
 */
struct record_event record_next(struct record_reader *r, struct run *run);

/* Starts in the middle of a stream whose boundaries are not known. */
void record_reader_lose(struct record_reader *r, int64_t offset);

/* The run's first n bytes, and the run without them; n is at most its length. */
struct run run_first(const struct run *run, uint32_t n);
void run_skip(struct run *run, uint32_t n);

#endif
