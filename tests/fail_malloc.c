/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A library to load before the program (LD_PRELOAD), in which allocation number FAIL_AT, counted
 * from 1, gives NULL, as on a machine that is out of memory for a moment. FAIL_COUNT names a file
 * that is given the number of allocations when the process ends. Only those count that are asked
 * for outside of libraries that are known to crash then or to hide it: they can only be left in
 * peace.
 *
 * usage: FAIL_AT=17 LD_PRELOAD=./libfail_malloc.so firstflight ingest ...
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static atomic_ulong allocations;
static unsigned long fail_at;
static int count_file = -1;

/* dlsym() itself asks for a few bytes before the real functions are known. */
static char first_bytes[4096];
static size_t first_used;

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);

/* Where the code of libraries lies whose allocations do not fail. */
static struct {
    uintptr_t from, to;
} spared[16];
static size_t spared_count;

static int note_library(struct dl_phdr_info *info, size_t size, void *unused)
{
    static const char *const SPARED[] = { "libcrypto", "libseccomp", "libndpi" };
    (void)size;
    (void)unused;
    for (size_t i = 0; i < sizeof SPARED / sizeof *SPARED; i++)
        for (int k = 0; strstr(info->dlpi_name, SPARED[i]) != NULL && k < info->dlpi_phnum; k++) {
            const ElfW(Phdr) *part = &info->dlpi_phdr[k];
            if (part->p_type != PT_LOAD || !(part->p_flags & PF_X) ||
                spared_count == sizeof spared / sizeof *spared)
                continue;
            spared[spared_count].from = info->dlpi_addr + part->p_vaddr;
            spared[spared_count].to = spared[spared_count].from + part->p_memsz;
            spared_count++;
        }
    return 0;
}

static int is_spared(const void *caller)
{
    for (size_t i = 0; i < spared_count; i++)
        if ((uintptr_t)caller >= spared[i].from && (uintptr_t)caller < spared[i].to)
            return 1;
    return 0;
}

/* Opened now: when the process ends it may no longer open files. */
__attribute__((constructor)) static void begin(void)
{
    const char *at = getenv("FAIL_AT"), *file = getenv("FAIL_COUNT");
    fail_at = at == NULL ? 0 : strtoul(at, NULL, 10);
    if (file != NULL)
        count_file = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    dl_iterate_phdr(note_library, NULL);
    atomic_store(&allocations, 0);
}

__attribute__((destructor)) static void end(void)
{
    if (count_file >= 0)
        dprintf(count_file, "%lu\n", atomic_load(&allocations));
}

static int fails(const void *caller)
{
    if (is_spared(caller) || atomic_fetch_add(&allocations, 1) + 1 != fail_at)
        return 0;
    errno = ENOMEM;
    return 1;
}

static void *function(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static void *from_first_bytes(size_t size)
{
    size_t at = first_used;
    first_used += (size + 15) & ~(size_t)15;
    return first_used <= sizeof first_bytes ? first_bytes + at : NULL;
}

static int is_first(const void *p)
{
    return (const char *)p >= first_bytes && (const char *)p < first_bytes + sizeof first_bytes;
}

void *malloc(size_t size)
{
    if (real_malloc == NULL)
        *(void **)&real_malloc = function("malloc");
    return fails(__builtin_return_address(0)) ? NULL : real_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    static int finding;
    if (finding)
        return from_first_bytes(n * size);
    if (real_calloc == NULL) {
        finding = 1;
        *(void **)&real_calloc = function("calloc");
        finding = 0;
    }
    return fails(__builtin_return_address(0)) ? NULL : real_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    if (real_realloc == NULL)
        *(void **)&real_realloc = function("realloc");
    return fails(__builtin_return_address(0)) ? NULL : real_realloc(p, size);
}

void free(void *p)
{
    if (real_free == NULL)
        *(void **)&real_free = function("free");
    if (!is_first(p))
        real_free(p);
}
