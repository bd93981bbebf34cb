/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGIONS_H
#define REGIONS_H
/*
 * Report regions: how long visitors waited, per client region and kind of handshake, what 0-RTT
 * gained them, what the verdicts rest on and what was left out.
 */
#include "selection.h"
#include "table.h"

/*
 * Writes the report. As a table: the page for people; in other formats one row per group, version
 * of TLS and kind, where the row of 0-RTT has the gains. On failure error has the text.
 */
MUST_USE enum status regions_report(const struct selection *s, struct table_style style,
                                    bool verbose, FILE *out, struct text *error);

#endif
