/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edge to libarchive, for what has no edge of its own. Only the method that is named is offered to
 * it: no chain of filters, and never an external program, to which libarchive turns for a method
 * that it was built without. Of a stream that is cut or broken it keeps up to 64 KiB of gzip and xz
 * back that it decoded; of the others it gives all blocks that are whole.
 */
#include "decoder.h"

#ifdef HAVE_LIBARCHIVE

#include <archive.h>
#include <errno.h>
#include <stdlib.h>

struct unarchive {
    struct packed *in;
    struct archive *archive;
    enum decoding opened; /* DECODING_MORE: there is content */
    const char *words;    /* instead of libarchive's own */
    struct bytes pending; /* of libarchive, not given yet */
};

/* libarchive asks for compressed bytes. */
static la_ssize_t take(struct archive *archive, void *cookie, const void **ret_bytes)
{
    struct packed *in = ((struct unarchive *)cookie)->in;
    bool has_more = packed_has_more(in);
    struct bytes piece = in->rest;
    *ret_bytes = piece.at;
    in->rest = bytes_after(in->rest, piece.len);
    if (has_more || in->error == 0)
        return (la_ssize_t)piece.len;
    archive_set_error(archive, in->error, "%s", strerror(in->error));
    return -1;
}

static enum decoding failed(struct unarchive *u)
{
    if (archive_errno(u->archive) == ENOMEM)
        return DECODING_NO_MEMORY;
    if (u->in->ended)
        return DECODING_CUT;
    packed_give_back(u->in, u->in->received - (uint64_t)archive_filter_bytes(u->archive, -1));
    return DECODING_BROKEN;
}

static int offer(struct archive *archive, const char *method)
{
    static const struct {
        const char *name;
        int (*offer)(struct archive *);
    } FILTERS[] = {
        { "gzip", archive_read_support_filter_gzip },
        { "zstd", archive_read_support_filter_zstd },
        { "lz4", archive_read_support_filter_lz4 },
        { "xz", archive_read_support_filter_xz },
        { "bzip2", archive_read_support_filter_bzip2 },
    };
    for (size_t i = 0; i < sizeof FILTERS / sizeof FILTERS[0]; i++)
        if (strcmp(FILTERS[i].name, method) == 0)
            return FILTERS[i].offer(archive);
    return ARCHIVE_FATAL;
}

/*
 * In the raw format a stream is one entry; without content it is not even that. libarchive passes
 * on as it is what has the first bytes of the method but no whole header.
 */
static enum decoding begin(struct unarchive *u, const char *method)
{
    struct archive_entry *entry;
    if (archive_read_support_format_raw(u->archive) != ARCHIVE_OK ||
        archive_read_support_format_empty(u->archive) != ARCHIVE_OK ||
        offer(u->archive, method) != ARCHIVE_OK) {
        u->words = "the libarchive here was built without that method";
        return DECODING_BROKEN;
    }
    if (archive_read_open(u->archive, u, NULL, take, NULL) != ARCHIVE_OK)
        return failed(u);
    if (archive_filter_code(u->archive, 0) == ARCHIVE_FILTER_NONE) {
        u->words = "no header of that kind";
        return failed(u);
    }
    int result = archive_read_next_header(u->archive, &entry);
    if (result == ARCHIVE_EOF)
        return DECODING_DONE;
    return result == ARCHIVE_OK ? DECODING_MORE : failed(u);
}

static void *unarchive_open(struct packed *in, const char *method)
{
    struct unarchive *u = calloc(1, sizeof *u);
    if (u == NULL)
        return NULL;
    u->in = in;
    u->archive = archive_read_new();
    if (u->archive == NULL) {
        free(u);
        return NULL;
    }
    u->opened = begin(u, method);
    return u;
}

static void unarchive_close(void *stream)
{
    struct unarchive *u = stream;
    if (u == NULL)
        return;
    (void)archive_read_free(u->archive);
    free(u);
}

/* More decompressed bytes to `pending`. */
static enum decoding take_pending(struct unarchive *u)
{
    const void *at;
    size_t len;
    la_int64_t offset;
    int result = archive_read_data_block(u->archive, &at, &len, &offset);
    if (result == ARCHIVE_EOF)
        return DECODING_DONE;
    if (result != ARCHIVE_OK)
        return failed(u);
    u->pending = (struct bytes){ at, len };
    return DECODING_MORE;
}

static enum decoding unarchive_read(void *stream, uint8_t *out, size_t size, size_t *ret_len)
{
    struct unarchive *u = stream;
    enum decoding decoding = u->opened;
    size_t len = 0;
    while (len < size && decoding == DECODING_MORE) {
        struct bytes piece = bytes_first(u->pending, size - len);
        if (piece.len == 0) {
            decoding = take_pending(u);
            continue;
        }
        memcpy(out + len, piece.at, piece.len);
        len += piece.len;
        u->pending = bytes_after(u->pending, piece.len);
    }
    *ret_len = len;
    return decoding;
}

static const char *unarchive_words(const void *stream)
{
    const struct unarchive *u = stream;
    return u->words != NULL ? u->words : archive_error_string(u->archive);
}

static const struct decoder UNARCHIVE = { unarchive_open, unarchive_read, unarchive_words,
                                          unarchive_close, archive_version_details };
const struct decoder *const DECODER_LIBARCHIVE = &UNARCHIVE;

#else

const struct decoder *const DECODER_LIBARCHIVE = NULL;

#endif
