/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DECODER_H
#define DECODER_H
/*
 * What inflate.c asks of a library that decompresses; each has its edge file. Several members in a
 * row are one stream.
 */
#include "packed.h"

enum decoding {
    DECODING_MORE,   /* ask again */
    DECODING_DONE,   /* the stream is over, as it should be */
    DECODING_CUT,    /* the file ends in the middle of it, or cannot be read on */
    DECODING_BROKEN, /* the bytes at packed_position(), or some in front of it, are none of it */
    DECODING_NO_MEMORY,
};

struct decoder {
    /* A new stream, for a method that inflate_method() names; NULL without memory. */
    void *(*open)(struct packed *in, const char *method);
    /*
     * Decodes up to size bytes, at least one where it says DECODING_MORE. Those given are good
     * whatever it says; the other results are final.
     */
    enum decoding (*read)(void *stream, uint8_t *out, size_t size, size_t *ret_len);
    /* The library's words for DECODING_BROKEN; NULL when it has none. Live as long as the stream.
     */
    const char *(*words)(const void *stream);
    void (*close)(void *stream); /* NULL is accepted */
    const char *(*version)(void);
};

/* NULL where the program was built without the library. */
extern const struct decoder *const DECODER_ZLIB;       /* gzip */
extern const struct decoder *const DECODER_LZMA;       /* xz */
extern const struct decoder *const DECODER_LIBARCHIVE; /* all that inflate.c knows */

#endif
