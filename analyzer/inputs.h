/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INPUTS_H
#define INPUTS_H
/*
 * From the paths of a command line to capture points: which files there are, which of them are
 * captures of the same place, and in which order of time they are read.
 *
 * A capture point is told by site, host, region and other labels, directory, and the file name
 * without digits and capture suffixes (DESIGN: "Capture point"). The directory is the real one, so
 * that the same files named from elsewhere are the same point. A point's files are ordered by the
 * time of their first packet, never by name, since rings overwrite their oldest file.
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
    char *path;          /* as it was given or found */
    int64_t first_at_ns; /* of its first frame with a valid time; 0 when none is near its start */
    uint64_t size;       /* of the file in bytes; 0 for a pipe */
};

struct capture_point {
    struct labels labels;
    char *name; /* directory and file name without digits and suffixes: what tells it apart */
    struct input_file *files;
    size_t file_count;
};

/* Something about a path that a person should know, on stderr. */
struct input_note {
    char *path, *text;
    bool is_error; /* it is not used although it was named, or although it may be a capture */
};

struct inputs {
    struct capture_point *points; /* in order of name, then labels */
    size_t point_count;
    struct input_note *notes; /* in the order in which they came up */
    size_t note_count;
};

struct input_options {
    const char *site, *host, *region; /* NULL without; over those of the pattern */
    const char *label_pattern;        /* --labels; NULL without */
    const char *manifest;             /* --manifest: CSV, over the pattern; NULL without */
    const char *files_from;           /* file with one path a line, "-" for standard input; NULL */
    char **paths;                     /* files, directories, "-" */
    size_t path_count;
};

/* Nested directories that are entered: more is a loop made of something else than links. */
enum { INPUT_DIRECTORIES_MAX = 64 };

/*
 * Lists the files behind the options, looks at the first frame of each, and groups them. A file
 * that is no capture is an error when named and a note when found in a directory, one note for all
 * that are not named as captures are; hidden files there have a note each. The same file under
 * several names is read once. Pipes and standard input are not looked at and come first at their
 * point. Free the result with inputs_done(), also after a failure. STATUS_USAGE: the label pattern
 * or the manifest is wrong, or standard input was asked for twice; STATUS_IO: files_from or the
 * manifest cannot be read: the last note says what.
 */
MUST_USE enum status inputs_find(const struct input_options *options, struct inputs *ret_inputs);

void inputs_done(struct inputs *inputs);

/*
 * Whether somebody writes to a file: it is open for writing, where the system tells (Linux, to its
 * owner and root), or it has not the size any more that it had.
 */
bool file_is_growing(const char *path, uint64_t size);

/*
 * Labels that a path gives by a pattern such as "{region}/{site}/{host}/x-{rack}-*.pcap". Both are
 * matched from the right, element by element; a pattern that starts with a slash must fit from the
 * root. In an element a star stands for anything and a {name} for anything but nothing, each up to
 * the first place where the text behind it fits; the rest is literal. Names other than site, host
 * and region become labels in `other`. Labels tell points apart: use a star for what does not.
 * STATUS_REFUSED when the path does not fit. Strings in ret_labels are new: labels_done().
 */
MUST_USE enum status labels_from_path(const char *pattern, const char *path,
                                      struct labels *ret_labels);
void labels_done(struct labels *labels);

/* What is wrong with a label pattern; NULL when it is good. Static text. */
const char *label_pattern_error(const char *pattern);

/*
 * The name of a capture point: the path with the file's name less its suffixes of captures, of
 * compression and of rings, and less all digits: "/var/edge-fra-20260602.pcap3.gz" gives
 * "/var/edge-fra-". New; NULL without memory.
 */
char *point_name(const char *path);

#endif
