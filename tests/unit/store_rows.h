/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_ROWS_H
#define STORE_ROWS_H
/* Rows for tests of the database: what is always known is set, the rest is NULL. */
#include "flow_row.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static inline struct row_integer integer(int64_t value)
{
    return (struct row_integer){ true, value };
}

static inline struct row_text text(const char *string)
{
    return (struct row_text){ .at = string, .len = strlen(string) };
}

static inline struct capture_row sample_capture(const char *content_hash)
{
    return (struct capture_row){
        .path = text("edge/a.pcap"),
        .point = text("edge/a"),
        .content_hash = text(content_hash),
        .content_len = integer(1000),
        .file_size = integer(1000),
        .format = text("pcap"),
        .link_types = text("EN10MB"),
        .packets = integer(10),
        .bytes = integer(900),
        .ingested_at = text("2026-06-02T14:03:11Z"),
        .program_version = text("0.1.0"),
    };
}

enum { UID_SIZE = 33 };

static inline const char *uid_text(unsigned number, char buffer[UID_SIZE])
{
    (void)snprintf(buffer, UID_SIZE, "%032x", number);
    return buffer;
}

static inline struct flow_row sample_flow(int64_t capture_id, const char *uid)
{
    return (struct flow_row){
        .flow_uid = text(uid),
        .capture_id = integer(capture_id),
        .first_packet_no = integer(1),
        .transport = text("tcp"),
        .ip_version = integer(4),
        .client_port = integer(51822),
        .server_ip = text("192.0.2.10"),
        .server_port = integer(443),
        .client_basis = text("syn"),
        .leg = text("inbound"),
        .continues = integer(0),
        .syn_seen = integer(1),
        .syn_count = integer(1),
        .syn_ack_count = integer(1),
        .sides_seen = text("both"),
        .client_packets = integer(9),
        .server_packets = integer(8),
        .client_bytes = integer(2000),
        .server_bytes = integer(5000),
        .client_retransmits = integer(0),
        .server_retransmits = integer(0),
        .client_gap_bytes = integer(0),
        .server_gap_bytes = integer(0),
        .client_boundary_losses = integer(0),
        .server_boundary_losses = integer(0),
        .duplicates = integer(0),
        .truncated = integer(0),
        .clock_step = integer(0),
        .fast_open = integer(0),
        .ended = text("fin"),
        .handshake = text("full"),
        .outcome = text("completed"),
        .resumption_offered = integer(0),
        .start_epoch_ns = integer(1780408991204518000),
        .end_at_ns = integer(0),
    };
}

/* A new directory under the system's one for temporary files; a path in it. */
static inline const char *path_in(const char *directory, const char *name, char buffer[128])
{
    (void)snprintf(buffer, 128, "%s/%s", directory, name);
    return buffer;
}

static inline const char *make_directory(char buffer[64])
{
    (void)snprintf(buffer, 64, "/tmp/firstflight-test-XXXXXX");
    return mkdtemp(buffer);
}

/* Removes a directory of files. */
static inline void remove_directory(const char *directory)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", directory);
    if (system(command) != 0)
        abort();
}

/* The first value that SQL gives, by a connection of its own; "" when it gives none. */
static inline const char *ask_file(const char *path, const char *sql, char buffer[256])
{
    sqlite3 *db = NULL;
    sqlite3_stmt *statement = NULL;
    buffer[0] = '\0';
    if (sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK ||
        sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK ||
        sqlite3_step(statement) != SQLITE_ROW)
        (void)snprintf(buffer, 256, "%s", sqlite3_errmsg(db));
    else if (sqlite3_column_type(statement, 0) != SQLITE_NULL)
        (void)snprintf(buffer, 256, "%s", (const char *)sqlite3_column_text(statement, 0));
    else
        (void)snprintf(buffer, 256, "NULL");
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return buffer;
}

#endif
