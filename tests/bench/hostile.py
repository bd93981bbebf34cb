#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what captures cost that an attacker makes: time must grow as the input does.

usage: hostile.py FIRSTFLIGHT [--scale N] [--max-memory SIZE] [AXIS...]

For each axis a capture of a length and one of twice that length are read; printed are the CPU
seconds and the peak memory of both, and their ratios. A ratio of CPU seconds near 2 is linear; a
ratio of memory near 1 means a cap holds. --scale multiplies the lengths.
"""
import argparse
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

CLIENT, SERVER = bytes([198, 51, 100, 7]), bytes([192, 0, 2, 10])
FIN, SYN, ACK = 1, 2, 16


class Capture:
    """A classic pcap file of raw IP packets, a microsecond apart."""

    def __init__(self, path):
        self.file = open(path, "wb")
        self.file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 101))
        self.us = 0

    def packet(self, octets, at_us=None):
        self.us += 1
        us = self.us if at_us is None else at_us
        self.file.write(struct.pack("<IIII", 1780408800 + us // 10**6, us % 10**6, len(octets),
                                    len(octets)) + octets)

    def raw(self, octets):
        self.file.write(octets)

    def close(self):
        self.file.close()


def ip(source, destination, protocol, payload, ident=0, flags=0):
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), ident, flags, 64, protocol, 0,
                       source, destination) + payload


def tcp(source, sport, destination, dport, seq, ack, flags, payload=b""):
    header = struct.pack(">HHIIBBHHH", sport, dport, seq & 0xFFFFFFFF, ack & 0xFFFFFFFF, 0x50,
                         flags, 65535, 0, 0)
    return ip(source, destination, 6, header + payload)


def handshake(capture, client=CLIENT, port=50000, server=SERVER):
    capture.packet(tcp(client, port, server, 443, 1000, 0, SYN))
    capture.packet(tcp(server, 443, client, port, 5000, 1001, SYN | ACK))
    capture.packet(tcp(client, port, server, 443, 1001, 5001, ACK))


def hello(name=b"a.example", extra=b""):
    sni = struct.pack(">HHHBH", 0, len(name) + 5, len(name) + 3, 0, len(name)) + name
    extensions = sni + extra
    body = (b"\x03\x03" + bytes(32) + b"\x00" + struct.pack(">HH", 2, 0x1301) + b"\x01\x00" +
            struct.pack(">H", len(extensions)) + extensions)
    message = b"\x01" + len(body).to_bytes(3, "big") + body
    return b"\x16\x03\x01" + struct.pack(">H", len(message)) + message


def client_data(capture, seq, payload, port=50000):
    capture.packet(tcp(CLIENT, port, SERVER, 443, seq, 5001, ACK, payload))


def out_of_order_segments(capture, n):
    """Each window of a hundred segments comes backwards."""
    handshake(capture)
    for start in range(0, n, 100):
        for k in reversed(range(start, start + 100)):
            client_data(capture, 1001 + 100 * k, bytes(100))


def segments_behind_a_hole(capture, n):
    """The first segment never comes."""
    handshake(capture)
    for k in range(1, n):
        client_data(capture, 1001 + 2 * k, b"x")


def tiny_segments(capture, n):
    handshake(capture)
    octets = hello() + b"\x17\x03\x03\x40\x00" * n
    for k in range(n):
        client_data(capture, 1001 + k, octets[k:k + 1])


def empty_records(capture, n):
    handshake(capture)
    seq = 1001
    for k in range(n // 200):
        octets = b"\x17\x03\x03\x00\x00" * 200 if k else hello()
        client_data(capture, seq, octets)
        seq += len(octets)


def extensions(capture, n):
    """Hellos with as many extensions as there is room for."""
    extra = b"".join(struct.pack(">HH", k & 0xFFFF, 0) for k in range(1000, 4600))
    octets = hello(extra=extra)
    for k in range(n // 3600):
        port = 1024 + k % 60000
        handshake(capture, port=port)
        client_data(capture, 1001, octets, port=port)


def overlapping_segments(capture, n):
    handshake(capture)
    for k in range(n):
        client_data(capture, 1001 + k * 3, bytes(60))


def half_open_flows(capture, n):
    rng = random.Random(n)
    for _ in range(n):
        capture.packet(tcp(rng.randbytes(4), rng.randrange(1024, 65536), SERVER, 443,
                           rng.randrange(2**32), 0, SYN))


def open_flows(capture, n):
    for k in range(n):
        client = struct.pack(">I", 0x0A000000 + k // 50000)
        port = 1024 + k % 50000
        handshake(capture, client, port)
        capture.packet(tcp(client, port, SERVER, 443, 1001, 5001, ACK, hello()))


def server_names(capture, n):
    """Every flow asks for another name of another server."""
    for k in range(n):
        server = struct.pack(">I", 0xC0000200 + k)
        port = 1024 + k % 60000
        handshake(capture, port=port, server=server)
        capture.packet(tcp(CLIENT, port, server, 443, 1001, 5001, ACK, hello(b"n%d.example" % k)))
        capture.packet(tcp(CLIENT, port, server, 443, 1001 + 400, 5001, ACK | FIN))


def fragments(capture, n):
    """First halves of datagrams whose second half never comes."""
    for k in range(n):
        capture.packet(ip(struct.pack(">I", k), SERVER, 6, bytes(64), ident=k & 0xFFFF,
                          flags=0x2000))


def nested_tunnels(capture, n):
    octets = tcp(CLIENT, 50000, SERVER, 443, 1000, 0, SYN)
    for _ in range(40):
        octets = ip(CLIENT, SERVER, 4, octets)
    for _ in range(n):
        capture.packet(octets)


def late_frames(capture, n):
    """Every other frame is a second late."""
    handshake(capture)
    for k in range(n):
        capture.packet(tcp(CLIENT, 50000, SERVER, 443, 1001 + k, 5001, ACK, b"x"),
                       at_us=100 + 10 * k - (1000000 if k % 2 and k > 100000 else 0))


def garbage(capture, n):
    """Headers of packets that would be plausible but for what follows them."""
    handshake(capture)
    capture.raw(b"\xff" * 16)
    for k in range(n):
        capture.raw(struct.pack("<IIII", 1780408800, k, 40, 40) + b"\xff" * 7)


def blocks(capture, n):
    """A pcapng file of blocks that nobody knows, interfaces and sections."""
    capture.file.seek(0)
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    interface = struct.pack("<IIHHII", 1, 20, 101, 0, 0, 20)
    unknown = struct.pack("<III", 0x0BAD, 12, 12)
    for k in range(n):
        capture.raw(section + interface * 3 if k % 1000 == 0 else unknown)


AXES = {"out_of_order_segments": (out_of_order_segments, 100000),
        "segments_behind_a_hole": (segments_behind_a_hole, 100000),
        "tiny_segments": (tiny_segments, 100000),
        "overlapping_segments": (overlapping_segments, 100000),
        "empty_records": (empty_records, 2000000),
        "extensions": (extensions, 3600000),
        "half_open_flows": (half_open_flows, 200000),
        "open_flows": (open_flows, 50000),
        "server_names": (server_names, 30000),
        "fragments": (fragments, 200000),
        "nested_tunnels": (nested_tunnels, 50000),
        "late_frames": (late_frames, 200000),
        "garbage": (garbage, 300000),
        "blocks": (blocks, 500000)}


def measure(program, capture, memory):
    """CPU seconds and peak MiB of reading a capture."""
    with tempfile.TemporaryDirectory() as name:
        process = subprocess.Popen([program, "ingest", "-q", "--max-memory", memory, "-d",
                                    pathlib.Path(name) / "x.db", capture],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 3):
        raise SystemExit(f"{capture.name}: the program ended with {status}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("axes", nargs="*", default=list(AXES))
    parser.add_argument("--scale", type=float, default=1)
    parser.add_argument("--max-memory", default="256M")
    options = parser.parse_intermixed_args()
    print(f"{'axis':24}{'n':>10}{'CPU s':>8}{'at 2n':>8}{'ratio':>7}{'MiB':>7}{'at 2n':>7}{'ratio':>7}")
    for name in options.axes:
        make, length = AXES[name]
        costs = []
        for n in (int(length * options.scale), int(length * options.scale) * 2):
            with tempfile.TemporaryDirectory() as directory:
                path = pathlib.Path(directory) / f"{name}.pcap"
                capture = Capture(path)
                make(capture, n)
                capture.close()
                costs.append(measure(options.program.resolve(), path, options.max_memory))
        (cpu, mib), (cpu_2, mib_2) = costs
        print(f"{name:24}{int(length * options.scale):10,}{cpu:8.2f}{cpu_2:8.2f}{cpu_2 / cpu:7.2f}"
              f"{mib:7.0f}{mib_2:7.0f}{mib_2 / mib:7.2f}", flush=True)


if __name__ == "__main__":
    main()
