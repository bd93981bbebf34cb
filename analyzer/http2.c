/* SPDX-License-Identifier: Apache-2.0 */
#include "http2.h"

enum {
    MAGIC_LEN = 24,
    FRAME_HEADER_LEN = 9,
    SETTING_LEN = 6,
    SETTINGS_MAX =
        8, /* settings in one frame that are still taken for a preface; six are defined */
    ACK_LEN = FRAME_HEADER_LEN,
    WINDOW_UPDATE_LEN = FRAME_HEADER_LEN + 4,
    PING_LEN = FRAME_HEADER_LEN + 8, /* and GOAWAY without debug data */
    HAS_ACK = 1,
    HAS_WINDOW_UPDATE = 2,
    HAS_PING = 4,
    FRAME_SETS = 8,
};

static uint32_t frames_len(unsigned set)
{
    return (set & HAS_ACK ? ACK_LEN : 0U) + (set & HAS_WINDOW_UPDATE ? WINDOW_UPDATE_LEN : 0U) +
           (set & HAS_PING ? PING_LEN : 0U);
}

/* Whether n bytes are one SETTINGS frame. */
static bool is_settings_frame(uint32_t n)
{
    return n >= FRAME_HEADER_LEN && (n - FRAME_HEADER_LEN) % SETTING_LEN == 0 &&
           (n - FRAME_HEADER_LEN) / SETTING_LEN <= SETTINGS_MAX;
}

bool http2_is_preface(uint32_t len, uint32_t overhead)
{
    if (len < overhead + MAGIC_LEN)
        return false;
    uint32_t frames = len - overhead - MAGIC_LEN;
    return is_settings_frame(frames) ||
           (frames >= WINDOW_UPDATE_LEN && is_settings_frame(frames - WINDOW_UPDATE_LEN));
}

bool http2_is_settings(uint32_t len, uint32_t overhead)
{
    for (unsigned set = 0; set < FRAME_SETS; set++) {
        uint32_t others = overhead + frames_len(set);
        if (len > others && is_settings_frame(len - others))
            return true;
    }
    return false;
}

bool http2_is_control(uint32_t len, uint32_t overhead)
{
    for (unsigned set = 1; set < FRAME_SETS; set++)
        if (len == overhead + frames_len(set))
            return true;
    return false;
}

bool http2_is_settings_ack(uint32_t len, uint32_t overhead)
{
    return len == overhead + ACK_LEN;
}
