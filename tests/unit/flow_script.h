/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FLOW_SCRIPT_H
#define FLOW_SCRIPT_H
/*
 * Facts of one flow from a line that reads like its ladder. Words, with blanks between:
 *
 *   C S      a segment of the client, of the server; it acknowledges all that the other side sent
 *   c s      the same, but sent before it had the other side's last segment
 *   _        the other side's next segment acknowledges nothing new: a segment without ACK number
 *   +20      milliseconds pass before the next segment (usual: 1)
 *   hello    ClientHello or ServerHello of that side, retry a HelloRetryRequest, hello2 what
 * follows ccs      ChangeCipherSpec m11      a clear handshake message of that type (m0: an
 * encrypted one), m11:900 with a length alert    an alert record, alert40 a clear one 97       a
 * record of application data of that length hole50   50 bytes that were never captured, cut50
 * behind a snaplen fin rst  in the current segment
 *
 * Marks behind a word: ? request, ! response, f Finished, e EndOfEarlyData, t a ticket's role, u a
 * header found again (unsure), r sent again and acknowledged 200 ms later.
 */
#include "facts.h"
#include "hello.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

enum { SCRIPT_RECORDS_MAX = RECORDS_MAX, SCRIPT_RTT_NS = 20 * 1000000, SCRIPT_MS = 1000000 };

/* What the script's marks say, as indexes into facts.records; -1 = no such mark. */
struct script_marks {
    int request, response, finished[2], end_of_early_data;
    bool is_ticket[SCRIPT_RECORDS_MAX];
};

struct script {
    struct facts facts;
    struct record records[SCRIPT_RECORDS_MAX];
    struct script_marks marks;
    /* while the line is read */
    int64_t now_ns;
    uint64_t packet_no;
    enum side side;
    bool has_ack, starts_segment;
    int32_t sent[2];   /* stream bytes of each side so far */
    int32_t before[2]; /* ... before its last segment */
    int32_t ack;       /* of the current segment */
};

/* ---- one word ---- */

static inline void script_segment(struct script *s, enum side side, bool had_last)
{
    enum side other = other_side(side);
    s->side = side;
    s->starts_segment = true;
    s->packet_no++;
    s->now_ns += SCRIPT_MS;
    s->ack = s->has_ack ? (had_last ? s->sent[other] : s->before[other]) : ACK_UNKNOWN;
    s->has_ack = true;
    s->before[side] = s->sent[side];
    s->facts.packets[side]++;
    s->facts.end_ns = s->now_ns;
    if (had_last && s->ack != ACK_UNKNOWN)
        for (int i = 0; i < s->facts.record_count; i++)
            if (s->records[i].side == other && s->records[i].all_acked_at_ns == 0)
                s->records[i].acked_at_ns = s->records[i].all_acked_at_ns = s->now_ns;
}

static inline struct record *script_record(struct script *s, enum record_type type, uint32_t len)
{
    cr_assert_lt(s->facts.record_count, SCRIPT_RECORDS_MAX);
    struct record *r = &s->records[s->facts.record_count++];
    bool is_gap = type == RECORD_HOLE || type == RECORD_CUT;
    *r = (struct record){
        .at_ns = s->now_ns,
        .last_at_ns = s->now_ns,
        .packet_no = s->packet_no,
        .last_packet_no = s->packet_no,
        .offset = s->sent[s->side],
        .ack = type == RECORD_HOLE ? ACK_UNKNOWN : s->ack,
        .len = len,
        .side = (uint8_t)s->side,
        .type = (uint8_t)type,
        .flags = (uint8_t)(s->starts_segment ? RECORD_STARTS_SEGMENT : 0),
        .first_message = 255,
    };
    s->starts_segment = false;
    s->sent[s->side] += (int32_t)len + (is_gap ? 0 : 5);
    struct facts *f = &s->facts;
    if (f->first_payload_ns[s->side] == 0)
        f->first_payload_ns[s->side] = s->now_ns;
    f->last_payload_ns[s->side] = s->now_ns;
    f->bytes[s->side] = (uint64_t)s->sent[s->side];
    return r;
}

static inline struct record *script_client_hello(struct script *s)
{
    struct facts *f = &s->facts;
    struct record *r = script_record(s, RECORD_HANDSHAKE, 512);
    r->first_message = HANDSHAKE_CLIENT_HELLO;
    f->messages[CLIENT] |= 1U << HANDSHAKE_CLIENT_HELLO;
    f->client_hello_seen = f->client_hello_complete = 1;
    f->client_hello_ns = f->client_hello_last_ns = s->now_ns;
    f->client_hello_end = s->sent[CLIENT];
    f->client_hello_len = 512;
    return r;
}

static inline struct record *script_second_hello(struct script *s)
{
    struct record *r = script_record(s, RECORD_HANDSHAKE, 512);
    r->first_message = HANDSHAKE_CLIENT_HELLO;
    s->facts.second_hello_seen = 1;
    s->facts.second_hello_ns = s->now_ns;
    s->facts.second_hello_end = s->sent[CLIENT];
    return r;
}

static inline struct record *script_server_hello(struct script *s)
{
    struct facts *f = &s->facts;
    struct record *r = script_record(s, RECORD_HANDSHAKE, 122);
    r->first_message = HANDSHAKE_SERVER_HELLO;
    f->messages[SERVER] |= 1U << HANDSHAKE_SERVER_HELLO;
    f->server_hello_seen = f->server_hello_complete = 1;
    f->server_hello_ns = f->server_hello_last_ns = s->now_ns;
    f->server_hello_end = s->sent[SERVER];
    return r;
}

static inline struct record *script_retry(struct script *s)
{
    struct record *r = script_record(s, RECORD_HANDSHAKE, 88);
    r->first_message = HANDSHAKE_SERVER_HELLO;
    s->facts.hello_retry = 1;
    s->facts.hello_retry_ns = s->now_ns;
    s->facts.hello_retry_end = s->sent[SERVER];
    return r;
}

static inline struct record *script_message(struct script *s, const char *word)
{
    char *rest;
    unsigned type = (unsigned)strtoul(word, &rest, 10);
    uint32_t len = *rest == ':' ? (uint32_t)strtoul(rest + 1, &rest, 10) : 40;
    struct record *r = script_record(s, RECORD_HANDSHAKE, len);
    if (type != 0) {
        r->first_message = (uint8_t)type;
        s->facts.messages[s->side] |= 1U << type;
    }
    return r;
}

static inline struct record *script_alert(struct script *s, const char *word)
{
    struct facts *f = &s->facts;
    if (!isdigit((unsigned char)*word))
        return script_record(s, RECORD_ALERT, 26);
    struct record *r = script_record(s, RECORD_ALERT, 2);
    f->alert_seen[s->side] = 1;
    f->alert_level[s->side] = 2;
    f->alert_description[s->side] = (uint8_t)atoi(word);
    f->alert_ns[s->side] = s->now_ns;
    return r;
}

static inline struct record *script_ccs(struct script *s)
{
    struct facts *f = &s->facts;
    struct record *r = script_record(s, RECORD_CHANGE_CIPHER_SPEC, 1);
    if (f->ccs_ns[s->side] == 0) {
        f->ccs_ns[s->side] = s->now_ns;
        f->ccs_offset[s->side] = r->offset;
        f->ccs_ack[s->side] = r->ack;
    }
    return r;
}

static inline void script_mark(struct script *s, struct record *r, const char *word)
{
    int index = (int)(r - s->records);
    for (const char *mark = word + strlen(word) - 1; mark > word && !isdigit((unsigned char)*mark);
         mark--) {
        if (*mark == '?')
            s->marks.request = index;
        else if (*mark == '!')
            s->marks.response = index;
        else if (*mark == 'f')
            s->marks.finished[s->side] = index;
        else if (*mark == 'e')
            s->marks.end_of_early_data = index;
        else if (*mark == 't')
            s->marks.is_ticket[index] = true;
        else if (*mark == 'u')
            r->flags |= RECORD_UNSURE;
        else if (*mark == 'r') {
            r->flags |= RECORD_RESENT;
            r->acked_at_ns = r->all_acked_at_ns = r->at_ns + 200 * SCRIPT_MS;
        } else
            cr_assert_fail("mark %c of %s", *mark, word);
    }
}

static inline bool script_starts(const char *word, const char *prefix)
{
    return strncmp(word, prefix, strlen(prefix)) == 0;
}

static inline void script_word(struct script *s, const char *word)
{
    struct facts *f = &s->facts;
    if (strcmp(word, "C") == 0 || strcmp(word, "S") == 0)
        script_segment(s, *word == 'C' ? CLIENT : SERVER, true);
    else if (strcmp(word, "c") == 0 || strcmp(word, "s") == 0)
        script_segment(s, *word == 'c' ? CLIENT : SERVER, false);
    else if (strcmp(word, "_") == 0)
        s->has_ack = false;
    else if (*word == '+')
        s->now_ns += atoi(word + 1) * (int64_t)SCRIPT_MS;
    else if (strcmp(word, "fin") == 0)
        f->fin_ns[s->side] = s->now_ns;
    else if (strcmp(word, "rst") == 0)
        f->reset_ns[s->side] = s->now_ns;
    else if (strcmp(word, "hello2") == 0)
        script_second_hello(s);
    else if (strcmp(word, "hello") == 0)
        s->side == CLIENT ? script_client_hello(s) : script_server_hello(s);
    else if (strcmp(word, "retry") == 0)
        script_retry(s);
    else if (script_starts(word, "ccs"))
        script_ccs(s);
    else if (script_starts(word, "alert"))
        script_alert(s, word + strlen("alert"));
    else if (script_starts(word, "hole"))
        script_record(s, RECORD_HOLE, (uint32_t)atoi(word + strlen("hole")));
    else if (script_starts(word, "cut"))
        script_record(s, RECORD_CUT, (uint32_t)atoi(word + strlen("cut")));
    else if (*word == 'm')
        script_mark(s, script_message(s, word + 1), word);
    else if (isdigit((unsigned char)*word))
        script_mark(s, script_record(s, RECORD_APPLICATION_DATA, (uint32_t)atoi(word)), word);
    else
        cr_assert_fail("word %s", word);
}

/* ---- the line ---- */

/* SYN, SYN/ACK, ACK as the client sees them, 20 ms round trip. */
static inline void script_connect(struct script *s)
{
    struct facts *f = &s->facts;
    f->start_ns = INT64_C(1700000000) * 1000000000;
    f->client_basis = CLIENT_BY_SYN;
    f->syn_seen = 1;
    f->syn_count = f->syn_ack_count = 1;
    f->syn_answered_ns = f->start_ns;
    f->syn_ack_ns = f->syn_ack_answered_ns = f->start_ns + SCRIPT_RTT_NS;
    f->ack_ns = f->client_after_syn_ack_ns = f->syn_ack_ns + 20000;
    f->ack_is_pure = 1;
    f->packets[CLIENT] = 2;
    f->packets[SERVER] = 1;
    f->ended = ENDED_FIN;
    s->now_ns = f->ack_ns;
}

/*
 * Reads a line. The facts start as a TLS 1.3 flow with AES-256 (Finished is 69 bytes long) whose
 * client offers nothing; tests change fields before they judge. Texts are not owned.
 */
static inline void script_read(struct script *s, const char *line)
{
    *s = (struct script){
        .marks = { .request = -1, .response = -1, .finished = { -1, -1 }, .end_of_early_data = -1 },
        .has_ack = true,
    };
    script_connect(s);
    s->facts.tls = 1;
    s->facts.version = s->facts.client_version = TLS_1_3;
    s->facts.cipher_suite = 0x1302;
    s->facts.session_id_len = 32;
    s->facts.server.port = 443;
    s->facts.records = s->records;
    char copy[1024];
    cr_assert_lt(strlen(line), sizeof copy);
    strcpy(copy, line);
    for (char *save, *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        script_word(s, word);
    s->facts.records_seen[CLIENT] = s->facts.record_count;
}

/* A client that offers a ticket of that length, and a server that takes it. */
static inline void script_resume(struct script *s, uint16_t identity_len)
{
    s->facts.psk_offered = s->facts.psk_selected = 1;
    s->facts.psk_identity_count = 1;
    s->facts.psk_identity_len = identity_len;
}

static inline void script_offer_early_data(struct script *s)
{
    s->facts.early_data_offered = 1;
}

#endif
