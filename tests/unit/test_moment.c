/* SPDX-License-Identifier: Apache-2.0 */
#include "moment.h"

#include <criterion/criterion.h>

#define SECOND_NS INT64_C(1000000000)
#define NOON (INT64_C(1780401600) * SECOND_NS) /* 2026-06-02 12:00 UTC */

static const struct span DATA = { NOON, NOON + 3 * 3600 * SECOND_NS };

static void expect_moment(const char *text, struct span data, int64_t expected)
{
    int64_t ns = -1;
    cr_expect(moment_parse(text, data, &ns), "%s", text);
    cr_expect_eq(ns, expected, "%s: %lld instead of %lld", text, (long long)ns,
                 (long long)expected);
}

Test(moment, iso_times_are_utc_unless_an_offset_is_given)
{
    expect_moment("2026-06-02T12:00", DATA, NOON);
    expect_moment("2026-06-02 12:00:00", DATA, NOON);
    expect_moment("2026-06-02T12:00:00Z", DATA, NOON);
    expect_moment("2026-06-02T14:00+02:00", DATA, NOON);
    expect_moment("2026-06-02T06:30-0530", DATA, NOON);
    expect_moment("2026-06-02T12:00:05.25Z", DATA, NOON + 5 * SECOND_NS + SECOND_NS / 4);
    expect_moment("2026-06-02T12:00:00.1234567899", DATA, NOON + 123456789);
    expect_moment("2026-06-02", DATA, NOON - 12 * 3600 * SECOND_NS);
    expect_moment("1970-01-01", DATA, 0);
}

Test(moment, plain_numbers_are_seconds_since_1970)
{
    expect_moment("1780401600", DATA, NOON);
    expect_moment("1780401600.5", DATA, NOON + SECOND_NS / 2);
    expect_moment("0", DATA, 0);
}

Test(moment, a_time_alone_lies_on_the_day_of_the_data)
{
    expect_moment("14:00", DATA, NOON + 2 * 3600 * SECOND_NS);
    expect_moment("14:00:30", DATA, NOON + (2 * 3600 + 30) * SECOND_NS);
    expect_moment("16:00", DATA, NOON + 4 * 3600 * SECOND_NS); /* behind the data */
    expect_moment("11:00", DATA, NOON - 3600 * SECOND_NS);     /* before them */
    struct span night = { NOON + 11 * 3600 * SECOND_NS, NOON + 13 * 3600 * SECOND_NS };
    expect_moment("23:30", night, NOON + (11 * 3600 + 1800) * SECOND_NS);
    expect_moment("00:30", night, NOON + (12 * 3600 + 1800) * SECOND_NS);
}

Test(moment, a_duration_counts_back_from_the_end_of_the_data)
{
    expect_moment("-2h", DATA, NOON + 3600 * SECOND_NS);
    expect_moment("-90s", DATA, DATA.last_ns - 90 * SECOND_NS);
    expect_moment("-15m", DATA, DATA.last_ns - 900 * SECOND_NS);
    expect_moment("-1w", DATA, DATA.last_ns - 7 * 86400 * SECOND_NS);
    expect_moment("-10000w", DATA, 0);
}

Test(moment, what_is_no_time_is_refused)
{
    static const char *const wrong[] = {
        "",
        "x",
        "-",
        "-2",
        "-2y",
        "2h",
        "24:00",
        "12:60",
        "12:00:60",
        "2026-13-01",
        "2026-06-31",
        "12:00x",
        "2026-02-29",
        "2026-6-2",
        "2026-06-02T",
        "2026-06-02T12",
        "2026-06-02X12:00",
        "12:0",
        "2026-06-02T12:00+2",
        "2026-06-02T12:00:00.",
        "1969-12-31",
        "2263-01-01",
        "99999999999999999999",
        "9999999999999",
        "-99999999999999999w",
        "1.5.5",
        "2026-06-02T12:00+25:00",
        "2026-06-02T12:00ZZ",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        int64_t ns = 77;
        cr_expect_not(moment_parse(wrong[i], DATA, &ns), "%s", wrong[i]);
        cr_expect_eq(ns, 77, "%s", wrong[i]);
    }
}

Test(moment, text_has_the_decimals_asked_for)
{
    char buffer[MOMENT_TEXT_SIZE];
    cr_expect_str_eq(moment_text(NOON + 204518999, 6, buffer), "2026-06-02 12:00:00.204518");
    cr_expect_str_eq(moment_text(NOON + 999999999, 0, buffer), "2026-06-02 12:00:00");
    cr_expect_str_eq(moment_text(NOON + 1, 9, buffer), "2026-06-02 12:00:00.000000001");
    cr_expect_str_eq(moment_text(0, 0, buffer), "1970-01-01 00:00:00");
    cr_expect_str_eq(moment_text(INT64_MAX, 0, buffer), "2262-04-11 23:47:16");
}

Test(moment, a_span_names_the_second_day_only_where_it_differs)
{
    char buffer[2 * MOMENT_TEXT_SIZE];
    cr_expect_str_eq(moment_span_text(DATA, buffer), "2026-06-02 12:00 .. 15:00");
    struct span days = { NOON, NOON + 86400 * SECOND_NS };
    cr_expect_str_eq(moment_span_text(days, buffer), "2026-06-02 12:00 .. 2026-06-03 12:00");
    struct span brief = { NOON, NOON + 5 * SECOND_NS };
    cr_expect_str_eq(moment_span_text(brief, buffer), "2026-06-02 12:00:00 .. 12:00:05");
}
