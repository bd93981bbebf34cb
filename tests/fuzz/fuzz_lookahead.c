/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The input is what stands behind the header of a classic pcap file, of which its first byte
 * chooses the kind. Whatever it holds: what is given is what stands in the file at that position,
 * nothing twice, up to its end; nothing is left out but behind a stop.
 */
#include "lookahead.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HEADER_LEN = 24, SNAPLEN_AT = 16, SNAPLEN_LEN = 4 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
    if (!holds)
        abort();
}

/* Microseconds, nanoseconds and Kuznetzov's format, in either order of bytes. */
static void make_header(uint8_t choice, uint8_t header[HEADER_LEN])
{
    static const uint8_t LITTLE[3][4] = { { 0xd4, 0xc3, 0xb2, 0xa1 },
                                          { 0x4d, 0x3c, 0xb2, 0xa1 },
                                          { 0x34, 0xcd, 0xb2, 0xa1 } };
    static const uint8_t VERSION[4] = { 2, 0, 4, 0 }, SNAPLEN[4] = { 0xff, 0xff, 0, 0 };
    bool is_big_endian = choice & 1;
    memset(header, 0, HEADER_LEN);
    for (size_t i = 0; i < 4; i++) {
        header[i] = LITTLE[choice / 2 % 3][is_big_endian ? 3 - i : i];
        header[4 + i] = VERSION[is_big_endian ? i ^ 1 : i];
        header[SNAPLEN_AT + i] = SNAPLEN[is_big_endian ? 3 - i : i];
    }
}

/* Reads up to a stop or the end; returns how many bytes of records were given. */
static uint64_t read_stretch(struct lookahead *l, const uint8_t *header, struct bytes records)
{
    uint8_t buffer[1000];
    uint64_t start = lookahead_position(l), given = 0;
    for (size_t got, len = 0; len < HEADER_LEN; len += got) {
        got = lookahead_read(l, buffer + len, HEADER_LEN - len < 7 ? HEADER_LEN - len : 7);
        check(got > 0);
    }
    memcpy(buffer + SNAPLEN_AT, header + SNAPLEN_AT, SNAPLEN_LEN); /* it says more */
    check(memcmp(buffer, header, HEADER_LEN) == 0);
    struct frame f;
    while (lookahead_take(l, &f)) {
        given = lookahead_position(l) - start;
        struct bytes rest = bytes_after(records, (size_t)(start + given - f.data.len - HEADER_LEN));
        check(f.data.len <= rest.len &&
              (f.data.len == 0 || memcmp(f.data.at, rest.at, f.data.len) == 0));
    }
    for (size_t got; (got = lookahead_read(l, buffer, sizeof buffer)) > 0; given += got) {
        struct bytes rest = bytes_after(records, (size_t)(start + given - HEADER_LEN));
        check(got <= rest.len && memcmp(buffer, rest.at, got) == 0);
    }
    check(lookahead_position(l) == start + given);
    check(lookahead_last_record(l) <= HEADER_LEN + records.len);
    return given;
}

static void read_all(struct lookahead *l, const uint8_t *header, struct bytes records)
{
    check(lookahead_knows_records(l));
    uint64_t end = HEADER_LEN + records.len;
    for (;;) {
        (void)read_stretch(l, header, records);
        if (lookahead_stop(l) == NULL)
            break;
        uint64_t stop = lookahead_position(l);
        check(stop == lookahead_last_record(l) && stop < end);
        if (!lookahead_resume(l))
            return;
        check(lookahead_position(l) > stop && lookahead_stop(l) == NULL);
    }
    check(lookahead_position(l) == end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct bytes records = { data + 1, size - 1 };
    uint8_t header[HEADER_LEN];
    make_header(data[0], header);
    int fd = memfd_create("capture", MFD_CLOEXEC);
    check(fd >= 0 && write(fd, header, sizeof header) == (ssize_t)sizeof header);
    check(records.len == 0 || write(fd, records.at, records.len) == (ssize_t)records.len);
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    struct source *source = NULL;
    check(source_open(path, &source) == STATUS_OK);
    struct lookahead *l = lookahead_open(source);
    check(l != NULL);
    read_all(l, header, records);
    lookahead_close(l);
    source_close(source);
    (void)close(fd);
    return 0;
}
