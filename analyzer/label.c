/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What nDPI costs, and how it is kept cheap. Measured with nDPI 4.2 over 24,537 generated TLS
 * flows, CPU time a flow: 12 us with label_packet() up to the end of the ClientHello, most of it
 * for a JA3 text and other things that nobody asked for and that 4.2 cannot leave out; 0.5 us with
 * label_tls(), which asks the same tables of names and addresses directly. So TLS flows take the
 * short way, and the dissectors see the packets of all others, those with payload, until they know.
 *
 * Independence. The label of a flow must not depend on the flows before it, or the result would
 * change with the order of files and the number of threads. nDPI keeps caches that several flows
 * share (of certificates, BitTorrent peers, mining pools, ...). Releases from 4.6 can be told to
 * have none. Earlier ones cannot: there the dissectors that fill such a cache are left out, except
 * TLS, whose cache only ever learns from a certificate that comes in one packet with ServerHello
 * while the ClientHello was not seen.
 */
#include "label.h"

#include <ndpi_api.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#define NDPI_AT_LEAST(major, minor)                                                                \
    (NDPI_MAJOR > (major) || (NDPI_MAJOR == (major) && NDPI_MINOR >= (minor)))

enum {
    PACKETS_MAX = 8,         /* with payload: dissectors that have not decided by then do not */
    PROTOCOL_TEXT_SIZE = 64, /* two nDPI protocol names and a dot */
    SERVER_NAME_MAX = 253,   /* RFC 1035 2.3.4, as text */
};

struct label_flow {
    struct ndpi_flow_struct ndpi;
    unsigned packets;
};

/* "TLS.Google", made once for each pair of protocols and kept, so that labels outlive flows. */
struct name {
    uint16_t lower, upper;
    char text[PROTOCOL_TEXT_SIZE];
};

struct labeler {
    struct ndpi_detection_module_struct *ndpi;
    struct name **names; /* in order of first use; some dozens in practice */
    size_t name_count;
    size_t name_room;
};

/* nDPI's answer, the same in all releases: TLS and Google, or the one that is known and 0. */
struct answer {
    uint16_t lower, upper;
    ndpi_protocol_category_t category;
};

/* ---- what differs between releases of nDPI ---- */

static struct answer answer_of(ndpi_protocol p)
{
#if NDPI_AT_LEAST(4, 12)
    return (struct answer){ p.proto.master_protocol, p.proto.app_protocol, p.category };
#else
    return (struct answer){ p.master_protocol, p.app_protocol, p.category };
#endif
}

static struct answer ndpi_packet(struct labeler *l, struct label_flow *f, struct bytes packet,
                                 uint64_t at_ms)
{
    struct bytes part = bytes_first(packet, UINT16_MAX);
#if NDPI_AT_LEAST(4, 6)
    return answer_of(ndpi_detection_process_packet(l->ndpi, &f->ndpi, part.at,
                                                   (unsigned short)part.len, at_ms, NULL));
#else
    return answer_of(
        ndpi_detection_process_packet(l->ndpi, &f->ndpi, part.at, (unsigned short)part.len, at_ms));
#endif
}

/* nDPI's last word, guessed from ports and addresses where the content told nothing. */
static struct answer ndpi_guess(struct labeler *l, struct label_flow *f)
{
#if NDPI_AT_LEAST(5, 0)
    return answer_of(ndpi_detection_giveup(l->ndpi, &f->ndpi));
#else
    uint8_t guessed = 0;
#if NDPI_AT_LEAST(4, 10)
    return answer_of(ndpi_detection_giveup(l->ndpi, &f->ndpi, &guessed));
#else
    return answer_of(ndpi_detection_giveup(l->ndpi, &f->ndpi, 1, &guessed));
#endif
#endif
}

static ndpi_protocol_category_t ndpi_category(struct labeler *l, uint16_t lower, uint16_t upper)
{
    ndpi_protocol p = { 0 };
#if NDPI_AT_LEAST(4, 12)
    p.proto.master_protocol = lower;
    p.proto.app_protocol = upper;
#else
    p.master_protocol = lower;
    p.app_protocol = upper;
#endif
    return ndpi_get_proto_category(l->ndpi, p);
}

/* The category that nDPI's list gives the name itself (advertisement, ...), whoever serves it. */
static bool ndpi_name_category(struct labeler *l, char *name, unsigned len,
                               ndpi_protocol_category_t *ret_category)
{
#if NDPI_AT_LEAST(5, 0)
    ndpi_protocol_breed_t breed;
    return ndpi_match_custom_category(l->ndpi, name, len, ret_category, &breed) == 0;
#else
    return ndpi_match_custom_category(l->ndpi, name, len, ret_category) == 0;
#endif
}

/* Who runs the server, by nDPI's lists of address ranges; NDPI_PROTOCOL_UNKNOWN when not in one. */
static uint16_t ndpi_address_owner(struct labeler *l, const struct endpoint *e)
{
    if (address_is_ipv4(&e->address)) {
        struct in_addr v4;
        memcpy(&v4, e->address.octet + 12, sizeof v4);
        return ndpi_network_port_ptree_match(l->ndpi, &v4, htons(e->port));
    }
#if NDPI_AT_LEAST(4, 14)
    struct in6_addr v6;
    memcpy(&v6, e->address.octet, sizeof v6);
    return ndpi_network_port_ptree6_match(l->ndpi, &v6, htons(e->port));
#else
    return NDPI_PROTOCOL_UNKNOWN;
#endif
}

#if NDPI_AT_LEAST(4, 10)

/* Settings that a release does not know are refused by it and change nothing. */
static void ndpi_configure(struct ndpi_detection_module_struct *ndpi)
{
    static const char *const CACHES[] = { "ookla",   "bittorrent", "stun", "tls_cert", "mining",
                                          "msteams", "stun_zoom",  "zoom", "fpc_dns",  "signal" };
    for (size_t i = 0; i < sizeof CACHES / sizeof *CACHES; i++) {
        char setting[32];
        snprintf(setting, sizeof setting, "lru.%s.size", CACHES[i]);
        ndpi_set_config(ndpi, NULL, setting, "0");
    }
    /* What is computed for nobody here: fingerprints and risks. */
    static const char *const UNUSED[] = {
        "metadata.sha1_fingerprint", "metadata.ja3c_fingerprint", "metadata.ja3s_fingerprint",
        "metadata.ja4c_fingerprint", "metadata.ja4r_fingerprint",
    };
    for (size_t i = 0; i < sizeof UNUSED / sizeof *UNUSED; i++)
        ndpi_set_config(ndpi, "tls", UNUSED[i], "disable");
    ndpi_set_config(ndpi, NULL, "flow_risk_lists.load", "disable");
    ndpi_set_config(ndpi, "any", "flow_risk", "disable");
}

static struct ndpi_detection_module_struct *ndpi_new(void)
{
    struct ndpi_detection_module_struct *ndpi = ndpi_init_detection_module(NULL);
    if (ndpi != NULL)
        ndpi_configure(ndpi);
    return ndpi;
}

#else

static struct ndpi_detection_module_struct *ndpi_new(void)
{
    /* The list of Tor relays is as old as the library; libgcrypt is for QUIC alone. */
    ndpi_init_prefs prefs = ndpi_dont_load_tor_hosts | ndpi_dont_init_libgcrypt;
    struct ndpi_detection_module_struct *ndpi = ndpi_init_detection_module(prefs);
#if NDPI_AT_LEAST(4, 6)
    for (int cache = 0; ndpi != NULL && cache < NDPI_LRUCACHE_MAX; cache++)
        ndpi_set_lru_cache_size(ndpi, (lru_cache_type)cache, 0);
#endif
    return ndpi;
}

#endif

/* Switches the dissectors on; release 5.0 does so by itself. */
static void ndpi_enable(struct ndpi_detection_module_struct *ndpi)
{
#if !NDPI_AT_LEAST(5, 0)
    NDPI_PROTOCOL_BITMASK enabled;
    NDPI_BITMASK_SET_ALL(enabled);
#if !NDPI_AT_LEAST(4, 6)
    static const unsigned SHARE_STATE[] = { NDPI_PROTOCOL_BITTORRENT, NDPI_PROTOCOL_MINING,
                                            NDPI_PROTOCOL_OOKLA, NDPI_PROTOCOL_STUN };
    for (size_t i = 0; i < sizeof SHARE_STATE / sizeof *SHARE_STATE; i++)
        enabled.fds_bits[SHARE_STATE[i] / NDPI_BITS] &=
            ~((ndpi_ndpi_mask)1 << SHARE_STATE[i] % NDPI_BITS);
#endif
    ndpi_set_protocol_detection_bitmask2(ndpi, &enabled);
#endif
    ndpi_finalize_initialization(ndpi);
}

const char *label_library_version(void)
{
    return ndpi_revision();
}

/* ---- labels ---- */

enum status labeler_open(struct labeler **ret_labeler)
{
    struct labeler *l = calloc(1, sizeof *l);
    if (l == NULL)
        return STATUS_NO_MEMORY;
    l->ndpi = ndpi_new();
    if (l->ndpi == NULL) {
        free(l);
        return STATUS_NO_MEMORY;
    }
    ndpi_enable(l->ndpi);
    *ret_labeler = l;
    return STATUS_OK;
}

void labeler_close(struct labeler *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < l->name_count; i++)
        free(l->names[i]);
    free(l->names);
    ndpi_exit_detection_module(l->ndpi);
    free(l);
}

static struct name *name_add(struct labeler *l, struct answer a)
{
    if (l->name_count == l->name_room) {
        size_t room = l->name_room ? 2 * l->name_room : 32;
        struct name **names = realloc(l->names, room * sizeof *names);
        if (names == NULL)
            return NULL;
        l->names = names;
        l->name_room = room;
    }
    struct name *name = malloc(sizeof *name);
    if (name == NULL)
        return NULL;
    name->lower = a.lower;
    name->upper = a.upper;
    const char *lower = ndpi_get_proto_name(l->ndpi, a.lower);
    const char *upper = ndpi_get_proto_name(l->ndpi, a.upper);
    if (a.lower == NDPI_PROTOCOL_UNKNOWN || a.lower == a.upper)
        snprintf(name->text, sizeof name->text, "%s", upper);
    else if (a.upper == NDPI_PROTOCOL_UNKNOWN)
        snprintf(name->text, sizeof name->text, "%s", lower);
    else
        snprintf(name->text, sizeof name->text, "%s.%s", lower, upper);
    l->names[l->name_count++] = name;
    return name;
}

static const char *name_text(struct labeler *l, struct answer a)
{
    for (size_t i = 0; i < l->name_count; i++)
        if (l->names[i]->lower == a.lower && l->names[i]->upper == a.upper)
            return l->names[i]->text;
    const struct name *name = name_add(l, a);
    return name != NULL ? name->text : NULL;
}

static bool answer_known(struct answer a)
{
    return a.lower != NDPI_PROTOCOL_UNKNOWN || a.upper != NDPI_PROTOCOL_UNKNOWN;
}

static bool answer_is_bare_tls(struct answer a)
{
    return (a.lower == NDPI_PROTOCOL_TLS || a.lower == NDPI_PROTOCOL_UNKNOWN) &&
           a.upper == NDPI_PROTOCOL_TLS;
}

static struct label label_of(struct labeler *l, struct answer a)
{
    if (!answer_known(a))
        return (struct label){ 0 };
    bool has_category = a.category != NDPI_PROTOCOL_CATEGORY_UNSPECIFIED;
    return (struct label){
        .protocol = name_text(l, a),
        .category = has_category ? ndpi_category_get_name(l->ndpi, a.category) : NULL,
    };
}

static void flow_free(struct label_flow **state)
{
    if (*state == NULL)
        return;
    ndpi_free_flow_data(&(*state)->ndpi);
    free(*state);
    *state = NULL;
}

/* TLS as nDPI calls it on the ports that imply what it carries. */
static uint16_t tls_on_port(uint16_t port)
{
    switch (port) {
    case 465:
    case 587:
        return NDPI_PROTOCOL_MAIL_SMTPS;
    case 993:
        return NDPI_PROTOCOL_MAIL_IMAPS;
    case 995:
        return NDPI_PROTOCOL_MAIL_POPS;
    default:
        return NDPI_PROTOCOL_TLS;
    }
}

struct label label_tls(struct labeler *l, struct label_flow **state, struct bytes server_name,
                       const struct endpoint *server)
{
    flow_free(state);
    char name[SERVER_NAME_MAX + 1] = "";
    struct bytes text = bytes_first(server_name, SERVER_NAME_MAX);
    if (text.len != 0)
        memcpy(name, text.at, text.len);

    struct answer a = { .lower = NDPI_PROTOCOL_TLS };
    ndpi_protocol_match_result match = { 0 };
    if (text.len != 0 &&
        ndpi_match_string_subprotocol(l->ndpi, name, (unsigned)text.len, &match) > 0)
        a.upper = (uint16_t)match.protocol_id;
    else
        a.upper = ndpi_address_owner(l, server);
    if (a.upper == NDPI_PROTOCOL_UNKNOWN)
        a.lower = tls_on_port(server->port);
    if (text.len == 0 || !ndpi_name_category(l, name, (unsigned)text.len, &a.category))
        a.category = match.protocol_category;
    if (a.category == NDPI_PROTOCOL_CATEGORY_UNSPECIFIED)
        a.category = ndpi_category(l, a.lower, a.upper);
    return label_of(l, a);
}

bool label_packet(struct labeler *l, struct label_flow **state, struct bytes ip_packet,
                  int64_t at_ns, enum side from, bool last_needed, struct label *ret_label)
{
    if (*state == NULL && (*state = calloc(1, sizeof **state)) == NULL) {
        *ret_label = (struct label){ 0 };
        return true;
    }
    struct label_flow *f = *state;
    struct answer a = ndpi_packet(l, f, ip_packet, (uint64_t)at_ns / 1000000);
    bool last = last_needed || ++f->packets >= PACKETS_MAX;
    bool name_may_follow = answer_is_bare_tls(a) && from == CLIENT;
    if (!last && (!answer_known(a) || name_may_follow))
        return false;
    if (!answer_known(a))
        a = ndpi_guess(l, f);
    flow_free(state);
    *ret_label = label_of(l, a);
    return true;
}

struct label label_finish(struct labeler *l, struct label_flow **state)
{
    if (*state == NULL)
        return (struct label){ 0 };
    struct answer a = ndpi_guess(l, *state);
    flow_free(state);
    return label_of(l, a);
}

/* ---- Community ID ---- */

/*
 * Made here, since nDPI 4.2 orders the ports by their bytes as numbers of this machine when the
 * addresses are equal, as on a loopback interface, and then nobody else finds the flow.
 */
enum { SHA1_SIZE = 20 };

/* What is hashed: seed, both ends in order, protocol, a zero, both ports. */
struct community_key {
    uint8_t octet[2 + 16 + 16 + 1 + 1 + 2 + 2];
    size_t len;
};

static void key_add(struct community_key *key, const uint8_t *from, size_t len)
{
    memcpy(key->octet + key->len, from, len);
    key->len += len;
}

static void key_add_address(struct community_key *key, const struct address *a)
{
    if (address_is_ipv4(a))
        key_add(key, a->octet + 12, 4);
    else
        key_add(key, a->octet, 16);
}

static void key_add_u16(struct community_key *key, unsigned value)
{
    uint8_t octet[] = { (uint8_t)(value >> 8), (uint8_t)value };
    key_add(key, octet, sizeof octet);
}

/* RFC 4648 4, with padding; text has room for it and a terminator. */
static void base64(const uint8_t *from, size_t len, char *text)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < len; i += 3) {
        unsigned group = (unsigned)from[i] << 16;
        group |= i + 1 < len ? (unsigned)from[i + 1] << 8 : 0;
        group |= i + 2 < len ? from[i + 2] : 0;
        *text++ = DIGITS[group >> 18];
        *text++ = DIGITS[group >> 12 & 63];
        *text++ = i + 1 < len ? DIGITS[group >> 6 & 63] : '=';
        *text++ = i + 2 < len ? DIGITS[group & 63] : '=';
    }
    *text = '\0';
}

const char *community_id_text(const struct endpoint *client, const struct endpoint *server,
                              char buffer[COMMUNITY_ID_SIZE])
{
    bool in_order = endpoint_compare(client, server) <= 0;
    const struct endpoint *low = in_order ? client : server;
    const struct endpoint *high = in_order ? server : client;
    struct community_key key = { 0 };
    key_add_u16(&key, 0); /* seed */
    key_add_address(&key, &low->address);
    key_add_address(&key, &high->address);
    key_add_u16(&key, IPPROTO_TCP << 8);
    key_add_u16(&key, low->port);
    key_add_u16(&key, high->port);

    uint8_t hash[SHA1_SIZE];
    ndpi_string_sha1_hash(key.octet, key.len, hash);
    memcpy(buffer, "1:", 2);
    base64(hash, sizeof hash, buffer + 2);
    return buffer;
}
