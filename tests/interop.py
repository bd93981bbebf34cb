#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other programs read the database and find its connections in their own logs.

usage: interop.py FIRSTFLIGHT

The samples are ingested. Every view must give in Python's sqlite3, and in the sqlite3 command where
it is there, the same as in firstflight, table by table; Community IDs must be what their
specification says, computed here from it; a log with one JSON object a line, as Suricata and Zeek
write them, must join by them.
"""
import base64
import csv
import hashlib
import io
import ipaddress
import json
import pathlib
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile

SAMPLES = pathlib.Path(__file__).resolve().parent.parent / "samples"
JOIN = """SELECT count(*), count(DISTINCT flow_id) FROM flow
          JOIN log ON log.line ->> 'community_id' = flow.community_id"""


def community_id(one, other, ports, protocol=6):
    """Version 1, seed 0: the smaller endpoint first."""
    ends = sorted([(ipaddress.ip_address(one).packed, ports[0]),
                   (ipaddress.ip_address(other).packed, ports[1])])
    data = struct.pack(">H", 0) + ends[0][0] + ends[1][0] + struct.pack(">BB", protocol, 0) + \
        struct.pack(">HH", ends[0][1], ends[1][1])
    return "1:" + base64.b64encode(hashlib.sha1(data).digest()).decode()


def output(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=True,
                          errors="replace").stdout  # blobs are no text


def read_csv(text):
    return list(csv.reader(io.StringIO(text)))


def differences(program, database):
    connection = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
    names = [name for name, in connection.execute(
        "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite%'")]
    cli = shutil.which("sqlite3")
    if cli is None:
        print("skipped: there is no sqlite3 command")
    for name in names:
        sql = f"SELECT count(*) AS n, * FROM {name}"
        rows = connection.execute(f"SELECT * FROM {name}").fetchall()
        ours = read_csv(output(program, "sql", "-d", database, "--format", "csv",
                               f"SELECT * FROM {name}"))
        if len(ours) - 1 != len(rows):
            yield f"{name}: {len(rows)} rows in Python, {len(ours) - 1} in firstflight"
        if cli and output(cli, "-csv", "-readonly", database, f"{sql} LIMIT 1").split(",")[0] != \
                str(len(rows)):
            yield f"{name}: sqlite3 reads other rows"

    flows = connection.execute("SELECT client_ip, server_ip, client_port, server_port, community_id"
                               " FROM flow").fetchall()
    for client, server, *ports, stored in flows:
        if community_id(client, server, ports) != stored:
            yield f"{client} {server}: Community ID {stored}"

    log = [json.dumps({"event_type": "flow", "src_ip": server, "dest_ip": client,
                       "community_id": community_id(server, client, ports[::-1])})
           for client, server, *ports, _ in flows[:10]]
    connection = sqlite3.connect(database)
    connection.execute("CREATE TEMP TABLE log (line TEXT)")
    connection.executemany("INSERT INTO log VALUES (?)", ((line,) for line in log))
    if connection.execute(JOIN).fetchone() != (10, 10):
        yield f"joined: {connection.execute(JOIN).fetchone()}, not ten lines of ten flows"


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as directory:
        database = pathlib.Path(directory) / "samples.db"
        output(program, "ingest", "-q", "-d", database, SAMPLES / "article")
        found = list(differences(program, database))
    for line in found[:20]:
        print(line)
    print(f"{len(found)} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
