#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judging again: the order of ingests and of files does not matter, and doing it twice neither.

usage: judge_again.py FIRSTFLIGHT

The samples are ingested all at once, and one directory or file after the other in several orders,
each followed by `judge`. All databases must hold the same rows, profiles included, but for the
numbers that a database gives by order.
"""
import pathlib
import random
import sqlite3
import subprocess
import sys
import tempfile

SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "samples"
ORDERS = 2
# Given by the order of reading.
NUMBERS = {"flow_id", "capture_id"}


def run(program, *arguments):
    """Standard output of a run that must succeed; notes of what is no capture are fine."""
    result = subprocess.run([program, *arguments], stdout=subprocess.PIPE, encoding="utf-8",
                            check=True)
    return result.stdout


def rows_of(database, table):
    connection = sqlite3.connect(database)
    cursor = connection.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in cursor.description]
    rows = sorted((tuple((name, value) for name, value in zip(names, row) if name not in NUMBERS)
                   for row in cursor), key=repr)
    connection.close()
    return rows


def content(database):
    return {table: rows_of(database, table) for table in ("flow", "server_profile")}


def parts():
    """What is read at a time."""
    return sorted(SAMPLES.glob("scenarios/*.pcap")) + sorted(
        path for path in SAMPLES.glob("article/*/*") if path.is_dir() or path.suffix == ".pcap")


def ingest(program, database, *paths):
    # Each file is a point of its own: of one point, older files could not come after newer ones.
    run(program, "ingest", "-q", "-d", database, "--labels", "{file}", *paths)


def differences(name, wanted, found):
    for table, rows in wanted.items():
        missing = [row for row in rows if row not in found[table]]
        unexpected = [row for row in found[table] if row not in rows]
        if missing or unexpected:
            yield f"{name}: {table}: {len(missing)} rows missing, {len(unexpected)} unexpected"
            for old, new in list(zip(missing, unexpected))[:3]:
                yield "  " + ", ".join(f"{a} instead of {b[1]!r}" for a, b in zip(new, old)
                                       if a != b)[:400]


def main():
    program = sys.argv[1]
    random.seed(20260602)
    wrong = []
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory)
        whole = path / "whole.db"
        ingest(program, whole, *parts())
        wanted = content(whole)
        run(program, "judge", "-q", "-d", whole)
        wrong += differences("judged again", wanted, content(whole))
        for order in range(ORDERS):
            database = path / f"order{order}.db"
            shuffled = parts()
            random.shuffle(shuffled)
            for part in shuffled:
                ingest(program, database, part)
            run(program, "judge", "-q", "-d", database)
            once = content(database)
            wrong += differences(f"order {order}", wanted, once)
            if run(program, "judge", "-q", "-d", database) != "":
                wrong.append(f"order {order}: judging twice changed rows")
            ingest(program, database, *shuffled)
            wrong += differences(f"order {order}, ingested again", once, content(database))
    for line in wrong:
        print(line)
    print(f"{len(wanted['flow'])} flows, {len(wanted['server_profile'])} profiles, "
          f"{ORDERS} orders, {len(wrong)} differences")
    return 1 if wrong or len(wanted["flow"]) < 100 else 0


if __name__ == "__main__":
    sys.exit(main())
