#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each allocation of each command fails once: it says so, or its result is that of an undisturbed run.

usage: allocations.py FIRSTFLIGHT FAIL_MALLOC [--thorough] [--part N/M]

FAIL_MALLOC is the library of fail_malloc.c. A run that ends with status 0 has printed what an
undisturbed one prints; one that fails ends with status 2, a message and an unchanged database. Two
commands differ only in what comes after the database was opened: what is before is tried with the
first of them. By itself some allocations are tried, the same each time; --thorough tries all of
them, --part every Mth.
"""
import argparse
import os
import pathlib
import random
import shutil
import sqlite3
import subprocess
import sys
import tempfile

from report import expect, FAILURES  # pylint: disable=wrong-import-position

SCENARIOS = pathlib.Path(__file__).resolve().parent.parent / "samples" / "scenarios"
FIRST, SECOND, THIRD = (str(SCENARIOS / f"{name}.pcap")
                        for name in ("tls13_0rtt_accepted", "tls13_0rtt_rejected_psk", "refused"))
DONE, FAILED = 0, 2
SKIPPED = 77
TRIED = 4  # of each command, when not all are

# Read the database and change nothing in it.
READERS = [
    ["report"], ["report", "coverage"], ["report", "early-data"], ["report", "failures"],
    ["report", "timeline"], ["report", "policy"], ["report", "replays"], ["report", "ticket-keys"],
    ["report", "incident", "--baseline", "2026-01-01..2026-01-02"], ["report", "--format", "html"],
    ["flows"], ["show", "1"], ["show", "1", "--format", "svg"], ["show", "1", "--format", "html"],
    ["captures"], ["export", "--to", "ndjson"], ["sql", "SELECT * FROM flow"],
]
# Labels and the sandbox are of libraries that do not get along with it.
INGEST = ["ingest", "-q", "--no-labels", "--no-sandbox"]
# Change it, or nothing of it.
MERGE = ["merge", "other.db"]
WRITERS = [["judge"], ["forget", "--site", "none"], MERGE, [*INGEST, THIRD]]
# It says what it has added, and then judges again.
IN_TWO_STEPS = [MERGE]


def content(database):
    """All rows but what is of each run; None when the file is not there or has no tables yet."""
    if not database.exists() or database.stat().st_size == 0:
        return None
    connection = sqlite3.connect(database)
    try:
        check = connection.execute("PRAGMA integrity_check").fetchone()[0]
        if check != "ok":
            return check
        tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if tables == 0 or connection.execute("SELECT count(*) FROM capture").fetchone()[0] == 0:
            return None
        connection.execute("UPDATE capture SET ingested_at = ''")
        connection.execute("UPDATE open_point SET state = x''")  # its hashes have a random seed
        # SQLite's statistics are advice, which it does without when there is no memory for them.
        return [line for line in connection.iterdump() if "sqlite_stat" not in line]
    finally:
        connection.close()


class Bench:
    def __init__(self, program, library, directory):
        self.program, self.library, self.directory = program, library, directory
        self.database = directory / "x.db"
        self.counts = directory / "count"

    def run(self, command, fail_at=0):
        """(status, standard output, standard error) with an allocation that fails; 0 = none."""
        environment = dict(os.environ, LD_PRELOAD=str(self.library), FAIL_AT=str(fail_at),
                           FAIL_COUNT=str(self.counts))
        arguments = [command[0], "-d", self.database.name, *command[1:]]
        run = subprocess.run([self.program, *arguments], check=False, cwd=self.directory,
                             env=environment, capture_output=True)
        return run.returncode, run.stdout, run.stderr

    def count(self):
        return int(self.counts.read_text(encoding="ascii"))


def try_command(bench, command, writes, start, numbers):
    """Lets allocations behind `start` fail, with an own copy of the database before.db if any."""
    before = bench.directory / "before.db"

    def begin_anew():
        if not before.exists():
            bench.database.unlink(missing_ok=True)
        elif writes or not bench.database.exists():
            shutil.copy(before, bench.database)

    begin_anew()
    old = content(bench.database) if writes else None
    status, printed, said = bench.run(command)
    total, name = bench.count(), " ".join(command[:4])
    expect(status == DONE, f"{name}: {said}")
    new = content(bench.database) if writes else None
    tried = ended = 0
    for at in numbers(range(start + 1, total + 1)):
        begin_anew()
        status, out, message = bench.run(command, at)
        what = f"{name}, allocation {at} of {total}: status {status}"
        tried += 1
        ended += status != DONE
        expect(status in (DONE, FAILED), what)
        expect(out == printed if status == DONE else message != b"",
               f"{what}, with another output or without a message")
        if writes:
            allowed = [new] if status == DONE else [old, new] if command in IN_TWO_STEPS else [old]
            expect(content(bench.database) in allowed, f"{what}, with another content")
    print(f"{name}: {tried} of {total} allocations failed once, {ended} ended the run", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--thorough", action="store_true")
    parser.add_argument("--part", default="0/1")
    options = parser.parse_args()
    if any(name in options.program.read_bytes() for name in (b"__asan_init", b"__tsan_init")):
        print("skipped: a sanitizer has allocations of its own")
        return SKIPPED
    part, parts = map(int, options.part.split("/"))

    def numbers(everything):
        if options.thorough:
            return everything[part::parts]
        return random.Random(len(everything)).sample(everything, min(TRIED, len(everything)))

    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        bench = Bench(options.program.resolve(), options.library.resolve(), folder)
        try_command(bench, [*INGEST, FIRST], True, 0, numbers)
        bench.database.unlink(missing_ok=True)
        bench.run([*INGEST, FIRST])
        bench.database.rename(folder / "other.db")
        bench.run([*INGEST, SECOND])
        bench.database.rename(folder / "before.db")
        shutil.copy(folder / "before.db", bench.database)
        bench.run(["sql", "SELECT 1"])
        opened = bench.count() * 9 // 10
        for command in READERS:
            try_command(bench, command, False, 0 if command is READERS[0] else opened, numbers)
        for command in WRITERS:
            try_command(bench, command, True, opened, numbers)
    print("failed" if FAILURES else "passed")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
