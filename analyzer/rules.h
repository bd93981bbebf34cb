/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RULES_H
#define RULES_H
/*
 * Where early data may be used: patterns of server names, each with yes or no. As a file, one rule
 * a line:
 *
 *   pattern,allowed,comment
 *   login.*,no,a replay may log in again
 *   static.example.com,yes,nothing is changed there
 *
 * In a pattern * is any text and ? any character; case does not matter. Of the patterns that fit a
 * name the longest decides, of equally long ones the first in byte order. The header, empty lines
 * and lines that begin with # are skipped; allowed is yes, no, 1 or 0; the comment is optional and
 * may hold commas and be quoted.
 */
#include "bytes.h"
#include "status.h"
#include "text.h"

enum {
    RULES_MAX = 100000,                /* more are no list that somebody has thought about */
    RULES_FILE_MAX = 16 * 1024 * 1024, /* bytes */
    RULE_PATTERN_MAX = 255,            /* as a DNS name */
};

struct rule {
    char *pattern; /* lower case */
    char *comment; /* NULL: none */
    bool allowed;
};

/* { 0 } is empty. Free it with rules_done(). */
struct rules {
    struct rule *at;
    size_t count, capacity;
};

void rules_done(struct rules *r);

/* Adds one rule; texts are copied. False without memory. */
bool rules_add(struct rules *r, struct bytes pattern, bool allowed, struct bytes comment);

/*
 * Adds the rules of a file's content; name is for messages. STATUS_REFUSED: a line is no rule, a
 * pattern comes twice, or there are more than RULES_MAX; error says which line. A file without
 * rules is one that forbids nothing.
 */
MUST_USE enum status rules_read_text(struct rules *r, const char *name, struct bytes content,
                                     struct text *error);

/* The same of a file. STATUS_IO: it cannot be read, or is larger than RULES_FILE_MAX. */
MUST_USE enum status rules_read_file(struct rules *r, const char *path, struct text *error);

/* The rule for a name of any case; NULL when no pattern fits. It lives as long as r. */
const struct rule *rules_find(const struct rules *r, struct bytes name);

/* Adds all as JSON: [["login.*",0,"comment"],...], null for no comment. */
void rules_add_json(const struct rules *r, struct text *json);

#endif
