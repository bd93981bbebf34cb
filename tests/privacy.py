#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What ingest --client-addr and --sni hide is in no byte of the database, and all else stays.

usage: privacy.py FIRSTFLIGHT

The samples, and a capture made here (a PROXY header, a ClientHello, a flow whose sides are a guess,
IPv6, a flow seen from its middle), are ingested in every mode. Nothing of their clients may be
found in the file, as text or as bytes; the columns that are not hidden are those of a database that
hides nothing, regions and verdicts included; judging again changes nothing.
"""
import ipaddress
import os
import pathlib
import sqlite3
import stat
import struct
import subprocess
import sys
import tempfile

SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "samples"
MODES = (("prefix", "full"), ("prefix", "hash"), ("hash", "hash"), ("hash", "none"),
         ("none", "none"), ("full", "hash"))
HIDDEN = {"flow_uid", "client_ip", "client_prefix", "proxied_client_ip", "community_id", "sni",
          "session_id_hash", "psk_identity_hash", "ticket_key_name", "issued_ticket_key_name",
          "client_hello_hash", "server_random_hash", "retried_by", "early_data_rule"}
NAME = "Login.Secret-Name.example.net"
SERVER, PROXIED, VISITOR, SIX, GUESSED = (
    "192.0.2.44", "203.0.113.77", "198.51.100.201", "2001:db8:aa:bb::cafe", "203.0.113.199")
EDGE = "192.0.2.45"


# ---- a capture ----

def packet(source, target, ports, seq, ack, flags, payload=b""):
    tcp = struct.pack(">HHIIBBHHH", *ports, seq, ack, 0x50, flags, 65535, 0, 0) + payload
    one, two = ipaddress.ip_address(source), ipaddress.ip_address(target)
    if one.version == 4:
        return struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 1, 0x4000, 60, 6, 0) + \
            one.packed + two.packed + tcp
    return struct.pack(">IHBB", 6 << 28, len(tcp), 6, 60) + one.packed + two.packed + tcp


def client_hello(name):
    host = name.encode()
    sni = struct.pack(">HHBH", len(host) + 5, len(host) + 3, 0, len(host)) + host
    extensions = struct.pack(">H", 0) + sni + struct.pack(">HHBH", 43, 3, 2, 0x0304)
    body = b"\x03\x03" + bytes(range(32)) + b"\0" + struct.pack(">HH", 2, 0x1301) + b"\1\0" + \
        struct.pack(">H", len(extensions)) + extensions
    message = b"\1" + struct.pack(">I", len(body))[1:] + body
    return b"\x16\3\1" + struct.pack(">H", len(message)) + message


def flow(client, server, ports, parts):
    """Packets of a connection whose client sends these parts."""
    back = ports[::-1]
    yield packet(client, server, ports, 999, 0, 0x02)
    yield packet(server, client, back, 4999, 1000, 0x12)
    yield packet(client, server, ports, 1000, 5000, 0x10)
    seq = 1000
    for part in parts:
        yield packet(client, server, ports, seq, 5000, 0x18, part)
        seq += len(part)
        yield packet(server, client, back, 5000, seq, 0x10)


def capture():
    proxy = f"PROXY TCP4 {PROXIED} {SERVER} 51000 443\r\n".encode()
    packets = [*flow(VISITOR, SERVER, (50001, 443), [proxy, client_hello(NAME)]),
               *flow(SIX, "2001:db8:1::1", (50002, 443), [client_hello(NAME.upper())]),
               *flow(VISITOR, SERVER, (50003, 80), [b"GET / HTTP/1.1\r\n\r\n"]),
               # from the middle, and no port says who is who: the "client" is a server here
               packet(EDGE, GUESSED, (50005, 50004), 7000, 900, 0x18, b"\x17\3\3\0\1x"),
               packet(GUESSED, EDGE, (50004, 50005), 900, 7006, 0x10)]
    return pcap(packets)


def pcap(packets):
    out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 101)]
    for number, data in enumerate(packets):
        out.append(struct.pack("<IIII", 1780408980, 1000 * number, len(data), len(data)) + data)
    return b"".join(out)


# ---- the program ----

class Trial:
    def __init__(self, program, directory):
        self.program, self.directory, self.failed = program, directory, 0
        self.made = directory / "made.pcap"
        self.made.write_bytes(capture())
        self.key = directory / "key"
        self.key.write_text("a key for tests, 32 bytes or more\n", encoding="ascii")
        self.clients = directory / "clients.csv"
        self.clients.write_text("198.51.100.0/26,near\n203.0.113.77,proxied\n2001:db8:aa::/48,six\n",
                                encoding="ascii")

    def expect(self, is_true, what):
        if not is_true:
            self.failed += 1
            print(f"FAILED {what}")

    def run(self, *arguments):
        return subprocess.run([self.program, *arguments], capture_output=True, encoding="utf-8",
                              check=False)

    def ingest(self, name, *options, paths=None):
        database = self.directory / f"{name}.db"
        result = self.run("ingest", "-q", "-d", database, "--local", "192.0.2.0/24", "--clients",
                          self.clients, *options,
                          *(paths or (SAMPLES / "scenarios", self.made)))
        return database, result

    def in_mode(self, address, sni, **options):
        database, result = self.ingest(f"{address}-{sni}", "--client-addr", address, "--sni", sni,
                                       "--hash-key", self.key, **options)
        self.expect(result.returncode in (0, 3), f"ingest {address} {sni}: {result.stderr}")
        return database


def rows(database, sql):
    connection = sqlite3.connect(database)
    connection.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in connection.execute(sql)]
    finally:
        connection.close()


def forms(text):
    """How an address or a name may stand in a file."""
    yield text.encode()
    yield text.encode().hex().encode()
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        yield text.lower().encode()
        yield text.upper().encode()
        return
    packed = address.packed
    mapped = bytes(10) + b"\xff\xff" + packed if address.version == 4 else packed
    for data in (packed, packed[::-1], mapped):
        yield data
        yield data.hex().encode()
        yield data.hex().upper().encode()
    yield address.exploded.encode()
    yield str(int(address)).encode()


def found_in(content, secrets):
    return sorted({text for text in secrets for form in forms(text) if form in content})


def secrets_of(plain):
    """Addresses of clients, those that may be clients', and names, from the database that has all."""
    sql = """SELECT client_ip FROM flow UNION SELECT proxied_client_ip FROM flow
             UNION SELECT server_ip FROM flow WHERE client_basis = 'order'"""
    addresses = {row["client_ip"] for row in rows(plain, sql)} - {None}
    names = {row["sni"] for row in rows(plain, "SELECT DISTINCT sni FROM flow")} - {None}
    return addresses, names


def without_hidden(database):
    """What is the same in all modes; a server that may be a client is hidden as well."""
    found = []
    for row in rows(database, "SELECT * FROM flow ORDER BY capture_id, first_packet_no"):
        hidden = HIDDEN | ({"server_ip"} if row["client_basis"] == "order" else set())
        found.append({name: value for name, value in row.items() if name not in hidden})
    return found


def try_modes(trial, plain):
    addresses, names = secrets_of(plain)
    trial.expect({PROXIED, VISITOR, SIX, GUESSED} <= addresses and NAME in names,
                 "the samples hold what is to be hidden")
    expected = without_hidden(plain)
    trial.expect(any(row["client_basis"] == "order" for row in expected), "sides that are a guess")
    for address, sni in MODES:
        mode = f"{address} {sni}"
        database = trial.in_mode(address, sni)
        secrets = (addresses if address != "full" else set()) | (names if sni != "full" else set())
        trial.expect(found_in(database.read_bytes(), secrets) == [], f"{mode}: found in the file: "
                     f"{found_in(database.read_bytes(), secrets)}")
        left = sorted(path.name for path in database.parent.glob(database.name + "-*"))
        trial.expect(left == [], f"{mode}: files beside it: {left}")
        # Names that are left out cannot tell the servers of one address apart.
        got = without_hidden(database)
        if sni != "none":
            trial.expect(got == expected, f"{mode}: other columns differ")
        else:
            kept = ("client_region", "client_region_basis", "leg", "handshake", "early_data")
            trial.expect([[row[name] for name in kept] for row in got] ==
                         [[row[name] for name in kept] for row in expected],
                         f"{mode}: regions or verdicts differ")
        result = trial.run("judge", "-q", "-d", database)
        trial.expect(result.returncode == 0, f"{mode}: judge: {result.stderr}")
        trial.expect(without_hidden(database) == got, f"{mode}: judging again changes rows")
        trial.expect(found_in(database.read_bytes(), secrets) == [], f"{mode}: judge brings it back")
        trial.expect(trial.run("report", "-d", database).returncode == 0, f"{mode}: report")


def try_plain_forms(trial):
    """How each mode shows what it shows."""
    one = "SELECT * FROM flow WHERE client_port = 50001"
    row = rows(trial.in_mode("prefix", "full"), one)[0]
    trial.expect((row["client_ip"], row["client_prefix"], row["proxied_client_ip"], row["sni"]) ==
                 ("198.51.100.0/24",) * 2 + ("203.0.113.0/24", NAME), f"prefix: {row}")
    trial.expect(row["community_id"] is None, "prefix: a Community ID tells the address")
    hashed = trial.in_mode("hash", "hash")
    row = rows(hashed, one)[0]
    for column in ("client_ip", "proxied_client_ip", "sni"):
        trial.expect(len(row[column]) == 32 and int(row[column], 16) > 0, f"hash: {column}")
    trial.expect(row["client_prefix"] is None and row["client_region"] == "proxied" and
                 row["client_region_basis"] == "proxy" and row["leg"] == "inbound", "hash: the rest")
    six = rows(hashed, "SELECT * FROM flow WHERE client_port = 50002")[0]
    trial.expect(six["sni"] == row["sni"], "hash: a name in upper case is the same name")
    trial.expect(six["client_ip"] != row["client_ip"], "hash: two clients, two hashes")
    row = rows(trial.in_mode("none", "none"), one)[0]
    trial.expect(row["early_data_rule"] == "login.*", "the rule that fits a name outlives the name")
    trial.expect((row["client_ip"], row["client_prefix"], row["proxied_client_ip"], row["sni"],
                  row["community_id"]) == (None,) * 5, f"none: {row}")


def try_keys(trial):
    """The same key hashes alike, in other databases as well; others do not."""
    sql = "SELECT client_port, client_ip, sni, psk_identity_hash FROM flow ORDER BY 1"
    options = ("--client-addr", "hash", "--sni", "hash")
    first, _ = trial.ingest("first", *options, "--hash-key", trial.key, paths=[trial.made])
    second, _ = trial.ingest("second", *options, "--hash-key", trial.key, paths=[trial.made])
    other, result = trial.ingest("other", *options, paths=[trial.made])
    trial.expect(rows(first, sql) == rows(second, sql), "one key, the same hashes")
    trial.expect(all(a["client_ip"] != b["client_ip"]
                     for a, b in zip(rows(first, sql), rows(other, sql))), "two keys, other hashes")
    made = pathlib.Path(f"{other}.key")
    trial.expect(result.returncode == 0 and stat.S_IMODE(made.stat().st_mode) == 0o600,
                 "a key is made beside the database for its owner alone")
    content = made.read_text(encoding="ascii").strip()
    trial.expect(found_in(other.read_bytes(), {content}) == [] and
                 bytes.fromhex(content) not in other.read_bytes(), "the key is not in the database")
    more = SAMPLES / "scenarios/tls13_full.pcap"
    _, result = trial.ingest("first", "--hash-key", made, paths=[more])
    trial.expect(result.returncode == 2 and "another key" in result.stderr, "another key later")
    _, result = trial.ingest("first", paths=[more])
    trial.expect(result.returncode == 2 and not os.path.exists(f"{first}.key"),
                 "a key that is missing later is not made anew")
    _, result = trial.ingest("other", paths=[more])
    trial.expect(result.returncode == 0, "a key beside the database is found again")


def try_merge(trial):
    """Databases that hide alike become one, others do not."""
    options = ("--client-addr", "hash", "--sni", "hash", "--hash-key", trial.key)
    one, _ = trial.ingest("one", *options, paths=[trial.made])
    two, _ = trial.ingest("two", *options, paths=[SAMPLES / "scenarios/tls13_full.pcap"])
    other, _ = trial.ingest("apart", paths=[SAMPLES / "scenarios/tls13_full.pcap"])
    merged = trial.directory / "merged.db"
    result = trial.run("merge", "-d", merged, one, two)
    trial.expect(result.returncode == 0, f"merge: {result.stderr}")
    sql = "SELECT flow_uid, client_ip, sni FROM flow ORDER BY 1"
    trial.expect(rows(merged, sql) ==
                 sorted(rows(one, sql) + rows(two, sql), key=lambda row: row["flow_uid"]),
                 "merged: the flows of both")
    before = rows(merged, sql)
    result = trial.run("merge", "-d", merged, other)
    trial.expect(result.returncode == 2 and "another way" in result.stderr, "another way of hiding")
    trial.expect(rows(merged, sql) == before, "a merge that is refused adds nothing")


def try_settings(trial):
    """What the first ingest decided holds for the others."""
    more = SAMPLES / "scenarios/tls13_full.pcap"
    for first, then in (("hash", "full"), ("full", "hash"), ("hash", "none"), ("none", "prefix")):
        name = f"{first}-then-{then}"
        database, _ = trial.ingest(name, "--client-addr", first, paths=[trial.made])
        before = database.read_bytes()
        _, result = trial.ingest(name, "--client-addr", then, paths=[more])
        trial.expect(result.returncode == 1 and f"begun with {first}" in result.stderr,
                     f"{name} is refused: {result.stderr}")
        trial.expect(database.read_bytes() == before, f"{name} changes nothing")
        _, result = trial.ingest(name, paths=[more])
        setting = rows(database, "SELECT value FROM setting WHERE name = 'client_addr'")
        trial.expect(result.returncode == 0 and setting == [{"value": first}],
                     f"{name}: without an option as before")
    _, result = trial.ingest("word", "--client-addr", "some", paths=[more])
    trial.expect(result.returncode == 1, "a word that is none")
    _, result = trial.ingest("word", "--sni", "prefix", paths=[more])
    trial.expect(result.returncode == 1, "names have no prefix")
    short = trial.directory / "short"
    short.write_text("12345\n", encoding="ascii")
    _, result = trial.ingest("word", "--sni", "hash", "--hash-key", short, paths=[more])
    trial.expect(result.returncode == 2 and "16" in result.stderr, "a key that is too short")


def main():
    with tempfile.TemporaryDirectory() as directory:
        trial = Trial(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(directory))
        plain, result = trial.ingest("plain")
        trial.expect(result.returncode in (0, 3), f"ingest: {result.stderr}")
        try_modes(trial, plain)
        try_plain_forms(trial)
        try_keys(trial)
        try_merge(trial)
        try_settings(trial)
        print(f"{trial.failed} failed")
        return 1 if trial.failed else 0


if __name__ == "__main__":
    sys.exit(main())
