/* SPDX-License-Identifier: Apache-2.0 */
#include "places.h"

#include "mmdb.h"

#include <errno.h>

static enum status open_clients(const struct place_options *o, struct places *p, struct text *error)
{
    if (o->mmdb_region != NULL && !mmdb_path_is_valid(o->mmdb_region)) {
        text_addf(error,
                  "--mmdb-region %s: no path to a value, as continent.code or"
                  " subdivisions.0.iso_code",
                  o->mmdb_region);
        return STATUS_USAGE;
    }
    if (o->client_file_count == 0)
        return STATUS_OK;
    p->clients = regions_open(o->mmdb_region);
    if (p->clients == NULL)
        return STATUS_NO_MEMORY;
    for (size_t i = 0; i < o->client_file_count; i++) {
        enum status status = regions_add_file(p->clients, o->client_files[i]);
        if (status != STATUS_OK) {
            text_addf(error, "--clients %s", regions_error(p->clients));
            return status;
        }
    }
    return STATUS_OK;
}

static enum status open_sites(const char *path, struct places *p, struct text *error)
{
    size_t line;
    enum status status = sites_open(path, &p->sites, &line);
    if (status == STATUS_IO)
        text_addf(error, "--sites %s: %s", path, strerror(errno));
    else if (status == STATUS_REFUSED && line > 0)
        text_addf(error, "--sites %s: line %zu is not site,region", path, line);
    else if (status == STATUS_REFUSED)
        text_addf(error, "--sites %s: larger than 256 MB", path);
    return status;
}

enum status places_open(const struct place_options *options, struct places *ret_places,
                        struct text *error)
{
    struct places p = { 0 };
    enum status status = open_clients(options, &p, error);
    if (status == STATUS_OK && options->sites != NULL)
        status = open_sites(options->sites, &p, error);
    if (status == STATUS_NO_MEMORY && error->len == 0)
        text_add(error, "out of memory");
    if (status != STATUS_OK)
        places_close(&p);
    else
        *ret_places = p;
    return status;
}

void places_close(struct places *p)
{
    regions_close(p->clients);
    sites_close(p->sites);
    *p = (struct places){ 0 };
}

const char *places_site_region(const struct places *p, const char *site, const char *otherwise)
{
    const char *region;
    return sites_find(p->sites, site, &region) ? region : otherwise;
}
