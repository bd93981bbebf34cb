/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers of link types other than Ethernet, as the list of link-layer header types at
 * https://www.tcpdump.org/linktypes.html describes them.
 */
#include "layer.h"

/* DLT_ values, the same on all systems but for raw IP; LINKTYPE_ values where those differ. */
enum link_type {
    LINK_NULL = 0,
    LINK_EN10MB = 1,
    LINK_SLIP = 8,
    LINK_PPP = 9,
    LINK_FDDI = 10,
    LINK_ATM_RFC1483 = 11,
    LINK_RAW = 12,
    LINK_RAW_OPENBSD = 14,
    LINK_PPP_SERIAL = 50,
    LINK_PPP_ETHER = 51,
    LINKTYPE_ATM_RFC1483 = 100,
    LINKTYPE_RAW = 101,
    LINK_CISCO_HDLC = 104,
    LINK_IEEE802_11 = 105,
    LINK_FRAME_RELAY = 107,
    LINK_LOOP = 108,
    LINK_LINUX_SLL = 113,
    LINK_PRISM_HEADER = 119,
    LINK_RADIOTAP = 127,
    LINK_ARCNET_LINUX = 129,
    LINK_USER2 = 149, /* PKTAP on macOS before it had a number of its own */
    LINK_AVS = 163,
    LINK_PPP_PPPD = 166,
    LINK_JUNIPER_ETHER = 178,
    LINK_PPI = 192,
    LINK_ERF = 197,
    LINK_PPP_WITH_DIRECTION = 204,
    LINK_MPLS = 219,
    LINK_IPNET = 226,
    LINK_IPV4 = 228,
    LINK_IPV6 = 229,
    LINK_NFLOG = 239,
    LINK_IPOIB = 242,
    LINK_PKTAP = 258,
    LINK_LINUX_SLL2 = 276,
    LINK_DSA_TAG_BRCM = 281,
    LINK_DSA_TAG_BRCM_PREPEND = 282,
    LINK_DSA_TAG_DSA = 284,
    LINK_DSA_TAG_EDSA = 285,
};

enum layer layer_of_link_type(int link_type)
{
    switch (link_type) {
    case LINK_EN10MB:
        return LAYER_ETHERNET;
    case LINK_LINUX_SLL:
        return LAYER_LINUX_SLL;
    case LINK_LINUX_SLL2:
        return LAYER_LINUX_SLL2;
    case LINK_RAW:
    case LINK_RAW_OPENBSD:
    case LINKTYPE_RAW:
    case LINK_IPV4:
    case LINK_IPV6:
        return LAYER_IP;
    case LINK_NULL:
    case LINK_LOOP:
        return LAYER_NULL;
    case LINK_PPP:
        return LAYER_PPP;
    case LINK_PPP_SERIAL:
        return LAYER_PPP_SERIAL;
    case LINK_PPP_PPPD:
    case LINK_PPP_WITH_DIRECTION:
        return LAYER_PPP_WITH_DIRECTION;
    case LINK_PPP_ETHER:
        return LAYER_PPPOE;
    case LINK_CISCO_HDLC:
        return LAYER_CISCO_HDLC;
    case LINK_FRAME_RELAY:
        return LAYER_FRAME_RELAY;
    case LINK_ATM_RFC1483:
    case LINKTYPE_ATM_RFC1483:
        return LAYER_LLC;
    case LINK_MPLS:
        return LAYER_MPLS;
    case LINK_IEEE802_11:
        return LAYER_IEEE802_11;
    case LINK_RADIOTAP:
        return LAYER_RADIOTAP;
    case LINK_PRISM_HEADER:
        return LAYER_PRISM;
    case LINK_AVS:
        return LAYER_AVS;
    case LINK_PPI:
        return LAYER_PPI;
    case LINK_PKTAP:
    case LINK_USER2:
        return LAYER_PKTAP;
    case LINK_NFLOG:
        return LAYER_NFLOG;
    case LINK_IPNET:
        return LAYER_IPNET;
    case LINK_SLIP:
        return LAYER_SLIP;
    case LINK_ARCNET_LINUX:
        return LAYER_ARCNET;
    case LINK_FDDI:
        return LAYER_FDDI;
    case LINK_IPOIB:
        return LAYER_IPOIB;
    case LINK_ERF:
        return LAYER_ERF;
    case LINK_JUNIPER_ETHER:
        return LAYER_JUNIPER_ETHERNET;
    case LINK_DSA_TAG_BRCM:
    case LINK_DSA_TAG_DSA:
        return LAYER_SWITCH_TAG;
    case LINK_DSA_TAG_EDSA:
        return LAYER_SWITCH_TAG_LONG;
    case LINK_DSA_TAG_BRCM_PREPEND:
        return LAYER_SWITCH_TAG_IN_FRONT;
    default:
        return LAYER_STOP;
    }
}

/* Goes on behind a link header with a known layer, or with what its ethertype announces. */
static enum layer link_passed(struct walk *w, struct reader behind, enum layer next)
{
    return passed(w, behind, DROP_LINK_TOO_SHORT, next);
}

static enum layer link_passed_to(struct walk *w, struct reader behind, uint16_t ethertype)
{
    if (behind.short_read)
        return stop(w, DROP_LINK_TOO_SHORT);
    w->rest = behind;
    return layer_of_ethertype(w, ethertype);
}

/* ---- tap headers of operating systems ---- */

/* "Linux cooked" protocol field: an ethertype, or one of Linux's own numbers for 802.2. */
static enum layer linux_cooked(struct walk *w, struct reader behind, uint16_t protocol)
{
    enum { LINUX_802_2 = 4 };
    if (protocol == LINUX_802_2)
        return link_passed(w, behind, LAYER_LLC);
    if (protocol < 0x600 && !behind.short_read)
        return stop(w, DROP_NOT_IP);
    return link_passed_to(w, behind, protocol);
}

static enum layer linux_sll(struct walk *w)
{
    struct reader r = w->rest;
    reader_take(&r, 14); /* packet type, ARPHRD type, address */
    uint16_t protocol = reader_u16(&r);
    return linux_cooked(w, r, protocol);
}

static enum layer linux_sll2(struct walk *w)
{
    struct reader r = w->rest;
    uint16_t protocol = reader_u16(&r);
    reader_take(&r, 18); /* interface, ARPHRD type, packet type, address */
    return linux_cooked(w, r, protocol);
}

/* BSD loopback: an address family in the byte order of the capturing host, or in network order. */
static enum layer null_or_loop(struct walk *w)
{
    struct reader r = w->rest;
    uint32_t family = reader_u32(&r);
    if (family > 0xffff)
        family = __builtin_bswap32(family);
    switch (family) {
    case 2: /* AF_INET everywhere */
        return link_passed(w, r, LAYER_IPV4);
    case 10: /* AF_INET6 of Linux, Windows, NetBSD and OpenBSD, FreeBSD, macOS */
    case 23:
    case 24:
    case 28:
    case 30:
        return link_passed(w, r, LAYER_IPV6);
    default:
        return stop(w, r.short_read ? DROP_LINK_TOO_SHORT : DROP_NOT_IP);
    }
}

/* macOS: a header with its own length and the link type of what follows, little-endian. */
static enum layer pktap(struct walk *w)
{
    enum { FIXED_LEN = 12 };
    struct reader r = w->rest;
    uint64_t len = reader_le(&r, 4);
    reader_le(&r, 4); /* record type */
    uint64_t link_type = reader_le(&r, 4);
    if (r.short_read || len < FIXED_LEN)
        return stop(w, DROP_LINK_TOO_SHORT);
    reader_take(&r, (size_t)len - FIXED_LEN);
    enum layer next = link_type <= INT16_MAX ? layer_of_link_type((int)link_type) : LAYER_STOP;
    return next == LAYER_STOP ? stop(w, DROP_LINK_TYPE_UNKNOWN) : link_passed(w, r, next);
}

/* One attribute of Linux netfilter's log. */
struct nflog_attribute {
    uint16_t type;
    struct bytes value;
};

/* Numbers are in the byte order of the capturing host: the types are small, which shows it. */
static struct nflog_attribute nflog_attribute(struct reader *r)
{
    enum { HEADER_LEN = 4, TYPE = 0x7fff, TYPE_MAX = 0xff };
    struct reader big_endian = *r;
    size_t len = (size_t)reader_le(r, 2);
    uint16_t type = (uint16_t)reader_le(r, 2) & TYPE;
    if (type > TYPE_MAX) {
        *r = big_endian;
        len = reader_u16(r);
        type = reader_u16(r) & TYPE;
    }
    if (len < HEADER_LEN) {
        r->short_read = true;
        return (struct nflog_attribute){ 0 };
    }
    struct bytes value = bytes_first(r->rest, len - HEADER_LEN);
    size_t padded_len = (len + 3) / 4 * 4 - HEADER_LEN;
    r->rest = bytes_after(r->rest, bytes_first(r->rest, padded_len).len);
    return (struct nflog_attribute){ type, value };
}

static enum layer nflog(struct walk *w)
{
    enum { PAYLOAD = 9 }; /* NFULA_PAYLOAD */
    struct reader r = w->rest;
    reader_u32(&r); /* family, version, resource id */
    while (!r.short_read && r.rest.len > 0) {
        struct nflog_attribute a = nflog_attribute(&r);
        if (!r.short_read && a.type == PAYLOAD)
            return link_passed(w, reader_of(a.value), LAYER_IP);
    }
    return stop(w, r.short_read ? DROP_LINK_TOO_SHORT : DROP_NOT_IP);
}

/* Solaris: version, family, hook type, length, interfaces, zones. */
static enum layer ipnet(struct walk *w)
{
    struct reader r = w->rest;
    reader_take(&r, 24);
    return link_passed(w, r, LAYER_IP);
}

/* Linux: source, destination, an offset, a protocol, and for RFC 1201 whether the packet is in
 * several frames (then Linux gives it whole, behind them), and its number. */
static enum layer arcnet(struct walk *w)
{
    enum { IP_OF_RFC_1051 = 240, IP_OF_RFC_1201 = 212, IPV6_OF_RFC_2497 = 196, EXCEPTION = 0xff };
    struct reader r = w->rest;
    reader_take(&r, 4);
    uint8_t protocol = reader_u8(&r);
    if (protocol == IP_OF_RFC_1051)
        return link_passed(w, r, LAYER_IPV4);
    if (protocol != IP_OF_RFC_1201 && protocol != IPV6_OF_RFC_2497)
        return stop(w, r.short_read ? DROP_LINK_TOO_SHORT : DROP_NOT_IP);
    uint8_t split = reader_u8(&r);
    reader_take(&r, split == EXCEPTION ? 6 : 2);
    return link_passed(w, r, LAYER_IP);
}

/* ---- point to point ---- */

/* RFC 1661 2: the protocol field may be compressed to its odd octet. */
static enum layer ppp_protocol(struct walk *w, struct reader r)
{
    enum { PPP_IPV4 = 0x0021, PPP_IPV6 = 0x0057, PPP_MPLS = 0x0281 };
    uint16_t protocol = reader_u8(&r);
    if ((protocol & 1) == 0)
        protocol = (uint16_t)(protocol << 8 | reader_u8(&r));
    switch (protocol) {
    case PPP_IPV4:
        return link_passed(w, r, LAYER_IPV4);
    case PPP_IPV6:
        return link_passed(w, r, LAYER_IPV6);
    case PPP_MPLS:
        return link_passed(w, r, LAYER_MPLS);
    default:
        return stop(w, r.short_read ? DROP_LINK_TOO_SHORT : DROP_NOT_IP);
    }
}

/* RFC 1662 3.1: address and control, unless they were negotiated away. */
static enum layer ppp(struct walk *w)
{
    struct reader r = w->rest;
    struct reader behind = r;
    if (reader_u16(&behind) == 0xff03)
        r = behind;
    return ppp_protocol(w, r);
}

/* The same, or Cisco's framing (RFC 1547 4.3.1). */
static enum layer ppp_serial(struct walk *w)
{
    struct reader r = w->rest;
    uint8_t address = reader_u8(&r);
    return address == 0x0f || address == 0x8f ? LAYER_CISCO_HDLC : LAYER_PPP;
}

/* A direction in front of, or in place of, the address octet. */
static enum layer ppp_with_direction(struct walk *w)
{
    struct reader r = w->rest;
    reader_u8(&r);
    struct reader behind = r;
    if (reader_u8(&behind) == 0x03)
        return ppp_protocol(w, behind);
    return link_passed(w, r, LAYER_PPP);
}

/* A direction and the link's own compressed header; the packet behind them is whole. */
static enum layer slip(struct walk *w)
{
    struct reader r = w->rest;
    reader_take(&r, 16);
    return link_passed(w, r, LAYER_IP);
}

static enum layer cisco_hdlc(struct walk *w)
{
    struct reader r = w->rest;
    reader_u16(&r); /* address, control */
    uint16_t type = reader_u16(&r);
    return link_passed_to(w, r, type);
}

/* RFC 2427 3, 4: Q.922 address, UI, network level protocol id; and Cisco's ethertype variant. */
static enum layer frame_relay(struct walk *w)
{
    enum { UI = 0x03, NLPID_SNAP = 0x80, NLPID_IPV4 = 0xcc, NLPID_IPV6 = 0x8e };
    struct reader r = w->rest;
    unsigned address_len = 0;
    while (!r.short_read && address_len++ < 4 && (reader_u8(&r) & 1) == 0)
        ;
    struct reader cisco = r;
    uint16_t type = reader_u16(&cisco);
    uint8_t control = reader_u8(&r);
    if (control != UI)
        return link_passed_to(w, cisco, type);
    uint8_t nlpid = reader_u8(&r);
    if (nlpid == 0) /* padding */
        nlpid = reader_u8(&r);
    if (nlpid == NLPID_IPV4 || nlpid == NLPID_IPV6)
        return link_passed(w, r, LAYER_IP);
    if (nlpid != NLPID_SNAP)
        return stop(w, r.short_read ? DROP_LINK_TOO_SHORT : DROP_NOT_IP);
    reader_be(&r, 3); /* organization */
    type = reader_u16(&r);
    return link_passed_to(w, r, type);
}

/* ---- wireless ---- */

enum { TYPE_DATA = 0x08 }; /* IEEE 802.11-2020 9.2.4.1.3, with protocol version 0 */

/* IEEE 802.11-2020 9.2.3, 9.3.2: a data frame in the clear holds LLC. */
static enum layer ieee802_11_of(struct walk *w, struct reader r, uint8_t kind, uint8_t flags)
{
    enum { TO_DS = 0x01, FROM_DS = 0x02, PROTECTED = 0x40, ORDER = 0x80 };
    enum { SUBTYPE_NO_DATA = 0x40, SUBTYPE_QOS = 0x80, QOS_AGGREGATE = 0x80 };
    reader_take(&r, 22); /* duration, three addresses, sequence control */
    if (!r.short_read &&
        ((kind & 0x0f) != TYPE_DATA || (kind & SUBTYPE_NO_DATA) != 0 || (flags & PROTECTED) != 0))
        return stop(w, DROP_NOT_IP);
    if ((flags & TO_DS) != 0 && (flags & FROM_DS) != 0)
        reader_take(&r, 6); /* fourth address */
    if ((kind & SUBTYPE_QOS) != 0) {
        uint64_t qos = reader_le(&r, 2);
        if ((flags & ORDER) != 0)
            reader_take(&r, 4); /* HT control */
        if ((qos & QOS_AGGREGATE) != 0)
            reader_take(&r, 14); /* of the first of several: addresses, length */
    }
    return link_passed(w, r, LAYER_LLC);
}

static enum layer ieee802_11(struct walk *w)
{
    struct reader r = w->rest;
    uint8_t kind = reader_u8(&r);
    uint8_t flags = reader_u8(&r);
    return ieee802_11_of(w, r, kind, flags);
}

/* Cisco's access points send the two octets of frame control in the other order. */
static enum layer ieee802_11_swapped(struct walk *w)
{
    struct reader r = w->rest;
    uint8_t first = reader_u8(&r);
    uint8_t second = reader_u8(&r);
    bool is_swapped = (first & 0x0f) != TYPE_DATA && (second & 0x0f) == TYPE_DATA;
    return is_swapped ? ieee802_11_of(w, r, second, first) : ieee802_11_of(w, r, first, second);
}

/* https://www.radiotap.org: the length is all we need. */
static enum layer radiotap(struct walk *w)
{
    enum { FIXED_LEN = 4 };
    struct reader r = w->rest;
    reader_u16(&r); /* version, padding */
    size_t len = (size_t)reader_le(&r, 2);
    if (r.short_read || len < FIXED_LEN)
        return stop(w, DROP_LINK_TOO_SHORT);
    reader_take(&r, len - FIXED_LEN);
    return link_passed(w, r, LAYER_IEEE802_11);
}

static enum layer avs(struct walk *w)
{
    enum { FIXED_LEN = 8 };
    struct reader r = w->rest;
    reader_u32(&r); /* version */
    size_t len = reader_u32(&r);
    if (r.short_read || len < FIXED_LEN)
        return stop(w, DROP_LINK_TOO_SHORT);
    reader_take(&r, len - FIXED_LEN);
    return link_passed(w, r, LAYER_IEEE802_11);
}

/* Its 144 octets, or the AVS header that some drivers put there. */
static enum layer prism(struct walk *w)
{
    enum { AVS_VERSION = 0x80211, PRISM_LEN = 144 };
    struct reader r = w->rest;
    if (reader_u32(&r) >> 12 == AVS_VERSION)
        return LAYER_AVS;
    r = w->rest;
    reader_take(&r, PRISM_LEN);
    return link_passed(w, r, LAYER_IEEE802_11);
}

static enum layer ppi(struct walk *w)
{
    enum { FIXED_LEN = 8 };
    struct reader r = w->rest;
    reader_u16(&r); /* version, flags */
    size_t len = (size_t)reader_le(&r, 2);
    int link_type = (int)(reader_le(&r, 4) & INT16_MAX);
    if (r.short_read || len < FIXED_LEN)
        return stop(w, DROP_LINK_TOO_SHORT);
    reader_take(&r, len - FIXED_LEN);
    enum layer next = layer_of_link_type(link_type);
    return next == LAYER_STOP ? stop(w, DROP_LINK_TYPE_UNKNOWN) : link_passed(w, r, next);
}

/* ---- tags of switch chips (DSA), on the port between chip and processor ---- */

/* Broadcom, Marvell: between the addresses and the ethertype; Marvell puts a VLAN tag in there. */
static enum layer switch_tag_of(struct walk *w, size_t tag_len)
{
    enum { ADDRESSES_LEN = 12 };
    struct reader r = w->rest;
    reader_take(&r, ADDRESSES_LEN + tag_len);
    uint16_t type = reader_u16(&r);
    return link_passed_to(w, r, type);
}

static enum layer switch_tag(struct walk *w)
{
    return switch_tag_of(w, 4);
}

/* Marvell: an ethertype of its own and two octets of zero in front of the same tag. */
static enum layer switch_tag_long(struct walk *w)
{
    return switch_tag_of(w, 8);
}

static enum layer switch_tag_in_front(struct walk *w)
{
    struct reader r = w->rest;
    reader_u32(&r);
    return link_passed(w, r, LAYER_ETHERNET);
}

/* ---- others ---- */

/* ISO 9314-2: frame control, addresses; then LLC. */
static enum layer fddi(struct walk *w)
{
    struct reader r = w->rest;
    reader_take(&r, 13);
    return link_passed(w, r, LAYER_LLC);
}

/* IP over InfiniBand: global routing header, ethertype, reserved. */
static enum layer ipoib(struct walk *w)
{
    struct reader r = w->rest;
    reader_take(&r, 40);
    uint16_t type = reader_u16(&r);
    reader_u16(&r);
    return link_passed_to(w, r, type);
}

/* Endace: a record header, extension headers, and for Ethernet types two octets of padding. */
static enum layer endace_record(struct walk *w)
{
    enum { MORE_HEADERS = 0x80 };
    struct reader r = w->rest;
    reader_take(&r, 8); /* timestamp */
    uint8_t type = reader_u8(&r);
    reader_take(&r, 7); /* flags, lengths, loss counter */
    bool more = (type & MORE_HEADERS) != 0;
    while (more && !r.short_read) {
        more = (reader_u8(&r) & MORE_HEADERS) != 0;
        reader_take(&r, 7);
    }
    switch (type & ~MORE_HEADERS) {
    case 2: /* ETH, COLOR_ETH, DSM_COLOR_ETH, COLOR_HASH_ETH */
    case 11:
    case 16:
    case 20:
        reader_u16(&r);
        return link_passed(w, r, LAYER_ETHERNET);
    case 22: /* IPV4 and IPV6 */
    case 23:
        return link_passed(w, r, LAYER_IP);
    default:
        return stop(w, r.short_read ? DROP_LINK_TOO_SHORT : DROP_NOT_IP);
    }
}

/* Juniper: magic, flags, extensions; then Ethernet unless it was left out. */
static enum layer juniper_ethernet(struct walk *w)
{
    enum { MAGIC = 0x4d4743, NO_LAYER_2 = 0x02, HAS_EXTENSIONS = 0x80 };
    struct reader r = w->rest;
    uint64_t magic = reader_be(&r, 3);
    uint8_t flags = reader_u8(&r);
    if ((flags & HAS_EXTENSIONS) != 0)
        (void)reader_vector(&r, 2);
    if (!r.short_read && magic != MAGIC)
        return stop(w, DROP_NOT_IP);
    if ((flags & NO_LAYER_2) == 0)
        return link_passed(w, r, LAYER_ETHERNET);
    reader_u32(&r); /* protocol */
    return link_passed(w, r, LAYER_IP);
}

enum layer link_pass(struct walk *w, enum layer layer)
{
    static enum layer (*const PASS[])(struct walk *) = {
        [LAYER_LINUX_SLL] = linux_sll,
        [LAYER_LINUX_SLL2] = linux_sll2,
        [LAYER_NULL] = null_or_loop,
        [LAYER_PPP] = ppp,
        [LAYER_PPP_SERIAL] = ppp_serial,
        [LAYER_PPP_WITH_DIRECTION] = ppp_with_direction,
        [LAYER_SLIP] = slip,
        [LAYER_ARCNET] = arcnet,
        [LAYER_CISCO_HDLC] = cisco_hdlc,
        [LAYER_FRAME_RELAY] = frame_relay,
        [LAYER_IEEE802_11] = ieee802_11,
        [LAYER_IEEE802_11_SWAPPED] = ieee802_11_swapped,
        [LAYER_RADIOTAP] = radiotap,
        [LAYER_PRISM] = prism,
        [LAYER_AVS] = avs,
        [LAYER_PPI] = ppi,
        [LAYER_PKTAP] = pktap,
        [LAYER_NFLOG] = nflog,
        [LAYER_IPNET] = ipnet,
        [LAYER_IPOIB] = ipoib,
        [LAYER_FDDI] = fddi,
        [LAYER_ERF] = endace_record,
        [LAYER_JUNIPER_ETHERNET] = juniper_ethernet,
        [LAYER_SWITCH_TAG] = switch_tag,
        [LAYER_SWITCH_TAG_LONG] = switch_tag_long,
        [LAYER_SWITCH_TAG_IN_FRONT] = switch_tag_in_front,
    };
    assert(layer < sizeof PASS / sizeof PASS[0] && PASS[layer] != NULL);
    return PASS[layer](w);
}
