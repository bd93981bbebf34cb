#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a release build promises of the program file, read from it with readelf.

usage: hardening.py FIRSTFLIGHT [DIRECTORY...]

It is loaded anywhere, its tables are read-only before it starts, no memory is both written and run,
stacks and buffers are watched, and none of the directories stands in it. A sanitizer's or a
debugging build is as the compiler makes it: skipped, as without readelf.
"""
import pathlib
import re
import shutil
import subprocess
import sys

from report import expect, FAILURES

SKIPPED = 77


def main():
    program = pathlib.Path(sys.argv[1])
    octets = program.read_bytes()
    if shutil.which("readelf") is None or b"__asan_init" in octets or b".debug_info" in octets:
        print("skipped: no readelf, or no release build")
        return SKIPPED
    text = subprocess.run(["readelf", "-W", "-h", "-l", "-d", "--dyn-syms", program], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    expect(re.search(r"Type: +DYN", text) and "PIE" in text, "position independent")
    expect("GNU_RELRO" in text, "relocations are read-only after start")
    expect(re.search(r"\(FLAGS_1\).*\bNOW\b", text), "all symbols are bound at start")
    stack = re.search(r"GNU_STACK.*?\b(R[ W]?E?)\s+0x", text)
    expect(stack and "E" not in stack[1], "the stack is not run")
    for segment in re.findall(r"^ +LOAD.*?0x\w+ ([RWE ]+) 0x\w+$", text, re.MULTILINE):
        expect(not ("W" in segment and "E" in segment), "nothing is both written and run")
    expect("__stack_chk_fail" in text, "stacks are guarded")
    expect(re.search(r"__(memcpy|snprintf|vsnprintf|read)_chk", text), "buffers are guarded")
    expect(not re.search(r"\((RPATH|RUNPATH)\)", text), "libraries are those of the system")
    for directory in sys.argv[2:]:
        expect(directory.encode() not in octets, f"{directory} stands in the program")
    print("failed" if FAILURES else "passed")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
