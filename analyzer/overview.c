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

enum status overview_count(const struct selection *s, struct overview *ret_overview,
                           struct text *error)
{
    struct overview *o = ret_overview;
    *o = (struct overview){ 0 };
    enum status status = read_counts(s, o, error);
    return status == STATUS_OK ? read_not_inbound(s, o, error) : status;
}

enum status overview_read(const struct selection *s, struct overview *ret_overview,
                          struct text *error)
{
    enum status status = overview_count(s, ret_overview, error);
    return status == STATUS_OK ? read_words(s, ret_overview, error) : status;
}

/* ---- on a page ---- */

static void add_words(struct page *page, const char *name, const struct word_counts *w)
{
    struct text words = { 0 };
    for (size_t i = 0; i < w->count; i++)
        text_addf(&words, "%s%s %.1f%%", i > 0 ? "   " : "", w->words[i].word,
                  100.0 * (double)w->words[i].flows / (double)w->sum);
    if (w->count > 0)
        page_fact(page, name, "%s", text_string(&words));
    text_done(&words);
}

static void add_left_out(struct page *page, const struct word_counts *w)
{
    struct text name = { 0 }, words = { 0 };
    text_add(&name, "Left out ");
    text_add_count(&name, w->sum);
    for (size_t i = 0; i < w->count; i++) {
        text_addf(&words, "%s%s ", i > 0 ? "   " : "", w->words[i].word);
        text_add_count(&words, w->words[i].flows);
    }
    if (w->sum > 0)
        page_fact(page, text_string(&name), "%s", text_string(&words));
    text_done(&name);
    text_done(&words);
}

void overview_add_legs(const struct overview *o, const struct selection *s, struct page *page)
{
    if (s->every_leg)
        return;
    struct text words = { 0 };
    if (o->outbound + o->internal > 0) {
        text_add_count(&words, o->outbound);
        text_add(&words, " edge-to-origin flows, ");
        text_add_count(&words, o->internal);
        page_fact(page, "Not inbound", "%s internal ones; more: report coverage",
                  text_string(&words));
    }
    if (o->legs_unknown > 0) {
        text_clear(&words);
        text_add_count(&words, o->legs_unknown);
        page_fact(page, "Leg unknown",
                  "%s flows, taken for inbound; ingest --local tells them apart",
                  text_string(&words));
    }
    text_done(&words);
}

struct span overview_window(const struct overview *o, const struct selection *s)
{
    struct span window = o->flows > 0 ? o->span : s->data;
    if (s->since_ns > 0)
        window.first_ns = s->since_ns;
    if (s->until_ns < INT64_MAX)
        window.last_ns = s->until_ns;
    return window;
}

void overview_add_subject(const struct overview *o, const struct selection *s, struct page *page)
{
    struct span window = overview_window(o, s);
    struct text words = { 0 };
    char span[2 * MOMENT_TEXT_SIZE];
    if (window.last_ns > 0)
        text_addf(&words, "%s UTC, ", moment_span_text(window, span));
    text_add_count(&words, o->flows);
    text_add(&words, o->flows == 1 ? " TLS flow" : " TLS flows");
    if (o->sites > 0)
        text_addf(&words, ", %lld site%s", (long long)o->sites, o->sites == 1 ? "" : "s");
    page_text(page, "%s", text_string(&words));
    text_done(&words);
    if (s->where)
        page_text(page, "where %s", s->where);
}

void overview_add_facts(const struct overview *o, const struct selection *s, struct page *page)
{
    add_words(page, "Kind rests on", &o->kind_bases);
    add_words(page, "Response by", &o->response_bases);
    add_words(page, "Region by", &o->region_bases);
    add_left_out(page, &o->left_out);
    overview_add_legs(o, s, page);
}
