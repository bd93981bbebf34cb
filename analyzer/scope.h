/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCOPE_H
#define SCOPE_H
/* Where something changed: flows that have certain values in certain columns. */
#include "windows.h"

enum { CONDITIONS_MAX = 3 };

struct condition {
    size_t column; /* of windows.columns */
    uint32_t word;
};

/* Flows that fulfil all conditions; { 0 } is everywhere. */
struct scope {
    struct condition condition[CONDITIONS_MAX];
    size_t count;
};

bool scope_holds(const struct scope *s, const struct seen *f);
bool scope_equal(const struct scope *a, const struct scope *b);
bool scope_has_column(const struct scope *s, size_t column);

/*
 * Adds "site fra1, sni www.example.com", or "everywhere". Behind it in brackets what all flows
 * there have in common besides, and not all elsewhere, as "(host edge-3)".
 */
void scope_add_name(const struct scope *s, const struct windows *w, struct text *t);

/* Adds SQL that is true for its flows, as "site = 'fra1'"; nothing for everywhere. */
void scope_add_condition(const struct scope *s, const struct windows *w, struct text *sql);

/* Flows of both that both hold, over those of the smaller one: 1 = one lies in the other. */
double scope_overlap(const struct scope *a, const struct scope *b, const struct windows *w);

#endif
