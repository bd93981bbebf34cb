/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* In front of each item. */
struct item_header {
    uint32_t len;
    uint32_t number; /* low half: items are counted, so it only checks that we read what we wrote */
};

struct stage {
    uint8_t *memory;
    size_t memory_len, memory_capacity, memory_max;
    char *directory;
    FILE *file;          /* NULL while memory is enough */
    uint64_t count;
    uint64_t *cancelled; /* bits by number */
    size_t cancelled_words;
    size_t read_at;      /* in memory */
    uint64_t read_number;
    bool reading_file;
    uint8_t *item;       /* one item read from the file */
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

void stage_close(struct stage *s)
{
    if (s == NULL)
        return;
    if (s->file != NULL)
        fclose(s->file);
    free(s->memory);
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

static bool grow_memory(struct stage *s, size_t needed)
{
    size_t capacity = s->memory_capacity == 0 ? 1 << 16 : s->memory_capacity;
    while (capacity < needed)
        capacity += capacity / 2;
    uint8_t *grown = realloc(s->memory, capacity);
    if (grown == NULL)
        return false;
    s->memory = grown;
    s->memory_capacity = capacity;
    return true;
}

static enum status add_to_memory(struct stage *s, struct item_header header, struct bytes item)
{
    size_t needed = s->memory_len + sizeof header + item.len;
    if (needed > s->memory_capacity && !grow_memory(s, needed))
        return STATUS_NO_MEMORY;
    memcpy(s->memory + s->memory_len, &header, sizeof header);
    memcpy(s->memory + s->memory_len + sizeof header, item.at, item.len);
    s->memory_len = needed;
    return STATUS_OK;
}

static enum status add_to_file(struct stage *s, struct item_header header, struct bytes item)
{
    if (s->file == NULL) {
        enum status status = open_file(s);
        if (status != STATUS_OK)
            return status;
    }
    if (fwrite(&header, sizeof header, 1, s->file) != 1 ||
        fwrite(item.at, 1, item.len, s->file) != item.len)
        return file_failed(s, "write it");
    return STATUS_OK;
}

enum status stage_add(struct stage *s, struct bytes item, uint64_t *ret_number)
{
    struct item_header header = { (uint32_t)item.len, (uint32_t)s->count };
    bool fits = s->file == NULL && s->memory_len + sizeof header + item.len <= s->memory_max;
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
    s->read_at = 0;
    s->read_number = 0;
    s->reading_file = false;
}

static struct bytes next_in_memory(struct stage *s)
{
    struct item_header header;
    memcpy(&header, s->memory + s->read_at, sizeof header);
    assert(header.number == (uint32_t)s->read_number);
    struct bytes item = { s->memory + s->read_at + sizeof header, header.len };
    s->read_at += sizeof header + header.len;
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
        if (s->read_at < s->memory_len) {
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
    if (s->file != NULL)
        fclose(s->file);
    s->file = NULL;
    s->memory_len = 0;
    s->count = 0;
    if (s->cancelled_words > 0)
        memset(s->cancelled, 0, s->cancelled_words * sizeof *s->cancelled);
    stage_rewind(s);
}

const char *stage_error(const struct stage *s)
{
    return s->error[0] != '\0' ? s->error : "out of memory";
}
