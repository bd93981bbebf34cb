/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EARLY_DATA_H
#define EARLY_DATA_H
/* Report early-data: early data offered, sent, accepted, refused and why, and answered how soon. */
#include "page.h"
#include "selection.h"

/* Fills a page with the report. On failure error has the text. */
MUST_USE enum status early_data_fill(struct page *p, const struct selection *s, struct text *error);

#endif
