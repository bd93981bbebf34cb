/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a file for --clients. Whatever it holds: what is found in it is short printable
 * text, and the set still answers for a file that is added behind it.
 */
#include "region.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_text(const char *text)
{
    if (text == NULL)
        return;
    size_t len = strlen(text);
    check(len > 0 && len < 64);
    for (size_t i = 0; i < len; i++)
        check(text[i] == '\t' || (text[i] >= ' ' && text[i] <= '~'));
}

/* Looks up the start of every 16 octets of the input, as they are and as IPv4. */
static void look_up(const struct regions *r, struct bytes input)
{
    struct reader rest = reader_of(input);
    while (rest.rest.len >= 16) {
        struct address a;
        memcpy(a.octet, reader_take(&rest, 16).at, sizeof a.octet);
        struct address v4 = address_of_ipv4(a.octet);
        struct region found[] = { regions_find(r, &a), regions_find(r, &v4) };
        for (size_t i = 0; i < 2; i++) {
            check_text(found[i].region);
            check_text(found[i].country);
            check(found[i].country == NULL || strlen(found[i].country) == 2);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char EVERYTHING[] = "0.0.0.0/0,last\n::/0,last\n";
    struct bytes input = { data, size };
    struct regions *r = regions_open(NULL);
    check(r != NULL);
    enum status status = regions_add_text(r, "input", input);
    check(status == STATUS_OK || status == STATUS_REFUSED);
    look_up(r, input);

    struct bytes everything = { (const uint8_t *)EVERYTHING, sizeof EVERYTHING - 1 };
    check(regions_add_text(r, "everything", everything) == STATUS_OK);
    struct address a = address_of_ipv4((const uint8_t[4]){ 192, 0, 2, 1 });
    check(regions_find(r, &a).region != NULL);
    regions_close(r);
    return 0;
}
