/* SPDX-License-Identifier: Apache-2.0 */
/* What the name of a file says of the place where it was captured: see inputs.h. */
#include "bytes.h"
#include "inputs.h"
#include "text.h"

#include <ctype.h>
#include <stdlib.h>
#include <strings.h>

/* ---- pieces of text ---- */

static bool starts_with(struct bytes text, struct bytes beginning)
{
    return bytes_equal(bytes_first(text, beginning.len), beginning);
}

static bool ends_with(struct bytes text, struct bytes end)
{
    return text.len >= end.len && bytes_equal(bytes_after(text, text.len - end.len), end);
}

/* The text before the first of some characters. */
static struct bytes until(struct bytes text, const char *stops)
{
    size_t n = 0;
    while (n < text.len && strchr(stops, text.at[n]) == NULL)
        n++;
    return bytes_first(text, n);
}

/* Takes the next element of a path off its front; empty at the end. */
static struct bytes next_element(struct bytes *path)
{
    while (starts_with(*path, text_bytes("/")))
        *path = bytes_after(*path, 1);
    struct bytes element = until(*path, "/");
    *path = bytes_after(*path, element.len);
    return element;
}

static size_t element_count(struct bytes path)
{
    size_t n = 0;
    while (next_element(&path).len > 0)
        n++;
    return n;
}

/* ---- patterns ---- */

/* One piece of a pattern's element: a literal, or something that stands for text. */
struct piece {
    bool is_wild;
    struct bytes name; /* of a {name}; empty for a star */
    struct bytes literal;
};

/* Takes the next piece off the front of a pattern that is known to be good. */
static struct piece next_piece(struct bytes *pattern)
{
    struct piece p = { 0 };
    if (starts_with(*pattern, text_bytes("*"))) {
        p.is_wild = true;
        *pattern = bytes_after(*pattern, 1);
    } else if (starts_with(*pattern, text_bytes("{"))) {
        p.is_wild = true;
        p.name = until(bytes_after(*pattern, 1), "}");
        *pattern = bytes_after(*pattern, p.name.len + 2);
    } else {
        p.literal = until(*pattern, "*{");
        *pattern = bytes_after(*pattern, p.literal.len);
    }
    return p;
}

static bool is_name(struct bytes b)
{
    for (size_t i = 0; i < b.len; i++) {
        if (!isalpha(b.at[i]) && b.at[i] != '_' && (i == 0 || !isdigit(b.at[i])))
            return false;
    }
    return b.len > 0;
}

static bool has_name(struct bytes pattern, struct bytes name)
{
    while (pattern.len > 0) {
        struct piece p = next_piece(&pattern);
        if (p.is_wild && bytes_equal(p.name, name))
            return true;
    }
    return false;
}

static const char *brace_error(struct bytes pattern)
{
    for (size_t i = 0; i < pattern.len; i++) {
        if (pattern.at[i] != '{')
            continue;
        struct bytes behind = bytes_after(pattern, i + 1);
        struct bytes name = until(behind, "}");
        if (name.len == behind.len)
            return "has a { without }";
        if (!is_name(name))
            return "has a { without a name of letters, digits and _ behind it";
    }
    return NULL;
}

const char *label_pattern_error(const char *pattern)
{
    struct bytes rest = text_bytes(pattern);
    if (element_count(rest) == 0)
        return "is empty";
    const char *error = brace_error(rest);
    bool after_wild = false;
    while (error == NULL && rest.len > 0) {
        struct piece p = next_piece(&rest);
        if (p.is_wild && after_wild)
            error = "has two names or stars side by side: nothing tells where the first ends";
        else if (p.name.len > 0 && has_name(rest, p.name))
            error = "has the same name twice";
        after_wild = p.is_wild;
    }
    return error;
}

/* ---- matching ---- */

/* Labels that are being made; other is a JSON object that is still open. */
struct matched {
    struct labels labels;
    struct text other;
    bool no_memory;
};

static void add_label(struct matched *m, struct bytes name, struct bytes value)
{
    static const char *const NAMES[] = { "site", "host", "region" };
    char **const fields[] = { &m->labels.site, &m->labels.host, &m->labels.region };
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++) {
        if (!bytes_equal(name, text_bytes(NAMES[i])))
            continue;
        *fields[i] = strndup((const char *)value.at, value.len);
        m->no_memory = m->no_memory || *fields[i] == NULL;
        return;
    }
    text_add(&m->other, m->other.len == 0 ? "{\"" : ",\"");
    text_add_bytes(&m->other, name);
    text_add(&m->other, "\":\"");
    text_add_json(&m->other, value);
    text_add(&m->other, "\"");
}

/* How much of the text a wild piece takes, given the literal behind it; SIZE_MAX: does not fit. */
static size_t wild_len(struct bytes text, size_t least, struct bytes literal, bool is_last)
{
    if (is_last) {
        if (!ends_with(text, literal) || text.len - literal.len < least)
            return SIZE_MAX;
        return text.len - literal.len;
    }
    for (size_t n = least; n <= text.len; n++) {
        if (starts_with(bytes_after(text, n), literal))
            return n;
    }
    return SIZE_MAX;
}

static bool match_element(struct matched *m, struct bytes pattern, struct bytes text)
{
    while (pattern.len > 0) {
        struct piece p = next_piece(&pattern);
        if (p.is_wild) {
            struct bytes behind = pattern;
            struct bytes literal = pattern.len > 0 ? next_piece(&behind).literal : pattern;
            size_t least = p.name.len > 0 ? 1 : 0;
            size_t len = wild_len(text, least, literal, behind.len == 0);
            if (len == SIZE_MAX)
                return false;
            if (p.name.len > 0)
                add_label(m, p.name, bytes_first(text, len));
            text = bytes_after(text, len);
        } else {
            if (!starts_with(text, p.literal))
                return false;
            text = bytes_after(text, p.literal.len);
        }
    }
    return text.len == 0;
}

static bool match_path(struct matched *m, struct bytes pattern, struct bytes path)
{
    size_t wanted = element_count(pattern);
    size_t there = element_count(path);
    bool from_root = starts_with(pattern, text_bytes("/"));
    if (there < wanted || (from_root && there != wanted))
        return false;
    for (; there > wanted; there--)
        (void)next_element(&path);
    for (; wanted > 0; wanted--) {
        struct bytes element = next_element(&pattern);
        if (!match_element(m, element, next_element(&path)))
            return false;
    }
    return true;
}

enum status labels_from_path(const char *pattern, const char *path, struct labels *ret_labels)
{
    assert(label_pattern_error(pattern) == NULL);
    struct matched m = { 0 };
    bool fits = match_path(&m, text_bytes(pattern), text_bytes(path));
    if (m.other.len > 0)
        text_add(&m.other, "}");
    m.labels.other = m.other.at;
    bool no_memory = m.no_memory || m.other.failed;
    if (!fits || no_memory) {
        labels_done(&m.labels);
        return no_memory ? STATUS_NO_MEMORY : STATUS_REFUSED;
    }
    *ret_labels = m.labels;
    return STATUS_OK;
}

void labels_done(struct labels *labels)
{
    free(labels->site);
    free(labels->host);
    free(labels->region);
    free(labels->other);
    *labels = (struct labels){ 0 };
}

/* ---- names of points ---- */

/* The name without one suffix or ring number at its end; the same when it has none. */
static struct bytes without_suffix(struct bytes name)
{
    static const char *const SUFFIXES[] = { ".pcapng", ".pcap", ".cap", ".dmp", ".gz",
                                            ".zst",    ".lz4",  ".xz",  ".bz2" };
    for (size_t i = 0; i < sizeof SUFFIXES / sizeof SUFFIXES[0]; i++) {
        struct bytes suffix = text_bytes(SUFFIXES[i]);
        if (name.len < suffix.len)
            continue;
        struct bytes end = bytes_after(name, name.len - suffix.len);
        if (strncasecmp((const char *)end.at, SUFFIXES[i], suffix.len) == 0)
            return bytes_first(name, name.len - suffix.len);
    }
    size_t len = name.len;
    while (len > 0 && isdigit(name.at[len - 1]))
        len--;
    if (len > 0 && len < name.len && name.at[len - 1] == '.') /* "x.pcap.1", as logrotate names */
        len--;
    return bytes_first(name, len);
}

char *point_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t directory_len = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    struct bytes name = bytes_after(text_bytes(path), directory_len);
    for (struct bytes shorter = without_suffix(name); shorter.len < name.len;
         shorter = without_suffix(name))
        name = shorter;

    char *result = calloc(1, directory_len + name.len + 1);
    if (result == NULL)
        return NULL;
    memcpy(result, path, directory_len);
    size_t len = directory_len;
    for (size_t i = 0; i < name.len; i++) {
        if (!isdigit(name.at[i]))
            result[len++] = (char)name.at[i];
    }
    return result;
}
