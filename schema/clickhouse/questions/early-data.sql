-- SPDX-License-Identifier: Apache-2.0
-- What became of early data, by server name? The columns of `firstflight report early-data`: flows,
-- early data offered, sent with the ClientHello, accepted, rejected (and by which reason how often),
-- not known; answered before the client's Finished or only after it; bytes.
SELECT
    if(nameless, NULL, name) AS sni,
    sum(n) AS flows,
    sum(offers) AS offered,
    sum(sends) AS sent,
    sum(accepts) AS accepted,
    sum(rejects) AS rejected,
    sum(unknowns) AS unknown,
    sum(answered) AS answered_early,
    sum(lates) AS late,
    if(sum(offers_with_bytes) = 0, NULL, sum(sent_bytes)) AS early_data_bytes,
    nullIf(arrayStringConcat(arrayMap(x -> concat(x.2, ' ', toString(x.1)),
        arraySort(x -> (-x.1, x.2), groupArrayIf((toInt64(rejects), reason), rejects > 0))), ', '), '')
        AS rejected_by
FROM
(
    SELECT
        ifNull(sni, '') AS name, isNull(sni) AS nameless,
        if(ifNull(early_data = 'rejected', 0), ifNull(early_data_reason, 'unknown'), '') AS reason,
        count() AS n,
        countIf(ifNull(early_data IN ('accepted', 'rejected', 'unknown'), 0)) AS offers,
        countIf(ifNull(early_data IN ('accepted', 'rejected', 'unknown')
            AND early_data_bytes > 0, 0)) AS sends,
        countIf(ifNull(early_data = 'accepted', 0)) AS accepts,
        countIf(ifNull(early_data = 'rejected', 0)) AS rejects,
        countIf(ifNull(early_data = 'unknown', 0)) AS unknowns,
        countIf(ifNull(answered_early = 1, 0)) AS answered,
        countIf(ifNull(answered_early = 0, 0)) AS lates,
        countIf(ifNull(early_data IN ('accepted', 'rejected', 'unknown'), 0)
            AND early_data_bytes IS NOT NULL) AS offers_with_bytes,
        sumIf(ifNull(early_data_bytes, 0),
            ifNull(early_data IN ('accepted', 'rejected', 'unknown'), 0)) AS sent_bytes
    FROM firstflight.flow
    WHERE start_time >= toDateTime('1970-01-01 00:00:00', 'UTC')
        AND start_time < toDateTime('2100-01-01 00:00:00', 'UTC')
        AND leg IN ('inbound', 'unknown') AND handshake <> 'none'
    GROUP BY name, nameless, reason
)
GROUP BY name, nameless
HAVING offered > 0
ORDER BY offered DESC, name
