/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MANIFEST_H
#define MANIFEST_H
/*
 * --manifest: a CSV file (RFC 4180) that says for captures where they were taken. Its first line
 * names the columns: glob, and site, host, region or any further names of labels, in any order. A
 * file takes its labels from the first line whose glob fits its path; an empty field gives none.
 *
 * A glob is matched from the right, element by element, as a pattern of --labels is; one that
 * starts with a slash must fit from the root. A star stands for any text in an element and a
 * question mark for one byte; the rest is literal.
 */
#include "inputs.h"

struct manifest;

enum {
    MANIFEST_SIZE_MAX = 16 * 1024 * 1024, /* a larger file is refused */
    MANIFEST_COLUMNS_MAX = 64,
};

/*
 * Reads a manifest. On failure *ret_manifest is still set (unless STATUS_NO_MEMORY) so that
 * manifest_error() can be asked, and must be closed. STATUS_IO: cannot be read; STATUS_USAGE: what
 * is wrong in which line.
 */
MUST_USE enum status manifest_open(const char *path, struct manifest **ret_manifest);
void manifest_close(struct manifest *m); /* NULL is accepted */

const char *manifest_error(const struct manifest *m);

/*
 * Labels of a file by its path. STATUS_REFUSED when no line fits. Strings in ret_labels are new:
 * labels_done().
 */
MUST_USE enum status manifest_labels(const struct manifest *m, const char *path,
                                     struct labels *ret_labels);

#endif
