-- SPDX-License-Identifier: Apache-2.0
-- A finished handshake without a request, as browsers open them on speculation.
WITH expected (
    flows, tls_version, handshake, early_data, outcome, failure, sni, response
) AS (
    VALUES
        (1, 'TLSv1.3', 'full', 'not_offered', 'unused', NULL, 'www.example.com', 0)
), seen AS (
    SELECT
        count(*) OVER () AS flows, tls_version, handshake, early_data, outcome, failure, sni,
        response_at_ns IS NOT NULL AS response
    FROM flow
)
SELECT '-', * FROM (SELECT * FROM expected EXCEPT SELECT * FROM seen)
UNION ALL
SELECT '+', * FROM (SELECT * FROM seen EXCEPT SELECT * FROM expected);
