#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captures give the same rows whatever they are packed in.

usage: containers.py FIRSTFLIGHT DIRECTORY

Reads the pcap files below the directory as they are, compressed by each method (whole, in several
members, through standard input and a FIFO), cut in the middle, and with every TCP packet in IP
fragments. Compared are all columns of table flow and the hashes of the contents. zstd and lz4 are
tried where their programs are installed. What the doctor says of the same files is looked at, too.
"""
import bz2
import contextlib
import gzip
import itertools
import lzma
import os
import pathlib
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import zlib

# Larger captures hold more of the same flows.
SAMPLE_SIZE_MAX = 200_000
PACKET_NUMBERS = {"first_packet_no", "request_packet_no", "response_packet_no"}


def by_program(*command):
    return lambda data: subprocess.run(command, input=data, capture_output=True, check=True).stdout


METHODS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
for suffix, program in ((".zst", "zstd"), (".lz4", "lz4")):
    if shutil.which(program):
        METHODS[suffix] = by_program(program, "-c")
    else:
        print(f"{suffix}: not tried, there is no {program}")


def as_it_is(data):
    return data


def in_members(compress):
    """Compresses in three parts that are put one behind the other."""
    def compress_parts(data):
        third = len(data) // 3 + 1
        return b"".join(compress(data[i:i + third]) for i in range(0, len(data), third))
    return compress_parts


# Fragments

def fragments(packet):
    """An IPv4 packet in fragments of 48 octets, the last one first; others as they are."""
    header_len = (packet[0] & 15) * 4
    if packet[0] >> 4 != 4 or packet[9] != 6:
        return [packet]
    length, _, offset = struct.unpack(">HHH", packet[2:8])
    if offset & 0x3fff:
        return [packet]
    payload, pieces = packet[header_len:length], []
    for at in range(0, len(payload), 48):
        more = 0x2000 if at + 48 < len(payload) else 0
        piece = payload[at:at + 48]
        header = bytearray(packet[:header_len])
        struct.pack_into(">H", header, 2, header_len + len(piece))
        struct.pack_into(">H", header, 6, more | at // 8)
        pieces.append(bytes(header) + piece)
    return pieces[::-1]


def in_fragments(data):
    """A classic little-endian pcap file, raw IP or Ethernet, with its packets in fragments."""
    magic, link = struct.unpack("<I16xI", data[:24])
    if magic not in (0xa1b2c3d4, 0xa1b23c4d) or link not in (1, 12, 101):
        return data
    link_len, out, at = 14 if link == 1 else 0, [data[:24]], 24
    while at < len(data):
        second, fraction, captured, wire = struct.unpack("<4I", data[at:at + 16])
        frame = data[at + 16:at + 16 + captured]
        at += 16 + captured
        is_ipv4 = captured == wire and (link != 1 or frame[12:14] == b"\x08\x00")
        pieces = fragments(frame[link_len:]) if is_ipv4 else [frame[link_len:]]
        for piece in pieces:
            length = link_len + len(piece)
            out.append(struct.pack("<4I", second, fraction, length, length if is_ipv4 else wire))
            out.append(frame[:link_len] + piece)
    return b"".join(out)


# Rows

def rows(database, left_out=()):
    connection = sqlite3.connect(database)
    cursor = connection.execute("SELECT * FROM flow ORDER BY flow_uid")
    names = [column[0] for column in cursor.description]
    kept = [i for i, name in enumerate(names) if name not in left_out]
    result = [tuple(row[i] for i in kept) for row in cursor]
    hashes = sorted(row[0] for row in connection.execute("SELECT content_hash FROM capture"))
    connection.close()
    return result, hashes


class Trial:
    """The samples under names that stay the same, so that the identities of their flows do."""

    def __init__(self, program, samples, directory):
        self.program, self.samples, self.directory = program, samples, directory
        self.captures, self.database = directory / "captures", directory / "rows.db"
        self.failed = 0

    def run(self, command, *arguments, **options):
        return subprocess.run([self.program, command, *arguments], capture_output=True,
                              check=False, **options)

    def put(self, suffix="", change=lambda data: data):
        """Writes the samples anew; returns their paths."""
        shutil.rmtree(self.captures, ignore_errors=True)
        paths = []
        for number, data in enumerate(self.samples):
            # letters, since files whose names differ by digits alone are one capture point
            name = "".join("abcdefghij"[int(digit)] for digit in str(number))
            path = self.captures / name / f"edge.pcap{suffix}"
            path.parent.mkdir(parents=True)
            path.write_bytes(change(data))
            paths.append(path)
        return paths

    def ingest(self, *arguments, **options):
        return self.run("ingest", "-q", "-d", self.database, *arguments, **options)

    def fresh(self):
        self.database.unlink(missing_ok=True)

    def expect(self, is_true, what):
        if not is_true:
            self.failed += 1
            print(f"not as it should be: {what}")

    def read(self, left_out=()):
        self.fresh()
        result = self.ingest(self.captures)
        self.expect(result.returncode == 0, f"exit status {result.returncode}: {result.stderr}")
        return rows(self.database, left_out)


def try_methods(trial, plain):
    """Every other capture is one member, the others are three."""
    for suffix, compress in METHODS.items():
        ways = itertools.cycle((compress, in_members(compress)))
        trial.put(suffix, lambda data: next(ways)(data))
        trial.expect(trial.read() == plain, f"rows of {suffix}")


def write_fifo(path, data):
    with open(path, "wb") as fifo:
        fifo.write(data)


def try_pipes(trial):
    """Standard input and a FIFO: the point has another name, so what is compared is plain input."""
    largest = max(trial.samples, key=len)
    fifo = trial.directory / "edge.pcap"
    os.mkfifo(fifo)
    expected = {}
    for is_fifo, compress in [(False, as_it_is), *((False, each) for each in METHODS.values()),
                              (True, as_it_is), (True, gzip.compress)]:
        trial.fresh()
        if is_fifo:
            writer = threading.Thread(target=write_fifo, args=(fifo, compress(largest)))
            writer.start()
            trial.expect(trial.ingest(fifo).returncode == 0, "FIFO")
            writer.join()
        else:
            result = trial.ingest("-", input=compress(largest))
            trial.expect(result.returncode == 0, "standard input")
        result = rows(trial.database)
        trial.expect(result == expected.setdefault(is_fifo, result) and result[0], "rows of a pipe")
    fifo.unlink()


def try_cut(trial, large):
    """Of a cut file everything in front of the cut's block is used, and the place is named; of gzip
    and xz all that Python's own decoder gives."""
    libraries = trial.run("--version").stdout.decode()
    for suffix, compress, decoder, library in (
            (".gz", gzip.compress, zlib.decompressobj(31), "zlib"),
            (".xz", lzma.compress, lzma.LZMADecompressor(), "liblzma")):
        if f"\n{library} " not in libraries:
            continue
        path = trial.directory / f"edge.pcap{suffix}"
        data = compress(large)[:-len(large) // 4]
        path.write_bytes(data)
        trial.fresh()
        trial.expect(trial.ingest(path).returncode == 3, f"exit status of cut {suffix}")
        with contextlib.closing(sqlite3.connect(trial.database)) as db:
            found = db.execute("SELECT content_len FROM capture").fetchall()
        trial.expect(found == [(len(decoder.decompress(data)),)], f"bytes of cut {suffix}: {found}")
        path.unlink()
    whole = [large, gzip.compress(large, 1), bz2.compress(large, 1)]
    for name, data in zip(("edge.pcap", "edge.pcap.gz", "edge.pcap.bz2"), whole):
        path = trial.directory / name
        path.write_bytes(data[:len(data) * 3 // 4])
        trial.fresh()
        result = trial.ingest(path)
        trial.expect(result.returncode == 3, f"exit status of cut {name}: {result.returncode}")
        if name != "edge.pcap":
            trial.expect(f"cut at byte {len(data) * 3 // 4} ".encode() in result.stderr,
                         f"place of the cut: {result.stderr}")
        trial.expect(len(rows(trial.database)[0]) > 20, f"rows of cut {name}")
        doctor = trial.run("doctor", path)
        trial.expect(doctor.returncode == 3 and b"damaged" in doctor.stdout, "doctor of a cut file")
        path.unlink()


def try_fragments(trial):
    trial.put()
    plain = trial.read(PACKET_NUMBERS)[0]
    trial.put(change=in_fragments)
    trial.expect(trial.read(PACKET_NUMBERS)[0] == plain, "rows of fragments")


def try_doctor(trial):
    largest = max(trial.samples, key=len)
    path = trial.directory / "edge.pcap"
    path.write_bytes(largest)
    page = trial.run("doctor", path)
    trial.expect(page.returncode == 0 and b"better" not in page.stdout, "doctor of a good capture")
    short, at = [largest[:24]], 24
    while at < len(largest):
        second, fraction, captured, wire = struct.unpack("<4I", largest[at:at + 16])
        kept = min(captured, 128)
        short.append(struct.pack("<4I", second, fraction, kept, wire))
        short.append(largest[at + 16:at + 16 + kept])
        at += 16 + captured
    path.write_bytes(b"".join(short))
    page = trial.run("doctor", path)
    trial.expect(page.returncode == 0 and b"after 128 bytes" in page.stdout, "doctor of snaplen 128")
    trial.expect(b"tcpdump -i eth0 -s 512" in page.stdout, "a better command line")
    trial.expect(max(map(len, page.stdout.splitlines())) <= 100, "width of the page")
    path.write_bytes(b"no capture")
    trial.expect(trial.run("doctor", path).returncode == 2, "doctor without captures")
    trial.expect(trial.run("doctor").returncode == 1, "doctor without paths")


def main():
    program = sys.argv[1]
    samples = [path.read_bytes() for path in sorted(pathlib.Path(sys.argv[2]).rglob("*.pcap"))]
    large = max(samples, key=len)
    samples = [data for data in samples if len(data) < SAMPLE_SIZE_MAX]
    with tempfile.TemporaryDirectory() as directory:
        trial = Trial(program, samples, pathlib.Path(directory))
        if b"\nlibarchive " not in trial.run("--version").stdout:
            print("skipped: built without libarchive")
            return 77
        trial.put()
        plain = trial.read()
        trial.expect(len(plain[0]) > 100, f"{len(plain[0])} rows only")
        try_methods(trial, plain)
        try_pipes(trial)
        try_cut(trial, large)
        try_fragments(trial)
        try_doctor(trial)
        print(f"{len(samples)} captures, {len(plain[0])} rows, {trial.failed} failures")
        return 1 if trial.failed else 0


if __name__ == "__main__":
    sys.exit(main())
