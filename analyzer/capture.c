/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation.
 *
 *   source.c: bytes of a file -> [ reader of one format ] -> struct frame -> filter -> caller
 *
 * What is common to all formats (numbers, filter, sums, damage, the rest of the file) is done here;
 * a reader of a format gives the next frame or the reason why there is none. For pcapng that is
 * pcapng.c, for snoop snoop.c, for classic pcap it is libpcap. libpcap reads from stdio, so it gets
 * a stream whose read function asks lookahead.c. Where that stops in front of bytes that are no
 * record, and finds a place behind them where records go on, libpcap is opened anew for the rest.
 */
#include "capture.h"

#include "lookahead.h"
#include "pcapng.h"
#include "snoop.h"
#include "source.h"

#include <assert.h>
#include <pcap.h>
#include <stdarg.h>
#include <stdlib.h>

/* Link types a filter is compiled for in one file. */
enum { FILTERS_MAX = 32 };

enum { PATH_SHOWN_MAX = 600, GAP_SIZE = 192, REASON_SIZE = 424, ERROR_SIZE = 1032 };

enum { NS_PER_SECOND = 1000000000 };

struct filter {
    int link_type;
    struct bpf_program program;
};

struct capture {
    struct source *source;
    struct pcapng *pcapng; /* this, snoop, or libpcap behind a lookahead reads the file */
    struct snoop *snoop;
    struct lookahead *lookahead;
    pcap_t *pcap;
    uint64_t number;          /* of the last frame read */
    uint64_t record_position; /* of the record that is read next, or could not be */
    struct filter filters[FILTERS_MAX];
    unsigned filter_count;
    char *filter_text; /* NULL = every frame */
    char *path;
    uint64_t gaps;      /* places where bytes that are no packets were left out */
    char gap[GAP_SIZE]; /* the first of them */
    enum status ended;  /* what capture_next() says from now on; STATUS_OK while it reads */
    struct capture_info info;
    bool has_time; /* info has the time of a frame */
    char reason[REASON_SIZE];
    char error[ERROR_SIZE]; /* the file's name and the reason */
};

/* ---- what went wrong ---- */

__attribute__((format(printf, 3, 4))) static enum status fail(struct capture *c, enum status status,
                                                              const char *format, ...)
{
    assert(status != STATUS_OK);
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(c->reason, sizeof c->reason, format, arguments);
    va_end(arguments);
    const char *name = strcmp(c->path, "-") == 0 ? "standard input" : c->path;
    (void)snprintf(c->error, sizeof c->error, "%.*s: %s", PATH_SHOWN_MAX, name, c->reason);
    return status;
}

/* A frame that cannot be read: the disk's fault, or the file's. */
static enum status fail_at_frame(struct capture *c, const char *reason)
{
    enum status reading = source_status(c->source);
    return fail(c, reading != STATUS_OK ? reading : STATUS_DAMAGED, "packet %llu at byte %llu: %s",
                (unsigned long long)c->number + 1, (unsigned long long)c->record_position,
                reading != STATUS_OK ? source_error(c->source) : reason);
}

#define GAP_FORMAT "packet %llu at byte %llu: %.80s; read on at byte %llu"

/* Bytes that are no packets were left out; the first place is told, others are counted. */
static void note_gap(struct capture *c, const char *why, uint64_t resumed_at)
{
    c->gaps++;
    if (c->gaps == 1)
        (void)snprintf(c->gap, sizeof c->gap, GAP_FORMAT, (unsigned long long)c->number + 1,
                       (unsigned long long)c->record_position, why, (unsigned long long)resumed_at);
}

/* What a file with gaps ends with: them, and what it ended with else. */
static enum status tell_gaps(struct capture *c, enum status status)
{
    char more[64] = "", last[REASON_SIZE] = "";
    if (c->gaps > 1)
        (void)snprintf(more, sizeof more, "; %llu more places like that",
                       (unsigned long long)c->gaps - 1);
    if (status == STATUS_END)
        return fail(c, STATUS_DAMAGED, "%s%s", c->gap, more);
    memcpy(last, c->reason, sizeof last);
    return fail(c, status, "%s%s; %s", c->gap, more, last);
}

/* ---- libpcap ---- */

static ssize_t stream_read(void *cookie, char *buffer, size_t size)
{
    struct capture *c = cookie;
    size_t n = lookahead_read(c->lookahead, (uint8_t *)buffer, size);
    return n == 0 && source_error(c->source) != NULL ? -1 : (ssize_t)n;
}

/* Tells the position, which is all that stdio needs for ftello(). */
static int stream_seek(void *cookie, off64_t *offset, int whence)
{
    const struct capture *c = cookie;
    if (whence != SEEK_CUR || *offset != 0)
        return -1;
    *offset = (off64_t)lookahead_position(c->lookahead);
    return 0;
}

static enum status open_libpcap(struct capture *c)
{
    static const cookie_io_functions_t FUNCTIONS = { .read = stream_read, .seek = stream_seek };
    FILE *stream = fopencookie(c, "rb", FUNCTIONS);
    if (stream == NULL)
        return fail(c, STATUS_NO_MEMORY, "out of memory");
    (void)setvbuf(stream, NULL, _IONBF, 0); /* what it does not ask for, lookahead.c keeps */

    char reason[PCAP_ERRBUF_SIZE];
    c->pcap = pcap_fopen_offline_with_tstamp_precision(stream, PCAP_TSTAMP_PRECISION_NANO, reason);
    if (c->pcap == NULL) {
        (void)fclose(stream);
        if (source_error(c->source) != NULL)
            return fail(c, STATUS_IO, "%s", source_error(c->source));
        return fail(c, STATUS_REFUSED, "%s", reason);
    }
    return STATUS_OK;
}

static enum status open_classic(struct capture *c)
{
    c->lookahead = lookahead_open(c->source);
    if (c->lookahead == NULL)
        return fail(c, STATUS_NO_MEMORY, "out of memory");
    enum status status = open_libpcap(c);
    if (status != STATUS_OK)
        return status;
    c->record_position = (uint64_t)ftello(pcap_file(c->pcap));
    c->info.link_type = pcap_datalink(c->pcap);
    c->info.snaplen = lookahead_snaplen(c->lookahead);
    return STATUS_OK;
}

/*
 * libpcap's time, with the seconds as what they are on disk: 32 bits, unsigned, good until 2106
 * (libpcap 1.10 takes them as signed). A fraction beyond the second is no time.
 */
static int64_t time_of(const struct timeval *ts)
{
    int64_t second = (int64_t)(uint32_t)ts->tv_sec;
    int64_t fraction = (int64_t)ts->tv_usec; /* nanoseconds, as we asked for */
    if (fraction < 0 || fraction >= NS_PER_SECOND)
        return FRAME_TIME_INVALID;
    return second * NS_PER_SECOND + fraction;
}

/* What a file system leaves at the end of a file that was being written when the power failed. */
static bool is_hole(const struct pcap_pkthdr *header)
{
    return header->caplen == 0 && header->len == 0 && header->ts.tv_sec == 0 &&
           header->ts.tv_usec == 0;
}

/*
 * The file is over, or bytes follow that are no packet. Then libpcap is opened anew behind them;
 * STATUS_OK when it was.
 */
static enum status resume_libpcap(struct capture *c)
{
    const char *stop = lookahead_stop(c->lookahead);
    if (stop == NULL)
        return source_error(c->source) != NULL ? fail_at_frame(c, "") : STATUS_END;
    c->record_position = lookahead_last_record(c->lookahead);
    if (!lookahead_resume(c->lookahead))
        return fail_at_frame(c, stop);
    pcap_close(c->pcap);
    c->pcap = NULL;
    note_gap(c, stop, lookahead_position(c->lookahead));
    return open_libpcap(c);
}

static enum status failed_by_libpcap(struct capture *c)
{
    if (lookahead_knows_records(c->lookahead))
        c->record_position = lookahead_last_record(c->lookahead);
    return fail_at_frame(c, pcap_geterr(c->pcap));
}

static enum status next_by_libpcap(struct capture *c, struct frame *ret_frame)
{
    struct pcap_pkthdr *header;
    const uint8_t *data;
    int result;
    while ((result = pcap_next_ex(c->pcap, &header, &data)) == PCAP_ERROR_BREAK) {
        enum status status = resume_libpcap(c);
        if (status != STATUS_OK)
            return status;
    }
    if (result != 1)
        return failed_by_libpcap(c);
    if (is_hole(header))
        return fail_at_frame(c, "zeros instead of a packet");
    if (!lookahead_knows_records(c->lookahead))
        c->record_position = (uint64_t)ftello(pcap_file(c->pcap));
    *ret_frame = (struct frame){
        .at_ns = time_of(&header->ts),
        .link_type = c->info.link_type,
        .wire_len = header->len > header->caplen ? header->len : header->caplen,
        .data = { data, header->caplen },
    };
    return STATUS_OK;
}

static enum status next_of_classic(struct capture *c, struct frame *ret_frame)
{
    if (!lookahead_take(c->lookahead, ret_frame))
        return next_by_libpcap(c, ret_frame);
    ret_frame->link_type = c->info.link_type;
    return STATUS_OK;
}

/* ---- pcapng ---- */

static enum status open_pcapng(struct capture *c)
{
    enum status status = pcapng_open(c->source, &c->pcapng);
    if (status == STATUS_NO_MEMORY)
        return status;
    if (status == STATUS_IO)
        return fail(c, status, "%s", source_error(c->source));
    if (status != STATUS_OK)
        return fail(c, status, "%s", pcapng_error(c->pcapng));
    c->info.link_type = pcapng_link_type(c->pcapng);
    return STATUS_OK;
}

static void note_gaps_of_pcapng(struct capture *c)
{
    const struct pcapng_gaps *gaps = pcapng_gaps(c->pcapng);
    if (gaps->count > 0 && c->gaps == 0)
        (void)snprintf(c->gap, sizeof c->gap, GAP_FORMAT, (unsigned long long)c->number + 1,
                       (unsigned long long)gaps->from, gaps->reason, (unsigned long long)gaps->to);
    c->gaps = gaps->count;
}

static enum status next_of_pcapng(struct capture *c, struct frame *ret_frame)
{
    enum status status = pcapng_next(c->pcapng, ret_frame);
    c->record_position = pcapng_position(c->pcapng);
    c->info.snaplen = pcapng_snaplen(c->pcapng);
    c->info.kernel_drops = pcapng_drops(c->pcapng);
    note_gaps_of_pcapng(c);
    if (status == STATUS_NO_MEMORY)
        return fail(c, status, "out of memory");
    if (status == STATUS_DAMAGED || status == STATUS_IO)
        return fail_at_frame(c, pcapng_error(c->pcapng));
    return status;
}

/* ---- snoop ---- */

static enum status open_snoop(struct capture *c)
{
    enum status status = snoop_open(c->source, &c->snoop);
    if (status == STATUS_OK)
        c->info.link_type = snoop_link_type(c->snoop);
    else if (status != STATUS_NO_MEMORY)
        return fail(c, status, "%s", snoop_error(c->snoop));
    return status;
}

static enum status next_of_snoop(struct capture *c, struct frame *ret_frame)
{
    enum status status = snoop_next(c->snoop, ret_frame);
    c->record_position = snoop_position(c->snoop);
    c->info.kernel_drops = snoop_drops(c->snoop);
    return status == STATUS_DAMAGED ? fail_at_frame(c, snoop_error(c->snoop)) : status;
}

/* ---- filter ---- */

static bool compile(const char *text, int link_type, struct bpf_program *ret_program,
                    char reason[PCAP_ERRBUF_SIZE])
{
    /* The length a filter program accepts must not be 0, whatever snaplen the file declares. */
    pcap_t *p = pcap_open_dead(link_type, 65535);
    if (p == NULL) {
        (void)snprintf(reason, PCAP_ERRBUF_SIZE, "out of memory");
        return false;
    }
    bool ok = pcap_compile(p, ret_program, text, 1, PCAP_NETMASK_UNKNOWN) == 0;
    if (!ok)
        (void)snprintf(reason, PCAP_ERRBUF_SIZE, "%s", pcap_geterr(p));
    pcap_close(p);
    return ok;
}

/* The filter for a link type, compiled when it is first needed; NULL when it cannot be. */
static struct filter *filter_for(struct capture *c, int link_type, char reason[PCAP_ERRBUF_SIZE])
{
    for (unsigned i = 0; i < c->filter_count; i++) {
        if (c->filters[i].link_type == link_type)
            return &c->filters[i];
    }
    if (c->filter_count == FILTERS_MAX) {
        (void)snprintf(reason, PCAP_ERRBUF_SIZE, "more than %d link types in one file",
                       FILTERS_MAX);
        return NULL;
    }
    struct filter *f = &c->filters[c->filter_count];
    if (!compile(c->filter_text, link_type, &f->program, reason))
        return NULL;
    f->link_type = link_type;
    c->filter_count++;
    return f;
}

/* A filter that compiles for Ethernet, but not for this link type, is the file's problem. */
static enum status check_filter(struct capture *c)
{
    char reason[PCAP_ERRBUF_SIZE];
    int link_type = c->info.link_type >= 0 ? c->info.link_type : DLT_EN10MB;
    if (c->filter_text == NULL || filter_for(c, link_type, reason) != NULL)
        return STATUS_OK;
    char ethernet_reason[PCAP_ERRBUF_SIZE];
    bool is_wrong = filter_for(c, DLT_EN10MB, ethernet_reason) == NULL;
    return fail(c, is_wrong ? STATUS_USAGE : STATUS_REFUSED,
                "filter \"%.100s\" for link type %s: %s", c->filter_text,
                capture_link_type_name(c->info.link_type), reason);
}

static enum status apply_filter(struct capture *c, const struct frame *frame, bool *ret_accepted)
{
    *ret_accepted = true;
    if (c->filter_text == NULL)
        return STATUS_OK;
    char reason[PCAP_ERRBUF_SIZE];
    const struct filter *f = filter_for(c, frame->link_type, reason);
    if (f == NULL)
        return fail(c, STATUS_DAMAGED, "packet %llu: filter for link type %s: %s",
                    (unsigned long long)c->number, capture_link_type_name(frame->link_type),
                    reason);
    struct pcap_pkthdr header = { .caplen = (bpf_u_int32)frame->data.len, .len = frame->wire_len };
    *ret_accepted = pcap_offline_filter(&f->program, &header, frame->data.at) != 0;
    return STATUS_OK;
}

/* ---- for callers ---- */

static enum status open_format(struct capture *c, const char *path)
{
    enum status status = source_open(path, &c->source);
    if (status == STATUS_NO_MEMORY)
        return fail(c, status, "out of memory");
    if (status != STATUS_OK)
        return fail(c, status, "%s", source_error(c->source));

    static const uint8_t PCAPNG[4] = { 0x0a, 0x0d, 0x0d, 0x0a }; /* type of its first block */
    struct bytes start = source_peek(c->source, SNOOP_MAGIC_LEN);
    struct bytes magic = bytes_first(start, sizeof PCAPNG);
    if (magic.len == 0 && source_status(c->source) != STATUS_OK)
        return fail(c, STATUS_IO, "%s", source_error(c->source));
    if (magic.len == 0)
        return fail(c, STATUS_REFUSED, "is empty");
    bool is_pcapng = bytes_equal(magic, (struct bytes){ PCAPNG, sizeof PCAPNG });
    bool is_snoop = snoop_is_magic(start);
    c->info.format = is_pcapng ? "pcapng" : is_snoop ? "snoop" : "pcap";
    status = is_pcapng ? open_pcapng(c) : is_snoop ? open_snoop(c) : open_classic(c);
    return status == STATUS_OK ? check_filter(c) : status;
}

enum status capture_open(const char *path, const char *filter, struct capture **ret_capture)
{
    struct capture *c = calloc(1, sizeof *c);
    if (c == NULL)
        return STATUS_NO_MEMORY;
    c->info.kernel_drops = -1;
    c->path = strdup(path);
    c->filter_text = filter != NULL ? strdup(filter) : NULL;
    if (c->path == NULL || (filter != NULL && c->filter_text == NULL)) {
        capture_close(c);
        return STATUS_NO_MEMORY;
    }
    enum status status = open_format(c, path);
    if (status == STATUS_NO_MEMORY) {
        capture_close(c);
        return status;
    }
    c->ended = status;
    *ret_capture = c;
    return status;
}

static void note_link_type(struct capture_info *info, int link_type)
{
    unsigned i = 0;
    while (i < info->link_type_count && info->link_types[i] != link_type)
        i++;
    if (i == info->link_type_count && i < CAPTURE_LINK_TYPES_MAX)
        info->link_types[info->link_type_count++] = link_type;
}

/* Sums of the frames that are given out. */
static void add_to_info(struct capture *c, const struct frame *frame)
{
    struct capture_info *info = &c->info;
    info->packets++;
    info->bytes += frame->data.len;
    note_link_type(info, frame->link_type);
    if (frame->at_ns == FRAME_TIME_INVALID)
        return;
    if (!c->has_time || frame->at_ns < info->first_at_ns)
        info->first_at_ns = frame->at_ns;
    if (!c->has_time || frame->at_ns > info->last_at_ns)
        info->last_at_ns = frame->at_ns;
    c->has_time = true;
}

/* Behind the last frame the rest of the file is read, so that the hash is that of all of it. */
static enum status end(struct capture *c, enum status status)
{
    if (c->gaps > 0 && status != STATUS_NO_MEMORY)
        status = tell_gaps(c, status);
    c->ended = status;
    if (status != STATUS_IO)
        source_read_rest(c->source);
    c->info.content = source_hash(c->source);
    c->info.content_len = source_position(c->source);
    return status;
}

enum status capture_next(struct capture *c, struct frame *ret_frame)
{
    if (c->ended != STATUS_OK)
        return c->ended;
    for (;;) {
        struct frame frame;
        enum status status = c->pcapng != NULL  ? next_of_pcapng(c, &frame)
                             : c->snoop != NULL ? next_of_snoop(c, &frame)
                                                : next_of_classic(c, &frame);
        if (status != STATUS_OK)
            return end(c, status);
        frame.number = ++c->number;
        bool accepted;
        status = apply_filter(c, &frame, &accepted);
        if (status != STATUS_OK)
            return end(c, status);
        if (!accepted)
            continue;
        add_to_info(c, &frame);
        *ret_frame = frame;
        return STATUS_OK;
    }
}

bool capture_has_late(const struct capture *c)
{
    if (c->snoop != NULL)
        return false; /* its writer has one queue */
    uint64_t late =
        c->pcapng != NULL ? pcapng_late_packet(c->pcapng) : lookahead_late_record(c->lookahead);
    return late > c->number;
}

struct capture_info capture_info(const struct capture *c)
{
    return c->info;
}

_Static_assert((int)CAPTURE_INTERFACES_MAX == (int)PCAPNG_NAMES_MAX, "all that are kept");

const char *capture_interface_name(const struct capture *c, uint32_t interface_id)
{
    return c->pcapng != NULL ? pcapng_interface_name(c->pcapng, interface_id) : NULL;
}

struct bytes capture_secrets(const struct capture *c)
{
    return c->pcapng != NULL ? pcapng_secrets(c->pcapng) : (struct bytes){ 0 };
}

const char *capture_error(const struct capture *c)
{
    return c->error;
}

const char *capture_reason(const struct capture *c)
{
    return c->reason;
}

void capture_close(struct capture *c)
{
    if (c == NULL)
        return;
    for (unsigned i = 0; i < c->filter_count; i++)
        pcap_freecode(&c->filters[i].program);
    if (c->pcap != NULL)
        pcap_close(c->pcap); /* closes its stream as well */
    lookahead_close(c->lookahead);
    pcapng_close(c->pcapng);
    snoop_close(c->snoop);
    source_close(c->source);
    free(c->filter_text);
    free(c->path);
    free(c);
}

const char *capture_link_type_name(int link_type)
{
    const char *name = pcap_datalink_val_to_name(link_type);
    return name != NULL ? name : "unknown";
}

const char *capture_library_version(void)
{
    return pcap_lib_version();
}
