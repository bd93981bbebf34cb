/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor.h"

#include "moment.h"
#include "packet.h"
#include "result.h"
#include "survey.h"

#include <stdlib.h>

enum {
    PERCENT = 100,
    WHOLE = 98, /* percent from which on nobody needs to mind the rest */
    MOST = 80,
    NONE = 2,            /* percent up to which a thing is an exception */
    HELLO_SNAPLEN = 512, /* holds nearly every ClientHello's extensions before its key shares */
    NS_PER_MS = 1000000,
    NS_PER_S = 1000000000,
    S_PER_DAY = 86400,
};

struct page {
    struct text *out;
    struct table *table; /* rows in place of a page; NULL for a page */
    const struct capture_point *point;
    enum status status; /* of the rows */
    size_t width;
    bool utf8;
    struct survey_watch *watch;
    /* what a better command line needs */
    bool wants_snaplen, wants_fragments, wants_buffer, wants_nanoseconds, wants_start;
};

static double percent(uint64_t part, uint64_t of)
{
    return of == 0 ? 0 : (double)part * PERCENT / (double)of;
}

static void add_paragraph(struct page *p, const char *heading, struct text *words)
{
    text_add_wrapped(p->out, heading, text_bytes(text_string(words)), p->width);
    p->out->failed |= words->failed;
    text_done(words);
}

/* ---- the same as rows ---- */

enum { ROW_COLUMNS = 7 };

static const char *const ROW_NAMES[ROW_COLUMNS] = { "point", "files", "topic",    "severity",
                                                    "count", "share", "statement" };

struct row_values {
    const char *severity, *topic;
    struct cell count, share, statement;
};

static struct cell cell_share(double share)
{
    return share < 0 ? cell_null() : cell_real(share);
}

static void add_row(struct page *p, const struct row_values *v)
{
    struct cell row[ROW_COLUMNS] = {
        cell_text(p->point != NULL ? p->point->name : NULL),
        p->point != NULL ? cell_integer((int64_t)p->point->file_count) : cell_null(),
        cell_text(v->topic),
        cell_text(v->severity),
        v->count,
        v->share,
        v->statement,
    };
    if (p->status == STATUS_OK)
        p->status = table_add(p->table, row);
}

static void add_statement(struct page *p, const char *severity, const char *topic,
                          const struct text *words)
{
    struct row_values v = { severity, topic, cell_null(), cell_null(),
                            cell_text(text_string(words)) };
    add_row(p, &v);
    if (words->failed)
        p->status = STATUS_NO_MEMORY;
}

static void add_number(struct page *p, const char *topic, uint64_t count, double share)
{
    struct row_values v = { "number", topic, cell_integer((int64_t)count), cell_share(share),
                            cell_null() };
    add_row(p, &v);
}

/* Something that was seen: a row, or a paragraph that is marked where it costs measurements. */
static void add_finding(struct page *p, bool is_problem, const char *topic, struct text *words)
{
    if (p->table != NULL) {
        add_statement(p, is_problem ? "problem" : "note", topic, words);
        text_done(words);
        return;
    }
    struct text heading = { 0 };
    text_addf(&heading, "%c %-12s", is_problem ? '!' : ' ', topic);
    p->out->failed |= heading.failed;
    add_paragraph(p, text_string(&heading), words);
    text_done(&heading);
}

/* What the page's head and its sentences count. */
static void add_numbers(struct page *p, const struct survey *s)
{
    enum { NO_SHARE = -1 };
    add_number(p, "files read", s->files_read, NO_SHARE);
    add_number(p, "packets", s->packets, NO_SHARE);
    add_number(p, "connections", s->flows, NO_SHARE);
    add_number(p, "ClientHellos", s->hellos, NO_SHARE);
    add_number(p, "packets cut", s->packets_cut, percent(s->packets_cut, s->packets));
    if (s->packets_cut > 0)
        add_number(p, "snaplen", s->cut_len, NO_SHARE);
    add_number(p, "ClientHellos cut", s->hellos_cut, percent(s->hellos_cut, s->hellos));
    add_number(p, "ClientHellos without SYN", s->hellos_without_syn,
               percent(s->hellos_without_syn, s->hellos));
    add_number(p, "connections of one side", s->flows_one_side,
               percent(s->flows_one_side, s->flows));
    add_number(p, "connections with gaps", s->flows_with_gaps,
               percent(s->flows_with_gaps, s->flows));
    add_number(p, "packets captured twice", s->duplicates, percent(s->duplicates, s->packets));
    if (s->kernel_drops >= 0)
        add_number(p, "packets dropped by the system", (uint64_t)s->kernel_drops, NO_SHARE);
}

/* ---- what can be measured ---- */

static const char *how_often(double share)
{
    if (share >= WHOLE)
        return "yes";
    if (share >= MOST)
        return "mostly";
    return share > 0 ? "partly" : "no";
}

struct measure {
    const char *name;
    uint64_t count;
    const char *needs; /* of each connection */
};

enum { MEASURES = 5 };

static void put_measure_rows(struct page *p, const struct measure *measures, uint64_t of)
{
    for (size_t i = 0; i < MEASURES; i++) {
        struct row_values v = { "measure", measures[i].name,
                                cell_integer((int64_t)measures[i].count),
                                cell_real(percent(measures[i].count, of)),
                                cell_text(measures[i].needs) };
        add_row(p, &v);
    }
}

static void put_measures(struct page *p, const struct survey *s)
{
    static const enum align ALIGN[] = { ALIGN_FIXED, ALIGN_FIXED, ALIGN_RIGHT, ALIGN_LEFT };
    struct measure measures[MEASURES] = {
        { "offer of 0-RTT, server name", s->hellos - s->hellos_cut, "ClientHello whole" },
        { "kind of handshake", s->hellos_answered, "ServerHello seen" },
        { "times since the SYN", s->hellos - s->hellos_without_syn, "SYN seen" },
        { "first response", s->hellos_with_data, "data of both sides after the hellos" },
        { "wait as the client felt it", s->hellos_with_rtt, "SYN/ACK and the ACK of it seen" },
    };
    if (p->table != NULL) {
        put_measure_rows(p, measures, s->hellos);
        return;
    }
    struct grid grid = grid_of(4, ALIGN, p->utf8);
    for (size_t i = 0; i < MEASURES; i++) {
        double share = percent(measures[i].count, s->hellos);
        grid_addf(&grid, "  %s", measures[i].name);
        grid_add_string(&grid, how_often(share));
        grid_addf(&grid, "%.0f%%", share);
        grid_add_string(&grid, measures[i].needs);
    }
    if (!grid_write(&grid, p->width, p->out))
        (void)grid_write(&grid, 0, p->out);
    p->out->failed |= grid.failed;
    grid_done(&grid);
}

/* ---- what is wrong ---- */

static void put_hello_findings(struct page *p, const struct survey *s)
{
    if (s->hellos_cut > 0) {
        struct text t = { 0 };
        text_addf(&t,
                  "%.0f%% of the ClientHellos are cut off (packets are after %zu bytes): no server "
                  "name, no offer of early data, weaker verdicts.",
                  percent(s->hellos_cut, s->hellos), s->cut_len);
        add_finding(p, true, "snaplen", &t);
        p->wants_snaplen = true;
    } else if (s->packets_cut > 0) {
        struct text t = { 0 };
        text_addf(&t, "%.0f%% of the packets are cut after %zu bytes, but no ClientHello is.",
                  percent(s->packets_cut, s->packets), s->cut_len);
        add_finding(p, false, "snaplen", &t);
    }
    if (percent(s->hellos_without_syn, s->hellos) > NONE) {
        struct text t = { 0 };
        text_addf(
            &t,
            "%.0f%% of the connections with a ClientHello show no SYN: a filter took it away, "
            "or packets were lost, or the file begins there. They get no response time.",
            percent(s->hellos_without_syn, s->hellos));
        add_finding(p, true, "SYN", &t);
        p->wants_start = true;
    }
}

static void put_side_findings(struct page *p, const struct survey *s)
{
    if (percent(s->flows_one_side, s->flows) > NONE) {
        struct text t = { 0 };
        text_addf(&t,
                  "%.0f%% of the connections show one direction only: the other takes another way, "
                  "or a filter or mirror port leaves it out. No verdict rests on one side alone.",
                  percent(s->flows_one_side, s->flows));
        add_finding(p, true, "one side", &t);
    }
    if (s->duplicates > 0 && percent(s->duplicates, s->packets) > NONE) {
        struct text t = { 0 };
        text_addf(
            &t,
            "%.0f%% of the packets were captured twice (mirror port, any device). They are "
            "recognised and not taken for retransmissions; one interface gives half the file.",
            percent(s->duplicates, s->packets));
        add_finding(p, false, "twice", &t);
    }
}

static void put_loss_findings(struct page *p, const struct survey *s)
{
    struct text t = { 0 };
    if (s->kernel_drops > 0) {
        text_addf(&t, "the capturing system dropped %lld packets", (long long)s->kernel_drops);
        p->wants_buffer = true;
    } else if (s->kernel_drops < 0) {
        text_add(&t, "the files do not say what the capturing system dropped (pcapng can)");
    } else {
        text_add(&t, "the capturing system dropped nothing");
    }
    bool has_gaps = percent(s->flows_with_gaps, s->flows) > NONE;
    if (has_gaps)
        text_addf(&t, "; %.0f%% of the connections miss bytes that were sent",
                  percent(s->flows_with_gaps, s->flows));
    text_add(&t, ".");
    p->wants_buffer |= has_gaps;
    add_finding(p, has_gaps || s->kernel_drops > 0, "losses", &t);
}

/* "350 ms", "12 s", "3 days": as long as it is needed to be understood. */
static void add_step(struct text *t, int64_t step_ns)
{
    double seconds = (double)step_ns / NS_PER_S;
    if (seconds < 10)
        text_addf(t, "%.0f ms", (double)step_ns / NS_PER_MS);
    else if (seconds < 2 * S_PER_DAY)
        text_addf(t, "%.0f s", seconds);
    else
        text_addf(t, "%.0f days", seconds / S_PER_DAY);
}

static void put_clock_findings(struct page *p, const struct survey *s)
{
    struct text t = { 0 };
    text_add(&t, s->fine_times > 0 ? "nanoseconds" : "microseconds");
    p->wants_nanoseconds = s->fine_times == 0;
    if (s->steps_back > 0) {
        text_addf(&t, "; %llu time%s back by up to ", (unsigned long long)s->steps_back,
                  plural(s->steps_back));
        add_step(&t, s->step_back_ns);
        text_add(&t, ": the clock was set, or captures were put together");
    } else if (s->step_back_ns > 0)
        text_addf(&t, "; out of order by up to %.3f ms", (double)s->step_back_ns / NS_PER_MS);
    else
        text_add(&t, ", in order");
    if (s->drops.packets[DROP_TIME_INVALID] > 0)
        text_addf(&t, "; %llu packets without a valid time",
                  (unsigned long long)s->drops.packets[DROP_TIME_INVALID]);
    text_add(&t, ".");
    add_finding(p, s->steps_back > 0, "clock", &t);
}

static void put_vantage(struct page *p, const struct survey *s)
{
    struct text t = { 0 };
    for (unsigned v = VANTAGE_CLIENT; v <= VANTAGE_LOCAL; v++)
        if (s->vantage[v] > 0)
            text_addf(&t, "%s%s %.0f%%", t.len > 0 ? ", " : "", vantage_text(v),
                      percent(s->vantage[v], s->flows));
    if (t.len == 0)
        text_add(&t, "not to be told: no TCP handshakes");
    add_finding(p, false, "seen near", &t);
}

/* Reasons that are the same in every capture of mixed traffic are left out. */
static bool is_usual(enum drop reason)
{
    return reason == DROP_NONE || reason == DROP_NOT_IP || reason == DROP_NOT_TCP ||
           reason == DROP_UDP_NOT_QUIC || reason == DROP_QUIC_NOT_READ ||
           reason == DROP_TIME_INVALID || reason == DROP_FILTERED;
}

/* What takes its own way past us, and what hides connections. */
static void put_other_traffic(struct page *p, const struct survey *s)
{
    double quic = percent(s->drops.packets[DROP_QUIC_NOT_READ], s->packets);
    double udp = percent(s->drops.packets[DROP_UDP_NOT_QUIC], s->packets);
    double other = percent(s->drops.packets[DROP_NOT_TCP], s->packets);
    struct text t = { 0 };
    if (quic > 0) {
        text_addf(&t,
                  "%.0f%% of the packets are QUIC, which this version does not read: connections "
                  "over HTTP/3 are missing in all numbers.",
                  quic);
        add_finding(p, quic > NONE, "QUIC", &t);
    }
    if (udp + other > PERCENT - MOST) {
        text_addf(&t,
                  "%.0f%% of the packets are other UDP, %.0f%% neither TCP nor UDP. Connections in "
                  "encrypted tunnels there (IPsec, WireGuard, OpenVPN) cannot be seen.",
                  udp, other);
        add_finding(p, false, "other", &t);
    }
    if (s->tunnel != 0) {
        text_add(&t, "tags or tunnels around the IP packets are read through; column tunnel names "
                     "them.");
        add_finding(p, false, "around", &t);
    }
    if (s->packets_joined > 0) {
        text_addf(&t,
                  "%.0f%% of the packets are longer than any link carries: the capturing host "
                  "joins segments (offload). Bytes are right, times are those of whole batches.",
                  percent(s->packets_joined, s->packets));
        add_finding(p, false, "joined", &t);
    }
}

static void put_drop_findings(struct page *p, const struct survey *s)
{
    for (unsigned i = 0; i < DROP_COUNT; i++) {
        if (s->drops.packets[i] == 0 || is_usual(i))
            continue;
        struct text t = { 0 };
        text_addf(&t, "%llu packets: %s", (unsigned long long)s->drops.packets[i], drop_meaning(i));
        if (i == DROP_LINK_TYPE_UNKNOWN)
            text_addf(&t, " (%s)", text_string(&s->unknown_links));
        text_add(&t, ".");
        add_finding(p, true, "not used", &t);
    }
    p->wants_fragments = s->drops.packets[DROP_FRAGMENT] > 0;
}

static void put_damage(struct page *p, const struct survey *s)
{
    struct bytes rest = text_bytes(text_string(&s->damage));
    while (rest.len > 0) {
        const uint8_t *end = memchr(rest.at, '\n', rest.len);
        struct bytes line = bytes_first(rest, end != NULL ? (size_t)(end - rest.at) : rest.len);
        struct text safe = { 0 };
        text_add_safe(&safe, line, p->utf8);
        add_finding(p, true, "damaged", &safe);
        rest = bytes_after(rest, line.len + 1);
    }
}

/* ---- how it would have been better ---- */

static unsigned busiest_port(const struct survey *s)
{
    unsigned best = 443;
    for (unsigned port = 0; port < 65536; port++)
        if (s->ports[port] > s->ports[best])
            best = port;
    return best;
}

/* Tags and tunnels hide the port from a filter; behind the first fragment there is none. */
static void add_filter(struct text *t, const struct page *p, const struct survey *s)
{
    unsigned port = busiest_port(s);
    if ((s->tunnel & ~(unsigned)TUNNEL_VLAN) != 0)
        return;
    text_addf(t, " 'tcp port %u", port);
    if (p->wants_fragments)
        text_add(t, " or (ip[6:2] & 0x3fff) != 0");
    if ((s->tunnel & TUNNEL_VLAN) != 0)
        text_addf(t, " or (vlan and tcp port %u)", port);
    text_add(t, "'");
}

static void put_better_command(struct page *p, const struct survey *s)
{
    bool has_reason = p->wants_snaplen || p->wants_fragments || p->wants_buffer || p->wants_start ||
                      s->hellos == 0;
    if (!has_reason)
        return;
    struct text line = { 0 };
    struct text *t = &line;
    /* Whole packets where even a snaplen that usually suffices cut hellos. */
    unsigned snaplen = s->cut_len < HELLO_SNAPLEN ? HELLO_SNAPLEN : 0;
    text_addf(t, "tcpdump -i eth0 -s %u", p->wants_snaplen ? snaplen : HELLO_SNAPLEN);
    if (p->wants_buffer)
        text_add(t, " -B 65536");
    if (p->wants_nanoseconds)
        text_add(t, " --time-stamp-precision=nano");
    text_add(t, p->table != NULL ? " " : " \\\n                  ");
    text_add(t, "-G 60 -W 60 -w edge-%Y%m%dT%H%M%SZ.pcap");
    add_filter(t, p, s);
    if (p->table != NULL) {
        add_statement(p, "advice", "better", &line);
    } else {
        text_addf(p->out, "  better      %s\n", text_string(&line));
        p->out->failed |= line.failed;
    }
    text_done(&line);
}

/* ---- the page ---- */

static void put_heading(struct page *p, const struct capture_point *point, const struct survey *s)
{
    struct text t = { 0 };
    text_add_safe(&t, text_bytes(point->name), p->utf8);
    add_paragraph(p, "", &t);
    text_addf(&t, "%zu of %zu files, ", s->files_read, point->file_count);
    text_add_count(&t, (int64_t)s->packets);
    text_add(&t, s->has_unread_rest ? " packets at their beginning, " : " packets, ");
    text_add_count(&t, (int64_t)s->flows);
    text_add(&t, " connections with data, ");
    text_add_count(&t, (int64_t)s->hellos);
    text_add(&t, " with a ClientHello");
    if (s->first_ns != 0) {
        char span[2 * MOMENT_TEXT_SIZE];
        struct span times = { s->first_ns, s->last_ns };
        text_addf(&t, ", %s UTC", moment_span_text(times, span));
    }
    add_paragraph(p, "  ", &t);
}

static void put_point(struct page *p, const struct capture_point *point, const struct survey *s)
{
    if (p->table != NULL) {
        add_numbers(p, s);
    } else {
        text_add(p->out, p->out->len > 0 ? "\n" : "");
        put_heading(p, point, s);
    }
    put_damage(p, s);
    if (s->is_interrupted) {
        struct text t = { 0 };
        text_add(&t, "interrupted: this is what was read until then.");
        add_finding(p, true, "not whole", &t);
    }
    if (s->files_read == 0)
        return;
    if (s->hellos > 0) {
        put_measures(p, s);
        put_hello_findings(p, s);
    } else {
        struct text t = { 0 };
        text_add(&t,
                 "no ClientHello in it: no TLS, or it is not at the beginning of the files, or a "
                 "snaplen or filter took it away.");
        add_finding(p, true, "TLS", &t);
    }
    put_side_findings(p, s);
    put_loss_findings(p, s);
    put_clock_findings(p, s);
    put_vantage(p, s);
    put_other_traffic(p, s);
    put_drop_findings(p, s);
    put_better_command(p, s);
}

static enum status survey_and_put(struct page page, const struct capture_point *point,
                                  const char *filter, struct doctor_result *result)
{
    struct survey *s = calloc(1, sizeof *s);
    if (s == NULL)
        return STATUS_NO_MEMORY;
    enum status status = survey_point(point, filter, page.watch, s);
    progress_end(&page.watch->progress);
    page.point = point;
    if (status == STATUS_OK) {
        put_point(&page, point, s);
        status = page.status;
    }
    result->files_read += s->files_read;
    result->files_damaged += s->files_damaged;
    result->files_unreadable += s->files_unreadable;
    survey_done(s);
    free(s);
    return status;
}

/* What could not be read at all, below the points. */
static void put_notes(struct page *p, const struct inputs *inputs, struct doctor_result *result)
{
    for (size_t i = 0; i < inputs->note_count; i++) {
        const struct input_note *note = &inputs->notes[i];
        struct text t = { 0 };
        text_add_safe(&t, text_bytes(note->path), p->utf8);
        text_add(&t, ": ");
        text_add_safe(&t, text_bytes(note->text), p->utf8);
        if (p->table != NULL)
            add_finding(p, note->is_error, "input", &t);
        else
            add_paragraph(p, note->is_error ? "! " : "  ", &t);
        result->files_unreadable += note->is_error;
    }
}

static enum status put_all(struct page *p, const struct inputs *inputs, const char *filter,
                           struct doctor_result *result)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < inputs->point_count; i++)
        p->watch->files_total += survey_file_count(&inputs->points[i]);
    for (size_t i = 0; i < inputs->point_count && status == STATUS_OK && !*p->watch->stop; i++)
        status = survey_and_put(*p, &inputs->points[i], filter, result);
    if (p->out->len > 0 && inputs->note_count > 0)
        text_add(p->out, "\n");
    put_notes(p, inputs, result);
    return status == STATUS_OK ? p->status : status;
}

static enum status write_rows(struct page *p, const struct inputs *inputs, const char *filter,
                              struct table_style style, FILE *out, struct doctor_result *result)
{
    p->table = table_open(out, style, ROW_NAMES, ROW_COLUMNS);
    enum status status = p->table != NULL ? put_all(p, inputs, filter, result) : STATUS_NO_MEMORY;
    enum status closing = table_close(p->table);
    return status == STATUS_OK ? closing : status;
}

static enum status write_page(struct page *p, const struct inputs *inputs, const char *filter,
                              FILE *out, struct doctor_result *result)
{
    enum status status = put_all(p, inputs, filter, result);
    return status == STATUS_OK ? result_write_text(p->out, out) : status;
}

enum status command_doctor(const struct input_options *options, const char *filter,
                           struct table_style style, struct survey_watch *watch, FILE *out,
                           struct doctor_result *ret_result, struct text *error)
{
    struct inputs inputs;
    struct text text = { 0 };
    struct page page = {
        .out = &text,
        .width = style.width > 0 ? style.width : PAGE_WIDTH,
        .utf8 = style.utf8,
        .watch = watch,
    };
    *ret_result = (struct doctor_result){ 0 };
    enum status status = inputs_find(options, &inputs);
    if (status != STATUS_OK && inputs.note_count > 0) {
        const struct input_note *last = &inputs.notes[inputs.note_count - 1];
        text_addf(error, "%s: %s", last->path, last->text);
    }
    if (status == STATUS_OK)
        status = style.format == TABLE_ALIGNED
                     ? write_page(&page, &inputs, filter, out, ret_result)
                     : write_rows(&page, &inputs, filter, style, out, ret_result);
    ret_result->is_interrupted = *watch->stop;
    if (status != STATUS_OK && error->len == 0)
        text_add(error,
                 status == STATUS_NO_MEMORY ? "out of memory" : "cannot be written or stored");
    inputs_done(&inputs);
    text_done(&text);
    return status;
}
