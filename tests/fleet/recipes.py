#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes of analyzer/operating.md on one host do what stands there.

usage: recipes.py FIRSTFLIGHT [--write]

Each section's shell blocks are run in a directory of their own and print what stands below them;
the database they end with has the content of one ingest of everything. A point whose captures are
away fails alone, is named by `missing`, and is the only one that a second round does. --write puts
the true outputs into the document. GNU parallel is skipped where it is not installed.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TOP = HERE.parent.parent
sys.path.insert(0, str(HERE.parent))
import merge  # noqa: E402

GUIDE = TOP / "analyzer/operating.md"
LABELS = "{region}/{site}/*"
BLOCK = re.compile(r"```sh\n(.*?)```\n```text\n(.*?)```\n", re.DOTALL)
# What is another at each run: digits of the captures' directory, numbers of jobs.
VARIABLE = re.compile(r"(?<=-)[0-9a-f]{12}\b|(?<=batch job )\d+")


def section(title):
    """The text of the guide's section whose title begins so."""
    guide = GUIDE.read_text(encoding="utf-8")
    begin = guide.index(f"\n### {title}")
    end = guide.find("\n##", begin + 1)
    return guide[begin:end if end > 0 else len(guide)]


class Site:
    """A directory to run a recipe in, as the guide describes it."""

    def __init__(self, firstflight, directory, **environment):
        self.directory = pathlib.Path(directory)
        self.environment = dict(os.environ, fleet=str(HERE), LC_ALL="C.UTF-8", **environment)
        program = pathlib.Path(firstflight).resolve().parent
        self.environment["PATH"] = f"{program}:{os.environ['PATH']}"
        # A copy, so that captures can be taken away; its path is part of the points' names.
        shutil.copytree(TOP / "samples/article", self.directory / "captures")

    def run(self, script, status=0):
        result = subprocess.run(["sh", "-euc", script], cwd=self.directory, check=False,
                                env=self.environment, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, encoding="utf-8")
        merge.expect(result.returncode == status,
                     f"status {result.returncode} instead of {status}: {script}{result.stdout}")
        return result.stdout

    def ingest_at_once(self):
        """What one ingest of everything gives."""
        self.run(f"firstflight ingest -q -d whole.db --labels '{LABELS}' captures")
        return merge.rows(self.directory / "whole.db")

    def points(self):
        return (self.directory / "points").read_text(encoding="utf-8").splitlines()

    def parts(self):
        """Which databases there are, and in which state, by the name of the point."""
        return {path.stem: (path.stat().st_ino, path.stat().st_mtime_ns)
                for path in (self.directory / "parts").glob("*.db")}


def run_block(site, script, expected, write):
    """Runs one block of the guide and compares; with `write` the guide gets the output."""
    output = site.run(script)
    if write:
        text = GUIDE.read_text(encoding="utf-8")
        old, new = f"```sh\n{script}```\n```text\n{expected}```", \
            f"```sh\n{script}```\n```text\n{output}```"
        GUIDE.write_text(text.replace(old, new), encoding="utf-8")
        return
    merge.expect(VARIABLE.sub("", output) == VARIABLE.sub("", expected),
                 f"operating.md says\n{expected}of\n{script}which prints\n{output}")


def failing_point_is_repeated_alone(site):
    """One capture is away: its point fails, the others are done; then it is done alone."""
    shutil.rmtree(site.directory / "parts")
    (site.directory / "parts").mkdir()
    (site.directory / "fleet.db").unlink()
    line = 3
    gone = site.points()[line - 1]
    name = pathlib.Path(gone).stem
    capture = site.directory / (site.directory / gone).read_text(encoding="utf-8").strip()
    capture.rename(capture.with_suffix(".away"))
    everything = f"xargs -P 4 -I LIST $fleet/point LIST parts --labels '{LABELS}' < points"
    output = site.run(everything, status=123)
    merge.expect(f"{name}: " in output, f"which point failed? {output}")
    before = site.parts()
    merge.expect(len(before) == len(site.points()) - 1 and name not in before,
                 f"without {name} there are {sorted(before)}")
    merge.expect(site.run("$fleet/missing points parts") == f"{line}\n", "missing is another")
    capture.with_suffix(".away").rename(capture)
    site.run(everything)
    after = site.parts()
    merge.expect({name: after[name] for name in before} == before, "others were done again")
    merge.expect(name in after, f"{name} was not repeated")
    was = capture.stat()
    capture.touch()
    merge.expect(site.run("$fleet/missing points parts") == f"{line}\n", "a newer capture is missed")
    site.run(everything)
    merge.expect(sorted(name for name, state in site.parts().items() if state != after[name]) ==
                 [name], "other points than that of the newer capture were done again")
    os.utime(capture, ns=(was.st_atime_ns, was.st_mtime_ns))  # it is in the rows
    (site.directory / f"parts/{name}.db").unlink()
    site.run(everything)
    site.run("$fleet/missing points parts", status=1)
    site.run("firstflight merge -q -d fleet.db parts/*.db")


def failed_jobs_of_parallel_are_repeated(site):
    """What --retry-failed does: of the log's jobs those that failed."""
    script = next(BLOCK.finditer(section("GNU parallel")))[1].splitlines()
    everything = next(line for line in script if line.startswith("parallel -q"))
    again = next(line for line in script if "--retry-failed" in line)
    shutil.rmtree(site.directory / "parts")
    (site.directory / "parts").mkdir()
    (site.directory / "fleet.db").unlink()
    away = site.directory / "captures/na/iad1/edge.pcap"
    away.rename(away.with_suffix(".away"))
    site.run(everything, status=1)
    before = site.parts()
    away.with_suffix(".away").rename(away)
    site.run(again)
    after = site.parts()
    merge.expect({name: after[name] for name in before} == before, "others were done again")
    merge.expect(len(after) == len(before) + 1 == len(site.points()), f"{len(after)} points done")
    site.run("firstflight merge -q -d fleet.db parts/*.db")


def a_point_ends_as_it_should(site):
    """Statuses that schedulers see; what is not whole is not there, and nothing is left."""
    listed = site.points()[0]
    fresh = site.directory / "fresh"
    fresh.mkdir()
    site.run(f"$fleet/point {listed} fresh --no-such-option", status=1)
    site.run("$fleet/point lists/none.files fresh", status=2)
    site.run(f"$fleet/point {listed} nowhere", status=2)
    site.run(f"TMPDIR=/nonexistent $fleet/point {listed} fresh", status=2)
    merge.expect(not any(fresh.iterdir()), f"left behind: {list(fresh.iterdir())}")
    scratch = site.directory / "scratch"
    scratch.mkdir()
    site.run(f"TMPDIR=$PWD/scratch $fleet/point {listed} fresh")
    merge.expect(not any(scratch.iterdir()), "scratch files were left")
    name = pathlib.Path(listed).stem
    merge.expect([path.name for path in fresh.iterdir()] == [f"{name}.db"], "more than a database")
    # Damaged captures are no reason to repeat: the database is there and says it.
    cut = site.directory / (site.directory / listed).read_text(encoding="utf-8").strip()
    whole = cut.read_bytes()
    cut.write_bytes(whole[:-7])
    (fresh / f"{name}.db").unlink()
    site.run(f"$fleet/point {listed} fresh")
    said = site.run(f"firstflight sql --format csv -d fresh/{name}.db"
                    " 'SELECT count(damage) FROM capture'")
    merge.expect(said.split() == ["count(damage)", "1"], f"damage: {said}")
    cut.write_bytes(whole)


def recipe(firstflight, title, write, *checks):
    with tempfile.TemporaryDirectory() as directory:
        site = Site(firstflight, directory)
        whole = site.ingest_at_once()
        for script, expected in BLOCK.findall(section(title)):
            run_block(site, script, expected, write)
        merge.expect_same(site.directory / "fleet.db", whole, title)
        for check in checks:
            check(site)
            merge.expect_same(site.directory / "fleet.db", whole, f"{title}, {check.__name__}")


def main():
    firstflight, write = sys.argv[1], "--write" in sys.argv
    recipe(firstflight, "xargs", write, failing_point_is_repeated_alone, a_point_ends_as_it_should)
    if shutil.which("parallel"):
        recipe(firstflight, "GNU parallel", write, failed_jobs_of_parallel_are_repeated)
    else:
        print("GNU parallel: skipped, it is not installed")
    print(f"{len(merge.FAILURES)} failures")
    return 1 if merge.FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
