/* SPDX-License-Identifier: Apache-2.0 */
/* Capture files, pcapng or classic. */
#include "whole_capture.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    (void)read_capture((struct bytes){ data, size });
    return 0;
}
