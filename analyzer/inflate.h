/* SPDX-License-Identifier: Apache-2.0 */
#ifndef INFLATE_H
#define INFLATE_H
/*
 * The bytes of a file that gzip, zstd, lz4, xz or bzip2 compressed, made by the libraries that have
 * a decoder (decoder.h) to what they were before. Several members in a row are one stream. Used by
 * source.c, and by readahead.c, whose thread decompresses all but the beginning.
 */
#include "bytes.h"
#include "status.h"

struct inflate;

/* Bytes that can be looked at before they are read. */
enum { INFLATE_PEEK_MAX = 4096 };

/*
 * A stream is decompression bombing, and ends as damaged, where it has given more than the first
 * and more than the second times its own length. Captures shrink to a half or a tenth, and those
 * of a test with nothing but zeros in the payload to a fiftieth.
 */
#define INFLATE_ANY_RATIO_MAX ((uint64_t)1024 * 1024 * 1024)
enum { INFLATE_RATIO_MAX = 250 };

/* The method, as "gzip", that the first bytes of a file tell; NULL when they tell none. */
const char *inflate_method(struct bytes start);

/* How many first bytes tell it. */
enum { INFLATE_MAGIC_LEN = 6 };

/*
 * Starts to decompress what is read from fd; `start` was read from it before (at most
 * INFLATE_PEEK_MAX bytes, of which inflate_method() is not NULL) and is copied. fd stays the
 * caller's and must be open until inflate_close(). On failure *ret_inflate is still set (unless
 * STATUS_NO_MEMORY) so that inflate_error() can be asked, and must be closed. STATUS_REFUSED: this
 * program was built without a library for the method.
 */
MUST_USE enum status inflate_open(int fd, struct bytes start, struct inflate **ret_inflate);

void inflate_close(struct inflate *p); /* NULL is accepted */

/*
 * Whoever waits for a pipe to be written to waits no more, and the stream ends, once stop_event can
 * be read; it stays the caller's. -1 = none, as at the beginning.
 */
void inflate_set_stop_event(struct inflate *p, int stop_event);

/*
 * The first decompressed bytes, up to n (at most INFLATE_PEEK_MAX), without reading them; fewer
 * only at the end. To be asked before the first inflate_read(). The view lives until then.
 */
struct bytes inflate_peek(struct inflate *p, size_t n);

/*
 * Reads up to size decompressed bytes, at least one unless the end or a failure is reached. Of a
 * stream that is cut or broken everything comes that the library gives: all of gzip by zlib and
 * of xz by liblzma, all blocks that are whole of the others by libarchive.
 */
size_t inflate_read(struct inflate *p, uint8_t *buffer, size_t size);

/*
 * Why inflate_read() gave nothing: STATUS_END; STATUS_DAMAGED, the stream is cut, broken or a bomb;
 * STATUS_IO, the file cannot be read; STATUS_NO_MEMORY. STATUS_OK before that.
 */
enum status inflate_status(const struct inflate *p);

/* Text of the failure, with the place in the compressed file; lives as long as p. */
const char *inflate_error(const struct inflate *p);

/* "zlib 1.2.13", for --version: of the libraries that are built in; NULL behind the last. */
const char *inflate_library_version(unsigned index);

#endif
