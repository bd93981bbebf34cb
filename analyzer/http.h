/* SPDX-License-Identifier: Apache-2.0 */
#ifndef HTTP_H
#define HTTP_H
/* Edge to libcurl: requests of HTTP, one after the other, to one server. */
#include "status.h"
#include "text.h"

#include <signal.h>

struct http;

struct http_options {
    const char *url;                    /* http or https; its query stays in each request */
    const char *user;                   /* with password for Basic authentication; NULL: none */
    const char *password;               /* NULL: empty */
    int64_t timeout_s;                  /* of one request from its begin to its end */
    const char *agent;                  /* how the program calls itself */
    size_t answer_max;                  /* bytes of an answer that are taken; more is a failure */
    volatile sig_atomic_t *interrupted; /* becomes other than 0: a request ends at once */
};

/* Version of libcurl in use; NULL when built without. */
const char *http_library_version(void);

/* Whether a URL says a password, as "http://u:p@host" or "?password=p" do. False if it is no URL.
 */
bool http_url_has_password(const char *url);

/*
 * Prepares for requests; nothing is sent. Starts no thread and opens nothing but what libcurl needs
 * to begin with. STATUS_USAGE: no URL of http or https; STATUS_REFUSED: built without libcurl;
 * error says so. Strings of the options must outlive it.
 */
MUST_USE enum status http_open(const struct http_options *options, struct http **ret_http,
                               struct text *error);
void http_close(struct http *h); /* NULL is accepted */

/* "http://host:port", without what may be secret. Lives as long as h. */
const char *http_server(const struct http *h);

/* One request: `query` and `settings` as arguments behind those of the URL, with a body of any
 * length, which may be empty. */
struct http_request {
    const char *query;
    const char *settings; /* "name=value&..." as it is; NULL: none */
    struct bytes body;
};

struct http_answer {
    long code;        /* 200 and so on */
    struct text body; /* as it came; empty it with text_done() */
};

/*
 * Sends a request and waits for the whole answer. STATUS_OK whatever its code; STATUS_IO: there is
 * no answer, or not all of it, and asking again may help; STATUS_REFUSED: asking again does not.
 * Both: error says what happened.
 */
MUST_USE enum status http_send(struct http *h, const struct http_request *request,
                               struct http_answer *ret_answer, struct text *error);

#endif
