#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""firstflight doctor: what it says of captures whose faults are known.

usage: doctor.py FIRSTFLIGHT SAMPLES_DIRECTORY

Prints what does not hold and exits 1 then.
"""
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import time

HEADER = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, 101)
RAW_IP_SECOND = 1700000000


def records_of(data):
    """The packet records of a pcap file, headers included."""
    at, found = 24, []
    while at < len(data):
        end = at + 16 + struct.unpack("<I", data[at + 8:at + 12])[0]
        found.append(data[at:end])
        at = end
    return found


def ip_packet(protocol, payload):
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(payload), 1, 0, 64, protocol, 0,
                       bytes([192, 0, 2, 1]), bytes([198, 51, 100, 1])) + payload


def udp(port, payload):
    return ip_packet(17, struct.pack(">HHHH", 50000, port, 8 + len(payload), 0) + payload)


def record(number, data, wire_len=None):
    return struct.pack("<IIII", RAW_IP_SECOND, number, len(data), wire_len or len(data)) + data


class Doctor:
    def __init__(self, program):
        self.program, self.wrong = program, []

    def page(self, *paths):
        result = subprocess.run([self.program, "doctor", *paths], capture_output=True, check=False)
        self.expect(result.returncode == 0 and not result.stderr, f"exit {result.returncode}")
        return " ".join(result.stdout.decode().split())

    def expect(self, holds, what):
        if not holds:
            self.wrong.append(what)


def try_ring(doctor, top, samples):
    """Connections that go on in the next file of a ring are one, and have their SYN."""
    data = (samples / "article/eu/fra1/edge.pcap").read_bytes()
    records = records_of(data)
    (top / "whole").mkdir()
    (top / "ring").mkdir()
    (top / "whole/edge.pcap").write_bytes(data)
    for i in range(7):
        part = records[i * len(records) // 7:(i + 1) * len(records) // 7]
        (top / f"ring/edge{i}.pcap").write_bytes(data[:24] + b"".join(part))
    whole, ring = doctor.page(top / "whole"), doctor.page(top / "ring")
    behind_names = re.compile(r"files, (.*)")
    doctor.expect("7 of 7 files" in ring, "the ring is one point")
    doctor.expect(behind_names.search(whole)[1] == behind_names.search(ring)[1],
                  f"a ring is told as its whole:\n{whole}\n{ring}")


def try_traffic(doctor, top):
    """What is there beside TCP is said, with its share."""
    initial = bytes([0xc3, 0, 0, 0, 1, 8]) + bytes(8) + bytes(1200)
    path = top / "quic.pcap"
    packets = [udp(443, initial)] * 3 + [ip_packet(50, bytes(100))] * 7
    path.write_bytes(HEADER + b"".join(record(i, p) for i, p in enumerate(packets)))
    page = doctor.page(path)
    doctor.expect("30% of the packets are QUIC" in page, "QUIC's share")
    doctor.expect("70% neither TCP nor UDP" in page and "IPsec" in page, "encrypted tunnels")

    path = top / "joined.pcap"
    long = record(0, ip_packet(17, bytes(64)), 60000)
    path.write_bytes(HEADER + long + record(1, udp(53, bytes(20))))
    doctor.expect("50% of the packets are longer than any link" in doctor.page(path), "offload")


def try_rows(doctor, top, samples):
    """The rows say what the page says."""
    sample, short = samples / "article/eu/fra1/edge.pcap", top / "short.pcap"
    data = sample.read_bytes()
    cut = [r[:8] + struct.pack("<I", min(len(r) - 16, 200)) + r[12:16 + 200]
           for r in records_of(data)]
    short.write_bytes(data[:24] + b"".join(cut))
    page = doctor.page(short)
    result = subprocess.run([doctor.program, "doctor", "--format", "json", short],
                            capture_output=True, check=False)
    rows = json.loads(result.stdout)
    statements = [" ".join(row["statement"].split()) for row in rows
                  if row["severity"] in ("problem", "note")]
    doctor.expect(len(statements) > 3 and all(words in page for words in statements),
                  f"rows and page differ:\n{page}\n{statements}")
    numbers = {row["topic"]: row for row in rows if row["severity"] == "number"}
    doctor.expect(numbers["packets"]["count"] == len(cut) and numbers["snaplen"]["count"] == 200,
                  f"numbers: {numbers}")
    share = 100 * numbers["packets cut"]["count"] / len(cut)
    doctor.expect(abs(numbers["packets cut"]["share"] - share) < 0.001 < share, "a share")
    doctor.expect(sum(row["severity"] == "measure" for row in rows) == 5, "measures")
    doctor.expect([row["statement"].startswith("tcpdump ") for row in rows
                   if row["severity"] == "advice"] == [True], "advice")
    doctor.expect(all(row["files"] == 1 for row in rows), "files of the point")
    wrong = subprocess.run([doctor.program, "doctor", "--format", "html", short],
                           capture_output=True, check=False)
    doctor.expect(wrong.returncode == 1 and not wrong.stdout, "html is no format of rows")


def try_clock(doctor, top):
    path = top / "clock.pcap"
    late = struct.pack("<IIII", RAW_IP_SECOND + 864000, 0, 48, 48) + udp(53, bytes(20))
    path.write_bytes(HEADER + late + record(1, udp(53, bytes(20))))
    doctor.expect("1 time back by up to 10 days" in doctor.page(path), "a step of the clock")


def try_interrupt(doctor, top):
    """Ctrl-C ends with the page of what was read, and 130."""
    (top / "many").mkdir()
    packets = b"".join(record(i, udp(53, bytes(20))) for i in range(50000))
    for i in range(40):
        (top / f"many/edge{i}.pcap").write_bytes(HEADER + packets)
    running = subprocess.Popen([doctor.program, "doctor", top / "many"], stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL)
    time.sleep(0.3)
    running.send_signal(signal.SIGINT)
    page = running.communicate()[0].decode()
    if running.returncode == -signal.SIGINT or running.returncode == 0:
        return  # it came before the program listened, or behind its end
    doctor.expect(running.returncode == 130, f"exit {running.returncode} when interrupted")
    doctor.expect(page == "" or "interrupted" in page, "an interrupted page says so")


def try_progress(doctor, top):
    """On a terminal a line says how far it is, and is taken away; else, and with -q, there is none."""
    for arguments in (["doctor"], ["doctor", "-q"]):
        terminal, other_end = pty.openpty()
        result = subprocess.run([doctor.program, *arguments, top / "many"], stdout=subprocess.PIPE,
                                stderr=other_end, check=False)
        os.set_blocking(terminal, False)
        said = os.read(terminal, 65536) if select.select([terminal], [], [], 0)[0] else b""
        os.close(other_end)
        os.close(terminal)
        quiet = "-q" in arguments
        doctor.expect(result.returncode == 0 and b"looking" not in result.stdout, "progress: page")
        doctor.expect(quiet == (b"looking: " not in said), f"progress on a terminal: {said}")
        doctor.expect(quiet or b" of 40 files, " in said and said.endswith(b"\r\x1b[K"),
                      f"the end of progress: {said}")
    result = subprocess.run([doctor.program, "doctor", top / "many"], stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, check=False)
    doctor.expect(result.stderr == b"", "progress without a terminal")


def main():
    doctor, samples = Doctor(pathlib.Path(sys.argv[1]).resolve()), pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as directory:
        top = pathlib.Path(directory)
        try_ring(doctor, top, samples)
        try_traffic(doctor, top)
        try_clock(doctor, top)
        try_rows(doctor, top, samples)
        try_interrupt(doctor, top)
        try_progress(doctor, top)
    print("\n".join(doctor.wrong) if doctor.wrong else "the doctor says what is there")
    sys.exit(bool(doctor.wrong))


if __name__ == "__main__":
    main()
