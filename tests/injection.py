#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Names of files, directories and servers that attack whoever reads notes, progress or output.

usage: injection.py FIRSTFLIGHT

Captures whose paths hold escape sequences, line breaks, bidirectional controls, SQL, HTML, formulas
and bytes that are no UTF-8, and whose ClientHellos name servers like that, are read with labels from
the paths. Every line that comes out, on standard output, standard error and a terminal, is made of
plain characters; what is to be read by programs is read by Python's, and SQL changes nothing.
"""
import concurrent.futures
import csv
import io
import json
import os
import pathlib
import pty
import re
import sqlite3
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests/bench"))
import hostile  # pylint: disable=wrong-import-position
from report import expect, is_harmless, FAILURES  # pylint: disable=wrong-import-position

NAMES = [
    b"\x1b]0;owned\x07", b"\x1b[2J\x1b[31mred", b"\x9b31m", "\u009b31m".encode(),
    "user\u202egnp.exe".encode(), "\u2066iso\u2069".encode(), "pay\u200bpal".encode(),
    "\u2028line".encode(), b"<script>alert(1)<!--script>", b"=cmd|' !C calc'!A0", b"@SUM(A1)",
    b"-rf", b"--help", b"two\nlines", b"cr\rlf", b"\tTAB", b"'; DROP TABLE flow; --",
    b"\"quoted\", comma", b"%s%n%x", b"$(reboot)`id`", b"\xff\xfe\x80", b"\xc0\xaf",
    b"\xed\xa0\x80", b"a\x00b", b"{site}", b"x" * 200,
]
# What the program itself writes to move on a terminal.
OWN_SEQUENCES = re.compile(rb"\r|\x1b\[K|\n")


def is_plain(octets, allowed="\n"):
    try:
        text = octets.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return is_harmless(text, allowed)


def connection(capture, name, port):
    hostile.handshake(capture, port=port)
    octets = hostile.hello(name=name)
    capture.packet(hostile.tcp(hostile.CLIENT, port, hostile.SERVER, 443, 1001, 5001, hostile.ACK,
                               octets))


def write_captures(folder):
    """One directory for each name, with a good capture, a broken one and one that is none."""
    for i, name in enumerate(NAMES):
        place = os.path.join(os.fsencode(folder), b"%d-" % i + name.replace(b"\0", b"")[:200])
        if name.startswith(b"-"):
            place = os.path.join(os.fsencode(folder), name)
        os.mkdir(place)
        base = os.path.join(place, name.replace(b"\0", b"")[:200])
        capture = hostile.Capture(base + b".pcap")
        for port, server in enumerate(NAMES, 20000 + 100 * i):
            connection(capture, server, port)
        capture.close()
        with open(base + b".pcap", "rb") as whole, open(base + b"-cut.pcap", "wb") as cut:
            cut.write(whole.read()[:-7])
        with open(base + b"-none.pcap", "wb") as none:
            none.write(b"GIF89a" + name)


def run(program, *arguments, **options):
    return subprocess.run([program, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
                          check=False, timeout=60, **options)


def check_notes(program, folder, database):
    result = run(program, "ingest", "-v", "-d", database, "--labels", "{site}/*", ".", cwd=folder)
    expect(result.returncode == 3, f"ingest: exit {result.returncode}")
    expect(is_plain(result.stderr) and is_plain(result.stdout), "notes of ingest")
    notes = result.stderr.decode("utf-8", "replace").splitlines()
    expect(len(notes) >= 2 * len(NAMES), f"a note for each broken file: {len(notes)}")
    expect(len(notes) < 8 * len(NAMES), f"no note has two lines: {len(notes)}")
    odd = [os.path.join(os.fsencode(folder), b"none" + name.replace(b"\0", b"")[:200])
           for name in NAMES]
    for arguments in (["ingest", "-d", database], ["doctor"]):
        result = run(program, *arguments, *odd)
        expect(result.returncode == 2, f"{arguments[0]}: {result.returncode}")
        expect(is_plain(result.stderr) and is_plain(result.stdout), f"{arguments[0]} of no files")
        named = (result.stderr + result.stdout).count(b"No such file")
        expect(named == len(odd), f"{arguments[0]}: a line for each of no files: {named}")


def check_options(program, database, pool):
    """What SQL makes of a name is refused in plain words, or is a report."""
    cases = [(option, name.replace(b"\0", b"")) for name in NAMES for option in ("--where", "--by")]
    for case, result in zip(cases, pool.map(lambda case: run(program, "report", "-d", database,
                                                             *case), cases)):
        expect(is_plain(result.stderr) and is_plain(result.stdout), f"report {case}")


def check_progress(program, folder, database):
    """On a terminal, with a locale that shows everything."""
    parent, child = pty.openpty()
    with subprocess.Popen([program, "ingest", "-v", "--replace", "-d", database, "."], cwd=folder,
                          stdin=subprocess.DEVNULL, stdout=child, stderr=child,
                          env=dict(os.environ, TERM="xterm", LC_ALL="C.UTF-8")) as process:
        os.close(child)
        said = b""
        try:
            while part := os.read(parent, 65536):
                said += part
        except OSError:
            pass
        os.close(parent)
    expect(process.returncode == 3 and said.count(b"\n") > len(NAMES),
          f"ingest at a terminal: {process.returncode}, {said[-300:]}")
    expect(is_plain(OWN_SEQUENCES.sub(b"", said)), "what a terminal gets")


def check_outputs(program, folder, database, pool):
    connection_ = sqlite3.connect(database)
    count, = connection_.execute("SELECT count(*) FROM flow").fetchone()
    connection_.close()
    expect(count > len(NAMES) ** 2 / 2, f"{count} flows, no table was dropped")
    commands = [["captures"], ["flows", "--limit", "2000"], ["report", "coverage"],
                ["report", "failures"], ["report", "--by", "site,sni"],
                ["sql", "SELECT f.sni, f.alpn_offered, c.site, c.path, c.damage FROM flow AS f "
                        "JOIN capture AS c USING (capture_id)"]]
    cases = [(command + ["--format", style], style) for command in commands
             for style in ("table", "csv", "json", "ndjson", "markdown")]
    cases += [(["export", "--to", style], style) for style in ("csv", "ndjson")]
    for (command, style), result in zip(cases, pool.map(
            lambda case: run(program, case[0][0], "-d", database, *case[0][1:]), cases)):
        expect(result.returncode == 0, f"{command}: {result.stderr}")
        allowed = "\n\r\t" if style == "csv" or command[0] == "export" else "\n"
        expect(is_plain(result.stdout, allowed), command)
        check_readable(result.stdout.decode("utf-8", "replace"), style, command)
    for style in ("text", "svg", "html"):
        result = run(program, "show", "-d", database, "5", "--format", style)
        expect(result.returncode == 0 and is_plain(result.stdout), f"show {style}")
        if style == "svg":
            xml.etree.ElementTree.fromstring(result.stdout)
    result = run(program, "doctor", ".", cwd=folder)
    expect(is_plain(result.stdout) and is_plain(result.stderr), "doctor")


def check_readable(text, style, what):
    try:
        if style == "json":
            json.loads(text)
        elif style == "ndjson":
            for line in text.splitlines():
                json.loads(line)
        elif style == "csv":
            rows = list(csv.reader(io.StringIO(text, newline=""), strict=True))
            expect(len({len(row) for row in rows}) == 1, f"{what}: rows of one length")
            expect(not any(cell[:1] in ("=", "@", "\t", "\r") for row in rows for cell in row),
                  f"{what}: a cell is a formula")
    except (ValueError, csv.Error) as error:
        expect(False, f"{what}: {error}")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name, "captures")
        folder.mkdir()
        write_captures(folder)
        database = pathlib.Path(name, "injection.db")
        check_notes(program, folder, database)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            check_options(program, database, pool)
            check_outputs(program, folder, database, pool)
        check_progress(program, folder, database)
    print("failed" if FAILURES else "passed")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
