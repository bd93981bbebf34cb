/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAPTURE_BUILDER_H
#define CAPTURE_BUILDER_H
/* Makes capture files for tests, in a directory of their own. */
#include "frame_builder.h"

#include <stdio.h>
#include <stdlib.h>

enum { PATH_SIZE = 256 };

/* A new directory; its path is written to buffer. */
static inline const char *test_directory(char buffer[PATH_SIZE])
{
    strcpy(buffer, "/tmp/firstflight-test-XXXXXX");
    char *made = mkdtemp(buffer);
    assert(made != NULL);
    return made;
}

/* Removes a test directory with all that is in it. */
static inline void remove_directory(const char *path)
{
    char command[PATH_SIZE + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    int status = system(command);
    assert(status == 0);
    (void)status;
}

static inline void write_file(const char *path, struct bytes content)
{
    FILE *file = fopen(path, "wb");
    assert(file != NULL);
    size_t written = content.len > 0 ? fwrite(content.at, 1, content.len, file) : 0;
    assert(written == content.len);
    (void)written;
    fclose(file);
}

/* How a classic capture file is written. */
struct pcap_style {
    bool is_big_endian;
    bool is_nanoseconds;
    int link_type;
};

static inline void put_in_order(struct buffer *b, const struct pcap_style *s, unsigned width,
                                uint64_t value)
{
    if (s->is_big_endian)
        put_be(b, width, value);
    else
        put_le(b, width, value);
}

static inline void put_pcap_header(struct buffer *b, const struct pcap_style *s)
{
    put_in_order(b, s, 4, s->is_nanoseconds ? 0xa1b23c4d : 0xa1b2c3d4);
    put_in_order(b, s, 2, 2);
    put_in_order(b, s, 2, 4);
    put_in_order(b, s, 8, 0);
    put_in_order(b, s, 4, 65535);
    put_in_order(b, s, 4, (uint64_t)s->link_type);
}

/* fraction is in the unit of the file. */
static inline void put_pcap_record(struct buffer *b, const struct pcap_style *s, uint32_t second,
                                   uint32_t fraction, struct bytes data, uint32_t wire_len)
{
    put_in_order(b, s, 4, second);
    put_in_order(b, s, 4, fraction);
    put_in_order(b, s, 4, data.len);
    put_in_order(b, s, 4, wire_len);
    put_bytes(b, data);
}

#endif
