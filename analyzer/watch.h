/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WATCH_H
#define WATCH_H
/* How well the capture points watched two windows of time: what differs there is no incident. */
#include "page.h"
#include "windows.h"

/*
 * Adds a warning for each capture point that was not there in one of the windows for as long as in
 * the other, that lost packets or whose files are damaged. On failure error has the text.
 */
MUST_USE enum status watch_add(struct page *p, const struct selection *s, const struct windows *w,
                               struct text *error);

#endif
