/* SPDX-License-Identifier: Apache-2.0 */
#include "connection.h"

#include <criterion/criterion.h>

#define MS INT64_C(1000000)
#define START_NS (1000 * MS)
enum { CLIENT_ISN = 1000, SERVER_ISN = 5000 };

/* A connection whose segments are made by side, offset and time. */
struct talk {
    struct connection *c;
    struct opening opening;
    struct connection_pool pool;
    uint16_t ip_id;
};

static struct talk begin_talk(void)
{
    struct talk t = { .opening = { .syn_first_ns = START_NS,
                                   .syn_count = 1,
                                   .isn = { CLIENT_ISN, SERVER_ISN },
                                   .isn_known = { true, true } } };
    t.c = connection_open(&t.pool, &t.opening);
    cr_assert_not_null(t.c);
    return t;
}

static void end_talk(struct talk *t)
{
    connection_close(&t->pool, t->c);
    connection_pool_done(&t->pool);
}

static uint32_t seq_of(enum side side, uint32_t offset)
{
    return (side == CLIENT ? (uint32_t)CLIENT_ISN : (uint32_t)SERVER_ISN) + 1 + offset;
}

static struct segment segment_of(struct talk *t, enum side side, uint32_t offset, uint32_t len,
                                 uint32_t acked, int64_t at_ms)
{
    static const uint8_t BYTES[4096] = { 'x' };
    return (struct segment){
        .at_ns = START_NS + at_ms * MS,
        .packet_no = 1,
        .seq = seq_of(side, offset),
        .ack = seq_of(other_side(side), acked),
        .payload_len = len,
        .payload = { BYTES, len },
        .flags = TCP_ACK,
        .ip_id = ++t->ip_id,
        .ttl = 60,
    };
}

static void take_runs(struct talk *t, enum side side)
{
    struct run run;
    while (stream_next(&t->c->stream[side], &run))
        connection_run(t->c, side, &run);
}

/* What the main path does with a segment, without TLS. */
static void take(struct talk *t, enum side side, const struct segment *s)
{
    struct arrival arrival;
    struct run run;
    bool has_run;
    connection_count(t->c, side, s);
    if (s->payload_len > 0) {
        struct piece p = connection_piece(t->c, side, s);
        cr_assert_eq(stream_add(&t->c->stream[side], &p, &arrival, &run, &has_run), STATUS_OK);
        connection_arrival(t->c, side, s, &arrival);
        if (has_run)
            connection_run(t->c, side, &run);
        take_runs(t, side);
    }
    connection_acknowledge(t->c, side, s);
}

static void say(struct talk *t, enum side side, uint32_t offset, uint32_t len, uint32_t acked,
                int64_t at_ms)
{
    struct segment s = segment_of(t, side, offset, len, acked, at_ms);
    take(t, side, &s);
}

Test(connection, bytes_are_counted_once_and_segments_as_they_come)
{
    struct talk t = begin_talk();
    const struct facts *f = &t.c->facts;
    say(&t, CLIENT, 0, 100, 0, 1);
    say(&t, CLIENT, 0, 100, 0, 300);
    say(&t, CLIENT, 50, 100, 0, 310);
    say(&t, SERVER, 0, 10, 150, 320);
    cr_expect_eq(f->packets[CLIENT], 3);
    cr_expect_eq(f->packets[SERVER], 1);
    cr_expect_eq(f->bytes[CLIENT], 150);
    cr_expect_eq(f->bytes[SERVER], 10);
    cr_expect_eq(f->retransmits[CLIENT], 2);
    cr_expect_eq(f->first_payload_ns[CLIENT], START_NS + MS);
    cr_expect_eq(f->last_payload_ns[CLIENT], START_NS + 310 * MS);
    cr_expect_eq(f->end_ns, START_NS + 320 * MS);
    cr_expect_eq(f->resend_count, 2);
    cr_expect_eq(f->resends[0].wait_ns, 299 * MS);
    cr_expect_eq(f->resends[0].side, CLIENT);
    end_talk(&t);
}

Test(connection, a_keep_alive_is_no_retransmission)
{
    struct talk t = begin_talk();
    say(&t, CLIENT, 0, 100, 0, 1);
    say(&t, CLIENT, 99, 1, 0, 30000);
    cr_expect_eq(t.c->facts.retransmits[CLIENT], 0);
    say(&t, CLIENT, 98, 1, 0, 30000);
    cr_expect_eq(t.c->facts.retransmits[CLIENT], 1);
    end_talk(&t);
}

Test(connection, a_hole_filled_at_once_was_reordered_and_later_resent)
{
    for (int64_t late_ms = 1; late_ms <= 200; late_ms += 199) {
        struct talk t = begin_talk();
        say(&t, SERVER, 100, 100, 0, 10);
        say(&t, SERVER, 0, 100, 0, 10 + late_ms);
        cr_expect_eq(t.c->facts.retransmits[SERVER], late_ms > 3);
        if (late_ms > 3)
            cr_expect_eq(t.c->facts.resends[0].wait_ns, late_ms * MS);
        cr_expect_eq(t.c->facts.bytes[SERVER], 200);
        end_talk(&t);
    }
}

Test(connection, resends_beyond_the_cap_are_counted_only)
{
    struct talk t = begin_talk();
    for (int64_t i = 0; i < 100; i++)
        say(&t, SERVER, 0, 100, 0, 1 + i * 300);
    cr_expect_eq(t.c->facts.retransmits[SERVER], 99);
    cr_expect_eq(t.c->facts.resend_count, RESENDS_MAX);
    end_talk(&t);
}

Test(connection, the_same_packet_again_is_a_copy_until_ten_milliseconds_later)
{
    struct talk t = begin_talk();
    struct segment s = segment_of(&t, CLIENT, 0, 100, 0, 100), copy = s;
    cr_assert_not(connection_is_copy(t.c, CLIENT, &s));
    copy.at_ns += 9 * MS;
    copy.ttl--;
    copy.tunnel = TUNNEL_VLAN;
    cr_assert(connection_is_copy(t.c, CLIENT, &copy));
    cr_assert_not(connection_is_copy(t.c, SERVER, &copy), "a copy is of its own side");
    copy.at_ns += 2 * MS;
    cr_assert_not(connection_is_copy(t.c, CLIENT, &copy));
    end_talk(&t);
}

Test(connection, a_whole_burst_is_found_again_in_its_copies)
{
    struct talk t = begin_talk();
    struct segment burst[RECENT_PACKETS];
    for (uint32_t i = 0; i < RECENT_PACKETS; i++) {
        burst[i] = segment_of(&t, SERVER, i * 100, 100, 0, 10);
        cr_assert_not(connection_is_copy(t.c, SERVER, &burst[i]));
    }
    for (uint32_t i = 0; i < RECENT_PACKETS; i++) {
        burst[i].at_ns += MS;
        cr_assert(connection_is_copy(t.c, SERVER, &burst[i]), "segment %u", i);
    }
    end_talk(&t);
}

Test(connection, what_differs_in_its_headers_is_no_copy)
{
    struct talk t = begin_talk();
    struct segment s = segment_of(&t, CLIENT, 0, 100, 0, 100);
    connection_is_copy(t.c, CLIENT, &s);
    struct segment other[] = { s, s, s, s, s };
    other[0].ip_id++;
    other[1].ack++;
    other[2].timestamp_value++;
    other[3].flags |= TCP_PSH;
    other[4].window++;
    for (unsigned i = 0; i < 5; i++)
        cr_assert_not(connection_is_copy(t.c, CLIENT, &other[i]), "case %u", i);
    end_talk(&t);
}

Test(connection, bare_acks_without_ip_id_are_never_copies)
{
    struct talk t = begin_talk();
    struct segment s = segment_of(&t, CLIENT, 0, 0, 50, 100);
    s.ip_id = 0;
    cr_assert_not(connection_is_copy(t.c, CLIENT, &s));
    cr_assert_not(connection_is_copy(t.c, CLIENT, &s));
    s.flags |= TCP_FIN;
    cr_assert_not(connection_is_copy(t.c, CLIENT, &s));
    cr_assert(connection_is_copy(t.c, CLIENT, &s));
    end_talk(&t);
}

Test(connection, round_trips_come_from_bare_acks_of_new_data)
{
    struct talk t = begin_talk();
    const struct facts *f = &t.c->facts;
    say(&t, SERVER, 0, 100, 0, 10);
    say(&t, CLIENT, 0, 20, 100, 30); /* carries data: may have waited for it */
    cr_expect_eq(f->data_rtt_ns, 0);
    say(&t, SERVER, 100, 100, 20, 40);
    say(&t, CLIENT, 20, 0, 150, 50); /* not all of it */
    cr_expect_eq(f->data_rtt_ns, 0);
    say(&t, CLIENT, 20, 0, 200, 70);
    cr_expect_eq(f->data_rtt_ns, 30 * MS);
    say(&t, SERVER, 200, 100, 20, 80);
    say(&t, CLIENT, 20, 0, 300, 140);
    cr_expect_eq(f->data_rtt_ns, 30 * MS, "the least stays");
    say(&t, SERVER, 300, 100, 20, 200);
    say(&t, SERVER, 300, 100, 20, 400); /* sent again: its ACK tells nothing */
    say(&t, CLIENT, 20, 0, 400, 401);
    cr_expect_eq(f->data_rtt_ns, 30 * MS);
    end_talk(&t);
}

Test(connection, the_plaintext_response_acknowledges_the_whole_request)
{
    struct talk t = begin_talk();
    const struct facts *f = &t.c->facts;
    say(&t, SERVER, 0, 30, 0, 5); /* a greeting */
    say(&t, CLIENT, 0, 100, 30, 10);
    say(&t, SERVER, 30, 10, 50, 20); /* cannot have all of it yet */
    cr_expect_eq(f->plain_response_ns, 0);
    say(&t, SERVER, 40, 200, 100, 30);
    cr_expect_eq(f->plain_request_end, 100);
    cr_expect_eq(f->plain_response_ns, START_NS + 30 * MS);
    say(&t, CLIENT, 100, 0, 40, 35);
    cr_expect_eq(f->plain_response_acked_ns, 0);
    say(&t, SERVER, 40, 200, 100, 250);
    cr_expect_eq(f->plain_response_resent, 1);
    say(&t, CLIENT, 100, 0, 240, 280);
    cr_expect_eq(f->plain_response_acked_ns, START_NS + 280 * MS);
    end_talk(&t);
}

Test(connection, a_hole_is_lost_once_it_was_acknowledged_for_a_while)
{
    struct talk t = begin_talk();
    say(&t, SERVER, 100, 100, 0, 10);
    cr_assert_not(connection_hole_is_lost(t.c, SERVER, START_NS + 5000 * MS));
    say(&t, CLIENT, 0, 0, 200, 40);
    cr_assert_not(connection_hole_is_lost(t.c, SERVER, START_NS + 50 * MS));
    cr_assert(connection_hole_is_lost(t.c, SERVER, START_NS + 61 * MS));
    end_talk(&t);
}

Test(connection, a_reset_far_outside_of_the_stream_is_not_of_it)
{
    struct talk t = begin_talk();
    struct segment s = segment_of(&t, SERVER, 0, 0, 0, 10);
    cr_assert(connection_reset_plausible(t.c, SERVER, &s));
    s.seq += 1 << 20;
    cr_assert(connection_reset_plausible(t.c, SERVER, &s));
    s.seq += 1 << 25;
    cr_assert_not(connection_reset_plausible(t.c, SERVER, &s));
    s.seq = seq_of(SERVER, 0) - (1 << 25);
    cr_assert_not(connection_reset_plausible(t.c, SERVER, &s));
    end_talk(&t);
}

Test(connection, unanswered_transmissions_are_counted_until_the_other_side_speaks)
{
    struct talk t = begin_talk();
    const struct facts *f = &t.c->facts;
    for (int64_t i = 0; i < 4; i++)
        say(&t, CLIENT, 0, 100, 0, 1 + i * 300);
    cr_expect_eq(f->unanswered[CLIENT], 4);
    say(&t, SERVER, 0, 0, 100, 2000);
    cr_expect_eq(f->unanswered[CLIENT], 0);
    cr_expect_eq(f->unanswered[SERVER], 0, "a bare ACK asks for no answer");
    end_talk(&t);
}

Test(connection, bytes_acknowledged_but_never_seen_are_a_gap)
{
    struct talk t = begin_talk();
    say(&t, SERVER, 0, 100, 0, 10);
    say(&t, CLIENT, 0, 0, 601, 40); /* 500 bytes and a FIN, maybe */
    connection_finish(t.c, &t.opening, START_NS);
    cr_expect_eq(t.c->facts.gap_bytes[SERVER], 501);
    cr_expect_eq(t.c->facts.gap_bytes[CLIENT], 0);
    end_talk(&t);
}

Test(connection, an_acknowledged_fin_is_no_gap)
{
    struct talk t = begin_talk();
    say(&t, SERVER, 0, 100, 0, 10);
    say(&t, CLIENT, 0, 0, 101, 40);
    connection_finish(t.c, &t.opening, START_NS);
    cr_expect_eq(t.c->facts.gap_bytes[SERVER], 0);
    end_talk(&t);
}

Test(connection, without_a_syn_the_client_hello_decides_who_is_the_client)
{
    struct talk t = begin_talk();
    struct facts *f = &t.c->facts;
    f->client_basis = CLIENT_BY_ORDER;
    f->client_hello_seen = 1;
    f->hello_side = SERVER;
    f->client.port = 443;
    f->server.port = 50000;
    f->bytes[CLIENT] = 1;
    f->bytes[SERVER] = 2;
    t.opening = (struct opening){ 0 };
    connection_finish(t.c, &t.opening, START_NS);
    cr_expect_eq(f->client_basis, CLIENT_BY_CLIENT_HELLO);
    cr_expect_eq(f->client.port, 50000);
    cr_expect_eq(f->bytes[CLIENT], 2);
    cr_expect_eq(f->hello_side, CLIENT);
    end_talk(&t);
}

Test(connection, with_a_syn_tls_may_run_the_other_way_round)
{
    struct talk t = begin_talk();
    struct facts *f = &t.c->facts;
    f->client_basis = CLIENT_BY_SYN;
    f->client_hello_seen = 1;
    f->hello_side = SERVER;
    f->bytes[CLIENT] = 1;
    f->ccs_ns[SERVER] = 7;
    connection_finish(t.c, &t.opening, START_NS);
    cr_expect_eq(f->tls_reversed, 1);
    cr_expect_eq(f->client_basis, CLIENT_BY_SYN);
    cr_expect_eq(f->bytes[CLIENT], 1, "what TCP tells stays");
    cr_expect_eq(f->ccs_ns[CLIENT], 7);
    end_talk(&t);
}
