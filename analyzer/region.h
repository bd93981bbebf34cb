/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_H
#define REGION_H
/*
 * Address to region, country and AS number by longest prefix: from geofeed CSV (RFC 8805), plain
 * "prefix,region" CSV, or a MaxMind database.
 */
#include "bytes.h"
#include "endpoint.h"
#include "status.h"

#include <stddef.h>

struct regions; /* files given by --clients, in order: the first that knows an address answers */

struct region {
    const char *region;  /* NULL = no file says anything of it; lives as long as struct regions */
    const char *country; /* ISO 3166 alpha-2, upper case; NULL = not said */
    int64_t asn;         /* 0 = none */
};

/*
 * Starts an empty set; NULL without memory. mmdb_region: where in databases the region stands, see
 * mmdb_open(); NULL = the usual places; it lives as long as the set.
 */
struct regions *regions_open(const char *mmdb_region);
void regions_close(struct regions *r);

/*
 * Adds a file: a MaxMind database when its name ends in .mmdb, else CSV as for regions_add_text().
 * Lines that cannot be read are counted; STATUS_IO or STATUS_REFUSED (text in regions_error()) when
 * the file as a whole cannot be used: no file, no usable line, larger than 256 MB, no database.
 */
MUST_USE enum status regions_add_file(struct regions *r, const char *path);

/*
 * Adds the content of a CSV file; name is for messages. Geofeed (RFC 8805): the region is the third
 * column (ISO 3166-2) where there is one, else the country; or "prefix,region", told apart by the
 * second column, which in a geofeed is two letters or empty. Comments, a header line, missing
 * columns, blanks, quotes, CR LF and a byte order mark are all right. The longest prefix wins, of
 * equal ones the last; a prefix with neither country nor region takes its addresses out of those
 * around it. Bad are lines whose prefix is none or has bits set behind its length, and fields that
 * are longer than 63 characters or not printable ASCII.
 */
MUST_USE enum status regions_add_text(struct regions *r, const char *name, struct bytes text);

const char *regions_error(const struct regions *r);
size_t regions_bad_lines(const struct regions *r);

/*
 * What the files say of an address: each of region, country and AS number by the first file that
 * says it; all zero when none knows the address. Threads may call it at once.
 */
struct region regions_find(const struct regions *r, const struct address *a);

/* The same of a whole prefix of so many bits (of 128); false when its addresses differ in it. */
bool regions_find_all(const struct regions *r, const struct address *first, unsigned bits,
                      struct region *ret_region);

#endif
