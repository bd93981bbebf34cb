/* SPDX-License-Identifier: Apache-2.0 */
#include "ticket.h"

#include <criterion/criterion.h>

enum { OVERHEAD = 17 }; /* content type and a tag of 16 */

static const struct {
    const char *stack;
    uint32_t len, identity_len;
} KNOWN[] = {
    { "openssl", 250, 208 },
    { "openssl with early data", 258, 208 },
    { "openssl, cached", 74, 32 },
    { "openssl, cached, early data", 82, 32 },
    { "go", 147, 113 },
    { "boringssl, two in a record", 429, 176 },
    { "nss", 206, 162 },
    { "gnutls", 276, 230 },
    { "s2n", 185, 141 },
    { "picotls", 74, 32 },
    { "jdk", 718, 667 },
    { "wolfssl", 209, 174 },
    { "rustls", 106, 32 },
    { "rustls, two in a record", 179, 32 },
};

Test(ticket, records_of_the_stacks_fit_exactly)
{
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
        cr_expect_eq(ticket_fits(KNOWN[i].len, OVERHEAD, KNOWN[i].identity_len), TICKET_FITS_EXACT,
                     "%s", KNOWN[i].stack);
        cr_expect_neq(ticket_rest(KNOWN[i].len, OVERHEAD, KNOWN[i].identity_len), 0, "%s",
                      KNOWN[i].stack);
    }
}

Test(ticket, rest_is_the_same_for_tickets_of_other_lengths)
{
    uint32_t rest = ticket_rest(250, OVERHEAD, 208);
    cr_expect_eq(ticket_rest(266, OVERHEAD, 224), rest);
    cr_expect_neq(ticket_rest(258, OVERHEAD, 208), rest, "8 bytes of early_data more");
    cr_expect_neq(ticket_rest(429, OVERHEAD, 176), ticket_rest(223, OVERHEAD, 176),
                  "two in a record are not one");
}

Test(ticket, a_cipher_block_more_or_less_is_near)
{
    cr_expect_eq(ticket_fits(266, OVERHEAD, 208), TICKET_FITS_NEAR);
    cr_expect_eq(ticket_fits(234, OVERHEAD, 208), TICKET_FITS_NEAR);
    cr_expect_eq(ticket_fits(300, OVERHEAD, 208), TICKET_FITS_NOT);
}

Test(ticket, most_lengths_fit_no_ticket)
{
    unsigned fitting = 0;
    for (uint32_t len = 0; len < 2000; len++)
        fitting += ticket_fits(len, OVERHEAD, 208) == TICKET_FITS_EXACT;
    cr_expect_leq(fitting, 60, "%u", fitting);
}

Test(ticket, nothing_fits_without_a_ticket_or_room_for_one)
{
    for (uint32_t len = 0; len < 66; len++) {
        cr_expect_not(ticket_is_possible(len, OVERHEAD), "%u", len);
        for (uint32_t identity_len = 0; identity_len < 100; identity_len++)
            cr_expect_eq(ticket_fits(len, OVERHEAD, identity_len), TICKET_FITS_NOT);
    }
    cr_expect(ticket_is_possible(66, OVERHEAD));
    cr_expect_eq(ticket_fits(50, OVERHEAD, 0), TICKET_FITS_NOT);
    cr_expect_eq(ticket_fits(UINT32_MAX, OVERHEAD, 65535), TICKET_FITS_NOT);
}

Test(ticket, padded_to_a_block)
{
    cr_expect(ticket_fits_padded(272, OVERHEAD, 208, 256));
    cr_expect(ticket_fits_padded(528, OVERHEAD, 240, 256));
    cr_expect_not(ticket_fits_padded(528, OVERHEAD, 160, 256));
}
