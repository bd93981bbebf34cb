#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Limits: all are in the manual, with their numbers; captures that reach them say so and stay small.

usage: limits.py FIRSTFLIGHT

Section LIMITS of the manual is the one place where limits on what captures can make grow are listed,
each with the names of its constants in a comment. A constant *_MAX that is not there must be one of
those below, which limit something else.
"""
import os
import pathlib
import re
import sqlite3
import struct
import subprocess
import sys
import tempfile

TOP = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TOP / "tests/bench"))
import hostile  # pylint: disable=wrong-import-position
from report import expect, FAILURES  # pylint: disable=wrong-import-position

ABOVE_MAX_MEMORY = 256 << 20  # bytes, as the manual says

# Constants that are no limits on what a capture makes grow, by what they are about.
OTHERS = {
    "protocols and formats say so": """
        DATAGRAM_MAX DECIMAL_MAX FRAME_LEN_MAX HASH_LEN_MAX HEADER_MAX HOST_NAME_LEN_MAX
        IEEE_802_3_LENGTH_MAX KEY_NAME_MAX NONCE_AND_EXTENSIONS_MAX OFFLOADED_LEN_MAX OFFSET_MAX
        PLAINTEXT_MAX PORT_DIGITS_MAX POWER_OF_10_MAX PROXY_HEADER_LEN_MAX RECORD_BODY_MAX
        RECORD_LEN_MAX SECRET_LEN_MAX SEED_MAX SERVER_NAME_MAX SESSION_ID_LEN_MAX SETTINGS_MAX
        TEXT_MAX TICKETS_PER_RECORD_MAX TYPE_MAX UNITS_MAX VARINT_MAX""",
    "a fixed part of each connection": """
        FAILURES_MAX MESSAGE_OTHER_BYTES_MAX PACKETS_MAX PLAINTEXT_RUNS_MAX PREAMBLE_KEPT_MAX
        RECORDS_MAX RESENDS_MAX TALLY_MAX TRIALS_MAX VALUES_MAX WAITS_MAX""",
    "a fixed part of each file or point": """
        CAPTURE_INTERFACES_MAX CAPTURE_LINK_TYPES_MAX CHAIN_MAX DECODED_BATCH_MAX FILTERS_MAX
        INFLATE_PEEK_MAX
        INTERFACES_MAX INTERFACE_NAME_MAX INTERLEAVED_MAX MEMORY_MAX PCAPNG_NAMES_MAX
        PCAPNG_NAME_MAX POOL_MAX PROBED_FRAMES_MAX RESUME_BLOCK_MAX SNOOP_RECORD_MAX
        SPILL_ITEM_MAX SOURCE_PEEK_MAX SOURCE_PIPE_REST_MAX SURVEY_FILES_MAX SURVEY_PACKETS_MAX""",
    "what judging looks at": """
        CLIENT_FLIGHT_RECORDS_MAX CONSTANT_MAX LEVEL_MAX RESUMED_FLIGHT_MAX USUAL_MAX""",
    "files, options and answers that users give": """
        ANSWER_MAX CLIENT_FILES_MAX CSV_FILE_MAX EXPORT_TABLES_MAX INPUT_DIRECTORIES_MAX JOBS_MAX
        KEYLOG_FILES_MAX KEY_FILE_MAX MANIFEST_COLUMNS_MAX MANIFEST_SIZE_MAX PATH_KEYS_MAX
        RULES_FILE_MAX RULES_MAX RULE_PATTERN_MAX SELECTION_BY_MAX URL_MAX""",
    "what is drawn, written and compared": """
        BAR_COLUMNS_MAX CHANGES_MAX CHART_LINES_MAX CHART_POINTS_MAX CHART_TICKS_MAX COLUMNS_MAX
        CONDITIONS_MAX COUNT_SHOWN_MAX DECIMALS_MAX DRAWS_MAX EFFECTS_MAX ESCAPE_MAX
        EXPLAIN_LABEL_MAX FIGURES_MAX ID_DIGITS_MAX LADDER_WIDTH_MAX LENGTH_MAX LISTED_MAX NAME_MAX
        NUMBER_MAX
        PAGE_QUERY_ROWS_MAX PAGE_ROWS_MAX PATH_SHOWN_MAX READABLE_MAX RESAMPLES_MAX
        RESEND_LEN_MAX STEPS_MAX TRIPS_MAX WINDOWS_FLOWS_MAX WORDS_MAX""",
}


def constants():
    """Name of each enumerator *_MAX of the modules, and its value where it is one number."""
    found = {}
    for file in sorted((TOP / "analyzer").glob("*.[ch]")):
        text = re.sub(r"/\*.*?\*/", "", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        for body in re.findall(r"\benum\b[^{};]*\{(.*?)\}", text, re.DOTALL):
            for name, value in re.findall(r"\b([A-Z]\w*_MAX)\s*=\s*([^,}]*)", body):
                plain = re.fullmatch(r"[0-9a-fx\s*<()+-]+", value)
                found[name] = eval(value) if plain else None  # pylint: disable=eval-used
    return found


def check_manual():
    manual = (TOP / "analyzer/firstflight.1").read_text(encoding="utf-8")
    section = re.search(r"^\.Sh LIMITS\n(.*?)^\.Sh ", manual, re.MULTILINE | re.DOTALL)[1]
    items = re.findall(r'^\.\\" LIMIT(.*)\n((?:(?!\.\\" LIMIT).*\n)*)', section, re.MULTILINE)
    known, listed = constants(), set()
    expect(f"{ABOVE_MAX_MEMORY >> 20} MiB" in section, "the manual says what comes on top")
    for names, text in items:
        for name in names.split():
            listed.add(name)
            value = known.get(name)
            expect(value is not None, f"{name} is a constant")
            forms = [str(value)] if value else []
            forms += [f"{value >> bits} {unit}" for bits, unit in ((10, "KiB"), (20, "MiB"))
                      if value and value % (1 << bits) == 0]
            words = re.sub(r"\s+", " ", text)
            expect(any(re.search(rf"(?<!\d){form}\b", words) for form in forms),
                  f"the manual says of {name} that it is {value}")
    others = {name for names in OTHERS.values() for name in names.split()}
    for name in sorted(known.keys() - others - listed):
        expect(False, f"{name} is neither in LIMITS of the manual nor listed as something else")
    expect(not others & listed, "a limit is listed once")


def read(program, capture, memory, queries):
    """Reads a capture; its answers to the queries. The memory stays as promised."""
    database = capture.with_suffix(".db")
    database.unlink(missing_ok=True)
    process = subprocess.Popen([program, "ingest", "-q", "-d", database, "--max-memory",
                                str(memory), capture], stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    expect(process.returncode in (0, 3), f"{capture.name}: exit {process.returncode}")
    peak = usage.ru_maxrss << 10
    print(f"{capture.name}: {peak >> 20} MiB")
    is_sanitized = b"__asan_init" in program.read_bytes()
    expect(is_sanitized or peak <= memory + ABOVE_MAX_MEMORY, f"{capture.name}: {peak >> 20} MiB")
    connection = sqlite3.connect(database)
    answers = [connection.execute(query).fetchone()[0] for query in queries]
    connection.close()
    return answers


def make(path, frames):
    capture = hostile.Capture(path)
    frames(capture)
    capture.close()
    return path


def flood(capture):
    for i in range(200000):
        client = struct.pack(">I", 0x0A000000 + i)
        capture.packet(hostile.tcp(client, 1024 + i % 60000, hostile.SERVER, 443, i * 7919, 0,
                                   hostile.SYN))


def open_connections(capture):
    for i in range(20000):
        client = struct.pack(">I", 0x0A000000 + i)
        hostile.handshake(capture, client=client)


def check_floods(program, folder):
    rows, half_open, evicted = read(
        program, make(folder / "flood.pcap", flood), 8 << 20,
        ["SELECT count(*) FROM flow", "SELECT sum(syns) FROM half_open",
         "SELECT count(*) FROM flow WHERE ended = 'evicted'"])
    expect(half_open == 200000, f"each half-open flow is counted, not {half_open}")
    expect(0 < rows < 1000 and evicted > 0, f"a flood has few rows: {rows}, {evicted} evicted")
    rows, evicted = read(
        program, make(folder / "connections.pcap", open_connections), 4 << 20,
        ["SELECT count(*) FROM flow", "SELECT count(*) FROM flow WHERE ended = 'evicted'"])
    expect(rows == 20000 and evicted > 1000, f"{rows} connections have rows, {evicted} evicted")


def behind_a_gap(capture):
    hostile.handshake(capture)
    for i in range(200):
        capture.packet(hostile.tcp(hostile.CLIENT, 50000, hostile.SERVER, 443, 1101 + 10 * i, 5001,
                                   hostile.ACK, b"0123456789"))


def fragments(capture):
    for i in range(400):
        capture.packet(hostile.ip(hostile.CLIENT, struct.pack(">I", 0xC0000200 + i), 6,
                                  bytes(65000), ident=i, flags=0x2000))


def deep(capture):
    packet = hostile.tcp(hostile.CLIENT, 50000, hostile.SERVER, 443, 1, 0, hostile.SYN)
    for _ in range(12):
        packet = hostile.ip(hostile.CLIENT, hostile.SERVER, 4, packet)
    capture.packet(packet)


def announced(capture):
    """A ClientHello that says it has 16 MiB, and 100 KiB of it."""
    hostile.handshake(capture)
    octets = b"".join(b"\x16\x03\x01\x40\x00" + part for part in
                      [b"\x01\xff\xff\xff" + bytes(16380)] + [bytes(16384)] * 6)
    for at in range(0, len(octets), 1400):
        capture.packet(hostile.tcp(hostile.CLIENT, 50000, hostile.SERVER, 443, 1001 + at, 5001,
                                   hostile.ACK, octets[at:at + 1400]))


def many_records(capture):
    hostile.handshake(capture)
    octets = hostile.hello() + b"\x17\x03\x03\x00\x10" + bytes(16)
    octets += (b"\x17\x03\x03\x00\x10" + bytes(16)) * 500
    for at in range(0, len(octets), 1400):
        capture.packet(hostile.tcp(hostile.CLIENT, 50000, hostile.SERVER, 443, 1001 + at, 5001,
                                   hostile.ACK, octets[at:at + 1400]))


def check_one_by_one(program, folder):
    memory = 4 << 20
    gap, = read(program, make(folder / "behind_a_gap.pcap", behind_a_gap), memory,
                ["SELECT client_gap_bytes FROM flow"])
    expect(gap == 100, f"a gap is given up: {gap}")
    over, = read(program, make(folder / "fragments.pcap", fragments), memory,
                 ["SELECT sum(packets) FROM drop_count WHERE reason LIKE 'fragment%'"])
    expect(over == 400, f"fragments that do not become whole are counted: {over}")
    deepest, = read(program, make(folder / "deep.pcap", deep), memory,
                    ["SELECT sum(packets) FROM drop_count WHERE reason = 'tunnel_too_deep'"])
    expect(deepest == 1, f"tunnels have an end: {deepest}")
    complete, = read(program, make(folder / "announced.pcap", announced), memory,
                     ["SELECT client_hello_complete FROM flow"])
    expect(complete in (0, None), f"an endless hello is not complete: {complete}")
    kept, skipped = read(program, make(folder / "many_records.pcap", many_records), memory,
                         ["SELECT count(*) FROM record", "SELECT sum(skipped) FROM record"])
    expect(kept <= 64 and kept + skipped == 502, f"records beyond are counted: {kept}, {skipped}")


def main():
    program = pathlib.Path(sys.argv[1]).resolve()
    check_manual()
    with tempfile.TemporaryDirectory() as folder:
        check_floods(program, pathlib.Path(folder))
        check_one_by_one(program, pathlib.Path(folder))
    print("failed" if FAILURES else "passed")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
