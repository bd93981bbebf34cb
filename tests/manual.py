#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The manual and --help name the same commands, options, reports and formats.

usage: manual.py FIRSTFLIGHT
"""
import pathlib
import re
import subprocess
import sys

MANUAL = pathlib.Path(__file__).resolve().parent.parent / "analyzer/firstflight.1"
SHARED = "Options of more than one command"


def help_of(program, *command):
    return subprocess.run([program, *command, "--help"], stdout=subprocess.PIPE, encoding="utf-8",
                          check=True).stdout


def options_of_help(text):
    """Long options where a line of the help begins with them."""
    found = set()
    for line in text.splitlines():
        head = re.match(r" +((?:-\w, )?--[a-z-]+(?:[ ,].*)?)$", line)
        if head:
            found |= set(re.findall(r"--([a-z][a-z-]*)", re.split(r"  +", head[1])[0]))
    return found


def sections():
    """Text of the manual by the heading of its subsections."""
    parts = re.split(r"^\.S[sh] (.*)\n", MANUAL.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


def options_of_manual(text):
    return {name for line in re.findall(r"^\.It (Fl .*)$", text, re.MULTILINE)
            for name in re.findall(r"Fl -([a-z][a-z-]*)", line)}


def differences(program):
    manual = sections()
    shared = options_of_manual(manual[SHARED])
    top = help_of(program)
    commands = re.findall(r"^  ([a-z-]+)(?: \S+)?  +\S", top, re.MULTILINE)
    if not commands:
        yield "no commands in --help"
    for command in commands:
        if command not in manual:
            yield f"{command}: not in the manual"
            continue
        text = help_of(program, command)
        told, written = options_of_help(text), options_of_manual(manual[command])
        for name in sorted(told - written - shared):
            yield f"{command} --{name}: in --help, not in the manual"
        for name in sorted(written - told):
            yield f"{command} --{name}: in the manual, not in --help"
        if f".Nm\n.Cm {command}\n" not in manual["SYNOPSIS"]:
            yield f"{command}: not in the manual's synopsis"
    for name in sorted(set(manual) - set(commands) - {SHARED}):
        if name.islower():
            yield f"{name}: in the manual, not in --help"
    yield from report_differences(program, manual)


def report_differences(program, manual):
    """Names of reports, and formats, which --help lists below the options."""
    text = help_of(program, "report")
    told = set(re.findall(r"^  ([a-z-]+) {1,}\S", text, re.MULTILINE))
    written = set(re.findall(r"^\.It Cm ([a-z-]+)", manual["report"], re.MULTILINE))
    if not told:
        yield "no reports in --help"
    for name in sorted(told ^ written):
        yield f"report {name}: in {'--help' if name in told else 'the manual'} alone"
    formats = re.search(r"--format FORMAT +(.*(?:\n {20,}.*)*)", text)
    for name in ("table", "csv", "json", "html"):
        if name not in formats[1]:
            yield f"report --format {name}: not in --help"
        if not re.search(rf"\b{name}\b", manual[SHARED] + manual["report"]):
            yield f"report --format {name}: not in the manual"


def main():
    found = list(differences(pathlib.Path(sys.argv[1]).resolve()))
    for line in found:
        print(line)
    print(f"{len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
