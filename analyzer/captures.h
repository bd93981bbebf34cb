/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAPTURES_H
#define CAPTURES_H
/* firstflight captures: what is in the database. */
#include "query.h"
#include "table.h"

/*
 * Writes the capture files by point: times, packets, kernel drops, what was not used and why,
 * damage; as a page also how far the clocks of points are apart that saw the same connections. On
 * failure error has the text.
 */
MUST_USE enum status command_captures(struct database *database, struct table_style style,
                                      FILE *out, struct text *error);

#endif
