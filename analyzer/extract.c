/* SPDX-License-Identifier: Apache-2.0 */
#include "extract.h"

#include "capture.h"
#include "packet.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- what to look for ---- */

struct wanted {
    struct endpoint client, server;
    int64_t first_ns, last_ns; /* Unix, of the flow's packets */
};

static struct endpoint endpoint_of(struct cell address, struct cell port, bool *whole)
{
    struct endpoint e = { .port = (uint16_t)port.integer };
    struct text text = { 0 };
    text_add_bytes(&text, address.bytes);
    *whole = *whole && address.type == CELL_TEXT && port.type == CELL_INTEGER &&
             address_parse(text_string(&text), &e.address);
    text_done(&text);
    return e;
}

static enum status read_wanted(struct database *d, int64_t flow_id, struct wanted *ret_wanted,
                               struct text *error)
{
    struct query *q = NULL;
    bool whole = true;
    enum status status = query_open(d,
                                    "SELECT client_ip, client_port, server_ip, server_port,"
                                    " start_epoch_ns, start_epoch_ns + end_at_ns FROM flow"
                                    " WHERE flow_id = :flow_id",
                                    &q);
    if (status == STATUS_OK)
        status = query_bind_integer(q, ":flow_id", flow_id);
    if (status == STATUS_OK)
        status = query_next(q);
    if (status == STATUS_OK) {
        ret_wanted->client = endpoint_of(query_cell(q, 0), query_cell(q, 1), &whole);
        ret_wanted->server = endpoint_of(query_cell(q, 2), query_cell(q, 3), &whole);
        ret_wanted->first_ns = query_cell(q, 4).integer;
        ret_wanted->last_ns = query_cell(q, 5).integer;
    }
    query_close(q);
    if (status == STATUS_OK && !whole) {
        text_add(error, "the database keeps no addresses of this flow to find its packets by");
        return STATUS_REFUSED;
    }
    return status;
}

static bool is_between(const struct wanted *w, const struct endpoint *from,
                       const struct endpoint *to)
{
    return (endpoint_equal(from, &w->client) && endpoint_equal(to, &w->server)) ||
           (endpoint_equal(from, &w->server) && endpoint_equal(to, &w->client));
}

/* Ports stand in the first fragment alone: all TCP between the two addresses is taken. */
static bool is_fragment_between(const struct wanted *w, const struct frame *frame)
{
    enum { IP_PROTOCOL_TCP = 6 };
    struct fragment f;
    packet_fragment(frame, &f);
    const struct address *client = &w->client.address, *server = &w->server.address;
    return f.protocol == IP_PROTOCOL_TCP &&
           ((address_equal(&f.from, client) && address_equal(&f.to, server)) ||
            (address_equal(&f.from, server) && address_equal(&f.to, client)));
}

static bool is_wanted(const struct wanted *w, const struct frame *frame)
{
    struct segment segment;
    if (frame->at_ns < w->first_ns || frame->at_ns > w->last_ns)
        return false;
    enum drop drop = packet_decode(frame, &segment);
    if (drop == DROP_FRAGMENT)
        return is_fragment_between(w, frame);
    return drop == DROP_NONE && is_between(w, &segment.from, &segment.to);
}

/* ---- the file to write ---- */

struct output {
    FILE *file;
    int link_type; /* DLT_ value of the packets in it; -1 before the first */
    uint64_t packets, other_links;
};

/* Little-endian, as the format is that of the machine that writes. */
static void put_u32(FILE *f, uint32_t value)
{
    for (unsigned shift = 0; shift < 32; shift += 8)
        (void)putc((int)(value >> shift & 0xff), f);
}

/* LINKTYPE_ values in files are DLT_ values but for these, which differ between systems. */
static uint32_t link_type_in_file(int link_type)
{
    enum { DLT_ATM_RFC1483 = 11, DLT_RAW = 12, LINKTYPE_ATM_RFC1483 = 100, LINKTYPE_RAW = 101 };
    if (link_type == DLT_RAW)
        return LINKTYPE_RAW;
    return link_type == DLT_ATM_RFC1483 ? LINKTYPE_ATM_RFC1483 : (uint32_t)link_type;
}

static void put_header(struct output *o, int link_type)
{
    enum { SNAPLEN = 262144, VERSION_2_4 = 4 << 16 | 2 };
    static const uint32_t NANOSECONDS_MAGIC = 0xa1b23c4d;
    put_u32(o->file, NANOSECONDS_MAGIC);
    put_u32(o->file, VERSION_2_4);
    put_u32(o->file, 0);
    put_u32(o->file, 0);
    put_u32(o->file, SNAPLEN);
    put_u32(o->file, link_type_in_file(link_type));
    o->link_type = link_type;
}

static void put_frame(struct output *o, const struct frame *frame)
{
    if (o->link_type < 0)
        put_header(o, frame->link_type);
    if (frame->link_type != o->link_type) {
        o->other_links++;
        return;
    }
    put_u32(o->file, (uint32_t)(frame->at_ns / 1000000000));
    put_u32(o->file, (uint32_t)(frame->at_ns % 1000000000));
    put_u32(o->file, (uint32_t)frame->data.len);
    put_u32(o->file, frame->wire_len);
    (void)fwrite(frame->data.at, 1, frame->data.len, o->file);
    o->packets++;
}

/* Takes back what was written of a capture that turned out to be another one. */
static bool take_back(struct output *o, const struct output *before, long at)
{
    *o = *before;
    return fflush(o->file) == 0 && ftruncate(fileno(o->file), at) == 0 &&
           fseek(o->file, at, SEEK_SET) == 0;
}

/* ---- the captures ---- */

static void note(struct extract_result *r, struct bytes path, const char *what)
{
    text_add(&r->notes, r->notes.len > 0 ? "; " : "");
    text_add_bytes(&r->notes, path);
    text_addf(&r->notes, ": %s", what);
}

static bool is_same_content(const struct capture *c, struct bytes wanted_hex)
{
    char hex[2 * sizeof(struct hash128) + 1];
    struct hash128 content = capture_info(c).content;
    hex_text((struct bytes){ content.octet, sizeof content.octet }, hex);
    return bytes_equal(text_bytes(hex), wanted_hex);
}

/* Reads one capture to its end, since only then its content is known. */
static enum status read_capture(const char *path, struct bytes content_hex, const struct wanted *w,
                                struct output *o, struct extract_result *r)
{
    struct capture *c = NULL;
    struct output before = *o;
    long at = ftell(o->file);
    enum status status = capture_open(path, NULL, &c);
    struct frame frame;
    while (status == STATUS_OK && (status = capture_next(c, &frame)) == STATUS_OK) {
        if (is_wanted(w, &frame))
            put_frame(o, &frame);
    }
    bool ended = status == STATUS_END || status == STATUS_DAMAGED;
    if (status == STATUS_NO_MEMORY || at < 0) {
        capture_close(c);
        return at < 0 ? STATUS_IO : status;
    }
    enum status result = STATUS_OK;
    if (ended && is_same_content(c, content_hex)) {
        r->files_read++;
    } else {
        note(r, text_bytes(path),
             ended ? "is not the capture any more that was ingested" : capture_reason(c));
        result = take_back(o, &before, at) ? STATUS_OK : STATUS_IO;
    }
    capture_close(c);
    return result;
}

/* Whether a path that was given from another directory than this one leads from that of the
 * database, where most run ingest. */
static enum status path_of(struct database *d, struct bytes stored, struct text *ret_path)
{
    struct query *q = NULL;
    text_add_bytes(ret_path, stored);
    if (stored.len == 0 || stored.at[0] == '/' || access(text_string(ret_path), F_OK) == 0)
        return ret_path->failed ? STATUS_NO_MEMORY : STATUS_OK;
    enum status status =
        query_open(d, "SELECT file FROM pragma_database_list WHERE name = 'main'", &q);
    if (status == STATUS_OK)
        status = query_next(q);
    struct bytes file = status == STATUS_OK ? query_cell(q, 0).bytes : (struct bytes){ 0 };
    struct text beside = { 0 };
    while (file.len > 0 && file.at[file.len - 1] != '/')
        file.len--;
    text_add_bytes(&beside, file);
    text_add_bytes(&beside, stored);
    query_close(q);
    if (!beside.failed && access(text_string(&beside), F_OK) == 0) {
        text_clear(ret_path);
        text_add(ret_path, text_string(&beside));
    }
    text_done(&beside);
    return status != STATUS_OK || !ret_path->failed ? status : STATUS_NO_MEMORY;
}

/* Captures of the flow's point in which it may have packets, in order of time. */
static enum status open_captures(struct database *d, int64_t flow_id, const struct wanted *w,
                                 struct query **ret_query)
{
    enum status status = query_open(
        d,
        "SELECT c.path, c.content_hash FROM flow AS f JOIN capture AS mine USING (capture_id)"
        " JOIN capture AS c ON c.point = mine.point WHERE f.flow_id = :flow_id"
        " AND c.first_packet_epoch_ns <= :last AND c.last_packet_epoch_ns >= :first"
        " ORDER BY c.first_packet_epoch_ns, c.capture_id",
        ret_query);
    if (status == STATUS_OK)
        status = query_bind_integer(*ret_query, ":flow_id", flow_id);
    if (status == STATUS_OK)
        status = query_bind_integer(*ret_query, ":first", w->first_ns);
    if (status == STATUS_OK)
        status = query_bind_integer(*ret_query, ":last", w->last_ns);
    return status;
}

static enum status read_captures(struct database *d, int64_t flow_id, const struct wanted *w,
                                 struct output *o, struct extract_result *r)
{
    struct query *q = NULL;
    enum status status = open_captures(d, flow_id, w, &q);
    while (status == STATUS_OK && (status = query_next(q)) == STATUS_OK) {
        struct text path = { 0 };
        status = path_of(d, query_cell(q, 0).bytes, &path);
        if (status == STATUS_OK)
            status = read_capture(text_string(&path), query_cell(q, 1).bytes, w, o, r);
        text_done(&path);
    }
    query_close(q);
    return status == STATUS_END ? STATUS_OK : status;
}

static enum status finish(struct output *o, const char *path, enum status status,
                          struct text *error)
{
    bool written = fflush(o->file) == 0 && !ferror(o->file);
    written = fclose(o->file) == 0 && written;
    if (status == STATUS_OK && o->packets == 0) {
        text_add(error, "none of its packets were found");
        status = STATUS_REFUSED;
    } else if (status == STATUS_IO || (status == STATUS_OK && !written)) {
        text_addf(error, "%s: cannot be written", path);
        status = STATUS_IO;
    }
    if (status != STATUS_OK)
        (void)unlink(path);
    return status;
}

enum status extract_flow(struct database *database, int64_t flow_id, const char *path,
                         struct extract_result *ret_result, struct text *error)
{
    struct wanted wanted = { .first_ns = 0 };
    *ret_result = (struct extract_result){ .packets = 0 };
    enum status status = read_wanted(database, flow_id, &wanted, error);
    if (status != STATUS_OK)
        return status;
    struct output out = { .file = fopen(path, "wxe"), .link_type = -1 };
    if (!out.file) {
        text_addf(error, "%s: cannot be written: %s", path, strerror(errno));
        return STATUS_IO;
    }
    status = read_captures(database, flow_id, &wanted, &out, ret_result);
    if (out.other_links > 0)
        text_addf(&ret_result->notes, "%s%llu packets of another link type are left out",
                  ret_result->notes.len > 0 ? "; " : "", (unsigned long long)out.other_links);
    status = finish(&out, path, status, error);
    ret_result->packets = out.packets;
    return status;
}
