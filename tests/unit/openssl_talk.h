/* SPDX-License-Identifier: Apache-2.0 */
#ifndef OPENSSL_TALK_H
#define OPENSSL_TALK_H
/*
 * Two OpenSSL endpoints that talk in memory: what each puts on the wire, as flights in order, and
 * the key log of it. The certificate is made on the spot.
 */
#include "buffer.h"
#include "endpoint.h"

#include <criterion/criterion.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

enum { TALK_FLIGHTS_MAX = 96 };

struct talk_flight {
    enum side side;
    size_t at, len;  /* of talk.bytes */
    size_t answered; /* bytes of the other side that were there when it was sent */
};

struct talk {
    SSL_CTX *context[2];
    SSL *ssl[2];
    struct buffer bytes, key_log;
    struct talk_flight flight[TALK_FLIGHTS_MAX];
    unsigned flight_count;
    size_t sent[2];
    bool reads_early; /* the server reads early data, as long as there may be some */
};

struct talk_options {
    const char *suites_13; /* for TLS 1.3; NULL = OpenSSL's choice */
    const char *suites_12; /* for TLS 1.2, which is then the version */
    uint64_t no;           /* SSL_OP_... of both sides */
    bool early_data;       /* the server takes it */
    bool client_certificate;
    const char *server_groups; /* NULL = OpenSSL's choice */
    const char *alpn;          /* one protocol that both have; NULL */
};

static inline void talk_log_key(const SSL *ssl, const char *line)
{
    struct talk *t = SSL_get_app_data(ssl);
    cr_assert(buffer_add(&t->key_log, (struct bytes){ (const uint8_t *)line, strlen(line) }));
    cr_assert(buffer_add(&t->key_log, (struct bytes){ (const uint8_t *)"\n", 1 }));
}

static inline void talk_certify(SSL_CTX *context)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();
    cr_assert(key != NULL && x != NULL);
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), 0);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                               (const unsigned char *)"example.com", -1, -1, 0);
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_set_pubkey(x, key);
    cr_assert(X509_sign(x, key, EVP_sha256()) > 0);
    cr_assert_eq(SSL_CTX_use_certificate(context, x), 1);
    cr_assert_eq(SSL_CTX_use_PrivateKey(context, key), 1);
    X509_free(x);
    EVP_PKEY_free(key);
}

static inline int talk_accept_any(int preverified, X509_STORE_CTX *store)
{
    (void)preverified;
    (void)store;
    return 1;
}

static inline int talk_choose_alpn(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                                   const unsigned char *in, unsigned in_len, void *alpn)
{
    (void)ssl;
    return SSL_select_next_proto((unsigned char **)out, out_len, alpn, (unsigned)strlen(alpn), in,
                                 in_len) == OPENSSL_NPN_NEGOTIATED
               ? SSL_TLSEXT_ERR_OK
               : SSL_TLSEXT_ERR_NOACK;
}

static inline void talk_context(struct talk *t, enum side side, const struct talk_options *o)
{
    SSL_CTX *c = SSL_CTX_new(side == CLIENT ? TLS_client_method() : TLS_server_method());
    int version = o->suites_12 != NULL ? TLS1_2_VERSION : TLS1_3_VERSION;
    cr_assert_not_null(c);
    SSL_CTX_set_security_level(c, 0); /* CCM_8 */
    SSL_CTX_set_min_proto_version(c, version);
    SSL_CTX_set_max_proto_version(c, version);
    SSL_CTX_set_options(c, o->no | SSL_OP_NO_ANTI_REPLAY);
    SSL_CTX_set_keylog_callback(c, side == CLIENT ? talk_log_key : NULL);
    if (o->suites_12 != NULL)
        cr_assert_eq(SSL_CTX_set_cipher_list(c, o->suites_12), 1);
    if (o->suites_13 != NULL)
        cr_assert_eq(SSL_CTX_set_ciphersuites(c, o->suites_13), 1);
    if (side == SERVER && o->server_groups != NULL)
        cr_assert_eq(SSL_CTX_set1_groups_list(c, o->server_groups), 1);
    if (side == SERVER || o->client_certificate)
        talk_certify(c);
    if (side == SERVER && o->client_certificate)
        SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, talk_accept_any);
    if (side == SERVER && o->early_data)
        SSL_CTX_set_max_early_data(c, 16384);
    if (side == SERVER && o->alpn != NULL)
        SSL_CTX_set_alpn_select_cb(c, talk_choose_alpn, (void *)o->alpn);
    if (side == CLIENT && o->alpn != NULL)
        SSL_CTX_set_alpn_protos(c, (const unsigned char *)o->alpn, (unsigned)strlen(o->alpn));
    t->context[side] = c;
}

/* The flights and the log of the connection before are forgotten, contexts stay. */
static inline void talk_connect(struct talk *t, SSL_SESSION *session)
{
    t->bytes.len = t->key_log.len = 0;
    t->flight_count = 0;
    t->reads_early = false;
    for (enum side side = CLIENT; side <= SERVER; side++) {
        if (t->ssl[side] != NULL) /* else its session could not be resumed */
            SSL_set_shutdown(t->ssl[side], SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
        SSL_free(t->ssl[side]);
        SSL *ssl = SSL_new(t->context[side]);
        cr_assert_not_null(ssl);
        SSL_set_bio(ssl, BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
        SSL_set_app_data(ssl, t);
        t->ssl[side] = ssl;
        t->sent[side] = 0;
    }
    SSL_set_connect_state(t->ssl[CLIENT]);
    SSL_set_accept_state(t->ssl[SERVER]);
    if (session != NULL)
        cr_assert_eq(SSL_set_session(t->ssl[CLIENT], session), 1);
}

static inline struct talk *talk_open(const struct talk_options *o)
{
    struct talk *t = calloc(1, sizeof *t);
    cr_assert_not_null(t);
    talk_context(t, CLIENT, o);
    talk_context(t, SERVER, o);
    talk_connect(t, NULL);
    return t;
}

static inline void talk_close(struct talk *t)
{
    for (enum side side = CLIENT; side <= SERVER; side++) {
        SSL_free(t->ssl[side]);
        SSL_CTX_free(t->context[side]);
    }
    buffer_done(&t->bytes);
    buffer_done(&t->key_log);
    free(t);
}

/* Brings to the other side what a side has written; false when there is nothing. */
static inline bool talk_deliver(struct talk *t, enum side side)
{
    char *data;
    long len = BIO_get_mem_data(SSL_get_wbio(t->ssl[side]), &data);
    if (len <= 0)
        return false;
    cr_assert_lt(t->flight_count, TALK_FLIGHTS_MAX);
    t->flight[t->flight_count++] = (struct talk_flight){
        .side = side,
        .at = t->bytes.len,
        .len = (size_t)len,
        .answered = t->sent[other_side(side)],
    };
    t->sent[side] += (size_t)len;
    cr_assert(buffer_add(&t->bytes, (struct bytes){ (const uint8_t *)data, (size_t)len }));
    cr_assert_eq(BIO_write(SSL_get_rbio(t->ssl[other_side(side)]), data, (int)len), len);
    (void)BIO_reset(SSL_get_wbio(t->ssl[side]));
    return true;
}

/* A side reads all there is. */
static inline void talk_listen(struct talk *t, enum side side)
{
    char space[20000];
    size_t done;
    int got = SSL_READ_EARLY_DATA_SUCCESS;
    while (side == SERVER && t->reads_early && got == SSL_READ_EARLY_DATA_SUCCESS)
        got = SSL_read_early_data(t->ssl[SERVER], space, sizeof space, &done);
    t->reads_early = t->reads_early && got != SSL_READ_EARLY_DATA_FINISH;
    if (side == SERVER && t->reads_early)
        return;
    if (side == CLIENT) /* reading alone does not end early data */
        SSL_do_handshake(t->ssl[CLIENT]);
    while (SSL_read(t->ssl[side], space, sizeof space) > 0)
        continue;
}

/* Both sides go on until neither has anything to send. */
static inline void talk_settle(struct talk *t)
{
    bool moves = true;
    while (moves) {
        moves = talk_deliver(t, CLIENT);
        talk_listen(t, SERVER);
        moves |= talk_deliver(t, SERVER);
        talk_listen(t, CLIENT);
        moves |= BIO_pending(SSL_get_wbio(t->ssl[CLIENT])) > 0;
    }
}

static inline void talk_say(struct talk *t, enum side side, const char *text, size_t len)
{
    cr_assert_eq(SSL_write(t->ssl[side], text, (int)len), (int)len);
    talk_settle(t);
}

/* A session to resume, from a connection of its own. */
static inline SSL_SESSION *talk_session(struct talk *t)
{
    talk_connect(t, NULL);
    talk_settle(t);
    SSL_SESSION *session = SSL_get1_session(t->ssl[CLIENT]);
    cr_assert_not_null(session);
    talk_connect(t, session);
    return session;
}

/* The client sends early data with its ClientHello. */
static inline void talk_say_early(struct talk *t, const char *text)
{
    size_t done;
    t->reads_early = true;
    cr_assert_eq(SSL_write_early_data(t->ssl[CLIENT], text, strlen(text), &done), 1);
    talk_settle(t);
}

#endif
