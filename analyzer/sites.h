/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SITES_H
#define SITES_H
/* Regions of sites: a CSV file of "site,region" lines (--sites). */
#include "bytes.h"
#include "status.h"

struct sites;

/*
 * Reads a file, as forgiving as csv.h; a first line "site,region" is a header. Of lines with the
 * same site the last holds; a site without a region takes it away. STATUS_IO (errno);
 * STATUS_REFUSED: too large, or a line is not two fields of printable ASCII of at most 63
 * characters: *ret_line is its number, 0 for the file.
 */
MUST_USE enum status sites_open(const char *path, struct sites **ret_sites, size_t *ret_line);

/* The same of a text. */
MUST_USE enum status sites_read(struct bytes text, struct sites **ret_sites, size_t *ret_line);
void sites_close(struct sites *s); /* NULL is accepted */

/*
 * Whether the file names the site; *ret_region is its region, NULL for none, and lives as long as
 * s. NULL is accepted for either.
 */
bool sites_find(const struct sites *s, const char *site, const char **ret_region);

#endif
