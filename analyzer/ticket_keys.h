/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TICKET_KEYS_H
#define TICKET_KEYS_H
/* Report ticket-keys: which keys sealed the tickets that clients bring, and who accepts them. */
#include "page.h"
#include "selection.h"

/* Fills a page with the report. On failure error has the text. */
MUST_USE enum status ticket_keys_fill(struct page *p, const struct selection *s,
                                      struct text *error);

#endif
