#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a database of any number of flows and measures what reports and views ask of it.

usage: database.py FIRSTFLIGHT [--flows N] [--database FILE] [--rounds N] [NAME...]

Flows are made by SQL, the same on every machine: 8 regions, 12 sites of 3 machines, 2,000 server
names of very different weight, waiting times with a long tail, one ClientHello in 5,000 sent again,
tickets of 60 keys and 3 % whose names are random. Each question is asked once to warm the cache and
then three times; the least counts, of wall and of CPU. NAME: only questions whose name holds one of
these words. A database that is there is asked and not made again.
"""
import argparse
import math
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
WAITS = 1000

# Numbers that look random and are the same on every machine: multiples of primes.
FLOW = """
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT :flows)
INSERT INTO flow (
    flow_uid, capture_id, first_packet_no, transport, ip_version, client_ip, client_port, server_ip,
    server_port, client_prefix, client_basis, leg, client_region, client_region_basis, site, host,
    continues, syn_seen, syn_count, syn_ack_count, sides_seen, client_packets, server_packets,
    client_bytes, server_bytes, client_retransmits, server_retransmits,
    client_retransmits_before_response, server_retransmits_before_response, loss_wait_ns,
    client_gap_bytes, server_gap_bytes, client_boundary_losses, server_boundary_losses, duplicates,
    truncated, clock_step, fast_open, client_ttl, server_ttl, ended, handshake, handshake_basis,
    handshake_reason, outcome, failure, resumed_by, early_data, early_data_basis, early_data_reason,
    early_data_bytes, answered_early, resumption_offered, tls_version, cipher_suite, sni, alpn, ech,
    ja4, client_hello_complete, psk_identity_hash, ticket_key_name, client_hello_hash,
    server_random_hash, start_epoch_ns, client_hello_at_ns, server_hello_at_ns, request_at_ns,
    response_at_ns, response_low_at_ns, response_high_at_ns, response_basis, response_reason,
    end_at_ns, server_rtt_ns, client_rtt_ns, rtt_ns, rtt_basis, vantage, response_ns, perceived_ns,
    connect_ns, hello_wait_ns, tls_ns, request_wait_ns, server_wait_ns, round_trips,
    expected_round_trips)
SELECT
    lower(hex(randomblob(16))), 1 + i % 12, i, 'tcp', 4,
    printf('203.%d.%d.%d', client % 256, client / 256 % 256, client / 65536), 1024 + i % 60000,
    printf('192.0.2.%d', i % 12), 443, printf('203.%d.%d.0/24', client % 256, client / 256 % 256),
    'syn', leg, region, 'clients', printf('site%d', i % 12), printf('edge%d', i / 12 % 3),
    0, 1, 1, 1, 'both', 9, 8, 2000, 5000, i % 50 = 0, i % 40 = 0, i % 50 = 0, i % 40 = 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 55, 64, 'fin', kind, CASE kind WHEN '0-rtt' THEN 'strong' ELSE
    'protocol' END, 'psk_selected', CASE WHEN i % 61 = 0 THEN 'failed' ELSE 'completed' END,
    CASE WHEN i % 61 = 0 THEN 'reset' END, CASE WHEN kind <> 'full' THEN 'psk' END, early,
    CASE early WHEN 'accepted' THEN 'strong' ELSE 'protocol' END,
    CASE early WHEN 'rejected' THEN 'psk_refused' ELSE 'end_of_early_data' END,
    CASE WHEN early <> 'not_offered' THEN 200 + i % 700 END,
    CASE early WHEN 'accepted' THEN i % 11 > 0 END, kind <> 'full' OR i % 3 = 0,
    CASE WHEN i % 17 = 0 THEN 'TLSv1.2' ELSE 'TLSv1.3' END, 'TLS_AES_128_GCM_SHA256',
    printf('%s%d.example.com', CASE WHEN name % 97 = 0 THEN 'login-' ELSE 'www' END, name), 'h2',
    i % 2, 't13d1516h2_8daaf6152771_02713d6af862', 1, ticket,
    CASE WHEN ticket IS NULL THEN NULL WHEN i % 33 = 0 THEN lower(hex(randomblob(16)))
    ELSE printf('%032x', 1 + i % 12 * 5 + second / 20000) END,
    CASE WHEN i % 10007 < 2 THEN printf('%032x', i / 10007) ELSE lower(hex(randomblob(16))) END,
    lower(hex(randomblob(16))), 1780408800000000000 + second * 1000000000 + i % 1000000000,
    rtt + 1000000, rtt + 2000000, rtt + 3000000,
    CASE WHEN answered THEN response END, CASE WHEN answered THEN response END,
    CASE WHEN answered THEN response END, CASE WHEN answered THEN 'strong' END, 'after_finished',
    response + 1000000, 300000, rtt, rtt + 300000, 'ack', 'server',
    CASE WHEN answered THEN response END, CASE WHEN answered THEN response + rtt END, rtt, 1000000,
    rtt, 0, response - rtt - rtt - 1000000, (response + rtt) * 1.0 / rtt,
    CASE kind WHEN '0-rtt' THEN 2 ELSE 3 END
FROM (
    SELECT
        i, i * 7919 % 1500007 AS client, i * 104729 % 86400 AS second,
        i * 611953 % 2000 * (i * 15485863 % 2000) / 2000 AS name,
        CASE WHEN i % 10 < 8 THEN 'inbound' WHEN i % 10 = 8 THEN 'unknown' ELSE 'outbound' END AS leg,
        kind, CASE WHEN i % 13 = 0 AND kind = 'full' THEN 'rejected' WHEN kind = '0-rtt'
        THEN 'accepted' ELSE 'not_offered' END AS early,
        CASE WHEN kind <> 'full' OR i % 3 = 0
        THEN lower(hex(randomblob(16))) END AS ticket, i % 19 > 0 AS answered, region, rtt,
        CASE kind WHEN '0-rtt' THEN 1 ELSE 2 END * rtt + wait.ns AS response
    FROM (
        SELECT
            i, (i * 32452843 % 1000003) % {waits} AS place,
            CASE WHEN i * 49979687 % 100 < 30 THEN 'full' WHEN i * 49979687 % 100 < 80
            THEN 'resumed' ELSE '0-rtt' END AS kind, i * 86028121 % 8 AS region_no
        FROM n) AS drawn
    JOIN wait ON wait.place = drawn.place JOIN region ON region.no = drawn.region_no)
"""

REGIONS = [("eu", 12), ("na-east", 20), ("na-west", 35), ("sea", 110), ("jp", 90), ("in", 140),
           ("br", 60), ("af", 190)]

PERCENTILE = ("SELECT client_region, handshake, count(*), percentile(perceived_ns, 50),"
              " percentile(perceived_ns, 90) FROM flow WHERE perceived_ns IS NOT NULL GROUP BY 1, 2")
ONE_PERCENTILE = ("SELECT client_region, handshake, percentile(perceived_ns, 90) FROM flow"
                  " GROUP BY client_region, handshake")
# What is asked, as arguments of the program.
QUESTIONS = {
    "percentile": ["sql", ONE_PERCENTILE],
    "percentiles of two": ["sql", PERCENTILE],
    **{f"report {name}": ["report", name] for name in (
        "regions", "early-data", "policy", "replays", "ticket-keys", "failures", "timeline",
        "coverage")},
    "report of an hour": ["report", "regions", "--since", "2026-06-02T20:00", "--until",
                          "2026-06-02T21:00"],
    **{f"view {name}": ["sql", f"SELECT count(*) FROM {name}"] for name in (
        "early_data_policy", "replay", "ticket_reuse", "ticket_key", "failures", "timeline", "pair",
        "region_latency", "early_data_gain")},
}


def statements(kind):
    db = sqlite3.connect(":memory:")
    for name in ("flow.sql", "views.sql"):
        db.executescript((TOP / "schema" / name).read_text(encoding="utf-8"))
    return [sql for (sql,) in db.execute("SELECT sql FROM sqlite_schema WHERE type = ? AND sql IS"
                                         " NOT NULL ORDER BY rowid", (kind,))]


def make(path, flows):
    db = sqlite3.connect(path)
    db.executescript("PRAGMA page_size = 16384; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
                     "PRAGMA application_id = 1179012180; PRAGMA user_version = 1;"
                     "PRAGMA cache_size = -65536; PRAGMA analysis_limit = 1000")
    for sql in statements("table") + statements("view"):
        db.execute(sql)
    for i in range(12):
        db.execute("INSERT INTO capture (path, point, content_hash, content_len, file_size,"
                   " format, link_types, packets, bytes, ingested_at, program_version)"
                   " VALUES (?, ?, ?, 1, 1, 'pcap',"
                   " 'EN10MB', 1, 1, '2026-06-03T00:00:00Z', '0')", (f"{i}.pcap", f"{i}", f"{i}"))
    db.execute("CREATE TEMP TABLE wait (place INTEGER PRIMARY KEY, ns INTEGER)")
    draw = random.Random(1)
    db.executemany("INSERT INTO wait VALUES (?, ?)", (
        (i, round(1e6 * math.exp(draw.gauss(2.0, 1.1)))) for i in range(WAITS)))
    db.execute("CREATE TEMP TABLE region (no INTEGER PRIMARY KEY, region TEXT, rtt INTEGER)")
    db.executemany("INSERT INTO region VALUES (?, ?, ?)", (
        (i, name, round(rtt * 1e6)) for i, (name, rtt) in enumerate(REGIONS)))
    for number, line in enumerate(("login-*", "*.login.*", "pay.*")):
        db.execute("INSERT INTO early_data_rule VALUES (?, ?, NULL)", (line, number % 2))
    started = time.monotonic()
    db.execute(FLOW.format(waits=WAITS), {"flows": flows})
    db.commit()
    print(f"{flows:,} flows in {time.monotonic() - started:.1f} s,"
          f" {os.path.getsize(path) / 1e6:,.0f} MB")
    for sql in statements("index"):
        size, started = os.path.getsize(path), time.monotonic()
        db.execute(sql)
        db.commit()
        name = sql.partition(" ON ")[0].split()[-1]
        print(f"  {name:24} {time.monotonic() - started:6.1f} s"
              f" {(os.path.getsize(path) - size) / 1e6:8,.0f} MB")
    db.execute("ANALYZE")
    db.commit()
    db.close()


def ask(program, database, words):
    """Seconds of wall and of CPU."""
    started, before = time.monotonic(), os.times()
    result = subprocess.run([program, words[0], "-d", database, *words[1:]], check=False,
                            capture_output=True)
    elapsed, after = time.monotonic() - started, os.times()
    if result.returncode != 0:
        print(result.stderr.decode(), end="")
    return elapsed, (after.children_user + after.children_system - before.children_user -
                     before.children_system)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--flows", type=int, default=1000000)
    parser.add_argument("--database", type=pathlib.Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("words", nargs="*")
    options = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as directory:
        database = options.database or pathlib.Path(directory) / "flows.db"
        if not database.exists():
            make(database, options.flows)
        for name, words in QUESTIONS.items():
            if options.words and not any(word in name for word in options.words):
                continue
            ask(options.program, database, words)
            times = [ask(options.program, database, words) for _ in range(options.rounds)]
            wall, cpu = (min(column) for column in zip(*times))
            print(f"{name:24} {wall:8.2f} s wall {cpu:8.2f} s CPU", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
