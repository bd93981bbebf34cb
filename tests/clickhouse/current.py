#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""schema/clickhouse/current.sql and the questions in a ClickHouse of today, without a server.

usage: current.py FIRSTFLIGHT

libchdb.so is ClickHouse as a library. It is taken from $FIRSTFLIGHT_CHDB; else, only when
FIRSTFLIGHT_LONG is set, npm brings it (170 MB) into a directory that is thrown away. What it has not
is a coordinator and other servers: ON CLUSTER is left out, tables are not replicated, and
Distributed has one shard. Exit status 77 says skipped.
"""
import ctypes
import os
import pathlib
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path += [str(HERE), str(HERE.parent / "bench")]
import cluster  # noqa: E402
import database  # noqa: E402
import questions  # noqa: E402
import rows  # noqa: E402

TOP = HERE.parent.parent
PROGRAM = pathlib.Path(sys.argv[1]).resolve()
PACKAGE, LIBRARY = "@chdb/lib-linux-x64-gnu", "libchdb.so"
TABLES = ("flow", "capture", "drop_count", "half_open", "early_data_rule")
FLOWS = 30000
CONFIG = """<clickhouse>
    <path>{path}/</path>
    <timezone>UTC</timezone>
    <tcp_port>9000</tcp_port>
    <remote_servers><firstflight><shard>
        <internal_replication>true</internal_replication>
        <replica><host>127.0.0.1</host><port>9000</port></replica>
    </shard></firstflight></remote_servers>
</clickhouse>
"""  # no port is opened: equal ones tell that the shard is this process itself


def library(directory):
    """The path of the library; None where there is none, and it has been said why."""
    if "FIRSTFLIGHT_CHDB" in os.environ:
        return os.environ["FIRSTFLIGHT_CHDB"]
    if "FIRSTFLIGHT_LONG" not in os.environ:
        print("chdb: skipped, FIRSTFLIGHT_CHDB does not name libchdb.so")
        return None
    if shutil.which("npm") is None:
        print("chdb: skipped, there is no npm to bring it")
        return None
    print(f"Installing {PACKAGE} with npm into {directory}", flush=True)
    subprocess.run(["npm", "install", "--silent", "--prefix", directory, PACKAGE], check=False,
                   stdout=subprocess.DEVNULL)
    path = pathlib.Path(directory) / "node_modules" / PACKAGE / LIBRARY
    if not path.exists():
        print("chdb: skipped, npm cannot bring it")
        return None
    return path


class Engine:
    """ClickHouse in this process; there can be one."""

    def __init__(self, path, directory):
        self.directory = directory
        config = directory / "config.xml"
        config.write_text(CONFIG.format(path=directory), encoding="utf-8")
        self.chdb = ctypes.CDLL(str(path))
        for name, result in (("buffer", ctypes.c_void_p), ("length", ctypes.c_size_t),
                             ("error", ctypes.c_char_p)):
            function = getattr(self.chdb, f"chdb_result_{name}")
            function.restype, function.argtypes = result, [ctypes.c_void_p]
        self.chdb.chdb_connect.restype = ctypes.POINTER(ctypes.c_void_p)
        self.chdb.chdb_query_n.restype = ctypes.c_void_p
        self.chdb.chdb_query_n.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t,
                                           ctypes.c_char_p, ctypes.c_size_t]
        self.chdb.chdb_destroy_query_result.argtypes = [ctypes.c_void_p]
        words = [b"clickhouse", f"--config-file={config}".encode()]
        self.connection = self.chdb.chdb_connect(
            len(words), (ctypes.c_char_p * len(words))(*words))
        if not self.connection:
            raise cluster.ServerError("chdb does not start")

    def query(self, sql):
        """Rows of a query as lists of text."""
        sql, form = sql.encode(), b"TabSeparated"
        result = self.chdb.chdb_query_n(self.connection[0], sql, len(sql), form, len(form))
        error = self.chdb.chdb_result_error(result)
        length = self.chdb.chdb_result_length(result)
        data = ctypes.string_at(self.chdb.chdb_result_buffer(result), length) if length else b""
        words = error.decode() if error else None
        self.chdb.chdb_destroy_query_result(result)
        if words is not None:
            raise cluster.ServerError(words)
        text = data.decode("utf-8", "surrogateescape")
        return [line.split("\t") for line in text.split("\n")[:-1]]

    def create_schema(self):
        """All statements of current.sql but for what needs a coordinator."""
        text = "\n".join(line for line in (rows.SCHEMA / "current.sql").read_text(encoding="utf-8")
                         .splitlines() if not line.startswith("--"))
        text = text.replace(" ON CLUSTER firstflight", "")
        text = re.sub(r"ReplicatedReplacingMergeTree\(\s*'[^']*', '\{replica\}'(, )?",
                      "ReplacingMergeTree(", text)
        self.query("DROP DATABASE IF EXISTS firstflight")
        for statement in text.split(";\n"):
            if statement.strip():
                self.query(statement)
        self.query("USE firstflight")

    def load(self, path, *words):
        """What `export -o FILE` writes is a query and its rows, which are taken from a file here."""
        for table in TABLES:
            done = subprocess.run(
                [PROGRAM, "export", "-q", "-d", path, "--to", "clickhouse", "--table", table, "-o", "-",
                 *(words if table == "flow" else ())], check=True, stdout=subprocess.PIPE)
            insert, _, data = done.stdout.partition(b"\n")
            (self.directory / "rows").write_bytes(data)
            self.query(insert.decode().replace(" FORMAT ", f" FROM INFILE '{self.directory}/rows'"
                                               " COMPRESSION 'none' FORMAT "))


def expect_rows(engine, differences, *databases):
    for table in TABLES:
        for told in rows.differences(engine.query, databases, table):
            differences.expect(False, told)


def compare_columns(engine, differences):
    """What a server says of its tables is what the export asks of them."""
    for table in TABLES:
        described = [(row[0], rows.value_of(row[1], "String")) for row in engine.query(f"DESCRIBE TABLE firstflight.{table}_load")]
        wanted = rows.columns_of(table)
        plain = [(name, re.sub(r"LowCardinality\((.*)\)$", r"\1", type_)) for name, type_ in described]
        differences.expect(plain == wanted, f"{table}_load: {set(plain) ^ set(wanted)}")


def check_times_and_addresses(engine, differences, path):
    db = sqlite3.connect(path)
    expected = db.execute(
        "SELECT flow_uid, strftime('%Y-%m-%d %H:%M:%S', start_epoch_ns / 1000000000, 'unixepoch')"
        " || printf('.%09d', start_epoch_ns % 1000000000), client_ip, server_ip FROM flow"
        " ORDER BY flow_uid").fetchall()
    db.close()
    found = engine.query("SELECT flow_uid, start_time_ns, replaceOne(toString(client_address),"
                         " '::ffff:', ''), replaceOne(toString(server_address), '::ffff:', '')"
                         " FROM firstflight.flow ORDER BY flow_uid")
    differences.expect([list(row) for row in expected] == found, "times or addresses")


def check_conditions(engine, differences):
    """A window of time leaves partitions and parts of them unread, through the view and FINAL."""
    plan = " ".join(line[0].strip() for line in engine.query(
        "EXPLAIN indexes = 1 SELECT avg(perceived_ns) FROM firstflight.flow"
        " WHERE start_time >= '2026-06-03 00:00:00'"))
    for index in ("Min-Max", "PrimaryKey"):
        differences.expect(f"{index} Keys: start_time Condition: (start_time in" in plan,
                           f"condition on start_time: {plan}")


def run(engine, directory, differences):
    sample, made = directory / "sample.db", directory / "made.db"
    subprocess.run([PROGRAM, "ingest", "-q", "-d", sample, "--no-labels", "--labels",
                    "{region}/{site}/*", TOP / "samples/article"], check=True)
    engine.create_schema()
    compare_columns(engine, differences)
    engine.load(sample)
    expect_rows(engine, differences, sample)
    check_times_and_addresses(engine, differences, sample)
    for words in ((), ("--block-rows", "37")):
        engine.load(sample, *words)
        expect_rows(engine, differences, sample)
    database.make(made, FLOWS)
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    questions.vary(made, random.Random(seed))
    engine.create_schema()
    engine.load(made)
    engine.load(made, "--until", "2026-06-02T21:30")
    check_conditions(engine, differences)
    questions.compare_all(PROGRAM, made, engine.query, differences)


def main():
    with tempfile.TemporaryDirectory() as temporary:
        path = library(temporary)
        if path is None:
            return cluster.SKIPPED
        directory = pathlib.Path(temporary)
        (directory / "data").mkdir()
        differences = questions.Differences()
        engine = Engine(path, directory / "data")
        print("ClickHouse", engine.query("SELECT version()")[0][0], flush=True)
        run(engine, directory, differences)
    print(f"{len(differences.found)} differences")
    return 1 if differences.found else 0


if __name__ == "__main__":
    sys.exit(main())
