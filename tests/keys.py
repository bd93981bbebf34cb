#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads the scenarios with their key logs and holds the rows against what is known of them.

usage: keys.py FIRSTFLIGHT

With its key log every verdict that decryption can give rests on it, and agrees with what the client
said and with the packets in which request and response were found decrypted. The same secrets
inside a pcapng file give the same rows; wrong secrets, and a key log of other connections, give the
rows that there are without; and neither plaintext nor secrets get into the database.
"""
import pathlib
import re
import sqlite3
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import truth  # noqa: E402

SCENARIOS = truth.SAMPLES / "scenarios"
PLAINTEXT = [b"GET /", b"HTTP/1.1 ", b"HTTP/1.0 ", b"<html"]


def ingest(program, database, capture, keylog=None):
    """Rows of table flow, but for what depends on the file and its place."""
    command = [program, "ingest", "-q", "-d", database, capture]
    if keylog is not None:
        command += ["--keylog", keylog]
    subprocess.run(command, check=True)
    connection = sqlite3.connect(database)
    connection.row_factory = sqlite3.Row
    rows = [dict(row) for row in connection.execute("SELECT * FROM flow ORDER BY start_epoch_ns")]
    connection.close()
    for row in rows:
        for column in ("flow_id", "flow_uid", "capture_id"):
            del row[column]
    return rows


def block(kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def pcapng_with_secrets(pcap, key_log):
    """A pcap file of nanoseconds as pcapng, its secrets in front of the packets."""
    magic, _, _, _, _, snaplen, link_type = struct.unpack_from("<IHHiIII", pcap)
    assert magic == 0xA1B23C4D
    out = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    out += block(1, struct.pack("<HHI", link_type, 0, snaplen) +
                 struct.pack("<HHB3xHH", 9, 1, 9, 0, 0))  # if_tsresol: nanoseconds
    out += block(10, struct.pack("<II", 0x544C534B, len(key_log)) + key_log)
    at = 24
    while at < len(pcap):
        seconds, fraction, captured, length = struct.unpack_from("<IIII", pcap, at)
        time = seconds * 10**9 + fraction
        packet = pcap[at + 16:at + 16 + captured]
        out += block(6, struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, captured, length) +
                     packet)
        at += 16 + captured
    return out


def wrong_secrets(key_log):
    """The same lines with another last digit."""
    return re.sub(rb"[0-9a-fA-F](?=\r?$)", lambda m: b"1" if m[0] == b"0" else b"0", key_log,
                  flags=re.MULTILINE)


def judged_by_keys(said, row):
    """What must rest on the keys."""
    if row["early_data"] in ("accepted", "rejected") and row["early_data_basis"] != "keylog":
        yield f"early_data_basis is {row['early_data_basis']!r}"
    if row["response_at_ns"] is not None:
        if row["response_basis"] != "keylog":
            yield f"response_basis is {row['response_basis']!r}"
        if not row["response_low_at_ns"] == row["response_at_ns"] == row["response_high_at_ns"]:
            yield "bounds are not the response"
    if said["outcome"] == "failed" and said["failure"] == "unknown_ca" \
            and row["failure"] != "unknown_ca":
        yield f"failure is {row['failure']!r}, which was said encrypted"


def differences(what, rows, others):
    if len(rows) != len(others):
        yield f"{what}: {len(others)} rows instead of {len(rows)}"
    for row, other in zip(rows, others):
        for column in row:
            if row[column] != other[column]:
                yield f"{what}: {column} is {other[column]!r}, not {row[column]!r}"


def leaks(database, key_log):
    content = database.read_bytes()
    secrets = [word for line in key_log.split(b"\n") if not line.startswith(b"#")
               for word in line.split()[2:]]
    for text in PLAINTEXT + secrets + [bytes.fromhex(secret.decode()) for secret in secrets]:
        if text in content:
            yield f"the database holds {text[:20]!r}"


def check(program, directory, name, truths):
    capture = SCENARIOS / (name + ".pcap")
    keys = SCENARIOS / (name + ".keys")
    key_log = keys.read_bytes()
    (directory / "wrong.keys").write_bytes(wrong_secrets(key_log))
    (directory / "inside.pcapng").write_bytes(pcapng_with_secrets(capture.read_bytes(), key_log))
    others = next(k for k in sorted(SCENARIOS.glob("*.keys")) if k != keys)

    keyed = ingest(program, directory / "keyed.db", capture, keys)
    without = ingest(program, directory / "without.db", capture)
    for said in truths:
        rows = [row for row in keyed if row["client_port"] == int(said["client_port"])]
        if len(rows) != 1:
            yield f"{len(rows)} rows of port {said['client_port']}"
            continue
        yield from truth.disagreements(said, rows[0])
        yield from judged_by_keys(said, rows[0])
    yield from leaks(directory / "keyed.db", key_log)
    yield from differences("secrets inside pcapng", keyed,
                           ingest(program, directory / "inside.db", directory / "inside.pcapng"))
    yield from differences("wrong secrets", without,
                           ingest(program, directory / "wrong.db", capture,
                                  directory / "wrong.keys"))
    yield from differences("secrets of others", without,
                           ingest(program, directory / "others.db", capture, others))


def main():
    program = sys.argv[1]
    truths = truth.read_truth()
    names = sorted(path.stem for path in SCENARIOS.glob("*.keys"))
    wrong = 0
    for name in names:
        said = [line for line in truths if line["capture"] == f"scenarios/{name}.pcap"]
        with tempfile.TemporaryDirectory() as directory:
            for text in check(program, pathlib.Path(directory), name, said):
                print(f"{name}: {text}")
                wrong += 1
    print(f"{len(names)} scenarios with key logs, {wrong} disagreements")
    return 1 if wrong or len(names) < 20 else 0


if __name__ == "__main__":
    sys.exit(main())
