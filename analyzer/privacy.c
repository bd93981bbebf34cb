/* SPDX-License-Identifier: Apache-2.0 */
#include "privacy.h"

#include "hash.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    KEY_FILE_MIN = 16,
    KEY_FILE_MAX = 4096,
    HASH_LEN = 16,
    FIRST_FREE_PORT = 1024, /* below it servers listen, and no client of today sends from there */
};

static const char *const SHOWN_WORDS[] = {
    [SHOWN_FULL] = "full",
    [SHOWN_PREFIX] = "prefix",
    [SHOWN_HASH] = "hash",
    [SHOWN_NONE] = "none",
};

bool shown_parse(const char *word, enum shown *ret_shown)
{
    for (enum shown shown = SHOWN_FULL; shown <= SHOWN_NONE; shown++)
        if (strcmp(word, SHOWN_WORDS[shown]) == 0) {
            *ret_shown = shown;
            return true;
        }
    return false;
}

const char *shown_text(enum shown shown)
{
    return SHOWN_WORDS[shown];
}

/* ---- the key ---- */

bool privacy_needs_key(const struct privacy *p)
{
    return p->client_addr != SHOWN_FULL || p->sni == SHOWN_HASH;
}

static bool is_white(uint8_t c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

enum status privacy_read_key(struct privacy *p, const char *path)
{
    uint8_t content[KEY_FILE_MAX + 1];
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return STATUS_IO;
    size_t len = fread(content, 1, sizeof content, file);
    bool failed = ferror(file) != 0;
    int reason = errno;
    fclose(file);
    errno = reason;
    if (failed)
        return STATUS_IO;
    bool too_long = len > KEY_FILE_MAX;
    while (len > 0 && is_white(content[len - 1]))
        len--;
    if (too_long || len < KEY_FILE_MIN)
        return STATUS_REFUSED;
    bool ok = EVP_Digest(content, len, p->key, NULL, EVP_sha256(), NULL) == 1;
    return ok ? STATUS_OK : STATUS_NO_MEMORY;
}

enum status privacy_make_key(const char *path)
{
    uint8_t random[PRIVACY_KEY_SIZE];
    char hex[2 * PRIVACY_KEY_SIZE + 2];
    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return STATUS_IO;
    hex_text((struct bytes){ random, sizeof random }, hex);
    hex[sizeof hex - 2] = '\n';
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return STATUS_IO;
    bool written = write(fd, hex, sizeof hex - 1) == (ssize_t)(sizeof hex - 1) && fsync(fd) == 0;
    int reason = errno;
    written &= close(fd) == 0;
    if (!written) {
        unlink(path);
        errno = reason;
    }
    return written ? STATUS_OK : STATUS_IO;
}

/* ---- hashes ---- */

/*
 * What is hashed is told apart by kind, so that an address and a name never have the same hash.
 * OpenSSL can only fail here for want of memory; then zeros, never what was to be hidden.
 */
static void keyed_hash(const struct privacy *p, char kind, struct bytes value,
                       uint8_t ret_hash[HASH_LEN])
{
    uint8_t message[1 + 1024];
    uint8_t mac[EVP_MAX_MD_SIZE] = { 0 };
    unsigned mac_len;
    size_t len = value.len < sizeof message - 1 ? value.len : sizeof message - 1;
    message[0] = (uint8_t)kind;
    memcpy(message + 1, value.at, len);
    if (HMAC(EVP_sha256(), p->key, sizeof p->key, message, len + 1, mac, &mac_len) == NULL)
        memset(mac, 0, sizeof mac);
    memcpy(ret_hash, mac, HASH_LEN);
}

static const char *hash_hex(const struct privacy *p, char kind, const char *value,
                            char hex[PRIVACY_HASH_SIZE])
{
    uint8_t hash[HASH_LEN];
    keyed_hash(p, kind, (struct bytes){ (const uint8_t *)value, strlen(value) }, hash);
    return hex_text((struct bytes){ hash, sizeof hash }, hex);
}

const char *privacy_key_check(const struct privacy *p, char text[PRIVACY_HASH_SIZE])
{
    return hash_hex(p, 'k', "", text);
}

static bool replace_by_hash(const struct privacy *p, char kind, struct facts *f, char **text)
{
    char hex[PRIVACY_HASH_SIZE];
    if (*text == NULL)
        return true;
    hash_hex(p, kind, *text, hex);
    return facts_set_text(f, text, hex, strlen(hex));
}

/* Names are the same in upper and lower case (RFC 4343). */
static void lower(char *text)
{
    for (; text != NULL && *text != '\0'; text++)
        if (*text >= 'A' && *text <= 'Z')
            *text = (char)(*text + ('a' - 'A'));
}

static bool hide_name(const struct privacy *p, struct facts *f)
{
    if (p->sni == SHOWN_FULL)
        return true;
    if (p->sni == SHOWN_HASH) {
        lower(f->server_name);
        return replace_by_hash(p, 'n', f, &f->server_name);
    }
    f->server_name = NULL;
    return true;
}

static bool keep_rule(const struct privacy *p, struct facts *f)
{
    if (p->sni == SHOWN_FULL || p->rules == NULL || f->server_name == NULL)
        return true;
    struct bytes name = { (const uint8_t *)f->server_name, strlen(f->server_name) };
    const struct rule *rule = rules_find(p->rules, name);
    return rule == NULL ||
           facts_set_text(f, &f->early_data_rule, rule->pattern, strlen(rule->pattern));
}

enum status privacy_hide_texts(const struct privacy *p, struct facts *f)
{
    bool ok = keep_rule(p, f) && hide_name(p, f);
    if (p->client_addr != SHOWN_FULL) {
        char **const identities[] = {
            &f->session_id_hash,        &f->server_session_id_hash, &f->psk_identity_hash,
            &f->client_hello_hash,      &f->server_random_hash,     &f->ticket_key_name,
            &f->issued_ticket_key_name,
        };
        for (size_t i = 0; i < sizeof identities / sizeof *identities; i++)
            ok = ok && replace_by_hash(p, 't', f, identities[i]);
    }
    return ok ? STATUS_OK : STATUS_NO_MEMORY;
}

/* ---- addresses ---- */

static unsigned network_bits(const struct address *a)
{
    return address_is_ipv4(a) ? 24 : 48;
}

static struct address network_of(const struct address *a)
{
    return address_prefix(a, network_bits(a) + (address_is_ipv4(a) ? 96 : 0));
}

struct address privacy_address(const struct privacy *p, const struct address *a)
{
    struct address stored = { 0 };
    switch (p->client_addr) {
    case SHOWN_FULL:
        return *a;
    case SHOWN_PREFIX:
        return network_of(a);
    case SHOWN_HASH:
        keyed_hash(p, 'a', (struct bytes){ a->octet, sizeof a->octet }, stored.octet);
        break;
    case SHOWN_NONE:
        break;
    }
    return stored;
}

const char *address_network_text(const struct address *a, char buffer[SHOWN_ADDRESS_SIZE])
{
    struct address network = network_of(a);
    address_text(&network, buffer);
    size_t len = strlen(buffer);
    (void)snprintf(buffer + len, SHOWN_ADDRESS_SIZE - len, "%s",
                   address_is_ipv4(a) ? "/24" : "/48");
    return buffer;
}

const char *privacy_address_text(const struct privacy *p, const struct address *a,
                                 char buffer[SHOWN_ADDRESS_SIZE])
{
    struct address stored = privacy_address(p, a);
    switch (p->client_addr) {
    case SHOWN_FULL:
        return address_text(a, buffer);
    case SHOWN_PREFIX:
        return address_network_text(a, buffer);
    case SHOWN_HASH:
        return hex_text((struct bytes){ stored.octet, sizeof stored.octet }, buffer);
    case SHOWN_NONE:
        break;
    }
    return NULL;
}

bool privacy_server_is_guess(const struct facts *f)
{
    return f->client_basis == CLIENT_BY_ORDER || f->client_basis == CLIENT_BY_NOTHING ||
           (f->client_basis == CLIENT_BY_PORT && f->server.port >= FIRST_FREE_PORT);
}

/* "0.0.0.0" or "::" */
static struct address no_address(const struct facts *f)
{
    return f->ip_version == 4 ? address_of_ipv4((const uint8_t[4]){ 0 }) : (struct address){ 0 };
}

struct facts privacy_stored_facts(const struct privacy *p, const struct facts *f)
{
    struct facts stored = *f;
    if (p->client_addr == SHOWN_FULL)
        return stored;
    stored.client.address = no_address(f);
    if (privacy_server_is_guess(f))
        stored.server.address = no_address(f);
    stored.proxied_client_ip = NULL;
    /* flow_uid is a hash over them and more: without them nobody can try values for the rest */
    stored.isn[CLIENT] = stored.isn[SERVER] = 0;
    return stored;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool privacy_parse_client(const char *text, struct address *ret_address)
{
    struct address hash;
    if (address_parse(text, ret_address))
        return true;
    if (strlen(text) != 2 * sizeof hash.octet)
        return false;
    for (size_t i = 0; i < sizeof hash.octet; i++) {
        int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        hash.octet[i] = (uint8_t)(high << 4 | low);
    }
    *ret_address = hash;
    return true;
}
