/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REJUDGE_H
#define REJUDGE_H
/*
 * Flows of a database judged again from their stored facts, without captures: what was learned of
 * a server since then, and newer rules, decide what could not be decided when a flow was read.
 * Only the columns that come from judge and timing change (FLOW_JUDGED), and retried_by.
 */
#include "knowledge.h"
#include "table.h"

/* How often a column got another value. */
struct change {
    const char *column;   /* static */
    int column_no;        /* its place among those of FLOW_JUDGED */
    char *before, *after; /* the word, "NULL", or for long numbers "a value", "another value" */
    uint64_t flows;
};

/* { 0 } is empty. */
struct changes {
    struct change *list; /* by column in the order of the table, then by words */
    size_t count, capacity;
    uint64_t judged, flows; /* flows judged again, and those of them that changed */
    uint64_t retries;       /* of them, or others, got another retried_by */
    uint64_t unreadable;    /* flows whose facts are no facts: left as they were */
};

void changes_done(struct changes *c);

/* Writes the list: column, before, after, flows. */
MUST_USE enum status changes_write(const struct changes *c, struct table_style style, FILE *out);

/*
 * Judges all flows again, with profiles and neighbours learned anew from all facts of the database,
 * in one transaction: the outcome is the same as if all its captures had been ingested at once.
 * Profiles that were learned from flows whose facts were not kept stay as they are. memory_max is
 * for facts that wait; beyond it they lie in a temporary file. A failure changes nothing; the text
 * of it in error.
 */
MUST_USE enum status rejudge_all(const char *database, size_t memory_max,
                                 struct changes *ret_changes, struct text *error);

/* A run that has added flows, and learned from them. */
struct rejudge_run {
    struct store *store;
    const struct profiles *profiles;
    int64_t up_to_flow_id; /* the last flow before the run */
    size_t memory_max;
};

/*
 * Inside a transaction: judges those earlier flows again that were undecided and whose servers were
 * learned of in this run. STATUS_IO: error says why.
 */
MUST_USE enum status rejudge_undecided(const struct rejudge_run *run, struct changes *ret_changes,
                                       struct text *error);

#endif
