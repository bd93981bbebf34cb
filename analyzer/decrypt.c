/* SPDX-License-Identifier: Apache-2.0 */
#include "decrypt.h"

#include "hello.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

enum cipher { CIPHER_NONE, CIPHER_GCM, CIPHER_CCM, CIPHER_CHACHA, CIPHER_CBC };

enum {
    HASH_LEN_MAX = 48,
    NONCE_LEN = 12,
    IMPLICIT_LEN = 4, /* RFC 5288 3: salt of the nonce; the rest is sent with the record */
    EXPLICIT_LEN = 8,
    AES_BLOCK_LEN = 16,
    TAG_LEN = 16,
    TAG_LEN_SHORT = 8,
    HEADER_LEN = 5,
    SEQUENCE_LEN = 8,
};

struct suite {
    enum cipher cipher;
    uint8_t key_len, tag_len;
    uint8_t mac_len;  /* of CBC suites */
    uint8_t hash_len; /* of HKDF, of the PRF */
};

/* ---- suites ---- */

/* RFC 8446 B.4 */
static struct suite suite_13(uint16_t number)
{
    switch (number) {
    case 0x1301:
        return (struct suite){ CIPHER_GCM, 16, TAG_LEN, 0, 32 };
    case 0x1302:
        return (struct suite){ CIPHER_GCM, 32, TAG_LEN, 0, 48 };
    case 0x1303:
        return (struct suite){ CIPHER_CHACHA, 32, TAG_LEN, 0, 32 };
    case 0x1304:
        return (struct suite){ CIPHER_CCM, 16, TAG_LEN, 0, 32 };
    case 0x1305:
        return (struct suite){ CIPHER_CCM, 16, TAG_LEN_SHORT, 0, 32 };
    default:
        return (struct suite){ 0 };
    }
}

/* A suite's name says all but the PRF's hash: SHA-256 unless it ends in SHA384. RFC 5246 5 */
static struct suite suite_12(uint16_t number)
{
    static const struct {
        const char *name;
        struct suite suite;
    } SUITES[] = {
        { "AES_128_GCM_SHA256", { CIPHER_GCM, 16, TAG_LEN, 0, 32 } },
        { "AES_256_GCM_SHA384", { CIPHER_GCM, 32, TAG_LEN, 0, 48 } },
        { "CHACHA20_POLY1305_SHA256", { CIPHER_CHACHA, 32, TAG_LEN, 0, 32 } },
        { "AES_128_CCM", { CIPHER_CCM, 16, TAG_LEN, 0, 32 } },
        { "AES_256_CCM", { CIPHER_CCM, 32, TAG_LEN, 0, 32 } },
        { "AES_128_CCM_8", { CIPHER_CCM, 16, TAG_LEN_SHORT, 0, 32 } },
        { "AES_256_CCM_8", { CIPHER_CCM, 32, TAG_LEN_SHORT, 0, 32 } },
        { "AES_128_CBC_SHA", { CIPHER_CBC, 16, 0, 20, 32 } },
        { "AES_256_CBC_SHA", { CIPHER_CBC, 32, 0, 20, 32 } },
        { "AES_128_CBC_SHA256", { CIPHER_CBC, 16, 0, 32, 32 } },
        { "AES_256_CBC_SHA256", { CIPHER_CBC, 32, 0, 32, 32 } },
        { "AES_256_CBC_SHA384", { CIPHER_CBC, 32, 0, 48, 48 } },
    };
    static const char WITH[] = "_WITH_";
    const char *name = cipher_suite_name(number);
    const char *with = name == NULL ? NULL : strstr(name, WITH);
    for (size_t i = 0; with != NULL && i < sizeof SUITES / sizeof *SUITES; i++)
        if (strcmp(with + strlen(WITH), SUITES[i].name) == 0)
            return SUITES[i].suite;
    return (struct suite){ 0 };
}

/* ---- key derivation ---- */

static const EVP_MD *hash_of(size_t len)
{
    return len == 48 ? EVP_sha384() : len == 20 ? EVP_sha1() : EVP_sha256();
}

static bool hmac(size_t hash_len, struct bytes key, struct bytes data, uint8_t *ret_mac)
{
    unsigned mac_len = 0;
    return HMAC(hash_of(hash_len), key.at, (int)key.len, data.at, data.len, ret_mac, &mac_len) !=
               NULL &&
           mac_len == hash_len;
}

static size_t put(uint8_t *space, size_t at, struct bytes b)
{
    if (b.len > 0)
        memcpy(space + at, b.at, b.len);
    return at + b.len;
}

/*
 * HKDF-Expand-Label with an empty context, for at most one block of the hash: T(1) alone.
 * RFC 8446 7.1, RFC 5869 2.3
 */
static bool expand_label(const struct secret *secret, const char *label, size_t len,
                         uint8_t *ret_octets)
{
    static const char PREFIX[] = "tls13 ";
    uint8_t info[64], block[HASH_LEN_MAX];
    size_t label_len = strlen(PREFIX) + strlen(label), n = 0;
    if (len > secret->len)
        return false;
    info[n++] = 0;
    info[n++] = (uint8_t)len;
    info[n++] = (uint8_t)label_len;
    n = put(info, n, (struct bytes){ (const uint8_t *)PREFIX, strlen(PREFIX) });
    n = put(info, n, (struct bytes){ (const uint8_t *)label, strlen(label) });
    info[n++] = 0; /* context */
    info[n++] = 1; /* counter of T */
    if (!hmac(secret->len, (struct bytes){ secret->octet, secret->len }, (struct bytes){ info, n },
              block))
        return false;
    memcpy(ret_octets, block, len);
    return true;
}

bool record_key_13(uint16_t suite, const struct secret *secret, struct record_key *ret_key)
{
    struct suite s = suite_13(suite);
    if (s.cipher == CIPHER_NONE || secret->len != s.hash_len)
        return false;
    *ret_key = (struct record_key){
        .cipher = (uint8_t)s.cipher,
        .is_13 = true,
        .key_len = s.key_len,
        .iv_len = NONCE_LEN,
        .tag_len = s.tag_len,
    };
    return expand_label(secret, "key", s.key_len, ret_key->key) &&
           expand_label(secret, "iv", NONCE_LEN, ret_key->iv);
}

bool next_traffic_secret(uint16_t suite, const struct secret *secret, struct secret *ret_next)
{
    if (secret->len != suite_13(suite).hash_len)
        return false;
    struct secret next = { .len = secret->len };
    if (!expand_label(secret, "traffic upd", secret->len, next.octet))
        return false;
    *ret_next = next;
    return true;
}

/* P_hash(secret, seed) of RFC 5246 5; seed holds the label, too. */
static bool prf(size_t hash_len, const struct secret *secret, struct bytes seed,
                uint8_t *ret_octets, size_t len)
{
    enum { SEED_MAX = 96 };
    uint8_t a[HASH_LEN_MAX + SEED_MAX], block[HASH_LEN_MAX];
    struct bytes key = { secret->octet, secret->len };
    assert(seed.len <= SEED_MAX);
    if (!hmac(hash_len, key, seed, a))
        return false;
    for (size_t done = 0; done < len; done += hash_len) {
        size_t n = put(a, hash_len, seed);
        if (!hmac(hash_len, key, (struct bytes){ a, n }, block) ||
            !hmac(hash_len, key, (struct bytes){ a, hash_len }, a))
            return false;
        memcpy(ret_octets + done, block, len - done < hash_len ? len - done : hash_len);
    }
    return true;
}

/* What of the nonce comes out of the key block; CBC records bring their IV with them. */
static uint8_t iv_len_12(enum cipher cipher)
{
    if (cipher == CIPHER_CBC)
        return 0;
    return cipher == CIPHER_CHACHA ? NONCE_LEN : IMPLICIT_LEN;
}

bool record_keys_12(uint16_t suite, const struct secret *master, struct bytes client_random,
                    struct bytes server_random, bool encrypt_then_mac,
                    struct record_key ret_keys[2])
{
    static const char LABEL[] = "key expansion";
    struct suite s = suite_12(suite);
    uint8_t seed[sizeof LABEL + (size_t)2 * CLIENT_RANDOM_LEN];
    uint8_t block[2 * (48 + 32 + NONCE_LEN)];
    if (s.cipher == CIPHER_NONE || master->len != SECRET_LEN_MAX ||
        client_random.len != CLIENT_RANDOM_LEN || server_random.len != CLIENT_RANDOM_LEN)
        return false;
    uint8_t iv_len = iv_len_12(s.cipher);
    size_t n = put(seed, 0, (struct bytes){ (const uint8_t *)LABEL, strlen(LABEL) });
    n = put(seed, n, server_random);
    n = put(seed, n, client_random);
    size_t block_len = 2 * ((size_t)s.mac_len + s.key_len + iv_len);
    if (!prf(s.hash_len, master, (struct bytes){ seed, n }, block, block_len))
        return false;
    struct reader r = reader_of((struct bytes){ block, block_len });
    for (unsigned side = 0; side < 2; side++) {
        ret_keys[side] = (struct record_key){
            .cipher = (uint8_t)s.cipher,
            .mac = s.mac_len,
            .encrypt_then_mac = encrypt_then_mac && s.cipher == CIPHER_CBC,
            .key_len = s.key_len,
            .iv_len = iv_len,
            .tag_len = s.tag_len,
        };
        put(ret_keys[side].mac_key, 0, reader_take(&r, s.mac_len));
    }
    for (unsigned side = 0; side < 2; side++)
        put(ret_keys[side].key, 0, reader_take(&r, s.key_len));
    for (unsigned side = 0; side < 2; side++)
        put(ret_keys[side].iv, 0, reader_take(&r, iv_len));
    return true;
}

/* ---- AEAD ---- */

static const EVP_CIPHER *aead_of(const struct record_key *key)
{
    bool is_256 = key->key_len == 32;
    if (key->cipher == CIPHER_CHACHA)
        return EVP_chacha20_poly1305();
    if (key->cipher == CIPHER_CCM)
        return is_256 ? EVP_aes_256_ccm() : EVP_aes_128_ccm();
    return is_256 ? EVP_aes_256_gcm() : EVP_aes_128_gcm();
}

struct aead_input {
    uint8_t nonce[NONCE_LEN];
    uint8_t associated[SEQUENCE_LEN + HEADER_LEN];
    int associated_len;
    struct bytes ciphertext, tag;
};

/* CCM wants the tag before the key, and the length before the data; both wants are harmless to the
 * other ciphers but for the length. */
static bool aead_decrypt(EVP_CIPHER_CTX *c, const struct record_key *key,
                         const struct aead_input *in, uint8_t *space)
{
    int n = 0, len = (int)in->ciphertext.len;
    bool is_ccm = key->cipher == CIPHER_CCM;
    bool ok =
        EVP_DecryptInit_ex(c, aead_of(key), NULL, NULL, NULL) == 1 &&
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_IVLEN, NONCE_LEN, NULL) == 1 &&
        EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, (int)in->tag.len, (void *)in->tag.at) == 1 &&
        EVP_DecryptInit_ex(c, NULL, NULL, key->key, in->nonce) == 1;
    if (ok && is_ccm)
        ok = EVP_DecryptUpdate(c, NULL, &n, NULL, len) == 1;
    ok = ok && EVP_DecryptUpdate(c, NULL, &n, in->associated, in->associated_len) == 1 &&
         EVP_DecryptUpdate(c, space, &n, in->ciphertext.at, len) == 1;
    return ok && (is_ccm || EVP_DecryptFinal_ex(c, space + n, &n) == 1);
}

static void put_be(uint8_t *space, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width; i++)
        space[i] = (uint8_t)(value >> 8 * (width - 1 - i));
}

/* RFC 8446 5.3, RFC 7905 2: the sequence number, padded on the left, over the IV. */
static void xor_sequence(uint8_t nonce[NONCE_LEN], uint64_t sequence)
{
    uint8_t number[SEQUENCE_LEN];
    put_be(number, sequence, SEQUENCE_LEN);
    for (unsigned i = 0; i < SEQUENCE_LEN; i++)
        nonce[NONCE_LEN - SEQUENCE_LEN + i] ^= number[i];
}

static void put_header(uint8_t header[HEADER_LEN], const struct sealed_record *r, size_t len)
{
    header[0] = r->type;
    put_be(header + 1, r->version, 2);
    put_be(header + 3, len, 2);
}

/* Nonce, associated data and parts of a record; false when it is too short. */
static bool aead_input(const struct record_key *key, uint64_t sequence,
                       const struct sealed_record *sealed, struct aead_input *ret_input)
{
    bool is_explicit = !key->is_13 && key->cipher != CIPHER_CHACHA;
    struct reader r = reader_of(sealed->body);
    struct bytes nonce = is_explicit ? reader_take(&r, EXPLICIT_LEN) : (struct bytes){ 0 };
    if (r.short_read || r.rest.len < key->tag_len)
        return false;
    struct aead_input in = { .ciphertext = reader_take(&r, r.rest.len - key->tag_len) };
    in.tag = r.rest;
    size_t n = put(in.nonce, 0, (struct bytes){ key->iv, key->iv_len });
    put(in.nonce, n, nonce);
    if (!is_explicit)
        xor_sequence(in.nonce, sequence);
    if (key->is_13) {
        put_header(in.associated, sealed, sealed->body.len);
        in.associated_len = HEADER_LEN;
    } else { /* RFC 5246 6.2.3.3: with the plaintext's length */
        put_be(in.associated, sequence, SEQUENCE_LEN);
        put_header(in.associated + SEQUENCE_LEN, sealed, in.ciphertext.len);
        in.associated_len = SEQUENCE_LEN + HEADER_LEN;
    }
    *ret_input = in;
    return true;
}

static bool open_aead(const struct record_key *key, uint64_t sequence,
                      const struct sealed_record *sealed, uint8_t *space,
                      struct bytes *ret_plaintext)
{
    struct aead_input in;
    if (!aead_input(key, sequence, sealed, &in))
        return false;
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    bool ok = c != NULL && aead_decrypt(c, key, &in, space);
    EVP_CIPHER_CTX_free(c);
    *ret_plaintext = (struct bytes){ space, in.ciphertext.len };
    return ok;
}

/* ---- CBC with HMAC ---- */

/* The HMAC over sequence number, header and content. RFC 5246 6.2.3.1, RFC 7366 3 */
static bool is_authentic(const struct record_key *key, uint64_t sequence,
                         const struct sealed_record *sealed, struct bytes content, struct bytes mac)
{
    uint8_t front[SEQUENCE_LEN + HEADER_LEN], expected[HASH_LEN_MAX];
    size_t expected_len = sizeof expected;
    put_be(front, sequence, SEQUENCE_LEN);
    put_header(front + SEQUENCE_LEN, sealed, content.len);
    EVP_PKEY *mac_key = EVP_PKEY_new_raw_private_key(EVP_PKEY_HMAC, NULL, key->mac_key, key->mac);
    EVP_MD_CTX *c = EVP_MD_CTX_new();
    bool ok = mac_key != NULL && c != NULL &&
              EVP_DigestSignInit(c, NULL, hash_of(key->mac), NULL, mac_key) == 1 &&
              EVP_DigestSignUpdate(c, front, sizeof front) == 1 &&
              EVP_DigestSignUpdate(c, content.at, content.len) == 1 &&
              EVP_DigestSignFinal(c, expected, &expected_len) == 1;
    EVP_MD_CTX_free(c);
    EVP_PKEY_free(mac_key);
    return ok && bytes_equal((struct bytes){ expected, expected_len }, mac);
}

static bool cbc_decrypt(const struct record_key *key, struct bytes iv, struct bytes ciphertext,
                        uint8_t *space)
{
    int n = 0;
    EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
    const EVP_CIPHER *cipher = key->key_len == 32 ? EVP_aes_256_cbc() : EVP_aes_128_cbc();
    bool ok = c != NULL && EVP_DecryptInit_ex(c, cipher, NULL, key->key, iv.at) == 1 &&
              EVP_CIPHER_CTX_set_padding(c, 0) == 1 &&
              EVP_DecryptUpdate(c, space, &n, ciphertext.at, (int)ciphertext.len) == 1 &&
              EVP_DecryptFinal_ex(c, space + n, &n) == 1;
    EVP_CIPHER_CTX_free(c);
    return ok;
}

/* Takes the padding off: n bytes of the value n, and one more. RFC 5246 6.2.3.2 */
static bool take_padding(struct bytes *plaintext)
{
    uint8_t n = plaintext->at[plaintext->len - 1];
    if (n >= plaintext->len)
        return false;
    for (size_t i = plaintext->len - 1 - n; i < plaintext->len; i++)
        if (plaintext->at[i] != n)
            return false;
    plaintext->len -= 1U + n;
    return true;
}

static bool open_cbc(const struct record_key *key, uint64_t sequence,
                     const struct sealed_record *sealed, uint8_t *space,
                     struct bytes *ret_plaintext)
{
    struct bytes body = sealed->body, mac = { 0 };
    if (key->encrypt_then_mac) {
        if (body.len < key->mac)
            return false;
        body = bytes_first(body, body.len - key->mac);
        mac = bytes_after(sealed->body, body.len);
        if (!is_authentic(key, sequence, sealed, body, mac))
            return false;
    }
    if (body.len < (size_t)2 * AES_BLOCK_LEN || body.len % AES_BLOCK_LEN != 0)
        return false;
    struct bytes plaintext = { space, body.len - AES_BLOCK_LEN };
    if (!cbc_decrypt(key, bytes_first(body, AES_BLOCK_LEN), bytes_after(body, AES_BLOCK_LEN),
                     space) ||
        !take_padding(&plaintext))
        return false;
    *ret_plaintext = plaintext;
    if (key->encrypt_then_mac)
        return true;
    if (plaintext.len < key->mac)
        return false;
    *ret_plaintext = bytes_first(plaintext, plaintext.len - key->mac);
    return is_authentic(key, sequence, sealed, *ret_plaintext,
                        bytes_after(plaintext, ret_plaintext->len));
}

/* ---- records ---- */

/* The content's type is the last byte that is not zero. RFC 8446 5.4 */
static bool take_inner_type(struct bytes plaintext, struct opened_record *ret_record)
{
    size_t len = plaintext.len;
    while (len > 0 && plaintext.at[len - 1] == 0)
        len--;
    if (len == 0)
        return false;
    ret_record->type = plaintext.at[len - 1];
    ret_record->content = bytes_first(plaintext, len - 1);
    return true;
}

bool record_open(const struct record_key *key, uint64_t sequence,
                 const struct sealed_record *sealed, uint8_t *space,
                 struct opened_record *ret_record)
{
    struct bytes plaintext;
    bool ok = key->cipher == CIPHER_CBC ? open_cbc(key, sequence, sealed, space, &plaintext)
                                        : open_aead(key, sequence, sealed, space, &plaintext);
    if (!ok)
        return false;
    if (key->is_13)
        return take_inner_type(plaintext, ret_record);
    *ret_record = (struct opened_record){ sealed->type, plaintext };
    return true;
}
