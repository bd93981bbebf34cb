/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over a stored corpus, so that what fuzzing once found stays an ordinary test
 * of any compiler: each file as it is, and each of its truncations.
 *
 * usage: fuzz_TARGET FILE|DIRECTORY...
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { INPUT_SIZE_MAX = 1 << 20, TRUNCATIONS_MAX = 4096 };

/* A copy of exactly n bytes, so that a sanitizer or valgrind sees a read behind its end. */
static void run_exact(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    if (!copy)
        abort();
    memcpy(copy, data, n);
    LLVMFuzzerTestOneInput(copy, n);
    free(copy);
}

static bool run_file(const char *path)
{
    static uint8_t data[INPUT_SIZE_MAX];
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return false;
    }
    size_t len = fread(data, 1, sizeof data, file);
    bool is_read = !ferror(file);
    fclose(file);
    if (!is_read) {
        perror(path);
        return false;
    }
    size_t step = len / TRUNCATIONS_MAX + 1;
    for (size_t n = 0; n < len; n += step)
        run_exact(data, n);
    run_exact(data, len);
    return true;
}

/* Runs all files below path; *count grows by their number. */
static bool run_path(const char *path, unsigned *count)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        perror(path);
        return false;
    }
    if (!S_ISDIR(status.st_mode)) {
        ++*count;
        return run_file(path);
    }
    struct dirent **entries;
    int entry_count = scandir(path, &entries, NULL, alphasort);
    bool ok = entry_count >= 0;
    for (int i = 0; i < entry_count; i++) {
        char *child = NULL;
        if (entries[i]->d_name[0] != '.') {
            ok = asprintf(&child, "%s/%s", path, entries[i]->d_name) >= 0 &&
                 run_path(child, count) && ok;
            free(child);
        }
        free(entries[i]);
    }
    if (entry_count >= 0)
        free(entries);
    return ok;
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    bool ok = true;
    for (int i = 1; i < argc; i++)
        ok = run_path(argv[i], &count) && ok;
    printf("%u inputs\n", count);
    return ok && count > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
