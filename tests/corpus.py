#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads all captures there are, twenty to a run, with a program built with sanitizers.

usage: corpus.py FIRSTFLIGHT [DIRECTORY]

Of FIRSTFLIGHT_CORPUS, by default ../shared/captures/public; skipped when it is not there. A run that
ends other than with 0, 2 or 3 or has a report of a sanitizer is a failure.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED, BATCH = 77, 20
USUAL = pathlib.Path(__file__).resolve().parent.parent.parent / "shared/captures/public"
REPORT = re.compile(r"runtime error|Sanitizer")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    directory = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else
                             os.environ.get("FIRSTFLIGHT_CORPUS", USUAL))
    if not directory.exists():
        print(f"skipped: there is no {directory}")
        return SKIPPED
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    failed = 0
    for start in range(0, len(files), BATCH):
        batch = files[start:start + BATCH]
        with tempfile.TemporaryDirectory() as name:
            database = pathlib.Path(name, "corpus.db")
            for command in (["ingest", "-q", *batch], ["report"], ["judge"], ["captures"]):
                run = subprocess.run([program, command[0], "-d", database, *command[1:]],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                     check=False, text=True, errors="replace")
                if run.returncode not in (0, 2, 3) or REPORT.search(run.stderr):
                    failed += 1
                    print(f"FAILED: {command[0]} of {batch[0]} and the next: {run.returncode}\n"
                          f"{run.stderr[-3000:]}", flush=True)
    print(f"{len(files)} files, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
