/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TIMING_H
#define TIMING_H
/*
 * Facts and verdict to durations: round trips, where on the path the capture was taken, the time
 * to the first response and what it was spent on. The definitions are those of schema/flow.sql.
 * All values are nanoseconds; DURATION_NONE = not known. No duration is ever negative.
 */
#include "judge.h"

#define DURATION_NONE INT64_MIN

enum rtt_basis { RTT_NONE, RTT_ACK, RTT_NEIGHBOUR, RTT_DATA };
enum vantage { VANTAGE_UNKNOWN, VANTAGE_CLIENT, VANTAGE_SERVER, VANTAGE_MIDDLE, VANTAGE_LOCAL };

struct path {
    int64_t server_rtt_ns; /* capture point to server and back: SYN to SYN/ACK */
    int64_t client_rtt_ns; /* capture point to client and back: SYN/ACK to ACK */
    int64_t rtt_ns;        /* sum of both */
    enum rtt_basis basis;  /* what client_rtt_ns rests on */
    enum vantage vantage;
};

struct timing {
    int64_t response_ns, perceived_ns;
    int64_t connect_ns, hello_wait_ns, tls_ns, request_wait_ns, server_wait_ns; /* all or none */
    int64_t server_think_ns;
    int64_t loss_wait_ns; /* waiting for retransmissions before the response; 0 = none */
    uint32_t client_retransmits_before_response, server_retransmits_before_response;
    double round_trips; /* perceived_ns / rtt_ns; negative = not known */
};

/* Path of one flow by its own evidence: ACK basis, else data basis. neighbour_rtt_ns is the least
 * client_rtt_ns of the same client at the same point within ten minutes (DURATION_NONE without). */
struct path path_of(const struct facts *f, int64_t neighbour_rtt_ns);

/* The same of a flow that shows only the way to its server (DURATION_NONE: not even that). */
struct path path_by_neighbour(int64_t server_rtt_ns, int64_t neighbour_rtt_ns);

/* client_rtt_ns by the flow's own SYN/ACK and ACK, DURATION_NONE without: what neighbours use. */
int64_t client_rtt_by_ack(const struct facts *f);

struct timing timing_of(const struct facts *f, const struct verdict *v, const struct path *p);

const char *rtt_basis_text(enum rtt_basis basis);
const char *vantage_text(enum vantage vantage);

#endif
