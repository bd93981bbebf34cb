#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `firstflight export` writes, read back by readers that are not ours and held against sqlite3.

usage: export.py FIRSTFLIGHT

CSV and NDJSON by Python's own readers, RowBinary by the one below, by the types that
schema/clickhouse says. A server of HTTP on 127.0.0.1 plays ClickHouse, and whatever may go wrong
between here and there.
"""
import base64
import csv
import http.server
import io
import json
import os
import pathlib
import re
import resource
import signal
import socket
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.parse

TOP = pathlib.Path(__file__).resolve().parent.parent
SAMPLES = TOP / "samples"
DDL = (TOP / "schema/clickhouse/18.16.sql").read_text(encoding="utf-8")
PROGRAM = pathlib.Path(sys.argv[1]).resolve()
TABLES = ("flow", "capture", "drop_count", "half_open", "early_data_rule")
TO_A_SERVER = ("flow", "drop_count", "half_open", "capture")
OF_CAPTURE = {"capture_path": "path", "capture_begin_epoch_ns": "file_begin_epoch_ns",
              "capture_region": "region", "capture_labels": "labels"}
SECONDS = 60

# Texts that came from strangers, and what stands for them in CSV.
HOSTILE = [
    ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"), ("+1", "'+1"), ("-1", "'-1"), ("@x", "'@x"),
    ('a,"b"', 'a,"b"'), ("two\nlines", "two\nlines"), ("\x1b[31mred", "\\x1b[31mred"),
    ("\u202egnp.exe", "\\u202egnp.exe"), ("", ""), ("Größe", "Größe"), ("x" * 70000, "x" * 70000),
]


def run(*arguments, **options):
    options.setdefault("timeout", SECONDS)
    return subprocess.run([PROGRAM, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, check=False, **options)


def export(database, *arguments):
    done = run("export", "-q", "-d", database, *arguments)
    if done.returncode != 0 or done.stderr:
        raise AssertionError(f"{arguments}: {done.returncode} {done.stderr}")
    return done.stdout


def ingest(database, *options):
    done = run("ingest", "-q", "-d", database, "--no-labels", "--labels", "{region}/{site}/*",
               *options, *(SAMPLES / "article" / name for name in ("eu/fra2", "na/iad2", "sea/sin2")))
    if done.returncode != 0:
        raise AssertionError(done.stderr)


def types_of(table):
    """Names and types of the columns of a table that rows go into."""
    (text,) = re.findall(rf"^CREATE TABLE IF NOT EXISTS firstflight\.{table}_load .*?\(\n(.*?)\n\)",
                         DDL, re.MULTILINE | re.DOTALL)
    return [tuple(line.strip().rstrip(",").split(" ", 1)) for line in text.split("\n")]


def rows_of(database, table):
    """All rows as sqlite3 has them, with what the export adds of captures; dictionaries."""
    db = sqlite3.connect(database)
    db.text_factory = bytes
    db.row_factory = sqlite3.Row
    captures = {row["capture_id"]: row for row in db.execute("SELECT * FROM capture")}
    order = {"drop_count": "1, 2", "half_open": "1, 2, 3, 4"}.get(table, "1")
    rows = []
    for row in db.execute(f"SELECT * FROM {table} ORDER BY {order}"):
        values = dict(row)
        for name, _ in types_of(table):
            if name not in values:
                values[name] = captures[row["capture_id"]][OF_CAPTURE.get(name, name)]
        rows.append(values)
    db.close()
    return rows


# -- RowBinary --

def take_length(data):
    value = shift = 0
    while True:
        (byte,) = data.read(1)
        value |= (byte & 0x7f) << shift
        if byte < 0x80:
            return value
        shift += 7


def take(data, type_):
    if type_.startswith("Nullable("):
        null = data.read(1)
        if null not in (b"\0", b"\1"):
            raise AssertionError(f"{null!r} is neither NULL nor a value")
        return None if null == b"\1" else take(data, type_[len("Nullable("):-1])
    if type_ == "String":
        length = take_length(data)
        value = data.read(length)
        if len(value) != length:
            raise AssertionError("a text ends early")
        return value
    if type_.startswith("FixedString("):
        return data.read(int(type_[len("FixedString("):-1]))
    if type_.startswith("Enum8("):
        words = {int(number): word for word, number in re.findall(r"'([^']*)' = (\d+)", type_)}
        return words[data.read(1)[0]].encode()
    form, size = {"Int64": ("<q", 8), "UInt8": ("<B", 1), "Float64": ("<d", 8)}[type_]
    return struct.unpack(form, data.read(size))[0]


def read_row_binary(body, types):
    data = io.BytesIO(body)
    rows = []
    while data.tell() < len(body):
        rows.append({name: take(data, type_) for name, type_ in types})
    return rows


def insert_text(table):
    names = ", ".join(name for name, _ in types_of(table))
    return f"INSERT INTO {table}_load ({names}) FORMAT RowBinary"


# -- a server that plays ClickHouse --

class Server(http.server.ThreadingHTTPServer):
    """Answers as `behave(handler, number, body)` says, which gives True when it has answered."""

    daemon_threads = True

    def __init__(self, behave=None, describe=types_of):
        super().__init__(("127.0.0.1", 0), Handler)
        self.behave, self.describe = behave, describe
        self.inserts = 0
        self.requests = 0
        self.blocks = []  # table, body: those that were acknowledged
        self.authorizations = set()
        self.settings = []
        self.stopping = threading.Event()

    def handle_error(self, *_):
        """Broken connections are what is played here."""

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        self.shutdown()
        self.server_close()

    def url(self, host="127.0.0.1"):
        return f"http://{host}:{self.server_address[1]}/?database=firstflight&max_threads=2"

    def rows(self, table):
        types = types_of(table)
        return [row for name, body in self.blocks if name == table
                for row in read_row_binary(body, types)]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Quiet."""

    def answer(self, code, body=b""):
        self.send_response(code)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def break_off(self):
        """Resets the connection."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def do_POST(self):
        server = self.server
        server.requests += 1
        arguments = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.path).query))
        server.authorizations.add(self.headers.get("Authorization"))
        query = arguments.pop("query")
        server.settings.append(arguments)
        length = int(self.headers["Content-Length"])
        if query.startswith("DESCRIBE"):
            (table,) = re.findall(r"TABLE (\w+)_load FORMAT TabSeparatedRaw$", query)
            lines = "".join(f"{name}\t{type_}\t\t\t\n" for name, type_ in server.describe(table))
            self.answer(200, lines.encode())
            return
        server.inserts += 1
        if server.behave and server.behave(self, server.inserts, length):
            return
        body = self.rfile.read(length)
        (table,) = re.findall(r"^INSERT INTO (\w+)_load ", query)
        if query != insert_text(table):
            self.answer(400, b"Code: 62, not the INSERT of " + table.encode())
            return
        server.blocks.append((table, body))
        self.answer(200)


class Case(unittest.TestCase):
    maxDiff = 2000

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.directory.name)
        cls.database = cls.path / "all.db"
        ingest(cls.database)
        db = sqlite3.connect(cls.database)
        for number, (text, _) in enumerate(HOSTILE, 1):
            db.execute("UPDATE flow SET sni = ?, app_protocol = ? WHERE flow_id = ?",
                       (text, text, number))
        db.execute("UPDATE flow SET server_think_ns = ?, round_trips = 1e300 WHERE flow_id = 20",
                   (2**63 - 1,))
        db.execute("UPDATE flow SET server_think_ns = ?, round_trips = -0.1 WHERE flow_id = 21",
                   (-2**63,))
        db.execute("INSERT INTO drop_count SELECT capture_id, 'ip_too_short', 7 FROM capture")
        db.execute("INSERT INTO half_open SELECT capture_id, '192.0.2.1', 443, 1780408980, 9, 2"
                   " FROM capture")
        db.execute("UPDATE capture SET labels = '{\"rack\":\"r1\"}', kernel_drops = 3"
                   " WHERE capture_id = 1")
        db.commit()
        db.close()

    @classmethod
    def tearDownClass(cls):
        cls.directory.cleanup()

    def send(self, server, *arguments, database=None, environment=None, host="127.0.0.1"):
        """Exports to the server; standard error and exit status."""
        done = run("export", "-d", database or self.database, "--to", "clickhouse", "--url",
                   server.url(host), "--retries", "3", *arguments,
                   env={**os.environ, **(environment or {})})
        return done.returncode, done.stderr.decode()

    def expect_all(self, server, database=None):
        for table in TO_A_SERVER:
            self.assertEqual(server.rows(table), rows_of(database or self.database, table), table)


class Files(Case):
    def check_csv(self, database, table):
        text = export(database, "--to", "csv", "--table", table).decode("utf-8")
        lines = list(csv.reader(io.StringIO(text, newline="")))
        self.assertEqual(lines[0], [name for name, _ in types_of(table)])
        rows = rows_of(database, table)
        self.assertEqual(len(lines) - 1, len(rows))
        hostile = dict(HOSTILE)
        for line, row in zip(lines[1:], rows):
            for name, text in zip(lines[0], line):
                value = row[name]
                if value is None:
                    self.assertEqual(text, "", name)
                elif isinstance(value, bytes):
                    value = value.decode()
                    self.assertEqual(text, hostile.get(value, value), name)
                else:
                    self.assertEqual(type(value)(text), value, name)

    def check_ndjson(self, database, table):
        lines = export(database, "--to", "ndjson", "--table", table).decode("utf-8").splitlines()
        rows = rows_of(database, table)
        self.assertEqual(len(lines), len(rows))
        for line, row in zip(lines, rows):
            self.assertTrue(line.isprintable())
            values = json.loads(line)
            self.assertEqual(list(values), [name for name, _ in types_of(table)])
            self.assertEqual(values, {name: value.decode() if isinstance(value, bytes) else value
                                      for name, value in row.items()})

    def check_clickhouse(self, database, table):
        head, _, body = export(database, "--to", "clickhouse", "--table", table).partition(b"\n")
        self.assertEqual(head.decode(), insert_text(table))
        self.assertEqual(read_row_binary(body, types_of(table)), rows_of(database, table))

    def test_every_column_of_every_table_comes_back(self):
        for table in TABLES:
            for check in (self.check_csv, self.check_ndjson, self.check_clickhouse):
                with self.subTest(table=table, check=check.__name__):
                    self.assertGreater(len(rows_of(self.database, table)), 0)
                    check(self.database, table)

    def test_so_do_databases_that_hide_clients_and_names(self):
        for options in (("--client-addr", "none", "--sni", "none"),
                        ("--client-addr", "hash", "--sni", "hash"), ("--client-addr", "prefix")):
            database = self.path / f"hidden{len(options)}{options[1]}.db"
            ingest(database, *options)
            for check in (self.check_csv, self.check_ndjson, self.check_clickhouse):
                with self.subTest(options=options, check=check.__name__):
                    check(database, "flow")

    def test_bytes_that_are_no_text_become_text_in_ndjson_and_stay_in_rowbinary(self):
        database = self.path / "bytes.db"
        ingest(database)
        db = sqlite3.connect(database)
        db.execute("UPDATE flow SET sni = CAST(x'61ff62' AS TEXT) WHERE flow_id = 1")
        db.commit()
        db.close()
        first = json.loads(export(database, "--to", "ndjson").split(b"\n")[0])
        self.assertEqual(first["sni"], "a\ufffdb")
        self.check_clickhouse(database, "flow")

    def test_flow_is_the_table_and_files_are_named_by_o(self):
        out = self.path / "out"
        export(self.database, "--to", "csv", "-o", out)
        self.assertEqual(out.read_bytes(), export(self.database, "--to", "csv", "-o", "-"))
        self.assertEqual(out.read_bytes(), export(self.database, "--to", "csv", "--table", "flow"))

    def test_only_selected_flows_leave(self):
        rows = rows_of(self.database, "flow")
        middle = sorted(row["start_epoch_ns"] for row in rows)[len(rows) // 2]
        expected = [row for row in rows if row["start_epoch_ns"] >= middle // 10**9 * 10**9
                    and row["handshake"] == b"full"]
        self.assertGreater(len(expected), 0)
        body = export(self.database, "--to", "clickhouse", "--since", middle // 10**9, "--where",
                      "handshake = 'full' -- as a comment").partition(b"\n")[2]
        self.assertEqual(read_row_binary(body, types_of("flow")), expected)
        body = export(self.database, "--to", "clickhouse", "--until", "2001-01-01").partition(b"\n")[2]
        self.assertEqual(body, b"")

    def test_what_is_wrong_is_said(self):
        for status, words, *arguments in (
                (1, "--to", "-q"), (1, "no such format: xml", "--to", "xml"),
                (1, "there are flow, capture", "--to", "csv", "--table", "flows"),
                (1, "are for table flow", "--to", "csv", "--table", "capture", "--since", "-1h"),
                (1, "--url is for --to clickhouse", "--to", "csv", "--url", "http://127.0.0.1/"),
                (1, "either --url or -o", "--to", "clickhouse", "--url", "http://x/", "-o", "x"),
                (1, "no such column", "--to", "csv", "--where", "neither = 1"),
                (1, "block-rows", "--to", "csv", "--block-rows", "0"),
                (2, "cannot be written", "--to", "csv", "-o", self.path / "no" / "file"),
                (2, "cannot be written", "--to", "clickhouse", "-o", "/dev/full"),
                (2, "cannot be written", "--to", "csv", "-o", "/dev/full")):
            done = run("export", "-d", self.database, *arguments)
            self.assertIn(words, done.stderr.decode())
            self.assertEqual(done.returncode, status, arguments)
        self.assertEqual(run("export", "-d", self.path / "none.db", "--to", "csv").returncode, 2)

    def test_a_word_that_is_none_stops_the_export(self):
        database = self.path / "word.db"
        ingest(database)
        db = sqlite3.connect(database)
        db.execute("PRAGMA ignore_check_constraints = 1")
        db.execute("UPDATE flow SET handshake = 'resumed' || x'00' || 'x' WHERE flow_id = 9")
        db.commit()
        db.close()
        done = run("export", "-d", database, "--to", "clickhouse")
        self.assertEqual(done.returncode, 2)
        self.assertIn("column handshake of table flow", done.stderr.decode())

    def test_memory_does_not_grow_with_rows(self):
        database = self.path / "many.db"
        ingest(database)
        db = sqlite3.connect(database)
        names = [row[1] for row in db.execute("PRAGMA table_info(flow)")]
        values = [{"flow_id": "NULL", "flow_uid": "printf('%024x%08x', flow_id, n.value)"}
                  .get(name, name) for name in names]
        db.execute(f"INSERT INTO flow SELECT {', '.join(values)} FROM flow, json_each(?) AS n",
                   (json.dumps(list(range(200))),))
        db.commit()
        count, size = db.execute("SELECT count(*), (SELECT page_count * page_size FROM"
                                 " pragma_page_count, pragma_page_size) FROM flow").fetchone()
        db.close()
        self.assertGreater(size, 15 << 20)

        def peak(path):
            code = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True);"
                    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")
            done = subprocess.run(
                [sys.executable, "-c", code, PROGRAM, "export", "-q", "-d", path, "--to",
                 "clickhouse", "--block-rows", "1000", "-o", os.devnull],
                stdout=subprocess.PIPE, check=True)
            return int(done.stdout) << 10
        self.assertLess(peak(database) - peak(self.database), size // 5, count)


class Server127(Case):
    """Against a server that behaves, and many that do not."""

    def test_all_rows_arrive_once_in_blocks_of_the_size_asked_for(self):
        for size in (1, 37, 65536):
            database = self.database
            limit = ("--where", "flow_id <= 20") if size == 1 else ()
            with Server() as server:
                self.assertEqual(self.send(server, "--block-rows", size, *limit)[0], 0)
                if not limit:
                    self.expect_all(server)
                rows = len(server.rows("flow"))
                blocks = sum(table == "flow" for table, _ in server.blocks)
                self.assertEqual(blocks, -(-rows // size))
                self.assertEqual(server.blocks[-1][0], "capture")
                inserts = [s for s in server.settings if "insert_distributed_sync" in s]
                self.assertEqual(inserts, len(server.blocks) * [
                    {"database": "firstflight", "max_threads": "2", "insert_distributed_sync": "1"}])
                self.assertTrue(database.exists())

    def test_it_says_what_it_sent(self):
        with Server() as server:
            status, said = self.send(server, "--block-rows", 100)
            self.assertEqual(status, 0)
            rows = rows_of(self.database, "flow")
            size = sum(len(body) for table, body in server.blocks if table == "flow")
            self.assertIn(f"flow: {len(rows)} rows, {size} bytes, {-(-len(rows) // 100)} blocks"
                          " acknowledged", said)
            self.assertRegex(said, r"rows/s")
            self.assertEqual(self.send(server, "-q"), (0, ""))

    def test_one_table_when_named(self):
        with Server() as server:
            self.assertEqual(self.send(server, "--table", "early_data_rule")[0], 0)
            self.assertEqual({table for table, _ in server.blocks}, {"early_data_rule"})
            self.assertEqual(server.rows("early_data_rule"),
                             rows_of(self.database, "early_data_rule"))

    def broken(self, behave, counted=True):
        """With a server whose third block meets trouble, all rows arrive all the same."""
        with Server(behave) as server:
            status, said = self.send(server, "--block-rows", 40)
            self.assertEqual(status, 0, said)
            if counted:  # libcurl itself tries again where a connection of before has broken
                self.assertIn("1 time sent again", said)
            return server

    def test_a_connection_that_breaks_in_the_middle_of_a_block(self):
        def behave(handler, number, length):
            if number == 3:
                handler.rfile.read(length // 2)
                handler.break_off()
            return number == 3
        self.expect_all(self.broken(behave, counted=False))

    def test_a_connection_that_breaks_before_the_answer_gives_rows_twice_but_loses_none(self):
        def behave(handler, number, length):
            if number == 3:
                handler.server.blocks.append(("flow", handler.rfile.read(length)))
                handler.break_off()
            return number == 3
        server = self.broken(behave, counted=False)
        flows = [body for table, body in server.blocks if table == "flow"]
        self.assertEqual(flows[2], flows[3])  # the same block: ClickHouse knows it again
        del flows[3]
        self.assertEqual([row for body in flows for row in read_row_binary(body, types_of("flow"))],
                         rows_of(self.database, "flow"))

    def test_an_answer_that_is_cut(self):
        def behave(handler, number, length):
            if number == 3:
                handler.rfile.read(length)
                handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
                handler.close_connection = True
            return number == 3
        self.expect_all(self.broken(behave))

    def test_a_server_that_is_busy(self):
        for code, text in ((500, b"Code: 241, e.displayText() = Memory limit exceeded"), (503, b""),
                           (500, b"Code: 279, All connection tries failed"), (429, b"later")):
            def behave(handler, number, length, code=code, text=text):
                if number == 3:
                    handler.rfile.read(length)
                    handler.answer(code, text)
                return number == 3
            with self.subTest(code=code, text=text):
                self.expect_all(self.broken(behave))

    def test_a_server_that_sleeps(self):
        def behave(handler, number, length):
            if number == 1:
                handler.rfile.read(length)
                handler.server.stopping.wait(5)
                handler.close_connection = True
            return number == 1
        with Server(behave) as server:
            status, said = self.send(server, "--timeout", 1)
            self.assertEqual(status, 0)
            self.assertIn("imed out", said)
            self.expect_all(server)

    def test_a_server_that_answers_a_byte_at_a_time(self):
        def behave(handler, _, length):
            handler.rfile.read(length)
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
            while not handler.server.stopping.wait(0.05):
                handler.wfile.write(b"X: y\r\n")
            return True
        with Server(behave) as server:
            begun = time.monotonic()
            status, said = self.send(server, "--timeout", 1, "--retries", 1)
            self.assertEqual(status, 2, said)
            self.assertLess(time.monotonic() - begun, 10)

    def refused(self, behave, inserts, *arguments):
        """What is said when the first block is never taken, after so many tries."""
        with Server(behave) as server:
            status, said = self.send(server, *arguments)
            self.assertEqual((status, server.inserts), (2, inserts), said)
            self.assertEqual(server.blocks, [])
            return said

    def test_words_of_a_server_are_told_harmless_and_short(self):
        def behave(handler, _, length):
            handler.rfile.read(length)
            handler.answer(500, b"Code: 1,\x1b]0;owned\x07 \xff\xfe \xe2\x80\xae%s%n\r\n" + 9000 * b"A")
            return True
        said = self.refused(behave, 4)
        self.assertIn("answers 500: Code: 1,\\x1b]0;owned", said)
        self.assertIn("%s%n", said)
        self.assertTrue(said.replace("\n", "").isprintable())
        self.assertLess(len(said), 3000)
        self.assertIn("flow: 0 rows, 0 bytes, 0 blocks acknowledged", said)

    def test_what_is_refused_for_good_is_asked_once(self):
        for code, text in ((404, b"Code: 60, e.displayText() = Table flow_load doesn't exist"),
                           (500, b"Code: 33, e.displayText() = Cannot read all data"),
                           (500, b"Code: 62, Syntax error"), (403, b"no"), (302, b"")):
            def behave(handler, _, length, code=code, text=text):
                handler.rfile.read(length)
                handler.answer(code, text)
                return True
            with self.subTest(text=text):
                self.assertIn(f"answers {code}: " + text.decode(), self.refused(behave, 1))

    def test_an_answer_without_end_is_not_taken(self):
        def behave(handler, _, length):
            handler.rfile.read(length)
            handler.send_response(500)
            handler.end_headers()
            for _ in range(10000):
                handler.wfile.write(bytes(10000))
            return True
        self.assertIn("answers more than", self.refused(behave, 1))

    def test_nobody_there(self):
        with Server() as server:
            url = server.url()
        begin = time.monotonic()
        done = run("export", "-d", self.database, "--to", "clickhouse", "--url", url, "--retries", "2")
        said = done.stderr.decode()
        self.assertEqual(done.returncode, 2)
        self.assertLess(time.monotonic() - begin, SECONDS / 2)
        self.assertIn("2 times sent again", said)
        self.assertIn("flow: 0 rows, 0 bytes, 0 blocks acknowledged", said)
        self.assertRegex(said.splitlines()[-1], re.escape(url.partition("/?")[0]) +
                         ": .*Couldn't connect.*does ClickHouse run there.*8123.*--url")

    def test_nothing_is_sent_to_a_table_that_does_not_fit(self):
        def without(table):
            return [column for column in types_of(table) if column[0] != "ja4"]

        def other_words(table):
            return [(name, type_.replace("'full' = 1, 'resumed' = 2", "'resumed' = 1, 'full' = 2"))
                    for name, type_ in types_of(table)]

        def not_nullable(table):
            return [(name, re.sub(r"^Nullable\((.*)\)$", r"\1", type_) if name == "sni" else type_)
                    for name, type_ in types_of(table)]

        def no_table(_):
            return []
        for describe, words in ((without, "no column ja4"), (other_words, "column handshake as"),
                                (not_nullable, "column sni as String"), (no_table, "no column")):
            with self.subTest(words=words), Server(describe=describe) as server:
                status, said = self.send(server)
                self.assertEqual((status, server.inserts), (2, 0))
                self.assertIn(words, said)
                self.assertIn("schema/clickhouse/README.md", said)

    def test_tables_of_current_releases_and_of_newer_schemas_fit(self):
        def current(table):
            return [(name, f"LowCardinality({type_})" if type_.endswith("String)") else
                     re.sub(r"(\d)(\)+)$", r"\1, 'new word' = 99\2", type_)
                     if "Enum8" in type_ else type_)
                    for name, type_ in reversed(types_of(table) + [("new", "Nullable(Int64)")])]
        with Server(describe=current) as server:
            status, said = self.send(server)
            self.assertEqual(status, 0, said)
            self.expect_all(server)

    def test_passwords_come_from_the_environment_or_a_file(self):
        secret = "c&%= ä:x"
        for url in ("http://u:p@127.0.0.1:1/", "http://127.0.0.1:1/?user=u&password=p",
                    "http://127.0.0.1:1/?x=y&Password=p"):
            done = run("export", "-d", self.database, "--to", "clickhouse", "--url", url)
            self.assertEqual(done.returncode, 1)
            self.assertIn("CLICKHOUSE_PASSWORD", done.stderr.decode())
            self.assertNotIn("=p", done.stderr.decode())
        with Server() as server:
            self.assertEqual(self.send(server, environment={
                "CLICKHOUSE_USER": "me", "CLICKHOUSE_PASSWORD": secret})[0], 0)
            self.assertEqual(server.authorizations,
                             {"Basic " + base64.b64encode(f"me:{secret}".encode()).decode()})
        with Server() as server:
            file = self.path / "url"
            file.write_text(server.url() + "&user=me&password=p\n", encoding="utf-8")
            done = run("export", "-q", "-d", self.database, "--to", "clickhouse", "--url", f"@{file}")
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            self.assertEqual(server.authorizations, {None})
            self.assertTrue(all(s["password"] == "p" for s in server.settings))
            self.expect_all(server)
        done = run("export", "-d", self.database, "--to", "clickhouse", "--url", "@/no/such/file")
        self.assertEqual(done.returncode, 2)

    def test_names_are_found_in_the_sandbox(self):
        with Server() as server:
            status, said = self.send(server, "-v", host="localhost")
            self.assertEqual(status, 0, said)
            self.expect_all(server)

    def test_ctrl_c_ends_it_soon(self):
        def behave(handler, number, length):
            if number == 2:
                handler.rfile.read(length)
                handler.server.reached = True
                handler.server.stopping.wait(30)
            return number == 2
        with Server(behave) as server:
            server.reached = False
            process = subprocess.Popen(
                [PROGRAM, "export", "-d", self.database, "--to", "clickhouse", "--url", server.url(),
                 "--block-rows", "50"], stderr=subprocess.PIPE)
            deadline = time.monotonic() + SECONDS
            while not server.reached and time.monotonic() < deadline:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            said = process.communicate(timeout=20)[1].decode()
            self.assertEqual(process.returncode, 130, said)
            self.assertIn("flow: 50 rows", said)


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    loader = unittest.TestLoader()
    suite = unittest.TestSuite([loader.loadTestsFromTestCase(Files)])
    if b"libcurl not built in" in run("--version").stdout:
        print("export --url: skipped, built without libcurl")
    else:
        suite.addTests(loader.loadTestsFromTestCase(Server127))
    return 0 if unittest.TextTestRunner().run(suite).wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main())
