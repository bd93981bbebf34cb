/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: file -> fields, unquoted in place and ended by NUL -> lines of as many
 * fields as there are columns. Lines are tried one by one.
 */
#include "manifest.h"

#include "text.h"
#include "whole_file.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

struct manifest {
    char *content; /* all fields */
    size_t len;
    const char **fields; /* line by line, the first one names the columns */
    size_t field_count, field_capacity;
    size_t columns, glob_column;
    char error[512];
};

/* Where reading the content is; fields are written over what was read. */
struct cursor {
    size_t read, written;
    size_t line; /* of the file, counted from 1 */
    bool ends_line;
};

__attribute__((format(printf, 3, 4))) static enum status
fail(struct manifest *m, enum status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(m->error, sizeof m->error, format, arguments);
    va_end(arguments);
    return status;
}

/* ---- the file ---- */

static enum status read_file(struct manifest *m, const char *path)
{
    struct buffer content = { 0 };
    enum status status = whole_file_read(path, MANIFEST_SIZE_MAX, &content);
    if (status == STATUS_OK && !buffer_add(&content, (struct bytes){ (const uint8_t *)"", 1 }))
        status = STATUS_NO_MEMORY;
    m->content = (char *)content.at;
    m->len = content.len - (status == STATUS_OK);
    if (status == STATUS_IO)
        return fail(m, STATUS_IO, "%s", strerror(errno));
    if (status == STATUS_REFUSED)
        return fail(m, STATUS_USAGE, "is larger than %d bytes", MANIFEST_SIZE_MAX);
    if (status == STATUS_OK && memchr(m->content, '\0', m->len) != NULL)
        return fail(m, STATUS_USAGE, "holds a NUL: no text");
    return status;
}

/* ---- fields (RFC 4180 2) ---- */

/* The end of a line at the cursor: LF or CRLF; its length, 0 when there is none. */
static size_t line_end(const struct manifest *m, size_t at)
{
    if (m->content[at] == '\r' && m->content[at + 1] == '\n')
        return 2;
    return m->content[at] == '\n' ? 1 : 0;
}

/* A field in quotes, up to behind the second of them. */
static enum status read_quoted(struct manifest *m, struct cursor *c)
{
    size_t first_line = c->line;
    for (c->read++;; c->read++) {
        char byte = m->content[c->read];
        if (c->read == m->len)
            return fail(m, STATUS_USAGE, "line %zu: a quote is not closed", first_line);
        if (byte == '"' && m->content[c->read + 1] != '"')
            break;
        c->read += byte == '"'; /* two stand for one */
        c->line += byte == '\n';
        m->content[c->written++] = byte;
    }
    c->read++;
    if (c->read < m->len && m->content[c->read] != ',' && line_end(m, c->read) == 0)
        return fail(m, STATUS_USAGE, "line %zu: text behind a closing quote", c->line);
    return STATUS_OK;
}

static enum status read_plain(struct manifest *m, struct cursor *c)
{
    for (; c->read < m->len && m->content[c->read] != ',' && line_end(m, c->read) == 0; c->read++) {
        if (m->content[c->read] == '"')
            return fail(m, STATUS_USAGE, "line %zu: a quote inside a field without quotes",
                        c->line);
        m->content[c->written++] = m->content[c->read];
    }
    return STATUS_OK;
}

static enum status add_field(struct manifest *m, const char *field)
{
    if (m->field_count == m->field_capacity) {
        size_t wanted = m->field_capacity > 0 ? m->field_capacity * 2 : 64;
        const char **grown = reallocarray(m->fields, wanted, sizeof *grown);
        if (grown == NULL)
            return STATUS_NO_MEMORY;
        m->fields = grown;
        m->field_capacity = wanted;
    }
    m->fields[m->field_count++] = field;
    return STATUS_OK;
}

/* Reads a field and the comma or the end of the line behind it. */
static enum status read_field(struct manifest *m, struct cursor *c)
{
    size_t start = c->written;
    enum status status = m->content[c->read] == '"' ? read_quoted(m, c) : read_plain(m, c);
    if (status != STATUS_OK)
        return status;
    size_t end = line_end(m, c->read);
    c->ends_line = end > 0 || c->read == m->len;
    c->read += c->ends_line ? end : 1;
    c->line += end > 0;
    m->content[c->written++] = '\0'; /* over the comma or the end of the line, at the most */
    return add_field(m, m->content + start);
}

/* Reads the fields of a line; *ret_count is 0 for an empty one, which is left out. */
static enum status read_line(struct manifest *m, struct cursor *c, size_t *ret_count)
{
    size_t first = m->field_count;
    bool is_empty = line_end(m, c->read) > 0;
    do {
        enum status status = read_field(m, c);
        if (status != STATUS_OK)
            return status;
    } while (!c->ends_line);
    if (is_empty)
        m->field_count = first;
    *ret_count = m->field_count - first;
    return STATUS_OK;
}

/* ---- lines ---- */

static bool is_name(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        if (!isalpha((unsigned char)*at) && *at != '_' &&
            (at == text || !isdigit((unsigned char)*at)))
            return false;
    }
    return text[0] != '\0';
}

/* The first line: names, each once, glob among them. */
static enum status check_names(struct manifest *m, size_t line)
{
    m->glob_column = MANIFEST_COLUMNS_MAX;
    if (m->columns > MANIFEST_COLUMNS_MAX)
        return fail(m, STATUS_USAGE, "line %zu: more than %d columns", line, MANIFEST_COLUMNS_MAX);
    for (size_t i = 0; i < m->columns; i++) {
        if (!is_name(m->fields[i]))
            return fail(m, STATUS_USAGE,
                        "line %zu: column %zu is not named by letters, digits and _", line, i + 1);
        for (size_t k = 0; k < i; k++)
            if (strcmp(m->fields[i], m->fields[k]) == 0)
                return fail(m, STATUS_USAGE, "line %zu: two columns are named %.64s", line,
                            m->fields[i]);
        if (strcmp(m->fields[i], "glob") == 0)
            m->glob_column = i;
    }
    if (m->glob_column == MANIFEST_COLUMNS_MAX)
        return fail(m, STATUS_USAGE, "line %zu: no column is named glob", line);
    return STATUS_OK;
}

static enum status check_line(struct manifest *m, size_t line, size_t count)
{
    if (m->columns == 0) {
        m->columns = count;
        return check_names(m, line);
    }
    if (count != m->columns)
        return fail(m, STATUS_USAGE, "line %zu: %zu fields, but %zu columns are named", line, count,
                    m->columns);
    if (m->fields[m->field_count - count + m->glob_column][0] == '\0')
        return fail(m, STATUS_USAGE, "line %zu: the glob is empty", line);
    return STATUS_OK;
}

static enum status read_lines(struct manifest *m)
{
    struct cursor c = { .line = 1 };
    if (strncmp(m->content, "\xef\xbb\xbf", 3) == 0)
        c.read = 3; /* a byte order mark, as spreadsheets write it */
    while (c.read < m->len) {
        size_t line = c.line, count;
        enum status status = read_line(m, &c, &count);
        if (status == STATUS_OK && count > 0)
            status = check_line(m, line, count);
        if (status != STATUS_OK)
            return status;
    }
    if (m->columns == 0)
        return fail(m, STATUS_USAGE, "is empty: its first line must name the columns");
    return STATUS_OK;
}

/* ---- globs ---- */

/* Takes the last element of a path off its end. */
static struct bytes last_element(struct bytes *path)
{
    while (path->len > 0 && path->at[path->len - 1] == '/')
        path->len--;
    size_t start = path->len;
    while (start > 0 && path->at[start - 1] != '/')
        start--;
    struct bytes element = bytes_after(*path, start);
    path->len = start;
    return element;
}

/* Goes back to the last star only: no more work than one length times the other. */
static bool element_fits(struct bytes glob, struct bytes text)
{
    size_t g = 0, t = 0, star = SIZE_MAX, star_end = 0;
    while (t < text.len) {
        if (g < glob.len && glob.at[g] == '*') {
            star = g++;
            star_end = t;
        } else if (g < glob.len && (glob.at[g] == '?' || glob.at[g] == text.at[t])) {
            g++;
            t++;
        } else if (star != SIZE_MAX) {
            g = star + 1;
            t = ++star_end;
        } else {
            return false;
        }
    }
    while (g < glob.len && glob.at[g] == '*')
        g++;
    return g == glob.len;
}

static bool path_fits(struct bytes glob, struct bytes path)
{
    bool from_root = glob.at[0] == '/';
    for (;;) {
        struct bytes wanted = last_element(&glob);
        if (wanted.len == 0)
            return !from_root || last_element(&path).len == 0;
        if (!element_fits(wanted, last_element(&path)))
            return false;
    }
}

/* ---- labels ---- */

static enum status set_label(const char *name, const char *value, struct labels *labels,
                             struct text *other)
{
    char **field = strcmp(name, "site") == 0     ? &labels->site
                   : strcmp(name, "host") == 0   ? &labels->host
                   : strcmp(name, "region") == 0 ? &labels->region
                                                 : NULL;
    if (field != NULL) {
        assert(*field == NULL); /* no two columns have one name */
        *field = strdup(value);
        return *field != NULL ? STATUS_OK : STATUS_NO_MEMORY;
    }
    text_addf(other, "%s\"%s\":\"", other->len == 0 ? "{" : ",", name);
    text_add_json(other, text_bytes(value));
    text_add(other, "\"");
    return STATUS_OK;
}

static enum status labels_of_line(const struct manifest *m, const char *const *line,
                                  struct labels *ret_labels)
{
    struct labels labels = { 0 };
    struct text other = { 0 };
    enum status status = STATUS_OK;
    for (size_t i = 0; i < m->columns && status == STATUS_OK; i++)
        if (i != m->glob_column && line[i][0] != '\0')
            status = set_label(m->fields[i], line[i], &labels, &other);
    if (other.len > 0)
        text_add(&other, "}");
    labels.other = other.at;
    if (status != STATUS_OK || other.failed) {
        labels_done(&labels);
        return STATUS_NO_MEMORY;
    }
    *ret_labels = labels;
    return STATUS_OK;
}

enum status manifest_labels(const struct manifest *m, const char *path, struct labels *ret_labels)
{
    for (size_t i = m->columns; i < m->field_count; i += m->columns) {
        const char *const *line = &m->fields[i];
        if (path_fits(text_bytes(line[m->glob_column]), text_bytes(path)))
            return labels_of_line(m, line, ret_labels);
    }
    return STATUS_REFUSED;
}

/* ---- opening ---- */

enum status manifest_open(const char *path, struct manifest **ret_manifest)
{
    struct manifest *m = calloc(1, sizeof *m);
    if (m == NULL)
        return STATUS_NO_MEMORY;
    enum status status = read_file(m, path);
    if (status == STATUS_OK)
        status = read_lines(m);
    if (status == STATUS_NO_MEMORY) {
        manifest_close(m);
        return status;
    }
    *ret_manifest = m;
    return status;
}

void manifest_close(struct manifest *m)
{
    if (m == NULL)
        return;
    free(m->fields);
    free(m->content);
    free(m);
}

const char *manifest_error(const struct manifest *m)
{
    return m->error;
}
