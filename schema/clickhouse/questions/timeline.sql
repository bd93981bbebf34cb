-- SPDX-License-Identifier: Apache-2.0
-- How did it go minute by minute? The columns of `firstflight report timeline`: TLS flows to us by
-- kind, resumption offered and accepted, early data refused, packets sent again before the response,
-- and in ms the round trip and the wait as visitors felt it.
SELECT
    formatDateTime(toStartOfMinute(start_time), '%FT%R') AS minute,
    count() AS flows,
    countIf(handshake = 'full') AS `full`,
    countIf(handshake = 'resumed') AS resumed,
    countIf(handshake = '0-rtt') AS `0-rtt`,
    countIf(outcome = 'failed') AS failed,
    sum(resumption_offered) AS offered,
    countIf(resumption_offered = 1 AND resumed_by IS NOT NULL) AS accepted,
    countIf(ifNull(early_data = 'rejected', 0)) AS refused,
    sum(client_retransmits_before_response + server_retransmits_before_response) AS resent,
    round(quantileExact(0.5)(rtt_ns) / 1e6, 1) AS rtt,
    round(quantileExact(0.5)(perceived_ns) / 1e6, 1) AS p50,
    round(quantileExact(0.9)(perceived_ns) / 1e6, 1) AS p90
FROM firstflight.flow
WHERE start_time >= toDateTime('1970-01-01 00:00:00', 'UTC')
    AND start_time < toDateTime('2100-01-01 00:00:00', 'UTC')
    AND leg IN ('inbound', 'unknown') AND handshake <> 'none'
GROUP BY minute
ORDER BY minute
