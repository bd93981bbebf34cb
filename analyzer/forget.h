/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FORGET_H
#define FORGET_H
/*
 * Takes flows out of a database for good: old ones, or those of a site. The captures they came from
 * stay known, so that reading them again does not bring the flows back.
 */
#include "status.h"
#include "store.h"
#include "text.h"

struct forget_options {
    const char *database;
    const char *before; /* flows whose last packet is older than this time; NULL = by site */
    const char *site;   /* flows of that site; NULL = by time */
};

/* STATUS_USAGE: the time is none. STATUS_IO, STATUS_REFUSED: nothing was removed. error says why.
 */
MUST_USE enum status forget(const struct forget_options *options, struct forgotten *ret_forgotten,
                            struct text *error);

#endif
