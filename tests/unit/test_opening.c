/* SPDX-License-Identifier: Apache-2.0 */
#include "opening.h"

#include <criterion/criterion.h>

#define MS INT64_C(1000000)
enum { CLIENT_ISN = 1000, SERVER_ISN = 5000 };

static struct segment syn_at(int64_t at_ns, uint32_t isn, uint32_t timestamp)
{
    return (struct segment){ .at_ns = at_ns,
                             .seq = isn,
                             .flags = TCP_SYN,
                             .mss = 1460,
                             .has_timestamp = timestamp != 0,
                             .timestamp_value = timestamp };
}

static struct segment syn_ack_at(int64_t at_ns, uint32_t isn, uint32_t acked, uint32_t timestamp,
                                 uint32_t echo)
{
    return (struct segment){ .at_ns = at_ns,
                             .seq = isn,
                             .ack = acked,
                             .flags = TCP_SYN | TCP_ACK,
                             .mss = 1400,
                             .has_timestamp = echo != 0,
                             .timestamp_value = timestamp,
                             .timestamp_echo = echo };
}

static struct segment ack_at(int64_t at_ns, uint32_t acked, uint32_t echo)
{
    return (struct segment){ .at_ns = at_ns,
                             .seq = CLIENT_ISN + 1,
                             .ack = acked,
                             .flags = TCP_ACK,
                             .has_timestamp = echo != 0,
                             .timestamp_echo = echo };
}

static struct facts facts_of(const struct opening *o)
{
    struct facts f = { 0 };
    opening_facts(o, 77, &f);
    return f;
}

Test(opening, a_plain_handshake)
{
    struct opening o = { 0 };
    struct segment syn = syn_at(100 * MS, CLIENT_ISN, 0);
    struct segment answer = syn_ack_at(120 * MS, SERVER_ISN, CLIENT_ISN + 1, 0, 0);
    struct segment ack = ack_at(150 * MS, SERVER_ISN + 1, 0);
    bool ambiguous;
    cr_assert_eq(opening_syn(&o, &syn), OPENING_NEW);
    cr_assert_not(opening_acknowledged(&o, &ack, &ambiguous), "there is no SYN/ACK yet");
    cr_assert_eq(opening_syn_ack(&o, &answer), OPENING_NEW);
    cr_assert(opening_acknowledged(&o, &ack, &ambiguous));
    cr_assert_not(ambiguous);
    struct facts f = facts_of(&o);
    cr_expect_eq(f.start_ns, 100 * MS);
    cr_expect_eq(f.syn_seen, 1);
    cr_expect_eq(f.syn_count, 1);
    cr_expect_eq(f.syn_ack_count, 1);
    cr_expect_eq(f.syn_answered_ns, 100 * MS);
    cr_expect_eq(f.syn_ack_ns, 120 * MS);
    cr_expect_eq(f.syn_rtt_ambiguous, 0);
    cr_expect_eq(f.clock_step, 0);
    cr_expect_eq(f.fast_open, 0);
    cr_expect_eq(f.mss[CLIENT], 1460);
    cr_expect_eq(f.mss[SERVER], 1400);
    cr_expect_eq(f.isn[CLIENT], CLIENT_ISN);
    cr_expect_eq(f.isn[SERVER], SERVER_ISN);
}

Test(opening, nothing_seen_starts_with_the_first_packet)
{
    struct opening o = { 0 };
    struct facts f = facts_of(&o);
    cr_assert_eq(f.start_ns, 77);
    cr_assert_eq(f.syn_seen, 0);
    cr_assert_eq(f.isn_known[CLIENT], 0);
}

Test(opening, the_same_syn_within_ten_milliseconds_is_a_copy)
{
    struct opening o = { 0 };
    struct segment syn = syn_at(100 * MS, CLIENT_ISN, 0);
    struct segment copy = syn_at(109 * MS, CLIENT_ISN, 0);
    struct segment again = syn_at(300 * MS, CLIENT_ISN, 0);
    cr_assert_eq(opening_syn(&o, &syn), OPENING_NEW);
    cr_assert_eq(opening_syn(&o, &copy), OPENING_COPY);
    cr_assert_eq(opening_syn(&o, &again), OPENING_NEW);
    cr_assert_eq(o.syn_count, 2);
    struct segment answer = syn_ack_at(320 * MS, SERVER_ISN, CLIENT_ISN + 1, 0, 0);
    cr_assert_eq(opening_syn_ack(&o, &answer), OPENING_NEW);
    answer.at_ns += MS;
    cr_assert_eq(opening_syn_ack(&o, &answer), OPENING_COPY);
    cr_assert_eq(facts_of(&o).start_ns, 100 * MS);
}

Test(opening, timestamps_tell_which_of_two_syns_was_answered)
{
    static const struct {
        uint32_t first, second, echo;
        int64_t answered_ms;
        bool ambiguous;
    } CASES[] = {
        { 11, 22, 11, 100, false }, { 11, 22, 22, 300, false }, { 11, 22, 33, 300, true },
        { 11, 11, 11, 300, true },  { 0, 0, 0, 300, true },
    };
    for (unsigned i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        struct opening o = { 0 };
        struct segment first = syn_at(100 * MS, CLIENT_ISN, CASES[i].first);
        struct segment second = syn_at(300 * MS, CLIENT_ISN, CASES[i].second);
        struct segment answer =
            syn_ack_at(310 * MS, SERVER_ISN, CLIENT_ISN + 1, 900, CASES[i].echo);
        opening_syn(&o, &first);
        opening_syn(&o, &second);
        opening_syn_ack(&o, &answer);
        struct facts f = facts_of(&o);
        cr_assert_eq(f.syn_answered_ns, CASES[i].answered_ms * MS, "case %u", i);
        cr_assert_eq(f.syn_rtt_ambiguous, CASES[i].ambiguous, "case %u", i);
    }
}

Test(opening, a_repeated_syn_ack_makes_the_ack_ambiguous_but_for_timestamps)
{
    for (unsigned told = 0; told < 2; told++) {
        struct opening o = { 0 };
        struct segment syn = syn_at(100 * MS, CLIENT_ISN, 1);
        struct segment first = syn_ack_at(110 * MS, SERVER_ISN, CLIENT_ISN + 1, 500, 1);
        struct segment second = syn_ack_at(900 * MS, SERVER_ISN, CLIENT_ISN + 1, 600, 1);
        struct segment ack = ack_at(950 * MS, SERVER_ISN + 1, told ? 600 : 0);
        bool ambiguous;
        opening_syn(&o, &syn);
        opening_syn_ack(&o, &first);
        opening_syn_ack(&o, &second);
        cr_assert(opening_acknowledged(&o, &ack, &ambiguous));
        cr_assert_eq(ambiguous, !told);
    }
}

Test(opening, a_syn_ack_before_its_syn_keeps_the_syn_as_start)
{
    struct opening o = { 0 };
    struct segment answer = syn_ack_at(100 * MS, SERVER_ISN, CLIENT_ISN + 1, 0, 0);
    struct segment syn = syn_at(100 * MS + 5000, CLIENT_ISN, 0);
    opening_syn_ack(&o, &answer);
    cr_assert_eq(facts_of(&o).isn[CLIENT], CLIENT_ISN, "its ACK told");
    opening_syn(&o, &syn);
    struct facts f = facts_of(&o);
    cr_assert_eq(f.start_ns, 100 * MS + 5000);
    cr_assert_eq(f.clock_step, 1);
}

Test(opening, two_neighbours_out_of_order_in_the_file_are_no_clock_step)
{
    struct opening o = { 0 };
    struct segment answer = syn_ack_at(120 * MS, SERVER_ISN, CLIENT_ISN + 1, 0, 0);
    struct segment syn = syn_at(100 * MS, CLIENT_ISN, 0);
    opening_syn_ack(&o, &answer);
    opening_syn(&o, &syn);
    cr_assert_eq(facts_of(&o).clock_step, 0);
    cr_assert_eq(facts_of(&o).syn_answered_ns, 100 * MS);
}

Test(opening, a_syn_ack_of_another_syn_is_alien)
{
    static const uint32_t ACKED[] = { 0, CLIENT_ISN, CLIENT_ISN + 2 + UINT16_MAX,
                                      CLIENT_ISN + 0x80000000u, UINT32_MAX - 70000 };
    for (unsigned i = 0; i < sizeof ACKED / sizeof ACKED[0]; i++) {
        struct opening o = { 0 };
        struct segment syn = syn_at(100 * MS, CLIENT_ISN, 0);
        struct segment answer = syn_ack_at(120 * MS, SERVER_ISN, ACKED[i], 0, 0);
        opening_syn(&o, &syn);
        cr_assert_eq(opening_syn_ack(&o, &answer), OPENING_ALIEN, "ack %u", ACKED[i]);
        cr_assert_eq(o.syn_ack_count, 0);
    }
}

Test(opening, data_of_a_syn_that_is_acknowledged_is_fast_open)
{
    struct opening o = { 0 };
    struct segment syn = syn_at(100 * MS, UINT32_MAX - 3, 0);
    struct segment answer = syn_ack_at(120 * MS, SERVER_ISN, UINT32_MAX - 3 + 1 + 300, 0, 0);
    opening_syn(&o, &syn);
    cr_assert_eq(opening_syn_ack(&o, &answer), OPENING_NEW);
    cr_assert_eq(facts_of(&o).fast_open, 1);
}

Test(opening, the_client_s_ack_chooses_between_two_syn_acks)
{
    for (unsigned chosen = 0; chosen < 2; chosen++) {
        struct opening o = { 0 };
        uint32_t isn[2] = { SERVER_ISN, 0xfffffff0 };
        struct segment syn = syn_at(100 * MS, CLIENT_ISN, 0);
        struct segment first = syn_ack_at(110 * MS, isn[0], CLIENT_ISN + 1, 0, 0);
        struct segment second = syn_ack_at(111 * MS, isn[1], CLIENT_ISN + 1, 0, 0);
        struct segment ack = ack_at(130 * MS, isn[chosen] + 1, 0);
        bool ambiguous;
        opening_syn(&o, &syn);
        opening_syn_ack(&o, &first);
        opening_syn_ack(&o, &second);
        opening_choose_server(&o, &ack);
        cr_assert(opening_acknowledged(&o, &ack, &ambiguous));
        cr_assert_eq(facts_of(&o).isn[SERVER], isn[chosen]);
    }
}

Test(opening, an_ack_that_does_not_cover_the_syn_ack_is_none_of_it)
{
    struct opening o = { 0 };
    struct segment answer = syn_ack_at(110 * MS, UINT32_MAX, CLIENT_ISN + 1, 0, 0);
    struct segment old = ack_at(120 * MS, UINT32_MAX, 0), good = ack_at(120 * MS, 0, 0);
    bool ambiguous;
    opening_syn_ack(&o, &answer);
    cr_assert_not(opening_acknowledged(&o, &old, &ambiguous));
    cr_assert(opening_acknowledged(&o, &good, &ambiguous), "numbers wrap");
}

Test(opening, counts_stop_at_their_limit)
{
    struct opening o = { 0 };
    for (int64_t i = 0; i < 70000; i++) {
        struct segment syn = syn_at((100 + i * 20) * MS, CLIENT_ISN, 0);
        cr_assert_eq(opening_syn(&o, &syn), OPENING_NEW);
    }
    cr_assert_eq(o.syn_count, UINT16_MAX);
}
