/* SPDX-License-Identifier: Apache-2.0 */
#include "windows_made.h"

enum { FLOWS = 6000 };

static const struct change *find(const struct changes *c, enum measure_id measure)
{
    for (size_t i = 0; i < c->count; i++) {
        if (c->at[i].measure == measure)
            return &c->at[i];
    }
    return NULL;
}

static const char *place_of(const struct change *c, const struct made *m, struct text *t)
{
    text_clear(t);
    scope_add_condition(&c->scope, &m->windows, t);
    return text_string(t);
}

static void expect_place(const struct change *c, const struct made *m, const char *place)
{
    struct text t = { 0 };
    cr_assert(c != NULL, "nothing found at %s", place);
    cr_expect_str_eq(place_of(c, m, &t), place);
    text_done(&t);
}

Test(change, quiet_hours_have_none)
{
    size_t with = 0;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct made m = made_windows(FLOWS, seed);
        for (size_t i = 0; i < FLOWS; i++)
            made_flow(&m, (double)i / FLOWS);
        struct changes *c = made_changes(&m);
        cr_expect(c->compared > 100);
        with += c->count > 0;
        free(c);
        made_done(&m);
    }
    cr_expect(with <= 3, "%zu of 40 quiet hours have changes", with);
}

Test(change, bursts_of_one_client_are_no_change)
{
    size_t with = 0;
    for (uint64_t seed = 1; seed <= 20; seed++) {
        struct made m = made_windows(FLOWS, seed);
        bool burst = false;
        for (size_t i = 0; i < FLOWS; i++) {
            struct seen *f = made_flow(&m, (double)i / FLOWS);
            if (i % 50 == 0)
                burst = made_chance(&m, 0.3);
            made_set(f, RESENT, burst && made_chance(&m, 0.4));
        }
        struct changes *c = made_changes(&m);
        with += find(c, RESENT) != NULL;
        free(c);
        made_done(&m);
    }
    cr_expect(with <= 2, "%zu of 20 hours with bursts have changes", with);
}

Test(change, is_found_where_it_is)
{
    struct made m = made_windows(FLOWS, 1);
    for (size_t i = 0; i < FLOWS; i++) {
        struct seen *f = made_flow(&m, (double)i / FLOWS);
        if (f->window == DURING && f->word[MADE_HOST] == 3 && made_is(f, RESUMPTION_OFFERED))
            made_set(f, RESUMPTION_ACCEPTED, made_chance(&m, 0.05));
    }
    struct changes *c = made_changes(&m);
    const struct change *found = find(c, RESUMPTION_ACCEPTED);
    expect_place(found, &m, "host = 'h3'");
    cr_expect_eq(c->count, 1);
    cr_expect(!change_rose(found) && found->shift.z < -c->z_least);
    cr_expect(found->shift.low < -0.9 && found->shift.high > -0.95);
    cr_assert_eq(found->example_count, CHANGE_EXAMPLES);
    for (size_t i = 0; i < found->example_count; i++) {
        const struct seen *f = &m.windows.flows[found->examples[i] - 1];
        cr_expect(f->window == DURING && f->word[MADE_HOST] == 3 &&
                  made_is(f, RESUMPTION_OFFERED) && !made_is(f, RESUMPTION_ACCEPTED));
    }
    free(c);
    made_done(&m);
}

Test(change, what_changed_everywhere_is_found_once)
{
    struct made m = made_windows(FLOWS, 2);
    for (size_t i = 0; i < FLOWS; i++) {
        struct seen *f = made_flow(&m, (double)i / FLOWS);
        if (f->window == DURING)
            made_set(f, FAILED, made_chance(&m, 0.1));
    }
    struct changes *c = made_changes(&m);
    expect_place(find(c, FAILED), &m, "");
    cr_expect_eq(c->count, 1);
    free(c);
    made_done(&m);
}

Test(change, of_one_name_at_one_site_is_found_by_both)
{
    struct made m = made_windows(FLOWS, 3);
    for (size_t i = 0; i < FLOWS; i++) {
        struct seen *f = made_flow(&m, (double)i / FLOWS);
        if (f->window == DURING && f->word[MADE_SITE] == 1 && f->word[MADE_NAME] == 2)
            made_wait(f, 70, 200 * exp(0.3 * random_normal(&m.random)));
    }
    struct changes *c = made_changes(&m);
    const struct change *found = find(c, THINK_MEDIAN);
    cr_assert(found != NULL);
    cr_expect_eq(found->scope.count, 2);
    const struct seen at = { .word = { 1, 2, 2 } }, not_at = { .word = { 0, 0, 2 } };
    cr_expect(scope_holds(&found->scope, &at) && !scope_holds(&found->scope, &not_at));
    cr_expect(found->shift.change > 150e6 && found->shift.change < 250e6);
    free(c);
    made_done(&m);
}

Test(change, in_two_places_is_found_in_both)
{
    struct made m = made_windows(FLOWS, 4);
    for (size_t i = 0; i < FLOWS; i++) {
        struct seen *f = made_flow(&m, (double)i / FLOWS);
        bool there = f->word[MADE_HOST] == 0 || f->word[MADE_HOST] == 5;
        if (f->window == DURING && there)
            made_set(f, RESENT, made_chance(&m, 0.2));
    }
    struct changes *c = made_changes(&m);
    bool places[2] = { false };
    struct text t = { 0 };
    for (size_t i = 0; i < c->count; i++) {
        places[0] |= strcmp(place_of(&c->at[i], &m, &t), "host = 'h0'") == 0;
        places[1] |= strcmp(place_of(&c->at[i], &m, &t), "host = 'h5'") == 0;
    }
    cr_expect(places[0] && places[1] && c->count == 2);
    text_done(&t);
    free(c);
    made_done(&m);
}

Test(change, more_flows_of_another_kind_are_no_longer_wait)
{
    struct made m = made_windows(FLOWS, 5);
    for (size_t i = 0; i < FLOWS; i++) {
        struct seen *f = made_flow(&m, (double)i / FLOWS);
        if (f->window == DURING && f->alike[ALIKE_KIND] % 3 == 0 && made_chance(&m, 0.9)) {
            f->alike[ALIKE_KIND] += 1; /* resumed without early data: a round trip more */
            made_wait(f, (double)f->duration_ns[DURATION_RTT] / 1e6, 4);
        }
    }
    struct changes *c = made_changes(&m);
    cr_expect(!find(c, PERCEIVED_MEDIAN) && !find(c, PERCEIVED_MOST));
    free(c);
    made_done(&m);
}

Test(change, its_begin_is_found)
{
    struct made m = made_windows(FLOWS, 6);
    const double begin = 0.6;
    for (size_t i = 0; i < FLOWS; i++) {
        double at = (double)i / FLOWS;
        struct seen *f = made_flow(&m, at);
        if (at >= begin && f->word[MADE_SITE] == 2)
            made_set(f, FAILED, made_chance(&m, 0.5));
    }
    struct changes *c = made_changes(&m);
    const struct change *found = find(c, FAILED);
    expect_place(found, &m, "site = 's2'");
    cr_expect(fabs((double)found->began_ns - begin * 3600e9) < 20e9, "%lld",
              (long long)found->began_ns);
    free(c);
    made_done(&m);
}

Test(change, groups_that_vanish_are_seen)
{
    struct made m = made_windows(FLOWS, 7);
    for (size_t i = 0; i < FLOWS; i++) {
        struct seen *f = made_flow(&m, (double)i / FLOWS);
        if (f->window == DURING && f->word[MADE_SITE] == 0)
            m.windows.count--;
    }
    struct changes *c = made_changes(&m);
    expect_place(find(c, VOLUME), &m, "site = 's0'");
    cr_expect_eq(c->at[0].example_count, 0);
    free(c);
    made_done(&m);
}

Test(change, nothing_is_found_in_nothing)
{
    struct made m = made_windows(FLOWS, 8);
    struct changes *c = made_changes(&m);
    cr_expect(c->count == 0 && c->compared == 0);
    free(c);
    for (size_t i = 0; i < 60; i++)
        made_flow(&m, 0.1);
    c = made_changes(&m);
    cr_expect(find(c, FAILED) == NULL);
    free(c);
    made_done(&m);
}
