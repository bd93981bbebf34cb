/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A TLS client over OpenSSL that makes one kind of connection after the other and says of each what
 * it was: the endpoint's own account, against which the rows of an analysis can be held.
 *
 * usage: client [options] ADDRESS PORT MODE...
 *
 * modes: plain    HTTP without TLS
 *        full     a handshake without a session
 *        resumed  resumes the last session
 *        early    resumes the last session and sends the request as early data
 *        unused   as full, but closes without a request
 *        reset    as full, but resets the connection when the server's flight has arrived
 * Options: see usage(). Writes one line of tab-separated values per connection, see print_row().
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    STEP_TIMEOUT_MS = 5000,   /* for any answer of the server */
    TICKET_TIMEOUT_MS = 600,  /* for a ticket behind the response: over two of the longest RTTs */
    SOURCES_MAX = 16,
    REQUEST_SIZE_MAX = 1024,
    RESPONSE_SIZE_MAX = 64 * 1024,
};

struct options {
    const char *server, *name, *alpn, *path, *label, *session_file, *keylog_file;
    const char *groups, *certificate, *authority;
    int port, version;
    bool no_ticket, keep_session;
    const char *sources[SOURCES_MAX];
    size_t source_count;
    long rounds, pause_ms;
};

/* What the library tells while a connection lives, and what is kept between connections. */
struct state {
    SSL_SESSION *session; /* the last one given; with keep_session the first */
    bool keep_session;
    FILE *keylog;
    bool new_session, hello_retry;
    int alert;            /* description of the first fatal alert of either side; -1 without */
};

struct connection {
    int fd;
    SSL *ssl; /* NULL in plain HTTP */
    struct sockaddr_in local;
    int64_t start_epoch_ns, start_ns;
    int64_t woke_ns; /* when the last wait for the socket ended */
};

struct result {
    const char *handshake, *early_data, *outcome, *failure;
    int64_t response_ns; /* from connect() to the first byte of the response; -1 without */
};

static void usage(void)
{
    fputs("usage: client [options] ADDRESS PORT MODE...\n"
          "  -n ROUNDS  the list of modes so many times     -w MS    wait between connections\n"
          "  -b ADDR,.. source addresses, in turn           -s NAME  server name\n"
          "  -a ALPN    http/1.1 or h2                      -p PATH  of the request\n"
          "  -v 1.2|1.3 only this version                   -g LIST  groups, by preference\n"
          "  -i         no tickets: session ids             -c PEM   client certificate and key\n"
          "  -C PEM     verify the server by it             -S FILE  session, read and written\n"
          "  -k FILE    add to this key log                 -l TEXT  first column of each row\n"
          "  -r         use the first session again and again\n",
          stderr);
    exit(EXIT_FAILURE);
}

static void die(const char *what)
{
    fprintf(stderr, "client: %s: %s\n", what, strerror(errno));
    ERR_print_errors_fp(stderr);
    exit(EXIT_FAILURE);
}

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- what OpenSSL calls ---- */

static int on_session(SSL *ssl, SSL_SESSION *session)
{
    struct state *s = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    s->new_session = true;
    if (s->keep_session && s->session)
        return 0;
    SSL_SESSION_free(s->session);
    s->session = session;
    return 1;
}

static void on_keylog(const SSL *ssl, const char *line)
{
    struct state *s = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    if (s->keylog)
        fprintf(s->keylog, "%s\n", line);
}

static void on_message(int is_sent, int version, int type, const void *data, size_t len, SSL *ssl,
                       void *context)
{
    (void)version;
    (void)context;
    static const uint8_t retry_random[8] = { 0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11 };
    struct state *s = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
    const uint8_t *bytes = data;
    /* RFC 8446 4.1.3: type, length, legacy_version, then the random that marks the retry */
    if (!is_sent && type == SSL3_RT_HANDSHAKE && len > 14 && bytes[0] == SSL3_MT_SERVER_HELLO &&
        memcmp(bytes + 6, retry_random, sizeof retry_random) == 0)
        s->hello_retry = true;
    if (type == SSL3_RT_ALERT && len == 2 && bytes[0] == SSL3_AL_FATAL && s->alert < 0)
        s->alert = bytes[1];
}

/* ---- the connection ---- */

/* Waits until the socket can do that; false after the time. */
static bool wait_socket(struct connection *c, short events, int timeout_ms)
{
    struct pollfd p = { .fd = c->fd, .events = events };
    int ready = poll(&p, 1, timeout_ms);
    c->woke_ns = clock_ns(CLOCK_MONOTONIC);
    return ready == 1;
}

/* After a call that returned rc: waits if the library wants that; true = call it again. */
static bool again(struct connection *c, int rc, int timeout_ms)
{
    switch (SSL_get_error(c->ssl, rc)) {
    case SSL_ERROR_WANT_READ:
        return wait_socket(c, POLLIN, timeout_ms);
    case SSL_ERROR_WANT_WRITE:
        return wait_socket(c, POLLOUT, timeout_ms);
    default:
        return false;
    }
}

static bool open_connection(const struct options *o, const char *source, struct connection *c)
{
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0)
        die("socket");
    int one = 1;
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (source) {
        struct sockaddr_in from = { .sin_family = AF_INET };
        if (inet_pton(AF_INET, source, &from.sin_addr) != 1 ||
            bind(c->fd, (struct sockaddr *)&from, sizeof from) != 0)
            die(source);
    }
    struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons((uint16_t)o->port) };
    if (inet_pton(AF_INET, o->server, &to.sin_addr) != 1)
        die(o->server);

    c->start_epoch_ns = clock_ns(CLOCK_REALTIME);
    c->start_ns = clock_ns(CLOCK_MONOTONIC);
    if (connect(c->fd, (struct sockaddr *)&to, sizeof to) != 0 && errno != EINPROGRESS)
        die("connect");
    socklen_t len = sizeof c->local;
    getsockname(c->fd, (struct sockaddr *)&c->local, &len);

    int failure = ETIMEDOUT;
    len = sizeof failure;
    if (wait_socket(c, POLLOUT, STEP_TIMEOUT_MS))
        getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &failure, &len);
    errno = failure;
    return failure == 0;
}

static bool write_all(struct connection *c, const char *data, size_t len)
{
    if (!c->ssl)
        return write(c->fd, data, len) == (ssize_t)len;
    int rc;
    do
        rc = SSL_write(c->ssl, data, (int)len);
    while (rc <= 0 && again(c, rc, STEP_TIMEOUT_MS));
    return rc > 0;
}

/* Reads what there is within that time; 0 at the end, after the time, or on failure. */
static size_t read_some(struct connection *c, char *data, size_t size, int timeout_ms)
{
    if (!c->ssl) {
        if (!wait_socket(c, POLLIN, timeout_ms))
            return 0;
        ssize_t len = read(c->fd, data, size);
        return len > 0 ? (size_t)len : 0;
    }
    int rc;
    do
        rc = SSL_read(c->ssl, data, (int)size);
    while (rc <= 0 && again(c, rc, timeout_ms));
    return rc > 0 ? (size_t)rc : 0;
}

/* ---- requests ---- */

/* HTTP/2 is written as two parts, as browsers do: the connection's preface, then the request. */
struct request {
    char data[REQUEST_SIZE_MAX];
    size_t preface_len, len;
};

static struct request http1_request(const struct options *o)
{
    struct request r = { .preface_len = 0 };
    int len = snprintf(r.data, sizeof r.data,
                       "GET %s HTTP/1.1\r\nHost: %s\r\nUser-Agent: samples\r\nAccept: */*\r\n\r\n",
                       o->path, o->name ? o->name : o->server);
    r.len = (size_t)len;
    return r;
}

static void add(struct request *r, const void *data, size_t len)
{
    memcpy(r->data + r->len, data, len);
    r->len += len;
}

/* RFC 9113 3.4, 6.5, 6.2 with RFC 7541 fields: indexed names, literal values, no Huffman code. */
static struct request http2_request(const struct options *o)
{
    struct request r = { .len = 0 };
    static const uint8_t settings[] = { 0, 0, 12, 4, 0, 0, 0, 0, 0,       /* SETTINGS */
                                        0, 3, 0, 0, 0, 100,               /* MAX_CONCURRENT */
                                        0, 4, 0, 1, 0, 0 };               /* INITIAL_WINDOW */
    add(&r, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    add(&r, settings, sizeof settings);
    r.preface_len = r.len;

    size_t name_len = strlen(o->name), path_len = strlen(o->path);
    size_t block_len = 2 + 2 + path_len + 2 + name_len;
    uint8_t head[] = { 0, 0, (uint8_t)block_len, 1, 0x05, 0, 0, 0, 1,     /* HEADERS, END_STREAM */
                       0x82, 0x87,                                        /* GET, https */
                       0x04, (uint8_t)path_len };                         /* :path */
    uint8_t authority[] = { 0x01, (uint8_t)name_len };
    add(&r, head, sizeof head);
    add(&r, o->path, path_len);
    add(&r, authority, sizeof authority);
    add(&r, o->name, name_len);
    return r;
}

/* Whether the first response has begun and ended in what was read so far. */
struct progress {
    bool has_begun, has_ended;
};

static struct progress http1_progress(const char *data, size_t len)
{
    struct progress p = { .has_begun = len > 0 };
    const char *body = strstr(data, "\r\n\r\n");
    const char *length = strcasestr(data, "\r\nContent-Length: ");
    if (body && length && length < body)
        p.has_ended = (size_t)(data + len - body) >= 4 + strtoul(length + 18, NULL, 10);
    return p;
}

static struct progress http2_progress(const char *data, size_t len)
{
    struct progress p = { false, false };
    const uint8_t *bytes = (const uint8_t *)data;
    for (size_t at = 0; at + 9 <= len;) {
        size_t frame_len = (size_t)bytes[at] << 16 | (size_t)bytes[at + 1] << 8 | bytes[at + 2];
        bool is_stream = bytes[at + 8] == 1;
        p.has_begun = p.has_begun || is_stream;
        at += 9 + frame_len;
        if (is_stream && at <= len && bytes[at - frame_len - 5] & 1)
            p.has_ended = true;
    }
    return p;
}

/* Reads the response; returns when its first byte came, in ns since connect(), -1 when none did. */
static int64_t read_response(struct connection *c, bool is_http2)
{
    static char data[RESPONSE_SIZE_MAX];
    size_t len = 0;
    int64_t first_ns = -1;
    for (;;) {
        size_t n = read_some(c, data + len, sizeof data - 1 - len, STEP_TIMEOUT_MS);
        if (n == 0)
            return first_ns;
        len += n;
        data[len] = '\0';
        struct progress p = is_http2 ? http2_progress(data, len) : http1_progress(data, len);
        if (p.has_begun && first_ns < 0)
            first_ns = c->woke_ns - c->start_ns;
        if (p.has_ended)
            return first_ns;
    }
}

/* ---- one connection ---- */

static SSL *new_ssl(const struct options *o, SSL_CTX *ctx, struct connection *c)
{
    SSL *ssl = SSL_new(ctx);
    if (!ssl || SSL_set_fd(ssl, c->fd) != 1)
        die("SSL_new");
    if (o->name)
        SSL_set_tlsext_host_name(ssl, o->name);
    if (o->alpn) {
        unsigned char list[32];
        list[0] = (unsigned char)strlen(o->alpn);
        memcpy(list + 1, o->alpn, list[0]);
        SSL_set_alpn_protos(ssl, list, list[0] + 1u);
    }
    return ssl;
}

/* Sends the request as early data and finishes the handshake; says what became of it. */
static bool connect_early(struct connection *c, const struct request *r, bool *ret_accepted)
{
    size_t parts[2] = { r->preface_len, r->len - r->preface_len };
    const char *at = r->data;
    for (int i = 0; i < 2; at += parts[i], i++) {
        size_t written;
        int rc = 1;
        if (parts[i] == 0)
            continue;
        do
            rc = SSL_write_early_data(c->ssl, at, parts[i], &written);
        while (rc != 1 && again(c, rc, STEP_TIMEOUT_MS));
        if (rc != 1)
            return false;
    }
    int rc;
    do
        rc = SSL_connect(c->ssl);
    while (rc <= 0 && again(c, rc, STEP_TIMEOUT_MS));
    *ret_accepted = SSL_get_early_data_status(c->ssl) == SSL_EARLY_DATA_ACCEPTED;
    return rc == 1;
}

static bool connect_plainly(struct connection *c)
{
    int rc;
    do
        rc = SSL_connect(c->ssl);
    while (rc <= 0 && again(c, rc, STEP_TIMEOUT_MS));
    return rc == 1;
}

/* Sends the ClientHello, waits for the server's flight, and leaves with a RST. */
static void reset_in_handshake(struct connection *c)
{
    SSL_connect(c->ssl);
    wait_socket(c, POLLIN, STEP_TIMEOUT_MS);
    struct linger now = { .l_onoff = 1, .l_linger = 0 };
    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

/* Reads on until a session has come, where this version gives them after the handshake. */
static void await_ticket(struct connection *c, const struct state *s)
{
    if (SSL_version(c->ssl) != TLS1_3_VERSION)
        return;
    char rest[512];
    while (!s->new_session) {
        int rc = SSL_read(c->ssl, rest, sizeof rest);
        if (rc <= 0 && !s->new_session && !again(c, rc, TICKET_TIMEOUT_MS))
            return;
    }
}

static const char *alert_text(int alert)
{
    static char text[64];
    snprintf(text, sizeof text, "%s", SSL_alert_desc_string_long(alert));
    for (char *p = text; *p; p++)
        *p = *p == ' ' ? '_' : (char)tolower((unsigned char)*p);
    return text;
}

static struct result speak_tls(const struct options *o, const char *mode, struct state *s,
                               struct connection *c)
{
    struct result r = { .handshake = "unknown", .early_data = "not_offered", .outcome = "failed",
                        .failure = "-", .response_ns = -1 };
    bool is_early = strcmp(mode, "early") == 0;
    bool is_http2 = o->alpn && strcmp(o->alpn, "h2") == 0;
    struct request request = is_http2 ? http2_request(o) : http1_request(o);

    if (strcmp(mode, "reset") == 0) {
        reset_in_handshake(c);
        r.handshake = "full";
        r.failure = "reset";
        return r;
    }
    if (is_early || strcmp(mode, "resumed") == 0) {
        if (!s->session || (is_early && SSL_SESSION_get_max_early_data(s->session) == 0)) {
            fprintf(stderr, "client: no session for mode %s\n", mode);
            exit(EXIT_FAILURE);
        }
        /* a copy: the library marks a session as used up when a new one replaces it */
        SSL_SESSION *copy = SSL_SESSION_dup(s->session);
        SSL_set_session(c->ssl, copy);
        SSL_SESSION_free(copy);
    }
    s->new_session = false;
    bool is_accepted = false;
    bool is_connected = is_early ? connect_early(c, &request, &is_accepted) : connect_plainly(c);
    if (is_early)
        r.early_data = is_accepted ? "accepted" : "rejected";
    if (is_connected)
        r.handshake = is_accepted ? "0-rtt" : SSL_session_reused(c->ssl) ? "resumed" : "full";
    if (is_connected && strcmp(mode, "unused") == 0) {
        await_ticket(c, s);
        r.outcome = "unused";
    } else if (is_connected) {
        const char *rest = request.data + request.preface_len;
        size_t rest_len = request.len - request.preface_len;
        bool is_sent = is_accepted || ((request.preface_len == 0 ||
                                        write_all(c, request.data, request.preface_len)) &&
                                       write_all(c, rest, rest_len));
        if (is_sent) {
            r.outcome = "completed";
            r.response_ns = read_response(c, is_http2);
            await_ticket(c, s);
        }
    }
    if (s->alert >= 0)
        r.failure = alert_text(s->alert);
    return r;
}

static struct result speak_plain(const struct options *o, struct connection *c)
{
    struct result r = { .handshake = "none", .early_data = "-", .outcome = "failed",
                        .failure = "-", .response_ns = -1 };
    struct request request = http1_request(o);
    if (write_all(c, request.data, request.len))
        r.response_ns = read_response(c, false);
    if (r.response_ns >= 0)
        r.outcome = "completed";
    return r;
}

static void print_row(const struct options *o, const char *mode, const struct state *s,
                      const struct connection *c, const struct result *r)
{
    char address[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &c->local.sin_addr, address, sizeof address);
    bool is_tls = c->ssl && strcmp(r->handshake, "unknown") != 0;
    printf("%s\t%lld\t%s\t%d\t%s\t%d\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t", o->label,
           (long long)c->start_epoch_ns, address, ntohs(c->local.sin_port), o->server, o->port,
           mode, is_tls ? SSL_get_version(c->ssl) : "-", r->handshake, r->early_data,
           s->hello_retry, c->ssl && o->name ? o->name : "-", r->outcome, r->failure);
    if (r->response_ns >= 0)
        printf("%lld\n", (long long)r->response_ns);
    else
        puts("-");
    fflush(stdout);
}

/* Says good-bye and waits for the other side's, so that no RST follows. */
static void close_connection(struct connection *c, bool is_reset)
{
    if (c->ssl && !is_reset)
        SSL_shutdown(c->ssl);
    if (!is_reset)
        shutdown(c->fd, SHUT_WR);
    char rest[512];
    while (!is_reset && wait_socket(c, POLLIN, TICKET_TIMEOUT_MS) &&
           read(c->fd, rest, sizeof rest) > 0)
        ;
    SSL_free(c->ssl);
    close(c->fd);
}

static void run_mode(const struct options *o, const char *mode, const char *source, SSL_CTX *ctx,
                     struct state *s)
{
    struct connection c = { .fd = -1 };
    struct result r = { "unknown", "-", "failed", "refused", -1 };
    s->hello_retry = false;
    s->alert = -1;
    if (open_connection(o, source, &c)) {
        if (strcmp(mode, "plain") == 0) {
            r = speak_plain(o, &c);
        } else {
            c.ssl = new_ssl(o, ctx, &c);
            r = speak_tls(o, mode, s, &c);
        }
    }
    print_row(o, mode, s, &c, &r);
    close_connection(&c, strcmp(mode, "reset") == 0);
}

/* ---- options ---- */

static SSL_CTX *new_context(const struct options *o, struct state *s)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    if (!ctx)
        die("SSL_CTX_new");
    SSL_CTX_set_app_data(ctx, s);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL_STORE);
    SSL_CTX_sess_set_new_cb(ctx, on_session);
    SSL_CTX_set_keylog_callback(ctx, on_keylog);
    SSL_CTX_set_msg_callback(ctx, on_message);
    if (o->version) {
        SSL_CTX_set_min_proto_version(ctx, o->version);
        SSL_CTX_set_max_proto_version(ctx, o->version);
    }
    if (o->no_ticket)
        SSL_CTX_set_options(ctx, SSL_OP_NO_TICKET);
    if (o->groups && SSL_CTX_set1_groups_list(ctx, o->groups) != 1)
        die(o->groups);
    if (o->certificate &&
        (SSL_CTX_use_certificate_file(ctx, o->certificate, SSL_FILETYPE_PEM) != 1 ||
         SSL_CTX_use_PrivateKey_file(ctx, o->certificate, SSL_FILETYPE_PEM) != 1))
        die(o->certificate);
    if (o->authority) {
        if (SSL_CTX_load_verify_locations(ctx, o->authority, NULL) != 1)
            die(o->authority);
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    }
    return ctx;
}

static SSL_SESSION *read_session(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        return NULL;
    SSL_SESSION *session = PEM_read_SSL_SESSION(file, NULL, NULL, NULL);
    fclose(file);
    return session;
}

static void write_session(const char *path, SSL_SESSION *session)
{
    FILE *file = fopen(path, "w");
    if (!file || PEM_write_SSL_SESSION(file, session) != 1 || fclose(file) != 0)
        die(path);
}

static int version_of(const char *text)
{
    return strcmp(text, "1.2") == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;
}

static void add_sources(struct options *o, char *list)
{
    for (char *one = strtok(list, ","); one && o->source_count < SOURCES_MAX;
         one = strtok(NULL, ","))
        o->sources[o->source_count++] = one;
}

int main(int argc, char **argv)
{
    struct options o = { .path = "/", .label = "-", .rounds = 1 };
    for (int option; (option = getopt(argc, argv, "n:w:b:s:a:p:v:g:ic:C:S:k:l:r")) != -1;) {
        switch (option) {
        case 'n': o.rounds = strtol(optarg, NULL, 10); break;
        case 'w': o.pause_ms = strtol(optarg, NULL, 10); break;
        case 'b': add_sources(&o, optarg); break;
        case 's': o.name = optarg; break;
        case 'a': o.alpn = optarg; break;
        case 'p': o.path = optarg; break;
        case 'v': o.version = version_of(optarg); break;
        case 'g': o.groups = optarg; break;
        case 'i': o.no_ticket = true; break;
        case 'c': o.certificate = optarg; break;
        case 'C': o.authority = optarg; break;
        case 'S': o.session_file = optarg; break;
        case 'k': o.keylog_file = optarg; break;
        case 'l': o.label = optarg; break;
        case 'r': o.keep_session = true; break;
        default: usage();
        }
    }
    if (argc - optind < 3)
        usage();
    o.server = argv[optind];
    o.port = atoi(argv[optind + 1]);

    signal(SIGPIPE, SIG_IGN);
    struct state state = { .keep_session = o.keep_session, .alert = -1 };
    if (o.keylog_file && !(state.keylog = fopen(o.keylog_file, "a")))
        die(o.keylog_file);
    if (o.session_file)
        state.session = read_session(o.session_file);
    SSL_CTX *ctx = new_context(&o, &state);
    size_t turn = 0;
    for (long round = 0; round < o.rounds; round++) {
        for (int i = optind + 2; i < argc; i++, turn++) {
            const char *source = o.source_count ? o.sources[turn % o.source_count] : NULL;
            run_mode(&o, argv[i], source, ctx, &state);
            usleep((useconds_t)(o.pause_ms * 1000));
        }
    }
    if (o.session_file && state.session)
        write_session(o.session_file, state.session);
    SSL_SESSION_free(state.session);
    SSL_CTX_free(ctx);
    if (state.keylog)
        fclose(state.keylog);
    return EXIT_SUCCESS;
}
