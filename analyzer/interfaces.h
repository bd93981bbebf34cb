/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INTERFACES_H
#define INTERFACES_H
/*
 * Names of the interfaces that the flows of one capture point came in by. Files number interfaces
 * as they like; here a name has one number, so that a flow needs one byte for it.
 */
#include "coder.h"

/* Names of one point; flows of further ones have none, and are counted. */
enum { INTERFACES_MAX = UINT8_MAX, INTERFACE_NAME_MAX = 64, INTERFACE_NONE = 0 };

/* Zeroed: without names. */
struct interfaces {
    char *name[INTERFACES_MAX]; /* of number - 1 */
    uint8_t count;
    uint64_t unnamed_flows; /* whose name was one too many, or too long */
};

void interfaces_done(struct interfaces *i);

/*
 * Number of a name for a flow that begins; INTERFACE_NONE for NULL, beyond the cap and without
 * memory.
 */
uint8_t interfaces_number(struct interfaces *i, const char *name);

/* Name of a number; empty for INTERFACE_NONE and numbers that were never given. */
struct bytes interfaces_name(const struct interfaces *i, uint8_t number);

/* Packs the names, or takes packed ones over into empty interfaces. */
void interfaces_code(struct coder *c, struct interfaces *i);

#endif
