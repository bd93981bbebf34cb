/* SPDX-License-Identifier: Apache-2.0 */
#include "captures.h"

#include "moment.h"
#include "result.h"

/* Columns in the order of the enum; gap_s: time between this file and those of its point before. */
static const char SQL[] =
    "WITH flows AS (SELECT capture_id, count(*) AS flows FROM flow GROUP BY capture_id),"
    " floods AS (SELECT capture_id, sum(syns) AS half_open FROM half_open GROUP BY capture_id)"
    " SELECT point, region, site, host, path, format, link_types, snaplen,"
    " first_packet_epoch_ns, last_packet_epoch_ns,"
    " (first_packet_epoch_ns - max(last_packet_epoch_ns) OVER earlier) / 1e9 AS gap_s,"
    " packets, ifnull(flows, 0) AS flows, ifnull(half_open, 0) AS half_open, kernel_drops,"
    " (SELECT group_concat(reason || ' ' || packets, ', ') FROM"
    " (SELECT reason, packets FROM drop_count WHERE drop_count.capture_id = capture.capture_id"
    " ORDER BY packets DESC, reason)) AS not_used, damage"
    " FROM capture LEFT JOIN flows USING (capture_id) LEFT JOIN floods USING (capture_id)"
    " WINDOW earlier AS (PARTITION BY point, region, site, host"
    " ORDER BY first_packet_epoch_ns, capture_id"
    " ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    " ORDER BY point, region, site, host, first_packet_epoch_ns, capture_id";

enum column {
    POINT,
    REGION,
    SITE,
    HOST,
    PATH,
    FORMAT,
    LINK_TYPES,
    SNAPLEN,
    FIRST_PACKET,
    LAST_PACKET,
    GAP,
    PACKETS,
    FLOWS,
    HALF_OPEN,
    KERNEL_DROPS,
    NOT_USED,
    DAMAGE,
};

/* ---- the page for people: points, their files below them ---- */

enum { FILE_COLUMNS = 7 };

static const enum align FILE_ALIGN[FILE_COLUMNS] = {
    ALIGN_LEFT, ALIGN_RIGHT, ALIGN_RIGHT, ALIGN_RIGHT, ALIGN_RIGHT, ALIGN_RIGHT, ALIGN_LEFT,
};

struct page {
    struct table_style style;
    struct text *out;
    struct text point; /* heading of the point at hand */
    struct grid files; /* its files so far */
    struct text notes; /* what is wrong with them */
};

static void add_label(struct text *t, const char *name, struct cell value, bool utf8)
{
    if (value.type == CELL_NULL)
        return;
    text_addf(t, "   %s ", name);
    text_add_safe(t, value.bytes, utf8);
}

static void make_heading(struct query *q, bool utf8, struct text *ret_heading)
{
    text_clear(ret_heading);
    text_add_safe(ret_heading, query_cell(q, POINT).bytes, utf8);
    add_label(ret_heading, "region", query_cell(q, REGION), utf8);
    add_label(ret_heading, "site", query_cell(q, SITE), utf8);
    add_label(ret_heading, "host", query_cell(q, HOST), utf8);
}

static void start_files(struct page *p)
{
    static const char *const titles[FILE_COLUMNS] = { "first packet", "seconds", "packets", "flows",
                                                      "half-open",    "lost",    "file" };
    grid_done(&p->files);
    p->files = grid_of(FILE_COLUMNS, FILE_ALIGN, p->style.utf8);
    for (size_t i = 0; i < FILE_COLUMNS; i++)
        grid_add_string(&p->files, titles[i]);
}

/* Writes the point at hand, if there is one. */
static void put_point(struct page *p)
{
    if (p->files.cell_count == 0)
        return;
    text_add(p->out, "\n");
    text_add_wrapped(p->out, "", text_bytes(text_string(&p->point)), p->style.width);
    if (!grid_write(&p->files, p->style.width, p->out))
        (void)grid_write(&p->files, 0, p->out);
    text_add(p->out, text_string(&p->notes));
    p->out->failed |= p->notes.failed || p->point.failed;
    text_clear(&p->notes);
}

static void add_count(struct grid *g, struct cell cell)
{
    struct text t = { 0 };
    if (cell.type == CELL_INTEGER)
        text_add_count(&t, cell.integer);
    else
        text_add(&t, "-");
    grid_add_string(g, text_string(&t));
    text_done(&t);
}

static struct bytes file_name(struct bytes path)
{
    for (size_t i = path.len; i > 0; i--) {
        if (path.at[i - 1] == '/')
            return bytes_after(path, i);
    }
    return path;
}

static void add_note(struct page *p, const char *heading, struct query *q, struct cell words)
{
    struct text note = { 0 };
    text_add_safe(&note, file_name(query_cell(q, PATH).bytes), p->style.utf8);
    text_add(&note, ": ");
    text_add_safe(&note, words.bytes, p->style.utf8);
    text_add_wrapped(&p->notes, heading, text_bytes(text_string(&note)), p->style.width);
    p->notes.failed |= note.failed;
    text_done(&note);
}

static void add_file(struct page *p, struct query *q)
{
    struct cell first = query_cell(q, FIRST_PACKET), last = query_cell(q, LAST_PACKET);
    struct cell gap = query_cell(q, GAP);
    char start[MOMENT_TEXT_SIZE];
    bool has_times = first.type == CELL_INTEGER && last.type == CELL_INTEGER;
    grid_add_string(&p->files, has_times ? moment_text(first.integer, 3, start) : "no packets");
    grid_addf(&p->files, "%.3f",
              has_times ? ((double)last.integer - (double)first.integer) / 1e9 : 0);
    add_count(&p->files, query_cell(q, PACKETS));
    add_count(&p->files, query_cell(q, FLOWS));
    add_count(&p->files, query_cell(q, HALF_OPEN));
    add_count(&p->files, query_cell(q, KERNEL_DROPS));
    grid_add(&p->files, file_name(query_cell(q, PATH).bytes));

    enum { GAP_TOLD_S = 1 };
    if (gap.type == CELL_REAL && gap.real >= GAP_TOLD_S) {
        char words[64];
        (void)snprintf(words, sizeof words, "%.3f s without packets before it", gap.real);
        add_note(p, "  gap       ", q, cell_text(words));
    }
    if (query_cell(q, NOT_USED).type == CELL_TEXT)
        add_note(p, "  not used  ", q, query_cell(q, NOT_USED));
    if (query_cell(q, DAMAGE).type == CELL_TEXT)
        add_note(p, "! damaged   ", q, query_cell(q, DAMAGE));
}

static enum status put_points(struct page *p, struct query *q)
{
    struct text heading = { 0 };
    enum status status;
    while ((status = query_next(q)) == STATUS_OK) {
        make_heading(q, p->style.utf8, &heading);
        bool same =
            p->files.cell_count > 0 && strcmp(text_string(&heading), text_string(&p->point)) == 0;
        if (!same) {
            put_point(p);
            text_clear(&p->point);
            text_add(&p->point, text_string(&heading));
            start_files(p);
        }
        add_file(p, q);
    }
    put_point(p);
    text_done(&heading);
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status put_summary(struct database *database, struct text *out)
{
    struct query *q = NULL;
    enum status status =
        query_open(database,
                   "SELECT count(*), count(DISTINCT point || ifnull(region, '') || ifnull(site, '')"
                   " || ifnull(host, '')), min(first_packet_epoch_ns), max(last_packet_epoch_ns),"
                   " ifnull(sum(packets), 0), (SELECT count(*) FROM flow) FROM capture",
                   &q);
    if (status == STATUS_OK)
        status = query_next(q);
    if (status == STATUS_OK) {
        struct cell files = query_cell(q, 0), points = query_cell(q, 1);
        text_addf(out, "%lld file%s of %lld capture point%s", (long long)files.integer,
                  files.integer == 1 ? "" : "s", (long long)points.integer,
                  points.integer == 1 ? "" : "s");
        if (query_cell(q, 2).type == CELL_INTEGER) {
            char span[2 * MOMENT_TEXT_SIZE];
            struct span times = { query_cell(q, 2).integer, query_cell(q, 3).integer };
            text_addf(out, "     %s UTC", moment_span_text(times, span));
        }
        text_add(out, "     ");
        text_add_count(out, query_cell(q, 4).integer);
        text_add(out, " packets, ");
        text_add_count(out, query_cell(q, 5).integer);
        text_add(out, " flows\n");
    }
    query_close(q);
    return status;
}

/* ---- how far the clocks of points are apart ---- */

enum { CLOCK_COLUMNS = 6 };

static const enum align CLOCK_ALIGN[CLOCK_COLUMNS] = {
    ALIGN_LEFT, ALIGN_LEFT, ALIGN_RIGHT, ALIGN_RIGHT, ALIGN_RIGHT, ALIGN_RIGHT,
};

static void add_clock(struct grid *g, struct query *q)
{
    grid_add(g, query_cell(q, 0).bytes);
    grid_add(g, query_cell(q, 1).bytes);
    for (size_t column = 2; column <= 4; column++)
        grid_addf(g, "%.3f", query_cell(q, column).real);
    add_count(g, query_cell(q, 5));
}

/* Adds a table of the points that saw the same connections; nothing where there are none. */
static enum status put_clocks(struct database *database, struct table_style style, struct text *out)
{
    static const char *const titles[CLOCK_COLUMNS] = { "point",  "is behind the clock of",
                                                       "by ms",  "spread",
                                                       "way ms", "connections" };
    struct grid grid = grid_of(CLOCK_COLUMNS, CLOCK_ALIGN, style.utf8);
    struct query *q = NULL;
    enum status status = query_open(database,
                                    "SELECT iif(offset_ms < 0, other_point, point),"
                                    " iif(offset_ms < 0, point, other_point), abs(offset_ms),"
                                    " spread_ms, abs(way_ms), pairs FROM point_clock",
                                    &q);
    for (size_t i = 0; i < CLOCK_COLUMNS; i++)
        grid_add_string(&grid, titles[i]);
    bool has_clocks = false;
    while (status == STATUS_OK && (status = query_next(q)) == STATUS_OK) {
        add_clock(&grid, q);
        has_clocks = true;
    }
    query_close(q);
    if (has_clocks) {
        text_add(out, "\nclocks of points that saw the same connections\n");
        if (!grid_write(&grid, style.width, out))
            (void)grid_write(&grid, 0, out);
    }
    out->failed |= grid.failed;
    grid_done(&grid);
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status put_page(struct database *database, struct query *q, struct table_style style,
                            FILE *out)
{
    struct text text = { 0 };
    if (style.width == 0)
        style.width = PAGE_WIDTH;
    struct page page = { .style = style, .out = &text };
    enum status status = put_summary(database, &text);
    if (status == STATUS_OK)
        status = put_points(&page, q);
    if (status == STATUS_OK)
        status = put_clocks(database, style, &text);
    if (status == STATUS_OK)
        status = result_write_text(&text, out);
    grid_done(&page.files);
    text_done(&page.point);
    text_done(&page.notes);
    text_done(&text);
    return status;
}

enum status command_captures(struct database *database, struct table_style style, FILE *out,
                             struct text *error)
{
    struct query *q = NULL;
    enum status status = query_open(database, SQL, &q);
    if (status == STATUS_OK) {
        status = style.format == TABLE_ALIGNED ? put_page(database, q, style, out)
                                               : result_write(q, style, out);
    }
    query_close(q);
    return result_end(status, database, out, error);
}
