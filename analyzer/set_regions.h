/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SET_REGIONS_H
#define SET_REGIONS_H
/*
 * Regions of a database again, without captures: of clients by --clients files, of capture points
 * by a --sites file.
 */
#include "places.h"

#include <stdint.h>

struct set_regions_result {
    uint64_t flows, changed;
    uint64_t hidden;           /* flows that keep what --clients once said of them, since their
                                  client's address is not stored, or its network has several regions */
    uint64_t captures_changed; /* capture files whose region is another now */
    size_t bad_lines;          /* of --clients files */
};

/*
 * Sets client_region, its basis, client_country and client_asn of all flows and region of all
 * captures, in one transaction. Without --clients only flows change whose region is that of their
 * capture point. A failure changes nothing; the text of it in error.
 */
MUST_USE enum status set_regions(const char *database, const struct place_options *options,
                                 struct set_regions_result *ret_result, struct text *error);

#endif
