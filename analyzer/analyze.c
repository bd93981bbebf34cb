/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The main path. analysis_frame() is the road that a packet takes:
 *
 *   frame -> segment           packet.c (fragment.c)
 *   segment -> flow and side   flow.c, border.c, opening.c, past.c
 *   payload -> runs in order   stream.c
 *   run -> records -> messages -> facts          tls.c (record.c, message.c, hello.c)
 *   acknowledgments, retransmissions, ends       connection.c
 *   flow over -> learned from -> packed facts -> stage           ending.c
 *
 * What the facts mean is decided when the run is over: ingest.c, judge.c.
 */
#include "analyze.h"

#include "border.h"
#include "carry.h"
#include "connection.h"
#include "decoded.h"
#include "ending.h"
#include "flow.h"
#include "fragment.h"
#include "hash.h"
#include "interfaces.h"
#include "packet.h"
#include "past.h"
#include "prefetch.h"
#include "spill.h"

#include <stdlib.h>

/* What a live connection costs beside its flow, roughly: facts, records, allocator. */
enum { CONNECTION_COST = 3072 };

/* Segments of a batch whose flows are fetched from memory together: as many as the nearest cache
 * holds. */
enum { FETCHED_AHEAD = 8 };

/* A pause longer than any idle limit. */
#define FAR_AHEAD_NS (3600 * NS_PER_SECOND)

struct analysis {
    struct analysis_options options;
    struct fragments *fragments;
    struct drop_counts *drops; /* of the current file */
    uint32_t file;
    struct decoded_batch *decoded; /* frames that are not followed yet */
    struct flow_table *flows;
    struct endings *endings;
    struct past *past;
    struct interfaces interfaces;
    struct connection_pool pool;
    struct buffer packed;    /* of the flow being parked */
    struct buffer state;     /* of the flow that stays open */
    struct buffer half_open; /* as in struct carried_point */
    uint64_t past_seed;
    struct spill *spill;     /* what is parked beyond its share of memory */
    bool *continued;         /* by number of resumed flows; not owned */
    struct secrets *secrets; /* out of the captures; NULL before the first */
    size_t connections, parked_bytes, held_bytes;
    int64_t now_ns;     /* largest time of a frame, but for one far ahead of all others */
    bool was_far_ahead; /* the last frame was */
    const struct decoded *current;
};

/* Takes the connection, if there is one, off the flow and the sums of live ones. */
static struct connection *take_connection(struct analysis *a, struct flow *flow)
{
    struct connection *c = flow->connection;
    if (c == NULL)
        return NULL;
    if (a->options.labeler != NULL)
        label_finish(a->options.labeler, &c->label);
    a->held_bytes -= c->held_memory;
    a->connections--;
    flow->connection = NULL;
    return c;
}

static void free_parked(struct analysis *a, struct flow *flow)
{
    struct parked *parked = flow->parked;
    if (parked == NULL)
        return;
    a->parked_bytes -= parked_size(parked);
    if (parked->place != 0)
        spill_remove(a->spill, parked->place, parked->len);
    free(parked);
    flow->parked = NULL;
}

static void free_flow(struct analysis *a, struct flow *flow)
{
    connection_close(&a->pool, take_connection(a, flow));
    free_parked(a, flow);
    flow_remove(a->flows, flow);
}

void analysis_use_file(struct analysis *a, uint32_t file, struct drop_counts *drops)
{
    if (a->drops == drops && a->file == file)
        return;
    a->file = file;
    a->drops = drops;
    fragments_begin_file(a->fragments);
}

enum status analysis_secrets(struct analysis *a, struct bytes key_log)
{
    enum status status = analysis_settle(a);
    if (status != STATUS_OK)
        return status;
    if (a->secrets == NULL)
        a->secrets = secrets_open(a->options.seed, a->options.secrets);
    return a->secrets == NULL ? STATUS_NO_MEMORY : secrets_add_text(a->secrets, key_log);
}

/* Where the secrets of connections are looked for; NULL without any. */
static const struct secrets *all_secrets(const struct analysis *a)
{
    return a->secrets != NULL ? a->secrets : a->options.secrets;
}

uint64_t analysis_unnamed_flows(const struct analysis *a)
{
    return a->interfaces.unnamed_flows;
}

static enum status drop(struct analysis *a, enum drop reason)
{
    a->current->drops->packets[reason]++;
    return STATUS_OK;
}

/* What past.h knows a flow by. */
static uint64_t past_hash(const struct analysis *a, const struct flow_key *key,
                          uint32_t encapsulation)
{
    uint8_t octets[sizeof *key + sizeof encapsulation];
    memcpy(octets, key, sizeof *key);
    memcpy(octets + sizeof *key, &encapsulation, sizeof encapsulation);
    return hash_table((struct bytes){ octets, sizeof octets }, a->past_seed);
}

/* Runs to facts */

static enum status follow_run(struct connection *c, enum side side, const struct run *run)
{
    connection_run(c, side, run);
    if (!tls_wants(&c->tls, side)) {
        stream_go_blind(&c->stream[side]);
        return STATUS_OK;
    }
    return tls_add_run(&c->tls, &c->facts, side, *run);
}

static enum status follow_ready_runs(struct connection *c, enum side side)
{
    struct run run;
    while (stream_next(&c->stream[side], &run)) {
        enum status status = follow_run(c, side, &run);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status give_up_hole(struct connection *c, enum side side)
{
    struct run hole;
    if (!stream_skip_hole(&c->stream[side], &hole))
        return STATUS_OK;
    enum status status = follow_run(c, side, &hole);
    return status == STATUS_OK ? follow_ready_runs(c, side) : status;
}

static enum status follow_payload(struct connection *c, enum side side, const struct segment *s)
{
    struct piece piece = connection_piece(c, side, s);
    struct arrival arrival;
    struct run run;
    bool has_run;
    enum status status = stream_add(&c->stream[side], &piece, &arrival, &run, &has_run);
    if (status != STATUS_OK)
        return status;
    connection_arrival(c, side, s, &arrival);
    if (has_run)
        status = follow_run(c, side, &run);
    return status == STATUS_OK ? follow_ready_runs(c, side) : status;
}

static enum status give_up_lost_holes(struct connection *c, int64_t now_ns)
{
    for (enum side side = CLIENT; side <= SERVER; side++)
        while (connection_hole_is_lost(c, side, now_ns)) {
            enum status status = give_up_hole(c, side);
            if (status != STATUS_OK)
                return status;
        }
    return STATUS_OK;
}

/* Labels */

static enum status set_label(struct connection *c, struct label label)
{
    struct facts *f = &c->facts;
    c->labelled = true;
    if (label.protocol != NULL &&
        !facts_set_text(f, &f->app_protocol, label.protocol, strlen(label.protocol)))
        return STATUS_NO_MEMORY;
    if (label.category != NULL &&
        !facts_set_text(f, &f->app_category, label.category, strlen(label.category)))
        return STATUS_NO_MEMORY;
    return STATUS_OK;
}

static struct label label_by_name(struct analysis *a, const struct flow *flow)
{
    struct connection *c = flow->connection;
    const char *name = c->facts.server_name;
    struct bytes server_name = { (const uint8_t *)name, name == NULL ? 0 : strlen(name) };
    return label_tls(a->options.labeler, &c->label, server_name, flow_endpoint(flow, SERVER));
}

/* TLS is labelled by its ClientHello once that is read; anything else by its first packets. */
static enum status follow_label(struct analysis *a, struct flow *flow, enum side side,
                                const struct segment *s)
{
    struct connection *c = flow->connection;
    struct label label;
    if (a->options.labeler == NULL || c->labelled)
        return STATUS_OK;
    if (c->facts.client_hello_seen)
        return set_label(c, label_by_name(a, flow));
    int64_t behind;
    if (c->facts.tls || stream_waits(&c->stream[side], &behind))
        return STATUS_OK; /* the rest of the ClientHello, or its begin, is to come */
    if (label_packet(a->options.labeler, &c->label, s->ip, s->at_ns, side, false, &label))
        return set_label(c, label);
    return STATUS_OK;
}

static enum status finish_label(struct analysis *a, struct flow *flow)
{
    struct connection *c = flow->connection;
    if (a->options.labeler == NULL || c->labelled)
        return STATUS_OK;
    return set_label(c, c->facts.tls ? label_by_name(a, flow)
                                     : label_finish(a->options.labeler, &c->label));
}

/* The end of a flow */

/* Whether a flow that goes on in another run is only looked at: analysis_end() has its state. */
static bool stays_open(const struct analysis *a, enum flow_end fallback)
{
    return a->options.open != NULL && fallback == ENDED_CAPTURE_END;
}

/* Whether a half-open flow has a row; it is counted, if it is not yet. */
static enum status count_half_open_flow(struct analysis *a, const struct flow *flow, bool *ret_row)
{
    bool is_kept = flow->resumed != 0 || flow->has_row;
    *ret_row = is_kept || !flow->is_counted;
    if (flow->is_counted || flow->opening.syn_count == 0)
        return STATUS_OK;
    enum status status =
        half_opens_add(a->options.half_opens, flow_endpoint(flow, SERVER),
                       &flow_endpoint(flow, CLIENT)->address, flow->opening.syn_first_ns, ret_row);
    *ret_row |= is_kept;
    return status;
}

static enum status stage_flow(struct analysis *a, const struct flow *flow, enum flow_end fallback,
                              uint64_t *ret_number)
{
    struct ending ending = { .flow = flow,
                             .fallback = fallback,
                             .interface = interfaces_name(&a->interfaces, flow->interface) };
    if (stays_open(a, fallback)) {
        ending.stays_open = true;
        ending.state = (struct bytes){ a->state.at, a->state.len };
    }
    return endings_add(a->endings, &ending, ret_number);
}

static enum status finish_half_open(struct analysis *a, struct flow *flow, enum flow_end fallback,
                                    uint64_t *ret_number)
{
    bool has_row;
    enum status status = count_half_open_flow(a, flow, &has_row);
    *ret_number = PAST_NOT_STAGED;
    return status == STATUS_OK && has_row ? stage_flow(a, flow, fallback, ret_number) : status;
}

static enum status finish_connection(struct analysis *a, struct flow *flow, enum flow_end fallback,
                                     uint64_t *ret_number)
{
    struct connection *c = flow->connection;
    int64_t behind;
    for (enum side side = CLIENT; side <= SERVER; side++)
        while (stream_waits(&c->stream[side], &behind)) {
            enum status status = give_up_hole(c, side);
            if (status != STATUS_OK)
                return status;
        }
    enum status status = finish_label(a, flow);
    return status == STATUS_OK ? stage_flow(a, flow, fallback, ret_number) : status;
}

/* What was packed, in memory or, where that has its share already, in the file; NULL = neither. */
static struct parked *keep_packed(struct analysis *a, struct bytes packed)
{
    uint32_t place = 0;
    bool spills = packed.len <= SPILL_ITEM_MAX && a->parked_bytes > a->options.memory_max / 8;
    if (spills && spill_put(a->spill, packed, &place) != STATUS_OK)
        place = 0; /* as long as there is memory, a full disk does no harm */
    struct parked *parked = malloc(sizeof *parked + (place == 0 ? packed.len : 0));
    if (parked == NULL) {
        if (place != 0)
            spill_remove(a->spill, place, packed.len);
        return NULL;
    }
    *parked = (struct parked){ .len = (uint32_t)packed.len, .place = place };
    if (place == 0)
        memcpy(parked->bytes, packed.at, packed.len);
    a->parked_bytes += parked_size(parked);
    return parked;
}

/* Packs the connection of a silent flow away, or marks the flow when it is not at rest. */
static void park(struct analysis *a, struct flow *flow)
{
    a->packed.len = 0;
    bool packed = connection_is_at_rest(flow->connection) &&
                  connection_pack(flow->connection, a->now_ns, &a->packed);
    struct bytes bytes = { a->packed.at, a->packed.len };
    flow->parked = packed ? keep_packed(a, bytes) : NULL;
    flow->restless = flow->parked == NULL;
    if (flow->parked != NULL)
        connection_close(&a->pool, take_connection(a, flow));
}

/* What was packed of a flow, until the next call. */
static enum status look_at_parked(struct analysis *a, const struct parked *parked,
                                  struct bytes *ret_packed)
{
    *ret_packed = (struct bytes){ parked->bytes, parked->len };
    if (parked->place == 0)
        return STATUS_OK;
    a->packed.len = 0;
    if (!buffer_reserve(&a->packed, parked->len))
        return STATUS_NO_MEMORY;
    *ret_packed = (struct bytes){ a->packed.at, parked->len };
    return spill_read(a->spill, parked->place, a->packed.at, parked->len);
}

static enum status unpark(struct analysis *a, struct flow *flow)
{
    struct bytes packed;
    flow->restless = false;
    if (flow->parked == NULL)
        return STATUS_OK;
    enum status status = look_at_parked(a, flow->parked, &packed);
    if (status != STATUS_OK)
        return status;
    flow->connection = connection_unpack(&a->pool, packed);
    if (flow->connection == NULL)
        return STATUS_NO_MEMORY;
    free_parked(a, flow);
    a->connections++;
    flow_hurry(a->flows, flow);
    return STATUS_OK;
}

/* A flow of an earlier run has a packet, or its end, in this one. */
static void note_continued(struct analysis *a, struct flow *flow)
{
    flow->is_touched = true;
    if (flow->resumed != 0)
        a->continued[flow->resumed - 1] = true;
}

/* Makes the facts of a flow and stages them; it is of no use after that. */
static enum status close_flow(struct analysis *a, struct flow *flow, enum flow_end fallback,
                              uint64_t *ret_number)
{
    bool half_open = flow_is_half_open(flow);
    enum status status = unpark(a, flow);
    note_continued(a, flow);
    *ret_number = PAST_NOT_STAGED;
    if (status != STATUS_OK)
        return status;
    return half_open ? finish_half_open(a, flow, fallback, ret_number)
                     : finish_connection(a, flow, fallback, ret_number);
}

/* Asks for the memory that the end of the flow behind this one will touch. */
static void fetch_next(const struct analysis *a, const struct flow *flow)
{
    const struct flow *next = flow_prefetch_next(a->flows, flow);
    if (next != NULL)
        past_prefetch(a->past, past_hash(a, &next->key, next->encapsulation[0]));
}

static enum status finish_flow(struct analysis *a, struct flow *flow, enum flow_end fallback)
{
    uint64_t number;
    fetch_next(a, flow);
    bool half_open = flow_is_half_open(flow);
    enum status status = close_flow(a, flow, fallback, &number);
    struct past_flow past = {
        .first_ns = flow->first_ns,
        .last_ns = flow->last_ns,
        .stage_number = number,
        .client_isn = flow->opening.isn[CLIENT],
        .syn_count = flow->opening.syn_count,
        .kind = flow_is_closed(flow) ? PAST_CLOSED
                : half_open          ? PAST_HALF_OPEN
                                     : PAST_IDLE,
    };
    unsigned count = fallback == ENDED_CAPTURE_END ? 0 : flow->encapsulation_count;
    for (unsigned i = 0; status == STATUS_OK && i < count; i++) {
        past.key_hash = past_hash(a, &flow->key, flow->encapsulation[i]);
        status = past_remember(a->past, &past);
    }
    free_flow(a, flow);
    return status;
}

/* Keeps the state of a half-open flow that has no row. */
static enum status keep_half_open(struct analysis *a)
{
    if (!buffer_reserve(&a->half_open, VARINT_MAX))
        return STATUS_NO_MEMORY;
    put_varint(&a->half_open, a->state.len);
    bool ok = buffer_add(&a->half_open, (struct bytes){ a->state.at, a->state.len });
    return ok ? STATUS_OK : STATUS_NO_MEMORY;
}

/* Stages what is known of a live flow, and its state. */
static enum status leave_flow(struct analysis *a, struct flow *flow)
{
    uint64_t number;
    struct flow left = *flow;
    left.is_counted = flow_is_half_open(flow) && flow->opening.syn_count > 0;
    struct bytes parked = { 0 };
    enum status status =
        flow->parked != NULL ? look_at_parked(a, flow->parked, &parked) : STATUS_OK;
    if (status != STATUS_OK)
        return status;
    a->state.len = 0;
    if (!carry_flow_pack(&left, parked, a->now_ns, &a->state))
        return STATUS_NO_MEMORY;
    status = close_flow(a, flow, ENDED_CAPTURE_END, &number);
    return status == STATUS_OK && number == PAST_NOT_STAGED ? keep_half_open(a) : status;
}

/* The wheel finds silent flows within a second; here each counts for what it is. */
static enum status end_flow(struct analysis *a, struct flow *flow)
{
    if (a->now_ns - flow->last_ns > flow_idle_limit(flow))
        return finish_flow(a, flow, ENDED_IDLE);
    if (a->options.open == NULL)
        return finish_flow(a, flow, ENDED_CAPTURE_END);
    bool as_it_was = flow->resumed != 0 && !flow->is_touched;
    enum status status = as_it_was ? STATUS_OK : leave_flow(a, flow);
    free_flow(a, flow);
    return status;
}

enum status analysis_end(struct analysis *a)
{
    enum status settled = analysis_settle(a);
    if (settled != STATUS_OK)
        return settled;
    for (struct flow *f; (f = flow_nearest_deadline(a->flows)) != NULL;) {
        enum status status = end_flow(a, f);
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

/* From run to run */

void analysis_set_continued(struct analysis *a, bool *continued)
{
    a->continued = continued;
}

static struct carried_point carried_point_of(struct analysis *a)
{
    return (struct carried_point){
        .now_ns = a->now_ns,
        .was_far_ahead = a->was_far_ahead,
        .past_seed = a->past_seed,
        .past = a->past,
        .half_opens = a->options.half_opens,
        .neighbours = a->options.neighbours,
        .roles = a->options.roles,
        .interfaces = &a->interfaces,
        .half_open = a->half_open,
    };
}

enum status analysis_leave_point(struct analysis *a, struct buffer *out)
{
    struct carried_point point = carried_point_of(a);
    return carry_point_pack(&point, out) ? STATUS_OK : STATUS_NO_MEMORY;
}

/* Puts an unpacked flow into the table, which then owns what hangs from it. */
static enum status add_resumed(struct analysis *a, const struct flow *unpacked)
{
    struct flow *flow = flow_add(a->flows, &unpacked->key, a->now_ns);
    if (flow == NULL)
        return STATUS_NO_MEMORY;
    struct flow made = *flow;
    *flow = *unpacked;
    flow->index = made.index;
    flow->next = made.next;
    flow->previous = made.previous;
    flow->bucket = made.bucket;
    if (flow->parked != NULL)
        a->parked_bytes += parked_size(flow->parked);
    flow_hurry(a->flows, flow);
    return STATUS_OK;
}

/* What was kept of a connection is looked at now: later it could not be refused. */
static bool parked_is_good(struct analysis *a, const struct parked *parked)
{
    struct connection *c =
        connection_unpack(&a->pool, (struct bytes){ parked->bytes, parked->len });
    bool good = c != NULL && facts_are_sound(&c->facts);
    connection_close(&a->pool, c);
    return good;
}

static enum status resume(struct analysis *a, uint32_t resumed, struct bytes state, uint32_t file)
{
    struct flow flow = { 0 };
    if (!carry_flow_unpack(state, &flow))
        return STATUS_REFUSED;
    flow.resumed = resumed;
    flow.file = file;
    enum status status =
        flow.parked == NULL || parked_is_good(a, flow.parked) ? STATUS_OK : STATUS_REFUSED;
    if (status == STATUS_OK)
        status = add_resumed(a, &flow);
    if (status != STATUS_OK)
        free(flow.parked);
    return status;
}

enum status analysis_resume_flow(struct analysis *a, uint32_t number, struct bytes state,
                                 uint32_t file)
{
    return resume(a, number + 1, state, file);
}

enum status analysis_resume_point(struct analysis *a, struct bytes state, uint32_t file)
{
    struct carried_point point = carried_point_of(a);
    bool ok = carry_point_unpack(state, &point);
    struct reader r = reader_of((struct bytes){ point.half_open.at, point.half_open.len });
    enum status status = ok ? STATUS_OK : STATUS_REFUSED;
    if (ok) {
        a->now_ns = point.now_ns;
        a->was_far_ahead = point.was_far_ahead;
        a->past_seed = point.past_seed;
    }
    while (status == STATUS_OK && r.rest.len > 0)
        status = resume(a, 0, reader_take(&r, (size_t)get_varint(&r)), file);
    buffer_done(&point.half_open);
    return status;
}

size_t analysis_memory(const struct analysis *a)
{
    return flow_count(a->flows) * sizeof(struct flow) + a->connections * CONNECTION_COST +
           a->parked_bytes + a->held_bytes;
}

static void count_held_memory(struct analysis *a, struct connection *c)
{
    size_t now = connection_held_memory(c);
    a->held_bytes += now - c->held_memory;
    c->held_memory = now;
}

/* Ends flows until the caps on them hold. */
static enum status evict(struct analysis *a)
{
    enum status status = STATUS_OK;
    struct flow *f;
    if (flow_half_open_count(a->flows) > HALF_OPEN_FLOWS_MAX)
        status = finish_flow(a, flow_nearest_half_open(a->flows), ENDED_EVICTED);
    if (analysis_memory(a) <= a->options.memory_max)
        return status;
    while (status == STATUS_OK && analysis_memory(a) > a->options.memory_max / 8 * 7 &&
           (f = flow_nearest_deadline(a->flows)) != NULL)
        status = finish_flow(a, f, ENDED_EVICTED);
    return status;
}

/* Time passes: silent flows are over or parked, and flows beyond the caps must go. */
static enum status look_at_silent_flows(struct analysis *a)
{
    enum status status = STATUS_OK;
    struct flow *f;
    while (status == STATUS_OK && (f = flow_next_silent(a->flows, a->now_ns)) != NULL) {
        if (a->now_ns - f->last_ns > flow_idle_limit(f))
            status = finish_flow(a, f, ENDED_IDLE);
        else
            park(a, f);
    }
    return status == STATUS_OK ? evict(a) : status;
}

/* Which flow a segment belongs to */

/* The port that servers use: known ones first, then the lower of a privileged and a high one. */
static bool is_server_port(uint16_t port)
{
    switch (port) {
    case 853:
    case 3128:
    case 5222:
    case 5269:
    case 5432:
    case 3306:
    case 8000:
    case 8080:
    case 8443:
    case 8883:
    case 9443:
        return true;
    default:
        return port < 1024;
    }
}

/* Decides which end is the client, as far as a flow's first segment tells. */
static void choose_client(struct flow *flow, const struct segment *s)
{
    bool from_low = endpoint_equal(&s->from, &flow->key.low);
    bool from_is_server = is_server_port(s->from.port), to_is_server = is_server_port(s->to.port);
    if ((s->flags & TCP_SYN) != 0) {
        bool is_syn_ack = (s->flags & TCP_ACK) != 0;
        flow->client_basis = is_syn_ack ? CLIENT_BY_SYN_ACK : CLIENT_BY_SYN;
        flow->low_is_client = from_low != is_syn_ack;
    } else if (from_is_server != to_is_server) {
        flow->client_basis = CLIENT_BY_PORT;
        flow->low_is_client = from_low != from_is_server;
    } else {
        flow->client_basis = CLIENT_BY_ORDER;
        flow->low_is_client = from_low;
    }
}

/* What is remembered of the last flow of that key which was where the segment is; false without. */
static bool find_past(const struct analysis *a, const struct flow_key *key, const struct segment *s,
                      struct past_flow *ret_past)
{
    return past_find(a->past, past_hash(a, key, s->encapsulation), ret_past) &&
           !past_is_over(ret_past, s->at_ns);
}

/* Whether a segment is of a half-open flow that is over, which side sent it, and so who is who. */
static bool is_of_half_open(struct flow *flow, const struct past_flow *past,
                            const struct segment *s)
{
    bool is_syn = (s->flags & TCP_SYN) != 0, has_ack = (s->flags & TCP_ACK) != 0;
    bool from_low = endpoint_equal(&s->from, &flow->key.low);
    bool from_server = has_ack && s->ack == past->client_isn + 1;
    if (past->kind != PAST_HALF_OPEN)
        return false;
    if (is_syn && !has_ack)
        return s->seq == past->client_isn;
    if (past->syn_count == 0 || (!from_server && (is_syn || s->seq != past->client_isn + 1)))
        return false;
    flow->low_is_client = from_low != from_server;
    flow->client_basis = CLIENT_BY_SYN;
    return true;
}

/* A half-open flow that was over goes on: its row and count are taken back. */
static enum status take_half_open(struct analysis *a, struct flow *flow,
                                  const struct past_flow *past)
{
    flow->has_row = true; /* if an earlier run gave it one: it has the same name */
    flow->first_ns = past->first_ns;
    flow->opening = (struct opening){ .syn_first_ns = past->first_ns,
                                      .syn_last_ns = past->last_ns,
                                      .syn_count = past->syn_count,
                                      .isn = { past->client_isn },
                                      .isn_known = { true } };
    half_opens_remove(a->options.half_opens, flow_endpoint(flow, SERVER), past->first_ns);
    return past->stage_number == PAST_NOT_STAGED
               ? STATUS_OK
               : stage_cancel(a->options.stage, past->stage_number);
}

/* Takes over what is remembered of a flow with that key. */
static enum status take_past(struct analysis *a, struct flow *flow, const struct segment *s)
{
    struct past_flow past;
    if (!find_past(a, &flow->key, s, &past))
        return STATUS_OK;
    if (is_of_half_open(flow, &past, s))
        return take_half_open(a, flow, &past);
    flow->continues = past.kind == PAST_IDLE && (s->flags & TCP_SYN) == 0;
    return STATUS_OK;
}

/* Whether a segment without SYN only trails behind a connection that has its row already. */
static bool trails_closed(const struct analysis *a, const struct flow_key *key,
                          const struct segment *s)
{
    if ((s->flags & TCP_SYN) != 0)
        return false;
    struct past_flow past;
    return find_past(a, key, s, &past) && past.kind == PAST_CLOSED;
}

/* The live flow of a key that was in the segment's encapsulation before, else one that its numbers
 * fit, which may be a flow that is over; NULL when there is none. */
static enum status choose_flow(struct analysis *a, const struct flow_key *key,
                               const struct segment *s, struct flow **ret_flow)
{
    *ret_flow = NULL;
    struct flow *first = flow_find(a->flows, key);
    for (struct flow *f = first; f != NULL; f = flow_find_next(a->flows, f))
        if (border_same_encapsulation(f, s)) {
            *ret_flow = f;
            return unpark(a, f);
        }
    for (struct flow *f = first; f != NULL && *ret_flow == NULL; f = flow_find_next(a->flows, f)) {
        enum status status = unpark(a, f);
        if (status != STATUS_OK)
            return status;
        if (border_fits(f, s))
            *ret_flow = f;
    }
    return STATUS_OK;
}

/* Of as many live flows of one key as there may be, the one that was silent the longest must go. */
static enum status make_room(struct analysis *a, const struct flow_key *key)
{
    unsigned count = 0;
    struct flow *oldest = NULL;
    for (struct flow *f = flow_find(a->flows, key); f != NULL; f = flow_find_next(a->flows, f)) {
        count++;
        if (oldest == NULL || f->last_ns < oldest->last_ns)
            oldest = f;
    }
    return count < TENANTS_MAX ? STATUS_OK : finish_flow(a, oldest, ENDED_EVICTED);
}

static enum status add_flow(struct analysis *a, const struct flow_key *key, const struct segment *s,
                            struct flow **ret_flow)
{
    enum status status = make_room(a, key);
    if (status != STATUS_OK)
        return status;
    struct flow *flow = flow_add(a->flows, key, s->at_ns);
    if (flow == NULL)
        return STATUS_NO_MEMORY;
    flow->file = a->current->file;
    flow->first_packet_no = s->packet_no;
    flow->interface = interfaces_number(&a->interfaces, a->current->interface_name);
    choose_client(flow, s);
    *ret_flow = flow;
    return take_past(a, flow, s);
}

/* Finds or makes the flow of a segment; *ret_flow stays NULL when the segment has none. */
static enum status find_flow(struct analysis *a, const struct segment *s, struct flow **ret_flow)
{
    *ret_flow = NULL;
    struct flow_key key = flow_key_of(s);
    struct flow *flow;
    enum status status = choose_flow(a, &key, s, &flow);
    if (status != STATUS_OK)
        return status;
    if (flow != NULL) {
        bool silent = s->at_ns - flow->last_ns > flow_idle_limit(flow);
        if (!silent && !border_opens_another(flow, s)) {
            if (flow->resumed != 0 && !flow->is_touched)
                note_continued(a, flow);
            *ret_flow = flow;
            return STATUS_OK;
        }
        status = finish_flow(a, flow, ENDED_IDLE);
        if (status != STATUS_OK)
            return status;
    }
    if (trails_closed(a, &key, s))
        return drop(a, DROP_TCP_AFTER_END);
    return add_flow(a, &key, s, ret_flow);
}

/* Segments of a flow */

static enum status open_connection(struct analysis *a, struct flow *flow)
{
    struct connection *c = connection_open(&a->pool, &flow->opening);
    if (c == NULL)
        return STATUS_NO_MEMORY;
    a->connections++;
    flow->connection = c;
    flow_hurry(a->flows, flow);
    if (flow->is_counted)
        half_opens_remove(a->options.half_opens, flow_endpoint(flow, SERVER),
                          flow->opening.syn_first_ns);
    flow->is_counted = false;
    bool has_syn = flow->opening.syn_count > 0;
    half_opens_note_connection(a->options.half_opens,
                               has_syn ? flow->opening.syn_first_ns : flow->first_ns);
    struct facts *f = &c->facts;
    f->end_ns = flow->last_ns;
    f->tunnel = flow->tunnel;
    f->syn_seen = has_syn;
    f->client_basis = flow->client_basis;
    f->duplicates = flow->copies;
    for (enum side side = CLIENT; side <= SERVER; side++) {
        f->packets[side] = flow->packets[side];
        f->ttl[side] = flow->ttl[side];
    }
    return STATUS_OK;
}

/* Notes a SYN or SYN/ACK in the opening. False when it is a copy or no part of the flow. */
static bool follow_syn(struct flow *flow, enum side side, const struct segment *s)
{
    bool is_syn_ack = (s->flags & TCP_ACK) != 0;
    if (side != (is_syn_ack ? SERVER : CLIENT))
        return false;
    enum opening_note note =
        is_syn_ack ? opening_syn_ack(&flow->opening, s) : opening_syn(&flow->opening, s);
    if (note == OPENING_COPY)
        flow->copies++;
    if (note != OPENING_NEW)
        return false;
    if (!is_syn_ack)
        flow->client_basis = CLIENT_BY_SYN;
    else if (flow->client_basis > CLIENT_BY_SYN_ACK)
        flow->client_basis = CLIENT_BY_SYN_ACK;
    if (flow->connection != NULL) {
        connection_set_bases(flow->connection, &flow->opening);
        flow->connection->facts.syn_seen = flow->opening.syn_count > 0;
        flow->connection->facts.client_basis = flow->client_basis;
    }
    return true;
}

/* Whether a segment is the first of its kind by time; captures may hold it behind the second. */
static bool is_first(int64_t mark_ns, const struct opening *o, const struct segment *s)
{
    return mark_ns == 0 || (s->at_ns < mark_ns && s->at_ns >= o->syn_ack_last_ns);
}

static void follow_ack_of_syn_ack(struct flow *flow, const struct segment *s)
{
    struct facts *f = &flow->connection->facts;
    bool ambiguous;
    if (flow->opening.syn_ack_count > 0 && is_first(f->client_after_syn_ack_ns, &flow->opening, s))
        f->client_after_syn_ack_ns = s->at_ns;
    if ((s->flags & TCP_ACK) == 0 || !is_first(f->ack_ns, &flow->opening, s) ||
        !opening_acknowledged(&flow->opening, s, &ambiguous))
        return;
    f->ack_ns = s->at_ns;
    f->ack_is_pure = s->payload_len == 0 && (s->flags & (TCP_FIN | TCP_RST)) == 0;
    f->syn_ack_answered_ns = flow->opening.syn_ack_last_ns;
    f->ack_rtt_ambiguous = ambiguous;
}

static void note_end(struct analysis *a, struct flow *flow, enum side side, const struct segment *s)
{
    bool was_closed = flow_is_closed(flow);
    if ((s->flags & TCP_FIN) != 0)
        flow->ends |= side == CLIENT ? FLOW_FIN_CLIENT : FLOW_FIN_SERVER;
    if ((s->flags & TCP_RST) != 0)
        flow->ends |= side == CLIENT ? FLOW_RESET_CLIENT : FLOW_RESET_SERVER;
    if (flow_is_closed(flow) && !was_closed)
        flow_hurry(a->flows, flow);
}

/* A segment of a connection: its amounts, payload, acknowledgment and end. */
static enum status follow_connection(struct analysis *a, struct flow *flow, enum side side,
                                     const struct segment *s)
{
    struct connection *c = flow->connection;
    bool is_syn = (s->flags & TCP_SYN) != 0;
    if (!is_syn && connection_is_copy(c, side, s)) {
        c->facts.duplicates++;
        return STATUS_OK;
    }
    if ((s->flags & TCP_RST) != 0 && !connection_reset_plausible(c, side, s))
        return drop(a, DROP_RESET_OUT_OF_WINDOW);
    connection_count(c, side, s);
    note_end(a, flow, side, s);
    if (side == CLIENT && !is_syn)
        follow_ack_of_syn_ack(flow, s);
    enum status status = STATUS_OK;
    if (s->payload_len > 0 && (s->flags & TCP_RST) == 0) {
        flow->payload_seen[side] = true;
        c->tls.secrets = all_secrets(a);
        status = follow_payload(c, side, s);
    }
    if (!is_syn)
        connection_acknowledge(c, side, s);
    if (status == STATUS_OK)
        status = give_up_lost_holes(c, s->at_ns);
    count_held_memory(a, c);
    if (status == STATUS_OK && s->payload_len > 0)
        status = follow_label(a, flow, side, s);
    return status;
}

static void count_half_open(struct analysis *a, struct flow *flow, enum side side,
                            const struct segment *s)
{
    flow->packets[side]++;
    flow->tunnel |= s->tunnel;
    if (flow->ttl[side] == 0)
        flow->ttl[side] = s->ttl;
    note_end(a, flow, side, s);
}

/* Whether a RST is one that a half-open flow had just before, captured twice. */
static bool is_copy_of_reset(const struct flow *flow, enum side side, const struct segment *s)
{
    enum flow_ending own = side == CLIENT ? FLOW_RESET_CLIENT : FLOW_RESET_SERVER;
    return (s->flags & (TCP_RST | TCP_SYN)) == TCP_RST && flow->connection == NULL &&
           (flow->ends & own) != 0 && s->at_ns - flow->last_ns < COPY_WITHIN_NS;
}

static enum status follow_segment(struct analysis *a, struct flow *flow, const struct segment *s)
{
    enum side side = flow_side_of(flow, s);
    bool is_syn = (s->flags & TCP_SYN) != 0;
    bool is_reset = (s->flags & TCP_RST) != 0;
    int64_t previous_ns = flow->last_ns;
    if (side == CLIENT && !is_syn && flow->connection == NULL)
        opening_choose_server(&flow->opening, s);
    bool is_alien_syn = is_syn && flow->connection != NULL && !border_is_own_syn(flow, s);
    if (is_alien_syn || border_answers_another(flow, s))
        return drop(a, DROP_TCP_OUT_OF_WINDOW);
    border_note_encapsulation(flow, s);
    if (is_syn && !follow_syn(flow, side, s))
        return STATUS_OK;
    if (is_copy_of_reset(flow, side, s)) {
        flow->copies++;
        return STATUS_OK;
    }
    if (s->at_ns > flow->last_ns)
        flow->last_ns = s->at_ns;
    if (flow->connection == NULL && s->payload_len == 0 && (is_syn || is_reset)) {
        count_half_open(a, flow, side, s);
        return STATUS_OK;
    }
    if (flow->connection == NULL) {
        enum status status = open_connection(a, flow);
        if (status != STATUS_OK)
            return status;
    }
    if (previous_ns - s->at_ns > FRAME_LATE_MAX_NS)
        flow->connection->facts.clock_step = 1;
    return follow_connection(a, flow, side, s);
}

/* One frame far ahead of all others has a broken timestamp, which must not end every flow; two in a
 * row follow a pause. */
static void pass_time(struct analysis *a, int64_t at_ns)
{
    bool is_far_ahead = a->now_ns != 0 && at_ns - a->now_ns > FAR_AHEAD_NS;
    if (at_ns > a->now_ns && (!is_far_ahead || a->was_far_ahead))
        a->now_ns = at_ns;
    a->was_far_ahead = is_far_ahead;
}

/* Fragments count as dropped until the last one completes their packet, which may be no segment. */
static void recount_fragments(const struct decoded *decoded)
{
    uint64_t *packets = decoded->drops->packets;
    packets[DROP_FRAGMENT] -= decoded->fragments;
    packets[decoded->reason] += decoded->reason != DROP_NONE ? decoded->fragments : 0;
}

static enum status follow_decoded(struct analysis *a, const struct decoded *decoded)
{
    const struct segment *s = &decoded->segment;
    struct flow *flow;
    a->current = decoded;
    if (decoded->fragments > 0)
        recount_fragments(decoded);
    if (decoded->reason != DROP_NONE)
        return drop(a, decoded->reason);
    pass_time(a, s->at_ns);
    enum status status = look_at_silent_flows(a);
    if (status == STATUS_OK)
        status = find_flow(a, s, &flow);
    return status == STATUS_OK && flow != NULL ? follow_segment(a, flow, s) : status;
}

/* Frames */

/* A SYN begins a flow nearly always, so the past is asked for one with its key. */
static void fetch_past(const struct analysis *a, const struct decoded *at)
{
    if (at->reason != DROP_NONE || (at->segment.flags & (TCP_SYN | TCP_ACK)) != TCP_SYN)
        return;
    struct flow_key key = flow_key_of(&at->segment);
    past_prefetch(a->past, past_hash(a, &key, at->segment.encapsulation));
}

/* Waits for the memory of several flows at once, not of one after the other. */
static void fetch_ahead(const struct analysis *a, const struct decoded *at, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        flow_prefetch_slot(a->flows, at[i].flow_hash);
    for (unsigned i = 0; i < count; i++) {
        flow_prefetch_flow(a->flows, at[i].flow_hash);
        fetch_past(a, &at[i]);
    }
    for (unsigned i = 0; i < count; i++) {
        flow_prefetch_connection(a->flows, at[i].flow_hash);
        if (at[i].reason == DROP_NONE)
            prefetch(at[i].segment.payload.at, RECORD_HEADER_LEN);
    }
}

enum status analysis_settle(struct analysis *a)
{
    const struct decoded_batch *batch = a->decoded;
    enum status status = STATUS_OK;
    for (unsigned i = 0; i < batch->count && status == STATUS_OK; i++) {
        unsigned left = batch->count - i;
        if (i % FETCHED_AHEAD == 0)
            fetch_ahead(a, &batch->at[i], left < FETCHED_AHEAD ? left : FETCHED_AHEAD);
        status = follow_decoded(a, &batch->at[i]);
    }
    decoded_batch_clear(a->decoded);
    return status;
}

static enum drop join_fragments(struct analysis *a, const struct frame *frame,
                                struct decoded *decoded)
{
    struct fragment fragment;
    struct datagram whole;
    packet_fragment(frame, &fragment);
    enum drop reason = fragments_add(a->fragments, &fragment, &whole);
    if (reason != DROP_NONE)
        return reason;
    decoded->fragments = whole.earlier_count;
    return packet_decode_whole(frame, &fragment, whole.ip, whole.wire_len, &decoded->segment);
}

static uint32_t hash_of_flow(const struct analysis *a, const struct segment *s)
{
    struct flow_key key = flow_key_of(s);
    return flow_hash(a->flows, &key);
}

enum status analysis_frame(struct analysis *a, const struct frame *frame)
{
    struct decoded decoded;
    decoded.fragments = 0;
    decoded.file = a->file;
    decoded.drops = a->drops;
    decoded.interface_name = frame->interface_name;
    decoded.reason = packet_decode(frame, &decoded.segment);
    if (decoded.reason == DROP_FRAGMENT)
        decoded.reason = join_fragments(a, frame, &decoded);
    enum status status = STATUS_OK;
    decoded.flow_hash = decoded.reason == DROP_NONE ? hash_of_flow(a, &decoded.segment) : 0;
    if (!decoded_batch_has_room(a->decoded, &decoded))
        status = analysis_settle(a);
    return status == STATUS_OK ? decoded_batch_add(a->decoded, &decoded) : status;
}

uint64_t analysis_flows(const struct analysis *a)
{
    return endings_count(a->endings) + flow_count(a->flows);
}

/* Opening and closing */

enum status analysis_open(const struct analysis_options *options, struct analysis **ret_analysis)
{
    struct analysis *a = calloc(1, sizeof *a);
    if (a == NULL)
        return STATUS_NO_MEMORY;
    struct endings_options endings = {
        .stage = options->stage,
        .open = options->open,
        .profiles = options->profiles,
        .neighbours = options->neighbours,
        .roles = options->roles,
        .privacy = options->privacy,
    };
    a->options = *options;
    a->past_seed = ~options->seed;
    a->fragments = fragments_open(options->seed);
    a->flows = flow_table_open(options->seed);
    a->past = past_open();
    a->spill = spill_open(NULL);
    a->endings = endings_open(&endings);
    a->decoded = calloc(1, sizeof *a->decoded);
    if (a->fragments == NULL || a->flows == NULL || a->past == NULL || a->spill == NULL ||
        a->endings == NULL || a->decoded == NULL) {
        analysis_close(a);
        return STATUS_NO_MEMORY;
    }
    *ret_analysis = a;
    return STATUS_OK;
}

void analysis_close(struct analysis *a)
{
    if (a == NULL)
        return;
    if (a->decoded != NULL)
        decoded_batch_done(a->decoded);
    free(a->decoded);
    if (a->flows != NULL)
        for (struct flow *f; (f = flow_nearest_deadline(a->flows)) != NULL;)
            free_flow(a, f);
    endings_close(a->endings);
    flow_table_close(a->flows);
    past_close(a->past);
    spill_close(a->spill);
    fragments_close(a->fragments);
    secrets_close(a->secrets);
    connection_pool_done(&a->pool);
    buffer_done(&a->packed);
    buffer_done(&a->state);
    buffer_done(&a->half_open);
    interfaces_done(&a->interfaces);
    free(a);
}
