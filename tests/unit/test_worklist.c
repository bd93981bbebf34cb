/* SPDX-License-Identifier: Apache-2.0 */
#include "worklist.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct text name_of(const char *point_name)
{
    struct text name = { 0 };
    worklist_name(point_name, &name);
    return name;
}

Test(worklist, a_name_begins_with_what_people_know_and_needs_no_quotes)
{
    static const struct {
        const char *point, *begins;
    } CASES[] = {
        { "/srv/captures/eu/fra1/edge-", "fra1-edge-" },
        { "/srv/a b/it's $(x) \"`;|&<>\n*?/../-edge", "edge-" },
        { "/srv/\xff\xfe/\xe2\x80\xae", "" },
        { "/", "" },
        { "", "" },
        { "/x/.hidden", "x-.hidden-" },
    };
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct text name = name_of(CASES[i].point);
        const char *at = text_string(&name);
        cr_expect(strncmp(at, CASES[i].begins, strlen(CASES[i].begins)) == 0, "case %zu: %s", i,
                  at);
        cr_expect_eq(strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789._-"),
                     name.len, "case %zu: %s", i, at);
        cr_expect(at[0] != '-' && at[0] != '.', "case %zu: %s", i, at);
        cr_expect_str_eq(at + name.len - strlen(".files"), ".files");
        text_done(&name);
    }
}

Test(worklist, a_name_is_bounded_whatever_the_point_is_called)
{
    char point[5000];
    memset(point, 'x', sizeof point - 1);
    point[sizeof point - 1] = '\0';
    struct text name = name_of(point);
    cr_expect_lt(name.len, (size_t)64);
    text_done(&name);
}

Test(worklist, points_of_one_ending_have_different_names)
{
    struct text one = name_of("/a/eu/eth0/edge"), two = name_of("/b/eu/eth0/edge"),
                again = name_of("/a/eu/eth0/edge");
    cr_expect_str_neq(text_string(&one), text_string(&two));
    cr_expect_str_eq(text_string(&one), text_string(&again));
    text_done(&one);
    text_done(&two);
    text_done(&again);
}

/* A directory of two points, one of two files, and one file that no list can name. */
static void make_captures(const char *directory)
{
    static const unsigned char PCAP_HEADER[24] = { 0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0,
                                                   0,    0,    0,    0,    0, 0, 4, 0, 1, 0, 0, 0 };
    static const char *const NAMES[] = { "edge-1.pcap", "edge-2.pcap", "core.pcap", "a\nb.pcap" };
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++) {
        char path[300];
        snprintf(path, sizeof path, "%s/%s", directory, NAMES[i]);
        FILE *file = fopen(path, "w");
        cr_assert_not_null(file);
        fwrite(PCAP_HEADER, 1, sizeof PCAP_HEADER, file);
        fclose(file);
    }
}

static struct worklist_result write_lists(char *captures, const char *lists, char *printed,
                                          size_t size)
{
    struct input_options options = { .paths = &captures, .path_count = 1 };
    struct worklist_result result;
    struct text notes = { 0 }, error = { 0 };
    FILE *out = tmpfile();
    cr_assert_eq(worklist_write(&options, lists, out, &result, &notes, &error), STATUS_OK, "%s",
                 text_string(&error));
    rewind(out);
    printed[fread(printed, 1, size - 1, out)] = '\0';
    fclose(out);
    text_done(&notes);
    text_done(&error);
    return result;
}

Test(worklist, each_file_is_on_one_list_or_counted)
{
    char directory[] = "/tmp/worklist-XXXXXX", lists[40], printed[1000], line[300];
    cr_assert_not_null(mkdtemp(directory));
    snprintf(lists, sizeof lists, "%s/lists", directory);
    make_captures(directory);
    struct worklist_result result = write_lists(directory, lists, printed, sizeof printed);
    cr_expect_eq(result.points, (size_t)2);
    cr_expect_eq(result.files, (size_t)3);
    cr_expect_eq(result.files_unreadable, (size_t)1, "the one with a line break");

    size_t lines = 0;
    struct stat before, after;
    for (char *path = strtok(printed, "\n"); path != NULL; path = strtok(NULL, "\n")) {
        FILE *list = fopen(path, "r");
        cr_assert_not_null(list, "%s", path);
        while (fgets(line, sizeof line, list) != NULL)
            lines += strncmp(line, directory, strlen(directory)) == 0;
        fclose(list);
        cr_assert_eq(stat(path, &before), 0);
        char again[1000];
        write_lists(directory, lists, again, sizeof again);
        cr_assert_eq(stat(path, &after), 0);
        cr_expect_eq(before.st_ino, after.st_ino, "a list that does not change stays");
    }
    cr_expect_eq(lines, (size_t)3);
}
