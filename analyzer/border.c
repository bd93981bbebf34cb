/* SPDX-License-Identifier: Apache-2.0 */
#include "border.h"

#include "connection.h"

enum {
    /* Numbers farther apart than any window in use, and what a capture may lose of a flow in one
     * piece, are of different flows; those of unrelated ones are as near as that in 1 of 128. */
    NEAR = 1 << 24,
    /* A SYN counts as inside of the window so near to the next byte expected: the window without
     * scaling. New initial numbers are farther away after a quarter of a second (RFC 6528 3). */
    SYN_WINDOW = 1 << 16,
};

/* What is known of the numbers that a side uses. */
struct place {
    bool is_known;
    uint32_t seq; /* about where it is */
};

static bool is_near(uint32_t a, uint32_t b, int32_t limit)
{
    int32_t distance = (int32_t)(a - b);
    return distance > -limit && distance < limit;
}

/* Of a connection the byte expected next, or the last one acknowledged if that is farther on. */
static struct place place_of(const struct flow *flow, enum side side)
{
    const struct connection *c = flow->connection;
    if (c == NULL || !c->stream[side].has_base)
        return (struct place){ flow->opening.isn_known[side], flow->opening.isn[side] + 1 };
    int64_t unseen = c->acked_offset[side] - c->stream[side].next_offset;
    return (struct place){ true, c->stream[side].next_seq + (uint32_t)(unseen > 0 ? unseen : 0) };
}

bool border_same_encapsulation(const struct flow *flow, const struct segment *s)
{
    for (unsigned i = 0; i < flow->encapsulation_count; i++)
        if (flow->encapsulation[i] == s->encapsulation)
            return true;
    return false;
}

void border_note_encapsulation(struct flow *flow, const struct segment *s)
{
    if (flow->encapsulation_count < 2 && !border_same_encapsulation(flow, s))
        flow->encapsulation[flow->encapsulation_count++] = s->encapsulation;
}

bool border_fits(const struct flow *flow, const struct segment *s)
{
    enum side side = flow_side_of(flow, s);
    if ((s->flags & TCP_SYN) != 0 && border_opens_another(flow, s))
        return false;
    struct place own = place_of(flow, side), other = place_of(flow, other_side(side));
    bool has_ack = (s->flags & TCP_ACK) != 0;
    return (!own.is_known || is_near(s->seq, own.seq, NEAR)) &&
           (!has_ack || !other.is_known || is_near(s->ack, other.seq, NEAR));
}

/* Whether the number of a SYN or SYN/ACK is that of the flow, or lies before its first byte. */
static bool is_own_start(const struct flow *flow, enum side side, uint32_t isn)
{
    const struct connection *c = flow->connection;
    if (flow->opening.isn_known[side] && flow->opening.isn[side] == isn)
        return true;
    return c != NULL && c->stream[side].has_base && stream_offset(&c->stream[side], isn + 1) == 0;
}

/* A side that sent its FIN, or of a connection that was reset, sends no SYN of it any more. */
static bool has_ended(const struct flow *flow, enum side side)
{
    enum flow_ending fin = side == CLIENT ? FLOW_FIN_CLIENT : FLOW_FIN_SERVER;
    return flow_is_closed(flow) || (flow->ends & fin) != 0;
}

static bool syn_opens_another(const struct flow *flow, enum side side, uint32_t isn)
{
    struct place own = place_of(flow, side);
    if (has_ended(flow, side))
        return true;
    if (!flow_is_half_open(flow))
        return own.is_known && !is_near(isn, own.seq, SYN_WINDOW);
    /* Both sides may open at the same time: RFC 9293 3.5, figure 7. */
    return own.is_known || (side == SERVER && flow->client_basis > CLIENT_BY_SYN_ACK);
}

/* A second SYN/ACK to the client's SYN, as from two servers behind one address, opens nothing. */
static bool syn_ack_opens_another(const struct flow *flow, enum side side, const struct segment *s)
{
    struct place own = place_of(flow, side);
    enum side other = other_side(side);
    uint32_t beyond_isn = s->ack - 1 - flow->opening.isn[other];
    if (flow->opening.isn_known[other] && beyond_isn <= UINT16_MAX)
        return false;
    if (has_ended(flow, side))
        return true;
    if (!flow_is_half_open(flow))
        return own.is_known && !is_near(s->seq, own.seq, SYN_WINDOW);
    return own.is_known && flow->opening.syn_count == 0;
}

bool border_opens_another(const struct flow *flow, const struct segment *s)
{
    enum side side = flow_side_of(flow, s);
    if ((s->flags & TCP_SYN) == 0 || is_own_start(flow, side, s->seq))
        return false;
    return (s->flags & TCP_ACK) != 0 ? syn_ack_opens_another(flow, side, s)
                                     : syn_opens_another(flow, side, s->seq);
}

bool border_is_own_syn(const struct flow *flow, const struct segment *s)
{
    enum side side = flow_side_of(flow, s);
    return !place_of(flow, side).is_known || is_own_start(flow, side, s->seq);
}

bool border_answers_another(const struct flow *flow, const struct segment *s)
{
    if (!flow_is_half_open(flow) || (s->flags & TCP_SYN) != 0)
        return false;
    enum side side = flow_side_of(flow, s);
    bool has_ack = (s->flags & TCP_ACK) != 0;
    struct place place = place_of(flow, has_ack ? other_side(side) : side);
    return place.is_known && !is_near(has_ack ? s->ack : s->seq, place.seq, NEAR);
}
