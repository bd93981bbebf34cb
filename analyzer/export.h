/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORT_H
#define EXPORT_H
/*
 * firstflight export: whole tables for other programs. Rows leave as they are read, in memory that
 * does not grow with their number.
 */
#include "clickhouse.h"
#include "selection.h"

#include <stdio.h>

/* Rows of a block for ClickHouse, and bytes after which a block is full whatever its rows. */
enum { EXPORT_BLOCK_ROWS = 65536, EXPORT_BLOCK_BYTES = 64 << 20 };
enum { EXPORT_TABLES_MAX = 8 };

enum export_format { EXPORT_CSV, EXPORT_NDJSON, EXPORT_CLICKHOUSE };

/* Reads "csv", "ndjson", "clickhouse". */
bool export_format_of(const char *name, enum export_format *ret_format);

struct export_options {
    enum export_format format;
    const char *table; /* NULL: flow; to a server also capture, drop_count and half_open */
    struct selection_options selection; /* of table flow; by is not used */
    int64_t block_rows;                 /* below 1: EXPORT_BLOCK_ROWS */
    struct clickhouse *server;          /* NULL: rows go to a file */
    volatile sig_atomic_t *interrupted; /* becomes other than 0: the export ends with STATUS_END */
};

/* What left. */
struct export_count {
    const char *table;
    uint64_t rows, bytes, blocks; /* blocks only of those that a server acknowledged */
};

struct export_result {
    struct export_count tables[EXPORT_TABLES_MAX];
    size_t table_count;
};

/*
 * Exports; a file begins, for ClickHouse, with the line "INSERT INTO ... FORMAT RowBinary". To a
 * server nothing goes to out. On failure error has the text, and ret_result what left before: to a
 * file or acknowledged.
 */
MUST_USE enum status command_export(struct database *database, const struct export_options *options,
                                    FILE *out, struct export_result *ret_result,
                                    struct text *error);

#endif
