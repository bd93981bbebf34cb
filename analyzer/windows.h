/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WINDOWS_H
#define WINDOWS_H
/* The flows of two windows of time, reduced to what their comparison needs. */
#include "measure.h"
#include "selection.h"
#include "shift.h"
#include "words.h"

/*
 * Flows that are kept; of more, every second, third, ... by flow_id is taken. A million of them
 * need about 200 MB while they are compared.
 */
enum { WINDOWS_FLOWS_MAX = 2000000 };

/* One flow. */
struct seen {
    int64_t flow_id, start_ns;
    uint32_t asked, yes;             /* shares: bits of enum measure_id */
    uint32_t alike[ALIKE_COUNT];     /* number of its stratum */
    uint32_t word[SELECTION_BY_MAX]; /* number of its value in each column */
    float duration_ns[DURATIONS];    /* NAN = not known */
    uint8_t window;                  /* enum window */
    uint8_t slice;                   /* of the window before */
};

struct windows {
    struct span span[WINDOWS]; /* from ... on and before ... */
    struct seen *flows;
    size_t count;
    int64_t one_of; /* flows are every so manieth; 1 = all */
    size_t column_count;
    const char *columns[SELECTION_BY_MAX]; /* of the selection, which must outlive this */
    struct words words[SELECTION_BY_MAX];  /* values of each column */
    uint32_t alike_count[ALIKE_COUNT];
};

/*
 * Reads the flows to us of both windows: that of the selection, and its baseline. Flows are read
 * column by column of the selection's --by. On failure error has the text. Free it with
 * windows_done(), also after a failure.
 */
MUST_USE enum status windows_read(const struct selection *s, struct windows *ret_windows,
                                  struct text *error);
void windows_done(struct windows *w);

/*
 * Makes a query over the flows to us of both windows: FROM windows_from(s) is a relation with the
 * columns of table flow and is_during, 0 or 1. On failure error has the text.
 */
MUST_USE enum status windows_query(const struct selection *s, const struct windows *w,
                                   const char *sql, struct query **ret_query, struct text *error);
const char *windows_from(const struct selection *s);

/* Counts the flows of each window. */
void windows_count(const struct windows *w, int64_t ret_flows[WINDOWS]);

double windows_seconds(const struct windows *w, enum window window);

#endif
