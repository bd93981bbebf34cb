/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SHOW_H
#define SHOW_H
/* firstflight show: one flow as a ladder. */
#include "ladder.h"
#include "query.h"

#include <stdio.h>

enum show_format {
    SHOW_TEXT,
    SHOW_HTML, /* a page */
    SHOW_SVG,  /* the ladder alone */
};

/* Reads "text", "html", "svg". */
bool show_format_of(const char *name, enum show_format *ret_format);

struct show_options {
    const char *flow;
    enum show_format format;
    struct ladder_style ladder; /* of SHOW_TEXT */
    const char *pcap;           /* write the packets there instead of drawing; NULL: draw */
};

/*
 * Draws a flow: its flow_id, its flow_uid, or the first hex digits of that (four or more, which
 * no other flow has). STATUS_USAGE: there is no such flow, or more than one. On failure error has
 * the text, with STATUS_DAMAGED of the captures whose packets are missing.
 */
MUST_USE enum status command_show(struct database *database, const struct show_options *options,
                                  FILE *out, struct text *error);

#endif
