/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HALF_OPEN_H
#define HALF_OPEN_H
/*
 * Counts of flows that were never answered or never acknowledged, by server and second: millions
 * of them in a SYN flood, which are not worth a row each.
 */
#include "coder.h"
#include "endpoint.h"
#include "status.h"

#include <stddef.h>
#include <stdint.h>

/* Rows kept in table flow of one server's half-open flows of one second; the rest is counted. */
enum { HALF_OPEN_ROWS_MAX = 64 };

/*
 * The same of one second and all servers together: as many as connections began in it, and at least
 * so many. A row costs as much as 30 packets; so those of half-open flows cost no more than the
 * others, or hardly anything.
 */
enum { HALF_OPEN_SECOND_ROWS_MIN = 128 };

/* Servers and seconds told apart; what is beyond is counted for the address "::". */
enum { HALF_OPEN_COUNTS_MAX = 1 << 18 };

struct half_open_count {
    struct endpoint server;
    int64_t second; /* Unix time of the first SYN */
    uint64_t flows;
    uint64_t prefixes_seen[4]; /* bits by hash of the client's /24 or /48 */
    bool is_carried;           /* an earlier run has counted some of them */
};

struct half_opens;

struct half_opens *half_opens_open(uint64_t seed); /* NULL without memory */
void half_opens_close(struct half_opens *h);

/* Counts a flow; *ret_row says whether it is one of the few that have a row. */
MUST_USE enum status half_opens_add(struct half_opens *h, const struct endpoint *server,
                                    const struct address *client, int64_t start_ns, bool *ret_row);

/* Counts a connection that began at start_ns, for the rows of its second. */
void half_opens_note_connection(struct half_opens *h, int64_t start_ns);

/* Takes one back: its connection came about after all. */
void half_opens_remove(struct half_opens *h, const struct endpoint *server, int64_t start_ns);

/* Packs the counts from a second on, or adds what was packed to an empty table. */
void half_opens_code(struct coder *c, struct half_opens *h, int64_t from_second);

/* All counts, in no order; *ret_count of them. Valid until the next change. */
const struct half_open_count *half_opens_all(const struct half_opens *h, size_t *ret_count);

/* Number of client prefixes, estimated from the bits (exact to a few percent below 500). */
int64_t half_open_prefixes(const struct half_open_count *c);

#endif
