/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include <criterion/criterion.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { NAMES_MAX = 100, NAME_SIZE = 32, INDENTED_MAX = 6 };

/* Names of options, or of commands. */
struct names {
    char name[NAMES_MAX][NAME_SIZE];
    size_t count;
};

static bool has(const struct names *n, const char *name)
{
    for (size_t i = 0; i < n->count; i++)
        if (strcmp(n->name[i], name) == 0)
            return true;
    return false;
}

static size_t name_len(const char *at)
{
    return strspn(at, "abcdefghijklmnopqrstuvwxyz-");
}

static void add(struct names *n, const char *at)
{
    char name[NAME_SIZE];
    size_t len = name_len(at);
    cr_assert(len > 0 && len < NAME_SIZE && n->count < NAMES_MAX);
    memcpy(name, at, len);
    name[len] = '\0';
    if (!has(n, name))
        strcpy(n->name[n->count++], name);
}

/* The long options with which lines of a help begin, as "  -o, --output FILE" and "--since T,
 * --until T". */
static void add_options(struct names *n, const char *help)
{
    for (const char *line = help; line != NULL; line = strchr(line, '\n')) {
        line += strspn(line, "\n");
        const char *at = line + strspn(line, " ");
        bool is_short = at[0] == '-' && at[1] != '-' && strncmp(at + 2, ", --", 4) == 0;
        at += is_short ? 4 : 0;
        if (at == line || at > line + INDENTED_MAX || strncmp(at, "--", 2) != 0)
            continue; /* text, which stands farther to the right */
        add(n, at + 2);
        const char *second = strstr(at, ", --"), *text = strstr(at, "  "), *end = strchr(at, '\n');
        if (second != NULL && second < end && (text == NULL || second < text))
            add(n, second + 4);
    }
}

/* The names with which the lines of the program's help that tell of commands begin. */
static void add_commands(struct names *n)
{
    for (const char *line = strchr(cli_help(COMMAND_NONE), '\n'); line != NULL;
         line = strchr(line + 1, '\n'))
        if (strncmp(line + 1, "  ", 2) == 0 && islower((unsigned char)line[3]))
            add(n, line + 3);
}

/* What a command says to an option, with a value in case it wants one: shows its help if it may. */
static const char *answer(const char *command, const char *option, struct command_line *ret_line)
{
    static char error[256];
    char words[5][NAME_SIZE + 2] = { "firstflight", "", "", "1", "--help" };
    char *argv[] = { words[0], words[1], words[2], words[3], words[4], NULL };
    char *files[CLIENT_FILES_MAX];
    strcpy(words[1], command);
    snprintf(words[2], sizeof words[2], "--%s", option);
    error[0] = '\0';
    (void)!cli_read(5, argv, files, ret_line, error, sizeof error);
    return error;
}

static enum command command_of(const char *name)
{
    struct command_line line;
    cr_assert_str_empty(answer(name, "help", &line), "%s", name);
    cr_assert_eq(line.command, COMMAND_HELP);
    return line.help_of;
}

Test(cli, a_command_takes_the_options_that_its_help_names_and_no_others)
{
    struct names commands = { 0 }, all = { 0 };
    struct names told[COMMAND_VERSION] = { 0 };
    struct command_line line;
    add_commands(&commands);
    cr_assert_gt(commands.count, 10);
    for (size_t c = 0; c < commands.count; c++) {
        const char *help = cli_help(command_of(commands.name[c]));
        add_options(&told[c], help);
        add_options(&all, help);
    }
    cr_assert_gt(all.count, 30);
    for (size_t c = 0; c < commands.count; c++)
        for (size_t o = 0; o < all.count; o++) {
            const char *name = all.name[o];
            bool is_of_all = strcmp(name, "database") == 0 || strcmp(name, "quiet") == 0 ||
                             strcmp(name, "verbose") == 0;
            bool taken = strstr(answer(commands.name[c], name, &line), "no such option") == NULL;
            cr_expect_eq(taken, is_of_all || has(&told[c], name), "%s --%s", commands.name[c],
                         name);
        }
}
