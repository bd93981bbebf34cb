/* SPDX-License-Identifier: Apache-2.0 */
#include "sites.h"

#include "text.h"

#include <criterion/criterion.h>
#include <stdio.h>

static struct sites *sites_of(const char *csv)
{
    struct sites *s = NULL;
    size_t line = 0;
    cr_assert_eq(sites_read(text_bytes(csv), &s, &line), STATUS_OK, "line %zu of %s", line, csv);
    return s;
}

static const char *region_of(const struct sites *s, const char *site)
{
    const char *region = "not named";
    bool found = sites_find(s, site, &region);
    return !found ? "not named" : region == NULL ? "none" : region;
}

Test(sites, the_last_line_of_a_site_holds)
{
    struct sites *s = sites_of("site,region\r\nfra1,eu\n\n# none\nams1,\n sin1 , asia \nfra1,eu-2");
    cr_expect_str_eq(region_of(s, "fra1"), "eu-2");
    cr_expect_str_eq(region_of(s, "ams1"), "none");
    cr_expect_str_eq(region_of(s, "sin1"), "asia");
    cr_expect_str_eq(region_of(s, "fra"), "not named");
    cr_expect_str_eq(region_of(s, "site"), "not named", "a header");
    cr_expect_str_eq(region_of(s, NULL), "not named");
    cr_expect_str_eq(region_of(NULL, "fra1"), "not named");
    sites_close(s);
}

Test(sites, nothing_is_a_file_without_sites)
{
    static const char *const EMPTY[] = { "", "\xef\xbb\xbf", "\n\r\n", "site,region\n", "# x" };
    for (size_t i = 0; i < sizeof EMPTY / sizeof *EMPTY; i++) {
        struct sites *s = sites_of(EMPTY[i]);
        cr_expect_str_eq(region_of(s, ""), "not named");
        sites_close(s);
    }
}

Test(sites, what_is_no_site_is_refused_with_its_line)
{
    static const struct {
        const char *csv;
        size_t line;
    } cases[] = {
        { "a,b,c", 1 },           { "a,b\n,eu", 2 },      { "a,b\rc,\"open", 2 },
        { "a,b\r\n\n\x01,b", 3 }, { "a,caf\xc3\xa9", 1 }, { "\"\",x", 1 },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct sites *s = NULL;
        size_t line = 0;
        cr_expect_eq(sites_read(text_bytes(cases[i].csv), &s, &line), STATUS_REFUSED);
        cr_expect_eq(line, cases[i].line, "%s: %zu", cases[i].csv, line);
        cr_expect_null(s);
    }
}

Test(sites, many_are_all_found)
{
    enum { COUNT = 2000 };
    struct text csv = { 0 };
    for (int i = 0; i < COUNT; i++)
        text_addf(&csv, "s%d,r%d\n", i * 7919 % COUNT, i * 7919 % COUNT);
    struct sites *s = sites_of(text_string(&csv));
    for (int i = 0; i < COUNT; i++) {
        char site[16], region[16];
        snprintf(site, sizeof site, "s%d", i);
        snprintf(region, sizeof region, "r%d", i);
        cr_expect_str_eq(region_of(s, site), region);
    }
    sites_close(s);
    text_done(&csv);
}
