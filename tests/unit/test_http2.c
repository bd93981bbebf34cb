/* SPDX-License-Identifier: Apache-2.0 */
#include "http2.h"

#include <criterion/criterion.h>

enum { TLS_1_3_OVERHEAD = 17, GCM_1_2_OVERHEAD = 24 };

Test(http2, prefaces_of_clients)
{
    cr_expect(http2_is_preface(81, TLS_1_3_OVERHEAD), "curl, Go: 3 settings, WINDOW_UPDATE");
    cr_expect(http2_is_preface(87, TLS_1_3_OVERHEAD), "Chromium: 4 settings, WINDOW_UPDATE");
    cr_expect(http2_is_preface(94, GCM_1_2_OVERHEAD));
    cr_expect_not(http2_is_preface(344, TLS_1_3_OVERHEAD), "Firefox: HEADERS are in it");
    cr_expect_not(http2_is_preface(183, TLS_1_3_OVERHEAD), "nghttp: HEADERS are in it");
    cr_expect_not(http2_is_preface(40, TLS_1_3_OVERHEAD), "shorter than the magic");
}

Test(http2, first_records_of_servers)
{
    static const uint32_t SETTINGS_ALONE[] = { 26, 32, 35, 45, 47, 50, 57, 59, 66, 69, 83 };
    for (unsigned i = 0; i < sizeof SETTINGS_ALONE / sizeof *SETTINGS_ALONE; i++)
        cr_expect(http2_is_settings(SETTINGS_ALONE[i], TLS_1_3_OVERHEAD), "%u", SETTINGS_ALONE[i]);
    cr_expect_not(http2_is_settings(183, TLS_1_3_OVERHEAD), "nginx with HEADERS");
    cr_expect_not(http2_is_settings(161, TLS_1_3_OVERHEAD), "h2o with HEADERS");
    cr_expect_not(http2_is_settings(0, TLS_1_3_OVERHEAD));
}

Test(http2, frames_of_fixed_length)
{
    cr_expect(http2_is_settings_ack(26, TLS_1_3_OVERHEAD));
    cr_expect_not(http2_is_settings_ack(27, TLS_1_3_OVERHEAD));
    static const uint32_t CONTROL[] = { 26, 30, 34, 39, 43 };
    for (unsigned i = 0; i < sizeof CONTROL / sizeof *CONTROL; i++)
        cr_expect(http2_is_control(CONTROL[i], TLS_1_3_OVERHEAD), "%u", CONTROL[i]);
    cr_expect_not(http2_is_control(17, TLS_1_3_OVERHEAD), "nothing is no frame");
    cr_expect_not(http2_is_control(75, TLS_1_3_OVERHEAD), "HEADERS");
}
