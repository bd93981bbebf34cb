#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of schema/: comments, views on hand-made flows, generated C, the queries of its README."""
import json
import pathlib
import re
import sqlite3
import subprocess
import sys
import tempfile
import unittest

TOP = pathlib.Path(__file__).resolve().parent.parent
SCHEMA = TOP / "schema"
START = 1780408980 * 10**9  # 2026-06-02T14:03:00Z
MS = 10**6
SECOND = 10**9

ALWAYS = {
    "capture_id": 1, "first_packet_no": 1, "transport": "tcp", "ip_version": 4,
    "client_ip": "203.0.113.7", "client_port": 51822, "server_ip": "192.0.2.10",
    "server_port": 443, "client_prefix": "203.0.113.0/24", "client_basis": "syn",
    "leg": "inbound", "client_region": "eu", "site": "iad1", "host": "edge1", "continues": 0,
    "syn_seen": 1, "syn_count": 1, "syn_ack_count": 1, "sides_seen": "both",
    "client_packets": 9, "server_packets": 8, "client_bytes": 2000, "server_bytes": 5000,
    "client_retransmits": 0, "server_retransmits": 0, "client_gap_bytes": 0,
    "server_gap_bytes": 0, "client_boundary_losses": 0, "server_boundary_losses": 0,
    "duplicates": 0, "truncated": 0, "clock_step": 0, "fast_open": 0, "ended": "fin",
    "handshake": "full", "handshake_basis": "protocol", "outcome": "completed",
    "early_data": "not_offered", "resumption_offered": 0, "tls_version": "TLSv1.3",
    "sni": "www.example.com", "start_epoch_ns": START, "client_hello_at_ns": 1,
    "server_hello_at_ns": 2, "end_at_ns": 0,
}
RESUMED = {"handshake": "resumed", "resumption_offered": 1, "resumed_by": "psk"}
EARLY = {**RESUMED, "handshake": "0-rtt", "early_data": "accepted", "answered_early": 1}
REFUSED = {**RESUMED, "early_data": "rejected"}


def new_database():
    db = sqlite3.connect(":memory:")
    db.row_factory = sqlite3.Row
    db.executescript((SCHEMA / "flow.sql").read_text(encoding="utf-8"))
    db.executescript((SCHEMA / "views.sql").read_text(encoding="utf-8"))
    return db


def names(db, kind):
    return [row[0] for row in db.execute(
        "SELECT name FROM sqlite_schema WHERE type = ? AND name NOT LIKE 'sqlite_%'", (kind,))]


def columns(db, table):
    return [row["name"] for row in db.execute(f"PRAGMA table_info({table})")]


def insert(db, table, **values):
    marks = ", ".join("?" * len(values))
    cursor = db.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({marks})",
                        tuple(values.values()))
    return cursor.lastrowid


def add_capture(db, point="edge/iad1"):
    return insert(db, "capture", path="a.pcap", point=point, content_hash="00",
                  content_len=1, file_size=1, format="pcap", link_types="EN10MB", packets=1, bytes=1,
                  ingested_at="2026-06-02T15:00:00Z", program_version="0.1.0")


def add_flow(db, *groups, **values):
    """Adds a flow of the usual values, those of the groups, and the named ones; gives its id."""
    number = db.execute("SELECT count(*) FROM flow").fetchone()[0]
    row = {**ALWAYS, "flow_uid": f"{number:032x}"}
    for group in groups:
        row.update(group)
    return insert(db, "flow", **{**row, **values})


def percentile(values, fraction):
    """Linear between the two nearest ranks, written down independently of the views."""
    values = sorted(values)
    place = fraction * (len(values) - 1)
    below = int(place)
    above = min(below + 1, len(values) - 1)
    return values[below] + (values[above] - values[below]) * (place - below)


class Comments(unittest.TestCase):
    def test_every_column_has_a_comment_that_names_its_source(self):
        db = new_database()
        for table in names(db, "table"):
            sql = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()[0]
            for column in columns(db, table):
                with self.subTest(table=table, column=column):
                    found = re.search(rf"^    {column} [^\n]*\n(?:        [^-\s][^\n]*\n)*"
                                      r"((?:        -- [^\n]*\n)+)", sql + "\n", re.MULTILINE)
                    self.assertIsNotNone(found)
                    self.assertRegex(found[1], r"\[[a-z, \-]+\]\n$")

    def test_a_column_that_may_be_null_says_when(self):
        db = new_database()
        said = {"site", "host", "capture_id", "flow_id"}  # "as in capture"; never NULL
        for table in names(db, "table"):
            sql = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()[0]
            for row in db.execute(f"PRAGMA table_info({table})"):
                column = row["name"]
                if row["notnull"] or row["pk"] or column in said:
                    continue
                with self.subTest(table=table, column=column):
                    text = re.search(rf"^    {column} .*?(?=^    \w|^\) )", sql,
                                     re.MULTILINE | re.DOTALL)[0]
                    self.assertRegex(text, r"NULL")

    def test_every_view_begins_with_its_question(self):
        db = new_database()
        for name, sql in db.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'view'"):
            with self.subTest(view=name):
                self.assertRegex(sql, rf"^CREATE VIEW {name} AS\n-- ")


class Tables(unittest.TestCase):
    def test_strict_tables_and_identity(self):
        db = new_database()
        self.assertEqual(db.execute("PRAGMA application_id").fetchone()[0],
                         int.from_bytes(b"FFLT", "big"))
        self.assertEqual(db.execute("PRAGMA user_version").fetchone()[0], 1)
        for table in names(db, "table"):
            strict = db.execute("SELECT strict FROM pragma_table_list WHERE name = ?", (table,))
            self.assertEqual(strict.fetchone()[0], 1, table)

    def test_words_outside_of_the_lists_are_refused(self):
        words = {
            "transport": "udp", "client_basis": "guess", "leg": "in",
            "client_region_basis": "geo", "sides_seen": "none", "ended": "open",
            "ended_by": "both", "handshake": "0rtt", "handshake_basis": "sure",
            "outcome": "ok", "resumed_by": "ticket13", "early_data": "sent",
            "early_data_basis": "sure", "response_basis": "sure", "rtt_basis": "syn",
            "vantage": "edge", "continues": 2, "answered_early": 2, "ech": -1, "ip_version": 5,
            "flow_uid": "abc",
        }
        db = new_database()
        add_capture(db)
        for column, word in words.items():
            with self.subTest(column=column), self.assertRaises(sqlite3.IntegrityError):
                add_flow(db, **{column: word})
        self.assertEqual(db.execute("SELECT count(*) FROM flow").fetchone()[0], 0)

    def test_checks_are_cheap(self):
        """IN with more than two values makes a table of them for each row that is inserted."""
        db = new_database()
        add_capture(db)
        marks = ", ".join("?" * len(ALWAYS))
        sql = f"EXPLAIN INSERT INTO flow ({', '.join(ALWAYS)}) VALUES ({marks})"
        opcodes = [row["opcode"] for row in db.execute(sql, tuple(ALWAYS.values()))]
        self.assertNotIn("OpenEphemeral", opcodes)


class Views(unittest.TestCase):
    def setUp(self):
        self.db = new_database()
        add_capture(self.db)

    def rows(self, sql):
        return [dict(row) for row in self.db.execute(sql)]

    def only(self, sql):
        rows = self.rows(sql)
        self.assertEqual(len(rows), 1, rows)
        return rows[0]

    def test_all_are_empty_on_an_empty_database(self):
        for view in names(self.db, "view"):
            with self.subTest(view=view):
                self.assertEqual(self.rows(f"SELECT * FROM {view}"), [])

    def test_flow_ms_has_every_column_of_flow(self):
        expected = {re.sub("_ns$", "_ms", name) for name in columns(self.db, "flow")}
        expected -= {"start_epoch_ms"}
        expected |= {"start_time", "minute", "start_epoch_s"}
        self.assertEqual(set(columns(self.db, "flow_ms")), expected)

    def test_flow_ms_times(self):
        add_flow(self.db, start_epoch_ns=START + 204518001, response_ns=73894000, syn_ack_at_ns=0)
        row = self.only("SELECT * FROM flow_ms")
        self.assertEqual(row["start_time"], "2026-06-02T14:03:00.204518001Z")
        self.assertEqual(row["minute"], "2026-06-02T14:03")
        self.assertAlmostEqual(row["response_ms"], 73.894)
        self.assertEqual(row["syn_ack_at_ms"], 0.0)
        self.assertIsNone(row["perceived_ms"])

    def test_record_has_the_fields_of_the_facts(self):
        header = (TOP / "analyzer" / "facts.h").read_text(encoding="utf-8")
        fields = re.search(r"#define FACTS_RECORD_FIELDS((?:.*\\\n)+.*)", header)[1]
        fields = re.findall(r'"(\w+)"', fields)
        names_of = {"at": "at_ns", "last_after": "last_at_ns", "acked_after": "acked_at_ns",
                    "all_acked_after": "all_acked_at_ns", "more_packets": "last_packet_no",
                    "packet": "packet_no", "message": "first_message"}
        self.assertEqual(sorted(columns(self.db, "record")[2:-1]),
                         sorted(names_of.get(field, field) for field in fields))

    def test_record_counts_all_times_from_the_start(self):
        flow_id = add_flow(self.db)
        records = [[0, 22, 583, 100, 4, 0, 0, 32, 20, None, 5, 1, 2],
                   [1, 23, 1412, 900, 9, 133, -1, 0, None, None, 0, 0, 0, 3, 4242, 259],
                   [0, 20, 1, 950, 9, 588, 1550, 0, 7],
                   [0, 23, 53, 950, 9, 594, 1550, 0, 7, 2]]
        insert(self.db, "flow_facts", flow_id=flow_id,
               facts=json.dumps({"unit": 1000, "packet": 70, "records": records}))
        add_flow(self.db)
        rows = [tuple(row.values()) for row in self.rows("SELECT * FROM record")]
        self.assertEqual(rows, [
            (flow_id, 0, "client", 22, 583, 100000, 105000, 120000, None, 74, 75, 0, 0, 32, 1,
             0, 0, 0, "handshake"),
            (flow_id, 1, "server", 23, 1412, 900000, 900000, None, None, 79, 79, 133, None, 0, None,
             3, 4242, 259, "application_data"),
            (flow_id, 2, "client", 20, 1, 950000, 950000, 957000, 957000, 79, 79, 588, 1550, 0,
             None, 0, 0, 0, "change_cipher_spec"),
            (flow_id, 3, "client", 23, 53, 950000, 950000, 957000, 959000, 79, 79, 594, 1550, 0,
             None, 0, 0, 0, "application_data")])

    def test_region_latency_percentiles(self):
        waits = [(i * 37) % 101 + 0.5 for i in range(40)]
        for i, wait in enumerate(waits):
            add_flow(self.db, RESUMED, perceived_ns=int(wait * MS), expected_round_trips=3,
                     rtt_ns=None if i == 0 else i * MS, round_trips=None if i == 0 else 3 + i / 100)
        for _ in range(10):
            add_flow(self.db, perceived_ns=5 * MS)
        row = self.only("SELECT * FROM region_latency WHERE handshake = 'resumed'")
        self.assertEqual((row["client_region"], row["tls"], row["flows"]), ("eu", "1.3", 40))
        self.assertAlmostEqual(row["share"], 0.8)
        self.assertAlmostEqual(row["perceived_p50_ms"], percentile(waits, 0.5))
        self.assertAlmostEqual(row["perceived_p90_ms"], percentile(waits, 0.9))
        self.assertAlmostEqual(row["perceived_p99_ms"], percentile(waits, 0.99))
        self.assertAlmostEqual(row["rtt_p50_ms"], percentile(range(1, 40), 0.5))
        self.assertAlmostEqual(row["round_trips_p50"], 3.2)
        self.assertAlmostEqual(row["expected_round_trips"], 3)
        self.assertIsNone(row["answered_early_share"])

    def test_region_latency_keeps_versions_regions_and_unknown_regions_apart(self):
        for version in ("TLSv1.3", "TLSv1.3-draft28", "TLSv1.2", "TLSv1.0"):
            for region in ("eu", None):
                add_flow(self.db, perceived_ns=MS, tls_version=version, client_region=region)
        rows = self.rows("SELECT client_region, tls, flows, share FROM region_latency")
        self.assertEqual([tuple(row.values()) for row in rows],
                         [(None, "1.3", 2, 1.0), (None, "1.2", 2, 1.0),
                          ("eu", "1.3", 2, 1.0), ("eu", "1.2", 2, 1.0)])

    def test_only_inbound_flows_enter_the_latency_views(self):
        for leg in ("inbound", "outbound", "internal", "unknown"):
            for group in (EARLY, RESUMED):
                add_flow(self.db, group, leg=leg, perceived_ns=MS, round_trips=2.0)
        latency = self.rows("SELECT * FROM region_latency")
        self.assertEqual([row["flows"] for row in latency], [2, 2])
        gain = self.only("SELECT * FROM early_data_gain")
        self.assertEqual((gain["early_flows"], gain["other_flows"]), (2, 2))
        self.assertEqual(self.only("SELECT * FROM timeline")["flows"], 4)

    def test_early_data_gain_compares_like_with_like(self):
        def add(group, sni, perceived_ms, trips, times):
            for _ in range(times):
                add_flow(self.db, group, sni=sni, perceived_ns=perceived_ms * MS, round_trips=trips)
        add(EARLY, "near", 20, 2.0, 3)
        add(RESUMED, "near", 30, 3.0, 1)
        add(EARLY, "far", 200, 2.0, 1)
        add(RESUMED, "far", 300, 3.0, 5)
        add(RESUMED, "never", 9999, 9.0, 5)  # no 0-RTT to compare with
        add(REFUSED, "near", 9999, 9.0, 5)   # refused offers are no plain resumption
        add_flow(self.db, RESUMED, sni="near", tls_version="TLSv1.2", perceived_ns=9999 * MS,
                 round_trips=9.0)
        row = self.only("SELECT * FROM early_data_gain")
        self.assertEqual((row["client_region"], row["compared_with"]), ("eu", "resumed"))
        self.assertEqual((row["names"], row["early_flows"], row["other_flows"]), (2, 4, 6))
        self.assertAlmostEqual(row["gain_ms"], (3 * 10 + 1 * 100) / 4)
        self.assertAlmostEqual(row["gain_round_trips"], 1)
        self.assertAlmostEqual(row["early_p50_ms"], (3 * 20 + 200) / 4)
        self.assertAlmostEqual(row["other_p50_ms"], (3 * 30 + 300) / 4)
        self.assertAlmostEqual(row["answered_early_share"], 1)

    def test_early_data_gain_may_be_negative_and_has_rows_for_full(self):
        add_flow(self.db, EARLY, perceived_ns=30 * MS, round_trips=3.0, answered_early=0, sni=None)
        add_flow(self.db, RESUMED, perceived_ns=25 * MS, round_trips=2.5, sni=None)
        add_flow(self.db, perceived_ns=31 * MS, round_trips=3.1, sni=None)
        rows = self.rows("SELECT * FROM early_data_gain")
        self.assertEqual([row["compared_with"] for row in rows], ["resumed", "full"])
        self.assertAlmostEqual(rows[0]["gain_ms"], -5)
        self.assertAlmostEqual(rows[1]["gain_ms"], 1)
        self.assertAlmostEqual(rows[1]["answered_early_share"], 0)

    def test_early_data_policy_takes_the_longest_pattern(self):
        insert(self.db, "early_data_rule", pattern="*.example.com", allowed=1)
        insert(self.db, "early_data_rule", pattern="login.*.com", allowed=1)
        insert(self.db, "early_data_rule", pattern="login.example.com", allowed=0)
        insert(self.db, "early_data_rule", pattern="*pay*", allowed=0)
        hashed = "5a" * 16
        for sni, rule in (("LOGIN.example.com", None), ("www.example.com", None),
                          ("other.test", None), (None, None), (hashed, None),
                          ("6b6b6b6b", "*pay*"), ("7c" * 16, "")):
            add_flow(self.db, EARLY, sni=sni, early_data_rule=rule, early_data_bytes=100)
        add_flow(self.db, sni="login.example.com")  # offers none
        add_flow(self.db, REFUSED, sni="login.example.com")
        found = {(row["sni"], row["early_data"]): row["finding"]
                 for row in self.rows("SELECT * FROM early_data_policy")}
        self.assertEqual(found, {
            ("LOGIN.example.com", "accepted"): "forbidden",
            ("login.example.com", "rejected"): "forbidden",
            ("www.example.com", "accepted"): "allowed",
            ("other.test", "accepted"): "no_rule",
            (None, "accepted"): "not_checked",
            (hashed, "accepted"): "not_checked",
            ("6b6b6b6b", "accepted"): "forbidden",
            ("7c" * 16, "accepted"): "no_rule",  # no pattern fitted before it was hashed
        })

    def test_early_data_policy_without_rules_says_so(self):
        add_flow(self.db, EARLY)
        self.assertEqual(self.only("SELECT * FROM early_data_policy")["finding"], "no_rule")

    def test_replay_needs_two_answers_to_one_hello(self):
        def add(group, hello, answer, **values):
            return add_flow(self.db, group, client_hello_hash=hello, server_random_hash=answer,
                            **values)
        first = add(EARLY, "a", "1")
        second = add(EARLY, "a", "2", client_ip="198.51.100.1")
        add(EARLY, "a", "2", site="fra1")          # the second connection at another point
        add(EARLY, "b", "3")
        add(EARLY, "b", "3", site="fra1")          # captured twice, not sent twice
        add(REFUSED, "c", "4")
        add(EARLY, "c", "5")
        rows = self.rows("SELECT * FROM replay")
        self.assertEqual([row["client_hello_hash"] for row in rows], ["a", "c"])
        self.assertEqual([(row["connections"], row["accepted"], row["rejected"]) for row in rows],
                         [(2, 2, 0), (2, 1, 1)])
        self.assertEqual(rows[0]["flow_ids"], f"{first},{second}")
        self.assertEqual(rows[0]["clients"], 2)

    def test_ticket_reuse_counts_hellos_not_flows(self):
        for hello, ticket in (("a", "t"), ("a", "t"), ("b", "t"), ("c", "u"), ("c", "u")):
            add_flow(self.db, RESUMED, client_hello_hash=hello, psk_identity_hash=ticket)
        row = self.only("SELECT * FROM ticket_reuse")
        self.assertEqual((row["psk_identity_hash"], row["uses"], row["resumed"]), ("t", 2, 2))

    def test_ticket_key_shows_keys_that_are_not_shared(self):
        def add(group, site, seconds, **values):
            add_flow(self.db, group, site=site, start_epoch_ns=START + seconds * SECOND, **values)
        offered = {"resumption_offered": 1, "ticket_key_name": "k"}
        add({}, "iad1", 0, issued_ticket_key_name="k")
        add(RESUMED, "iad1", 10, ticket_key_name="k")
        add(RESUMED, "iad1", 20, ticket_key_name="k")
        add(offered, "fra1", 30)
        add(offered, "fra1", 50)
        add(RESUMED, "fra1", 60, ticket_key_name="other")
        rows = self.rows("SELECT * FROM ticket_key WHERE ticket_key_name = 'k'")
        self.assertEqual([(row["site"], row["offered"], row["accepted"], row["refused"],
                           row["accepted_elsewhere"], row["refused_age_s"]) for row in rows],
                         [("fra1", 2, 0, 2, 2, 40.0), ("iad1", 2, 2, 0, 0, None)])

    def test_failures_by_phase(self):
        nothing = {"server_hello_at_ns": None, "handshake": "unknown", "outcome": "failed"}
        add_flow(self.db, nothing, failure="no_answer", server_packets=0, client_hello_at_ns=None)
        add_flow(self.db, nothing, failure="refused", server_packets=1, client_hello_at_ns=None)
        add_flow(self.db, nothing, failure="reset", client_hello_at_ns=None)
        add_flow(self.db, nothing, failure="handshake_failure")
        add_flow(self.db, outcome="failed", failure="bad_certificate")
        add_flow(self.db, outcome="failed", failure="bad_certificate")
        add_flow(self.db, outcome="abandoned")
        add_flow(self.db, outcome="unused")
        rows = self.rows("SELECT phase, failure, flows FROM failures")
        self.assertEqual([tuple(row.values()) for row in rows],
                         [("tls", "bad_certificate", 2), ("before_hello", "reset", 1),
                          ("connect", "no_answer", 1), ("connect", "refused", 1),
                          ("hello", "handshake_failure", 1)])

    def test_timeline_counts_by_minute(self):
        waits = [10, 20, 40]
        for wait in waits:
            add_flow(self.db, RESUMED, perceived_ns=wait * MS, rtt_ns=5 * MS,
                     client_retransmits_before_response=1, server_retransmits_before_response=2)
        add_flow(self.db, resumption_offered=1)
        add_flow(self.db, REFUSED, start_epoch_ns=START + 59 * SECOND)
        add_flow(self.db, EARLY, start_epoch_ns=START + 60 * SECOND)
        add_flow(self.db, handshake="none", tls_version=None)
        first, second = self.rows("SELECT * FROM timeline")
        self.assertEqual((first["minute"], second["minute"]),
                         ("2026-06-02T14:03", "2026-06-02T14:04"))
        self.assertEqual((first["flows"], first["full"], first["resumed"]), (5, 1, 4))
        self.assertEqual((first["resumption_offered"], first["resumption_accepted"]), (5, 4))
        self.assertEqual((first["early_data_offered"], first["early_data_accepted"]), (1, 0))
        self.assertEqual(first["retransmits_before_response"], 9)
        self.assertAlmostEqual(first["perceived_p50_ms"], 20)
        self.assertAlmostEqual(first["perceived_p90_ms"], percentile(waits, 0.9))
        self.assertAlmostEqual(first["rtt_p50_ms"], 5)
        self.assertEqual((second["zero_rtt"], second["early_data_accepted"]), (1, 1))
        self.assertIsNone(second["perceived_p50_ms"])

    def test_point_clock_separates_offset_and_way(self):
        far = add_capture(self.db, "edge/far")
        add_capture(self.db, "edge/lonely")
        for port, offset_ms, way_ms in ((1, 100, 5), (2, 101, 6), (3, 99, 4), (4, 500, 5)):
            one = {"client_port": port, "community_id": f"1:{port}", "handshake": "none",
                   "tls_version": None, "syn_count": 1, "syn_ack_count": 1}
            start = START + port * SECOND
            add_flow(self.db, one, start_epoch_ns=start, syn_ack_at_ns=20 * MS,
                     client_rtt_ns=10 * MS)
            add_flow(self.db, one, capture_id=far, syn_ack_at_ns=(20 - 2 * way_ms) * MS,
                     start_epoch_ns=start + (offset_ms + way_ms) * MS,
                     client_rtt_ns=(10 + 2 * way_ms) * MS)
        (row,) = self.rows("SELECT * FROM point_clock")
        sign = 1 if row["other_point"] == "edge/far" else -1
        self.assertEqual(row["pairs"], 4)
        self.assertAlmostEqual(row["offset_ms"], sign * 100.5)
        self.assertAlmostEqual(row["way_ms"], sign * 5)
        self.assertAlmostEqual(row["spread_ms"], 200.75 - 99.75)
        self.db.execute("UPDATE flow SET client_ip = 'other' WHERE capture_id = ?", (far,))
        self.assertEqual(self.rows("SELECT * FROM point_clock"), [], "behind a NAT")
        self.assertEqual(len(self.rows("SELECT * FROM pair")), 4)

    def test_pair_joins_points_and_puts_the_nearer_one_first(self):
        far = add_capture(self.db, "edge/far")
        plain = {"handshake": "none", "tls_version": None}
        seen = {"client_hello_hash": "h", "server_random_hash": "r"}
        at_server = add_flow(self.db, seen, client_rtt_ns=70 * MS, perceived_ns=144 * MS)
        at_client = add_flow(self.db, seen, capture_id=far, client_rtt_ns=2 * MS,
                             perceived_ns=145 * MS, start_epoch_ns=START - 34 * MS)
        add_flow(self.db, seen, client_hello_hash="other")
        one = add_flow(self.db, plain, community_id="1:x")
        two = add_flow(self.db, plain, community_id="1:x", capture_id=far,
                       start_epoch_ns=START + SECOND)
        add_flow(self.db, plain, community_id="1:x", capture_id=far,
                 start_epoch_ns=START + 9 * SECOND)
        rows = self.rows("SELECT * FROM pair ORDER BY flow_id")
        self.assertEqual([(row["flow_id"], row["other_flow_id"], row["matched_by"])
                          for row in rows],
                         [(at_client, at_server, "random"), (one, two, "address")])
        self.assertAlmostEqual(rows[0]["way_ms"], 34)
        self.assertAlmostEqual(rows[0]["start_difference_ms"], 34)
        self.assertAlmostEqual(rows[0]["perceived_difference_ms"], -1)
        self.assertEqual(rows[0]["other_point"], "edge/iad1")



def c_strings(header):
    """The string constants of a generated header by name."""
    found = {}
    for name, body in re.findall(r'static const char (\w+)\[\] =\n((?:    ".*"\n?)+);', header):
        lines = re.findall(r'^    "(.*)"$', body, re.MULTILINE)
        found[name] = "".join(json.loads(f'"{line}"') for line in lines)
    return found


class Generated(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as directory:
            out_h, out_sql_h = (pathlib.Path(directory) / name for name in ("row.h", "sql.h"))
            subprocess.run([sys.executable, SCHEMA / "gen_row.py", SCHEMA / "flow.sql",
                            SCHEMA / "views.sql", SCHEMA / "early_data_rules.csv", out_h, out_sql_h],
                           check=True)
            cls.row_h = out_h.read_text(encoding="utf-8")
            cls.strings = c_strings(out_sql_h.read_text(encoding="utf-8"))

    def test_the_starter_set_forbids_what_it_should_and_no_more(self):
        db = new_database()
        db.execute(self.strings["SQL_STARTER_RULES"])
        rules = db.execute("SELECT pattern, allowed, comment FROM early_data_rule").fetchall()
        self.assertGreater(len(rules), 100)
        for pattern, allowed, comment in rules:
            self.assertEqual((pattern, allowed), (pattern.lower(), 0))
            self.assertTrue(comment.startswith("starter set: "))
        for name, forbidden in (
                ("login.example.com", 1), ("login-eu.example.com", 1), ("eu.login.example.com", 1),
                ("eu-login.example.com", 1), ("checkout.example.com", 1), ("www.bank.example", 1),
                ("accounts.example.com", 1), ("admin.example.com", 1), ("www.example.com", 0),
                ("bloginfo.example.com", 0), ("author.example.com", 0), ("payload.example.com", 0),
                ("example.com", 0), ("static.example.bank", 0)):
            fits = db.execute("SELECT count(*) > 0 FROM early_data_rule WHERE ? GLOB pattern",
                              (name,)).fetchone()[0]
            self.assertEqual(fits, forbidden, name)

    def test_structs_have_the_columns_in_their_order(self):
        db = new_database()
        for table in ("capture", "flow", "server_profile"):
            struct = re.search(rf"struct {table}_row {{\n(.*?)}};", self.row_h, re.DOTALL)[1]
            members = re.findall(r"struct row_(\w+) (\w+);", struct)
            expected = [(row["type"].lower(), row["name"])
                        for row in db.execute(f"PRAGMA table_info({table})")]
            self.assertEqual(members, expected)

    def test_the_strings_make_the_same_schema(self):
        made = sqlite3.connect(":memory:")
        for name in ("SQL_TABLES", "SQL_VIEWS", "SQL_INDEXES", "SQL_INDEXES"):
            made.executescript(self.strings[name])
        everything = "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"
        self.assertEqual(made.execute(everything).fetchall(),
                         [tuple(row) for row in new_database().execute(everything)])

    def test_inserts_name_every_column_once(self):
        db = new_database()
        add_capture(db)
        for table in ("capture", "flow", "server_profile"):
            sql = self.strings[f"SQL_INSERT_{table.upper()}"]
            count = len(columns(db, table))
            self.assertEqual(sql.count("?"), count)
            with self.assertRaises(sqlite3.IntegrityError):  # it prepares, and misses NOT NULLs
                db.execute(sql, (None,) * count)


class ClickHouse(unittest.TestCase):
    """What gen_export.py makes; tests/export.py and tests/clickhouse use it."""

    def made(self, *arguments):
        with tempfile.TemporaryDirectory() as directory:
            out = pathlib.Path(directory) / "out"
            subprocess.run([sys.executable, SCHEMA / "gen_export.py", SCHEMA / "flow.sql",
                            *arguments, out], check=True)
            return out.read_text(encoding="utf-8")

    def test_the_files_are_what_the_schema_makes(self):
        for release in ("18.16", "current"):
            path = SCHEMA / "clickhouse" / f"{release}.sql"
            self.assertEqual(path.read_text(encoding="utf-8"), self.made("ddl", release),
                             f"schema/gen_export.py schema/flow.sql ddl {release} {path}")

    def test_every_column_is_there_with_its_nulls(self):
        db = new_database()
        tables = re.findall(r"CREATE TABLE IF NOT EXISTS firstflight\.(\w+)_(?:local|load) .*?\(\n"
                            r"(.*?)\n\) ENGINE", self.made("ddl", "18.16"), re.DOTALL)
        self.assertEqual(len(tables), 10)
        for table, text in tables:
            there = dict(re.findall(r"^    (\w+) ([^,]*)", text, re.MULTILINE))
            for row in db.execute(f"PRAGMA table_info({table})"):
                type_ = there[row["name"]]
                self.assertEqual(type_.startswith("Nullable("),
                                 not (row["notnull"] or row["pk"]), f"{table}.{row['name']}")

    def test_releases_have_the_same_columns_and_types_that_take_the_same_bytes(self):
        def tables(release):
            found = re.findall(r"CREATE TABLE IF NOT EXISTS firstflight\.(\w+_(?:local|load)) .*?\(\n"
                               r"(.*?)\n\) ENGINE", self.made("ddl", release), re.DOTALL)
            return {table: [re.sub(r" CODEC\(.*\)$", "", line.rstrip(","))
                            for line in text.split("\n") if " ALIAS " not in line]
                    for table, text in found}
        old, new = tables("18.16"), tables("current")
        self.assertEqual(len(old), 10)
        for table, columns in old.items():
            self.assertEqual([re.sub(r"LowCardinality\((.*)\)$", r"\1", line)
                              for line in new[table]], columns, table)

    def test_words_are_numbered_as_the_schema_lists_them(self):
        self.assertIn(" handshake Enum8('full' = 1, 'resumed' = 2, '0-rtt' = 3, 'unknown' = 4,"
                      " 'none' = 5),\n", self.made("ddl", "18.16"))


class Readme(unittest.TestCase):
    def test_every_query_runs(self):
        db = new_database()
        add_capture(db)
        insert(db, "early_data_rule", pattern="login.*", allowed=0)
        for group in ({}, RESUMED, EARLY, REFUSED):
            add_flow(db, group, perceived_ns=MS, rtt_ns=MS, round_trips=1.0)
        text = (SCHEMA / "README.md").read_text(encoding="utf-8")
        queries = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
        self.assertGreaterEqual(len(queries), 20)
        for query in queries:
            with self.subTest(query=query):
                db.execute(query).fetchall()

    def test_every_table_and_view_is_named(self):
        db = new_database()
        text = (SCHEMA / "README.md").read_text(encoding="utf-8")
        for name in names(db, "table") + names(db, "view"):
            self.assertIn(f"`{name}`", text)


if __name__ == "__main__":
    unittest.main()
