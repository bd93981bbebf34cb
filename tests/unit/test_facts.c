/* SPDX-License-Identifier: Apache-2.0 */
#include "facts.h"

#include "decimal.h"
#include "varint.h"

#include <criterion/criterion.h>
#include <stdio.h>

#define START_NS INT64_C(1780408991204518000)

static uint64_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33 | (*state * UINT64_C(0x9E3779B97F4A7C15)) << 31;
}

/* Unknown, the start itself, around it, or anywhere in the range of times. */
static int64_t draw_time(uint64_t *state)
{
    switch (draw(state) % 5) {
    case 0:
        return 0;
    case 1:
        return START_NS;
    case 2:
        return 1 + (int64_t)(draw(state) >> 1) % (INT64_MAX - 1);
    default:
        return START_NS - 1000 + (int64_t)(draw(state) % 4000000000);
    }
}

static uint64_t draw_number(uint64_t *state)
{
    uint64_t number = draw(state);
    return number % 3 == 0 ? 0 : number >> number % 64;
}

static void draw_text(struct facts *f, char **field, uint64_t *state)
{
    char text[300];
    size_t len = (size_t)(draw(state) % 8 == 0 ? draw(state) % 300 : draw(state) % 20);
    if (draw(state) % 3 == 0)
        return;
    for (size_t i = 0; i < len; i++)
        text[i] = (char)(0x20 + draw(state) % 0x5f); /* printable, with quotes and backslashes */
    cr_assert(facts_set_text(f, field, text, len));
}

static void draw_record(struct record *r, uint64_t *state)
{
    *r = (struct record){
        .at_ns = START_NS + (int64_t)(draw(state) % 1000000),
        .packet_no = draw_number(state) >> 1,
        .offset = (int32_t)(draw(state) % ((uint64_t)OFFSET_MAX + 1)),
        .ack = (int32_t)(draw(state) % ((uint64_t)OFFSET_MAX + 1)) - (draw(state) % 2 == 0),
        .len = (uint32_t)draw_number(state),
        .content = (uint16_t)draw(state),
        .side = draw(state) & 1,
        .type = (uint8_t)(draw(state) % 25),
        .flags = (uint8_t)draw(state),
        .first_message = (uint8_t)draw(state),
    };
    r->last_at_ns = r->at_ns + (int64_t)(draw(state) % 5000);
    r->acked_at_ns = draw(state) % 2 ? 0 : r->at_ns - 5 + (int64_t)(draw(state) % 10);
    r->all_acked_at_ns = draw(state) % 2 ? 0 : r->at_ns + (int64_t)(draw(state) % 10);
    r->last_packet_no = r->packet_no + draw(state) % 10;
    if (draw(state) % 4 == 0) {
        r->skipped = (uint16_t)(1 + (uint16_t)draw_number(state) / 2);
        r->skipped_len = (uint32_t)draw_number(state);
    }
}

static struct facts draw_facts(uint64_t *state)
{
    struct facts f = { 0 };
    struct endpoint *ends[] = { &f.client, &f.server };
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned k = 0; k < 16; k++)
            ends[i]->address.octet[k] = (uint8_t)draw(state);
        ends[i]->port = (uint16_t)draw(state);
    }
    f.ip_version = draw(state) % 2 == 0 ? 4 : 6;
#define IS_TIME(type) _Generic((type)0, int64_t : true, default : false)
#define DRAW(type, name) f.name = IS_TIME(type) ? (type)draw_time(state) : (type)draw_number(state);
#define DRAW_2(type, name) DRAW(type, name[CLIENT]) DRAW(type, name[SERVER])
    FACTS_SCALAR(DRAW, DRAW_2)
#undef DRAW
#undef DRAW_2
    f.start_ns = START_NS;
    f.client_basis %= CLIENT_BY_ORDER + 1;
    f.ended %= ENDED_EVICTED + 1;
    f.preamble %= PREAMBLE_OTHER + 1;
    f.keys %= KEYS_FAILED + 1;
    f.hello_side %= 2;
    uint8_t *const yes_or_no[] = {
        &f.continues, &f.syn_seen,   &f.clock_step, &f.fast_open, &f.client_hello_complete,
        &f.ech,       &f.hello_retry
    };
    for (size_t i = 0; i < sizeof yes_or_no / sizeof *yes_or_no; i++)
        *yes_or_no[i] &= 1;
#define DRAW_TEXT(name) draw_text(&f, &f.name, state);
    FACTS_TEXT(DRAW_TEXT)
#undef DRAW_TEXT
    for (uint64_t n = draw(state) % (RECORDS_MAX + 1); n > 0; n--)
        draw_record(facts_add_record(&f), state);
    f.resend_count = (uint8_t)(draw(state) % (RESENDS_MAX + 1));
    for (unsigned i = 0; i < f.resend_count; i++)
        f.resends[i] = (struct resend){ .at_ns = START_NS + (int64_t)(draw(state) % 1000),
                                        .wait_ns = (int64_t)(draw(state) % 1000),
                                        .side = draw(state) & 1 };
    return f;
}

static void assert_same_text(const char *a, const char *b, const char *name)
{
    cr_assert((a == NULL) == (b == NULL), "%s", name);
    if (a != NULL)
        cr_assert_str_eq(a, b, "%s", name);
}

static void assert_same_record(const struct record *a, const struct record *b)
{
    cr_assert_eq(a->at_ns, b->at_ns);
    cr_assert_eq(a->last_at_ns, b->last_at_ns);
    cr_assert_eq(a->acked_at_ns, b->acked_at_ns);
    cr_assert_eq(a->all_acked_at_ns, b->all_acked_at_ns);
    cr_assert_eq(a->packet_no, b->packet_no);
    cr_assert_eq(a->last_packet_no, b->last_packet_no);
    cr_assert_eq(a->offset, b->offset);
    cr_assert_eq(a->ack, b->ack);
    cr_assert_eq(a->len, b->len);
    cr_assert_eq(a->skipped, b->skipped);
    cr_assert_eq(a->skipped_len, b->skipped_len);
    cr_assert_eq(a->side, b->side);
    cr_assert_eq(a->type, b->type);
    cr_assert_eq(a->flags, b->flags);
    cr_assert_eq(a->first_message, b->first_message);
    cr_assert_eq(a->content, b->content);
}

static void assert_same(const struct facts *a, const struct facts *b)
{
    cr_assert(endpoint_equal(&a->client, &b->client) && endpoint_equal(&a->server, &b->server));
    cr_assert_eq(a->ip_version, b->ip_version);
#define SAME(type, name) cr_assert_eq(a->name, b->name, #name);
#define SAME_2(type, name) SAME(type, name[CLIENT]) SAME(type, name[SERVER])
    FACTS_SCALAR(SAME, SAME_2)
#undef SAME
#undef SAME_2
#define SAME_TEXT(name) assert_same_text(a->name, b->name, #name);
    FACTS_TEXT(SAME_TEXT)
#undef SAME_TEXT
    cr_assert_eq(a->record_count, b->record_count);
    for (unsigned i = 0; i < a->record_count; i++)
        assert_same_record(&a->records[i], &b->records[i]);
    cr_assert_eq(a->resend_count, b->resend_count);
    for (unsigned i = 0; i < a->resend_count; i++) {
        cr_assert_eq(a->resends[i].at_ns, b->resends[i].at_ns);
        cr_assert_eq(a->resends[i].wait_ns, b->resends[i].wait_ns);
        cr_assert_eq(a->resends[i].side, b->resends[i].side);
    }
}

static struct bytes bytes_of(const struct buffer *b)
{
    return (struct bytes){ b->at, b->len };
}

Test(facts, packing_and_unpacking_give_the_same)
{
    uint64_t state = 1;
    struct buffer packed = { 0 };
    for (unsigned i = 0; i < 2000; i++) {
        struct facts f = draw_facts(&state), unpacked, copy = { 0 };
        struct record records[RECORDS_MAX];
        packed.len = 0;
        cr_assert_eq(facts_pack(&f, &packed), STATUS_OK);
        cr_assert(facts_unpack(bytes_of(&packed), records, &unpacked));
        assert_same(&f, &unpacked);
        cr_assert(facts_copy(&unpacked, &copy));
        packed.len = 0;
        assert_same(&f, &copy);
        facts_done(&copy);
        facts_done(&f);
    }
    buffer_done(&packed);
}

/* Numbers around each power of two, each behind another, as far as they are there. */
Test(facts, numbers_of_every_length_come_back_and_none_is_read_beyond_the_end)
{
    uint8_t written[3 * VARINT_MAX];
    for (unsigned bits = 0; bits <= 64; bits++)
        for (int around = -1; around <= 1; around++) {
            uint64_t value = (bits < 64 ? UINT64_C(1) << bits : 0) + (uint64_t)(int64_t)around;
            uint8_t *middle = write_varint(written, value);
            size_t len = (size_t)(write_varint(middle, zigzag((int64_t)value)) - written);
            for (size_t there = 0; there <= len; there++) {
                uint8_t *exact = malloc(there + 1); /* so that a sanitizer sees a read behind it */
                memcpy(exact + 1, written, there);
                struct reader r = reader_of((struct bytes){ exact + 1, there });
                bool has_first = there >= (size_t)(middle - written);
                cr_assert_eq(get_varint(&r), has_first ? value : 0);
                cr_assert_eq(get_signed(&r), there == len ? (int64_t)value : 0);
                cr_assert_eq(r.short_read, there < len);
                free(exact);
            }
        }
}

static void assert_decimal(int64_t value)
{
    char expected[DECIMAL_MAX + 1];
    struct buffer b = { 0 };
    int len = snprintf(expected, sizeof expected, "%lld", (long long)value);
    cr_assert(buffer_reserve(&b, DECIMAL_MAX));
    put_decimal(&b, value);
    cr_assert_eq(b.len, (size_t)len, "%s", expected);
    cr_assert_eq(memcmp(b.at, expected, b.len), 0, "%s", expected);
    buffer_done(&b);
}

Test(facts, numbers_as_decimals_around_each_power_of_ten_and_two)
{
    uint64_t ten = 1;
    for (unsigned digits = 1; digits <= 19; digits++, ten *= 10)
        for (int around = -1; around <= 1; around++)
            assert_decimal((int64_t)ten + around), assert_decimal(-(int64_t)ten + around);
    for (unsigned bits = 0; bits < 64; bits++)
        assert_decimal((int64_t)(UINT64_C(1) << bits));
}

/* Takes out of facts what their JSON leaves to the row. */
static void leave_to_row(struct facts *f)
{
#define FORGET(name) f->name = NULL;
    FACTS_TEXT_SHOWN(FORGET)
#undef FORGET
    f->ip_version = address_is_ipv4(&f->client.address) ? 4 : 6;
}

/* Makes all times whole microseconds. */
static void round_times(struct facts *f)
{
#define ROUND(type, name)                                                                          \
    if (FACTS_IS_TIME(type))                                                                       \
        f->name = (type)((int64_t)f->name / 1000 * 1000);
#define ROUND_2(type, name) ROUND(type, name[CLIENT]) ROUND(type, name[SERVER])
    FACTS_SCALAR(ROUND, ROUND_2)
#undef ROUND
#undef ROUND_2
    for (unsigned i = 0; i < f->record_count; i++) {
        struct record *r = &f->records[i];
        int64_t *times[] = { &r->at_ns, &r->last_at_ns, &r->acked_at_ns, &r->all_acked_at_ns };
        for (unsigned k = 0; k < sizeof times / sizeof *times; k++)
            *times[k] = *times[k] / 1000 * 1000;
    }
    for (unsigned i = 0; i < f->resend_count; i++) {
        f->resends[i].at_ns = f->resends[i].at_ns / 1000 * 1000;
        f->resends[i].wait_ns *= 1000;
    }
}

Test(facts, json_there_and_back_gives_the_same_but_for_what_the_row_has)
{
    uint64_t state = 2;
    struct buffer json = { 0 };
    for (unsigned i = 0; i < 500; i++) {
        struct facts f = draw_facts(&state), read;
        if (i % 2 == 0)
            round_times(&f);
        leave_to_row(&f);
        json.len = 0;
        cr_assert_eq(facts_to_json(&f, &json), STATUS_OK);
        cr_assert(facts_from_json(bytes_of(&json), &read) == STATUS_OK, "%.*s", (int)json.len,
                  (const char *)json.at);
        f.file = 0; /* of a run, not of the flow */
        assert_same(&f, &read);
        struct bytes unit = { (const uint8_t *)"\"unit\":1000,", 12 };
        cr_assert_eq(memmem(json.at, json.len, unit.at, unit.len) != NULL, i % 2 == 0);
        facts_done(&read);
        facts_done(&f);
    }
    buffer_done(&json);
}

Test(facts, nothing_seen_survives_both_forms)
{
    struct facts nothing = { 0 }, back;
    struct record records[RECORDS_MAX];
    struct buffer b = { 0 };
    cr_assert_eq(facts_pack(&nothing, &b), STATUS_OK);
    cr_assert(facts_unpack(bytes_of(&b), records, &back));
    assert_same(&nothing, &back);
    b.len = 0;
    cr_assert_eq(facts_to_json(&nothing, &b), STATUS_OK);
    cr_assert_eq(facts_from_json(bytes_of(&b), &back), STATUS_OK);
    leave_to_row(&nothing);
    assert_same(&nothing, &back);
    facts_done(&back);
    buffer_done(&b);
}

Test(facts, packed_bytes_that_were_cut_are_refused)
{
    uint64_t state = 3;
    struct buffer packed = { 0 };
    struct facts f = draw_facts(&state), back;
    struct record records[RECORDS_MAX];
    cr_assert_eq(facts_pack(&f, &packed), STATUS_OK);
    for (size_t len = 0; len < packed.len; len++) {
        uint8_t *exact = malloc(len + 1);
        cr_assert_not_null(exact);
        memcpy(exact, packed.at, len);
        cr_assert_not(facts_unpack((struct bytes){ exact, len }, records, &back), "%zu of %zu", len,
                      packed.len);
        free(exact);
    }
    facts_done(&f);
    buffer_done(&packed);
}

Test(facts, packing_appends)
{
    uint64_t state = 4;
    struct buffer b = { 0 };
    struct facts f = draw_facts(&state), back;
    struct record records[RECORDS_MAX];
    cr_assert(buffer_add(&b, (struct bytes){ (const uint8_t *)"before", 6 }));
    cr_assert_eq(facts_pack(&f, &b), STATUS_OK);
    cr_assert_eq(memcmp(b.at, "before", 6), 0);
    cr_assert(facts_unpack(bytes_after(bytes_of(&b), 6), records, &back));
    assert_same(&f, &back);
    facts_done(&f);
    buffer_done(&b);
}

/* A database may come from anywhere: its JSON must not lead outside of the program's tables. */
Test(facts, json_of_others_is_refused_or_gives_facts_in_their_limits)
{
    static const char *const TEXTS[] = {
        "",
        "{",
        "[]",
        "null",
        "{\"client\":[\"x\",1],\"server\":[\"::\",1]}",
        "{\"start\":9223372036854775807,\"client\":[\"::\",1],\"server\":[\"::\",2],"
        "\"unit\":1000,\"packet\":9223372036854775807,"
        "\"facts\":[\"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff\","
        "1,2,9223372036854775807,-9223372036854775808],"
        "\"records\":[[0,23,1,9223372036854775807,9223372036854775807,4294967296,-99999999999,255,"
        "9223372036854775807,-9223372036854775808,9223372036854775807,-1,300,255,1,2]],"
        "\"resends\":[[7,9223372036854775807,-9223372036854775808]]}",
        "{\"client\":[\"::\",1],\"server\":[\"::\",2],\"unit\":-5,"
        "\"facts\":[\"0f\\u0001zzZ~\",200,99,255,9,77,5],"
        "\"records\":[[5,77,1],[],3,null,{}],\"resends\":{\"a\":1}}",
        "{\"client\":[\"::\",1],\"server\":[\"::\",2],\"records\":[[0,23,1,0,0,-5,-7]]}",
        "{\"client\":[\"::\",1],\"server\":[\"::\",2],\"facts\":{\"a\":1},\"resends\":[1]}",
        "{\"client\":[\"::\",1],\"server\":[\"::\",2],\"facts\":[7,1],\"server_name\":[]}",
    };
    for (unsigned i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        struct facts f;
        struct bytes json = { (const uint8_t *)TEXTS[i], strlen(TEXTS[i]) };
        if (facts_from_json(json, &f) != STATUS_OK)
            continue;
        cr_assert_leq(f.client_basis, CLIENT_BY_ORDER);
        cr_assert_leq(f.ended, ENDED_EVICTED);
        cr_assert_leq(f.preamble, PREAMBLE_OTHER);
        cr_assert_leq(f.hello_side, SERVER);
        cr_assert_leq(f.record_count, RECORDS_MAX);
        for (unsigned k = 0; k < f.record_count; k++) {
            cr_assert_leq(f.records[k].side, SERVER);
            cr_assert_geq(f.records[k].offset, 0);
            cr_assert_geq(f.records[k].ack, ACK_UNKNOWN);
        }
        for (unsigned k = 0; k < f.resend_count; k++) {
            cr_assert_leq(f.resends[k].side, SERVER);
            cr_assert_geq(f.resends[k].wait_ns, 0);
        }
        facts_done(&f);
    }
}

Test(facts, json_with_more_records_than_are_kept_is_cut)
{
    struct buffer json = { 0 };
    static const char HEAD[] = "{\"client\":[\"::\",1],\"server\":[\"::\",2],\"records\":[[]";
    struct facts f;
    cr_assert(buffer_add(&json, (struct bytes){ (const uint8_t *)HEAD, sizeof HEAD - 1 }));
    for (unsigned i = 0; i < 5000; i++)
        cr_assert(buffer_add(&json, (struct bytes){ (const uint8_t *)",[]", 3 }));
    cr_assert(buffer_add(&json, (struct bytes){ (const uint8_t *)"]}", 2 }));
    cr_assert_eq(facts_from_json(bytes_of(&json), &f), STATUS_OK);
    cr_assert_eq(f.record_count, RECORDS_MAX);
    facts_done(&f);
    buffer_done(&json);
}

/* Databases know scalars by their number. When this fails, a fact was put elsewhere than at the end
 * of FACTS_SCALAR, or one was taken out: what is stored would be read as something else. */
Test(facts, scalars_keep_their_numbers)
{
    enum { KNOWN = 127 };
    static const char *const NAMES[] = {
#define NAME(type, name) #type #name,
#define NAME_2(type, name) #type #name, #type #name,
        FACTS_SCALAR(NAME, NAME_2)
#undef NAME
#undef NAME_2
    };
    uint64_t hash = 0;
    cr_assert_geq(FACTS_SCALAR_COUNT, KNOWN);
    for (unsigned i = 0; i < KNOWN; i++)
        for (const char *c = NAMES[i]; *c != '\0'; c++)
            hash = (hash ^ (uint8_t)*c) * UINT64_C(1099511628211);
    cr_assert_eq(hash, UINT64_C(0x6462714f5912ea13), "%d facts, hash %#llx", FACTS_SCALAR_COUNT,
                 (unsigned long long)hash);
}

Test(facts, swapping_sides_twice_changes_nothing)
{
    uint64_t state = 5;
    for (unsigned i = 0; i < 100; i++) {
        uint64_t same = state;
        struct facts f = draw_facts(&state), g = draw_facts(&same);
        facts_swap_sides(&f);
        cr_assert(endpoint_equal(&f.client, &g.server));
        cr_assert_eq(f.bytes[CLIENT], g.bytes[SERVER]);
        cr_assert_eq(f.isn[SERVER], g.isn[CLIENT]);
        for (unsigned k = 0; k < f.record_count; k++)
            cr_assert_neq(f.records[k].side, g.records[k].side);
        facts_swap_sides(&f);
        assert_same(&f, &g);
        facts_done(&f);
        facts_done(&g);
    }
}

Test(facts, finishing_orders_records_by_time_packet_and_offset)
{
    uint64_t state = 6;
    struct facts f = { 0 };
    for (unsigned i = 0; i < RECORDS_MAX; i++) {
        struct record *r = facts_add_record(&f);
        r->at_ns = 1 + (int64_t)(draw(&state) % 4);
        r->packet_no = draw(&state) % 4;
        r->offset = (int32_t)(draw(&state) % 4);
    }
    facts_finish(&f);
    for (unsigned i = 1; i < f.record_count; i++) {
        const struct record *a = &f.records[i - 1], *b = &f.records[i];
        cr_assert(a->at_ns < b->at_ns || (a->at_ns == b->at_ns && (a->packet_no < b->packet_no ||
                                                                   (a->packet_no == b->packet_no &&
                                                                    a->offset <= b->offset))));
    }
    facts_done(&f);
}

Test(facts, clearing_keeps_memory_and_nothing_else)
{
    uint64_t state = 8;
    struct facts f = draw_facts(&state), nothing = { 0 };
    facts_clear(&f);
    assert_same(&f, &nothing);
    cr_assert_not_null(facts_add_record(&f));
    facts_done(&f);
    facts_done(&f);
}

Test(facts, a_text_that_is_set_again_and_again_takes_no_more_memory)
{
    struct facts f = { 0 };
    const char *first = NULL;
    char longest[600] = { 0 };
    memset(longest, 'x', sizeof longest - 1);
    for (unsigned round = 0; round < 1000; round++)
        for (size_t len = 0; len < sizeof longest; len += 37) {
            cr_assert(facts_set_text(&f, &f.ja4, "other", 5));
            cr_assert(facts_set_text(&f, &f.alpn, longest, len));
            cr_assert_eq(strlen(f.alpn), len);
            cr_assert_str_eq(f.ja4, "other");
            if (round == 1 && len == 0)
                first = f.alpn;
            cr_assert(round < 1 || f.alpn == first);
        }
    facts_clear(&f);
    cr_assert_null(f.alpn);
    cr_assert(facts_set_text(&f, &f.alpn, "h2", 2));
    cr_assert_str_eq(f.alpn, "h2");
    facts_done(&f);
}
