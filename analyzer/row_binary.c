/* SPDX-License-Identifier: Apache-2.0 */
#include "row_binary.h"

enum { LENGTH_MAX = 10 }; /* bytes of the longest length */

/* Lengths of strings are LEB128: 7 bits a byte, the lowest first, the highest bit: more follow. */
static void put_length(struct buffer *b, uint64_t length)
{
    while (length >= 0x80) {
        b->at[b->len++] = (uint8_t)(length | 0x80);
        length >>= 7;
    }
    b->at[b->len++] = (uint8_t)length;
}

static void put_le(struct buffer *b, uint64_t value, size_t width)
{
    for (size_t i = 0; i < width; i++)
        b->at[b->len++] = (uint8_t)(value >> 8 * i);
}

/* Number of a word in "Enum8('tcp' = 1, 'quic' = 2)", perhaps in "Nullable()"; 0 when not there. */
static uint8_t number_of(const char *type, struct bytes word)
{
    const char *at = strchr(type, '\'');
    for (uint8_t number = 1; at != NULL; number++) {
        const char *begin = at + 1, *end = strchr(begin, '\'');
        if (bytes_equal((struct bytes){ (const uint8_t *)begin, (size_t)(end - begin) }, word))
            return number;
        at = strchr(end + 1, '\'');
    }
    return 0;
}

static bool fits(const struct export_column *column, const struct cell *cell)
{
    switch (column->kind) {
    case EXPORT_INT64:
        return cell->type == CELL_INTEGER;
    case EXPORT_UINT8:
        return cell->type == CELL_INTEGER && cell->integer >= 0 && cell->integer <= UINT8_MAX;
    case EXPORT_FLOAT64:
        return cell->type == CELL_REAL;
    case EXPORT_STRING:
        return cell->type == CELL_TEXT;
    case EXPORT_FIXED:
        return cell->type == CELL_TEXT && cell->bytes.len == column->length;
    case EXPORT_ENUM8:
        return cell->type == CELL_TEXT && number_of(column->type, cell->bytes) > 0;
    }
    return false;
}

static void put_value(struct buffer *b, const struct export_column *column, const struct cell *cell)
{
    uint64_t bits;
    switch (column->kind) {
    case EXPORT_INT64:
        put_le(b, (uint64_t)cell->integer, sizeof cell->integer);
        return;
    case EXPORT_UINT8:
        put_le(b, (uint64_t)cell->integer, 1);
        return;
    case EXPORT_FLOAT64:
        memcpy(&bits, &cell->real, sizeof bits);
        put_le(b, bits, sizeof bits);
        return;
    case EXPORT_STRING:
        put_length(b, cell->bytes.len);
        break;
    case EXPORT_FIXED:
        break;
    case EXPORT_ENUM8:
        put_le(b, number_of(column->type, cell->bytes), 1);
        return;
    }
    bool added = buffer_add(b, cell->bytes); /* there is room */
    assert(added);
    (void)added;
}

enum status row_binary_add(struct buffer *b, const struct export_column *column,
                           const struct cell *cell)
{
    bool is_null = column->nullable && cell->type == CELL_NULL;
    if (!is_null && !fits(column, cell))
        return STATUS_REFUSED;
    if (!buffer_reserve(b, 1 + LENGTH_MAX + cell->bytes.len))
        return STATUS_NO_MEMORY;
    if (column->nullable)
        put_le(b, is_null, 1);
    if (!is_null)
        put_value(b, column, cell);
    return STATUS_OK;
}
