/* SPDX-License-Identifier: Apache-2.0 */
#include "set_regions.h"

#include "prefix.h"
#include "store.h"

#include <unistd.h>

struct job {
    struct store *store;
    struct places places;
    struct set_regions_result *result;
};

static struct row_text text_of(const char *text)
{
    return (struct row_text){ .at = text, .len = text == NULL ? 0 : strlen(text) };
}

static bool texts_equal(const struct row_text *a, const struct row_text *b)
{
    bool both = a->at != NULL && b->at != NULL;
    return both ? strcmp(a->at, b->at) == 0 : a->at == b->at;
}

static bool is_by_clients(const struct flow_place *place)
{
    return place->region_basis.at != NULL && strcmp(place->region_basis.at, "capture") != 0;
}

/* What the files say of an address or network as it is stored; false when it tells too little. */
static bool find_client(const struct regions *clients, const char *stored,
                        struct region *ret_region)
{
    struct address first;
    unsigned bits;
    return stored != NULL && prefix_parse(stored, &first, &bits) &&
           regions_find_all(clients, &first, bits, ret_region);
}

static void use_capture(const struct stored_place *flow, struct flow_place *place)
{
    place->region = flow->capture_region;
    place->region_basis = text_of(flow->capture_region.at != NULL ? "capture" : NULL);
}

/* The place of a flow by now. */
static struct flow_place place_of(const struct job *job, const struct stored_place *flow)
{
    struct flow_place place = flow->place;
    bool is_proxied = flow->proxied_client_ip.at != NULL;
    const char *client = is_proxied ? flow->proxied_client_ip.at : flow->client_ip.at;
    struct region known = { 0 };
    bool is_found = job->places.clients != NULL && find_client(job->places.clients, client, &known);
    if (job->places.clients != NULL && !is_found)
        job->result->hidden++;
    if (is_found) {
        place.country = text_of(known.country);
        place.asn = (struct row_integer){ known.asn != 0, known.asn };
    }
    if (is_found && known.region != NULL) {
        place.region = text_of(known.region);
        place.region_basis = text_of(is_proxied ? "proxy" : "clients");
    } else if (is_found || !is_by_clients(&place)) {
        use_capture(flow, &place);
    }
    return place;
}

static bool places_equal(const struct flow_place *a, const struct flow_place *b)
{
    return texts_equal(&a->region, &b->region) && texts_equal(&a->region_basis, &b->region_basis) &&
           texts_equal(&a->country, &b->country) && a->asn.has == b->asn.has &&
           a->asn.value == b->asn.value;
}

static enum status set_flows(struct job *job)
{
    struct stored_place flow;
    enum status status;
    while ((status = store_next_place(job->store, &flow)) == STATUS_OK) {
        struct flow_place place = place_of(job, &flow);
        job->result->flows++;
        if (places_equal(&place, &flow.place))
            continue;
        job->result->changed++;
        status = store_update_place(job->store, flow.flow_id, &place);
        if (status != STATUS_OK)
            return status;
    }
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status set_captures(struct job *job)
{
    struct stored_site capture;
    enum status status;
    while ((status = store_next_site(job->store, &capture)) == STATUS_OK) {
        const char *before = capture.region.at;
        struct row_text region = text_of(places_site_region(&job->places, capture.site.at, before));
        if (texts_equal(&region, &capture.region))
            continue;
        job->result->captures_changed++;
        status = store_update_site(job->store, capture.capture_id, &region);
        if (status != STATUS_OK)
            return status;
    }
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status set_all(struct job *job)
{
    enum status status = store_begin(job->store);
    if (status == STATUS_OK)
        status = set_captures(job);
    if (status == STATUS_OK)
        status = set_flows(job);
    if (status == STATUS_OK)
        return store_commit(job->store);
    store_rollback(job->store);
    return status;
}

static enum status open_files(const char *database, const struct place_options *options,
                              struct job *job, struct text *error)
{
    if (options->client_file_count == 0 && options->sites == NULL) {
        text_add(error, "set-regions: nothing to do without --clients or --sites");
        return STATUS_USAGE;
    }
    if (access(database, F_OK) != 0) {
        text_addf(error, "%s: no such database; firstflight ingest makes one", database);
        return STATUS_IO;
    }
    enum status status = places_open(options, &job->places, error);
    if (status != STATUS_OK)
        return status;
    if (job->places.clients != NULL)
        job->result->bad_lines = regions_bad_lines(job->places.clients);
    status = store_open(database, &job->store);
    if (status != STATUS_OK)
        text_add(error, job->store == NULL ? "out of memory" : store_error(job->store));
    return status;
}

enum status set_regions(const char *database, const struct place_options *options,
                        struct set_regions_result *ret_result, struct text *error)
{
    *ret_result = (struct set_regions_result){ 0 };
    struct job job = { .result = ret_result };
    enum status status = open_files(database, options, &job, error);
    if (status == STATUS_OK) {
        status = set_all(&job);
        if (status != STATUS_OK)
            text_add(error, store_error(job.store));
    }
    store_close(job.store);
    places_close(&job.places);
    return status;
}
