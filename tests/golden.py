#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the rows of a capture against what is right for it.

usage: golden.py FIRSTFLIGHT CAPTURE QUERY.sql

Reads the capture into a new database and runs the query, which selects the differences between
expected and seen rows: '-' marks what is missing, '+' what should not be there. No row = passed.
"""
import pathlib
import sqlite3
import subprocess
import sys
import tempfile


def main():
    program, capture, query = sys.argv[1:]
    with tempfile.TemporaryDirectory() as directory:
        database = pathlib.Path(directory) / "golden.db"
        subprocess.run([program, "ingest", "-q", "-d", database, capture], check=True)
        connection = sqlite3.connect(database)
        cursor = connection.execute(pathlib.Path(query).read_text(encoding="utf-8"))
        differences = cursor.fetchall()
        names = [column[0] for column in cursor.description[1:]]
        connection.close()
    for sign, *values in differences:
        print(sign, ", ".join(f"{name}={value!r}" for name, value in zip(names, values)))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
