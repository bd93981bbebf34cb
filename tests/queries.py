#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The queries of schema/README.md over the samples print what stands below them there; README.md
shows what samples/run prints and one flow of it, and its queries run.

usage: queries.py FIRSTFLIGHT [--write]

Each block of SQL that begins with SELECT is run over a database of the samples, which is made as
the document says. With --write the outputs in the document are made anew.
"""
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
DOCUMENT = TOP / "schema/README.md"
MAKE = re.compile(r"^    firstflight (ingest .*)$", re.MULTILINE)
BLOCK = re.compile(r"```sql\n(SELECT.*?)```\n(?:\n```text\n(.*?)```\n)?", re.DOTALL)
QUESTIONS_MIN = 20
WIDTH_MAX = 112


def run(program, *arguments):
    result = subprocess.run([program, *arguments], cwd=TOP, capture_output=True, encoding="utf-8",
                            check=False)
    if result.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}: {result.stderr}")
    return result.stdout


def make_database(program, document, directory):
    """Runs the commands of the document, which name samples.db."""
    database = directory / "samples.db"
    commands = MAKE.findall(document)
    for command in commands:
        words = [word.strip("'") for word in command.split()]
        run(program, *[database if word == "samples.db" else word for word in words], "-q")
    return database


def readme_faults(program, directory):
    """What README.md shows and the program does not print, and queries there that fail."""
    readme = (TOP / "README.md").read_text(encoding="utf-8")
    database = directory / "article.db"
    run(program, "ingest", "-q", "-d", database, "--labels", "{region}/{site}/*",
        "--local", "192.0.2.0/24", "samples/article")
    faults = []
    for command in ("report",), ("show", "705"):
        missing = [line for line in run(program, *command, "-d", database).splitlines()
                   if line and line not in readme]
        faults += [f"README.md lacks a line of {' '.join(command)}: {line}" for line in missing]
    for query in "".join(re.findall(r"```sql\n(.*?)```", readme, re.DOTALL)).split(";"):
        if query.strip():
            run(program, "sql", "-d", database, query)
    return faults


def main():
    program, write = pathlib.Path(sys.argv[1]).resolve(), "--write" in sys.argv
    document = DOCUMENT.read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as directory:
        faults = readme_faults(program, pathlib.Path(directory))
        database = make_database(program, document, pathlib.Path(directory))

        def with_output(block):
            output = run(program, "sql", "-d", database, block[1])
            return f"```sql\n{block[1]}```\n\n```text\n{output}```\n"

        made = BLOCK.sub(with_output, document)
    if write:
        DOCUMENT.write_text(made, encoding="utf-8")
    changes = list(difflib.unified_diff(document.splitlines(), made.splitlines(), "schema/README.md",
                                        "what the queries print", lineterm="", n=1))
    outputs = [block[2] for block in BLOCK.finditer(made)]
    wide = [line for output in outputs for line in output.splitlines() if len(line) > WIDTH_MAX]
    if write:
        print(f"{len(outputs)} queries, {len(changes)} lines of changes")
        return 0
    print("\n".join(changes + faults + [f"too wide: {line}" for line in wide]))
    if changes:
        print("when that is right: tests/queries.py FIRSTFLIGHT --write")
    print(f"{len(outputs)} queries")
    return 1 if changes or faults or wide or len(outputs) < QUESTIONS_MIN else 0


if __name__ == "__main__":
    sys.exit(main())
