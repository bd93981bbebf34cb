/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROW_BINARY_H
#define ROW_BINARY_H
/* ClickHouse's format RowBinary: values one behind the other, without names. */
#include "buffer.h"
#include "export_table.h"
#include "status.h"
#include "table.h" /* struct cell */

/*
 * Appends one value. STATUS_REFUSED, and nothing is added: the cell is none that the column can
 * hold, as a word that is not in its list. STATUS_NO_MEMORY.
 */
MUST_USE enum status row_binary_add(struct buffer *b, const struct export_column *column,
                                    const struct cell *cell);

#endif
