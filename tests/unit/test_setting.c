/* SPDX-License-Identifier: Apache-2.0 */
#include "setting.h"

#include "store_rows.h"

#include <criterion/criterion.h>

static char directory[64], path[128];

static void make_path(void)
{
    path_in(make_directory(directory), "test.db", path);
}

static void remove_path(void)
{
    remove_directory(directory);
}

TestSuite(setting, .init = make_path, .fini = remove_path);

static struct store *open_store(void)
{
    struct store *s;
    cr_assert_eq(store_open(path, &s), STATUS_OK, "%s", store_error(s));
    return s;
}

/* What an ingest with these options may do; NULL: as the database has it. */
static enum status open_with(struct store *s, const char *client_addr, const char *sni,
                             const char *key, struct privacy *ret_privacy, bool *ret_key_made)
{
    struct privacy_options options = { client_addr, sni, key };
    struct text error = { 0 };
    char *key_made = NULL;
    enum status status = setting_open(s, path, &options, ret_privacy, &key_made, &error);
    cr_expect_eq(status == STATUS_OK, error.len == 0, "%s", text_string(&error));
    *ret_key_made = key_made != NULL;
    free(key_made);
    text_done(&error);
    return status;
}

static enum status keep(struct store *s, const struct privacy *p)
{
    struct text error = { 0 };
    cr_assert_eq(store_begin(s), STATUS_OK);
    enum status status = setting_keep(s, p, &error);
    cr_expect_eq(status == STATUS_OK, error.len == 0, "%s", text_string(&error));
    if (status == STATUS_OK)
        cr_assert_eq(store_commit(s), STATUS_OK);
    else
        store_rollback(s);
    text_done(&error);
    return status;
}

Test(setting, nothing_is_hidden_unless_it_is_asked_for)
{
    struct store *s = open_store();
    struct privacy p;
    bool key_made;
    cr_assert_eq(open_with(s, NULL, NULL, NULL, &p, &key_made), STATUS_OK);
    cr_expect(p.client_addr == SHOWN_FULL && p.sni == SHOWN_FULL && !key_made);
    store_close(s);
}

Test(setting, words_that_are_none_are_told)
{
    struct store *s = open_store();
    struct privacy p;
    bool key_made;
    cr_expect_eq(open_with(s, "half", NULL, NULL, &p, &key_made), STATUS_USAGE);
    cr_expect_eq(open_with(s, NULL, "", NULL, &p, &key_made), STATUS_USAGE);
    cr_expect_eq(open_with(s, NULL, "prefix", NULL, &p, &key_made), STATUS_USAGE);
    store_close(s);
}

Test(setting, the_first_ingest_decides)
{
    struct store *s = open_store();
    struct privacy first, next;
    bool key_made;
    cr_assert_eq(open_with(s, "hash", "none", NULL, &first, &key_made), STATUS_OK);
    cr_expect(key_made);
    cr_assert_eq(keep(s, &first), STATUS_OK);
    store_close(s);
    s = open_store();
    cr_assert_eq(open_with(s, NULL, NULL, NULL, &next, &key_made), STATUS_OK);
    cr_expect(next.client_addr == SHOWN_HASH && next.sni == SHOWN_NONE && !key_made);
    cr_expect_eq(memcmp(first.key, next.key, sizeof first.key), 0);
    cr_expect_eq(keep(s, &next), STATUS_OK, "saying it again changes nothing");
    cr_expect_eq(open_with(s, "full", NULL, NULL, &next, &key_made), STATUS_USAGE);
    cr_expect_eq(open_with(s, "hash", "hash", NULL, &next, &key_made), STATUS_USAGE);
    store_close(s);
}

Test(setting, of_two_ingests_at_once_one_decides)
{
    struct store *s = open_store();
    struct privacy first, second;
    bool key_made;
    cr_assert_eq(open_with(s, "none", NULL, NULL, &first, &key_made), STATUS_OK);
    cr_assert_eq(open_with(s, "full", NULL, NULL, &second, &key_made), STATUS_OK);
    cr_assert_eq(keep(s, &first), STATUS_OK);
    cr_expect_eq(keep(s, &second), STATUS_REFUSED);
    store_close(s);
}

Test(setting, hashes_of_another_key_are_refused)
{
    struct store *s = open_store();
    struct privacy p;
    bool key_made;
    char key[128], made[160];
    path_in(directory, "other.key", key);
    snprintf(made, sizeof made, "%s.key", path);
    cr_assert_eq(privacy_make_key(key), STATUS_OK);
    cr_assert_eq(open_with(s, "hash", NULL, NULL, &p, &key_made), STATUS_OK);
    cr_assert_eq(keep(s, &p), STATUS_OK);
    cr_expect_eq(open_with(s, NULL, NULL, key, &p, &key_made), STATUS_REFUSED);
    cr_expect_eq(open_with(s, NULL, NULL, made, &p, &key_made), STATUS_OK);
    cr_assert_eq(unlink(made), 0);
    cr_expect_eq(open_with(s, NULL, NULL, NULL, &p, &key_made), STATUS_IO,
                 "a lost key is not made anew");
    cr_expect_neq(access(made, F_OK), 0);
    store_close(s);
}
