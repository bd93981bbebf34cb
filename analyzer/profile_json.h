/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROFILE_JSON_H
#define PROFILE_JSON_H
/*
 * The numbers of a profile as compact JSON, for column learned of table server_profile: an object
 * with "flights", the flows by shape of their flight, and for each tally an array of entries
 * [number, count, first, last]; "level" is profiles_level() where that is not 0. The server and its
 * name, flows, first_ns and last_ns are columns of their own.
 */
#include "profile.h"

/* Appends. */
MUST_USE enum status profile_to_json(const struct profile *p, unsigned level, struct buffer *out);

/*
 * Sets what profile_to_json() wrote and leaves the rest of *profile alone. Numbers that no profile
 * holds are made harmless. STATUS_REFUSED, and nothing is set: the bytes are nothing of that kind;
 * STATUS_NO_MEMORY.
 */
MUST_USE enum status profile_from_json(struct bytes json, struct profile *profile,
                                       unsigned *ret_level);

#endif
