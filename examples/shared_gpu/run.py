#!/usr/bin/env python3
"""Four workers share a group's limit; one is killed, and the others allocate its memory.

run.py [--sim] BUILD: on the real GPU if there is one, else (or with --sim) on a simulated one of 16 GiB. The last line is
`shared_gpu: ok device=… limit=… before=… after=…` (bytes that all workers held before and after the death) or `shared_gpu: FAILED …`.
"""
import ctypes
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys

GROUP, LIMIT = "example", "50%"
BLOCK, PLAN = 64 << 20, 16  # each worker allocates 16 blocks, then all it can get
EVERYTHING = 1 << 20


class Failure(Exception):
    pass


def has_gpu():
    try:
        return ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        return False


class Worker:
    """One unmodified program under `ration run`, driven line by line."""

    def __init__(self, name, ration, program, environment):
        self.name = name
        command = [ration, "run", "--group", GROUP, "--group-limit", LIMIT, "--", program, name]
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def take(self, blocks):
        """Requests so many blocks more and returns the bytes that it holds."""
        self.process.stdin.write(f"{blocks}\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline().split()
        if len(line) != 4:
            raise Failure(f"{self.name} ended")
        print("   ", *line, flush=True)
        return int(line[2])

    def finish(self):
        said, _ = self.process.communicate()
        if self.process.returncode != 0 or said != f"{self.name} ok\n":
            raise Failure(f"{self.name} ended with {self.process.returncode}: {said}")


class Group:
    """The workers' group in `ration ps`."""

    def __init__(self, ration, environment):
        seen = json.loads(subprocess.run([ration, "ps", "--json"], env=environment, check=True, capture_output=True).stdout)
        rows = [row for row in seen["groups"] if row["group"] == GROUP]
        self.rows = [row for row in seen["processes"] if GROUP in row["group"].split(",")]
        self.limit = rows[0]["limit"] if rows else None
        self.reserved = rows[0]["reserved_bytes"] if rows else 0
        if self.reserved != sum(row["reserved_bytes"] for row in self.rows):
            raise Failure(f"the group has {self.reserved} reserved, its members {[row['reserved_bytes'] for row in self.rows]}")
        if self.limit is not None and self.reserved > self.limit:
            raise Failure(f"the group has {self.reserved} reserved of {self.limit}")


def share(build, environment, device):
    ration, program = build / "bin/ration", build / "examples/shared_gpu/worker"
    names = ["anna", "bert", "cleo", "dave"]
    print(f"shared_gpu: four workers in a group with {LIMIT} of the device", flush=True)
    workers = {name: Worker(name, ration, program, environment) for name in names}
    try:
        for worker in workers.values():
            worker.take(PLAN)
        print("shared_gpu: each takes what is left", flush=True)
        before = {name: worker.take(EVERYTHING) for name, worker in workers.items()}
        full = Group(ration, environment)
        subprocess.run([ration, "ps"], env=environment, check=True)
        print("shared_gpu: dave is killed, the others ask again")
        dave = workers.pop("dave").process
        os.kill(next(row["pid"] for row in full.rows if row["reserved_bytes"] >= before["dave"] and row["pid"] in children(dave.pid)),
                signal.SIGKILL)
        dave.wait()
        after = {name: worker.take(EVERYTHING) for name, worker in workers.items()}
        last = Group(ration, environment)
        for worker in workers.values():
            worker.finish()
        left = Group(ration, environment)
    finally:
        for worker in workers.values():
            worker.process.kill()
    if sum(before.values()) < full.limit * 9 // 10 or sum(after.values()) < full.limit * 9 // 10:
        raise Failure(f"{before}, then {after}: much of {full.limit} was never used")
    if len(last.rows) != 3 or last.limit != full.limit or left.rows:
        raise Failure(f"{len(last.rows)} workers after the death, {len(left.rows)} at the end")
    print(f"shared_gpu: ok device={device} limit={full.limit} before={sum(before.values())} after={sum(after.values())}")


def children(pid):
    text = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii")
    return [int(child) for child in text.split()]


def main():
    arguments = sys.argv[1:]
    simulate = "--sim" in arguments or not has_gpu()
    build = pathlib.Path([each for each in arguments if each != "--sim"][0]).resolve()
    state = build / "shared_gpu"
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir()
    environment = dict(os.environ, RATION_STATE_DIR=str(state / "groups"))
    if simulate:
        environment.update(SIMCUDA_DEVICES="16GiB", SIMCUDA_MACHINE=str(state / "machine"))
        library = [str(build / "lib/ration/sim"), environment.get("LD_LIBRARY_PATH", "")]
        environment["LD_LIBRARY_PATH"] = ":".join(path for path in library if path)
    try:
        share(build, environment, "sim" if simulate else "gpu")
    except (Failure, OSError, KeyError, StopIteration, subprocess.SubprocessError) as failure:
        print(f"shared_gpu: FAILED {failure if isinstance(failure, Failure) else repr(failure)}")
        return 1
    return 0


sys.exit(main())
