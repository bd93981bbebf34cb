/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SETTING_H
#define SETTING_H
/*
 * What of clients and names a database holds is decided by its first ingest and kept in table
 * setting: rows hidden in different ways could not be compared, and rows that are there already
 * cannot be hidden afterwards.
 */
#include "privacy.h"
#include "store.h"
#include "text.h"

struct privacy_options {
    const char *client_addr,
        *sni;             /* words of --client-addr, --sni; NULL = as the database has it */
    const char *hash_key; /* --hash-key; NULL = the database's name with .key behind it */
};

/*
 * What holds for an ingest into the database of that path; reads the key, or makes it for a new
 * database whose options name none: then *ret_key_made is its path, which the caller frees, else
 * NULL. STATUS_USAGE: a word is none, or the database holds something else; STATUS_IO,
 * STATUS_REFUSED: the key. The text in error.
 */
MUST_USE enum status setting_open(struct store *s, const char *database,
                                  const struct privacy_options *options,
                                  struct privacy *ret_privacy, char **ret_key_made,
                                  struct text *error);

/* Inside a transaction: keeps it; STATUS_REFUSED when another ingest decided otherwise meanwhile.
 */
MUST_USE enum status setting_keep(struct store *s, const struct privacy *privacy,
                                  struct text *error);

#endif
