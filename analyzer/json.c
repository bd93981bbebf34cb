/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

static bool next_is(const struct reader *r, char c)
{
    return r->rest.len > 0 && r->rest.at[0] == (uint8_t)c;
}

static bool take_if(struct reader *r, char c)
{
    bool is = next_is(r, c);
    if (is)
        (void)reader_take(r, 1);
    return is;
}

static bool is_space(uint8_t c)
{
    return c <= ' ' && (c == ' ' || c == '\n' || c == '\t' || c == '\r');
}

static void skip_space(struct reader *r)
{
    while (r->rest.len > 0 && is_space(r->rest.at[0]))
        (void)reader_take(r, 1);
}

/* Takes the characters of a string up to its quote, an escape or what no string may have. */
static void skip_plain(struct reader *r)
{
    size_t len = 0;
    while (len < r->rest.len && r->rest.at[len] != '"' && r->rest.at[len] != '\\' &&
           r->rest.at[len] >= 0x20)
        len++;
    (void)reader_take(r, len);
}

/* ---- looking at all of it (RFC 8259 2 to 7) ---- */

static int hex_digit(uint8_t c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* The four digits behind \u; -1 when they are not there. */
static int take_hex(struct reader *r)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        int digit = hex_digit(reader_u8(r)); /* 0, no digit, when there is none */
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
    }
    return value;
}

static bool is_escape(struct reader *r)
{
    uint8_t c = reader_u8(r);
    return c == 'u' ? take_hex(r) >= 0 : c != '\0' && strchr("\"\\/bfnrt", c) != NULL;
}

/* Behind the first quote. */
static bool is_string(struct reader *r)
{
    skip_plain(r);
    while (take_if(r, '\\')) {
        if (!is_escape(r))
            return false;
        skip_plain(r);
    }
    return take_if(r, '"');
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static size_t digits_of(struct bytes b)
{
    size_t len = 0;
    while (len < b.len && is_digit(b.at[len]))
        len++;
    return len;
}

static bool has_digits(struct reader *r)
{
    return reader_take(r, digits_of(r->rest)).len > 0;
}

static bool is_number(struct reader *r)
{
    (void)take_if(r, '-');
    if (!take_if(r, '0') && !has_digits(r))
        return false;
    if (next_is(r, ',') || next_is(r, ']')) /* most are in lists of whole numbers */
        return true;
    if (take_if(r, '.') && !has_digits(r))
        return false;
    if (!take_if(r, 'e') && !take_if(r, 'E'))
        return true;
    if (!take_if(r, '+'))
        (void)take_if(r, '-');
    return has_digits(r);
}

static bool is_word(struct reader *r, const char *word)
{
    struct bytes wanted = { (const uint8_t *)word, strlen(word) };
    return bytes_equal(reader_take(r, wanted.len), wanted);
}

static bool is_value(struct reader *r, unsigned depth);

/* Behind the opening bracket. */
static bool is_list(struct reader *r, char end, unsigned depth)
{
    if (depth == JSON_DEPTH_MAX)
        return false;
    skip_space(r);
    if (take_if(r, end))
        return true;
    do {
        if (end == '}') {
            skip_space(r);
            if (!take_if(r, '"') || !is_string(r))
                return false;
            skip_space(r);
            if (!take_if(r, ':'))
                return false;
        }
        if (!is_value(r, depth + 1))
            return false;
    } while (take_if(r, ','));
    return take_if(r, end);
}

/* With the space around it. */
static bool is_value(struct reader *r, unsigned depth)
{
    bool is;
    skip_space(r);
    switch (r->rest.len > 0 ? r->rest.at[0] : '\0') {
    case '[':
        (void)reader_take(r, 1);
        is = is_list(r, ']', depth);
        break;
    case '{':
        (void)reader_take(r, 1);
        is = is_list(r, '}', depth);
        break;
    case '"':
        (void)reader_take(r, 1);
        is = is_string(r);
        break;
    case 't':
        is = is_word(r, "true");
        break;
    case 'f':
        is = is_word(r, "false");
        break;
    case 'n':
        is = is_word(r, "null");
        break;
    default:
        is = is_number(r);
    }
    skip_space(r);
    return is;
}

/* ---- what was looked at ---- */

/* Behind the first quote. */
static void skip_string(struct reader *r)
{
    skip_plain(r);
    while (take_if(r, '\\')) {
        (void)reader_u8(r);
        skip_plain(r);
    }
    (void)take_if(r, '"');
}

/* How much of a list comes before its next string or its end; *depth is that of lists in it. */
static size_t without_strings(struct bytes list, unsigned *depth)
{
    size_t len = 0;
    while (len < list.len && list.at[len] != '"' && *depth > 0) {
        uint8_t c = list.at[len++] | 0x20; /* makes '[' and ']' what '{' and '}' are */
        *depth += (unsigned)(c == '{') - (unsigned)(c == '}');
    }
    return len;
}

/* Behind the opening bracket. */
static void skip_list(struct reader *r)
{
    unsigned depth = 1;
    while (depth > 0 && r->rest.len > 0) {
        (void)reader_take(r, without_strings(r->rest, &depth));
        if (depth > 0 && take_if(r, '"'))
            skip_string(r);
    }
}

static bool ends_scalar(uint8_t c)
{
    return c == ',' || c == ']' || c == '}' || is_space(c);
}

static struct bytes take_value(struct reader *r)
{
    struct bytes from = r->rest;
    size_t len = 0;
    if (take_if(r, '[') || take_if(r, '{'))
        skip_list(r);
    else if (take_if(r, '"'))
        skip_string(r);
    else
        while (len < r->rest.len && !ends_scalar(r->rest.at[len]))
            len++;
    (void)reader_take(r, len);
    return bytes_first(from, from.len - r->rest.len);
}

static bool begins_with(struct bytes value, char c)
{
    return value.len > 0 && value.at[0] == (uint8_t)c;
}

/* Without the first and the last character, which are quotes or brackets. */
static struct bytes inside(struct bytes value)
{
    return value.len < 2 ? (struct bytes){ 0 } : bytes_first(bytes_after(value, 1), value.len - 2);
}

bool json_parse(struct bytes text, struct bytes *ret_value)
{
    struct reader r = reader_of(text);
    skip_space(&r);
    struct bytes value = r.rest;
    if (!is_value(&r, 0) || r.short_read || r.rest.len > 0)
        return false;
    while (is_space(value.at[value.len - 1]))
        value.len--;
    *ret_value = value;
    return true;
}

struct reader json_items(struct bytes value)
{
    bool is_list = begins_with(value, '[') || begins_with(value, '{');
    return reader_of(is_list ? inside(value) : (struct bytes){ 0 });
}

bool json_next(struct reader *items, struct bytes *ret_value)
{
    skip_space(items);
    if (take_if(items, ','))
        skip_space(items);
    *ret_value = take_value(items);
    return ret_value->len > 0; /* nothing, too, in what json_parse() has not seen */
}

static bool next_member(struct reader *items, struct bytes *ret_name, struct bytes *ret_value)
{
    if (!json_next(items, ret_name))
        return false;
    skip_space(items);
    (void)take_if(items, ':');
    skip_space(items);
    *ret_value = take_value(items);
    return true;
}

void json_members(struct bytes object, const char *const names[], size_t count,
                  struct bytes ret_values[])
{
    struct bytes name, value;
    for (size_t i = 0; i < count; i++)
        ret_values[i] = (struct bytes){ 0 };
    if (!begins_with(object, '{'))
        return;
    struct reader items = json_items(object);
    while (next_member(&items, &name, &value))
        for (size_t i = 0; i < count; i++)
            if (bytes_equal(inside(name),
                            (struct bytes){ (const uint8_t *)names[i], strlen(names[i]) }))
                ret_values[i] = value;
}

struct json_integer json_integer(struct bytes value)
{
    bool negative = begins_with(value, '-');
    int64_t number = 0;
    size_t i = negative ? 1 : 0;
    bool is = i < value.len;
    for (; is && i < value.len; i++) {
        unsigned digit = (unsigned)value.at[i] - '0';
        is = digit <= 9 && !__builtin_mul_overflow(number, 10, &number) &&
             !__builtin_add_overflow(number, negative ? -(int64_t)digit : (int64_t)digit, &number);
    }
    return (struct json_integer){ is ? number : 0, is };
}

/* Takes the number that begins there if it is of few digits and nothing else. */
static bool take_short_integer(struct reader *items, struct json_integer *ret_integer)
{
    enum { FEW = 18 }; /* of them no int64_t overflows */
    bool negative = next_is(items, '-');
    size_t i = negative ? 1 : 0, sign_len = i;
    int64_t number = 0;
    while (i < items->rest.len && i < FEW && is_digit(items->rest.at[i]))
        number = 10 * number + (items->rest.at[i++] - '0');
    bool is_last = i == items->rest.len;
    if (i == sign_len || (!is_last && items->rest.at[i] != ','))
        return false;
    (void)reader_take(items, is_last ? i : i + 1);
    *ret_integer = (struct json_integer){ negative ? -number : number, true };
    return true;
}

size_t json_integers(struct reader *items, struct json_integer ret_integers[], size_t most)
{
    struct bytes value;
    size_t count = 0;
    (void)take_if(items, ',');
    for (; count < most; count++) {
        if (take_short_integer(items, &ret_integers[count]))
            continue;
        if (!json_next(items, &value))
            break;
        ret_integers[count] = json_integer(value);
    }
    return count;
}

/* ---- texts ---- */

static bool add_byte(struct buffer *b, unsigned byte)
{
    uint8_t value = (uint8_t)byte;
    return buffer_add(b, (struct bytes){ &value, 1 });
}

/* In UTF-8 (RFC 3629 3). */
static bool add_character(struct buffer *b, unsigned c)
{
    if (c < 0x80)
        return add_byte(b, c);
    if (c < 0x800)
        return add_byte(b, 0xc0 | c >> 6) && add_byte(b, 0x80 | (c & 0x3f));
    if (c < 0x10000)
        return add_byte(b, 0xe0 | c >> 12) && add_byte(b, 0x80 | (c >> 6 & 0x3f)) &&
               add_byte(b, 0x80 | (c & 0x3f));
    return add_byte(b, 0xf0 | c >> 18) && add_byte(b, 0x80 | (c >> 12 & 0x3f)) &&
           add_byte(b, 0x80 | (c >> 6 & 0x3f)) && add_byte(b, 0x80 | (c & 0x3f));
}

/* A character above U+FFFF is written as two of these (RFC 8259 7). 0: half of one, or NUL. */
static unsigned take_unicode(struct reader *r)
{
    unsigned high = (unsigned)take_hex(r);
    if (high < 0xd800 || high > 0xdfff)
        return high;
    if (high > 0xdbff || !take_if(r, '\\') || !take_if(r, 'u'))
        return 0;
    unsigned low = (unsigned)take_hex(r);
    return low < 0xdc00 || low > 0xdfff ? 0 : 0x10000 + ((high & 0x3ff) << 10 | (low & 0x3ff));
}

static unsigned take_escape(struct reader *r)
{
    uint8_t c = reader_u8(r);
    switch (c) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'u':
        return take_unicode(r);
    default:
        return c;
    }
}

bool json_text(struct bytes value, struct buffer *space, struct bytes *ret_text)
{
    if (!begins_with(value, '"'))
        return false;
    struct bytes text = inside(value);
    if (text.len == 0 || memchr(text.at, '\\', text.len) == NULL) {
        *ret_text = text;
        return true;
    }
    if (space == NULL)
        return false;
    struct reader r = reader_of(text);
    space->len = 0;
    while (r.rest.len > 0) {
        uint8_t c = reader_u8(&r);
        unsigned character = c == '\\' ? take_escape(&r) : c;
        if (character == 0 ||
            !(c == '\\' ? add_character(space, character) : add_byte(space, character)))
            return false;
    }
    *ret_text = (struct bytes){ space->at, space->len };
    return true;
}
