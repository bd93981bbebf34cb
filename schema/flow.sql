-- SPDX-License-Identifier: Apache-2.0
--
-- The tables of a firstflight database: the one place where columns are named. gen_row.py makes
-- the C structs and statements of the program from it. README.md explains what a row means.
--
-- Words used below
--   epoch_ns   nanoseconds since 1970-01-01 UTC
--   at_ns      nanoseconds since start_epoch_ns of the flow: its first SYN or, where no SYN was
--              captured, its first packet. The time of a record or message is that of the segment
--              that first carried its first byte.
--   _ns        otherwise a duration in nanoseconds, never negative
--   0/1        no/yes
--   basis      what a verdict rests on: 'keylog' decrypted, 'protocol' certain by the protocol,
--              'strong' by several signs that never failed, 'weak' by one sign that can
-- CHECKs of words are chains of OR: for IN with more than two values SQLite makes a table of them
-- for each row, which makes loading five times slower; with two it still is twice the work.
-- ClickHouse numbers such words in their order (gen_export.py): add new ones behind the others.
-- NULL means not observed or not known; zero means zero. Every column says in brackets where its
-- value comes from; gen_row.py reads them: what comes from [judge] or [timing] is judged again. Comments stand inside the statements, so `.schema` shows them too.

PRAGMA application_id = 1179012180; -- 'FFLT'
PRAGMA user_version = 1;

CREATE TABLE capture (
    -- One row per capture file that was read.
    capture_id INTEGER PRIMARY KEY,
        -- number of the file in this database [store]
    path TEXT NOT NULL,
        -- as it was given, '-' for standard input [command line]
    point TEXT NOT NULL,
        -- name of the capture point: the files of one place, read as one stream [inputs]
    content_hash TEXT NOT NULL,
        -- hash of the decompressed bytes, 32 hex digits; with point the identity of the file
        -- [capture]
    content_len INTEGER NOT NULL,
        -- decompressed bytes that content_hash is of; when the file has grown, a later run goes on
        -- behind them [capture]
    file_begin_epoch_ns INTEGER,
        -- time of the first packet in the file, whatever --filter leaves of it; NULL when there was
        -- none near its start [inputs]
    file_size INTEGER NOT NULL,
        -- bytes of the file as it lay on disk, 0 for a pipe [file system]
    file_mtime_ns INTEGER,
        -- when the file was last changed, epoch ns; NULL for a pipe [file system]
    format TEXT NOT NULL,
        -- 'pcap', 'pcapng' or 'snoop' [capture]
    link_types TEXT NOT NULL,
        -- names of the link types of its interfaces with commas between, as 'EN10MB' [capture]
    snaplen INTEGER,
        -- largest declared length that packets were cut to; NULL when none is declared [capture]
    packets INTEGER NOT NULL,
        -- packets read, also those not used [capture]
    bytes INTEGER NOT NULL,
        -- captured bytes in them, file headers not counted [capture]
    kernel_drops INTEGER,
        -- packets that the capturing machine lost, by pcapng's statistics or snoop's; NULL when the file does
        -- not say [capture]
    first_packet_epoch_ns INTEGER,
        -- least time of its packets; NULL without packets [capture]
    last_packet_epoch_ns INTEGER,
        -- largest time of its packets; NULL without packets [capture]
    site TEXT,
        -- label of the capture point: the site; NULL when not given [--site, --labels]
    host TEXT,
        -- label of the capture point: the machine; NULL when not given [--host, --labels]
    region TEXT,
        -- region of the capture point, by its label or its site; NULL when not given
        -- [--region, --labels, --sites]
    labels TEXT,
        -- further labels as a JSON object; NULL when there are none [--labels]
    interfaces TEXT,
        -- names of the interfaces that a pcapng file describes with commas between, as 'eth0,eth1';
        -- NULL when it names none [capture]
    late_packets INTEGER,
        -- packets up to 100 ms earlier than one in front of them, put in their place before
        -- analysis; NULL where that was not looked for [order]
    clock_steps INTEGER,
        -- times the capturing machine's clock was set back by more than that; durations across
        -- such a step mean little, flow.clock_step tells which flows; NULL where that was not
        -- looked for [order]
    damage TEXT,
        -- what is wrong with the file and where; NULL when it is whole [capture]
    ingested_at TEXT NOT NULL,
        -- when it was read, '2026-06-02T14:03:11Z' [program]
    program_version TEXT NOT NULL,
        -- version of firstflight that read it [program]
    UNIQUE (content_hash, point)
) STRICT;

CREATE TABLE drop_count (
    -- What was not used of a capture, and why. No row: none.
    capture_id INTEGER NOT NULL REFERENCES capture,
        -- the file [store]
    reason TEXT NOT NULL,
        -- name of the lie or limit, as 'ip_too_short'; analyzer/drop.h has the list [drop]
    packets INTEGER NOT NULL,
        -- packets with that reason [drop]
    PRIMARY KEY (capture_id, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE half_open (
    -- SYNs that were never answered by a connection, per server and second: floods and scans.
    -- Counts all of them; table flow keeps rows only up to a number per server and second, and
    -- per second.
    capture_id INTEGER NOT NULL REFERENCES capture,
        -- the first file of the run that counted them last [store]
    server_ip TEXT NOT NULL,
        -- address that the SYNs went to [packet]
    server_port INTEGER NOT NULL,
        -- port that the SYNs went to [packet]
    second_epoch INTEGER NOT NULL,
        -- second of the first SYN, seconds since 1970 [packet]
    syns INTEGER NOT NULL,
        -- connections that stayed half-open [flow]
    client_prefixes INTEGER NOT NULL,
        -- different client prefixes (/24, /48) among them [flow]
    PRIMARY KEY (capture_id, server_ip, server_port, second_epoch)
) STRICT, WITHOUT ROWID;

CREATE TABLE flow (
    -- One row per TCP connection, from its first packet to its end or the end of the captures.

    -- Identity
    flow_id INTEGER PRIMARY KEY,
        -- number of the flow in this database [store]
    flow_uid TEXT NOT NULL CHECK (length(flow_uid) = 32),
        -- name that stays the same in every run and database, 32 hex digits: hash of point,
        -- addresses, ports, first packet's time and initial sequence number; unique [analyze]
    capture_id INTEGER NOT NULL REFERENCES capture,
        -- the file that holds its first packet [analyze]
    first_packet_no INTEGER NOT NULL,
        -- number of its first packet in that file, counted from 1 [capture]
    community_id TEXT,
        -- Community ID v1, seed 0, to join with Zeek, Suricata, Arkime; NULL when client addresses
        -- are not stored in full [label]
    transport TEXT NOT NULL CHECK (transport = 'tcp' OR transport = 'quic'),
        -- what carries it [packet]
    ip_version INTEGER NOT NULL CHECK (ip_version = 4 OR ip_version = 6),
        -- of the innermost IP header [packet]
    client_ip TEXT,
        -- address, its network ('203.0.113.0/24') or its hash (32 hex digits), as --client-addr
        -- asks; NULL with 'none' [packet]
    client_port INTEGER NOT NULL,
        -- TCP port of the client [packet]
    server_ip TEXT NOT NULL,
        -- address of the server as text. Where client_basis is 'order', or 'port' with a
        -- server_port from 1024, it may be the client's and is stored as client_ip is, 'hidden'
        -- instead of NULL [packet]
    server_port INTEGER NOT NULL,
        -- TCP port of the server [packet]
    client_prefix TEXT,
        -- the client's network, '203.0.113.0/24' or '2001:db8:7::/48'; NULL when addresses are
        -- hashed or left out [packet]
    proxied_client_ip TEXT,
        -- the client that a PROXY protocol header names, stored as client_ip is; NULL without
        -- such a header [preamble]
    proxied_server_ip TEXT,
        -- the server that it names; NULL without such a header [preamble]
    client_basis TEXT NOT NULL CHECK (
        client_basis = 'syn' OR client_basis = 'syn_ack' OR client_basis = 'client_hello'
        OR client_basis = 'server_hello' OR client_basis = 'port' OR client_basis = 'order'),
        -- why that side is called the client; 'port' and 'order' are guesses [flow]
    leg TEXT NOT NULL CHECK (
        leg = 'inbound' OR leg = 'outbound' OR leg = 'internal' OR leg = 'unknown'),
        -- 'inbound' to one of our addresses, 'outbound' from one, 'internal' between two;
        -- 'unknown' where neither side is known to be ours [region]
    leg_basis TEXT CHECK (leg_basis = 'local' OR leg_basis = 'guess'),
        -- what leg rests on: 'local' the prefixes of --local, 'guess' without them: an address that
        -- answered at least 8 different clients at this capture point, in this run or in those
        -- before it, is ours until a week of captures shows no client of it; NULL with leg
        -- 'unknown' [roles]
    client_region TEXT,
        -- region of the client; NULL when nothing says one [region]
    client_region_basis TEXT CHECK (
        client_region_basis = 'clients' OR client_region_basis = 'proxy'
        OR client_region_basis = 'capture'),
        -- 'clients' by a --clients file, 'proxy' by one too but for proxied_client_ip, 'capture'
        -- that of the capture; NULL with the region [region]
    client_country TEXT,
        -- ISO 3166 code by the --clients file; NULL when it has none [region]
    client_asn INTEGER,
        -- AS number by the --clients file; NULL when it has none [region]
    site TEXT,
        -- label of the capture point, as in capture [inputs]
    host TEXT,
        -- label of the capture point, as in capture [inputs]
    interface TEXT,
        -- name of the interface that the first packet was captured at, as 'eth0'; NULL when its
        -- file does not name it (classic pcap never does), or names more than 255 [interfaces]
    app_protocol TEXT,
        -- nDPI's name as 'TLS.Google'; NULL when it knows none [label]
    app_category TEXT,
        -- nDPI's category as 'Web'; NULL when it knows none [label]
    continues INTEGER NOT NULL CHECK (continues = 0 OR continues = 1),
        -- 1: packets of this connection came again after its row was closed for idleness; the
        -- earlier row holds its start [flow]
    retried_by TEXT,
        -- flow_uid of the connection that the client opened instead of this abandoned one, within
        -- five seconds of the server's answer; NULL when there is none [store]

    -- Capture quality
    syn_seen INTEGER NOT NULL CHECK (syn_seen = 0 OR syn_seen = 1),
        -- the client's SYN was captured; without it what counts from the SYN is NULL [flow]
    syn_count INTEGER NOT NULL,
        -- SYNs of the client, repeats included [flow]
    syn_ack_count INTEGER NOT NULL,
        -- SYN/ACKs of the server, repeats included [flow]
    sides_seen TEXT NOT NULL CHECK (
        sides_seen = 'both' OR sides_seen = 'client' OR sides_seen = 'server'),
        -- whose packets were captured [flow]
    client_packets INTEGER NOT NULL,
        -- packets of the client [flow]
    server_packets INTEGER NOT NULL,
        -- packets of the server [flow]
    client_bytes INTEGER NOT NULL,
        -- TCP payload of the client on the wire, each byte once [stream]
    server_bytes INTEGER NOT NULL,
        -- TCP payload of the server on the wire, each byte once [stream]
    client_retransmits INTEGER NOT NULL,
        -- segments with payload that the client sent again [stream]
    server_retransmits INTEGER NOT NULL,
        -- segments with payload that the server sent again [stream]
    client_retransmits_before_response INTEGER,
        -- those before the response; NULL without a response; of the first 16 resends of a flow
        -- [timing]
    server_retransmits_before_response INTEGER,
        -- those before the response; NULL without a response; of the first 16 resends of a flow
        -- [timing]
    loss_wait_ns INTEGER,
        -- time before the response that went into waiting for data sent again; NULL without a
        -- response [timing]
    client_gap_bytes INTEGER NOT NULL,
        -- payload of the client known to have been sent but never captured [stream]
    server_gap_bytes INTEGER NOT NULL,
        -- payload of the server known to have been sent but never captured [stream]
    client_boundary_losses INTEGER NOT NULL,
        -- times that a TLS record header of the client lay in a hole or behind a snaplen [record]
    server_boundary_losses INTEGER NOT NULL,
        -- times that a TLS record header of the server lay in a hole or behind a snaplen [record]
    duplicates INTEGER NOT NULL,
        -- packets captured twice (mirror port, any interface), not sent twice [stream]
    truncated INTEGER NOT NULL,
        -- packets whose payload the snaplen cut [packet]
    clock_step INTEGER NOT NULL CHECK (clock_step = 0 OR clock_step = 1),
        -- the capture's clock went backwards during the flow, or a SYN/ACK was recorded before its
        -- SYN [flow]
    tunnel TEXT,
        -- what stood around the IP packets, with commas, as 'vlan,vxlan'; NULL for nothing [packet]
    fast_open INTEGER NOT NULL CHECK (fast_open = 0 OR fast_open = 1),
        -- TCP Fast Open: the SYN carried data and the SYN/ACK acknowledged it [flow]
    client_ttl INTEGER,
        -- TTL or hop limit of the client's first packet; NULL when it was not captured [packet]
    server_ttl INTEGER,
        -- TTL or hop limit of the server's first packet; NULL when it was not captured [packet]
    client_mss INTEGER,
        -- MSS option of the SYN; NULL without [packet]
    server_mss INTEGER,
        -- MSS option of the SYN/ACK; NULL without [packet]
    ended TEXT NOT NULL CHECK (
        ended = 'fin' OR ended = 'reset' OR ended = 'idle' OR ended = 'capture_end'
        OR ended = 'evicted'),
        -- how it ended: FIN of both sides, RST, silence of capture time, the end of the captures,
        -- or put out of memory by a cap [flow]
    ended_by TEXT CHECK (ended_by = 'client' OR ended_by = 'server'),
        -- who sent the first FIN or RST; NULL when none was seen [flow]

    -- Verdict
    handshake TEXT NOT NULL CHECK (
        handshake = 'full' OR handshake = 'resumed' OR handshake = '0-rtt'
        OR handshake = 'unknown' OR handshake = 'none'),
        -- the kind, whether or not it completed. '0-rtt': early data offered, sent and accepted;
        -- 'unknown': TLS, but the capture does not show the kind; 'none': no TLS [judge]
    handshake_basis TEXT CHECK (
        handshake_basis = 'keylog' OR handshake_basis = 'protocol' OR handshake_basis = 'strong'
        OR handshake_basis = 'weak'),
        -- what the kind rests on; NULL when it is unknown [judge]
    handshake_reason TEXT,
        -- the observation that decided the kind; NULL without TLS [judge]
    outcome TEXT NOT NULL CHECK (
        outcome = 'completed' OR outcome = 'failed' OR outcome = 'abandoned'
        OR outcome = 'unused' OR outcome = 'unseen'),
        -- 'completed': the client finished the handshake; 'failed': alert, reset, close or silence
        -- before; 'abandoned': the client dropped it by itself; 'unused': closed without an
        -- application byte of the client; 'unseen': the capture does not show the end [judge]
    failure TEXT,
        -- how it failed: name of the alert, 'reset', 'timeout', 'refused', 'no_answer', ...; NULL
        -- when it did not [judge]
    resumed_by TEXT CHECK (
        resumed_by = 'session_id' OR resumed_by = 'ticket' OR resumed_by = 'psk'),
        -- by what the session was resumed; NULL when it was not [judge]
    early_data TEXT CHECK (
        early_data = 'not_offered' OR early_data = 'accepted' OR early_data = 'rejected'
        OR early_data = 'unknown'),
        -- what became of early data; NULL without a ClientHello [judge]
    early_data_basis TEXT CHECK (
        early_data_basis = 'keylog' OR early_data_basis = 'protocol'
        OR early_data_basis = 'strong' OR early_data_basis = 'weak'),
        -- what that rests on; NULL when unknown or without a ClientHello [judge]
    early_data_reason TEXT,
        -- the observation that decided it: 'hello_retry', 'psk_refused', 'psk_kept', 'version';
        -- NULL without a ClientHello [judge]
    early_data_bytes INTEGER,
        -- plaintext bytes that the client sent as early data; NULL when not offered or not known
        -- [judge]
    early_data_rule TEXT,
        -- pattern of table early_data_rule that fits the server name, kept here only where --sni
        -- hides the name; NULL otherwise [analyze]
    answered_early INTEGER CHECK (answered_early = 0 OR answered_early = 1),
        -- the response left the server before it had the client's Finished: only then has 0-RTT
        -- saved a round trip; NULL unless early data was accepted and answered [judge]
    resumption_offered INTEGER NOT NULL CHECK (resumption_offered = 0 OR resumption_offered = 1),
        -- the ClientHello offers a session id, ticket or PSK [judge]
    false_start INTEGER CHECK (false_start = 0 OR false_start = 1),
        -- TLS <= 1.2: the client sent application data before it had the server's Finished; NULL
        -- when not visible and in TLS 1.3 [judge]
    hello_retry INTEGER CHECK (hello_retry = 0 OR hello_retry = 1),
        -- the server asked for another ClientHello; NULL without an answer to the first [facts]
    client_certificate INTEGER CHECK (client_certificate = 0 OR client_certificate = 1),
        -- the server asked for a certificate of the client; NULL when not visible [judge]

    -- TLS
    tls_version TEXT,
        -- version chosen by the server, as 'TLSv1.3', 'TLSv1.3-draft28', 'TLSv1.2'; NULL without a
        -- ServerHello [hello]
    cipher_suite TEXT,
        -- IANA name of the suite chosen, or '0x....'; NULL without a ServerHello [hello]
    named_group TEXT,
        -- IANA name of the key exchange group chosen; NULL when there is or is seen none [hello]
    sni TEXT,
        -- server name that the client asked for, as sent, or its hash as --sni asks; NULL when it
        -- sent none, when it is not printable ASCII, and with --sni none [hello]
    alpn_offered TEXT,
        -- protocols that the client offered, with commas, as 'h2,http/1.1'; NULL without [hello]
    alpn TEXT,
        -- protocol chosen; NULL when none was or it cannot be seen [facts]
    ech INTEGER CHECK (ech = 0 OR ech = 1),
        -- the ClientHello carries encrypted_client_hello, real or GREASE: sni is then at most the
        -- public name; NULL without a ClientHello [hello]
    ja4 TEXT,
        -- JA4 fingerprint of the ClientHello; NULL when it is not complete [hello]
    client_hello_complete INTEGER CHECK (client_hello_complete = 0 OR client_hello_complete = 1),
        -- every byte of the ClientHello was captured; NULL without a ClientHello [hello]
    client_hello_bytes INTEGER,
        -- length of the ClientHello message with its header; NULL without [hello]
    server_flight_bytes INTEGER,
        -- bytes of the server from ServerHello to Finished, record headers included; NULL when the
        -- end of the flight is not known [judge]
    psk_identity_hash TEXT,
        -- hash of the first PSK identity or ticket offered, hex: the same ticket has the same hash;
        -- NULL without [hello]
    ticket_key_name TEXT,
        -- first 16 bytes of the ticket offered, hex: names the key that sealed it; NULL where this
        -- server's tickets have no such name [profile]
    issued_ticket_key_name TEXT,
        -- the same of the ticket that the server issued in clear (TLS <= 1.2); NULL without [hello]
    client_hello_hash TEXT,
        -- hash of random, session id, first identity and binder, hex: equal in two connections
        -- means the same ClientHello; NULL without a complete one [hello]
    server_random_hash TEXT,
        -- hash of the ServerHello's random, hex: equal at two points means the same connection;
        -- NULL without a ServerHello [hello]
    preamble TEXT,
        -- what stood before the ClientHello: 'smtp', 'imap', 'pop3', 'ftp', 'xmpp', 'ldap',
        -- 'postgresql', 'mysql', 'proxy_v1', 'proxy_v2', 'http_connect', 'socks4', 'socks5',
        -- 'other'; NULL for nothing [preamble]

    -- Times
    start_epoch_ns INTEGER NOT NULL,
        -- first SYN; where none was captured the first packet; all _at_ns count from it [flow]
    syn_ack_at_ns INTEGER,
        -- first SYN/ACK; NULL when not captured or recorded before the SYN [flow]
    ack_at_ns INTEGER,
        -- first segment of the client that acknowledges the SYN/ACK; NULL when not captured [flow]
    client_hello_at_ns INTEGER,
        -- first byte of the first ClientHello; NULL without [hello]
    client_hello_last_at_ns INTEGER,
        -- its last byte; NULL when that was not captured [hello]
    hello_retry_at_ns INTEGER,
        -- HelloRetryRequest; NULL without [hello]
    server_hello_at_ns INTEGER,
        -- the real ServerHello; NULL without [hello]
    client_finished_at_ns INTEGER,
        -- the client's Finished; NULL when it was not recognised [judge]
    handshake_done_at_ns INTEGER,
        -- when the client could send ordinary application data: its Finished or, in a full
        -- handshake of TLS <= 1.2, when it had the server's; NULL when not seen [judge]
    first_client_data_at_ns INTEGER,
        -- first application byte of the client, early data included; NULL without [judge]
    request_at_ns INTEGER,
        -- first record of the client that the response can answer; NULL without [judge]
    request_packet_no INTEGER,
        -- number of the packet that carried it; NULL with request_at_ns and without TLS [judge]
    request_record_no INTEGER,
        -- record_no of that record in view record; NULL with request_at_ns and without TLS [judge]
    first_server_data_at_ns INTEGER,
        -- first application byte of the server, whatever it is; NULL without [judge]
    response_at_ns INTEGER,
        -- first application data of the server that answers the request; NULL without, and where
        -- no candidate is good enough [judge]
    response_packet_no INTEGER,
        -- number of the packet that carried it; NULL with response_at_ns and without TLS [judge]
    response_record_no INTEGER,
        -- record_no of that record in view record; NULL with response_at_ns and without TLS [judge]
    response_low_at_ns INTEGER,
        -- first record that could not be excluded for certain; the response is not earlier; NULL
        -- when no record can be it [judge]
    response_high_at_ns INTEGER,
        -- last record that may be the first response; NULL when no record can be it [judge]
    response_basis TEXT CHECK (
        response_basis = 'keylog' OR response_basis = 'protocol' OR response_basis = 'strong'
        OR response_basis = 'weak'),
        -- what response_at_ns rests on; NULL with it [judge]
    response_reason TEXT,
        -- the observation that decided it or, where it is NULL, why; NULL when there is nothing to
        -- say [judge]
    response_last_at_ns INTEGER,
        -- last byte of the record that begins the response; NULL with response_at_ns [judge]
    end_at_ns INTEGER NOT NULL,
        -- last packet of the flow [flow]

    -- Path
    server_rtt_ns INTEGER,
        -- capture point to server and back: last SYN before the SYN/ACK to the SYN/ACK; NULL when
        -- not seen or ambiguous by a repeat [timing]
    client_rtt_ns INTEGER,
        -- capture point to client and back: last SYN/ACK to its ACK, else as rtt_basis says; NULL
        -- when not known [timing]
    rtt_ns INTEGER,
        -- the sum of both: client to server and back; NULL when one is missing [timing]
    rtt_basis TEXT CHECK (
        rtt_basis = 'ack' OR rtt_basis = 'neighbour' OR rtt_basis = 'data'),
        -- client_rtt_ns by 'ack' the payload-free ACK, 'neighbour' the least of the same client
        -- within ten minutes, 'data' a later ACK of server data; NULL with client_rtt_ns [timing]
    vantage TEXT CHECK (
        vantage = 'client' OR vantage = 'server' OR vantage = 'middle' OR vantage = 'local'),
        -- which end the capture point is near to; 'local': both; NULL when not known [timing]

    -- The answer
    response_ns INTEGER,
        -- first SYN to the first byte of the response, as seen at the capture point; NULL without
        -- a SYN or a response [timing]
    perceived_ns INTEGER,
        -- the same as the client felt it, at any capture point: response_ns + client_rtt_ns; NULL
        -- when one is missing [timing]
    retried_perceived_ns INTEGER,
        -- the visitor's wait over this abandoned connection and retried_by: first SYN of this one
        -- to the first byte of that one's response as the client felt it; NULL when either is
        -- missing [store]
    connect_ns INTEGER,
        -- phase 1 of response_ns: SYN to ACK. The five phases sum up to response_ns; all of them
        -- are NULL when one cannot be said [timing]
    hello_wait_ns INTEGER,
        -- phase 2: ACK to ClientHello, preambles included; NULL with connect_ns [timing]
    tls_ns INTEGER,
        -- phase 3: ClientHello to the end of the handshake; 0 when answered early; NULL with
        -- connect_ns [timing]
    request_wait_ns INTEGER,
        -- phase 4: until the client sent its request; NULL with connect_ns [timing]
    server_wait_ns INTEGER,
        -- phase 5: request to response, the way to the server and back included; NULL with
        -- connect_ns [timing]
    server_think_ns INTEGER,
        -- what the server itself took: server_wait_ns without the way; comparable between capture
        -- points; NULL when server_rtt_ns is missing [timing]
    round_trips REAL,
        -- perceived_ns / rtt_ns; NULL when one is missing [timing]
    expected_round_trips INTEGER,
        -- what the protocol costs with a server that answers at once; NULL when the kind is not
        -- known [judge]
    flight_stalls INTEGER
        -- round trips lost inside the server's flight (initial window, Nagle), which the protocol
        -- does not ask for; NULL when not visible [judge]
) STRICT;

CREATE TABLE flow_facts (
    -- What was seen of a TLS flow, to draw it and to judge it again without the capture.
    flow_id INTEGER PRIMARY KEY REFERENCES flow,
        -- the flow [store]
    facts TEXT NOT NULL
        -- JSON object of the facts that are not zero and that the row does not have, by number, and
        -- "records": an array of its TLS records, at most 64; view record shows them as rows;
        -- analyzer/facts.h says how to read it [facts]
) STRICT;

CREATE TABLE server_profile (
    -- What the flows of one server have in common, over all ingests, but for those that are still
    -- open (table open_flow). The readable columns say what was seen most often; learned has all of it, with the time that each number held for, since a
    -- deploy changes them.
    server_ip TEXT NOT NULL,
        -- address of the server [profile]
    server_port INTEGER NOT NULL,
        -- TCP port of the server [profile]
    sni TEXT NOT NULL,
        -- server name as in flow; '' for flows without one, and where all_names is 1 [profile]
    all_names INTEGER NOT NULL CHECK (all_names = 0 OR all_names = 1),
        -- 1: what all names of that address and port have in common [profile]
    from_epoch_ns INTEGER NOT NULL,
        -- start of the earliest flow that it was learned from [profile]
    to_epoch_ns INTEGER NOT NULL,
        -- start of the latest flow that it was learned from [profile]
    flows INTEGER NOT NULL,
        -- flows that it was learned from [profile]
    ticket_len INTEGER,
        -- usual length of the tickets that clients offer to it, bytes; NULL when none was [profile]
    ticket_len_flows INTEGER NOT NULL,
        -- flows that show ticket_len [profile]
    ticket_constant INTEGER,
        -- length of its NewSessionTicket records - 34 - ticket_len: tells the TLS stack; NULL when
        -- not learned [profile]
    ticket_constant_flows INTEGER NOT NULL,
        -- flows that show ticket_constant [profile]
    flight_records INTEGER,
        -- usual number of encrypted records of its flight up to Finished, 1: all in one; NULL when
        -- not learned [profile]
    flight_records_flows INTEGER NOT NULL,
        -- flows that show flight_records [profile]
    encrypted_extensions_len INTEGER,
        -- usual length of its EncryptedExtensions record without early data; NULL when not learned
        -- [profile]
    encrypted_extensions_flows INTEGER NOT NULL,
        -- flows that show encrypted_extensions_len [profile]
    http2_settings_len INTEGER,
        -- length of its HTTP/2 SETTINGS record; NULL when not learned [profile]
    http2_settings_flows INTEGER NOT NULL,
        -- flows that show http2_settings_len [profile]
    learned TEXT NOT NULL,
        -- JSON object of all that was learned, to go on with: "flights", flows by shape of their
        -- flight; tallies as arrays of [number, flows, first epoch ns, last epoch ns];
        -- analyzer/profile.h names them [profile]
    PRIMARY KEY (server_ip, server_port, sni, all_names)
) STRICT, WITHOUT ROWID;

CREATE TABLE open_point (
    -- Where the reading of a capture point stands: its next run goes on from here. Of no use to
    -- anybody but the program.
    point_id INTEGER PRIMARY KEY REFERENCES capture,
        -- the point, by the first of its captures [store]
    capture_id INTEGER NOT NULL REFERENCES capture,
        -- first file of the last run: half-open flows of that run are counted there [store]
    until_epoch_ns INTEGER NOT NULL,
        -- the latest time of its packets so far [analyze]
    runs INTEGER NOT NULL,
        -- how many runs have added to it [store]
    version INTEGER NOT NULL,
        -- of the format of state [carry]
    state BLOB NOT NULL
        -- what late packets must find: flows that are over, half-open ones without a row, round
        -- trips to clients; holds client addresses, no payload [carry]
) STRICT;

CREATE TABLE open_flow (
    -- Flows that had not ended when the captures of their point did: the next run of that point
    -- completes their rows.
    point_id INTEGER NOT NULL REFERENCES open_point,
        -- the capture point [store]
    flow_id INTEGER NOT NULL REFERENCES flow,
        -- the flow, whose row says what is known so far [store]
    last_packet_epoch_ns INTEGER NOT NULL,
        -- time of its last packet so far [analyze]
    version INTEGER NOT NULL,
        -- of the format of state [carry]
    state BLOB NOT NULL,
        -- all that is needed to go on: the flow's facts, and bytes that it is in the middle of (part
        -- of a handshake message, segments behind a hole); never secrets [carry]
    PRIMARY KEY (point_id, flow_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE early_data_rule (
    -- Where early data may be used: it can be replayed by anyone who saw it. A new database begins
    -- with the starter set of early_data_rules.csv; `firstflight set-rules` puts others in its place.
    pattern TEXT PRIMARY KEY NOT NULL,
        -- server names, lower case: '*' is any text, '?' any character; the longest pattern that
        -- fits a name decides [you]
    allowed INTEGER NOT NULL CHECK (allowed = 0 OR allowed = 1),
        -- 0: early data must not be accepted for these names [you]
    comment TEXT
        -- what to remember of it; NULL without [you]
) STRICT, WITHOUT ROWID;

CREATE TABLE setting (
    -- What the first ingest decided for all of the database.
    name TEXT PRIMARY KEY NOT NULL,
        -- 'client_addr' and 'sni': what is stored of them, 'full', 'prefix', 'hash' or 'none';
        -- 'hash_key': tells the key apart that they are hashed with [--client-addr, --sni]
    value TEXT NOT NULL
        -- its value [--client-addr, --sni, --hash-key]
) STRICT, WITHOUT ROWID;

-- Indexes are made at the end of the first load: kept up during it they cost half of the speed.
-- Reports scan the table, which is faster than any index that does not hold all their columns;
-- flow_by_region holds all of a percentile by region and kind, in the order of the values.
CREATE UNIQUE INDEX flow_by_uid ON flow (flow_uid);
CREATE INDEX flow_by_start ON flow (start_epoch_ns);
CREATE INDEX flow_by_community_id ON flow (community_id);
CREATE INDEX flow_by_region ON flow (client_region, handshake, perceived_ns);
CREATE INDEX capture_by_size ON capture (file_size);
CREATE INDEX capture_by_point ON capture (point);
