/* SPDX-License-Identifier: Apache-2.0 */
#include "region.h"

#include "mmdb.h"
#include "prefix_set.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- helpers ---- */

static struct bytes text_of(const char *string)
{
    return (struct bytes){ (const uint8_t *)string, strlen(string) };
}

static struct regions *regions_with(const char *csv)
{
    struct regions *r = regions_open(NULL);
    cr_assert_not_null(r);
    cr_assert_eq(regions_add_text(r, "test", text_of(csv)), STATUS_OK, "%s", csv);
    return r;
}

static struct region find(const struct regions *r, const char *address)
{
    struct address a;
    cr_assert(address_parse(address, &a), "%s", address);
    return regions_find(r, &a);
}

/* "region country", with "-" for what is not said. */
static void assert_place(const struct regions *r, const char *address, const char *expected)
{
    struct region found = find(r, address);
    char text[160];
    snprintf(text, sizeof text, "%s %s", found.region ? found.region : "-",
             found.country ? found.country : "-");
    cr_assert_str_eq(text, expected, "%s: '%s' instead of '%s'", address, text, expected);
}

static void assert_one_line(const char *csv, const char *address, const char *expected)
{
    struct regions *r = regions_with(csv);
    assert_place(r, address, expected);
    cr_assert_eq(regions_bad_lines(r), 0, "%s", csv);
    regions_close(r);
}

/* A file of the test's own with that content; the name is to be removed by the caller. */
static void write_file(char *path, const void *content, size_t len)
{
    int fd = mkstemps(path, 5);
    cr_assert_geq(fd, 0);
    cr_assert_eq(write(fd, content, len), (ssize_t)len);
    close(fd);
}

/* ---- lines ---- */

Test(region, every_form_of_a_geofeed_line_is_read)
{
    assert_one_line("192.0.2.0/24,DE,DE-HE,Frankfurt,\n", "192.0.2.77", "DE-HE DE");
    assert_one_line("192.0.2.0/24,DE,DE-HE,Frankfurt", "192.0.2.77", "DE-HE DE");
    assert_one_line("192.0.2.0/24,DE,,,\n", "192.0.2.77", "DE DE");
    assert_one_line("192.0.2.0/24,DE,\n", "192.0.2.77", "DE DE");
    assert_one_line("192.0.2.0/24,DE\n", "192.0.2.77", "DE DE");
    assert_one_line("192.0.2.0/24,de,de-he\n", "192.0.2.77", "de-he DE");
    assert_one_line("192.0.2.0/24,,,,\n", "192.0.2.77", "- -");
    assert_one_line("192.0.2.0/24\n", "192.0.2.77", "- -");
    assert_one_line("192.0.2.7,DE,DE-HE\n", "192.0.2.7", "DE-HE DE");
    assert_one_line("192.0.2.7,DE,DE-HE\n", "192.0.2.8", "- -");
    assert_one_line("2001:DB8:A::/48,JP,JP-13,Tokyo,\n", "2001:db8:a::1", "JP-13 JP");
    assert_one_line("  192.0.2.0/24 ,\tDE , DE-HE ,Frankfurt,\n", "192.0.2.77", "DE-HE DE");
    assert_one_line("\"192.0.2.0/24\",\"DE\",\"DE-HE\",\"a, b\",\n", "192.0.2.77", "DE-HE DE");
    assert_one_line("192.0.2.0/24,DE,DE-HE,Z\xc3\xbcrich,\n", "192.0.2.77", "DE-HE DE");
    assert_one_line("192.0.2.0/24,DE,DE-HE,, # moved in May\n", "192.0.2.77", "DE-HE DE");
    assert_one_line("192.0.2.0/24,DE # moved\n", "192.0.2.77", "DE DE");
}

Test(region, plain_lists_name_regions_as_they_like)
{
    assert_one_line("192.0.2.0/24,emea-west\n", "192.0.2.77", "emea-west -");
    assert_one_line("192.0.2.0/24,\"North, \"\"old\"\"\"\n", "192.0.2.77", "North, \"old\" -");
    assert_one_line("192.0.2.0/24,emea west,office\n", "192.0.2.77", "emea west -");
}

#define BYTE_ORDER_MARK "\xef\xbb\xbf"

Test(region, comments_headers_and_line_ends_are_no_lines)
{
    static const char *const FILES[] = {
        "# a comment, with a comma\n192.0.2.0/24,DE,DE-HE\n",
        "\n\n  \n192.0.2.0/24,DE,DE-HE\n\n# end",
        "ip_prefix,alpha2code,region,city,postal_code\n192.0.2.0/24,DE,DE-HE\n",
        "# c\nIP Prefix,Country\n192.0.2.0/24,DE,DE-HE\n",
        "192.0.2.0/24,DE,DE-HE\r\n198.51.100.0/24,FR\r\n",
        "# c\r192.0.2.0/24,DE,DE-HE\r",
        BYTE_ORDER_MARK "192.0.2.0/24,DE,DE-HE\n",
        BYTE_ORDER_MARK "# c\n192.0.2.0/24,DE,DE-HE\n",
        " # \xff\xfe binary in a comment\n192.0.2.0/24,DE,DE-HE\n",
    };
    for (size_t i = 0; i < sizeof FILES / sizeof *FILES; i++)
        assert_one_line(FILES[i], "192.0.2.77", "DE-HE DE");
}

Test(region, bad_lines_are_counted_and_change_nothing_else)
{
    static const char *const LINES[] = {
        "192.0.2.1/24,US",          /* host bits */
        "2001:db8::1/32,US",        /* host bits */
        "192.0.2.0/33,US",          /* too long */
        "2001:db8::/129,US",        /* too long */
        "192.0.2.0/,US",            /* no length */
        "192.0.2.0/ 24,US",         /* blank inside */
        "192.0.2.0/-1,US",          /* negative */
        "192.0.2.0/4294967320,US",  /* 24 after a wrap of 32 bits */
        "192.0.2/24,US",            /* not an address */
        "192.0.2.0-192.0.2.255,US", /* a range */
        "example,US",               /* a name, not in the first line */
        ",US,US-CA",                /* no prefix */
        "192.0.2.0/24,\"US",        /* open quote */
        "192.0.2.0/24,\x01",        /* control character */
        "192.0.2.0/24,\x1b[2J",     /* terminal escape */
        "192.0.2.0/24,\xc3\xa9",    /* not ASCII */
        "192.0.2.0/24,a234567890123456789012345678901234567890123456789012345678901234",
    };
    for (size_t i = 0; i < sizeof LINES / sizeof *LINES; i++) {
        char csv[256];
        snprintf(csv, sizeof csv, "192.0.2.0/24,DE\n%s\n198.51.100.0/24,FR\n", LINES[i]);
        struct regions *r = regions_with(csv);
        cr_assert_eq(regions_bad_lines(r), 1, "%s", LINES[i]);
        assert_place(r, "192.0.2.77", "DE DE");
        assert_place(r, "198.51.100.1", "FR FR");
        regions_close(r);
    }
}

/* ---- prefixes ---- */

Test(region, the_longest_prefix_wins_wherever_it_stands)
{
    static const char CSV[] = "2803:b850:1::/48,CO,CO-DC\n10.1.0.0/16,FR\n2803:b850::/32,CO\n"
                              "10.0.0.0/8,DE\n10.1.2.0/24,IT\n10.1.2.3/32,ES\n10.255.255.255,PT\n";
    struct regions *r = regions_with(CSV);
    assert_place(r, "9.255.255.255", "- -");
    assert_place(r, "10.0.0.0", "DE DE");
    assert_place(r, "10.1.0.0", "FR FR");
    assert_place(r, "10.1.2.2", "IT IT");
    assert_place(r, "10.1.2.3", "ES ES");
    assert_place(r, "10.1.2.4", "IT IT");
    assert_place(r, "10.1.3.0", "FR FR");
    assert_place(r, "10.2.0.0", "DE DE");
    assert_place(r, "10.255.255.255", "PT PT");
    assert_place(r, "11.0.0.0", "- -");
    assert_place(r, "2803:b850:1::9", "CO-DC CO");
    assert_place(r, "2803:b850:2::9", "CO CO");
    regions_close(r);
}

Test(region, of_equal_prefixes_the_last_wins)
{
    struct regions *r = regions_with("10.0.0.0/8,DE\n10.0.0.0/16,IT\n10.0.0.0/8,FR\n");
    assert_place(r, "10.0.0.1", "IT IT");
    assert_place(r, "10.9.0.1", "FR FR");
    regions_close(r);
}

Test(region, a_prefix_without_location_makes_a_hole)
{
    struct regions *r = regions_with("147.185.0.0/16,US\n147.185.221.0/24,,,,\n");
    assert_place(r, "147.185.220.1", "US US");
    assert_place(r, "147.185.221.1", "- -");
    assert_place(r, "147.185.222.1", "US US");
    regions_close(r);
}

Test(region, default_routes_answer_for_their_own_family)
{
    struct regions *r = regions_with("::/0,JP\n");
    assert_place(r, "2001:db8::1", "JP JP");
    assert_place(r, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "JP JP");
    assert_place(r, "192.0.2.1", "- -");
    regions_close(r);
    r = regions_with("0.0.0.0/0,DE\n");
    assert_place(r, "0.0.0.0", "DE DE");
    assert_place(r, "255.255.255.255", "DE DE");
    assert_place(r, "2001:db8::1", "- -");
    assert_place(r, "::1", "- -");
    regions_close(r);
}

/* A naive search to compare with. */
enum { MODEL_PREFIXES = 300, MODEL_LOOKUPS = 3000, MODEL_ROUNDS = 40 };

struct model_prefix {
    struct address first;
    unsigned bits;
    unsigned region;
};

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Addresses of a small part of the space, so that prefixes nest and touch often. */
static struct address random_address(uint64_t *state)
{
    struct address a = { { 0x20, 0x01, 0x0d, 0xb8 } };
    if (next_random(state) % 2)
        a = address_of_ipv4((const uint8_t[4]){ 10, 0, 0, 0 });
    for (unsigned i = 13; i < 16; i++)
        a.octet[i] =
            (uint8_t)(next_random(state) % 3 ? next_random(state) % 4 : next_random(state));
    return a;
}

static const struct model_prefix *model_find(const struct model_prefix *model,
                                             const struct address *a)
{
    const struct model_prefix *best = NULL;
    for (size_t i = 0; i < MODEL_PREFIXES; i++) {
        struct address cut = address_prefix(a, model[i].bits);
        if (address_equal(&cut, &model[i].first) && (!best || model[i].bits >= best->bits))
            best = &model[i];
    }
    return best;
}

static struct regions *model_regions(struct model_prefix *model, uint64_t *state)
{
    static const unsigned BITS[] = { 104, 110, 112, 119, 120, 121, 124, 126, 127, 128 };
    char csv[MODEL_PREFIXES * 80];
    size_t len = 0;
    for (unsigned i = 0; i < MODEL_PREFIXES; i++) {
        struct address a = random_address(state);
        unsigned bits = BITS[next_random(state) % (sizeof BITS / sizeof *BITS)];
        model[i] = (struct model_prefix){ address_prefix(&a, bits), bits, i % 50 };
        char text[ADDRESS_TEXT_SIZE];
        bool ipv4 = address_is_ipv4(&a);
        len +=
            (size_t)snprintf(csv + len, sizeof csv - len, "%s/%u,region %u\n",
                             address_text(&model[i].first, text), ipv4 ? bits - 96 : bits, i % 50);
    }
    struct regions *r = regions_with(csv);
    cr_assert_eq(regions_bad_lines(r), 0);
    return r;
}

Test(region, lookup_equals_a_naive_search_over_random_prefixes)
{
    uint64_t state = 1;
    for (unsigned round = 0; round < MODEL_ROUNDS; round++) {
        struct model_prefix model[MODEL_PREFIXES];
        struct regions *r = model_regions(model, &state);
        for (unsigned i = 0; i < MODEL_LOOKUPS; i++) {
            struct address a = random_address(&state);
            const struct model_prefix *best = model_find(model, &a);
            char expected[40] = "- -", text[ADDRESS_TEXT_SIZE];
            if (best)
                snprintf(expected, sizeof expected, "region %u -", best->region);
            assert_place(r, address_text(&a, text), expected);
        }
        regions_close(r);
    }
}

/* ---- hostile files ---- */

Test(region, every_truncation_of_a_file_is_survived)
{
    static const char CSV[] =
        "\xef\xbb\xbf# c\r\nprefix,country\r\n\"192.0.2.0/24\",DE,\"DE-HE\",,\r\n"
        "2001:db8::/32,JP,JP-13,\"Tok\"\"yo\",\n10.0.0.0/8,,\n10.1.0.0/16,x y\n";
    for (size_t len = 0; len < sizeof CSV; len++) {
        char *copy = malloc(len + 1);
        memcpy(copy, CSV, len);
        struct regions *r = regions_open(NULL);
        enum status status = regions_add_text(r, "cut", (struct bytes){ (uint8_t *)copy, len });
        cr_assert(status == STATUS_OK || status == STATUS_REFUSED, "%zu", len);
        cr_assert_leq(regions_bad_lines(r), 1, "%zu", len);
        regions_close(r);
        free(copy);
    }
}

Test(region, binary_long_lines_and_zero_bytes_are_refused_or_counted)
{
    enum { SIZE = 1 << 16 };
    uint8_t *content = malloc(SIZE);
    for (int fill = 0; fill < 256; fill++) {
        memset(content, fill, SIZE);
        struct regions *r = regions_open(NULL);
        enum status status = regions_add_text(r, "fill", (struct bytes){ content, SIZE });
        bool nothing = fill == '\n' || fill == '\r' || fill == ' ' || fill == '\t' || fill == '#';
        bool header = (fill >= 'a' && fill <= 'z') || (fill >= 'A' && fill <= 'Z');
        cr_assert(header || status == (nothing ? STATUS_OK : STATUS_REFUSED), "byte %d", fill);
        regions_close(r);
    }
    uint64_t state = 7;
    for (size_t i = 0; i < SIZE; i++)
        content[i] = (uint8_t)next_random(&state);
    struct regions *r = regions_open(NULL);
    cr_assert_eq(regions_add_text(r, "noise", (struct bytes){ content, SIZE }), STATUS_REFUSED);
    cr_assert_not_null(strstr(regions_error(r), "noise"));

    static const uint8_t ZEROS[] = "192.0.2.0/24,D\0E\n198.51.100.0/24,FR\n203.0.113.0\0/24,IT\n";
    cr_assert_eq(regions_add_text(r, "zeros", (struct bytes){ ZEROS, sizeof ZEROS - 1 }),
                 STATUS_OK);
    cr_assert_eq(regions_bad_lines(r), 2);
    assert_place(r, "198.51.100.1", "FR FR");
    assert_place(r, "192.0.2.1", "- -");
    regions_close(r);
    free(content);
}

/* ---- several files ---- */

Test(region, the_first_file_that_has_a_region_answers)
{
    struct regions *r = regions_with("10.0.0.0/8,DE\n10.1.0.0/16,,\n");
    cr_assert_eq(regions_add_text(r, "second", text_of("10.0.0.0/7,FR\n")), STATUS_OK);
    assert_place(r, "10.0.0.1", "DE DE");
    assert_place(r, "10.1.0.1", "FR FR");
    assert_place(r, "11.0.0.1", "FR FR");
    assert_place(r, "12.0.0.1", "- -");
    regions_close(r);
}

Test(region, an_empty_set_knows_nothing)
{
    struct regions *r = regions_open(NULL);
    assert_place(r, "192.0.2.1", "- -");
    cr_assert_eq(find(r, "192.0.2.1").asn, 0);
    regions_close(r);
    regions_close(NULL);
}

Test(region, files_are_read_and_missing_ones_named)
{
    char path[] = "/tmp/region-XXXXXX.csv_";
    static const char CSV[] = "192.0.2.0/24,DE,DE-HE\n";
    write_file(path, CSV, sizeof CSV - 1);
    struct regions *r = regions_open(NULL);
    cr_assert_eq(regions_add_file(r, path), STATUS_OK);
    assert_place(r, "192.0.2.1", "DE-HE DE");
    cr_assert_eq(regions_add_file(r, "/nowhere/feed.csv"), STATUS_IO);
    cr_assert_not_null(strstr(regions_error(r), "/nowhere/feed.csv"));
    cr_assert_eq(regions_add_file(r, "/"), STATUS_IO);
    assert_place(r, "192.0.2.1", "DE-HE DE");
    regions_close(r);
    unlink(path);
}

/* ---- MaxMind databases ---- */

/* The format's own writer is in other languages: a database for one prefix, made by hand. */
struct database {
    uint8_t octet[4096];
    size_t len;
};

static void put(struct database *d, const void *from, size_t len)
{
    cr_assert_leq(d->len + len, sizeof d->octet);
    memcpy(d->octet + d->len, from, len);
    d->len += len;
}

static void put_octet(struct database *d, unsigned value)
{
    uint8_t octet = (uint8_t)value;
    put(d, &octet, 1);
}

static void put_map(struct database *d, unsigned pairs)
{
    put_octet(d, 7u << 5 | pairs);
}

static void put_array(struct database *d, unsigned items)
{
    put_octet(d, items);
    put_octet(d, 11 - 7);
}

static void put_text(struct database *d, const char *text)
{
    size_t len = strlen(text);
    cr_assert_lt(len, 29);
    put_octet(d, 2u << 5 | (unsigned)len);
    put(d, text, len);
}

/* Type 5 is a number of 16 bits, 6 of 32. */
static void put_number(struct database *d, const char *key, unsigned type, uint32_t value)
{
    put_text(d, key);
    unsigned octets = type == 5 ? 2 : 4;
    put_octet(d, type << 5 | octets);
    while (octets-- > 0)
        put_octet(d, value >> 8 * octets);
}

/* A tree in which 192.0.2.0/24 has the first entry of the data, and everything else none. */
static struct database database_start(void)
{
    enum { NODES = 24, NO_DATA = NODES, FIRST_ENTRY = NODES + 16 };
    static const uint32_t PREFIX = 0xc00002;
    struct database d = { 0 };
    for (unsigned i = 0; i < NODES; i++) {
        unsigned next = i + 1 < NODES ? i + 1 : FIRST_ENTRY;
        bool right = PREFIX >> (NODES - 1 - i) & 1;
        unsigned record[2] = { right ? NO_DATA : next, right ? next : NO_DATA };
        for (unsigned side = 0; side < 2; side++) {
            put_octet(&d, 0);
            put_octet(&d, 0);
            put_octet(&d, record[side]);
        }
    }
    put(&d, (const uint8_t[16]){ 0 }, 16);
    return d;
}

static void database_end(struct database *d)
{
    put(d, "\xab\xcd\xefMaxMind.com", 14);
    put_map(d, 9);
    put_number(d, "node_count", 6, 24);
    put_number(d, "record_size", 5, 24);
    put_number(d, "ip_version", 5, 4);
    put_text(d, "database_type");
    put_text(d, "Test");
    put_number(d, "binary_format_major_version", 5, 2);
    put_number(d, "binary_format_minor_version", 5, 0);
    put_text(d, "build_epoch");
    put_octet(d, 1); /* one octet of an extended type: number of 64 bits */
    put_octet(d, 9 - 7);
    put_octet(d, 1);
    put_text(d, "languages");
    put_array(d, 0);
    put_text(d, "description");
    put_map(d, 0);
}

/* The answer of a database for its prefix; it must have none for any other address. */
static void assert_database(struct database *d, const char *place, int64_t asn)
{
    database_end(d);
    char path[] = "/tmp/region-XXXXXX.mmdb";
    write_file(path, d->octet, d->len);
    struct regions *r = regions_open(NULL);
    enum status status = regions_add_file(r, path);
    unlink(path);
    if (mmdb_version() == NULL) {
        cr_assert_eq(status, STATUS_REFUSED);
    } else {
        cr_assert_eq(status, STATUS_OK, "%s", regions_error(r));
        assert_place(r, "192.0.2.77", place);
        assert_place(r, "192.0.3.77", "- -");
        assert_place(r, "2001:db8::1", "- -");
        cr_assert_eq(find(r, "192.0.2.77").asn, asn);
        cr_assert_eq(find(r, "192.0.2.77").region, find(r, "192.0.2.1").region);
    }
    regions_close(r);
}

Test(region, database_with_countries)
{
    struct database d = database_start();
    put_map(&d, 1);
    put_text(&d, "country");
    put_map(&d, 1);
    put_text(&d, "iso_code");
    put_text(&d, "DE");
    assert_database(&d, "DE DE", 0);
}

Test(region, database_with_subdivisions_and_cities)
{
    struct database d = database_start();
    put_map(&d, 3);
    put_text(&d, "city");
    put_map(&d, 1);
    put_text(&d, "names");
    put_map(&d, 1);
    put_text(&d, "en");
    put_text(&d, "Frankfurt am Main");
    put_text(&d, "country");
    put_map(&d, 1);
    put_text(&d, "iso_code");
    put_text(&d, "DE");
    put_text(&d, "subdivisions");
    put_array(&d, 1);
    put_map(&d, 1);
    put_text(&d, "iso_code");
    put_text(&d, "HE");
    assert_database(&d, "DE-HE DE", 0);
}

Test(region, database_with_a_city_alone)
{
    struct database d = database_start();
    put_map(&d, 2);
    put_text(&d, "city");
    put_map(&d, 1);
    put_text(&d, "names");
    put_map(&d, 1);
    put_text(&d, "en");
    put_text(&d, "Frankfurt am Main");
    put_text(&d, "registered_country");
    put_map(&d, 1);
    put_text(&d, "iso_code");
    put_text(&d, "DE");
    assert_database(&d, "Frankfurt am Main DE", 0);
}

Test(region, database_of_flat_layout)
{
    struct database d = database_start();
    put_map(&d, 3);
    put_text(&d, "country_code");
    put_text(&d, "DE");
    put_text(&d, "state1");
    put_text(&d, "Hesse");
    put_text(&d, "city");
    put_text(&d, "Frankfurt am Main");
    assert_database(&d, "Hesse DE", 0);
}

Test(region, database_with_as_numbers)
{
    struct database d = database_start();
    put_map(&d, 1);
    put_number(&d, "autonomous_system_number", 6, 4200000000u);
    assert_database(&d, "- -", 4200000000);
}

Test(region, database_with_as_numbers_as_text)
{
    struct database d = database_start();
    put_map(&d, 1);
    put_text(&d, "asn");
    put_text(&d, "AS64500");
    assert_database(&d, "- -", 64500);
}

Test(region, a_damaged_database_is_refused_or_says_nothing)
{
    struct database whole = database_start();
    put_map(&whole, 1);
    put_text(&whole, "country");
    put_map(&whole, 1);
    put_text(&whole, "iso_code");
    put_text(&whole, "DE");
    database_end(&whole);
    for (size_t at = 0; at < whole.len; at++) {
        struct database d = whole;
        d.octet[at] ^= 0xff;
        char path[] = "/tmp/region-XXXXXX.mmdb";
        write_file(path, d.octet, d.len);
        struct regions *r = regions_open(NULL);
        if (regions_add_file(r, path) == STATUS_OK)
            find(r, "192.0.2.77");
        else
            cr_assert_neq(regions_error(r)[0], '\0');
        regions_close(r);
        unlink(path);
    }
}

/* ---- sets of prefixes ---- */

static bool contains(const struct prefix_set *s, const char *address)
{
    struct address a;
    cr_assert(address_parse(address, &a));
    return prefix_set_contains(s, &a);
}

Test(region, a_prefix_set_is_a_list_or_a_file)
{
    static const char LINES[] =
        "# ours\r\nprefix,note\r\n192.0.2.0/24,caf\xc3\xa9\n\n2001:DB8::/32\n";
    char path[] = "/tmp/region-XXXXXX.txt_";
    write_file(path, LINES, sizeof LINES - 1);
    const char *const FORMS[] = { "192.0.2.0/24,2001:db8::/32", "192.0.2.0/24, 2001:db8::/32",
                                  path };
    for (size_t i = 0; i < sizeof FORMS / sizeof *FORMS; i++) {
        struct prefix_set *s = NULL;
        cr_assert_eq(prefix_set_open(FORMS[i], &s), STATUS_OK, "%s", FORMS[i]);
        cr_assert(contains(s, "192.0.2.0"));
        cr_assert(contains(s, "192.0.2.255"));
        cr_assert_not(contains(s, "192.0.3.0"));
        cr_assert_not(contains(s, "192.0.1.255"));
        cr_assert(contains(s, "2001:db8:ffff::1"));
        cr_assert_not(contains(s, "2001:db9::"));
        prefix_set_close(s);
    }
    unlink(path);
}

Test(region, a_prefix_set_may_hold_everything)
{
    struct prefix_set *s = NULL;
    cr_assert_eq(prefix_set_open("0.0.0.0/0", &s), STATUS_OK);
    cr_assert(contains(s, "192.0.2.1"));
    cr_assert_not(contains(s, "2001:db8::1"));
    prefix_set_close(s);
}

Test(region, a_prefix_set_is_not_read_in_part)
{
    struct prefix_set *s = NULL;
    cr_assert_eq(prefix_set_open("192.0.2.0/24,192.0.2.1/24", &s), STATUS_IO);
    cr_assert_eq(prefix_set_open("/nowhere", &s), STATUS_IO);
    char path[] = "/tmp/region-XXXXXX.txt_";
    write_file(path, "192.0.2.0/24\n192.0.2.1/24\n", 26);
    cr_assert_eq(prefix_set_open(path, &s), STATUS_REFUSED);
    cr_assert_null(s);
    unlink(path);
    prefix_set_close(NULL);
}
