/* SPDX-License-Identifier: Apache-2.0 */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char HELP[] =
    "usage: firstflight COMMAND [-d DB] [OPTION]...\n"
    "\n"
    "Reads packet captures and says, per TLS connection, which kind of handshake it was (full,\n"
    "resumed, 0-RTT) and how long the client waited from its first SYN to the first byte of the\n"
    "application's response. Results go into a SQLite file, one row per connection.\n"
    "\n"
    "  ingest PATH...     read captures (files, directories, - for standard input) into the "
    "database\n"
    "  report [NAME]      answer a question; without a name: latency by client region\n"
    "  flows              list connections\n"
    "  show FLOW          draw one connection: its records, times, and why each verdict is what it "
    "is\n"
    "  sql QUERY          run a query, read-only, with median() and percentile()\n"
    "  judge              verdicts again, by all that was learned since; --check: how good they "
    "are\n"
    "  set-regions        say anew from which regions clients came\n"
    "  set-rules          say for which server names early data may be used\n"
    "  merge DB...        bring databases that were made apart into one\n"
    "  doctor PATH...     what captures can and cannot tell, before they are read into a database\n"
    "  forget             remove old connections, or those of a site\n"
    "  captures           what is in the database: files, times, drops, damage\n"
    "  export             whole tables for other programs: CSV, NDJSON, ClickHouse\n"
    "\n"
    "  -d, --database DB  the database file (firstflight.db)\n"
    "  -q, --quiet        no notes and no progress on standard error\n"
    "  -v, --verbose      more of them\n"
    "  -h, --help         this text, or that of a command\n"
    "      --version      versions of firstflight and of the libraries in use\n"
    "\n"
    "Exit status: 0 done; 1 wrong usage; 2 failed; 3 done, but some input was damaged or "
    "unreadable;\n"
    "130 interrupted, after keeping what was complete.\n";

static const char HELP_INGEST[] =
    "usage: firstflight ingest [-d DB] [OPTION]... PATH...\n"
    "\n"
    "Reads pcap, pcapng and snoop files into the database, also compressed ones (gzip, zstd, lz4,\n"
    "xz, bzip2).\n"
    "Directories are read recursively; - is standard input. Files of one place (same directory, "
    "same\n"
    "name but for digits, same labels) are one capture point: they are put in order of time, and\n"
    "connections go on from one to the next, also in a later run. Reading a file again changes\n"
    "nothing; of a file that has grown only the rest is read.\n"
    "\n"
    "      --site NAME         labels of the capture point\n"
    "      --host NAME\n"
    "      --region NAME       also the region of clients that no --clients file knows\n"
    "      --labels PATTERN    labels from the path: '{region}/{site}/{host}/*'; other names "
    "become\n"
    "                          labels, too\n"
    "      --manifest FILE     labels from a CSV file with columns glob, site, host, region or "
    "others;\n"
    "                          the first line whose glob fits a path says its labels\n"
    "      --clients FILE      prefixes of clients: geofeed CSV (RFC 8805), CSV prefix,region, or\n"
    "                          .mmdb; may be given again, the first that knows an address answers\n"
    "      --mmdb-region PATH  where in .mmdb files the region stands, as continent.code; without, "
    "the\n"
    "                          subdivision, city or country\n"
    "      --sites FILE        regions of sites, CSV site,region: instead of --region for the "
    "captures\n"
    "                          of a site that it names\n"
    "      --local LIST|FILE   our own prefixes, to tell inbound connections from our own "
    "outbound\n"
    "      --keylog FILE       TLS secrets as SSLKEYLOGFILE makes programs write them: connections "
    "that\n"
    "                          they open are judged by what was said, not by lengths; may be "
    "given\n"
    "                          again. Secrets inside pcapng files are used without asking\n"
    "      --client-addr HOW   what is stored of clients' addresses: full (default), prefix (/24, "
    "/48),\n"
    "                          hash or none; the same for all of a database. Regions are found "
    "before\n"
    "      --sni HOW           what is stored of server names: full (default), hash or none\n"
    "      --hash-key FILE     key of the hashes; machines with the same key hash alike. Without, "
    "it is\n"
    "                          made beside the database (DB.key); keep it elsewhere\n"
    "      --filter EXPR       read only packets that match a pcap filter expression\n"
    "      --files-from FILE   more paths, one a line; - is standard input\n"
    "      --replace           what the database has of these capture points goes, and the named\n"
    "                          files take its place: for files that are older than what was read\n"
    "      --jobs N            capture points that are read at once; without, one for each CPU. "
    "What\n"
    "                          is written does not depend on it\n"
    "      --max-memory SIZE   for connections in progress and results, as 512M or 2G (1G)\n"
    "      --no-facts          keep no records: smaller, but show cannot draw the connections\n"
    "      --no-labels         do not ask nDPI for the application\n"
    "      --no-sandbox        keep all rights while captures are read; -v says what is given up\n"
    "  -d, --database DB       the database file (firstflight.db), made when it is not there\n"
    "  -q, --quiet             no notes and no progress\n"
    "\n"
    "Example: tcpdump writes edge/fra/*.pcap, edge/sin/*.pcap\n"
    "  firstflight ingest -d june.db --labels '{site}/*' edge/\n";

static const char HELP_REPORT[] =
    "usage: firstflight report [-d DB] [NAME] [OPTION]...\n"
    "\n"
    "Answers a question about the connections in the database: that of the report NAME (see "
    "below),\n"
    "without one regions.\n"
    "\n"
    "      --by COLUMN,...     group by these columns of table flow instead of client_region\n"
    "      --where SQL         only flows for which this is true, as \"sni = 'www.example.com'\"\n"
    "      --since T           only flows that began at T or later: ISO 8601 (UTC unless it has "
    "an\n"
    "      --until T           offset), epoch seconds, 14:00 on the day of the data, or -2h\n"
    "      --baseline FROM..TO of incident: compare with that time instead of the same length "
    "right\n"
    "                          before --since\n"
    "      --rules FILE        report policy: rules of this file instead of those of the database, "
    "see\n"
    "                          firstflight set-rules --help\n"
    "      --format FORMAT     table (default), csv, json, ndjson, markdown, or html: one page "
    "that\n"
    "                          any browser opens, without scripts\n"
    "  -o, --output FILE       write there instead of standard output\n"
    "  -d, --database DB       the database file (firstflight.db)\n";

static const char HELP_FLOWS[] =
    "usage: firstflight flows [-d DB] [OPTION]...\n"
    "\n"
    "Lists connections, oldest first.\n"
    "\n"
    "      --where SQL         only flows for which this is true, as \"early_data = 'rejected'\"\n"
    "      --since T, --until T\n"
    "                          only flows that began in that time: ISO 8601, epoch seconds, 14:00, "
    "-2h\n"
    "      --community-id ID   only flows with that Community ID\n"
    "      --limit N           at most N flows (20)\n"
    "      --format FORMAT     table (default), csv, json, ndjson or markdown\n"
    "  -o, --output FILE       write there instead of standard output\n"
    "  -d, --database DB       the database file (firstflight.db)\n";

static const char HELP_SHOW[] = "usage: firstflight show [-d DB] [OPTION]... FLOW\n"
                                "\n"
                                "Draws one connection: every TLS record with its time, side and "
                                "length, what it is taken for and\n"
                                "why. FLOW is a flow_id, a flow_uid or the first digits of one.\n"
                                "\n"
                                "      --format FORMAT     text (default), html: a page with the "
                                "drawing and a table, or svg: the\n"
                                "                          drawing alone\n"
                                "      --pcap FILE         write its packets there instead, out "
                                "of the captures they were read from\n"
                                "  -o, --output FILE       write there instead of standard output\n"
                                "  -d, --database DB       the database file (firstflight.db)\n";

static const char HELP_SQL[] =
    "usage: firstflight sql [-d DB] [OPTION]... QUERY\n"
    "\n"
    "Runs one SQL query, read-only. Beside SQLite's own functions there are median(x),\n"
    "percentile(x, p) with p from 0 to 100, percentile_cont(x, f) and percentile_disc(x, f) with "
    "f\n"
    "from 0 to 1. Tables and views are explained in schema/README.md.\n"
    "\n"
    "      --format FORMAT     table (default), csv, json, ndjson or markdown\n"
    "  -o, --output FILE       write there instead of standard output\n"
    "  -d, --database DB       the database file (firstflight.db)\n"
    "\n"
    "Example:\n"
    "  firstflight sql \"SELECT handshake, count(*), median(perceived_ns) / 1e6 FROM flow GROUP BY "
    "1\"\n";

static const char HELP_JUDGE[] =
    "usage: firstflight judge [-d DB] [OPTION]...\n"
    "\n"
    "Judges all connections again from what was kept of them, without the captures: by what was\n"
    "learned of their servers since they were read, and by the rules of this version. Says which\n"
    "columns changed in how many connections. The outcome is that of reading all captures at "
    "once.\n"
    "\n"
    "      --check             change nothing; judge the connections that were decrypted (ingest\n"
    "                          --keylog) as if there were no keys, and count where that is wrong\n"
    "      --format FORMAT     table (default), csv, json, ndjson or markdown\n"
    "      --max-memory SIZE   for facts that wait to be judged, as 512M or 2G (1G)\n"
    "  -o, --output FILE       write there instead of standard output\n"
    "  -d, --database DB       the database file (firstflight.db)\n";

static const char HELP_SET_RULES[] =
    "usage: firstflight set-rules [-d DB] --rules FILE\n"
    "\n"
    "Replaces the rules of the database that say for which server names early data may be used; a\n"
    "new database begins with a starter set of names that look like logins, payments and the "
    "like.\n"
    "report policy holds the connections against them. A database that is not there is made.\n"
    "\n"
    "      --rules FILE        one rule a line: pattern,yes|no,comment, as\n"
    "                          \"login.*,no,a replay may log in again\"; in a pattern * is any "
    "text\n"
    "                          and ? any character; of the patterns that fit a name the longest\n"
    "                          decides. A file without rules takes all rules away\n"
    "  -d, --database DB       the database file (firstflight.db)\n"
    "  -q, --quiet             no notes\n";

static const char HELP_MERGE[] =
    "usage: firstflight merge [-d DB] [OPTION]... DB...\n"
    "\n"
    "Adds to the database of -d, made when it is not there, what other databases hold, in any "
    "order "
    "and\n"
    "however often, and judges all connections again: the outcome is that of one ingest of "
    "everything.\n"
    "So captures can be read where they lie, each capture point by itself. A connection that two\n"
    "databases know to different ends is taken from the one that saw more of it.\n"
    "\n"
    "      --max-memory SIZE   for facts that wait to be judged, as 512M or 2G (1G)\n"
    "  -d, --database DB       the database file (firstflight.db)\n"
    "  -q, --quiet             no summary\n"
    "\n"
    "Example:\n"
    "  firstflight merge -d june.db sites/*.db\n";

static const char HELP_FORGET[] =
    "usage: firstflight forget [-d DB] --before T | --site NAME\n"
    "\n"
    "Removes connections from the database for good, with all that was kept of them, and makes "
    "the\n"
    "file smaller. The captures they came from stay known: ingesting them again adds nothing.\n"
    "\n"
    "      --before T          connections whose last packet is older: ISO 8601 (UTC unless it "
    "has\n"
    "                          an offset), epoch seconds, or -30d, counted from the end of the "
    "data\n"
    "      --site NAME         all connections of that site\n"
    "  -d, --database DB       the database file (firstflight.db)\n"
    "  -q, --quiet             do not say what was removed\n";

static const char HELP_CAPTURES[] =
    "usage: firstflight captures [-d DB] [OPTION]...\n"
    "\n"
    "Lists the capture files in the database by capture point: times, packets, what was not used "
    "of\n"
    "them and why, what was damaged, and how far the clocks of points that saw the same\n"
    "connections are apart (in csv and json: see the view point_clock).\n"
    "\n"
    "      --format FORMAT     table (default), csv, json, ndjson or markdown\n"
    "  -o, --output FILE       write there instead of standard output\n"
    "  -d, --database DB       the database file (firstflight.db)\n";

static const char HELP_DOCTOR[] =
    "usage: firstflight doctor [OPTION]... PATH...\n"
    "\n"
    "Looks at the beginning of captures and says, for each capture point, what can be measured "
    "there\n"
    "and what not, why (snaplen, one direction, missing SYNs, losses, clock, copies, damage), and "
    "how\n"
    "tcpdump would have captured more. Needs no database.\n"
    "\n"
    "      --filter EXPR       look only at packets that match a pcap filter expression\n"
    "      --files-from FILE   more paths, one a line; - is standard input\n"
    "      --points DIR        only see which files are of one capture point: write for each point "
    "a\n"
    "                          list of them into DIR, for ingest --files-from, anywhere, and print "
    "the\n"
    "                          names of the lists, the largest first\n"
    "      --no-sandbox        keep all rights while captures are read; -v says what is given up\n"
    "      --format FORMAT     table (a page, default), or csv or json: a row for each statement\n"
    "  -o, --output FILE       write there instead of standard output\n";

static const char HELP_SET_REGIONS[] =
    "usage: firstflight set-regions [-d DB] [--clients FILE]... [--sites FILE]\n"
    "\n"
    "Sets the regions of all connections and captures in the database again, without the "
    "captures,\n"
    "and says how many changed. Connections whose client's address was not stored (ingest\n"
    "--client-addr) keep what --clients once said of them, and are counted.\n"
    "\n"
    "      --clients FILE      prefixes of clients: geofeed CSV (RFC 8805), CSV prefix,region, or\n"
    "                          .mmdb; may be given again, the first that knows an address "
    "answers.\n"
    "                          Without, only regions by site change\n"
    "      --mmdb-region PATH  where in .mmdb files the region stands, as continent.code\n"
    "      --sites FILE        regions of sites, CSV site,region\n"
    "  -d, --database DB       the database file (firstflight.db)\n"
    "  -q, --quiet             do not say it\n";

static const char HELP_EXPORT[] =
    "usage: firstflight export [-d DB] --to csv|ndjson|clickhouse [OPTION]...\n"
    "\n"
    "Writes all columns of table flow, with what their captures say of each, in memory that does "
    "not\n"
    "grow with the number of rows. clickhouse is the row format of ClickHouse, for its tables of\n"
    "schema/clickhouse: into a file or pipe, which begins with the INSERT that it is for, or to a\n"
    "server. Rows that a server has already are replaced there, so an export that broke is "
    "repeated.\n"
    "\n"
    "      --to FORMAT         csv, ndjson or clickhouse\n"
    "      --table TABLE       that one instead: flow, capture, drop_count, half_open or\n"
    "                          early_data_rule; a server gets all but the last without asking\n"
    "      --where SQL         only flows for which this is true\n"
    "      --since T, --until T\n"
    "                          only flows that began in that time, as of report\n"
    "      --url URL           send to the HTTP interface of ClickHouse, as\n"
    "                          http://127.0.0.1:8123/?database=firstflight, or @FILE: the URL is\n"
    "                          the first line of FILE. User and password: CLICKHOUSE_USER and\n"
    "                          CLICKHOUSE_PASSWORD, or in the URL of a file\n"
    "      --block-rows N      rows sent at once (65536)\n"
    "      --retries N         tries again of a block, with longer and longer pauses (6)\n"
    "      --timeout SECONDS   for a block to be acknowledged (600)\n"
    "      --no-sandbox        keep all rights; -v says what is given up\n"
    "  -o, --output FILE       write there instead of standard output, which - is too\n"
    "  -d, --database DB       the database file (firstflight.db)\n"
    "  -q, --quiet             do not say what was written\n"
    "\n"
    "Example:\n"
    "  firstflight export --to clickhouse -o - | (read -r i; clickhouse-client -d firstflight "
    "--query \"$i\")\n";

enum option_code {
    OPTION_SITE = 256,
    OPTION_HOST,
    OPTION_REGION,
    OPTION_LABELS,
    OPTION_MANIFEST,
    OPTION_CLIENTS,
    OPTION_MMDB_REGION,
    OPTION_SITES,
    OPTION_LOCAL,
    OPTION_KEYLOG,
    OPTION_CLIENT_ADDR,
    OPTION_SNI,
    OPTION_HASH_KEY,
    OPTION_FILTER,
    OPTION_FILES_FROM,
    OPTION_REPLACE,
    OPTION_BEFORE,
    OPTION_JOBS,
    OPTION_MAX_MEMORY,
    OPTION_NO_FACTS,
    OPTION_NO_LABELS,
    OPTION_NO_SANDBOX,
    OPTION_BY,
    OPTION_WHERE,
    OPTION_SINCE,
    OPTION_UNTIL,
    OPTION_BASELINE,
    OPTION_FORMAT,
    OPTION_COMMUNITY_ID,
    OPTION_LIMIT,
    OPTION_CHECK,
    OPTION_PCAP,
    OPTION_POINTS,
    OPTION_RULES,
    OPTION_TO,
    OPTION_TABLE,
    OPTION_URL,
    OPTION_BLOCK_ROWS,
    OPTION_RETRIES,
    OPTION_TIMEOUT,
    OPTION_VERSION,
};

static const struct option OPTIONS[] = {
    { "site", required_argument, NULL, OPTION_SITE },
    { "host", required_argument, NULL, OPTION_HOST },
    { "region", required_argument, NULL, OPTION_REGION },
    { "labels", required_argument, NULL, OPTION_LABELS },
    { "manifest", required_argument, NULL, OPTION_MANIFEST },
    { "clients", required_argument, NULL, OPTION_CLIENTS },
    { "mmdb-region", required_argument, NULL, OPTION_MMDB_REGION },
    { "sites", required_argument, NULL, OPTION_SITES },
    { "local", required_argument, NULL, OPTION_LOCAL },
    { "keylog", required_argument, NULL, OPTION_KEYLOG },
    { "client-addr", required_argument, NULL, OPTION_CLIENT_ADDR },
    { "sni", required_argument, NULL, OPTION_SNI },
    { "hash-key", required_argument, NULL, OPTION_HASH_KEY },
    { "filter", required_argument, NULL, OPTION_FILTER },
    { "files-from", required_argument, NULL, OPTION_FILES_FROM },
    { "replace", no_argument, NULL, OPTION_REPLACE },
    { "before", required_argument, NULL, OPTION_BEFORE },
    { "jobs", required_argument, NULL, OPTION_JOBS },
    { "max-memory", required_argument, NULL, OPTION_MAX_MEMORY },
    { "no-facts", no_argument, NULL, OPTION_NO_FACTS },
    { "no-labels", no_argument, NULL, OPTION_NO_LABELS },
    { "no-sandbox", no_argument, NULL, OPTION_NO_SANDBOX },
    { "by", required_argument, NULL, OPTION_BY },
    { "where", required_argument, NULL, OPTION_WHERE },
    { "since", required_argument, NULL, OPTION_SINCE },
    { "until", required_argument, NULL, OPTION_UNTIL },
    { "baseline", required_argument, NULL, OPTION_BASELINE },
    { "format", required_argument, NULL, OPTION_FORMAT },
    { "community-id", required_argument, NULL, OPTION_COMMUNITY_ID },
    { "limit", required_argument, NULL, OPTION_LIMIT },
    { "check", no_argument, NULL, OPTION_CHECK },
    { "pcap", required_argument, NULL, OPTION_PCAP },
    { "points", required_argument, NULL, OPTION_POINTS },
    { "rules", required_argument, NULL, OPTION_RULES },
    { "to", required_argument, NULL, OPTION_TO },
    { "table", required_argument, NULL, OPTION_TABLE },
    { "url", required_argument, NULL, OPTION_URL },
    { "block-rows", required_argument, NULL, OPTION_BLOCK_ROWS },
    { "retries", required_argument, NULL, OPTION_RETRIES },
    { "timeout", required_argument, NULL, OPTION_TIMEOUT },
    { "database", required_argument, NULL, 'd' },
    { "output", required_argument, NULL, 'o' },
    { "quiet", no_argument, NULL, 'q' },
    { "verbose", no_argument, NULL, 'v' },
    { "help", no_argument, NULL, 'h' },
    { "version", no_argument, NULL, OPTION_VERSION },
    { 0 },
};

/* The options that each command takes beside -d, -q, -v, -h; 0 ends a list. */
static const struct {
    const char *name;
    enum command command;
    const char *help;
    size_t words_min, words_max;
    const char *words_wanted;
    int options[24];
} COMMANDS[] = {
    { "ingest",
      COMMAND_INGEST,
      HELP_INGEST,
      0,
      SIZE_MAX,
      "paths of captures",
      { OPTION_SITE,     OPTION_HOST,       OPTION_REGION,      OPTION_LABELS,
        OPTION_MANIFEST, OPTION_CLIENTS,    OPTION_LOCAL,       OPTION_KEYLOG,
        OPTION_FILTER,   OPTION_FILES_FROM, OPTION_REPLACE,     OPTION_MAX_MEMORY,
        OPTION_NO_FACTS, OPTION_NO_LABELS,  OPTION_NO_SANDBOX,  OPTION_CLIENT_ADDR,
        OPTION_SNI,      OPTION_HASH_KEY,   OPTION_MMDB_REGION, OPTION_SITES,
        OPTION_JOBS } },
    { "report",
      COMMAND_REPORT,
      HELP_REPORT,
      0,
      1,
      "one name of a report",
      { OPTION_BY, OPTION_WHERE, OPTION_SINCE, OPTION_UNTIL, OPTION_BASELINE, OPTION_RULES,
        OPTION_FORMAT, 'o' } },
    { "flows",
      COMMAND_FLOWS,
      HELP_FLOWS,
      0,
      0,
      "options only",
      { OPTION_WHERE, OPTION_SINCE, OPTION_UNTIL, OPTION_COMMUNITY_ID, OPTION_LIMIT, OPTION_FORMAT,
        'o' } },
    { "show",
      COMMAND_SHOW,
      HELP_SHOW,
      1,
      1,
      "one flow: its flow_id or flow_uid",
      { OPTION_FORMAT, OPTION_PCAP, 'o' } },
    { "sql", COMMAND_SQL, HELP_SQL, 1, 1, "one query, in quotes", { OPTION_FORMAT, 'o' } },
    { "judge",
      COMMAND_JUDGE,
      HELP_JUDGE,
      0,
      0,
      "options only",
      { OPTION_CHECK, OPTION_FORMAT, OPTION_MAX_MEMORY, 'o' } },
    { "set-rules", COMMAND_SET_RULES, HELP_SET_RULES, 0, 0, "options only", { OPTION_RULES } },
    { "merge", COMMAND_MERGE, HELP_MERGE, 1, SIZE_MAX, "databases to add", { OPTION_MAX_MEMORY } },
    { "set-regions",
      COMMAND_SET_REGIONS,
      HELP_SET_REGIONS,
      0,
      0,
      "options only",
      { OPTION_CLIENTS, OPTION_MMDB_REGION, OPTION_SITES } },
    { "doctor",
      COMMAND_DOCTOR,
      HELP_DOCTOR,
      0,
      SIZE_MAX,
      "paths of captures",
      { OPTION_FILTER, OPTION_FILES_FROM, OPTION_POINTS, OPTION_NO_SANDBOX, OPTION_FORMAT, 'o' } },
    { "forget", COMMAND_FORGET, HELP_FORGET, 0, 0, "options only", { OPTION_BEFORE, OPTION_SITE } },
    { "export",
      COMMAND_EXPORT,
      HELP_EXPORT,
      0,
      0,
      "options only",
      { OPTION_TO, OPTION_TABLE, OPTION_WHERE, OPTION_SINCE, OPTION_UNTIL, OPTION_URL,
        OPTION_BLOCK_ROWS, OPTION_RETRIES, OPTION_TIMEOUT, OPTION_NO_SANDBOX, 'o' } },
    { "captures", COMMAND_CAPTURES, HELP_CAPTURES, 0, 0, "options only", { OPTION_FORMAT, 'o' } },
};
enum { COMMAND_KINDS = sizeof COMMANDS / sizeof COMMANDS[0] };

const char *cli_help(enum command command)
{
    for (size_t i = 0; i < COMMAND_KINDS; i++)
        if (COMMANDS[i].command == command)
            return COMMANDS[i].help;
    return HELP;
}

/* Digits alone: no sign, no unit. */
static bool read_count(const char *text, int64_t *ret_count)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (errno != 0 || *text < '0' || *text > '9' || *end != '\0')
        return false;
    *ret_count = n;
    return true;
}

/* From 1 to JOBS_MAX. */
static bool read_jobs(const char *text, unsigned *ret_jobs)
{
    int64_t n;
    if (!read_count(text, &n) || n < 1 || n > JOBS_MAX)
        return false;
    *ret_jobs = (unsigned)n;
    return true;
}

/* "512M", "2G", "100000"; false when it is no size. */
static bool read_size(const char *text, size_t *ret_size)
{
    char *end;
    errno = 0;
    unsigned long long n = strtoull(text, &end, 10);
    unsigned shift = 0;
    switch (*end) {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    case 't':
    case 'T':
        shift = 40;
        break;
    default:
        break;
    }
    end += shift > 0;
    if (errno != 0 || text[0] < '0' || text[0] > '9' || *end != '\0' || n > SIZE_MAX >> shift)
        return false;
    *ret_size = (size_t)n << shift;
    return true;
}

static bool takes_option(size_t kind, int option)
{
    if (option == 'd' || option == 'q' || option == 'v' || option == 'h')
        return true;
    for (size_t i = 0; i < sizeof COMMANDS[kind].options / sizeof(int); i++)
        if (COMMANDS[kind].options[i] == option)
            return true;
    return false;
}

static bool add_client_file(struct place_options *o, char *path)
{
    if (o->client_file_count == CLIENT_FILES_MAX)
        return false;
    o->client_files[o->client_file_count++] = path;
    return true;
}

static bool add_keylog_file(struct ingest_options *o, const char *path)
{
    if (o->keylog_file_count == KEYLOG_FILES_MAX)
        return false;
    o->keylog_files[o->keylog_file_count++] = path;
    return true;
}

enum { TIMEOUT_MAX_S = 7 * 86400 };

/* Takes one option; false when its value is wrong. */
static bool take_option(struct command_line *line, int option, char *value)
{
    struct ingest_options *in = &line->ingest;
    switch (option) {
    case 'd':
        line->database = value;
        return true;
    case 'o':
        line->output = value;
        return true;
    case 'q':
        line->quiet = true;
        return true;
    case 'v':
        line->verbose = true;
        return true;
    case OPTION_SITE:
        in->inputs.site = value;
        return true;
    case OPTION_HOST:
        in->inputs.host = value;
        return true;
    case OPTION_REGION:
        in->inputs.region = value;
        return true;
    case OPTION_LABELS:
        in->inputs.label_pattern = value;
        return true;
    case OPTION_MANIFEST:
        in->inputs.manifest = value;
        return true;
    case OPTION_CLIENTS:
        return add_client_file(&in->places, value);
    case OPTION_MMDB_REGION:
        in->places.mmdb_region = value;
        return true;
    case OPTION_SITES:
        in->places.sites = value;
        return true;
    case OPTION_LOCAL:
        in->local = value;
        return true;
    case OPTION_KEYLOG:
        return add_keylog_file(in, value);
    case OPTION_CLIENT_ADDR:
        in->privacy.client_addr = value;
        return true;
    case OPTION_SNI:
        in->privacy.sni = value;
        return true;
    case OPTION_HASH_KEY:
        in->privacy.hash_key = value;
        return true;
    case OPTION_FILTER:
        in->filter = value;
        return true;
    case OPTION_FILES_FROM:
        in->inputs.files_from = value;
        return true;
    case OPTION_REPLACE:
        in->replace = true;
        return true;
    case OPTION_BEFORE:
        line->before = value;
        return true;
    case OPTION_JOBS:
        return read_jobs(value, &in->jobs);
    case OPTION_MAX_MEMORY:
        return read_size(value, &in->memory_max) && in->memory_max >= 1 << 20;
    case OPTION_NO_FACTS:
        in->no_facts = true;
        return true;
    case OPTION_NO_LABELS:
        in->no_labels = true;
        return true;
    case OPTION_NO_SANDBOX:
        line->no_sandbox = true;
        return true;
    case OPTION_BY:
        line->by = value;
        return true;
    case OPTION_WHERE:
        line->where = value;
        return true;
    case OPTION_SINCE:
        line->since = value;
        return true;
    case OPTION_UNTIL:
        line->until = value;
        return true;
    case OPTION_BASELINE:
        line->baseline = value;
        return true;
    case OPTION_FORMAT:
        line->format = value;
        return true;
    case OPTION_COMMUNITY_ID:
        line->community_id = value;
        return true;
    case OPTION_LIMIT:
        return read_count(value, &line->limit);
    case OPTION_CHECK:
        line->check = true;
        return true;
    case OPTION_PCAP:
        line->pcap = value;
        return true;
    case OPTION_POINTS:
        line->points = value;
        return true;
    case OPTION_RULES:
        line->rules = value;
        return true;
    case OPTION_TO:
        line->to = value;
        return true;
    case OPTION_TABLE:
        line->table = value;
        return true;
    case OPTION_URL:
        line->url = value;
        return true;
    case OPTION_BLOCK_ROWS:
        return read_count(value, &line->block_rows) && line->block_rows > 0;
    case OPTION_RETRIES:
        return read_count(value, &line->retries);
    case OPTION_TIMEOUT:
        return read_count(value, &line->timeout_s) && line->timeout_s > 0 &&
               line->timeout_s <= TIMEOUT_MAX_S;
    default:
        return false;
    }
}

static const char *option_name(int option)
{
    for (size_t i = 0; OPTIONS[i].name != NULL; i++)
        if (OPTIONS[i].val == option)
            return OPTIONS[i].name;
    return "?";
}

static enum status wrong(char *error, size_t size, const char *what, const char *about,
                         const char *command)
{
    snprintf(error, size, "%s%s%s; see firstflight %s%s--help", what, about[0] != '\0' ? ": " : "",
             about, command, command[0] != '\0' ? " " : "");
    return STATUS_USAGE;
}

/* `option` is what getopt_long() returned for `word`, which holds one the command does not take. */
static enum status refuse_option(char *error, size_t size, int option, const char *word,
                                 const char *command)
{
    char name[64];
    if (option != '?')
        snprintf(name, sizeof name, "--%s", option_name(option));
    else if (optopt > 0 && optopt < OPTION_SITE)
        snprintf(name, sizeof name, "-%c", optopt);
    else
        snprintf(name, sizeof name, "%s", word);
    return wrong(error, size, "no such option here", name, command);
}

static enum status refuse_value(char *error, size_t size, int option, const char *value,
                                const char *command)
{
    char what[64];
    snprintf(what, sizeof what, "no value for --%s", option_name(option));
    return wrong(error, size, what, value, command);
}

static bool find_command(const char *word, size_t *ret_kind)
{
    for (size_t i = 0; i < COMMAND_KINDS; i++)
        if (strcmp(word, COMMANDS[i].name) == 0) {
            *ret_kind = i;
            return true;
        }
    return false;
}

/*
 * A query may begin with a comment, which looks like an option. It says nothing to SQLite, so the
 * query may as well begin behind it.
 */
static void skip_comments(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        for (char *end; strncmp(argv[i], "--", 2) == 0 && (end = strchr(argv[i], '\n')) != NULL;)
            argv[i] = end + 1;
}

static enum status read_options(int argc, char **argv, size_t kind, struct command_line *line,
                                char *error, size_t size)
{
    const char *name = COMMANDS[kind].name;
    int option;
    opterr = 0;
    optind = 1;
    if (line->command == COMMAND_SQL)
        skip_comments(argc, argv);
    while ((option = getopt_long(argc, argv, ":d:o:qvh", OPTIONS, NULL)) != -1) {
        if (option == ':')
            return wrong(error, size, "value missing behind", argv[optind - 1], name);
        if (option == '?' || !takes_option(kind, option))
            return refuse_option(error, size, option, argv[optind - 1], name);
        if (option == 'h') {
            line->help_of = line->command;
            line->command = COMMAND_HELP;
            return STATUS_OK;
        }
        if (!take_option(line, option, optarg))
            return refuse_value(error, size, option, optarg, name);
    }
    line->words = argv + optind;
    line->word_count = (size_t)(argc - optind);
    if (line->word_count < COMMANDS[kind].words_min || line->word_count > COMMANDS[kind].words_max)
        return wrong(error, size, "this command takes", COMMANDS[kind].words_wanted, name);
    if (line->command == COMMAND_EXPORT && line->to == NULL)
        return wrong(error, size, "no format", "say --to csv, ndjson or clickhouse", name);
    if (line->command == COMMAND_EXPORT && line->url != NULL && line->output != NULL)
        return wrong(error, size, "rows go to one place", "either --url or -o", name);
    if (line->command == COMMAND_SET_RULES && line->rules == NULL)
        return wrong(error, size, "nothing to set", "name a file with --rules", name);
    if (line->points != NULL && (line->ingest.filter != NULL || line->format != NULL))
        return wrong(error, size, "--points writes lists of whole files", "no filter, no format",
                     name);
    if (line->command == COMMAND_INGEST || line->command == COMMAND_DOCTOR) {
        if (line->word_count == 0 && line->ingest.inputs.files_from == NULL)
            return wrong(error, size, "nothing to read", "name files or directories, or -", name);
        line->ingest.inputs.paths = line->words;
        line->ingest.inputs.path_count = line->word_count;
        line->ingest.database = line->database;
    }
    return STATUS_OK;
}

enum status cli_read(int argc, char **argv, char *client_files[CLIENT_FILES_MAX],
                     struct command_line *ret_line, char *ret_error, size_t error_size)
{
    *ret_line = (struct command_line){
        .database = "firstflight.db",
        .limit = -1,
        .block_rows = -1,
        .retries = -1,
        .timeout_s = -1,
        .ingest = { .memory_max = (size_t)1 << 30, .places.client_files = client_files },
    };
    const char *word = argc > 1 ? argv[1] : "";
    if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "help") == 0) {
        ret_line->command = COMMAND_HELP;
        return STATUS_OK;
    }
    if (strcmp(word, "--version") == 0) {
        ret_line->command = COMMAND_VERSION;
        return STATUS_OK;
    }
    size_t kind;
    if (argc < 2)
        return wrong(ret_error, error_size, "no command", "", "");
    if (!find_command(word, &kind))
        return wrong(ret_error, error_size, "no such command", word, "");
    ret_line->command = COMMANDS[kind].command;
    return read_options(argc - 1, argv + 1, kind, ret_line, ret_error, error_size);
}
