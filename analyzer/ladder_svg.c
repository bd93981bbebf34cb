/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flow as a picture: what each side sent, one arrow below the other. White space between two
 * arrows grows with the time between them, so waiting is seen; arrows that follow at once keep the
 * room that their words need.
 */
#include "ladder_parts.h"
#include "page_blocks.h"
#include "page_style.h" /* generated */

#include <assert.h>

/* Places in pixels; the picture has one width, since its words need it. */
enum {
    WIDTH = 1056,
    TOP = 44,
    SEEN_X = 66,
    SINCE_X = 134,
    BRACKET_X = 152,
    CLIENT_X = 170,
    SERVER_X = 440,
    BYTES_X = 516,
    WHY_X = 538,
    WHY_COLUMNS = 78, /* of WIDTH - WHY_X in the type of 12 px */
    LINE_HEIGHT = 16,
    STEP_HEIGHT = 24,
    WAIT_HEIGHT = 90, /* of the longest wait */
};

struct drawing {
    const struct ladder *ladder;
    double y[STEPS_MAX]; /* of each arrow */
    double bottom;
    struct text *out;
};

/* Lines that the words beside a step take. */
static size_t why_lines(const struct ladder *l, const struct step *step)
{
    struct text why = { 0 };
    size_t lines = 0;
    ladder_add_why(l, step, &why);
    struct bytes rest = text_bytes(text_string(&why));
    for (; rest.len > 0; lines++)
        (void)text_take_line(&rest, WHY_COLUMNS);
    text_done(&why);
    return lines;
}

static double wait_ns(const struct ladder *l, size_t i)
{
    return i == 0 ? 0 : (double)(l->steps[i].at_ns - l->steps[i - 1].at_ns);
}

static void place_steps(struct drawing *d)
{
    const struct ladder *l = d->ladder;
    double longest = 1, y = TOP;
    for (size_t i = 0; i < l->step_count; i++)
        longest = wait_ns(l, i) > longest ? wait_ns(l, i) : longest;
    for (size_t i = 0; i < l->step_count; i++) {
        size_t lines = i > 0 ? why_lines(l, &l->steps[i - 1]) : 1;
        y += i == 0 ? STEP_HEIGHT
                    : STEP_HEIGHT + (lines > 1 ? (double)(lines - 1) : 0) * LINE_HEIGHT;
        y += WAIT_HEIGHT * wait_ns(l, i) / longest;
        d->y[i] = y;
    }
    size_t last_lines = l->step_count > 0 ? why_lines(l, &l->steps[l->step_count - 1]) : 0;
    d->bottom = y + STEP_HEIGHT + (double)last_lines * LINE_HEIGHT;
}

static void begin_text(const struct drawing *d, double x, double y, const char *anchor,
                       const char *class)
{
    text_addf(d->out, "<text class=\"%s\" x=\"%.0f\" y=\"%.1f\" text-anchor=\"%s\">", class, x, y,
              anchor);
}

static void put_text(const struct drawing *d, double x, double y, const char *anchor,
                     const char *class, const char *words)
{
    begin_text(d, x, y, anchor, class);
    text_add_html(d->out, text_bytes(words));
    text_add(d->out, "</text>\n");
}

static void put_line(const struct drawing *d, double x1, double y1, double x2, double y2,
                     const char *class)
{
    text_addf(d->out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
              class, x1, y1, x2, y2);
}

/* The time in which the server did not have the client's Finished: shade, bracket and name. */
static void put_window(const struct drawing *d)
{
    const struct ladder *l = d->ladder;
    if (l->window_first < 0)
        return;
    double top = d->y[l->window_first] - 12, bottom = d->y[l->window_last] + 8;
    text_addf(d->out, "<rect class=\"window\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>\n",
              CLIENT_X, top, SERVER_X - CLIENT_X, bottom - top);
    text_addf(d->out, "<path class=\"bracket\" d=\"M%d %.1fh-6v%.1fh6\"/>\n", BRACKET_X, top,
              bottom - top);
}

static const char *class_of(const char *label)
{
    if (strcmp(label, "REQUEST") == 0)
        return "request";
    return strcmp(label, "RESPONSE") == 0 ? "response" : "plain";
}

/* The request among early data is named so by its words; as an arrow it is early data. */
static bool is_request(const struct ladder *l, const struct step *step)
{
    return step->record >= 0 ? step->record == judged_request(&l->judged)
                             : strcmp(step->mark, "REQUEST") == 0;
}

static void put_arrow(const struct drawing *d, size_t i)
{
    const struct step *step = &d->ladder->steps[i];
    const char *label = ladder_label(d->ladder, step);
    const char *class = is_request(d->ladder, step) ? "request" : class_of(label);
    double y = d->y[i];
    bool right = step->from == CLIENT;
    double tip = right ? SERVER_X : CLIENT_X, back = right ? -8 : 8;
    text_addf(d->out, "<g class=\"arrow %s\">\n", class);
    put_line(d, right ? CLIENT_X : SERVER_X, y, tip + back, y, "shaft");
    text_addf(d->out, "<path class=\"head\" d=\"M%.1f %.1fl%.1f -4.5v9z\"/>\n", tip, y, back);
    put_text(d, (CLIENT_X + SERVER_X) / 2.0, y - 4, "middle", "label", label);
    text_add(d->out, "</g>\n");
}

static void put_words(const struct drawing *d, size_t i)
{
    const struct ladder *l = d->ladder;
    const struct step *step = &l->steps[i];
    struct text words = { 0 };
    double y = d->y[i] + 4;
    text_addf(&words, "%.3f", (double)step->at_ns / 1e6);
    put_text(d, SEEN_X, y, "end", "time", text_string(&words));
    text_clear(&words);
    text_addf(&words, "+%.3f", wait_ns(l, i) / 1e6);
    if (i > 0)
        put_text(d, SINCE_X, y, "end", "time soft", text_string(&words));
    text_clear(&words);
    if (ladder_record(l, step)) {
        text_add_count(&words, ladder_record(l, step)->len);
        put_text(d, BYTES_X, y, "end", "time", text_string(&words));
    }
    text_clear(&words);
    ladder_add_why(l, step, &words);
    struct bytes rest = text_bytes(text_string(&words));
    for (; rest.len > 0; y += LINE_HEIGHT) {
        begin_text(d, WHY_X, y, "start", "why");
        text_add_html(d->out, text_take_line(&rest, WHY_COLUMNS));
        text_add(d->out, "</text>\n");
    }
    d->out->failed |= words.failed;
    text_done(&words);
}

static void put_heads(const struct drawing *d)
{
    put_text(d, SEEN_X, TOP - 20, "end", "soft", "seen ms");
    put_text(d, SINCE_X, TOP - 20, "end", "soft", "since");
    put_text(d, CLIENT_X, TOP - 20, "middle", "end", "client");
    put_text(d, SERVER_X, TOP - 20, "middle", "end", "server");
    put_text(d, BYTES_X, TOP - 20, "end", "soft", "bytes");
    put_text(d, WHY_X, TOP - 20, "start", "soft", "taken for, and why");
    put_line(d, CLIENT_X, TOP - 10, CLIENT_X, d->bottom, "life");
    put_line(d, SERVER_X, TOP - 10, SERVER_X, d->bottom, "life");
}

/* Alone it needs its name space, colours and paper; inside of a page it has them. */
static void put_svg(const struct ladder *l, bool alone, struct text *out)
{
    struct drawing d = { .ladder = l, .out = out };
    struct text title = { 0 };
    place_steps(&d);
    ladder_add_title(l, &title);
    text_addf(out,
              "<svg %sclass=\"ladder\" role=\"img\" width=\"%d\" height=\"%.0f\""
              " viewBox=\"0 0 %d %.0f\">\n<title>",
              alone ? "xmlns=\"http://www.w3.org/2000/svg\" " : "", WIDTH, d.bottom + 10, WIDTH,
              d.bottom + 10);
    text_add_html(out, text_bytes(text_string(&title)));
    text_add(out, "</title>\n");
    if (alone) {
        text_add(out, "<style>");
        for (size_t i = 0; i < PAGE_STYLE_LINES; i++)
            text_add(out, PAGE_STYLE[i]);
        text_add(out, "</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
    }
    put_window(&d);
    put_heads(&d);
    for (size_t i = 0; i < l->step_count; i++) {
        put_arrow(&d, i);
        put_words(&d, i);
    }
    text_add(out, "</svg>\n");
    out->failed |= title.failed;
    text_done(&title);
}

void ladder_add_svg(const struct flow_row *row, const struct facts *facts,
                    const struct verdict *verdict, const struct server_profile_row *server,
                    struct text *out)
{
    struct ladder l = ladder_of(row, facts, verdict, server, true);
    put_svg(&l, true, out);
}

/* ---- as a page ---- */

/* False without memory for its words. */
static bool add_step_row(struct page *page, const struct ladder *l, size_t i)
{
    const struct step *step = &l->steps[i];
    const struct record *record = ladder_record(l, step);
    struct text why = { 0 };
    ladder_add_why(l, step, &why);
    bool inside = l->window_first >= 0 && (int)i >= l->window_first && (int)i <= l->window_last;
    page_cell(page, cell_integer(step->at_ns));
    page_cell(page, i > 0 ? cell_integer((int64_t)wait_ns(l, i)) : cell_null());
    page_cell(page, cell_text(step->from == CLIENT ? "client" : "server"));
    page_cell(page, cell_text(ladder_label(l, step)));
    page_cell(page, record ? cell_integer(record->len) : cell_null());
    page_cell(page, cell_text(inside ? "yes" : ""));
    page_cell(page, cell_text(text_string(&why)));
    bool ok = !why.failed;
    text_done(&why);
    return ok;
}

static bool add_steps(struct page *page, const struct ladder *l)
{
    static const struct page_column columns[] = {
        { "at_ns", "seen ms", PAGE_MS },
        { "since_ns", "since", PAGE_MS },
        { "side", "from", PAGE_WORD },
        { "label", "what", PAGE_WORD },
        { "bytes", NULL, PAGE_COUNT },
        { "early", "early window", PAGE_WORD },
        { "why", "taken for, and why", PAGE_WORD },
    };
    page_table(page, "steps", columns, sizeof columns / sizeof *columns);
    bool ok = true;
    for (size_t i = 0; i < l->step_count; i++)
        ok = add_step_row(page, l, i) && ok;
    return ok;
}

/* Adds what words hold, and empties them. */
static void add_fact(struct page *page, const char *name, struct text *words)
{
    if (words->len > 0)
        page_fact(page, name, "%s", text_string(words));
    text_clear(words);
}

struct page *ladder_page(const struct flow_row *row, const struct facts *facts,
                         const struct verdict *verdict, const struct server_profile_row *server)
{
    struct ladder l = ladder_of(row, facts, verdict, server, true);
    struct text words = { 0 };
    ladder_add_title(&l, &words);
    struct page *page = page_open(text_string(&words));
    text_clear(&words);
    ladder_add_endpoints(&l, &words);
    page_text(page, "%s", text_string(&words));
    text_clear(&words);
    ladder_add_vantage(&l, &words);
    page_text(page, "%s", text_string(&words));
    text_clear(&words);
    if (l.window_first >= 0)
        page_text(page, "The bracket and the shade span the time in which the server did not yet "
                        "have the client's Finished: request and response inside it are what 0-RTT "
                        "is for.");
    put_svg(&l, false, &words);
    words.failed |= !add_steps(page, &l);
    page_draw_svg(page, "the ladder", &words);
    text_clear(&words);
    ladder_add_phases(&l, &words);
    add_fact(page, "time", &words);
    ladder_add_felt(&l, &words);
    add_fact(page, "felt", &words);
    ladder_add_quality(&l, &words);
    add_fact(page, "quality", &words);
    text_done(&words);
    return page;
}
