/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "facts.h"
#include "hello.h"
#include "judge.h"
#include "profile.h"
#include "result.h"
#include "statistics.h"
#include "ticket.h"

#include <stdlib.h>

enum question { CLASS, EARLY_DATA, RESPONSE, BOUNDS, QUESTIONS };
enum score { RIGHT, WRONG, NOT_SAID, SCORES };
enum { STACK_SIZE = 48 };

static const char *const QUESTION_NAMES[QUESTIONS] = { "class", "early data", "response",
                                                       "response bounds" };
static const char *const SCORE_NAMES[SCORES] = { "right", "wrong", "not said" };

/* How often the same came out of the same. Words are static. */
struct outcome_cell {
    enum question question;
    char stack[STACK_SIZE];
    enum basis basis; /* of the verdict without keys */
    const char *keyed, *keyless;
    enum score score;
    uint64_t flows;
};

struct check {
    struct profiles *profiles;
    struct outcome_cell *cells;
    size_t cell_count, cell_capacity;
    double *off_ms; /* of every response that was said and is known: how far from the truth */
    size_t off_count, off_capacity;
    uint64_t flows, opened;
};

/* ---- counting ---- */

static struct outcome_cell *find_cell(struct check *c, const struct outcome_cell *like)
{
    for (size_t i = 0; i < c->cell_count; i++) {
        struct outcome_cell *cell = &c->cells[i];
        if (cell->question == like->question && cell->basis == like->basis &&
            strcmp(cell->keyed, like->keyed) == 0 && strcmp(cell->keyless, like->keyless) == 0 &&
            strcmp(cell->stack, like->stack) == 0)
            return cell;
    }
    return NULL;
}

static enum status count(struct check *c, const struct outcome_cell *outcome)
{
    struct outcome_cell *cell = find_cell(c, outcome);
    if (cell != NULL) {
        cell->flows++;
        return STATUS_OK;
    }
    if (c->cell_count == c->cell_capacity) {
        size_t capacity = c->cell_capacity == 0 ? 64 : 2 * c->cell_capacity;
        struct outcome_cell *grown = realloc(c->cells, capacity * sizeof *grown);
        if (grown == NULL)
            return STATUS_NO_MEMORY;
        c->cells = grown;
        c->cell_capacity = capacity;
    }
    c->cells[c->cell_count] = *outcome;
    c->cells[c->cell_count++].flows = 1;
    return STATUS_OK;
}

static enum status keep_distance(struct check *c, int64_t ns)
{
    if (c->off_count == c->off_capacity) {
        size_t capacity = c->off_capacity == 0 ? 1024 : 2 * c->off_capacity;
        double *grown = realloc(c->off_ms, capacity * sizeof *grown);
        if (grown == NULL)
            return STATUS_NO_MEMORY;
        c->off_ms = grown;
        c->off_capacity = capacity;
    }
    c->off_ms[c->off_count++] = (double)(ns < 0 ? -ns : ns) / 1e6;
    return STATUS_OK;
}

/* ---- one flow ---- */

static bool was_opened(const struct facts *f)
{
    return f->keys == KEYS_USED || f->keys == KEYS_PARTIAL;
}

/* Takes out of the facts what only keys can tell. */
static void forget_keys(struct facts *f)
{
    for (unsigned i = 0; i < f->record_count; i++)
        f->records[i].content = 0;
    f->keys = KEYS_NONE;
    if (version_is_13(f->version))
        f->alpn = NULL;
}

/* What tells the server's TLS program: how it cuts its flight, what its tickets carry. */
static void name_stack(const struct check *c, const struct facts *f, char name[STACK_SIZE])
{
    if (!version_is_13(f->version)) {
        (void)snprintf(name, STACK_SIZE, "TLS 1.2 and older");
        return;
    }
    const struct profile *p = profiles_of(c->profiles, &f->server, NULL, true);
    const struct tally_entry *most = NULL;
    for (unsigned i = 0; p != NULL && i < p->rests.used; i++)
        if (most == NULL || p->rests.entry[i].count > most->count)
            most = &p->rests.entry[i];
    bool one = p != NULL && p->flights[FLIGHT_ONE] > p->flights[FLIGHT_SEPARATE];
    int len = snprintf(name, STACK_SIZE, "flight in %s", one ? "one record" : "records");
    if (most != NULL)
        (void)snprintf(name + len, STACK_SIZE - (size_t)len, ", tickets +%u",
                       (unsigned)ticket_constant(most->number));
}

static enum status hold_class(struct check *c, struct outcome_cell o, const struct verdict *keyed,
                              const struct verdict *keyless)
{
    if (keyed->handshake_basis != BASIS_KEYLOG && keyed->handshake_basis != BASIS_PROTOCOL)
        return STATUS_OK;
    o.question = CLASS;
    o.basis = keyless->handshake_basis;
    o.keyed = kind_text(keyed->handshake);
    o.keyless = kind_text(keyless->handshake);
    o.score = keyless->handshake == KIND_UNKNOWN       ? NOT_SAID
              : keyless->handshake == keyed->handshake ? RIGHT
                                                       : WRONG;
    return count(c, &o);
}

static enum status hold_early_data(struct check *c, struct outcome_cell o,
                                   const struct verdict *keyed, const struct verdict *keyless)
{
    if (keyed->early_data_basis != BASIS_KEYLOG && keyed->early_data_basis != BASIS_PROTOCOL)
        return STATUS_OK;
    o.question = EARLY_DATA;
    o.basis = keyless->early_data_basis;
    o.keyed = early_data_text(keyed->early_data);
    o.keyless = early_data_text(keyless->early_data);
    o.score = keyless->early_data == EARLY_UNKNOWN       ? NOT_SAID
              : keyless->early_data == keyed->early_data ? RIGHT
                                                         : WRONG;
    return count(c, &o);
}

static enum status hold_bounds(struct check *c, struct outcome_cell o, const struct verdict *keyed,
                               const struct verdict *keyless)
{
    bool has_bounds = keyless->response_low_ns != 0 && keyless->response_high_ns != 0;
    bool inside = keyed->response_ns >= keyless->response_low_ns &&
                  keyed->response_ns <= keyless->response_high_ns;
    o.question = BOUNDS;
    o.keyed = "response";
    o.keyless = !has_bounds ? "no bounds" : inside ? "inside" : "outside";
    o.score = !has_bounds ? NOT_SAID : inside ? RIGHT : WRONG;
    return count(c, &o);
}

/* Keys that opened everything and show no response prove that there is none. */
static enum status hold_response(struct check *c, struct outcome_cell o, const struct facts *f,
                                 const struct verdict *keyed, const struct verdict *keyless)
{
    bool is_none = keyed->response < 0 && keyed->response_high < 0 && f->keys == KEYS_USED;
    if (!is_none && (keyed->response < 0 || keyed->response_basis != BASIS_KEYLOG))
        return STATUS_OK;
    o.question = RESPONSE;
    o.basis = keyless->response < 0 ? BASIS_NONE : keyless->response_basis;
    o.keyed = is_none ? "no response" : "response";
    if (keyless->response < 0) {
        o.keyless = "no response";
        o.score = is_none ? RIGHT : NOT_SAID;
    } else if (!is_none && keyless->response == keyed->response) {
        o.keyless = "the same record";
        o.score = RIGHT;
    } else {
        o.keyless = "another record";
        o.score = WRONG;
    }
    enum status status = count(c, &o);
    if (status == STATUS_OK && !is_none && keyless->response >= 0)
        status = keep_distance(c, keyless->response_ns - keyed->response_ns);
    return status != STATUS_OK || is_none ? status : hold_bounds(c, o, keyed, keyless);
}

static enum status hold_flow(struct check *c, struct facts *f)
{
    struct outcome_cell o = { 0 };
    const struct profile *profile = profiles_find(c->profiles, f);
    struct verdict keyed = judge(f, profile);
    struct facts closed = { 0 };
    c->opened++;
    if (!facts_copy(f, &closed))
        return STATUS_NO_MEMORY;
    forget_keys(&closed);
    struct verdict keyless = judge(&closed, profile);
    name_stack(c, f, o.stack);
    enum status status = hold_class(c, o, &keyed, &keyless);
    if (status == STATUS_OK)
        status = hold_early_data(c, o, &keyed, &keyless);
    if (status == STATUS_OK)
        status = hold_response(c, o, f, &keyed, &keyless);
    facts_done(&closed);
    return status;
}

/* ---- all flows, twice: to learn, then to judge ---- */

/* The facts of the next flow, owned; STATUS_END behind the last. What is no facts is passed over.
 */
static enum status next_facts(struct query *q, struct facts *ret_facts)
{
    enum status status;
    while ((status = query_next(q)) == STATUS_OK) {
        struct cell cell = query_cell(q, 0);
        status = cell.type == CELL_TEXT ? facts_from_json(cell.bytes, ret_facts) : STATUS_REFUSED;
        if (status != STATUS_REFUSED)
            return status;
    }
    return status;
}

static enum status learn_all(struct check *c, struct query *q)
{
    struct facts f;
    enum status status;
    while ((status = next_facts(q, &f)) == STATUS_OK) {
        c->flows += f.tls;
        forget_keys(&f);
        status = profiles_learn(c->profiles, &f);
        facts_done(&f);
        if (status != STATUS_OK)
            return status;
    }
    profiles_settle(c->profiles);
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status hold_opened(struct check *c, struct query *q)
{
    struct facts f;
    enum status status;
    while ((status = next_facts(q, &f)) == STATUS_OK) {
        status = was_opened(&f) ? hold_flow(c, &f) : STATUS_OK;
        facts_done(&f);
        if (status != STATUS_OK)
            return status;
    }
    return status == STATUS_END ? STATUS_OK : status;
}

static int compare_cells(const void *a, const void *b)
{
    const struct outcome_cell *x = a, *y = b;
    int order = (int)x->question - (int)y->question;
    if (order == 0)
        order = strcmp(x->stack, y->stack);
    if (order == 0)
        order = (int)y->basis - (int)x->basis;
    if (order == 0)
        order = strcmp(x->keyed, y->keyed);
    return order != 0 ? order : strcmp(x->keyless, y->keyless);
}

static enum status hold_all(struct check *c, struct query *q)
{
    enum status status = learn_all(c, q);
    query_rewind(q);
    if (status == STATUS_OK)
        status = hold_opened(c, q);
    if (c->cell_count > 1)
        qsort(c->cells, c->cell_count, sizeof *c->cells, compare_cells);
    values_sort(c->off_ms, c->off_count);
    return status;
}

/* ---- the rows ---- */

static enum status write_rows(const struct check *c, struct table_style style, FILE *out)
{
    static const char *const NAMES[] = { "question", "server_stack", "keyless_basis", "keyed",
                                         "keyless",  "score",        "flows" };
    enum { COLUMNS = sizeof NAMES / sizeof NAMES[0] };
    struct table *table = table_open(out, style, NAMES, COLUMNS);
    enum status status = table == NULL ? STATUS_NO_MEMORY : STATUS_OK;
    for (size_t i = 0; i < c->cell_count && status == STATUS_OK; i++) {
        const struct outcome_cell *cell = &c->cells[i];
        struct cell cells[COLUMNS] = { cell_text(QUESTION_NAMES[cell->question]),
                                       cell_text(cell->stack),
                                       cell_text(basis_text(cell->basis)),
                                       cell_text(cell->keyed),
                                       cell_text(cell->keyless),
                                       cell_text(SCORE_NAMES[cell->score]),
                                       cell_integer((int64_t)cell->flows) };
        status = table_add(table, cells);
    }
    enum status closed = table_close(table);
    return status == STATUS_OK ? closed : status;
}

/* ---- the page ---- */

struct score_line {
    uint64_t flows[SCORES];
};

/* Sums the cells of a question; of one basis, or of all with BASIS_KEYLOG, which none can have. */
static struct score_line sum_of(const struct check *c, enum question question, enum basis basis,
                                const char *stack)
{
    struct score_line line = { { 0 } };
    for (size_t i = 0; i < c->cell_count; i++) {
        const struct outcome_cell *cell = &c->cells[i];
        if (cell->question == question && (basis == BASIS_KEYLOG || cell->basis == basis) &&
            (stack == NULL || strcmp(cell->stack, stack) == 0))
            line.flows[cell->score] += cell->flows;
    }
    return line;
}

static void add_count(struct grid *g, uint64_t n)
{
    struct text t = { 0 };
    text_add_count(&t, (int64_t)n);
    grid_add_string(g, text_string(&t));
    text_done(&t);
}

static void add_score_row(struct grid *g, const char *name, const struct score_line *line)
{
    uint64_t said = line->flows[RIGHT] + line->flows[WRONG];
    grid_add_string(g, name);
    add_count(g, said + line->flows[NOT_SAID]);
    for (unsigned score = 0; score < SCORES; score++)
        add_count(g, line->flows[score]);
    if (said > 0)
        grid_addf(g, "%.2f%%", 100.0 * (double)line->flows[WRONG] / (double)said);
    else
        grid_add_string(g, "-");
}

static void add_titles(struct grid *g, const char *first)
{
    grid_add_string(g, first);
    grid_add_string(g, "flows");
    for (unsigned score = 0; score < SCORES; score++)
        grid_add_string(g, SCORE_NAMES[score]);
    grid_add_string(g, "wrong of said");
}

static const enum align SCORE_ALIGN[] = { ALIGN_LEFT,  ALIGN_RIGHT, ALIGN_RIGHT,
                                          ALIGN_RIGHT, ALIGN_RIGHT, ALIGN_RIGHT };
enum { SCORE_COLUMNS = sizeof SCORE_ALIGN / sizeof SCORE_ALIGN[0] };

static void end_grid(struct grid *g, const struct table_style *style, struct text *page)
{
    if (!grid_write(g, style->width, page))
        (void)grid_write(g, 0, page);
    page->failed |= g->failed;
    grid_done(g);
}

static void put_scores(const struct check *c, const struct table_style *style, struct text *page)
{
    static const struct {
        enum basis basis;
        const char *name;
    } BASES[] = { { BASIS_PROTOCOL, "  protocol" },
                  { BASIS_STRONG, "  strong" },
                  { BASIS_WEAK, "  weak" } };
    struct grid g = grid_of(SCORE_COLUMNS, SCORE_ALIGN, style->utf8);
    add_titles(&g, "");
    for (enum question question = CLASS; question < QUESTIONS; question++) {
        struct score_line all = sum_of(c, question, BASIS_KEYLOG, NULL);
        add_score_row(&g, QUESTION_NAMES[question], &all);
        for (size_t i = 0; question != BOUNDS && i < sizeof BASES / sizeof BASES[0]; i++) {
            struct score_line line = sum_of(c, question, BASES[i].basis, NULL);
            if (line.flows[RIGHT] + line.flows[WRONG] + line.flows[NOT_SAID] > 0)
                add_score_row(&g, BASES[i].name, &line);
        }
    }
    end_grid(&g, style, page);
}

static void put_distances(const struct check *c, struct text *page)
{
    if (c->off_count == 0)
        return;
    text_add(page, "\nResponse time off by, ms   ");
    static const struct {
        const char *name;
        double p;
    } QUANTILES[] = { { "p50", 0.5 }, { "p90", 0.9 }, { "p99", 0.99 }, { "most", 1 } };
    for (size_t i = 0; i < sizeof QUANTILES / sizeof QUANTILES[0]; i++) {
        text_addf(page, "%s%s ", i == 0 ? "" : "   ", QUANTILES[i].name);
        text_add_number(page, quantile_of(c->off_ms, c->off_count, QUANTILES[i].p), 2);
    }
    text_add(page, "\n");
}

static void put_confusions(const struct check *c, const struct table_style *style,
                           struct text *page)
{
    static const enum align ALIGN[] = { ALIGN_LEFT, ALIGN_LEFT,  ALIGN_LEFT,
                                        ALIGN_LEFT, ALIGN_RIGHT, ALIGN_LEFT };
    static const char *const TITLES[] = { "Not right", "with keys", "without",
                                          "basis",     "flows",     "server stack" };
    struct grid g = grid_of(sizeof ALIGN / sizeof ALIGN[0], ALIGN, style->utf8);
    for (size_t i = 0; i < sizeof TITLES / sizeof TITLES[0]; i++)
        grid_add_string(&g, TITLES[i]);
    bool any = false;
    for (size_t i = 0; i < c->cell_count; i++) {
        const struct outcome_cell *cell = &c->cells[i];
        const char *basis = basis_text(cell->basis);
        if (cell->score == RIGHT)
            continue;
        any = true;
        grid_add_string(&g, QUESTION_NAMES[cell->question]);
        grid_add_string(&g, cell->keyed);
        grid_add_string(&g, cell->keyless);
        grid_add_string(&g, basis == NULL || cell->question == BOUNDS ? "-" : basis);
        add_count(&g, cell->flows);
        grid_add_string(&g, cell->stack);
    }
    if (any) {
        text_add(page, "\n");
        end_grid(&g, style, page);
    } else {
        grid_done(&g);
    }
}

/* Cells are sorted by question and stack, and every flow has a class. */
static void put_stacks(const struct check *c, const struct table_style *style, struct text *page)
{
    struct grid g = grid_of(SCORE_COLUMNS, SCORE_ALIGN, style->utf8);
    text_add(page, "\n");
    add_titles(&g, "Response by server stack");
    const char *last = "";
    for (size_t i = 0; i < c->cell_count; i++) {
        const struct outcome_cell *cell = &c->cells[i];
        if (cell->question != RESPONSE || strcmp(cell->stack, last) == 0)
            continue;
        last = cell->stack;
        struct score_line line = sum_of(c, RESPONSE, BASIS_KEYLOG, last);
        add_score_row(&g, last, &line);
    }
    end_grid(&g, style, page);
}

static enum status write_page(const struct check *c, struct table_style style, FILE *out)
{
    struct text page = { 0 };
    if (style.width == 0)
        style.width = PAGE_WIDTH;
    text_add(&page, "Verdicts without keys, held against what keys showed     ");
    text_add_count(&page, (int64_t)c->opened);
    text_add(&page, " of ");
    text_add_count(&page, (int64_t)c->flows);
    text_add(&page, " TLS flows were opened\n\n");
    put_scores(c, &style, &page);
    put_distances(c, &page);
    put_confusions(c, &style, &page);
    put_stacks(c, &style, &page);
    enum status status = result_write_text(&page, out);
    text_done(&page);
    return status;
}

enum status command_check(struct database *database, struct table_style style, FILE *out,
                          struct text *error)
{
    struct check c = { .profiles = profiles_open() };
    struct query *q = NULL;
    enum status status = c.profiles == NULL ? STATUS_NO_MEMORY : STATUS_OK;
    if (status == STATUS_OK)
        status = query_open(database, "SELECT facts FROM flow_facts ORDER BY flow_id", &q);
    if (status == STATUS_OK)
        status = hold_all(&c, q);
    if (status == STATUS_OK && c.opened == 0) {
        text_add(error, "no connection of this database was decrypted: ingest its captures into a"
                        " new one with --keylog FILE");
        status = STATUS_USAGE;
    }
    if (status == STATUS_OK)
        status =
            style.format == TABLE_ALIGNED ? write_page(&c, style, out) : write_rows(&c, style, out);
    query_close(q);
    profiles_close(c.profiles);
    free(c.cells);
    free(c.off_ms);
    return result_end(status, database, out, error);
}
