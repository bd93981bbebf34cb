/* SPDX-License-Identifier: Apache-2.0 */
#include "mix.h"

#include <math.h>
#include <stdlib.h>

static const double CAP_QUANTILE = 0.99;

/* Flows of one stratum and their summed wait. */
struct heap {
    double flows[WINDOWS], wait_ns[WINDOWS];
};

/* NAN where it is not known or the flow not of the scope. */
static double wait_of(const struct scope *scope, const struct seen *f)
{
    return scope_holds(scope, f) ? (double)f->duration_ns[DURATION_PERCEIVED] : NAN;
}

static enum status cap_of(const struct windows *w, const struct scope *scope, double *ret_cap_ns)
{
    double *waits = calloc(w->count + 1, sizeof *waits);
    if (!waits)
        return STATUS_NO_MEMORY;
    size_t count = 0;
    for (size_t i = 0; i < w->count; i++) {
        double wait_ns = wait_of(scope, &w->flows[i]);
        if (!isnan(wait_ns))
            waits[count++] = wait_ns;
    }
    values_sort(waits, count);
    *ret_cap_ns = quantile_of(waits, count, CAP_QUANTILE);
    free(waits);
    return STATUS_OK;
}

/* Kinds of handshake inside of visitors, who are alike in region, vantage, name and version. */
struct heaps {
    struct heap *kinds, *visitors;
    uint32_t *visitors_of; /* of each kind */
};

static void heaps_done(struct heaps *h)
{
    free(h->kinds);
    free(h->visitors);
    free(h->visitors_of);
}

static enum status heaps_init(struct heaps *h, const struct windows *w)
{
    size_t kinds = w->alike_count[ALIKE_KIND] + 1, visitors = w->alike_count[ALIKE_NAME] + 1;
    h->kinds = calloc(kinds, sizeof *h->kinds);
    h->visitors = calloc(visitors, sizeof *h->visitors);
    h->visitors_of = calloc(kinds, sizeof *h->visitors_of);
    return h->kinds && h->visitors && h->visitors_of ? STATUS_OK : STATUS_NO_MEMORY;
}

static void heap_up(struct heaps *h, const struct windows *w, const struct scope *scope,
                    double cap_ns)
{
    for (size_t i = 0; i < w->count; i++) {
        const struct seen *f = &w->flows[i];
        uint32_t kind = f->alike[ALIKE_KIND], visitors = f->alike[ALIKE_NAME];
        if (isnan(wait_of(scope, f)))
            continue;
        double wait_ns = fmin(wait_of(scope, f), cap_ns);
        h->visitors_of[kind] = visitors;
        h->kinds[kind].flows[f->window]++;
        h->kinds[kind].wait_ns[f->window] += wait_ns;
        h->visitors[visitors].flows[f->window]++;
        h->visitors[visitors].wait_ns[f->window] += wait_ns;
    }
}

/* Mean wait in a window or, where there are no flows, in the other. */
static double mean_of(const struct heap *h, enum window window)
{
    enum window known = h->flows[window] > 0 ? window : window == BEFORE ? DURING : BEFORE;
    return h->wait_ns[known] / h->flows[known];
}

/* Share of a part in its whole; of visitors that were not there, as in the other window. */
static double share_in(const struct heap *part, const struct heap *whole, enum window window)
{
    enum window known = whole->flows[window] > 0 ? window : window == BEFORE ? DURING : BEFORE;
    return part->flows[known] / whole->flows[known];
}

static struct mix take_apart(const struct heaps *h, const struct windows *w)
{
    struct heap all = { 0 };
    struct mix mix = { 0 };
    for (size_t i = 0; i < w->alike_count[ALIKE_NAME]; i++) {
        for (size_t window = 0; window < WINDOWS; window++) {
            all.flows[window] += h->visitors[i].flows[window];
            all.wait_ns[window] += h->visitors[i].wait_ns[window];
        }
    }
    mix.flows[BEFORE] = (int64_t)all.flows[BEFORE];
    mix.flows[DURING] = (int64_t)all.flows[DURING];
    mix.before_ns = all.wait_ns[BEFORE] / all.flows[BEFORE];
    mix.during_ns = all.wait_ns[DURING] / all.flows[DURING];
    for (size_t i = 0; i < w->alike_count[ALIKE_NAME]; i++) {
        const struct heap *v = &h->visitors[i];
        if (v->flows[BEFORE] + v->flows[DURING] > 0)
            mix.visitors_ns +=
                (v->flows[DURING] / all.flows[DURING] - v->flows[BEFORE] / all.flows[BEFORE]) *
                mean_of(v, BEFORE);
    }
    for (size_t i = 0; i < w->alike_count[ALIKE_KIND]; i++) {
        const struct heap *k = &h->kinds[i], *v = &h->visitors[h->visitors_of[i]];
        if (k->flows[BEFORE] + k->flows[DURING] > 0)
            mix.kinds_ns += v->flows[DURING] / all.flows[DURING] *
                            (share_in(k, v, DURING) - share_in(k, v, BEFORE)) * mean_of(k, BEFORE);
    }
    mix.within_ns = mix.during_ns - mix.before_ns - mix.visitors_ns - mix.kinds_ns;
    return mix;
}

enum status mix_of(const struct windows *w, const struct scope *scope, struct mix *ret_mix)
{
    struct heaps h = { 0 };
    double cap_ns = 0;
    enum status status = cap_of(w, scope, &cap_ns);
    if (status == STATUS_OK)
        status = heaps_init(&h, w);
    if (status == STATUS_OK) {
        heap_up(&h, w, scope, cap_ns);
        *ret_mix = take_apart(&h, w);
    }
    heaps_done(&h);
    return status;
}
