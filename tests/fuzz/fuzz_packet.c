/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of every link type. Input: the link type's number (2 octets), how many times 16 bytes the
 * snaplen cut off (1 octet), then the frame.
 */
#include "packet.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whether a view lies inside of another; an empty one may lie anywhere. */
static bool is_inside(struct bytes view, struct bytes whole)
{
    return view.len == 0 || (view.at >= whole.at && view.at + view.len <= whole.at + whole.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct reader r = reader_of((struct bytes){ data, size });
    int link_type = reader_u16(&r);
    size_t cut_len = reader_u8(&r) * 16u;
    struct frame frame = {
        .at_ns = 1,
        .number = 1,
        .link_type = link_type,
        .wire_len = (uint32_t)(r.rest.len + cut_len),
        .data = r.rest,
    };
    struct segment s;
    enum drop reason = packet_decode(&frame, &s);
    if (reason >= DROP_COUNT)
        abort();
    if (reason != DROP_NONE)
        return 0;
    if (!packet_link_type_known(link_type) || !is_inside(s.ip, frame.data))
        abort();
    if (!is_inside(s.payload, s.ip) || s.payload.len > s.payload_len)
        abort();
    return 0;
}
