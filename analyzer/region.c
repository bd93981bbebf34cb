/* SPDX-License-Identifier: Apache-2.0 */
#include "region.h"

#include "csv.h"
#include "mmdb.h"
#include "prefix.h"
#include "texts.h"
#include "whole_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

enum { ERROR_SIZE = 512 };

/* ---- lines ---- */

static bool is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static bool is_country(const char *text)
{
    return is_letter(text[0]) && is_letter(text[1]) && text[2] == '\0';
}

/* What one line says; neither region nor country is "no location" (RFC 8805 2.1.1). */
struct line {
    struct address first;
    unsigned bits;
    char region[CSV_FIELD_SIZE], country[CSV_FIELD_SIZE];
};

/*
 * Takes the place off a line whose prefix is taken. In a geofeed (RFC 8805 2.1: prefix, country,
 * region, city, postal code) trailing fields may be missing; a second field other than two letters
 * is the region of a "prefix,region" file.
 */
static enum prefix_line take_place(struct bytes *text, struct line *line)
{
    char second[CSV_FIELD_SIZE], third[CSV_FIELD_SIZE];
    if (!csv_field(text, second) || !csv_field(text, third))
        return PREFIX_LINE_BAD;
    if (second[0] != '\0' && !is_country(second)) {
        memcpy(line->region, second, sizeof second);
        return PREFIX_LINE_GOOD;
    }
    for (size_t i = 0; second[i] != '\0'; i++) /* letters: to upper case */
        line->country[i] = (char)(second[i] & ~0x20);
    memcpy(line->region, third[0] != '\0' ? third : line->country, sizeof line->region);
    return PREFIX_LINE_GOOD;
}

/* ---- one file ---- */

struct place {
    const char *region, *country; /* of regions.texts; NULL = not said */
};

/* One file of --clients: either prefixes or a database. */
struct source {
    struct mmdb *database;     /* NULL = prefixes */
    struct prefix_table table; /* its values are indexes of places */
    struct place *places;
    size_t place_count, place_room;
};

struct regions {
    struct source **sources;
    size_t source_count;
    struct texts *texts;
    const char *mmdb_region;
    size_t bad_lines;
    char error[ERROR_SIZE];
};

static void source_close(struct source *s)
{
    if (s == NULL)
        return;
    mmdb_close(s->database);
    prefix_table_done(&s->table);
    free(s->places);
    free(s);
}

/* The index of a place, a new one unless it is that of the line before. */
static bool source_place(struct source *s, struct place place, int32_t *ret_index)
{
    if (s->place_count != 0) {
        const struct place *last = &s->places[s->place_count - 1];
        if (last->region == place.region && last->country == place.country) {
            *ret_index = (int32_t)(s->place_count - 1);
            return true;
        }
    }
    if (s->place_count == s->place_room) {
        size_t room = s->place_room ? 2 * s->place_room : 256;
        struct place *places = realloc(s->places, room * sizeof *places);
        if (places == NULL)
            return false;
        s->places = places;
        s->place_room = room;
    }
    s->places[s->place_count] = place;
    *ret_index = (int32_t)s->place_count++;
    return true;
}

/* Keeps a text when there is one; false without memory. */
static bool keep_text(struct texts *t, const char *text, const char **ret_kept)
{
    *ret_kept = NULL;
    return text[0] == '\0' || (*ret_kept = texts_keep(t, text)) != NULL;
}

static bool source_add_line(struct source *s, struct texts *texts, struct prefixes *prefixes,
                            const struct line *line)
{
    struct place place = { 0 };
    int32_t index = 0;
    return keep_text(texts, line->region, &place.region) &&
           keep_text(texts, line->country, &place.country) && source_place(s, place, &index) &&
           prefixes_add(prefixes, &line->first, line->bits, index);
}

struct line_counts {
    size_t good, bad;
};

static bool source_read_lines(struct source *s, struct texts *texts, struct prefixes *prefixes,
                              struct bytes text, struct line_counts *counts)
{
    bool first_line = true;
    text = csv_text(text);
    while (text.len != 0) {
        struct line line = { 0 };
        struct bytes rest = csv_line(&text);
        enum prefix_line kind = prefix_take(&rest, first_line, &line.first, &line.bits);
        first_line = first_line && kind == PREFIX_LINE_EMPTY;
        if (kind == PREFIX_LINE_GOOD)
            kind = take_place(&rest, &line);
        if (kind == PREFIX_LINE_BAD)
            counts->bad++;
        if (kind != PREFIX_LINE_GOOD)
            continue;
        counts->good++;
        if (!source_add_line(s, texts, prefixes, &line))
            return false;
    }
    return true;
}

/* ---- sets of files ---- */

struct regions *regions_open(const char *mmdb_region)
{
    struct regions *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->mmdb_region = mmdb_region;
    r->texts = texts_open();
    if (r->texts == NULL) {
        regions_close(r);
        return NULL;
    }
    return r;
}

void regions_close(struct regions *r)
{
    if (r == NULL)
        return;
    for (size_t i = 0; i < r->source_count; i++)
        source_close(r->sources[i]);
    free(r->sources);
    texts_close(r->texts);
    free(r);
}

static enum status fail(struct regions *r, enum status status, const char *name, const char *reason)
{
    snprintf(r->error, sizeof r->error, "%s: %s", name, reason);
    return status;
}

static enum status no_memory(struct regions *r, const char *name)
{
    return fail(r, STATUS_NO_MEMORY, name, "not enough memory");
}

/* Appends a source, which the set owns from then on, also when this fails. */
static enum status add_source(struct regions *r, struct source *s, const char *name)
{
    struct source **sources = realloc(r->sources, (r->source_count + 1) * sizeof *sources);
    if (sources == NULL) {
        source_close(s);
        return no_memory(r, name);
    }
    r->sources = sources;
    r->sources[r->source_count++] = s;
    return STATUS_OK;
}

enum status regions_add_text(struct regions *r, const char *name, struct bytes text)
{
    struct source *s = calloc(1, sizeof *s);
    struct prefixes prefixes = { 0 };
    struct line_counts counts = { 0 };
    bool done = s != NULL && source_read_lines(s, r->texts, &prefixes, text, &counts) &&
                prefix_table_build(&prefixes, &s->table);
    prefixes_done(&prefixes);
    if (!done) {
        source_close(s);
        return no_memory(r, name);
    }
    if (counts.good == 0 && counts.bad != 0) {
        source_close(s);
        return fail(r, STATUS_REFUSED, name, "no line is an address prefix with a region");
    }
    r->bad_lines += counts.bad;
    return add_source(r, s, name);
}

static enum status add_csv(struct regions *r, const char *path)
{
    struct buffer content = { 0 };
    enum status status = whole_file_read(path, CSV_FILE_MAX, &content);
    if (status == STATUS_OK)
        status = regions_add_text(r, path, (struct bytes){ content.at, content.len });
    else if (status == STATUS_IO)
        fail(r, status, path, strerror(errno));
    else if (status == STATUS_REFUSED)
        fail(r, status, path, "larger than 256 MB");
    else
        no_memory(r, path);
    buffer_done(&content);
    return status;
}

static enum status add_database(struct regions *r, const char *path)
{
    const char *reason = "";
    struct source *s = calloc(1, sizeof *s);
    if (s == NULL)
        return no_memory(r, path);
    enum status status = mmdb_open(path, r->mmdb_region, &s->database, &reason);
    if (status == STATUS_OK)
        return add_source(r, s, path);
    source_close(s);
    return status == STATUS_NO_MEMORY ? no_memory(r, path) : fail(r, status, path, reason);
}

static bool is_database_name(const char *path)
{
    const char *suffix = strrchr(path, '.');
    return suffix != NULL && strcasecmp(suffix, ".mmdb") == 0;
}

enum status regions_add_file(struct regions *r, const char *path)
{
    return is_database_name(path) ? add_database(r, path) : add_csv(r, path);
}

const char *regions_error(const struct regions *r)
{
    return r->error;
}

size_t regions_bad_lines(const struct regions *r)
{
    return r->bad_lines;
}

/* ---- looking up ---- */

/* Without memory for a text the database says nothing: the row goes on without a region. */
static bool find_in_database(const struct source *s, struct texts *texts, const struct address *a,
                             unsigned bits, struct region *ret_region)
{
    unsigned known_bits;
    struct mmdb_place place = mmdb_find(s->database, a, &known_bits);
    (void)keep_text(texts, place.country, &ret_region->country);
    (void)keep_text(texts, place.region, &ret_region->region);
    ret_region->asn = place.asn;
    return known_bits <= bits;
}

static bool find_in_prefixes(const struct source *s, const struct address *a, unsigned bits,
                             struct region *ret_region)
{
    int32_t index;
    bool is_one = prefix_table_find_all(&s->table, a, bits, &index);
    if (is_one && index != PREFIX_NONE)
        *ret_region = (struct region){ .region = s->places[index].region,
                                       .country = s->places[index].country };
    return is_one;
}

bool regions_find_all(const struct regions *r, const struct address *first, unsigned bits,
                      struct region *ret_region)
{
    struct region answer = { 0 };
    bool is_one = true;
    for (size_t i = 0; i < r->source_count && is_one; i++) {
        const struct source *s = r->sources[i];
        struct region found = { 0 };
        is_one = s->database != NULL ? find_in_database(s, r->texts, first, bits, &found)
                                     : find_in_prefixes(s, first, bits, &found);
        answer.region = answer.region != NULL ? answer.region : found.region;
        answer.country = answer.country != NULL ? answer.country : found.country;
        answer.asn = answer.asn != 0 ? answer.asn : found.asn;
        if (answer.region != NULL && answer.country != NULL && answer.asn != 0)
            break;
    }
    if (is_one)
        *ret_region = answer;
    return is_one;
}

struct region regions_find(const struct regions *r, const struct address *a)
{
    struct region found = { 0 };
    (void)regions_find_all(r, a, 128, &found);
    return found;
}
