/* SPDX-License-Identifier: Apache-2.0 */
#include "continuation.h"

#include "carry.h"

#include <stdlib.h>

void continuation_done(struct continuation *c)
{
    free(c->flows);
    free(c->continued);
    buffer_done(&c->state);
    *c = (struct continuation){ 0 };
}

struct store_point store_point_of(const struct capture_point *point)
{
    return (struct store_point){ .name = point->name,
                                 .site = point->labels.site,
                                 .host = point->labels.host,
                                 .region = point->labels.region,
                                 .labels = point->labels.other };
}

enum status continuation_find(struct continuation *c, struct store *store,
                              const struct capture_point *point)
{
    struct store_point key = store_point_of(point);
    struct open_point found;
    enum status status = store_find_point(store, &key, &found);
    if (status != STATUS_OK)
        return status;
    c->point_id = found.point_id;
    c->capture_id = found.capture_id;
    c->until_ns = found.until_ns;
    c->runs = found.runs;
    c->state.len = 0;
    c->unreadable += found.state.len > 0 && found.version != CARRY_VERSION;
    if (found.version != CARRY_VERSION)
        return STATUS_OK;
    return buffer_add(&c->state, found.state) ? STATUS_OK : STATUS_NO_MEMORY;
}

static bool reserve_flow(struct continuation *c)
{
    if (c->flow_count < c->flow_capacity)
        return true;
    size_t capacity = c->flow_capacity == 0 ? 256 : 2 * c->flow_capacity;
    struct resumed_flow *flows = realloc(c->flows, capacity * sizeof *flows);
    if (flows == NULL)
        return false;
    c->flows = flows;
    c->flow_capacity = capacity;
    return true;
}

/* The store's flows are listed before the analysis sees one: it keeps a pointer to `continued`. */
static enum status list_flows(struct continuation *c, struct store *store)
{
    struct open_flow flow;
    enum status status;
    c->flow_count = 0;
    while ((status = store_next_open_flow(store, c->point_id, &flow)) == STATUS_OK) {
        if (c->flow_count == UINT32_MAX - 1 || !reserve_flow(c))
            return STATUS_NO_MEMORY;
        c->flows[c->flow_count++] = (struct resumed_flow){ flow.flow_id, flow.capture_id };
    }
    if (status != STATUS_END)
        return status;
    free(c->continued);
    c->continued = calloc(c->flow_count + 1, sizeof *c->continued);
    return c->continued == NULL ? STATUS_NO_MEMORY : STATUS_OK;
}

static enum status resume_flows(struct continuation *c, struct store *store,
                                struct analysis *analysis)
{
    struct open_flow flow;
    enum status status;
    for (uint32_t number = 0;
         (status = store_next_open_flow(store, c->point_id, &flow)) == STATUS_OK; number++) {
        enum status resumed = STATUS_REFUSED;
        if (number >= c->flow_count || c->flows[number].flow_id != flow.flow_id)
            continue; /* somebody else writes: continuation_check() will see that */
        if (flow.version == CARRY_VERSION)
            resumed = analysis_resume_flow(analysis, number, flow.state, FILE_OF_EARLIER_RUN);
        if (resumed == STATUS_REFUSED) { /* its row stays as it is, and nothing will complete it */
            c->continued[number] = true;
            c->unreadable++;
        } else if (resumed != STATUS_OK) {
            return resumed;
        }
    }
    return status == STATUS_END ? STATUS_OK : status;
}

enum status continuation_resume(struct continuation *c, struct store *store,
                                struct analysis *analysis)
{
    enum status status = list_flows(c, store);
    if (status != STATUS_OK || c->point_id == 0)
        return status;
    analysis_set_continued(analysis, c->continued);
    struct bytes state = { c->state.at, c->state.len };
    if (state.len > 0)
        status = analysis_resume_point(analysis, state, FILE_OF_EARLIER_RUN);
    if (status == STATUS_REFUSED) {
        c->unreadable++;
        status = STATUS_OK;
    }
    return status == STATUS_OK ? resume_flows(c, store, analysis) : status;
}

enum status continuation_check(const struct continuation *c, struct store *store,
                               const struct capture_point *point, bool *ret_is_current)
{
    struct store_point key = store_point_of(point);
    struct open_point now;
    enum status status = store_find_point(store, &key, &now);
    if (status == STATUS_OK)
        *ret_is_current = now.point_id == c->point_id && now.runs == c->runs;
    return status;
}

enum status continuation_close_flows(const struct continuation *c, struct store *store)
{
    enum status status = STATUS_OK;
    for (size_t k = 0; k < c->flow_count && status == STATUS_OK; k++)
        if (c->continued[k])
            status = store_close_flow(store, c->point_id, c->flows[k].flow_id);
    return status;
}

enum status continuation_keep(struct continuation *c, struct store *store, int64_t capture_id,
                              int64_t until_ns)
{
    c->point_id = c->point_id == 0 ? capture_id : c->point_id;
    struct open_point point = {
        .point_id = c->point_id,
        .capture_id = capture_id,
        .until_ns = until_ns > c->until_ns ? until_ns : c->until_ns,
        .runs = c->runs + 1,
        .version = CARRY_VERSION,
        .state = { c->state.at, c->state.len },
    };
    return store_put_point(store, &point);
}
