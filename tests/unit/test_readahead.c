/* SPDX-License-Identifier: Apache-2.0 */
#include "readahead.h"

#include "capture_builder.h"
#include "source.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { SIZE = 9 * READAHEAD_BLOCK_SIZE / 2 + 1, BEFORE = 1000 };

static char directory[PATH_SIZE];
static uint8_t *content;
static struct hash_stream *before;

static const char *file_path(void)
{
    static char path[PATH_SIZE + 8];
    snprintf(path, sizeof path, "%s/file", directory);
    return path;
}

static struct bytes all(void)
{
    return (struct bytes){ content, SIZE };
}

static void set_up(void)
{
    test_directory(directory);
    content = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)(i * i >> 7);
    write_file(file_path(), all());
    before = hash_stream_open();
    hash_stream_add(before, bytes_first(all(), BEFORE));
}

static void tear_down(void)
{
    hash_stream_close(before);
    free(content);
    remove_directory(directory);
}

TestSuite(readahead, .init = set_up, .fini = tear_down, .timeout = 60);

static void assert_hash_of_first(struct readahead *r, size_t n)
{
    struct hash128 expected = hash_stable(bytes_first(all(), n)), found = readahead_hash(r);
    cr_assert_arr_eq(found.octet, expected.octet, sizeof found.octet, "after %zu bytes", n);
}

static int open_behind_the_first(void)
{
    int fd = open(file_path(), O_RDONLY | O_CLOEXEC);
    cr_assert(fd >= 0);
    cr_assert_eq(lseek(fd, BEFORE, SEEK_SET), BEFORE);
    return fd;
}

Test(readahead, pieces_of_any_size_are_the_file_and_the_hash_is_of_what_was_given)
{
    static const size_t SIZES[] = { 100, 8192, READAHEAD_BLOCK_SIZE - 1, READAHEAD_BLOCK_SIZE,
                                    3 * READAHEAD_BLOCK_SIZE };
    uint8_t *buffer = malloc(3 * READAHEAD_BLOCK_SIZE);
    for (size_t k = 0; k < sizeof SIZES / sizeof *SIZES; k++) {
        int number, fd = open_behind_the_first();
        struct readahead *r = readahead_open(fd, false, NULL, before);
        cr_assert_not_null(r);
        size_t at = BEFORE;
        for (size_t n; (n = readahead_read(r, buffer, SIZES[k])) > 0; at += n) {
            cr_assert(at + n <= SIZE && memcmp(buffer, content + at, n) == 0, "at %zu", at);
            if (k > 0)
                assert_hash_of_first(r, at + n);
        }
        cr_assert_eq(at, SIZE);
        cr_assert_eq(readahead_status(r, &number), STATUS_END);
        cr_assert_eq(number, 0);
        cr_assert_eq(readahead_read(r, buffer, 1), 0, "an end is final");
        assert_hash_of_first(r, SIZE);
        readahead_close(r);
        close(fd);
    }
    free(buffer);
}

Test(readahead, it_can_be_closed_with_blocks_that_nobody_read)
{
    uint8_t buffer[16];
    for (unsigned reads = 0; reads < 3; reads++) {
        int fd = open_behind_the_first();
        struct readahead *r = readahead_open(fd, false, NULL, before);
        for (unsigned n = 0; n < reads; n++)
            cr_assert_eq(readahead_read(r, buffer, sizeof buffer), sizeof buffer);
        readahead_close(r);
        close(fd);
    }
}

Test(readahead, what_fails_comes_behind_what_could_be_read)
{
    uint8_t buffer[16];
    int number, fd = open(directory, O_RDONLY | O_CLOEXEC);
    struct readahead *r = readahead_open(fd, false, NULL, before);
    cr_assert_eq(readahead_read(r, buffer, sizeof buffer), 0);
    cr_assert_eq(readahead_status(r, &number), STATUS_IO);
    cr_assert_eq(number, EISDIR);
    assert_hash_of_first(r, BEFORE);
    readahead_close(r);
    close(fd);
}

Test(readahead, bytes_of_a_pipe_come_as_soon_as_they_are_there)
{
    int ends[2];
    uint8_t buffer[64];
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    struct readahead *r = readahead_open(ends[0], true, NULL, before);
    for (size_t n = 1; n < sizeof buffer; n++) { /* the writer waits for nobody to close */
        cr_assert_eq(write(ends[1], content, n), (ssize_t)n);
        size_t got = 0;
        while (got < n)
            got += readahead_read(r, buffer + got, sizeof buffer - got);
        cr_assert_arr_eq(buffer, content, n);
    }
    close(ends[1]);
    cr_assert_eq(readahead_read(r, buffer, sizeof buffer), 0);
    readahead_close(r);
    close(ends[0]);
}

Test(readahead, it_can_be_closed_while_it_waits_for_a_pipe)
{
    int ends[2];
    cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
    readahead_close(readahead_open(ends[0], true, NULL, before));
    close(ends[0]);
    close(ends[1]);
}

/* Of a file that is long enough for a thread, the hash that a look at a part of it gives. */
Test(readahead, source_says_the_same_with_a_thread_and_without)
{
    enum { LONG = 5 * 1024 * 1024 };
    uint8_t *bytes = calloc(1, LONG), *buffer = malloc(LONG);
    for (size_t i = 0; i < LONG; i++)
        bytes[i] = (uint8_t)(i * i >> 9);
    write_file(file_path(), (struct bytes){ bytes, LONG });
    for (size_t until = 0; until <= LONG; until += LONG / 16) {
        struct source *s = NULL;
        cr_assert_eq(source_open(file_path(), &s), STATUS_OK);
        size_t at = 0;
        for (size_t n = 1; at < until && n > 0; at += n) {
            size_t left = until - at;
            n = source_read(s, buffer, left < 100000 ? left : 100000);
            cr_assert_arr_eq(buffer, bytes + at, n);
        }
        struct hash128 expected = hash_stable((struct bytes){ bytes, until });
        struct hash128 found = source_hash(s);
        cr_assert_eq(source_position(s), until);
        cr_assert_arr_eq(found.octet, expected.octet, sizeof found.octet, "%zu bytes", until);
        source_read_rest(s);
        expected = hash_stable((struct bytes){ bytes, LONG });
        found = source_hash(s);
        cr_assert_arr_eq(found.octet, expected.octet, sizeof found.octet, "rest after %zu", until);
        cr_assert_eq(source_status(s), STATUS_OK);
        source_close(s);
    }
    free(buffer);
    free(bytes);
}
