/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RESULT_H
#define RESULT_H
/* Result sets of the database, written as they come. */
#include "query.h"
#include "table.h"

/*
 * Writes all rows of a query in a style. When the SQL fails while it runs, what came before is
 * written; database_error() has the text then, and of STATUS_IO when it is the database's.
 */
MUST_USE enum status result_write(struct query *q, struct table_style style, FILE *out);

#endif
