/* SPDX-License-Identifier: Apache-2.0 */
#include "timing.h"

#include "random_facts.h"

#include <criterion/criterion.h>

enum { MS = 1000000 };

static const int64_t START = INT64_C(1700000000) * 1000000000;

/* SYN at 0, SYN/ACK at 2, ACK at 12: the capture point is nearer to the server. */
static struct facts connected(void)
{
    return (struct facts){
        .tls = 1,
        .start_ns = START,
        .syn_seen = 1,
        .syn_count = 1,
        .syn_answered_ns = START,
        .syn_ack_ns = START + 2 * MS,
        .syn_ack_answered_ns = START + 2 * MS,
        .ack_ns = START + 12 * MS,
        .client_after_syn_ack_ns = START + 12 * MS,
        .ack_is_pure = 1,
        .client_hello_ns = START + 13 * MS,
    };
}

/* Handshake done at 26, request at 30, response at 45. */
static struct verdict answered(enum kind kind)
{
    return (struct verdict){
        .handshake = kind,
        .handshake_done_ns = START + 26 * MS,
        .request_ns = START + 30 * MS,
        .response_ns = START + 45 * MS,
        .response_felt_ns = START + 45 * MS,
    };
}

static void expect_ms(const char *what, int64_t ns, int64_t want_ms)
{
    cr_expect_eq(ns, want_ms * MS, "%s: %lld ns", what, (long long)ns);
}

static void expect_phases(const struct timing *t, const int64_t want_ms[5])
{
    expect_ms("connect", t->connect_ns, want_ms[0]);
    expect_ms("hello_wait", t->hello_wait_ns, want_ms[1]);
    expect_ms("tls", t->tls_ns, want_ms[2]);
    expect_ms("request_wait", t->request_wait_ns, want_ms[3]);
    expect_ms("server_wait", t->server_wait_ns, want_ms[4]);
}

/* ---- path ---- */

Test(timing, path_by_the_tcp_handshake)
{
    struct facts f = connected();
    struct path p = path_of(&f, DURATION_NONE);
    expect_ms("server", p.server_rtt_ns, 2);
    expect_ms("client", p.client_rtt_ns, 10);
    expect_ms("both", p.rtt_ns, 12);
    cr_expect_eq(p.basis, RTT_ACK);
    cr_expect_eq(p.vantage, VANTAGE_MIDDLE);
}

Test(timing, what_a_repeat_makes_ambiguous_is_not_measured)
{
    struct facts f = connected();
    f.syn_rtt_ambiguous = 1;
    cr_expect_eq(path_of(&f, DURATION_NONE).server_rtt_ns, DURATION_NONE);
    f = connected();
    f.ack_rtt_ambiguous = 1;
    cr_expect_eq(client_rtt_by_ack(&f), DURATION_NONE);
    f = connected();
    f.ack_is_pure = 0;
    cr_expect_eq(client_rtt_by_ack(&f), DURATION_NONE, "its data may have waited");
}

Test(timing, path_by_a_neighbour_then_by_data)
{
    struct facts f = connected();
    f.ack_is_pure = 0;
    f.data_rtt_ns = 11 * MS;
    struct path p = path_of(&f, 9 * MS);
    expect_ms("neighbour", p.client_rtt_ns, 9);
    cr_expect_eq(p.basis, RTT_NEIGHBOUR);
    p = path_of(&f, DURATION_NONE);
    expect_ms("data", p.client_rtt_ns, 11);
    cr_expect_eq(p.basis, RTT_DATA);
    f.data_rtt_ns = 0;
    p = path_of(&f, DURATION_NONE);
    cr_expect_eq(p.client_rtt_ns, DURATION_NONE);
    cr_expect_eq(p.basis, RTT_NONE);
    cr_expect_eq(p.rtt_ns, DURATION_NONE);
    cr_expect_null(rtt_basis_text(p.basis));
}

Test(timing, the_own_ack_goes_before_the_neighbour)
{
    struct facts f = connected();
    expect_ms("own", path_of(&f, 3 * MS).client_rtt_ns, 10);
}

Test(timing, a_syn_ack_before_its_syn_gives_no_negative_round_trip)
{
    struct facts f = connected();
    f.syn_ack_ns = START - 1;
    cr_expect_eq(path_of(&f, DURATION_NONE).server_rtt_ns, DURATION_NONE);
}

Test(timing, vantage_by_the_shares_of_the_round_trip)
{
    static const struct {
        int64_t syn_ack_ms, ack_ms;
        enum vantage vantage;
    } CASES[] = {
        { 100, 100, VANTAGE_CLIENT }, { 100, 104, VANTAGE_CLIENT }, { 100, 110, VANTAGE_MIDDLE },
        { 0, 100, VANTAGE_SERVER },   { 4, 100, VANTAGE_SERVER },   { 50, 100, VANTAGE_MIDDLE },
        { 0, 0, VANTAGE_LOCAL },
    };
    for (unsigned i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct facts f = connected();
        f.syn_ack_ns = f.syn_ack_answered_ns = START + CASES[i].syn_ack_ms * MS;
        f.ack_ns = START + CASES[i].ack_ms * MS;
        cr_expect_eq(path_of(&f, DURATION_NONE).vantage, CASES[i].vantage, "%u", i);
    }
}

/* ---- the answer ---- */

Test(timing, felt_is_observed_plus_the_way_to_the_client_and_back)
{
    struct facts f = connected();
    struct verdict v = answered(KIND_FULL);
    struct path p = path_of(&f, DURATION_NONE);
    struct timing t = timing_of(&f, &v, &p);
    expect_ms("response", t.response_ns, 45);
    expect_ms("perceived", t.perceived_ns, 55);
    cr_expect_float_eq(t.round_trips, 55.0 / 12, 1e-9);
    expect_ms("think", t.server_think_ns, 45 - 30 - 2);
}

Test(timing, a_response_sent_again_is_felt_when_it_was_acknowledged)
{
    struct facts f = connected();
    struct verdict v = answered(KIND_FULL);
    v.response_felt_ns = START + 260 * MS;
    struct path p = path_of(&f, DURATION_NONE);
    expect_ms("perceived", timing_of(&f, &v, &p).perceived_ns, 260);
}

Test(timing, without_a_syn_nothing_counts_from_it)
{
    struct facts f = connected();
    f.syn_seen = 0;
    struct verdict v = answered(KIND_FULL);
    struct path p = path_of(&f, DURATION_NONE);
    struct timing t = timing_of(&f, &v, &p);
    cr_expect_eq(t.response_ns, DURATION_NONE);
    cr_expect_eq(t.perceived_ns, DURATION_NONE);
    cr_expect_eq(t.connect_ns, DURATION_NONE);
    cr_expect_lt(t.round_trips, 0);
    expect_ms("think does not need it", t.server_think_ns, 13);
}

Test(timing, without_a_response_nothing_is_said)
{
    struct facts f = connected();
    struct verdict v = { .handshake = KIND_FULL, .request_ns = START + 30 * MS };
    struct path p = path_of(&f, DURATION_NONE);
    struct timing t = timing_of(&f, &v, &p);
    cr_expect_eq(t.response_ns, DURATION_NONE);
    cr_expect_eq(t.server_think_ns, DURATION_NONE);
    cr_expect_eq(t.loss_wait_ns, 0);
}

/* ---- phases ---- */

static void check_phases(struct facts f, struct verdict v, const int64_t want_ms[5])
{
    struct path p = path_of(&f, DURATION_NONE);
    struct timing t = timing_of(&f, &v, &p);
    expect_phases(&t, want_ms);
}

Test(timing, phases_of_a_full_or_resumed_handshake)
{
    check_phases(connected(), answered(KIND_FULL), (int64_t[5]){ 12, 1, 13, 4, 15 });
    check_phases(connected(), answered(KIND_RESUMED), (int64_t[5]){ 12, 1, 13, 4, 15 });
}

Test(timing, phases_of_0rtt_answered_early)
{
    struct verdict v = answered(KIND_0RTT);
    v.early_data = EARLY_ACCEPTED;
    v.answered_early = TRI_YES;
    v.request_ns = START + 14 * MS;
    v.response_ns = START + 20 * MS;
    check_phases(connected(), v, (int64_t[5]){ 12, 1, 0, 1, 6 });
}

Test(timing, phases_of_0rtt_answered_behind_finished)
{
    struct verdict v = answered(KIND_0RTT);
    v.early_data = EARLY_ACCEPTED;
    v.answered_early = TRI_NO;
    v.request_ns = START + 14 * MS;
    check_phases(connected(), v, (int64_t[5]){ 12, 1, 13, 0, 19 });
    struct facts f = connected();
    struct path p = path_of(&f, DURATION_NONE);
    expect_ms("think from Finished", timing_of(&f, &v, &p).server_think_ns, 45 - 26 - 2);
}

Test(timing, phases_of_plaintext)
{
    struct facts f = connected();
    f.tls = 0;
    struct verdict v = answered(KIND_NONE);
    v.handshake_done_ns = 0;
    check_phases(f, v, (int64_t[5]){ 12, 0, 0, 18, 15 });
}

Test(timing, tcp_fast_open_begins_with_what_came_first)
{
    struct facts f = connected();
    f.fast_open = 1;
    f.client_hello_ns = START;
    check_phases(f, answered(KIND_RESUMED), (int64_t[5]){ 0, 0, 26, 4, 15 });
}

Test(timing, borders_that_cross_are_clipped)
{
    struct verdict v = answered(KIND_FULL);
    v.request_ns = START + 20 * MS; /* before the handshake was done */
    check_phases(connected(), v, (int64_t[5]){ 12, 1, 13, 0, 19 });
    v.response_ns = v.response_felt_ns = START + 10 * MS; /* before the ACK */
    check_phases(connected(), v, (int64_t[5]){ 10, 0, 0, 0, 0 });
}

Test(timing, all_phases_or_none)
{
    struct facts f = connected();
    struct verdict v = answered(KIND_FULL);
    struct path p = path_of(&f, DURATION_NONE);
    v.handshake_done_ns = 0;
    cr_expect_eq(timing_of(&f, &v, &p).connect_ns, DURATION_NONE);
    v = answered(KIND_FULL);
    f.client_hello_ns = 0;
    cr_expect_eq(timing_of(&f, &v, &p).server_wait_ns, DURATION_NONE);
    f = connected();
    f.ack_ns = 0;
    expect_ms("the client's first segment stands in", timing_of(&f, &v, &p).connect_ns, 12);
    f.client_after_syn_ack_ns = 0;
    cr_expect_eq(timing_of(&f, &v, &p).connect_ns, DURATION_NONE);
}

/* ---- losses ---- */

Test(timing, moments_of_waiting_count_once)
{
    struct facts f = connected();
    f.resend_count = 4;
    f.resends[0] = (struct resend){ START + 20 * MS, 5 * MS, CLIENT };  /* 15 .. 20 */
    f.resends[1] = (struct resend){ START + 22 * MS, 5 * MS, SERVER };  /* 17 .. 22 */
    f.resends[2] = (struct resend){ START + 40 * MS, 10 * MS, SERVER }; /* 30 .. 40 */
    f.resends[3] = (struct resend){ START + 50 * MS, 30 * MS, SERVER }; /* behind the response */
    struct verdict v = answered(KIND_FULL);
    struct path p = path_of(&f, DURATION_NONE);
    struct timing t = timing_of(&f, &v, &p);
    expect_ms("wait", t.loss_wait_ns, 7 + 10);
    cr_expect_eq(t.client_retransmits_before_response, 1);
    cr_expect_eq(t.server_retransmits_before_response, 2);
}

Test(timing, a_syn_sent_again_is_waiting_too)
{
    struct facts f = connected();
    f.syn_answered_ns = START + 1000 * MS;
    f.syn_ack_ns = f.syn_ack_answered_ns = START + 1002 * MS;
    f.ack_ns = START + 1012 * MS;
    struct verdict v = answered(KIND_FULL);
    v.response_ns = v.response_felt_ns = START + 1045 * MS;
    struct path p = path_of(&f, DURATION_NONE);
    expect_ms("wait", timing_of(&f, &v, &p).loss_wait_ns, 1000);
}

/* ---- anything at all ---- */

static void expect_duration(int64_t ns, unsigned seed)
{
    cr_expect(ns == DURATION_NONE || ns >= 0, "seed %u: %lld", seed, (long long)ns);
}

Test(timing, phases_of_random_facts_sum_up_and_nothing_is_negative)
{
    enum { RUNS = 20000 };
    unsigned with_phases = 0;
    for (unsigned seed = 0; seed < RUNS; seed++) {
        struct facts f;
        struct record records[RECORDS_MAX];
        random_facts(seed, &f, records);
        struct verdict v = judge(&f, NULL);
        struct path p = path_of(&f, DURATION_NONE);
        struct timing t = timing_of(&f, &v, &p);
        const int64_t durations[] = { t.response_ns,    t.perceived_ns,    t.connect_ns,
                                      t.hello_wait_ns,  t.tls_ns,          t.request_wait_ns,
                                      t.server_wait_ns, t.server_think_ns, t.loss_wait_ns,
                                      p.server_rtt_ns,  p.client_rtt_ns,   p.rtt_ns };
        for (unsigned i = 0; i < sizeof durations / sizeof *durations; i++)
            expect_duration(durations[i], seed);
        if (t.connect_ns == DURATION_NONE)
            continue;
        with_phases++;
        cr_expect_eq(t.connect_ns + t.hello_wait_ns + t.tls_ns + t.request_wait_ns +
                         t.server_wait_ns,
                     t.response_ns, "seed %u", seed);
    }
    cr_expect_gt(with_phases, RUNS / 100, "%u", with_phases);
}
