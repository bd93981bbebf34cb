/* SPDX-License-Identifier: Apache-2.0 */
#include "preamble.h"

/* ---- text ---- */

static uint8_t upper(uint8_t c)
{
    return c >= 'a' && c <= 'z' ? (uint8_t)(c - 'a' + 'A') : c;
}

/* Whether the bytes begin with a text that is given in upper case; theirs does not matter. */
static bool begins_with(struct bytes b, const char *text)
{
    size_t len = strlen(text);
    if (b.len < len)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (upper(b.at[i]) != (uint8_t)text[i])
            return false;
    }
    return true;
}

/* Whether they are such a text. */
static bool is_text(struct bytes b, const char *text)
{
    return b.len == strlen(text) && begins_with(b, text);
}

static bool contains(struct bytes b, const char *text)
{
    for (size_t i = 0; i < b.len; i++) {
        if (begins_with(bytes_after(b, i), text))
            return true;
    }
    return false;
}

/* Takes a line without its end, LF or CR LF. */
static struct bytes take_line(struct reader *r)
{
    struct bytes line = bytes_take_until(&r->rest, '\n');
    bool has_cr = line.len > 0 && line.at[line.len - 1] == '\r';
    return bytes_first(line, line.len - (has_cr ? 1 : 0));
}

static bool has_line_with(struct bytes text, const char *start)
{
    struct reader lines = reader_of(text);
    while (lines.rest.len > 0) {
        if (begins_with(take_line(&lines), start))
            return true;
    }
    return false;
}

static bool has_line(struct bytes text, const char *whole)
{
    struct reader lines = reader_of(text);
    while (lines.rest.len > 0) {
        if (is_text(take_line(&lines), whole))
            return true;
    }
    return false;
}

/* ---- PROXY protocol ---- */

enum {
    PROXY_V2_FIXED_LEN = 16,
    PROXY_V2_VERSION = 2,
    PROXY_V2_LOCAL = 0, /* commands */
    PROXY_V2_PROXY = 1,
    PROXY_V2_INET = 1, /* address families */
    PROXY_V2_INET6 = 2,
    PROXY_V2_INET_LEN = 12,
    PROXY_V2_INET6_LEN = 36,
    PORT_DIGITS_MAX = 5,
};

static const char PROXY_V1_START[] = "PROXY ";

static const uint8_t PROXY_V2_SIGNATURE[] = { '\r', '\n', '\r', '\n', 0,   '\r',
                                              '\n', 'Q',  'U',  'I',  'T', '\n' };

/* Whether the bytes are a beginning of the pattern, or begin with it. */
static bool agrees(struct bytes b, struct bytes pattern)
{
    return bytes_equal(bytes_first(b, pattern.len), bytes_first(pattern, b.len));
}

static bool read_address(struct bytes word, struct address *ret_address)
{
    char text[ADDRESS_TEXT_SIZE];
    if (word.len == 0 || word.len >= sizeof text || memchr(word.at, '\0', word.len) != NULL)
        return false;
    memcpy(text, word.at, word.len);
    text[word.len] = '\0';
    return address_parse(text, ret_address);
}

static bool read_port(struct bytes word, uint16_t *ret_port)
{
    uint32_t port = 0;
    if (word.len == 0 || word.len > PORT_DIGITS_MAX)
        return false;
    for (size_t i = 0; i < word.len; i++) {
        if (word.at[i] < '0' || word.at[i] > '9')
            return false;
        port = port * 10 + (uint32_t)(word.at[i] - '0');
    }
    if (port > UINT16_MAX)
        return false;
    *ret_port = (uint16_t)port;
    return true;
}

/* Section 2.1: "PROXY TCP4 192.0.2.1 198.51.100.2 56324 443" and CR LF. */
static enum proxy_result read_v1(struct bytes first, struct proxy_header *ret_header)
{
    struct reader r = reader_of(bytes_first(first, PROXY_DECIDED_LEN));
    struct bytes line = bytes_take_until(&r.rest, '\n');
    size_t len = bytes_first(first, PROXY_DECIDED_LEN).len - r.rest.len;
    if (len == line.len) /* no line feed */
        return len < PROXY_DECIDED_LEN ? PROXY_MORE : PROXY_NONE;

    struct reader words = reader_of(bytes_first(line, line.len - 1));
    if (line.at[line.len - 1] != '\r')
        return PROXY_NONE;
    bytes_take_until(&words.rest, ' ');
    struct bytes protocol = bytes_take_until(&words.rest, ' ');
    bool has_addresses = is_text(protocol, "TCP4") || is_text(protocol, "TCP6");
    if (!has_addresses && !is_text(protocol, "UNKNOWN"))
        return PROXY_NONE;
    struct proxy_header header = { .kind = PREAMBLE_PROXY_V1, .len = len };
    struct bytes source = bytes_take_until(&words.rest, ' ');
    struct bytes destination = bytes_take_until(&words.rest, ' ');
    header.has_addresses = has_addresses && read_address(source, &header.source.address) &&
                           read_address(destination, &header.destination.address) &&
                           read_port(bytes_take_until(&words.rest, ' '), &header.source.port) &&
                           read_port(bytes_take_until(&words.rest, ' '), &header.destination.port);
    *ret_header = header;
    return PROXY_FOUND;
}

static struct address take_inet(struct reader *r)
{
    uint8_t octet[4] = { 0 };
    struct bytes b = reader_take(r, sizeof octet);
    if (b.len > 0)
        memcpy(octet, b.at, b.len);
    return address_of_ipv4(octet);
}

static struct address take_inet6(struct reader *r)
{
    struct address a = { 0 };
    struct bytes b = reader_take(r, sizeof a.octet);
    if (b.len > 0)
        memcpy(a.octet, b.at, b.len);
    return a;
}

/* Length of the addresses that a command and family announce; 0 for those without. */
static size_t v2_addresses_len(unsigned command, unsigned family)
{
    if (command == PROXY_V2_LOCAL)
        return 0;
    if (family == PROXY_V2_INET)
        return PROXY_V2_INET_LEN;
    return family == PROXY_V2_INET6 ? PROXY_V2_INET6_LEN : 0;
}

/* Section 2.2: signature, version and command, family and protocol, length, addresses, TLVs. */
static enum proxy_result read_v2(struct bytes first, struct proxy_header *ret_header)
{
    struct reader r = reader_of(first);
    reader_take(&r, sizeof PROXY_V2_SIGNATURE);
    uint8_t version_command = reader_u8(&r);
    unsigned family = reader_u8(&r) >> 4;
    size_t rest_len = reader_u16(&r);
    if (r.short_read)
        return PROXY_MORE;
    unsigned command = version_command & 15;
    if (version_command >> 4 != PROXY_V2_VERSION || command > PROXY_V2_PROXY ||
        rest_len > PROXY_HEADER_LEN_MAX - PROXY_V2_FIXED_LEN)
        return PROXY_NONE;

    struct proxy_header header = { .kind = PREAMBLE_PROXY_V2,
                                   .len = PROXY_V2_FIXED_LEN + rest_len };
    size_t addresses_len = v2_addresses_len(command, family);
    if (addresses_len > 0 && addresses_len <= rest_len) {
        bool is_inet = family == PROXY_V2_INET;
        header.source.address = is_inet ? take_inet(&r) : take_inet6(&r);
        header.destination.address = is_inet ? take_inet(&r) : take_inet6(&r);
        header.source.port = reader_u16(&r);
        header.destination.port = reader_u16(&r);
        if (r.short_read) {
            *ret_header = (struct proxy_header){ .kind = header.kind, .len = header.len };
            return PROXY_MORE;
        }
        header.has_addresses = true;
    }
    *ret_header = header;
    return PROXY_FOUND;
}

enum proxy_result proxy_header_read(struct bytes first, struct proxy_header *ret_header)
{
    static const struct bytes V1 = { (const uint8_t *)PROXY_V1_START, sizeof PROXY_V1_START - 1 };
    static const struct bytes V2 = { PROXY_V2_SIGNATURE, sizeof PROXY_V2_SIGNATURE };

    *ret_header = (struct proxy_header){ 0 };
    if (first.len == 0)
        return PROXY_MORE;
    if (agrees(first, V1))
        return read_v1(first, ret_header);
    if (agrees(first, V2))
        return read_v2(first, ret_header);
    return PROXY_NONE;
}

/* ---- requests for TLS or for a connection; each looks at the side that was seen ---- */

/* RFC 3207 4. */
static bool is_smtp(struct bytes client, struct bytes server)
{
    if (client.len > 0)
        return has_line(client, "STARTTLS") &&
               (begins_with(server, "220") || begins_with(client, "EHLO") ||
                begins_with(client, "LHLO"));
    return begins_with(server, "220") && has_line_with(server, "250");
}

/* RFC 9051 6.2.1, RFC 3501 6.2.1: "a001 STARTTLS". */
static bool is_imap(struct bytes client, struct bytes server)
{
    if (client.len == 0)
        return begins_with(server, "* OK");
    struct reader lines = reader_of(client);
    while (lines.rest.len > 0) {
        struct reader words = reader_of(take_line(&lines));
        bool has_tag = bytes_take_until(&words.rest, ' ').len > 0;
        if (has_tag && begins_with(words.rest, "STARTTLS"))
            return true;
    }
    return false;
}

/* RFC 2595 4. */
static bool is_pop3(struct bytes client, struct bytes server)
{
    return client.len > 0 ? has_line(client, "STLS") : begins_with(server, "+OK");
}

/* RFC 4217 4. */
static bool is_ftp(struct bytes client, struct bytes server)
{
    if (client.len > 0)
        return has_line_with(client, "AUTH TLS") || has_line_with(client, "AUTH SSL");
    return begins_with(server, "220") && has_line_with(server, "234");
}

/* RFC 6120 5.4. */
static bool is_xmpp(struct bytes client, struct bytes server)
{
    return contains(client.len > 0 ? client : server, "<STREAM:STREAM");
}

/* Skips a BER length (X.690 8.1.3) in its short or long form. */
static void skip_ber_length(struct reader *r)
{
    uint8_t first = reader_u8(r);
    if (first & 0x80)
        reader_take(r, first & 0x7f);
}

/* RFC 4511 4.14: ExtendedRequest with the object identifier of StartTLS, and its response. */
static bool is_ldap(struct bytes client, struct bytes server)
{
    enum { SEQUENCE = 0x30, INTEGER = 2, EXTENDED_RESPONSE = 0x78 };

    struct reader r = reader_of(client.len > 0 ? client : server);
    bool is_sequence = reader_u8(&r) == SEQUENCE;
    if (client.len > 0)
        return is_sequence && contains(client, "1.3.6.1.4.1.1466.20037");
    skip_ber_length(&r);
    bool has_message_id = reader_u8(&r) == INTEGER;
    reader_vector(&r, 1);
    return is_sequence && has_message_id && reader_u8(&r) == EXTENDED_RESPONSE;
}

enum postgresql_request { POSTGRESQL_SSL = 80877103, POSTGRESQL_GSS = 80877104 };

/* PostgreSQL "Message Formats", SSLRequest and GSSENCRequest: length 8 and a code. */
static bool take_postgresql_request(struct reader *r, enum postgresql_request code)
{
    return reader_u32(r) == 8 && reader_u32(r) == code;
}

static bool is_postgresql(struct bytes client, struct bytes server)
{
    static const struct bytes YES = { (const uint8_t *)"S", 1 };

    struct reader r = reader_of(client);
    return client.len > 0 ? take_postgresql_request(&r, POSTGRESQL_SSL) : bytes_equal(server, YES);
}

/* Asks for encryption by GSSAPI first, is refused, and asks for TLS. */
static bool is_postgresql_after_gss(struct bytes client, struct bytes server)
{
    static const struct bytes NO_YES = { (const uint8_t *)"NS", 2 };

    struct reader r = reader_of(client);
    return client.len > 0 ? take_postgresql_request(&r, POSTGRESQL_GSS) &&
                                take_postgresql_request(&r, POSTGRESQL_SSL)
                          : bytes_equal(server, NO_YES);
}

/* MySQL "Connection Phase": Protocol::HandshakeV10 is answered by Protocol::SSLRequest. */
static bool is_mysql(struct bytes client, struct bytes server)
{
    enum { SSL_REQUEST_LEN = 32, CLIENT_SSL = 0x800, HANDSHAKE_V10 = 10 };

    struct reader r = reader_of(client.len > 0 ? client : server);
    uint64_t len = reader_le(&r, 3);
    uint8_t sequence = reader_u8(&r);
    if (client.len > 0)
        return len == SSL_REQUEST_LEN && sequence == 1 && (reader_le(&r, 4) & CLIENT_SSL) != 0;
    return len > 0 && sequence == 0 && reader_u8(&r) == HANDSHAKE_V10;
}

/* RFC 9110 9.3.6. */
static bool is_http_connect(struct bytes client, struct bytes server)
{
    return client.len > 0 ? begins_with(client, "CONNECT ") : begins_with(server, "HTTP/1.");
}

/* SOCKS 4: version, command CONNECT, port, address, user; the reply has version 0, granted 90. */
static bool is_socks4(struct bytes client, struct bytes server)
{
    enum { VERSION = 4, CONNECT = 1, REPLY_VERSION = 0, GRANTED = 90 };

    struct reader r = reader_of(client.len > 0 ? client : server);
    uint8_t version = reader_u8(&r);
    uint8_t code = reader_u8(&r);
    reader_take(&r, 6);
    if (r.short_read)
        return false;
    return client.len > 0 ? version == VERSION && code == CONNECT
                          : version == REPLY_VERSION && code == GRANTED;
}

enum { SOCKS5_VERSION = 5, SOCKS5_AUTH_VERSION = 1 };

/* Takes the client's greeting of SOCKS 5 (RFC 1928 3): version and methods. */
static bool take_socks5_greeting(struct reader *r)
{
    uint8_t version = reader_u8(r);
    struct bytes methods = reader_vector(r, 1).rest;
    return !r->short_read && version == SOCKS5_VERSION && methods.len > 0;
}

static bool is_socks5(struct bytes client, struct bytes server)
{
    struct reader r = reader_of(client.len > 0 ? client : server);
    return client.len > 0 ? take_socks5_greeting(&r) : reader_u8(&r) == SOCKS5_VERSION;
}

/* RFC 1929: user name and password between greeting and request. */
static bool is_socks5_with_auth(struct bytes client, struct bytes server)
{
    (void)server;
    struct reader r = reader_of(client);
    return take_socks5_greeting(&r) && reader_u8(&r) == SOCKS5_AUTH_VERSION;
}

/* The first that fits; round_trips is the least that the exchange needs. */
static const struct {
    enum preamble kind;
    uint8_t round_trips;
    bool (*fits)(struct bytes client, struct bytes server);
} KINDS[] = {
    { PREAMBLE_HTTP_CONNECT, 1, is_http_connect },
    { PREAMBLE_SMTP, 3, is_smtp },
    { PREAMBLE_IMAP, 2, is_imap },
    { PREAMBLE_POP3, 2, is_pop3 },
    { PREAMBLE_FTP, 2, is_ftp },
    { PREAMBLE_XMPP, 2, is_xmpp },
    { PREAMBLE_LDAP, 1, is_ldap },
    { PREAMBLE_POSTGRESQL, 1, is_postgresql },
    { PREAMBLE_POSTGRESQL, 2, is_postgresql_after_gss },
    { PREAMBLE_MYSQL, 1, is_mysql },
    { PREAMBLE_SOCKS4, 1, is_socks4 },
    { PREAMBLE_SOCKS5, 3, is_socks5_with_auth },
    { PREAMBLE_SOCKS5, 2, is_socks5 },
};

enum { KIND_COUNT = sizeof KINDS / sizeof *KINDS };

static struct preamble_verdict recognise_exchange(struct bytes client, struct bytes server)
{
    for (unsigned i = 0; i < KIND_COUNT; i++) {
        if (KINDS[i].fits(client, server))
            return (struct preamble_verdict){ KINDS[i].kind, KINDS[i].round_trips };
    }
    return (struct preamble_verdict){ .kind = PREAMBLE_OTHER };
}

struct preamble_verdict preamble_recognise(struct bytes client, struct bytes server, unsigned waits)
{
    struct proxy_header proxy;
    proxy_header_read(client, &proxy);
    client = bytes_after(client, proxy.len < client.len ? proxy.len : client.len);
    if (client.len == 0 && server.len == 0)
        return (struct preamble_verdict){ .kind = proxy.kind };

    struct preamble_verdict verdict = recognise_exchange(client, server);
    if (waits > 0)
        verdict.round_trips = waits < UINT8_MAX ? (uint8_t)waits : UINT8_MAX;
    return verdict;
}
