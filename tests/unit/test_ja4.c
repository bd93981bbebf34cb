/* SPDX-License-Identifier: Apache-2.0 */
#include "hello.h"

#include "hello_builder.h"
#include "hello_samples.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define COUNT(array) (sizeof array / sizeof *array)

/* What a client sends, as lists; without ALPN or signature algorithms when these are empty. */
struct client {
    uint16_t version;
    const uint16_t *suites, *extensions, *signature_algorithms;
    size_t suite_count, extension_count, signature_algorithm_count;
    const char *alpn; /* protocol_name_list */
};

static void add_client(struct builder *b, const struct client *c)
{
    add_client_fields(b, c->suites, c->suite_count);
    size_t extensions = open_vector(b, 2);
    for (size_t i = 0; i < c->extension_count; i++) {
        size_t extension = open_extension(b, c->extensions[i]);
        if (c->extensions[i] == 43)
            add_u16_list(b, &c->version, 1, 1);
        if (c->extensions[i] == 13)
            add_u16_list(b, c->signature_algorithms, c->signature_algorithm_count, 2);
        if (c->extensions[i] == 16) {
            size_t list = open_vector(b, 2);
            add_text(b, c->alpn);
            close_vector(b, list, 2);
        }
        close_vector(b, extension, 2);
    }
    close_vector(b, extensions, 2);
}

static void expect_ja4(struct bytes body, const char *expected)
{
    struct client_hello hello;
    char text[JA4_TEXT_SIZE];
    cr_assert(client_hello_parse(body, body.len, &hello));
    ja4_text(&hello, text);
    cr_expect_str_eq(text, expected);
}

static void expect_client_ja4(const struct client *c, const char *expected)
{
    struct builder b = { 0 };
    add_client(&b, c);
    expect_ja4(built(&b), expected);
}

/* The example of the description, in the order it gives. */
static const uint16_t CHROME_SUITES[] = { 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f,
                                          0xc02c, 0xc030, 0xcca9, 0xcca8, 0xc013,
                                          0xc014, 0x009c, 0x009d, 0x002f, 0x0035 };
static const uint16_t CHROME_EXTENSIONS[] = { 0x001b, 0x0000, 0x0033, 0x0010, 0x4469, 0x0017,
                                              0x002d, 0x000d, 0x0005, 0x0023, 0x0012, 0x002b,
                                              0xff01, 0x000b, 0x000a, 0x0015 };
static const uint16_t CHROME_SIGNATURES[] = { 0x0403, 0x0804, 0x0401, 0x0503,
                                              0x0805, 0x0501, 0x0806, 0x0601 };

static const struct client CHROME = {
    .version = TLS_1_3,
    .suites = CHROME_SUITES,
    .suite_count = COUNT(CHROME_SUITES),
    .extensions = CHROME_EXTENSIONS,
    .extension_count = COUNT(CHROME_EXTENSIONS),
    .signature_algorithms = CHROME_SIGNATURES,
    .signature_algorithm_count = COUNT(CHROME_SIGNATURES),
    .alpn = "\2h2\10http/1.1",
};

Test(ja4, example_of_the_description)
{
    expect_client_ja4(&CHROME, "t13d1516h2_8daaf6152771_e5627efa2ab1");
}

Test(ja4, later_chrome_with_ech)
{
    static const uint16_t extensions[] = { 0x0005, 0x000a, 0x000b, 0x000d, 0x0012, 0x0017,
                                           0x001b, 0x0023, 0x002b, 0x002d, 0x0033, 0x44cd,
                                           0xfe0d, 0xff01, 0x0000, 0x0010 };
    struct client c = CHROME;
    c.extensions = extensions;
    c.extension_count = COUNT(extensions);
    expect_client_ja4(&c, "t13d1516h2_8daaf6152771_d8a2da3f94cd");
}

Test(ja4, without_signature_algorithms)
{
    struct client c = CHROME;
    c.signature_algorithm_count = 0;
    expect_client_ja4(&c, "t13d1516h2_8daaf6152771_6d807ffa2a79");
}

Test(ja4, order_and_grease_do_not_matter)
{
    uint16_t suites[COUNT(CHROME_SUITES) + 1] = { 0x1a1a };
    uint16_t extensions[COUNT(CHROME_EXTENSIONS) + 2] = { 0x2a2a, 0xfafa };
    uint16_t signatures[COUNT(CHROME_SIGNATURES) + 1] = { 0x3a3a };
    for (size_t i = 0; i < COUNT(CHROME_SUITES); i++)
        suites[COUNT(CHROME_SUITES) - i] = CHROME_SUITES[i];
    for (size_t i = 0; i < COUNT(CHROME_EXTENSIONS); i++)
        extensions[COUNT(CHROME_EXTENSIONS) + 1 - i] = CHROME_EXTENSIONS[i];
    memcpy(signatures + 1, CHROME_SIGNATURES, sizeof CHROME_SIGNATURES);

    struct client c = CHROME;
    c.suites = suites;
    c.suite_count = COUNT(suites);
    c.extensions = extensions;
    c.extension_count = COUNT(extensions);
    c.signature_algorithms = signatures;
    c.signature_algorithm_count = COUNT(signatures);
    expect_client_ja4(&c, "t13d1516h2_8daaf6152771_e5627efa2ab1");
}

/* The expected values were computed by a separate script. */
Test(ja4, hellos_of_real_stacks)
{
    static const struct {
        struct bytes message;
        const char *ja4;
    } cases[] = {
        { { CLIENT_OPENSSL, sizeof CLIENT_OPENSSL }, "t13d3111h2_e8f1e7e78f70_1f22a2ca17c4" },
        { { CLIENT_OPENSSL_EARLY, sizeof CLIENT_OPENSSL_EARLY },
          "t13d3113h2_e8f1e7e78f70_87f12a3f655c" },
        { { CLIENT_OPENSSL_SECOND, sizeof CLIENT_OPENSSL_SECOND },
          "t13d311000_e8f1e7e78f70_1f22a2ca17c4" },
        { { CLIENT_OPENSSL_TICKET, sizeof CLIENT_OPENSSL_TICKET },
          "t13d311000_e8f1e7e78f70_1f22a2ca17c4" },
        { { CLIENT_GNUTLS, sizeof CLIENT_GNUTLS }, "t13d2914h2_723694b0fccc_2cc26d266019" },
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        expect_ja4(bytes_after(cases[i].message, 4), cases[i].ja4);
}

Test(ja4, versions_and_missing_server_name)
{
    static const struct {
        uint16_t version;
        const char *code;
    } cases[] = { { TLS_1_3, "13" }, { TLS_1_2, "12" }, { TLS_1_1, "11" },
                  { TLS_1_0, "10" }, { SSL_3_0, "s3" }, { 0x7f1c, "00" } };
    static const uint16_t extensions[] = { 43 };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct client c = { .version = cases[i].version,
                            .suites = CHROME_SUITES,
                            .suite_count = 1,
                            .extensions = extensions,
                            .extension_count = 1 };
        struct builder b = { 0 };
        struct client_hello hello;
        char text[JA4_TEXT_SIZE], start[16];
        add_client(&b, &c);
        cr_assert(client_hello_parse(built(&b), b.len, &hello));
        ja4_text(&hello, text);
        snprintf(start, sizeof start, "t%si010100_", cases[i].code);
        cr_expect_eq(strncmp(text, start, strlen(start)), 0, "%s", text);
    }
}

Test(ja4, first_and_last_character_of_alpn)
{
    static const struct {
        const char *alpn, *code;
    } cases[] = {
        { "\10http/1.1", "h1" },
        { "\3dot", "dt" },
        { "\1h", "hh" },
        { "", "00" },
        { "\1\xab", "ab" },
        { "\2\xab\xcd", "ad" },
        { "\2\x30\xab", "3b" },
        { "\4\x30\x31\xab\xcd", "3d" },
        { "\4\x30\xab\xcd\x31", "01" },
    };
    static const uint16_t extensions[] = { 16, 10 };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct client c = { .suites = CHROME_SUITES,
                            .suite_count = 1,
                            .extensions = extensions,
                            .extension_count = 2,
                            .alpn = cases[i].alpn };
        struct builder b = { 0 };
        struct client_hello hello;
        char text[JA4_TEXT_SIZE];
        add_client(&b, &c);
        cr_assert(client_hello_parse(built(&b), b.len, &hello));
        ja4_text(&hello, text);
        cr_expect_eq(strncmp(text + 8, cases[i].code, 2), 0, "case %zu: %s", i, text);
    }
}

Test(ja4, nothing_to_hash)
{
    struct builder b = { 0 };
    add_client_fields(&b, NULL, 0);
    expect_ja4(built(&b), "t12i000000_000000000000_000000000000");
}

Test(ja4, counts_stop_at_99)
{
    uint16_t suites[120], extensions[120];
    for (unsigned i = 0; i < COUNT(suites); i++) {
        suites[i] = (uint16_t)(0x2000 + i);
        extensions[i] = (uint16_t)(0x3000 + i);
    }
    struct client c = { .suites = suites,
                        .suite_count = COUNT(suites),
                        .extensions = extensions,
                        .extension_count = COUNT(extensions) };
    struct builder b = { 0 };
    struct client_hello hello;
    char text[JA4_TEXT_SIZE];
    add_client(&b, &c);
    cr_assert(client_hello_parse(built(&b), b.len, &hello));
    ja4_text(&hello, text);
    cr_expect_eq(strncmp(text, "t12i999900_", 11), 0, "%s", text);
    cr_expect_eq(strlen(text), JA4_TEXT_SIZE - 1);
}

Test(ja4, none_for_a_hello_that_no_client_sends)
{
    uint16_t suites[600];
    for (unsigned i = 0; i < COUNT(suites); i++)
        suites[i] = (uint16_t)(0x2000 + i);
    struct builder b = { 0 };
    add_client_fields(&b, suites, COUNT(suites));
    expect_ja4(built(&b), "");

    struct builder enough = { 0 };
    add_client_fields(&enough, suites, 512);
    struct client_hello hello;
    char text[JA4_TEXT_SIZE];
    cr_assert(client_hello_parse(built(&enough), enough.len, &hello));
    ja4_text(&hello, text);
    cr_expect_eq(strlen(text), JA4_TEXT_SIZE - 1);
}

Test(ja4, none_for_a_cut_hello)
{
    struct bytes body = bytes_after((struct bytes){ CLIENT_GNUTLS, sizeof CLIENT_GNUTLS }, 4);
    for (size_t n = 34; n < body.len; n++) {
        struct client_hello hello;
        char text[JA4_TEXT_SIZE] = "old";
        cr_assert(client_hello_parse(bytes_first(body, n), body.len, &hello));
        ja4_text(&hello, text);
        cr_assert_str_eq(text, "", "cut at %zu", n);
    }
}

Test(ja4, none_for_the_sslv2_format)
{
    struct client_hello hello = { .complete = true, .is_v2_format = true };
    char text[JA4_TEXT_SIZE] = "old";
    ja4_text(&hello, text);
    cr_expect_str_eq(text, "");
}
