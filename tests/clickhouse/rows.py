# SPDX-License-Identifier: Apache-2.0
"""Rows of a database as the export has them, read by sqlite3, against those that ClickHouse has.

    for difference in rows.differences(query, [database], "flow"): ...

Every column of every row is compared; rows are told by the key of their table.
"""
import pathlib
import re
import sqlite3

SCHEMA = pathlib.Path(__file__).resolve().parent.parent.parent / "schema" / "clickhouse"
COLUMNS_AT_ONCE = 12  # with a buffer for each column of each part, all need gigabytes
SHOWN = 5
KEYS = {"flow": ["flow_uid"], "capture": ["point", "content_hash"],
        "drop_count": ["point", "capture_path", "reason"],
        "half_open": ["point", "server_ip", "server_port", "second_epoch"],
        "early_data_rule": ["pattern"]}
ESCAPED = {"b": "\b", "f": "\f", "r": "\r", "n": "\n", "t": "\t", "0": "\0"}


def columns_of(table, release="18.16"):
    """Names and types of the columns of a table that rows go into."""
    ddl = (SCHEMA / f"{release}.sql").read_text(encoding="utf-8")
    (text,) = re.findall(rf"^CREATE TABLE IF NOT EXISTS firstflight\.{table}_load .*?\(\n(.*?)\n\)",
                         ddl, re.MULTILINE | re.DOTALL)
    return [tuple(line.strip().rstrip(",").split(" ", 1)) for line in text.split("\n")]


def exported(database, table):
    """All rows as sqlite3 has them, with what the export adds of captures: tuples."""
    names = [name for name, _ in columns_of(table)]
    db = sqlite3.connect(database)
    db.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    own = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
    of_capture = {"capture_path": "path", "capture_begin_epoch_ns": "file_begin_epoch_ns",
                  "capture_region": "region", "capture_labels": "labels"}
    values = ", ".join(f"t.{name}" if name in own else f"c.{of_capture.get(name, name)}"
                       for name in names)
    join = " JOIN capture AS c USING (capture_id)" if set(names) - own else ""
    rows = db.execute(f"SELECT {values} FROM {table} AS t{join}").fetchall()
    db.close()
    return rows


def value_of(text, type_):
    """What a cell of TabSeparated says."""
    if text == "\\N":
        return None
    if "Int" in type_:
        return int(text)
    if "Float64" in type_:
        return float(text)
    return re.sub(r"\\(.)", lambda found: ESCAPED.get(found[1], found[1]), text, flags=re.DOTALL)


def there(query, table):
    """The rows that a server has, as dictionaries by key; two with one key are an error."""
    columns = columns_of(table)
    types, rows = dict(columns), {}
    for begin in range(0, len(columns), COLUMNS_AT_ONCE):
        names = KEYS[table] + [name for name, _ in columns[begin:begin + COLUMNS_AT_ONCE]
                               if name not in KEYS[table]]
        seen = set()
        for cells in query(f"SELECT {', '.join(names)} FROM firstflight.{table}"):
            row = {name: value_of(cell, types[name]) for name, cell in zip(names, cells)}
            key = tuple(row[name] for name in KEYS[table])
            if key in seen:
                raise AssertionError(f"{table}: {key} is there twice")
            seen.add(key)
            rows.setdefault(key, {}).update(row)
    return rows


def differences(query, databases, table="flow"):
    """What is not the same, as texts, at most a few; query(sql) gives rows as lists of cells."""
    names = [name for name, _ in columns_of(table)]
    expected = {}
    for database in databases:
        for row in exported(database, table):
            values = dict(zip(names, row))
            expected[tuple(values[name] for name in KEYS[table])] = values
    found = there(query, table)
    told = [f"{table} {key} {'is missing' if key in expected else 'should not be there'}"
            for key in list(expected.keys() ^ found.keys())[:SHOWN]]
    for key in expected.keys() & found.keys():
        told += [f"{table} {key} {name}: {found[key].get(name)!r} instead of {value!r}"
                 for name, value in expected[key].items() if found[key].get(name) != value]
        if len(told) > SHOWN:
            break
    return told
