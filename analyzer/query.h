/* SPDX-License-Identifier: Apache-2.0 */
#ifndef QUERY_H
#define QUERY_H
/*
 * Edge to SQLite for reading: SQL to result sets. The connection cannot change the file, whatever
 * the SQL says, attaches no others, and knows the functions of sql_functions.h. It reads files of
 * this schema version only, also from a read-only disk.
 */
#include "status.h"
#include "table.h" /* struct cell */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct database;
struct query; /* a statement: its parameters, then its rows */

/*
 * Opens a database for reading. STATUS_REFUSED: not ours, or of a newer program; STATUS_IO: not
 * there or not readable. On failure *ret_database is still set (unless STATUS_NO_MEMORY) so that
 * database_error() can be asked; close it.
 */
MUST_USE enum status database_open(const char *path, struct database **ret_database);

/* Text of the last failure, of the file or of the SQL; lives until the next call that fails. */
const char *database_error(const struct database *d);

/* Its queries must have been closed. NULL is accepted. */
void database_close(struct database *d);

/*
 * Makes a query of one SQL statement, which may be the user's. STATUS_USAGE: the SQL is wrong,
 * empty, more than one statement, or writes; database_error() says which. Parameters are NULL until
 * they are bound. Close it with query_close().
 */
MUST_USE enum status query_open(struct database *d, const char *sql, struct query **ret_query);
void query_close(struct query *q); /* NULL is accepted */

/*
 * Makes a query that gives no row but keeps those of the SQL, a SELECT without parentheses around
 * it, as a relation of that name, a plain one, in place of an older one of it. All later queries of
 * this database can read it; it goes with database_close(). It is kept in memory, and what is too
 * much for that in a temporary file. Fails as query_open() and query_next().
 */
MUST_USE enum status query_open_keeping(struct database *d, const char *name, const char *sql,
                                        struct query **ret_query);

/* Binds the parameter of that name, as ":since". STATUS_USAGE: the SQL has none of that name. */
MUST_USE enum status query_bind_integer(struct query *q, const char *name, int64_t value);
MUST_USE enum status query_bind_real(struct query *q, const char *name, double value);
MUST_USE enum status query_bind_text(struct query *q, const char *name, struct bytes text);

size_t query_column_count(const struct query *q);

/* Name of a column as the SQL gives it, NULL without memory; lives as long as q. */
const char *query_column_name(const struct query *q, size_t column);

/*
 * Steps to the next row. STATUS_END after the last; STATUS_USAGE when the SQL fails while it runs
 * (a function's argument is wrong); STATUS_IO when the file cannot be read.
 */
MUST_USE enum status query_next(struct query *q);

/* Value of the current row; views in it live until the next query_next() or query_rewind(). */
struct cell query_cell(struct query *q, size_t column);

/* Starts again from the first row; parameters stay. */
void query_rewind(struct query *q);

#endif
