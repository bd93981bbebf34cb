#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One connection seen at two capture points: what both say of it, and of their clocks.

usage: points.py FIRSTFLIGHT SAMPLES_DIRECTORY

Each capture taken near the server is written again as a point nearer to the client would have
captured it: the client's packets earlier, the server's later, all by another clock. Both points
must see the same connections, say the same of what the client felt, and give away how far the
clock is off. Prints what does not hold and exits 1 then.
"""
import pathlib
import re
import sqlite3
import struct
import subprocess
import sys
import tempfile

MS = 1000000
CAPTURES = {"eu/fra1": 3 * MS, "na/iad2": 20 * MS, "sea/sin1": 35 * MS}  # and the way between points
CLOCK_NS = 7250 * MS  # what the clock of the other point is ahead


def read(path):
    """Yields (epoch ns, original length, bytes); the header first."""
    data = path.read_bytes()
    magic = struct.unpack("<I", data[:4])[0]
    unit = {0xa1b2c3d4: 1000, 0xa1b23c4d: 1}[magic]
    packets, at = [], 24
    while at < len(data):
        seconds, fraction, captured, length = struct.unpack("<IIII", data[at:at + 16])
        packets.append((seconds * 10**9 + fraction * unit, length, data[at + 16:at + 16 + captured]))
        at += 16 + captured
    return struct.unpack("<I", data[20:24])[0], packets


def write(path, link_type, packets):
    out = [struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 262144, link_type)]
    for at_ns, length, data in packets:
        out.append(struct.pack("<IIII", at_ns // 10**9, at_ns % 10**9, len(data), length) + data)
    path.write_bytes(b"".join(out))


def is_from_client(data, link_type):
    """By the destination port, which is a server's."""
    ip = data[{1: 14, 101: 0, 12: 0, 113: 16}[link_type]:]
    header = (ip[0] & 15) * 4 if ip[0] >> 4 == 4 else 40
    source, destination = struct.unpack(">HH", ip[header:header + 4])
    return destination < source


def moved(packets, link_type, way_ns, jitter_ns):
    """The packets as seen nearer to the client by way_ns, with a little jitter, in order of time."""
    result = []
    for number, (at_ns, length, data) in enumerate(packets):
        shift = -way_ns if is_from_client(data, link_type) else way_ns
        jitter = number * 7919 % (2 * jitter_ns + 1) - jitter_ns
        result.append((at_ns + shift + jitter + CLOCK_NS, length, data))
    return sorted(result, key=lambda packet: packet[0])


def median(values):
    values = sorted(values)
    return values[len(values) // 2] if values else None


def try_capture(program, samples, name, way_ns, jitter_ns):
    """Returns what does not hold for one capture."""
    link_type, packets = read(samples / "article" / name / "edge.pcap")
    wrong = []

    def expect(holds, what):
        if not holds:
            wrong.append(f"{name}, jitter {jitter_ns} ns: {what}")

    with tempfile.TemporaryDirectory() as directory:
        top = pathlib.Path(directory)
        for point, content in (("edge", packets),
                               ("isp", moved(packets, link_type, way_ns, jitter_ns))):
            (top / point).mkdir()
            write(top / point / "some.pcap", link_type, content)
        subprocess.run([program, "ingest", "-q", "-d", top / "db", "--labels", "{site}/*",
                        top / "edge", top / "isp"], check=True)
        db = sqlite3.connect(top / "db")
        flows = db.execute("SELECT count(*) FROM flow WHERE site = 'edge'"
                           " AND server_random_hash IS NOT NULL").fetchone()[0]
        pairs = db.execute("SELECT site, perceived_difference_ms * 1e6, way_ms * 1e6,"
                           " handshake = other_handshake, perceived_ms IS NULL ="
                           " (other_perceived_ms IS NULL) FROM pair"
                           " WHERE matched_by = 'random'").fetchall()
        clocks = db.execute("SELECT pairs, offset_ms * 1e6, spread_ms * 1e6, way_ms * 1e6,"
                            " point LIKE '%isp%' FROM point_clock").fetchall()
        db.close()
        page = subprocess.run([program, "captures", "-d", top / "db"], check=True, text=True,
                              capture_output=True).stdout
    expect(flows > 20 and len(pairs) == flows, f"{len(pairs)} pairs of {flows} flows")
    expect(all(site == "isp" for site, *_ in pairs), "the point near the client comes first")
    expect(all(same for *_, same, _ in pairs), "the same kind of handshake at both")
    expect(all(same for *_, same in pairs), "perceived at both or at none")
    tolerance = 4 * jitter_ns + 1000
    differences = [abs(d) for _, d, *_ in pairs if d is not None]
    expect(len(differences) > flows / 2 and max(differences, default=0) <= tolerance,
           f"what the client felt differs by {max(differences, default=0):.0f} ns")
    ways = [w for _, _, w, *_ in pairs if w is not None]
    expect(ways and abs(median(ways) - way_ns) <= tolerance, f"the way is {median(ways)} ns")
    expect(len(clocks) == 1, f"{len(clocks)} pairs of points")
    for count, offset_ns, spread_ns, clock_way_ns, isp_first in clocks:
        sign = -1 if isp_first else 1
        expect(count > flows / 2, f"{count} connections tell of the clock")
        expect(abs(sign * offset_ns - CLOCK_NS) <= tolerance, f"the clock is off by {offset_ns} ns")
        told = re.search(r"is behind the clock of .*\n *(\S+) +(\S+) +([0-9.]+) ", page)
        expect(told is not None and "edge" in told[1] and "isp" in told[2] and
               float(told[3]) == round(abs(offset_ns) / MS, 3), f"captures tells of it:\n{page}")
        expect(0 <= spread_ns <= tolerance, f"estimates spread over {spread_ns} ns")
        expect(abs(abs(clock_way_ns) - way_ns) <= tolerance, f"the way is {clock_way_ns} ns")
    return wrong


def main():
    program, samples = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    wrong = []
    for name, way_ns in CAPTURES.items():
        for jitter_ns in (0, 50000):
            wrong += try_capture(program, samples, name, way_ns, jitter_ns)
    print("\n".join(wrong) if wrong else "both points agree")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
