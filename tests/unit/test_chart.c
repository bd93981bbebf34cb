/* SPDX-License-Identifier: Apache-2.0 */
#include "chart.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

static bool is_round(double value)
{
    double digits = value / pow(10, floor(log10(value) + 1e-9));
    return fabs(digits - 1) < 1e-6 || fabs(digits - 2) < 1e-6 || fabs(digits - 5) < 1e-6;
}

Test(chart, logarithmic_scales_hold_their_values_and_end_at_round_numbers)
{
    for (double least = 0.013; least < 1e5; least *= 1.37) {
        for (double greatest = least; greatest < 1e9; greatest *= 2.3) {
            struct chart_scale s = chart_logarithmic(least, greatest);
            cr_assert(s.low <= least * 1.000001 || s.low <= greatest / 9e5);
            cr_assert(s.high >= greatest * 0.999999, "%g above %g", greatest, s.high);
            cr_assert(is_round(s.low) && is_round(s.high), "%g %g", s.low, s.high);
            double ticks[CHART_TICKS_MAX];
            size_t count = chart_ticks(s, ticks);
            cr_assert(count >= 2 && count <= CHART_TICKS_MAX);
            cr_assert_float_eq(ticks[0], s.low, s.low * 1e-6);
            cr_assert_float_eq(ticks[count - 1], s.high, s.high * 1e-6);
            for (size_t i = 0; i < count; i++)
                cr_assert(is_round(ticks[i]) && (i == 0 || ticks[i] > ticks[i - 1]));
        }
    }
}

Test(chart, linear_scales_begin_at_zero_and_leave_little_empty)
{
    for (double greatest = 0.0101; greatest < 1e12; greatest *= 1.7) {
        struct chart_scale s = chart_linear(greatest);
        double ticks[CHART_TICKS_MAX];
        size_t count = chart_ticks(s, ticks);
        cr_assert(s.high >= greatest * 0.999999 && s.high <= greatest * 2);
        cr_assert(count >= 3 && ticks[0] == 0);
        cr_assert_float_eq(ticks[count - 1], s.high, s.high * 1e-6);
    }
}

Test(chart, odd_numbers_give_scales_that_can_be_drawn)
{
    static const double odd[] = { NAN, INFINITY, -INFINITY, 0, -1, 1e-300, 1e300, 5 };
    enum { ODD = sizeof odd / sizeof *odd };
    for (size_t i = 0; i < ODD; i++) {
        for (size_t k = 0; k < ODD; k++) {
            struct chart_scale s[] = { chart_logarithmic(odd[i], odd[k]), chart_linear(odd[k]) };
            for (size_t n = 0; n < 2; n++) {
                double ticks[CHART_TICKS_MAX];
                cr_assert(isfinite(s[n].low) && isfinite(s[n].high) && s[n].low < s[n].high);
                cr_assert(chart_ticks(s[n], ticks) <= CHART_TICKS_MAX);
                double place = chart_place(s[n], odd[i]);
                cr_assert(isnan(odd[i]) ? isnan(place) : place >= 0 && place <= 1);
            }
        }
    }
}

Test(chart, places_grow_with_values)
{
    struct chart_scale s = chart_logarithmic(10, 1000);
    cr_expect_float_eq(chart_place(s, 100), 0.5, 1e-9);
    cr_expect_eq(chart_place(s, 1), 0);
    cr_expect_eq(chart_place(s, 1e6), 1);
    cr_expect_float_eq(chart_place(chart_linear(4), 1), 0.25, 1e-9);
}

static size_t count_of(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        count++;
    return count;
}

Test(chart, nothing_that_is_no_number_is_drawn)
{
    struct text out = { 0 };
    struct chart_scale s = chart_logarithmic(10, 1000);
    chart_add_range(s, (double[]){ NAN, NAN, NAN }, 0, "none", &out);
    chart_add_range(s, (double[]){ 20, NAN, NAN }, 0, "median", &out);
    cr_expect_eq(count_of(text_string(&out), "<circle"), 1);
    cr_expect_eq(count_of(text_string(&out), "<rect"), 0);
    chart_add_stack(chart_linear(3), (double[]){ 1, NAN, -1, 2 }, 4, "parts", &out);
    cr_expect_eq(count_of(text_string(&out), "<rect"), 2);
    cr_expect_null(strstr(text_string(&out), "nan"));
    text_done(&out);
}

Test(chart, texts_of_any_origin_are_escaped)
{
    struct text out = { 0 };
    double x[] = { 1, 10, 100 }, y[] = { 0, 0.5, 1 };
    struct chart_line line = { "<b>\x1b", 0, x, y, 3 };
    struct chart c = { .description = "\" onload=\"x",
                       .lines = &line,
                       .line_count = 1,
                       .x = chart_logarithmic(1, 100),
                       .y = { 0, 1, false } };
    const char *labels[] = { "<i>", "&", "'" };
    chart_add_curves(&c, &out);
    chart_add_series(&c, labels, false, &out);
    chart_add_series(&c, labels, true, &out);
    cr_expect_null(strstr(text_string(&out), "<b>"));
    cr_expect_null(strstr(text_string(&out), "<i>"));
    cr_expect_null(strstr(text_string(&out), "\" onload"));
    cr_expect_null(strchr(text_string(&out), '\x1b'));
    cr_expect_not_null(strstr(text_string(&out), "cx=\"50.00%\"")); /* the median */
    text_done(&out);
}

Test(chart, a_picture_of_a_million_values_is_small_and_keeps_its_peak)
{
    enum { COUNT = 1000000 };
    double *y = calloc(COUNT, sizeof *y);
    const char **labels = calloc(COUNT, sizeof *labels);
    cr_assert(y && labels);
    for (size_t i = 0; i < COUNT; i++)
        labels[i] = "14:03";
    y[777777] = 8;
    struct chart_line line = { "p50", 0, y, y, COUNT };
    struct chart c = { .description = "d",
                       .lines = &line,
                       .line_count = 1,
                       .x = chart_logarithmic(1, 8),
                       .y = chart_linear(8) };
    struct text out = { 0 };
    chart_add_series(&c, labels, false, &out);
    cr_expect_leq(out.len, 20000);
    cr_expect_not_null(strstr(text_string(&out), " 0.0L")); /* at the top */
    text_clear(&out);
    chart_add_series(&c, labels, true, &out);
    cr_expect_leq(out.len, 40000);
    text_clear(&out);
    chart_add_curves(&c, &out);
    cr_expect_leq(out.len, 20000);
    text_done(&out);
    free(y);
    free(labels);
}
