/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PAST_H
#define PAST_H
/*
 * A short memory of flows that are over, so that what comes late finds its flow: a SYN repeated
 * after a long back-off keeps its first time, packets of a closed connection open no new flow, and
 * what follows an idle limit is told as a continuation. Small entries, a fixed cap: when it is
 * reached the oldest are forgotten.
 */
#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 2^20 entries of 56 bytes and their slots: some 70 MB at most. */
enum { PAST_FLOWS_MAX = 1 << 20 };

enum past_kind {
    PAST_HALF_OPEN, /* no answer to the SYN, or no ACK, within the limit */
    PAST_IDLE,      /* silent for longer than the limit, never closed */
    PAST_CLOSED,    /* both FINs or a RST */
};

struct past_flow {
    uint64_t key_hash;
    int64_t first_ns, last_ns;
    uint64_t stage_number; /* of its facts; PAST_NOT_STAGED without */
    uint32_t client_isn;
    uint32_t encapsulation[2]; /* that its packets had: equal addresses elsewhere are others */
    uint16_t syn_count;
    uint8_t encapsulation_count;
    uint8_t kind; /* enum past_kind */
};
#define PAST_NOT_STAGED UINT64_MAX

struct past;

struct past *past_open(void); /* NULL without memory */
void past_close(struct past *p);

/* Remembers a flow, instead of an older one of the same key. */
MUST_USE enum status past_remember(struct past *p, const struct past_flow *flow);

/* The flow of that key hash; NULL when there is none. Valid until the next past_remember(). */
const struct past_flow *past_find(const struct past *p, uint64_t key_hash);

void past_forget(struct past *p, uint64_t key_hash);

#endif
