#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a capture point does to packets changes no verdict and no time.

usage: invariance.py FIRSTFLIGHT DIRECTORY

Reads the pcap files below the directory (raw IP or Ethernet; TCP over IPv4 in whole packets, the rest
is left out), writes each anew in many ways that tell the same story, reads all of them in one run, and compares the rows of table flow
with those of the files as they were. Each way uses server addresses of its own, so that nothing
learned of one server helps another. Columns that a way may change are declared with it, in WAYS.
"""
import dataclasses
import pathlib
import random
import sqlite3
import struct
import subprocess
import sys
import tempfile

FIN, SYN, RST, PSH = 1, 2, 4, 8

# Names of a row, and where it came from: every way has its own.
ALWAYS = {"flow_id", "flow_uid", "capture_id", "server_ip", "community_id", "proxied_server_ip",
          "retried_by"}
NUMBERS = {"first_packet_no", "request_packet_no", "response_packet_no"}
AMOUNTS = {"client_packets", "server_packets"}
# Records sent again are no stalls; the last packet may be one that was sent again.
RESENT = {"flight_stalls", "end_at_ns", "client_retransmits", "server_retransmits", "client_retransmits_before_response",
          "server_retransmits_before_response", "loss_wait_ns"}
# The answer's first byte sent again: when the client had it is then told by its acknowledgment.
FELT = {"perceived_ns", "round_trips", "retried_perceived_ns"}


@dataclasses.dataclass
class Packet:
    """A TCP segment in an IPv4 packet; times in epoch ns."""
    at: int
    source: bytes
    target: bytes
    ttl: int
    id: int
    ports: bytes
    seq: int
    ack: int
    flags: int
    window: int
    options: bytes
    payload: bytes

    def but(self, **changes):
        return dataclasses.replace(self, **changes)


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def parse(at, frame):
    ip_len = (frame[0] & 15) * 4
    total, ident = struct.unpack(">HH", frame[2:6])
    tcp = frame[ip_len:total]
    seq, ack, offset, flags, window = struct.unpack(">IIBBH", tcp[4:16])
    tcp_len = (offset >> 4) * 4
    return Packet(at, frame[12:16], frame[16:20], frame[8], ident, tcp[:4], seq, ack, flags, window,
                  tcp[20:tcp_len], tcp[tcp_len:])


def tcp_of(p):
    head = p.ports + struct.pack(">IIBBHHH", p.seq % 2**32, p.ack % 2**32,
                                 (5 + len(p.options) // 4) << 4, p.flags, p.window, 0, 0)
    return head + p.options + p.payload


def ipv4(p):
    tcp = tcp_of(p)
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), p.id, 0x4000, p.ttl, 6, 0)
    head += p.source + p.target
    return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + tcp


def ipv6(p):
    tcp = tcp_of(p)
    prefix = bytes.fromhex("20010db8") + bytes(8)
    return (struct.pack(">IHBB", 6 << 28, len(tcp), 6, p.ttl) + prefix + p.source + prefix +
            p.target + tcp)


def read(path):
    data = path.read_bytes()
    nano = {b"\x4d\x3c\xb2\xa1": 1, b"\xd4\xc3\xb2\xa1": 1000}[data[:4]]
    link_type = struct.unpack("<I", data[20:24])[0]
    skip = {101: 0, 1: 14}[link_type]
    packets, at = [], 24
    while at < len(data):
        seconds, fraction, captured, wire = struct.unpack("<IIII", data[at:at + 16])
        assert captured == wire, "only whole packets are rewritten"
        frame = data[at + 16 + skip:at + 16 + captured]
        if frame[0] >> 4 == 4 and frame[9] == 6:
            packets.append(parse(seconds * 10**9 + fraction * nano, frame))
        at += 16 + captured
    return packets


# Files: frames of one link type in one format


def write(path, packets, link=(101, b""), ip=ipv4, order="<", cut=None):
    link_type, head = link
    out = [struct.pack(order + "IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, link_type)]
    for p in packets:
        frame = head + ip(p)
        captured = frame if cut is None else frame[:cut]
        out.append(struct.pack(order + "IIII", p.at // 10**9, p.at % 10**9, len(captured),
                               len(frame)) + captured)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(out))


MACS = bytes.fromhex("020000000001020000000002")
ETHERNET = (1, MACS + b"\x08\x00")
ETHERNET_6 = (1, MACS + b"\x86\xdd")
VLAN = (1, MACS + bytes.fromhex("8100000a0800"))
QINQ = (1, MACS + bytes.fromhex("88a8006481000ffe0800"))
COOKED = (113, bytes.fromhex("0000000100060200000000010000") + b"\x08\x00")


# Ways to tell the same story. Each takes packets in order and gives others.


def pieces(p, lengths):
    """The segment as several that carry its payload in parts; the last one keeps FIN and PSH."""
    out, at = [], 0
    for i, length in enumerate(lengths):
        last = i == len(lengths) - 1
        out.append(p.but(seq=p.seq + at, payload=p.payload[at:at + length], id=(p.id + i) % 2**16,
                         flags=p.flags if last else p.flags & ~(FIN | PSH)))
        at += length
    return out


def is_data(p):
    return p.payload and not p.flags & (SYN | RST)


def cut_at(position):
    """Every segment with payload cut in two behind so many bytes, counted from its end if negative."""
    def way(packets):
        out = []
        for p in packets:
            length = len(p.payload)
            first = position % length if is_data(p) else 0
            out += pieces(p, [first, length - first]) if first and abs(position) < length else [p]
        return out
    return way


def cut_in_share(share):
    def way(packets):
        out = []
        for p in packets:
            first = int(len(p.payload) * share) if is_data(p) else 0
            out += pieces(p, [first, len(p.payload) - first]) if first else [p]
        return out
    return way


def cut_often(length):
    def way(packets):
        out = []
        for p in packets:
            whole, rest = divmod(len(p.payload), length)
            parts = [length] * whole + ([rest] if rest else [])
            out += pieces(p, parts) if is_data(p) else [p]
        return out
    return way


def coalesced(packets):
    """As receive offload does: what one side sends at the same time is one segment."""
    out = []
    for p in packets:
        q = out[-1] if out else None
        if (q and is_data(p) and is_data(q) and p.ports == q.ports and p.source == q.source and
                p.at == q.at and p.ack == q.ack and p.seq == q.seq + len(q.payload)):
            out[-1] = q.but(payload=q.payload + p.payload, flags=q.flags | p.flags)
        else:
            out.append(p)
    return out


def in_order(packets):
    return sorted(packets, key=lambda p: p.at)


def captured_twice(packets):
    return in_order([q for p in packets for q in (p, p.but(at=p.at + 300_000))])


def captured_twice_behind_a_router(packets):
    return in_order([q for p in packets for q in (p, p.but(at=p.at + 300_000, ttl=p.ttl - 1))])


def written_out_of_order(packets):
    """Neighbours within a millisecond change places and keep their times, as several queues do."""
    out, i = list(packets), 0
    while i + 1 < len(out):
        near = out[i + 1].at - out[i].at < 1_000_000
        if near and not (out[i].flags | out[i + 1].flags) & (SYN | RST | FIN):
            out[i], out[i + 1] = out[i + 1], out[i]
            i += 1
        i += 1
    return out


def shuffled(packets):
    """Segments of one side and one time in any order."""
    generator = random.Random(1)
    out, group = [], []
    for p in packets:
        if group and (p.at != group[0].at or p.source != group[0].source or p.flags & (SYN | FIN | RST)):
            generator.shuffle(group)
            out += group
            group = []
        group.append(p)
    generator.shuffle(group)
    return out + group


def sent_again(packets):
    """Every segment with payload once more, before anybody can have missed it."""
    again = [p.but(at=p.at + 500_000, id=(p.id + 77) % 2**16) for p in packets if is_data(p)]
    return in_order(packets + again)


def acknowledged_again(packets):
    """Keep-alive probes and bare acknowledgments between the packets."""
    out = []
    for p in packets:
        out.append(p)
        if is_data(p) and not p.flags & FIN:
            out.append(p.but(at=p.at, seq=p.seq + len(p.payload), payload=b"", id=(p.id + 99) % 2**16))
    return out


def sequence_numbers_moved(packets):
    """So that both sides' wrap a few bytes into their streams."""
    first, out = {}, []
    for p in packets:
        for ends in ((p.source, p.ports), (p.target, p.ports[2:] + p.ports[:2])):
            number = p.seq if ends == (p.source, p.ports) else p.ack - 1
            if p.flags & SYN or ends not in first:
                first.setdefault(ends, number)
    for p in packets:
        back = (p.target, p.ports[2:] + p.ports[:2])
        ack = p.ack - first[back] + 2**32 - 9 if p.flags & 16 else 0
        out.append(p.but(seq=p.seq - first[(p.source, p.ports)] + 2**32 - 9, ack=ack))
    return out


def later(packets):
    return [p.but(at=p.at + 86_400 * 10**9) for p in packets]


def as_it_was(packets):
    return packets


@dataclasses.dataclass
class Way:
    name: str
    change: callable
    declared: set = dataclasses.field(default_factory=set)
    file: dict = dataclasses.field(default_factory=dict)
    files: int = 1


CUT = AMOUNTS | NUMBERS
# Where segments begin is a sign of what was written at once: without it verdicts are less sure.
BASIS = {"handshake_basis", "early_data_basis"}
# Records of one time and side are listed by packet.
LISTED = {"request_record_no", "response_record_no"}
WAYS = [
    Way("as it was", as_it_was),
    *(Way(f"cut behind byte {n}", cut_at(n), CUT) for n in [*range(1, 14), 37, 43, 44, 45, 76, 77]),
    *(Way(f"cut before byte -{n}", cut_at(-n), CUT) for n in (1, 2, 3, 5, 17, 21, 53)),
    *(Way(f"cut at {n}/16", cut_in_share(n / 16), CUT) for n in range(1, 16)),
    Way("cut into bytes", cut_often(1), CUT | BASIS),
    Way("cut every 7 bytes", cut_often(7), CUT),
    Way("cut every 100 bytes and shuffled", lambda p: shuffled(cut_often(100)(p)), CUT | LISTED),
    Way("coalesced", coalesced, CUT),
    Way("captured twice", captured_twice, NUMBERS | {"duplicates"}),
    Way("captured twice, behind a router", captured_twice_behind_a_router, NUMBERS | {"duplicates"}),
    Way("written out of order", written_out_of_order, NUMBERS),
    Way("sent again", sent_again, AMOUNTS | NUMBERS | RESENT | FELT),
    Way("acknowledged again", acknowledged_again, AMOUNTS | NUMBERS),
    Way("sequence numbers wrap", sequence_numbers_moved),
    Way("a day later", later, {"start_epoch_ns"}),
    Way("Ethernet", as_it_was, file={"link": ETHERNET}),
    Way("VLAN tag", as_it_was, {"tunnel"}, file={"link": VLAN}),
    Way("two VLAN tags", as_it_was, {"tunnel"}, file={"link": QINQ}),
    Way("Linux cooked", as_it_was, file={"link": COOKED}),
    Way("big-endian file", as_it_was, file={"order": ">"}),
    Way("IPv6", as_it_was, {"ip_version", "client_ip", "client_prefix"},
        file={"link": ETHERNET_6, "ip": ipv6}),
    Way("two files", as_it_was, NUMBERS, files=2),
    Way("nine files", as_it_was, NUMBERS, files=9),
]


def moved(packets, number):
    """The same between servers of the way's own: the side that listens is the one with the low port."""
    def address(old, port):
        return old[:2] + bytes([number]) + old[3:] if port < 32768 else old
    out = []
    for p in packets:
        source, target = struct.unpack(">HH", p.ports)
        out.append(p.but(source=address(p.source, source), target=address(p.target, target)))
    return out


def write_way(directory, number, originals):
    """Writes every capture in this way; gives the paths."""
    way, paths = WAYS[number], []
    for name, packets in originals.items():
        packets = moved(way.change(packets), number)
        each = -(-len(packets) // way.files)
        for i in range(0, len(packets), each):
            path = directory / str(number) / name / f"part{i // each}.pcap"
            write(path, packets[i:i + each], **way.file)
            paths.append(path)
    return paths


def rows_of(database):
    """Rows by way and capture, in the order of their start and client port."""
    connection = sqlite3.connect(database)
    connection.row_factory = sqlite3.Row
    rows = {}
    query = ("SELECT capture.path AS path, flow.* FROM flow JOIN capture USING (capture_id) "
             "ORDER BY start_epoch_ns, client_port")
    for row in connection.execute(query):
        way, name = pathlib.Path(row["path"]).parts[-3:-1]
        rows.setdefault((int(way), name), []).append(row)
    connection.close()
    return rows


def differences(was, now, declared):
    if len(was) != len(now):
        return [f"{len(now)} rows, not {len(was)}"]
    found = []
    for a, b in zip(was, now):
        for column in a.keys():
            if column not in ALWAYS | declared | {"path"} and a[column] != b[column]:
                found.append(f"{column} {a[column]!r} became {b[column]!r}")
        if (a["retried_by"] is None) != (b["retried_by"] is None):
            found.append("another connection is taken for its retry")
    return found


def main():
    program, directory = sys.argv[1:]
    originals = {path.stem: read(path) for path in sorted(pathlib.Path(directory).rglob("*.pcap"))}
    originals = {name: packets for name, packets in originals.items() if packets}
    failed = 0
    with tempfile.TemporaryDirectory() as temporary:
        temporary = pathlib.Path(temporary)
        paths = [path for number in range(len(WAYS))
                 for path in write_way(temporary, number, originals)]
        random.Random(2).shuffle(paths)
        listed, database = temporary / "list", temporary / "rows.db"
        listed.write_text("".join(f"{path}\n" for path in paths), encoding="utf-8")
        subprocess.run([program, "ingest", "-q", "-d", database, "--files-from", listed], check=True)
        rows = rows_of(database)
    for number, way in enumerate(WAYS):
        for name in originals:
            found = differences(rows.get((0, name), []), rows.get((number, name), []), way.declared)
            failed += bool(found)
            for difference in found[:6]:
                print(f"{way.name}: {name}: {difference}")
    print(f"{len(WAYS)} ways, {len(originals)} captures, {failed} differ")
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
