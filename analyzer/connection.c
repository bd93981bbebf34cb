/* SPDX-License-Identifier: Apache-2.0 */
#include "connection.h"

#include "hash.h"
#include "prefetch.h"

#include <stdlib.h>

/* A hole that the receiver has acknowledged for so long was lost by the capture, not reordered. */
#define HOLE_LOST_AFTER_NS (20 * INT64_C(1000000))

/* A hole filled later than this was filled by a retransmission, sooner by a reordered segment. */
#define REORDERED_WITHIN_NS (3 * INT64_C(1000000))

/* Sequence numbers farther from the expected one than any window in use are no part of a flow. */
enum { PLAUSIBLE_WINDOW = 1 << 24 };

static struct connection *take(struct connection_pool *pool)
{
    return pool->count > 0 ? pool->spare[--pool->count] : calloc(1, sizeof(struct connection));
}

static void free_connection(struct connection *c)
{
    facts_done(&c->facts);
    free(c);
}

void connection_pool_done(struct connection_pool *pool)
{
    while (pool->count > 0)
        free_connection(pool->spare[--pool->count]);
}

struct connection *connection_open(struct connection_pool *pool, const struct opening *o)
{
    struct connection *c = take(pool);
    if (c != NULL)
        connection_set_bases(c, o);
    return c;
}

void connection_close(struct connection_pool *pool, struct connection *c)
{
    if (c == NULL)
        return;
    stream_done(&c->stream[CLIENT]);
    stream_done(&c->stream[SERVER]);
    tls_done(&c->tls);
    facts_clear(&c->facts);
    if (pool->count == POOL_MAX) {
        free_connection(c);
        return;
    }
    struct facts empty = c->facts;
    *c = (struct connection){ .facts = empty };
    pool->spare[pool->count++] = c;
}

void connection_prefetch(const struct connection *c)
{
    prefetch(&c->facts, offsetof(struct facts, client_hello_ns)); /* what TCP tells lies in front */
    prefetch(&c->facts.records_seen, 1);
    prefetch(&c->facts.records, 1);
    prefetch(&c->stream, sizeof c->stream + sizeof c->tls);
    prefetch(&c->recent_next, 1);
    prefetch(&c->acked_offset, sizeof *c - offsetof(struct connection, acked_offset));
}

bool connection_is_at_rest(const struct connection *c)
{
    return c->stream[CLIENT].pending == NULL && c->stream[SERVER].pending == NULL &&
           c->label == NULL && tls_is_at_rest(&c->tls);
}

static void code_recent(struct coder *coder, struct connection *c, enum side side, int64_t from_ns)
{
    struct recent_packet kept[RECENT_PACKETS];
    uint8_t count = 0;
    for (unsigned i = 0; i < RECENT_PACKETS; i++) { /* the oldest first */
        const struct recent_packet *r =
            &c->recent[side][(c->recent_next[side] + i) % RECENT_PACKETS];
        if (r->at_ns >= from_ns)
            kept[count++] = *r;
    }
    count = (uint8_t)code_number(coder, coder_unpacks(coder) ? 0 : count, RECENT_PACKETS);
    for (unsigned i = 0; i < count; i++) {
        code_u64(coder, &kept[i].signature);
        code_time(coder, &kept[i].at_ns);
    }
    if (!coder_unpacks(coder))
        return;
    for (unsigned i = 0; i < count; i++)
        c->recent[side][i] = kept[i];
    c->recent_next[side] = count;
}

/* All but facts, the last packet's time excepted, and nDPI's state. */
static void code_state(struct coder *coder, struct connection *c, int64_t recent_from_ns)
{
    code_time(coder, &c->facts.end_ns);
    coder->base_ns = c->facts.end_ns;
    tls_code(coder, &c->tls);
    for (enum side side = CLIENT; side <= SERVER; side++) {
        stream_code(coder, &c->stream[side]);
        code_offset(coder, &c->acked_offset[side]);
        code_time(coder, &c->acked_ns[side]);
        code_recent(coder, c, side, recent_from_ns);
    }
    code_bool(coder, &c->labelled);
    code_offset(coder, &c->rtt_end);
    code_time(coder, &c->rtt_at_ns);
    code_offset(coder, &c->plain_response_offset);
}

/* How the secrets did that decryption leaves behind when it is broken off here. */
static uint8_t keys_so_far(const struct facts *f)
{
    for (unsigned i = 0; i < f->record_count; i++)
        if (f->records[i].content != 0)
            return KEYS_PARTIAL;
    return f->keys;
}

bool connection_pack(struct connection *c, int64_t recent_from_ns, struct buffer *out)
{
    size_t before = out->len;
    struct coder coder = coder_to(out);
    uint8_t keys = c->facts.keys;
    code_state(&coder, c, recent_from_ns);
    if (c->tls.keyed != NULL)
        c->facts.keys = keys_so_far(&c->facts);
    bool ok = !coder.failed && facts_pack(&c->facts, out) == STATUS_OK;
    c->facts.keys = keys;
    if (!ok)
        out->len = before;
    return ok;
}

struct connection *connection_unpack(struct connection_pool *pool, struct bytes packed)
{
    struct connection *c = take(pool);
    struct coder coder = coder_of(packed);
    if (c == NULL)
        return NULL;
    code_state(&coder, c, 0);
    struct record records[RECORDS_MAX];
    struct facts borrowed;
    if (!coder.failed && facts_unpack(coder.in.rest, records, &borrowed) &&
        tls_fits_facts(&c->tls, &borrowed) && facts_copy(&borrowed, &c->facts))
        return c;
    connection_close(pool, c);
    return NULL;
}

size_t connection_held_memory(const struct connection *c)
{
    size_t held = tls_held_memory(&c->tls);
    for (enum side side = CLIENT; side <= SERVER; side++)
        held += c->stream[side].pending_bytes;
    return held;
}

void connection_set_bases(struct connection *c, const struct opening *o)
{
    for (enum side side = CLIENT; side <= SERVER; side++)
        if (o->isn_known[side])
            stream_set_base(&c->stream[side], o->isn[side] + 1);
}

static uint64_t signature_of(const struct segment *s)
{
    uint32_t fields[] = { s->seq,
                          s->ack,
                          s->payload_len,
                          s->timestamp_value,
                          s->timestamp_echo,
                          (uint32_t)s->ip_id << 16 | s->window,
                          s->flags };
    return hash_table((struct bytes){ (const uint8_t *)fields, sizeof fields }, 0);
}

/*
 * A copy has the same headers within some milliseconds, whatever VLAN, MAC or TTL it has. A host
 * that sends the same bytes again gives them a new IP identification; where there is none (IPv6, or
 * 0), bare ACKs of equal content can be real, so only segments that carry something are copies.
 */
bool connection_is_copy(struct connection *c, enum side side, const struct segment *s)
{
    bool tells = s->ip_id != 0 || s->payload_len > 0 || (s->flags & (TCP_FIN | TCP_RST)) != 0;
    uint64_t signature = signature_of(s);
    unsigned next = c->recent_next[side];
    for (unsigned i = 1; i <= RECENT_PACKETS; i++) {
        const struct recent_packet *r = &c->recent[side][(next - i) % RECENT_PACKETS];
        if (s->at_ns - r->at_ns >= COPY_WITHIN_NS) /* and so are those before it */
            break;
        if (tells && r->signature == signature && r->at_ns - s->at_ns < COPY_WITHIN_NS)
            return true;
    }
    c->recent[side][next % RECENT_PACKETS] = (struct recent_packet){ signature, s->at_ns };
    c->recent_next[side]++;
    return false;
}

static void set_first(int64_t *mark, int64_t at_ns)
{
    if (*mark == 0)
        *mark = at_ns;
}

void connection_count(struct connection *c, enum side side, const struct segment *s)
{
    struct facts *f = &c->facts;
    f->packets[side]++;
    if (s->at_ns > f->end_ns)
        f->end_ns = s->at_ns;
    if (f->ttl[side] == 0)
        f->ttl[side] = s->ttl;
    f->tunnel |= s->tunnel;
    if (s->payload.len < s->payload_len)
        f->truncated++;
    if ((s->flags & TCP_FIN) != 0)
        set_first(&f->fin_ns[side], s->at_ns);
    if ((s->flags & TCP_RST) != 0)
        set_first(&f->reset_ns[side], s->at_ns);
    f->unanswered[other_side(side)] = 0;
    if (s->payload_len > 0 || (s->flags & (TCP_SYN | TCP_FIN)) != 0)
        f->unanswered[side]++;
}

bool connection_reset_plausible(const struct connection *c, enum side side, const struct segment *s)
{
    const struct stream *own = &c->stream[side];
    if (!own->has_base)
        return true;
    int64_t distance = stream_offset(own, s->seq) - own->next_offset;
    return distance > -PLAUSIBLE_WINDOW && distance < PLAUSIBLE_WINDOW;
}

/* The offset of the other stream that a segment acknowledges; ACK_UNKNOWN without one. */
static int64_t ack_offset(struct connection *c, enum side side, const struct segment *s)
{
    struct stream *other = &c->stream[other_side(side)];
    if ((s->flags & TCP_ACK) == 0)
        return ACK_UNKNOWN;
    stream_set_base(other, s->ack);
    int64_t offset = stream_offset(other, s->ack);
    return offset < 0 ? 0 : offset;
}

struct piece connection_piece(struct connection *c, enum side side, const struct segment *s)
{
    int64_t ack = ack_offset(c, side, s);
    return (struct piece){
        .seq = (s->flags & TCP_SYN) != 0 ? s->seq + 1 : s->seq,
        .len = s->payload_len,
        .data = s->payload,
        .at_ns = s->at_ns,
        .packet_no = s->packet_no,
        .ack = ack > OFFSET_MAX ? OFFSET_MAX : (int32_t)ack,
    };
}

static void add_resend(struct facts *f, enum side side, int64_t at_ns, int64_t wait_ns)
{
    f->retransmits[side]++;
    if (f->resend_count < RESENDS_MAX)
        f->resends[f->resend_count++] = (struct resend){ .at_ns = at_ns,
                                                         .wait_ns = wait_ns < 0 ? 0 : wait_ns,
                                                         .side = (uint8_t)side };
}

/* RFC 9293 3.8.4: a keep-alive repeats the byte before the next one expected, or none at all. */
static bool is_keep_alive(const struct connection *c, enum side side, const struct segment *s,
                          const struct arrival *arrival)
{
    return s->payload_len == 1 && arrival->old_len == 1 &&
           arrival->old_offset == c->stream[side].next_offset - 1;
}

void connection_arrival(struct connection *c, enum side side, const struct segment *s,
                        const struct arrival *arrival)
{
    struct facts *f = &c->facts;
    f->bytes[side] += arrival->new_len;
    set_first(&f->first_payload_ns[side], s->at_ns);
    if (arrival->old_len > 0 && !is_keep_alive(c, side, s, arrival)) {
        add_resend(f, side, s->at_ns, s->at_ns - f->last_payload_ns[side]);
        tls_resent(&c->tls, f, side, arrival->old_offset, arrival->old_len);
        if (side == SERVER && c->rtt_at_ns != 0 && arrival->old_offset < c->rtt_end)
            c->rtt_at_ns = 0; /* Karn: its ACK would tell nothing */
        if (side == SERVER && f->plain_response_ns != 0 && f->plain_response_acked_ns == 0 &&
            arrival->old_offset <= c->plain_response_offset)
            f->plain_response_resent = 1;
    } else if (arrival->filled_hole && s->at_ns - arrival->behind_at_ns > REORDERED_WITHIN_NS) {
        add_resend(f, side, s->at_ns, s->at_ns - arrival->behind_at_ns);
    }
    if (arrival->new_len > 0)
        f->last_payload_ns[side] = s->at_ns;
    if (side == SERVER && arrival->new_len > 0 && arrival->old_len == 0 && c->rtt_at_ns == 0) {
        c->rtt_end = stream_offset(&c->stream[SERVER], s->seq) + s->payload_len;
        c->rtt_at_ns = s->at_ns;
    }
}

void connection_run(struct connection *c, enum side side, const struct run *run)
{
    struct facts *f = &c->facts;
    if (run->is_hole) {
        f->gap_bytes[side] += run->len;
        return;
    }
    int64_t end = run->offset + run->len;
    if (side == CLIENT && f->plain_request_end == 0)
        f->plain_request_end = end > OFFSET_MAX ? OFFSET_MAX : (int32_t)end;
    if (side == SERVER && f->plain_response_ns == 0 && f->plain_request_end > 0 &&
        run->ack != ACK_UNKNOWN && run->ack >= f->plain_request_end) {
        f->plain_response_ns = run->at_ns;
        c->plain_response_offset = run->offset;
    }
}

static void sample_rtt(struct connection *c, const struct segment *s, int64_t acked)
{
    struct facts *f = &c->facts;
    if (c->rtt_at_ns == 0 || acked < c->rtt_end)
        return;
    bool is_bare = s->payload_len == 0 && (s->flags & (TCP_FIN | TCP_RST)) == 0;
    if (is_bare && s->at_ns > c->rtt_at_ns) {
        uint64_t rtt = (uint64_t)(s->at_ns - c->rtt_at_ns);
        if (f->data_rtt_ns == 0 || rtt < f->data_rtt_ns)
            f->data_rtt_ns = rtt;
    }
    c->rtt_at_ns = 0;
}

void connection_acknowledge(struct connection *c, enum side side, const struct segment *s)
{
    enum side other = other_side(side);
    int64_t acked = ack_offset(c, side, s);
    if (acked == ACK_UNKNOWN || acked <= c->acked_offset[other])
        return;
    c->acked_offset[other] = acked;
    c->acked_ns[other] = s->at_ns;
    tls_acknowledged(&c->tls, &c->facts, other, acked, s->at_ns);
    if (side == CLIENT) {
        sample_rtt(c, s, acked);
        if (c->facts.plain_response_ns != 0 && acked > c->plain_response_offset)
            set_first(&c->facts.plain_response_acked_ns, s->at_ns);
    }
}

bool connection_hole_is_lost(const struct connection *c, enum side side, int64_t now_ns)
{
    int64_t behind;
    if (!stream_waits(&c->stream[side], &behind))
        return false;
    return stream_over_cap(&c->stream[side]) ||
           (c->acked_offset[side] >= behind && now_ns - c->acked_ns[side] > HOLE_LOST_AFTER_NS);
}

/* Bytes that the other side acknowledged and nobody captured; a FIN counts as one (RFC 9293 3.4).
 */
static void note_gap_at_end(struct connection *c, enum side side)
{
    const struct stream *s = &c->stream[side];
    int64_t missing = c->acked_offset[side] - s->next_offset;
    if (s->has_base && missing > 1)
        c->facts.gap_bytes[side] += (uint64_t)missing;
}

/* Who is the client where no SYN or SYN/ACK said so: who sent the ClientHello. */
static void settle_roles(struct facts *f)
{
    bool by_tcp = f->client_basis == CLIENT_BY_SYN || f->client_basis == CLIENT_BY_SYN_ACK;
    bool has_hello = f->client_hello_seen || f->server_hello_seen;
    if (has_hello && by_tcp && f->hello_side == SERVER)
        facts_reverse_tls(f);
    if (!has_hello || by_tcp)
        return;
    f->client_basis = f->client_hello_seen ? CLIENT_BY_CLIENT_HELLO : CLIENT_BY_SERVER_HELLO;
    if (f->hello_side == SERVER) {
        facts_swap_sides(f);
        f->hello_side = CLIENT;
        f->data_rtt_ns = 0; /* it was measured the wrong way round */
    }
}

void connection_finish(struct connection *c, const struct opening *o, int64_t first_packet_ns)
{
    struct facts *f = &c->facts;
    tls_end(&c->tls, f);
    opening_facts(o, first_packet_ns, f);
    for (enum side side = CLIENT; side <= SERVER; side++) {
        note_gap_at_end(c, side);
        if (!f->isn_known[side] && c->stream[side].has_base) {
            const struct stream *s = &c->stream[side];
            f->isn[side] = s->next_seq - (uint32_t)s->next_offset - 1;
        }
    }
    settle_roles(f);
    facts_finish(f);
}
