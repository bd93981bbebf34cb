#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Databases made apart and merged hold what one ingest of everything gives.

usage: merge.py FIRSTFLIGHT

Compared are all rows but for their numbers and the time of the run: in any order of merging, when
it is repeated, when it was killed, when a database held a part of a flow. Files that are no
databases of ours, or that store other things of clients, are refused and change nothing. Prints each
failure and exits 1 when there is any.
"""
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "samples"
LABELS = ["--labels", "{region}/{site}/*"]
FAILURES = []


def expect(condition, what):
    if not condition:
        FAILURES.append(what)
        print("FAILED:", what)


def rows(database):
    """The content of a database without the numbers of its rows; flows by their uid."""
    connection = sqlite3.connect(database)
    connection.row_factory = sqlite3.Row
    captures = {row["capture_id"]: (row["content_hash"], row["point"])
                for row in connection.execute("SELECT * FROM capture")}
    uids = dict(connection.execute("SELECT flow_id, flow_uid FROM flow"))
    content = {}
    tables = [row[0] for row in connection.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")]
    for table in tables:
        lines = []
        for row in connection.execute(f'SELECT * FROM "{table}"'):
            line = dict(row)
            if "capture_id" in line:
                line["capture_id"] = captures.get(line["capture_id"])
            if "flow_id" in line:
                line["flow_id"] = uids[line["flow_id"]]
            line.pop("ingested_at", None)
            if "point_id" in line:
                line["point_id"] = captures.get(line["point_id"])
            line.pop("state", None)  # its hashes have a random seed
            lines.append(repr(sorted(line.items())))
        content[table] = sorted(lines)
    connection.close()
    return content


def expect_same(database, expected, what):
    found = rows(database)
    for table, lines in expected.items():
        if found.get(table) != lines:
            other = set(lines) ^ set(found.get(table, []))
            expect(False, f"{what}: table {table} differs: {len(lines)} and "
                          f"{len(found.get(table, []))} rows, as {sorted(other)[:2]}")


class Program:
    def __init__(self, path):
        self.path = path

    def run(self, *arguments, status=0):
        run = subprocess.run([self.path, *map(str, arguments)], check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        expect(run.returncode == status,
               f"{arguments[0]}: status {run.returncode} instead of {status}: {run.stderr[-300:]}")
        return run.stderr

    def ingest(self, database, *paths):
        self.run("ingest", "-q", "-d", database, *LABELS, *paths)


def merge_in_any_order(program, here, parts, whole):
    for name, order in (("forwards", parts), ("backwards", parts[::-1])):
        database = here / f"{name}.db"
        program.run("merge", "-q", "-d", database, *order)
        expect_same(database, whole, name)
        program.run("merge", "-q", "-d", database, *order)
        expect_same(database, whole, f"{name}, twice")
    database = here / "steps.db"
    for part in parts:
        program.run("merge", "-q", "-d", database, part)
    expect_same(database, whole, "one after the other")
    database = here / "grown.db"
    shutil.copy(parts[0], database)
    program.run("merge", "-q", "-d", database, *parts)
    expect_same(database, whole, "into one of them, itself included")


def kill_while_merging(program, here, parts, whole):
    for n in range(3):
        database = here / f"killed{n}.db"
        process = subprocess.Popen([program.path, "merge", "-q", "-d", database, *parts])
        time.sleep(0.05 * n)
        process.send_signal(signal.SIGKILL)
        process.wait()
        program.run("merge", "-q", "-d", database, *parts)
        expect_same(database, whole, f"killed {n}")


def renew_flows(program, here):
    """Of a flow that ended with the capture, and goes on in a longer one, the longer holds."""
    short, long, merged = here / "short.db", here / "long.db", here / "renewed.db"
    program.ingest(short, SAMPLES / "scenarios/tls13_full.pcap")
    program.ingest(long, SAMPLES / "scenarios/tls13_full.pcap")
    expected = rows(long)
    connection = sqlite3.connect(short)
    connection.execute("UPDATE flow SET end_at_ns = end_at_ns / 2, ended = 'capture_end',"
                       " response_last_at_ns = NULL")
    connection.execute("UPDATE flow_facts SET facts = json_set(facts, '$.records', json('[]'))")
    connection.commit()
    connection.close()
    for order in ([short, long], [long, short]):
        merged.unlink(missing_ok=True)
        program.run("merge", "-q", "-d", merged, *order)
        expect_same(merged, expected, "the longer of two")


def refuse(program, here, part):
    database = here / "refused.db"
    program.run("merge", "-q", "-d", database, part)
    before = rows(database)
    text = here / "text.db"
    text.write_text("not a database " * 500, encoding="ascii")
    other = here / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE flow (flow_id)")
    connection.commit()
    connection.close()
    newer = here / "newer.db"
    shutil.copy(part, newer)
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 1000")
    connection.commit()
    connection.close()
    hashed = here / "hashed.db"
    program.run("ingest", "-q", "-d", hashed, "--client-addr", "prefix",
                SAMPLES / "scenarios/tls13_full.pcap")
    program.run("merge", "-q", "-d", here / "also.db", hashed)
    expect_same(here / "also.db", rows(hashed), "with settings into a new one")
    for file in (hashed, text, other, newer, here / "missing.db"):
        message = program.run("merge", "-q", "-d", database, file, status=2)
        expect(file.name in message, f"{file.name}: {message!r}")
        expect_same(database, before, f"after {file.name}")
    expect(not (here / "missing.db").exists(), "a missing database was made")


def main():
    program = Program(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        here = pathlib.Path(name)
        inputs = sorted(path for path in (SAMPLES / "article").glob("*/*") if path.is_dir())
        inputs.append(SAMPLES / "scenarios")
        parts = []
        for n, path in enumerate(inputs):
            parts.append(here / f"part{n}.db")
            program.ingest(parts[-1], path)
        program.ingest(here / "whole.db", *inputs)
        whole = rows(here / "whole.db")
        merge_in_any_order(program, here, parts, whole)
        kill_while_merging(program, here, parts, whole)
        renew_flows(program, here)
        refuse(program, here, parts[0])
    print(f"{len(FAILURES)} failures")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
