"""Runs a program of somebody else's on the simulated machine, without Ration and under it.

The environment comes from ration_preload_test (preload_test.cmake).
"""
import os
import pathlib
import subprocess
import sys

TESTS = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "preload"), str(TESTS / "preload/python")]

import client  # noqa: E402
from harness import (  # noqa: E402, F401
    BUILD, GIB, HANG, LIBRARIES, Failure, clean_environment, expect, expect_that, needs, of_type, read_log, skip)

MODES = ("pool", "async", "direct")


def python():
    """The interpreter with the packages of tests/requirements.txt. Skipped only if no package index answers."""
    return client.interpreter(TESTS.parent, BUILD)


def start(command, folder, devices, more_libraries=(), **environment):
    """A running process on the machine of `folder`."""
    machine = pathlib.Path(folder) / f"machine-{devices.replace(',', '-')}"
    machine.mkdir(exist_ok=True)
    child = clean_environment() | {
        "LD_LIBRARY_PATH": ":".join(map(str, (BUILD / "lib/ration/sim", *more_libraries))), "SIMCUDA_MACHINE": str(machine),
        "SIMCUDA_DEVICES": devices, "SIMCUDA_CONTEXT_BYTES": "0", "RATION_STATE_DIR": f"{folder}/state", "HOME": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8", "TERM": "xterm", "COLUMNS": "200"} | environment
    return subprocess.Popen(command, env=child, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True, cwd=folder)


def run(command, folder, devices, status=0, **environment):
    """Stdout and stderr of the program, which must end with `status` (None: with any)."""
    process = start(command, folder, devices, **environment)
    try:
        out, err = process.communicate(timeout=HANG)
    except subprocess.TimeoutExpired as stuck:
        process.kill()
        raise Failure(f"{command} hangs") from stuck
    if status is not None:
        expect(f"status of {command}, output {out[-2000:]} {err[-2000:]}", process.returncode, status)
    return out, err


def limited(mode, limit, log=""):
    """The environment of a process under Ration."""
    return {"LD_PRELOAD": LIBRARIES, "RATION_MODE": mode, "RATION_LIMIT": str(limit), "RATION_LOG": str(log)}


def same_in_every_mode(command, folder, of=lambda out, err: out, limit=GIB, calls=(), left=0, **environment):
    """Compares what `of` takes from the program's output; checks that the log has `calls` and ends with `left` bytes live."""
    plain = of(*run(command, folder, "2GiB", **environment))
    expect_that(f"the program showed something: {plain!r}", plain)
    for mode in MODES:
        log = pathlib.Path(folder) / f"{mode}{len(os.listdir(folder))}.jsonl"
        seen = of(*run(command, folder, "2GiB", **limited(mode, limit, log), **environment))
        expect(f"output in mode {mode}", seen, plain)
        records = read_log(log)
        logged = {record["api"] for record in of_type(records, "alloc")}
        expect(f"calls missing in the log of mode {mode}", set(calls) - logged, set())
        expect(f"last record in mode {mode}", records[-1]["t"], "end")
        expect(f"live at the end in mode {mode}", sum(device["bytes"] for device in records[-1]["live"]), left)
    return plain
