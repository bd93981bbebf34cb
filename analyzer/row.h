/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ROW_H
#define ROW_H
/* Facts, verdict, path and timing of one flow to its row of table flow. */
#include "flow_row.h"
#include "inputs.h"
#include "judge.h"
#include "label.h"
#include "prefix_set.h"
#include "privacy.h"
#include "region.h"
#include "roles.h"
#include "timing.h"

/* What a row holds beside what was seen of the flow. */
struct row_context {
    const char *point;              /* name of the capture point */
    const struct labels *labels;    /* of the capture point */
    const struct regions *clients;  /* NULL without --clients */
    const char *capture_region;     /* of the capture point; NULL without */
    const struct prefix_set *local; /* NULL without --local */
    const struct privacy *privacy;  /* { 0 } hides nothing; never NULL */
    const struct roles *roles;      /* stands in for it; NULL = no guesses */
    int64_t capture_id;
    struct bytes interface; /* name of it; empty = none */
};

enum { FLOW_UID_SIZE = 33 };

/* Where texts of a row live that are made for it. */
struct row_space {
    char flow_uid[FLOW_UID_SIZE], community_id[COMMUNITY_ID_SIZE];
    char client_ip[SHOWN_ADDRESS_SIZE], server_ip[SHOWN_ADDRESS_SIZE];
    char client_prefix[SHOWN_ADDRESS_SIZE], proxied_client_ip[SHOWN_ADDRESS_SIZE];
    char tls_version[24], cipher_suite[8], named_group[8];
    char tunnel[96];
};

/*
 * Fills a row. Its texts point into the facts, the context, static text and *space: it is good as
 * long as all of them are.
 */
void row_fill(const struct facts *f, const struct verdict *v, const struct path *p,
              const struct timing *t, const struct row_context *context, struct row_space *space,
              struct flow_row *ret_row);

/*
 * Fills only what is judged, the columns of FLOW_JUDGED, and touches no other. Their texts are
 * static and live for ever.
 */
void row_fill_judged(const struct facts *f, const struct verdict *v, const struct path *p,
                     const struct timing *t, struct flow_row *row);

/*
 * The flow's name, hex and terminated; of the context only capture point and privacy matter. Of
 * addresses it is a hash of what is stored, so it tells no more than the row does.
 */
void row_flow_uid(const struct facts *f, const struct row_context *context,
                  char uid[FLOW_UID_SIZE]);

#endif
