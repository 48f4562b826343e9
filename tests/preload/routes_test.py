#!/usr/bin/env python3
"""routes_test.py GROUP | GROUP/ROUTE...: those routes of routes.txt obey the limit.

Each program first runs without Ration, where it must get more blocks than the limit allows, then with it: exactly 10
blocks, then code 2 with the address set to 0, and a log of 10 allocations and the refusals.
"""
import os
import pathlib
import re
import sys

from harness import BLOCK, GIB, SANITIZED, expect, expect_that, main, of_type, run

BLOCKS = 10


def rows(asked):
    for line in (pathlib.Path(__file__).parent / "routes.txt").read_text().splitlines():
        words = line.split()
        if words and (words[0] in asked or "/".join(words[:2]) in asked):
            settings = dict(word.split("=", 1) for word in words[2:] if "=" in word)
            yield words[1], [word for word in words[2:] if "=" not in word], settings


def filled(done):
    """(blocks, code, null) of the one line that a program prints."""
    lines = re.findall(r"^blocks=(\d+) code=(\d+) null=(\d)$", done.out, re.MULTILINE)
    expect_that(f"status {done.status}, printed {done.out!r} {done.err!r}", done.status == 0 and len(lines) == 1)
    return tuple(map(int, lines[0]))


def check(command, settings, folder):
    refusals = int(settings.pop("refused", 1))
    settings.setdefault("SIMCUDA_DEVICES", os.environ.get("PRELOAD_DEVICE", "16GiB"))
    free_run = filled(run(*command, preload=None, **settings))
    expect_that(f"without Ration it got {free_run[0]} blocks", free_run[0] > BLOCKS)
    done = run(*command, folder=folder, RATION_LIMIT="1GiB", **settings)
    expect("blocks, code, null", filled(done), (BLOCKS, 2, 1))
    expect("stderr", done.err, "")
    expect("logs", list(done.logs), ["run.jsonl"])
    records = done.logs["run.jsonl"]
    allocs, ooms = of_type(records, "alloc"), of_type(records, "oom")
    expect("alloc records", [(a["size"], a["req"], a["api"]) for a in allocs], [(BLOCK, BLOCK, "cuMemAlloc_v2")] * BLOCKS)
    expect("oom records", [(o["req"], o["reason"], o["used"], o["limit"]) for o in ooms],
           [(BLOCK, "limit", BLOCKS * BLOCK, GIB)] * refusals)


def case(command, settings):
    return lambda folder: check(command, settings, folder)


cases, left_out = {}, []
for route, command, settings in rows(sys.argv[1:]):
    if settings.pop("plain", None) and SANITIZED:
        left_out.append(route)
    else:
        cases[route] = case(command, settings)
if left_out:
    print("cannot be instrumented:", *left_out)
    if not cases:
        sys.exit(0)
main(cases)
