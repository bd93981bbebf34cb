-- SPDX-License-Identifier: Apache-2.0
-- How long did visitors of each region wait for the first byte of the response, by kind of
-- handshake, and what did 0-RTT gain them? The columns of `firstflight report regions --format csv`.
-- A percentile is NULL where it would be chance: below 6 flows p50, 36 p90, 368 p99.
--
-- Gains are the medians' differences of like with like (region, server name and version, at least 6
-- flows of both), weighted by 0-RTT flows. Their intervals are left to the program, which draws
-- samples again for them.
SELECT
    if(region = '', NULL, region) AS client_region, tls, kind AS handshake, flows,
    flows / flows_of_version AS share,
    if(flows < 6, NULL, p50_ns / 1e6) AS perceived_p50_ms,
    if(flows < 36, NULL, p90_ns / 1e6) AS perceived_p90_ms,
    if(flows < 368, NULL, p99_ns / 1e6) AS perceived_p99_ms,
    if(flows < 6, NULL, rtt_p50_ns / 1e6) AS rtt_p50_ms,
    if(flows < 6, NULL, trips_p50) AS round_trips_p50,
    expected AS expected_round_trips,
    if(kind = '0-rtt' AND over_resumed > 0, resumed_ms / over_resumed, NULL)
        AS gain_over_resumed_ms,
    NULL AS gain_over_resumed_low_ms,
    NULL AS gain_over_resumed_high_ms,
    if(kind = '0-rtt' AND over_resumed > 0, resumed_trips / over_resumed, NULL)
        AS gain_over_resumed_round_trips,
    if(kind = '0-rtt' AND over_full > 0, full_ms / over_full, NULL) AS gain_over_full_ms,
    NULL AS gain_over_full_low_ms,
    NULL AS gain_over_full_high_ms,
    if(kind = '0-rtt' AND over_full > 0, full_trips / over_full, NULL)
        AS gain_over_full_round_trips,
    if(kind = '0-rtt' AND early + late > 0, early / (early + late), NULL)
        AS answered_early_share,
    if(kind = '0-rtt', if(accepted + rejected > 0, rejected / (accepted + rejected), 0), NULL)
        AS refused_share,
    if(kind = '0-rtt', over_resumed, NULL) AS flows_compared_with_resumed
FROM
(
    SELECT
        region, tls, kind, flows, p50_ns, p90_ns, p99_ns, rtt_p50_ns, trips_p50,
        expected, flows_of_version, accepted, rejected, early, late
    FROM
    (
        SELECT
            region, tls, kind, flows, p50_ns, p90_ns, p99_ns, rtt_p50_ns, trips_p50,
            expected, flows_of_version
        FROM
        (
            SELECT
                ifNull(client_region, '') AS region,
                if(startsWith(ifNull(tls_version, ''), 'TLSv1.3'), '1.3', '1.2') AS tls,
                toString(handshake) AS kind,
                count() AS flows,
                quantileExact(0.5)(perceived_ns) AS p50_ns,
                quantileExact(0.9)(perceived_ns) AS p90_ns,
                quantileExact(0.99)(perceived_ns) AS p99_ns,
                quantileExact(0.5)(rtt_ns) AS rtt_p50_ns,
                quantileExact(0.5)(round_trips) AS trips_p50,
                avg(expected_round_trips) AS expected
            FROM firstflight.flow
            WHERE start_time >= toDateTime('1970-01-01 00:00:00', 'UTC')
                AND start_time < toDateTime('2100-01-01 00:00:00', 'UTC')
                AND leg IN ('inbound', 'unknown') AND handshake IN ('full', 'resumed', '0-rtt')
                AND perceived_ns IS NOT NULL
            GROUP BY region, tls, kind
        ) AS kinds ALL LEFT JOIN
        (
            SELECT
                ifNull(client_region, '') AS region,
                if(startsWith(ifNull(tls_version, ''), 'TLSv1.3'), '1.3', '1.2') AS tls,
                count() AS flows_of_version
            FROM firstflight.flow
            WHERE start_time >= toDateTime('1970-01-01 00:00:00', 'UTC')
                AND start_time < toDateTime('2100-01-01 00:00:00', 'UTC')
                AND leg IN ('inbound', 'unknown') AND handshake IN ('full', 'resumed', '0-rtt')
                AND perceived_ns IS NOT NULL
            GROUP BY region, tls
        ) AS versions USING (region, tls)
    ) AS of_kinds ALL LEFT JOIN
    (
        SELECT
            ifNull(client_region, '') AS region,
            countIf(ifNull(early_data = 'accepted', 0)) AS accepted,
            countIf(ifNull(early_data = 'rejected', 0)) AS rejected,
            countIf(ifNull(answered_early = 1, 0)) AS early,
            countIf(ifNull(answered_early = 0, 0)) AS late
        FROM firstflight.flow
        WHERE start_time >= toDateTime('1970-01-01 00:00:00', 'UTC')
            AND start_time < toDateTime('2100-01-01 00:00:00', 'UTC')
            AND leg IN ('inbound', 'unknown') AND handshake <> 'none'
        GROUP BY region
    ) AS early_data_of_region USING (region)
) AS of_region ALL LEFT JOIN
(
    SELECT
        region,
        sumIf(n_early, n_resumed >= 6) AS over_resumed,
        sumIf(n_early * (ms_resumed - ms_early), n_resumed >= 6) AS resumed_ms,
        sumIf(n_early * (trips_resumed - trips_early), n_resumed >= 6) AS resumed_trips,
        sumIf(n_early, n_full >= 6) AS over_full,
        sumIf(n_early * (ms_full - ms_early), n_full >= 6) AS full_ms,
        sumIf(n_early * (trips_full - trips_early), n_full >= 6) AS full_trips
    FROM
    (
        SELECT
            ifNull(client_region, '') AS region,
            ifNull(sni, '') AS name, isNull(sni) AS nameless, assumeNotNull(tls_version) AS version,
            countIf(handshake = '0-rtt') AS n_early,
            countIf(handshake = 'resumed') AS n_resumed,
            countIf(handshake = 'full') AS n_full,
            quantileExactIf(0.5)(ms, handshake = '0-rtt') AS ms_early,
            quantileExactIf(0.5)(ms, handshake = 'resumed') AS ms_resumed,
            quantileExactIf(0.5)(ms, handshake = 'full') AS ms_full,
            quantileExactIf(0.5)(trips, handshake = '0-rtt') AS trips_early,
            quantileExactIf(0.5)(trips, handshake = 'resumed') AS trips_resumed,
            quantileExactIf(0.5)(trips, handshake = 'full') AS trips_full
        FROM
        (
            SELECT
                client_region, sni, tls_version, handshake,
                assumeNotNull(perceived_ns) / 1e6 AS ms, assumeNotNull(round_trips) AS trips
            FROM firstflight.flow
            WHERE start_time >= toDateTime('1970-01-01 00:00:00', 'UTC')
                AND start_time < toDateTime('2100-01-01 00:00:00', 'UTC')
                AND leg IN ('inbound', 'unknown') AND handshake IN ('full', 'resumed', '0-rtt')
                AND perceived_ns IS NOT NULL AND round_trips IS NOT NULL
                AND startsWith(ifNull(tls_version, ''), 'TLSv1.3')
                AND (early_data IS NULL OR early_data <> 'rejected')
        )
        GROUP BY region, name, nameless, version
        HAVING n_early >= 6
    )
    GROUP BY region
) AS gains USING (region)
ORDER BY region, tls DESC, indexOf(['0-rtt', 'resumed', 'full'], kind)
