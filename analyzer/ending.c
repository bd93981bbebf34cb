/* SPDX-License-Identifier: Apache-2.0 */
#include "ending.h"

#include "timing.h"

#include <stdlib.h>

/* Bytes of a mark behind facts and the name of an interface, and the bits of the last. */
enum { MARK_LEN = 6, MARK_HAS_ROW = 1, MARK_IS_OPEN = 2 };

struct endings {
    struct endings_options options;
    uint64_t count;
    struct buffer packed; /* of the last flow */
};

/* ---- facts ---- */

static enum flow_end end_kind(const struct flow *flow, const struct facts *f,
                              enum flow_end fallback)
{
    bool one_sided = f->packets[CLIENT] == 0 || f->packets[SERVER] == 0;
    bool fins = f->fin_ns[CLIENT] != 0 && f->fin_ns[SERVER] != 0;
    bool a_fin = f->fin_ns[CLIENT] != 0 || f->fin_ns[SERVER] != 0;
    if (fins || (one_sided && a_fin))
        return ENDED_FIN;
    return (flow->ends & FLOW_RESET) != 0 ? ENDED_RESET : fallback;
}

static void fill_identity(const struct flow *flow, struct facts *f)
{
    f->client = *flow_endpoint(flow, CLIENT);
    f->server = *flow_endpoint(flow, SERVER);
    f->ip_version = address_is_ipv4(&f->client.address) ? 4 : 6;
    f->file = flow->file;
    f->first_packet_no = flow->first_packet_no;
    f->client_basis = flow->client_basis;
    f->continues = flow->continues;
}

/* The facts of a flow that never became a connection. */
static void fill_half_open(const struct ending *e, struct facts *f)
{
    const struct flow *flow = e->flow;
    f->end_ns = flow->last_ns;
    f->tunnel = flow->tunnel;
    for (enum side side = CLIENT; side <= SERVER; side++) {
        f->packets[side] = flow->packets[side];
        f->ttl[side] = flow->ttl[side];
    }
    f->duplicates = flow->copies;
    f->unanswered[CLIENT] = flow->packets[SERVER] == 0 ? flow->packets[CLIENT] : 0;
    f->unanswered[SERVER] = flow->opening.syn_ack_count;
    opening_facts(&flow->opening, flow->first_ns, f);
    fill_identity(flow, f);
    f->ended = (uint8_t)end_kind(flow, f, e->fallback);
    f->reset_ns[CLIENT] = (flow->ends & FLOW_RESET_CLIENT) != 0 ? flow->last_ns : 0;
    f->reset_ns[SERVER] = (flow->ends & FLOW_RESET_SERVER) != 0 ? flow->last_ns : 0;
}

static void fill_connection(const struct ending *e)
{
    const struct flow *flow = e->flow;
    struct facts *f = &flow->connection->facts;
    fill_identity(flow, f);
    connection_finish(flow->connection, &flow->opening, flow->first_ns);
    f->ended = (uint8_t)end_kind(flow, f, e->fallback);
}

/* ---- the stage ---- */

struct stage_mark stage_mark_of(struct bytes item)
{
    size_t before = item.len < MARK_LEN ? 0 : item.len - MARK_LEN;
    struct reader r = reader_of(bytes_after(item, before));
    size_t name_len = reader_u8(&r);
    struct stage_mark mark = { .resumed = reader_u32(&r) };
    uint8_t flags = reader_u8(&r);
    if (name_len <= before)
        mark.interface = bytes_first(bytes_after(item, before - name_len), name_len);
    mark.has_row = (flags & MARK_HAS_ROW) != 0;
    mark.is_open = (flags & MARK_IS_OPEN) != 0;
    return mark;
}

static enum status pack_mark(const struct ending *e, struct buffer *out)
{
    uint32_t number = e->flow->resumed;
    uint8_t flags = (e->flow->has_row ? MARK_HAS_ROW : 0) | (e->stays_open ? MARK_IS_OPEN : 0);
    uint8_t octets[MARK_LEN] = { (uint8_t)e->interface.len, (uint8_t)(number >> 24),
                                 (uint8_t)(number >> 16),   (uint8_t)(number >> 8),
                                 (uint8_t)number,           flags };
    bool ok =
        buffer_add(out, e->interface) && buffer_add(out, (struct bytes){ octets, sizeof octets });
    return ok ? STATUS_OK : STATUS_NO_MEMORY;
}

/* A flow that stays open teaches nothing of its server yet. */
static enum status learn(const struct endings_options *o, const struct ending *e,
                         const struct facts *f)
{
    enum status status = e->stays_open ? STATUS_OK : profiles_learn(o->profiles, f);
    if (status == STATUS_OK)
        status =
            neighbours_add(o->neighbours, &f->client.address, f->start_ns, client_rtt_by_ack(f));
    if (status == STATUS_OK && o->roles != NULL && f->packets[SERVER] > 0 &&
        f->ended != ENDED_RESET)
        status = roles_add(o->roles, &f->server.address, &f->client.address, f->start_ns);
    return status;
}

static enum status stage_flow(struct endings *e, const struct ending *ending, const struct facts *f,
                              uint64_t *ret_number)
{
    const struct endings_options *o = &e->options;
    uint64_t state_number;
    e->packed.len = 0;
    enum status status = learn(o, ending, f);
    if (status == STATUS_OK)
        status = facts_pack(f, &e->packed);
    if (status == STATUS_OK)
        status = pack_mark(ending, &e->packed);
    if (status == STATUS_OK)
        status = stage_add(o->stage, (struct bytes){ e->packed.at, e->packed.len }, ret_number);
    if (status != STATUS_OK)
        return status;
    e->count++;
    return ending->stays_open ? stage_add(o->open, ending->state, &state_number) : STATUS_OK;
}

static enum status add_connection(struct endings *e, const struct ending *ending,
                                  uint64_t *ret_number)
{
    struct facts *f = &ending->flow->connection->facts;
    enum status status = STATUS_OK;
    fill_connection(ending);
    if (e->options.privacy != NULL)
        status = privacy_hide_texts(e->options.privacy, f);
    return status == STATUS_OK ? stage_flow(e, ending, f, ret_number) : status;
}

static enum status add_half_open(struct endings *e, const struct ending *ending,
                                 uint64_t *ret_number)
{
    struct facts f = { 0 };
    fill_half_open(ending, &f);
    return stage_flow(e, ending, &f, ret_number);
}

/* ---- for callers ---- */

struct endings *endings_open(const struct endings_options *options)
{
    struct endings *e = calloc(1, sizeof *e);
    if (e != NULL)
        e->options = *options;
    return e;
}

void endings_close(struct endings *e)
{
    if (e == NULL)
        return;
    buffer_done(&e->packed);
    free(e);
}

enum status endings_add(struct endings *e, const struct ending *ending, uint64_t *ret_number)
{
    return ending->flow->connection != NULL ? add_connection(e, ending, ret_number)
                                            : add_half_open(e, ending, ret_number);
}

uint64_t endings_count(const struct endings *e)
{
    return e->count;
}
