/* SPDX-License-Identifier: Apache-2.0 */
#include "analyze.h"

#include "facts.h"
#include "flow.h"
#include "past.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define MS INT64_C(1000000)
#define START_NS (INT64_C(1700000000) * NS_PER_SECOND)
enum { FIN = 1, SYN = 2, RST = 4, ACK = 16, FLOWS_MAX = 32, DLT_ETHERNET = 1, DLT_RAW_IP = 12 };

/* Runs packets through the main path and keeps the facts of flows that ended. */
struct run_of_packets {
    struct analysis_options options;
    struct analysis *analysis;
    struct drop_counts *drops;
    uint64_t packet_no;
    struct facts facts[FLOWS_MAX];
    unsigned count;
};

static struct run_of_packets begin_run(size_t memory_max)
{
    struct run_of_packets r = { .options = { .stage = stage_open(1 << 20, NULL),
                                             .half_opens = half_opens_open(1),
                                             .profiles = profiles_open(),
                                             .neighbours = neighbours_open(1),
                                             .roles = roles_open(1),
                                             .memory_max = memory_max,
                                             .seed = 1 } };
    r.drops = calloc(1, sizeof *r.drops);
    cr_assert_eq(analysis_open(&r.options, &r.analysis), STATUS_OK);
    analysis_use_file(r.analysis, 0, r.drops);
    return r;
}

/* What was dropped of all that was sent. */
static const struct drop_counts *drops_of(struct run_of_packets *r)
{
    cr_assert_eq(analysis_settle(r->analysis), STATUS_OK);
    return r->drops;
}

/* Ends the flows that are left; then facts[] holds all, in the order in which they ended. */
static void finish_run(struct run_of_packets *r)
{
    struct bytes item;
    cr_assert_eq(analysis_end(r->analysis), STATUS_OK);
    stage_rewind(r->options.stage);
    while (stage_next(r->options.stage, &item) == STATUS_OK) {
        struct record records[RECORDS_MAX];
        struct facts f;
        cr_assert_lt(r->count, FLOWS_MAX);
        cr_assert(facts_unpack(item, records, &f));
        cr_assert(facts_copy(&f, &r->facts[r->count++]));
    }
}

static void end_run(struct run_of_packets *r)
{
    for (unsigned i = 0; i < r->count; i++)
        facts_done(&r->facts[i]);
    analysis_close(r->analysis);
    free(r->drops);
    stage_close(r->options.stage);
    half_opens_close(r->options.half_opens);
    profiles_close(r->options.profiles);
    neighbours_close(r->options.neighbours);
    roles_close(r->options.roles);
}

struct packet {
    int64_t at_ns;
    enum side from;
    uint8_t flags;
    uint32_t seq, ack;
    uint32_t client;      /* 0 = 192.0.2.7 */
    uint16_t client_port; /* 0 = 50000 */
    uint8_t ttl;          /* 0 = 64 */
    uint16_t vlan;        /* 0 = raw IP */
};

static void put_be(uint8_t **at, unsigned width, uint64_t value)
{
    for (unsigned i = width; i-- > 0;)
        *(*at)++ = (uint8_t)(value >> 8 * i);
}

/* Server 198.51.100.9 port 443. */
static void send_bytes(struct run_of_packets *r, const struct packet *p, struct bytes payload)
{
    static uint16_t ip_id;
    uint8_t frame[1600], *at = frame;
    uint32_t client = p->client == 0 ? 0xc0000207 : p->client, server = 0xc6336409;
    uint16_t port = p->client_port == 0 ? 50000 : p->client_port;
    cr_assert_leq(payload.len, 1500);
    if (p->vlan != 0) {
        put_be(&at, 8, 0);
        put_be(&at, 4, 0);
        put_be(&at, 2, 0x8100);
        put_be(&at, 2, p->vlan);
        put_be(&at, 2, 0x0800);
    }
    put_be(&at, 2, 0x4500);
    put_be(&at, 2, 40 + payload.len);
    put_be(&at, 2, ++ip_id);
    put_be(&at, 2, 0x4000);
    put_be(&at, 1, p->ttl == 0 ? 64 : p->ttl);
    put_be(&at, 3, 0x060000);
    put_be(&at, 4, p->from == CLIENT ? client : server);
    put_be(&at, 4, p->from == CLIENT ? server : client);
    put_be(&at, 2, p->from == CLIENT ? port : 443);
    put_be(&at, 2, p->from == CLIENT ? 443 : port);
    put_be(&at, 4, p->seq);
    put_be(&at, 4, p->ack);
    put_be(&at, 1, 0x50);
    put_be(&at, 1, p->flags);
    put_be(&at, 2, 1000);
    put_be(&at, 4, 0);
    if (payload.len > 0)
        memcpy(at, payload.at, payload.len);
    size_t len = (size_t)(at - frame) + payload.len;
    struct frame f = {
        .at_ns = p->at_ns,
        .number = ++r->packet_no,
        .link_type = p->vlan != 0 ? DLT_ETHERNET : DLT_RAW_IP,
        .wire_len = (uint32_t)len,
        .data = { frame, len },
    };
    cr_assert_eq(analysis_frame(r->analysis, &f), STATUS_OK);
}

/* A segment without payload. */
static void send_bare(struct run_of_packets *r, int64_t at_ns, enum side from, uint8_t flags,
                      uint32_t seq, uint32_t ack)
{
    struct packet p = { .at_ns = at_ns, .from = from, .flags = flags, .seq = seq, .ack = ack };
    send_bytes(r, &p, (struct bytes){ 0 });
}

static void send_text(struct run_of_packets *r, int64_t at_ns, enum side from, uint32_t seq,
                      uint32_t ack, const char *text)
{
    struct packet p = { .at_ns = at_ns, .from = from, .flags = ACK, .seq = seq, .ack = ack };
    send_bytes(r, &p, (struct bytes){ (const uint8_t *)text, strlen(text) });
}

static void send_syn(struct run_of_packets *r, int64_t at_ns, uint32_t isn)
{
    send_bare(r, at_ns, CLIENT, SYN, isn, 0);
}

static void send_syn_ack(struct run_of_packets *r, int64_t at_ns, uint32_t acked)
{
    send_bare(r, at_ns, SERVER, SYN | ACK, 5000, acked);
}

static void send_handshake(struct run_of_packets *r, int64_t at_ns, uint32_t isn)
{
    send_syn(r, at_ns, isn);
    send_syn_ack(r, at_ns + MS, isn + 1);
    send_bare(r, at_ns + 2 * MS, CLIENT, ACK, isn + 1, 5001);
}

Test(analyze, a_connection_from_syn_to_fin)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_handshake(&r, START_NS, 100);
    send_text(&r, START_NS + 3 * MS, CLIENT, 101, 5001, "GET / ");
    send_text(&r, START_NS + 4 * MS, SERVER, 5001, 107, "HTTP/1.1 200");
    send_bare(&r, START_NS + 5 * MS, CLIENT, ACK | FIN, 107, 5013);
    send_bare(&r, START_NS + 6 * MS, SERVER, ACK | FIN, 5013, 108);
    finish_run(&r);
    cr_assert_eq(r.count, 1);
    const struct facts *f = &r.facts[0];
    cr_expect_eq(f->start_ns, START_NS);
    cr_expect_eq(f->syn_ack_ns, START_NS + MS);
    cr_expect_eq(f->ack_ns, START_NS + 2 * MS);
    cr_expect_eq(f->ack_is_pure, 1);
    cr_expect_eq(f->packets[CLIENT], 4);
    cr_expect_eq(f->packets[SERVER], 3);
    cr_expect_eq(f->bytes[SERVER], 12);
    cr_expect_eq(f->plain_response_ns, START_NS + 4 * MS);
    cr_expect_eq(f->ended, ENDED_FIN);
    cr_expect_eq(f->first_packet_no, 1);
    cr_expect_eq(f->client_basis, CLIENT_BY_SYN);
    end_run(&r);
}

Test(analyze, the_first_ack_is_first_by_time_not_by_place)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_syn(&r, START_NS, 100);
    send_syn_ack(&r, START_NS + MS, 101);
    send_text(&r, START_NS + 3 * MS, CLIENT, 101, 5001, "GET / ");
    send_bare(&r, START_NS + 2 * MS, CLIENT, ACK, 101, 5001);
    finish_run(&r);
    cr_expect_eq(r.facts[0].ack_ns, START_NS + 2 * MS);
    cr_expect_eq(r.facts[0].ack_is_pure, 1);
    cr_expect_eq(r.facts[0].client_after_syn_ack_ns, START_NS + 2 * MS);
    end_run(&r);
}

Test(analyze, a_refusal_captured_twice_is_one)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_syn(&r, START_NS, 100);
    send_bare(&r, START_NS + MS, SERVER, RST | ACK, 0, 101);
    struct packet copy = {
        .at_ns = START_NS + 2 * MS, .from = SERVER, .flags = RST | ACK, .ack = 101, .ttl = 63
    };
    send_bytes(&r, &copy, (struct bytes){ 0 });
    finish_run(&r);
    cr_assert_eq(r.count, 1);
    cr_expect_eq(r.facts[0].packets[SERVER], 1);
    cr_expect_eq(r.facts[0].duplicates, 1);
    cr_expect_eq(r.facts[0].end_ns, START_NS + MS);
    cr_expect_eq(r.facts[0].ended, ENDED_RESET);
    end_run(&r);
}

Test(analyze, a_syn_repeated_after_the_half_open_limit_keeps_its_first_time)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_syn(&r, START_NS, 100);
    send_syn(&r, START_NS + 63 * NS_PER_SECOND, 100);
    send_syn_ack(&r, START_NS + 63 * NS_PER_SECOND + MS, 101);
    send_bare(&r, START_NS + 63 * NS_PER_SECOND + 2 * MS, CLIENT, ACK, 101, 5001);
    finish_run(&r);
    cr_assert_eq(r.count, 1, "the half-open one is not told apart");
    cr_expect_eq(r.facts[0].start_ns, START_NS);
    cr_expect_eq(r.facts[0].syn_count, 2);
    size_t count;
    const struct half_open_count *all = half_opens_all(r.options.half_opens, &count);
    cr_expect_eq(all[0].flows, 0);
    end_run(&r);
}

Test(analyze, a_connection_finds_its_syn_after_the_half_open_limit)
{
    for (enum side first = CLIENT; first <= SERVER; first++) {
        struct run_of_packets r = begin_run(1 << 20);
        int64_t late_ns = START_NS + 60 * NS_PER_SECOND;
        send_syn(&r, START_NS, 100);
        if (first == SERVER)
            send_syn_ack(&r, late_ns, 101);
        send_bare(&r, late_ns + MS, CLIENT, ACK, 101, 5001);
        finish_run(&r);
        cr_assert_eq(r.count, 1, "the half-open one is not told apart");
        cr_expect_eq(r.facts[0].start_ns, START_NS);
        cr_expect_eq(r.facts[0].client_basis, CLIENT_BY_SYN);
        cr_expect_eq(r.facts[0].packets[CLIENT], 1);
        size_t count;
        const struct half_open_count *all = half_opens_all(r.options.half_opens, &count);
        cr_expect_eq(all[0].flows, 0);
        end_run(&r);
    }
}

Test(analyze, what_does_not_follow_a_half_open_flow_has_another_syn)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_syn(&r, START_NS, 100);
    send_bare(&r, START_NS + 60 * NS_PER_SECOND, CLIENT, ACK, 102, 5001);
    finish_run(&r);
    cr_assert_eq(r.count, 2);
    cr_expect_eq(r.facts[0].start_ns, START_NS);
    cr_expect_not(r.facts[1].syn_seen);
    end_run(&r);
}

Test(analyze, another_syn_on_the_same_ports_is_another_connection)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_handshake(&r, START_NS, 100);
    send_handshake(&r, START_NS + 50 * MS, 1 << 30);
    finish_run(&r);
    cr_assert_eq(r.count, 2);
    cr_expect_eq(r.facts[0].start_ns, START_NS);
    cr_expect_eq(r.facts[1].start_ns, START_NS + 50 * MS);
    cr_expect_eq(r.facts[1].continues, 0);
    end_run(&r);
}

/* A packet in a VLAN; its time is milliseconds since the start. */
static void send_in(struct run_of_packets *r, uint16_t vlan, int64_t at_ms, enum side from,
                    uint8_t flags, uint32_t seq, uint32_t ack)
{
    struct packet p = { .at_ns = START_NS + at_ms * MS,
                        .from = from,
                        .flags = flags,
                        .seq = seq,
                        .ack = ack,
                        .vlan = vlan };
    bool has_payload = flags == ACK && vlan != 0;
    send_bytes(r, &p, (struct bytes){ (const uint8_t *)"x", has_payload });
}

/* SYN, SYN/ACK, a byte of each side, in the VLANs that client and server have there. */
static void send_tenant(struct run_of_packets *r, const uint16_t vlan[2], int64_t at_ms,
                        uint32_t isn)
{
    send_in(r, vlan[CLIENT], at_ms, CLIENT, SYN, isn, 0);
    send_in(r, vlan[SERVER], at_ms + 20, SERVER, SYN | ACK, ~isn, isn + 1);
    send_in(r, vlan[CLIENT], at_ms + 40, CLIENT, ACK, isn + 1, ~isn + 1);
    send_in(r, vlan[SERVER], at_ms + 60, SERVER, ACK, ~isn + 1, isn + 2);
}

Test(analyze, tenants_with_equal_addresses_are_two_flows)
{
    static const uint16_t ONE[] = { 10, 10 }, TWO[] = { 20, 21 };
    /* One behind the other, and packet by packet between each other. */
    for (int64_t later = 0; later <= 1000; later += later < 80 ? 7 : 500) {
        struct run_of_packets r = begin_run(1 << 20);
        send_tenant(&r, ONE, 0, 100);
        send_tenant(&r, TWO, later, 1 << 30);
        send_in(&r, 10, 1100, CLIENT, ACK, 102, ~100U + 2);
        send_in(&r, 21, 1200, SERVER, ACK | FIN, ~(1U << 30) + 2, (1 << 30) + 2);
        finish_run(&r);
        cr_assert_eq(r.count, 2, "%lld ms later", (long long)later);
        for (unsigned i = 0; i < 2; i++) {
            bool is_one = r.facts[i].isn[CLIENT] == 100;
            cr_expect_eq(r.facts[i].packets[CLIENT], is_one ? 3 : 2);
            cr_expect_eq(r.facts[i].packets[SERVER], is_one ? 2 : 3);
            cr_expect_eq(r.facts[i].syn_count, 1);
            cr_expect_eq(r.facts[i].bytes[SERVER], 1);
        }
        end_run(&r);
    }
}

Test(analyze, tenants_are_told_apart_without_a_syn)
{
    struct run_of_packets r = begin_run(1 << 20);
    for (uint32_t i = 0; i < 5; i++) {
        send_in(&r, 10, 20 * i, CLIENT, ACK, 100 + i, 7000);
        send_in(&r, 20, 20 * i + 1, CLIENT, ACK, (1 << 30) + i, 9000);
        send_in(&r, 10, 20 * i + 2, SERVER, ACK, 7000 + i, 101 + i);
    }
    finish_run(&r);
    cr_assert_eq(r.count, 2);
    cr_expect_eq(r.facts[0].packets[CLIENT], 5);
    cr_expect_eq(r.facts[1].packets[CLIENT], 5);
    cr_expect_eq(r.facts[0].packets[SERVER] + r.facts[1].packets[SERVER], 5);
    end_run(&r);
}

Test(analyze, a_vlan_per_direction_or_a_mirror_of_both_sides_is_one_flow)
{
    static const uint16_t APART[] = { 10, 11 };
    struct run_of_packets r = begin_run(1 << 20);
    send_tenant(&r, APART, 0, 100);
    finish_run(&r);
    cr_assert_eq(r.count, 1);
    cr_expect_eq(r.facts[0].syn_ack_count, 1);
    end_run(&r);

    r = begin_run(1 << 20);
    static const uint16_t SIDES[][2] = { { 10, 10 }, { 20, 20 }, { 0, 0 } };
    for (int64_t at_ms = 0; at_ms <= 60; at_ms += 20)
        for (unsigned i = 0; i < 3; i++) { /* each packet in two VLANs and without one */
            uint16_t vlan = SIDES[i][0];
            int64_t now_ms = at_ms + i;
            if (at_ms == 0)
                send_in(&r, vlan, now_ms, CLIENT, SYN, 100, 0);
            else if (at_ms == 20)
                send_in(&r, vlan, now_ms, SERVER, SYN | ACK, 7000, 101);
            else
                send_in(&r, vlan, now_ms, CLIENT, ACK, 101 + (uint32_t)(at_ms - 40) / 20, 7001);
        }
    finish_run(&r);
    cr_assert_eq(r.count, 1);
    cr_expect_eq(r.facts[0].syn_count, 1);
    end_run(&r);
}

Test(analyze, a_tenant_that_ended_swallows_nothing_of_the_other)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_in(&r, 10, 0, CLIENT, SYN, 100, 0);
    send_in(&r, 10, 1, SERVER, RST | ACK, 0, 101);
    send_in(&r, 30, 30000, CLIENT, ACK, 1 << 30, 9000);
    send_in(&r, 10, 30001, CLIENT, ACK, 101, 1);
    cr_expect_eq(drops_of(&r)->packets[DROP_TCP_AFTER_END], 1);
    finish_run(&r);
    cr_assert_eq(r.count, 2);
    cr_expect_eq(r.facts[1].isn[CLIENT], (1 << 30) - 1);
    end_run(&r);
}

Test(analyze, tenants_of_one_key_have_a_cap)
{
    struct run_of_packets r = begin_run(1 << 20);
    for (uint32_t i = 1; i <= 20; i++)
        send_in(&r, (uint16_t)i, i, CLIENT, ACK, i << 27, 7000);
    finish_run(&r);
    unsigned evicted = 0;
    cr_assert_eq(r.count, 20);
    for (unsigned i = 0; i < r.count; i++)
        evicted += r.facts[i].ended == ENDED_EVICTED;
    cr_expect_eq(evicted, 4, "16 live ones are the cap");
    end_run(&r);
}

Test(analyze, a_syn_inside_of_the_window_belongs_to_the_live_connection)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_handshake(&r, START_NS, 100);
    send_text(&r, START_NS + 3 * MS, CLIENT, 101, 5001, "GET / ");
    send_syn(&r, START_NS + 50 * MS, 500);
    send_bare(&r, START_NS + 51 * MS, SERVER, ACK, 5001, 107); /* the challenge */
    send_text(&r, START_NS + 52 * MS, SERVER, 5001, 107, "HTTP/1.1 200");
    cr_expect_eq(drops_of(&r)->packets[DROP_TCP_OUT_OF_WINDOW], 1);
    finish_run(&r);
    cr_assert_eq(r.count, 1);
    cr_expect_eq(r.facts[0].syn_count, 1);
    cr_expect_eq(r.facts[0].plain_response_ns, START_NS + 52 * MS);
    end_run(&r);
}

Test(analyze, a_syn_behind_the_client_s_fin_is_another_connection)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_handshake(&r, START_NS, 100);
    send_bare(&r, START_NS + 3 * MS, CLIENT, FIN | ACK, 101, 5001); /* nothing of the server's */
    send_syn(&r, START_NS + 50 * MS, 500);
    finish_run(&r);
    cr_assert_eq(r.count, 2);
    end_run(&r);
}

Test(analyze, the_challenge_to_a_new_connection_is_no_part_of_it)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_handshake(&r, START_NS, 100);
    send_syn(&r, START_NS + 50 * MS, 1 << 30);
    send_bare(&r, START_NS + 51 * MS, SERVER, ACK, 5001, 101); /* of the old one */
    send_bare(&r, START_NS + 52 * MS, CLIENT, RST, 101, 0);
    send_syn(&r, START_NS + 1050 * MS, 1 << 30);
    send_syn_ack(&r, START_NS + 1051 * MS, (1 << 30) + 1);
    send_bare(&r, START_NS + 1052 * MS, CLIENT, ACK, (1 << 30) + 1, 5001);
    finish_run(&r);
    cr_assert_eq(r.count, 2);
    cr_expect_eq(r.facts[1].syn_count, 2);
    cr_expect_eq(r.facts[1].syn_ack_count, 1);
    cr_expect_eq(r.facts[1].reset_ns[CLIENT], 0);
    cr_expect_eq(r.facts[1].ended, ENDED_CAPTURE_END);
    end_run(&r);
}

Test(analyze, a_late_syn_belongs_to_its_connection)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_text(&r, START_NS + MS, CLIENT, 101, 5001, "GET / ");
    send_syn(&r, START_NS, 100);
    send_text(&r, START_NS + 2 * MS, SERVER, 5001, 107, "HTTP/1.1 200");
    finish_run(&r);
    cr_assert_eq(r.count, 1);
    cr_expect_eq(r.facts[0].syn_seen, 1);
    cr_expect_eq(r.facts[0].start_ns, START_NS);
    end_run(&r);
}

Test(analyze, connections_seen_by_their_syn_acks_alone_are_told_apart)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_bare(&r, START_NS, SERVER, SYN | ACK, 5000, 101);
    send_text(&r, START_NS + MS, SERVER, 5001, 101, "220 mail");
    send_bare(&r, START_NS + 2 * MS, SERVER, FIN | ACK, 5009, 101);
    send_bare(&r, START_NS + 3 * MS, SERVER, FIN | ACK, 5009, 101);
    send_bare(&r, START_NS + 50 * MS, SERVER, SYN | ACK, 1 << 30, 1 << 20);
    send_text(&r, START_NS + 51 * MS, SERVER, (1 << 30) + 1, 1 << 20, "220 mail");
    finish_run(&r);
    cr_assert_eq(r.count, 2);
    cr_expect_eq(r.facts[0].bytes[SERVER], 8);
    cr_expect_eq(r.facts[1].bytes[SERVER], 8);
    end_run(&r);
}

Test(analyze, a_second_syn_ack_to_the_same_syn_opens_nothing)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_syn(&r, START_NS, 100);
    send_syn_ack(&r, START_NS + MS, 101);
    send_bare(&r, START_NS + 30 * MS, SERVER, SYN | ACK, 1 << 30, 101);
    send_bare(&r, START_NS + 40 * MS, CLIENT, ACK, 101, 5001);
    finish_run(&r);
    cr_assert_eq(r.count, 1);
    cr_expect_eq(r.facts[0].isn[SERVER], 5000);
    end_run(&r);
}

Test(analyze, what_trails_a_closed_connection_opens_no_row)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_handshake(&r, START_NS, 100);
    send_bare(&r, START_NS + 3 * MS, SERVER, RST, 5001, 0);
    send_bare(&r, START_NS + 100 * NS_PER_SECOND, CLIENT, ACK, 101, 5001);
    cr_expect_eq(drops_of(&r)->packets[DROP_TCP_AFTER_END], 1);
    send_bare(&r, START_NS + 300 * NS_PER_SECOND, CLIENT, ACK, 101, 5001);
    finish_run(&r);
    cr_assert_eq(r.count, 2);
    cr_expect_eq(r.facts[0].ended, ENDED_RESET);
    cr_expect_eq(r.facts[1].syn_seen, 0);
    end_run(&r);
}

Test(analyze, what_follows_an_idle_limit_continues)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_handshake(&r, START_NS, 100);
    send_bare(&r, START_NS + 119 * NS_PER_SECOND, CLIENT, ACK, 101, 5001);
    send_bare(&r, START_NS + 240 * NS_PER_SECOND, CLIENT, ACK, 101, 5001);
    finish_run(&r);
    cr_assert_eq(r.count, 2);
    cr_expect_eq(r.facts[0].packets[CLIENT], 3);
    cr_expect_eq(r.facts[0].ended, ENDED_IDLE);
    cr_expect_eq(r.facts[1].continues, 1);
    end_run(&r);
}

Test(analyze, limits_hold_to_the_nanosecond_for_the_flow_s_own_packets)
{
    for (int64_t late = 0; late < 2; late++) {
        struct run_of_packets r = begin_run(1 << 20);
        send_handshake(&r, START_NS, 100);
        send_bare(&r, START_NS + 2 * MS + HANDSHAKE_IDLE_NS + late, CLIENT, ACK, 101, 5001);
        finish_run(&r);
        cr_assert_eq(r.count, 1 + late);
        end_run(&r);
    }
}

/* The flow is looked at in between, whenever other packets come. */
static void check_limit_at_end(int64_t last_ns, int64_t look_ns, int64_t late)
{
    struct run_of_packets r = begin_run(1 << 20);
    struct packet other = { .from = CLIENT, .flags = SYN, .seq = 7, .client_port = 50001 };
    send_handshake(&r, START_NS, 100);
    send_bare(&r, last_ns, CLIENT, ACK, 101, 5001);
    other.at_ns = look_ns;
    send_bytes(&r, &other, (struct bytes){ 0 });
    other.at_ns = last_ns + HANDSHAKE_IDLE_NS + late;
    other.client_port++;
    send_bytes(&r, &other, (struct bytes){ 0 });
    finish_run(&r);
    cr_assert_eq(r.count, 3);
    unsigned i = 0;
    while (r.facts[i].client.port != 50000)
        i++;
    cr_expect_eq(r.facts[i].ended, late > 0 ? ENDED_IDLE : ENDED_CAPTURE_END, "%lld %lld %lld",
                 (long long)last_ns, (long long)look_ns, (long long)late);
    end_run(&r);
}

Test(analyze, limits_hold_to_the_nanosecond_at_the_end_of_the_captures)
{
    for (int64_t last_ms = 100; last_ms < 1000; last_ms += 200)
        for (int64_t look_s = 2; look_s < 120; look_s += 9)
            for (int64_t late = 0; late < 2; late++)
                check_limit_at_end(START_NS + last_ms * MS, START_NS + look_s * NS_PER_SECOND,
                                   late);
}

Test(analyze, a_reset_outside_of_the_window_is_dropped)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_handshake(&r, START_NS, 100);
    send_bare(&r, START_NS + 3 * MS, SERVER, RST, 5001 + (1 << 28), 0);
    cr_expect_eq(drops_of(&r)->packets[DROP_RESET_OUT_OF_WINDOW], 1);
    finish_run(&r);
    cr_expect_eq(r.facts[0].ended, ENDED_CAPTURE_END);
    end_run(&r);
}

Test(analyze, memory_is_kept_by_closing_the_flows_nearest_to_their_end)
{
    struct run_of_packets r = begin_run(64 * 1024);
    for (uint16_t i = 0; i < 400; i++) {
        struct packet p = { .at_ns = START_NS + i * MS,
                            .from = CLIENT,
                            .flags = ACK,
                            .seq = 100,
                            .ack = 1,
                            .client_port = (uint16_t)(1024 + i) };
        send_bytes(&r, &p, (struct bytes){ (const uint8_t *)"x", 1 });
    }
    struct bytes item;
    unsigned evicted = 0;
    cr_assert_eq(analysis_end(r.analysis), STATUS_OK);
    stage_rewind(r.options.stage);
    for (unsigned i = 0; i < 400; i++) {
        struct record records[RECORDS_MAX];
        struct facts f;
        cr_assert_eq(stage_next(r.options.stage, &item), STATUS_OK, "none is lost");
        cr_assert(facts_unpack(item, records, &f));
        evicted += f.ended == ENDED_EVICTED;
    }
    cr_expect_gt(evicted, 300);
    end_run(&r);
}

Test(analyze, of_too_many_half_open_flows_the_oldest_are_evicted_and_all_counted)
{
    enum { BEYOND = 100, PORTS = 60000 };
    struct run_of_packets r = begin_run((size_t)1 << 30);
    for (uint32_t i = 0; i < HALF_OPEN_FLOWS_MAX + BEYOND; i++) {
        struct packet p = { .at_ns = START_NS + i,
                            .from = CLIENT,
                            .flags = SYN,
                            .seq = i,
                            .client = 0x0a000000 + i / PORTS,
                            .client_port = (uint16_t)(1 + i % PORTS) };
        send_bytes(&r, &p, (struct bytes){ 0 });
    }
    struct bytes item;
    unsigned rows = 0, evicted = 0;
    cr_assert_eq(analysis_end(r.analysis), STATUS_OK);
    stage_rewind(r.options.stage);
    for (; stage_next(r.options.stage, &item) == STATUS_OK; rows++) {
        struct record records[RECORDS_MAX];
        struct facts f;
        cr_assert(facts_unpack(item, records, &f));
        evicted += f.ended == ENDED_EVICTED;
    }
    cr_expect_eq(rows, 64, "of one server and second");
    cr_expect_eq(evicted, 64, "the first ones, which have rows, are the oldest");
    end_run(&r);
}

Test(analyze, segments_that_wait_behind_a_hole_count_as_memory)
{
    static const uint8_t BYTES[1000] = { 1 };
    struct run_of_packets r = begin_run(256 * 1024);
    for (uint16_t i = 0; i < 400; i++) {
        struct packet p = { .at_ns = START_NS + i * MS,
                            .from = CLIENT,
                            .flags = ACK,
                            .seq = 100,
                            .ack = 1,
                            .client_port = (uint16_t)(50000 + i / 100) };
        send_bytes(&r, &p, (struct bytes){ BYTES, 1 });
        p.seq = 5000 + (uint32_t)(i % 100) * 2000;
        send_bytes(&r, &p, (struct bytes){ BYTES, sizeof BYTES });
    }
    cr_expect_gt(analysis_flows(r.analysis), 4, "four connections hold more than there is");
    cr_assert_eq(analysis_end(r.analysis), STATUS_OK);
    end_run(&r);
}

Test(analyze, one_broken_timestamp_ends_no_other_flow)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_handshake(&r, START_NS, 100);
    struct packet broken = {
        .at_ns = START_NS * 2, .from = CLIENT, .flags = SYN, .seq = 7, .client_port = 50001
    };
    send_bytes(&r, &broken, (struct bytes){ 0 });
    send_text(&r, START_NS + 3 * MS, CLIENT, 101, 5001, "GET / ");
    send_text(&r, START_NS + 4 * MS, SERVER, 5001, 107, "HTTP/1.1 200");
    finish_run(&r);
    cr_assert_eq(r.count, 2);
    const struct facts *f = &r.facts[r.facts[0].client.port == 50000 ? 0 : 1];
    cr_expect_eq(f->packets[SERVER], 2);
    cr_expect_eq(f->ended, ENDED_CAPTURE_END);
    end_run(&r);
}

Test(analyze, a_long_pause_ends_flows)
{
    struct run_of_packets r = begin_run(1 << 20);
    send_handshake(&r, START_NS, 100);
    for (int64_t i = 0; i < 2; i++) {
        struct packet later = { .at_ns = START_NS + 7200 * NS_PER_SECOND + i,
                                .from = CLIENT,
                                .flags = SYN,
                                .seq = 7,
                                .client_port = (uint16_t)(50001 + i) };
        send_bytes(&r, &later, (struct bytes){ 0 });
    }
    finish_run(&r);
    cr_assert_eq(r.count, 3);
    cr_expect_eq(r.facts[0].client.port, 50000);
    cr_expect_eq(r.facts[0].ended, ENDED_IDLE);
    end_run(&r);
}

/* A ServerHello and more, so that there is something to park. */
static const uint8_t CLIENT_HELLO[] = {
    22, 3,  1,  0,  47, 1,  0,  0,  43, 3,  3,    1,    2,  3,  4,  5,  6,  7,
    8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18,   19,   20, 21, 22, 23, 24, 25,
    26, 27, 28, 29, 30, 31, 32, 0,  0,  2,  0x13, 0x01, 1,  0,  0,  0,
};
static const uint8_t SERVER_HELLO[] = {
    22, 3,  3,  0,  44, 2,  0,  0,  40, 3,  3,    1,    2,  3,  4,  5,  6,
    7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17,   18,   19, 20, 21, 22, 23,
    24, 25, 26, 27, 28, 29, 30, 31, 32, 0,  0x13, 0x01, 0,  0,  0,
};
static const uint8_t DATA[] = { 23, 3, 3, 0, 4, 9, 9, 9, 9 };

/* Step n of a conversation happens at START_NS + n * gap. */
static void converse(struct run_of_packets *r, int64_t gap_ns)
{
    static const struct {
        enum side from;
        const uint8_t *bytes;
        uint32_t len, again; /* again: begins so many bytes earlier, as a retransmission does */
    } STEPS[] = {
        { CLIENT, CLIENT_HELLO, 20, 0 }, { CLIENT, CLIENT_HELLO + 20, 32, 0 },
        { SERVER, SERVER_HELLO, 49, 0 }, { SERVER, SERVER_HELLO + 40, 9, 9 },
        { CLIENT, DATA, 9, 0 },          { SERVER, DATA, 3, 0 },
        { SERVER, DATA + 3, 6, 0 },      { CLIENT, DATA, 0, 0 },
        { SERVER, DATA, 9, 0 },          { CLIENT, DATA, 9, 0 },
        { CLIENT, DATA, 9, 9 },          { SERVER, DATA, 9, 0 },
    };
    uint32_t next[2] = { 101, 5001 };
    int64_t at_ns = START_NS;
    send_syn(r, at_ns, 100);
    send_syn_ack(r, at_ns += gap_ns, 101);
    send_bare(r, at_ns += gap_ns, CLIENT, ACK, 101, 5001);
    for (unsigned i = 0; i < sizeof STEPS / sizeof STEPS[0]; i++) {
        enum side side = STEPS[i].from;
        struct packet p = { .at_ns = at_ns += gap_ns,
                            .from = side,
                            .flags = ACK,
                            .seq = next[side] - STEPS[i].again,
                            .ack = next[other_side(side)] };
        send_bytes(r, &p, (struct bytes){ STEPS[i].bytes, STEPS[i].len });
        next[side] += STEPS[i].len - STEPS[i].again;
    }
}

/* Times as steps, durations as numbers of them. */
static void count_in_steps(struct facts *f, int64_t gap_ns)
{
    int64_t start_ns = f->start_ns;
#define IS_TIME(type) _Generic((type)0, int64_t : true, default : false)
#define STEP(type, name)                                                                           \
    if (IS_TIME(type) && f->name != 0)                                                             \
        f->name = (type)(((int64_t)f->name - start_ns) / gap_ns + 1);
#define STEP_2(type, name) STEP(type, name[CLIENT]) STEP(type, name[SERVER])
    FACTS_SCALAR(STEP, STEP_2)
#undef STEP
#undef STEP_2
    f->data_rtt_ns /= (uint64_t)gap_ns;
    for (unsigned i = 0; i < f->record_count; i++) {
        struct record *r = &f->records[i];
        int64_t *times[] = { &r->at_ns, &r->last_at_ns, &r->acked_at_ns, &r->all_acked_at_ns };
        for (unsigned k = 0; k < 4; k++)
            *times[k] = *times[k] == 0 ? 0 : (*times[k] - start_ns) / gap_ns + 1;
    }
    for (unsigned i = 0; i < f->resend_count; i++) {
        f->resends[i].at_ns = (f->resends[i].at_ns - start_ns) / gap_ns + 1;
        f->resends[i].wait_ns /= gap_ns;
    }
}

Test(analyze, connections_parked_between_their_packets_give_the_same_facts)
{
    static const int64_t GAPS[] = { NS_PER_SECOND, 4 * NS_PER_SECOND, 7 * NS_PER_SECOND,
                                    19 * NS_PER_SECOND };
    struct buffer first = { 0 };
    for (unsigned i = 0; i < sizeof GAPS / sizeof GAPS[0]; i++) {
        struct run_of_packets r = begin_run(1 << 20);
        struct buffer packed = { 0 };
        converse(&r, GAPS[i]);
        finish_run(&r);
        cr_assert_eq(r.count, 1);
        cr_assert(r.facts[0].client_hello_complete && r.facts[0].server_hello_seen);
        cr_assert_eq(r.facts[0].records_seen[SERVER], 4);
        count_in_steps(&r.facts[0], GAPS[i]);
        cr_assert_eq(facts_pack(&r.facts[0], &packed), STATUS_OK);
        if (i == 0)
            first = packed;
        cr_assert(packed.len == first.len && memcmp(packed.at, first.at, packed.len) == 0,
                  "steps of %d seconds", (int)(GAPS[i] / NS_PER_SECOND));
        if (i > 0)
            buffer_done(&packed);
        end_run(&r);
    }
    buffer_done(&first);
}

static uint64_t sum_of(const struct drop_counts *drops)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < DROP_COUNT; i++)
        sum += drops->packets[i];
    return sum;
}

Test(analyze, what_is_no_tcp_is_counted_by_reason)
{
    struct run_of_packets r = begin_run(1 << 20);
    static const uint8_t ARP[28] = { 0, 1 };
    struct frame f = { .at_ns = START_NS,
                       .number = 1,
                       .link_type = DLT_RAW_IP,
                       .wire_len = 28,
                       .data = { ARP, sizeof ARP } };
    cr_assert_eq(analysis_frame(r.analysis, &f), STATUS_OK);
    cr_expect_eq(sum_of(drops_of(&r)), 1);
    cr_expect_eq(analysis_flows(r.analysis), 0);
    struct drop_counts of_next_file = { 0 };
    analysis_use_file(r.analysis, 1, &of_next_file);
    cr_assert_eq(analysis_frame(r.analysis, &f), STATUS_OK);
    cr_expect_eq(sum_of(drops_of(&r)), 1, "counts are of one file");
    (void)drops_of(&r);
    cr_expect_eq(sum_of(&of_next_file), 1);
    finish_run(&r);
    end_run(&r);
}
