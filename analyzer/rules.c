/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include "csv.h"
#include "whole_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

void rules_done(struct rules *r)
{
    for (size_t i = 0; i < r->count; i++) {
        free(r->at[i].pattern);
        free(r->at[i].comment);
    }
    free(r->at);
    *r = (struct rules){ 0 };
}

static char *copy_of(struct bytes b)
{
    char *copy = malloc(b.len + 1);
    if (!copy)
        return NULL;
    if (b.len > 0)
        memcpy(copy, b.at, b.len);
    copy[b.len] = '\0';
    return copy;
}

bool rules_add(struct rules *r, struct bytes pattern, bool allowed, struct bytes comment)
{
    if (r->count == r->capacity) {
        size_t capacity = r->capacity == 0 ? 64 : 2 * r->capacity;
        struct rule *grown = realloc(r->at, capacity * sizeof *grown);
        if (!grown)
            return false;
        r->at = grown;
        r->capacity = capacity;
    }
    struct rule rule = { .pattern = copy_of(pattern), .allowed = allowed };
    if (comment.len > 0)
        rule.comment = copy_of(comment);
    if (!rule.pattern || (comment.len > 0 && !rule.comment)) {
        free(rule.pattern);
        free(rule.comment);
        return false;
    }
    for (char *c = rule.pattern; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    r->at[r->count++] = rule;
    return true;
}

/* ---- lines of a file ---- */

static bool is_space(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static struct bytes trimmed(struct bytes b)
{
    while (b.len > 0 && is_space(b.at[0]))
        b = bytes_after(b, 1);
    while (b.len > 0 && is_space(b.at[b.len - 1]))
        b = bytes_first(b, b.len - 1);
    return b;
}

static bool is_word(struct bytes b, const char *word)
{
    return b.len == strlen(word) && strncasecmp((const char *)b.at, word, b.len) == 0;
}

static bool read_allowed(struct bytes b, bool *ret_allowed)
{
    *ret_allowed = is_word(b, "yes") || is_word(b, "1");
    return *ret_allowed || is_word(b, "no") || is_word(b, "0");
}

/* SQL's GLOB knows more than * and ?, so its bracket is no part of a pattern. */
static bool is_pattern(struct bytes b)
{
    for (size_t i = 0; i < b.len; i++) {
        if (b.at[i] <= ' ' || b.at[i] > '~' || b.at[i] == '[' || b.at[i] == ']')
            return false;
    }
    return b.len > 0 && b.len <= RULE_PATTERN_MAX;
}

/* Adds the inside of a quoted field (RFC 4180 2.7), of others the field itself. */
static void add_unquoted(struct text *t, struct bytes field)
{
    bool quoted = field.len >= 2 && field.at[0] == '"' && field.at[field.len - 1] == '"';
    if (!quoted) {
        text_add_bytes(t, field);
        return;
    }
    struct bytes inside = bytes_first(bytes_after(field, 1), field.len - 2);
    while (inside.len > 0) {
        text_add_bytes(t, bytes_take_until(&inside, '"'));
        if (inside.len > 0 && inside.at[0] == '"') { /* two stand for one */
            text_add(t, "\"");
            inside = bytes_after(inside, 1);
        }
    }
}

static enum status refuse(struct text *error, const char *name, size_t line, const char *what)
{
    text_clear(error);
    text_addf(error, "%s:%zu: %s", name, line, what);
    return STATUS_REFUSED;
}

static bool is_header(struct bytes pattern, struct bytes allowed)
{
    return is_word(pattern, "pattern") && is_word(allowed, "allowed");
}

static enum status read_line(struct rules *r, const char *name, size_t number, struct bytes line,
                             struct text *error)
{
    struct bytes rest = trimmed(line);
    if (rest.len == 0 || rest.at[0] == '#')
        return STATUS_OK;
    struct bytes pattern = trimmed(bytes_take_until(&rest, ','));
    struct bytes allowed_field = trimmed(bytes_take_until(&rest, ','));
    bool allowed;
    if (is_header(pattern, allowed_field))
        return STATUS_OK;
    if (!is_pattern(pattern))
        return refuse(error, name, number,
                      "a line is pattern,allowed,comment, and the pattern a server name of at most"
                      " 255 characters, in which * is any text and ? any character");
    if (!read_allowed(allowed_field, &allowed))
        return refuse(error, name, number,
                      "behind the pattern stands yes or no: may early data"
                      " be used there?");
    if (r->count == RULES_MAX)
        return refuse(error, name, number, "more than 100,000 rules");
    struct text comment = { 0 };
    add_unquoted(&comment, trimmed(rest));
    bool added =
        !comment.failed && rules_add(r, pattern, allowed, text_bytes(text_string(&comment)));
    text_done(&comment);
    return added ? STATUS_OK : STATUS_NO_MEMORY;
}

static int compare_patterns(const void *a, const void *b)
{
    const struct rule *const *x = a, *const *y = b;
    return strcmp((*x)->pattern, (*y)->pattern);
}

/* Two rules of one pattern may contradict each other: it is said rather than decided. */
static enum status check_unique(const struct rules *r, const char *name, struct text *error)
{
    const struct rule **order = calloc(r->count + 1, sizeof(const struct rule *));
    if (!order)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < r->count; i++)
        order[i] = &r->at[i];
    qsort(order, r->count, sizeof *order, compare_patterns);
    enum status status = STATUS_OK;
    for (size_t i = 1; i < r->count && status == STATUS_OK; i++) {
        if (strcmp(order[i]->pattern, order[i - 1]->pattern) == 0) {
            text_clear(error);
            text_addf(error, "%s: the pattern '%s' comes twice", name, order[i]->pattern);
            status = STATUS_REFUSED;
        }
    }
    free(order);
    return status;
}

enum status rules_read_text(struct rules *r, const char *name, struct bytes content,
                            struct text *error)
{
    content = csv_text(content);
    enum status status = STATUS_OK;
    for (size_t line = 1; content.len > 0 && status == STATUS_OK; line++)
        status = read_line(r, name, line, bytes_take_until(&content, '\n'), error);
    return status == STATUS_OK ? check_unique(r, name, error) : status;
}

enum status rules_read_file(struct rules *r, const char *path, struct text *error)
{
    struct buffer content = { 0 };
    enum status status = whole_file_read(path, RULES_FILE_MAX, &content);
    if (status == STATUS_OK) {
        status = rules_read_text(r, path, (struct bytes){ content.at, content.len }, error);
    } else if (status != STATUS_NO_MEMORY) {
        text_clear(error);
        text_addf(error, "%s: cannot be read: %s", path,
                  strerror(status == STATUS_IO ? errno : EFBIG));
        status = STATUS_IO;
    }
    buffer_done(&content);
    return status;
}

/* ---- use ---- */

/*
 * Whether a pattern fits a name in lower case. Only the last star is ever tried again: what earlier
 * ones took can stay as short as it was, so the effort is at most the product of the lengths.
 */
static bool fits(const char *pattern, struct bytes name)
{
    const char *star = NULL;
    size_t at = 0, star_at = 0;
    while (at < name.len) {
        if (*pattern == '*') {
            star = ++pattern;
            star_at = at;
        } else if (*pattern == '?' || (*pattern != '\0' && *pattern == tolower(name.at[at]))) {
            pattern++;
            at++;
        } else if (star) {
            pattern = star;
            at = ++star_at;
        } else {
            return false;
        }
    }
    return pattern[strspn(pattern, "*")] == '\0';
}

static bool decides_over(const struct rule *a, const struct rule *b)
{
    size_t a_len = strlen(a->pattern), b_len = strlen(b->pattern);
    return a_len != b_len ? a_len > b_len : strcmp(a->pattern, b->pattern) < 0;
}

const struct rule *rules_find(const struct rules *r, struct bytes name)
{
    const struct rule *best = NULL;
    for (size_t i = 0; i < r->count; i++) {
        const struct rule *rule = &r->at[i];
        if ((!best || decides_over(rule, best)) && fits(rule->pattern, name))
            best = rule;
    }
    return best;
}

void rules_add_json(const struct rules *r, struct text *json)
{
    text_add(json, "[");
    for (size_t i = 0; i < r->count; i++) {
        const struct rule *rule = &r->at[i];
        text_add(json, i > 0 ? ",[\"" : "[\"");
        text_add_json(json, text_bytes(rule->pattern));
        text_addf(json, "\",%d,", rule->allowed);
        if (rule->comment) {
            text_add(json, "\"");
            text_add_json(json, text_bytes(rule->comment));
            text_add(json, "\"]");
        } else {
            text_add(json, "null]");
        }
    }
    text_add(json, "]");
}
