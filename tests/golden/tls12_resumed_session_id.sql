-- SPDX-License-Identifier: Apache-2.0
-- TLS 1.2 resumed by session id, without tickets.
WITH expected (
    flows, tls_version, handshake, handshake_basis, resumed_by, early_data, outcome, failure,
    sni, resumption_offered, expected_round_trips, response
) AS (
    VALUES
        (1, 'TLSv1.2', 'resumed', 'protocol', 'session_id', 'not_offered', 'completed', NULL,
         'www.example.com', 1, 3, 1)
), seen AS (
    SELECT
        count(*) OVER () AS flows, tls_version, handshake, handshake_basis, resumed_by,
        early_data, outcome, failure, sni, resumption_offered, expected_round_trips,
        response_at_ns IS NOT NULL AS response
    FROM flow
)
SELECT '-', * FROM (SELECT * FROM expected EXCEPT SELECT * FROM seen)
UNION ALL
SELECT '+', * FROM (SELECT * FROM seen EXCEPT SELECT * FROM expected);
