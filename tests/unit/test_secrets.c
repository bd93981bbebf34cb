/* SPDX-License-Identifier: Apache-2.0 */
#include "secrets.h"

#include "buffer.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define COUNT(array) (sizeof array / sizeof *array)

enum { SHA256_LEN = 32, SHA384_LEN = 48 };

static struct bytes of_text(const char *text)
{
    return (struct bytes){ (const uint8_t *)text, strlen(text) };
}

static void add_text(struct buffer *b, const char *text)
{
    cr_assert(buffer_add(b, of_text(text)));
}

/* n octets of one value, in hex. */
static void add_octets(struct buffer *b, unsigned value, size_t n)
{
    char hex[3];
    snprintf(hex, sizeof hex, "%02x", value & 0xff);
    for (size_t i = 0; i < n; i++)
        add_text(b, hex);
}

/* A line for the connection whose random is 32 times `connection`. */
static void add_line(struct buffer *b, const char *label, unsigned connection, unsigned value,
                     size_t len, const char *end)
{
    add_text(b, label);
    add_text(b, " ");
    add_octets(b, connection, CLIENT_RANDOM_LEN);
    add_text(b, " ");
    add_octets(b, value, len);
    add_text(b, end);
}

static struct bytes text_of(const struct buffer *b)
{
    return (struct bytes){ b->at, b->len };
}

static bool find(const struct secrets *s, unsigned connection, struct secret_set *ret_set)
{
    uint8_t random[CLIENT_RANDOM_LEN];
    memset(random, (int)connection, sizeof random);
    return secrets_find(s, (struct bytes){ random, sizeof random }, ret_set);
}

static void expect_secret(const struct secret_set *set, enum secret_kind kind, unsigned value,
                          size_t len)
{
    cr_expect_eq(set->of[kind].len, len, "kind %u", kind);
    for (size_t i = 0; i < len; i++)
        cr_expect_eq(set->of[kind].octet[i], value, "kind %u octet %zu", kind, i);
}

static struct secrets *secrets_of(struct buffer *b)
{
    struct secrets *s = secrets_open(1, NULL);
    cr_assert_not_null(s);
    cr_assert_eq(secrets_add_text(s, text_of(b)), STATUS_OK);
    return s;
}

/* A text with all of it: labels of use and of none, both ends of lines, comments, hex of both
 * cases. */
static void add_key_log(struct buffer *b)
{
    add_text(b, "# SSL/TLS secrets log file\n\n");
    add_line(b, "CLIENT_HANDSHAKE_TRAFFIC_SECRET", 0xab, 1, SHA256_LEN, "\n");
    add_line(b, "SERVER_HANDSHAKE_TRAFFIC_SECRET", 0xab, 2, SHA256_LEN, "\r\n");
    add_line(b, "EXPORTER_SECRET", 0xab, 9, SHA256_LEN, "\n");
    add_line(b, "CLIENT_EARLY_TRAFFIC_SECRET", 0xab, 3, SHA256_LEN, "\n");
    add_line(b, "CLIENT_TRAFFIC_SECRET_0", 0xab, 0xfe, SHA384_LEN, "\n");
    add_line(b, "CLIENT_RANDOM", 0xcd, 6, SHA384_LEN, "\n");
    add_line(b, "SERVER_TRAFFIC_SECRET_0", 0xab, 5, SHA384_LEN, ""); /* the last line has no end */
}

Test(secrets, each_kind_is_found_by_the_client_random)
{
    struct buffer b = { 0 };
    struct secret_set set;
    add_key_log(&b);
    struct secrets *s = secrets_of(&b);
    cr_assert(find(s, 0xab, &set));
    expect_secret(&set, SECRET_CLIENT_HANDSHAKE, 1, SHA256_LEN);
    expect_secret(&set, SECRET_SERVER_HANDSHAKE, 2, SHA256_LEN);
    expect_secret(&set, SECRET_CLIENT_EARLY, 3, SHA256_LEN);
    expect_secret(&set, SECRET_CLIENT_TRAFFIC, 0xfe, SHA384_LEN);
    expect_secret(&set, SECRET_SERVER_TRAFFIC, 5, SHA384_LEN);
    cr_expect_eq(set.of[SECRET_MASTER].len, 0);
    cr_assert(find(s, 0xcd, &set));
    expect_secret(&set, SECRET_MASTER, 6, SHA384_LEN);
    cr_expect_eq(set.of[SECRET_CLIENT_HANDSHAKE].len, 0);
    cr_expect_not(find(s, 0xef, &set));
    struct secrets_counts counts = secrets_counts(s);
    cr_expect_eq(counts.kept, 6);
    cr_expect_eq(counts.other, 1);
    cr_expect_eq(counts.bad, 0);
    secrets_close(s);
    buffer_done(&b);
}

Test(secrets, hex_of_both_cases)
{
    struct secret_set set;
    struct buffer b = { 0 };
    add_text(&b, "CLIENT_RANDOM ");
    for (unsigned i = 0; i < CLIENT_RANDOM_LEN; i++)
        add_text(&b, i % 2 ? "aB" : "Ab");
    add_text(&b, " ");
    for (unsigned i = 0; i < SHA384_LEN; i++)
        add_text(&b, i % 2 ? "cD" : "CD");
    struct secrets *s = secrets_of(&b);
    cr_assert(find(s, 0xab, &set));
    expect_secret(&set, SECRET_MASTER, 0xcd, SHA384_LEN);
    secrets_close(s);
    buffer_done(&b);
}

Test(secrets, what_is_no_line_is_counted_and_left_out)
{
    static const struct {
        const char *what, *label;
        size_t random_len, secret_len;
        const char *end;
    } CASES[] = {
        { "short random", "CLIENT_RANDOM", 31, 48, "\n" },
        { "long random", "CLIENT_RANDOM", 33, 48, "\n" },
        { "short master secret", "CLIENT_RANDOM", 32, 32, "\n" },
        { "long secret", "CLIENT_TRAFFIC_SECRET_0", 32, 49, "\n" },
        { "secret of no hash", "CLIENT_TRAFFIC_SECRET_0", 32, 40, "\n" },
        { "empty secret", "CLIENT_TRAFFIC_SECRET_0", 32, 0, "\n" },
        { "half a byte", "CLIENT_TRAFFIC_SECRET_0", 32, 32, "a\n" },
        { "no hex", "CLIENT_TRAFFIC_SECRET_0", 32, 31, "xy\n" },
        { "more words", "CLIENT_TRAFFIC_SECRET_0", 32, 32, " 00\n" },
        { "no label", "client random", 32, 48, "\n" },
        { "a long line", "CLIENT_TRAFFIC_SECRET_0", 32, 600, "\n" },
    };
    for (size_t i = 0; i < COUNT(CASES); i++) {
        struct buffer b = { 0 };
        struct secret_set set;
        add_text(&b, CASES[i].label);
        add_text(&b, " ");
        add_octets(&b, 0xab, CASES[i].random_len);
        add_text(&b, " ");
        add_octets(&b, 7, CASES[i].secret_len);
        add_text(&b, CASES[i].end);
        add_line(&b, "CLIENT_RANDOM", 0xcd, 6, SHA384_LEN, "\n"); /* what follows is read */
        struct secrets *s = secrets_of(&b);
        cr_expect_eq(secrets_counts(s).bad, 1, "%s", CASES[i].what);
        cr_expect_eq(secrets_counts(s).kept, 1, "%s", CASES[i].what);
        cr_expect_not(find(s, 0xab, &set), "%s", CASES[i].what);
        cr_expect(find(s, 0xcd, &set), "%s", CASES[i].what);
        secrets_close(s);
        buffer_done(&b);
    }
}

Test(secrets, of_two_lines_the_first_holds)
{
    struct buffer b = { 0 };
    struct secret_set set;
    add_line(&b, "CLIENT_RANDOM", 0xab, 1, SHA384_LEN, "\n");
    add_line(&b, "CLIENT_RANDOM", 0xab, 1, SHA384_LEN, "\n");
    add_line(&b, "CLIENT_RANDOM", 0xab, 2, SHA384_LEN, "\n");
    struct secrets *s = secrets_of(&b);
    cr_assert(find(s, 0xab, &set));
    expect_secret(&set, SECRET_MASTER, 1, SHA384_LEN);
    cr_expect_eq(secrets_counts(s).kept, 1);
    cr_expect_eq(secrets_counts(s).repeated, 1);
    cr_expect_eq(secrets_counts(s).conflicting, 1);
    secrets_close(s);
    buffer_done(&b);
}

Test(secrets, the_wider_table_is_asked_first)
{
    struct buffer b = { 0 }, c = { 0 };
    struct secret_set set;
    add_line(&b, "CLIENT_HANDSHAKE_TRAFFIC_SECRET", 0xab, 1, SHA256_LEN, "\n");
    add_line(&c, "CLIENT_HANDSHAKE_TRAFFIC_SECRET", 0xab, 2, SHA256_LEN, "\n");
    add_line(&c, "SERVER_HANDSHAKE_TRAFFIC_SECRET", 0xab, 3, SHA256_LEN, "\n");
    struct secrets *wide = secrets_of(&b), *s = secrets_open(2, wide);
    cr_assert_not_null(s);
    cr_expect(find(s, 0xab, &set));
    cr_expect_not(secrets_may_grow(wide));
    cr_expect_not(secrets_may_grow(s));
    cr_assert_eq(secrets_add_text(s, text_of(&c)), STATUS_OK);
    cr_expect(secrets_may_grow(s));
    cr_assert(find(s, 0xab, &set));
    expect_secret(&set, SECRET_CLIENT_HANDSHAKE, 1, SHA256_LEN);
    expect_secret(&set, SECRET_SERVER_HANDSHAKE, 3, SHA256_LEN);
    cr_expect_not(find(wide, 0xcd, &set));
    secrets_close(s);
    secrets_close(wide);
    buffer_done(&b);
    buffer_done(&c);
}

/* Lines of many connections, with one that is far too long among them. */
static void add_many(struct buffer *b, unsigned connections)
{
    for (unsigned i = 0; i < connections; i++) {
        add_text(b, "CLIENT_RANDOM ");
        add_octets(b, i >> 8, CLIENT_RANDOM_LEN - 1);
        add_octets(b, i, 1);
        add_text(b, " ");
        add_octets(b, i % 251, SHA384_LEN);
        add_text(b, "\n");
        if (i == connections / 2) {
            add_octets(b, 0, 100000);
            add_text(b, "\n");
        }
    }
}

static void expect_many(const struct secrets *s, unsigned connections)
{
    cr_expect_eq(secrets_counts(s).kept, connections);
    cr_expect_eq(secrets_counts(s).bad, 1);
    for (unsigned i = 0; i < connections; i++) {
        uint8_t random[CLIENT_RANDOM_LEN];
        struct secret_set set;
        memset(random, (int)(i >> 8), sizeof random);
        random[CLIENT_RANDOM_LEN - 1] = (uint8_t)i;
        cr_assert(secrets_find(s, (struct bytes){ random, sizeof random }, &set), "%u", i);
        cr_assert_eq(set.of[SECRET_MASTER].octet[0], i % 251, "%u", i);
    }
}

Test(secrets, a_file_is_read_in_blocks_like_a_text)
{
    enum { CONNECTIONS = 5000 };
    char path[] = "/tmp/test_secrets_XXXXXX";
    struct buffer b = { 0 };
    add_many(&b, CONNECTIONS);
    int fd = mkstemp(path);
    cr_assert(fd >= 0);
    cr_assert_eq(write(fd, b.at, b.len), (ssize_t)b.len);
    close(fd);
    struct secrets *from_file = secrets_open(3, NULL), *from_text = secrets_of(&b);
    cr_assert_eq(secrets_add_file(from_file, path), STATUS_OK);
    expect_many(from_file, CONNECTIONS);
    expect_many(from_text, CONNECTIONS);
    cr_expect_eq(secrets_add_file(from_file, "/nowhere/at/all"), STATUS_IO);
    cr_expect_eq(secrets_add_file(from_file, "/"), STATUS_IO);
    unlink(path);
    secrets_close(from_file);
    secrets_close(from_text);
    buffer_done(&b);
}

/* A line that is cut has no other secret than the whole one, or one that is as short as a hash. */
Test(secrets, every_truncation)
{
    struct buffer b = { 0 };
    add_key_log(&b);
    for (size_t n = 0; n <= b.len; n++) {
        uint8_t *copy = malloc(n + 1); /* so that a sanitizer sees a read behind its end */
        cr_assert_not_null(copy);
        memcpy(copy, b.at, n);
        struct secrets *s = secrets_open(1, NULL);
        struct secret_set set;
        cr_assert_eq(secrets_add_text(s, (struct bytes){ copy, n }), STATUS_OK);
        if (find(s, 0xab, &set)) {
            size_t len = set.of[SECRET_SERVER_TRAFFIC].len;
            cr_expect(len == 0 || len == SHA256_LEN || n == b.len, "%zu", n);
        }
        secrets_close(s);
        free(copy);
    }
    buffer_done(&b);
}

/* Eight hex digits, at the begin of a random. */
static void write_number(uint8_t *at, uint32_t number)
{
    for (unsigned i = 8; i-- > 0; number >>= 4)
        at[i] = (uint8_t) "0123456789abcdef"[number & 15];
}

Test(secrets, beyond_the_cap_they_are_counted_and_left_out)
{
    enum { LINES = 4096, BEYOND = 100, LABEL_LEN = sizeof "CLIENT_RANDOM " - 1 };
    struct buffer b = { 0 };
    for (unsigned i = 0; i < LINES; i++)
        add_line(&b, "CLIENT_RANDOM", 0xab, 1, SHA384_LEN, "\n");
    size_t line_len = b.len / LINES;
    struct secrets *s = secrets_open(1, NULL);
    uint32_t number = 0;
    while (number < SECRETS_MAX + BEYOND) {
        size_t count = 0;
        for (; count < LINES && number < SECRETS_MAX + BEYOND; count++)
            write_number(b.at + count * line_len + LABEL_LEN, number++);
        cr_assert_eq(secrets_add_text(s, (struct bytes){ b.at, count * line_len }), STATUS_OK);
    }
    struct secrets_counts counts = secrets_counts(s);
    cr_expect_eq(counts.kept, SECRETS_MAX);
    cr_expect_eq(counts.over_cap, BEYOND);
    secrets_close(s);
    buffer_done(&b);
}

Test(secrets, a_random_of_another_length_is_not_found)
{
    struct buffer b = { 0 };
    struct secret_set set;
    uint8_t random[CLIENT_RANDOM_LEN];
    memset(random, 0xab, sizeof random);
    add_key_log(&b);
    struct secrets *s = secrets_of(&b);
    for (size_t n = 0; n < CLIENT_RANDOM_LEN; n++)
        cr_expect_not(secrets_find(s, (struct bytes){ random, n }, &set), "%zu", n);
    secrets_close(s);
    buffer_done(&b);
}
