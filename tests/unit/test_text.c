/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <criterion/criterion.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

static void use_utf8(void)
{
    cr_assert_not_null(setlocale(LC_CTYPE, "C.UTF-8"));
}

TestSuite(text, .init = use_utf8);

static const char *safe(struct text *t, const char *bytes, size_t len, bool utf8)
{
    text_clear(t);
    text_add_safe(t, (struct bytes){ (const uint8_t *)bytes, len }, utf8);
    return text_string(t);
}

Test(text, printable_text_stays_as_it_is)
{
    static const char *const kept[] = { "www.example.com", "São Paulo", "東京",  "▁▂▅▇",
                                        "a\xcc\x83",       "😀",         "\\x1b", "" };
    struct text t = { 0 };
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        cr_expect_str_eq(safe(&t, kept[i], strlen(kept[i]), true), kept[i]);
    text_done(&t);
}

Test(text, what_a_terminal_would_obey_becomes_an_escape)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
        { "\x1b]0;owned\x07", "\\x1b]0;owned\\x07" }, /* title */
        { "\x1b[2J", "\\x1b[2J" },
        { "\x1b]52;c;eA==\x1b\\", "\\x1b]52;c;eA==\\x1b\\" }, /* clipboard */
        { "\xc2\x9b"
          "31m",
          "\\u009b31m" }, /* CSI as C1 in UTF-8 */
        { "\x9b"
          "31m",
          "\\x9b31m" }, /* CSI as a bare byte */
        { "a\rb\nc\td\x7f", "a\\x0db\\x0ac\\x09d\\x7f" },
        { "user\xe2\x80\xaegnp.exe", "user\\u202egnp.exe" }, /* right-to-left override */
        { "\xe2\x81\xa6x\xe2\x81\xa9", "\\u2066x\\u2069" },
        { "pay\xe2\x80\x8bpal", "pay\\u200bpal" }, /* zero width space */
        { "a\xe2\x80\xa8"
          "b",
          "a\\u2028b" }, /* line separator */
        { "\xef\xbb\xbfx", "\\ufeffx" },
        { "x\xf3\xa0\x81\x81", "x\\U000e0041" }, /* tag */
        { "\xef\xb8\x8f", "\\ufe0f" },
        { "\xc0\xaf", "\\xc0\\xaf" },                   /* overlong */
        { "\xed\xa0\x80", "\\xed\\xa0\\x80" },          /* surrogate */
        { "\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80" }, /* above U+10FFFF */
        { "caf\xc3", "caf\\xc3" },                      /* cut */
    };
    struct text t = { 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_str_eq(safe(&t, cases[i].from, strlen(cases[i].from), true), cases[i].to);
    cr_expect_str_eq(safe(&t, "a\0b", 3, true), "a\\x00b");
    text_done(&t);
}

Test(text, a_terminal_without_utf8_gets_ascii)
{
    struct text t = { 0 };
    cr_expect_str_eq(safe(&t, "São", 4, false), "S\\u00e3o");
    cr_expect_str_eq(safe(&t, "😀", 4, false), "\\U0001f600");
    text_done(&t);
}

/* Every code point, whether or not it may stand in UTF-8: the output has no control character,
 * is valid, and its width is what the terminal uses. */
Test(text, no_character_at_all_gets_a_control_through)
{
    struct text t = { 0 };
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        uint8_t b[4] = { (uint8_t)code };
        size_t len = 1;
        if (code >= 0x80) {
            len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
            static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
            uint32_t rest = code;
            for (size_t i = len; i-- > 1; rest >>= 6)
                b[i] = (uint8_t)(0x80 | (rest & 0x3f));
            b[0] = (uint8_t)(lead[len] | rest);
        }
        text_clear(&t);
        text_add_safe(&t, (struct bytes){ b, len }, true);
        for (size_t i = 0; i < t.len; i++)
            cr_assert((uint8_t)t.at[i] >= 0x20 && t.at[i] != 0x7f, "U+%04X", (unsigned)code);
        wchar_t wide[16];
        size_t characters = mbstowcs(wide, t.at, 16);
        cr_assert(characters != (size_t)-1, "U+%04X", (unsigned)code);
        cr_assert(characters == 1 || t.at[0] == '\\', "U+%04X", (unsigned)code);
    }
    text_done(&t);
}

Test(text, every_beginning_of_a_text_is_safe)
{
    const char *whole = "é東😀\xe2\x80\xae";
    struct text t = { 0 };
    for (size_t len = 0; len <= strlen(whole); len++) {
        safe(&t, whole, len, true);
        wchar_t wide[64];
        cr_expect(mbstowcs(wide, text_string(&t), 64) != (size_t)-1);
    }
    text_done(&t);
}

Test(text, width_counts_columns)
{
    cr_expect_eq(text_width(text_bytes("São")), 3);
    cr_expect_eq(text_width(text_bytes("東京")), 4);
    cr_expect_eq(text_width(text_bytes("a\xcc\x83")), 1);
    cr_expect_eq(text_width(text_bytes("")), 0);
}

Test(text, fitting_never_cuts_a_character)
{
    cr_expect_eq(text_fitting(text_bytes("東京"), 3), 3);
    cr_expect_eq(text_fitting(text_bytes("東京"), 4), 6);
    cr_expect_eq(text_fitting(text_bytes("abc"), 0), 0);
    cr_expect_eq(text_fitting(text_bytes("abc"), 9), 3);
}

Test(text, json_keeps_the_value_and_is_valid_utf8)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
        { "a\"b\\c", "a\\\"b\\\\c" },
        { "l1\nl2\t\x01", "l1\\nl2\\t\\u0001" },
        { "\xe2\x80\xae", "\\u202e" },
        { "\xc2\x9b", "\\u009b" },
        { "\xf3\xa0\x81\x81", "\\udb40\\udc41" },
        { "é", "é" },
        { "x\xff\xc3", "x\\ufffd\\ufffd" },
    };
    struct text t = { 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_clear(&t);
        text_add_json(&t, text_bytes(cases[i].from));
        cr_expect_str_eq(text_string(&t), cases[i].to);
    }
    text_done(&t);
}

Test(text, counts_have_commas)
{
    static const struct {
        int64_t value;
        const char *text;
    } cases[] = { { 0, "0" },
                  { 999, "999" },
                  { 1000, "1,000" },
                  { 812904, "812,904" },
                  { -1234567, "-1,234,567" },
                  { INT64_MIN, "-9,223,372,036,854,775,808" } };
    struct text t = { 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_clear(&t);
        text_add_count(&t, cases[i].value);
        cr_expect_str_eq(text_string(&t), cases[i].text);
    }
    text_done(&t);
}

Test(text, numbers_are_rounded_and_have_commas)
{
    static const struct {
        double value;
        int decimals;
        const char *text;
    } cases[] = { { 27.44, 1, "27.4" },       { 1479.96, 1, "1,480.0" }, { 1480.4, 0, "1,480" },
                  { -12345.6, 0, "-12,346" }, { 0.04, 1, "0.0" },        { 999.96, 1, "1,000.0" } };
    struct text t = { 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_clear(&t);
        text_add_number(&t, cases[i].value, cases[i].decimals);
        cr_expect_str_eq(text_string(&t), cases[i].text);
    }
    text_clear(&t);
    text_add_number(&t, -1.7e308, 1);
    cr_expect_eq(t.len, 1 + 309 + 102 + 2);
    text_done(&t);
}

Test(text, reals_read_back_the_same)
{
    static const double values[] = { 0.1, 1.0 / 3, 1e300, -2.5e-7, 123456789.125, 2, -0.0, 5e-324 };
    struct text t = { 0 };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        text_clear(&t);
        text_add_real(&t, values[i]);
        cr_expect(strtod(text_string(&t), NULL) == values[i], "%s", text_string(&t));
        cr_expect(strpbrk(text_string(&t), ".e") != NULL, "%s", text_string(&t));
    }
    text_clear(&t);
    text_add_real(&t, 0.1);
    cr_expect_str_eq(text_string(&t), "0.1");
    text_done(&t);
}

Test(text, grows_to_any_length)
{
    struct text t = { 0 };
    text_add_repeated(&t, "abc", 100000);
    cr_expect_eq(t.len, 300000);
    cr_expect_eq(strlen(text_string(&t)), 300000);
    text_addf(&t, "%0*d", 5000, 7);
    cr_expect_eq(t.len, 305000);
    cr_expect_eq(t.at[304999], '7');
    text_done(&t);
    cr_expect_str_eq(text_string(&t), "");
}

Test(text, words_are_wrapped_behind_a_heading)
{
    struct text t = { 0 };
    text_add_wrapped(&t, "Left out  ", text_bytes("no SYN 21,180   one side 14,006   no request"),
                     30);
    cr_expect_str_eq(text_string(&t), "Left out  no SYN 21,180   one\n"
                                      "          side 14,006   no\n"
                                      "          request\n");
    text_clear(&t);
    text_add_wrapped(&t, "x ", text_bytes("without-any-space 東京東京"), 9);
    cr_expect_str_eq(text_string(&t), "x without\n  -any-sp\n  ace\n  東京東\n  京\n");
    text_clear(&t);
    text_add_wrapped(&t, "x ", text_bytes(""), 9);
    cr_expect_str_eq(text_string(&t), "");
    text_add_wrapped(&t, "heading ", text_bytes("ab"), 3);
    cr_expect_str_eq(text_string(&t), "heading a\n        b\n");
    text_done(&t);
}
