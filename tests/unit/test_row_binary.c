/* SPDX-License-Identifier: Apache-2.0 */
#include "row_binary.h"

#include <criterion/criterion.h>
#include <math.h>

static const struct export_column INTEGER = { "i", "Int64", EXPORT_INT64, false, 0 };
static const struct export_column SMALL = { "u", "UInt8", EXPORT_UINT8, false, 0 };
static const struct export_column REAL = { "f", "Float64", EXPORT_FLOAT64, false, 0 };
static const struct export_column TEXT = { "s", "String", EXPORT_STRING, false, 0 };
static const struct export_column MAYBE = { "n", "Nullable(String)", EXPORT_STRING, true, 0 };
static const struct export_column FOUR = { "x", "FixedString(4)", EXPORT_FIXED, false, 4 };
static const struct export_column WORD = { "e", "Nullable(Enum8('ab' = 1, 'b' = 2))", EXPORT_ENUM8,
                                           true, 0 };

static void expect_bytes(const struct export_column *column, struct cell cell, const char *bytes,
                         size_t len)
{
    struct buffer b = { 0 };
    cr_assert_eq(row_binary_add(&b, column, &cell), STATUS_OK);
    cr_expect_eq(b.len, len, "%s: %zu bytes", column->name, b.len);
    cr_expect(b.len == len && memcmp(b.at, bytes, len) == 0, "%s", column->name);
    buffer_done(&b);
}

static void expect_refused(const struct export_column *column, struct cell cell)
{
    struct buffer b = { 0 };
    cr_expect_eq(row_binary_add(&b, column, &cell), STATUS_REFUSED, "%s", column->name);
    cr_expect_eq(b.len, 0);
    buffer_done(&b);
}

Test(row_binary, numbers_are_little_endian)
{
    expect_bytes(&INTEGER, cell_integer(0x0102030405060708), "\x08\x07\x06\x05\x04\x03\x02\x01", 8);
    expect_bytes(&INTEGER, cell_integer(INT64_MIN), "\0\0\0\0\0\0\0\x80", 8);
    expect_bytes(&SMALL, cell_integer(255), "\xff", 1);
    expect_bytes(&REAL, cell_real(-2), "\0\0\0\0\0\0\0\xc0", 8);
}

Test(row_binary, texts_have_their_length_before_them)
{
    expect_bytes(&TEXT, cell_text(""), "\0", 1);
    expect_bytes(&TEXT, cell_text("abc"), "\3abc", 4);
    static uint8_t long_text[302] = { 0xac, 0x02 }; /* 300 */
    memset(long_text + 2, 'x', 300);
    struct cell cell = { .type = CELL_TEXT, .bytes = { long_text + 2, 300 } };
    expect_bytes(&TEXT, cell, (const char *)long_text, sizeof long_text);
    expect_bytes(&FOUR, cell_text("abcd"), "abcd", 4);
}

Test(row_binary, a_byte_says_what_is_null)
{
    expect_bytes(&MAYBE, cell_null(), "\1", 1);
    expect_bytes(&MAYBE, cell_text("a"), "\0\1a", 3);
    expect_bytes(&WORD, cell_null(), "\1", 1);
}

Test(row_binary, a_word_is_its_number)
{
    expect_bytes(&WORD, cell_text("ab"), "\0\1", 2);
    expect_bytes(&WORD, cell_text("b"), "\0\2", 2);
}

Test(row_binary, what_a_column_cannot_hold_is_refused_and_adds_nothing)
{
    expect_refused(&INTEGER, cell_null());
    expect_refused(&INTEGER, cell_real(1));
    expect_refused(&INTEGER, cell_text("1"));
    expect_refused(&SMALL, cell_integer(-1));
    expect_refused(&SMALL, cell_integer(256));
    expect_refused(&REAL, cell_integer(1));
    expect_refused(&TEXT, cell_null());
    expect_refused(&TEXT, (struct cell){ .type = CELL_BLOB });
    expect_refused(&FOUR, cell_text("abc"));
    expect_refused(&FOUR, cell_text("abcde"));
    expect_refused(&WORD, cell_text("a"));
    expect_refused(&WORD, cell_text(""));
    expect_refused(&WORD, cell_text("ab' = 1, 'b"));
}

Test(row_binary, every_real_keeps_its_bits)
{
    static const double REALS[] = { 0.1, -0.0, 1e300, INFINITY };
    for (size_t i = 0; i < sizeof REALS / sizeof REALS[0]; i++)
        expect_bytes(&REAL, cell_real(REALS[i]), (const char *)&REALS[i], sizeof REALS[i]);
}
