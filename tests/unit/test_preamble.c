/* SPDX-License-Identifier: Apache-2.0 */
#include "preamble.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define COUNT(array) (sizeof array / sizeof *array)

/* Bytes of a string literal, which may hold NUL. */
#define LITERAL(text)                                                                              \
    {                                                                                              \
        (const uint8_t *)(text), sizeof(text) - 1                                                  \
    }

#define V2_SIGNATURE "\r\n\r\n\0\r\nQUIT\n"

static struct bytes of_text(const char *text)
{
    return (struct bytes){ (const uint8_t *)text, strlen(text) };
}

static void expect_endpoint(const struct endpoint *e, const char *address, uint16_t port)
{
    char buffer[ADDRESS_TEXT_SIZE];
    cr_expect_str_eq(address_text(&e->address, buffer), address);
    cr_expect_eq(e->port, port);
}

/* ---- PROXY protocol ---- */

Test(preamble, proxy_v1)
{
    struct proxy_header h;
    struct bytes tcp4 = of_text("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n\x16\x03\x01");
    cr_assert_eq(proxy_header_read(tcp4, &h), PROXY_FOUND);
    cr_expect_eq(h.kind, PREAMBLE_PROXY_V1);
    cr_expect_eq(h.len, tcp4.len - 3);
    cr_assert(h.has_addresses);
    expect_endpoint(&h.source, "192.0.2.1", 56324);
    expect_endpoint(&h.destination, "198.51.100.2", 443);

    struct bytes tcp6 = of_text("PROXY TCP6 2001:db8::1 2001:db8::2 1 65535\r\n");
    cr_assert_eq(proxy_header_read(tcp6, &h), PROXY_FOUND);
    cr_assert(h.has_addresses);
    expect_endpoint(&h.source, "2001:db8::1", 1);
    expect_endpoint(&h.destination, "2001:db8::2", 65535);
}

Test(preamble, proxy_v1_without_usable_addresses)
{
    static const char *const cases[] = {
        "PROXY UNKNOWN\r\n",
        "PROXY UNKNOWN 2001:db8::1 2001:db8::2 1 2\r\n",
        "PROXY TCP4\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 56324\r\n",
        "PROXY TCP4 192.0.2.256 198.51.100.2 56324 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 65536 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 -1 443\r\n",
        "PROXY TCP4 192.0.2.1 198.51.100.2 0000001 443\r\n",
        "PROXY TCP4  192.0.2.1 198.51.100.2 1 443\r\n",
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct proxy_header h;
        cr_expect_eq(proxy_header_read(of_text(cases[i]), &h), PROXY_FOUND, "%s", cases[i]);
        cr_expect_eq(h.len, strlen(cases[i]), "%s", cases[i]);
        cr_expect_not(h.has_addresses, "%s", cases[i]);
    }
    static const struct bytes with_nul = LITERAL("PROXY TCP4 192.0.2.1\0 192.0.2.2 1 443\r\n");
    struct proxy_header h;
    cr_expect_eq(proxy_header_read(with_nul, &h), PROXY_FOUND);
    cr_expect_not(h.has_addresses);
}

Test(preamble, no_proxy_header)
{
    static const struct bytes cases[] = {
        LITERAL("\x16\x03\x01\x02\x00"),
        LITERAL("PROPFIND / HTTP/1.1\r\n"),
        LITERAL("PROXY UDP4 192.0.2.1 198.51.100.2 1 2\r\n"),
        LITERAL("PROXY TCP44 192.0.2.1 198.51.100.2 1 2\r\n"),
        LITERAL("PROXY TCP4 192.0.2.1 198.51.100.2 1 2\n"),
        LITERAL("proxy TCP4 192.0.2.1 198.51.100.2 1 2\r\n"),
        LITERAL(V2_SIGNATURE "\x11\x11\0\x0c"),   /* version 1 */
        LITERAL(V2_SIGNATURE "\x22\x11\0\x0c"),   /* command 2 */
        LITERAL(V2_SIGNATURE "\x21\x11\xff\xff"), /* longer than any receiver takes */
        LITERAL("\r\n\r\n\0\r\nQUIT\r"),
        LITERAL("\r\nGET / HTTP/1.1\r\n"),
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct proxy_header h = { .len = 7 };
        cr_expect_eq(proxy_header_read(cases[i], &h), PROXY_NONE, "case %zu", i);
        cr_expect(h.kind == PREAMBLE_NONE && h.len == 0, "case %zu", i);
    }
}

Test(preamble, proxy_v1_ends_within_107_bytes)
{
    char line[PROXY_DECIDED_LEN + 2];
    memset(line, 'x', sizeof line);
    memcpy(line, "PROXY UNKNOWN ", 14);
    struct bytes b = { (const uint8_t *)line, PROXY_DECIDED_LEN };
    struct proxy_header h;

    memcpy(line + PROXY_DECIDED_LEN - 2, "\r\n", 2);
    cr_expect_eq(proxy_header_read(b, &h), PROXY_FOUND);
    cr_expect_eq(h.len, PROXY_DECIDED_LEN);

    memcpy(line + PROXY_DECIDED_LEN - 2, "x\r\n", 3);
    cr_expect_eq(proxy_header_read(b, &h), PROXY_NONE);
    b.len = PROXY_DECIDED_LEN + 1;
    cr_expect_eq(proxy_header_read(b, &h), PROXY_NONE);
}

static const struct bytes V2_TCP4 = LITERAL(V2_SIGNATURE "\x21\x11\0\x10"
                                                         "\xc0\0\x02\x01"
                                                         "\xc6\x33\x64\x02"
                                                         "\xdc\x04"
                                                         "\x01\xbb"
                                                         "\x04\0\x01\0"
                                                         "\x16\x03");
static const struct bytes V2_TCP6 =
    LITERAL(V2_SIGNATURE "\x21\x21\0\x24"
                         "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x01"
                         "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\x02"
                         "\0\x01"
                         "\xff\xff");

Test(preamble, proxy_v2)
{
    struct proxy_header h;
    cr_assert_eq(proxy_header_read(V2_TCP4, &h), PROXY_FOUND);
    cr_expect_eq(h.kind, PREAMBLE_PROXY_V2);
    cr_expect_eq(h.len, 32, "addresses and one TLV");
    cr_assert(h.has_addresses);
    expect_endpoint(&h.source, "192.0.2.1", 56324);
    expect_endpoint(&h.destination, "198.51.100.2", 443);

    cr_assert_eq(proxy_header_read(V2_TCP6, &h), PROXY_FOUND);
    cr_expect_eq(h.len, 52);
    cr_assert(h.has_addresses);
    expect_endpoint(&h.source, "2001:db8::1", 1);
    expect_endpoint(&h.destination, "2001:db8::2", 65535);
}

Test(preamble, proxy_v2_without_usable_addresses)
{
    static const struct bytes cases[] = {
        LITERAL(V2_SIGNATURE "\x20\0\0\0"), /* LOCAL */
        LITERAL(V2_SIGNATURE "\x20\x11\0\x0c"
                             "addressesxxx"), /* ... which ignores addresses */
        LITERAL(V2_SIGNATURE "\x21\0\0\x04"
                             "TLVs"), /* UNSPEC */
        LITERAL(V2_SIGNATURE "\x21\x31\0\xd8"
                             "/tmp/socket"), /* UNIX */
        LITERAL(V2_SIGNATURE "\x21\x11\0\x0b"
                             "tooshort..."),    /* less than its addresses */
        LITERAL(V2_SIGNATURE "\x21\0\x3f\xf0"), /* longest, UNSPEC */
    };
    static const size_t lens[] = { 16, 28, 20, 232, 27, PROXY_HEADER_LEN_MAX };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct proxy_header h;
        cr_expect_eq(proxy_header_read(cases[i], &h), PROXY_FOUND, "case %zu", i);
        cr_expect_eq(h.len, lens[i], "case %zu", i);
        cr_expect_not(h.has_addresses, "case %zu", i);
    }
}

/* Every shorter piece asks for more, and never for more than PROXY_DECIDED_LEN. */
Test(preamble, cut_proxy_header_asks_for_more)
{
    const struct bytes v1 = of_text("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n");
    const struct {
        struct bytes whole;
        size_t needed;
    } cases[] = { { v1, v1.len }, { V2_TCP4, 28 }, { V2_TCP6, 52 } };
    for (size_t i = 0; i < COUNT(cases); i++) {
        for (size_t n = 0; n <= cases[i].whole.len; n++) {
            uint8_t *copy = malloc(n + 1);
            cr_assert_not_null(copy);
            memcpy(copy, cases[i].whole.at, n);
            struct proxy_header h;
            enum proxy_result result = proxy_header_read((struct bytes){ copy, n }, &h);
            cr_assert_eq(result, n < cases[i].needed ? PROXY_MORE : PROXY_FOUND,
                         "case %zu cut at %zu", i, n);
            bool is_len_known = i == 0 ? n >= cases[i].needed : n >= 16;
            cr_assert_eq(h.len > 0, is_len_known, "case %zu cut at %zu", i, n);
            free(copy);
        }
        cr_assert_leq(cases[i].needed, PROXY_DECIDED_LEN);
    }
}

/* ---- exchanges before TLS ---- */

static const struct dialogue {
    const char *name;
    struct bytes client, server;
    unsigned waits;
    enum preamble kind;
    uint8_t round_trips;          /* both sides seen */
    uint8_t least_round_trips;    /* client alone seen */
    enum preamble kind_by_server; /* server alone seen */
} DIALOGUES[] = {
    { "smtp", LITERAL("EHLO client.example\r\nSTARTTLS\r\n"),
      LITERAL("220 mx.example ESMTP\r\n250-mx.example\r\n250 STARTTLS\r\n220 2.0.0 go\r\n"), 3,
      PREAMBLE_SMTP, 3, 3, PREAMBLE_SMTP },
    { "lmtp, lower case", LITERAL("lhlo client.example\r\nstarttls\r\n"),
      LITERAL("220 lmtp\r\n250-x\r\n250 STARTTLS\r\n220 go\r\n"), 3, PREAMBLE_SMTP, 3, 3,
      PREAMBLE_SMTP },
    { "imap", LITERAL("a001 STARTTLS\r\n"),
      LITERAL("* OK [CAPABILITY IMAP4rev1 STARTTLS] ready\r\na001 OK begin\r\n"), 2, PREAMBLE_IMAP,
      2, 2, PREAMBLE_IMAP },
    { "imap with capability", LITERAL("a CAPABILITY\r\nb STARTTLS\r\n"),
      LITERAL("* OK ready\r\n* CAPABILITY IMAP4rev1 STARTTLS\r\na OK\r\nb OK\r\n"), 3,
      PREAMBLE_IMAP, 3, 2, PREAMBLE_IMAP },
    { "pop3", LITERAL("CAPA\r\nSTLS\r\n"),
      LITERAL("+OK ready\r\n+OK\r\nSTLS\r\n.\r\n+OK begin\r\n"), 3, PREAMBLE_POP3, 3, 2,
      PREAMBLE_POP3 },
    { "ftp", LITERAL("AUTH TLS\r\n"), LITERAL("220 ftp ready\r\n234 proceed\r\n"), 2, PREAMBLE_FTP,
      2, 2, PREAMBLE_FTP },
    { "ftp ssl", LITERAL("FEAT\r\nAUTH SSL\r\n"),
      LITERAL("220-hello\r\n220 ready\r\n211 End\r\n234 proceed\r\n"), 3, PREAMBLE_FTP, 3, 2,
      PREAMBLE_FTP },
    { "xmpp",
      LITERAL("<?xml version='1.0'?><stream:stream to='x.example' xmlns='jabber:client'>"
              "<starttls xmlns='urn:ietf:params:xml:ns:xmpp-tls'/>"),
      LITERAL("<?xml version='1.0'?><stream:stream from='x.example'><stream:features>"
              "</stream:features><proceed/>"),
      2, PREAMBLE_XMPP, 2, 2, PREAMBLE_XMPP },
    { "ldap",
      LITERAL("\x30\x1d\x02\x01\x01\x77\x18\x80\x16"
              "1.3.6.1.4.1.1466.20037"),
      LITERAL("\x30\x0c\x02\x01\x01\x78\x07\x0a\x01\0\x04\0\x04\0"), 1, PREAMBLE_LDAP, 1, 1,
      PREAMBLE_LDAP },
    { "ldap, long lengths",
      LITERAL("\x30\x84\0\0\0\x1d\x02\x01\x01\x77\x84\0\0\0\x18\x80\x16"
              "1.3.6.1.4.1.1466.20037"),
      LITERAL("\x30\x84\0\0\0\x28\x02\x01\x01\x78\x84\0\0\0\x1f\x0a\x01\0"), 1, PREAMBLE_LDAP, 1, 1,
      PREAMBLE_LDAP },
    { "postgresql", LITERAL("\0\0\0\x08\x04\xd2\x16\x2f"), LITERAL("S"), 1, PREAMBLE_POSTGRESQL, 1,
      1, PREAMBLE_POSTGRESQL },
    { "postgresql after gss", LITERAL("\0\0\0\x08\x04\xd2\x16\x30\0\0\0\x08\x04\xd2\x16\x2f"),
      LITERAL("NS"), 2, PREAMBLE_POSTGRESQL, 2, 2, PREAMBLE_POSTGRESQL },
    { "mysql",
      LITERAL("\x20\0\0\x01\x8d\xae\xff\x19\0\0\0\x01\xff"
              "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
      LITERAL("\x4a\0\0\0\x0a"
              "8.0.36\0"),
      1, PREAMBLE_MYSQL, 1, 1, PREAMBLE_MYSQL },
    { "connect", LITERAL("CONNECT www.example:443 HTTP/1.1\r\nHost: www.example:443\r\n\r\n"),
      LITERAL("HTTP/1.1 200 Connection established\r\n\r\n"), 1, PREAMBLE_HTTP_CONNECT, 1, 1,
      PREAMBLE_HTTP_CONNECT },
    { "socks4", LITERAL("\x04\x01\x01\xbb\xc0\0\x02\x01me\0"),
      LITERAL("\0\x5a\x01\xbb\xc0\0\x02\x01"), 1, PREAMBLE_SOCKS4, 1, 1, PREAMBLE_SOCKS4 },
    { "socks5", LITERAL("\x05\x01\0\x05\x01\0\x01\xc0\0\x02\x01\x01\xbb"),
      LITERAL("\x05\0\x05\0\0\x01\0\0\0\0\0\0"), 2, PREAMBLE_SOCKS5, 2, 2, PREAMBLE_SOCKS5 },
    { "socks5 with password",
      LITERAL("\x05\x02\0\x02\x01\x02me\x02pw\x05\x01\0\x03\x03www\x01\xbb"),
      LITERAL("\x05\x02\x01\0\x05\0\0\x01\0\0\0\0\0\0"), 3, PREAMBLE_SOCKS5, 3, 3,
      PREAMBLE_SOCKS5 },
    { "nntp", LITERAL("STARTTLS\r\n"), LITERAL("200 news.example\r\n382 continue\r\n"), 2,
      PREAMBLE_OTHER, 2, 0, PREAMBLE_OTHER },
};

Test(preamble, both_sides_seen)
{
    for (size_t i = 0; i < COUNT(DIALOGUES); i++) {
        const struct dialogue *d = &DIALOGUES[i];
        struct preamble_verdict v = preamble_recognise(d->client, d->server, d->waits);
        cr_expect_eq(v.kind, d->kind, "%s: %d", d->name, v.kind);
        cr_expect_eq(v.round_trips, d->round_trips, "%s: %u", d->name, v.round_trips);
    }
}

Test(preamble, one_side_seen)
{
    for (size_t i = 0; i < COUNT(DIALOGUES); i++) {
        const struct dialogue *d = &DIALOGUES[i];
        struct preamble_verdict v = preamble_recognise(d->client, (struct bytes){ 0 }, 0);
        cr_expect_eq(v.kind, d->kind, "%s, client: %d", d->name, v.kind);
        cr_expect_eq(v.round_trips, d->least_round_trips, "%s: %u", d->name, v.round_trips);
        v = preamble_recognise((struct bytes){ 0 }, d->server, 0);
        cr_expect_eq(v.kind, d->kind_by_server, "%s, server: %d", d->name, v.kind);
    }
}

Test(preamble, proxy_header_in_front_costs_nothing)
{
    for (size_t i = 0; i < COUNT(DIALOGUES); i++) {
        const struct dialogue *d = &DIALOGUES[i];
        uint8_t client[1024];
        size_t proxy_len = V2_TCP6.len;
        memcpy(client, V2_TCP6.at, proxy_len);
        memcpy(client + proxy_len, d->client.at, d->client.len);
        struct preamble_verdict v = preamble_recognise(
            (struct bytes){ client, proxy_len + d->client.len }, d->server, d->waits);
        cr_expect_eq(v.kind, d->kind, "%s: %d", d->name, v.kind);
        cr_expect_eq(v.round_trips, d->round_trips, "%s: %u", d->name, v.round_trips);
    }
}

Test(preamble, proxy_header_alone)
{
    struct bytes v1 = of_text("PROXY TCP4 192.0.2.1 198.51.100.2 56324 443\r\n");
    struct preamble_verdict v = preamble_recognise(v1, (struct bytes){ 0 }, 0);
    cr_expect_eq(v.kind, PREAMBLE_PROXY_V1);
    cr_expect_eq(v.round_trips, 0);
    v = preamble_recognise(V2_TCP6, (struct bytes){ 0 }, 0);
    cr_expect_eq(v.kind, PREAMBLE_PROXY_V2);
    v = preamble_recognise(bytes_first(V2_TCP6, 30), (struct bytes){ 0 }, 0);
    cr_expect_eq(v.kind, PREAMBLE_PROXY_V2, "cut by a snaplen");
}

Test(preamble, nothing_and_unknown)
{
    struct preamble_verdict v = preamble_recognise((struct bytes){ 0 }, (struct bytes){ 0 }, 0);
    cr_expect_eq(v.kind, PREAMBLE_NONE);
    v = preamble_recognise(of_text("GET / HTTP/1.1\r\nUpgrade: TLS/1.0\r\n\r\n"),
                           of_text("HTTP/1.1 101 Switching Protocols\r\n\r\n"), 1);
    cr_expect_eq(v.kind, PREAMBLE_OTHER);
    cr_expect_eq(v.round_trips, 1);
    v = preamble_recognise(of_text("x"), of_text("y"), 100000);
    cr_expect_eq(v.round_trips, 255);
}

/* Kept bytes may end anywhere: no cut may crash, and what is whole is enough. */
Test(preamble, every_cut_of_both_sides)
{
    for (size_t i = 0; i < COUNT(DIALOGUES); i++) {
        const struct dialogue *d = &DIALOGUES[i];
        for (size_t n = 0; n <= d->client.len; n++) {
            for (size_t m = 0; m <= d->server.len; m++) {
                uint8_t *client = malloc(n + 1), *server = malloc(m + 1);
                cr_assert(client && server);
                memcpy(client, d->client.at, n);
                memcpy(server, d->server.at, m);
                struct preamble_verdict v = preamble_recognise(
                    (struct bytes){ client, n }, (struct bytes){ server, m }, d->waits);
                if (n == d->client.len && m > 2)
                    cr_assert_eq(v.kind, d->kind, "%s: %zu, %zu", d->name, n, m);
                free(client);
                free(server);
            }
        }
    }
}
