/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CSV_H
#define CSV_H
/*
 * Lists that people keep as CSV (RFC 4180), as forgiving as such files are found: comments from
 * '#', blanks around fields, any line ends, a byte order mark.
 */
#include "bytes.h"
#include "status.h"

#include <stdbool.h>

enum { CSV_FIELD_SIZE = 64 /* with terminator; longer fields are wrong */ };

/* Takes the next line off the rest, without its end; CR, LF and CR LF end lines. */
struct bytes csv_line(struct bytes *rest);

/*
 * Takes the next field of a line, blanks around it dropped, as printable ASCII text; a '#' outside
 * of quotes ends the line. False when it is too long or holds other bytes; the field is taken all
 * the same.
 */
bool csv_field(struct bytes *line, char field[CSV_FIELD_SIZE]);

/* The text behind a byte order mark. */
struct bytes csv_text(struct bytes text);

/*
 * Reads a whole file to *ret_content, which the caller frees. STATUS_IO (errno), STATUS_REFUSED:
 * larger than 256 MB, STATUS_NO_MEMORY.
 */
MUST_USE enum status csv_read_file(const char *path, uint8_t **ret_content, size_t *ret_len);

#endif
