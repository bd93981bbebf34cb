/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLUES_H
#define CLUES_H
/* What else the database says of a change: which ticket key, which alert, which rule. */
#include "change.h"
#include "selection.h"

/*
 * Adds sentences, each with a full stop, as "Refused tickets carry key 4f1c..., which host fra1
 * accepts."; nothing where there is nothing to say. On failure error has the text.
 */
MUST_USE enum status clues_add(const struct change *c, const struct selection *s,
                               const struct windows *w, struct text *t, struct text *error);

#endif
