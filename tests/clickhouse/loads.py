#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads two shards of ClickHouse by `firstflight export`, in every way that a load can go wrong.

usage: loads.py FIRSTFLIGHT [NAME]...

Only when FIRSTFLIGHT_LONG is set, as tests/long does: installs ClickHouse and ZooKeeper where they
are missing, starts them on loopback (cluster.py), for each case anew, and stops them. After each
load every column of every row is what SQLite says. NAMEs are parts of the names of cases. Exit
status 77 says skipped.
"""
import http.client
import http.server
import json
import pathlib
import queue
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

import cluster
import rows

TOP = pathlib.Path(__file__).resolve().parent.parent.parent
ARTICLE = TOP / "samples" / "article"
PROGRAM = pathlib.Path(sys.argv[1]).resolve()
DAY_NS = 86400 * 10**9
SECONDS = 300
BLOCK_ROWS = 250


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


class Between(http.server.ThreadingHTTPServer):
    """Stands between an export and a server, and does something at some blocks: after the server
    has it and before the export knows, or before the server sees it."""

    def __init__(self, url):
        super().__init__(("127.0.0.1", 0), Forwarder)
        self.target = urllib.parse.urlsplit(url).netloc
        self.url = url.replace(self.target, f"127.0.0.1:{self.server_port}")
        self.blocks, self.before, self.after = 0, {}, {}  # blocks: those that the server has
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """Who asked is killed, or who should answer."""


class Forwarder(http.server.BaseHTTPRequestHandler):
    def do_POST(self):  # pylint: disable=invalid-name
        body = self.rfile.read(int(self.headers["Content-Length"]))
        block = self.server.blocks + 1 if body else 0
        self.server.before.pop(block, lambda: None)()
        server = http.client.HTTPConnection(self.server.target, timeout=SECONDS)
        server.request("POST", self.path, body)
        answer = server.getresponse()
        text = answer.read()
        server.close()
        self.server.blocks += bool(body) and answer.status == 200
        self.server.after.pop(block, lambda: None)()
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):  # pylint: disable=arguments-differ
        pass


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

    def start_export(self, database, *arguments, url=None):
        return subprocess.Popen(
            [PROGRAM, "export", "-d", database, "--to", "clickhouse", "--block-rows",
             str(BLOCK_ROWS), "--url", url or self.cluster.url(), *arguments],
            stderr=subprocess.PIPE, encoding="utf-8")

    def count(self, table="flow", shard=1):
        return int(self.cluster.query(f"SELECT count() FROM firstflight.{table}", shard)[0][0])

    def wait_for_rows(self, process, rows):
        deadline = time.monotonic() + SECONDS
        while self.count() < rows:
            self.assertIsNone(process.poll(), "the load ended too early")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)

    def expect_rows_of(self, *databases, table="flow", shard=1):
        """Every column of every row is that of SQLite, and no row is there twice."""
        self.assertEqual(rows.differences(lambda sql: self.cluster.query(sql, shard), databases,
                                          table), [])

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
        """Killed at its begin, in the middle and near its end, one load after the other."""
        blocks = -(-len(rows.exported(self.west, "flow")) // BLOCK_ROWS)
        for when, block in (("after", 1), ("before", 2), ("after", blocks // 2),
                            ("before", blocks), ("after", blocks)):
            with self.subTest(block=block, when=when), Between(self.cluster.url()) as between:
                process = self.start_export(self.west, url=between.url)
                getattr(between, when)[block] = process.kill
                process.communicate(timeout=SECONDS)
                self.assertEqual(process.returncode, -signal.SIGKILL)
                self.assertLessEqual(self.count(), block * BLOCK_ROWS)
                self.assertEqual(self.count("capture"), 0)  # they come last
        self.export(self.west)
        self.expect_rows_of(self.west)
        self.expect_rows_of(self.west, table="capture")

    def test_a_load_goes_on_when_a_server_was_killed(self):
        """The one that it talks to, before and after it has a block, and the one behind it."""
        with Between(self.cluster.url()) as between:
            killed = queue.Queue()

            def kill(shard):
                self.cluster.kill(shard)
                killed.put(shard)
            between.before[3] = lambda: kill(1)
            between.after[7] = lambda: kill(1)
            between.before[11] = lambda: kill(2)
            process = self.start_export(self.west, "--retries", "12", url=between.url)
            for shard in (1, 1, 2):
                self.assertEqual(killed.get(timeout=SECONDS), shard)
                self.cluster.start(shard)
            said = process.communicate(timeout=SECONDS)[1]
        self.assertEqual(process.returncode, 0, said)
        self.assertIn("sent again", said)
        self.expect_rows_of(self.west)
        self.export(self.west)
        self.expect_rows_of(self.west)

    def test_a_server_that_stays_away_ends_the_load_which_says_what_it_sent(self):
        with Between(self.cluster.url()) as between:
            between.before[3] = lambda: self.cluster.kill(1)
            process = self.start_export(self.west, "--retries", "2", url=between.url)
            said = process.communicate(timeout=SECONDS)[1]
        self.assertEqual(process.returncode, 2)
        self.assertRegex(said, rf"flow: {2 * BLOCK_ROWS} rows, \d+ bytes, 2 blocks acknowledged")
        self.assertIn(between.url.partition("/?")[0], said)
        self.cluster.start(1)
        self.export(self.west)
        self.expect_rows_of(self.west)

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
