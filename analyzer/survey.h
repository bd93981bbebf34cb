/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SURVEY_H
#define SURVEY_H
/*
 * A look at the captures of one point, without a database: they go through the same analysis as in
 * an ingest, and what their flows and frames show is summed up. Of long files only the beginning is
 * read; flows go on from one whole file to the next, as those of a ring.
 */
#include "analyze.h"
#include "inputs.h"
#include "progress.h"
#include "text.h"
#include "timing.h"

#include <signal.h>

/* Packets read of each file, and files of a point: these tell what the rest will be like. */
enum { SURVEY_PACKETS_MAX = 100000, SURVEY_FILES_MAX = 50 };

/* Frames of more bytes than any link carries: segments that the capturing host joined. */
enum { SURVEY_JOINED_LEN = 9300 };

/* A time that lies that much before one that came earlier is more than the order of two cores. */
enum { SURVEY_BACK_NS = 100000000 };

/* Who waits for surveys of several points. */
struct survey_watch {
    const volatile sig_atomic_t *stop; /* true: enough */
    struct progress progress;
    size_t files_done, files_total;
    uint64_t packets;
};

/* Files of a point that are read. */
size_t survey_file_count(const struct capture_point *point);

struct survey {
    /* files */
    size_t files_read, files_unreadable, files_damaged;
    bool is_interrupted;
    bool has_unread_rest; /* packets behind the first SURVEY_PACKETS_MAX, or files */
    struct text damage;   /* a line for each damaged or unreadable file */
    /* frames */
    uint64_t packets, packets_cut; /* all, and those of which a snaplen cut bytes away */
    uint64_t packets_joined;       /* longer than SURVEY_JOINED_LEN */
    size_t cut_len;                /* captured bytes of the longest of these: the real snaplen */
    int64_t first_ns, last_ns;     /* 0 = no packet with a time */
    int64_t kernel_drops;          /* -1 = no file says */
    uint64_t fine_times;           /* that are no whole microseconds */
    uint64_t steps_back;           /* of SURVEY_BACK_NS and more, and the largest */
    int64_t step_back_ns;
    struct drop_counts drops;
    struct text unknown_links; /* names of link types that are not decoded */
    /* TCP connections with payload */
    uint64_t flows, flows_one_side, flows_with_gaps; /* gaps: of both sides */
    uint64_t duplicates;                             /* packets captured twice */
    uint16_t tunnel;                                 /* enum tunnel bits */
    uint64_t vantage[VANTAGE_LOCAL + 1];
    /* of them: with a ClientHello, which may be cut */
    uint64_t hellos, hellos_cut, hellos_without_syn;
    uint64_t hellos_answered;  /* a ServerHello was seen */
    uint64_t hellos_with_rtt;  /* the way to the client was measured */
    uint64_t hellos_with_data; /* payload of both sides behind the hellos */
    uint64_t ports[65536];     /* connections with TLS by port of the server */
};

/* Fills a survey that is zeroed, with what was read so far when *stop becomes true.
 * STATUS_NO_MEMORY; STATUS_IO, the temporary store failed. */
MUST_USE enum status survey_point(const struct capture_point *point, const char *filter,
                                  struct survey_watch *watch, struct survey *ret_survey);
void survey_done(struct survey *s);

#endif
