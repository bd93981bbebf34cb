/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SECRETS_H
#define SECRETS_H
/*
 * TLS secrets out of key logs (the text that SSLKEYLOGFILE makes programs write, RFC 9850), found
 * again by the client random of the connection they belong to. A key log is written by others and
 * may hold anything: what is no secret of TLS over TCP is counted and left out.
 */
#include "bytes.h"
#include "status.h"

enum {
    CLIENT_RANDOM_LEN = 32,
    SECRET_LEN_MAX = 48,   /* SHA-384, and the master secret of TLS 1.2 */
    SECRETS_MAX = 1 << 20, /* kept of one table, some 100 MB; more are counted and left out */
};

enum secret_kind {
    SECRET_MASTER,           /* CLIENT_RANDOM: the master secret of TLS <= 1.2 */
    SECRET_CLIENT_EARLY,     /* CLIENT_EARLY_TRAFFIC_SECRET */
    SECRET_CLIENT_HANDSHAKE, /* CLIENT_HANDSHAKE_TRAFFIC_SECRET */
    SECRET_SERVER_HANDSHAKE, /* SERVER_HANDSHAKE_TRAFFIC_SECRET */
    SECRET_CLIENT_TRAFFIC,   /* CLIENT_TRAFFIC_SECRET_0 */
    SECRET_SERVER_TRAFFIC,   /* SERVER_TRAFFIC_SECRET_0 */
    SECRET_KINDS
};

struct secret {
    uint8_t len; /* 0 = not known */
    uint8_t octet[SECRET_LEN_MAX];
};

/* What is known of one connection. */
struct secret_set {
    struct secret of[SECRET_KINDS];
};

/* What became of the lines of a table's key logs; empty lines and comments are not counted. */
struct secrets_counts {
    size_t kept;
    size_t repeated;    /* said before */
    size_t conflicting; /* say something else than a line before them, which holds */
    size_t other;       /* labels of no use here: exporters, QUIC, ECH, RSA */
    size_t bad;         /* no key log lines, or with values that cannot be */
    size_t over_cap;    /* beyond SECRETS_MAX */
};

struct secrets;

/*
 * seed: of the table's hash. wider: asked for what this table does not know; not owned, must live
 * as long; NULL. Gives NULL without memory.
 */
struct secrets *secrets_open(uint64_t seed, const struct secrets *wider);
void secrets_close(struct secrets *s); /* NULL is accepted */

/* Adds the lines of a text; its last line needs no end. STATUS_NO_MEMORY or STATUS_OK. */
MUST_USE enum status secrets_add_text(struct secrets *s, struct bytes text);

/* Adds the lines of a file. STATUS_IO, with errno, when it cannot be read; STATUS_NO_MEMORY. */
MUST_USE enum status secrets_add_file(struct secrets *s, const char *path);

/* What is known of a connection; false when nothing is. random has CLIENT_RANDOM_LEN bytes. */
bool secrets_find(const struct secrets *s, struct bytes random, struct secret_set *ret_set);

/*
 * Whether what is not known now may come later: the table belongs to a capture that brings secrets
 * between its packets.
 */
bool secrets_may_grow(const struct secrets *s);

/* Of this table alone, without the wider one. */
struct secrets_counts secrets_counts(const struct secrets *s);

#endif
