#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes C from the schema: structs of rows for everyone, statements and bindings for store.c.

usage: gen_row.py flow.sql views.sql early_data_rules.csv OUT_H OUT_SQL_H

The SQL runs in SQLite and the columns are read back from there, so no list of columns exists in C.
"""
import pathlib
import re
import sqlite3
import sys

# Tables whose rows the program writes as structs, and what happens when their key is there.
ROW_TABLES = {"capture": "ABORT", "flow": "DO NOTHING", "server_profile": "REPLACE"}
# Where columns of flow come from, as their comments say, that `judge` makes again from facts.
JUDGED_SOURCES = {"judge", "timing"}
KIND = {"INTEGER": "integer", "REAL": "real", "TEXT": "text"}

HEADER = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* Made by schema/gen_row.py from schema/flow.sql; do not edit. */
#ifndef FLOW_ROW_H
#define FLOW_ROW_H
/* Rows of the database as values: one member per column. {{ 0 }} is a row of NULLs. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {{ SCHEMA_APPLICATION_ID = {application_id}, SCHEMA_VERSION = {version} }};

struct row_integer {{
    bool has; /* false = NULL */
    int64_t value;
}};

struct row_real {{
    bool has; /* false = NULL */
    double value;
}};

struct row_text {{
    const char *at; /* NULL = NULL; never owned by the row */
    size_t len;
    bool is_word; /* ASCII that never changes and lives as long as the program */
}};
{structs}
/* The columns of a flow that can be judged again from its facts. */
{judged_list}
#endif
"""

SQL_HEADER = """\
/* SPDX-License-Identifier: Apache-2.0 */
/* Made by schema/gen_row.py from the files of schema/; do not edit. */
#ifndef FLOW_ROW_SQL_H
#define FLOW_ROW_SQL_H
/*
 * Statements for store.c, which defines bind_integer(), bind_real() and bind_text() before: they
 * bind a value in place of the one that is bound.
 */
#include "flow_row.h"

/* C99 promises only 4095 characters in a string; compilers take more. */
#pragma GCC diagnostic ignored "-Woverlength-strings"
{strings}
{functions}
#endif
"""


def column_list(db, table):
    return [(name, KIND[type_]) for _, name, type_, *_ in db.execute(f"PRAGMA table_info({table})")]


def row_struct(table, columns):
    members = "".join(f"    struct row_{kind} {name};\n" for name, kind in columns)
    return f"\nstruct {table}_row {{\n{members}}};\n"


def c_string(name, text):
    lines = text.replace("\\", "\\\\").replace('"', '\\"').splitlines()
    body = "\n".join(f'    "{line}\\n"' for line in lines)
    return f"\nstatic const char {name}[] =\n{body};\n"


def insert_text(table, columns, on_conflict):
    names = ",\n    ".join(name for name, _ in columns)
    marks = ", ".join("?" for _ in columns)
    # OR IGNORE would also leave out rows that break a CHECK, without a word.
    insert, end = ("INSERT", "\nON CONFLICT DO NOTHING") if on_conflict == "DO NOTHING" else (
        f"INSERT OR {on_conflict}", "")
    return f"{insert} INTO {table} (\n    {names})\nVALUES ({marks}){end}"


def bind_function(name, table, columns):
    calls = " &&\n           ".join(
        f"bind_{kind}(statement, {number}, &row->{name}, &bound->{name})"
        for number, (name, kind) in enumerate(columns, 1))
    indent = " " * len(f"static bool bind_{name}(")
    return (f"\n/* Binds a row where `bound` is: NULLs after the bindings were cleared. False when a\n"
            f" * value could not be bound: no memory. */\n"
            f"static bool bind_{name}(sqlite3_stmt *statement, const struct {table}_row *row,\n"
            f"{indent}const struct {table}_row *bound)\n"
            f"{{\n    return {calls};\n}}\n")


def judged_columns(db, columns):
    """Those of flow whose comment ends in a source of JUDGED_SOURCES, as '[judge]'."""
    (sql,) = db.execute("SELECT sql FROM sqlite_schema WHERE name = 'flow'").fetchone()
    names = "|".join(name for name, _ in columns)
    parts = re.split(rf"^    ({names}) ", sql, flags=re.MULTILINE)
    sources = {name: set(re.findall(r"\[([^\]]*)\]", text)[-1].split(", "))
               for name, text in zip(parts[1::2], parts[2::2])}
    return [(name, kind) for name, kind in columns if sources[name] & JUDGED_SOURCES]


def judged_list(judged):
    lines = "".join(f" \\\n    {kind.upper()}({name})" for name, kind in judged)
    return f"#define FLOW_JUDGED(INTEGER, REAL, TEXT){lines}\n"


def update_text(judged):
    names = ",\n    ".join(f"{name} = ?" for name, _ in judged)
    return f"UPDATE flow SET\n    {names}\nWHERE flow_id = ?"


def replace_text(table, columns):
    """For the binding of a whole row, whose first column is its key: parameters are numbered as
    columns are."""
    key, *rest = [f"{name} = ?{number}" for number, (name, _) in enumerate(columns, 1)]
    names = ",\n    ".join(rest)
    return f"UPDATE {table} SET\n    {names}\nWHERE {key}"


def select_text(judged):
    names = ",\n    ".join(name for name, _ in judged)
    return f"SELECT\n    {names}\nFROM flow WHERE flow_id = ?"


def statements(db, kind):
    """The texts as SQLite keeps them, comments inside them included, in the order of the file."""
    rows = db.execute("SELECT sql FROM sqlite_schema WHERE type = ? AND sql IS NOT NULL "
                      "ORDER BY rowid", (kind,))
    return "".join(sql + ";\n" for (sql,) in rows)


def starter_rules(path):
    """The rules that a new database begins with; rules.c reads the same file."""
    lines = (line for line in path.read_text(encoding="utf-8").splitlines()
             if line and not line.startswith(("#", "pattern,")))
    rows = ",\n    ".join("('{}', {:d}, '{}')".format(pattern, allowed == "yes", comment)
                          for pattern, allowed, comment in (line.split(",", 2) for line in lines))
    return f"INSERT INTO early_data_rule (pattern, allowed, comment) VALUES\n    {rows}"


def if_missing(indexes):
    return indexes.replace(" INDEX ", " INDEX IF NOT EXISTS ")


def main():
    flow_sql, views_sql, rules_csv, out_h, out_sql_h = sys.argv[1:]
    db = sqlite3.connect(":memory:")
    for path in (flow_sql, views_sql):
        db.executescript(pathlib.Path(path).read_text(encoding="utf-8"))
    columns = {table: column_list(db, table) for table in ROW_TABLES}
    judged = judged_columns(db, columns["flow"])

    pathlib.Path(out_h).write_text(HEADER.format(
        application_id=db.execute("PRAGMA application_id").fetchone()[0],
        version=db.execute("PRAGMA user_version").fetchone()[0],
        structs="".join(row_struct(*item) for item in columns.items()),
        judged_list=judged_list(judged)), encoding="utf-8")

    strings = [c_string("SQL_TABLES", statements(db, "table")),
               c_string("SQL_STARTER_RULES", starter_rules(pathlib.Path(rules_csv))),
               c_string("SQL_VIEWS", statements(db, "view")),
               c_string("SQL_INDEXES", if_missing(statements(db, "index")))]
    strings += [c_string(f"SQL_INSERT_{table.upper()}",
                         insert_text(table, columns[table], on_conflict))
                for table, on_conflict in ROW_TABLES.items()]
    strings += [c_string("SQL_REPLACE_FLOW", replace_text("flow", columns["flow"])),
                c_string("SQL_REPLACE_CAPTURE", replace_text("capture", columns["capture"])),
                c_string("SQL_UPDATE_JUDGED", update_text(judged)),
                c_string("SQL_SELECT_JUDGED", select_text(judged))]
    functions = [bind_function(f"{table}_row", table, columns[table]) for table in ROW_TABLES]
    functions += [bind_function("judged", "flow", judged)]
    pathlib.Path(out_sql_h).write_text(SQL_HEADER.format(
        strings="".join(strings),
        functions="".join(functions)), encoding="utf-8")


if __name__ == "__main__":
    main()
