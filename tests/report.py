#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what report, flows, show, captures and sql print against a database of known content.

usage: report.py FIRSTFLIGHT

Flows are written by SQL, with times drawn from known distributions; percentiles, gains and
intervals are computed here again, by other means. Names hold what a terminal, a spreadsheet, a page
or a shell would obey; no output may let it through. Prints each failure and exits 1 when there is
any.
"""
import csv
import io
import json
import os
import pathlib
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import unicodedata

TOP = pathlib.Path(__file__).resolve().parent.parent
START_NS = 1780408800 * 10**9  # 2026-06-02 14:00 UTC
MS = 10**6

HOSTILE = [
    "\x1b]0;owned\x07title", "\x1b[2J\x1b[31m", "\x9b31m", "user\u202egnp.exe", "\u2066iso\u2069",
    "pay\u200bpal", "<script>alert(1)</script>", "=cmd|' /C calc'!A0", "+1+1", "-2+3", "@SUM(A1)",
    "\tTAB", "\rCR", "two\nlines", "'; DROP TABLE flow; --", "\"quoted\", comma", "a|b`c`*d*[e](f)",
    "$(reboot)", "back\\slash", "S\u00e3o Paulo", "\u6771\u4eac", "\U000e0041tag", "\ufeffbom", "",
]

FAILURES = []


def expect(condition, what):
    if not condition:
        FAILURES.append(what)
        print("FAILED:", what)


def near(value, expected, within):
    return value is not None and abs(value - expected) <= within


# -- the database --

DEFAULTS = {
    "transport": "tcp", "ip_version": 4, "client_ip": "203.0.113.7", "server_ip": "192.0.2.10",
    "server_port": 443, "client_prefix": "203.0.113.0/24", "client_basis": "syn", "leg": "inbound",
    "client_region_basis": "clients", "continues": 0, "syn_seen": 1, "syn_count": 1,
    "syn_ack_count": 1, "sides_seen": "both", "client_packets": 8, "server_packets": 9,
    "client_bytes": 900, "server_bytes": 4000, "client_retransmits": 0, "server_retransmits": 0,
    "client_gap_bytes": 0, "server_gap_bytes": 0, "client_boundary_losses": 0,
    "server_boundary_losses": 0, "duplicates": 0, "truncated": 0, "clock_step": 0, "fast_open": 0,
    "ended": "fin", "handshake": "full", "handshake_basis": "protocol", "outcome": "completed",
    "early_data": "not_offered", "resumption_offered": 0, "tls_version": "TLSv1.3",
    "end_at_ns": 500 * MS, "first_packet_no": 1, "vantage": "server", "response_basis": "strong",
}


class Database:
    def __init__(self, path):
        self.path = path
        self.connection = sqlite3.connect(path)
        for name in ("flow.sql", "views.sql"):
            self.connection.executescript((TOP / "schema" / name).read_text(encoding="utf-8"))
        self.flows = 0
        self.add_capture("edge/fra1/edge-01.pcap", "edge/fra1/edge-")

    def add_capture(self, path, point, **columns):
        row = {"path": path, "point": point, "content_hash": f"{random.random()}", "content_len": 1,
               "file_size": 1, "format": "pcap", "link_types": "EN10MB", "packets": 1000, "bytes": 1,
               "first_packet_epoch_ns": START_NS, "last_packet_epoch_ns": START_NS + 3600 * 10**9,
               "ingested_at": "2026-06-02T15:00:00Z", "program_version": "0", **columns}
        self.insert("capture", row)

    def insert(self, table, row):
        marks = ", ".join("?" for _ in row)
        self.connection.execute(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})",
                                list(row.values()))

    def add(self, **columns):
        self.flows += 1
        row = {**DEFAULTS, "flow_id": self.flows, "flow_uid": f"{self.flows * 7919:032x}",
               "capture_id": 1, "client_port": 1024 + self.flows % 60000,
               "start_epoch_ns": START_NS + self.flows * MS, **columns}
        self.insert("flow", row)

    def add_answered(self, perceived_ms, rtt_ms, **columns):
        perceived, rtt = round(perceived_ms * MS), round(rtt_ms * MS)
        self.add(perceived_ns=perceived, response_ns=perceived - rtt, rtt_ns=rtt, client_rtt_ns=rtt,
                 request_at_ns=MS, response_at_ns=perceived - rtt,
                 response_low_at_ns=perceived - rtt, response_high_at_ns=perceived - rtt,
                 round_trips=perceived / rtt, **columns)


class Program:
    def __init__(self, path, database):
        self.path, self.database = path, database

    def run(self, command, *arguments, locale="C.UTF-8"):
        return subprocess.run([self.path, command, "-d", self.database, *arguments], check=False,
                              capture_output=True, env={**os.environ, "LC_ALL": locale})

    def text(self, command, *arguments, locale="C.UTF-8"):
        result = self.run(command, *arguments, locale=locale)
        expect(result.returncode == 0,
               f"{command} {arguments}: exit {result.returncode}, {result.stderr.decode()}")
        return result.stdout.decode("utf-8")

    def json(self, command, *arguments):
        return json.loads(self.text(command, *arguments, "--format", "json"))


# -- the same numbers by other means --

def quantile(values, p):
    """Linear interpolation between the two nearest of n values, by counting from the definition."""
    ordered = sorted(values)
    rank = p * (len(ordered) - 1)
    return sum(value * max(0.0, 1 - abs(i - rank)) for i, value in enumerate(ordered))


def median_gain(strata, pick):
    """strata: pairs of lists, with and without; weighed by the number of flows with."""
    weight = sum(len(with_) for with_, _ in strata)
    return sum(len(with_) * (quantile(pick(without), 0.5) - quantile(pick(with_), 0.5))
               for with_, without in strata) / weight


def plain_bootstrap(strata, rounds=600):
    """Whole resamples of every stratum, drawn with Python's generator."""
    draw = random.Random(99)
    gains = sorted(median_gain(strata, lambda values: draw.choices(values, k=len(values)))
                   for _ in range(rounds))
    return gains[int(0.025 * rounds)], gains[int(0.975 * rounds)]


def test_numbers(program_path, directory):
    draw = random.Random(7)
    database = Database(directory / "numbers.db")
    rtt_ms = {"eu": 12.0, "sea": 110.0}
    trips = {"0-rtt": 2, "resumed": 3, "full": 3}
    counts = {"0-rtt": 130, "resumed": 160, "full": 210}
    seen, strata = {}, {}
    for region, rtt in rtt_ms.items():
        for name, slow in (("a.example", 5.0), ("b.example", 60.0)):
            for kind, count in counts.items():
                for _ in range(count if name == "a.example" else count // 2):
                    ms = rtt * trips[kind] + slow * draw.lognormvariate(0, 0.5)
                    ms = round(ms * MS) / MS
                    early = {"early_data": "accepted", "answered_early": 1}
                    database.add_answered(ms, rtt, client_region=region, sni=name, handshake=kind,
                                          expected_round_trips=trips[kind], site=f"{region}1",
                                          **(early if kind == "0-rtt" else {}))
                    seen.setdefault((region, kind), []).append(ms)
                    strata.setdefault((region, name), {}).setdefault(kind, []).append(ms)
    for _ in range(29):
        database.add_answered(450 + draw.random(), 110, client_region="sea", sni="a.example",
                              handshake="full", tls_version="TLSv1.2", expected_round_trips=4)
    for _ in range(5):
        database.add_answered(330, 110, client_region="sea", sni="a.example", handshake="resumed",
                              tls_version="TLSv1.2", expected_round_trips=3)
    for _ in range(20):
        database.add(client_region="sea", sni="a.example", early_data="rejected",
                     early_data_reason="hello_retry", request_at_ns=MS)
    database.add(client_region="eu", syn_seen=0)
    database.add(client_region="eu", sides_seen="server")
    database.add(client_region="eu", leg="outbound", sni="origin")
    database.add(client_region="eu", handshake="none", handshake_basis=None, tls_version=None)
    database.connection.commit()
    program = Program(program_path, database.path)

    rows = {(row["client_region"], row["tls"], row["handshake"]): row
            for row in program.json("report")}
    expect(len(rows) == 8, f"rows of regions: {sorted(rows)}")
    for (region, kind), values in seen.items():
        row = rows[region, "1.3", kind]
        expect(row["flows"] == len(values), f"flows of {region} {kind}")
        for column, p, least in (("perceived_p50_ms", 0.5, 6), ("perceived_p90_ms", 0.9, 36),
                                 ("perceived_p99_ms", 0.99, 368)):
            enough = len(values) >= least
            expect(near(row[column], quantile(values, p), 1e-6) if enough else row[column] is None,
                   f"{column} of {region} {kind}: {row[column]}")
        expect(near(row["rtt_p50_ms"], rtt_ms[region], 1e-9), f"rtt of {region} {kind}")
        expect(row["expected_round_trips"] == trips[kind], f"expected of {region} {kind}")
        everyone = sum(len(v) for (r, _), v in seen.items() if r == region)
        expect(near(row["share"], len(values) / everyone, 1e-9), f"share of {region} {kind}")
    few = rows["sea", "1.2", "resumed"]
    expect(few["flows"] == 5 and few["perceived_p50_ms"] is None, "5 flows have no median")
    expect(rows["sea", "1.2", "full"]["perceived_p90_ms"] is None, "29 flows have no p90")

    for region in rtt_ms:
        row = rows[region, "1.3", "0-rtt"]
        for other in ("resumed", "full"):
            pairs = [(s["0-rtt"], s[other]) for (r, _), s in strata.items() if r == region]
            gain = median_gain(pairs, lambda values: values)
            low, high = plain_bootstrap(pairs)
            width = high - low
            expect(near(row[f"gain_over_{other}_ms"], gain, 1e-6), f"gain over {other} in {region}")
            expect(near(row[f"gain_over_{other}_low_ms"], low, 0.25 * width) and
                   near(row[f"gain_over_{other}_high_ms"], high, 0.25 * width),
                   f"interval over {other} in {region}: {low} {high} by plain bootstrap, "
                   f"{row[f'gain_over_{other}_low_ms']} {row[f'gain_over_{other}_high_ms']}")
            expect(near(row[f"gain_over_{other}_round_trips"], gain / rtt_ms[region], 1e-6),
                   f"gain in round trips over {other} in {region}")
        expect(row["answered_early_share"] == 1, f"answered early in {region}")
    refused = rows["sea", "1.3", "0-rtt"]["refused_share"]
    expect(near(refused, 20 / (195 + 20), 1e-9), "refused share")

    # The views say the same.
    for region, tls, kind, p50, p99 in database.connection.execute(
            "SELECT client_region, tls, handshake, perceived_p50_ms, perceived_p99_ms"
            " FROM region_latency"):
        row = rows[region, tls, kind]
        expect(row["perceived_p50_ms"] is None or near(row["perceived_p50_ms"], p50, 1e-6),
               f"view region_latency, {region} {kind}")
    for region, other, gain in database.connection.execute(
            "SELECT client_region, compared_with, gain_ms FROM early_data_gain"):
        row = rows[region, "1.3", "0-rtt"]
        expect(near(row[f"gain_over_{other}_ms"], gain, 1e-6), f"view early_data_gain, {region}")

    test_page(program)
    test_selection(program, database)


def test_page(program):
    page = program.text("report", "-v")
    lines = page.splitlines()
    expect(lines[0].startswith("First response by client region     2026-06-02 14:00"), lines[0])
    expect(all(len(line) <= 100 and line == line.rstrip() for line in lines),
           "lines of the report: at most 100 columns, no spaces at their ends")
    expect("Server vantage, inbound." in page, "vantage and leg")
    expect("too few for percentiles (5 < 6)" in page, "too few")
    expect("p90 needs 36, p99 368" in page, "why there is a dash")
    warning = r"^! sea: 9.3% of early data was refused. 100% of that with hello_retry.$"
    expect(re.search(warning, page, re.M), "warning of refusals")
    expect('firstflight report early-data --where "client_region=\'sea\'" --by site' in page,
           "the command that tells more")
    expect(re.search(r"^Left out 22 +no request|^Left out 22 +no response 20", page, re.M),
           "what was left out")
    expect("no SYN 1" in page and "one side 1" in page, "why it was left out")
    expect(re.search(r"^Not inbound +1 edge-to-origin flows, 0 internal", page, re.M),
           "not inbound")
    expect("seed 1" in page and "seed" not in program.text("report"), "seed with -v only")
    plain = program.text("report", locale="C")
    expect(plain.isascii() and "p50 " in plain, "ASCII without UTF-8")
    expect(program.text("report") == program.text("report"), "the same report twice")
    sea = next(line for line in lines if line.startswith("sea     1.3  0-rtt"))
    expect("\u2588" in sea, "bars")


def test_selection(program, database):
    def flows(*arguments):
        return sum(row["flows"] for row in program.json("report", *arguments))

    everything = flows()
    parts = ("client_region = 'eu'", "client_region = 'sea' -- comment")
    expect(sum(flows("--where", part) for part in parts) == everything, "--where splits the flows")
    middle = "2026-06-02T14:00:00.500"
    expect(flows("--until", middle) + flows("--since", middle) == everything, "a time splits them")
    expect(flows("--since", "-2h") == everything and flows("--since", "13:00") == everything,
           "times before the data")
    by_name = program.json("report", "--by", "sni, client_region")
    expect({row["sni"] for row in by_name} == {"a.example", "b.example"}, "--by two columns")
    for name in ("coverage", "timeline", "failures"):
        text = program.text("report", name)
        expect("TLS flows" in text and "Left out" in text, f"{name}: what it rests on:\n{text}")
    legs = program.json("report", "coverage", "--by", "leg")
    expect(sum(row["flows"] for row in legs) == database.flows, "coverage holds all flows")
    expect(flows("--where", "leg IS NOT NULL") == everything and
           "legs as --where" in program.text("report", "--where", "leg = 'outbound'") and
           "legs as --where" not in program.text("report", "--where", "sni <> 'leg'"),
           "--where may speak of legs")
    early = {row["client_region"]: row
             for row in program.json("report", "early-data", "--by",
                                      "client_region")["early_data"]}
    expect(early["sea"]["rejected"] == 20 and early["sea"]["rejected_by"] == "hello_retry 20" and
           early["sea"]["accepted"] == 195, "report early-data")
    expect(sum(row["flows"] for row in program.json("report", "timeline")) == everything + 22,
           "report timeline")
    expect(program.json("report", "failures") == [], "no failures")
    expect(len(program.json("flows")) == 20 and len(program.json("flows", "--limit", "7")) == 7,
           "limits of flows")
    listed = program.json("flows", "--where", "handshake = 'none'")
    expect(len(listed) == 1 and listed[0]["tls_version"] is None, "flows --where")
    for arguments, words in (
            (("report", "nope"), "there are regions, incident, early-data"),
            (("report", "--by", "nope"), "no column of table flow"),
            (("report", "--by", "sni; DROP TABLE flow"), "no column of table flow"),
            (("report", "--since", "yesterday"), "is no time"),
            (("report", "--since", "14:30", "--until", "14:10"), "not behind --since"),
            (("report", "--where", "no_such_column = 1"), "no_such_column"),
            (("report", "--where", "1); DELETE FROM flow; --"), "syntax error"),
            (("flows", "--where", "sni ="), "syntax error"),
            (("show", "999999"), "not in the database"),
            (("show", "0000"), "more than one flow_uid"),
            (("show", "x"), "no flow_id"),
            (("sql", "DELETE FROM flow"), ""),
            (("sql", "SELECT nope FROM flow"), "nope")):
        result = program.run(*arguments)
        expect(result.returncode == 1 and words in result.stderr.decode() and not result.stdout,
               f"{arguments}: exit {result.returncode}, {result.stderr.decode().strip()}")


# -- hostile names --

def is_harmless(text, allowed):
    return all(c in allowed or not (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs", "Cn"))
               for c in text)


def begins_like_formula(cell):
    return cell[:1] in tuple("=+-@\t\r") and cell != "-" and not re.fullmatch(r"-?[0-9.e+-]+", cell)


def test_hostile(program_path, directory):
    database = Database(directory / "hostile.db")
    for i, name in enumerate(HOSTILE):
        for _ in range(8):
            database.add_answered(200 + i, 50, client_region=name, sni=name, site=name, host=name,
                                  app_protocol=name, community_id=name, handshake="0-rtt",
                                  early_data="accepted", answered_early=0, early_data_reason=name,
                                  handshake_reason=name, response_reason=name, alpn=name)
            database.add_answered(250 + i, 50, client_region=name, sni=name, site=name)
        database.add(client_region=name, sni=name, site=name, outcome="failed", failure=name)
        database.add_capture(f"dir/{name}", f"dir/{name}", site=name, host=name, region=name,
                             damage=name)
        database.connection.execute("INSERT INTO drop_count VALUES (?, ?, 3)", (i + 2, name))
    database.connection.commit()
    program = Program(program_path, database.path)

    commands = [["report"], ["report", "--by", "sni,site,app_protocol"], ["report", "early-data"],
                ["report", "failures"], ["report", "timeline"], ["report", "coverage"],
                ["report", "incident", "--since", "14:00:00.2", "--until", "14:00:01"],
                ["flows", "--limit", "1000"], ["captures"], ["show", "1"],
                ["sql", "SELECT sni, site, failure, 1 AS n, 0.5 AS r FROM flow"],
                ["sql", "SELECT sni AS \"na\x1bme\", x'00ff' AS b, NULL AS z FROM flow"]]
    for i in range(len(HOSTILE)):
        commands.append(["show", str(1 + i * 17)])
    for command in commands:
        for style in ("table", "csv", "json", "ndjson", "markdown"):
            if command[0] == "show" and style != "table":
                continue
            options = [] if command[0] == "show" else ["--format", style]
            for locale in ("C.UTF-8", "C"):
                if locale == "C" and style != "table":
                    continue
                text = program.text(*command, *options, locale=locale)
                allowed = "\n\r\t" if style == "csv" else "\n"
                expect(is_harmless(text, allowed),
                       f"{command} {style} {locale}: control characters")
                expect(locale == "C.UTF-8" or text.isascii(), f"{command} in the C locale")
                if style == "csv":
                    rows = csv.reader(io.StringIO(text, newline=""))
                    expect(not any(begins_like_formula(cell) for row in rows for cell in row),
                           f"{command}: formulas in CSV")
                if style == "markdown":
                    expect("<script" not in text, f"{command}: HTML in Markdown")

    # JSON keeps the names as they are, whatever they hold.
    rows = program.json("sql", "SELECT DISTINCT sni FROM flow ORDER BY flow_id")
    expect([row["sni"] for row in rows] == HOSTILE, "names in JSON")
    lines = program.text("sql", "SELECT DISTINCT sni FROM flow ORDER BY flow_id", "--format",
                         "ndjson").splitlines()
    expect([json.loads(line)["sni"] for line in lines] == HOSTILE, "names in NDJSON")

    # A command that is offered to be pasted holds no name that a shell or SQL would obey.
    for line in program.text("report").splitlines():
        pasted = re.match(r"  firstflight .*", line)
        expect(not pasted or re.fullmatch(r"  firstflight report early-data --where "
                                          r"\"client_region='[A-Za-z0-9._:/-]+'\" --by site", line),
               f"offered command: {line!r}")


# -- ladders of real flows --

def test_ladders(program_path, directory):
    def ladder(name):
        database = directory / f"{name}.db"
        program = Program(program_path, database)
        capture = TOP / "samples" / "scenarios" / f"{name}.pcap"
        subprocess.run([program_path, "ingest", "-q", "-d", database, capture], check=True)
        plain = program.text("show", "1", locale="C")
        expect(plain.isascii() and all(len(line) <= 100 for line in plain.splitlines()),
               f"{name}: ASCII lines of at most 100 columns")
        uid = program.json("flows")[0]["flow_uid"]
        expect(program.text("show", uid[:8].upper(), locale="C") == plain,
               f"{name}: by its flow_uid")
        return plain

    def place(text, words):
        expect(words in text, f"{words!r} in\n{text}")
        return text.find(words)

    early = ladder("tls13_0rtt_accepted")
    expect(place(early, "/ |- ClientHello") < place(early, "|- early data") <
           place(early, "| |<------------ RESPONSE -|") < place(early, "\\ |- EndOfEarlyData"),
           "an early answer lies inside the bracket")
    late = ladder("tls13_0rtt_accepted_late")
    expect(place(late, "\\ |- EndOfEarlyData") < place(late, "  |<------------ RESPONSE -|"),
           "a late answer lies below the bracket")
    place(ladder("tls13_0rtt_rejected_hrr"), "<--- HelloRetryRequest -|")
    place(ladder("tls13_full"), "no psk: full, certain")
    place(ladder("tls12_full"), "ClientKeyExchange")
    place(ladder("failed_by_client_alert"), "alert")
    place(ladder("refused"), "failed: refused")
    place(ladder("plaintext_http"), "no TLS")


# -- what is not as it should be --

def test_odd_databases(program_path, directory):
    empty = Database(directory / "empty.db")
    empty.connection.execute("DELETE FROM capture")
    empty.connection.commit()
    program = Program(program_path, empty.path)
    expect("No TLS flows in the database." in program.text("report"), "report of an empty database")
    expect(program.json("report") == [] and program.json("flows") == [], "empty results")
    expect(program.text("captures").startswith("0 files of 0 capture points"), "no captures")

    (directory / "text.db").write_text("this is no database, but long enough to look into it")
    for name in ("missing.db", "text.db"):
        result = Program(program_path, directory / name).run("report")
        expect(result.returncode == 2 and name in result.stderr.decode(),
               f"{name}: exit {result.returncode}, {result.stderr.decode().strip()}")
    result = program.run("report", "-o", directory / "no" / "such")
    expect(result.returncode == 2, "an output that cannot be made")
    result = Program(program_path, empty.path).run("flows", "-o", "/dev/full")
    expect(result.returncode == 2, "an output that is full")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        test_numbers(program, directory)
        test_hostile(program, directory)
        test_ladders(program, directory)
        test_odd_databases(program, directory)
    print(f"{len(FAILURES)} failures")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
