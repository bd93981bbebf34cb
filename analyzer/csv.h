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

enum {
    CSV_FIELD_SIZE = 64,      /* with terminator; longer fields are wrong */
    CSV_FILE_MAX = 256 << 20, /* bytes: all published geofeeds together have 50 MB */
};

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

#endif
