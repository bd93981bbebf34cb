#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the reports early-data, policy, replays and ticket-keys against what is known.

usage: early_data.py FIRSTFLIGHT

First captures that are made for each case: one 0-RTT connection of the samples is written anew with
other clients, times, clocks, randoms, tickets and names, so that it is a replay, a retransmission,
the same connection seen twice, or a ticket used again. Then a database of random flows, whose
numbers are counted here again, with dictionaries. Prints each failure and exits 1 when there is
any.
"""
import collections
import csv
import io
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile

from invariance import SYN, captured_twice, in_order, read, write
from report import FAILURES, START_NS, TOP, Database, Program, expect

SECOND = 10**9
PRE_SHARED_KEY, SERVER_NAME, ENCRYPT_THEN_MAC, ECH = 0x0029, 0x0000, 0x0016, 0xFE0D
GREASE = b"\xfa\xfa"


# -- one connection, written anew --

class Connection:
    """Packets of a sample, and where the fields lie that make it another one."""

    def __init__(self, packets):
        self.packets = packets
        self.client = packets[0].source

    @classmethod
    def of(cls, name):
        return cls(read(TOP / "samples" / "scenarios" / f"{name}.pcap"))

    def index(self, of_client):
        """The packet whose payload begins with the hello of that side."""
        return next(i for i, p in enumerate(self.packets)
                    if (p.source == self.client) == of_client and p.payload[:1] == b"\x16")

    def with_payload(self, of_client, change):
        i = self.index(of_client)
        payload = bytearray(self.packets[i].payload)
        length = len(payload)
        change(payload)
        assert len(payload) == length
        return Connection(self.packets[:i] + [self.packets[i].but(payload=bytes(payload))] +
                          self.packets[i + 1:])

    def sent(self, seconds, host, port):
        """By another client, later."""
        client, port = bytes([198, 51, 100, host]), struct.pack(">H", port)
        return Connection([
            p.but(at=p.at + round(seconds * SECOND),
                  source=client if p.source == self.client else p.source,
                  target=client if p.target == self.client else p.target,
                  ports=port + p.ports[2:] if p.source == self.client else p.ports[:2] + port)
            for p in self.packets])

    def answered_anew(self, draw):
        def change(payload):
            payload[11:43] = draw.randbytes(32)
        return self.with_payload(False, change)

    def greeted_anew(self, draw):
        def change(payload):
            payload[11:43] = draw.randbytes(32)
        return self.with_payload(True, change)

    def psk_refused(self):
        """The server's answer no longer selects the key."""
        def change(payload):
            at = bytes(payload).index(struct.pack(">HHH", PRE_SHARED_KEY, 2, 0))
            payload[at:at + 2] = GREASE
        return self.with_payload(False, change)

    def ticket_begins(self, beginning, draw):
        """Another ticket of the key that its first bytes name."""
        def change(payload):
            at, length = extension(payload, PRE_SHARED_KEY)
            identity = at + 4
            size = struct.unpack(">H", payload[at + 2:at + 4])[0]
            assert size < length
            payload[identity:identity + size] = beginning + draw.randbytes(size - len(beginning))
        return self.with_payload(True, change)

    def for_name(self, name):
        """Another name of the same length; None takes it away."""
        def change(payload):
            at, length = extension(payload, SERVER_NAME)
            if name is None:
                payload[at - 4:at - 2] = GREASE
            else:
                payload[at + 5:at + length] = name.encode("ascii")
        return self.with_payload(True, change)

    def with_ech(self):
        def change(payload):
            at, _ = extension(payload, ENCRYPT_THEN_MAC)
            payload[at - 4:at - 2] = struct.pack(">H", ECH)
        return self.with_payload(True, change)


def extension(payload, wanted):
    """Where the body of an extension of the ClientHello begins, and its length (RFC 8446 4.1.2)."""
    at = 5 + 4 + 2 + 32
    at += 1 + payload[at]
    at += 2 + struct.unpack(">H", payload[at:at + 2])[0]
    at += 1 + payload[at] + 2
    while True:
        kind, length = struct.unpack(">HH", payload[at:at + 4])
        if kind == wanted:
            return at + 4, length
        at += 4 + length


# -- the cases: name -> files of a site --

def hello_again(packets):
    """The ClientHello is sent once more a fifth of a second later."""
    i = next(i for i, p in enumerate(packets) if p.payload[:1] == b"\x16")
    hello = packets[i]
    return in_order(packets + [hello.but(at=hello.at + SECOND // 5, id=hello.id + 1)])


def syn_again(packets):
    """The first SYN got no answer: it is sent again after a second, and all the rest comes later."""
    first = packets[0]
    assert first.flags == SYN
    return [first] + [p.but(at=p.at + SECOND, id=p.id + 1) for p in packets]


def shifted(packets, ns):
    return [p.but(at=p.at + ns) for p in packets]


def write_cases(directory, draw):
    accepted = Connection.of("tls13_0rtt_accepted")
    replayed = accepted.sent(5, 77, 40000).answered_anew(draw)

    def put(site, files):
        for host, packets in files.items():
            write(directory / site / host / "a.pcap", packets)

    def mixed(*connections):
        return in_order([p for c in connections for p in c.packets])

    put("accepted_twice", {"a": mixed(accepted, replayed)})
    put("twice_at_two_sites", {"a": accepted.packets, "b": replayed.packets})
    put("refused", {"a": mixed(accepted, replayed.psk_refused())})
    put("hello_again", {"a": hello_again(accepted.packets)})
    put("two_points", {"a": accepted.packets, "b": shifted(accepted.packets, 3_700_000_000)})
    put("mirror_port", {"a": captured_twice(accepted.packets)})
    put("syn_again", {"a": syn_again(accepted.packets)})
    put("ticket_again", {"a": mixed(
        accepted, accepted.sent(5, 77, 40000).greeted_anew(draw).answered_anew(draw).psk_refused())})
    # A replay that no server answered in the capture may be the same connection, seen elsewhere.
    one_sided = [p for p in replayed.packets if p.source == replayed.packets[0].source]
    put("no_answer", {"a": in_order(accepted.packets + one_sided)})

    def fresh(host, number, beginning):
        return (accepted.sent(number, host, 40000 + number).greeted_anew(draw).answered_anew(draw)
                .ticket_begins(beginning, draw))

    key, other = draw.randbytes(16), draw.randbytes(16)
    put("not_shared", {
        "knows": mixed(*(fresh(80, n, key) for n in range(6))),
        "does-not": mixed(*(fresh(81, n, key).psk_refused() for n in range(7, 11)),
                          *(fresh(82, n, other) for n in range(11, 14)))})
    put("random_names", {"a": mixed(*(fresh(83, n, b"") for n in range(20)))})
    short = draw.randbytes(4)
    put("short_names", {"a": mixed(*(fresh(84, n, short) for n in range(5)))})

    def named(number, name):
        return accepted.sent(number, 90, 40000 + number).answered_anew(draw).greeted_anew(
            draw).for_name(name)

    put("names", {"a": mixed(
        named(1, "login.bank.test"), named(2, "LOGIN.bank.test"), named(3, "login.bank.test")
        .psk_refused(), named(4, "bloginfo.a.test"), named(5, "static.pay.test"), named(6, None),
        named(7, "www.an.example.").with_ech())})


def by_column(rows, *columns):
    return {tuple(row[c] for c in columns): row for row in rows}


class Cases:
    def __init__(self, program):
        self.program = program

    def report(self, name, site, *options):
        return self.program.json("report", name, "--where", f"site = '{site}'", *options)

    def flows(self, site):
        return self.program.json("sql", f"SELECT * FROM flow WHERE site = '{site}'")


def fact(report, name):
    """The number of a fact, 0 where it is not told."""
    found = [re.match(rf"{name}: ([0-9,]+) ", note) for note in report["notes"]]
    return sum(int(match[1].replace(",", "")) for match in found if match)


def test_replays(cases):
    for site, rows in (("accepted_twice", 2), ("twice_at_two_sites", 2), ("refused", 2),
                       ("hello_again", 1), ("two_points", 2), ("mirror_port", 1), ("syn_again", 1),
                       ("ticket_again", 2), ("no_answer", 2)):
        expect(len(cases.flows(site)) == rows, f"{site}: {len(cases.flows(site))} rows")

    for site in ("accepted_twice", "twice_at_two_sites"):
        report = cases.report("replays", site)
        expect(len(report["replays"]) == 1, f"{site}: {report['replays']}")
        row = report["replays"][0]
        expect((row["finding"], row["connections"], row["accepted"], row["rejected"],
                row["clients"]) == ("accepted_twice", 2, 2, 0, 2), f"{site}: {row}")
        expect(row["span_ns"] == 5 * SECOND and len(row["flow_ids"].split()) == 2, f"{site}: span")
        expect(any(note.startswith("1 replay of early data seen at these points, 1 of them")
                   for note in report["notes"]), f"{site}: {report['notes']}")
        expect(report["ticket_reuse"] == [], f"{site}: a replay is no use of a ticket of its own")
    report = cases.report("replays", "refused")
    row = report["replays"][0]
    expect((row["finding"], row["accepted"], row["rejected"]) == ("refused", 1, 1), f"{row}")
    grouped = cases.report("replays", "twice_at_two_sites", "--by", "host")["replays"]
    expect([(row["host"], row["connections"], row["accepted"]) for row in grouped] ==
           [("a", 1, 1), ("b", 1, 1)], f"by host: {grouped}")

    for site in ("hello_again", "two_points", "mirror_port", "syn_again", "ticket_again",
                 "no_answer"):
        report = cases.report("replays", site)
        expect(report["replays"] == [], f"{site} is no replay: {report['replays']}")
        expect(any(note.startswith("0 replays of early data seen at these points")
                   for note in report["notes"]), f"{site}: {report['notes']}")
    two = cases.report("replays", "two_points")
    expect(fact(two, "Counted once") == 1 and fact(two, "Rests on") == 1, f"{two['notes']}")
    expect(fact(cases.report("replays", "no_answer"), "Unclear") == 1, "a copy without an answer")
    expect(cases.flows("mirror_port")[0]["duplicates"] > 0, "the mirror port was seen as such")
    expect(cases.flows("hello_again")[0]["client_retransmits"] == 1, "it was sent again")

    tickets = cases.report("replays", "ticket_again")["ticket_reuse"]
    expect(len(tickets) == 1 and (tickets[0]["uses"], tickets[0]["resumed"],
                                  tickets[0]["early_data_accepted"]) == (2, 1, 1), f"{tickets}")


def test_keys(cases):
    report = cases.report("ticket-keys", "not_shared")
    found = {(row["host"], row["offered"], row["accepted"], row["refused"],
              row["accepted_elsewhere"]) for row in report["ticket_keys"]}
    expect(found == {("knows", 6, 6, 0, 0), ("does-not", 4, 0, 4, 6), ("does-not", 3, 3, 0, 0)},
           f"keys: {found}")
    expect(report["ticket_keys"][0]["refused"] == 4, "what is not shared stands first")
    expect(any("4 tickets were refused where no ticket of that key is ever accepted" in note
               for note in report["notes"]), f"{report['notes']}")
    ages = report["refusals_by_age"]
    expect([(row["age"], row["offered"], row["refused"]) for row in ages] ==
           [("below 10 min", 13, 4)], f"ages: {ages}")
    expect(report["no_key_name"] == [], "all of them name a key")

    for site, keys, nameless in (("random_names", 0, 20), ("short_names", 1, 0)):
        report = cases.report("ticket-keys", site)
        expect(len(report["ticket_keys"]) == keys, f"{site}: {report['ticket_keys']}")
        expect(sum(row["names"] for row in report["no_key_name"]) == nameless, f"{site}: names")
        expect(fact(report, "No key name") == nameless, f"{site}: {report['notes']}")
    expect(len(report["ticket_keys"][0]["ticket_key_name"]) == 8, "a key name of four bytes")
    view = cases.program.json("sql", "SELECT site, host, ticket_key_name, names, offered, accepted,"
                              " refused, accepted_elsewhere FROM ticket_key")
    by_host = by_column(view, "site", "host", "offered")
    expect(by_host["not_shared", "does-not", 4]["accepted_elsewhere"] == 6, "view ticket_key")
    expect(by_host["random_names", "a", 20]["ticket_key_name"] is None and
           by_host["random_names", "a", 20]["names"] == 20, "random names in view ticket_key")


def test_policy(cases, directory):
    report = cases.report("policy", "names")
    rows = by_column(report["policy"], "sni", "pattern")
    expect(set(rows) == {("login.bank.test", "*.bank.*"), ("LOGIN.bank.test", "*.bank.*"),
                         ("static.pay.test", "*.pay.*")}, f"{sorted(rows)}")
    login = rows["login.bank.test", "*.bank.*"]
    expect((login["offered"], login["accepted"], login["rejected"]) == (2, 1, 1), f"{login}")
    expect(login["basis"] == "protocol 1, strong 1", login["basis"])
    findings = by_column(report["findings"], "finding")
    expect(findings["forbidden",]["offered"] == 4 and findings["no_rule",]["offered"] == 2 and
           findings["not_checked",]["offered"] == 1, f"{findings}")
    expect(fact(report, "Not checked") == 1 and fact(report, "Perhaps hidden") == 1 and
           fact(report, "Rests on") == 7, f"{report['notes']}")
    expect(any(note.startswith("3 names accepted early data 3 times") for note in report["notes"]),
           f"{report['notes']}")

    rules = directory / "rules.csv"
    rules.write_text("pattern,allowed,comment\nlogin.*,yes\n*.bank.test,no,\"money, and so on\"\n"
                     "bloginfo.a.test,no\n", encoding="utf-8")
    report = cases.report("policy", "names", "--rules", rules)
    expect({(row["sni"], row["comment"]) for row in report["policy"]} ==
           {("login.bank.test", "money, and so on"), ("LOGIN.bank.test", "money, and so on"),
            ("bloginfo.a.test", None)}, f"with rules of a file: {report['policy']}")
    report = cases.report("policy", "names", "--rules", "/dev/null")
    expect(report["policy"] == [] and any(note.startswith("There are no rules")
                                          for note in report["notes"]), "no rules")
    rules.write_text("login.*,perhaps\n", encoding="utf-8")
    result = cases.program.run("report", "policy", "--rules", rules)
    expect(result.returncode == 2 and b"rules.csv:1:" in result.stderr, "a rule that is none")

    view = cases.program.json("sql", "SELECT finding, sum(flows) AS flows FROM early_data_policy"
                              " WHERE sites = 'names' GROUP BY finding")
    expect({row["finding"]: row["flows"] for row in view} ==
           {"forbidden": 4, "no_rule": 2, "not_checked": 1}, f"view early_data_policy: {view}")


def test_set_rules(program_path, directory):
    database = directory / "rules.db"
    program = Program(program_path, database)
    rules = directory / "mine.csv"
    rules.write_text("a.*,no,first\n", encoding="utf-8")
    result = program.run("set-rules", "--rules", rules)
    expect(result.returncode == 0 and b"1 rules" in result.stderr, result.stderr.decode())
    expect(program.json("sql", "SELECT pattern, allowed, comment FROM early_data_rule") ==
           [{"pattern": "a.*", "allowed": 0, "comment": "first"}], "a new database")
    indexes = program.json("sql", "SELECT name FROM sqlite_schema WHERE type = 'index'"
                           " AND sql IS NOT NULL")
    expect(indexes == [], "no indexes before the first load")
    rules.write_text("a.*,no\na.*,yes\n", encoding="utf-8")
    result = program.run("set-rules", "--rules", rules)
    expect(result.returncode == 2 and b"comes twice" in result.stderr, "a rule that comes twice")
    expect(len(program.json("sql", "SELECT 1 FROM early_data_rule")) == 1, "nothing was changed")
    expect(program.run("set-rules").returncode == 1, "no file")


# -- random flows, counted again --

def random_flows(database, draw):
    """Replays, copies, tickets, keys and names at random; gives what it made."""
    flows = []
    names = ["www.example.com", "login.example.com", "a-pay.example.org", "shop.example.net", None]
    for number in range(3000):
        early = draw.choice(["not_offered", "accepted", "accepted", "rejected", "unknown"])
        flow = {
            "client_ip": f"203.0.113.{draw.randrange(9)}", "sni": draw.choice(names),
            "client_prefix": f"203.0.{draw.randrange(4)}.0/24",
            "site": draw.choice(["fra", "iad", None]), "host": draw.choice(["h1", "h2"]),
            "client_hello_hash": draw.choice([f"{number:032x}"] * 8 + [f"{draw.randrange(60):x}"]),
            "server_random_hash": draw.choice([f"r{number}"] * 9 + [f"r{draw.randrange(50)}", None]),
            "psk_identity_hash": draw.choice([None, f"t{number}", f"t{draw.randrange(400)}"]),
            "early_data": early, "early_data_bytes": draw.choice([None, 0, 100, 250]),
            "early_data_basis": None if early == "unknown" else draw.choice(["strong", "weak"]),
            "early_data_reason": draw.choice(["psk_refused", "hello_retry"]),
            "answered_early": draw.choice([0, 1, None]) if early == "accepted" else None,
            "handshake": draw.choice(["full", "resumed", "0-rtt", "unknown", "none"]),
            "leg": draw.choice(["inbound"] * 5 + ["unknown", "outbound"]),
            "resumption_offered": 1, "start_epoch_ns": START_NS + draw.randrange(9 * 10**13),
        }
        flow["ticket_key_name"] = draw.choice(
            [None, f"{draw.randrange(5):032x}", f"{draw.getrandbits(128):032x}",
             f"{7:08x}{draw.getrandbits(96):024x}"])
        if draw.random() < 0.1:
            flow["issued_ticket_key_name"] = f"{draw.randrange(8):032x}"
        flow["resumed_by"] = draw.choice(["psk", None])
        database.add(**flow)
        flows.append({"flow_id": database.flows, "flow_uid": f"{database.flows * 7919:032x}", **flow})
    database.connection.commit()
    return [f for f in flows if f["leg"] != "outbound" and f["handshake"] != "none"]


def count_replays(flows):
    answers = collections.defaultdict(lambda: collections.defaultdict(list))
    for f in flows:
        if f["server_random_hash"]:
            answers[f["client_hello_hash"]][f["server_random_hash"]].append(f["early_data"])
    found = {}
    for hello, connections in answers.items():
        if len(connections) > 1:
            fates = [next((fate for fate in ("accepted", "rejected", "unknown") if fate in seen),
                          "none") for seen in connections.values()]
            found[hello] = (len(connections), *(fates.count(fate) for fate in
                                                ("accepted", "rejected", "unknown")))
    return found


def count_keys(flows):
    tickets = collections.defaultdict(set)
    for f in flows:
        if f["ticket_key_name"]:
            tickets[f["ticket_key_name"]].add(f["psk_identity_hash"] or f["client_ip"])
        if f.get("issued_ticket_key_name"):
            tickets[f["issued_ticket_key_name"]].add(f["server_random_hash"] or f["flow_uid"])
    single = collections.Counter(name[:8] for name, seen in tickets.items() if len(seen) == 1)
    key_of = {name: name if len(seen) > 1 else name[:8] if single[name[:8]] > 2 else None
              for name, seen in tickets.items()}
    found, names = collections.defaultdict(lambda: [0] * 4), collections.defaultdict(set)
    for f in flows:
        place = f["site"], f["host"]
        if f.get("issued_ticket_key_name"):
            found[(*place, key_of[f["issued_ticket_key_name"]])][0] += 1
        if f["ticket_key_name"] and f["handshake"] != "unknown":
            row = found[(*place, key_of[f["ticket_key_name"]])]
            row[1] += 1
            row[2 if f["resumed_by"] else 3] += 1
    for f in flows:
        for name in (f["ticket_key_name"] if f["handshake"] != "unknown" else None,
                     f.get("issued_ticket_key_name")):
            if name and key_of[name] is None:
                names[f["site"], f["host"]].add(name)
    return found, names


def test_random(program_path, directory):
    database = Database(directory / "random.db")
    for rule in (("login.*", 0), ("*-pay.*", 0), ("*", 1)):
        database.connection.execute("INSERT INTO early_data_rule VALUES (?, ?, NULL)", rule)
    flows = random_flows(database, random.Random(5))
    program = Program(program_path, database.path)

    report = program.json("report", "replays")
    expect({row["client_hello_hash"]: (row["connections"], row["accepted"], row["rejected"],
                                       row["unknown"]) for row in report["replays"]} ==
           count_replays(flows), "replays of random flows")
    uses = collections.defaultdict(set)
    for f in flows:
        if f["psk_identity_hash"]:
            uses[f["psk_identity_hash"]].add(f["client_hello_hash"])
    reused = sorted((len(hellos) for hellos in uses.values() if len(hellos) > 1), reverse=True)
    expect([row["uses"] for row in report["ticket_reuse"]] == reused[:50], "tickets used again")
    expect(fact(report, "Tickets used again") == len(reused), "number of tickets used again")

    report = program.json("report", "ticket-keys")
    found, names = count_keys(flows)
    expect({(row["site"], row["host"], row["ticket_key_name"]):
            [row["issued"], row["offered"], row["accepted"], row["refused"]]
            for row in report["ticket_keys"]} ==
           {place: row for place, row in found.items() if place[2]}, "keys of random flows")
    expect({(row["site"], row["host"]): row["names"] for row in report["no_key_name"]} ==
           {place: len(seen) for place, seen in names.items()}, "names of no key")
    expect({(row["site"], row["host"]): [row["offered"], row["accepted"], row["refused"]]
            for row in report["no_key_name"]} ==
           {place[:2]: row[1:] for place, row in found.items() if place[2] is None}, "no key: flows")

    offered = [f for f in flows if f["early_data"] != "not_offered"]
    pattern_of = {"login.example.com": "login.*", "a-pay.example.org": "*-pay.*"}
    rows = program.json("report", "policy", "--by", "host")["policy"]
    for row in rows:
        same = [f for f in offered if pattern_of.get(f["sni"]) == row["pattern"] and
                f["host"] == row["host"]]
        taken = [f for f in same if f["early_data"] == "accepted"]
        expect((row["offered"], row["accepted"], row["clients"], row["early_data_bytes"]) ==
               (len(same), len(taken), len({f["client_prefix"] for f in same}),
                sum(f["early_data_bytes"] or 0 for f in same)), f"policy: {row}")
        expect(row["example_accepted"] == min(f["flow_id"] for f in taken), "example of policy")
    expect(len(rows) == 4, f"policy by host: {len(rows)} rows")

    rows = program.json("report", "early-data", "--by", "site,sni")["early_data"]
    for row in rows:
        same = [f for f in flows if (f["site"], f["sni"]) == (row["site"], row["sni"])]
        fates = collections.Counter(f["early_data"] for f in same)
        asked = [f for f in same if f["early_data"] != "not_offered"]
        expect((row["flows"], row["offered"], row["accepted"], row["rejected"], row["unknown"],
                row["answered_early"], row["late"], row["sent"], row["early_data_bytes"]) ==
               (len(same), len(asked), fates["accepted"], fates["rejected"], fates["unknown"],
                sum(f["answered_early"] == 1 for f in same),
                sum(f["answered_early"] == 0 for f in same),
                sum((f["early_data_bytes"] or 0) > 0 for f in asked),
                sum(f["early_data_bytes"] or 0 for f in asked)), f"early-data: {row}")
        reasons = collections.Counter(f["early_data_reason"] for f in same
                                      if f["early_data"] == "rejected")
        expect(dict(part.rsplit(" ", 1) for part in row["rejected_by"].split(", ")) ==
               {reason: str(n) for reason, n in reasons.items()}, f"reasons: {row}")
    expect(len(rows) == len({(f["site"], f["sni"]) for f in offered}), "groups of early-data")

    warning = program.text("report", "early-data", "--where", "early_data = 'accepted'")
    late = [f for f in flows if f["early_data"] == "accepted" and f["answered_early"] is not None]
    share = sum(f["answered_early"] == 0 for f in late) / len(late)
    expect(f"! {100 * share:.0f}% of accepted early data was answered only after Finished: no gain."
           in warning and 'firstflight flows --where "answered_early = 0' in warning, "no gain")

    for name in ("early-data", "policy", "replays", "ticket-keys"):
        for style in ("table", "csv", "json", "ndjson", "markdown", "html"):
            for by in ((), ("--by", "client_region,server_port"), ("--by", "")):
                text = program.text("report", name, *by, "--format", style, "--where", "flow_id < 500")
                expect(text != "", f"{name} {by} as {style}")
                if style == "csv":
                    rows = list(csv.reader(io.StringIO(text)))
                    expect(len({len(row) for row in rows}) == 1, f"{name} {by}: columns")
                if style == "json":
                    expect(json.loads(text)["notes"][0].endswith("sites"), f"{name}: notes")


def main():
    program_path = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        write_cases(directory / "cases", random.Random(4))
        subprocess.run([program_path, "ingest", "-q", "-d", directory / "cases.db", "--no-labels",
                        "--labels", "{site}/{host}/*", directory / "cases"], check=True)
        program = Program(program_path, directory / "cases.db")
        cases = Cases(program)
        test_replays(cases)
        test_keys(cases)
        test_policy(cases, directory)
        test_set_rules(program_path, directory)
        test_random(program_path, directory)
    print(f"{len(FAILURES)} failures")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
