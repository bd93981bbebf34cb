/* SPDX-License-Identifier: Apache-2.0 */
#include "whole_file.h"

#include <criterion/criterion.h>
#include <unistd.h>

enum { LEN = (1 << 16) + 1 }; /* more than is read at once */

static void check_file_of(size_t len)
{
    static uint8_t wanted[LEN];
    char path[] = "/tmp/firstflight-test-XXXXXX";
    struct buffer content = { 0 };
    int fd = mkstemp(path);
    memset(wanted, 'x', LEN);
    cr_assert_eq(write(fd, wanted, len), (ssize_t)len);
    close(fd);
    cr_assert_eq(whole_file_read(path, len, &content), STATUS_OK);
    cr_assert_eq(content.len, len);
    cr_expect_eq(memcmp(content.at, wanted, len), 0);
    if (len > 0)
        cr_expect_eq(whole_file_read(path, len - 1, &content), STATUS_REFUSED);
    buffer_done(&content);
    unlink(path);
}

Test(whole_file, gives_all_bytes_up_to_the_size_allowed)
{
    check_file_of(0);
    check_file_of(1);
    check_file_of(LEN - 1);
    check_file_of(LEN);
}

Test(whole_file, says_what_cannot_be_read)
{
    struct buffer content = { 0 };
    cr_expect_eq(whole_file_read("/no/such/file", LEN, &content), STATUS_IO);
    cr_expect_eq(whole_file_read("/tmp", LEN, &content), STATUS_IO);
    cr_expect_eq(content.len, 0);
    buffer_done(&content);
}
