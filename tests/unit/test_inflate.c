/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed files through source.c, which is where everyone meets them. */
#include "source.h"

#include "capture_builder.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[PATH_SIZE];

static void make_directory(void)
{
    test_directory(directory);
}

static void drop_directory(void)
{
    remove_directory(directory);
}

TestSuite(inflate, .init = make_directory, .fini = drop_directory, .timeout = 120);

/* A text, up to and without the NUL of its literal. */
#define bytes_of(text) ((struct bytes){ (const uint8_t *)(text), sizeof(text) - 1 })

static const char *path_of(const char *name)
{
    static char path[PATH_SIZE + 32];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

#ifndef HAVE_LIBARCHIVE

Test(inflate, without_libarchive_its_files_are_refused_with_the_reason)
{
    struct source *s = NULL;
    write_file(path_of("file"), bytes_of("BZh9 and so on"));
    cr_assert_eq(source_open(path_of("file"), &s), STATUS_IO);
    cr_assert(strstr(source_error(s), "without a library") != NULL, "%s", source_error(s));
    source_close(s);
}

Test(inflate, every_compressed_file)
{
    cr_skip_test("built without libarchive");
}

#else

#include <archive.h>
#include <archive_entry.h>

/* Bytes that grow at their end. */
struct grown {
    uint8_t *at;
    size_t len;
};

static void grown_add(struct grown *g, struct bytes more)
{
    if (more.len == 0)
        return;
    g->at = realloc(g->at, g->len + more.len);
    cr_assert(g->at != NULL);
    memcpy(g->at + g->len, more.at, more.len);
    g->len += more.len;
}

static void grown_done(struct grown *g)
{
    free(g->at);
    *g = (struct grown){ 0 };
}

static const int FILTERS[] = { ARCHIVE_FILTER_GZIP, ARCHIVE_FILTER_ZSTD, ARCHIVE_FILTER_LZ4,
                               ARCHIVE_FILTER_XZ, ARCHIVE_FILTER_BZIP2 };
static const char *const NAMES[] = { "gzip", "zstd", "lz4", "xz", "bzip2" };
enum { FILTER_COUNT = sizeof FILTERS / sizeof FILTERS[0] };

/* Whether the libarchive here can make that kind itself; it turns to external programs else. */
static bool is_there(size_t method)
{
    struct archive *a = archive_write_new();
    bool ok = archive_write_add_filter(a, FILTERS[method]) == ARCHIVE_OK;
    archive_write_free(a);
    return ok;
}

/* Appends one member, compressed, to out. */
static void compress_to(int filter, struct bytes content, struct grown *out)
{
    size_t room = content.len + content.len / 8 + 65536, used = 0;
    uint8_t *bytes = malloc(room);
    struct archive *a = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    cr_assert(bytes != NULL && archive_write_add_filter(a, filter) == ARCHIVE_OK);
    archive_write_set_format_raw(a);
    archive_write_set_bytes_in_last_block(a, 1);
    cr_assert_eq(archive_write_open_memory(a, bytes, room, &used), ARCHIVE_OK);
    archive_entry_set_filetype(entry, AE_IFREG);
    cr_assert_eq(archive_write_header(a, entry), ARCHIVE_OK);
    if (content.len > 0)
        cr_assert_eq(archive_write_data(a, content.at, content.len), (la_ssize_t)content.len);
    cr_assert_eq(archive_write_close(a), ARCHIVE_OK);
    grown_add(out, (struct bytes){ bytes, used });
    archive_entry_free(entry);
    archive_write_free(a);
    free(bytes);
}

static struct bytes all_of(const struct grown *b)
{
    return (struct bytes){ b->at, b->len };
}

/* Bytes that shrink to about a half, as captures do. */
static struct grown make_content(size_t len)
{
    struct grown b = { 0 };
    uint32_t state = 1;
    b.at = calloc(1, len);
    cr_assert(b.at != NULL);
    for (b.len = 0; b.len < len; b.len++) {
        state = state * 1664525 + 1013904223;
        if (b.len % 64 < 32)
            b.at[b.len] = (uint8_t)(state >> 24);
    }
    return b;
}

/* What a file gives, in reads of odd sizes. */
static struct grown read_all(const char *path, enum status *ret_status, struct hash128 *ret_hash)
{
    struct source *s = NULL;
    struct grown got = { 0 };
    uint8_t piece[70001];
    cr_assert_eq(source_open(path, &s), STATUS_OK, "%s", source_error(s));
    for (size_t n, size = 1; (n = source_read(s, piece, size)) > 0; size = size * 7 % sizeof piece)
        grown_add(&got, (struct bytes){ piece, n });
    *ret_status = source_status(s);
    *ret_hash = source_hash(s);
    cr_assert_eq(source_error(s) == NULL, *ret_status == STATUS_OK);
    source_close(s);
    return got;
}

Test(inflate, every_method_and_several_members_give_the_bytes_and_hash_of_the_plain_file)
{
    struct grown content = make_content(1200017);
    enum status status;
    struct hash128 plain_hash, hash;
    write_file(path_of("plain"), all_of(&content));
    struct grown plain = read_all(path_of("plain"), &status, &plain_hash);
    cr_assert_eq(plain.len, content.len);
    for (size_t i = 0; i < FILTER_COUNT; i++)
        for (size_t first = 0; is_there(i) && first <= content.len; first += 700000) {
            struct grown file = { 0 };
            if (first > 0)
                compress_to(FILTERS[i], bytes_first(all_of(&content), first), &file);
            compress_to(FILTERS[i], bytes_after(all_of(&content), first), &file);
            write_file(path_of("file"), all_of(&file));
            struct grown got = read_all(path_of("file"), &status, &hash);
            cr_assert_eq(status, STATUS_OK, "%s %zu", NAMES[i], first);
            cr_assert(bytes_equal(all_of(&got), all_of(&content)), "%s %zu", NAMES[i], first);
            cr_assert_arr_eq(hash.octet, plain_hash.octet, sizeof hash.octet);
            grown_done(&got);
            grown_done(&file);
        }
    grown_done(&plain);
    grown_done(&content);
}

Test(inflate, every_cut_of_a_small_file_is_named_with_its_place)
{
    struct grown content = make_content(600);
    for (size_t i = 0; i < FILTER_COUNT; i++) {
        if (!is_there(i))
            continue;
        struct grown file = { 0 };
        compress_to(FILTERS[i], all_of(&content), &file);
        for (size_t cut = 6; cut < file.len; cut++) {
            struct source *s = NULL;
            uint8_t piece[1024];
            char place[48];
            write_file(path_of("cut"), bytes_first(all_of(&file), cut));
            cr_assert_eq(source_open(path_of("cut"), &s), STATUS_OK);
            size_t got = source_read(s, piece, sizeof piece);
            cr_assert(bytes_equal((struct bytes){ piece, got }, bytes_first(all_of(&content), got)),
                      "%s cut at %zu of %zu: %zu %s", NAMES[i], cut, file.len, got,
                      source_error(s));
            if (got > 0) { /* all of it, where only what follows the content is missing */
                cr_assert_eq(source_read(s, piece, sizeof piece), 0);
            }
            cr_assert_eq(source_status(s), STATUS_DAMAGED, "%s cut at %zu", NAMES[i], cut);
            snprintf(place, sizeof place, "cut at byte %zu ", cut);
            cr_assert(strstr(source_error(s), place) != NULL, "%s", source_error(s));
            cr_assert(strstr(source_error(s), NAMES[i]) != NULL, "%s", source_error(s));
            source_close(s);
        }
        grown_done(&file);
    }
    grown_done(&content);
}

Test(inflate, of_a_cut_file_comes_a_beginning)
{
    /* Several blocks of each method: lz4's hold 4 MiB, those of bzip2 900,000 bytes. */
    static const size_t LENGTHS[FILTER_COUNT] = { 1200017, 1200017, 9000003, 1200017, 3000017 };
    for (size_t i = 0; i < FILTER_COUNT; i++) {
        if (!is_there(i))
            continue;
        struct grown content = make_content(LENGTHS[i]), file = { 0 };
        enum status status;
        struct hash128 hash;
        compress_to(FILTERS[i], all_of(&content), &file);
        write_file(path_of("cut"), bytes_first(all_of(&file), file.len / 3 * 2));
        struct grown got = read_all(path_of("cut"), &status, &hash);
        cr_assert_eq(status, STATUS_DAMAGED);
        cr_assert_geq(got.len, content.len / 4, "%s: %zu", NAMES[i], got.len);
        cr_assert(bytes_equal(all_of(&got), bytes_first(all_of(&content), got.len)));
        grown_done(&got);
        grown_done(&file);
        grown_done(&content);
    }
}

#if defined HAVE_ZLIB && defined HAVE_LZMA

/* The content is equally dense everywhere: each part of the file holds the same part of it. */
Test(inflate, of_a_cut_file_nothing_is_lost_but_the_last_block_of_zstd)
{
    /* of deflate and LZMA what is not enough for a symbol, of zstd a block */
    static const size_t LOST_MAX[FILTER_COUNT] = { 4096, 128 * 1024 + 4096, 0, 65536, 0 };
    struct grown content = make_content(3000017);
    for (size_t i = 0; i < FILTER_COUNT; i++) {
        struct grown file = { 0 };
        if (!is_there(i) || LOST_MAX[i] == 0)
            continue;
        compress_to(FILTERS[i], all_of(&content), &file);
        for (size_t cut = file.len / 50; cut < file.len; cut += file.len / 13 + 1001) {
            enum status status;
            struct hash128 hash;
            size_t expected = (size_t)((double)content.len * (double)cut / (double)file.len);
            write_file(path_of("cut"), bytes_first(all_of(&file), cut));
            struct grown got = read_all(path_of("cut"), &status, &hash);
            cr_assert_eq(status, STATUS_DAMAGED);
            cr_assert(bytes_equal(all_of(&got), bytes_first(all_of(&content), got.len)));
            cr_assert_geq(got.len + LOST_MAX[i], expected, "%s cut at %zu: %zu of %zu bytes",
                          NAMES[i], cut, got.len, expected);
            grown_done(&got);
        }
        grown_done(&file);
    }
    grown_done(&content);
}

Test(inflate, behind_the_last_gzip_member_there_may_be_zeros_and_nothing_else)
{
    struct grown content = make_content(100000), file = { 0 };
    const struct bytes behind[] = { bytes_of("\0\0\0\0"), bytes_of("\0\0and more") };
    for (size_t i = 0; i < 2; i++) {
        enum status status;
        struct hash128 hash;
        grown_done(&file);
        compress_to(ARCHIVE_FILTER_GZIP, all_of(&content), &file);
        grown_add(&file, behind[i]);
        write_file(path_of("file"), all_of(&file));
        struct grown got = read_all(path_of("file"), &status, &hash);
        cr_assert(bytes_equal(all_of(&got), all_of(&content)));
        cr_assert_eq(status, i == 0 ? STATUS_OK : STATUS_DAMAGED);
        grown_done(&got);
    }
    grown_done(&file);
    grown_done(&content);
}

#endif

Test(inflate, broken_bytes_come_to_an_end)
{
    struct grown content = make_content(300000);
    for (size_t i = 0; i < FILTER_COUNT; i++) {
        if (!is_there(i))
            continue;
        struct grown file = { 0 };
        compress_to(FILTERS[i], all_of(&content), &file);
        for (size_t at = 6; at < file.len; at += file.len / 40 + 1) {
            enum status status;
            struct hash128 hash;
            file.at[at] ^= 0x55;
            write_file(path_of("broken"), all_of(&file));
            struct grown got = read_all(path_of("broken"), &status, &hash);
            cr_assert(status == STATUS_DAMAGED || status == STATUS_OK);
            cr_assert_leq(got.len, 2 * content.len);
            grown_done(&got);
            file.at[at] ^= 0x55;
        }
        grown_done(&file);
    }
    grown_done(&content);
}

Test(inflate, nothing_compressed_is_nothing)
{
    /* libarchive's writer of lz4 cannot write it. */
    static const uint8_t EMPTY_LZ4[] = { 0x04, 0x22, 0x4d, 0x18, 0x64, 0x40, 0xa7, 0x00,
                                         0x00, 0x00, 0x00, 0x05, 0x5d, 0xcc, 0x02 };
    for (size_t i = 0; i < FILTER_COUNT; i++) {
        if (!is_there(i))
            continue;
        struct grown file = { 0 };
        struct source *s = NULL;
        if (FILTERS[i] == ARCHIVE_FILTER_LZ4)
            grown_add(&file, (struct bytes){ EMPTY_LZ4, sizeof EMPTY_LZ4 });
        else
            compress_to(FILTERS[i], (struct bytes){ 0 }, &file);
        write_file(path_of("empty"), all_of(&file));
        cr_assert_eq(source_open(path_of("empty"), &s), STATUS_OK);
        cr_assert_eq(source_peek(s, 4).len, 0);
        cr_assert_eq(source_status(s), STATUS_OK, "%s: %s", NAMES[i], source_error(s));
        source_close(s);
        grown_done(&file);
    }
}

Test(inflate, what_was_peeked_at_is_still_read)
{
    struct grown content = make_content(100000), file = { 0 };
    struct source *s = NULL;
    uint8_t piece[64];
    compress_to(ARCHIVE_FILTER_GZIP, all_of(&content), &file);
    write_file(path_of("file"), all_of(&file));
    cr_assert_eq(source_open(path_of("file"), &s), STATUS_OK);
    cr_assert(bytes_equal(source_peek(s, 100), bytes_first(all_of(&content), 100)));
    cr_assert_eq(source_read(s, piece, sizeof piece), sizeof piece);
    cr_assert(bytes_equal((struct bytes){ piece, sizeof piece },
                          bytes_first(all_of(&content), sizeof piece)));
    source_close(s);
    grown_done(&file);
    grown_done(&content);
}

Test(inflate, a_bomb_ends_as_damaged_at_its_cap)
{
    enum { MEMBER = 64 * 1024 * 1024, MEMBERS = 20 };
    struct grown member = { 0 }, file = { 0 };
    struct source *s = NULL;
    uint8_t *zeros = calloc(1, MEMBER), piece[65536];
    uint64_t total = 0;
    compress_to(ARCHIVE_FILTER_GZIP, (struct bytes){ zeros, MEMBER }, &member);
    for (int i = 0; i < MEMBERS; i++)
        grown_add(&file, all_of(&member));
    write_file(path_of("bomb"), all_of(&file));
    cr_assert_eq(source_open(path_of("bomb"), &s), STATUS_OK);
    for (size_t n; (n = source_read(s, piece, sizeof piece)) > 0;)
        total += n;
    cr_assert_eq(source_status(s), STATUS_DAMAGED);
    cr_assert(strstr(source_error(s), "more than") != NULL, "%s", source_error(s));
    cr_assert_geq(total, (uint64_t)1 << 30);
    cr_assert_leq(total, ((uint64_t)1 << 30) + 1024 * 1024);
    source_close(s);
    free(zeros);
    grown_done(&member);
    grown_done(&file);
}

Test(inflate, closing_does_not_wait_for_a_pipe_that_nobody_writes_to)
{
    struct grown content = make_content(2000000), file = { 0 };
    struct source *s = NULL;
    int ends[2];
    char path[64];
    uint8_t *piece = malloc(300000);
    compress_to(ARCHIVE_FILTER_GZIP, all_of(&content), &file);
    size_t len = file.len / 100 * 72; /* of the content a block more than is read here */
    cr_assert_eq(pipe(ends), 0);
    cr_assert_geq(fcntl(ends[1], F_SETPIPE_SZ, 1024 * 1024), 0);
    cr_assert_eq(write(ends[1], file.at, len), (ssize_t)len);
    snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    cr_assert_eq(source_open(path, &s), STATUS_OK);
    while (source_position(s) < 1024 * 1024)
        cr_assert_gt(source_read(s, piece, 262144), 0);
    cr_assert_gt(source_read(s, piece, 1), 0); /* from here on there is a thread, which waits */
    usleep(100000);                            /* once it has come so far */
    source_close(s);
    free(piece);
    grown_done(&file);
    grown_done(&content);
}

#endif
