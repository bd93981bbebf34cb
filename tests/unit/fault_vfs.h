/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAULT_VFS_H
#define FAULT_VFS_H
/*
 * A file system for SQLite that fails, or dies, at the n-th time that something is written, synced,
 * truncated or deleted. Of one process: install it in a child.
 */
#include <signal.h>
#include <sqlite3.h>
#include <stdlib.h>

enum fault { FAULT_NONE, FAULT_KILL, FAULT_FULL, FAULT_IO };

/* SQLite has one table of methods for the database, one for its journal. */
enum { FAULT_METHODS = 4 };

static struct {
    enum fault fault;
    int at;   /* the operation that fails, counted from 1; with FULL and IO all later ones too */
    int done; /* operations so far */
    sqlite3_vfs vfs, *below;
    struct {
        sqlite3_io_methods own;
        const sqlite3_io_methods *below;
    } methods[FAULT_METHODS];
} fault_vfs;

static inline int fault_now(void)
{
    fault_vfs.done++;
    if (fault_vfs.fault == FAULT_NONE || fault_vfs.done < fault_vfs.at)
        return SQLITE_OK;
    if (fault_vfs.fault == FAULT_KILL)
        (void)raise(SIGKILL);
    return fault_vfs.fault == FAULT_FULL ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

static inline const sqlite3_io_methods *fault_below(const sqlite3_file *file)
{
    for (int i = 0; i < FAULT_METHODS; i++)
        if (file->pMethods == &fault_vfs.methods[i].own)
            return fault_vfs.methods[i].below;
    abort();
}

static inline int fault_write(sqlite3_file *file, const void *at, int len, sqlite3_int64 offset)
{
    int code = fault_now();
    return code != SQLITE_OK ? code : fault_below(file)->xWrite(file, at, len, offset);
}

static inline int fault_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    int code = fault_now();
    return code != SQLITE_OK ? code : fault_below(file)->xTruncate(file, size);
}

/* Counts, but does not wait for the disk: the process dies here, not the machine. */
static inline int fault_sync(sqlite3_file *file, int flags)
{
    (void)file;
    (void)flags;
    return fault_now();
}

static inline int fault_delete(sqlite3_vfs *vfs, const char *name, int sync_directory)
{
    (void)vfs;
    (void)sync_directory;
    int code = fault_now();
    return code != SQLITE_OK ? code : fault_vfs.below->xDelete(fault_vfs.below, name, 0);
}

static inline int fault_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags,
                             int *ret_flags)
{
    (void)vfs;
    int code = fault_vfs.below->xOpen(fault_vfs.below, name, file, flags, ret_flags);
    int i = 0;
    if (file->pMethods == NULL)
        return code;
    while (fault_vfs.methods[i].below != NULL && fault_vfs.methods[i].below != file->pMethods)
        if (++i == FAULT_METHODS)
            abort();
    if (fault_vfs.methods[i].below == NULL) {
        fault_vfs.methods[i].below = file->pMethods;
        fault_vfs.methods[i].own = *file->pMethods;
        fault_vfs.methods[i].own.xWrite = fault_write;
        fault_vfs.methods[i].own.xTruncate = fault_truncate;
        fault_vfs.methods[i].own.xSync = fault_sync;
    }
    file->pMethods = &fault_vfs.methods[i].own;
    return code;
}

/* From now on every connection of this process goes through it. */
static inline void fault_install(enum fault fault, int at)
{
    fault_vfs.below = sqlite3_vfs_find(NULL);
    fault_vfs.vfs = *fault_vfs.below;
    fault_vfs.vfs.zName = "fault";
    fault_vfs.vfs.xOpen = fault_open;
    fault_vfs.vfs.xDelete = fault_delete;
    fault_vfs.fault = fault;
    fault_vfs.at = at;
    fault_vfs.done = 0;
    sqlite3_vfs_register(&fault_vfs.vfs, 1);
}

#endif
