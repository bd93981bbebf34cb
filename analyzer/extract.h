/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXTRACT_H
#define EXTRACT_H
/* The packets of one flow, out of the captures that they were read from. */
#include "query.h"
#include "text.h"

struct extract_result {
    uint64_t packets;
    size_t files_read;
    struct text notes; /* captures that could not be used, and why */
};

/*
 * Writes the packets of a flow to a pcap file with nanoseconds: all that its capture point saw
 * between its addresses and ports from its first to its last packet, copies and what is around it
 * (VLAN, tunnels) included, fragments of TCP between the two addresses as well. A capture counts
 * only if it still is at its path, which is taken from this directory, else from that of the
 * database, and its content is what was ingested. STATUS_OK: notes may hold
 * what is missing. STATUS_REFUSED: nothing could be written, since the database keeps no addresses
 * or no capture is there; STATUS_IO: path cannot be written. On failure error has the text. Free
 * the notes in any case.
 */
MUST_USE enum status extract_flow(struct database *database, int64_t flow_id, const char *path,
                                  struct extract_result *ret_result, struct text *error);

#endif
