#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds that show --pcap gives the packets of a flow, all of them and no others.

usage: extract.py FIRSTFLIGHT SCENARIOS

Scenarios are cut into files of a few packets, mixed with another flow, and read; what is extracted
must be the packets of the scenario, bit by bit, and give the same row again. A capture that is
gone, or was replaced by another, is named and gives nothing. Prints each failure and exits 1 when
there is any.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

FAILURES = []
NANOSECONDS, MICROSECONDS = 0xa1b23c4d, 0xa1b2c3d4
SAME = ("handshake", "handshake_basis", "early_data", "outcome", "failure", "client_packets",
        "server_packets", "start_epoch_ns", "perceived_ns", "response_ns", "answered_early",
        "end_at_ns", "client_hello_hash", "server_retransmits")


def expect(condition, what):
    if not condition:
        FAILURES.append(what)
        print("FAILED:", what)


def read_pcap(path):
    """Link type and packets as (ns, wire length, bytes)."""
    data = path.read_bytes()
    order = "<" if struct.unpack("<I", data[:4])[0] in (NANOSECONDS, MICROSECONDS) else ">"
    magic, link = struct.unpack(order + "I16xI", data[:24])
    scale, at, packets = 1 if magic == NANOSECONDS else 1000, 24, []
    while at < len(data):
        seconds, fraction, captured, length = struct.unpack(order + "IIII", data[at:at + 16])
        packets.append((seconds * 10**9 + fraction * scale, length, data[at + 16:at + 16 + captured]))
        at += 16 + captured
    return link, packets


def write_pcap(path, link, packets):
    path.write_bytes(struct.pack("<IHHiIII", NANOSECONDS, 2, 4, 0, 0, 262144, link) + b"".join(
        struct.pack("<IIII", ns // 10**9, ns % 10**9, len(data), length) + data
        for ns, length, data in packets))


def run(*arguments, cwd=None):
    return subprocess.run(arguments, check=False, capture_output=True, cwd=cwd, text=True)


def rows(program, database):
    result = run(program, "sql", "-d", database, "--format", "json",
                 "SELECT * FROM flow ORDER BY flow_uid")
    return json.loads(result.stdout)


def test_scenario(program, scenario, other, directory):
    link, packets = read_pcap(scenario)
    other_link, other_packets = read_pcap(other)
    if link != other_link or not packets:
        return
    # The other flow lies in the same time, between the same packets.
    shift = packets[0][0] - other_packets[0][0] + 1000
    mixed = sorted(packets + [(ns + shift, length, data) for ns, length, data in other_packets])
    (directory / "in").mkdir()
    for i in range(0, len(mixed), 5):
        write_pcap(directory / "in" / f"edge-{i:04d}.pcap", link, mixed[i:i + 5])
    database = directory / "first.db"
    run(program, "ingest", "-q", "-d", database, "in", cwd=directory)
    client = {row["flow_id"]: row for row in rows(program, database)}
    again = directory / "again.db"
    run(program, "ingest", "-q", "-d", again, scenario)
    alone = {(r["client_ip"], r["client_port"]): r for r in rows(program, again)}
    for flow_id, row in client.items():
        if (row["client_ip"], row["client_port"]) not in alone:
            continue
        out = directory / f"flow-{flow_id}.pcap"
        result = run(program, "show", "-d", database, str(flow_id), "--pcap", out, cwd=directory)
        expect(result.returncode == 0, f"{scenario.stem}: {result.stderr}")
        out_link, extracted = read_pcap(out)
        count = row["client_packets"] + row["server_packets"] + row["duplicates"]
        expect(out_link == link and len(extracted) >= count,
               f"{scenario.stem}: {len(extracted)} packets of {count}")
        expect(set(extracted) <= set(packets), f"{scenario.stem}: packets of another flow")
        expect(f"{len(extracted)} packets" in result.stdout, f"{scenario.stem}: {result.stdout}")
        elsewhere = directory / f"elsewhere-{flow_id}.pcap"
        result = run(program, "show", "-d", database, str(flow_id), "--pcap", elsewhere, cwd="/")
        expect(result.returncode == 0 and elsewhere.read_bytes() == out.read_bytes(),
               f"{scenario.stem}: relative paths from another directory: {result.stderr}")
        third = directory / f"third-{flow_id}.db"
        run(program, "ingest", "-q", "-d", third, out)
        found = rows(program, third)
        expect(len(found) == 1 and all(found[0][name] == row[name] for name in SAME),
               f"{scenario.stem}: not the same row: " + str(
                   [(name, found[0][name], row[name]) for name in SAME if found and
                    found[0][name] != row[name]]))


def test_missing(program, scenario, directory):
    link, packets = read_pcap(scenario)
    half = len(packets) // 2
    first, second = directory / "edge-1.pcap", directory / "edge-2.pcap"
    write_pcap(first, link, packets[:half])
    write_pcap(second, link, packets[half:])
    database, out = directory / "a.db", directory / "out.pcap"
    run(program, "ingest", "-q", "-d", database, first, second)
    show = (program, "show", "-d", database, "1", "--pcap", out)

    ns, length, data = packets[-1]
    write_pcap(second, link, packets[half:-1] + [(ns, length, data[:-1] + b"\xff")])
    result = run(*show)
    expect(result.returncode == 3 and "edge-2.pcap: is not the capture" in result.stderr,
           f"a changed capture: {result.returncode} {result.stderr}")
    expect(read_pcap(out)[1] == packets[:half], "a changed capture gives nothing")
    result = run(*show)
    expect(result.returncode == 2 and "out.pcap" in result.stderr, "no file is written over")
    out.unlink()
    second.unlink()
    result = run(*show)
    expect(result.returncode == 3 and "edge-2.pcap" in result.stderr,
           f"a missing capture: {result.stderr}")
    out.unlink()
    first.unlink()
    result = run(*show)
    expect(result.returncode == 2 and "edge-1.pcap" in result.stderr and not out.exists(),
           f"no capture at all: {result.returncode} {result.stderr}")
    expect(run(*show[:-1], directory / "no" / "out.pcap").returncode == 2, "no directory")


def main():
    program, scenarios = str(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    for name in ("tls13_0rtt_accepted", "tls12_full", "tls13_hrr", "failed_by_client_alert"):
        with tempfile.TemporaryDirectory() as directory:
            test_scenario(program, scenarios / f"{name}.pcap", scenarios / "tls13_full.pcap",
                          pathlib.Path(directory))
    with tempfile.TemporaryDirectory() as directory:
        test_missing(program, scenarios / "tls13_full.pcap", pathlib.Path(directory))
    print(f"{len(FAILURES)} failures")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
