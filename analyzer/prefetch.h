/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREFETCH_H
#define PREFETCH_H
/* Asks for memory that will be written soon, so that nobody waits for it then. */
#include <stddef.h>

/* Every cache line that an object lies in; it may be gone already, nothing is read. */
static inline void prefetch(const void *object, size_t size)
{
    enum { LINE = 64 };
    const char *at = object;
    for (size_t i = 0; i < size; i += LINE)
        __builtin_prefetch(at + i, 1);
}

#endif
