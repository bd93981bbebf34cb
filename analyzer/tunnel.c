/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Headers that may stand around an IP packet, or around a whole Ethernet frame, wherever on the way
 * they were put there: tags, labels, sessions, tunnels.
 */
#include "layer.h"
#include "packet.h"

enum gre_protocol { /* ethertypes that tunnels carry and Ethernet does not */
                    TRANSPARENT_ETHERNET = 0x6558,
                    GRE_PPP = 0x880b, /* RFC 2637 */
                    GRE_ERSPAN_2 = 0x88be,
                    GRE_ERSPAN_3 = 0x22eb,
};

enum udp_port { /* IANA; 8472 is what Linux took before VXLAN had a number */
                PORT_L2TP = 1701,
                PORT_GTP_U = 2152,
                PORT_TEREDO = 3544,
                PORT_GRE = 4754, /* RFC 8086 */
                PORT_VXLAN = 4789,
                PORT_VXLAN_GPE = 4790,
                PORT_CAPWAP_DATA = 5247,
                PORT_GENEVE = 6081,
                PORT_MPLS = 6635, /* RFC 7510 */
                PORT_VXLAN_LINUX = 8472,
};

enum layer tunnel_of_udp_port(uint16_t port)
{
    switch (port) {
    case PORT_VXLAN:
    case PORT_VXLAN_LINUX:
        return LAYER_VXLAN;
    case PORT_VXLAN_GPE:
        return LAYER_VXLAN_GPE;
    case PORT_GENEVE:
        return LAYER_GENEVE;
    case PORT_GRE:
        return LAYER_GRE;
    case PORT_MPLS:
        return LAYER_MPLS;
    case PORT_GTP_U:
        return LAYER_GTP_U;
    case PORT_TEREDO:
        return LAYER_TEREDO;
    case PORT_L2TP:
        return LAYER_L2TP;
    case PORT_CAPWAP_DATA:
        return LAYER_CAPWAP;
    default:
        return LAYER_STOP;
    }
}

/* ---- between link and IP ---- */

/* IEEE 802.1Q 9.6. Identifier 0 means that there is a priority, but no VLAN. */
static enum layer vlan(struct walk *w)
{
    struct reader r = w->rest;
    uint16_t tag = reader_u16(&r);
    uint16_t type = reader_u16(&r);
    if (r.short_read)
        return stop(w, DROP_LINK_TOO_SHORT);
    w->rest = r;
    return enclosed(w, TUNNEL_VLAN, tag & 0xfffu, layer_of_ethertype(w, type));
}

/* Cisco VN-Tag (IEEE 802.1BR): virtual interfaces, which differ per direction. */
static enum layer vntag(struct walk *w)
{
    struct reader r = w->rest;
    reader_u32(&r);
    uint16_t type = reader_u16(&r);
    if (r.short_read)
        return stop(w, DROP_LINK_TOO_SHORT);
    w->rest = r;
    return enclosed(w, TUNNEL_VLAN, 0, layer_of_ethertype(w, type));
}

/* IEEE 802.1Q 9.7 (802.1ah): service tag, then the customer's Ethernet frame. */
static enum layer provider_backbone(struct walk *w)
{
    struct reader r = w->rest;
    uint32_t service = reader_u32(&r) & 0xffffff;
    enum layer next = passed(w, r, DROP_LINK_TOO_SHORT, LAYER_ETHERNET);
    return enclosed(w, TUNNEL_VLAN, service, next);
}

/* A control word (RFC 4385 3) stands before a pseudowire's frame or not; neither says so, but only
 * one of the two puts a known ethertype in its place. */
static void pass_control_word(struct walk *w)
{
    struct reader r = w->rest;
    reader_take(&r, 12);
    uint16_t type = reader_u16(&r);
    enum layer as_it_is = layer_of_ethertype(w, type);
    if (as_it_is == LAYER_STOP || as_it_is == LAYER_LLC)
        reader_u32(&w->rest);
}

/* RFC 3032 2.1: one label. The payload has no type: IP by its version, else a pseudowire. */
static enum layer mpls(struct walk *w)
{
    enum { BOTTOM_OF_STACK = 0x100 };
    struct reader r = w->rest;
    uint32_t entry = reader_u32(&r);
    if (r.short_read)
        return stop(w, DROP_LINK_TOO_SHORT);
    w->rest = r;
    enum layer next = LAYER_MPLS;
    if ((entry & BOTTOM_OF_STACK) != 0)
        next = layer_of_ip_version(w, LAYER_ETHERNET);
    if (next == LAYER_ETHERNET)
        pass_control_word(w);
    return enclosed(w, TUNNEL_MPLS, entry >> 12, next);
}

/* RFC 2516 4, session stage. */
static enum layer pppoe(struct walk *w)
{
    enum { VERSION_1_TYPE_1_SESSION = 0x1100 };
    struct reader r = w->rest;
    uint16_t version_and_code = reader_u16(&r);
    uint16_t session = reader_u16(&r);
    reader_u16(&r); /* length */
    if (!r.short_read && version_and_code != VERSION_1_TYPE_1_SESSION)
        return stop(w, DROP_NOT_IP);
    return enclosed(w, TUNNEL_PPPOE, session, passed(w, r, DROP_LINK_TOO_SHORT, LAYER_PPP));
}

/* RFC 8300 2.2 to 2.5: of what is between, the length of the whole header is all we need. */
static enum layer nsh(struct walk *w)
{
    enum { NEXT_IPV4 = 1, NEXT_IPV6 = 2, NEXT_ETHERNET = 3, NEXT_NSH = 4, NEXT_MPLS = 5 };
    enum { FIXED_LEN = 8 };
    struct reader r = w->rest;
    size_t len = (size_t)(reader_u16(&r) & 0x3fu) * 4;
    reader_u8(&r); /* metadata type */
    uint8_t next_protocol = reader_u8(&r);
    uint32_t path = reader_u32(&r);
    if (r.short_read)
        return stop(w, DROP_LINK_TOO_SHORT);
    reader_take(&r, len < FIXED_LEN ? r.rest.len + 1 : len - FIXED_LEN);
    if (r.short_read)
        return stop(w, DROP_LINK_TOO_SHORT);
    w->rest = r;
    switch (next_protocol) {
    case NEXT_IPV4:
    case NEXT_IPV6:
        return enclosed(w, TUNNEL_NSH, path, LAYER_IP);
    case NEXT_ETHERNET:
        return enclosed(w, TUNNEL_NSH, path, LAYER_ETHERNET);
    case NEXT_NSH:
        return enclosed(w, TUNNEL_NSH, path, LAYER_NSH);
    case NEXT_MPLS:
        return enclosed(w, TUNNEL_NSH, path, LAYER_MPLS);
    default:
        return stop(w, DROP_NOT_IP);
    }
}

/* ---- over IP ---- */

/* The protocol field of GRE and Geneve: an ethertype, or a whole Ethernet frame. */
static enum layer layer_of_tunnel_protocol(struct walk *w, uint16_t protocol)
{
    return protocol == TRANSPARENT_ETHERNET ? LAYER_ETHERNET : layer_of_ethertype(w, protocol);
}

/* A mirrored frame; draft-foschiano-erspan-03. Type I has no header of its own. */
static enum layer erspan_2(struct walk *w, bool has_sequence)
{
    struct reader r = w->rest;
    uint32_t session = 0;
    if (has_sequence) {
        session = reader_u32(&r) & 0x3ff;
        reader_u32(&r);
    }
    enum layer next = passed(w, r, DROP_IP_TOO_SHORT, LAYER_ETHERNET);
    return enclosed(w, TUNNEL_ERSPAN, session, next);
}

static enum layer erspan_3(struct walk *w)
{
    enum { FRAME_TYPE_IP = 2, HAS_PLATFORM_HEADER = 1 };
    struct reader r = w->rest;
    uint32_t session = reader_u32(&r) & 0x3ff;
    reader_be(&r, 6); /* timestamp, security group */
    uint16_t flags = reader_u16(&r);
    if ((flags & HAS_PLATFORM_HEADER) != 0)
        reader_be(&r, 8);
    bool is_ip = (flags >> 10 & 0x1f) == FRAME_TYPE_IP;
    enum layer next = passed(w, r, DROP_IP_TOO_SHORT, is_ip ? LAYER_IP : LAYER_ETHERNET);
    return enclosed(w, TUNNEL_ERSPAN, session, next);
}

/* RFC 2784 2, RFC 2890 2; version 1 is PPTP's (RFC 2637 4.1). */
static enum layer gre(struct walk *w)
{
    enum {
        CHECKSUM = 0x8000,
        ROUTING = 0x4000,
        KEY = 0x2000,
        SEQUENCE = 0x1000,
        ACKNOWLEDGMENT = 0x0080,
        VERSION = 0x0007,
    };
    struct reader r = w->rest;
    uint16_t flags = reader_u16(&r);
    uint16_t protocol = reader_u16(&r);
    bool is_pptp = (flags & VERSION) == 1 && protocol == GRE_PPP;
    uint32_t key = 0;
    if ((flags & (CHECKSUM | ROUTING)) != 0)
        reader_u32(&r); /* checksum, reserved */
    if ((flags & KEY) != 0)
        key = reader_u32(&r);
    if ((flags & SEQUENCE) != 0)
        reader_u32(&r);
    if (is_pptp && (flags & ACKNOWLEDGMENT) != 0)
        reader_u32(&r);
    if (r.short_read)
        return stop(w, DROP_IP_TOO_SHORT);
    if ((flags & ROUTING) != 0 || ((flags & VERSION) != 0 && !is_pptp))
        return stop(w, DROP_NOT_TCP);
    w->rest = r;

    if (protocol == GRE_ERSPAN_2)
        return erspan_2(w, (flags & SEQUENCE) != 0);
    if (protocol == GRE_ERSPAN_3)
        return erspan_3(w);
    if (is_pptp) /* its key is a length and a call id per direction */
        return enclosed(w, TUNNEL_GRE, 0, LAYER_PPP);
    return enclosed(w, TUNNEL_GRE, key, layer_of_tunnel_protocol(w, protocol));
}

/* RFC 3378 3 */
static enum layer etherip(struct walk *w)
{
    struct reader r = w->rest;
    reader_u16(&r); /* version */
    return enclosed(w, TUNNEL_IP_IN_IP, 0, passed(w, r, DROP_IP_TOO_SHORT, LAYER_ETHERNET));
}

/* ---- over UDP: what does not look like the tunnel is other UDP on that port ---- */

/* RFC 7348 5 */
static enum layer vxlan(struct walk *w)
{
    enum { HAS_VNI = 0x08 };
    struct reader r = w->rest;
    uint8_t flags = reader_u8(&r);
    reader_be(&r, 3); /* reserved, or a group policy */
    uint32_t vni = reader_u32(&r) >> 8;
    if (r.short_read || (flags & HAS_VNI) == 0)
        return stop(w, DROP_UDP_NOT_QUIC);
    w->rest = r;
    return enclosed(w, TUNNEL_VXLAN, vni, LAYER_ETHERNET);
}

/* draft-ietf-nvo3-vxlan-gpe-13 3 */
static enum layer vxlan_gpe(struct walk *w)
{
    enum {
        HAS_PROTOCOL = 0x04,
        GPE_IPV4 = 1,
        GPE_IPV6 = 2,
        GPE_ETHERNET = 3,
        GPE_NSH = 4,
        GPE_MPLS = 5
    };
    struct reader r = w->rest;
    uint8_t flags = reader_u8(&r);
    reader_u16(&r); /* reserved */
    uint8_t protocol = reader_u8(&r);
    uint32_t vni = reader_u32(&r) >> 8;
    if (r.short_read)
        return stop(w, DROP_UDP_NOT_QUIC);
    w->rest = r;
    if ((flags & HAS_PROTOCOL) == 0 || protocol == GPE_ETHERNET)
        return enclosed(w, TUNNEL_VXLAN, vni, LAYER_ETHERNET);
    if (protocol == GPE_IPV4 || protocol == GPE_IPV6)
        return enclosed(w, TUNNEL_VXLAN, vni, LAYER_IP);
    if (protocol == GPE_MPLS)
        return enclosed(w, TUNNEL_VXLAN, vni, LAYER_MPLS);
    if (protocol == GPE_NSH)
        return enclosed(w, TUNNEL_VXLAN, vni, LAYER_NSH);
    return stop(w, DROP_UDP_NOT_QUIC);
}

/* RFC 8926 3.4 */
static enum layer geneve(struct walk *w)
{
    struct reader r = w->rest;
    uint8_t version_and_options = reader_u8(&r);
    reader_u8(&r); /* flags */
    uint16_t protocol = reader_u16(&r);
    uint32_t vni = reader_u32(&r) >> 8;
    reader_take(&r, (size_t)(version_and_options & 0x3fu) * 4);
    if (r.short_read || version_and_options >> 6 != 0)
        return stop(w, DROP_UDP_NOT_QUIC);
    w->rest = r;
    return enclosed(w, TUNNEL_GENEVE, vni, layer_of_tunnel_protocol(w, protocol));
}

/* 3GPP TS 29.281 5.1, 5.2; its tunnel ids differ per direction. */
static enum layer gtp_u(struct walk *w)
{
    enum { VERSION_1 = 0x30, HAS_OPTIONAL = 0x07, HAS_EXTENSIONS = 0x04, USER_PACKET = 255 };
    struct reader r = w->rest;
    uint8_t flags = reader_u8(&r);
    uint8_t message = reader_u8(&r);
    reader_u16(&r); /* length */
    reader_u32(&r); /* tunnel endpoint id */
    if (r.short_read || (flags & 0xf0) != VERSION_1 || message != USER_PACKET)
        return stop(w, DROP_UDP_NOT_QUIC);
    uint8_t extension = 0;
    if ((flags & HAS_OPTIONAL) != 0) {
        reader_be(&r, 3); /* sequence number, N-PDU number */
        extension = reader_u8(&r);
    }
    while ((flags & HAS_EXTENSIONS) != 0 && extension != 0 && !r.short_read) {
        size_t len = (size_t)reader_u8(&r) * 4;
        reader_take(&r, len >= 2 ? len - 2 : r.rest.len + 1); /* a length of 0 would not end */
        extension = reader_u8(&r);
    }
    if (r.short_read)
        return stop(w, DROP_IP_TOO_SHORT);
    w->rest = r;
    return enclosed(w, TUNNEL_GTP_U, 0, layer_of_ip_version(w, LAYER_ETHERNET));
}

/* RFC 4380 5.1.1: authentication and origin indication may stand before the IPv6 packet. */
static enum layer teredo(struct walk *w)
{
    enum { ORIGIN = 0x0000, AUTHENTICATION = 0x0001 };
    struct reader r = w->rest;
    struct reader indicated = r;
    uint16_t indicator = reader_u16(&indicated);
    if (indicator == AUTHENTICATION) {
        size_t id_len = reader_u8(&indicated);
        size_t value_len = reader_u8(&indicated);
        reader_take(&indicated, id_len + value_len + 9); /* nonce, confirmation */
        r = indicated;
        indicator = reader_u16(&indicated);
    }
    if (indicator == ORIGIN) {
        reader_take(&indicated, 6);
        r = indicated;
    }
    struct reader version = r;
    if (reader_u8(&version) >> 4 != 6)
        return stop(w, DROP_UDP_NOT_QUIC);
    return enclosed(w, TUNNEL_TEREDO, 0, passed(w, r, DROP_UDP_NOT_QUIC, LAYER_IPV6));
}

/* RFC 2661 3.1, data messages; its session ids differ per direction. */
static enum layer l2tp(struct walk *w)
{
    enum {
        CONTROL = 0x8000,
        HAS_LENGTH = 0x4000,
        HAS_SEQUENCE = 0x0800,
        HAS_OFFSET = 0x0200,
        VERSION = 0x000f,
    };
    struct reader r = w->rest;
    uint16_t flags = reader_u16(&r);
    if ((flags & HAS_LENGTH) != 0)
        reader_u16(&r);
    reader_u32(&r); /* tunnel and session */
    if ((flags & HAS_SEQUENCE) != 0)
        reader_u32(&r);
    if ((flags & HAS_OFFSET) != 0)
        (void)reader_vector(&r, 2);
    if (r.short_read || (flags & CONTROL) != 0 || (flags & VERSION) != 2)
        return stop(w, DROP_UDP_NOT_QUIC);
    w->rest = r;
    return enclosed(w, TUNNEL_L2TP, 0, LAYER_PPP);
}

/* RFC 5415 4.3; its fragments are not put together. */
static enum layer capwap(struct walk *w)
{
    enum { HLEN_SHIFT = 19, BINDING_SHIFT = 9, BINDING_IEEE802_11 = 1 };
    enum { NATIVE = 0x100, FRAGMENT = 0x80, KEEP_ALIVE = 0x08, FIXED_LEN = 8 };
    struct reader r = w->rest;
    uint32_t head = reader_u32(&r);
    reader_u32(&r); /* fragment id and offset */
    size_t len = (size_t)(head >> HLEN_SHIFT & 0x1f) * 4;
    bool has_frame = head >> 24 == 0 && len >= FIXED_LEN && (head & (FRAGMENT | KEEP_ALIVE)) == 0;
    if (r.short_read || !has_frame)
        return stop(w, DROP_UDP_NOT_QUIC);
    reader_take(&r, len - FIXED_LEN);
    bool is_ethernet = (head & NATIVE) == 0;
    if (r.short_read || (!is_ethernet && (head >> BINDING_SHIFT & 0x1f) != BINDING_IEEE802_11))
        return stop(w, DROP_UDP_NOT_QUIC);
    w->rest = r;
    return enclosed(w, TUNNEL_CAPWAP, 0, is_ethernet ? LAYER_ETHERNET : LAYER_IEEE802_11_SWAPPED);
}

enum layer tunnel_pass(struct walk *w, enum layer layer)
{
    static enum layer (*const PASS[])(struct walk *) = {
        [LAYER_VLAN] = vlan,
        [LAYER_VNTAG] = vntag,
        [LAYER_PROVIDER_BACKBONE] = provider_backbone,
        [LAYER_MPLS] = mpls,
        [LAYER_PPPOE] = pppoe,
        [LAYER_GRE] = gre,
        [LAYER_ETHERIP] = etherip,
        [LAYER_VXLAN] = vxlan,
        [LAYER_VXLAN_GPE] = vxlan_gpe,
        [LAYER_GENEVE] = geneve,
        [LAYER_GTP_U] = gtp_u,
        [LAYER_TEREDO] = teredo,
        [LAYER_L2TP] = l2tp,
        [LAYER_CAPWAP] = capwap,
        [LAYER_NSH] = nsh,
    };
    assert(layer < sizeof PASS / sizeof PASS[0] && PASS[layer] != NULL);
    return PASS[layer](w);
}
