/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes captures of TLS servers, as large as wanted and the same on every machine: for measuring
 * speed, and with --truth for checking what is read from them.
 *
 * A flow is planned as a whole when its first packet is due: when each of its packets passes the
 * capture point, right beside the servers, and which part of which message it carries. Live flows
 * wait in a heap ordered by the time of their next packet; bytes are made when it is written.
 * Memory grows with live flows, not with the capture.
 */
#include "messages.h"
#include "random.h"

#include <assert.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum side { CLIENT, SERVER };

enum { TCP_FIN = 1, TCP_SYN = 2, TCP_RST = 4, TCP_PSH = 8, TCP_ACK = 16 };

enum {
    WINDOW_FIRST = 10, /* segments without acknowledgement, RFC 6928 */
    WINDOW_MAX = 320,
    MESSAGES_MAX = 64,
    REQUESTS_MAX = 12,
    SEGMENT_V4 = 1448, /* 1500 less headers and timestamps */
    SEGMENT_V6 = 1428,
    FRAME_MAX = 1600,
    SERVERS = 64,
    RETRANSMIT_US = 200000,
    SYN_RETRANSMIT_US = 1000000,
    FOR_PLAN = 1000000, /* purposes of random numbers of the plan start here */
};

static const int64_t START_EPOCH_S = 1767225600; /* 2026-01-01 */

/* ---- options ---- */

struct options {
    const char *output, *truth;
    uint64_t flows, seed, max_bytes;
    double seconds; /* in which the flows start */
    double mix[FLOW_KINDS];
    double response_median, response_sigma, response_max; /* bytes */
    double more_percent;                                  /* that another request follows */
    double rtt_ms, hold_s;                                /* medians; hold: idle before the end */
    double loss_percent, ipv6_percent, vlan_percent, post_quantum_percent, syn_ack_percent;
    uint32_t snaplen, clients;
};

static const char *const KIND_NAMES[FLOW_KINDS] = {
    [FLOW_FULL_13] = "full13",
    [FLOW_RESUMED_13] = "resumed13",
    [FLOW_EARLY] = "early",
    [FLOW_EARLY_REFUSED] = "refused",
    [FLOW_RETRY] = "retry",
    [FLOW_FULL_12] = "full12",
    [FLOW_RESUMED_12] = "resumed12",
    [FLOW_HTTP] = "http",
    [FLOW_DNS] = "dns",
    [FLOW_QUIC] = "quic",
    [FLOW_SYN] = "syn",
};

/* What the flow is called in column handshake of firstflight; empty for what makes no row. */
static const char *const KIND_HANDSHAKES[FLOW_KINDS] = {
    [FLOW_FULL_13] = "full",
    [FLOW_RESUMED_13] = "resumed",
    [FLOW_EARLY] = "0-rtt",
    [FLOW_EARLY_REFUSED] = "resumed",
    [FLOW_RETRY] = "full",
    [FLOW_FULL_12] = "full",
    [FLOW_RESUMED_12] = "resumed",
    [FLOW_HTTP] = "none",
    [FLOW_DNS] = "",
    [FLOW_QUIC] = "",
    [FLOW_SYN] = "",
};

/* Sets of options for what servers at the edge see. */
struct preset {
    const char *name, *arguments;
};

static const struct preset PRESETS[] = {
    { "edge",
      "--flows 300000 --seconds 300 --response-median 1200 --response-sigma 1.5 --more 15" },
    { "handshakes",
      "--flows 1000000 --seconds 300 --response-median 350 --response-sigma 0.7 "
      "--more 0 --hold 0.5 --post-quantum 30 --mix "
      "full13=18,resumed13=50,early=11,refused=1,resumed12=14,full12=4,retry=1,syn=1" },
    { "flood", "--flows 5000000 --seconds 120 --mix syn=99.6,resumed13=0.2,full13=0.2" },
    { "bulk", "--flows 400 --seconds 20 --response-median 8e6 --response-sigma 0.6 "
              "--response-max 6e7 --more 0 --mix full13=30,resumed13=50,full12=20" },
    { "live", "--flows 1000000 --seconds 60 --response-median 350 --response-sigma 0.7 --more 0 "
              "--hold 400 --post-quantum 0 --snaplen 96 "
              "--mix resumed13=60,full13=10,resumed12=20,early=10" },
};

static const struct options DEFAULTS = {
    .flows = 1000,
    .seed = 1,
    .seconds = 60,
    .mix = { [FLOW_FULL_13] = 30,
             [FLOW_RESUMED_13] = 24,
             [FLOW_EARLY] = 4,
             [FLOW_EARLY_REFUSED] = 1,
             [FLOW_RETRY] = 1,
             [FLOW_FULL_12] = 8,
             [FLOW_RESUMED_12] = 6,
             [FLOW_HTTP] = 6,
             [FLOW_DNS] = 7,
             [FLOW_QUIC] = 5,
             [FLOW_SYN] = 8 },
    .response_median = 3000,
    .response_sigma = 1.6,
    .response_max = 2e6,
    .more_percent = 25,
    .rtt_ms = 28,
    .hold_s = 1.5,
    .loss_percent = 0.3,
    .ipv6_percent = 25,
    .post_quantum_percent = 45,
    .syn_ack_percent = 60,
    .snaplen = 262144,
};

static void usage(void)
{
    fputs(
        "usage: generate [OPTIONS] -o FILE      (- for standard output)\n"
        "  --preset NAME           edge, handshakes, flood, bulk, live; later options change it\n"
        "  --flows N  --seconds S  --seed N  --snaplen N  --max-bytes N  --clients N\n"
        "  --mix KIND=WEIGHT,...   full13 resumed13 early refused retry full12 resumed12 http dns\n"
        "                          quic syn\n"
        "  --response-median B  --response-sigma X  --response-max B  --more PERCENT\n"
        "  --rtt MS  --hold S  --loss PERCENT  --ipv6 PERCENT  --vlan PERCENT\n"
        "  --post-quantum PERCENT  --syn-ack PERCENT\n"
        "  --truth FILE            a CSV line for each TCP flow that is whole in the capture\n",
        stderr);
    exit(1);
}

static void *allocate(void *old, size_t count, size_t size)
{
    void *p = realloc(old, count * size);
    if (p == NULL) {
        fputs("generate: not enough memory\n", stderr);
        exit(2);
    }
    return p;
}

static double number_of(const char *text, double most)
{
    char *end;
    double number = strtod(text, &end);
    if (*text == '\0' || *end != '\0' || !(number >= 0) || number > most)
        usage();
    return number;
}

static void parse_mix(struct options *o, char *text)
{
    memset(o->mix, 0, sizeof o->mix);
    for (char *item = strtok(text, ","); item != NULL; item = strtok(NULL, ",")) {
        char *equals = strchr(item, '=');
        if (equals == NULL)
            usage();
        *equals = '\0';
        int kind = 0;
        while (kind < FLOW_KINDS && strcmp(KIND_NAMES[kind], item) != 0)
            kind++;
        if (kind == FLOW_KINDS)
            usage();
        o->mix[kind] = number_of(equals + 1, 1e9);
    }
}

static void parse_arguments(struct options *o, int count, char **arguments);

static void apply_preset(struct options *o, const char *name)
{
    size_t i = 0;
    while (i < sizeof PRESETS / sizeof *PRESETS && strcmp(PRESETS[i].name, name) != 0)
        i++;
    if (i == sizeof PRESETS / sizeof *PRESETS)
        usage();
    char *copy = strdup(PRESETS[i].arguments);
    char *arguments[40] = { copy }; /* getopt_long() starts behind the first */
    int count = 1;
    char *rest;
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        arguments[count++] = word;
    int outer = optind;
    optind = 0;
    parse_arguments(o, count, arguments);
    optind = outer;
    free(copy);
}

static void parse_arguments(struct options *o, int count, char **arguments)
{
    enum {
        MIX = 256,
        PRESET,
        FLOWS,
        SEED,
        SECONDS,
        SNAPLEN,
        MAX_BYTES,
        CLIENTS,
        MEDIAN,
        SIGMA,
        MOST,
        MORE,
        RTT,
        HOLD,
        LOSS,
        IPV6,
        VLAN,
        POST_QUANTUM,
        SYN_ACK,
        TRUTH
    };
    static const struct option OPTIONS[] = {
        { "preset", 1, NULL, PRESET },
        { "flows", 1, NULL, FLOWS },
        { "seed", 1, NULL, SEED },
        { "seconds", 1, NULL, SECONDS },
        { "snaplen", 1, NULL, SNAPLEN },
        { "max-bytes", 1, NULL, MAX_BYTES },
        { "clients", 1, NULL, CLIENTS },
        { "mix", 1, NULL, MIX },
        { "response-median", 1, NULL, MEDIAN },
        { "response-sigma", 1, NULL, SIGMA },
        { "response-max", 1, NULL, MOST },
        { "more", 1, NULL, MORE },
        { "rtt", 1, NULL, RTT },
        { "hold", 1, NULL, HOLD },
        { "loss", 1, NULL, LOSS },
        { "ipv6", 1, NULL, IPV6 },
        { "vlan", 1, NULL, VLAN },
        { "post-quantum", 1, NULL, POST_QUANTUM },
        { "syn-ack", 1, NULL, SYN_ACK },
        { "truth", 1, NULL, TRUTH },
        { NULL, 0, NULL, 0 },
    };
    int option;
    while ((option = getopt_long(count, arguments, "o:", OPTIONS, NULL)) != -1) {
        switch (option) {
        case 'o':
            o->output = optarg;
            break;
        case TRUTH:
            o->truth = optarg;
            break;
        case MIX:
            parse_mix(o, optarg);
            break;
        case PRESET:
            apply_preset(o, optarg);
            break;
        case FLOWS:
            o->flows = (uint64_t)number_of(optarg, 4e9);
            break;
        case SEED:
            o->seed = (uint64_t)number_of(optarg, 9e15);
            break;
        case SECONDS:
            o->seconds = number_of(optarg, 1e6);
            break;
        case SNAPLEN:
            o->snaplen = (uint32_t)number_of(optarg, 262144);
            break;
        case MAX_BYTES:
            o->max_bytes = (uint64_t)number_of(optarg, 9e15);
            break;
        case CLIENTS:
            o->clients = (uint32_t)number_of(optarg, 4e6);
            break;
        case MEDIAN:
            o->response_median = number_of(optarg, 1e9);
            break;
        case SIGMA:
            o->response_sigma = number_of(optarg, 5);
            break;
        case MOST:
            o->response_max = number_of(optarg, 1e9);
            break;
        case MORE:
            o->more_percent = number_of(optarg, 100);
            break;
        case RTT:
            o->rtt_ms = number_of(optarg, 1e4);
            break;
        case HOLD:
            o->hold_s = number_of(optarg, 1e5);
            break;
        case LOSS:
            o->loss_percent = number_of(optarg, 100);
            break;
        case IPV6:
            o->ipv6_percent = number_of(optarg, 100);
            break;
        case VLAN:
            o->vlan_percent = number_of(optarg, 100);
            break;
        case POST_QUANTUM:
            o->post_quantum_percent = number_of(optarg, 100);
            break;
        case SYN_ACK:
            o->syn_ack_percent = number_of(optarg, 100);
            break;
        default:
            usage();
        }
    }
    if (optind != count)
        usage();
}

/* ---- one flow: its plan ---- */

struct packet {
    int64_t at_us;
    uint32_t seq, ack;
    uint32_t offset; /* in the message */
    uint16_t len;
    uint8_t message;
    uint8_t side;
    uint8_t flags; /* 0 over UDP */
};

struct flow {
    const struct options *options;
    struct voice voice;
    uint64_t id;
    bool ipv6, vlan;
    uint8_t client[16], server[16]; /* the first 4 of IPv4 */
    uint16_t port[2];
    int64_t rtt_us;

    struct message messages[MESSAGES_MAX];
    unsigned message_count;
    struct packet *packets;
    unsigned packet_count, packet_room, packets_written;

    /* while it is planned */
    int64_t now_us;
    uint32_t next[2]; /* sequence number that side sends next */
    uint32_t have[2]; /* what that side has of the other, in order */
    unsigned window[2];
    uint64_t dice;

    /* for --truth; -1 = none */
    int64_t start_us, request_us, response_us;
};

static uint64_t dice(struct flow *f)
{
    return FOR_PLAN + f->dice++;
}

static int64_t between(struct flow *f, uint32_t low, uint32_t high)
{
    return random_between(f->voice.seed, dice(f), low, high);
}

static bool happens(struct flow *f, double percent)
{
    return random_happens(f->voice.seed, dice(f), percent);
}

static double lognormal(struct flow *f, double median, double sigma, double most)
{
    double value = random_lognormal(f->voice.seed, dice(f), median, sigma);
    return value < most ? value : most;
}

static void wait_us(struct flow *f, double us)
{
    f->now_us += (int64_t)us;
}

static void add_packet(struct flow *f, struct packet p)
{
    if (f->packet_count == f->packet_room) {
        f->packet_room = f->packet_room ? 2 * f->packet_room : 24;
        f->packets = allocate(f->packets, f->packet_room, sizeof *f->packets);
    }
    f->packets[f->packet_count++] = p;
}

/* A packet without payload, now. SYN and FIN take a sequence number. */
static void control(struct flow *f, enum side side, unsigned flags)
{
    add_packet(f, (struct packet){ .at_us = f->now_us,
                                   .seq = f->next[side],
                                   .ack = f->have[side],
                                   .side = (uint8_t)side,
                                   .flags = (uint8_t)flags });
    if (flags & (TCP_SYN | TCP_FIN)) {
        f->next[side]++;
        f->have[!side] = f->next[side];
    }
}

static unsigned add_message(struct flow *f, enum message_kind kind, uint32_t number, uint32_t size)
{
    assert(f->message_count < MESSAGES_MAX);
    struct message *m = &f->messages[f->message_count];
    *m = (struct message){ .kind = kind, .number = number, .size = size };
    message_measure(&f->voice, m);
    return f->message_count++;
}

/* A message on its way. */
struct sending {
    unsigned message;
    enum side side;
    uint32_t offset; /* of what was not yet sent */
};

/* Segments sent without waiting for an acknowledgement. */
struct burst {
    enum side side;
    unsigned message, count;
    struct {
        int64_t at_us;
        uint32_t seq, offset;
        uint16_t len;
    } segment[WINDOW_MAX];
};

static void send_segment(struct flow *f, const struct burst *b, unsigned i, int64_t at_us)
{
    bool last = b->segment[i].offset + b->segment[i].len == f->messages[b->message].len;
    add_packet(f, (struct packet){ .at_us = at_us,
                                   .seq = b->segment[i].seq,
                                   .ack = f->have[b->side],
                                   .offset = b->segment[i].offset,
                                   .len = b->segment[i].len,
                                   .message = (uint8_t)b->message,
                                   .side = (uint8_t)b->side,
                                   .flags = TCP_ACK | (last ? TCP_PSH : 0) });
}

/* Takes as many segments off the message as the window allows. */
static void cut_burst(struct flow *f, struct sending *s, struct burst *b)
{
    uint32_t len = f->messages[s->message].len;
    uint32_t most = f->ipv6 ? SEGMENT_V6 : SEGMENT_V4;
    b->side = s->side;
    b->message = s->message;
    b->count = 0;
    while (s->offset < len && b->count < f->window[s->side]) {
        uint16_t part = (uint16_t)(len - s->offset < most ? len - s->offset : most);
        b->segment[b->count].at_us = f->now_us;
        b->segment[b->count].seq = f->next[s->side];
        b->segment[b->count].offset = s->offset;
        b->segment[b->count].len = part;
        b->count++;
        s->offset += part;
        f->next[s->side] += part;
        f->now_us += between(f, 2, 9);
    }
    f->window[s->side] = f->window[s->side] < WINDOW_MAX / 2 ? 2 * f->window[s->side] : WINDOW_MAX;
}

/* From when a segment passes the capture point until its acknowledgement does. */
static int64_t reply_us(struct flow *f, enum side sender)
{
    return sender == SERVER ? f->rtt_us : between(f, 20, 60);
}

static void acknowledge_up_to(struct flow *f, enum side side, uint32_t seq, int64_t at_us)
{
    f->have[side] = seq;
    if (f->now_us < at_us)
        f->now_us = at_us;
    control(f, side, TCP_ACK);
    f->now_us += between(f, 1, 6);
}

/* Every second segment is acknowledged, and the last, unless data is just about to do that. */
static void acknowledge(struct flow *f, const struct burst *b)
{
    int64_t reply = reply_us(f, b->side);
    for (unsigned i = 0; i < b->count; i++) {
        int64_t at_us = b->segment[i].at_us + reply;
        uint32_t end = b->segment[i].seq + b->segment[i].len;
        bool with_data = b->count == 1 && happens(f, 25);
        if (!with_data && (i % 2 == 1 || i + 1 == b->count))
            acknowledge_up_to(f, !b->side, end, at_us);
        f->have[!b->side] = end;
        if (f->now_us < at_us)
            f->now_us = at_us;
    }
}

/* What becomes of one segment of a burst. */
enum fate {
    FATE_ARRIVES,
    FATE_LOST_BEHIND, /* the capture point saw it, the receiver did not */
    FATE_LOST_BEFORE, /* neither */
    FATE_LATE,        /* its neighbour overtook it */
};

static enum fate draw_fate(struct flow *f, const struct burst *b, unsigned *ret_index)
{
    for (unsigned i = 0; i < b->count; i++) {
        if (f->options->loss_percent == 0 || !happens(f, f->options->loss_percent))
            continue;
        *ret_index = i;
        enum fate fate = (enum fate)between(f, FATE_LOST_BEHIND, FATE_LATE);
        return fate == FATE_LATE && i + 1 == b->count ? FATE_LOST_BEHIND : fate;
    }
    return FATE_ARRIVES;
}

static void transmit(struct flow *f, const struct burst *b, enum fate fate, unsigned index)
{
    for (unsigned i = 0; i < b->count; i++) {
        unsigned sent = i;
        if (fate == FATE_LATE && (i == index || i == index + 1))
            sent = i == index ? index + 1 : index;
        if (fate != FATE_LOST_BEFORE || i != index)
            send_segment(f, b, sent, b->segment[i].at_us);
    }
}

/* The receiver asks for the missing segment with each that follows; then it comes again. */
static void recover(struct flow *f, const struct burst *b, unsigned index)
{
    enum side receiver = !b->side;
    uint32_t missing = b->segment[index].seq;
    int64_t reply = reply_us(f, b->side);
    for (unsigned i = index + 1; i < b->count; i++)
        acknowledge_up_to(f, receiver, missing, b->segment[i].at_us + reply);
    bool fast = b->count - index > 3; /* three duplicate acknowledgements, RFC 5681 3.2 */
    wait_us(f, fast ? 50 : RETRANSMIT_US);
    send_segment(f, b, index, f->now_us);
    const unsigned last = b->count - 1;
    acknowledge_up_to(f, receiver, b->segment[last].seq + b->segment[last].len, f->now_us + reply);
}

/* Sends what the window allows and waits for its acknowledgements. */
static void exchange(struct flow *f, struct sending *s)
{
    struct burst b;
    cut_burst(f, s, &b);
    unsigned index = 0;
    enum fate fate = draw_fate(f, &b, &index);
    transmit(f, &b, fate, index);
    if (fate == FATE_LOST_BEHIND || fate == FATE_LOST_BEFORE) {
        f->have[!b.side] = b.segment[index].seq;
        recover(f, &b, index);
    } else {
        acknowledge(f, &b);
    }
}

static void finish_sending(struct flow *f, struct sending *s)
{
    while (s->offset < f->messages[s->message].len)
        exchange(f, s);
}

static void say(struct flow *f, enum side side, enum message_kind kind, uint32_t number,
                uint32_t size)
{
    struct sending s = { add_message(f, kind, number, size), side, 0 };
    finish_sending(f, &s);
}

/* ---- conversations ---- */

static uint32_t request_size(struct flow *f)
{
    return 90 + (uint32_t)lognormal(f, 160, 0.8, 6000);
}

static uint32_t response_size(struct flow *f)
{
    const struct options *o = f->options;
    return 40 + (uint32_t)lognormal(f, o->response_median, o->response_sigma, o->response_max);
}

static double server_delay_us(struct flow *f)
{
    return 60 + lognormal(f, 500, 0.6, 1e5);
}

static double application_delay_us(struct flow *f)
{
    return 60 + lognormal(f, 12000, 1.1, 5e6);
}

static void mark_request(struct flow *f)
{
    if (f->request_us < 0)
        f->request_us = f->now_us;
}

static void mark_response(struct flow *f)
{
    if (f->response_us < 0)
        f->response_us = f->now_us;
}

static void connect_tcp(struct flow *f)
{
    control(f, CLIENT, TCP_SYN);
    if (f->options->loss_percent > 0 && happens(f, f->options->loss_percent)) {
        wait_us(f, SYN_RETRANSMIT_US);
        f->next[CLIENT]--;
        control(f, CLIENT, TCP_SYN);
    }
    if (f->voice.kind == FLOW_SYN && !happens(f, f->options->syn_ack_percent))
        return;
    wait_us(f, (double)between(f, 30, 150));
    control(f, SERVER, TCP_SYN | TCP_ACK);
    if (f->voice.kind == FLOW_SYN)
        return;
    wait_us(f, (double)f->rtt_us);
    control(f, CLIENT, TCP_ACK);
    wait_us(f, (double)between(f, 30, 280));
}

static void close_tcp(struct flow *f)
{
    if (happens(f, 10)) {
        control(f, CLIENT, TCP_RST);
        return;
    }
    control(f, CLIENT, TCP_FIN | TCP_ACK);
    wait_us(f, 80);
    control(f, SERVER, TCP_FIN | TCP_ACK);
    wait_us(f, (double)f->rtt_us);
    control(f, CLIENT, TCP_ACK);
}

static void ask(struct flow *f, uint32_t number)
{
    bool tls = f->voice.kind != FLOW_HTTP;
    mark_request(f);
    say(f, CLIENT, tls ? MESSAGE_REQUEST : MESSAGE_HTTP_REQUEST, number, request_size(f));
}

static void answer(struct flow *f, uint32_t number)
{
    bool tls = f->voice.kind != FLOW_HTTP;
    wait_us(f, application_delay_us(f));
    mark_response(f);
    say(f, SERVER, tls ? MESSAGE_RESPONSE : MESSAGE_HTTP_RESPONSE, number, response_size(f));
}

static void ask_more(struct flow *f)
{
    for (uint32_t number = 1; number < REQUESTS_MAX && happens(f, f->options->more_percent);
         number++) {
        wait_us(f, lognormal(f, 150000, 1.3, 2e7));
        ask(f, number);
        answer(f, number);
    }
}

static void say_goodbye(struct flow *f)
{
    wait_us(f, lognormal(f, f->options->hold_s * 1e6, 0.8, 1e9));
    if (f->voice.kind != FLOW_HTTP)
        say(f, CLIENT, MESSAGE_CLOSE, 0, 0);
    close_tcp(f);
}

static void talk_tls13(struct flow *f)
{
    say(f, CLIENT, MESSAGE_CLIENT_HELLO, 0, 0);
    if (f->voice.kind == FLOW_RETRY) {
        wait_us(f, server_delay_us(f));
        say(f, SERVER, MESSAGE_HELLO_RETRY, 0, 0);
        wait_us(f, (double)between(f, 100, 400));
        say(f, CLIENT, MESSAGE_CLIENT_HELLO_AGAIN, 0, 0);
    }
    wait_us(f, server_delay_us(f));
    bool full = f->voice.kind != FLOW_RESUMED_13;
    say(f, SERVER, full ? MESSAGE_FLIGHT_13 : MESSAGE_FLIGHT_13_RESUMED, 0, 0);
    wait_us(f, (double)between(f, 100, 900));
    say(f, CLIENT, MESSAGE_FINISHED_13, 0, 0);
    wait_us(f, (double)between(f, 20, 80));
    ask(f, 0);
    say(f, SERVER, MESSAGE_TICKETS_13, 0, 0);
    answer(f, 0);
}

/* ClientHello and a request behind it, in one flight; gives the time of the request. */
static int64_t say_early(struct flow *f)
{
    say(f, CLIENT, MESSAGE_CLIENT_HELLO, 0, 0);
    wait_us(f, (double)between(f, 10, 60));
    int64_t request_us = f->now_us;
    say(f, CLIENT, MESSAGE_EARLY_DATA, 0, request_size(f));
    wait_us(f, server_delay_us(f));
    return request_us;
}

/* The early request was in vain: the one that is answered comes after Finished. */
static void talk_early_refused(struct flow *f)
{
    (void)say_early(f);
    say(f, SERVER, MESSAGE_FLIGHT_13_RESUMED, 0, 0);
    wait_us(f, (double)between(f, 100, 900));
    say(f, CLIENT, MESSAGE_FINISHED_13, 0, 0);
    wait_us(f, (double)between(f, 20, 80));
    ask(f, 0);
    say(f, SERVER, MESSAGE_TICKETS_13, 0, 0);
    answer(f, 0);
}

/*
 * The server answers the early request as soon as the application has it: before the client's
 * EndOfEarlyData, which comes a round trip later, or after it.
 */
static void talk_early(struct flow *f)
{
    f->request_us = say_early(f);
    struct sending flight = { add_message(f, MESSAGE_FLIGHT_13_RESUMED, 0, 0), SERVER, 0 };
    struct burst flight_burst;
    cut_burst(f, &flight, &flight_burst);
    transmit(f, &flight_burst, FATE_ARRIVES, 0);
    int64_t ready_us = f->now_us + (int64_t)application_delay_us(f);
    struct sending response = { add_message(f, MESSAGE_RESPONSE, 0, response_size(f)), SERVER, 0 };
    struct burst response_burst = { .count = 0 };
    bool early = ready_us < flight_burst.segment[0].at_us + f->rtt_us;
    if (early) {
        f->now_us = ready_us;
        mark_response(f);
        cut_burst(f, &response, &response_burst);
        transmit(f, &response_burst, FATE_ARRIVES, 0);
    }
    acknowledge(f, &flight_burst);
    wait_us(f, (double)between(f, 50, 300));
    say(f, CLIENT, MESSAGE_END_OF_EARLY_DATA, 0, 0);
    if (early) {
        acknowledge(f, &response_burst);
        finish_sending(f, &response);
        say(f, SERVER, MESSAGE_TICKETS_13, 0, 0);
        return;
    }
    say(f, SERVER, MESSAGE_TICKETS_13, 0, 0);
    if (f->now_us < ready_us)
        f->now_us = ready_us;
    mark_response(f);
    finish_sending(f, &response);
}

static void talk_tls12(struct flow *f)
{
    bool full = f->voice.kind == FLOW_FULL_12;
    say(f, CLIENT, MESSAGE_CLIENT_HELLO, 0, 0);
    wait_us(f, server_delay_us(f));
    say(f, SERVER, full ? MESSAGE_FLIGHT_12 : MESSAGE_FLIGHT_12_RESUMED, 0, 0);
    wait_us(f, (double)between(f, 100, 900));
    if (full) {
        say(f, CLIENT, MESSAGE_KEY_EXCHANGE_12, 0, 0);
        wait_us(f, server_delay_us(f));
        say(f, SERVER, MESSAGE_FINISHED_12, 0, 0);
        wait_us(f, (double)between(f, 50, 300));
    } else {
        say(f, CLIENT, MESSAGE_FINISHED_12_RESUMED, 0, 0);
        wait_us(f, (double)between(f, 20, 80));
    }
    ask(f, 0);
    answer(f, 0);
}

static void datagram(struct flow *f, enum side side, enum message_kind kind, uint32_t number,
                     uint32_t size)
{
    unsigned message = add_message(f, kind, number, size);
    add_packet(f, (struct packet){ .at_us = f->now_us,
                                   .len = (uint16_t)f->messages[message].len,
                                   .message = (uint8_t)message,
                                   .side = (uint8_t)side });
}

static void talk_dns(struct flow *f)
{
    datagram(f, CLIENT, MESSAGE_DNS_QUERY, 0, 0);
    wait_us(f, 20 + lognormal(f, 800, 0.9, 2e6));
    datagram(f, SERVER, MESSAGE_DNS_ANSWER, 0, 0);
}

static void talk_quic(struct flow *f)
{
    datagram(f, CLIENT, MESSAGE_QUIC_INITIAL, 0, 0);
    wait_us(f, server_delay_us(f));
    datagram(f, SERVER, MESSAGE_QUIC_INITIAL, 1, 0);
    wait_us(f, 12);
    datagram(f, SERVER, MESSAGE_QUIC_HANDSHAKE, 1, 1100);
    wait_us(f, (double)f->rtt_us);
    datagram(f, CLIENT, MESSAGE_QUIC_HANDSHAKE, 2, 60);
    wait_us(f, 40);
    datagram(f, CLIENT, MESSAGE_QUIC_PROTECTED, 3, request_size(f) % 1000 + 30);
    wait_us(f, application_delay_us(f));
    unsigned datagrams = (unsigned)between(f, 1, 20);
    for (unsigned i = 0; i < datagrams; i++) {
        datagram(f, SERVER, MESSAGE_QUIC_PROTECTED, 4 + i, 1200);
        wait_us(f, 9);
    }
}

static void talk(struct flow *f)
{
    switch (f->voice.kind) {
    case FLOW_DNS:
        talk_dns(f);
        return;
    case FLOW_QUIC:
        talk_quic(f);
        return;
    case FLOW_SYN:
        connect_tcp(f);
        return;
    case FLOW_FULL_13:
    case FLOW_RESUMED_13:
    case FLOW_RETRY:
        connect_tcp(f);
        talk_tls13(f);
        break;
    case FLOW_EARLY:
        connect_tcp(f);
        talk_early(f);
        break;
    case FLOW_EARLY_REFUSED:
        connect_tcp(f);
        talk_early_refused(f);
        break;
    case FLOW_FULL_12:
    case FLOW_RESUMED_12:
        connect_tcp(f);
        talk_tls12(f);
        break;
    case FLOW_HTTP:
    case FLOW_KINDS:
        connect_tcp(f);
        ask(f, 0);
        answer(f, 0);
        break;
    }
    ask_more(f);
    say_goodbye(f);
}

/* ---- who talks to whom ---- */

static void put_be(uint8_t *to, uint64_t value, unsigned width)
{
    for (unsigned i = 0; i < width; i++)
        to[i] = (uint8_t)(value >> 8 * (width - 1 - i));
}

static enum flow_kind draw_kind(struct flow *f)
{
    double sum = 0;
    for (int kind = 0; kind < FLOW_KINDS; kind++)
        sum += f->options->mix[kind];
    double at = random_share(f->voice.seed, dice(f)) * sum;
    int kind = 0;
    while (kind < FLOW_KINDS - 1 && at >= f->options->mix[kind])
        at -= f->options->mix[kind++];
    return (enum flow_kind)kind;
}

/* Clients come back from a new port each time; the sources of a flood are all different. */
static void draw_ends(struct flow *f)
{
    uint32_t client = (uint32_t)(f->id % f->options->clients);
    uint32_t server = (uint32_t)between(f, 0, SERVERS - 1);
    if (f->ipv6) {
        put_be(f->client, 0x20010db8, 4);
        put_be(f->client + 4, client >> 8, 4);
        put_be(f->client + 8, random_mix(client), 4);
        put_be(f->client + 12, client, 4);
        put_be(f->server, 0x20010db8ed9e0000, 8);
        put_be(f->server + 12, server + 1, 4);
    } else {
        bool forged = f->voice.kind == FLOW_SYN;
        uint64_t any = 0x01000000 + random_number(f->voice.seed, dice(f)) % 0xdc000000;
        put_be(f->client, forged ? any : 0x64400000u + client, 4);
        put_be(f->server, 0xc6336400u + server, 4);
    }
    uint64_t first_port = random_mix(client) % 28000;
    f->port[CLIENT] = (uint16_t)(32768 + (first_port + f->id / f->options->clients) % 28000);
    f->port[SERVER] = f->voice.kind == FLOW_HTTP ? 80 : f->voice.kind == FLOW_DNS ? 53 : 443;
}

static struct flow *plan_flow(const struct options *o, uint64_t id, int64_t start_us)
{
    struct flow *f = allocate(NULL, 1, sizeof *f);
    *f = (struct flow){ .options = o,
                        .id = id,
                        .now_us = start_us,
                        .start_us = start_us,
                        .request_us = -1,
                        .response_us = -1,
                        .window = { WINDOW_FIRST, WINDOW_FIRST } };
    f->voice.seed = random_number(o->seed, id);
    f->voice.kind = draw_kind(f);
    f->voice.post_quantum = happens(f, o->post_quantum_percent);
    f->voice.aes_256 = happens(f, 30);
    f->vlan = happens(f, o->vlan_percent);
    f->ipv6 = f->voice.kind != FLOW_SYN && happens(f, o->ipv6_percent);
    f->rtt_us = 500 + (int64_t)lognormal(f, o->rtt_ms * 1000, 0.8, 900000);
    for (int side = CLIENT; side <= SERVER; side++)
        f->next[side] = (uint32_t)random_number(f->voice.seed, dice(f));
    draw_ends(f);
    talk(f);
    return f;
}

static void free_flow(struct flow *f)
{
    free(f->packets);
    free(f);
}

/* ---- frames ---- */

/* The Internet checksum (RFC 1071) over parts, of which all but the last have an even length. */
static uint32_t sum_words(uint32_t sum, const uint8_t *at, size_t len)
{
    for (size_t i = 0; i + 1 < len; i += 2)
        sum += (uint32_t)at[i] << 8 | at[i + 1];
    return len % 2 ? sum + ((uint32_t)at[len - 1] << 8) : sum;
}

static uint16_t fold(uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static size_t put_ethernet(const struct flow *f, enum side side, uint8_t *to)
{
    put_be(to, side == CLIENT ? 0x02005e100001 : 0x02005e100002, 6);
    put_be(to + 6, side == CLIENT ? 0x02005e100002 : 0x02005e100001, 6);
    size_t len = 12;
    if (f->vlan) {
        put_be(to + len, 0x81000000u | (100 + f->id % 4), 4);
        len += 4;
    }
    put_be(to + len, f->ipv6 ? 0x86dd : 0x0800, 2);
    return len + 2;
}

/* Writes the IP header; gives its length and the sum of the pseudo header (RFC 9293 3.1). */
static size_t put_ip(const struct flow *f, enum side side, unsigned protocol, size_t payload_len,
                     uint16_t id, uint8_t *to, uint32_t *ret_sum)
{
    const uint8_t *from = side == CLIENT ? f->client : f->server;
    const uint8_t *target = side == CLIENT ? f->server : f->client;
    unsigned hops = side == CLIENT ? 52 : 64;
    size_t size = f->ipv6 ? 16 : 4;
    *ret_sum = sum_words(sum_words(0, from, size), target, size) + protocol + (uint32_t)payload_len;
    if (f->ipv6) {
        put_be(to, 0x60000000, 4);
        put_be(to + 4, payload_len, 2);
        put_be(to + 6, protocol << 8 | hops, 2);
        memcpy(to + 8, from, size);
        memcpy(to + 24, target, size);
        return 40;
    }
    put_be(to, 0x4500, 2);
    put_be(to + 2, 20 + payload_len, 2);
    put_be(to + 4, id, 2);
    put_be(to + 6, 0x4000, 2); /* do not fragment */
    put_be(to + 8, hops << 8 | protocol, 2);
    put_be(to + 10, 0, 2);
    memcpy(to + 12, from, size);
    memcpy(to + 16, target, size);
    put_be(to + 10, fold(sum_words(0, to, 20)), 2);
    return 20;
}

static uint32_t timestamp_of(const struct flow *f, enum side side, int64_t at_us)
{
    return (uint32_t)(at_us / 1000) + (uint32_t)(f->voice.seed >> (side == CLIENT ? 7 : 29));
}

/* The TCP header with the options of Linux (RFC 7323). */
static size_t put_tcp(const struct flow *f, const struct packet *p, uint8_t *to)
{
    bool syn = p->flags & TCP_SYN;
    size_t len = syn ? 40 : p->flags & TCP_RST ? 20 : 32;
    put_be(to, f->port[p->side], 2);
    put_be(to + 2, f->port[!p->side], 2);
    put_be(to + 4, p->seq, 4);
    put_be(to + 8, p->flags & TCP_ACK ? p->ack : 0, 4);
    put_be(to + 12, len / 4 << 12 | p->flags, 2);
    put_be(to + 14, syn ? 64240 : 502, 2);
    put_be(to + 16, 0, 4);
    uint32_t value = timestamp_of(f, p->side, p->at_us);
    uint32_t echo = p->flags & TCP_ACK ? timestamp_of(f, !p->side, p->at_us) : 0;
    if (syn) {
        put_be(to + 20, 0x02040000u | (f->ipv6 ? 1440 : 1460), 4);
        put_be(to + 24, 0x0402080a, 4); /* selective acknowledgement, timestamps */
        put_be(to + 28, value, 4);
        put_be(to + 32, echo, 4);
        put_be(to + 36, 0x01030307, 4); /* window scale */
    } else if (len == 32) {
        put_be(to + 20, 0x0101080a, 4);
        put_be(to + 24, value, 4);
        put_be(to + 28, echo, 4);
    }
    return len;
}

static size_t put_udp(const struct flow *f, const struct packet *p, uint8_t *to)
{
    put_be(to, f->port[p->side], 2);
    put_be(to + 2, f->port[!p->side], 2);
    put_be(to + 4, 8u + p->len, 2);
    put_be(to + 6, 0, 2);
    return 8;
}

static size_t put_frame(const struct flow *f, const struct packet *p, uint8_t to[FRAME_MAX])
{
    static const size_t TCP_CHECKSUM = 16, UDP_CHECKSUM = 6;
    bool tcp = p->flags != 0;
    uint8_t header[40], scratch[MESSAGE_BUILT_MAX];
    size_t header_len = tcp ? put_tcp(f, p, header) : put_udp(f, p, header);
    size_t len = put_ethernet(f, p->side, to);
    uint32_t sum;
    uint16_t id = (uint16_t)(f->id + f->packets_written);
    len += put_ip(f, p->side, tcp ? 6 : 17, header_len + p->len, id, to + len, &sum);
    uint8_t *transport = to + len;
    memcpy(transport, header, header_len);
    if (p->len != 0)
        message_write(&f->voice, &f->messages[p->message], p->offset, p->len,
                      transport + header_len, scratch);
    uint16_t checksum = fold(sum_words(sum, transport, header_len + p->len));
    put_be(transport + (tcp ? TCP_CHECKSUM : UDP_CHECKSUM), checksum, 2);
    return len + header_len + p->len;
}

/* ---- the capture ---- */

struct output {
    FILE *file, *truth;
    uint64_t bytes, packets, flows;
    uint32_t snaplen;
};

static FILE *open_output(const char *path)
{
    FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
    if (file == NULL) {
        fprintf(stderr, "generate: %s: %s\n", path, strerror(errno));
        exit(2);
    }
    setvbuf(file, NULL, _IOFBF, 1 << 20);
    return file;
}

static void write_bytes(struct output *out, const void *from, size_t len)
{
    if (fwrite(from, 1, len, out->file) != len) {
        fprintf(stderr, "generate: %s\n", strerror(errno));
        exit(2);
    }
    out->bytes += len;
}

/* In the byte order of this machine, as the format allows: its magic number tells. */
static void write_capture_header(struct output *out)
{
    uint32_t header[] = { 0xa1b2c3d4, 0, 0, 0, out->snaplen, 1 };
    uint16_t version[] = { 2, 4 };
    memcpy(&header[1], version, sizeof version);
    write_bytes(out, header, sizeof header);
}

static void write_packet(struct output *out, struct flow *f)
{
    const struct packet *p = &f->packets[f->packets_written];
    uint8_t frame[FRAME_MAX];
    size_t len = put_frame(f, p, frame);
    size_t kept = len < out->snaplen ? len : out->snaplen;
    uint32_t header[] = { (uint32_t)(START_EPOCH_S + p->at_us / 1000000),
                          (uint32_t)(p->at_us % 1000000), (uint32_t)kept, (uint32_t)len };
    write_bytes(out, header, sizeof header);
    write_bytes(out, frame, kept);
    out->packets++;
    f->packets_written++;
}

static void print_address(FILE *to, const struct flow *f, const uint8_t *address)
{
    if (!f->ipv6) {
        fprintf(to, ",%u.%u.%u.%u", address[0], address[1], address[2], address[3]);
        return;
    }
    for (unsigned i = 0; i < 16; i += 2)
        fprintf(to, "%c%x", i ? ':' : ',', address[i] << 8 | address[i + 1]);
}

static void print_since_start(FILE *to, const struct flow *f, int64_t at_us)
{
    fputc(',', to);
    if (at_us >= 0)
        fprintf(to, "%lld", (long long)(at_us - f->start_us) * 1000);
}

static void write_truth(FILE *to, const struct flow *f)
{
    if (to == NULL || f->voice.kind == FLOW_DNS || f->voice.kind == FLOW_QUIC)
        return;
    fprintf(to, "%llu,%s,%s", (unsigned long long)f->id, KIND_NAMES[f->voice.kind],
            KIND_HANDSHAKES[f->voice.kind]);
    print_address(to, f, f->client);
    fprintf(to, ",%u", f->port[CLIENT]);
    print_address(to, f, f->server);
    fprintf(to, ",%u,%lld", f->port[SERVER],
            (long long)(START_EPOCH_S * 1000000 + f->start_us) * 1000);
    print_since_start(to, f, f->request_us);
    print_since_start(to, f, f->response_us);
    fputc('\n', to);
}

/* ---- flows side by side ---- */

/* Live flows; the one whose next packet is due first is at the top. */
struct heap {
    struct flow **flows;
    size_t count, room;
};

static bool is_before(const struct flow *a, const struct flow *b)
{
    int64_t a_us = a->packets[a->packets_written].at_us,
            b_us = b->packets[b->packets_written].at_us;
    return a_us != b_us ? a_us < b_us : a->id < b->id;
}

static void sink(struct heap *h, size_t i)
{
    struct flow *f = h->flows[i];
    for (size_t child; (child = 2 * i + 1) < h->count; i = child) {
        if (child + 1 < h->count && is_before(h->flows[child + 1], h->flows[child]))
            child++;
        if (!is_before(h->flows[child], f))
            break;
        h->flows[i] = h->flows[child];
    }
    h->flows[i] = f;
}

static void heap_add(struct heap *h, struct flow *f)
{
    if (h->count == h->room) {
        h->room = h->room ? 2 * h->room : 1024;
        h->flows = allocate(h->flows, h->room, sizeof *h->flows);
    }
    size_t i = h->count++;
    for (; i > 0 && is_before(f, h->flows[(i - 1) / 2]); i = (i - 1) / 2)
        h->flows[i] = h->flows[(i - 1) / 2];
    h->flows[i] = f;
}

static void write_next(struct heap *h, struct output *out)
{
    struct flow *f = h->flows[0];
    write_packet(out, f);
    if (f->packets_written == f->packet_count) {
        write_truth(out->truth, f);
        free_flow(f);
        out->flows++;
        h->flows[0] = h->flows[--h->count];
    }
    if (h->count != 0)
        sink(h, 0);
}

static bool is_full(const struct options *o, const struct output *out)
{
    return o->max_bytes != 0 && out->bytes >= o->max_bytes;
}

static void write_flows(const struct options *o, struct output *out)
{
    struct heap live = { 0 };
    double gap_us = o->seconds * 1e6 / (double)o->flows;
    double start_us = 0;
    uint64_t started = 0;
    while (!is_full(o, out) && (started < o->flows || live.count != 0)) {
        bool due = started < o->flows;
        if (due && live.count != 0) {
            const struct flow *first = live.flows[0];
            due = (int64_t)start_us <= first->packets[first->packets_written].at_us;
        }
        if (!due) {
            write_next(&live, out);
            continue;
        }
        heap_add(&live, plan_flow(o, started, (int64_t)start_us));
        start_us += 2 * gap_us * random_share(o->seed, started);
        started++;
    }
    while (live.count != 0)
        free_flow(live.flows[--live.count]);
    free(live.flows);
}

static void close_output(FILE *file)
{
    if (file != NULL && fclose(file) != 0) {
        fprintf(stderr, "generate: %s\n", strerror(errno));
        exit(2);
    }
}

int main(int argc, char **argv)
{
    struct options o = DEFAULTS;
    parse_arguments(&o, argc, argv);
    double sum = 0;
    for (int kind = 0; kind < FLOW_KINDS; kind++)
        sum += o.mix[kind];
    if (o.output == NULL || o.flows == 0 || sum <= 0 || o.snaplen == 0)
        usage();
    if (o.clients == 0)
        o.clients = (uint32_t)(o.flows / 4 + 16);

    struct output out = { .file = open_output(o.output), .snaplen = o.snaplen };
    if (o.truth != NULL) {
        out.truth = open_output(o.truth);
        fputs("flow,kind,handshake,client_ip,client_port,server_ip,server_port,start_epoch_ns,"
              "request_at_ns,response_at_ns\n",
              out.truth);
    }
    write_capture_header(&out);
    write_flows(&o, &out);
    close_output(out.file);
    close_output(out.truth);
    fprintf(stderr, "%llu flows whole, %llu packets, %llu bytes\n", (unsigned long long)out.flows,
            (unsigned long long)out.packets, (unsigned long long)out.bytes);
    return 0;
}
