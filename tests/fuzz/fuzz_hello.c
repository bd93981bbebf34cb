/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the hello parsers and the texts made of hellos. The first byte chooses the message,
 * whether it is cut and the size of the text buffers; the message's body follows.
 */
#include "hello.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { CLIENT_HELLO, CLIENT_HELLO_V2, SERVER_HELLO, DRAFT_RETRY, MESSAGE_MASK = 3, CUT = 4 };

static void require(bool condition)
{
    if (!condition)
        abort();
}

static bool is_inside(struct bytes part, struct bytes whole)
{
    return part.len == 0 || (part.at >= whole.at && part.len <= whole.len &&
                             (size_t)(part.at - whole.at) <= whole.len - part.len);
}

static void require_text(const char *text, size_t len)
{
    require(strlen(text) == len);
    for (size_t i = 0; i < len; i++)
        require(text[i] > ' ' && text[i] <= '~');
}

/* The buffer is allocated at its exact size, so that a sanitizer sees a write behind it. */
static void check_client_texts(const struct client_hello *hello, size_t text_size)
{
    char *text = malloc(text_size);
    char ja4[JA4_TEXT_SIZE];
    require(text != NULL);
    size_t len = server_name_text(hello->server_name, text, text_size);
    if (len > 0)
        require_text(text, len);
    require_text(text, alpn_text(hello->alpn, text, text_size));
    free(text);

    ja4_text(hello, ja4);
    require(ja4[0] == '\0' || (hello->complete && strlen(ja4) == JA4_TEXT_SIZE - 1));
}

static void check_client(const struct client_hello *h, struct bytes body, size_t text_size)
{
    char version[VERSION_TEXT_SIZE];
    require(is_inside(h->random, body) && is_inside(h->session_id, body) &&
            is_inside(h->cipher_suites, body) && is_inside(h->extensions, body));
    require(is_inside(h->server_name, h->extensions) && is_inside(h->alpn, h->extensions) &&
            is_inside(h->session_ticket, h->extensions) &&
            is_inside(h->psk_identity, h->extensions) && is_inside(h->psk_binder, h->extensions));
    require(strlen(version_text(h->max_version, version)) < VERSION_TEXT_SIZE);
    check_client_texts(h, text_size);
}

static void check_server(const struct server_hello *h, struct bytes body)
{
    char version[VERSION_TEXT_SIZE];
    require(is_inside(h->random, body) && is_inside(h->session_id, body) &&
            is_inside(h->alpn, body));
    require(strlen(version_text(h->version, version)) < VERSION_TEXT_SIZE);
    cipher_suite_name(h->cipher_suite);
    named_group_name(h->key_share_group);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes input = { data, size };
    struct reader r = reader_of(input);
    uint8_t choice = reader_u8(&r);
    struct bytes body = r.rest;
    bool is_cut = (choice & CUT) != 0;
    size_t announced_len = body.len + (is_cut ? 1 : 0);
    size_t text_size = 1 + (choice >> 3) * 8u;
    struct client_hello client;
    struct server_hello server;

    if (r.short_read)
        return 0;
    switch (choice & MESSAGE_MASK) {
    case CLIENT_HELLO:
        if (client_hello_parse(body, announced_len, &client)) {
            require(!is_cut || !client.complete);
            check_client(&client, body, text_size);
        }
        break;
    case CLIENT_HELLO_V2:
        if (client_hello_parse_v2(body, announced_len, &client)) {
            require(!is_cut || !client.complete);
            check_client(&client, body, text_size);
        }
        break;
    case SERVER_HELLO:
    case DRAFT_RETRY:
        if (server_hello_parse((choice & MESSAGE_MASK) == SERVER_HELLO
                                   ? HANDSHAKE_SERVER_HELLO
                                   : HANDSHAKE_HELLO_RETRY_REQUEST_DRAFT,
                               body, announced_len, &server)) {
            require(!is_cut || !server.complete);
            check_server(&server, body);
        }
        break;
    default:
        break;
    }
    return 0;
}
