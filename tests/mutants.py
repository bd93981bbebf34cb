#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads captures with random damage: the program neither crashes nor hangs nor grows.

usage: mutants.py FIRSTFLIGHT [--count N] [--seed N] [--keep DIRECTORY]

Each mutant is a capture of the samples, as pcap or pcapng, with bits flipped, numbers replaced,
ranges cut, doubled or moved. They are read a hundred to a run. A run that ends other than with 0, 2
or 3, takes longer than a minute or more memory than 300 MB is a failure; its mutants are then tried
one by one, and those that do it are kept. Prints the failures and exits 1 when there are any.
"""
import argparse
import pathlib
import random
import resource
import shutil
import struct
import subprocess
import sys
import tempfile

SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "samples"
BATCH = 100
SECONDS_MAX = 60
MEMORY_MAX = 300 << 20
NUMBERS = [0, 1, 2, 4, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000,
           0xFFFFFFFF]


def pcapng_of(pcap):
    """The same packets as a pcapng file with one interface."""
    link_type = struct.unpack_from("<I", pcap, 20)[0]
    nanoseconds = struct.unpack_from("<I", pcap)[0] == 0xA1B23C4D
    out = [struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28),
           struct.pack("<IIHHIHHBxxxHHI", 1, 32, link_type, 0, 0, 9, 1, 9 if nanoseconds else 6,
                       0, 0, 32)]
    at = 24
    while at + 16 <= len(pcap):
        seconds, fraction, captured, original = struct.unpack_from("<IIII", pcap, at)
        octets = pcap[at + 16:at + 16 + captured]
        time = seconds * (10**9 if nanoseconds else 10**6) + fraction
        padded = octets + b"\0" * (-len(octets) % 4)
        size = 32 + len(padded)
        out.append(struct.pack("<IIIIIII", 6, size, 0, time >> 32, time & 0xFFFFFFFF, captured,
                               original) + padded + struct.pack("<I", size))
        at += 16 + captured
    return b"".join(out)


def damage(octets, rng):
    b = bytearray(octets)
    for _ in range(rng.choice([1, 1, 1, 2, 3, 8, 30])):
        at = rng.randrange(len(b)) if b else 0
        length = min(rng.choice([1, 2, 4, 16, 60, 400]), len(b) - at)
        kind = rng.randrange(6)
        if kind == 0 and b:
            b[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at + 4 <= len(b):
            width = rng.choice(["B", "H", "I"])
            order = rng.choice("<>")
            value = rng.choice(NUMBERS) & ((1 << 8 * struct.calcsize(width)) - 1)
            struct.pack_into(order + width, b, at, value)
        elif kind == 2:
            del b[at:at + length]
        elif kind == 3:
            b[at:at] = b[at:at + length]
        elif kind == 4:
            to = rng.randrange(len(b) + 1)
            b[to:to + length] = b[at:at + length]
        elif rng.randrange(8) == 0:
            del b[at:]
    return bytes(b)


def limit():
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS_MAX, SECONDS_MAX))
    if not LIMITLESS:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY_MAX, MEMORY_MAX))


LIMITLESS = False  # an address sanitizer's shadow is larger than any limit


def what_is_wrong(program, directory):
    """None, or how the program ended on the files of a directory."""
    with tempfile.TemporaryDirectory() as name:
        command = [program, "ingest", "-q", "-d", pathlib.Path(name) / "x.db", directory]
        try:
            run = subprocess.run(command, check=False, stdout=subprocess.PIPE, preexec_fn=limit,
                                 stderr=subprocess.PIPE, text=True, errors="replace",
                                 timeout=20 * SECONDS_MAX)
        except subprocess.TimeoutExpired:
            return "it hangs"
    if run.returncode in (0, 2, 3) and "out of memory" not in run.stderr:
        return None
    return f"status {run.returncode}: {run.stderr[-2000:]}"


def find_guilty(program, directory, keep):
    found = 0
    for file in sorted(directory.iterdir()):
        with tempfile.TemporaryDirectory() as name:
            shutil.copy(file, name)
            wrong = what_is_wrong(program, name)
        if wrong is not None:
            found += 1
            kept = keep / f"mutant-{file.name}"
            shutil.copy(file, kept)
            print(f"FAILED: {kept}: {wrong}")
    return found


def main():
    global LIMITLESS
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("."))
    options = parser.parse_args()
    LIMITLESS = b"__asan_init" in options.program.read_bytes()
    rng = random.Random(options.seed)
    sources = [path.read_bytes() for path in sorted((SAMPLES / "scenarios").glob("*.pcap"))]
    sources += [pcapng_of(octets) for octets in sources]
    failed = 0
    for start in range(0, options.count, BATCH):
        with tempfile.TemporaryDirectory() as name:
            directory = pathlib.Path(name)
            for n in range(start, min(start + BATCH, options.count)):
                mutant = damage(rng.choice(sources), rng)
                (directory / f"{options.seed}-{n}.pcap").write_bytes(mutant)
            wrong = what_is_wrong(options.program.resolve(), directory)
            if wrong is not None:
                guilty = find_guilty(options.program.resolve(), directory, options.keep)
                failed += max(1, guilty)
                if guilty == 0:
                    print(f"FAILED: mutants from {start} on, together: {wrong}")
    print(f"{options.count} mutants, {failed} failures")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
