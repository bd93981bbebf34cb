/* SPDX-License-Identifier: Apache-2.0 */
/* What databases say is tried in test_region.c. */
#include "mmdb.h"

#include <criterion/criterion.h>

Test(mmdb, paths_to_values)
{
    static const char *const GOOD[] = { "a", "continent.code", "subdivisions.0.iso_code",
                                        "1.2.3.4.5.6.7.8" };
    static const char *const BAD[] = { "", ".", "a.", ".a", "a..b", "1.2.3.4.5.6.7.8.9" };
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++)
        cr_expect(mmdb_path_is_valid(GOOD[i]), "%s", GOOD[i]);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++)
        cr_expect_not(mmdb_path_is_valid(BAD[i]), "%s", BAD[i]);
}

Test(mmdb, what_is_no_database_is_refused_with_a_reason)
{
    static const char *const PATHS[] = { "/no/such/file", "/", "/dev/null" };
    for (size_t i = 0; i < sizeof PATHS / sizeof *PATHS; i++) {
        struct mmdb *m = NULL;
        const char *reason = NULL;
        cr_expect_neq(mmdb_open(PATHS[i], "continent.code", &m, &reason), STATUS_OK);
        cr_expect_not_null(reason, "%s", PATHS[i]);
        cr_expect_null(m);
    }
    mmdb_close(NULL);
}
