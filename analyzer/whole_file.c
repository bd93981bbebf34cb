/* SPDX-License-Identifier: Apache-2.0 */
#include "whole_file.h"

#include <errno.h>
#include <stdio.h>

enum { STEP_LEN = 1 << 16 };

static enum status read_to_end(FILE *file, size_t size_max, struct buffer *out)
{
    size_t begin = out->len, got;
    do {
        if (!buffer_reserve(out, STEP_LEN))
            return STATUS_NO_MEMORY;
        got = fread(out->at + out->len, 1, STEP_LEN, file);
        out->len += got;
        if (out->len - begin > size_max)
            return STATUS_REFUSED;
    } while (got > 0);
    return ferror(file) ? STATUS_IO : STATUS_OK;
}

enum status whole_file_read(const char *path, size_t size_max, struct buffer *out)
{
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return STATUS_IO;
    enum status status = read_to_end(file, size_max, out);
    int reason = errno;
    (void)fclose(file);
    errno = reason;
    return status;
}
