/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DECRYPT_H
#define DECRYPT_H
/*
 * Record protection undone: secrets to keys, and keys and a record to its plaintext. Pure functions
 * over bytes; nothing is kept. TLS 1.3 with all five suites (RFC 8446 5.2, 7.1, 7.3; RFC 9846
 * same); TLS 1.2 with AES-GCM (RFC 5288), AES-CCM (RFC 6655), ChaCha20-Poly1305 (RFC 7905) and
 * AES-CBC with HMAC (RFC 5246 6.2.3.2), also encrypt-then-MAC (RFC 7366).
 */
#include "secrets.h"

/* What a record is protected with, one direction at one time. */
struct record_key {
    uint8_t cipher; /* enum cipher of decrypt.c */
    uint8_t mac;    /* hash of the CBC suites' HMAC, in bytes of output */
    bool is_13;
    bool encrypt_then_mac;
    uint8_t key_len, iv_len, tag_len;
    uint8_t key[32];
    uint8_t iv[12]; /* what of the nonce does not change */
    uint8_t mac_key[48];
};

/* A record as it lies on the wire: fields of its header, and its whole body. */
struct sealed_record {
    uint8_t type;
    uint16_t version;
    struct bytes body;
};

/* What was in it: the type inside (RFC 8446 5.2), and its content without padding. */
struct opened_record {
    uint8_t type;
    struct bytes content;
};

/*
 * The key of a TLS 1.3 suite that a traffic secret gives. False when the suite is not one of the
 * five or the secret's length is not that of its hash. RFC 8446 7.3
 */
bool record_key_13(uint16_t suite, const struct secret *secret, struct record_key *ret_key);

/* The next traffic secret, behind a KeyUpdate. RFC 8446 7.2 */
bool next_traffic_secret(uint16_t suite, const struct secret *secret, struct secret *ret_next);

/*
 * Both keys of a TLS 1.2 connection, the client's first. False when the suite is not known or the
 * secret is no master secret. Randoms have CLIENT_RANDOM_LEN bytes. RFC 5246 6.3
 */
bool record_keys_12(uint16_t suite, const struct secret *master, struct bytes client_random,
                    struct bytes server_random, bool encrypt_then_mac,
                    struct record_key ret_keys[2]);

/*
 * Opens a record under a key and sequence number. False when it was not sealed with them. space has
 * room for the record's body; ret_record->content lies in it. The caller wipes it.
 */
bool record_open(const struct record_key *key, uint64_t sequence,
                 const struct sealed_record *sealed, uint8_t *space,
                 struct opened_record *ret_record);

#endif
