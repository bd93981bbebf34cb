/* SPDX-License-Identifier: Apache-2.0 */
#include "roles.h"

#include "hash.h"

#include <stdlib.h>

/* A server; an open-addressing table of them, half of it empty. */
struct role {
    struct address server;
    uint32_t client[ROLE_CLIENTS]; /* hashes of different ones */
    uint32_t client_count;         /* 0 = the place is empty */
};

struct roles {
    struct role *table;
    size_t size, count;
    uint64_t seed;
};

struct roles *roles_open(uint64_t seed)
{
    struct roles *r = calloc(1, sizeof *r);
    if (r != NULL)
        r->seed = seed;
    return r;
}

void roles_close(struct roles *r)
{
    if (r == NULL)
        return;
    free(r->table);
    free(r);
}

static uint64_t hash_of(const struct roles *r, const struct address *a)
{
    return hash_table((struct bytes){ (const uint8_t *)a, sizeof *a }, r->seed);
}

/* The place of a server, or the empty one where it would go. */
static struct role *place_of(const struct roles *r, const struct address *server)
{
    size_t i = (size_t)hash_of(r, server) & (r->size - 1);
    while (r->table[i].client_count != 0 && !address_equal(&r->table[i].server, server))
        i = (i + 1) & (r->size - 1);
    return &r->table[i];
}

static enum status grow(struct roles *r)
{
    enum { FIRST_SIZE = 64 };
    struct role *old = r->table;
    size_t old_size = r->size;
    size_t size = old_size == 0 ? FIRST_SIZE : 2 * old_size;
    struct role *table = calloc(size, sizeof *table);
    if (table == NULL)
        return STATUS_NO_MEMORY;
    r->table = table;
    r->size = size;
    for (size_t i = 0; i < old_size; i++)
        if (old[i].client_count != 0)
            *place_of(r, &old[i].server) = old[i];
    free(old);
    return STATUS_OK;
}

enum status roles_add(struct roles *r, const struct address *server, const struct address *client)
{
    if (2 * (r->count + 1) > r->size && r->count < ROLES_MAX) {
        enum status status = grow(r);
        if (status != STATUS_OK)
            return status;
    }
    struct role *role = place_of(r, server);
    uint32_t hash = (uint32_t)hash_of(r, client);
    for (uint32_t i = 0; i < role->client_count; i++)
        if (role->client[i] == hash)
            return STATUS_OK;
    if (role->client_count == ROLE_CLIENTS || (role->client_count == 0 && r->count >= ROLES_MAX))
        return STATUS_OK;
    if (role->client_count == 0) {
        role->server = *server;
        r->count++;
    }
    role->client[role->client_count++] = hash;
    return STATUS_OK;
}

bool roles_is_server(const struct roles *r, const struct address *address)
{
    return r->size > 0 && place_of(r, address)->client_count == ROLE_CLIENTS;
}
