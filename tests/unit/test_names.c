/* SPDX-License-Identifier: Apache-2.0 */
#include "hello.h"

#include <criterion/criterion.h>

/* How many of the numbers 0 to last have a name. A table out of order would hide some. */
static unsigned count_named(const char *(*name)(uint16_t), unsigned last)
{
    unsigned count = 0;
    for (unsigned number = 0; number <= last; number++)
        count += name((uint16_t)number) != NULL;
    return count;
}

static const char *alert_name_of(uint16_t number)
{
    return alert_name((uint8_t)number);
}

Test(names, every_row_is_found)
{
    cr_expect_eq(count_named(cipher_suite_name, 0xffff), 352);
    cr_expect_eq(count_named(named_group_name, 0xffff), 57);
    cr_expect_eq(count_named(alert_name_of, 0xff), 37);
}

Test(names, cipher_suites)
{
    cr_expect_str_eq(cipher_suite_name(0x0000), "TLS_NULL_WITH_NULL_NULL");
    cr_expect_str_eq(cipher_suite_name(0x002f), "TLS_RSA_WITH_AES_128_CBC_SHA");
    cr_expect_str_eq(cipher_suite_name(0x00ff), "TLS_EMPTY_RENEGOTIATION_INFO_SCSV");
    cr_expect_str_eq(cipher_suite_name(0x1301), "TLS_AES_128_GCM_SHA256");
    cr_expect_str_eq(cipher_suite_name(0x1305), "TLS_AES_128_CCM_8_SHA256");
    cr_expect_str_eq(cipher_suite_name(0x5600), "TLS_FALLBACK_SCSV");
    cr_expect_str_eq(cipher_suite_name(0xc02f), "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256");
    cr_expect_str_eq(cipher_suite_name(0xc0aa), "TLS_PSK_DHE_WITH_AES_128_CCM_8");
    cr_expect_str_eq(cipher_suite_name(0xcca8), "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256");
    cr_expect_str_eq(cipher_suite_name(0xd005), "TLS_ECDHE_PSK_WITH_AES_128_CCM_SHA256");
    cr_expect_null(cipher_suite_name(0x001c), "reserved");
    cr_expect_null(cipher_suite_name(0xcc13), "never registered");
}

Test(names, groups)
{
    cr_expect_str_eq(named_group_name(23), "secp256r1");
    cr_expect_str_eq(named_group_name(29), "x25519");
    cr_expect_str_eq(named_group_name(256), "ffdhe2048");
    cr_expect_str_eq(named_group_name(0x11ec), "X25519MLKEM768");
    cr_expect_str_eq(named_group_name(0x6399), "X25519Kyber768Draft00");
    cr_expect_null(named_group_name(0));
}

Test(names, alerts)
{
    cr_expect_str_eq(alert_name(0), "close_notify");
    cr_expect_str_eq(alert_name(40), "handshake_failure");
    cr_expect_str_eq(alert_name(70), "protocol_version");
    cr_expect_str_eq(alert_name(121), "ech_required");
    cr_expect_null(alert_name(255));
}

Test(names, grease_has_none)
{
    for (unsigned value = 0x0a0a; value <= 0xfafa; value += 0x1010) {
        cr_expect_null(cipher_suite_name((uint16_t)value));
        cr_expect_null(named_group_name((uint16_t)value));
    }
}
