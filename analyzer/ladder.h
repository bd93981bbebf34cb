/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LADDER_H
#define LADDER_H
/*
 * Draws one flow as a ladder between client and server: every record with its time, what it is
 * taken for and why, and a bracket around the time in which the client could send early data.
 * A response inside the bracket is 0-RTT at a glance; a server that answers late shows it below.
 * Pure: from the flow's row, its facts and their verdict to text.
 */
#include "flow_row.h" /* generated */
#include "judge.h"
#include "text.h"

struct page;

/* Columns of table flow that a ladder shows; the others may stay empty. */
#define LADDER_COLUMNS(INTEGER, REAL, TEXT)                                                        \
    INTEGER(flow_id)                                                                               \
    INTEGER(client_port)                                                                           \
    INTEGER(server_port)                                                                           \
    INTEGER(client_asn)                                                                            \
    INTEGER(start_epoch_ns)                                                                        \
    INTEGER(end_at_ns)                                                                             \
    INTEGER(syn_seen)                                                                              \
    INTEGER(syn_ack_at_ns)                                                                         \
    INTEGER(ack_at_ns)                                                                             \
    INTEGER(client_hello_at_ns)                                                                    \
    INTEGER(hello_retry_at_ns)                                                                     \
    INTEGER(server_hello_at_ns)                                                                    \
    INTEGER(client_finished_at_ns)                                                                 \
    INTEGER(request_at_ns)                                                                         \
    INTEGER(client_retransmits)                                                                    \
    INTEGER(server_retransmits)                                                                    \
    INTEGER(client_gap_bytes)                                                                      \
    INTEGER(server_gap_bytes)                                                                      \
    INTEGER(client_boundary_losses)                                                                \
    INTEGER(server_boundary_losses)                                                                \
    INTEGER(duplicates)                                                                            \
    INTEGER(truncated)                                                                             \
    INTEGER(clock_step)                                                                            \
    INTEGER(continues)                                                                             \
    INTEGER(answered_early)                                                                        \
    INTEGER(early_data_bytes)                                                                      \
    INTEGER(request_record_no)                                                                     \
    INTEGER(response_record_no)                                                                    \
    INTEGER(response_at_ns)                                                                        \
    INTEGER(response_low_at_ns)                                                                    \
    INTEGER(response_high_at_ns)                                                                   \
    INTEGER(loss_wait_ns)                                                                          \
    INTEGER(server_rtt_ns)                                                                         \
    INTEGER(client_rtt_ns)                                                                         \
    INTEGER(response_ns)                                                                           \
    INTEGER(perceived_ns)                                                                          \
    INTEGER(connect_ns)                                                                            \
    INTEGER(hello_wait_ns)                                                                         \
    INTEGER(tls_ns)                                                                                \
    INTEGER(request_wait_ns)                                                                       \
    INTEGER(server_wait_ns)                                                                        \
    INTEGER(expected_round_trips)                                                                  \
    INTEGER(flight_stalls)                                                                         \
    REAL(round_trips)                                                                              \
    TEXT(ticket_key_name)                                                                          \
    TEXT(flow_uid)                                                                                 \
    TEXT(client_ip)                                                                                \
    TEXT(server_ip)                                                                                \
    TEXT(client_basis)                                                                             \
    TEXT(client_region)                                                                            \
    TEXT(site)                                                                                     \
    TEXT(app_protocol)                                                                             \
    TEXT(sides_seen)                                                                               \
    TEXT(tunnel)                                                                                   \
    TEXT(ended)                                                                                    \
    TEXT(handshake)                                                                                \
    TEXT(handshake_basis)                                                                          \
    TEXT(outcome)                                                                                  \
    TEXT(failure)                                                                                  \
    TEXT(early_data)                                                                               \
    TEXT(early_data_basis)                                                                         \
    TEXT(early_data_reason)                                                                        \
    TEXT(tls_version)                                                                              \
    TEXT(cipher_suite)                                                                             \
    TEXT(sni)                                                                                      \
    TEXT(alpn)                                                                                     \
    TEXT(preamble)                                                                                 \
    TEXT(response_basis)                                                                           \
    TEXT(response_reason)                                                                          \
    TEXT(rtt_basis)                                                                                \
    TEXT(vantage)

/* No line is longer than this, however wide the terminal. */
enum { LADDER_WIDTH_MAX = 100, LADDER_WIDTH_MIN = 76 };

struct ladder_style {
    size_t
        width; /* columns, brought between LADDER_WIDTH_MIN and LADDER_WIDTH_MAX; 0: the latter */
    bool utf8; /* lines and arrows of UTF-8, else of ASCII */
};

/*
 * Adds the drawing of one flow to out. facts and verdict are NULL where none were stored: then the
 * ladder shows the marks of the row instead of records. Where row and verdict name different
 * records for request and response, the row holds. server is what was learned of the server, NULL
 * for nothing.
 */
void ladder_draw(const struct flow_row *row, const struct facts *facts,
                 const struct verdict *verdict, const struct server_profile_row *server,
                 struct ladder_style style, struct text *out);

/* Adds the ladder alone as an SVG file, with colours for light and dark. */
void ladder_add_svg(const struct flow_row *row, const struct facts *facts,
                    const struct verdict *verdict, const struct server_profile_row *server,
                    struct text *out);

/* The same as a page, with a table of its steps; NULL without memory. Close it. */
struct page *ladder_page(const struct flow_row *row, const struct facts *facts,
                         const struct verdict *verdict, const struct server_profile_row *server);

#endif
