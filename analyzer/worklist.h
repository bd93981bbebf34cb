/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKLIST_H
#define WORKLIST_H
/*
 * Lists of files, one for each capture point, for ingests that run apart: each list goes to
 * `ingest --files-from`, anywhere and in any order, and `merge` brings the databases together.
 */
#include "inputs.h"
#include "text.h"

#include <stdio.h>

struct worklist_result {
    size_t points, files;
    size_t files_unreadable; /* named or found, but on no list */
};

/*
 * Writes for each capture point a file of its paths, one a line in order of time, into a directory,
 * which is made when it is not there (its parent must be), and the lists' own paths to `out`, most
 * bytes first. A point's list has the same name in every run and is touched only when it changes;
 * lists of other points stay. Notes are one line each. STATUS_USAGE and STATUS_IO: error says what.
 */
MUST_USE enum status worklist_write(const struct input_options *options, const char *directory,
                                    FILE *out, struct worklist_result *ret_result,
                                    struct text *notes, struct text *error);

/*
 * The name of a point's list: the end of the point's name as far as shells take it without quotes,
 * and 12 hex digits of the hash of all of it: "fra1-edge-e14b9a22d0c1.files".
 */
void worklist_name(const char *point_name, struct text *name);

#endif
