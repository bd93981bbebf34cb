/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WHOLE_FILE_H
#define WHOLE_FILE_H
/* Lists that people keep in files, read at once: networks, sites, manifests, rules. */
#include "buffer.h"
#include "status.h"

/*
 * Appends the content of a file, which may be a pipe. STATUS_IO: cannot be read (errno);
 * STATUS_REFUSED: it has more than size_max bytes; STATUS_NO_MEMORY. A failure leaves what was read
 * in the buffer, which is the caller's to free in any case.
 */
MUST_USE enum status whole_file_read(const char *path, size_t size_max, struct buffer *out);

#endif
