-- SPDX-License-Identifier: Apache-2.0
-- What changed against the time before, everywhere and by client region? Every measure of `firstflight
-- report incident` in two windows, with the columns of that report that counting gives: a row for each
-- measure and scope, not only for what changed. Shares are of the flows that are asked, which
-- flows_before and flows_during count; durations are ns.
--
-- Left to the program: which changes chance does not explain (low, high, z), comparison of like with
-- like (here a shift between kinds of handshake shows as a change of waits), when it began, what
-- causes what, and examples. Give it the flows of the window and the region that stand out here.
--
-- The windows are the four times below WITH. For other scopes write another column in place of
-- client_region, and its name in place of 'region '.
SELECT
    measure, scope, any(unit_of_measure) AS unit,
    if(sumIf(asked, NOT is_during) = 0, NULL, anyIf(value, NOT is_during)) AS before,
    if(sumIf(asked, is_during) = 0, NULL, anyIf(value, is_during)) AS during,
    during - before AS change,
    sumIf(asked, NOT is_during) AS flows_before,
    sumIf(asked, is_during) AS flows_during,
    any(condition) AS `where`
FROM
(
    SELECT
        scope, condition, is_during,
        m.1 AS place, m.2 AS measure, m.3 AS unit_of_measure, m.4 AS value, m.5 AS asked
    FROM
    (
        SELECT
            s.1 AS scope, s.2 AS condition, is_during,
            [
                (1, 'captured_whole', 'share', toFloat64(countIf(whole)) / count(), count()),
                (2, 'measured', 'share',
                    toFloat64(countIf(done AND answered AND felt)) / countIf(done AND answered),
                    countIf(done AND answered)),
                (3, 'failed', 'share',
                    toFloat64(countIf(failed)) / countIf(NOT unseen), countIf(NOT unseen)),
                (4, 'answered', 'share',
                    toFloat64(countIf(done AND asked_and_over AND answered))
                        / countIf(done AND asked_and_over),
                    countIf(done AND asked_and_over)),
                (5, 'volume', 'per_second', toFloat64(count()) / any(seconds), count()),
                (6, 'resumption_offered', 'share',
                    toFloat64(countIf(hello AND offered)) / countIf(hello), countIf(hello)),
                (7, 'resumption_accepted', 'share',
                    toFloat64(countIf(offered AND known AND resumed)) / countIf(offered AND known),
                    countIf(offered AND known)),
                (8, 'early_offered', 'share',
                    toFloat64(countIf(early <> '' AND early <> 'not_offered'))
                        / countIf(early <> ''),
                    countIf(early <> '')),
                (9, 'early_accepted', 'share',
                    toFloat64(countIf(early = 'accepted'))
                        / countIf(early IN ('accepted', 'rejected')),
                    countIf(early IN ('accepted', 'rejected'))),
                (10, 'answered_early', 'share',
                    toFloat64(countIf(by_early = 1)) / countIf(by_early >= 0), countIf(by_early >= 0)),
                (11, 'hello_retry', 'share',
                    toFloat64(countIf(retry = 1)) / countIf(retry >= 0), countIf(retry >= 0)),
                (12, 'old_version', 'share',
                    toFloat64(countIf(version <> '' AND NOT startsWith(version, 'TLSv1.3')))
                        / countIf(version <> ''),
                    countIf(version <> '')),
                (13, 'rtt_p5', 'ns', toFloat64(quantileExactIf(0.05)(rtt, rtt >= 0)),
                    countIf(rtt >= 0)),
                (14, 'rtt_p50', 'ns', toFloat64(quantileExactIf(0.5)(rtt, rtt >= 0)),
                    countIf(rtt >= 0)),
                (15, 'resent', 'share',
                    toFloat64(countIf(responded AND resent)) / countIf(responded),
                    countIf(responded)),
                (16, 'rtt_p90', 'ns', toFloat64(quantileExactIf(0.9)(rtt, rtt >= 0)),
                    countIf(rtt >= 0)),
                (17, 'server_think_p50', 'ns', toFloat64(quantileExactIf(0.5)(think, think >= 0)),
                    countIf(think >= 0)),
                (18, 'server_think_p90', 'ns', toFloat64(quantileExactIf(0.9)(think, think >= 0)),
                    countIf(think >= 0)),
                (19, 'flight_stalls', 'share',
                    toFloat64(countIf(stalls > 0)) / countIf(stalls >= 0), countIf(stalls >= 0)),
                (20, 'abandoned', 'share',
                    toFloat64(countIf(abandoned)) / countIf(NOT unseen), countIf(NOT unseen)),
                (21, 'perceived_p50', 'ns', toFloat64(quantileExactIf(0.5)(wait, wait >= 0)),
                    countIf(wait >= 0)),
                (22, 'perceived_p90', 'ns', toFloat64(quantileExactIf(0.9)(wait, wait >= 0)),
                    countIf(wait >= 0)),
                (23, 'hello_wait_p50', 'ns',
                    toFloat64(quantileExactIf(0.5)(hello_wait, hello_wait >= 0)),
                    countIf(hello_wait >= 0)),
                (24, 'tls_p50', 'ns', toFloat64(quantileExactIf(0.5)(tls, tls >= 0)),
                    countIf(tls >= 0)),
                (25, 'request_wait_p50', 'ns',
                    toFloat64(quantileExactIf(0.5)(request_wait, request_wait >= 0)),
                    countIf(request_wait >= 0)),
                (26, 'server_wait_p50', 'ns',
                    toFloat64(quantileExactIf(0.5)(server_wait, server_wait >= 0)),
                    countIf(server_wait >= 0))
            ] AS measures
        FROM
        (
            WITH
                toDateTime('2026-06-02 14:00:00', 'UTC') AS before_from,
                toDateTime('2026-06-02 14:10:00', 'UTC') AS before_to,
                toDateTime('2026-06-02 14:10:00', 'UTC') AS during_from,
                toDateTime('2026-06-02 14:20:00', 'UTC') AS during_to
            SELECT
                [('everywhere', '1'),
                 (concat('region ', ifNull(client_region, '')),
                    if(client_region IS NULL, 'client_region IS NULL', concat('client_region = ''',
                        replaceAll(ifNull(client_region, ''), '''', ''''''), '''')))] AS scopes,
                start_time >= during_from AND start_time < during_to AS is_during,
                if(is_during, during_to - during_from, before_to - before_from) AS seconds,
                syn_seen = 1 AND sides_seen = 'both' AND client_gap_bytes = 0
                    AND server_gap_bytes = 0 AS whole,
                outcome = 'completed' AS done, outcome = 'failed' AS failed,
                outcome = 'abandoned' AS abandoned, outcome = 'unseen' AS unseen,
                response_high_at_ns IS NOT NULL AS answered, perceived_ns IS NOT NULL AS felt,
                response_at_ns IS NOT NULL AS responded,
                request_at_ns IS NOT NULL AND ended <> 'capture_end' AS asked_and_over,
                client_hello_at_ns IS NOT NULL AS hello, resumption_offered = 1 AS offered,
                handshake IN ('full', 'resumed', '0-rtt') AS known,
                resumed_by IS NOT NULL AS resumed,
                multiIf(ifNull(early_data = 'accepted', 0), 'accepted',
                    ifNull(early_data = 'rejected', 0), 'rejected',
                    ifNull(early_data = 'not_offered', 0), 'not_offered',
                    early_data IS NULL, '', 'unknown') AS early,
                ifNull(toInt16(answered_early), -1) AS by_early,
                ifNull(toInt16(hello_retry), -1) AS retry,
                ifNull(tls_version, '') AS version,
                if(ifNull(rtt_basis <> 'neighbour', 0), ifNull(rtt_ns, -1), -1) AS rtt,
                syn_count + syn_ack_count > 2 OR ifNull(client_retransmits_before_response
                    + server_retransmits_before_response, 0) > 0 AS resent,
                ifNull(server_think_ns, -1) AS think, ifNull(flight_stalls, -1) AS stalls,
                ifNull(perceived_ns, -1) AS wait, ifNull(hello_wait_ns, -1) AS hello_wait,
                ifNull(tls_ns, -1) AS tls, ifNull(request_wait_ns, -1) AS request_wait,
                ifNull(server_wait_ns, -1) AS server_wait
            FROM firstflight.flow
            WHERE leg IN ('inbound', 'unknown')
                AND (start_time >= before_from AND start_time < before_to
                    OR start_time >= during_from AND start_time < during_to)
        )
        ARRAY JOIN scopes AS s
        GROUP BY scope, condition, is_during
    )
    ARRAY JOIN measures AS m
)
GROUP BY scope, measure
ORDER BY scope, any(place)
