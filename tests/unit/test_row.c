/* SPDX-License-Identifier: Apache-2.0 */
#include "row.h"

#include "packet.h"
#include "random_facts.h"
#include "store.h"

#include <criterion/criterion.h>

static const struct labels NO_LABELS = { 0 };
static const struct privacy NOTHING_HIDDEN = { 0 };

static struct row_context context_of(const struct labels *labels)
{
    return (struct row_context){
        .point = "edge-", .labels = labels, .privacy = &NOTHING_HIDDEN, .capture_id = 7
    };
}

static struct endpoint endpoint_of(const char *address, uint16_t port)
{
    struct endpoint e = { .port = port };
    cr_assert(address_parse(address, &e.address));
    return e;
}

static void fill(const struct facts *f, const struct row_context *context, struct row_space *space,
                 struct flow_row *ret_row)
{
    struct verdict v = judge(f, NULL);
    struct path p = path_of(f, DURATION_NONE);
    struct timing t = timing_of(f, &v, &p);
    row_fill(f, &v, &p, &t, context, space, ret_row);
}

static struct facts plain_facts(void)
{
    return (struct facts){
        .client = endpoint_of("203.0.113.7", 51822),
        .server = endpoint_of("192.0.2.10", 443),
        .ip_version = 4,
        .start_ns = 1000,
        .end_ns = 5000,
        .syn_seen = 1,
        .packets = { 3, 2 },
        .ttl = { 60, 0 },
        .client_basis = CLIENT_BY_SYN,
        .ended = ENDED_FIN,
        .isn = { 11, 22 },
    };
}

static void assert_text(struct row_text text, const char *expected)
{
    if (expected == NULL) {
        cr_assert_null(text.at);
        return;
    }
    cr_assert_not_null(text.at, "NULL, not %s", expected);
    cr_assert_eq(text.len, strlen(expected));
    cr_assert_eq(memcmp(text.at, expected, text.len), 0, "%.*s, not %s", (int)text.len, text.at,
                 expected);
}

static void see_clients(struct roles *r, const struct address *server)
{
    for (uint8_t i = 0; i < ROLE_CLIENTS; i++) {
        struct address client = address_of_ipv4((const uint8_t[]){ 203, 0, 113, i });
        cr_assert_eq(roles_add(r, server, &client, 0), STATUS_OK);
    }
}

Test(row, the_leg_is_guessed_by_who_serves_many_and_local_wins)
{
    struct facts f = plain_facts();
    struct roles *roles = roles_open(1);
    struct row_context context = context_of(&NO_LABELS);
    struct row_space space;
    struct flow_row row;
    context.roles = roles;
    fill(&f, &context, &space, &row);
    assert_text(row.leg, "unknown");
    assert_text(row.leg_basis, NULL);
    see_clients(roles, &f.server.address);
    fill(&f, &context, &space, &row);
    assert_text(row.leg, "inbound");
    assert_text(row.leg_basis, "guess");

    struct facts to_origin = plain_facts();
    to_origin.client = f.server;
    to_origin.server = endpoint_of("198.51.100.1", 443);
    fill(&to_origin, &context, &space, &row);
    assert_text(row.leg, "outbound");
    assert_text(row.leg_basis, "guess");
    see_clients(roles, &to_origin.server.address);
    fill(&to_origin, &context, &space, &row);
    assert_text(row.leg, "internal");

    struct prefix_set *local;
    cr_assert_eq(prefix_set_open("198.51.100.0/24", &local), STATUS_OK);
    context.local = local;
    fill(&to_origin, &context, &space, &row);
    assert_text(row.leg, "inbound");
    assert_text(row.leg_basis, "local");
    fill(&f, &context, &space, &row);
    assert_text(row.leg, "unknown");
    assert_text(row.leg_basis, NULL);
    prefix_set_close(local);
    roles_close(roles);
}

Test(row, identity_of_ipv4_and_ipv6)
{
    struct facts f = plain_facts();
    struct row_context context = context_of(&NO_LABELS);
    struct row_space space;
    struct flow_row row;
    fill(&f, &context, &space, &row);
    assert_text(row.client_ip, "203.0.113.7");
    assert_text(row.client_prefix, "203.0.113.0/24");
    assert_text(row.server_ip, "192.0.2.10");
    cr_assert_eq(row.client_port.value, 51822);
    cr_assert_eq(row.capture_id.value, 7);
    assert_text(row.client_basis, "syn");
    assert_text(row.ended, "fin");
    assert_text(row.leg, "unknown");
    assert_text(row.site, NULL);
    f.client = endpoint_of("2001:db8:1:2::7", 1);
    fill(&f, &context, &space, &row);
    assert_text(row.client_ip, "2001:db8:1:2::7");
    assert_text(row.client_prefix, "2001:db8:1::/48");
}

Test(row, a_name_follows_from_point_ends_time_and_sequence_number_alone)
{
    struct row_context context = context_of(&NO_LABELS);
    struct facts f = plain_facts();
    char uid[33], other[33];
    row_flow_uid(&f, &context, uid);
    cr_assert_eq(strlen(uid), 32);
    f.end_ns++;
    f.packets[CLIENT]++;
    f.isn[SERVER]++;
    row_flow_uid(&f, &context, other);
    cr_assert_str_eq(uid, other);
    struct facts changed[] = { f, f, f, f };
    changed[0].start_ns++;
    changed[1].isn[CLIENT]++;
    changed[2].client.port++;
    changed[3].server.address.octet[15]++;
    for (unsigned i = 0; i < 4; i++) {
        row_flow_uid(&changed[i], &context, other);
        cr_assert_str_neq(uid, other, "case %u", i);
    }
    context.point = "core-";
    row_flow_uid(&f, &context, other);
    cr_assert_str_neq(uid, other);
}

Test(row, labels_do_not_run_together_in_the_name)
{
    char edge[] = "edge", sin[] = "sin", edgesin[] = "edgesin", none[] = "";
    struct labels one = { .site = edge, .host = sin }, two = { .site = edgesin, .host = none };
    struct row_context a = context_of(&one), b = context_of(&two);
    struct facts f = plain_facts();
    char uid[33], other[33];
    row_flow_uid(&f, &a, uid);
    row_flow_uid(&f, &b, other);
    cr_assert_str_neq(uid, other);
}

Test(row, times_before_the_start_are_null)
{
    struct facts f = plain_facts();
    struct row_context context = context_of(&NO_LABELS);
    struct row_space space;
    struct flow_row row;
    f.syn_ack_ns = 999;
    f.ack_ns = 1000;
    f.client_hello_ns = 1001;
    fill(&f, &context, &space, &row);
    cr_assert_not(row.syn_ack_at_ns.has);
    cr_assert(row.ack_at_ns.has && row.ack_at_ns.value == 0);
    cr_assert(row.client_hello_at_ns.has && row.client_hello_at_ns.value == 1);
    cr_assert_not(row.server_hello_at_ns.has);
    cr_assert_eq(row.end_at_ns.value, 4000);
}

Test(row, sides_and_who_ended_it)
{
    struct facts f = plain_facts();
    struct row_context context = context_of(&NO_LABELS);
    struct row_space space;
    struct flow_row row;
    f.fin_ns[CLIENT] = 3000;
    f.reset_ns[SERVER] = 2999;
    fill(&f, &context, &space, &row);
    assert_text(row.sides_seen, "both");
    assert_text(row.ended_by, "server");
    f.packets[SERVER] = 0;
    fill(&f, &context, &space, &row);
    assert_text(row.sides_seen, "client");
    f.packets[CLIENT] = 0;
    f.packets[SERVER] = 1;
    f.fin_ns[CLIENT] = f.reset_ns[SERVER] = 0;
    fill(&f, &context, &space, &row);
    assert_text(row.sides_seen, "server");
    assert_text(row.ended_by, NULL);
    cr_assert(row.client_ttl.has == false && row.server_ttl.has);
}

Test(row, every_tunnel_has_its_word_and_all_together_fit)
{
    struct facts f = plain_facts();
    struct row_context context = context_of(&NO_LABELS);
    struct row_space space;
    struct flow_row row;
    fill(&f, &context, &space, &row);
    assert_text(row.tunnel, NULL);
    f.tunnel = TUNNEL_VLAN | TUNNEL_GTP_U;
    fill(&f, &context, &space, &row);
    assert_text(row.tunnel, "vlan,gtp_u");
    f.tunnel = UINT16_MAX;
    fill(&f, &context, &space, &row);
    assert_text(row.tunnel, "vlan,mpls,pppoe,gre,erspan,ip_in_ip,vxlan,geneve,gtp_u,teredo,l2tp,"
                            "capwap,nsh");
}

Test(row, numbers_without_a_name_are_written_as_numbers)
{
    struct facts f = plain_facts();
    struct row_context context = context_of(&NO_LABELS);
    struct row_space space;
    struct flow_row row;
    f.tls = f.server_hello_seen = 1;
    f.version = 0x0303;
    f.cipher_suite = 0xabcd;
    f.named_group = 0xfefe;
    fill(&f, &context, &space, &row);
    assert_text(row.tls_version, "TLSv1.2");
    assert_text(row.cipher_suite, "0xabcd");
    assert_text(row.named_group, "0xfefe");
}

/* What the main path guarantees of facts that random ones need not obey. */
static void keep_within_limits(struct facts *f, unsigned seed)
{
    f->client = endpoint_of("203.0.113.7", (uint16_t)seed);
    f->server = endpoint_of("2001:db8::1", 443);
    f->ip_version = seed % 2 == 0 ? 4 : 6;
    f->start_ns += seed;
    uint8_t *flags[] = { &f->syn_seen,    &f->continues, &f->clock_step,           &f->fast_open,
                         &f->hello_retry, &f->ech,       &f->client_hello_complete };
    for (unsigned i = 0; i < sizeof flags / sizeof flags[0]; i++)
        *flags[i] &= 1;
    f->client_basis = (uint8_t)(seed % (CLIENT_BY_ORDER + 1));
    f->ended = (uint8_t)(seed / 8 % (ENDED_EVICTED + 1));
    f->preamble = (uint8_t)(seed / 64 % (PREAMBLE_OTHER + 1));
}

Test(row, the_database_takes_the_row_of_any_facts)
{
    struct row_context context = context_of(&NO_LABELS);
    struct store *store;
    cr_assert_eq(store_open(":memory:", &store), STATUS_OK);
    cr_assert_eq(store_begin(store), STATUS_OK);
    for (unsigned seed = 0; seed < 5000; seed++) {
        struct record records[RECORDS_MAX];
        struct facts f;
        struct row_space space;
        struct flow_row row;
        bool added;
        random_facts(seed, &f, records);
        keep_within_limits(&f, seed);
        fill(&f, &context, &space, &row);
        cr_assert_eq(store_flow(store, &row, (struct bytes){ 0 }, &added), STATUS_OK, "seed %u: %s",
                     seed, store_error(store));
    }
    store_close(store);
}

/* ---- what is judged again ---- */

static void clear_judged(struct flow_row *row)
{
#define CLEAR(name) memset(&row->name, 0, sizeof row->name);
    FLOW_JUDGED(CLEAR, CLEAR, CLEAR)
#undef CLEAR
}

static void assert_same_judged(const struct flow_row *a, const struct flow_row *b)
{
#define SAME_NUMBER(name)                                                                          \
    cr_expect(a->name.has == b->name.has && !(a->name.value < b->name.value) &&                    \
                  !(a->name.value > b->name.value),                                                \
              #name);
#define SAME_TEXT(name) cr_expect_eq(a->name.at, b->name.at, #name);
    FLOW_JUDGED(SAME_NUMBER, SAME_NUMBER, SAME_TEXT)
#undef SAME_NUMBER
#undef SAME_TEXT
}

Test(row, judging_again_fills_the_judged_columns_and_no_other)
{
    for (unsigned seed = 0; seed < 1000; seed++) {
        struct row_space space;
        struct flow_row whole, judged, nothing;
        struct record records[RECORDS_MAX];
        struct facts f;
        struct row_context context = context_of(&NO_LABELS);
        random_facts(seed, &f, records);
        keep_within_limits(&f, seed);
        struct verdict v = judge(&f, NULL);
        struct path p = path_of(&f, DURATION_NONE);
        struct timing t = timing_of(&f, &v, &p);
        row_fill(&f, &v, &p, &t, &context, &space, &whole);
        memset(&judged, 0, sizeof judged);
        memset(&nothing, 0, sizeof nothing);
        row_fill_judged(&f, &v, &p, &t, &judged);
        assert_same_judged(&whole, &judged);
        clear_judged(&judged);
        cr_assert_eq(memcmp(&judged, &nothing, sizeof nothing), 0);
    }
}
