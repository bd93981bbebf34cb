-- SPDX-License-Identifier: Apache-2.0
-- The PSK is taken, early data refused: resumed, not 0-RTT, is as sure as the refusal.
WITH expected (
    flows, tls_version, handshake, handshake_basis, resumed_by, early_data, outcome, failure,
    sni, early_data_basis, early_data_reason, hello_retry, answered_early,
    expected_round_trips, response
) AS (
    VALUES
        (1, 'TLSv1.3', 'resumed', 'strong', 'psk', 'rejected', 'completed', NULL,
         'www.example.com', 'strong', 'psk_kept', 0, NULL, 3, 1)
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
