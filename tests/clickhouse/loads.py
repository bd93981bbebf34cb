#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads two shards of ClickHouse by `firstflight export`, in every way that a load can go wrong.

usage: loads.py FIRSTFLIGHT [NAME]...

Only when FIRSTFLIGHT_LONG is set, as tests/long does: installs ClickHouse and ZooKeeper where they
are missing, starts them on loopback (cluster.py), for each case anew, and stops them. After each
load every column has the count and the checksum that SQLite gives. NAMEs are parts of the names of
cases. Exit status 77 says skipped.
"""
import hashlib
import json
import pathlib
import re
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import cluster

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
ARTICLE = TOP / "samples" / "article"
PROGRAM = pathlib.Path(sys.argv[1]).resolve()
DAY_NS = 86400 * 10**9
SECONDS = 300
MODULUS = 2**64
COLUMNS_AT_ONCE = 12  # with a buffer for each column of each part, all need gigabytes


def run(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, timeout=SECONDS, encoding="utf-8",
                          **options)


def ingest(database, *places):
    done = run("ingest", "-q", "-d", database, "--no-labels", "--labels", "{region}/{site}/*",
               "--local", "192.0.2.0/24", *(ARTICLE / place for place in places))
    if done.returncode != 0:
        raise AssertionError(done.stderr)


def multiply(database, times):
    """Adds copies of all flows, each a flow of its own, over three days."""
    db = sqlite3.connect(database)
    names = [row[1] for row in db.execute("PRAGMA table_info(flow)")]
    changed = {"flow_id": "NULL",
               # of one database by the end, of two by the beginning
               "flow_uid": "substr(flow_uid, 1, 24) || printf('%08x', flow_id << 16 | n.value)",
               "start_epoch_ns": f"start_epoch_ns + n.value % 3 * {DAY_NS}"}
    values = ", ".join(changed.get(name, name) for name in names)
    db.execute(f"INSERT INTO flow SELECT {values} FROM flow, json_each(?) AS n",
               (json.dumps(list(range(times))),))
    db.commit()
    db.close()


def half_md5(text):
    return int.from_bytes(hashlib.md5(text).digest()[:8], "big")


def as_bytes(value, type_):
    """What sum_of() below has for a value."""
    if value is None:
        return b"NULL"
    if "Enum8" in type_:
        return re.search(rf"'{value.decode()}' = (\d+)", type_)[1].encode()
    if isinstance(value, float):
        return struct.pack("<d", value).rstrip(b"\0")  # as reinterpretAsString() gives it
    return value if isinstance(value, bytes) else str(value).encode()


def sum_of(name, type_):
    """The numbers of words: 18.16 has no text for the 0 that stands beneath a NULL."""
    text = (f"reinterpretAsString({name})" if "Float64" in type_ else
            f"toString(toInt8({name}))" if "Enum8" in type_ else f"toString({name})")
    return f"sum(halfMD5(ifNull({text}, 'NULL')))"


def columns_of(table):
    ddl = cluster.SCHEMA.read_text(encoding="utf-8")
    (text,) = re.findall(rf"^CREATE TABLE IF NOT EXISTS firstflight\.{table}_load .*?\(\n(.*?)\n\)",
                         ddl, re.MULTILINE | re.DOTALL)
    return [tuple(line.strip().rstrip(",").split(" ", 1)) for line in text.split("\n")]


def export_select(table):
    """SQL for the rows as the export has them: the table and what is told of its captures."""
    own = {"point": "c.point", "capture_path": "c.path", "capture_region": "c.region",
           "capture_begin_epoch_ns": "c.file_begin_epoch_ns", "capture_labels": "c.labels"}
    names = ", ".join(own.get(name, f"t.{name}") if table == "flow" else f"t.{name}"
                      for name, _ in columns_of(table))
    join = " JOIN capture AS c ON c.capture_id = t.capture_id" if table == "flow" else ""
    return f"SELECT {names} FROM {table} AS t{join}"


class Loads(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.directory.cleanup)
        path = pathlib.Path(cls.directory.name)
        cls.west, cls.east = path / "west.db", path / "east.db"
        ingest(cls.west, "eu", "na")
        ingest(cls.east, "sea")
        multiply(cls.west, 8)

    def setUp(self):
        """Servers of its own: those that were told of a block once do not take it again."""
        self.cluster = cluster.Cluster()
        self.addCleanup(self.cluster.__exit__)
        self.cluster.__enter__()
        self.cluster.create_schema()

    def export(self, database, *arguments, shard=1):
        done = run("export", "-d", database, "--to", "clickhouse", "--url", self.cluster.url(shard),
                   *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stderr

    def start_export(self, database, *arguments):
        return subprocess.Popen(
            [PROGRAM, "export", "-d", database, "--to", "clickhouse", "--url", self.cluster.url(),
             "--block-rows", "250", *arguments], stderr=subprocess.PIPE, encoding="utf-8")

    def count(self, table="flow", shard=1):
        return int(self.cluster.query(f"SELECT count() FROM firstflight.{table}", shard)[0][0])

    def wait_for_rows(self, process, rows):
        deadline = time.monotonic() + SECONDS
        while self.count() < rows:
            self.assertIsNone(process.poll(), "the load ended too early")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def expect_rows_of(self, *databases, table="flow", shard=1):
        """Rows and checksums per column are those of SQLite, and no flow is there twice."""
        columns = columns_of(table)
        rows, sums = 0, [0] * len(columns)
        for database in databases:
            db = sqlite3.connect(database)
            db.text_factory = bytes
            for row in db.execute(export_select(table)):
                rows += 1
                for number, value in enumerate(row):
                    sums[number] += half_md5(as_bytes(value, columns[number][1]))
            db.close()
        self.assertEqual(self.count(table, shard), rows)
        there = []
        for begin in range(0, len(columns), COLUMNS_AT_ONCE):
            texts = ", ".join(sum_of(*column) for column in columns[begin:begin + COLUMNS_AT_ONCE])
            there += self.cluster.query(f"SELECT {texts} FROM firstflight.{table}", shard)[0]
        different = [name for (name, _), ours, theirs in zip(columns, sums, there)
                     if ours % MODULUS != int(theirs)]
        self.assertEqual(different, [])

    def test_two_databases_by_two_shards(self):
        self.export(self.west, shard=1)
        self.export(self.east, shard=2)
        for shard in (1, 2):
            self.expect_rows_of(self.west, self.east, shard=shard)
            self.expect_rows_of(self.west, self.east, table="capture", shard=shard)
        parts = [self.count("flow_local", shard) for shard in (1, 2)]
        self.assertEqual(sum(parts), self.count())
        self.assertLess(abs(parts[0] - parts[1]), sum(parts) // 10)

    def test_loads_again_and_in_other_blocks_change_nothing(self):
        self.export(self.east)
        for arguments, shard in (((), 1), (("--block-rows", 37), 2), (("--block-rows", 100), 1)):
            self.export(self.east, *arguments, shard=shard)
            self.expect_rows_of(self.east)
            self.expect_rows_of(self.east, table="capture")
        kept = sum(self.count("flow_local", shard) for shard in (1, 2))
        self.assertGreater(kept, self.count())  # not by luck: they lie there twice
        for shard in (1, 2):
            self.cluster.query("OPTIMIZE TABLE firstflight.flow_local FINAL", shard)
        self.expect_rows_of(self.east)

    def test_files_and_pipes_load_the_same(self):
        file = pathlib.Path(self.directory.name) / "flows"
        self.assertEqual(run("export", "-q", "-d", self.east, "--to", "clickhouse", "-o", file)
                         .returncode, 0)
        with open(file, "rb") as rows:
            self.cluster.query(rows.read(), database="firstflight", insert_distributed_sync=1)
        self.expect_rows_of(self.east)
        port = self.cluster.ports["tcp_port_2"]
        subprocess.run(
            f"{PROGRAM} export -q -d {self.west} --to clickhouse -o - | (read -r insert;"
            f" clickhouse-client --port {port} -d firstflight"
            " --insert_distributed_sync 1 --query \"$insert\")",
            shell=True, check=True, timeout=SECONDS)
        self.expect_rows_of(self.east, self.west)

    def test_a_killed_load_is_repeated(self):
        process = self.start_export(self.west)
        self.wait_for_rows(process, 500)
        process.kill()
        process.communicate()
        self.expect_part(self.west)
        self.export(self.west)
        self.expect_rows_of(self.west)

    def expect_part(self, database):
        db = sqlite3.connect(database)
        (rows,) = db.execute("SELECT count(*) FROM flow").fetchone()
        db.close()
        self.assertLess(self.count(), rows)

    def test_a_load_goes_on_when_a_shard_was_away(self):
        process = self.start_export(self.west, "--retries", "12")
        self.wait_for_rows(process, 500)
        self.cluster.stop(2)
        time.sleep(2)
        self.cluster.start(2)
        said = process.communicate(timeout=SECONDS)[1]
        self.assertEqual(process.returncode, 0, said)
        self.assertIn("sent again", said)
        self.expect_rows_of(self.west)

    def test_a_shard_that_is_away_is_an_error_and_no_half_answer(self):
        self.export(self.east)
        self.cluster.stop(2)
        try:
            for sql in ("SELECT count() FROM firstflight.flow",
                        "SELECT handshake, quantile(0.5)(perceived_ns) FROM firstflight.flow"
                        " GROUP BY handshake",
                        "SELECT sum(packets) FROM firstflight.capture"):
                with self.assertRaisesRegex(cluster.ServerError, "Code: 279"):
                    self.cluster.query(sql)
            done = run("export", "-d", self.east, "--to", "clickhouse", "--retries", "1", "--url",
                       self.cluster.url())
            self.assertEqual(done.returncode, 2)
            self.assertIn("Code: 279", done.stderr)
        finally:
            self.cluster.start(2)
        self.expect_rows_of(self.east)

    def test_the_later_end_stays_and_else_the_later_load(self):
        self.export(self.east)
        judged = pathlib.Path(self.directory.name) / "judged.db"
        judged.write_bytes(self.east.read_bytes())
        db = sqlite3.connect(judged)
        db.execute("UPDATE flow SET handshake_reason = 'judged anew', client_region = 'elsewhere',"
                   " handshake = 'unknown' WHERE flow_id % 2 = 0")
        db.commit()
        self.export(judged)
        self.expect_rows_of(judged)
        db.execute("UPDATE flow SET end_at_ns = end_at_ns + 1000, ended = 'fin', client_packets = 99")
        db.commit()
        db.close()
        self.export(judged)
        self.export(self.east, "--block-rows", 77)  # an older database comes late
        self.expect_rows_of(judged)

    def test_conditions_reach_the_partitions_of_a_shard(self):
        self.export(self.west)
        (days,) = self.cluster.query("SELECT min(toDate(start_time)), max(toDate(start_time))"
                                     " FROM firstflight.flow")
        self.assertNotEqual(*days)
        answer = self.cluster.query(
            "SELECT count() FROM firstflight.flow_local FINAL WHERE start_time >="
            f" toDateTime('{days[1]} 00:00:00', 'UTC') FORMAT JSON")
        read = json.loads("\n".join("\t".join(line) for line in answer))["statistics"]["rows_read"]
        self.assertLess(read, self.count("flow_local") // 2)

    def test_times_and_addresses_are_what_they_say(self):
        self.export(self.east)
        db = sqlite3.connect(self.east)
        expected = db.execute(
            "SELECT flow_uid, datetime(start_epoch_ns / 1000000000, 'unixepoch'), client_ip,"
            " server_ip FROM flow ORDER BY flow_uid").fetchall()
        db.close()
        there = self.cluster.query(
            "SELECT flow_uid, start_time, IPv6NumToString(client_address),"
            " IPv6NumToString(server_address) FROM firstflight.flow ORDER BY flow_uid")
        self.assertEqual([[uid, start, client.replace("::ffff:", ""), server.replace("::ffff:", "")]
                          for uid, start, client, server in there], [list(row) for row in expected])


def main():
    if not cluster.can_start():
        return cluster.SKIPPED
    loader = unittest.TestLoader()
    loader.testNamePatterns = [f"*{name}*" for name in sys.argv[2:]] or None
    suite = loader.loadTestsFromTestCase(Loads)
    return 0 if unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
