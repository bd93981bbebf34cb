# SPDX-License-Identifier: Apache-2.0
"""Runs a program and measures it: for the programs beside this file."""
import os
import pathlib
import signal
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent


class Measurement:
    """One run: seconds of wall and CPU time, peak memory in MB; None where it was stopped."""

    def __init__(self, wall, usage, stopped):
        self.wall = None if stopped else wall
        self.cpu = None if stopped else usage.ru_utime + usage.ru_stime
        self.peak = usage.ru_maxrss / 1024
        self.stopped = stopped


def measure(command, limit_s):
    """Runs a command without output; stops it, and all it started, after limit_s seconds."""
    start = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, start_new_session=True)
    stopped = False

    def stop(_signal, _frame):
        nonlocal stopped
        stopped = True
        os.killpg(process.pid, signal.SIGKILL)

    signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit_s)
    _, status, usage = os.wait4(process.pid, 0)
    signal.alarm(0)
    wall = time.monotonic() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3) and not stopped:
        sys.exit(f"{command[0]} ended with status {process.returncode}")
    return Measurement(wall, usage, stopped)


def build(directory):
    """Compiles the generator and the loop; gives their paths."""
    compiler = os.environ.get("CC", "cc")
    generate, loop = directory / "generate", directory / "loop"
    flags = [compiler, "-std=gnu17", "-O2", "-D_GNU_SOURCE"]
    subprocess.run(flags + ["-o", generate, HERE / "generate.c", HERE / "messages.c"], check=True)
    subprocess.run(flags + ["-o", loop, HERE / "loop.c", "-lpcap"], check=True)
    return generate, loop
