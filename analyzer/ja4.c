/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JA4, the fingerprint of a TLS client, after its public description (FoxIO, JA4.md):
 *
 *   t13d1516h2_8daaf6152771_e5627efa2ab1
 *   | | || | |       |            +- hash of extensions, sorted, and signature algorithms as sent
 *   | | || | |       +-------------- hash of cipher suites, sorted
 *   | | || | +---------------------- first and last character of the first ALPN protocol
 *   | | || +------------------------ number of extensions
 *   | | |+-------------------------- number of cipher suites
 *   | | +--------------------------- d with, i without server_name
 *   | +----------------------------- highest version
 *   +------------------------------- t for TLS over TCP
 *
 * A hash is the first 12 hex digits of SHA-256; GREASE values count nowhere.
 */
/* Two short hashes per connection: the EVP interface spends ten times their work on fetching. */
#define OPENSSL_SUPPRESS_DEPRECATED

#include "hello.h"

#include <openssl/sha.h>
#include <stdio.h>

enum {
    /* Of suites, extensions or signature algorithms: above the number that are registered. */
    VALUES_MAX = 512,
    VALUE_TEXT_LEN = 5,   /* 4 hex digits and a separator */
    HASH_TEXT_SIZE = 13,  /* with terminator */
    COUNT_SHOWN_MAX = 99, /* two digits */
    EXTENSION_SERVER_NAME = 0,
    EXTENSION_SIGNATURE_ALGORITHMS = 13,
    EXTENSION_ALPN = 16,
};

static const char HEX[] = "0123456789abcdef";

struct values {
    uint16_t value[VALUES_MAX];
    size_t count;
    bool too_many;
};

static void add_value(struct values *v, uint16_t value)
{
    if (is_grease(value))
        return;
    if (v->count == VALUES_MAX)
        v->too_many = true;
    else
        v->value[v->count++] = value;
}

static void add_list(struct values *v, struct bytes list)
{
    struct reader r = reader_of(list);
    while (r.rest.len >= 2)
        add_value(v, reader_u16(&r));
}

/* Insertion: the lists are short and nearly in order; VALUES_MAX bounds the worst of them. */
static void sort_values(struct values *v)
{
    for (size_t i = 1; i < v->count; i++) {
        uint16_t value = v->value[i];
        size_t at = i;
        for (; at > 0 && v->value[at - 1] > value; at--)
            v->value[at] = v->value[at - 1];
        v->value[at] = value;
    }
}

/* What JA4 looks at in the extensions. */
struct extensions {
    struct values hashed;               /* without server_name and ALPN */
    struct values signature_algorithms; /* RFC 8446 4.2.3 (RFC 9846 4.3.3) */
    size_t count;
    bool has_server_name;
};

/* The vector is well-formed: the hello is complete. */
static void read_extensions(struct bytes vector, struct extensions *e)
{
    struct reader r = reader_of(vector);
    while (r.rest.len > 0) {
        uint16_t type = reader_u16(&r);
        struct reader body = reader_vector(&r, 2);
        if (is_grease(type))
            continue;
        e->count++;
        if (type == EXTENSION_SERVER_NAME)
            e->has_server_name = true;
        else if (type != EXTENSION_ALPN)
            add_value(&e->hashed, type);
        if (type == EXTENSION_SIGNATURE_ALGORITHMS)
            add_list(&e->signature_algorithms, reader_vector(&body, 2).rest);
    }
}

static const char *version_code(uint16_t version)
{
    switch (version) {
    case TLS_1_3:
        return "13";
    case TLS_1_2:
        return "12";
    case TLS_1_1:
        return "11";
    case TLS_1_0:
        return "10";
    case SSL_3_0:
        return "s3";
    case SSL_2_0:
        return "s2";
    default:
        return "00";
    }
}

static bool is_alphanumeric(uint8_t c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

/* Writes two characters for the first protocol of the list: its own, or those of its hex form. */
static void alpn_code(struct bytes list, char code[3])
{
    struct reader names = reader_of(list);
    struct bytes name = reader_vector(&names, 1).rest;
    uint8_t first = '0', last = '0';
    if (name.len > 0) {
        first = name.at[0];
        last = name.at[name.len - 1];
    }
    bool is_text = is_alphanumeric(first) && is_alphanumeric(last);
    code[0] = is_text ? (char)first : HEX[first >> 4];
    code[1] = is_text ? (char)last : HEX[last & 15];
    code[2] = '\0';
}

/* Writes "002f,0035,"; returns its length. By hand: snprintf() is most of the time otherwise. */
static size_t values_text(const struct values *v, char *text)
{
    for (size_t i = 0; i < v->count; i++) {
        char *digit = text + i * VALUE_TEXT_LEN;
        digit[0] = HEX[v->value[i] >> 12];
        digit[1] = HEX[v->value[i] >> 8 & 15];
        digit[2] = HEX[v->value[i] >> 4 & 15];
        digit[3] = HEX[v->value[i] & 15];
        digit[4] = ',';
    }
    return v->count * VALUE_TEXT_LEN;
}

/* Writes the short hash of a text; false when libcrypto cannot. */
static bool hash_text(const char *text, size_t len, char hash[HASH_TEXT_SIZE])
{
    uint8_t digest[SHA256_DIGEST_LENGTH];
    SHA256_CTX sha;
    if (SHA256_Init(&sha) != 1 || SHA256_Update(&sha, text, len) != 1 ||
        SHA256_Final(digest, &sha) != 1)
        return false;
    for (size_t i = 0; i < HASH_TEXT_SIZE - 1; i++)
        hash[i] = HEX[i % 2 == 0 ? digest[i / 2] >> 4 : digest[i / 2] & 15];
    hash[HASH_TEXT_SIZE - 1] = '\0';
    return true;
}

/* Hash of values, in their order, and behind an underscore of more, unless there are none. */
static bool hash_values(const struct values *values, const struct values *more,
                        char hash[HASH_TEXT_SIZE])
{
    char text[2 * VALUES_MAX * VALUE_TEXT_LEN];

    if (values->count == 0) {
        snprintf(hash, HASH_TEXT_SIZE, "000000000000");
        return true;
    }
    size_t len = values_text(values, text);
    if (more->count > 0) {
        text[len - 1] = '_';
        len += values_text(more, text + len);
    }
    return hash_text(text, len - 1, hash);
}

static unsigned shown_count(size_t count)
{
    return count < COUNT_SHOWN_MAX ? (unsigned)count : COUNT_SHOWN_MAX;
}

void ja4_text(const struct client_hello *hello, char buffer[JA4_TEXT_SIZE])
{
    static const struct values NONE = { 0 };

    struct values suites = { 0 };
    struct extensions extensions = { 0 };
    char alpn[3], suites_hash[HASH_TEXT_SIZE], extensions_hash[HASH_TEXT_SIZE];

    buffer[0] = '\0';
    if (!hello->complete || hello->is_v2_format)
        return;
    add_list(&suites, hello->cipher_suites);
    read_extensions(hello->extensions, &extensions);
    if (suites.too_many || extensions.hashed.too_many || extensions.signature_algorithms.too_many)
        return;
    sort_values(&suites);
    sort_values(&extensions.hashed);
    alpn_code(hello->alpn, alpn);
    if (!hash_values(&suites, &NONE, suites_hash) ||
        !hash_values(&extensions.hashed, &extensions.signature_algorithms, extensions_hash))
        return;
    snprintf(buffer, JA4_TEXT_SIZE, "t%s%c%02u%02u%s_%s_%s", version_code(hello->max_version),
             extensions.has_server_name ? 'd' : 'i', shown_count(suites.count),
             shown_count(extensions.count), alpn, suites_hash, extensions_hash);
}
