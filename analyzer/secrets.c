/* SPDX-License-Identifier: Apache-2.0 */
#include "secrets.h"

#include "hash.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    LINE_MAX_LEN = 512, /* the longest useful line has 192 bytes */
    FILE_BLOCK_LEN = 64 * 1024,
    ENTRIES_MIN = 64,
    TRAFFIC_SHA256_LEN = 32,
};

struct entry {
    uint8_t random[CLIENT_RANDOM_LEN];
    uint32_t secret[SECRET_KINDS]; /* index in secrets + 1; 0 = not known */
};

struct secrets {
    const struct secrets *wider;
    uint64_t seed;
    struct entry *entries; /* in the order they came */
    size_t entry_count, entry_capacity;
    uint32_t *slots;   /* open addressing: index in entries + 1; 0 = empty */
    size_t slot_count; /* a power of two, at least twice entry_capacity */
    struct secret *secrets;
    size_t secret_count, secret_capacity;
    struct secrets_counts counts;
};

struct secrets *secrets_open(uint64_t seed, const struct secrets *wider)
{
    struct secrets *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    s->seed = seed;
    s->wider = wider;
    return s;
}

void secrets_close(struct secrets *s)
{
    if (s == NULL)
        return;
    free(s->entries);
    free(s->slots);
    free(s->secrets);
    free(s);
}

/* ---- the table ---- */

/* The slot of a random: that of its entry, or the empty one where it belongs. */
static uint32_t *slot_of(const struct secrets *s, struct bytes random)
{
    size_t slot = (size_t)hash_table(random, s->seed) & (s->slot_count - 1);
    while (s->slots[slot] != 0) {
        const struct entry *e = &s->entries[s->slots[slot] - 1];
        if (bytes_equal((struct bytes){ e->random, sizeof e->random }, random))
            break;
        slot = (slot + 1) & (s->slot_count - 1);
    }
    return &s->slots[slot];
}

static enum status grow_entries(struct secrets *s)
{
    size_t capacity = s->entry_capacity == 0 ? ENTRIES_MIN : 2 * s->entry_capacity;
    struct entry *entries = realloc(s->entries, capacity * sizeof *entries);
    if (entries == NULL)
        return STATUS_NO_MEMORY;
    s->entries = entries;
    uint32_t *slots = calloc(2 * capacity, sizeof *slots);
    if (slots == NULL)
        return STATUS_NO_MEMORY;
    free(s->slots);
    s->slots = slots;
    s->slot_count = 2 * capacity;
    s->entry_capacity = capacity;
    for (size_t i = 0; i < s->entry_count; i++) {
        struct bytes random = { s->entries[i].random, CLIENT_RANDOM_LEN };
        *slot_of(s, random) = (uint32_t)(i + 1);
    }
    return STATUS_OK;
}

static enum status find_or_add_entry(struct secrets *s, struct bytes random,
                                     struct entry **ret_entry)
{
    if (s->entry_count == s->entry_capacity) {
        enum status status = grow_entries(s);
        if (status != STATUS_OK)
            return status;
    }
    uint32_t *slot = slot_of(s, random);
    if (*slot == 0) {
        struct entry *added = &s->entries[s->entry_count++];
        *added = (struct entry){ 0 };
        memcpy(added->random, random.at, sizeof added->random);
        *slot = (uint32_t)s->entry_count;
    }
    *ret_entry = &s->entries[*slot - 1];
    return STATUS_OK;
}

static enum status add_secret(struct secrets *s, enum secret_kind kind, struct bytes random,
                              const struct secret *secret)
{
    struct entry *entry;
    if (s->secret_count >= SECRETS_MAX) {
        s->counts.over_cap++;
        return STATUS_OK;
    }
    enum status status = find_or_add_entry(s, random, &entry);
    if (status != STATUS_OK)
        return status;
    if (entry->secret[kind] != 0) {
        const struct secret *known = &s->secrets[entry->secret[kind] - 1];
        bool same = bytes_equal((struct bytes){ known->octet, known->len },
                                (struct bytes){ secret->octet, secret->len });
        s->counts.repeated += same;
        s->counts.conflicting += !same;
        return STATUS_OK;
    }
    if (s->secret_count == s->secret_capacity) {
        size_t capacity = s->secret_capacity == 0 ? ENTRIES_MIN : 2 * s->secret_capacity;
        struct secret *grown = realloc(s->secrets, capacity * sizeof *grown);
        if (grown == NULL)
            return STATUS_NO_MEMORY;
        s->secrets = grown;
        s->secret_capacity = capacity;
    }
    s->secrets[s->secret_count++] = *secret;
    entry->secret[kind] = (uint32_t)s->secret_count;
    s->counts.kept++;
    return STATUS_OK;
}

/* ---- lines ---- */

static int hex_digit(uint8_t c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Reads all of a word as hex into at most size bytes; the number of bytes, 0 when it is not that.
 */
static size_t read_hex(struct bytes word, uint8_t *ret_octets, size_t size)
{
    if (word.len % 2 != 0 || word.len / 2 > size)
        return 0;
    for (size_t i = 0; i < word.len / 2; i++) {
        int high = hex_digit(word.at[2 * i]), low = hex_digit(word.at[2 * i + 1]);
        if (high < 0 || low < 0)
            return 0;
        ret_octets[i] = (uint8_t)(high << 4 | low);
    }
    return word.len / 2;
}

/* The kind that a label names; SECRET_KINDS for all others. RFC 9850 2 */
static enum secret_kind kind_of(struct bytes label)
{
    static const char *const LABELS[SECRET_KINDS] = {
        [SECRET_MASTER] = "CLIENT_RANDOM",
        [SECRET_CLIENT_EARLY] = "CLIENT_EARLY_TRAFFIC_SECRET",
        [SECRET_CLIENT_HANDSHAKE] = "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        [SECRET_SERVER_HANDSHAKE] = "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        [SECRET_CLIENT_TRAFFIC] = "CLIENT_TRAFFIC_SECRET_0",
        [SECRET_SERVER_TRAFFIC] = "SERVER_TRAFFIC_SECRET_0",
    };
    for (unsigned kind = 0; kind < SECRET_KINDS; kind++) {
        struct bytes name = { (const uint8_t *)LABELS[kind], strlen(LABELS[kind]) };
        if (bytes_equal(label, name))
            return (enum secret_kind)kind;
    }
    return SECRET_KINDS;
}

static bool is_label(struct bytes word)
{
    for (size_t i = 0; i < word.len; i++) {
        uint8_t c = word.at[i];
        if (!(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') && c != '_')
            return false;
    }
    return word.len > 0;
}

/* A master secret has 48 bytes (RFC 5246 8.1), a traffic secret as many as the suite's hash. */
static bool is_possible(enum secret_kind kind, size_t len)
{
    return len == SECRET_LEN_MAX || (kind != SECRET_MASTER && len == TRAFFIC_SHA256_LEN);
}

static enum status add_line(struct secrets *s, struct bytes line)
{
    if (line.len > 0 && line.at[line.len - 1] == '\r')
        line.len--;
    if (line.len == 0 || line.at[0] == '#')
        return STATUS_OK;
    struct reader r = reader_of(line);
    struct bytes label = bytes_take_until(&r.rest, ' ');
    struct bytes random_hex = bytes_take_until(&r.rest, ' ');
    struct bytes secret_hex = bytes_take_until(&r.rest, ' ');
    uint8_t random[CLIENT_RANDOM_LEN];
    struct secret secret = { 0 };
    enum secret_kind kind = kind_of(label);
    if (kind == SECRET_KINDS) {
        bool has_values = random_hex.len > 0 && secret_hex.len > 0;
        s->counts.other += is_label(label) && has_values;
        s->counts.bad += !is_label(label) || !has_values;
        return STATUS_OK;
    }
    size_t random_len = read_hex(random_hex, random, sizeof random);
    secret.len = (uint8_t)read_hex(secret_hex, secret.octet, sizeof secret.octet);
    if (random_len != CLIENT_RANDOM_LEN || !is_possible(kind, secret.len) || r.rest.len > 0) {
        s->counts.bad++;
        return STATUS_OK;
    }
    return add_secret(s, kind, (struct bytes){ random, sizeof random }, &secret);
}

/* Takes the next line without its end; false, and nothing taken, when no end is there. */
static bool take_line(struct reader *r, struct bytes *ret_line)
{
    const uint8_t *end = r->rest.len == 0 ? NULL : memchr(r->rest.at, '\n', r->rest.len);
    if (end == NULL)
        return false;
    *ret_line = reader_take(r, (size_t)(end - r->rest.at));
    reader_take(r, 1);
    return true;
}

/* Adds all whole lines; *r is left with what is behind the last of them. */
static enum status add_lines(struct secrets *s, struct reader *r)
{
    struct bytes line;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && take_line(r, &line)) {
        if (line.len <= LINE_MAX_LEN)
            status = add_line(s, line);
        else
            s->counts.bad++;
    }
    return status;
}

enum status secrets_add_text(struct secrets *s, struct bytes text)
{
    struct reader r = reader_of(text);
    enum status status = add_lines(s, &r);
    if (status == STATUS_OK && r.rest.len > LINE_MAX_LEN)
        s->counts.bad++;
    else if (status == STATUS_OK)
        status = add_line(s, r.rest);
    return status;
}

/* ---- files ---- */

/*
 * A file in blocks: what is left of one, a line without its end, is put before the next. A line
 * that is too long is kept as a beginning that stays too long, whatever else comes of it.
 */
static enum status add_open_file(struct secrets *s, FILE *file, uint8_t *block)
{
    size_t kept = 0, n;
    while ((n = fread(block + kept, 1, FILE_BLOCK_LEN, file)) > 0) {
        struct reader r = reader_of((struct bytes){ block, kept + n });
        enum status status = add_lines(s, &r);
        if (status != STATUS_OK)
            return status;
        struct bytes left = bytes_first(r.rest, LINE_MAX_LEN + 1);
        kept = left.len;
        if (kept > 0)
            memmove(block, left.at, kept);
    }
    if (ferror(file))
        return STATUS_IO;
    return secrets_add_text(s, (struct bytes){ block, kept });
}

enum status secrets_add_file(struct secrets *s, const char *path)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return STATUS_IO;
    uint8_t *block = malloc(FILE_BLOCK_LEN + LINE_MAX_LEN + 1);
    enum status status = block == NULL ? STATUS_NO_MEMORY : add_open_file(s, file, block);
    int error = errno;
    free(block);
    fclose(file);
    errno = error;
    return status;
}

/* ---- asking ---- */

bool secrets_find(const struct secrets *s, struct bytes random, struct secret_set *ret_set)
{
    bool found = s->wider != NULL && secrets_find(s->wider, random, ret_set);
    if (!found)
        *ret_set = (struct secret_set){ 0 };
    if (random.len != CLIENT_RANDOM_LEN || s->entry_count == 0)
        return found;
    const uint32_t *slot = slot_of(s, random);
    if (*slot == 0)
        return found;
    const struct entry *entry = &s->entries[*slot - 1];
    for (unsigned kind = 0; kind < SECRET_KINDS; kind++)
        if (entry->secret[kind] != 0 && ret_set->of[kind].len == 0)
            ret_set->of[kind] = s->secrets[entry->secret[kind] - 1];
    return true;
}

bool secrets_may_grow(const struct secrets *s)
{
    return s->wider != NULL && s->entry_count > 0;
}

struct secrets_counts secrets_counts(const struct secrets *s)
{
    return s->counts;
}
