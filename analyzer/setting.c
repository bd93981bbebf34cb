/* SPDX-License-Identifier: Apache-2.0 */
#include "setting.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

enum { VALUE_SIZE = PRIVACY_HASH_SIZE };

/* What the database says; "" each where nothing was ingested yet. */
struct settings {
    char client_addr[VALUE_SIZE], sni[VALUE_SIZE], hash_key[VALUE_SIZE];
};

static enum status read_settings(struct store *s, struct settings *ret_settings)
{
    enum status status = store_setting(s, "client_addr", ret_settings->client_addr, VALUE_SIZE);
    if (status == STATUS_OK)
        status = store_setting(s, "sni", ret_settings->sni, VALUE_SIZE);
    if (status == STATUS_OK)
        status = store_setting(s, "hash_key", ret_settings->hash_key, VALUE_SIZE);
    return status;
}

/* The option, else what the database has, else in full. */
static enum status choose(const char *option, const char *word, const char *kept,
                          enum shown *ret_shown, struct text *error)
{
    const char *wanted = word != NULL ? word : kept[0] != '\0' ? kept : "full";
    if (!shown_parse(wanted, ret_shown)) {
        text_addf(error, "%s %s: there are full, prefix (of addresses), hash and none", option,
                  wanted);
        return STATUS_USAGE;
    }
    if (kept[0] != '\0' && strcmp(kept, wanted) != 0) {
        text_addf(error,
                  "%s %s: this database was begun with %s, and what it holds cannot be changed;"
                  " leave the option out or name another database with -d",
                  option, wanted, kept);
        return STATUS_USAGE;
    }
    return STATUS_OK;
}

static enum status choose_both(const struct privacy_options *options, const struct settings *kept,
                               struct privacy *p, struct text *error)
{
    enum status status =
        choose("--client-addr", options->client_addr, kept->client_addr, &p->client_addr, error);
    if (status == STATUS_OK)
        status = choose("--sni", options->sni, kept->sni, &p->sni, error);
    if (status == STATUS_OK && p->sni == SHOWN_PREFIX) {
        text_add(error, "--sni prefix: there are full, hash and none");
        return STATUS_USAGE;
    }
    return status;
}

static enum status read_key(struct privacy *p, const char *path, const struct settings *kept,
                            struct text *error)
{
    char check[PRIVACY_HASH_SIZE];
    enum status status = privacy_read_key(p, path);
    if (status == STATUS_IO)
        text_addf(error, "%s: the key of the hashes cannot be read: %s", path, strerror(errno));
    if (status == STATUS_REFUSED)
        text_addf(error, "%s: no key of hashes: it needs 16 to 4096 bytes that nobody can guess",
                  path);
    if (status != STATUS_OK)
        return status;
    if (kept->hash_key[0] != '\0' && strcmp(kept->hash_key, privacy_key_check(p, check)) != 0) {
        text_addf(error, "%s: another key than the one that this database was begun with", path);
        return STATUS_REFUSED;
    }
    return STATUS_OK;
}

static enum status find_key(struct privacy *p, const char *database, const char *option,
                            const struct settings *kept, char **ret_made, struct text *error)
{
    struct text beside = { 0 };
    if (option != NULL)
        return read_key(p, option, kept, error);
    text_addf(&beside, "%s.key", database);
    if (beside.failed)
        return STATUS_NO_MEMORY;
    enum status status = STATUS_OK;
    bool make = access(beside.at, F_OK) != 0 && kept->hash_key[0] == '\0';
    if (make)
        status = privacy_make_key(beside.at);
    if (status != STATUS_OK)
        text_addf(error, "%s: the key of the hashes cannot be written: %s", beside.at,
                  strerror(errno));
    else
        status = read_key(p, beside.at, kept, error);
    if (make && status == STATUS_OK)
        *ret_made = strdup(beside.at);
    text_done(&beside);
    return status;
}

enum status setting_open(struct store *s, const char *database,
                         const struct privacy_options *options, struct privacy *ret_privacy,
                         char **ret_key_made, struct text *error)
{
    struct settings kept;
    struct privacy p = { 0 };
    *ret_key_made = NULL;
    enum status status = read_settings(s, &kept);
    if (status != STATUS_OK) {
        text_add(error, store_error(s));
        return status;
    }
    status = choose_both(options, &kept, &p, error);
    if (status == STATUS_OK && privacy_needs_key(&p))
        status = find_key(&p, database, options->hash_key, &kept, ret_key_made, error);
    if (status == STATUS_OK)
        *ret_privacy = p;
    return status;
}

enum status setting_keep(struct store *s, const struct privacy *privacy, struct text *error)
{
    char check[PRIVACY_HASH_SIZE] = "";
    struct settings kept;
    if (privacy_needs_key(privacy))
        privacy_key_check(privacy, check);
    enum status status = store_keep_setting(s, "client_addr", shown_text(privacy->client_addr));
    if (status == STATUS_OK)
        status = store_keep_setting(s, "sni", shown_text(privacy->sni));
    if (status == STATUS_OK && check[0] != '\0')
        status = store_keep_setting(s, "hash_key", check);
    if (status == STATUS_OK)
        status = read_settings(s, &kept);
    if (status != STATUS_OK) {
        text_add(error, store_error(s));
        return status;
    }
    if (strcmp(kept.client_addr, shown_text(privacy->client_addr)) == 0 &&
        strcmp(kept.sni, shown_text(privacy->sni)) == 0 && strcmp(kept.hash_key, check) == 0)
        return STATUS_OK;
    text_add(error, "another ingest decided meanwhile to store addresses or names in another way;"
                    " run this one again");
    return STATUS_REFUSED;
}
