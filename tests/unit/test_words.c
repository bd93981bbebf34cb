/* SPDX-License-Identifier: Apache-2.0 */
#include "words.h"

#include <criterion/criterion.h>

Test(words, equal_values_have_one_number)
{
    struct words w = { 0 };
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 1000; i++) {
            char name[16];
            uint32_t number;
            (void)snprintf(name, sizeof name, "name%u", i);
            cr_assert_eq(words_add(&w, cell_text(name), &number), STATUS_OK);
            cr_expect_eq(number, i);
        }
    }
    cr_expect_eq(w.count, 1000);
    words_done(&w);
}

Test(words, null_an_empty_text_and_zero_differ)
{
    struct words w = { 0 };
    const struct cell values[] = { cell_null(), cell_text(""), cell_integer(0), cell_real(0),
                                   cell_text("0") };
    for (uint32_t i = 0; i < sizeof values / sizeof *values; i++) {
        uint32_t number;
        cr_assert_eq(words_add(&w, values[i], &number), STATUS_OK);
        cr_expect_eq(number, i);
    }
    words_done(&w);
}

static void expect_condition(struct cell value, const char *sql)
{
    struct text t = { 0 };
    word_add_condition("sni", value, &t);
    cr_expect_str_eq(text_string(&t), sql);
    text_done(&t);
}

Test(words, conditions_hold_nothing_that_a_shell_or_sql_obeys)
{
    expect_condition(cell_null(), "sni IS NULL");
    expect_condition(cell_integer(-3), "sni = -3");
    expect_condition(cell_text("www.example.com"), "sni = 'www.example.com'");
    expect_condition(cell_text("it's"), "sni = CAST(x'69742773' AS TEXT)");
    expect_condition(cell_text("$(x)"), "sni = CAST(x'24287829' AS TEXT)");
    expect_condition(cell_text("\""), "sni = CAST(x'22' AS TEXT)");
    expect_condition(cell_text(""), "sni = ''");
}
