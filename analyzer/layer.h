/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LAYER_H
#define LAYER_H
/*
 * Inside of packet.c, link.c and tunnel.c: taking the headers off a frame one by one. A function
 * per kind of header reads it from the front of what is left and says which kind comes next.
 */
#include "drop.h"
#include "endpoint.h"
#include "frame.h"

/* The kinds of headers, by what comes next. */
enum layer {
    LAYER_STOP, /* the frame is no TCP; walk.drop says why */
    LAYER_ETHERNET,
    LAYER_LLC,
    LAYER_IP, /* version 4 or 6 by its first half octet */
    LAYER_IPV4,
    LAYER_IPV6,
    LAYER_TCP,
    LAYER_UDP,
    LAYER_AUTHENTICATION, /* IP AH */
    /* link.c */
    LAYER_LINUX_SLL,
    LAYER_LINUX_SLL2,
    LAYER_NULL,
    LAYER_PPP,
    LAYER_PPP_SERIAL,
    LAYER_PPP_WITH_DIRECTION,
    LAYER_SLIP,
    LAYER_ARCNET,
    LAYER_CISCO_HDLC,
    LAYER_FRAME_RELAY,
    LAYER_IEEE802_11,
    LAYER_IEEE802_11_SWAPPED, /* perhaps with its first two octets exchanged */
    LAYER_RADIOTAP,
    LAYER_PRISM,
    LAYER_AVS,
    LAYER_PPI,
    LAYER_PKTAP,
    LAYER_NFLOG,
    LAYER_IPNET,
    LAYER_IPOIB,
    LAYER_FDDI,
    LAYER_ERF,
    LAYER_JUNIPER_ETHERNET,
    LAYER_SWITCH_TAG,
    LAYER_SWITCH_TAG_LONG,
    LAYER_SWITCH_TAG_IN_FRONT,
    /* tunnel.c */
    LAYER_VLAN,
    LAYER_VNTAG,
    LAYER_PROVIDER_BACKBONE,
    LAYER_MPLS,
    LAYER_PPPOE,
    LAYER_GRE,
    LAYER_ETHERIP,
    LAYER_VXLAN,
    LAYER_VXLAN_GPE,
    LAYER_GENEVE,
    LAYER_GTP_U,
    LAYER_TEREDO,
    LAYER_L2TP,
    LAYER_CAPWAP,
    LAYER_NSH,
};

struct fragment;

/* Where we are in a frame, and what we have passed. */
struct walk {
    struct reader rest; /* captured bytes that are left of the innermost packet */
    size_t cut_len;     /* bytes of it behind them that were on the wire alone */
    enum drop drop;     /* set with LAYER_STOP */
    unsigned encapsulations;
    uint32_t encapsulation; /* as in struct segment */
    uint16_t tunnel;
    uint16_t ip_id; /* this and the rest: of the last IP header passed */
    uint8_t ttl;
    struct bytes ip;
    struct address from, to;
    struct fragment *fragment; /* filled where the walk stops at one; NULL = not asked for */
};

static inline enum layer stop(struct walk *w, enum drop reason)
{
    w->drop = reason;
    return LAYER_STOP;
}

/* Goes on behind a header with next, unless the bytes ended in it: then the reason is `cut`. */
static inline enum layer passed(struct walk *w, struct reader behind, enum drop cut,
                                enum layer next)
{
    if (behind.short_read)
        return stop(w, cut);
    w->rest = behind;
    return next;
}

/* Bytes of the innermost packet that are left, captured or not. */
static inline size_t wire_left(const struct walk *w)
{
    return w->rest.rest.len + w->cut_len;
}

/* What an ethertype announces; an IEEE 802.3 length counts as LLC. */
enum layer layer_of_ethertype(struct walk *w, uint16_t type);

/* The layer behind an encapsulation whose payload does not say what it is: IP by its version. */
enum layer layer_of_ip_version(const struct walk *w, enum layer otherwise);

/*
 * Notes an encapsulation (enum tunnel of packet.h) whose header was passed, and its identifier
 * (0 = has none), and goes on with next unless that is LAYER_STOP or there are more than
 * ENCAPSULATIONS_MAX.
 */
enum layer enclosed(struct walk *w, unsigned kind, uint32_t id, enum layer next);

/* link.c: the first layer of a link type (DLT_ value), LAYER_STOP when it is not decoded. */
enum layer layer_of_link_type(int link_type);

/* link.c and tunnel.c: take one header off; layer is one of theirs. */
enum layer link_pass(struct walk *w, enum layer layer);
enum layer tunnel_pass(struct walk *w, enum layer layer);

/* tunnel.c: what a UDP port holds, LAYER_STOP when no tunnel is known there. */
enum layer tunnel_of_udp_port(uint16_t port);

#endif
