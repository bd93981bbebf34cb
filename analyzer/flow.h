/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLOW_H
#define FLOW_H
/*
 * The table of live flows: key, lookup, lifetime, caps. A flow here is small, since a SYN flood
 * makes millions; what a connection needs hangs from it only once there is one (connection.h).
 */
#include "endpoint.h"
#include "opening.h"
#include "status.h"

#include <stddef.h>

/* Two endpoints, the smaller first: both directions have one key. No padding: compared as bytes. */
struct flow_key {
    struct endpoint low, high;
};
_Static_assert(sizeof(struct flow_key) == 36, "a key is hashed and compared as bytes");

struct connection;

/* A connection that was packed away while nothing happens (connection.h). */
struct parked {
    uint32_t len;
    uint32_t place;  /* in the file of spill.h, with no bytes here; 0 = they are here */
    uint8_t bytes[]; /* len of them */
};

/* Bytes of memory that it takes. */
static inline size_t parked_size(const struct parked *p)
{
    return sizeof *p + (p->place == 0 ? p->len : 0);
}

struct flow {
    struct flow_key key;
    uint32_t index;                /* of this flow; constant */
    uint32_t next, previous;       /* in its bucket of deadlines, or the list of free ones */
    struct connection *connection; /* NULL while half-open, and while parked */
    struct parked *parked;         /* instead of it */
    int64_t first_ns, last_ns;     /* of its packets; last_ns is the largest */
    uint64_t first_packet_no;
    struct opening opening;
    uint32_t file;             /* index of the file of its first packet */
    uint32_t packets[2];       /* while half-open; the connection counts its own */
    uint32_t copies;           /* SYNs captured twice */
    uint32_t encapsulation[2]; /* the first ones that its packets had (border.h) */
    uint32_t resumed;          /* number of a flow of an earlier run + 1; 0 = of this run */
    uint16_t bucket;
    uint16_t tunnel;
    uint8_t ttl[2];
    uint8_t interface;    /* number of the first packet's, in interfaces.h */
    uint8_t client_basis; /* enum client_basis */
    uint8_t ends;         /* enum flow_ending bits */
    uint8_t encapsulation_count : 2;
    bool low_is_client : 1;
    bool continues : 1;
    bool restless : 1;   /* it could not be parked when that was tried last */
    bool is_counted : 1; /* as half-open, in half_open.h */
    bool has_row : 1;    /* a row of the database is to be replaced by what it becomes */
    bool is_touched : 1; /* resumed: it had packets in this run */
    bool payload_seen[2];
};

enum flow_ending {
    FLOW_FIN_CLIENT = 1,
    FLOW_FIN_SERVER = 2,
    FLOW_RESET_CLIENT = 4,
    FLOW_RESET_SERVER = 8,
    FLOW_RESET = FLOW_RESET_CLIENT | FLOW_RESET_SERVER,
};

/* Idle limits of capture time, nanoseconds (DESIGN: flow borders). */
#define NS_PER_SECOND INT64_C(1000000000)
#define HALF_OPEN_IDLE_NS (20 * NS_PER_SECOND)
#define HANDSHAKE_IDLE_NS (120 * NS_PER_SECOND)
#define ESTABLISHED_IDLE_NS (900 * NS_PER_SECOND)

/* Live half-open flows; with more, in a SYN flood, the oldest are over before their limit. What
 * belongs to one that is over finds its SYN in past.h. */
enum { HALF_OPEN_FLOWS_MAX = 1 << 17 };

/* After so much silence a connection is packed away: a tenth of its memory, for the price of two
 * packets. Sooner when many flows are live, since only then it matters. */
#define PARK_AFTER_NS (5 * NS_PER_SECOND)
#define PARK_SOON_NS (1 * NS_PER_SECOND)
#define PARK_AT_ONCE_NS (NS_PER_SECOND / 4)
enum { PARK_SOON_FLOWS = 1 << 14, PARK_AT_ONCE_FLOWS = 1 << 17 };

/* A closed flow's row waits for late packets for this long only; what comes until PAST_CLOSED_NS
 * opens no new flow (past.h). */
#define CLOSED_LINGER_NS (4 * NS_PER_SECOND)

struct flow_table;

/* NULL without memory. seed: of the hash. */
struct flow_table *flow_table_open(uint64_t seed);

/* Frees the table; every flow must have been removed. */
void flow_table_close(struct flow_table *t);

struct flow_key flow_key_of(const struct segment *s);

/*
 * Where many flows are live, each look into the table waits for memory. Segments that come in
 * batches wait together: for all of a batch the hash of the key and the slot, then for all the
 * flow, then for all its connection, then each is followed. Nothing is promised to be there: a
 * flow may have come or gone in between. Of what lies behind a connection nothing is fetched.
 */
uint32_t flow_hash(const struct flow_table *t, const struct flow_key *key);
void flow_prefetch_slot(const struct flow_table *t, uint32_t hash);
void flow_prefetch_flow(const struct flow_table *t, uint32_t hash);
void flow_prefetch_connection(const struct flow_table *t, uint32_t hash);

/* Flows of one second end one after the other: asks for the memory that the end of the one behind
 * this touches, and for that one's neighbour. The one behind; NULL. */
const struct flow *flow_prefetch_next(const struct flow_table *t, const struct flow *flow);

const struct endpoint *flow_endpoint(const struct flow *flow, enum side side);

/* Which side of the flow sent a segment of its key. */
enum side flow_side_of(const struct flow *flow, const struct segment *s);

/* The first live flow of a key; NULL when there is none. */
struct flow *flow_find(struct flow_table *t, const struct flow_key *key);

/* The next one with the key of this flow (tenants with equal addresses, border.h); NULL. */
struct flow *flow_find_next(struct flow_table *t, const struct flow *flow);

/* A new flow with that key, zeroed but for it, found behind others of the key; NULL without memory.
 */
struct flow *flow_add(struct flow_table *t, const struct flow_key *key, int64_t now_ns);

void flow_remove(struct flow_table *t, struct flow *flow);

/* Whether nothing but SYN, SYN/ACK and RST were seen. */
bool flow_is_half_open(const struct flow *flow);

/* Whether both FINs or a RST were seen. */
bool flow_is_closed(const struct flow *flow);

/* After how much silence this flow is over, ns. */
int64_t flow_idle_limit(const struct flow *flow);

/*
 * The next flow that has been silent at the time now_ns for so long that it is over, or that its
 * connection should be parked; NULL when there is none. Call until then, and remove or park each,
 * or mark it restless. Cheap when called once per packet.
 */
struct flow *flow_next_silent(struct flow_table *t, int64_t now_ns);

/* Brings a flow's next look forward: it needs attention sooner than was known. */
void flow_hurry(struct flow_table *t, struct flow *flow);

/* Any flow, the one nearest to its deadline first; NULL when the table is empty. */
struct flow *flow_nearest_deadline(struct flow_table *t);

/* The same of half-open flows only. */
struct flow *flow_nearest_half_open(struct flow_table *t);

size_t flow_count(const struct flow_table *t);
size_t flow_half_open_count(const struct flow_table *t);

#endif
