/* SPDX-License-Identifier: Apache-2.0 */
#include "csv.h"

#include "capture_builder.h"
#include "text.h"

#include <criterion/criterion.h>

/* The fields of a line with | between; those that are not good with ! in front. */
static const char *fields(const char *line)
{
    static char text[1024];
    struct bytes rest = text_bytes(line);
    size_t len = 0;
    text[0] = '\0';
    while (rest.len > 0) {
        char field[CSV_FIELD_SIZE];
        bool good = csv_field(&rest, field);
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%s|", good ? "" : "!", field);
    }
    return text;
}

Test(csv, fields_as_people_write_them)
{
    static const struct {
        const char *line, *fields;
    } cases[] = {
        { "a,b,c", "a|b|c|" },
        { "  a b\t, c ", "a b|c|" },
        { "a,,b", "a||b|" },
        { "a,b # a comment, with a comma", "a|b|" },
        { "# a comment", "|" },
        { "\"a,b\",\"say \"\"no\"\"\",\"#\"", "a,b|say \"no\"|#|" },
        { "\"open,b", "!open,b|" },
        { "caf\xc3\xa9,b", "!caf|b|" },
        { "a\x1b[31m,b", "!a[31m|b|" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_str_eq(fields(cases[i].line), cases[i].fields, "%s", cases[i].line);
}

Test(csv, a_field_is_too_long_only_beyond_its_room)
{
    char line[CSV_FIELD_SIZE + 4], field[CSV_FIELD_SIZE];
    for (size_t len = CSV_FIELD_SIZE - 2; len <= CSV_FIELD_SIZE; len++) {
        memset(line, 'x', len);
        strcpy(line + len, ",b");
        struct bytes rest = text_bytes(line);
        cr_expect_eq(csv_field(&rest, field), len < CSV_FIELD_SIZE, "%zu", len);
        cr_expect(csv_field(&rest, field), "the next one is not spoilt");
        cr_expect_str_eq(field, "b");
    }
}

Test(csv, lines_end_with_any_of_three_ends)
{
    struct bytes rest = text_bytes("a\nb\rc\r\n\n\r\nd");
    static const char *const LINES[] = { "a", "b", "c", "", "", "d" };
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++)
        cr_expect(bytes_equal(csv_line(&rest), text_bytes(LINES[i])), "line %zu", i);
    cr_expect_eq(rest.len, 0);
}

Test(csv, only_a_whole_mark_is_passed_over)
{
    cr_expect_eq(csv_text(text_bytes("\xef\xbb\xbf"
                                     "a"))
                     .len,
                 1);
    cr_expect_eq(csv_text(text_bytes("\xef\xbb")).len, 2);
    cr_expect_eq(csv_text((struct bytes){ 0 }).len, 0);
}
