/* SPDX-License-Identifier: Apache-2.0 */
#include "snoop.h"

#include <stdlib.h>

enum { FILE_HEADER_LEN = 16, RECORD_HEADER_LEN = 24, VERSION = 2 };

/* DLT_ values. */
enum { LINK_NONE = -1, LINK_ETHERNET = 1, LINK_FDDI = 10 };

static const uint8_t MAGIC[SNOOP_MAGIC_LEN] = { 's', 'n', 'o', 'o', 'p', 0, 0, 0 };

struct snoop {
    struct source *source;
    uint64_t position;
    int link_type;
    int64_t drops;
    const char *error;
    uint8_t record[SNOOP_RECORD_MAX]; /* behind its header */
};

bool snoop_is_magic(struct bytes start)
{
    return bytes_equal(bytes_first(start, sizeof MAGIC), (struct bytes){ MAGIC, sizeof MAGIC });
}

/* Up to n bytes; fewer only at the end. */
static size_t read_bytes(struct snoop *s, uint8_t *into, size_t n)
{
    size_t len = 0, got = 1;
    while (len < n && got > 0) {
        got = source_read(s->source, into + len, n - len);
        len += got;
    }
    return len;
}

static enum status fail(struct snoop *s, enum status status, const char *error)
{
    s->error = error;
    return status;
}

/* RFC 1761, "Datalink Type". */
static int link_type_of(uint32_t datalink)
{
    switch (datalink) {
    case 0: /* IEEE 802.3 */
    case 4: /* Ethernet */
        return LINK_ETHERNET;
    case 8:
        return LINK_FDDI;
    default:
        return LINK_NONE;
    }
}

enum status snoop_open(struct source *source, struct snoop **ret_snoop)
{
    uint8_t header[FILE_HEADER_LEN];
    struct snoop *s = calloc(1, sizeof *s);
    if (s == NULL)
        return STATUS_NO_MEMORY;
    *ret_snoop = s;
    s->source = source;
    size_t len = read_bytes(s, header, sizeof header);
    struct reader r = reader_of((struct bytes){ header, len });
    reader_take(&r, SNOOP_MAGIC_LEN);
    uint32_t version = reader_u32(&r);
    s->link_type = link_type_of(reader_u32(&r));
    s->position = len;
    if (r.short_read)
        return fail(s, STATUS_REFUSED, "snoop file with half a header");
    if (version != VERSION)
        return fail(s, STATUS_REFUSED, "snoop file of a version other than 2");
    if (s->link_type == LINK_NONE)
        return fail(s, STATUS_REFUSED, "snoop file of a link type other than Ethernet and FDDI");
    return STATUS_OK;
}

void snoop_close(struct snoop *s)
{
    free(s);
}

struct record {
    uint32_t wire_len, captured, len, drops, second, microsecond;
};

static struct record record_of(const uint8_t header[RECORD_HEADER_LEN])
{
    struct reader r = reader_of((struct bytes){ header, RECORD_HEADER_LEN });
    struct record record = { .wire_len = reader_u32(&r) };
    record.captured = reader_u32(&r);
    record.len = reader_u32(&r); /* with this header, and padding behind the packet */
    record.drops = reader_u32(&r);
    record.second = reader_u32(&r);
    record.microsecond = reader_u32(&r);
    return record;
}

static int64_t time_of(const struct record *record)
{
    if (record->microsecond >= 1000000)
        return FRAME_TIME_INVALID;
    return (int64_t)record->second * 1000000000 + (int64_t)record->microsecond * 1000;
}

enum status snoop_next(struct snoop *s, struct frame *ret_frame)
{
    uint8_t header[RECORD_HEADER_LEN];
    s->position = source_position(s->source);
    size_t len = read_bytes(s, header, sizeof header);
    if (len == 0)
        return STATUS_END;
    if (len < sizeof header)
        return fail(s, STATUS_DAMAGED, "cut in the header of a packet");
    struct record record = record_of(header);
    if (record.len < RECORD_HEADER_LEN || record.len > SNOOP_RECORD_MAX ||
        record.captured > record.len - RECORD_HEADER_LEN)
        return fail(s, STATUS_DAMAGED, "impossible length of a packet");
    len = read_bytes(s, s->record, record.len - RECORD_HEADER_LEN);
    if (len < record.captured)
        return fail(s, STATUS_DAMAGED, "cut in a packet");
    s->drops = record.drops;
    *ret_frame = (struct frame){
        .at_ns = time_of(&record),
        .link_type = s->link_type,
        .wire_len = record.wire_len > record.captured ? record.wire_len : record.captured,
        .data = { s->record, record.captured },
    };
    return STATUS_OK;
}

const char *snoop_error(const struct snoop *s)
{
    return s->error;
}

uint64_t snoop_position(const struct snoop *s)
{
    return s->position;
}

int snoop_link_type(const struct snoop *s)
{
    return s->link_type;
}

int64_t snoop_drops(const struct snoop *s)
{
    return s->drops;
}
