#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""However captures lie in files, their rows are the same.

usage: files.py FIRSTFLIGHT DIRECTORY

Writes the smaller pcap files below the directory anew: late frames, files of one point that overlap,
rings in any order of names, pcapng of two interfaces, packets on both of them, VXLAN, bytes between
records. Compared are the rows of table flow, but for the columns that a way declares. Then clocks
that were set back, thousands of files, and manifests.
"""
import contextlib
import pathlib
import random
import resource
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time

SAMPLE_SIZE_MAX = 100_000
NUMBERS = {"flow_id", "capture_id", "first_packet_no", "request_packet_no", "response_packet_no",
           "retried_by"}
LATE_NS = 90_000_000  # less than the 100 ms up to which a frame is late, not of another clock


class Capture:
    """Frames (time in ns, captured bytes, wire length) of one link type."""

    def __init__(self, path):
        data = path.read_bytes()
        self.magic, self.link_type = struct.unpack("<I16xI", data[:24])
        unit = {0xa1b2c3d4: 1000, 0xa1b23c4d: 1}[self.magic]
        self.frames, at = [], 24
        while at < len(data):
            second, fraction, captured, wire = struct.unpack("<4I", data[at:at + 16])
            frame = data[at + 16:at + 16 + captured]
            self.frames.append((second * 10**9 + fraction * unit, frame, wire))
            at += 16 + captured


def header(link_type):
    return struct.pack("<IHHiIII", 0xa1b23c4d, 2, 4, 0, 0, 262144, link_type)


def record(at, frame, wire):
    return struct.pack("<4I", at // 10**9, at % 10**9, len(frame), wire) + frame


def pcap(frames, link_type):
    return header(link_type) + b"".join(record(*frame) for frame in frames)


def block(kind, body):
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def section():
    return block(0x0a0d0d0a, struct.pack("<IHHq", 0x1a2b3c4d, 1, 0, -1))


def interface(link_type, name):
    options = struct.pack("<HHB3x", 9, 1, 9) + struct.pack("<HH", 2, len(name)) + name
    options += bytes(-len(name) % 4) + bytes(4)
    return block(1, struct.pack("<HHI", link_type, 0, 0) + options)


def packet(number, at, frame, wire):
    return block(6, struct.pack("<5I", number, at >> 32, at & 0xffffffff, len(frame), wire) + frame)


# Ways to write the frames of a capture: each gives contents by file name


def plain(capture, _):
    return {"edge.pcap": pcap(capture.frames, capture.link_type)}


def late(capture, chance):
    """Each frame is written up to so much later, and keeps its time."""
    order = sorted(capture.frames, key=lambda frame: frame[0] + chance.randrange(LATE_NS))
    return {"edge.pcap": pcap(order, capture.link_type)}


def overlapping(capture, chance):
    files = [[], [], []]
    for frame in capture.frames:
        chance.choice(files).append(frame)
    return {f"edge{i}.pcap": pcap(frames, capture.link_type)
            for i, frames in enumerate(files) if frames}


def ring(capture, chance):
    each = len(capture.frames) // 4 + 1
    parts = [capture.frames[i:i + each] for i in range(0, len(capture.frames), each)]
    names = [f"edge.pcap{i}" for i in range(len(parts))]
    chance.shuffle(names)
    return {name: pcap(part, capture.link_type) for name, part in zip(names, parts)}


def two_interfaces(capture, chance):
    out = [section(), interface(capture.link_type, b"eth0"), interface(capture.link_type, b"eth1")]
    out += [packet(chance.randrange(2), *frame) for frame in capture.frames]
    return {"edge.pcapng": b"".join(out)}


def two_interfaces_late(capture, chance):
    capture_late = [section(), interface(capture.link_type, b"a"), interface(capture.link_type, b"b")]
    order = sorted(capture.frames, key=lambda frame: frame[0] + chance.randrange(LATE_NS))
    capture_late += [packet(chance.randrange(2), *frame) for frame in order]
    return {"edge.pcapng": b"".join(capture_late)}


def two_taps(capture, chance):
    """Each packet on two interfaces, as "-i any" or two taps see it: Ethernet, and cooked behind."""
    inner = 14 if capture.link_type == 1 else 0
    out = [section(), interface(capture.link_type, b"eth0"), interface(113, b"any")]
    for at, frame, wire in capture.frames:
        kind = frame[12:14] if inner else b"\x86\xdd" if frame[0] >> 4 == 6 else b"\x08\x00"
        cooked = bytes(14) + kind + frame[inner:]
        out.append(packet(0, at, frame, wire))
        out.append(packet(1, at + chance.randrange(5000), cooked, wire + 16 - inner))
    return {"edge.pcapng": b"".join(out)}


def garbage(chance):
    length = chance.choice((16, 100, 4096, 70_000))
    return chance.choice((bytes(length), b"\xff" * length, b"GET / HTTP/1.1\r\n" * (length // 16)))


def with_garbage(capture, chance):
    out = [header(capture.link_type)]
    for i, frame in enumerate(capture.frames):
        out += [garbage(chance)] if i % 7 == 3 else []
        out.append(record(*frame))
    return {"edge.pcap": b"".join(out)}


def pcapng_with_garbage(capture, chance):
    out = [section(), interface(capture.link_type, b"eth0")]
    for i, frame in enumerate(capture.frames):
        out += [garbage(chance)] if i % 7 == 3 else []
        out.append(packet(0, *frame))
    return {"edge.pcapng": b"".join(out)}


def in_vxlan(capture, _):
    """Ethernet in VXLAN in UDP in IPv4, sums not calculated (RFC 7348 5)."""
    frames = []
    for at, frame, wire in capture.frames:
        if capture.link_type != 1:
            kind = b"\x86\xdd" if frame[0] >> 4 == 6 else b"\x08\x00"
            frame, wire = bytes(12) + kind + frame, wire + 14
        udp = struct.pack(">4H", 49152, 4789, 16 + len(frame), 0) + bytes.fromhex("0800000000002a00")
        ip = struct.pack(">BBHHHBBH", 0x45, 0, 36 + len(frame), 0, 0, 64, 17, 0)
        outer = bytes(12) + b"\x08\x00" + ip + bytes(8) + udp
        frames.append((at, outer + frame, wire + len(outer)))
    return {"edge.pcap": pcap(frames, 1)}


WAYS = [
    (late, NUMBERS, 0),
    (overlapping, NUMBERS, 0),
    (ring, NUMBERS, 0),
    (two_interfaces, NUMBERS | {"interface"}, 0),
    (two_interfaces_late, NUMBERS | {"interface"}, 0),
    (two_taps, NUMBERS | {"interface", "duplicates"}, 0),
    (with_garbage, NUMBERS, 3),
    (pcapng_with_garbage, NUMBERS | {"interface"}, 3),
    (in_vxlan, NUMBERS | {"tunnel"}, 0),
]


def rows(database, left_out):
    connection = sqlite3.connect(database)
    cursor = connection.execute("SELECT * FROM flow ORDER BY flow_uid")
    names = [column[0] for column in cursor.description]
    kept = [i for i, name in enumerate(names) if name not in left_out]
    result = [tuple((names[i], row[i]) for i in kept) for row in cursor]
    connection.close()
    return result


class Trial:
    def __init__(self, program, directory):
        self.program, self.directory, self.failed = program, directory, 0
        self.captures, self.database = directory / "captures", directory / "rows.db"

    def expect(self, is_true, what):
        if not is_true:
            self.failed += 1
            print(f"not as it should be: {what}")

    def ingest(self, *arguments, **options):
        self.database.unlink(missing_ok=True)
        return subprocess.run([self.program, "ingest", "-d", self.database, *arguments],
                              capture_output=True, text=True, check=False, **options)

    def query(self, sql):
        connection = sqlite3.connect(self.database)
        result = connection.execute(sql).fetchall()
        connection.close()
        return result

    def put(self, files):
        """Files by their path below the directory of captures, and nothing else there."""
        shutil.rmtree(self.captures, ignore_errors=True)
        for name, content in files.items():
            path = self.captures / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    def put_way(self, captures, way):
        chance = random.Random(way.__name__)
        self.put({f"{chr(97 + i % 26)}{'x' * (i // 26)}/{name}": content
                  for i, capture in enumerate(captures)
                  for name, content in way(capture, chance).items()})


def try_ways(trial, captures):
    trial.put_way(captures, plain)
    trial.expect(trial.ingest(trial.captures).returncode == 0, "exit status of plain files")
    expected = {}
    twice_before = trial.query("SELECT sum(duplicates) FROM flow")[0][0]
    for way, declared, status in WAYS:
        expected[way] = rows(trial.database, declared)
        trial.expect(len(expected[way]) > 50, f"{len(expected[way])} rows only")
    for way, declared, status in WAYS:
        trial.put_way(captures, way)
        result = trial.ingest(trial.captures)
        trial.expect(result.returncode == status,
                     f"{way.__name__}: exit status {result.returncode}: {result.stderr[:300]}")
        found = rows(trial.database, declared)
        differences = [(a, b) for a, b in zip(expected[way], found) if a != b]
        trial.expect(len(found) == len(expected[way]) and not differences,
                     f"{way.__name__}: {len(found)} rows, {len(differences)} differ")
        for a, b in differences[:2]:
            print(sorted(set(a) ^ set(b)))
        if way is late:
            trial.expect(trial.query("SELECT sum(late_packets) > 100 FROM capture") == [(1,)],
                         "count of late packets")
        if way is two_interfaces:
            trial.expect(trial.query("SELECT DISTINCT interfaces FROM capture") == [("eth0,eth1",)],
                         "names of interfaces")
        if way is two_taps:
            found = trial.query("SELECT sum(duplicates), sum(client_packets + server_packets)"
                                " FROM flow")[0]
            trial.expect(found[0] == found[1] + 2 * twice_before,
                         f"{found[0]} packets captured twice, {found[1]} once")
        if status == 3:
            trial.expect(trial.query("SELECT count(*) FROM capture WHERE damage LIKE "
                                     "'packet 4 at byte %; read on at byte %'")[0][0] > 20, "damage")


def on_interfaces(capture, names, chance):
    """Blocks of a pcapng file whose packets come in by any of the interfaces, and these names."""
    chosen = [chance.randrange(len(names)) for _ in capture.frames]
    head = section() + b"".join(interface(capture.link_type, name) for name in names)
    blocks = [packet(number, *frame) for number, frame in zip(chosen, capture.frames)]
    return head, blocks, [names[number].decode() or None for number in chosen]


def try_interfaces(trial, captures):
    """A flow has the interface of its first packet, also when another run completes it, in whose
    file interfaces are numbered otherwise."""
    chance, files, later, wanted = random.Random("interfaces"), {}, {}, {}
    for i, capture in enumerate(captures):
        name = f"{chr(97 + i % 26)}{'x' * (i // 26)}"
        head, blocks, of_packet = on_interfaces(capture, [b"wan", b"", b"lan"], chance)
        half = len(blocks) // 2
        moved = section() + b"".join(interface(capture.link_type, other)
                                     for other in (b"lan", b"tap", b"wan"))
        files[f"{name}/edge1.pcapng"] = head + b"".join(blocks[:half])
        later[f"{name}/edge2.pcapng"] = moved + b"".join(blocks[half:])
        wanted[name] = [of_packet[:half],
                        [{"wan": "lan", None: "tap", "lan": "wan"}[n] for n in of_packet[half:]]]
    trial.put(files | later)
    trial.expect(trial.ingest(trial.captures).returncode == 0, "interfaces in one run")
    found = trial.query("SELECT path, first_packet_no, interface FROM flow JOIN capture USING"
                        " (capture_id)")
    wrong = [row for row in found if row[2] !=
             wanted[row[0].split("/")[-2]][row[0].endswith("edge2.pcapng")][row[1] - 1]]
    trial.expect(len(found) > 50 and not wrong, f"interfaces of first packets: {wrong[:3]}")
    at_once = rows(trial.database, NUMBERS)
    trial.put(files)
    trial.ingest(trial.captures)
    trial.put(later)
    result = subprocess.run([trial.program, "ingest", "-q", "-d", trial.database, trial.captures],
                            check=False)
    trial.expect(result.returncode == 0 and rows(trial.database, NUMBERS) == at_once,
                 "interfaces over two runs")
    report = subprocess.run([trial.program, "report", "-d", trial.database, "coverage", "--by",
                             "interface"], capture_output=True, text=True, check=False)
    trial.expect(report.returncode == 0 and "wan" in report.stdout, "report --by interface")


def try_many_interfaces(trial, captures):
    """Names of 255 interfaces are kept; flows of others are counted."""
    link_type, (at, frame, wire) = captures[0].link_type, captures[0].frames[0]
    ip = 14 if link_type == 1 else 0
    out = [section()] + [interface(link_type, b"i%d" % i) for i in range(300)]
    for i in range(300):
        other = frame[:ip + 12] + struct.pack(">BBH", 10, 0, i) + frame[ip + 16:]
        out.append(packet(i, at + i * 10**9, other, wire))
    trial.put({"edge.pcapng": b"".join(out)})
    result = trial.ingest(trial.captures)
    trial.expect("more than 255 interfaces; 45 flows of others" in result.stderr, result.stderr)
    trial.expect(trial.query("SELECT count(*), count(DISTINCT interface), count(interface)"
                             " FROM flow") == [(300, 255, 255)], "interfaces up to the cap")


def in_microseconds(capture):
    head = struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, capture.link_type)
    return head + b"".join(struct.pack("<4I", at // 10**9, at % 10**9 // 1000, len(frame), wire) +
                           frame for at, frame, wire in capture.frames)


def try_microseconds(trial, captures):
    """Files in microseconds: the rows of files in nanoseconds whose times end in 000, and those of
    the captures as they are but for less than two microseconds of each time and what names flows."""
    def read(content):
        trial.put_way(captures, lambda capture, chance: {"edge.pcap": content(capture)})
        trial.expect(trial.ingest(trial.captures).returncode == 0, "files in microseconds")
        order = ("SELECT * FROM flow JOIN capture USING (capture_id)"
                 " ORDER BY path, start_epoch_ns / 1000, client_port")
        with contextlib.closing(sqlite3.connect(trial.database)) as connection:
            cursor = connection.execute(order)
            names = [column[0] for column in cursor.description]
            return names[:names.index("path")], [dict(zip(names, row)) for row in cursor]

    def rounded(capture):
        return pcap([(at // 1000 * 1000, frame, wire) for at, frame, wire in capture.frames],
                    capture.link_type)

    columns, fine = read(lambda capture: pcap(capture.frames, capture.link_type))
    _, coarse = read(rounded)
    _, micro = read(in_microseconds)
    same = [name for name in columns if name not in NUMBERS]
    trial.expect(len(micro) > 50 and [[row[name] for name in same] for row in micro] ==
                 [[row[name] for name in same] for row in coarse], "rows of microseconds")
    trial.expect(len(fine) == len(micro), f"{len(fine)} rows, in microseconds {len(micro)}")
    for a, b in zip(fine, micro):
        for name in same:
            if name.endswith("_ns") and a[name] is not None and b[name] is not None:
                trial.expect(abs(a[name] - b[name]) < 2000, f"{name}: {a[name]}, {b[name]}")
            elif name not in ("flow_uid", "round_trips"):
                trial.expect(a[name] == b[name], f"{name}: {a[name]}, {b[name]}")


def try_steps(trial, captures):
    """The clock is set back in the middle of each capture, by 0.2 s to 1 h."""
    files = {}
    for i, capture in enumerate(captures):
        step = (200_000_000, 2 * 10**9, 3600 * 10**9)[i % 3]
        half = len(capture.frames) // 2
        frames = [(at - step if k >= half else at, frame, wire)
                  for k, (at, frame, wire) in enumerate(capture.frames)]
        files[f"{chr(97 + i % 26)}{'x' * (i // 26)}/edge.pcap"] = pcap(frames, capture.link_type)
    trial.put(files)
    result = trial.ingest(trial.captures)
    trial.expect(result.returncode == 0 and "the clock was set back 1 time," in result.stderr,
                 f"note of a step: {result.stderr[:300]}")
    trial.expect(trial.query("SELECT count(*) FROM capture WHERE clock_steps = 1")[0][0] > 20,
                 "steps counted")
    trial.expect(trial.query("SELECT sum(clock_step) FROM flow")[0][0] >= 15, "flows marked")
    columns = [name for _, name, kind, *_ in trial.query("PRAGMA table_info(flow)")
               if name.endswith("_ns") and kind == "INTEGER"]
    for column in columns:
        negative = trial.query(f"SELECT count(*) FROM flow WHERE {column} < 0")[0][0]
        trial.expect(negative == 0, f"{column} is negative {negative} times")


def try_many(trial, captures):
    """Three thousand files in a tree, names in no order, few descriptors."""
    capture = max(captures, key=lambda c: len(c.frames))
    files = {}
    for i in range(3000):
        frames = capture.frames[i % len(capture.frames)::len(capture.frames)]
        moved = [(at + i * 10**9, frame, wire) for at, frame, wire in frames]
        directory = f"{'abcdefgh'[i % 8]}/{'abcdefgh'[i // 8 % 8]}"
        files[f"{directory}/edge{i * 7919 % 3000}.pcap"] = pcap(moved, capture.link_type)
    trial.put(files)
    listed = trial.directory / "list"
    listed.write_text("".join(f"{trial.captures / name}\n" for name in files), encoding="utf-8")
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
    begun = time.monotonic()
    for arguments in ([trial.captures], ["--files-from", listed]):
        result = trial.ingest(*arguments, preexec_fn=limit)
        trial.expect(result.returncode == 0, f"many files: {result.stderr[-300:]}")
        trial.expect(trial.query("SELECT count(*), sum(packets), sum(clock_steps), "
                                 "count(DISTINCT point) FROM capture") == [(3000, 3000, 0, 64)],
                     "what was read of many files")
    print(f"3000 files twice: {time.monotonic() - begun:.1f} s")


def try_copies(trial, captures):
    """Copies of a file at one point are read once, whichever comes first."""
    content = plain(captures[0], None)["edge.pcap"]
    trial.put({f"a/edge{i}.pcap": content for i in range(9)})
    result = trial.ingest(trial.captures)
    trial.expect(result.returncode == 0, "copies")
    trial.expect(trial.query("SELECT count(*) FROM capture") == [(1,)], "copies are one capture")
    trial.expect(result.stderr.count("already ingested") == 8, "copies are named")


def try_overlap_of_many(trial, captures):
    """More files at once than can be open together: said, and no packet is lost."""
    capture = captures[0]
    files = {}
    for i in range(70):
        frames = [(10**18 + i + k * 10**9, frame, wire)
                  for k, (_, frame, wire) in enumerate(capture.frames[:3])]
        files[f"a/edge{i}.pcap"] = pcap(frames, capture.link_type)
    trial.put(files)
    result = trial.ingest(trial.captures)
    trial.expect("more than 64 files of one capture point overlap" in result.stderr, "overlap")
    trial.expect(trial.query("SELECT sum(packets) FROM capture") == [(210,)], "packets of all")


def try_manifests(trial, captures):
    content = plain(captures[0], None)["edge.pcap"]
    trial.put({"fra/web1/edge.pcap": content, "fra/web2/edge.pcap": content,
               "sin/web1/edge.pcap": content, "other/edge.pcap": content})
    manifest = trial.directory / "manifest.csv"

    def read(text, *arguments):
        manifest.write_bytes(text.encode())
        return trial.ingest("--manifest", manifest, *arguments, trial.captures)

    hostile = '"; DROP TABLE flow; --\x1b[31m,\r\n'
    result = read("\ufeffsite,glob,rack,region\r\n"
                  "fra,fra/web1/*,r7,eu\r\n"
                  f'"{hostile.replace(chr(34), chr(34) * 2)}",fra/*/edge*,"a ""b"" c",\r\n\r\n'
                  "never,fra/web2/*,x,x\r\n"
                  f"asia,{trial.captures}/s?n/*/*.pcap,,asia", "--host", "h")
    trial.expect(result.returncode == 0, f"manifest: {result.stderr}")
    found = trial.query("SELECT site, host, region, labels FROM capture ORDER BY path")
    trial.expect([found[0], found[2], found[3]] == [
        ("fra", "h", "eu", '{"rack":"r7"}'), (None, "h", None, None), ("asia", "h", "asia", None)],
        f"labels of a manifest: {found}")
    trial.expect("; DROP TABLE flow; --" in found[1][0] and found[1][1:] ==
                 ("h", None, '{"rack":"a \\"b\\" c"}'), f"hostile labels: {found[1]}")
    trial.expect("other/edge.pcap: read without labels" in result.stderr, "no line fits")
    listed = subprocess.run([trial.program, "captures", "-d", trial.database], capture_output=True,
                            check=False).stdout
    trial.expect(b"\x1b" not in listed, "control characters of a manifest reach the terminal")

    for text, words in (("", "is empty"), ("site,host\na,b\n", "line 1: no column is named glob"),
                        ("glob,site\nx,a\ny\n", "line 3: 1 fields"),
                        ('glob,site\nx,"a\nb', "line 2: a quote is not closed"),
                        ('glob,site\n"x\ny",a\nz,b"\n', "line 4: a quote inside"),
                        ('glob,site\n"x"y,a\n', "line 2: text behind a closing quote"),
                        ("glob,site,site\n", "line 1: two columns"), ("glob,a b\n", "line 1: column 2"),
                        ("glob,site\n,a\n", "line 2: the glob is empty"),
                        ("glob\0,site\n", "NUL"), ("g" + "," * 99, "more than 64 columns")):
        result = read(text)
        trial.expect(result.returncode == 1 and words in result.stderr,
                     f"manifest {text!r}: {result.returncode} {result.stderr}")
    begun = time.monotonic()
    read("glob\n" + "".join("*a" * 500 + "\n" for _ in range(2000)))
    trial.expect(time.monotonic() - begun < 20, "time of globs of many stars")
    manifest.unlink()
    result = trial.ingest("--manifest", manifest, trial.captures)
    trial.expect(result.returncode == 2 and "manifest.csv" in result.stderr, "no manifest")


def main():
    program = sys.argv[1]
    paths = sorted(pathlib.Path(sys.argv[2]).rglob("*.pcap"))
    captures = [Capture(path) for path in paths if path.stat().st_size < SAMPLE_SIZE_MAX]
    with tempfile.TemporaryDirectory() as directory:
        trial = Trial(program, pathlib.Path(directory))
        try_ways(trial, captures)
        try_microseconds(trial, captures)
        try_interfaces(trial, captures)
        try_many_interfaces(trial, captures)
        try_steps(trial, captures)
        try_many(trial, captures)
        try_copies(trial, captures)
        try_overlap_of_many(trial, captures)
        try_manifests(trial, captures)
        print(f"{len(captures)} captures, {len(WAYS)} ways, {trial.failed} failures")
        return 1 if trial.failed else 0


if __name__ == "__main__":
    sys.exit(main())
