/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROGRESS_H
#define PROGRESS_H
/* How far work has come: a line on a terminal that is written over, at most four times a second. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct progress {
    FILE *terminal; /* not owned; NULL = nobody looks */
    int64_t started_ns, shown_ns;
};

struct progress progress_begin(FILE *terminal);

/* Whether somebody looks and it is time for another line. */
bool progress_is_due(const struct progress *p);

/* Since it began. */
double progress_seconds(const struct progress *p);

/* Writes a line over the last one. */
__attribute__((format(printf, 2, 3))) void progress_show(struct progress *p, const char *format,
                                                         ...);

/* Takes the line away. */
void progress_end(struct progress *p);

#endif
