/* SPDX-License-Identifier: Apache-2.0 */
#include "packet.h"

#include "frame_builder.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define COUNT(array) (sizeof array / sizeof *array)

enum link { EN10MB = 1, RAW = 12 };

static const uint8_t OPTIONS[] = { 2, 4, 0x05, 0xb4, 1, 1, 8, 10, 0, 0, 0, 7, 0, 0, 0, 9 };
static const uint8_t PAYLOAD[] = "the payload of the segment";

static struct bytes options(void)
{
    return (struct bytes){ OPTIONS, sizeof OPTIONS };
}

static struct bytes payload(void)
{
    return (struct bytes){ PAYLOAD, sizeof PAYLOAD - 1 };
}

static struct frame frame_of(int link_type, const struct buffer *b)
{
    return (struct frame){ .at_ns = 1700000000123456789,
                           .number = 42,
                           .link_type = link_type,
                           .wire_len = (uint32_t)b->len,
                           .data = buffer_bytes(b) };
}

static enum drop decode(int link_type, const struct buffer *b, struct segment *s)
{
    struct frame f = frame_of(link_type, b);
    return packet_decode(&f, s);
}

/* An IP packet with one TCP segment. */
static struct buffer tcp_packet(bool is_v6, uint8_t flags)
{
    struct buffer b = { 0 };
    size_t len = 20 + sizeof OPTIONS + payload().len;
    if (is_v6)
        put_ipv6(&b, 6, len);
    else
        put_ipv4(&b, 6, len);
    put_tcp(&b, flags, options(), payload());
    return b;
}

static void assert_address(const struct address *a, const char *text)
{
    char buffer[ADDRESS_TEXT_SIZE];
    cr_assert_str_eq(address_text(a, buffer), text);
}

/* The segment of tcp_packet(): all but what stands around it, and captured bytes. */
static void assert_segment(const struct segment *s, bool is_v6, const char *name)
{
    cr_assert_eq(s->at_ns, 1700000000123456789, "%s", name);
    cr_assert_eq(s->packet_no, 42, "%s", name);
    assert_address(&s->from.address, is_v6 ? "2001:db8::1" : "192.0.2.1");
    assert_address(&s->to.address, is_v6 ? "2001:db8::2" : "198.51.100.2");
    cr_assert_eq(s->from.port, 51822, "%s", name);
    cr_assert_eq(s->to.port, 443, "%s", name);
    cr_assert_eq(s->seq, 0x01020304, "%s", name);
    cr_assert_eq(s->ack, 0x05060708, "%s", name);
    cr_assert_eq(s->window, 0x0a0b, "%s", name);
    cr_assert_eq(s->ttl, 57, "%s", name);
    cr_assert_eq(s->ip_id, is_v6 ? 0 : 0x1234, "%s", name);
    cr_assert_eq(s->payload_len, payload().len, "%s: %u", name, s->payload_len);
}

static void assert_whole_segment(const struct segment *s, bool is_v6, const char *name)
{
    assert_segment(s, is_v6, name);
    cr_assert(bytes_equal(s->payload, payload()), "%s", name);
    cr_assert(s->has_timestamp, "%s", name);
    cr_assert_eq(s->timestamp_value, 7, "%s", name);
    cr_assert_eq(s->timestamp_echo, 9, "%s", name);
    cr_assert_not(s->fast_open, "%s", name);
    cr_assert_eq(s->ip.len, (is_v6 ? 60 : 40) + sizeof OPTIONS + payload().len, "%s", name);
}

/* ---- ways to wrap an IP packet ---- */

static uint16_t ethertype_of(bool is_v6)
{
    return is_v6 ? 0x86dd : 0x0800;
}

static uint8_t protocol_of(bool is_v6)
{
    return is_v6 ? 41 : 4;
}

struct wrapping {
    const char *name;
    int link_type;
    unsigned tunnel;
    void (*put)(struct buffer *b, bool is_v6, size_t len); /* headers before len bytes of packet */
};

static void plain(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_ethernet(b, ethertype_of(is_v6));
}

static void nothing(struct buffer *b, bool is_v6, size_t len)
{
    (void)b, (void)is_v6, (void)len;
}

static void vlan(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_ethernet(b, 0x8100);
    put_be(b, 2, 0x2064);
    put_be(b, 2, ethertype_of(is_v6));
}

static void qinq(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_ethernet(b, 0x88a8);
    put_be(b, 2, 7);
    put_be(b, 2, 0x9100);
    put_be(b, 2, 8);
    put_be(b, 2, 0x8100);
    put_be(b, 2, 9);
    put_be(b, 2, ethertype_of(is_v6));
}

static void snap(struct buffer *b, bool is_v6, size_t len)
{
    put_ethernet(b, (uint16_t)(8 + len));
    put_be(b, 6, 0xaaaa03000000);
    put_be(b, 2, ethertype_of(is_v6));
}

static void sll(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_be(b, 6, 0x000000010006);
    put_be(b, 8, 0x0200000000010000);
    put_be(b, 2, ethertype_of(is_v6));
}

static void sll2(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_be(b, 2, ethertype_of(is_v6));
    put_repeated(b, 18, 0);
}

static void null_little(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_le(b, 4, is_v6 ? 30 : 2);
}

static void null_big(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_be(b, 4, is_v6 ? 28 : 2);
}

static void ppp(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_be(b, 2, 0xff03);
    put_be(b, 2, is_v6 ? 0x57 : 0x21);
}

static void ppp_compressed(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_be(b, 1, is_v6 ? 0x57 : 0x21);
}

static void cisco_hdlc(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_be(b, 2, 0x0f00);
    put_be(b, 2, ethertype_of(is_v6));
}

static void pppoe(struct buffer *b, bool is_v6, size_t len)
{
    put_ethernet(b, 0x8864);
    put_be(b, 4, 0x11000023);
    put_be(b, 2, 2 + len);
    put_be(b, 2, is_v6 ? 0x57 : 0x21);
}

static void mpls(struct buffer *b, bool is_v6, size_t len)
{
    (void)is_v6, (void)len;
    put_ethernet(b, 0x8847);
    put_be(b, 4, 0x00010040);
    put_be(b, 4, 0x00020140);
}

static void pseudowire(struct buffer *b, bool is_v6, size_t len)
{
    put_ethernet(b, 0x8847);
    put_be(b, 4, 0x00020140);
    plain(b, is_v6, len);
}

static void pseudowire_with_control_word(struct buffer *b, bool is_v6, size_t len)
{
    put_ethernet(b, 0x8847);
    put_be(b, 4, 0x00020140);
    put_be(b, 4, 0);
    plain(b, is_v6, len);
}

static void backbone(struct buffer *b, bool is_v6, size_t len)
{
    put_ethernet(b, 0x88e7);
    put_be(b, 4, 0x00000021);
    plain(b, is_v6, len);
}

static void vntag(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_ethernet(b, 0x8926);
    put_be(b, 4, 0x00010002);
    put_be(b, 2, ethertype_of(is_v6));
}

static void ip_in_ipv4(struct buffer *b, bool is_v6, size_t len)
{
    put_ethernet(b, 0x0800);
    put_ipv4(b, protocol_of(is_v6), len);
}

static void ip_in_ipv6(struct buffer *b, bool is_v6, size_t len)
{
    put_ethernet(b, 0x86dd);
    put_ipv6(b, protocol_of(is_v6), len);
}

static void gre(struct buffer *b, bool is_v6, size_t len)
{
    put_ethernet(b, 0x0800);
    put_ipv4(b, 47, len + 16);
    put_be(b, 2, 0xb000); /* checksum, key, sequence number */
    put_be(b, 2, ethertype_of(is_v6));
    put_repeated(b, 12, 1);
}

static void gre_ethernet(struct buffer *b, bool is_v6, size_t len)
{
    put_ethernet(b, 0x0800);
    put_ipv4(b, 47, len + 18);
    put_be(b, 4, 0x00006558);
    plain(b, is_v6, len);
}

static void pptp(struct buffer *b, bool is_v6, size_t len)
{
    put_ethernet(b, 0x0800);
    put_ipv4(b, 47, len + 20);
    put_be(b, 4, 0x3081880b);
    put_repeated(b, 12, 1); /* key, sequence, acknowledgment */
    ppp(b, is_v6, len);
}

static void erspan_1(struct buffer *b, bool is_v6, size_t len)
{
    put_ethernet(b, 0x0800);
    put_ipv4(b, 47, len + 18);
    put_be(b, 4, 0x000088be);
    plain(b, is_v6, len);
}

static void erspan_2(struct buffer *b, bool is_v6, size_t len)
{
    put_ethernet(b, 0x0800);
    put_ipv4(b, 47, len + 30);
    put_be(b, 4, 0x100088be);
    put_be(b, 4, 1);
    put_be(b, 8, 0x1001000500000000);
    plain(b, is_v6, len);
}

static void erspan_3(struct buffer *b, bool is_v6, size_t len)
{
    put_ethernet(b, 0x0800);
    put_ipv4(b, 47, len + 42);
    put_be(b, 4, 0x100022eb);
    put_be(b, 4, 1);
    put_be(b, 4, 0x20010005);
    put_be(b, 6, 0);
    put_be(b, 2, 0x0001); /* Ethernet, with a platform header */
    put_be(b, 8, 0);
    plain(b, is_v6, len);
}

static void put_udp_tunnel(struct buffer *b, uint16_t port, size_t len)
{
    put_ethernet(b, 0x0800);
    put_ipv4(b, 17, 8 + len);
    put_udp(b, 50000, port, len);
}

static void vxlan(struct buffer *b, bool is_v6, size_t len)
{
    put_udp_tunnel(b, 4789, len + 22);
    put_be(b, 8, 0x0800000000123400);
    plain(b, is_v6, len);
}

static void vxlan_linux(struct buffer *b, bool is_v6, size_t len)
{
    put_udp_tunnel(b, 8472, len + 22);
    put_be(b, 8, 0x0800000000123400);
    plain(b, is_v6, len);
}

static void vxlan_gpe(struct buffer *b, bool is_v6, size_t len)
{
    put_udp_tunnel(b, 4790, len + 8);
    put_be(b, 8, is_v6 ? 0x0c00000200123400 : 0x0c00000100123400);
}

static void geneve(struct buffer *b, bool is_v6, size_t len)
{
    put_udp_tunnel(b, 6081, len + 26);
    put_be(b, 8, 0x0100655800123400);
    put_be(b, 4, 0x01020304); /* an option */
    plain(b, is_v6, len);
}

static void geneve_ip(struct buffer *b, bool is_v6, size_t len)
{
    put_udp_tunnel(b, 6081, len + 8);
    put_be(b, 2, 0);
    put_be(b, 2, ethertype_of(is_v6));
    put_be(b, 4, 0x00123400);
}

static void gtp_u(struct buffer *b, bool is_v6, size_t len)
{
    (void)is_v6;
    put_udp_tunnel(b, 2152, len + 8);
    put_be(b, 2, 0x30ff);
    put_be(b, 2, len);
    put_be(b, 4, 77);
}

static void gtp_u_with_extension(struct buffer *b, bool is_v6, size_t len)
{
    (void)is_v6;
    put_udp_tunnel(b, 2152, len + 16);
    put_be(b, 2, 0x34ff);
    put_be(b, 2, len + 8);
    put_be(b, 4, 77);
    put_be(b, 4, 0x00000085);
    put_be(b, 4, 0x01100900); /* one word, then nothing */
}

static void l2tp(struct buffer *b, bool is_v6, size_t len)
{
    put_udp_tunnel(b, 1701, len + 12);
    put_be(b, 2, 0x4002);
    put_be(b, 2, len + 12);
    put_be(b, 4, 0x00010002);
    ppp(b, is_v6, len);
}

static void put_ieee802_11(struct buffer *b, uint16_t control, bool is_v6)
{
    put_be(b, 2, control);
    put_repeated(b, 22, 7);
    put_be(b, 6, 0xaaaa03000000);
    put_be(b, 2, ethertype_of(is_v6));
}

static void capwap(struct buffer *b, bool is_v6, size_t len)
{
    put_udp_tunnel(b, 5247, len + 48);
    put_be(b, 8, 0x0020032000000000); /* IEEE 802.11, with wireless information */
    put_be(b, 8, 0x04bf230000000000);
    put_ieee802_11(b, 0x0801, is_v6);
}

static void capwap_swapped(struct buffer *b, bool is_v6, size_t len)
{
    put_udp_tunnel(b, 5247, len + 40);
    put_be(b, 8, 0x0010030000000000);
    put_ieee802_11(b, 0x0108, is_v6);
}

static void capwap_ethernet(struct buffer *b, bool is_v6, size_t len)
{
    put_udp_tunnel(b, 5247, len + 22);
    put_be(b, 8, 0x0010000000000000);
    plain(b, is_v6, len);
}

static void put_nsh(struct buffer *b, uint8_t next)
{
    put_be(b, 2, 0x0fc3); /* three words: one of metadata */
    put_be(b, 1, 2);
    put_be(b, 1, next);
    put_be(b, 4, 0x0000abff);
    put_be(b, 4, 0);
}

static void nsh(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_ethernet(b, 0x894f);
    put_nsh(b, is_v6 ? 2 : 1);
}

static void vxlan_gpe_nsh(struct buffer *b, bool is_v6, size_t len)
{
    put_udp_tunnel(b, 4790, len + 34);
    put_be(b, 8, 0x0c00000400123400);
    put_nsh(b, 3);
    plain(b, is_v6, len);
}

static void etherip(struct buffer *b, bool is_v6, size_t len)
{
    put_ethernet(b, 0x0800);
    put_ipv4(b, 97, len + 16);
    put_be(b, 2, 0x3000);
    plain(b, is_v6, len);
}

static void authentication(struct buffer *b, bool is_v6, size_t len)
{
    put_ethernet(b, 0x0800);
    put_ipv4(b, 51, len + 24);
    put_be(b, 1, protocol_of(is_v6));
    put_be(b, 3, 0x040000);
    put_repeated(b, 20, 5);
}

static void radiotap(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_be(b, 2, 0);
    put_le(b, 2, 12);
    put_repeated(b, 8, 0);
    put_be(b, 2, 0x8802); /* QoS data from the distribution system */
    put_repeated(b, 24, 0);
    put_be(b, 6, 0xaaaa03000000);
    put_be(b, 2, ethertype_of(is_v6));
}

static void ppi(struct buffer *b, bool is_v6, size_t len)
{
    put_be(b, 2, 0);
    put_le(b, 2, 8);
    put_le(b, 4, EN10MB);
    plain(b, is_v6, len);
}

static void pktap(struct buffer *b, bool is_v6, size_t len)
{
    put_le(b, 4, 20);
    put_le(b, 4, 1);
    put_le(b, 4, EN10MB);
    put_repeated(b, 8, 0);
    plain(b, is_v6, len);
}

static void nflog(struct buffer *b, bool is_v6, size_t len)
{
    put_be(b, 4, is_v6 ? 0x0a000000 : 0x02000000);
    put_le(b, 4, 0x000a0005); /* prefix, 1 octet and padding */
    put_be(b, 4, 0);
    put_le(b, 2, 4 + len);
    put_le(b, 2, 9);
}

static void slip(struct buffer *b, bool is_v6, size_t len)
{
    (void)is_v6, (void)len;
    put_repeated(b, 16, 0);
}

static void frame_relay(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_be(b, 3, 0x184103);
    put_be(b, 1, is_v6 ? 0x8e : 0xcc);
}

static void endace(struct buffer *b, bool is_v6, size_t len)
{
    put_be(b, 8, 0);
    put_be(b, 1, 0x82);
    put_repeated(b, 7, 0);
    put_be(b, 8, 0); /* one extension header */
    put_be(b, 2, 0);
    plain(b, is_v6, len);
}

static void juniper(struct buffer *b, bool is_v6, size_t len)
{
    put_be(b, 4, 0x4d474380);
    put_be(b, 2, 3);
    put_repeated(b, 3, 0);
    plain(b, is_v6, len);
}

static void switch_tag(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_repeated(b, 12, 2);
    put_be(b, 4, 0xc0100539);
    put_be(b, 2, ethertype_of(is_v6));
}

static void switch_tag_long(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_repeated(b, 12, 2);
    put_be(b, 4, 0xdada0000);
    put_be(b, 4, 0xc0100539);
    put_be(b, 2, ethertype_of(is_v6));
}

static void switch_tag_in_front(struct buffer *b, bool is_v6, size_t len)
{
    put_be(b, 4, 0x00002005);
    plain(b, is_v6, len);
}

static void fddi(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_repeated(b, 13, 0x50);
    put_be(b, 6, 0xaaaa03000000);
    put_be(b, 2, ethertype_of(is_v6));
}

static void gre_in_udp(struct buffer *b, bool is_v6, size_t len)
{
    put_udp_tunnel(b, 4754, len + 4);
    put_be(b, 2, 0);
    put_be(b, 2, ethertype_of(is_v6));
}

static void mpls_in_udp(struct buffer *b, bool is_v6, size_t len)
{
    (void)is_v6;
    put_udp_tunnel(b, 6635, len + 4);
    put_be(b, 4, 0x00020140);
}

static void ipnet(struct buffer *b, bool is_v6, size_t len)
{
    (void)is_v6, (void)len;
    put_repeated(b, 24, 1);
}

/* RFC 1201, and RFC 2497 for IPv6; `split` 255 has four octets more. */
static void put_arcnet(struct buffer *b, bool is_v6, uint8_t split)
{
    put_be(b, 4, 0xbe00ea08); /* source, destination, offset */
    put_be(b, 1, is_v6 ? 196 : 212);
    put_be(b, 1, split);
    put_repeated(b, split == 255 ? 6 : 2, 0);
}

static void arcnet(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_arcnet(b, is_v6, 0);
}

/* RFC 1051 has no IPv6. */
static void arcnet_old(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    if (is_v6)
        put_arcnet(b, true, 255);
    else
        put_be(b, 5, 0xbe00ea08f0);
}

static void ipoib(struct buffer *b, bool is_v6, size_t len)
{
    (void)len;
    put_repeated(b, 40, 0);
    put_be(b, 2, ethertype_of(is_v6));
    put_be(b, 2, 0);
}

static const struct wrapping WRAPPINGS[] = {
    { "Ethernet", EN10MB, 0, plain },
    { "raw IP", RAW, 0, nothing },
    { "raw IP of OpenBSD", 14, 0, nothing },
    { "raw IP by its file number", 101, 0, nothing },
    { "VLAN", EN10MB, TUNNEL_VLAN, vlan },
    { "three VLANs", EN10MB, TUNNEL_VLAN, qinq },
    { "SNAP", EN10MB, 0, snap },
    { "Linux cooked", 113, 0, sll },
    { "Linux cooked 2", 276, 0, sll2 },
    { "NULL, little-endian", 0, 0, null_little },
    { "NULL, big-endian", 0, 0, null_big },
    { "LOOP", 108, 0, null_big },
    { "PPP", 9, 0, ppp },
    { "PPP, compressed", 9, 0, ppp_compressed },
    { "PPP serial", 50, 0, ppp },
    { "Cisco HDLC on PPP serial", 50, 0, cisco_hdlc },
    { "Cisco HDLC", 104, 0, cisco_hdlc },
    { "PPPoE", EN10MB, TUNNEL_PPPOE, pppoe },
    { "MPLS", EN10MB, TUNNEL_MPLS, mpls },
    { "MPLS pseudowire", EN10MB, TUNNEL_MPLS, pseudowire },
    { "MPLS pseudowire, control word", EN10MB, TUNNEL_MPLS, pseudowire_with_control_word },
    { "provider backbone", EN10MB, TUNNEL_VLAN, backbone },
    { "VN-Tag", EN10MB, TUNNEL_VLAN, vntag },
    { "IP in IPv4", EN10MB, TUNNEL_IP_IN_IP, ip_in_ipv4 },
    { "IP in IPv6", EN10MB, TUNNEL_IP_IN_IP, ip_in_ipv6 },
    { "GRE", EN10MB, TUNNEL_GRE, gre },
    { "GRE with Ethernet", EN10MB, TUNNEL_GRE, gre_ethernet },
    { "PPTP", EN10MB, TUNNEL_GRE, pptp },
    { "ERSPAN type I", EN10MB, TUNNEL_ERSPAN, erspan_1 },
    { "ERSPAN type II", EN10MB, TUNNEL_ERSPAN, erspan_2 },
    { "ERSPAN type III", EN10MB, TUNNEL_ERSPAN, erspan_3 },
    { "VXLAN", EN10MB, TUNNEL_VXLAN, vxlan },
    { "VXLAN on Linux's port", EN10MB, TUNNEL_VXLAN, vxlan_linux },
    { "VXLAN GPE", EN10MB, TUNNEL_VXLAN, vxlan_gpe },
    { "Geneve", EN10MB, TUNNEL_GENEVE, geneve },
    { "Geneve with IP", EN10MB, TUNNEL_GENEVE, geneve_ip },
    { "GTP-U", EN10MB, TUNNEL_GTP_U, gtp_u },
    { "GTP-U with extension", EN10MB, TUNNEL_GTP_U, gtp_u_with_extension },
    { "L2TP", EN10MB, TUNNEL_L2TP, l2tp },
    { "CAPWAP", EN10MB, TUNNEL_CAPWAP, capwap },
    { "CAPWAP of Cisco", EN10MB, TUNNEL_CAPWAP, capwap_swapped },
    { "CAPWAP with Ethernet", EN10MB, TUNNEL_CAPWAP, capwap_ethernet },
    { "NSH", EN10MB, TUNNEL_NSH, nsh },
    { "NSH in VXLAN GPE", EN10MB, TUNNEL_VXLAN | TUNNEL_NSH, vxlan_gpe_nsh },
    { "EtherIP", EN10MB, TUNNEL_IP_IN_IP, etherip },
    { "AH", EN10MB, TUNNEL_IP_IN_IP, authentication },
    { "radiotap", 127, 0, radiotap },
    { "PPI", 192, 0, ppi },
    { "PKTAP", 258, 0, pktap },
    { "NFLOG", 239, 0, nflog },
    { "SLIP", 8, 0, slip },
    { "frame relay", 107, 0, frame_relay },
    { "ERF", 197, 0, endace },
    { "Juniper", 178, 0, juniper },
    { "Broadcom tag", 281, 0, switch_tag },
    { "Broadcom tag in front", 282, 0, switch_tag_in_front },
    { "Marvell tag", 284, 0, switch_tag },
    { "Marvell tag with ethertype", 285, 0, switch_tag_long },
    { "FDDI", 10, 0, fddi },
    { "GRE in UDP", EN10MB, TUNNEL_GRE, gre_in_udp },
    { "MPLS in UDP", EN10MB, TUNNEL_MPLS, mpls_in_udp },
    { "IPNET", 226, 0, ipnet },
    { "IP over InfiniBand", 242, 0, ipoib },
    { "ARCNET", 129, 0, arcnet },
    { "ARCNET of RFC 1051", 129, 0, arcnet_old },
};

static struct buffer wrapped(const struct wrapping *w, bool is_v6, uint8_t flags)
{
    struct buffer inner = tcp_packet(is_v6, flags);
    struct buffer b = { 0 };
    w->put(&b, is_v6, inner.len);
    put_bytes(&b, buffer_bytes(&inner));
    return b;
}

/* ---- tests ---- */

Test(packet, gives_every_field_of_a_syn)
{
    struct buffer packet = tcp_packet(false, TCP_SYN), b = { 0 };
    struct segment s;
    put_ethernet(&b, 0x0800);
    put_bytes(&b, buffer_bytes(&packet));
    cr_assert_eq(decode(EN10MB, &b, &s), DROP_NONE);
    assert_whole_segment(&s, false, "SYN");
    cr_assert_eq(s.flags, TCP_SYN);
    cr_assert_eq(s.mss, 1460);
    cr_assert_eq(s.tunnel, 0);
    cr_assert_eq(s.encapsulation, 0);
}

Test(packet, every_wrapping_gives_the_same_segment)
{
    for (size_t i = 0; i < 2 * COUNT(WRAPPINGS); i++) {
        const struct wrapping *w = &WRAPPINGS[i / 2];
        bool is_v6 = i % 2 != 0;
        struct buffer b = wrapped(w, is_v6, TCP_ACK);
        struct segment s;
        enum drop reason = decode(w->link_type, &b, &s);
        cr_assert_eq(reason, DROP_NONE, "%s: %s", w->name, drop_text(reason));
        assert_whole_segment(&s, is_v6, w->name);
        cr_assert_eq(s.mss, 0, "%s: only a SYN has it", w->name);
        cr_assert_eq(s.tunnel & w->tunnel, w->tunnel, "%s", w->name);
        cr_assert(packet_link_type_known(w->link_type), "%s", w->name);
    }
}

Test(packet, teredo_with_and_without_indications)
{
    struct buffer inner = tcp_packet(true, TCP_ACK);
    for (unsigned indications = 0; indications < 4; indications++) {
        struct buffer b = { 0 };
        put_udp_tunnel(&b, 3544,
                       inner.len + (indications & 1 ? 8 : 0) + (indications & 2 ? 16 : 0));
        if (indications & 2) {
            put_be(&b, 4, 0x00010102); /* authentication: 1 octet of id, 2 of value */
            put_repeated(&b, 12, 9);
        }
        if (indications & 1)
            put_be(&b, 8, 0x0000aaaabbbbbbbb);
        put_bytes(&b, buffer_bytes(&inner));
        struct segment s;
        cr_assert_eq(decode(EN10MB, &b, &s), DROP_NONE, "%u", indications);
        assert_whole_segment(&s, true, "Teredo");
        cr_assert_eq(s.tunnel, TUNNEL_TEREDO);
    }
}

/* A capture cut at any length gives the same segment with less payload, or a reason; never both
 * one and the other in turn. The frame lies in memory of its own size, for the sanitizer. */
Test(packet, every_truncation_by_a_snaplen)
{
    for (size_t i = 0; i < 2 * COUNT(WRAPPINGS); i++) {
        const struct wrapping *w = &WRAPPINGS[i / 2];
        bool is_v6 = i % 2 != 0, was_decoded = false;
        struct buffer b = wrapped(w, is_v6, TCP_ACK);
        for (size_t len = 0; len <= b.len; len++) {
            uint8_t *copy = malloc(len > 0 ? len : 1);
            memcpy(copy, b.at, len);
            struct frame f = frame_of(w->link_type, &b);
            f.data = (struct bytes){ copy, len };
            struct segment s;
            memset(&s, 0xa5, sizeof s);
            struct segment before = s;
            bool decoded = packet_decode(&f, &s) == DROP_NONE;
            if (decoded)
                assert_segment(&s, is_v6, w->name);
            else
                cr_assert_eq(memcmp(&s, &before, sizeof s), 0, "%s: segment touched", w->name);
            cr_assert(decoded || !was_decoded, "%s at %zu", w->name, len);
            size_t cut = b.len - len;
            if (decoded && cut <= payload().len)
                cr_assert_eq(s.payload.len, payload().len - cut, "%s at %zu", w->name, len);
            cr_assert_eq(decoded, cut <= payload().len + sizeof OPTIONS, "%s at %zu", w->name, len);
            was_decoded = decoded;
            free(copy);
        }
    }
}

Test(packet, padding_and_trailers_are_cut_off)
{
    for (size_t i = 0; i < 2 * COUNT(WRAPPINGS); i++) {
        const struct wrapping *w = &WRAPPINGS[i / 2];
        struct buffer b = wrapped(w, i % 2 != 0, TCP_ACK);
        put_repeated(&b, 46, 0xee);
        struct segment s;
        cr_assert_eq(decode(w->link_type, &b, &s), DROP_NONE, "%s", w->name);
        assert_whole_segment(&s, i % 2 != 0, w->name);
    }
}

Test(packet, length_zero_of_offload_is_that_of_the_frame)
{
    for (int is_v6 = 0; is_v6 < 2; is_v6++) {
        struct buffer b = tcp_packet(is_v6 != 0, TCP_ACK);
        size_t field = is_v6 ? 4 : 2;
        b.at[field] = b.at[field + 1] = 0;
        struct segment s;
        cr_assert_eq(decode(RAW, &b, &s), DROP_NONE);
        assert_whole_segment(&s, is_v6 != 0, "offload");

        struct frame f = frame_of(RAW, &b);
        f.wire_len = UINT32_MAX;
        cr_assert_eq(packet_decode(&f, &s), DROP_IP_HEADER_INVALID, "no card takes 4 GB");
    }
}

/* A packet broker slices and gives the slice's length as the frame's. */
Test(packet, sliced_frames_keep_their_length)
{
    for (int is_v6 = 0; is_v6 < 2; is_v6++) {
        struct buffer b = tcp_packet(is_v6 != 0, TCP_ACK);
        b.len -= 10;
        struct segment s;
        cr_assert_eq(decode(RAW, &b, &s), DROP_NONE);
        assert_segment(&s, is_v6 != 0, "slice");
        cr_assert_eq(s.payload.len, payload().len - 10);
    }
}

Test(packet, length_beyond_the_frame_needs_a_good_checksum)
{
    struct buffer b = tcp_packet(false, TCP_ACK);
    struct segment s;
    b.at[2] = 0xff;
    cr_assert_eq(decode(RAW, &b, &s), DROP_NONE);
    assert_whole_segment(&s, false, "damaged length");
    set_ipv4_checksum(&b, 0, 20);
    cr_assert_eq(decode(RAW, &b, &s), DROP_NONE);
    cr_assert_eq(s.payload_len, payload().len + 0xff00);

    struct buffer outer = { 0 };
    put_ipv4(&outer, 4, b.len);
    put_bytes(&outer, buffer_bytes(&b));
    cr_assert_eq(decode(RAW, &outer, &s), DROP_NONE);
    outer.at[20 + 10] ^= 1;
    cr_assert_eq(decode(RAW, &outer, &s), DROP_IP_LENGTH_BEYOND_FRAME, "a lie inside");
}

Test(packet, checksums_are_not_looked_at_otherwise)
{
    struct buffer b = tcp_packet(false, TCP_ACK);
    struct segment s;
    b.at[10] ^= 0xff;
    cr_assert_eq(decode(RAW, &b, &s), DROP_NONE);
    assert_whole_segment(&s, false, "checksum offload");
}

Test(packet, fragments_are_counted_and_atomic_ones_are_packets)
{
    struct segment s;
    static const uint16_t V4[] = { 0x2000, 0x0001, 0x3fff };
    for (size_t i = 0; i < COUNT(V4); i++) {
        struct buffer b = tcp_packet(false, TCP_ACK);
        b.at[6] = (uint8_t)(V4[i] >> 8);
        b.at[7] = (uint8_t)V4[i];
        cr_assert_eq(decode(RAW, &b, &s), DROP_FRAGMENT);
    }
    static const struct {
        uint16_t fragment;
        enum drop expected;
    } V6[] = { { 0, DROP_NONE }, { 6, DROP_NONE }, { 1, DROP_FRAGMENT }, { 8, DROP_FRAGMENT } };
    for (size_t i = 0; i < COUNT(V6); i++) {
        struct buffer b = { 0 };
        put_ipv6(&b, 44, 8 + 20 + payload().len);
        put_be(&b, 2, 0x06ff); /* the second octet is reserved, not a length */
        put_be(&b, 2, V6[i].fragment);
        put_be(&b, 4, 99);
        put_tcp(&b, TCP_ACK, (struct bytes){ 0 }, payload());
        cr_assert_eq(decode(RAW, &b, &s), V6[i].expected, "%x", V6[i].fragment);
    }
}

static struct buffer with_extensions(unsigned count)
{
    static const uint8_t KINDS[] = { 0, 60, 43, 135, 139, 140 };
    struct buffer b = { 0 };
    put_ipv6(&b, count > 0 ? KINDS[0] : 6, count * 16 + 20 + payload().len);
    for (unsigned i = 1; i <= count; i++) {
        put_be(&b, 1, i < count ? KINDS[i % COUNT(KINDS)] : 6);
        put_be(&b, 1, 1);
        put_repeated(&b, 14, 0);
    }
    put_tcp(&b, TCP_ACK, (struct bytes){ 0 }, payload());
    return b;
}

Test(packet, ipv6_extension_headers_are_passed_up_to_a_cap)
{
    for (unsigned count = 0; count < 20; count++) {
        struct buffer b = with_extensions(count);
        struct segment s;
        enum drop reason = decode(RAW, &b, &s);
        cr_assert_eq(reason, count <= 8 ? DROP_NONE : DROP_IP_EXTENSION_INVALID, "%u", count);
        if (reason == DROP_NONE)
            assert_segment(&s, true, "extensions");
    }
}

Test(packet, ipv4_options_are_passed)
{
    struct buffer b = { 0 };
    put_ipv4(&b, 6, 8 + 20 + payload().len);
    b.at[0] = 0x47;
    put_repeated(&b, 8, 1);
    put_tcp(&b, TCP_ACK, (struct bytes){ 0 }, payload());
    struct segment s;
    cr_assert_eq(decode(RAW, &b, &s), DROP_NONE);
    assert_segment(&s, false, "options");
}

Test(packet, impossible_headers_are_named)
{
    struct segment s;
    struct buffer b = tcp_packet(false, TCP_ACK);
    b.at[0] = 0x44; /* header of 16 */
    cr_assert_eq(decode(RAW, &b, &s), DROP_IP_HEADER_INVALID);
    b = tcp_packet(false, TCP_ACK);
    b.at[2] = 0, b.at[3] = 19; /* shorter than its header */
    cr_assert_eq(decode(RAW, &b, &s), DROP_IP_HEADER_INVALID);
    b = tcp_packet(false, TCP_ACK);
    b.at[0] = 0x55; /* version 5 */
    cr_assert_eq(decode(RAW, &b, &s), DROP_IP_HEADER_INVALID);
    b = tcp_packet(false, TCP_ACK);
    b.at[32] = 0x40; /* data offset 16 */
    cr_assert_eq(decode(RAW, &b, &s), DROP_TCP_HEADER_INVALID);
    b.at[32] = 0xf0; /* 60, in a segment of 62: good; cut the packet to less */
    cr_assert_eq(decode(RAW, &b, &s), DROP_NONE);
    b.at[3] = 20 + 59;
    cr_assert_eq(decode(RAW, &b, &s), DROP_TCP_HEADER_INVALID);
    b.at[3] = 20 + 19;
    cr_assert_eq(decode(RAW, &b, &s), DROP_TCP_TOO_SHORT);
}

static struct segment with_options(uint8_t flags, struct bytes list)
{
    struct buffer b = { 0 };
    struct segment s;
    put_ipv4(&b, 6, 20 + list.len + payload().len);
    put_tcp(&b, flags, list, payload());
    cr_assert_eq(decode(RAW, &b, &s), DROP_NONE);
    cr_assert(bytes_equal(s.payload, payload()));
    return s;
}

Test(packet, fast_open_by_either_option)
{
    static const uint8_t REQUEST[] = { 34, 2, 1, 1 };
    static const uint8_t COOKIE[] = { 34, 10, 1, 2, 3, 4, 5, 6, 7, 8, 1, 1 };
    static const uint8_t EXPERIMENT[] = { 254, 4, 0xf9, 0x89 };
    static const uint8_t OTHER_EXPERIMENT[] = { 254, 4, 0xf9, 0x88 };
    static const uint8_t SHORT_EXPERIMENT[] = { 254, 3, 0xf9, 0x89 };
    cr_assert(with_options(TCP_SYN, (struct bytes){ REQUEST, sizeof REQUEST }).fast_open);
    cr_assert(with_options(TCP_SYN, (struct bytes){ COOKIE, sizeof COOKIE }).fast_open);
    cr_assert(with_options(TCP_SYN, (struct bytes){ EXPERIMENT, sizeof EXPERIMENT }).fast_open);
    cr_assert_not(with_options(TCP_SYN, (struct bytes){ OTHER_EXPERIMENT, 4 }).fast_open);
    cr_assert_not(with_options(TCP_SYN, (struct bytes){ SHORT_EXPERIMENT, 4 }).fast_open);
}

Test(packet, broken_option_lists_end_where_they_break)
{
    static const uint8_t LISTS[][8] = {
        { 2, 4, 0x05, 0xb4, 8, 0, 0, 0 },   /* length 0 would not advance */
        { 2, 4, 0x05, 0xb4, 8, 1, 0, 0 },   /* shorter than itself */
        { 2, 4, 0x05, 0xb4, 8, 40, 0, 0 },  /* beyond the list */
        { 2, 4, 0x05, 0xb4, 1, 1, 1, 8 },   /* no length */
        { 2, 4, 0x05, 0xb4, 0, 8, 10, 34 }, /* end of the list */
        { 2, 4, 0x05, 0xb4, 8, 4, 1, 1 },   /* timestamps of another length */
    };
    for (size_t i = 0; i < COUNT(LISTS); i++) {
        struct segment s = with_options(TCP_SYN, (struct bytes){ LISTS[i], sizeof LISTS[i] });
        cr_assert_eq(s.mss, 1460, "%zu", i);
        cr_assert_not(s.has_timestamp, "%zu", i);
        cr_assert_not(s.fast_open, "%zu", i);
    }
}

static uint32_t encapsulation_of_vlans(unsigned count, const uint16_t *tags)
{
    struct buffer inner = tcp_packet(false, TCP_ACK), b = { 0 };
    struct segment s;
    put_ethernet(&b, count > 0 ? 0x8100 : 0x0800);
    for (unsigned i = 0; i < count; i++) {
        put_be(&b, 2, tags[i]);
        put_be(&b, 2, i + 1 < count ? 0x8100 : 0x0800);
    }
    put_bytes(&b, buffer_bytes(&inner));
    cr_assert_eq(decode(EN10MB, &b, &s), DROP_NONE);
    return s.encapsulation;
}

Test(packet, encapsulation_tells_identifiers_apart)
{
    uint32_t tag_1 = encapsulation_of_vlans(1, (uint16_t[]){ 1 });
    uint32_t tag_2 = encapsulation_of_vlans(1, (uint16_t[]){ 2 });
    uint32_t tags_1_2 = encapsulation_of_vlans(2, (uint16_t[]){ 1, 2 });
    uint32_t tags_2_1 = encapsulation_of_vlans(2, (uint16_t[]){ 2, 1 });
    cr_assert(tag_1 != 0 && tag_2 != 0 && tag_1 != tag_2);
    cr_assert(tags_1_2 != tags_2_1 && tags_1_2 != tag_1 && tags_1_2 != tag_2);
    cr_assert_eq(encapsulation_of_vlans(1, (uint16_t[]){ 0xe001 }), tag_1, "priority is no id");
    cr_assert_eq(encapsulation_of_vlans(1, (uint16_t[]){ 0xe000 }), 0, "only a priority");
}

Test(packet, nesting_has_a_cap)
{
    for (unsigned depth = 0; depth < 12; depth++) {
        struct buffer inner = tcp_packet(false, TCP_ACK), b = { 0 };
        for (unsigned i = depth; i > 0; i--)
            put_ipv4(&b, 4, (i - 1) * 20 + inner.len);
        put_bytes(&b, buffer_bytes(&inner));
        struct segment s;
        cr_assert_eq(decode(RAW, &b, &s),
                     depth <= ENCAPSULATIONS_MAX ? DROP_NONE : DROP_TUNNEL_TOO_DEEP, "%u", depth);
    }
}

static enum drop decode_udp(uint16_t from, uint16_t to, const uint8_t *data, size_t len)
{
    struct buffer b = { 0 };
    struct segment s;
    put_ipv4(&b, 17, 8 + len);
    put_udp(&b, from, to, len);
    put_bytes(&b, (struct bytes){ data, len });
    return decode(RAW, &b, &s);
}

Test(packet, udp_is_quic_or_not)
{
    static const uint8_t LONG_V1[] = { 0xc3, 0, 0, 0, 1, 8, 1, 2, 3 };
    static const uint8_t LONG_V2[] = { 0xc3, 0x6b, 0x33, 0x43, 0xcf, 8 };
    static const uint8_t LONG_OTHER[] = { 0xc3, 1, 2, 3, 4, 8, 1, 2, 3 };
    static const uint8_t SHORT_HEADER[] = { 0x43, 9, 9, 9, 9, 9 };
    static const uint8_t DTLS[] = { 0x16, 0xfe, 0xff, 0, 0, 0 };
    cr_assert_eq(decode_udp(50000, 443, LONG_OTHER, sizeof LONG_OTHER), DROP_QUIC_NOT_READ);
    cr_assert_eq(decode_udp(443, 50000, SHORT_HEADER, sizeof SHORT_HEADER), DROP_QUIC_NOT_READ);
    cr_assert_eq(decode_udp(50000, 4433, LONG_V1, sizeof LONG_V1), DROP_QUIC_NOT_READ);
    cr_assert_eq(decode_udp(50000, 4433, LONG_V2, sizeof LONG_V2), DROP_QUIC_NOT_READ);
    cr_assert_eq(decode_udp(50000, 4433, LONG_OTHER, sizeof LONG_OTHER), DROP_UDP_NOT_QUIC);
    cr_assert_eq(decode_udp(50000, 53, SHORT_HEADER, sizeof SHORT_HEADER), DROP_UDP_NOT_QUIC);
    cr_assert_eq(decode_udp(50000, 443, DTLS, sizeof DTLS), DROP_UDP_NOT_QUIC);
    cr_assert_eq(decode_udp(50000, 443, NULL, 0), DROP_UDP_NOT_QUIC);
    cr_assert_eq(decode_udp(50000, 4789, DTLS, sizeof DTLS), DROP_UDP_NOT_QUIC, "no VXLAN");
}

Test(packet, what_is_no_tcp_has_its_reason)
{
    struct segment s;
    struct buffer arp = { 0 }, icmp = { 0 }, empty = { 0 }, lldp = { 0 };
    put_ethernet(&arp, 0x0806);
    cr_assert_eq(decode(EN10MB, &arp, &s), DROP_NOT_IP);
    put_ethernet(&lldp, 38);
    put_repeated(&lldp, 38, 0x42);
    cr_assert_eq(decode(EN10MB, &lldp, &s), DROP_NOT_IP);
    put_ipv4(&icmp, 1, 0);
    cr_assert_eq(decode(RAW, &icmp, &s), DROP_NOT_TCP);
    cr_assert_eq(decode(EN10MB, &empty, &s), DROP_LINK_TOO_SHORT);
    cr_assert_eq(decode(RAW, &empty, &s), DROP_IP_TOO_SHORT);
    cr_assert_eq(decode(9999, &icmp, &s), DROP_LINK_TYPE_UNKNOWN);
    cr_assert_not(packet_link_type_known(9999));
}

Test(packet, frames_without_a_time_are_not_used)
{
    struct buffer b = tcp_packet(false, TCP_ACK);
    struct frame f = frame_of(RAW, &b);
    struct segment s;
    f.at_ns = FRAME_TIME_INVALID;
    cr_assert_eq(packet_decode(&f, &s), DROP_TIME_INVALID);
    f.at_ns = 0;
    cr_assert_eq(packet_decode(&f, &s), DROP_NONE, "1970 is a time");
}

/* One octet of every wrapping changed to something else: no result is wrong, but each must end, and
 * views must lie inside the frame. */
Test(packet, damaged_headers_stay_inside_the_frame)
{
    for (size_t i = 0; i < 2 * COUNT(WRAPPINGS); i++) {
        const struct wrapping *w = &WRAPPINGS[i / 2];
        struct buffer original = wrapped(w, i % 2 != 0, TCP_ACK);
        for (size_t at = 0; at < original.len; at++) {
            for (unsigned value = 0; value < 256; value += value < 16 ? 1 : 31) {
                uint8_t *copy = malloc(original.len);
                memcpy(copy, original.at, original.len);
                copy[at] = (uint8_t)value;
                struct frame f = frame_of(w->link_type, &original);
                f.data.at = copy;
                struct segment s;
                if (packet_decode(&f, &s) == DROP_NONE) {
                    cr_assert(s.payload.len <= s.payload_len);
                    cr_assert(s.ip.at >= copy && s.ip.at + s.ip.len <= copy + original.len);
                    cr_assert(s.payload.len == 0 ||
                              (s.payload.at >= copy &&
                               s.payload.at + s.payload.len <= copy + original.len));
                }
                free(copy);
            }
        }
    }
}
