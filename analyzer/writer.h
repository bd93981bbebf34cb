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
    int64_t replaces;  /* flow_id of the row that it completes; 0 = it is new */
    bool may_have_row; /* if a row of that name is there, it is replaced */
    bool is_open;      /* state is kept for the next run of the point: */
    int64_t point_id;
    struct buffer state;
};

struct writer;

/* Starts the thread; without one to be had, rows are written by who hands them over. NULL without
 * memory. */
struct writer *writer_open(struct store *store);

/*
 * The next job to fill; its buffers hold what an earlier one left. Waits while all jobs are on
 * their way. NULL when the writer has failed: writer_close() says why.
 */
struct flow_job *writer_next(struct writer *w);

/* Hands the job that writer_next() gave to the thread. */
void writer_submit(struct writer *w);

/* Rows by what became of them. */
struct writer_counts {
    uint64_t added, replaced, known; /* known: there already, and left as it was */
};

/* Waits until every job is written and ends the thread: the first failure, else STATUS_OK; the text
 * of a failure is store_error()'s. */
MUST_USE enum status writer_close(struct writer *w, struct writer_counts *ret_counts);

#endif
