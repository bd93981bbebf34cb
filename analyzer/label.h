/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LABEL_H
#define LABEL_H
/*
 * Edge to nDPI: the application label of a flow. Its large state per flow exists only between the
 * first packet given and the final label. The only header whose source includes <ndpi_api.h>;
 * builds with nDPI 4.2 and later releases.
 */
#include "bytes.h"
#include "endpoint.h"
#include "status.h"

struct labeler;    /* one nDPI module; one per thread */
struct label_flow; /* nDPI's state of one flow */

struct label {
    const char *protocol; /* "TLS.Google", as nDPI writes it; NULL = unknown; static or labeler's */
    const char *category; /* "Web"; NULL = unknown */
};

/* STATUS_NO_MEMORY when nDPI cannot start. Calls must not overlap in time (nDPI's rule); labelers
 * once opened are independent of each other. */
MUST_USE enum status labeler_open(struct labeler **ret_labeler);
void labeler_close(struct labeler *l);

/*
 * The label of a TLS flow by what its ClientHello says: nDPI's tables of server names, then of
 * server addresses, without its dissector, which takes 10 times as long and cannot put a
 * ClientHello together across holes or out of order. server_name is empty where there was none.
 * Frees *state, which is NULL where no packet was given before. It differs from label_packet() only
 * where nDPI goes by more than names and addresses (Tor by made-up names, AnyDesk by its
 * certificate).
 */
struct label label_tls(struct labeler *l, struct label_flow **state, struct bytes server_name,
                       const struct endpoint *server);

/*
 * Gives one packet with payload (the whole IP packet) to nDPI: for what is not TLS, or not yet.
 * *state is NULL for a flow's first packet and owned by the caller until it is NULL again. Returns
 * true when the label is final (or the cap of packets is reached): *ret_label is set and *state
 * freed. last_needed says that no further packet will help, so the answer must come now.
 */
bool label_packet(struct labeler *l, struct label_flow **state, struct bytes ip_packet,
                  int64_t at_ns, enum side from, bool last_needed, struct label *ret_label);

/*
 * Ends a flow that has no final label yet: nDPI's best guess, also from ports and addresses. Frees
 * *state; where that is NULL no payload was seen, and nothing is guessed: unknown.
 */
struct label label_finish(struct labeler *l, struct label_flow **state);

enum { COMMUNITY_ID_SIZE = 40 };

/* Community ID v1 of a TCP flow, seed 0, "1:...", the same in both directions; 0.3 us. Returns
 * buffer. */
const char *community_id_text(const struct endpoint *client, const struct endpoint *server,
                              char buffer[COMMUNITY_ID_SIZE]);

/* "4.2.0", for --version. */
const char *label_library_version(void);

#endif
