/* SPDX-License-Identifier: Apache-2.0 */
#include "label.h"

#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>

/* ---- packets made by hand ---- */

struct packet {
    uint8_t octet[4096];
    size_t len;
};

static struct bytes view(const struct packet *p)
{
    return (struct bytes){ p->octet, p->len };
}

static void put(struct packet *p, const void *from, size_t len)
{
    cr_assert_leq(p->len + len, sizeof p->octet);
    memcpy(p->octet + p->len, from, len);
    p->len += len;
}

static void put_be(struct packet *p, uint64_t value, unsigned width)
{
    for (unsigned i = width; i-- > 0;) {
        uint8_t octet = (uint8_t)(value >> 8 * i);
        put(p, &octet, 1);
    }
}

static void put_zeros(struct packet *p, size_t len)
{
    for (size_t i = 0; i < len; i++)
        put_be(p, 0, 1);
}

/* IPv4 and TCP around a payload, from 198.51.100.7:40000 to 203.0.113.9:port. */
static struct packet tcp(uint16_t port, uint32_t seq, const void *payload, size_t len)
{
    struct packet p = { 0 };
    put_be(&p, 0x4500, 2);
    put_be(&p, 40 + len, 2);
    put_be(&p, 0x00014000, 4);
    put_be(&p, 64 << 8 | 6, 2);
    put_be(&p, 0, 2);
    put_be(&p, 0xc6336407, 4);
    put_be(&p, 0xcb007109, 4);
    put_be(&p, 40000, 2);
    put_be(&p, port, 2);
    put_be(&p, seq, 4);
    put_be(&p, 1, 4);
    put_be(&p, 0x5018, 2);
    put_be(&p, 64240, 2);
    put_be(&p, 0, 4);
    put(&p, payload, len);
    return p;
}

/* A TLS record with a ClientHello (RFC 8446 4.1.2) for a name, padded to the length of key shares
 * that need two segments. */
static struct packet client_hello(const char *name, size_t padding)
{
    struct packet extensions = { 0 };
    size_t name_len = strlen(name);
    put_be(&extensions, 0, 2); /* server_name, RFC 6066 3 */
    put_be(&extensions, name_len + 5, 2);
    put_be(&extensions, name_len + 3, 2);
    put_be(&extensions, 0, 1);
    put_be(&extensions, name_len, 2);
    put(&extensions, name, name_len);
    put_be(&extensions, 0x000a000400020017, 8); /* supported_groups */
    put_be(&extensions, 0x002b0003020304, 7);   /* supported_versions: TLS 1.3 */
    put_be(&extensions, 21, 2);                 /* padding, RFC 7685 */
    put_be(&extensions, padding, 2);
    put_zeros(&extensions, padding);

    struct packet record = { 0 };
    size_t body_len = 2 + 32 + 1 + 4 + 2 + 2 + extensions.len;
    put_be(&record, 0x160301, 3);
    put_be(&record, body_len + 4, 2);
    put_be(&record, 1 << 24 | body_len, 4);
    put_be(&record, 0x0303, 2);
    put_zeros(&record, 32 + 1);
    put_be(&record, 0x00021301, 4);
    put_be(&record, 0x0100, 2);
    put_be(&record, extensions.len, 2);
    put(&record, extensions.octet, extensions.len);
    return record;
}

static struct labeler *open_labeler(void)
{
    struct labeler *l = NULL;
    cr_assert_eq(labeler_open(&l), STATUS_OK);
    return l;
}

static bool give(struct labeler *l, struct label_flow **state, const struct packet *p, bool last,
                 struct label *ret_label)
{
    return label_packet(l, state, view(p), 1700000000000000000, CLIENT, last, ret_label);
}

static struct endpoint endpoint_of(const char *address, uint16_t port)
{
    struct endpoint e = { .port = port };
    cr_assert(address_parse(address, &e.address));
    return e;
}

static struct label name_label(struct labeler *l, const char *name, const char *address,
                               uint16_t port)
{
    struct endpoint server = endpoint_of(address, port);
    struct label_flow *state = NULL;
    struct bytes text = { (const uint8_t *)name, strlen(name) };
    return label_tls(l, &state, text, &server);
}

/* ---- TLS by server name and address ---- */

Test(label, tls_is_named_by_its_server_name)
{
    struct labeler *l = open_labeler();
    struct label label = name_label(l, "www.google.com", "203.0.113.9", 443);
    cr_assert_str_eq(label.protocol, "TLS.Google");
    cr_assert_str_eq(label.category, "Web");
    cr_assert_str_eq(name_label(l, "WWW.Google.COM", "203.0.113.9", 443).protocol, "TLS.Google");
    labeler_close(l);
}

Test(label, tls_with_an_unknown_name_is_named_by_the_address_then_by_the_port)
{
    struct labeler *l = open_labeler();
    cr_assert_str_eq(name_label(l, "x.example", "104.16.47.1", 443).protocol, "TLS.Cloudflare");
    cr_assert_str_eq(name_label(l, "", "104.16.47.1", 443).protocol, "TLS.Cloudflare");
    cr_assert_str_eq(name_label(l, "x.example", "203.0.113.9", 443).protocol, "TLS");
    cr_assert_str_eq(name_label(l, "x.example", "2001:db8::1", 443).protocol, "TLS");
    cr_assert_str_eq(name_label(l, "", "203.0.113.9", 993).protocol, "IMAPS");
    cr_assert_str_eq(name_label(l, "", "203.0.113.9", 993).category, "Email");
    labeler_close(l);
}

Test(label, any_bytes_may_stand_in_a_server_name)
{
    struct labeler *l = open_labeler();
    struct endpoint server = endpoint_of("203.0.113.9", 443);
    uint8_t octet[70000];
    for (unsigned fill = 0; fill < 256; fill++) {
        memset(octet, (int)fill, sizeof octet);
        for (size_t len = 1; len <= sizeof octet; len *= 16) {
            struct label_flow *state = NULL;
            struct label label = label_tls(l, &state, (struct bytes){ octet, len }, &server);
            cr_assert_str_eq(label.protocol, "TLS", "%zu bytes of %u", len, fill);
        }
    }
    labeler_close(l);
}

Test(label, the_way_by_name_and_the_way_by_packets_agree)
{
    static const char *const NAMES[] = { "www.google.com",   "mail.google.com",
                                         "www.facebook.com", "www.netflix.com",

                                         "www.example.org",  "sb.scorecardresearch.com" };
    struct labeler *l = open_labeler();
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        struct packet hello = client_hello(NAMES[i], 8);
        struct packet p = tcp(443, 1, hello.octet, hello.len);
        struct label_flow *state = NULL;
        struct label by_packet = { 0 };
        cr_assert(give(l, &state, &p, true, &by_packet), "%s", NAMES[i]);
        struct label by_name = name_label(l, NAMES[i], "203.0.113.9", 443);
        cr_assert_str_eq(by_packet.protocol, by_name.protocol, "%s", NAMES[i]);
        cr_assert_str_eq(by_packet.category, by_name.category, "%s", NAMES[i]);
    }
    labeler_close(l);
}

/* ---- packets ---- */

Test(label, client_hello_over_two_segments_is_named_with_the_second)
{
    struct labeler *l = open_labeler();
    struct packet hello = client_hello("www.google.com", 1300);
    for (size_t cut = 100; cut < hello.len; cut += 150) {
        struct packet first = tcp(443, 1, hello.octet, cut);
        struct packet second = tcp(443, (uint32_t)(1 + cut), hello.octet + cut, hello.len - cut);
        struct label_flow *state = NULL;
        struct label label = { 0 };
        cr_assert_not(give(l, &state, &first, false, &label), "cut at %zu", cut);
        cr_assert_not_null(state);
        cr_assert(give(l, &state, &second, true, &label), "cut at %zu", cut);
        cr_assert_null(state);
        cr_assert_str_eq(label.protocol, "TLS.Google", "cut at %zu", cut);
    }
    labeler_close(l);
}

Test(label, http_is_known_with_its_request)
{
    static const char REQUEST[] = "GET / HTTP/1.1\r\nHost: www.example.org\r\nAccept: */*\r\n\r\n";
    struct labeler *l = open_labeler();
    struct packet p = tcp(80, 1, REQUEST, sizeof REQUEST - 1);
    struct label_flow *state = NULL;
    struct label label = { 0 };
    cr_assert(give(l, &state, &p, false, &label));
    cr_assert_null(state);
    cr_assert_str_eq(label.protocol, "HTTP");
    cr_assert_str_eq(label.category, "Web");
    labeler_close(l);
}

Test(label, bytes_of_no_protocol_end_at_the_cap_as_unknown)
{
    static const uint8_t NOISE[] = { 0x91, 0x07, 0xe3, 0x5c, 0x88, 0xba, 0x02, 0xf6, 0x3d };
    struct labeler *l = open_labeler();
    struct label_flow *state = NULL;
    struct label label = { 0 };
    unsigned packets = 1;
    for (; packets < 100; packets++) {
        struct packet p = tcp(40404, packets * sizeof NOISE, NOISE, sizeof NOISE);
        if (give(l, &state, &p, false, &label))
            break;
    }
    cr_assert_leq(packets, 8);
    cr_assert_null(state);
    cr_assert_null(label.protocol);
    cr_assert_null(label.category);
    labeler_close(l);
}

Test(label, the_answer_comes_when_the_caller_has_all_it_wants)
{
    static const uint8_t NOISE[] = { 0x91, 0x07, 0xe3, 0x5c, 0x88 };
    struct labeler *l = open_labeler();
    struct packet p = tcp(40404, 1, NOISE, sizeof NOISE);
    struct label_flow *state = NULL;
    struct label label = { .protocol = "untouched" };
    cr_assert(give(l, &state, &p, true, &label));
    cr_assert_null(state);
    cr_assert_null(label.protocol);
    labeler_close(l);
}

Test(label, finish_frees_what_is_left_and_guesses_nothing_without_payload)
{
    struct labeler *l = open_labeler();
    struct packet hello = client_hello("www.google.com", 1300);
    struct packet first = tcp(443, 1, hello.octet, 1000);
    struct label_flow *state = NULL;
    cr_assert_null(label_finish(l, &state).protocol);

    struct label label = { 0 };
    cr_assert_not(give(l, &state, &first, false, &label));
    cr_assert_str_eq(label_finish(l, &state).protocol, "TLS");
    cr_assert_null(state);

    cr_assert_not(give(l, &state, &first, false, &label));
    struct endpoint server = endpoint_of("203.0.113.9", 443);
    struct bytes name = { (const uint8_t *)"www.google.com", 14 };
    cr_assert_str_eq(label_tls(l, &state, name, &server).protocol, "TLS.Google");
    cr_assert_null(state);
    labeler_close(l);
}

Test(label, texts_outlive_the_flow_and_are_made_once)
{
    struct labeler *l = open_labeler();
    struct label first = name_label(l, "www.google.com", "203.0.113.9", 443);
    for (int i = 0; i < 100; i++)
        name_label(l, i % 2 ? "www.facebook.com" : "www.netflix.com", "203.0.113.9", 443);
    struct label again = name_label(l, "www.google.com", "203.0.113.9", 443);
    cr_assert_eq(first.protocol, again.protocol);
    cr_assert_str_eq(first.protocol, "TLS.Google");
    labeler_close(l);
}

Test(label, a_label_does_not_depend_on_earlier_flows)
{
    static const char HANDSHAKE[] = "\x13"
                                    "BitTorrent protocol\0\0\0\0\0\0\0\0"
                                    "aaaaaaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbbbbb";
    static const uint8_t NOISE[] = { 0x91, 0x07, 0xe3, 0x5c, 0x88 };
    struct packet peer = tcp(40404, 1, HANDSHAKE, sizeof HANDSHAKE - 1);
    struct packet noise = tcp(40404, 1, NOISE, sizeof NOISE);
    struct labeler *l = open_labeler();
    struct label_flow *state = NULL;
    struct label before = { 0 }, between = { 0 }, after = { 0 };
    cr_assert(give(l, &state, &noise, true, &before));
    cr_assert(give(l, &state, &peer, true, &between));
    cr_assert(give(l, &state, &noise, true, &after));
    cr_assert_eq(before.protocol, after.protocol);
    labeler_close(l);
}

/* The library is not instrumented: a page that must not be read stands behind the packet. */
Test(label, a_packet_cut_anywhere_is_read_to_its_end_only)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t *pages =
        mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(pages, MAP_FAILED);
    cr_assert_eq(mprotect(pages + page, page, PROT_NONE), 0);

    struct labeler *l = open_labeler();
    struct packet hello = client_hello("www.google.com", 100);
    static const char REQUEST[] = "GET / HTTP/1.1\r\nHost: www.example.org\r\nAccept: */*\r\n\r\n";
    struct packet packets[] = { tcp(443, 1, hello.octet, hello.len),
                                tcp(80, 1, REQUEST, sizeof REQUEST - 1) };
    for (size_t i = 0; i < sizeof packets / sizeof *packets; i++) {
        for (size_t len = 0; len <= packets[i].len; len++) {
            uint8_t *at = pages + page - len;
            memcpy(at, packets[i].octet, len);
            struct label_flow *state = NULL;
            struct label label = { 0 };
            bool final =
                label_packet(l, &state, (struct bytes){ at, len }, 0, CLIENT, true, &label);
            cr_assert(final, "%zu of %zu", len, packets[i].len);
            cr_assert_null(state);
        }
    }
    labeler_close(l);
    munmap(pages, 2 * page);
}

Test(label, the_version_is_that_of_ndpi)
{
    cr_assert_eq(label_library_version()[1], '.');
}

/* ---- Community ID ---- */

static void assert_community_id(const char *a, uint16_t a_port, const char *b, uint16_t b_port,
                                const char *expected)
{
    struct endpoint from = endpoint_of(a, a_port), to = endpoint_of(b, b_port);
    char text[COMMUNITY_ID_SIZE], reverse[COMMUNITY_ID_SIZE];
    cr_assert_str_eq(community_id_text(&from, &to, text), expected);
    cr_assert_str_eq(community_id_text(&to, &from, reverse), expected);
}

/* The first is the specification's example; the others were computed from its text in Python. */
Test(label, community_id_is_that_of_the_specification_in_both_directions)
{
    assert_community_id("128.232.110.120", 34855, "66.35.250.204", 80,
                        "1:LQU9qZlK+B5F3KDmev6m5PMibrg=");
    assert_community_id("2001:db8:1::7", 51822, "2001:db8:ed9e::10", 443,
                        "1:UxSrHfwH69PDquleQaZ5DGQZBLo=");
    assert_community_id("192.0.2.1", 443, "192.0.2.1", 51822, "1:kakhO/WwJNQJ2Rk42g/zCwCZQJs=");
}
