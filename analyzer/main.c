/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments, exit status, and the only place that prints to standard error. */
#include "capture.h"
#include "captures.h"
#include "check.h"
#include "cli.h"
#include "doctor.h"
#include "export.h"
#include "flows.h"
#include "forget.h"
#include "http.h"
#include "label.h"
#include "merge.h"
#include "mmdb.h"
#include "progress.h"
#include "rejudge.h"
#include "report.h"
#include "rules.h"
#include "sandbox.h"
#include "set_regions.h"
#include "show.h"
#include "source.h"
#include "store.h"
#include "worklist.h"

#include <errno.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum exit_status {
    EXIT_DONE,
    EXIT_USAGE,
    EXIT_FAILED = 2,
    EXIT_DAMAGED = 3, /* done, but some input could not be used as a whole */
    EXIT_INTERRUPTED = 130,
};

/* Set by SIGINT and SIGTERM, looked at between steps: the one thing a handler may touch. */
static volatile sig_atomic_t interrupted;

static void interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

static void catch_interrupts(void)
{
    struct sigaction action = { .sa_handler = interrupt, .sa_flags = (int)SA_RESETHAND };
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static bool is_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* File names and words from captures stand in messages: nothing of them may steer a terminal. */
static void complain(const char *words)
{
    struct text safe = { 0 };
    text_add_safe(&safe, text_bytes(words), is_utf8());
    fprintf(stderr, "firstflight: %s\n", text_string(&safe));
    text_done(&safe);
}

/* Columns of the terminal that f is; 0 when it is none. */
static size_t terminal_width(FILE *f)
{
    struct winsize size;
    if (!isatty(fileno(f)))
        return 0;
    return ioctl(fileno(f), TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

/* What reads strangers' bytes gives up what it does not need, see sandbox.h. */

static void allow_directory_of(struct sandbox *sandbox, const char *file)
{
    char *directory = strdup(file);
    char *slash = directory == NULL ? NULL : strrchr(directory, '/');
    if (slash != NULL)
        slash[slash == directory] = '\0'; /* "/" stays */
    if (directory != NULL)
        sandbox_may_write_in(sandbox, slash == NULL ? "." : directory);
    free(directory);
}

static void enter_sandbox(struct sandbox *sandbox, bool files_too, bool verbose)
{
    struct text said = { 0 };
    sandbox_say(sandbox_enter(sandbox, files_too), &said);
    if (verbose)
        complain(text_string(&said));
    text_done(&said);
}

static void confine_ingest(const struct command_line *line, const struct ingest *ingest)
{
    struct sandbox *sandbox = line->no_sandbox ? NULL : sandbox_prepare();
    const struct inputs *inputs = ingest_inputs(ingest);
    if (sandbox == NULL)
        return;
    for (size_t p = 0; p < inputs->point_count; p++)
        for (size_t k = 0; k < inputs->points[p].file_count; k++)
            sandbox_may_read(sandbox, inputs->points[p].files[k].path);
    allow_directory_of(sandbox, line->database);
    sandbox_may_use_temporary_files(sandbox);
    enter_sandbox(sandbox, true, line->verbose);
    sandbox_close(sandbox);
}

static void confine_doctor(const struct command_line *line)
{
    const struct input_options *inputs = &line->ingest.inputs;
    struct sandbox *sandbox = line->no_sandbox ? NULL : sandbox_prepare();
    if (sandbox == NULL)
        return;
    for (size_t i = 0; i < inputs->path_count; i++)
        sandbox_may_read(sandbox, inputs->paths[i]);
    sandbox_may_use_temporary_files(sandbox);
    bool paths_are_known = inputs->files_from == NULL;
    enter_sandbox(sandbox, paths_are_known, line->verbose);
    sandbox_close(sandbox);
}

/* Whoever looks at the progress of a command. */
static FILE *terminal_of(const struct command_line *line)
{
    return !line->quiet && isatty(STDERR_FILENO) ? stderr : NULL;
}

static void show_progress(const struct ingest *ingest, struct progress *progress)
{
    struct ingest_progress p = ingest_progress(ingest);
    double seconds = progress_seconds(progress);
    double share = p.bytes_total == 0 ? 0 : (double)p.bytes_done / (double)p.bytes_total;
    double left = share > 0.01 && share < 1 ? seconds / share - seconds : 0;
    progress_show(progress, "%s: %zu of %zu files, %.0f%%, %.1f M packets, %.0f s, %.0f s left",
                  p.doing, p.files_done, p.files_total, 100 * (share > 1 ? 1 : share),
                  (double)p.packets / 1e6, seconds, left);
}

static void print_notes(const struct ingest *ingest, size_t *printed, bool quiet)
{
    const struct notes *notes = ingest_notes(ingest);
    for (; *printed < notes->count; (*printed)++) {
        const struct note *note = &notes->list[*printed];
        if (note->is_error || !quiet)
            complain(note->text == NULL ? "out of memory" : note->text);
    }
}

static enum status run_ingest(struct ingest *ingest, const struct command_line *line,
                              size_t *notes_printed)
{
    struct progress progress = progress_begin(terminal_of(line));
    enum status status = STATUS_OK;
    bool done = false;
    while (status == STATUS_OK && !done && !interrupted) {
        status = ingest_step(ingest, &done);
        if (progress_is_due(&progress))
            show_progress(ingest, &progress);
    }
    progress_end(&progress);
    if (status == STATUS_OK)
        status = ingest_finish(ingest);
    print_notes(ingest, notes_printed, line->quiet);
    return status;
}

static int exit_of_ingest(const struct ingest_result *r)
{
    if (interrupted)
        return EXIT_INTERRUPTED;
    if (r->files_read == 0 && r->files_known == 0 && r->files_refused == 0)
        return EXIT_FAILED;
    return r->files_damaged > 0 || r->files_unreadable > 0 || r->files_refused > 0 ? EXIT_DAMAGED
                                                                                   : EXIT_DONE;
}

/*
 * Lets the heap grow in huge pages and keep what it has: a load takes and returns memory all the
 * time, and getting it 4 KiB at a time costs an eighth of its CPU time. Only a hint: other C
 * libraries, and a kernel that has none to give, do without.
 */
static void prefer_huge_pages(void)
{
#ifdef __GLIBC__
    enum { HUGE_PAGE = 2 << 20, HEAP = 128 << 20, LARGE = 32 << 20 };
    mallopt(M_MMAP_THRESHOLD, LARGE);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_TOP_PAD, HEAP);
    void *room = malloc(HUGE_PAGE); /* and behind it HEAP more */
    uintptr_t begin = ((uintptr_t)room + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE;
    if (room != NULL)
        (void)madvise((void *)begin, HEAP, MADV_HUGEPAGE);
    free(room);
#endif
}

/* Threads that read share no heap; the writer's memory is that of whoever judges. Before threads.
 */
static void share_heaps(const struct ingest *ingest)
{
#ifdef __GLIBC__
    mallopt(M_ARENA_MAX, (int)ingest_jobs(ingest));
#endif
}

static int command_ingest(const struct command_line *line)
{
    struct ingest *ingest = NULL;
    prefer_huge_pages();
    size_t notes_printed = 0;
    enum status status = ingest_open(&line->ingest, &ingest);
    if (ingest == NULL) {
        complain("out of memory");
        return EXIT_FAILED;
    }
    print_notes(ingest, &notes_printed, line->quiet);
    catch_interrupts();
    share_heaps(ingest);
    if (status == STATUS_OK)
        confine_ingest(line, ingest);
    if (status == STATUS_OK)
        status = run_ingest(ingest, line, &notes_printed);
    int exit_status = status == STATUS_USAGE ? EXIT_USAGE : EXIT_FAILED;
    if (status == STATUS_OK) {
        struct ingest_result r = ingest_result(ingest);
        exit_status = exit_of_ingest(&r);
        if (!line->quiet)
            fprintf(stderr, "%zu file%s read, %zu known, %llu packet%s, %llu flow%s added to %s\n",
                    r.files_read, plural(r.files_read), r.files_known,
                    (unsigned long long)r.packets, plural(r.packets),
                    (unsigned long long)r.flows_added, plural(r.flows_added), line->database);
        if (!line->quiet && r.flows_continued > 0)
            fprintf(stderr, "%llu flow%s of earlier runs continued\n",
                    (unsigned long long)r.flows_continued, plural(r.flows_continued));
        if (line->verbose && r.flows_judged_again > 0)
            fprintf(stderr, "%llu earlier flow%s judged again, %llu changed\n",
                    (unsigned long long)r.flows_judged_again, plural(r.flows_judged_again),
                    (unsigned long long)r.flows_changed);
    } else {
        complain(ingest_error(ingest));
    }
    ingest_close(ingest);
    return exit_status;
}

/* Exit status of a command that only wrote to standard output. */
static int end_output(void)
{
    if (fflush(stdout) == 0)
        return EXIT_DONE;
    complain("standard output cannot be written");
    return EXIT_FAILED;
}

static int command_version(void)
{
    const char *mmdb = mmdb_version(), *curl = http_library_version();
    printf("firstflight %s\n%s\nnDPI %s\nSQLite %s\nlibmaxminddb %s\nlibcurl %s\n",
           FIRSTFLIGHT_VERSION, capture_library_version(), label_library_version(),
           store_library_version(), mmdb == NULL ? "not built in" : mmdb,
           curl == NULL ? "not built in" : curl);
    for (unsigned i = 0; source_library_version(i) != NULL; i++)
        printf("%s\n", source_library_version(i));
    if (source_library_version(0) == NULL)
        printf("decompression not built in\n");
    return end_output();
}

/* Commands that read the database and write to standard output or the file of -o */

static enum status run_show(const struct command_line *line, struct database *database,
                            struct table_style style, FILE *out, struct text *error)
{
    struct show_options show = { .flow = line->words[0],
                                 .pcap = line->pcap,
                                 .ladder = { .width = style.width, .utf8 = style.utf8 } };
    if (line->format != NULL && !show_format_of(line->format, &show.format)) {
        text_addf(error, "no such format: %s; there are text, html and svg", line->format);
        return STATUS_USAGE;
    }
    return command_show(database, &show, out, error);
}

static enum status run_query(const struct command_line *line, struct database *database, FILE *out,
                             struct text *error)
{
    struct table_style style = { .width = terminal_width(out), .utf8 = is_utf8() };
    struct selection_options selection = {
        .where = line->where,
        .since = line->since,
        .until = line->until,
        .baseline = line->baseline,
        .by = line->by,
        .rules_file = line->rules,
    };
    if (line->command == COMMAND_SHOW)
        return run_show(line, database, style, out, error);
    if (line->format != NULL && !table_format_of(line->format, &style.format)) {
        text_addf(error,
                  "no such format: %s; there are table, csv, json, ndjson, markdown and html",
                  line->format);
        return STATUS_USAGE;
    }
    if (style.format == TABLE_HTML && line->command != COMMAND_REPORT) {
        text_add(error, "--format html is for report and show");
        return STATUS_USAGE;
    }
    switch (line->command) {
    case COMMAND_REPORT: {
        struct report_options report = { .name = line->word_count > 0 ? line->words[0] : NULL,
                                         .selection = selection,
                                         .style = style,
                                         .verbose = line->verbose };
        return command_report(database, &report, out, error);
    }
    case COMMAND_FLOWS: {
        struct flows_options flows = { .selection = selection,
                                       .community_id = line->community_id,
                                       .limit = line->limit,
                                       .style = style };
        return command_flows(database, &flows, out, error);
    }
    case COMMAND_SQL:
        return command_sql(database, line->words[0], style, out, error);
    case COMMAND_CAPTURES:
        return command_captures(database, style, out, error);
    case COMMAND_JUDGE:
        return command_check(database, style, out, error);
    case COMMAND_NONE:
    case COMMAND_SHOW:
    case COMMAND_INGEST:
    case COMMAND_DOCTOR:
    case COMMAND_SET_RULES:
    case COMMAND_MERGE:
    case COMMAND_SET_REGIONS:
    case COMMAND_FORGET:
    case COMMAND_EXPORT:
    case COMMAND_HELP:
    case COMMAND_VERSION:
        break;
    }
    return STATUS_USAGE;
}

/* Where results go: a file, or standard output when path is NULL. NULL: error says why. */
static FILE *open_results(const char *path, struct text *error)
{
    FILE *out = path == NULL ? stdout : fopen(path, "we");
    if (out == NULL)
        text_addf(error, "%s: cannot be written: %s", path, strerror(errno));
    return out;
}

/* Ends them; status is what it was unless what was written is lost. NULL is accepted. */
static enum status close_results(FILE *out, enum status status, struct text *error)
{
    if (out != NULL && fflush(out) != 0 && status == STATUS_OK) {
        text_addf(error, "results cannot be written: %s", strerror(errno));
        status = STATUS_IO;
    }
    if (out != NULL && out != stdout)
        fclose(out);
    return status;
}

/* Pages are UTF-8 wherever they are made; what may be shown is asked of the locale. */
static void prepare_locale(const struct command_line *line)
{
    if (line->format != NULL &&
        (strcmp(line->format, "html") == 0 || strcmp(line->format, "svg") == 0) && !is_utf8())
        setlocale(LC_CTYPE, "C.UTF-8");
}

static int command_query(const struct command_line *line)
{
    struct database *database = NULL;
    struct text error = { 0 };
    FILE *out = open_results(line->output, &error);
    enum status status = STATUS_IO;
    if (out != NULL) {
        prepare_locale(line);
        status = database_open(line->database, &database);
        if (status != STATUS_OK)
            text_add(&error, database == NULL ? "out of memory" : database_error(database));
        else
            status = run_query(line, database, out, &error);
    }
    status = close_results(out, status, &error);
    setlocale(LC_CTYPE, "");
    if (status != STATUS_OK)
        complain(text_string(&error));
    database_close(database);
    text_done(&error);
    if (status == STATUS_DAMAGED)
        return EXIT_DAMAGED;
    return status == STATUS_OK ? EXIT_DONE : status == STATUS_USAGE ? EXIT_USAGE : EXIT_FAILED;
}

static int exit_of_doctor(enum status status, const struct doctor_result *r)
{
    if (status == STATUS_USAGE)
        return EXIT_USAGE;
    if (status == STATUS_OK && r->is_interrupted)
        return EXIT_INTERRUPTED;
    if (status != STATUS_OK || r->files_read == 0)
        return EXIT_FAILED;
    return r->files_damaged > 0 || r->files_unreadable > 0 ? EXIT_DAMAGED : EXIT_DONE;
}

static int run_doctor(const struct command_line *line)
{
    struct doctor_result result = { 0 };
    struct text error = { 0 };
    FILE *out = open_results(line->output, &error);
    struct table_style style = { .utf8 = is_utf8() };
    enum status status = STATUS_IO;
    if (out != NULL && line->format != NULL &&
        (!table_format_of(line->format, &style.format) || style.format == TABLE_HTML)) {
        text_addf(&error, "no such format: %s; there are table, csv, json, ndjson and markdown",
                  line->format);
        status = STATUS_USAGE;
    } else if (out != NULL) {
        struct survey_watch watch = { .stop = &interrupted,
                                      .progress = progress_begin(terminal_of(line)) };
        style.width = terminal_width(out);
        confine_doctor(line);
        catch_interrupts();
        status = command_doctor(&line->ingest.inputs, line->ingest.filter, style, &watch, out,
                                &result, &error);
    }
    status = close_results(out, status, &error);
    if (status != STATUS_OK)
        complain(text_string(&error));
    else if (result.files_read == 0)
        complain("no captures found: name pcap or pcapng files, or directories that hold some");
    text_done(&error);
    return exit_of_doctor(status, &result);
}

static int exit_of_points(const struct worklist_result *r)
{
    if (r->points == 0)
        return EXIT_FAILED;
    return r->files_unreadable > 0 ? EXIT_DAMAGED : EXIT_DONE;
}

static void print_points(const struct command_line *line, const struct worklist_result *r,
                         const struct text *notes)
{
    if (!line->quiet)
        fprintf(stderr, "%s%zu file%s of %zu capture point%s listed in %s\n", text_string(notes),
                r->files, plural(r->files), r->points, plural(r->points), line->points);
    if (r->points == 0)
        complain("no captures found: name pcap or pcapng files, or directories that hold some");
}

static int run_points(const struct command_line *line)
{
    struct worklist_result result = { 0 };
    struct text notes = { 0 }, error = { 0 };
    FILE *out = open_results(line->output, &error);
    enum status status = STATUS_IO;
    if (out != NULL)
        status = worklist_write(&line->ingest.inputs, line->points, out, &result, &notes, &error);
    status = close_results(out, status, &error);
    if (status != STATUS_OK)
        complain(text_string(&error));
    else
        print_points(line, &result, &notes);
    text_done(&notes);
    text_done(&error);
    if (status != STATUS_OK)
        return status == STATUS_USAGE ? EXIT_USAGE : EXIT_FAILED;
    return exit_of_points(&result);
}

static int command_help(enum command command)
{
    fputs(cli_help(command), stdout);
    if (command == COMMAND_REPORT)
        for (size_t i = 0; report_name(i) != NULL; i++)
            printf("%s  %-12s %s\n", i == 0 ? "\n" : "", report_name(i), report_question(i));
    return end_output();
}

/* Judging again: changes rows, so it is no query */

static enum status write_changes(const struct command_line *line, const struct changes *changes,
                                 struct text *error)
{
    FILE *out = open_results(line->output, error);
    struct table_style style = { .utf8 = is_utf8() };
    if (out == NULL)
        return STATUS_IO;
    style.width = terminal_width(out);
    if (line->format != NULL)
        (void)table_format_of(line->format, &style.format);
    enum status status = STATUS_OK;
    if (changes->count > 0 || style.format != TABLE_ALIGNED)
        status = changes_write(changes, style, out);
    if (status != STATUS_OK)
        text_addf(error, "results cannot be written: %s", strerror(errno));
    return close_results(out, status, error);
}

static int command_judge(const struct command_line *line)
{
    struct changes changes = { 0 };
    struct text error = { 0 };
    enum table_format format;
    enum status status = STATUS_OK;
    if (line->format != NULL && (!table_format_of(line->format, &format) || format == TABLE_HTML)) {
        text_addf(&error, "no such format: %s; there are table, csv, json, ndjson and markdown",
                  line->format);
        status = STATUS_USAGE;
    }
    if (status == STATUS_OK)
        status = rejudge_all(line->database, line->ingest.memory_max / 2, &changes, &error);
    if (status == STATUS_OK)
        status = write_changes(line, &changes, &error);
    if (status != STATUS_OK)
        complain(text_string(&error));
    else if (!line->quiet)
        fprintf(stderr, "%llu flow%s judged again, %llu changed, %llu %s linked anew\n",
                (unsigned long long)changes.judged, plural(changes.judged),
                (unsigned long long)changes.flows, (unsigned long long)changes.retries,
                changes.retries == 1 ? "retry" : "retries");
    if (status == STATUS_OK && changes.unreadable > 0)
        fprintf(stderr, "firstflight: %llu flow%s left alone: facts cannot be read\n",
                (unsigned long long)changes.unreadable, plural(changes.unreadable));
    changes_done(&changes);
    text_done(&error);
    return status == STATUS_OK ? EXIT_DONE : status == STATUS_USAGE ? EXIT_USAGE : EXIT_FAILED;
}

static int command_set_rules(const struct command_line *line)
{
    struct rules rules = { 0 };
    struct text error = { 0 };
    struct store *store = NULL;
    enum status status = rules_read_file(&rules, line->rules, &error);
    if (status == STATUS_OK) {
        status = store_open(line->database, &store);
        if (status == STATUS_OK)
            status = store_set_rules(store, &rules);
        if (status != STATUS_OK)
            text_add(&error, store == NULL ? "out of memory" : store_error(store));
    }
    if (status != STATUS_OK)
        complain(error.len == 0 ? "out of memory" : text_string(&error));
    else if (!line->quiet)
        fprintf(stderr, "%zu rules in %s\n", rules.count, line->database);
    store_close(store);
    rules_done(&rules);
    text_done(&error);
    return status == STATUS_OK ? EXIT_DONE : EXIT_FAILED;
}

/* Merging: what lies in other databases, then verdicts of all */

/* Makes the database, its tables and indexes where they are missing. */
static enum status make_database(const char *path, struct text *error)
{
    struct store *store = NULL;
    enum status status = store_open(path, &store);
    if (status == STATUS_OK)
        status = store_begin(store);
    if (status == STATUS_OK)
        status = store_commit(store);
    if (status != STATUS_OK)
        text_add(error, store == NULL ? "out of memory" : store_error(store));
    store_close(store);
    return status;
}

static void print_merged(const char *path, const struct merge_counts *c)
{
    fprintf(stderr,
            "%s: %llu capture%s added, %llu known; %llu flow%s added, %llu renewed, %llu known\n",
            path, (unsigned long long)c->captures_added, plural(c->captures_added),
            (unsigned long long)c->captures_known, (unsigned long long)c->flows_added,
            plural(c->flows_added), (unsigned long long)c->flows_renewed,
            (unsigned long long)c->flows_known);
}

static int command_merge(const struct command_line *line)
{
    struct changes changes = { 0 };
    struct text error = { 0 };
    enum status status = make_database(line->database, &error);
    for (size_t i = 0; status == STATUS_OK && i < line->word_count; i++) {
        struct merge_counts counts;
        status = merge_database(line->database, line->words[i], &counts, &error);
        if (status == STATUS_OK && !line->quiet)
            print_merged(line->words[i], &counts);
    }
    if (status == STATUS_OK)
        status = rejudge_all(line->database, line->ingest.memory_max / 2, &changes, &error);
    if (status != STATUS_OK)
        complain(text_string(&error));
    else if (!line->quiet)
        fprintf(stderr, "%llu flow%s judged again, %llu changed\n",
                (unsigned long long)changes.judged, plural(changes.judged),
                (unsigned long long)changes.flows);
    changes_done(&changes);
    text_done(&error);
    return status == STATUS_OK ? EXIT_DONE : EXIT_FAILED;
}

static void say_regions(const struct set_regions_result *r, bool quiet)
{
    if (r->bad_lines > 0)
        fprintf(stderr, "firstflight: --clients: %zu line%s left out that could not be read\n",
                r->bad_lines, plural(r->bad_lines));
    if (quiet)
        return;
    fprintf(stderr, "%llu flow%s, %llu changed; %llu capture%s changed\n",
            (unsigned long long)r->flows, plural(r->flows), (unsigned long long)r->changed,
            (unsigned long long)r->captures_changed, plural(r->captures_changed));
    if (r->hidden > 0)
        fprintf(
            stderr,
            "%llu flows keep what they had: their client's address is not stored, or its network "
            "has several regions\n",
            (unsigned long long)r->hidden);
}

static int command_set_regions(const struct command_line *line)
{
    struct set_regions_result result;
    struct text error = { 0 };
    enum status status = set_regions(line->database, &line->ingest.places, &result, &error);
    if (status == STATUS_OK)
        say_regions(&result, line->quiet);
    else
        complain(text_string(&error));
    text_done(&error);
    return status == STATUS_OK ? EXIT_DONE : status == STATUS_USAGE ? EXIT_USAGE : EXIT_FAILED;
}

static int command_forget(const struct command_line *line)
{
    struct forget_options options = { line->database, line->before, line->ingest.inputs.site };
    struct forgotten forgotten;
    struct text error = { 0 };
    if ((options.before == NULL) == (options.site == NULL)) {
        complain("forget: say either --before T or --site NAME");
        return EXIT_USAGE;
    }
    enum status status = forget(&options, &forgotten, &error);
    if (status != STATUS_OK)
        complain(text_string(&error));
    else if (!line->quiet)
        fprintf(stderr,
                "%lld flow%s, %lld count%s of half-open flows and %lld server profile%s removed "
                "from %s; their captures stay known\n",
                (long long)forgotten.flows, plural((uint64_t)forgotten.flows),
                (long long)forgotten.half_opens, plural((uint64_t)forgotten.half_opens),
                (long long)forgotten.profiles, plural((uint64_t)forgotten.profiles),
                line->database);
    text_done(&error);
    return status == STATUS_OK ? EXIT_DONE : status == STATUS_USAGE ? EXIT_USAGE : EXIT_FAILED;
}

/* Export: whole tables to a file, a pipe or a server */

static void confine_export(const struct command_line *line)
{
    struct sandbox *sandbox = line->no_sandbox ? NULL : sandbox_prepare();
    if (sandbox == NULL)
        return;
    allow_directory_of(sandbox, line->database);
    sandbox_may_use_temporary_files(sandbox);
    if (line->url != NULL)
        sandbox_may_connect(sandbox);
    enter_sandbox(sandbox, true, line->verbose);
    sandbox_close(sandbox);
}

static void say_exported(const struct export_result *r, const struct clickhouse *server,
                         double seconds)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < r->table_count; i++) {
        const struct export_count *c = &r->tables[i];
        fprintf(stderr, "%s: %llu row%s, %llu byte%s", c->table, (unsigned long long)c->rows,
                plural(c->rows), (unsigned long long)c->bytes, plural(c->bytes));
        if (server != NULL)
            fprintf(stderr, ", %llu block%s acknowledged", (unsigned long long)c->blocks,
                    plural(c->blocks));
        fputc('\n', stderr);
        rows += c->rows;
    }
    fprintf(stderr, "%.1f s, %.0f rows/s\n", seconds, (double)rows / (seconds > 0 ? seconds : 1));
    if (server != NULL && clickhouse_retries(server) > 0) {
        struct text trouble = { 0 };
        text_addf(&trouble, "%llu time%s sent again; the last time because %s",
                  (unsigned long long)clickhouse_retries(server),
                  plural(clickhouse_retries(server)), clickhouse_last_trouble(server));
        complain(text_string(&trouble));
        text_done(&trouble);
    }
}

/* Fills in what the words of the command line mean. */
static enum status read_export(const struct command_line *line, struct export_options *ret_options,
                               struct text *error)
{
    *ret_options = (struct export_options){
        .table = line->table,
        .selection = { .where = line->where, .since = line->since, .until = line->until },
        .block_rows = line->block_rows,
        .interrupted = &interrupted,
    };
    bool to_terminal = line->url == NULL && line->output == NULL && isatty(STDOUT_FILENO);
    if (!export_format_of(line->to, &ret_options->format))
        text_addf(error, "no such format: %s; there are csv, ndjson and clickhouse", line->to);
    else if (line->url != NULL && ret_options->format != EXPORT_CLICKHOUSE)
        text_add(error, "--url is for --to clickhouse");
    else if (to_terminal && ret_options->format == EXPORT_CLICKHOUSE)
        text_add(error, "rows for ClickHouse are nothing for a terminal; say -o FILE or --url URL");
    return error->len == 0 ? STATUS_OK : STATUS_USAGE;
}

static enum status open_server(const struct command_line *line, struct clickhouse **ret_server,
                               struct text *error)
{
    struct clickhouse_options options = { .url = line->url,
                                          .user = getenv("CLICKHOUSE_USER"),
                                          .password = getenv("CLICKHOUSE_PASSWORD"),
                                          .retries = line->retries,
                                          .timeout_s = line->timeout_s,
                                          .interrupted = &interrupted };
    return line->url == NULL ? STATUS_OK : clickhouse_open(&options, ret_server, error);
}

static enum status run_export(const struct command_line *line, FILE *out, struct text *error)
{
    struct export_options options;
    struct export_result result = { 0 };
    struct database *database = NULL;
    struct clickhouse *server = NULL;
    struct progress progress = progress_begin(NULL); /* for the time alone */
    enum status status = read_export(line, &options, error);
    if (status == STATUS_OK)
        status = database_open(line->database, &database);
    if (status != STATUS_OK && error->len == 0 && database != NULL)
        text_add(error, database_error(database));
    if (status == STATUS_OK)
        status = open_server(line, &server, error);
    if (status == STATUS_OK) {
        options.server = server;
        confine_export(line);
        catch_interrupts();
        status = command_export(database, &options, out, &result, error);
        if (!line->quiet && status != STATUS_USAGE)
            say_exported(&result, server, progress_seconds(&progress));
    }
    clickhouse_close(server);
    database_close(database);
    return status;
}

static int command_export_to(const struct command_line *line)
{
    bool to_file = line->output != NULL && strcmp(line->output, "-") != 0;
    struct text error = { 0 };
    FILE *out = open_results(to_file ? line->output : NULL, &error);
    enum status status = out == NULL ? STATUS_IO : run_export(line, out, &error);
    status = close_results(out, status, &error);
    if (status != STATUS_OK && status != STATUS_END)
        complain(error.len == 0 ? "out of memory" : text_string(&error));
    text_done(&error);
    if (status == STATUS_END)
        return EXIT_INTERRUPTED;
    return status == STATUS_OK ? EXIT_DONE : status == STATUS_USAGE ? EXIT_USAGE : EXIT_FAILED;
}

int main(int argc, char **argv)
{
    char *client_files[CLIENT_FILES_MAX];
    struct command_line line;
    char error[512];
    setlocale(LC_CTYPE, "");
    if (cli_read(argc, argv, client_files, &line, error, sizeof error) != STATUS_OK) {
        complain(error);
        return EXIT_USAGE;
    }
    switch (line.command) {
    case COMMAND_INGEST:
        return command_ingest(&line);
    case COMMAND_REPORT:
    case COMMAND_FLOWS:
    case COMMAND_SHOW:
    case COMMAND_SQL:
    case COMMAND_CAPTURES:
        return command_query(&line);
    case COMMAND_DOCTOR:
        return line.points != NULL ? run_points(&line) : run_doctor(&line);
    case COMMAND_JUDGE:
        return line.check ? command_query(&line) : command_judge(&line);
    case COMMAND_SET_RULES:
        return command_set_rules(&line);
    case COMMAND_MERGE:
        return command_merge(&line);
    case COMMAND_SET_REGIONS:
        return command_set_regions(&line);
    case COMMAND_FORGET:
        return command_forget(&line);
    case COMMAND_EXPORT:
        return command_export_to(&line);
    case COMMAND_VERSION:
        return command_version();
    case COMMAND_HELP:
        return command_help(line.help_of);
    case COMMAND_NONE:
        break;
    }
    return EXIT_USAGE;
}
