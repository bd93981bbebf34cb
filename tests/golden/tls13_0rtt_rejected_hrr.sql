-- SPDX-License-Identifier: Apache-2.0
-- Early data refused by a HelloRetryRequest; the PSK is kept.
WITH expected (
    flows, tls_version, handshake, handshake_basis, resumed_by, early_data, outcome, failure,
    sni, early_data_basis, early_data_reason, hello_retry, answered_early,
    expected_round_trips, response
) AS (
    VALUES
        (1, 'TLSv1.3', 'resumed', 'protocol', 'psk', 'rejected', 'completed', NULL,
         'www.example.com', 'protocol', 'hello_retry', 1, NULL, 4, 1)
), seen AS (
    SELECT
        count(*) OVER () AS flows, tls_version, handshake, handshake_basis, resumed_by,
        early_data, outcome, failure, sni, early_data_basis, early_data_reason, hello_retry,
        answered_early, expected_round_trips, response_at_ns IS NOT NULL AS response
    FROM flow
)
SELECT '-', * FROM (SELECT * FROM expected EXCEPT SELECT * FROM seen)
UNION ALL
SELECT '+', * FROM (SELECT * FROM seen EXCEPT SELECT * FROM expected);
