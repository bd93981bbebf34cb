/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SURVEY_H
#define SURVEY_H
/*
 * A look at the captures of one point, without a database: the beginning of each file goes through
 * the same analysis as in an ingest, and what its flows and frames show is summed up.
 */
#include "analyze.h"
#include "inputs.h"
#include "text.h"
#include "timing.h"

/* Packets read of each file, and files of a point: these tell what the rest will be like. */
enum { SURVEY_PACKETS_MAX = 100000, SURVEY_FILES_MAX = 50 };

/* A time that lies that much before one that came earlier is more than the order of two cores. */
enum { SURVEY_BACK_NS = 100000000 };

struct survey {
    /* files */
    size_t files_read, files_unreadable, files_damaged;
    bool has_unread_rest; /* packets behind the first SURVEY_PACKETS_MAX, or files */
    struct text damage;   /* a line for each damaged or unreadable file */
    /* frames */
    uint64_t packets, packets_cut; /* all, and those of which a snaplen cut bytes away */
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

/* Fills a survey that is zeroed. STATUS_NO_MEMORY; STATUS_IO, the temporary store failed. */
MUST_USE enum status survey_point(const struct capture_point *point, const char *filter,
                                  struct survey *ret_survey);
void survey_done(struct survey *s);

#endif
