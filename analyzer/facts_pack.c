/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts as few bytes, quickly: every flow is packed and unpacked at least once, and a silent
 * connection is its packed facts.
 *
 *   how endpoints and times are packed, IP version, endpoints, base of times,
 *   bits of the scalars, then those that are not zero,
 *   resends, records,
 *   bits of the texts, then those that are there
 *
 * Times count from the base in units of 1 or 1000 ns. A record begins with a bit for each of its
 * fields: set when its value is another than the records before it let expect, and follows.
 */
#include "facts.h"

#include "varint.h"

enum {
    TEXT_MAX = 65535, /* of one text fact; ALPN lists are the longest */
    WORD_BITS = 64,
    WORDS = (FACTS_SCALAR_COUNT + WORD_BITS - 1) / WORD_BITS,
    RECORD_LEN_MAX = 2 + 3 + 12 * VARINT_MAX, /* its bits, its bytes, its numbers */
    RESEND_LEN_MAX = 3 * VARINT_MAX,
};

/* How an endpoint is packed: two bits of the first byte for each; then a bit for the unit. */
enum { ENDPOINT_NONE, ENDPOINT_IPV4, ENDPOINT_IPV6 };
enum { ENDPOINT_BITS = 2, ENDPOINT_MASK = 3, HAS_LONG_UNIT = 1 << (2 * ENDPOINT_BITS) };

/* What times count from, and in what. */
struct scale {
    int64_t base_ns, unit_ns;
};

static uint64_t distance_of(int64_t at_ns, int64_t from_ns, struct scale s)
{
    int64_t distance_ns = (int64_t)((uint64_t)at_ns - (uint64_t)from_ns);
    return zigzag(s.unit_ns == 1 ? distance_ns : distance_ns / FACTS_LONG_UNIT_NS);
}

static int64_t time_behind(int64_t from_ns, uint64_t distance, struct scale s)
{
    return (int64_t)((uint64_t)from_ns + (uint64_t)unzigzag(distance) * (uint64_t)s.unit_ns);
}

/* A time that may be unknown: 0 for that. */
static uint8_t *write_time(uint8_t *at, int64_t at_ns, int64_t from_ns, struct scale s)
{
    return write_varint(at, at_ns == 0 ? 0 : distance_of(at_ns, from_ns, s) + 1);
}

static int64_t read_time(struct reader *r, int64_t from_ns, struct scale s)
{
    uint64_t distance = get_varint(r);
    return distance == 0 ? 0 : time_behind(from_ns, distance - 1, s);
}

/* Endpoints */

static unsigned endpoint_kind(const struct endpoint *e)
{
    static const struct endpoint NONE = { 0 };
    return endpoint_equal(e, &NONE)       ? ENDPOINT_NONE
           : address_is_ipv4(&e->address) ? ENDPOINT_IPV4
                                          : ENDPOINT_IPV6;
}

/* Where the octets of an address that are packed begin. */
static size_t first_octet(unsigned kind)
{
    static const size_t FIRST[] = {
        [ENDPOINT_NONE] = 16, [ENDPOINT_IPV4] = 12, [ENDPOINT_IPV6] = 0
    };
    return FIRST[kind];
}

static uint8_t *write_endpoint(uint8_t *at, const struct endpoint *e, unsigned kind)
{
    size_t first = first_octet(kind), len = sizeof e->address.octet - first;
    if (kind == ENDPOINT_NONE)
        return at;
    memcpy(at, e->address.octet + first, len);
    return write_varint(at + len, e->port);
}

static struct endpoint read_endpoint(struct reader *r, unsigned kind)
{
    struct endpoint e = { 0 };
    if (kind != ENDPOINT_IPV4 && kind != ENDPOINT_IPV6)
        return e;
    size_t first = first_octet(kind), len = sizeof e.address.octet - first;
    if (kind == ENDPOINT_IPV4)
        e.address.octet[10] = e.address.octet[11] = 0xff; /* RFC 4291 2.5.5.2 */
    struct bytes octets = reader_take(r, len);
    if (octets.len > 0)
        memcpy(e.address.octet + first, octets.at, len);
    e.port = (uint16_t)get_varint(r);
    return e;
}

/* Scalars */

#define IS_SIGNED(type) ((type)-1 < (type)1)

/* Not inlined, as the next one: there are as many calls as scalars. */
__attribute__((noinline)) static uint8_t *write_number(uint8_t *at, uint64_t value)
{
    return write_varint(at, value);
}

__attribute__((noinline)) static uint64_t read_number(struct reader *r)
{
    return get_varint(r);
}

static uint8_t *write_scalars(uint8_t *at, const struct facts *f, struct scale s)
{
    uint64_t bits[WORDS] = { 0 };
    uint8_t *bits_at = at;
    unsigned i = 0;
    at += sizeof bits;
#define WRITE(type, name)                                                                          \
    if (f->name != 0) {                                                                            \
        bits[i / WORD_BITS] |= UINT64_C(1) << (i % WORD_BITS);                                     \
        at = write_number(at, FACTS_IS_TIME(type) ? distance_of((int64_t)f->name, s.base_ns, s)    \
                              : IS_SIGNED(type)   ? zigzag((int64_t)f->name)                       \
                                                  : (uint64_t)f->name);                              \
    }                                                                                              \
    i++;
#define WRITE_2(type, name) WRITE(type, name[CLIENT]) WRITE(type, name[SERVER])
    FACTS_SCALAR(WRITE, WRITE_2)
#undef WRITE
#undef WRITE_2
    for (i = 0; i < WORDS; i++)
        bits[i] = htole64(bits[i]);
    memcpy(bits_at, bits, sizeof bits);
    return at;
}

static void read_scalars(struct reader *r, struct facts *f, struct scale s)
{
    uint64_t bits[WORDS] = { 0 };
    struct bytes taken = reader_take(r, sizeof bits);
    if (taken.len > 0)
        memcpy(bits, taken.at, sizeof bits);
    for (unsigned k = 0; k < WORDS; k++)
        bits[k] = le64toh(bits[k]);
    unsigned i = 0;
#define READ(type, name)                                                                           \
    if ((bits[i / WORD_BITS] >> (i % WORD_BITS) & 1) != 0) {                                       \
        uint64_t number = read_number(r);                                                          \
        f->name = FACTS_IS_TIME(type) ? (type)time_behind(s.base_ns, number, s)                    \
                  : IS_SIGNED(type)   ? (type)unzigzag(number)                                     \
                                      : (type)number;                                                \
    }                                                                                              \
    i++;
#define READ_2(type, name) READ(type, name[CLIENT]) READ(type, name[SERVER])
    FACTS_SCALAR(READ, READ_2)
#undef READ
#undef READ_2
}

/* Records */

enum record_bit {
    IS_OF_SERVER = 1 << 0,  /* the side itself */
    HAS_TYPE = 1 << 1,      /* else that of the record before */
    HAS_FLAGS = 1 << 2,     /* else it only starts a segment */
    HAS_MESSAGE = 1 << 3,   /* else none */
    HAS_AT = 1 << 4,        /* else with the record before */
    HAS_LAST_AT = 1 << 5,   /* else in one segment */
    HAS_ACKED = 1 << 6,     /* else not seen */
    HAS_ALL_ACKED = 1 << 7, /* else when its first byte was */
    HAS_PACKET = 1 << 8,    /* else that of the record before */
    HAS_LAST_PACKET = 1 << 9,
    HAS_OFFSET = 1 << 10, /* else behind the record before of its side */
    HAS_ACK = 1 << 11,    /* else that of the record before of its side */
    HAS_SKIPPED = 1 << 12,
    HAS_CONTENT = 1 << 13,
};

enum { NO_MESSAGE = 255, HEADER_LEN = 5 };

/* What the records before one let expect of it. */
struct expected {
    uint8_t type;
    int64_t at_ns;
    uint64_t packet_no;
    int32_t offset[2], ack[2];
};

static void expect_next(struct expected *e, const struct record *r)
{
    unsigned side = r->side & 1;
    e->type = r->type;
    e->at_ns = r->at_ns;
    e->packet_no = r->packet_no;
    e->offset[side] = (int32_t)((uint32_t)r->offset + r->len + HEADER_LEN);
    e->ack[side] = r->ack;
}

static unsigned bit_if(bool condition, enum record_bit bit)
{
    return condition ? (unsigned)bit : 0;
}

static unsigned bits_of(const struct record *r, const struct expected *e)
{
    unsigned side = r->side & 1;
    return bit_if(side == SERVER, IS_OF_SERVER) | bit_if(r->type != e->type, HAS_TYPE) |
           bit_if(r->flags != RECORD_STARTS_SEGMENT, HAS_FLAGS) |
           bit_if(r->first_message != NO_MESSAGE, HAS_MESSAGE) |
           bit_if(r->at_ns != e->at_ns, HAS_AT) | bit_if(r->last_at_ns != r->at_ns, HAS_LAST_AT) |
           bit_if(r->acked_at_ns != 0, HAS_ACKED) |
           bit_if(r->all_acked_at_ns != r->acked_at_ns, HAS_ALL_ACKED) |
           bit_if(r->packet_no != e->packet_no, HAS_PACKET) |
           bit_if(r->last_packet_no != r->packet_no, HAS_LAST_PACKET) |
           bit_if(r->offset != e->offset[side], HAS_OFFSET) |
           bit_if(r->ack != e->ack[side], HAS_ACK) |
           bit_if(r->skipped != 0 || r->skipped_len != 0, HAS_SKIPPED) |
           bit_if(r->content != 0, HAS_CONTENT);
}

static uint8_t *write_difference(uint8_t *at, int64_t value, int64_t expected)
{
    return write_varint(at, zigzag((int64_t)((uint64_t)value - (uint64_t)expected)));
}

static int64_t read_difference(struct reader *r, int64_t expected)
{
    return (int64_t)((uint64_t)expected + (uint64_t)get_signed(r));
}

static uint8_t *write_record(uint8_t *at, const struct record *r, const struct expected *e,
                             struct scale s)
{
    unsigned side = r->side & 1, bits = bits_of(r, e);
    *at++ = (uint8_t)bits;
    *at++ = (uint8_t)(bits >> 8);
    if ((bits & HAS_TYPE) != 0)
        *at++ = r->type;
    if ((bits & HAS_FLAGS) != 0)
        *at++ = r->flags;
    if ((bits & HAS_MESSAGE) != 0)
        *at++ = r->first_message;
    if ((bits & HAS_AT) != 0)
        at = write_time(at, r->at_ns, e->at_ns, s);
    if ((bits & HAS_LAST_AT) != 0)
        at = write_time(at, r->last_at_ns, r->at_ns, s);
    if ((bits & HAS_ACKED) != 0)
        at = write_time(at, r->acked_at_ns, r->at_ns, s);
    if ((bits & HAS_ALL_ACKED) != 0)
        at = write_time(at, r->all_acked_at_ns, r->at_ns, s);
    if ((bits & HAS_PACKET) != 0)
        at = write_difference(at, (int64_t)r->packet_no, (int64_t)e->packet_no);
    if ((bits & HAS_LAST_PACKET) != 0)
        at = write_difference(at, (int64_t)r->last_packet_no, (int64_t)r->packet_no);
    if ((bits & HAS_OFFSET) != 0)
        at = write_difference(at, r->offset, e->offset[side]);
    if ((bits & HAS_ACK) != 0)
        at = write_difference(at, r->ack, e->ack[side]);
    if ((bits & HAS_SKIPPED) != 0)
        at = write_varint(write_varint(at, r->skipped), r->skipped_len);
    if ((bits & HAS_CONTENT) != 0)
        at = write_varint(at, r->content);
    return write_varint(at, r->len);
}

static void read_record(struct reader *r, const struct expected *e, struct scale s,
                        struct record *ret_record)
{
    unsigned bits = (unsigned)reader_le(r, 2);
    uint8_t side = (bits & IS_OF_SERVER) != 0 ? SERVER : CLIENT;
    struct record x = { .side = side };
    x.type = (bits & HAS_TYPE) != 0 ? reader_u8(r) : e->type;
    x.flags = (bits & HAS_FLAGS) != 0 ? reader_u8(r) : RECORD_STARTS_SEGMENT;
    x.first_message = (bits & HAS_MESSAGE) != 0 ? reader_u8(r) : NO_MESSAGE;
    x.at_ns = (bits & HAS_AT) != 0 ? read_time(r, e->at_ns, s) : e->at_ns;
    x.last_at_ns = (bits & HAS_LAST_AT) != 0 ? read_time(r, x.at_ns, s) : x.at_ns;
    x.acked_at_ns = (bits & HAS_ACKED) != 0 ? read_time(r, x.at_ns, s) : 0;
    x.all_acked_at_ns = (bits & HAS_ALL_ACKED) != 0 ? read_time(r, x.at_ns, s) : x.acked_at_ns;
    x.packet_no = e->packet_no;
    if ((bits & HAS_PACKET) != 0)
        x.packet_no = (uint64_t)read_difference(r, (int64_t)e->packet_no);
    x.last_packet_no = x.packet_no;
    if ((bits & HAS_LAST_PACKET) != 0)
        x.last_packet_no = (uint64_t)read_difference(r, (int64_t)x.packet_no);
    x.offset = e->offset[side];
    if ((bits & HAS_OFFSET) != 0)
        x.offset = (int32_t)read_difference(r, x.offset);
    x.ack = e->ack[side];
    if ((bits & HAS_ACK) != 0)
        x.ack = (int32_t)read_difference(r, x.ack);
    if ((bits & HAS_SKIPPED) != 0) {
        x.skipped = (uint16_t)get_varint(r);
        x.skipped_len = (uint32_t)get_varint(r);
    }
    if ((bits & HAS_CONTENT) != 0)
        x.content = (uint16_t)get_varint(r);
    x.len = (uint32_t)get_varint(r);
    *ret_record = x;
}

/* Resends */

static uint8_t *write_resends(uint8_t *at, const struct facts *f, struct scale s)
{
    at = write_varint(at, f->resend_count);
    for (unsigned i = 0; i < f->resend_count; i++) {
        at = write_time(at, f->resends[i].at_ns, s.base_ns, s);
        at = write_varint(at, distance_of(f->resends[i].wait_ns, 0, s));
        at = write_varint(at, f->resends[i].side);
    }
    return at;
}

static bool read_resends(struct reader *r, struct facts *f, struct scale s)
{
    uint64_t count = get_varint(r);
    if (count > RESENDS_MAX)
        return false;
    f->resend_count = (uint8_t)count;
    for (unsigned i = 0; i < f->resend_count; i++) {
        f->resends[i].at_ns = read_time(r, s.base_ns, s);
        f->resends[i].wait_ns = time_behind(0, get_varint(r), s);
        f->resends[i].side = (uint8_t)get_varint(r);
    }
    return true;
}

/* Texts */

#define COUNT_TEXT(name) +1
enum { TEXT_COUNT = 0 FACTS_TEXT(COUNT_TEXT), TEXT_BITS_LEN = (TEXT_COUNT + 7) / 8 };
#undef COUNT_TEXT

/* The length with which a text is packed, its terminator included: unpacked facts point at it. */
static size_t text_size(const char *text)
{
    size_t len = text == NULL ? 0 : strlen(text);
    return text == NULL ? 0 : (len < TEXT_MAX ? len : TEXT_MAX) + 1;
}

static bool write_texts(struct buffer *out, const struct facts *f)
{
    size_t size[TEXT_COUNT], all = TEXT_BITS_LEN + TEXT_COUNT * VARINT_MAX;
    unsigned i = 0;
#define ADD_SIZE(name) all += size[i++] = text_size(f->name);
    FACTS_TEXT(ADD_SIZE)
#undef ADD_SIZE
    if (!buffer_reserve(out, all))
        return false;
    uint8_t *at = out->at + out->len;
    uint64_t bits = 0;
    for (i = 0; i < TEXT_COUNT; i++)
        bits |= (uint64_t)(size[i] != 0) << i;
    for (i = 0; i < TEXT_BITS_LEN; i++)
        *at++ = (uint8_t)(bits >> (8 * i));
    i = 0;
#define WRITE_TEXT(name)                                                                           \
    if (size[i] != 0) {                                                                            \
        at = write_number(at, size[i]);                                                            \
        memcpy(at, f->name, size[i] - 1);                                                          \
        at += size[i];                                                                             \
        at[-1] = '\0';                                                                             \
    }                                                                                              \
    i++;
    FACTS_TEXT(WRITE_TEXT)
#undef WRITE_TEXT
    out->len = (size_t)(at - out->at);
    return true;
}

static char *read_text(struct reader *r)
{
    struct bytes text = reader_take(r, (size_t)get_varint(r));
    return text.len == 0 || text.at[text.len - 1] != '\0' ? NULL : (char *)text.at;
}

static void read_texts(struct reader *r, struct facts *f)
{
    uint64_t bits = reader_le(r, TEXT_BITS_LEN);
    unsigned i = 0;
#define READ_TEXT(name)                                                                            \
    if ((bits >> i++ & 1) != 0)                                                                    \
        f->name = read_text(r);
    FACTS_TEXT(READ_TEXT)
#undef READ_TEXT
}

/* All of it */

/* The most that all but the texts can take. */
static size_t len_max(const struct facts *f)
{
    return 2 + 2 * sizeof f->client.address.octet + WORDS * sizeof(uint64_t) +
           (size_t)VARINT_MAX * (5 + FACTS_SCALAR_COUNT) + (size_t)RESENDS_MAX * RESEND_LEN_MAX +
           (size_t)f->record_count * RECORD_LEN_MAX;
}

enum status facts_pack(const struct facts *f, struct buffer *out)
{
    if (!buffer_reserve(out, len_max(f)))
        return STATUS_NO_MEMORY;
    unsigned client = endpoint_kind(&f->client), server = endpoint_kind(&f->server);
    struct scale s = { f->start_ns != 0 ? f->start_ns : f->end_ns, facts_unit_ns(f) };
    uint8_t *at = out->at + out->len;
    *at++ = (uint8_t)(client | server << ENDPOINT_BITS | (s.unit_ns != 1 ? HAS_LONG_UNIT : 0));
    *at++ = f->ip_version;
    at = write_endpoint(at, &f->client, client);
    at = write_endpoint(at, &f->server, server);
    at = write_varint(at, zigzag(s.base_ns));
    at = write_scalars(at, f, s);
    at = write_resends(at, f, s);
    at = write_varint(at, f->record_count);
    struct expected e = { .at_ns = s.base_ns, .packet_no = f->first_packet_no };
    for (unsigned i = 0; i < f->record_count; i++) {
        at = write_record(at, &f->records[i], &e, s);
        expect_next(&e, &f->records[i]);
    }
    out->len = (size_t)(at - out->at);
    return write_texts(out, f) ? STATUS_OK : STATUS_NO_MEMORY;
}

bool facts_unpack(struct bytes packed, struct record records[RECORDS_MAX], struct facts *ret_facts)
{
    struct reader r = reader_of(packed);
    struct facts *f = ret_facts;
    *f = (struct facts){ 0 };
    unsigned head = reader_u8(&r);
    f->ip_version = reader_u8(&r);
    f->client = read_endpoint(&r, head & ENDPOINT_MASK);
    f->server = read_endpoint(&r, head >> ENDPOINT_BITS & ENDPOINT_MASK);
    struct scale s = { get_signed(&r), (head & HAS_LONG_UNIT) != 0 ? FACTS_LONG_UNIT_NS : 1 };
    read_scalars(&r, f, s);
    if (!read_resends(&r, f, s))
        return false;
    uint64_t record_count = get_varint(&r);
    if (record_count > RECORDS_MAX || r.short_read)
        return false;
    f->records = records;
    f->record_count = (uint16_t)record_count;
    struct expected e = { .at_ns = s.base_ns, .packet_no = f->first_packet_no };
    for (unsigned i = 0; i < f->record_count; i++) {
        read_record(&r, &e, s, &records[i]);
        expect_next(&e, &records[i]);
    }
    read_texts(&r, f);
    return !r.short_read;
}
