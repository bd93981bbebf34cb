/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STATUS_H
#define STATUS_H
/*
 * What can go wrong in the environment (files, memory, the database). Errors of our own are
 * asserts, and what is wrong on the wire is a counted fact (drop.h). The object that failed keeps
 * the text: capture_error(), store_error(). Only main.c prints.
 */
#define MUST_USE __attribute__((warn_unused_result))

enum status {
    STATUS_OK,
    STATUS_END,       /* no more input; not an error */
    STATUS_NO_MEMORY, /* malloc failed */
    STATUS_IO,        /* a file or the database could not be read or written */
    STATUS_DAMAGED,   /* input is damaged; what came before is good */
    STATUS_REFUSED,   /* not ours: foreign file, newer schema, no capture */
    STATUS_USAGE,     /* the caller asked for something that does not exist */
};

#endif
