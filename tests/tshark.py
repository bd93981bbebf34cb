#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The flows that firstflight finds against the TCP streams that tshark finds, file by file.

usage: tshark.py FIRSTFLIGHT CAPTURE|DIRECTORY...

Streams are compared by the addresses and ports of the innermost TCP header and by how often these
come. Differences that have a known cause are named by it and not counted as faults:

  damaged    headers that contradict themselves or are cut: tshark shows what can be made of them
  unread     tshark 4.0 does not look into UDP tunnels whose lengths are 0 (BIG TCP, RFC 2675)

TCP headers that an ICMP message quotes or an sFlow sample holds are no connections; tshark numbers
them as streams, so those are left out. Exits 1 when a difference has no known cause, 77 (skipped)
when there is no tshark or no capture.
"""
import collections
import pathlib
import shutil
import sqlite3
import subprocess
import sys
import tempfile

FIELDS = ["tcp.stream", "frame.protocols", "ip.src", "ip.dst", "ipv6.src", "ipv6.dst",
          "tcp.srcport", "tcp.dstport"]
QUOTING = {"icmp", "icmpv6", "sflow"}
DAMAGE = ("ip_too_short", "ip_header_invalid", "ip_length_beyond_frame", "ip_extension_invalid",
          "link_too_short", "fragment", "fragment_invalid", "tcp_too_short", "tcp_header_invalid",
          "time_invalid")
SKIPPED = 77


def last(values):
    """The innermost value; an IPv4-mapped address (RFC 4291 2.5.5.2) as the IPv4 one that it is."""
    value = values.split(",")[-1]
    return value.removeprefix("::ffff:") if "." in value else value


def stream_of(line):
    """Number and ends of the stream of one packet; None where its TCP header is only quoted."""
    fields = line.split("\t")
    if len(fields) != len(FIELDS):
        return None
    number, protocols, source4, target4, source6, target6, source_port, target_port = fields
    around = protocols.split(":")
    if "tcp" not in around:
        return None
    around = around[:len(around) - 1 - around[::-1].index("tcp")]
    versions = [name for name in around if name in ("ip", "ipv6")]
    if QUOTING & set(around) or not versions:
        return None
    source, target = (source4, target4) if versions[-1] == "ip" else (source6, target6)
    ends = ((last(source), last(source_port)), (last(target), last(target_port)))
    return last(number), tuple(sorted(ends))


def streams_of_tshark(path):
    command = ["tshark", "-n", "-r", path, "-o", "tcp.desegment_tcp_streams:FALSE", "-Y", "tcp",
               "-T", "fields", "-E", "occurrence=a"]
    for field in FIELDS:
        command += ["-e", field]
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    found = filter(None, map(stream_of, result.stdout.splitlines()))
    return collections.Counter(dict(found).values())


def flows_of_firstflight(program, path):
    """Flows by their ends, what was dropped by reason, and the tunnels."""
    with tempfile.TemporaryDirectory() as directory:
        database = pathlib.Path(directory) / "db"
        subprocess.run([program, "ingest", "-q", "-d", database, path], stderr=subprocess.DEVNULL,
                       check=False)
        if not database.exists():
            return collections.Counter(), collections.Counter(), False
        with sqlite3.connect(database) as db:
            rows = db.execute("SELECT client_ip, client_port, server_ip, server_port FROM flow"
                              " WHERE NOT continues").fetchall()
            drops = collections.Counter(
                dict(db.execute("SELECT reason, sum(packets) FROM drop_count GROUP BY reason")))
            tunnelled = db.execute("SELECT count(tunnel) FROM flow").fetchone()[0] > 0
        db.close()
    ends = (tuple(sorted(((a, str(b)), (c, str(d))))) for a, b, c, d in rows)
    return collections.Counter(ends), drops, tunnelled


def cause_of(theirs, ours, drops, tunnelled):
    """Why two counts differ; None when nothing known explains it."""
    missing, more = (theirs - ours).total(), (ours - theirs).total()
    if more == 0 and missing <= sum(drops[reason] for reason in DAMAGE):
        return "damaged"
    if missing == 0 and not theirs and tunnelled:
        return "unread"
    return None


def captures_in(paths):
    for path in map(pathlib.Path, paths):
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (file for file in files if file.is_file() and
                    file.suffix not in (".md", ".tsv", ".txt", ".keys", ".keylog"))


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    files = list(captures_in(sys.argv[2:]))
    if shutil.which("tshark") is None or not files:
        print("skipped: no tshark, or no captures")
        sys.exit(SKIPPED)
    agree, flows, unknown, causes = 0, 0, 0, collections.Counter()
    for path in files:
        theirs = streams_of_tshark(path)
        ours, drops, tunnelled = flows_of_firstflight(program, path)
        flows += ours.total()
        if theirs == ours:
            agree += 1
            continue
        cause = cause_of(theirs, ours, drops, tunnelled)
        causes[cause] += 1
        unknown += cause is None
        print(f"{path}: {cause or 'DIFFERENT'}: tshark {theirs.total()}, we {ours.total()};"
              f" only tshark {list(theirs - ours)[:3]}, only we {list(ours - theirs)[:3]}")
    both_read = len(files) - causes["unread"]
    share = 100 * agree / max(both_read, 1)
    print(f"{agree} of {both_read} files agree ({share:.1f} %), {flows} flows;"
          f" explained: {dict((k, n) for k, n in causes.items() if k)}; unexplained: {unknown}")
    sys.exit(unknown > 0)


if __name__ == "__main__":
    main()
