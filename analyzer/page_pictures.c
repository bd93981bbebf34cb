/* SPDX-License-Identifier: Apache-2.0 */
/* The pictures of pages: columns of their tables as values for chart.h. */
#include "page_blocks.h"

#include <math.h>
#include <stdlib.h>

static const double NS_PER_MS = 1e6;

/* ---- colours ---- */

/* What is told apart in many pictures has one colour in all of them; others go by their place. */
static unsigned colour_of(struct bytes name, size_t place)
{
    static const char *const names[] = { "0-rtt",       "resumed",  "full",
                                         "resumed 1.2", "full 1.2", "failed" };
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
        if (bytes_equal(name, text_bytes(names[i])))
            return i;
    }
    return (unsigned)(place % CHART_COLOURS);
}

/* The colour of a row: that of the class it names. */
static unsigned colour_of_row(const struct page *p, const struct page_table *t, size_t row)
{
    unsigned colour = 0;
    for (size_t i = 0; i < t->drawing.first; i++) {
        const struct page_cell *cell = page_at(t, row, i);
        if (t->columns[i].kind == PAGE_WORD && cell->type == CELL_TEXT)
            colour = colour_of(page_bytes(p, cell->bytes), 0);
    }
    return colour;
}

/* ---- bars inside of rows ---- */

static double drawn_ms(const struct page_table *t, size_t row, size_t i)
{
    const struct page_cell *cell = page_at(t, row, t->drawing.first + i);
    return cell->is_rest ? NAN : page_number(cell) / NS_PER_MS;
}

static double row_sum_ms(const struct page_table *t, size_t row)
{
    double sum = 0;
    for (size_t i = 0; i < t->drawing.count; i++) {
        double part = drawn_ms(t, row, i);
        sum += isnan(part) ? 0 : part;
    }
    return sum;
}

struct chart_scale page_bar_scale(const struct page_table *t)
{
    double least = NAN, greatest = NAN, longest = 0;
    for (size_t row = 0; row < page_row_count(t); row++) {
        longest = fmax(longest, row_sum_ms(t, row));
        for (size_t i = 0; i < t->drawing.count; i++) {
            least = fmin(least, drawn_ms(t, row, i)); /* NAN loses */
            greatest = fmax(greatest, drawn_ms(t, row, i));
        }
    }
    return t->drawing.kind == PAGE_STACKS ? chart_linear(longest)
                                          : chart_logarithmic(least, greatest);
}

void page_put_bar_head(const struct page *p, const struct page_table *t, struct chart_scale scale,
                       struct text *out)
{
    text_add(out, "<th scope=\"col\" class=\"picture\"><span>");
    text_add_html(out, page_bytes(p, t->drawing.title));
    text_add(out, "</span>");
    chart_add_axis(scale, out);
    text_add(out, "</th>");
}

/* "p50 27.4, p90 49.0, p99 164" of a row, in the words of its own cells. */
static void add_description(const struct page *p, const struct page_table *t, size_t row,
                            struct text *out)
{
    for (size_t i = t->drawing.first; i < t->drawing.first + t->drawing.count; i++) {
        text_add(out, i > t->drawing.first ? ", " : "");
        text_add_bytes(out, page_bytes(p, t->columns[i].title));
        text_add(out, " ");
        page_add_cell(p, page_at(t, row, i), t->columns[i].kind, out);
    }
}

void page_put_bar(const struct page *p, const struct page_table *t, size_t row,
                  struct chart_scale scale, struct text *out)
{
    double values[CHART_COLOURS];
    struct text description = { 0 };
    size_t count = t->drawing.count < CHART_COLOURS ? t->drawing.count : CHART_COLOURS;
    for (size_t i = 0; i < count; i++)
        values[i] = drawn_ms(t, row, i);
    add_description(p, t, row, &description);
    text_add(out, "<td class=\"picture\">");
    if (t->drawing.kind == PAGE_STACKS)
        chart_add_stack(scale, values, count, text_string(&description), out);
    else
        chart_add_range(scale, values, colour_of_row(p, t, row), text_string(&description), out);
    text_add(out, "</td>");
    out->failed |= description.failed;
    text_done(&description);
}

void page_put_part_mark(const struct page_table *t, size_t column, struct text *out)
{
    const struct page_drawing *d = &t->drawing;
    if (d->count == 0 || d->kind != PAGE_STACKS || column < d->first ||
        column >= d->first + d->count)
        return;
    text_addf(out,
              "<svg class=\"mark\" aria-hidden=\"true\" width=\"10\" height=\"10\">"
              "<rect class=\"c%zu\" width=\"10\" height=\"10\"/></svg>",
              (column - d->first) % CHART_COLOURS + 1);
}

/* ---- figures ---- */

/* The lines of a figure and what they hold. */
struct figure {
    struct chart_line lines[CHART_LINES_MAX];
    char *names[CHART_LINES_MAX];
    char **labels;  /* one per row */
    double *values; /* of all lines, one behind the other */
    size_t line_count, rows;
    bool failed;
};

static void figure_done(struct figure *f)
{
    for (size_t i = 0; i < f->line_count; i++)
        free(f->names[i]);
    for (size_t i = 0; f->labels && i < f->rows; i++)
        free(f->labels[i]);
    free(f->labels);
    free(f->values);
}

static char *string_of(struct bytes b)
{
    return b.len > 0 ? strndup((const char *)b.at, b.len) : strdup("");
}

/* "14:03" of "2026-06-02T14:03"; other labels as they are. */
static char *label_of(struct bytes time)
{
    enum { DATE_LEN = 11 };
    bool has_date = time.len > DATE_LEN && time.at[DATE_LEN - 1] == 'T';
    return string_of(has_date ? bytes_after(time, DATE_LEN) : time);
}

static void read_labels(const struct page *p, const struct page_table *t, struct figure *f)
{
    f->labels = calloc(f->rows + 1, sizeof *f->labels);
    f->failed |= f->labels == NULL;
    for (size_t row = 0; !f->failed && row < f->rows; row++) {
        f->labels[row] = label_of(page_bytes(p, page_at(t, row, 0)->bytes));
        f->failed |= f->labels[row] == NULL;
    }
}

static void read_values(const struct page_table *t, size_t column, double *ret_values)
{
    double unit = t->columns[column].kind == PAGE_MS ? NS_PER_MS : 1;
    for (size_t row = 0; row < page_row_count(t); row++)
        ret_values[row] = page_number(page_at(t, row, column)) / unit;
}

/* Columns without a number are left out: a class that a region does not have. */
static bool has_values(const struct page_table *t, size_t column)
{
    for (size_t row = 0; row < page_row_count(t); row++) {
        if (!isnan(page_number(page_at(t, row, column))))
            return true;
    }
    return false;
}

static struct figure read_figure(const struct page *p, const struct page_table *t)
{
    struct figure f = { .rows = page_row_count(t) };
    f.values = calloc((CHART_LINES_MAX + 1) * (f.rows + 1), sizeof *f.values);
    f.failed = f.values == NULL;
    if (f.failed)
        return f;
    double *at = f.values;
    read_values(t, 0, at);
    for (size_t i = 0; i < t->drawing.count && f.line_count < CHART_LINES_MAX; i++) {
        size_t column = t->drawing.first + i;
        if (!has_values(t, column))
            continue;
        at += f.rows;
        read_values(t, column, at);
        char *name = string_of(page_bytes(p, t->columns[column].title));
        f.failed |= name == NULL;
        f.names[f.line_count] = name;
        f.lines[f.line_count++] = (struct chart_line){
            .name = name ? name : "",
            .colour = colour_of(page_bytes(p, t->columns[column].title), i),
            .x = t->drawing.kind == PAGE_CURVES ? at : NULL,
            .y = t->drawing.kind == PAGE_CURVES ? f.values : at,
            .count = f.rows,
        };
    }
    read_labels(p, t, &f);
    return f;
}

/* The greatest value, or the greatest sum of a row where they are stacked. */
static double greatest_of(const struct figure *f, bool stacked)
{
    double greatest = 0;
    for (size_t row = 0; row < f->rows; row++) {
        double sum = 0;
        for (size_t i = 0; i < f->line_count; i++) {
            double value = f->lines[i].y[row];
            greatest = fmax(greatest, value);
            sum += isnan(value) ? 0 : value;
        }
        if (stacked)
            greatest = fmax(greatest, sum);
    }
    return greatest;
}

static struct chart_scale curve_scale(const struct page_table *t, const struct figure *f)
{
    double least = t->drawing.low_ns / NS_PER_MS, greatest = t->drawing.high_ns / NS_PER_MS;
    if (greatest > 0)
        return chart_logarithmic(least, greatest);
    least = greatest = NAN;
    for (size_t i = 0; i < f->line_count; i++) {
        for (size_t row = 0; row < f->rows; row++) {
            least = fmin(least, f->lines[i].x[row]); /* NAN loses */
            greatest = fmax(greatest, f->lines[i].x[row]);
        }
    }
    return chart_logarithmic(least, greatest);
}

/* "TITLE: 0-rtt, resumed, full; the same as a table below". */
static void describe(const struct page *p, const struct page_table *t, const struct figure *f,
                     struct text *out)
{
    text_add_bytes(out, page_bytes(p, t->drawing.title));
    for (size_t i = 0; i < f->line_count; i++)
        text_addf(out, "%s%s", i > 0 ? ", " : ": ", f->lines[i].name);
    text_add(out, "; the same as a table below");
}

void page_put_figure(const struct page *p, const struct page_table *t, struct text *out)
{
    struct figure f = read_figure(p, t);
    struct text description = { 0 };
    out->failed |= f.failed;
    if (!f.failed) {
        bool stacked = t->drawing.kind == PAGE_COLUMNS;
        describe(p, t, &f, &description);
        struct chart chart = { .description = text_string(&description),
                               .lines = f.lines,
                               .line_count = f.line_count };
        if (t->drawing.kind == PAGE_CURVES) {
            chart.x = curve_scale(t, &f);
            chart.y = (struct chart_scale){ 0, 1, false };
            chart_add_curves(&chart, out);
        } else {
            chart.y = chart_linear(greatest_of(&f, stacked));
            chart_add_series(&chart, (const char *const *)f.labels, stacked, out);
        }
    }
    out->failed |= description.failed;
    text_done(&description);
    figure_done(&f);
}
