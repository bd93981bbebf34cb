/* SPDX-License-Identifier: Apache-2.0 */
#include "json_load.h"

#include <errno.h>
#include <jansson.h>

enum status json_load_text(struct bytes json, struct json_t **ret_root)
{
    errno = 0; /* jansson calls it wrong syntax, too, when it has no memory */
    *ret_root = json_loadb((const char *)json.at, json.len, 0, NULL);
    if (*ret_root != NULL)
        return STATUS_OK;
    return errno == ENOMEM ? STATUS_NO_MEMORY : STATUS_REFUSED;
}
