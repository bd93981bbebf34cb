/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_H
#define CLI_H
/* The command line: words to options, and the help texts. Prints nothing. */
#include "ingest.h"

enum command {
    COMMAND_NONE,
    COMMAND_INGEST,
    COMMAND_REPORT,
    COMMAND_FLOWS,
    COMMAND_SHOW,
    COMMAND_SQL,
    COMMAND_CAPTURES,
    COMMAND_DOCTOR,
    COMMAND_JUDGE,
    COMMAND_SET_RULES,
    COMMAND_MERGE,
    COMMAND_SET_REGIONS,
    COMMAND_FORGET,
    COMMAND_EXPORT,
    COMMAND_HELP, /* of help_of */
    COMMAND_VERSION,
};

struct command_line {
    enum command command;
    const char *database; /* -d, default firstflight.db */
    bool quiet, verbose, no_sandbox;
    const char *format; /* --format; NULL = the command's default */
    const char *output; /* -o FILE; NULL = standard output */
    char **words;       /* what is no option: report name, flow, query */
    size_t word_count;
    struct ingest_options ingest;
    /* report and flows */
    const char *by, *where, *since, *until, *baseline, *community_id;
    int64_t limit;                          /* -1 = none given */
    bool check;                             /* of judge */
    const char *pcap;                       /* of show */
    const char *points;                     /* of doctor; NULL = none given */
    const char *rules;                      /* of report and set-rules; NULL = none given */
    const char *before;                     /* of forget */
    const char *to, *table, *url;           /* of export; NULL = none given */
    int64_t block_rows, retries, timeout_s; /* of export; -1 = none given */
    enum command help_of;                   /* COMMAND_NONE: of the program */
};

/* Room for repeated options; freed by nobody, since it points into argv. */
enum { CLIENT_FILES_MAX = 64 };

/*
 * Reads argv. STATUS_USAGE: ret_error says what is wrong and what to type instead. Strings in the
 * result point into argv; client_files is storage for repeated --clients.
 */
MUST_USE enum status cli_read(int argc, char **argv, char *client_files[CLIENT_FILES_MAX],
                              struct command_line *ret_line, char *ret_error, size_t error_size);

/* The help of a command, COMMAND_NONE for the program's. */
const char *cli_help(enum command command);

#endif
