/* SPDX-License-Identifier: Apache-2.0 */
#include "ladder_parts.h"

#include "hello.h"
#include "moment.h"

#include <assert.h>
#include <stdio.h>

enum {
    ARROW_COLUMNS = EXPLAIN_LABEL_MAX + 5, /* "- " before, " ->" behind */
    BYTES_COLUMNS = 7,
    TRIPS_MAX = 1000000, /* a bound for hostile databases */
};

/* 115 days: no ladder is higher. */
#define TIME_SHOWN_MAX_NS INT64_C(10000000000000000)

/* Writes words behind a heading and empties them. */
static void put_words(const struct ladder *l, const char *heading, struct text *words,
                      struct text *out)
{
    text_add_wrapped(out, heading, text_bytes(text_string(words)), l->width);
    out->failed |= words->failed;
    text_clear(words);
}

/* ---- above the ladder ---- */

static void add_basis(const struct ladder *l, struct text *t, struct row_text basis)
{
    if (!basis.at)
        return;
    text_add(t, " (");
    row_add_text(t, basis, l->utf8);
    text_add(t, ")");
}

static void add_verdict(const struct ladder *l, struct text *t)
{
    const struct flow_row *row = l->row;
    text_addf(t, "flow %lld  ", (long long)row->flow_id.value);
    if (row_is(row->handshake, "none"))
        text_add(t, "no TLS");
    else if (row_is(row->handshake, "unknown"))
        text_add(t, "TLS of unknown kind");
    else
        row_add_text(t, row->handshake, l->utf8);
    add_basis(l, t, row->handshake_basis);

    if (row->answered_early.has)
        text_add(t, row->answered_early.value ? ", answered early" : ", answered after Finished");
    if (row_is(row->early_data, "rejected")) {
        text_add(t, ", early data rejected");
        add_basis(l, t, row->early_data_basis);
    } else if (row_is(row->early_data, "unknown")) {
        text_add(t, ", early data unknown");
    }
    if (!row_is(row->outcome, "completed")) {
        text_add(t, ", ");
        row_add_text(t, row->outcome, l->utf8);
    }
    if (row->failure.at) {
        text_add(t, ": ");
        row_add_reason(t, row->failure, l->utf8);
    }
}

static void add_if_known(const struct ladder *l, struct text *t, const char *before,
                         struct row_text text)
{
    if (!text.at)
        return;
    text_add(t, before);
    row_add_text(t, text, l->utf8);
}

void ladder_add_title(const struct ladder *l, struct text *t)
{
    const struct flow_row *row = l->row;
    add_verdict(l, t);
    add_if_known(l, t, "     ", row->sni);
    add_if_known(l, t, "  ", row->tls_version);
    add_if_known(l, t, "  ", row->alpn);
    if (!row->tls_version.at)
        add_if_known(l, t, "  ", row->app_protocol);
    add_if_known(l, t, "  after ", row->preamble);
}

static void add_address(const struct ladder *l, struct text *t, struct row_text ip,
                        struct row_integer port)
{
    bool ipv6 = ip.at && memchr(ip.at, ':', ip.len) != NULL;
    text_add(t, ipv6 ? "[" : "");
    if (ip.at)
        row_add_text(t, ip, l->utf8);
    else
        text_add(t, "(address not kept)");
    text_addf(t, ipv6 ? "]:%lld" : ":%lld", (long long)port.value);
}

void ladder_add_endpoints(const struct ladder *l, struct text *t)
{
    const struct flow_row *row = l->row;
    add_address(l, t, row->client_ip, row->client_port);
    add_if_known(l, t, " ", row->client_region);
    if (row->client_asn.has)
        text_addf(t, " AS%lld", (long long)row->client_asn.value);
    text_add(t, l->utf8 ? "  →  " : "  ->  ");
    add_address(l, t, row->server_ip, row->server_port);
    add_if_known(l, t, " ", row->site);
    text_add(t, "     ");
    char start[MOMENT_TEXT_SIZE];
    text_addf(t, "%s UTC", moment_text(row->start_epoch_ns.value, 6, start));
}

void ladder_add_vantage(const struct ladder *l, struct text *t)
{
    const struct flow_row *row = l->row;
    if (!row->client_rtt_ns.has) {
        text_add(t, "round trip to the client not known: what the client felt cannot be said");
        return;
    }
    if (row_is(row->vantage, "server")) {
        text_add(t, "seen near the server: client ");
        row_add_ms(t, row->client_rtt_ns.value);
        text_add(t, " ms away; add that to the response for what the client felt");
    } else if (row_is(row->vantage, "client")) {
        text_add(t, "seen near the client, ");
        row_add_ms(t, row->client_rtt_ns.value);
        text_add(t, " ms away: nearly what the client felt");
    } else if (row_is(row->vantage, "local")) {
        text_add(t, "client and server on one host or network: what the client felt");
    } else {
        text_add(t, "seen in between: client ");
        row_add_ms(t, row->client_rtt_ns.value);
        text_add(t, " ms away");
        if (row->server_rtt_ns.has) {
            text_add(t, ", server ");
            row_add_ms(t, row->server_rtt_ns.value);
        }
        text_add(t, "; add the first to the response for what the client felt");
    }
}

/* ---- the steps ---- */

const struct record *ladder_record(const struct ladder *l, const struct step *step)
{
    return step->record < 0 ? NULL : &l->facts->records[step->record];
}

const char *ladder_label(const struct ladder *l, const struct step *step)
{
    return step->record >= 0 ? explain_label(&l->judged, step->record) : step->mark;
}

/* Keeps the steps in order of time, those of one time in the order in which they are added. */
static void add_step(struct ladder *l, struct step step)
{
    assert(l->step_count < STEPS_MAX);
    step.at_ns = row_bounded(step.at_ns, -TIME_SHOWN_MAX_NS, TIME_SHOWN_MAX_NS);
    size_t i = l->step_count++;
    for (; i > 0 && l->steps[i - 1].at_ns > step.at_ns; i--)
        l->steps[i] = l->steps[i - 1];
    l->steps[i] = step;
}

static void add_mark(struct ladder *l, struct row_integer at_ns, enum side from, const char *mark)
{
    if (at_ns.has)
        add_step(l, (struct step){ at_ns.value, from, -1, mark });
}

/* Time of facts, which count since 1970. */
static int64_t since_start(const struct ladder *l, int64_t epoch_ns)
{
    int64_t ns;
    bool beyond = __builtin_sub_overflow(epoch_ns, l->facts->start_ns, &ns);
    return beyond ? 0 : ns;
}

static void add_record_steps(struct ladder *l)
{
    for (int i = 0; i < l->facts->record_count; i++) {
        const struct record *record = &l->facts->records[i];
        enum side from = record->side == CLIENT ? CLIENT : SERVER;
        if (l->facts->tls_reversed)
            from = other_side(from);
        add_step(l, (struct step){ since_start(l, record->at_ns), from, i, NULL });
    }
}

/* FIN and RST of both sides; 0 means not seen. */
static void add_end_steps(struct ladder *l)
{
    for (enum side side = CLIENT; side <= SERVER; side++) {
        int64_t fin_ns = l->facts->fin_ns[side], reset_ns = l->facts->reset_ns[side];
        add_mark(l, (struct row_integer){ fin_ns != 0, since_start(l, fin_ns) }, side, "FIN");
        add_mark(l, (struct row_integer){ reset_ns != 0, since_start(l, reset_ns) }, side, "RST");
    }
}

static void collect_steps(struct ladder *l)
{
    const struct flow_row *row = l->row;
    add_mark(l, (struct row_integer){ row_true(row->syn_seen), 0 }, CLIENT, "SYN");
    add_mark(l, row->syn_ack_at_ns, SERVER, "SYN/ACK");
    add_mark(l, row->ack_at_ns, CLIENT, "ACK");
    if (l->facts) {
        add_record_steps(l);
        add_end_steps(l);
        return;
    }
    add_mark(l, row->client_hello_at_ns, CLIENT, "ClientHello");
    add_mark(l, row->hello_retry_at_ns, SERVER, "HelloRetryRequest");
    add_mark(l, row->server_hello_at_ns, SERVER, "ServerHello");
    add_mark(l, row->client_finished_at_ns, CLIENT, "Finished");
    add_mark(l, row->request_at_ns, CLIENT, "REQUEST");
    add_mark(l, row->response_at_ns, SERVER, "RESPONSE");
}

/* The early window: from the ClientHello to the end of early data, where there was any. */
static void find_window(struct ladder *l)
{
    l->window_first = l->window_last = -1;
    if (!l->facts || !l->facts->early_data_offered)
        return;
    int first = -1, last = -1;
    bool early = false, closed = false;
    for (size_t i = 0; i < l->step_count && !closed; i++) {
        int record = l->steps[i].record;
        if (record < 0 || l->facts->records[record].side != CLIENT)
            continue;
        enum role role = judged_role(&l->judged, record);
        if (first < 0 && judged_is_message(&l->judged, record, HANDSHAKE_CLIENT_HELLO))
            first = (int)i;
        early |= role == ROLE_EARLY_DATA;
        closed = role == ROLE_END_OF_EARLY_DATA || role == ROLE_FINISHED;
        last = (int)i;
    }
    if (first >= 0 && early) {
        l->window_first = first;
        l->window_last = last;
    }
}

/* ---- the drawing of a step ---- */

void ladder_add_why(const struct ladder *l, const struct step *step, struct text *why)
{
    const struct flow_row *row = l->row;
    if (step->record >= 0) {
        explain_record(&l->judged, step->record, why);
    } else if (strcmp(step->mark, "ACK") == 0 && row->client_rtt_ns.has &&
               row_is(row->rtt_basis, "ack")) {
        text_add(why, "client round trip ");
        row_add_ms(why, row->client_rtt_ns.value);
    }
}

static void put_arrow(const struct ladder *l, const struct step *step, const char *label,
                      struct text *out)
{
    const char *dash = l->utf8 ? "─" : "-";
    size_t dashes = ARROW_COLUMNS - strlen(label) - 4; /* two spaces, a dash, the head */
    text_add(out, l->utf8 ? "│" : "|");
    if (step->from == CLIENT) {
        text_add(out, dash);
        text_addf(out, " %s ", label);
        text_add_repeated(out, dash, dashes);
        text_add(out, l->utf8 ? "→" : ">");
    } else {
        text_add(out, l->utf8 ? "←" : "<");
        text_add_repeated(out, dash, dashes);
        text_addf(out, " %s ", label);
        text_add(out, dash);
    }
    text_add(out, l->utf8 ? "│" : "|");
}

/* The bracket around the early window beside step i. */
static const char *bracket(const struct ladder *l, int i)
{
    if (l->window_first < 0 || i < l->window_first || i > l->window_last)
        return " ";
    if (i == l->window_first)
        return l->utf8 ? "╭" : "/";
    if (i == l->window_last)
        return l->utf8 ? "╰" : "\\";
    return l->utf8 ? "│" : "|";
}

/* Rails of a line that only goes on with the words of the step above it. */
static void put_rails(const struct ladder *l, size_t i, size_t time_columns, struct text *out)
{
    const char *rail = l->utf8 ? "│" : "|";
    bool inside = (int)i >= l->window_first && (int)i < l->window_last;
    text_add_repeated(out, " ", 2 * time_columns + 2);
    text_add(out, inside ? rail : " ");
    text_addf(out, " %s%*s%s%*s", rail, ARROW_COLUMNS, "", rail, BYTES_COLUMNS, "");
}

static void put_step(const struct ladder *l, size_t i, size_t time_columns, struct text *out)
{
    const struct step *step = &l->steps[i];
    size_t words_columns =
        l->width - (2 * time_columns + 4 + ARROW_COLUMNS + 2 + BYTES_COLUMNS + 2);
    struct text why = { 0 }, bytes = { 0 };
    ladder_add_why(l, step, &why);
    if (step->record >= 0)
        text_add_count(&bytes, ladder_record(l, step)->len);
    if (bytes.len > BYTES_COLUMNS)
        words_columns -= bytes.len - BYTES_COLUMNS;

    text_addf(out, "%*.3f ", (int)time_columns, (double)step->at_ns / 1e6);
    if (i > 0) {
        int64_t since_ns = step->at_ns - l->steps[i - 1].at_ns;
        text_addf(out, "%*.3f", (int)time_columns, (double)since_ns / 1e6);
    } else {
        text_add_repeated(out, " ", time_columns);
    }
    text_addf(out, " %s ", bracket(l, (int)i));
    put_arrow(l, step, ladder_label(l, step), out);
    struct bytes rest = text_bytes(text_string(&why));
    if (bytes.len > 0 || rest.len > 0)
        text_addf(out, "%*s", BYTES_COLUMNS, text_string(&bytes));
    for (bool first = true; rest.len > 0; first = false) {
        if (!first)
            put_rails(l, i, time_columns, out);
        text_add(out, "  ");
        text_add_bytes(out, text_take_line(&rest, words_columns));
        text_add(out, rest.len > 0 ? "\n" : "");
    }
    text_add(out, "\n");
    out->failed |= why.failed || bytes.failed;
    text_done(&bytes);
    text_done(&why);
}

/* Columns that the times of the ladder need: at least 9999.999, as little as that mostly is. */
static size_t columns_of_times(const struct ladder *l)
{
    int columns = (int)strlen("9999.999");
    if (l->step_count == 0)
        return (size_t)columns;
    int64_t first_ns = l->steps[0].at_ns, last_ns = l->steps[l->step_count - 1].at_ns;
    int64_t longest_ns[] = { first_ns, last_ns, last_ns - first_ns };
    for (size_t i = 0; i < sizeof longest_ns / sizeof *longest_ns; i++) {
        int needed = snprintf(NULL, 0, "%.3f", (double)longest_ns[i] / 1e6);
        columns = needed > columns ? needed : columns;
    }
    return (size_t)columns;
}

static void put_steps(const struct ladder *l, struct text *out)
{
    size_t columns = columns_of_times(l);
    text_addf(out, "%*s %*s   client%*sserver   bytes  taken for, and why\n", (int)columns,
              "seen ms", (int)columns, "+ms", ARROW_COLUMNS + 2 - 12, "");
    for (size_t i = 0; i < l->step_count; i++)
        put_step(l, i, columns, out);
}

/* ---- below the ladder ---- */

void ladder_add_phases(const struct ladder *l, struct text *t)
{
    const struct flow_row *row = l->row;
    if (!row->response_ns.has) {
        text_add(t, "no first response");
        if (row->response_reason.at) {
            text_add(t, ": ");
            row_add_reason(t, row->response_reason, l->utf8);
        } else if (!row_true(row->syn_seen)) {
            text_add(t, " time: the capture does not hold the SYN");
        }
        return;
    }
    const struct {
        const char *name;
        struct row_integer ns;
    } phases[] = {
        { "connect", row->connect_ns },
        { "hello", row->hello_wait_ns },
        { "tls", row->tls_ns },
        { "request", row->request_wait_ns },
        { "server", row->server_wait_ns },
    };
    for (size_t i = 0; row->connect_ns.has && i < sizeof phases / sizeof *phases; i++) {
        text_addf(t, "%s%s ", i > 0 ? " + " : "", phases[i].name);
        row_add_ms(t, phases[i].ns.value);
    }
    text_add(t, row->connect_ns.has ? " = " : "");
    row_add_ms(t, row->response_ns.value);
    text_add(t, " response");
}

/* What the same flow would have cost without early data; 0 = nothing to compare with. */
static int64_t expected_without_early_data(const struct flow_row *row)
{
    if (!row_is(row->handshake, "0-rtt") || !row->expected_round_trips.has)
        return 0;
    int64_t expected = row_bounded(row->expected_round_trips.value, 0, TRIPS_MAX);
    return expected + (row_true(row->answered_early) ? 1 : 0);
}

void ladder_add_felt(const struct ladder *l, struct text *t)
{
    const struct flow_row *row = l->row;
    if (!row->perceived_ns.has)
        return;
    int64_t sum;
    bool is_sum = row->response_ns.has && row->client_rtt_ns.has &&
                  !__builtin_add_overflow(row->response_ns.value, row->client_rtt_ns.value, &sum) &&
                  sum == row->perceived_ns.value;
    if (is_sum) {
        row_add_ms(t, row->response_ns.value);
        text_add(t, " + ");
        row_add_ms(t, row->client_rtt_ns.value);
        text_add(t, " = ");
    }
    row_add_ms(t, row->perceived_ns.value);
    text_add(t, " ms");
    if (!is_sum)
        text_add(t, ", when the client acknowledged the response that was sent again");
    if (row->round_trips.has)
        text_addf(t, " = %.1f trips", row->round_trips.value);
    if (row->expected_round_trips.has)
        text_addf(t, "; expected %lld", (long long)row->expected_round_trips.value);
    if (expected_without_early_data(row))
        text_addf(t, "; without early data %lld", (long long)expected_without_early_data(row));
    if (row_true(row->flight_stalls))
        text_addf(t, "; %lld lost in the server's flight", (long long)row->flight_stalls.value);
}

/* Adds "no gaps", "gaps client 5, server 7". */
static void add_pair(struct text *t, const char *what, struct row_integer client,
                     struct row_integer server)
{
    if (!row_true(client) && !row_true(server)) {
        text_addf(t, ", no %s", what);
        return;
    }
    text_addf(t, ", %s", what);
    if (row_true(client)) {
        text_add(t, " client ");
        text_add_count(t, client.value);
    }
    if (row_true(server)) {
        text_add(t, " server ");
        text_add_count(t, server.value);
    }
}

static void add_count_of(struct text *t, struct row_integer count, const char *what)
{
    if (!row_true(count))
        return;
    text_add(t, ", ");
    text_add_count(t, count.value);
    text_add(t, what);
}

void ladder_add_quality(const struct ladder *l, struct text *t)
{
    const struct flow_row *row = l->row;
    if (row_is(row->sides_seen, "both")) {
        text_add(t, "both sides");
    } else {
        text_add(t, "only the ");
        row_add_text(t, row->sides_seen, l->utf8);
    }
    if (!row_true(row->syn_seen)) {
        text_add(t, ", no SYN, client by ");
        row_add_reason(t, row->client_basis, l->utf8);
    }
    add_pair(t, "gaps", row->client_gap_bytes, row->server_gap_bytes);
    add_pair(t, "retransmits", row->client_retransmits, row->server_retransmits);
    if (row_true(row->loss_wait_ns)) {
        text_add(t, " (waited ");
        row_add_ms(t, row->loss_wait_ns.value);
        text_add(t, " ms before the response)");
    }
    if (row_true(row->duplicates))
        add_count_of(t, row->duplicates, row->duplicates.value == 1 ? " duplicate" : " duplicates");
    else
        text_add(t, ", no duplicates");
    add_count_of(t, row->truncated, " packets cut by the snaplen");
    if (row_true(row->client_boundary_losses) || row_true(row->server_boundary_losses))
        add_pair(t, "lost record borders", row->client_boundary_losses,
                 row->server_boundary_losses);
    if (row_true(row->clock_step))
        text_add(t, ", the clock went backwards");
    if (row_true(row->continues))
        text_add(t, ", an earlier row holds its start");
    add_if_known(l, t, ", in ", row->tunnel);
}

/* ---- all of it ---- */

struct ladder ladder_of(const struct flow_row *row, const struct facts *facts,
                        const struct verdict *verdict, const struct server_profile_row *server,
                        bool utf8)
{
    assert((facts == NULL) == (verdict == NULL));
    assert(!facts || facts->record_count <= RECORDS_MAX);
    struct ladder l = {
        .row = row, .facts = facts, .judged = { row, facts, verdict, server, utf8 }, .utf8 = utf8
    };
    collect_steps(&l);
    find_window(&l);
    return l;
}

void ladder_draw(const struct flow_row *row, const struct facts *facts,
                 const struct verdict *verdict, const struct server_profile_row *server,
                 struct ladder_style style, struct text *out)
{
    struct ladder l = ladder_of(row, facts, verdict, server, style.utf8);
    l.width = style.width;
    if (l.width == 0 || l.width > LADDER_WIDTH_MAX)
        l.width = LADDER_WIDTH_MAX;
    if (l.width < LADDER_WIDTH_MIN)
        l.width = LADDER_WIDTH_MIN;

    struct text words = { 0 };
    ladder_add_title(&l, &words);
    put_words(&l, "", &words, out);
    ladder_add_endpoints(&l, &words);
    put_words(&l, "", &words, out);
    ladder_add_vantage(&l, &words);
    put_words(&l, "", &words, out);
    text_add(out, "\n");
    put_steps(&l, out);
    text_add(out, "\n");
    ladder_add_phases(&l, &words);
    put_words(&l, "time     ", &words, out);
    ladder_add_felt(&l, &words);
    put_words(&l, "felt     ", &words, out);
    ladder_add_quality(&l, &words);
    put_words(&l, "quality  ", &words, out);
    text_done(&words);
}
