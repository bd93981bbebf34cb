/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edge to liblzma: the .xz format. Of a file that is cut liblzma gives every byte that can be
 * decoded; libarchive, which calls it, keeps up to 64 KiB of them back.
 */
#include "decoder.h"

#ifdef HAVE_LZMA

#include <lzma.h>
#include <stdlib.h>

/* For the dictionary that a file asks for; xz -9 asks for 64 MiB. */
enum { MEMORY_MAX = 256 * 1024 * 1024 };

struct unxz {
    struct packed *in;
    lzma_stream lzma;
    const char *words;
};

static void *unxz_open(struct packed *in, const char *method)
{
    (void)method;
    struct unxz *u = calloc(1, sizeof *u);
    if (u == NULL)
        return NULL;
    u->in = in;
    if (lzma_stream_decoder(&u->lzma, MEMORY_MAX, LZMA_CONCATENATED) == LZMA_OK)
        return u;
    free(u);
    return NULL;
}

static void unxz_close(void *stream)
{
    struct unxz *u = stream;
    if (u == NULL)
        return;
    lzma_end(&u->lzma);
    free(u);
}

static enum decoding failed(struct unxz *u, lzma_ret result)
{
    switch ((unsigned)result) {
    case LZMA_MEM_ERROR:
        return DECODING_NO_MEMORY;
    case LZMA_BUF_ERROR: /* neither takes nor gives: the file is over */
        return DECODING_CUT;
    case LZMA_MEMLIMIT_ERROR:
        u->words = "asks for a dictionary of more than 256 MiB";
        return DECODING_BROKEN;
    case LZMA_OPTIONS_ERROR:
        u->words = "asks for what this liblzma does not know";
        return DECODING_BROKEN;
    case LZMA_FORMAT_ERROR:
        u->words = "no xz header";
        return DECODING_BROKEN;
    default:
        u->words = "corrupt data";
        return DECODING_BROKEN;
    }
}

/* Decodes what is at hand to lzma.next_out. */
static enum decoding decode(struct unxz *u)
{
    bool has_more = packed_has_more(u->in);
    if (!has_more && u->in->error != 0)
        return DECODING_CUT;
    struct bytes piece = u->in->rest;
    u->lzma.next_in = piece.at;
    u->lzma.avail_in = piece.len;
    lzma_ret result = lzma_code(&u->lzma, has_more ? LZMA_RUN : LZMA_FINISH);
    u->in->rest = bytes_after(piece, piece.len - u->lzma.avail_in);
    if (result == LZMA_STREAM_END)
        return DECODING_DONE;
    return result == LZMA_OK ? DECODING_MORE : failed(u, result);
}

static enum decoding unxz_read(void *stream, uint8_t *out, size_t size, size_t *ret_len)
{
    struct unxz *u = stream;
    enum decoding decoding = DECODING_MORE;
    u->lzma.next_out = out;
    u->lzma.avail_out = size;
    while (decoding == DECODING_MORE && u->lzma.avail_out > 0)
        decoding = decode(u);
    *ret_len = size - u->lzma.avail_out;
    return decoding;
}

static const char *unxz_words(const void *stream)
{
    return ((const struct unxz *)stream)->words;
}

static const char *unxz_version(void)
{
    return "liblzma " LZMA_VERSION_STRING;
}

static const struct decoder UNXZ = { unxz_open, unxz_read, unxz_words, unxz_close, unxz_version };
const struct decoder *const DECODER_LZMA = &UNXZ;

#else

const struct decoder *const DECODER_LZMA = NULL;

#endif
