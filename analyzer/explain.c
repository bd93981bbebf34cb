/* SPDX-License-Identifier: Apache-2.0 */
#include "explain.h"

#include "content.h"
#include "hello.h"

enum { RECORD_LEN_MAX = 1 << 24 }; /* no record is longer; a bound for hostile databases */

/* ---- rows ---- */

bool row_is(struct row_text text, const char *word)
{
    return text.at && text.len == strlen(word) && memcmp(text.at, word, text.len) == 0;
}

bool row_true(struct row_integer value)
{
    return value.has && value.value != 0;
}

void row_add_text(struct text *t, struct row_text text, bool utf8)
{
    text_add_safe(t, (struct bytes){ (const uint8_t *)text.at, text.at ? text.len : 0 }, utf8);
}

void row_add_reason(struct text *t, struct row_text text, bool utf8)
{
    size_t from = t->len;
    row_add_text(t, text, utf8);
    for (size_t i = from; i < t->len; i++) {
        if (t->at[i] == '_')
            t->at[i] = ' ';
    }
}

void row_add_ms(struct text *t, int64_t ns)
{
    text_addf(t, "%.1f", (double)ns / 1e6);
}

int64_t row_bounded(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* ---- what a record is ---- */

static const struct record *record_of(const struct judged *j, int index)
{
    return &j->facts->records[index];
}

static int record_no(const struct judged *j, struct row_integer number)
{
    bool there = number.has && number.value >= 0 && number.value < j->facts->record_count;
    return there ? (int)number.value : -1;
}

int judged_request(const struct judged *j)
{
    return record_no(j, j->row->request_record_no);
}

int judged_response(const struct judged *j)
{
    return record_no(j, j->row->response_record_no);
}

enum role judged_role(const struct judged *j, int index)
{
    enum role role = (enum role)j->verdict->role[index];
    if (index == judged_response(j))
        return ROLE_RESPONSE;
    if (index == judged_request(j))
        return row_is(j->row->early_data, "accepted") ? ROLE_EARLY_DATA : ROLE_REQUEST;
    if (role == ROLE_RESPONSE)
        return ROLE_CANDIDATE;
    if (role == ROLE_REQUEST)
        return ROLE_APPLICATION_DATA;
    return role;
}

bool judged_is_message(const struct judged *j, int index, unsigned handshake_type)
{
    return judged_role(j, index) == ROLE_CLEAR &&
           record_of(j, index)->first_message == handshake_type;
}

static bool is_hello_retry(const struct judged *j, const struct record *record)
{
    return record->first_message == HANDSHAKE_HELLO_RETRY_REQUEST_DRAFT ||
           (record->first_message == HANDSHAKE_SERVER_HELLO && j->facts->hello_retry &&
            record->at_ns == j->facts->hello_retry_ns);
}

static const char *message_label(const struct judged *j, int index)
{
    static const struct {
        enum handshake_type type;
        const char *label;
    } labels[] = {
        { HANDSHAKE_HELLO_REQUEST, "HelloRequest" },
        { HANDSHAKE_CLIENT_HELLO, "ClientHello" },
        { HANDSHAKE_SERVER_HELLO, "ServerHello" },
        { HANDSHAKE_NEW_SESSION_TICKET, "ticket" },
        { HANDSHAKE_CERTIFICATE, "Certificate" },
        { HANDSHAKE_SERVER_KEY_EXCHANGE, "ServerKeyExchange" },
        { HANDSHAKE_CERTIFICATE_REQUEST, "CertificateRequest" },
        { HANDSHAKE_SERVER_HELLO_DONE, "ServerHelloDone" },
        { HANDSHAKE_CERTIFICATE_VERIFY, "CertificateVerify" },
        { HANDSHAKE_CLIENT_KEY_EXCHANGE, "ClientKeyExchange" },
        { HANDSHAKE_FINISHED, "Finished" },
        { HANDSHAKE_CERTIFICATE_STATUS, "CertificateStatus" },
    };
    const struct record *record = record_of(j, index);
    if (is_hello_retry(j, record))
        return "HelloRetryRequest";
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) {
        if (record->first_message == labels[i].type)
            return labels[i].label;
    }
    return "handshake";
}

/* ---- why ---- */

/* Adds `separator` unless nothing was added since `from`. */
static void add_separator(struct text *t, size_t from, const char *separator)
{
    if (t->len > from)
        text_add(t, separator);
}

static void explain_client_hello(const struct judged *j, int index, struct text *why)
{
    const struct facts *f = j->facts;
    if (f->hello_retry && record_of(j, index)->at_ns >= f->hello_retry_ns) {
        text_add(why, "again, as the server asked");
        return;
    }
    const struct {
        bool offered;
        const char *name;
    } offers[] = {
        { f->early_data_offered, "early_data" },
        { f->psk_offered, "psk" },
        { f->ticket_len > 0, "ticket" },
        { f->session_id_len > 0 && !version_is_13(f->version), "session id" }, /* RFC 8446 D.4 */
    };
    text_add(why, "offers ");
    size_t from = why->len;
    for (size_t i = 0; i < sizeof offers / sizeof *offers; i++) {
        if (!offers[i].offered)
            continue;
        add_separator(why, from, ", ");
        text_add(why, offers[i].name);
    }
    if (why->len == from)
        text_add(why, "no resumption");
    if (f->ticket_key_name) {
        text_add(why, "; ticket key ");
        text_add_digest(why, text_bytes(f->ticket_key_name));
    }
    if (!f->client_hello_complete)
        text_add(why, "; its end was not captured");
}

static void explain_server_hello(const struct judged *j, struct text *why)
{
    const struct facts *f = j->facts;
    if (!f->server_hello_complete)
        text_add(why, "its end was not captured");
    else if (!version_is_13(f->version))
        text_add(why, f->session_id_echoed ? "session id echoed" : "no session id of the client's");
    else if (f->psk_selected)
        text_addf(why, "psk %u selected: resumed, certain", (unsigned)f->selected_identity);
    else
        text_add(why, f->psk_offered ? "psk refused: full, certain" : "no psk: full, certain");
}

static void explain_message(const struct judged *j, int index, struct text *why)
{
    const struct record *record = record_of(j, index);
    if (is_hello_retry(j, record))
        text_add(why, "asks for another ClientHello, refuses early data");
    else if (record->first_message == HANDSHAKE_CLIENT_HELLO)
        explain_client_hello(j, index, why);
    else if (record->first_message == HANDSHAKE_SERVER_HELLO)
        explain_server_hello(j, why);
    else if (record->first_message == HANDSHAKE_NEW_SESSION_TICKET && j->facts->issued_ticket_len)
        text_addf(why, "ticket of %u bytes", (unsigned)j->facts->issued_ticket_len);
}

static void explain_alert(const struct judged *j, int index, struct text *why)
{
    const struct record *record = record_of(j, index);
    enum side side = record->side == CLIENT ? CLIENT : SERVER;
    if (!j->facts->alert_seen[side] || record->at_ns != j->facts->alert_ns[side]) {
        text_add(why, record->type == RECORD_ALERT ? "encrypted" : "by length");
        return;
    }
    const char *name = alert_name(j->facts->alert_description[side]);
    if (name)
        text_add(why, name);
    else
        text_addf(why, "description %u", (unsigned)j->facts->alert_description[side]);
}

static void explain_encrypted_extensions(const struct judged *j, int index, struct text *why)
{
    enum { EARLY_DATA_EXTENSION = 4 }; /* RFC 8446 4.2: type and length, and it is empty */
    int64_t len = record_of(j, index)->len;
    if (!j->server || !j->server->encrypted_extensions_len.has) {
        text_add(why, "first record behind ServerHello");
        return;
    }
    int64_t usual = row_bounded(j->server->encrypted_extensions_len.value, 0, RECORD_LEN_MAX);
    if (j->facts->early_data_offered && len == usual + EARLY_DATA_EXTENSION)
        text_addf(why, "%lld usual + 4: early data accepted (supports)", (long long)usual);
    else if (j->facts->early_data_offered && len == usual)
        text_addf(why, "%lld as usual: early data refused (supports)", (long long)usual);
    else
        text_addf(why, "%lld usual", (long long)usual);
}

static void explain_finished(const struct judged *j, int index, struct text *why)
{
    const struct record *record = record_of(j, index);
    if (record->side == CLIENT && record->at_ns == j->verdict->handshake_done_ns)
        text_add(why, "handshake done; ");
    unsigned hash_len = cipher_suite_hash_len(j->facts->cipher_suite);
    if (record->content != CONTENT_UNKNOWN)
        text_add(why, "decrypted");
    else if (hash_len)
        text_addf(why, "by length, SHA-%u", 8 * hash_len);
    else
        text_add(why, "by place");
}

static int early_records(const struct judged *j)
{
    int count = 0;
    for (int i = 0; i < j->facts->record_count; i++) {
        if (judged_role(j, i) == ROLE_EARLY_DATA)
            count++;
    }
    return count;
}

static void explain_early_data(const struct judged *j, int index, struct text *why)
{
    if (index == judged_request(j)) {
        int count = early_records(j);
        text_addf(why, "REQUEST, %d early record%s", count, count == 1 ? "" : "s");
    } else if (row_is(j->row->early_data, "accepted")) {
        text_add(why, "more of it");
    } else if (row_is(j->row->early_data, "rejected")) {
        text_add(why, "refused by the server");
    } else {
        text_add(why, "what became of it is not known");
    }
}

/* The next record of the same side, -1 for none. */
static int next_of_side(const struct judged *j, int index)
{
    for (int i = index + 1; i < j->facts->record_count; i++) {
        if (record_of(j, i)->side == record_of(j, index)->side)
            return i;
    }
    return -1;
}

static void explain_end_of_early_data(const struct judged *j, int index, struct text *why)
{
    size_t from = why->len;
    if (record_of(j, index)->ack >= j->facts->server_hello_end)
        text_add(why, "acknowledges ServerHello");
    int next = next_of_side(j, index);
    if (next >= 0 && judged_role(j, next) == ROLE_FINISHED) {
        add_separator(why, from, ", ");
        text_add(why, "next to Finished");
    }
    if (why->len == from)
        text_add(why, "by length");
}

/* Stacks by what their NewSessionTickets hold beside frame and ticket: nonce and extensions. */
static const char *ticket_stack(int64_t constant)
{
    static const struct {
        int64_t constant;
        const char *stack;
    } stacks[] = { { 0, "Go" },           { 1, "wolfSSL" }, { 8, "OpenSSL and picotls" },
                   { 10, "NSS and s2n" }, { 12, "GnuTLS" }, { 16, "OpenSSL" },
                   { 17, "JDK" } };
    for (size_t i = 0; i < sizeof stacks / sizeof *stacks; i++) {
        if (stacks[i].constant == constant)
            return stacks[i].stack;
    }
    return NULL;
}

static void explain_ticket(const struct judged *j, int index, struct text *why)
{
    enum {
        TICKET_FRAME = 34, /* RFC 8446 4.6.1, 5.2: all but nonce, ticket and extensions */
        CONSTANT_MAX = 64,
    };
    int64_t ticket_len = j->facts->psk_identity_len;
    if (j->server && j->server->ticket_len.has)
        ticket_len = row_bounded(j->server->ticket_len.value, 0, RECORD_LEN_MAX);
    int64_t constant = (int64_t)record_of(j, index)->len - TICKET_FRAME - ticket_len;
    if (ticket_len == 0 || constant < 0 || constant > CONSTANT_MAX) {
        text_add(why, "by length and place");
        return;
    }
    text_addf(why, "34 + %lld + %lld", (long long)ticket_len, (long long)constant);
    if (ticket_stack(constant))
        text_addf(why, ", as %s", ticket_stack(constant));
}

/* Stream offset behind the request; -1 = not known. */
static int64_t request_end(const struct judged *j)
{
    enum { RECORD_HEADER = 5 };
    int request = judged_request(j);
    if (request < 0)
        return -1;
    return (int64_t)record_of(j, request)->offset + RECORD_HEADER + record_of(j, request)->len;
}

static void explain_response(const struct judged *j, int index, struct text *why)
{
    const struct flow_row *row = j->row;
    struct row_integer low = row->response_low_at_ns, high = row->response_high_at_ns;
    int64_t end = request_end(j);
    size_t from = why->len;
    if (row_is(row->response_basis, "keylog")) {
        text_add(why, "decrypted: ");
        row_add_reason(why, row->response_reason, j->utf8);
        return;
    }
    if (end >= 0 && record_of(j, index)->ack >= end)
        text_add(why, "acknowledges the whole request");
    else
        row_add_reason(why, row->response_reason, j->utf8);
    add_separator(why, from, ": ");
    if (low.has && high.has && low.value == high.value) {
        text_add(why, "exact");
        return;
    }
    row_add_text(why, row->response_basis, j->utf8);
    if (low.has && high.has) {
        text_add(why, ", between ");
        row_add_ms(why, low.value);
        text_add(why, " and ");
        row_add_ms(why, high.value);
    }
}

/* What stands beside a record of each role: its name, and fixed words or a function for the why. */
static const struct {
    const char *label, *words;
    void (*explain)(const struct judged *j, int index, struct text *why);
} ROLES[ROLE_COUNT] = {
    [ROLE_UNKNOWN] = { "encrypted", "", NULL },
    [ROLE_CLEAR] = { NULL, NULL, explain_message }, /* label: message_label() */
    [ROLE_CHANGE_CIPHER_SPEC] = { "ChangeCipherSpec", "", NULL },
    [ROLE_ALERT] = { "alert", NULL, explain_alert },
    [ROLE_ENCRYPTED_EXTENSIONS] = { "EncryptedExtensions", NULL, explain_encrypted_extensions },
    [ROLE_FLIGHT] = { "flight", "EncryptedExtensions to Finished in one record", NULL },
    [ROLE_CERTIFICATE] = { "Certificate", "by place", NULL },
    [ROLE_CERTIFICATE_VERIFY] = { "CertificateVerify", "by place", NULL },
    [ROLE_CERTIFICATE_REQUEST] = { "CertificateRequest", "by place", NULL },
    [ROLE_FINISHED] = { "Finished", NULL, explain_finished },
    [ROLE_EARLY_DATA] = { "early data", NULL, explain_early_data },
    [ROLE_END_OF_EARLY_DATA] = { "EndOfEarlyData", NULL, explain_end_of_early_data },
    [ROLE_TICKET] = { "ticket", NULL, explain_ticket },
    [ROLE_KEY_UPDATE] = { "KeyUpdate", "by length", NULL },
    [ROLE_SETTINGS] = { "HTTP/2 frames", "by length: no response", NULL },
    [ROLE_REQUEST] = { "REQUEST", "first that the response can answer", NULL },
    [ROLE_RESPONSE] = { "RESPONSE", NULL, explain_response },
    [ROLE_BEFORE_REQUEST] = { "data", "sent before it had the request: no answer", NULL },
    [ROLE_APPLICATION_DATA] = { "data", "", NULL },
    [ROLE_CANDIDATE] = { "data", "may be the response: not excluded", NULL },
    [ROLE_HOLE] = { "(not captured)", "segments missing in the capture", NULL },
    [ROLE_CUT] = { "(cut off)", "behind the snaplen, records unknown", NULL },
};

const char *explain_label(const struct judged *j, int index)
{
    enum role role = judged_role(j, index);
    return role == ROLE_CLEAR ? message_label(j, index) : ROLES[role].label;
}

static void explain_flags(const struct record *record, size_t from, struct text *why)
{
    static const struct {
        enum record_flag flag;
        const char *words;
    } flags[] = {
        { RECORD_UNSURE, "its border is only plausible" },
        { RECORD_HOLED, "not all captured" },
        { RECORD_RESENT, "sent again" },
        { RECORD_OPEN, "its end was not seen" },
    };
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
        if (!(record->flags & flags[i].flag))
            continue;
        add_separator(why, from, "; ");
        text_add(why, flags[i].words);
    }
    if (record->skipped > 0) {
        add_separator(why, from, "; ");
        text_add(why, "and ");
        text_add_count(why, record->skipped);
        text_add(why, " more like it");
    }
}

/* What was read in the record itself; false when that says nothing, or less than its role. */
static bool explain_content(const struct judged *j, int index, struct text *why)
{
    uint16_t content = record_of(j, index)->content;
    enum role role = judged_role(j, index);
    if (content == CONTENT_UNKNOWN || role == ROLE_REQUEST || role == ROLE_RESPONSE ||
        role == ROLE_EARLY_DATA || role == ROLE_FINISHED)
        return false;
    text_add(why, "decrypted");
    if (content_kind(content) == CONTENT_ALERT) {
        const char *name = alert_name((uint8_t)(content >> CONTENT_DESCRIPTION_SHIFT));
        text_addf(why, ": %s", name == NULL ? "alert" : name);
    } else if (content_has(content, CONTENT_HANDSHAKE, CONTENT_ENCRYPTED_EXTENSIONS) &&
               j->facts->early_data_offered) {
        bool accepted = (content & CONTENT_EARLY_DATA_ACCEPTED) != 0;
        text_add(why, accepted ? ": early data accepted" : ": early data refused");
    }
    return true;
}

void explain_record(const struct judged *j, int index, struct text *why)
{
    enum role role = judged_role(j, index);
    size_t from = why->len;
    if (explain_content(j, index, why)) {
        explain_flags(record_of(j, index), from, why);
        return;
    }
    if (ROLES[role].explain)
        ROLES[role].explain(j, index, why);
    else
        text_add(why, ROLES[role].words);
    explain_flags(record_of(j, index), from, why);
}
