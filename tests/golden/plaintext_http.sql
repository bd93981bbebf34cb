-- SPDX-License-Identifier: Apache-2.0
-- Plaintext HTTP: no TLS, the response is the first payload that answers the request.
WITH expected (
    flows, tls_version, handshake, early_data, outcome, failure, expected_round_trips,
    response
) AS (
    VALUES
        (1, NULL, 'none', NULL, 'completed', NULL, 2, 1)
), seen AS (
    SELECT
        count(*) OVER () AS flows, tls_version, handshake, early_data, outcome, failure,
        expected_round_trips, response_at_ns IS NOT NULL AS response
    FROM flow
)
SELECT '-', * FROM (SELECT * FROM expected EXCEPT SELECT * FROM seen)
UNION ALL
SELECT '+', * FROM (SELECT * FROM seen EXCEPT SELECT * FROM expected);
