/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts as JSON. There is one for each TLS flow, so it is most of a database and much of the work
 * of a load: names are given once, in facts.h, and numbers are kept small.
 */
#include "facts.h"

#include "decimal.h"
#include "json_load.h"

#include <jansson.h>

enum {
    BITS_LEN = (FACTS_SCALAR_COUNT + 3) / 4,
    NUMBER_MAX = DECIMAL_MAX + 1, /* with what stands before it */
    NAME_MAX_LEN = 40,            /* of a member's name with its punctuation */
    ESCAPE_MAX = 6,               /* of one character of text */
    RECORD_FIELDS = 16,
};

static const char HEX[] = "0123456789abcdef";

/* Writing: room for all of it is reserved at the start. */

static void add_words(struct buffer *out, const char *words)
{
    size_t len = strlen(words);
    memcpy(out->at + out->len, words, len);
    out->len += len;
}

static void add_character(struct buffer *out, char c)
{
    out->at[out->len++] = (uint8_t)c;
}

/* A number behind a bracket, comma or colon. */
static void add_integer(struct buffer *out, char before, int64_t value)
{
    add_character(out, before);
    if (value >= 0 && value < 10) /* most are */
        add_character(out, (char)('0' + value));
    else
        put_decimal(out, value);
}

/* A time behind its bracket or comma, counted from another; null when it was not seen. */
static void add_time(struct buffer *out, char before, int64_t at_ns, int64_t from_ns, int64_t unit)
{
    if (at_ns != 0) {
        add_integer(out, before, (at_ns - from_ns) / unit);
        return;
    }
    add_character(out, before);
    add_words(out, "null");
}

/* Text facts are printable ASCII or hex: little is ever escaped. */
static void add_text(struct buffer *out, const char *name, const char *text)
{
    if (text == NULL)
        return;
    add_words(out, ",\"");
    add_words(out, name);
    add_words(out, "\":\"");
    for (const char *c = text; *c != '\0'; c++) {
        if (*c >= 0x20 && *c <= 0x7e && *c != '"' && *c != '\\') {
            add_character(out, *c);
            continue;
        }
        add_words(out, "\\u00");
        add_character(out, HEX[(uint8_t)*c >> 4]);
        add_character(out, HEX[(uint8_t)*c & 15]);
    }
    add_character(out, '"');
}

static void add_endpoint(struct buffer *out, const char *member, const struct endpoint *e)
{
    char address[ADDRESS_TEXT_SIZE];
    add_words(out, member);
    add_words(out, address_text(&e->address, address));
    add_character(out, '"');
    add_integer(out, ',', e->port);
    add_character(out, ']');
}

/* A scalar whose value is not zero: its bit, and its value behind those before it. */
static void add_scalar(struct buffer *out, uint8_t bits[BITS_LEN], unsigned number, int64_t value)
{
    bits[number / 4] |= (uint8_t)(1u << (number % 4));
    add_integer(out, ',', value);
}

static void add_scalars(struct buffer *out, const struct facts *f, int64_t unit)
{
    uint8_t bits[BITS_LEN] = { 0 };
    unsigned number = 0;
    add_words(out, ",\"facts\":[\"");
    size_t bits_at = out->len;
    out->len += BITS_LEN;
    add_character(out, '"');
#define VALUE(type, value)                                                                         \
    (FACTS_IS_TIME(type) ? ((int64_t)(value)-f->start_ns) / unit : (int64_t)(value))
#define ADD(type, name)                                                                            \
    if (f->name != 0)                                                                              \
        add_scalar(out, bits, number, VALUE(type, f->name));                                       \
    number++;
#define ADD_2(type, name) ADD(type, name[CLIENT]) ADD(type, name[SERVER])
    FACTS_SCALAR(ADD, ADD_2)
#undef ADD
#undef ADD_2
#undef VALUE
    add_character(out, ']');
    for (unsigned i = 0; i < BITS_LEN; i++)
        out->at[bits_at + i] = (uint8_t)HEX[bits[i]];
}

static void add_resends(struct buffer *out, const struct facts *f, int64_t unit)
{
    if (f->resend_count == 0)
        return;
    add_words(out, ",\"resends\":");
    for (unsigned i = 0; i < f->resend_count; i++) {
        add_character(out, i == 0 ? '[' : ',');
        add_integer(out, '[', f->resends[i].side);
        add_integer(out, ',', (f->resends[i].at_ns - f->start_ns) / unit);
        add_integer(out, ',', f->resends[i].wait_ns / unit);
        add_character(out, ']');
    }
    add_character(out, ']');
}

/* From where the acknowledgment of all of a record counts. */
static int64_t acked_base(const struct record *r)
{
    return r->acked_at_ns != 0 ? r->acked_at_ns : r->at_ns;
}

static void add_record(struct buffer *out, const struct record *r, const struct facts *f,
                       int64_t unit)
{
    int64_t rest[] = {
        (r->last_at_ns - r->at_ns) / unit,
        (int64_t)(r->last_packet_no - r->packet_no),
        (uint8_t)(r->first_message + 1),
        r->skipped,
        r->skipped_len,
        r->content,
    };
    size_t rest_count = sizeof rest / sizeof *rest;
    while (rest_count > 0 && rest[rest_count - 1] == 0)
        rest_count--;
    add_integer(out, '[', r->side);
    add_integer(out, ',', r->type);
    add_integer(out, ',', r->len);
    add_integer(out, ',', (r->at_ns - f->start_ns) / unit);
    add_integer(out, ',', (int64_t)(r->packet_no - f->first_packet_no));
    add_integer(out, ',', r->offset);
    add_integer(out, ',', r->ack);
    add_integer(out, ',', r->flags);
    add_time(out, ',', r->acked_at_ns, r->at_ns, unit);
    if (rest_count > 0 || r->all_acked_at_ns != acked_base(r))
        add_time(out, ',', r->all_acked_at_ns, acked_base(r), unit);
    for (size_t i = 0; i < rest_count; i++)
        add_integer(out, ',', rest[i]);
    add_character(out, ']');
}

static void add_records(struct buffer *out, const struct facts *f, int64_t unit)
{
    add_words(out, ",\"records\":[");
    for (unsigned i = 0; i < f->record_count; i++) {
        if (i > 0)
            add_character(out, ',');
        add_record(out, &f->records[i], f, unit);
    }
    add_character(out, ']');
}

/* The most that the JSON of these facts can take. */
static size_t len_max(const struct facts *f)
{
    size_t len = (size_t)(FACTS_SCALAR_COUNT + 5 + 3 * RESENDS_MAX) * NUMBER_MAX + BITS_LEN +
                 (size_t)f->record_count * (RECORD_FIELDS + 1) * NUMBER_MAX +
                 (size_t)12 * NAME_MAX_LEN + (size_t)2 * ADDRESS_TEXT_SIZE;
#define TEXT_LEN(name) len += f->name == NULL ? 0 : NAME_MAX_LEN + ESCAPE_MAX * strlen(f->name);
    FACTS_TEXT_JUDGED(TEXT_LEN)
#undef TEXT_LEN
    return len;
}

enum status facts_to_json(const struct facts *seen, struct buffer *out)
{
    struct facts without_file = *seen, *f = &without_file;
    int64_t unit = facts_unit_ns(f);
    f->file = 0; /* a number within one run; what is kept is the same whatever else was read */
    if (!buffer_reserve(out, len_max(f)))
        return STATUS_NO_MEMORY;
    add_words(out, "{\"start\"");
    add_integer(out, ':', f->start_ns);
    add_words(out, ",\"unit\"");
    add_integer(out, ':', unit);
    add_words(out, ",\"packet\"");
    add_integer(out, ':', (int64_t)f->first_packet_no);
    add_endpoint(out, ",\"client\":[\"", &f->client);
    add_endpoint(out, ",\"server\":[\"", &f->server);
    add_scalars(out, f, unit);
#define TEXT(name) add_text(out, #name, f->name);
    FACTS_TEXT_JUDGED(TEXT)
#undef TEXT
    add_resends(out, f, unit);
    add_records(out, f, unit);
    add_character(out, '}');
    return STATUS_OK;
}

/* Reading. JSON of others may hold any number. */

struct scale {
    int64_t start_ns, unit;
    uint64_t first_packet_no;
};

static int64_t element(const json_t *array, size_t i)
{
    return json_integer_value(json_array_get(array, i));
}

static int64_t at_least(int64_t least, int64_t value)
{
    return value < least ? least : value;
}

/* A duration; one that is null, not there or no duration was not seen: 0. */
static int64_t duration_of(const json_t *value, int64_t unit)
{
    int64_t ns;
    return __builtin_mul_overflow((int64_t)json_integer_value(value), unit, &ns) ? 0 : ns;
}

/* A time that counts from base; what is null or no time was not seen. With all times in this range
 * no difference of two overflows. */
static int64_t time_of(int64_t count, int64_t base, int64_t unit)
{
    int64_t ns, at_ns;
    bool is_time = !__builtin_mul_overflow(count, unit, &ns) &&
                   !__builtin_add_overflow(ns, base, &at_ns) && at_ns >= 0;
    return is_time ? at_ns : 0;
}

/* The same of an element; one that was left out is 0, as all that stand at the end. */
static int64_t time_at(const json_t *array, size_t i, int64_t base, int64_t unit)
{
    const json_t *value = json_array_get(array, i);
    bool seen = value == NULL || json_is_integer(value);
    return seen ? time_of(json_integer_value(value), base, unit) : 0;
}

static bool read_endpoint(const json_t *array, struct endpoint *ret_endpoint)
{
    const char *text = json_string_value(json_array_get(array, 0));
    ret_endpoint->port = (uint16_t)element(array, 1);
    return text != NULL && address_parse(text, &ret_endpoint->address);
}

static struct record read_record(const json_t *a, struct scale s)
{
    struct record r = {
        .side = element(a, 0) == SERVER ? SERVER : CLIENT,
        .type = (uint8_t)element(a, 1),
        .len = (uint32_t)element(a, 2),
        .at_ns = time_at(a, 3, s.start_ns, s.unit),
        .packet_no = (uint64_t)element(a, 4) + s.first_packet_no,
        .offset = (int32_t)at_least(0, (int32_t)element(a, 5)),
        .ack = (int32_t)at_least(ACK_UNKNOWN, (int32_t)element(a, 6)),
        .flags = (uint8_t)element(a, 7),
        .first_message = (uint8_t)(element(a, 12) - 1),
        .skipped = (uint16_t)element(a, 13),
        .skipped_len = (uint32_t)element(a, 14),
        .content = (uint16_t)element(a, 15),
    };
    r.acked_at_ns = time_at(a, 8, r.at_ns, s.unit);
    r.all_acked_at_ns = time_at(a, 9, acked_base(&r), s.unit);
    r.last_at_ns = time_at(a, 10, r.at_ns, s.unit);
    r.last_packet_no = r.packet_no + (uint64_t)element(a, 11);
    return r;
}

/* The bits of scalars, and where the values of those that are set stand. */
struct scalars {
    const json_t *array;
    const char *bits;
    size_t bits_len, next;
};

static bool bit_is_set(const struct scalars *s, unsigned number)
{
    if (number / 4 >= s->bits_len)
        return false;
    char c = s->bits[number / 4];
    unsigned digit = c >= 'a' ? (unsigned)(c - 'a') + 10 : (unsigned)(c - '0');
    return (digit >> (number % 4) & 1) != 0;
}

static int64_t read_scalar(struct scalars *s, unsigned number, bool is_time, struct scale scale)
{
    if (!bit_is_set(s, number))
        return 0;
    int64_t value = element(s->array, s->next++);
    return is_time ? time_of(value, scale.start_ns, scale.unit) : value;
}

static void read_scalars(const json_t *array, struct scale scale, struct facts *f)
{
    const char *bits = json_string_value(json_array_get(array, 0));
    struct scalars s = { array, bits, bits == NULL ? 0 : strlen(bits), 1 };
    unsigned number = 0;
#define READ(type, name) f->name = (type)read_scalar(&s, number++, FACTS_IS_TIME(type), scale);
#define READ_2(type, name) READ(type, name[CLIENT]) READ(type, name[SERVER])
    FACTS_SCALAR(READ, READ_2)
#undef READ
#undef READ_2
}

static enum status read_records(const json_t *records, struct scale scale, struct facts *f)
{
    for (size_t i = 0; i < json_array_size(records) && i < RECORDS_MAX; i++) {
        struct record *r = facts_add_record(f);
        if (r == NULL)
            return STATUS_NO_MEMORY;
        *r = read_record(json_array_get(records, i), scale);
    }
    return STATUS_OK;
}

static void read_resends(const json_t *resends, struct scale scale, struct facts *f)
{
    for (size_t i = 0; i < json_array_size(resends) && i < RESENDS_MAX; i++) {
        const json_t *a = json_array_get(resends, i);
        f->resends[f->resend_count++] = (struct resend){
            .side = element(a, 0) == SERVER ? SERVER : CLIENT,
            .at_ns = time_at(a, 1, scale.start_ns, scale.unit),
            .wait_ns = at_least(0, duration_of(json_array_get(a, 2), scale.unit)),
        };
    }
}

static enum status read_text(struct facts *f, const json_t *value, char **field)
{
    const char *text = json_string_value(value);
    bool ok = text == NULL || facts_set_text(f, field, text, strlen(text));
    return ok ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status read_facts(const json_t *root, struct facts *f)
{
    if (!read_endpoint(json_object_get(root, "client"), &f->client) ||
        !read_endpoint(json_object_get(root, "server"), &f->server))
        return STATUS_REFUSED;
    f->ip_version = address_is_ipv4(&f->client.address) ? 4 : 6;
    struct scale scale = {
        .start_ns = at_least(0, json_integer_value(json_object_get(root, "start"))),
        .unit = json_integer_value(json_object_get(root, "unit")) == FACTS_LONG_UNIT_NS
                    ? FACTS_LONG_UNIT_NS
                    : 1,
        .first_packet_no = (uint64_t)json_integer_value(json_object_get(root, "packet")),
    };
    read_scalars(json_object_get(root, "facts"), scale, f);
    enum status status = STATUS_OK;
#define READ_TEXT(name)                                                                            \
    if (status == STATUS_OK)                                                                       \
        status = read_text(f, json_object_get(root, #name), &f->name);
    FACTS_TEXT_JUDGED(READ_TEXT)
#undef READ_TEXT
    read_resends(json_object_get(root, "resends"), scale, f);
    if (status == STATUS_OK)
        status = read_records(json_object_get(root, "records"), scale, f);
    return status == STATUS_OK && !facts_are_sound(f) ? STATUS_REFUSED : status;
}

enum status facts_from_json(struct bytes json, struct facts *ret_facts)
{
    json_t *root;
    struct facts f = { 0 };
    enum status status = json_load_text(json, &root);
    if (status == STATUS_OK)
        status = read_facts(root, &f);
    json_decref(root);
    if (status == STATUS_OK)
        *ret_facts = f;
    else
        facts_done(&f);
    return status;
}
