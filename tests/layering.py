#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the sources include only downwards and each library only in its edge files.

usage: layering.py [SOURCE_DIRECTORY]

A file may include headers of lower levels and of its own; headers make no circles. So bytes
become values, values become facts, facts become a row, and nothing flows back. Prints each
violation and exits 1 when there is any.
"""
import pathlib
import re
import sys

# Level by level, what lies there; a module is its .c and .h file.
LEVELS = [
    # base: plain values and text
    "bytes buffer varint decimal coder status json_load drop hash prefetch slots thread endpoint frame text moment progress "
    "tally",
    # pure parsers of bytes
    "layer packet decoded link tunnel hello names ja4 http2 ticket secrets decrypt content",
    # what is remembered of a connection
    "facts facts_pack facts_json fragment opening flow stream record message preamble keyed tls "
    "connection border half_open past stage spill interfaces",
    # what is said of it
    "series tls13 profile profile_json trial judge judge_tls12 judge_early judge_response "
    "judge_one_side judge_keys judge_outcome timing neighbour roles "
    "texts whole_file csv prefix prefix_set mmdb region sites places "
    "carry",
    # edges to files, libraries and people
    "sandbox packed decoder gunzip unxz unarchive inflate readahead source lookahead capture pcapng snoop order interleave manifest inputs path_labels worklist label rules privacy store merge query sql_functions statistics "
    "chart page_pictures ladder_parts ladder_svg extract regions_parts regions_page "
    "comparison selection latency table page page_blocks page_text page_html overview page_query "
    "timeline result regions early_data policy replays ticket_keys report flows captures explain "
    "ladder show "
    "export_table row_binary http clickhouse export "
    "words shift measure windows scope onset change cause mix clues watch incident",
    # the program
    "row ending analyze continuation notes run_point reading crew writer knowledge setting set_regions rejudge forget check ingest survey doctor cli main",
]

# Made from schema/ at build time: plain values for everyone, SQL text for the files named here.
GENERATED = {"flow_row.h": None, "flow_row_sql.h": {"store"},
             "export_columns.h": {"export_table"},
             "page_style.h": {"page_html", "ladder_svg"}}

# Third-party headers (as a prefix of the name in the include), and who may include them.
LIBRARIES = {
    "pcap": {"capture"},
    "archive.h": {"unarchive"},
    "zlib.h": {"gunzip"},
    "lzma.h": {"unxz"},
    "ndpi": {"label"},
    "sqlite3.h": {"store", "merge", "query", "sql_functions"},
    "openssl/": {"ja4", "decrypt", "privacy"},
    "xxhash.h": {"hash"},
    "jansson.h": {"json_load", "facts_json", "profile_json"},
    "maxminddb.h": {"mmdb"},
    "seccomp.h": {"sandbox"},
    "curl/": {"http"},
    "linux/": {"sandbox"},
}

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def level_table():
    return {module: level for level, names in enumerate(LEVELS) for module in names.split()}


def violations(directory):
    level_of = level_table()
    files = sorted(directory.glob("*.[ch]"))
    header_uses = {}
    for file in files:
        module = file.stem
        if module not in level_of:
            yield f"{file.name}: not in the table of levels"
            continue
        for quote, name in INCLUDE.findall(file.read_text(encoding="utf-8")):
            if quote == "<":
                yield from library_violations(file, name)
            elif name in GENERATED:
                allowed = GENERATED[name]
                if allowed is not None and module not in allowed:
                    yield f"{file.name}: includes {name}, which is for {', '.join(sorted(allowed))}"
            else:
                used = pathlib.PurePath(name).stem
                if not (directory / name).exists():
                    yield f"{file.name}: includes {name}, which is not there"
                elif level_of.get(used, 0) > level_of[module]:
                    yield (f"{file.name} (level {level_of[module]}): "
                           f"includes {name} (level {level_of[used]})")
                elif used != module and file.suffix == ".h":
                    header_uses.setdefault(module, set()).add(used)
    yield from cycles(header_uses)


def library_violations(file, name):
    for prefix, allowed in LIBRARIES.items():
        if name.startswith(prefix) and file.stem not in allowed:
            yield f"{file.name}: includes <{name}>, which is for {', '.join(sorted(allowed))}"
        elif name.startswith(prefix) and file.suffix == ".h":
            yield f"{file.name}: includes <{name}>; a header must not spread it"


def cycles(uses):
    """Headers that reach themselves; the same circle is always told from its least name."""
    done = set()

    def walk(module, path):
        if module in path:
            circle = path[path.index(module):]
            first = circle.index(min(circle))
            yield "circle: " + " -> ".join(circle[first:] + circle[:first + 1])
            return
        if module in done:
            return
        for used in sorted(uses.get(module, ())):
            yield from walk(used, path + [module])
        done.add(module)

    for module in sorted(uses):
        yield from walk(module, [])


def main():
    top = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent)
    found = sorted(set(violations(top / "analyzer")))
    for line in found:
        print(line)
    print(f"{len(found)} violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
