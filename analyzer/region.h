/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGION_H
#define REGION_H
/*
 * Address to region, country and AS number by longest prefix: from geofeed CSV (RFC 8805), plain
 * "prefix,region" CSV, or a MaxMind database where libmaxminddb was there at build time.
 */
#include "endpoint.h"
#include "status.h"

#include <stddef.h>

struct regions; /* files given by --clients, in order: the first that knows an address answers */

struct region {
    const char *region;  /* NULL = this file says nothing of it; lives as long as struct regions */
    const char *country; /* ISO 3166 alpha-2 */
    int64_t asn;         /* 0 = none */
};

/* Starts an empty set; NULL without memory. */
struct regions *regions_open(void);
void regions_close(struct regions *r);

/* Adds a file. Lines that cannot be read are counted; STATUS_IO or STATUS_REFUSED (text in
 * regions_error()) when the file as a whole cannot be used. */
MUST_USE enum status regions_add_file(struct regions *r, const char *path);

const char *regions_error(const struct regions *r);
size_t regions_bad_lines(const struct regions *r);

/* What the files say of an address; all zero when none knows it. */
struct region regions_find(const struct regions *r, const struct address *a);

/* A set of prefixes (--local): "192.0.2.0/24,2001:db8::/32", or a file with one a line. */
struct prefix_set;
MUST_USE enum status prefix_set_open(const char *list_or_file, struct prefix_set **ret_set);
bool prefix_set_contains(const struct prefix_set *s, const struct address *a);
void prefix_set_close(struct prefix_set *s);

/* NULL when built without libmaxminddb: for --version and messages. */
const char *regions_mmdb_version(void);

#endif
