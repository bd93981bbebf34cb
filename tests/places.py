#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Where clients and sites are: by geofeed, CSV, MaxMind databases and --sites; later as at ingest.

usage: places.py FIRSTFLIGHT

A capture made here has clients in several networks. What ingest says of them by each kind of file
must be what the file says, and set-regions must come to the same on a database that was made
without. MaxMind databases are written here, from the format's description.
"""
import ipaddress
import pathlib
import sqlite3
import struct
import subprocess
import sys
import tempfile

import privacy

CLIENTS = ("198.51.100.7", "198.51.100.200", "203.0.113.9", "2001:db8:aa::5", "192.0.2.200")
SERVER, SERVER_6 = "192.0.2.10", "2001:db8:1::1"
PROXIED = "203.0.113.77"
GEOFEED = "\ufeff# a feed as they are found\r\n" \
    "198.51.100.0/24,de,DE-HE,Frankfurt,\r\n" \
    "  198.51.100.128/25 , FR\r\n" \
    "::ffff:203.0.113.0/120,SG,,\"Singapore\",\r\n" \
    "203.0.113.64/26,,,,\r\n" \
    "2001:DB8:AA::/48,us,US-CA # comment\r\n" \
    "no.prefix/24,DE\r\n\r\n"
BY_GEOFEED = [("198.51.100.7", "DE-HE", "clients", "DE"), ("198.51.100.200", "FR", "clients", "FR"),
              ("203.0.113.9", "SG", "clients", "SG"), ("2001:db8:aa::5", "US-CA", "clients", "US"),
              ("192.0.2.200", None, None, None), ("192.0.2.201", None, None, None)]
PLACE = "client_region, client_region_basis, client_country"


# ---- a MaxMind database ----

def field(value):
    """A value of the data section, without pointers."""
    if isinstance(value, str):
        data = value.encode()
        return control(2, len(data)) + data
    if isinstance(value, int):
        return number(6, 4, value)
    if isinstance(value, bytes):
        return value
    if isinstance(value, list):
        return control(11, len(value)) + b"".join(map(field, value))
    return control(7, len(value)) + b"".join(field(k) + field(v) for k, v in value.items())


def number(kind, size, value):
    return control(kind, size) + value.to_bytes(size, "big")


def control(kind, size):
    assert size < 285
    head, more = (size, b"") if size < 29 else (29, bytes([size - 29]))
    return (bytes([kind << 5 | head]) if kind < 8 else bytes([head, kind - 7])) + more


def mmdb(entries):
    """A database of 128-bit addresses, in which IPv4 is ::a.b.c.d; prefixes must not nest."""
    nodes, data, offsets = [[None, None]], b"", {}
    for prefix, value in entries.items():
        offsets[prefix] = len(data)
        data += field(value)
        network = ipaddress.ip_network(prefix)
        bits, length = int(network.network_address), network.prefixlen + 128 - network.max_prefixlen
        at = 0
        for depth in range(length):
            side = bits >> (127 - depth) & 1
            if depth == length - 1:
                nodes[at][side] = prefix
            elif nodes[at][side] is None:
                nodes.append([None, None])
                nodes[at][side] = len(nodes) - 1
                at = len(nodes) - 1
            else:
                at = nodes[at][side]
    count = len(nodes)

    def record(target):
        number = count if target is None else target if isinstance(target, int) else \
            count + 16 + offsets[target]
        return struct.pack(">I", number)

    tree = b"".join(record(left) + record(right) for left, right in nodes)
    metadata = {"node_count": count, "record_size": number(5, 2, 32),
                "ip_version": number(5, 2, 6), "database_type": "Test",
                "binary_format_major_version": number(5, 2, 2),
                "binary_format_minor_version": number(5, 2, 0),
                "build_epoch": number(9, 8, 1780408980), "languages": [], "description": {}}
    return tree + bytes(16) + data + b"\xab\xcd\xefMaxMind.com" + field(metadata)


CITY = {"198.51.100.0/24": {"continent": {"code": "EU"}, "country": {"iso_code": "DE"},
                            "subdivisions": [{"iso_code": "HE"}]},
        "2001:db8:aa::/48": {"continent": {"code": "NA"}, "country": {"iso_code": "US"}}}
ASN = {"198.51.100.0/24": {"autonomous_system_number": 64500},
       "2001:db8:aa::/48": {"autonomous_system_number": 4200000000}}


# ---- the program ----

def capture():
    proxy = f"PROXY TCP4 {PROXIED} {SERVER} 51000 443\r\n".encode()
    packets = []
    for number, client in enumerate(CLIENTS):
        server = SERVER_6 if ":" in client else SERVER
        packets += privacy.flow(client, server, (50000 + number, 443),
                                [privacy.client_hello("www.example.com")])
    packets += privacy.flow("192.0.2.201", SERVER, (50100, 443),
                            [proxy, privacy.client_hello("www.example.com")])
    return privacy.pcap(packets)


class Trial:
    def __init__(self, program, directory):
        self.program, self.directory, self.failed = program, directory, 0
        (directory / "in/fra").mkdir(parents=True)
        self.capture = directory / "in/fra/a.pcap"
        self.capture.write_bytes(capture())
        for name, text in (("feed.csv", GEOFEED),
                           ("own.csv", "prefix,region\n198.51.100.0/26,office\n203.0.113.0/24,x\n"),
                           ("sites.csv", "site,region\nfra,eu\nsin,sea\n"),
                           ("sites2.csv", "fra,central\n"), ("bad.csv", "fra,eu,more\n")):
            (directory / name).write_bytes(text.encode())
        (directory / "city.mmdb").write_bytes(mmdb(CITY))
        (directory / "asn.mmdb").write_bytes(mmdb(ASN))

    def expect(self, is_true, what):
        if not is_true:
            self.failed += 1
            print(f"FAILED {what}")

    def same(self, got, expected, what):
        self.expect(got == expected, f"{what}:\n  got      {got}\n  expected {expected}")

    def run(self, *arguments):
        arguments = [self.directory / a[1:] if str(a).startswith("@") else a for a in arguments]
        return subprocess.run([self.program, *arguments], capture_output=True, encoding="utf-8",
                              check=False)

    def ingest(self, name, *options):
        database = self.directory / f"{name}.db"
        result = self.run("ingest", "-q", "-d", database, "--labels", "{site}/*", *options,
                          self.capture)
        self.expect(result.returncode == 0, f"{name}: {result.stderr}")
        return database

    def set_regions(self, database, *options):
        result = self.run("set-regions", "-d", database, *options)
        self.expect(result.returncode == 0, f"set-regions {options}: {result.stderr}")
        return result.stderr

    def both_ways(self, *options):
        """Rows of flow by ingest with the options, which set-regions must come to as well."""
        at_once, later = self.ingest("at-once", *options), self.ingest("later")
        said = self.set_regions(later, *options)
        self.same(rows(later, "*"), rows(at_once, "*"), f"set-regions {options}")
        self.same(captures(later), captures(at_once), f"regions of captures {options}")
        self.expect("0 changed" not in said, f"says how many changed: {said}")
        said = self.set_regions(later, *options)
        self.expect(" 0 changed" in said, f"a second time nothing changes: {said}")
        found = rows(at_once, f"client_ip, {PLACE}")
        for database in (at_once, later):
            database.unlink()
        return found


def query(database, sql):
    connection = sqlite3.connect(database)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def rows(database, columns):
    return query(database, f"SELECT {columns} FROM flow ORDER BY client_port")


def captures(database):
    return query(database, "SELECT site, region FROM capture")


def try_files(trial):
    trial.same(trial.both_ways("--clients", "@feed.csv"), BY_GEOFEED, "a geofeed")
    found = dict((row[0], row[1:]) for row in
                 trial.both_ways("--clients", "@own.csv", "--clients", "@feed.csv"))
    trial.same(found["198.51.100.7"], ("office", "clients", "DE"),
               "the first file has the region, the second the country")
    trial.same(found["198.51.100.200"], ("FR", "clients", "FR"), "what the first does not know")
    trial.same(found["192.0.2.201"], ("x", "proxy", None), "the address that a proxy names")


def try_databases(trial):
    if "libmaxminddb not built in" in trial.run("--version").stdout:
        print("skipped: built without libmaxminddb")
        return
    found = dict((row[0], row[1:]) for row in trial.both_ways("--clients", "@city.mmdb"))
    trial.same(found["198.51.100.7"], ("DE-HE", "clients", "DE"), "a city database")
    trial.same(found["2001:db8:aa::5"], ("US", "clients", "US"), "a country where no more is known")
    found = dict((row[0], row[1:]) for row in trial.both_ways(
        "--clients", "@city.mmdb", "--mmdb-region", "continent.code"))
    trial.same((found["198.51.100.7"], found["2001:db8:aa::5"], found["203.0.113.9"]),
               (("EU", "clients", "DE"), ("NA", "clients", "US"), (None, None, None)), "a path")
    database = trial.ingest("asn", "--clients", "@asn.mmdb", "--clients", "@feed.csv")
    trial.same(rows(database, "client_region, client_asn")[:4],
               [("DE-HE", 64500), ("FR", 64500), ("SG", None), ("US-CA", 4200000000)],
               "AS numbers of one file, regions of another")


def try_sites(trial):
    found = trial.both_ways("--sites", "@sites.csv")
    trial.same({row[1:] for row in found}, {("eu", "capture", None)}, "the region of the site")
    found = dict((row[0], row[1:]) for row in
                 trial.both_ways("--sites", "@sites.csv", "--clients", "@own.csv"))
    trial.same((found["198.51.100.7"], found["198.51.100.200"]),
               (("office", "clients", None), ("eu", "capture", None)), "clients before sites")
    database = trial.ingest("sites", "--region", "label", "--clients", "@own.csv")
    uids = rows(database, "flow_uid")
    trial.same(captures(database), [("fra", "label")], "a label")
    trial.set_regions(database, "--sites", "@sites2.csv")
    trial.same(captures(database), [("fra", "central")], "a file overrides a label")
    trial.same(rows(database, PLACE)[:2], [("office", "clients", None), ("central", "capture", None)],
               "without --clients what they said stays")
    trial.same(rows(database, "flow_uid"), uids, "no flow gets another name")


def try_hidden(trial):
    """What is not stored cannot be looked up again; that is counted."""
    key = trial.directory / "key"
    key.write_text("sixteen bytes or more", encoding="ascii")
    hashed = trial.ingest("hashed", "--client-addr", "hash", "--hash-key", key, "--clients",
                          "@feed.csv", "--sites", "@sites.csv")
    before = rows(hashed, PLACE)
    said = trial.set_regions(hashed, "--clients", "@own.csv", "--sites", "@sites2.csv")
    expected = [row if row[1] != "capture" else ("central", "capture", None) for row in before]
    trial.same(rows(hashed, PLACE), expected, "hashed clients keep their region")
    trial.expect("6 flows keep" in said, f"says how many: {said}")
    cut = trial.ingest("cut", "--client-addr", "prefix", "--hash-key", key)
    said = trial.set_regions(cut, "--clients", "@feed.csv")
    trial.same([row[0] for row in rows(cut, PLACE)],
               [None, None, None, "US-CA", None, None], "a network of one region, others of several")
    trial.expect("4 flows keep" in said, f"says how many: {said}")


def try_failures(trial):
    database = trial.ingest("failures", "--clients", "@feed.csv")
    before = database.read_bytes()
    for status, options in ((1, ()), (1, ("--clients", "@city.mmdb", "--mmdb-region", "a..b")),
                            (2, ("--clients", "@feed.csv", "--clients", "@missing.csv")),
                            (2, ("--sites", "@missing.csv")), (2, ("--sites", "@bad.csv"))):
        result = trial.run("set-regions", "-d", database, *options)
        trial.expect(result.returncode == status and result.stderr.startswith("firstflight: "),
                     f"{options} ends with {result.returncode}: {result.stderr}")
    trial.expect(database.read_bytes() == before, "a failure changes nothing")
    result = trial.run("set-regions", "-d", "@nothing.db", "--sites", "@sites.csv")
    trial.expect(result.returncode == 2 and not (trial.directory / "nothing.db").exists(),
                 "a database that is not there is not made")


def main():
    with tempfile.TemporaryDirectory() as directory:
        trial = Trial(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(directory))
        for attempt in (try_files, try_databases, try_sites, try_hidden, try_failures):
            attempt(trial)
        print(f"{trial.failed} failed")
        return 1 if trial.failed else 0


if __name__ == "__main__":
    sys.exit(main())
