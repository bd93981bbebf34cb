/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLOWS_H
#define FLOWS_H
/* firstflight flows: finds flows. firstflight sql: any query. */
#include "selection.h"
#include "table.h"

enum { FLOWS_LIMIT_DEFAULT = 20 };

struct flows_options {
    struct selection_options selection; /* by is not used */
    const char *community_id;           /* NULL: any */
    int64_t limit;                      /* rows; below 0: FLOWS_LIMIT_DEFAULT */
    struct table_style style;
};

/* Writes the flows selected, oldest first. On failure error has the text. */
MUST_USE enum status command_flows(struct database *database, const struct flows_options *options,
                                   FILE *out, struct text *error);

/* Writes the result of one SQL query. On failure error has the text. */
MUST_USE enum status command_sql(struct database *database, const char *sql,
                                 struct table_style style, FILE *out, struct text *error);

#endif
