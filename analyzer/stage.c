/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* In front of each item. */
struct item_header {
    uint32_t len;
    uint32_t number; /* low half: items are counted, so it only checks that we read what we wrote */
};

/*
 * Items in memory lie in chunks, so that growing copies nothing; none is split. Each is twice as
 * large as the one before, up to a huge page, which the kernel clears in one go, and to the cap.
 */
enum { FIRST_CHUNK_SIZE = 1 << 17, CHUNK_SIZE = 1 << 21 };

struct chunk {
    struct chunk *next;
    size_t len, capacity;
    uint8_t bytes[];
};

static size_t chunk_size(const struct chunk *c)
{
    return sizeof *c + c->capacity;
}

struct stage {
    struct chunk *first, *last;
    size_t memory, memory_max; /* of all chunks */
    char *directory;
    FILE *file; /* NULL while memory is enough */
    uint64_t count;
    uint64_t *cancelled; /* bits by number */
    size_t cancelled_words;
    const struct chunk *reading; /* NULL when the file is next */
    size_t read_at;              /* in that chunk */
    uint64_t read_number;
    bool reading_file;
    uint8_t *item; /* one item read from the file */
    size_t item_capacity;
    char error[256];
};

struct stage *stage_open(size_t memory_max, const char *directory)
{
    struct stage *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    const char *temporary = getenv("TMPDIR");
    s->directory = strdup(directory != NULL ? directory : temporary != NULL ? temporary : "/tmp");
    s->memory_max = memory_max;
    if (s->directory == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

static void free_items(struct stage *s)
{
    while (s->first != NULL) {
        struct chunk *next = s->first->next;
        free(s->first);
        s->first = next;
    }
    s->last = NULL;
    s->memory = 0;
    if (s->file != NULL)
        fclose(s->file);
    s->file = NULL;
}

void stage_close(struct stage *s)
{
    if (s == NULL)
        return;
    free_items(s);
    free(s->directory);
    free(s->cancelled);
    free(s->item);
    free(s);
}

static enum status file_failed(struct stage *s, const char *what)
{
    snprintf(s->error, sizeof s->error, "temporary file in %s: cannot %s: %s", s->directory, what,
             strerror(errno));
    return STATUS_IO;
}

static enum status open_file(struct stage *s)
{
    int fd = open(s->directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    s->file = fd < 0 ? tmpfile() : fdopen(fd, "w+b");
    return s->file == NULL ? file_failed(s, "make it") : STATUS_OK;
}

/* The size of the next chunk, its header included. */
static size_t next_chunk_size(const struct stage *s, size_t needed)
{
    size_t size = s->last == NULL ? FIRST_CHUNK_SIZE : 2 * chunk_size(s->last);
    if (size > CHUNK_SIZE)
        size = CHUNK_SIZE;
    if (size > s->memory_max - s->memory)
        size = s->memory_max - s->memory;
    return size < sizeof(struct chunk) + needed ? sizeof(struct chunk) + needed : size;
}

static bool add_chunk(struct stage *s, size_t needed)
{
    size_t size = next_chunk_size(s, needed);
    bool is_huge = size == CHUNK_SIZE;
    struct chunk *c = is_huge ? aligned_alloc(CHUNK_SIZE, CHUNK_SIZE) : malloc(size);
    if (c == NULL)
        return false;
    if (is_huge)
        (void)madvise(c, size, MADV_HUGEPAGE);
    *c = (struct chunk){ .capacity = size - sizeof *c };
    if (s->last == NULL)
        s->first = c;
    else
        s->last->next = c;
    s->last = c;
    s->memory += size;
    return true;
}

static bool last_chunk_has_room(const struct stage *s, size_t needed)
{
    return s->last != NULL && s->last->capacity - s->last->len >= needed;
}

/* Whether an item goes to memory; once one does not, all go to the file: they stay in order. */
static bool fits_in_memory(const struct stage *s, size_t needed)
{
    return s->file == NULL && (last_chunk_has_room(s, needed) ||
                               s->memory + next_chunk_size(s, needed) <= s->memory_max);
}

static enum status add_to_memory(struct stage *s, struct item_header header, struct bytes item)
{
    size_t needed = sizeof header + item.len;
    if (!last_chunk_has_room(s, needed) && !add_chunk(s, needed))
        return STATUS_NO_MEMORY;
    struct chunk *c = s->last;
    memcpy(c->bytes + c->len, &header, sizeof header);
    memcpy(c->bytes + c->len + sizeof header, item.at, item.len);
    c->len += needed;
    return STATUS_OK;
}

static enum status add_to_file(struct stage *s, struct item_header header, struct bytes item)
{
    if (s->file == NULL) {
        enum status status = open_file(s);
        if (status != STATUS_OK)
            return status;
    }
    if (s->reading_file && fseek(s->file, 0, SEEK_END) != 0)
        return file_failed(s, "write it");
    s->reading_file = false;
    if (fwrite(&header, sizeof header, 1, s->file) != 1 ||
        fwrite(item.at, 1, item.len, s->file) != item.len)
        return file_failed(s, "write it");
    return STATUS_OK;
}

enum status stage_add(struct stage *s, struct bytes item, uint64_t *ret_number)
{
    struct item_header header = { (uint32_t)item.len, (uint32_t)s->count };
    bool fits = fits_in_memory(s, sizeof header + item.len);
    enum status status = fits ? add_to_memory(s, header, item) : add_to_file(s, header, item);
    if (status == STATUS_OK)
        *ret_number = s->count++;
    return status;
}

enum status stage_cancel(struct stage *s, uint64_t number)
{
    size_t word = (size_t)(number / 64);
    if (word >= s->cancelled_words) {
        size_t words = word + 64;
        uint64_t *grown = realloc(s->cancelled, words * sizeof *grown);
        if (grown == NULL)
            return STATUS_NO_MEMORY;
        memset(grown + s->cancelled_words, 0, (words - s->cancelled_words) * sizeof *grown);
        s->cancelled = grown;
        s->cancelled_words = words;
    }
    s->cancelled[word] |= UINT64_C(1) << (number % 64);
    return STATUS_OK;
}

static bool is_cancelled(const struct stage *s, uint64_t number)
{
    size_t word = (size_t)(number / 64);
    return word < s->cancelled_words && (s->cancelled[word] >> (number % 64) & 1) != 0;
}

void stage_rewind(struct stage *s)
{
    s->reading = s->first;
    s->read_at = 0;
    s->read_number = 0;
    s->reading_file = false;
}

static struct bytes next_in_memory(struct stage *s)
{
    struct item_header header;
    const struct chunk *c = s->reading;
    memcpy(&header, c->bytes + s->read_at, sizeof header);
    assert(header.number == (uint32_t)s->read_number);
    struct bytes item = { c->bytes + s->read_at + sizeof header, header.len };
    s->read_at += sizeof header + header.len;
    if (s->read_at == c->len) {
        s->reading = c->next;
        s->read_at = 0;
    }
    return item;
}

static enum status next_in_file(struct stage *s, struct bytes *ret_item)
{
    if (!s->reading_file) {
        if (fflush(s->file) != 0 || fseek(s->file, 0, SEEK_SET) != 0)
            return file_failed(s, "read it");
        s->reading_file = true;
    }
    struct item_header header;
    if (fread(&header, sizeof header, 1, s->file) != 1)
        return file_failed(s, "read it");
    assert(header.number == (uint32_t)s->read_number);
    if (header.len > s->item_capacity) {
        uint8_t *grown = realloc(s->item, header.len);
        if (grown == NULL)
            return STATUS_NO_MEMORY;
        s->item = grown;
        s->item_capacity = header.len;
    }
    if (fread(s->item, 1, header.len, s->file) != header.len)
        return file_failed(s, "read it");
    *ret_item = (struct bytes){ s->item, header.len };
    return STATUS_OK;
}

enum status stage_next(struct stage *s, struct bytes *ret_item)
{
    while (s->read_number < s->count) {
        if (s->reading != NULL) {
            *ret_item = next_in_memory(s);
        } else {
            enum status status = next_in_file(s, ret_item);
            if (status != STATUS_OK)
                return status;
        }
        if (!is_cancelled(s, s->read_number++))
            return STATUS_OK;
    }
    return STATUS_END;
}

void stage_clear(struct stage *s)
{
    free_items(s);
    s->count = 0;
    if (s->cancelled_words > 0)
        memset(s->cancelled, 0, s->cancelled_words * sizeof *s->cancelled);
    stage_rewind(s);
}

const char *stage_error(const struct stage *s)
{
    return s->error[0] != '\0' ? s->error : "out of memory";
}
