/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An aggregate keeps its values in one array and sorts it when asked. As a window function it also
 * gives values back: from then on the array is kept in order, so that a moving window costs a copy
 * per row and no sort.
 */
#include "sql_functions.h"

#ifdef SQL_FUNCTIONS_EXTENSION
#include <sqlite3ext.h>
SQLITE_EXTENSION_INIT1
#else
#include <sqlite3.h>
#endif

#include <assert.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct function {
    const char *name;
    int arguments;
    double whole; /* the fraction argument that stands for all */
    bool discrete;
};

static const struct function FUNCTIONS[] = {
    { "median", 1, 1, false },
    { "percentile", 2, 100, false },
    { "percentile_cont", 2, 1, false },
    { "percentile_disc", 2, 1, true },
};

/* One group; all zero is an empty one. */
struct values {
    double *at;
    size_t count, capacity;
    double fraction;
    bool has_fraction;
    bool sorted;       /* the array is in order now */
    bool keeps_sorted; /* a value was taken back: keep it so */
};

static void fail(sqlite3_context *context, const char *format, double number)
{
    const struct function *f = sqlite3_user_data(context);
    char *text = sqlite3_mprintf(format, f->name, number);
    if (text == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    sqlite3_result_error(context, text, -1);
    sqlite3_free(text);
}

/* Takes the fraction argument, which must be the same in all rows; false after an error. */
static bool take_fraction(sqlite3_context *context, struct values *v, sqlite3_value *argument)
{
    enum { PER_MILLE = 1000 }; /* differences below one do not count */
    const struct function *f = sqlite3_user_data(context);
    int type = sqlite3_value_numeric_type(argument);
    double fraction = sqlite3_value_double(argument) / f->whole;
    if ((type != SQLITE_INTEGER && type != SQLITE_FLOAT) || fraction < 0 || fraction > 1) {
        fail(context, "the fraction argument to %s() is not between 0.0 and %.1f", f->whole);
        return false;
    }
    if (v->has_fraction && fabs(fraction - v->fraction) > 1.0 / PER_MILLE) {
        fail(context, "the fraction argument to %s() is not the same for all input rows", 0);
        return false;
    }
    if (!v->has_fraction)
        v->fraction = fraction;
    v->has_fraction = true;
    return true;
}

/* Index of the first value that is not below `value` in an array in order. */
static size_t place_of(const struct values *v, double value)
{
    size_t low = 0, high = v->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (v->at[middle] < value)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool add_value(struct values *v, double value)
{
    if (v->count == v->capacity) {
        size_t capacity = v->capacity == 0 ? 64 : 2 * v->capacity;
        double *grown = sqlite3_realloc64(v->at, capacity * sizeof *grown);
        if (grown == NULL)
            return false;
        v->at = grown;
        v->capacity = capacity;
    }
    size_t place = v->keeps_sorted ? place_of(v, value) : v->count;
    memmove(v->at + place + 1, v->at + place, (v->count - place) * sizeof *v->at);
    v->at[place] = value;
    v->count++;
    /* Rows that an index gives in order need no sort. */
    v->sorted = v->keeps_sorted || v->count == 1 || (v->sorted && v->at[v->count - 2] <= value);
    return true;
}

static void step(sqlite3_context *context, int argument_count, sqlite3_value **arguments)
{
    struct values *v = sqlite3_aggregate_context(context, sizeof *v);
    if (v == NULL) {
        sqlite3_result_error_nomem(context);
        return;
    }
    if (argument_count == 1)
        v->fraction = 0.5;
    else if (!take_fraction(context, v, arguments[1]))
        return;

    int type = sqlite3_value_type(arguments[0]);
    double value = sqlite3_value_double(arguments[0]);
    if (type == SQLITE_NULL)
        return;
    if (type != SQLITE_INTEGER && type != SQLITE_FLOAT)
        fail(context, "input to %s() is not numeric", 0);
    else if (isinf(value))
        fail(context, "Inf input to %s()", 0);
    else if (!add_value(v, value))
        sqlite3_result_error_nomem(context);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void sort(struct values *v)
{
    if (!v->sorted)
        qsort(v->at, v->count, sizeof *v->at, compare);
    v->sorted = true;
}

/* Takes back a value that step() was given: the window has moved on. */
static void inverse(sqlite3_context *context, int argument_count, sqlite3_value **arguments)
{
    (void)argument_count;
    struct values *v = sqlite3_aggregate_context(context, sizeof *v);
    int type = sqlite3_value_type(arguments[0]);
    if (v == NULL || v->count == 0 || (type != SQLITE_INTEGER && type != SQLITE_FLOAT))
        return;
    sort(v);
    v->keeps_sorted = true;
    double value = sqlite3_value_double(arguments[0]);
    size_t place = place_of(v, value);
    if (place == v->count || v->at[place] > value)
        return;
    v->count--;
    memmove(v->at + place, v->at + place + 1, (v->count - place) * sizeof *v->at);
}

static void result(sqlite3_context *context, struct values *v)
{
    const struct function *f = sqlite3_user_data(context);
    if (v == NULL || v->count == 0)
        return; /* NULL */
    sort(v);
    double rank = v->fraction * (double)(v->count - 1);
    size_t below = (size_t)rank;
    double value = v->at[below];
    if (!f->discrete && below + 1 < v->count)
        value += (v->at[below + 1] - value) * (rank - (double)below);
    sqlite3_result_double(context, value);
}

static void current(sqlite3_context *context)
{
    result(context, sqlite3_aggregate_context(context, 0));
}

static void final(sqlite3_context *context)
{
    struct values *v = sqlite3_aggregate_context(context, 0);
    result(context, v);
    if (v == NULL)
        return;
    sqlite3_free(v->at);
    *v = (struct values){ 0 };
}

int sql_functions_register(struct sqlite3 *db)
{
    const int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS;
    int code = SQLITE_OK;
    for (size_t i = 0; i < sizeof FUNCTIONS / sizeof FUNCTIONS[0] && code == SQLITE_OK; i++) {
        const struct function *f = &FUNCTIONS[i];
        code = sqlite3_create_window_function(db, f->name, f->arguments, flags, (void *)f, step,
                                              final, current, inverse, NULL);
    }
    return code;
}

#ifdef SQL_FUNCTIONS_EXTENSION
int sqlite3_firstflightsqlite_init(sqlite3 *db, char **error, const sqlite3_api_routines *api);

int sqlite3_firstflightsqlite_init(sqlite3 *db, char **error, const sqlite3_api_routines *api)
{
    (void)error;
    SQLITE_EXTENSION_INIT2(api);
    return sql_functions_register(db);
}
#endif
