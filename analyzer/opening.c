/* SPDX-License-Identifier: Apache-2.0 */
#include "opening.h"

static uint16_t count_up(uint16_t n)
{
    return n == UINT16_MAX ? n : (uint16_t)(n + 1);
}

static bool is_copy(int64_t last_ns, const struct segment *s)
{
    return last_ns != 0 && s->at_ns - last_ns < COPY_WITHIN_NS &&
           last_ns - s->at_ns < COPY_WITHIN_NS;
}

static void set_isn(struct opening *o, enum side side, uint32_t isn)
{
    if (o->isn_known[side])
        return;
    o->isn[side] = isn;
    o->isn_known[side] = true;
}

enum opening_note opening_syn(struct opening *o, const struct segment *s)
{
    if (is_copy(o->syn_last_ns, s) && o->isn[CLIENT] == s->seq)
        return OPENING_COPY;
    set_isn(o, CLIENT, s->seq);
    if (o->syn_count == 0) {
        o->syn_first_ns = s->at_ns;
        o->syn_first_timestamp = s->timestamp_value;
        o->mss[CLIENT] = s->mss;
        if (o->syn_ack_count > 0) { /* recorded after its answer */
            o->time_went_back = s->at_ns > o->syn_ack_first_ns;
            o->syn_answered_ns = s->at_ns;
        }
    }
    o->syn_last_ns = s->at_ns;
    o->syn_timestamp = s->timestamp_value;
    o->syn_has_timestamp = s->has_timestamp;
    o->syn_count = count_up(o->syn_count);
    return OPENING_NEW;
}

/* Which SYN a SYN/ACK answers when there were several: its timestamp echo tells, or nothing. */
static void find_answered_syn(struct opening *o, const struct segment *s)
{
    o->syn_answered_ns = o->syn_last_ns;
    if (o->syn_count < 2)
        return;
    bool told =
        s->has_timestamp && o->syn_has_timestamp && o->syn_first_timestamp != o->syn_timestamp;
    if (told && s->timestamp_echo == o->syn_timestamp)
        return;
    if (told && s->timestamp_echo == o->syn_first_timestamp)
        o->syn_answered_ns = o->syn_first_ns;
    else
        o->syn_rtt_ambiguous = true;
}

enum opening_note opening_syn_ack(struct opening *o, const struct segment *s)
{
    uint32_t acked = s->ack - 1;
    bool acks_data = o->isn_known[CLIENT] && acked != o->isn[CLIENT];
    if (o->isn_known[CLIENT] && acked - o->isn[CLIENT] > UINT16_MAX) /* more than a SYN can carry */
        return OPENING_ALIEN;
    if (is_copy(o->syn_ack_last_ns, s) && o->isn[SERVER] == s->seq)
        return OPENING_COPY;
    if (o->isn_known[SERVER] && o->isn[SERVER] != s->seq) {
        o->other_server_isn = o->isn[SERVER];
        o->has_other_server_isn = true;
        o->isn[SERVER] = s->seq;
    }
    set_isn(o, SERVER, s->seq);
    set_isn(o, CLIENT, acked);
    o->fast_open = o->fast_open || acks_data;
    if (o->syn_ack_count == 0) {
        o->syn_ack_first_ns = s->at_ns;
        o->mss[SERVER] = s->mss;
        if (o->syn_count > 0)
            find_answered_syn(o, s);
    }
    o->syn_ack_last_ns = s->at_ns;
    o->syn_ack_timestamp = s->timestamp_value;
    o->syn_ack_has_timestamp = s->has_timestamp;
    o->syn_ack_count = count_up(o->syn_ack_count);
    return OPENING_NEW;
}

void opening_choose_server(struct opening *o, const struct segment *s)
{
    uint32_t chosen = o->other_server_isn;
    if (!o->has_other_server_isn || s->ack != chosen + 1)
        return;
    o->other_server_isn = o->isn[SERVER];
    o->isn[SERVER] = chosen;
}

bool opening_acknowledged(const struct opening *o, const struct segment *s, bool *ret_ambiguous)
{
    *ret_ambiguous = false;
    if (o->syn_ack_count == 0)
        return false;
    if ((int32_t)(s->ack - (o->isn[SERVER] + 1)) < 0)
        return false;
    bool told =
        s->has_timestamp && o->syn_ack_has_timestamp && s->timestamp_echo == o->syn_ack_timestamp;
    *ret_ambiguous = o->syn_ack_count > 1 && !told;
    return true;
}

void opening_facts(const struct opening *o, int64_t first_packet_ns, struct facts *f)
{
    f->start_ns = o->syn_count > 0 ? o->syn_first_ns : first_packet_ns;
    f->syn_seen = o->syn_count > 0;
    f->syn_count = o->syn_count;
    f->syn_ack_count = o->syn_ack_count;
    f->syn_answered_ns = o->syn_answered_ns;
    f->syn_ack_ns = o->syn_ack_first_ns;
    f->syn_rtt_ambiguous = o->syn_rtt_ambiguous;
    f->fast_open = o->fast_open;
    if (o->time_went_back)
        f->clock_step = 1;
    for (enum side side = CLIENT; side <= SERVER; side++) {
        f->mss[side] = o->mss[side];
        f->isn_known[side] = o->isn_known[side];
        f->isn[side] = o->isn[side];
    }
}
