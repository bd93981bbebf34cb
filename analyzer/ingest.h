/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INGEST_H
#define INGEST_H
/*
 * One run: the captures of a command line to rows of a database.
 *
 *   inputs -> capture points -> analysis of each -> staged facts
 *          -> profiles of servers, neighbours of clients -> verdict, path, timing -> rows
 *
 * Profiles are those of the run and of all that the database knows. Earlier flows of the same
 * servers that could not be decided are judged again by them (rejudge.h).
 *
 * Rows are written once, in one transaction, when every capture of the run was read: all points
 * that were read to their end, or nothing.
 */
#include "inputs.h"
#include "notes.h"
#include "places.h"
#include "setting.h"
#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEYLOG_FILES_MAX = 16, JOBS_MAX = 1024 };

struct ingest_options {
    const char *database;
    struct input_options inputs;
    const char *filter; /* pcap filter expression; NULL */
    struct place_options places;
    const char *local;                          /* --local; NULL */
    const char *keylog_files[KEYLOG_FILES_MAX]; /* --keylog, in order */
    size_t keylog_file_count;
    struct privacy_options privacy; /* what is stored of addresses and names */
    size_t memory_max;              /* bytes */
    unsigned jobs;                  /* capture points read at once; 0 = as many as there are CPUs */
    bool replace;                   /* what the database has of the capture points goes */
    bool no_facts;                  /* flow_facts stays empty */
    bool no_labels;                 /* nDPI is not asked */
};

struct ingest;

struct ingest_progress {
    uint64_t bytes_done, bytes_total; /* of files */
    uint64_t packets, flows;
    size_t files_done, files_total;
    const char *doing; /* "reading", "judging and writing"; static text */
    const char *path;  /* file being read; NULL */
};

struct ingest_result {
    size_t files_read, files_known, files_damaged, files_unreadable;
    size_t files_refused; /* older than what their point has given */
    uint64_t packets, flows_added, flows_known;
    uint64_t flows_continued; /* rows of earlier runs that this one completed, or went on with */
    uint64_t flows_judged_again, flows_changed; /* earlier ones, by what this run taught */
};

/*
 * Opens the database and finds the captures. On failure *ret_ingest is still set (unless
 * STATUS_NO_MEMORY) so that ingest_error() can be asked; close it.
 */
MUST_USE enum status ingest_open(const struct ingest_options *options, struct ingest **ret_ingest);
void ingest_close(struct ingest *i); /* NULL is accepted */

/* Reads on for a moment; *ret_done when every capture was read. */
MUST_USE enum status ingest_step(struct ingest *i, bool *ret_done);

/*
 * Judges and writes the rows of all points that were read to their end; after an interruption the
 * first that was not, and all behind it, are left for another run, and said so in a note.
 */
MUST_USE enum status ingest_finish(struct ingest *i);

/* What it is going to read. */
const struct inputs *ingest_inputs(const struct ingest *i);

struct ingest_progress ingest_progress(const struct ingest *i);
struct ingest_result ingest_result(const struct ingest *i);
const char *ingest_error(const struct ingest *i);

/*
 * Notes for a person in the order of the capture points, whichever was read first; complete after
 * ingest_finish() or a failure. An error is one about a named or damaged file.
 */
const struct notes *ingest_notes(const struct ingest *i);

/* Capture points that are read at once. */
unsigned ingest_jobs(const struct ingest *i);

#endif
