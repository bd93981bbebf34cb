/* SPDX-License-Identifier: Apache-2.0 */
#include "measure.h"

#include <math.h>

/* A quantile counts from a twentieth of itself on, and from a millisecond. */
static const double QUANTILE_LEAST = 0.05, QUANTILE_LEAST_NS = 1e6;

#define BIT(id) (UINT32_C(1) << (id))

#define PHASES (BIT(HELLO_WAIT) | BIT(TLS_WAIT) | BIT(REQUEST_WAIT) | BIT(SERVER_WAIT))
#define WAITS (BIT(PERCEIVED_MEDIAN) | BIT(PERCEIVED_MOST) | PHASES)
#define EARLY_DATA (BIT(EARLY_OFFERED) | BIT(EARLY_ACCEPTED) | BIT(ANSWERED_EARLY))

#define RESENDS                                                                                    \
    "syn_count + syn_ack_count > 2 OR client_retransmits_before_response"                          \
    " + server_retransmits_before_response > 0"
#define WHOLE                                                                                      \
    "syn_seen = 1 AND sides_seen = 'both' AND client_gap_bytes = 0 AND server_gap_bytes = 0"

const struct measure MEASURE[MEASURES] = {
    [CAPTURED_WHOLE] = { .name = "captured_whole",
                         .title = "flows captured whole",
                         .good = true,
                         .kind = MEASURE_SHARE,
                         .alike = ALIKE_PATH,
                         .sql = WHOLE,
                         .least = 0.02,
                         .rose = WHOLE,
                         .fell = "NOT (" WHOLE ")",
                         .explains = ~(BIT(VOLUME) | BIT(CAPTURED_WHOLE)) },
    [MEASURED] = { .name = "measured",
                   .title = "answered requests whose wait is known",
                   .good = true,
                   .kind = MEASURE_SHARE,
                   .alike = ALIKE_NAME,
                   .sql = "CASE WHEN outcome = 'completed' AND response_high_at_ns IS NOT NULL"
                          " THEN perceived_ns IS NOT NULL END",
                   .least = 0.05,
                   .rose = "outcome = 'completed' AND perceived_ns IS NOT NULL",
                   .fell = "outcome = 'completed' AND response_high_at_ns IS NOT NULL"
                           " AND perceived_ns IS NULL" },
    [FAILED] = { .name = "failed",
                 .title = "connections that failed",
                 .kind = MEASURE_SHARE,
                 .alike = ALIKE_PATH,
                 .sql = "CASE WHEN outcome <> 'unseen' THEN outcome = 'failed' END",
                 .least = 0.005,
                 .rose = "outcome = 'failed'",
                 .fell = "outcome NOT IN ('failed', 'unseen')",
                 .explains = BIT(MEASURED) | BIT(ANSWERED) | BIT(ABANDONED) | BIT(OLD_VERSION) },
    [ANSWERED] = { .name = "answered",
                   .title = "requests that were answered",
                   .good = true,
                   .kind = MEASURE_SHARE,
                   .alike = ALIKE_PATH,
                   /* What the end of a capture cut off is no server's fault. */
                   .sql = "CASE WHEN outcome = 'completed' AND request_at_ns IS NOT NULL"
                          " AND ended <> 'capture_end' THEN response_high_at_ns IS NOT NULL END",
                   .least = 0.01,
                   .rose = "outcome = 'completed' AND request_at_ns IS NOT NULL"
                           " AND response_high_at_ns IS NOT NULL",
                   .fell = "outcome = 'completed' AND request_at_ns IS NOT NULL"
                           " AND ended <> 'capture_end' AND response_high_at_ns IS NULL",
                   .explains = BIT(MEASURED) | BIT(THINK_MEDIAN) | BIT(THINK_MOST) | WAITS },
    [VOLUME] = { .name = "volume",
                 .title = "connections",
                 .good = true,
                 .kind = MEASURE_VOLUME,
                 .alike = ALIKE_PATH,
                 .least = 0.5,
                 .rose = "1",
                 .fell = "1" },
    [RESUMPTION_OFFERED] = { .name = "resumption_offered",
                             .title = "resumption offered of all",
                             .good = true,
                             .kind = MEASURE_SHARE,
                             .alike = ALIKE_NAME,
                             .sql = "CASE WHEN client_hello_at_ns IS NOT NULL"
                                    " THEN resumption_offered END",
                             .least = 0.02,
                             .rose = "resumption_offered = 1",
                             .fell = "client_hello_at_ns IS NOT NULL AND resumption_offered = 0",
                             .explains = EARLY_DATA | WAITS },
    [RESUMPTION_ACCEPTED] = { .name = "resumption_accepted",
                              .title = "resumption accepted of offered",
                              .good = true,
                              .kind = MEASURE_SHARE,
                              .alike = ALIKE_NAME,
                              .sql = "CASE WHEN resumption_offered = 1 AND handshake IN"
                                     " ('full', 'resumed', '0-rtt') THEN resumed_by IS NOT NULL"
                                     " END",
                              .least = 0.02,
                              .rose = "resumption_offered = 1 AND resumed_by IS NOT NULL",
                              .fell = "resumption_offered = 1 AND handshake = 'full'",
                              .explains =
                                  EARLY_DATA | WAITS | BIT(ABANDONED) | BIT(RESUMPTION_OFFERED) },
    [EARLY_OFFERED] = { .name = "early_offered",
                        .title = "early data offered of all",
                        .good = true,
                        .kind = MEASURE_SHARE,
                        .alike = ALIKE_NAME,
                        .sql = "CASE WHEN early_data IS NOT NULL"
                               " THEN early_data <> 'not_offered' END",
                        .least = 0.02,
                        .rose = "early_data <> 'not_offered'",
                        .fell = "early_data = 'not_offered'",
                        .explains =
                            BIT(EARLY_ACCEPTED) | BIT(ANSWERED_EARLY) | WAITS | BIT(ABANDONED) },
    [EARLY_ACCEPTED] = { .name = "early_accepted",
                         .title = "early data accepted of decided",
                         .good = true,
                         .kind = MEASURE_SHARE,
                         .alike = ALIKE_NAME,
                         .sql = "CASE early_data WHEN 'accepted' THEN 1 WHEN 'rejected' THEN 0 END",
                         .least = 0.02,
                         .rose = "early_data = 'accepted'",
                         .fell = "early_data = 'rejected'",
                         .explains = BIT(ANSWERED_EARLY) | BIT(ABANDONED) | WAITS },
    [ANSWERED_EARLY] = { .name = "answered_early",
                         .title = "accepted early data answered early",
                         .good = true,
                         .kind = MEASURE_SHARE,
                         .alike = ALIKE_NAME,
                         .sql = "answered_early",
                         .least = 0.02,
                         .rose = "answered_early = 1",
                         .fell = "answered_early = 0",
                         .explains = WAITS },
    [HELLO_RETRY] = { .name = "hello_retry",
                      .title = "servers asking for another ClientHello",
                      .kind = MEASURE_SHARE,
                      .alike = ALIKE_NAME,
                      .sql = "hello_retry",
                      .least = 0.02,
                      .rose = "hello_retry = 1",
                      .fell = "hello_retry = 0",
                      .explains = EARLY_DATA | WAITS },
    [OLD_VERSION] = { .name = "old_version",
                      .title = "TLS 1.2 and older of all",
                      .kind = MEASURE_SHARE,
                      .alike = ALIKE_PATH,
                      .sql = "tls_version NOT LIKE 'TLSv1.3%'",
                      .least = 0.02,
                      .rose = "tls_version NOT LIKE 'TLSv1.3%'",
                      .fell = "tls_version LIKE 'TLSv1.3%'",
                      .explains = EARLY_DATA | BIT(RESUMPTION_OFFERED) },
    [RTT_LEAST] = { .name = "rtt_p5",
                    .title = "round trip p5",
                    .kind = MEASURE_QUANTILE,
                    .alike = ALIKE_PATH,
                    .duration = DURATION_RTT,
                    .quantile = 0.05,
                    .explains = BIT(RTT_MEDIAN) | BIT(RTT_MOST) | WAITS | BIT(ANSWERED_EARLY) },
    [RTT_MEDIAN] = { .name = "rtt_p50",
                     .title = "round trip p50",
                     .kind = MEASURE_QUANTILE,
                     .alike = ALIKE_PATH,
                     .duration = DURATION_RTT,
                     .quantile = 0.5,
                     .explains = BIT(RTT_MOST) | WAITS | BIT(ANSWERED_EARLY) },
    [RESENT] = { .name = "resent",
                 .title = "flows with packets sent again before the response",
                 .kind = MEASURE_SHARE,
                 .alike = ALIKE_PATH,
                 .sql = "CASE WHEN response_at_ns IS NOT NULL THEN " RESENDS " END",
                 .least = 0.02,
                 .rose = "response_at_ns IS NOT NULL AND (" RESENDS ")",
                 .fell = "response_at_ns IS NOT NULL AND NOT (" RESENDS ")",
                 .explains = BIT(RTT_MOST) | BIT(MEASURED) | BIT(FLIGHT_STALLS) | BIT(THINK_MOST) |
                             BIT(ANSWERED_EARLY) | WAITS },
    [RTT_MOST] = { .name = "rtt_p90",
                   .title = "round trip p90",
                   .kind = MEASURE_QUANTILE,
                   .alike = ALIKE_PATH,
                   .duration = DURATION_RTT,
                   .quantile = 0.9,
                   .explains = WAITS | BIT(ANSWERED_EARLY) },
    [THINK_MEDIAN] = { .name = "server_think_p50",
                       .title = "servers' own time p50",
                       .kind = MEASURE_QUANTILE,
                       .alike = ALIKE_KIND,
                       .duration = DURATION_THINK,
                       .quantile = 0.5,
                       .explains = BIT(THINK_MOST) | BIT(ANSWERED_EARLY) | WAITS },
    [THINK_MOST] = { .name = "server_think_p90",
                     .title = "servers' own time p90",
                     .kind = MEASURE_QUANTILE,
                     .alike = ALIKE_KIND,
                     .duration = DURATION_THINK,
                     .quantile = 0.9,
                     .explains = BIT(ANSWERED_EARLY) | WAITS },
    [FLIGHT_STALLS] = { .name = "flight_stalls",
                        .title = "server flights that stall",
                        .kind = MEASURE_SHARE,
                        .alike = ALIKE_KIND,
                        .sql = "flight_stalls > 0",
                        .least = 0.02,
                        .rose = "flight_stalls > 0",
                        .fell = "flight_stalls = 0",
                        .explains = WAITS },
    [ABANDONED] = { .name = "abandoned",
                    .title = "connections that clients abandoned",
                    .kind = MEASURE_SHARE,
                    .alike = ALIKE_PATH,
                    .sql = "CASE WHEN outcome <> 'unseen' THEN outcome = 'abandoned' END",
                    .least = 0.01,
                    .rose = "outcome = 'abandoned'",
                    .fell = "outcome NOT IN ('abandoned', 'unseen')" },
    [PERCEIVED_MEDIAN] = { .name = "perceived_p50",
                           .title = "felt wait p50",
                           .kind = MEASURE_QUANTILE,
                           .alike = ALIKE_KIND,
                           .duration = DURATION_PERCEIVED,
                           .quantile = 0.5,
                           .explains = BIT(PERCEIVED_MOST) | PHASES },
    [PERCEIVED_MOST] = { .name = "perceived_p90",
                         .title = "felt wait p90",
                         .kind = MEASURE_QUANTILE,
                         .alike = ALIKE_KIND,
                         .duration = DURATION_PERCEIVED,
                         .quantile = 0.9,
                         .explains = PHASES },
    [HELLO_WAIT] = { .name = "hello_wait_p50",
                     .title = "wait for the ClientHello p50",
                     .kind = MEASURE_QUANTILE,
                     .alike = ALIKE_KIND,
                     .duration = DURATION_HELLO_WAIT,
                     .quantile = 0.5 },
    [TLS_WAIT] = { .name = "tls_p50",
                   .title = "TLS handshake p50",
                   .kind = MEASURE_QUANTILE,
                   .alike = ALIKE_KIND,
                   .duration = DURATION_TLS,
                   .quantile = 0.5 },
    [REQUEST_WAIT] = { .name = "request_wait_p50",
                       .title = "wait for the request p50",
                       .kind = MEASURE_QUANTILE,
                       .alike = ALIKE_KIND,
                       .duration = DURATION_REQUEST_WAIT,
                       .quantile = 0.5 },
    [SERVER_WAIT] = { .name = "server_wait_p50",
                      .title = "request to response p50",
                      .kind = MEASURE_QUANTILE,
                      .alike = ALIKE_KIND,
                      .duration = DURATION_SERVER_WAIT,
                      .quantile = 0.5 },
};

static const struct {
    const char *column, *condition, *sql, *title;
} DURATION[DURATIONS] = {
    [DURATION_PERCEIVED] = { "perceived_ns", NULL, "perceived_ns", "felt" },
    /* A neighbour's round trip is that of another flow. */
    [DURATION_RTT] = { "rtt_ns", "rtt_basis <> 'neighbour'",
                       "CASE WHEN rtt_basis <> 'neighbour' THEN rtt_ns END", "round trip" },
    [DURATION_THINK] = { "server_think_ns", NULL, "server_think_ns", "servers' own time" },
    [DURATION_HELLO_WAIT] = { "hello_wait_ns", NULL, "hello_wait_ns", "hello wait" },
    [DURATION_TLS] = { "tls_ns", NULL, "tls_ns", "tls" },
    [DURATION_REQUEST_WAIT] = { "request_wait_ns", NULL, "request_wait_ns", "request wait" },
    [DURATION_SERVER_WAIT] = { "server_wait_ns", NULL, "server_wait_ns", "server wait" },
    [DURATION_CONNECT] = { "connect_ns", NULL, "connect_ns", "connect" },
};

const char *duration_sql(enum duration d)
{
    return DURATION[d].sql;
}

const char *duration_column(enum duration d)
{
    return DURATION[d].column;
}

const char *duration_condition(enum duration d)
{
    return DURATION[d].condition;
}

const char *duration_title(enum duration d)
{
    return DURATION[d].title;
}

bool measure_is_worse(enum measure_id id, double before, double during)
{
    return (during > before) != MEASURE[id].good;
}

bool measure_is_told(const struct measure *m, double before, double during)
{
    double change = fabs(during - before);
    switch (m->kind) {
    case MEASURE_SHARE:
        return change >= m->least;
    case MEASURE_QUANTILE:
        return change >= QUANTILE_LEAST_NS && change >= QUANTILE_LEAST * fmin(before, during);
    case MEASURE_VOLUME:
        return before > 0 &&
               (during / before >= 1 + m->least || during / before <= 1 / (1 + m->least));
    }
    return false;
}
