/* SPDX-License-Identifier: Apache-2.0 */
#include "handover.h"

#include <criterion/criterion.h>

enum { SLOTS = 3, ROUNDS = 2000, FAILING = 700 };

/* Adds up what is in the slots; may fail at one of them. */
struct sum {
    struct handover handover;
    unsigned value[SLOTS];
    unsigned long total;
    unsigned count, fails_at;
};

static enum status add(void *owner, unsigned slot)
{
    struct sum *s = owner;
    if (++s->count == s->fails_at)
        return STATUS_IO;
    s->total = s->total * 31 + s->value[slot]; /* the order matters */
    return STATUS_OK;
}

static enum status fill(struct sum *s, unsigned value)
{
    unsigned slot;
    enum status status = handover_next(&s->handover, &slot);
    if (status != STATUS_OK)
        return status;
    s->value[slot] = value;
    return handover_filled(&s->handover);
}

Test(handover, slots_are_emptied_in_order_with_a_thread_and_without)
{
    unsigned long expected = 0;
    for (unsigned i = 0; i < ROUNDS; i++)
        expected = expected * 31 + i;
    for (int thread = 0; thread <= 1; thread++) {
        struct sum s = { .total = 0 };
        handover_open(&s.handover, SLOTS, thread == 1, add, &s);
        cr_assert_eq(s.handover.has_thread, thread == 1);
        for (unsigned i = 0; i < ROUNDS; i++)
            cr_assert_eq(fill(&s, i), STATUS_OK);
        cr_assert_eq(handover_settle(&s.handover), STATUS_OK);
        cr_expect_eq(s.total, expected);
        handover_close(&s.handover);
    }
}

Test(handover, a_failure_is_told_and_final)
{
    for (int thread = 0; thread <= 1; thread++) {
        struct sum s = { .fails_at = FAILING };
        enum status status = STATUS_OK;
        unsigned i = 0;
        handover_open(&s.handover, SLOTS, thread == 1, add, &s);
        for (; i < ROUNDS && status == STATUS_OK; i++)
            status = fill(&s, i);
        cr_expect_eq(status, STATUS_IO);
        cr_expect(i >= FAILING && i <= FAILING + SLOTS + 1, "told after %u", i);
        cr_expect_eq(handover_settle(&s.handover), STATUS_IO);
        cr_expect_eq(s.count, FAILING, "nothing is emptied after it");
        handover_close(&s.handover);
    }
}

Test(handover, closing_waits_for_nobody)
{
    struct sum s = { .total = 0 };
    handover_close(&s.handover); /* never opened */
    handover_open(&s.handover, SLOTS, true, add, &s);
    handover_close(&s.handover);
    handover_open(&s.handover, SLOTS, true, add, &s);
    cr_assert_eq(fill(&s, 1), STATUS_OK);
    handover_close(&s.handover);
    cr_expect_leq(s.count, 1);
}
