/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MERGE_H
#define MERGE_H
/*
 * Edge to SQLite: databases that were made apart, one for each capture point or machine, become
 * one. Captures are told by content and point, flows by flow_uid: in any order, and however often,
 * the outcome is the same. Of a flow that two databases saw to a different end, the longer holds.
 * Rules for early data are those of the database that grows.
 */
#include "status.h"
#include "text.h"

struct merge_counts {
    uint64_t captures_added, captures_known;
    uint64_t flows_added, flows_renewed, flows_known;
};

/*
 * Adds the content of the database at `from` to the one at `database`, which store_open() has made
 * or opened before: all of it or, when it fails, nothing. `from` is only read. What the servers of
 * both have in common is learned, and verdicts become those of all flows, by rejudge_all()
 * afterwards. STATUS_REFUSED: not a database of this version of firstflight. On failure error says
 * which file and why.
 */
MUST_USE enum status merge_database(const char *database, const char *from,
                                    struct merge_counts *ret_counts, struct text *error);

#endif
