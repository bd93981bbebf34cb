/* SPDX-License-Identifier: Apache-2.0 */
/* Whole capture files, pcapng or classic, through capture.c as the program reads them. */
#include "capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads every octet of a view, for the sanitizer. */
static void touch(struct bytes b)
{
    (void)hash_stable(b);
}

static void read_capture(const char *path, const uint8_t *data, size_t size)
{
    struct capture *c = NULL;
    enum status status = capture_open(path, NULL, &c);
    if (status == STATUS_OK) {
        struct frame frame;
        uint64_t last_number = 0;
        while ((status = capture_next(c, &frame)) == STATUS_OK) {
            if (frame.number != last_number + 1 || frame.wire_len < frame.data.len)
                abort();
            last_number = frame.number;
            touch(frame.data);
            touch(capture_secrets(c));
        }
        struct hash128 whole = hash_stable((struct bytes){ data, size });
        struct hash128 content = capture_info(c).content;
        if (memcmp(&whole, &content, sizeof whole) != 0)
            abort();
    }
    if (status == STATUS_OK || (status != STATUS_END && capture_reason(c)[0] == '\0'))
        abort();
    capture_close(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int fd = memfd_create("capture", MFD_CLOEXEC);
    if (fd < 0 || (size > 0 && write(fd, data, size) != (ssize_t)size))
        abort();
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    read_capture(path, data, size);
    (void)close(fd);
    return 0;
}
