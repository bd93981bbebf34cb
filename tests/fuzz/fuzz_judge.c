/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the judge, the profile and the durations with facts drawn from the input: whatever they
 * are, indexes stay within the records, texts exist, and the phases sum up.
 */
#include "judge.h"
#include "timing.h"

#include "../unit/random_facts.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool condition)
{
    if (!condition)
        abort();
}

static void check_verdict(const struct facts *f, const struct verdict *v)
{
    const int indexes[] = { v->client_finished, v->server_finished, v->request,
                            v->response,        v->response_low,    v->response_high };
    for (unsigned i = 0; i < sizeof indexes / sizeof *indexes; i++)
        require(indexes[i] >= -1 && indexes[i] < f->record_count);
    for (unsigned i = 0; i < f->record_count; i++)
        require(role_text((enum role)v->role[i]) != NULL);
    require(v->handshake_reason != NULL && kind_text(v->handshake) != NULL);
    require(outcome_text(v->outcome) != NULL);
    require((v->response_ns != 0) == (v->response_basis != BASIS_NONE));
}

static void check_timing(const struct facts *f, const struct verdict *v)
{
    struct path p = path_of(f, DURATION_NONE);
    struct timing t = timing_of(f, v, &p);
    require(t.loss_wait_ns >= 0);
    if (t.connect_ns != DURATION_NONE)
        require(t.connect_ns + t.hello_wait_ns + t.tls_ns + t.request_wait_ns + t.server_wait_ns ==
                t.response_ns);
}

/* One input in eight also teaches a profile, whose table takes longer than all the rest. */
static void check_informed(const struct facts *f)
{
    struct profiles *profiles = profiles_open();
    require(profiles != NULL && profiles_learn(profiles, f) == STATUS_OK);
    profiles_settle(profiles);
    struct verdict v = judge(f, profiles_find(profiles, f));
    check_verdict(f, &v);
    profiles_close(profiles);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { ONE_IN = 8 };
    struct entropy e = { .input = reader_of((struct bytes){ data, size }), .has_input = true };
    struct facts f;
    struct record records[RECORDS_MAX];
    bool informed = draw(&e, ONE_IN) == 0;
    draw_facts(&e, &f, records);
    struct verdict v = judge(&f, NULL);
    check_verdict(&f, &v);
    check_timing(&f, &v);
    if (informed)
        check_informed(&f);
    return 0;
}
