/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RANDOM_FACTS_H
#define RANDOM_FACTS_H
/*
 * Facts that no connection would leave, but a hostile capture might: every field drawn, records of
 * random order, offsets and acknowledgments, with lengths that the judge looks for.
 */
#include "facts.h"
#include "hello.h"

/* A source of bytes: a generator with a seed, or input of a fuzzer that ends in zeros. */
struct entropy {
    uint64_t state;
    struct reader input;
    bool has_input;
};

static inline uint32_t draw(struct entropy *e, uint32_t below)
{
    if (e->has_input)
        return reader_u32(&e->input) % below;
    e->state = e->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(e->state >> 33) % below;
}

static inline bool draw_bool(struct entropy *e)
{
    return draw(e, 2) != 0;
}

/* Zero, or a time within a second of the start. */
static inline int64_t draw_time(struct entropy *e, int64_t start_ns)
{
    return draw(e, 4) == 0 ? 0 : start_ns - 1000000 + draw(e, 1000000000);
}

static inline uint32_t draw_len(struct entropy *e)
{
    static const uint32_t LENGTHS[] = { 0,  13, 19, 21,  22,  23,  26,  34,  45,   53,
                                        66, 69, 85, 106, 250, 258, 272, 429, 1024, 16401 };
    if (draw_bool(e))
        return LENGTHS[draw(e, sizeof LENGTHS / sizeof *LENGTHS)];
    return draw(e, 18000);
}

static inline struct record draw_record(struct entropy *e, int64_t start_ns)
{
    static const uint8_t TYPES[] = { 0, 1, 20, 21, 22, 22, 23, 23, 23, 23, 23, 24 };
    return (struct record){
        .at_ns = start_ns + draw(e, 1000000000),
        .last_at_ns = start_ns + draw(e, 1000000000),
        .acked_at_ns = draw_time(e, start_ns),
        .all_acked_at_ns = draw_time(e, start_ns),
        .packet_no = draw(e, 100),
        .last_packet_no = draw(e, 100),
        .offset = draw(e, 16) == 0 ? OFFSET_MAX : (int32_t)draw(e, 4000),
        .ack = draw(e, 8) == 0 ? ACK_UNKNOWN : (int32_t)draw(e, 4000),
        .len = draw(e, 64) == 0 ? UINT32_MAX : draw_len(e),
        .skipped = draw(e, 8) == 0 ? (uint16_t)draw(e, UINT16_MAX) : 0,
        .skipped_len = draw(e, 8) == 0 ? draw(e, UINT32_MAX) : 0,
        .side = (uint8_t)draw(e, 2),
        .type = TYPES[draw(e, sizeof TYPES)],
        .flags = (uint8_t)draw(e, 64),
        .first_message = (uint8_t)draw(e, 256),
        .content = draw_bool(e) ? 0 : (uint16_t)(draw(e, 5) | draw(e, 8192) << 3),
    };
}

static inline void draw_facts(struct entropy *e, struct facts *f,
                              struct record records[RECORDS_MAX])
{
    static const uint16_t VERSIONS[] = { 0,
                                         SSL_2_0,
                                         SSL_3_0,
                                         TLS_1_0,
                                         TLS_1_2,
                                         TLS_1_3,
                                         TLS_1_3,
                                         TLS_1_3,
                                         TLS_1_3_DRAFT + 18,
                                         TLS_1_3_DRAFT + 28 };
    static const uint16_t SUITES[] = { 0, 0x1301, 0x1302, 0x1303, 0x1305, 0xc02f, 0x002f };
    *f = (struct facts){ 0 };
    int64_t start_ns = INT64_C(1700000000) * 1000000000;
#define DRAW(type, name) f->name = (type)draw(e, 3);
#define DRAW_2(type, name) f->name[0] = (type)draw(e, 3), f->name[1] = (type)draw(e, 3);
    FACTS_SCALAR(DRAW, DRAW_2)
#undef DRAW
#undef DRAW_2
    f->start_ns = start_ns;
    f->tls = draw(e, 8) != 0;
    f->hello_side = draw(e, 8) == 0;
    f->server_hello_seen = draw(e, 8) != 0;
    f->server_hello_complete = draw(e, 4) != 0;
    f->version = VERSIONS[draw(e, sizeof VERSIONS / sizeof *VERSIONS)];
    f->client_version = VERSIONS[draw(e, sizeof VERSIONS / sizeof *VERSIONS)];
    f->cipher_suite = SUITES[draw(e, sizeof SUITES / sizeof *SUITES)];
    f->psk_identity_len = (uint16_t)draw(e, 300);
    f->client_hello_end = (int32_t)draw(e, 1000);
    f->second_hello_end = draw(e, 4) == 0 ? (int32_t)draw(e, 2000) : 0;
    f->server_hello_end = (int32_t)draw(e, 1000);
    f->hello_retry_end = draw(e, 4) == 0 ? (int32_t)draw(e, 1000) : 0;
    f->messages[CLIENT] = draw(e, UINT32_MAX);
    f->messages[SERVER] = draw(e, UINT32_MAX);
    int64_t *times[] = {
        &f->syn_answered_ns,          &f->syn_ack_ns,
        &f->syn_ack_answered_ns,      &f->ack_ns,
        &f->server_hello_ns,          &f->hello_retry_ns,
        &f->client_hello_ns,          &f->client_after_syn_ack_ns,
        &f->fin_ns[CLIENT],           &f->fin_ns[SERVER],
        &f->reset_ns[CLIENT],         &f->reset_ns[SERVER],
        &f->plain_response_ns,        &f->first_payload_ns[CLIENT],
        &f->first_payload_ns[SERVER],
    };
    for (unsigned i = 0; i < sizeof times / sizeof *times; i++)
        *times[i] = draw_time(e, start_ns);
    f->data_rtt_ns = draw(e, 100000000);
    f->resend_count = (uint8_t)draw(e, RESENDS_MAX + 1);
    for (unsigned i = 0; i < f->resend_count; i++)
        f->resends[i] = (struct resend){ .at_ns = start_ns + draw(e, 1000000000),
                                         .wait_ns = draw(e, 1000000000),
                                         .side = (uint8_t)draw(e, 2) };
    f->records = records;
    f->record_count = (uint16_t)draw(e, RECORDS_MAX + 1);
    for (unsigned i = 0; i < f->record_count; i++)
        records[i] = draw_record(e, start_ns);
}

static inline void random_facts(unsigned seed, struct facts *ret_facts,
                                struct record records[RECORDS_MAX])
{
    struct entropy e = { .state = seed };
    draw_facts(&e, ret_facts, records);
}

#endif
