/* SPDX-License-Identifier: Apache-2.0 */
#include "profile_json.h"

#include "flow_script.h"

static const char *const LINES[] = {
    "C hello S hello ccs 589f C ccs 53f C 75? S 206t S 161! 19",
    "C hello S hello ccs 589f C ccs 53f S 206 +99 C 75 S 300",
    "C hello S hello ccs 83f C ccs 53f C 75? S 206t S 161! 19",
    "C hello S hello ccs 23 53 C ccs 53 C 75 S 383",
};
enum { LINE_COUNT = sizeof LINES / sizeof LINES[0], FLOWS = 40 };

static struct profiles *opened(void)
{
    struct profiles *p = profiles_open();
    cr_assert_not_null(p);
    return p;
}

/* The flow of a number: other lines, tickets and times, of few servers with few names. */
static void learn_number(struct profiles *p, int number)
{
    static char names[][8] = { "a.test", "b.test" };
    struct script s;
    script_read(&s, LINES[number % LINE_COUNT]);
    s.facts.cipher_suite = 0x1301;
    if (number % 3 != 0)
        script_resume(&s, (uint16_t)(100 + number % 11));
    s.facts.start_ns += number * INT64_C(600000000000);
    s.facts.server.port = (uint16_t)(443 + number % 2);
    s.facts.server_name = number % 5 == 0 ? NULL : names[number / 2 % 2];
    cr_assert_eq(profiles_learn(p, &s.facts), STATUS_OK);
}

static void merge_all(struct profiles *into, struct profiles *from)
{
    profiles_settle(from);
    for (size_t i = 0; i < profiles_count(from); i++)
        cr_assert_eq(profiles_merge(into, profiles_at(from, i), profiles_level(from)), STATUS_OK);
}

static void assert_same(struct profiles *a, struct profiles *b)
{
    profiles_settle(a);
    profiles_settle(b);
    cr_assert_eq(profiles_count(a), profiles_count(b));
    for (size_t i = 0; i < profiles_count(a); i++) {
        const struct profile *x = profiles_at(a, i), *y = profiles_at(b, i);
        struct buffer json[2] = { { 0 }, { 0 } };
        cr_assert_eq(profile_to_json(x, 0, &json[0]), STATUS_OK);
        cr_assert_eq(profile_to_json(y, 0, &json[1]), STATUS_OK);
        cr_assert_eq(json[0].len, json[1].len);
        cr_assert_eq(memcmp(json[0].at, json[1].at, json[0].len), 0);
        cr_assert_eq(x->flows, y->flows);
        cr_assert_eq(x->first_ns, y->first_ns);
        cr_assert_eq(x->last_ns, y->last_ns);
        buffer_done(&json[0]);
        buffer_done(&json[1]);
    }
}

Test(profile_json, parts_merged_in_any_order_are_the_whole)
{
    struct profiles *whole = opened();
    for (int i = 0; i < FLOWS; i++)
        learn_number(whole, i);
    for (int cut = 0; cut <= FLOWS; cut += 7) {
        struct profiles *parts[2] = { opened(), opened() }, *ways[2] = { opened(), opened() };
        for (int i = 0; i < FLOWS; i++)
            learn_number(parts[i >= cut], i);
        for (int way = 0; way < 2; way++) {
            merge_all(ways[way], parts[way]);
            merge_all(ways[way], parts[1 - way]);
            assert_same(whole, ways[way]);
        }
        for (int i = 0; i < 2; i++) {
            profiles_close(parts[i]);
            profiles_close(ways[i]);
        }
    }
    profiles_close(whole);
}

Test(profile_json, what_was_written_is_read_again)
{
    struct profiles *p = opened(), *again = opened();
    for (int i = 0; i < FLOWS; i++)
        learn_number(p, i);
    profiles_settle(p);
    for (size_t i = 0; i < profiles_count(p); i++) {
        const struct profile *from = profiles_at(p, i);
        struct buffer json = { 0 };
        unsigned level = 0;
        cr_assert_eq(profile_to_json(from, 3, &json), STATUS_OK);
        struct profile read = { .server = from->server,
                                .server_name = from->server_name,
                                .is_wide = from->is_wide,
                                .flows = from->flows,
                                .first_ns = from->first_ns,
                                .last_ns = from->last_ns };
        cr_assert_eq(profile_from_json((struct bytes){ json.at, json.len }, &read, &level),
                     STATUS_OK);
        cr_expect_eq(level, 3);
        cr_assert_eq(profiles_merge(again, &read, 0), STATUS_OK);
        buffer_done(&json);
    }
    assert_same(p, again);
    profiles_close(p);
    profiles_close(again);
}

Test(profile_json, servers_that_were_left_out_stay_out)
{
    struct profiles *few = opened(), *p = opened();
    struct profile far = { .flows = 1 };
    for (unsigned i = 0; i < 512; i++) {
        far.server.port = (uint16_t)i;
        cr_assert_eq(profiles_merge(p, &far, 0), STATUS_OK);
        cr_assert_eq(profiles_merge(few, &far, 4), STATUS_OK);
    }
    profiles_settle(p);
    profiles_settle(few);
    cr_expect_eq(profiles_count(p), 512);
    cr_expect_gt(profiles_count(few), 0);
    cr_expect_lt(profiles_count(few), 128);
    cr_expect_eq(profiles_level(few), 4);
    profiles_close(few);
    profiles_close(p);
}

Test(profile_json, what_nobody_wrote_does_no_harm)
{
    static const char *const TEXTS[] = {
        "",
        "x",
        "[]",
        "null",
        "{\"flights\":",
        "{}",
        "{\"flights\":7,\"rests\":8}",
        "{\"identities\":[[1],[2,3],[],\"x\",[4,-5,0,0],[5,1,9,8]]}",
        "{\"rests\":[[-1,99999999999,-9223372036854775808,9223372036854775807]],\"level\":9999}",
        "{\"unasked\":[[1,1,0,0],[2,1,0,0],[3,1,0,0],[4,1,0,0],[5,1,0,0],[6,1,0,0],[7,1,0,0],"
        "[8,1,0,0],[9,1,0,0],[10,1,0,0]],\"level\":-1}",
    };
    for (size_t i = 0; i < sizeof TEXTS / sizeof TEXTS[0]; i++) {
        struct profile read = { 0 };
        unsigned level = 0;
        struct bytes text = { (const uint8_t *)TEXTS[i], strlen(TEXTS[i]) };
        bool ok = profile_from_json(text, &read, &level) == STATUS_OK;
        cr_expect_eq(ok, i >= 5, "%s", TEXTS[i]);
        cr_expect_lt(level, 64);
        cr_expect_leq(read.unasked.used, TALLY_MAX);
        (void)profile_knows_ticket(&read, 250, 17, INT64_C(1700000000) * 1000000000);
        (void)profile_knows_tickets(&read, 0);
    }
}
