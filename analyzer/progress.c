/* SPDX-License-Identifier: Apache-2.0 */
#include "progress.h"

#include <stdarg.h>
#include <time.h>

#define BETWEEN_LINES_NS INT64_C(250000000)

/* Back to the first column, and nothing behind it (ECMA-48 8.3.41). */
#define OVER "\r\033[K"

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

struct progress progress_begin(FILE *terminal)
{
    int64_t started_ns = now_ns();
    return (struct progress){ terminal, started_ns, started_ns };
}

bool progress_is_due(const struct progress *p)
{
    return p->terminal != NULL && now_ns() - p->shown_ns > BETWEEN_LINES_NS;
}

double progress_seconds(const struct progress *p)
{
    return (double)(now_ns() - p->started_ns) / 1e9;
}

void progress_show(struct progress *p, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)fputs(OVER, p->terminal);
    (void)vfprintf(p->terminal, format, arguments);
    (void)fflush(p->terminal);
    va_end(arguments);
    p->shown_ns = now_ns();
}

void progress_end(struct progress *p)
{
    if (p->terminal != NULL && p->shown_ns != p->started_ns)
        (void)fputs(OVER, p->terminal);
    p->shown_ns = p->started_ns;
}
