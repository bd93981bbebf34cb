/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EXPLAIN_H
#define EXPLAIN_H
/*
 * What each record of a judged flow is taken for, and why, in words for a person. Pure.
 */
#include "flow_row.h" /* generated */
#include "judge.h"
#include "text.h"

/* A judged flow. Where row and verdict name different records, the row holds: it was made with
 * all that was known of the server. */
struct judged {
    const struct flow_row *row;
    const struct facts *facts;
    const struct verdict *verdict;
    const struct server_profile_row *server; /* NULL: nothing was learned of the server */
    bool utf8;
};

/* What record `index` is taken for. */
enum role judged_role(const struct judged *j, int index);

/* Index of the record that is the request or the response by the row; -1 = none. */
int judged_request(const struct judged *j);
int judged_response(const struct judged *j);

/* Whether it is a clear handshake record that begins with that message. */
bool judged_is_message(const struct judged *j, int index, unsigned handshake_type);

enum { EXPLAIN_LABEL_MAX = 19 }; /* "EncryptedExtensions" */

/* Its name on the ladder, as "ServerHello" or "RESPONSE"; ASCII, static text. */
const char *explain_label(const struct judged *j, int index);

/* Adds why it is taken for that, as "psk 0 selected: resumed, certain"; nothing where that is
 * plain. */
void explain_record(const struct judged *j, int index, struct text *why);

/* ---- words that rows are told with ---- */

bool row_is(struct row_text text, const char *word);
bool row_true(struct row_integer value);

/* Adds text of a row, made safe; the second writes spaces for the underscores of a reason. */
void row_add_text(struct text *t, struct row_text text, bool utf8);
void row_add_reason(struct text *t, struct row_text text, bool utf8);

/* Adds nanoseconds as milliseconds with one decimal. */
void row_add_ms(struct text *t, int64_t ns);

/* Databases may come from anybody: brings a number into the range that makes sense, so that
 * arithmetic on it cannot overflow. */
int64_t row_bounded(int64_t value, int64_t low, int64_t high);

#endif
