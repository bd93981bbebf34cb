/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WINDOWS_MADE_H
#define WINDOWS_MADE_H
/* Two windows of flows, made in memory, for tests of what is found in them. */
#include "change.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

enum { MADE_SITE, MADE_HOST, MADE_NAME, MADE_COLUMNS };

/* One flow of it, with what most tests change; everything else is as on a healthy edge. */
struct made {
    struct windows windows;
    struct random random;
    size_t capacity;
};

static void made_word(struct made *m, size_t column, const char *word)
{
    uint32_t number;
    cr_assert_eq(words_add(&m->windows.words[column], cell_text(word), &number), STATUS_OK);
}

/* Sites s0, s1, s2 with the hosts h0 to h5, two each; names n0 to n3. */
static inline struct made made_windows(size_t capacity, uint64_t seed)
{
    struct made m = { .random = { seed }, .capacity = capacity };
    m.windows = (struct windows){
        .span = { { 0, INT64_C(1800000000000) },
                  { INT64_C(1800000000000), INT64_C(3600000000000) } },
        .flows = calloc(capacity, sizeof *m.windows.flows),
        .one_of = 1,
        .column_count = MADE_COLUMNS,
        .columns = { "site", "host", "sni" },
        .alike_count = { 3, 12, 36 },
    };
    cr_assert_not_null(m.windows.flows);
    static const char *const words[MADE_COLUMNS][6] = { { "s0", "s1", "s2" },
                                                        { "h0", "h1", "h2", "h3", "h4", "h5" },
                                                        { "n0", "n1", "n2", "n3" } };
    for (size_t column = 0; column < MADE_COLUMNS; column++) {
        for (size_t i = 0; i < 6 && words[column][i]; i++)
            made_word(&m, column, words[column][i]);
    }
    return m;
}

static inline bool made_chance(struct made *m, double p)
{
    return random_uniform(&m->random) < p;
}

static inline void made_set(struct seen *f, enum measure_id id, bool yes)
{
    f->asked |= UINT32_C(1) << id;
    f->yes = (f->yes & ~(UINT32_C(1) << id)) | (uint32_t)yes << id;
}

static inline bool made_is(const struct seen *f, enum measure_id id)
{
    return f->yes >> id & 1;
}

/* Sets the waits: round trip and the servers' own time, in milliseconds. */
static inline void made_wait(struct seen *f, double rtt_ms, double think_ms)
{
    double trips = f->alike[ALIKE_KIND] % 3 == 0 ? 2 : 3;
    f->duration_ns[DURATION_RTT] = f->duration_ns[DURATION_CONNECT] = (float)(rtt_ms * 1e6);
    f->duration_ns[DURATION_TLS] = (float)((trips - 2) * rtt_ms * 1e6);
    f->duration_ns[DURATION_THINK] = f->duration_ns[DURATION_SERVER_WAIT] = (float)(think_ms * 1e6);
    f->duration_ns[DURATION_PERCEIVED] = (float)((trips * rtt_ms + think_ms) * 1e6);
}

/* Adds a healthy flow at a share 0 to 1 of both windows. */
static inline struct seen *made_flow(struct made *m, double at)
{
    struct windows *w = &m->windows;
    cr_assert(w->count < m->capacity);
    struct seen *f = &w->flows[w->count];
    *f = (struct seen){ .flow_id = (int64_t)++w->count,
                        .start_ns = (int64_t)(at * 3600e9),
                        .window = at < 0.5 ? BEFORE : DURING,
                        .slice = (uint8_t)(at < 0.5 ? at * 2 * SLICES : 0) };
    uint32_t host = (uint32_t)(random_uniform(&m->random) * 6);
    uint32_t name = (uint32_t)(random_uniform(&m->random) * 4);
    f->word[MADE_SITE] = host / 2;
    f->word[MADE_HOST] = host;
    f->word[MADE_NAME] = name;
    bool offered = made_chance(m, 0.7), accepted = offered && made_chance(m, 0.97);
    bool early = accepted && made_chance(m, 0.3);
    f->alike[ALIKE_PATH] = host / 2;
    f->alike[ALIKE_NAME] = host / 2 * 4 + name;
    f->alike[ALIKE_KIND] = 3 * f->alike[ALIKE_NAME] + (early ? 0 : accepted ? 1 : 2);
    made_set(f, CAPTURED_WHOLE, made_chance(m, 0.99));
    made_set(f, FAILED, made_chance(m, 0.003));
    made_set(f, RESUMPTION_OFFERED, offered);
    if (offered)
        made_set(f, RESUMPTION_ACCEPTED, accepted);
    made_set(f, EARLY_OFFERED, early);
    made_set(f, RESENT, made_chance(m, 0.01));
    for (size_t d = 0; d < DURATIONS; d++)
        f->duration_ns[d] = 0;
    static const double RTT_MS[] = { 12, 70, 110 };
    made_wait(f, RTT_MS[host / 2] * (1 - 0.1 * log(random_uniform(&m->random))),
              4 * exp(0.6 * random_normal(&m->random)));
    return f;
}

static inline struct changes *made_changes(const struct made *m)
{
    struct changes *c = calloc(1, sizeof *c);
    cr_assert_not_null(c);
    cr_assert_eq(changes_find(&m->windows, c), STATUS_OK);
    return c;
}

static inline void made_done(struct made *m)
{
    windows_done(&m->windows);
}

#endif
