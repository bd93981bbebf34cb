/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PAST_H
#define PAST_H
/*
 * A short memory of flows that are over, so that what comes late finds its flow: a SYN repeated
 * after a long back-off keeps its first time, packets of a closed connection open no new flow, and
 * what follows an idle limit is told as a continuation. Small entries, a fixed cap: when it is
 * reached the oldest are forgotten.
 */
#include "coder.h"
#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 2^20 entries of 32 bytes and their slots: 50 MB at most. */
enum { PAST_FLOWS_MAX = 1 << 20 };

enum past_kind {
    PAST_HALF_OPEN, /* no answer to the SYN, or no ACK, within the limit */
    PAST_IDLE,      /* silent for longer than the limit, never closed */
    PAST_CLOSED,    /* both FINs or a RST */
};

struct past_flow {
    uint64_t key_hash; /* of its key and an encapsulation: equal addresses elsewhere are others */
    int64_t last_ns;
    uint8_t kind; /* enum past_kind */
    /* of a half-open one only */
    uint16_t syn_count;
    uint32_t client_isn;
    int64_t first_ns;
    uint64_t stage_number; /* of its facts; PAST_NOT_STAGED without */
};
#define PAST_NOT_STAGED UINT64_MAX

/* How long, after its last packet, it matters that a flow was there. A late SYN finds its first one
 * (RFC 9293 3.8.1: back-off doubles); a connection that is kept alive speaks every two hours
 * (RFC 9293 3.8.4). */
#define PAST_HALF_OPEN_NS (130 * INT64_C(1000000000))
#define PAST_CLOSED_NS (240 * INT64_C(1000000000))
#define PAST_IDLE_NS (INT64_C(3) * 3600 * 1000000000)

struct past;

struct past *past_open(void); /* NULL without memory */
void past_close(struct past *p);

/* Remembers a flow, instead of an older one of the same key. One that was half-open for 19 hours is
 * forgotten instead: no client repeats its SYN for so long. */
MUST_USE enum status past_remember(struct past *p, const struct past_flow *flow);

/* Finds the flow of that key hash; false when there is none. */
bool past_find(const struct past *p, uint64_t key_hash, struct past_flow *ret_flow);

/* Asks for the memory in which past_find() will look. */
void past_prefetch(const struct past *p, uint64_t key_hash);

void past_forget(struct past *p, uint64_t key_hash);

/* Whether it does not matter any more at the time now_ns. */
bool past_is_over(const struct past_flow *flow, int64_t now_ns);

/*
 * Packs what still matters at now_ns, or adds what was packed to an empty past. Facts that were
 * staged are not when they are read again: their stage_number is PAST_NOT_STAGED.
 */
void past_code(struct coder *c, struct past *p, int64_t now_ns);

#endif
