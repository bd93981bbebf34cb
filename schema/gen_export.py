#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes from the schema what `firstflight export` writes, and ClickHouse's tables for it.

usage: gen_export.py flow.sql header OUT_H           C: the columns of each table, for export_table.c
       gen_export.py flow.sql ddl 18.16|current OUT  SQL for ClickHouse, see clickhouse/README.md

The SQL runs in SQLite and the columns are read back from there, as gen_row.py does, so that the two
can never differ.
"""
import pathlib
import re
import sqlite3
import sys

# What rows of these tables say of the capture they come from, since capture_id is a number of one
# database only: SQL over table capture, and the name that it has beside the table's own columns.
OF_CAPTURE = [("point", "point"), ("path", "capture_path"),
              ("file_begin_epoch_ns", "capture_begin_epoch_ns"), ("region", "capture_region"),
              ("labels", "capture_labels")]

# A file that grows gets another content_hash, and may lie elsewhere: its point and the time of its
# first packet tell it. Where there is no packet, the path must do.
CAPTURE_KEY = "point, ifNull({begin}, 0), if(isNull({begin}), {path}, '')"
FLOW_KEY = CAPTURE_KEY.format(begin="capture_begin_epoch_ns", path="capture_path")

# Per table: what tells its rows apart, what of a row goes to one shard, and which of two rows with
# one key stays: that with the greater version, else the one that came last. flow_uid is a hash of
# start_epoch_ns too, so a flow has one start, and lies in one partition and on one shard.
TABLES = {
    "flow": {"key": "start_time, flow_uid", "shard": "cityHash64(flow_uid)",
             "version": "end_at_ns", "order": "flow_id"},
    "capture": {"key": CAPTURE_KEY.format(begin="file_begin_epoch_ns", path="path"),
                "shard": "cityHash64(point)", "version": "content_len", "order": "capture_id"},
    "drop_count": {"key": FLOW_KEY + ", reason", "shard": "cityHash64(point)",
                   "version": "packets", "order": "capture_id, reason"},
    "half_open": {"key": "point, server_ip, server_port, second_epoch",
                  "shard": "cityHash64(point)", "version": None,
                  "order": "capture_id, server_ip, server_port, second_epoch"},
    "early_data_rule": {"key": "pattern", "shard": "cityHash64(pattern)", "version": None,
                        "order": "pattern"},
}

# Columns that ClickHouse makes itself, by release.
ADDRESS = {
    "18.16": "IPv6StringToNum(if(position({0}, ':') > 0, {0}, concat('::ffff:', {0})))",
    "current": "toIPv6OrDefault({0})",
}
NETWORK = "replaceRegexpOne({0}, '/.*', '')"
START_TIME = "toDateTime(intDiv(start_epoch_ns, 1000000000), 'UTC')"

# Texts with so many different values that a dictionary of them does not pay.
MANY_VALUES = re.compile(r"(_uid|_id|_ip|_prefix|_hash|_key_name|path|labels|pattern|comment|sni"
                         r"|retried_by|damage|ingested_at)$")


class Column:
    """A column as RowBinary and ClickHouse have it."""

    def __init__(self, name, affinity, nullable, check, comment):
        self.name, self.nullable, self.comment = name, nullable, comment
        self.words = re.findall(r"'([^']*)'", check) if affinity == "TEXT" else []
        length = re.search(r"length\(\w+\) = (\d+)", check)
        self.length = int(length[1]) if length else 0
        if affinity == "INTEGER":
            small = re.fullmatch(r"\w+ = \d+( OR \w+ = \d+)*", check)
            self.kind, self.type = ("UINT8", "UInt8") if small else ("INT64", "Int64")
        elif affinity == "REAL":
            self.kind, self.type = "FLOAT64", "Float64"
        elif self.words:
            numbered = ", ".join(f"'{word}' = {n}" for n, word in enumerate(self.words, 1))
            self.kind, self.type = "ENUM8", f"Enum8({numbered})"
        elif self.length:
            self.kind, self.type = "FIXED", f"FixedString({self.length})"
        else:
            self.kind, self.type = "STRING", "String"

    def clickhouse_type(self, low_cardinality=False):
        text = f"Nullable({self.type})" if self.nullable else self.type
        few = low_cardinality and self.kind == "STRING" and not MANY_VALUES.search(self.name)
        return f"LowCardinality({text})" if few else text


def table_columns(db, table):
    """The columns of one table of SQLite, with what its text says of each."""
    (sql,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    info = db.execute(f"PRAGMA table_info({table})").fetchall()
    names = "|".join(name for _, name, *_ in info)
    parts = re.split(rf"^    ({names}) ", sql, flags=re.MULTILINE)
    texts = dict(zip(parts[1::2], parts[2::2]))
    columns = []
    for _, name, affinity, not_null, _, key in info:
        code = re.sub(r"--.*", "", texts[name])
        comment = " ".join(re.findall(r"^        -- (.*)", texts[name], re.MULTILINE))
        check = re.search(r"CHECK \((.*)\)", code, re.DOTALL)
        columns.append(Column(name, affinity, not not_null and not key, check[1] if check else "",
                              re.sub(r" \[[^]]*\]$", "", comment)))
    return columns


def exported_columns(db, table):
    """Pairs of a column and the SQL of its value, with c for table capture and t for its own."""
    columns = [(column, f"t.{column.name}") for column in table_columns(db, table)]
    own = {column.name for column, _ in columns}
    if table == "capture" or "capture_id" not in own:
        return columns
    labels = [(name, name) for name in ("site", "host") if name not in own]
    of_capture = {column.name: column for column in table_columns(db, "capture")}
    for source, name in OF_CAPTURE + labels:
        column = of_capture[source]
        columns.append((Column(name, {"INT64": "INTEGER"}.get(column.kind, "TEXT"),
                               column.nullable, "", "of its capture: " + column.comment),
                        f"c.{source}"))
    return columns


def select_text(table, columns):
    """In an order that is the same for the same rows. CROSS JOIN keeps SQLite from turning it round."""
    values = ", ".join(f"{value} AS {column.name}" for column, value in columns)
    source = "selected" if table == "flow" else table
    join = (" CROSS JOIN capture AS c ON c.capture_id = t.capture_id"
            if any(value.startswith("c.") for _, value in columns) else "")
    order = ", ".join(f"t.{name}" for name in TABLES[table]["order"].split(", "))
    return f"SELECT {values} FROM {source} AS t{join} ORDER BY {order}"


# -- C --

def c_lines(text):
    words, lines = text.split(" "), [""]
    for word in words:
        if len(lines[-1]) + len(word) > 85:
            lines.append("")
        lines[-1] += word + " "
    lines[-1] = lines[-1][:-1]
    return "\n".join(f'    "{line}"' for line in lines)


def c_table(table, columns):
    rows = "".join(
        f'    {{ "{column.name}",\n{c_lines(column.clickhouse_type())},\n'
        f"      EXPORT_{column.kind}, {'true' if column.nullable else 'false'}, {column.length} }},\n"
        for column, _ in columns)
    return (f"\nstatic const struct export_column {table.upper()}_COLUMNS[] = {{\n{rows}}};\n"
            f"\nstatic const char {table.upper()}_SELECT[] =\n"
            f"{c_lines(select_text(table, columns))};\n")


def header(db):
    tables = {table: exported_columns(db, table) for table in TABLES}
    entries = "".join(
        f'    {{ "{table}", {table.upper()}_SELECT, {table.upper()}_COLUMNS,\n'
        f"      {len(columns)} }},\n" for table, columns in tables.items())
    return ("/* SPDX-License-Identifier: Apache-2.0 */\n"
            "/* Made by schema/gen_export.py from schema/flow.sql; do not edit. */\n"
            "#ifndef EXPORT_COLUMNS_H\n#define EXPORT_COLUMNS_H\n"
            "/* The tables that can be exported, for export_table.c, which includes the types. */\n"
            "\n/* C99 promises only 4095 characters in a string; compilers take more. */\n"
            '#pragma GCC diagnostic ignored "-Woverlength-strings"\n'
            + "".join(c_table(*item) for item in tables.items())
            + f"\nstatic const struct export_table TABLES[] = {{\n{entries}}};\n\n#endif\n")


# -- ClickHouse --

DDL_HEAD = """\
-- SPDX-License-Identifier: Apache-2.0
-- Made by schema/gen_export.py from schema/flow.sql; do not edit.
--
-- Tables of ClickHouse for `firstflight export --to clickhouse`, for {releases}.
-- README.md beside this file says how they work together, and what servers must be told before:
-- a cluster named firstflight, macros shard and replica, and ZooKeeper or Keeper.
-- What each column means stands in ../flow.sql.

CREATE DATABASE IF NOT EXISTS firstflight ON CLUSTER firstflight;
"""


def column_line(column, release, full):
    """`full`: with all that only the table which keeps the values has."""
    line = f"    {column.name} {column.clickhouse_type(release == 'current')}"
    if release == "current" and full:
        line += f" CODEC({'Delta, ' if column.name == 'start_epoch_ns' else ''}ZSTD(1))"
    return line


def made_columns(table, release):
    """Lines of columns that ClickHouse computes, and their names."""
    version = TABLES[table]["version"]
    codec = " CODEC(ZSTD(1))" if release == "current" else ""
    made = {"row_version": f"UInt64 MATERIALIZED toUInt64({version}){codec}"} if version else {}
    if table == "flow":
        codec = " CODEC(Delta, ZSTD(1))" if release == "current" else ""
        made["start_time"] = f"DateTime('UTC') MATERIALIZED {START_TIME}{codec}"
        if release == "current":
            made["start_time_ns"] = "ALIAS fromUnixTimestamp64Nano(start_epoch_ns, 'UTC')"
        made["client_address"] = "ALIAS " + ADDRESS[release].format(NETWORK.format("client_ip"))
        made["server_address"] = "ALIAS " + ADDRESS[release].format("server_ip")
    return made


def ddl_table(table, columns, release):
    rules = TABLES[table]
    made = made_columns(table, release)
    local = ",\n".join([column_line(column, release, True) for column, _ in columns]
                       + [f"    {name} {what}" for name, what in made.items()])
    load = ",\n".join(column_line(column, release, False) for column, _ in columns)
    partition = "\nPARTITION BY toYYYYMMDD(start_time)" if table == "flow" else ""
    version = ", row_version" if rules["version"] else ""
    shown = ", ".join(["*"] + [name for name in made if name != "row_version"])
    return f"""
-- {table}: what one shard keeps

CREATE TABLE IF NOT EXISTS firstflight.{table}_local ON CLUSTER firstflight (
{local}
) ENGINE = ReplicatedReplacingMergeTree(
    '/clickhouse/tables/{{shard}}/firstflight/{table}_local', '{{replica}}'{version}){partition}
ORDER BY (
    {rules['key']});

-- {table}: rows go in here, each to its shard

CREATE TABLE IF NOT EXISTS firstflight.{table}_load ON CLUSTER firstflight (
{load}
) ENGINE = Distributed(firstflight, firstflight, {table}_local, {rules['shard']});

-- {table}: read it here, each row once, from all shards

CREATE VIEW IF NOT EXISTS firstflight.{table}_once ON CLUSTER firstflight AS
SELECT {shown}
FROM firstflight.{table}_local FINAL;

CREATE TABLE IF NOT EXISTS firstflight.{table} ON CLUSTER firstflight
AS firstflight.{table}_once
ENGINE = Distributed(firstflight, firstflight, {table}_once);
"""


def ddl(db, release):
    releases = {"18.16": "the release of Debian 12, 18.16", "current": "releases of today"}[release]
    return DDL_HEAD.format(releases=releases) + "".join(
        ddl_table(table, exported_columns(db, table), release) for table in TABLES)


def main():
    flow_sql, what, *rest = sys.argv[1:]
    db = sqlite3.connect(":memory:")
    db.executescript(pathlib.Path(flow_sql).read_text(encoding="utf-8"))
    text = header(db) if what == "header" else ddl(db, rest[0])
    pathlib.Path(rest[-1]).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
