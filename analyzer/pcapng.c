/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   source -> buffer: one whole block -> its body by type -> state of the section, or a frame
 *
 * A block is { type, length, body, length again }, in the byte order of its section. The buffer
 * holds at least one whole block, so bodies are views of it and a packet is never copied. It grows
 * by what was received, never by what was announced. It holds some more: the times of packets ahead
 * are looked at, so that late ones are known in time. Behind a block that cannot be read the next
 * place is looked for where blocks of known types, with the same length at both ends, go on.
 */
#include "pcapng.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

enum block_type { /* draft-ietf-opsawg-pcapng 11.1 */
                  BLOCK_INTERFACE = 1,
                  BLOCK_PACKET = 2, /* obsolete */
                  BLOCK_SIMPLE_PACKET = 3,
                  BLOCK_INTERFACE_STATISTICS = 5,
                  BLOCK_ENHANCED_PACKET = 6,
                  BLOCK_SECRETS = 10,
                  BLOCK_SECTION = 0x0a0d0d0a,
};

enum option { /* of an interface, of its statistics */
              OPTION_END = 0,
              OPTION_NAME = 2,
              OPTION_RESOLUTION = 9,
              OPTION_OFFSET = 14,
              OPTION_DROPPED_BY_INTERFACE = 5,
              OPTION_DROPPED_BY_SYSTEM = 7,
};

enum {
    BYTE_ORDER_MAGIC = 0x1a2b3c4d,
    BLOCK_OVERHEAD = 12,
    SECRETS_TLS_KEY_LOG = 0x544c534b,
    BUFFER_FIRST_SIZE = 256 * 1024, /* for a look at the first packet */
    BUFFER_SIZE = 1024 * 1024,
    LOOKAHEAD_BYTES = 128 * 1024,
    RESUME_BLOCK_MAX = 1024 * 1024, /* longest block to resume at */
    NS_PER_SECOND = 1000000000,
};

/* How an interface counts time: ticks * multiply / divide >> shift are nanoseconds. */
struct clock {
    uint64_t multiply, divide;
    unsigned shift; /* of resolutions 2^-n, in which multiply counts nanoseconds per second */
    int64_t offset_seconds;
};

struct interface {
    uint32_t number; /* in the file, counted over all sections */
    int link_type;
    uint32_t snaplen; /* 0 = without limit */
    struct clock clock;
    uint64_t drops; /* as the last statistics block said */
};

struct pcapng {
    struct source *source;
    uint8_t *buffer;
    size_t capacity, start, end; /* received and not yet passed: [start, end) */
    size_t block_len;            /* of the block at start, 0 before it is whole */
    uint64_t position;           /* of start in the file */
    bool ended;                  /* the source gave all it has */

    size_t scanned;           /* blocks in front of this place were looked at, [start, scanned) */
    uint64_t scanned_packets; /* in them, counted from the begin of the file */
    uint64_t late_packet;     /* number of the last late one; 0 without */
    int64_t latest_ns;        /* of their times, 0 before the first */
    struct pcapng_gaps gaps;

    bool is_big_endian; /* of the section */
    struct interface *interfaces;
    size_t interface_count, interface_capacity;

    bool has_pending;    /* the first packet, read by pcapng_open() */
    enum status pending; /* what pcapng_next() says first */
    struct frame pending_frame;

    uint32_t interfaces_seen; /* of all sections */
    char **names;             /* of the first PCAPNG_NAMES_MAX of them; NULL before the first */
    int first_link_type;
    uint32_t snaplen;
    bool has_drops;
    uint64_t ended_drops; /* of sections before this one */
    uint8_t *secrets;
    size_t secrets_len;
    char error[160];
};

__attribute__((format(printf, 2, 3))) static enum status damaged(struct pcapng *p,
                                                                 const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(p->error, sizeof p->error, format, arguments);
    va_end(arguments);
    return STATUS_DAMAGED;
}

/* ---- numbers in the byte order of the section ---- */

static uint64_t number(const struct pcapng *p, struct reader *r, unsigned width)
{
    return p->is_big_endian ? reader_be(r, width) : reader_le(r, width);
}

static uint16_t u16(const struct pcapng *p, struct reader *r)
{
    return (uint16_t)number(p, r, 2);
}

static uint32_t u32(const struct pcapng *p, struct reader *r)
{
    return (uint32_t)number(p, r, 4);
}

/* Two 32-bit halves, the higher one first whatever the byte order. */
static uint64_t ticks(const struct pcapng *p, struct reader *r)
{
    uint64_t high = u32(p, r);
    return high << 32 | u32(p, r);
}

/* Takes bytes that are padded to 32 bits; less padding at the end of a block is accepted. */
static struct bytes take_padded(struct reader *r, size_t len)
{
    struct bytes taken = reader_take(r, len);
    size_t padding = (4 - len % 4) % 4;
    reader_take(r, padding < r->rest.len ? padding : r->rest.len);
    return taken;
}

/* The next option; false at their end. */
static bool next_option(const struct pcapng *p, struct reader *r, uint16_t *ret_code,
                        struct reader *ret_value)
{
    uint16_t code = u16(p, r);
    struct bytes value = take_padded(r, u16(p, r));
    if (r->short_read || code == OPTION_END)
        return false;
    *ret_code = code;
    *ret_value = reader_of(value);
    return true;
}

/* ---- blocks out of the source ---- */

/* Makes room behind what was received, for at least one byte. */
static enum status make_room(struct pcapng *p)
{
    if (p->start > 0) {
        memmove(p->buffer, p->buffer + p->start, p->end - p->start);
        p->end -= p->start;
        p->scanned = p->scanned > p->start ? p->scanned - p->start : 0;
        p->start = 0;
    }
    bool is_small = p->position > 0 && p->capacity < BUFFER_SIZE;
    if (p->end < p->capacity && !is_small)
        return STATUS_OK;
    size_t wanted = p->capacity > 0 ? p->capacity * 2 : BUFFER_FIRST_SIZE;
    if (is_small)
        wanted = BUFFER_SIZE;
    uint8_t *grown = realloc(p->buffer, wanted);
    if (grown == NULL)
        return STATUS_NO_MEMORY;
    p->buffer = grown;
    p->capacity = wanted;
    return STATUS_OK;
}

/* Receives until n bytes are there; fewer at the end of the file. */
static enum status receive(struct pcapng *p, size_t n)
{
    while (p->end - p->start < n) {
        if (p->ended)
            return source_error(p->source) != NULL ? STATUS_IO : STATUS_OK;
        if (p->end == p->capacity || p->capacity == 0) {
            enum status status = make_room(p);
            if (status != STATUS_OK)
                return status;
        }
        size_t got = source_read(p->source, p->buffer + p->end, p->capacity - p->end);
        p->ended = got == 0;
        p->end += got;
    }
    return STATUS_OK;
}

static struct bytes received(const struct pcapng *p)
{
    return (struct bytes){ p->buffer + p->start, p->end - p->start };
}

/* The byte order of a section that starts here. */
static bool set_byte_order(struct pcapng *p, struct reader magic)
{
    struct reader big_endian = magic;
    if (reader_be(&big_endian, 4) == BYTE_ORDER_MAGIC)
        p->is_big_endian = true;
    else if (reader_le(&magic, 4) == BYTE_ORDER_MAGIC)
        p->is_big_endian = false;
    else
        return false;
    return true;
}

struct block {
    uint32_t type;
    struct reader body;
};

/* Ticks to Unix nanoseconds; 2^-n with n above 32 is cut to 2^-32, a quarter of a nanosecond. */
static int64_t time_of(const struct clock *c, uint64_t count)
{
    uint64_t ns;
    if (c->shift > 0) {
        enum { FINEST = 32 };
        uint64_t second = c->shift < 64 ? count >> c->shift : 0;
        uint64_t fraction = c->shift < 64 ? count & ((UINT64_C(1) << c->shift) - 1) : count;
        unsigned shift = c->shift;
        if (shift > FINEST) {
            fraction = shift - FINEST < 64 ? fraction >> (shift - FINEST) : 0;
            shift = FINEST;
        }
        uint64_t fraction_ns = fraction * NS_PER_SECOND >> shift;
        if (__builtin_mul_overflow(second, (uint64_t)NS_PER_SECOND, &ns) ||
            __builtin_add_overflow(ns, fraction_ns, &ns))
            return FRAME_TIME_INVALID;
    } else if (__builtin_mul_overflow(count / c->divide, c->multiply, &ns)) {
        return FRAME_TIME_INVALID;
    }
    int64_t offset_ns, at_ns;
    if (__builtin_mul_overflow(c->offset_seconds, (int64_t)NS_PER_SECOND, &offset_ns) ||
        __builtin_add_overflow(ns, offset_ns, &at_ns) || at_ns < 0)
        return FRAME_TIME_INVALID;
    return at_ns;
}

/* ---- times ahead ---- */

static void note_time(struct pcapng *p, int64_t at_ns)
{
    if (at_ns == FRAME_TIME_INVALID)
        return;
    int64_t late_ns = p->latest_ns - at_ns;
    if (late_ns > 0 && late_ns <= FRAME_LATE_MAX_NS)
        p->late_packet = p->scanned_packets;
    else
        p->latest_ns = at_ns;
}

/* Looks at a block ahead; false when those in front of it must be used first. */
static bool scan_block(struct pcapng *p, uint32_t type, struct reader body)
{
    uint32_t id;
    switch (type) {
    case BLOCK_SECTION:
    case BLOCK_INTERFACE:
        return false;
    case BLOCK_ENHANCED_PACKET:
    case BLOCK_PACKET:
        p->scanned_packets++;
        id = type == BLOCK_PACKET ? u16(p, &body) : u32(p, &body);
        if (type == BLOCK_PACKET)
            u16(p, &body);
        if (id < p->interface_count)
            note_time(p, time_of(&p->interfaces[id].clock, ticks(p, &body)));
        return true;
    case BLOCK_SIMPLE_PACKET:
        p->scanned_packets++;
        return true;
    default:
        return true;
    }
}

static void scan(struct pcapng *p)
{
    if (p->scanned < p->start)
        p->scanned = p->start;
    while (p->end - p->scanned >= BLOCK_OVERHEAD + 12) { /* with the time of a packet */
        struct bytes rest = { p->buffer + p->scanned, p->end - p->scanned };
        struct reader r = reader_of(rest);
        uint32_t type = u32(p, &r);
        size_t len = u32(p, &r);
        bool is_possible = len >= BLOCK_OVERHEAD && len % 4 == 0 && len <= rest.len;
        if (!is_possible || !scan_block(p, type, r))
            break;
        p->scanned += len;
    }
}

/* Receives in time what is to be looked at before the next packet is given. */
static enum status look_ahead(struct pcapng *p)
{
    if (p->scanned > p->start + LOOKAHEAD_BYTES)
        return STATUS_OK;
    size_t wanted = p->position > 0 ? (size_t)LOOKAHEAD_BYTES : BLOCK_OVERHEAD;
    enum status status = receive(p, wanted);
    if (status == STATUS_OK)
        scan(p);
    return p->end > p->start ? STATUS_OK : status; /* bytes that are there come first */
}

/* Reads the start of the next block: its type and whole length. */
static enum status read_block_start(struct pcapng *p, uint32_t *ret_type, size_t *ret_len)
{
    p->start += p->block_len;
    p->position += p->block_len;
    p->block_len = 0;
    enum status status = receive(p, BLOCK_OVERHEAD);
    if (status == STATUS_OK)
        status = look_ahead(p);
    if (status != STATUS_OK)
        return status;
    if (p->end == p->start)
        return STATUS_END;
    struct reader r = reader_of(received(p));
    struct reader in_any_order = r;
    bool is_section = reader_be(&in_any_order, 4) == BLOCK_SECTION;
    reader_u32(&in_any_order);
    if (p->end - p->start < BLOCK_OVERHEAD)
        return damaged(p, "the file ends inside a block's header");
    if (is_section && !set_byte_order(p, in_any_order))
        return damaged(p, "section header without a byte-order magic");
    *ret_type = u32(p, &r);
    *ret_len = u32(p, &r);
    return STATUS_OK;
}

/* Reads a whole block; its body lives until the next one is read. */
static enum status read_block(struct pcapng *p, struct block *ret_block)
{
    uint32_t type = 0;
    size_t len = 0;
    enum status status = read_block_start(p, &type, &len);
    if (status != STATUS_OK)
        return status;
    if (len < BLOCK_OVERHEAD || len % 4 != 0)
        return damaged(p, "impossible block length %zu", len);
    if (len > PCAPNG_BLOCK_MAX)
        return damaged(p, "block of %zu bytes, more than %d", len, PCAPNG_BLOCK_MAX);
    status = receive(p, len);
    if (status != STATUS_OK)
        return status;
    if (p->end - p->start < len)
        return damaged(p, "the file ends inside a block: %zu of %zu bytes", p->end - p->start, len);

    struct reader r = reader_of(bytes_first(received(p), len));
    reader_take(&r, 8);
    struct bytes body = reader_take(&r, len - BLOCK_OVERHEAD);
    size_t len_again = u32(p, &r);
    if (len_again != len)
        return damaged(p, "block length %zu at its start, %zu at its end", len, len_again);
    p->block_len = len;
    *ret_block = (struct block){ type, reader_of(body) };
    return STATUS_OK;
}

/* ---- what a section says of itself ---- */

static uint64_t section_drops(const struct pcapng *p)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < p->interface_count; i++)
        sum += p->interfaces[i].drops;
    return sum;
}

static enum status start_section(struct pcapng *p, struct reader r)
{
    u32(p, &r); /* byte-order magic */
    uint16_t major = u16(p, &r);
    uint16_t minor = u16(p, &r);
    if (r.short_read)
        return damaged(p, "section header is too short");
    if (major != 1) /* minor versions are compatible, 10.4 */
        return damaged(p, "pcapng version %u.%u is not known", major, minor);
    p->ended_drops += section_drops(p);
    p->interface_count = 0;
    return STATUS_OK;
}

static uint64_t power_of_10(unsigned n)
{
    uint64_t value = 1;
    while (n-- > 0)
        value *= 10;
    return value;
}

/* if_tsresol: 10^-n, or 2^-n with the highest bit set. */
static struct clock clock_of_resolution(uint8_t resolution)
{
    enum { IS_POWER_OF_2 = 0x80, POWER_OF_10_MAX = 19 };
    unsigned n = resolution & ~(unsigned)IS_POWER_OF_2;
    if ((resolution & IS_POWER_OF_2) != 0)
        return (struct clock){ .multiply = NS_PER_SECOND, .divide = 1, .shift = n };
    if (n <= 9)
        return (struct clock){ .multiply = power_of_10(9 - n), .divide = 1 };
    /* 64 bits of ticks finer than 10^-28 s are not one nanosecond together */
    uint64_t divide = n - 9 <= POWER_OF_10_MAX ? power_of_10(n - 9) : UINT64_MAX;
    return (struct clock){ .multiply = 1, .divide = divide };
}

/* DLT_ value of a LINKTYPE_ value, where they differ on this system (see pcap-linktype(7)). */
static int link_type_of(uint16_t file_link_type)
{
    switch (file_link_type) {
    case 100: /* LINKTYPE_ATM_RFC1483 */
        return 11;
    case 101: /* LINKTYPE_RAW */
        return 12;
    default:
        return file_link_type;
    }
}

static enum status add_interface(struct pcapng *p, struct interface interface)
{
    if (p->interface_count == PCAPNG_INTERFACES_MAX)
        return damaged(p, "more than %d interfaces", PCAPNG_INTERFACES_MAX);
    if (p->interface_count == p->interface_capacity) {
        size_t wanted = p->interface_capacity > 0 ? p->interface_capacity * 2 : 4;
        struct interface *grown = reallocarray(p->interfaces, wanted, sizeof *grown);
        if (grown == NULL)
            return STATUS_NO_MEMORY;
        p->interfaces = grown;
        p->interface_capacity = wanted;
    }
    p->interfaces[p->interface_count++] = interface;
    return STATUS_OK;
}

/* Keeps the name of the interface that is described next, when it is plain text. */
static enum status keep_name(struct pcapng *p, struct bytes name)
{
    if (p->interfaces_seen >= PCAPNG_NAMES_MAX)
        return STATUS_OK;
    if (p->names == NULL)
        p->names = calloc(PCAPNG_NAMES_MAX, sizeof *p->names);
    if (p->names == NULL)
        return STATUS_NO_MEMORY;
    bool is_plain = name.len > 0 && name.len <= PCAPNG_NAME_MAX;
    for (size_t i = 0; i < name.len; i++)
        is_plain = is_plain && name.at[i] >= ' ' && name.at[i] < 0x7f;
    char **kept = &p->names[p->interfaces_seen];
    if (!is_plain || *kept != NULL)
        return STATUS_OK;
    *kept = strndup((const char *)name.at, name.len);
    return *kept != NULL ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status describe_interface(struct pcapng *p, struct reader r)
{
    uint16_t link_type = u16(p, &r);
    u16(p, &r); /* reserved */
    uint32_t snaplen = u32(p, &r);
    if (r.short_read)
        return damaged(p, "interface description is too short");
    struct interface i = { .link_type = link_type_of(link_type), .snaplen = snaplen };
    i.clock = clock_of_resolution(6);
    int64_t offset_seconds = 0;
    uint16_t code;
    struct reader value;
    while (next_option(p, &r, &code, &value)) {
        if (code == OPTION_RESOLUTION)
            i.clock = clock_of_resolution(reader_u8(&value));
        else if (code == OPTION_OFFSET)
            offset_seconds = (int64_t)number(p, &value, 8);
        else if (code == OPTION_NAME && keep_name(p, value.rest) != STATUS_OK)
            return STATUS_NO_MEMORY;
    }
    i.number = p->interfaces_seen++;
    i.clock.offset_seconds = offset_seconds;
    if (p->first_link_type < 0)
        p->first_link_type = i.link_type;
    if (snaplen > p->snaplen)
        p->snaplen = snaplen;
    return add_interface(p, i);
}

/* Statistics are sums since the start of the capture: the last block holds. Of an interface that
 * is not described they say nothing to us. */
static void note_statistics(struct pcapng *p, struct reader r)
{
    uint32_t id = u32(p, &r);
    ticks(p, &r);
    if (r.short_read || id >= p->interface_count)
        return;
    uint64_t drops = 0;
    bool has_drops = false;
    uint16_t code;
    struct reader value;
    while (next_option(p, &r, &code, &value)) {
        if (code != OPTION_DROPPED_BY_INTERFACE && code != OPTION_DROPPED_BY_SYSTEM)
            continue;
        drops += number(p, &value, 8);
        has_drops = true;
    }
    if (has_drops)
        p->interfaces[id].drops = drops;
    p->has_drops = p->has_drops || has_drops;
}

/* Keeps key log lines, each block ended by a line end, as much of it as is there. */
static enum status keep_secrets(struct pcapng *p, struct reader r)
{
    uint32_t type = u32(p, &r);
    size_t len = u32(p, &r);
    struct bytes secrets = bytes_first(r.rest, len);
    if (type != SECRETS_TLS_KEY_LOG)
        return STATUS_OK;
    if (p->secrets_len + secrets.len + 1 > PCAPNG_SECRETS_MAX)
        return damaged(p, "more than %d bytes of secrets", PCAPNG_SECRETS_MAX);
    uint8_t *grown = realloc(p->secrets, p->secrets_len + secrets.len + 1);
    if (grown == NULL)
        return STATUS_NO_MEMORY;
    p->secrets = grown;
    if (secrets.len > 0)
        memcpy(p->secrets + p->secrets_len, secrets.at, secrets.len);
    p->secrets_len += secrets.len;
    p->secrets[p->secrets_len++] = '\n';
    return STATUS_OK;
}

/* ---- packets ---- */

static enum status check_interface(struct pcapng *p, uint32_t id)
{
    if (id < p->interface_count)
        return STATUS_OK;
    return damaged(p, "packet of interface %" PRIu32 ", which is not described", id);
}

static enum status packet(struct pcapng *p, struct reader r, bool is_obsolete,
                          struct frame *ret_frame)
{
    uint32_t id = is_obsolete ? u16(p, &r) : u32(p, &r);
    if (is_obsolete)
        u16(p, &r); /* drops */
    uint64_t count = ticks(p, &r);
    uint32_t len = u32(p, &r);
    uint32_t wire_len = u32(p, &r);
    struct bytes data = reader_take(&r, len);
    if (r.short_read)
        return damaged(p, "packet of %" PRIu32 " bytes is longer than its block", len);
    enum status status = check_interface(p, id);
    if (status != STATUS_OK)
        return status;
    const struct interface *i = &p->interfaces[id];
    *ret_frame = (struct frame){
        .at_ns = time_of(&i->clock, count),
        .link_type = i->link_type,
        .wire_len = wire_len > len ? wire_len : len,
        .interface_id = i->number,
        .interface_name = pcapng_interface_name(p, i->number),
        .data = data,
    };
    return STATUS_OK;
}

/* Belongs to the first interface, whose snaplen alone tells how much of it is there. */
static enum status simple_packet(struct pcapng *p, struct reader r, struct frame *ret_frame)
{
    uint32_t wire_len = u32(p, &r);
    enum status status = check_interface(p, 0);
    if (status != STATUS_OK)
        return status;
    const struct interface *i = &p->interfaces[0];
    uint32_t len = i->snaplen != 0 && i->snaplen < wire_len ? i->snaplen : wire_len;
    struct bytes data = reader_take(&r, len);
    if (r.short_read)
        return damaged(p, "packet of %" PRIu32 " bytes is longer than its block", len);
    *ret_frame = (struct frame){
        .at_ns = FRAME_TIME_INVALID,
        .link_type = i->link_type,
        .interface_id = i->number,
        .interface_name = pcapng_interface_name(p, i->number),
        .wire_len = wire_len,
        .data = data,
    };
    return STATUS_OK;
}

/* Uses one block; *ret_is_packet when it gave a frame. */
static enum status use_block(struct pcapng *p, const struct block *b, bool *ret_is_packet,
                             struct frame *ret_frame)
{
    *ret_is_packet = false;
    switch (b->type) {
    case BLOCK_SECTION:
        return start_section(p, b->body);
    case BLOCK_INTERFACE:
        return describe_interface(p, b->body);
    case BLOCK_INTERFACE_STATISTICS:
        note_statistics(p, b->body);
        return STATUS_OK;
    case BLOCK_SECRETS:
        return keep_secrets(p, b->body);
    case BLOCK_ENHANCED_PACKET:
    case BLOCK_PACKET:
        *ret_is_packet = true;
        return packet(p, b->body, b->type == BLOCK_PACKET, ret_frame);
    case BLOCK_SIMPLE_PACKET:
        *ret_is_packet = true;
        return simple_packet(p, b->body, ret_frame);
    default:
        return STATUS_OK;
    }
}

/* ---- resuming ---- */

static bool is_known_type(uint32_t type)
{
    return (type >= BLOCK_INTERFACE && type <= BLOCK_SECRETS) || type == BLOCK_SECTION;
}

enum chain { CHAIN_BROKEN, CHAIN_GOOD, CHAIN_UNKNOWN /* more bytes are needed */ };

/* Whether two blocks start here, or one that ends the file. */
static enum chain chain_at(const struct pcapng *p, size_t at)
{
    for (unsigned n = 0; n < 2; n++) {
        struct reader r = reader_of((struct bytes){ p->buffer + at, p->end - at });
        if (n > 0 && p->ended && r.rest.len == 0)
            return CHAIN_GOOD;
        if (r.rest.len < BLOCK_OVERHEAD)
            return p->ended ? CHAIN_BROKEN : CHAIN_UNKNOWN;
        size_t there = r.rest.len;
        uint32_t type = u32(p, &r);
        size_t len = u32(p, &r);
        if (!is_known_type(type) || len < BLOCK_OVERHEAD || len % 4 != 0 || len > RESUME_BLOCK_MAX)
            return CHAIN_BROKEN;
        if (len > there)
            return p->ended ? CHAIN_BROKEN : CHAIN_UNKNOWN;
        reader_take(&r, len - BLOCK_OVERHEAD);
        if (u32(p, &r) != len)
            return CHAIN_BROKEN;
        at += len;
    }
    return CHAIN_GOOD;
}

static void pass(struct pcapng *p, size_t n)
{
    p->start += n;
    p->position += n;
}

/* Goes to the next place where blocks go on; STATUS_END when there is none. */
static enum status find_chain(struct pcapng *p)
{
    for (;;) {
        enum chain chain = chain_at(p, p->start);
        while (chain == CHAIN_UNKNOWN) {
            enum status status = receive(p, p->end - p->start + 1);
            if (status == STATUS_NO_MEMORY)
                return status;
            chain = chain_at(p, p->start);
        }
        if (chain == CHAIN_GOOD)
            return STATUS_OK;
        if (p->start == p->end)
            return STATUS_END;
        pass(p, 1);
    }
}

/* After damage: STATUS_OK when blocks go on behind it, STATUS_DAMAGED when none do. */
static enum status resume(struct pcapng *p)
{
    uint64_t from = p->position;
    bool was_whole = p->block_len > 0;
    pass(p, was_whole ? p->block_len : 1);
    p->block_len = 0;
    enum status status = find_chain(p);
    if (status == STATUS_NO_MEMORY)
        return status;
    if (status != STATUS_OK) {
        p->position = from; /* of the block that could not be read */
        return STATUS_DAMAGED;
    }
    p->scanned = p->start;
    if (p->gaps.count++ == 0) {
        p->gaps.from = from;
        p->gaps.to = p->position;
        (void)snprintf(p->gaps.reason, sizeof p->gaps.reason, "%s", p->error);
    }
    return STATUS_OK;
}

static enum status next_packet(struct pcapng *p, struct frame *ret_frame)
{
    for (;;) {
        struct block block;
        bool is_packet = false;
        enum status status = read_block(p, &block);
        if (status == STATUS_OK)
            status = use_block(p, &block, &is_packet, ret_frame);
        if (status == STATUS_DAMAGED) {
            is_packet = false;
            status = resume(p);
        }
        if (status != STATUS_OK || is_packet)
            return status;
    }
}

/* ---- for callers ---- */

enum status pcapng_open(struct source *source, struct pcapng **ret_pcapng)
{
    struct pcapng *p = calloc(1, sizeof *p);
    if (p == NULL)
        return STATUS_NO_MEMORY;
    p->source = source;
    p->first_link_type = -1;
    struct block section;
    enum status status = read_block(p, &section);
    if (status == STATUS_OK)
        status = start_section(p, section.body);
    if (status == STATUS_NO_MEMORY) {
        pcapng_close(p);
        return status;
    }
    *ret_pcapng = p;
    if (status == STATUS_DAMAGED || status == STATUS_END)
        return STATUS_REFUSED;
    if (status != STATUS_OK)
        return status;
    p->pending = next_packet(p, &p->pending_frame);
    p->has_pending = true;
    return STATUS_OK;
}

void pcapng_close(struct pcapng *p)
{
    if (p == NULL)
        return;
    for (size_t i = 0; p->names != NULL && i < PCAPNG_NAMES_MAX; i++)
        free(p->names[i]);
    free(p->names);
    free(p->buffer);
    free(p->interfaces);
    free(p->secrets);
    free(p);
}

enum status pcapng_next(struct pcapng *p, struct frame *ret_frame)
{
    if (!p->has_pending)
        return next_packet(p, ret_frame);
    p->has_pending = false;
    if (p->pending == STATUS_OK)
        *ret_frame = p->pending_frame;
    return p->pending;
}

const char *pcapng_error(const struct pcapng *p)
{
    return p->error;
}

uint64_t pcapng_position(const struct pcapng *p)
{
    return p->position;
}

int pcapng_link_type(const struct pcapng *p)
{
    return p->first_link_type;
}

uint32_t pcapng_snaplen(const struct pcapng *p)
{
    return p->snaplen;
}

int64_t pcapng_drops(const struct pcapng *p)
{
    uint64_t drops = p->ended_drops + section_drops(p);
    if (!p->has_drops)
        return -1;
    return drops <= INT64_MAX ? (int64_t)drops : INT64_MAX;
}

struct bytes pcapng_secrets(const struct pcapng *p)
{
    return (struct bytes){ p->secrets, p->secrets_len };
}

const char *pcapng_interface_name(const struct pcapng *p, uint32_t interface_number)
{
    bool is_kept = p->names != NULL && interface_number < PCAPNG_NAMES_MAX;
    return is_kept ? p->names[interface_number] : NULL;
}

uint64_t pcapng_late_packet(const struct pcapng *p)
{
    return p->late_packet;
}

const struct pcapng_gaps *pcapng_gaps(const struct pcapng *p)
{
    return &p->gaps;
}
