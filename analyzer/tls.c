/* SPDX-License-Identifier: Apache-2.0 */
#include "tls.h"

#include "hash.h"
#include "hello.h"

#include <stdlib.h>

/* Early records kept one by one: the first decide what the request was, and the rest of a large
 * upload must not push out the records that tell whether it was accepted. */
enum { EARLY_RECORDS_MAX = 12 };

/* Tickets of the usual formats begin with a 16-byte key name, an IV and a MAC follow; a shorter
 * identity is a handle into a session cache. */
enum { TICKET_KEY_NAME_LEN = 16, TICKET_WITH_KEY_NAME_MIN = 64 };

enum { NO_MESSAGE = 255 };

static int32_t clamp_offset(int64_t offset)
{
    return offset > OFFSET_MAX ? OFFSET_MAX : offset < 0 ? 0 : (int32_t)offset;
}

/* Text facts */

static enum status set_hex(struct facts *f, char **field, struct bytes b)
{
    char text[2 * 32 + 1];
    hex_text(bytes_first(b, 32), text);
    return facts_set_text(f, field, text, strlen(text)) ? STATUS_OK : STATUS_NO_MEMORY;
}

static enum status set_hash(struct facts *f, char **field, struct bytes b)
{
    struct hash128 h = hash_stable(b);
    return set_hex(f, field, (struct bytes){ h.octet, sizeof h.octet });
}

static enum status set_key_name(struct facts *f, char **field, struct bytes ticket)
{
    if (ticket.len < TICKET_WITH_KEY_NAME_MIN)
        return STATUS_OK;
    return set_hex(f, field, bytes_first(ticket, TICKET_KEY_NAME_LEN));
}

static enum status set_hello_names(struct facts *f, const struct client_hello *hello)
{
    char text[1024];
    size_t len = server_name_text(hello->server_name, text, sizeof text);
    if (len > 0 && !facts_set_text(f, &f->server_name, text, len))
        return STATUS_NO_MEMORY;
    len = alpn_text(hello->alpn, text, sizeof text);
    if (len > 0 && !facts_set_text(f, &f->alpn_offered, text, len))
        return STATUS_NO_MEMORY;
    ja4_text(hello, text);
    if (text[0] != '\0' && !facts_set_text(f, &f->ja4, text, strlen(text)))
        return STATUS_NO_MEMORY;
    return STATUS_OK;
}

/* One hash over what a replayed ClientHello repeats and a fresh one does not. */
static enum status set_hello_hash(struct facts *f, const struct client_hello *hello)
{
    struct buffer b = { 0 };
    bool ok = buffer_add(&b, hello->random) && buffer_add(&b, hello->session_id) &&
              buffer_add(&b, hello->psk_identity) && buffer_add(&b, hello->psk_binder);
    enum status s =
        ok ? set_hash(f, &f->client_hello_hash, (struct bytes){ b.at, b.len }) : STATUS_NO_MEMORY;
    buffer_done(&b);
    return s;
}

/* Handshake messages */

/* The record that begins with a message, or with the first part of it; NULL when it is not kept. */
static struct record *record_begun_by(const struct facts *f, enum side side,
                                      const struct message *m)
{
    for (unsigned i = f->record_count; m->begins_record && i-- > 0;)
        if (f->records[i].side == side && f->records[i].offset + RECORD_HEADER_LEN == m->offset)
            return &f->records[i];
    return NULL;
}

/* Whether a ClientHello is the second one although no other was seen: its sender has the server's
 * HelloRetryRequest. */
static bool answers_retry(const struct facts *f, const struct message *m)
{
    const struct record *record = record_begun_by(f, (enum side)f->hello_side, m);
    if (!f->hello_retry)
        return false;
    return record == NULL || record->ack == ACK_UNKNOWN || record->ack >= f->hello_retry_end;
}

static enum status note_second_hello(struct facts *f, const struct message *m,
                                     const struct client_hello *hello)
{
    if (f->second_hello_seen)
        return STATUS_OK;
    f->second_hello_seen = 1;
    f->second_hello_ns = m->at_ns;
    f->second_hello_end = clamp_offset(m->end_offset);
    f->second_psk_identity_len = (uint16_t)hello->psk_identity.len;
    return STATUS_OK;
}

static void note_preamble(const struct plaintext *p, struct facts *f)
{
    if (p == NULL)
        return;
    struct bytes client = { p->bytes[CLIENT], p->len[CLIENT] };
    struct bytes server = { p->bytes[SERVER], p->len[SERVER] };
    unsigned waits = p->waits + (p->last_side == SERVER ? 1u : 0); /* the ClientHello ends one */
    struct preamble_verdict verdict = preamble_recognise(client, server, waits);
    f->preamble = (uint8_t)verdict.kind;
    f->preamble_round_trips = verdict.round_trips;
}

static enum status set_session_id_facts(struct facts *f, const struct client_hello *hello)
{
    f->session_id_len = (uint8_t)hello->session_id.len;
    if (hello->session_id.len == 0)
        return STATUS_OK;
    return set_hash(f, &f->session_id_hash, hello->session_id);
}

static enum status note_client_hello(struct tls *t, struct facts *f, const struct message *m,
                                     const struct client_hello *hello)
{
    if (f->client_hello_seen)
        return note_second_hello(f, m, hello);
    bool is_second = answers_retry(f, m); /* the first one may have said more */
    f->tls = 1;
    f->client_hello_seen = 1;
    f->client_hello_complete = hello->complete && !is_second;
    f->client_hello_ns = is_second ? 0 : m->at_ns;
    f->client_hello_last_ns = is_second ? 0 : m->last_at_ns;
    f->client_hello_end = clamp_offset(m->end_offset);
    f->client_hello_len = m->len + 4;
    f->client_version = hello->max_version;
    f->ticket_offered = hello->has_session_ticket;
    f->ticket_len = (uint16_t)hello->session_ticket.len;
    f->psk_offered = hello->has_pre_shared_key;
    f->psk_identity_count = (uint16_t)hello->psk_identity_count;
    f->psk_identity_len = (uint16_t)hello->psk_identity.len;
    f->obfuscated_ticket_age = hello->obfuscated_ticket_age;
    f->early_data_offered = hello->has_early_data;
    f->ech = hello->has_encrypted_client_hello;
    f->record_size_limit = hello->record_size_limit;
    note_preamble(t->plaintext, f);
    enum status s = is_second ? note_second_hello(f, m, hello) : STATUS_OK;
    if (s == STATUS_OK)
        s = set_session_id_facts(f, hello);
    if (s == STATUS_OK)
        s = set_hello_names(f, hello);
    if (s == STATUS_OK && hello->complete)
        s = set_hello_hash(f, hello);
    if (s == STATUS_OK && hello->psk_identity.len > 0)
        s = set_hash(f, &f->psk_identity_hash, hello->psk_identity);
    if (s == STATUS_OK)
        s = set_key_name(f, &f->ticket_key_name,
                         hello->psk_identity.len > 0 ? hello->psk_identity : hello->session_ticket);
    if (s == STATUS_OK && t->secrets != NULL)
        s = keyed_open(t->secrets, (enum side)f->hello_side, hello, &t->keyed);
    return s;
}

static void note_hello_retry(struct facts *f, const struct message *m,
                             const struct server_hello *hello)
{
    if (f->hello_retry)
        return;
    f->hello_retry = 1;
    f->hello_retry_ns = m->at_ns;
    f->hello_retry_end = clamp_offset(m->end_offset);
    if (!f->server_hello_seen) { /* until the real one comes, this is what is known */
        f->version = hello->version;
        f->cipher_suite = hello->cipher_suite;
        f->named_group = hello->key_share_group;
    }
}

/* The chosen protocol is a name without its length; as text it is a list of one (RFC 7301 3.1). */
static bool set_alpn(struct facts *f, struct bytes name)
{
    uint8_t list[1 + UINT8_MAX];
    char text[2 * UINT8_MAX + 1];
    if (name.len == 0 || name.len > UINT8_MAX)
        return true;
    list[0] = (uint8_t)name.len;
    memcpy(list + 1, name.at, name.len);
    size_t len = alpn_text((struct bytes){ list, name.len + 1 }, text, sizeof text);
    return len == 0 || facts_set_text(f, &f->alpn, text, len);
}

static enum status note_server_hello(struct facts *f, const struct message *m,
                                     const struct server_hello *hello)
{
    f->tls = 1;
    if (hello->is_hello_retry_request) {
        note_hello_retry(f, m, hello);
        return STATUS_OK;
    }
    if (f->server_hello_seen)
        return STATUS_OK;
    f->server_hello_seen = 1;
    f->server_hello_complete = hello->complete;
    f->server_hello_ns = m->at_ns;
    f->server_hello_last_ns = m->last_at_ns;
    f->server_hello_end = clamp_offset(m->end_offset);
    f->version = hello->version;
    f->cipher_suite = hello->cipher_suite;
    f->named_group = hello->key_share_group;
    f->psk_selected = hello->has_pre_shared_key;
    f->selected_identity = hello->selected_identity;
    f->server_key_share = hello->has_key_share;
    f->server_ticket = hello->has_session_ticket;
    f->server_session_id_len = (uint8_t)hello->session_id.len;
    f->downgrade = hello->is_downgrade;
    if (!set_alpn(f, hello->alpn))
        return STATUS_NO_MEMORY;
    if (hello->session_id.len > 0) {
        enum status s = set_hash(f, &f->server_session_id_hash, hello->session_id);
        if (s != STATUS_OK)
            return s;
    }
    return hello->random.len == 0 ? STATUS_OK : set_hash(f, &f->server_random_hash, hello->random);
}

/* RFC 8422 5.4: curve_type named_curve (3), then the group. */
static void note_server_key_exchange(struct facts *f, struct bytes body)
{
    struct reader r = reader_of(body);
    uint8_t curve_type = reader_u8(&r);
    uint16_t group = reader_u16(&r);
    if (!r.short_read && curve_type == 3 && named_group_name(group) != NULL)
        f->named_group = group;
}

/* RFC 5077 3.3: lifetime hint, then the ticket. */
static enum status note_new_session_ticket(struct facts *f, const struct message *m)
{
    if (f->issued_ticket_ns != 0)
        return STATUS_OK;
    struct reader r = reader_of(m->body);
    reader_u32(&r);
    f->issued_ticket_len = reader_u16(&r);
    f->issued_ticket_ns = m->at_ns;
    return f->issued_ticket_len < TICKET_WITH_KEY_NAME_MIN
               ? STATUS_OK
               : set_hex(f, &f->issued_ticket_key_name, reader_take(&r, TICKET_KEY_NAME_LEN));
}

/* Names the record that a message begins, which need not be the one that ends it. */
static void note_first_message(struct facts *f, enum side side, const struct message *m)
{
    struct record *record = record_begun_by(f, side, m);
    if (record != NULL)
        record->first_message = m->type;
}

static enum status note_message(struct tls *t, struct facts *f, enum side side,
                                const struct message *m)
{
    struct client_hello client;
    struct server_hello server;
    switch ((enum handshake_type)m->type) {
    case HANDSHAKE_CLIENT_HELLO:
        note_first_message(f, side, m);
        f->hello_side = (uint8_t)side;
        if (client_hello_parse(m->body, m->len, &client))
            return note_client_hello(t, f, m, &client);
        return STATUS_OK;
    case HANDSHAKE_SERVER_HELLO:
    case HANDSHAKE_HELLO_RETRY_REQUEST_DRAFT:
        note_first_message(f, side, m);
        if (!f->client_hello_seen && !f->server_hello_seen)
            f->hello_side = (uint8_t)other_side(side);
        if (!server_hello_parse((enum handshake_type)m->type, m->body, m->len, &server))
            return STATUS_OK;
        if (t->keyed != NULL && !server.is_hello_retry_request)
            keyed_server_hello(t->keyed, &server);
        return note_server_hello(f, m, &server);
    case HANDSHAKE_SERVER_KEY_EXCHANGE:
        note_server_key_exchange(f, m->body);
        break;
    case HANDSHAKE_NEW_SESSION_TICKET:
        note_first_message(f, side, m);
        f->messages[side] |= 1u << m->type;
        return note_new_session_ticket(f, m);
    case HANDSHAKE_HELLO_REQUEST:
    case HANDSHAKE_CERTIFICATE:
    case HANDSHAKE_CERTIFICATE_REQUEST:
    case HANDSHAKE_SERVER_HELLO_DONE:
    case HANDSHAKE_CERTIFICATE_VERIFY:
    case HANDSHAKE_CLIENT_KEY_EXCHANGE:
    case HANDSHAKE_FINISHED:
    case HANDSHAKE_CERTIFICATE_STATUS:
        break;
    default: /* no handshake message begins like that: encrypted, whatever we missed */
        t->side[side].body_is_clear = false;
        message_reset(&t->side[side].messages);
        return STATUS_OK;
    }
    note_first_message(f, side, m);
    f->messages[side] |= 1u << m->type;
    return STATUS_OK;
}

/* What there is of a message whose rest will not come. */
static enum status note_cut_off_message(struct tls *t, struct facts *f, enum side side)
{
    struct message m;
    return message_cut_off(&t->side[side].messages, &m) ? note_message(t, f, side, &m) : STATUS_OK;
}

/* Records */

static bool is_early(const struct facts *f, enum side side, uint8_t type, int32_t ack)
{
    return side == f->hello_side && type == RECORD_APPLICATION_DATA &&
           (!f->server_hello_seen || ack == ACK_UNKNOWN || ack < f->server_hello_end);
}

/* Whether a record stands directly behind one and those merged into it. */
static bool continues_merged(const struct record *last, const struct record *record)
{
    int64_t end = (int64_t)last->offset + RECORD_HEADER_LEN + last->len +
                  (int64_t)last->skipped * RECORD_HEADER_LEN + last->skipped_len;
    return record->offset == end && last->skipped_len <= OFFSET_MAX && last->skipped < UINT16_MAX;
}

/* Adds a record to the facts, or merges it, or lets it go; its index + 1, 0 when it has none. */
static enum status keep_record(struct tls *t, struct facts *f, enum side side,
                               const struct record *record, uint16_t *ret_index)
{
    struct tls_side *s = &t->side[side];
    *ret_index = 0;
    bool early = is_early(f, side, record->type, record->ack);
    if (early && s->early_kept >= EARLY_RECORDS_MAX &&
        continues_merged(&f->records[s->last_early], record)) {
        struct record *last = &f->records[s->last_early];
        last->flags |= RECORD_MERGED;
        last->skipped++;
        last->skipped_len += record->len;
        return STATUS_OK;
    }
    if (s->records_kept >= RECORDS_PER_SIDE_MAX) {
        f->records_full[side] = 1;
        return STATUS_OK;
    }
    struct record *kept = facts_add_record(f);
    if (kept == NULL)
        return STATUS_NO_MEMORY;
    *kept = *record;
    *ret_index = f->record_count;
    s->records_kept++;
    if (early) {
        s->early_kept++;
        s->last_early = (uint16_t)(f->record_count - 1);
    }
    if (s->acked_offset > kept->offset)
        kept->acked_at_ns = s->acked_at_ns;
    return STATUS_OK;
}

/* A stretch without records: a hole, or bytes behind a snaplen whose headers are unknown. */
static enum status note_lost(struct tls *t, struct facts *f, enum side side,
                             const struct record_event *e)
{
    if (e->lost_len <= 0)
        return STATUS_OK;
    bool begin_is_known = e->lost_at_ns != 0;
    struct record lost = {
        .type = e->lost_to_snaplen ? RECORD_CUT : RECORD_HOLE,
        .side = (uint8_t)side,
        .offset = clamp_offset(e->lost_offset),
        .len = e->lost_len > UINT32_MAX ? UINT32_MAX : (uint32_t)e->lost_len,
        .at_ns = begin_is_known ? e->lost_at_ns : e->first.at_ns,
        .last_at_ns = e->first.at_ns,
        .packet_no = begin_is_known ? e->lost_packet_no : e->first.packet_no,
        .last_packet_no = e->first.packet_no,
        .ack = begin_is_known ? e->lost_ack : ACK_UNKNOWN,
        .first_message = NO_MESSAGE,
    };
    uint16_t index;
    return keep_record(t, f, side, &lost, &index);
}

/*
 * Whether the first message of a doubtful handshake record shows that it can be read: behind a
 * ChangeCipherSpec they are encrypted, but for the hellos that follow one in middlebox
 * compatibility mode (RFC 8446 D.4, RFC 9846 E.4).
 */
static bool is_clear_handshake(const struct facts *f, const struct record *record,
                               const struct message *first)
{
    uint64_t len = (uint64_t)first->len + 4;
    bool is_hello = first->type == HANDSHAKE_CLIENT_HELLO || first->type == HANDSHAKE_SERVER_HELLO;
    return f->ccs_ns[record->side] != 0 ? is_hello && len == record->len : len <= record->len;
}

static enum status begin_record(struct tls *t, struct facts *f, enum side side,
                                const struct record_event *e)
{
    struct tls_side *s = &t->side[side];
    enum status status = e->unsure ? note_cut_off_message(t, f, side) : STATUS_OK;
    if (status == STATUS_OK)
        status = note_lost(t, f, side, e);
    if (status != STATUS_OK)
        return status;
    f->tls = 1;
    f->records_seen[side]++;
    s->record_type = e->header.type;
    s->alert_len = 0;
    s->body_is_clear = false;
    message_record_begins(&s->messages);
    struct record record = {
        .type = e->header.type,
        .side = (uint8_t)side,
        .len = e->header.len,
        .at_ns = e->first.at_ns,
        .last_at_ns = e->first.at_ns,
        .packet_no = e->first.packet_no,
        .last_packet_no = e->first.packet_no,
        .offset = clamp_offset(e->first.offset),
        .ack = e->first.ack,
        .flags = (uint8_t)(RECORD_OPEN | (e->unsure ? RECORD_UNSURE : 0) |
                           (e->first.starts_segment ? RECORD_STARTS_SEGMENT : 0)),
        .first_message = NO_MESSAGE,
    };
    if (record.type == RECORD_CHANGE_CIPHER_SPEC && f->ccs_ns[side] == 0) {
        f->ccs_ns[side] = record.at_ns;
        f->ccs_offset[side] = record.offset;
        f->ccs_ack[side] = record.ack;
    }
    status = keep_record(t, f, side, &record, &s->record);
    if (status == STATUS_OK && t->keyed != NULL)
        status = keyed_begin(t->keyed, side, &e->header, s->record, e->unsure);
    return status;
}

static enum status read_messages(struct tls *t, struct facts *f, enum side side, struct run body)
{
    struct tls_side *s = &t->side[side];
    enum status status = STATUS_OK;
    while (s->body_is_clear && status == STATUS_OK) {
        struct message m;
        bool complete = message_next(&s->messages, &body, &m, &status);
        if (s->body_is_doubtful && (complete || message_begun(&s->messages, &m))) {
            s->body_is_doubtful = false;
            s->body_is_clear = is_clear_handshake(f, &f->records[s->record - 1], &m);
        }
        if (!s->body_is_clear)
            message_reset(&s->messages);
        else if (complete)
            status = note_message(t, f, side, &m);
        if (!complete)
            break;
    }
    return status;
}

/* A clear alert has two bytes (RFC 8446 6); an encrypted one is longer. */
static void read_alert(struct tls_side *s, struct facts *f, const struct record *record,
                       const struct run *body)
{
    enum side side = (enum side)record->side;
    for (size_t i = 0; i < body->data.len && s->alert_len < sizeof s->alert; i++)
        s->alert[s->alert_len++] = body->data.at[i];
    if (record->len != sizeof s->alert || s->alert_len < sizeof s->alert || f->alert_seen[side])
        return;
    f->alert_seen[side] = 1;
    f->alert_level[side] = s->alert[0];
    f->alert_description[side] = s->alert[1];
    f->alert_ns[side] = record->at_ns;
}

static enum status read_body(struct tls *t, struct facts *f, enum side side,
                             const struct record_event *e)
{
    struct tls_side *s = &t->side[side];
    struct record *record = s->record == 0 ? NULL : &f->records[s->record - 1];
    bool is_first = record != NULL && e->body.offset == (int64_t)record->offset + RECORD_HEADER_LEN;
    if (t->keyed != NULL)
        keyed_body(t->keyed, side, &e->body);
    if (record != NULL) {
        record->last_at_ns = e->body.at_ns;
        record->last_packet_no = e->body.packet_no;
        if (e->body.is_hole)
            record->flags |= RECORD_HOLED;
    }
    if (s->record_type == RECORD_ALERT && record != NULL)
        read_alert(s, f, record, &e->body);
    if (s->record_type != RECORD_HANDSHAKE || record == NULL)
        return STATUS_OK;
    if (is_first) {
        bool behind_ccs = f->ccs_ns[side] != 0;
        s->body_is_clear = true;
        s->body_is_doubtful = behind_ccs || (record->flags & RECORD_UNSURE) != 0;
        if (behind_ccs) /* no message is continued there (RFC 5246 7.1) */
            message_reset(&s->messages);
    }
    return read_messages(t, f, side, e->body);
}

/* The connection, or the need for what it holds, is over. */
static enum status finish_keyed(struct tls *t, struct facts *f)
{
    enum status status = keyed_finish(t->keyed, f);
    keyed_close(t->keyed);
    t->keyed = NULL;
    return status;
}

static enum status end_keyed(struct tls *t, struct facts *f, enum side side)
{
    enum status status = keyed_end(t->keyed, f, side);
    return status == STATUS_OK && keyed_is_over(t->keyed) ? finish_keyed(t, f) : status;
}

static enum status end_record(struct tls *t, struct facts *f, enum side side)
{
    struct tls_side *s = &t->side[side];
    enum status status = t->keyed == NULL ? STATUS_OK : end_keyed(t, f, side);
    if (s->record == 0)
        return status;
    struct record *record = &f->records[s->record - 1];
    record->flags &= (uint8_t)~RECORD_OPEN;
    if (s->body_is_clear && s->body_is_doubtful) /* too short for a message */
        message_reset(&s->messages);
    s->body_is_doubtful = false;
    if (s->acked_offset >= (int64_t)record->offset + RECORD_HEADER_LEN + record->len)
        record->all_acked_at_ns = s->acked_at_ns;
    s->record = 0;
    return status;
}

/* Before TLS */

/* Whether a run begins like TLS: a hello, or, where the start of a side is missing, any record. */
static bool begins_like_tls(const struct facts *f, const struct tls_side *s, const struct run *run)
{
    bool any = s->begin_missing || (!f->syn_seen && f->client_basis != CLIENT_BY_SYN_ACK);
    if (run->data.len < RECORD_HEADER_LEN || !record_header_plausible(run->data.at))
        return false;
    if (run->data.at[0] != RECORD_HANDSHAKE || run->data.len == RECORD_HEADER_LEN)
        return any || run->data.at[0] == RECORD_HANDSHAKE;
    uint8_t message = run->data.at[RECORD_HEADER_LEN];
    return any || message == HANDSHAKE_CLIENT_HELLO || message == HANDSHAKE_SERVER_HELLO;
}

/* Whether the very first byte of a side can be the start of a TLS record. */
static bool may_start_record(const struct run *run)
{
    return run->data.len > 0 && run->data.at[0] >= RECORD_CHANGE_CIPHER_SPEC &&
           run->data.at[0] <= RECORD_HEARTBEAT;
}

/* Whether it holds less than a record's header. */
static bool is_short(const struct run *run)
{
    return run->len < RECORD_HEADER_LEN;
}

/*
 * An SSLv2-format hello (RFC 5246 E.2): two bytes of length with the top bit set, the message type,
 * the version. Old clients offer SSLv3 and TLS in it. True when the run began with one.
 */
static bool take_v2_hello(struct tls *t, struct facts *f, enum side side, struct run *run,
                          enum status *ret_status)
{
    struct reader r = reader_of(run->data);
    unsigned len = reader_u16(&r);
    unsigned type = bytes_first(r.rest, 1).len == 1 ? r.rest.at[0] : 0;
    unsigned body_len = len & 0x7fff;
    if (r.short_read || (len & 0x8000) == 0 || body_len + 2 > run->len || body_len < 9)
        return false;
    struct bytes body = bytes_first(r.rest, body_len);
    struct message m = { .len = body_len,
                         .at_ns = run->at_ns,
                         .last_at_ns = run->at_ns,
                         .offset = run->offset,
                         .end_offset = run->offset + 2 + body_len };
    struct client_hello hello;
    if (type == HANDSHAKE_CLIENT_HELLO && client_hello_parse_v2(body, body_len, &hello)) {
        f->hello_side = (uint8_t)side;
        *ret_status = note_client_hello(t, f, &m, &hello);
        run_skip(run, body_len + 2);
        return true;
    }
    /* SSLv2 ServerHello: type 4, session id hit, certificate type, version 0.2 */
    if (type == 4 && body.len >= 5 && body.at[3] == 0 && body.at[4] == 2 && f->client_hello_seen) {
        f->version = SSL_2_0;
        f->server_hello_seen = 1;
        f->server_hello_ns = run->at_ns;
        t->side[CLIENT].mode = TLS_OFF;
        t->side[SERVER].mode = TLS_OFF;
        *ret_status = STATUS_OK;
        run_skip(run, run->len);
        return true;
    }
    return false;
}

static enum status keep_plaintext(struct tls *t, enum side side, const struct run *run)
{
    if (t->plaintext == NULL) {
        t->plaintext = calloc(1, sizeof *t->plaintext);
        if (t->plaintext == NULL)
            return STATUS_NO_MEMORY;
        t->plaintext->last_side = (uint8_t)side;
    }
    struct plaintext *p = t->plaintext;
    if (side == CLIENT && p->last_side == SERVER)
        p->waits++;
    p->last_side = (uint8_t)side;
    struct bytes part = bytes_first(run->data, (size_t)PREAMBLE_KEPT_MAX - p->len[side]);
    if (part.len > 0)
        memcpy(p->bytes[side] + p->len[side], part.at, part.len);
    p->len[side] = (uint16_t)(p->len[side] + part.len);
    return STATUS_OK;
}

static enum status note_proxied(struct facts *f, const struct proxy_header *proxy)
{
    if (!proxy->has_addresses)
        return STATUS_OK;
    char source[ADDRESS_TEXT_SIZE], destination[ADDRESS_TEXT_SIZE];
    address_text(&proxy->source.address, source);
    address_text(&proxy->destination.address, destination);
    return facts_set_text(f, &f->proxied_client_ip, source, strlen(source)) &&
                   facts_set_text(f, &f->proxied_server_ip, destination, strlen(destination))
               ? STATUS_OK
               : STATUS_NO_MEMORY;
}

/* Keeps plaintext; where it ends a PROXY header, TLS may begin behind it in the same segment. */
static enum status read_plaintext(struct tls *t, struct facts *f, enum side side, struct run *run)
{
    struct tls_side *s = &t->side[side];
    int64_t begin = run->offset, end = run->offset + run->len;
    enum status status = keep_plaintext(t, side, run);
    if (status != STATUS_OK)
        return status;
    s->plain_runs++;
    struct bytes kept = { t->plaintext->bytes[side], t->plaintext->len[side] };
    struct proxy_header proxy;
    enum proxy_result result = proxy_header_read(kept, &proxy);
    if (result != PROXY_NONE && (int64_t)proxy.len > begin && (int64_t)proxy.len <= end) {
        run_skip(run, (uint32_t)((int64_t)proxy.len - begin));
        run->starts_segment = true; /* the proxied client's write begins here */
        if (proxy.len < t->plaintext->len[side])
            t->plaintext->len[side] = (uint16_t)proxy.len;
        s->mode = TLS_AT_START;
        return note_proxied(f, &proxy);
    }
    run_skip(run, run->len);
    if (s->plain_runs >= PLAINTEXT_RUNS_MAX) {
        s->mode = TLS_OFF;
        f->not_tls[side] = 1;
    }
    return STATUS_OK;
}

/* The first bytes of a side are in a hole or behind a cut. Where the other side speaks TLS they
 * were records, and reading goes on where one is found again. */
static void pass_missing_begin(struct tls_side *s, struct facts *f, enum side side, struct run *run)
{
    if (s->mode == TLS_AT_START)
        f->begin_unread[side] = 1;
    if (s->mode == TLS_AT_START && f->tls) {
        s->mode = TLS_RECORDS;
        s->records = (struct record_reader){ 0 };
        return;
    }
    if (s->mode == TLS_AT_START) {
        s->begin_missing = true;
        s->begin_offset = run->offset;
        s->mode = TLS_PLAIN;
    }
    run_skip(run, run->len);
}

static void begin_records(struct tls_side *s, const struct run *run)
{
    bool is_handshake = run->data.at[0] == RECORD_HANDSHAKE;
    s->mode = TLS_RECORDS;
    s->records = (struct record_reader){ .unsure = !is_handshake };
    if (s->begin_missing)
        record_reader_lose(&s->records, s->begin_offset);
}

/* Decides how a side is read; consumes what is not TLS. */
static enum status find_tls(struct tls *t, struct facts *f, enum side side, struct run *run)
{
    struct tls_side *s = &t->side[side];
    enum status status = STATUS_OK;
    if (run->is_hole || run->data.len == 0) {
        pass_missing_begin(s, f, side, run);
        return STATUS_OK;
    }
    bool may_begin = s->mode == TLS_AT_START || (run->starts_segment && is_short(run));
    if ((run->starts_segment && begins_like_tls(f, s, run)) ||
        (may_begin && may_start_record(run))) {
        begin_records(s, run);
        return STATUS_OK;
    }
    if (s->mode == TLS_AT_START && take_v2_hello(t, f, side, run, &status)) {
        if (s->mode == TLS_AT_START)
            s->mode = TLS_RECORDS;
        return status;
    }
    if (!is_short(run) && run->data.len < RECORD_HEADER_LEN) /* TLS may begin here unseen */
        f->begin_unread[side] = 1;
    s->mode = TLS_PLAIN;
    return read_plaintext(t, f, side, run);
}

/* What was taken for the first record's header is plaintext. */
static enum status read_as_plaintext(struct tls *t, struct facts *f, enum side side,
                                     const struct record_event *e)
{
    struct run run = e->first;
    run.len = RECORD_HEADER_LEN;
    run.data = (struct bytes){ e->broken, sizeof e->broken };
    t->side[side].mode = TLS_PLAIN;
    return read_plaintext(t, f, side, &run);
}

static enum status read_records(struct tls *t, struct facts *f, enum side side, struct run *run)
{
    struct tls_side *s = &t->side[side];
    bool was_lost = s->records.state == RECORD_LOST;
    struct record_event e = record_next(&s->records, run);
    if (e.kind == EVENT_BROKEN && f->records_seen[side] == 0) /* it only looked like TLS */
        return read_as_plaintext(t, f, side, &e);
    if (s->records.state == RECORD_LOST && !was_lost) {
        f->boundary_losses[side]++;
        if (f->records_seen[side] == 0)
            f->begin_unread[side] = 1;
    }
    switch (e.kind) {
    case EVENT_MORE:
    case EVENT_BROKEN:
        return STATUS_OK;
    case EVENT_BEGINS:
        return begin_record(t, f, side, &e);
    case EVENT_BODY:
        return read_body(t, f, side, &e);
    case EVENT_ENDS:
        return end_record(t, f, side);
    }
    return STATUS_OK;
}

enum status tls_add_run(struct tls *t, struct facts *f, enum side side, struct run run)
{
    struct tls_side *s = &t->side[side];
    bool more = run.len > 0;
    while (more && s->mode != TLS_OFF) {
        enum status status =
            s->mode == TLS_RECORDS ? read_records(t, f, side, &run) : find_tls(t, f, side, &run);
        if (status != STATUS_OK)
            return status;
        more = run.len > 0 || (s->mode == TLS_RECORDS && s->records.state == RECORD_AT_END);
    }
    if (f->records_full[side])
        s->mode = TLS_OFF;
    return STATUS_OK;
}

/* Acknowledgment and retransmission */

void tls_acknowledged(struct tls *t, struct facts *f, enum side side, int64_t offset, int64_t at_ns)
{
    struct tls_side *s = &t->side[side];
    if (offset <= s->acked_offset)
        return;
    s->acked_offset = offset;
    s->acked_at_ns = at_ns;
    bool all_before = true;
    for (uint16_t i = s->unacked; i < f->record_count; i++) {
        struct record *r = &f->records[i];
        if (r->side == side && r->all_acked_at_ns == 0) {
            int64_t end = (int64_t)r->offset + RECORD_HEADER_LEN + r->len;
            if (r->acked_at_ns == 0 && offset > r->offset)
                r->acked_at_ns = at_ns;
            if (offset >= end && i + 1 != s->record)
                r->all_acked_at_ns = at_ns;
            else
                all_before = false;
        }
        if (all_before)
            s->unacked = (uint16_t)(i + 1);
        if (r->side == side && r->offset > offset)
            break;
    }
}

void tls_resent(struct tls *t, struct facts *f, enum side side, int64_t offset, uint32_t len)
{
    for (uint16_t i = t->side[side].unacked; i < f->record_count; i++) {
        struct record *r = &f->records[i];
        if (r->side == side && r->acked_at_ns == 0 && r->offset >= offset &&
            r->offset < offset + (int64_t)len)
            r->flags |= RECORD_RESENT;
    }
}

bool tls_wants(const struct tls *t, enum side side)
{
    return t->side[side].mode != TLS_OFF;
}

static bool side_is_at_rest(const struct tls_side *s)
{
    if (s->mode != TLS_RECORDS)
        return true;
    return s->messages.header_len == 0 &&
           (s->records.state == RECORD_LOST ||
            (s->records.state == RECORD_IN_HEADER && s->records.header_len == 0));
}

bool tls_is_at_rest(const struct tls *t)
{
    return t->keyed == NULL && side_is_at_rest(&t->side[CLIENT]) &&
           side_is_at_rest(&t->side[SERVER]);
}

static void code_plaintext(struct coder *c, struct plaintext **plaintext)
{
    bool there = *plaintext != NULL;
    code_bool(c, &there);
    if (!there)
        return;
    if (coder_unpacks(c)) {
        *plaintext = calloc(1, sizeof **plaintext);
        c->failed |= *plaintext == NULL;
    }
    if (*plaintext == NULL)
        return;
    struct plaintext *p = *plaintext;
    code_u16(c, &p->waits);
    p->last_side = (uint8_t)code_number(c, p->last_side, SERVER);
    for (enum side side = CLIENT; side <= SERVER; side++) {
        p->len[side] = (uint16_t)code_number(c, p->len[side], PREAMBLE_KEPT_MAX);
        code_octets(c, p->bytes[side], p->len[side]);
    }
}

static void code_record_reader(struct coder *c, struct record_reader *r)
{
    r->state = (uint8_t)code_number(c, r->state, RECORD_LOST);
    code_bool(c, &r->unsure);
    code_bool(c, &r->lost_to_snaplen);
    code_offset(c, &r->lost_offset);
    code_time(c, &r->lost_at_ns);
    code_u64(c, &r->lost_packet_no);
    code_i32(c, &r->lost_ack);
}

/* What is known only in the middle of a record or message. */
static void code_unfinished(struct coder *c, struct tls_side *s)
{
    struct record_reader *r = &s->records;
    code_bool(c, &s->body_is_clear);
    code_bool(c, &s->body_is_doubtful);
    s->alert_len = (uint8_t)code_number(c, s->alert_len, sizeof s->alert);
    code_octets(c, s->alert, sizeof s->alert);
    code_u8(c, &s->record_type);
    code_u16(c, &s->record);
    r->header_len = (uint8_t)code_number(c, r->header_len, RECORD_HEADER_LEN);
    code_octets(c, r->header, sizeof r->header);
    r->body_left = (uint32_t)code_number(c, r->body_left, UINT16_MAX);
    code_offset(c, &r->first.offset);
    code_u32(c, &r->first.len);
    code_bool(c, &r->first.is_hole);
    code_bool(c, &r->first.starts_segment);
    code_time(c, &r->first.at_ns);
    code_u64(c, &r->first.packet_no);
    code_i32(c, &r->first.ack);
    message_code(c, &s->messages);
}

static void code_side(struct coder *c, struct tls_side *s)
{
    bool unfinished = !side_is_at_rest(s);
    s->mode = (uint8_t)code_number(c, s->mode, TLS_OFF);
    code_u8(c, &s->plain_runs);
    code_bool(c, &s->begin_missing);
    code_offset(c, &s->begin_offset);
    code_u8(c, &s->records_kept);
    code_u8(c, &s->early_kept);
    code_u16(c, &s->last_early);
    code_u16(c, &s->unacked);
    code_offset(c, &s->acked_offset);
    code_time(c, &s->acked_at_ns);
    code_record_reader(c, &s->records);
    code_bool(c, &unfinished);
    if (unfinished)
        code_unfinished(c, s);
}

void tls_code(struct coder *c, struct tls *t)
{
    code_plaintext(c, &t->plaintext);
    code_side(c, &t->side[CLIENT]);
    code_side(c, &t->side[SERVER]);
}

bool tls_fits_facts(const struct tls *t, const struct facts *f)
{
    for (enum side side = CLIENT; side <= SERVER; side++) {
        const struct tls_side *s = &t->side[side];
        /* a side that is turned off stays where it was in a record and reads no more */
        bool in_body = s->mode != TLS_OFF && s->records.state == RECORD_IN_BODY;
        if (s->record > f->record_count || s->unacked > f->record_count ||
            (s->early_kept > 0 && s->last_early >= f->record_count) ||
            (s->body_is_doubtful && s->record == 0) || (in_body && s->records.body_left == 0))
            return false;
    }
    return true;
}

void tls_end(struct tls *t, struct facts *f)
{
    for (enum side side = CLIENT; side <= SERVER; side++) {
        bool reads = t->side[side].mode == TLS_RECORDS;
        if (reads && f->records_seen[side] == 0)
            f->begin_unread[side] = 1;
        if (reads && note_cut_off_message(t, f, side) != STATUS_OK)
            return; /* without memory the message stays unread, as if its end had been cut */
    }
    if (t->keyed != NULL && finish_keyed(t, f) != STATUS_OK)
        return; /* and what waits stays sealed */
}

size_t tls_held_memory(const struct tls *t)
{
    size_t held = t->keyed == NULL ? 0 : keyed_memory(t->keyed);
    if (t->plaintext != NULL)
        held += sizeof *t->plaintext;
    for (enum side side = CLIENT; side <= SERVER; side++)
        held += t->side[side].messages.kept_capacity;
    return held;
}

void tls_done(struct tls *t)
{
    message_done(&t->side[CLIENT].messages);
    message_done(&t->side[SERVER].messages);
    keyed_close(t->keyed);
    free(t->plaintext);
    *t = (struct tls){ 0 };
}
