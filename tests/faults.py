#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ingests go wrong in every way; afterwards the database is whole and nothing is lost or doubled.

usage: faults.py FIRSTFLIGHT [--thorough]

Kills (SIGKILL) and interrupts (SIGINT) at random moments, files that may not grow beyond a size at
many sizes, two ingests at once, databases that are locked, foreign, damaged or of a directory that
is not there, output that cannot be written. Each time the database holds either all or nothing of
the run (after SIGINT: of each capture point), and the same run again gives the content of an
undisturbed one. --thorough takes some minutes. Allocations that fail: allocations.py.
"""
import os
import pathlib
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "samples"
SMALL = SAMPLES / "scenarios" / "tls13_0rtt_accepted.pcap"

DONE, FAILED, INTERRUPTED = 0, 2, 130


class Failures:
    """What was not as it should be."""

    def __init__(self):
        self.count = 0

    def expect(self, condition, what):
        if not condition:
            self.count += 1
            print("FAILED:", what)


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
    """The program, a directory to work in, and what undisturbed runs give."""

    def __init__(self, program, directory):
        self.program = program
        self.directory = directory
        self.before = directory / "before.db"  # holds what a first run gave
        self.run(self.before, SAMPLES / "scenarios")
        whole = directory / "whole.db"
        shutil.copy(self.before, whole)
        started = time.monotonic()
        self.run(whole, SAMPLES / "article")
        self.seconds = time.monotonic() - started
        self.contents_before = content(self.before)
        self.contents_whole = content(whole)

    def command(self, database, *paths, options=()):
        return [str(self.program), "ingest", "-q", "-d", str(database), *options, *map(str, paths)]

    def run(self, database, *paths, **keywords):
        return subprocess.run(self.command(database, *paths), check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              **keywords)

    def fresh(self, name):
        database = self.directory / name
        shutil.copy(self.before, database)
        return database

    def expect_all_or_nothing(self, database, failures, what, parts_too=False):
        """The database is as before or as after the whole run, and the run again completes it."""
        found = content(database)
        failures.expect(found in (self.contents_before, self.contents_whole) or parts_too,
                        f"{what}: neither all nor nothing of the run is there")
        again = self.run(database, SAMPLES / "article")
        failures.expect(again.returncode == DONE, f"{what}: then status {again.returncode}")
        failures.expect(content(database) == self.contents_whole,
                        f"{what}: the same run again does not give the same content")


def stop_at_random_moments(bench, failures, how, times, rng):
    whole = 0
    for n in range(times):
        database = bench.fresh("stopped.db")
        # One capture point at a time has the threads that share the work on a point.
        command = bench.command(database, SAMPLES / "article", options=["--jobs", str(1 + n % 2)])
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(rng.uniform(0, 1.1) * bench.seconds)
        process.send_signal(how)
        status = process.wait(timeout=60)
        what = f"{how.name} {n}"
        if how == signal.SIGINT:
            failures.expect(status in (INTERRUPTED, DONE, -signal.SIGINT),
                            f"{what}: status {status}")
        whole += content(database) == bench.contents_whole
        # An interrupt keeps the capture points that were read to their end.
        bench.expect_all_or_nothing(database, failures, what, parts_too=how == signal.SIGINT)
    print(f"{how.name}: {times} times, {whole} of them after the commit")


def limit_file_size(size):
    """A disk that is full: files of the child cannot grow beyond size."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    return limit


def fill_the_disk(bench, failures, times):
    low, refused = bench.before.stat().st_size // 2, 0
    high = 2 * low + 4 * sum(f.stat().st_size for f in (SAMPLES / "article").rglob("*.pcap*"))
    for n in range(times):
        database = bench.fresh("full.db")
        size = low + (high - low) * n // times
        run = bench.run(database, SAMPLES / "article", preexec_fn=limit_file_size(size))
        failures.expect(run.returncode in (DONE, FAILED), f"full at {size}: {run.returncode}")
        if run.returncode == FAILED:
            refused += 1
            failures.expect(run.stderr.startswith("firstflight: "), f"full at {size}: no message")
            failures.expect(content(database) == bench.contents_before,
                            f"full at {size}: something of the run is there")
        bench.expect_all_or_nothing(database, failures, f"full at {size}")
    failures.expect(refused > 0, "no size was small enough to fail")
    print(f"disk full: {times} sizes, {refused} of them too small")


def run_two_at_once(bench, failures, times):
    for n in range(times):
        database = bench.fresh("two.db")
        both = [subprocess.Popen(bench.command(database, SAMPLES / "article"),
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for _ in range(2)]
        for process in both:
            process.wait(timeout=60)
        bench.expect_all_or_nothing(database, failures, f"two at once {n}")
        failures.expect(content(database) == bench.contents_whole, f"two at once {n}: not all")


def refuse_databases(bench, failures):
    """Files of others stay as they are, and the message names what is wrong."""
    damaged = bytearray(bench.before.read_bytes())
    damaged[20000:24000] = os.urandom(4000)
    notes = sqlite3.connect(bench.directory / "notes.db")
    notes.execute("CREATE TABLE note (text)")
    notes.commit()
    notes.close()
    cases = {"text": b"not a database, but text that is long enough\n" * 100,
             "cut": bench.before.read_bytes()[:30000],
             "damaged": bytes(damaged),
             "other program": (bench.directory / "notes.db").read_bytes()}
    for name, octets in cases.items():
        database = bench.directory / "refused.db"
        database.write_bytes(octets)
        run = bench.run(database, SAMPLES / "article")
        # Damage that a run does not come across may stay unnoticed.
        failures.expect(run.returncode == FAILED or name == "damaged",
                        f"{name}: status {run.returncode}")
        if run.returncode == FAILED:
            failures.expect("refused.db" in run.stderr, f"{name}: message {run.stderr!r}")
            failures.expect(database.read_bytes() == octets, f"{name}: the file was changed")
    run = bench.run(bench.directory / "no" / "such" / "x.db", SMALL)
    failures.expect(run.returncode == FAILED and "x.db" in run.stderr,
                    f"no directory: status {run.returncode}, {run.stderr!r}")


def meet_a_lock(bench, failures):
    database = bench.fresh("locked.db")
    holder = sqlite3.connect(database)
    holder.execute("BEGIN EXCLUSIVE")
    run = bench.run(database, SAMPLES / "article")
    holder.rollback()
    holder.close()
    failures.expect(run.returncode == FAILED and "lock" in run.stderr,
                    f"locked: status {run.returncode}, {run.stderr!r}")
    bench.expect_all_or_nothing(database, failures, "locked")


def write_to_nowhere(bench, failures):
    """Results that cannot be written are an error, not a success without words."""
    for arguments in (["report"], ["flows"], ["show", "1"], ["sql", "SELECT * FROM flow"],
                      ["captures"], ["report", "--format", "json"], ["--version"]):
        options = [] if arguments[0].startswith("-") else ["-d", str(bench.before)]
        with open("/dev/full", "wb") as full:
            run = subprocess.run([bench.program, *arguments[:1], *options, *arguments[1:]],
                                 check=False, stdout=full, stderr=subprocess.PIPE, text=True)
        failures.expect(run.returncode == FAILED and run.stderr != "",
                        f"{arguments} > /dev/full: status {run.returncode}, {run.stderr!r}")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    thorough = "--thorough" in sys.argv[2:]
    failures = Failures()
    rng = random.Random(0 if not thorough else None)
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(program, pathlib.Path(name))
        stop_at_random_moments(bench, failures, signal.SIGKILL, 200 if thorough else 6, rng)
        stop_at_random_moments(bench, failures, signal.SIGINT, 100 if thorough else 3, rng)
        fill_the_disk(bench, failures, 100 if thorough else 6)
        run_two_at_once(bench, failures, 20 if thorough else 1)
        refuse_databases(bench, failures)
        meet_a_lock(bench, failures)
        write_to_nowhere(bench, failures)
    print(f"{failures.count} failures")
    return 1 if failures.count else 0


if __name__ == "__main__":
    sys.exit(main())
