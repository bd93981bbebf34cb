/* SPDX-License-Identifier: Apache-2.0 */
#include "rules.h"

#include <criterion/criterion.h>

static struct rules rules_of(const char *content)
{
    struct rules r = { 0 };
    struct text error = { 0 };
    enum status status = rules_read_text(&r, "t.csv", text_bytes(content), &error);
    cr_assert_eq(status, STATUS_OK, "%s", text_string(&error));
    text_done(&error);
    return r;
}

static const char *pattern_for(const struct rules *r, const char *name)
{
    const struct rule *rule = rules_find(r, text_bytes(name));
    return rule ? rule->pattern : "none";
}

Test(rules, a_file_as_people_write_it)
{
    struct rules r = rules_of("\xef\xbb\xbfpattern,allowed,comment\r\n"
                              "# logins\r\n"
                              "\r\n"
                              "  Login.* , NO , \"may log in \"\"again\"\", twice\" \r\n"
                              "static.example.com,yes\n"
                              "cdn.*,1,\n"
                              "*.bank.test,0,plain, with a comma");
    cr_assert_eq(r.count, 4);
    cr_expect_str_eq(r.at[0].pattern, "login.*");
    cr_expect_not(r.at[0].allowed);
    cr_expect_str_eq(r.at[0].comment, "may log in \"again\", twice");
    cr_expect(r.at[1].allowed);
    cr_expect_null(r.at[1].comment);
    cr_expect(r.at[2].allowed);
    cr_expect_null(r.at[2].comment);
    cr_expect_not(r.at[3].allowed);
    cr_expect_str_eq(r.at[3].comment, "plain, with a comma");
    rules_done(&r);
}

Test(rules, an_empty_file_has_no_rules)
{
    struct rules r = rules_of("");
    cr_expect_eq(r.count, 0);
    cr_expect_null(rules_find(&r, text_bytes("login.example.com")));
    rules_done(&r);
}

Test(rules, what_is_no_rule_is_refused_with_its_line)
{
    static const struct {
        const char *content, *says;
    } cases[] = {
        { "login.*,no\nnothing\n", "t.csv:2: behind the pattern" },
        { "login.*,maybe\n", "t.csv:1: behind the pattern" },
        { "\n\n,no\n", "t.csv:3: a line is pattern,allowed" },
        { "log in,no\n", "t.csv:1: a line is" },
        { "[a-z]*,no\n", "t.csv:1: a line is" },
        { "caf\xc3\xa9.example,no\n", "t.csv:1: a line is" },
        { "a.*,no\nb.*,no\nA.*,yes\n", "the pattern 'a.*' comes twice" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rules r = { 0 };
        struct text error = { 0 };
        enum status status = rules_read_text(&r, "t.csv", text_bytes(cases[i].content), &error);
        cr_expect_eq(status, STATUS_REFUSED, "%s", cases[i].content);
        cr_expect_not_null(strstr(text_string(&error), cases[i].says), "%s", text_string(&error));
        rules_done(&r);
        text_done(&error);
    }
}

Test(rules, the_longest_pattern_that_fits_decides)
{
    struct rules r = rules_of("*,yes\nlogin.*,no\n*.example.com,yes\nlogin.example.com,yes\n"
                              "*.a?.test,no\n*.b?.test,no\n*.aa.tes?,no\n");
    cr_expect_str_eq(pattern_for(&r, "login.example.com"), "login.example.com");
    cr_expect_str_eq(pattern_for(&r, "login.example.org"), "login.*");
    cr_expect_str_eq(pattern_for(&r, "LOGIN.Example.ORG"), "login.*");
    cr_expect_str_eq(pattern_for(&r, "login"), "*");
    cr_expect_str_eq(pattern_for(&r, "www.example.com"), "*.example.com");
    cr_expect_str_eq(pattern_for(&r, "x.aa.test"), "*.a?.test", "equally long: the first by bytes");
    cr_expect_str_eq(pattern_for(&r, ""), "*");
    rules_done(&r);
}

Test(rules, stars_and_question_marks)
{
    struct rules r = rules_of("*-login-*.a*b?.test,no\n");
    cr_expect_str_eq(pattern_for(&r, "eu-login-2.aXXbbc.test"), "*-login-*.a*b?.test");
    cr_expect_str_eq(pattern_for(&r, "-login-.ab..test"), "*-login-*.a*b?.test");
    cr_expect_str_eq(pattern_for(&r, "eu-login-2.aXXb.test"), "none");
    cr_expect_str_eq(pattern_for(&r, "eu-login-2.abc.test.org"), "none");
    rules_done(&r);
}

Test(rules, a_hostile_pattern_costs_no_more_than_the_product_of_lengths)
{
    struct rules r =
        rules_of("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b,no\n");
    char name[255];
    memset(name, 'a', sizeof name);
    cr_expect_null(rules_find(&r, (struct bytes){ (const uint8_t *)name, sizeof name }));
    rules_done(&r);
}

Test(rules, a_name_with_nul_ends_no_pattern_early)
{
    static const uint8_t NAME[] = { 'g', 0, 0, 0, 0, 0, 0, 0 };
    struct rules r = { 0 };
    cr_assert(rules_add(&r, text_bytes("?"), false, (struct bytes){ 0 }));
    cr_assert(rules_add(&r, text_bytes("*g"), false, (struct bytes){ 0 }));
    cr_expect_null(rules_find(&r, (struct bytes){ NAME, sizeof NAME }));
    rules_done(&r);
}

Test(rules, as_json)
{
    struct rules r = rules_of("a\"b.*,no,\"say \"\"no\"\"\"\nc.*,yes\n");
    struct text json = { 0 };
    rules_add_json(&r, &json);
    cr_expect_str_eq(text_string(&json), "[[\"a\\\"b.*\",0,\"say \\\"no\\\"\"],[\"c.*\",1,null]]");
    text_done(&json);
    rules_done(&r);
}

Test(rules, files_that_cannot_be_read)
{
    struct rules r = { 0 };
    struct text error = { 0 };
    cr_expect_eq(rules_read_file(&r, "/no/such/file", &error), STATUS_IO);
    cr_expect_not_null(strstr(text_string(&error), "/no/such/file: cannot be read"));
    cr_expect_eq(rules_read_file(&r, "/", &error), STATUS_IO);
    cr_expect_eq(rules_read_file(&r, "/dev/zero", &error), STATUS_IO, "endless");
    rules_done(&r);
    text_done(&error);
}
