/* SPDX-License-Identifier: Apache-2.0 */
#include "spill.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Places are units of the file, counted from 1; an item takes as many as it needs, and leaves them
 * to others that need as many. */
enum { UNIT = 64, SIZES = SPILL_ITEM_MAX / UNIT };

struct free_places {
    uint32_t *places;
    size_t count, capacity;
};

struct spill {
    char *directory;
    FILE *file; /* NULL before the first item */
    uint32_t end;
    struct free_places free[SIZES + 1]; /* by units */
};

struct spill *spill_open(const char *directory)
{
    struct spill *s = calloc(1, sizeof *s);
    if (s == NULL)
        return NULL;
    const char *temporary = getenv("TMPDIR");
    s->directory = strdup(directory != NULL ? directory : temporary != NULL ? temporary : "/tmp");
    if (s->directory == NULL) {
        free(s);
        return NULL;
    }
    return s;
}

void spill_close(struct spill *s)
{
    if (s == NULL)
        return;
    if (s->file != NULL)
        fclose(s->file);
    for (unsigned i = 0; i <= SIZES; i++)
        free(s->free[i].places);
    free(s->directory);
    free(s);
}

static enum status open_file(struct spill *s)
{
    if (s->file != NULL)
        return STATUS_OK;
    int fd = open(s->directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    s->file = fd < 0 ? tmpfile() : fdopen(fd, "w+b");
    return s->file == NULL ? STATUS_IO : STATUS_OK;
}

static size_t units_of(size_t len)
{
    return len == 0 ? 1 : (len + UNIT - 1) / UNIT;
}

static off_t offset_of(uint32_t place)
{
    return (off_t)(place - 1) * UNIT;
}

/* A place of that many units, and room to note that it is free again; 0 = none. */
static uint32_t take_place(struct spill *s, size_t units)
{
    struct free_places *f = &s->free[units];
    if (f->count > 0)
        return f->places[--f->count];
    if (s->end > UINT32_MAX - SIZES)
        return 0;
    uint32_t place = s->end + 1;
    s->end += (uint32_t)units;
    return place;
}

enum status spill_put(struct spill *s, struct bytes item, uint32_t *ret_place)
{
    assert(item.len <= SPILL_ITEM_MAX);
    enum status status = open_file(s);
    if (status != STATUS_OK)
        return status;
    uint32_t place = take_place(s, units_of(item.len));
    if (place == 0)
        return STATUS_IO;
    if (pwrite(fileno(s->file), item.at, item.len, offset_of(place)) != (ssize_t)item.len) {
        spill_remove(s, place, item.len);
        return STATUS_IO;
    }
    *ret_place = place;
    return STATUS_OK;
}

enum status spill_read(struct spill *s, uint32_t place, uint8_t *at, size_t len)
{
    ssize_t got = pread(fileno(s->file), at, len, offset_of(place));
    return got == (ssize_t)len ? STATUS_OK : STATUS_IO;
}

/* Without memory the place is lost: the file is a little longer than it need be. */
void spill_remove(struct spill *s, uint32_t place, size_t len)
{
    struct free_places *f = &s->free[units_of(len)];
    if (f->count == f->capacity) {
        size_t capacity = f->capacity == 0 ? 64 : 2 * f->capacity;
        uint32_t *grown = realloc(f->places, capacity * sizeof *grown);
        if (grown == NULL)
            return;
        f->places = grown;
        f->capacity = capacity;
    }
    f->places[f->count++] = place;
}
