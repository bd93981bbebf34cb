-- SPDX-License-Identifier: Apache-2.0
-- One ticket offered twice to a server that takes each once; it answers after Finished.
WITH expected (
    flows, tls_version, handshake, handshake_basis, resumed_by, early_data, outcome, failure,
    sni, early_data_basis, hello_retry, answered_early, expected_round_trips, response,
    tickets
) AS (
    VALUES
        (2, 'TLSv1.3', '0-rtt', 'strong', 'psk', 'accepted', 'completed', NULL,
         'www.example.com', 'strong', 0, 0, 3, 1, 1),
        (2, 'TLSv1.3', 'full', 'protocol', NULL, 'rejected', 'completed', NULL,
         'www.example.com', 'protocol', 0, NULL, 3, 1, 1)
), seen AS (
    SELECT
        count(*) OVER () AS flows, tls_version, handshake, handshake_basis, resumed_by,
        early_data, outcome, failure, sni, early_data_basis, hello_retry, answered_early,
        expected_round_trips, response_at_ns IS NOT NULL AS response, (SELECT count(DISTINCT
        psk_identity_hash) FROM flow) AS tickets
    FROM flow
)
SELECT '-', * FROM (SELECT * FROM expected EXCEPT SELECT * FROM seen)
UNION ALL
SELECT '+', * FROM (SELECT * FROM seen EXCEPT SELECT * FROM expected);
