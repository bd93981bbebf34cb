-- SPDX-License-Identifier: Apache-2.0
-- The server speaks TLS 1.3 only and says so to a TLS 1.2 client.
WITH expected (
    flows, tls_version, handshake, early_data, outcome, failure, sni, response
) AS (
    VALUES
        (1, NULL, 'unknown', 'not_offered', 'failed', 'protocol_version', 'www.example.com', 0)
), seen AS (
    SELECT
        count(*) OVER () AS flows, tls_version, handshake, early_data, outcome, failure, sni,
        response_at_ns IS NOT NULL AS response
    FROM flow
)
SELECT '-', * FROM (SELECT * FROM expected EXCEPT SELECT * FROM seen)
UNION ALL
SELECT '+', * FROM (SELECT * FROM seen EXCEPT SELECT * FROM expected);
