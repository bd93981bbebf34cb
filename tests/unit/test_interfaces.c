/* SPDX-License-Identifier: Apache-2.0 */
#include "interfaces.h"

#include <criterion/criterion.h>
#include <stdio.h>

static bool is_named(const struct interfaces *i, uint8_t number, const char *name)
{
    return bytes_equal(interfaces_name(i, number),
                       (struct bytes){ (const uint8_t *)name, strlen(name) });
}

static void fill(struct interfaces *i)
{
    for (unsigned n = 0; n < INTERFACES_MAX; n++) {
        char name[16];
        snprintf(name, sizeof name, "if%u", n);
        cr_assert_eq(interfaces_number(i, name), n + 1);
    }
}

Test(interfaces, a_name_has_one_number)
{
    struct interfaces i = { 0 };
    uint8_t wan = interfaces_number(&i, "wan"), lan = interfaces_number(&i, "lan");
    cr_assert_neq(wan, lan);
    cr_assert_neq(wan, INTERFACE_NONE);
    cr_assert_eq(interfaces_number(&i, "wan"), wan);
    cr_assert(is_named(&i, wan, "wan") && is_named(&i, lan, "lan"));
    interfaces_done(&i);
}

Test(interfaces, what_has_no_name_has_no_number)
{
    struct interfaces i = { 0 };
    cr_assert_eq(interfaces_number(&i, NULL), INTERFACE_NONE);
    cr_assert_eq(i.unnamed_flows, 0);
    for (unsigned n = 0; n <= UINT8_MAX; n++)
        cr_assert_eq(interfaces_name(&i, (uint8_t)n).len, 0);
    interfaces_done(&i);
}

Test(interfaces, one_name_too_many_is_counted_and_those_known_stay)
{
    struct interfaces i = { 0 };
    fill(&i);
    cr_assert_eq(interfaces_number(&i, "more"), INTERFACE_NONE);
    cr_assert_eq(interfaces_number(&i, "more"), INTERFACE_NONE);
    cr_assert_eq(i.unnamed_flows, 2);
    cr_assert_eq(interfaces_number(&i, "if254"), 255);
    interfaces_done(&i);
}

Test(interfaces, packed_names_come_back_and_no_part_of_them_does)
{
    struct interfaces i = { 0 };
    struct buffer packed = { 0 };
    fill(&i);
    struct coder to = coder_to(&packed);
    interfaces_code(&to, &i);
    cr_assert_not(to.failed);
    for (size_t len = 0; len <= packed.len; len++) {
        struct interfaces back = { 0 };
        struct coder of = coder_of((struct bytes){ packed.at, len });
        interfaces_code(&of, &back);
        cr_assert_eq(of.failed, len < packed.len, "%zu of %zu bytes", len, packed.len);
        cr_assert(of.failed || (back.count == INTERFACES_MAX && is_named(&back, 200, "if199")));
        interfaces_done(&back);
    }
    buffer_done(&packed);
    interfaces_done(&i);
}

/* Whether a packed list of one name of two bytes is taken. */
static bool is_taken(const char name[2])
{
    struct interfaces i = { 0 };
    struct buffer packed = { 0 };
    uint8_t octets[2] = { (uint8_t)name[0], (uint8_t)name[1] };
    struct coder to = coder_to(&packed);
    code_number(&to, 1, INTERFACES_MAX);
    code_number(&to, sizeof octets, INTERFACE_NAME_MAX);
    code_octets(&to, octets, sizeof octets);
    struct coder of = coder_of((struct bytes){ packed.at, packed.len });
    interfaces_code(&of, &i);
    interfaces_done(&i);
    buffer_done(&packed);
    return !of.failed;
}

Test(interfaces, a_packed_name_holds_no_nul)
{
    cr_assert(is_taken("ab"));
    cr_assert_not(is_taken("a\0"));
}
