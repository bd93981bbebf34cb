/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 * Twice over the flows: the first time to learn from the facts of all of them and to put them, in
 * their packed form, on a stage; then from the stage to judge each, compare and write. So no row
 * changes while rows are read, and JSON is parsed once.
 *
 *   flow_facts -> facts -> profiles, neighbours          first
 *                   |
 *                 stage -> verdict, path, timing -> row  then, where the row differs
 *
 * A flow without facts (no TLS, or --no-facts) keeps its verdict. What a neighbour says of the way
 * to its client can change nevertheless, and all that rests on that way is in its row.
 */
#include "rejudge.h"

#include "hash.h"
#include "judge.h"
#include "neighbour.h"
#include "privacy.h"
#include "row.h"
#include "stage.h"
#include "timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum {
    CHANGES_MAX = 1024
}; /* different ones; words come from the database, which anyone may edit */

/* A flow on the stage; its packed facts follow, if it has any. */
struct staged {
    int64_t flow_id, point_id, start_ns;
    int64_t neighbour_ns;  /* as known so far, DURATION_NONE without */
    struct address client; /* its address or hash */
    bool has_client;       /* false: its address is not stored, so nothing can be learned of it */
};

struct point {
    int64_t point_id;
    struct neighbours *neighbours;
};

struct rejudge {
    struct store *store;
    struct profiles *learning;       /* from all flows; NULL: nothing is learned */
    struct profiles *lasting;        /* from those that no other run will complete */
    struct profiles *known;          /* what the database said before */
    const struct profiles *profiles; /* to judge by */
    struct stage *stage;
    struct point *points; /* without learning there are none: neighbours are as known so far */
    size_t point_count, last_point;
    struct buffer item;
    struct changes *changes;
    struct text *error;
};

/* ---- what changed ---- */

void changes_done(struct changes *c)
{
    for (size_t i = 0; i < c->count; i++) {
        free(c->list[i].before);
        free(c->list[i].after);
    }
    free(c->list);
    *c = (struct changes){ 0 };
}

static struct change *find_change(struct changes *c, int column_no, const char *before,
                                  const char *after)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->list[i].column_no == column_no && strcmp(c->list[i].before, before) == 0 &&
            strcmp(c->list[i].after, after) == 0)
            return &c->list[i];
    return NULL;
}

static void note(struct changes *c, int column_no, const char *column, const char *before,
                 const char *after)
{
    struct change *known = find_change(c, column_no, before, after);
    if (known != NULL) {
        known->flows++;
        return;
    }
    if (c->count == CHANGES_MAX)
        return;
    if (c->count == c->capacity) {
        size_t capacity = c->capacity == 0 ? 32 : 2 * c->capacity;
        struct change *grown = realloc(c->list, capacity * sizeof *grown);
        if (grown == NULL)
            return; /* a line less in the list of what changed */
        c->list = grown;
        c->capacity = capacity;
    }
    struct change made = { column, column_no, strdup(before), strdup(after), 1 };
    if (made.before == NULL || made.after == NULL) {
        free(made.before);
        free(made.after);
        return;
    }
    c->list[c->count++] = made;
}

/* Small numbers are as good as words; of others it is only said that they are there. */
static bool is_word_like(const struct row_integer *value)
{
    return !value->has || (value->value >= 0 && value->value <= 9);
}

static const char *number_word(const struct row_integer *value, bool as_word, char digit[2])
{
    if (!value->has)
        return "NULL";
    if (!as_word)
        return "a value";
    digit[0] = (char)('0' + value->value);
    digit[1] = '\0';
    return digit;
}

static bool note_integer(struct changes *c, int column_no, const char *column,
                         const struct row_integer *before, const struct row_integer *after)
{
    char digits[2][2];
    if (before->has == after->has && (before->value == after->value || !before->has))
        return false;
    bool as_words = is_word_like(before) && is_word_like(after);
    const char *from = number_word(before, as_words, digits[0]);
    const char *to = number_word(after, as_words, digits[1]);
    note(c, column_no, column, from, strcmp(from, to) == 0 ? "another value" : to);
    return true;
}

static bool note_real(struct changes *c, int column_no, const char *column,
                      const struct row_real *before, const struct row_real *after)
{
    bool same = before->value == after->value;
    if (before->has == after->has && (same || !before->has))
        return false;
    note(c, column_no, column, before->has ? "a value" : "NULL",
         !after->has   ? "NULL"
         : before->has ? "another value"
                       : "a value");
    return true;
}

static bool note_text(struct changes *c, int column_no, const char *column,
                      const struct row_text *before, const struct row_text *after)
{
    bool both = before->at != NULL && after->at != NULL;
    if (before->at == after->at || (both && strcmp(before->at, after->at) == 0))
        return false;
    note(c, column_no, column, before->at == NULL ? "NULL" : before->at,
         after->at == NULL ? "NULL" : after->at);
    return true;
}

/* Whether a row differs, noting each column that does. */
static bool note_row(struct changes *c, const struct flow_row *before, const struct flow_row *after)
{
    bool differs = false;
    int no = 0;
#define NOTE_INTEGER(name) differs |= note_integer(c, no++, #name, &before->name, &after->name);
#define NOTE_REAL(name) differs |= note_real(c, no++, #name, &before->name, &after->name);
#define NOTE_TEXT(name) differs |= note_text(c, no++, #name, &before->name, &after->name);
    FLOW_JUDGED(NOTE_INTEGER, NOTE_REAL, NOTE_TEXT)
#undef NOTE_INTEGER
#undef NOTE_REAL
#undef NOTE_TEXT
    return differs;
}

static int compare_changes(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    int order = x->column_no - y->column_no;
    if (order == 0)
        order = strcmp(x->before, y->before);
    return order != 0 ? order : strcmp(x->after, y->after);
}

enum status changes_write(const struct changes *c, struct table_style style, FILE *out)
{
    static const char *const NAMES[] = { "column_name", "before", "after", "flows" };
    enum { COLUMNS = sizeof NAMES / sizeof NAMES[0] };
    struct table *table = table_open(out, style, NAMES, COLUMNS);
    enum status status = table == NULL ? STATUS_NO_MEMORY : STATUS_OK;
    for (size_t i = 0; i < c->count && status == STATUS_OK; i++) {
        const struct change *change = &c->list[i];
        struct cell cells[COLUMNS] = { cell_text(change->column), cell_text(change->before),
                                       cell_text(change->after),
                                       cell_integer((int64_t)change->flows) };
        status = table_add(table, cells);
    }
    enum status closed = table_close(table);
    return status == STATUS_OK ? closed : status;
}

/* ---- failures ---- */

static enum status store_failed(struct rejudge *r, enum status status)
{
    if (status != STATUS_OK && status != STATUS_END)
        text_add(r->error, store_error(r->store));
    return status;
}

static enum status stage_failed(struct rejudge *r, enum status status)
{
    if (status != STATUS_OK && status != STATUS_END)
        text_add(r->error, status == STATUS_NO_MEMORY ? "out of memory" : stage_error(r->stage));
    return status;
}

static enum status no_memory(struct rejudge *r)
{
    text_add(r->error, "out of memory");
    return STATUS_NO_MEMORY;
}

/* ---- neighbours ---- */

/* What the flows of a capture point know of their clients; NULL without memory. */
static struct neighbours *neighbours_of(struct rejudge *r, int64_t point_id)
{
    if (r->last_point < r->point_count && r->points[r->last_point].point_id == point_id)
        return r->points[r->last_point].neighbours;
    for (size_t i = 0; i < r->point_count; i++)
        if (r->points[i].point_id == point_id) {
            r->last_point = i;
            return r->points[i].neighbours;
        }
    struct point *grown = realloc(r->points, (r->point_count + 1) * sizeof *grown);
    if (grown == NULL)
        return NULL;
    r->points = grown;
    struct neighbours *made = neighbours_open(hash_random_seed());
    if (made == NULL)
        return NULL;
    r->last_point = r->point_count;
    r->points[r->point_count++] = (struct point){ point_id, made };
    return made;
}

static enum status add_neighbour(struct rejudge *r, const struct staged *flow, int64_t rtt_ns)
{
    struct neighbours *n = neighbours_of(r, flow->point_id);
    return n == NULL ? STATUS_NO_MEMORY : neighbours_add(n, &flow->client, flow->start_ns, rtt_ns);
}

static int64_t neighbour_rtt(struct rejudge *r, const struct staged *flow)
{
    if (r->learning == NULL || !flow->has_client)
        return flow->neighbour_ns;
    struct neighbours *n = neighbours_of(r, flow->point_id);
    return n == NULL ? DURATION_NONE : neighbours_least(n, &flow->client, flow->start_ns);
}

/* ---- first: learning and staging ---- */

static bool is_word(const struct row_text *text, const char *word)
{
    return text->at != NULL && strcmp(text->at, word) == 0;
}

static enum status put_on_stage(struct rejudge *r, const struct staged *flow, const struct facts *f)
{
    uint64_t number;
    r->item.len = 0;
    if (!buffer_add(&r->item, (struct bytes){ (const uint8_t *)flow, sizeof *flow }))
        return no_memory(r);
    if (f != NULL && facts_pack(f, &r->item) != STATUS_OK)
        return no_memory(r);
    return stage_failed(r, stage_add(r->stage, (struct bytes){ r->item.at, r->item.len }, &number));
}

static enum status learn(struct rejudge *r, const struct facts *f, bool is_open)
{
    enum status status = profiles_learn(r->learning, f);
    return status != STATUS_OK || is_open ? status : profiles_learn(r->lasting, f);
}

static enum status take_facts(struct rejudge *r, struct staged *flow, const struct facts *f,
                              bool is_open)
{
    flow->start_ns = f->start_ns;
    if (r->learning != NULL) {
        int64_t rtt_ns = flow->has_client ? client_rtt_by_ack(f) : DURATION_NONE;
        if (learn(r, f, is_open) != STATUS_OK ||
            (rtt_ns != DURATION_NONE && add_neighbour(r, flow, rtt_ns) != STATUS_OK))
            return no_memory(r);
    }
    return put_on_stage(r, flow, f);
}

/* A flow without facts: either it shows the way to its client, or it may learn it of a neighbour.
 */
static enum status take_row(struct rejudge *r, struct staged *flow, const struct stored_flow *row)
{
    if (!flow->has_client)
        return STATUS_OK;
    if (!is_word(&row->rtt_basis, "ack"))
        return put_on_stage(r, flow, NULL);
    return add_neighbour(r, flow, row->client_rtt_ns.value) == STATUS_OK ? STATUS_OK : no_memory(r);
}

static enum status take_flow(struct rejudge *r, const struct stored_flow *row)
{
    struct staged flow = {
        .flow_id = row->flow_id,
        .point_id = row->point_id,
        .start_ns = row->start_ns,
        .neighbour_ns =
            is_word(&row->rtt_basis, "neighbour") ? row->client_rtt_ns.value : DURATION_NONE,
    };
    flow.has_client =
        row->client_ip.at != NULL && privacy_parse_client(row->client_ip.at, &flow.client);
    if (row->facts.at == NULL)
        return take_row(r, &flow, row);
    struct facts f;
    struct bytes json = { (const uint8_t *)row->facts.at, row->facts.len };
    enum status status = facts_from_json(json, &f);
    if (status == STATUS_REFUSED) {
        r->changes->unreadable++;
        return STATUS_OK;
    }
    if (status != STATUS_OK)
        return status;
    status = take_facts(r, &flow, &f, row->is_open);
    facts_done(&f);
    return status;
}

static enum status take_all(struct rejudge *r)
{
    struct stored_flow row;
    enum status status;
    while ((status = store_failed(r, store_next_flow(r->store, &row))) == STATUS_OK) {
        status = take_flow(r, &row);
        if (status != STATUS_OK)
            return status;
    }
    return status == STATUS_END ? STATUS_OK : status;
}

static bool was_learned_of(const struct profiles *p, const struct stored_flow *row)
{
    struct endpoint server = { .port = row->server_port };
    if (!address_parse(row->server_ip.at, &server.address))
        return false;
    const struct profile *profile = profiles_of(p, &server, NULL, true);
    return profile != NULL && profile->is_new;
}

static enum status take_undecided(struct rejudge *r, int64_t up_to_flow_id)
{
    struct stored_flow row;
    enum status status;
    while ((status = store_failed(r, store_next_undecided(r->store, up_to_flow_id, &row))) ==
           STATUS_OK) {
        status = was_learned_of(r->profiles, &row) ? take_flow(r, &row) : STATUS_OK;
        if (status != STATUS_OK)
            return status;
    }
    return status == STATUS_END ? STATUS_OK : status;
}

/* ---- then: judging and writing ---- */

static void fill_from_facts(struct rejudge *r, const struct facts *f, int64_t neighbour_ns,
                            struct flow_row *row)
{
    if (client_rtt_by_ack(f) != DURATION_NONE)
        neighbour_ns = DURATION_NONE;
    struct verdict verdict = judge(f, profiles_find(r->profiles, f));
    struct path path = path_of(f, neighbour_ns);
    struct timing timing = timing_of(f, &verdict, &path);
    row_fill_judged(f, &verdict, &path, &timing, row);
}

static struct row_text text_of(const char *text)
{
    return (struct row_text){ .at = text, .len = text == NULL ? 0 : strlen(text) };
}

/*
 * The felt time of a row with another way to its client. Where it was not response_ns + way, it was
 * seen directly, by an acknowledgment, and stays.
 */
static struct row_integer felt_of(const struct flow_row *row, int64_t way_ns)
{
    bool seen = row->perceived_ns.has &&
                (!row->client_rtt_ns.has ||
                 row->perceived_ns.value != row->response_ns.value + row->client_rtt_ns.value);
    if (seen || !row->response_ns.has)
        return row->perceived_ns;
    return (struct row_integer){ true, row->response_ns.value + way_ns };
}

static void fill_from_neighbour(struct flow_row *row, int64_t neighbour_ns)
{
    if (neighbour_ns == DURATION_NONE)
        return;
    int64_t server_rtt_ns = row->server_rtt_ns.has ? row->server_rtt_ns.value : DURATION_NONE;
    struct path path = path_by_neighbour(server_rtt_ns, neighbour_ns);
    bool has_rtt = path.rtt_ns != DURATION_NONE;
    row->perceived_ns = felt_of(row, neighbour_ns);
    row->client_rtt_ns = (struct row_integer){ true, neighbour_ns };
    row->rtt_basis = text_of(rtt_basis_text(path.basis));
    row->rtt_ns = (struct row_integer){ has_rtt, has_rtt ? path.rtt_ns : 0 };
    row->vantage = text_of(vantage_text(path.vantage));
    bool has_trips = row->perceived_ns.has && path.rtt_ns > 0;
    row->round_trips =
        (struct row_real){ has_trips,
                           has_trips ? (double)row->perceived_ns.value / (double)path.rtt_ns : 0 };
}

static enum status write_changed(struct rejudge *r, int64_t flow_id, const struct flow_row *before,
                                 const struct flow_row *after)
{
    r->changes->judged++;
    if (!note_row(r->changes, before, after))
        return STATUS_OK;
    r->changes->flows++;
    return store_failed(r, store_update_judged(r->store, flow_id, after));
}

static enum status judge_item(struct rejudge *r, struct bytes item)
{
    struct staged flow;
    struct facts f;
    struct record records[RECORDS_MAX];
    struct flow_row before;
    memcpy(&flow, item.at, sizeof flow);
    struct bytes packed = bytes_after(item, sizeof flow);
    enum status status = store_failed(r, store_read_judged(r->store, flow.flow_id, &before));
    if (status != STATUS_OK)
        return status;
    struct flow_row after = before;
    int64_t neighbour_ns = neighbour_rtt(r, &flow);
    if (packed.len == 0) {
        fill_from_neighbour(&after, neighbour_ns);
    } else if (facts_unpack(packed, records, &f)) {
        fill_from_facts(r, &f, neighbour_ns, &after);
    } else {
        text_add(r->error, "temporary file damaged: facts of a flow cannot be read");
        return STATUS_IO;
    }
    return write_changed(r, flow.flow_id, &before, &after);
}

static enum status judge_stage(struct rejudge *r)
{
    struct bytes item;
    enum status status;
    stage_rewind(r->stage);
    while ((status = stage_failed(r, stage_next(r->stage, &item))) == STATUS_OK) {
        status = judge_item(r, item);
        if (status != STATUS_OK)
            return status;
    }
    if (r->changes->count > 1)
        qsort(r->changes->list, r->changes->count, sizeof *r->changes->list, compare_changes);
    return status == STATUS_END ? STATUS_OK : status;
}

static void rejudge_done(struct rejudge *r)
{
    for (size_t i = 0; i < r->point_count; i++)
        neighbours_close(r->points[i].neighbours);
    free(r->points);
    stage_close(r->stage);
    buffer_done(&r->item);
}

enum status rejudge_undecided(const struct rejudge_run *run, struct changes *ret_changes,
                              struct text *error)
{
    struct rejudge r = {
        .store = run->store,
        .profiles = run->profiles,
        .stage = stage_open(run->memory_max, NULL),
        .changes = ret_changes,
        .error = error,
    };
    enum status status = r.stage == NULL ? no_memory(&r) : STATUS_OK;
    if (status == STATUS_OK)
        status = take_undecided(&r, run->up_to_flow_id);
    if (status == STATUS_OK)
        status = judge_stage(&r);
    rejudge_done(&r);
    return status;
}

/* ---- all of a database ---- */

/*
 * Adds to `all` the profiles of `from` that were learned from more flows than those of `other`, or
 * from as many if ties are to be taken.
 */
static enum status merge_larger(struct profiles *all, const struct profiles *from,
                                const struct profiles *other, bool ties)
{
    for (size_t i = 0; i < profiles_count(from); i++) {
        const struct profile *p = profiles_at(from, i);
        const struct profile *q = profiles_of(other, &p->server, p->server_name, p->is_wide);
        uint64_t flows = q == NULL ? 0 : q->flows;
        if (p->flows < flows || (p->flows == flows && !ties))
            continue;
        enum status status = profiles_merge(all, p, profiles_level(from));
        if (status != STATUS_OK)
            return status;
    }
    return STATUS_OK;
}

static enum status load_known(struct rejudge *r)
{
    enum status status = store_failed(r, knowledge_load(r->store, r->known));
    profiles_settle(r->known);
    return status;
}

/* What was learned anew, but for servers whose flows did not keep their facts. */
static enum status merge_known(struct rejudge *r, struct profiles *learned, struct profiles *all)
{
    profiles_settle(learned);
    enum status status = merge_larger(all, learned, r->known, true);
    if (status == STATUS_OK)
        status = merge_larger(all, r->known, learned, false);
    profiles_settle(all);
    return status;
}

static enum status keep_profiles(struct rejudge *r)
{
    struct profiles *kept = profiles_open();
    enum status status = kept == NULL ? no_memory(r) : merge_known(r, r->lasting, kept);
    if (status == STATUS_OK)
        status = store_failed(r, knowledge_keep(r->store, kept));
    profiles_close(kept);
    return status;
}

static enum status rejudge_database(struct rejudge *r, struct profiles *all)
{
    enum status status = store_failed(r, store_begin(r->store));
    if (status == STATUS_OK)
        status = take_all(r);
    if (status == STATUS_OK)
        status = load_known(r);
    if (status == STATUS_OK)
        status = merge_known(r, r->learning, all);
    if (status == STATUS_OK)
        status = judge_stage(r);
    if (status == STATUS_OK)
        status = store_failed(
            r, store_link_retries(r->store, INT64_MIN, INT64_MAX, &r->changes->retries));
    if (status == STATUS_OK)
        status = keep_profiles(r);
    if (status == STATUS_OK)
        return store_failed(r, store_commit(r->store));
    store_rollback(r->store);
    return status;
}

enum status rejudge_all(const char *database, size_t memory_max, struct changes *ret_changes,
                        struct text *error)
{
    struct profiles *all = profiles_open();
    struct rejudge r = {
        .learning = profiles_open(),
        .lasting = profiles_open(),
        .known = profiles_open(),
        .profiles = all,
        .stage = stage_open(memory_max, NULL),
        .changes = ret_changes,
        .error = error,
    };
    enum status status = STATUS_OK;
    if (all == NULL || r.learning == NULL || r.lasting == NULL || r.known == NULL ||
        r.stage == NULL)
        status = no_memory(&r);
    if (status == STATUS_OK && access(database, F_OK) != 0) {
        text_addf(error, "%s: no such database; firstflight ingest makes one", database);
        status = STATUS_IO;
    }
    if (status == STATUS_OK) {
        status = store_open(database, &r.store);
        if (r.store == NULL)
            status = no_memory(&r);
        else
            store_failed(&r, status);
    }
    if (status == STATUS_OK)
        status = rejudge_database(&r, all);
    store_close(r.store);
    rejudge_done(&r);
    profiles_close(r.learning);
    profiles_close(r.lasting);
    profiles_close(r.known);
    profiles_close(all);
    return status;
}
