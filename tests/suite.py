#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs all tests of a build directory and counts what they report.

usage: suite.py BUILD_DIRECTORY

First the tests that meson knows; unit tests report each of their cases. Then, where a corpus of
captures with a score program is there, that: FIRSTFLIGHT_SCORE names the program, by default
../shared/score/public.py. FIRSTFLIGHT_FUZZ=SECONDS searches that long with each fuzz target. Exits 1 when anything failed or nothing ran.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as xml

TOP = pathlib.Path(__file__).resolve().parent.parent


def run_meson(build):
    """Runs the tests; returns the counts of cases that passed, failed and were skipped."""
    logs = build / "meson-logs"
    for log in ("testlog.json", "testlog.junit.xml"):
        (logs / log).unlink(missing_ok=True)
    # A hang is what time limits are for, not a machine that does much else.
    subprocess.run(["meson", "test", "-C", build, "--no-rebuild", "--print-errorlogs",
                    "--timeout-multiplier", "10"], check=False)

    passed = failed = skipped = 0
    failed_suites = set()
    for suite in xml.parse(logs / "testlog.junit.xml").getroot():
        for case in suite.iter("testcase"):
            if case.find("failure") is not None or case.find("error") is not None:
                failed += 1
                failed_suites.update((suite.get("name"), f"{suite.get('name')}.{case.get('name')}"))
            elif case.find("skipped") is not None:
                skipped += 1
            else:
                passed += 1

    # A program that ended badly though each of its cases was fine, or before it told of any.
    with (logs / "testlog.json").open(encoding="utf-8") as log:
        for test in map(json.loads, log):
            told = any(suite.endswith("." + test["name"]) for suite in failed_suites)
            if test["result"] not in ("OK", "SKIP", "EXPECTEDFAIL") and not told:
                failed += 1
    return passed, failed, skipped


def run_score(build):
    """Runs the score over the corpus, if there is one; same counts."""
    usual = TOP.parent / "shared/score/public.py"
    program = pathlib.Path(os.environ.get("FIRSTFLIGHT_SCORE", usual))
    if not program.exists():
        print(f"score over captures: skipped, there is no {program}")
        return 0, 0, 1
    print(f"score over captures: {program}", flush=True)
    result = subprocess.run([sys.executable, program, "--bin", build / "firstflight"], check=False)
    return (1, 0, 0) if result.returncode == 0 else (0, 1, 0)


def run_fuzz():
    """Searches for a short time, when asked to; same counts, by target."""
    seconds = os.environ.get("FIRSTFLIGHT_FUZZ")
    if not seconds:
        return 0, 0, 0
    if shutil.which("clang") is None:
        print("fuzz targets: skipped, there is no clang")
        return 0, 0, 1
    run = subprocess.run([sys.executable, TOP / "tests/fuzz/run", seconds], check=False,
                         stdout=subprocess.PIPE, text=True)
    print(run.stdout, end="", flush=True)
    counts = re.search(r"^(\d+) passed, (\d+) failed$", run.stdout, re.MULTILINE)
    return (int(counts[1]), int(counts[2]), 0) if counts else (0, 1, 0)


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    counts = [sum(column) for column in zip(run_meson(build), run_score(build), run_fuzz())]
    passed, failed, skipped = counts
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
