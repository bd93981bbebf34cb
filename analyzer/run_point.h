/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RUN_POINT_H
#define RUN_POINT_H
/*
 * A capture point of a run and its files: what reading them (reading.h) leaves for judging and
 * writing (ingest.c).
 */
#include "capture.h"
#include "continuation.h"
#include "drop.h"
#include "half_open.h"
#include "inputs.h"
#include "neighbour.h"
#include "notes.h"
#include "order.h"
#include "profile.h"
#include "roles.h"
#include "stage.h"
#include "store.h"
#include "text.h"

enum { HASH_HEX_SIZE = 33 };

enum file_state {
    FILE_PENDING,
    FILE_OPEN,
    FILE_READ,
    FILE_KNOWN, /* its content is in the database, or was read under another name */
    FILE_UNREADABLE,
};

struct run_file {
    const struct input_file *input;
    enum file_state state;
    struct capture_info info;
    char content_hex[HASH_HEX_SIZE];
    size_t secrets_read; /* bytes of the key log lines that it brought */
    struct drop_counts drops;
    struct disorder disorder;
    struct text interfaces;     /* their names, with commas */
    char *damage;               /* NULL when whole */
    bool is_growing;            /* somebody writes to it */
    int64_t mtime_ns;           /* 0 = not known */
    struct begun_capture begun; /* what an earlier run has read of it */
    uint64_t passed;            /* frames of those, where a filter is in use */
    int64_t capture_id;         /* once it is written */
};

struct run_point {
    const struct capture_point *input;
    struct run_file *files; /* not owned: a part of the run's */
    size_t file_count;
    size_t first_file; /* number of the first of them in the run */
    struct stage *stage;
    struct stage *open; /* states of the flows that are live at the end */
    struct half_opens *half_opens;
    struct neighbours *neighbours;
    struct roles *roles;
    struct profiles *profiles;        /* learned of its flows, until ingest.c takes them */
    struct continuation continuation; /* of earlier runs */
    bool complete;                    /* read to its end */
    bool has_rows; /* complete, and to be written: it had files that were not known */
    size_t files_unreadable;
    size_t files_refused; /* older than what the point has given */
    uint64_t packets, bytes_done;
    struct notes notes; /* until ingest.c takes them */
};

void run_point_done(struct run_point *p);

/* Frees what was learned and staged, to read the point again from its start. */
void run_point_clear(struct run_point *p);

#endif
