/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SOURCE_H
#define SOURCE_H
/*
 * A file, a pipe or standard input as a stream of bytes that passes a hash on its way, decompressed
 * if it was compressed (inflate.h). The readers of file formats stand on it, so that they need not
 * know where bytes come from, and so that the hash of a whole file costs no second reading.
 * Positions, the hash and what is given count decompressed bytes.
 */
#include "bytes.h"
#include "hash.h"
#include "status.h"

struct source;

/* Bytes that can be looked at before they are read. */
enum { SOURCE_PEEK_MAX = 4096 };

/* What is read of a pipe behind damage: an endless writer must not keep us for ever. */
enum { SOURCE_PIPE_REST_MAX = 256 * 1024 * 1024 };

/*
 * Opens a regular file, a pipe, or standard input for "-". On failure *ret_source is still set
 * (unless STATUS_NO_MEMORY) so that source_error() can be asked, and must be closed.
 * STATUS_IO: cannot be opened, or is compressed in a way this program was built without;
 * STATUS_REFUSED: a directory, a device, a terminal.
 */
MUST_USE enum status source_open(const char *path, struct source **ret_source);

void source_close(struct source *s); /* NULL is accepted */

/*
 * The first bytes of what is left, up to n (at most SOURCE_PEEK_MAX), without reading them; fewer
 * only at the end. To be asked before the first source_read(). The view lives until then.
 */
struct bytes source_peek(struct source *s, size_t n);

/*
 * Reads up to size bytes, at least one unless the end or a failure is reached: then 0, and
 * source_error() tells them apart.
 */
size_t source_read(struct source *s, uint8_t *buffer, size_t size);

/* Bytes read so far. */
uint64_t source_position(const struct source *s);

/*
 * Reads what is left, for the hash alone: of a file up to its end (not beyond the size it had when
 * it was opened, where somebody writes on), of a pipe at most SOURCE_PIPE_REST_MAX.
 */
void source_read_rest(struct source *s);

/* Stable hash of all bytes read. */
struct hash128 source_hash(const struct source *s);

/* Stable hash of the first len bytes of a file; false when it has not so many, or cannot be read.
 */
bool source_hash_begin(const char *path, uint64_t len, struct hash128 *ret_hash);

/* Why opening or reading failed; NULL when nothing did. Lives as long as s. */
const char *source_error(const struct source *s);

/*
 * Whose fault it is: STATUS_DAMAGED when compressed bytes are cut or broken, or grow without
 * bounds; STATUS_IO; STATUS_NO_MEMORY; STATUS_OK while nothing failed. What was given before is
 * good.
 */
enum status source_status(const struct source *s);

/* Of the libraries that decompress, for --version; NULL behind the last. */
const char *source_library_version(unsigned index);

#endif
