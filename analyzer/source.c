/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"

#include "inflate.h"
#include "readahead.h"
#include "thread.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * A thread reads ahead once so many bytes were read and, of a file whose length is known, as many
 * are to come: small files, and a look at the first packets, are not worth it.
 */
enum { AHEAD_FROM = 1024 * 1024 };

struct source {
    int fd;
    bool fd_is_ours; /* standard input stays open */
    bool is_pipe;
    uint64_t size;            /* of a regular file when it was opened */
    uint64_t position;        /* bytes given to the caller */
    struct hash_stream *hash; /* of them */
    struct inflate *inflate;  /* NULL: the file is not compressed */
    struct readahead
        *ahead; /* has the three above; NULL: everything is read where it is asked for */
    bool was_ahead_tried;
    enum status status; /* STATUS_OK while nothing failed, then error says what */
    const char *error;
    uint8_t peeked[SOURCE_PEEK_MAX];
    size_t peeked_len, peeked_given;
};

static enum status refuse(struct source *s, enum status status, const char *text)
{
    s->error = text;
    s->status = status;
    return status;
}

/* What kind of file it is decides whether it can be read to an end at all. */
static enum status look_at_kind(struct source *s)
{
    struct stat st;
    if (fstat(s->fd, &st) != 0)
        return refuse(s, STATUS_IO, strerror(errno));
    if (S_ISREG(st.st_mode)) {
        s->size = (uint64_t)st.st_size;
        (void)posix_fadvise(s->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
        return STATUS_OK;
    }
    if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) {
        s->is_pipe = true;
        return STATUS_OK;
    }
    if (S_ISDIR(st.st_mode))
        return refuse(s, STATUS_REFUSED, "is a directory");
    if (isatty(s->fd))
        return refuse(s, STATUS_REFUSED, "is a terminal, not a capture");
    return refuse(s, STATUS_REFUSED, "is a device, not a capture");
}

/* One read(2) that counts as such. */
static size_t read_file(struct source *s, uint8_t *buffer, size_t size)
{
    ssize_t n;
    do {
        n = read(s->fd, buffer, size);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        (void)refuse(s, STATUS_IO, strerror(errno));
        return 0;
    }
    return (size_t)n;
}

static struct bytes peek_at_file(struct source *s, size_t n)
{
    while (s->peeked_len < n) {
        size_t got = read_file(s, s->peeked + s->peeked_len, sizeof s->peeked - s->peeked_len);
        if (got == 0)
            break;
        s->peeked_len += got;
    }
    return bytes_first((struct bytes){ s->peeked, s->peeked_len }, n);
}

/* Compressed files are told by their first bytes, whatever their name. */
static enum status look_at_start(struct source *s)
{
    if (inflate_method(peek_at_file(s, INFLATE_MAGIC_LEN)) == NULL)
        return s->status;
    struct bytes start = { s->peeked, s->peeked_len };
    enum status status = inflate_open(s->fd, start, &s->inflate);
    if (status == STATUS_OK || status == STATUS_NO_MEMORY)
        return status;
    return refuse(s, STATUS_IO, inflate_error(s->inflate));
}

static enum status open_file(struct source *s, const char *path)
{
    s->fd = STDIN_FILENO;
    if (strcmp(path, "-") != 0) {
        s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (s->fd < 0)
            return refuse(s, STATUS_IO, strerror(errno));
        s->fd_is_ours = true;
    }
    enum status status = look_at_kind(s);
    return status == STATUS_OK ? look_at_start(s) : status;
}

enum status source_open(const char *path, struct source **ret_source)
{
    struct source *s = calloc(1, sizeof *s);
    if (s == NULL)
        return STATUS_NO_MEMORY;
    s->hash = hash_stream_open();
    enum status status = s->hash != NULL ? open_file(s, path) : STATUS_NO_MEMORY;
    if (status == STATUS_NO_MEMORY) {
        source_close(s);
        return status;
    }
    *ret_source = s;
    return status;
}

void source_close(struct source *s)
{
    if (s == NULL)
        return;
    readahead_close(s->ahead);
    inflate_close(s->inflate);
    if (s->fd_is_ours)
        (void)close(s->fd);
    if (s->hash != NULL)
        hash_stream_close(s->hash);
    free(s);
}

/* What ended a compressed file, unless it is just over. */
static void note_inflate_status(struct source *s)
{
    enum status status = inflate_status(s->inflate);
    if (status != STATUS_OK && status != STATUS_END)
        (void)refuse(s, status, inflate_error(s->inflate));
}

struct bytes source_peek(struct source *s, size_t n)
{
    assert(s->position == 0 && n <= sizeof s->peeked);
    if (s->inflate == NULL)
        return peek_at_file(s, n);
    struct bytes start = inflate_peek(s->inflate, n);
    note_inflate_status(s);
    return start;
}

static size_t read_peeked(struct source *s, uint8_t *buffer, size_t size)
{
    struct bytes peeked = { s->peeked, s->peeked_len };
    struct bytes piece = bytes_first(bytes_after(peeked, s->peeked_given), size);
    memcpy(buffer, piece.at, piece.len);
    s->peeked_given += piece.len;
    return piece.len;
}

static void note_ahead_status(struct source *s)
{
    int number;
    enum status status = readahead_status(s->ahead, &number);
    if (number != 0)
        (void)refuse(s, STATUS_IO, strerror(number));
    else if (status != STATUS_OK && status != STATUS_END)
        (void)refuse(s, status, inflate_error(s->inflate));
}

/* Nobody knows how much is to come of a pipe, or of what is compressed. */
static bool is_worth_a_thread(const struct source *s)
{
    if (s->status != STATUS_OK || thread_cpus() < 2)
        return false;
    return s->inflate != NULL || s->is_pipe || s->size >= s->position + AHEAD_FROM;
}

static void read_ahead(struct source *s)
{
    s->was_ahead_tried = true;
    if (is_worth_a_thread(s))
        s->ahead = readahead_open(s->fd, s->is_pipe, s->inflate, s->hash);
}

static size_t read_here(struct source *s, uint8_t *buffer, size_t size)
{
    size_t n;
    if (s->inflate != NULL) {
        n = inflate_read(s->inflate, buffer, size);
        note_inflate_status(s);
    } else if (s->peeked_given < s->peeked_len) {
        n = read_peeked(s, buffer, size);
    } else {
        n = read_file(s, buffer, size);
    }
    hash_stream_add(s->hash, (struct bytes){ buffer, n });
    return n;
}

size_t source_read(struct source *s, uint8_t *buffer, size_t size)
{
    size_t n;
    if (!s->was_ahead_tried && s->position >= AHEAD_FROM)
        read_ahead(s);
    if (s->ahead != NULL) {
        n = readahead_read(s->ahead, buffer, size);
        if (n == 0)
            note_ahead_status(s);
    } else {
        n = read_here(s, buffer, size);
    }
    s->position += n;
    return n;
}

uint64_t source_position(const struct source *s)
{
    return s->position;
}

void source_read_rest(struct source *s)
{
    uint8_t buffer[64 * 1024];
    uint64_t limit = SOURCE_PIPE_REST_MAX;
    if (!s->is_pipe && s->inflate != NULL)
        limit = UINT64_MAX; /* inflate.h has a cap of its own */
    else if (!s->is_pipe)
        limit = s->size > s->position ? s->size - s->position : 0;
    while (limit > 0) {
        size_t wanted = limit < sizeof buffer ? (size_t)limit : sizeof buffer;
        size_t got = source_read(s, buffer, wanted);
        if (got == 0)
            break;
        limit -= got;
    }
}

struct hash128 source_hash(const struct source *s)
{
    return s->ahead != NULL ? readahead_hash(s->ahead) : hash_stream_value(s->hash);
}

const char *source_error(const struct source *s)
{
    return s->error;
}

enum status source_status(const struct source *s)
{
    return s->status;
}

const char *source_library_version(unsigned index)
{
    return inflate_library_version(index);
}

bool source_hash_begin(const char *path, uint64_t len, struct hash128 *ret_hash)
{
    enum { BUFFER = 64 * 1024 };
    struct source *s = NULL;
    uint8_t *buffer = malloc(BUFFER);
    bool ok = buffer != NULL && source_open(path, &s) == STATUS_OK;
    while (ok && source_position(s) < len) {
        uint64_t left = len - source_position(s);
        ok = source_read(s, buffer, left < BUFFER ? (size_t)left : BUFFER) > 0;
    }
    if (ok)
        *ret_hash = source_hash(s);
    source_close(s);
    free(buffer);
    return ok;
}
