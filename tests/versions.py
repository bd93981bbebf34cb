#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""In a fleet of mixed versions nobody reads or changes what another version wrote.

usage: versions.py FIRSTFLIGHT

Every command refuses a database of a newer schema, of one that was never released and of another
program, names the file, and leaves each of its bytes alone, whether it was to read it, to write it,
or to merge it into another, whose rows stay as they were. Prints each failure and exits 1 when there is
any.
"""
import hashlib
import pathlib
import sqlite3
import subprocess
import sys
import tempfile

import merge

SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "samples"
RULES = SAMPLES.parent / "schema/early_data_rules.csv"
COMMANDS = [
    ["report"], ["flows"], ["show", "1"], ["sql", "SELECT 1"], ["captures"], ["judge"],
    ["judge", "--check"], ["forget", "--site", "x"], ["set-rules", "--rules", RULES],
    ["set-regions", "--sites", "/dev/null"], ["merge", "good.db"],
    ["ingest", SAMPLES / "scenarios/tls13_resumed.pcap"],
    ["export", "--to", "csv"], ["export", "--to", "ndjson"], ["export", "--to", "clickhouse"],
]
STRANGERS = {  # the pragma that makes a database one of somebody else's, and a word of the refusal
    "newer": ("user_version = 1000", "newer"),
    "never": ("user_version = 0", "released"),
    "other": ("application_id = 1", "firstflight"),
}


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    failures = []

    def run(*words):
        return subprocess.run([str(word) for word in (program, *words)], cwd=directory, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")

    with tempfile.TemporaryDirectory() as directory:
        good = pathlib.Path(directory) / "good.db"
        run("ingest", "-q", "-d", good, SAMPLES / "scenarios/tls13_full.pcap")
        whole = merge.rows(good)
        for name, (pragma, word) in STRANGERS.items():
            path = good.with_name(f"{name}.db")
            path.write_bytes(good.read_bytes())
            db = sqlite3.connect(path)
            db.execute(f"PRAGMA {pragma}")
            db.close()
            before = digest(path)
            for command in [[*words, "-d", path] for words in COMMANDS] + [
                    ["merge", "-d", good, path]]:
                result = run(*command)
                refused = result.returncode == 2 and not result.stdout
                said = path.name in result.stderr and word in result.stderr
                if not (refused and said and digest(path) == before and merge.rows(good) == whole):
                    failures.append(command)
                    print(f"FAILED: {name}: {' '.join(map(str, command))}: {result}")
    print(f"{len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
