/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is a file for --manifest. Whatever it holds: it is refused with a reason, or its labels
 * for any path are texts with something in them, and the same when asked again.
 */
#include "manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

static void check_label(const char *a, const char *b)
{
    check((a == NULL) == (b == NULL));
    check(a == NULL || (a[0] != '\0' && strcmp(a, b) == 0));
}

static void ask(const struct manifest *m, const char *path)
{
    struct labels first = { 0 }, second = { 0 };
    enum status status = manifest_labels(m, path, &first);
    check(status == STATUS_OK || status == STATUS_REFUSED);
    check(manifest_labels(m, path, &second) == status);
    check_label(first.site, second.site);
    check_label(first.host, second.host);
    check_label(first.region, second.region);
    check_label(first.other, second.other);
    labels_done(&first);
    labels_done(&second);
}

/* Paths out of the input itself are the likeliest to fit its globs. */
static void ask_for_lines(const struct manifest *m, const uint8_t *data, size_t size)
{
    char path[256];
    for (size_t at = 0, lines = 0; at < size && lines < 8; lines++) {
        size_t len = 0;
        for (; at < size && data[at] != '\n'; at++)
            if (len < sizeof path - 1 && data[at] != ',')
                path[len++] = (char)data[at];
        path[len] = '\0';
        ask(m, path);
        at++;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("manifest", MFD_CLOEXEC);
    check(fd >= 0 && (size == 0 || write(fd, data, size) == (ssize_t)size));
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct manifest *m = NULL;
    enum status status = manifest_open(path, &m);
    check(status == STATUS_OK || (status == STATUS_USAGE && manifest_error(m)[0] != '\0'));
    if (status == STATUS_OK) {
        ask(m, "");
        ask(m, "/");
        ask(m, "/captures/fra1/edge-a.pcap");
        ask_for_lines(m, data, size);
    }
    manifest_close(m);
    (void)close(fd);
    return 0;
}
