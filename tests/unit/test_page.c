/* SPDX-License-Identifier: Apache-2.0 */
#include "page.h"

#include <criterion/criterion.h>
#include <locale.h>
#include <stdlib.h>

static void use_utf8(void)
{
    cr_assert_not_null(setlocale(LC_CTYPE, "C.UTF-8"));
}

TestSuite(page, .init = use_utf8);

static const struct page_column COLUMNS[] = {
    { "client_region", "region", PAGE_GROUP },
    { "handshake", "class", PAGE_WORD },
    { "flows", NULL, PAGE_COUNT },
    { "p50_ns", "p50", PAGE_MS },
    { "share", NULL, PAGE_PERCENT },
};
enum { COLUMN_COUNT = sizeof COLUMNS / sizeof *COLUMNS };

static void add_row(struct page *p, const char *region, const char *class, int64_t flows,
                    double p50_ns, double share)
{
    page_cell(p, cell_text(region));
    page_cell(p, cell_text(class));
    page_cell(p, cell_integer(flows));
    page_cell(p, cell_real(p50_ns));
    page_cell(p, cell_real(share));
}

static struct page *sample(void)
{
    struct page *p = page_open("First response");
    page_text(p, "As the client felt it, %s.", "ms");
    page_table(p, "classes", COLUMNS, COLUMN_COUNT);
    add_row(p, "eu", "0-rtt", 96118, 27.44e6, 0.213);
    add_row(p, "eu", "full", 1234, 1480.2e6, 1);
    page_cell(p, cell_text("sea"));
    page_cell(p, cell_text("full"));
    page_cell(p, cell_integer(5));
    page_rest(p, "too few (%d < %d)", 5, 6);
    page_warning(p, "sea is slow");
    page_command(p, "firstflight report early-data");
    page_heading(p, "More");
    page_table(p, "none", COLUMNS, 2);
    page_fact(p, "Kind rests on", "protocol");
    page_fact(p, "Left out 3", "no SYN 3");
    return p;
}

/* The page as written, and closed; the caller frees the text. */
static char *written(struct page *p, struct table_style style)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    cr_expect_eq(page_write(p, style, out), STATUS_OK);
    (void)fclose(out);
    page_close(p);
    return text;
}

static void expect_written(struct page *p, struct table_style style, const char *expected)
{
    char *text = written(p, style);
    cr_expect_str_eq(text, expected);
    free(text);
}

Test(page, text_stands_in_order_and_groups_are_said_once)
{
    expect_written(sample(), (struct table_style){ .utf8 = true },
                   "First response\n"
                   "As the client felt it, ms.\n"
                   "\n"
                   "region  class   flows    p50  share\n"
                   "eu      0-rtt  96,118   27.4  21.3%\n"
                   "        full    1,234  1,480   100%\n"
                   "sea     full        5  too few (5 < 6)\n"
                   "! sea is slow\n"
                   "  firstflight report early-data\n"
                   "\n"
                   "More\n"
                   "none\n"
                   "\n"
                   "Kind rests on   protocol\n"
                   "Left out 3      no SYN 3\n");
}

Test(page, rows_wider_than_the_terminal_become_a_line_for_each_cell)
{
    struct page *p = page_open("t");
    page_table(p, "classes", COLUMNS, COLUMN_COUNT);
    add_row(p, "a long name of a region", "0-rtt", 1, 1e6, 0.5);
    expect_written(p, (struct table_style){ .width = 20, .utf8 = true },
                   "t\n"
                   "\n"
                   "region  a long name of a region\n"
                   "class   0-rtt\n"
                   "flows   1\n"
                   "p50     1.00\n"
                   "share   50.0%\n");
}

/* A page of two times and a digest, in the lines of which `expected` stands. */
static void expect_short(const char *first, const char *last, const char *expected)
{
    static const struct page_column columns[] = { { "first", NULL, PAGE_TIME },
                                                  { "last", NULL, PAGE_TIME },
                                                  { "key", NULL, PAGE_DIGEST } };
    struct page *p = page_open("Keys");
    page_table(p, "keys", columns, 3);
    page_cell(p, cell_text(first));
    page_cell(p, cell_text(last));
    page_cell(p, cell_text("4f1c09aa00112233445566778899aa9a"));
    char *text = written(p, (struct table_style){ 0 });
    cr_expect(strstr(text, expected), "%s in %s", expected, text);
    free(text);
}

Test(page, lines_leave_out_the_day_that_all_times_share_and_the_middle_of_digests)
{
    expect_short("2026-06-02T14:03:11Z", "2026-06-02T15:00", "\n14:03:11  15:00  4f1c09..9a\n");
    expect_short("2026-06-02T23:59:59Z", "2026-06-03T00:00:01Z",
                 "\n2026-06-02T23:59:59Z  2026-06-03T00:00:01Z  4f1c09..9a\n");
    expect_short("2026-06-02", "2026-06-02", "\n2026-06-02  2026-06-02  4f1c09..9a\n");
    expect_short("", "T", "\n");
}

Test(page, markdown_has_tables_with_numbers_to_the_right)
{
    expect_written(sample(), (struct table_style){ .format = TABLE_MARKDOWN },
                   "# First response\n"
                   "\n"
                   "As the client felt it, ms.\n"
                   "\n"
                   "| region | class | flows | p50 | share |\n"
                   "| --- | --- | ---: | ---: | ---: |\n"
                   "| eu | 0-rtt | 96,118 | 27.4 | 21.3% |\n"
                   "|  | full | 1,234 | 1,480 | 100% |\n"
                   "| sea | full | 5 | too few (5 &lt; 6) |  |\n"
                   "\n"
                   "**!** sea is slow\n"
                   "\n"
                   "    firstflight report early-data\n"
                   "\n"
                   "## More\n"
                   "\n"
                   "| region | class |\n"
                   "| --- | --- |\n"
                   "\n"
                   "- Kind rests on: protocol\n"
                   "- Left out 3: no SYN 3\n");
}

Test(page, csv_is_the_first_table_with_values_as_they_are)
{
    expect_written(sample(), (struct table_style){ .format = TABLE_CSV },
                   "client_region,handshake,flows,p50_ns,share\r\n"
                   "eu,0-rtt,96118,27440000.0,0.213\r\n"
                   "eu,full,1234,1480200000.0,1.0\r\n"
                   "sea,full,5,,\r\n");
}

Test(page, json_has_each_table_under_its_name_and_sentences_as_notes)
{
    expect_written(sample(), (struct table_style){ .format = TABLE_JSON },
                   "{\"title\":\"First response\",\n"
                   "\"notes\":[\"As the client felt it, ms.\",\n"
                   "\"sea is slow\",\n"
                   "\"Kind rests on: protocol\",\n"
                   "\"Left out 3: no SYN 3\"],\n"
                   "\"classes\":[\n"
                   "{\"client_region\":\"eu\",\"handshake\":\"0-rtt\",\"flows\":96118,"
                   "\"p50_ns\":27440000.0,\"share\":0.213},\n"
                   "{\"client_region\":\"eu\",\"handshake\":\"full\",\"flows\":1234,"
                   "\"p50_ns\":1480200000.0,\"share\":1.0},\n"
                   "{\"client_region\":\"sea\",\"handshake\":\"full\",\"flows\":5,"
                   "\"p50_ns\":null,\"share\":null}\n"
                   "]\n"
                   ",\n"
                   "\"none\":[]\n"
                   "}\n");
}

Test(page, html_says_all_and_escapes_every_text)
{
    struct page *p = page_open("<title>");
    page_text(p, "%s", "a & b \"quoted\" 'single'");
    page_warning(p, "%s", "\x1b[31m \xe2\x80\xae");
    page_table(p, "x\" onload=\"y", COLUMNS, 2);
    page_cell(p, cell_text("<script>alert(1)</script>"));
    page_cell(p, cell_null());
    page_command(p, "firstflight <b>");
    page_fact(p, "<dt>", "%s", "<dd>");
    page_heading(p, "</h2><img src=x>");
    char *text = written(p, (struct table_style){ .format = TABLE_HTML });
    const char *wanted[] = {
        "<title>&#60;title&#62;</title>",
        "<p>a &#38; b &#34;quoted&#34; &#39;single&#39;</p>",
        "\\x1b[31m \\u202e",
        "aria-label=\"x&#34; onload=&#34;y\"",
        ">&#60;script&#62;alert(1)&#60;/script&#62;</th>",
        "<td class=\"null\">-</td>",
        "<code>firstflight &#60;b&#62;</code>",
        "<dt>&#60;dt&#62;</dt><dd>&#60;dd&#62;</dd>",
        "<h2>&#60;/h2&#62;&#60;img src=x&#62;</h2>",
        "default-src 'none'",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        cr_expect_not_null(strstr(text, wanted[i]), "%s", wanted[i]);
    cr_expect_null(strstr(text, "<script"));
    free(text);
}

Test(page, group_cells_span_the_rows_alike)
{
    char *text = written(sample(), (struct table_style){ .format = TABLE_HTML });
    cr_expect_not_null(strstr(text, "<th scope=\"rowgroup\" rowspan=\"2\">eu</th>"));
    cr_expect_not_null(strstr(text, "<th scope=\"row\">sea</th>"));
    cr_expect_not_null(strstr(text, "<td class=\"rest\" colspan=\"2\">too few (5 &#60; 6)</td>"));
    free(text);
}

Test(page, a_group_begins_anew_where_one_left_of_it_does)
{
    static const struct page_column columns[] = { { "a", NULL, PAGE_GROUP },
                                                  { "b", NULL, PAGE_GROUP } };
    struct page *p = page_open("t");
    page_table(p, "t", columns, 2);
    const char *cells[] = { "1", "x", "1", "x", "2", "x", NULL, "x" };
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++)
        page_cell(p, cell_text(cells[i]));
    expect_written(p, (struct table_style){ 0 }, "t\n\na  b\n1  x\n\n2  x\n-  x\n");
}

static struct page *drawn(enum page_picture_kind kind)
{
    static const struct page_column columns[] = {
        { "time", NULL, PAGE_TIME },
        { "a_ns", "a", PAGE_MS },
        { "b_ns", "b", PAGE_MS },
        { "c_ns", "c", PAGE_MS },
    };
    struct page *p = page_open("t");
    page_table(p, "times", columns, 4);
    for (int64_t row = 1; row <= 3; row++) {
        page_cell(p, cell_text("2026-06-02T14:03"));
        page_cell(p, cell_integer(row * 1000000));
        page_cell(p, cell_integer(row * 2000000));
        page_cell(p, cell_null());
    }
    page_draw(p, &(struct page_picture){ .kind = kind, .title = "<T>", .first = 1, .count = 3 });
    return p;
}

Test(page, every_picture_stands_beside_the_table_it_was_drawn_from)
{
    for (enum page_picture_kind kind = PAGE_RANGES; kind <= PAGE_COLUMNS; kind++) {
        bool figure = kind != PAGE_RANGES && kind != PAGE_STACKS;
        char *html = written(drawn(kind), (struct table_style){ .format = TABLE_HTML });
        cr_expect_not_null(strstr(html, "role=\"img\""), "%d", kind);
        cr_expect_not_null(strstr(html, "<table>"), "%d", kind);
        cr_expect_not_null(strstr(html, "&#60;T&#62;"), "%d", kind);
        cr_expect_eq(strstr(html, "<figure>") != NULL, figure, "%d", kind);
        cr_expect_null(strstr(html, "nan"), "%d", kind);
        free(html);
        char *text = written(drawn(kind), (struct table_style){ .utf8 = true });
        cr_expect_eq(strstr(text, "2.00") == NULL, figure, "%d", kind);
        free(text);
        char *csv = written(drawn(kind), (struct table_style){ .format = TABLE_CSV });
        cr_expect_not_null(strstr(csv, ",1000000,2000000,\r\n"), "%d", kind);
        free(csv);
    }
}

Test(page, what_cannot_be_made_or_written_says_so)
{
    page_text(NULL, "nothing");
    page_table(NULL, "t", COLUMNS, 1);
    page_cell(NULL, cell_null());
    page_rest(NULL, "nothing");
    page_close(NULL);
    cr_expect_eq(page_write(NULL, (struct table_style){ 0 }, stdout), STATUS_NO_MEMORY);

    FILE *full = fopen("/dev/full", "we");
    cr_assert_not_null(full);
    for (enum table_format format = TABLE_ALIGNED; format <= TABLE_HTML; format++) {
        struct page *p = sample();
        cr_expect_eq(page_write(p, (struct table_style){ .format = format }, full), STATUS_IO);
        page_close(p);
        clearerr(full);
    }
    (void)fclose(full);
}
