/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEXT_H
#define TEXT_H
/*
 * Text for people and for files, and the one place where names from captures are made harmless:
 * whatever a packet said, no control character, no direction override and nothing invisible
 * reaches a terminal. Every output of the program goes through text_add_safe() or one of the
 * quoting functions beside it.
 */
#include "bytes.h"

#include <stdarg.h>

/*
 * A growing text, always terminated once something was added. { 0 } is empty. Without memory it
 * stays as it was and `failed` is set, so that a writer adds everything and asks once at the end.
 */
struct text {
    char *at;
    size_t len, capacity;
    bool failed;
};

void text_done(struct text *t);

/* Empties the text and keeps its memory. */
void text_clear(struct text *t);

/* The text as a string; "" when nothing was added. Lives until the next call that adds. */
const char *text_string(const struct text *t);

void text_add(struct text *t, const char *string);
void text_add_bytes(struct text *t, struct bytes b);
void text_add_repeated(struct text *t, const char *string, size_t times);
void text_addf(struct text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The end of a word that is counted: "" of one, "s" of none or more. */
static inline const char *plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* Adds value with a comma between thousands, as "1,480". */
void text_add_count(struct text *t, int64_t value);

/* Adds value rounded to so many decimals with a comma between thousands, as "1,480.2". */
void text_add_number(struct text *t, double value, int decimals);

/* Adds the shortest decimal form that reads back as the same number: "0.1", "1e+300". */
void text_add_real(struct text *t, double value);

/* A view of a string without its terminator. */
struct bytes text_bytes(const char *string);

/*
 * Adds bytes of any origin as one line of printable text. Kept: printable characters of valid
 * UTF-8, or only printable ASCII without utf8. Written as an escape: control characters and bytes
 * that are no UTF-8 as \x1b; direction controls, line separators, characters without a shape
 * (Unicode's default ignorables), unassigned ones, and everything but ASCII without utf8, as
 * \u202e or \U000e0041.
 */
void text_add_safe(struct text *t, struct bytes b, bool utf8);

/* Adds "4f1c09..9a" for a long name in hexadecimal: all places shorten keys and hashes alike. */
void text_add_digest(struct text *t, struct bytes name);

/*
 * Adds the inside of a JSON string (RFC 8259 7), without quotes: valid UTF-8 whatever came. Control
 * and direction characters and what has no shape are written as \u escapes, so the value stays the
 * same and a terminal stays calm; bytes that are no UTF-8 become U+FFFD.
 */
void text_add_json(struct text *t, struct bytes b);

/*
 * Adds text of any origin as text_add_safe() makes it, and what Markdown or HTML would take for
 * markup is taken from it. HTML: for the inside of elements and of quoted attributes.
 */
void text_add_markdown(struct text *t, struct bytes b);
void text_add_html(struct text *t, struct bytes b);

/* Columns that text made by text_add_safe() takes on a terminal. */
size_t text_width(struct bytes b);

/* Length in bytes of the longest beginning of such text that fits into so many columns. */
size_t text_fitting(struct bytes b, size_t columns);

/*
 * Takes the next line of at most so many columns off the front of *rest, broken at a space where
 * there is one, without spaces around it.
 */
struct bytes text_take_line(struct bytes *rest, size_t columns);

/*
 * Adds words as lines of at most `width` columns: the first behind a heading, the others indented
 * as far. Nothing when there are no words. The heading is ASCII.
 */
void text_add_wrapped(struct text *t, const char *heading, struct bytes words, size_t width);

#endif
