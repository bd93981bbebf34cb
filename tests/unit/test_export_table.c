/* SPDX-License-Identifier: Apache-2.0 */
#include "export_table.h"

#include <criterion/criterion.h>

Test(export_table, each_is_found_by_its_name)
{
    size_t number = 0;
    for (const struct export_table *t; (t = export_table_at(number)) != NULL; number++)
        cr_expect_eq(export_table_find(t->name), t);
    cr_expect_eq(number, 5);
    cr_expect_null(export_table_find("flow_facts"));
    cr_expect_null(export_table_find(""));
}

Test(export_table, the_insert_names_all_columns)
{
    struct text sql = { 0 };
    export_table_add_insert(export_table_find("early_data_rule"), &sql);
    cr_expect_str_eq(text_string(&sql),
                     "INSERT INTO early_data_rule_load (pattern, allowed, comment)"
                     " FORMAT RowBinary");
    text_done(&sql);
}

static void expect_fits(const char *ours, const char *there, bool fits)
{
    cr_expect_eq(export_type_fits(ours, there), fits, "%s into %s", ours, there);
}

Test(export_table, a_type_takes_itself_and_nothing_else)
{
    static const char *const TYPES[] = {
        "Int64",
        "UInt8",
        "Float64",
        "String",
        "Nullable(String)",
        "Nullable(Int64)",
        "FixedString(32)",
        "Enum8('a' = 1, 'b' = 2)",
        "Nullable(Enum8('a' = 1, 'b' = 2))",
    };
    enum { COUNT = sizeof TYPES / sizeof TYPES[0] };
    for (size_t i = 0; i < COUNT; i++)
        for (size_t k = 0; k < COUNT; k++)
            expect_fits(TYPES[i], TYPES[k], i == k);
    expect_fits("String", "", false);
    expect_fits("String", "Strin", false);
    expect_fits("String", "String)", false);
}

Test(export_table, a_dictionary_takes_what_it_holds)
{
    expect_fits("String", "LowCardinality(String)", true);
    expect_fits("Nullable(String)", "LowCardinality(Nullable(String))", true);
    expect_fits("String", "LowCardinality(Nullable(String))", false);
    expect_fits("String", "LowCardinality(", false);
    expect_fits("String", "LowCardinality(String", false);
}

Test(export_table, an_enumeration_may_have_more_words_behind_ours_but_no_others)
{
    static const char OURS[] = "Enum8('a' = 1, 'b' = 2)";
    expect_fits(OURS, "Enum8('a' = 1, 'b' = 2, 'c' = 3)", true);
    expect_fits(OURS, "Enum8('a' = 1)", false);
    expect_fits(OURS, "Enum8('b' = 1, 'a' = 2, 'c' = 3)", false);
    expect_fits(OURS, "Enum8('a' = 1, 'b' = 22)", false);
    expect_fits(OURS, "Nullable(Enum8('a' = 1, 'b' = 2, 'c' = 3))", false);
    expect_fits("Nullable(Enum8('a' = 1))", "Nullable(Enum8('a' = 1, 'b' = 2))", true);
    expect_fits("Nullable(Enum8('a' = 1))", "Nullable(Enum8('a' = 1, 'b' = 2)", false);
}
