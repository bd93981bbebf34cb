#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two runs over the samples give the same database, and a third into the same file changes nothing.

usage: determinism.py FIRSTFLIGHT

Compared are all tables, row by row, but for the time of the run itself and the state of capture
points, whose hashes have a random seed in each database.
"""
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "samples"


def dump(database):
    connection = sqlite3.connect(database)
    connection.execute("UPDATE capture SET ingested_at = ''")
    connection.execute("UPDATE open_point SET state = x''")
    lines = list(connection.iterdump())
    connection.close()
    return lines


def ingest(program, database):
    subprocess.run([program, "ingest", "-q", "-d", database, "--labels", "{region}/{site}/*",
                    SAMPLES], check=True)
    return dump(database)


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as directory:
        first = ingest(program, pathlib.Path(directory) / "first.db")
        second = ingest(program, pathlib.Path(directory) / "second.db")
        again = ingest(program, pathlib.Path(directory) / "second.db")
    failed = 0
    for name, lines in (("a second run", second), ("the same run again", again)):
        if lines != first:
            failed += 1
            print(f"{name}: other rows")
            for line in sorted(set(first) ^ set(lines))[:10]:
                print("-+"[line in set(lines)], line[:300])
    print(f"{len(first)} lines compared")
    return 1 if failed or len(first) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
