/* SPDX-License-Identifier: Apache-2.0 */
#include "mmdb.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PATH_KEYS_MAX = 8 };

bool mmdb_path_is_valid(const char *region_path)
{
    size_t keys = 1, key_len = 0;
    for (const char *c = region_path; *c != '\0'; c++) {
        if (*c == '.' && key_len == 0)
            return false;
        keys += *c == '.';
        key_len = *c == '.' ? 0 : key_len + 1;
    }
    return key_len > 0 && keys <= PATH_KEYS_MAX;
}

#ifdef HAVE_MAXMINDDB

#include <arpa/inet.h>
#include <maxminddb.h>

struct mmdb {
    MMDB_s database;
    char *path_text; /* of the region, split by zeros; NULL = the usual places */
    const char *path[PATH_KEYS_MAX + 1]; /* its keys; NULL behind the last */
};

static bool split_path(struct mmdb *m, const char *region_path)
{
    char *rest = NULL;
    size_t count = 0;
    m->path_text = strdup(region_path);
    if (m->path_text == NULL)
        return false;
    for (char *key = strtok_r(m->path_text, ".", &rest); key != NULL && count < PATH_KEYS_MAX;
         key = strtok_r(NULL, ".", &rest))
        m->path[count++] = key;
    return true;
}

enum status mmdb_open(const char *path, const char *region_path, struct mmdb **ret_mmdb,
                      const char **ret_reason)
{
    struct mmdb *m = calloc(1, sizeof *m);
    if (m == NULL || (region_path != NULL && !split_path(m, region_path))) {
        free(m);
        return STATUS_NO_MEMORY;
    }
    int error = MMDB_open(path, MMDB_MODE_MMAP, &m->database);
    if (error == MMDB_SUCCESS) {
        *ret_mmdb = m;
        return STATUS_OK;
    }
    bool is_io = error == MMDB_FILE_OPEN_ERROR || error == MMDB_IO_ERROR;
    *ret_reason = is_io ? strerror(errno) : MMDB_strerror(error);
    free(m->path_text);
    free(m);
    return is_io ? STATUS_IO : STATUS_REFUSED;
}

void mmdb_close(struct mmdb *m)
{
    if (m == NULL)
        return;
    MMDB_close(&m->database);
    free(m->path_text);
    free(m);
}

/* ---- looking up ---- */

static MMDB_lookup_result_s look_up(const MMDB_s *database, const struct address *a)
{
    int error;
    if (address_is_ipv4(a)) {
        struct sockaddr_in v4 = { .sin_family = AF_INET };
        memcpy(&v4.sin_addr, a->octet + 12, sizeof v4.sin_addr);
        return MMDB_lookup_sockaddr(database, (const struct sockaddr *)&v4, &error);
    }
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
    memcpy(&v6.sin6_addr, a->octet, sizeof v6.sin6_addr);
    return MMDB_lookup_sockaddr(database, (const struct sockaddr *)&v6, &error);
}

/* Netmasks of the library count from the root of the tree: of 32 bits in one for IPv4 alone. */
static unsigned bits_of(const MMDB_s *database, const struct address *a,
                        const MMDB_lookup_result_s *found)
{
    bool is_ipv4_tree = database->metadata.ip_version == 4;
    return (unsigned)found->netmask + (address_is_ipv4(a) && is_ipv4_tree ? 96 : 0);
}

/* Where databases keep a value, from the usual place to those of flat layouts. */
typedef const char *const usual_path[4];

static const usual_path COUNTRY_CODE[] = { { "country", "iso_code", NULL },
                                           { "registered_country", "iso_code", NULL },
                                           { "country_code", NULL },
                                           { "country", NULL } };
static const usual_path SUBDIVISION_CODE[] = { { "subdivisions", "0", "iso_code", NULL },
                                               { "region_code", NULL } };
static const usual_path PLACE_NAME[] = { { "subdivisions", "0", "names", NULL },
                                         { "state1", NULL },
                                         { "region", NULL },
                                         { "city", "names", "en", NULL },
                                         { "city", NULL } };
static const usual_path AS_NUMBER[] = { { "autonomous_system_number", NULL },
                                        { "traits", "autonomous_system_number", NULL },
                                        { "asn", NULL } };

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static bool value_at(MMDB_entry_s *entry, const char *const *path, MMDB_entry_data_s *ret)
{
    return MMDB_aget_value(entry, ret, path) == MMDB_SUCCESS && ret->has_data;
}

/* A value as text: texts, cut to size, and numbers; empty for anything else. */
static void text_at(MMDB_entry_s *entry, const char *const *path, char text[MMDB_TEXT_SIZE])
{
    MMDB_entry_data_s data;
    text[0] = '\0';
    if (!value_at(entry, path, &data))
        return;
    if (data.type == MMDB_DATA_TYPE_UTF8_STRING) {
        size_t len = data.data_size < MMDB_TEXT_SIZE - 1 ? data.data_size : MMDB_TEXT_SIZE - 1;
        memcpy(text, data.utf8_string, len);
        text[len] = '\0';
    } else if (data.type == MMDB_DATA_TYPE_UINT16) {
        snprintf(text, MMDB_TEXT_SIZE, "%u", (unsigned)data.uint16);
    } else if (data.type == MMDB_DATA_TYPE_UINT32) {
        snprintf(text, MMDB_TEXT_SIZE, "%u", (unsigned)data.uint32);
    }
}

static void first_text(MMDB_entry_s *entry, const usual_path *paths, size_t path_count,
                       char text[MMDB_TEXT_SIZE])
{
    text[0] = '\0';
    for (size_t i = 0; i < path_count && text[0] == '\0'; i++)
        text_at(entry, paths[i], text);
}

/* AS numbers are numbers, or texts as "AS64500". */
static int64_t as_number(MMDB_entry_s *entry)
{
    char text[MMDB_TEXT_SIZE];
    for (size_t i = 0; i < COUNT_OF(AS_NUMBER); i++) {
        text_at(entry, AS_NUMBER[i], text);
        const char *digits = text + (text[0] == 'A' && text[1] == 'S' ? 2 : 0);
        char *end;
        long long number = strtoll(digits, &end, 10);
        if (end != digits && *end == '\0' && number > 0 && number <= UINT32_MAX)
            return number;
    }
    return 0;
}

static void country(MMDB_entry_s *entry, char text[3])
{
    char found[MMDB_TEXT_SIZE];
    first_text(entry, COUNTRY_CODE, COUNT_OF(COUNTRY_CODE), found);
    bool is_code = found[0] >= 'A' && found[0] <= 'Z' && found[1] >= 'A' && found[1] <= 'Z' &&
                   found[2] == '\0';
    memcpy(text, is_code ? found : "\0\0", 3);
}

static void usual_region(MMDB_entry_s *entry, const char *country_code, char text[MMDB_TEXT_SIZE])
{
    char code[MMDB_TEXT_SIZE];
    first_text(entry, SUBDIVISION_CODE, COUNT_OF(SUBDIVISION_CODE), code);
    if (code[0] != '\0' && country_code[0] != '\0')
        snprintf(text, MMDB_TEXT_SIZE, "%.2s-%.3s", country_code, code);
    else
        first_text(entry, PLACE_NAME, COUNT_OF(PLACE_NAME), text);
    if (text[0] == '\0')
        snprintf(text, MMDB_TEXT_SIZE, "%s", country_code);
}

struct mmdb_place mmdb_find(const struct mmdb *m, const struct address *a, unsigned *ret_bits)
{
    struct mmdb_place place = { 0 };
    MMDB_lookup_result_s found = look_up(&m->database, a);
    *ret_bits = bits_of(&m->database, a, &found);
    if (!found.found_entry)
        return place;
    country(&found.entry, place.country);
    if (m->path_text != NULL)
        text_at(&found.entry, m->path, place.region);
    else
        usual_region(&found.entry, place.country, place.region);
    place.asn = as_number(&found.entry);
    return place;
}

const char *mmdb_version(void)
{
    return MMDB_lib_version();
}

#else

enum status mmdb_open(const char *path, const char *region_path, struct mmdb **ret_mmdb,
                      const char **ret_reason)
{
    (void)path;
    (void)region_path;
    (void)ret_mmdb;
    *ret_reason = "this program was built without libmaxminddb";
    return STATUS_REFUSED;
}

void mmdb_close(struct mmdb *m)
{
    (void)m;
}

struct mmdb_place mmdb_find(const struct mmdb *m, const struct address *a, unsigned *ret_bits)
{
    (void)m;
    (void)a;
    *ret_bits = 0;
    return (struct mmdb_place){ 0 };
}

const char *mmdb_version(void)
{
    return NULL;
}

#endif
