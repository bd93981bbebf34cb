/* SPDX-License-Identifier: Apache-2.0 */
#include "ending.h"

#include "handover.h"
#include "timing.h"

#include <stdlib.h>

/* Bytes of a mark behind facts and the name of an interface, and the bits of the last. */
enum { MARK_LEN = 6, MARK_HAS_ROW = 1, MARK_IS_OPEN = 2 };

/* Flows that are handed over at once, and how often that may be before the first ones are done. */
enum { BATCH_FLOWS = 32, BATCHES = 8 };

/* A flow to be staged or, without one, facts to be taken back. */
struct task {
    bool is_cancel;
    uint64_t number; /* of the facts on the stage */
    struct ending ending;
    struct buffer state; /* what ending.state shows */
};

struct batch {
    struct task tasks[BATCH_FLOWS];
    unsigned count;
};

struct endings {
    struct endings_options options;
    struct handover handover;
    struct batch *filling; /* NULL = none */
    uint64_t count;
    struct buffer packed; /* of who empties */
    struct batch batches[BATCHES];
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
    const struct flow *flow = &e->flow;
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
    const struct flow *flow = &e->flow;
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
    uint32_t number = e->flow.resumed;
    uint8_t flags = (e->flow.has_row ? MARK_HAS_ROW : 0) | (e->stays_open ? MARK_IS_OPEN : 0);
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

static enum status stage_flow(struct endings *e, const struct task *task, const struct facts *f)
{
    const struct endings_options *o = &e->options;
    uint64_t number;
    e->packed.len = 0;
    enum status status = learn(o, &task->ending, f);
    if (status == STATUS_OK)
        status = facts_pack(f, &e->packed);
    if (status == STATUS_OK)
        status = pack_mark(&task->ending, &e->packed);
    if (status == STATUS_OK)
        status = stage_add(o->stage, (struct bytes){ e->packed.at, e->packed.len }, &number);
    if (status != STATUS_OK)
        return status;
    assert(number == task->number);
    return task->ending.stays_open ? stage_add(o->open, task->ending.state, &number) : STATUS_OK;
}

static enum status finish_connection(struct endings *e, const struct task *task)
{
    struct facts *f = &task->ending.flow.connection->facts;
    fill_connection(&task->ending);
    enum status status =
        e->options.privacy != NULL ? privacy_hide_texts(e->options.privacy, f) : STATUS_OK;
    if (status == STATUS_OK)
        status = stage_flow(e, task, f);
    connection_clear(task->ending.flow.connection);
    return status;
}

static enum status finish_half_open(struct endings *e, const struct task *task)
{
    struct facts f = { 0 };
    fill_half_open(&task->ending, &f);
    return stage_flow(e, task, &f);
}

static enum status finish(struct endings *e, const struct task *task)
{
    if (task->is_cancel)
        return stage_cancel(e->options.stage, task->number);
    return task->ending.flow.connection != NULL ? finish_connection(e, task)
                                                : finish_half_open(e, task);
}

static enum status empty_batch(void *owner, unsigned slot)
{
    struct endings *e = owner;
    const struct batch *b = &e->batches[slot];
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < b->count && status == STATUS_OK; i++)
        status = finish(e, &b->tasks[i]);
    return status;
}

/* ---- for callers ---- */

struct endings *endings_open(const struct endings_options *options)
{
    struct endings *e = calloc(1, sizeof *e);
    if (e == NULL)
        return NULL;
    e->options = *options;
    handover_open(&e->handover, BATCHES, options->wants_thread, empty_batch, e);
    return e;
}

/* The batch to be filled; connections of its last use go back. */
static enum status begin_batch(struct endings *e, struct connection_pool *pool)
{
    unsigned slot;
    enum status status = handover_next(&e->handover, &slot);
    if (status != STATUS_OK)
        return status;
    struct batch *b = &e->batches[slot];
    for (unsigned i = 0; i < b->count; i++) {
        connection_give_back(pool, b->tasks[i].ending.flow.connection);
        b->tasks[i].ending.flow.connection = NULL;
    }
    b->count = 0;
    e->filling = b;
    return STATUS_OK;
}

static enum status give_batch(struct endings *e)
{
    if (e->filling == NULL)
        return STATUS_OK;
    e->filling = NULL;
    return handover_filled(&e->handover);
}

static struct task *next_task(struct endings *e)
{
    struct task *task = &e->filling->tasks[e->filling->count++];
    struct buffer state = task->state;
    state.len = 0;
    *task = (struct task){ .state = state };
    return task;
}

static enum status task_is_complete(struct endings *e)
{
    unsigned full = e->handover.has_thread ? BATCH_FLOWS : 1;
    return e->filling->count < full ? STATUS_OK : give_batch(e);
}

static enum status ready(struct endings *e, struct connection_pool *pool)
{
    return e->filling != NULL ? STATUS_OK : begin_batch(e, pool);
}

enum status endings_add(struct endings *e, const struct ending *ending,
                        struct connection_pool *pool, uint64_t *ret_number)
{
    enum status status = ready(e, pool);
    if (status != STATUS_OK) {
        connection_close(pool, ending->flow.connection);
        return status;
    }
    struct task *task = next_task(e);
    task->ending = *ending;
    task->number = *ret_number = e->count++;
    if (!buffer_add(&task->state, ending->state))
        return STATUS_NO_MEMORY;
    task->ending.state = (struct bytes){ task->state.at, task->state.len };
    return task_is_complete(e);
}

enum status endings_cancel(struct endings *e, uint64_t number, struct connection_pool *pool)
{
    enum status status = ready(e, pool);
    if (status != STATUS_OK)
        return status;
    struct task *task = next_task(e);
    task->is_cancel = true;
    task->number = number;
    return task_is_complete(e);
}

enum status endings_settle(struct endings *e)
{
    enum status status = give_batch(e);
    return status == STATUS_OK ? handover_settle(&e->handover) : status;
}

uint64_t endings_count(const struct endings *e)
{
    return e->count;
}

void endings_close(struct endings *e)
{
    if (e == NULL)
        return;
    handover_close(&e->handover);
    struct connection_pool none = { .count = 0 };
    for (unsigned i = 0; i < BATCHES; i++)
        for (unsigned k = 0; k < BATCH_FLOWS; k++) {
            connection_close(&none, e->batches[i].tasks[k].ending.flow.connection);
            buffer_done(&e->batches[i].tasks[k].state);
        }
    connection_pool_done(&none);
    buffer_done(&e->packed);
    free(e);
}
