-- SPDX-License-Identifier: Apache-2.0
-- For which names was early data offered although a rule forbids it? The columns of `firstflight
-- report policy`, but that the example is a flow_uid. Rules are those of early_data_rule; the longest
-- pattern that fits a name decides. Patterns with '?' or with more than three stars stop the query
-- (throwIf): only the program fits them. Names that were hidden were fitted when they were ingested.
SELECT
    nullIf(name, '') AS sni, fits AS pattern, offers AS offered, accepts AS accepted,
    rejects AS rejected, unknowns AS unknown,
    if(offers_with_bytes = 0, NULL, sent_bytes) AS early_data_bytes,
    prefixes AS clients,
    nullIf(arrayStringConcat(arraySort(site_names), ','), '') AS sites,
    formatDateTime(first_start, '%FT%TZ') AS first_time,
    formatDateTime(last_start, '%FT%TZ') AS last_time,
    arrayStringConcat(arrayMap(x -> concat(x.1, ' ', toString(x.2)), arrayFilter(x -> x.2 > 0,
        [('keylog', keylogs), ('protocol', protocols), ('strong', strongs), ('weak', weaks)])),
        ', ') AS basis,
    nullIf(example, '') AS example_accepted,
    comment
FROM
(
    SELECT
        name, offers, accepts, rejects, unknowns, offers_with_bytes, sent_bytes, prefixes,
        site_names, first_start, last_start, keylogs, protocols, strongs, weaks, example,
        if(fitted = 'not yet', longest, fitted) AS fits
    FROM
    (
        SELECT
            ifNull(sni, '') AS name, ifNull(early_data_rule, 'not yet') AS fitted,
            count() AS offers,
            countIf(ifNull(early_data = 'accepted', 0)) AS accepts,
            countIf(ifNull(early_data = 'rejected', 0)) AS rejects,
            countIf(ifNull(early_data = 'unknown', 0)) AS unknowns,
            countIf(early_data_bytes IS NOT NULL) AS offers_with_bytes,
            sum(ifNull(early_data_bytes, 0)) AS sent_bytes,
            uniqExact(ifNull(client_prefix, client_ip)) AS prefixes,
            groupUniqArrayIf(assumeNotNull(site), site IS NOT NULL) AS site_names,
            min(start_time) AS first_start, max(start_time) AS last_start,
            countIf(ifNull(early_data_basis = 'keylog', 0)) AS keylogs,
            countIf(ifNull(early_data_basis = 'protocol', 0)) AS protocols,
            countIf(ifNull(early_data_basis = 'strong', 0)) AS strongs,
            countIf(ifNull(early_data_basis = 'weak', 0)) AS weaks,
            maxIf(toString(flow_uid), ifNull(early_data = 'accepted', 0)) AS example
        FROM firstflight.flow
        WHERE start_time >= toDateTime('1970-01-01 00:00:00', 'UTC')
            AND start_time < toDateTime('2100-01-01 00:00:00', 'UTC')
            AND leg IN ('inbound', 'unknown') AND handshake <> 'none'
            AND early_data IN ('accepted', 'rejected', 'unknown')
        GROUP BY name, fitted
    ) AS names ALL LEFT JOIN
    (
        -- Between its stars a pattern has pieces: the first begins the name, the last ends it, one
        -- or two more stand between them in this order; each is looked for as far left as can be.
        -- A lambda reads one column at most: 18.16 does not find a second one.
        SELECT name, arraySort(p -> (-length(p), p), groupArrayIf(pattern, fit))[1] AS longest
        FROM
        (
            SELECT
                name, pattern,
                begins AND at_2 > 0 AND at_3 > 0
                    AND length(tail_2) + 1 >= at_3 + length(piece_3) + length(last_piece)
                    AND substring(concat(' ', tail_2), greatest(toInt64(1),
                        toInt64(length(tail_2) + 2 - length(last_piece)))) = last_piece AS fit
            FROM
            (
                SELECT
                    name, pattern, begins, piece_3, last_piece, at_2,
                    substring(tail_1, at_2 + length(piece_2)) AS tail_2,
                    [tail_2, piece_3] AS both,
                    arrayFirst(i -> substring(both[1], i, length(both[2])) = both[2],
                        arrayMap(i -> i + 1, range(toUInt64(length(tail_2) + 1)))) AS at_3
                FROM
                (
                    SELECT
                        name, pattern,
                        splitByChar('*', pattern) AS pieces,
                        if(length(pieces) = 1, lower(name) = pattern,
                            substring(lower(name), 1, length(pieces[1])) = pieces[1]) AS begins,
                        if(length(pieces) > 2, pieces[2], '') AS piece_2,
                        if(length(pieces) > 3, pieces[3], '') AS piece_3,
                        if(length(pieces) > 1, pieces[-1], '') AS last_piece,
                        substring(lower(name), length(pieces[1]) + 1) AS tail_1,
                        [tail_1, piece_2] AS both,
                        arrayFirst(i -> substring(both[1], i, length(both[2])) = both[2],
                            arrayMap(i -> i + 1, range(toUInt64(length(tail_1) + 1)))) AS at_2
                    FROM
                    (
                        SELECT ifNull(sni, '') AS name
                        FROM firstflight.flow
                        WHERE start_time >= toDateTime('1970-01-01 00:00:00', 'UTC')
                            AND start_time < toDateTime('2100-01-01 00:00:00', 'UTC')
                            AND leg IN ('inbound', 'unknown') AND sni IS NOT NULL
                            AND early_data IN ('accepted', 'rejected', 'unknown')
                            AND early_data_rule IS NULL
                        GROUP BY name
                    ) AS names CROSS JOIN
                    (
                        SELECT pattern
                        FROM firstflight.early_data_rule
                        WHERE throwIf(position(pattern, '?') > 0
                            OR length(splitByChar('*', pattern)) > 4) = 0
                    ) AS patterns
                )
            )
        )
        GROUP BY name
    ) AS fitting USING (name)
) AS of_names ALL INNER JOIN
(
    SELECT pattern AS fits, comment FROM firstflight.early_data_rule WHERE allowed = 0
) AS forbidden USING (fits)
ORDER BY accepted DESC, offered DESC, sni, pattern
