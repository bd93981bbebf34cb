#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads the SQL functions into SQLite as other programs do, and holds them against Python.

usage: extension.py FIRSTFLIGHT EXTENSION

Tries the sqlite3 shell, and Python's module where it may load extensions; the program itself, which
has the functions built in, must say the same. Prints each failure and exits 1 when there is any,
77 (skipped) when nothing here can load extensions.
"""
import json
import math
import pathlib
import random
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile

FAILURES = []
NUMBERS = ("CREATE TABLE t (g INTEGER, x);\n" + "".join(
    f"INSERT INTO t VALUES ({g}, {x});\n" for g, x in
    [(draw.randrange(5), "NULL" if draw.random() < 0.1 else repr(draw.choice(
        [draw.randrange(100), draw.gauss(50, 20)]))) for draw in [random.Random(3)]
     for _ in range(400)] + [(7, "NULL"), (8, 42)]))
# Each gives one value per group g, in the order of g.
EXPRESSIONS = {
    "median(x)": lambda values: statistics.median(values),
    "percentile(x, 90)": lambda values: between(values, 0.9),
    "percentile(x, 0)": min,
    "percentile(x, 100)": max,
    "percentile_cont(x, 0.25)": lambda values: between(values, 0.25),
    "percentile_disc(x, 0.25)": lambda values: sorted(values)[int(0.25 * (len(values) - 1))],
}
WRONG = {
    "percentile(x, 101)": "not between 0.0 and 100.0",
    "percentile_cont(x, 50)": "not between 0.0 and 1.0",
    "percentile_disc(x, 'half')": "not between 0.0 and 1.0",
    "percentile(x, g)": "not the same for all input rows",
    "median('text')": "input to median() is not numeric",
    "median(9e999)": "Inf input to median()",
}


def expect(condition, what):
    if not condition:
        FAILURES.append(what)
        print("FAILED:", what)


def between(values, fraction):
    """Linear between the two nearest ranks."""
    ordered = sorted(values)
    rank = fraction * (len(ordered) - 1)
    below = math.floor(rank)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (rank - below)


def groups():
    db = sqlite3.connect(":memory:")
    db.executescript(NUMBERS)
    found = {}
    for group, value in db.execute("SELECT g, x FROM t ORDER BY g"):
        found.setdefault(group, [])
        if value is not None:
            found[group].append(value)
    return list(found.values())


def check(where, ask):
    """ask(expression, sql) gives the values of a query, or raises RuntimeError with its message."""
    for expression, by_python in EXPRESSIONS.items():
        values = ask(f"SELECT {expression} AS v FROM t GROUP BY g ORDER BY g")
        expected = [by_python(group) if group else None for group in groups()]
        expect(len(values) == len(expected) and all(
            (a is None) == (b is None) and (a is None or math.isclose(a, b, abs_tol=1e-9))
            for a, b in zip(values, expected)), f"{where}: {expression}: {values}, not {expected}")
    window = ask("SELECT median(x) OVER (ORDER BY rowid ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)"
                 " AS v FROM t WHERE x IS NOT NULL")
    plain = ask("SELECT x AS v FROM t WHERE x IS NOT NULL ORDER BY rowid")
    expect(all(math.isclose(value, statistics.median(plain[max(0, i - 2):i + 1]))
               for i, value in enumerate(window)), f"{where}: a moving median")
    for expression, words in WRONG.items():
        try:
            ask(f"SELECT {expression} AS v FROM t")
            expect(False, f"{where}: {expression} must fail")
        except RuntimeError as error:
            expect(words in str(error), f"{where}: {expression}: {error}")


def check_shell(shell, extension):
    def ask(sql):
        script = f".bail on\n.load {extension}\n.mode json\n{NUMBERS}{sql};\n"
        result = subprocess.run([shell, ":memory:"], input=script, capture_output=True, text=True,
                                check=False)
        if result.returncode != 0 or result.stderr:
            raise RuntimeError(result.stderr)
        return [row["v"] for row in json.loads(result.stdout)]
    check("sqlite3", ask)


def check_python(extension):
    db = sqlite3.connect(":memory:")
    db.enable_load_extension(True)
    db.load_extension(str(extension))
    db.executescript(NUMBERS)

    def ask(sql):
        try:
            return [value for (value,) in db.execute(sql)]
        except sqlite3.Error as error:
            raise RuntimeError(error) from error
    check("Python", ask)


def check_program(program, directory):
    database = directory / "t.db"
    subprocess.run([program, "set-rules", "-q", "-d", database, "--rules", "/dev/null"], check=True)
    db = sqlite3.connect(database)
    db.executescript(NUMBERS)
    db.close()

    def ask(sql):
        result = subprocess.run([program, "sql", "-d", database, "--format", "json", sql],
                                capture_output=True, text=True, check=False)
        if result.returncode != 0:
            raise RuntimeError(result.stderr)
        return [row["v"] for row in json.loads(result.stdout)]
    check("firstflight sql", ask)


def main():
    program, extension = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    shell = shutil.which("sqlite3")
    python_loads = hasattr(sqlite3.connect(":memory:"), "enable_load_extension")
    with tempfile.TemporaryDirectory() as name:
        check_program(program, pathlib.Path(name))
    if shell:
        check_shell(shell, extension)
    if python_loads:
        check_python(extension)
    print(f"{len(FAILURES)} failures; sqlite3 shell: {bool(shell)}, Python: {python_loads}")
    if FAILURES:
        return 1
    return 0 if shell or python_loads else 77


if __name__ == "__main__":
    sys.exit(main())
