/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENING_H
#define OPENING_H
/*
 * The TCP handshake: what the segments with SYN said, and which SYN was answered by which SYN/ACK
 * (RFC 9293 3.5; the answered one by timestamps, RFC 7323, where it was repeated).
 */
#include "endpoint.h"
#include "facts.h"
#include "packet.h"

/* A repetition comes after a timeout of at least 200 ms; the same SYN sooner is the same packet,
 * captured twice. */
#define COPY_WITHIN_NS (10 * INT64_C(1000000))

struct opening {
    int64_t syn_first_ns, syn_last_ns; /* 0 = none */
    int64_t syn_answered_ns;           /* the SYN that the first SYN/ACK answers */
    int64_t syn_ack_first_ns, syn_ack_last_ns;
    uint32_t isn[2];           /* valid with isn_known */
    uint32_t other_server_isn; /* of another SYN/ACK, until the client's ACK chose */
    uint32_t syn_first_timestamp, syn_timestamp, syn_ack_timestamp; /* TSval */
    uint16_t syn_count, syn_ack_count;
    uint16_t mss[2];
    bool isn_known[2];
    bool has_other_server_isn : 1;
    bool syn_has_timestamp : 1, syn_ack_has_timestamp : 1;
    bool syn_rtt_ambiguous : 1;
    bool time_went_back : 1; /* SYN/ACK recorded before its SYN */
    bool fast_open : 1;      /* data in the SYN, acknowledged by the SYN/ACK */
};

enum opening_note {
    OPENING_NEW,   /* taken */
    OPENING_COPY,  /* the same packet captured twice */
    OPENING_ALIEN, /* a SYN/ACK that answers another SYN than ours: no part of this flow */
};

/* Notes a SYN of the client, or a SYN/ACK of the server. */
enum opening_note opening_syn(struct opening *o, const struct segment *s);
enum opening_note opening_syn_ack(struct opening *o, const struct segment *s);

/* Between two SYN/ACKs the client's first acknowledgment chooses. */
void opening_choose_server(struct opening *o, const struct segment *s);

/*
 * Whether a client segment acknowledges the SYN/ACK; then *ret_ambiguous says that the SYN/ACK was
 * repeated and nothing tells which one this answers.
 */
bool opening_acknowledged(const struct opening *o, const struct segment *s, bool *ret_ambiguous);

/* Copies what facts hold of it; start_ns is the flow's first packet. */
void opening_facts(const struct opening *o, int64_t first_packet_ns, struct facts *f);

#endif
