/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHOW_H
#define SHOW_H
/* firstflight show: one flow as a ladder. */
#include "ladder.h"
#include "query.h"

#include <stdio.h>

/*
 * Draws a flow: its flow_id, its flow_uid, or the first hex digits of that (four or more, which
 * no other flow has). STATUS_USAGE: there is no such flow, or more than one. On failure error has
 * the text.
 */
MUST_USE enum status command_show(struct database *database, const char *flow,
                                  struct ladder_style style, FILE *out, struct text *error);

#endif
