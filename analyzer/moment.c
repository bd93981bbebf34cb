/* SPDX-License-Identifier: Apache-2.0 */
#include "moment.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define SECOND_NS INT64_C(1000000000)

enum { DAY_S = 86400 };

/* Reads exactly `width` digits and moves on; false, and nothing moved, when they are not there. */
static bool take_digits(const char **at, int width, int64_t *ret_value)
{
    int64_t value = 0;
    for (int i = 0; i < width; i++) {
        char c = (*at)[i];
        if (c < '0' || c > '9')
            return false;
        value = value * 10 + (c - '0');
    }
    *at += width;
    *ret_value = value;
    return true;
}

static bool take(const char **at, char c)
{
    if (**at != c)
        return false;
    (*at)++;
    return true;
}

/* Reads ".25" as nanoseconds, digits behind the ninth are passed over; 0 without a point. */
static bool take_fraction(const char **at, int64_t *ret_ns)
{
    *ret_ns = 0;
    if (!take(at, '.'))
        return true;
    int64_t digit = 0, unit = SECOND_NS;
    if (!take_digits(at, 1, &digit))
        return false;
    do {
        unit /= 10;
        *ret_ns += digit * unit;
    } while (take_digits(at, 1, &digit));
    return true;
}

/* Reads "14:00", "14:00:30.5" as nanoseconds since midnight. */
static bool take_time_of_day(const char **at, int64_t *ret_ns)
{
    int64_t hour, minute, second = 0, fraction_ns = 0;
    if (!take_digits(at, 2, &hour) || !take(at, ':') || !take_digits(at, 2, &minute))
        return false;
    if (take(at, ':') && (!take_digits(at, 2, &second) || !take_fraction(at, &fraction_ns)))
        return false;
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    *ret_ns = (hour * 3600 + minute * 60 + second) * SECOND_NS + fraction_ns;
    return true;
}

/* Reads "2026-06-02" as seconds since 1970 of its midnight. */
static bool take_date(const char **at, int64_t *ret_s)
{
    int64_t year, month, day;
    if (!take_digits(at, 4, &year) || !take(at, '-') || !take_digits(at, 2, &month) ||
        !take(at, '-') || !take_digits(at, 2, &day))
        return false;
    struct tm tm = { .tm_year = (int)year - 1900, .tm_mon = (int)month - 1, .tm_mday = (int)day };
    time_t s = timegm(&tm);
    /* timegm() turns 31 June into 1 July: such a day is no day. */
    if (tm.tm_mon != month - 1 || tm.tm_mday != day)
        return false;
    *ret_s = s;
    return true;
}

/* Reads "Z", "+02:00", "-0530" or nothing as seconds east of UTC. */
static bool take_offset(const char **at, int64_t *ret_s)
{
    *ret_s = 0;
    if (**at == '\0' || take(at, 'Z'))
        return true;
    int64_t sign = take(at, '-') ? -1 : 1, hours, minutes;
    if (sign == 1 && !take(at, '+'))
        return false;
    if (!take_digits(at, 2, &hours))
        return false;
    (void)take(at, ':');
    if (!take_digits(at, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *ret_s = sign * (hours * 3600 + minutes * 60);
    return true;
}

static bool parse_iso(const char *at, int64_t *ret_ns)
{
    int64_t midnight_s, of_day_ns = 0, offset_s;
    if (!take_date(&at, &midnight_s))
        return false;
    if (*at != '\0') {
        if ((!take(&at, 'T') && !take(&at, ' ')) || !take_time_of_day(&at, &of_day_ns) ||
            !take_offset(&at, &offset_s))
            return false;
        midnight_s -= offset_s;
    }
    int64_t ns;
    if (*at != '\0' || __builtin_mul_overflow(midnight_s, SECOND_NS, &ns) ||
        __builtin_add_overflow(ns, of_day_ns, &ns) || ns < 0)
        return false;
    *ret_ns = ns;
    return true;
}

/* Reads a whole number and what stands behind it; false without a digit or when it is too large. */
static bool take_number(const char **at, int64_t *ret_value)
{
    int64_t value = 0, digit;
    if (**at < '0' || **at > '9')
        return false;
    while (take_digits(at, 1, &digit)) {
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *ret_value = value;
    return true;
}

static bool parse_epoch(const char *at, int64_t *ret_ns)
{
    int64_t seconds, fraction_ns, ns;
    if (!take_number(&at, &seconds) || !take_fraction(&at, &fraction_ns) || *at != '\0')
        return false;
    if (__builtin_mul_overflow(seconds, SECOND_NS, &ns) ||
        __builtin_add_overflow(ns, fraction_ns, &ns))
        return false;
    *ret_ns = ns;
    return true;
}

static bool parse_of_day(const char *at, struct span data, int64_t *ret_ns)
{
    int64_t of_day_ns;
    if (!take_time_of_day(&at, &of_day_ns) || *at != '\0')
        return false;
    int64_t day_ns = DAY_S * SECOND_NS;
    int64_t on_last_day = data.last_ns / day_ns * day_ns + of_day_ns;
    int64_t inside = on_last_day > data.last_ns ? on_last_day - day_ns : on_last_day;
    *ret_ns = inside >= data.first_ns ? inside : on_last_day;
    return true;
}

static bool parse_before_end(const char *at, struct span data, int64_t *ret_ns)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {
        { 's', 1 }, { 'm', 60 }, { 'h', 3600 }, { 'd', DAY_S }, { 'w', INT64_C(7) * DAY_S }
    };
    int64_t count, ns;
    if (!take(&at, '-') || !take_number(&at, &count))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strlen(at) != 1 || *at != units[i].unit)
            continue;
        if (__builtin_mul_overflow(count, units[i].seconds * SECOND_NS, &ns) ||
            __builtin_sub_overflow(data.last_ns, ns, &ns))
            return false;
        *ret_ns = ns > 0 ? ns : 0;
        return true;
    }
    return false;
}

bool moment_parse(const char *text, struct span data, int64_t *ret_epoch_ns)
{
    return parse_before_end(text, data, ret_epoch_ns) || parse_epoch(text, ret_epoch_ns) ||
           parse_of_day(text, data, ret_epoch_ns) || parse_iso(text, ret_epoch_ns);
}

/* Writes date and time by a format of strftime(). */
static const char *utc_text(int64_t epoch_ns, const char *format, char *buffer, size_t size)
{
    time_t seconds = (time_t)(epoch_ns / SECOND_NS - (epoch_ns % SECOND_NS < 0));
    struct tm tm;
    if (!gmtime_r(&seconds, &tm) || strftime(buffer, size, format, &tm) == 0)
        buffer[0] = '\0';
    return buffer;
}

const char *moment_text(int64_t epoch_ns, int decimals, char buffer[MOMENT_TEXT_SIZE])
{
    (void)utc_text(epoch_ns, "%Y-%m-%d %H:%M:%S", buffer, MOMENT_TEXT_SIZE);
    if (decimals > 0) {
        int64_t fraction_ns = (epoch_ns % SECOND_NS + SECOND_NS) % SECOND_NS;
        char fraction[16];
        (void)snprintf(fraction, sizeof fraction, "%09lld", (long long)fraction_ns);
        size_t len = strlen(buffer);
        (void)snprintf(buffer + len, MOMENT_TEXT_SIZE - len, ".%.*s", decimals, fraction);
    }
    return buffer;
}

const char *moment_span_text(struct span span, char buffer[2 * MOMENT_TEXT_SIZE])
{
    /* Whole minutes are enough for a window, unless hardly more than one fits into it. */
    bool fine = span.last_ns - span.first_ns < 120 * SECOND_NS;
    const char *time_format = fine ? "%H:%M:%S" : "%H:%M";
    char days[2][MOMENT_TEXT_SIZE], times[2][MOMENT_TEXT_SIZE];
    int64_t ends_ns[] = { span.first_ns, span.last_ns };
    for (size_t i = 0; i < 2; i++) {
        (void)utc_text(ends_ns[i], "%Y-%m-%d", days[i], MOMENT_TEXT_SIZE);
        (void)utc_text(ends_ns[i], time_format, times[i], MOMENT_TEXT_SIZE);
    }
    bool one_day = strcmp(days[0], days[1]) == 0;
    (void)snprintf(buffer, (size_t)2 * MOMENT_TEXT_SIZE, "%.12s %.10s .. %.12s%s%.10s", days[0],
                   times[0], one_day ? "" : days[1], one_day ? "" : " ", times[1]);
    return buffer;
}
