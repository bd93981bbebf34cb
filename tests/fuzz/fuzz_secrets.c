/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the reader of key logs. The input is a key log; a second reading of it must change
 * nothing, and what its first line names is found with lengths that a secret can have.
 */
#include "secrets.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static size_t lines_of(struct bytes text)
{
    size_t lines = 1;
    for (size_t i = 0; i < text.len; i++)
        lines += text.at[i] == '\n';
    return lines;
}

static size_t told(const struct secrets_counts *c)
{
    return c->kept + c->repeated + c->conflicting + c->other + c->bad + c->over_cap;
}

static void check_set(const struct secret_set *set)
{
    for (unsigned kind = 0; kind < SECRET_KINDS; kind++) {
        uint8_t len = set->of[kind].len;
        require(len == 0 || len == 48 || (len == 32 && kind != SECRET_MASTER));
    }
}

/* Asks for every stretch of 32 bytes, most of which are nobody's random. */
static void ask(const struct secrets *s, struct bytes text)
{
    struct secret_set set;
    for (size_t from = 0; from + CLIENT_RANDOM_LEN <= text.len; from += CLIENT_RANDOM_LEN)
        if (secrets_find(s, bytes_first(bytes_after(text, from), CLIENT_RANDOM_LEN), &set))
            check_set(&set);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes text = { data, size };
    struct secrets *wide = secrets_open(1, NULL);
    struct secrets *s = wide == NULL ? NULL : secrets_open(2, wide);
    if (s == NULL || secrets_add_text(s, text) != STATUS_OK) {
        secrets_close(s);
        secrets_close(wide);
        return 0;
    }
    struct secrets_counts first = secrets_counts(s);
    require(told(&first) <= lines_of(text));
    ask(s, text);
    if (secrets_add_text(s, text) == STATUS_OK) {
        struct secrets_counts second = secrets_counts(s);
        require(second.kept == first.kept);
        require(told(&second) == 2 * told(&first));
    }
    secrets_close(s);
    secrets_close(wide);
    return 0;
}
