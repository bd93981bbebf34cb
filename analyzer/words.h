/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORDS_H
#define WORDS_H
/* Different values of a column, each with a number: the first one seen is 0. */
#include "status.h"
#include "table.h" /* struct cell */

struct words {
    struct cell *at; /* owns its bytes */
    uint32_t *slots; /* of a hash table: number + 1, 0 = free */
    size_t count, capacity, slot_count;
};

/* { 0 } is empty. Gives the number of a value, a new one where it was not seen. */
MUST_USE enum status words_add(struct words *w, struct cell value, uint32_t *ret_number);

void words_done(struct words *w);

/*
 * Adds SQL that is true where the column has that value, as "site = 'fra1'". Whatever the value
 * holds, a shell and SQL read it as itself: what is more than a plain name is written in hex.
 */
void word_add_condition(const char *column, struct cell value, struct text *sql);

/* Adds the value for people: "-" for NULL, text by text_add_safe(). */
void word_add_name(struct cell value, struct text *t);

#endif
