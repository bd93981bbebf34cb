#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures that are read in several runs give the same flows as in one.

usage: open_flow.py FIRSTFLIGHT DIRECTORY

Each capture below the directory is split behind each of its packets (of long ones, behind some)
into two files of one capture point, which are read in two runs; then into many files for as many
runs. The flows must be those of the whole capture read at once, in all columns but the numbers of
captures and packets. Runs that are repeated change nothing, and a run that is killed changes
nothing either and can be repeated.
"""
import pathlib
import random
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

CUTS_MAX = 40  # of one capture
RUNS = 5
# Numbers that files give.
OF_FILES = {"flow_id", "capture_id", "first_packet_no", "request_packet_no", "response_packet_no"}


def packets_of(data):
    """Header and packet records of a classic little-endian pcap file."""
    at, packets = 24, []
    while at + 16 <= len(data):
        end = at + 16 + struct.unpack_from("<I", data, at + 8)[0]
        packets.append(data[at:end])
        at = end
    return data[:24], packets


def captures(directory):
    for path in sorted(directory.rglob("*.pcap")):
        data = path.read_bytes()
        if struct.unpack_from("<I", data)[0] in (0xa1b2c3d4, 0xa1b23c4d):
            yield path.stem, *packets_of(data)


def run(program, database, *paths, status=0):
    result = subprocess.run([program, "ingest", "-q", "-d", database, *paths],
                            stderr=subprocess.PIPE, encoding="utf-8", check=False)
    if result.returncode != status:
        raise SystemExit(f"exit status {result.returncode}, wanted {status}: {result.stderr}")


def run_list(program, database, work, paths):
    """One run over files that are too many for a command line."""
    names = work / "files"
    names.write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")
    run(program, database, "--files-from", names)


def rows(database, left_out=frozenset()):
    connection = sqlite3.connect(database)
    connection.text_factory = bytes
    cursor = connection.execute(
        "SELECT c.point, f.*, x.facts IS NOT NULL AS has_facts FROM flow f JOIN capture c "
        "USING (capture_id) LEFT JOIN flow_facts x USING (flow_id)")
    names = [column[0] for column in cursor.description]
    kept = [i for i, name in enumerate(names) if name not in left_out]
    result = {row[names.index("flow_uid")]: {names[i]: row[i] for i in kept} for row in cursor}
    half_open = sorted(connection.execute(
        "SELECT c.point, server_ip, server_port, second_epoch, sum(syns) FROM half_open "
        "JOIN capture c USING (capture_id) GROUP BY 1, 2, 3, 4"))
    connection.close()
    return result, half_open


def dump(database):
    connection = sqlite3.connect(database)
    lines = list(connection.iterdump())
    connection.close()
    return lines


def differences(wanted, found):
    """What differs, most common first: column or kind, and how often."""
    counts = {}
    def count(what, example):
        counts.setdefault(what, []).append(example)
    for uid, row in wanted[0].items():
        other = found[0].get(uid)
        if other is None:
            count("row missing", row["point"])
            continue
        for name, value in row.items():
            if other[name] != value:
                count(name, (row["point"], value, other[name]))
    for uid, row in found[0].items():
        if uid not in wanted[0]:
            count("row unexpected", row["point"])
    if wanted[1] != found[1]:
        count("half_open", sorted(set(wanted[1]) ^ set(found[1]))[:2])
    return [f"{what}: {len(examples)}, as {examples[0]}" for what, examples in
            sorted(counts.items(), key=lambda item: -len(item[1]))]


def write_parts(directory, header, packets, ends):
    """Files of one point that end behind the given packets, and the whole beside them."""
    directory.mkdir(parents=True)
    (directory / "w.pcap").write_bytes(header + b"".join(packets))
    for number, (begin, end) in enumerate(zip([0] + ends, ends + [len(packets)]), 1):
        (directory / f"w{number}.pcap").write_bytes(header + b"".join(packets[begin:end]))


def compare_runs(program, work, runs):
    """Problems of the files w1, w2, ... read one run after the other, against w read at once."""
    whole, parts = work / "whole.db", work / "parts.db"
    run_list(program, whole, work, sorted(work.glob("*/w.pcap")))
    for number in range(1, runs + 1):
        run_list(program, parts, work, sorted(work.glob(f"*/w{number}.pcap")))
    wanted = rows(whole, OF_FILES)
    problems = differences(wanted, rows(parts, OF_FILES))
    before = dump(parts)
    for number in range(1, runs + 1):
        run_list(program, parts, work, sorted(work.glob(f"*/w{number}.pcap")))
    if dump(parts) != before:
        problems.append("repeated runs change the database")
    print(f"{len(wanted[0])} flows in {runs} runs")
    return problems


def two_runs(program, directory, work):
    """Split behind each packet."""
    chance = random.Random(1)
    for name, header, packets in captures(directory):
        cuts = list(range(1, len(packets)))
        if len(cuts) > CUTS_MAX:
            cuts = sorted(chance.sample(cuts, CUTS_MAX))
        for cut in cuts:
            write_parts(work / f"{name}-{cut:04d}", header, packets, [cut])
    return compare_runs(program, work, 2)


def many_runs(program, directory, work):
    """Split at some packets at once."""
    chance = random.Random(2)
    for name, header, packets in captures(directory):
        if len(packets) > RUNS:
            ends = sorted(chance.sample(range(1, len(packets)), RUNS - 1))
            write_parts(work / name, header, packets, ends)
    return compare_runs(program, work, RUNS)


def killed_runs(program, directory, work):
    """A second run that is killed at any moment, and then repeated."""
    for name, header, packets in captures(directory):
        for copy in range(10):
            write_parts(work / f"{name}-{copy}", header, packets, [len(packets) // 2])
    first, second = sorted(work.glob("*/w1.pcap")), sorted(work.glob("*/w2.pcap"))
    start, wanted_db, killed_db = work / "start.db", work / "wanted.db", work / "killed.db"
    run_list(program, start, work, first)
    shutil.copy(start, wanted_db)
    begun = time.monotonic()
    run_list(program, wanted_db, work, second)
    usual = time.monotonic() - begun
    wanted, problems, kills = rows(wanted_db, OF_FILES), [], 0
    shutil.copy(start, killed_db)
    before = rows(killed_db)
    for part in range(1, 8):
        process = subprocess.Popen([program, "ingest", "-q", "-d", killed_db, "--files-from",
                                    work / "files"], stderr=subprocess.DEVNULL)
        try:
            process.wait(usual * part / 8)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        if process.returncode == 0:
            break
        kills += 1
        if rows(killed_db) != before:
            problems.append("a killed run changed something")
            before = rows(killed_db)
    run_list(program, killed_db, work, second)
    problems += differences(wanted, rows(killed_db, OF_FILES))
    print(f"{kills} runs killed")
    return problems


TESTS = [two_runs, many_runs, killed_runs]


def main():
    program, directory = sys.argv[1], pathlib.Path(sys.argv[2])
    failed = 0
    for test in TESTS:
        with tempfile.TemporaryDirectory() as work:
            problems = test(program, directory, pathlib.Path(work))
        for problem in problems:
            print(f"{test.__name__}: {problem}")
        failed += bool(problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
