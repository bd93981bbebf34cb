/* SPDX-License-Identifier: Apache-2.0 */
#include "cause.h"

#include "windows_made.h"

static struct change change_of(enum measure_id measure, double before, double during, double z)
{
    return (struct change){ .measure = measure,
                            .shift = { .before = before, .during = during, .z = z } };
}

static struct changes changes_of(const struct change *list, size_t count)
{
    struct changes c = { .count = count };
    memcpy(c.at, list, count * sizeof *list);
    return c;
}

static struct scope at_host(uint32_t host)
{
    return (struct scope){ .condition = { { MADE_HOST, host } }, .count = 1 };
}

/* Flows of all hosts, so that places can be compared. */
static struct made some_flows(void)
{
    struct made m = made_windows(600, 1);
    for (size_t i = 0; i < 600; i++)
        made_flow(&m, (double)i / 600);
    return m;
}

Test(cause, no_two_measures_explain_each_other)
{
    /* Warshall: who reaches itself over any way? */
    uint32_t reaches[MEASURES];
    for (size_t i = 0; i < MEASURES; i++)
        reaches[i] = MEASURE[i].explains & ((UINT32_C(1) << MEASURES) - 1);
    for (size_t k = 0; k < MEASURES; k++) {
        for (size_t i = 0; i < MEASURES; i++)
            reaches[i] |= reaches[i] >> k & 1 ? reaches[k] : 0;
    }
    for (size_t i = 0; i < MEASURES; i++)
        cr_expect(!(reaches[i] >> i & 1), "%s explains itself", MEASURE[i].name);
}

Test(cause, effects_stand_under_their_cause)
{
    struct made m = some_flows();
    struct change list[] = {
        change_of(RESUMPTION_ACCEPTED, 0.97, 0.03, -20),
        change_of(EARLY_ACCEPTED, 0.99, 0.02, -30),
        change_of(PERCEIVED_MEDIAN, 100e6, 130e6, 12),
        change_of(RTT_LEAST, 10e6, 55e6, 40),
    };
    list[0].scope = list[1].scope = list[2].scope = at_host(1);
    list[3].scope = at_host(2);
    struct changes changes = changes_of(list, 4);
    struct stories s;
    stories_of(&changes, &m.windows, &s);
    cr_assert_eq(s.count, 2);
    cr_expect_eq(s.at[0].cause->measure, RTT_LEAST); /* the surest */
    cr_expect_eq(s.at[1].cause->measure, RESUMPTION_ACCEPTED);
    cr_expect_eq(s.at[1].effect_count, 2);
    cr_expect_eq(s.at[0].effect_count, 0);
    made_done(&m);
}

Test(cause, what_got_better_explains_nothing_that_got_worse)
{
    struct made m = some_flows();
    const struct change list[] = { change_of(THINK_MEDIAN, 90e6, 10e6, -20),
                                   change_of(PERCEIVED_MOST, 100e6, 300e6, 9) };
    struct changes changes = changes_of(list, 2);
    struct stories s;
    stories_of(&changes, &m.windows, &s);
    cr_assert_eq(s.count, 2);
    cr_expect_eq(s.at[0].cause->measure, PERCEIVED_MOST);
    made_done(&m);
}

Test(cause, captures_are_said_first_and_failures_before_waits)
{
    struct made m = some_flows();
    struct change list[] = { change_of(CAPTURED_WHOLE, 0.99, 0.9, -5),
                             change_of(FAILED, 0.01, 0.05, 8),
                             change_of(THINK_MEDIAN, 10e6, 90e6, 50) };
    list[0].scope = at_host(1);
    list[1].scope = at_host(2);
    list[2].scope = at_host(3);
    struct changes changes = changes_of(list, 3);
    struct stories s;
    stories_of(&changes, &m.windows, &s);
    cr_assert_eq(s.count, 3);
    cr_expect_eq(s.at[0].cause->measure, CAPTURED_WHOLE);
    cr_expect_eq(s.at[1].cause->measure, FAILED);
    made_done(&m);
}

static void expect_cause(const struct made *m, const struct changes *changes, const char *words)
{
    struct stories s;
    struct text t = { 0 };
    stories_of(changes, &m->windows, &s);
    cause_add(&s.at[0], changes, &m->windows, &t);
    cr_expect(words ? strstr(text_string(&t), words) != NULL : t.len == 0, "%s", text_string(&t));
    text_done(&t);
}

Test(cause, sentences_come_with_their_patterns_only)
{
    struct made m = some_flows();
    struct changes keys =
        changes_of((struct change[]){ change_of(RESUMPTION_ACCEPTED, 0.97, 0.03, -20) }, 1);
    expect_cause(&m, &keys, "ticket keys are not shared");
    struct changes shared =
        changes_of((struct change[]){ change_of(RESUMPTION_ACCEPTED, 0.03, 0.97, 20) }, 1);
    expect_cause(&m, &shared, NULL);
    struct changes on = changes_of((struct change[]){ change_of(EARLY_OFFERED, 0, 0.4, 20) }, 1);
    expect_cause(&m, &on, "switched on");
    struct changes more =
        changes_of((struct change[]){ change_of(EARLY_OFFERED, 0.2, 0.4, 20) }, 1);
    expect_cause(&m, &more, NULL);
    struct changes slow =
        changes_of((struct change[]){ change_of(THINK_MEDIAN, 9e6, 90e6, 20) }, 1);
    expect_cause(&m, &slow, "network is as before");
    made_done(&m);
}
