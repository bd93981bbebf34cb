#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A capture that shows less may leave things unknown, but says nothing else for certain.

usage: less_seen.py FIRSTFLIGHT DIRECTORY

Reads pcap files as invariance.py does and writes each anew with less in it: without one packet,
without the first or the last ones, with one direction only, cut to a snaplen. Rows of table flow
are then compared with those of the whole capture: a verdict on the basis 'protocol' or 'strong' that
names another kind of handshake, another fate of the early data or another response is an error; one
on the basis 'weak' is counted. What was certain without keys stays so whatever else was seen.
"""
import pathlib
import sqlite3
import struct
import subprocess
import sys
import tempfile

import invariance

PACKETS_MAX = 70
SNAPLENS = [54, 60, 64, 68, 72, 80, 96, 110, 128, 140, 160, 192, 256, 320, 400, 512, 600, 1000]
CERTAIN = {"protocol", "strong"}


def is_sent_again(packets, p):
    """Whether a packet's payload comes again: without it the story is that it was lost on its way."""
    return any(q is not p and q.source == p.source and q.ports == p.ports and q.payload and
               q.seq < p.seq + len(p.payload) and p.seq < q.seq + len(q.payload) for q in packets)


def without(n):
    def way(packets):
        if n >= len(packets) or packets[n].payload and is_sent_again(packets, packets[n]):
            return packets
        return packets[:n] + packets[n + 1:]
    return way


def from_packet(n):
    return lambda packets: packets[n:]


def until_packet(n):
    return lambda packets: packets[:-n]


def by_port(is_client):
    def way(packets):
        return [p for p in packets if (int.from_bytes(p.ports[:2], "big") >= 32768) == is_client]
    return way


def ways():
    """Name, change of the packets, snaplen."""
    yield "whole", invariance.as_it_was, None
    for n in range(PACKETS_MAX):
        yield f"without packet {n + 1}", without(n), None
    for n in range(1, 20):
        yield f"from packet {n + 1} on", from_packet(n), None
    for n in range(1, 16):
        yield f"without the last {n}", until_packet(n), None
    yield "only the client", by_port(True), None
    yield "only the server", by_port(False), None
    for n in SNAPLENS:
        yield f"snaplen {n}", invariance.as_it_was, n


def moved(packets, number):
    """To a server of this file's own, so that nothing is learned from another one."""
    server = struct.pack(">I", (10 << 24) + number)
    return [p.but(source=server) if int.from_bytes(p.ports[:2], "big") < 32768 else
            p.but(target=server) for p in packets]


def connections(database):
    """Rows by way and capture, then by the client's port, in order of time."""
    connection = sqlite3.connect(database)
    connection.row_factory = sqlite3.Row
    rows = {}
    query = ("SELECT capture.path AS path, start_epoch_ns + response_at_ns AS response_epoch_ns, "
             "flow.* FROM flow JOIN capture USING (capture_id) ORDER BY start_epoch_ns")
    for row in connection.execute(query):
        way, name = pathlib.Path(row["path"]).parts[-2:]
        low = min(row["client_port"], row["server_port"])
        port = row["client_port"] + row["server_port"] - low
        rows.setdefault((int(way), name), {}).setdefault(port, []).append(row)
    connection.close()
    return rows


def contradictions(whole, row):
    """What a row says that the one of the whole capture denies, with its basis."""
    kinds = {"full", "resumed", "0-rtt"}
    if {whole["handshake"], row["handshake"]} <= kinds and whole["handshake"] != row["handshake"]:
        yield row["handshake_basis"], f"handshake {whole['handshake']}, not {row['handshake']}"
    early = {"accepted", "rejected", "not_offered"}
    if {whole["early_data"], row["early_data"]} <= early and whole["early_data"] != row["early_data"]:
        yield row["early_data_basis"], f"early data {whole['early_data']}, not {row['early_data']}"
    seen, now = whole["response_epoch_ns"], row["response_epoch_ns"]
    if now is not None and seen != now:
        yield row["response_basis"], f"response {seen}, not {now} ({row['response_reason']})"
    if row["client_port"] != whole["client_port"]:
        basis = row["client_basis"]
        yield "weak" if basis in ("port", "order") else "strong", f"server taken for client by {basis}"


def main():
    program, directory = sys.argv[1:3]
    originals = {path.stem: invariance.read(path)
                 for path in sorted(pathlib.Path(directory).rglob("*.pcap"))}
    all_ways = list(ways())
    certain = weak = rows_seen = files = 0
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        for number, (_, change, snaplen) in enumerate(all_ways):
            for name, packets in originals.items():
                path = temporary / str(number) / name
                less = change(packets)
                if less and (number == 0 or snaplen or len(less) < len(packets)):
                    files += 1
                    invariance.write(path, moved(less, files), cut=snaplen)
        database = temporary / "rows.db"
        subprocess.run([program, "ingest", "-q", "-d", database,
                        *sorted(path for path in temporary.iterdir() if path.is_dir())], check=True)
        rows = connections(database)
    for (number, name), by_port_now in rows.items():
        for port, now in by_port_now.items():
            whole = rows[(0, name)].get(port, [])
            if len(whole) != 1 or len(now) != 1:
                continue
            rows_seen += 1
            for basis, what in contradictions(whole[0], now[0]):
                certain += basis in CERTAIN
                weak += basis not in CERTAIN
                if basis in CERTAIN or "-v" in sys.argv:
                    print(f"{all_ways[number][0]}: {name}: {what} ({basis})")
    print(f"{rows_seen} rows: {certain} contradictions for certain, {weak} on weak basis")
    return 1 if certain or not rows_seen else 0


if __name__ == "__main__":
    sys.exit(main())
