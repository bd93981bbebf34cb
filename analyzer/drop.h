/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DROP_H
#define DROP_H
/*
 * What was not used, and why: one list gives the enum, the name in table drop_count and its
 * meaning. A reason names the lie or the limit, not the place in the code.
 */
#include <stdint.h>

#define DROP_REASONS(X)                                                                            \
    X(NONE, "none", "used")                                                                        \
    X(LINK_TYPE_UNKNOWN, "link_type_unknown", "link type that is not decoded")                     \
    X(LINK_TOO_SHORT, "link_too_short", "captured bytes end inside the link header")               \
    X(NOT_IP, "not_ip", "frame carries no IPv4 or IPv6")                                           \
    X(IP_TOO_SHORT, "ip_too_short", "captured bytes end inside the IP header")                     \
    X(IP_HEADER_INVALID, "ip_header_invalid", "version or header length impossible (RFC 791)")     \
    X(IP_LENGTH_BEYOND_FRAME, "ip_length_beyond_frame", "IP length larger than the frame was")     \
    X(IP_EXTENSION_INVALID, "ip_extension_invalid", "IPv6 extension chain broken or too long")     \
    X(FRAGMENT, "fragment", "IP fragment whose datagram did not become whole, or a copy")          \
    X(FRAGMENT_INVALID, "fragment_invalid", "IP fragment that contradicts others or itself")       \
    X(FRAGMENT_OVER_CAP, "fragment_over_cap", "IP fragment while the cap on them was reached")     \
    X(TUNNEL_TOO_DEEP, "tunnel_too_deep", "more encapsulations than the cap")                      \
    X(NOT_TCP, "not_tcp", "IP protocol other than TCP and UDP")                                    \
    X(UDP_NOT_QUIC, "udp_not_quic", "UDP that is no QUIC")                                         \
    X(QUIC_NOT_READ, "quic_not_read", "QUIC, which this version does not read")                    \
    X(TCP_TOO_SHORT, "tcp_too_short", "captured bytes end inside the TCP header")                  \
    X(TCP_HEADER_INVALID, "tcp_header_invalid", "TCP data offset impossible (RFC 9293 3.1)")       \
    X(TCP_AFTER_END, "tcp_after_end", "TCP segment of a flow that ended long before")              \
    X(TCP_OUT_OF_WINDOW, "tcp_out_of_window",                                                      \
      "SYN inside a live connection, or answer to no SYN seen")                                    \
    X(RESET_OUT_OF_WINDOW, "reset_out_of_window", "RST whose sequence number fits nothing seen")   \
    X(TIME_INVALID, "time_invalid", "timestamp outside of 1970 to 2262")                           \
    X(FILTERED, "filtered", "excluded by --filter")

enum drop {
#define DROP_ENUM(name, text, meaning) DROP_##name,
    DROP_REASONS(DROP_ENUM)
#undef DROP_ENUM
        DROP_COUNT
};

/* Packets per reason, of one capture file. */
struct drop_counts {
    uint64_t packets[DROP_COUNT];
};

/* Adds the counts of `more` to those of `counts`. */
void drop_counts_add(struct drop_counts *counts, const struct drop_counts *more);

/* The name in table drop_count, as "not_ip". */
const char *drop_text(enum drop reason);

/* One line for a person. */
const char *drop_meaning(enum drop reason);

#endif
