/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INPUTS_H
#define INPUTS_H
/*
 * From the paths of a command line to capture points: which files there are, which of them are
 * captures of the same place, and in which order of time they are read.
 *
 * A capture point is told by site, host, region, directory and the file name without digits and
 * capture suffixes (DESIGN: "Capture point"); its files are ordered by the time of their first
 * packet, never by name, since rings overwrite their oldest file.
 */
#include "status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Labels of a capture point; NULL where not given. */
struct labels {
    char *site, *host, *region;
    char *other; /* further names of --labels as a JSON object, NULL without */
};

struct input_file {
    char *path;
    int64_t first_at_ns; /* of its first frame; 0 when it has none */
    uint64_t size;       /* of the file in bytes; 0 for a pipe */
};

struct capture_point {
    struct labels labels;
    char *name; /* directory and file name without digits and suffixes: what tells it apart */
    struct input_file *files;
    size_t file_count;
};

/* A file that is not used, and why: for a person, on stderr. */
struct input_note {
    char *path, *text;
    bool is_error; /* named on the command line, so not using it is an error; else a note */
};

struct inputs {
    struct capture_point *points; /* in order of name, then labels */
    size_t point_count;
    struct input_note *notes;
    size_t note_count;
};

struct input_options {
    const char *site, *host, *region; /* NULL without; over those of the pattern */
    const char *label_pattern;        /* --labels; NULL without */
    const char *files_from;           /* file with one path a line, "-" for standard input; NULL */
    char **paths;                     /* files, directories, "-" */
    size_t path_count;
};

/*
 * Lists the files behind the options, looks at the first frame of each, and groups them. Files
 * that are no captures are noted. Free the result with inputs_done(), also after a failure.
 * STATUS_USAGE: the label pattern is wrong (error text in the only note).
 */
MUST_USE enum status inputs_find(const struct input_options *options, struct inputs *ret_inputs);

void inputs_done(struct inputs *inputs);

/*
 * Labels that a path gives by a pattern such as "{region}/{site}/{host}/{file}": pattern and path
 * are matched from the right, element by element; a star matches any element, and so does a name. False when it does not fit.
 * Strings in ret_labels are new; free with labels_done().
 */
bool labels_from_path(const char *pattern, const char *path, struct labels *ret_labels);
void labels_done(struct labels *labels);

/* The name of a capture point without digits and suffixes of captures: "edge-fra-.pcap". New. */
char *point_name(const char *path);

#endif
