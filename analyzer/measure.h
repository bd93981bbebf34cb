/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MEASURE_H
#define MEASURE_H
/*
 * What two windows of time are compared in: each measure is defined once, in SQL over the columns
 * of table flow, which reads it, shows its flows and explains it to people who know the table.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum measure_kind {
    MEASURE_SHARE,    /* of the flows that are asked, those that say yes */
    MEASURE_QUANTILE, /* of a duration */
    MEASURE_VOLUME,   /* flows per second */
};

/* Which flows are alike enough to be compared. */
enum alike {
    ALIKE_PATH, /* same region and vantage */
    ALIKE_NAME, /* and same server name and version: 1.3 or older */
    ALIKE_KIND, /* and same kind of handshake, answered early or not */
    ALIKE_COUNT,
};

/* Durations that are compared. */
enum duration {
    DURATION_PERCEIVED,
    DURATION_RTT,
    DURATION_THINK,
    DURATION_HELLO_WAIT,
    DURATION_TLS,
    DURATION_REQUEST_WAIT,
    DURATION_SERVER_WAIT,
    DURATION_CONNECT,
    DURATIONS,
};

/* In the order in which they explain each other: what comes first may be the reason of the rest. */
enum measure_id {
    CAPTURED_WHOLE,
    MEASURED,
    FAILED,
    ANSWERED,
    VOLUME,
    RESUMPTION_OFFERED,
    RESUMPTION_ACCEPTED,
    EARLY_OFFERED,
    EARLY_ACCEPTED,
    ANSWERED_EARLY,
    HELLO_RETRY,
    OLD_VERSION,
    RTT_LEAST,
    RTT_MEDIAN,
    RESENT,
    RTT_MOST,
    THINK_MEDIAN,
    THINK_MOST,
    FLIGHT_STALLS,
    ABANDONED,
    PERCEIVED_MEDIAN,
    PERCEIVED_MOST,
    HELLO_WAIT,
    TLS_WAIT,
    REQUEST_WAIT,
    SERVER_WAIT,
    MEASURES,
};

struct measure {
    const char *name;  /* in CSV and JSON */
    const char *title; /* for people */
    enum measure_kind kind;
    enum alike alike;
    const char *sql;         /* share: 1, 0 or, of flows that are not asked, NULL */
    enum duration duration;  /* of a quantile */
    double quantile;         /* 0 to 1 */
    double least;            /* changes below that are too small to tell: share, ratio - 1 */
    const char *rose, *fell; /* SQL: the flows that show it when it rose or fell */
    uint32_t explains;       /* bits of measures that change with it */
    bool good;               /* more of it is better */
};

extern const struct measure MEASURE[MEASURES];

/* Whether a change for that much is one for the worse. */
bool measure_is_worse(enum measure_id id, double before, double during);

/* SQL of a duration, as "perceived_ns"; NULL where it is not known. */
const char *duration_sql(enum duration d);

/* Column of a duration, and SQL that is true where it is known; NULL = where the column is. */
const char *duration_column(enum duration d);
const char *duration_condition(enum duration d);

/* The same for people, as "felt". */
const char *duration_title(enum duration d);

/* Whether a change is large enough to tell a person of, however sure it is. */
bool measure_is_told(const struct measure *m, double before, double during);

#endif
