/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *      client                                     server
 *      ClientHello [early data ...]   -------->
 *                                     <--------   ServerHello, flight ending in Finished
 *      [EndOfEarlyData] [cert] Finished  ------>
 *      request                        -------->
 *                                     <--------   [tickets], response
 *
 * All of it but the hellos is application_data outside. Three things still tell the messages apart:
 *
 * - Length. EndOfEarlyData and Finished have lengths that follow from the cipher suite.
 * - Acknowledgment. A segment acknowledges what its sender had received: what the client sent
 *   without the ServerHello is early data, what the server sent without the client's Finished
 *   belongs to its flight (or to tickets and data it sends without waiting).
 * - Order. Handshake messages stand in a fixed order (RFC 8446 4).
 *
 * Undecidable: padded records (RFC 8446 5.4), unless by order; Certificate and Finished in one
 * record (NSS), where no record has Finished's length; a flight with bytes missing.
 */
#include "tls13.h"

#include "hello.h"

enum {
    CONTENT_TYPE_LEN = 1,
    TAG_LEN_USUAL = 16,
    HANDSHAKE_HEADER_LEN = 4,
    ALERT_LEN = 2,
    KEY_UPDATE_LEN = 5,
    JDK_PADDING = 16,
    PADDING_BLOCK_MIN = 64,
    EMPTY_CERTIFICATE_LEN = 8, /* the least a client can answer to a CertificateRequest */
    HASH_LEN_MIN = 32,
    HASH_LEN_MAX = 48,
    /* Certificate, CertificateVerify and Finished, the first of which may fill many records. */
    CLIENT_FLIGHT_RECORDS_MAX = 8,
    /* EncryptedExtensions, CertificateRequest, Certificate, CertificateVerify stand before it. */
    FULL_FLIGHT_BEFORE_FINISHED_MIN = 2,
    /* A server's flight of one record with no certificate in it is shorter than this. */
    ONE_RECORD_FULL_MIN = 300,
};

/* Two records of one write that straddle two segments; a signature in between takes longer. */
static const int64_t SAME_WRITE_NS = INT64_C(5) * 1000000;

struct lengths13 lengths13_of(uint16_t cipher_suite)
{
    unsigned hash = cipher_suite_hash_len(cipher_suite);
    unsigned tag = cipher_suite_tag_len(cipher_suite);
    uint32_t overhead = CONTENT_TYPE_LEN + (tag == 0 ? TAG_LEN_USUAL : tag);
    return (struct lengths13){
        .overhead = overhead,
        .finished = hash == 0 ? 0 : HANDSHAKE_HEADER_LEN + hash + overhead,
        .end_of_early_data = HANDSHAKE_HEADER_LEN + overhead,
        .alert = ALERT_LEN + overhead,
        .key_update = KEY_UPDATE_LEN + overhead,
    };
}

static bool is_data(const struct series *s, int place)
{
    return series_at(s, place)->type == RECORD_APPLICATION_DATA;
}

/* Next place at or behind `from` that holds application_data outside; NOWHERE without. */
static int next_data(const struct series *s, int from)
{
    return series_find(s, from, RECORD_APPLICATION_DATA);
}

static uint32_t padded(uint32_t len, enum padding padding)
{
    return padding == PADDING_BYTES_16 ? len + JDK_PADDING : len;
}

static bool has_finished_length(const struct tls13 *h, uint32_t len, enum padding padding)
{
    if (h->len.finished != 0)
        return len == padded(h->len.finished, padding);
    uint32_t rest = HANDSHAKE_HEADER_LEN + h->len.overhead;
    return len == padded(HASH_LEN_MIN + rest, padding) ||
           len == padded(HASH_LEN_MAX + rest, padding);
}

static uint32_t common_divisor(uint32_t a, uint32_t b)
{
    while (b != 0) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The block that every encrypted record from a place on is a multiple of, tag aside; 0 = none. */
static uint32_t padding_block(const struct tls13 *h, const struct series *s, int from)
{
    uint32_t block = 0;
    int records = 0;
    for (int place = from; place < s->count; place++) {
        if (!is_data(s, place))
            continue;
        uint32_t tag = h->len.overhead - CONTENT_TYPE_LEN;
        if (series_at(s, place)->len <= tag)
            return 0;
        block = common_divisor(series_at(s, place)->len - tag, block);
        records++;
    }
    return records >= 2 && block >= PADDING_BLOCK_MIN ? block : 0;
}

int64_t tls13_first_answer_end(const struct facts *f)
{
    return f->hello_retry_end > 0 ? f->hello_retry_end : f->server_hello_end;
}

static int64_t client_hellos_end(const struct facts *f)
{
    return f->second_hello_end > f->client_hello_end ? f->second_hello_end : f->client_hello_end;
}

/*
 * Whether a record of the client was sent with the ServerHello in hand. Where acknowledgments are
 * missing, time decides: right near the client, and near the server never wrong about Finished.
 */
static bool has_server_hello(const struct facts *f, const struct record *r)
{
    if (f->server_hello_end == 0)
        return false;
    enum sent sent = record_sent(r, f->server_hello_end);
    return sent == SENT_AFTER || (sent == SENT_UNKNOWN && r->at_ns >= f->server_hello_ns);
}

/* First place of the client with the ServerHello in hand; NOWHERE without. */
static int client_answer(const struct facts *f, const struct series *client)
{
    int place = series_from_offset(client, client_hellos_end(f));
    while ((place = next_data(client, place)) != NOWHERE) {
        if (has_server_hello(f, series_at(client, place)))
            return place;
        place++;
    }
    return NOWHERE;
}

/* A SYN with data (TCP Fast Open) acknowledges nothing; what passed here first was sent first. */
static bool is_sent_before_answer(const struct facts *f, const struct record *r, int64_t answer_end)
{
    int64_t answer_ns = f->hello_retry_end > 0 ? f->hello_retry_ns : f->server_hello_ns;
    enum sent sent = record_sent(r, answer_end);
    return sent == SENT_BEFORE || (sent == SENT_UNKNOWN && r->at_ns < answer_ns);
}

/* Bytes behind a snaplen that are more than the ChangeCipherSpec which may follow a hello. */
static bool may_be_cut_data(const struct record *r)
{
    enum { CHANGE_CIPHER_SPEC_RECORD_LEN = 6 };
    return r->type == RECORD_CUT && r->len > CHANGE_CIPHER_SPEC_RECORD_LEN;
}

static void find_early_data(struct tls13 *h, const struct facts *f)
{
    int64_t answer_end = tls13_first_answer_end(f);
    for (int place = series_from_offset(&h->client, f->client_hello_end); place < h->client.count;
         place++) {
        const struct record *r = series_at(&h->client, place);
        if (r->type != RECORD_APPLICATION_DATA && !may_be_cut_data(r))
            continue;
        if (answer_end > 0 && !is_sent_before_answer(f, r, answer_end))
            return;
        if (h->early_first == NOWHERE)
            h->early_first = place;
        h->early_last = place;
    }
}

/* The record before a place if it continues the stream without a loss; ChangeCipherSpec is skipped.
 */
static int record_before(const struct series *s, int place)
{
    int before = place - 1;
    while (before >= 0 && series_at(s, before)->type == RECORD_CHANGE_CIPHER_SPEC)
        before--;
    if (before < 0 || series_is_broken_between(s, before, place))
        return NOWHERE;
    return before;
}

/* RFC 8446 4.5: EndOfEarlyData is alone in its record, and Finished follows under other keys. */
static bool is_end_of_early_data(const struct tls13 *h, const struct facts *f, int place)
{
    if (place == NOWHERE || !is_data(&h->client, place))
        return false;
    const struct record *r = series_at(&h->client, place);
    return r->len == padded(h->len.end_of_early_data, h->client_padding) && has_server_hello(f, r);
}

static bool is_one_write(const struct record *a, const struct record *b)
{
    return a->last_packet_no == b->packet_no || b->at_ns - a->last_at_ns <= SAME_WRITE_NS;
}

static void set_finished(struct tls13 *h, int place, bool by_length)
{
    h->client_finished = place;
    h->finished_by_length = by_length;
}

static bool has_client_finished_length(const struct tls13 *h, int place)
{
    return is_data(&h->client, place) &&
           has_finished_length(h, series_at(&h->client, place)->len, h->client_padding);
}

/* With an offer of early data, the pair of EndOfEarlyData and Finished is looked for first. */
static void find_finished_after_early_data(struct tls13 *h, const struct facts *f, int answer)
{
    for (int place = answer; place < h->client.count; place++) {
        if (!has_client_finished_length(h, place))
            continue;
        if (h->client_finished == NOWHERE)
            set_finished(h, place, true);
        int before = record_before(&h->client, place);
        if (!is_end_of_early_data(h, f, before))
            continue;
        const struct record *end = series_at(&h->client, before);
        const struct record *finished = series_at(&h->client, place);
        if (!is_one_write(end, finished))
            continue;
        set_finished(h, place, true);
        h->end_of_early_data = before;
        h->end_of_early_data_close = end->last_packet_no == finished->packet_no;
        h->client_flight = before;
        return;
    }
}

/* Without early data, the first encrypted record of the client begins Certificate or is Finished.
 */
static void find_plain_finished(struct tls13 *h, int answer)
{
    if (series_at(&h->client, answer)->len == padded(h->len.alert, h->client_padding))
        return;
    int last = answer + CLIENT_FLIGHT_RECORDS_MAX;
    for (int place = answer; place < h->client.count && place <= last; place++) {
        if (has_client_finished_length(h, place)) {
            set_finished(h, place, true);
            return;
        }
    }
}

/* Where no record has Finished's length: padding, or Certificate and Finished in one record. */
static void find_finished_by_place(struct tls13 *h, int answer)
{
    uint32_t len = series_at(&h->client, answer)->len;
    if (len < h->len.end_of_early_data + HASH_LEN_MIN)
        return;
    set_finished(h, answer, false);
    h->finished_with_others =
        h->client_padding != PADDING_BLOCK && len >= h->len.finished + EMPTY_CERTIFICATE_LEN;
}

static bool has_finished_within(const struct tls13 *h, int from, enum padding padding)
{
    const struct series *s = &h->client;
    for (int place = from; place < s->count && place <= from + CLIENT_FLIGHT_RECORDS_MAX; place++)
        if (is_data(s, place) && has_finished_length(h, series_at(s, place)->len, padding))
            return true;
    return false;
}

/* JDK pads each record by 16 bytes, so that its Finished has a length of its own. */
static enum padding client_padding_of(const struct tls13 *h, int answer)
{
    if (padding_block(h, &h->client, answer) != 0)
        return PADDING_BLOCK;
    if (!has_finished_within(h, answer, PADDING_NONE) &&
        has_finished_within(h, answer, PADDING_BYTES_16))
        return PADDING_BYTES_16;
    return PADDING_NONE;
}

static void find_client_finished(struct tls13 *h, const struct facts *f)
{
    int answer = client_answer(f, &h->client);
    if (answer == NOWHERE)
        return;
    h->client_padding = client_padding_of(h, answer);
    h->client_flight = answer;
    bool may_have_early_data =
        f->early_data_offered || h->early_first != NOWHERE || !f->client_hello_complete;
    if (may_have_early_data && !f->hello_retry)
        find_finished_after_early_data(h, f, answer);
    else
        find_plain_finished(h, answer);
    if (h->client_finished == NOWHERE && !f->early_data_offered)
        find_finished_by_place(h, answer);
    if (h->client_finished == NOWHERE)
        return;
    int hello = series_from_offset(&h->client, f->client_hello_end);
    h->client_broken = series_is_broken_between(&h->client, hello, h->client_finished);
}

static uint32_t alert_len(const struct tls13 *h, enum side side)
{
    if (side == CLIENT)
        return padded(h->len.alert, h->client_padding);
    if (h->server_padding == PADDING_BLOCK)
        return h->server_block + h->len.overhead - CONTENT_TYPE_LEN;
    return padded(h->len.alert, h->server_padding);
}

bool tls13_is_final_alert(const struct tls13 *h, enum side side, int place)
{
    const struct series *s = side == CLIENT ? &h->client : &h->server;
    for (; place < s->count; place++) {
        const struct record *r = series_at(s, place);
        if (r->type != RECORD_APPLICATION_DATA || r->len != alert_len(h, side) ||
            r->flags & RECORD_MERGED)
            return false;
    }
    return true;
}

/* Accepted: all between hello and EndOfEarlyData, also what crossed the ServerHello on its way. */
static void extend_early_data(struct tls13 *h, const struct facts *f)
{
    if (h->end_of_early_data == NOWHERE)
        return;
    int first = next_data(&h->client, series_from_offset(&h->client, f->client_hello_end));
    if (first == h->end_of_early_data)
        return;
    if (h->early_first == NOWHERE || first < h->early_first)
        h->early_first = first;
    h->early_last = h->end_of_early_data - 1;
}

static void find_client_data(struct tls13 *h)
{
    if (h->client_finished == NOWHERE)
        return;
    int place = next_data(&h->client, h->client_finished + 1);
    if (place != NOWHERE && !tls13_is_final_alert(h, CLIENT, place))
        h->client_data = place;
}

/* Stream offset of the client behind its Finished: what the server sent with less cannot know it.
 */
static int64_t client_finished_end(const struct tls13 *h)
{
    return h->client_finished == NOWHERE ? INT64_MAX
                                         : record_end(series_at(&h->client, h->client_finished));
}

/* Last place of the records that the server sent without having the client's Finished. */
static int last_of_flight(const struct tls13 *h)
{
    int64_t end = client_finished_end(h);
    int last = h->server_flight;
    for (int place = last; place < h->server.count; place++) {
        if (!is_data(&h->server, place))
            continue;
        if (record_sent(series_at(&h->server, place), end) == SENT_AFTER)
            break;
        last = place;
    }
    return last;
}

/* A record longer than this was filled up, so the message goes on in the next one. */
static uint32_t full_record_len(const struct tls13 *h, const struct facts *f)
{
    enum { PLAINTEXT_MAX = 16384, RECORD_SIZE_LIMIT_MIN = 64 };
    uint32_t limit =
        f->record_size_limit >= RECORD_SIZE_LIMIT_MIN ? f->record_size_limit : PLAINTEXT_MAX + 1;
    return limit + h->len.overhead - CONTENT_TYPE_LEN;
}

static bool find_finished_by_length(struct tls13 *h, const struct facts *f, int last)
{
    int before = f->psk_selected ? 1 : FULL_FLIGHT_BEFORE_FINISHED_MIN;
    for (int place = h->server_flight, seen = 0; place <= last; place++) {
        if (!is_data(&h->server, place))
            continue;
        if (seen >= before &&
            has_finished_length(h, series_at(&h->server, place)->len, h->server_padding)) {
            h->shape = FLIGHT_SEPARATE;
            h->server_finished = place;
            h->certificate_request =
                !f->psk_selected && seen == 4 &&
                series_at(&h->server, h->server_flight + 1)->len < ONE_RECORD_FULL_MIN;
            return true;
        }
        seen++;
        if (f->psk_selected && seen > before + 1)
            return false;
    }
    return false;
}

/*
 * One record holds the flight; or, when it is too long for one, several full ones and a rest. A
 * full flight that begins with a short record had messages of their own, and its Finished is not
 * among the records that were kept.
 */
static void find_flight_of_one_record(struct tls13 *h, const struct facts *f, int last)
{
    if (!f->psk_selected && last > h->server_flight &&
        series_at(&h->server, h->server_flight)->len < ONE_RECORD_FULL_MIN) {
        h->shape = FLIGHT_SEPARATE;
        h->server_finished = last;
        h->server_broken = true;
        return;
    }
    uint32_t full = full_record_len(h, f);
    int place = h->server_flight;
    while (place < last && is_data(&h->server, place) && series_at(&h->server, place)->len >= full)
        place++;
    h->shape = FLIGHT_ONE;
    h->server_finished = place;
}

/* Padded to blocks: by number, EncryptedExtensions, [Certificate, CertificateVerify], Finished. */
static void find_padded_finished(struct tls13 *h, const struct facts *f, int last)
{
    int place = h->server_flight + (f->psk_selected ? 1 : 3);
    h->shape = FLIGHT_SEPARATE;
    h->server_finished = place < last ? place : last;
}

/*
 * Whether a snaplen or a hole swallowed the flight. A client sends Finished when it has all of it,
 * so what lies behind the bytes that its Finished acknowledges is no part of the flight.
 */
static bool flight_is_lost(struct tls13 *h, int hello, int first)
{
    if (hello >= h->server.count || !record_is_gap(series_at(&h->server, hello)))
        return false;
    if (first == NOWHERE)
        return true;
    if (h->client_finished == NOWHERE)
        return false;
    const struct record *finished = series_at(&h->client, h->client_finished);
    return finished->ack != ACK_UNKNOWN && series_at(&h->server, first)->offset >= finished->ack;
}

static void find_server_flight(struct tls13 *h, const struct facts *f)
{
    if (f->server_hello_end == 0)
        return;
    int hello = series_from_offset(&h->server, f->server_hello_end);
    int first = next_data(&h->server, hello);
    if (flight_is_lost(h, hello, first)) {
        h->server_finished = hello;
        h->server_broken = true;
        return;
    }
    if (first == NOWHERE)
        return;
    h->server_flight = first;
    int last = last_of_flight(h);
    h->server_block = padding_block(h, &h->server, first);
    if (h->server_block != 0) {
        h->server_padding = PADDING_BLOCK;
        find_padded_finished(h, f, last);
    } else if (!find_finished_by_length(h, f, last)) {
        find_flight_of_one_record(h, f, last);
    }
    h->server_broken |= series_is_broken_between(&h->server, hello, h->server_finished);
}

struct tls13 tls13_of(const struct facts *f)
{
    struct tls13 h = {
        .len = lengths13_of(f->cipher_suite),
        .client = series_of(f, CLIENT),
        .server = series_of(f, SERVER),
        .early_first = NOWHERE,
        .early_last = NOWHERE,
        .end_of_early_data = NOWHERE,
        .client_finished = NOWHERE,
        .client_flight = NOWHERE,
        .client_data = NOWHERE,
        .server_flight = NOWHERE,
        .server_finished = NOWHERE,
    };
    find_early_data(&h, f);
    find_client_finished(&h, f);
    extend_early_data(&h, f);
    find_client_data(&h);
    find_server_flight(&h, f);
    return h;
}
