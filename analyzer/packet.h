/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PACKET_H
#define PACKET_H
/*
 * Link, VLAN, IP and TCP headers of one frame to a segment: pure, allocates nothing, keeps nothing.
 */
#include "drop.h"
#include "endpoint.h"
#include "frame.h"

/* RFC 9293 3.1 */
enum tcp_flag { TCP_FIN = 0x01, TCP_SYN = 0x02, TCP_RST = 0x04, TCP_PSH = 0x08, TCP_ACK = 0x10 };

/* What stood around the inner IP packet; bits, since several can be nested. */
enum tunnel {
    TUNNEL_VLAN = 1 << 0,
    TUNNEL_MPLS = 1 << 1,
    TUNNEL_PPPOE = 1 << 2,
    TUNNEL_GRE = 1 << 3,
    TUNNEL_ERSPAN = 1 << 4,
    TUNNEL_IP_IN_IP = 1 << 5, /* IPIP, 6in4, 4in6 */
    TUNNEL_VXLAN = 1 << 6,
    TUNNEL_GENEVE = 1 << 7,
    TUNNEL_GTP_U = 1 << 8,
    TUNNEL_TEREDO = 1 << 9,
    TUNNEL_L2TP = 1 << 10,
    TUNNEL_CAPWAP = 1 << 11,
    TUNNEL_NSH = 1 << 12,
};

/* Nested encapsulations that are followed: more is an attack or a loop. */
enum { ENCAPSULATIONS_MAX = 8 };

struct segment {
    int64_t at_ns;
    uint64_t packet_no;       /* frame.number */
    struct endpoint from, to; /* of the innermost IP packet */
    uint32_t seq, ack;        /* ack is meaningless without TCP_ACK */
    uint32_t payload_len;     /* bytes on the wire, also where the snaplen cut them away */
    struct bytes payload;     /* captured bytes of it: a prefix; view into the frame */
    struct bytes ip;          /* the innermost IP packet without link padding, for nDPI */
    uint32_t timestamp_value, timestamp_echo; /* RFC 7323; valid with has_timestamp */
    bool has_timestamp;
    bool fast_open;         /* option 34 present (RFC 7413) */
    uint8_t flags;          /* enum tcp_flag */
    uint8_t ttl;            /* TTL or hop limit */
    uint16_t mss;           /* option of a SYN; 0 without */
    uint16_t window;        /* unscaled */
    uint16_t ip_id;         /* IPv4 identification; 0 in IPv6 */
    uint16_t tunnel;        /* enum tunnel bits, outermost to innermost without order */
    uint32_t encapsulation; /* hash of VLAN ids, VNIs, labels around it; 0 for none */
};

/* A fragment of an IP packet: neither the first and last one nor the only one. */
struct fragment {
    int64_t at_ns;
    struct address from, to;
    uint32_t id;          /* 16 bits in IPv4 */
    uint32_t offset, len; /* of its payload in that of the packet, octets on the wire */
    struct bytes data;    /* captured octets of it: a prefix; view into the frame */
    bool more;            /* it is not the last one */
    uint8_t version;      /* 4 or 6 */
    uint8_t protocol;     /* of the packet's payload, or the IPv6 header that comes next */
    uint8_t ttl;
    uint16_t tunnel; /* as in struct segment, of what is around */
    uint32_t encapsulation;
    unsigned encapsulations;
};

/*
 * Decodes one frame. Returns DROP_NONE and fills *ret_segment for TCP over IPv4 or IPv6; any other
 * frame gives its reason and leaves *ret_segment alone. Ethernet padding is cut off; an IP length
 * of 0 (segmentation offload) is taken from the frame; checksums are not looked at, since captures
 * on the sending host hold them unfinished, but for that of an IPv4 header which says that it is
 * longer than the frame. TCP options that the snaplen cut off are not there; its fixed part must
 * be. Views in the segment live as long as the frame. RFC 791, RFC 8200 4, RFC 9293 3.1,
 * IEEE 802.1Q.
 */
enum drop packet_decode(const struct frame *frame, struct segment *ret_segment);

/*
 * Describes the fragment in a frame for which packet_decode() said DROP_FRAGMENT; *ret_fragment is
 * undefined for others. The view lives as long as the frame.
 */
void packet_fragment(const struct frame *frame, struct fragment *ret_fragment);

/*
 * Decodes the packet that fragments were put together to; `last` is the one that completed it and
 * gives time, number and encapsulation. wire_len is the packet's own length, ip what was captured.
 */
enum drop packet_decode_whole(const struct frame *last_frame, const struct fragment *last,
                              struct bytes ip, uint32_t wire_len, struct segment *ret_segment);

/* Whether the link type is decoded at all (DLT_ value), for messages about files. */
bool packet_link_type_known(int link_type);

#endif
