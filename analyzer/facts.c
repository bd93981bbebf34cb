/* SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"

#include "varint.h"

#include <stdlib.h>

enum {
    TEXT_MAX = 65535, /* of one text fact; ALPN lists are the longest */
};

void facts_done(struct facts *f)
{
#define FREE_TEXT(name) free(f->name);
    FACTS_TEXT(FREE_TEXT)
#undef FREE_TEXT
    free(f->records);
    *f = (struct facts){ 0 };
}

void facts_clear(struct facts *f)
{
    struct record *records = f->records;
    uint16_t capacity = f->record_capacity;
    f->records = NULL;
    facts_done(f);
    f->records = records;
    f->record_capacity = capacity;
}

static bool reserve_records(struct facts *f, uint16_t capacity)
{
    if (capacity <= f->record_capacity)
        return true;
    struct record *grown = realloc(f->records, capacity * sizeof *grown);
    if (grown == NULL)
        return false;
    f->records = grown;
    f->record_capacity = capacity;
    return true;
}

bool facts_copy(const struct facts *f, struct facts *copy)
{
    if (!reserve_records(copy, f->record_count))
        return false;
    struct record *records = copy->records;
    uint16_t capacity = copy->record_capacity;
    bool ok = true;
    *copy = *f;
    copy->records = records;
    copy->record_capacity = capacity;
    if (f->record_count > 0)
        memcpy(records, f->records, f->record_count * sizeof *records);
#define COPY_TEXT(name)                                                                            \
    copy->name = f->name == NULL ? NULL : strdup(f->name);                                         \
    ok = ok && (f->name == NULL || copy->name != NULL);
    FACTS_TEXT(COPY_TEXT)
#undef COPY_TEXT
    if (!ok)
        facts_clear(copy);
    return ok;
}

bool facts_set_text(char **field, const char *text, size_t len)
{
    char *copy = malloc(len + 1);
    if (copy == NULL)
        return false;
    memcpy(copy, text, len);
    copy[len] = '\0';
    free(*field);
    *field = copy;
    return true;
}

struct record *facts_add_record(struct facts *f)
{
    enum { FIRST = 16 }; /* most handshakes and a first exchange fit */
    if (f->record_count == f->record_capacity &&
        !reserve_records(f, f->record_capacity == 0 ? FIRST : (uint16_t)(2 * f->record_capacity)))
        return NULL;
    struct record *r = &f->records[f->record_count++];
    *r = (struct record){ 0 };
    return r;
}

static int compare_records(const void *a, const void *b)
{
    const struct record *x = a, *y = b;
    if (x->at_ns != y->at_ns)
        return x->at_ns < y->at_ns ? -1 : 1;
    if (x->packet_no != y->packet_no)
        return x->packet_no < y->packet_no ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return (int)x->side - (int)y->side;
}

void facts_finish(struct facts *f)
{
    if (f->record_count > 1)
        qsort(f->records, f->record_count, sizeof *f->records, compare_records);
    f->session_id_echoed = f->session_id_hash != NULL && f->server_session_id_hash != NULL &&
                           strcmp(f->session_id_hash, f->server_session_id_hash) == 0;
}

bool facts_are_unread(const struct facts *f)
{
    bool has_payload = false;
    for (enum side side = CLIENT; side <= SERVER; side++) {
        if (f->first_payload_ns[side] == 0)
            continue;
        has_payload = true;
        if (!f->begin_unread[side])
            return false;
    }
    return has_payload && !f->tls;
}

#define KEEP(type, name)
#define SWAP_SIDES(type, name)                                                                     \
    {                                                                                              \
        type of_client = f->name[CLIENT];                                                          \
        f->name[CLIENT] = f->name[SERVER];                                                         \
        f->name[SERVER] = of_client;                                                               \
    }

static void swap_record_sides(struct facts *f)
{
    for (unsigned i = 0; i < f->record_count; i++)
        f->records[i].side = (uint8_t)other_side(f->records[i].side);
}

void facts_reverse_tls(struct facts *f)
{
    f->tls_reversed = 1;
    SWAP_SIDES(uint32_t, messages)
    SWAP_SIDES(int64_t, ccs_ns)
    SWAP_SIDES(int32_t, ccs_offset)
    SWAP_SIDES(int32_t, ccs_ack)
    SWAP_SIDES(uint8_t, alert_seen)
    SWAP_SIDES(uint8_t, alert_level)
    SWAP_SIDES(uint8_t, alert_description)
    SWAP_SIDES(int64_t, alert_ns)
    SWAP_SIDES(uint32_t, boundary_losses)
    SWAP_SIDES(uint32_t, records_seen)
    SWAP_SIDES(uint8_t, records_full)
    SWAP_SIDES(uint8_t, not_tls)
    SWAP_SIDES(uint8_t, begin_unread)
    swap_record_sides(f);
}

void facts_swap_sides(struct facts *f)
{
    struct endpoint client = f->client;
    f->client = f->server;
    f->server = client;
    FACTS_SCALAR(KEEP, SWAP_SIDES)
    swap_record_sides(f);
    for (unsigned i = 0; i < f->resend_count; i++)
        f->resends[i].side = (uint8_t)other_side(f->resends[i].side);
}
#undef KEEP
#undef SWAP_SIDES

/*
 * Packed form: the endpoints, then a bit for each scalar fact (set = not zero, and its value
 * follows), texts, records, resends. Numbers are varints of 7 bits, signed ones in zigzag; times
 * are differences to the start.
 */

enum { BITMAP_LEN = (FACTS_SCALAR_COUNT + 7) / 8 };

/* A time that may be unknown: 0 for that, else one more than the zigzag difference to a base. */
static void put_time(struct buffer *b, int64_t value, int64_t base)
{
    int64_t d = value - base;
    put_varint(b, value == 0 ? 0 : ((uint64_t)d << 1 ^ (uint64_t)(d >> 63)) + 1);
}

static int64_t get_time(struct reader *r, int64_t base)
{
    uint64_t value = get_varint(r);
    if (value-- == 0)
        return 0;
    return base + ((int64_t)(value >> 1) ^ -(int64_t)(value & 1));
}

/* Above the flags of a packed record: its content follows them. */
enum { PACKED_HAS_CONTENT = 1 << 8 };

static void pack_record(struct buffer *out, const struct record *r, int64_t start_ns)
{
    put_varint(out, r->side | (unsigned)r->type << 1);
    put_varint(out, r->flags | (r->content != 0 ? PACKED_HAS_CONTENT : 0U));
    if (r->content != 0)
        put_varint(out, r->content);
    put_varint(out, r->first_message);
    put_time(out, r->at_ns, start_ns);
    put_time(out, r->last_at_ns, r->at_ns);
    put_time(out, r->acked_at_ns, r->at_ns);
    put_time(out, r->all_acked_at_ns, r->at_ns);
    put_varint(out, r->packet_no);
    put_signed(out, (int64_t)(r->last_packet_no - r->packet_no));
    put_signed(out, r->offset);
    put_signed(out, r->ack);
    put_varint(out, r->len);
    put_varint(out, r->skipped);
    put_varint(out, r->skipped_len);
}

static struct record unpack_record(struct reader *r, int64_t start_ns)
{
    struct record x = { 0 };
    uint64_t side_type = get_varint(r);
    x.side = side_type & 1;
    x.type = (uint8_t)(side_type >> 1);
    uint64_t flags = get_varint(r);
    x.flags = (uint8_t)flags;
    if ((flags & PACKED_HAS_CONTENT) != 0)
        x.content = (uint16_t)get_varint(r);
    x.first_message = (uint8_t)get_varint(r);
    x.at_ns = get_time(r, start_ns);
    x.last_at_ns = get_time(r, x.at_ns);
    x.acked_at_ns = get_time(r, x.at_ns);
    x.all_acked_at_ns = get_time(r, x.at_ns);
    x.packet_no = get_varint(r);
    x.last_packet_no = x.packet_no + (uint64_t)get_signed(r);
    x.offset = (int32_t)get_signed(r);
    x.ack = (int32_t)get_signed(r);
    x.len = (uint32_t)get_varint(r);
    x.skipped = (uint16_t)get_varint(r);
    x.skipped_len = (uint32_t)get_varint(r);
    return x;
}

static void pack_scalar(struct buffer *out, size_t bitmap, unsigned i, int64_t value, bool is_time,
                        int64_t start_ns)
{
    if (value == 0)
        return;
    out->at[bitmap + i / 8] |= (uint8_t)(1u << (i % 8));
    if (is_time)
        put_time(out, value, start_ns);
    else
        put_signed(out, value);
}

static int64_t unpack_scalar(struct reader *r, struct bytes bitmap, unsigned i, bool is_time,
                             int64_t start_ns)
{
    if ((bitmap.at[i / 8] >> (i % 8) & 1) == 0)
        return 0;
    return is_time ? get_time(r, start_ns) : get_signed(r);
}

/* With a terminator, so that unpacked facts can point at it. */
static bool pack_text(struct buffer *out, const char *text)
{
    size_t len = text == NULL ? 0 : strlen(text);
    if (len > TEXT_MAX)
        len = TEXT_MAX;
    if (!buffer_reserve(out, VARINT_MAX + len + 1))
        return false;
    put_varint(out, text == NULL ? 0 : len + 1);
    if (text == NULL)
        return true;
    memcpy(out->at + out->len, text, len);
    out->at[out->len + len] = '\0';
    out->len += len + 1;
    return true;
}

static char *unpack_text(struct reader *r)
{
    uint64_t len = get_varint(r);
    struct bytes text = len == 0 ? (struct bytes){ 0 } : reader_take(r, (size_t)len);
    return text.len == 0 || text.at[text.len - 1] != '\0' ? NULL : (char *)text.at;
}

enum status facts_pack(const struct facts *f, struct buffer *out)
{
    size_t most =
        sizeof f->client.address.octet * 2 + BITMAP_LEN +
        VARINT_MAX * (8 + FACTS_SCALAR_COUNT + 3 * RESENDS_MAX + 15 * (size_t)f->record_count);
    if (!buffer_reserve(out, most))
        return STATUS_NO_MEMORY;
    const struct endpoint *ends[2] = { &f->client, &f->server };
    for (unsigned side = 0; side < 2; side++) {
        memcpy(out->at + out->len, ends[side]->address.octet, sizeof ends[side]->address.octet);
        out->len += sizeof ends[side]->address.octet;
        put_varint(out, ends[side]->port);
    }
    put_varint(out, f->ip_version);
    put_signed(out, f->start_ns);
    size_t bitmap = out->len;
    memset(out->at + bitmap, 0, BITMAP_LEN);
    out->len += BITMAP_LEN;
    unsigned i = 0;
#define PACK(type, name)                                                                           \
    pack_scalar(out, bitmap, i++, (int64_t)f->name, FACTS_IS_TIME(type), f->start_ns);
#define PACK_2(type, name)                                                                         \
    pack_scalar(out, bitmap, i++, (int64_t)f->name[CLIENT], FACTS_IS_TIME(type), f->start_ns);     \
    pack_scalar(out, bitmap, i++, (int64_t)f->name[SERVER], FACTS_IS_TIME(type), f->start_ns);
    FACTS_SCALAR(PACK, PACK_2)
#undef PACK
#undef PACK_2
    put_varint(out, f->resend_count);
    for (unsigned k = 0; k < f->resend_count; k++) {
        put_time(out, f->resends[k].at_ns, f->start_ns);
        put_signed(out, f->resends[k].wait_ns);
        put_varint(out, f->resends[k].side);
    }
    put_varint(out, f->record_count);
    for (unsigned k = 0; k < f->record_count; k++)
        pack_record(out, &f->records[k], f->start_ns);
#define PACK_TEXT(name)                                                                            \
    if (!pack_text(out, f->name))                                                                  \
        return STATUS_NO_MEMORY;
    FACTS_TEXT(PACK_TEXT)
#undef PACK_TEXT
    return STATUS_OK;
}

static bool unpack(struct reader *r, struct record records[RECORDS_MAX], struct facts *f)
{
    struct endpoint *ends[2] = { &f->client, &f->server };
    for (unsigned side = 0; side < 2; side++) {
        struct bytes octets = reader_take(r, sizeof ends[side]->address.octet);
        if (octets.len > 0)
            memcpy(ends[side]->address.octet, octets.at, octets.len);
        ends[side]->port = (uint16_t)get_varint(r);
    }
    f->ip_version = (uint8_t)get_varint(r);
    int64_t start_ns = get_signed(r);
    struct bytes bitmap = reader_take(r, BITMAP_LEN);
    if (r->short_read)
        return false;
    unsigned i = 0;
#define UNPACK(type, name)                                                                         \
    f->name = (type)unpack_scalar(r, bitmap, i++, FACTS_IS_TIME(type), start_ns);
#define UNPACK_2(type, name)                                                                       \
    f->name[CLIENT] = (type)unpack_scalar(r, bitmap, i++, FACTS_IS_TIME(type), start_ns);          \
    f->name[SERVER] = (type)unpack_scalar(r, bitmap, i++, FACTS_IS_TIME(type), start_ns);
    FACTS_SCALAR(UNPACK, UNPACK_2)
#undef UNPACK
#undef UNPACK_2
    uint64_t resends = get_varint(r);
    if (resends > RESENDS_MAX)
        return false;
    f->resend_count = (uint8_t)resends;
    for (unsigned k = 0; k < f->resend_count; k++) {
        f->resends[k].at_ns = get_time(r, start_ns);
        f->resends[k].wait_ns = get_signed(r);
        f->resends[k].side = (uint8_t)get_varint(r);
    }
    uint64_t record_count = get_varint(r);
    if (record_count > RECORDS_MAX || r->short_read)
        return false;
    f->records = records;
    f->record_count = (uint16_t)record_count;
    for (unsigned k = 0; k < f->record_count; k++)
        records[k] = unpack_record(r, start_ns);
#define UNPACK_TEXT(name) f->name = unpack_text(r);
    FACTS_TEXT(UNPACK_TEXT)
#undef UNPACK_TEXT
    return !r->short_read;
}

bool facts_unpack(struct bytes packed, struct record records[RECORDS_MAX], struct facts *ret_facts)
{
    struct reader r = reader_of(packed);
    *ret_facts = (struct facts){ 0 };
    return unpack(&r, records, ret_facts);
}

static bool record_is_sound(const struct record *r)
{
    return r->at_ns >= 0 && r->last_at_ns >= 0 && r->acked_at_ns >= 0 && r->all_acked_at_ns >= 0 &&
           r->offset >= 0 && r->ack >= ACK_UNKNOWN;
}

static bool text_is_sound(const char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        if (*text < 0x20 || *text > 0x7e)
            return false;
    return true;
}

bool facts_are_sound(const struct facts *f)
{
    bool sound = f->client_basis <= CLIENT_BY_ORDER && f->ended <= ENDED_EVICTED &&
                 f->preamble <= PREAMBLE_OTHER && f->keys <= KEYS_FAILED && f->hello_side <= SERVER;
#define IS_SOUND(type, name) sound = sound && (!FACTS_IS_TIME(type) || (int64_t)f->name >= 0);
#define ARE_SOUND(type, name) IS_SOUND(type, name[CLIENT]) IS_SOUND(type, name[SERVER])
    FACTS_SCALAR(IS_SOUND, ARE_SOUND)
#undef IS_SOUND
#undef ARE_SOUND
#define IS_SOUND(name) sound = sound && text_is_sound(f->name);
    FACTS_TEXT_JUDGED(IS_SOUND)
#undef IS_SOUND
    for (unsigned i = 0; i < f->resend_count; i++)
        sound = sound && f->resends[i].side <= SERVER && f->resends[i].at_ns >= 0 &&
                f->resends[i].wait_ns >= 0;
    for (unsigned i = 0; i < f->record_count; i++)
        sound = sound && record_is_sound(&f->records[i]);
    return sound;
}
