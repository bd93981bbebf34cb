/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LADDER_PARTS_H
#define LADDER_PARTS_H
/* The inside of a ladder, for those who draw it: its steps in order, and the words around it. */
#include "explain.h"
#include "ladder.h"

enum { STEPS_MAX = RECORDS_MAX + 16 };

/* One line of the ladder: something that one side sent. */
struct step {
    int64_t at_ns; /* since the start of the flow */
    enum side from;
    int record;       /* index in facts.records; -1 = a mark that is no record */
    const char *mark; /* its name, of a mark */
};

struct ladder {
    const struct flow_row *row;
    const struct facts *facts; /* NULL without */
    struct judged judged;      /* only with facts */
    size_t width;
    bool utf8;
    struct step steps[STEPS_MAX];
    size_t step_count;
    int window_first, window_last; /* steps between which early data could be sent; -1 = none */
};

/* Parameters as of ladder_draw(). */
struct ladder ladder_of(const struct flow_row *row, const struct facts *facts,
                        const struct verdict *verdict, const struct server_profile_row *server,
                        bool utf8);

/* The record of a step; NULL of a mark. */
const struct record *ladder_record(const struct ladder *l, const struct step *step);

/* Its name, as "ServerHello" or "RESPONSE"; ASCII. */
const char *ladder_label(const struct ladder *l, const struct step *step);

/* The words around the ladder and beside a step, made safe; nothing where nothing is known. */
void ladder_add_title(const struct ladder *l, struct text *t);
void ladder_add_endpoints(const struct ladder *l, struct text *t);
void ladder_add_vantage(const struct ladder *l, struct text *t);
void ladder_add_why(const struct ladder *l, const struct step *step, struct text *why);
void ladder_add_phases(const struct ladder *l, struct text *t);
void ladder_add_felt(const struct ladder *l, struct text *t);
void ladder_add_quality(const struct ladder *l, struct text *t);

#endif
