/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHECK_H
#define CHECK_H
/*
 * How good verdicts without keys are: every flow whose records were opened is judged once more as
 * if they had not been, and both verdicts are held against each other. What is known of servers is
 * learned anew from all flows of the database, without looking into a record.
 */
#include "query.h"
#include "text.h"

/*
 * Writes a page for people or, in other formats, one row for each combination of question, server
 * stack, basis and words that occurred. STATUS_USAGE when no flow was opened.
 */
MUST_USE enum status command_check(struct database *database, struct table_style style, FILE *out,
                                   struct text *error);

#endif
