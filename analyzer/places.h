/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PLACES_H
#define PLACES_H
/* The files that say where clients and sites are: --clients, --mmdb-region, --sites. */
#include "region.h"
#include "sites.h"
#include "text.h"

struct place_options {
    char **client_files; /* --clients, in order */
    size_t client_file_count;
    const char *mmdb_region; /* --mmdb-region; NULL */
    const char *sites;       /* --sites; NULL */
};

struct places {
    struct regions *clients; /* NULL without --clients */
    struct sites *sites;     /* NULL without --sites */
};

/* Reads them. STATUS_USAGE, STATUS_IO, STATUS_REFUSED, STATUS_NO_MEMORY with the text in error. */
MUST_USE enum status places_open(const struct place_options *options, struct places *ret_places,
                                 struct text *error);

/* { 0 } is accepted. */
void places_close(struct places *p);

/* The region of a site by --sites where that names it, else the one given; NULL for none. */
const char *places_site_region(const struct places *p, const char *site, const char *otherwise);

#endif
