#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""However many capture points are read at once, the database and the words about it are the same.

usage: jobs.py FIRSTFLIGHT NO_THREADS

Points of every kind: whole ones, cut and damaged files, files that are no captures, one content
under two names that is only found out when it was read, many overlapping files. Compared are all
tables, row by row, but for the time of the run and the state of points (its hashes have a random
seed), standard error, and the exit status: of --jobs 1 and of more, with filters, key logs, hashed
names and little memory, of a first run and of one that goes on. NO_THREADS is the library of
no_threads.c: without a thread everything is read and written by the one there is. Interrupts are
tried by faults.py.
"""
import gzip
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from determinism import dump

SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "samples"
SCENARIOS = SAMPLES / "scenarios"
JOBS = (1, 2, 5)


def make_points(directory):
    for capture in (SAMPLES / "article").rglob("*.pcap"):
        point = directory / "article" / capture.parent.name
        point.mkdir(parents=True)
        shutil.copy(capture, point / capture.name)
    for capture in SCENARIOS.glob("tls1*.pcap"):
        (directory / capture.stem).mkdir()
        shutil.copy(capture, directory / capture.stem / "edge.pcap")
    octets = (SCENARIOS / "tls13_resumed.pcap").read_bytes()
    for name in ("cut", "damaged", "no_capture", "twice", "compressed"):
        (directory / name).mkdir()
    (directory / "cut" / "edge.pcap").write_bytes(octets[:-100])
    (directory / "damaged" / "edge.pcap").write_bytes(octets[:700] + bytes(64) + octets[700:])
    (directory / "no_capture" / "edge.pcap").write_bytes(octets)
    (directory / "no_capture" / "notes.pcap").write_bytes(b"no capture at all\n" * 10)
    (directory / "twice" / "edge1.pcap").write_bytes(octets)
    (directory / "twice" / "edge2.pcap.gz").write_bytes(gzip.compress(octets, mtime=0))
    (directory / "compressed" / "edge.pcap.gz").write_bytes(gzip.compress(octets, mtime=0)[:-50])


def add_files(directory):
    """For a second run: more captures of points that are known, and a new one."""
    for name in ("tls13_full", "tls13_0rtt_accepted", "new_point"):
        (directory / name).mkdir(exist_ok=True)
        shutil.copy(SCENARIOS / "http2_full.pcap", directory / name / "edge2.pcap")


class Runs:
    """Runs that are to say the same."""

    def __init__(self, program, directory):
        self.program = program
        self.directory = directory
        self.captures = directory / "captures"
        self.failures = 0

    def ingest(self, database, options, environment=None):
        run = subprocess.run(
            [self.program, "ingest", "-d", database, "--labels", "{site}/*", *options,
             self.captures], check=False, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, env=environment)
        return run.returncode, run.stderr.replace(str(database), "DB"), dump(database)

    def expect_equal(self, what, first, other):
        for part, one, two in zip(("status", "words", "rows"), first, other):
            if one == two:
                continue
            self.failures += 1
            print(f"FAILED: {what}: other {part}")
            if part == "rows":
                for line in sorted(set(one) ^ set(two))[:6]:
                    print("-+"[line in set(two)], line[:300])
            else:
                print(one, two, sep="\n----\n")

    def compare(self, name, options=(), begun=None):
        """What all numbers of jobs gave."""
        results = []
        for jobs in JOBS:
            database = self.directory / f"{name}{jobs}.db"
            if begun is not None:
                shutil.copy(self.directory / f"{begun}.db", database)
            results.append(self.ingest(database, ["--jobs", str(jobs), *options]))
            self.expect_equal(f"{name}, {jobs} jobs", results[0], results[-1])
        status, words, rows = results[0]
        print(f"{name}: status {status}, {len(words.splitlines())} lines said, {len(rows)} stored")
        return results[0]


def main():
    program, no_threads = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        runs = Runs(program, directory)
        make_points(runs.captures)
        whole = runs.compare("whole")
        if whole[0] != 3 or len(whole[1].splitlines()) < 5 or len(whole[2]) < 300:
            runs.failures += 1
            print("FAILED: the points are not what they are to be:", whole[0], whole[1])
        keylogs = [word for keys in sorted(SCENARIOS.glob("tls13*.keys"))
                   for word in ("--keylog", keys)]
        key = directory / "key"
        key.write_bytes(b"a key that is long enough\n")
        runs.compare("filtered", ["--filter", "tcp port 443 and not src portrange 1-40000"])
        runs.compare("keyed", keylogs)
        runs.compare("hashed", ["--sni", "hash", "--client-addr", "hash", "--hash-key", key])
        runs.compare("little_memory", ["--max-memory", "1M"])
        default = runs.ingest(directory / "default.db", [])
        runs.expect_equal("without --jobs", whole, default)
        alone = runs.ingest(directory / "alone.db", ["--jobs", "3"],
                            dict(os.environ, LD_PRELOAD=no_threads,
                                 ASAN_OPTIONS="verify_asan_link_order=0"))
        runs.expect_equal("without threads", whole, alone)
        add_files(runs.captures)
        runs.compare("going_on", begun="whole1")
        runs.compare("replacing", ["--replace"], begun="whole1")
        for word in ("0", "-1", "two", "", "1025"):
            run = subprocess.run([program, "ingest", "--jobs", word, runs.captures], check=False,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if run.returncode != 1:
                runs.failures += 1
                print(f"FAILED: --jobs {word!r}: status {run.returncode}")
        print(f"{runs.failures} failures")
        return 1 if runs.failures else 0


if __name__ == "__main__":
    sys.exit(main())
