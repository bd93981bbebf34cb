/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MOMENT_H
#define MOMENT_H
/*
 * Points in time as people write and read them. All are UTC; a local time zone is never asked,
 * since captures of many sites are read far from where they were taken.
 */
#include <stdbool.h>
#include <stdint.h>

/* First and last time of the data, Unix nanoseconds. */
struct span {
    int64_t first_ns, last_ns;
};

/*
 * Reads a point in time:
 *   2026-06-02  2026-06-02T14:00  2026-06-02 14:00:05.25  with Z, +02:00 or -0530 behind: ISO 8601
 *   1780409040  1780409040.5      seconds since 1970
 *   14:00  14:00:30               that time on the day of the data: the last day on which it lies
 *                                 inside the data, else the day on which the data end
 *   -2h  -90s  -15m  -1d  -1w     so long before the end of the data
 * False when text is none of these or the time lies outside of 1970 to 2262.
 */
bool moment_parse(const char *text, struct span data, int64_t *ret_epoch_ns);

enum { MOMENT_TEXT_SIZE = 32 };

/* Writes "2026-06-02 14:03:11.204518" with 0 to 9 decimals, cut and not rounded; returns buffer. */
const char *moment_text(int64_t epoch_ns, int decimals, char buffer[MOMENT_TEXT_SIZE]);

/* Writes "2026-06-02 14:00 .. 15:00", the second date only where it differs; returns buffer. */
const char *moment_span_text(struct span span, char buffer[2 * MOMENT_TEXT_SIZE]);

#endif
