/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole way of a capture, from frames to rows in a database, see whole.h. Input: a classic pcap
 * file, of which only link type, times and frames are looked at.
 */
#include "whole.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace trace = trace_of((struct bytes){ data, size });
    struct whole w;
    whole_open(&w, NULL);
    for (struct frame frame; next_frame(&trace, &frame);)
        check(analysis_frame(w.analysis, &frame) == STATUS_OK);
    check(analysis_end(w.analysis) == STATUS_OK);
    whole_check_flows(&w);
    whole_close(&w);
    return 0;
}
