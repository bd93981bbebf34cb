/* SPDX-License-Identifier: Apache-2.0 */
#include "content.h"

#include "hello_builder.h"

#include <criterion/criterion.h>

#define COUNT(array) (sizeof array / sizeof *array)

enum { ALERT = 21, HANDSHAKE = 22, APPLICATION = 23 };

static uint16_t read_one(struct content_reader *r, uint8_t type, struct bytes content)
{
    struct bytes alpn = { 0 };
    return content_read(r, type, content, &alpn);
}

static uint16_t read_text(struct content_reader *r, const char *text)
{
    return read_one(r, APPLICATION, (struct bytes){ (const uint8_t *)text, strlen(text) });
}

/* ---- handshake ---- */

static void add_message(struct builder *b, uint8_t type, size_t len)
{
    add_u8(b, type);
    size_t body = open_vector(b, 3);
    add_filled(b, 0x5a, len);
    close_vector(b, body, 3);
}

static void add_extensions(struct builder *b, bool early_data, const char *alpn)
{
    add_u8(b, 8);
    size_t body = open_vector(b, 3), extensions = open_vector(b, 2);
    if (alpn != NULL) {
        add_u16(b, 16);
        size_t data = open_vector(b, 2), list = open_vector(b, 2), name = open_vector(b, 1);
        add_text(b, alpn);
        close_vector(b, name, 1);
        close_vector(b, list, 2);
        close_vector(b, data, 2);
    }
    if (early_data) {
        add_u16(b, 42);
        add_u16(b, 0);
    }
    close_vector(b, extensions, 2);
    close_vector(b, body, 3);
}

Test(content, each_message_has_its_bit)
{
    static const struct {
        uint8_t type;
        unsigned bit;
    } CASES[] = {
        { 4, CONTENT_NEW_SESSION_TICKET },
        { 5, CONTENT_END_OF_EARLY_DATA },
        { 11, CONTENT_CERTIFICATE },
        { 25, CONTENT_CERTIFICATE },
        { 13, CONTENT_CERTIFICATE_REQUEST },
        { 15, CONTENT_CERTIFICATE_VERIFY },
        { 20, CONTENT_FINISHED },
        { 24, CONTENT_KEY_UPDATE },
        { 0, CONTENT_OTHER_MESSAGE },
        { 2, CONTENT_OTHER_MESSAGE },
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct builder b = { 0 };
        struct content_reader r = { 0 };
        add_message(&b, CASES[i].type, i);
        cr_expect_eq(read_one(&r, HANDSHAKE, built(&b)), CONTENT_HANDSHAKE | CASES[i].bit,
                     "type %u", CASES[i].type);
    }
}

Test(content, several_messages_in_one_record)
{
    struct builder b = { 0 };
    struct content_reader r = { 0 };
    struct bytes alpn = { 0 };
    add_extensions(&b, true, "h2");
    add_message(&b, 11, 700);
    add_message(&b, 15, 70);
    add_message(&b, 20, 32);
    uint16_t content = content_read(&r, HANDSHAKE, built(&b), &alpn);
    cr_expect_eq(content, CONTENT_HANDSHAKE | CONTENT_ENCRYPTED_EXTENSIONS |
                              CONTENT_EARLY_DATA_ACCEPTED | CONTENT_CERTIFICATE |
                              CONTENT_CERTIFICATE_VERIFY | CONTENT_FINISHED);
    cr_expect_eq(alpn.len, 3);
    cr_expect(bytes_equal(alpn, (struct bytes){ (const uint8_t *)"\x02h2", 3 }));
}

Test(content, extensions_that_are_not_whole_say_nothing)
{
    struct builder b = { 0 };
    add_extensions(&b, true, "h2");
    struct bytes whole = built(&b);
    for (size_t n = 4; n < whole.len; n++) {
        struct content_reader r = { 0 };
        struct bytes alpn = { 0 };
        uint16_t content = content_read(&r, HANDSHAKE, bytes_first(whole, n), &alpn);
        cr_expect_eq(content, CONTENT_HANDSHAKE | CONTENT_OTHER_MESSAGE, "%zu", n);
        cr_expect_eq(alpn.len, 0);
    }
}

/* Messages cut into records anywhere: each is named once, and nothing is read into their bodies. */
Test(content, messages_over_several_records)
{
    struct builder b = { 0 };
    add_message(&b, 11, 100);
    add_message(&b, 20, 32);
    add_message(&b, 4, 60);
    struct bytes whole = built(&b);
    for (size_t cut = 1; cut < whole.len; cut++) {
        struct content_reader r = { 0 };
        uint16_t first = read_one(&r, HANDSHAKE, bytes_first(whole, cut));
        uint16_t second = read_one(&r, HANDSHAKE, bytes_after(whole, cut));
        unsigned all = (unsigned)(first | second) & ~(unsigned)CONTENT_OTHER_MESSAGE;
        cr_expect_eq(all,
                     CONTENT_HANDSHAKE | CONTENT_CERTIFICATE | CONTENT_FINISHED |
                         CONTENT_NEW_SESSION_TICKET,
                     "%zu", cut);
        bool at_border = cut == 104 || cut == 140;
        cr_expect_eq((second & CONTENT_OTHER_MESSAGE) != 0, !at_border, "%zu", cut);
    }
}

Test(content, alerts_keep_level_and_description)
{
    static const uint8_t CLOSE[] = { 1, 0 }, UNKNOWN_CA[] = { 2, 48 };
    struct content_reader r = { 0 };
    cr_expect_eq(read_one(&r, ALERT, (struct bytes){ CLOSE, 2 }), CONTENT_ALERT);
    cr_expect_eq(read_one(&r, ALERT, (struct bytes){ UNKNOWN_CA, 2 }),
                 CONTENT_ALERT | CONTENT_FATAL | 48 << CONTENT_DESCRIPTION_SHIFT);
    cr_expect_eq(read_one(&r, ALERT, (struct bytes){ CLOSE, 1 }), CONTENT_OTHER);
}

/* ---- application data ---- */

Test(content, http1)
{
    struct content_reader client = { 0 }, server = { 0 };
    cr_expect_eq(read_text(&client, "GET / HTTP/1.1\r\n"),
                 CONTENT_APPLICATION | CONTENT_HTTP1_REQUEST);
    cr_expect_eq(read_text(&server, "HTTP/1.1 200 OK\r\n"),
                 CONTENT_APPLICATION | CONTENT_HTTP1_STATUS);
    cr_expect_eq(read_text(&server, "<html>"), CONTENT_APPLICATION);
    cr_expect_eq(read_text(&server, ""), CONTENT_APPLICATION | CONTENT_EMPTY);
    cr_expect_eq(read_text(&client, "GETAWAY"), CONTENT_APPLICATION);
}

static void add_frame(struct builder *b, uint8_t type, size_t len)
{
    add_be(b, len, 3);
    add_u8(b, type);
    add_u8(b, 0);
    add_be(b, type == 4 ? 0 : 1, 4);
    add_filled(b, 1, len);
}

enum { DATA = 0, HEADERS = 1, SETTINGS = 4, WINDOW_UPDATE = 8 };

Test(content, http2_of_the_server)
{
    struct content_reader r = { 0 };
    struct builder settings = { 0 }, headers = { 0 }, data = { 0 };
    add_frame(&settings, SETTINGS, 18);
    add_frame(&settings, WINDOW_UPDATE, 4);
    add_frame(&headers, WINDOW_UPDATE, 4);
    add_frame(&headers, HEADERS, 40);
    add_frame(&data, DATA, 100);
    cr_expect_eq(read_one(&r, APPLICATION, built(&settings)), CONTENT_APPLICATION | CONTENT_HTTP2);
    cr_expect_eq(read_one(&r, APPLICATION, built(&headers)),
                 CONTENT_APPLICATION | CONTENT_HTTP2 | CONTENT_HEADERS);
    cr_expect_eq(read_one(&r, APPLICATION, built(&data)),
                 CONTENT_APPLICATION | CONTENT_HTTP2 | CONTENT_DATA);
}

/* The client's preface and frames, cut into records anywhere: HEADERS are found once. */
Test(content, http2_of_the_client_over_several_records)
{
    struct builder b = { 0 };
    add_text(&b, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    add_frame(&b, SETTINGS, 12);
    size_t headers_at = b.len;
    add_frame(&b, HEADERS, 30);
    add_frame(&b, DATA, 20);
    struct bytes whole = built(&b);
    for (size_t cut = 4; cut < whole.len; cut++) {
        struct content_reader r = { 0 };
        uint16_t first = read_one(&r, APPLICATION, bytes_first(whole, cut));
        uint16_t second = read_one(&r, APPLICATION, bytes_after(whole, cut));
        cr_expect_eq((first & CONTENT_HEADERS) != 0, cut >= headers_at + 9, "%zu", cut);
        cr_expect_eq((second & CONTENT_HEADERS) != 0, cut < headers_at + 9, "%zu", cut);
        cr_expect_eq((first & CONTENT_DATA) != 0, cut >= headers_at + 48, "%zu", cut);
        cr_expect_eq((second & CONTENT_DATA) != 0, cut < headers_at + 48, "%zu", cut);
        cr_expect_eq(first & second & CONTENT_HTTP2, CONTENT_HTTP2, "%zu", cut);
    }
}

/* Their borders are unclear until a record holds whole frames. */
Test(content, frames_behind_a_lost_record)
{
    struct content_reader r = { 0 };
    struct builder settings = { 0 }, headers = { 0 };
    add_frame(&settings, SETTINGS, 18);
    add_frame(&headers, HEADERS, 40);
    add_frame(&headers, DATA, 20);
    read_one(&r, APPLICATION, built(&settings));
    content_lost(&r);
    for (size_t n = 1; n < headers.len; n++)
        if (n != 49) /* the whole of HEADERS */
            cr_expect_eq(read_one(&r, APPLICATION, bytes_first(built(&headers), n)),
                         CONTENT_APPLICATION | CONTENT_HTTP2 | CONTENT_UNCLEAR, "%zu", n);
    cr_expect_eq(read_one(&r, APPLICATION, built(&headers)),
                 CONTENT_APPLICATION | CONTENT_HTTP2 | CONTENT_HEADERS | CONTENT_DATA);
    content_lost(&r);
    cr_expect_eq(read_one(&r, APPLICATION, bytes_after(built(&headers), 49)),
                 CONTENT_APPLICATION | CONTENT_HTTP2 | CONTENT_DATA);
}

/* Where the first record was lost, HTTP/2 shows in the first that holds whole frames. */
Test(content, http2_behind_a_lost_preface)
{
    struct content_reader r = { 0 };
    struct builder ack = { 0 }, headers = { 0 };
    add_frame(&ack, SETTINGS, 0);
    add_frame(&ack, WINDOW_UPDATE, 4);
    add_frame(&headers, HEADERS, 40);
    content_lost(&r);
    cr_expect_eq(read_text(&r, "no frames"), CONTENT_APPLICATION);
    cr_expect_eq(read_one(&r, APPLICATION, built(&ack)), CONTENT_APPLICATION | CONTENT_HTTP2);
    cr_expect_eq(read_one(&r, APPLICATION, built(&headers)),
                 CONTENT_APPLICATION | CONTENT_HTTP2 | CONTENT_HEADERS);
}

Test(content, a_ticket_between_two_parts_of_a_frame)
{
    struct content_reader r = { 0 };
    struct builder settings = { 0 }, frames = { 0 }, ticket = { 0 };
    add_frame(&settings, SETTINGS, 18);
    add_frame(&frames, DATA, 20);
    add_frame(&frames, HEADERS, 20);
    add_message(&ticket, 4, 60);
    read_one(&r, APPLICATION, built(&settings));
    read_one(&r, APPLICATION, bytes_first(built(&frames), 15));
    cr_expect_eq(read_one(&r, HANDSHAKE, built(&ticket)),
                 CONTENT_HANDSHAKE | CONTENT_NEW_SESSION_TICKET);
    cr_expect_eq(read_one(&r, APPLICATION, bytes_after(built(&frames), 15)),
                 CONTENT_APPLICATION | CONTENT_HTTP2 | CONTENT_HEADERS);
}

Test(content, other_types_are_known_to_be_others)
{
    struct content_reader r = { 0 };
    cr_expect_eq(read_one(&r, 20, (struct bytes){ 0 }), CONTENT_OTHER);
    cr_expect_eq(read_one(&r, 24, (struct bytes){ 0 }), CONTENT_OTHER);
    cr_expect_neq(read_one(&r, HANDSHAKE, (struct bytes){ 0 }), CONTENT_UNKNOWN);
}
