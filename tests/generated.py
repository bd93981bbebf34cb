#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the rows of a generated capture against what its generator knows of each flow.

usage: generated.py FIRSTFLIGHT GENERATE

500 flows of all kinds without loss, once whole and once with 128 bytes of each packet: every flow
must have exactly one row with the right kind of handshake, and its response at the very packet that
starts it. Prints every disagreement.
"""
import csv
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

FLOWS = 500
SEEDS = (1, 2)
SNAPLENS = (262144, 128)

# What a capture cut at 128 bytes cannot tell: the ClientHello's extensions lie behind the cut.
KINDS_UNSEEN_WHEN_CUT = {"early", "refused", "resumed13", "full13", "retry", "resumed12", "full12"}


def generate(program, directory, seed, snaplen):
    capture, truth = directory / "generated.pcap", directory / "truth.csv"
    subprocess.run([program, "--flows", str(FLOWS), "--seconds", "20", "--seed", str(seed),
                    "--loss", "0", "--snaplen", str(snaplen), "--truth", truth, "-o", capture],
                   check=True, stderr=subprocess.DEVNULL)
    with open(truth, encoding="utf-8", newline="") as file:
        return capture, list(csv.DictReader(file))


def read_rows(program, directory, capture):
    database = directory / "generated.db"
    database.unlink(missing_ok=True)
    subprocess.run([program, "ingest", "-q", "-d", database, capture], check=True)
    connection = sqlite3.connect(database)
    connection.row_factory = sqlite3.Row
    rows = {}
    for row in connection.execute("SELECT * FROM flow"):
        rows.setdefault((row["client_port"], row["start_epoch_ns"]), []).append(row)
    connection.close()
    return rows


def number(text):
    return int(text) if text else None


def disagreements(truth, rows, cut):
    """Compares one flow; where the capture was cut, a verdict may be missing but never wrong."""
    found = rows.get((int(truth["client_port"]), int(truth["start_epoch_ns"])), [])
    if len(found) != 1:
        yield f"{len(found)} rows"
        return
    row = found[0]
    unseen = cut and truth["kind"] in KINDS_UNSEEN_WHEN_CUT
    if row["handshake"] != truth["handshake"] and not (unseen and row["handshake"] == "unknown"):
        yield f"handshake {row['handshake']} ({row['handshake_reason']})"
    for column in ("request_at_ns", "response_at_ns"):
        if row[column] != number(truth[column]) and not (unseen and row[column] is None):
            reason = row["response_reason"]
            yield f"{column} {row[column]} instead of {truth[column]} ({reason})"


def main():
    firstflight, generator = sys.argv[1:]
    failed = compared = 0
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        for seed in SEEDS:
            for snaplen in SNAPLENS:
                capture, truths = generate(generator, directory, seed, snaplen)
                rows = read_rows(firstflight, directory, capture)
                for truth in truths:
                    if truth["handshake"] == "":
                        continue
                    compared += 1
                    for text in disagreements(truth, rows, snaplen < 262144):
                        failed += 1
                        print(f"seed {seed} snaplen {snaplen} flow {truth['flow']} "
                              f"{truth['kind']}: {text}")
    print(f"{compared} flows, {failed} disagreements")
    return 1 if failed or compared == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
