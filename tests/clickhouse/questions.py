#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""schema/clickhouse/questions/*.sql answer as the program's reports do, on two shards.

usage: questions.py FIRSTFLIGHT

Only when FIRSTFLIGHT_LONG is set, as tests/long does: installs ClickHouse and ZooKeeper where they
are missing and starts them on loopback (cluster.py). Asked about a database of made flows, in which
every column that the questions read is NULL now and then, sent by `firstflight export`, half of it
twice. Counts, words and times are equal. Percentiles: ClickHouse's quantileExact takes the value of
rank floor(p * n), SQLite's reports interpolate at rank p * (n - 1); both are computed here from the
values themselves and must be what each says. Exit status 77 says skipped.
"""
import json
import math
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "bench")]
import cluster  # noqa: E402
import database  # noqa: E402

QUESTIONS = HERE.parent.parent / "schema/clickhouse/questions"
FLOWS = 30000
OURS = "leg IN ('inbound', 'unknown') AND handshake <> 'none'"
IS_13 = "ifnull(tls_version LIKE 'TLSv1.3%', 0)"
# The windows of made flows, an hour each, and those that stand in incident.sql.
WINDOWS = ["2026-06-02 14:00:00", "2026-06-02 14:10:00", "2026-06-02 14:20:00"]
HOURS = [("2026-06-02 20:00:00", 1780430400), ("2026-06-02 21:00:00", 1780434000),
         ("2026-06-02 22:00:00", 1780437600)]

# Each measure of report incident that is a share: which flows are asked, which say yes.
SHARES = {
    "captured_whole": ("1", "syn_seen = 1 AND sides_seen = 'both' AND client_gap_bytes = 0"
                            " AND server_gap_bytes = 0"),
    "measured": ("outcome = 'completed' AND response_high_at_ns IS NOT NULL",
                 "perceived_ns IS NOT NULL"),
    "failed": ("outcome <> 'unseen'", "outcome = 'failed'"),
    "answered": ("outcome = 'completed' AND request_at_ns IS NOT NULL AND ended <> 'capture_end'",
                 "response_high_at_ns IS NOT NULL"),
    "resumption_offered": ("client_hello_at_ns IS NOT NULL", "resumption_offered"),
    "resumption_accepted": ("resumption_offered AND handshake IN ('full', 'resumed', '0-rtt')",
                            "resumed_by IS NOT NULL"),
    "early_offered": ("early_data IS NOT NULL", "early_data <> 'not_offered'"),
    "early_accepted": ("early_data IN ('accepted', 'rejected')", "early_data = 'accepted'"),
    "answered_early": ("answered_early IS NOT NULL", "answered_early = 1"),
    "hello_retry": ("hello_retry IS NOT NULL", "hello_retry = 1"),
    "old_version": ("tls_version IS NOT NULL", "tls_version NOT LIKE 'TLSv1.3%'"),
    "resent": ("response_at_ns IS NOT NULL",
               "ifnull(syn_count + syn_ack_count > 2 OR client_retransmits_before_response"
               " + server_retransmits_before_response > 0, 0)"),
    "flight_stalls": ("flight_stalls IS NOT NULL", "flight_stalls > 0"),
    "abandoned": ("outcome <> 'unseen'", "outcome = 'abandoned'"),
}
RTT = "CASE WHEN rtt_basis <> 'neighbour' THEN rtt_ns END"
QUANTILES = {
    "rtt_p5": (RTT, 0.05), "rtt_p50": (RTT, 0.5), "rtt_p90": (RTT, 0.9),
    "server_think_p50": ("server_think_ns", 0.5), "server_think_p90": ("server_think_ns", 0.9),
    "perceived_p50": ("perceived_ns", 0.5), "perceived_p90": ("perceived_ns", 0.9),
    "hello_wait_p50": ("hello_wait_ns", 0.5), "tls_p50": ("tls_ns", 0.5),
    "request_wait_p50": ("request_wait_ns", 0.5), "server_wait_p50": ("server_wait_ns", 0.5),
}


class Differences:
    def __init__(self):
        self.found = []

    def expect(self, condition, what):
        if not condition:
            self.found.append(what)
            print("FAILED:", what)

    def equal(self, found, expected, what):
        """Numbers as numbers, all else as it is; NULL is None."""
        try:
            same = (found is None) == (expected is None) and (
                found is None or math.isclose(float(found), float(expected), rel_tol=1e-9,
                                              abs_tol=1e-9))
        except ValueError:
            same = found == expected
        self.expect(same, f"{what}: {found!r} instead of {expected!r}")


def taken(values, p):
    """The percentile as ClickHouse's quantileExact defines it; None without values."""
    ranked = sorted(values)
    return ranked[min(int(p * len(ranked)), len(ranked) - 1)] if ranked else None


def interpolated(values, p):
    """The same as the reports define it."""
    ranked = sorted(values)
    if not ranked:
        return None
    rank = p * (len(ranked) - 1)
    low = min(int(rank), len(ranked) - 1)
    high = min(low + 1, len(ranked) - 1)
    return ranked[low] + (rank - low) * (ranked[high] - ranked[low])


class Both:
    """The same rows in SQLite and in ClickHouse."""

    def __init__(self, program, path, ask, differences):
        self.program, self.path, self.ask, self.differences = program, path, ask, differences
        self.db = sqlite3.connect(path)

    def report(self, name):
        """The first row names the columns. Cells are as ClickHouse writes them, NULL is None."""
        run = subprocess.run([self.program, "report", name, "-d", self.path, "--format", "ndjson"],
                             check=True, stdout=subprocess.PIPE, encoding="utf-8")
        rows = [json.loads(line) for line in run.stdout.splitlines()]
        return [list(rows[0])] + [[None if cell is None else str(cell) for cell in row.values()]
                                  for row in rows]

    def question(self, name, *replacements):
        sql = (QUESTIONS / f"{name}.sql").read_text(encoding="utf-8")
        for old, new in replacements:
            assert old in sql, f"{name}.sql does not hold {old}"
            sql = sql.replace(old, new)
        rows = self.ask(sql + " FORMAT TabSeparatedWithNames")
        return [[None if cell == "\\N" else cell.replace("\\'", "'") for cell in row]
                for row in rows]

    def values(self, sql):
        return [row[0] for row in self.db.execute(sql)]

    def compare(self, name, keys, examples=(), sets=()):
        """Rows with equal columns, told apart by the first of them, but for those named."""
        expected, found = self.report(name), self.question(name)
        self.differences.expect(found[0] == expected[0],
                                f"{name}: columns {found[0]} instead of {expected[0]}")
        expected_rows = {tuple(row[:keys]): row for row in expected[1:]}
        found_rows = {tuple(row[:keys]): row for row in found[1:]}
        self.differences.expect(found_rows.keys() == expected_rows.keys() and len(found_rows) ==
                                len(found) - 1, f"{name}: rows "
                                f"{sorted(map(str, found_rows.keys() ^ expected_rows.keys()))[:4]}")
        for key in found_rows.keys() & expected_rows.keys():
            for column, one, other in zip(expected[0], found_rows[key], expected_rows[key]):
                what = f"{name} {key} {column}"
                if column == "sent":
                    other = other or "0"  # NULL when no offer of a name says its bytes
                if column in examples:
                    self.differences.expect((one is None) == (other is None), what)
                elif column in sets:
                    self.differences.equal(*(",".join(sorted((cell or "").split(",")))
                                             for cell in (one, other)), what)
                else:
                    self.differences.equal(one, other, what)
        return found_rows


def compare_regions(both):
    expected, found = both.report("regions"), both.question("regions")
    names = expected[0]
    equal = both.differences.equal
    both.differences.expect(found[0] == names, f"regions: columns {found[0]}")
    both.differences.expect([row[:3] for row in found[1:]] and sorted(map(str, (
        row[:3] for row in found[1:]))) == sorted(map(str, (row[:3] for row in expected[1:]))),
        "regions: other rows")
    reported = {tuple(row[:3]): dict(zip(names, row)) for row in expected[1:]}
    for row in found[1:]:
        one, other = dict(zip(names, row)), reported[tuple(row[:3])]
        where = (f"{OURS} AND perceived_ns IS NOT NULL AND client_region IS"
                 f" {'NULL' if row[0] is None else repr(row[0])} AND {IS_13} = {int(row[1] == '1.3')}"
                 f" AND handshake = '{row[2]}'")
        for column in ("flows", "share", "expected_round_trips", "answered_early_share",
                       "refused_share", "flows_compared_with_resumed"):
            equal(one[column], other[column], f"regions {row[:3]} {column}")
        for column, sql, p, scale, least in (
                ("perceived_p50_ms", "perceived_ns", 0.5, 1e6, 6),
                ("perceived_p90_ms", "perceived_ns", 0.9, 1e6, 36),
                ("perceived_p99_ms", "perceived_ns", 0.99, 1e6, 368),
                ("rtt_p50_ms", "rtt_ns", 0.5, 1e6, 6), ("round_trips_p50", "round_trips", 0.5, 1, 6)):
            values = both.values(f"SELECT {sql} FROM flow WHERE {where} AND {sql} IS NOT NULL")
            enough = int(other["flows"]) >= least
            for answer, definition in ((one, taken), (other, interpolated)):
                equal(answer[column], definition(values, p) / scale if enough else None,
                      f"regions {row[:3]} {column} by {definition.__name__}")
        compare_gains(both, row, one, other)


def compare_gains(both, key, one, other):
    """Differences of medians, like with like, weighted by the 0-RTT flows."""
    for kind in ("resumed", "full"):
        for unit, column in (("ms", "perceived_ns / 1e6"), ("round_trips", "round_trips")):
            name = f"gain_over_{kind}_{unit}"
            groups = {}
            if key[2] == "0-rtt":
                for sni, version, handshake, value in both.db.execute(
                        f"SELECT sni, tls_version, handshake, {column} FROM flow WHERE {OURS}"
                        " AND perceived_ns IS NOT NULL AND round_trips IS NOT NULL"
                        f" AND client_region IS ? AND {IS_13} AND early_data IS NOT 'rejected'"
                        " AND handshake IN ('0-rtt', ?)", (key[0], kind)):
                    groups.setdefault((sni, version), {}).setdefault(handshake, []).append(value)
            enough = [(group["0-rtt"], group[kind]) for group in groups.values()
                      if min(len(group.get("0-rtt", [])), len(group.get(kind, []))) >= 6]
            weight = sum(len(early) for early, _ in enough)
            for answer, definition in ((one, taken), (other, interpolated)):
                gain = sum(len(early) * (definition(rest, 0.5) - definition(early, 0.5))
                           for early, rest in enough) / weight if weight else None
                both.differences.equal(answer[name], gain,
                                       f"regions {key[:3]} {name} by {definition.__name__}")


def compare_timeline(both):
    expected, found = both.report("timeline"), both.question("timeline")
    names = expected[0]
    both.differences.expect(found[0] == names, f"timeline: columns {found[0]}")
    both.differences.expect(len(found) == len(expected), f"timeline: {len(found)} rows")
    values = {}
    for minute, rtt, perceived in both.db.execute(
            "SELECT strftime('%Y-%m-%dT%H:%M', start_epoch_ns / 1000000000, 'unixepoch'), rtt_ns,"
            f" perceived_ns FROM flow WHERE {OURS}"):
        for name, value in (("rtt", rtt), ("perceived", perceived)):
            if value is not None:
                values.setdefault((minute, name), []).append(value)
    for row, other in zip(found[1:], expected[1:]):
        for name, one, two in zip(names, row, other):
            if name not in ("rtt", "p50", "p90"):
                both.differences.equal(one, two, f"timeline {row[0]} {name}")
                continue
            measured = values.get((row[0], "rtt" if name == "rtt" else "perceived"), [])
            p = 0.9 if name == "p90" else 0.5
            for answer, definition in ((one, taken), (two, interpolated)):
                exact = definition(measured, p)
                both.differences.expect(
                    (answer is None) == (exact is None) and
                    (exact is None or abs(float(answer) - exact / 1e6) <= 0.0501),
                    f"timeline {row[0]} {name} by {definition.__name__}: {answer}, {exact}")


def compare_incident(both):
    found = both.question("incident", *((old, new) for old, (new, _) in zip(WINDOWS, HOURS)))
    names = found[0]
    rows = {(row[1], row[0]): dict(zip(names, row)) for row in found[1:]}
    regions = both.values("SELECT DISTINCT client_region FROM flow WHERE start_epoch_ns / 1000000000"
                          f" BETWEEN {HOURS[0][1]} AND {HOURS[2][1] - 1}")
    scopes = [("everywhere", "1")] + [
        (f"region {region or ''}", f"client_region IS {'NULL' if region is None else repr(region)}")
        for region in regions]
    both.differences.expect(len(rows) == len(scopes) * 26, f"incident: {len(rows)} rows")
    for scope, condition in scopes:
        for window, begin, end in (("before", 0, 1), ("during", 1, 2)):
            where = (f"leg IN ('inbound', 'unknown') AND {condition} AND start_epoch_ns / 1000000000"
                     f" BETWEEN {HOURS[begin][1]} AND {HOURS[end][1] - 1}")
            for measure, (asked, yes) in SHARES.items():
                flows, share = both.db.execute(
                    f"SELECT count(*), avg({yes}) FROM flow WHERE {where} AND ({asked})").fetchone()
                check_measure(both, rows, scope, measure, window, flows, share)
            for measure, (sql, p) in QUANTILES.items():
                values = both.values(f"SELECT {sql} FROM flow WHERE {where} AND {sql} IS NOT NULL")
                check_measure(both, rows, scope, measure, window, len(values), taken(values, p))
            flows = both.values(f"SELECT count(*) FROM flow WHERE {where}")[0]
            check_measure(both, rows, scope, "volume", window, flows, flows / 3600)
        condition_found = rows[scope, "volume"]["where"]
        both.differences.equal(
            both.values(f"SELECT count(*) FROM flow WHERE {condition_found}")[0],
            both.values(f"SELECT count(*) FROM flow WHERE {condition}")[0],
            f"incident {scope} where")


def check_measure(both, rows, scope, measure, window, flows, value):
    row = rows.get((scope, measure), {window: "no row", f"flows_{window}": "no row"})
    both.differences.equal(row[f"flows_{window}"], flows, f"incident {scope} {measure} {window} flows")
    both.differences.equal(row[window], value if flows else None,
                           f"incident {scope} {measure} {window}")


def compare_all(program, path, ask, differences):
    """Each question against the report of its name. ask(sql) gives rows as lists of text."""
    both = Both(program, path, ask, differences)
    compare_regions(both)
    compare_timeline(both)
    both.compare("early-data", 1)
    forbidden = both.compare("policy", 2, examples=("example_accepted",), sets=("sites",))
    differences.expect(len(forbidden) > 20, f"policy: only {len(forbidden)} names")
    keys = both.compare("ticket-keys", 3, examples=("example_refused",))
    differences.expect(len(keys) > 20, f"ticket-keys: only {len(keys)} rows")
    compare_incident(both)
    both.db.close()


def vary(path, draw):
    """Puts NULLs and rare values wherever a question reads, and names that rules nearly fit."""
    db = sqlite3.connect(path)
    db.create_function("draw", 1, lambda n: draw.randrange(n))
    db.create_function("name", 0, lambda: "".join(draw.choice("ab.-L") for _ in range(
        draw.randrange(1, 7))), deterministic=False)
    for sql in (
            "client_region = NULL WHERE draw(17) = 0", "client_region = 'l''est' WHERE draw(17) = 0",
            "sni = NULL WHERE draw(23) = 0", "sni = name() WHERE draw(3) = 0",
            "site = NULL WHERE draw(29) = 0", "host = NULL WHERE draw(11) = 0",
            "early_data = 'unknown', early_data_basis = NULL WHERE draw(31) = 0",
            "early_data = 'rejected', answered_early = NULL WHERE draw(20) = 0",
            "early_data_reason = NULL WHERE draw(5) = 0",
            "early_data_reason = 'hello_retry' WHERE draw(5) = 0",
            "early_data_bytes = NULL WHERE draw(9) = 0", "early_data = NULL WHERE draw(40) = 0",
            "answered_early = NULL WHERE draw(13) = 0", "tls_version = NULL WHERE draw(41) = 0",
            "tls_version = 'TLSv1.3-draft28' WHERE draw(41) = 0",
            "handshake = 'unknown' WHERE draw(37) = 0", "handshake = 'none' WHERE draw(37) = 0",
            "round_trips = NULL WHERE draw(19) = 0", "rtt_ns = NULL WHERE draw(19) = 0",
            "rtt_basis = 'neighbour' WHERE draw(7) = 0", "rtt_basis = NULL WHERE draw(7) = 0",
            "expected_round_trips = NULL WHERE draw(19) = 0",
            "outcome = 'unseen' WHERE draw(43) = 0", "outcome = 'abandoned' WHERE draw(43) = 0",
            "ended = 'capture_end' WHERE draw(8) = 0", "client_gap_bytes = 1 WHERE draw(44) = 0",
            "sides_seen = 'server' WHERE draw(44) = 0", "hello_retry = draw(2) WHERE draw(2) = 0",
            "flight_stalls = draw(3) WHERE draw(2) = 0",
            "server_think_ns = draw(5000000) WHERE draw(2) = 0",
            "server_wait_ns = abs(server_wait_ns)",
            "client_retransmits_before_response = NULL WHERE draw(12) = 0",
            "syn_count = 2 WHERE draw(33) = 0", "client_hello_at_ns = NULL WHERE draw(46) = 0",
            "request_at_ns = NULL WHERE draw(46) = 0", "client_prefix = NULL WHERE draw(6) = 0",
            "psk_identity_hash = NULL WHERE draw(6) = 0",
            "issued_ticket_key_name = printf('%032x', draw(90)) WHERE draw(9) = 0",
            "ticket_key_name = printf('%08x', draw(9)) || lower(hex(randomblob(12)))"
            " WHERE draw(9) = 0 AND ticket_key_name IS NOT NULL",
            # Names that were hidden when they were ingested, with the rule that fitted.
            "early_data_rule = (SELECT pattern FROM early_data_rule ORDER BY draw(99)),"
            " sni = NULL WHERE draw(30) = 0", "early_data_rule = '' WHERE draw(60) = 0"):
        db.execute(f"UPDATE flow SET {sql}")
    for pattern in ("*", "a*", "*b", "*.a*", "a*b", "*a*b*", "a*b*a", "*l*", "ab.", "-*-*-", "**",
                    "a**b", "b.*.a", "*aa", "aa*aa"):
        db.execute("INSERT OR IGNORE INTO early_data_rule VALUES (?, ?, ?)",
                   (pattern, draw.randrange(3) == 0, draw.choice((None, "it's a rule"))))
    db.commit()
    db.close()


def export(program, path, url, *words):
    subprocess.run([program, "export", "-q", "--to", "clickhouse", "-d", path, "--url", url, *words],
                   check=True)


def main():
    if not cluster.can_start():
        return cluster.SKIPPED
    differences = Differences()
    seed = random.randrange(1 << 32)
    with tempfile.TemporaryDirectory() as directory, cluster.Cluster() as shards:
        path = pathlib.Path(directory) / "flows.db"
        database.make(path, FLOWS)
        vary(path, random.Random(seed))
        shards.create_schema()
        export(sys.argv[1], path, shards.url())
        export(sys.argv[1], path, shards.url(), "--table", "early_data_rule")
        export(sys.argv[1], path, shards.url(2), "--until", "2026-06-02T21:30", "--block-rows", "999")
        compare_all(sys.argv[1], path, shards.query, differences)
    print(f"{len(differences.found)} differences, seed {seed}")
    return 1 if differences.found else 0


if __name__ == "__main__":
    sys.exit(main())
