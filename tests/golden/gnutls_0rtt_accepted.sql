-- SPDX-License-Identifier: Apache-2.0
-- GnuTLS accepts early data, but this program never answers it: tickets are no response.
WITH expected (
    flows, tls_version, handshake, handshake_basis, resumed_by, early_data, outcome, failure,
    sni, early_data_basis, hello_retry, answered_early, response
) AS (
    VALUES
        (1, 'TLSv1.3', '0-rtt', 'strong', 'psk', 'accepted', 'completed', NULL,
         'www.example.com', 'strong', 0, NULL, 0)
), seen AS (
    SELECT
        count(*) OVER () AS flows, tls_version, handshake, handshake_basis, resumed_by,
        early_data, outcome, failure, sni, early_data_basis, hello_retry, answered_early,
        response_at_ns IS NOT NULL AS response
    FROM flow
)
SELECT '-', * FROM (SELECT * FROM expected EXCEPT SELECT * FROM seen)
UNION ALL
SELECT '+', * FROM (SELECT * FROM seen EXCEPT SELECT * FROM expected);
