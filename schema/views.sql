-- SPDX-License-Identifier: Apache-2.0
--
-- The usual questions as views: core SQL that SQLite 3.37 and later understands, so that every tool
-- that opens the file can ask them. On top of each stands the question that it answers.
--
-- Percentiles interpolate linearly between the two nearest values: with n values of ranks 0 to
-- n - 1, percentile p lies at rank p * (n - 1), and each value weighs max(0, 1 - its distance from
-- there). The functions median() and percentile() of `firstflight sql` give the same.
--
-- Latency views hold only what visitors felt: flows to us (leg 'inbound'), or of unknown leg, as
-- all are without --local. 'tls' is '1.3' or '1.2', which stands for all older versions too.

CREATE VIEW flow_ms AS
-- What happened in each flow, for people: table flow with times in milliseconds and as ISO 8601.
SELECT
    flow_id, flow_uid,
    strftime('%Y-%m-%dT%H:%M:%S', start_epoch_ns / 1000000000, 'unixepoch')
        || printf('.%09dZ', start_epoch_ns % 1000000000) AS start_time,
    strftime('%Y-%m-%dT%H:%M', start_epoch_ns / 1000000000, 'unixepoch') AS minute,
    capture_id, first_packet_no, community_id, transport, ip_version, client_ip, client_port,
    server_ip, server_port, client_prefix, proxied_client_ip, proxied_server_ip, client_basis, leg,
    leg_basis, client_region, client_region_basis, client_country, client_asn, site, host, interface,
    app_protocol, app_category, continues, retried_by, syn_seen, syn_count, syn_ack_count, sides_seen,
    client_packets, server_packets, client_bytes, server_bytes, client_retransmits,
    server_retransmits, client_retransmits_before_response, server_retransmits_before_response,
    loss_wait_ns / 1e6 AS loss_wait_ms, client_gap_bytes, server_gap_bytes, client_boundary_losses,
    server_boundary_losses, duplicates, truncated, clock_step, tunnel, fast_open, client_ttl,
    server_ttl, client_mss, server_mss, ended, ended_by, handshake, handshake_basis,
    handshake_reason, outcome, failure, resumed_by, early_data, early_data_basis, early_data_reason,
    early_data_bytes, early_data_rule, answered_early, resumption_offered, false_start, hello_retry,
    client_certificate, tls_version, cipher_suite, named_group, sni, alpn_offered, alpn, ech, ja4,
    client_hello_complete, client_hello_bytes, server_flight_bytes, psk_identity_hash,
    ticket_key_name, issued_ticket_key_name, client_hello_hash, server_random_hash, preamble,
    start_epoch_ns / 1e9 AS start_epoch_s, syn_ack_at_ns / 1e6 AS syn_ack_at_ms,
    ack_at_ns / 1e6 AS ack_at_ms, client_hello_at_ns / 1e6 AS client_hello_at_ms,
    client_hello_last_at_ns / 1e6 AS client_hello_last_at_ms,
    hello_retry_at_ns / 1e6 AS hello_retry_at_ms, server_hello_at_ns / 1e6 AS server_hello_at_ms,
    client_finished_at_ns / 1e6 AS client_finished_at_ms,
    handshake_done_at_ns / 1e6 AS handshake_done_at_ms,
    first_client_data_at_ns / 1e6 AS first_client_data_at_ms, request_at_ns / 1e6 AS request_at_ms,
    request_packet_no, request_record_no, first_server_data_at_ns / 1e6 AS first_server_data_at_ms,
    response_at_ns / 1e6 AS response_at_ms, response_packet_no, response_record_no,
    response_low_at_ns / 1e6 AS response_low_at_ms,
    response_high_at_ns / 1e6 AS response_high_at_ms, response_basis, response_reason,
    response_last_at_ns / 1e6 AS response_last_at_ms, end_at_ns / 1e6 AS end_at_ms,
    server_rtt_ns / 1e6 AS server_rtt_ms, client_rtt_ns / 1e6 AS client_rtt_ms,
    rtt_ns / 1e6 AS rtt_ms, rtt_basis, vantage, response_ns / 1e6 AS response_ms,
    perceived_ns / 1e6 AS perceived_ms, retried_perceived_ns / 1e6 AS retried_perceived_ms,
    connect_ns / 1e6 AS connect_ms,
    hello_wait_ns / 1e6 AS hello_wait_ms, tls_ns / 1e6 AS tls_ms,
    request_wait_ns / 1e6 AS request_wait_ms, server_wait_ns / 1e6 AS server_wait_ms,
    server_think_ns / 1e6 AS server_think_ms, round_trips, expected_round_trips, flight_stalls
FROM flow;

CREATE VIEW record AS
-- Which TLS records did a flow have, when, how long? One row per record, both sides, in order.
-- RFC 8446 5.1; type_name 'hole' and 'cut' are bytes never captured. ack is the stream offset of
-- the other side that its segment acknowledged, offset its own; NULL ack: not known.
WITH series AS (
    SELECT
        flow_facts.flow_id,
        r.key AS record_no,
        r.value AS record,
        json_extract(flow_facts.facts, '$.unit') AS unit,
        json_extract(flow_facts.facts, '$.packet') AS packet_no,
        json_extract(flow_facts.facts, '$.unit') * json_extract(r.value, '$[3]') AS at_ns,
        json_extract(flow_facts.facts, '$.unit') * json_extract(r.value, '$[8]') AS acked_after_ns
    FROM flow_facts
    JOIN json_each(flow_facts.facts, '$.records') AS r
)
SELECT
    flow_id,
    record_no,
    CASE json_extract(record, '$[0]') WHEN 0 THEN 'client' ELSE 'server' END AS side,
    json_extract(record, '$[1]') AS type,
    json_extract(record, '$[2]') AS len,
    at_ns,
    at_ns + unit * coalesce(json_extract(record, '$[10]'), 0) AS last_at_ns,
    at_ns + acked_after_ns AS acked_at_ns,
    at_ns + coalesce(acked_after_ns, 0) + unit * CASE WHEN json_array_length(record) > 9
        THEN json_extract(record, '$[9]') ELSE 0 END AS all_acked_at_ns,
    packet_no + json_extract(record, '$[4]') AS packet_no,
    packet_no + json_extract(record, '$[4]') + coalesce(json_extract(record, '$[11]'), 0)
        AS last_packet_no,
    json_extract(record, '$[5]') AS offset,
    nullif(json_extract(record, '$[6]'), -1) AS ack,
    json_extract(record, '$[7]') AS flags,
    nullif(coalesce(json_extract(record, '$[12]'), 0) - 1, -1) AS first_message,
    coalesce(json_extract(record, '$[13]'), 0) AS skipped,
    coalesce(json_extract(record, '$[14]'), 0) AS skipped_len,
    coalesce(json_extract(record, '$[15]'), 0) AS content,
    CASE json_extract(record, '$[1]')
        WHEN 0 THEN 'hole' WHEN 1 THEN 'cut' WHEN 20 THEN 'change_cipher_spec' WHEN 21 THEN 'alert'
        WHEN 22 THEN 'handshake' WHEN 23 THEN 'application_data' WHEN 24 THEN 'heartbeat'
    END AS type_name
FROM series;

CREATE VIEW region_latency AS
-- How long did visitors of each region wait for the first byte of the response, by kind of
-- handshake, and how many round trips was that? share is of the flows of the same region and tls.
WITH answered AS (
    SELECT
        client_region, CASE WHEN tls_version LIKE 'TLSv1.3%' THEN '1.3' ELSE '1.2' END AS tls,
        handshake, perceived_ns / 1e6 AS perceived_ms, rtt_ns / 1e6 AS rtt_ms, round_trips,
        expected_round_trips, answered_early
    FROM flow
    WHERE leg IN ('inbound', 'unknown') AND handshake IN ('full', 'resumed', '0-rtt')
        AND perceived_ns IS NOT NULL
), ranked AS (
    SELECT
        *,
        row_number() OVER (class ORDER BY perceived_ms) - 1 AS perceived_rank,
        count(*) OVER class AS n,
        row_number() OVER (class ORDER BY rtt_ms NULLS LAST) - 1 AS rtt_rank,
        row_number() OVER (class ORDER BY round_trips NULLS LAST) - 1 AS trips_rank,
        count(rtt_ms) OVER class AS rtt_n
    FROM answered
    WINDOW class AS (PARTITION BY client_region, tls, handshake)
)
SELECT
    client_region, tls, handshake,
    count(*) AS flows,
    1.0 * count(*) / sum(count(*)) OVER (PARTITION BY client_region, tls) AS share,
    sum(perceived_ms * max(0, 1 - abs(perceived_rank - 0.50 * (n - 1)))) AS perceived_p50_ms,
    sum(perceived_ms * max(0, 1 - abs(perceived_rank - 0.90 * (n - 1)))) AS perceived_p90_ms,
    sum(perceived_ms * max(0, 1 - abs(perceived_rank - 0.99 * (n - 1)))) AS perceived_p99_ms,
    sum(rtt_ms * max(0, 1 - abs(rtt_rank - 0.5 * (rtt_n - 1)))) AS rtt_p50_ms,
    sum(round_trips * max(0, 1 - abs(trips_rank - 0.5 * (rtt_n - 1)))) AS round_trips_p50,
    avg(expected_round_trips) AS expected_round_trips,
    avg(answered_early) AS answered_early_share
FROM ranked
GROUP BY client_region, tls, handshake
ORDER BY client_region, tls DESC, handshake;

CREATE VIEW early_data_gain AS
-- What does 0-RTT save visitors of a region over plain resumption and over full handshakes? Like
-- with like: medians are compared within one region, server name and version of TLS, then averaged
-- by the 0-RTT flows of each name; names without both kinds are left out. A refused offer is no
-- plain resumption and not compared. Negative gains are losses.
WITH answered AS (
    SELECT
        client_region, sni, tls_version, handshake, perceived_ns / 1e6 AS perceived_ms,
        round_trips, answered_early
    FROM flow
    WHERE leg IN ('inbound', 'unknown') AND handshake IN ('full', 'resumed', '0-rtt')
        AND tls_version LIKE 'TLSv1.3%' AND early_data IS NOT 'rejected'
        AND perceived_ns IS NOT NULL AND round_trips IS NOT NULL
), ranked AS (
    SELECT
        *,
        row_number() OVER (class ORDER BY perceived_ms) - 1 AS perceived_rank,
        row_number() OVER (class ORDER BY round_trips) - 1 AS trips_rank,
        count(*) OVER class AS n
    FROM answered
    WINDOW class AS (PARTITION BY client_region, sni, tls_version, handshake)
), class AS (
    SELECT
        client_region, sni, tls_version, handshake,
        count(*) AS flows,
        sum(perceived_ms * max(0, 1 - abs(perceived_rank - 0.5 * (n - 1)))) AS perceived_ms,
        sum(round_trips * max(0, 1 - abs(trips_rank - 0.5 * (n - 1)))) AS round_trips,
        avg(answered_early) AS answered_early
    FROM ranked
    GROUP BY client_region, sni, tls_version, handshake
)
SELECT
    early.client_region,
    other.handshake AS compared_with,
    count(*) AS names,
    sum(early.flows) AS early_flows,
    sum(other.flows) AS other_flows,
    sum(early.flows * early.perceived_ms) / sum(early.flows) AS early_p50_ms,
    sum(early.flows * other.perceived_ms) / sum(early.flows) AS other_p50_ms,
    sum(early.flows * (other.perceived_ms - early.perceived_ms)) / sum(early.flows) AS gain_ms,
    sum(early.flows * (other.round_trips - early.round_trips)) / sum(early.flows)
        AS gain_round_trips,
    sum(early.flows * early.answered_early) / sum(early.flows) AS answered_early_share
FROM class AS early
JOIN class AS other ON other.client_region IS early.client_region AND other.sni IS early.sni
    AND other.tls_version = early.tls_version AND other.handshake <> '0-rtt'
WHERE early.handshake = '0-rtt'
GROUP BY early.client_region, other.handshake
ORDER BY early.client_region, other.handshake DESC;

CREATE VIEW early_data_policy AS
-- For which server names was early data offered or accepted, and may it be there? An offer counts
-- too: a client offers only where a ticket of that server allowed it. finding: 'forbidden' or
-- 'allowed' by the longest pattern of early_data_rule that fits the name, 'no_rule' none fits,
-- 'not_checked' the name is not readable. With ech the name seen may be another one than the one
-- meant.
WITH offered AS (
    SELECT
        sni, early_data_rule, early_data, early_data_basis,
        count(*) AS flows,
        sum(ech) AS ech,
        sum(early_data_bytes) AS early_data_bytes,
        count(DISTINCT ifnull(client_prefix, client_ip)) AS client_prefixes,
        group_concat(DISTINCT site) AS sites,
        min(start_epoch_ns) AS first_ns,
        max(start_epoch_ns) AS last_ns,
        min(flow_id) AS example_flow_id
    FROM flow
    WHERE early_data IN ('accepted', 'rejected', 'unknown') AND leg IN ('inbound', 'unknown')
    GROUP BY sni, early_data_rule, early_data, early_data_basis
), fitted AS (
    SELECT
        *,
        ifnull(early_data_rule, (
            SELECT pattern FROM early_data_rule WHERE lower(sni) GLOB pattern
            ORDER BY length(pattern) DESC, pattern LIMIT 1)) AS fits
    FROM offered
)
SELECT
    CASE
        WHEN rule.allowed = 0 THEN 'forbidden'
        WHEN rule.allowed = 1 THEN 'allowed'
        WHEN early_data_rule IS NOT NULL THEN 'no_rule'
        WHEN sni IS NULL THEN 'not_checked'
        WHEN length(sni) = 32 AND sni NOT GLOB '*[^0-9a-f]*' THEN 'not_checked' -- a hash
        ELSE 'no_rule'
    END AS finding,
    sni, fits AS pattern, early_data, early_data_basis, flows, ech, early_data_bytes,
    client_prefixes, sites,
    strftime('%Y-%m-%dT%H:%M:%SZ', first_ns / 1000000000, 'unixepoch') AS first_time,
    strftime('%Y-%m-%dT%H:%M:%SZ', last_ns / 1000000000, 'unixepoch') AS last_time,
    example_flow_id, rule.comment
FROM fitted
LEFT JOIN early_data_rule AS rule ON rule.pattern = fits
ORDER BY finding = 'forbidden' DESC, early_data, flows DESC, sni;

CREATE VIEW replay AS
-- Which ClientHellos came on more than one connection, and was their early data accepted twice?
-- The same random and binder under different answers: somebody sent a copy. One connection
-- captured at two points or by a mirror port has one answer and counts once, as does a ClientHello
-- that was retransmitted. No row means none seen at these points, not none.
WITH copied AS (
    SELECT client_hello_hash AS hello
    FROM flow
    WHERE client_hello_hash IS NOT NULL AND leg IN ('inbound', 'unknown')
    GROUP BY hello
    HAVING count(DISTINCT server_random_hash) > 1
), connection AS (
    SELECT
        client_hello_hash AS hello, min(sni) AS sni,
        max(early_data IS 'accepted') AS accepted,
        max(early_data IS 'rejected') AND NOT max(early_data IS 'accepted') AS rejected,
        min(client_ip) AS client_ip, min(site) AS site, min(start_epoch_ns) AS start_ns,
        min(flow_id) AS flow_id
    FROM flow
    WHERE server_random_hash IS NOT NULL AND leg IN ('inbound', 'unknown')
        AND client_hello_hash IN (SELECT hello FROM copied)
    GROUP BY client_hello_hash, server_random_hash
)
SELECT
    hello AS client_hello_hash,
    min(sni) AS sni,
    count(*) AS connections,
    sum(accepted) AS accepted,
    sum(rejected) AS rejected,
    count(DISTINCT client_ip) AS clients,
    group_concat(DISTINCT site) AS sites,
    strftime('%Y-%m-%dT%H:%M:%SZ', min(start_ns) / 1000000000, 'unixepoch') AS first_time,
    strftime('%Y-%m-%dT%H:%M:%SZ', max(start_ns) / 1000000000, 'unixepoch') AS last_time,
    group_concat(flow_id) AS flow_ids
FROM connection
GROUP BY hello
ORDER BY accepted DESC, connections DESC, client_hello_hash;

CREATE VIEW ticket_reuse AS
-- Which tickets were used for more than one ClientHello? It lets observers link connections, and a
-- single-use store refuses it; keys agreed on outside of TLS (external PSK) look the same. A
-- replay is no use of its own.
SELECT
    psk_identity_hash,
    min(sni) AS sni,
    count(DISTINCT client_hello_hash) AS uses,
    count(DISTINCT CASE WHEN resumed_by IS NOT NULL THEN client_hello_hash END) AS resumed,
    count(DISTINCT CASE WHEN early_data = 'accepted' THEN client_hello_hash END)
        AS early_data_accepted,
    count(DISTINCT client_prefix) AS client_prefixes,
    group_concat(DISTINCT site) AS sites,
    strftime('%Y-%m-%dT%H:%M:%SZ', min(start_epoch_ns) / 1000000000, 'unixepoch') AS first_time,
    strftime('%Y-%m-%dT%H:%M:%SZ', max(start_epoch_ns) / 1000000000, 'unixepoch') AS last_time,
    min(flow_id) AS example_flow_id
FROM flow
WHERE psk_identity_hash IS NOT NULL AND leg IN ('inbound', 'unknown')
GROUP BY psk_identity_hash
HAVING count(*) > 1 AND count(DISTINCT client_hello_hash) > 1
ORDER BY uses DESC, psk_identity_hash;

CREATE VIEW ticket_key AS
-- Which ticket keys does each machine accept or refuse? Refused here and accepted elsewhere: the
-- key is not shared; refused from some age on: it was rotated away. refused_age_s is the mean time
-- from the key's first sight anywhere to its refusals. A name is a key's when two different tickets
-- bear it; of names that are not, the first 4 bytes when three share them (JDK, mbedTLS); all
-- others may be random bytes (Go, rustls) and stand together under NULL, names says how many.
WITH ticket AS (
    SELECT
        ticket_key_name AS name, ifnull(psk_identity_hash, client_ip) AS ticket, start_epoch_ns
    FROM flow
    WHERE ticket_key_name IS NOT NULL AND leg IN ('inbound', 'unknown')
    UNION ALL
    SELECT issued_ticket_key_name, ifnull(server_random_hash, flow_uid), start_epoch_ns
    FROM flow
    WHERE issued_ticket_key_name IS NOT NULL AND leg IN ('inbound', 'unknown')
), name AS (
    SELECT name, count(DISTINCT ticket) > 1 AS is_key, min(start_epoch_ns) AS first_ns
    FROM ticket
    GROUP BY name
), short AS (
    SELECT substr(name, 1, 8) AS name, min(first_ns) AS first_ns
    FROM name
    WHERE NOT is_key
    GROUP BY substr(name, 1, 8)
    HAVING count(*) > 2
), key AS (
    SELECT
        name.name,
        CASE WHEN is_key THEN name.name ELSE short.name END AS key,
        CASE WHEN is_key THEN name.first_ns ELSE short.first_ns END AS first_ns
    FROM name
    LEFT JOIN short ON short.name = substr(name.name, 1, 8)
), used AS (
    SELECT
        key, ticket_key_name, site, host, flow_id, start_epoch_ns,
        start_epoch_ns - first_ns AS age_ns,
        resumed_by IN ('ticket', 'psk') IS TRUE AS accepted
    FROM flow
    CROSS JOIN key ON key.name = ticket_key_name -- each flow once, in this order
    WHERE handshake IN ('full', 'resumed', '0-rtt') AND leg IN ('inbound', 'unknown')
)
SELECT
    key AS ticket_key_name, site, host,
    count(DISTINCT ticket_key_name) AS names,
    count(*) AS offered,
    sum(accepted) AS accepted,
    sum(NOT accepted) AS refused,
    CASE WHEN key IS NOT NULL THEN
        sum(sum(accepted)) OVER (PARTITION BY key) - sum(accepted) END AS accepted_elsewhere,
    avg(CASE WHEN NOT accepted THEN age_ns END) / 1e9 AS refused_age_s,
    strftime('%Y-%m-%dT%H:%M:%SZ', min(start_epoch_ns) / 1000000000, 'unixepoch') AS first_time,
    strftime('%Y-%m-%dT%H:%M:%SZ', max(start_epoch_ns) / 1000000000, 'unixepoch') AS last_time,
    min(CASE WHEN NOT accepted THEN flow_id END) AS example_refused_flow_id
FROM used
GROUP BY key, site, host
ORDER BY key, site, host;

CREATE VIEW failures AS
-- What failed, how, and how far had it come? phase: 'connect' the server never answered,
-- 'before_hello' no ClientHello came, 'hello' the ClientHello got no ServerHello, 'tls' later in
-- the handshake. Connections that a client dropped or never used are no failures.
SELECT
    CASE
        WHEN server_packets = 0 THEN 'connect'
        WHEN failure = 'refused' THEN 'connect'
        WHEN client_hello_at_ns IS NULL THEN 'before_hello'
        WHEN server_hello_at_ns IS NULL THEN 'hello'
        ELSE 'tls'
    END AS phase,
    failure, leg, client_region, site, host,
    count(*) AS flows,
    count(DISTINCT client_prefix) AS client_prefixes,
    strftime('%Y-%m-%dT%H:%M:%SZ', min(start_epoch_ns) / 1000000000, 'unixepoch') AS first_time,
    strftime('%Y-%m-%dT%H:%M:%SZ', max(start_epoch_ns) / 1000000000, 'unixepoch') AS last_time,
    min(flow_id) AS example_flow_id
FROM flow
WHERE outcome = 'failed'
GROUP BY phase, failure, leg, client_region, site, host
ORDER BY flows DESC, phase, failure;

CREATE VIEW timeline AS
-- How did it go minute by minute? Counts of TLS flows to us; resumption and early data as offered
-- and as accepted, whose ratios tell a client that stopped offering from a server that refuses.
WITH seen AS (
    SELECT
        start_epoch_ns / 60000000000 AS minute_no, handshake, outcome, resumption_offered,
        resumed_by, early_data, answered_early,
        client_retransmits_before_response + server_retransmits_before_response AS retransmits,
        rtt_ns / 1e6 AS rtt_ms, perceived_ns / 1e6 AS perceived_ms
    FROM flow
    WHERE leg IN ('inbound', 'unknown') AND handshake <> 'none'
), ranked AS (
    SELECT
        *,
        row_number() OVER (minute ORDER BY perceived_ms NULLS LAST) - 1 AS perceived_rank,
        count(perceived_ms) OVER minute AS perceived_n,
        row_number() OVER (minute ORDER BY rtt_ms NULLS LAST) - 1 AS rtt_rank,
        count(rtt_ms) OVER minute AS rtt_n
    FROM seen
    WINDOW minute AS (PARTITION BY minute_no)
)
SELECT
    strftime('%Y-%m-%dT%H:%M', minute_no * 60, 'unixepoch') AS minute,
    count(*) AS flows,
    sum(handshake = 'full') AS full,
    sum(handshake = 'resumed') AS resumed,
    sum(handshake = '0-rtt') AS zero_rtt,
    sum(handshake = 'unknown') AS unknown,
    sum(outcome = 'failed') AS failed,
    sum(resumption_offered) AS resumption_offered,
    sum(resumption_offered AND resumed_by IS NOT NULL) AS resumption_accepted,
    sum(early_data IN ('accepted', 'rejected', 'unknown')) AS early_data_offered,
    sum(early_data = 'accepted') AS early_data_accepted,
    sum(answered_early) AS answered_early,
    sum(retransmits) AS retransmits_before_response,
    sum(rtt_ms * max(0, 1 - abs(rtt_rank - 0.5 * (rtt_n - 1)))) AS rtt_p50_ms,
    sum(perceived_ms * max(0, 1 - abs(perceived_rank - 0.5 * (perceived_n - 1))))
        AS perceived_p50_ms,
    sum(perceived_ms * max(0, 1 - abs(perceived_rank - 0.9 * (perceived_n - 1))))
        AS perceived_p90_ms
FROM ranked
GROUP BY minute_no
ORDER BY minute_no;

CREATE VIEW pair AS
-- Which connections were captured at two points, and do both agree on what the client felt?
-- The first is the one nearer to the client. matched_by 'random': both saw the same ClientHello and
-- ServerHello, whatever addresses they carried; 'address': no TLS, but the same addresses and
-- ports within two seconds. way_ms: half of what the second is farther away.
WITH known AS (
    SELECT
        flow_id, point, start_epoch_ns,
        CASE WHEN server_random_hash IS NULL THEN 'address' ELSE 'random' END AS matched_by,
        ifnull(server_random_hash || ifnull(client_hello_hash, ''), community_id) AS identity
    FROM flow JOIN capture USING (capture_id)
), seen AS (
    SELECT *, count(*) OVER (PARTITION BY identity) AS times FROM known WHERE identity IS NOT NULL
), again AS (
    SELECT * FROM seen WHERE times > 1
)
SELECT
    one.flow_id, two.flow_id AS other_flow_id, near.matched_by,
    near.point, far.point AS other_point, one.site, two.site AS other_site,
    (two.client_rtt_ns - one.client_rtt_ns) / 2e6 AS way_ms,
    (two.start_epoch_ns - one.start_epoch_ns) / 1e6 AS start_difference_ms,
    one.perceived_ns / 1e6 AS perceived_ms, two.perceived_ns / 1e6 AS other_perceived_ms,
    (two.perceived_ns - one.perceived_ns) / 1e6 AS perceived_difference_ms,
    one.handshake, two.handshake AS other_handshake
FROM again AS near
JOIN again AS far ON far.identity = near.identity AND far.point <> near.point
    AND (near.matched_by = 'random'
        OR abs(far.start_epoch_ns - near.start_epoch_ns) <= 2000000000)
JOIN flow AS one ON one.flow_id = near.flow_id
JOIN flow AS two ON two.flow_id = far.flow_id
WHERE (ifnull(one.client_rtt_ns, 0), one.flow_id) < (ifnull(two.client_rtt_ns, 0), two.flow_id);

CREATE VIEW point_clock AS
-- How far apart are the clocks of two capture points? From connections that both saw with the same
-- addresses (no NAT) and one SYN and SYN/ACK each, as NTP does (RFC 5905 8): on the way there a
-- packet's times differ by way + offset, on the way back by offset - way. offset_ms: the median of
-- what the other clock is ahead; spread_ms: between the quartiles of it; way_ms: the median time
-- from point to point, negative when the first is the one nearer to the server. Right as far as
-- both ways take equally long.
WITH both AS (
    SELECT
        pair.point, pair.other_point,
        two.start_epoch_ns - one.start_epoch_ns AS there_ns,
        two.start_epoch_ns + two.syn_ack_at_ns - one.start_epoch_ns - one.syn_ack_at_ns AS back_ns
    FROM pair
    JOIN flow AS one ON one.flow_id = pair.flow_id
    JOIN flow AS two ON two.flow_id = pair.other_flow_id
    WHERE one.syn_count = 1 AND two.syn_count = 1
        AND one.syn_ack_count = 1 AND two.syn_ack_count = 1
        AND one.client_port = two.client_port AND one.server_port = two.server_port
        AND one.client_ip IS two.client_ip AND one.server_ip = two.server_ip
), estimate AS (
    SELECT
        min(point, other_point) AS point, max(point, other_point) AS other_point,
        iif(point < other_point, 1, -1) * (there_ns + back_ns) / 2e6 AS offset_ms,
        iif(point < other_point, 1, -1) * (there_ns - back_ns) / 2e6 AS way_ms
    FROM both WHERE back_ns IS NOT NULL
), ranked AS (
    SELECT
        *, count(*) OVER (PARTITION BY point, other_point) AS n,
        row_number() OVER (PARTITION BY point, other_point ORDER BY offset_ms) - 1 AS offset_rank,
        row_number() OVER (PARTITION BY point, other_point ORDER BY way_ms) - 1 AS way_rank
    FROM estimate
)
SELECT
    point, other_point, count(*) AS pairs,
    sum(offset_ms * max(0, 1 - abs(offset_rank - 0.5 * (n - 1)))) AS offset_ms,
    sum(offset_ms * (max(0, 1 - abs(offset_rank - 0.75 * (n - 1)))
        - max(0, 1 - abs(offset_rank - 0.25 * (n - 1))))) AS spread_ms,
    sum(way_ms * max(0, 1 - abs(way_rank - 0.5 * (n - 1)))) AS way_ms
FROM ranked
GROUP BY point, other_point
ORDER BY point, other_point;
