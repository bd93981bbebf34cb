/* SPDX-License-Identifier: Apache-2.0 */
#include "carry.h"

#include <stdlib.h>

/* What stands behind the fields of a flow. */
enum { NO_CONNECTION, CONNECTION };

/* Counts of half-open flows are kept for two back-offs of a SYN that nobody answers. */
enum { HALF_OPEN_KEPT_S = 260 };

/* Half of what is carried in a flood are addresses, nearly all of 4 octets. */
static void code_endpoint(struct coder *c, struct endpoint *e)
{
    bool is_ipv4 = address_is_ipv4(&e->address);
    code_bool(c, &is_ipv4);
    if (is_ipv4) {
        uint8_t *octets = &e->address.octet[sizeof e->address.octet - 4];
        code_octets(c, octets, 4);
        if (coder_unpacks(c))
            e->address = address_of_ipv4(octets);
    } else {
        code_octets(c, e->address.octet, sizeof e->address.octet);
    }
    code_u16(c, &e->port);
}

/* A field of one bit, which has no address. */
static bool coded_bit(struct coder *c, bool value)
{
    code_bool(c, &value);
    return value;
}

static void code_opening(struct coder *c, struct opening *o)
{
    code_time(c, &o->syn_first_ns);
    code_time(c, &o->syn_last_ns);
    code_u32(c, &o->isn[CLIENT]);
    code_u16(c, &o->mss[CLIENT]);
    code_bool(c, &o->isn_known[CLIENT]);
    code_u16(c, &o->syn_count);
    o->syn_has_timestamp = coded_bit(c, o->syn_has_timestamp);
    code_u32(c, &o->syn_first_timestamp);
    code_u32(c, &o->syn_timestamp);
    code_u16(c, &o->syn_ack_count);
}

/* What is there with a SYN/ACK only. */
static void code_answer(struct coder *c, struct opening *o)
{
    code_time(c, &o->syn_answered_ns);
    code_time(c, &o->syn_ack_first_ns);
    code_time(c, &o->syn_ack_last_ns);
    code_u32(c, &o->isn[SERVER]);
    code_u16(c, &o->mss[SERVER]);
    code_bool(c, &o->isn_known[SERVER]);
    o->syn_ack_has_timestamp = coded_bit(c, o->syn_ack_has_timestamp);
    code_u32(c, &o->syn_ack_timestamp);
    code_u32(c, &o->other_server_isn);
    o->has_other_server_isn = coded_bit(c, o->has_other_server_isn);
    o->syn_rtt_ambiguous = coded_bit(c, o->syn_rtt_ambiguous);
    o->time_went_back = coded_bit(c, o->time_went_back);
    o->fast_open = coded_bit(c, o->fast_open);
}

/* What most flows have none of: they lie in one encapsulation, which is none. */
static void code_rare(struct coder *c, struct flow *f)
{
    code_u32(c, &f->copies);
    code_u16(c, &f->tunnel);
    code_u32(c, &f->encapsulation[0]);
    code_u32(c, &f->encapsulation[1]);
    f->encapsulation_count = code_number(c, f->encapsulation_count, 2) & 3;
    code_u8(c, &f->interface);
    f->continues = coded_bit(c, f->continues);
    code_u8(c, &f->ends);
    code_bool(c, &f->payload_seen[CLIENT]);
    code_bool(c, &f->payload_seen[SERVER]);
}

static bool has_rare(const struct flow *f)
{
    return f->copies != 0 || f->tunnel != 0 || f->encapsulation[0] != 0 ||
           f->encapsulation_count != 1 || f->interface != 0 || f->continues || f->ends != 0 ||
           f->payload_seen[CLIENT] || f->payload_seen[SERVER];
}

static void code_flow(struct coder *c, struct flow *f)
{
    bool rare = has_rare(f);
    code_endpoint(c, &f->key.low);
    code_endpoint(c, &f->key.high);
    code_u64(c, &f->first_packet_no);
    code_time(c, &f->first_ns);
    c->base_ns = f->first_ns;
    code_time(c, &f->last_ns);
    code_opening(c, &f->opening);
    if (f->opening.syn_ack_count > 0)
        code_answer(c, &f->opening);
    for (enum side side = CLIENT; side <= SERVER; side++) {
        code_u32(c, &f->packets[side]);
        code_u8(c, &f->ttl[side]);
    }
    f->low_is_client = coded_bit(c, f->low_is_client);
    f->is_counted = coded_bit(c, f->is_counted);
    f->client_basis = (uint8_t)code_number(c, f->client_basis, CLIENT_BY_ORDER);
    code_bool(c, &rare);
    if (rare)
        code_rare(c, f);
    else
        f->encapsulation_count = 1;
}

bool carry_flow_pack(const struct flow *flow, struct bytes parked, int64_t now_ns,
                     struct buffer *out)
{
    size_t before = out->len;
    struct coder c = coder_to(out);
    struct flow fields = *flow;
    bool connected = flow->connection != NULL || flow->parked != NULL;
    code_flow(&c, &fields);
    code_number(&c, connected ? CONNECTION : NO_CONNECTION, CONNECTION);
    bool ok = !c.failed;
    if (ok && flow->parked != NULL)
        ok = buffer_add(out, parked);
    else if (ok && flow->connection != NULL)
        ok = connection_pack(flow->connection, now_ns - CARRY_RECENT_NS, out);
    if (!ok)
        out->len = before;
    return ok;
}

/* Reads the fields; what is left in the coder is the connection, if there is one. */
static bool unpack_fields(struct coder *c, struct flow *flow, bool *ret_connected)
{
    code_flow(c, flow);
    *ret_connected = code_number(c, 0, CONNECTION) == CONNECTION;
    return !c->failed && endpoint_compare(&flow->key.low, &flow->key.high) <= 0 &&
           (*ret_connected || c->in.rest.len == 0);
}

bool carry_flow_unpack(struct bytes packed, struct flow *ret_flow)
{
    struct coder c = coder_of(packed);
    bool connected;
    if (!unpack_fields(&c, ret_flow, &connected))
        return false;
    if (!connected)
        return true;
    struct bytes rest = c.in.rest;
    struct parked *parked = rest.len > UINT32_MAX ? NULL : malloc(sizeof *parked + rest.len);
    if (parked == NULL)
        return false;
    *parked = (struct parked){ .len = (uint32_t)rest.len };
    memcpy(parked->bytes, rest.at, rest.len);
    ret_flow->parked = parked;
    return true;
}

static const struct endpoint *end_of(const struct flow *flow, enum side side)
{
    return (side == CLIENT) == flow->low_is_client ? &flow->key.low : &flow->key.high;
}

bool carry_flow_facts(struct bytes packed, struct facts *ret_facts)
{
    struct coder c = coder_of(packed);
    struct flow flow = { 0 };
    struct connection_pool none = { 0 };
    bool connected;
    *ret_facts = (struct facts){ 0 };
    if (!unpack_fields(&c, &flow, &connected) || !connected)
        return false;
    struct connection *connection = connection_unpack(&none, c.in.rest);
    bool sound = connection != NULL && facts_are_sound(&connection->facts);
    if (sound) {
        connection->facts.client = *end_of(&flow, CLIENT);
        connection->facts.server = *end_of(&flow, SERVER);
        connection_finish(connection, &flow.opening, flow.first_ns);
        *ret_facts = connection->facts;
        connection->facts = (struct facts){ 0 };
    }
    connection_close(&none, connection);
    connection_pool_done(&none);
    return sound;
}

static void code_half_open(struct coder *c, struct buffer *packed)
{
    uint32_t len = (uint32_t)code_number(c, packed->len, UINT32_MAX);
    if (coder_unpacks(c)) {
        struct bytes taken = c->failed ? (struct bytes){ 0 } : reader_take(&c->in, len);
        c->failed |= taken.len != len || !buffer_add(packed, taken);
        return;
    }
    code_octets(c, packed->at, len);
}

static void code_point(struct coder *c, struct carried_point *p)
{
    code_time(c, &p->now_ns);
    code_bool(c, &p->was_far_ahead);
    code_u64(c, &p->past_seed);
    past_code(c, p->past, p->now_ns);
    half_opens_code(c, p->half_opens, p->now_ns / NS_PER_SECOND - HALF_OPEN_KEPT_S);
    neighbours_code(c, p->neighbours, p->now_ns);
    roles_code(c, p->roles, p->now_ns);
    interfaces_code(c, p->interfaces);
    code_half_open(c, &p->half_open);
}

bool carry_point_pack(struct carried_point *p, struct buffer *out)
{
    struct coder c = coder_to(out);
    code_point(&c, p);
    return !c.failed;
}

bool carry_point_unpack(struct bytes packed, struct carried_point *p)
{
    struct coder c = coder_of(packed);
    code_point(&c, p);
    return !c.failed && c.in.rest.len == 0;
}
