/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FUZZ_WHOLE_CAPTURE_H
#define FUZZ_WHOLE_CAPTURE_H
/* Whole capture files through capture.c as the program reads them, for the targets of formats. */
#include "capture.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Reads every octet of a view, for the sanitizer. */
static inline void touch(struct bytes b)
{
    (void)hash_stable(b);
}

static inline uint64_t read_frames(struct capture *c, struct bytes file)
{
    struct frame frame;
    uint64_t last_number = 0;
    enum status status;
    while ((status = capture_next(c, &frame)) == STATUS_OK) {
        if (frame.number != last_number + 1 || frame.wire_len < frame.data.len)
            abort();
        last_number = frame.number;
        touch(frame.data);
        touch(capture_secrets(c));
    }
    struct hash128 whole = hash_stable(file), content = capture_info(c).content;
    if (memcmp(&whole, &content, sizeof whole) != 0 ||
        (status != STATUS_END && capture_reason(c)[0] == '\0'))
        abort();
    return last_number;
}

/* The number of packets that the file gives, each of them looked at. */
static inline uint64_t read_capture(struct bytes file)
{
    struct capture *c = NULL;
    char path[64];
    uint64_t packets = 0;
    int fd = memfd_create("capture", MFD_CLOEXEC);
    if (fd < 0 || (file.len > 0 && write(fd, file.at, file.len) != (ssize_t)file.len))
        abort();
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (capture_open(path, NULL, &c) == STATUS_OK)
        packets = read_frames(c, file);
    else if (capture_reason(c)[0] == '\0')
        abort();
    capture_close(c);
    (void)close(fd);
    return packets;
}

#endif
