/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SANDBOX_H
#define SANDBOX_H
/*
 * Captures are made by strangers, and who reads them is often root. Once inputs and database are
 * open the program gives up what it needs no more: Landlock leaves it the named files alone,
 * seccomp takes away system calls that start programs, reach the network or look into other
 * processes, and privileges are dropped but for those of reading files of others. It works without
 * where the kernel or the build has none of it.
 *
 * One process, not two: what reads captures makes the rows, so a broken parser could forge rows
 * whatever the other side of a pipe checked, and the database is the only thing that it can write.
 */
#include "status.h"
#include "text.h"

#include <stdbool.h>

struct sandbox;

/* Nothing is in force before sandbox_enter(). NULL without memory. */
struct sandbox *sandbox_prepare(void);
void sandbox_close(struct sandbox *s); /* NULL is accepted */

/* A file, or everything below a directory, may be read. A path that is not there is left out. */
void sandbox_may_read(struct sandbox *s, const char *path);

/* Files in a directory may be made, read, written and removed; not in those below it. */
void sandbox_may_write_in(struct sandbox *s, const char *directory);

/* The directories that temporary files go to: $SQLITE_TMPDIR, $TMPDIR, /var/tmp, /tmp. */
void sandbox_may_use_temporary_files(struct sandbox *s);

/* Servers may be reached over IPv4 and IPv6, and found by their names; nobody can reach us. */
void sandbox_may_connect(struct sandbox *s);

/* What is in force. */
struct sandbox_state {
    int files;       /* version of Landlock's interface; 0: files are not confined */
    bool calls;      /* system calls are filtered */
    bool privileges; /* of a privileged process: dropped */
    const char *why; /* why something is not in force; static text, NULL */
};

/* Confines this thread, and those that it will start, until the process ends. Call it while there
 * is only one. With files_too false any file stays open to it. */
struct sandbox_state sandbox_enter(struct sandbox *s, bool files_too);

/* Adds one line that says it, as "sandbox: files (Landlock 4), system calls (seccomp)". */
void sandbox_say(struct sandbox_state state, struct text *ret_line);

#endif
