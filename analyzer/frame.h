/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FRAME_H
#define FRAME_H
/* One captured frame, as capture.c gives it and packet.c takes it. */
#include "bytes.h"

/* The time of a frame whose timestamp is none: outside of 1970 to 2262, or a broken fraction. */
#define FRAME_TIME_INVALID ((int64_t)-1)

/*
 * A frame that is this much earlier than one in front of it, or less, was only written late: queues
 * and cores write side by side. Beyond, the clock was set back: ntpd slews what is less than 128
 * ms.
 */
#define FRAME_LATE_MAX_NS INT64_C(100000000)

struct frame {
    int64_t at_ns;     /* Unix epoch, nanoseconds; or FRAME_TIME_INVALID */
    uint64_t number;   /* position in its file, counted from 1, as tcpdump and Wireshark count */
    int link_type;     /* DLT_ value (as pcap_datalink() gives it) */
    uint32_t wire_len; /* length on the wire; at least data.len */
    uint32_t interface_id;      /* of pcapng; 0 elsewhere */
    const char *interface_name; /* NULL without one; valid as long as the capture is open */
    struct bytes data;          /* captured bytes; valid until the next frame is asked for */
};

#endif
