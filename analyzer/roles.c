/* SPDX-License-Identifier: Apache-2.0 */
#include "roles.h"

#include "hash.h"

#include <stdlib.h>

#define NS_PER_HOUR (3600 * INT64_C(1000000000))

/* A server; an open-addressing table of them, half of it empty. */
struct role {
    struct address server;
    uint16_t client[ROLE_CLIENTS]; /* hashes of different ones, until there are enough */
    uint32_t last_hour;            /* since 1970, of the last flow's begin */
    uint32_t client_count;         /* 0 = the place is empty */
};

struct roles {
    struct role *table;
    size_t size, count;
    uint64_t seed;
    uint64_t client_seed; /* of the hashes of clients: the same in all runs of a point */
};

struct roles *roles_open(uint64_t seed)
{
    struct roles *r = calloc(1, sizeof *r);
    if (r != NULL)
        *r = (struct roles){ .seed = seed, .client_seed = ~seed };
    return r;
}

void roles_close(struct roles *r)
{
    if (r == NULL)
        return;
    free(r->table);
    free(r);
}

static uint64_t hash_of(const struct address *a, uint64_t seed)
{
    return hash_table((struct bytes){ (const uint8_t *)a, sizeof *a }, seed);
}

static uint32_t hour_of(int64_t ns)
{
    return ns < 0 ? 0 : (uint32_t)(ns / NS_PER_HOUR);
}

/* The place of a server, or the empty one where it would go. */
static struct role *place_of(const struct roles *r, const struct address *server)
{
    size_t i = (size_t)hash_of(server, r->seed) & (r->size - 1);
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

/* The role of a server, a new one with no client if need be; *ret_role is NULL beyond the cap. */
static enum status role_of(struct roles *r, const struct address *server, struct role **ret_role)
{
    if (2 * (r->count + 1) > r->size && r->count < ROLES_MAX) {
        enum status status = grow(r);
        if (status != STATUS_OK)
            return status;
    }
    struct role *role = place_of(r, server);
    bool is_known = role->client_count != 0;
    if (!is_known)
        role->server = *server;
    *ret_role = is_known || r->count < ROLES_MAX ? role : NULL;
    return STATUS_OK;
}

static void add_client(struct roles *r, struct role *role, uint16_t hash)
{
    for (uint32_t i = 0; i < role->client_count; i++)
        if (role->client[i] == hash)
            return;
    if (role->client_count == ROLE_CLIENTS)
        return;
    r->count += role->client_count == 0;
    role->client[role->client_count++] = hash;
}

enum status roles_add(struct roles *r, const struct address *server, const struct address *client,
                      int64_t start_ns)
{
    struct role *role;
    enum status status = role_of(r, server, &role);
    if (status != STATUS_OK || role == NULL)
        return status;
    if (hour_of(start_ns) > role->last_hour)
        role->last_hour = hour_of(start_ns);
    add_client(r, role, (uint16_t)hash_of(client, r->client_seed));
    return STATUS_OK;
}

bool roles_is_server(const struct roles *r, const struct address *address)
{
    return r->size > 0 && place_of(r, address)->client_count == ROLE_CLIENTS;
}

/* Clients of one whose server is known to be ours are of no more use. */
static void code_role(struct coder *c, struct role *role)
{
    code_octets(c, role->server.octet, sizeof role->server.octet);
    code_u32(c, &role->last_hour);
    role->client_count = (uint32_t)code_number(c, role->client_count, ROLE_CLIENTS);
    for (uint32_t i = 0; role->client_count < ROLE_CLIENTS && i < role->client_count; i++)
        code_u16(c, &role->client[i]);
}

static enum status take_role(struct roles *r, const struct role *packed)
{
    struct role *role;
    enum status status = role_of(r, &packed->server, &role);
    if (status == STATUS_OK && role != NULL) {
        r->count += role->client_count == 0;
        *role = *packed;
    }
    return status;
}

static void unpack_roles(struct coder *c, struct roles *r)
{
    for (uint64_t left = code_number(c, 0, ROLES_CARRIED_MAX); left > 0 && !c->failed; left--) {
        struct role role = { 0 };
        code_role(c, &role);
        c->failed |= role.client_count == 0;
        if (!c->failed)
            c->failed = take_role(r, &role) != STATUS_OK;
    }
}

static bool is_kept(const struct role *role, uint32_t least_clients, int64_t now_ns)
{
    return role->client_count >= least_clients &&
           role->last_hour + ROLE_KEPT_HOURS >= hour_of(now_ns);
}

static uint64_t count_kept(const struct roles *r, uint32_t least_clients, int64_t now_ns)
{
    uint64_t count = 0;
    for (size_t i = 0; i < r->size; i++)
        count += is_kept(&r->table[i], least_clients, now_ns);
    return count;
}

void roles_code(struct coder *c, struct roles *r, int64_t now_ns)
{
    code_u64(c, &r->client_seed);
    if (coder_unpacks(c)) {
        unpack_roles(c, r);
        return;
    }
    uint32_t least_clients = 1;
    uint64_t count;
    while ((count = count_kept(r, least_clients, now_ns)) > ROLES_CARRIED_MAX &&
           least_clients < ROLE_CLIENTS)
        least_clients++;
    if (count > ROLES_CARRIED_MAX)
        count = ROLES_CARRIED_MAX;
    code_number(c, count, ROLES_CARRIED_MAX);
    for (size_t i = 0; i < r->size && count > 0; i++) {
        if (is_kept(&r->table[i], least_clients, now_ns)) {
            code_role(c, &r->table[i]);
            count--;
        }
    }
}
