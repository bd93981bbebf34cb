/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DOCTOR_H
#define DOCTOR_H
/* firstflight doctor: what captures can and cannot tell, before they are ingested. */
#include "inputs.h"
#include "survey.h"
#include "table.h"

struct doctor_result {
    size_t files_read, files_damaged, files_unreadable;
    bool is_interrupted;
};

/*
 * Writes a page on each capture point: what can be measured there, why not more, and how tcpdump
 * would have captured more; in other formats than TABLE_ALIGNED each of these is a row. When *stop
 * of the watch becomes true, of what was read until then; its counts are set here. On failure error
 * has the text.
 */
MUST_USE enum status command_doctor(const struct input_options *inputs, const char *filter,
                                    struct table_style style, struct survey_watch *watch, FILE *out,
                                    struct doctor_result *ret_result, struct text *error);

#endif
