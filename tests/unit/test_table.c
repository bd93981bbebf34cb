/* SPDX-License-Identifier: Apache-2.0 */
#include "table.h"

#include <criterion/criterion.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>

static void use_utf8(void)
{
    cr_assert_not_null(setlocale(LC_CTYPE, "C.UTF-8"));
}

TestSuite(table, .init = use_utf8);

/* Writes rows of `columns` cells; the caller frees the text. */
static char *written(struct table_style style, const char *const *names, size_t columns,
                     const struct cell *cells, size_t rows)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    struct table *t = table_open(out, style, names, columns);
    cr_assert_not_null(t);
    for (size_t i = 0; i < rows; i++)
        cr_assert_eq(table_add(t, &cells[i * columns]), STATUS_OK);
    cr_assert_eq(table_close(t), STATUS_OK);
    (void)fclose(out);
    return text;
}

static void expect_written(struct table_style style, const char *const *names, size_t columns,
                           const struct cell *cells, size_t rows, const char *expected)
{
    char *text = written(style, names, columns, cells, rows);
    cr_expect_str_eq(text, expected);
    free(text);
}

static struct cell blob(const char *bytes, size_t len)
{
    return (struct cell){ .type = CELL_BLOB, .bytes = { (const uint8_t *)bytes, len } };
}

static const char *const NAMES[] = { "region", "flows", "ms" };

Test(table, numbers_stand_right_and_text_left)
{
    struct cell cells[] = { cell_text("São Paulo"),
                            cell_integer(7),
                            cell_real(12.5),
                            cell_text("eu"),
                            cell_integer(12345),
                            cell_real(1000),
                            cell_null(),
                            cell_integer(1),
                            cell_null() };
    expect_written((struct table_style){ .width = 100, .utf8 = true }, NAMES, 3, cells, 3,
                   "region     flows      ms\n"
                   "São Paulo      7    12.5\n"
                   "eu         12345  1000.0\n"
                   "-              1       -\n");
}

Test(table, wide_names_are_cut_to_the_width)
{
    struct cell cells[] = { cell_text("a-very-long-name.example.com"), cell_integer(7),
                            cell_real(1) };
    expect_written((struct table_style){ .width = 30, .utf8 = true }, NAMES, 3, cells, 1,
                   "region               flows  ms\n"
                   "a-very-long-name.ex…     7 1.0\n");
    expect_written((struct table_style){ .width = 30 }, NAMES, 3, cells, 1,
                   "region               flows  ms\n"
                   "a-very-long-name.ex~     7 1.0\n");
    expect_written((struct table_style){ .width = 0 }, NAMES, 3, cells, 1,
                   "region                        flows   ms\n"
                   "a-very-long-name.example.com      7  1.0\n");
}

Test(table, every_line_fits_or_each_cell_has_its_own)
{
    static const char *const texts[] = { "東京東京東京東京東京東京",
                                         "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "é", "" };
    for (size_t width = 1; width < 60; width++) {
        struct cell cells[] = { cell_text(texts[width % 4]), cell_text(texts[(width + 1) % 4]),
                                cell_integer(123456) };
        char *text =
            written((struct table_style){ .width = width, .utf8 = true }, NAMES, 3, cells, 1);
        bool one_per_line = strncmp(text, "region", 6) == 0 && strstr(text, "\nflows") != NULL;
        for (char *line = strtok(text, "\n"); line && !one_per_line; line = strtok(NULL, "\n"))
            cr_expect(text_width(text_bytes(line)) <= width, "%zu: %s", width, line);
        cr_expect(!one_per_line || width < 8 + 8 + 6 + 2, "%zu", width);
        free(text);
    }
}

Test(table, rows_that_are_too_wide_become_a_line_for_each_cell)
{
    struct cell cells[] = { cell_text("eu"), cell_integer(1234567890123456789),
                            cell_real(1),    cell_text("sea"),
                            cell_integer(2), cell_null() };
    expect_written((struct table_style){ .width = 20 }, NAMES, 3, cells, 2,
                   "region  eu\n"
                   "flows   1234567890123456789\n"
                   "ms      1.0\n"
                   "\n"
                   "region  sea\n"
                   "flows   2\n"
                   "ms      -\n");
}

Test(table, no_rows_give_a_header_alone)
{
    expect_written((struct table_style){ .width = 100 }, NAMES, 3, NULL, 0, "region  flows  ms\n");
    expect_written((struct table_style){ .format = TABLE_CSV }, NAMES, 3, NULL, 0,
                   "region,flows,ms\r\n");
    expect_written((struct table_style){ .format = TABLE_JSON }, NAMES, 3, NULL, 0, "[]\n");
    expect_written((struct table_style){ .format = TABLE_NDJSON }, NAMES, 3, NULL, 0, "");
    expect_written((struct table_style){ .format = TABLE_MARKDOWN }, NAMES, 3, NULL, 0,
                   "| region | flows | ms |\n| --- | --- | --- |\n");
}

Test(table, csv_quotes_by_rfc_4180_and_guards_formulas_of_text_only)
{
    static const char *const names[] = { "a", "b" };
    struct cell cells[] = {
        cell_text("x,y"),
        cell_text("say \"hi\""),
        cell_text("two\nlines"),
        cell_text(""),
        cell_text("=1+1"),
        cell_text("@SUM(A1)"),
        cell_text("+1"),
        cell_text("-1"),
        cell_text("\tx"),
        cell_text("\rx"),
        cell_integer(-1),
        cell_real(-0.5),
        cell_null(),
        cell_text("\x1b[2J\xe2\x80\xae"),
        blob("\x00\xff", 2),
        cell_text("=\"a\""),
    };
    expect_written((struct table_style){ .format = TABLE_CSV }, names, 2, cells, 8,
                   "a,b\r\n"
                   "\"x,y\",\"say \"\"hi\"\"\"\r\n"
                   "\"two\nlines\",\"\"\r\n"
                   "'=1+1,'@SUM(A1)\r\n"
                   "'+1,'-1\r\n"
                   "'\tx,'\\x0dx\r\n"
                   "-1,-0.5\r\n"
                   ",\\x1b[2J\\u202e\r\n"
                   "00ff,\"'=\"\"a\"\"\"\r\n");
}

Test(table, json_keeps_numbers_numbers_and_escapes_text)
{
    static const char *const names[] = { "a\"", "b" };
    struct cell cells[] = { cell_integer(INT64_MIN),      cell_real(0.1),
                            cell_text("</script>\x1b\""), cell_null(),
                            cell_real(INFINITY),          blob("\x01", 1) };
    expect_written((struct table_style){ .format = TABLE_JSON }, names, 2, cells, 3,
                   "[\n"
                   "{\"a\\\"\":-9223372036854775808,\"b\":0.1},\n"
                   "{\"a\\\"\":\"</script>\\u001b\\\"\",\"b\":null},\n"
                   "{\"a\\\"\":null,\"b\":\"01\"}\n"
                   "]\n");
    expect_written((struct table_style){ .format = TABLE_NDJSON }, names, 2, cells, 1,
                   "{\"a\\\"\":-9223372036854775808,\"b\":0.1}\n");
}

Test(table, markdown_takes_nothing_from_a_cell_for_its_own)
{
    static const char *const names[] = { "n|m", "flow_id" };
    struct cell cells[] = { cell_text("a|b <img> [x](y) `c` *d* & \\\n"), cell_integer(5) };
    expect_written((struct table_style){ .format = TABLE_MARKDOWN }, names, 2, cells, 1,
                   "| n\\|m | flow_id |\n"
                   "| --- | ---: |\n"
                   "| a\\|b &lt;img> \\[x\\](y) \\`c\\` \\*d\\* &amp; \\\\\\\\x0a | 5 |\n");
}

Test(table, no_format_lets_a_control_character_through)
{
    static const char *const names[] = { "evil\x1b[31m\xe2\x80\xae" };
    char all[256];
    for (int i = 0; i < 255; i++)
        all[i] = (char)(i + 1);
    all[255] = '\0';
    struct cell cell = cell_text(all);
    for (enum table_format format = TABLE_ALIGNED; format <= TABLE_MARKDOWN; format++) {
        char *text =
            written((struct table_style){ .format = format, .utf8 = true }, names, 1, &cell, 1);
        for (const char *c = text; *c; c++) {
            bool line_end = *c == '\n' || (format == TABLE_CSV && (*c == '\r' || *c == '\t'));
            cr_expect(line_end || ((unsigned char)*c >= 0x20 && *c != 0x7f), "format %d: %02x",
                      (int)format, (unsigned)(unsigned char)*c);
        }
        cr_expect_null(strstr(text, "\xe2\x80\xae"));
        free(text);
    }
}

Test(table, more_rows_than_are_measured_all_come_out)
{
    static const char *const names[] = { "n" };
    enum { ROWS = 3 * TABLE_ROWS_MEASURED + 7 };
    struct cell *cells = calloc(ROWS, sizeof *cells);
    for (int i = 0; i < ROWS; i++)
        cells[i] = cell_integer(i);
    char *text = written((struct table_style){ .width = 100 }, names, 1, cells, ROWS);
    size_t lines = 0;
    for (const char *c = text; *c; c++)
        lines += *c == '\n';
    cr_expect_eq(lines, ROWS + 1);
    cr_expect_not_null(strstr(text, "\n3006\n"));
    free(text);
    free(cells);
}

Test(table, a_full_disk_is_told)
{
    FILE *out = fopen("/dev/full", "w");
    cr_assert_not_null(out);
    struct table *t = table_open(out, (struct table_style){ .format = TABLE_CSV }, NAMES, 3);
    cr_expect_eq(table_close(t), STATUS_IO);
    (void)fclose(out);
}

Test(table, formats_have_their_names)
{
    enum table_format format = TABLE_ALIGNED;
    cr_expect(table_format_of("ndjson", &format) && format == TABLE_NDJSON);
    cr_expect(table_format_of("table", &format) && format == TABLE_ALIGNED);
    cr_expect(!table_format_of("xml", &format) && format == TABLE_ALIGNED);
}

Test(table, a_text_can_run_to_the_end_of_its_row)
{
    static const enum align align[] = { ALIGN_LEFT, ALIGN_RIGHT, ALIGN_RIGHT };
    struct grid g = grid_of(3, align, true);
    struct text out = { 0 };
    grid_add_string(&g, "eu");
    grid_add_string(&g, "10");
    grid_add_string(&g, "20");
    grid_add_string(&g, "sea");
    grid_add_to_the_end(&g, "too few for percentiles");
    cr_assert(grid_write(&g, 100, &out));
    cr_expect_str_eq(text_string(&out), "eu   10  20\n"
                                        "sea  too few for percentiles\n");
    text_done(&out);
    grid_done(&g);
}
