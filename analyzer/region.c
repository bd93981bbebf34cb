/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prefixes are flattened once: where each stretch of addresses with one answer begins, in order.
 * The longest prefix was decided then, so a lookup is a binary search without any nesting.
 *
 *     10.0.0.0/8      |---------- a ----------|        given
 *     10.1.0.0/16         |-- b --|
 *
 *              none   a   b       a           none     kept: five starts
 */
#include "region.h"

#include "hash.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#ifdef HAVE_MAXMINDDB
#include <arpa/inet.h>
#include <maxminddb.h>
#endif

enum {
    FIELD_SIZE = 64, /* of prefix, country, region with terminator; longer ones are wrong */
    ERROR_SIZE = 512,
    FILE_SIZE_MAX = 256 << 20, /* far above any geofeed: all published ones together have 50 MB */
};

/* ---- texts, each kept once ---- */

struct texts {
    pthread_mutex_t lock; /* databases add texts while several threads look addresses up */
    uint64_t seed;
    char **slots; /* open addressing, at most half full; NULL = free */
    size_t slot_count, used;
};

static bool texts_init(struct texts *t)
{
    *t = (struct texts){ .seed = hash_random_seed(), .slot_count = 256 };
    t->slots = calloc(t->slot_count, sizeof *t->slots);
    return t->slots != NULL && pthread_mutex_init(&t->lock, NULL) == 0;
}

static void texts_done(struct texts *t)
{
    if (t->slots == NULL)
        return;
    for (size_t i = 0; i < t->slot_count; i++)
        free(t->slots[i]);
    free(t->slots);
    pthread_mutex_destroy(&t->lock);
}

static char **texts_slot(const struct texts *t, char **slots, size_t slot_count, const char *text)
{
    struct bytes b = { (const uint8_t *)text, strlen(text) };
    size_t i = (size_t)hash_table(b, t->seed) & (slot_count - 1);
    while (slots[i] != NULL && strcmp(slots[i], text) != 0)
        i = (i + 1) & (slot_count - 1);
    return &slots[i];
}

static bool texts_grow(struct texts *t)
{
    size_t count = 2 * t->slot_count;
    char **slots = calloc(count, sizeof *slots);
    if (slots == NULL)
        return false;
    for (size_t i = 0; i < t->slot_count; i++)
        if (t->slots[i] != NULL)
            *texts_slot(t, slots, count, t->slots[i]) = t->slots[i];
    free(t->slots);
    t->slots = slots;
    t->slot_count = count;
    return true;
}

static const char *texts_keep_locked(struct texts *t, const char *text)
{
    if (2 * (t->used + 1) > t->slot_count && !texts_grow(t))
        return NULL;
    char **slot = texts_slot(t, t->slots, t->slot_count, text);
    if (*slot == NULL && (*slot = strdup(text)) != NULL)
        t->used++;
    return *slot;
}

/* The one copy of a text, made when it is new; NULL without memory. */
static const char *texts_keep(struct texts *t, const char *text)
{
    pthread_mutex_lock(&t->lock);
    const char *kept = texts_keep_locked(t, text);
    pthread_mutex_unlock(&t->lock);
    return kept;
}

/* ---- prefixes to intervals ---- */

/* An address as a number, so that comparing is cheap and adding one is possible. */
struct number {
    uint64_t high, low;
};

static struct number number_of(const struct address *a)
{
    struct reader r = reader_of((struct bytes){ a->octet, sizeof a->octet });
    uint64_t high = reader_be(&r, 8);
    return (struct number){ high, reader_be(&r, 8) };
}

static bool number_less(struct number a, struct number b)
{
    return a.high != b.high ? a.high < b.high : a.low < b.low;
}

static bool number_equal(struct number a, struct number b)
{
    return a.high == b.high && a.low == b.low;
}

/* The last address of the prefix that starts at first. */
static struct number number_last(struct number first, unsigned bits)
{
    uint64_t high_host = bits >= 64 ? 0 : UINT64_MAX >> bits;
    uint64_t low_host = bits >= 128 ? 0 : bits <= 64 ? UINT64_MAX : UINT64_MAX >> (bits - 64);
    return (struct number){ first.high | high_host, first.low | low_host };
}

/* The number after; false behind the last address of all. */
static bool number_next(struct number n, struct number *ret_next)
{
    if (n.high == UINT64_MAX && n.low == UINT64_MAX)
        return false;
    *ret_next = (struct number){ n.high + (n.low == UINT64_MAX), n.low + 1 };
    return true;
}

static const uint32_t VALUE_NONE = UINT32_MAX;

struct prefix {
    struct number first;
    uint32_t value; /* what the caller wants to know of it */
    uint32_t order; /* as it came: of equal prefixes the last wins */
    uint8_t bits;   /* of 128 */
};

struct prefixes {
    struct prefix *items;
    size_t count, room;
};

struct intervals {
    struct number *starts; /* ascending; each runs to the next */
    uint32_t *values;
    size_t count;
};

static bool prefixes_add(struct prefixes *p, const struct address *first, unsigned bits,
                         uint32_t value)
{
    if (p->count == UINT32_MAX)
        return false;
    if (p->count == p->room) {
        size_t room = p->room ? 2 * p->room : 1024;
        struct prefix *items = realloc(p->items, room * sizeof *items);
        if (items == NULL)
            return false;
        p->items = items;
        p->room = room;
    }
    p->items[p->count] = (struct prefix){ .first = number_of(first),
                                          .value = value,
                                          .order = (uint32_t)p->count,
                                          .bits = (uint8_t)bits };
    p->count++;
    return true;
}

/* Outer before inner, earlier before later. */
static int prefix_compare(const void *left, const void *right)
{
    const struct prefix *a = left, *b = right;
    if (!number_equal(a->first, b->first))
        return number_less(a->first, b->first) ? -1 : 1;
    if (a->bits != b->bits)
        return a->bits < b->bits ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static void intervals_add(struct intervals *v, struct number start, uint32_t value)
{
    if (v->count != 0 && number_equal(v->starts[v->count - 1], start)) {
        v->values[v->count - 1] = value;
        return;
    }
    uint32_t before = v->count != 0 ? v->values[v->count - 1] : VALUE_NONE;
    if (before == value)
        return;
    v->starts[v->count] = start;
    v->values[v->count] = value;
    v->count++;
}

/* The prefixes around the one just read, outermost first; they nest, so 129 lengths are enough. */
struct nest {
    const struct prefix *open[129];
    size_t depth;
};

/* Closes the innermost prefix: behind its end the one around it goes on. */
static void nest_close(struct nest *n, struct intervals *v)
{
    const struct prefix *inner = n->open[--n->depth];
    struct number after;
    if (number_next(number_last(inner->first, inner->bits), &after))
        intervals_add(v, after, n->depth ? n->open[n->depth - 1]->value : VALUE_NONE);
}

static void nest_open(struct nest *n, struct intervals *v, const struct prefix *p)
{
    while (n->depth != 0) {
        const struct prefix *inner = n->open[n->depth - 1];
        bool same = number_equal(inner->first, p->first) && inner->bits == p->bits;
        if (!same && !number_less(number_last(inner->first, inner->bits), p->first))
            break;
        if (same)
            n->depth--;
        else
            nest_close(n, v);
    }
    n->open[n->depth++] = p;
    intervals_add(v, p->first, p->value);
}

static void intervals_done(struct intervals *v)
{
    free(v->starts);
    free(v->values);
    *v = (struct intervals){ 0 };
}

/* Sorts and flattens; false without memory. */
static bool intervals_build(struct prefixes *p, struct intervals *ret_intervals)
{
    size_t most = 2 * p->count + 1;
    struct intervals v = { .starts = malloc(most * sizeof *v.starts),
                           .values = malloc(most * sizeof *v.values) };
    if (v.starts == NULL || v.values == NULL) {
        intervals_done(&v);
        return false;
    }
    if (p->count != 0)
        qsort(p->items, p->count, sizeof *p->items, prefix_compare);
    struct nest nest = { 0 };
    for (size_t i = 0; i < p->count; i++)
        nest_open(&nest, &v, &p->items[i]);
    while (nest.depth != 0)
        nest_close(&nest, &v);
    *ret_intervals = v;
    return true;
}

static uint32_t intervals_find(const struct intervals *v, const struct address *a)
{
    struct number wanted = number_of(a);
    size_t low = 0, high = v->count; /* starts before low are <= wanted, those from high are > */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (number_less(wanted, v->starts[middle]))
            high = middle;
        else
            low = middle + 1;
    }
    return low != 0 ? v->values[low - 1] : VALUE_NONE;
}

/* IPv4 is kept as mapped IPv6: the default route of IPv6 must not answer for it. */
static bool prefixes_shield_ipv4(struct prefixes *p)
{
    struct address mapped = address_of_ipv4((const uint8_t[4]){ 0 });
    return prefixes_add(p, &mapped, 96, VALUE_NONE);
}

/* ---- lines of CSV ---- */

/* Takes the next line off the rest, without its end; CR, LF and CR LF end lines. */
static struct bytes take_line(struct bytes *rest)
{
    size_t len = 0;
    while (len < rest->len && rest->at[len] != '\n' && rest->at[len] != '\r')
        len++;
    struct bytes line = bytes_first(*rest, len);
    *rest = bytes_after(*rest, len < rest->len ? len + 1 : len);
    return line;
}

/* The locale has no say in what a file means, hence not those of ctype.h. */
static bool is_blank(int c)
{
    return c == ' ' || c == '\t';
}

static bool is_printable(int c)
{
    return c >= ' ' && c <= '~';
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/*
 * Takes the next field of a line (RFC 4180, blanks around it dropped) as printable ASCII text; a
 * '#' outside of quotes ends the line. False when it is too long or holds other bytes; the field is
 * taken all the same.
 */
static bool take_field(struct bytes *line, char field[FIELD_SIZE])
{
    size_t len = 0, kept = 0; /* kept: up to the last character that is no trailing blank */
    bool quoted = false, good = true;
    size_t at = 0;
    for (; at < line->len; at++) {
        uint8_t c = line->at[at];
        if (c == '"' && quoted && at + 1 < line->len && line->at[at + 1] == '"')
            at++; /* "" inside of quotes is one */
        else if (c == '"') {
            quoted = !quoted;
            continue;
        }
        if (!quoted && (c == ',' || c == '#'))
            break;
        if (is_blank(c) && len == 0)
            continue;
        if (len == FIELD_SIZE - 1 || (!is_printable(c) && !is_blank(c))) {
            good = false;
            continue;
        }
        field[len++] = (char)c;
        if (!is_blank(c))
            kept = len;
    }
    field[kept] = '\0';
    bool more = at < line->len && line->at[at] == ',';
    *line = more ? bytes_after(*line, at + 1) : (struct bytes){ 0 };
    return good && !quoted;
}

/* Reads "192.0.2.0/24" or a single address; false also when bits behind the prefix are set. */
static bool parse_prefix(const char *text, struct address *ret_first, unsigned *ret_bits)
{
    char address[FIELD_SIZE];
    const char *slash = strchr(text, '/');
    size_t len = slash != NULL ? (size_t)(slash - text) : strlen(text);
    if (len >= sizeof address)
        return false;
    memcpy(address, text, len);
    address[len] = '\0';
    struct address first;
    if (!address_parse(address, &first))
        return false;

    bool ipv4 = strchr(address, ':') == NULL;
    unsigned most = ipv4 ? 32 : 128;
    unsigned bits = most;
    if (slash != NULL) {
        char *end;
        if (!is_digit(slash[1]))
            return false;
        unsigned long number = strtoul(slash + 1, &end, 10);
        if (*end != '\0' || number > most)
            return false;
        bits = (unsigned)number;
    }
    bits += ipv4 ? 96 : 0;
    struct address cut = address_prefix(&first, bits);
    if (!address_equal(&cut, &first))
        return false;
    *ret_first = first;
    *ret_bits = bits;
    return true;
}

/* Whether the first field of a file's first line names a column instead of a prefix. */
static bool is_column_name(const char *field)
{
    if (!is_letter(field[0]))
        return false;
    return strchr(field, '.') == NULL && strchr(field, ':') == NULL && strchr(field, '/') == NULL;
}

static bool is_country(const char *text)
{
    return is_letter(text[0]) && is_letter(text[1]) && text[2] == '\0';
}

enum line_kind { LINE_EMPTY, LINE_HEADER, LINE_BAD, LINE_GOOD };

/* What one line says; neither region nor country is "no location" (RFC 8805 2.1.1). */
struct line {
    struct address first;
    unsigned bits;
    char region[FIELD_SIZE], country[FIELD_SIZE];
};

/* Takes the prefix off a line. */
static enum line_kind take_prefix(struct bytes *text, bool first_line, struct line *line)
{
    char field[FIELD_SIZE];
    bool good = take_field(text, field);
    if (good && field[0] == '\0' && text->len == 0)
        return LINE_EMPTY;
    if (good && first_line && is_column_name(field))
        return LINE_HEADER;
    return good && parse_prefix(field, &line->first, &line->bits) ? LINE_GOOD : LINE_BAD;
}

/*
 * Takes the place off a line whose prefix is taken. In a geofeed (RFC 8805 2.1: prefix, country,
 * region, city, postal code) trailing fields may be missing; a second field other than two letters
 * is the region of a "prefix,region" file.
 */
static enum line_kind take_place(struct bytes *text, struct line *line)
{
    char second[FIELD_SIZE], third[FIELD_SIZE];
    if (!take_field(text, second) || !take_field(text, third))
        return LINE_BAD;
    if (second[0] != '\0' && !is_country(second)) {
        memcpy(line->region, second, sizeof second);
        return LINE_GOOD;
    }
    for (size_t i = 0; second[i] != '\0'; i++) /* letters: to upper case */
        line->country[i] = (char)(second[i] & ~0x20);
    memcpy(line->region, third[0] != '\0' ? third : line->country, sizeof line->region);
    return LINE_GOOD;
}

static struct bytes without_byte_order_mark(struct bytes text)
{
    static const uint8_t MARK[] = { 0xef, 0xbb, 0xbf };
    bool marked = bytes_equal(bytes_first(text, sizeof MARK), (struct bytes){ MARK, sizeof MARK });
    return marked ? bytes_after(text, sizeof MARK) : text;
}

/* ---- files ---- */

/* Reads a whole file to *ret_content, which the caller frees. errno tells of STATUS_IO. */
static enum status read_file(const char *path, uint8_t **ret_content, size_t *ret_len)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return STATUS_IO;
    uint8_t *content = NULL;
    size_t len = 0, room = 0;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && !feof(file)) {
        if (len == room) {
            room = room ? 2 * room : 1 << 16;
            uint8_t *larger = realloc(content, room);
            if (larger == NULL) {
                status = STATUS_NO_MEMORY;
                break;
            }
            content = larger;
        }
        len += fread(content + len, 1, room - len, file);
        if (ferror(file))
            status = STATUS_IO;
        else if (len > FILE_SIZE_MAX)
            status = STATUS_REFUSED;
    }
    int reason = errno;
    fclose(file);
    if (status != STATUS_OK) {
        free(content);
        errno = reason;
        return status;
    }
    *ret_content = content;
    *ret_len = len;
    return STATUS_OK;
}

/* ---- sets of regions ---- */

struct place {
    const char *region, *country; /* of regions.texts; NULL = not said */
};

/* One file of --clients: either prefixes or a database. */
struct source {
    struct intervals intervals; /* their values are indexes of places */
    struct place *places;
    size_t place_count, place_room;
#ifdef HAVE_MAXMINDDB
    MMDB_s database;
    bool is_database;
#endif
};

struct regions {
    struct source **sources;
    size_t source_count;
    struct texts *texts;
    size_t bad_lines;
    char error[ERROR_SIZE];
};

static void source_close(struct source *s)
{
    if (s == NULL)
        return;
#ifdef HAVE_MAXMINDDB
    if (s->is_database)
        MMDB_close(&s->database);
#endif
    intervals_done(&s->intervals);
    free(s->places);
    free(s);
}

/* The index of a place, a new one unless it is that of the line before. */
static bool source_place(struct source *s, struct place place, uint32_t *ret_index)
{
    if (s->place_count != 0) {
        const struct place *last = &s->places[s->place_count - 1];
        if (last->region == place.region && last->country == place.country) {
            *ret_index = (uint32_t)(s->place_count - 1);
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
    *ret_index = (uint32_t)s->place_count++;
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
    struct place place;
    uint32_t index = 0;
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
    text = without_byte_order_mark(text);
    while (text.len != 0) {
        struct line line = { 0 };
        struct bytes rest = take_line(&text);
        enum line_kind kind = take_prefix(&rest, first_line, &line);
        first_line = first_line && kind == LINE_EMPTY;
        if (kind == LINE_GOOD)
            kind = take_place(&rest, &line);
        if (kind == LINE_BAD)
            counts->bad++;
        if (kind != LINE_GOOD)
            continue;
        counts->good++;
        if (!source_add_line(s, texts, prefixes, &line))
            return false;
    }
    return true;
}

struct regions *regions_open(void)
{
    struct regions *r = calloc(1, sizeof *r);
    if (r == NULL)
        return NULL;
    r->texts = calloc(1, sizeof *r->texts);
    if (r->texts == NULL || !texts_init(r->texts)) {
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
    if (r->texts != NULL)
        texts_done(r->texts);
    free(r->texts);
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
    bool done = s != NULL && prefixes_shield_ipv4(&prefixes) &&
                source_read_lines(s, r->texts, &prefixes, text, &counts) &&
                intervals_build(&prefixes, &s->intervals);
    free(prefixes.items);
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
    uint8_t *content = NULL;
    size_t len = 0;
    enum status status = read_file(path, &content, &len);
    if (status == STATUS_IO)
        return fail(r, status, path, strerror(errno));
    if (status == STATUS_REFUSED)
        return fail(r, status, path, "larger than 256 MB");
    if (status != STATUS_OK)
        return no_memory(r, path);
    status = regions_add_text(r, path, (struct bytes){ content, len });
    free(content);
    return status;
}

const char *regions_error(const struct regions *r)
{
    return r->error;
}

size_t regions_bad_lines(const struct regions *r)
{
    return r->bad_lines;
}

static struct region find_in_prefixes(const struct source *s, const struct address *a)
{
    uint32_t index = intervals_find(&s->intervals, a);
    if (index == VALUE_NONE)
        return (struct region){ 0 };
    return (struct region){ .region = s->places[index].region,
                            .country = s->places[index].country };
}

/* ---- MaxMind databases ---- */

#ifdef HAVE_MAXMINDDB

enum { DATABASE_TEXT_SIZE = 128 }; /* names of cities fit; longer ones are cut */

static enum status add_database(struct regions *r, const char *path)
{
    struct source *s = calloc(1, sizeof *s);
    if (s == NULL)
        return no_memory(r, path);
    int error = MMDB_open(path, MMDB_MODE_MMAP, &s->database);
    if (error != MMDB_SUCCESS) {
        int reason = errno;
        source_close(s);
        if (error == MMDB_FILE_OPEN_ERROR || error == MMDB_IO_ERROR)
            return fail(r, STATUS_IO, path, strerror(reason));
        return fail(r, STATUS_REFUSED, path, MMDB_strerror(error));
    }
    s->is_database = true;
    return add_source(r, s, path);
}

static MMDB_lookup_result_s database_lookup(const MMDB_s *database, const struct address *a)
{
    int error;
    if (address_is_ipv4(a)) {
        struct sockaddr_in v4 = { .sin_family = AF_INET };
        memcpy(&v4.sin_addr, a->octet + 12, sizeof v4.sin_addr);
        return MMDB_lookup_sockaddr(database, (const struct sockaddr *)&v4, &error);
    }
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    memcpy(&v6.sin6_addr, a->octet, sizeof v6.sin6_addr);
    return MMDB_lookup_sockaddr(database, (const struct sockaddr *)&v6, &error);
}

/* Where the databases keep a value, from the usual place to those of flat layouts. */
typedef const char *const database_path[4];

static const database_path COUNTRY_CODE[] = { { "country", "iso_code", NULL },
                                              { "registered_country", "iso_code", NULL },
                                              { "country_code", NULL },
                                              { "country", NULL } };
static const database_path SUBDIVISION_CODE[] = { { "subdivisions", "0", "iso_code", NULL },
                                                  { "region_code", NULL } };
static const database_path PLACE_NAME[] = { { "subdivisions", "0", "names", NULL },
                                            { "state1", NULL },
                                            { "region", NULL },
                                            { "city", "names", "en", NULL },
                                            { "city", NULL } };
static const database_path AS_NUMBER[] = { { "autonomous_system_number", NULL },
                                           { "traits", "autonomous_system_number", NULL },
                                           { "asn", NULL } };

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static bool database_value(MMDB_entry_s *entry, const database_path path, MMDB_entry_data_s *ret)
{
    return MMDB_aget_value(entry, ret, path) == MMDB_SUCCESS && ret->has_data;
}

/* The first text at one of the places; empty without. */
static void database_text(MMDB_entry_s *entry, const database_path *paths, size_t path_count,
                          char text[DATABASE_TEXT_SIZE])
{
    text[0] = '\0';
    for (size_t i = 0; i < path_count && text[0] == '\0'; i++) {
        MMDB_entry_data_s data;
        if (!database_value(entry, paths[i], &data) || data.type != MMDB_DATA_TYPE_UTF8_STRING)
            continue;
        size_t len =
            data.data_size < DATABASE_TEXT_SIZE - 1 ? data.data_size : DATABASE_TEXT_SIZE - 1;
        memcpy(text, data.utf8_string, len);
        text[len] = '\0';
    }
}

/* AS numbers are numbers, or texts as "AS64500". */
static int64_t database_as_number(MMDB_entry_s *entry)
{
    for (size_t i = 0; i < COUNT_OF(AS_NUMBER); i++) {
        MMDB_entry_data_s data;
        if (!database_value(entry, AS_NUMBER[i], &data))
            continue;
        if (data.type == MMDB_DATA_TYPE_UINT32)
            return data.uint32;
        if (data.type != MMDB_DATA_TYPE_UTF8_STRING || data.data_size < 3 || data.data_size > 12)
            continue;
        char text[16] = "";
        memcpy(text, data.utf8_string, data.data_size);
        return strtoll(text + (text[0] == 'A' && text[1] == 'S' ? 2 : 0), NULL, 10);
    }
    return 0;
}

/* "DE-HE" where the database knows subdivisions, else the name it has, else the country. */
static void database_region(MMDB_entry_s *entry, const char *country, char text[DATABASE_TEXT_SIZE])
{
    char code[DATABASE_TEXT_SIZE];
    database_text(entry, SUBDIVISION_CODE, COUNT_OF(SUBDIVISION_CODE), code);
    if (code[0] != '\0' && country[0] != '\0')
        snprintf(text, DATABASE_TEXT_SIZE, "%.2s-%.3s", country, code);
    else
        database_text(entry, PLACE_NAME, COUNT_OF(PLACE_NAME), text);
    if (text[0] == '\0')
        snprintf(text, DATABASE_TEXT_SIZE, "%s", country);
}

static struct region find_in_database(const struct source *s, struct texts *texts,
                                      const struct address *a)
{
    MMDB_lookup_result_s found = database_lookup(&s->database, a);
    struct region region = { 0 };
    if (!found.found_entry)
        return region;
    char country[DATABASE_TEXT_SIZE], place[DATABASE_TEXT_SIZE];
    database_text(&found.entry, COUNTRY_CODE, COUNT_OF(COUNTRY_CODE), country);
    if (!is_country(country))
        country[0] = '\0';
    database_region(&found.entry, country, place);
    /* Without memory for a text the database says nothing: the row goes on without a region. */
    (void)keep_text(texts, country, &region.country);
    (void)keep_text(texts, place, &region.region);
    region.asn = database_as_number(&found.entry);
    return region;
}

const char *regions_mmdb_version(void)
{
    return MMDB_lib_version();
}

#else

static enum status add_database(struct regions *r, const char *path)
{
    return fail(r, STATUS_REFUSED, path, "this program was built without libmaxminddb");
}

const char *regions_mmdb_version(void)
{
    return NULL;
}

#endif

static bool is_database_name(const char *path)
{
    const char *suffix = strrchr(path, '.');
    return suffix != NULL && strcasecmp(suffix, ".mmdb") == 0;
}

enum status regions_add_file(struct regions *r, const char *path)
{
    return is_database_name(path) ? add_database(r, path) : add_csv(r, path);
}

static struct region source_find(const struct source *s, struct texts *texts,
                                 const struct address *a)
{
#ifdef HAVE_MAXMINDDB
    if (s->is_database)
        return find_in_database(s, texts, a);
#else
    (void)texts;
#endif
    return find_in_prefixes(s, a);
}

struct region regions_find(const struct regions *r, const struct address *a)
{
    struct region answer = { 0 };
    for (size_t i = 0; i < r->source_count; i++) {
        struct region found = source_find(r->sources[i], r->texts, a);
        if (answer.region == NULL) {
            answer.region = found.region;
            answer.country = found.country;
        }
        if (answer.asn == 0)
            answer.asn = found.asn;
        if (answer.region != NULL && answer.asn != 0)
            break;
    }
    return answer;
}

/* ---- sets of prefixes ---- */

struct prefix_set {
    struct intervals intervals;
};

/* Adds every field of a list; false when one of them is no prefix. */
static bool add_list(struct prefixes *prefixes, const char *list, bool *ret_no_memory)
{
    struct bytes rest = { (const uint8_t *)list, strlen(list) };
    while (rest.len != 0) {
        char field[FIELD_SIZE];
        struct address first;
        unsigned bits;
        if (!take_field(&rest, field) || !parse_prefix(field, &first, &bits))
            return false;
        if (!prefixes_add(prefixes, &first, bits, 0)) {
            *ret_no_memory = true;
            return false;
        }
    }
    return true;
}

/* Adds the first field of every line. A set that decides what is ours may not be read in part. */
static enum status add_lines(struct prefixes *prefixes, struct bytes text)
{
    bool first_line = true;
    text = without_byte_order_mark(text);
    while (text.len != 0) {
        struct line line = { 0 };
        struct bytes rest = take_line(&text);
        enum line_kind kind = take_prefix(&rest, first_line, &line);
        first_line = first_line && kind == LINE_EMPTY;
        if (kind == LINE_BAD)
            return STATUS_REFUSED;
        if (kind == LINE_GOOD && !prefixes_add(prefixes, &line.first, line.bits, 0))
            return STATUS_NO_MEMORY;
    }
    return STATUS_OK;
}

static enum status read_set(struct prefixes *prefixes, const char *list_or_file)
{
    size_t before = prefixes->count;
    bool no_memory = false;
    if (add_list(prefixes, list_or_file, &no_memory))
        return STATUS_OK;
    if (no_memory)
        return STATUS_NO_MEMORY;
    prefixes->count = before;
    uint8_t *content = NULL;
    size_t len = 0;
    enum status status = read_file(list_or_file, &content, &len);
    if (status == STATUS_OK)
        status = add_lines(prefixes, (struct bytes){ content, len });
    free(content);
    return status;
}

enum status prefix_set_open(const char *list_or_file, struct prefix_set **ret_set)
{
    struct prefixes prefixes = { 0 };
    struct prefix_set *s = calloc(1, sizeof *s);
    bool ready = s != NULL && prefixes_shield_ipv4(&prefixes);
    enum status status = ready ? read_set(&prefixes, list_or_file) : STATUS_NO_MEMORY;
    if (status == STATUS_OK && !intervals_build(&prefixes, &s->intervals))
        status = STATUS_NO_MEMORY;
    free(prefixes.items);
    if (status != STATUS_OK) {
        free(s);
        return status;
    }
    *ret_set = s;
    return STATUS_OK;
}

bool prefix_set_contains(const struct prefix_set *s, const struct address *a)
{
    return intervals_find(&s->intervals, a) != VALUE_NONE;
}

void prefix_set_close(struct prefix_set *s)
{
    if (s == NULL)
        return;
    intervals_done(&s->intervals);
    free(s);
}
