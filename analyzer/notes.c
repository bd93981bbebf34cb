/* SPDX-License-Identifier: Apache-2.0 */
#include "notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOTE_SIZE = 1024 };

static bool make_room(struct notes *n, size_t more)
{
    struct note *grown = realloc(n->list, (n->count + more) * sizeof *grown);
    if (grown != NULL)
        n->list = grown;
    return grown != NULL;
}

void notes_add(struct notes *n, bool is_error, const char *format, ...)
{
    char text[NOTE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (make_room(n, 1))
        n->list[n->count++] = (struct note){ strdup(text), is_error };
}

void notes_move(struct notes *n, struct notes *from)
{
    if (from->count > 0 && make_room(n, from->count)) {
        memcpy(n->list + n->count, from->list, from->count * sizeof *from->list);
        n->count += from->count;
        from->count = 0; /* their texts are owned there now */
    }
    notes_done(from);
}

void notes_done(struct notes *n)
{
    for (size_t i = 0; i < n->count; i++)
        free(n->list[i].text);
    free(n->list);
    *n = (struct notes){ 0 };
}
