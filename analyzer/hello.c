/* SPDX-License-Identifier: Apache-2.0 */
#include "hello.h"

#include <stdio.h>

/* IANA "TLS ExtensionType Values". */
enum extension_type {
    EXTENSION_SERVER_NAME = 0,
    EXTENSION_ALPN = 16,
    EXTENSION_ENCRYPT_THEN_MAC = 22,
    EXTENSION_RECORD_SIZE_LIMIT = 28,
    EXTENSION_SESSION_TICKET = 35,
    EXTENSION_KEY_SHARE_DRAFT = 40, /* TLS 1.3 drafts up to 22 */
    EXTENSION_PRE_SHARED_KEY = 41,
    EXTENSION_EARLY_DATA = 42,
    EXTENSION_SUPPORTED_VERSIONS = 43,
    EXTENSION_COOKIE = 44,
    EXTENSION_POST_HANDSHAKE_AUTH = 49,
    EXTENSION_KEY_SHARE = 51,
    EXTENSION_ENCRYPTED_CLIENT_HELLO = 0xfe0d,
};

enum {
    RANDOM_LEN = 32,
    SESSION_ID_LEN_MAX = 32,
    NAME_TYPE_HOST_NAME = 0,     /* RFC 6066 3 */
    HOST_NAME_LEN_MAX = 255,     /* RFC 1035 2.3.4 */
    V2_MESSAGE_CLIENT_HELLO = 1, /* RFC 5246 E.2 */
    V2_CIPHER_SPEC_LEN = 3,
    DRAFT_LAST = 28,              /* of TLS 1.3 */
    DRAFT_LAST_OLD_LAYOUT = 21,   /* the last without session id and supported_versions */
    DRAFT_FIRST_RETRY_SUITE = 19, /* the first whose HelloRetryRequest names a cipher suite */
    DRAFT_OF_VENDOR = 0xfb00,     /* plus the draft's number */
};

/* RFC 8446 4.1.3 (RFC 9846 4.2.3): SHA-256 of "HelloRetryRequest". */
static const uint8_t HELLO_RETRY_RANDOM[RANDOM_LEN] = {
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
};

/* RFC 8446 4.1.3 (RFC 9846 4.2.3): last bytes of the random, then 1 for TLS 1.2, 0 for older. */
static const uint8_t DOWNGRADE[7] = { 'D', 'O', 'W', 'N', 'G', 'R', 'D' };

/* One extension; its body holds fewer than len bytes where the message is cut. */
struct extension {
    uint16_t type;
    uint16_t len;
    struct reader body;
};

/* Which rows of an extension table were used: the first of duplicates counts. */
typedef uint32_t seen_rows;

bool is_grease(uint16_t value)
{
    return (value & 0x0f0f) == 0x0a0a && value >> 8 == (value & 0xff);
}

/* The number of a TLS 1.3 draft's version, 0 for any other version. */
static unsigned draft_number(uint16_t version)
{
    unsigned family = version & 0xff00, number = version & 0xff;
    bool is_draft = family == TLS_1_3_DRAFT || family == DRAFT_OF_VENDOR;
    return is_draft && number <= DRAFT_LAST ? number : 0;
}

bool version_is_13(uint16_t version)
{
    return version == TLS_1_3 || draft_number(version) > 0;
}

const char *version_text(uint16_t version, char buffer[VERSION_TEXT_SIZE])
{
    static const char *const NAMES[] = { "SSLv3", "TLSv1.0", "TLSv1.1", "TLSv1.2", "TLSv1.3" };

    if (version == SSL_2_0)
        snprintf(buffer, VERSION_TEXT_SIZE, "SSLv2");
    else if (version >= SSL_3_0 && version <= TLS_1_3)
        snprintf(buffer, VERSION_TEXT_SIZE, "%s", NAMES[version - SSL_3_0]);
    else if (draft_number(version) > 0)
        snprintf(buffer, VERSION_TEXT_SIZE, "TLSv1.3-%sdraft%u",
                 (version & 0xff00) == DRAFT_OF_VENDOR ? "fb" : "", draft_number(version));
    else
        snprintf(buffer, VERSION_TEXT_SIZE, "0x%04x", version);
    return buffer;
}

/* Orders versions; drafts of TLS 1.3 lie between 1.2 and 1.3, what is unknown lies below all. */
static unsigned version_rank(uint16_t version)
{
    unsigned draft = draft_number(version);
    if (draft > 0)
        return TLS_1_2 << 8 | draft;
    return version >> 8 == SSL_3_0 >> 8 ? (unsigned)version << 8 : 0;
}

/* A vector's content, or empty when it is cut. */
static struct bytes take_vector(struct reader *r, unsigned width)
{
    struct bytes content = reader_vector(r, width).rest;
    return r->short_read ? (struct bytes){ 0 } : content;
}

/* Reads the next extension (RFC 8446 4.2); false when not even its header is whole. */
static bool next_extension(struct reader *extensions, struct extension *ret_extension)
{
    struct extension e = { 0 };
    e.type = reader_u16(extensions);
    e.len = reader_u16(extensions);
    if (extensions->short_read)
        return false;
    e.body = reader_of(bytes_first(extensions->rest, e.len));
    reader_take(extensions, e.len);
    *ret_extension = e;
    return true;
}

/* Marks a row as used; false when it was already. */
static bool first_use(seen_rows *seen, unsigned row)
{
    bool is_first = (*seen >> row & 1) == 0;
    *seen |= (seen_rows)1 << row;
    return is_first;
}

/* ---- extensions of the ClientHello ---- */

/* RFC 6066 3: list of { name_type, HostName<1..2^16-1> }. */
static void client_server_name(struct client_hello *hello, struct extension *e)
{
    struct reader names = reader_vector(&e->body, 2);
    while (names.rest.len > 0) {
        uint8_t name_type = reader_u8(&names);
        struct bytes name = take_vector(&names, 2);
        if (name_type != NAME_TYPE_HOST_NAME)
            continue;
        hello->server_name = name;
        return;
    }
}

/* RFC 7301 3.1: ProtocolNameList. */
static void client_alpn(struct client_hello *hello, struct extension *e)
{
    hello->alpn = take_vector(&e->body, 2);
}

/* RFC 8449 4. */
static void client_record_size_limit(struct client_hello *hello, struct extension *e)
{
    hello->record_size_limit = reader_u16(&e->body);
}

/* RFC 5077 3.2: the extension's whole body is the ticket. */
static void client_session_ticket(struct client_hello *hello, struct extension *e)
{
    hello->has_session_ticket = true;
    hello->session_ticket = reader_take(&e->body, e->len);
}

/* RFC 8446 4.2.8 (RFC 9846 4.3.8). */
static void client_key_share(struct client_hello *hello, struct extension *e)
{
    (void)e;
    hello->has_key_share = true;
}

/* RFC 8446 4.2.11 (RFC 9846 4.3.11): OfferedPsks. */
static void client_pre_shared_key(struct client_hello *hello, struct extension *e)
{
    hello->has_pre_shared_key = true;
    struct reader identities = reader_vector(&e->body, 2);
    while (identities.rest.len > 0) {
        struct bytes identity = take_vector(&identities, 2);
        uint32_t age = reader_u32(&identities);
        if (identities.short_read)
            return;
        if (hello->psk_identity_count == 0) {
            hello->psk_identity = identity;
            hello->obfuscated_ticket_age = age;
        }
        hello->psk_identity_count++;
    }
    struct reader binders = reader_vector(&e->body, 2);
    hello->psk_binder = take_vector(&binders, 1);
}

/* RFC 8446 4.2.10 (RFC 9846 4.3.10). */
static void client_early_data(struct client_hello *hello, struct extension *e)
{
    (void)e;
    hello->has_early_data = true;
}

/* RFC 8446 4.2.1 (RFC 9846 4.3.1). Replaces legacy_version once it names any known version. */
static void client_supported_versions(struct client_hello *hello, struct extension *e)
{
    struct reader versions = reader_vector(&e->body, 1);
    unsigned highest_rank = 0;
    while (versions.rest.len > 0) {
        uint16_t version = reader_u16(&versions);
        if (version_rank(version) <= highest_rank)
            continue;
        highest_rank = version_rank(version);
        hello->max_version = version;
    }
}

/* RFC 8446 4.2.2 (RFC 9846 4.3.2). */
static void client_cookie(struct client_hello *hello, struct extension *e)
{
    (void)e;
    hello->has_cookie = true;
}

/* RFC 8446 4.2.6 (RFC 9846 4.3.6). */
static void client_post_handshake_auth(struct client_hello *hello, struct extension *e)
{
    (void)e;
    hello->has_post_handshake_auth = true;
}

/* RFC 9849 5. */
static void client_encrypted_client_hello(struct client_hello *hello, struct extension *e)
{
    (void)e;
    hello->has_encrypted_client_hello = true;
}

static const struct {
    uint16_t type;
    void (*parse)(struct client_hello *hello, struct extension *e);
} CLIENT_EXTENSIONS[] = {
    { EXTENSION_SERVER_NAME, client_server_name },
    { EXTENSION_ALPN, client_alpn },
    { EXTENSION_RECORD_SIZE_LIMIT, client_record_size_limit },
    { EXTENSION_SESSION_TICKET, client_session_ticket },
    { EXTENSION_KEY_SHARE_DRAFT, client_key_share },
    { EXTENSION_PRE_SHARED_KEY, client_pre_shared_key },
    { EXTENSION_EARLY_DATA, client_early_data },
    { EXTENSION_SUPPORTED_VERSIONS, client_supported_versions },
    { EXTENSION_COOKIE, client_cookie },
    { EXTENSION_POST_HANDSHAKE_AUTH, client_post_handshake_auth },
    { EXTENSION_KEY_SHARE, client_key_share },
    { EXTENSION_ENCRYPTED_CLIENT_HELLO, client_encrypted_client_hello },
};

enum { CLIENT_EXTENSION_COUNT = sizeof CLIENT_EXTENSIONS / sizeof *CLIENT_EXTENSIONS };

static void client_extension(struct client_hello *hello, struct extension *e, seen_rows *seen)
{
    for (unsigned row = 0; row < CLIENT_EXTENSION_COUNT; row++) {
        if (CLIENT_EXTENSIONS[row].type == e->type && first_use(seen, row))
            CLIENT_EXTENSIONS[row].parse(hello, e);
    }
}

bool client_hello_parse(struct bytes body, size_t announced_len, struct client_hello *ret_hello)
{
    struct client_hello hello = { 0 };
    struct reader r = reader_of(bytes_first(body, announced_len));

    hello.legacy_version = reader_u16(&r);
    hello.random = reader_take(&r, RANDOM_LEN);
    if (r.short_read)
        return false;
    hello.max_version = hello.legacy_version;
    hello.session_id = take_vector(&r, 1);
    hello.cipher_suites = take_vector(&r, 2);
    take_vector(&r, 1); /* legacy_compression_methods */

    /* RFC 5246 7.4.1.2: whether there are extensions shows only in bytes being left. */
    struct reader extensions = { 0 };
    bool has_extensions = r.rest.len > 0;
    if (has_extensions)
        extensions = reader_vector(&r, 2);
    hello.extensions = extensions.rest;
    seen_rows seen = 0;
    struct extension e;
    while (extensions.rest.len > 0 && next_extension(&extensions, &e))
        client_extension(&hello, &e, &seen);

    hello.complete = body.len >= announced_len && !r.short_read && r.rest.len == 0 &&
                     !extensions.short_read && hello.session_id.len <= SESSION_ID_LEN_MAX &&
                     hello.cipher_suites.len % 2 == 0;
    *ret_hello = hello;
    return true;
}

bool client_hello_parse_v2(struct bytes body, size_t announced_len, struct client_hello *ret_hello)
{
    struct client_hello hello = { .is_v2_format = true };
    struct reader r = reader_of(bytes_first(body, announced_len));

    uint8_t message_type = reader_u8(&r);
    hello.legacy_version = reader_u16(&r);
    uint16_t cipher_specs_len = reader_u16(&r);
    uint16_t session_id_len = reader_u16(&r);
    uint16_t challenge_len = reader_u16(&r);
    if (r.short_read || message_type != V2_MESSAGE_CLIENT_HELLO)
        return false;
    hello.max_version = hello.legacy_version;
    reader_take(&r, cipher_specs_len);
    hello.session_id = reader_take(&r, session_id_len);
    hello.random = reader_take(&r, challenge_len);

    hello.complete = body.len >= announced_len && !r.short_read && r.rest.len == 0 &&
                     cipher_specs_len % V2_CIPHER_SPEC_LEN == 0;
    *ret_hello = hello;
    return true;
}

/* ---- extensions of the ServerHello and HelloRetryRequest ---- */

/* RFC 7301 3.1: a list of exactly one name. */
static void server_alpn(struct server_hello *hello, struct extension *e)
{
    struct reader names = reader_vector(&e->body, 2);
    hello->alpn = take_vector(&names, 1);
}

/* RFC 5077 3.2: the server will send a ticket. */
static void server_session_ticket(struct server_hello *hello, struct extension *e)
{
    (void)e;
    hello->has_session_ticket = true;
}

static void server_encrypt_then_mac(struct server_hello *hello, struct extension *e)
{
    (void)e;
    hello->has_encrypt_then_mac = true;
}

/*
 * RFC 8446 4.2.8 (RFC 9846 4.3.8): KeyShareServerHello, or KeyShareHelloRetryRequest, which is the
 * group alone.
 */
static void server_key_share(struct server_hello *hello, struct extension *e)
{
    hello->has_key_share = true;
    hello->key_share_group = reader_u16(&e->body);
}

/* RFC 8446 4.2.11 (RFC 9846 4.3.11). */
static void server_pre_shared_key(struct server_hello *hello, struct extension *e)
{
    hello->has_pre_shared_key = true;
    hello->selected_identity = reader_u16(&e->body);
}

/* RFC 8446 4.2.1 (RFC 9846 4.3.1). */
static void server_supported_versions(struct server_hello *hello, struct extension *e)
{
    uint16_t selected = reader_u16(&e->body);
    if (!e->body.short_read)
        hello->version = selected;
}

static const struct {
    uint16_t type;
    void (*parse)(struct server_hello *hello, struct extension *e);
} SERVER_EXTENSIONS[] = {
    { EXTENSION_ALPN, server_alpn },
    { EXTENSION_ENCRYPT_THEN_MAC, server_encrypt_then_mac },
    { EXTENSION_SESSION_TICKET, server_session_ticket },
    { EXTENSION_KEY_SHARE_DRAFT, server_key_share },
    { EXTENSION_PRE_SHARED_KEY, server_pre_shared_key },
    { EXTENSION_SUPPORTED_VERSIONS, server_supported_versions },
    { EXTENSION_KEY_SHARE, server_key_share },
};

enum { SERVER_EXTENSION_COUNT = sizeof SERVER_EXTENSIONS / sizeof *SERVER_EXTENSIONS };

static void server_extension(struct server_hello *hello, struct extension *e, seen_rows *seen)
{
    for (unsigned row = 0; row < SERVER_EXTENSION_COUNT; row++) {
        if (SERVER_EXTENSIONS[row].type == e->type && first_use(seen, row))
            SERVER_EXTENSIONS[row].parse(hello, e);
    }
}

static bool ends_as_downgrade(struct bytes random)
{
    static const struct bytes MARK = { DOWNGRADE, sizeof DOWNGRADE };

    struct reader tail = reader_of(bytes_after(random, RANDOM_LEN - sizeof DOWNGRADE - 1));
    return bytes_equal(reader_take(&tail, sizeof DOWNGRADE), MARK) && reader_u8(&tail) <= 1;
}

static bool is_old_draft(uint16_t version)
{
    unsigned draft = draft_number(version);
    return draft > 0 && draft <= DRAFT_LAST_OLD_LAYOUT;
}

/* The fields behind the version, of a draft's HelloRetryRequest (draft-ietf-tls-tls13-21 4.1.4). */
static void draft_retry_fields(struct server_hello *hello, struct reader *r)
{
    hello->is_hello_retry_request = true;
    if (draft_number(hello->version) >= DRAFT_FIRST_RETRY_SUITE)
        hello->cipher_suite = reader_u16(r);
}

/*
 * ... of a ServerHello (RFC 8446 4.1.3 (RFC 9846 4.2.3), RFC 5246 7.4.1.3;
 * draft-ietf-tls-tls13-21 4.1.3). False when the random is not whole.
 */
static bool server_hello_fields(struct server_hello *hello, struct reader *r)
{
    static const struct bytes RETRY = { HELLO_RETRY_RANDOM, sizeof HELLO_RETRY_RANDOM };

    hello->random = reader_take(r, RANDOM_LEN);
    if (r->short_read)
        return false;
    hello->is_hello_retry_request = bytes_equal(hello->random, RETRY);
    hello->is_downgrade = ends_as_downgrade(hello->random);
    if (is_old_draft(hello->version)) {
        hello->cipher_suite = reader_u16(r);
        return true;
    }
    hello->session_id = take_vector(r, 1);
    hello->cipher_suite = reader_u16(r);
    reader_u8(r); /* legacy_compression_method */
    return true;
}

bool server_hello_parse(enum handshake_type type, struct bytes body, size_t announced_len,
                        struct server_hello *ret_hello)
{
    struct server_hello hello = { 0 };
    struct reader r = reader_of(bytes_first(body, announced_len));

    hello.legacy_version = reader_u16(&r);
    if (r.short_read)
        return false;
    hello.version = hello.legacy_version;
    if (type == HANDSHAKE_HELLO_RETRY_REQUEST_DRAFT)
        draft_retry_fields(&hello, &r);
    else if (!server_hello_fields(&hello, &r))
        return false;

    struct reader extensions = { 0 };
    if (r.rest.len > 0)
        extensions = reader_vector(&r, 2);
    seen_rows seen = 0;
    struct extension e;
    while (extensions.rest.len > 0 && next_extension(&extensions, &e))
        server_extension(&hello, &e, &seen);

    hello.complete = body.len >= announced_len && !r.short_read && r.rest.len == 0 &&
                     !extensions.short_read && hello.session_id.len <= SESSION_ID_LEN_MAX;
    *ret_hello = hello;
    return true;
}

/* ---- suites and text ---- */

static const struct {
    uint16_t suite;
    uint8_t hash_len, tag_len;
} SUITES_13[] = {
    { 0x00c6, 32, 16 }, /* SM4_GCM_SM3, RFC 8998 */
    { 0x00c7, 32, 16 }, /* SM4_CCM_SM3 */
    { 0x1301, 32, 16 }, /* AES_128_GCM_SHA256, RFC 8446 B.4 */
    { 0x1302, 48, 16 }, /* AES_256_GCM_SHA384 */
    { 0x1303, 32, 16 }, /* CHACHA20_POLY1305_SHA256 */
    { 0x1304, 32, 16 }, /* AES_128_CCM_SHA256 */
    { 0x1305, 32, 8 },  /* AES_128_CCM_8_SHA256 */
    { 0x1306, 64, 16 }, /* AEGIS_256_SHA512, draft-irtf-cfrg-aegis-aead */
    { 0x1307, 32, 16 }, /* AEGIS_128L_SHA256 */
    { 0xc0b4, 32, 32 }, /* SHA256_SHA256, RFC 9150: integrity only, an HMAC for a tag */
    { 0xc0b5, 48, 48 }, /* SHA384_SHA384 */
    { 0xc103, 32, 16 }, /* KUZNYECHIK_MGM_L, RFC 9367 */
    { 0xc104, 32, 8 },  /* MAGMA_MGM_L */
    { 0xc105, 32, 16 }, /* KUZNYECHIK_MGM_S */
    { 0xc106, 32, 8 },  /* MAGMA_MGM_S */
};

enum { SUITE_13_COUNT = sizeof SUITES_13 / sizeof *SUITES_13 };

unsigned cipher_suite_hash_len(uint16_t suite)
{
    for (unsigned i = 0; i < SUITE_13_COUNT; i++) {
        if (SUITES_13[i].suite == suite)
            return SUITES_13[i].hash_len;
    }
    return 0;
}

unsigned cipher_suite_tag_len(uint16_t suite)
{
    for (unsigned i = 0; i < SUITE_13_COUNT; i++) {
        if (SUITES_13[i].suite == suite)
            return SUITES_13[i].tag_len;
    }
    return 0;
}

/* Whether all bytes are printable ASCII, space excluded. */
static bool is_printable(struct bytes b)
{
    for (size_t i = 0; i < b.len; i++) {
        if (b.at[i] <= ' ' || b.at[i] > '~')
            return false;
    }
    return true;
}

size_t server_name_text(struct bytes name, char *buffer, size_t size)
{
    if (name.len == 0 || name.len > HOST_NAME_LEN_MAX || name.len >= size || !is_printable(name))
        return 0;
    memcpy(buffer, name.at, name.len);
    buffer[name.len] = '\0';
    return name.len;
}

/* A comma separates protocols in the text, so a name that holds one is not printed as it is. */
static bool is_plain_protocol(struct bytes name)
{
    return is_printable(name) && memchr(name.at, ',', name.len) == NULL;
}

static bool is_grease_protocol(struct bytes name)
{
    struct reader r = reader_of(name);
    return name.len == 2 && is_grease(reader_u16(&r));
}

/* Writes one protocol's text without terminator; 0 when it does not fit into size. */
static size_t protocol_text(struct bytes name, char *buffer, size_t size)
{
    if (is_plain_protocol(name)) {
        if (name.len > size)
            return 0;
        memcpy(buffer, name.at, name.len);
        return name.len;
    }
    if (2 * name.len > size)
        return 0;
    for (size_t i = 0; i < name.len; i++) {
        buffer[2 * i] = "0123456789abcdef"[name.at[i] >> 4];
        buffer[2 * i + 1] = "0123456789abcdef"[name.at[i] & 15];
    }
    return 2 * name.len;
}

size_t alpn_text(struct bytes list, char *buffer, size_t size)
{
    struct reader names = reader_of(list);
    size_t len = 0;
    if (size == 0)
        return 0;
    while (names.rest.len > 0) {
        struct bytes name = take_vector(&names, 1);
        if (name.len == 0 || is_grease_protocol(name))
            continue;
        size_t comma = len > 0 ? 1 : 0;
        if (len + comma + 1 >= size)
            break;
        size_t added = protocol_text(name, buffer + len + comma, size - len - comma - 1);
        if (added == 0)
            break;
        if (comma)
            buffer[len] = ',';
        len += comma + added;
    }
    buffer[len] = '\0';
    return len;
}
