/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SQL_FUNCTIONS_H
#define SQL_FUNCTIONS_H
/*
 * SQL aggregates that SQLite got with version 3.51's percentile extension, with its names, results
 * and errors, for the SQLite of any system:
 *
 *   median(Y)               percentile(Y, 50)
 *   percentile(Y, P)        P from 0 to 100, interpolated between the two nearest values
 *   percentile_cont(Y, F)   the same with F from 0 to 1
 *   percentile_disc(Y, F)   the value itself below that place
 *
 * NULLs are left out; no values give NULL. Text, infinities, and a P that changes are errors. All
 * can be window functions. The file is also the source of the loadable extension
 * firstflight_sqlite for other programs: compiled with -DSQL_FUNCTIONS_EXTENSION it has the entry
 * point that SQLite looks for in a file of that name.
 */

struct sqlite3;

/* Makes the functions known to a connection; gives a SQLite result code. */
int sql_functions_register(struct sqlite3 *db);

#endif
