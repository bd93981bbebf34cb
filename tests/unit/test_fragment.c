/* SPDX-License-Identifier: Apache-2.0 */
#include "fragment.h"

#include "frame_builder.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { RAW = 12, SECOND_NS = 1000000000, PAYLOAD_LEN = 300 };

TestSuite(fragment, .timeout = 60);

/* What an IP packet holds: a TCP header and a payload of its own. */
static struct buffer tcp_bytes(void)
{
    uint8_t payload[PAYLOAD_LEN];
    struct buffer b = { 0 };
    for (size_t i = 0; i < sizeof payload; i++)
        payload[i] = (uint8_t)(i * 7);
    put_tcp(&b, TCP_ACK, (struct bytes){ 0 }, (struct bytes){ payload, sizeof payload });
    return b;
}

/* One fragment of it as a packet, [from, end). */
static struct buffer fragment_of(bool is_ipv6, const struct buffer *whole, size_t from, size_t end)
{
    struct buffer b = { 0 };
    bool more = end < whole->len;
    if (is_ipv6) {
        put_ipv6(&b, 44, 8 + end - from);
        put_be(&b, 2, 0x0600);
        put_be(&b, 2, from | more);
        put_be(&b, 4, 0xabcdef01);
    } else {
        put_ipv4(&b, 6, end - from);
        b.at[6] = (uint8_t)((more ? 0x20 : 0) | from / 8 >> 8);
        b.at[7] = (uint8_t)(from / 8);
        set_ipv4_checksum(&b, 0, 20);
    }
    put_bytes(&b, (struct bytes){ whole->at + from, end - from });
    return b;
}

static struct frame frame_of(const struct buffer *b, size_t captured, int64_t at_ns)
{
    return (struct frame){ .at_ns = at_ns,
                           .number = 7,
                           .link_type = RAW,
                           .wire_len = (uint32_t)b->len,
                           .data = bytes_first(buffer_bytes(b), captured) };
}

/* Adds a fragment as analyze.c does; the segment is filled when that completes the packet. */
static enum drop add(struct fragments *f, const struct buffer *b, size_t captured, int64_t at_ns,
                     struct segment *ret_segment)
{
    struct frame frame = frame_of(b, captured, at_ns);
    struct fragment piece;
    struct datagram whole;
    cr_assert_eq(packet_decode(&frame, ret_segment), DROP_FRAGMENT);
    packet_fragment(&frame, &piece);
    enum drop reason = fragments_add(f, &piece, &whole);
    if (reason != DROP_NONE)
        return reason;
    return packet_decode_whole(&frame, &piece, whole.ip, whole.wire_len, ret_segment);
}

static void assert_segment(const struct segment *s, size_t captured)
{
    struct buffer whole = tcp_bytes();
    cr_assert_eq(s->seq, 0x01020304);
    cr_assert_eq(s->from.port, 51822);
    cr_assert_eq(s->payload_len, PAYLOAD_LEN);
    cr_assert_eq(s->payload.len, captured);
    cr_assert(
        bytes_equal(s->payload, bytes_first(bytes_after(buffer_bytes(&whole), 20), captured)));
    cr_assert_eq(s->ttl, 57);
}

Test(fragment, any_cut_in_any_order_with_copies_gives_the_segment)
{
    struct buffer whole = tcp_bytes();
    struct fragments *f = fragments_open(1);
    for (int is_ipv6 = 0; is_ipv6 < 2; is_ipv6++)
        for (size_t a = 8; a + 8 < whole.len; a += 8)
            for (int order = 0; order < 6; order++) {
                static const int ORDERS[6][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
                                                  { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
                size_t edges[4] = { 0, a, a + 8, whole.len };
                struct segment s = { 0 };
                for (int i = 0; i < 3; i++) {
                    int k = ORDERS[order][i];
                    struct buffer b = fragment_of(is_ipv6, &whole, edges[k], edges[k + 1]);
                    enum drop expected = i < 2 ? DROP_FRAGMENT : DROP_NONE;
                    cr_assert_eq(add(f, &b, b.len, SECOND_NS, &s), expected, "%zu %d", a, order);
                    if (i < 2) {
                        cr_assert_eq(add(f, &b, b.len, SECOND_NS, &s), DROP_FRAGMENT);
                    }
                }
                assert_segment(&s, PAYLOAD_LEN);
            }
    fragments_close(f);
}

Test(fragment, a_snaplen_leaves_the_captured_beginning_and_the_length)
{
    struct buffer whole = tcp_bytes();
    struct buffer first = fragment_of(false, &whole, 0, 160);
    struct buffer last = fragment_of(false, &whole, 160, whole.len);
    for (size_t snaplen = 40; snaplen <= 20 + 160; snaplen++) {
        struct fragments *f = fragments_open(1);
        struct segment s = { 0 };
        cr_assert_eq(add(f, &last, snaplen, SECOND_NS, &s), DROP_FRAGMENT);
        cr_assert_eq(add(f, &first, snaplen, SECOND_NS, &s), DROP_NONE, "%zu", snaplen);
        assert_segment(&s, snaplen == 180 ? PAYLOAD_LEN : snaplen - 40);
        fragments_close(f);
    }
}

Test(fragment, partial_overlaps_and_ends_that_contradict_give_the_packet_up)
{
    struct buffer whole = tcp_bytes();
    static const size_t PAIRS[][4] = { { 0, 160, 152, 320 },
                                       { 160, 320, 0, 168 },
                                       { 0, 160, 8, 320 } };
    for (size_t i = 0; i < sizeof PAIRS / sizeof PAIRS[0]; i++) {
        struct fragments *f = fragments_open(1);
        struct segment s = { 0 };
        struct buffer one = fragment_of(true, &whole, PAIRS[i][0], PAIRS[i][1]);
        struct buffer two = fragment_of(true, &whole, PAIRS[i][2], PAIRS[i][3]);
        cr_assert_eq(add(f, &one, one.len, SECOND_NS, &s), DROP_FRAGMENT);
        cr_assert_eq(add(f, &two, two.len, SECOND_NS, &s), DROP_FRAGMENT_INVALID);
        cr_assert_eq(add(f, &one, one.len, SECOND_NS, &s), DROP_FRAGMENT_INVALID, "stays so");
        fragments_close(f);
    }
    struct fragments *f = fragments_open(1);
    struct segment s = { 0 };
    struct buffer shorter = whole;
    shorter.len = 240;
    struct buffer last = fragment_of(false, &whole, 160, whole.len);
    struct buffer other_last = fragment_of(false, &shorter, 160, shorter.len);
    cr_assert_eq(add(f, &last, last.len, SECOND_NS, &s), DROP_FRAGMENT);
    cr_assert_eq(add(f, &other_last, other_last.len, SECOND_NS, &s), DROP_FRAGMENT_INVALID);
    fragments_close(f);
}

Test(fragment, odd_lengths_and_packets_beyond_65535_octets_are_invalid)
{
    struct buffer whole = tcp_bytes();
    struct fragments *f = fragments_open(1);
    struct segment s = { 0 };
    struct buffer odd = fragment_of(false, &whole, 0, 159);
    cr_assert_eq(add(f, &odd, odd.len, SECOND_NS, &s), DROP_FRAGMENT_INVALID);
    struct buffer far = fragment_of(true, &whole, 0, 160);
    far.at[42] = 0xff;
    far.at[43] = 0xf8;
    cr_assert_eq(add(f, &far, far.len, SECOND_NS, &s), DROP_FRAGMENT_INVALID);
    fragments_close(f);
}

Test(fragment, what_is_old_is_begun_anew)
{
    struct buffer whole = tcp_bytes();
    struct fragments *f = fragments_open(1);
    struct segment s = { 0 };
    struct buffer first = fragment_of(false, &whole, 0, 160);
    struct buffer last = fragment_of(false, &whole, 160, whole.len);
    int64_t late_ns = SECOND_NS + (FRAGMENT_AGE_MAX_S + 1) * (int64_t)SECOND_NS;
    cr_assert_eq(add(f, &first, first.len, SECOND_NS, &s), DROP_FRAGMENT);
    cr_assert_eq(add(f, &last, last.len, late_ns, &s), DROP_FRAGMENT);
    cr_assert_eq(add(f, &first, first.len, late_ns, &s), DROP_NONE);
    fragments_close(f);
}

Test(fragment, only_fragments_of_the_same_file_are_counted_as_used)
{
    struct buffer whole = tcp_bytes();
    struct fragments *f = fragments_open(1);
    struct buffer pieces[] = { fragment_of(false, &whole, 0, 80),
                               fragment_of(false, &whole, 80, 160),
                               fragment_of(false, &whole, 160, whole.len) };
    struct fragment piece;
    struct datagram datagram = { 0 };
    for (size_t i = 0; i < 3; i++) {
        struct frame frame = frame_of(&pieces[i], pieces[i].len, SECOND_NS);
        packet_fragment(&frame, &piece);
        cr_assert_eq(fragments_add(f, &piece, &datagram), i < 2 ? DROP_FRAGMENT : DROP_NONE);
        if (i == 0)
            fragments_begin_file(f);
    }
    cr_assert_eq(datagram.earlier_count, 1);
    fragments_close(f);
}

Test(fragment, a_flood_stays_within_its_caps_and_ends)
{
    struct buffer whole = tcp_bytes();
    struct fragments *f = fragments_open(1);
    struct buffer b = fragment_of(true, &whole, 0, 160);
    struct fragment piece;
    struct datagram datagram;
    uint32_t over_cap = 0, first = 0;
    struct frame frame = frame_of(&b, b.len, SECOND_NS);
    packet_fragment(&frame, &piece);
    for (uint32_t i = 0; i < 20000; i++) {
        piece.id = i;
        piece.offset = 60000;
        if (fragments_add(f, &piece, &datagram) == DROP_FRAGMENT_OVER_CAP && over_cap++ == 0)
            first = i;
    }
    cr_assert_gt(over_cap, 0);
    cr_assert_leq(first, FRAGMENT_BYTES_MAX / 60000);
    fragments_close(f);
}
