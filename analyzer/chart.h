/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CHART_H
#define CHART_H
/*
 * Pictures as SVG inside of an HTML page: numbers in, text out. Pure. A picture is as wide as its
 * place and its text keeps its size, since places are per cent and heights pixels; its size in
 * bytes is bounded whatever the data. Colours and line styles are classes "c1".. of the page's
 * style, told apart by hue, lightness and dashes; NAN is no value and is not drawn.
 */
#include "text.h"

enum {
    CHART_COLOURS = 8,      /* then they begin again */
    CHART_LINES_MAX = 8,    /* of one picture; more are not drawn */
    CHART_POINTS_MAX = 240, /* of one line; more are drawn as the least and greatest of each run */
    CHART_TICKS_MAX = 8,
};

/* ---- scales ---- */

struct chart_scale {
    double low, high; /* low < high; of a logarithmic one both are above 0 */
    bool logarithmic;
};

/*
 * The scale that holds least to greatest and ends at round numbers; a linear one begins at 0.
 * Values that a logarithmic scale cannot hold count as its least.
 */
struct chart_scale chart_logarithmic(double least, double greatest);
struct chart_scale chart_linear(double greatest);

/* Where a value lies, 0 to 1; what is outside lies at the end. NAN stays NAN. */
double chart_place(struct chart_scale scale, double value);

/* Round numbers inside the scale, ascending; both ends are among them. Returns how many. */
size_t chart_ticks(struct chart_scale scale, double ret_ticks[CHART_TICKS_MAX]);

/* ---- inside of table cells ---- */

/* The ticks of a scale with their numbers, for the head of a column of bars. */
void chart_add_axis(struct chart_scale scale, struct text *out);

/* A percentile range: a dot at the first value, a bar to the second, a line to the third. */
void chart_add_range(struct chart_scale scale, const double values[3], unsigned colour,
                     const char *description, struct text *out);

/* Parts of a whole one behind the other, in colours 1, 2, .. */
void chart_add_stack(struct chart_scale scale, const double *parts, size_t count,
                     const char *description, struct text *out);

/* ---- figures ---- */

struct chart_line {
    const char *name; /* of any origin */
    unsigned colour;
    const double *x, *y; /* count of them; x ascends; of columns x is not used */
    size_t count;
};

struct chart {
    const char *description; /* for those who do not see it */
    const struct chart_line *lines;
    size_t line_count;
    struct chart_scale x, y;
};

/* Lines over a numeric axis, as the share of flows (y, 0 to 1) that took at most x. */
void chart_add_curves(const struct chart *c, struct text *out);

/*
 * Lines, or stacked columns, over steps of time: all lines have one value per label. Labels are
 * as "14:03" and of any origin.
 */
void chart_add_series(const struct chart *c, const char *const *labels, bool stacked,
                      struct text *out);

#endif
