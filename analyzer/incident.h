/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INCIDENT_H
#define INCIDENT_H
/* Report incident: what changed between two windows of time, where, and what is likely behind it.
 */
#include "selection.h"
#include "table.h"

/*
 * Writes the report in a style. STATUS_USAGE without --since, or when a window is empty of time; on
 * any failure error has the text.
 */
MUST_USE enum status incident_report(const struct selection *s, struct table_style style,
                                     bool verbose, FILE *out, struct text *error);

#endif
