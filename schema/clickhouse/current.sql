-- SPDX-License-Identifier: Apache-2.0
-- Made by schema/gen_export.py from schema/flow.sql; do not edit.
--
-- Tables of ClickHouse for `firstflight export --to clickhouse`, for releases of today.
-- README.md beside this file says how they work together, and what servers must be told before:
-- a cluster named firstflight, macros shard and replica, and ZooKeeper or Keeper.
-- What each column means stands in ../flow.sql.

CREATE DATABASE IF NOT EXISTS firstflight ON CLUSTER firstflight;

-- flow: what one shard keeps

CREATE TABLE IF NOT EXISTS firstflight.flow_local ON CLUSTER firstflight (
    flow_id Int64 CODEC(ZSTD(1)),
    flow_uid FixedString(32) CODEC(ZSTD(1)),
    capture_id Int64 CODEC(ZSTD(1)),
    first_packet_no Int64 CODEC(ZSTD(1)),
    community_id Nullable(String) CODEC(ZSTD(1)),
    transport Enum8('tcp' = 1, 'quic' = 2) CODEC(ZSTD(1)),
    ip_version UInt8 CODEC(ZSTD(1)),
    client_ip Nullable(String) CODEC(ZSTD(1)),
    client_port Int64 CODEC(ZSTD(1)),
    server_ip String CODEC(ZSTD(1)),
    server_port Int64 CODEC(ZSTD(1)),
    client_prefix Nullable(String) CODEC(ZSTD(1)),
    proxied_client_ip Nullable(String) CODEC(ZSTD(1)),
    proxied_server_ip Nullable(String) CODEC(ZSTD(1)),
    client_basis Enum8('syn' = 1, 'syn_ack' = 2, 'client_hello' = 3, 'server_hello' = 4, 'port' = 5, 'order' = 6) CODEC(ZSTD(1)),
    leg Enum8('inbound' = 1, 'outbound' = 2, 'internal' = 3, 'unknown' = 4) CODEC(ZSTD(1)),
    leg_basis Nullable(Enum8('local' = 1, 'guess' = 2)) CODEC(ZSTD(1)),
    client_region LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    client_region_basis Nullable(Enum8('clients' = 1, 'proxy' = 2, 'capture' = 3)) CODEC(ZSTD(1)),
    client_country LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    client_asn Nullable(Int64) CODEC(ZSTD(1)),
    site LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    host LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    interface LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    app_protocol LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    app_category LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    continues UInt8 CODEC(ZSTD(1)),
    retried_by Nullable(String) CODEC(ZSTD(1)),
    syn_seen UInt8 CODEC(ZSTD(1)),
    syn_count Int64 CODEC(ZSTD(1)),
    syn_ack_count Int64 CODEC(ZSTD(1)),
    sides_seen Enum8('both' = 1, 'client' = 2, 'server' = 3) CODEC(ZSTD(1)),
    client_packets Int64 CODEC(ZSTD(1)),
    server_packets Int64 CODEC(ZSTD(1)),
    client_bytes Int64 CODEC(ZSTD(1)),
    server_bytes Int64 CODEC(ZSTD(1)),
    client_retransmits Int64 CODEC(ZSTD(1)),
    server_retransmits Int64 CODEC(ZSTD(1)),
    client_retransmits_before_response Nullable(Int64) CODEC(ZSTD(1)),
    server_retransmits_before_response Nullable(Int64) CODEC(ZSTD(1)),
    loss_wait_ns Nullable(Int64) CODEC(ZSTD(1)),
    client_gap_bytes Int64 CODEC(ZSTD(1)),
    server_gap_bytes Int64 CODEC(ZSTD(1)),
    client_boundary_losses Int64 CODEC(ZSTD(1)),
    server_boundary_losses Int64 CODEC(ZSTD(1)),
    duplicates Int64 CODEC(ZSTD(1)),
    truncated Int64 CODEC(ZSTD(1)),
    clock_step UInt8 CODEC(ZSTD(1)),
    tunnel LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    fast_open UInt8 CODEC(ZSTD(1)),
    client_ttl Nullable(Int64) CODEC(ZSTD(1)),
    server_ttl Nullable(Int64) CODEC(ZSTD(1)),
    client_mss Nullable(Int64) CODEC(ZSTD(1)),
    server_mss Nullable(Int64) CODEC(ZSTD(1)),
    ended Enum8('fin' = 1, 'reset' = 2, 'idle' = 3, 'capture_end' = 4, 'evicted' = 5) CODEC(ZSTD(1)),
    ended_by Nullable(Enum8('client' = 1, 'server' = 2)) CODEC(ZSTD(1)),
    handshake Enum8('full' = 1, 'resumed' = 2, '0-rtt' = 3, 'unknown' = 4, 'none' = 5) CODEC(ZSTD(1)),
    handshake_basis Nullable(Enum8('keylog' = 1, 'protocol' = 2, 'strong' = 3, 'weak' = 4)) CODEC(ZSTD(1)),
    handshake_reason LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    outcome Enum8('completed' = 1, 'failed' = 2, 'abandoned' = 3, 'unused' = 4, 'unseen' = 5) CODEC(ZSTD(1)),
    failure LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    resumed_by Nullable(Enum8('session_id' = 1, 'ticket' = 2, 'psk' = 3)) CODEC(ZSTD(1)),
    early_data Nullable(Enum8('not_offered' = 1, 'accepted' = 2, 'rejected' = 3, 'unknown' = 4)) CODEC(ZSTD(1)),
    early_data_basis Nullable(Enum8('keylog' = 1, 'protocol' = 2, 'strong' = 3, 'weak' = 4)) CODEC(ZSTD(1)),
    early_data_reason LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    early_data_bytes Nullable(Int64) CODEC(ZSTD(1)),
    early_data_rule LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    answered_early Nullable(UInt8) CODEC(ZSTD(1)),
    resumption_offered UInt8 CODEC(ZSTD(1)),
    false_start Nullable(UInt8) CODEC(ZSTD(1)),
    hello_retry Nullable(UInt8) CODEC(ZSTD(1)),
    client_certificate Nullable(UInt8) CODEC(ZSTD(1)),
    tls_version LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    cipher_suite LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    named_group LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    sni Nullable(String) CODEC(ZSTD(1)),
    alpn_offered LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    alpn LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    ech Nullable(UInt8) CODEC(ZSTD(1)),
    ja4 LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    client_hello_complete Nullable(UInt8) CODEC(ZSTD(1)),
    client_hello_bytes Nullable(Int64) CODEC(ZSTD(1)),
    server_flight_bytes Nullable(Int64) CODEC(ZSTD(1)),
    psk_identity_hash Nullable(String) CODEC(ZSTD(1)),
    ticket_key_name Nullable(String) CODEC(ZSTD(1)),
    issued_ticket_key_name Nullable(String) CODEC(ZSTD(1)),
    client_hello_hash Nullable(String) CODEC(ZSTD(1)),
    server_random_hash Nullable(String) CODEC(ZSTD(1)),
    preamble LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    start_epoch_ns Int64 CODEC(Delta, ZSTD(1)),
    syn_ack_at_ns Nullable(Int64) CODEC(ZSTD(1)),
    ack_at_ns Nullable(Int64) CODEC(ZSTD(1)),
    client_hello_at_ns Nullable(Int64) CODEC(ZSTD(1)),
    client_hello_last_at_ns Nullable(Int64) CODEC(ZSTD(1)),
    hello_retry_at_ns Nullable(Int64) CODEC(ZSTD(1)),
    server_hello_at_ns Nullable(Int64) CODEC(ZSTD(1)),
    client_finished_at_ns Nullable(Int64) CODEC(ZSTD(1)),
    handshake_done_at_ns Nullable(Int64) CODEC(ZSTD(1)),
    first_client_data_at_ns Nullable(Int64) CODEC(ZSTD(1)),
    request_at_ns Nullable(Int64) CODEC(ZSTD(1)),
    request_packet_no Nullable(Int64) CODEC(ZSTD(1)),
    request_record_no Nullable(Int64) CODEC(ZSTD(1)),
    first_server_data_at_ns Nullable(Int64) CODEC(ZSTD(1)),
    response_at_ns Nullable(Int64) CODEC(ZSTD(1)),
    response_packet_no Nullable(Int64) CODEC(ZSTD(1)),
    response_record_no Nullable(Int64) CODEC(ZSTD(1)),
    response_low_at_ns Nullable(Int64) CODEC(ZSTD(1)),
    response_high_at_ns Nullable(Int64) CODEC(ZSTD(1)),
    response_basis Nullable(Enum8('keylog' = 1, 'protocol' = 2, 'strong' = 3, 'weak' = 4)) CODEC(ZSTD(1)),
    response_reason LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    response_last_at_ns Nullable(Int64) CODEC(ZSTD(1)),
    end_at_ns Int64 CODEC(ZSTD(1)),
    server_rtt_ns Nullable(Int64) CODEC(ZSTD(1)),
    client_rtt_ns Nullable(Int64) CODEC(ZSTD(1)),
    rtt_ns Nullable(Int64) CODEC(ZSTD(1)),
    rtt_basis Nullable(Enum8('ack' = 1, 'neighbour' = 2, 'data' = 3)) CODEC(ZSTD(1)),
    vantage Nullable(Enum8('client' = 1, 'server' = 2, 'middle' = 3, 'local' = 4)) CODEC(ZSTD(1)),
    response_ns Nullable(Int64) CODEC(ZSTD(1)),
    perceived_ns Nullable(Int64) CODEC(ZSTD(1)),
    retried_perceived_ns Nullable(Int64) CODEC(ZSTD(1)),
    connect_ns Nullable(Int64) CODEC(ZSTD(1)),
    hello_wait_ns Nullable(Int64) CODEC(ZSTD(1)),
    tls_ns Nullable(Int64) CODEC(ZSTD(1)),
    request_wait_ns Nullable(Int64) CODEC(ZSTD(1)),
    server_wait_ns Nullable(Int64) CODEC(ZSTD(1)),
    server_think_ns Nullable(Int64) CODEC(ZSTD(1)),
    round_trips Nullable(Float64) CODEC(ZSTD(1)),
    expected_round_trips Nullable(Int64) CODEC(ZSTD(1)),
    flight_stalls Nullable(Int64) CODEC(ZSTD(1)),
    point LowCardinality(String) CODEC(ZSTD(1)),
    capture_path String CODEC(ZSTD(1)),
    capture_begin_epoch_ns Nullable(Int64) CODEC(ZSTD(1)),
    capture_region LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    capture_labels Nullable(String) CODEC(ZSTD(1)),
    row_version UInt64 MATERIALIZED toUInt64(end_at_ns) CODEC(ZSTD(1)),
    start_time DateTime('UTC') MATERIALIZED toDateTime(intDiv(start_epoch_ns, 1000000000), 'UTC') CODEC(Delta, ZSTD(1)),
    start_time_ns ALIAS fromUnixTimestamp64Nano(start_epoch_ns, 'UTC'),
    client_address ALIAS toIPv6OrDefault(replaceRegexpOne(client_ip, '/.*', '')),
    server_address ALIAS toIPv6OrDefault(server_ip)
) ENGINE = ReplicatedReplacingMergeTree(
    '/clickhouse/tables/{shard}/firstflight/flow_local', '{replica}', row_version)
PARTITION BY toYYYYMMDD(start_time)
ORDER BY (
    start_time, flow_uid);

-- flow: rows go in here, each to its shard

CREATE TABLE IF NOT EXISTS firstflight.flow_load ON CLUSTER firstflight (
    flow_id Int64,
    flow_uid FixedString(32),
    capture_id Int64,
    first_packet_no Int64,
    community_id Nullable(String),
    transport Enum8('tcp' = 1, 'quic' = 2),
    ip_version UInt8,
    client_ip Nullable(String),
    client_port Int64,
    server_ip String,
    server_port Int64,
    client_prefix Nullable(String),
    proxied_client_ip Nullable(String),
    proxied_server_ip Nullable(String),
    client_basis Enum8('syn' = 1, 'syn_ack' = 2, 'client_hello' = 3, 'server_hello' = 4, 'port' = 5, 'order' = 6),
    leg Enum8('inbound' = 1, 'outbound' = 2, 'internal' = 3, 'unknown' = 4),
    leg_basis Nullable(Enum8('local' = 1, 'guess' = 2)),
    client_region LowCardinality(Nullable(String)),
    client_region_basis Nullable(Enum8('clients' = 1, 'proxy' = 2, 'capture' = 3)),
    client_country LowCardinality(Nullable(String)),
    client_asn Nullable(Int64),
    site LowCardinality(Nullable(String)),
    host LowCardinality(Nullable(String)),
    interface LowCardinality(Nullable(String)),
    app_protocol LowCardinality(Nullable(String)),
    app_category LowCardinality(Nullable(String)),
    continues UInt8,
    retried_by Nullable(String),
    syn_seen UInt8,
    syn_count Int64,
    syn_ack_count Int64,
    sides_seen Enum8('both' = 1, 'client' = 2, 'server' = 3),
    client_packets Int64,
    server_packets Int64,
    client_bytes Int64,
    server_bytes Int64,
    client_retransmits Int64,
    server_retransmits Int64,
    client_retransmits_before_response Nullable(Int64),
    server_retransmits_before_response Nullable(Int64),
    loss_wait_ns Nullable(Int64),
    client_gap_bytes Int64,
    server_gap_bytes Int64,
    client_boundary_losses Int64,
    server_boundary_losses Int64,
    duplicates Int64,
    truncated Int64,
    clock_step UInt8,
    tunnel LowCardinality(Nullable(String)),
    fast_open UInt8,
    client_ttl Nullable(Int64),
    server_ttl Nullable(Int64),
    client_mss Nullable(Int64),
    server_mss Nullable(Int64),
    ended Enum8('fin' = 1, 'reset' = 2, 'idle' = 3, 'capture_end' = 4, 'evicted' = 5),
    ended_by Nullable(Enum8('client' = 1, 'server' = 2)),
    handshake Enum8('full' = 1, 'resumed' = 2, '0-rtt' = 3, 'unknown' = 4, 'none' = 5),
    handshake_basis Nullable(Enum8('keylog' = 1, 'protocol' = 2, 'strong' = 3, 'weak' = 4)),
    handshake_reason LowCardinality(Nullable(String)),
    outcome Enum8('completed' = 1, 'failed' = 2, 'abandoned' = 3, 'unused' = 4, 'unseen' = 5),
    failure LowCardinality(Nullable(String)),
    resumed_by Nullable(Enum8('session_id' = 1, 'ticket' = 2, 'psk' = 3)),
    early_data Nullable(Enum8('not_offered' = 1, 'accepted' = 2, 'rejected' = 3, 'unknown' = 4)),
    early_data_basis Nullable(Enum8('keylog' = 1, 'protocol' = 2, 'strong' = 3, 'weak' = 4)),
    early_data_reason LowCardinality(Nullable(String)),
    early_data_bytes Nullable(Int64),
    early_data_rule LowCardinality(Nullable(String)),
    answered_early Nullable(UInt8),
    resumption_offered UInt8,
    false_start Nullable(UInt8),
    hello_retry Nullable(UInt8),
    client_certificate Nullable(UInt8),
    tls_version LowCardinality(Nullable(String)),
    cipher_suite LowCardinality(Nullable(String)),
    named_group LowCardinality(Nullable(String)),
    sni Nullable(String),
    alpn_offered LowCardinality(Nullable(String)),
    alpn LowCardinality(Nullable(String)),
    ech Nullable(UInt8),
    ja4 LowCardinality(Nullable(String)),
    client_hello_complete Nullable(UInt8),
    client_hello_bytes Nullable(Int64),
    server_flight_bytes Nullable(Int64),
    psk_identity_hash Nullable(String),
    ticket_key_name Nullable(String),
    issued_ticket_key_name Nullable(String),
    client_hello_hash Nullable(String),
    server_random_hash Nullable(String),
    preamble LowCardinality(Nullable(String)),
    start_epoch_ns Int64,
    syn_ack_at_ns Nullable(Int64),
    ack_at_ns Nullable(Int64),
    client_hello_at_ns Nullable(Int64),
    client_hello_last_at_ns Nullable(Int64),
    hello_retry_at_ns Nullable(Int64),
    server_hello_at_ns Nullable(Int64),
    client_finished_at_ns Nullable(Int64),
    handshake_done_at_ns Nullable(Int64),
    first_client_data_at_ns Nullable(Int64),
    request_at_ns Nullable(Int64),
    request_packet_no Nullable(Int64),
    request_record_no Nullable(Int64),
    first_server_data_at_ns Nullable(Int64),
    response_at_ns Nullable(Int64),
    response_packet_no Nullable(Int64),
    response_record_no Nullable(Int64),
    response_low_at_ns Nullable(Int64),
    response_high_at_ns Nullable(Int64),
    response_basis Nullable(Enum8('keylog' = 1, 'protocol' = 2, 'strong' = 3, 'weak' = 4)),
    response_reason LowCardinality(Nullable(String)),
    response_last_at_ns Nullable(Int64),
    end_at_ns Int64,
    server_rtt_ns Nullable(Int64),
    client_rtt_ns Nullable(Int64),
    rtt_ns Nullable(Int64),
    rtt_basis Nullable(Enum8('ack' = 1, 'neighbour' = 2, 'data' = 3)),
    vantage Nullable(Enum8('client' = 1, 'server' = 2, 'middle' = 3, 'local' = 4)),
    response_ns Nullable(Int64),
    perceived_ns Nullable(Int64),
    retried_perceived_ns Nullable(Int64),
    connect_ns Nullable(Int64),
    hello_wait_ns Nullable(Int64),
    tls_ns Nullable(Int64),
    request_wait_ns Nullable(Int64),
    server_wait_ns Nullable(Int64),
    server_think_ns Nullable(Int64),
    round_trips Nullable(Float64),
    expected_round_trips Nullable(Int64),
    flight_stalls Nullable(Int64),
    point LowCardinality(String),
    capture_path String,
    capture_begin_epoch_ns Nullable(Int64),
    capture_region LowCardinality(Nullable(String)),
    capture_labels Nullable(String)
) ENGINE = Distributed(firstflight, firstflight, flow_local, cityHash64(flow_uid));

-- flow: read it here, each row once, from all shards

CREATE VIEW IF NOT EXISTS firstflight.flow_once ON CLUSTER firstflight AS
SELECT *, start_time, start_time_ns, client_address, server_address
FROM firstflight.flow_local FINAL;

CREATE TABLE IF NOT EXISTS firstflight.flow ON CLUSTER firstflight
AS firstflight.flow_once
ENGINE = Distributed(firstflight, firstflight, flow_once);

-- capture: what one shard keeps

CREATE TABLE IF NOT EXISTS firstflight.capture_local ON CLUSTER firstflight (
    capture_id Int64 CODEC(ZSTD(1)),
    path String CODEC(ZSTD(1)),
    point LowCardinality(String) CODEC(ZSTD(1)),
    content_hash String CODEC(ZSTD(1)),
    content_len Int64 CODEC(ZSTD(1)),
    file_begin_epoch_ns Nullable(Int64) CODEC(ZSTD(1)),
    file_size Int64 CODEC(ZSTD(1)),
    file_mtime_ns Nullable(Int64) CODEC(ZSTD(1)),
    format LowCardinality(String) CODEC(ZSTD(1)),
    link_types LowCardinality(String) CODEC(ZSTD(1)),
    snaplen Nullable(Int64) CODEC(ZSTD(1)),
    packets Int64 CODEC(ZSTD(1)),
    bytes Int64 CODEC(ZSTD(1)),
    kernel_drops Nullable(Int64) CODEC(ZSTD(1)),
    first_packet_epoch_ns Nullable(Int64) CODEC(ZSTD(1)),
    last_packet_epoch_ns Nullable(Int64) CODEC(ZSTD(1)),
    site LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    host LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    region LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    labels Nullable(String) CODEC(ZSTD(1)),
    interfaces LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    late_packets Nullable(Int64) CODEC(ZSTD(1)),
    clock_steps Nullable(Int64) CODEC(ZSTD(1)),
    damage Nullable(String) CODEC(ZSTD(1)),
    ingested_at String CODEC(ZSTD(1)),
    program_version LowCardinality(String) CODEC(ZSTD(1)),
    row_version UInt64 MATERIALIZED toUInt64(content_len) CODEC(ZSTD(1))
) ENGINE = ReplicatedReplacingMergeTree(
    '/clickhouse/tables/{shard}/firstflight/capture_local', '{replica}', row_version)
ORDER BY (
    point, ifNull(file_begin_epoch_ns, 0), if(isNull(file_begin_epoch_ns), path, ''));

-- capture: rows go in here, each to its shard

CREATE TABLE IF NOT EXISTS firstflight.capture_load ON CLUSTER firstflight (
    capture_id Int64,
    path String,
    point LowCardinality(String),
    content_hash String,
    content_len Int64,
    file_begin_epoch_ns Nullable(Int64),
    file_size Int64,
    file_mtime_ns Nullable(Int64),
    format LowCardinality(String),
    link_types LowCardinality(String),
    snaplen Nullable(Int64),
    packets Int64,
    bytes Int64,
    kernel_drops Nullable(Int64),
    first_packet_epoch_ns Nullable(Int64),
    last_packet_epoch_ns Nullable(Int64),
    site LowCardinality(Nullable(String)),
    host LowCardinality(Nullable(String)),
    region LowCardinality(Nullable(String)),
    labels Nullable(String),
    interfaces LowCardinality(Nullable(String)),
    late_packets Nullable(Int64),
    clock_steps Nullable(Int64),
    damage Nullable(String),
    ingested_at String,
    program_version LowCardinality(String)
) ENGINE = Distributed(firstflight, firstflight, capture_local, cityHash64(point));

-- capture: read it here, each row once, from all shards

CREATE VIEW IF NOT EXISTS firstflight.capture_once ON CLUSTER firstflight AS
SELECT *
FROM firstflight.capture_local FINAL;

CREATE TABLE IF NOT EXISTS firstflight.capture ON CLUSTER firstflight
AS firstflight.capture_once
ENGINE = Distributed(firstflight, firstflight, capture_once);

-- drop_count: what one shard keeps

CREATE TABLE IF NOT EXISTS firstflight.drop_count_local ON CLUSTER firstflight (
    capture_id Int64 CODEC(ZSTD(1)),
    reason LowCardinality(String) CODEC(ZSTD(1)),
    packets Int64 CODEC(ZSTD(1)),
    point LowCardinality(String) CODEC(ZSTD(1)),
    capture_path String CODEC(ZSTD(1)),
    capture_begin_epoch_ns Nullable(Int64) CODEC(ZSTD(1)),
    capture_region LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    capture_labels Nullable(String) CODEC(ZSTD(1)),
    site LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    host LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    row_version UInt64 MATERIALIZED toUInt64(packets) CODEC(ZSTD(1))
) ENGINE = ReplicatedReplacingMergeTree(
    '/clickhouse/tables/{shard}/firstflight/drop_count_local', '{replica}', row_version)
ORDER BY (
    point, ifNull(capture_begin_epoch_ns, 0), if(isNull(capture_begin_epoch_ns), capture_path, ''), reason);

-- drop_count: rows go in here, each to its shard

CREATE TABLE IF NOT EXISTS firstflight.drop_count_load ON CLUSTER firstflight (
    capture_id Int64,
    reason LowCardinality(String),
    packets Int64,
    point LowCardinality(String),
    capture_path String,
    capture_begin_epoch_ns Nullable(Int64),
    capture_region LowCardinality(Nullable(String)),
    capture_labels Nullable(String),
    site LowCardinality(Nullable(String)),
    host LowCardinality(Nullable(String))
) ENGINE = Distributed(firstflight, firstflight, drop_count_local, cityHash64(point));

-- drop_count: read it here, each row once, from all shards

CREATE VIEW IF NOT EXISTS firstflight.drop_count_once ON CLUSTER firstflight AS
SELECT *
FROM firstflight.drop_count_local FINAL;

CREATE TABLE IF NOT EXISTS firstflight.drop_count ON CLUSTER firstflight
AS firstflight.drop_count_once
ENGINE = Distributed(firstflight, firstflight, drop_count_once);

-- half_open: what one shard keeps

CREATE TABLE IF NOT EXISTS firstflight.half_open_local ON CLUSTER firstflight (
    capture_id Int64 CODEC(ZSTD(1)),
    server_ip String CODEC(ZSTD(1)),
    server_port Int64 CODEC(ZSTD(1)),
    second_epoch Int64 CODEC(ZSTD(1)),
    syns Int64 CODEC(ZSTD(1)),
    client_prefixes Int64 CODEC(ZSTD(1)),
    point LowCardinality(String) CODEC(ZSTD(1)),
    capture_path String CODEC(ZSTD(1)),
    capture_begin_epoch_ns Nullable(Int64) CODEC(ZSTD(1)),
    capture_region LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    capture_labels Nullable(String) CODEC(ZSTD(1)),
    site LowCardinality(Nullable(String)) CODEC(ZSTD(1)),
    host LowCardinality(Nullable(String)) CODEC(ZSTD(1))
) ENGINE = ReplicatedReplacingMergeTree(
    '/clickhouse/tables/{shard}/firstflight/half_open_local', '{replica}')
ORDER BY (
    point, server_ip, server_port, second_epoch);

-- half_open: rows go in here, each to its shard

CREATE TABLE IF NOT EXISTS firstflight.half_open_load ON CLUSTER firstflight (
    capture_id Int64,
    server_ip String,
    server_port Int64,
    second_epoch Int64,
    syns Int64,
    client_prefixes Int64,
    point LowCardinality(String),
    capture_path String,
    capture_begin_epoch_ns Nullable(Int64),
    capture_region LowCardinality(Nullable(String)),
    capture_labels Nullable(String),
    site LowCardinality(Nullable(String)),
    host LowCardinality(Nullable(String))
) ENGINE = Distributed(firstflight, firstflight, half_open_local, cityHash64(point));

-- half_open: read it here, each row once, from all shards

CREATE VIEW IF NOT EXISTS firstflight.half_open_once ON CLUSTER firstflight AS
SELECT *
FROM firstflight.half_open_local FINAL;

CREATE TABLE IF NOT EXISTS firstflight.half_open ON CLUSTER firstflight
AS firstflight.half_open_once
ENGINE = Distributed(firstflight, firstflight, half_open_once);

-- early_data_rule: what one shard keeps

CREATE TABLE IF NOT EXISTS firstflight.early_data_rule_local ON CLUSTER firstflight (
    pattern String CODEC(ZSTD(1)),
    allowed UInt8 CODEC(ZSTD(1)),
    comment Nullable(String) CODEC(ZSTD(1))
) ENGINE = ReplicatedReplacingMergeTree(
    '/clickhouse/tables/{shard}/firstflight/early_data_rule_local', '{replica}')
ORDER BY (
    pattern);

-- early_data_rule: rows go in here, each to its shard

CREATE TABLE IF NOT EXISTS firstflight.early_data_rule_load ON CLUSTER firstflight (
    pattern String,
    allowed UInt8,
    comment Nullable(String)
) ENGINE = Distributed(firstflight, firstflight, early_data_rule_local, cityHash64(pattern));

-- early_data_rule: read it here, each row once, from all shards

CREATE VIEW IF NOT EXISTS firstflight.early_data_rule_once ON CLUSTER firstflight AS
SELECT *
FROM firstflight.early_data_rule_local FINAL;

CREATE TABLE IF NOT EXISTS firstflight.early_data_rule ON CLUSTER firstflight
AS firstflight.early_data_rule_once
ENGINE = Distributed(firstflight, firstflight, early_data_rule_once);
