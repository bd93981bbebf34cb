/* SPDX-License-Identifier: Apache-2.0 */
#include "privacy.h"

#include "store_rows.h"

#include <criterion/criterion.h>
#include <sys/stat.h>

static const struct privacy HASHED = { .client_addr = SHOWN_HASH,
                                       .sni = SHOWN_HASH,
                                       .key = { 1, 2, 3 } };

static struct address address_of(const char *text)
{
    struct address a;
    cr_assert(address_parse(text, &a), "%s", text);
    return a;
}

static struct facts facts_of(const char *name)
{
    struct facts f = { .ip_version = 4, .isn = { 7, 8 } };
    f.client.address = address_of("203.0.113.77");
    f.server = (struct endpoint){ .address = address_of("192.0.2.1"), .port = 443 };
    cr_assert(facts_set_text(&f, &f.server_name, name, strlen(name)));
    cr_assert(facts_set_text(&f, &f.session_id_hash, "abc", 3));
    return f;
}

Test(privacy, words_are_those_that_are_told)
{
    for (enum shown shown = SHOWN_FULL; shown <= SHOWN_NONE; shown++) {
        enum shown again = SHOWN_FULL;
        cr_expect(shown_parse(shown_text(shown), &again) && again == shown);
    }
    enum shown shown;
    cr_expect_not(shown_parse("", &shown));
    cr_expect_not(shown_parse("Hash", &shown));
}

Test(privacy, what_is_stored_of_an_address)
{
    static const struct {
        const char *address, *texts[4]; /* by enum shown; of a hash its length */
    } cases[] = {
        { "203.0.113.77", { "203.0.113.77", "203.0.113.0/24", NULL, "no text" } },
        { "2001:db8:7:8::1", { "2001:db8:7:8::1", "2001:db8:7::/48", NULL, "no text" } },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct address a = address_of(cases[i].address), read;
        for (enum shown shown = SHOWN_FULL; shown <= SHOWN_NONE; shown++) {
            struct privacy p = { .client_addr = shown };
            char buffer[SHOWN_ADDRESS_SIZE];
            const char *text = privacy_address_text(&p, &a, buffer);
            const char *wanted = cases[i].texts[shown];
            if (wanted != NULL)
                cr_expect_str_eq(text ? text : "no text", wanted);
            struct address stored = privacy_address(&p, &a);
            if (shown == SHOWN_FULL || shown == SHOWN_HASH)
                cr_expect(privacy_parse_client(text, &read) && address_equal(&read, &stored));
            else
                cr_expect(text == NULL || !privacy_parse_client(text, &read));
        }
    }
}

Test(privacy, hashes_are_equal_for_equal_keys_and_values_only)
{
    struct privacy other = HASHED;
    other.key[31] = 1;
    struct address a = address_of("203.0.113.77"), b = address_of("203.0.113.78");
    struct address hash = privacy_address(&HASHED, &a), again = privacy_address(&HASHED, &a);
    struct address of_b = privacy_address(&HASHED, &b), of_key = privacy_address(&other, &a);
    cr_expect(address_equal(&hash, &again));
    cr_expect_not(address_equal(&hash, &of_b));
    cr_expect_not(address_equal(&hash, &of_key));
    char check[PRIVACY_HASH_SIZE], other_check[PRIVACY_HASH_SIZE];
    cr_expect_str_neq(privacy_key_check(&HASHED, check), privacy_key_check(&other, other_check));
}

Test(privacy, a_name_has_one_hash_in_any_case_and_keeps_its_rule)
{
    struct rules rules = { 0 };
    cr_assert(rules_add(&rules, text_bytes("login.*"), false, (struct bytes){ 0 }));
    struct privacy p = HASHED;
    p.rules = &rules;
    struct facts f = facts_of("Login.Example.com"), g = facts_of("login.example.COM");
    cr_assert_eq(privacy_hide_texts(&p, &f), STATUS_OK);
    cr_assert_eq(privacy_hide_texts(&p, &g), STATUS_OK);
    cr_expect_str_eq(f.server_name, g.server_name);
    cr_expect_eq(strlen(f.server_name), PRIVACY_HASH_SIZE - 1);
    cr_expect_str_eq(f.early_data_rule, "login.*");
    cr_expect_str_neq(f.session_id_hash, "abc");
    cr_expect_str_eq(f.session_id_hash, g.session_id_hash);
    facts_done(&f);
    facts_done(&g);
    rules_done(&rules);
}

Test(privacy, what_was_not_seen_stays_unseen)
{
    for (enum shown shown = SHOWN_FULL; shown <= SHOWN_NONE; shown++) {
        struct privacy p = { .client_addr = shown, .sni = shown == SHOWN_PREFIX ? 0 : shown };
        struct facts f = { 0 };
        cr_assert_eq(privacy_hide_texts(&p, &f), STATUS_OK);
        cr_expect_null(f.server_name);
        cr_expect_null(f.session_id_hash);
        facts_done(&f);
    }
}

Test(privacy, stored_facts_hold_nothing_of_the_client)
{
    struct facts f = facts_of("a.example");
    struct address none = address_of("0.0.0.0");
    for (enum shown shown = SHOWN_PREFIX; shown <= SHOWN_NONE; shown++) {
        struct privacy p = { .client_addr = shown };
        for (enum client_basis basis = CLIENT_BY_NOTHING; basis <= CLIENT_BY_ORDER; basis++) {
            f.client_basis = (uint8_t)basis;
            struct facts stored = privacy_stored_facts(&p, &f);
            cr_expect(address_equal(&stored.client.address, &none));
            cr_expect_eq(stored.isn[CLIENT] | stored.isn[SERVER], 0);
            cr_expect_null(stored.proxied_client_ip);
            cr_expect_eq(address_equal(&stored.server.address, &none), privacy_server_is_guess(&f));
        }
    }
    f.client_basis = CLIENT_BY_PORT;
    cr_expect_not(privacy_server_is_guess(&f), "nobody calls from port 443");
    f.server.port = 50000;
    cr_expect(privacy_server_is_guess(&f));
    facts_done(&f);
}

Test(privacy, only_addresses_and_whole_hashes_are_read)
{
    static const char HASH[] = "00112233445566778899aabbccddeeff";
    struct address a;
    cr_expect(privacy_parse_client(HASH, &a));
    cr_expect_eq(a.octet[15], 0xff);
    for (size_t n = 0; n < sizeof HASH - 1; n++) {
        char cut[sizeof HASH] = "", changed[sizeof HASH];
        memcpy(cut, HASH, n);
        strcpy(changed, HASH);
        changed[n] = 'g';
        cr_expect_not(privacy_parse_client(cut, &a), "%s", cut);
        cr_expect_not(privacy_parse_client(changed, &a), "%s", changed);
    }
}

Test(privacy, a_key_is_made_once_for_its_owner_alone)
{
    char directory[64], path[128];
    path_in(make_directory(directory), "key", path);
    cr_assert_eq(privacy_make_key(path), STATUS_OK);
    cr_expect_eq(privacy_make_key(path), STATUS_IO, "none is written over");
    struct stat status;
    cr_assert_eq(stat(path, &status), 0);
    cr_expect_eq(status.st_mode & 0777, 0600);
    struct privacy p = { 0 }, q = { 0 };
    cr_assert_eq(privacy_read_key(&p, path), STATUS_OK);
    cr_assert_eq(privacy_read_key(&q, path), STATUS_OK);
    cr_expect_eq(memcmp(p.key, q.key, sizeof p.key), 0);
    remove_directory(directory);
}

static void write_content(const char *path, const uint8_t *content, size_t len)
{
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file);
    cr_assert_eq(fwrite(content, 1, len, file), len);
    cr_assert_eq(fclose(file), 0);
}

Test(privacy, keys_are_of_16_to_4096_bytes_without_white_space_behind)
{
    static const struct {
        size_t len, white;
        enum status status;
    } cases[] = { { 0, 0, STATUS_REFUSED },   { 15, 0, STATUS_REFUSED }, { 15, 9, STATUS_REFUSED },
                  { 16, 0, STATUS_OK },       { 16, 9, STATUS_OK },      { 4096, 0, STATUS_OK },
                  { 4096, 1, STATUS_REFUSED } };
    char directory[64], path[128];
    path_in(make_directory(directory), "key", path);
    struct privacy bare = { 0 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t content[5000];
        memset(content, 'k', sizeof content);
        memset(content + cases[i].len, '\n', cases[i].white);
        write_content(path, content, cases[i].len + cases[i].white);
        struct privacy p = { 0 };
        cr_expect_eq(privacy_read_key(&p, path), cases[i].status, "case %zu", i);
        if (cases[i].len == 16 && cases[i].white == 0)
            bare = p;
        if (cases[i].len == 16)
            cr_expect_eq(memcmp(p.key, bare.key, sizeof p.key), 0);
    }
    struct privacy p = { 0 };
    cr_expect_eq(privacy_read_key(&p, "/no/such/key"), STATUS_IO);
    cr_expect_eq(privacy_read_key(&p, directory), STATUS_IO);
    remove_directory(directory);
}
