/* SPDX-License-Identifier: Apache-2.0 */
#include "messages.h"

#include "random.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { /* RFC 8446 5.1, 4 */
       RECORD_CHANGE_CIPHER_SPEC = 20,
       RECORD_ALERT = 21,
       RECORD_HANDSHAKE = 22,
       RECORD_APPLICATION_DATA = 23,
       HANDSHAKE_CLIENT_HELLO = 1,
       HANDSHAKE_SERVER_HELLO = 2,
       HANDSHAKE_NEW_SESSION_TICKET = 4,
       HANDSHAKE_CERTIFICATE = 11,
       HANDSHAKE_SERVER_KEY_EXCHANGE = 12,
       HANDSHAKE_SERVER_HELLO_DONE = 14,
       HANDSHAKE_CLIENT_KEY_EXCHANGE = 16,
       X25519 = 0x001d,
       SECP256R1 = 0x0017,
       X25519MLKEM768 = 0x11ec,
       GREASE = 0x2a2a, /* RFC 8701 */
       RECORD_HEADER = 5,
       RECORD_PLAIN_MAX = 16384,
       PROTECTION_13 = 17, /* content type and tag */
       PROTECTION_12 = 24, /* explicit nonce and tag */
       TICKET_13 = 208,    /* as OpenSSL's without a client certificate */
       TICKET_12 = 192,
       SITES = 20000, /* names of servers, some far more often than others */
};

/* Purposes of random numbers; those with a number of their own leave room above. */
enum purpose {
    FOR_SITE = 1,
    FOR_NAME,
    FOR_RANDOM_BYTES = 100, /* + message kind * 64 + place in it */
    FOR_CERTIFICATE = 10000,
    FOR_LENGTHS = 20000,
    FOR_BODY = 30000,
};

/* ---- building ---- */

struct out {
    uint8_t *at;
    size_t len;
    uint64_t seed; /* of the next random bytes */
};

static void put(struct out *o, const void *from, size_t len)
{
    assert(o->len + len <= MESSAGE_BUILT_MAX);
    memcpy(o->at + o->len, from, len);
    o->len += len;
}

static void put_be(struct out *o, uint64_t value, unsigned width)
{
    while (width-- > 0) {
        uint8_t octet = (uint8_t)(value >> 8 * width);
        put(o, &octet, 1);
    }
}

static void put_text(struct out *o, const char *text)
{
    put(o, text, strlen(text));
}

static void put_random(struct out *o, size_t len)
{
    o->seed = random_mix(o->seed + 1);
    for (size_t i = 0; i < len; i += 8) {
        uint64_t word = random_number(o->seed, i);
        put(o, &word, len - i < sizeof word ? len - i : sizeof word);
    }
}

static void put_zeros(struct out *o, size_t len)
{
    while (len-- > 0)
        put_be(o, 0, 1);
}

/* Opens a vector whose length, of that width, close_vector() fills in. */
static size_t open_vector(struct out *o, unsigned width)
{
    put_be(o, 0, width);
    return o->len;
}

static void close_vector(struct out *o, size_t start, unsigned width)
{
    size_t len = o->len - start;
    for (unsigned i = 0; i < width; i++)
        o->at[start - 1 - i] = (uint8_t)(len >> 8 * i);
}

static void put_protected(struct out *o, unsigned type, size_t len)
{
    put_be(o, type, 1);
    put_be(o, 0x0303, 2);
    put_be(o, len, 2);
    put_random(o, len);
}

static void put_change_cipher_spec(struct out *o)
{
    put_be(o, 0x140303000101, 6);
}

/* ---- what both hellos need ---- */

static bool is_tls12(const struct voice *v)
{
    return v->kind == FLOW_FULL_12 || v->kind == FLOW_RESUMED_12;
}

static bool has_psk(const struct voice *v)
{
    return v->kind == FLOW_RESUMED_13 || v->kind == FLOW_EARLY || v->kind == FLOW_EARLY_REFUSED;
}

static bool offers_early_data(const struct voice *v)
{
    return v->kind == FLOW_EARLY || v->kind == FLOW_EARLY_REFUSED;
}

static size_t hash_len(const struct voice *v)
{
    return v->aes_256 ? 48 : 32;
}

/* Few names take most of the flows. */
static void put_host(struct out *o, const struct voice *v)
{
    double share = random_share(v->seed, FOR_SITE);
    unsigned site = (unsigned)(SITES * share * share * share);
    char host[64];
    snprintf(host, sizeof host, "%s.shop-%u.example.net", site % 2 ? "www" : "api", site);
    put_text(o, host);
}

/* The client's session id, which a server of TLS 1.3 and a resumed one of 1.2 repeats. */
static void put_session_id(struct out *o, const struct voice *v)
{
    struct out id = { o->at, o->len, random_number(v->seed, FOR_NAME) };
    put_be(&id, 32, 1);
    put_random(&id, 32);
    o->len = id.len;
}

static size_t open_extension(struct out *o, unsigned type)
{
    put_be(o, type, 2);
    return open_vector(o, 2);
}

static void put_extension(struct out *o, unsigned type, const char *content, size_t len)
{
    size_t start = open_extension(o, type);
    put(o, content, len);
    close_vector(o, start, 2);
}

static void put_key(struct out *o, unsigned group, size_t len)
{
    put_be(o, group, 2);
    put_be(o, len, 2);
    if (group == SECP256R1) { /* uncompressed point: not any bytes */
        put_be(o, 4, 1);
        len--;
    }
    put_random(o, len);
}

/* ---- ClientHello (RFC 8446 4.1.2) ---- */

static void put_server_name(struct out *o, const struct voice *v)
{
    size_t extension = open_extension(o, 0); /* RFC 6066 3 */
    size_t list = open_vector(o, 2);
    put_be(o, 0, 1);
    size_t name = open_vector(o, 2);
    put_host(o, v);
    close_vector(o, name, 2);
    close_vector(o, list, 2);
    close_vector(o, extension, 2);
}

static void put_client_groups(struct out *o, const struct voice *v)
{
    size_t extension = open_extension(o, 10);
    size_t list = open_vector(o, 2);
    put_be(o, GREASE, 2);
    if (v->post_quantum && !is_tls12(v))
        put_be(o, X25519MLKEM768, 2);
    put_be(o, X25519, 2);
    put_be(o, SECP256R1, 2);
    put_be(o, 0x0018, 2);
    close_vector(o, list, 2);
    close_vector(o, extension, 2);
}

static void put_client_shares(struct out *o, const struct voice *v, bool again)
{
    size_t extension = open_extension(o, 51);
    size_t list = open_vector(o, 2);
    if (again) {
        put_key(o, SECP256R1, 65);
    } else {
        put_key(o, GREASE, 1);
        if (v->post_quantum)
            put_key(o, X25519MLKEM768, 1184 + 32);
        put_key(o, X25519, 32);
    }
    close_vector(o, list, 2);
    close_vector(o, extension, 2);
}

static void put_client_psk(struct out *o, const struct voice *v)
{
    size_t extension = open_extension(o, 41); /* RFC 8446 4.2.11 */
    size_t identities = open_vector(o, 2);
    put_be(o, TICKET_13, 2);
    put_random(o, TICKET_13 + 4); /* and its age */
    close_vector(o, identities, 2);
    size_t binders = open_vector(o, 2);
    put_be(o, hash_len(v), 1);
    put_random(o, hash_len(v));
    close_vector(o, binders, 2);
    close_vector(o, extension, 2);
}

/* RFC 7685: clients fill up what would be 256 to 511 bytes, for servers that choke on those. */
static void put_padding(struct out *o, size_t message_start, size_t still_to_come)
{
    size_t len = o->len - message_start + still_to_come;
    if (len < 256 || len >= 512)
        return;
    size_t extension = open_extension(o, 21);
    put_zeros(o, len + 4 < 512 ? 512 - len - 4 : 1);
    close_vector(o, extension, 2);
}

static void put_client_suites(struct out *o, const struct voice *v)
{
    static const uint16_t SUITES[] = { GREASE, 0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f, 0xc02c,
                                       0xc030, 0xcca9, 0xcca8, 0xc013, 0xc014, 0x009c, 0x009d };
    size_t list = open_vector(o, 2);
    for (size_t i = 0; i < sizeof SUITES / sizeof *SUITES; i++)
        if (!is_tls12(v) || SUITES[i] >> 8 != 0x13)
            put_be(o, SUITES[i], 2);
    close_vector(o, list, 2);
}

static void put_client_extensions(struct out *o, const struct voice *v, bool again,
                                  size_t message_start)
{
    static const char SIGNATURES[] = "\x00\x10\x04\x03\x08\x04\x04\x01\x05\x03\x08\x05\x05\x01\x08"
                                     "\x06\x06\x01";
    static const char PROTOCOLS[] = "\x00\x0c\x02h2\x08http/1.1";
    put_extension(o, GREASE, "", 0);
    put_server_name(o, v);
    put_extension(o, 23, "", 0);     /* extended_master_secret, RFC 7627 */
    put_extension(o, 0xff01, "", 1); /* renegotiation_info, RFC 5746 */
    put_client_groups(o, v);
    put_extension(o, 11, "\x01\x00", 2); /* ec_point_formats, RFC 8422 */
    size_t ticket = open_extension(o, 35);
    put_random(o, v->kind == FLOW_RESUMED_12 ? TICKET_12 : 0);
    close_vector(o, ticket, 2);
    put_extension(o, 16, PROTOCOLS, sizeof PROTOCOLS - 1);
    put_extension(o, 5, "\x01\x00\x00\x00\x00", 5); /* status_request */
    put_extension(o, 13, SIGNATURES, sizeof SIGNATURES - 1);
    put_extension(o, 18, "", 0); /* signed_certificate_timestamp */
    if (is_tls12(v)) {
        put_padding(o, message_start, 0);
        return;
    }
    put_client_shares(o, v, again);
    put_extension(o, 45, "\x01\x01", 2);                     /* psk_key_exchange_modes */
    put_extension(o, 43, "\x06\x2a\x2a\x03\x04\x03\x03", 7); /* supported_versions */
    if (offers_early_data(v))
        put_extension(o, 42, "", 0);
    if (has_psk(v)) {
        put_padding(o, message_start, 4 + 2 + 2 + TICKET_13 + 4 + 2 + 1 + hash_len(v));
        put_client_psk(o, v); /* the last one, RFC 8446 4.2.11 */
    } else {
        put_padding(o, message_start, 0);
    }
}

static void put_client_hello(struct out *o, const struct voice *v, bool again)
{
    put_be(o, RECORD_HANDSHAKE, 1);
    put_be(o, again ? 0x0303 : 0x0301, 2);
    size_t record = open_vector(o, 2);
    put_be(o, HANDSHAKE_CLIENT_HELLO, 1);
    size_t message = open_vector(o, 3);
    put_be(o, 0x0303, 2);
    put_random(o, 32);
    put_session_id(o, v);
    put_client_suites(o, v);
    put_be(o, 0x0100, 2); /* no compression */
    size_t extensions = open_vector(o, 2);
    put_client_extensions(o, v, again, record);
    close_vector(o, extensions, 2);
    close_vector(o, message, 3);
    close_vector(o, record, 2);
}

/* ---- ServerHello (RFC 8446 4.1.3) and HelloRetryRequest ---- */

static unsigned server_group(const struct voice *v)
{
    if (v->kind == FLOW_RETRY)
        return SECP256R1;
    return v->post_quantum ? X25519MLKEM768 : X25519;
}

static size_t server_share_len(unsigned group)
{
    return group == SECP256R1 ? 65 : group == X25519 ? 32 : 1088 + 32;
}

static void put_server_extensions_13(struct out *o, const struct voice *v, bool retry)
{
    unsigned group = server_group(v);
    put_extension(o, 43, "\x03\x04", 2);
    size_t share = open_extension(o, 51);
    if (retry)
        put_be(o, group, 2);
    else
        put_key(o, group, server_share_len(group));
    close_vector(o, share, 2);
    if (has_psk(v))
        put_extension(o, 41, "\x00\x00", 2);
}

static void put_server_extensions_12(struct out *o, const struct voice *v)
{
    static const char PROTOCOL[] = "\x00\x09\x08http/1.1";
    put_extension(o, 0xff01, "", 1);
    put_extension(o, 23, "", 0);
    if (v->kind == FLOW_FULL_12)
        put_extension(o, 35, "", 0);
    put_extension(o, 16, PROTOCOL, sizeof PROTOCOL - 1);
}

static void put_server_hello(struct out *o, const struct voice *v, bool retry)
{
    static const uint8_t RETRY_RANDOM[32] = {
        /* RFC 8446 4.1.3: SHA-256 of "HelloRetryRequest" */
        0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
        0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb,
        0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
    };
    put_be(o, RECORD_HANDSHAKE, 1);
    put_be(o, 0x0303, 2);
    size_t record = open_vector(o, 2);
    put_be(o, HANDSHAKE_SERVER_HELLO, 1);
    size_t message = open_vector(o, 3);
    put_be(o, 0x0303, 2);
    if (retry)
        put(o, RETRY_RANDOM, sizeof RETRY_RANDOM);
    else
        put_random(o, 32);
    if (v->kind == FLOW_FULL_12) {
        put_be(o, 32, 1);
        put_random(o, 32);
    } else {
        put_session_id(o, v);
    }
    put_be(o, is_tls12(v) ? 0xc02f : v->aes_256 ? 0x1302 : 0x1301, 2);
    put_be(o, 0, 1);
    size_t extensions = open_vector(o, 2);
    if (is_tls12(v))
        put_server_extensions_12(o, v);
    else
        put_server_extensions_13(o, v, retry);
    close_vector(o, extensions, 2);
    close_vector(o, message, 3);
    close_vector(o, record, 2);
}

/* ---- a certificate (RFC 5280 4.1), well formed but signed by nobody ---- */

/* Opens a DER element with two octets of length. */
static size_t open_der(struct out *o, unsigned tag)
{
    put_be(o, tag, 1);
    put_be(o, 0x82, 1);
    return open_vector(o, 2);
}

static void close_der(struct out *o, size_t start)
{
    close_vector(o, start, 2);
}

static void put_der(struct out *o, unsigned tag, const char *content, size_t len)
{
    put_be(o, tag, 1);
    put_be(o, len, 1);
    put(o, content, len);
}

static void put_der_algorithm(struct out *o, const char *oid)
{
    size_t sequence = open_der(o, 0x30);
    put_der(o, 0x06, oid, 9);
    put_der(o, 0x05, "", 0);
    close_der(o, sequence);
}

static void put_der_name(struct out *o, const char *common_name)
{
    size_t name = open_der(o, 0x30);
    size_t set = open_der(o, 0x31);
    size_t attribute = open_der(o, 0x30);
    put_der(o, 0x06, "\x55\x04\x03", 3);
    put_der(o, 0x0c, common_name, strlen(common_name));
    close_der(o, attribute);
    close_der(o, set);
    close_der(o, name);
}

static void put_der_rsa_key(struct out *o)
{
    size_t info = open_der(o, 0x30);
    put_der_algorithm(o, "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01");
    size_t bits = open_der(o, 0x03);
    put_be(o, 0, 1);
    size_t key = open_der(o, 0x30);
    size_t modulus = open_der(o, 0x02);
    put_be(o, 0x00c1, 2); /* positive */
    put_random(o, 255);
    close_der(o, modulus);
    put_der(o, 0x02, "\x01\x00\x01", 3);
    close_der(o, key);
    close_der(o, bits);
    close_der(o, info);
}

static void put_certificate(struct out *o, const char *subject, const char *issuer)
{
    static const char SHA256_WITH_RSA[] = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b";
    size_t certificate = open_der(o, 0x30);
    size_t body = open_der(o, 0x30);
    put_be(o, 0xa003020102, 5); /* version 3 */
    put_der(o, 0x02, "\x01\x7a\x11", 3);
    put_der_algorithm(o, SHA256_WITH_RSA);
    put_der_name(o, issuer);
    size_t validity = open_der(o, 0x30);
    put_der(o, 0x17, "230101000000Z", 13);
    put_der(o, 0x17, "330101000000Z", 13);
    close_der(o, validity);
    put_der_name(o, subject);
    put_der_rsa_key(o);
    close_der(o, body);
    put_der_algorithm(o, SHA256_WITH_RSA);
    size_t signature = open_der(o, 0x03);
    put_be(o, 0, 1);
    put_random(o, 256);
    close_der(o, signature);
    close_der(o, certificate);
}

/* ---- flights ---- */

/* The records behind a TLS 1.3 ServerHello. */
static void put_flight_13(struct out *o, const struct voice *v)
{
    bool resumed = has_psk(v);
    put_server_hello(o, v, false);
    if (v->kind != FLOW_RETRY)
        put_change_cipher_spec(o);
    size_t extensions = 2 + 15;    /* application_layer_protocol_negotiation: http/1.1 */
    extensions += resumed ? 0 : 4; /* server_name */
    extensions += v->kind == FLOW_EARLY ? 4 : 0; /* early_data */
    put_protected(o, RECORD_APPLICATION_DATA, 4 + extensions + PROTECTION_13);
    if (!resumed) {
        put_protected(o, RECORD_APPLICATION_DATA,
                      random_between(v->seed, FOR_LENGTHS, 2100, 4500) + PROTECTION_13);
        put_protected(o, RECORD_APPLICATION_DATA, 4 + 4 + 256 + PROTECTION_13);
    }
    put_protected(o, RECORD_APPLICATION_DATA, 4 + hash_len(v) + PROTECTION_13);
}

static void put_finished_13(struct out *o, const struct voice *v)
{
    put_protected(o, RECORD_APPLICATION_DATA, 4 + hash_len(v) + PROTECTION_13);
}

/* Two after a full handshake and one after a resumed one, each in its record, as OpenSSL does. */
static void put_tickets_13(struct out *o, const struct voice *v)
{
    size_t len = 4 + 4 + 4 + 1 + 8 + 2 + TICKET_13 + 2 + 8 + PROTECTION_13;
    put_protected(o, RECORD_APPLICATION_DATA, len);
    if (!has_psk(v))
        put_protected(o, RECORD_APPLICATION_DATA, len);
}

/* A handshake message of TLS 1.2 in a record of its own. */
struct handshake {
    size_t record, message;
};

static struct handshake open_handshake(struct out *o, unsigned type)
{
    struct handshake h;
    put_be(o, RECORD_HANDSHAKE, 1);
    put_be(o, 0x0303, 2);
    h.record = open_vector(o, 2);
    put_be(o, type, 1);
    h.message = open_vector(o, 3);
    return h;
}

static void close_handshake(struct out *o, struct handshake h)
{
    close_vector(o, h.message, 3);
    close_vector(o, h.record, 2);
}

static void put_certificates_12(struct out *o)
{
    struct handshake h = open_handshake(o, HANDSHAKE_CERTIFICATE);
    size_t list = open_vector(o, 3);
    size_t leaf = open_vector(o, 3);
    put_certificate(o, "shop.example.net", "Example Issuing CA");
    close_vector(o, leaf, 3);
    size_t issuer = open_vector(o, 3);
    put_certificate(o, "Example Issuing CA", "Example Root CA");
    close_vector(o, issuer, 3);
    close_vector(o, list, 3);
    close_handshake(o, h);
}

static void put_flight_12(struct out *o, const struct voice *v)
{
    put_server_hello(o, v, false);
    put_certificates_12(o);
    struct handshake keys = open_handshake(o, HANDSHAKE_SERVER_KEY_EXCHANGE);
    put_be(o, 0x03001d20, 4); /* named curve, x25519, 32 octets (RFC 8422 5.4) */
    put_random(o, 32);
    put_be(o, 0x08040100, 4); /* rsa_pss_rsae_sha256, 256 octets */
    put_random(o, 256);
    close_handshake(o, keys);
    close_handshake(o, open_handshake(o, HANDSHAKE_SERVER_HELLO_DONE));
}

static void put_finished_12(struct out *o)
{
    put_change_cipher_spec(o);
    put_protected(o, RECORD_HANDSHAKE, 4 + 12 + PROTECTION_12);
}

static void put_key_exchange_12(struct out *o)
{
    struct handshake h = open_handshake(o, HANDSHAKE_CLIENT_KEY_EXCHANGE);
    put_be(o, 32, 1);
    put_random(o, 32);
    close_handshake(o, h);
    put_finished_12(o);
}

static void put_ticket_12(struct out *o)
{
    struct handshake h = open_handshake(o, HANDSHAKE_NEW_SESSION_TICKET);
    put_be(o, 7200, 4);
    put_be(o, TICKET_12, 2);
    put_random(o, TICKET_12);
    close_handshake(o, h);
}

/* ---- without TLS ---- */

static void put_http_request(struct out *o, const struct voice *v, uint32_t number)
{
    char path[64];
    snprintf(path, sizeof path, "GET /item/%u HTTP/1.1\r\nHost: ", number);
    put_text(o, path);
    put_host(o, v);
    put_text(o, "\r\nUser-Agent: generated/1.0\r\nAccept: */*\r\n\r\n");
}

static void put_http_head(struct out *o, uint32_t body_len)
{
    char head[128];
    snprintf(
        head, sizeof head,
        "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %u\r\n\r\n",
        body_len);
    put_text(o, head);
}

static void put_dns(struct out *o, const struct voice *v, bool answer)
{
    put_be(o, v->seed & 0xffff, 2);
    put_be(o, answer ? 0x8180 : 0x0100, 2);
    put_be(o, 1, 2);
    put_be(o, answer, 2);
    put_be(o, 0, 4);
    uint8_t name[64];
    struct out host = { name, 0, 0 };
    put_host(&host, v);
    for (size_t start = 0, end; start < host.len; start = end + 1) {
        for (end = start; end < host.len && name[end] != '.'; end++)
            ;
        put_be(o, end - start, 1);
        put(o, name + start, end - start);
    }
    put_be(o, 0, 1);
    put_be(o, 0x00010001, 4);
    if (answer) {
        put_be(o, 0xc00c, 2); /* the name above */
        put_be(o, 0x0001000100000e10, 8);
        put_be(o, 4, 2);
        put_be(o, 0xc6336401, 4);
    }
}

/* A QUIC v1 long header (RFC 9000 17.2) with a body that nobody can decrypt. */
static void put_quic_long(struct out *o, unsigned type, size_t len)
{
    put_be(o, 0xc3 | type << 4, 1);
    put_be(o, 1, 4);
    put_be(o, 8, 1);
    put_random(o, 8);
    put_be(o, 0, 1);
    if (type == 0)
        put_be(o, 0, 1); /* no token */
    put_be(o, 0x4000 | len, 2);
    put_random(o, len);
}

/* ---- requests and responses: records laid out by arithmetic, never built whole ---- */

/*
 * A first record with the head, then as many full ones as the rest needs. Early data starts with a
 * ChangeCipherSpec.
 */
struct layout {
    uint32_t prefix; /* octets of ChangeCipherSpec */
    uint32_t first;  /* payload of the first record, protection included */
    uint32_t rest;   /* payload of all further ones, without protection */
    uint32_t protection;
};

static struct layout layout_of(const struct voice *v, const struct message *m)
{
    struct layout l = { .protection = is_tls12(v) ? PROTECTION_12 : PROTECTION_13 };
    uint32_t head = random_between(v->seed, FOR_LENGTHS + 1 + m->number, 90, 380);
    if (m->kind != MESSAGE_RESPONSE || head > m->size)
        head = m->size;
    assert(head <= RECORD_PLAIN_MAX);
    l.prefix = m->kind == MESSAGE_EARLY_DATA ? 6 : 0;
    l.first = head + l.protection;
    l.rest = m->size - head;
    return l;
}

static uint32_t layout_len(const struct layout *l)
{
    uint32_t records = (l->rest + RECORD_PLAIN_MAX - 1) / RECORD_PLAIN_MAX;
    return l->prefix + RECORD_HEADER + l->first + records * (RECORD_HEADER + l->protection) +
           l->rest;
}

/* Copies what of `from`, which stands at `at` in the message, falls into the wanted part. */
static void overlay(const uint8_t *from, uint32_t from_len, uint32_t at, uint32_t offset,
                    uint32_t len, uint8_t *to)
{
    for (uint32_t i = 0; i < from_len; i++)
        if (at + i >= offset && at + i < offset + len)
            to[at + i - offset] = from[i];
}

/* Random octets that depend on their place alone: a retransmission has the same. */
static void fill_body(uint64_t seed, uint32_t offset, uint32_t len, uint8_t *to)
{
    uint64_t word = 0;
    for (uint32_t i = 0; i < len; i++) {
        uint32_t at = offset + i;
        if (i == 0 || at % 8 == 0)
            word = random_number(seed, at / 8);
        to[i] = (uint8_t)(word >> 8 * (at % 8));
    }
}

static void write_records(const struct voice *v, const struct message *m, uint32_t offset,
                          uint32_t len, uint8_t *to)
{
    static const uint8_t CHANGE_CIPHER_SPEC[] = { 20, 3, 3, 0, 1, 1 };
    struct layout l = layout_of(v, m);
    fill_body(random_number(v->seed, FOR_BODY + m->kind * 64u + m->number), offset, len, to);
    overlay(CHANGE_CIPHER_SPEC, l.prefix, 0, offset, len, to);

    uint32_t at = l.prefix, body = l.first, rest = l.rest;
    const uint32_t full = RECORD_PLAIN_MAX + l.protection;
    if (offset > at + RECORD_HEADER + body) { /* not through all records of a large response */
        uint32_t behind_first = at + RECORD_HEADER + body;
        uint32_t skipped = (offset - behind_first) / (full + RECORD_HEADER);
        at = behind_first + skipped * (full + RECORD_HEADER);
        rest -= skipped * RECORD_PLAIN_MAX;
        body = 0;
    }
    while (at < offset + len) {
        if (body == 0) {
            uint32_t plain = rest < RECORD_PLAIN_MAX ? rest : RECORD_PLAIN_MAX;
            if (plain == 0)
                break;
            rest -= plain;
            body = plain + l.protection;
        }
        uint8_t header[] = { RECORD_APPLICATION_DATA, 3, 3, (uint8_t)(body >> 8), (uint8_t)body };
        overlay(header, sizeof header, at, offset, len, to);
        at += RECORD_HEADER + body;
        body = 0;
    }
}

static void write_http_response(const struct message *m, uint32_t offset, uint32_t len, uint8_t *to)
{
    uint8_t head[160];
    struct out o = { head, 0, 0 };
    put_http_head(&o, m->size);
    for (uint32_t i = 0; i < len; i++)
        to[i] = (uint8_t)('a' + (offset + i) % 26);
    overlay(head, (uint32_t)o.len, 0, offset, len, to);
}

/* ---- all messages ---- */

static bool is_built_whole(const struct message *m)
{
    return m->kind != MESSAGE_REQUEST && m->kind != MESSAGE_RESPONSE &&
           m->kind != MESSAGE_EARLY_DATA && m->kind != MESSAGE_HTTP_RESPONSE;
}

static uint32_t build(const struct voice *v, const struct message *m, uint8_t *to)
{
    struct out o = { to, 0, random_number(v->seed, FOR_RANDOM_BYTES + m->kind * 64u + m->number) };
    switch (m->kind) {
    case MESSAGE_CLIENT_HELLO:
        put_client_hello(&o, v, false);
        break;
    case MESSAGE_CLIENT_HELLO_AGAIN:
        put_change_cipher_spec(&o);
        put_client_hello(&o, v, true);
        break;
    case MESSAGE_HELLO_RETRY:
        put_server_hello(&o, v, true);
        put_change_cipher_spec(&o);
        break;
    case MESSAGE_FLIGHT_13:
    case MESSAGE_FLIGHT_13_RESUMED:
        put_flight_13(&o, v);
        break;
    case MESSAGE_FINISHED_13:
        if (v->kind == FLOW_FULL_13 || v->kind == FLOW_RESUMED_13)
            put_change_cipher_spec(&o); /* others have sent it before their second flight */
        put_finished_13(&o, v);
        break;
    case MESSAGE_END_OF_EARLY_DATA:
        put_protected(&o, RECORD_APPLICATION_DATA, 4 + PROTECTION_13);
        put_finished_13(&o, v);
        break;
    case MESSAGE_TICKETS_13:
        put_tickets_13(&o, v);
        break;
    case MESSAGE_FLIGHT_12:
        put_flight_12(&o, v);
        break;
    case MESSAGE_KEY_EXCHANGE_12:
        put_key_exchange_12(&o);
        break;
    case MESSAGE_FINISHED_12:
        put_ticket_12(&o);
        put_finished_12(&o);
        break;
    case MESSAGE_FLIGHT_12_RESUMED:
        put_server_hello(&o, v, false);
        put_finished_12(&o);
        break;
    case MESSAGE_FINISHED_12_RESUMED:
        put_finished_12(&o);
        break;
    case MESSAGE_CLOSE:
        if (is_tls12(v))
            put_protected(&o, RECORD_ALERT, 2 + PROTECTION_12);
        else
            put_protected(&o, RECORD_APPLICATION_DATA, 2 + PROTECTION_13);
        break;
    case MESSAGE_HTTP_REQUEST:
        put_http_request(&o, v, m->number);
        break;
    case MESSAGE_DNS_QUERY:
    case MESSAGE_DNS_ANSWER:
        put_dns(&o, v, m->kind == MESSAGE_DNS_ANSWER);
        break;
    case MESSAGE_QUIC_INITIAL:
        put_quic_long(&o, 0, 1182);
        break;
    case MESSAGE_QUIC_HANDSHAKE:
        put_quic_long(&o, 2, m->size);
        break;
    case MESSAGE_QUIC_PROTECTED:
        put_be(&o, 0x43, 1);
        put_random(&o, m->size);
        break;
    case MESSAGE_EARLY_DATA:
    case MESSAGE_REQUEST:
    case MESSAGE_RESPONSE:
    case MESSAGE_HTTP_RESPONSE:
        break;
    }
    return (uint32_t)o.len;
}

void message_measure(const struct voice *v, struct message *m)
{
    uint8_t built[MESSAGE_BUILT_MAX];
    if (is_built_whole(m)) {
        m->len = build(v, m, built);
    } else if (m->kind == MESSAGE_HTTP_RESPONSE) {
        struct out head = { built, 0, 0 };
        put_http_head(&head, m->size);
        m->len = (uint32_t)head.len + m->size;
    } else {
        struct layout l = layout_of(v, m);
        m->len = layout_len(&l);
    }
}

void message_write(const struct voice *v, const struct message *m, uint32_t offset, uint32_t len,
                   uint8_t *to, uint8_t scratch[MESSAGE_BUILT_MAX])
{
    assert(offset + len <= m->len);
    if (m->kind == MESSAGE_HTTP_RESPONSE) {
        write_http_response(m, offset, len, to);
    } else if (!is_built_whole(m)) {
        write_records(v, m, offset, len, to);
    } else {
        build(v, m, scratch);
        memcpy(to, scratch + offset, len);
    }
}
