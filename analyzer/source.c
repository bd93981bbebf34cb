/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct source {
    int fd;
    bool fd_is_ours; /* standard input stays open */
    bool is_pipe;
    uint64_t size;            /* of a regular file when it was opened */
    uint64_t position;        /* bytes given to the caller */
    struct hash_stream *hash; /* of all bytes that came in, also those only peeked at */
    const char *error;
    uint8_t peeked[SOURCE_PEEK_MAX];
    size_t peeked_len, peeked_given;
};

static enum status refuse(struct source *s, enum status status, const char *text)
{
    s->error = text;
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

enum status source_open(const char *path, struct source **ret_source)
{
    struct source *s = calloc(1, sizeof *s);
    struct hash_stream *hash = hash_stream_open();
    if (s == NULL || hash == NULL) {
        free(s);
        if (hash != NULL)
            hash_stream_close(hash);
        return STATUS_NO_MEMORY;
    }
    s->hash = hash;
    *ret_source = s;
    if (strcmp(path, "-") == 0) {
        s->fd = STDIN_FILENO;
        return look_at_kind(s);
    }
    s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (s->fd < 0)
        return refuse(s, STATUS_IO, strerror(errno));
    s->fd_is_ours = true;
    return look_at_kind(s);
}

void source_close(struct source *s)
{
    if (s == NULL)
        return;
    if (s->fd_is_ours)
        (void)close(s->fd);
    hash_stream_close(s->hash);
    free(s);
}

/* One read(2) that counts as such: bytes go to the buffer and to the hash. */
static size_t read_some(struct source *s, uint8_t *buffer, size_t size)
{
    ssize_t n;
    do {
        n = read(s->fd, buffer, size);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        s->error = strerror(errno);
        return 0;
    }
    hash_stream_add(s->hash, (struct bytes){ buffer, (size_t)n });
    return (size_t)n;
}

struct bytes source_peek(struct source *s, size_t n)
{
    assert(s->position == 0 && n <= sizeof s->peeked);
    while (s->peeked_len < n) {
        size_t got = read_some(s, s->peeked + s->peeked_len, sizeof s->peeked - s->peeked_len);
        if (got == 0)
            break;
        s->peeked_len += got;
    }
    return bytes_first((struct bytes){ s->peeked, s->peeked_len }, n);
}

size_t source_read(struct source *s, uint8_t *buffer, size_t size)
{
    size_t n = s->peeked_len - s->peeked_given;
    if (n > 0) {
        n = n < size ? n : size;
        memcpy(buffer, s->peeked + s->peeked_given, n);
        s->peeked_given += n;
    } else {
        n = read_some(s, buffer, size);
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
    if (!s->is_pipe)
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
    return hash_stream_value(s->hash);
}

const char *source_error(const struct source *s)
{
    return s->error;
}
