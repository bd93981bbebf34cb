/* SPDX-License-Identifier: Apache-2.0 */
#include "interfaces.h"

#include <stdlib.h>

void interfaces_done(struct interfaces *i)
{
    for (unsigned n = 0; n < i->count; n++)
        free(i->name[n]);
    *i = (struct interfaces){ 0 };
}

static bool add(struct interfaces *i, const char *name, size_t len)
{
    char *copy = i->count < INTERFACES_MAX && len <= INTERFACE_NAME_MAX ? strndup(name, len) : NULL;
    if (copy == NULL)
        return false;
    i->name[i->count++] = copy;
    return true;
}

uint8_t interfaces_number(struct interfaces *i, const char *name)
{
    if (name == NULL)
        return INTERFACE_NONE;
    for (unsigned n = 0; n < i->count; n++)
        if (strcmp(i->name[n], name) == 0)
            return (uint8_t)(n + 1);
    if (add(i, name, strlen(name)))
        return i->count;
    i->unnamed_flows++;
    return INTERFACE_NONE;
}

struct bytes interfaces_name(const struct interfaces *i, uint8_t number)
{
    if (number == INTERFACE_NONE || number > i->count)
        return (struct bytes){ 0 };
    const char *name = i->name[number - 1];
    return (struct bytes){ (const uint8_t *)name, strlen(name) };
}

static void unpack_name(struct coder *c, struct interfaces *i)
{
    char name[INTERFACE_NAME_MAX];
    size_t len = (size_t)code_number(c, 0, sizeof name);
    code_octets(c, (uint8_t *)name, len);
    c->failed |= c->failed || memchr(name, '\0', len) != NULL || !add(i, name, len);
}

void interfaces_code(struct coder *c, struct interfaces *i)
{
    uint64_t count = code_number(c, i->count, INTERFACES_MAX);
    for (uint64_t n = 0; n < count && !c->failed; n++) {
        if (coder_unpacks(c)) {
            unpack_name(c, i);
            continue;
        }
        size_t len = (size_t)code_number(c, strlen(i->name[n]), INTERFACE_NAME_MAX);
        code_octets(c, (uint8_t *)i->name[n], len);
    }
}
