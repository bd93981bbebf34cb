/* SPDX-License-Identifier: Apache-2.0 */
#include "hello.h"

#include "hello_builder.h"
#include "hello_samples.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define BYTES(array) ((struct bytes){ array, sizeof array })
#define COUNT(array) (sizeof array / sizeof *array)

static const uint16_t SUITES[] = { 0x1301, 0x1302 };

static bool equals_text(struct bytes b, const char *text)
{
    return bytes_equal(b, (struct bytes){ (const uint8_t *)text, strlen(text) });
}

/* The body of a whole message and what its header announced. */
static struct bytes message_body(struct bytes message)
{
    struct reader r = reader_of(message);
    reader_u8(&r);
    return reader_vector(&r, 3).rest;
}

static struct client_hello client_of(struct bytes body)
{
    struct client_hello hello;
    cr_assert(client_hello_parse(body, body.len, &hello));
    return hello;
}

static struct server_hello server_of(struct bytes body)
{
    struct server_hello hello;
    cr_assert(server_hello_parse(HANDSHAKE_SERVER_HELLO, body, body.len, &hello));
    return hello;
}

/* ---- hellos of real stacks ---- */

Test(hello, openssl_client)
{
    struct client_hello h = client_of(message_body(BYTES(CLIENT_OPENSSL)));
    cr_expect(h.complete);
    cr_expect_eq(h.legacy_version, TLS_1_2);
    cr_expect_eq(h.max_version, TLS_1_3);
    cr_expect_eq(h.random.len, 32);
    cr_expect_eq(h.random.at[0], 0xe5);
    cr_expect_eq(h.session_id.len, 32);
    cr_expect_eq(h.cipher_suites.len, 2 * 31);
    cr_expect(equals_text(h.server_name, "www.test.example"));
    cr_expect(equals_text(h.alpn, "\2h2\10http/1.1"));
    cr_expect(h.has_session_ticket);
    cr_expect_eq(h.session_ticket.len, 0);
    cr_expect(h.has_key_share);
    cr_expect_not(h.has_early_data || h.has_pre_shared_key || h.has_cookie || h.is_v2_format ||
                  h.has_encrypted_client_hello || h.has_post_handshake_auth);
    cr_expect_eq(h.record_size_limit, 0);
}

Test(hello, openssl_client_with_early_data)
{
    struct client_hello h = client_of(message_body(BYTES(CLIENT_OPENSSL_EARLY)));
    cr_expect(h.complete);
    cr_expect(h.has_early_data);
    cr_expect(h.has_pre_shared_key);
    cr_expect_eq(h.psk_identity_count, 1);
    cr_expect_eq(h.psk_identity.len, 32);
    cr_expect_eq(h.obfuscated_ticket_age, 300838967);
    cr_expect_eq(h.psk_binder.len, 48);
    cr_expect_eq(h.psk_binder.at + h.psk_binder.len,
                 CLIENT_OPENSSL_EARLY + sizeof CLIENT_OPENSSL_EARLY);
}

Test(hello, client_with_ticket_of_tls12)
{
    struct client_hello h = client_of(message_body(BYTES(CLIENT_OPENSSL_TICKET)));
    cr_expect(h.complete);
    cr_expect(h.has_session_ticket);
    cr_expect_gt(h.session_ticket.len, 100);
    cr_expect_not(h.has_pre_shared_key);
}

Test(hello, gnutls_client)
{
    struct client_hello h = client_of(message_body(BYTES(CLIENT_GNUTLS)));
    cr_expect(h.complete);
    cr_expect_eq(h.max_version, TLS_1_3);
    cr_expect_eq(h.record_size_limit, 16385);
    cr_expect(equals_text(h.server_name, "www.test.example"));
    cr_expect(h.has_session_ticket);
}

Test(hello, server_full_and_resumed)
{
    struct server_hello full = server_of(message_body(BYTES(SERVER_FULL)));
    cr_expect(full.complete);
    cr_expect_eq(full.version, TLS_1_3);
    cr_expect_eq(full.legacy_version, TLS_1_2);
    cr_expect_eq(full.cipher_suite, 0x1302);
    cr_expect_eq(full.session_id.len, 32);
    cr_expect(full.has_key_share);
    cr_expect_eq(full.key_share_group, 29);
    cr_expect_not(full.has_pre_shared_key || full.is_hello_retry_request || full.is_downgrade);

    struct server_hello resumed = server_of(message_body(BYTES(SERVER_RESUMED)));
    cr_expect(resumed.complete);
    cr_expect(resumed.has_pre_shared_key);
    cr_expect_eq(resumed.selected_identity, 0);
}

Test(hello, hello_retry_request)
{
    struct server_hello h = server_of(message_body(BYTES(SERVER_RETRY)));
    cr_expect(h.complete);
    cr_expect(h.is_hello_retry_request);
    cr_expect_eq(h.version, TLS_1_3);
    cr_expect_eq(h.key_share_group, 24);

    struct client_hello second = client_of(message_body(BYTES(CLIENT_OPENSSL_SECOND)));
    cr_expect(second.complete);
    cr_expect(bytes_equal(second.session_id, h.session_id));
}

Test(hello, server_of_tls12)
{
    struct server_hello full = server_of(message_body(BYTES(SERVER_12)));
    cr_expect(full.complete);
    cr_expect_eq(full.version, TLS_1_2);
    cr_expect_eq(full.cipher_suite, 0xc02c);
    cr_expect(full.has_session_ticket);
    cr_expect(equals_text(full.alpn, "h2"));
    cr_expect_eq(full.session_id.len, 0);

    struct server_hello resumed = server_of(message_body(BYTES(SERVER_12_RESUMED)));
    cr_expect(resumed.complete);
    cr_expect_not(resumed.has_session_ticket);
    struct client_hello client = client_of(message_body(BYTES(CLIENT_OPENSSL_TICKET)));
    cr_expect(bytes_equal(resumed.session_id, client.session_id));
}

/* ---- every truncation ---- */

/* Bits of what is known of a hello. */
static unsigned client_knowledge(const struct client_hello *h)
{
    bool known[] = {
        h->session_id.len > 0,
        h->cipher_suites.len > 0,
        h->server_name.len > 0,
        h->alpn.len > 0,
        h->has_session_ticket,
        h->session_ticket.len > 0,
        h->has_early_data,
        h->has_pre_shared_key,
        h->psk_identity_count > 0,
        h->psk_identity.len > 0,
        h->obfuscated_ticket_age != 0,
        h->psk_binder.len > 0,
        h->has_key_share,
        h->has_cookie,
        h->has_encrypted_client_hello,
        h->has_post_handshake_auth,
        h->record_size_limit != 0,
        h->max_version > TLS_1_2,
    };
    unsigned bits = 0;
    for (unsigned i = 0; i < COUNT(known); i++)
        bits |= (unsigned)known[i] << i;
    return bits;
}

static bool empty_or_equal(struct bytes part, struct bytes whole)
{
    return part.len == 0 || bytes_equal(part, whole);
}

static bool client_agrees(const struct client_hello *part, const struct client_hello *whole)
{
    return part->legacy_version == whole->legacy_version &&
           bytes_equal(part->random, whole->random) &&
           empty_or_equal(part->session_id, whole->session_id) &&
           empty_or_equal(part->cipher_suites, whole->cipher_suites) &&
           bytes_equal(part->extensions, bytes_first(whole->extensions, part->extensions.len)) &&
           (part->max_version == whole->max_version ||
            part->max_version == whole->legacy_version) &&
           empty_or_equal(part->server_name, whole->server_name) &&
           empty_or_equal(part->alpn, whole->alpn) &&
           empty_or_equal(part->session_ticket, whole->session_ticket) &&
           part->psk_identity_count <= whole->psk_identity_count &&
           empty_or_equal(part->psk_identity, whole->psk_identity) &&
           (part->obfuscated_ticket_age == 0 ||
            part->obfuscated_ticket_age == whole->obfuscated_ticket_age) &&
           empty_or_equal(part->psk_binder, whole->psk_binder) &&
           (part->record_size_limit == 0 || part->record_size_limit == whole->record_size_limit);
}

/* A copy of the first n bytes, so that a sanitizer sees every read behind them. */
static struct bytes exact_copy(struct bytes b, size_t n)
{
    uint8_t *copy = malloc(n > 0 ? n : 1);
    cr_assert_not_null(copy);
    if (n > 0)
        memcpy(copy, b.at, n);
    return (struct bytes){ copy, n };
}

static void expect_client_grows(struct bytes body, const char *name)
{
    struct client_hello whole = client_of(body);
    unsigned known = 0;
    cr_assert(whole.complete, "%s", name);
    for (size_t n = 0; n < body.len; n++) {
        struct bytes part_bytes = exact_copy(body, n);
        struct client_hello part;
        bool is_read = client_hello_parse(part_bytes, body.len, &part);
        cr_assert_eq(is_read, n >= 34, "%s cut at %zu", name, n);
        if (is_read) {
            cr_assert_not(part.complete, "%s cut at %zu", name, n);
            cr_assert(client_agrees(&part, &whole), "%s cut at %zu", name, n);
            unsigned now = client_knowledge(&part);
            cr_assert_eq(known & ~now, 0, "%s cut at %zu lost %x", name, n, known & ~now);
            known = now;
        }
        free((void *)part_bytes.at);
    }
    cr_expect_eq(known & ~client_knowledge(&whole), 0, "%s", name);
}

Test(hello, cut_client_hello_gives_what_could_be_read)
{
    expect_client_grows(message_body(BYTES(CLIENT_OPENSSL)), "openssl");
    expect_client_grows(message_body(BYTES(CLIENT_OPENSSL_EARLY)), "openssl early");
    expect_client_grows(message_body(BYTES(CLIENT_OPENSSL_SECOND)), "openssl second");
    expect_client_grows(message_body(BYTES(CLIENT_OPENSSL_TICKET)), "openssl ticket");
    expect_client_grows(message_body(BYTES(CLIENT_GNUTLS)), "gnutls");
}

Test(hello, server_name_is_known_as_soon_as_it_is_whole)
{
    struct bytes body = message_body(BYTES(CLIENT_OPENSSL));
    struct client_hello whole = client_of(body), part;
    size_t name_end = (size_t)(whole.server_name.at - body.at) + whole.server_name.len;

    cr_assert(client_hello_parse(bytes_first(body, name_end), body.len, &part));
    cr_expect(equals_text(part.server_name, "www.test.example"));
    cr_expect_not(part.complete);
    cr_assert(client_hello_parse(bytes_first(body, name_end - 1), body.len, &part));
    cr_expect_eq(part.server_name.len, 0);
}

static bool server_agrees(const struct server_hello *part, const struct server_hello *whole)
{
    return part->legacy_version == whole->legacy_version &&
           (part->version == whole->version || part->version == whole->legacy_version) &&
           bytes_equal(part->random, whole->random) &&
           empty_or_equal(part->session_id, whole->session_id) &&
           (part->cipher_suite == 0 || part->cipher_suite == whole->cipher_suite) &&
           part->is_hello_retry_request == whole->is_hello_retry_request &&
           part->is_downgrade == whole->is_downgrade &&
           part->has_session_ticket <= whole->has_session_ticket &&
           part->has_pre_shared_key <= whole->has_pre_shared_key &&
           part->has_key_share <= whole->has_key_share &&
           (part->key_share_group == 0 || part->key_share_group == whole->key_share_group) &&
           empty_or_equal(part->alpn, whole->alpn);
}

Test(hello, cut_server_hello_gives_what_could_be_read)
{
    const struct bytes messages[] = { BYTES(SERVER_FULL), BYTES(SERVER_RESUMED),
                                      BYTES(SERVER_RETRY), BYTES(SERVER_12),
                                      BYTES(SERVER_12_RESUMED) };
    for (size_t i = 0; i < COUNT(messages); i++) {
        struct bytes body = message_body(messages[i]);
        struct server_hello whole = server_of(body);
        for (size_t n = 0; n < body.len; n++) {
            struct bytes part_bytes = exact_copy(body, n);
            struct server_hello part;
            bool is_read = server_hello_parse(HANDSHAKE_SERVER_HELLO, part_bytes, body.len, &part);
            cr_assert_eq(is_read, n >= 34, "message %zu cut at %zu", i, n);
            if (is_read) {
                cr_assert_not(part.complete, "message %zu cut at %zu", i, n);
                cr_assert(server_agrees(&part, &whole), "message %zu cut at %zu", i, n);
            }
            free((void *)part_bytes.at);
        }
    }
}

Test(hello, failure_leaves_the_result_untouched)
{
    struct client_hello client = { .psk_identity_count = 7 };
    struct server_hello server = { .cipher_suite = 7 };
    struct bytes body = message_body(BYTES(CLIENT_OPENSSL));

    cr_expect_not(client_hello_parse(bytes_first(body, 33), body.len, &client));
    cr_expect_not(client_hello_parse(body, 33, &client));
    cr_expect_eq(client.psk_identity_count, 7);
    cr_expect_not(
        server_hello_parse(HANDSHAKE_SERVER_HELLO, bytes_first(body, 33), body.len, &server));
    cr_expect_not(server_hello_parse(HANDSHAKE_HELLO_RETRY_REQUEST_DRAFT, bytes_first(body, 1),
                                     body.len, &server));
    cr_expect_eq(server.cipher_suite, 7);
}

Test(hello, bytes_behind_the_announced_length_are_not_read)
{
    struct bytes message = BYTES(CLIENT_OPENSSL_EARLY);
    struct bytes body = message_body(message);
    struct client_hello whole = client_of(body), h;
    struct builder b = { 0 };
    for (size_t i = 0; i < body.len; i++)
        add_u8(&b, body.at[i]);
    add_filled(&b, 0xff, 100);

    cr_assert(client_hello_parse(built(&b), body.len, &h));
    cr_expect(h.complete);
    cr_expect(bytes_equal(h.psk_binder, whole.psk_binder));
}

/* ---- structure ---- */

Test(hello, extensions_may_be_absent)
{
    struct builder b = { 0 };
    add_client_fields(&b, SUITES, COUNT(SUITES));
    struct client_hello h = client_of(built(&b));
    cr_expect(h.complete);
    cr_expect_eq(h.max_version, TLS_1_2);

    struct builder s = { 0 };
    add_server_fields(&s, TLS_1_0);
    struct server_hello server = server_of(built(&s));
    cr_expect(server.complete);
    cr_expect_eq(server.version, TLS_1_0);
}

Test(hello, broken_outer_structure_is_not_complete)
{
    struct builder trailing = { 0 };
    add_client_fields(&trailing, SUITES, COUNT(SUITES));
    size_t extensions = open_vector(&trailing, 2);
    add_server_name(&trailing, "a.example");
    close_vector(&trailing, extensions, 2);
    struct client_hello h = client_of(built(&trailing));
    cr_expect(h.complete);
    add_u8(&trailing, 0);
    h = client_of(built(&trailing));
    cr_expect_not(h.complete, "a byte behind the extensions");
    cr_expect(equals_text(h.server_name, "a.example"));

    struct builder half = { 0 };
    add_client_fields(&half, SUITES, COUNT(SUITES));
    extensions = open_vector(&half, 2);
    add_server_name(&half, "a.example");
    add_u16(&half, 42);
    close_vector(&half, extensions, 2);
    h = client_of(built(&half));
    cr_expect_not(h.complete, "half an extension header");
    cr_expect_not(h.has_early_data);

    struct builder beyond = { 0 };
    add_client_fields(&beyond, SUITES, COUNT(SUITES));
    extensions = open_vector(&beyond, 2);
    add_u16(&beyond, 42);
    add_u16(&beyond, 5);
    close_vector(&beyond, extensions, 2);
    h = client_of(built(&beyond));
    cr_expect_not(h.complete, "an extension longer than the vector");

    struct builder odd = { 0 };
    add_u16(&odd, TLS_1_2);
    add_filled(&odd, 1, 32);
    add_u8(&odd, 0);
    size_t suites = open_vector(&odd, 2);
    add_filled(&odd, 1, 3);
    close_vector(&odd, suites, 2);
    add_u16(&odd, 0x0100);
    h = client_of(built(&odd));
    cr_expect_not(h.complete, "an odd length of cipher suites");
}

Test(hello, broken_extension_concerns_itself_only)
{
    struct builder b = { 0 };
    add_client_fields(&b, SUITES, COUNT(SUITES));
    size_t extensions = open_vector(&b, 2);

    size_t name = open_extension(&b, 0); /* list claims more than there is */
    add_u16(&b, 500);
    add_u8(&b, 0);
    add_u16(&b, 400);
    add_text(&b, "short");
    close_vector(&b, name, 2);
    size_t alpn = open_extension(&b, 16);
    add_u8(&b, 9);
    close_vector(&b, alpn, 2);
    size_t versions = open_extension(&b, 43);
    close_vector(&b, versions, 2);
    size_t limit = open_extension(&b, 28);
    add_u8(&b, 1);
    close_vector(&b, limit, 2);
    add_empty_extension(&b, 42);
    size_t psk = open_extension(&b, 41);
    add_u16(&b, 3);
    add_u8(&b, 7);
    close_vector(&b, psk, 2);
    close_vector(&b, extensions, 2);

    struct client_hello h = client_of(built(&b));
    cr_expect(h.complete);
    cr_expect_eq(h.server_name.len, 0);
    cr_expect_eq(h.alpn.len, 0);
    cr_expect_eq(h.max_version, TLS_1_2);
    cr_expect_eq(h.record_size_limit, 0);
    cr_expect(h.has_early_data);
    cr_expect(h.has_pre_shared_key);
    cr_expect_eq(h.psk_identity_count, 0);
}

Test(hello, first_of_duplicate_extensions_counts)
{
    struct builder b = { 0 };
    add_client_fields(&b, SUITES, COUNT(SUITES));
    size_t extensions = open_vector(&b, 2);
    add_server_name(&b, "first.example");
    add_server_name(&b, "second.example");
    for (int i = 0; i < 3; i++) {
        size_t psk = open_extension(&b, 41), identities = open_vector(&b, 2);
        size_t identity = open_vector(&b, 2);
        add_filled(&b, (uint8_t)(i + 1), 8);
        close_vector(&b, identity, 2);
        add_be(&b, 5, 4);
        close_vector(&b, identities, 2);
        close_vector(&b, psk, 2);
    }
    close_vector(&b, extensions, 2);

    struct client_hello h = client_of(built(&b));
    cr_expect(h.complete);
    cr_expect(equals_text(h.server_name, "first.example"));
    cr_expect_eq(h.psk_identity_count, 1);
    cr_expect_eq(h.psk_identity.at[0], 1);

    struct builder s = { 0 };
    add_server_fields(&s, TLS_1_2);
    extensions = open_vector(&s, 2);
    for (uint16_t version = TLS_1_3; version >= TLS_1_2; version--) {
        size_t selected = open_extension(&s, 43);
        add_u16(&s, version);
        close_vector(&s, selected, 2);
    }
    close_vector(&s, extensions, 2);
    cr_expect_eq(server_of(built(&s)).version, TLS_1_3);
}

Test(hello, server_name_list_of_other_types)
{
    struct builder b = { 0 };
    add_client_fields(&b, SUITES, COUNT(SUITES));
    size_t extensions = open_vector(&b, 2), extension = open_extension(&b, 0);
    size_t list = open_vector(&b, 2);
    for (uint8_t type = 9; type <= 9; type--) { /* 9 down to 0 */
        add_u8(&b, type);
        size_t name = open_vector(&b, 2);
        add_text(&b, type == 0 ? "host.example" : "other");
        close_vector(&b, name, 2);
    }
    close_vector(&b, list, 2);
    close_vector(&b, extension, 2);
    close_vector(&b, extensions, 2);
    cr_expect(equals_text(client_of(built(&b)).server_name, "host.example"));
}

Test(hello, several_psk_identities)
{
    struct builder b = { 0 };
    add_client_fields(&b, SUITES, COUNT(SUITES));
    size_t extensions = open_vector(&b, 2), psk = open_extension(&b, 41);
    size_t identities = open_vector(&b, 2);
    for (uint8_t i = 1; i <= 3; i++) {
        size_t identity = open_vector(&b, 2);
        add_filled(&b, i, 100u * i);
        close_vector(&b, identity, 2);
        add_be(&b, i, 4);
    }
    close_vector(&b, identities, 2);
    size_t binders = open_vector(&b, 2);
    for (uint8_t i = 1; i <= 3; i++) {
        size_t binder = open_vector(&b, 1);
        add_filled(&b, (uint8_t)(0x80 + i), 32);
        close_vector(&b, binder, 1);
    }
    close_vector(&b, binders, 2);
    close_vector(&b, psk, 2);
    close_vector(&b, extensions, 2);

    struct client_hello h = client_of(built(&b));
    cr_expect(h.complete);
    cr_expect_eq(h.psk_identity_count, 3);
    cr_expect_eq(h.psk_identity.len, 100);
    cr_expect_eq(h.obfuscated_ticket_age, 1);
    cr_expect_eq(h.psk_binder.len, 32);
    cr_expect_eq(h.psk_binder.at[0], 0x81);
    expect_client_grows(built(&b), "three identities");
}

/* GREASE everywhere, a hybrid key share of 1216 bytes, ECH, cookie, post-handshake authentication.
 */
Test(hello, post_quantum_client_with_grease_and_ech)
{
    static const uint16_t suites[] = { 0x8a8a, 0x1301 };
    static const uint16_t versions[] = { 0xfafa, TLS_1_2, TLS_1_3 };
    struct builder b = { 0 };
    add_client_fields(&b, suites, COUNT(suites));
    size_t extensions = open_vector(&b, 2);
    add_empty_extension(&b, 0x2a2a);
    size_t shares = open_extension(&b, 51), list = open_vector(&b, 2);
    add_u16(&b, 0x2a2a);
    add_u16(&b, 1);
    add_u8(&b, 0);
    add_u16(&b, 0x11ec);
    size_t share = open_vector(&b, 2);
    add_filled(&b, 0x77, 1216);
    close_vector(&b, share, 2);
    close_vector(&b, list, 2);
    close_vector(&b, shares, 2);
    size_t ech = open_extension(&b, 0xfe0d);
    add_filled(&b, 0, 200);
    close_vector(&b, ech, 2);
    add_server_name(&b, "public.example");
    size_t cookie = open_extension(&b, 44), value = open_vector(&b, 2);
    add_filled(&b, 1, 20);
    close_vector(&b, value, 2);
    close_vector(&b, cookie, 2);
    add_empty_extension(&b, 49);
    add_supported_versions(&b, versions, COUNT(versions));
    size_t last = open_extension(&b, 0x6a6a);
    add_u8(&b, 0);
    close_vector(&b, last, 2);
    close_vector(&b, extensions, 2);

    struct client_hello h = client_of(built(&b));
    cr_expect(h.complete);
    cr_expect_eq(h.max_version, TLS_1_3);
    cr_expect(h.has_key_share && h.has_encrypted_client_hello && h.has_cookie &&
              h.has_post_handshake_auth);
    cr_expect(equals_text(h.server_name, "public.example"));
}

Test(hello, all_extension_types_alone_are_no_harm)
{
    struct builder none = { 0 };
    add_client_fields(&none, SUITES, COUNT(SUITES));
    struct client_hello without = client_of(built(&none));

    for (unsigned type = 0; type <= 0xffff; type++) {
        struct builder b = { .len = 0 };
        add_client_fields(&b, SUITES, COUNT(SUITES));
        size_t extensions = open_vector(&b, 2);
        add_empty_extension(&b, (uint16_t)type);
        close_vector(&b, extensions, 2);
        struct client_hello h = client_of(built(&b));
        cr_assert(h.complete);
        bool is_flag = type == 35 || type == 40 || type == 41 || type == 42 || type == 44 ||
                       type == 49 || type == 51 || type == 0xfe0d;
        cr_assert_eq(client_knowledge(&h) != client_knowledge(&without), is_flag, "type %u", type);
    }
}

/* ---- versions and drafts ---- */

Test(hello, highest_offered_version)
{
    static const struct {
        uint16_t offered[4];
        uint16_t highest;
    } cases[] = {
        { { TLS_1_0, TLS_1_3, TLS_1_2, TLS_1_1 }, TLS_1_3 },
        { { 0xdada, TLS_1_3, TLS_1_2, TLS_1_1 }, TLS_1_3 },
        { { 0x7f1c, 0x7f17, TLS_1_2, TLS_1_1 }, 0x7f1c },
        { { 0x7f1c, TLS_1_3, 0x7f17, TLS_1_1 }, TLS_1_3 },
        { { TLS_1_2, 0x7f12, 0xfb1a, TLS_1_1 }, 0xfb1a },
        { { 0x0a0a, 0x1a1a, 0x2a2a, 0x7e02 }, TLS_1_2 }, /* none known: legacy_version */
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct builder b = { 0 };
        add_client_fields(&b, SUITES, COUNT(SUITES));
        size_t extensions = open_vector(&b, 2);
        add_supported_versions(&b, cases[i].offered, COUNT(cases[i].offered));
        close_vector(&b, extensions, 2);
        cr_expect_eq(client_of(built(&b)).max_version, cases[i].highest, "case %zu", i);
    }
}

Test(hello, server_hello_of_drafts_up_to_21_has_no_session_id)
{
    struct builder b = { 0 };
    add_u16(&b, 0x7f12);
    add_filled(&b, 3, 32);
    add_u16(&b, 0x1301);
    size_t extensions = open_vector(&b, 2), share = open_extension(&b, 40);
    add_u16(&b, 29);
    size_t key = open_vector(&b, 2);
    add_filled(&b, 4, 32);
    close_vector(&b, key, 2);
    close_vector(&b, share, 2);
    size_t psk = open_extension(&b, 41);
    add_u16(&b, 1);
    close_vector(&b, psk, 2);
    close_vector(&b, extensions, 2);

    struct server_hello h = server_of(built(&b));
    cr_expect(h.complete);
    cr_expect_eq(h.version, 0x7f12);
    cr_expect_eq(h.cipher_suite, 0x1301);
    cr_expect_eq(h.key_share_group, 29);
    cr_expect(h.has_pre_shared_key);
    cr_expect_eq(h.selected_identity, 1);
}

Test(hello, server_hello_of_later_drafts)
{
    static const uint16_t drafts[] = { 0x7f16, 0x7f1c, 0xfb1a };
    for (size_t i = 0; i < COUNT(drafts); i++) {
        struct builder b = { 0 };
        add_server_fields(&b, TLS_1_2);
        size_t extensions = open_vector(&b, 2), selected = open_extension(&b, 43);
        add_u16(&b, drafts[i]);
        close_vector(&b, selected, 2);
        close_vector(&b, extensions, 2);
        struct server_hello h = server_of(built(&b));
        cr_expect(h.complete);
        cr_expect_eq(h.version, drafts[i]);
        cr_expect_eq(h.legacy_version, TLS_1_2);
        cr_expect_eq(h.cipher_suite, 0x1301);
    }
}

Test(hello, hello_retry_request_of_drafts)
{
    for (uint16_t version = 0x7f12; version <= 0x7f15; version++) {
        struct builder b = { 0 };
        add_u16(&b, version);
        if (version >= 0x7f13)
            add_u16(&b, 0x1302);
        size_t extensions = open_vector(&b, 2), share = open_extension(&b, 40);
        add_u16(&b, 24);
        close_vector(&b, share, 2);
        close_vector(&b, extensions, 2);

        struct server_hello h;
        cr_assert(server_hello_parse(HANDSHAKE_HELLO_RETRY_REQUEST_DRAFT, built(&b), b.len, &h));
        cr_expect(h.complete);
        cr_expect(h.is_hello_retry_request);
        cr_expect_eq(h.version, version);
        cr_expect_eq(h.key_share_group, 24);
        cr_expect_eq(h.cipher_suite, version >= 0x7f13 ? 0x1302 : 0);
    }
}

Test(hello, downgrade_sentinels)
{
    for (unsigned last = 0; last < 4; last++) {
        struct builder b = { 0 };
        add_u16(&b, TLS_1_2);
        add_filled(&b, 1, 24);
        add_text(&b, "DOWNGRD");
        add_u8(&b, (uint8_t)last);
        add_u8(&b, 0);
        add_u16(&b, 0xc02f);
        add_u8(&b, 0);
        cr_expect_eq(server_of(built(&b)).is_downgrade, last <= 1, "last byte %u", last);
    }
}

Test(hello, version_texts)
{
    static const struct {
        uint16_t version;
        bool is_13;
        const char *text;
    } cases[] = {
        { SSL_2_0, false, "SSLv2" },           { SSL_3_0, false, "SSLv3" },
        { TLS_1_0, false, "TLSv1.0" },         { TLS_1_1, false, "TLSv1.1" },
        { TLS_1_2, false, "TLSv1.2" },         { TLS_1_3, true, "TLSv1.3" },
        { 0x7f12, true, "TLSv1.3-draft18" },   { 0x7f1c, true, "TLSv1.3-draft28" },
        { 0xfb1a, true, "TLSv1.3-fbdraft26" }, { 0x7f1d, false, "0x7f1d" },
        { 0x7f00, false, "0x7f00" },           { 0x7e01, false, "0x7e01" },
        { 0x0305, false, "0x0305" },           { 0, false, "0x0000" },
    };
    char buffer[VERSION_TEXT_SIZE];
    for (size_t i = 0; i < COUNT(cases); i++) {
        cr_expect_str_eq(version_text(cases[i].version, buffer), cases[i].text);
        cr_expect_eq(version_is_13(cases[i].version), cases[i].is_13, "%s", cases[i].text);
    }
}

/* ---- SSLv2 format ---- */

static void add_v2_hello(struct builder *b, uint16_t version, uint16_t session_id_len)
{
    add_u8(b, 1);
    add_u16(b, version);
    add_u16(b, 6);
    add_u16(b, session_id_len);
    add_u16(b, 16);
    add_be(b, 0x010080, 3); /* SSL_CK_RC4_128_WITH_MD5 */
    add_be(b, 0x00002f, 3); /* TLS_RSA_WITH_AES_128_CBC_SHA */
    add_filled(b, 0x11, session_id_len);
    add_filled(b, 0x22, 16);
}

Test(hello, sslv2_format)
{
    static const uint16_t versions[] = { SSL_2_0, TLS_1_0, TLS_1_2 };
    for (size_t i = 0; i < COUNT(versions); i++) {
        struct builder b = { 0 };
        struct client_hello h;
        add_v2_hello(&b, versions[i], 16);
        cr_assert(client_hello_parse_v2(built(&b), b.len, &h));
        cr_expect(h.complete);
        cr_expect(h.is_v2_format);
        cr_expect_eq(h.max_version, versions[i]);
        cr_expect_eq(h.session_id.len, 16);
        cr_expect_eq(h.random.len, 16);
        cr_expect_eq(h.random.at[0], 0x22);
        cr_expect_eq(h.cipher_suites.len, 0);
    }
}

Test(hello, cut_sslv2_format)
{
    struct builder b = { 0 };
    add_v2_hello(&b, TLS_1_0, 0);
    for (size_t n = 0; n < b.len; n++) {
        struct client_hello h;
        bool is_read = client_hello_parse_v2(bytes_first(built(&b), n), b.len, &h);
        cr_assert_eq(is_read, n >= 9, "cut at %zu", n);
        cr_assert(!is_read || (!h.complete && h.random.len == 0), "cut at %zu", n);
    }
    b.at[0] = 4;
    struct client_hello h;
    cr_expect_not(client_hello_parse_v2(built(&b), b.len, &h), "another message");
}

/* ---- suites, GREASE and text ---- */

Test(hello, lengths_of_tls13_suites)
{
    cr_expect_eq(cipher_suite_hash_len(0x1301), 32);
    cr_expect_eq(cipher_suite_hash_len(0x1302), 48);
    cr_expect_eq(cipher_suite_hash_len(0x1303), 32);
    cr_expect_eq(cipher_suite_tag_len(0x1302), 16);
    cr_expect_eq(cipher_suite_tag_len(0x1304), 16);
    cr_expect_eq(cipher_suite_tag_len(0x1305), 8);
    cr_expect_eq(cipher_suite_hash_len(0xc02f), 0);
    cr_expect_eq(cipher_suite_tag_len(0xc02f), 0);
}

Test(hello, grease_has_16_values)
{
    unsigned count = 0;
    for (unsigned value = 0; value <= 0xffff; value++)
        count += is_grease((uint16_t)value);
    cr_expect_eq(count, 16);
    cr_expect(is_grease(0x0a0a) && is_grease(0xfafa));
    cr_expect_not(is_grease(0x0a1a));
}

Test(hello, server_name_is_stored_only_as_printable_ascii)
{
    static const struct {
        const char *name;
        bool is_stored;
    } cases[] = {
        { "www.Example.com", true },
        { "192.0.2.1", true },
        { "xn--bcher-kva.example", true },
        { "", false },
        { "two words", false },
        { "tab\there", false },
        { "esc\x1b[31m", false },
        { "b\xc3\xbc"
          "cher",
          false },
        { "del\x7f", false },
    };
    char buffer[256];
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bytes name = { (const uint8_t *)cases[i].name, strlen(cases[i].name) };
        size_t len = server_name_text(name, buffer, sizeof buffer);
        cr_expect_eq(len, cases[i].is_stored ? name.len : 0, "case %zu", i);
        if (len > 0)
            cr_expect_str_eq(buffer, cases[i].name);
    }
    struct bytes with_nul = { (const uint8_t *)"a\0b", 3 };
    cr_expect_eq(server_name_text(with_nul, buffer, sizeof buffer), 0);
}

Test(hello, server_name_needs_room_and_has_a_limit)
{
    char buffer[300], text[300];
    memset(text, 'a', sizeof text);
    struct bytes name = { (const uint8_t *)text, 255 };
    cr_expect_eq(server_name_text(name, buffer, sizeof buffer), 255);
    cr_expect_eq(server_name_text(name, buffer, 256), 255);
    cr_expect_eq(server_name_text(name, buffer, 255), 0);
    name.len = 256;
    cr_expect_eq(server_name_text(name, buffer, sizeof buffer), 0);
}

Test(hello, alpn_texts)
{
    static const struct {
        const char *list, *text;
    } cases[] = {
        { "\2h2\10http/1.1", "h2,http/1.1" },
        { "\2h2", "h2" },
        { "", "" },
        { "\2\xba\xba\2h2", "h2" },   /* GREASE */
        { "\2\x5a\x5a", "" },         /* printable GREASE */
        { "\3a,b\2h2", "612c62,h2" }, /* comma */
        { "\3a b\4\x1b[0m", "612062,1b5b306d" },
        { "\2h2\10http/1", "h2" }, /* cut */
    };
    char buffer[64];
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct bytes list = { (const uint8_t *)cases[i].list, strlen(cases[i].list) };
        size_t len = alpn_text(list, buffer, sizeof buffer);
        cr_expect_str_eq(buffer, cases[i].text);
        cr_expect_eq(len, strlen(cases[i].text), "case %zu", i);
    }
}

Test(hello, alpn_text_fits_into_any_size)
{
    static const char *const whole[] = { "", "h2", "h2,http/1.1" };
    struct bytes list = { (const uint8_t *)"\2h2\10http/1.1", 12 };
    for (size_t size = 0; size <= 16; size++) {
        char *buffer = malloc(size > 0 ? size : 1);
        cr_assert_not_null(buffer);
        size_t len = alpn_text(list, buffer, size);
        const char *expected = whole[size < 3 ? 0 : size < 12 ? 1 : 2];
        cr_expect_eq(len, strlen(expected), "size %zu", size);
        if (size > 0)
            cr_expect_str_eq(buffer, expected);
        free(buffer);
    }
}
