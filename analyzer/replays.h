/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPLAYS_H
#define REPLAYS_H
/* Report replays: ClientHellos that came on more than one connection, and, apart from them, tickets
 * that were used again. */
#include "page.h"
#include "selection.h"

/* Fills a page with the report. On failure error has the text. */
MUST_USE enum status replays_fill(struct page *p, const struct selection *s, struct text *error);

#endif
