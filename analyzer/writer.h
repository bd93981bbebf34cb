/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WRITER_H
#define WRITER_H
/*
 * Rows to the store in a thread of their own, so that judging the next flows and writing the last
 * ones go on at the same time. One thread makes jobs, in the order in which rows are to be written;
 * between writer_open() and writer_close() the store belongs to the writer.
 */
#include "buffer.h"
#include "row.h"
#include "store.h"

/* One flow on its way to the database: everything its row points to. */
struct flow_job {
    struct buffer packed; /* the flow's facts; texts of the row point here */
    struct buffer json;   /* of its facts; empty for none */
    struct row_space space;
    struct flow_row row;
};

struct writer;

/* Starts the thread. NULL when there is no memory or no thread to be had. */
struct writer *writer_open(struct store *store);

/*
 * The next job to fill; its buffers hold what an earlier one left. Waits while all jobs are on
 * their way. NULL when the writer has failed: writer_close() says why.
 */
struct flow_job *writer_next(struct writer *w);

/* Hands the job that writer_next() gave to the thread. */
void writer_submit(struct writer *w);

/* Waits until every job is written and ends the thread: the first failure, else STATUS_OK; the text
 * of a failure is store_error()'s. Counts rows added and those that were there already. */
MUST_USE enum status writer_close(struct writer *w, uint64_t *ret_added, uint64_t *ret_known);

#endif
