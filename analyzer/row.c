/* SPDX-License-Identifier: Apache-2.0 */
#include "row.h"

#include "hash.h"
#include "hello.h"
#include "packet.h"
#include "preamble.h"

#include <stdio.h>

static struct row_integer integer(int64_t value)
{
    return (struct row_integer){ true, value };
}

static struct row_integer integer_if(bool has, int64_t value)
{
    return (struct row_integer){ has, has ? value : 0 };
}

static struct row_integer duration(int64_t ns)
{
    return integer_if(ns != DURATION_NONE, ns);
}

static struct row_integer yes_no(enum tri tri)
{
    return integer_if(tri != TRI_UNKNOWN, tri == TRI_YES);
}

/* A time after the start; NULL when it was not seen, or lies before it (a clock step). */
static struct row_integer at(const struct facts *f, int64_t at_ns)
{
    return integer_if(at_ns != 0 && at_ns >= f->start_ns, at_ns - f->start_ns);
}

static struct row_text text(const char *text)
{
    return (struct row_text){ .at = text, .len = text == NULL ? 0 : strlen(text) };
}

static struct row_text text_of_bytes(struct bytes value)
{
    return (struct row_text){ .at = value.len > 0 ? (const char *)value.at : NULL,
                              .len = value.len };
}

static struct row_text text_if(bool has, const char *value)
{
    return text(has ? value : NULL);
}

/* One of the program's own words: literals and those of tables. */
static struct row_text word(const char *word)
{
    return (struct row_text){ .at = word, .len = word == NULL ? 0 : strlen(word), .is_word = true };
}

static struct row_text word_if(bool has, const char *value)
{
    return word(has ? value : NULL);
}

/* Words of facts, by their enums */

static const char *client_basis_text(uint8_t basis)
{
    static const char *const WORDS[] = {
        [CLIENT_BY_NOTHING] = "order",
        [CLIENT_BY_SYN] = "syn",
        [CLIENT_BY_SYN_ACK] = "syn_ack",
        [CLIENT_BY_CLIENT_HELLO] = "client_hello",
        [CLIENT_BY_SERVER_HELLO] = "server_hello",
        [CLIENT_BY_PORT] = "port",
        [CLIENT_BY_ORDER] = "order",
    };
    return WORDS[basis];
}

static const char *ended_text(uint8_t ended)
{
    static const char *const WORDS[] = {
        [ENDED_OPEN] = "capture_end",
        [ENDED_FIN] = "fin",
        [ENDED_RESET] = "reset",
        [ENDED_IDLE] = "idle",
        [ENDED_CAPTURE_END] = "capture_end",
        [ENDED_EVICTED] = "evicted",
    };
    return WORDS[ended];
}

/* Who sent the first FIN or RST. */
static const char *ended_by_text(const struct facts *f)
{
    const int64_t *ends[2] = { f->fin_ns, f->reset_ns };
    int64_t first_ns = INT64_MAX;
    const char *by = NULL;
    for (unsigned i = 0; i < 2; i++)
        for (enum side side = CLIENT; side <= SERVER; side++)
            if (ends[i][side] != 0 && ends[i][side] < first_ns) {
                first_ns = ends[i][side];
                by = side == CLIENT ? "client" : "server";
            }
    return by;
}

static const char *preamble_text(uint8_t preamble)
{
    static const char *const WORDS[] = {
        [PREAMBLE_NONE] = NULL,           [PREAMBLE_SMTP] = "smtp",
        [PREAMBLE_IMAP] = "imap",         [PREAMBLE_POP3] = "pop3",
        [PREAMBLE_FTP] = "ftp",           [PREAMBLE_XMPP] = "xmpp",
        [PREAMBLE_LDAP] = "ldap",         [PREAMBLE_POSTGRESQL] = "postgresql",
        [PREAMBLE_MYSQL] = "mysql",       [PREAMBLE_PROXY_V1] = "proxy_v1",
        [PREAMBLE_PROXY_V2] = "proxy_v2", [PREAMBLE_HTTP_CONNECT] = "http_connect",
        [PREAMBLE_SOCKS4] = "socks4",     [PREAMBLE_SOCKS5] = "socks5",
        [PREAMBLE_OTHER] = "other",
    };
    return WORDS[preamble];
}

static const char *tunnel_text(uint16_t tunnel, char *buffer, size_t size)
{
    static const char *const WORDS[] = { "vlan",     "mpls",   "pppoe",  "gre",   "erspan",
                                         "ip_in_ip", "vxlan",  "geneve", "gtp_u", "teredo",
                                         "l2tp",     "capwap", "nsh" };
    size_t len = 0;
    buffer[0] = '\0';
    for (unsigned i = 0; i < sizeof WORDS / sizeof WORDS[0]; i++)
        if ((tunnel >> i & 1) != 0 && len < size)
            len += (size_t)snprintf(buffer + len, size - len, "%s%s", len > 0 ? "," : "", WORDS[i]);
    return tunnel == 0 ? NULL : buffer;
}

/* A name by number, or the number where it has none. */
static struct row_text name_or_number(const char *name, uint16_t number, char buffer[8])
{
    if (name != NULL)
        return word(name);
    snprintf(buffer, 8, "0x%04x", number);
    return text(buffer);
}

/* Groups of columns */

/* Stable over runs and databases: point, endpoints, first time and sequence number. */
void row_flow_uid(const struct facts *f, const struct row_context *context, char uid[FLOW_UID_SIZE])
{
    struct buffer b = { 0 };
    struct flow_key_bytes {
        struct endpoint client, server;
        uint32_t isn;
        int64_t start_ns;
    } key = { f->client, f->server, f->isn[CLIENT], f->start_ns };
    key.client.address = privacy_address(context->privacy, &f->client.address);
    if (privacy_server_is_guess(f))
        key.server.address = privacy_address(context->privacy, &f->server.address);
    static_assert(sizeof key == 2 * sizeof(struct endpoint) + 4 + 8,
                  "it is hashed as bytes: padding would differ from run to run");
    const char *const words[] = { context->point, context->labels->site, context->labels->host,
                                  context->labels->region, context->labels->other };
    bool ok = buffer_add(&b, (struct bytes){ (const uint8_t *)&key, sizeof key });
    for (unsigned i = 0; ok && i < sizeof words / sizeof words[0]; i++) {
        const char *word = words[i] == NULL ? "" : words[i];
        ok = buffer_add(&b, (struct bytes){ (const uint8_t *)word, strlen(word) + 1 });
    }
    struct hash128 h = hash_stable((struct bytes){ b.at, b.len });
    hex_text((struct bytes){ h.octet, sizeof h.octet }, uid);
    buffer_done(&b);
}

/* By --local, else by what the other flows of the point say of the two addresses. Reports leave
 * outbound and internal flows out, so only an address that serves many is taken for one of ours. */
static bool is_ours(const struct address *address, const struct row_context *context)
{
    if (context->local != NULL)
        return prefix_set_contains(context->local, address);
    return context->roles != NULL && roles_is_server(context->roles, address);
}

static void fill_leg(const struct facts *f, const struct row_context *context, struct flow_row *row)
{
    bool client = is_ours(&f->client.address, context);
    bool server = is_ours(&f->server.address, context);
    row->leg = word(client && server ? "internal"
                    : server         ? "inbound"
                    : client         ? "outbound"
                                     : "unknown");
    row->leg_basis = word(!client && !server ? NULL : context->local != NULL ? "local" : "guess");
}

/* By a --clients file, for the address that a proxy names where there is one; else the capture's.
 */
static void fill_region(const struct facts *f, const struct row_context *context,
                        struct flow_row *row)
{
    struct address client = f->client.address;
    bool proxied = f->proxied_client_ip != NULL && address_parse(f->proxied_client_ip, &client);
    struct region known = { 0 };
    if (context->clients != NULL)
        known = regions_find(context->clients, &client);
    const char *region = known.region != NULL ? known.region : context->capture_region;
    row->client_region = text(region);
    row->client_region_basis = word_if(region != NULL, known.region == NULL ? "capture"
                                                       : proxied            ? "proxy"
                                                                            : "clients");
    row->client_country = text(known.country);
    row->client_asn = integer_if(known.asn != 0, known.asn);
}

/* Addresses as they are stored. A Community ID would tell the client's to who tries them all. */
static void fill_addresses(const struct facts *f, const struct privacy *privacy,
                           struct row_space *space, struct flow_row *row)
{
    bool is_full = privacy->client_addr == SHOWN_FULL;
    bool has_prefix = is_full || privacy->client_addr == SHOWN_PREFIX;
    struct address proxied;
    if (is_full)
        community_id_text(&f->client, &f->server, space->community_id);
    row->community_id = text_if(is_full && space->community_id[0] != '\0', space->community_id);
    row->client_ip = text(privacy_address_text(privacy, &f->client.address, space->client_ip));
    row->client_prefix =
        text_if(has_prefix, address_network_text(&f->client.address, space->client_prefix));
    row->server_ip = text(address_text(&f->server.address, space->server_ip));
    if (!is_full && privacy_server_is_guess(f)) {
        const char *shown = privacy_address_text(privacy, &f->server.address, space->server_ip);
        row->server_ip = text(shown != NULL ? shown : "hidden");
    }
    if (is_full)
        row->proxied_client_ip = text(f->proxied_client_ip);
    else if (f->proxied_client_ip != NULL && address_parse(f->proxied_client_ip, &proxied))
        row->proxied_client_ip =
            text(privacy_address_text(privacy, &proxied, space->proxied_client_ip));
}

static void fill_identity(const struct facts *f, const struct row_context *context,
                          struct row_space *space, struct flow_row *row)
{
    fill_addresses(f, context->privacy, space, row);
    row_flow_uid(f, context, space->flow_uid);
    row->flow_uid = text(space->flow_uid);
    row->capture_id = integer(context->capture_id);
    row->first_packet_no = integer((int64_t)f->first_packet_no);
    row->transport = word("tcp");
    row->ip_version = integer(f->ip_version);
    row->client_port = integer(f->client.port);
    row->server_port = integer(f->server.port);
    row->proxied_server_ip = text(f->proxied_server_ip);
    row->client_basis = word(client_basis_text(f->client_basis));
    fill_leg(f, context, row);
    row->site = text(context->labels->site);
    row->host = text(context->labels->host);
    row->interface = text_of_bytes(context->interface);
    row->app_protocol = text(f->app_protocol);
    row->app_category = text(f->app_category);
    row->continues = integer(f->continues);
    fill_region(f, context, row);
}

static void fill_quality(const struct facts *f, struct row_space *space, struct flow_row *row)
{
    row->syn_seen = integer(f->syn_seen);
    row->syn_count = integer(f->syn_count);
    row->syn_ack_count = integer(f->syn_ack_count);
    row->sides_seen = word(f->packets[SERVER] == 0   ? "client"
                           : f->packets[CLIENT] == 0 ? "server"
                                                     : "both");
    row->client_packets = integer((int64_t)f->packets[CLIENT]);
    row->server_packets = integer((int64_t)f->packets[SERVER]);
    row->client_bytes = integer((int64_t)f->bytes[CLIENT]);
    row->server_bytes = integer((int64_t)f->bytes[SERVER]);
    row->client_retransmits = integer(f->retransmits[CLIENT]);
    row->server_retransmits = integer(f->retransmits[SERVER]);
    row->client_gap_bytes = integer((int64_t)f->gap_bytes[CLIENT]);
    row->server_gap_bytes = integer((int64_t)f->gap_bytes[SERVER]);
    row->client_boundary_losses = integer(f->boundary_losses[CLIENT]);
    row->server_boundary_losses = integer(f->boundary_losses[SERVER]);
    row->duplicates = integer(f->duplicates);
    row->truncated = integer(f->truncated);
    row->clock_step = integer(f->clock_step);
    row->tunnel = text(tunnel_text(f->tunnel, space->tunnel, sizeof space->tunnel));
    row->fast_open = integer(f->fast_open);
    row->client_ttl = integer_if(f->packets[CLIENT] > 0, f->ttl[CLIENT]);
    row->server_ttl = integer_if(f->packets[SERVER] > 0, f->ttl[SERVER]);
    row->client_mss = integer_if(f->mss[CLIENT] > 0, f->mss[CLIENT]);
    row->server_mss = integer_if(f->mss[SERVER] > 0, f->mss[SERVER]);
    row->ended = word(ended_text(f->ended));
    row->ended_by = word(ended_by_text(f));
}

static void fill_losses(const struct verdict *v, const struct timing *t, struct flow_row *row)
{
    bool answered = v->response_ns != 0;
    row->client_retransmits_before_response =
        integer_if(answered, t->client_retransmits_before_response);
    row->server_retransmits_before_response =
        integer_if(answered, t->server_retransmits_before_response);
    row->loss_wait_ns = integer_if(answered && t->loss_wait_ns != DURATION_NONE, t->loss_wait_ns);
}

static void fill_verdict(const struct verdict *v, struct flow_row *row)
{
    bool has_kind = v->handshake != KIND_UNKNOWN && v->handshake != KIND_NONE;
    bool has_early = v->early_data != EARLY_NO_HELLO;
    row->handshake = word(kind_text(v->handshake));
    row->handshake_basis = word_if(has_kind, basis_text(v->handshake_basis));
    row->handshake_reason = word(v->handshake_reason);
    row->outcome = word(outcome_text(v->outcome));
    row->failure = word(v->failure);
    row->resumed_by = word(resumed_by_text(v->resumed_by));
    row->early_data = word(early_data_text(v->early_data));
    row->early_data_basis = word_if(has_early, basis_text(v->early_data_basis));
    row->early_data_reason = word_if(has_early, v->early_data_reason);
    row->early_data_bytes = integer_if(v->early_data_bytes >= 0, v->early_data_bytes);
    row->answered_early = yes_no(v->answered_early);
    row->resumption_offered = integer(v->resumption_offered);
    row->false_start = yes_no(v->false_start);
    row->client_certificate = yes_no(v->client_certificate);
    row->server_flight_bytes = integer_if(v->server_flight_bytes >= 0, v->server_flight_bytes);
}

static void fill_tls(const struct facts *f, struct row_space *space, struct flow_row *row)
{
    bool selected = f->server_hello_seen || f->hello_retry;
    row->hello_retry = integer_if(selected, f->hello_retry);
    row->tls_version = text_if(selected, version_text(f->version, space->tls_version));
    if (selected && f->version != SSL_2_0)
        row->cipher_suite = name_or_number(cipher_suite_name(f->cipher_suite), f->cipher_suite,
                                           space->cipher_suite);
    if (f->named_group != 0)
        row->named_group =
            name_or_number(named_group_name(f->named_group), f->named_group, space->named_group);
    row->sni = text(f->server_name);
    row->early_data_rule = text(f->early_data_rule);
    row->alpn_offered = text(f->alpn_offered);
    row->alpn = text(f->alpn);
    row->ech = integer_if(f->client_hello_seen, f->ech);
    row->ja4 = text(f->ja4);
    row->client_hello_complete = integer_if(f->client_hello_seen, f->client_hello_complete);
    row->client_hello_bytes = integer_if(f->client_hello_seen, f->client_hello_len);
    row->psk_identity_hash = text(f->psk_identity_hash);
    row->ticket_key_name = text(f->ticket_key_name);
    row->issued_ticket_key_name = text(f->issued_ticket_key_name);
    row->client_hello_hash = text(f->client_hello_hash);
    row->server_random_hash = text(f->server_random_hash);
    row->preamble = word(preamble_text(f->preamble));
}

static struct row_integer record_number(int index)
{
    return integer_if(index >= 0, index);
}

static struct row_integer record_packet(const struct facts *f, int index)
{
    return integer_if(index >= 0, index >= 0 ? (int64_t)f->records[index].packet_no : 0);
}

static void fill_times(const struct facts *f, struct flow_row *row)
{
    row->start_epoch_ns = integer(f->start_ns);
    row->syn_ack_at_ns = at(f, f->syn_ack_ns);
    row->ack_at_ns = at(f, f->ack_ns);
    row->client_hello_at_ns = at(f, f->client_hello_ns);
    row->client_hello_last_at_ns = at(f, f->client_hello_last_ns);
    row->hello_retry_at_ns = at(f, f->hello_retry_ns);
    row->server_hello_at_ns = at(f, f->server_hello_ns);
    row->end_at_ns = integer(f->end_ns > f->start_ns ? f->end_ns - f->start_ns : 0);
}

static void fill_judged_times(const struct facts *f, const struct verdict *v, struct flow_row *row)
{
    row->client_finished_at_ns = at(f, v->client_finished_ns);
    row->handshake_done_at_ns = at(f, v->handshake_done_ns);
    row->first_client_data_at_ns = at(f, v->first_client_data_ns);
    row->request_at_ns = at(f, v->request_ns);
    row->request_packet_no = record_packet(f, v->request);
    row->request_record_no = record_number(v->request);
    row->first_server_data_at_ns = at(f, v->first_server_data_ns);
    row->response_at_ns = at(f, v->response_ns);
    row->response_packet_no = record_packet(f, v->response);
    row->response_record_no = record_number(v->response);
    row->response_low_at_ns = at(f, v->response_low_ns);
    row->response_high_at_ns = at(f, v->response_high_ns);
    row->response_basis = word_if(v->response_ns != 0, basis_text(v->response_basis));
    row->response_reason = word(v->response_reason);
    row->response_last_at_ns = at(f, v->response_last_ns);
}

static void fill_durations(const struct verdict *v, const struct path *p, const struct timing *t,
                           struct flow_row *row)
{
    row->server_rtt_ns = duration(p->server_rtt_ns);
    row->client_rtt_ns = duration(p->client_rtt_ns);
    row->rtt_ns = duration(p->rtt_ns);
    row->rtt_basis = word(rtt_basis_text(p->basis));
    row->vantage = word(vantage_text(p->vantage));
    row->response_ns = duration(t->response_ns);
    row->perceived_ns = duration(t->perceived_ns);
    row->connect_ns = duration(t->connect_ns);
    row->hello_wait_ns = duration(t->hello_wait_ns);
    row->tls_ns = duration(t->tls_ns);
    row->request_wait_ns = duration(t->request_wait_ns);
    row->server_wait_ns = duration(t->server_wait_ns);
    row->server_think_ns = duration(t->server_think_ns);
    row->round_trips = (struct row_real){ t->round_trips >= 0, t->round_trips };
    row->expected_round_trips = integer_if(v->expected_round_trips > 0, v->expected_round_trips);
    row->flight_stalls = integer_if(v->flight_stalls >= 0, v->flight_stalls);
}

void row_fill_judged(const struct facts *f, const struct verdict *v, const struct path *p,
                     const struct timing *t, struct flow_row *row)
{
    fill_losses(v, t, row);
    fill_verdict(v, row);
    fill_judged_times(f, v, row);
    fill_durations(v, p, t, row);
}

void row_fill(const struct facts *f, const struct verdict *v, const struct path *p,
              const struct timing *t, const struct row_context *context, struct row_space *space,
              struct flow_row *ret_row)
{
    *ret_row = (struct flow_row){ 0 };
    fill_identity(f, context, space, ret_row);
    fill_quality(f, space, ret_row);
    fill_tls(f, space, ret_row);
    fill_times(f, ret_row);
    row_fill_judged(f, v, p, t, ret_row);
}
