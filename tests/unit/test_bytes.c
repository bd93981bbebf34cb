/* SPDX-License-Identifier: Apache-2.0 */
#include "bytes.h"

#include <criterion/criterion.h>

static bool is(struct bytes b, const char *text)
{
    return bytes_equal(b, (struct bytes){ (const uint8_t *)text, strlen(text) });
}

Test(bytes, take_until_gives_what_stands_between_stops)
{
    struct bytes rest = { (const uint8_t *)"a,bc,,d", 7 };
    cr_expect(is(bytes_take_until(&rest, ','), "a"));
    cr_expect(is(bytes_take_until(&rest, ','), "bc"));
    cr_expect(is(bytes_take_until(&rest, ','), ""));
    cr_expect(is(rest, "d"));
    cr_expect(is(bytes_take_until(&rest, ','), "d"));
    cr_expect_eq(rest.len, 0);
    cr_expect_eq(bytes_take_until(&rest, ',').len, 0);
}

Test(bytes, take_until_takes_a_stop_at_the_end)
{
    struct bytes rest = { (const uint8_t *)"a,", 2 }, empty = { 0 };
    cr_expect(is(bytes_take_until(&rest, ','), "a"));
    cr_expect_eq(rest.len, 0);
    cr_expect_eq(bytes_take_until(&empty, ',').len, 0);
}
