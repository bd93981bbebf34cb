#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A directory that captures are written to while it is ingested again and again.

usage: growing.py FIRSTFLIGHT CAPTURE.pcap...

The packets of the captures are put into one, in order of time, and come to the database in the ways
of production: a file that grows between runs and is cut in the middle of a packet, a ring that
overwrites its files, a file that was forgotten, two files with the same packets, a point that is
read anew. The flows must be those of all packets in one file; and what is forgotten stays away.
Which addresses are ours is learned over all runs of a point.
"""
import pathlib
import shutil
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile

# Numbers that files give.
OF_FILES = {"flow_id", "capture_id", "first_packet_no", "request_packet_no", "response_packet_no"}
DAMAGED = 3


def packets_of(path):
    """Header and packets, each with its time, of a classic little-endian pcap file."""
    data, at, packets = path.read_bytes(), 24, []
    unit = {0xa1b23c4d: 1, 0xa1b2c3d4: 1000}[struct.unpack_from("<I", data)[0]]
    while at < len(data):
        second, fraction, length = struct.unpack_from("<III", data, at)
        packets.append((second * 10**9 + fraction * unit, data[at:at + 16 + length]))
        at += 16 + length
    return data[:24], packets


class Scene:
    """A directory, a database, and what should be in it."""

    def __init__(self, program, work, header, packets):
        self.program, self.work, self.header = program, work, header
        self.packets = [packet for _, packet in packets]
        self.times = [time for time, _ in packets]
        self.directory = work / "captures"
        self.directory.mkdir()
        self.problems = []
        whole = self.write("w.pcap", self.packets)
        self.ingest("whole.db", whole)
        self.wanted = self.rows("whole.db")
        whole.unlink()

    def write(self, name, packets):
        path = self.directory / name
        path.write_bytes(self.header + b"".join(packets))
        return path

    def run(self, command, database, *arguments, status=0):
        result = subprocess.run([self.program, command, "-d", self.work / database, *arguments],
                                stderr=subprocess.PIPE, encoding="utf-8", check=False)
        self.expect(result.returncode == status,
                    f"{command}: exit status {result.returncode}, wanted {status}: {result.stderr}")
        return result.stderr

    def ingest(self, database, *arguments, status=0):
        return self.run("ingest", database, *arguments, status=status)

    def query(self, database, sql):
        connection = sqlite3.connect(self.work / database)
        rows = connection.execute(sql).fetchall()
        connection.close()
        return rows

    def rows(self, database, left_out=frozenset()):
        connection = sqlite3.connect(self.work / database)
        cursor = connection.execute("SELECT * FROM flow ORDER BY flow_uid")
        names = [column[0] for column in cursor.description]
        rows = [{name: value for name, value in zip(names, row)
                 if name not in OF_FILES and name not in left_out} for row in cursor]
        connection.close()
        return rows

    def expect(self, is_so, problem):
        if not is_so:
            self.problems.append(problem)

    def expect_all(self, database, left_out=frozenset()):
        found = self.rows(database, left_out)
        wanted = [{name: value for name, value in row.items() if name not in left_out}
                  for row in self.wanted]
        self.expect(len(found) == len(wanted), f"{len(found)} flows, wanted {len(wanted)}")
        for row, other in zip(wanted, found):
            different = [(name, row[name], other[name]) for name in row if row[name] != other[name]]
            self.expect(not different, f"flow {row['flow_uid']}: {different[:3]}")


def a_growing_file(scene):
    """Cut at any byte at each run; at the end one capture, whole."""
    data = scene.header + b"".join(scene.packets)
    path = scene.directory / "w.pcap"
    steps = 6
    for step in range(1, steps + 1):
        end = len(data) * step // steps
        path.write_bytes(data[:end])
        with path.open("ab"):  # as tcpdump has it open, where the system tells that
            scene.ingest("grown.db", scene.directory)
    scene.expect_all("grown.db")
    captures = scene.query("grown.db", "SELECT packets, damage, file_size FROM capture")
    scene.expect(captures == [(len(scene.packets), None, len(data))], f"captures: {captures}")
    drops = "SELECT reason, sum(packets) FROM drop_count GROUP BY 1"
    scene.expect(scene.query("grown.db", drops) == scene.query("whole.db", drops), "drop counts")


def a_cut_file_is_damaged(scene):
    """Nobody writes to it: it is said to be cut, and what comes later is read all the same."""
    data = scene.header + b"".join(scene.packets)
    path = scene.directory / "w.pcap"
    path.write_bytes(data[:len(data) // 2 + 1])
    scene.ingest("cut.db", path, status=DAMAGED)
    path.write_bytes(data)
    scene.ingest("cut.db", path)
    scene.expect_all("cut.db")


def a_ring(scene):
    """Files that are overwritten, the newest one growing, read in the order of the ring's names."""
    parts, files, next_part = 9, 3, 0
    bounds = [len(scene.packets) * k // parts for k in range(parts + 1)]
    for part in range(parts):
        packets = scene.packets[bounds[part]:bounds[part + 1]]
        name = f"ring{part % files}.pcap"
        scene.write(name, packets[:len(packets) // 2])
        scene.ingest("ring.db", scene.directory)
        scene.write(name, packets)
        if part % 2 == 0:
            scene.ingest("ring.db", scene.directory)
    scene.ingest("ring.db", scene.directory)
    found = scene.rows("ring.db", {"flow_uid"})
    key = lambda row: (row["start_epoch_ns"], row["client_port"])
    wanted = [{k: v for k, v in row.items() if k != "flow_uid"} for row in scene.wanted]
    scene.expect(sorted(found, key=key) == sorted(wanted, key=key), "ring: other flows")


def an_older_file(scene):
    """Refused with the reason; read with the others by --replace, which keeps flow_ids."""
    third = len(scene.packets) // 3
    first = scene.write("w1.pcap", scene.packets[:third])
    second = scene.write("w2.pcap", scene.packets[third:2 * third])
    third_file = scene.write("w3.pcap", scene.packets[2 * third:])
    scene.ingest("older.db", first, third_file)
    before = scene.query("older.db", "SELECT flow_uid, flow_id, ended FROM flow ORDER BY 1")
    said = scene.ingest("older.db", second, status=DAMAGED)
    scene.expect("--replace" in said, f"no way out is said: {said}")
    scene.expect(scene.query("older.db", "SELECT flow_uid, flow_id, ended FROM flow ORDER BY 1")
                 == before, "a refused file changed flows")
    scene.ingest("older.db", "--replace", first, second, third_file)
    scene.expect_all("older.db")
    ids = dict(scene.query("older.db", "SELECT flow_uid, flow_id FROM flow"))
    kept = [uid for uid, flow_id, _ in before if ids.get(uid) == flow_id]
    scene.expect(len(kept) == len([uid for uid, _, _ in before if uid in ids]), "flow_ids changed")
    orphans = scene.query("older.db", "SELECT count(*) FROM flow_facts WHERE flow_id NOT IN "
                                      "(SELECT flow_id FROM flow)")
    scene.expect(orphans == [(0,)], f"facts without flows: {orphans}")
    scene.ingest("older.db", "--replace", first, second, third_file)
    scene.expect_all("older.db")
    profiles = "SELECT * FROM server_profile"
    scene.expect(scene.query("older.db", profiles) == scene.query("whole.db", profiles),
                 "other profiles of servers")


def other_labels(scene):
    """A place whose labels were wrong is read again with the right ones: these alone are left."""
    capture = scene.write("relabelled.pcap", scene.packets)
    scene.ingest("labels.db", "--site", "wrong", capture)
    before = scene.query("labels.db", "SELECT count(*) FROM flow")
    scene.ingest("labels.db", "--replace", "--site", "right", capture)
    scene.expect(scene.query("labels.db", "SELECT site, count(*) FROM flow GROUP BY site")
                 == [("right", before[0][0])], "flows of the old labels")
    scene.expect(scene.query("labels.db", "SELECT site FROM capture") == [("right",)],
                 "captures of the old labels")


def overlapping_files(scene):
    """The same packets in two files of a point are copies."""
    middle = len(scene.packets) // 2
    overlap = max(1, len(scene.packets) // 8)
    first = scene.write("w1.pcap", scene.packets[:middle + overlap])
    second = scene.write("w2.pcap", scene.packets[middle - overlap:])
    scene.ingest("overlap.db", first, second)
    scene.expect_all("overlap.db", {"duplicates"})
    copies = scene.query("overlap.db", "SELECT sum(duplicates) FROM flow")[0][0]
    usual = sum(row["duplicates"] for row in scene.wanted)
    scene.expect(copies > usual, f"{copies} copies, {usual} in one file")


def what_is_forgotten(scene):
    """Old flows go, with all that hangs from them, and stay away."""
    path = scene.write("w.pcap", scene.packets)
    scene.ingest("forget.db", "--site", "here", path)
    border = scene.times[len(scene.times) // 2] // 10**9
    flows = "SELECT count(*) FROM flow"
    (all_flows,), = scene.query("forget.db", flows)
    (old,), = scene.query("forget.db", f"{flows} WHERE start_epoch_ns + end_at_ns < {border}000000000")
    scene.expect(0 < old < all_flows, f"{old} of {all_flows} flows are old")
    said = scene.run("forget", "forget.db", "--before", str(border))
    scene.expect(said.startswith(f"{old} flows"), said)
    scene.expect(scene.query("forget.db", flows) == [(all_flows - old,)], "flows left")
    scene.expect(scene.query("forget.db", "SELECT (SELECT count(*) FROM flow_facts WHERE flow_id "
                             "NOT IN (SELECT flow_id FROM flow)), (SELECT count(*) FROM open_flow "
                             "WHERE flow_id NOT IN (SELECT flow_id FROM flow))") == [(0, 0)],
                 "something hangs from flows that are gone")
    scene.ingest("forget.db", "--site", "here", path)
    scene.expect(scene.query("forget.db", flows) == [(all_flows - old,)], "flows came back")
    scene.run("forget", "forget.db", "--site", "elsewhere")
    scene.expect(scene.query("forget.db", flows) == [(all_flows - old,)], "of another site")
    scene.run("forget", "forget.db", "--site", "here")
    scene.expect(scene.query("forget.db", flows) == [(0,)], "flows of the site")
    scene.expect(scene.query("forget.db", "SELECT count(*) FROM open_point WHERE state <> x''")
                 == [(0,)], "state of the site")
    scene.ingest("forget.db", "--site", "here", path)
    scene.expect(scene.query("forget.db", flows) == [(0,)], "flows came back")
    scene.run("forget", "forget.db", status=1)
    scene.run("forget", "forget.db", "--before", "soon", status=1)


def connection(hour, client, server):
    """A connection of raw IPv4 packets that a client opens, is answered in, and closes."""
    def packet(milliseconds, from_client, seq, ack, flags, payload=b""):
        ends = [socket.inet_aton(client), socket.inet_aton(server)]
        ports = [40000, 443]
        if not from_client:
            ends.reverse()
            ports.reverse()
        tcp = struct.pack(">HHIIBBHHH", *ports, seq, ack, 0x50, flags, 65535, 0, 0) + payload
        ip = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(tcp), 1, 0x4000, 60, 6, 0, *ends) + tcp
        return struct.pack("<IIII", 1700000000 + 3600 * hour, milliseconds * 1000, len(ip),
                           len(ip)) + ip
    syn, ack, push, fin = 2, 16, 24, 17
    return [packet(0, True, 99, 0, syn), packet(1, False, 499, 100, syn | ack),
            packet(2, True, 100, 500, push, b"question"),
            packet(3, False, 500, 108, push, b"answer"),
            packet(4, False, 506, 108, fin), packet(5, True, 108, 507, fin),
            packet(6, False, 507, 109, ack)]


def who_serves_many(scene):
    """No hour has eight clients of the edge: their sum tells that it is ours, until it is silent."""
    edge, origin, name = "192.0.2.1", "198.51.100.7", "legs.db"
    scene.header = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 101)

    def hour(number, clients):
        packets = connection(number, edge, origin)
        for client in clients:
            packets += connection(number, f"203.0.113.{client}", edge)
        scene.write(f"w{number}.pcap", packets)
        scene.ingest(name, scene.directory)
        start = (1700000000 + 3600 * number) * 10**9
        return scene.query(name, "SELECT DISTINCT server_ip, leg, leg_basis FROM flow WHERE "
                                 f"start_epoch_ns BETWEEN {start} AND {start + 10**9} ORDER BY 1")

    unknown = [(edge, "unknown", None), (origin, "unknown", None)]
    known = [(edge, "inbound", "guess"), (origin, "outbound", "guess")]
    week = 7 * 24
    for number, clients, wanted in ((0, [1, 2, 3], unknown), (1, [2, 3, 4], unknown),
                                    (2, [5, 6, 7], unknown), (3, [8], known), (4, [1], known),
                                    (4 + week, [1], known), (5 + 2 * week, [], known[1:]),
                                    (6 + 2 * week, [1], unknown)):
        found = hour(number, clients)
        scene.expect(found == wanted, f"hour {number}: {found}, wanted {wanted}")


SCENES = [a_growing_file, a_cut_file_is_damaged, a_ring, an_older_file, other_labels,
          overlapping_files, what_is_forgotten, who_serves_many]


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    header, packets = None, []
    for path in sys.argv[2:]:
        header, more = packets_of(pathlib.Path(path))
        packets += more
    packets.sort(key=lambda packet: packet[0])
    failed = 0
    for play in SCENES:
        with tempfile.TemporaryDirectory() as work:
            scene = Scene(program, pathlib.Path(work), header, packets)
            play(scene)
            shutil.rmtree(scene.directory)
        for problem in scene.problems[:5]:
            print(f"{play.__name__}: {problem}")
        failed += bool(scene.problems)
    print(f"{len(SCENES)} scenes of {len(packets)} packets, {failed} with problems")
    return 1 if failed or not packets else 0


if __name__ == "__main__":
    sys.exit(main())
