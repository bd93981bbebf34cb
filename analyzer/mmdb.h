/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MMDB_H
#define MMDB_H
/* Edge to libmaxminddb, where it was there at build time: what a MaxMind database says of an
 * address. */
#include "endpoint.h"
#include "status.h"

struct mmdb;

enum { MMDB_TEXT_SIZE = 128 }; /* names of cities fit; longer ones are cut */

/* What an entry says; empty and 0 where it says nothing. */
struct mmdb_place {
    char region[MMDB_TEXT_SIZE];
    char country[3]; /* ISO 3166 alpha-2 */
    int64_t asn;
};

/*
 * Opens a file. region_path names the value that is the region, as "continent.code" or
 * "subdivisions.0.iso_code": keys of maps and numbers of list items with dots between. NULL: the
 * subdivision ("DE-HE"), else the name of a subdivision or city, else the country. STATUS_IO and
 * STATUS_REFUSED with the reason, a static text or errno's, in *ret_reason.
 */
MUST_USE enum status mmdb_open(const char *path, const char *region_path, struct mmdb **ret_mmdb,
                               const char **ret_reason);
void mmdb_close(struct mmdb *m); /* NULL is accepted */

/* Whether a path could name a value: no empty key, not more than eight of them. */
bool mmdb_path_is_valid(const char *region_path);

/*
 * What the database says of an address. *ret_bits: of how many leading bits (of 128) that holds.
 * Threads may call it at once.
 */
struct mmdb_place mmdb_find(const struct mmdb *m, const struct address *a, unsigned *ret_bits);

/* NULL when built without libmaxminddb. */
const char *mmdb_version(void);

#endif
