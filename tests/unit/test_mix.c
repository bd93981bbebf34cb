/* SPDX-License-Identifier: Apache-2.0 */
#include "mix.h"

#include "windows_made.h"

static const struct scope EVERYWHERE = { 0 };

/* A flow of visitors 0 to 11 and kind 0 to 2 of them, who waits so long. */
static void add(struct made *m, enum window window, uint32_t visitors, uint32_t kind, double ms)
{
    struct seen *f = made_flow(m, window == BEFORE ? 0.1 : 0.9);
    f->alike[ALIKE_NAME] = visitors;
    f->alike[ALIKE_KIND] = 3 * visitors + kind;
    f->duration_ns[DURATION_PERCEIVED] = (float)(ms * 1e6);
}

static struct mix mix_in(const struct made *m)
{
    struct mix mix;
    cr_assert_eq(mix_of(&m->windows, &EVERYWHERE, &mix), STATUS_OK);
    return mix;
}

static void expect_parts(const struct mix *m, double visitors_ms, double kinds_ms, double within_ms)
{
    cr_expect(fabs(m->visitors_ns / 1e6 - visitors_ms) < 1e-3, "visitors %g", m->visitors_ns / 1e6);
    cr_expect(fabs(m->kinds_ns / 1e6 - kinds_ms) < 1e-3, "kinds %g", m->kinds_ns / 1e6);
    cr_expect(fabs(m->within_ns / 1e6 - within_ms) < 1e-3, "within %g", m->within_ns / 1e6);
    double sum = m->visitors_ns + m->kinds_ns + m->within_ns;
    cr_expect(fabs(m->during_ns - m->before_ns - sum) < 1, "parts add up");
}

Test(mix, other_visitors_are_told_apart)
{
    struct made m = made_windows(100, 1);
    for (int i = 0; i < 20; i++) {
        add(&m, BEFORE, i < 10 ? 0 : 1, 0, i < 10 ? 20 : 220);
        add(&m, DURING, i < 5 ? 0 : 1, 0, i < 5 ? 20 : 220);
    }
    struct mix mix = mix_in(&m);
    expect_parts(&mix, 50, 0, 0);
    made_done(&m);
}

Test(mix, other_kinds_are_told_apart)
{
    struct made m = made_windows(100, 1);
    for (int i = 0; i < 20; i++) {
        add(&m, BEFORE, 0, i < 15 ? 0 : 2, i < 15 ? 200 : 300);
        add(&m, DURING, 0, i < 5 ? 0 : 2, i < 5 ? 200 : 300);
    }
    struct mix mix = mix_in(&m);
    expect_parts(&mix, 0, 50, 0);
    made_done(&m);
}

Test(mix, longer_waits_of_the_same_kind_are_told_apart)
{
    struct made m = made_windows(100, 1);
    for (int i = 0; i < 20; i++) {
        add(&m, BEFORE, 0, 1, 100);
        add(&m, DURING, 0, 1, 130);
    }
    struct mix mix = mix_in(&m);
    expect_parts(&mix, 0, 0, 30);
    made_done(&m);
}

Test(mix, a_kind_that_is_new_is_another_kind)
{
    struct made m = made_windows(100, 1);
    for (int i = 0; i < 20; i++) {
        add(&m, BEFORE, 0, 1, 300);
        add(&m, DURING, 0, i < 10 ? 0 : 1, i < 10 ? 200 : 300);
    }
    struct mix mix = mix_in(&m);
    expect_parts(&mix, 0, -50, 0);
    made_done(&m);
}

Test(mix, visitors_that_are_new_are_other_visitors)
{
    struct made m = made_windows(100, 1);
    for (int i = 0; i < 20; i++) {
        add(&m, BEFORE, 0, 1, 100);
        add(&m, DURING, i < 10 ? 0 : 3, 1, i < 10 ? 100 : 500);
    }
    struct mix mix = mix_in(&m);
    expect_parts(&mix, 200, 0, 0);
    made_done(&m);
}

Test(mix, of_no_flows_is_not_known)
{
    struct made m = made_windows(10, 1);
    struct mix mix = mix_in(&m);
    cr_expect(mix.flows[BEFORE] == 0 && isnan(mix.before_ns));
    made_done(&m);
}
