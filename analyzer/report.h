/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REPORT_H
#define REPORT_H
/* firstflight report: questions about the flows of a database, each a name and a function. */
#include "selection.h"
#include "table.h"

struct report_options {
    const char *name; /* of the report; NULL: regions */
    struct selection_options selection;
    struct table_style style;
    bool verbose;
};

/*
 * Writes a report to out: standard output, or the file of -o. STATUS_USAGE: no such report, or an
 * option is wrong; on any failure error has the text.
 */
MUST_USE enum status command_report(struct database *database, const struct report_options *options,
                                    FILE *out, struct text *error);

/* Name and question of report i, for help texts; NULL behind the last. */
const char *report_name(size_t i);
const char *report_question(size_t i);

#endif
