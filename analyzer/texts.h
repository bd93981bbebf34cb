/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEXTS_H
#define TEXTS_H
/* Texts that are each kept once, for values that many rows share. */

struct texts;

/* NULL without memory. */
struct texts *texts_open(void);
void texts_close(struct texts *t); /* NULL is accepted */

/*
 * The one copy of a text, made when it is new, which lives as long as t; NULL without memory.
 * Threads may call it at once.
 */
const char *texts_keep(struct texts *t, const char *text);

#endif
