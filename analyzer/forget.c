/* SPDX-License-Identifier: Apache-2.0 */
#include "forget.h"

#include "moment.h"

#include <unistd.h>

static enum status failed(struct store *store, enum status status, struct text *error)
{
    if (status != STATUS_OK)
        text_add(error, store_error(store));
    return status;
}

/* The time of --before, which may be told by the data. */
static enum status read_before(struct store *store, const char *text, int64_t *ret_ns,
                               struct text *error)
{
    struct span data;
    enum status status = failed(store, store_span(store, &data.first_ns, &data.last_ns), error);
    if (status != STATUS_OK || moment_parse(text, data, ret_ns))
        return status;
    text_addf(error,
              "--before %s: is no time; write 2026-06-02T14:00, 14:00, -30d or seconds since"
              " 1970",
              text);
    return STATUS_USAGE;
}

static enum status forget_in(struct store *store, const struct forget_options *o,
                             struct forgotten *forgotten, struct text *error)
{
    int64_t before_ns = 0;
    enum status status =
        o->before == NULL ? STATUS_OK : read_before(store, o->before, &before_ns, error);
    if (status != STATUS_OK)
        return status;
    status = store_begin(store);
    if (status == STATUS_OK)
        status = o->before != NULL ? store_forget_before(store, before_ns, forgotten)
                                   : store_forget_site(store, o->site, forgotten);
    if (status == STATUS_OK)
        status = store_commit(store);
    else
        store_rollback(store);
    if (status == STATUS_OK)
        status = store_shrink(store);
    return failed(store, status, error);
}

enum status forget(const struct forget_options *options, struct forgotten *ret_forgotten,
                   struct text *error)
{
    struct store *store = NULL;
    *ret_forgotten = (struct forgotten){ 0 };
    if (access(options->database, F_OK) != 0) {
        text_addf(error, "%s: no such database; firstflight ingest makes one", options->database);
        return STATUS_IO;
    }
    enum status status = store_open(options->database, &store);
    if (store == NULL) {
        text_add(error, "out of memory");
        return status;
    }
    status = failed(store, status, error);
    if (status == STATUS_OK)
        status = forget_in(store, options, ret_forgotten, error);
    store_close(store);
    return status;
}
