#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the rows of all samples against what the clients themselves said of their connections.

usage: truth.py FIRSTFLIGHT

samples/truth.tsv has one line per connection, see samples/README.md. Every connection must have
exactly one row, with the same verdicts; the time that a visitor felt must be the client's own
measurement, but for what its processor was late; request and response must lie in the packets that
the decrypted capture shows. Prints every disagreement.
"""
import csv
import pathlib
import sqlite3
import statistics
import subprocess
import sys
import tempfile

SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "samples"

# How far the felt time may be from the client's own: it hears of the response when its scheduler
# lets it, and the way back of the response is taken to be that of the handshake's ACK.
FELT_MAX_NS = 100_000_000
FELT_P90_MAX_NS = 6_000_000
FELT_MEDIAN_MAX_NS = 1_500_000
START_MAX_NS = 150_000_000

VERDICTS = "tls_version handshake early_data hello_retry sni outcome failure".split()


def read_rows(program, directory):
    database = pathlib.Path(directory) / "truth.db"
    subprocess.run([program, "ingest", "-q", "-d", database, SAMPLES], check=True)
    connection = sqlite3.connect(database)
    connection.row_factory = sqlite3.Row
    rows = {}
    for row in connection.execute("SELECT * FROM flow"):
        rows.setdefault((row["client_ip"], row["client_port"], row["server_ip"],
                         row["server_port"]), []).append(row)
    connection.close()
    return rows


def read_truth():
    with (SAMPLES / "truth.tsv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def find_row(rows, truth):
    """The row of that connection: the same addresses and ports, and begun at that time."""
    key = (truth["client_ip"], int(truth["client_port"]), truth["server_ip"],
           int(truth["server_port"]))
    start_ns = int(truth["start_epoch_ns"])
    found = [row for row in rows.get(key, ())
             if 0 <= row["start_epoch_ns"] - start_ns < START_MAX_NS]
    return found[0] if len(found) == 1 else None


def expected_verdicts(truth):
    """What the row must say; None = NULL. Columns that the client cannot know are left out."""
    expected = {column: None if truth[column] == "-" else truth[column] for column in VERDICTS}
    expected["hello_retry"] = int(truth["hello_retry"])
    if truth["tls_version"] == "-":
        del expected["hello_retry"]
    if truth["handshake"] == "unknown":  # the client failed before it knew
        for column in ("tls_version", "handshake"):
            del expected[column]
    if truth["outcome"] == "failed" and truth["server"] != "-" and truth["failure"] == "unknown_ca":
        del expected["failure"]          # said under encryption
    return expected


def disagreements(truth, row):
    for column, expected in expected_verdicts(truth).items():
        if row[column] != expected:
            yield f"{column} is {row[column]!r}, the client says {expected!r}"
    for column in ("request_packet_no", "response_packet_no"):
        known = truth[column] != "-" and truth["handshake"] != "none"
        if known and str(row[column]) != truth[column]:
            yield f"{column} is {row[column]}, decrypted it is {truth[column]}"
    if (truth["response_ns"] == "-") != (row["perceived_ns"] is None):
        yield f"perceived_ns is {row['perceived_ns']}, the client says {truth['response_ns']}"


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as directory:
        rows = read_rows(program, directory)
    truths = read_truth()

    wrong = 0
    late_ns = []
    for truth in truths:
        where = f"{truth['capture']} port {truth['client_port']} ({truth['mode']})"
        row = find_row(rows, truth)
        told = ["no row"] if row is None else list(disagreements(truth, row))
        if row is not None and truth["response_ns"] != "-" and row["perceived_ns"] is not None:
            late_ns.append(int(truth["response_ns"]) - row["perceived_ns"])
            if abs(late_ns[-1]) > FELT_MAX_NS:
                told.append(f"felt {row['perceived_ns']}, the client says {truth['response_ns']}")
        for text in told:
            print(f"{where}: {text}")
        wrong += bool(told)
    flows = sum(len(found) for found in rows.values())
    if flows != len(truths):
        print(f"{flows} rows, but {len(truths)} connections")
        wrong += 1
    distances_ns = sorted(map(abs, late_ns)) or [0]
    median_ns = statistics.median(distances_ns)
    p90_ns = distances_ns[len(distances_ns) * 9 // 10]
    if median_ns > FELT_MEDIAN_MAX_NS or p90_ns > FELT_P90_MAX_NS:
        print("felt times are too far from the clients' own")
        wrong += 1
    print(f"{len(truths)} connections, {wrong} disagreements; felt times differ by "
          f"{median_ns / 1e6:.2f} ms (median), {p90_ns / 1e6:.2f} ms (90 %)")
    return 1 if wrong or not truths else 0


if __name__ == "__main__":
    sys.exit(main())
