/* SPDX-License-Identifier: Apache-2.0 */
#include "scope.h"

bool scope_holds(const struct scope *s, const struct seen *f)
{
    for (size_t i = 0; i < s->count; i++) {
        if (f->word[s->condition[i].column] != s->condition[i].word)
            return false;
    }
    return true;
}

bool scope_equal(const struct scope *a, const struct scope *b)
{
    bool equal = a->count == b->count;
    for (size_t i = 0; equal && i < a->count; i++)
        equal = a->condition[i].column == b->condition[i].column &&
                a->condition[i].word == b->condition[i].word;
    return equal;
}

bool scope_has_column(const struct scope *s, size_t column)
{
    for (size_t i = 0; i < s->count; i++) {
        if (s->condition[i].column == column)
            return true;
    }
    return false;
}

static struct cell value_of(const struct condition *c, const struct windows *w)
{
    return w->words[c->column].at[c->word];
}

static void add_column_value(const struct condition *c, const struct windows *w, struct text *t)
{
    const char *column = w->columns[c->column];
    text_addf(t, "%s ", strcmp(column, "client_region") == 0 ? "region" : column);
    word_add_name(value_of(c, w), t);
}

/* Whether all flows of the scope have one value in a column that others do not have. */
static bool is_common(const struct scope *s, const struct windows *w, size_t column,
                      struct condition *ret_common)
{
    bool any = false, differs = false;
    uint32_t word = 0;
    for (size_t i = 0; i < w->count; i++) {
        const struct seen *f = &w->flows[i];
        if (!scope_holds(s, f))
            continue;
        if (any && f->word[column] != word)
            return false;
        word = f->word[column];
        any = true;
    }
    for (size_t i = 0; i < w->count && !differs; i++)
        differs = w->flows[i].word[column] != word;
    *ret_common = (struct condition){ column, word };
    return any && differs;
}

void scope_add_name(const struct scope *s, const struct windows *w, struct text *t)
{
    if (s->count == 0) {
        text_add(t, "everywhere");
        return;
    }
    for (size_t i = 0; i < s->count; i++) {
        text_add(t, i > 0 ? ", " : "");
        add_column_value(&s->condition[i], w, t);
    }
    size_t common = 0;
    for (size_t column = 0; column < w->column_count; column++) {
        struct condition c;
        if (scope_has_column(s, column) || !is_common(s, w, column, &c))
            continue;
        text_add(t, common++ > 0 ? ", " : " (");
        add_column_value(&c, w, t);
    }
    text_add(t, common > 0 ? ")" : "");
}

void scope_add_condition(const struct scope *s, const struct windows *w, struct text *sql)
{
    for (size_t i = 0; i < s->count; i++) {
        const struct condition *c = &s->condition[i];
        text_add(sql, i > 0 ? " AND " : "");
        word_add_condition(w->columns[c->column], value_of(c, w), sql);
    }
}

double scope_overlap(const struct scope *a, const struct scope *b, const struct windows *w)
{
    size_t in_a = 0, in_b = 0, in_both = 0;
    for (size_t i = 0; i < w->count; i++) {
        bool holds_a = scope_holds(a, &w->flows[i]), holds_b = scope_holds(b, &w->flows[i]);
        in_a += holds_a;
        in_b += holds_b;
        in_both += holds_a && holds_b;
    }
    size_t smaller = in_a < in_b ? in_a : in_b;
    return smaller > 0 ? (double)in_both / (double)smaller : 0;
}
