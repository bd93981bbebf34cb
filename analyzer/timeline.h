/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TIMELINE_H
#define TIMELINE_H
/* Our TLS flows of a selection, step by step of time, as figures of a page. */
#include "overview.h"
#include "page.h"

/* Seconds in a step: as many steps as can be told apart, none shorter than one. */
int64_t timeline_step_s(struct span span);

/* Kinds of handshakes and failures, as columns. On failure error has the text. */
MUST_USE enum status timeline_add_kinds(struct page *page, const struct selection *s,
                                        int64_t step_s, struct text *error);

/* p50 and p90 of the perceived time, as lines. On failure error has the text. */
MUST_USE enum status timeline_add_waiting(struct page *page, const struct selection *s,
                                          int64_t step_s, struct text *error);

/* A sentence that says how long a step is. */
void timeline_add_words(struct page *page, int64_t step_s);

#endif
