/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes what reads the content of decrypted records. The input is a row of records: inner type (1
 * byte, 0 = one was lost), length (2 bytes), content.
 */
#include "content.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_reader(const struct content_reader *r)
{
    require(r->message.header_len <= 4 && r->frame.header_len <= CONTENT_FRAME_HEADER_LEN);
    require(r->message.left < 1 << 24 && r->frame.left < 1 << 24);
    require(r->message.left == 0 || r->message.header_len == 4);
    require(r->frame.left == 0 || r->frame.header_len == CONTENT_FRAME_HEADER_LEN);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader r = reader_of((struct bytes){ data, size });
    struct content_reader reader = { 0 };
    while (r.rest.len > 0) {
        uint8_t type = reader_u8(&r);
        struct bytes content = reader_vector(&r, 2).rest, alpn = { 0 };
        if (type == 0) {
            content_lost(&reader);
            continue;
        }
        uint16_t number = content_read(&reader, type, content, &alpn);
        require(content_kind(number) != CONTENT_UNKNOWN && content_kind(number) <= CONTENT_OTHER);
        require(alpn.len <= content.len);
        require(content_has(number, CONTENT_APPLICATION, CONTENT_EMPTY) ==
                (type == 23 && content.len == 0));
        check_reader(&reader);
    }
    return 0;
}
