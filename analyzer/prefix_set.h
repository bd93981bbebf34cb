/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PREFIX_SET_H
#define PREFIX_SET_H
/* A set of address prefixes: --local. */
#include "endpoint.h"
#include "status.h"

struct prefix_set;

/*
 * "192.0.2.0/24,2001:db8::/32", or a file with one a line (of which further columns are ignored).
 * STATUS_IO: neither a list nor a file; STATUS_REFUSED: a line of the file is no prefix, since a
 * set that says what is ours must not be read in part.
 */
MUST_USE enum status prefix_set_open(const char *list_or_file, struct prefix_set **ret_set);
void prefix_set_close(struct prefix_set *s); /* NULL is accepted */

bool prefix_set_contains(const struct prefix_set *s, const struct address *a);

#endif
