/* SPDX-License-Identifier: Apache-2.0 */
#include "ticket.h"

enum { CIPHER_BLOCK = 16, NONCE_AND_EXTENSIONS_MAX = 48 };

/*
 * Nonce and extensions of the stacks, one bit each; early_data (RFC 8446 4.2.10) takes 8 bytes:
 *   0 Go   1 wolfSSL, BoringSSL   2 NSS, s2n   4 GnuTLS   5 BoringSSL with GREASE   8 OpenSSL,
 * picotls 9, 13 BoringSSL   10 NSS, s2n   12 GnuTLS   16 OpenSSL   17 JDK with its padding 32
 * rustls, mbedTLS   40 the same
 */
static const uint64_t KNOWN_REST = UINT64_C(1) << 0 | UINT64_C(1) << 1 | UINT64_C(1) << 2 |
                                   UINT64_C(1) << 4 | UINT64_C(1) << 5 | UINT64_C(1) << 8 |
                                   UINT64_C(1) << 9 | UINT64_C(1) << 10 | UINT64_C(1) << 12 |
                                   UINT64_C(1) << 13 | UINT64_C(1) << 16 | UINT64_C(1) << 17 |
                                   UINT64_C(1) << 32 | UINT64_C(1) << 40;

static bool is_known_rest(int64_t rest)
{
    return rest >= 0 && rest <= NONCE_AND_EXTENSIONS_MAX && (KNOWN_REST >> rest & 1) != 0;
}

bool ticket_is_possible(uint32_t len, uint32_t overhead)
{
    return len >= overhead + TICKET_MESSAGE_LEN + TICKET_LEN_MIN;
}

/* Nonce and extensions of n tickets as long as an identity; negative when they do not divide. */
static int64_t rest_of(uint32_t messages, uint32_t n, uint32_t identity_len)
{
    if (messages % n != 0)
        return -1;
    return (int64_t)(messages / n) - TICKET_MESSAGE_LEN - identity_len;
}

static bool is_comparable(uint32_t len, uint32_t overhead, uint32_t identity_len)
{
    return ticket_is_possible(len, overhead) && identity_len >= TICKET_LEN_MIN;
}

uint32_t ticket_rest(uint32_t len, uint32_t overhead, uint32_t identity_len)
{
    if (!is_comparable(len, overhead, identity_len))
        return 0;
    for (uint32_t n = 1; n <= TICKETS_PER_RECORD_MAX; n++) {
        int64_t rest = rest_of(len - overhead, n, identity_len);
        if (is_known_rest(rest))
            return n * (NONCE_AND_EXTENSIONS_MAX + 1) + (uint32_t)rest;
    }
    return 0;
}

uint32_t ticket_constant(uint32_t rest)
{
    return rest % (NONCE_AND_EXTENSIONS_MAX + 1);
}

enum ticket_fit ticket_fits(uint32_t len, uint32_t overhead, uint32_t identity_len)
{
    if (ticket_rest(len, overhead, identity_len) != 0)
        return TICKET_FITS_EXACT;
    if (!is_comparable(len, overhead, identity_len))
        return TICKET_FITS_NOT;
    int64_t rest = rest_of(len - overhead, 1, identity_len);
    bool is_near = rest >= -CIPHER_BLOCK && rest <= NONCE_AND_EXTENSIONS_MAX;
    return is_near ? TICKET_FITS_NEAR : TICKET_FITS_NOT;
}

bool ticket_fits_padded(uint32_t len, uint32_t overhead, uint32_t identity_len, uint32_t block)
{
    if (!ticket_is_possible(len, overhead) || identity_len < TICKET_LEN_MIN)
        return false;
    uint32_t tag = overhead - 1;
    uint32_t least = TICKET_MESSAGE_LEN + identity_len + 1;
    uint32_t most = least + NONCE_AND_EXTENSIONS_MAX;
    uint32_t inner = len - tag;
    return inner >= least && inner < most + block;
}
