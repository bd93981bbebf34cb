/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes what reads plaintext in front of TLS. Two bytes give the length of the client's plaintext,
 * a third the waits; the client's and then the server's plaintext follow.
 */
#include "preamble.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_proxy_header(struct bytes client)
{
    struct proxy_header header, longer;
    char text[ADDRESS_TEXT_SIZE];
    enum proxy_result result = proxy_header_read(client, &header);

    require(header.len <= PROXY_HEADER_LEN_MAX);
    require(result != PROXY_MORE || client.len < PROXY_DECIDED_LEN);
    require(result != PROXY_NONE || (header.kind == PREAMBLE_NONE && header.len == 0));
    require(!header.has_addresses || result == PROXY_FOUND);
    address_text(&header.source.address, text);
    address_text(&header.destination.address, text);

    /* What was found does not change when more of the stream is known. */
    for (size_t n = 0; n < client.len && n < PROXY_DECIDED_LEN; n++) {
        enum proxy_result earlier = proxy_header_read(bytes_first(client, n), &longer);
        require(earlier == PROXY_MORE || (earlier == result && longer.len == header.len));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader r = reader_of((struct bytes){ data, size });
    size_t client_len = reader_u16(&r);
    uint8_t waits = reader_u8(&r);
    if (r.short_read)
        return 0;
    struct bytes client = bytes_first(r.rest, client_len);
    struct bytes server = bytes_after(r.rest, client.len);

    check_proxy_header(client);
    struct preamble_verdict verdict = preamble_recognise(
        bytes_first(client, PREAMBLE_KEPT_MAX), bytes_first(server, PREAMBLE_KEPT_MAX), waits);
    require(verdict.kind <= PREAMBLE_OTHER);
    return 0;
}
