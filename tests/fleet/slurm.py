#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Slurm recipe of analyzer/operating.md, on a cluster of this machine alone.

usage: slurm.py FIRSTFLIGHT [--write]

Only when FIRSTFLIGHT_LONG is set, as tests/long does: installs Debian's slurmctld, slurmd and munge
where they are missing (nothing of them is started by the system), starts them in a temporary
directory on loopback and ends them afterwards. One task fails because a capture is away: the merge
does not run, the task is repeated alone, and the merged database has the content of one ingest of
everything. Exit status 77 says skipped.
"""
import os
import pathlib
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import recipes

PACKAGES = ["slurmctld", "slurmd", "slurm-client", "munge"]
PROGRAMS = ["slurmctld", "slurmd", "sbatch", "munged"]
SKIPPED = 77
PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
CONF = """
ClusterName=firstflight
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/munge
AuthInfo=socket={directory}/munge.socket
CredType=cred/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=1,sched_interval=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def skip(why):
    print(f"Slurm: skipped, {why}")
    sys.exit(SKIPPED)


def install():
    if all(shutil.which(program, path=PATH) for program in PROGRAMS):
        return
    if not shutil.which("apt-get"):
        skip("it is not installed, and there is no apt-get")
    print("Installing with apt-get:", *PACKAGES, file=sys.stderr)
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive", RUNLEVEL="1")
    for command in (["update"], ["-y", "install", "--no-install-recommends", *PACKAGES]):
        if subprocess.run(["apt-get", "-qq", *command], env=environment, check=False,
                          stdout=subprocess.DEVNULL).returncode != 0:
            skip("it cannot be installed")


def free_ports(count):
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


class Cluster:
    """munge, a controller and one node, each a child of this program."""

    def __init__(self, directory):
        self.directory = directory
        self.daemons = []
        key = directory / "munge.key"
        key.write_bytes(secrets.token_bytes(128))
        key.chmod(0o400)
        for name in ("state", "spool"):
            (directory / name).mkdir()
        host = socket.gethostname().split(".")[0]
        self.conf = directory / "slurm.conf"
        self.conf.write_text(CONF.format(directory=directory, host=host, ports=free_ports(2),
                                         cpus=os.cpu_count()), encoding="ascii")

    def start(self, *command):
        with open(self.directory / f"{command[0]}.out", "wb") as out:
            self.daemons.append(subprocess.Popen(
                command, stdout=out, stderr=out,
                env=dict(os.environ, PATH=PATH, SLURM_CONF=str(self.conf))))

    def __enter__(self):
        self.start("munged", "--force", "--foreground",
                   *(f"--{name}={self.directory}/munge.{end}" for name, end in (
                       ("key-file", "key"), ("socket", "socket"), ("pid-file", "pid"),
                       ("seed-file", "seed"), ("log-file", "log"))))
        self.wait_for(lambda: (self.directory / "munge.socket").exists())
        self.start("slurmctld", "-D", "-f", str(self.conf))
        self.start("slurmd", "-D", "-f", str(self.conf))
        self.wait_for(lambda: "idle" in self.ask("sinfo", "-h", "-o", "%T"))
        return self

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()

    def ask(self, *command):
        return subprocess.run(command, env=dict(os.environ, SLURM_CONF=str(self.conf)), check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              encoding="utf-8").stdout

    def wait_for(self, condition):
        until = time.monotonic() + 60
        while not condition():
            if time.monotonic() > until or any(one.poll() is not None for one in self.daemons):
                logs = [path.read_text(errors="replace")[-2000:]
                        for path in self.directory.glob("*.out")]
                sys.exit("Slurm does not start: " + "\n".join(logs))
            time.sleep(0.2)


def run_recipe(site, write):
    (everything, expected), (failed_alone, expected_again) = recipes.BLOCK.findall(
        recipes.section("Slurm"))
    whole = site.ingest_at_once()
    recipes.run_block(site, everything, expected, write)
    recipes.merge.expect_same(site.directory / "fleet.db", whole, "Slurm")

    for name in ("parts", "logs"):
        shutil.rmtree(site.directory / name)
    (site.directory / "fleet.db").unlink()
    away = site.directory / "captures/na/iad1/edge.pcap"
    away.rename(away.with_suffix(".away"))
    kept_points = (site.directory / "points").read_text(encoding="utf-8")
    # The list is that of before: a capture that goes away behind it makes a task fail.
    script = everything.replace("firstflight doctor -q --points lists captures > points\n", "")
    result = subprocess.run(["sh", "-euc", script], cwd=site.directory, env=site.environment,
                            check=False, capture_output=True, encoding="utf-8")
    recipes.merge.expect(result.returncode != 0 and "merge.log" in result.stderr,
                         f"the merge ran though a task had failed: {result}")
    recipes.merge.expect(not (site.directory / "fleet.db").exists(), "there is a merged database")
    before = site.parts()
    recipes.merge.expect(len(before) == len(kept_points.splitlines()) - 1,
                         f"done beside the failed one: {sorted(before)}")
    away.with_suffix(".away").rename(away)
    recipes.run_block(site, failed_alone, expected_again, write)
    after = site.parts()
    recipes.merge.expect({name: after[name] for name in before} == before,
                         "tasks that had succeeded ran again")
    recipes.merge.expect_same(site.directory / "fleet.db", whole, "Slurm, one task repeated")


def main():
    if "FIRSTFLIGHT_LONG" not in os.environ:
        skip("it is part of tests/long")
    if os.geteuid() != 0:
        skip("its daemons want root")
    install()
    with tempfile.TemporaryDirectory() as directory:
        with Cluster(pathlib.Path(directory)) as cluster:
            (cluster.directory / "work").mkdir()
            site = recipes.Site(sys.argv[1], cluster.directory / "work",
                                SLURM_CONF=str(cluster.conf))
            run_recipe(site, "--write" in sys.argv)
    print(f"{len(recipes.merge.FAILURES)} failures")
    return 1 if recipes.merge.FAILURES else 0


if __name__ == "__main__":
    sys.exit(main())
