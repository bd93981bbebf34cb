/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OVERVIEW_H
#define OVERVIEW_H
/*
 * What stands around the numbers of a report: how many flows it is about, what the verdicts rest
 * on, what was left out and why.
 */
#include "page.h"
#include "selection.h"

/* How many flows each word holds for: bases, vantages, reasons. */
enum { WORDS_MAX = 12, WORD_SIZE = 40 }; /* more of them are counted as "other" */

struct word_count {
    char word[WORD_SIZE];
    int64_t flows;
};

struct word_counts {
    struct word_count words[WORDS_MAX]; /* the most frequent first */
    size_t count;
    int64_t sum;
};

struct overview {
    int64_t flows, sites, legs_unknown; /* of `ours`: TLS flows to us */
    struct span span;                   /* first and last start of them */
    int64_t outbound, internal;         /* flows selected that are not to us */
    struct word_counts vantages;        /* of flows that were measured */
    struct word_counts kind_bases, response_bases, region_bases;
    struct word_counts left_out; /* why flows were not measured */
};

/* Counts the flows of a selection, and leaves the words empty. On failure error has the text. */
MUST_USE enum status overview_count(const struct selection *s, struct overview *ret_overview,
                                    struct text *error);

/* Columns that a selection which is kept must have for that, and for the words besides. */
#define OVERVIEW_COUNT_COLUMNS "site"
#define OVERVIEW_COLUMNS                                                                           \
    OVERVIEW_COUNT_COLUMNS                                                                         \
    ", vantage, handshake_basis, response_basis, client_region_basis, perceived_ns, syn_seen,"     \
    " sides_seen, outcome, request_at_ns, response_at_ns, response_low_at_ns"

/* Reads the whole overview of a selection. On failure error has the text. */
MUST_USE enum status overview_read(const struct selection *s, struct overview *ret_overview,
                                   struct text *error);

/* The time that a report is about: --since and --until, else that of its flows. */
struct span overview_window(const struct overview *o, const struct selection *s);

/*
 * Adds to a page what stands above the numbers of every report: which flows it is about, of what
 * time, and what --where says.
 */
void overview_add_subject(const struct overview *o, const struct selection *s, struct page *page);

/* Adds what stands below them: what the verdicts rest on, and the flows that were left out. */
void overview_add_facts(const struct overview *o, const struct selection *s, struct page *page);

/* Adds of these the flows that are not to us, or of which that is not known. */
void overview_add_legs(const struct overview *o, const struct selection *s, struct page *page);

#endif
