#!/usr/bin/env python3
"""The program's own state (host.cc) is the same with and without Ration, whatever Ration's settings."""
import os
import pathlib
import re
import subprocess

from harness import (HANG, LIBRARIES, MIB, PROGRAMS, SANITIZED, clean_environment, driver_folder, expect,
                     expect_that, main, of_type, run)

MACHINE = {"SIMCUDA_DEVICES": "4GiB"}
GENERATIONS = 6
# Slabs: the simulated driver has a thread for each stream, and a first granule is tried in one.
WAYS = {"direct": {"RATION_MODE": "direct"}, "a pool": {"RATION_MODE": "pool", "RATION_BACKING": "slab"},
        "a pool in a group": {"RATION_MODE": "pool", "RATION_BACKING": "slab", "RATION_GROUP": "g", "RATION_GROUP_LIMIT": "1GiB"}}


def limited(folder):
    return {"RATION_LIMIT": "1GiB", "RATION_STATE_DIR": pathlib.Path(folder) / "state"} | MACHINE


def same(way):
    def case(folder):
        plain = run("host", "use", preload=None, folder=folder, **MACHINE)
        done = run("host", "use", folder=folder, **limited(folder), **WAYS[way])
        expect_that(f"{plain.out}", plain.out.endswith("answered 2\n") and plain.out.count("umask 027") == 2)
        for before, after in zip(plain.out.splitlines(), done.out.splitlines()):
            # ThreadSanitizer starts a thread with the first one that is started, here Ration's.
            expect("state", *(re.sub(r"\d+ threads", "threads", line) if SANITIZED else line for line in (after, before)))
        expect("status, stderr, lines", (done.status, done.err, done.out.count("\n")), (0, "", plain.out.count("\n")))
    return case


def generations(way):
    """No resource grows from one generation to the next, and only the first registers fork handlers."""
    def case(folder):
        done = run("host", "generations", str(GENERATIONS), folder=folder, **limited(folder), **WAYS[way])
        expect("status, stderr", (done.status, done.err), (0, ""))
        reported = [tuple(map(int, re.findall(r"\d+", line))) for line in done.out.splitlines()]
        expect("generations", len(reported), GENERATIONS + 1)
        expect_that(f"the first one registered fork handlers, and has the library mapped: {reported}",
                    (reported[0][2] > 0 or SANITIZED) and reported[0][1] > 0)
        for generation in reported[1:]:
            expect_that(f"descriptors, mappings: {reported}", generation[0] <= reported[1][0] and generation[1] <= reported[1][1])
            expect("fork handlers of a child", generation[2], 0)
    return case


def outlived(folder):
    """A child that outlives its parent does not hold the parent's log: the next run can use its name."""
    settings = limited(folder) | {"RATION_LOG": f"{folder}/run.jsonl", "LD_PRELOAD": LIBRARIES,
                                  "LD_LIBRARY_PATH": f"{driver_folder('sim')}"}
    first = subprocess.Popen([PROGRAMS / "steps", "init", "context=0", "alloc=1m", "orphan:total=0+obey"], stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, env=clean_environment() | {k: str(v) for k, v in settings.items()})
    try:
        said = [first.stdout.readline() for _ in range(4)]  # the last line is the child's
        expect_that(f"{said}", said[-1].startswith(b"total=0 total=0: "))
        expect("status", first.wait(timeout=HANG), 0)
        done = run("steps", "init", "context=0", "alloc=2m", folder=folder, **limited(folder))
    finally:
        first.stdin.close()  # this ends the child
        first.stdout.close()
    sizes = {name: [one["size"] for one in of_type(records, "alloc")] for name, records in done.logs.items()}
    expect("allocations of the second run", sizes.pop("run.jsonl"), [2 * MIB])
    expect("of the child, whose log has its own name", list(sizes.values()), [[]])


def ending(way):
    def case(folder):
        plain = run("host", "exit", preload=None, **MACHINE)
        done = run("host", "exit", folder=folder, **limited(folder), **WAYS[way])
        expect("status without Ration", plain.status, 7)
        expect("status, stdout, stderr", (done.status, done.out, done.err), (7, "", ""))
        expect("the log's last line", done.logs["run.jsonl"][-1]["t"], "end")
    return case


def cleared(folder):
    """The process's initial environment in /proc is intact."""
    done = run("host", "cleared", folder=folder, **limited(folder))
    expect("status, stdout, stderr", (done.status, done.out, done.err), (0, "blocks=10 code=2 null=1\n", ""))


def quiet(folder):
    """Many refusals, a log, a group: no output."""
    for settings in WAYS.values():
        done = run("steps", "init", "context=0", *["alloc=2g"] * 20, *["alloc=100m"] * 12, "query", folder=folder,
                   **limited(folder), **settings)
        expect("stderr", done.err, "")
        wrong = [line for line in done.out.splitlines() if not re.fullmatch(r"[a-z0-9_= ]+: \d+", line)]
        expect("lines that are not the program's", wrong, [])
        expect("lines", done.out.count("\n"), 35)


CASES = {f"umask, signals, folder and threads are the program's, {way}": same(way) for way in WAYS}
CASES |= {f"a fork generation adds no descriptor, mapping or fork handler, {way}": generations(way) for way in WAYS}
if "thread" not in os.environ.get("PRELOAD_SANITIZE", ""):  # under ThreadSanitizer the runtime itself waits for stdio's locks at exit
    CASES |= {f"exit works amid calls and with held stdio locks, {way}": ending(way) for way in WAYS}
main(CASES | {"a child that outlives its parent does not keep the log": outlived, "a program that clears its environment is held to its limit": cleared, "a quiet run says nothing": quiet})
