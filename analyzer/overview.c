/* SPDX-License-Identifier: Apache-2.0 */
#include "overview.h"

#include <stdio.h>
#include <stdlib.h>

/* Adds flows to a word; NULL is no word and adds nothing. */
static void count_word(struct word_counts *w, struct cell word, int64_t flows)
{
    if (word.type != CELL_TEXT)
        return;
    struct text safe = { 0 };
    char name[WORD_SIZE];
    text_add_safe(&safe, word.bytes, false);
    (void)snprintf(name, sizeof name, "%s", text_string(&safe));
    text_done(&safe);
    w->sum += flows;
    size_t i = 0;
    while (i < w->count && strcmp(w->words[i].word, name) != 0)
        i++;
    if (i == WORDS_MAX) {
        i = WORDS_MAX - 1;
        (void)snprintf(name, sizeof name, "other");
    }
    w->count = i < w->count ? w->count : i + 1;
    memcpy(w->words[i].word, name, sizeof name);
    w->words[i].flows += flows;
}

static int compare_words(const void *a, const void *b)
{
    const struct word_count *x = a, *y = b;
    if (x->flows != y->flows)
        return x->flows > y->flows ? -1 : 1;
    return strcmp(x->word, y->word);
}

static void sort_words(struct word_counts *w)
{
    qsort(w->words, w->count, sizeof *w->words, compare_words);
}

static enum status read_counts(const struct selection *s, struct overview *o, struct text *error)
{
    struct query *q = NULL;
    enum status status =
        selection_query(s,
                        "SELECT count(*), count(DISTINCT site), ifnull(sum(leg = 'unknown'), 0),"
                        " ifnull(min(start_epoch_ns), 0), ifnull(max(start_epoch_ns), 0) FROM ours",
                        &q, error);
    if (status == STATUS_OK)
        status = selection_next(s, q, error);
    if (status == STATUS_OK) {
        o->flows = query_cell(q, 0).integer;
        o->sites = query_cell(q, 1).integer;
        o->legs_unknown = query_cell(q, 2).integer;
        o->span = (struct span){ query_cell(q, 3).integer, query_cell(q, 4).integer };
    }
    query_close(q);
    return status;
}

static enum status read_not_inbound(const struct selection *s, struct overview *o,
                                    struct text *error)
{
    struct query *q = NULL;
    enum status status = selection_query(s,
                                         "SELECT ifnull(sum(leg = 'outbound'), 0),"
                                         " ifnull(sum(leg = 'internal'), 0) FROM selected",
                                         &q, error);
    if (status == STATUS_OK)
        status = selection_next(s, q, error);
    if (status == STATUS_OK) {
        o->outbound = query_cell(q, 0).integer;
        o->internal = query_cell(q, 1).integer;
    }
    query_close(q);
    return status;
}

/* One pass for all words: flows by every combination of them, of which there are few. */
static enum status read_words(const struct selection *s, struct overview *o, struct text *error)
{
    static const char SQL[] =
        "SELECT CASE WHEN perceived_ns IS NOT NULL THEN ifnull(vantage, 'unknown') END,"
        " handshake_basis, response_basis, ifnull(client_region_basis, 'nothing'),"
        " CASE WHEN perceived_ns IS NULL OR handshake = 'unknown' THEN " SELECTION_NOT_MEASURED
        " END, count(*) FROM ours GROUP BY 1, 2, 3, 4, 5";
    struct word_counts *counts[] = { &o->vantages, &o->kind_bases, &o->response_bases,
                                     &o->region_bases, &o->left_out };
    enum { KINDS = sizeof counts / sizeof *counts };
    struct query *q = NULL;
    enum status status = selection_query(s, SQL, &q, error);
    while (status == STATUS_OK && (status = selection_next(s, q, error)) == STATUS_OK) {
        for (size_t i = 0; i < KINDS; i++)
            count_word(counts[i], query_cell(q, i), query_cell(q, KINDS).integer);
    }
    query_close(q);
    for (size_t i = 0; i < KINDS; i++)
        sort_words(counts[i]);
    return status == STATUS_END ? STATUS_OK : status;
}

enum status overview_read(const struct selection *s, struct overview *ret_overview,
                          struct text *error)
{
    struct overview *o = ret_overview;
    *o = (struct overview){ 0 };
    enum status status = read_counts(s, o, error);
    if (status == STATUS_OK)
        status = read_not_inbound(s, o, error);
    if (status == STATUS_OK)
        status = read_words(s, o, error);
    return status;
}
