/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HELLO_H
#define HELLO_H
/*
 * ClientHello and ServerHello (HelloRetryRequest) to values: pure parsers, no allocation. All
 * views point into the message and live as long as it. GREASE values (RFC 8701) are ignored.
 * A message that is cut (snaplen, hole) gives what could be read, with complete = false; then an
 * absent extension means "not seen", not "not sent".
 */
#include "bytes.h"

enum tls_version { /* wire values */
                   SSL_2_0 = 0x0002,
                   SSL_3_0 = 0x0300,
                   TLS_1_0 = 0x0301,
                   TLS_1_1 = 0x0302,
                   TLS_1_2 = 0x0303,
                   TLS_1_3 = 0x0304,
                   TLS_1_3_DRAFT = 0x7f00, /* plus the draft's number */
};

enum handshake_type { /* RFC 8446 4 (RFC 9846 4), RFC 5246 7.4, RFC 6066 */
                      HANDSHAKE_HELLO_REQUEST = 0,
                      HANDSHAKE_CLIENT_HELLO = 1,
                      HANDSHAKE_SERVER_HELLO = 2,
                      HANDSHAKE_NEW_SESSION_TICKET = 4,
                      HANDSHAKE_HELLO_RETRY_REQUEST_DRAFT = 6, /* drafts up to 21 */
                      HANDSHAKE_CERTIFICATE = 11,
                      HANDSHAKE_SERVER_KEY_EXCHANGE = 12,
                      HANDSHAKE_CERTIFICATE_REQUEST = 13,
                      HANDSHAKE_SERVER_HELLO_DONE = 14,
                      HANDSHAKE_CERTIFICATE_VERIFY = 15,
                      HANDSHAKE_CLIENT_KEY_EXCHANGE = 16,
                      HANDSHAKE_FINISHED = 20,
                      HANDSHAKE_CERTIFICATE_STATUS = 22,
};

struct client_hello {
    bool complete;     /* every announced byte was there and the outer structure fits:
                          fields, extensions one behind the other, nothing behind them */
    bool is_v2_format; /* client_hello_parse_v2() made it */
    uint16_t legacy_version;
    struct bytes random;            /* 32 bytes; SSLv2 format: the challenge, empty when cut */
    struct bytes session_id;        /* this and all below: empty or 0 when cut */
    struct bytes cipher_suites;     /* the vector's bytes, 2 each; SSLv2 format: empty */
    struct bytes extensions;        /* the vector's bytes; as many as there are when cut */
    uint16_t max_version;           /* highest of supported_versions (RFC 8446 4.2.1), else legacy;
                                       drafts compare by their number below TLS 1.3; when cut, the
                                       highest that could be read */
    struct bytes server_name;       /* host_name of RFC 6066 3 as on the wire, unchecked */
    struct bytes alpn;              /* protocol_name_list (RFC 7301) behind its length, unchecked */
    bool has_session_ticket;        /* extension 35 (RFC 5077) present */
    struct bytes session_ticket;    /* its bytes; may be empty */
    bool has_early_data;            /* extension 42 */
    bool has_pre_shared_key;        /* extension 41 */
    unsigned psk_identity_count;    /* those that are whole */
    struct bytes psk_identity;      /* the first one */
    uint32_t obfuscated_ticket_age; /* of the first one */
    struct bytes psk_binder;        /* the first one */
    bool has_key_share;
    bool has_cookie;
    bool has_encrypted_client_hello; /* 0xfe0d (RFC 9849), GREASE or not */
    bool has_post_handshake_auth;
    uint16_t record_size_limit; /* RFC 8449; 0 without */
};

struct server_hello {
    bool complete;
    uint16_t version; /* selected: supported_versions, else legacy_version */
    uint16_t legacy_version;
    struct bytes random;
    struct bytes session_id;
    uint16_t cipher_suite;
    bool is_hello_retry_request; /* RFC 8446 4.1.3: the fixed random; or type 6 of drafts */
    bool has_session_ticket;     /* extension 35 */
    bool has_pre_shared_key;
    uint16_t selected_identity;
    bool has_key_share;
    uint16_t key_share_group;  /* 0 without */
    struct bytes alpn;         /* selected protocol, TLS <= 1.2; empty without */
    bool has_encrypt_then_mac; /* extension 22 (RFC 7366), TLS <= 1.2 */
    bool is_downgrade;         /* RFC 8446 4.1.3 sentinel in the random */
};

/*
 * Parses the body of a ClientHello (behind the 4 bytes of handshake header). announced_len is the
 * length that header gave; body may be shorter, and what it holds beyond that is not read.
 * RFC 8446 4.1.2 (RFC 9846 4.2.2), RFC 5246 7.4.1.2, RFC 6101. An extension that is broken inside
 * costs that extension only; of duplicates the first counts. False, and nothing written, when not
 * even version and random could be read.
 */
bool client_hello_parse(struct bytes body, size_t announced_len, struct client_hello *ret_hello);

/*
 * Parses an SSLv2-format ClientHello (RFC 5246 E.2) behind its 2-byte record header, whose length
 * is announced_len. False when the fixed fields are not whole or it is another message.
 */
bool client_hello_parse_v2(struct bytes body, size_t announced_len, struct client_hello *ret_hello);

/*
 * Parses the body of a ServerHello or, with that type, of a draft's HelloRetryRequest; the layout
 * of TLS 1.3 drafts up to 21 (no session id) goes by the version. False, and nothing written, when
 * not even version and random (HelloRetryRequest of a draft: version) could be read.
 */
bool server_hello_parse(enum handshake_type type, struct bytes body, size_t announced_len,
                        struct server_hello *ret_hello);

/* Whether a version is TLS 1.3 or one of its drafts (also 0xfb00 + n of one vendor's drafts). */
bool version_is_13(uint16_t version);

enum { VERSION_TEXT_SIZE = 24 };

/*
 * "SSLv2", "SSLv3", "TLSv1.0" to "TLSv1.3", "TLSv1.3-draft28", "TLSv1.3-fbdraft26", else as
 * "0x7e01"; writes into buffer and returns it.
 */
const char *version_text(uint16_t version, char buffer[VERSION_TEXT_SIZE]);

/* IANA names, NULL for numbers without one and for GREASE; static text. names.c. */
const char *cipher_suite_name(uint16_t suite);
const char *named_group_name(uint16_t group);
const char *alert_name(uint8_t description);

/*
 * Hash output of a TLS 1.3 suite in bytes (32 or 48; AEGIS-256 64) and its AEAD tag (16 or 8; the
 * suites of RFC 9150 32 or 48); 0 for others.
 */
unsigned cipher_suite_hash_len(uint16_t suite);
unsigned cipher_suite_tag_len(uint16_t suite);

bool is_grease(uint16_t value);

enum { JA4_TEXT_SIZE = 37 };

/*
 * JA4 (the TLS client fingerprint) of a ClientHello over TCP; writes into buffer, or an empty
 * string when the hello is not complete, has the SSLv2 format, or offers more suites, extensions
 * or signature algorithms than any client does. ja4.c.
 */
void ja4_text(const struct client_hello *hello, char buffer[JA4_TEXT_SIZE]);

/*
 * Copies a host name for storage: case kept as it was sent, printable ASCII without space, at most
 * 255 bytes. Terminated. Returns its length, 0 when it must not be stored (then buffer is not
 * written). size is that of buffer and holds the terminator too.
 */
size_t server_name_text(struct bytes name, char *buffer, size_t size);

/*
 * "h2,http/1.1" of a protocol_name_list (struct client_hello's alpn); a protocol that is not
 * printable ASCII, or holds a space or comma, becomes hex. GREASE is left out. Ends before the
 * first protocol that is broken or does not fit. Terminated; returns the text's length.
 */
size_t alpn_text(struct bytes list, char *buffer, size_t size);

#endif
