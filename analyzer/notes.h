/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NOTES_H
#define NOTES_H
/* Notes for a person, in the order they came up; { 0 } is none. Only main.c prints them. */
#include <stdbool.h>
#include <stddef.h>

struct note {
    char *text;    /* NULL: there was no memory for it */
    bool is_error; /* about a named or damaged file */
};

struct notes {
    struct note *list;
    size_t count;
};

/* Adds one; without memory it is a note less, and the run itself will fail if there is really none.
 */
__attribute__((format(printf, 3, 4))) void notes_add(struct notes *n, bool is_error,
                                                     const char *format, ...);

/* Moves all of `from` behind those that are there. */
void notes_move(struct notes *n, struct notes *from);

void notes_done(struct notes *n);

#endif
