/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP2_H
#define HTTP2_H
/*
 * Lengths of records that hold HTTP/2 frames but no HEADERS (RFC 9113 3.4, 4.1, 6): whoever looks
 * for the request or the response passes them by. `len` is the record's, `overhead` what TLS adds
 * to the plaintext.
 */
#include <stdbool.h>
#include <stdint.h>

/* The client's connection preface: magic, SETTINGS, perhaps WINDOW_UPDATE, and nothing else. */
bool http2_is_preface(uint32_t len, uint32_t overhead);

/*
 * The server's: SETTINGS, perhaps with WINDOW_UPDATE, an acknowledgment or GOAWAY behind it. The
 * first frame of a server must be SETTINGS, so its first record is this or holds HEADERS as well.
 */
bool http2_is_settings(uint32_t len, uint32_t overhead);

/* Frames of fixed length alone: acknowledgment of SETTINGS, WINDOW_UPDATE, PING, GOAWAY. */
bool http2_is_control(uint32_t len, uint32_t overhead);

/* The acknowledgment of SETTINGS alone, which each side must send. */
bool http2_is_settings_ack(uint32_t len, uint32_t overhead);

#endif
