/* SPDX-License-Identifier: Apache-2.0 */
#include "inputs.h"

#include "capture_builder.h"

#include <criterion/criterion.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATHS_MAX = 8, EN10MB = 1 };

static char directory[PATH_SIZE];

/* The working directory is that of the test, so that paths in expectations are short. */
static void enter_directory(void)
{
    test_directory(directory);
    cr_assert_eq(chdir(directory), 0);
}

static void leave_directory(void)
{
    cr_assert_eq(chdir("/"), 0);
    remove_directory(directory);
}

TestSuite(inputs, .init = enter_directory, .fini = leave_directory, .timeout = 60);

/* A capture with one frame at that second; without one for 0. */
static void make_capture(const char *path, uint32_t second)
{
    static const struct pcap_style STYLE = { .link_type = EN10MB };
    struct buffer b = { 0 };
    uint8_t frame[60] = { 0 };
    put_pcap_header(&b, &STYLE);
    if (second != 0)
        put_pcap_record(&b, &STYLE, second, 0, (struct bytes){ frame, sizeof frame }, 60);
    write_file(path, buffer_bytes(&b));
}

static void make_text(const char *path, const char *text)
{
    write_file(path, (struct bytes){ (const uint8_t *)text, strlen(text) });
}

/* What was found, written as text: a line for each point, file and note. */
static char *found(struct input_options o, enum status expected)
{
    static char text[8192];
    struct inputs r;
    size_t n = 0;
    cr_assert_eq(inputs_find(&o, &r), expected);
    text[0] = '\0';
    for (size_t i = 0; i < r.point_count; i++) {
        const struct capture_point *p = &r.points[i];
        const char *name = strncmp(p->name, directory, strlen(directory)) == 0
                               ? p->name + strlen(directory)
                               : p->name;
        n += (size_t)snprintf(
            text + n, sizeof text - n, "%s [%s %s %s %s]\n", name,
            p->labels.site ? p->labels.site : "-", p->labels.host ? p->labels.host : "-",
            p->labels.region ? p->labels.region : "-", p->labels.other ? p->labels.other : "-");
        for (size_t j = 0; j < p->file_count; j++)
            n += (size_t)snprintf(text + n, sizeof text - n, "  %s %lld %llu\n", p->files[j].path,
                                  (long long)(p->files[j].first_at_ns / 1000000000),
                                  (unsigned long long)p->files[j].size);
    }
    for (size_t i = 0; i < r.note_count; i++)
        n += (size_t)snprintf(text + n, sizeof text - n, "%s %s: %s\n",
                              r.notes[i].is_error ? "error" : "note", r.notes[i].path,
                              r.notes[i].text);
    inputs_done(&r);
    return text;
}

static char *found_by_paths(size_t count, char *const *paths)
{
    struct input_options o = { .paths = (char **)paths, .path_count = count };
    return found(o, STATUS_OK);
}

#define PATHS(...)                                                                                 \
    sizeof((char *[]){ __VA_ARGS__ }) / sizeof(char *), (char *const[])                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

Test(inputs, files_of_a_ring_are_one_point_in_order_of_time)
{
    make_capture("ring.pcap0", 300);
    make_capture("ring.pcap1", 100);
    make_capture("ring.pcap12", 200);
    make_capture("other.pcap", 50);
    cr_assert_str_eq(found_by_paths(PATHS("ring.pcap0", "other.pcap", "ring.pcap1", "ring.pcap12")),
                     "/other [- - - -]\n"
                     "  other.pcap 50 100\n"
                     "/ring [- - - -]\n"
                     "  ring.pcap1 100 100\n"
                     "  ring.pcap12 200 100\n"
                     "  ring.pcap0 300 100\n");
}

Test(inputs, equal_times_are_ordered_by_path_and_empty_captures_come_first)
{
    make_capture("r1.pcap", 100);
    make_capture("r0.pcap", 100);
    make_capture("r2.pcap", 0);
    cr_assert_str_eq(found_by_paths(PATHS("r1.pcap", "r0.pcap", "r2.pcap")), "/r [- - - -]\n"
                                                                             "  r2.pcap 0 24\n"
                                                                             "  r0.pcap 100 100\n"
                                                                             "  r1.pcap 100 100\n");
}

Test(inputs, directories_are_walked_in_order)
{
    mkdir("d", 0700);
    mkdir("d/b", 0700);
    mkdir("d/.git", 0700);
    make_capture("d/b/x.pcap", 1);
    make_capture("d/a.pcap", 2);
    make_capture("d/.hidden.pcap", 3);
    make_capture("d/.git/y.pcap", 4);
    make_text("d/readme.txt", "about these captures");
    make_text("d/keys", "CLIENT_RANDOM");
    make_text("d/zero.pcap3.gz", "");
    cr_assert_eq(mkfifo("d/fifo", 0600), 0);
    cr_assert_str_eq(found_by_paths(PATHS("d/")),
                     "/d/a [- - - -]\n"
                     "  d/a.pcap 2 100\n"
                     "/d/b/x [- - - -]\n"
                     "  d/b/x.pcap 1 100\n"
                     "note d/.git: hidden, not read\n"
                     "note d/.hidden.pcap: hidden, not read\n"
                     "note d/fifo: no regular file, not read\n"
                     "note d/keys: unknown file format, and 1 more file in "
                     "directories is no capture\n"
                     "note d/zero.pcap3.gz: is empty\n");
}

Test(inputs, what_was_named_and_is_no_capture_is_an_error)
{
    mkdir("d", 0700);
    make_text("d/readme.txt", "about these captures");
    cr_assert_str_eq(found_by_paths(PATHS("d", "d/readme.txt", "gone.pcap", "/dev/null")),
                     "error gone.pcap: No such file or directory\n"
                     "error /dev/null: is neither a file nor a directory nor a pipe\n"
                     "note d/readme.txt: named twice, read once\n"
                     "error d/readme.txt: unknown file format\n");
}

Test(inputs, loops_of_links_end)
{
    mkdir("d", 0700);
    mkdir("d/e", 0700);
    make_capture("d/e/x.pcap", 1);
    cr_assert_eq(symlink("..", "d/e/up"), 0);
    cr_assert_eq(symlink("itself", "d/itself"), 0);
    cr_assert_str_eq(found_by_paths(PATHS("d")),
                     "/d/e/x [- - - -]\n"
                     "  d/e/x.pcap 1 100\n"
                     "note d/e/up: link to a directory it lies in, not entered\n"
                     "error d/itself: Too many levels of symbolic links\n");
}

Test(inputs, one_file_under_many_names_is_read_once)
{
    mkdir("d", 0700);
    make_capture("d/x.pcap", 1);
    cr_assert_eq(symlink("x.pcap", "d/y.pcap"), 0);
    cr_assert_eq(link("d/x.pcap", "z.pcap"), 0);
    cr_assert_str_eq(found_by_paths(PATHS("d/x.pcap", "z.pcap", "d", "./d/x.pcap")),
                     "/d/x [- - - -]\n"
                     "  d/x.pcap 1 100\n"
                     "note z.pcap: named twice, read once\n"
                     "note d/x.pcap: named twice, read once\n"
                     "note d/y.pcap: named twice, read once\n"
                     "note ./d/x.pcap: named twice, read once\n");
}

Test(inputs, a_point_is_the_same_from_wherever_it_is_named)
{
    char absolute[2 * PATH_SIZE];
    mkdir("d", 0700);
    make_capture("d/x.pcap", 1);
    snprintf(absolute, sizeof absolute, "%s/d/../d/x.pcap", directory);
    char *const ways[] = { "d/x.pcap", "./d//x.pcap", absolute };
    for (size_t i = 0; i < 3; i++) {
        char *text = found_by_paths(1, &ways[i]);
        cr_assert_eq(strncmp(text, "/d/x [- - - -]\n", 15), 0, "%s: %s", ways[i], text);
    }
}

Test(inputs, broken_captures_are_still_inputs)
{
    make_capture("cut.pcap", 7);
    cr_assert_eq(truncate("cut.pcap", 90), 0);
    cr_assert_str_eq(found_by_paths(PATHS("cut.pcap")), "/cut [- - - -]\n  cut.pcap 0 90\n");
}

Test(inputs, standard_input_is_taken_once_and_not_looked_at)
{
    cr_assert_str_eq(found_by_paths(PATHS("-")), "- [- - - -]\n  - 0 0\n");
    struct input_options o = { .paths = (char *[]){ "-", "-" }, .path_count = 2 };
    cr_assert_str_eq(found(o, STATUS_USAGE), "error -: standard input can be read only once\n");
    o = (struct input_options){ .paths = (char *[]){ "-" }, .path_count = 1, .files_from = "-" };
    cr_assert_str_eq(found(o, STATUS_USAGE), "error -: standard input can be read only once\n");
}

Test(inputs, a_named_pipe_is_not_looked_at)
{
    cr_assert_eq(mkfifo("fifo", 0600), 0);
    cr_assert_str_eq(found_by_paths(PATHS("fifo")), "/fifo [- - - -]\n  fifo 0 0\n");
}

Test(inputs, files_from_a_list)
{
    make_capture("a b.pcap", 1);
    make_capture("c.pcap", 2);
    make_text("list", "a b.pcap\n\nc.pcap\nmissing.pcap");
    struct input_options o = { .files_from = "list" };
    cr_assert_str_eq(found(o, STATUS_OK), "/a b [- - - -]\n"
                                          "  a b.pcap 1 100\n"
                                          "/c [- - - -]\n"
                                          "  c.pcap 2 100\n"
                                          "error missing.pcap: No such file or directory\n");
    o.files_from = "nolist";
    cr_assert_str_eq(found(o, STATUS_IO), "error nolist: No such file or directory\n");
    o.files_from = ".";
    cr_assert_str_eq(found(o, STATUS_IO), "error .: Is a directory\n");
}

Test(inputs, labels_of_the_command_line_are_over_those_of_the_path)
{
    mkdir("eu", 0700);
    mkdir("eu/fra1", 0700);
    make_capture("eu/fra1/edge7-1.pcap", 1);
    make_capture("eu/fra1/edge8-1.pcap", 2);
    make_capture("eu/fra1/other.pcap", 3);
    struct input_options o = { .paths = (char *[]){ "eu" },
                               .path_count = 1,
                               .region = "europe",
                               .label_pattern = "{region}/{site}/{host}-*.pcap" };
    cr_assert_str_eq(found(o, STATUS_OK),
                     "/eu/fra1/edge- [fra1 edge7 europe -]\n"
                     "  eu/fra1/edge7-1.pcap 1 100\n"
                     "/eu/fra1/edge- [fra1 edge8 europe -]\n"
                     "  eu/fra1/edge8-1.pcap 2 100\n"
                     "/eu/fra1/other [- - europe -]\n"
                     "  eu/fra1/other.pcap 3 100\n"
                     "note eu/fra1/other.pcap: read without labels: its path does not fit\n");
}

Test(inputs, no_paths_are_no_points)
{
    struct input_options o = { 0 };
    cr_assert_str_eq(found(o, STATUS_OK), "");
    cr_assert_str_eq(found_by_paths(PATHS(".")), "");
}

/* ---- labels ---- */

static const char *labels_text(const char *pattern, const char *path)
{
    static char text[1024];
    struct labels l = { 0 };
    if (labels_from_path(pattern, path, &l) == STATUS_REFUSED)
        return "does not fit";
    snprintf(text, sizeof text, "%s %s %s %s", l.site ? l.site : "-", l.host ? l.host : "-",
             l.region ? l.region : "-", l.other ? l.other : "-");
    labels_done(&l);
    return text;
}

Test(labels, come_from_the_elements_of_a_path)
{
    static const char *const CASES[][3] = {
        { "{region}/{site}/{host}/*", "/data/eu/fra1/h7/x.pcap", "fra1 h7 eu -" },
        { "{region}/{site}/{host}/*", "eu/fra1/h7/x.pcap", "fra1 h7 eu -" },
        { "{region}/{site}/{host}/*", "eu//fra1/./x.pcap", "fra1 . eu -" },
        { "{region}/{site}/{host}/*", "fra1/h7/x.pcap", "does not fit" },
        { "/data/{site}/*", "/data/fra1/x.pcap", "fra1 - - -" },
        { "/data/{site}/*", "/mnt/data/fra1/x.pcap", "does not fit" },
        { "data/{site}/*", "/mnt/data/fra1/x.pcap", "fra1 - - -" },
        { "{site}-{host}-*.pcap", "fra-edge7-2024-06.pcap", "fra edge7 - -" },
        { "{site}-{host}.pcap", "fra-edge7-2.pcap", "fra edge7-2 - -" },
        { "{site}-{host}.pcap", "-edge7.pcap", "does not fit" },
        { "*-{host}.pcap", "-edge7.pcap", "- edge7 - -" },
        { "{site}.pcap", ".pcap", "does not fit" },
        { "a{site}b", "ab", "does not fit" },
        { "a{site}b", "axbyb", "xby - - -" },
        { "x.pcap", "/d/x.pcap", "- - - -" },
        { "x.pcap", "/d/xx.pcap", "does not fit" },
        { "{rack}/{row}-*", "r1/w2-3", "- - - {\"rack\":\"r1\",\"row\":\"w2\"}" },
        { "{q}/*", "a\"b\\c/x", "- - - {\"q\":\"a\\\"b\\\\c\"}" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        cr_assert_str_eq(labels_text(CASES[i][0], CASES[i][1]), CASES[i][2], "%s on %s: %s",
                         CASES[i][0], CASES[i][1], labels_text(CASES[i][0], CASES[i][1]));
}

Test(labels, wrong_patterns_are_told)
{
    static const char *const WRONG[] = {
        "",     "/",  "{site",         "{}",     "{a b}",  "{a/b}", "{a}{b}",
        "{a}*", "**", "{site}/{site}", "{x{y}}", "{1a}/*", "x/{",   "{site}-{site"
    };
    static const char *const RIGHT[] = { "*", "{site}", "a*b*c", "{a_1}/x{b}y/*", "}", "a/" };
    for (size_t i = 0; i < sizeof WRONG / sizeof WRONG[0]; i++)
        cr_assert_not_null(label_pattern_error(WRONG[i]), "%s", WRONG[i]);
    for (size_t i = 0; i < sizeof RIGHT / sizeof RIGHT[0]; i++)
        cr_assert_null(label_pattern_error(RIGHT[i]), "%s", RIGHT[i]);
    cr_assert_eq(chdir(directory[0] != '\0' ? directory : "/"), 0);
    struct input_options o = { .label_pattern = "{site" };
    cr_assert_str_eq(found(o, STATUS_USAGE), "error --labels {site: has a { without }\n");
}

Test(labels, names_of_points_have_no_digits_and_suffixes)
{
    static const char *const CASES[][2] = {
        { "/var/edge-fra-20260602.pcap3.gz", "/var/edge-fra-" },
        { "ring.pcap0", "ring" },
        { "ring.pcap12", "ring" },
        { "ring.pcap", "ring" },
        { "ring", "ring" },
        { "ring1", "ring" },
        { "x.pcapng.zst", "x" },
        { "x.cap.lz4", "x" },
        { "x.dmp.xz", "x" },
        { "x.PCAP.bz2", "x" },
        { "x.pcap.1", "x" },
        { "x.pcap.1.gz", "x" },
        { "a1/b2/c3_00001_20240602120000.pcapng", "a1/b2/c__" },
        { "/d/2024.pcap", "/d/" },
        { ".pcap", "" },
        { "", "" },
        { "a.pcap/b.txt", "a.pcap/b.txt" },
        { "mcap", "mcap" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++) {
        char *name = point_name(CASES[i][0]);
        cr_assert_str_eq(name, CASES[i][1], "%s: %s", CASES[i][0], name);
        free(name);
    }
}
