/* SPDX-License-Identifier: Apache-2.0 */
#include "ladder.h"

#include <criterion/criterion.h>
#include <locale.h>
#include <stdlib.h>

static void use_utf8(void)
{
    cr_assert_not_null(setlocale(LC_CTYPE, "C.UTF-8"));
}

TestSuite(ladder, .init = use_utf8);

#define START_NS INT64_C(1780408991204518000) /* 2026-06-02 14:03:11.204518 UTC */

#define INTEGER(number)                                                                            \
    {                                                                                              \
        true, (number)                                                                             \
    }
#define TEXT(string)                                                                               \
    {                                                                                              \
        (string), sizeof(string) - 1, false                                                        \
    }

/* A flow of 0-RTT that the server answered early, as seen near the server. */
static struct flow_row early_row(void)
{
    return (struct flow_row){
        .flow_id = INTEGER(48213),
        .flow_uid = TEXT("00112233445566778899aabbccddeeff"),
        .client_ip = TEXT("203.0.113.7"),
        .client_port = INTEGER(51822),
        .client_region = TEXT("na"),
        .client_asn = INTEGER(64500),
        .server_ip = TEXT("192.0.2.10"),
        .server_port = INTEGER(443),
        .site = TEXT("iad1"),
        .start_epoch_ns = INTEGER(START_NS),
        .syn_seen = INTEGER(1),
        .syn_ack_at_ns = INTEGER(41000),
        .ack_at_ns = INTEGER(70241000),
        .sides_seen = TEXT("both"),
        .handshake = TEXT("0-rtt"),
        .handshake_basis = TEXT("strong"),
        .outcome = TEXT("completed"),
        .early_data = TEXT("accepted"),
        .early_data_basis = TEXT("strong"),
        .answered_early = INTEGER(1),
        .tls_version = TEXT("TLSv1.3"),
        .sni = TEXT("www.example.com"),
        .alpn = TEXT("h2"),
        .vantage = TEXT("server"),
        .rtt_basis = TEXT("ack"),
        .client_rtt_ns = INTEGER(70200000),
        .request_record_no = INTEGER(1),
        .response_record_no = INTEGER(5),
        .response_low_at_ns = INTEGER(73894000),
        .response_at_ns = INTEGER(73894000),
        .response_high_at_ns = INTEGER(73894000),
        .response_basis = TEXT("protocol"),
        .response_ns = INTEGER(73894000),
        .perceived_ns = INTEGER(144094000),
        .connect_ns = INTEGER(70241000),
        .hello_wait_ns = INTEGER(77000),
        .tls_ns = INTEGER(0),
        .request_wait_ns = INTEGER(0),
        .server_wait_ns = INTEGER(3576000),
        .round_trips = INTEGER(2.1),
        .expected_round_trips = INTEGER(2),
    };
}

static struct record record(enum side side, int64_t at_ns, enum record_type type, uint32_t len,
                            uint8_t first_message)
{
    return (struct record){ .side = (uint8_t)side,
                            .at_ns = START_NS + at_ns,
                            .type = (uint8_t)type,
                            .len = len,
                            .ack = 100000,
                            .first_message = first_message };
}

enum { EARLY_RECORDS = 9 };

static char ticket_key_name[] = "4f1c09aabbccddeeff0011223344559a"; /* facts own theirs */

/* Facts and verdict of the same flow; records are the caller's. */
static struct facts early_facts(struct record *records, struct verdict *ret_verdict)
{
    const struct record all[EARLY_RECORDS] = {
        record(CLIENT, 70318000, RECORD_HANDSHAKE, 583, 1),
        record(CLIENT, 70318000, RECORD_APPLICATION_DATA, 412, 255),
        record(SERVER, 71102000, RECORD_HANDSHAKE, 128, 2),
        record(SERVER, 71102000, RECORD_APPLICATION_DATA, 40, 255),
        record(SERVER, 71102000, RECORD_APPLICATION_DATA, 69, 255),
        record(SERVER, 73894000, RECORD_APPLICATION_DATA, 1412, 255),
        record(CLIENT, 141377000, RECORD_APPLICATION_DATA, 21, 255),
        record(CLIENT, 141377000, RECORD_APPLICATION_DATA, 69, 255),
        record(SERVER, 141590000, RECORD_APPLICATION_DATA, 258, 255),
    };
    static const enum role roles[EARLY_RECORDS] = {
        ROLE_CLEAR,
        ROLE_EARLY_DATA,
        ROLE_CLEAR,
        ROLE_ENCRYPTED_EXTENSIONS,
        ROLE_FINISHED,
        ROLE_RESPONSE,
        ROLE_END_OF_EARLY_DATA,
        ROLE_FINISHED,
        ROLE_TICKET,
    };
    memcpy(records, all, sizeof all);
    *ret_verdict = (struct verdict){ .handshake_done_ns = START_NS + 141377000 };
    for (size_t i = 0; i < EARLY_RECORDS; i++)
        ret_verdict->role[i] = (uint8_t)roles[i];
    return (struct facts){
        .start_ns = START_NS,
        .records = records,
        .record_count = EARLY_RECORDS,
        .client_hello_seen = 1,
        .client_hello_complete = 1,
        .early_data_offered = 1,
        .psk_offered = 1,
        .psk_identity_len = 208,
        .server_hello_seen = 1,
        .server_hello_complete = 1,
        .server_hello_end = 133,
        .version = 0x0304,
        .cipher_suite = 0x1302,
        .psk_selected = 1,
        .ticket_key_name = ticket_key_name,
    };
}

static const struct server_profile_row SERVER_PROFILE = {
    .ticket_len = INTEGER(208),
    .encrypted_extensions_len = INTEGER(36),
};

static char *drawn(const struct flow_row *row, const struct facts *facts,
                   const struct verdict *verdict, struct ladder_style style)
{
    struct text out = { 0 };
    ladder_draw(row, facts, verdict, &SERVER_PROFILE, style, &out);
    cr_assert(!out.failed);
    return out.at;
}

static char *drawn_early(struct ladder_style style)
{
    struct record records[EARLY_RECORDS];
    struct verdict verdict;
    struct facts facts = early_facts(records, &verdict);
    struct flow_row row = early_row();
    return drawn(&row, &facts, &verdict, style);
}

Test(ladder, early_answer_lies_inside_the_bracket)
{
    char *text = drawn_early((struct ladder_style){ .width = 100 });
    cr_expect_str_eq(
        text,
        "flow 48213  0-rtt (strong), answered early     www.example.com  TLSv1.3  h2\n"
        "203.0.113.7:51822 na AS64500  ->  192.0.2.10:443 iad1     2026-06-02 14:03:11.204518 UTC\n"
        "seen near the server: client 70.2 ms away; add that to the response for what the client "
        "felt\n"
        "\n"
        " seen ms      +ms   client              server   bytes  taken for, and why\n"
        "   0.000            |- SYN ----------------->|\n"
        "   0.041    0.041   |<------------- SYN/ACK -|\n"
        "  70.241   70.200   |- ACK ----------------->|         client round trip 70.2\n"
        "  70.318    0.077 / |- ClientHello --------->|    583  offers early_data, psk; ticket key "
        "4f1c09..9a\n"
        "  70.318    0.000 | |- early data ---------->|    412  REQUEST, 1 early record\n"
        "  71.102    0.784 | |<--------- ServerHello -|    128  psk 0 selected: resumed, certain\n"
        "  71.102    0.000 | |<- EncryptedExtensions -|     40  36 usual + 4: early data accepted "
        "(supports)\n"
        "  71.102    0.000 | |<------------ Finished -|     69  by length, SHA-384\n"
        "  73.894    2.792 | |<------------ RESPONSE -|  1,412  acknowledges the whole request: "
        "exact\n"
        " 141.377   67.483 \\ |- EndOfEarlyData ------>|     21  acknowledges ServerHello, next to "
        "Finished\n"
        " 141.377    0.000   |- Finished ------------>|     69  handshake done; by length, "
        "SHA-384\n"
        " 141.590    0.213   |<-------------- ticket -|    258  34 + 208 + 16, as OpenSSL\n"
        "\n"
        "time     connect 70.2 + hello 0.1 + tls 0.0 + request 0.0 + server 3.6 = 73.9 response\n"
        "felt     73.9 + 70.2 = 144.1 ms = 2.1 trips; expected 2; without early data 3\n"
        "quality  both sides, no gaps, no retransmits, no duplicates\n");
    free(text);
}

/* No line is longer than the width, for any width, and no word of the wide drawing is lost. */
static void expect_fits(const char *text, size_t width)
{
    char *copy = strdup(text), *rest = NULL;
    for (char *line = strtok_r(copy, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        cr_expect(text_width(text_bytes(line)) <= width, "%zu: %s", width, line);
        cr_expect(line[strlen(line) - 1] != ' ', "%zu: %s", width, line);
    }
    free(copy);
}

Test(ladder, every_line_fits_at_every_width)
{
    for (size_t width = 0; width < 220; width++) {
        for (int utf8 = 0; utf8 < 2; utf8++) {
            char *text = drawn_early((struct ladder_style){ .width = width, .utf8 = utf8 });
            size_t shown = width == 0                 ? LADDER_WIDTH_MAX
                           : width < LADDER_WIDTH_MIN ? LADDER_WIDTH_MIN
                           : width > LADDER_WIDTH_MAX ? LADDER_WIDTH_MAX
                                                      : width;
            expect_fits(text, shown);
            cr_expect_not_null(strstr(text, "4f1c09..9a"));
            cr_expect_not_null(strstr(text, "(supports)"));
            free(text);
        }
    }
}

Test(ladder, lines_and_arrows_are_ascii_unless_the_terminal_shows_more)
{
    char *plain = drawn_early((struct ladder_style){ .width = 100 });
    char *rich = drawn_early((struct ladder_style){ .width = 100, .utf8 = true });
    for (const char *c = plain; *c; c++)
        cr_assert((unsigned char)*c < 0x80);
    cr_expect_not_null(strstr(rich, "  70.318    0.077 ╭ │─ ClientHello ─────────→│    583"));
    cr_expect_not_null(strstr(rich, "  71.102    0.784 │ │←───────── ServerHello ─│    128"));
    cr_expect_not_null(strstr(rich, " 141.377   67.483 ╰ │─ EndOfEarlyData ──────→│     21"));
    free(plain);
    free(rich);
}

Test(ladder, a_late_answer_stands_below_the_bracket)
{
    struct record records[EARLY_RECORDS];
    struct verdict verdict;
    struct facts facts = early_facts(records, &verdict);
    struct flow_row row = early_row();
    struct record response = records[5];
    memmove(&records[5], &records[6], 3 * sizeof *records);
    memmove(&verdict.role[5], &verdict.role[6], 3);
    response.at_ns = START_NS + 142000000;
    records[8] = response;
    verdict.role[8] = ROLE_RESPONSE;
    row.response_record_no.value = 8;
    row.answered_early.value = 0;
    char *text = drawn(&row, &facts, &verdict, (struct ladder_style){ .width = 100 });
    cr_expect_not_null(strstr(text, "0-rtt (strong), answered after Finished"));
    cr_expect_lt(strstr(text, "\\ |- EndOfEarlyData"),
                 strstr(text, "   |<------------ RESPONSE -|"));
    cr_expect_not_null(strstr(text, "expected 2; without early data 2"));
    free(text);
}

Test(ladder, refused_early_data_is_told)
{
    struct record records[EARLY_RECORDS];
    struct verdict verdict;
    struct facts facts = early_facts(records, &verdict);
    struct flow_row row = early_row();
    row.handshake = (struct row_text)TEXT("resumed");
    row.early_data = (struct row_text)TEXT("rejected");
    row.answered_early.has = false;
    row.request_record_no.value = 6;
    records[3].len = 36;
    verdict.role[6] = ROLE_REQUEST;
    char *text = drawn(&row, &facts, &verdict, (struct ladder_style){ .width = 100 });
    cr_expect_not_null(strstr(text, "resumed (strong), early data rejected (strong)"));
    cr_expect_not_null(strstr(text, "36 as usual: early data refused (supports)"));
    cr_expect_not_null(strstr(text, "|- early data ---------->|    412  refused by the server"));
    cr_expect_not_null(strstr(text, "|- REQUEST"));
    cr_expect_null(strstr(text, "without early data"));
    free(text);
}

Test(ladder, the_row_decides_which_record_is_the_response)
{
    struct record records[EARLY_RECORDS];
    struct verdict verdict;
    struct facts facts = early_facts(records, &verdict);
    struct flow_row row = early_row();
    row.response_record_no.value = 8;
    char *text = drawn(&row, &facts, &verdict, (struct ladder_style){ .width = 100 });
    cr_expect_not_null(
        strstr(text, "  73.894    2.792 | |<---------------- data -|  1,412  may be"));
    cr_expect_not_null(strstr(text, " 141.590    0.213   |<------------ RESPONSE -|    258"));
    free(text);
}

Test(ladder, without_facts_the_marks_of_the_row_are_drawn)
{
    struct flow_row row = early_row();
    row.client_hello_at_ns = (struct row_integer)INTEGER(70318000);
    row.server_hello_at_ns = (struct row_integer)INTEGER(71102000);
    row.request_at_ns = (struct row_integer)INTEGER(70318000);
    char *text = drawn(&row, NULL, NULL, (struct ladder_style){ .width = 100 });
    cr_expect_not_null(strstr(text, "|- ClientHello --------->|\n"));
    cr_expect_not_null(strstr(text, "  73.894    2.792   |<------------ RESPONSE -|\n"));
    free(text);
}

Test(ladder, what_was_not_seen_is_said)
{
    struct flow_row row = early_row();
    row.syn_seen.value = 0;
    row.syn_ack_at_ns.has = row.ack_at_ns.has = row.response_ns.has = false;
    row.perceived_ns.has = row.client_rtt_ns.has = row.connect_ns.has = false;
    row.sides_seen = (struct row_text)TEXT("server");
    row.client_basis = (struct row_text)TEXT("server_hello");
    row.server_gap_bytes = (struct row_integer)INTEGER(1448);
    row.client_retransmits = (struct row_integer)INTEGER(2);
    row.response_reason = (struct row_text)TEXT("no_request");
    char *text = drawn(&row, NULL, NULL, (struct ladder_style){ .width = 100 });
    cr_expect_not_null(strstr(text, "round trip to the client not known"));
    cr_expect_not_null(strstr(text, "time     no first response: no request\n"));
    cr_expect_null(strstr(text, "felt     "));
    cr_expect_not_null(strstr(text, "quality  only the server, no SYN, client by server hello, "
                                    "gaps server 1,448, retransmits client 2,\n"
                                    "         no duplicates\n"));
    free(text);
}

/* A database may come from anybody. */
Test(ladder, hostile_rows_and_facts_do_no_harm)
{
    static const int64_t numbers[] = { INT64_MIN, -1, 0, 1, INT64_MAX };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        struct record records[EARLY_RECORDS];
        struct verdict verdict;
        struct facts facts = early_facts(records, &verdict);
        struct flow_row row = early_row();
        for (size_t r = 0; r < EARLY_RECORDS; r++) {
            records[r].at_ns = r % 2 ? numbers[i] : records[r].at_ns;
            records[r].len = r % 2 ? UINT32_MAX : records[r].len;
            records[r].skipped = UINT16_MAX;
            records[r].offset = INT32_MAX;
            records[r].side = (uint8_t)(r * 50);
            records[r].flags = 0xff;
        }
        facts.start_ns = numbers[(i + 1) % 5];
        facts.fin_ns[CLIENT] = facts.reset_ns[SERVER] = numbers[i];
        row.start_epoch_ns.value = row.response_ns.value = row.client_rtt_ns.value = numbers[i];
        row.expected_round_trips.value = row.request_record_no.value = numbers[i];
        row.response_record_no.value = row.syn_ack_at_ns.value = row.perceived_ns.value =
            numbers[i];
        row.sni = (struct row_text)TEXT("\x1b]0;x\x07\xe2\x80\xae<script>\xff");
        row.failure = (struct row_text)TEXT("\x1b[31m_red");
        row.outcome = (struct row_text)TEXT("\n");
        row.client_ip = (struct row_text){ .len = 7 };
        char *text =
            drawn(&row, &facts, &verdict, (struct ladder_style){ .width = 100, .utf8 = true });
        expect_fits(text, LADDER_WIDTH_MAX);
        for (const char *c = text; *c; c++)
            cr_expect(*c == '\n' || ((unsigned char)*c >= 0x20 && *c != 0x7f));
        cr_expect_null(strstr(text, "\xe2\x80\xae"));
        free(text);
    }
}
