-- SPDX-License-Identifier: Apache-2.0
-- Nobody listens at that port.
WITH expected (
    flows, tls_version, handshake, early_data, outcome, failure, sni, response
) AS (
    VALUES
        (1, NULL, 'none', NULL, 'failed', 'refused', NULL, 0)
), seen AS (
    SELECT
        count(*) OVER () AS flows, tls_version, handshake, early_data, outcome, failure, sni,
        response_at_ns IS NOT NULL AS response
    FROM flow
)
SELECT '-', * FROM (SELECT * FROM expected EXCEPT SELECT * FROM seen)
UNION ALL
SELECT '+', * FROM (SELECT * FROM seen EXCEPT SELECT * FROM expected);
