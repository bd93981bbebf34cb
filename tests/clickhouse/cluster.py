# SPDX-License-Identifier: Apache-2.0
"""Two shards of ClickHouse and a ZooKeeper on loopback, in a directory of their own.

    with Cluster() as cluster:
        cluster.create_schema()
        cluster.query("SELECT count() FROM firstflight.flow")

Whatever ends the program ends the servers: they are stopped on the way out, and the kernel kills
them when it is killed. The servers of the system, if any run, are not touched.
"""
import ctypes
import os
import pathlib
import shutil
import signal
import socket
import string
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
SCHEMA = HERE.parent.parent / "schema" / "clickhouse" / "18.16.sql"
ZOOKEEPER_JAR = "/usr/share/java/zookeeper.jar"
PACKAGES = ["clickhouse-server", "clickhouse-client", "zookeeper", "default-jre-headless"]
START_SECONDS = 180
STOP_SECONDS = 20
QUERY_SECONDS = 300
TRIES = 5

SKIPPED = 77  # for meson


class ServerError(Exception):
    """What a server answered to a query that it refused."""


def missing():
    """What of the servers is not installed."""
    programs = [name for name in ("clickhouse-server", "java") if shutil.which(name) is None]
    return programs + [path for path in (ZOOKEEPER_JAR,) if not os.path.exists(path)]


def install():
    """Installs the servers with apt-get, but starts none of them; says so before."""
    if shutil.which("apt-get") is None:
        return
    print("Installing with apt-get: " + " ".join(PACKAGES), flush=True)
    sudo = [] if os.geteuid() == 0 else ["sudo"]
    # RUNLEVEL=1: invoke-rc.d starts no service.
    environment = ["env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1"]
    subprocess.run(sudo + ["apt-get", "-qq", "update"], check=False)
    subprocess.run(sudo + environment + ["apt-get", "-qq", "-y", "-o", "DPkg::Lock::Timeout=300",
                                         "install", "--no-install-recommends", *PACKAGES],
                   stdout=subprocess.DEVNULL, check=False)


def can_start():
    """Whether the servers are wanted and there, installed where they are missing; says why not."""
    if "FIRSTFLIGHT_LONG" not in os.environ:
        print("ClickHouse: skipped, it is part of tests/long")
        return False
    if missing():
        install()
    if missing():
        print("ClickHouse: skipped, there is no", ", ".join(missing()))
        return False
    return True


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def die_with_parent():
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class Cluster:
    """Shards are numbered from 1."""

    def __init__(self):
        self.top = pathlib.Path(tempfile.mkdtemp(prefix="firstflight-clickhouse-"))
        ports = free_ports(7)
        self.ports = {"zookeeper_port": ports[0], "tcp_port_1": ports[1], "tcp_port_2": ports[2]}
        self.http_ports = {1: ports[3], 2: ports[4]}
        self.interserver_ports = {1: ports[5], 2: ports[6]}
        self.zookeeper = None
        self.shards = {}

    def __enter__(self):
        try:
            self.start_zookeeper()
            for shard in (1, 2):
                self.start(shard)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for process in [*self.shards.values(), self.zookeeper]:
            stop(process)
        shutil.rmtree(self.top, ignore_errors=True)

    def fill(self, template, target, **names):
        text = string.Template((HERE / template).read_text(encoding="utf-8"))
        target.write_text(text.substitute(self.ports, **names), encoding="utf-8")

    def start_zookeeper(self):
        directory = self.top / "zookeeper"
        directory.mkdir()
        self.fill("zoo.cfg", directory / "zoo.cfg", directory=directory)
        self.zookeeper = spawn(["java", "-Xmx128m", "-cp", ZOOKEEPER_JAR,
                                "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                                directory / "zoo.cfg"], directory)
        wait_for(self.zookeeper, directory, lambda: socket.create_connection(
            ("127.0.0.1", self.ports["zookeeper_port"]), 1).close())

    def start(self, shard):
        directory = self.top / f"shard{shard}"
        for name in ("data", "tmp", "formats"):
            (directory / name).mkdir(parents=True, exist_ok=True)
        self.fill("server.xml", directory / "server.xml", directory=directory, shard=shard,
                  tcp_port=self.ports[f"tcp_port_{shard}"], http_port=self.http_ports[shard],
                  interserver_port=self.interserver_ports[shard])
        shutil.copy(HERE / "users.xml", directory)
        self.shards[shard] = spawn(["clickhouse-server", f"--config-file={directory}/server.xml"],
                                   directory)
        wait_for(self.shards[shard], directory, lambda: self.query("SELECT 1", shard))

    def stop(self, shard):
        stop(self.shards.pop(shard))

    def kill(self, shard):
        """As a crash does: nothing is written any more."""
        process = self.shards.pop(shard)
        process.kill()
        process.wait()

    def url(self, shard=1):
        return f"http://127.0.0.1:{self.http_ports[shard]}/?database=firstflight"

    def query(self, sql, shard=1, **settings):
        """Rows of a query as lists of text."""
        arguments = urllib.parse.urlencode({"database": "default", **settings})
        request = urllib.request.Request(f"http://127.0.0.1:{self.http_ports[shard]}/?{arguments}",
                                         data=sql if isinstance(sql, bytes) else sql.encode())
        try:
            with urllib.request.urlopen(request, timeout=QUERY_SECONDS) as answer:
                text = answer.read().decode("utf-8", "surrogateescape")
        except urllib.error.HTTPError as error:
            raise ServerError(error.read().decode("utf-8", "replace").strip()) from None
        return [line.split("\t") for line in text.split("\n")[:-1]]

    def run_file(self, path, shard=1):
        """Runs the statements of a file, which end in semicolons at the end of a line."""
        text = "\n".join(line for line in path.read_text(encoding="utf-8").splitlines()
                         if not line.startswith("--"))
        for statement in text.split(";\n"):
            if statement.strip(" ;\n"):
                self.query(statement.strip(" ;\n"), shard)

    def create_schema(self):
        """Again where a busy machine has lost ZooKeeper: what is there already stays."""
        for left in range(TRIES, 0, -1):
            try:
                self.run_file(SCHEMA)
                return
            except ServerError as error:
                if left == 1 or not str(error).startswith("Code: 999"):
                    raise
                time.sleep(1)


def spawn(command, directory):
    with open(directory / "output.log", "ab") as log:
        return subprocess.Popen(command, cwd=directory, stdin=subprocess.DEVNULL, stdout=log,
                                stderr=log, preexec_fn=die_with_parent)


def stop(process):
    if process is None or process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def wait_for(process, directory, try_it):
    """Until try_it() works; raises when the process ends before, or takes too long."""
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            try_it()
            return
        except (OSError, ServerError):
            if process.poll() is None and time.monotonic() < deadline:
                time.sleep(0.2)
                continue
        said = "".join(path.read_text(errors="replace")[-2000:]
                       for path in sorted(directory.glob("*.log")))
        raise RuntimeError(f"{process.args[0]} does not start:\n{said}")
