/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

void text_done(struct text *t)
{
    free(t->at);
    *t = (struct text){ 0 };
}

void text_clear(struct text *t)
{
    t->len = 0;
    if (t->at)
        t->at[0] = '\0';
}

const char *text_string(const struct text *t)
{
    return t->at ? t->at : "";
}

struct bytes text_bytes(const char *string)
{
    return (struct bytes){ (const uint8_t *)string, strlen(string) };
}

/* Room for n more bytes and the terminator. */
static bool text_reserve(struct text *t, size_t n)
{
    if (t->failed)
        return false;
    if (n < t->capacity - t->len)
        return true;
    size_t capacity = t->capacity ? t->capacity : 64;
    while (capacity - t->len <= n) {
        if (capacity > SIZE_MAX / 2) {
            t->failed = true;
            return false;
        }
        capacity *= 2;
    }
    char *at = realloc(t->at, capacity);
    if (!at) {
        t->failed = true;
        return false;
    }
    t->at = at;
    t->capacity = capacity;
    return true;
}

void text_add_bytes(struct text *t, struct bytes b)
{
    if (!text_reserve(t, b.len))
        return;
    if (b.len > 0)
        memcpy(t->at + t->len, b.at, b.len);
    t->len += b.len;
    t->at[t->len] = '\0';
}

void text_add(struct text *t, const char *string)
{
    text_add_bytes(t, text_bytes(string));
}

void text_add_repeated(struct text *t, const char *string, size_t times)
{
    struct bytes b = text_bytes(string);
    for (size_t i = 0; i < times; i++)
        text_add_bytes(t, b);
}

void text_addf(struct text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (len < 0 || !text_reserve(t, (size_t)len)) {
        t->failed = true;
        return;
    }
    va_start(arguments, format);
    (void)vsnprintf(t->at + t->len, (size_t)len + 1, format, arguments);
    va_end(arguments);
    t->len += (size_t)len;
}

/* Adds a decimal number with commas between the thousands before its point. */
static void add_grouped(struct text *t, const char *number)
{
    if (*number == '-') {
        text_add(t, "-");
        number++;
    }
    size_t whole = strspn(number, "0123456789");
    for (size_t left = whole; left > 0; left--, number++) {
        text_add_bytes(t, (struct bytes){ (const uint8_t *)number, 1 });
        if (left > 1 && left % 3 == 1)
            text_add(t, ",");
    }
    text_add(t, number);
}

void text_add_count(struct text *t, int64_t value)
{
    char number[24];
    (void)snprintf(number, sizeof number, "%lld", (long long)value);
    add_grouped(t, number);
}

void text_add_number(struct text *t, double value, int decimals)
{
    char number[400]; /* the largest double has 309 digits before its point */
    (void)snprintf(number, sizeof number, "%.*f", decimals, value);
    add_grouped(t, number);
}

void text_add_real(struct text *t, double value)
{
    enum { DIGITS_ALWAYS_EXACT = 17 };
    char number[40];
    for (int digits = 15; digits <= DIGITS_ALWAYS_EXACT; digits++) {
        (void)snprintf(number, sizeof number, "%.*g", digits, value);
        if (strtod(number, NULL) == value)
            break;
    }
    text_add(t, number);
    /* A real that happens to be whole still shows that it is one. */
    if (isfinite(value) && !strpbrk(number, ".e"))
        text_add(t, ".0");
}

/* One character of UTF-8; len is 1 and valid false for a byte that begins none. */
struct character {
    uint32_t code;
    size_t len;
    bool valid;
};

/* RFC 3629 4: no overlong forms, no surrogates, nothing above U+10FFFF. */
static struct character character_at(struct bytes b)
{
    struct reader r = reader_of(b);
    uint8_t first = reader_u8(&r);
    struct character broken = { first, 1, false };
    if (first < 0x80)
        return (struct character){ first, 1, true };
    if (first < 0xc2 || first > 0xf4)
        return broken;

    size_t following = first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
    uint32_t code = first & (0x3fU >> following);
    for (size_t i = 0; i < following; i++) {
        uint8_t next = reader_u8(&r);
        if (r.short_read || (next & 0xc0) != 0x80)
            return broken;
        code = code << 6 | (next & 0x3fU);
    }
    bool overlong = (following == 2 && code < 0x800) || (following == 3 && code < 0x10000);
    bool surrogate = code >= 0xd800 && code <= 0xdfff;
    if (overlong || surrogate || code > 0x10ffff)
        return broken;
    return (struct character){ code, following + 1, true };
}

/* Without a shape of their own, or changing the order or place of what stands around them. */
static bool is_invisible(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        { 0x00ad, 0x00ad },   /* soft hyphen */
        { 0x034f, 0x034f },   /* combining grapheme joiner */
        { 0x061c, 0x061c },   /* Arabic letter mark */
        { 0x115f, 0x1160 },   /* Hangul fillers */
        { 0x17b4, 0x17b5 },   /* Khmer inherent vowels */
        { 0x180b, 0x180f },   /* Mongolian selectors */
        { 0x200b, 0x200f },   /* zero width, direction marks */
        { 0x2028, 0x202e },   /* line and paragraph separator, direction overrides */
        { 0x2060, 0x206f },   /* word joiner, direction isolates */
        { 0x3164, 0x3164 },   /* Hangul filler */
        { 0xfe00, 0xfe0f },   /* variation selectors */
        { 0xfeff, 0xfeff },   /* byte order mark */
        { 0xffa0, 0xffa0 },   /* half-width Hangul filler */
        { 0xfff0, 0xfffb },   /* interlinear annotations */
        { 0x1bca0, 0x1bca3 }, /* shorthand controls */
        { 0x1d173, 0x1d17a }, /* musical controls */
        { 0xe0000, 0xe0fff }, /* tags */
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        if (code >= ranges[i].first && code <= ranges[i].last)
            return true;
    }
    return false;
}

/* Columns of a character that may be shown, -1 for one that must not be. */
static int shown_width(uint32_t code)
{
    if (code >= 0x20 && code < 0x7f)
        return 1;
    if (code < 0xa0 || is_invisible(code))
        return -1;
    return wcwidth((wchar_t)code);
}

void text_add_safe(struct text *t, struct bytes b, bool utf8)
{
    while (b.len > 0) {
        struct character c = character_at(b);
        bool shown = c.valid && (utf8 || c.code < 0x80) && shown_width(c.code) >= 0;
        if (shown)
            text_add_bytes(t, bytes_first(b, c.len));
        else if (!c.valid || c.code < 0x80)
            text_addf(t, "\\x%02x", (unsigned)c.code);
        else if (c.code < 0x10000)
            text_addf(t, "\\u%04x", (unsigned)c.code);
        else
            text_addf(t, "\\U%08x", (unsigned)c.code);
        b = bytes_after(b, c.len);
    }
}

void text_add_digest(struct text *t, struct bytes name)
{
    enum { FIRST = 6, LAST = 2 };
    if (name.len <= FIRST + LAST) {
        text_add_safe(t, name, false);
        return;
    }
    text_add_safe(t, bytes_first(name, FIRST), false);
    text_add(t, "..");
    text_add_safe(t, bytes_after(name, name.len - LAST), false);
}

static void add_json_escape(struct text *t, uint32_t code)
{
    if (code < 0x10000) {
        text_addf(t, "\\u%04x", (unsigned)code);
        return;
    }
    uint32_t above = code - 0x10000; /* a surrogate pair, RFC 8259 7 */
    text_addf(t, "\\u%04x\\u%04x", 0xd800U + (above >> 10), 0xdc00U + (above & 0x3ffU));
}

void text_add_json(struct text *t, struct bytes b)
{
    while (b.len > 0) {
        struct character c = character_at(b);
        if (!c.valid)
            text_add(t, "\\ufffd");
        else if (c.code == '"')
            text_add(t, "\\\"");
        else if (c.code == '\\')
            text_add(t, "\\\\");
        else if (c.code == '\n')
            text_add(t, "\\n");
        else if (c.code == '\t')
            text_add(t, "\\t");
        else if (c.code < 0x20 || (c.code >= 0x7f && c.code < 0xa0) || is_invisible(c.code))
            add_json_escape(t, c.code);
        else
            text_add_bytes(t, bytes_first(b, c.len));
        b = bytes_after(b, c.len);
    }
}

void text_add_markdown(struct text *t, struct bytes b)
{
    struct text safe = { 0 };
    text_add_safe(&safe, b, true);
    t->failed |= safe.failed;
    for (const char *c = text_string(&safe); *c; c++) {
        if (*c == '<')
            text_add(t, "&lt;");
        else if (*c == '&')
            text_add(t, "&amp;");
        else
            text_addf(t, strchr("|\\`*[]", *c) ? "\\%c" : "%c", *c);
    }
    text_done(&safe);
}

void text_add_html(struct text *t, struct bytes b)
{
    struct text safe = { 0 };
    text_add_safe(&safe, b, true);
    t->failed |= safe.failed;
    const char *rest = text_string(&safe);
    while (*rest) {
        size_t plain = strcspn(rest, "<>&\"'");
        text_add_bytes(t, (struct bytes){ (const uint8_t *)rest, plain });
        rest += plain;
        if (*rest)
            text_addf(t, "&#%d;", *rest++);
    }
    text_done(&safe);
}

size_t text_width(struct bytes b)
{
    size_t width = 0;
    while (b.len > 0) {
        struct character c = character_at(b);
        int columns = shown_width(c.code);
        width += columns > 0 ? (size_t)columns : 0;
        b = bytes_after(b, c.len);
    }
    return width;
}

size_t text_fitting(struct bytes b, size_t columns)
{
    size_t len = 0, width = 0;
    while (b.len > 0) {
        struct character c = character_at(b);
        width += text_width(bytes_first(b, c.len));
        if (width > columns)
            break;
        len += c.len;
        b = bytes_after(b, c.len);
    }
    return len;
}

/* Where to break text that is longer than `columns`: at the last space that fits, else hard. */
static size_t break_at(struct bytes text, size_t columns)
{
    size_t fitting = text_fitting(text, columns);
    if (fitting == text.len)
        return fitting;
    for (size_t i = fitting; i > 0; i--) {
        if (text.at[i - 1] == ' ' || text.at[i] == ' ')
            return i;
    }
    return fitting > 0 ? fitting : text.len;
}

struct bytes text_take_line(struct bytes *rest, size_t columns)
{
    while (rest->len > 0 && rest->at[0] == ' ')
        *rest = bytes_after(*rest, 1);
    size_t end = break_at(*rest, columns);
    struct bytes line = bytes_first(*rest, end);
    *rest = bytes_after(*rest, end);
    while (line.len > 0 && line.at[line.len - 1] == ' ')
        line.len--;
    return line;
}

void text_add_wrapped(struct text *t, const char *heading, struct bytes words, size_t width)
{
    size_t indent = strlen(heading);
    size_t columns = width > indent ? width - indent : 1;
    for (bool first = true; words.len > 0; first = false) {
        struct bytes line = text_take_line(&words, columns);
        text_addf(t, "%*s", (int)indent, first ? heading : "");
        text_add_bytes(t, line);
        text_add(t, "\n");
    }
}
