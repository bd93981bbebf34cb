/* SPDX-License-Identifier: Apache-2.0 */
/* Against the traces of RFC 8448; all suites against OpenSSL are in test_keyed.c. */
#include "decrypt.h"

#include <criterion/criterion.h>
#include <stdio.h>

enum { OCTETS_MAX = 256 };

struct octets {
    uint8_t at[OCTETS_MAX];
    size_t len;
};

static struct octets of_hex(const char *hex)
{
    struct octets o = { 0 };
    unsigned value;
    int used;
    while (sscanf(hex, " %2x%n", &value, &used) == 1) {
        o.at[o.len++] = (uint8_t)value;
        hex += used;
    }
    return o;
}

static struct secret secret_of(const char *hex)
{
    struct octets o = of_hex(hex);
    struct secret s = { .len = (uint8_t)o.len };
    memcpy(s.octet, o.at, o.len);
    return s;
}

/* RFC 8448 3: simple 1-RTT handshake, TLS_AES_128_GCM_SHA256. */
static const char CLIENT_HANDSHAKE_SECRET[] = "b3 ed db 12 6e 06 7f 35 a7 80 b3 ab f4 5e 2d 8f 3b "
                                              "1a 95 07 38 f5 2e 96 00 74 6a 0e 27 a5 5a 21";
static const char CLIENT_FINISHED_RECORD[] =
    "75 ec 4d c2 38 cc e6 0b 29 80 44 a7 1e 21 9c 56 cc 77 b0 51 7f e9 b9 3c 7a 4b fc 44 d8 7f 38 "
    "f8"
    "03 38 ac 98 fc 46 de b3 84 bd 1c ae ac ab 68 67 d7 26 c4 05 46";
static const char CLIENT_FINISHED[] = "14 00 00 20 a8 ec 43 6d 67 76 34 ae 52 5a c1 fc eb e1 1a 03 "
                                      "9e c1 76 94 fa c6 e9 85 27 b6 42 f2"
                                      "ed d5 ce 61";

static void expect_octets(const uint8_t *at, const char *hex)
{
    struct octets o = of_hex(hex);
    cr_expect_arr_eq(at, o.at, o.len);
}

Test(decrypt, keys_of_rfc_8448)
{
    struct record_key key;
    struct secret client = secret_of(CLIENT_HANDSHAKE_SECRET);
    struct secret server =
        secret_of("b6 7b 7d 69 0c c1 6c 4e 75 e5 42 13 cb 2d 37 b4 e9 c9 12 bc de"
                  "d9 10 5d 42 be fd 59 d3 91 ad 38");
    cr_assert(record_key_13(0x1301, &client, &key));
    expect_octets(key.key, "db fa a6 93 d1 76 2c 5b 66 6a f5 d9 50 25 8d 01");
    expect_octets(key.iv, "5b d3 c7 1b 83 6e 0b 76 bb 73 26 5f");
    cr_assert(record_key_13(0x1301, &server, &key));
    expect_octets(key.key, "3f ce 51 60 09 c2 17 27 d0 f2 e4 e8 6e e4 03 bc");
    expect_octets(key.iv, "5d 31 3e b2 67 12 76 ee 13 00 0b 30");
}

static bool open_finished(struct octets body, uint64_t sequence, uint8_t type, uint16_t version,
                          uint8_t space[OCTETS_MAX], struct opened_record *ret_record)
{
    struct record_key key;
    struct secret secret = secret_of(CLIENT_HANDSHAKE_SECRET);
    struct sealed_record sealed = { type, version, { body.at, body.len } };
    cr_assert(record_key_13(0x1301, &secret, &key));
    return record_open(&key, sequence, &sealed, space, ret_record);
}

Test(decrypt, a_record_of_rfc_8448)
{
    uint8_t space[OCTETS_MAX];
    struct opened_record r;
    cr_assert(open_finished(of_hex(CLIENT_FINISHED_RECORD), 0, 23, 0x0303, space, &r));
    cr_expect_eq(r.type, 22);
    cr_expect_eq(r.content.len, 36);
    expect_octets(r.content.at, CLIENT_FINISHED);
}

Test(decrypt, what_is_not_authentic_does_not_open)
{
    uint8_t space[OCTETS_MAX];
    struct opened_record r;
    struct octets whole = of_hex(CLIENT_FINISHED_RECORD);
    cr_expect_not(open_finished(whole, 1, 23, 0x0303, space, &r), "another number");
    cr_expect_not(open_finished(whole, 0, 22, 0x0303, space, &r), "another type");
    cr_expect_not(open_finished(whole, 0, 23, 0x0301, space, &r), "another version");
    for (size_t n = 0; n < whole.len; n++) {
        struct octets changed = whole;
        changed.at[n] ^= 0x10;
        cr_expect_not(open_finished(changed, 0, 23, 0x0303, space, &r), "octet %zu", n);
        changed = whole;
        changed.len = n;
        cr_expect_not(open_finished(changed, 0, 23, 0x0303, space, &r), "length %zu", n);
    }
}

Test(decrypt, suites_and_secrets_must_fit)
{
    struct record_key key, keys[2];
    uint8_t random[CLIENT_RANDOM_LEN] = { 0 };
    struct bytes r = { random, sizeof random };
    struct secret sha256 = { .len = 32 }, sha384 = { .len = 48 }, none = { 0 }, next;
    cr_expect_not(record_key_13(0x1301, &sha384, &key));
    cr_expect_not(record_key_13(0x1302, &sha256, &key));
    cr_expect_not(record_key_13(0x1301, &none, &key));
    cr_expect_not(record_key_13(0xc02f, &sha256, &key));
    cr_expect_not(next_traffic_secret(0x1302, &sha256, &next));
    cr_expect_not(record_keys_12(0xc02f, &sha256, r, r, false, keys));
    cr_expect_not(record_keys_12(0x1301, &sha384, r, r, false, keys));
    cr_expect_not(record_keys_12(0x0005, &sha384, r, r, false, keys)); /* RC4 */
    cr_expect_not(record_keys_12(0xc02f, &sha384, r, bytes_first(r, 31), false, keys));
    cr_expect(record_keys_12(0xc02f, &sha384, r, r, false, keys));
}
