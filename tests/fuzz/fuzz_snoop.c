/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of Solaris' snoop, behind the magic number, which is put in front of each input. As many
 * packets must come as a plain walk over the lengths of RFC 1761 finds.
 */
#include "whole_capture.h"

#include "buffer.h"
#include "snoop.h"

enum { ETHERNET_802_3 = 0, ETHERNET = 4, FDDI = 8, RECORD_HEADER_LEN = 24 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Steps over a record; false when it is not whole. */
static bool skip_record(struct reader *r)
{
    reader_take(r, 4);
    uint32_t captured = reader_u32(r), len = reader_u32(r);
    reader_take(r, 12);
    if (r->short_read || len > SNOOP_RECORD_MAX || len < RECORD_HEADER_LEN ||
        captured > len - RECORD_HEADER_LEN || captured > r->rest.len)
        return false;
    reader_take(r, len - RECORD_HEADER_LEN); /* padding may be missing behind the last packet */
    return true;
}

static uint64_t count_records(struct bytes behind_magic)
{
    struct reader r = reader_of(behind_magic);
    uint64_t count = 0;
    uint32_t version = reader_u32(&r), datalink = reader_u32(&r);
    if (version != 2 || (datalink != ETHERNET_802_3 && datalink != ETHERNET && datalink != FDDI))
        return 0;
    while (skip_record(&r))
        count++;
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buffer file = { 0 };
    struct bytes input = { data, size };
    if (!buffer_add(&file, (struct bytes){ (const uint8_t *)"snoop\0\0\0", SNOOP_MAGIC_LEN }) ||
        !buffer_add(&file, input))
        abort();
    if (read_capture((struct bytes){ file.at, file.len }) != count_records(input))
        abort();
    buffer_done(&file);
    return 0;
}
