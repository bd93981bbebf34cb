/* SPDX-License-Identifier: Apache-2.0 */
#include "message.h"

#include "hello.h"

#include <criterion/criterion.h>

enum { BODY_MAX = 256, MESSAGES_MAX = 16, KEPT_MAX = 160 };

struct body_bytes {
    uint8_t at[BODY_MAX];
    uint32_t len;
};

static void add_message(struct body_bytes *b, uint8_t type, uint32_t announced, uint32_t len)
{
    uint8_t header[] = { type, (uint8_t)(announced >> 16), (uint8_t)(announced >> 8),
                         (uint8_t)announced };
    cr_assert(b->len + sizeof header + len <= sizeof b->at);
    memcpy(b->at + b->len, header, sizeof header);
    for (uint32_t i = 0; i < len; i++)
        b->at[b->len + sizeof header + i] = (uint8_t)(type * 16 + i);
    b->len += (uint32_t)sizeof header + len;
}

/* A ClientHello and what a TLS 1.2 client sends behind it; more than one in a record. */
static struct body_bytes three_messages(void)
{
    struct body_bytes b = { .len = 0 };
    add_message(&b, HANDSHAKE_CLIENT_HELLO, 17, 17);
    add_message(&b, HANDSHAKE_SERVER_HELLO_DONE, 0, 0);
    add_message(&b, HANDSHAKE_CERTIFICATE, 90, 90); /* longer than is kept of it */
    return b;
}

/* A message with its own copy of the body. */
struct told {
    struct message m;
    uint8_t body[KEPT_MAX];
};

struct log {
    struct told told[MESSAGES_MAX];
    unsigned count;
};

static void note(struct log *log, const struct message *m)
{
    cr_assert_lt(log->count, MESSAGES_MAX);
    cr_assert_leq(m->body.len, KEPT_MAX);
    struct told *t = &log->told[log->count++];
    t->m = *m;
    if (m->body.len > 0)
        memcpy(t->body, m->body.at, m->body.len);
}

static void read_body(struct message_reader *m, struct run body, struct log *log)
{
    struct message message;
    enum status status;
    while (message_next(m, &body, &message, &status))
        note(log, &message);
    cr_assert_eq(status, STATUS_OK);
    cr_assert_eq(body.len, 0);
}

/* Bytes [from, to) that came in a segment of their own; of the last `cut` only the number is known.
 */
static struct run part_of(const struct body_bytes *b, uint32_t from, uint32_t to, uint32_t cut)
{
    return (struct run){
        .offset = 5 + from,
        .len = to - from,
        .data = { b->at + from, to - from - cut },
        .at_ns = 1000 + from,
    };
}

static void assert_same(const struct told *a, const struct told *b)
{
    cr_assert_eq(a->m.type, b->m.type);
    cr_assert_eq(a->m.len, b->m.len);
    cr_assert_eq(a->m.offset, b->m.offset);
    cr_assert_eq(a->m.end_offset, b->m.end_offset);
    cr_assert_eq(a->m.begins_record, b->m.begins_record);
    cr_assert_eq(a->m.body.len, b->m.body.len, "type %d: %zu and %zu bytes", a->m.type,
                 a->m.body.len, b->m.body.len);
    cr_assert_eq(memcmp(a->body, b->body, a->m.body.len), 0);
}

static struct log whole_log(const struct body_bytes *b)
{
    struct message_reader m = { 0 };
    struct log log = { .count = 0 };
    message_record_begins(&m);
    read_body(&m, part_of(b, 0, b->len, 0), &log);
    message_done(&m);
    return log;
}

Test(message, several_messages_in_one_record)
{
    struct body_bytes b = three_messages();
    struct log log = whole_log(&b);
    cr_assert_eq(log.count, 3);
    cr_assert_eq(log.told[0].m.type, HANDSHAKE_CLIENT_HELLO);
    cr_assert_eq(log.told[0].m.body.len, 17);
    cr_assert_eq(log.told[0].body[16], HANDSHAKE_CLIENT_HELLO * 16 + 16);
    cr_assert_eq(log.told[0].m.offset, 5);
    cr_assert_eq(log.told[0].m.end_offset, 5 + 21);
    cr_assert(log.told[0].m.begins_record);
    cr_assert_eq(log.told[1].m.type, HANDSHAKE_SERVER_HELLO_DONE);
    cr_assert_eq(log.told[1].m.len, 0);
    cr_assert_not(log.told[1].m.begins_record);
    cr_assert_eq(log.told[2].m.len, 90);
    cr_assert_eq(log.told[2].m.body.len, MESSAGE_OTHER_BYTES_MAX);
    cr_assert_eq(log.told[2].m.end_offset, 5 + b.len);
}

Test(message, any_two_cuts_give_the_same_messages)
{
    struct body_bytes b = three_messages();
    struct log whole = whole_log(&b);
    for (uint32_t first = 0; first <= b.len; first++)
        for (uint32_t second = first; second <= b.len; second++) {
            struct message_reader m = { 0 };
            struct log log = { .count = 0 };
            message_record_begins(&m);
            read_body(&m, part_of(&b, 0, first, 0), &log);
            read_body(&m, part_of(&b, first, second, 0), &log);
            read_body(&m, part_of(&b, second, b.len, 0), &log);
            cr_assert_eq(log.count, whole.count, "cut at %u and %u", first, second);
            for (unsigned i = 0; i < log.count; i++)
                assert_same(&whole.told[i], &log.told[i]);
            message_done(&m);
        }
}

Test(message, times_are_those_of_the_first_and_last_byte)
{
    struct body_bytes b = { .len = 0 };
    add_message(&b, HANDSHAKE_CLIENT_HELLO, 30, 30);
    for (uint32_t cut = 1; cut < b.len; cut++) {
        struct message_reader m = { 0 };
        struct log log = { .count = 0 };
        read_body(&m, part_of(&b, 0, cut, 0), &log);
        read_body(&m, part_of(&b, cut, b.len, 0), &log);
        cr_assert_eq(log.told[0].m.at_ns, 1000);
        cr_assert_eq(log.told[0].m.last_at_ns, 1000 + cut);
        message_done(&m);
    }
}

Test(message, a_message_over_several_records_begins_in_the_first)
{
    struct body_bytes b = { .len = 0 };
    add_message(&b, HANDSHAKE_CLIENT_HELLO, 30, 30);
    for (uint32_t cut = 1; cut < b.len; cut++) {
        struct message_reader m = { 0 };
        struct log log = { .count = 0 };
        message_record_begins(&m);
        read_body(&m, part_of(&b, 0, cut, 0), &log);
        message_record_begins(&m);
        struct run behind = part_of(&b, cut, b.len, 0);
        behind.offset += 5; /* the header of the second record */
        read_body(&m, behind, &log);
        cr_assert_eq(log.count, 1);
        cr_assert(log.told[0].m.begins_record);
        cr_assert_eq(log.told[0].m.offset, 5);
        cr_assert_eq(log.told[0].m.end_offset, 5 + b.len + 5);
        cr_assert_eq(log.told[0].m.body.len, 30);
        message_done(&m);
    }
}

Test(message, what_follows_the_rest_of_a_message_does_not_begin_the_record)
{
    struct body_bytes b = three_messages();
    for (uint32_t cut = 1; cut < 21; cut++) {
        struct message_reader m = { 0 };
        struct log log = { .count = 0 };
        message_record_begins(&m);
        read_body(&m, part_of(&b, 0, cut, 0), &log);
        message_record_begins(&m);
        read_body(&m, part_of(&b, cut, b.len, 0), &log);
        cr_assert_eq(log.count, 3);
        cr_assert(log.told[0].m.begins_record);
        cr_assert_not(log.told[1].m.begins_record, "cut at %u", cut);
        message_done(&m);
    }
}

Test(message, behind_a_cut_or_hole_the_prefix_of_the_body_is_kept)
{
    struct body_bytes b = { .len = 0 };
    add_message(&b, HANDSHAKE_CLIENT_HELLO, 30, 30);
    add_message(&b, HANDSHAKE_SERVER_HELLO_DONE, 0, 0);
    for (uint32_t from = 4; from < 34; from++)
        for (uint32_t to = from + 1; to <= 34; to++) {
            struct message_reader m = { 0 };
            struct log log = { .count = 0 };
            struct run hole = part_of(&b, from, to, to - from);
            hole.is_hole = true;
            read_body(&m, part_of(&b, 0, from, 0), &log);
            read_body(&m, hole, &log);
            read_body(&m, part_of(&b, to, b.len, 0), &log);
            cr_assert_eq(log.count, 2);
            cr_assert_eq(log.told[0].m.len, 30);
            cr_assert_eq(log.told[0].m.body.len, from - 4, "hole from %u to %u", from, to);
            cr_assert_eq(log.told[1].m.type, HANDSHAKE_SERVER_HELLO_DONE);
            message_done(&m);
        }
}

Test(message, a_header_that_is_missing_loses_the_messages_of_its_record)
{
    struct body_bytes b = three_messages();
    for (uint32_t cut = 21; cut < 25; cut++) { /* in the header of the second */
        struct message_reader m = { 0 };
        struct log log = { .count = 0 };
        read_body(&m, part_of(&b, 0, 25, 25 - cut), &log);
        read_body(&m, part_of(&b, 25, b.len, 0), &log); /* in the middle of something */
        cr_assert_eq(log.count, 1);
        message_record_begins(&m);
        read_body(&m, part_of(&b, 0, 21, 0), &log);
        cr_assert_eq(log.count, 2, "the next record is read from its begin");
        cr_assert_eq(log.told[1].m.type, HANDSHAKE_CLIENT_HELLO);
        message_done(&m);
    }
}

Test(message, an_announced_length_allocates_nothing)
{
    static uint8_t bytes[16384];
    struct message_reader m = { 0 };
    struct message message;
    enum status status;
    bytes[0] = HANDSHAKE_CLIENT_HELLO;
    bytes[1] = bytes[2] = bytes[3] = 0xff; /* 16 MB */
    struct run run = { .len = 5, .data = { bytes, 5 } };
    cr_assert_not(message_next(&m, &run, &message, &status));
    cr_assert_leq(m.kept_capacity, 4096);
    uint32_t sent = 1;
    while (sent < 0xffffff) {
        uint32_t n = 0xffffff - sent < sizeof bytes ? 0xffffff - sent : (uint32_t)sizeof bytes;
        run = (struct run){ .offset = 4 + (int64_t)sent, .len = n, .data = { bytes, n } };
        bool done = message_next(&m, &run, &message, &status);
        sent += n;
        cr_assert_eq(status, STATUS_OK);
        cr_assert_leq(m.kept_capacity, MESSAGE_HELLO_BYTES_MAX + 4096);
        cr_assert_eq(done, sent == 0xffffff);
    }
    cr_assert_eq(message.body.len, MESSAGE_HELLO_BYTES_MAX);
    cr_assert_eq(message.len, 0xffffff);
    message_done(&m);
}

Test(message, the_end_of_the_stream_gives_what_there_was_of_a_message)
{
    struct body_bytes b = { .len = 0 };
    add_message(&b, HANDSHAKE_CLIENT_HELLO, 30, 30);
    for (uint32_t len = 0; len < b.len; len++) {
        struct message_reader m = { 0 };
        struct log log = { .count = 0 };
        struct message message;
        message_record_begins(&m);
        read_body(&m, part_of(&b, 0, len, 0), &log);
        cr_assert_eq(log.count, 0);
        cr_assert_eq(message_cut_off(&m, &message), len >= 4, "after %u bytes", len);
        if (len >= 4) {
            cr_assert_eq(message.body.len, len - 4);
            cr_assert_eq(message.len, 30);
            cr_assert(message.begins_record);
            cr_assert_eq(message.end_offset, 5 + 34);
            cr_assert_not(message_cut_off(&m, &message), "it is told once");
        }
        message_done(&m);
    }
}

Test(message, reset_forgets_the_message_begun)
{
    struct body_bytes b = { .len = 0 };
    add_message(&b, HANDSHAKE_CLIENT_HELLO, 30, 30);
    for (uint32_t len = 0; len < b.len; len++) {
        struct message_reader m = { 0 };
        struct log log = { .count = 0 };
        read_body(&m, part_of(&b, 0, len, 0), &log);
        message_reset(&m);
        read_body(&m, part_of(&b, 0, b.len, 0), &log);
        cr_assert_eq(log.count, 1);
        cr_assert_eq(log.told[0].m.body.len, 30);
        cr_assert_eq(log.told[0].m.offset, 5);
        message_done(&m);
    }
}
