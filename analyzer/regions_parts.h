/* SPDX-License-Identifier: Apache-2.0 */
#ifndef REGIONS_PARTS_H
#define REGIONS_PARTS_H
/* The inside of report regions: what its text and its HTML page have in common. */
#include "latency.h"
#include "overview.h"
#include "page.h"

static const char *const KIND_NAMES[COMPARED_KINDS] = { "0-rtt", "resumed", "full" };
static const char *const TLS_NAMES[TLS_GROUPS] = { "1.3", "1.2" };

/* A report in the making. */
struct sheet {
    const struct selection *selection;
    const struct latency *latency;
    const struct overview *overview;
    struct table_style style;
    size_t width;
    bool verbose;
    double longest_bar; /* what the longest bar stands for, ms */
    bool too_few;       /* a percentile was left out */
    struct text *out;
    struct page *page; /* warnings go there; NULL: to out */
};

/* Title of a --by column, and all of them as words. */
const char *regions_by_title(const char *column);
void regions_add_by(const struct selection *s, struct text *t);

/* "Server vantage", or the shares of several; and which legs the flows are of. */
void regions_add_vantages(const struct overview *o, struct text *t);
void regions_add_legs(const struct selection *s, const struct overview *o, struct text *t);

/* Numbers of a group. */
int64_t regions_flows_of_version(const struct latency_group *group, enum tls_group tls);
double regions_late_share(const struct latency_group *g);
double regions_refused_share(const struct latency_group *g);
struct cell regions_real_or_null(double value);

/* Whether any early data of the group, or of any group, was decided. */
bool regions_shows_gain(const struct latency_group *g);
bool regions_have_offers(const struct latency *l);

/* Name of a group by its --by columns. */
void regions_add_group_name(const struct latency *l, const struct latency_group *g, struct text *t);

/* Adds all that is to be warned of, to the sheet's page or its text. */
void regions_put_warnings(const struct sheet *p);

/* Writes the report as one HTML page; latency gets its shapes. On failure error has the text. */
MUST_USE enum status regions_write_page(const struct selection *s, struct latency *l,
                                        const struct overview *o, struct table_style style,
                                        FILE *out, struct text *error);

#endif
