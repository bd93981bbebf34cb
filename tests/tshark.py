#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The flows that firstflight finds against the TCP streams that tshark finds, file by file.

usage: tshark.py FIRSTFLIGHT CAPTURE|DIRECTORY...

Streams are compared by the addresses and ports of the innermost TCP header and by how often these
come. TCP headers that an ICMP message quotes or an sFlow sample holds are no connections; tshark
numbers them as streams, so those are left out. Where the two differ, a cause is looked for that can
be tested on the file itself, never believed because of its name:

  broken headers   the first packet of a stream that only tshark has is, alone in a file, dropped by
                   us for a header that contradicts itself or is cut; tshark shows what can be made
                   of it
  read on          bytes of the file are no packets; tshark stops there or makes packets of them, we
                   say where packets go on; of the part in front both find the same
  length 0         the first packet of each flow that only we have is in UDP, and it or its IP header
                   has length 0 (BIG TCP, RFC 2675, in a tunnel): there tshark 4.0 stops
  decrypted        packets of a stream that only tshark has came out of a VPN whose keys it found

Prints each difference and a table; exits 1 when a difference has none of these causes, 77 (skipped)
when there is no tshark or no capture.
"""
import collections
import concurrent.futures
import contextlib
import pathlib
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile

FIELDS = ["frame.number", "tcp.stream", "frame.protocols", "ip.src", "ip.dst", "ipv6.src",
          "ipv6.dst", "tcp.srcport", "tcp.dstport"]
QUOTING = {"icmp", "icmpv6", "sflow"}
DECRYPTING = {"wg", "esp"}
BROKEN = ("ip_too_short", "ip_header_invalid", "ip_length_beyond_frame", "ip_extension_invalid",
          "link_too_short", "fragment", "fragment_invalid", "tcp_too_short", "tcp_header_invalid",
          "time_invalid")
NO_CAPTURES = (".md", ".tsv", ".txt", ".keys", ".keylog")
JOBS = 2
SKIPPED = 77

Packet = collections.namedtuple("Packet", "frame stream ends around")
Ours = collections.namedtuple("Ours", "flows first_packets drops damage")


def last(values):
    """The innermost value; an IPv4-mapped address (RFC 4291 2.5.5.2) as the IPv4 one that it is."""
    value = values.split(",")[-1]
    return value.removeprefix("::ffff:") if "." in value else value


def packet_of(line):
    """One packet as tshark tells it; None where its TCP header is only quoted, or is cut."""
    fields = line.split("\t")
    if len(fields) != len(FIELDS):
        return None
    frame, stream, protocols, *addresses, source_port, target_port = fields
    around = protocols.split(":")
    if "tcp" not in around or not stream:  # half a TCP header begins no stream
        return None
    around = around[:len(around) - 1 - around[::-1].index("tcp")]
    versions = [name for name in around if name in ("ip", "ipv6")]
    if QUOTING & set(around) or not versions:
        return None
    source, target = addresses[:2] if versions[-1] == "ip" else addresses[2:]
    ends = ((last(source), last(source_port)), (last(target), last(target_port)))
    return Packet(int(frame), last(stream), tuple(sorted(ends)), set(around))


def run_tshark(path, *arguments):
    command = ["tshark", "-n", "-r", path, "-o", "tcp.desegment_tcp_streams:FALSE", *arguments]
    return subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)


def fields_of_tshark(path, wanted, *fields):
    result = run_tshark(path, "-Y", wanted, "-T", "fields", "-E", "occurrence=a",
                        *(word for field in fields for word in ("-e", field)))
    return result.stdout.splitlines()


def packets_of_tshark(path):
    return list(filter(None, map(packet_of, fields_of_tshark(path, "tcp", *FIELDS))))


def streams(packets):
    return collections.Counter({packet.stream: packet.ends for packet in packets}.values())


def ours_of(program, path):
    """Flows by their ends with the number of their first packets, drops by reason, damage."""
    ours = Ours(collections.Counter(), {}, collections.Counter(), None)
    with tempfile.TemporaryDirectory() as directory:
        database = pathlib.Path(directory) / "db"
        subprocess.run([program, "ingest", "-q", "-d", database, path], stderr=subprocess.DEVNULL,
                       check=False)
        if not database.exists():
            return ours
        with contextlib.closing(sqlite3.connect(database)) as db:
            rows = db.execute("SELECT client_ip, client_port, server_ip, server_port,"
                              " first_packet_no FROM flow WHERE NOT continues").fetchall()
            ours.drops.update(dict(db.execute("SELECT reason, sum(packets) FROM drop_count"
                                              " GROUP BY reason")))
            damage = db.execute("SELECT max(damage) FROM capture").fetchone()[0]
    for a, b, c, d, number in rows:
        ends = tuple(sorted(((a, str(b)), (c, str(d)))))
        ours.flows[ends] += 1
        ours.first_packets.setdefault(ends, []).append(number)
    return ours._replace(damage=damage)


# Causes, each tested on the file: a function that says whether it explains the difference.

def is_decrypted(_, __, packets, missing, extra, ___):
    return not extra and all(packet.around & DECRYPTING
                             for packet in packets if packet.ends in missing)


def alone(path, frame, directory):
    """A file with one packet of a capture: of classic pcap its very bytes, else by tshark."""
    data, at = path.read_bytes(), 24
    order = {0xa1b2: ">", 0xd4c3: "<", 0x4d3c: "<"}.get(int.from_bytes(data[:2], "big"))
    if order is None:
        run_tshark(path, "-Y", f"frame.number == {frame}", "-w", directory / "alone")
        return directory / "alone"
    for _ in range(frame - 1):
        at += 16 + struct.unpack(order + "I", data[at + 8:at + 12])[0]
    end = at + 16 + struct.unpack(order + "I", data[at + 8:at + 12])[0]
    (directory / "alone").write_bytes(data[:24] + data[at:end])
    return directory / "alone"


def is_dropped(program, path, frame):
    """Whether a packet, alone in a file, is dropped for its headers."""
    with tempfile.TemporaryDirectory() as directory:
        ours = ours_of(program, alone(path, frame, pathlib.Path(directory)))
    return not ours.flows and sum(ours.drops[reason] for reason in BROKEN) == 1


def has_broken_headers(program, path, packets, missing, extra, _):
    """As many streams as are missing between two ends begin with a packet that is dropped."""
    frames = collections.defaultdict(lambda: collections.defaultdict(list))
    for packet in packets:
        if packet.ends in missing:
            frames[packet.ends][packet.stream].append(packet.frame)
    return not extra and all(
        sum(is_dropped(program, path, stream[0])
            for stream in frames[ends].values()) >= count for ends, count in missing.items())


def is_read_on(program, path, _, __, ___, ours):
    """The part in front of the first bytes that are no packets gives the same."""
    place = re.match(r"packet \d+ at byte (\d+): .*; read on at byte", ours.damage or "")
    if not place:
        return False
    with tempfile.TemporaryDirectory() as directory:
        front = pathlib.Path(directory) / "front"
        front.write_bytes(path.read_bytes()[:int(place[1])])
        return streams(packets_of_tshark(front)) == ours_of(program, front).flows


def has_length_0(_, path, __, missing, extra, ours):
    lines = fields_of_tshark(path, "ip || ipv6", "frame.number", "ip.len", "ipv6.plen", "udp.length")
    lengths = {number: re.split("[\t,]", lengths) for number, lengths in
               (line.split("\t", 1) for line in lines)}
    return not missing and all("0" in lengths.get(str(number), ()) for ends in extra
                               for number in ours.first_packets[ends])


CAUSES = {"broken headers": has_broken_headers, "read on": is_read_on, "length 0": has_length_0,
          "decrypted": is_decrypted}


def compare(program, path):
    """Number of our flows, "agree" or the cause, and a line that tells a difference."""
    packets, ours = packets_of_tshark(path), ours_of(program, path)
    theirs = streams(packets)
    missing, extra = theirs - ours.flows, ours.flows - theirs
    if not missing and not extra:
        return ours.flows.total(), "agree", None
    cause = next((name for name, explains in CAUSES.items()
                  if explains(program, path, packets, missing, extra, ours)), "unexplained")
    return ours.flows.total(), cause, (f"{path}: {cause}: only tshark {list(missing)[:3]},"
                                       f" only we {list(extra)[:3]}")


def captures_in(paths):
    for path in map(pathlib.Path, paths):
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (file for file in files if file.is_file() and file.suffix not in NO_CAPTURES)


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    files = list(captures_in(sys.argv[2:]))
    if shutil.which("tshark") is None or not files:
        print("skipped: no tshark, or no captures")
        sys.exit(SKIPPED)
    counts, flows = collections.Counter(), 0
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for found, outcome, line in pool.map(lambda path: compare(program, path), files):
            flows += found
            counts[outcome] += 1
            if line:
                print(line, flush=True)
    print(f"\n{'files':<16}{len(files):>7}          {flows} flows")
    for name in ("agree", *CAUSES, "unexplained"):
        print(f"{name:<16}{counts[name]:>7}{100 * counts[name] / len(files):>7.1f} %")
    sys.exit(counts["unexplained"] > 0)


if __name__ == "__main__":
    main()
