-- SPDX-License-Identifier: Apache-2.0
-- HTTP/2 over TLS 1.3: SETTINGS are no response.
WITH expected (
    flows, tls_version, handshake, handshake_basis, resumed_by, early_data, outcome, failure,
    sni, alpn_offered, answered_early, expected_round_trips, response
) AS (
    VALUES
        (1, 'TLSv1.3', 'full', 'protocol', NULL, 'not_offered', 'completed', NULL,
         'www.example.com', 'h2', NULL, 3, 1)
), seen AS (
    SELECT
        count(*) OVER () AS flows, tls_version, handshake, handshake_basis, resumed_by,
        early_data, outcome, failure, sni, alpn_offered, answered_early, expected_round_trips,
        response_at_ns IS NOT NULL AS response
    FROM flow
)
SELECT '-', * FROM (SELECT * FROM expected EXCEPT SELECT * FROM seen)
UNION ALL
SELECT '+', * FROM (SELECT * FROM seen EXCEPT SELECT * FROM expected);
