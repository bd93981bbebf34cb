/* SPDX-License-Identifier: Apache-2.0 */
#include "http.h"

#include <stdlib.h>

#ifdef HAVE_CURL

#include <curl/curl.h>

enum { CONNECT_SECONDS = 15 };

struct http {
    struct http_options options;
    CURL *curl;
    CURLU *url; /* as given */
    struct curl_slist *headers;
    struct text server;
    char said[CURL_ERROR_SIZE]; /* by libcurl of a failure */
    bool too_much;              /* of the answer */
    struct text *answer;        /* of the request that runs */
};

const char *http_library_version(void)
{
    return curl_version_info(CURLVERSION_NOW)->version;
}

/* ---- the URL ---- */

static bool has_part(CURLU *url, CURLUPart part)
{
    char *text = NULL;
    bool has = curl_url_get(url, part, &text, 0) == CURLUE_OK && text[0] != '\0';
    curl_free(text);
    return has;
}

static bool query_has_password(CURLU *url)
{
    static const char NAME[] = "password=";
    char *query = NULL;
    bool has = false;
    if (curl_url_get(url, CURLUPART_QUERY, &query, CURLU_URLDECODE) == CURLUE_OK)
        for (const char *at = query; at != NULL && !has; at = strchr(at, '&')) {
            at += *at == '&';
            has = strncasecmp(at, NAME, strlen(NAME)) == 0;
        }
    curl_free(query);
    return has;
}

bool http_url_has_password(const char *text)
{
    CURLU *url = curl_url();
    bool has = url != NULL && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
               (has_part(url, CURLUPART_PASSWORD) || query_has_password(url));
    curl_url_cleanup(url);
    return has;
}

/* Adds the part, what stands before it, or nothing where there is none. */
static void add_part(struct text *t, CURLU *url, CURLUPart part, const char *before)
{
    char *text = NULL;
    if (curl_url_get(url, part, &text, CURLU_DEFAULT_PORT) == CURLUE_OK)
        text_addf(t, "%s%s", before, text);
    curl_free(text);
}

static bool is_http(CURLU *url)
{
    char *scheme = NULL;
    bool is = curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
              (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
    curl_free(scheme);
    return is;
}

/* ---- what libcurl calls ---- */

static size_t take_answer(char *data, size_t size, size_t count, void *context)
{
    struct http *h = context;
    size_t len = size * count;
    if (len > h->options.answer_max - h->answer->len) {
        h->too_much = true;
        return 0;
    }
    text_add_bytes(h->answer, (struct bytes){ (const uint8_t *)data, len });
    return h->answer->failed ? 0 : len;
}

static int go_on(void *context, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                 curl_off_t up)
{
    const struct http *h = context;
    (void)down_total, (void)down, (void)up_total, (void)up;
    return *h->options.interrupted != 0;
}

/* ---- requests ---- */

static bool set_protocols(CURL *c)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    return curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK;
#else
    return curl_easy_setopt(c, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS)) ==
           CURLE_OK;
#endif
}

static bool add_header(struct http *h, const char *line)
{
    struct curl_slist *longer = curl_slist_append(h->headers, line);
    if (longer == NULL)
        return false;
    h->headers = longer;
    return curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, h->headers) == CURLE_OK;
}

/* What is the same for all requests. Redirections are not followed: rows go where they should. */
static bool prepare(struct http *h)
{
    CURL *c = h->curl;
    const struct http_options *o = &h->options;
    bool ok = set_protocols(c) && add_header(h, "Content-Type: application/octet-stream") &&
              add_header(h, "Expect:") && /* or libcurl asks before it sends a large body */
              curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_ERRORBUFFER, h->said) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_USERAGENT, o->agent) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_TIMEOUT, (long)o->timeout_s) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take_answer) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_WRITEDATA, h) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_NOPROGRESS, 0L) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_XFERINFOFUNCTION, go_on) == CURLE_OK &&
              curl_easy_setopt(c, CURLOPT_XFERINFODATA, h) == CURLE_OK;
    if (ok && o->user != NULL)
        ok = curl_easy_setopt(c, CURLOPT_USERNAME, o->user) == CURLE_OK &&
             curl_easy_setopt(c, CURLOPT_PASSWORD, o->password == NULL ? "" : o->password) ==
                 CURLE_OK;
    return ok;
}

enum status http_open(const struct http_options *options, struct http **ret_http,
                      struct text *error)
{
    struct http *h = calloc(1, sizeof *h);
    *ret_http = h;
    if (h == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return STATUS_NO_MEMORY;
    h->options = *options;
    h->curl = curl_easy_init();
    h->url = curl_url();
    if (h->curl == NULL || h->url == NULL)
        return STATUS_NO_MEMORY;
    if (curl_url_set(h->url, CURLUPART_URL, options->url, 0) != CURLUE_OK || !is_http(h->url)) {
        text_add(error, "--url is no URL of http or https, as http://127.0.0.1:8123/?database=d");
        return STATUS_USAGE;
    }
    add_part(&h->server, h->url, CURLUPART_SCHEME, "");
    add_part(&h->server, h->url, CURLUPART_HOST, "://");
    add_part(&h->server, h->url, CURLUPART_PORT, ":");
    return prepare(h) && !h->server.failed ? STATUS_OK : STATUS_NO_MEMORY;
}

void http_close(struct http *h)
{
    if (h == NULL)
        return;
    curl_easy_cleanup(h->curl);
    curl_slist_free_all(h->headers);
    curl_url_cleanup(h->url);
    curl_global_cleanup();
    text_done(&h->server);
    free(h);
}

const char *http_server(const struct http *h)
{
    return text_string(&h->server);
}

/* Adds "query=..." and the settings to what the URL says already. */
static bool add_arguments(CURLU *url, const struct http_request *request)
{
    struct text query = { 0 };
    text_addf(&query, "query=%s", request->query);
    bool ok = !query.failed && curl_url_set(url, CURLUPART_QUERY, text_string(&query),
                                            CURLU_APPENDQUERY | CURLU_URLENCODE) == CURLUE_OK;
    if (ok && request->settings != NULL)
        ok = curl_url_set(url, CURLUPART_QUERY, request->settings, CURLU_APPENDQUERY) == CURLUE_OK;
    text_done(&query);
    return ok;
}

/* Failures that a second try will meet again. */
static bool is_permanent(CURLcode code)
{
    return code == CURLE_UNSUPPORTED_PROTOCOL || code == CURLE_URL_MALFORMAT ||
           code == CURLE_PEER_FAILED_VERIFICATION || code == CURLE_SSL_CACERT_BADFILE ||
           code == CURLE_WRITE_ERROR || code == CURLE_OUT_OF_MEMORY;
}

static enum status explain(const struct http *h, CURLcode code, struct text *error)
{
    text_clear(error);
    if (h->too_much)
        text_addf(error, "%s: answers more than a server of ClickHouse would", http_server(h));
    else
        text_addf(error, "%s: %s", http_server(h),
                  h->said[0] != '\0' ? h->said : curl_easy_strerror(code));
    return is_permanent(code) ? STATUS_REFUSED : STATUS_IO;
}

static CURLcode perform(struct http *h, CURLU *url, const struct http_request *request)
{
    CURL *c = h->curl;
    CURLcode code = curl_easy_setopt(c, CURLOPT_CURLU, url);
    if (code == CURLE_OK)
        code = curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
    if (code == CURLE_OK)
        code = curl_easy_setopt(c, CURLOPT_POSTFIELDS,
                                request->body.len > 0 ? (const char *)request->body.at : "");
    if (code == CURLE_OK)
        code = curl_easy_perform(c);
    (void)curl_easy_setopt(c, CURLOPT_CURLU, NULL);
    return code;
}

enum status http_send(struct http *h, const struct http_request *request,
                      struct http_answer *ret_answer, struct text *error)
{
    CURLU *url = curl_url_dup(h->url);
    text_clear(&ret_answer->body);
    h->answer = &ret_answer->body;
    h->said[0] = '\0';
    h->too_much = false;
    CURLcode code =
        url != NULL && add_arguments(url, request) ? perform(h, url, request) : CURLE_OUT_OF_MEMORY;
    curl_url_cleanup(url);
    if (code == CURLE_OK)
        code = curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &ret_answer->code);
    return code == CURLE_OK ? STATUS_OK : explain(h, code, error);
}

#else

const char *http_library_version(void)
{
    return NULL;
}

bool http_url_has_password(const char *url)
{
    (void)url;
    return false;
}

enum status http_open(const struct http_options *options, struct http **ret_http,
                      struct text *error)
{
    (void)options;
    *ret_http = NULL;
    text_add(error, "this firstflight was built without libcurl, so there is no --url; write to a "
                    "file or pipe and let clickhouse-client or curl send it");
    return STATUS_REFUSED;
}

void http_close(struct http *h)
{
    (void)h;
}

const char *http_server(const struct http *h)
{
    (void)h;
    return "";
}

enum status http_send(struct http *h, const struct http_request *request,
                      struct http_answer *ret_answer, struct text *error)
{
    (void)h, (void)request, (void)ret_answer, (void)error;
    return STATUS_REFUSED;
}

#endif
