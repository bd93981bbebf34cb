/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RESULT_H
#define RESULT_H
/* Result sets of the database, written as they come. */
#include "query.h"
#include "table.h"

/*
 * Writes all rows of a query in a style. When the SQL fails while it runs, what came before is
 * written, and database_error() has the text.
 */
MUST_USE enum status result_write(struct query *q, struct table_style style, FILE *out);

/* Writes a page. STATUS_NO_MEMORY when the text is not whole. */
MUST_USE enum status result_write_text(const struct text *page, FILE *out);

/*
 * Ends a command: gives its status again and, when it failed and error is still empty, says there
 * whose fault it was, the output's or the database's.
 */
MUST_USE enum status result_end(enum status status, struct database *database, FILE *out,
                                struct text *error);

#endif
