/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JSON_H
#define JSON_H
/*
 * JSON (RFC 8259) read where it stands: nothing is allocated, values are views of the text, with
 * their quotes and brackets. json_parse() looks at all of a text once; the others are for what it
 * has given. A view that is empty is a value that is not there, and reads as any other that is not
 * what is wanted.
 */
#include "buffer.h"
#include "bytes.h"

enum { JSON_DEPTH_MAX = 16 }; /* arrays and objects within each other */

/* Gives the value that a text holds; false when it is no JSON, deeper, or more than one value. */
bool json_parse(struct bytes text, struct bytes *ret_value);

/* What stands in an array, or the members of an object; nothing in any other value. */
struct reader json_items(struct bytes value);

/* Takes the next value of an array; false behind the last. */
bool json_next(struct reader *items, struct bytes *ret_value);

/*
 * Finds members of an object by name: ret_values[i] is that of names[i], the last of them where
 * there are several, empty where there is none. Names that are written with escapes are not found.
 */
void json_members(struct bytes object, const char *const names[], size_t count,
                  struct bytes ret_values[]);

struct json_integer {
    int64_t value; /* 0 where it is none */
    bool is;       /* a number without fraction and exponent that int64_t holds */
};

struct json_integer json_integer(struct bytes value);

/* Takes what is left of an array, or the first `most` of it, as integers; gives how many. */
size_t json_integers(struct reader *items, struct json_integer ret_integers[], size_t most);

/*
 * Gives the characters of a string, in UTF-8: a view of it, or where it has escapes of `space`,
 * whose content is replaced. False when the value is no string, has escapes and `space` is NULL,
 * has a NUL character or half of a surrogate pair, or without memory.
 */
bool json_text(struct bytes value, struct buffer *space, struct bytes *ret_text);

#endif
