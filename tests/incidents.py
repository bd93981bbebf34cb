#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plays incidents with captures of its own and holds what report incident says of them.

usage: incidents.py FIRSTFLIGHT

Three sites, twenty minutes; after ten something happens: a deploy no longer shares ticket keys,
0-RTT is switched on for a login name, one region is slowed by loss, by a longer way, by a slow
origin, a server refuses handshakes, or a capture stops. The report must name the cause first, at
the right place, with SQL that runs and flows that show it; and it must say nothing of a quiet time.
Numbers and intervals are computed here again, by other means. Prints each failure and exits 1 when
there is any.
"""
import json
import os
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile

import handshakes

TOP = pathlib.Path(__file__).resolve().parent.parent
START_NS = 1780408800 * 10**9  # 2026-06-02 14:00 UTC
MINUTE_NS = 60 * 10**9
SINCE = "2026-06-02T14:10:00"
BEGAN_S = 660  # a minute after the window of the incident begins

# site: host, region, address of the server, prefix of its visitors, round trip
SITES = {
    "fra1": ("fra1-a", "eu", "192.0.2.1", "198.18.1", 12.0),
    "fra2": ("fra2-a", "eu", "192.0.2.2", "198.18.2", 12.5),
    "sin1": ("sin1-a", "sea", "192.0.2.3", "198.18.3", 60.0),
}
NAMES = {"www.example.com": 5, "api.example.com": 3, "login.example.com": 2}
KEY, NEW_KEY = b"key of the fleet", b"key of the canar"

FAILURES = []


def expect(condition, what):
    if not condition:
        FAILURES.append(what)
        print("FAILED:", what)


# -- playing --

def quiet_flow(draw, site, start_ns, port):
    _, _, server, prefix, rtt = SITES[site]
    offers = draw.random() < 0.7
    name = draw.choices(list(NAMES), NAMES.values())[0]
    return handshakes.Flow(
        start_ns=start_ns, client=f"{prefix}.{draw.randrange(1, 250)}", port=port, server=server,
        sni=name, rtt_ms=rtt * (1 + draw.expovariate(10)), think_ms=draw.lognormvariate(1.2, 0.5),
        ticket_key=KEY if offers else b"", accepts=draw.random() < 0.97,
        early=offers and name == "www.example.com" and draw.random() < 0.5,
        lost_ms=220 if draw.random() < 0.01 else 0)


def play(directory, flows, seed, incident):
    """Writes the captures of all sites; incident(flow, site, seconds, draw) changes a flow."""
    draw = random.Random(seed)
    by_site = {site: [] for site in SITES}
    for i in range(flows):
        site = draw.choice(list(SITES))
        start_ns = START_NS + 20 * MINUTE_NS * i // flows + draw.randrange(10**8)
        flow = quiet_flow(draw, site, start_ns, 10000 + i)
        incident(flow, site, (start_ns - START_NS) / 1e9, draw)
        by_site[site].append(flow)
    for site, (host, region, *_) in SITES.items():
        handshakes.write_capture(directory / "captures" / region / site / host / "edge.pcap",
                                 by_site[site])
    return {flow.port: flow for flow in sum(by_site.values(), [])}


def nothing(_flow, _site, _seconds, _draw):
    pass


def keys_not_shared(flow, site, seconds, draw):
    """fra2 seals with a key of its own from then on, and knows no other."""
    if seconds < BEGAN_S or not flow.ticket_key:
        return
    if draw.random() < (0.1 if site == "fra2" else 0.02):
        flow.ticket_key = NEW_KEY
    flow.accepts = (flow.ticket_key == NEW_KEY) == (site == "fra2")


def early_data_for_login(flow, _site, seconds, draw):
    if seconds >= BEGAN_S and flow.sni == "login.example.com" and flow.ticket_key:
        flow.early = draw.random() < 0.6


def lossy_way(flow, site, seconds, draw):
    if seconds >= BEGAN_S and site == "sin1" and draw.random() < 0.2:
        flow.lost_ms = draw.choice((220, 640))


def longer_way(flow, site, seconds, _draw):
    if seconds >= BEGAN_S and site == "sin1":
        flow.rtt_ms += 45


def slow_origin(flow, site, seconds, draw):
    if seconds >= BEGAN_S and site == "sin1":
        flow.think_ms += 150 + 20 * draw.random()


def refusing_server(flow, site, seconds, draw):
    if seconds >= BEGAN_S and site == "fra1" and draw.random() < 0.15:
        flow.alert = True


class Report:
    """A played incident, read and reported."""

    def __init__(self, program, directory, flows, seed, incident):
        self.program, self.database = program, directory / "incident.db"
        self.truth = play(directory, flows, seed, incident)
        clients = directory / "clients.csv"
        clients.write_text("198.18.1.0/24,eu\n198.18.2.0/24,eu\n198.18.3.0/24,sea\n")
        self.run("ingest", "-q", "--no-labels", "--no-facts", "--clients", clients, "--labels",
                 "{region}/{site}/{host}/*", directory / "captures")
        self.connection = sqlite3.connect(self.database)
        found = self.connection.execute("SELECT count(*) FROM flow").fetchone()[0]
        expect(found == flows, f"{found} of {flows} flows")

    def run(self, command, *arguments):
        result = subprocess.run([self.program, command, "-d", self.database, *arguments],
                                check=False, capture_output=True,
                                env={**os.environ, "LC_ALL": "C.UTF-8"})
        expect(result.returncode == 0,
               f"{command} {arguments}: exit {result.returncode}, {result.stderr.decode()}")
        return result.stdout.decode()

    def json(self, *arguments):
        return json.loads(self.run("report", "incident", "--since", SINCE, "--format", "json",
                                   *arguments))

    def text(self, *arguments):
        return self.run("report", "incident", "--since", SINCE, *arguments)

    def rows(self, sql):
        return self.connection.execute(sql).fetchall()


def expect_first(report, incident, measure, place, words):
    """The cause is the first change; its SQL and examples are right. Returns its row."""
    changes = report.json()["changes"]
    expect(bool(changes), f"{incident}: nothing found")
    if not changes:
        return None
    first = changes[0]
    expect(first["measure"] == measure and first["role"] == "cause" and place in first["scope"],
           f"{incident}: first {first['measure']} at {first['scope']}")
    expect(all(word in (first["cause"] or "") for word in words),
           f"{incident}: cause {first['cause']!r}")
    expect(first["low"] <= first["change"] <= first["high"] and first["low"] * first["high"] > 0,
           f"{incident}: interval {first['low']} {first['change']} {first['high']}")
    causes = [change for change in changes if change["role"] == "cause"]
    expect(len(causes) <= 2, f"{incident}: {[(c['measure'], c['scope']) for c in causes]}")

    ids = {flow_id for flow_id, in report.rows(
        f"SELECT flow_id FROM flow WHERE start_epoch_ns >= {START_NS + 10 * MINUTE_NS}"
        f" AND ({first['where']})")}
    examples = [first[f"example_{i}"] for i in (1, 2, 3)]
    expect(len(set(examples)) == 3 and set(examples) <= ids,
           f"{incident}: examples {examples} of {len(ids)} flows")
    listed = report.run("flows", "--since", SINCE, "--where", first["where"], "--limit", "100000",
                        "--format", "json")
    expect({row["flow_id"] for row in json.loads(listed)} == ids, f"{incident}: flows --where")
    text = report.text()
    expect(all(len(line) <= 100 or line.startswith("  firstflight ") for line in text.splitlines()),
           f"{incident}: lines of at most 100 columns")
    expect("\n1. " in text and (not words or words[0] in " ".join(text.split())),
           f"{incident}: text\n{text}")
    return first


def began_seconds(change):
    hours, minutes, seconds = change["began"].split("T")[1].rstrip("Z").split(":")
    return (int(hours) - 14) * 3600 + int(minutes) * 60 + float(seconds)


def expect_began(first, incident, within_s):
    expect(first and first["began"] and abs(began_seconds(first) - BEGAN_S) <= within_s,
           f"{incident}: began {first and first['began']}")


def example_flows(report, first):
    """What the generator knows of the example flows."""
    ports = report.rows("SELECT client_port FROM flow WHERE flow_id IN "
                        f"({first['example_1']}, {first['example_2']}, {first['example_3']})")
    return [report.truth[port] for port, in ports]


# -- the same numbers by other means --

def quantile(values, p):
    ordered = sorted(values)
    rank = p * (len(ordered) - 1)
    return sum(value * max(0.0, 1 - abs(i - rank)) for i, value in enumerate(ordered))


def strata_of(report, first, value, key, where):
    """Values before and since the change began, by what makes flows alike."""
    middle = START_NS + 10 * MINUTE_NS
    began = START_NS + round(began_seconds(first) * 10**9) if first["began"] else middle
    where += f") AND (start_epoch_ns < {middle} OR start_epoch_ns >= {began}"
    strata = {}
    for *alike, during, number in report.rows(
            f"SELECT {key}, start_epoch_ns >= {middle}, {value} FROM flow"
            f" WHERE ({where}) AND {value} IS NOT NULL"):
        strata.setdefault(tuple(alike), ([], []))[during].append(number)
    return [pair for pair in strata.values() if pair[0] and pair[1]]


def change_of(strata, pick):
    """Means over the strata of both windows, weighted by n0 n1 / (n0 + n1)."""
    weights = [len(a) * len(b) / (len(a) + len(b)) for a, b in strata]
    means = [sum(w * pick(pair[i]) for w, pair in zip(weights, strata)) / sum(weights)
             for i in (0, 1)]
    return means[0], means[1]


def bootstrap(strata, pick, rounds=400):
    draw = random.Random(99)
    changes = []
    for _ in range(rounds):
        before, during = change_of([tuple(draw.choices(values, k=len(values)) for values in pair)
                                    for pair in strata], pick)
        changes.append(during - before)
    changes.sort()
    return changes[int(0.025 * rounds)], changes[int(0.975 * rounds)]


def expect_numbers(first, strata, pick, what):
    before, during = change_of(strata, pick)
    scale = max(abs(before), abs(during))
    for name, number in (("before", before), ("during", during), ("change", during - before)):
        expect(abs(first[name] - number) <= 1e-6 * scale, f"{what}: {name} {first[name]} {number}")
    low, high = bootstrap(strata, pick)
    width = high - low
    expect(abs(first["low"] - low) <= 0.35 * width and abs(first["high"] - high) <= 0.35 * width,
           f"{what}: interval {first['low']} {first['high']}, {low} {high} by bootstrap")
    for window, i in (("before", 0), ("during", 1)):
        expect(first[f"flows_{window}"] == sum(len(pair[i]) for pair in strata),
               f"{what}: flows {window}")


def mean(values):
    return sum(values) / len(values)


# -- the incidents --

def test_keys(report):
    told = report.text().partition("\nWhere the time went")[0]
    shown = "".join(f"    {line}\n" if line else "\n" for line in told.splitlines())
    expect(shown in (TOP / "README.md").read_text(encoding="utf-8"),
           f"keys: README shows something else than\n{shown}")
    first = expect_first(report, "keys", "resumption_accepted", "fra2",
                         ["ticket keys are not shared",
                          f"{KEY.hex()[:6]}..{KEY.hex()[-2:]}", "accepted at"])
    expect_began(first, "keys", 15)
    if not first:
        return
    expect(all(flow.ticket_key == KEY and not flow.accepts for flow in example_flows(report, first)),
           "keys: examples are refused tickets")
    expect("fra1-a" in first["cause"], f"keys: who accepts: {first['cause']}")
    refused = "CASE WHEN resumption_offered = 1 THEN resumed_by IS NOT NULL END"
    strata = strata_of(report, first, refused, "client_region, vantage, sni", "site = 'fra2'")
    expect_numbers(first, strata, mean, "keys")

    # A site whose name a terminal, a shell or SQL would obey.
    hostile = "fra2\x1b[2J'\"$(reboot)\u202e"
    report.connection.execute("UPDATE flow SET site = ?, host = NULL WHERE site = 'fra2'",
                              (hostile,))
    report.connection.commit()
    first = expect_first(report, "keys, hostile", "resumption_accepted", "fra2", ["not shared"])
    text = report.text()
    expect("\x1b" not in text and "\u202e" not in text, "keys: a hostile name on the terminal")
    commands = [line for line in text.splitlines() if line.startswith("  firstflight flows")]
    expect(commands and not any(mark in command for command in commands for mark in "$`\\!"),
           f"keys: offered commands {commands}")


def test_login(report):
    report.connection.execute("INSERT OR REPLACE INTO early_data_rule VALUES ('login.*', 0, NULL)")
    report.connection.commit()
    first = expect_first(report, "login", "early_offered", "sni login.example.com",
                         ["switched on", "login.* forbids"])
    expect_began(first, "login", 30)
    if first:
        expect(all(flow.early for flow in example_flows(report, first)), "login: examples")


def test_loss(report):
    first = expect_first(report, "loss", "resent", "sin1", ["packets are lost"])
    if first:
        expect(all(flow.lost_ms for flow in example_flows(report, first)), "loss: examples")


def test_route(report):
    first = expect_first(report, "route", "rtt_p5", "sin1", ["way", "longer"])
    expect_began(first, "route", 15)
    if first:
        strata = strata_of(report, first, "CASE WHEN rtt_basis <> 'neighbour' THEN rtt_ns END",
                           "client_region, vantage", "site = 'sin1'")
        expect_numbers(first, strata, lambda values: quantile(values, 0.05), "route")
        expect(40e6 < first["change"] < 50e6, f"route: {first['change']}")


def test_origin(report):
    first = expect_first(report, "origin", "server_think_p50", "sin1", ["origin", "network"])
    expect_began(first, "origin", 15)
    if first:
        expect(all(flow.think_ms > 100 for flow in example_flows(report, first)),
               "origin: examples")


def test_refusals(report):
    first = expect_first(report, "refusals", "failed", "fra1", ["handshake_failure"])
    if first:
        expect(all(flow.alert for flow in example_flows(report, first)), "refusals: examples")


def test_quiet(report):
    changes = report.json()["changes"]
    expect(changes == [], f"quiet: {[(c['measure'], c['scope'], c['z']) for c in changes]}")
    text = report.text()
    expect("Nothing changed: chance explains each of " in text and "Captures differ" not in text, f"quiet:\n{text}")
    narrow = report.json("--by", "client_prefix", "--where", "sni LIKE '%.example.com'")
    expect(narrow["changes"] == [], "quiet by client_prefix")


def test_captures(program, directory):
    """A capture that stops is no incident of the servers."""
    report = Report(program, directory, 900, 3, lambda flow, site, seconds, draw: None)
    report.connection.execute("DELETE FROM flow WHERE site = 'fra2' AND start_epoch_ns >= ?",
                              (START_NS + 12 * MINUTE_NS,))
    report.connection.execute("UPDATE capture SET last_packet_epoch_ns = ?, kernel_drops = 1234"
                              " WHERE site = 'fra2'", (START_NS + 12 * MINUTE_NS,))
    report.connection.commit()
    text = report.text()
    warning = text.find("Captures differ at host fra2-a: captured for 20% of the window, before for"
                        " 100%")
    expect(0 < warning < text.find("1. connections fell at site fra2"), f"captures:\n{text}")
    expect("1,234 packets to the kernel" in " ".join(text.split()), f"captures: drops\n{text}")


def test_usage(program, report):
    for arguments, words in (((), "needs --since"),
                             (("--since", "14:10", "--baseline", "14:00"), "is no window"),
                             (("--since", "14:10", "--baseline", "14:05..14:01"), "is no window"),
                             (("--since", "14:10", "--by", "nope"), "no column")):
        result = subprocess.run([program, "report", "-d", report.database, "incident", *arguments],
                                check=False, capture_output=True)
        expect(result.returncode == 1 and words in result.stderr.decode(),
               f"{arguments}: exit {result.returncode}, {result.stderr.decode()}")
    empty = report.run("report", "incident", "--since", "2026-06-03", "--until", "2026-06-04")
    expect("Too few connections" in empty, f"an empty window:\n{empty}")
    for style in ("csv", "markdown", "html"):
        expect(report.text("--format", style) != "", style)


INCIDENTS = (
    (keys_not_shared, test_keys), (early_data_for_login, test_login), (lossy_way, test_loss),
    (longer_way, test_route), (slow_origin, test_origin), (refusing_server, test_refusals),
    (nothing, test_quiet),
)


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    for seed, (incident, test) in enumerate(INCIDENTS, 1):
        with tempfile.TemporaryDirectory() as name:
            report = Report(program, pathlib.Path(name), 1200, seed, incident)
            test(report)
            if incident is nothing:
                test_usage(program, report)
    with tempfile.TemporaryDirectory() as name:
        test_captures(program, pathlib.Path(name))
    print(f"{len(FAILURES)} failures")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
