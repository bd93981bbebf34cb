/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CAPTURE_H
#define CAPTURE_H
/*
 * Edge to libpcap: one capture file to frames. The only header whose source includes <pcap.h>.
 * Every byte that is read passes a hash, so that the content of a file is known by the time its
 * last frame is. A timestamp that is none gives a frame with FRAME_TIME_INVALID, which is not used
 * but has its number.
 */
#include "frame.h"
#include "hash.h"
#include "status.h"

struct capture;

/* Link types of one file that are remembered. */
enum { CAPTURE_LINK_TYPES_MAX = 8 };

/* What is known of a capture; all of it only after capture_next() gave something else than OK. */
struct capture_info {
    const char *format;  /* "pcap", "pcapng", "snoop"; static text */
    int link_type;       /* DLT_ value of the first interface; -1 when there is none */
    uint32_t snaplen;    /* largest declared */
    uint64_t packets;    /* frames given */
    uint64_t bytes;      /* captured bytes in them */
    int64_t first_at_ns; /* least and largest valid time of them; 0 when there was none */
    int64_t last_at_ns;
    struct hash128 content; /* of the whole (decompressed) file */
    uint64_t content_len;   /* bytes that it is the hash of */
    int64_t kernel_drops;   /* packets the capturing system lost; -1 = the file does not say */
    int link_types[CAPTURE_LINK_TYPES_MAX]; /* DLT_ values of the frames given, each once, in order
                                               of appearance */
    unsigned link_type_count;
};

/*
 * Opens a capture file, "-" for standard input. filter is a pcap filter expression or NULL. Frames
 * that the filter excludes are not given but have their number. On failure *ret_capture is still
 * set (unless STATUS_NO_MEMORY) so that capture_error() can be asked, and must be closed.
 * STATUS_REFUSED: no capture file, or its link type is one to which the filter cannot be applied;
 * STATUS_IO: cannot be opened or read; STATUS_USAGE: filter is wrong.
 */
MUST_USE enum status capture_open(const char *path, const char *filter,
                                  struct capture **ret_capture);

/*
 * The next frame. STATUS_END at the end of the file; STATUS_DAMAGED at the end of a cut or broken
 * file (what was given is good, capture_error() says where something is missing); STATUS_IO when
 * reading failed; STATUS_NO_MEMORY. Each of these is final: asked again, it says the same. Bytes
 * that are no packets are left out where packets go on behind them. Views in the frame live until
 * the next call.
 */
MUST_USE enum status capture_next(struct capture *c, struct frame *ret_frame);

/*
 * Whether a frame that is not given yet, as far as the file was looked at (some 100 KiB ahead), is
 * earlier than one in front of it by no more than FRAME_LATE_MAX_NS.
 */
bool capture_has_late(const struct capture *c);

struct capture_info capture_info(const struct capture *c);

/* Interfaces of one file whose names are known. */
enum { CAPTURE_INTERFACES_MAX = 1024 };

/* Name of a frame's interface, plain text; NULL where the file has none. Lives as long as c. */
const char *capture_interface_name(const struct capture *c, uint32_t interface_id);

/*
 * TLS key log lines that the file itself held up to here (decryption secrets blocks of pcapng),
 * empty without any; lives until the next call of capture_next().
 */
struct bytes capture_secrets(const struct capture *c);

/* Text of the last failure, naming the file and, where known, the offset; lives as long as c. */
const char *capture_error(const struct capture *c);

/* The same without the file's name. */
const char *capture_reason(const struct capture *c);

void capture_close(struct capture *c); /* NULL is accepted */

/* Name of a DLT_ value as "EN10MB"; static text, never NULL. */
const char *capture_link_type_name(int link_type);

/* "libpcap version 1.10.3 ...", for --version. */
const char *capture_library_version(void);

#endif
