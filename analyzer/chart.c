/* SPDX-License-Identifier: Apache-2.0 */
#include "chart.h"

#include <assert.h>
#include <math.h>

/* ---- scales ---- */

/* The next round number (1, 2 or 5 times a power of ten) at or below, or at or above. */
static double round_down(double value)
{
    double decade = pow(10, floor(log10(value) + 1e-9)), digits = value / decade * (1 + 1e-9);
    return decade * (digits >= 5 ? 5 : digits >= 2 ? 2 : 1);
}

static double round_up(double value)
{
    double down = round_down(value);
    if (down >= value * (1 - 1e-9))
        return down;
    double decade = pow(10, floor(log10(down) + 1e-9)), digits = down / decade;
    return decade * (digits < 1.5 ? 2 : digits < 3 ? 5 : 10);
}

/* No number of a picture lies beyond these; it keeps arithmetic on odd ones finite. */
static const double SCALE_LEAST = 1e-9, SCALE_GREATEST = 1e15;

static bool can_end_scale(double value)
{
    return value >= SCALE_LEAST && value <= SCALE_GREATEST;
}

struct chart_scale chart_logarithmic(double least, double greatest)
{
    enum { NOTHING_BELOW = 1000000 }; /* of the greatest: six decades are enough for any eye */
    if (!can_end_scale(greatest))
        return (struct chart_scale){ 1, 10, true };
    if (!(least > greatest / NOTHING_BELOW))
        least = greatest / NOTHING_BELOW;
    if (least > greatest)
        least = greatest;
    struct chart_scale scale = { round_down(least), round_up(greatest), true };
    if (scale.high < scale.low * 3)
        scale.high = round_up(scale.low * 3);
    return scale;
}

struct chart_scale chart_linear(double greatest)
{
    if (!can_end_scale(greatest))
        greatest = 1;
    /* Ends at a multiple of its own tick, so that little of the picture stays empty. */
    double step = round_up(greatest / 4);
    return (struct chart_scale){ 0, step * ceil(greatest / step * (1 - 1e-9)), false };
}

double chart_place(struct chart_scale scale, double value)
{
    double low = scale.low, high = scale.high;
    if (isnan(value))
        return NAN;
    if (scale.logarithmic) {
        value = value > low ? log(value / low) : 0;
        high = log(high / low);
        low = 0;
    }
    double place = (value - low) / (high - low);
    return place < 0 ? 0 : place > 1 ? 1 : place;
}

size_t chart_ticks(struct chart_scale scale, double ret_ticks[CHART_TICKS_MAX])
{
    size_t count = 0;
    if (!scale.logarithmic) {
        double step = round_up(scale.high / 4);
        for (size_t i = 0; count < CHART_TICKS_MAX && (double)i * step <= scale.high * 1.001; i++)
            ret_ticks[count++] = (double)i * step;
        return count;
    }
    double decades = log10(scale.high / scale.low);
    for (double tick = scale.low;
         count < CHART_TICKS_MAX && tick<scale.high * 1.001; tick = decades> 2.1
             ? tick * 10
             : round_up(tick * 1.01))
        ret_ticks[count++] = tick;
    if (count > 0 && ret_ticks[count - 1] < scale.high * 0.999) {
        /* The last tick makes room for the end of the scale when it stands too near. */
        bool near = chart_place(scale, ret_ticks[count - 1]) > 0.85;
        if (count == CHART_TICKS_MAX || (near && count > 1))
            count--;
        ret_ticks[count++] = scale.high;
    }
    return count;
}

/* ---- pieces ---- */

static unsigned colour_class(unsigned colour)
{
    return colour % CHART_COLOURS + 1;
}

static double percent(double place)
{
    return 100 * place;
}

static void add_tick_number(struct text *out, double value)
{
    int decimals = value == 0 || value >= 1 ? 0 : value >= 0.1 ? 1 : value >= 0.01 ? 2 : 3;
    text_add_number(out, value, decimals);
}

/* Text at a place must not leave the picture at its ends. */
static const char *anchor_at(double place)
{
    return place < 0.06 ? "start" : place > 0.94 ? "end" : "middle";
}

static void begin_svg(const char *class, int height, const char *description, struct text *out)
{
    text_addf(out, "<svg class=\"%s\" role=\"img\" width=\"100%%\" height=\"%d\" aria-label=\"",
              class, height);
    text_add_html(out, text_bytes(description));
    text_add(out, "\">");
}

static void add_vertical(double place, double top, double bottom, const char *class,
                         struct text *out)
{
    text_addf(out, "<line class=\"%s\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%.1f\" y2=\"%.1f\"/>",
              class, percent(place), percent(place), top, bottom);
}

static void add_horizontal(double from, double to, double y, const char *class, struct text *out)
{
    text_addf(out, "<line class=\"%s\" x1=\"%.2f%%\" x2=\"%.2f%%\" y1=\"%.1f\" y2=\"%.1f\"/>",
              class, percent(from), percent(to), y, y);
}

static void begin_text(double place, double y, const char *anchor, struct text *out)
{
    text_addf(out, "<text x=\"%.2f%%\" y=\"%.1f\" text-anchor=\"%s\">", percent(place), y, anchor);
}

/* Ticks as lines from top to bottom with numbers below. */
static void add_x_ticks(struct chart_scale scale, double top, double bottom, struct text *out)
{
    double ticks[CHART_TICKS_MAX];
    size_t count = chart_ticks(scale, ticks);
    for (size_t i = 0; i < count; i++) {
        double place = chart_place(scale, ticks[i]);
        add_vertical(place, top, bottom, "grid", out);
        begin_text(place, bottom + 14, anchor_at(place), out);
        add_tick_number(out, ticks[i]);
        text_add(out, "</text>");
    }
}

/* ---- inside of table cells ---- */

enum { BAR_HEIGHT = 20, BAR_MIDDLE = BAR_HEIGHT / 2 };

void chart_add_axis(struct chart_scale scale, struct text *out)
{
    /* Cells are narrow: a number near the last one would touch it. */
    static const double LAST_TICK_ALONE = 0.76;
    double ticks[CHART_TICKS_MAX];
    size_t count = chart_ticks(scale, ticks);
    text_addf(out, "<svg class=\"axis\" aria-hidden=\"true\" width=\"100%%\" height=\"%d\">",
              BAR_HEIGHT);
    for (size_t i = 0; i < count; i++) {
        double place = chart_place(scale, ticks[i]);
        add_vertical(place, BAR_HEIGHT - 4, BAR_HEIGHT, "tick", out);
        if (i + 1 < count && place > LAST_TICK_ALONE)
            continue;
        begin_text(place, BAR_HEIGHT - 7, anchor_at(place), out);
        add_tick_number(out, ticks[i]);
        text_add(out, "</text>");
    }
    text_add(out, "</svg>");
}

static void add_cell_grid(struct chart_scale scale, struct text *out)
{
    double ticks[CHART_TICKS_MAX];
    size_t count = chart_ticks(scale, ticks);
    for (size_t i = 0; i < count; i++)
        add_vertical(chart_place(scale, ticks[i]), 0, BAR_HEIGHT, "grid", out);
}

static void add_box(double from, double to, double y, double height, unsigned colour,
                    struct text *out)
{
    text_addf(out, "<rect class=\"c%u\" x=\"%.2f%%\" y=\"%.1f\" width=\"%.2f%%\" height=\"%.1f\"/>",
              colour_class(colour), percent(from), y, percent(to - from), height);
}

void chart_add_range(struct chart_scale scale, const double values[3], unsigned colour,
                     const char *description, struct text *out)
{
    double first = chart_place(scale, values[0]), second = chart_place(scale, values[1]),
           third = chart_place(scale, values[2]);
    begin_svg("bar", BAR_HEIGHT, description, out);
    add_cell_grid(scale, out);
    if (!isnan(first) && !isnan(third)) {
        text_addf(out, "<g class=\"c%u\">", colour_class(colour));
        add_horizontal(first, third, BAR_MIDDLE, "reach", out);
        add_vertical(third, BAR_MIDDLE - 4, BAR_MIDDLE + 4, "reach", out);
        text_add(out, "</g>");
    }
    if (!isnan(first) && !isnan(second))
        add_box(first, second, BAR_MIDDLE - 4, 8, colour, out);
    if (!isnan(first))
        text_addf(out, "<circle class=\"c%u\" cx=\"%.2f%%\" cy=\"%d\" r=\"5\"/>",
                  colour_class(colour), percent(first), BAR_MIDDLE);
    text_add(out, "</svg>");
}

void chart_add_stack(struct chart_scale scale, const double *parts, size_t count,
                     const char *description, struct text *out)
{
    double sum = 0;
    begin_svg("bar", BAR_HEIGHT, description, out);
    add_cell_grid(scale, out);
    for (size_t i = 0; i < count && i < CHART_COLOURS; i++) {
        if (!(parts[i] > 0))
            continue;
        double from = chart_place(scale, sum);
        sum += parts[i];
        add_box(from, chart_place(scale, sum), BAR_MIDDLE - 6, 12, (unsigned)i, out);
    }
    text_add(out, "</svg>");
}

/* ---- figures ---- */

/*
 * Heights in pixels. Paths lie in an inner picture that is stretched to the plot; lines keep their
 * width there, and all text stays outside of it.
 */
enum {
    PLOT_TOP = 18,
    PLOT_HEIGHT = 180,
    PLOT_BOTTOM = PLOT_TOP + PLOT_HEIGHT,
    FIGURE_HEIGHT = 220
};
enum { PATH_WIDTH = 1000, LEGEND_LINE = 17 };

static void begin_plot(struct text *out)
{
    text_addf(out,
              "<svg x=\"0\" y=\"%d\" width=\"100%%\" height=\"%d\" viewBox=\"0 0 %d %d\""
              " preserveAspectRatio=\"none\">",
              PLOT_TOP, PLOT_HEIGHT, PATH_WIDTH, PLOT_HEIGHT);
}

static double plot_y(struct chart_scale scale, double value)
{
    return PLOT_HEIGHT * (1 - chart_place(scale, value));
}

/* Names in their colours, from the top left or from the bottom right corner of the plot. */
static void add_legend(const struct chart *c, bool at_left, struct text *out)
{
    for (size_t i = 0; i < c->line_count && i < CHART_LINES_MAX; i++) {
        double below = (double)(c->line_count - 1 - i) * LEGEND_LINE;
        double y = at_left ? PLOT_TOP + 30 + (double)i * LEGEND_LINE : PLOT_BOTTOM - 8 - below;
        double from = at_left ? 0.10 : 0.90, to = from + 0.08;
        text_addf(out, "<g class=\"c%u\">", colour_class(c->lines[i].colour));
        add_horizontal(from, to, y - 4, "line", out);
        text_add(out, "</g>");
        begin_text(at_left ? to + 0.02 : from - 0.02, y, at_left ? "start" : "end", out);
        text_add_html(out, text_bytes(c->lines[i].name));
        text_add(out, "</text>");
    }
}

static bool stands_right(const struct chart *c)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = 0; i < c->line_count; i++) {
        const struct chart_line *line = &c->lines[i];
        double place = line->count > 0 ? chart_place(c->x, line->x[line->count / 2]) : NAN;
        if (!isnan(place)) {
            sum += place;
            count++;
        }
    }
    return count > 0 && sum / (double)count > 0.5;
}

static void add_path_point(double x, double y, bool first, struct text *out)
{
    text_addf(out, "%c%.1f %.1f", first ? 'M' : 'L', x, y);
}

static void add_curve(const struct chart *c, const struct chart_line *line, struct text *out)
{
    bool pen_up = true;
    text_addf(out, "<path class=\"line c%u\" d=\"", colour_class(line->colour));
    size_t step = line->count / CHART_POINTS_MAX + 1;
    for (size_t i = 0; i < line->count; i += step) {
        double x = chart_place(c->x, line->x[i]);
        if (isnan(x) || isnan(line->y[i])) {
            pen_up = true;
            continue;
        }
        add_path_point(PATH_WIDTH * x, plot_y(c->y, line->y[i]), pen_up, out);
        pen_up = false;
    }
    text_add(out, "\"/>");
}

/* Where a line that ascends passes y; NAN where it does not. */
static double crossing(const struct chart_line *line, double y)
{
    for (size_t i = 1; i < line->count; i++) {
        double below = line->y[i - 1], above = line->y[i];
        if (below <= y && y <= above && above > below)
            return line->x[i - 1] + (line->x[i] - line->x[i - 1]) * (y - below) / (above - below);
    }
    return NAN;
}

void chart_add_curves(const struct chart *c, struct text *out)
{
    static const double shares[] = { 0, 0.5, 0.9, 1 };
    begin_svg("chart", FIGURE_HEIGHT, c->description, out);
    add_x_ticks(c->x, PLOT_TOP, PLOT_BOTTOM, out);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
        double y = PLOT_TOP + plot_y(c->y, shares[i]);
        add_horizontal(0, 1, y, i == 0 ? "base" : "grid", out);
        if (shares[i] == 0.5 || shares[i] == 0.9) {
            begin_text(0, y - 4, "start", out);
            text_addf(out, "%.0f%%</text>", 100 * shares[i]);
        }
    }
    begin_plot(out);
    for (size_t i = 0; i < c->line_count && i < CHART_LINES_MAX; i++)
        add_curve(c, &c->lines[i], out);
    text_add(out, "</svg>");
    for (size_t i = 0; i < c->line_count && i < CHART_LINES_MAX; i++) {
        double place = chart_place(c->x, crossing(&c->lines[i], 0.5));
        if (!isnan(place))
            text_addf(out, "<circle class=\"c%u\" cx=\"%.2f%%\" cy=\"%.1f\" r=\"4\"/>",
                      colour_class(c->lines[i].colour), percent(place),
                      PLOT_TOP + plot_y(c->y, 0.5));
    }
    add_legend(c, stands_right(c), out);
    text_add(out, "</svg>");
}

/* -- over time -- */

/* Steps that are drawn as one, so that no more than CHART_POINTS_MAX are drawn. */
static size_t steps_in_one(size_t count)
{
    return (count + CHART_POINTS_MAX - 1) / CHART_POINTS_MAX;
}

/* Least and greatest value of some steps; NAN when there are none. */
static void extremes(const struct chart_line *line, size_t from, size_t to, double *ret_least,
                     double *ret_greatest)
{
    *ret_least = *ret_greatest = NAN;
    for (size_t i = from; i < to && i < line->count; i++) {
        *ret_least = fmin(*ret_least, line->y[i]); /* NAN loses */
        *ret_greatest = fmax(*ret_greatest, line->y[i]);
    }
}

/* A peak between two drawn points stays visible: both extremes of a run are drawn. */
static void add_time_line(const struct chart *c, const struct chart_line *line, struct text *out)
{
    size_t run = steps_in_one(line->count);
    bool pen_up = true;
    text_addf(out, "<path class=\"line c%u\" d=\"", colour_class(line->colour));
    for (size_t i = 0; i < line->count; i += run) {
        double least, greatest;
        double x = PATH_WIDTH * ((double)i + (double)run / 2) / (double)line->count;
        extremes(line, i, i + run, &least, &greatest);
        if (isnan(least)) {
            pen_up = true;
            continue;
        }
        add_path_point(x, plot_y(c->y, least), pen_up, out);
        if (greatest > least)
            add_path_point(x, plot_y(c->y, greatest), false, out);
        else
            text_add(out, "h0"); /* a point alone shows as a dot */
        pen_up = false;
    }
    text_add(out, "\"/>");
}

static double mean_of(const struct chart_line *line, size_t from, size_t to)
{
    double sum = 0;
    size_t count = 0;
    for (size_t i = from; i < to && i < line->count; i++, count++)
        sum += isnan(line->y[i]) ? 0 : line->y[i];
    return count > 0 ? sum / (double)count : 0;
}

static void add_columns(const struct chart *c, size_t count, struct text *out)
{
    size_t run = steps_in_one(count);
    for (size_t i = 0; i < count; i += run) {
        double below = 0, left = (double)i / (double)count;
        double width = fmin((double)run, (double)(count - i)) / (double)count;
        for (size_t k = 0; k < c->line_count && k < CHART_LINES_MAX; k++) {
            double above = below + mean_of(&c->lines[k], i, i + run);
            double top = plot_y(c->y, above), bottom = plot_y(c->y, below);
            if (bottom > top)
                add_box(left + 0.05 * width, left + 0.95 * width, PLOT_TOP + top, bottom - top,
                        c->lines[k].colour, out);
            below = above;
        }
    }
}

static void add_time_labels(const char *const *labels, size_t count, struct text *out)
{
    enum { LABELS = 4 };
    size_t step = count > LABELS ? count / LABELS : 1;
    for (size_t i = 0; i < count; i += step) {
        double place = ((double)i + 0.5) / (double)count;
        add_vertical(place, PLOT_BOTTOM, PLOT_BOTTOM + 4, "tick", out);
        begin_text(place, PLOT_BOTTOM + 17, anchor_at(place), out);
        text_add_html(out, text_bytes(labels[i]));
        text_add(out, "</text>");
    }
}

static void add_y_grid(struct chart_scale scale, struct text *out)
{
    double ticks[CHART_TICKS_MAX];
    size_t count = chart_ticks(scale, ticks);
    for (size_t i = 0; i < count; i++)
        add_horizontal(0, 1, PLOT_TOP + plot_y(scale, ticks[i]), i == 0 ? "base" : "grid", out);
}

/* They stand inside of the plot, so in front of what it shows. */
static void add_y_numbers(struct chart_scale scale, struct text *out)
{
    double ticks[CHART_TICKS_MAX];
    size_t count = chart_ticks(scale, ticks);
    for (size_t i = scale.logarithmic ? 0 : 1; i < count; i++) {
        begin_text(0, PLOT_TOP + plot_y(scale, ticks[i]) - 4, "start", out);
        add_tick_number(out, ticks[i]);
        text_add(out, "</text>");
    }
}

/* Names above the plot, one behind the other. */
static void add_names(const struct chart *c, bool stacked, struct text *out)
{
    size_t count = c->line_count < CHART_LINES_MAX ? c->line_count : CHART_LINES_MAX;
    for (size_t i = 0; i < count; i++) {
        double from = 0.12 + 0.88 * (double)i / (double)count;
        if (stacked) {
            add_box(from, from + 0.025, 2, 10, c->lines[i].colour, out);
        } else {
            text_addf(out, "<g class=\"c%u\">", colour_class(c->lines[i].colour));
            add_horizontal(from, from + 0.04, 7, "line", out);
            text_add(out, "</g>");
        }
        begin_text(from + 0.05, 11, "start", out);
        text_add_html(out, text_bytes(c->lines[i].name));
        text_add(out, "</text>");
    }
}

void chart_add_series(const struct chart *c, const char *const *labels, bool stacked,
                      struct text *out)
{
    size_t count = c->line_count > 0 ? c->lines[0].count : 0;
    begin_svg("chart", FIGURE_HEIGHT, c->description, out);
    add_y_grid(c->y, out);
    if (stacked)
        add_columns(c, count, out);
    begin_plot(out);
    for (size_t i = 0; !stacked && i < c->line_count && i < CHART_LINES_MAX; i++)
        add_time_line(c, &c->lines[i], out);
    text_add(out, "</svg>");
    add_y_numbers(c->y, out);
    add_time_labels(labels, count, out);
    add_names(c, stacked, out);
    text_add(out, "</svg>");
}
