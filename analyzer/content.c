/* SPDX-License-Identifier: Apache-2.0 */
#include "content.h"

enum {
    TYPE_ALERT = 21, /* RFC 8446 5.1 */
    TYPE_HANDSHAKE = 22,
    TYPE_APPLICATION_DATA = 23,
    MESSAGE_HEADER_LEN = 4,
    FATAL = 2, /* RFC 8446 6 */
};

enum { EXTENSION_ALPN = 16, EXTENSION_EARLY_DATA = 42 };

/* ---- handshake ---- */

/* RFC 8446 4, RFC 8879 4 */
static unsigned message_bit(uint8_t type)
{
    switch (type) {
    case 4:
        return CONTENT_NEW_SESSION_TICKET;
    case 5:
        return CONTENT_END_OF_EARLY_DATA;
    case 11:
    case 25:
        return CONTENT_CERTIFICATE;
    case 13:
        return CONTENT_CERTIFICATE_REQUEST;
    case 15:
        return CONTENT_CERTIFICATE_VERIFY;
    case 20:
        return CONTENT_FINISHED;
    case 24:
        return CONTENT_KEY_UPDATE;
    default:
        return CONTENT_OTHER_MESSAGE;
    }
}

/* RFC 8446 4.3.1. One that is not whole says nothing, since what is missing might have said it. */
static unsigned read_encrypted_extensions(struct bytes body, struct bytes *ret_alpn)
{
    struct reader r = reader_of(body);
    struct reader extensions = reader_vector(&r, 2);
    struct bytes alpn = { 0 };
    unsigned bits = CONTENT_ENCRYPTED_EXTENSIONS;
    while (extensions.rest.len > 0 && !extensions.short_read) {
        uint16_t type = reader_u16(&extensions);
        struct reader data = reader_vector(&extensions, 2);
        if (type == EXTENSION_EARLY_DATA)
            bits |= CONTENT_EARLY_DATA_ACCEPTED;
        else if (type == EXTENSION_ALPN)
            alpn = reader_vector(&data, 2).rest;
    }
    if (r.short_read || extensions.short_read)
        return CONTENT_OTHER_MESSAGE;
    if (alpn.len > 0)
        *ret_alpn = alpn;
    return bits;
}

/* Adds bytes to a unit's header; false while it is not complete. */
static bool fill_header(struct content_unit *u, unsigned header_len, struct reader *r)
{
    while (u->header_len < header_len && r->rest.len > 0)
        u->header[u->header_len++] = reader_u8(r);
    return u->header_len == header_len;
}

static void skip_body(struct content_unit *u, struct reader *r)
{
    struct bytes part = bytes_first(r->rest, u->left);
    u->left -= (uint32_t)part.len;
    reader_take(r, part.len);
    if (u->left == 0)
        u->header_len = 0;
}

static uint64_t number_at(const uint8_t *at, unsigned width)
{
    struct reader r = reader_of((struct bytes){ at, width });
    return reader_be(&r, width);
}

static uint16_t read_handshake(struct content_unit *u, struct bytes content, struct bytes *ret_alpn)
{
    enum { ENCRYPTED_EXTENSIONS = 8 };
    struct reader r = reader_of(content);
    unsigned bits = CONTENT_HANDSHAKE;
    if (u->header_len > 0)
        bits |= CONTENT_OTHER_MESSAGE;
    if (u->left > 0)
        skip_body(u, &r);
    while (r.rest.len > 0 && fill_header(u, MESSAGE_HEADER_LEN, &r)) {
        u->left = (uint32_t)number_at(u->header + 1, 3);
        if (u->header[0] == ENCRYPTED_EXTENSIONS)
            bits |= read_encrypted_extensions(bytes_first(r.rest, u->left), ret_alpn);
        else
            bits |= message_bit(u->header[0]);
        skip_body(u, &r);
    }
    return (uint16_t)bits;
}

/* ---- alerts ---- */

static uint16_t read_alert(struct bytes content)
{
    struct reader r = reader_of(content);
    uint8_t level = reader_u8(&r), description = reader_u8(&r);
    if (r.short_read)
        return CONTENT_OTHER;
    return (uint16_t)(CONTENT_ALERT | (level == FATAL ? CONTENT_FATAL : 0) |
                      description << CONTENT_DESCRIPTION_SHIFT);
}

/* ---- application data ---- */

enum protocol { PROTOCOL_NOT_KNOWN, PROTOCOL_OTHER, PROTOCOL_HTTP2, PROTOCOL_HTTP2_LOST };

static const char MAGIC[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"; /* RFC 9113 3.4 */

static struct bytes of_text(const char *text)
{
    return (struct bytes){ (const uint8_t *)text, strlen(text) };
}

static bool begins_with(struct bytes content, const char *text)
{
    return bytes_equal(bytes_first(content, strlen(text)), of_text(text));
}

static bool begins_with_method(struct bytes content)
{
    static const char *const METHODS[] = { "GET ",     "POST ",    "HEAD ",  "PUT ",  "DELETE ",
                                           "OPTIONS ", "CONNECT ", "TRACE ", "PATCH " };
    for (size_t i = 0; i < sizeof METHODS / sizeof *METHODS; i++)
        if (begins_with(content, METHODS[i]))
            return true;
    return false;
}

/* The server's first frame is SETTINGS, of stream 0 and no acknowledgment. RFC 9113 3.4, 6.5 */
static bool begins_with_settings(struct bytes content)
{
    enum { SETTINGS = 4, SETTING_LEN = 6, FRAME_LEN_MAX = 16384 };
    struct reader r = reader_of(content);
    uint64_t len = reader_be(&r, 3);
    uint8_t type = reader_u8(&r), flags = reader_u8(&r);
    uint32_t stream = reader_u32(&r);
    return !r.short_read && type == SETTINGS && flags == 0 && stream == 0 &&
           len % SETTING_LEN == 0 && len <= FRAME_LEN_MAX;
}

/*
 * Whether a record holds whole frames and nothing else, which other bytes do not by chance: behind
 * a loss the borders of frames are known again. RFC 9113 4.1, 6
 */
static bool holds_whole_frames(struct bytes content)
{
    enum { TYPE_MAX = 0x10 }; /* PRIORITY_UPDATE, RFC 9218 */
    struct reader r = reader_of(content);
    while (r.rest.len > 0) {
        size_t len = (size_t)reader_be(&r, 3);
        uint8_t type = reader_u8(&r);
        reader_u8(&r);
        bool is_reserved = (reader_be(&r, 4) & UINT64_C(0x80000000)) != 0;
        reader_take(&r, len);
        if (r.short_read || type > TYPE_MAX || is_reserved)
            return false;
    }
    return content.len > 0;
}

static void find_protocol(struct content_reader *r, struct bytes content)
{
    size_t magic_len = strlen(MAGIC);
    struct bytes magic_part = bytes_first(of_text(MAGIC), content.len);
    if (content.len >= 4 && bytes_equal(bytes_first(content, magic_len), magic_part)) {
        r->protocol = PROTOCOL_HTTP2;
        r->magic_left = (uint8_t)magic_len;
    } else if (begins_with_settings(content) || (r->lost && holds_whole_frames(content))) {
        r->protocol = PROTOCOL_HTTP2;
    } else if (!r->lost) {
        r->protocol = PROTOCOL_OTHER;
    }
}

/* RFC 9113 4.1: length, type, flags, stream. */
static unsigned read_frames(struct content_reader *r, struct bytes content)
{
    enum { DATA = 0, HEADERS = 1 };
    struct content_unit *u = &r->frame;
    struct reader rest = reader_of(content);
    unsigned bits = CONTENT_HTTP2;
    struct bytes magic = bytes_first(rest.rest, r->magic_left);
    r->magic_left = (uint8_t)(r->magic_left - magic.len);
    reader_take(&rest, magic.len);
    if (u->left > 0)
        skip_body(u, &rest);
    while (rest.rest.len > 0 && fill_header(u, CONTENT_FRAME_HEADER_LEN, &rest)) {
        u->left = (uint32_t)number_at(u->header, 3);
        if (u->header[3] == HEADERS)
            bits |= CONTENT_HEADERS;
        else if (u->header[3] == DATA)
            bits |= CONTENT_DATA;
        skip_body(u, &rest);
    }
    return bits;
}

static uint16_t read_application(struct content_reader *r, struct bytes content)
{
    unsigned bits = CONTENT_APPLICATION;
    if (content.len == 0)
        return (uint16_t)(bits | CONTENT_EMPTY);
    if (r->protocol == PROTOCOL_NOT_KNOWN)
        find_protocol(r, content);
    if (r->protocol == PROTOCOL_HTTP2_LOST && holds_whole_frames(content))
        r->protocol = PROTOCOL_HTTP2;
    if (r->protocol == PROTOCOL_HTTP2)
        return (uint16_t)(bits | read_frames(r, content));
    if (r->protocol == PROTOCOL_HTTP2_LOST)
        return (uint16_t)(bits | CONTENT_HTTP2 | CONTENT_UNCLEAR);
    if (begins_with(content, "HTTP/"))
        bits |= CONTENT_HTTP1_STATUS;
    else if (begins_with_method(content))
        bits |= CONTENT_HTTP1_REQUEST;
    return (uint16_t)bits;
}

/* ---- records ---- */

uint16_t content_read(struct content_reader *r, uint8_t type, struct bytes content,
                      struct bytes *ret_alpn)
{
    switch (type) {
    case TYPE_HANDSHAKE:
        return read_handshake(&r->message, content, ret_alpn);
    case TYPE_ALERT:
        return read_alert(content);
    case TYPE_APPLICATION_DATA:
        return read_application(r, content);
    default:
        return CONTENT_OTHER;
    }
}

void content_lost(struct content_reader *r)
{
    r->message = (struct content_unit){ 0 };
    r->frame = (struct content_unit){ 0 };
    r->lost |= r->protocol == PROTOCOL_NOT_KNOWN;
    if (r->protocol == PROTOCOL_HTTP2)
        r->protocol = PROTOCOL_HTTP2_LOST;
}
