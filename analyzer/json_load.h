/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JSON_LOAD_H
#define JSON_LOAD_H
/* What jansson makes of a text, for the modules that read JSON. */
#include "bytes.h"
#include "status.h"

struct json_t; /* jansson's */

/*
 * The caller frees *ret_root with json_decref(); it is NULL on failure. STATUS_REFUSED: no JSON;
 * STATUS_NO_MEMORY.
 */
MUST_USE enum status json_load_text(struct bytes json, struct json_t **ret_root);

#endif
