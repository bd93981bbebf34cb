/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPORT_TABLE_H
#define EXPORT_TABLE_H
/* The tables that can be exported, with their columns; made from schema/flow.sql. */
#include "text.h"

/* How RowBinary writes a value; all numbers little-endian. */
enum export_kind {
    EXPORT_INT64,   /* 8 bytes */
    EXPORT_UINT8,   /* 1 byte */
    EXPORT_FLOAT64, /* 8 bytes, IEEE 754 */
    EXPORT_STRING,  /* its length as LEB128, then its bytes */
    EXPORT_FIXED,   /* its bytes, export_column.length of them */
    EXPORT_ENUM8,   /* 1 byte: the number of the word, which export_column.type lists */
};

struct export_column {
    const char *name;
    const char *type; /* ClickHouse's name of its type */
    enum export_kind kind;
    bool nullable; /* a byte before the value says that there is one: 0, or none: 1 */
    size_t length; /* of EXPORT_FIXED, bytes */
};

struct export_table {
    const char *name;
    const char *select; /* SQL of its rows in an order of their own; flow reads `selected` */
    const struct export_column *columns;
    size_t column_count;
};

/* The table of that name; NULL when there is none to export. */
const struct export_table *export_table_find(const char *name);

/* All of them by number from 0, NULL behind the last. */
const struct export_table *export_table_at(size_t number);

/* Adds "INSERT INTO flow_load (flow_id, ...) FORMAT RowBinary". */
void export_table_add_insert(const struct export_table *table, struct text *sql);

/*
 * Whether a column of ClickHouse of the type `there` takes what is written for the type `ours`:
 * the same, in LowCardinality() or not; an enumeration may have more words behind ours.
 */
bool export_type_fits(const char *ours, const char *there);

#endif
