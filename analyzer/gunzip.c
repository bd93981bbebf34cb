/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Edge to zlib: gzip (RFC 1952). zlib gives every byte that can be decoded of a file that is cut;
 * libarchive, which calls it, keeps up to 64 KiB of them back.
 */
#include "decoder.h"

#ifdef HAVE_ZLIB

#include <limits.h>
#include <stdlib.h>
#define ZLIB_CONST
#include <zlib.h>

/* The largest window, with a gzip header around it; and the first bytes of a member. */
enum { WINDOW_BITS_GZIP = 15 + 16, MAGIC_1 = 0x1f };

struct gunzip {
    struct packed *in;
    z_stream z;
    bool in_member;
    const char *words;
};

static void *gunzip_open(struct packed *in, const char *method)
{
    (void)method;
    struct gunzip *g = calloc(1, sizeof *g);
    if (g == NULL)
        return NULL;
    g->in = in;
    g->in_member = true;
    if (inflateInit2(&g->z, WINDOW_BITS_GZIP) == Z_OK)
        return g;
    free(g);
    return NULL;
}

static void gunzip_close(void *stream)
{
    struct gunzip *g = stream;
    if (g == NULL)
        return;
    (void)inflateEnd(&g->z);
    free(g);
}

/* gzip(1) pads with zeros what it writes to tapes. */
static void pass_padding(struct packed *in)
{
    while (packed_has_more(in) && in->rest.at[0] == 0)
        in->rest = bytes_after(in->rest, 1);
}

static enum decoding begin_member(struct gunzip *g)
{
    pass_padding(g->in);
    if (!packed_has_more(g->in))
        return g->in->error != 0 ? DECODING_CUT : DECODING_DONE;
    if (g->in->rest.at[0] != MAGIC_1) {
        g->words = "no gzip member behind the last one";
        return DECODING_BROKEN;
    }
    g->in_member = true;
    return inflateReset(&g->z) == Z_OK ? DECODING_MORE : DECODING_NO_MEMORY;
}

/* Decodes what is at hand to z.next_out. */
static enum decoding decode(struct gunzip *g)
{
    if (!packed_has_more(g->in))
        return DECODING_CUT;
    struct bytes piece = bytes_first(g->in->rest, UINT_MAX);
    g->z.next_in = piece.at;
    g->z.avail_in = (uInt)piece.len;
    int result = inflate(&g->z, Z_NO_FLUSH);
    g->in->rest = bytes_after(g->in->rest, piece.len - g->z.avail_in);
    g->in_member = result != Z_STREAM_END;
    if (result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR)
        return DECODING_MORE;
    g->words = g->z.msg;
    return result == Z_MEM_ERROR ? DECODING_NO_MEMORY : DECODING_BROKEN;
}

static enum decoding gunzip_read(void *stream, uint8_t *out, size_t size, size_t *ret_len)
{
    struct gunzip *g = stream;
    enum decoding decoding = DECODING_MORE;
    g->z.next_out = out;
    g->z.avail_out = size < UINT_MAX ? (uInt)size : UINT_MAX;
    uInt room = g->z.avail_out;
    while (decoding == DECODING_MORE && g->z.avail_out > 0)
        decoding = g->in_member ? decode(g) : begin_member(g);
    *ret_len = room - g->z.avail_out;
    return decoding;
}

static const char *gunzip_words(const void *stream)
{
    return ((const struct gunzip *)stream)->words;
}

static const char *gunzip_version(void)
{
    return "zlib " ZLIB_VERSION;
}

static const struct decoder GUNZIP = { gunzip_open, gunzip_read, gunzip_words, gunzip_close,
                                       gunzip_version };
const struct decoder *const DECODER_ZLIB = &GUNZIP;

#else

const struct decoder *const DECODER_ZLIB = NULL;

#endif
