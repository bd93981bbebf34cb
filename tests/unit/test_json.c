/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct bytes bytes_of(const char *text)
{
    return (struct bytes){ (const uint8_t *)text, strlen(text) };
}

static bool is(struct bytes value, const char *text)
{
    return bytes_equal(value, bytes_of(text));
}

static struct bytes parsed(const char *text)
{
    struct bytes value = { 0 };
    cr_assert(json_parse(bytes_of(text), &value), "%s", text);
    return value;
}

Test(json, takes_what_is_json_and_refuses_what_is_not)
{
    static const char *const GOOD[] = { "0",
                                        "-0",
                                        "12.5e-3",
                                        "1E+9",
                                        " [ ] ",
                                        "{}",
                                        "null",
                                        "true",
                                        "false",
                                        "\"\"",
                                        "\"\\u00e9\\\\\\\"\"",
                                        "[1,[2,{\"a\":[]}],\"]\"]",
                                        "\t{ \"a\" : 1 , \"b\":2 }\n" };
    static const char *const BAD[] = {
        "",           " ",    "01",   "-",     "1.",      "1e",       ".5",
        "+1",         "[1,]", "[,1]", "[1 2]", "{\"a\"}", "{\"a\":}", "{a:1}",
        "{\"a\":1,}", "[",    "]",    "[1}",   "\"",      "\"\\x\"",  "\"\\u12g4\"",
        "\"\n\"",     "nul",  "1 2",  "[1]]",  "tru",     "\"a\\\""
    };
    struct bytes value;
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++)
        cr_expect(json_parse(bytes_of(GOOD[i]), &value), "%s", GOOD[i]);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        cr_expect(!json_parse(bytes_of(BAD[i]), &value), "%s", BAD[i]);
}

Test(json, every_beginning_of_a_list_is_refused)
{
    static const char TEXT[] = "{\"a\":[1,-2.5e3,\"x\\u0041\",null,{\"b\":true}],\"c\":{}}";
    struct bytes value;
    for (size_t len = 0; len < sizeof TEXT - 1; len++) {
        uint8_t *part = malloc(len + 1); /* of its own, so that a sanitizer sees what is beyond */
        memcpy(part, TEXT, len);
        cr_expect(!json_parse((struct bytes){ part, len }, &value), "%zu", len);
        free(part);
    }
    cr_expect(is(parsed(TEXT), TEXT));
}

Test(json, depth_has_a_limit)
{
    char text[2 * JSON_DEPTH_MAX + 3] = "";
    struct bytes value;
    for (int depth = JSON_DEPTH_MAX; depth <= JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        cr_expect_eq(json_parse(bytes_of(text), &value), depth == JSON_DEPTH_MAX);
    }
}

Test(json, items_come_one_after_the_other)
{
    static const char *const ITEMS[] = { "1", "\"a,]\"", "[2, [3]]", "{\"b\" : [4]}", "null" };
    struct reader items = json_items(parsed("[ 1 , \"a,]\",[2, [3]],{\"b\" : [4]} ,null ]"));
    struct bytes value;
    for (size_t i = 0; i < sizeof ITEMS / sizeof *ITEMS; i++) {
        cr_assert(json_next(&items, &value));
        cr_expect(is(value, ITEMS[i]), "%.*s", (int)value.len, (const char *)value.at);
    }
    cr_expect(!json_next(&items, &value));
    items = json_items(parsed("7"));
    cr_expect(!json_next(&items, &value));
    items = json_items((struct bytes){ 0 });
    cr_expect(!json_next(&items, &value));
}

Test(json, members_are_found_by_name_and_the_last_counts)
{
    enum { A, B, NONE, COUNT };
    static const char *const NAMES[COUNT] = { "a", "b", "none" };
    struct bytes of[COUNT];
    json_members(parsed("{\"b\":{\"a\":0},\"aa\":1,\"a\" : 2,\"x\":\"\\\"a\\\":9\",\"a\":[3]}"),
                 NAMES, COUNT, of);
    cr_expect(is(of[A], "[3]"));
    cr_expect(is(of[B], "{\"a\":0}"));
    cr_expect_eq(of[NONE].len, 0);
    json_members(parsed("[\"a\",1]"), NAMES, COUNT, of);
    cr_expect_eq(of[A].len, 0);
}

Test(json, integers_are_those_that_fit)
{
    struct json_integer all[8];
    struct reader items = json_items(parsed("[0,-7,9223372036854775807,-9223372036854775808,"
                                            "9223372036854775808,1.0,\"1\",null,5]"));
    cr_assert_eq(json_integers(&items, all, 8), 8);
    static const struct json_integer EXPECTED[8] = { { 0, true },         { -7, true },
                                                     { INT64_MAX, true }, { INT64_MIN, true },
                                                     { 0, false },        { 0, false },
                                                     { 0, false },        { 0, false } };
    for (int i = 0; i < 8; i++) {
        cr_expect_eq(all[i].value, EXPECTED[i].value, "%d", i);
        cr_expect_eq(all[i].is, EXPECTED[i].is, "%d", i);
    }
    cr_assert_eq(json_integers(&items, all, 8), 1);
    cr_expect_eq(all[0].value, 5);
    cr_expect(!json_integer((struct bytes){ 0 }).is);
}

Test(json, texts_are_their_characters)
{
    static const char *const TEXTS[][2] = {
        { "\"\"", "" },
        { "\"a b\"", "a b" },
        { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t" },
        { "\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00!\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80!" },
    };
    static const char *const NONE[] = { "1",           "[]",          "\"\\u0000\"",
                                        "\"\\ud83d\"", "\"\\ude00\"", "\"\\ud83d\\u0041\"",
                                        "\"\\ud83dx\"" };
    struct buffer space = { 0 };
    struct bytes text;
    for (size_t i = 0; i < sizeof TEXTS / sizeof *TEXTS; i++) {
        cr_assert(json_text(parsed(TEXTS[i][0]), &space, &text));
        cr_expect(is(text, TEXTS[i][1]), "%s", TEXTS[i][0]);
    }
    for (size_t i = 0; i < sizeof NONE / sizeof *NONE; i++)
        cr_expect(!json_text(parsed(NONE[i]), &space, &text), "%s", NONE[i]);
    buffer_done(&space);
}
