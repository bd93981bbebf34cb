/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * A frame is a row of headers. A walk stands in front of the next one; the function for its kind
 * takes it off and returns the kind that follows, until TCP is reached or the walk stops with a
 * reason. The usual ones are here: Ethernet, IP, TCP. Other link types are in link.c, what may
 * stand around an IP packet (VLAN tags, tunnels) is in tunnel.c.
 *
 * Two lengths go along: the captured bytes that are left, and how many more were on the wire
 * behind them (a snaplen cut them off). Each IP header narrows both to its own packet, which cuts
 * off Ethernet padding and trailers and gives the length of a TCP payload nobody captured.
 */
#include "packet.h"

#include "layer.h"

enum ethertype { /* IEEE 802 numbers */
                 ETHERTYPE_IPV4 = 0x0800,
                 ETHERTYPE_VLAN = 0x8100,
                 ETHERTYPE_IPV6 = 0x86dd,
                 ETHERTYPE_MPLS = 0x8847,
                 ETHERTYPE_MPLS_UPSTREAM = 0x8848,
                 ETHERTYPE_PPPOE_SESSION = 0x8864,
                 ETHERTYPE_JUMBO_LLC = 0x8870,
                 ETHERTYPE_PROVIDER_VLAN = 0x88a8,
                 ETHERTYPE_PROVIDER_BACKBONE = 0x88e7,
                 ETHERTYPE_VNTAG = 0x8926,
                 ETHERTYPE_NSH = 0x894f,
                 ETHERTYPE_QINQ = 0x9100, /* and 0x9200, before IEEE 802.1ad */
                 ETHERTYPE_QINQ_OTHER = 0x9200,
                 IEEE_802_3_LENGTH_MAX = 1500,
};

enum ip_protocol { /* IANA protocol numbers */
                   PROTOCOL_HOP_BY_HOP = 0,
                   PROTOCOL_IPV4 = 4,
                   PROTOCOL_TCP = 6,
                   PROTOCOL_UDP = 17,
                   PROTOCOL_IPV6 = 41,
                   PROTOCOL_ROUTING = 43,
                   PROTOCOL_FRAGMENT = 44,
                   PROTOCOL_GRE = 47,
                   PROTOCOL_AUTHENTICATION = 51,
                   PROTOCOL_DESTINATION_OPTIONS = 60,
                   PROTOCOL_ETHERIP = 97,
                   PROTOCOL_MOBILITY = 135,
                   PROTOCOL_MPLS = 137,
                   PROTOCOL_HOST_IDENTITY = 139,
                   PROTOCOL_SHIM6 = 140,
};

enum tcp_option { /* IANA option kinds */
                  OPTION_END = 0,
                  OPTION_NO_OPERATION = 1,
                  OPTION_MSS = 2,
                  OPTION_TIMESTAMPS = 8,
                  OPTION_FAST_OPEN = 34,
                  OPTION_EXPERIMENT = 254,
};

enum {
    FAST_OPEN_EXPERIMENT = 0xf989, /* RFC 6994 identifier of the draft's Fast Open */
    IPV4_HEADER_LEN = 20,
    IPV6_HEADER_LEN = 40,
    TCP_HEADER_LEN = 20,
    UDP_HEADER_LEN = 8,
    IPV6_EXTENSIONS_MAX = 8,         /* a chain has six kinds, each once but one (RFC 8200 4.1) */
    OFFLOADED_LEN_MAX = 1024 * 1024, /* cards take up to 512 KiB in one piece */
    QUIC_VERSION_2 = 0x6b3343cf,     /* RFC 9369 */
};

/* ---- Ethernet and what it shares with other links ---- */

enum layer layer_of_ethertype(struct walk *w, uint16_t type)
{
    switch (type) {
    case ETHERTYPE_IPV4:
        return LAYER_IPV4;
    case ETHERTYPE_IPV6:
        return LAYER_IPV6;
    case ETHERTYPE_VLAN:
    case ETHERTYPE_PROVIDER_VLAN:
    case ETHERTYPE_QINQ:
    case ETHERTYPE_QINQ_OTHER:
        return LAYER_VLAN;
    case ETHERTYPE_MPLS:
    case ETHERTYPE_MPLS_UPSTREAM:
        return LAYER_MPLS;
    case ETHERTYPE_PPPOE_SESSION:
        return LAYER_PPPOE;
    case ETHERTYPE_PROVIDER_BACKBONE:
        return LAYER_PROVIDER_BACKBONE;
    case ETHERTYPE_VNTAG:
        return LAYER_VNTAG;
    case ETHERTYPE_NSH:
        return LAYER_NSH;
    case ETHERTYPE_JUMBO_LLC:
        return LAYER_LLC;
    default:
        return type <= IEEE_802_3_LENGTH_MAX ? LAYER_LLC : stop(w, DROP_NOT_IP);
    }
}

static enum layer ethernet(struct walk *w)
{
    struct reader r = w->rest;
    reader_take(&r, 12); /* destination and source */
    uint16_t type = reader_u16(&r);
    if (r.short_read)
        return stop(w, DROP_LINK_TOO_SHORT);
    w->rest = r;
    return layer_of_ethertype(w, type);
}

/* IEEE 802.2 with SNAP (RFC 1042); other service access points carry no IP today. */
static enum layer llc(struct walk *w)
{
    enum { SNAP = 0xaaaa03 };
    struct reader r = w->rest;
    uint64_t service = reader_be(&r, 3);
    uint64_t organization = reader_be(&r, 3);
    uint16_t type = reader_u16(&r);
    if (r.short_read)
        return stop(w, DROP_LINK_TOO_SHORT);
    if (service != SNAP || organization != 0)
        return stop(w, DROP_NOT_IP);
    w->rest = r;
    return layer_of_ethertype(w, type);
}

/* ---- IP ---- */

enum layer layer_of_ip_version(const struct walk *w, enum layer otherwise)
{
    struct reader r = w->rest;
    uint8_t version = reader_u8(&r) >> 4;
    if (version == 4)
        return LAYER_IPV4;
    return version == 6 ? LAYER_IPV6 : otherwise;
}

/* Narrows the walk to one packet of that length on the wire, which starts at `packet`. */
static void narrow(struct walk *w, struct bytes packet, size_t len)
{
    w->ip = bytes_first(packet, len);
    w->cut_len = len - w->ip.len;
}

/* Segmentation offload leaves a length of 0, which the card would have filled in: the frame's. */
static size_t len_or_offloaded(const struct walk *w, size_t len)
{
    size_t left = wire_left(w);
    return len == 0 && left <= OFFLOADED_LEN_MAX ? left : len;
}

static uint16_t internet_checksum(struct bytes b)
{
    struct reader r = reader_of(b);
    uint32_t sum = 0;
    while (r.rest.len > 0)
        sum += reader_u16(&r);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static enum layer layer_of_ip_protocol(struct walk *w, uint8_t protocol)
{
    switch (protocol) {
    case PROTOCOL_TCP:
        return LAYER_TCP;
    case PROTOCOL_UDP:
        return LAYER_UDP;
    case PROTOCOL_IPV4:
        return enclosed(w, TUNNEL_IP_IN_IP, 0, LAYER_IPV4);
    case PROTOCOL_IPV6:
        return enclosed(w, TUNNEL_IP_IN_IP, 0, LAYER_IPV6);
    case PROTOCOL_GRE:
        return LAYER_GRE;
    case PROTOCOL_AUTHENTICATION:
        return LAYER_AUTHENTICATION;
    case PROTOCOL_ETHERIP:
        return LAYER_ETHERIP;
    case PROTOCOL_MPLS:
        return LAYER_MPLS;
    default:
        return stop(w, DROP_NOT_TCP);
    }
}

/*
 * Stops at a fragment. `flags` has its offset, in units of eight octets from bit 3 on as in IPv6,
 * and bit 0 when more follow; the walk stands in front of its payload.
 */
static enum layer stop_at_fragment(struct walk *w, uint8_t version, uint8_t protocol, uint32_t id,
                                   uint32_t flags)
{
    if (w->fragment != NULL)
        *w->fragment = (struct fragment){
            .from = w->from,
            .to = w->to,
            .id = id,
            .offset = flags & 0xfff8,
            .len = (uint32_t)wire_left(w),
            .data = w->rest.rest,
            .more = (flags & 1) != 0,
            .version = version,
            .protocol = protocol,
            .ttl = w->ttl,
            .tunnel = w->tunnel,
            .encapsulation = w->encapsulation,
            .encapsulations = w->encapsulations,
        };
    return stop(w, DROP_FRAGMENT);
}

/*
 * RFC 791 3.1. A length beyond the frame is right where a packet broker sliced the packet and gave
 * the slice's length for the frame's: then the checksum holds. Otherwise it is damaged, and what
 * the frame has is taken; but inside of another IP packet, whose length is known, it is a lie.
 */
static enum layer ipv4(struct walk *w)
{
    struct reader r = w->rest;
    struct bytes start = r.rest;
    uint8_t version_and_len = reader_u8(&r);
    reader_u8(&r); /* type of service */
    size_t total_len = len_or_offloaded(w, reader_u16(&r));
    uint16_t id = reader_u16(&r);
    uint16_t fragment = reader_u16(&r);
    uint8_t ttl = reader_u8(&r);
    uint8_t protocol = reader_u8(&r);
    reader_u16(&r); /* checksum */
    struct bytes from = reader_take(&r, 4);
    struct bytes to = reader_take(&r, 4);
    if (r.short_read)
        return stop(w, DROP_IP_TOO_SHORT);
    size_t header_len = (size_t)(version_and_len & 0xfu) * 4;
    if (version_and_len >> 4 != 4 || header_len < IPV4_HEADER_LEN)
        return stop(w, DROP_IP_HEADER_INVALID);
    reader_take(&r, header_len - IPV4_HEADER_LEN); /* options */
    if (r.short_read)
        return stop(w, DROP_IP_TOO_SHORT);

    if (total_len < header_len)
        return stop(w, DROP_IP_HEADER_INVALID);
    if (total_len > wire_left(w) && internet_checksum(bytes_first(start, header_len)) != 0) {
        if (w->ip.len > 0)
            return stop(w, DROP_IP_LENGTH_BEYOND_FRAME);
        total_len = wire_left(w);
    }
    narrow(w, start, total_len);
    w->rest = reader_of(bytes_after(w->ip, header_len));
    w->from = address_of_ipv4(from.at);
    w->to = address_of_ipv4(to.at);
    w->ttl = ttl;
    w->ip_id = id;
    if ((fragment & 0x3fff) != 0) /* more fragments, or an offset */
        return stop_at_fragment(w, 4, protocol, id,
                                (fragment & 0x1fffu) << 3 | (fragment >> 13 & 1u));
    return layer_of_ip_protocol(w, protocol);
}

static bool is_ipv6_extension(uint8_t protocol)
{
    switch (protocol) {
    case PROTOCOL_HOP_BY_HOP:
    case PROTOCOL_ROUTING:
    case PROTOCOL_FRAGMENT:
    case PROTOCOL_DESTINATION_OPTIONS:
    case PROTOCOL_MOBILITY:
    case PROTOCOL_HOST_IDENTITY:
    case PROTOCOL_SHIM6:
        return true;
    default:
        return false;
    }
}

/* One extension header; *protocol becomes what follows it. RFC 8200 4.2 to 4.6. */
static enum drop ipv6_extension(struct walk *w, uint8_t *protocol)
{
    struct reader r = w->rest;
    bool is_fragment = *protocol == PROTOCOL_FRAGMENT;
    uint16_t fragment = 0;
    uint32_t id = 0;
    uint8_t next = reader_u8(&r);
    size_t len = 8 + 8 * (size_t)reader_u8(&r);
    if (is_fragment) { /* here the length field is reserved */
        fragment = reader_u16(&r);
        id = reader_u32(&r);
    } else {
        reader_take(&r, len - 2);
    }
    if (r.short_read)
        return DROP_IP_TOO_SHORT;
    w->rest = r;
    *protocol = next;
    if ((fragment & 0xfff9) != 0) {
        (void)stop_at_fragment(w, 6, next, id, fragment);
        return DROP_FRAGMENT;
    }
    return DROP_NONE;
}

/* RFC 8200 3 */
static enum layer ipv6(struct walk *w)
{
    struct reader r = w->rest;
    struct bytes start = r.rest;
    uint8_t version = reader_u8(&r);
    reader_be(&r, 3); /* traffic class and flow label */
    size_t payload_len = reader_u16(&r);
    uint8_t protocol = reader_u8(&r);
    uint8_t ttl = reader_u8(&r);
    struct bytes from = reader_take(&r, sizeof w->from.octet);
    struct bytes to = reader_take(&r, sizeof w->to.octet);
    if (r.short_read)
        return stop(w, DROP_IP_TOO_SHORT);
    if (version >> 4 != 6)
        return stop(w, DROP_IP_HEADER_INVALID);

    /* 0 is a jumbogram as well (RFC 2675), whose option says what the frame says. A length beyond
     * the frame is a sliced packet: there is no checksum that could deny it. */
    size_t len = len_or_offloaded(w, payload_len != 0 ? IPV6_HEADER_LEN + payload_len : 0);
    if (len < IPV6_HEADER_LEN)
        return stop(w, DROP_IP_HEADER_INVALID);
    narrow(w, start, len);
    w->rest = reader_of(bytes_after(w->ip, IPV6_HEADER_LEN));
    memcpy(w->from.octet, from.at, sizeof w->from.octet);
    memcpy(w->to.octet, to.at, sizeof w->to.octet);
    w->ttl = ttl;
    w->ip_id = 0;
    for (unsigned n = 0; is_ipv6_extension(protocol); n++) {
        if (n == IPV6_EXTENSIONS_MAX)
            return stop(w, DROP_IP_EXTENSION_INVALID);
        enum drop reason = ipv6_extension(w, &protocol);
        if (reason != DROP_NONE)
            return stop(w, reason);
    }
    return layer_of_ip_protocol(w, protocol);
}

/* RFC 4302 2 */
static enum layer authentication(struct walk *w)
{
    struct reader r = w->rest;
    uint8_t protocol = reader_u8(&r);
    size_t len = ((size_t)reader_u8(&r) + 2) * 4;
    reader_take(&r, len - 2);
    if (r.short_read)
        return stop(w, DROP_IP_TOO_SHORT);
    w->rest = r;
    return layer_of_ip_protocol(w, protocol);
}

/* ---- transport ---- */

/* Whether a datagram is QUIC as far as its first bytes tell (RFC 9000 17.2, 17.3, 15). */
static bool is_quic(struct reader payload, uint16_t source_port, uint16_t destination_port)
{
    enum { LONG_HEADER = 0x80, FIXED_BIT = 0x40 };
    uint8_t first = reader_u8(&payload);
    uint32_t version = reader_u32(&payload);
    bool is_web = source_port == 443 || destination_port == 443 || source_port == 80 ||
                  destination_port == 80 || source_port == 8443 || destination_port == 8443;
    if (is_web)
        return (first & (LONG_HEADER | FIXED_BIT)) != 0;
    bool is_draft = version >> 8 == 0xff0000;
    return (first & LONG_HEADER) != 0 && (first & FIXED_BIT) != 0 &&
           (version == 1 || version == QUIC_VERSION_2 || is_draft);
}

/* RFC 768 */
static enum layer udp(struct walk *w)
{
    struct reader r = w->rest;
    uint16_t source_port = reader_u16(&r);
    uint16_t destination_port = reader_u16(&r);
    size_t len = reader_u16(&r);
    reader_u16(&r); /* checksum */
    if (r.short_read)
        return stop(w, DROP_UDP_NOT_QUIC);
    if (len >= UDP_HEADER_LEN && len < wire_left(w)) { /* else offload, or a lie */
        struct bytes payload = bytes_first(r.rest, len - UDP_HEADER_LEN);
        w->cut_len = len - UDP_HEADER_LEN - payload.len;
        r.rest = payload;
    }
    w->rest = r;
    enum layer tunnel = tunnel_of_udp_port(destination_port);
    if (tunnel == LAYER_STOP)
        tunnel = tunnel_of_udp_port(source_port);
    if (tunnel != LAYER_STOP)
        return tunnel;
    bool quic = is_quic(r, source_port, destination_port);
    return stop(w, quic ? DROP_QUIC_NOT_READ : DROP_UDP_NOT_QUIC);
}

/* RFC 9293 3.1, RFC 7323 3.2, RFC 7413 4.1.1; a list that is broken or cut ends there. */
static void tcp_options(struct reader r, struct segment *s)
{
    while (r.rest.len > 0) {
        uint8_t kind = reader_u8(&r);
        if (kind == OPTION_END)
            return;
        if (kind == OPTION_NO_OPERATION)
            continue;
        uint8_t len = reader_u8(&r);
        if (r.short_read || len < 2)
            return;
        struct reader value = reader_of(reader_take(&r, len - 2u));
        if (r.short_read)
            return;
        if (kind == OPTION_TIMESTAMPS && len == 10) {
            s->timestamp_value = reader_u32(&value);
            s->timestamp_echo = reader_u32(&value);
            s->has_timestamp = true;
        } else if (kind == OPTION_MSS && len == 4 && (s->flags & TCP_SYN) != 0) {
            s->mss = reader_u16(&value);
        } else if (kind == OPTION_FAST_OPEN ||
                   (kind == OPTION_EXPERIMENT && reader_u16(&value) == FAST_OPEN_EXPERIMENT)) {
            s->fast_open = true;
        }
    }
}

/* RFC 9293 3.1. The fixed part must be there; a snaplen may have cut the options. */
static enum drop tcp(const struct frame *frame, const struct walk *w, struct segment *ret_segment)
{
    struct reader r = w->rest;
    uint16_t source_port = reader_u16(&r);
    uint16_t destination_port = reader_u16(&r);
    uint32_t seq = reader_u32(&r);
    uint32_t ack = reader_u32(&r);
    uint8_t data_offset = reader_u8(&r);
    uint8_t flags = reader_u8(&r);
    uint16_t window = reader_u16(&r);
    reader_u32(&r); /* checksum and urgent pointer */
    if (r.short_read)
        return DROP_TCP_TOO_SHORT;
    size_t header_len = (size_t)(data_offset >> 4) * 4;
    if (header_len < TCP_HEADER_LEN || header_len > wire_left(w))
        return DROP_TCP_HEADER_INVALID;

    struct bytes options = bytes_first(r.rest, header_len - TCP_HEADER_LEN);
    *ret_segment = (struct segment){
        .at_ns = frame->at_ns,
        .packet_no = frame->number,
        .from = { w->from, source_port },
        .to = { w->to, destination_port },
        .seq = seq,
        .ack = ack,
        .payload_len = (uint32_t)(wire_left(w) - header_len),
        .payload = bytes_after(r.rest, options.len),
        .ip = w->ip,
        .flags = flags,
        .ttl = w->ttl,
        .window = window,
        .ip_id = w->ip_id,
        .tunnel = w->tunnel,
        .encapsulation = w->encapsulation,
    };
    tcp_options(reader_of(options), ret_segment);
    return DROP_NONE;
}

/* ---- the walk ---- */

enum layer enclosed(struct walk *w, unsigned kind, uint32_t id, enum layer next)
{
    if (next == LAYER_STOP)
        return next;
    w->tunnel |= (uint16_t)kind;
    if (id != 0) {
        uint32_t mixed = (w->encapsulation ^ id ^ kind << 20) * 0x9e3779b1u;
        mixed ^= mixed >> 15;
        w->encapsulation = mixed != 0 ? mixed : 1;
    }
    if (++w->encapsulations > ENCAPSULATIONS_MAX)
        return stop(w, DROP_TUNNEL_TOO_DEEP);
    return next;
}

/* LAYER_IP: version 4 or 6, as the packet itself says. */
static enum layer any_ip(struct walk *w)
{
    bool is_empty = w->rest.rest.len == 0;
    w->drop = is_empty ? DROP_IP_TOO_SHORT : DROP_IP_HEADER_INVALID;
    return layer_of_ip_version(w, LAYER_STOP);
}

static enum layer pass(struct walk *w, enum layer layer)
{
    if (layer == LAYER_ETHERNET)
        return ethernet(w);
    if (layer == LAYER_IPV4)
        return ipv4(w);
    if (layer == LAYER_IPV6)
        return ipv6(w);
    if (layer == LAYER_UDP)
        return udp(w);
    if (layer == LAYER_AUTHENTICATION)
        return authentication(w);
    if (layer == LAYER_IP)
        return any_ip(w);
    if (layer == LAYER_LLC)
        return llc(w);
    return layer < LAYER_VLAN ? link_pass(w, layer) : tunnel_pass(w, layer);
}

static struct walk walk_of(struct bytes captured, size_t wire_len)
{
    return (struct walk){
        .rest = reader_of(captured),
        .cut_len = wire_len > captured.len ? wire_len - captured.len : 0,
    };
}

/* Each header takes bytes off or counts as an encapsulation, so this ends. */
static enum drop decode(struct walk *w, enum layer layer, const struct frame *frame,
                        struct segment *ret_segment)
{
    while (layer != LAYER_STOP && layer != LAYER_TCP)
        layer = pass(w, layer);
    return layer == LAYER_TCP ? tcp(frame, w, ret_segment) : w->drop;
}

enum drop packet_decode(const struct frame *frame, struct segment *ret_segment)
{
    if (frame->at_ns < 0)
        return DROP_TIME_INVALID;
    enum layer layer = layer_of_link_type(frame->link_type);
    if (layer == LAYER_STOP)
        return DROP_LINK_TYPE_UNKNOWN;
    struct walk w = walk_of(frame->data, frame->wire_len);
    return decode(&w, layer, frame, ret_segment);
}

void packet_fragment(const struct frame *frame, struct fragment *ret_fragment)
{
    struct segment none;
    struct walk w = walk_of(frame->data, frame->wire_len);
    w.fragment = ret_fragment;
    (void)decode(&w, layer_of_link_type(frame->link_type), frame, &none);
    ret_fragment->at_ns = frame->at_ns;
}

enum drop packet_decode_whole(const struct frame *last_frame, const struct fragment *last,
                              struct bytes ip, uint32_t wire_len, struct segment *ret_segment)
{
    struct walk w = walk_of(ip, wire_len);
    w.tunnel = last->tunnel;
    w.encapsulation = last->encapsulation;
    w.encapsulations = last->encapsulations;
    return decode(&w, LAYER_IP, last_frame, ret_segment);
}

bool packet_link_type_known(int link_type)
{
    return layer_of_link_type(link_type) != LAYER_STOP;
}
