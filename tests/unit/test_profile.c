/* SPDX-License-Identifier: Apache-2.0 */
#include "profile.h"

#include "flow_script.h"
#include "judge.h"

#include <stdlib.h>

enum { OVERHEAD = 17 };

#define NSS_FULL "C hello S hello ccs 589f C ccs 53f C 75? S 206t S 161! 19"
#define NSS_RESUMED "C hello S hello ccs 83f C ccs 53f C 75? S 206t S 161! 19"

static void read_flow(struct script *s, const char *line, uint16_t identity_len)
{
    script_read(s, line);
    s->facts.cipher_suite = 0x1301;
    if (identity_len > 0)
        script_resume(s, identity_len);
}

static void learn(struct profiles *p, const char *line, uint16_t identity_len)
{
    struct script s;
    read_flow(&s, line, identity_len);
    cr_assert_eq(profiles_learn(p, &s.facts), STATUS_OK);
}

static struct profiles *opened(void)
{
    struct profiles *p = profiles_open();
    cr_assert_not_null(p);
    return p;
}

static struct verdict judge_with(const struct profiles *p, struct script *s)
{
    return judge(&s->facts, profiles_find(p, &s->facts));
}

Test(profile, a_ticket_that_comes_back_makes_the_response_sure)
{
    struct script s;
    read_flow(&s, NSS_FULL, 0);
    cr_expect_eq(judge(&s.facts, NULL).response_basis, BASIS_WEAK);

    struct profiles *p = opened();
    learn(p, NSS_FULL, 0);
    learn(p, NSS_RESUMED, 162);
    learn(p, NSS_RESUMED, 162);
    profiles_settle(p);
    struct verdict v = judge_with(p, &s);
    cr_expect_eq(v.response, s.marks.response);
    cr_expect_eq(v.response_basis, BASIS_STRONG);
    profiles_close(p);
}

Test(profile, what_was_sent_before_anybody_asked_is_no_response)
{
    struct profiles *p = opened();
    learn(p, "C hello S hello ccs 589f C ccs 53f S 206 +99 C 19 fin", 0);
    learn(p, "C hello S hello ccs 589f C ccs 53f S 206 +99 C 75 S 300", 0);
    profiles_settle(p);
    struct script s;
    read_flow(&s, NSS_FULL, 0);
    struct verdict v = judge_with(p, &s);
    cr_expect_eq(v.response, s.marks.response);
    cr_expect_eq(v.response_basis, BASIS_STRONG);
    profiles_close(p);
}

Test(profile, an_answer_to_a_request_that_was_not_captured_is_not_unasked)
{
    struct profiles *p = opened();
    struct script s;
    read_flow(&s, "C hello S hello ccs 589f C ccs 53f C 80 S 206 300 C 19 fin", 0);
    struct record *request = &s.records[6];
    cr_assert_eq(request->len, 80);
    memmove(request, request + 1, (size_t)(s.facts.record_count - 7) * sizeof *request);
    s.facts.record_count--;
    cr_assert_eq(profiles_learn(p, &s.facts), STATUS_OK);
    profiles_settle(p);
    const struct profile *profile = profiles_find(p, &s.facts);
    cr_expect_eq(profile->unasked.used, 0);
    profiles_close(p);
}

Test(profile, a_server_known_to_send_other_tickets_sent_none_here)
{
    struct profiles *p = opened();
    for (int i = 0; i < 3; i++)
        learn(p, "C hello S hello ccs 83f C ccs 53f C 75? S 206t S 161! 19", 162);
    profiles_settle(p);
    struct script s;
    read_flow(&s, "C hello S hello ccs 589f C ccs 53f C 75? +300 S 411! S 700", 0);
    struct verdict v = judge_with(p, &s);
    cr_expect_eq(v.response, s.marks.response);
    cr_expect_eq(v.response_basis, BASIS_STRONG);
    profiles_close(p);
}

/* The length of EncryptedExtensions: 23 as usual, 27 when it accepts early data. */
static enum flight_says says(const char *line, uint16_t usual, const char *usual_line)
{
    struct profiles *p = opened();
    for (int i = 0; i < 2; i++)
        learn(p, usual_line, usual);
    profiles_settle(p);
    struct script s;
    read_flow(&s, line, usual);
    script_offer_early_data(&s);
    struct tls13 h = tls13_of(&s.facts);
    enum flight_says result = profile_flight_says(profiles_find(p, &s.facts), &s.facts, &h);
    profiles_close(p);
    return result;
}

Test(profile, four_bytes_more_than_usual_accept_early_data)
{
    const char *usual = "C hello S hello ccs 23 53 C ccs 53 C 75 S 383";
    cr_expect_eq(says("C hello ccs 75 S hello ccs 27 53", 208, usual), FLIGHT_SAYS_ACCEPTED);
    cr_expect_eq(says("C hello ccs 75 S hello ccs 23 53", 208, usual), FLIGHT_SAYS_REJECTED);
    cr_expect_eq(says("C hello ccs 75 S hello ccs 31 53", 208, usual), FLIGHT_SAYS_NOTHING);
    const char *one_record = "C hello S hello ccs 75 C ccs 53 C 75 S 383";
    cr_expect_eq(says("C hello ccs 75 S hello ccs 79", 176, one_record), FLIGHT_SAYS_ACCEPTED);
    cr_expect_eq(says("C hello ccs 75 S hello ccs 75", 176, one_record), FLIGHT_SAYS_REJECTED);
}

Test(profile, other_offers_have_other_lengths)
{
    struct profiles *p = opened();
    learn(p, "C hello S hello ccs 23 53 C ccs 53 C 75 S 383", 208);
    profiles_settle(p);
    struct script s;
    read_flow(&s, "C hello ccs 75 S hello ccs 27 53", 208);
    script_offer_early_data(&s);
    s.facts.alpn_offered = (char *)"h2";
    struct tls13 h = tls13_of(&s.facts);
    cr_expect_eq(profile_flight_says(profiles_find(p, &s.facts), &s.facts, &h),
                 FLIGHT_SAYS_NOTHING);
    profiles_close(p);
}

Test(profile, the_flight_decides_weakly_when_the_client_left)
{
    struct profiles *p = opened();
    learn(p, "C hello S hello ccs 23 53 C ccs 53 C 75 S 383", 208);
    profiles_settle(p);
    struct script s;
    read_flow(&s, "C hello ccs 75 S hello ccs 27 53", 208);
    script_offer_early_data(&s);
    struct verdict v = judge_with(p, &s);
    cr_expect_eq(v.early_data, EARLY_ACCEPTED);
    cr_expect_eq(v.early_data_basis, BASIS_WEAK);
    profiles_close(p);
}

Test(profile, a_contradiction_lowers_the_basis_and_keeps_the_verdict)
{
    struct profiles *p = opened();
    learn(p, "C hello S hello ccs 23 53 C ccs 53 C 75 S 383", 208);
    profiles_settle(p);
    struct script s;
    read_flow(&s, "C hello ccs 75 S hello ccs 23 53 C 21 53 S 250 S 383", 208);
    script_offer_early_data(&s);
    struct verdict v = judge_with(p, &s);
    cr_expect_eq(v.early_data, EARLY_ACCEPTED);
    cr_expect_eq(v.early_data_basis, BASIS_WEAK);
    cr_expect_str_eq(v.early_data_reason, "end_of_early_data_but_flight_length");
    profiles_close(p);
}

Test(profile, names_are_servers_and_share_what_their_address_has)
{
    struct profiles *p = opened();
    struct script s;
    for (int i = 0; i < 2; i++) {
        read_flow(&s, NSS_RESUMED, 162);
        s.facts.server_name = (char *)"a.example";
        cr_assert_eq(profiles_learn(p, &s.facts), STATUS_OK);
    }
    profiles_settle(p);
    cr_expect_eq(profiles_count(p), 2, "of the name, and of all names");
    const struct profile *of_name = profiles_find(p, &s.facts);
    cr_expect_str_eq(of_name->server_name, "a.example");
    cr_expect_eq(of_name->flows, 2);
    s.facts.server_name = (char *)"b.example";
    const struct profile *wide = profiles_find(p, &s.facts);
    cr_expect(wide->is_wide);
    cr_expect_eq(of_name->wider, wide);
    cr_expect(profile_knows_ticket(wide, 206, OVERHEAD, s.facts.start_ns));
    s.facts.server.port = 8443;
    cr_expect_null(profiles_find(p, &s.facts));
    cr_expect_not(profile_knows_ticket(NULL, 206, OVERHEAD, s.facts.start_ns));
    profiles_close(p);
}

Test(profile, a_profile_holds_for_its_time)
{
    struct profiles *p = opened();
    learn(p, "C hello S hello ccs 589f C ccs 53f S 206 +99 C 75 S 300", 0);
    profiles_settle(p);
    struct script s;
    read_flow(&s, NSS_FULL, 0);
    const struct profile *profile = profiles_find(p, &s.facts);
    int64_t day_ns = INT64_C(86400) * 1000000000;
    cr_expect(profile_knows_ticket(profile, 206, OVERHEAD, s.facts.start_ns));
    cr_expect_not(profile_knows_ticket(profile, 206, OVERHEAD, s.facts.start_ns + day_ns));
    profiles_close(p);
}

Test(profile, only_tls13_flows_with_a_server_hello_teach)
{
    struct profiles *p = opened();
    struct script s;
    read_flow(&s, NSS_FULL, 0);
    s.facts.version = TLS_1_2;
    cr_assert_eq(profiles_learn(p, &s.facts), STATUS_OK);
    read_flow(&s, NSS_FULL, 0);
    s.facts.server_hello_complete = 0;
    cr_assert_eq(profiles_learn(p, &s.facts), STATUS_OK);
    profiles_settle(p);
    cr_expect_eq(profiles_count(p), 0);
    profiles_close(p);
}

/* ---- any order, any number ---- */

static const struct {
    const char *line;
    uint16_t identity_len;
} FLOWS[] = {
    { NSS_FULL, 0 },
    { NSS_RESUMED, 162 },
    { "C hello S hello ccs 589f C ccs 53f S 206 +99 C 75 S 300", 0 },
    { "C hello S hello ccs 23 53 C ccs 53 C 75 S 250 S 383", 208 },
    { "C hello S hello ccs 23 53 C ccs 53 C 75 S 266 S 383", 224 },
    { "C hello S hello ccs 23 873 97 53 C ccs 53 C 75 S 258 258 S 383", 0 },
};

enum { FLOW_COUNT = sizeof FLOWS / sizeof *FLOWS };

static void expect_same_tally(const struct tally *a, const struct tally *b)
{
    cr_assert_eq(a->used, b->used);
    for (unsigned i = 0; i < a->used; i++) {
        cr_expect_eq(a->entry[i].number, b->entry[i].number);
        cr_expect_eq(a->entry[i].count, b->entry[i].count);
        cr_expect_eq(a->entry[i].first_ns, b->entry[i].first_ns);
        cr_expect_eq(a->entry[i].last_ns, b->entry[i].last_ns);
    }
}

static void expect_same_profile(const struct profile *a, const struct profile *b)
{
    cr_expect_eq(a->flows, b->flows);
    cr_expect_eq(a->first_ns, b->first_ns);
    cr_expect_eq(a->last_ns, b->last_ns);
    expect_same_tally(&a->identities, &b->identities);
    expect_same_tally(&a->rests, &b->rests);
    expect_same_tally(&a->unasked, &b->unasked);
    expect_same_tally(&a->extensions, &b->extensions);
    expect_same_tally(&a->one_records, &b->one_records);
}

Test(profile, the_order_of_flows_does_not_matter)
{
    struct profiles *forward = opened(), *backward = opened();
    for (int i = 0; i < FLOW_COUNT; i++) {
        learn(forward, FLOWS[i].line, FLOWS[i].identity_len);
        learn(backward, FLOWS[FLOW_COUNT - 1 - i].line, FLOWS[FLOW_COUNT - 1 - i].identity_len);
    }
    profiles_settle(forward);
    profiles_settle(backward);
    cr_assert_eq(profiles_count(forward), profiles_count(backward));
    for (size_t i = 0; i < profiles_count(forward); i++)
        expect_same_profile(profiles_at(forward, i), profiles_at(backward, i));
    profiles_close(forward);
    profiles_close(backward);
}

static void learn_named(struct profiles *p, unsigned number)
{
    struct script s;
    char name[32];
    read_flow(&s, "C hello S hello", 0);
    snprintf(name, sizeof name, "%u.example", number);
    s.facts.server_name = name;
    cr_assert_eq(profiles_learn(p, &s.facts), STATUS_OK);
}

Test(profile, more_servers_than_the_cap_leave_the_same_ones_in_any_order, .timeout = 60)
{
    enum { SERVERS = 2 * PROFILES_MAX + 7 };
    struct profiles *forward = opened(), *backward = opened();
    for (unsigned i = 0; i < SERVERS; i++) {
        learn_named(forward, i);
        learn_named(backward, SERVERS - 1 - i);
    }
    profiles_settle(forward);
    profiles_settle(backward);
    size_t count = profiles_count(forward);
    cr_expect_leq(count, PROFILES_MAX);
    cr_expect_gt(count, PROFILES_MAX / 4);
    cr_assert_eq(count, profiles_count(backward));
    for (size_t i = 0; i < count; i++) {
        const struct profile *a = profiles_at(forward, i), *b = profiles_at(backward, i);
        cr_assert_eq(a->is_wide, b->is_wide);
        cr_assert_eq(a->flows, b->flows);
        if (!a->is_wide)
            cr_assert_str_eq(a->server_name, b->server_name);
    }
    profiles_close(forward);
    profiles_close(backward);
}
