/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest.h"

#include "capture_builder.h"
#include "text.h"

#include <criterion/criterion.h>

static char directory[PATH_SIZE], path[PATH_SIZE + 16];

static void make_directory(void)
{
    snprintf(path, sizeof path, "%s/manifest.csv", test_directory(directory));
}

static void drop_directory(void)
{
    remove_directory(directory);
}

TestSuite(manifest, .init = make_directory, .fini = drop_directory, .timeout = 60);

static struct manifest *open_text(struct bytes csv, enum status *ret_status)
{
    struct manifest *m = NULL;
    write_file(path, csv);
    *ret_status = manifest_open(path, &m);
    cr_assert_not_null(m);
    return m;
}

static struct manifest *manifest_of(const char *csv)
{
    enum status status;
    struct manifest *m = open_text(text_bytes(csv), &status);
    cr_assert_eq(status, STATUS_OK, "%s", manifest_error(m));
    return m;
}

/* "site|host|region|other" with - for none; "no line". */
static const char *labels(const struct manifest *m, const char *capture)
{
    static char text[512];
    struct labels l;
    if (manifest_labels(m, capture, &l) != STATUS_OK)
        return "no line";
    snprintf(text, sizeof text, "%s|%s|%s|%s", l.site ? l.site : "-", l.host ? l.host : "-",
             l.region ? l.region : "-", l.other ? l.other : "-");
    labels_done(&l);
    return text;
}

Test(manifest, a_file_as_spreadsheets_write_it)
{
    struct manifest *m = manifest_of("\xef\xbb\xbfregion,glob,site,rack\r\n"
                                     "\r\n"
                                     "eu,\"fra,1/*.pcap\",fra1,\"row \"\"7\"\"\n2\"\r\n"
                                     ",edge-?.pcap,,\r\n"
                                     "us,*,x,");
    cr_expect_str_eq(labels(m, "/a/fra,1/b.pcap"), "fra1|-|eu|{\"rack\":\"row \\\"7\\\"\\n2\"}");
    cr_expect_str_eq(labels(m, "edge-a.pcap"), "-|-|-|-");
    cr_expect_str_eq(labels(m, "edge-ab.pcap"), "x|-|us|-");
    manifest_close(m);
}

Test(manifest, globs_fit_from_the_right_element_by_element)
{
    struct manifest *m = manifest_of("glob,site\n/a/*.pcap,root\nb/*/c,deep\n*.gz,any\n");
    cr_expect_str_eq(labels(m, "/a/x.pcap"), "root|-|-|-");
    cr_expect_str_eq(labels(m, "/z/a/x.pcap"), "no line");
    cr_expect_str_eq(labels(m, "z/b/x/c"), "deep|-|-|-");
    cr_expect_str_eq(labels(m, "b//x/c/"), "deep|-|-|-");
    cr_expect_str_eq(labels(m, "b/x/y/c"), "no line", "a star stays in its element");
    cr_expect_str_eq(labels(m, "c"), "no line");
    cr_expect_str_eq(labels(m, ".gz"), "any|-|-|-");
    cr_expect_str_eq(labels(m, ""), "no line");
    manifest_close(m);
}

Test(manifest, what_is_wrong_is_told_with_its_line)
{
    static const struct {
        const char *csv, *says;
    } cases[] = {
        { "", "is empty" },
        { "\n\r\n", "is empty" },
        { "site,host\n", "line 1: no column is named glob" },
        { "glob,site,site\n", "line 1: two columns are named site" },
        { "glob,a b\n", "line 1: column 2 is not named" },
        { "glob,\n", "line 1: column 2 is not named" },
        { "glob,site\n\na\n", "line 3: 1 fields, but 2" },
        { "glob,site\na,b,c\n", "line 2: 3 fields, but 2" },
        { "glob,site\n,b\n", "line 2: the glob is empty" },
        { "glob\n\"a\nb", "line 2: a quote is not closed" },
        { "glob\n\"a\"b\n", "line 2: text behind a closing quote" },
        { "glob\na\"b\n", "line 2: a quote inside" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        enum status status;
        struct manifest *m = open_text(text_bytes(cases[i].csv), &status);
        cr_expect_eq(status, STATUS_USAGE, "%s", cases[i].csv);
        cr_expect_not_null(strstr(manifest_error(m), cases[i].says), "%s", manifest_error(m));
        manifest_close(m);
    }
    enum status status;
    struct manifest *m = open_text((struct bytes){ (const uint8_t *)"glob\na\0b", 8 }, &status);
    cr_expect_eq(status, STATUS_USAGE);
    manifest_close(m);
}

Test(manifest, every_truncation_is_read_or_refused)
{
    static const char CSV[] = "\xef\xbb\xbfglob,site\r\n\"a \"\"b\"\", c\",\"x\r\ny\"\r\n*,z\r\n";
    for (size_t n = 0; n < sizeof CSV; n++) { /* without its terminator */
        enum status status;
        struct manifest *m = open_text((struct bytes){ (const uint8_t *)CSV, n }, &status);
        if (status == STATUS_OK)
            (void)labels(m, "a \"b\", c");
        else
            cr_expect(status == STATUS_USAGE && manifest_error(m)[0] != '\0', "%zu bytes", n);
        manifest_close(m);
    }
}

Test(manifest, a_hostile_glob_costs_no_more_than_the_product_of_lengths)
{
    struct manifest *m = manifest_of("glob\n*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*ab\n");
    char name[4096];
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    cr_expect_str_eq(labels(m, name), "no line");
    manifest_close(m);
}

Test(manifest, a_file_that_cannot_be_read)
{
    struct manifest *m = NULL;
    cr_expect_eq(manifest_open("/no/such/file", &m), STATUS_IO);
    cr_expect_neq(manifest_error(m)[0], '\0');
    manifest_close(m);
    cr_expect_eq(manifest_open(directory, &m), STATUS_IO);
    manifest_close(m);
}
