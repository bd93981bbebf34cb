#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds what HTML pages and SVG pictures promise, by a parser that is not ours and by Chromium.

usage: pages.py FIRSTFLIGHT

No script, a content policy whose hash fits the style, nothing that could be fetched, every text of
a capture escaped, tags closed, every picture named and beside a table with its numbers. Where
chromium is installed it loads the pages offline: nothing may be refused, missing or logged. Prints
each failure and exits 1 when there is any.
"""
import base64
import hashlib
import html.parser
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from report import HOSTILE, MS, START_NS, TOP, Database, Program, expect, is_harmless, FAILURES

VOID = {"meta", "br", "img", "link", "input", "hr"}
FORBIDDEN = {"script", "iframe", "object", "embed", "link", "img", "form", "base", "a", "image",
             "use", "foreignobject", "animate", "set"}
REPORTS = ["regions", "early-data", "failures", "timeline", "coverage"]
WAITS_MS = {"0-rtt": 2, "resumed": 3, "full": 3}


class Page(html.parser.HTMLParser):
    """Reads a page and notes what breaks a promise."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.errors, self.texts, self.policy = [], [], [], None
        self.style, self.pictures, self.figures, self.tables = "", 0, [], 0
        self.feed(text)
        self.close()
        if self.open:
            self.errors.append(f"not closed: {self.open}")

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if len(attributes) != len(attrs):
            self.errors.append(f"an attribute twice in {tag}")
        if tag in FORBIDDEN:
            self.errors.append(f"element {tag}")
        for name, value in attrs:
            if name.startswith("on") or name in ("style", "src", "href", "srcset", "xlink:href"):
                self.errors.append(f"attribute {name} of {tag}")
            self.texts.append(value or "")
        if attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]
            if self.style or self.pictures:
                self.errors.append("the policy stands behind what it is to rule")
        if tag == "svg" and attributes.get("role") == "img":
            self.pictures += 1
            if not attributes.get("aria-label") and attributes.get("class") != "ladder":
                self.errors.append("a picture without words")
            if "table" not in self.open and "figure" not in self.open:
                self.errors.append("a picture beside no table")
        if tag == "figure":
            self.figures.append(0)
        if tag == "table":
            self.tables += 1
            if "figure" in self.open:
                self.figures[-1] += 1
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.errors.append(f"</{tag}> closes nothing")

    def handle_data(self, data):
        if "style" in self.open:
            self.style += data
        else:
            self.texts.append(data)


def check_page(text, name):
    page = Page(text)
    for error in page.errors:
        expect(False, f"{name}: {error}")
    expect(text.startswith("<!DOCTYPE html>\n<html lang=\"en\">"), f"{name}: begins as HTML5")
    digest = base64.b64encode(hashlib.sha256(page.style.encode()).digest()).decode()
    expect(page.policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; "
           "form-action 'none'", f"{name}: policy {page.policy}")
    expect("url(" not in page.style and "@import" not in page.style, f"{name}: style fetches")
    expect(all(figure == 1 for figure in page.figures), f"{name}: each figure has its table")
    expect(is_harmless(text, "\n"), f"{name}: control characters")
    expect("nan" not in re.findall(r'="(nan|-nan|inf)', text), f"{name}: numbers in pictures")
    return page


def fill(database, regions):
    draw = random.Random(3)
    for region, rtt in regions.items():
        for i in range(240):
            kind = ("0-rtt", "resumed", "full")[i % 3]
            perceived = rtt * (WAITS_MS[kind] + 0.3 * draw.random())
            database.add_answered(
                perceived, rtt, client_region=region, site=region, sni="www.example.com",
                handshake=kind, early_data="accepted" if kind == "0-rtt" else "not_offered",
                answered_early=1 if kind == "0-rtt" else None,
                expected_round_trips=WAITS_MS[kind], connect_ns=round(rtt * MS),
                hello_wait_ns=MS, tls_ns=0 if kind == "0-rtt" else round(rtt * MS),
                request_wait_ns=0, server_wait_ns=2 * MS)
        database.add(client_region=region, outcome="failed", failure="reset", handshake="unknown",
                     handshake_basis=None)


def test_regions(program_path, directory):
    regions = {"eu": 12.0, "na": 70.0, "sa": 140.0, "sea": 110.0}
    database = Database(directory / "regions.db")
    fill(database, regions)
    database.connection.commit()
    program = Program(program_path, database.path)
    text = program.text("report", "--format", "html")
    page = check_page(text, "regions")
    words = " ".join(page.texts)
    for name in ("First response by client region", "What 0-RTT gained", "How long visitors waited",
                 "Where the time went", "Over time", "What this rests on", "Left out 4", "964 TLS"):
        expect(name in words, f"regions: {name!r}")
    expect(len(page.figures) == len(regions) + 3, f"regions: {len(page.figures)} figures")
    # One row of ranges and one of phases for each class of each region, and the figures.
    expect(page.pictures == 2 * 3 * len(regions) + len(page.figures),
           f"regions: {page.pictures} pictures")
    one = check_page(program.text("report", "--where", "client_region = 'eu'", "--format", "html"),
                     "one region")
    expect(len(one.figures) == 3, "regions: one region is not drawn beside itself")
    expect(text == program.text("report", "--format", "html"), "regions: the same page twice")
    expect(text == program.text("report", "--format", "html", locale="C"),
           "regions: whatever the locale")
    for name in REPORTS:
        page = check_page(program.text("report", name, "--format", "html"), name)
        expect("TLS flows" in " ".join(page.texts), f"{name}: how many flows it rests on")
        if name == "timeline":
            expect(len(page.figures) == 2, f"timeline: {len(page.figures)} figures")
    return directory / "regions.db"


def test_hostile(program_path, directory):
    database = Database(directory / "hostile.db")
    names = HOSTILE + ["</style><script>x</script>", "--><svg onload=x>", "]]>", "&lt;b&gt;",
                       "x\" onmouseover=\"y", "x' y='"]
    for i, name in enumerate(names):
        for _ in range(8):
            database.add_answered(200 + i, 50, client_region=name, sni=name, site=name, host=name,
                                  handshake="0-rtt", early_data="accepted", answered_early=0,
                                  connect_ns=MS, hello_wait_ns=MS, tls_ns=MS, request_wait_ns=MS,
                                  server_wait_ns=MS, early_data_reason=name)
        database.add(client_region=name, sni=name, site=name, outcome="failed", failure=name)
    database.connection.commit()
    program = Program(program_path, database.path)
    for command in ([name] for name in REPORTS):
        check_page(program.text("report", *command, "--format", "html"), f"hostile {command}")
    for by in ("sni,site", "host"):
        check_page(program.text("report", "--by", by, "--format", "html"), f"hostile by {by}")
    where = "sni <> '<script>&\"'"
    page = check_page(program.text("report", "--where", where, "--format", "html"), "where")
    expect(where in " ".join(page.texts), "--where is told as it was given")
    for i in range(len(names)):
        flow = str(1 + 9 * i)
        check_page(program.text("show", flow, "--format", "html"), f"hostile flow {flow}")
        check_svg(program.text("show", flow, "--format", "svg"), f"hostile flow {flow}")


def check_svg(text, name):
    try:
        root = xml.etree.ElementTree.fromstring(text)
    except xml.etree.ElementTree.ParseError as error:
        expect(False, f"{name}: {error}")
        return None
    tags = {element.tag.rpartition("}")[2] for element in root.iter()}
    expect(root.tag == "{http://www.w3.org/2000/svg}svg", f"{name}: is SVG")
    expect(not tags & FORBIDDEN, f"{name}: {tags & FORBIDDEN}")
    expect(is_harmless(text, "\n"), f"{name}: control characters")
    return root


def test_ladders(program_path, directory):
    for name in ("tls13_0rtt_accepted", "tls13_0rtt_accepted_late", "tls12_full", "plaintext_http",
                 "refused", "tls13_hrr"):
        database = directory / f"{name}.db"
        capture = TOP / "samples" / "scenarios" / f"{name}.pcap"
        subprocess.run([program_path, "ingest", "-q", "-d", database, capture], check=True)
        program = Program(program_path, database)
        plain = program.text("show", "1", locale="C")
        page = check_page(program.text("show", "1", "--format", "html"), name)
        root = check_svg(program.text("show", "1", "--format", "svg"), name)
        svg_words = " ".join(root.itertext())
        arrows = re.findall(r"[|<]-+ (\S.*?) -+[|>]|\|- (\S.*?) -+>", plain)
        labels = [a or b for a, b in arrows]
        expect(len(labels) > 1 or name == "refused", f"{name}: {labels}")
        for label in labels:
            expect(label in svg_words and label in " ".join(page.texts), f"{name}: {label}")
        early = name.startswith("tls13_0rtt")
        expect(('class="window"' in program.text("show", "1", "--format", "svg")) == early,
               f"{name}: the early window")


def test_chromium(program_path, database, directory):
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if not chromium:
        print("skipped: chromium is not installed")
        return
    page = directory / "page.html"
    page.write_text(Program(program_path, database).text("report", "--format", "html"),
                    encoding="utf-8")
    result = subprocess.run(
        [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-extensions",
         f"--user-data-dir={directory}/profile", "--proxy-server=127.0.0.1:9",
         "--enable-logging=stderr", "--v=0", "--dump-dom", page.as_uri()],
        check=False, capture_output=True, timeout=120, env={**os.environ, "HOME": str(directory)})
    dom, log = result.stdout.decode("utf-8"), result.stderr.decode("utf-8", "replace")
    expect("What this rests on" in dom, "chromium shows the page")
    console = [line for line in log.splitlines() if "CONSOLE" in line]
    expect(not console, f"chromium: {console}")


def main():
    program_path = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        database = test_regions(program_path, directory)
        test_hostile(program_path, directory)
        test_ladders(program_path, directory)
        test_chromium(program_path, database, directory)
    print(f"{len(FAILURES)} failures")
    return 1 if FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
