/* SPDX-License-Identifier: Apache-2.0 */
#ifndef POLICY_H
#define POLICY_H
/* Report policy: server names where early data is used although a rule forbids it. */
#include "page.h"
#include "selection.h"

/* Fills a page with the report. On failure error has the text. */
MUST_USE enum status policy_fill(struct page *p, const struct selection *s, struct text *error);

#endif
